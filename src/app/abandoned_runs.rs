//! Runs whose supervisor died: no process continues them, and they did not end. The next process that sends alerts notices
//! them, because the supervisor could not.

use crate::overview::OpenProject;
use policyd_facts::shell::quote;
use policyd_record::alert::Alert;
use policyd_record::notice::{NoticeSeverity, shown};
use policyd_state::run::Run;
use policyd_store::file::Durability;
use policyd_store::projects::{KnownProject, ProjectRegistry};
use policyd_store::runs::RunStore;
use policyd_world::World;
use policyd_yaml::time::Timestamp;

/// Kind of the alert.
pub(crate) const KIND: &str = "run_abandoned";

/// Returns an alert about the last run of each known project, if it was abandoned since a point in time.
pub(crate) fn alerts(world: &dyn World, since: Timestamp) -> Vec<Alert> {
    let known = ProjectRegistry::new(world).all();
    known.iter().filter_map(|it| alert(world, it, since)).collect()
}

fn alert(world: &dyn World, known: &KnownProject, since: Timestamp) -> Option<Alert> {
    let state_dir = OpenProject::of(world, known)?.state_dir(world);
    let run = last(&RunStore::new(world, &state_dir, Durability::default()))?;
    let at = Timestamp::from_millis(run.updated_ms);
    if at < since {
        return None;
    }
    let project = known.directory.display().to_string();
    let name = project.rsplit('/').next().unwrap_or_default();
    let next = format!("policyd -C {} run --resume", quote(&project));
    Some(Alert {
        id: format!("abandoned-{}-{}", run.id, run.updated_ms),
        key: format!("{project}|{KIND}|{}|{}", run.id, run.updated_ms),
        at,
        severity: NoticeSeverity::High.as_str().to_owned(),
        kind: KIND.to_owned(),
        subject: run.id.clone(),
        title: format!("{name}: run abandoned"),
        text: format!(
            "{}: the process of run {} ended without a result after turn {}.\n\nNext: `{next}`",
            shown(&run.goal),
            run.id,
            run.iteration
        ),
        project,
        html: None,
    })
}

/// Returns the last run if it did not end and no process continues it.
pub(crate) fn last(store: &RunStore<'_>) -> Option<Run> {
    let run = store.ids().pop().and_then(|it| store.load(&it).ok())?;
    let is_abandoned = run.status().is_none() && !run.dismissed && !store.is_active();
    is_abandoned.then_some(run)
}
