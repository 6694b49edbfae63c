//! Asks humans on other hosts to let a blocked call pass. The request is written into the outbox; the call does not
//! wait for a server.

use super::context::GateContext;
use super::diagnostics::Diagnostics;
use policyd_base::limits::EVIDENCE_CHARS_MAX;
use policyd_evaluation::combine::Decision;
use policyd_evaluation::guards::GuardsOutcome;
use policyd_evaluation::message::{cut, in_one_line};
use policyd_record::mask::mask;
use policyd_record::notice::{Notice, NoticeKind};
use policyd_state::approval::BlockedCall;
use policyd_store::decision_log;
use policyd_store::shared::settings::SharedSubject;
use policyd_store::shared::{AskedCall, SharedStore};
use policyd_workspace::human::shown;

/// Asks about a blocked call. Returns what the user reads about it. `None` if humans on other hosts are not asked: a user
/// who is present answers a question at the terminal instead.
pub(super) fn ask(
    context: &GateContext<'_>,
    outcome: &GuardsOutcome,
    diagnostics: &mut Diagnostics,
) -> Option<String> {
    let is_asked_here = outcome.decision == Decision::Ask && context.is_attended();
    if context.request.dry_run || context.is_organization || is_asked_here {
        return None;
    }
    let event = &context.request.event;
    let (Some(digest), Some(tool)) = (&outcome.digest, &event.tool_name) else { return None };
    // The next synchronization reports an invalid configuration.
    let found = SharedStore::find(context.world, &context.state_dir, &context.store.durability);
    let Ok(Some(store)) = found else { return None };
    if !store.settings().shares(SharedSubject::Approvals) {
        return None;
    }
    let command = event.tool_input.get("command").and_then(serde_json::Value::as_str);
    let input = command.map_or_else(|| event.tool_input.to_string(), str::to_owned);
    let call = BlockedCall {
        digest: digest.clone(),
        host: store.host_name(),
        project: context.project.root.display().to_string(),
        session: event.session_id.as_str().to_owned(),
        tool: tool.clone(),
        input: cut(&in_one_line(&mask(&input).0), EVIDENCE_CHARS_MAX),
        rules: outcome.decided_by().into_iter().map(str::to_owned).collect(),
    };
    match store.ask(&call, &context.project.state, context.world.now()) {
        Ok(AskedCall { id, request, is_new }) => {
            if is_new {
                let notice = Notice::of_call_request(&id, &call);
                let (world, state_dir) = (context.world, &context.state_dir);
                let _unlogged =
                    decision_log::notify(world, state_dir, NoticeKind::CallRequest, notice);
            }
            Some(match request.answer.filter(|it| !it.allowed) {
                Some(answer) => format!("{} refused this call on another host.", shown(&answer.by)),
                None => "A human can answer on another host: policyd allow --waiting".to_owned(),
            })
        }
        Err(error) => {
            diagnostics.problem(&format!("humans on other hosts were not asked: {error}"));
            None
        }
    }
}
