//! What `policyd trust` shows before it asks: what a pack contains, and what changed since its user trusted it.

use policyd::world::Confirmation;
use policyd::world::fake::FakeWorld;

use crate::support::console::{Said, call};
use crate::support::machine::machine;

const PROJECT: &str = "/work/.policyd/policies";
const TELNET: &str =
    "- {id: no_telnet, commands: [telnet], decision: block, message: No telnet.}\n";

fn run(world: &FakeWorld, line: &str) -> Said {
    call(world, &line.split(' ').collect::<Vec<_>>(), b"")
}

fn put(world: &FakeWorld, guards: &str) {
    world.put(format!("{PROJECT}/policyd.yaml"), "version: 1\nextends: [builtin]\n");
    world.put(format!("{PROJECT}/guards.yaml"), guards);
}

/// The position of a line that begins with a text.
fn position(text: &str, start: &str) -> usize {
    text.lines().position(|it| it.starts_with(start)).unwrap_or_else(|| panic!("{start}: {text}"))
}

#[test]
fn the_first_time_weaker_rules_come_first_and_then_the_contents() {
    let world = machine();
    let weaker = "- {id: rm_recursive, override: true, decision: warn, reason: r}\n";
    put(&world, &format!("{TELNET}{weaker}"));
    let out = run(&world, "trust").out;
    let weaker = position(&out, "weaker   the built-in guard rm_recursive: block becomes warn");
    assert!(weaker < position(&out, "adds     1 guard: no_telnet"), "{out}");
    assert!(!out.contains("changed since"), "{out}");
}

#[test]
fn changes_since_the_last_trust_are_shown_before_the_question() {
    let world = machine();
    let others = "- {id: old, commands: [old], decision: ask, message: Old.}\n";
    put(&world, &format!("{TELNET}{others}"));
    assert_eq!(run(&world, "trust").code, 0);
    let softer = TELNET.replace("block", "ask");
    put(&world, &format!("{softer}- {{id: new, commands: [new], decision: ask, message: New.}}\n"));
    // A refusal keeps what is compared.
    world.set_confirmation(Confirmation::No);
    assert_eq!(run(&world, "trust").code, 1);
    world.set_confirmation(Confirmation::Yes);
    let said = run(&world, "trust");
    let out = &said.out;
    let diff = position(out, "  -- {id: no_telnet");
    let rules = [
        position(out, "removed  the guard old"),
        position(out, "weaker   the guard no_telnet: block becomes ask"),
        position(out, "added    the guard new: ask"),
    ];
    assert!(diff < rules[0] && rules.is_sorted(), "{out}");
    assert!(out.contains("changed since you trusted it at "), "{out}");
    let again = run(&world, "trust").out;
    assert!(again.contains("no file changed since you trusted the pack"), "{again}");
    assert_eq!(run(&world, "trust --revoke").code, 0);
    assert!(!run(&world, "trust").out.contains("you trusted"), "trust begins again");
}

#[test]
fn texts_with_control_characters_and_secrets_are_not_shown_as_they_are() {
    let world = machine();
    put(&world, TELNET);
    assert_eq!(run(&world, "trust").code, 0);
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    put(&world, &format!("{TELNET}# {secret}\n"));
    let out = run(&world, "trust").out;
    assert!(out.contains("changed since") && !out.contains(&secret), "{out}");
    let stored = world.files().into_iter().filter(|it| it.to_string_lossy().contains("/trusted/"));
    for path in stored {
        assert!(!String::from_utf8_lossy(&world.get(&path).unwrap()).contains(&secret));
    }
}
