//! What one failed run leaves: one item of the inbox, which one answer clears.

use std::time::Duration;

use policyd::world::CommandOutput;
use serde_json::Value;

use super::stage::{Stage, refused};

#[test]
fn one_failure_is_one_item_of_the_inbox_and_one_answer_clears_it() {
    let failed = || {
        let stage = Stage::new();
        stage.play(refused("authentication_failed", "Invalid API key"));
        assert_eq!(stage.run(&[]).status(), "human_needed");
        stage
    };
    let items = |stage: &Stage| {
        let said = stage.call(&["inbox", "--format", "json"]);
        let json: Value = serde_json::from_str(&said.out).unwrap();
        json["items"].as_array().unwrap().clone()
    };
    let kinds = |stage: &Stage| -> Vec<String> {
        items(stage).iter().map(|it| it["kind"].as_str().unwrap().to_owned()).collect()
    };
    let stage = failed();
    let found = items(&stage);
    assert_eq!(kinds(&stage), ["question"], "{found:#?}");
    let text = found[0]["text"].as_str().unwrap();
    assert!(text.contains("(also: breaker api/agent, run "), "{text}");
    let id = found[0]["id"].as_str().unwrap();
    let said = stage.call(&["inbox", "answer", id, "yes", "new key"]);
    assert!(
        said.out.contains("reset breaker api/agent") && said.out.contains("policyd run --resume"),
        "{said:?}"
    );
    // The run continues in a terminal.
    assert_eq!(kinds(&stage), ["run"]);
    let document = stage.call(&["escalation", "show", id]).out;
    assert!(document.contains("### Decision\nApproved by ada at "), "{document}");
    assert!(document.contains(": new key\n"), "{document}");

    // A no gives the run up. Its breaker still waits, because other runs need the key, too.
    let stage = failed();
    let id = items(&stage)[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(stage.call(&["inbox", "answer", &id, "no"]).code, 0);
    assert_eq!(kinds(&stage), ["breaker"]);
    let rows = stage.call(&["status", "--all"]).out;
    assert!(rows.contains("breaker api/agent: waits for"), "{rows}");
}

#[test]
fn one_failure_is_one_alert_with_the_command_that_answers() {
    let channels = "channels: [{id: a, kind: command, command: [notify], severity: low}]\n";
    let sent = |error: &str| {
        let stage = Stage::new();
        stage.world.put("/home/me/.config/policyd/config.yaml", channels);
        let done =
            CommandOutput { code: Some(0), stdout: vec![], stderr: vec![], truncated: false };
        stage.world.script(&["notify"], Ok(done), Duration::ZERO);
        stage.play(refused("authentication_failed", error));
        assert_eq!(stage.run(&[]).status(), "human_needed");
        let ran = stage.world.ran().into_iter().filter(|it| it.argv[0] == "notify");
        ran.map(|it| String::from_utf8(it.stdin).unwrap()).collect::<Vec<_>>()
    };
    let first = sent("Invalid API key");
    assert_eq!(first.len(), 1, "{first:#?}");
    let text = &first[0];
    assert!(text.starts_with("# work: a human must decide\n"), "{text}");
    assert!(text.contains("Of the same failure: "), "{text}");
    for it in ["breaker api/agent is open", "run ended: human_needed", "dead letter run/"] {
        assert!(text.contains(it), "{it}: {text}");
    }
    assert!(
        text.contains("Next: `policyd inbox answer ") && text.contains(" yes|no [TEXT]`"),
        "{text}"
    );
    // Without a question, the run asks.
    let second = sent("No such <b>key");
    assert_eq!(second.len(), 1, "{second:#?}");
    assert!(second[0].starts_with("# work: run ended: human_needed\n"), "{}", second[0]);
    assert!(second[0].contains("breaker api/agent is open"), "{}", second[0]);
    assert!(second[0].contains("No such &lt;b>key"), "texts of agents are text: {}", second[0]);
}
