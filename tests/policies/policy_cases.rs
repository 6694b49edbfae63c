//! `policyd test` on packs in memory: what it says of cases that pass, fail, are wrong or are not there.

use policyd::world::WorldError;
use policyd::world::fake::{FakeWorld, Op};
use serde_json::Value;

use crate::support::console::{self, Terminal};
use crate::support::snapshot;

/// A pack of two rules that needs no other one.
const PACK: &[(&str, &str)] = &[
    ("policyd.yaml", "version: 1\nextends: []\n"),
    ("vocabulary.yaml", "edit_tools: [Write]\nshell_tools: [Bash]\n"),
    ("session_types.yaml", "- {id: ANY, when: \"true\"}\n"),
    (
        "considerations.yaml",
        r#"
- id: small_change
  category: Size
  question: Is the change small?
  severity: blocker
  applicable_session_types: ["*"]
  satisfied: files.count <= 2 && !(commands.ran("git add -A") || commands.ran("git add ."))
  details:
    - when: files.count > 2
      text: ${files.count} files were edited
    - text: everything was added
- id: list_is_done
  category: Progress
  question: Are all todos done?
  severity: warning
  applicable_session_types: ["*"]
  when: todos.seen
  satisfied: todos.open == 0
"#,
    ),
    (
        "messages.yaml",
        "block_header: [{text: Not yet.}]\nblock_footer: [{text: Go on.}]\nwarning_header: [{text: \"Look:\"}]\nrelease: [{text: Let go.}]\nnot_saved: [{text: Not saved.}]\nsummary: [{text: Done.}]\n",
    ),
];

/// A machine with the pack in `/work/pack` and case files beside it.
fn machine(cases: &[(&str, &str)]) -> FakeWorld {
    let world = FakeWorld::new();
    for (file, text) in PACK {
        world.put(format!("pack/{file}"), text);
    }
    for (file, text) in cases {
        world.put(format!("pack/tests/{file}"), text);
    }
    world
}

/// Runs `policyd test pack` with more arguments: exit code, standard output and error.
fn run(world: &FakeWorld, more: &[&str]) -> (u8, String, String) {
    run_at(world, &[&["pack"], more].concat())
}

fn run_at(world: &FakeWorld, arguments: &[&str]) -> (u8, String, String) {
    let words = [&["test"], arguments].concat();
    let said = console::call_at(world, Terminal::TYPED, &words, b"");
    (said.code, said.out, said.err)
}

/// What is said of one case file is `snapshots/cases/<name>.snap`; the exit code is this.
fn check(name: &str, expected: u8, cases: &str, more: &[&str]) {
    let (code, out, err) = run(&machine(&[("a.yaml", cases)]), more);
    snapshot("cases", name, format!("exit {code}\n{out}\n---- said besides\n{err}"));
    assert_eq!(code, expected, "{out}{err}");
}

const PASSING: &str = r#"
- name: a small change
  transcript: [{edit: a.rs}]
  expect: {decision: none, considerations: {small_change: satisfied}}
- name: three files
  transcript: [{edit: "{{n}}.rs", times: 3}]
  expect: {decision: block, considerations: {small_change: {status: unsatisfied, details: 3 files were edited}}}
"#;

#[test]
fn cases_that_pass() {
    check("cases__passing", 0, PASSING, &[]);
}

#[test]
fn a_failure_shows_the_condition_with_its_values() {
    let cases = r#"
- name: two files are too many
  transcript:
    - edit: a.rs
    - edit: b.rs
  expect: {decision: block, considerations: {small_change: {status: unsatisfied, details: 2 files}}}
- name: everything was added, and that is fine
  transcript: [{ran: git add .}]
  steps:
    - expect: {decision: none}
    - {after: 2m, transcript: [{ran: ls}], expect: {reason: {equals: "Not yet.\n\nsomething else\n"}, state: {total_blocks: 7}}}
"#;
    check("cases__failing", 1, cases, &[]);
}

#[test]
fn what_passes_and_should_not_is_a_failure() {
    let cases = r#"
- name: a change that should be too large
  transcript: [{edit: a.rs}]
  expect: {considerations: {small_change: unsatisfied}}
"#;
    let (code, out, _) = run(&machine(&[("a.yaml", cases)]), &[]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("0 passed, 1 failed"), "{out}");
}

#[test]
fn what_is_not_there_cannot_be_expected() {
    for (event, wanted) in [
        // Nothing is judged at this event, so nothing has a status.
        ("on: pre_tool_use", "considerations: {small_change: skipped}"),
        ("on: {permission_mode: plan}", "considerations: {small_change: {details: {lacks: x}}}"),
        ("on: pre_tool_use", "effects: {logged: {spoken: false}}"),
    ] {
        let cases =
            format!("- name: x\n  {event}\n  transcript: [{{edit: a}}]\n  expect: {{{wanted}}}\n");
        let (code, out, _) = run(&machine(&[("a.yaml", &cases)]), &[]);
        assert_eq!(code, 1, "{wanted}: {out}");
        assert!(out.contains("no such value"), "{wanted}: {out}");
    }
}

#[test]
fn mistakes_in_cases_have_a_place_and_a_cure() {
    let cases = r#"
- name: an unknown rule
  expect: {considerations: {smal_change: satisfied}}
- name: an unknown key
  expct: {decision: none}
- name: an unknown verdict
  expect: {considerations: {small_change: satisfid}}
- name: an unknown event
  on: stopp
  expect: {decision: none}
- name: an unknown probe, breaker, voice and switch
  given:
    probes: {pr: {prints: x}}
    breakers: {probe/pr: open}
    pack: {voice: pirate, enable: [list_is_don]}
  expect: {effects: {probes: [pr]}, breakers: {probe/pr: closed}, preferences: {no_auto_merge: true}}
- name: nothing is expected
  expect: {}
- name: nothing is expected of a rule
  expect: {considerations: {small_change: {}}}
- name: a text that every text contains
  expect: {reason: ""}
- name: an unknown happening
  transcript: [{branch: x}, {user: x, prints: y}]
  expect: {decision: none}
- name: twice
  expect: {decision: none}
- name: twice
  expect: {decision: none}
- name: no expectation
- name: steps and an expectation
  expect: {decision: none}
  steps: [{expect: {decision: none}}]
- name: a regex that is none
  expect: {reason: {matches: "("}}
- name: no reason
  skip: ""
  expect: {decision: none}
- name: a session type that is none
  expect: {session_type: DEVELOPMENT}
"#;
    check("cases__mistakes", 1, cases, &[]);
}

#[test]
fn mistakes_in_values_of_each() {
    let cases = r#"
- name: an unknown value
  each: [{command: ls}]
  transcript: [{ran: "{{comand}}"}]
  expect: {decision: none}
- name: no values
  each: []
  expect: {decision: none}
- name: "{{command}} and one that is not used"
  each: [{command: ls, other: x}]
  expect: {decision: none}
"#;
    check("cases__mistakes_in_each", 1, cases, &[]);
}

#[test]
fn no_case_is_no_success() {
    check("cases__no_case_has_the_name", 1, PASSING, &["--filter", "large"]);
    let skipped = "- name: later\n  skip: not written yet\n  expect: {decision: block}\n";
    check("cases__all_skipped", 1, skipped, &[]);
    check("cases__empty_file", 1, "[]\n", &[]);
    let world = machine(&[]);
    let (code, _, said) = run(&world, &[]);
    assert_eq!((code, said.as_str()), (3, "policyd: no case file in pack/tests\n"));
    let (code, _, said) = run_at(&world, &["packs"]);
    assert_eq!(code, 3, "{said}");
}

#[test]
fn a_broken_pack_judges_nothing() {
    let world = machine(&[("a.yaml", PASSING)]);
    world.put(
        "pack/considerations.yaml",
        "- {id: x, category: X, question: X?, severity: warning, satisfied: file.count == 0}\n",
    );
    let (code, out, said) = run(&world, &[]);
    assert_eq!(code, 3, "{said}");
    assert!(out.contains("unknown fact `file`") && out.contains("pack is broken"), "{out}");
    assert_eq!(said, "");
}

#[test]
fn a_case_that_is_not_run_covers_nothing() {
    let of = |filter: &str| {
        let more = ["--coverage", "--format", "json", "--filter", filter];
        let (_, out, _) = run(&machine(&[("a.yaml", PASSING)]), &more);
        let results: serde_json::Value = serde_json::from_str(&out).unwrap();
        let rules = results["packs"][0]["coverage"]["rules"].as_array().unwrap().clone();
        let rule = rules.into_iter().find(|it| it["id"] == "small_change").unwrap();
        (rule["firing"].clone(), rule["silent"].clone())
    };
    assert_eq!(of("a"), (true.into(), true.into()));
    assert_eq!(of("small"), (false.into(), true.into()));
    assert_eq!(of("three"), (true.into(), false.into()));
}

#[test]
fn coverage_tells_what_no_case_reaches() {
    check("cases__coverage", 0, PASSING, &["--coverage"]);
    check("cases__threshold", 1, PASSING, &["--threshold", "90"]);
    let more = format!(
        "{PASSING}{}",
        r#"
- name: everything was added {{by}}
  each: [{by: git add .}, {by: git add -A}]
  transcript: [{ran: "{{by}}"}]
  expect: {considerations: {small_change: {status: unsatisfied, details: everything was added}}}
- name: a list that is {{state}}
  each: [{state: pending, verdict: warns}, {state: completed, verdict: satisfied}]
  transcript: [{todos: {write: "{{state}}"}}]
  expect: {considerations: {list_is_done: "{{verdict}}"}}
"#
    );
    let (code, out, _) = run(&machine(&[("a.yaml", &more)]), &["--threshold", "100"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("of 12 branches (100%)"), "{out}");
}

#[test]
fn what_a_rule_did_in_passing_does_not_count_as_its_case() {
    let cases = "- name: three files\n  transcript: [{edit: \"{{n}}\", times: 3}]\n  expect: {decision: block}\n";
    let (_, out, _) = run(&machine(&[("a.yaml", cases)]), &["--coverage", "--format", "json"]);
    let results: Value = serde_json::from_str(&out).unwrap();
    let rules = results["packs"][0]["coverage"]["rules"].as_array().unwrap();
    let rule = rules.iter().find(|it| it["id"] == "small_change").unwrap();
    assert_eq!((&rule["firing"], &rule["silent"]), (&false.into(), &false.into()));
}

#[test]
fn a_pack_that_extends_another_answers_for_its_own_rules() {
    let world = FakeWorld::new();
    world.put(
        "pack/considerations.yaml",
        "- {id: small, category: Size, question: Small?, severity: warning, satisfied: files.count < 3}\n- {id: ci_status, override: true, enabled: false}\n",
    );
    let cases = "- name: code without tests is held by the rule below\n  transcript: [{edit: a.rs}]\n  expect: {considerations: {small: satisfied, local_testing: blocks, ci_status: {status: skipped, why: disabled}}}\n";
    world.put("pack/tests/a.yaml", cases);
    let (code, out, said) = run(&world, &["--coverage"]);
    snapshot("cases", "cases__extending_pack", &out);
    assert_eq!(code, 0, "{out}{said}");
}

#[test]
fn results_for_programs() {
    let cases = format!(
        "{PASSING}- {{name: later, skip: not now, expect: {{decision: none}}}}\n- {{name: wrong <&>, expect: {{decision: block}}}}\n"
    );
    let world = machine(&[("a.yaml", &cases)]);
    let (code, json, _) = run(&world, &["--format", "json"]);
    let (_, junit, _) = run(&world, &["--format", "junit"]);
    assert_eq!(code, 1);
    snapshot("cases", "cases__as_json", json);
    snapshot("cases", "cases__as_junit", junit);
}

#[test]
fn snapshots_are_compared_and_written_when_that_is_asked_for() {
    let cases = "- name: A report!\n  transcript: [{edit: a.rs}]\n  expect: snapshot\n";
    let path = "pack/tests/snapshots/a__a_report.snap";
    let world = machine(&[("a.yaml", cases)]);
    let (code, out, _) = run(&world, &[]);
    assert!(code == 1 && out.contains("run with `--update`"), "{out}");
    assert_eq!(world.get(path), None, "nothing is written unasked");
    assert_eq!(run(&world, &["--update"]).0, 0);
    assert_eq!(run(&world, &[]).0, 0);
    let kept = String::from_utf8(world.get(path).unwrap()).unwrap();
    snapshot("cases", "cases__a_snapshot", &kept);
    world.put(path, kept.replace("Size", "Width"));
    let (code, out, _) = run(&world, &["--update=review"]);
    snapshot("cases", "cases__a_snapshot_that_differs", out);
    assert_eq!(code, 1, "what waits for a review is not accepted");
    assert_eq!(world.get(format!("{path}.new")), Some(kept.into_bytes()));
    assert_eq!(run(&world, &["--update"]).0, 0);
    assert_eq!(world.get(format!("{path}.new")), None, "it was accepted");
    let other = "pack/tests/snapshots/a__gone.snap";
    world.put(other, "x");
    let (_, out, _) = run(&world, &[]);
    assert!(out.contains("no case compares with tests/snapshots/a__gone.snap"), "{out}");
    let (_, out, _) = run(&world, &["--filter", "report"]);
    assert!(out.contains("a__gone.snap"), "every case was run: {out}");
    world.put(path, "another");
    world.refuse_always(Op::Write, ".snap", WorldError::Io("disk full".to_owned()));
    let (code, out, _) = run(&world, &["--update"]);
    assert!(code == 1 && out.contains("disk full"), "{out}");
}

#[test]
fn a_snapshot_is_the_same_wherever_the_pack_lies() {
    let cases = "- name: A report!\n  on: {event: stop}\n  transcript: [{edit: src/a.rs}]\n  expect: snapshot_json\n";
    let world = machine(&[("a.yaml", cases)]);
    assert_eq!(run(&world, &["--update"]).0, 0);
    let kept = world.get("pack/tests/snapshots/a__a_report.snap").unwrap();
    for folder in ["/elsewhere/pack", "src"] {
        let world = FakeWorld::new();
        for (file, text) in PACK.iter().chain(&[("tests/a.yaml", cases)]) {
            world.put(format!("{folder}/{file}"), text);
        }
        world.put(format!("{folder}/tests/snapshots/a__a_report.snap"), &kept);
        let (code, out, _) = run_at(&world, &[folder]);
        assert_eq!(code, 0, "{out}");
    }
}

#[test]
fn insta_reads_the_same_snapshots() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/policies/tests/snapshots");
    let (_, text) =
        policyd::policy::builtin::CASES.iter().find(|it| it.0.ends_with(".snap")).unwrap();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder);
    settings.set_prepend_module_to_snapshot(false);
    let content = policyd::cases::snapshot::read(text);
    settings.bind(|| insta::assert_snapshot!("session__a_whole_report", content));
}

#[test]
fn a_transcript_may_be_a_file_beside_the_case() {
    let cases = "- name: recorded\n  transcript: recorded/one.jsonl\n  expect: {considerations: {small_change: satisfied, list_is_done: warns}}\n";
    let world = machine(&[("a.yaml", cases)]);
    let (code, out, _) = run(&world, &[]);
    assert!(code == 1 && out.contains("recorded/one.jsonl: no such file"), "{out}");
    let record = r#"{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"TodoWrite","input":{"todos":[{"content":"x","status":"pending"}]}}]}}"#;
    world.put("pack/tests/recorded/one.jsonl", format!("{record}\n"));
    assert_eq!(run(&world, &[]), (0, "pack: 1 passed, 0 failed\n".to_owned(), String::new()));
}

#[test]
fn rules_see_what_is_told_in_short_form() {
    let happenings = r#"
    - {user: Add a parser, branch: parser}
    - {assistant: Well, usage: {input: 100, output: 20, cache_read: 3, cache_creation: 4}}
    - {edit: src/a.rs, text: "fn a() {}"}
    - {ran: ls x, prints: no such file, failed: true}
    - {todos: {write: completed, test: pending}}
    - {tool: Read, input: {file_path: /work/b}, result: text, times: 2}
    - {tool: Task, failed: true, result: "it failed"}
    - compacted: true
    - record: {type: user, uuid: u, message: {role: user, content: Go on}}
    - {usage: {input: 7}}
    - {tool: Bash, input: {command: sleep 9}, pending: true}
"#;
    let facts = [
        "session.branch == \"parser\"",
        "transcript.prompts == 2",
        "transcript.first_prompt == \"Add a parser\"",
        "transcript.last_prompt == \"Go on\"",
        "transcript.last_message == \"Well\"",
        "transcript.compactions == 1",
        "tokens.input == 107 && tokens.context == 7",
        "files.count == 1 && files.last_path == \"/work/src/a.rs\"",
        "commands.last(\"ls\").outcome == \"failed\"",
        "todos.open == 1 && todos.total == 2",
        "tools.count(\"Read\") == 2 && tools.count(\"Task\") == 1",
        "now.hour == 7 && event.kind == \"stop\"",
    ];
    let (mut rules, mut wanted) = (String::new(), String::new());
    for (at, fact) in facts.iter().enumerate() {
        let quoted = Value::from(*fact);
        rules.push_str(&format!("- {{id: fact_{at}, category: C, question: Q?, severity: warning, applicable_session_types: [\"*\"], satisfied: {quoted}}}\n"));
        wanted.push_str(&format!("      fact_{at}: satisfied\n"));
    }
    let cases = format!(
        "- name: told\n  given: {{now: \"2026-03-01T07:30:00Z\"}}\n  transcript:{happenings}  expect:\n    considerations:\n{wanted}"
    );
    let world = machine(&[("a.yaml", &cases)]);
    world.put("pack/considerations.yaml", rules);
    let (code, out, _) = run(&world, &[]);
    assert_eq!(code, 0, "{out}");
}

#[test]
fn what_a_case_changes_in_the_pack_ends_with_it() {
    let cases = r#"
- name: switched off, and on again in the next step
  transcript: [{ran: git add .}]
  steps:
    - given: {pack: {disable: [small_change]}}
      expect: {decision: none, considerations: {small_change: {status: skipped, why: disabled}}}
    - given: {pack: {enable: [small_change]}}
      expect: {decision: block, considerations: {small_change: blocks}}
- name: switched off
  given: {pack: {disable: [small_change]}}
  transcript: [{ran: git add .}]
  expect: {decision: none}
- name: as it is
  transcript: [{ran: git add .}]
  expect: {decision: block}
"#;
    let (code, out, _) = run(&machine(&[("a.yaml", cases)]), &[]);
    assert_eq!(code, 0, "{out}");
}

#[test]
fn a_case_says_which_guards_decided_and_what_became_of_the_input() {
    let guards = "- {id: clean, tools: [Bash], commands: [npm install], updated_input: {command: npm ci}}\n\
                  - {id: never, commands: [git push], decision: deny, message: Never.}\n\
                  - {id: asked, commands: [git], decision: ask, message: Sure?}\n";
    let cases = r#"
- name: the input is another one
  on: {command: npm install}
  expect: {decision: allow, updated_input: {command: npm ci}}
- name: the strictest decides
  on: {command: git push}
  expect: {decision: block, decided_by: [never], updated_input: none}
- name: without it the other one does
  given: {pack: {disable: [never]}}
  on: {command: git push}
  expect: {decision: ask, decided_by: [asked]}
- name: it is there again, and denies as it says itself
  on: {command: git push}
  expect: {decision: deny, decided_by: [never]}
- name: nobody decides
  on: {command: ls}
  expect: {decision: none, decided_by: []}
"#;
    let told = |cases: &str| {
        let world = machine(&[("a.yaml", cases)]);
        world.put("pack/guards.yaml", guards);
        run(&world, &[])
    };
    let (code, out, error) = told(cases);
    assert!(code == 0 && out.contains("5 passed, 0 failed"), "{out}{error}");
    for (expectation, said) in [
        ("{updated_input: {command: npm install}}", "updated_input.command: not as wanted"),
        ("{updated_input: {comand: npm ci}}", "updated_input.comand: wanted npm ci"),
        ("{updated_input: none}", "updated_input: wanted none"),
        ("{decided_by: [never]}", "decided_by: wanted never, got clean"),
        ("{decided_by: [nevr]}", "unknown guard `nevr`"),
    ] {
        let case = format!("- name: a\n  on: {{command: npm install}}\n  expect: {expectation}\n");
        let (code, out, error) = told(&case);
        assert!(code == 1 && format!("{out}{error}").contains(said), "{expectation}: {out}{error}");
    }
}

#[test]
fn what_nobody_hears_is_a_mistake() {
    for (case, said) in [
        (
            "on: {event: stop, command: make}\n  expect: {decision: none}",
            "`command` is not supported by",
        ),
        (
            "on: {event: stop, said: hello}\n  expect: {decision: none}",
            "`said` is not supported by",
        ),
        (
            "on: {tool: Write, command: make}\n  expect: {decision: none}",
            "for the tool `Bash` only",
        ),
        ("expect: {reason: {matches: \".*\"}}", "true for every text"),
    ] {
        let case = format!("- name: a\n  {case}\n");
        let (code, out, error) = run(&machine(&[("a.yaml", &case)]), &[]);
        assert!(code == 1 && out.contains(said), "{case}: {out}{error}");
    }
    for expect in ["{reason: {matches: '^$'}}", "{reason: {matches: '^[^!]*$'}}"] {
        let case = format!("- name: a\n  expect: {expect}\n");
        let (code, out, error) = run(&machine(&[("a.yaml", &case)]), &[]);
        assert_eq!(code, 0, "{expect}: {out}{error}");
    }
    for on in [
        "{event: post_tool_use, command: make}",
        "{tool: PowerShell, command: make}",
        "{event: user_prompt_submit, said: hello}",
    ] {
        let case = format!("- name: a\n  on: {on}\n  expect: {{decision: none}}\n");
        let (code, out, error) = run(&machine(&[("a.yaml", &case)]), &[]);
        assert_eq!(code, 0, "{on}: {out}{error}");
    }
}

#[test]
fn nothing_of_the_machine_is_touched() {
    let world = machine(&[("a.yaml", PASSING)]);
    world.clear_log();
    let (code, out, _) = run(&world, &["--coverage"]);
    assert_eq!(code, 0, "{out}");
    let log = world.log();
    let foreign = log.iter().filter(|it| !it.starts_with("read ") && !it.starts_with("list "));
    assert_eq!(foreign.collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(world.ran(), []);
}

#[test]
fn a_pack_is_named_by_its_folder_its_tests_or_one_of_its_case_files() {
    let world = machine(&[("a.yaml", PASSING), ("b.yaml", PASSING)]);
    for (paths, passed) in [
        (&["pack"][..], 4),
        (&["pack/tests"], 4),
        (&["pack/tests/b.yaml"], 2),
        (&["pack/tests/b.yaml", "pack/tests/a.yaml"], 4),
        (&["pack/tests/b.yaml", "pack"], 4),
    ] {
        let expected = format!("pack: {passed} passed, 0 failed\n");
        assert_eq!(run_at(&world, paths), (0, expected, String::new()), "{paths:?}");
    }
}

#[test]
fn a_case_says_which_breakers_tripped() {
    let rule = "- {id: up, category: Own, question: Up?, severity: warning, applicable_session_types: [\"*\"], satisfied: '!breakers[\"api/claude\"].open'}\n";
    let cases = r#"
- name: closed
  transcript: [{edit: a.rs}]
  expect: {considerations: {up: satisfied}, breakers: {api/claude: closed}}
- name: tripped
  given: {breakers: {api/claude: open}}
  transcript: [{edit: a.rs}]
  expect: {considerations: {up: warns}, breakers: {api/claude: open}}
"#;
    let world = machine(&[("a.yaml", cases)]);
    world.put("pack/considerations.yaml", rule);
    let (code, out, _) = run(&world, &[]);
    assert_eq!(code, 0, "{out}");
    let typo = cases.replace("{breakers: {api/claude: open}}", "{breakers: {api/claud: open}}");
    let (code, out, said) = run(&machine(&[("a.yaml", &typo)]), &[]);
    assert!(code != 0 && format!("{out}{said}").contains("api/claud"), "{out}{said}");
}
