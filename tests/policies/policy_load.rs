//! Loading packs: what people are told about a faulty one, and what layering means.

use std::sync::Arc;
use std::time::Duration;

use policyd::policy::load::{self, LoadResult, Pack};
use policyd::policy::{Mode, OnError, Policy, builtin};
use policyd::report::diagnostics::{self, Style};
use policyd::source::Source;
use policyd::state::breaker::Window;

use crate::support::snapshot;

fn pack(files: &[(&str, &str)]) -> Pack {
    let source = |(name, text): &(&str, &str)| {
        let source = Source { name: format!("policies/{name}"), text: (*text).to_owned() };
        ((*name).to_owned(), Arc::new(source))
    };
    Pack { name: "mine".to_owned(), files: files.iter().map(source).collect(), ..Pack::default() }
}

fn load(files: &[(&str, &str)]) -> LoadResult {
    load::load(&pack(files), &builtin::pack())
}

fn sound(files: &[(&str, &str)]) -> Policy {
    let loaded = load(files);
    let told = diagnostics::render_compact(&loaded.diagnostics);
    loaded.policy.unwrap_or_else(|| panic!("{told}"))
}

/// A faulty pack: what people are told is a snapshot, and no policy comes out.
fn told(name: &str, files: &[(&str, &str)]) {
    let loaded = load(files);
    assert!(loaded.policy.is_none(), "{name}: a faulty pack is no policy");
    let text = diagnostics::render_text(&loaded.diagnostics, Style { color: false });
    snapshot("diagnostics", &format!("pack__{name}"), text);
}

const RULE: &str = "- id: mine\n  category: C\n  question: Q?\n  severity: blocker\n";

#[test]
fn a_slip_of_a_key_that_must_be_there_is_one_finding() {
    let rule = format!("{RULE}  satisfied: files.count > 0\n");
    let preference = "- id: mine\n  files: [a.md]\n  regexes: [x]\n";
    for (file, text, key) in [
        ("considerations.yaml", rule.as_str(), "satisfied"),
        ("preferences.yaml", preference, "regexes"),
    ] {
        let found = |text: &str| load(&[(file, text)]).diagnostics;
        assert_eq!(found(text), [], "{file}");
        let slip = key.replacen('e', "ee", 1);
        let told = |name: &str| -> Vec<&str> {
            let found = found(&text.replace(&format!("{key}:"), &format!("{name}:")));
            found.iter().map(|it| it.code).collect()
        };
        assert_eq!(told(&slip), ["unknown-key"], "{file}");
        assert!(told("unheard_of").contains(&"missing-key"), "{file}: that is no slip");
    }
}

#[test]
fn faulty_packs() {
    let one =
        |name: &str, rest: &str| told(name, &[("considerations.yaml", &format!("{RULE}{rest}"))]);
    one("unknown_fact", "  satisfied: todo.open == 0\n");
    one("unknown_field", "  satisfied: \"todos.opn == 0 && files.count > 0\"\n");
    one("wrong_comparison", "  satisfied: 'todos.open == \"0\"'\n");
    one("condition_is_a_number", "  satisfied: todos.open\n");
    one("unknown_function", "  satisfied: commands.rann(\"git push\")\n");
    one("unknown_command_kind", "  satisfied: commands.kind(\"tset\").passed\n");
    one("impossible_value", "  satisfied: event.kind == \"stopp\"\n");
    one(
        "syntax_of_an_expression",
        "  satisfied: >-\n    todos.open == 0 &&\n    && files.count == 0\n",
    );
    one("or_of_another_language", "  satisfied: todos.open == 0 or files.count == 0\n");
    one("assignment", "  satisfied: todos.open = 0\n");
    one("loop_in_an_expression", "  satisfied: \"while true {}\"\n");
    one("open_hole", "  satisfied: todos.open == 0\n  details: \"open: ${todos.open\"\n");
    one(
        "wrong_hole",
        "  satisfied: todos.open == 0\n  details: \"open: ${todos.opn} of ${todos}\"\n",
    );
    one("unknown_checker", "  checker: _check_todos_complet\n");
    one("no_check_at_all", "");
    one(
        "unknown_session_type",
        "  satisfied: todos.open == 0\n  applicable_session_types: [DEVELOPMNT]\n",
    );
    one("unknown_event", "  satisfied: todos.open == 0\n  on: [stopp, pre-tool-use]\n");
    one("judged_at_no_event", "  satisfied: todos.open == 0\n  on: []\n");
    one("outcome_before_there_is_one", "  satisfied: outcome.failed == 0\n");
    told(
        "session_type_asks_a_probe",
        &[("session_types.yaml", "- id: MINE\n  when: probes.pr.ok\n")],
    );
    told(
        "unknown_file_kind",
        &[("vocabulary.yaml", "contents:\n  mine:\n    regexes: [x]\n    files: [cod]\n")],
    );
    one("nothing_to_override", "  satisfied: todos.open == 0\n  override: true\n");
    one(
        "many_at_once",
        "  satisfied: todos.opn == 0\n  severty: warning\n  enabled: yes\n  expires: tomorrow\n",
    );
    told(
        "same_id_twice",
        &[(
            "considerations.yaml",
            &format!("{RULE}  checker: generic\n{RULE}  checker: generic\n"),
        )],
    );
    told(
        "inherited_id_without_override",
        &[
            ("policyd.yaml", "version: 1\nextends: [builtin]\n"),
            ("considerations.yaml", "- id: todos_complete\n  enabled: false\n"),
        ],
    );
    told("unknown_file", &[("consideration.yaml", "- id: x\n")]);
    told(
        "duration_without_unit",
        &[("policyd.yaml", "version: 1\nextends: [builtin]\ndeadline: 5\n")],
    );
    told("bad_regex", &[("vocabulary.yaml", "texts:\n  mine:\n    regexes: ['(open', 'fine']\n")]);
    told("unknown_message", &[("messages.yaml", "block_heder:\n  - text: x\n")]);
    told(
        "standalone_pack_lacks_names",
        &[
            ("policyd.yaml", "extends: []\n"),
            (
                "considerations.yaml",
                &format!("{RULE}  satisfied: commands.kind(\"test\").passed\n"),
            ),
        ],
    );
}

#[test]
fn a_list_of_paths_contains_globs_and_has_the_name_that_rules_use() {
    let guard = "- id: own\n  when: action.reads([\"@min\"])\n  decision: ask\n  message: Stop.\n";
    let vocabulary = "paths:\n  mine: ['@key_files', '**/*.dump']\n";
    told("list_of_paths", &[("vocabulary.yaml", vocabulary), ("guards.yaml", guard)]);
}

#[test]
fn a_fault_in_the_vocabulary_is_told_alone() {
    let rule = format!("{RULE}  satisfied: commands.kind(\"deploy\").passed\n");
    let vocabulary = "comands:\n  deploy: {programs: [deploy.sh]}\n";
    let loaded = load(&[("considerations.yaml", &rule), ("vocabulary.yaml", vocabulary)]);
    let found: Vec<&str> = loaded.diagnostics.iter().map(|it| it.code).collect();
    assert_eq!(found, ["unknown-key"], "names that it would have defined are not called unknown");
}

#[test]
fn a_file_of_amplihacks_loads_beside_a_manifest_too() {
    let entry = "- id: todos_complete\n  category: C\n  question: Q?\n  description: D\n  severity: warning\n  checker: _check_todos_complete\n  enabled: true\n";
    for manifest in ["version: 1\n", "version: 1\npaths: {layout: amplihack}\n"] {
        let policy = sound(&[("considerations.yaml", entry), ("policyd.yaml", manifest)]);
        let found = policy.considerations.iter().find(|it| it.id == "todos_complete").unwrap();
        assert_eq!(&*found.question, "Q?");
    }
    let off = load(&[("considerations.yaml", "- id: [\n"), ("policyd.yaml", "enabled: false\n")]);
    assert_eq!((off.policy, off.enabled), (None, Some(false)));
}

#[test]
fn a_session_type_of_ones_own_is_reached() {
    let own = "- {id: DOCS, when: 'files.kind(\"docs\").count > 0'}\n";
    let policy = sound(&[("session_types.yaml", own), ("policyd.yaml", "version: 1\n")]);
    assert_eq!(policy.session_types.first().unwrap().id, "DOCS");
    assert_eq!(policy.session_types.last().unwrap().id, "INFORMATIONAL");
}

#[test]
fn a_drift_rule_of_ones_own_is_reached() {
    let own =
        "drift:\n  - {id: mine, when: drift.severity == \"medium\", do: ask, message: Ask.}\n";
    let policy = sound(&[("signals.yaml", own), ("policyd.yaml", "version: 1\n")]);
    assert_eq!(policy.signals.drift.first().unwrap().id, "mine");
    assert!(policy.signals.drift.len() > 1, "those of the built-in pack follow");
}

#[test]
fn a_breaker_takes_what_it_leaves_out_from_the_next_wider_one() {
    let own = "probe/pr: {threshold: 2}\n";
    let policy = sound(&[("breakers.yaml", own)]);
    let (pr, other) = (policy.breaker("probe/pr"), policy.breaker("api/x"));
    let seconds = |count| Window::Time(Duration::from_secs(count));
    assert_eq!((pr.threshold, pr.recovery_threshold, pr.window), (2, 1, seconds(1800)));
    assert_eq!((other.threshold, other.recovery_threshold, other.window), (3, 3, seconds(60)));
}

#[test]
fn what_a_narrower_breaker_writes_takes_the_place_of_its_rivals() {
    let own = "api/*: {failure_rate: 50, window_calls: 20, cooldown_factor: 1.5, ignore: [a]}\n\
               api/x: {threshold: 4, window: 2m, ignore: []}\napi/y: {consecutive: true}\n";
    let policy = sound(&[("breakers.yaml", own)]);
    let (all, x, y) = (policy.breaker("api/z"), policy.breaker("api/x"), policy.breaker("api/y"));
    assert_eq!((all.failure_rate, all.window), (Some(50), Window::Calls(20)));
    assert_eq!((all.cooldown_multiplier, all.ignore.len()), (150, 1));
    assert_eq!((x.failure_rate, x.window), (None, Window::Time(Duration::from_secs(120))));
    assert_eq!((x.cooldown_multiplier, x.ignore.len()), (150, 0));
    assert_eq!(y.window, Window::Consecutive);
    assert_ne!(x.salt, y.salt, "their jitter differs");
    let (glob, places) = policy.breaker_origin("api/x").unwrap();
    assert_eq!(glob, "api/x");
    assert!(places["threshold"].to_string().ends_with("breakers.yaml:2:20"), "{places:?}");
    assert!(places["cooldown_factor"].to_string().contains("breakers.yaml:1:"), "{places:?}");
    assert!(places["half_open_interval"].to_string().starts_with("builtin/"), "{places:?}");
}

#[test]
fn a_folder_without_a_manifest_changes_the_built_in_pack() {
    let list = "- id: todos_complete\n  category: Mine\n  question: Done?\n  severity: warning\n  checker: _check_todos_complete\n";
    let policy = sound(&[("considerations.yaml", list)]);
    let changed = policy.considerations.iter().find(|it| it.id == "todos_complete").unwrap();
    assert_eq!((&*changed.category, &*changed.question), ("Mine", "Done?"));
    assert_eq!(changed.session_types, ["*"], "what is not said is inherited");
    assert!(policy.considerations.iter().any(|it| it.id == "local_testing"), "the rest stays");
}

#[test]
fn an_override_changes_key_by_key() {
    let manifest = ("policyd.yaml", "version: 1\nname: team\nextends: [builtin]\non_error: warn\n");
    let list = "- id: local_testing\n  override: true\n  mode: shadow\n- id: next_steps\n  override: true\n  enabled: false\n";
    let policy = sound(&[manifest, ("considerations.yaml", list)]);
    let find = |id: &str| policy.considerations.iter().find(|it| it.id == id).unwrap();
    assert_eq!(find("local_testing").mode, Mode::Shadow);
    assert_eq!(find("local_testing").check.name, "_check_local_testing");
    assert!(!find("next_steps").enabled);
    assert_eq!((policy.name.as_str(), policy.settings.on_error), ("team", OnError::Warn));
    assert_eq!(policy.settings.guard.max_consecutive_blocks, 5, "inherited settings stay");
}

#[test]
fn a_manifest_extends_the_built_in_pack_unless_it_says_otherwise() {
    let policy = sound(&[("policyd.yaml", "guard: {max_consecutive_blocks: 2}\n")]);
    assert!(policy.considerations.len() >= 6);
    assert_eq!(policy.settings.guard.max_consecutive_blocks, 2);
    assert_eq!(policy.name, "mine");
}

#[test]
fn a_manifest_that_extends_nothing_stands_alone() {
    let rule = format!("{RULE}  satisfied: todos.open == 0\n  applicable_session_types: [\"*\"]\n");
    let policy = sound(&[("policyd.yaml", "extends: []\n"), ("considerations.yaml", &rule)]);
    assert_eq!(policy.considerations.len(), 1);
    assert!(policy.session_types.is_empty());
}

#[test]
fn vocabularies_are_joined() {
    let text = "commands:\n  test:\n    programs: [./check.sh]\nshell_tools: [Terminal]\n";
    let policy = sound(&[("vocabulary.yaml", text)]);
    let test = policy.lens.commands.iter().find(|it| it.name == "test").unwrap();
    assert!(test.programs.contains(&"./check.sh".to_owned()));
    assert!(test.programs.contains(&"pytest".to_owned()), "the inherited runners stay");
    assert!(policy.lens.shell_tools.contains(&"Terminal".to_owned()));
    assert!(policy.lens.shell_tools.contains(&"Bash".to_owned()));
}

#[test]
fn unsafe_settings_are_said_and_load() {
    let manifest = "version: 1\nextends: [builtin]\ndurability: {fsync: false, verify: false}\n";
    let loaded = load(&[("policyd.yaml", manifest)]);
    assert!(loaded.policy.is_some());
    let codes: Vec<_> = loaded.diagnostics.iter().map(|it| it.code).collect();
    assert_eq!(codes, ["unsafe-setting", "unsafe-setting"]);
}

#[test]
fn the_caret_is_under_the_same_name_in_every_scalar_style() {
    for satisfied in [
        "todos.opn == 0",
        "'todos.opn == 0'",
        "\"todos.\\x6fpn == 0\"",
        ">-\n    true &&\n    todos.opn == 0",
        "|\n    true\n    && todos.opn == 0",
    ] {
        let loaded = load(&[("considerations.yaml", &format!("{RULE}  satisfied: {satisfied}\n"))]);
        let found: Vec<_> = loaded.diagnostics.iter().map(|it| it.span.text()).collect();
        assert!(matches!(found.as_slice(), ["opn" | "\\x6fpn"]), "{satisfied}: {found:?}");
    }
}

#[test]
fn hostile_packs_are_refused_quickly() {
    let deep = format!("- {}", "[".repeat(50_000));
    let many = format!("{RULE}  checker: generic\n").repeat(6_000);
    let long = format!("{RULE}  satisfied: \"{}\"\n", "true && ".repeat(3_000));
    let nested = format!("{RULE}  satisfied: \"{}true{}\"\n", "(".repeat(500), ")".repeat(500));
    for text in [deep, many, long, nested, "&a [*a, *a]".to_owned(), "x: &x {y: *x}".to_owned()] {
        let loaded = load(&[("considerations.yaml", &text)]);
        assert!(loaded.policy.is_none());
        assert!(!loaded.diagnostics.is_empty());
    }
}

#[test]
fn a_vocabulary_entry_can_replace_the_inherited_one() {
    let text = "commands:\n  test:\n    override: true\n    programs: [./check.sh]\n";
    let policy = sound(&[("vocabulary.yaml", text)]);
    let test = policy.lens.commands.iter().find(|it| it.name == "test").unwrap();
    assert_eq!(test.programs, ["./check.sh"]);
}

#[test]
fn a_consideration_can_say_its_own_words_over_a_named_checker() {
    let list = "- id: local_testing\n  override: true\n  details: my words\n  evidence: [\"seen: ${files.count}\"]\n";
    let policy = sound(&[("considerations.yaml", list)]);
    let changed = policy.considerations.iter().find(|it| it.id == "local_testing").unwrap();
    assert_eq!(changed.check.body.details.first().unwrap().text, "my words");
    assert_eq!(changed.check.body.evidence.len(), 1);
}

#[test]
fn an_id_of_more_than_128_characters_is_an_error() {
    let rule = |length: usize| {
        let id = "x".repeat(length);
        format!("- {{id: {id}, category: c, question: q, severity: warning, checker: generic}}\n")
    };
    let loaded = load(&[("considerations.yaml", &[rule(128), rule(129)].concat())]);
    let found: Vec<_> =
        loaded.diagnostics.iter().map(|it| (it.code, it.span.line_column().0)).collect();
    assert_eq!(found, [("limit-exceeded", 2)]);
}

#[test]
fn more_rules_than_anybody_writes_are_an_error() {
    let rule = |number| {
        format!(
            "- {{id: r{number}, category: c, question: q, severity: warning, checker: generic}}\n"
        )
    };
    let rules: String = (0..=policyd::limits::RULES_MAX).map(rule).collect();
    let loaded = load(&[("considerations.yaml", &rules)]);
    let codes: Vec<_> = loaded.diagnostics.iter().map(|it| it.code).collect();
    assert_eq!(codes, ["limit-exceeded"]);
}

const RENAMED: &str = "- {id: new, formerly: [old], category: C, question: Q?, severity: blocker, satisfied: files.count > 0}\n";

#[test]
fn an_earlier_id_means_the_renamed_entry() {
    let policy = sound(&[("considerations.yaml", RENAMED)]);
    assert_eq!(policy.rule_id("old"), Some("new"));
    assert_eq!(policy.rule_id("new"), Some("new"));
    assert_eq!(policy.rule_id("older"), None);
    let list = "- {id: philosophy_compliance, override: true, mode: warn, reason: x}\n";
    let policy =
        sound(&[("policyd.yaml", "version: 1\nname: mine\n"), ("considerations.yaml", list)]);
    let check = policy.considerations.iter().find(|it| it.id == "no_stubs").unwrap();
    assert_eq!(check.mode, Mode::Warn, "an override by the earlier id changes the entry");
    assert_eq!(policy.rule_id("philosophy_compliance"), Some("no_stubs"));
}

#[test]
fn an_entry_of_amplihack_keeps_its_own_id() {
    let list = "- {id: philosophy_compliance, category: C, question: Q?, description: D, severity: warning, \
                checker: _check_philosophy_compliance, enabled: true}\n";
    let policy = sound(&[("considerations.yaml", list)]);
    assert_eq!(policy.rule_id("no_stubs"), Some("philosophy_compliance"));
    let named = |id: &str| policy.considerations.iter().filter(|it| it.id == id).count();
    assert_eq!((named("philosophy_compliance"), named("no_stubs")), (1, 0));
}

#[test]
fn an_earlier_id_belongs_to_one_entry() {
    let manifest = ("policyd.yaml", "version: 1\nname: mine\n");
    let other = RENAMED.replace("id: new", "id: other");
    for (list, at) in [
        (format!("{RENAMED}{}", RENAMED.replace("id: new, formerly: [old]", "id: old")), "an id"),
        (format!("{RENAMED}{other}"), "an earlier id of another entry"),
        (RENAMED.replace("[old]", "[new]"), "its own id"),
        (RENAMED.replace("[old]", "[local_testing]"), "an inherited id"),
        (
            "- {id: no_stubs, override: true}\n- {id: philosophy_compliance, override: true}\n"
                .to_owned(),
            "one entry twice",
        ),
    ] {
        let loaded = load(&[manifest, ("considerations.yaml", &list)]);
        let codes: Vec<&str> = loaded.diagnostics.iter().map(|it| it.code).collect();
        assert!(codes.contains(&"duplicate-id"), "{at}: {codes:?}");
        assert!(loaded.policy.is_none(), "{at}");
    }
}

#[test]
fn an_override_of_a_check_that_moved_to_an_example_leaves_the_pack_valid() {
    let list = "- {id: presentation_needed, override: true, enabled: true, reason: x}\n";
    let files = [("policyd.yaml", "version: 1\nname: mine\n"), ("considerations.yaml", list)];
    let loaded = load(&files);
    let found = loaded.diagnostics.first().unwrap();
    assert_eq!((found.code, loaded.diagnostics.len()), ("unknown-name", 1));
    assert!(found.message.contains("strict-delivery"), "{}", found.message);
    assert!(loaded.policy.is_some());
}
