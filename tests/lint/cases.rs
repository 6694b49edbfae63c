//! What lint says of case files.

use policyd::lint::Profile;
use policyd::report::diagnostics::render_compact;

use crate::subjects::{consideration, look};

#[test]
fn a_case_lets_happen_what_clients_do() {
    let pack = |on: &str| {
        let rule = consideration("own", "  satisfied: todos.open == 0");
        let case = format!("- name: a\n  {on}\n  expect: {{decision: none}}\n");
        let files = [("considerations.yaml", rule.as_str()), ("tests/a.yaml", case.as_str())];
        render_compact(&look(&files, Profile::Default).findings)
    };
    for (on, said) in [
        ("on: {tool: Wirte, input: {file_path: a}}", "no client has a tool `Wirte`"),
        ("on: {tool: Rad, input: {file_path: a}}", "did you mean `Read`?"),
        ("on: {tool: Bash, input: {comand: ls}}", "no such tool accepts `comand`"),
        ("on: {command: crago test}", "unknown program or subcommand `crago`"),
        ("on: {event: stop, permission_mode: acceptedits}", "no client has the permission mode"),
        ("transcript: [{tool: read, input: {}}]", "no client has a tool `read`"),
        ("transcript: [{ran: git puhs}]", "unknown program or subcommand `puhs`"),
    ] {
        let told = pack(on);
        assert!(told.contains("PD714") && told.contains(said), "{on}: {told}");
    }
    let braces = "each: [{file: a.md}]\n  transcript: [{edit: \"{file}\"}]";
    assert!(pack(braces).contains("(write `{{file}}` there)"), "{}", pack(braces));
    for on in [
        "each: [{file: a.md}]\n  transcript: [{edit: \"{{file}}\", text: \"{x} ${file}\"}]",
        "on: {tool: mcp__a__b, input: {paths: a}}",
        "on: {tool: Write, input: {file_path: a}}",
        "on: {tool: SomethingNew, input: {x: a}}",
        "on: {command: cargo test}",
        "transcript: [{ran: ./check.sh}]",
    ] {
        let told = pack(on);
        assert!(!told.contains("PD714"), "{on}: {told}");
    }
}

#[test]
fn a_case_of_a_disabled_guard_is_no_mistake() {
    let case =
        "- name: a\n  on: {command: rm x}\n  expect: {guards: {own: fired}, decided_by: [own]}\n";
    let told = |guard: &str| {
        let files = [("guards.yaml", guard), ("tests/a.yaml", case)];
        render_compact(&look(&files, Profile::Default).findings)
    };
    let guard = "- {id: own, description: A, commands: [rm], decision: deny, reason: b";
    assert_eq!(told(&format!("{guard}, enabled: false}}\n")), "");
    let other = guard.replace("id: own", "id: another");
    assert!(told(&format!("{other}, enabled: false}}\n")).contains("unknown guard `own`"));
}

#[test]
fn a_case_file_says_what_it_means() {
    let rule = consideration("own", "  satisfied: todos.open == 0");
    let told = |cases: &str| {
        let files = [("considerations.yaml", rule.as_str()), ("tests/a.yaml", cases)];
        render_compact(&look(&files, Profile::Default).findings)
    };
    let case = |command: &str| {
        format!("- name: a\n  on:\n    command: {command}\n  expect: {{decision: none}}\n")
    };
    assert!(told("# - name: a\n").contains("is empty"));
    assert!(told(&case("gh issue close #12")).contains("PD031"));
    let said = case("ls").replace("{decision: none}", "\n    reason:\n      - ticket is #4711");
    assert!(told(&said).contains("PD031"));
    let file = format!("{}  given:\n    files:\n      a.md: see #12\n", case("ls"));
    assert!(told(&file).contains("PD031"));
    assert_eq!(told(&case("\"gh issue close #12\"")), "");
    assert_eq!(told(&case("ls").replace("{decision: none}", "\n    decision: none #ok")), "");
}

#[test]
fn a_mistake_in_a_case_shows_all_its_places() {
    let rule = consideration("own", "  satisfied: todos.open == 0");
    let case = "- name: a {file}\n  each: [{file: a.md}]\n  expect: {decision: none}\n";
    let files = [("considerations.yaml", rule.as_str()), ("tests/a.yaml", case)];
    let found = look(&files, Profile::Default).findings;
    let found = found.iter().find(|it| it.code == "broken-case").unwrap();
    let places: Vec<_> = found.related.iter().map(|(span, text)| (span.text(), &**text)).collect();
    assert_eq!(places, [("{file}", "single braces are text")]);
}

#[test]
fn a_guard_of_commands_is_silent_where_some_are_run() {
    let guard = "- id: own\n  commands: [git push]\n  decision: deny\n  message: No.\n";
    let told = |on: &str| {
        let fires =
            "- name: a\n  on: {command: git push}\n  expect: {guards: {own: fired}}\n".to_owned();
        let case = format!("{fires}- name: b\n  {on}\n  expect: {{guards: {{own: silent}}}}\n");
        let files = [("guards.yaml", guard), ("tests/a.yaml", case.as_str())];
        let all = render_compact(&look(&files, Profile::Strict).findings);
        all.lines().filter(|it| it.contains("PD701")).collect::<String>()
    };
    let edit = told("on: {tool: Write, input: {file_path: a}}");
    assert!(edit.contains("pass at a matching call"), "{edit}");
    assert_eq!(told("on: {command: git status}"), "");
    assert_eq!(told("on: {tool: shell, input: {command: git status}}"), "");
}

#[test]
fn a_guard_is_silent_where_it_looks() {
    let guard = "- id: own\n  tools: [Edit, Write, mcp__*]\n  when: action.changes([\"gen/**\"])\n  decision: deny\n  message: No.\n";
    let told = |on: &str| {
        let fires = "- name: a\n  on: {tool: Write, input: {file_path: gen/a}}\n  expect: {guards: {own: fired}}\n";
        let case = format!("{fires}- name: b\n  {on}\n  expect: {{guards: {{own: silent}}}}\n");
        let files = [("guards.yaml", guard), ("tests/a.yaml", case.as_str())];
        let all = render_compact(&look(&files, Profile::Strict).findings);
        all.lines().filter(|it| it.contains("PD701")).collect::<String>()
    };
    for on in [
        "on: {command: ls}",
        "on: {tool: Read, input: {file_path: gen/a}}",
        "on: {event: user_prompt_submit, said: hi}",
    ] {
        assert!(told(on).contains("pass at a matching call"), "{on}: {}", told(on));
    }
    for on in [
        "on: {tool: Write, input: {file_path: a}}",
        "on: {tool: mcp__a__b, input: {}}",
        "each: [{tool: Write}]\n  on: {tool: \"{{tool}}\", input: {file_path: a}}",
        "on: {fields: {tool_name: Write}, event: pre_tool_use}",
    ] {
        assert_eq!(told(on), "", "{on}");
    }
}

#[test]
fn programs_of_the_pack_and_breakers_are_spelt_alike_in_its_cases() {
    let guard = "- {id: own, commands: [deployctl], decision: deny, message: No.}\n";
    let told = |case: &str| {
        let files = [("guards.yaml", guard), ("tests/a.yaml", case)];
        render_compact(&look(&files, Profile::Default).findings)
    };
    let run = |line: &str| {
        format!("- {{name: a, on: {{command: {line}}}, expect: {{guards: {{own: silent}}}}}}\n")
    };
    let found = told(&run("deployclt prod"));
    assert!(found.contains("PD714") && found.contains("did you mean `deployctl`?"), "{found}");
    for line in ["deployctl prod", "make"] {
        assert_eq!(told(&run(line)), "", "{line}");
    }
    let breaker = |name: &str| {
        format!(
            "- {{name: a, given: {{breakers: {{{name}: open}}}}, expect: {{decision: none}}}}\n"
        )
    };
    let found = told(&breaker("api/claud"));
    assert!(found.contains("PD700") && found.contains("did you mean `api/claude`"), "{found}");
    assert_eq!(told(&breaker("api/claude")), "");
}
