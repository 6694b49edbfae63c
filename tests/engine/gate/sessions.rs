//! Whole sessions: the report of rich ones as text, and an amplihack file of all rules.
use serde_json::{Value, json};

use super::forge;
use super::scene::Scene;
use crate::support::snapshot;

fn ran(command: &str, output: &str, failed: bool) -> [Value; 2] {
    [
        json!({"tool": "Bash", "input": {"command": command}}),
        json!({"claude_user_tool_result": output, "is_error": failed}),
    ]
}

fn wrote(path: &str, content: &str) -> [Value; 2] {
    [
        json!({"tool": "Write", "input": {"file_path": path, "content": content}}),
        json!({"claude_user_tool_result": "File created successfully"}),
    ]
}

/// What a person reads of a stop.
fn report(scene: &Scene) -> String {
    let arguments = ["policyd", "eval", "--hook", "stop", "--format", "text", "--dry-run"];
    scene.run(&arguments, scene.payload(&json!({})).to_string().as_bytes()).stdout
}

#[test]
fn a_rich_development_session() {
    let mut scene = Scene::new();
    let failing = json!({"json": {"number": 41, "state": "OPEN", "isDraft": false,
        "mergeable": "MERGEABLE", "reviewDecision": "CHANGES_REQUESTED", "statusCheckRollup": [
            {"name": "build", "status": "COMPLETED", "conclusion": "SUCCESS"},
            {"name": "test", "status": "COMPLETED", "conclusion": "FAILURE"}]}});
    forge::script(&scene.world, "gh", &failing);
    let todos = json!({"todos": [{"content": "Write the command", "status": "completed"},
        {"content": "Document it", "status": "pending"}]});
    scene.events(&[json!({"user": "Add a new export command, and address the review comments"})]);
    scene.events(&[
        json!({"tool": "TodoWrite", "input": todos}),
        json!({"claude_user_tool_result": "ok"}),
    ]);
    scene.events(&wrote("/work/src/export.py", "def main(parser):\n    parser.add_argument('--out')\n    # workaround: the writer is slow\n    raise NotImplementedError\n"));
    scene.events(&wrote("/work/debug_output.txt", "x\n"));
    scene.events(&ran("ruff check src", "src/export.py:1:1: F401\nFound 1 error.", true));
    scene.events(&ran("pytest -q", "3 passed in 0.1s", false));
    scene.events(&wrote(
        "/work/src/export.py",
        "def main(parser):\n    parser.add_argument('--out')\n    # TODO: write it\n",
    ));
    scene.events(&ran("pre-commit run --all-files", "ruff....Passed", false));
    scene.events(&ran(
        "git status",
        "On branch feat/export\nYour branch is behind 'origin/main' by 5 commits",
        false,
    ));
    scene.events(&ran("git commit -am export --no-verify", "[feat/export 1] export", false));
    scene.events(&ran("git push", "To github.com:a/b", false));
    scene.events(&ran(
        "gh pr create --title Export --body 'Quick fix'",
        "https://github.com/a/b/pull/41",
        false,
    ));
    scene.events(&ran("gh pr checks", "test\tfail\t1m", true));
    scene.events(&[json!({"assistant": "The command is there. Still working on it. Next steps:\n- write the docs"})]);
    snapshot("decisions", "session__development", report(&scene));
}

#[test]
fn a_rich_investigation_session() {
    let mut scene = Scene::new();
    scene.events(&[
        json!({"user": "Investigate why the cache is slow and write the findings into a document"}),
    ]);
    for path in ["cache.rs", "store.rs", "main.rs"] {
        scene.events(&[
            json!({"tool": "Read", "input": {"file_path": path}}),
            json!({"claude_user_tool_result": "…"}),
        ]);
    }
    scene.events(&[json!({"assistant": "Which machine? Which version? Which load? Which disk?\nI will now look at the profile."})]);
    snapshot("decisions", "session__investigation", report(&scene));
}

#[test]
fn informational_sessions_are_not_bothered() {
    for (asked, answered) in [
        (
            "What does this project do?",
            "It parses logs. Want more? Shall I look? Which part? The API?",
        ),
        ("How large is cli.py?", "It has 300 lines. I have not finished counting the comments."),
        ("Is the next step to rebase?", "Next steps: rebase. CI is failing on main."),
        ("thanks!", "You are welcome."),
        ("", "Hello?"),
    ] {
        for reads in 0..2 {
            let mut scene = Scene::new();
            scene.events(&[json!({"user": asked})]);
            for _ in 0..reads {
                scene.events(&ran("wc -l cli.py", "300 cli.py", false));
            }
            scene.events(&[json!({"assistant": answered})]);
            scene.world.set_env("POLICYD_SESSION_TYPE", "INFORMATIONAL");
            assert_eq!(scene.stop().stdout, "", "{asked}");
        }
    }
}

/// amplihack's rules: id, severity, session types.
const AMPLIHACK: [(&str, &str, &str); 25] = [
    ("todos_complete", "blocker", "D"),
    ("agent_unnecessary_questions", "warning", "*"),
    ("objective_completion", "blocker", "*"),
    ("documentation_updates", "warning", "DMV"),
    ("tutorial_needed", "warning", "D"),
    ("feature_docs_discoverable", "warning", "D"),
    ("presentation_needed", "warning", "D"),
    ("next_steps", "blocker", "DV"),
    ("docs_organization", "warning", "MV"),
    ("workflow_invocation", "blocker", "DV"),
    ("skill_invocation", "blocker", "DVM"),
    ("no_direct_main_commit", "blocker", "D"),
    ("dev_workflow_complete", "blocker", "D"),
    ("investigation_docs", "warning", "V"),
    ("philosophy_compliance", "blocker", "DM"),
    ("shortcuts", "warning", "D"),
    ("local_testing", "blocker", "D"),
    ("interactive_testing", "warning", "D"),
    ("unrelated_changes", "warning", "D"),
    ("root_pollution", "warning", "D"),
    ("pr_description", "warning", "D"),
    ("review_responses", "blocker", "D"),
    ("ci_status", "blocker", "D"),
    ("branch_rebase", "warning", "D"),
    ("ci_precommit_mismatch", "warning", "D"),
];

/// The file as amplihack writes it, with a rule of a user's own at the end.
fn amplihack_file() -> String {
    let mut text = String::from("# Power-Steering Considerations Configuration\n\n");
    for (id, severity, types) in AMPLIHACK {
        let names = types.chars().map(|it| match it {
            'D' => "\"DEVELOPMENT\"",
            'M' => "\"MAINTENANCE\"",
            'V' => "\"INVESTIGATION\"",
            _ => "\"*\"",
        });
        let types = names.collect::<Vec<_>>().join(", ");
        let enabled = id != "presentation_needed";
        text.push_str(&format!(
            "- id: {id}\n  category: Session Completion & Progress\n  question: Is {id} (e.g., pytest, cargo test) well - not just half?\n  description: Checks {id} - \"next steps\" or so\n  severity: {severity}\n  checker: _check_{id}\n  enabled: {enabled}\n  applicable_session_types: [{types}]\n\n"
        ));
    }
    text.push_str("- id: custom_security_scan\n  category: Security & Compliance\n  question: Were security scans performed?\n  description: Verifies security scanning tools were run\n  severity: blocker\n  checker: generic\n  enabled: true\n");
    text
}

#[test]
fn an_amplihack_file_of_all_rules_loads_unchanged_and_works() {
    let mut scene = Scene::new();
    scene.world.put("/work/.policyd/policies/considerations.yaml", amplihack_file());
    let lint = scene.run(&["policyd", "lint"], b"");
    assert_eq!((lint.code, lint.stdout.contains("0 errors")), (0, true), "{}", lint.stdout);
    scene.events(&[json!({"user": "Add a parser"})]);
    scene.events(&wrote("/work/src/a.py", "def f():\n    raise NotImplementedError\n"));
    scene.events(&[json!({"assistant": "Done."})]);
    let report = scene.report();
    for (id, ..) in AMPLIHACK {
        let verdict = forge::verdict(&report, id);
        assert_ne!(verdict["status"], "unknown", "{verdict:#}");
    }
    for (id, consequence) in [
        ("local_testing", "blocks"),
        ("philosophy_compliance", "blocks"),
        ("custom_security_scan", "warns"),
        ("presentation_needed", "none"),
    ] {
        assert_eq!(forge::verdict(&report, id)["consequence"], consequence, "{id}");
    }
    assert_eq!(scene.work().stop().decision(), "block");
}
