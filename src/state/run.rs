//! A supervised run: an agent's command, turn after turn, until it is over. Lives here: the values;
//! `step` holds the step, the rest what it is decided by. May not live here: how a turn is made.

pub mod budget;
pub mod health;
pub mod iterations;
mod step;
pub mod stuckness;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::retry::Pause;
use super::uncertainty::Watch;
use crate::limits::RESTARTS_MAX;
use crate::time::Timestamp;
use iterations::Extension;
use stuckness::{Mark, Trail};

pub use step::step;

/// Version of the stored form.
pub const VERSION: u32 = 1;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The agent claimed to be done, and the gate had nothing against it.
    Complete,
    /// It goes round in circles.
    Stuck,
    /// The money is spent.
    Budget,
    /// The turns are used up.
    MaxIterations,
    /// The time is over.
    TimeUp,
    /// The context is full again, and no restart is left.
    ContextExhaustion,
    /// A breaker lets no call through.
    BreakerOpen,
    /// Nothing changes any more (shipwright's circuit breaker).
    CircuitBreaker,
    /// A human must decide, or mend something.
    HumanNeeded,
    /// The task failed so often that it was put aside.
    DeadLetter,
    /// There is no such command.
    CannotRun,
    /// A human said STOP.
    Stopped,
    /// Somebody interrupted it.
    Interrupted,
}

/// Every way to end, with its exit code.
pub const STATUSES: [(Status, &str, u8); 13] = [
    (Status::Complete, "complete", 0),
    (Status::Stuck, "stuck", 10),
    (Status::Budget, "budget", 11),
    (Status::MaxIterations, "max_iterations", 11),
    (Status::TimeUp, "time_up", 11),
    (Status::ContextExhaustion, "context_exhaustion", 12),
    (Status::BreakerOpen, "breaker_open", 13),
    (Status::CircuitBreaker, "circuit_breaker", 13),
    (Status::HumanNeeded, "human_needed", 14),
    (Status::DeadLetter, "dead_letter", 14),
    (Status::CannotRun, "cannot_run", 15),
    (Status::Stopped, "stopped", 130),
    (Status::Interrupted, "interrupted", 130),
];

impl Status {
    fn row(self) -> (&'static str, u8) {
        let found = STATUSES.iter().find(|it| it.0 == self);
        found.map_or(("interrupted", 130), |it| (it.1, it.2))
    }

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().0
    }

    /// The exit code of the program; 0 for a run that is complete alone.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        self.row().1
    }
}

/// Where a run stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Phase {
    /// Between two turns.
    #[default]
    Ready,
    /// A breaker is asked whether a turn may begin.
    Asking,
    /// A turn is at work.
    Working,
    /// Nothing is done until then.
    Waiting {
        /// Until when, in milliseconds since 1970.
        until_ms: i64,
        /// Why.
        why: String,
    },
    /// A human said PAUSE.
    Paused,
    /// It is over.
    Over {
        /// How it ended.
        status: Status,
        /// Why, in one sentence.
        why: String,
    },
}

/// Tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spend {
    /// Plain input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens that were read from the provider's cache.
    pub cache_read: u64,
    /// Input tokens that were written into it.
    pub cache_creation: u64,
    /// Money in USD.
    pub cost_usd: f64,
}

impl Spend {
    /// Both together.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            input: self.input.saturating_add(more.input),
            output: self.output.saturating_add(more.output),
            cache_read: self.cache_read.saturating_add(more.cache_read),
            cache_creation: self.cache_creation.saturating_add(more.cache_creation),
            cost_usd: self.cost_usd + more.cost_usd,
        }
    }

    /// All tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        let all = [self.input, self.output, self.cache_read, self.cache_creation];
        all.iter().fold(0, |sum, it| sum.saturating_add(*it))
    }
}

/// What may not be exceeded, and when something is done about a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Turns at most.
    pub iterations: u32,
    /// How a run is extended that has used them up.
    pub extension: Extension,
    /// Restarts at most, those of a full context and of a stuck agent together.
    pub restarts: u32,
    /// Money at most, in USD.
    pub budget_usd: Option<f64>,
    /// Share of the money that is worth a warning, in percent.
    pub warn_percent: u32,
    /// Time at work at most.
    pub time: Option<Duration>,
    /// Turns in a row without any change after which nothing is expected any more.
    pub idle: u32,
    /// Longest wait for a breaker; one that is open for longer ends the run.
    pub breaker_wait: Duration,
    /// When it counts as stuck.
    pub stuckness: stuckness::Settings,
    /// Whether a fresh session is tried where it is stuck.
    pub restart_when_stuck: bool,
    /// Whether a human who is asked is waited for; the run ends, else.
    pub wait_for_human: bool,
    /// The pause after failures of one class in a row.
    pub pause: Pause,
}

/// What somebody asked for who began the run; it comes before what the pack says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Turns at most.
    pub max_iterations: Option<u32>,
    /// Restarts at most.
    pub max_restarts: Option<u32>,
    /// Money at most, in USD.
    pub budget_usd: Option<f64>,
    /// Longest time of one turn, in milliseconds.
    pub turn_deadline_ms: Option<u64>,
    /// How the agent says that it is done; as the pack says, where empty.
    pub claims: Vec<String>,
}

impl Options {
    /// These, and what `before` has where these say nothing.
    #[must_use]
    pub fn over(self, before: &Self) -> Self {
        Self {
            max_iterations: self.max_iterations.or(before.max_iterations),
            max_restarts: self.max_restarts.or(before.max_restarts),
            budget_usd: self.budget_usd.or(before.budget_usd),
            turn_deadline_ms: self.turn_deadline_ms.or(before.turn_deadline_ms),
            claims: if self.claims.is_empty() { before.claims.clone() } else { self.claims },
        }
    }

    /// The limits of a pack with what somebody asked for.
    #[must_use]
    pub fn limit(&self, pack: &Limits) -> Limits {
        Limits {
            iterations: self.max_iterations.unwrap_or(pack.iterations),
            restarts: self.max_restarts.unwrap_or(pack.restarts).min(RESTARTS_MAX),
            budget_usd: self.budget_usd.or(pack.budget_usd),
            ..pack.clone()
        }
    }
}

/// A run, as it is remembered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// Version of the stored form.
    pub version: u32,
    /// Its id.
    pub id: String,
    /// What is to be reached.
    pub goal: String,
    /// The command of a turn.
    pub command: Vec<String>,
    /// What somebody asked for.
    pub options: Options,
    /// Where it stands.
    pub phase: Phase,
    /// Number of the session, from 1: a restart begins another one.
    pub session: u32,
    /// Restarts so far.
    pub restarts: u32,
    /// Number of the last turn that began, over all sessions.
    pub iteration: u32,
    /// Turns of this session.
    pub session_iteration: u32,
    /// Attempts at this turn that failed and are made again.
    pub attempt: u32,
    /// Whether the next turn is the same one again.
    pub again: bool,
    /// Turns that were added to those that are allowed, and how often that was done.
    pub extended_by: u32,
    /// Times it was extended.
    pub extended: u32,
    /// What all sessions used together; never reset.
    pub spend: Spend,
    /// What this session used.
    pub session_spend: Spend,
    /// Turns whose cost nobody told.
    pub unpriced: u32,
    /// Time at work in milliseconds.
    pub worked_ms: u64,
    /// Turns in a row that failed.
    pub failures: u32,
    /// Class of the last failure, and how often it came in a row.
    pub last_class: String,
    /// How often that class came in a row.
    pub same_class: u32,
    /// Turns in a row that changed nothing.
    pub idle: u32,
    /// The last turns.
    pub trail: Trail,
    /// Rounds in a row in which it was stuck, and whether that was told.
    pub stuck_rounds: u32,
    /// Whether something was done about it in this episode.
    pub stuck_told: bool,
    /// Why it seems stuck; told to the agent once.
    pub hint: String,
    /// What the gate said to the last claim.
    pub feedback: String,
    /// What humans said and the agent was not told yet.
    pub human: Vec<String>,
    /// What went wrong in the last turn that failed.
    pub last_error: String,
    /// Triggers of signals that held after the last turn, so that each is told once while it holds.
    pub raised: Vec<String>,
    /// Whether the money was warned of.
    pub warned: bool,
    /// Health before the last turn, and after it.
    pub health: Option<u32>,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// When it was last moved, in milliseconds since 1970.
    pub updated_ms: i64,
}

impl Run {
    /// A run that is about to begin.
    #[must_use]
    pub fn new(id: &str, goal: &str, command: &[String], now: Timestamp) -> Self {
        Self {
            version: VERSION,
            id: id.to_owned(),
            goal: goal.to_owned(),
            command: command.to_vec(),
            session: 1,
            started_ms: now.millis(),
            updated_ms: now.millis(),
            ..Self::default()
        }
    }

    /// How it ended, where it did.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        match &self.phase {
            Phase::Over { status, .. } => Some(*status),
            Phase::Ready
            | Phase::Asking
            | Phase::Working
            | Phase::Waiting { .. }
            | Phase::Paused => None,
        }
    }

    /// What it costs, in USD for an hour of work. Before an hour is over it is what was spent: a rate
    /// of a few minutes says little.
    #[must_use]
    pub fn usd_per_hour(&self) -> f64 {
        const HOUR: Duration = Duration::from_secs(60 * 60);
        let worked = Duration::from_millis(self.worked_ms).max(HOUR);
        self.spend.cost_usd / worked.div_duration_f64(HOUR)
    }

    /// How often the error of the last turn came in this session.
    #[must_use]
    pub fn same_error_of_session(&self) -> u32 {
        self.trail.same_error().min(self.session_iteration)
    }

    /// Turns that are allowed, extensions counted in.
    #[must_use]
    pub const fn iterations_max(&self, limits: &Limits) -> u32 {
        limits.iterations.saturating_add(self.extended_by)
    }

    /// Whether a turn is left of those that are allowed now.
    #[must_use]
    pub const fn turns_left(&self, limits: &Limits) -> bool {
        self.extended < limits.extension.times || self.iteration < self.iterations_max(limits)
    }
}

/// What is seen between two turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// A human said STOP.
    pub stop: bool,
    /// A human said PAUSE.
    pub pause: bool,
    /// What a human must decide before anything goes on.
    pub review: Option<String>,
    /// What humans say to the agent.
    pub input: Vec<String>,
}

/// What a breaker says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// A turn may begin.
    Admitted,
    /// Not now.
    Rejected {
        /// For how long; nothing where nobody knows.
        wait: Option<Duration>,
        /// Why, in one sentence.
        why: String,
    },
}

/// What went wrong with a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failure {
    /// Its class.
    pub class: String,
    /// What it said, in one line.
    pub text: String,
    /// Whether the same call fails again, whenever it is made.
    pub permanent: bool,
    /// When this turn is made again and why; nothing where it is given up.
    pub retry: Option<(Duration, String)>,
    /// How long to wait before the next turn, and why.
    pub wait: Option<(Duration, String)>,
    /// Whether the task was put aside because of it.
    pub put_aside: bool,
}

/// What an agent says of being done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Claim {
    /// Nothing.
    #[default]
    None,
    /// That it is done; the gate says this against it.
    Refused(String),
    /// That it is done; the gate has nothing against it.
    Accepted,
}

/// Whether the context has to be cleared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// No.
    #[default]
    Fits,
    /// It is full.
    Exhausted,
    /// Somebody asked for it.
    ClearRequested,
}

/// What a turn used, whatever became of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Used {
    /// Tokens and money.
    pub spend: Spend,
    /// Whether its cost was told.
    pub priced: bool,
    /// How long it took.
    pub took: Duration,
}

/// What a turn came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turn {
    /// Why it failed, where it did.
    pub failure: Option<Failure>,
    /// What the agent says of being done.
    pub claim: Claim,
    /// What it used.
    pub spend: Spend,
    /// Whether its cost was told.
    pub priced: bool,
    /// Whether the context has to be cleared.
    pub context: Context,
    /// What is remembered of it.
    pub mark: Mark,
    /// Whether it changed something, where that is known.
    pub moved: Option<bool>,
    /// How long it took.
    pub took: Duration,
    /// Triggers of signals that hold after it.
    pub raised: Vec<String>,
}

/// What happens to a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<'a> {
    /// Somebody looked around.
    Looked(&'a Look),
    /// A breaker answered.
    Asked(&'a Admission),
    /// A turn ended.
    Ended(&'a Turn),
    /// Somebody goes on with it, perhaps after its process died.
    Resumed,
    /// Somebody interrupted it; what the turn that broke off used, where one was at work.
    Interrupted(Option<Used>),
    /// The command could not be started.
    CannotRun(&'a str),
}

/// Why another session begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// The context is full.
    Exhausted,
    /// Somebody asked for a clear context; no restart is used up.
    Cleared,
    /// The agent goes round in circles.
    Stuck,
}

impl Renewal {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exhausted => "context_exhaustion",
            Self::Cleared => "context_clear",
            Self::Stuck => "stuck_restart",
        }
    }
}

/// What is to be done after a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// A breaker is to be asked.
    Ask,
    /// A turn is to be made.
    Begin,
    /// The session is put aside, and another one begins with what it left.
    Renew(Renewal),
    /// That many turns more are allowed.
    Extended(u32),
    /// It seems stuck, for these reasons.
    Stuck(Vec<&'static str>),
    /// That share of the money is spent, in percent.
    BudgetWarning(u32),
    /// Nothing is to be done for a while.
    Wait {
        /// How long.
        wait: Duration,
        /// Why.
        why: String,
    },
    /// It is over.
    End(Status),
}

/// What the stored watch says, as `uncertainty` has it.
fn watch(run: &Run) -> Watch {
    Watch { round: None, in_a_row: run.stuck_rounds, told: run.stuck_told }
}
