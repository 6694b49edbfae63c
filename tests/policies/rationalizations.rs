//! Excuses and red flags: what is found in a text, what is not, and what is kept of it.

use policyd::evaluation::rationalization::{matches, sought};
use policyd::expr::pattern::compile_regex;
use policyd::policy::rationalizations::{EXCUSE, FAMILIES, Rationalizations, Row};
use policyd::policy::{Policy, builtin, load};
use policyd::world::fake::FakeWorld;
use serde_json::{Value, json};

use crate::support::{console, shared, snapshot};

fn policy() -> Policy {
    let pack = builtin::pack();
    load::load(&pack, &pack).policy.unwrap()
}

/// Names and sentences that a text holds.
fn found(table: &Rationalizations, text: &str) -> Vec<(String, String)> {
    matches(table, &sought(table), text)
        .into_iter()
        .map(|it| (it.entry.id.clone(), it.sentence))
        .collect()
}

#[test]
fn the_red_flags_of_the_seed_are_found() {
    let Some(cases) = shared::cases("loki_shipwright_cases.json") else { return };
    let policy = policy();
    let table = &policy.rationalizations;
    let sought = sought(table);
    let mut wrong = Vec::new();
    let cases: Vec<_> = cases.iter().filter(|it| it["kind"] == "red_flag").collect();
    for case in &cases {
        let text = case["input"].as_str().unwrap();
        let first = matches(table, &sought, text).into_iter().next();
        let told = first.map(|it| match it.entry.family.as_str() {
            EXCUSE => format!("{EXCUSE}:{}", it.entry.id),
            family => family.to_owned(),
        });
        println!("{} {told:?}", case["name"]);
        if json!(told) != case["expected"] {
            wrong.push(format!("{text}: {told:?}, and not {}", case["expected"]));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(cases.len() >= 10, "{}", cases.len());
}

#[test]
fn each_excuse_is_found_by_its_name() {
    let table = policy().rationalizations;
    for (text, name) in [
        ("I'll refactor later.", "refactor_later"),
        ("We can clean this up later", "refactor_later"),
        ("This is just an edge case", "edge_case"),
        ("The tests are flaky", "flaky_tests"),
        ("That is only a flaky test.", "flaky_tests"),
        ("It works on my machine", "works_on_my_machine"),
        ("This is a temporary workaround", "temporary_workaround"),
        ("The spec is unclear", "unclear_spec"),
        ("This is out of scope", "out_of_scope"),
        ("We can optimize later", "optimize_later"),
        ("Performance can be improved later.", "optimize_later"),
        ("This is good enough", "good_enough"),
        ("The error is benign", "benign_error"),
        ("Those warnings can be safely ignored.", "benign_error"),
        ("I already verified this", "already_verified"),
        ("I’ve already tested that.", "already_verified"),
        ("The documentation is outdated", "outdated_docs"),
        ("It should be fine.", "should_be_fine"),
        ("The failure is most likely unrelated", "most_likely"),
        ("That probably fixes it", "probably"),
        ("I think the bug is fixed", "i_think"),
        ("This is just a small change", "small_change"),
        ("A simple fix for the parser", "simple_fix"),
        ("It was a minor update.", "minor_update"),
        ("It took a quick tweak", "quick_tweak"),
        ("While I was at it, I renamed the module.", "scope_expanded"),
        ("I left out the error handling for now.", "scope_reduced"),
        ("I relaxed the requirement a little.", "reinterpreted"),
        ("I also added a dashboard as a nice-to-have.", "extra_features"),
        ("Adding a nice to have feature that is not in the spec", "extra_features"),
        ("Moving on to the next task without running the tests.", "next_without_tests"),
        ("Everything works perfectly.", "success_without_evidence"),
        ("The failing tests are unrelated to my change.", "dismissed_checks"),
        ("The other component handles this", "other_component"),
        ("I checked and it's fine", "checked_without_output"),
        ("The tests should pass now.", "tests_not_run"),
        ("It should also work on all older versions.", "untested_compatibility"),
        ("It should work now.", "asserted_behavior"),
        ("DONE.\n\n- THE TESTS ARE FLAKY", "flaky_tests"),
    ] {
        let found = found(&table, text);
        assert_eq!(found.first().map(|it| it.0.as_str()), Some(name), "{text}: {found:?}");
    }
}

#[test]
fn what_looks_like_an_excuse_is_none() {
    let table = policy().rationalizations;
    for text in [
        "",
        "The probability model returned 0.4",
        "All 42 tests pass: `cargo test` output above",
        "I renamed the test `the tests are flaky` to `retries`.",
        "```\nprobably, I think, should be fine\n```",
        "~~~text\nthe error is benign\n~~~\nDone.",
        "> The tests are flaky\n\nI looked into it: the clock was read twice.",
        "You said the tests are flaky; the cause was a shared port.",
        "The issue says the error is benign.",
        "The button now reads \"good enough\".",
        "It prints “should be fine” and exits.",
        "The flag 'out of scope' is gone.",
        "Do you think it should be fine?",
        "I think we are done, or do you want more (I think the docs are missing)?",
        "Is the spec unclear here?",
        "The tests are no longer flaky.",
        "I fixed the flaky tests.",
        "This is not good enough, so I rewrote it.",
        "The error is not benign: it loses data.",
        "I updated the README, which was outdated.",
        "I removed the temporary workaround.",
        "A temporary workaround is in place; the issue is #42.",
        "Nothing is out of scope any more.",
        "We thinking machines are improbable.",
        "The simplest fix took three lines.",
        "The scheduler handles this.",
        "An asynchronous test with 3 retries passed.",
    ] {
        assert_eq!(found(&table, text), [], "{text}");
    }
}

#[test]
fn every_entry_is_countered_and_its_words_turn_no_match_away() {
    let table = policy().rationalizations.into_inner();
    assert_eq!(table.entries.iter().filter(|it| it.entry.family == EXCUSE).count(), 12);
    for family in FAMILIES {
        assert!(table.entries.iter().any(|it| it.entry.family == *family), "{family}");
    }
    for row in &table.entries {
        let entry = &row.entry;
        assert!(!entry.wrong.is_empty() && !entry.action.is_empty(), "{}", entry.id);
        assert!(
            !row.words.split('\n').any(str::is_empty),
            "{}: any text would be searched",
            entry.id
        );
        for regex in entry.pattern.regexes.iter().chain(&entry.pattern.unless) {
            assert_eq!(compile_regex(regex).err(), None, "{regex}");
        }
    }
    for regex in &table.unless {
        assert_eq!(compile_regex(regex).err(), None, "{regex}");
    }
    assert!(table.words().lines().count() > 30);
    let everywhere = |it: &Row| Row { words: String::new(), ..it.clone() };
    let entries = table.entries.iter().map(everywhere).collect();
    let searched = Rationalizations { entries, ..table.clone() };
    assert_eq!(searched.words(), "\n", "any text is looked at");
    assert_eq!(Rationalizations::default().words(), "", "none is");
    for text in ["Refactoring this LATER", "that's a Benign Error", "works ON my laptop"] {
        assert_eq!(found(&table, text), found(&searched, text), "{text}");
    }
}

/// Runs the program on a machine.
fn run(world: &FakeWorld, arguments: &[&str], stdin: &str) -> (u8, String, String) {
    let said = console::call(world, arguments, stdin.as_bytes());
    (said.code, said.out, said.err)
}

#[test]
fn the_command_shows_what_is_found_and_why() {
    let world = FakeWorld::new();
    let mut told = String::new();
    for (arguments, stdin) in [
        (&["check", "I'll refactor later. The tests are flaky."] as &[&str], ""),
        (
            &["check", "--format", "compact", "-"],
            "Probably just a small change.\nIt should be fine.\n",
        ),
        (&["check", "--format", "json"], "The other component handles this."),
        (&["check"], "The probability model returned 0.4"),
    ] {
        let (code, stdout, stderr) =
            run(&world, &[&["rationalization"], arguments].concat(), stdin);
        told += &format!("$ policyd rationalization {}\n", arguments.join(" "));
        told += &format!("{stdout}{stderr}exit {code}\n\n");
    }
    snapshot("resilience", "rationalization__checked", told);
}

const LOG: &str = "/w/.policyd/memory/episodic/rationalizations.jsonl";

/// Stops after an edit with a last message; what was answered.
fn stop(world: &FakeWorld, said: &str, more: &[&str]) -> String {
    let edit = json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "t1",
        "name": "Write", "input": {"file_path": "/w/src/a.rs", "content": "fn a() {}"}}]}});
    let human = json!({"type": "user", "message": {"role": "user", "content": "Write a.rs"}});
    world.put("/w/t.jsonl", format!("{human}\n{edit}\n"));
    let payload = json!({"session_id": "s1", "cwd": "/w", "transcript_path": "/w/t.jsonl",
        "hook_event_name": "Stop", "last_assistant_message": said});
    run(world, &[&["eval", "--hook", "stop"], more].concat(), &payload.to_string()).1
}

fn machine() -> FakeWorld {
    let world = FakeWorld::new();
    world.put("/w/.git/HEAD", "ref: refs/heads/topic\n");
    world
}

#[test]
fn what_was_found_is_kept_and_nothing_else() {
    let world = machine();
    let quiet = stop(&world, "a.rs is written.", &[]);
    assert!(!quiet.contains("excuse") && world.get(LOG).is_none(), "{quiet}");
    // Another session: a second stop without a tool call is released.
    let world = machine();
    let secret = "sk-ant-api03-abcdefghijklmnopqrstuvwx";
    let answer = stop(&world, &format!("Done. The key {secret} should be fine."), &[]);
    assert!(answer.contains("should_be_fine"), "{answer}");
    let kept = String::from_utf8(world.get(LOG).unwrap()).unwrap();
    let kept: Value = serde_json::from_str(kept.trim()).unwrap();
    snapshot("resilience", "rationalization__kept", format!("{kept:#}"));
}

#[test]
fn a_dry_run_keeps_nothing_and_a_log_that_cannot_be_written_fails_nobody() {
    let world = machine();
    let dry = stop(&world, "It should be fine.", &["--dry-run"]);
    assert!(dry.contains("should_be_fine") && world.get(LOG).is_none(), "{dry}");
    world.put("/w/.policyd/memory/episodic", "a file in the place of the folder");
    let answer = stop(&world, "It should be fine.", &[]);
    assert!(answer.contains("should_be_fine"), "{answer}");
}
