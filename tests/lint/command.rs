//! `policyd lint` as a command, on a machine in memory: what it writes, what it leaves, how it ends.

use policyd::world::WorldError;
use policyd::world::fake::{FakeWorld, Op};

use crate::subjects::consideration;
use crate::support::console::{self, Terminal};

/// Exit code, standard output and error.
fn lint(world: &FakeWorld, arguments: &[&str]) -> (u8, String, String) {
    lint_on(world, false, arguments)
}

/// The same where the output is a terminal.
fn lint_on(world: &FakeWorld, terminal: bool, arguments: &[&str]) -> (u8, String, String) {
    let at = Terminal { typed: true, shown: terminal };
    let said = console::call_at(world, at, &[&["lint"], arguments].concat(), b"");
    (said.code, said.out, said.err)
}

const MIXED: &str = "  satisfied: todos.seen || files.count == 0 && tools.total > 1";
const MENDED: &str = "  satisfied: todos.seen || (files.count == 0 && tools.total > 1)";

/// Two packs with one mendable finding each.
fn two_packs() -> FakeWorld {
    let world = FakeWorld::new();
    for (pack, id) in [("one", "a"), ("two", "b")] {
        world.put(format!("packs/{pack}/considerations.yaml"), consideration(id, MIXED));
    }
    world
}

fn text(world: &FakeWorld, path: &str) -> String {
    String::from_utf8(world.get(path).unwrap()).unwrap()
}

#[test]
fn policies_that_nobody_reads_are_told() {
    let world = FakeWorld::new();
    let rule = consideration("a", "  satisfied: todos.open == 0");
    world.put("pack/considerations.yaml", rule.clone());
    world.put("pack/team/considerations.yaml", rule.clone());
    world.put("pack/test/cases.yaml", "[]\n");
    world.put("pack/guards/npm.yaml", "- id: own\n  commands: [npm publish]\n  decision: deny\n");
    world.put("pack/deploy/values.yaml", "- id: own\n  replicas: 2\n");
    // Cases, a pack of its own and what is no YAML are where they should be.
    world.put("pack/tests/below/a.yaml", "- {name: a, expect: {decision: none}}\n");
    world.put("pack/other/policyd.yaml", "version: 1\n");
    world.put("pack/.git/x.yaml", "x\n");
    world.put("pack/docs/README.md", "Read me.\n");
    for arguments in [["pack"], ["pack/considerations.yaml"]] {
        let (_, told, _) = lint(&world, &[&arguments[..], &["--format", "compact"]].concat());
        let told: Vec<&str> = told.lines().filter(|it| it.contains("PD026")).collect();
        let [rules, one, other] = told.as_slice() else { panic!("{told:?}") };
        assert!(rules.starts_with("pack/guards/npm.yaml:1:1: warning[PD026]"), "{rules}");
        assert!(one.starts_with("pack/team/considerations.yaml:1:1: warning[PD026]"), "{one}");
        assert!(other.starts_with("pack/test/cases.yaml:1:1: warning[PD026]"), "{other}");
    }
}

#[test]
fn fixes_are_written_and_nothing_is_left_to_mend() {
    let world = two_packs();
    let (code, _, told) = lint(&world, &["packs", "--fix"]);
    assert_eq!((code, told.contains("fixes applied: 2")), (0, true), "{told}");
    for (pack, id) in [("one", "a"), ("two", "b")] {
        let path = format!("packs/{pack}/considerations.yaml");
        assert_eq!(text(&world, &path), consideration(id, MENDED));
    }
    let (_, _, told) = lint(&world, &["packs", "--fix"]);
    assert!(told.contains("fixes applied: 0"), "{told}");
}

#[test]
fn a_difference_is_shown_and_nothing_is_written() {
    let world = two_packs();
    let (code, shown, _) = lint(&world, &["packs", "--diff"]);
    assert_eq!(code, 1);
    assert!(
        shown.contains(&format!("-{MIXED}")) && shown.contains(&format!("+{MENDED}")),
        "{shown}"
    );
    assert_eq!(text(&world, "packs/one/considerations.yaml"), consideration("a", MIXED));
}

#[test]
fn a_mistake_behind_a_mended_one_takes_no_fix_back() {
    let world = FakeWorld::new();
    let rule =
        |id: &str, satisfied: &str| consideration(id, &format!("  satisfied: '{satisfied}'"));
    let both = |one: &str, two: &str| format!("{}{}", rule("a", one), rule("b", two));
    let hidden = "event.tool == \"bahs\"";
    let file = "packs/one/considerations.yaml";
    world.put(file, both(&format!("filez.count == 1 && {hidden}"), "filez.count == 2"));
    let (_, _, told) = lint(&world, &["packs", "--fix=all"]);
    assert_eq!(told, "policyd: fixes applied: 3\n");
    assert_eq!(
        text(&world, file),
        both("files.count == 1 && event.tool == \"Bash\"", "files.count == 2")
    );
    // An error of syntax hides two others.
    world.put(file, rule("a", "filez.count = 1 and todoz.open == 2"));
    let (_, _, told) = lint(&world, &["packs", "--fix=all"]);
    assert_eq!(told, "policyd: fixes applied: 4\n");
    assert_eq!(text(&world, file), rule("a", "files.count == 1 && todos.open == 2"));
    // What has no fix is still there, and counts.
    world.put(file, rule("a", "nonsense.count == 1"));
    let (code, shown, told) = lint(&world, &["packs", "--diff"]);
    assert_eq!((code, shown.as_str()), (1, ""), "{told}");
    assert_eq!(lint(&world, &["packs", "--diff", "--format", "json"]).0, 2);
}

#[test]
fn a_file_that_cannot_be_written_keeps_no_other_from_being_mended() {
    let world = two_packs();
    let refused = WorldError::Io("read-only".to_owned());
    world.refuse_always(Op::Write, "one/considerations.yaml", refused);
    let (code, _, told) = lint(&world, &["packs", "--fix"]);
    assert_eq!((code, told.contains("fixes applied: 1")), (1, true), "{told}");
    assert!(told.contains("one/considerations.yaml: read-only"), "{told}");
    assert_eq!(text(&world, "packs/one/considerations.yaml"), consideration("a", MIXED));
    assert_eq!(text(&world, "packs/two/considerations.yaml"), consideration("b", MENDED));
}

#[test]
fn a_baseline_lets_old_findings_be_and_counts_new_ones() {
    let world = two_packs();
    assert_eq!(lint(&world, &["packs"]).0, 1);
    assert_eq!(lint(&world, &["packs", "--write-baseline", "packs/base.json"]).0, 0);
    let (code, shown, _) = lint(&world, &["packs", "--baseline", "packs/base.json"]);
    assert_eq!((code, shown.contains("2 in the baseline")), (0, true), "{shown}");
    // Also where the pack is named by a file of it.
    assert_eq!(
        lint(
            &world,
            &["packs/one/considerations.yaml", "packs/two", "--baseline", "packs/base.json"]
        )
        .0,
        0
    );
    world.put("packs/two/considerations.yaml", consideration("b", "  satisfied: files.count >= 0"));
    assert_eq!(lint(&world, &["packs", "--baseline", "packs/base.json"]).0, 1);
    // What keeps a pack from loading is never let be.
    world.put("packs/two/considerations.yaml", consideration("b", "  satisfied: todo.open == 0"));
    let (code, _, told) = lint(&world, &["packs", "--write-baseline", "packs/base.json"]);
    assert_eq!((code, told.contains("keep a pack from loading: 1")), (1, true), "{told}");
}

#[test]
fn exit_codes_tell_clean_found_and_not_done() {
    let world = two_packs();
    world.put("clean/considerations.yaml", consideration("c", "  satisfied: todos.open == 0"));
    world.put_folder("empty");
    for (arguments, expected) in [
        (&["clean"][..], 0),
        (&["packs"], 1),
        (&["packs", "--fail-level", "error"], 0),
        (&["packs/one", "packs/one/considerations.yaml"], 1),
        (&["empty"], 3),
        (&["nowhere"], 3),
        (&["clean", "--baseline", "nowhere.json"], 3),
        (&["--explain", "PD9999"], 2),
        (&["--explain", "mixed-operators"], 0),
    ] {
        let (code, shown, told) = lint(&world, arguments);
        assert_eq!(code, expected, "{arguments:?}: {shown}{told}");
    }
    let (_, shown, _) = lint(&world, &["packs/one", "packs/one/considerations.yaml"]);
    assert!(shown.contains("1 file, 0 errors, 1 warning"), "a pack named twice is one: {shown}");
}

#[test]
fn a_pack_that_is_named_twice_is_looked_at_once() {
    let world = two_packs();
    world.put("packs/one/tests/cases.yaml", b"\xff");
    world.put("packs/one/checkers.yaml", b"\xff");
    let (code, once, told) = lint(&world, &["packs"]);
    assert_eq!(code, 1);
    assert_eq!(
        told,
        "policyd: packs/one/checkers.yaml: is not UTF-8 text\n\
         policyd: packs/one/tests/cases.yaml: is not UTF-8 text\n"
    );
    let (_, again, told) = lint(&world, &["packs", "packs/one"]);
    assert_eq!(again.lines().next(), once.lines().next());
    assert_eq!(told.matches("is not UTF-8 text").count(), 2, "{told}");
}

#[test]
fn no_message_repeats_a_credential() {
    let world = FakeWorld::new();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let rule = consideration("a", &format!("  satisfied: 'session.type == \"{token}\"'"));
    world.put("packs/one/considerations.yaml", rule);
    for format in ["text", "compact", "json", "github", "sarif", "junit"] {
        let (code, shown, _) = lint(&world, &["packs", "--format", format]);
        assert_eq!((code, shown.contains(&token)), (1, false), "{format}: {shown}");
    }
    let beside =
        format!("  satisfied: session.branch.lower() == \"Main\"\n  guidance: Use {token}.");
    world.put("packs/one/considerations.yaml", consideration("a", &beside));
    let (_, shown, _) = lint(&world, &["packs", "--fix=all", "--diff"]);
    assert!(shown.contains("+  satisfied: session.branch.lower() == \"main\""), "{shown}");
    assert!(shown.contains("guidance: Use «masked»") && !shown.contains(&token), "{shown}");
}

#[test]
fn colours_are_for_terminals_that_know_them() {
    let world = two_packs();
    let colours = |terminal: bool| lint_on(&world, terminal, &["packs"]).1.contains('\u{1b}');
    assert!(!colours(false) && colours(true));
    for (name, value) in [("TERM", "dumb"), ("NO_COLOR", "1")] {
        world.set_env("TERM", "xterm");
        world.set_env(name, value);
        assert!(!colours(true), "{name}");
    }
}
