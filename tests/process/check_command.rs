//! `policyd check`: what it prints, what it reads, that it changes nothing, and which other commands lead to it.

use std::collections::BTreeMap;

use policyd::world::fake::FakeWorld;
use serde_json::Value;

use crate::support::console::{Said, Terminal, call, call_at};
use crate::support::machine::{machine, packed};

const HINT: &str = "policyd check 'rm -rf ~'";

fn check(world: &FakeWorld, words: &[&str]) -> Said {
    let words: Vec<&str> = ["check"].iter().chain(words).copied().collect();
    call_at(world, Terminal::TYPED, &words, b"")
}

fn files(world: &FakeWorld) -> BTreeMap<String, Vec<u8>> {
    let files = world.files().into_iter();
    files.map(|it| (it.display().to_string(), world.get(&it).unwrap())).collect()
}

#[test]
fn a_line_is_decided_with_the_texts_of_its_readers() {
    let world = machine();
    let said = check(&world, &["X=rm; sudo $X -rf /"]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    for text in [
        "decision: block",
        "block  rm_recursive  built-in  builtin/destructive-commands.yaml:",
        "The agent reads\n  `rm -rf /` deletes directories",
        "You read\n  policyd blocked `X=rm; sudo $X -rf /`",
        "policyd allow --call CODE",
        "policyd rules rm_recursive",
    ] {
        assert!(said.out.contains(text), "{text}: {}", said.out);
    }
    let asked = check(&world, &["git push origin main"]);
    assert_eq!(asked.code, 0, "{}", asked.out);
    assert!(asked.out.contains("You are asked\n  "), "{}", asked.out);
    let passed = check(&world, &["ls"]);
    assert_eq!(passed.code, 0);
    assert!(passed.out.starts_with("decision: none (") && passed.out.contains("none fired"));
}

#[test]
fn several_words_are_one_line_and_several_lines_are_a_table() {
    let world = machine();
    assert_eq!(check(&world, &["rm", "--", "-rf", "/"]).code, 1);
    world.put("/work/lines", "rm -rf ~\n\n# a comment\nls\ngit push origin main\n");
    let said = check(&world, &["--lines", "lines"]);
    assert_eq!(said.code, 1);
    assert_eq!(
        said.out,
        "block  rm_recursive  rm -rf ~\nnone                 ls\nask    push_to_main  git push origin main\n\n\
         3 calls: 1 block, 1 none, 1 ask\n"
    );
    let piped = call(&world, &["check"], b"rm -rf ~\nls\n");
    assert!(piped.out.ends_with("2 calls: 1 block, 1 none\n"), "{}", piped.out);
    let compact = check(&world, &["--lines", "lines", "--format", "compact"]).out;
    assert!(compact.contains("block rm_recursive rm -rf ~\n"), "{compact}");
    for format in [&["--json"][..], &["--format", "json"]] {
        let json = check(&world, &[&["--lines", "lines"], format].concat()).out;
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["calls"][0]["decision"], "block", "{json}");
        assert_eq!(json["calls"][0]["rules"][0]["layer"], "built-in", "{json}");
        assert_eq!(json["calls"][1]["rules"].as_array().unwrap().len(), 0, "{json}");
    }
}

#[test]
fn other_tools_and_directories_are_read() {
    let world = machine();
    for (words, rule) in [
        (&["--tool", "read", "~/.ssh/id_rsa"][..], "key_file"),
        (&["--tool", "Write", ".env"], "env_file_written"),
        (&["--tool", "run_shell_command", "--client", "gemini", "rm -rf ~"], "rm_recursive"),
    ] {
        let said = check(&world, words);
        assert!(said.out.contains(rule), "{words:?}: {}{}", said.out, said.err);
    }
    world
        .put("/work/call.json", r#"{"file_path": "/work/.claude/settings.json", "content": "{}"}"#);
    let said = check(&world, &["--tool", "Write", "--input", "call.json"]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.out.contains("hooks_unregistered"), "{}", said.out);
    world.put("/other/.git/HEAD", "ref: refs/heads/main\n");
    let inside = check(&world, &["rm -rf /other/build"]);
    let there = check(&world, &["--cwd", "/other", "rm -rf /other/build"]);
    assert_eq!((inside.code, there.code), (1, 0), "{}{}", inside.out, there.out);
}

#[test]
fn what_cannot_be_asked_is_refused_with_the_fix() {
    let world = machine();
    world.put("/work/empty", "# nothing\n");
    world.put("/work/list.json", "[]");
    for (words, code, fix) in [
        (&[][..], 2, "write it in quotes"),
        (&[" "], 2, "write it in quotes"),
        (&["--lines", "empty"], 2, "one per line"),
        (&["--lines", "missing"], 3, "readable file"),
        (&["--cwd", "missing", "ls"], 2, "existing directory"),
        (&["--tool", "mcp__x__y", "ls"], 2, "--input FILE"),
        (&["--tool", "Write", "--input", "list.json"], 2, "not a JSON object"),
        (&["--client", "cody", "ls"], 2, "unknown client"),
        (&["rm", "-rf", "/"], 2, "policyd check 'rm -rf /'"),
    ] {
        let said = check(&world, words);
        assert_eq!(said.code, code, "{words:?}: {}", said.err);
        assert!(said.err.contains(fix), "{words:?}: {}", said.err);
        assert_eq!(said.out, "");
    }
}

#[test]
fn nothing_is_written_and_no_allowance_is_used() {
    let world = machine();
    assert_eq!(call(&world, &["allow", "rm_recursive"], b"").code, 0);
    let before = files(&world);
    for _ in 0..2 {
        let said = check(&world, &["rm -rf ~"]);
        assert_eq!(said.code, 0, "{}", said.out);
        assert!(said.out.contains("allowed  rm_recursive"), "{}", said.out);
    }
    assert_eq!(files(&world), before);
    assert!(world.questions().len() == 1, "only `allow` asked the user");
}

#[test]
fn a_gate_that_is_off_or_observes_says_so() {
    let world = machine();
    assert_eq!(call(&world, &["enforce", "--observe"], b"").code, 0);
    let said = check(&world, &["rm -rf ~"]);
    assert_eq!(said.code, 0);
    assert!(said.out.contains("decision: would block"), "{}", said.out);
    assert!(said.out.contains("policyd only observes"), "{}", said.out);
    assert_eq!(call(&world, &["enforce"], b"").code, 0);
    assert_eq!(call(&world, &["pause", "5m"], b"").code, 0);
    let said = check(&world, &["rm -rf ~"]);
    assert_eq!(said.code, 0);
    assert!(said.out.contains("policyd evaluated no rule: paused"), "{}", said.out);
}

#[test]
fn the_layer_of_an_own_rule_is_shown() {
    let world = machine();
    packed(
        &world,
        "guards.yaml",
        "- id: no_force\n  commands: [git]\n  when: program.has([\"--force\"])\n  decision: block\n  \
         message: Do not force-push.\n",
    );
    let said = check(&world, &["git push --force-with-lease --force"]);
    assert!(
        said.out.contains("no_force        named directory  /pack/guards.yaml:1:7"),
        "{}",
        said.out
    );
}

#[test]
fn other_commands_lead_to_it() {
    let world = machine();
    for words in [
        &["test", "rm -rf ~"][..],
        &["lint", "rm -rf ~"],
        &["replay", "rm -rf ~"],
        &["try", "rm -rf ~"],
        &["explain", "rm -rf ~"],
        &["rules", "rm -rf ~"],
        &["allow", "rm -rf ~"],
        &["rm -rf ~"],
        &["simulate", "rm -rf ~"],
    ] {
        let said = call_at(&world, Terminal::TYPED, words, b"");
        assert!(said.code > 0, "{words:?}");
        assert!(format!("{}{}", said.out, said.err).contains(HINT), "{words:?}: {said:?}");
    }
    let typo = call_at(&world, Terminal::TYPED, &["chek", "rm -rf ~"], b"");
    assert!(typo.err.contains("'check'"), "{}", typo.err);
    for other in [&["test", "tests"][..], &["try", "files.cont > 3"], &["explain", "abc"]] {
        let said = call_at(&world, Terminal::TYPED, other, b"");
        assert!(!format!("{}{}", said.out, said.err).contains("policyd check"), "{other:?}");
    }
}

#[test]
fn what_a_permission_prompt_would_get_is_shown() {
    let world = machine();
    let said = check(&world, &["cargo test"]).out;
    assert!(said.contains("the client decides as without policyd"), "{said}");
    world.put("/home/me/.config/policyd/config.yaml", "approvals: work\n");
    let said = check(&world, &["cargo test"]).out;
    assert!(said.contains("policyd approves: run_tests"), "{said}");
    let said = check(&world, &["git commit -m x"]);
    assert!(!said.out.contains("problem"), "a call without a session has no transcript: {said:?}");
}

#[test]
fn a_pack_that_hooks_do_not_use_is_reported() {
    let world = machine();
    world.put("/work/p/guards.yaml", "- {id: own, commands: [x], decision: aks, message: X.}\n");
    let named = check(&world, &["x", "--policies", "/work/p"]);
    assert_eq!(named.code, 3, "{named:?}");
    assert!(named.err.contains("guards.yaml:1") && named.out.is_empty(), "{named:?}");
    let absent = check(&world, &["x", "--policies", "/work/absent"]);
    assert_eq!(absent.code, 3, "{absent:?}");
    world.put("/work/.policyd/policies/guards.yaml", "- {id: own, commands: [x]}\n");
    let untrusted = check(&world, &["x"]);
    assert!(untrusted.code == 0 && untrusted.err.contains("is not trusted"), "{untrusted:?}");
}
