//! `policyd pause` and `policyd resume`: off for a while, told everywhere, over by itself.

use std::path::{Path, PathBuf};
use std::time::Duration;

use policyd::store::user_choices::UserChoiceStore;
use policyd::world::WorldError;
use policyd::world::fake::Op;
use serde_json::{Value, json};

use super::scene::{Called, Scene};

const MINUTE: Duration = Duration::from_secs(60);

/// Where the choices of the user are kept.
fn file(scene: &Scene) -> PathBuf {
    UserChoiceStore::new(&scene.world, Path::new("/work/.policyd")).path().unwrap()
}

fn is_paused(scene: &Scene) -> bool {
    let store = UserChoiceStore::new(&scene.world, Path::new("/work/.policyd"));
    !store.load().unwrap().pauses.is_empty()
}

fn called(scene: &Scene, line: &str) -> Called {
    let words: Vec<&str> = ["policyd"].into_iter().chain(line.split_whitespace()).collect();
    scene.run(&words, b"")
}

/// A session that is blocked.
fn untested() -> Scene {
    let mut scene = Scene::new();
    scene.events(&[
        json!({"user": "Add a parser"}),
        json!({"tool": "Write", "input": {"file_path": "/work/a.py", "content": "x = 1\n"}}),
        json!({"claude_user_tool_result": "ok"}),
    ]);
    scene
}

fn log(scene: &Scene) -> Vec<Value> {
    let text = scene.world.get("/work/.policyd/logs/decisions.jsonl").unwrap();
    let text = String::from_utf8(text).unwrap();
    text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

#[test]
fn a_pause_is_told_everywhere_and_is_over_by_itself() {
    let scene = untested();
    let words = ["policyd", "pause", "30m", "--reason", "a  demo: token=abc123def"];
    let paused = scene.run(&words, b"");
    assert_eq!(paused.code, 0, "{paused:?}");
    let said = "paused until 2026-01-01T00:30:00.000Z (30m left): a demo: token=«masked»; \
                `policyd resume` ends it\n";
    assert_eq!(paused.stdout, said);
    scene.world.advance(MINUTE * 10);
    let stop = scene.stop();
    assert_eq!(stop.decision(), "approve");
    let notice = stop.json()["systemMessage"].as_str().unwrap().to_owned();
    assert!(notice.starts_with("policyd: paused until 2026-01-01T00:30"), "{notice}");
    let status = called(&scene, "status").stdout;
    assert!(status.contains("policyd is paused until 2026-01-01T00:30"), "{status}");
    assert!(notice.contains("(20m left): a demo"), "{notice}");
    let report = scene.report();
    assert!(report["no_opinion"].as_str().unwrap().starts_with("paused until"), "{report}");
    let entries = log(&scene);
    assert_eq!((&entries[0]["event"], &entries[1]["event"]), (&json!("pause"), &json!("stop")));
    assert!(entries[1]["no_opinion"].as_str().unwrap().starts_with("paused"), "{}", entries[1]);
    let rules = called(&scene, "rules");
    assert!(rules.stderr.contains("policyd is paused until"), "{}", rules.stderr);
    let rules = called(&scene, "rules --format json").json();
    assert!(rules["paused"][0].as_str().unwrap().contains("a demo"), "{}", rules["paused"]);
    let mut guards = rules["guards"].as_array().unwrap().iter();
    let guard = guards.find(|it| it["id"] == "rm_recursive").unwrap();
    assert_eq!(guard["commands"], json!(["@deletes"]));
    let listed = called(&scene, "log").stdout;
    assert!(listed.lines().nth(1).unwrap().contains("paused"), "{listed}");
    let line = format!("explain {}", entries[1]["id"].as_str().unwrap());
    assert!(called(&scene, &line).stdout.contains("not evaluated\npaused until"));
    let counts = called(&scene, "log --summary --format json").json();
    assert_eq!(counts["stops"], 2, "switching is no stop: {counts}");

    scene.world.advance(MINUTE * 20);
    assert_eq!(scene.stop().decision(), "block", "it is over");
    assert_eq!(called(&scene, "rules --format json").json()["paused"], json!([]));
    assert_eq!(called(&scene, "resume").code, 1, "nothing is paused any more");
    assert!(!is_paused(&scene));
}

#[test]
fn resume_ends_a_pause() {
    let scene = untested();
    assert_eq!(called(&scene, "resume").code, 1);
    assert_eq!(called(&scene, "pause").code, 0, "30 minutes by default");
    assert_eq!(called(&scene, "pause 1h").code, 0, "the new one counts");
    let again = called(&scene, "rules --format json").json()["paused"].clone();
    assert_eq!(again.as_array().unwrap().len(), 1);
    assert!(again[0].as_str().unwrap().contains("(1h left)"), "{again}");
    let resumed = called(&scene, "resume");
    assert_eq!((resumed.code, resumed.stdout.as_str()), (0, "resumed\n"));
    assert_eq!(scene.stop().decision(), "block");
    assert!(log(&scene).iter().any(|it| it["event"] == "resume"));
}

#[test]
fn one_session_is_paused_and_the_others_are_not() {
    let mut scene = untested();
    let other = |scene: &Scene| {
        let payload = scene.payload(&json!({"session_id": "session-2"}));
        scene.call("stop", &payload.to_string(), &[]).decision()
    };
    let new = called(&scene, "pause 1h --session session-1");
    assert!(new.stderr.contains("it is taken as a whole id"), "{}", new.stderr);
    assert_eq!(
        (scene.stop().decision(), other(&scene)),
        ("approve".to_owned(), "block".to_owned())
    );
    called(&scene, "resume");
    assert_eq!(scene.stop().decision(), "block");
    assert_eq!(called(&scene, "pause 1h --session session-").code, 2, "two begin so");
    assert_eq!(called(&scene, "pause 1h --session ../x").code, 2);
    assert_eq!(called(&scene, "pause 1h --session session-2").code, 0);
    assert_eq!(other(&scene), "approve");
    assert_eq!(called(&scene, "resume --session session-1").code, 1, "it is another's");
    assert_eq!(called(&scene, "resume --session session-2").stdout, "resumed session session-2\n");
    scene.work();
    assert_eq!(other(&scene), "block");
}

#[test]
fn a_duration_that_is_none_is_a_usage_error_with_the_form() {
    let scene = untested();
    for (text, said) in [
        (
            "30",
            "`30` is not a duration\nhelp: use a number with a unit, such as `30m`, `2h` or `1h30m`",
        ),
        ("30min", "`30min` is not a duration"),
        ("half", "`half` is not a duration"),
        ("0m", "pause duration must be greater than zero"),
        (
            "8d",
            "`8d` is longer than 7d; to disable policyd in this project until you enable it, run `policyd disable`",
        ),
        ("99999999w", "is longer than 7d"),
    ] {
        let wrong = called(&scene, &format!("pause {text}"));
        assert_eq!(wrong.code, 2, "{text}");
        assert!(wrong.stderr.contains(said), "{}", wrong.stderr);
    }
    assert!(!is_paused(&scene));
    assert_eq!(scene.stop().decision(), "block");
}

#[test]
fn damaged_choices_pause_nothing_and_are_reported() {
    let scene = untested();
    let choices = |pauses: &str| format!(r#"{{"version": 1, "pauses": {pauses}}}"#);
    let pause = |from: &str, to: &str| {
        choices(&format!(r#"[{{"since": "{from}T00:00:00Z", "until": "{to}T00:00:00Z"}}]"#))
    };
    for (number, (text, reported)) in [
        ("{".to_owned(), true),
        ("[]".to_owned(), true),
        (choices(r#"[{"until": "2026-01-01T00:30:00Z"}]"#), true),
        (choices("[]"), false),
        (pause("2026-01-01", "2027-01-01"), false),
        (pause("2026-01-02", "2026-01-03"), false),
    ]
    .into_iter()
    .enumerate()
    {
        scene.world.put(file(&scene), &text);
        // Each stop belongs to a new session.
        let payload = scene.payload(&json!({"session_id": format!("s{number}")}));
        let stop = scene.call("stop", &payload.to_string(), &[]);
        assert_eq!(stop.decision(), "block", "{text}");
        let said = stop.json()["systemMessage"].as_str().unwrap_or_default().contains("not used");
        assert_eq!(said, reported, "{text}");
    }
    scene.world.put(file(&scene), "{");
    let refused = called(&scene, "pause");
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("remove it to begin again"), "{}", refused.stderr);
    assert_eq!(scene.world.get(file(&scene)).unwrap(), b"{", "it is not overwritten");
}

#[test]
fn an_agent_does_not_pause_its_own_gate() {
    let scene = untested();
    scene.world.set_env("CLAUDECODE", "1");
    let refused = called(&scene, "pause");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("the variable CLAUDECODE of Claude Code"), "{refused:?}");
    assert_eq!(scene.stop().decision(), "block");
}

#[test]
fn a_pause_in_the_project_pauses_nothing() {
    let scene = untested();
    let pause = r#"{"version": 1, "pauses": [{"since": "2026-01-01T00:00:00Z",
        "until": "2026-01-03T00:00:00Z", "reason": "x"}]}"#;
    scene.world.put("/work/.policyd/paused.json", pause);
    scene.world.put("/work/.policyd/projects/work.json", pause);
    assert_eq!(scene.stop().decision(), "block");
}

#[test]
fn policyd_is_disabled_until_the_user_enables_it_and_says_so() {
    let scene = untested();
    let said = called(&scene, "disable --reason demo");
    assert_eq!(said.code, 0, "{said:?}");
    for (event, name) in [("session-start", "SessionStart"), ("stop", "Stop")] {
        let payload = scene.payload(&json!({"source": "startup", "hook_event_name": name}));
        let answer = scene.call(event, &payload.to_string(), &[]);
        let notice = answer.json()["systemMessage"].as_str().unwrap_or_default().to_owned();
        assert!(notice.contains("disabled in this project since 2026-01-01"), "{event}: {notice}");
        assert!(notice.contains("demo; `policyd enable` ends it"), "{event}: {notice}");
    }
    let events: Vec<_> = log(&scene).iter().map(|it| it["event"].clone()).collect();
    assert_eq!(events, ["disable", "session_start", "stop"]);
    assert_eq!(called(&scene, "enable").code, 0);
    assert_eq!(scene.stop().decision(), "block");
    assert_eq!(called(&scene, "enable").code, 1, "it was enabled before");
}

#[test]
fn a_switch_file_counts_only_if_the_user_honors_it() {
    let config = ".claude/tools/amplihack/.power_steering_config";
    for file in
        [".disabled", ".policyd/.disabled", ".claude/runtime/power-steering/.disabled", config]
    {
        let mut scene = untested();
        let path = format!("/work/{file}");
        scene.world.put(&path, if file == config { r#"{"enabled": false}"# } else { "" });
        let ignored = scene.stop();
        assert_eq!(ignored.decision(), "block", "{file}");
        let notice = ignored.json()["systemMessage"].as_str().unwrap_or_default().to_owned();
        assert!(notice.contains(file) && notice.contains("is ignored"), "{file}: {notice}");
        assert_eq!(called(&scene, "trust --switch-files").code, 0);
        let honored = scene.stop();
        assert_eq!(honored.decision(), "approve", "{file}");
        let notice = honored.json()["systemMessage"].as_str().unwrap_or_default().to_owned();
        assert!(notice.contains(file) && notice.contains("disabled"), "{file}: {notice}");
        assert_eq!(called(&scene, "trust --switch-files --revoke").code, 0);
        assert_eq!(scene.work().stop().decision(), "block", "{file}");
    }
}

#[test]
fn a_pause_that_cannot_be_written_is_no_pause() {
    let scene = untested();
    let full = WorldError::Io("disk full".to_owned());
    scene.world.refuse_always(Op::Write, "", full.clone());
    scene.world.refuse_always(Op::Append, "", full);
    let refused = called(&scene, "pause");
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("nothing is paused"), "{}", refused.stderr);
    assert!(!is_paused(&scene));
}
