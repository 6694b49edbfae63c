//! Supervised runs: lets an agent's command work on a goal, turn after turn. Lives here: the order of
//! effects. `state::run` decides the next step; `turn` makes a turn.

mod alerting;
mod changes;
mod completion;
mod conversation;
mod failures;
mod observer;
mod poll;
mod process_output;
mod prompt;
mod reporter;
mod restart;
mod shared;
mod triggers;
mod turn;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use serde_json::json;

use crate::error::AppError;
use crate::gate::LoadedPolicy;
use crate::packs::FoundPack;
use crate::tasks::{StoreLocation, Stores};
use crate::workspace::human::RUN_VARIABLE;
use crate::workspace::project::{self, Project};
use crate::{alerts, sharing};
pub use observer::RunObserver;
use policyd_base::limits::{
    ALERT_TIME_MAX, GOAL_BYTES_MAX, POLICY_FILE_BYTES_MAX, RUN_LOGS_BYTES_MAX,
};
use policyd_fact_table::context_facts::ContextUsage;
use policyd_hook::agent_output::AgentOutput;
use policyd_policy::Policy;
use policyd_policy::run::RunPolicy;
use policyd_state::context::Overrides;
use policyd_state::run::{
    Admission, Options, Run, RunEffect, RunEvent, RunLimits, RunPhase, RunStatus, step,
};
use policyd_store::file::Durability;
use policyd_store::projects::ProjectRegistry;
use policyd_store::runs::RunStore;
use policyd_store::user_choices::UserChoiceStore;
use policyd_world::{World, WorldError};
use shared::{Listener, RunAnnouncement};

/// How often signals and interrupts are looked for while nothing else is done.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The supervisor would rather wait for a lock than lose a result.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// What is asked of a run.
pub struct RunRequest {
    /// Goal of a new run: text, or a file that contains it.
    pub goal: String,
    /// The agent command of a turn; empty for a resumed run that keeps its command.
    pub command: Vec<String>,
    /// Limits that differ from those of the pack.
    pub options: Options,
    /// State directory that the user named.
    pub state_dir: Option<PathBuf>,
    /// Whether the last unfinished run is resumed.
    pub resume: bool,
}

/// Supervises one run to its end; returns how it ended.
///
/// # Errors
/// The request is invalid, or the run cannot begin.
pub fn run(
    world: &dyn World,
    observer: &mut dyn RunObserver,
    mut policy: Policy,
    found: FoundPack,
    request: &RunRequest,
) -> Result<RunStatus, AppError> {
    let project = project::find(world, None);
    // A state directory of the command line is used as the user says.
    let is_named = request.state_dir.is_some();
    let fenced = project::fenced_by_pack(world, &project, &policy.settings).filter(|_| !is_named);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    if let Some(folder) = &request.state_dir {
        let root = project.folder.join(folder);
        let said = world.env("POLICYD_STATE_DIR").map(|it| project.main.join(it));
        if said.is_some_and(|said| said != root) {
            let text = "`--state-dir` and `POLICYD_STATE_DIR` name different directories";
            return Err(AppError::usage(text));
        }
        policy.settings.paths.root = root.to_string_lossy().into_owned();
    }
    let ready = LoadedPolicy::new(policy, Some(Rc::new(found)));
    let (sessions, own) = project::sessions(world, &project, &ready.policy.settings);
    let durability = sessions.durability.clone();
    let store = RunStore::new(world, &own, durability.clone());
    let _alone = store.lock().map_err(|error| {
        AppError::failed_as(if matches!(error, WorldError::Locked(_)) {
            other_run(&store)
        } else {
            format!("{}: {error}; nothing was run", own.display())
        })
    })?;
    let choices = UserChoiceStore::new(world, &own);
    let (run, unrecorded) = begin(world, &store, &choices, request)?;
    ProjectRegistry::new(world).register(&project.main, &project.state, world.now());
    world.note_interrupts();
    let settings = ready.policy.run.clone().into_inner();
    let limits = run.options.limit(&settings.limits);
    if request.resume && would_lose_end(&run, &limits) {
        return Err(AppError::usage(out_of_turns(&run, &limits)));
    }
    let folder = store.folder(&run.id);
    let paths = RunPaths { own, folder, named: is_named };
    let (overrides, mut wrong) = project::overrides(world);
    let (channels, ignored) = alerts::settings(world);
    wrong.extend(ignored.iter().map(ToString::to_string));
    let mut supervisor = Supervisor {
        world,
        ready: &ready,
        project: &project,
        paths,
        durability,
        store,
        run,
        limits,
        settings,
        overrides,
        context: ContextUsage::default(),
        failed: false,
        is_cost_unknown: false,
        standing: String::new(),
        decided: "",
        observer,
        alerting: alerting::AlertTimer::new(channels),
        received: BTreeSet::new(),
        is_saved: true,
        began: world.elapsed(),
        announced: RunAnnouncement::default(),
        listener: Listener::default(),
    };
    wrong.iter().chain(&unrecorded).for_each(|it| supervisor.problem(it));
    Ok(supervisor.drive(request.resume))
}

/// A new run, or the one that is resumed; and why it cannot be resumed later, if so.
fn begin(
    world: &dyn World,
    store: &RunStore<'_>,
    choices: &UserChoiceStore<'_>,
    request: &RunRequest,
) -> Result<(Run, Option<String>), AppError> {
    if request.resume {
        let mut run = store.last_open().map_err(AppError::failed)?;
        let started = choices.load().map_err(AppError::failed)?.runs;
        if started.get(&run.id) != Some(&run.work_digest()) {
            return Err(AppError::failed_as(foreign(&run)));
        }
        run.options = request.options.clone().over(&run.options);
        if !request.command.is_empty() {
            run.command.clone_from(&request.command);
        }
        return Ok(record_start(choices, run));
    }
    let now = world.now();
    let goal = goal(world, &request.goal)?;
    let mut run = Run::new(&store.new_id(now), &goal, &request.command, now);
    run.options = request.options.clone();
    Ok(record_start(choices, run))
}

/// Records in the choices of the user what a run may do; a run without a record cannot be resumed.
fn record_start(choices: &UserChoiceStore<'_>, run: Run) -> (Run, Option<String>) {
    let recorded = choices.change(|it| it.add_run(&run.id, &run.work_digest()));
    let problem = recorded.err().map(|it| format!("{it}; this run cannot be resumed"));
    (run, problem)
}

/// Why no run begins while another one is active, and how that one ends.
fn other_run(store: &RunStore<'_>) -> String {
    let last = store.ids().pop().and_then(|it| store.load(&it).ok());
    match last {
        Some(Run { id, phase: RunPhase::Paused, .. }) => format!(
            "run {id} is paused in this project, and its process waits\nhelp: `policyd signal list` shows what it waits \
             for; `policyd signal consume PAUSE` ends a PAUSE, and the run continues"
        ),
        Some(Run { id, .. }) => format!(
            "another run is active in this project: {id}\nhelp: `policyd signal emit STOP` ends it after its turn"
        ),
        None => "another run is active in this project".to_owned(),
    }
}

/// Why a run is not resumed that this user did not start, or that was changed since.
fn foreign(run: &Run) -> String {
    format!(
        "run {} was not started by you on this machine, or its command, goal or options were \
         changed since; it is not resumed. Look at it, and start a new one with `policyd run --goal`",
        run.id
    )
}

/// Whether a resumed run would end at once because it has no turns, and its last end for another reason would be lost.
fn would_lose_end(run: &Run, limits: &RunLimits) -> bool {
    let ended =
        matches!(&run.phase, RunPhase::Over { status, .. } if *status != RunStatus::MaxIterations);
    ended && !run.again && !run.turns_left(limits)
}

/// Why such a run is not resumed.
fn out_of_turns(run: &Run, limits: &RunLimits) -> String {
    let most = run.iterations_max(limits);
    format!(
        "run {} has used all of its {most} turns\nhelp: `policyd run --resume --max-iterations {}` goes on with more turns",
        run.id,
        most.saturating_add(1)
    )
}

/// The goal: a text, or what a file of this name holds.
fn goal(world: &dyn World, said: &str) -> Result<String, AppError> {
    let usage = |why: String| AppError::usage(why);
    let text = match world.read(Path::new(said), POLICY_FILE_BYTES_MAX) {
        Ok(bytes) => String::from_utf8(bytes)
            .map_err(|_| usage(format!("goal file `{said}` is not UTF-8 text")))?,
        Err(WorldError::TooLarge(bytes)) => {
            return Err(usage(format!("goal file `{said}` is too long ({bytes} bytes)")));
        }
        // No goal is one word that looks like a file.
        Err(error) if names_file(said) => {
            return Err(usage(format!("could not read goal file `{said}`: {error}")));
        }
        // Any other text is the goal itself.
        Err(_) => said.to_owned(),
    };
    let text = text.trim();
    if text.is_empty() {
        return Err(usage("the goal is empty".to_owned()));
    }
    if text.len() > GOAL_BYTES_MAX {
        return Err(usage(format!("the goal is too long ({} bytes)", text.len())));
    }
    Ok(text.to_owned())
}

/// Whether a text is a path, or a name with an ending, rather than a sentence: `GOAL.md`.
fn names_file(said: &str) -> bool {
    let is_ending =
        |it: &str| (1..=4).contains(&it.len()) && it.bytes().all(|it| it.is_ascii_alphanumeric());
    !said.is_empty()
        && !said.contains(char::is_whitespace)
        && (said.contains('/')
            || said.rsplit_once('.').is_some_and(|(_, ending)| is_ending(ending)))
}

/// Where a run keeps its files.
struct RunPaths {
    /// The state directory.
    own: PathBuf,
    /// The folder of the run.
    folder: PathBuf,
    /// Whether the command line names the state directory, so that commands of the agent must receive its path.
    named: bool,
}

/// Breakers that are not closed, for the line that shows where the run stands.
fn open_breakers(stores: &Stores<'_>) -> String {
    let all = match stores.breakers.all() {
        Ok(all) => all,
        Err(error) => return stores.breakers.unreadable(&error),
    };
    let open =
        all.iter().filter(|(_, it)| it.phase != policyd_state::breaker::BreakerPhase::Closed);
    let words: Vec<String> = open.map(|(key, it)| format!("{key} {}", it.phase.as_str())).collect();
    words.join(", ")
}

/// One run at work.
struct Supervisor<'a> {
    world: &'a dyn World,
    ready: &'a LoadedPolicy,
    project: &'a Project,
    paths: RunPaths,
    durability: Durability,
    store: RunStore<'a>,
    run: Run,
    limits: RunLimits,
    settings: RunPolicy,
    overrides: Overrides,
    /// How full the context was after the last turn.
    context: ContextUsage,
    /// Whether the last turn failed.
    failed: bool,
    /// Whether the user knows that the cost of turns is not known.
    is_cost_unknown: bool,
    /// Breakers that are not closed, in words.
    standing: String,
    /// What the gate decided last.
    decided: &'static str,
    observer: &'a mut dyn RunObserver,
    alerting: alerting::AlertTimer,
    /// Ids of the requests whose answers the run contains.
    received: BTreeSet<String>,
    /// Whether the run was saved the last time.
    is_saved: bool,
    /// When the run began, since the start of the process.
    began: Duration,
    /// What other hosts know of the run.
    announced: RunAnnouncement,
    listener: Listener,
}

impl<'a> Supervisor<'a> {
    fn policy(&self) -> &'a Policy {
        &self.ready.policy
    }

    /// The stores as they are used now.
    fn stores(&self) -> Stores<'a> {
        let (state_dir, durability) = (self.paths.own.as_path(), &self.durability);
        let location = StoreLocation { state_dir, durability, lock_wait: LOCK_WAIT };
        Stores::new(self.world, self.policy(), location)
    }

    /// Goes on until the run is over; returns how it ended.
    fn drive(&mut self, resumed: bool) -> RunStatus {
        self.remove_earlier_stops(self.world.now());
        self.catch_up();
        if resumed {
            self.take_up();
        } else {
            let fields = [("run", json!(self.run.id)), ("goal", json!(self.run.goal))];
            self.report("loop.start", &fields);
            self.note_gate();
            self.note_git();
            self.save();
            self.store.prune(self.settings.keep, RUN_LOGS_BYTES_MAX);
        }
        loop {
            if let Some(status) = self.run.status() {
                self.report_end();
                self.alert(ALERT_TIME_MAX, true);
                return status;
            }
            if self.world.interrupted() {
                self.step(&RunEvent::Interrupted(None));
                continue;
            }
            self.alert_if_due();
            self.give_sign_of_life();
            match self.run.phase.clone() {
                RunPhase::Ready => self.poll(),
                RunPhase::Paused => {
                    self.show(&AgentOutput::default());
                    self.idle(POLL_INTERVAL);
                    self.poll();
                }
                RunPhase::Waiting { until_ms, .. } => {
                    let left = until_ms.saturating_sub(self.world.now().millis()).max(0);
                    let left = Duration::from_millis(left.unsigned_abs());
                    self.show(&AgentOutput::default());
                    self.idle(left.min(POLL_INTERVAL));
                    self.poll();
                }
                RunPhase::Asking => {
                    let admission = self.ask_breaker();
                    // Saved with the turn that begins, so that its usage is known if this process dies.
                    self.run.heard_from = self.transcript_bytes();
                    self.step(&RunEvent::Asked(&admission));
                }
                RunPhase::Working => self.turn(),
                RunPhase::Over { .. } => {}
            }
        }
    }

    /// Takes up a run whose process may have died: what it left behind is ended first.
    fn take_up(&mut self) {
        if self.run.phase == RunPhase::Working {
            match self.world.kill_marked(RUN_VARIABLE, &self.mark()) {
                Ok(0) | Err(WorldError::Unsupported) => {}
                Ok(1) => self.problem("ended 1 process of the interrupted turn"),
                Ok(count) => {
                    self.problem(&format!("ended {count} processes of the interrupted turn"));
                }
                Err(error) => self.problem(&format!("interrupted turn: {error}")),
            }
        }
        let fields = [("run", json!(self.run.id)), ("iteration", json!(self.run.iteration))];
        self.report("loop.resume", &fields);
        let ended = self.run.status().is_some();
        if ended {
            self.take_decisions();
        }
        let used = (self.run.phase == RunPhase::Working).then(|| self.used_unheard()).flatten();
        self.step(&RunEvent::Resumed(used));
        // Of a run whose process died, the agent may have switched the gate: a turn's start finds out.
        if ended {
            self.note_gate();
            self.save();
        }
    }

    fn poll(&mut self) {
        let was_paused = self.run.phase == RunPhase::Paused;
        let look = self.poll_signals();
        self.step(&RunEvent::Looked(&look));
        self.remove_answers(&look.answered);
        if self.run.phase == RunPhase::Paused && !was_paused {
            let why = look.review.or(look.pause).unwrap_or_default();
            self.report("loop.paused", &[("reason", json!(why))]);
        }
    }

    /// Applies an event to the run, saves the run, and performs the effects. The files of an ended session are archived
    /// before the new session is saved: after a crash between the two, archiving again does no harm.
    fn step(&mut self, event: &RunEvent<'_>) {
        let (next, effects) = step(&self.run, event, &self.limits, self.world.now());
        let mut next = next;
        for effect in &effects {
            match effect {
                RunEffect::Renew(why) => self.renew(*why, &next),
                // A human who cannot be asked does not vouch for anything.
                RunEffect::AskHuman(why) => next.unseen_asked = self.ask_human(why),
                RunEffect::Ask
                | RunEffect::Begin
                | RunEffect::Extended(_)
                | RunEffect::Stuck(_)
                | RunEffect::BudgetWarning(_)
                | RunEffect::Wait { .. }
                | RunEffect::End(_) => {}
            }
        }
        let moved = next != self.run;
        self.run = next;
        if moved {
            self.save();
        }
        for effect in effects {
            self.report_effect(&effect);
        }
    }

    /// Remembers the run. One that cannot be remembered goes on, and that is said.
    fn save(&mut self) {
        let saved = self.store.save(&self.run);
        self.is_saved = saved.is_ok();
        if let Err(error) = saved {
            self.problem(&format!("could not save the run: {error}"));
        }
        if let Some(why) = self.store.degraded() {
            self.problem(&format!("saved, but a loss of power may undo it: {why}"));
        }
        self.announce();
    }

    /// The breaker of the command.
    fn breaker_key(&self) -> String {
        const KEY_CHARS_MAX: usize = 200;
        let key = self.render(&self.settings.breaker);
        key.chars().take(KEY_CHARS_MAX).collect()
    }

    fn ask_breaker(&mut self) -> Admission {
        let key = self.breaker_key();
        if key.is_empty() {
            return Admission::Admitted;
        }
        let (stores, settings) = (self.stores(), self.policy().breaker(&key));
        self.synchronize(sharing::QUICK);
        let request = sharing::request(self.world, &stores.breakers, &key, &settings);
        self.standing = open_breakers(&stores);
        let (breaker, answer) = match request {
            Ok(answered) => answered,
            Err(error) => {
                let why = stores.breakers.unreadable(&error);
                return Admission::Rejected { wait: None, why };
            }
        };
        match answer {
            policyd_state::breaker::BreakerResponse::Rejected { wait } => {
                let why = match &breaker.forced {
                    Some(reason) => format!("breaker `{key}` was opened by hand: {reason}"),
                    None => format!("breaker `{key}` is open: {}", breaker.last_error),
                };
                Admission::Rejected { wait, why }
            }
            policyd_state::breaker::BreakerResponse::Permitted
            | policyd_state::breaker::BreakerResponse::WouldReject { .. }
            | policyd_state::breaker::BreakerResponse::Recorded => Admission::Admitted,
        }
    }

    /// The value of `RUN_VARIABLE` in the environment of each process of this turn. It names the run's state
    /// directory, because runs of two projects that begin in the same millisecond have the same id.
    fn mark(&self) -> String {
        format!("{}/{}", self.paths.folder.display(), self.run.iteration)
    }
}
