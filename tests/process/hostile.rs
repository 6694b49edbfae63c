//! Hostile input: whatever arrives, the hook ends with 0, says nothing or one object, in bounded
//! time and memory, and writes nowhere but under its own folder.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::machine::{Called, Machine, checked, ended, run};
use crate::support::sample;

const STOP: &[&str] = &["eval", "--hook", "stop"];

/// A check that subagents have to pass too.
pub(crate) const AGENTS_TOO: &str = "- id: agents_too\n  category: Agents\n  question: Were tests run?\n  \
    severity: blocker\n  on: [stop, subagent_stop]\n  satisfied: commands.kind(\"test\").passed\n";

/// A stop with this on stdin, in bounded memory.
fn fed(machine: &Machine, stdin: &[u8]) -> Called {
    run(machine.confined("", STOP), stdin)
}

fn stopped(machine: &Machine, changes: &Value) -> Called {
    fed(machine, machine.payload(changes).to_string().as_bytes())
}

#[test]
fn payloads_that_are_no_payload_are_named_and_hold_nobody() {
    let machine = Machine::new();
    let fifty = format!("{{\"session_id\":\"{}\"}}", "x".repeat(50 << 20));
    let twenty = format!("\"{}\"", "y".repeat(20 << 20));
    let (arrays, objects) = ("[".repeat(100_000), "{\"a\":".repeat(100_000));
    let deep =
        format!("{{\"session_id\":\"s1\",\"tool_input\":{}1{}}}", arrays, "]".repeat(100_000));
    for (stdin, said) in [
        ("", "is empty"),
        (" \n\t ", "is empty"),
        ("stop", "not JSON"),
        ("{\"session_id\":", "not JSON"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ("{} {}", "not JSON"),
        ("\u{feff}", "is empty"),
        ("\0", "not JSON"),
        (&fifty, "longer than"),
        (&twenty, "longer than"),
        (&arrays, "not JSON"),
        (&objects, "not JSON"),
        (&deep, "not JSON"),
    ] {
        let start: String = stdin.chars().take(20).collect();
        let called = fed(&machine, stdin.as_bytes());
        assert!(called.notice().contains(said), "{start:?}: {}", called.notice());
        assert!(!called.blocks(), "{start:?}");
    }
    assert!(!machine.file(".policyd").exists(), "nothing was judged, so nothing is remembered");
}

#[test]
fn payloads_that_are_odd_are_read() {
    let machine = Machine::new();
    machine.untested();
    let usual = machine.payload(&json!({})).to_string();
    let big = machine
        .payload(&json!({"session_id": "s-big", "last_assistant_message": "z".repeat(15 << 20)}));
    let half = usual.replace("s1", "s-half").replace("default", "de\\ud83dfault");
    let odd: [(&str, Vec<u8>); 5] = [
        ("a byte order mark", [b"\xef\xbb\xbf".as_slice(), usual.as_bytes()].concat()),
        ("blanks around", format!("\r\n {} \n\n", usual.replace("s1", "s-blank")).into_bytes()),
        ("invalid UTF-8", {
            let text = usual.replace("s1", "s-utf8").replace("default", "de*fault");
            text.bytes().map(|byte| if byte == b'*' { 0xff } else { byte }).collect()
        }),
        ("half of a surrogate pair", half.into_bytes()),
        ("a text of 15 MB", big.to_string().into_bytes()),
    ];
    for (what, stdin) in odd {
        assert!(fed(&machine, &stdin).blocks(), "{what}");
    }
}

#[test]
fn fields_of_any_type_count_as_absent() {
    let machine = Machine::new();
    machine.untested();
    let usual = machine.payload(&json!({"agent_id": "a", "agent_type": "t", "effort": {}}));
    let values = [
        Value::Null,
        json!(true),
        json!(-1),
        json!(1e300),
        json!([]),
        json!([[1], "x", null]),
        json!({"a": {"b": 1}}),
        json!(""),
        json!("\u{1}\u{7f}\u{202e}\u{0}"),
        json!("x".repeat(70_000)),
    ];
    let keys = usual.as_object().unwrap().keys();
    let fields = keys.flat_map(|key| values.iter().map(move |value| (key, value)));
    let all = fields.flat_map(|field| ["stop", "subagent-stop"].map(|event| (field, event)));
    for ((key, value), event) in sample(all) {
        let mut payload = usual.clone();
        payload[key] = value.clone();
        let command = machine.confined("", &["eval", "--hook", event]);
        run(command, payload.to_string().as_bytes()).answer();
    }
    assert_eq!(machine.run(&["state", "verify", "s1"], b"").code, Some(0));
}

#[test]
fn no_session_id_leads_out_of_the_state_root() {
    let machine = Machine::new();
    machine.untested();
    fs::create_dir(machine.path("victim")).unwrap();
    let before = machine.tree();
    let long = "i".repeat(10_000);
    for id in [
        "../../../victim",
        "../../victim/state.json",
        "/etc/policyd",
        "..",
        ".",
        "a/../../b",
        "a\\..\\b",
        "nul\0byte",
        "line\nbreak",
        "~/x",
        "$(touch x)",
        "\u{202e}id",
        &long,
    ] {
        assert!(stopped(&machine, &json!({"session_id": id})).blocks(), "{id:?}");
    }
    // The agent's id is a key in a file and part of a file name.
    machine.put(".policyd/policies/considerations.yaml", AGENTS_TOO);
    let own = machine.path("agent.jsonl");
    fs::write(&own, machine.subagents_records()).unwrap();
    let mut before: Vec<_> = before.into_iter().chain([own.clone()]).collect();
    before.sort();
    let agent = json!({"agent_id": "../../../victim/x", "agent_type": "t",
        "agent_transcript_path": own});
    let payload = machine.payload(&agent).to_string();
    assert!(machine.run(&["eval", "--hook", "subagent-stop"], payload.as_bytes()).blocks());
    // The compiled pack and the list of projects are the user's.
    let (own, cache, list) =
        (machine.file(".policyd"), machine.path("cache"), machine.path("state"));
    let outside = |it: &PathBuf| ![&own, &cache, &list].iter().any(|place| it.starts_with(place));
    let after: Vec<_> = machine.tree().into_iter().filter(outside).collect();
    assert_eq!(after, before.into_iter().filter(outside).collect::<Vec<_>>());
    let sessions = fs::read_dir(own.join("sessions")).unwrap();
    let names: Vec<_> = sessions.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    let safe = |it: &String| it.len() <= 128 && SessionName::is_safe(it);
    assert!(names.len() >= 10 && names.iter().all(safe), "{names:?}");
}

/// What a session folder may be called.
struct SessionName;

impl SessionName {
    fn is_safe(name: &str) -> bool {
        name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_' || it == '-')
    }
}

#[test]
fn folders_whose_links_lead_back_are_looked_at_once_and_in_order() {
    let machine = Machine::new();
    for pack in ["packs/b", "packs/a/deep", "packs/a/2", "packs/c.d"] {
        machine.put(&format!("{pack}/considerations.yaml"), "- id: nothing_else\n");
    }
    for (link, to) in [("a/back", "packs"), ("a/deep/back", "packs/a"), ("z", "packs/b")] {
        symlink(machine.file(to), machine.file(&format!("packs/{link}"))).unwrap();
    }
    let called = machine.run(&["lint", "packs", "--format", "compact"], b"");
    let files = called.stdout.lines().filter_map(|it| it.split(':').next());
    let mut files: Vec<&str> = files.filter(|it| it.starts_with("packs/")).collect();
    files.dedup();
    let expected = ["a/2", "a/deep", "b", "c.d"];
    assert_eq!(files, expected.map(|it| format!("packs/{it}/considerations.yaml")), "{called:?}");
}

#[test]
fn transcripts_that_are_no_file_are_told_and_hold_nobody() {
    let machine = Machine::new();
    let (pipe, loops) = (machine.path("pipe"), machine.path("loop"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    symlink(&loops, &loops).unwrap();
    let closed = machine.path("closed");
    fs::write(&closed, "{}\n").unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    fs::write(
        machine.path("random"),
        (0..1_000_000_u32).map(|it| it.to_le_bytes()[0] ^ 0x9d).collect::<Vec<_>>(),
    )
    .unwrap();
    let special = ["/dev/zero", "/dev/full", "/dev/null", "/dev/tty", "/proc/self/mem", "/", ""];
    let own = ["pipe", "loop", "closed", "random", "missing", "project"].map(|it| machine.path(it));
    let named = special.iter().map(PathBuf::from).chain(own);
    for path in named.chain([machine.path(&"n".repeat(5_000)), PathBuf::from("a\0b")]) {
        let changes = json!({"transcript_path": path, "session_id": "odd-transcript"});
        let called = stopped(&machine, &changes);
        assert!(!called.blocks(), "{}", path.display());
        assert!(called.notice().chars().count() < 2_200, "{}", called.notice());
    }
}

#[test]
fn a_transcript_full_of_rubbish_is_read_past() {
    let machine = Machine::new();
    let long = format!("{{\"type\":\"user\",\"x\":\"{}\"}}\n", "r".repeat(30 << 20));
    let deep = format!("{}{}\n", "{\"a\":".repeat(50_000), "[".repeat(50_000));
    fs::write(
        machine.transcript(),
        [long.as_bytes(), b"\0\0\0\n\xff\xfe\n", deep.as_bytes()].concat(),
    )
    .unwrap();
    assert!(stopped(machine.untested(), &json!({})).blocks());
}

#[test]
fn a_working_folder_that_is_none_does_not_matter() {
    let machine = Machine::new();
    machine.untested();
    for (number, folder) in
        [json!("/no/such"), json!(machine.transcript()), json!(""), json!("\0"), json!(7)]
            .iter()
            .enumerate()
    {
        let id = format!("folder-{number}");
        assert!(stopped(&machine, &json!({"cwd": folder, "session_id": id})).blocks(), "{folder}");
        assert!(machine.file(&format!(".policyd/sessions/{id}/state.json")).exists());
    }
}

#[test]
fn streams_that_are_closed_or_full_do_not_matter() {
    let machine = Machine::new();
    machine.untested();
    fs::write(machine.path("stop.json"), machine.payload(&json!({})).to_string()).unwrap();
    for redirect in [
        "<&-",
        "0<&- 1>&- 2>&-",
        ">&- <../stop.json",
        ">/dev/full <../stop.json",
        "2>/dev/full <../stop.json",
        "</dev/zero",
        "</",
    ] {
        let mut shell = Command::new("sh");
        let script = format!("ulimit -v 262144; exec \"$0\" eval --hook stop {redirect}");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_policyd")]);
        shell.current_dir(&machine.project).env_clear().env("HOME", machine.path("home"));
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = shell.spawn().unwrap();
        assert_eq!(ended(&mut child), Some(0), "{redirect}");
        let output = child.wait_with_output().unwrap();
        checked(&String::from_utf8(output.stdout).unwrap());
    }
}

#[test]
fn a_report_that_cannot_be_written_is_no_success() {
    let machine = Machine::new();
    for (line, code) in [("schema state", 3), ("man", 3), ("rules --format json", 3)] {
        let mut shell = Command::new("sh");
        let script = format!("exec \"$0\" {line} >/dev/full");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_policyd")]);
        shell.current_dir(&machine.project).env_clear().env("HOME", machine.path("home"));
        let output = shell.stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{line}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("could not write to standard output"), "{line}: {said}");
    }
}

#[test]
fn a_state_that_cannot_be_kept_is_replaced_and_told() {
    for refuse in ["root", "sessions", "variable", "disk", "lock", "state"] {
        let machine = Machine::new();
        machine.untested();
        let mut limits = "";
        match refuse {
            "root" => fs::write(machine.file(".policyd"), "").unwrap(),
            "sessions" => machine.put(".policyd/sessions", ""),
            "lock" => fs::create_dir_all(machine.session().join(".state.lock")).unwrap(),
            "state" => {
                fs::create_dir_all(machine.session().join("state.json/x")).unwrap();
                fs::create_dir_all(machine.session().join(".state.json.tmp/x")).unwrap();
            }
            // No file may grow: what a full disk looks like.
            "disk" => limits = "ulimit -f 0;",
            _ => limits = "POLICYD_STATE_DIR=/proc/policyd; export POLICYD_STATE_DIR;",
        }
        for follows_block in [false, true] {
            let changes = json!({"stop_hook_active": follows_block});
            let payload = machine.payload(&changes).to_string();
            let called = run(machine.confined(limits, STOP), payload.as_bytes());
            assert_eq!(called.blocks(), !follows_block, "{refuse}: {called:?}");
            assert!(called.notice().contains("not"), "{refuse}: {called:?}");
        }
    }
}

#[test]
fn projects_may_have_any_name() {
    let bytes = OsString::from_vec(b"by\xfftes".to_vec());
    let names = ["a b", "quote\"s'", "line\nbreak", "$(touch x)", "-rf", "ünï", "{session_id}"];
    for name in names.iter().map(OsString::from).chain([bytes]) {
        let machine = Machine::with_project(&name);
        machine.untested();
        assert!(machine.stop().blocks(), "{}", name.display());
        assert_eq!(machine.state()["consecutive_blocks"], 1);
        let listed = machine.run(&["state", "list"], b"");
        assert!(listed.stdout.contains("s1"), "{}", name.display());
    }
}

#[test]
fn an_environment_without_anything_will_do() {
    let machine = Machine::new();
    machine.untested();
    let mut command = machine.command(STOP);
    command.env_clear();
    let payload = machine.payload(&json!({})).to_string();
    assert!(run(command, payload.as_bytes()).blocks());
    let odd = OsString::from_vec(b"\xff\xfe".to_vec());
    let names =
        ["HOME", "XDG_CACHE_HOME", "POLICYD_STATE_DIR", "POLICYD_POLICIES", "CLAUDE_PROJECT_DIR"];
    let said = machine.work().stop_where(&names.map(|it| (it, odd.as_os_str())));
    assert!(said.blocks(), "{said:?}");
    assert!(!Path::new("/.policyd").exists());
}

#[test]
fn a_root_that_is_a_link_is_not_written_through() {
    for inner in ["", "sessions", "sessions/s1", "logs", "runs", "memory/episodic"] {
        let machine = Machine::new();
        machine.untested();
        let elsewhere = machine.path("elsewhere");
        fs::create_dir_all(&elsewhere).unwrap();
        let link = machine.file(&format!(".policyd/{inner}"));
        let link = PathBuf::from(link.to_str().unwrap().trim_end_matches('/'));
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&elsewhere, &link).unwrap();
        let excuse = "The tests are flaky, this is a pre-existing failure.";
        let called = machine.stop_with(&json!({"last_assistant_message": excuse}));
        assert!(called.blocks(), "another state counts: {called:?}");
        if inner.is_empty() || inner.starts_with("sessions") {
            assert!(called.notice().contains("is a symbolic link"), "{called:?}");
            assert!(called.notice().contains("POLICYD_STATE_DIR"), "{called:?}");
        }
        if inner == "runs" {
            let worked = machine.run(&["run", "--goal", "x", "--", "true"], b"");
            assert_eq!(worked.code, Some(3), "{worked:?}");
        }
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "nothing is written there");
        // Named by the user, the same folder is where it is to be.
        let named = machine.path("named");
        symlink(&elsewhere, &named).unwrap();
        let called = machine.work().stop_where(&[("POLICYD_STATE_DIR", named.as_os_str())]);
        assert!(called.blocks(), "{called:?}");
    }
}

#[test]
fn a_folder_of_the_manifest_that_is_a_link_is_not_written_through() {
    let blocks_at = |paths: &str, link: &str, folder: &str| {
        let machine = Machine::new();
        let pack = format!("version: 1\nextends: [builtin]\npaths: {{{paths}}}\n");
        machine.untested().put(".policyd/policies/policyd.yaml", &pack);
        let elsewhere = machine.path("elsewhere");
        fs::create_dir_all(elsewhere.join(folder)).unwrap();
        let path = machine.file(link);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(&elsewhere, &path).unwrap();
        let before = machine.tree();
        let called = machine.stop();
        let emitted = machine.run(&["signal", "emit", "PAUSE"], b"");
        let is_whole = !link.ends_with("/logs");
        if paths.starts_with("root") && is_whole {
            let worked = machine.run(&["run", "--goal", "x", "--", "true"], b"");
            assert_eq!(worked.code, Some(3), "{worked:?}");
        }
        let kept: Vec<_> = machine.tree().into_iter().filter(|it| !before.contains(it)).collect();
        let through: Vec<_> = kept.iter().filter(|it| it.starts_with(&elsewhere)).collect();
        assert!(through.is_empty(), "{paths}: {through:?}");
        let named = machine.path("named");
        let where_named = machine.work().stop_where(&[("POLICYD_STATE_DIR", named.as_os_str())]);
        assert!(where_named.blocks(), "the user's own folder: {where_named:?}");
        (called, emitted)
    };
    for (paths, link, folder) in [
        ("root: .state", ".state", "kept"),
        ("root: .state", ".state/logs", "kept"),
        ("root: build/state", "build", "state"),
        ("layout: amplihack", ".claude/runtime/power-steering", "kept"),
        ("layout: amplihack", ".claude", "runtime"),
    ] {
        let (called, emitted) = blocks_at(paths, link, folder);
        // Behind a link nothing is written; the copy in the user's directory counts.
        let is_whole = !link.ends_with("/logs");
        assert!(called.blocks(), "{paths}: {called:?}");
        if is_whole {
            assert!(called.notice().contains("is a symbolic link"), "{called:?}");
            assert!(called.notice().contains("POLICYD_STATE_DIR"), "{called:?}");
        }
        let refused = paths.starts_with("root") && is_whole;
        assert_eq!(emitted.code == Some(0), !refused, "{paths}: {emitted:?}");
    }
    // Diagnostics are no state: the block is remembered.
    let (called, _) = blocks_at("diagnostics: diagnostics", "diagnostics", "kept");
    assert!(called.blocks(), "{called:?}");
}
