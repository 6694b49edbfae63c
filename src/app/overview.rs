//! The rows of `policyd status`: what the state directory of each project says. Nothing is evaluated, and no probe runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::AppError;
use crate::packs;
use crate::sessions::recorded;
use crate::shared_items::SharedItems;
use crate::tasks::incidents::{self, Incident};
use crate::tasks::{StoreLocation, Stores};
use crate::workspace::gate_status::{GateStatus, OffReason};
use crate::workspace::project::{self, Project};
use policyd_base::limits::COMMAND_LOCK_WAIT;
use policyd_cores as cores;
use policyd_evaluation::situation::Matchers;
use policyd_gate::meter::{MeterPlace, SessionMeter, SessionUsage};
use policyd_policy::Policy;
use policyd_record::activity::Activity;
use policyd_record::breaker_view::BreakerView;
use policyd_report::overview::{
    ProjectRow, RelatedItem, RunProgress, RunRow, WaitingItem, WaitingKind,
};
use policyd_shell::path::normal;
use policyd_state::breaker::{Breaker, BreakerPhase};
use policyd_state::dead_letter::TaskQueue;
use policyd_state::escalation::Escalation;
use policyd_state::run::{Run, RunPhase};
use policyd_store::projects::{KnownProject, ProjectRegistry};
use policyd_store::queues::Lists;
use policyd_store::runs::{RunStore, Unusable};
use policyd_store::signals::is_blocking;
use policyd_store::{file::Durability, log};
use policyd_world::{FileKind, World};
use policyd_yaml::time::Timestamp;

/// Longest time that reading one transcript may take. The context of a longer one is left out.
const TRANSCRIPT_TIME_MAX: Duration = Duration::from_millis(250);

/// What is known about a project.
#[derive(Default)]
pub struct ProjectOverview {
    pub row: ProjectRow,
    /// Breakers that ever recorded a call, sorted by key.
    pub breakers: Vec<BreakerView>,
    /// Decision logs of the project.
    pub logs: Vec<PathBuf>,
    /// State directory that the pack uses. Empty if the project cannot be read.
    pub state_dir: PathBuf,
}

/// Projects that a view is about.
pub enum ProjectScope {
    /// Every project of the registry.
    All,
    Some(Vec<Project>),
}

impl ProjectScope {
    /// Returns all projects, those of directories, or that of the working directory if none is named.
    ///
    /// # Errors
    /// A directory does not exist.
    pub fn new(world: &dyn World, all: bool, directories: &[PathBuf]) -> Result<Self, AppError> {
        if all {
            return Ok(Self::All);
        }
        if directories.is_empty() {
            return Ok(Self::Some(vec![project::find(world, None)]));
        }
        let here = world.working_folder();
        let project = |it: &PathBuf| match world.stat(&here.join(it)) {
            Ok(stat) if stat.kind == FileKind::Folder => {
                Ok(project::at(world, &normal(&here.join(it))))
            }
            Ok(_) | Err(_) => Err(AppError::usage(format!("{} is not a directory", it.display()))),
        };
        Ok(Self::Some(directories.iter().map(project).collect::<Result<_, _>>()?))
    }
}

/// Returns the rows of projects, which every view of their state shows.
pub fn rows(
    world: &dyn World,
    scope: &ProjectScope,
    source: ActivitySource<'_>,
) -> Vec<ProjectRow> {
    let mut all: Vec<ProjectOverview> = match scope {
        ProjectScope::All => {
            let known = ProjectRegistry::new(world).all();
            cores::on_all(world.cores(), &known, |it| of_known(world, it, source))
        }
        ProjectScope::Some(projects) => {
            cores::on_all(world.cores(), projects, |it| of_project(world, it, source))
        }
    };
    let opened = all.iter().filter(|it| !it.state_dir.as_os_str().is_empty());
    let opened = opened.map(|it| (PathBuf::from(&it.row.directory), it.state_dir.clone()));
    let shared = SharedItems::of(world, opened);
    for (directory, item) in shared.items() {
        let is_it = |it: &&mut ProjectOverview| Path::new(&it.row.directory) == directory;
        all.iter_mut().filter(is_it).for_each(|it| it.row.waiting.push(item.clone()));
    }
    all.iter_mut().for_each(|it| it.row.waiting.sort_by_key(|it| it.kind));
    all.into_iter().map(|it| it.row).collect()
}

/// Where the activity of a project comes from.
#[derive(Clone, Copy)]
pub enum ActivitySource<'a> {
    /// The logs are read; their entries count from this time on.
    Logs { since: Timestamp },
    /// The results of former calls are known.
    Known(&'a dyn KnownResults),
    /// The index knows it.
    Index(&'a Activity),
}

/// Results of former calls, so that only what changed is read. Projects are named by their main checkouts.
pub trait KnownResults: Sync {
    /// Returns what one log of a project tells.
    fn activity(&self, project: &str, log: &Path) -> Activity;

    /// Returns the usage of the last session of a project. It is measured unless the result of the same key is known.
    fn usage(
        &self,
        project: &str,
        key: &str,
        measure: &mut dyn FnMut() -> Option<SessionUsage>,
    ) -> Option<SessionUsage>;
}

/// Returns the overview of a project of the registry.
pub fn of_known(
    world: &dyn World,
    known: &KnownProject,
    source: ActivitySource<'_>,
) -> ProjectOverview {
    let directory = known.directory.display().to_string();
    if !world.stat(&known.directory).is_ok_and(|it| it.kind == FileKind::Folder) {
        let problems = vec![format!(
            "the directory does not exist any more; `policyd status --forget {directory}` removes the row"
        )];
        let row = ProjectRow { directory, problems, ..ProjectRow::default() };
        return ProjectOverview { row, ..ProjectOverview::default() };
    }
    of_project(world, &project_of(world, known), source)
}

/// Returns what waits for a human in a project of the registry.
pub(super) fn waiting(world: &dyn World, known: &KnownProject) -> Vec<WaitingItem> {
    let Some(OpenProject { project, mut policy }) = OpenProject::of(world, known) else {
        return Vec::new();
    };
    let words = &Matchers::out_of(&mut policy);
    let (project, policy) = (&project, &policy);
    let overview = Overview { world, project, policy, words, pack: &[], known: None };
    let mut row = ProjectRow::default();
    overview.add_run(&mut row);
    overview.add_waiting(&mut row);
    row.waiting_items()
}

/// Returns the project of an entry of the registry.
fn project_of(world: &dyn World, known: &KnownProject) -> Project {
    Project { state: known.state_dir.clone(), ..project::at(world, &known.directory) }
}

/// A project with its pack.
pub struct OpenProject {
    pub project: Project,
    pub policy: Policy,
}

impl OpenProject {
    /// Opens a project of the registry. The built-in pack replaces an invalid one; `None` if that is invalid, too.
    pub fn of(world: &dyn World, known: &KnownProject) -> Option<Self> {
        let project = project_of(world, known);
        let policy = packs::policy(world, &packs::find(world, &project, None)).ok();
        Some(Self { project, policy: policy.or_else(packs::builtin_policy)? })
    }

    /// Returns where the pack keeps the state of the project.
    pub fn state_dir(&self, world: &dyn World) -> PathBuf {
        project::sessions(world, &self.project, &self.policy.settings).1
    }

    /// Calls `change` with a World that writes into the state directories of the project as the gate does: not behind a
    /// link of the repository, and not into a directory of another user.
    pub fn fenced<T>(&self, world: &dyn World, change: impl FnOnce(&dyn World) -> T) -> T {
        let fenced = project::fenced(world, &self.project);
        let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
        let by_pack = project::fenced_by_pack(world, &self.project, &self.policy.settings);
        change(by_pack.as_ref().map_or(world, |it| it as &dyn World))
    }
}

/// Returns the overview of a project.
fn of_project(world: &dyn World, project: &Project, source: ActivitySource<'_>) -> ProjectOverview {
    let fenced = project::fenced(world, project);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let mut row =
        ProjectRow { directory: project.main.display().to_string(), ..ProjectRow::default() };
    let found = packs::find(world, project, None);
    let (policy, pack) = match packs::policy(world, &found) {
        Ok(policy) => (Some(policy), found.short_hash().to_vec()),
        Err(_) => {
            row.problems.push("the pack is invalid: run `policyd lint` there".to_owned());
            (packs::builtin_policy(), Vec::new())
        }
    };
    let Some(mut policy) = policy else {
        return ProjectOverview { row, ..ProjectOverview::default() };
    };
    let words = Matchers::out_of(&mut policy);
    let known = match source {
        ActivitySource::Known(known) => Some(known),
        ActivitySource::Logs { .. } | ActivitySource::Index(_) => None,
    };
    let overview = Overview { world, project, policy: &policy, words: &words, pack: &pack, known };
    overview.add_switches(&mut row);
    let logs = recorded::log_paths(world, project, Some(overview.policy));
    match source {
        ActivitySource::Index(activity) => overview.add_activity(&mut row, activity.clone()),
        ActivitySource::Logs { since } => {
            let mut activity = Activity::default();
            logs.iter().for_each(|it| activity.merge(activity_of(world, it, since)));
            overview.add_activity(&mut row, activity);
        }
        ActivitySource::Known(known) => {
            let mut activity = Activity::default();
            logs.iter().for_each(|it| activity.merge(known.activity(&row.directory, it)));
            overview.add_activity(&mut row, activity);
        }
    }
    overview.add_run(&mut row);
    let breakers = overview.add_waiting(&mut row);
    ProjectOverview { row, breakers, logs, state_dir: overview.state_dir() }
}

/// Returns what a log tells. Files whose entries are all too old are not read.
fn activity_of(world: &dyn World, log: &Path, since: Timestamp) -> Activity {
    let mut activity = Activity::default();
    log::each_file_back(world, log, |bytes| {
        let mut part = Activity::default();
        let mut lines = bytes.split(|it| *it == b'\n').peekable();
        let first = lines.peek().copied().unwrap_or_default();
        lines.for_each(|line| part.add(line, since));
        activity.merge(part);
        !activity.is_complete(first, since)
    });
    activity
}

struct Overview<'a> {
    world: &'a dyn World,
    project: &'a Project,
    policy: &'a Policy,
    words: &'a Matchers,
    /// Hash of the pack of `policy`.
    pack: &'a [u8],
    known: Option<&'a dyn KnownResults>,
}

impl Overview<'_> {
    fn add_activity(&self, row: &mut ProjectRow, activity: Activity) {
        row.last_activity = activity.last;
        row.last_stop = activity.last_stop;
        row.blocked_stops = activity.blocked_stops;
        row.released_stops = activity.released_stops;
        row.blocked_calls = activity.blocked_calls;
        row.approved_calls = activity.approved_calls;
        row.left_prompts = activity.left_prompts;
        row.observed = activity.observed;
        let Some((transcript, session)) = activity.transcript else { return };
        let (store, _) = project::sessions(self.world, self.project, &self.policy.settings);
        let Self { world, policy, words, .. } = *self;
        let meter = SessionMeter { world, policy, words, store: &store };
        let place = MeterPlace::of(Path::new(&transcript), &session);
        let overrides = project::overrides(world).0;
        // A transcript that the client deleted or that is too long says nothing.
        let mut measure = || meter.measure(&place, &overrides, TRANSCRIPT_TIME_MAX).ok();
        let key = || meter.usage_key(&place, &overrides, self.pack);
        let usage = match self.known.and_then(|it| Some((it, key()?))) {
            Some((known, key)) => known.usage(&row.directory, &key, &mut measure),
            None => measure(),
        };
        let Some(usage) = usage else { return };
        row.context_percent = usage.percent;
        row.session_cost_usd = (usage.cost_nano > 0).then(|| usd(usage.cost_nano));
    }

    /// Adds why policyd is off or paused in the project, or only observes.
    fn add_switches(&self, row: &mut ProjectRow) {
        let now = self.world.now();
        let status = GateStatus::read(self.world, self.project, None, now);
        let is_disabled = !self.policy.settings.enabled && status.pins.allow_disable;
        let off = status.off.or_else(|| is_disabled.then_some(OffReason::Manifest));
        let off = off.map(|it| it.text(now));
        row.switches = off.into_iter().chain(status.pauses.iter().map(|it| it.text(now))).collect();
        row.observes = status.enforcement.text(self.policy.settings.mode);
    }

    fn add_run(&self, row: &mut ProjectRow) {
        let store = RunStore::new(self.world, &self.state_dir(), Durability::default());
        let Some(id) = store.ids().pop() else { return };
        let run = match store.load(&id) {
            Ok(run) => run,
            Err(Unusable::None) => return,
            Err(Unusable::Document(problem)) => {
                row.is_unread = true;
                row.problems.push(problem.note());
                return;
            }
        };
        let updated = Timestamp::from_millis(run.updated_ms);
        row.last_activity = row.last_activity.max(Some(updated));
        let cost = run.cost_of_begun();
        row.run = Some(RunRow {
            progress: progress(&run, store.is_active()),
            id: run.id,
            goal: run.goal,
            turns: run.iteration,
            tokens: run.spend.tokens(),
            cost_usd: cost.known_usd,
            unpriced_turns: cost.unpriced,
            updated,
            is_given_up: run.dismissed,
            is_answered: false,
        });
    }

    fn add_waiting(&self, row: &mut ProjectRow) -> Vec<BreakerView> {
        let (durability, state_dir) = (Durability::default(), self.state_dir());
        let location = StoreLocation {
            state_dir: &state_dir,
            durability: &durability,
            lock_wait: COMMAND_LOCK_WAIT,
        };
        let stores = Stores::new(self.world, self.policy, location);
        let problems = stores.problems();
        row.is_unread |= !problems.is_empty();
        row.problems.extend(problems);
        // What cannot be read is among the problems.
        let escalations = stores.escalations.all().unwrap_or_default();
        if let Some(waiting) = stores.waiting_with(&escalations) {
            row.dead_letters = waiting.depth;
            row.dead_letters_for_human = waiting.awaiting_human;
        }
        let now = self.world.now();
        let breakers = stores.breakers.all().unwrap_or_default();
        let lists = stores.queues.peek();
        if let Some(run) = &mut row.run {
            run.is_given_up |= incidents::is_given_up(&lists, &run.id, run.updated);
            // What cannot be read is among the problems.
            let answers = stores.signals.unreceived_answers().unwrap_or_default();
            let mut answered = answers.iter().filter(|it| it.is_blocking && it.at >= run.updated);
            run.is_answered = run.ended_for_human_since(run.updated) && answered.next().is_some();
        }
        row.waiting = waiting_in(&stores, &escalations, &lists, &breakers, row.run.as_ref());
        row.waiting.extend(self.earlier_runs());
        let breakers: Vec<BreakerView> = breakers
            .into_iter()
            .map(|(key, breaker)| {
                let settings = self.policy.breaker(&key);
                BreakerView { key, breaker, settings, now }
            })
            .collect();
        for it in &breakers {
            if it.breaker.is_open(&it.settings, now) {
                row.open_breakers.push(it.key.clone());
            } else if it.breaker.phase == BreakerPhase::HalfOpen {
                row.half_open_breakers = row.half_open_breakers.saturating_add(1);
            }
            let is_asked = |item: &WaitingItem| item.related.iter().any(|of| of.id == it.key);
            let is_endless = it.breaker.is_open(&it.settings, now)
                && it.breaker.wait(&it.settings, now).is_none();
            if (it.breaker.needs_human || is_endless) && !row.waiting.iter().any(is_asked) {
                let text = match it.breaker.forced.as_deref().filter(|_| is_endless) {
                    None => "waits for a reset".to_owned(),
                    Some("") => "tripped by hand, rejects calls until a reset".to_owned(),
                    Some(why) => format!("tripped by hand, rejects calls until a reset: {why}"),
                };
                row.waiting.push(WaitingItem::new(WaitingKind::Breaker, &it.key, &it.key, &text));
            }
        }
        breakers
    }

    /// Returns the runs before the last one whose work no check could verify. A human accepts or dismisses each.
    fn earlier_runs(&self) -> Vec<WaitingItem> {
        let store = RunStore::new(self.world, &self.state_dir(), Durability::default());
        let mut ids = store.ids();
        ids.pop();
        let runs = ids.iter().filter_map(|it| store.load(it).ok());
        let item = |run: Run| match &run.phase {
            RunPhase::Over { status, why } if status.can_be_accepted() && !run.dismissed => {
                Some(WaitingItem::new(WaitingKind::UnverifiedRun, &run.id, &run.goal, why))
            }
            RunPhase::Over { .. }
            | RunPhase::Ready
            | RunPhase::Asking
            | RunPhase::Working
            | RunPhase::Waiting { .. }
            | RunPhase::Paused => None,
        };
        runs.filter_map(item).collect()
    }

    /// Where the pack keeps the state of the project.
    fn state_dir(&self) -> PathBuf {
        project::sessions(self.world, self.project, &self.policy.settings).1
    }
}

/// Returns what waits for a human in the stores, without breakers and runs that no question is about. Tasks that a question
/// is about are left out.
fn waiting_in(
    stores: &Stores<'_>,
    escalations: &[Escalation],
    lists: &Lists,
    breakers: &[(String, Breaker)],
    run: Option<&RunRow>,
) -> Vec<WaitingItem> {
    let mut asked = BTreeSet::new();
    let mut items = Vec::new();
    for it in escalations.iter().filter(|it| it.closed.is_none()) {
        let incident = Incident::of_question(it, lists, breakers);
        let item = WaitingItem::new(WaitingKind::Question, &it.id, &it.title, &it.reason);
        items.push(item.with_related(related(&incident, run)));
        asked.extend(incident.tasks);
    }
    let view = stores.signals.view(stores.now);
    let signals = view.awaiting_human(&stores.policy.signals, stores.now);
    items.extend(signals.map(|it| {
        let item = WaitingItem::new(WaitingKind::Signal, &it.id, &it.name, it.message());
        let is_asked = |run: &&RunRow| {
            is_blocking(&it.fields)
                && run.waits_for_human()
                && run.ended_for_human_since(it.signal.created)
        };
        let run = run
            .filter(is_asked)
            .map(|run| RelatedItem { id: run.id.clone(), kind: WaitingKind::Run });
        item.with_related(run.into_iter().collect())
    }));
    // The answer to a question also moves its task.
    for it in lists.on(TaskQueue::DeadLetter).filter(|it| !asked.contains(&it.id)) {
        let item = WaitingItem::new(WaitingKind::DeadLetter, &it.id, &it.title, &it.summary);
        items.push(item.with_related(related(&Incident::of_task(it, breakers), run)));
    }
    items
}

/// Returns the breakers of an incident, and the last run of its project if it belongs to the incident and waits.
fn related(incident: &Incident, run: Option<&RunRow>) -> Vec<RelatedItem> {
    let item = |kind| move |id: &String| RelatedItem { id: id.clone(), kind };
    let breakers = incident.breakers.iter().map(item(WaitingKind::Breaker));
    let run = run.filter(|it| it.waits_for_human() && incident.runs.contains(&it.id));
    breakers.chain(run.map(|it| &it.id).map(item(WaitingKind::Run))).collect()
}

fn progress(run: &Run, is_active: bool) -> RunProgress {
    match &run.phase {
        RunPhase::Over { status, why } => {
            RunProgress::Ended { status: *status, reason: why.clone() }
        }
        _ if !is_active => RunProgress::Abandoned,
        RunPhase::Paused => RunProgress::Paused,
        RunPhase::Waiting { why, .. } => RunProgress::Waiting { reason: why.clone() },
        RunPhase::Ready | RunPhase::Asking | RunPhase::Working => RunProgress::Working,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a cost in dollars is rounded for display")]
fn usd(nano: u64) -> f64 {
    nano as f64 / 1e9
}
