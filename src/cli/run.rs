//! `policyd run`: lets an agent's command work on a goal, turn after turn. Lives here: the order of
//! effects. What a run does next says `state::run`; what a turn is made of stands in `turn`.

mod changes;
mod conversation;
mod failing;
mod hearing;
mod judging;
mod look;
mod prompt;
mod renewal;
mod telling;
mod triggers;
mod turn;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use serde_json::json;

use super::error::CliError;
use super::eval::Ready;
use super::project::Project;
use super::resilience::Stores;
use super::{Console, EXIT_BROKEN, EXIT_USAGE, RunArguments, pack, project};
use crate::hook::agent_output::AgentOutput;
use crate::limits::{GOAL_BYTES_MAX, POLICY_FILE_BYTES_MAX, RUN_LOCK_WAIT};
use crate::policy::Policy;
use crate::policy::run::RunPolicy;
use crate::script::context_facts::Gauge;
use crate::state::context::Overrides;
use crate::state::run::{Admission, Effect, Event, Limits, Options, Phase, Run, step};
use crate::store::file::Durability;
use crate::store::runs::{RunStore, Unusable};
use crate::store::user_choices::UserChoiceStore;
use crate::world::{World, WorldError};
use telling::Teller;

/// How often signals and interrupts are looked for while nothing else is done.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// What the processes of a turn carry in their environment, so that they are known if this process
/// dies: the run and the turn.
pub(super) const MARK: &str = "POLICYD_RUN";

/// Supervises one run to its end.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &RunArguments) -> u8 {
    let project = project::find(world, None);
    let Some((mut policy, found)) =
        pack::sound_found(world, console, arguments.policies.as_deref())
    else {
        return EXIT_BROKEN;
    };
    // A root of the command line is where the user says.
    let asked = arguments.state_dir.is_some();
    let fenced = project::fenced_by_pack(world, &project, &policy.settings).filter(|_| !asked);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    if let Some(folder) = &arguments.state_dir {
        let root = project.folder.join(folder);
        let said = world.env("POLICYD_STATE_DIR").map(|it| project.main.join(it));
        if said.is_some_and(|said| said != root) {
            console.complain("`--state-dir` and `POLICYD_STATE_DIR` name different directories");
            return EXIT_USAGE;
        }
        policy.settings.paths.root = root.to_string_lossy().into_owned();
    }
    let ready = Ready { found: Some(Rc::new(found)), ..Ready::new(policy) };
    let (sessions, own) = project::sessions(world, &project, &ready.policy.settings);
    let durability = sessions.durability.clone();
    let store = RunStore::new(world, &own, durability.clone());
    let _alone = match store.lock() {
        Ok(held) => held,
        Err(WorldError::Locked(_)) => {
            console.complain("another run is active in this project");
            return EXIT_BROKEN;
        }
        Err(error) => {
            console.complain(&format!("{}: {error}; nothing was run", own.display()));
            return EXIT_BROKEN;
        }
    };
    let choices = UserChoiceStore::new(world, &own);
    let (run, unrecorded) = match begin(world, (&store, &choices), arguments) {
        Ok(begun) => begun,
        Err(error) => return error.report(console),
    };
    world.note_interrupts();
    let settings = ready.policy.run.clone().into_inner();
    let limits = run.options.limit(&settings.limits);
    let folder = store.folder(&run.id);
    let teller = Teller::new(console, arguments.format, world.elapsed());
    let paths = Paths { own, folder, named: arguments.state_dir.is_some() };
    let (overrides, wrong) = project::overrides(world);
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
        context: Gauge::default(),
        failed: false,
        standing: String::new(),
        decided: "",
        teller,
    };
    wrong.iter().chain(&unrecorded).for_each(|it| supervisor.problem(it));
    supervisor.drive(arguments.resume)
}

/// A new run, or the one that is resumed; and why it cannot be resumed later, if so.
fn begin(
    world: &dyn World,
    (store, choices): (&RunStore<'_>, &UserChoiceStore<'_>),
    arguments: &RunArguments,
) -> Result<(Run, Option<String>), CliError> {
    let millis = |it: Duration| u64::try_from(it.as_millis()).unwrap_or(u64::MAX);
    let options = Options {
        max_iterations: arguments.max_iterations,
        max_restarts: arguments.max_restarts,
        budget_usd: arguments.budget_usd,
        turn_deadline_ms: arguments.turn_deadline.map(millis),
        claims: arguments.claim.iter().map(|it| it.as_str().to_owned()).collect(),
    };
    if arguments.resume {
        let mut run = store.last_open().map_err(|why| CliError::failed_as(unusable(&why)))?;
        let started = choices.load().map_err(CliError::failed_as)?.runs;
        if started.get(&run.id) != Some(&run.work_digest()) {
            return Err(CliError::failed_as(foreign(&run)));
        }
        run.options = options.over(&run.options);
        if !arguments.command.is_empty() {
            run.command.clone_from(&arguments.command);
        }
        return Ok(record_start(choices, run));
    }
    let now = world.now();
    let goal = goal(world, arguments.goal.as_deref().unwrap_or_default())?;
    let mut run = Run::new(&store.new_id(now), &goal, &arguments.command, now);
    run.options = options;
    Ok(record_start(choices, run))
}

/// Records in the choices of the user what a run may do; a run without a record cannot be resumed.
fn record_start(choices: &UserChoiceStore<'_>, run: Run) -> (Run, Option<String>) {
    let recorded = choices.change(|it| it.add_run(&run.id, &run.work_digest()));
    let problem = recorded.err().map(|it| format!("{it}; this run cannot be resumed"));
    (run, problem)
}

/// Why a run is not resumed that this user did not start, or that was changed since.
fn foreign(run: &Run) -> String {
    format!(
        "run {} was not started by you on this machine, or its command, goal or options were \
         changed since; it is not resumed. Look at it, and start a new one with `policyd run --goal`",
        run.id
    )
}

fn unusable(why: &Unusable) -> String {
    match why {
        Unusable::None => "no unfinished run to resume\nhelp: start one with `--goal`".to_owned(),
        Unusable::Damaged(id) => {
            format!("the state of run {id} is damaged\nhelp: start a new run with `--goal`")
        }
        Unusable::Newer(id) => {
            format!("run {id} was started by a newer version of policyd\nhelp: update policyd")
        }
        Unusable::Refused(error) => format!("could not read the runs: {error}"),
    }
}

/// The goal: a text, or what a file of this name holds.
fn goal(world: &dyn World, said: &str) -> Result<String, CliError> {
    let usage = |why: String| CliError::usage(why);
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
struct Paths {
    /// The root of our own.
    own: PathBuf,
    /// The folder of the run.
    folder: PathBuf,
    /// Whether the root was named on the command line, so that what the agent calls must be told.
    named: bool,
}

/// Breakers that are not closed, for the line that shows where the run stands.
fn open_breakers(stores: &Stores<'_>) -> String {
    let all = stores.breakers.all();
    let open = all.iter().filter(|(_, it)| it.phase != crate::state::breaker::Phase::Closed);
    let words: Vec<String> = open.map(|(key, it)| format!("{key} {}", it.phase.as_str())).collect();
    words.join(", ")
}

/// One run at work.
struct Supervisor<'a, 'c, 'o> {
    world: &'a dyn World,
    ready: &'a Ready,
    project: &'a Project,
    paths: Paths,
    durability: Durability,
    store: RunStore<'a>,
    run: Run,
    limits: Limits,
    settings: RunPolicy,
    overrides: Overrides,
    /// How full the context was after the last turn.
    context: Gauge,
    /// Whether the last turn failed.
    failed: bool,
    /// Breakers that are not closed, in words.
    standing: String,
    /// What the gate decided last.
    decided: &'static str,
    teller: Teller<'c, 'o>,
}

impl<'a> Supervisor<'a, '_, '_> {
    fn policy(&self) -> &'a Policy {
        &self.ready.policy
    }

    /// The stores as they are used now.
    fn stores(&self) -> Stores<'a> {
        let own = (self.paths.own.as_path(), &self.durability);
        Stores::new(self.world, self.policy(), own, RUN_LOCK_WAIT)
    }

    /// Goes on until the run is over; returns the exit code.
    fn drive(&mut self, resumed: bool) -> u8 {
        if resumed {
            self.take_up();
        } else {
            let fields = [("run", json!(self.run.id)), ("goal", json!(self.run.goal))];
            self.tell("loop.start", &fields);
            self.note_gate();
            self.note_git();
            self.save();
            self.store.prune(self.settings.keep);
        }
        loop {
            if let Some(status) = self.run.status() {
                self.told_end();
                return status.exit_code();
            }
            if self.world.interrupted() {
                self.step(&Event::Interrupted(None));
                continue;
            }
            match self.run.phase.clone() {
                Phase::Ready => self.looked(),
                Phase::Paused => {
                    self.show(&AgentOutput::default());
                    self.world.sleep(LOOK_EVERY);
                    self.looked();
                }
                Phase::Waiting { until_ms, .. } => {
                    let left = until_ms.saturating_sub(self.world.now().millis()).max(0);
                    let left = Duration::from_millis(left.unsigned_abs());
                    self.show(&AgentOutput::default());
                    self.world.sleep(left.min(LOOK_EVERY));
                    self.looked();
                }
                Phase::Asking => {
                    let admission = self.ask_breaker();
                    // Saved with the turn that begins, so that what it used is known if nobody hears its end.
                    self.run.heard_from = self.transcript_bytes();
                    self.step(&Event::Asked(&admission));
                }
                Phase::Working => self.turn(),
                Phase::Over { .. } => {}
            }
        }
    }

    /// Takes up a run whose process may have died: what it left behind is ended first.
    fn take_up(&mut self) {
        if self.run.phase == Phase::Working {
            match self.world.kill_marked(MARK, &self.mark()) {
                Ok(0) | Err(WorldError::Unsupported) => {}
                Ok(count) => {
                    self.problem(&format!("ended {count} processes of the interrupted turn"));
                }
                Err(error) => self.problem(&format!("interrupted turn: {error}")),
            }
        }
        let fields = [("run", json!(self.run.id)), ("iteration", json!(self.run.iteration))];
        self.tell("loop.resume", &fields);
        let ended = self.run.status().is_some();
        let used = (self.run.phase == Phase::Working).then(|| self.used_unheard()).flatten();
        self.step(&Event::Resumed(used));
        // Of a run whose process died, the agent may have switched the gate: a turn's start finds out.
        if ended {
            self.note_gate();
            self.save();
        }
    }

    fn looked(&mut self) {
        let was_paused = self.run.phase == Phase::Paused;
        let look = self.look();
        self.step(&Event::Looked(&look));
        if self.run.phase == Phase::Paused && !was_paused {
            let why = look.review.as_deref().unwrap_or("it goes on when the signal PAUSE is gone");
            self.tell("loop.paused", &[("reason", json!(why))]);
        }
    }

    /// Moves the run on, remembers it, and does what follows. What a session left is put aside before
    /// it is remembered that there is another one: doing it twice does no harm.
    fn step(&mut self, event: &Event<'_>) {
        let (next, effects) = step(&self.run, event, &self.limits, self.world.now());
        let mut next = next;
        for effect in &effects {
            match effect {
                Effect::Renew(why) => self.renew(*why, &next),
                // A human who cannot be asked does not vouch for anything.
                Effect::AskHuman(why) => next.unseen_asked = self.ask_human(why),
                Effect::Ask
                | Effect::Begin
                | Effect::Extended(_)
                | Effect::Stuck(_)
                | Effect::BudgetWarning(_)
                | Effect::Wait { .. }
                | Effect::End(_) => {}
            }
        }
        let moved = next != self.run;
        self.run = next;
        if moved {
            self.save();
        }
        for effect in effects {
            self.tell_effect(&effect);
        }
    }

    /// Remembers the run. One that cannot be remembered goes on, and that is said.
    fn save(&mut self) {
        if let Err(error) = self.store.save(&self.run) {
            self.problem(&format!("could not save the run: {error}"));
        }
        if let Some(why) = self.store.degraded() {
            self.problem(&format!("saved in place only, a loss of power may undo it: {why}"));
        }
    }

    /// The breaker of the command.
    fn breaker_key(&self) -> String {
        const KEY_CHARS_MAX: usize = 200;
        let key = prompt::render(&self.settings.breaker, self.run_record(""));
        key.chars().take(KEY_CHARS_MAX).collect()
    }

    fn ask_breaker(&mut self) -> Admission {
        let key = self.breaker_key();
        if key.is_empty() {
            return Admission::Admitted;
        }
        let (stores, settings) = (self.stores(), self.policy().breaker(&key));
        let (breaker, answer) = stores.breakers.request(&key, &settings, self.world.now());
        self.standing = open_breakers(&stores);
        match answer {
            crate::state::breaker::Answer::Rejected { wait } => {
                let why = match &breaker.forced {
                    Some(reason) => format!("breaker `{key}` was opened by hand: {reason}"),
                    None => format!("breaker `{key}` is open: {}", breaker.last_error),
                };
                Admission::Rejected { wait, why }
            }
            crate::state::breaker::Answer::Admitted
            | crate::state::breaker::Answer::Tolerated { .. }
            | crate::state::breaker::Answer::Noted => Admission::Admitted,
        }
    }

    /// The value of `MARK` in the environment of each process of this turn. It names the run's state
    /// directory, because runs of two projects that begin in the same millisecond have the same id.
    fn mark(&self) -> String {
        format!("{}/{}", self.paths.folder.display(), self.run.iteration)
    }
}
