//! Records the tool calls that hooks report, so that a stop knows which calls the transcript must contain.

use super::context::GateContext;
use policyd_base::limits::HOOK_LOCK_WAIT;
use policyd_facts::Facts;
use policyd_facts::event::EventKind;
use policyd_store::hook_calls::{self, CallLine};

/// Records a tool call that policyd does not block. Other events record nothing.
pub(super) fn record(context: &GateContext<'_>) {
    let GateContext { request, policy, .. } = context;
    let event = &request.event;
    let id = event.call_id.as_deref().unwrap_or_default();
    let agent = event.agent_id.as_deref().unwrap_or_default();
    let line = if event.kind == EventKind::PreToolUse {
        CallLine::Begin { id, agent }
    } else if matches!(event.kind, EventKind::PostToolUse | EventKind::PostToolUseFailure) {
        CallLine::End { id, agent }
    } else {
        return;
    };
    // Without a check at a stop, no stop reads these lines.
    if request.dry_run || !event.session_known || !policy.judges(EventKind::Stop) {
        return;
    }
    append(context, line);
    let tool = event.tool_name.as_deref().unwrap_or_default();
    let reads = policy.guards.knowledge.read_tools.iter().any(|it| it == tool);
    if event.kind == EventKind::PreToolUse && !reads {
        context.record_before_edits(&context.store.paths(&event.session_id).folder);
    }
}

/// Records that a stop waited in vain for results: later stops do not wait for the same results.
pub(super) fn record_wait(context: &GateContext<'_>, facts: &Facts) {
    let event = &context.request.event;
    if context.request.dry_run || !facts.awaits_result(0) {
        return;
    }
    let agent = event.agent_id.as_deref().unwrap_or_default();
    append(context, CallLine::Waited { seq: facts.seq, agent });
}

/// Appends a line to the log of the session, whose directory might not exist yet.
fn append(context: &GateContext<'_>, line: CallLine<'_>) {
    let GateContext { world, request, store, .. } = context;
    let session = &request.event.session_id;
    let folder = store.paths(session).folder;
    if world.stat(&folder).is_err() {
        drop(store.lock(session, HOOK_LOCK_WAIT)); // It creates the folder.
    }
    hook_calls::append(*world, &folder, line);
}

/// Records that a stop of the main agent was evaluated: later stops look at later calls only.
pub(super) fn record_stop(context: &GateContext<'_>, facts: &Facts) {
    let event = &context.request.event;
    if event.kind != EventKind::Stop || context.request.dry_run {
        return;
    }
    let folder = context.store.paths(&event.session_id).folder;
    if context.world.stat(&folder.join(hook_calls::FILE)).is_ok() {
        let line = CallLine::Stop { total: facts.tools.total };
        hook_calls::append(context.world, &folder, line);
    }
}
