//! The answer of a hook that a signal ends.

use policyd_facts::event::EventKind;
use policyd_hook::{self as hook, Caller, HookResponse};
use policyd_store::crash_record;
use policyd_world::{CrashAnswer, World};

const WHY: &str = "its analysis ended without a result. Approve it only if you know what it does.";

/// Prepares the answer. Only a tool call receives one; the record reports each event.
pub fn prepare(world: &dyn World, caller: Caller) {
    let kind = caller.moment.and_then(|it| it.kind);
    let answer = match kind.is_some_and(EventKind::is_before_call) {
        true => hook::speak(caller, &HookResponse::not_analyzed(caller, WHY), None).0,
        false => caller.harness.silence.to_owned(),
    };
    let record = crash_record::path(world);
    let text = crash_record::text(kind.map_or("unknown", EventKind::name));
    world.prepare_crash_answer(Some(CrashAnswer {
        answer: answer.as_bytes(),
        record: record.as_deref(),
        text: text.as_bytes(),
    }));
}
