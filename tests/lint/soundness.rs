//! What lint calls clean never raises a type error: generated conditions over generated events. What it takes
//! for granted of facts holds: generated sessions.

use std::rc::Rc;

use policyd::evaluation::situation::{EventContext, Matchers};
use policyd::expr::ast::Expr;
use policyd::expr::context::{FactView, ProbeResult, Readings, StoreSnapshots};
use policyd::expr::relations::{self, Invariant};
use policyd::expr::{FactEvaluator, Value};
use policyd::facts::Facts;
use policyd::facts::compiled::CompiledMatchers;
use policyd::facts::event::EventKind;
use policyd::hook::payload as wire;
use policyd::lint::Profile;
use policyd::policy::builtin;
use policyd::policy::load;
use policyd::source::Level;
use policyd::time::Timestamp;
use proptest::prelude::*;
use proptest::sample::select;

use crate::subjects::{TODAY, consideration, look};
use crate::support::expressions::condition;
use crate::support::rounds;

/// Events as clients send them.
const EVENTS: [(&str, &str); 5] = [
    ("stop", r#"{"session_id":"s","last_assistant_message":"All done? No."}"#),
    ("stop", r#"{"session_id":"s"}"#),
    ("subagent-stop", r#"{"session_id":"s","agent_id":"a","agent_type":"Explore"}"#),
    (
        "pre-tool-use",
        r#"{"session_id":"s","tool_name":"Bash","tool_input":{"command":"ls","n":1}}"#,
    ),
    ("user-prompt-submit", r#"{"session_id":"s","prompt":"deploy it"}"#),
];

thread_local! {
    static POLICY: policyd::policy::Policy = {
        let pack = builtin::pack();
        load::load(&pack, &pack).policy.unwrap()
    };
    static WORDS: Matchers = POLICY.with(|policy| {
        let texts = policy.texts.clone();
        Matchers::new(CompiledMatchers::new(policy.lens.clone()), texts)
    });
}

fn evaluator(event: (&str, &str), reading: ProbeResult) -> FactEvaluator {
    evaluator_of(Facts::default(), event, reading)
}

fn evaluator_of(
    facts: Facts,
    (kind, payload): (&str, &str),
    reading: ProbeResult,
) -> FactEvaluator {
    let event = wire::parse(payload.as_bytes(), EventKind::find(kind).unwrap()).unwrap();
    let situation = EventContext {
        gauged: true,
        event,
        facts,
        transcript_problem: None,
        interactive: true,
        supervised: false,
        recorded: false,
        project: "/work".into(),
        remote_host: Some("github.com".to_owned()),
        project_view: None,
        overrides: Default::default(),
        now: Timestamp::parse(TODAY).unwrap(),
    };
    let view = POLICY.with(|policy| WORDS.with(|words| situation.view(policy, words)));
    let stores = StoreSnapshots {
        breakers: Some(Default::default()),
        waiting: Some(Default::default()),
        signals: Some(Default::default()),
        costs: Some(Default::default()),
        memory: Some(Default::default()),
    };
    let readings = Readings {
        preferences: [("no_auto_merge".to_owned(), true)].into(),
        probes: [("pr".to_owned(), reading)].into(),
    };
    FactEvaluator::new(Rc::new(FactView {
        stores: Rc::new(stores),
        readings: Rc::new(readings),
        usage: Some(Default::default()),
        ..view
    }))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: rounds(700), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_clean_condition_is_true_or_false_at_every_event(condition in condition()) {
        let written = consideration("a", &format!("  satisfied: >-\n    {condition}"));
        let found = look(&[("considerations.yaml", &written)], Profile::Default).findings;
        if found.iter().all(|it| it.level < Level::Error) {
            let answer = serde_json::json!({"state": "OPEN", "a": ["x", 1, null]});
            for event in EVENTS {
                for reading in [
                    ProbeResult::Answer { code: 0, value: answer.clone() },
                    ProbeResult::Failed("not installed".to_owned()),
                ] {
                    match evaluator(event, reading).eval(&condition) {
                        Ok(value) => prop_assert!(matches!(value, Value::Bool(_)), "{condition}: {value:?}"),
                        // Numbers may be too large, a divisor may be zero, a text may have no number, a probe may not have
                        // answered: those are not type errors. Another pack than that of the condition is evaluated.
                        Err(error) => prop_assert!(
                            ["ivi", "odulo", "verflow", "egation", "not installed", "no number", "whole number", "it out", "written out", "was not read"].iter().any(|it| error.message.contains(it)),
                            "{condition}: {}", error.message
                        ),
                    }
                }
            }
        }
    }
}

#[test]
fn the_generator_makes_both_kinds() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut clean, mut all) = (0, 0);
    for _ in 0..rounds(300) {
        let condition =
            proptest::strategy::ValueTree::current(&condition().new_tree(&mut runner).unwrap());
        let written = consideration("a", &format!("  satisfied: >-\n    {condition}"));
        let found = look(&[("considerations.yaml", &written)], Profile::Default).findings;
        clean += usize::from(found.iter().all(|it| it.level < Level::Error));
        all += 1;
    }
    assert!(clean > all / 8 && clean < all * 4 / 5, "{clean} of {all} are clean");
}

/// One call of a tool and its result, as a transcript has them.
fn exchange() -> impl Strategy<Value = [serde_json::Value; 2]> {
    let command =
        select(vec!["cargo test", "cargo clippy", "git push", "ls", "cargo test; git push"]);
    let shell = command.prop_map(|it| ("Bash", serde_json::json!({ "command": it })));
    let file = select(vec!["/work/src/a.rs", "/work/b.md"]);
    let edit = file.prop_map(|it| {
        ("Edit", serde_json::json!({"file_path": it, "old_string": "a", "new_string": "b"}))
    });
    let status = select(vec!["pending", "completed", "in_progress"]);
    let todos = prop::collection::vec(status, 0..4).prop_map(|all| {
        let all: Vec<_> =
            all.iter().map(|it| serde_json::json!({"content": "x", "status": it})).collect();
        ("TodoWrite", serde_json::json!({ "todos": all }))
    });
    let said = select(vec![
        "test result: ok. 3 passed; 0 failed",
        "test result: FAILED. 1 passed; 2 failed",
        "The user doesn't want to proceed with this tool use",
        "",
    ]);
    let agent = Just(("Task", serde_json::json!({"subagent_type": "writer", "prompt": "x"})));
    let call = prop_oneof![3 => shell, 2 => edit, 1 => todos, 1 => agent];
    (call, said, any::<bool>(), any::<u32>()).prop_map(|((tool, input), said, failed, id)| {
        let (id, at) = (format!("t{id}"), "2026-07-01T10:00:00Z");
        let used = serde_json::json!({"type": "tool_use", "id": id, "name": tool, "input": input});
        let result = serde_json::json!(
            {"type": "tool_result", "tool_use_id": id, "content": said, "is_error": failed}
        );
        [("assistant", used), ("user", result)].map(|(by, part)| {
            serde_json::json!(
                {"type": by, "timestamp": at, "message": {"role": by, "content": [part]}}
            )
        })
    })
}

/// Facts that invariants speak of, as expressions name them.
const FACTS: [&str; 34] = [
    "commands.total",
    "commands.ran(\"cargo\")",
    "commands.kind(\"test\").passed",
    "commands.kind(\"test\").failed",
    "commands.kind(\"test\").count",
    "commands.kind(\"test\").last_passed_at",
    "commands.kind(\"lint\").passed",
    "commands.kind(\"lint\").failed",
    "commands.kind(\"lint\").count",
    "commands.kind(\"test\").last.exists",
    "commands.kind(\"test\").last.text",
    "commands.kind(\"test\").last.at",
    "commands.last(\"git push\").exists",
    "commands.last(\"git push\").text",
    "commands.last(\"git push\").at",
    "agents.last(\"writer\").exists",
    "agents.last(\"writer\").at",
    "agents.last(\"writer\").outcome",
    "memory.deploys.times(\"a\")",
    "memory.deploys.count",
    "files.count",
    "files.edits",
    "files.last_at",
    "files.kind(\"code\").count",
    "files.kind(\"code\").edits",
    "files.kind(\"code\").last_at",
    "files.kind(\"code\").written.count",
    "todos.open",
    "todos.total",
    "tools.count(\"Bash\")",
    "tools.total",
    "probes.pr.ok",
    "probes.pr.code",
    "probes.pr.error",
];

#[test]
fn every_invariant_is_tried() {
    let facts = FACTS.map(Expr::of_text);
    let tried = relations::between(&facts.each_ref());
    for (row, invariant) in relations::invariants() {
        let is_tried = tried.iter().any(|it| {
            (it.row.owner, it.row.name) == (row.owner, row.name) && it.invariant == invariant
        });
        // Those about arguments are tried in the solver.
        let of_argument = matches!(invariant, Invariant::Implies(_));
        assert!(is_tried || of_argument, "{}.{}: {invariant:?}", row.owner, row.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_always_holds_of_facts_holds_in_every_session(
        session in prop::collection::vec((exchange(), any::<bool>()), 1..12), code in -1_i32..3,
    ) {
        let lens = POLICY.with(|policy| CompiledMatchers::new(policy.lens.clone()));
        let mut facts = Facts::default();
        for ([call, result], answered) in session {
            facts.ingest_record(call.to_string().as_bytes(), &lens);
            if answered {
                facts.ingest_record(result.to_string().as_bytes(), &lens);
            }
            let value = serde_json::Value::Null;
            for reading in [ProbeResult::Answer { code, value }, ProbeResult::Failed("no".to_owned())] {
                let mut evaluator = evaluator_of(facts.clone(), EVENTS[0], reading);
                let facts = FACTS.map(Expr::of_text);
                for it in relations::between(&facts.each_ref()) {
                    let text = it.condition.canonical();
                    let value = evaluator.eval(&*text);
                    prop_assert!(matches!(value, Ok(Value::Bool(true))), "{text}: {value:?}");
                }
            }
        }
    }
}
