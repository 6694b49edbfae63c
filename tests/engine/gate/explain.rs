//! `policyd explain`: what was decided is judged again and comes to the same, and whatever is not
//! as it was is said.

use policyd::world::{CommandOutput, World};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

use super::scene::{Called, Scene, TRANSCRIPT};
use crate::support::snapshot;

const LOG: &str = "/work/.policyd/logs/decisions.jsonl";

fn explain(scene: &Scene, more: &[&str]) -> Called {
    scene.run(&[&["policyd", "explain"], more].concat(), b"")
}

fn as_json(scene: &Scene) -> Value {
    explain(scene, &["--format", "json"]).json()
}

fn untested() -> Scene {
    let mut scene = Scene::new();
    scene.events(&[
        json!({"user": "Add a parser"}),
        json!({"tool": "Write", "input": {"file_path": "/work/src/a.py", "content": "x = 1\n"}}),
        json!({"claude_user_tool_result": "ok"}),
        json!({"tool": "Bash", "input": {"command": "pytest -q"}}),
        json!({"claude_user_tool_result": "1 failed in 0.1s", "is_error": true}),
        json!({"assistant": "Done, the parser is there."}),
    ]);
    scene
}

/// The same session under a pack of its own, so that the built-in one may change.
fn small() -> Scene {
    let scene = untested();
    scene.world.put("/work/.policyd/policies/policyd.yaml", "version: 1\nextends: []\n");
    scene.world.put("/work/.policyd/policies/considerations.yaml", RULES);
    scene
}

const RULES: &str = r#"- id: no_failure
  category: Work
  question: Did every tool call work?
  severity: blocker
  applicable_session_types: ["*"]
  when: transcript.prompts > 0
  satisfied: tools.total > 9 || tools.total == 2 && tools.failed == 0
  details: ${tools.failed} of ${tools.total} tool call(s) failed
  evidence: ["last prompt: ${transcript.last_prompt}"]
- id: plain_words
  category: Work
  question: Is it done?
  severity: warning
  applicable_session_types: ["*"]
  satisfied: '!("parser" in transcript.last_message)'
- {id: todos, category: Work, question: Todos?, severity: blocker, applicable_session_types: ["*"], satisfied: todos.open == 0}
- {id: late, category: Work, question: Late?, severity: blocker, applicable_session_types: ["*"], when: now.hour > 22, satisfied: todos.open == 0}
- {id: types, category: Work, question: Type?, severity: blocker, applicable_session_types: ["*"], enabled: false, satisfied: todos.open == 0}
"#;

#[test]
fn a_block_is_explained_with_the_values_behind_it() {
    let scene = small();
    assert_eq!(scene.stop().decision(), "block", "{:?}", scene.stop());
    let called = explain(&scene, &["--last"]);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    snapshot("explanations", "explain__blocked", &called.stdout);
    let all = explain(&scene, &["--all"]).stdout;
    snapshot("explanations", "explain__every_rule", all);
    let lines = explain(&scene, &["--format", "compact"]).stdout;
    snapshot("explanations", "explain__a_line_each", lines);
    let id = as_json(&scene)["entry"]["id"].as_str().unwrap().to_owned();
    assert_eq!(explain(&scene, &[&id]).stdout, called.stdout);
    assert!(scene.run(&["policyd", "log"], b"").stdout.contains(&id), "the log names it");
}

/// Every stop of an episode: the guard's memory is a part of what was decided.
#[test]
fn what_was_decided_is_decided_again() {
    let mut scene = untested();
    let mut seen = Vec::new();
    for number in 0..5 {
        scene.events(&[json!({"tool": "Read", "input": {"file_path": format!("/work/{number}")}})]);
        let said = scene.stop().decision();
        let explained = as_json(&scene);
        assert_eq!(explained["same"], true, "stop {number}: {}", explained["differences"]);
        seen.push((said, explained["entry"]["release"].as_str().unwrap().to_owned()));
    }
    assert!(seen.iter().any(|it| it.0 == "block"), "{seen:?}");
    assert!(seen.iter().any(|it| it.1 == "same_failure"), "{seen:?}");
}

#[test]
fn what_came_after_does_not_change_it() {
    let mut scene = untested();
    let stub = "def f():\n    raise NotImplementedError\n";
    scene.events(&[
        json!({"tool": "Write", "input": {"file_path": "/tmp/x/b.py", "content": stub}}),
        json!({"claude_user_tool_result": "ok"}),
        json!({"tool": "Write", "input": {"file_path": "/work/src/c.py", "content": stub}}),
        json!({"claude_user_tool_result": "ok"}),
        json!({"tool": "Write", "input": {"file_path": "/work/src/d.py", "content": stub}}),
        json!({"claude_user_tool_result": "ok"}),
    ]);
    scene.world.put("/work/src/c.py", "def f(): return 1\n");
    scene.stop();
    let forgotten = as_json(&scene)["entry"]["inputs"]["forgotten"].clone();
    assert_eq!(forgotten, json!({"files": [1], "findings": [0], "mended": [0]}));
    // The files are mended, the session goes on, and time passes.
    scene.world.put("/work/src/d.py", "def f(): return 1\n");
    scene.world.put("/work/src/c.py", stub);
    scene.world.advance(Duration::from_secs(90_000));
    scene.events(&[
        json!({"tool": "Bash", "input": {"command": "pytest -q"}}),
        json!({"claude_user_tool_result": "3 passed in 0.1s"}),
    ]);
    let explained = as_json(&scene);
    assert_eq!(
        (&explained["same"], &explained["lost"]),
        (&json!(true), &json!([])),
        "{explained:#}"
    );
}

#[test]
fn the_agents_last_words_are_found_again_in_the_transcript() {
    let mut scene = untested();
    let payload = scene.payload(&json!({"last_assistant_message": "Shall I go on?"})).to_string();
    scene.call("stop", &payload, &[]);
    let lost = &as_json(&scene)["lost"];
    assert!(lost[0].as_str().unwrap().contains("what the agent said last is not in"), "{lost}");
    // The transcript lagged behind.
    scene.events(&[json!({"assistant": "Shall I go on?"})]);
    let explained = as_json(&scene);
    assert_eq!((&explained["lost"], &explained["same"]), (&json!([]), &json!(true)));
}

#[test]
fn what_cannot_be_had_any_more_is_said() {
    let scene = small();
    scene.stop();
    let transcript = scene.world.get(TRANSCRIPT).unwrap();
    scene.world.remove(Path::new(TRANSCRIPT)).unwrap();
    let gone = explain(&scene, &[]);
    assert_eq!(gone.code, 0, "the record itself explains");
    snapshot("explanations", "explain__transcript_gone", gone.stdout);

    let rewritten = String::from_utf8(transcript.clone()).unwrap().replace("parser", "lexers");
    scene.world.put(TRANSCRIPT, rewritten);
    let said = as_json(&scene);
    assert_eq!(said["judged_again"], Value::Null);
    assert!(said["lost"][0].as_str().unwrap().contains("was rewritten"), "{said:#}");

    scene.world.put(TRANSCRIPT, transcript);
    let milder = RULES.replacen("severity: blocker", "severity: warning", 1);
    scene.world.put("/work/.policyd/policies/considerations.yaml", milder);
    let changed = explain(&scene, &[]);
    assert_eq!(changed.code, 1, "it comes to something else");
    snapshot("explanations", "explain__pack_changed", changed.stdout);

    scene.world.put("/work/.policyd/policies/considerations.yaml", "- id: [x\n");
    let broken = as_json(&scene);
    assert!(broken["lost"][0].as_str().unwrap().contains("the policy pack is broken"), "{broken}");
}

#[test]
fn a_pack_whose_text_changed_and_whose_meaning_did_not_is_told_apart() {
    let scene = untested();
    scene.stop();
    let log = String::from_utf8(scene.world.get(LOG).unwrap()).unwrap();
    let hash = as_json(&scene)["entry"]["inputs"]["pack_hash"].as_str().unwrap().to_owned();
    scene.world.put(LOG, log.replace(&hash, "0000000000000000"));
    let said = as_json(&scene);
    assert_eq!(said["same"], true);
    assert!(
        said["lost"][0].as_str().unwrap().contains("has changed; the explanation"),
        "{}",
        said["lost"]
    );
}

/// A session that is done as far as can be seen, and a judge that replies.
fn judged(reply: &str) -> Scene {
    let mut scene = untested();
    let switched_on = "- {id: judge, override: true, enabled: true}\n";
    scene.world.put("/work/.policyd/policies/probes.yaml", switched_on);
    let (stdout, stderr) = (reply.as_bytes().to_vec(), Vec::new());
    let reply = CommandOutput { code: Some(0), stdout, stderr, truncated: false };
    scene.world.script(&["claude"], Ok(reply), Duration::from_secs(1));
    scene.events(&[
        json!({"tool": "Bash", "input": {"command": "pytest -q"}}),
        json!({"claude_user_tool_result": "3 passed in 0.1s"}),
        json!({"assistant": "All is done."}),
    ]);
    assert_eq!(scene.stop().decision(), "block");
    scene
}

/// A pack that came later, or was named at the call, does not explain what another one decided.
#[test]
fn the_pack_of_then_is_used_where_it_is_still_there() {
    let scene = untested();
    scene.stop();
    scene.world.put("/work/.policyd/policies/considerations.yaml", RULES);
    assert_eq!(as_json(&scene)["same"], true, "the built-in one decided");
    scene.world.put("/packs/other/policyd.yaml", "version: 1\nextends: []\n");
    scene.world.put("/packs/other/considerations.yaml", RULES);
    scene.world.advance(Duration::from_secs(1));
    scene.call("stop", &scene.payload(&json!({})).to_string(), &["--policies", "/packs/other"]);
    let again = as_json(&scene);
    assert_eq!((&again["same"], &again["lost"]), (&json!(true), &json!([])));
    assert_eq!(again["entry"]["inputs"]["pack_folder"], "/packs/other");
    let by = explain(&scene, &["--policies", "/work/.policyd/policies"]);
    assert_eq!(by.code, 1, "{}", by.stdout);
    scene.world.remove_folder(Path::new("/packs/other")).unwrap();
    let gone = as_json(&scene);
    let lost = gone["lost"][0].as_str().unwrap();
    assert!(lost.contains("could not read the logged pack: /packs/other"), "{lost}");
}

/// A client writes a line and its end in two goes.
#[test]
fn a_line_without_its_end_counted_then_and_counts_again() {
    let scene = untested();
    let whole = String::from_utf8(scene.world.get(TRANSCRIPT).unwrap()).unwrap();
    let prompt = json!({"type": "user", "uuid": "u9", "promptId": "p9",
        "message": {"role": "user", "content": "And a lexer"}});
    scene.world.put(TRANSCRIPT, format!("{whole}{prompt}"));
    scene.stop();
    let unfinished = as_json(&scene)["entry"]["inputs"]["transcript"]["unfinished"].clone();
    assert_eq!(unfinished, prompt.to_string().len());
    scene.world.put(TRANSCRIPT, format!("{whole}{prompt}\n{prompt}\n"));
    let again = as_json(&scene);
    assert_eq!((&again["same"], &again["lost"]), (&json!(true), &json!([])), "{again:#}");
}

#[test]
fn what_probes_answered_is_not_asked_again() {
    let token = ["ghp", "_4fQz9Lk2Xw7Rb1Vn8Tc34fQz9Lk2Xw7Rb1Vn"].concat();
    let no = format!("{{\"objective_completion\": \"NOT SATISFIED: {token} is in the code\"}}");
    let scene = judged(&no);
    let ran = scene.world.ran().len();
    let explained = explain(&scene, &[]);
    assert_eq!(scene.world.ran().len(), ran, "nothing is run");
    for part in [
        "judge: NOT SATISFIED: «masked» is in the code",
        "«masked» replaces a secret; rules evaluated the secret itself",
        "evaluated again: same result",
        "secrets in the result of probe `judge` masked in the log: 1",
    ] {
        assert!(explained.stdout.contains(part), "{}", explained.stdout);
    }
    let log = String::from_utf8(scene.world.get(LOG).unwrap()).unwrap();
    assert!(!log.contains(&token), "the log holds no secret");
    assert_eq!(as_json(&scene)["same"], true, "{:#}", as_json(&scene)["differences"]);
}

#[test]
fn an_answer_that_was_too_long_to_be_logged_is_missed() {
    let more = "x".repeat(20_000);
    let no = json!({"objective_completion": "NOT SATISFIED: no", "more": more}).to_string();
    let explained = as_json(&judged(&no));
    let lost = explained["lost"][0].as_str().unwrap();
    assert!(lost.contains("probe `judge` was too long to be logged (20"), "{lost}");
    assert_eq!(explained["same"], false, "and what follows from it differs");
}

#[test]
fn an_entry_that_is_not_there_is_named() {
    let scene = untested();
    let none = explain(&scene, &[]);
    assert_eq!(none.code, 3);
    assert!(none.stderr.contains("no decision of this project is logged"), "{}", none.stderr);
    scene.stop();
    for (more, code, said) in [
        (&["ffff0000"] as &[&str], 3, "no decision `ffff0000` is logged; `policyd log`"),
        (&["--session", "other"], 3, "no decision of a session `other`"),
        (&["--last", "ffff0000"], 2, "`--last` cannot be combined with an id"),
    ] {
        let called = explain(&scene, more);
        assert_eq!(called.code, code, "{more:?}");
        assert!(called.stderr.contains(said), "{}", called.stderr);
    }
    scene.world.advance(Duration::from_secs(1));
    scene.stop();
    let several = explain(&scene, &[""]);
    assert_eq!(several.code, 2);
    assert!(several.stderr.contains("ambiguous decision id"), "{}", several.stderr);
}

#[test]
fn what_was_not_judged_is_explained_by_its_problem() {
    let scene = untested();
    scene.world.put("/work/.policyd/policies/considerations.yaml", "- id: [x\n");
    scene.stop();
    let none = explain(&scene, &[]);
    assert_eq!((none.code, none.stdout.as_str()), (3, ""));
    let id = logged_ids(&scene).pop().unwrap();
    let help = format!("`{id}` (stop)\nhelp: run `policyd explain {id}` to see that entry");
    assert!(none.stderr.contains(&help), "{}", none.stderr);
    let said = explain(&scene, &[&id]);
    assert_eq!(said.code, 0);
    for part in ["not evaluated", "the policy pack is broken", "policyd evaluated no rule"] {
        assert!(said.stdout.contains(part), "{}", said.stdout);
    }
    let lines = explain(&scene, &[&id, "--format", "compact"]).stdout;
    assert_eq!(lines, "note     cannot re-evaluate: policyd evaluated no rule at this event\n");
}

/// The ids of the log, oldest first.
fn logged_ids(scene: &Scene) -> Vec<String> {
    let log = String::from_utf8(scene.world.get(LOG).unwrap()).unwrap();
    let entries = log.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
    entries.map(|it| it["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_log_of_switches_alone_holds_no_decision_to_explain() {
    let scene = untested();
    assert_eq!(scene.run(&["policyd", "pause", "30m"], b"").code, 0);
    scene.world.advance(Duration::from_secs(1));
    scene.stop();
    scene.world.advance(Duration::from_secs(1));
    assert_eq!(scene.run(&["policyd", "resume"], b"").code, 0);
    let ids = logged_ids(&scene);
    assert_eq!(ids.len(), 3, "a pause, a stop, the end of the pause");
    for more in [&[] as &[&str], &["--last"]] {
        let none = explain(&scene, more);
        assert_eq!((none.code, none.stdout.as_str()), (3, ""));
        let text = format!(
            "policyd: no evaluated decision is logged: nothing was evaluated at the newest entry, `{id}` \
             (resume)\nhelp: run `policyd explain {id}` to see that entry, or `policyd doctor` to see why \
             nothing is evaluated\n",
            id = ids[2]
        );
        assert_eq!(none.stderr, text);
    }
    let of_session = explain(&scene, &["--session", "session-1"]).stderr;
    let text = format!(
        "no evaluated decision of a session `session-1` is logged: nothing was evaluated at the newest entry, `{}` (stop)",
        ids[1]
    );
    assert!(of_session.contains(&text), "{of_session}");
}

#[test]
fn the_last_evaluated_decision_is_explained() {
    let scene = untested();
    scene.stop();
    let id = logged_ids(&scene).pop().unwrap();
    let alone = explain(&scene, &[]);
    assert_eq!(alone.stderr, "");
    // A pause, a stop during the pause, and a stop with a broken pack.
    scene.run(&["policyd", "pause", "30m"], b"");
    scene.world.advance(Duration::from_secs(1));
    scene.stop();
    scene.run(&["policyd", "resume"], b"");
    scene.world.advance(Duration::from_secs(1));
    scene.world.put("/work/.policyd/policies/considerations.yaml", "- id: [x\n");
    scene.stop();
    assert_eq!(logged_ids(&scene).len(), 5);
    let last = explain(&scene, &["--last", "--format", "json"]);
    assert_eq!(last.json()["entry"]["id"], id);
    let notice =
        "policyd: 4 newer entries were not evaluated; `policyd log` lists them with their ids\n";
    assert_eq!(last.stderr, notice);
}

/// A machine on which an agent is about to call a tool, under guards of its own.
fn calling(command: &str) -> Scene {
    let scene = Scene::new();
    scene
        .world
        .put("/work/.policyd/policies/policyd.yaml", "version: 1\nguard_sets: {secrets: false}\n");
    scene.world.put("/work/.policyd/policies/guards.yaml", GUARDS);
    let payload = json!({"session_id": "session-1", "cwd": "/work", "tool_name": "Bash",
        "hook_event_name": "PreToolUse", "tool_input": {"command": command}});
    scene.call("pre-tool-use", &payload.to_string(), &[]);
    scene
}

const GUARDS: &str = r#"- id: deploys
  on: [pre_tool_use]
  commands: [deploy]
  when: program.operands.len() > 0 && program.operands.first() != "staging"
  unless: program.has(["--dry-run"])
  decision: deny
  message: "`${program.line}` is for a human."
- id: keys
  on: [pre_tool_use]
  when: action.command.contains("sk-ant-")
  decision: ask
  message: A key.
"#;

#[test]
fn what_guards_said_is_explained_with_the_values_behind_it() {
    let scene = calling("cd x && deploy production --now");
    let called = explain(&scene, &["--last"]);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    snapshot("explanations", "explain__guard", &called.stdout);
    let shown = as_json(&scene);
    assert_eq!((&shown["same"], &shown["lost"]), (&json!(true), &json!([])), "{shown:#}");
    assert_eq!(shown["judged_again"]["guards"][0]["conditions"].as_array().unwrap().len(), 2);
}

#[test]
fn guards_that_were_changed_since_and_masked_secrets_are_told() {
    let scene = calling("deploy production");
    scene.world.put(
        "/work/.policyd/policies/guards.yaml",
        GUARDS.replace("\"staging\"", "\"production\""),
    );
    let shown = as_json(&scene);
    assert_eq!(shown["differences"], json!(["deploys: fired, and silent judged again"]));
    assert!(
        shown["lost"][0].as_str().unwrap().contains("has changed; the explanation"),
        "{shown:#}"
    );

    let scene = calling("echo sk-ant-abcdefghijklmnopqrstuvwxyz0123456789");
    let shown = as_json(&scene);
    assert_eq!(shown["lost"], json!(["secrets of the call masked in the log: 1"]));
    assert_eq!(shown["differences"], json!(["keys: fired, and silent judged again"]));
}

#[test]
fn a_logged_call_holds_no_secret_in_its_paths_either() {
    let scene = Scene::new();
    scene.world.put_link("/work", "/data/work");
    scene.world.put_folder("/data/work");
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let payload = json!({"session_id": "session-1", "cwd": "/work", "tool_name": "Bash",
        "hook_event_name": "PreToolUse",
        "tool_input": {"command": format!("git reset --hard && deploy {secret}")}});
    scene.call("pre-tool-use", &payload.to_string(), &[]);
    let log = String::from_utf8(scene.world.get(LOG).unwrap()).unwrap();
    assert!(log.contains("git reset --hard") && log.contains("/data/work"), "{log}");
    assert!(!log.contains(secret), "{log}");
}
