//! Usage errors: a hook never ends with 2, which its caller takes as a block; everyone else does.

use std::fs;

use serde_json::json;

use crate::machine::{Called, Machine};

fn called(line: &str) -> Called {
    let machine = Machine::new();
    let arguments: Vec<_> = line.split_whitespace().collect();
    machine.run(&arguments, b"{}")
}

#[test]
fn a_hook_with_a_wrong_command_line_says_so_and_ends_with_zero() {
    for line in [
        "eval",
        "eval --hook",
        "eval --hook nonsense",
        "eval --hook=",
        "eval --hook stop --bogus",
        "eval --format hook --hook stop extra",
        "eval --hook stop --format",
        "eval --hook stop --format x",
        "eval --hook stop --format=TEXT",
        "eval --hook stop --now yesterday",
        "eval --hook stop --input /no/such/file",
        "eval --hook stop --hook stop",
        // What reads like another format at a glance, and is none.
        "eval --hook stop -- --format text",
        "eval --format text --format hook --hook stop",
        "eval --format json --format=hook --hook stop",
        // An option in front of its command.
        "--policies /x eval --hook stop",
        "--hook stop eval",
        "--bogus eval --hook stop",
        "evl --hook stop",
    ] {
        let called = called(line);
        assert!(!called.notice().is_empty(), "{line}: {called:?}");
        assert!(!called.blocks(), "{line}");
    }
}

#[test]
fn everyone_else_ends_with_two() {
    for line in [
        "eval --format text",
        "eval --format text --hook",
        "eval --format json --hook stop --bogus",
        "eval --hook nonsense --format=json",
        "lint --bogus",
        "state show",
        "state show ../x",
        "rules --policies eval --bogus",
        "diag tail -n many",
        // A typo in a line of CI must not be green for ever.
        "lnit policies",
        "tset",
        "--color foo lint",
    ] {
        let called = called(line);
        assert_eq!(called.code, Some(2), "{line}: {called:?}");
    }
}

#[test]
fn who_feeds_no_json_is_no_client() {
    let machine = Machine::new();
    for line in ["validate policies", "verify", "--bogus", ""] {
        let arguments: Vec<_> = line.split_whitespace().collect();
        for stdin in ["", " \n", "policies\n"] {
            let called = machine.run(&arguments, stdin.as_bytes());
            assert_eq!(called.code, Some(2), "{line}: {called:?}");
        }
        let fed = machine.run(&arguments, b"\n {\"session_id\":\"s\"}");
        assert!(fed.notice().contains("the hook did nothing"), "{line}: {fed:?}");
        let fed = machine.run(&arguments, b"\xef\xbb\xbf{}");
        assert_eq!(fed.code, Some(0), "{line}: {fed:?}");
    }
    let fed = machine.run(&["eval", "--hook", "pre-tool-use", "--bogus"], b"{}");
    assert!(fed.notice().contains("`policyd eval --hook pre-tool-use`"), "{fed:?}");
    assert!(!fed.notice().contains("--help"), "{fed:?}");
}

#[test]
fn a_hook_line_for_another_event_than_a_call_is_told() {
    let machine = Machine::new();
    let call = r#"{"session_id":"s1","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm -rf /"}}"#;
    for hook in ["post-tool-use", "session-start", "stop", "permission-request"] {
        let told = machine.run(&["eval", "--hook", hook], call.as_bytes()).notice();
        assert!(told.contains("Write `--hook pre-tool-use`"), "{hook}: {told}");
    }
}

#[test]
fn a_pack_that_changed_is_tried_before_it_is_trusted_again() {
    let machine = Machine::new();
    machine.put(
        ".policyd/policies/considerations.yaml",
        "- id: mine\n  category: c\n  question: Is it?\n  severity: warning\n  applicable_session_types: [\"*\"]\n  satisfied: todos.open == 0\n",
    );
    machine.put(
        ".policyd/policies/tests/a.yaml",
        "- name: none is open\n  on: stop\n  expect: {considerations: {mine: satisfied}}\n",
    );
    let trust = |hash: &str| {
        let pack = machine.file(".policyd/policies");
        let pack = json!({"folder": pack, "hash": hash, "since": "2025-01-01T00:00:00Z"});
        let trust = json!({"version": 1, "packs": [pack]}).to_string();
        fs::write(machine.path("config/policyd/trust.json"), trust).unwrap();
    };
    trust("0000");
    let tested = machine.run(&["test"], b"");
    assert_eq!(tested.code, Some(0), "{tested:?}");
    assert!(tested.stdout.contains("1 passed, 0 failed"), "{tested:?}");
    fs::write(machine.path("config/policyd/trust.json"), r#"{"version":1,"packs":[]}"#).unwrap();
    assert_eq!(machine.run(&["test"], b"").code, Some(3), "nobody ever trusted it");
}

#[test]
fn a_session_is_named_by_its_beginning() {
    let machine = Machine::new();
    machine.untested();
    for id in ["abcd-1", "abxy-2"] {
        let stop = machine.payload(&json!({"session_id": id})).to_string();
        assert!(machine.run(&["eval", "--hook", "stop"], stop.as_bytes()).blocks());
    }
    let shown = machine.run(&["state", "show", "abc"], b"");
    assert!(shown.code == Some(0) && shown.stdout.contains("abcd-1"), "{shown:?}");
    let several = machine.run(&["state", "reset", "ab"], b"");
    assert_eq!(several.code, Some(2), "{several:?}");
    assert!(several.stderr.contains("abcd-1") && several.stderr.contains("abxy-2"), "{several:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_terminal_that_an_agent_made_is_none_of_a_human() {
    let machine = Machine::new();
    let agent = machine.path("claude");
    std::os::unix::fs::symlink("/bin/sh", &agent).unwrap();
    let called = |line: &str| {
        // No terminal of whoever runs the tests is asked.
        let words = ["-w", agent.to_str().unwrap(), "-c", line];
        crate::machine::run(machine.program("setsid", &words), b"")
    };
    let pause = format!("'{}' pause 5m", env!("CARGO_BIN_EXE_policyd"));
    let in_terminal = format!("echo yes | script -qec \"{pause}\" /dev/null");
    for line in [format!("{pause} 2>&1; true"), format!("{in_terminal}; true")] {
        let said = called(&line).stdout;
        assert!(said.contains("is Claude Code"), "{said}");
        assert!(!machine.path("config/policyd/projects").exists(), "nothing is paused");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn processes_that_cannot_be_seen_are_no_proof_of_a_human() {
    let machine = Machine::new();
    let agent = machine.path("claude");
    std::os::unix::fs::symlink("/bin/sh", &agent).unwrap();
    let clean = format!("env -i HOME='{}' PATH=\"$PATH\"", machine.path("home").display());
    let policyd = env!("CARGO_BIN_EXE_policyd");
    let pause = format!("script -qec \"'{policyd}' pause 5m\" /dev/null < /dev/null");
    let (paused, nest) = (machine.path("pause.sh"), machine.path("nest.sh"));
    fs::write(&paused, &pause).unwrap();
    let again = format!("{clean} sh '{}' $(($1 - 1)); exit $?", nest.display());
    fs::write(&nest, format!("if [ $1 -gt 0 ]; then {again}; fi\n{pause}\n")).unwrap();
    let (paused, nest) = (paused.display(), nest.display());
    for (line, why) in [
        (format!("{clean} sh '{nest}' 70"), "more than 64 processes"),
        (format!("{clean} unshare -rpf --mount-proc sh '{paused}'"), "in another PID namespace"),
        (
            format!("{clean} unshare -rm sh -c \"mount -t tmpfs none /proc; sh '{paused}'\""),
            "or its parent cannot be inspected",
        ),
    ] {
        let words = ["-w", agent.to_str().unwrap(), "-c", &format!("{line} 2>&1; true")];
        let said = crate::machine::run(machine.program("setsid", &words), b"").stdout;
        if said.contains("unshare failed") || said.contains("mount: ") {
            crate::machine::skipped("processes_that_cannot_be_seen_are_no_proof_of_a_human", &said);
            continue;
        }
        assert!(said.contains(why) && said.contains("help: run it "), "{line}: {said}");
        assert!(!machine.path("home/.config/policyd").exists(), "nothing is paused");
    }
}

#[test]
fn help_and_version_are_for_people() {
    for line in ["--help", "--version", "eval --help", "--help eval", "help eval"] {
        let called = called(line);
        assert_eq!(called.code, Some(0), "{line}");
        assert!(called.stdout.contains("policyd") && called.stderr.is_empty(), "{line}");
    }
}

#[test]
fn completions_know_the_names_that_arguments_take() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let called = called(&format!("completions {shell}"));
        assert_eq!((called.code, called.stderr.as_str()), (Some(0), ""), "{shell}");
        assert!(called.stdout.contains("fail-on-new-blocks"), "{shell}");
    }
    let offered = called("completions bash").stdout;
    for name in ["session_types", "lint-baseline", "PD001", "claude-code"] {
        assert!(offered.contains(name), "{name}");
    }
    // They are offered, and not asked for: what stands there otherwise is answered by the command.
    assert_eq!(called("schema considerations.yaml").code, Some(0));
}

#[test]
fn each_command_has_a_page_with_its_options_and_their_variables() {
    assert!(called("man").stdout.contains("policyd\\-lint(1)"));
    let page = called("man lint").stdout;
    for part in [".TH policyd-lint 1", "\\-\\-fail\\-level", "POLICYD_LINT_FAIL_LEVEL"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(called("man breaker allow").stdout.contains(".TH policyd-breaker-allow 1"));
    let unknown = called("man lnt");
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("did you mean `lint`?"), "{unknown:?}");
}

#[test]
fn help_prints_commands_and_pages() {
    let pages = policyd::book::PAGES;
    assert!(pages.len() > 20, "{} pages", pages.len());
    for page in pages {
        let called = called(&format!("help {}", page.topic()));
        assert!(called.code == Some(0) && called.stdout.ends_with(page.text), "{}", page.path);
    }
    let topics = called("help topics").stdout;
    for page in pages {
        assert!(topics.contains(&page.summary()), "{}", page.path);
        let length = page.summary().chars().count();
        assert!((20..=100).contains(&length), "{}: {}", page.path, page.summary());
    }
    for (words, usage) in [
        ("help", "policyd [OPTIONS] COMMAND"),
        ("help lint", "policyd lint"),
        ("help trust", "policyd trust"),
        ("help breaker allow", "policyd breaker allow"),
        ("breaker help allow", "policyd breaker allow"),
        ("breaker help", "policyd breaker [OPTIONS] <COMMAND>"),
        ("--color never help lint", "policyd lint"),
    ] {
        let called = called(words);
        assert_eq!(called.code, Some(0), "{words}");
        assert!(called.stdout.contains(&format!("Usage: {usage}")), "{words}: {}", called.stdout);
    }
    let all = called("help all").stdout;
    assert!(all.contains("\n  debug  ") && all.contains("Exit codes: "), "{all}");
    for (words, help) in [
        ("help gards", "did you mean `guards`?"),
        ("help lint nonsense", "run `policyd help topics`"),
        ("breaker help nonsense", "run `policyd help topics`"),
    ] {
        let called = called(words);
        assert_eq!(called.code, Some(2), "{words}");
        assert!(called.stderr.contains(help), "{words}: {}", called.stderr);
    }
}
