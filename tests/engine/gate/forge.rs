//! The forge: pull requests and their checks through a scripted `gh`, `glab` or `tea`; seed 001
//! row by row.
use std::time::Duration;

use policyd::world::fake::FakeWorld;
use policyd::world::{CommandOutput, WorldError};
use serde_json::{Value, json};

use super::scene::Scene;
use crate::support::snapshot;

const PREFERENCES: &str = "/work/.claude/context/USER_PREFERENCES.md";
const NO_AUTO_MERGE: &str = "**NEVER Merge PRs Without Explicit Permission**\n";

fn script_gh(world: &FakeWorld, gh: &Value) {
    script(world, "gh", gh);
}

/// Scripts a forge's program: `{json: …}`, `{stderr: …, code: n}`, `{stdout: …}`, `{seconds: n}`;
/// without an object it is not installed.
pub(crate) fn script(world: &FakeWorld, program: &str, answer: &Value) {
    if answer.is_null() {
        return;
    }
    let text = |key: &str| answer[key].as_str().unwrap_or_default().as_bytes().to_vec();
    let stdout =
        if answer["json"].is_null() { text("stdout") } else { answer["json"].to_string().into() };
    let code = i32::try_from(answer["code"].as_i64().unwrap_or(0)).unwrap();
    let output =
        CommandOutput { code: Some(code), stdout, stderr: text("stderr"), truncated: false };
    let takes = Duration::from_secs(answer["seconds"].as_u64().unwrap_or(0));
    let answer = if answer["missing"] == true { Err(WorldError::NotFound) } else { Ok(output) };
    world.script(&[program], answer, takes);
}

/// The verdict of a consideration in a report.
pub(crate) fn verdict(report: &Value, id: &str) -> Value {
    let verdicts = report["considerations"].as_array().unwrap();
    verdicts.iter().find(|it| it["id"] == id).unwrap().clone()
}

/// A session that pushed code with passing tests.
fn pushed() -> Vec<Value> {
    let mut events = vec![json!({"user": "Add a parser and open a pull request"})];
    events.push(json!({"tool": "Write", "input": {"file_path": "/work/src/a.rs", "content": "x"}}));
    events.push(json!({"claude_user_tool_result": "ok"}));
    for (command, output) in [
        ("cargo test", "test result: ok. 3 passed; 0 failed"),
        ("git push -u origin feat/x", "To github.com:a/b\n * [new branch] feat/x -> feat/x"),
    ] {
        events.push(json!({"tool": "Bash", "input": {"command": command}}));
        events.push(json!({"claude_user_tool_result": output}));
    }
    events.push(json!({"assistant": "Pushed."}));
    events
}

/// What `ci_status` says where `gh` answers so.
fn ci(gh: &Value, no_auto_merge: bool) -> Value {
    let mut scene = Scene::new();
    script_gh(&scene.world, gh);
    if no_auto_merge {
        scene.world.put(PREFERENCES, NO_AUTO_MERGE);
    }
    scene.events(&pushed());
    verdict(&scene.report(), "ci_status")
}

/// What is said about CI where only words tell of it; a machine without `gh`.
pub(crate) fn ci_status(input: &Value) -> Value {
    let mut scene = Scene::new();
    scene.world.set_env("POLICYD_SESSION_TYPE", "DEVELOPMENT");
    if let Some(text) = input["preferences_md"].as_str() {
        scene.world.put(PREFERENCES, text);
    }
    scene.events(input["events"].as_array().unwrap());
    let verdict = verdict(&scene.report(), "ci_status");
    json!({"satisfied": verdict["status"] != "unsatisfied"})
}

/// The pack's own expressions over an answer of `gh pr view`. With the preference a pull request
/// is judged by its checks alone, without it also by whether it can be merged.
pub(crate) fn pr_state_json(input: &Value) -> Value {
    let gh = json!({"json": input["gh_pr_view"]});
    let satisfied = |no_auto_merge| ci(&gh, no_auto_merge)["status"] == "satisfied";
    let mut scene = Scene::new();
    script_gh(&scene.world, &gh);
    let rule = json!([{"id": "can_merge", "category": "c", "question": "q", "severity": "warning",
        "satisfied": "probes.pr.text(\"mergeable\") == \"MERGEABLE\""}]);
    scene.world.put("/work/.policyd/policies/considerations.yaml", rule.to_string());
    scene.events(&pushed());
    let mergeable = verdict(&scene.report(), "can_merge")["status"] == "satisfied";
    json!({"ci_passing": satisfied(true), "pr_mergeable": mergeable, "all_passing": satisfied(false)})
}

/// A merged pull request is done.
pub(crate) fn evidence_pr(input: &Value) -> Value {
    let verified = ci(&json!({"json": input["gh_pr_view"]}), false)["status"] == "satisfied";
    json!({"type": "pr_merged", "verified": verified, "confidence": if verified { 1.0 } else { 0.0 }})
}

/// Checks that pass, whatever becomes of the pull request.
pub(crate) fn evidence_ci(input: &Value) -> Value {
    let mut answer = input["gh_pr_view"].clone();
    answer["state"] = "OPEN".into();
    let verified = ci(&json!({"json": answer}), true)["status"] == "satisfied";
    json!({"verified": verified, "confidence": if verified { 1.0 } else { 0.0 }})
}

fn open(rollup: Value) -> Value {
    json!({"json": {"number": 7, "state": "OPEN", "isDraft": false, "mergeable": "MERGEABLE",
        "statusCheckRollup": rollup}})
}

fn with(mut gh: Value, key: &str, value: impl Into<Value>) -> Value {
    gh["json"][key] = value.into();
    gh
}

fn run(conclusion: &str) -> Value {
    let status = if conclusion.is_empty() { "IN_PROGRESS" } else { "COMPLETED" };
    json!({"__typename": "CheckRun", "name": "build", "status": status, "conclusion": conclusion})
}

fn status(state: &str) -> Value {
    json!({"__typename": "StatusContext", "context": "ci/test", "state": state})
}

/// Situation, answer of `gh`, whether satisfied and consequence without and with the preference.
fn rows() -> Vec<(&'static str, Value, [&'static str; 2])> {
    [unanswered(), checks(), states()].concat()
}

fn unanswered() -> Vec<(&'static str, Value, [&'static str; 2])> {
    let failed = |stderr: &str| json!({"code": 1, "stderr": stderr});
    vec![
        ("gh is not installed", json!({"missing": true}), ["unsatisfied warns"; 2]),
        (
            "gh is not logged in",
            failed("To get started with GitHub CLI, please run:  gh auth login\n"),
            ["unsatisfied warns"; 2],
        ),
        (
            "no pull request",
            failed("no pull requests found for branch \"feat/x\"\n"),
            ["unsatisfied warns"; 2],
        ),
        ("gh fails otherwise", failed("HTTP 502: Bad Gateway\n"), ["unsatisfied warns"; 2]),
        (
            "gh does not answer in time",
            json!({"json": {}, "seconds": 30}),
            ["unsatisfied warns"; 2],
        ),
        ("gh answers with something else", json!({"stdout": "<html>"}), ["unsatisfied warns"; 2]),
    ]
}

fn checks() -> Vec<(&'static str, Value, [&'static str; 2])> {
    vec![
        ("a check run passes", open(json!([run("SUCCESS")])), ["satisfied none"; 2]),
        (
            "a check run fails",
            open(json!([run("SUCCESS"), run("FAILURE")])),
            ["unsatisfied blocks"; 2],
        ),
        ("a check run was cancelled", open(json!([run("CANCELLED")])), ["unsatisfied blocks"; 2]),
        ("a check run is stale", open(json!([run("STALE")])), ["unsatisfied warns"; 2]),
        (
            "a check run is under way",
            open(json!([run("SUCCESS"), run("")])),
            ["unsatisfied warns"; 2],
        ),
        (
            "skipped and neutral check runs",
            open(json!([run("SKIPPED"), run("NEUTRAL"), run("SUCCESS")])),
            ["satisfied none"; 2],
        ),
        ("a commit status passes", open(json!([status("SUCCESS")])), ["satisfied none"; 2]),
        (
            "a commit status fails",
            open(json!([status("SUCCESS"), status("FAILURE")])),
            ["unsatisfied blocks"; 2],
        ),
        ("a commit status is an error", open(json!([status("ERROR")])), ["unsatisfied blocks"; 2]),
        ("a commit status is pending", open(json!([status("PENDING")])), ["unsatisfied warns"; 2]),
        ("both shapes", open(json!([run("SUCCESS"), status("SUCCESS")])), ["satisfied none"; 2]),
        ("no checks at all", open(json!([])), ["satisfied none"; 2]),
        (
            "a check run without a result",
            open(json!([{"name": "build"}])),
            ["unsatisfied warns"; 2],
        ),
        ("an unknown conclusion", open(json!([run("BAFFLED")])), ["unsatisfied warns"; 2]),
    ]
}

fn states() -> Vec<(&'static str, Value, [&'static str; 2])> {
    let green = || open(json!([run("SUCCESS")]));
    vec![
        ("a draft", with(green(), "isDraft", true), ["unsatisfied warns"; 2]),
        (
            "a draft that fails",
            with(open(json!([run("FAILURE")])), "isDraft", true),
            ["unsatisfied blocks"; 2],
        ),
        (
            "a conflict",
            with(green(), "mergeable", "CONFLICTING"),
            ["unsatisfied blocks", "satisfied none"],
        ),
        (
            "the forge has not worked out whether it can be merged",
            with(green(), "mergeable", "UNKNOWN"),
            ["unsatisfied warns", "satisfied none"],
        ),
        ("merged", with(green(), "state", "MERGED"), ["satisfied none"; 2]),
        (
            "merged although a check failed",
            with(open(json!([run("FAILURE")])), "state", "MERGED"),
            ["satisfied none"; 2],
        ),
        ("closed without a merge", with(green(), "state", "CLOSED"), ["unsatisfied warns"; 2]),
        ("an unknown state", with(green(), "state", "BAFFLED"), ["unsatisfied warns"; 2]),
        (
            "neither a number nor whether it can be merged",
            json!({"json": {"state": "OPEN", "statusCheckRollup": [run("SUCCESS")]}}),
            ["unsatisfied warns", "satisfied none"],
        ),
    ]
}

#[test]
fn every_row_of_the_error_table() {
    let mut shown = String::new();
    for (situation, gh, expected) in rows() {
        shown.push_str(&format!("{situation}\n"));
        for (no_auto_merge, expected) in [false, true].into_iter().zip(expected) {
            let verdict = ci(&gh, no_auto_merge);
            let text = |key: &str| verdict[key].as_str().unwrap_or("-").to_owned();
            let got = format!("{} {}", text("status"), text("consequence"));
            assert_eq!(got, expected, "{situation}, preference {no_auto_merge}: {verdict:#}");
            let preference = if no_auto_merge { "no_auto_merge" } else { "no preference" };
            shown.push_str(&format!("  {preference}: {got}\n    {}\n", text("details")));
            if text("error") != "-" {
                shown.push_str(&format!("    error: {}\n", text("error")));
            }
            for evidence in verdict["evidence"].as_array().into_iter().flatten() {
                shown.push_str(&format!("    {}\n", evidence.as_str().unwrap()));
            }
        }
    }
    snapshot("decisions", "ci_status__every_row", shown.trim_end());
}

#[test]
fn a_preference_that_cannot_be_read_is_none() {
    for text in [&b"\xff\xfe NEVER"[..], b"", b"<!-- never merge PRs without permission -->"] {
        let mut scene = Scene::new();
        script_gh(&scene.world, &with(open(json!([])), "mergeable", "UNKNOWN"));
        scene.world.put(PREFERENCES, text);
        scene.events(&pushed());
        assert_eq!(verdict(&scene.report(), "ci_status")["status"], "unsatisfied");
    }
    let mut scene = Scene::new();
    script_gh(&scene.world, &with(open(json!([])), "mergeable", "UNKNOWN"));
    scene.world.put(PREFERENCES, NO_AUTO_MERGE);
    let why = WorldError::Io("Permission denied (os error 13)".to_owned());
    scene.world.refuse_always(policyd::world::fake::Op::Read, "USER_PREFERENCES.md", why);
    scene.events(&pushed());
    assert_eq!(verdict(&scene.report(), "ci_status")["status"], "unsatisfied", "fail-open");
}

#[test]
fn a_preference_changed_during_the_session_counts_at_the_next_stop() {
    let mut scene = Scene::new();
    script_gh(&scene.world, &with(open(json!([run("SUCCESS")])), "mergeable", "UNKNOWN"));
    scene.events(&pushed());
    let said = |scene: &Scene| {
        let verdict = verdict(&scene.report(), "ci_status");
        verdict["details"].as_str().unwrap().to_owned()
    };
    let undecided = "PR #7: GitHub does not report yet whether it can be merged";
    assert_eq!(said(&scene), undecided);
    scene.world.put(PREFERENCES, NO_AUTO_MERGE);
    assert_eq!(said(&scene), "PR #7 ready (CI passing, awaiting user approval)");
    scene.world.put(PREFERENCES, "Merge when it is green.\n");
    assert_eq!(said(&scene), undecided);
}

#[test]
fn a_preference_may_be_looked_for_once_in_a_session() {
    let mut scene = Scene::new();
    script_gh(&scene.world, &with(open(json!([run("SUCCESS")])), "mergeable", "UNKNOWN"));
    let once = "- {id: no_auto_merge, override: true, cache: session}\n";
    scene.world.put("/work/.policyd/policies/preferences.yaml", once);
    scene.world.put(PREFERENCES, NO_AUTO_MERGE);
    scene.events(&pushed());
    let found = |scene: &Scene| scene.report()["preferences"]["no_auto_merge"].clone();
    assert_eq!(found(&scene), true);
    scene.world.put(PREFERENCES, "Merge when it is green.\n");
    assert_eq!(found(&scene), true, "kept for the session");
    scene.world.put("/work/.policyd/policies/preferences.yaml", "[]");
    assert_eq!(found(&scene), false, "looked for again");
}

#[test]
fn a_forge_that_fails_again_and_again_is_left_alone() {
    let mut scene = Scene::new();
    script_gh(&scene.world, &json!({"code": 1, "stderr": "HTTP 502: Bad Gateway\n"}));
    scene.events(&pushed());
    let said = |scene: &Scene| {
        scene.world.advance(Duration::from_secs(60));
        verdict(&scene.report(), "ci_status")["error"].as_str().unwrap_or_default().to_owned()
    };
    let asked = |scene: &Scene| scene.world.ran().len();
    for _ in 0..3 {
        assert!(said(&scene).ends_with("exited with 1: HTTP 502: Bad Gateway"));
    }
    let rejected = said(&scene);
    assert!(rejected.starts_with("it failed too often and is not run for 4m"), "{rejected}");
    assert!(rejected.ends_with("HTTP 502: Bad Gateway"), "{rejected}");
    assert_eq!(asked(&scene), 3);
    // After the cooldown one call tries again; where it works, all do.
    scene.world.advance(Duration::from_secs(300));
    script_gh(&scene.world, &open(json!([run("SUCCESS")])));
    assert!(said(&scene).ends_with("Bad Gateway"), "the last scripted failure");
    scene.world.advance(Duration::from_secs(301));
    assert_eq!(said(&scene), "");
    assert_eq!(said(&scene), "");
    assert_eq!(asked(&scene), 6);
}

#[test]
fn what_a_forge_says_of_itself_is_no_failure_of_it() {
    let mut scene = Scene::new();
    script_gh(&scene.world, &json!({"code": 1, "stderr": "no pull requests found\n"}));
    scene.events(&pushed());
    for _ in 0..5 {
        let said = verdict(&scene.report(), "ci_status");
        assert_eq!(said["error"], "no pull request was found for this branch; run `gh pr create`");
    }
    assert_eq!(scene.world.ran().len(), 5);
}

/// A session on GitHub that edited code on a branch and published nothing.
fn edited_on(branch: &str) -> Scene {
    let mut scene = Scene::new();
    on(&scene.world, "git@github.com:a/b.git");
    let prompt = json!({"user": "Add a parser", "branch": branch});
    scene.events(&[&[prompt], &pushed()[1..5]].concat());
    scene.world.clear_log();
    scene
}

/// The project's remote.
fn on(world: &FakeWorld, address: &str) {
    world.put("/work/.git/config", format!("[remote \"origin\"]\n\turl = {address}\n"));
}

#[test]
fn nothing_published_asks_no_forge() {
    for branch in ["", "main"] {
        let scene = edited_on(branch);
        assert_eq!(verdict(&scene.report(), "ci_status")["status"], "skipped");
        assert_eq!(scene.world.ran(), [], "no process was run on `{branch}`");
    }
    let nowhere = edited_on("feat/x");
    on(&nowhere.world, "/srv/github/b.git");
    assert_eq!(verdict(&nowhere.report(), "ci_status")["status"], "skipped");
    assert_eq!(nowhere.world.ran(), []);
}

#[test]
fn a_branch_with_a_pull_request_is_told_of_its_checks_although_nothing_was_published_yet() {
    let scene = edited_on("feat/x");
    script_gh(&scene.world, &open(json!([run("FAILURE")])));
    let said = verdict(&scene.report(), "ci_status");
    assert_eq!(said["details"], "PR #7: CI checks are failing");
    assert_eq!(said["consequence"], "warns", "work that stays here holds nobody");
    // Without one that is open, or without the program, nothing is said.
    let closed = with(open(json!([run("FAILURE")])), "state", "CLOSED");
    let none = json!({"code": 1, "stderr": "no pull requests found"});
    for gh in [none, closed, json!({"missing": true})] {
        let scene = edited_on("feat/x");
        script_gh(&scene.world, &gh);
        assert_eq!(verdict(&scene.report(), "ci_status")["status"], "skipped", "{gh}");
        assert_eq!(scene.world.ran().len(), 1);
    }
}

#[test]
fn the_forge_is_the_one_the_remote_is_on() {
    for (address, id) in [
        ("git@github.com:a/b.git", "ci_status"),
        ("https://gitlab.example.org/a/b", "ci_status_gitlab"),
        ("ssh://git@codeberg.org/a/b", "ci_status_gitea"),
        ("https://git.example.org/a/b", "ci_status"),
        ("git@github.com:go-gitea/gitea.git", "ci_status"),
    ] {
        let mut scene = Scene::new();
        on(&scene.world, address);
        let report = scene.events(&pushed()).report();
        for it in ["ci_status", "ci_status_gitlab", "ci_status_gitea"] {
            let applies = verdict(&report, it)["status"] != "skipped";
            assert_eq!(applies, it == id, "{it} for {address}");
        }
    }
}
