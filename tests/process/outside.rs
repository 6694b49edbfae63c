//! What a repository brings along is not run, what is started ends with its hook, and what is written stays
//! where it is to be.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::machine::{Machine, run};

/// Runs git in the project as its user would.
fn git(machine: &Machine, words: &[&str]) -> bool {
    let own = ["-c", "user.name=a", "-c", "user.email=a@b"];
    let mut git = machine.program("git", &[&own[..], words].concat());
    git.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

/// A repository whose configuration names a program wherever git asks for one; each leaves a file in
/// `planted` of the machine.
fn hostile() -> Machine {
    let machine = Machine::new();
    fs::create_dir_all(machine.path("planted")).unwrap();
    assert!(git(&machine, &["init", "-q"]));
    machine.put("a.txt", "one\n");
    assert!(git(&machine, &["add", "a.txt"]) && git(&machine, &["commit", "-q", "-m", "begin"]));
    let planted = |name: &str| {
        let path = machine.path("planted").join(name);
        format!("sh -c 'touch {}; cat'", path.display())
    };
    machine.put(".gitattributes", "* filter=fa diff=da\n");
    machine.put(".git/info/attributes", "* filter=fb diff=db\na.txt filter=included\n");
    let hook = format!("#!/bin/sh\n{} < /dev/null\n", planted("hook"));
    for name in ["post-index-change", "fsmonitor-watchman", "pre-commit"] {
        machine.put(&format!("hooks/{name}"), &hook);
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(machine.file(&format!("hooks/{name}")), executable).unwrap();
    }
    // Without quotes, what follows a semicolon is a comment.
    let included = format!("[filter \"included\"]\n\tclean = \"{}\"\n", planted("included"));
    machine.put("more.config", &included);
    let set = |key: &str, value: &str| assert!(git(&machine, &["config", key, value]), "{key}");
    for (key, value) in [("core.hooksPath", "hooks"), ("include.path", "../more.config")] {
        set(key, value);
    }
    for (key, name) in [
        ("core.fsmonitor", "fsmonitor"),
        ("core.pager", "pager"),
        ("pager.status", "pager_status"),
        ("pager.log", "pager_log"),
        ("diff.external", "external"),
        ("core.sshCommand", "ssh"),
        ("core.gitProxy", "proxy"),
        ("core.askPass", "askpass"),
        ("gpg.program", "gpg"),
        ("filter.fa.clean", "clean"),
        ("filter.fa.smudge", "smudge"),
        ("filter.fb.process", "process"),
        ("diff.da.textconv", "textconv"),
        ("diff.db.command", "command"),
    ] {
        set(key, &planted(name));
    }
    set("log.showSignature", "true");
    set("filter.fb.required", "true");
    machine
}

/// What was run of it.
fn planted(machine: &Machine) -> Vec<String> {
    let entries = fs::read_dir(machine.path("planted")).unwrap();
    entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn no_program_that_the_configuration_of_a_repository_names_is_run() {
    let control = hostile();
    assert!(git(&control, &["config", "--unset", "filter.fb.required"]));
    control.put("a.txt", "two\n");
    git(&control, &["status"]);
    git(&control, &["diff"]);
    assert!(planted(&control).len() >= 3, "git itself runs them: {:?}", planted(&control));

    let machine = hostile();
    machine.untested();
    // A guard asks whether the work tree is clean.
    let line = json!({"hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": "git reset --hard"}});
    let call = machine.payload(&line).to_string();
    let is_asked = || {
        let called = machine.run(&["eval", "--hook", "pre-tool-use"], call.as_bytes());
        called.stdout.contains("\"ask\"")
    };
    assert!(!is_asked());
    machine.put("a.txt", "two\n");
    assert!(is_asked());
    let payload =
        |event: &str| machine.payload(&json!({"hook_event_name": event, "trigger": "auto"}));
    for (hook, event) in [("pre-compact", "PreCompact"), ("session-end", "SessionEnd")] {
        let called = machine.run(&["eval", "--hook", hook], payload(event).to_string().as_bytes());
        assert_eq!(called.code, Some(0), "{called:?}");
    }
    let told = machine.run(&["context", "summary"], b"");
    assert!(told.stdout.contains("a.txt"), "git answers all the same: {told:?}");
    let turn = ["run", "--goal", "x", "--max-iterations", "2", "--", "sh", "-c", "echo 3 > a.txt"];
    let worked = machine.run(&turn, b"");
    assert!(!worked.stderr.contains("git does not know"), "{worked:?}");
    assert_eq!(planted(&machine), Vec::<String>::new());
}

#[test]
fn programs_of_the_project_are_not_run_by_name() {
    let machine = Machine::new();
    machine.untested();
    assert!(git(&machine, &["init", "-q"]));
    fs::create_dir_all(machine.path("planted")).unwrap();
    let other = machine.path("elsewhere");
    symlink(machine.file("bin"), &other).unwrap();
    for folder in ["node_modules/.bin", "bin", "."] {
        for program in ["git", "gh", "glab", "tea", "sh-of-probe"] {
            let name = format!("{folder}/{program}");
            let sign = machine.path("planted").join(program);
            machine.put(&name, &format!("#!/bin/sh\ntouch {}\n", sign.display()));
            fs::set_permissions(machine.file(&name), fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    machine.put(
        ".policyd/policies/probes.yaml",
        "- {id: p1, command: [sh-of-probe]}\n- {id: p2, command: [gh, pr, view]}\n",
    );
    let check = |id: u8| {
        format!(
            "- {{id: c{id}, category: X, question: Is it?, severity: blocker, mode: warn, \
             satisfied: probes.p{id}.ok, details: d}}\n"
        )
    };
    machine.put(".policyd/policies/considerations.yaml", &[check(1), check(2)].concat());
    let own = std::env::var("PATH").unwrap();
    let bin = machine.file("bin");
    let path = format!("./node_modules/.bin::.:{}:{}:{own}", bin.display(), other.display());
    let variables = [("PATH", path.as_ref())];
    machine.stop_where(&variables).answer();
    let mut compact = machine.command(&["eval", "--hook", "pre-compact"]);
    compact.envs(variables);
    let payload = machine.payload(&json!({"hook_event_name": "PreCompact", "trigger": "auto"}));
    assert_eq!(run(compact, payload.to_string().as_bytes()).code, Some(0));
    assert_eq!(planted(&machine), Vec::<String>::new());
    // The same probe named by its path is what the pack says.
    machine.put(".policyd/policies/probes.yaml", "- {id: p1, command: [./bin/sh-of-probe]}\n");
    machine.put(".policyd/policies/considerations.yaml", &check(1));
    machine.stop_with(&json!({"session_id": "s2"})).answer();
    assert_eq!(planted(&machine), ["sh-of-probe"]);
}

fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Waits until something holds, for 20 seconds at most.
fn comes(holds: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        if holds() {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

#[test]
#[cfg(target_os = "linux")]
fn a_probe_ends_with_its_hook() {
    let machine = Machine::new();
    machine.untested();
    let pids = machine.path("pids");
    let script = format!("sleep 300 & echo $! > {0}; echo $$ >> {0}; wait", pids.display());
    let probe = format!("- {{id: p1, timeout: 15s, command: [sh, -c, \"{script}\"]}}\n");
    machine.put(".policyd/policies/probes.yaml", &probe);
    machine.put(
        ".policyd/policies/considerations.yaml",
        "- {id: c1, category: X, question: Is it?, severity: blocker, mode: warn, satisfied: probes.p1.ok, details: d}\n",
    );
    let mut hook = machine.command(&["eval", "--hook", "stop"]);
    let mut hook = hook.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let payload = machine.payload(&json!({})).to_string();
    hook.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
    let told = || fs::read_to_string(&pids).unwrap_or_default();
    assert!(comes(|| told().lines().count() == 2), "the probe runs");
    thread::sleep(Duration::from_millis(500));
    let told = told();
    assert!(told.lines().all(is_alive), "{told}");
    hook.kill().unwrap();
    hook.wait().unwrap();
    assert!(comes(|| !told.lines().any(is_alive)), "{told}");
}

#[test]
fn a_write_beyond_the_limit_of_the_shell_is_an_error_and_not_the_end() {
    let machine = Machine::new();
    machine.untested();
    let payload = machine.payload(&json!({})).to_string();
    let called =
        run(machine.confined("ulimit -f 0;", &["eval", "--hook", "stop"]), payload.as_bytes());
    assert_eq!(called.code, Some(0), "{called:?}");
    assert!(called.notice().contains("could not be saved"), "{called:?}");
}

#[test]
fn a_command_says_which_lock_it_waits_for_and_who_holds_it() {
    let machine = Machine::new();
    let emit = ["signal", "emit", "PAUSE"];
    assert_eq!(machine.run(&emit, b"").code, Some(0));
    let path = machine.file(".policyd/signals/.signals.lock");
    let lock = fs::File::options().write(true).open(&path).unwrap();
    lock.lock().unwrap();
    let called = thread::scope(|scope| {
        let waits = scope.spawn(|| machine.run(&emit, b""));
        thread::sleep(Duration::from_millis(2_500));
        drop(lock);
        waits.join().unwrap()
    });
    assert_eq!(called.code, Some(0), "{called:?}");
    assert!(called.stderr.contains("policyd: waiting: `"), "{called:?}");
    assert!(called.stderr.contains(".signals.lock` is locked by"), "{called:?}");
    #[cfg(target_os = "linux")]
    assert!(called.stderr.contains(&format!("process {} (", std::process::id())), "{called:?}");
}

#[test]
fn a_hook_that_finds_its_session_locked_says_so() {
    let machine = Machine::new();
    machine.put(".policyd/policies/policyd.yaml", "durability: {lock_wait: 100ms}\n");
    machine.untested().stop().answer();
    let path = machine.session().join(".state.lock");
    let lock = fs::File::options().write(true).open(&path).unwrap();
    lock.lock().unwrap();
    let called = machine.stop_with(&json!({"prompt_id": "p2"}));
    let notice = called.notice();
    assert!(notice.contains(".state.lock` is locked by"), "{called:?}");
    assert!(!notice.contains("POLICYD_STATE_DIR"), "{called:?}");
}

#[test]
fn settings_keep_their_permissions_and_their_owner() {
    let machine = Machine::new();
    let path = machine.path("home/.claude/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "{}\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let is_root = fs::metadata(&path).unwrap().uid() == 0;
    if is_root {
        std::os::unix::fs::chown(&path, Some(1234), Some(1235)).unwrap();
    }
    let owner = |path: &Path| fs::metadata(path).map(|it| (it.uid(), it.gid())).unwrap();
    let before = (owner(&path), fs::metadata(&path).unwrap().ino());
    assert_eq!(machine.run(&["install"], b"").code, Some(0));
    assert_ne!(fs::metadata(&path).unwrap().ino(), before.1, "another file took its place");
    assert_eq!(owner(&path), before.0);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
    let names = fs::read_dir(path.parent().unwrap()).unwrap();
    let mut names: Vec<_> = names.map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["settings.json", "settings.json.before-policyd"]);
}

#[test]
fn uninstall_says_what_stays_and_purge_removes_what_is_the_users_own() {
    let machine = Machine::new();
    fs::create_dir_all(machine.path("home/.claude")).unwrap();
    // The stop keeps the compiled pack.
    machine.put(".policyd/policies/policyd.yaml", "version: 1\n");
    machine.untested().stop().answer();
    fs::create_dir_all(machine.path("state/policyd")).unwrap();
    let own = ["config/policyd", "cache/policyd", "state/policyd"];
    assert!(own.iter().all(|it| machine.path(it).exists()), "{:?}", machine.tree());
    assert_eq!(machine.run(&["install"], b"").code, Some(0));
    let told = machine.human(&["uninstall"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    for it in own {
        let path = machine.path(it);
        assert!(told.stdout.contains(&format!("{} (`--purge`", path.display())), "{told:?}");
        assert!(path.exists());
    }
    assert!(told.stdout.contains("stays      program: "), "{told:?}");
    let planned =
        machine.run(&["uninstall", "--harness", "claude-code", "--purge", "--dry-run"], b"");
    assert!(planned.stdout.contains("to remove  configuration: "), "{planned:?}");
    assert!(planned.stdout.contains("to remove  project state: "), "{planned:?}");
    assert!(own.iter().all(|it| machine.path(it).exists()));
    let purged = machine.human(&["uninstall", "--harness", "claude-code", "--purge"]);
    assert_eq!(purged.code, Some(0), "{purged:?}");
    assert!(own.iter().all(|it| !machine.path(it).exists()));
    assert!(machine.path("config").exists());
    let left = fs::read_dir(machine.file(".policyd")).unwrap();
    let left: Vec<_> = left.map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["policies"], "a pack is the user's work");
    assert!(purged.stdout.contains("policies (`--packs` removes it)"), "{purged:?}");
    machine.human(&["uninstall", "--harness", "claude-code", "--purge", "--packs"]);
    assert!(!machine.file(".policyd").exists());
}

#[test]
fn the_common_deadline_holds_for_one_long_probe() {
    let machine = Machine::new();
    machine.untested();
    machine
        .put(".policyd/policies/probes.yaml", "- {id: p1, timeout: 1h, command: [sleep, '600']}\n");
    machine.put(
        ".policyd/policies/considerations.yaml",
        "- {id: c1, category: X, question: Is it?, severity: blocker, mode: warn, satisfied: probes.p1.ok, details: d}\n",
    );
    let called = machine.stop();
    called.answer();
    assert!(called.took < Duration::from_secs(20), "{called:?}");
    assert!(called.took > Duration::from_secs(5), "the probe was asked: {called:?}");
}
