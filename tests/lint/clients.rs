//! What a client cannot do with a pack, where the client is named.

use policyd::harness;
use policyd::lint::Profile;

use crate::subjects::{consideration, look_for};

/// What `policyd lint --harness NAME` says of a consideration with these lines.
fn found(name: &str, lines: &str) -> Vec<String> {
    let text = consideration("mine", &format!("  satisfied: todos.open == 0\n{lines}"));
    let text = text.replace("severity: warning", "severity: blocker");
    let reviewed =
        look_for(harness::find(name), &[("considerations.yaml", &text)], Profile::Default);
    let found = reviewed.findings.into_iter();
    found.filter(|it| it.code == "not-in-harness").map(|it| it.message).collect()
}

#[test]
fn a_blocker_is_told_where_the_event_cannot_be_blocked() {
    let on = "  on: [session_start]\n";
    assert_eq!(found("opencode", on), ["OpenCode does not support `block` at `session_start`"]);
    assert_eq!(
        found("opencode", &format!("{on}  mode: warn\n")),
        [""; 0],
        "it never wants to block"
    );
    for client in policyd::harness::HARNESSES {
        assert_eq!(found(client.name, ""), [""; 0], "{}", client.name);
    }
}

#[test]
fn an_event_that_is_not_reported_is_told() {
    let on = "  on: [subagent_stop]\n";
    assert_eq!(found("gemini", on), ["Gemini CLI does not report `subagent_stop`"]);
    assert_eq!(found("codex", on), [""; 0]);
    assert_eq!(found("no such client", on), [""; 0], "none is named");
}
