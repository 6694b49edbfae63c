//! The built-in pack is clean, also by what is asked of packs that others rely on.

use std::sync::Arc;

use policyd::lint::{self, Profile, Subject};
use policyd::policy::builtin;
use policyd::policy::load::Pack;
use policyd::policy::review::{Base, ReviewedPolicy};
use policyd::report::diagnostics::render_compact;
use policyd::source::Source;
use policyd::time::Timestamp;

use crate::subjects::TODAY;

#[test]
fn the_built_in_pack_and_its_cases_are_clean_by_the_strict_profile() {
    let source = |folder: &str, file: &str, text: &str| {
        Arc::new(Source { name: format!("{folder}/{file}"), text: text.to_owned() })
    };
    let files = builtin::FILES.iter();
    let files = files.map(|it| (it.name.to_owned(), source("policies", it.name, it.text)));
    // As a folder: what is passed over for being built in is looked at, too.
    let pack = Pack { name: "policies".to_owned(), files: files.collect(), ..Pack::default() };
    let cases = builtin::CASES.iter().filter(|(file, _)| file.ends_with(".yaml"));
    let cases = cases.map(|(file, text)| source("policies/tests", file, text)).collect();
    let base = Base::new(&builtin::pack());
    let reviewed = ReviewedPolicy::new(&pack, &base);
    let subject =
        Subject::new(&pack, &reviewed, Timestamp::parse(TODAY).unwrap()).with_cases(cases);
    let found = lint::review(&subject, Profile::Strict, true);
    assert_eq!(render_compact(&found.findings), "");
    for ignored in &found.ignored {
        assert!(!ignored.reason.is_empty(), "{}", ignored.finding.message);
    }
}
