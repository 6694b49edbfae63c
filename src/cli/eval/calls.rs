//! Which tool calls hooks saw, so that a stop knows what the transcript must show.

use super::{Request, Stopping};
use crate::cli::project::{self, Project};
use crate::facts::Facts;
use crate::facts::event::EventKind;
use crate::limits::HOOK_LOCK_WAIT;
use crate::policy::Policy;
use crate::store::hook_calls::{self, Line};
use crate::world::World;

/// Records a tool call that policyd does not block. Other events record nothing.
pub(super) fn record(world: &dyn World, request: &Request<'_>, policy: &Policy, project: &Project) {
    let event = &request.event;
    let id = event.call_id.as_deref().unwrap_or_default();
    let agent = event.agent_id.as_deref().unwrap_or_default();
    let line = if event.kind == EventKind::PreToolUse {
        Line::Begin { id, agent }
    } else if matches!(event.kind, EventKind::PostToolUse | EventKind::PostToolUseFailure) {
        Line::End { id, agent }
    } else {
        return;
    };
    // Without a check at a stop, no stop would look at them.
    if request.dry_run || !event.session_known || !policy.judges(EventKind::Stop) {
        return;
    }
    let (store, _) = project::sessions(world, project, &policy.settings);
    let folder = store.paths(&event.session_id).folder;
    if world.stat(&folder).is_err() {
        drop(store.lock(&event.session_id, HOOK_LOCK_WAIT)); // It creates the folder.
    }
    hook_calls::append(world, &folder, line);
}

/// Records that a stop of the main agent was evaluated: later stops look at later calls only.
pub(super) fn record_stop(stopping: &Stopping<'_>, facts: &Facts) {
    let event = &stopping.request.event;
    if event.kind != EventKind::Stop || stopping.request.dry_run {
        return;
    }
    let folder = stopping.store.paths(&event.session_id).folder;
    if stopping.world.stat(&folder.join(hook_calls::FILE)).is_ok() {
        let line = Line::Stop { total: facts.tools.total };
        hook_calls::append(stopping.world, &folder, line);
    }
}
