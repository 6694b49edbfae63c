//! What a person reads in a terminal: lists of rules and facts, at 80 and 100 columns.

use std::collections::BTreeSet;

use policyd::world::fake::FakeWorld;
use serde_json::{Value, json};

use crate::support::console::{self, Said};
use crate::support::machine::{machine, packed};
use crate::support::snapshot;

fn at(columns: &str) -> FakeWorld {
    let world = machine();
    world.set_env("COLUMNS", columns);
    world
}

fn call(world: &FakeWorld, line: &str) -> Said {
    console::call(world, &line.split_whitespace().collect::<Vec<_>>(), b"")
}

/// Checks that no line is wider than the terminal, and that each word is also a word of the unwrapped output.
fn fits(line: &str, columns: &str) -> String {
    let shown = call(&at(columns), line);
    assert!(shown.code <= 1, "{line}: {shown:?}");
    let wide = machine();
    let whole = call(&wide, line).out;
    let words: BTreeSet<&str> = whole.split_whitespace().collect();
    for it in shown.out.lines() {
        let width = it.chars().count();
        assert!(width <= columns.parse().unwrap(), "{line} at {columns}: {width} columns\n{it}");
        let cut = it.ends_with('…');
        for word in it.split_whitespace().filter(|_| !cut) {
            assert!(words.contains(word), "{line} at {columns}: `{word}` is broken\n{it}");
        }
    }
    shown.out
}

#[test]
fn rules_and_facts_fit_the_terminal() {
    for columns in ["80", "100"] {
        for (line, name) in [
            ("rules", "views__rules"),
            ("rules secrets", "views__rules_secrets"),
            ("rules rm_recursive", "views__rules_rm_recursive"),
            ("rules local_testing", "views__rules_local_testing"),
            ("rules env_file_read", "views__rules_env_file_read"),
            ("facts", "views__facts"),
            ("facts files", "views__facts_files"),
            ("facts program", "views__facts_program"),
            ("facts action", "views__facts_action"),
            ("facts commands.last.outcome", "views__facts_commands_last_outcome"),
            ("facts event.failed", "views__facts_event_failed"),
            ("facts secret", "views__facts_secret"),
            ("facts task", "views__facts_task"),
        ] {
            let shown = fits(line, columns);
            if columns == "80" {
                snapshot("views", name, shown);
            }
        }
        fits("doctor", columns);
        fits("replay", columns);
    }
}

#[test]
fn every_list_says_that_it_is_empty() {
    let world = at("80");
    for (line, said) in [
        ("dlq list", "no dead-lettered tasks\n"),
        ("dlq list --in pending", "no pending tasks\n"),
        ("escalation list", "no open escalations\n"),
        ("escalation list --all", "no escalations\n"),
        ("breaker list", "no breakers\n"),
        ("signal list", "no pending signals\n"),
        ("state list", "no sessions\n"),
        ("diag tail", "no log entries\n"),
        ("diag failures", "no failures\n"),
        ("diag corruption", "no corrupt files\n"),
        ("diag retries", "no logged saves\n"),
        ("dlq list --format json", ""),
        ("breaker list --format compact", ""),
    ] {
        let called = call(&world, line);
        assert_eq!((called.code, called.out.as_str()), (0, said), "{line}: {}", called.err);
    }
}

#[test]
fn lines_of_lists_are_wrapped() {
    let world = at("80");
    let error = "the server answered with an error that is too long for one line of a terminal";
    let words = ["dlq", "add", "long-task", "--title", error, "--error", error];
    assert_eq!(console::call(&world, &words, b"").code, 0);
    let listed = call(&world, "dlq list --in all").out;
    assert!(listed.lines().count() > 1, "{listed}");
    assert!(listed.lines().all(|it| it.chars().count() <= 80), "{listed}");
}

#[test]
fn every_rule_has_a_page_with_an_example() {
    let world = at("80");
    let json = |line: &str| -> Value { serde_json::from_str(&call(&world, line).out).unwrap() };
    let list = json("rules --format json");
    let checks = list["rules"].as_array().unwrap().iter();
    let guards = list["guards"].as_array().unwrap().iter().filter(|it| it["set"] == "secrets");
    let (mut pages, mut without) = (0, Vec::new());
    for id in checks.step_by(6).chain(guards).map(|it| it["id"].as_str().unwrap()) {
        let page = json(&format!("rules {id} --format json"));
        assert_eq!(page["id"], id);
        assert!(page["soften"].as_str().unwrap().contains("override: true"), "{page:#}");
        pages += 1;
        if page["caught"] == json!([]) {
            without.push(id.to_owned());
        }
    }
    assert!(pages > 5 && without.is_empty(), "without an example: {without:?}");
}

#[test]
fn an_unknown_name_has_a_suggestion() {
    let world = at("80");
    for (line, help) in [
        ("rules rm_recursve", "did you mean `rm_recursive`?"),
        ("rules secrest", "did you mean `secrets`?"),
        ("facts files.cuont", "no fact matches `files.cuont`"),
        ("facts trancript", "did you mean `transcript`?"),
    ] {
        let said = call(&world, line);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{line}");
        assert!(said.err.contains(help), "{}", said.err);
    }
}

#[test]
fn the_page_of_a_softened_rule_names_its_file_and_the_commands() {
    let world = at("80");
    let entry = "- id: rm_recursive\n  override: true\n  decision: ask\n  reason: we know\n";
    packed(&world, "guards.yaml", entry);
    let page = call(&world, "rules rm_recursive").out;
    assert!(page.contains("ask (mode enforce)"), "{page}");
    assert!(page.contains("source      /pack/guards.yaml:1:7"), "{page}");
    assert!(page.contains("policyd rule off rm_recursive"), "{page}");
    // An entry that this pack adds can have no `override`.
    let own = "- id: no_deploy\n  commands: [deploy]\n  decision: block\n  message: No.\n";
    packed(&world, "guards.yaml", own);
    let page = call(&world, "rules no_deploy --format json").out;
    assert!(page.contains("decision: ask  #") && !page.contains("override"), "{page}");
}
