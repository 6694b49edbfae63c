//! The built-in pack loads without a complaint.

use policyd::expr::pattern::{StoredPattern, compile_regex};
use policyd::policy::{builtin, load};
use policyd::report::diagnostics;

#[test]
fn the_built_in_pack_has_no_finding() {
    let pack = builtin::pack();
    let loaded = load::load(&pack, &pack);
    assert_eq!(diagnostics::render_compact(&loaded.diagnostics), "");
    let policy = loaded.policy.expect("a sound pack is a policy");
    assert_eq!(
        policy.considerations.len(),
        27,
        "16 of amplihack's 25, `compaction_handling`, two more forges, `no_rationalizations`, \
         `context_written_down`, `tests_ended`, `tests_unknown`, `packages_tested`, `commit_claimed`, \
         `todo_comments` and `work_visible`"
    );
    let categories = policy.considerations.iter().map(|it| &*it.category);
    assert_eq!(categories.collect::<std::collections::BTreeSet<_>>().len(), 6);
}

#[test]
fn its_regexes_compile() {
    let pack = builtin::pack();
    let policy = load::load(&pack, &pack).policy.expect("a sound pack is a policy");
    let lens = &policy.lens;
    let commands = lens.commands.iter().flat_map(|it| it.failed.iter().chain(&it.passed));
    let contents = lens.contents.iter().flat_map(|it| it.regexes.iter().chain(&it.unless));
    let texts = policy.texts.values().map(StoredPattern::source);
    let texts = texts.flat_map(|it| it.regexes.iter().chain(&it.unless));
    let preferences = policy.preferences.iter().flat_map(|it| &it.regexes);
    for regex in commands.chain(contents).chain(texts).chain(preferences) {
        assert_eq!(compile_regex(regex).err(), None, "{regex}");
    }
}

#[test]
fn its_guards_ask_for_every_issued_format_of_secrets() {
    let guards = include_str!("../../policies/secrets.yaml");
    let rules = guards.matches("when: action.issued_secrets.len() > 0\n").count();
    assert_eq!(rules, 2, "in a call and in a prompt");
    assert_eq!(guards.matches("- id: ").count(), 2);
}
