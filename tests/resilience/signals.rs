//! Signals: the seed's rules, hand-made files, and the forms that people and programs read.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use policyd::evaluation::signals as judged;
use policyd::expr::record::FactRecord;
use policyd::limits::SIGNALS_MAX;
use policyd::policy::signals::Signals;
use policyd::policy::{Policy, builtin, load, records};
use policyd::state::signal::{End, SignalEvent};
use policyd::store::file::Durability;
use policyd::store::signals::{Draft, SignalFollowUp, SignalOutcome, SignalStore, StoredSignal};
use policyd::world::World;
use policyd::world::WorldError;
use policyd::world::fake::FakeWorld;
use serde_json::{Map, Value, json};

use crate::support::{self, shared};

static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let pack = builtin::pack();
    load::load(&pack, &pack).policy.unwrap()
});

/// A machine whose user has a home directory, so that their approvals are kept.
fn machine() -> FakeWorld {
    let world = FakeWorld::new();
    world.set_env("HOME", "/home/me");
    world
}

fn kinds() -> &'static Signals {
    &POLICY.signals
}

fn store(world: &FakeWorld) -> SignalStore<'_> {
    SignalStore::new(world, Path::new("/w/.policyd"), &POLICY.signals, Durability::default())
}

fn file(name: &str) -> String {
    format!("/w/.policyd/signals/{name}")
}

fn draft(name: &str, fields: &Value) -> Draft {
    let fields = fields.as_object().cloned().unwrap_or_default();
    Draft { name: name.to_owned(), fields, sender: "eng-1".to_owned(), ..Draft::default() }
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// What a drift leads to; the seed's count is of one task.
fn drift_action(input: &Value) -> Value {
    let count = usize::try_from(input["drift_count"].as_u64().unwrap_or(1)).unwrap();
    let fields = input.as_object().unwrap();
    let answer = judged::answer(kinds(), judged::drift(fields, count, count), None);
    let immediate: Vec<&str> = answer.always.iter().map(|it| it.0).collect();
    json!({"immediate": immediate, "action": answer.rule.unwrap().action})
}

/// Which signals are created for a run.
fn signal_trigger(input: &Value) -> Value {
    let mut run: FactRecord = judged::run();
    for (name, value) in input.as_object().unwrap() {
        assert!(
            records::shape(&records::signals::RUN).field(name).is_some(),
            "`{name}` is no field"
        );
        match value {
            Value::Bool(value) => run.set(name, *value),
            // A whole number stands for a decimal as well.
            Value::Number(_) if matches!(name.as_str(), "confidence" | "cost_usd_per_hour") => {
                run.set(name, value.as_f64().unwrap());
            }
            Value::Number(value) => run.set(name, value.as_i64().unwrap()),
            other => panic!("{name}: {other}"),
        }
    }
    let (due, failed) = judged::due(kinds(), run, None);
    assert!(failed.is_empty(), "{failed:?}");
    let emits = |name: &str| due.iter().any(|it| it.trigger.emit == name);
    json!({
        "create": emits("HUMAN_REVIEW_NEEDED"),
        "create_context_clear": emits("CONTEXT_CLEAR_REQUESTED"),
    })
}

/// What becomes of a request after some hours, with and without a human's yes.
fn signal_timeout(input: &Value) -> Value {
    let world = machine();
    let name = input["signal"].as_str().unwrap();
    let fields = json!({"reason": "security_decision", "task_id": "task-099"});
    store(&world).emit(&draft(name, &fields), world.now()).unwrap();
    let age = input["age_h"].as_f64().unwrap() * 3600.0;
    world.advance(Duration::from_secs_f64(age));
    if input["approved"] == true {
        approve(&world, &json!({"decision": "go on"}));
    }
    let mut deeds = Vec::new();
    let mut act = |deed: &SignalFollowUp| {
        deeds.push(match deed {
            SignalFollowUp::Unblock { .. } => "unblocked",
            SignalFollowUp::DeadLetter { .. } => "dead_letter",
            SignalFollowUp::Alert { .. } => "alert",
            SignalFollowUp::Drift { .. } => "drift",
        });
        Ok(())
    };
    // The first call after the end of the wait only records that it is late.
    let mut done = store(&world).process(world.now(), &mut act).unwrap();
    world.advance(seconds(3600));
    done.ended.extend(store(&world).process(world.now(), &mut act).unwrap().ended);
    let consumed: Vec<&str> = done.ended.iter().map(|(it, _)| it.name.as_str()).collect();
    let state = ["unblocked", "dead_letter"].into_iter().find(|it| deeds.contains(it));
    json!({"task_state": state.unwrap_or("blocked"), "alert": deeds.contains(&"alert"),
        "consumed": consumed})
}

/// The user approves without naming a request: `policyd signal emit HUMAN_APPROVED`.
fn approve(world: &FakeWorld, fields: &Value) {
    let draft = Draft { by_user: true, ..draft("HUMAN_APPROVED", fields) };
    store(world).emit(&draft, world.now()).unwrap();
}

/// What a file of a human does to a loop: its exit status as in the seed.
fn signal_file(input: &Value) -> Value {
    let world = machine();
    let name = input["file"].as_str().unwrap();
    world.put(file(name), "");
    let signal = name.split('.').next().unwrap();
    let answer =
        store(&world).take(signal, SignalEvent::Consume { by: "loop" }, world.now()).unwrap();
    let status = match kinds().kind(signal).map(|it| it.interrupts.as_str()) {
        Some("stop") => 2,
        Some("pause" | "input") => 1,
        _ => 0,
    };
    let ended = matches!(answer, SignalOutcome::Ended(_, End::Consumed, _));
    json!({"rc": status, "consumed": ended && world.get(file(name)).is_none()})
}

#[test]
fn the_rules_of_the_replaced_system_agree() {
    let Some(cases) = shared::cases("loki_shipwright_cases.json") else { return };
    let mut ran = 0;
    for case in cases {
        let got = match case["kind"].as_str().unwrap() {
            "drift_action" => drift_action(&case["input"]),
            "signal_trigger" => signal_trigger(&case["input"]),
            "signal_timeout" => signal_timeout(&case["input"]),
            "signal_file" => signal_file(&case["input"]),
            _ => continue,
        };
        for (key, expected) in case["expected"].as_object().unwrap() {
            assert_eq!(&got[key], expected, "{}: {key}", case["name"]);
        }
        println!("{} agrees", case["name"]);
        ran += 1;
    }
    assert!(ran > 8, "{ran} cases");
}

fn only(answer: SignalOutcome) -> StoredSignal {
    match answer {
        SignalOutcome::Ended(found, End::Consumed, _) => *found,
        other => panic!("{other:?}"),
    }
}

fn text(bytes: Option<Vec<u8>>) -> String {
    String::from_utf8(bytes.unwrap()).unwrap()
}

#[test]
fn no_number_of_files_hides_a_signal_that_stops_pauses_or_asks_a_human() {
    let world = FakeWorld::new();
    for number in 0..SIGNALS_MAX + 100 {
        world.put(file(&format!("FEATURE_READY_{number}")), "");
        world.put(file(&format!("MERGE_APPROVED_{number}")), "");
        world.put(file(&format!("PAUSE.{number:012x}")), "");
    }
    world.advance(seconds(60));
    let signals = store(&world);
    for name in ["STOP", "HUMAN_REVIEW_NEEDED"] {
        let made = signals.emit(&draft(name, &json!({"reason": "look"})), world.now()).unwrap();
        assert_eq!(signals.files_hiding(&made, world.now()), None, "{name}");
        assert!(signals.pending(world.now()).iter().any(|it| it.id == made.id), "{name}");
    }
    let hidden = signals.emit(&draft("FEATURE_READY_x", &json!({})), world.now()).unwrap();
    let files = 3 * (SIGNALS_MAX + 100);
    assert!(signals.files_hiding(&hidden, world.now()).unwrap() > files);
}

#[test]
fn a_further_signal_of_a_name_overwrites_none() {
    let world = machine();
    let fields = |reason: &str| json!({"reason": reason, "task_id": "task-099", "blocking": true});
    let first =
        store(&world).emit(&draft("HUMAN_REVIEW_NEEDED", &fields("a")), world.now()).unwrap();
    world.advance(seconds(1));
    let second =
        store(&world).emit(&draft("HUMAN_REVIEW_NEEDED", &fields("b")), world.now()).unwrap();
    assert_eq!(first.file, "HUMAN_REVIEW_NEEDED");
    assert_eq!(second.file, format!("HUMAN_REVIEW_NEEDED.{}", second.id));
    support::snapshot("signals", "file__human_review", text(world.get(file(&first.file))));
    for expected in ["a", "b"] {
        let consume = SignalEvent::Consume { by: "ann" };
        world.advance(seconds(1));
        let found = only(store(&world).take("HUMAN_REVIEW_NEEDED", consume, world.now()).unwrap());
        assert_eq!(found.text("reason"), expected, "the oldest comes first");
    }
    let history = text(world.get(file("history.jsonl")));
    support::snapshot("signals", "history__two_consumed", history);
    let consume = SignalEvent::Consume { by: "ann" };
    assert_eq!(
        store(&world).take("HUMAN_REVIEW_NEEDED", consume, world.now()),
        Ok(SignalOutcome::Nothing)
    );
}

#[test]
fn whoever_holds_a_signal_has_it_alone_until_the_lease_is_over() {
    let world = machine();
    store(&world).emit(&draft("DOCS_NEEDED", &json!({})), world.now()).unwrap();
    let take = |event| store(&world).take("DOCS_NEEDED", event, world.now()).unwrap();
    let claim = |by| SignalEvent::Claim { by, lease: seconds(60) };
    assert!(matches!(take(claim("one")), SignalOutcome::Held(..)));
    assert!(matches!(take(claim("two")), SignalOutcome::Refused(..)));
    assert!(matches!(take(SignalEvent::Consume { by: "two" }), SignalOutcome::Refused(..)));
    support::snapshot(
        "signals",
        "ledger__one_claim",
        text(world.get("/w/.policyd/state/signals.json")),
    );
    world.advance(seconds(61));
    assert!(matches!(take(claim("two")), SignalOutcome::Held(..)), "the first died");
    assert!(
        matches!(take(SignalEvent::Consume { by: "one" }), SignalOutcome::Refused(..)),
        "and comes too late"
    );
    only(take(SignalEvent::Consume { by: "two" }));
}

#[test]
fn hand_made_files_are_taken_as_far_as_they_go() {
    let huge = "x".repeat(300 * 1024);
    let cases: [(&str, &[u8], &str); 10] = [
        ("STOP", b"", "{}"),
        ("STOP", b"because I say so", r#"{"text":"because I say so"}"#),
        ("HUMAN_REVIEW_NEEDED", b"", "{}"),
        ("HUMAN_REVIEW_NEEDED", b"\xef\xbb\xbf{\"reason\": \"a\"}\n", r#"{"reason":"a"}"#),
        (
            "HUMAN_REVIEW_NEEDED",
            b"{\"reason\": \"say \"no\"\"}",
            r#"{"text":"{\"reason\": \"say \"no\"\"}"} its content is not JSON"#,
        ),
        (
            "HUMAN_REVIEW_NEEDED",
            b"\xff\xfe\x00\x01",
            "{\"text\":\"\u{fffd}\u{fffd}  \"} its content is not JSON",
        ),
        ("HUMAN_REVIEW_NEEDED", b"[1]", r#"{"text":"[1]"}"#),
        ("HUMAN_INPUT.md", b"# use tabs", r##"{"text":"# use tabs"}"##),
        (
            "HUMAN_APPROVED",
            b"{\"decision\": ",
            "put aside: it should approve something, and its content is not JSON",
        ),
        ("STOP", huge.as_bytes(), "put aside: it is too large"),
    ];
    for (name, content, expected) in cases {
        let world = machine();
        world.put(file(name), content);
        world.advance(seconds(5));
        let found = store(&world).pending(world.now());
        let done = store(&world).process(world.now(), &mut |_| Ok(())).unwrap();
        let got = match (found.as_slice(), done.quarantined.as_slice()) {
            ([one], []) => {
                let fields = Value::Object(one.fields.clone());
                format!("{fields} {}", one.note).trim().to_owned()
            }
            ([], [(aside, why)]) if aside == name => {
                assert!(world.get(file(name)).is_none(), "it is kept elsewhere");
                format!("put aside: {why}")
            }
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(got, expected, "{name}");
    }
}

#[test]
fn folders_pipes_and_strangers_are_no_signals() {
    let world = machine();
    world.put_folder(file("STOP"));
    world.put_special(file("PAUSE"));
    world.put(file("NO_SUCH_SIGNAL"), "");
    let view = store(&world).view(world.now());
    assert!(view.signals.is_empty());
    assert_eq!(view.unknown, ["NO_SUCH_SIGNAL"]);
    assert_eq!(view.unusable.len(), 2, "{:?}", view.unusable);
    store(&world).process(world.now(), &mut |_| Ok(())).unwrap();
    assert_eq!(store(&world).view(world.now()).unusable, []);
    assert!(world.get(file("NO_SUCH_SIGNAL")).is_some(), "nobody knows whose it is");
}

#[test]
fn a_symbolic_link_is_no_signal() {
    let world = FakeWorld::new();
    for name in ["STOP", "HUMAN_APPROVED"] {
        world.put(file(name), "{}");
        world.put_link(file(name), "/home/dev/secret.json");
    }
    let drift = r#"{"timestamp": "2026-01-01T00:00:00Z"}"#;
    world.put(file("DRIFT_DETECTED"), format!("{drift}\n"));
    let view = store(&world).view(world.now());
    assert!(view.signals.is_empty(), "{:?}", view.signals);
    let why: Vec<&str> = view.unusable.iter().map(|it| it.1.as_str()).collect();
    assert_eq!(why, ["it is a symbolic link"; 2]);
    assert_eq!(store(&world).drifts(world.now()).len(), 1);
    world.put_link(file("DRIFT_DETECTED"), "/home/dev/secret.json");
    assert!(store(&world).drifts(world.now()).is_empty());
    store(&world).process(world.now(), &mut |_| Ok(())).unwrap();
    assert!(store(&world).view(world.now()).signals.is_empty());
}

#[test]
fn a_file_that_is_being_written_is_not_read_yet() {
    let world = machine();
    world.put(file("HUMAN_REVIEW_NEEDED"), "{\"reason\": ");
    assert_eq!(store(&world).pending(world.now()), []);
    world.put(file("HUMAN_REVIEW_NEEDED"), "{\"reason\": \"a\"}");
    assert_eq!(store(&world).pending(world.now())[0].text("reason"), "a");
}

fn review(world: &FakeWorld, task: &str) -> StoredSignal {
    world.advance(seconds(10));
    let fields = json!({"reason": "r", "task_id": task});
    store(world).emit(&draft("HUMAN_REVIEW_NEEDED", &fields), world.now()).unwrap()
}

fn consume_approval(world: &FakeWorld) -> Result<String, String> {
    world.advance(seconds(10));
    let consume = SignalEvent::Consume { by: "loop" };
    match store(world).take("HUMAN_APPROVED", consume, world.now()).unwrap() {
        SignalOutcome::Ended(_, End::Consumed, Some(request)) => {
            Ok(request.text("task_id").to_owned())
        }
        SignalOutcome::Refused(_, why) => Err(why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_approval_without_a_request_approves_the_only_one_that_waited() {
    let given = |world: &FakeWorld, fields: Value| {
        world.advance(seconds(10));
        approve(world, &fields);
        world.advance(seconds(10));
    };
    let world = machine();
    review(&world, "a");
    given(&world, json!({}));
    assert_eq!(consume_approval(&world), Ok("a".to_owned()));

    given(&world, json!({}));
    let later = review(&world, "later");
    let stale = consume_approval(&world).unwrap_err();
    assert_eq!(stale, "it is older than every HUMAN_REVIEW_NEEDED that waits");
    review(&world, "b");
    given(&world, json!({}));
    let several = consume_approval(&world).unwrap_err();
    assert!(several.starts_with("several HUMAN_REVIEW_NEEDED waited"), "{several}");

    given(&world, json!({"task_id": "b"}));
    assert_eq!(consume_approval(&world), Ok("b".to_owned()));

    // Two waited when it was made; that one of them is over now does not make it the other's.
    review(&world, "c");
    given(&world, json!({}));
    store(&world).reject(&later.id, "ann", "no", world.now()).unwrap();
    assert!(consume_approval(&world).unwrap_err().starts_with("several"));
}

#[test]
fn an_approval_that_the_user_did_not_give_approves_nothing() {
    let world = machine();
    let request = review(&world, "a");
    for content in [json!({}), json!({"request": request.id}), json!({"task_id": "a"})] {
        world.advance(seconds(10));
        world.put(file("HUMAN_APPROVED"), content.to_string());
        let why = consume_approval(&world).unwrap_err();
        assert!(why.contains("`policyd signal approve`"), "{why}");
    }
    // A copy of an approval that the user gave to another project counts there only.
    let text = json!({"id": "0123456789ab", "signal": "HUMAN_APPROVED", "request": request.id});
    world.put(file("HUMAN_APPROVED"), text.to_string());
    assert!(consume_approval(&world).is_err());
    assert_eq!(store(&world).pending(world.now())[0].id, request.id, "it still waits");
}

#[test]
fn an_approval_that_names_its_request_approves_no_other() {
    let world = machine();
    let (a, b) = (review(&world, "a"), review(&world, "b"));
    world.advance(seconds(10));
    let answer = store(&world).approve(&b.id, "ann", "go on", world.now()).unwrap();
    assert!(matches!(answer, SignalOutcome::Ended(_, End::Approved, Some(_))));
    support::snapshot("signals", "file__human_approved", text(world.get(file("HUMAN_APPROVED"))));
    assert_eq!(store(&world).approve(&b.id, "ann", "", world.now()), Ok(SignalOutcome::Nothing));
    assert_eq!(consume_approval(&world), Ok("b".to_owned()));
    assert_eq!(store(&world).pending(world.now())[0].id, a.id);

    let again =
        Draft { request: b.id.clone(), by_user: true, ..draft("HUMAN_APPROVED", &json!({})) };
    store(&world).emit(&again, world.now()).unwrap();
    let why = consume_approval(&world).unwrap_err();
    assert_eq!(why, format!("the HUMAN_REVIEW_NEEDED {} it names was approved", b.id));
}

fn refused(why: &str) -> WorldError {
    WorldError::Io(why.to_owned())
}

#[test]
fn who_is_not_answered_in_time_is_told_of_once_it_was_done() {
    let world = machine();
    review(&world, "a");
    let hours = |count: u64| seconds(count * 3600);
    world.advance(hours(24));
    let early = store(&world).process(world.now(), &mut |_| Err(refused("too early"))).unwrap();
    assert_eq!((early.ended.len(), early.failed.len()), (0, 0), "one call can be a jump");
    world.advance(hours(1));
    let failing = store(&world).process(world.now(), &mut |_| Err(refused("disk full"))).unwrap();
    assert_eq!((failing.ended.len(), failing.failed.len()), (0, 1));
    let mut deeds = 0;
    let mut act = |_: &SignalFollowUp| {
        deeds += 1;
        Ok(())
    };
    let done = store(&world).process(world.now(), &mut act).unwrap();
    assert_eq!(done.ended[0].1, End::TimedOut);
    store(&world).process(world.now(), &mut act).unwrap();
    assert_eq!(deeds, 2, "a dead letter and an alert, once");
    let answers = store(&world).unreceived_answers().unwrap();
    assert_eq!(answers[0].end, End::TimedOut);
    store(&world).remove_answers(&[&answers[0].id], world.now()).unwrap();
    assert_eq!(store(&world).unreceived_answers().unwrap(), []);
}

#[test]
fn a_clock_that_jumps_ahead_times_out_no_request_and_ends_no_approval() {
    let world = machine();
    let (asked, begun) = (review(&world, "a"), world.now());
    let mut act = |it: &SignalFollowUp| panic!("{it:?}");
    for minutes in 1..50 {
        world.set_now(begun.plus(seconds(3600 * 24 * 365 * 70 + minutes * 60)));
        let done = store(&world).process(world.now(), &mut act).unwrap();
        assert!(done.ended.is_empty() && done.failed.is_empty(), "{minutes}");
        let pending = store(&world).pending(world.now());
        assert_eq!(pending[0].id, asked.id, "a human can still answer");
    }
    world.set_now(begun.plus(seconds(60)));
    store(&world).process(world.now(), &mut act).unwrap();
    let ledger = text(world.get("/w/.policyd/state/signals.json"));
    assert!(ledger.contains("\"late\": {}"), "{ledger}");
    approve(&world, &json!({}));
    world.set_now(begun.plus(seconds(3600 * 24 * 365 * 70)));
    store(&world).process(world.now(), &mut act).unwrap();
    world.set_now(begun.plus(seconds(120)));
    assert_eq!(consume_approval(&world).as_deref(), Ok("a"));
}

#[test]
fn drifts_count_anew_once_the_context_was_cleared() {
    let world = machine();
    for task in ["a", "b", "a"] {
        world.advance(seconds(1));
        let fields = json!({"detected_drift": "x", "task_id": task, "severity": "low"});
        store(&world).emit(&draft("DRIFT_DETECTED", &fields), world.now()).unwrap();
    }
    support::snapshot("signals", "file__drift_log", text(world.get(file("DRIFT_DETECTED"))));
    assert_eq!(store(&world).drifts(world.now()).len(), 3);
    store(&world).emit(&draft("CONTEXT_CLEAR_REQUESTED", &json!({})), world.now()).unwrap();
    let consume = SignalEvent::Consume { by: "loop" };
    only(store(&world).take("CONTEXT_CLEAR_REQUESTED", consume, world.now()).unwrap());
    assert_eq!(store(&world).drifts(world.now()).len(), 0);
    assert!(world.get(file("DRIFT_DETECTED")).is_some(), "the log stays");
}

#[test]
fn what_the_agent_is_told() {
    let world = machine();
    let mut all = String::new();
    for (name, fields) in [
        (
            "HUMAN_REVIEW_NEEDED",
            json!({"reason": "it costs 120 USD an hour", "task_id": "task-099"}),
        ),
        ("HUMAN_REVIEW_NEEDED", json!({"reason": "the spec has two readings"})),
        ("HUMAN_APPROVED", json!({"decision": "use the staging credentials"})),
        ("PLAN_APPROVED", json!({})),
        ("CONTEXT_CLEAR_REQUESTED", json!({})),
        ("DOCS_NEEDED", json!({})),
    ] {
        let found = store(&world).emit(&draft(name, &fields), world.now()).unwrap();
        let about = judged::SignalInfo {
            id: &found.id,
            name,
            sender: "eng-1",
            ..judged::SignalInfo::default()
        };
        let fields: &Map<String, Value> = &found.fields;
        all += &format!(
            "{name}: {}\n",
            judged::format_signal(kinds().kind(name).unwrap(), about, fields)
        );
    }
    support::snapshot("signals", "context__what_the_agent_is_told", all);
}
