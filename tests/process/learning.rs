//! `policyd learn`: which files it writes, what it keeps, and what it refuses.

use policyd::world::fake::{FakeWorld, Op};
use policyd::world::{Confirmation, WorldError};

use crate::support::console::{Said, call};
use crate::support::machine::machine;

const USER: &str = "/home/me/.config/policyd/policies";
const PROJECT: &str = "/work/.policyd/policies";

fn run(world: &FakeWorld, words: &[&str]) -> Said {
    call(world, words, b"")
}

fn learn(world: &FakeWorld, kind: &str, command: &str) -> Said {
    run(world, &["learn", kind, command])
}

fn text(world: &FakeWorld, path: &str) -> String {
    String::from_utf8(world.get(path).unwrap_or_else(|| panic!("{path}"))).unwrap()
}

/// Lint accepts the pack that is used, and its cases pass.
fn assert_sound(world: &FakeWorld) {
    for words in [["lint"], ["test"]] {
        let said = run(world, &words);
        assert_eq!(said.code, 0, "{words:?}: {}{}", said.out, said.err);
    }
}

#[test]
fn without_a_pack_the_users_pack_learns_and_proves_it() {
    let world = machine();
    let said = learn(&world, "test", "bin/qualify --all");
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    assert!(said.out.contains(&format!("wrote {USER}/vocabulary.yaml")), "{}", said.out);
    assert_eq!(
        text(&world, &format!("{USER}/vocabulary.yaml")),
        "commands:\n  test:\n    programs: [qualify --all]\n"
    );
    assert!(text(&world, &format!("{USER}/tests/learned.yaml")).contains("classes: [test]"));
    assert_sound(&world);
    let before = world.files().len();
    let again = learn(&world, "test", "bin/qualify --all");
    assert_eq!(again.out, "`bin/qualify --all` is a test command already\n");
    assert_eq!(world.files().len(), before, "nothing changes");
    assert_eq!(learn(&world, "lint", "./check.sh").code, 0);
    assert_eq!(
        text(&world, &format!("{USER}/vocabulary.yaml")),
        "commands:\n  test:\n    programs: [qualify --all]\n  lint:\n    programs: [check.sh]\n"
    );
    assert_sound(&world);
    assert!(!run(&world, &["test"]).out.contains("0 passed"));
}

#[test]
fn a_trusted_pack_of_the_project_learns_and_stays_trusted() {
    let world = machine();
    assert_eq!(run(&world, &["init"]).code, 0);
    let own = "# Our commands.\ncommands:\n  test:\n    programs:\n      - just ci  # slow\n";
    world.put(format!("{PROJECT}/vocabulary.yaml"), own);
    assert_eq!(run(&world, &["trust"]).code, 0);
    let said = learn(&world, "test", "bin/qualify");
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    assert_eq!(
        text(&world, &format!("{PROJECT}/vocabulary.yaml")),
        format!("{own}      - qualify\n")
    );
    assert!(world.get(format!("{USER}/vocabulary.yaml")).is_none());
    assert!(run(&world, &["trust", "--list"]).out.trim_end().ends_with("trusted"));
    let said = run(&world, &["lint"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(text(&world, &format!("{PROJECT}/tests/learned.yaml")).contains("classes: [test]"));
}

#[test]
fn what_cannot_be_learned_is_refused_with_the_fix() {
    for (kind, command, code, fix) in [
        ("tests", "bin/qualify", 2, "did you mean `test`?"),
        ("test", "cd a && bin/qualify", 2, "name the command of one program"),
        ("test", "bin/qualify '*.py'", 2, "words that always follow it"),
        ("test", "", 2, "name the command of one program"),
    ] {
        let world = machine();
        let said = learn(&world, kind, command);
        assert!(said.err.contains(fix), "{command}: {}", said.err);
        assert_eq!(said.code, code, "{command}");
        assert!(world.get(format!("{USER}/vocabulary.yaml")).is_none(), "{command}");
    }
}

#[test]
fn packs_that_are_untrusted_or_invalid_are_not_changed() {
    let world = machine();
    world.put(format!("{PROJECT}/vocabulary.yaml"), "main_branches: [dev]\n");
    let said = learn(&world, "test", "bin/qualify");
    assert!(said.err.contains("policyd trust"), "{}", said.err);
    let world = machine();
    world.put(format!("{USER}/vocabulary.yaml"), "commandz: {}\n");
    let said = learn(&world, "test", "bin/qualify");
    assert!(said.err.contains("policyd lint"), "{}", said.err);
    assert_eq!(text(&world, &format!("{USER}/vocabulary.yaml")), "commandz: {}\n");
    let world = machine();
    let excepted = "commands:\n  test:\n    except: [qualify]\n";
    world.put(format!("{USER}/vocabulary.yaml"), excepted);
    let said = learn(&world, "test", "bin/qualify");
    assert!(said.err.contains("add these lines"), "{}", said.err);
    assert_eq!(text(&world, &format!("{USER}/vocabulary.yaml")), excepted);
}

#[test]
fn a_file_that_cannot_be_written_and_a_user_who_declines_change_nothing() {
    let world = machine();
    world.refuse_always(
        Op::Write,
        "vocabulary.yaml",
        WorldError::Io("permission denied".to_owned()),
    );
    let said = learn(&world, "test", "bin/qualify");
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(said.err.contains("permission denied") && said.err.contains("help: "), "{}", said.err);
    let world = machine();
    world.set_confirmation(Confirmation::No);
    let said = learn(&world, "test", "bin/qualify");
    assert!(said.err.contains("count `bin/qualify` as a test command"), "{}", said.err);
    assert!(world.get(format!("{USER}/vocabulary.yaml")).is_none());
}
