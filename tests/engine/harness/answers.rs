//! Every event of every client: input, what is understood of it, and what each decision is said as.

use std::fmt::Write as _;

use policyd::evaluation::combine::Decision;
use policyd::facts::event::EventKind;
use policyd::harness::{Capability, ClientEvent, HARNESSES, Harness};
use policyd::hook::payload::{self, PayloadExpectation};
use policyd::hook::{Caller, HookResponse, adapt, speak};
use policyd::limits::SPOKEN_CHARS_MAX;
use serde_json::{Map, Value, json};

use crate::support::snapshot;

/// A payload for each event of a client: recorded ones where there are some, shortened; else as its
/// documentation has them.
pub(crate) fn payloads(harness: &Harness) -> Map<String, Value> {
    let path = format!(
        "{}/tests/engine/harness/payloads/{}.json",
        env!("CARGO_MANIFEST_DIR"),
        harness.name
    );
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn full(decision: Decision) -> HookResponse {
    let changed = decision <= Decision::Ask;
    HookResponse {
        decision,
        reason: "because of a rule".to_owned(),
        notice: Some("for the user".to_owned()),
        context: Some("for the agent".to_owned()),
        updated_input: changed.then(|| json!({"command": "ls"})),
        updated_output: None,
        override_hint: Some("policyd allow --call K7Q2M4XB".into()),
    }
}

fn bare(decision: Decision) -> HookResponse {
    HookResponse { decision, reason: "because of a rule".to_owned(), ..HookResponse::default() }
}

/// Name of the event in answers that several events have in common.
const EVENT: &str = "EVENT";

#[test]
fn every_event_of_every_client() {
    for harness in HARNESSES {
        let payloads = payloads(harness);
        let mut text = String::new();
        let mut answers: Vec<(String, Vec<&str>)> = Vec::new();
        for moment in harness.moments {
            let payload = payloads.get(moment.native);
            let payload = payload.unwrap_or_else(|| panic!("{}: no payload", moment.native));
            let (understood, spoken) = situation(harness, moment, payload);
            writeln!(text, "{}: {understood}", moment.native).unwrap();
            let spoken = spoken.replace(moment.native, EVENT);
            match answers.iter_mut().find(|(known, _)| *known == spoken) {
                Some((_, events)) => events.push(moment.native),
                None => answers.push((spoken, vec![moment.native])),
            }
        }
        for (spoken, events) in answers {
            write!(text, "\n# {}\n{spoken}", events.join(", ")).unwrap();
        }
        snapshot("harness", harness.name, text);
    }
}

/// What is understood of an event, and how each decision is said.
fn situation(
    harness: &'static Harness,
    moment: &'static ClientEvent,
    payload: &Value,
) -> (Value, String) {
    let expected =
        PayloadExpectation { hook: moment.native, harness: Some(harness), is_set: &|_| false };
    let bytes = payload.to_string();
    let (event, caller) = payload::read(bytes.as_bytes(), &expected).unwrap();
    let understood = event.as_ref().map_or(Value::Null, |it| {
        let named = it.said_kind.map_or("", |it| it.name());
        assert!(named.is_empty() || named == it.kind.name(), "{}", moment.native);
        json!({"kind": it.kind.name(), "session": it.session_id.as_str(), "prompt_id": it.prompt_id,
            "tool": it.tool_name, "tool_input": it.tool_input, "prompt": it.prompt,
            "last_message": it.last_message, "stop_active": it.stop_active, "folder": it.folder})
    });
    let tool = event.and_then(|it| it.tool_name);
    let alone = Decision::ALL.map(|it| ("", bare(it)));
    let with_all = [Decision::None, Decision::Allow, Decision::Block];
    let with_all = with_all.map(|it| (", with all else", full(it)));
    let mut text = String::new();
    for (form, answer) in alone.into_iter().chain(with_all) {
        let (said, changed) = speak(caller, &answer, tool.as_deref());
        writeln!(text, "{}{form}: {said}", answer.decision.as_str()).unwrap();
        changed.iter().for_each(|it| writeln!(text, "    ({it})").unwrap());
    }
    (understood, text)
}

#[test]
fn nothing_to_say_is_silence_and_no_opinion_is_never_an_allow() {
    for harness in HARNESSES {
        for moment in harness.moments {
            let caller = Caller { harness, moment: Some(moment) };
            assert_eq!(speak(caller, &HookResponse::default(), None).0, harness.silence);
            let told = HookResponse { context: Some("x".into()), ..HookResponse::notice("y") };
            let said = speak(caller, &told, None).0;
            assert!(!said.contains("allow"), "{} {}: {said}", harness.name, moment.native);
        }
    }
}

#[test]
fn what_is_fitted_can_be_said_and_is_one_short_object() {
    let long = "é".repeat(SPOKEN_CHARS_MAX * 2);
    for harness in HARNESSES {
        for moment in harness.moments {
            let caller = Caller { harness, moment: Some(moment) };
            for decision in Decision::ALL {
                let mut answer = full(decision);
                answer.reason.clone_from(&long);
                answer.notice = Some(long.clone());
                answer.context = Some(long.clone());
                answer.updated_output = Some(json!({"stdout": "«masked»"}));
                let adapted = adapt::adapt(caller, &answer).answer;
                let can = adapt::ability(adapted.decision).is_none_or(|it| moment.can(it));
                assert!(can, "{} {}", harness.name, moment.native);
                assert!(adapted.notice.is_none() || moment.can(Capability::Notice));
                assert!(adapted.context.is_none() || moment.can(Capability::Context));
                assert!(adapted.updated_input.is_none() || moment.can(Capability::Input));
                assert!(adapted.updated_output.is_none() || moment.can(Capability::Output));
                // Never weaker than meant, where something stronger could be said.
                let blocks =
                    moment.can(Capability::Block) && moment.kind == Some(EventKind::PreToolUse);
                let weaker = decision > Decision::Allow && adapted.decision < decision;
                assert!(!blocks || !weaker || decision == Decision::Halt);
                for text in [Some(adapted.reason), adapted.notice, adapted.context].iter().flatten()
                {
                    assert!(text.chars().count() <= SPOKEN_CHARS_MAX);
                }
                let said = speak(caller, &answer, None).0;
                let is_object = serde_json::from_str::<Map<String, Value>>(&said).is_ok();
                // Before a compaction Claude Code takes instructions as they are.
                let plain = moment.kind == Some(EventKind::PreCompact) && !said.starts_with('{');
                assert!(said.is_empty() || is_object || plain, "{}: {said}", moment.native);
            }
        }
    }
}

#[test]
fn an_empty_reason_still_refuses() {
    let caller = Caller::default();
    let (said, _) = speak(caller, &HookResponse::block(" \n"), None);
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["decision"], "block");
    assert!(!said["reason"].as_str().unwrap().trim().is_empty());
}

#[test]
fn a_stop_is_blocked_in_the_smallest_form() {
    let (said, changed) = speak(Caller::default(), &HookResponse::block("tests fail"), None);
    assert_eq!(said, r#"{"decision":"block","reason":"tests fail"}"#);
    assert!(changed.is_empty());
}

#[test]
fn a_context_stays_below_the_limit_of_its_client() {
    let long = "日本語 ".repeat(SPOKEN_CHARS_MAX);
    for harness in HARNESSES {
        for moment in harness.moments.iter().filter(|it| it.can(Capability::Context)) {
            let caller = Caller { harness, moment: Some(moment) };
            let answer = HookResponse { context: Some(long.clone()), ..HookResponse::default() };
            let context = adapt::adapt(caller, &answer).answer.context.unwrap();
            // Codex CLI moves more than 2,500 tokens of about 4 bytes into a file.
            assert!(harness.name != "codex" || context.len() < 10_000, "{}", moment.native);
            assert!(context.contains("[cut"), "{} {}", harness.name, moment.native);
        }
    }
}
