//! The built-in pack, embedded: `policies/` of this repository, with the YAML trees that the build script parsed.
//! Parsing them in each process executes 1.6 times as many instructions in a call without a compiled pack (callgrind,
//! x86-64, 2026-11-25).

use std::sync::Arc;

use super::Pack;
use policyd_yaml::checksum::fingerprint;
use policyd_yaml::{Node, Source, stored};

/// Name of the built-in pack in `extends` and in messages.
pub const NAME: &str = "builtin";

/// A file of the built-in pack.
#[derive(Debug)]
pub struct File {
    /// Its name in the folder of a pack.
    pub name: &'static str,
    /// Content of the file.
    pub text: &'static str,
    /// What its text was parsed into when the program was built.
    tree: &'static [u8],
}

macro_rules! files {
    ($($name:literal)*) => {
        &[$(File {
            name: concat!($name, ".yaml"),
            text: include_str!(concat!("../../policies/", $name, ".yaml")),
            tree: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".tree")),
        }),*]
    };
}

/// Files of the built-in pack.
pub const FILES: &[File] = files![
    "policyd"
    "vocabulary"
    "preferences"
    "probes"
    "breakers"
    "dead_letter"
    "escalation"
    "failures"
    "routes"
    "reactions"
    "signals"
    "context"
    "destructive-commands"
    "protected-paths"
    "secrets"
    "git-discipline"
    "network-exfiltration"
    "approve-read"
    "approve-work"
    "run"
    "tables"
    "rationalizations"
    "session_types"
    "checkers"
    "considerations"
    "exemptions"
    "messages"
];

/// Case files of the built-in pack and what they compare with, by their names in its folder `tests`.
pub const CASES: &[(&str, &str)] = &[
    ("advice.yaml", include_str!("../../policies/tests/advice.yaml")),
    ("approvals.yaml", include_str!("../../policies/tests/approvals.yaml")),
    ("ci.yaml", include_str!("../../policies/tests/ci.yaml")),
    ("context.yaml", include_str!("../../policies/tests/context.yaml")),
    ("dead_letter.yaml", include_str!("../../policies/tests/dead_letter.yaml")),
    ("events.yaml", include_str!("../../policies/tests/events.yaml")),
    ("exemptions.yaml", include_str!("../../policies/tests/exemptions.yaml")),
    ("failures.yaml", include_str!("../../policies/tests/failures.yaml")),
    ("forges.yaml", include_str!("../../policies/tests/forges.yaml")),
    ("guard_exceptions.yaml", include_str!("../../policies/tests/guard_exceptions.yaml")),
    ("guards.yaml", include_str!("../../policies/tests/guards.yaml")),
    ("guards_effects.yaml", include_str!("../../policies/tests/guards_effects.yaml")),
    ("guards_flows.yaml", include_str!("../../policies/tests/guards_flows.yaml")),
    ("guards_origins.yaml", include_str!("../../policies/tests/guards_origins.yaml")),
    ("guards_forms.yaml", include_str!("../../policies/tests/guards_forms.yaml")),
    ("guards_words.yaml", include_str!("../../policies/tests/guards_words.yaml")),
    ("guards_gate.yaml", include_str!("../../policies/tests/guards_gate.yaml")),
    ("guards_kinds.yaml", include_str!("../../policies/tests/guards_kinds.yaml")),
    ("guards_paths.yaml", include_str!("../../policies/tests/guards_paths.yaml")),
    ("guards_reach.yaml", include_str!("../../policies/tests/guards_reach.yaml")),
    ("guards_services.yaml", include_str!("../../policies/tests/guards_services.yaml")),
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
            texts[at] = FILES[at].text;
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

/// Whether `extends` of a manifest names the built-in pack.
pub(super) fn is_named_by(extends: &Node) -> bool {
    extends.items().is_some_and(|items| items.iter().any(|it| it.text() == Some(NAME)))
}

/// The tree of a file that the built-in pack has with this text, byte for byte.
#[must_use]
pub fn tree(file: &str, source: &Arc<Source>) -> Option<Node> {
    let file = FILES.iter().find(|it| it.name == file && it.text == source.text)?;
    stored::read(file.tree, source)
}

/// The built-in pack as if read from a folder.
#[must_use]
pub fn pack() -> Pack {
    let files = FILES.iter().map(|file| {
        let source = Source { name: format!("{NAME}/{}", file.name), text: file.text.to_owned() };
        (file.name.to_owned(), Arc::new(source))
    });
    Pack { name: NAME.to_owned(), files: files.collect(), remote: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_yaml::yaml;

    #[test]
    fn each_file_was_parsed_as_it_is_parsed_now() {
        for (file, source) in pack().files {
            assert_eq!((tree(&file, &source), vec![]), yaml::parse(&source), "{file}");
        }
    }

    #[test]
    fn another_text_under_the_same_name_has_no_tree() {
        for (file, source) in pack().files {
            let text = source.text.replacen('a', "b", 1);
            assert_eq!(tree(&file, &Arc::new(Source { name: source.name.clone(), text })), None);
        }
    }
}
