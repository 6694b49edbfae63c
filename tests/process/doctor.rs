//! The doctor on real machines that are well, and on some that are not.

use std::fs;

use serde_json::Value;

use crate::machine::Machine;

/// Every check of the doctor, and how many failed.
fn doctor(machine: &Machine) -> (Vec<Value>, u64) {
    let called = machine.run(&["doctor", "--format", "json"], b"");
    let report: Value = serde_json::from_str(&called.stdout).unwrap();
    let failed = report["failed"].as_u64().unwrap();
    assert_eq!(called.code, Some(i32::from(failed > 0)), "{report:#}");
    (report["checks"].as_array().unwrap().clone(), failed)
}

fn failed(machine: &Machine, text: &str) {
    let (checks, _) = doctor(machine);
    let mut bad = checks.iter().filter(|it| it["health"] == "failed");
    let found = bad.any(|it| it["text"].as_str().unwrap().contains(text));
    assert!(found, "`{text}`: {checks:#?}");
}

fn settings(machine: &Machine, change: impl FnOnce(String) -> String) {
    let path = machine.path("home").join(".claude/settings.json");
    let text = fs::read_to_string(&path).unwrap_or_default();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, change(text)).unwrap();
}

/// A machine with hooks in Claude Code.
fn installed() -> Machine {
    let machine = Machine::new();
    let called = machine.run(&["install", "--harness", "claude-code"], b"");
    assert_eq!(called.code, Some(0));
    machine
}

#[test]
fn a_machine_that_is_well_is_told_so_and_nothing_is_changed() {
    let machine = installed();
    // The first call keeps the pack in compiled form.
    doctor(&machine);
    let before = machine.tree();
    let (checks, failed) = doctor(&machine);
    assert_eq!(failed, 0, "{checks:#?}");
    let about = |name: &str| checks.iter().filter(|it| it["about"] == name).count();
    for name in [
        "program",
        "hooks",
        "switch",
        "trust",
        "pack",
        "state",
        "audit log",
        "transcripts",
        "block",
        "bad flag",
        "bad stdin",
        "bad pack",
        "read-only",
        "full disk",
        "slow probe",
        "time",
    ] {
        assert!(about(name) > 0, "{name}");
    }
    let block = checks.iter().find(|it| it["about"] == "block").unwrap();
    assert!(block["more"].to_string().contains("the last test run failed"), "{block}");
    assert_eq!(machine.tree(), before);
}

#[test]
fn what_keeps_hooks_from_running_is_found() {
    let machine = installed();
    settings(&machine, |it| it.replacen('{', "{\n  \"disableAllHooks\": true,", 1));
    failed(&machine, "disableAllHooks");

    let machine = installed();
    settings(&machine, |it| it.replace(env!("CARGO_BIN_EXE_policyd"), "/gone/policyd"));
    failed(&machine, "/gone/policyd does not exist");

    let machine = installed();
    settings(&machine, |it| it.replace("\"subagent-stop\"", "\"stop\""));
    failed(&machine, "the line at SubagentStop says `--hook stop`");

    let machine = installed();
    settings(&machine, |it| it.replace("\"SessionEnd\"", "\"SesionEnd\""));
    failed(&machine, "does not have the event `SesionEnd`");

    let machine = Machine::new();
    settings(&machine, |_| "{\"hooks\": {\"PreToolUse\": {}}}".to_owned());
    failed(&machine, "`PreToolUse` is not a list");
}

#[test]
fn switches_packs_and_state_are_looked_at() {
    let machine = installed();
    machine.honor_switch_files();
    machine.put(".policyd/.disabled", "");
    failed(&machine, "disabled: ");

    let machine = installed();
    machine.put(".policyd/policies/considerations.yaml", "- id: mine\n  severty: x\n");
    failed(&machine, "unknown key `severty`");

    let machine = installed();
    machine.put(".policyd", "a file");
    // The user's own state directory is used instead, so nothing fails.
    let (checks, _) = doctor(&machine);
    let told = |it: &Value| it["text"].as_str().unwrap().contains("is not a directory");
    assert!(checks.iter().any(|it| told(it) && it["health"] != "ok"), "{checks:#?}");

    let machine = installed();
    fs::write(machine.path("config/policyd/trust.json"), "{").unwrap();
    failed(&machine, "trust.json` is not used");

    let machine = installed();
    fs::write(machine.path("config/policyd/trust.json"), "{\"version\":1,\"packs\":[]}").unwrap();
    machine.put(".policyd/policies/policyd.yaml", "version: 1\n");
    let (checks, bad) = doctor(&machine);
    assert_eq!(bad, 0);
    assert!(checks.iter().any(|it| it["text"].to_string().contains("is not trusted")));
}

#[test]
fn an_audit_log_that_cannot_be_written_is_found() {
    let row = |machine: &Machine| {
        let (checks, failed) = doctor(machine);
        let row = checks.iter().find(|it| it["about"] == "audit log").unwrap().clone();
        (row["health"].as_str().unwrap().to_owned(), row, failed)
    };
    // A log that exists is left as it is.
    let machine = installed();
    let log = ".policyd/logs/decisions.jsonl";
    machine.put(log, "{\"id\": \"a\"}");
    let modified = || fs::metadata(machine.file(log)).unwrap().modified().unwrap();
    let before = modified();
    let (health, row_of_log, failed) = row(&machine);
    assert_eq!((health.as_str(), failed), ("ok", 0), "{row_of_log}");
    assert!(row_of_log["text"].as_str().unwrap().ends_with("decisions.jsonl is writable"));
    assert_eq!(fs::read_to_string(machine.file(log)).unwrap(), "{\"id\": \"a\"}");
    assert_eq!(modified(), before);

    for (path, why) in [
        (".policyd/logs", "/.policyd/logs: not a directory"),
        (".policyd/logs/decisions.jsonl/x", "not a regular file"),
    ] {
        let machine = installed();
        machine.put(path, "a file");
        let (health, row, failed) = row(&machine);
        assert_eq!((health.as_str(), failed), ("failed", 1), "{row}");
        let text = row["text"].as_str().unwrap();
        assert!(text.contains(why) && text.ends_with("decisions are not recorded"), "{text}");
        assert!(row["more"][0].as_str().unwrap().starts_with("help: "), "{row}");
    }
}

/// Behind a symbolic link, nothing is written.
#[cfg(unix)]
#[test]
fn an_audit_log_behind_a_symbolic_link_is_found() {
    let machine = installed();
    fs::create_dir_all(machine.file(".policyd")).unwrap();
    fs::create_dir_all(machine.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(machine.path("elsewhere"), machine.file(".policyd/logs")).unwrap();
    failed(&machine, "decisions are not recorded");
    assert_eq!(fs::read_dir(machine.path("elsewhere")).unwrap().count(), 0);
}

#[test]
fn a_plugin_that_calls_policyd_beside_the_settings_is_found() {
    let machine = installed();
    let plugin = machine.path("home").join(".claude/plugins/cache/ours/policyd/0.1.0");
    let folder = plugin.to_str().unwrap();
    let made = machine.run(&["install", "--plugin", folder], b"");
    assert_eq!(made.code, Some(0), "{made:?}");
    let said = |checks: &[Value], text: &str| {
        checks.iter().any(|it| it["text"].as_str().unwrap().contains(text))
    };
    let (checks, _) = doctor(&machine);
    assert!(said(&checks, "also calls policyd, so policyd runs twice"), "{checks:#?}");
    machine.human(&["uninstall"]);
    let (checks, _) = doctor(&machine);
    assert!(said(&checks, "0.1.0/hooks/hooks.json: policyd at"), "{checks:#?}");
    assert!(checks.iter().any(|it| it["about"] == "version"), "its client is asked, too");
}

#[test]
fn doubled_hooks_and_switches_in_settings_are_found() {
    let machine = installed();
    let text = |machine: &Machine| {
        doctor(machine).0.iter().map(|it| it["text"].to_string()).collect::<String>()
    };
    assert!(!text(&machine).contains("doubled hooks"));
    machine.run(&["install", "--harness", "copilot,codex"], b"");
    let said = text(&machine);
    assert!(said.contains("GitHub Copilot CLI: doubled hooks: it reads"), "{said}");
    assert_eq!(
        said.matches("doubled hooks").count(),
        1,
        "Codex CLI reads its own file only: {said}"
    );

    let with = |env: &str| {
        let machine = installed();
        settings(&machine, |it| it.replacen('{', &format!("{{\n  \"env\": {{{env}}},"), 1));
        machine
    };
    failed(&with("\"CLAUDE_CODE_SAFE_MODE\": \"1\""), "`env.CLAUDE_CODE_SAFE_MODE`");
    failed(&with("\"POLICYD_DISABLED\": \"1\""), "`env.POLICYD_DISABLED`");
    for off in ["\"0\"", "\"False\"", "false", "\"\""] {
        assert_eq!(doctor(&with(&format!("\"POLICYD_DISABLED\": {off}"))).1, 0, "{off}");
    }
    let machine = with("\"POLICYD_POLICIES\": \"/tmp/pack\", \"POLICYD_STATE_DIR\": \"\"");
    let said = text(&machine);
    assert!(said.contains("`env.POLICYD_POLICIES` makes hooks use"), "{said}");
    assert!(!said.contains("env.POLICYD_STATE_DIR"), "empty is not set: {said}");
    for file in [".claude/settings.json", ".claude/settings.local.json"] {
        let machine = installed();
        let path = machine.path("project").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let env = "{\"env\": {\"POLICYD_DISABLED\": \"1\", \"POLICYD_STATE_DIR\": \"/tmp/s\"}}";
        fs::write(path, env).unwrap();
        let said = text(&machine);
        for variable in ["POLICYD_DISABLED", "POLICYD_STATE_DIR"] {
            let wanted = format!("{file}: `env.{variable}` is ignored, because a repository");
            assert!(said.contains(&wanted), "{said}");
        }
    }
}

/// Codex in code mode: the model's only tool is `exec`, and what it does is recorded as items.
#[test]
fn a_transcript_that_is_not_understood_is_reported() {
    let machine = installed();
    let sample = include_str!("../samples/codex/rollout.code-mode.jsonl");
    let path = machine.path("home").join(".codex/sessions/2026/11/24/rollout-1.jsonl");
    let codex = |text: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let (checks, failed) = doctor(&machine);
        let of_codex = |it: &&Value| {
            it["about"] == "transcripts" && it["text"].as_str().unwrap().starts_with("Codex")
        };
        let check = checks.iter().find(of_codex).unwrap().clone();
        (check["health"].as_str().unwrap().to_owned(), check, failed)
    };
    let (health, check, failed) = codex(sample);
    assert_eq!((health.as_str(), failed), ("ok", 0), "{check}");
    assert!(check["text"].to_string().contains("3 of 3 tool calls recognized"), "{check}");
    // The same session as a version without items would have recorded it.
    let blind: Vec<&str> = sample.lines().filter(|it| !it.contains("item_completed")).collect();
    let (health, check, failed) = codex(&blind.join("\n"));
    assert_eq!((health.as_str(), failed), ("failed", 1), "{check}");
    assert!(check["text"].to_string().contains("0 of 3 tool calls recognized"), "{check}");
    assert!(check["more"].to_string().contains("exec"), "{check}");
}
