//! The view of all projects that the pages show. One thread indexes new lines of logs, reads the state of projects that
//! changed, and announces each change.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::overview::{self, ActivitySource, ProjectOverview};
use policyd_base::limits::{DASHBOARD_AGE_MAX, DASHBOARD_INTERVAL};
use policyd_cores as cores;
use policyd_index::{self as decision_index, DecisionIndex, IndexError, IndexedLog, IngestResult};
use policyd_record::activity::Activity;
use policyd_record::breaker_view::BreakerView;
use policyd_report::overview::{ProjectRow, sort};
use policyd_state::breaker::{Breaker, BreakerPhase};
use policyd_store::decision_log::DECISION_LOG;
use policyd_store::projects::{KnownProject, ProjectRegistry};
use policyd_world::{World, WorldError};
use policyd_yaml::time::Timestamp;

/// Files and directories below the state directory that change with the state of a project.
const STATE_PATHS: [&str; 8] =
    ["", DECISION_LOG, "logs/events.jsonl", "state", "queue", "escalations", "signals", "runs"];
/// Pause between two looks at whether the dashboard ended.
const STEP: Duration = Duration::from_millis(100);

/// All projects at one time.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Number of changes so far.
    pub number: u64,
    /// Rows, the greatest need first.
    pub rows: Vec<ProjectRow>,
    /// Breakers by project.
    pub breakers: BTreeMap<String, Vec<BreakerView>>,
    /// Entries of the registry by project.
    pub known: BTreeMap<String, KnownProject>,
    /// Decision logs, each with its project.
    pub logs: Vec<(String, PathBuf)>,
    /// State directories of projects that were read.
    pub state_dirs: BTreeMap<String, PathBuf>,
    /// Decisions in the index.
    pub indexed: u64,
    /// Whether the index contains the logs of all projects.
    pub is_complete: bool,
    /// Why a part is missing.
    pub problems: Vec<String>,
}

/// What shows that the state of a project changed: identity, length, and time of each file.
type ProjectStamp = Vec<Option<(u64, u64, Timestamp)>>;

/// A project as it was read last.
struct CachedProject {
    stamp: ProjectStamp,
    activity: Activity,
    read: Duration,
    overview: ProjectOverview,
}

/// What the thread that refreshes the view knows between two rounds.
#[derive(Default)]
struct RefreshState {
    index: Option<DecisionIndex>,
    projects: BTreeMap<String, CachedProject>,
    activity: BTreeMap<String, Activity>,
    /// When the activity was counted; `None`: not yet.
    counted: Option<Duration>,
}

/// The current view.
pub(super) struct Live<'w> {
    world: &'w dyn World,
    index: &'w Path,
    since: Duration,
    snapshot: Mutex<Arc<Snapshot>>,
    changes: watch::Sender<u64>,
    problems: Mutex<Vec<String>>,
}

impl<'w> Live<'w> {
    /// Returns an empty view, and the numbers of its changes.
    pub(super) fn new(
        world: &'w dyn World,
        index: &'w Path,
        since: Duration,
    ) -> (Self, watch::Receiver<u64>) {
        let (changes, receiver) = watch::channel(0);
        let (snapshot, problems) = (Mutex::default(), Mutex::default());
        (Self { world, index, since, snapshot, changes, problems }, receiver)
    }

    /// Age of the decisions that rows count.
    pub(super) const fn since(&self) -> Duration {
        self.since
    }

    /// Returns the current view.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        held(&self.snapshot).clone()
    }

    /// Returns problems that were not returned yet.
    pub(super) fn new_problems(&self) -> Vec<String> {
        std::mem::take(&mut *held(&self.problems))
    }

    /// Keeps the view current.
    pub(super) fn refresh_until(&self, is_over: &AtomicBool) {
        let mut state = RefreshState::default();
        while !is_over.load(Ordering::Relaxed) {
            if let Err(error) = self.refresh(&mut state, is_over) {
                state.index = None;
                self.report(&error);
            }
            let began = self.world.elapsed();
            while !is_over.load(Ordering::Relaxed)
                && self.world.elapsed().saturating_sub(began) < DASHBOARD_INTERVAL
            {
                self.world.sleep(STEP);
            }
        }
    }

    /// Reports an error of the index once. A damaged index is removed, so that it is built again.
    fn report(&self, error: &IndexError) {
        let removed = error.is_damage().then(|| decision_index::remove(self.world, self.index));
        let text = match removed {
            Some(Ok(())) => format!("the index was damaged and is built again: {error}"),
            Some(Err(_)) | None => format!("the index cannot be used: {error}"),
        };
        let mut next = Snapshot::clone(&self.snapshot());
        if next.problems.contains(&text) {
            return;
        }
        held(&self.problems).push(text.clone());
        next.problems = vec![text];
        self.publish(next);
    }

    fn publish(&self, mut next: Snapshot) {
        let mut snapshot = held(&self.snapshot);
        next.number = snapshot.number.saturating_add(1);
        self.changes.send_replace(next.number);
        *snapshot = Arc::new(next);
    }

    fn refresh(&self, state: &mut RefreshState, is_over: &AtomicBool) -> Result<(), IndexError> {
        let world = self.world;
        let RefreshState { index, projects: cache, activity, counted } = state;
        let index = match index {
            Some(index) => index,
            None => index.insert(DecisionIndex::open(world, self.index)?),
        };
        let known = ProjectRegistry::new(world).all();
        let logs = logs_of(&known, cache);
        let listed: BTreeSet<String> = known.iter().map(|it| shown_path(&it.directory)).collect();
        // A log that exists contains decisions of its project, also if the pack now names another directory or was not
        // read yet.
        index.retain_logs(|project, path| {
            listed.contains(project) && !matches!(world.stat(path), Err(WorldError::NotFound))
        })?;
        let before = self.snapshot();
        let mut shown = world.elapsed();
        let result = index.ingest_all(world, &indexed(&logs), &mut |added| {
            if !before.is_complete && world.elapsed().saturating_sub(shown) > DASHBOARD_INTERVAL {
                shown = world.elapsed();
                let indexed = before.indexed.saturating_add(added);
                self.publish(Snapshot { indexed, ..Snapshot::clone(&self.snapshot()) });
            }
            !is_over.load(Ordering::Relaxed)
        })?;
        if is_over.load(Ordering::Relaxed) {
            return Ok(());
        }
        let IngestResult { added, problems } = result;
        let problems: Vec<String> =
            problems.iter().map(|(path, error)| format!("{}: {error}", path.display())).collect();
        // Counting costs as much as there are decisions. Without new ones, only their age changes.
        let now = world.elapsed();
        if added > 0 || counted.is_none_or(|it| now.saturating_sub(it) > DASHBOARD_AGE_MAX) {
            *activity = index.activity(self.oldest())?.projects;
            *counted = Some(now);
        }
        let changed = self.read_changed(&known, activity, cache);
        if changed || added > 0 || !before.is_complete || before.problems != problems {
            let mut rows: Vec<ProjectRow> =
                cache.values().map(|it| it.overview.row.clone()).collect();
            sort(&mut rows);
            let breakers =
                cache.iter().map(|(project, it)| (project.clone(), it.overview.breakers.clone()));
            let dirs = cache.iter().filter(|(_, it)| !it.overview.state_dir.as_os_str().is_empty());
            let dirs = dirs.map(|(project, it)| (project.clone(), it.overview.state_dir.clone()));
            self.publish(Snapshot {
                rows,
                breakers: breakers.collect(),
                logs: logs_of(&known, cache),
                state_dirs: dirs.collect(),
                known: known.into_iter().map(|it| (shown_path(&it.directory), it)).collect(),
                indexed: index.count()?,
                is_complete: true,
                problems,
                ..Snapshot::default()
            });
        }
        Ok(())
    }

    fn oldest(&self) -> Timestamp {
        self.world.now().minus(self.since)
    }

    /// Reads the projects whose state or activity changed. Returns whether a row changed.
    fn read_changed(
        &self,
        known: &[KnownProject],
        activity: &BTreeMap<String, Activity>,
        cache: &mut BTreeMap<String, CachedProject>,
    ) -> bool {
        let (world, now) = (self.world, self.world.elapsed());
        let listed: BTreeSet<String> = known.iter().map(|it| shown_path(&it.directory)).collect();
        let count = cache.len();
        cache.retain(|project, _| listed.contains(project));
        let mut changed = cache.len() != count;
        let none = Activity::default();
        let mut stale: Vec<(String, &KnownProject, ProjectStamp, &Activity)> = Vec::new();
        for it in known {
            let project = shown_path(&it.directory);
            let (cached, activity) = (cache.get(&project), activity.get(&project).unwrap_or(&none));
            let stamp = stamp(world, it, cached);
            let is_current = cached.is_some_and(|cached| {
                cached.stamp == stamp
                    && cached.activity == *activity
                    && now.saturating_sub(cached.read) < DASHBOARD_AGE_MAX
            });
            if !is_current {
                stale.push((project, it, stamp, activity));
            }
        }
        let read = cores::on_all(world.cores(), &stale, |(_, known, _, activity)| {
            overview::of_known(world, known, ActivitySource::Index(activity))
        });
        for ((project, _, stamp, activity), overview) in stale.into_iter().zip(read) {
            changed |= cache.get(&project).is_none_or(|it| !shows_same(&it.overview, &overview));
            let activity = activity.clone();
            cache.insert(project, CachedProject { stamp, activity, read: now, overview });
        }
        changed
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn shown_path(path: &Path) -> String {
    path.display().to_string()
}

/// Logs of all projects. Where a pack keeps its own state is known after the project was read once.
fn logs_of(
    known: &[KnownProject],
    cache: &BTreeMap<String, CachedProject>,
) -> Vec<(String, PathBuf)> {
    let mut logs = Vec::new();
    for it in known {
        let project = shown_path(&it.directory);
        let mut own = vec![it.state_dir.join(DECISION_LOG)];
        let named = cache.get(&project).map(|it| it.overview.logs.clone()).unwrap_or_default();
        own.extend(named.into_iter().filter(|log| *log != it.state_dir.join(DECISION_LOG)));
        logs.extend(own.into_iter().map(|log| (project.clone(), log)));
    }
    logs
}

fn indexed(logs: &[(String, PathBuf)]) -> Vec<IndexedLog<'_>> {
    logs.iter().map(|(project, path)| IndexedLog { project, path }).collect()
}

/// Returns what the pages show of the state of a project, which changes with its files. Where a pack keeps its own state
/// is known after the project was read once.
fn stamp(world: &dyn World, known: &KnownProject, cached: Option<&CachedProject>) -> ProjectStamp {
    let of_pack = cached.map(|it| it.overview.state_dir.as_path());
    let of_pack = of_pack.filter(|it| *it != known.state_dir && !it.as_os_str().is_empty());
    let dirs = [Some(known.state_dir.as_path()), of_pack].into_iter().flatten();
    let stat = |path: PathBuf| {
        let stat = world.stat(&path).ok()?;
        Some((stat.identity, stat.length, stat.modified))
    };
    dirs.flat_map(|dir| STATE_PATHS.map(|it| stat(dir.join(it)))).collect()
}

/// Whether two overviews of a project look the same on every page.
fn shows_same(one: &ProjectOverview, other: &ProjectOverview) -> bool {
    // The time of a view changes nothing that a page shows.
    let breakers = |it: &ProjectOverview| -> Vec<(String, Breaker, BreakerPhase)> {
        let view = |it: &BreakerView| (it.key.clone(), it.breaker.clone(), it.phase());
        it.breakers.iter().map(view).collect()
    };
    one.row == other.row && breakers(one) == breakers(other)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use policyd_state::breaker::BreakerEvent;
    use policyd_store::breakers::BreakerStore;
    use policyd_store::file::Durability;
    use policyd_world::fake::FakeWorld;

    const STATE: &str = "/w/app/.policyd";

    /// A user with one project.
    fn world() -> FakeWorld {
        let world = FakeWorld::new();
        world.set_env("HOME", "/home/me");
        world.put_folder("/w/app");
        let project =
            json!({"directory": "/w/app", "state_dir": STATE, "since": "2026-01-01T00:00:00Z"});
        world.put("/home/me/.local/state/policyd/projects/a.json", project.to_string());
        world
    }

    fn call(id: &str) -> String {
        let entry = json!({"id": id, "timestamp": "2026-01-02T10:00:00Z", "event": "pre_tool_use",
            "decision": "block"});
        format!("{entry}\n")
    }

    /// Looks once, and returns the number of the view.
    fn looked(live: &Live<'_>, state: &mut RefreshState) -> u64 {
        live.refresh(state, &AtomicBool::new(false)).unwrap();
        live.snapshot().number
    }

    #[test]
    fn a_failure_that_opens_no_breaker_is_announced() {
        let folder = tempfile::tempdir().unwrap();
        let (world, index) = (world(), folder.path().join("i.sqlite"));
        let (live, mut changes) = Live::new(&world, &index, DASHBOARD_AGE_MAX);
        let mut state = RefreshState::default();
        let first = looked(&live, &mut state);
        world.advance(DASHBOARD_AGE_MAX.saturating_mul(2));
        assert_eq!(looked(&live, &mut state), first, "nothing changed but the time");
        changes.mark_unchanged();
        let policy = crate::packs::builtin_policy().unwrap();
        let breakers = BreakerStore::new(&world, Path::new(STATE), Durability::default());
        let settings = policy.breaker("api/x");
        breakers.record("api/x", BreakerEvent::failure("E"), &settings, world.now()).unwrap();
        world.advance(DASHBOARD_AGE_MAX.saturating_mul(2));
        assert_eq!(looked(&live, &mut state), first + 1);
        assert!(changes.has_changed().unwrap());
        let snapshot = live.snapshot();
        let shown: Vec<&str> = snapshot.breakers["/w/app"].iter().map(|it| &*it.key).collect();
        assert_eq!(shown, ["api/x"]);
    }

    #[test]
    fn rows_of_a_log_that_a_pack_names_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (world, index) = (world(), folder.path().join("i.sqlite"));
        world.put(Path::new(STATE).join(DECISION_LOG), call("own"));
        let of_pack = Path::new("/w/app/kept").join(DECISION_LOG);
        world.put(&of_pack, call("pack"));
        world.put(
            "/w/app/.policyd/policies/policyd.yaml",
            "version: 1\nextends: [builtin]\npaths: {root: kept}\n",
        );
        let since = "2026-01-01T00:00:00Z";
        let trusted =
            json!([{"folder": "/w/app/.policyd/policies", "hash": "any", "since": since}]);
        let trust = json!({"version": 1, "packs": trusted});
        world.put("/home/me/.config/policyd/trust.json", trust.to_string());
        let count = |rounds: usize| {
            let (live, _changes) = Live::new(&world, &index, DASHBOARD_AGE_MAX);
            let mut state = RefreshState::default();
            for _ in 0..rounds {
                looked(&live, &mut state);
            }
            live.snapshot().indexed
        };
        assert_eq!(count(2), 2, "where the pack keeps its state is known after the first look");
        assert_eq!(count(1), 2, "the next dashboard keeps its rows");
        world.remove(&of_pack).unwrap();
        assert_eq!(count(1), 1);
        world.remove(Path::new("/home/me/.local/state/policyd/projects/a.json")).unwrap();
        assert_eq!(count(1), 0, "the project is not listed any more");
    }
}
