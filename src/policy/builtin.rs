//! The built-in pack, embedded: `policies/` of this repository.

use std::sync::Arc;

use super::load::Pack;
use crate::checksum::fingerprint;
use crate::source::Source;

/// Name of the built-in pack in `extends` and in messages.
pub const NAME: &str = "builtin";

/// Files of the built-in pack and their texts.
pub const FILES: &[(&str, &str)] = &[
    ("policyd.yaml", include_str!("../../policies/policyd.yaml")),
    ("vocabulary.yaml", include_str!("../../policies/vocabulary.yaml")),
    ("preferences.yaml", include_str!("../../policies/preferences.yaml")),
    ("probes.yaml", include_str!("../../policies/probes.yaml")),
    ("breakers.yaml", include_str!("../../policies/breakers.yaml")),
    ("dead_letter.yaml", include_str!("../../policies/dead_letter.yaml")),
    ("escalation.yaml", include_str!("../../policies/escalation.yaml")),
    ("failures.yaml", include_str!("../../policies/failures.yaml")),
    ("routes.yaml", include_str!("../../policies/routes.yaml")),
    ("reactions.yaml", include_str!("../../policies/reactions.yaml")),
    ("signals.yaml", include_str!("../../policies/signals.yaml")),
    ("context.yaml", include_str!("../../policies/context.yaml")),
    ("destructive-commands.yaml", include_str!("../../policies/destructive-commands.yaml")),
    ("protected-paths.yaml", include_str!("../../policies/protected-paths.yaml")),
    ("secrets.yaml", include_str!("../../policies/secrets.yaml")),
    ("git-discipline.yaml", include_str!("../../policies/git-discipline.yaml")),
    ("network-exfiltration.yaml", include_str!("../../policies/network-exfiltration.yaml")),
    ("run.yaml", include_str!("../../policies/run.yaml")),
    ("tables.yaml", include_str!("../../policies/tables.yaml")),
    ("rationalizations.yaml", include_str!("../../policies/rationalizations.yaml")),
    ("session_types.yaml", include_str!("../../policies/session_types.yaml")),
    ("checkers.yaml", include_str!("../../policies/checkers.yaml")),
    ("considerations.yaml", include_str!("../../policies/considerations.yaml")),
    ("messages.yaml", include_str!("../../policies/messages.yaml")),
];

/// Case files of the built-in pack and what they compare with, by their names in its folder `tests`.
pub const CASES: &[(&str, &str)] = &[
    ("ci.yaml", include_str!("../../policies/tests/ci.yaml")),
    ("context.yaml", include_str!("../../policies/tests/context.yaml")),
    ("dead_letter.yaml", include_str!("../../policies/tests/dead_letter.yaml")),
    ("events.yaml", include_str!("../../policies/tests/events.yaml")),
    ("failures.yaml", include_str!("../../policies/tests/failures.yaml")),
    ("forges.yaml", include_str!("../../policies/tests/forges.yaml")),
    ("guard_exceptions.yaml", include_str!("../../policies/tests/guard_exceptions.yaml")),
    ("guards.yaml", include_str!("../../policies/tests/guards.yaml")),
    ("guards_kinds.yaml", include_str!("../../policies/tests/guards_kinds.yaml")),
    ("progress.yaml", include_str!("../../policies/tests/progress.yaml")),
    ("pull_request.yaml", include_str!("../../policies/tests/pull_request.yaml")),
    ("quality.yaml", include_str!("../../policies/tests/quality.yaml")),
    ("rationalizations.yaml", include_str!("../../policies/tests/rationalizations.yaml")),
    ("session.yaml", include_str!("../../policies/tests/session.yaml")),
    ("signals.yaml", include_str!("../../policies/tests/signals.yaml")),
    ("tables.yaml", include_str!("../../policies/tests/tables.yaml")),
    ("workflow.yaml", include_str!("../../policies/tests/workflow.yaml")),
    (
        "snapshots/session__a_whole_report.snap",
        include_str!("../../policies/tests/snapshots/session__a_whole_report.snap"),
    ),
];

/// A number that changes with every byte of the built-in pack.
pub const FINGERPRINT: u64 = fingerprint(&texts());

const fn texts() -> [&'static str; FILES.len()] {
    let mut texts = [""; FILES.len()];
    let mut at = 0;
    while at < FILES.len() {
        #[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
        {
            texts[at] = FILES[at].1;
        }
        at += 1;
    }
    texts
}

/// Whether a source is a file of the built-in pack.
#[must_use]
pub fn wrote(source: &Source) -> bool {
    has(&source.name)
}

/// Whether a file of this name is one of the built-in pack. Folders never have its name.
#[must_use]
pub fn has(file: &str) -> bool {
    file.strip_prefix(NAME).is_some_and(|rest| rest.starts_with('/'))
}

/// The built-in pack as if read from a folder.
#[must_use]
pub fn pack() -> Pack {
    let files = FILES.iter().map(|(file, text)| {
        let source = Source { name: format!("{NAME}/{file}"), text: (*text).to_owned() };
        ((*file).to_owned(), Arc::new(source))
    });
    Pack { name: NAME.to_owned(), files: files.collect() }
}
