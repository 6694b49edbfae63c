//! A condition: findings are inside of it, a clean one is true or false, and its tree has the value that Rhai
//! computes.

use std::rc::Rc;

use policyd::evaluation::situation::{EventContext, Matchers};
use policyd::expr::check::check;
use policyd::expr::types::Type;
use policyd::expr::{FactEvaluator, ScriptErrorKind, Value};
use policyd::facts::Facts;
use policyd::facts::compiled::CompiledMatchers;
use policyd::facts::event::EventKind;
use policyd::hook::payload as wire;
use policyd::policy::load;
use policyd::policy::review::{Base, ReviewedPolicy};
use policyd::policy::{Policy, builtin};
use policyd::time::Timestamp;

struct Known {
    policy: Policy,
    words: Matchers,
    reviewed: ReviewedPolicy,
}

impl Known {
    fn new() -> Self {
        let pack = builtin::pack();
        let policy = load::load(&pack, &pack).policy.expect("the built-in pack loads");
        let words = Matchers::new(CompiledMatchers::new(policy.lens.clone()), policy.texts.clone());
        Self { policy, words, reviewed: ReviewedPolicy::new(&pack, &Base::new(&pack)) }
    }

    fn evaluator(&self) -> FactEvaluator {
        let payload = br#"{"session_id": "s", "last_assistant_message": "All done? No."}"#;
        let situation = EventContext {
            gauged: true,
            event: wire::parse(payload, EventKind::Stop).expect("a payload"),
            facts: Facts::default(),
            transcript_problem: None,
            interactive: true,
            supervised: false,
            recorded: false,
            project: "/work".into(),
            remote_host: None,
            project_view: None,
            overrides: Default::default(),
            now: Timestamp::from_millis(1_767_225_600_000),
        };
        FactEvaluator::new(Rc::new(situation.view(&self.policy, &self.words)))
    }
}

thread_local! {
    static KNOWN: Known = Known::new();
}

pub(super) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    KNOWN.with(|known| {
        let typed = check(text, &*known.reviewed.names);
        for finding in &typed.findings {
            assert!(finding.start <= finding.end && finding.end <= text.len(), "{finding:?}");
            assert!(text.is_char_boundary(finding.start), "{finding:?}");
            assert!(text.is_char_boundary(finding.end), "{finding:?}");
        }
        if !typed.findings.is_empty() {
            return;
        }
        let found = known.evaluator().eval(text);
        let by_rhai = known.evaluator().eval_by_rhai(text);
        match (&found, &by_rhai) {
            (Err(one), Err(other)) => assert_eq!(one.message, other.message),
            // Facts can be longer than the limits of Rhai.
            (Ok(_), Err(error)) => assert_eq!(error.kind, ScriptErrorKind::TooLarge, "{error}"),
            (one, other) => assert_eq!(one, other, "the tree has another value"),
        }
        if typed.result == Type::Bool {
            assert!(!matches!(found, Ok(Value::Int(_) | Value::Text(_) | Value::Texts(_))));
        }
    });
}
