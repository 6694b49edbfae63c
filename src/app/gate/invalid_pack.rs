//! Events that are judged although the pack does not load: the user is told, the built-in guards are
//! asked, and the manifest's `on_error` answers.

use std::mem::ManuallyDrop;

use super::guards::Guarding;
use super::output::{self, Report};
use super::{Ready, Request, react};
use crate::app::packs;
use crate::app::workspace::project::Project;
use crate::hook::Answer;
use crate::judge::combine::Decision;
use crate::limits;
use crate::policy::{OnError, Policy};
use crate::state::guard::{self, GuardLimits, Ruling, Stop};
use crate::store::file::Saved;
use crate::store::session::{Layout, SessionStore};
use crate::world::World;

pub(super) const BROKEN: &str = "the policy pack is broken";

/// Without a sound pack the built-in one notes what happens and guards the tool calls. Where the
/// manifest says `on_error: block`, nothing is run or edited until the pack is mended. Sets of guards
/// that it leaves out stay left out.
pub(super) fn judge(
    world: &dyn World,
    request: &Request<'_>,
    mut policy: Policy,
    project: &Project,
    (mut report, broken): (Report, &packs::InvalidPack),
) -> Report {
    react(world, request, &policy, project, &mut report);
    if !request.event.kind.is_before_call() {
        return report.silent(BROKEN);
    }
    if !broken.sets_off.is_empty() {
        let mut guards = (*policy.guards).clone();
        guards.rules.retain(|it| !broken.sets_off.contains(&it.set.as_str()));
        policy.guards = guards.into();
    }
    let ready = ManuallyDrop::new(Ready::new(policy));
    let Ready { policy, words, .. } = &*ready;
    let text = packs::explain(broken);
    let tool = request.event.tool_name.as_deref().unwrap_or_default();
    let changes = words.lens.is_shell_tool(tool) || words.lens.is_edit_tool(tool);
    if changes && broken.on_error == Some(OnError::Block) {
        report.answer = Answer::block(format!("policyd: {text}. Tell the user to mend it."));
        report.problem(&format!("{text}. Run `policyd lint`."));
        output::log_unjudged(world, &project.state, request, true, &mut report);
        return report;
    }
    if !(Guarding { world, request, policy, words, project, found: None }).guard(&mut report) {
        return report.silent(BROKEN);
    }
    // Of calls that nothing is said to, the user hears where the session begins and at its stops.
    if report.answer.decision != Decision::None || report.answer.notice.is_some() {
        report.problem(&format!("{text}; the built-in guards were asked. Run `policyd lint`."));
    }
    report
}

/// A broken pack never breaks the agent: the user is told, and the manifest's `on_error` answers.
/// A block because of it is counted and let go like any other.
pub(super) fn answer(
    world: &dyn World,
    project: &Project,
    request: &Request<'_>,
    mut report: Report,
    broken: &packs::InvalidPack,
) -> Report {
    let text = packs::explain(broken);
    let stops = request.event.kind.is_stop();
    if stops && broken.on_error == Some(OnError::Block) && may_block(world, project, request) {
        report.answer = Answer::block(format!("policyd: {text}. Tell the user to mend it."));
    }
    report.problem(&format!("{text}; nothing was checked. Run `policyd lint`."));
    report.silent(BROKEN)
}

/// Asks the loop guard with its defaults: the pack's own numbers are not known.
fn may_block(world: &dyn World, project: &Project, request: &Request<'_>) -> bool {
    const FINDING: &str = "broken_pack";
    let event = &request.event;
    let own = project.state.clone();
    let store = SessionStore::new(world, own, Layout::policyd());
    let Ok(mut locked) = store.lock(&event.session_id, limits::LOCK_WAIT) else { return false };
    let mut state = locked.load().state;
    let stop = Stop {
        episode: event.prompt_id.as_deref().unwrap_or_default(),
        fingerprint: Some(FINDING),
        digest: FINDING,
        failed: &[],
        tools: 0,
        edits: 0,
    };
    let (guard, ruling) = guard::step(&state.main, &stop, &GuardLimits::default(), request.now);
    state.main = guard;
    let saved = locked.commit(&state);
    event.session_known
        && matches!(ruling, Ruling::Block { .. })
        && !matches!(saved, Saved::NotSaved { .. })
}
