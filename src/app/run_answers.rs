//! The answer of a human to a run that waits: its work is accepted, or the run is dismissed.

use crate::tasks::Stores;
use crate::workspace::human::{Actor, shown};
use policyd_record::notice::{Notice, NoticeKind};
use policyd_state::run::{RunEffect, RunEvent, RunLimits, step};
use policyd_store::decision_log;
use policyd_store::runs::{RunStore, Unusable};
use policyd_world::WorldError;

/// An answer to a run.
#[derive(Debug, Clone, Copy)]
pub struct RunAnswer<'a> {
    /// Whether the human accepts the work, or dismisses the run.
    pub accepted: bool,
    /// What the human adds.
    pub text: &'a str,
    pub actor: &'a Actor,
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RunAnswerError {
    /// A process continues a run of the project.
    #[error("a process continues this run. Stop it there first: `policyd signal emit STOP`")]
    IsActive,
    /// The run has no work that a human can accept.
    #[error("a yes does not continue a run. Resume it in its project: `policyd run --resume`")]
    NotAcceptable,
    #[error(transparent)]
    Unusable(#[from] Unusable),
    #[error(transparent)]
    World(#[from] WorldError),
}

/// Accepts or dismisses a run of a project, and logs the end of an accepted one.
///
/// # Errors
/// Nothing was changed.
pub fn answer(stores: &Stores<'_>, id: &str, answer: RunAnswer<'_>) -> Result<(), RunAnswerError> {
    let (world, own) = (stores.world, &stores.own);
    let store = RunStore::new(world, own, stores.breakers.durability().clone());
    // No process continues an earlier run.
    let is_last = store.ids().last().is_some_and(|it| it == id);
    let alone = is_last.then(|| store.lock()).transpose();
    let _alone = alone.map_err(|error| {
        let is_active = matches!(error, WorldError::Locked(_));
        if is_active { RunAnswerError::IsActive } else { error.into() }
    })?;
    let run = store.load(id)?;
    let by = shown(answer.actor.user());
    let why = match answer.text {
        "" => format!("{by} accepted the work"),
        text => format!("{by} accepted the work: {text}"),
    };
    let event = if answer.accepted { RunEvent::Accepted(&why) } else { RunEvent::Dismissed };
    let (next, effects) = step(&run, &event, &RunLimits::default(), stores.now);
    if next == run && answer.accepted {
        return Err(RunAnswerError::NotAcceptable);
    }
    store.save(&next)?;
    let ended = effects.iter().any(|it| matches!(it, RunEffect::End(_)));
    if let Some(notice) = Notice::of_run(&next).filter(|_| ended) {
        // The state of the run has the answer, too.
        let _unlogged = decision_log::notify(world, own, NoticeKind::RunEnd, notice);
    }
    Ok(())
}
