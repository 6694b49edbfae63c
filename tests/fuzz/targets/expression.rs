//! A condition: findings lie inside of it, what is clean is true or false, and the plain form that a
//! compiled pack keeps comes to what the expression comes to.

use std::rc::Rc;

use policyd::facts::Facts;
use policyd::facts::compiled::CompiledLens;
use policyd::facts::event::EventKind;
use policyd::hook::payload as wire;
use policyd::judge::situation::{Situation, Words};
use policyd::policy::load;
use policyd::policy::review::{Base, Reviewed};
use policyd::policy::{Policy, builtin};
use policyd::script::check::check;
use policyd::script::plain::Kept;
use policyd::script::types::Type;
use policyd::script::{Evaluator, Value, Written};
use policyd::time::Timestamp;

struct Known {
    policy: Policy,
    words: Words,
    reviewed: Reviewed,
}

impl Known {
    fn new() -> Self {
        let pack = builtin::pack();
        let policy = load::load(&pack, &pack).policy.expect("the built-in pack loads");
        let words = Words::new(CompiledLens::new(policy.lens.clone()), policy.texts.clone());
        Self { policy, words, reviewed: Reviewed::new(&pack, &Base::new(&pack)) }
    }

    fn evaluator(&self) -> Evaluator {
        let payload = br#"{"session_id": "s", "last_assistant_message": "All done? No."}"#;
        let situation = Situation {
            gauged: true,
            event: wire::parse(payload, EventKind::Stop).expect("a payload"),
            facts: Facts::default(),
            transcript_problem: None,
            interactive: true,
            recorded: false,
            project: "/work".into(),
            remote_host: None,
            overrides: Default::default(),
            now: Timestamp::from_millis(1_767_225_600_000),
        };
        Evaluator::new(Rc::new(situation.context(&self.policy, &self.words)))
    }
}

thread_local! {
    static KNOWN: Known = Known::new();
}

pub(super) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    KNOWN.with(|known| {
        let typed = check(text, &known.reviewed.names);
        for finding in &typed.findings {
            assert!(finding.start <= finding.end && finding.end <= text.len(), "{finding:?}");
            assert!(text.is_char_boundary(finding.start), "{finding:?}");
            assert!(text.is_char_boundary(finding.end), "{finding:?}");
        }
        if !typed.findings.is_empty() {
            return;
        }
        let parsed = known.evaluator().eval(text);
        let kept = Kept::of(text);
        let plain = known.evaluator().eval(Written { text, kept: Some(&kept) });
        assert_eq!(parsed, plain, "the kept form comes to something else");
        if typed.result == Type::Bool {
            assert!(!matches!(parsed, Ok(Value::Int(_) | Value::Text(_) | Value::Texts(_))));
        }
    });
}
