//! Packs made of texts, and what lint finds in them.

use std::sync::{Arc, LazyLock};

use policyd::harness::Harness;
use policyd::lint::{self, Profile, Subject, SuppressionReview};
use policyd::policy::builtin;
use policyd::policy::load::Pack;
use policyd::policy::review::{self, Base};
use policyd::report::diagnostics::render_compact;
use policyd::source::Source;
use policyd::time::Timestamp;

/// The day on which these packs are looked at.
pub(crate) const TODAY: &str = "2026-11-21T12:00:00Z";

/// The built-in pack, which every test extends.
static BASE: LazyLock<Base> = LazyLock::new(|| Base::new(&builtin::pack()));

/// A pack in `policies/` with these files.
pub(crate) fn pack(files: &[(&str, &str)]) -> Pack {
    let file = |it: &(&str, &str)| (it.0.to_owned(), source(it));
    Pack { name: "policies".to_owned(), files: files.iter().map(file).collect(), ..Pack::default() }
}

fn source((name, text): &(&str, &str)) -> Arc<Source> {
    Arc::new(Source { name: format!("policies/{name}"), text: (*text).to_owned() })
}

/// What lint finds in a pack; files in `tests/` are its cases. A pack without any is looked at for
/// something else than for what its cases show.
pub(crate) fn look(files: &[(&str, &str)], profile: Profile) -> SuppressionReview {
    look_for(None, files, profile)
}

/// The same for one client; files in other folders are read by nobody.
pub(crate) fn look_for(
    client: Option<&'static Harness>,
    files: &[(&str, &str)],
    profile: Profile,
) -> SuppressionReview {
    let is_case = |it: &(&str, &str)| it.0.starts_with("tests/");
    let (cases, files): (Vec<_>, Vec<_>) = files.iter().copied().partition(is_case);
    let (unread, files): (Vec<_>, Vec<_>) = files.into_iter().partition(|it| it.0.contains('/'));
    let unread: Vec<String> = unread.iter().map(|(name, _)| format!("policies/{name}")).collect();
    let read: Vec<_> = cases.iter().map(source).collect();
    let mut found = look_with(
        &pack(&files),
        |it| it.with_cases(read.clone()).with_unread(unread.clone()).for_harness(client),
        profile,
        true,
    );
    if cases.is_empty() {
        found.findings.retain(|it| it.code != "missing-case");
    }
    found
}

/// What lint finds in a pack, with or without its ignores.
pub(crate) fn look_at(pack: &Pack, profile: Profile, ignores: bool) -> SuppressionReview {
    look_with(pack, |it| it, profile, ignores)
}

fn look_with(
    pack: &Pack,
    around: impl for<'s> Fn(Subject<'s>) -> Subject<'s>,
    profile: Profile,
    ignores: bool,
) -> SuppressionReview {
    let now = Timestamp::parse(TODAY).unwrap();
    let reviewed = review::ReviewedPolicy::new(pack, &BASE);
    let subject = around(Subject::new(pack, &reviewed, now));
    lint::review(&subject, profile, ignores)
}

/// Texts of a file, and the beginnings of what is said of each; nothing where it is sound.
pub(crate) fn check(file: &str, code: &str, situations: &[(&str, &str)]) {
    for (text, said) in situations {
        let all = render_compact(&look(&[(file, text)], Profile::Default).findings);
        let found: Vec<&str> = all.lines().filter(|it| it.contains(code)).collect();
        if said.is_empty() {
            assert!(found.is_empty(), "{text}: {found:?}");
        } else {
            assert_eq!(found.len(), 1, "{text}: {all}");
            assert!(found.iter().all(|it| it.contains(said)), "{text}: {found:?}");
        }
    }
}

/// The same for texts that are made of what differs in them.
pub(crate) fn check_made(
    (file, made): (&str, impl Fn(&str) -> String),
    code: &str,
    situations: &[(&str, &str)],
) {
    for (it, said) in situations {
        check(file, code, &[(&made(it), said)]);
    }
}

/// A consideration with these lines below its fixed keys.
pub(crate) fn consideration(id: &str, lines: &str) -> String {
    format!(
        "- id: {id}\n  category: Own\n  question: Is {id} done?\n  severity: warning\n{lines}\n"
    )
}
