//! The shared store at an event: read before a decision that can wait for it, and written after reactions. A tool
//! call reads the local copy and appends to the outbox; it never waits for a server.

use super::context::GateContext;
use super::diagnostics::Diagnostics;
use policyd_base::limits::SHARED_HOOK_WAIT;
use policyd_facts::event::EventKind;
use policyd_store::configuration::Configurations;
use policyd_store::decision_log::DECISION_LOG;
use policyd_store::shared::QUICK;
use policyd_tasks::sharing;
use policyd_world::World;

/// Returns whether an event exchanges changes with the server of a shared store.
fn exchanges(kind: EventKind) -> bool {
    kind.is_stop()
        || matches!(
            kind,
            EventKind::SessionStart
                | EventKind::UserPromptSubmit
                | EventKind::StopFailure
                | EventKind::SessionEnd
        )
}

/// Returns whether an event can be evaluated completely only with a network: it exchanges changes, and a shared store is
/// configured.
#[must_use]
pub fn needs_network(world: &dyn World, configurations: &Configurations, kind: EventKind) -> bool {
    exchanges(kind) && configurations.shared_store(world).is_some()
}

/// Returns whether the event of a context exchanges changes with a configured server.
fn is_shared(context: &GateContext<'_>) -> bool {
    needs_network(context.world, &context.request.configurations, context.request.event.kind)
}

/// Takes over what other hosts changed, before a stop is evaluated and where work begins.
pub(super) fn receive(context: &GateContext<'_>, diagnostics: &mut Diagnostics) {
    let kind = context.request.event.kind;
    if !is_shared(context) {
        return;
    }
    if kind.is_stop() || matches!(kind, EventKind::SessionStart | EventKind::UserPromptSubmit) {
        sync(context, diagnostics);
    }
}

/// Sends what the event changed.
pub(super) fn send(context: &GateContext<'_>, diagnostics: &mut Diagnostics) {
    let kind = context.request.event.kind;
    if !is_shared(context) {
        return;
    }
    let began = context.world.elapsed();
    if sharing::has_waiting(context.world, &context.state_dir) {
        sync(context, diagnostics);
    }
    let left = SHARED_HOOK_WAIT.saturating_sub(context.world.elapsed().saturating_sub(began));
    let is_own = !context.request.dry_run && !context.is_organization;
    if kind == EventKind::SessionEnd && is_own && !left.is_zero() {
        let log = context.project.state.join(DECISION_LOG);
        let (world, root) = (context.world, context.state_dir.as_path());
        // What is not sent now is sent at the end of the next session, or by `policyd store sync`.
        if let Err(error) = sharing::send_decisions(world, root, &log, left) {
            diagnostics.note(error.to_string());
        }
    }
}

/// Synchronizes within the limit of a hook. The user is notified once if the server cannot be reached.
fn sync(context: &GateContext<'_>, diagnostics: &mut Diagnostics) {
    if context.request.dry_run || context.is_organization {
        return;
    }
    let (root, durability) = (context.state_dir.as_path(), &context.store.durability);
    match sharing::sync(context.world, root, durability, QUICK) {
        Ok(Some(result)) => {
            diagnostics.note(format!(
                "shared store: {} sent, {} received, {} waiting",
                result.sent, result.received, result.waiting
            ));
            let notes = result.notes.iter().chain(&result.unread);
            notes.for_each(|it| diagnostics.note(format!("shared store: {it}")));
            result
                .rejected
                .iter()
                .for_each(|it| diagnostics.problem(&format!("shared store: {it}")));
        }
        Ok(None) => {}
        Err(error) => {
            diagnostics.note(error.to_string());
            // Other events cannot notify the user.
            let speaks = context.request.event.kind.is_main_boundary();
            if speaks && sharing::notify_once(context.world, root, durability) {
                diagnostics
                    .problem(&format!("{error}; changes wait in the outbox and are sent later"));
            }
        }
    }
}
