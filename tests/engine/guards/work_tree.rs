//! Guards that ask whether the git work tree is clean.

use std::time::Duration;

use super::machine::Machine;
use policyd::probe::git::NEUTRAL;
use policyd::world::CommandOutput;

const PROJECT: &str = "/home/dev/project";

const GUARD: &str = "- id: own
  commands: [git reset --hard, git checkout .]
  unless: program.tree_clean
  decision: deny
  on_error: ask
  message: Commit first.
";

/// A machine whose git answers this in this time.
fn machine(prints: &str, takes: u64) -> Machine {
    let machine = Machine::new(PROJECT);
    machine.guards(GUARD);
    let sets = "version: 1\nextends: [builtin]\nguard_sets: {destructive-commands: false}\n";
    machine.world.put("/home/dev/rules/policyd.yaml", sets);
    let output = |code, prints: &str| CommandOutput {
        code: Some(code),
        stdout: prints.as_bytes().to_vec(),
        ..CommandOutput::default()
    };
    // The repository defines no filter.
    let script = |question, output, takes| {
        let start = [&NEUTRAL[..], &[question]].concat();
        machine.world.script(&start, Ok(output), Duration::from_millis(takes));
    };
    script("config", output(1, ""), 5);
    script("status", output(0, prints), takes);
    machine
}

/// The folders that git was asked about for this line.
fn folders(machine: &Machine, line: &str) -> Vec<String> {
    machine.bash(line);
    let ran = machine.world.ran();
    let mut folders: Vec<String> = ran.iter().map(|it| it.folder.display().to_string()).collect();
    folders.dedup();
    folders
}

#[test]
fn a_guard_asks_git_in_the_folder_of_the_command() {
    for (line, folder) in [
        ("git reset --hard", PROJECT),
        ("cd sub && git reset --hard", "/home/dev/project/sub"),
        ("git -C /srv/x reset --hard", "/srv/x"),
        ("git -C sub -C ../b -c a=b checkout .", "/home/dev/project/b"),
        ("git fetch && git reset --hard origin/main", PROJECT),
    ] {
        assert_eq!(machine("", 10).bash(line).0, "", "{line}");
        assert_eq!(machine(" M a\n", 10).bash(line).0, "deny", "{line}");
        assert_eq!(folders(&machine("", 10), line), [folder], "{line}");
    }
}

#[test]
fn what_is_unknown_is_neither_clean_nor_changed() {
    for line in [
        "cd $X && git reset --hard",
        "git -C $X reset --hard",
        "git --git-dir=/x reset --hard",
        "GIT_WORK_TREE=/x git reset --hard",
        "mv b a && git reset --hard",
        "echo x > a && git reset --hard",
        "git stash pop && git reset --hard",
        "ssh host git reset --hard",
    ] {
        assert_eq!(machine("", 10).bash(line).0, "ask", "{line}");
        assert_eq!(folders(&machine("", 10), line), [""; 0], "{line}");
    }
    assert_eq!(machine("", 400).bash("git reset --hard").0, "ask", "git is too slow");
    let three = "git -C a reset --hard; git -C b reset --hard; git -C c reset --hard";
    assert_eq!(machine("", 140).bash(three).0, "ask", "together they are too slow");
    assert_eq!(machine("", 90).bash(three).0, "");
}

#[test]
fn git_is_not_asked_where_no_guard_looks() {
    for line in ["git status", "git reset HEAD a", "ls"] {
        assert_eq!(folders(&machine("", 10), line), [""; 0], "{line}");
    }
}
