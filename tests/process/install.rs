//! Hook lines in real settings files: put in, found, taken out, and never at the cost of what is there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use policyd::app::install::places::PLACES;
use policyd::world::World;
use policyd::world::real::RealWorld;
use serde_json::{Value, json};

use crate::machine::{Machine, run};

const CLIENTS: [(&str, &str); PLACES.len()] = [
    ("claude-code", ".claude/settings.json"),
    ("codex", ".codex/hooks.json"),
    ("gemini", ".gemini/settings.json"),
    ("cursor", ".cursor/hooks.json"),
    ("copilot", ".copilot/hooks/policyd.json"),
    ("droid", ".factory/settings.json"),
    ("opencode", "../config/opencode/plugins/policyd.js"),
];

/// Settings as somebody wrote them: odd blanks, an order of their own, hooks of others.
const SETTINGS: &str = r#"{
   "model" : "opus",  "permissions": { "allow": ["Bash(ls)"] },
   "hooks": {
      "Stop": [ { "hooks": [ { "type": "command", "command": "/usr/bin/say done" } ] } ],
      "PreToolUse": [
         { "matcher": "Bash", "hooks": [ { "type": "command", "command": "guard", "timeout": 5 } ] }
      ]
   },
   "zeta": 1
}
"#;

fn home(machine: &Machine, file: &str, text: &str) -> PathBuf {
    let path = machine.path("home").join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

fn text(path: &PathBuf) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn what_is_there_stays_and_comes_back_byte_for_byte() {
    let machine = Machine::new();
    let path = home(&machine, ".claude/settings.json", SETTINGS);
    let installed = machine.run(&["install"], b"");
    assert_eq!(installed.code, Some(0), "{installed:?}");
    let after = text(&path);
    for part in
        ["\"model\" : \"opus\",  \"permissions\"", "/usr/bin/say done", "guard", "\"zeta\": 1"]
    {
        assert!(after.contains(part), "{after}");
    }
    let value: Value = serde_json::from_str(&after).unwrap();
    let stop = &value["hooks"]["Stop"][1]["hooks"][0];
    assert_eq!(stop["args"], json!(["eval", "--hook", "stop"]));
    assert_eq!(stop["timeout"], 20);
    assert!(stop["command"].as_str().unwrap().starts_with('/'), "an absolute path");
    assert!(value["hooks"].get("WorktreeCreate").is_none());

    let again = machine.run(&["install"], b"");
    assert!(again.stdout.starts_with("unchanged"), "{again:?}");
    assert_eq!(text(&path), after, "twice is once");

    let narrower = machine.run(&["install", "--events", "stop"], b"");
    assert_eq!(narrower.code, Some(0));
    let value: Value = serde_json::from_str(&text(&path)).unwrap();
    assert_eq!(value["hooks"].as_object().unwrap().len(), 2, "{value}");

    let removed = machine.human(&["uninstall"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert_eq!(text(&path), SETTINGS);
    let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing else is left: {left:?}");
}

#[test]
fn a_program_under_another_name_knows_its_lines_and_no_others() {
    let wrapped = r#"{"type": "command", "command": "nice -n 5 pd eval --hook stop"}"#;
    let other = r#"{"type": "command", "command": "lisp eval --hook nonsense"}"#;
    let settings = SETTINGS.replace(
        r#""command": "/usr/bin/say done" }"#,
        &format!(r#""command": "/usr/bin/say done" }}, {wrapped}, {other}"#),
    );
    for client in ["claude-code", "codex"] {
        let machine = Machine::new();
        let file = CLIENTS.iter().find(|it| it.0 == client).unwrap().1;
        let path = home(&machine, file, &settings);
        let call = |arguments: &[&str]| run(machine.renamed("my tools/pd", arguments), b"");
        let installed = call(&["install", "--harness", client]);
        assert_eq!(installed.code, Some(0), "{installed:?}");
        let after = text(&path);
        assert!(after.contains("my tools/pd"), "{after}");
        assert!(
            call(&["install", "--harness", client]).stdout.starts_with("unchanged"),
            "{client}"
        );
        assert_eq!(text(&path), after, "twice is once");
        let program = machine.path("my tools/pd");
        let removed = machine.human_with(program, &["uninstall", "--harness", client]);
        assert_eq!(removed.code, Some(0), "{removed:?}");
        assert_eq!(text(&path), settings);
    }
}

#[test]
fn what_was_added_since_stays_when_hooks_are_taken_out() {
    let machine = Machine::new();
    let path = home(&machine, ".claude/settings.json", SETTINGS);
    machine.run(&["install"], b"");
    fs::write(&path, text(&path).replace("\"zeta\": 1", "\"zeta\": 2")).unwrap();
    machine.human(&["uninstall"]);
    let value: Value = serde_json::from_str(&text(&path)).unwrap();
    let expected = SETTINGS.replace("\"zeta\": 1", "\"zeta\": 2");
    assert_eq!(value, serde_json::from_str::<Value>(&expected).unwrap());
}

#[test]
fn malformed_files_are_left_alone_and_their_place_is_told() {
    for (broken, place) in [
        ("{\n  \"hooks\": {\n", "line 3"),
        ("{\n  // mine\n  \"hooks\": {}\n}", "line 2"),
        ("{\"hooks\": {}}\n{}", "line 2"),
        ("[]", "the file"),
        ("{\n \"hooks\": []\n}", "line 2: `hooks` is not an object"),
        ("{\"hooks\": {\n\"Stop\": {}}}", "line 2: `Stop` is not a list"),
        ("{\"hooks\": {\"PreToolUse\":\n [{\"command\": \"x\"}]}}", "groups with `hooks`"),
    ] {
        let machine = Machine::new();
        let path = home(&machine, ".claude/settings.json", broken);
        for command in ["install", "uninstall"] {
            let called = machine.human(&[command]);
            assert_eq!(called.code, Some(3), "{broken}: {called:?}");
            assert!(called.stderr.contains(place), "{broken}: {}", called.stderr);
            assert!(called.stderr.contains("settings.json"), "{}", called.stderr);
        }
        assert_eq!(text(&path), broken);
    }
}

#[test]
fn a_file_that_is_left_alone_keeps_no_other_client_back() {
    let machine = Machine::new();
    home(&machine, ".claude/settings.json", "{ // mine\n}");
    let other = home(&machine, ".gemini/settings.json", "{}\n");
    let called = machine.run(&["install"], b"");
    assert_eq!(called.code, Some(3), "{called:?}");
    assert!(called.stderr.contains(".claude/settings.json"), "{called:?}");
    assert!(text(&other).contains("eval --hook"), "{called:?}");
    assert_eq!(machine.human(&["uninstall"]).code, Some(3));
    assert_eq!(text(&other), "{}\n");
}

#[test]
fn comments_stay_where_the_client_takes_them() {
    let machine = Machine::new();
    let commented = "{\n  // my theme\n  \"ui\": {\"theme\": \"GitHub\"}, /* last */\n}\n";
    let path = home(&machine, ".gemini/settings.json", commented);
    assert_eq!(machine.run(&["install", "--harness", "gemini"], b"").code, Some(0));
    let after = text(&path);
    assert!(after.contains("// my theme") && after.contains("/* last */"), "{after}");
    assert!(after.contains("\"timeout\": 20000"), "its timeouts are milliseconds: {after}");
    assert_eq!(machine.human(&["uninstall", "--harness", "gemini"]).code, Some(0));
    assert_eq!(text(&path), commented);
}

#[test]
fn comments_that_were_written_since_stay() {
    let machine = Machine::new();
    let commented = "{\n  // my theme\n  \"ui\": {\"theme\": \"GitHub\"}\n}\n";
    for changed in ["// my theme, // see the wiki, with \"quotes\"", "/* mine */", ""] {
        let path = home(&machine, ".gemini/settings.json", commented);
        assert_eq!(machine.run(&["install", "--harness", "gemini"], b"").code, Some(0));
        fs::write(&path, text(&path).replace("// my theme", changed)).unwrap();
        assert_eq!(machine.human(&["uninstall", "--harness", "gemini"]).code, Some(0));
        let after = text(&path);
        assert!(after.contains(changed) && !after.contains("// my theme\n"), "{after}");
        assert!(after.contains("GitHub") && !after.contains("policyd"), "{after}");
        fs::remove_file(path.with_file_name("settings.json.before-policyd")).ok();
    }
}

#[test]
fn a_dry_run_shows_a_diff_and_changes_nothing() {
    let machine = Machine::new();
    let path = home(&machine, ".claude/settings.json", SETTINGS);
    let called = machine.run(&["install", "--dry-run"], b"");
    assert_eq!(called.code, Some(0));
    assert!(called.stdout.contains("+++ ") && called.stdout.contains("\"--hook\""), "{called:?}");
    assert_eq!(text(&path), SETTINGS);
}

#[test]
fn every_client_gets_lines_that_work_and_loses_them_again() {
    for (client, file) in CLIENTS {
        let machine = Machine::new();
        let installed = machine.run(&["install", "--harness", client], b"");
        assert_eq!(installed.code, Some(0), "{installed:?}");
        let path = machine.path("home").join(file);
        let written = text(&path);
        if client != "opencode" {
            let value: Value = serde_json::from_str(&written).unwrap();
            let mut lines = Vec::new();
            collect(&value["hooks"], &mut lines);
            assert!(!lines.is_empty());
            for line in lines {
                let status = Command::new("sh")
                    .args(["-c", &format!("{line} < /dev/null")])
                    .env("HOME", machine.path("home"))
                    .current_dir(machine.path("project"))
                    .output()
                    .unwrap();
                assert_eq!(status.status.code(), Some(0), "{line}");
            }
        }
        let removed = machine.human(&["uninstall", "--harness", client]);
        assert_eq!(removed.code, Some(0), "{removed:?}");
        assert!(!path.exists(), "{client}: policyd wrote it, and takes it away");
    }
}

/// Every command in the hooks of a settings file, as a shell line.
fn collect(value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Array(all) => all.iter().for_each(|it| collect(it, lines)),
        Value::Object(fields) => {
            let command = fields.get("command").or(fields.get("bash")).and_then(Value::as_str);
            if let Some(command) = command {
                let arguments = fields.get("args").and_then(Value::as_array);
                let arguments = arguments.into_iter().flatten().filter_map(Value::as_str);
                lines.push([command].into_iter().chain(arguments).collect::<Vec<_>>().join(" "));
            } else {
                fields.values().for_each(|it| collect(it, lines));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_context_is_looked_at_after_tools_and_before_a_compaction() {
    for (client, events) in [
        ("claude-code", ["PostToolUse", "PreCompact"].as_slice()),
        ("codex", &["PostToolUse", "PreCompact"]),
        ("gemini", &["AfterTool", "SessionEnd"]),
        ("cursor", &["postToolUse", "preCompact"]),
        ("copilot", &["postToolUse", "preCompact"]),
        ("droid", &["PostToolUse", "PreCompact"]),
    ] {
        let machine = Machine::new();
        machine.run(&["install", "--harness", client], b"");
        let file = CLIENTS.iter().find(|it| it.0 == client).unwrap().1;
        let value: Value = serde_json::from_str(&text(&machine.path("home").join(file))).unwrap();
        for event in events {
            assert!(value["hooks"].get(event).is_some(), "{client}: {event} in {value}");
        }
        // Gemini CLI reports that before every call of the model.
        assert!(value["hooks"].get("PreCompress").is_none(), "{value}");
        let end = &value["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"];
        assert!(client != "codex" || *end == 3, "{value}");
    }
}

#[test]
fn events_that_break_things_are_never_installed() {
    let machine = Machine::new();
    let all = machine.run(&["install", "--harness", "claude-code", "--events", "all"], b"");
    assert_eq!(all.code, Some(0));
    let path = machine.path("home").join(".claude/settings.json");
    let value: Value = serde_json::from_str(&text(&path)).unwrap();
    assert_eq!(value["hooks"].as_object().unwrap().len(), 32);
    assert!(value["hooks"].get("WorktreeCreate").is_none());
    let named = ["install", "--harness", "claude-code", "--events", "WorktreeCreate"];
    let named = machine.run(&named, b"");
    assert_eq!(named.code, Some(2));
    assert!(named.stderr.contains("breaks"), "{}", named.stderr);
    let unknown = machine.run(&["install", "--harness", "codx"], b"");
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("codex"), "{}", unknown.stderr);
}

#[test]
fn scopes_have_files_of_their_own() {
    let machine = Machine::new();
    for (scope, file) in
        [("project", ".claude/settings.json"), ("local", ".claude/settings.local.json")]
    {
        let called = machine.run(&["install", "--harness", "claude-code", "--scope", scope], b"");
        assert_eq!(called.code, Some(0), "{called:?}");
        assert!(machine.file(file).exists());
    }
    let none = machine.run(&["install", "--harness", "codex", "--scope", "local"], b"");
    assert_eq!(none.code, Some(2), "{none:?}");
    let nobody = Machine::new().run(&["install"], b"");
    assert_eq!(nobody.code, Some(2), "no client is found: {nobody:?}");
}

#[test]
fn every_user_can_read_what_is_published_and_only_its_owner_can_write() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    let file = home(&machine, "private/settings.json", "{}\n");
    let directory = file.parent().unwrap().to_owned();
    for (path, before, after) in [(&file, 0o666, 0o644), (&directory, 0o700, 0o755)] {
        fs::set_permissions(path, fs::Permissions::from_mode(before)).unwrap();
        RealWorld::new().publish(path).unwrap();
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o7777, after);
    }
}

#[test]
fn a_link_is_not_written_through() {
    let machine = Machine::new();
    let real = home(&machine, "dotfiles/settings.json", "{}\n");
    fs::create_dir_all(machine.path("home/.claude")).unwrap();
    symlink(&real, machine.path("home/.claude/settings.json")).unwrap();
    let called = machine.run(&["install"], b"");
    assert_eq!(called.code, Some(3), "{called:?}");
    assert!(called.stderr.contains("symbolic link"), "{}", called.stderr);
    assert!(called.stderr.contains("by a copy of its target"), "the cure: {}", called.stderr);
    let beside = fs::read_dir(machine.path("home/.claude")).unwrap().count();
    assert_eq!(beside, 1, "nothing is kept beside a file that is not written");
    assert_eq!(text(&real), "{}\n");
}

#[test]
fn a_plugin_folder_is_what_claude_code_loads() {
    let machine = Machine::new();
    let folder = machine.path("plugin");
    let called = machine.run(&["install", "--plugin", folder.to_str().unwrap()], b"");
    assert_eq!(called.code, Some(0), "{called:?}");
    let read = |name: &str| -> Value { serde_json::from_str(&text(&folder.join(name))).unwrap() };
    assert_eq!(read(".claude-plugin/plugin.json")["name"], "policyd");
    assert_eq!(read("hooks/hooks.json")["hooks"]["Stop"][0]["hooks"][0]["args"][2], "stop");
}

#[test]
fn a_hook_that_fails_blocks_where_the_client_has_a_setting() {
    let lines = |machine: &Machine, file: &str| -> Value {
        serde_json::from_str(&text(&machine.path("home").join(file))).unwrap()
    };
    let machine = Machine::new();
    let path = home(&machine, ".claude/settings.json", SETTINGS);
    let clients = "claude-code,cursor,codex";
    let closed = ["install", "--harness", clients, "--on-failure", "closed"];
    let said = machine.run(&closed, b"");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("(`onFailure`); stops stay open"), "{said:?}");
    assert!(said.stdout.contains("(`failClosed`); stops stay open"), "{said:?}");
    assert!(said.stdout.contains("Codex CLI has no setting for a hook that fails"), "{said:?}");
    let claude = lines(&machine, ".claude/settings.json");
    let failing = |event: &str, at: usize| &claude["hooks"][event][at]["hooks"][0]["onFailure"];
    assert_eq!(
        (failing("PreToolUse", 1), failing("PermissionRequest", 0)),
        (&json!("block"), &json!("block"))
    );
    assert_eq!((failing("Stop", 1), failing("PostToolUse", 0)), (&Value::Null, &Value::Null));
    let cursor = lines(&machine, ".cursor/hooks.json");
    assert_eq!(cursor["hooks"]["preToolUse"][0]["failClosed"], true);
    assert_eq!(cursor["hooks"]["stop"][0]["failClosed"], Value::Null);
    let doctor = machine.run(&["doctor"], b"").stdout;
    let shown = |event: &str, failing: &str| {
        let mut all = doctor.lines().map(str::trim);
        let ending = format!("(on failure: {failing})");
        assert!(all.any(|it| it.starts_with(event) && it.ends_with(&ending)), "{event}: {doctor}");
    };
    shown("PreToolUse: ", "closed");
    shown("Stop: ", "open");
    // Open is the default, and what was there before comes back.
    let open = machine.run(&["install", "--harness", clients], b"");
    assert!(!open.stdout.contains("hook that fails"), "{open:?}");
    assert!(!text(&path).contains("onFailure"));
    machine.run(&closed, b"");
    machine.human(&["uninstall", "--harness", clients]);
    assert_eq!(text(&path), SETTINGS);
    assert!(!machine.path("home").join(".cursor/hooks.json").exists());
}

#[test]
fn droid_hooks_go_where_its_hooks_are() {
    let machine = Machine::new();
    let settings = home(&machine, ".factory/settings.json", "{}\n");
    let before = "{\n  \"hooks\": {}\n}\n";
    let hooks = home(&machine, ".factory/hooks.json", before);
    let said = machine.run(&["install", "--harness", "droid"], b"");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(text(&hooks).contains("eval --hook Stop --harness droid"), "{}", text(&hooks));
    assert_eq!(text(&settings), "{}\n");
    machine.human(&["uninstall", "--harness", "droid"]);
    assert_eq!(text(&hooks), before);
}
