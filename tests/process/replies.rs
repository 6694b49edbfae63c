//! Answers that arrive as signed webhooks at the dashboard.

use std::fs;

use hmac::{Hmac, Mac};
use policyd::record::alert::base64;
use policyd::world::World;
use policyd::world::real::RealWorld;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::dashboard::{Answer, Dashboard, busy};
use crate::machine::{Machine, read_log};
use crate::shared_answers::{CALLS, begin_later, blocked_call, is_denied};
use crate::shared_store::{done, host};
use crate::support::postgres;

const KEY: &str = "0123456789abcdef";

/// A dashboard that accepts replies.
fn dashboard(machine: &Machine) -> Dashboard {
    fs::write(machine.path("reply-key"), format!("{KEY}\n")).unwrap();
    Dashboard::open(machine, &["--reply-key", "../reply-key"])
}

/// Sends a reply as a chat does: without a cookie, and by another name of the host.
fn send(dashboard: &Dashboard, key: &str, seconds: i64, body: &Value) -> Answer {
    let body = body.to_string();
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
    mac.update(format!("m1.{seconds}.{body}").as_bytes());
    let signature = format!("v1,{}", base64(&mac.finalize().into_bytes()));
    let headers = [
        ("cookie", ""),
        ("host", "policyd.example.org"),
        ("content-type", "application/json"),
        ("webhook-id", "m1"),
        ("webhook-timestamp", &seconds.to_string()),
        ("webhook-signature", &signature),
    ];
    dashboard.send("POST /reply", &headers, &body)
}

fn now() -> i64 {
    RealWorld::new().now().millis().div_euclid(1_000)
}

#[test]
fn a_signed_webhook_answers_a_question_once() {
    let machine = busy();
    let dashboard = dashboard(&machine);
    let questions = || -> Value {
        let listed = machine.run(&["escalation", "list", "--all", "--format", "json"], b"");
        serde_json::from_str(listed.stdout.lines().next().unwrap()).unwrap()
    };
    let reply = |approve: bool| {
        json!({"project": machine.project, "id": questions()["id"], "kind": "escalation", "approve": approve,
            "text": "use the vault", "by": "ada"})
    };
    for (key, seconds, expected) in
        [("another key of that length", now(), 401), (KEY, now() - 600, 401), ("", now(), 401)]
    {
        let answer = send(&dashboard, key, seconds, &reply(true));
        assert_eq!(answer.status, expected, "{answer:?}");
    }
    assert_eq!(questions()["status"], "open", "nothing was answered");
    let unknown = send(&dashboard, KEY, now(), &json!({"project": "/x", "id": "1"}));
    assert!(unknown.status == 409 && unknown.body.contains("The reply is invalid"), "{unknown:?}");
    let first = send(&dashboard, KEY, now(), &reply(true));
    assert_eq!((first.status, first.body.as_str()), (200, "The answer is recorded."));
    let closed = questions();
    assert_eq!(closed["status"], "approved");
    assert_eq!((&closed["decision"], &closed["by"]), (&json!("use the vault"), &json!("ada")));
    let second = send(&dashboard, KEY, now(), &reply(false));
    assert!(second.status == 409 && second.body.contains("first answer stays"), "{second:?}");
}

#[test]
fn a_dashboard_without_a_key_accepts_no_reply() {
    let machine = busy();
    let dashboard = Dashboard::open(&machine, &[]);
    let reply = json!({"project": machine.project, "id": "1", "kind": "escalation", "approve": true, "by": "ada"});
    assert_eq!(send(&dashboard, "", now(), &reply).status, 404);
    fs::write(machine.path("short"), "secret\n").unwrap();
    let short = machine.human(&["dashboard", "--reply-key", "../short"]);
    assert!(short.code == Some(2) && short.stderr.contains("shorter than 16"), "{short:?}");
}

#[test]
fn a_signed_webhook_answers_a_blocked_call_of_another_host() {
    let test = "a_signed_webhook_answers_a_blocked_call_of_another_host";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let [one, other] = [host(&url, CALLS), host(&url, CALLS)];
    done(&one.run(&["store", "init"], b""));
    assert!(is_denied(&blocked_call(&one)));
    assert!(is_denied(&blocked_call(&one)));
    one.stop().answer();
    // The host of the call logs the request once; a channel sends it as an alert.
    let log = read_log(&one.file(".policyd/logs/decisions.jsonl"));
    let requests: Vec<&Value> = log.iter().filter(|it| it["event"] == "call_request").collect();
    assert_eq!(requests.len(), 1, "{requests:?}");
    let id = &requests[0]["notice"]["subject"];
    other.stop().answer();
    let dashboard = dashboard(&other);
    let reply = json!({"project": one.project, "id": id, "kind": "call_request", "approve": true, "by": "ada"});
    let answer = send(&dashboard, KEY, now(), &reply);
    assert_eq!((answer.status, answer.body.as_str()), (200, "The answer is recorded."));
    begin_later(&one).answer();
    assert!(!is_denied(&blocked_call(&one)), "the call passes");
    let logged = one.run(&["log", "--format", "json"], b"");
    assert!(logged.stdout.contains("allowed once by ada"), "{logged:?}");
}
