//! Secrets in the result of a tool: masked before the agent reads it, where the client takes that.
use serde_json::{Value, json};

use super::scene::Scene;
use crate::support::sample;

const GUARD: &str = "- id: mask_secrets\n  on: [post_tool_use]\n  tools: [Bash, Read]\n  decision: mask\n  \
    message: Secrets in this result are masked.\n";
const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ";

fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.world.put("/work/.policyd/policies/guards.yaml", GUARD);
    scene.events(&[json!({"user": "Show the settings"})]);
    scene
}

/// The answer of a client's hook after a tool.
fn after(scene: &Scene, client: &str, stdout: &str) -> Value {
    let payload = json!({"session_id": "session-1", "cwd": "/work", "hook_event_name": "PostToolUse",
        "tool_name": "Bash", "tool_input": {"command": "cat settings"},
        "tool_response": {"stdout": stdout, "stderr": "", "interrupted": false}});
    let said = scene.call("post-tool-use", &payload.to_string(), &["--harness", client]);
    assert_eq!(said.code, 0, "{said:?}");
    said.json()
}

#[test]
fn a_result_keeps_its_shape_and_loses_its_secrets() {
    let scene = scene();
    let said = after(&scene, "claude-code", &format!("token {SECRET}\nport 80"));
    let specific = &said["hookSpecificOutput"];
    let expected = json!({"stdout": "token «masked»\nport 80", "stderr": "", "interrupted": false});
    assert_eq!(specific["updatedToolOutput"], expected);
    assert_eq!(specific["additionalContext"], "Secrets in this result are masked.");
    let log = scene.world.get("/work/.policyd/logs/decisions.jsonl").unwrap();
    let log = String::from_utf8(log).unwrap();
    assert!(log.contains("mask_secrets") && !log.contains(SECRET), "{log}");
}

#[test]
fn a_result_without_secrets_stays_and_a_client_that_cannot_is_reported() {
    let scene = scene();
    assert_eq!(after(&scene, "claude-code", "port 80"), json!({}));
    let said = after(&scene, "codex", &format!("token {SECRET}"));
    let notice = said["systemMessage"].as_str().unwrap();
    assert!(notice.contains("the result cannot be changed for Codex CLI at PostToolUse"), "{said}");
    assert!(!said.to_string().contains("updatedToolOutput"), "{said}");
}

#[test]
fn cases_say_what_the_agent_reads() {
    let scene = Scene::new();
    scene.world.put("/pack/policyd.yaml", "version: 1\nextends: [builtin]\n");
    scene.world.put("/pack/guards.yaml", GUARD);
    let case = |name: &str, stdout: &str, expect: &str| {
        format!(
            "- name: {name}\n  on: {{event: post_tool_use, tool: Bash, fields: {{tool_response: {{stdout: \
             \"{stdout}\"}}}}}}\n  expect: {{updated_output: {expect}}}\n"
        )
    };
    let cases = [
        case("masked", &format!("token {SECRET}"), "{stdout: token «masked»}"),
        case("as it was", "port 80", "none"),
    ];
    scene.world.put("/pack/tests/masking.yaml", cases.concat());
    let said = scene.run(&["policyd", "test", "/pack"], b"");
    assert_eq!(said.code, 0, "{said:?}");
    let lint = scene.run(&["policyd", "lint", "--harness", "codex", "/pack"], b"");
    assert!(lint.stdout.contains("Codex CLI does not support `updated_output`"), "{lint:?}");
    let early = GUARD.replace("post_tool_use", "pre_tool_use");
    scene.world.put("/pack/guards.yaml", early);
    let lint = scene.run(&["policyd", "lint", "/pack"], b"");
    assert!(lint.stdout.contains("no client supports `mask` at `pre_tool_use`"), "{lint:?}");
}

/// Letters and digits as tokens have them.
fn letters(length: usize) -> String {
    "4fQz9Lk2Xw7Rb1Vn8Tc3".chars().cycle().take(length).collect()
}

/// Hexadecimal digits.
fn hex(length: usize) -> String {
    "4f09ac21d7e83b56".chars().cycle().take(length).collect()
}

/// Beginnings of tokens, with how many letters follow.
const TOKENS: &[(&str, usize)] = &[
    ("ghp_", 36),
    ("gho_", 36),
    ("ghs_", 36),
    ("github_pat_", 60),
    ("glpat-", 20),
    ("xoxb-", 24),
    ("xapp-", 30),
    ("sk-ant-api03-", 40),
    ("sk-proj-", 40),
    ("sk_live_", 24),
    ("AIza", 35),
    ("npm_", 36),
    ("pypi-AgEIcHlwaS5vcmc", 60),
    ("dckr_pat_", 27),
    ("hf_", 34),
    ("hvs.", 24),
    ("dp.st.", 43),
    ("sq0atp-", 22),
    ("EAAA", 60),
    ("lin_api_", 40),
    ("ntn_", 46),
    ("NRAK-", 27),
    ("ATATT3", 60),
    ("nfp_", 40),
    ("glsa_", 32),
    ("sntrys_", 60),
    ("pscale_tkn_", 43),
    ("tskey-auth-", 30),
    ("ya29.", 40),
    ("HRKU-", 40),
    ("123456789:AA", 33),
];

/// The same for tokens of hexadecimal digits.
const HEX_TOKENS: &[(&str, usize)] = &[
    ("dop_v1_", 64),
    ("doo_v1_", 64),
    ("shpat_", 32),
    ("shpss_", 32),
    ("dapi", 32),
    ("SK", 32),
    ("key-", 32),
    ("sbp_", 40),
    ("pul-", 40),
    ("rubygems_", 48),
];

/// Secrets that are told by what is before them, or have several parts.
fn others() -> Vec<(&'static str, String)> {
    vec![
        ("AccountKey=", letters(80) + "=="),
        ("https://a.net/b?sv=1&sig=", letters(40)),
        ("use ", format!("a4b8Q~{}", letters(34))),
        ("see ", format!("SG.{}.{}", letters(22), letters(43))),
        ("see ", format!("AGE-SECRET-KEY-1{}", "Q7XK2M4P9R".repeat(5))),
        ("see ", format!("{}.atlasv1.{}", letters(14), letters(64))),
        ("see ", format!("PMAK-{}-{}", hex(24), hex(34))),
        ("see ", format!("M{}.X7aB2c.{}", letters(24), letters(38))),
        ("see ", format!("b3BlbnNzaC1rZXktdjE{}", letters(60))),
        ("AWS secret access key is ", letters(40)),
        ("Authorization: Bearer ", letters(24)),
        ("Cookie: ", format!("sid={}", letters(24))),
        ("PGPASSWORD=", letters(12)),
        ("postgres://me:", letters(13) + "@db"),
        ("tool --password ", letters(14)),
        ("mysql -u root -p", letters(15)),
        ("curl -u admin:", letters(16)),
        ("sshpass -p ", letters(17)),
        ("docker login -p ", letters(18)),
        ("openssl enc -k ", letters(19)),
        ("redis-cli -a ", letters(11)),
        ("our password is ", letters(10)),
        ("the twilio auth is ", hex(32)),
        ("deploy_key: ", hex(40)),
    ]
}

/// Secrets of many kinds, each with the text before it; put together here, so that no scanner reports this file.
fn planted() -> Vec<(&'static str, String)> {
    let tokens = TOKENS.iter().map(|(start, length)| format!("{start}{}", letters(*length)));
    let hex_tokens = HEX_TOKENS.iter().map(|(start, length)| format!("{start}{}", hex(*length)));
    tokens.chain(hex_tokens).map(|it| ("see ", it)).chain(others()).collect()
}

/// Every file that was written below the state folder, with its text.
fn stored(scene: &Scene) -> Vec<(String, String)> {
    let files = scene.world.files().into_iter().filter(|it| it.starts_with("/work/.policyd"));
    let files = files.filter(|it| !it.starts_with("/work/.policyd/policies"));
    let text = |path: &std::path::Path| {
        String::from_utf8_lossy(&scene.world.get(path).unwrap()).into_owned()
    };
    files.map(|it| (it.display().to_string(), text(&it))).collect()
}

#[test]
fn no_secret_is_stored_wherever_it_comes_from() {
    let planted = planted();
    assert!(planted.len() >= 64, "{}", planted.len());
    for (before, secret) in sample(planted.iter()) {
        let text = format!("{before}{secret}");
        let mut scene = Scene::new();
        let considerations = concat!(
            "- id: quotes\n  category: X\n  question: Is it?\n  severity: blocker\n",
            "  satisfied: todos.open == 0\n",
            "  details: ${commands.last(\"pytest\").quote} ${transcript.last_message}\n",
        );
        scene.world.put("/work/.policyd/policies/considerations.yaml", considerations);
        let todos =
            json!([{"content": format!("Put in {text}"), "status": "pending", "activeForm": "x"}]);
        scene.events(&[
            json!({"user": format!("Do it with {text} now")}),
            json!({"tool": "Write", "input": {"file_path": "src/a.py", "content": format!("# TODO {text}\n")}, "id": "w"}),
            json!({"claude_user_tool_result": "ok", "id": "w"}),
            json!({"tool": "Bash", "input": {"command": format!("{text} # pytest")}, "id": "a"}),
            json!({"claude_user_tool_result": format!("Exit code 1\n{text}\nfailed: {text}"), "id": "a"}),
            json!({"tool": "Bash", "input": {"command": "pytest"}, "id": "b"}),
            json!({"claude_user_tool_result": format!("Exit code 1\n1 failed {text}"), "id": "b"}),
            json!({"tool": "TodoWrite", "input": {"todos": todos}, "id": "c"}),
            json!({"claude_user_tool_result": "ok", "id": "c"}),
            json!({"assistant": format!("I used {text} for it")}),
        ]);
        for _ in 0..3 {
            let said = json!({"last_assistant_message": format!("I used {text} for it")});
            scene.call("stop", &scene.payload(&said).to_string(), &[]);
        }
        scene.call(
            "pre-compact",
            &scene
                .payload(&json!({"hook_event_name": "PreCompact", "trigger": "auto"}))
                .to_string(),
            &[],
        );
        let files = stored(&scene);
        for name in ["state.json", "cursor.bin", "decisions.jsonl"] {
            assert!(files.iter().any(|(path, _)| path.ends_with(name)), "{name}: {files:?}");
        }
        let state = scene.state();
        assert!(state["block_history"].as_array().is_some_and(|it| !it.is_empty()), "{state}");
        for (path, stored) in &files {
            assert!(!stored.contains(secret.trim_end_matches("@db")), "{text} in {path}: {stored}");
        }
    }
}
