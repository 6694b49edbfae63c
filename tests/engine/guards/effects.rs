//! Guards that are not asked where a call has no effects: had they been asked, they would be silent.

use std::rc::Rc;

use policyd::evaluation::situation::{EventContext, Matchers};
use policyd::expr::FactEvaluator;
use policyd::expr::call_facts::CallFacts;
use policyd::expr::context::FactView;
use policyd::facts::call::{AnalysisContext, CallEffects, CallEnvironment, NoDisk};
use policyd::facts::compiled::CompiledMatchers;
use policyd::facts::event::{Event, EventKind};
use policyd::id::SessionId;
use policyd::policy::{builtin, load};
use policyd::time::Timestamp;
use serde_json::json;

#[test]
fn what_is_not_asked_would_be_silent() {
    let pack = builtin::pack();
    let policy = load::load(&pack, &pack).policy.unwrap();
    let words = Matchers::new(CompiledMatchers::new(policy.lens.clone()), policy.texts.clone());
    let around = CallEnvironment { folder: "/work".to_owned(), ..CallEnvironment::default() };
    let (mut left_out, mut asked) = (0, 0);
    for (line, effects) in [
        ("cargo test -q 2>&1 | tail -5 && git status", CallEffects::default()),
        ("ls", CallEffects::default()),
        ("cat notes.txt", CallEffects::READ),
        ("echo x > notes.txt", CallEffects::CHANGE.union(CallEffects::WRITE)),
        ("rm notes.txt", CallEffects::CHANGE.union(CallEffects::DELETE)),
        ("A=1 cargo test", CallEffects::VARIABLE),
        ("git apply a.patch", CallEffects::ALL),
        ("echo 'unclosed", CallEffects::ALL),
    ] {
        let kind = EventKind::PreToolUse;
        let event = Event {
            tool_name: Some("Bash".to_owned()),
            tool_input: json!({ "command": line }),
            ..Event::of(kind, SessionId::sanitize("s"))
        };
        let knowledge = &*policy.guards.knowledge;
        let reading =
            AnalysisContext { lens: &*words.lens, knowledge, around: &around, disk: &NoDisk };
        let call = event.call(reading);
        assert_eq!(call.effects(), effects, "{line}");
        let situation = EventContext::alone(event, "/work".into(), Timestamp::from_millis(0));
        let call =
            Rc::new(CallFacts { call, around: Rc::new(around.clone()), ..CallFacts::default() });
        let view = FactView { call: Some(call), ..situation.view(&policy, &words) };
        let mut evaluator = FactEvaluator::new(Rc::new(view));
        for guard in policy.guards.rules.iter().filter(|it| it.commands.is_empty()) {
            asked += u32::from(guard.effects.is_none());
            if guard.effects.is_some_and(|it| !it.has_some(effects)) {
                let when = guard.body.when.as_ref().unwrap();
                assert_eq!(evaluator.eval_bool(when), Ok(false), "{}: {line}", guard.id);
                left_out += 1;
            }
        }
    }
    assert!(left_out > 60 && asked > 0, "{left_out} left out, {asked} asked");
}
