//! The registry of supervised runs of all hosts, and which of these runs a process continues.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::{Console, EXIT_OK, EXIT_USAGE, ListFormat};
use policyd_app::overview::OpenProject;
use policyd_app::workspace::human::shown;
use policyd_app::workspace::project;
use policyd_base::limits::SHARED_RUN_SILENCE_MAX;
use policyd_state::run::budget::TurnCost;
use policyd_store::document::DocumentError;
use policyd_store::file::Durability;
use policyd_store::projects::KnownProject;
use policyd_store::runs::RunStore;
use policyd_store::shared::settings::SharedSubject;
use policyd_store::shared::{STORE_COMMAND, SharedRun, SharedStore};
use policyd_world::World;
use policyd_yaml::time::short_text;

/// State of a run whose turn has not ended.
const WORKING: &str = "working";
/// State of a run that no process continues.
const ABANDONED: &str = "abandoned";

/// Lists the runs of all hosts from a current copy.
pub(super) fn list(
    world: &dyn World,
    console: &mut Console<'_>,
    store: &SharedStore<'_>,
    format: ListFormat,
) -> u8 {
    if !store.settings().shares(SharedSubject::Runs) {
        console.eprint("runs are not shared\nhelp: add `runs` to `store.share` in `config.yaml`");
        return EXIT_USAGE;
    }
    if let Err(error) = store.sync(STORE_COMMAND) {
        console.eprint(&format!("{error}\nhelp: the local copy is used until then"));
    }
    let all = match registered(world, store) {
        Ok(all) => all,
        Err(problem) => return console.report_unread([problem]),
    };
    if all.is_empty() && format == ListFormat::Text {
        console.eprint("no run is recorded");
    }
    for run in all {
        console.print(&match format {
            ListFormat::Json => format!("{}\n", json!(run)),
            ListFormat::Compact => format!("{}\n", run_line(&run)),
            ListFormat::Text => {
                let age = short_text(world.now().since(run.updated));
                let why = if run.why.is_empty() { "" } else { ": " };
                let (state, more) = (shown(&run.state), shown(&run.why));
                format!("{}\n    {state}{why}{more}, {age} ago\n", run_line(&run))
            }
        });
    }
    EXIT_OK
}

fn run_line(run: &SharedRun) -> String {
    let [host, project, id, goal] =
        [&run.host, &run.project, &run.run, &run.goal].map(|it| shown(it));
    let known = TurnCost { known_usd: run.cost_usd, unpriced: run.unpriced_turns };
    let cost = format!("{} turns, {} tokens, {}", run.turns, run.tokens, known.text_with_unit());
    format!("{host}  {project}  {id}  {cost}  {goal}")
}

/// Returns the runs of the local copy, the newest record first. A run without a process is `abandoned`: on this host if no
/// process holds its lock, on another host if it gave no sign of life for a long time.
///
/// # Errors
/// The local copy cannot be read.
fn registered(world: &dyn World, store: &SharedStore<'_>) -> Result<Vec<SharedRun>, DocumentError> {
    let mut all = store.runs()?;
    for run in all.iter_mut().filter(|it| !it.ended) {
        // The cost of the turn that began is unknown.
        let unfinished = u32::from(run.state == WORKING);
        run.unpriced_turns = run.unpriced_turns.saturating_add(unfinished);
        let is_local = run.host == store.host_name();
        let here = is_local.then(|| is_continued(world, run)).flatten();
        let silence = world.now().since(run.updated);
        let why = match here {
            Some(true) => continue,
            Some(false) => "no process continues it".to_owned(),
            None if silence <= SHARED_RUN_SILENCE_MAX => continue,
            None => format!("no sign of life for {}", whole_minutes(silence)),
        };
        (run.state, run.why) = (ABANDONED.to_owned(), why);
    }
    Ok(all)
}

fn whole_minutes(time: Duration) -> String {
    let minutes = time.as_secs().checked_div(60).unwrap_or_default();
    short_text(Duration::from_secs(minutes.saturating_mul(60)))
}

/// Returns whether a process of this host continues a run. `None` if this host does not have the run.
fn is_continued(world: &dyn World, run: &SharedRun) -> Option<bool> {
    let found = project::at(world, Path::new(&run.project));
    let known = KnownProject { directory: found.main, state_dir: found.state, since: run.started };
    let state_dir = OpenProject::of(world, &known)?.state_dir(world);
    let store = RunStore::new(world, &state_dir, Durability::default());
    let ids = store.ids();
    // Only the last run of a project is continued.
    let is_last = ids.last().is_some_and(|it| *it == run.run);
    ids.contains(&run.run).then(|| is_last && store.is_active())
}
