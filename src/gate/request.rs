//! The request of a hook: the event, and the client that reports it.

use std::path::Path;
use std::rc::Rc;

use policyd_evaluation::Detail;
use policyd_fact_table::watch::CoverageRecorder;
use policyd_facts::event::Event;
use policyd_harness::{self as harness, Harness};
use policyd_hook::Caller;
use policyd_store::configuration::Configurations;
use policyd_workspace::attendance;
use policyd_workspace::error::AppError;
use policyd_workspace::human::RUN_VARIABLE;
use policyd_world::World;
use policyd_yaml::suggest;
use policyd_yaml::time::Timestamp;

/// Returns the client at an event. If the client has no event of this name, the event is a stop.
pub fn caller(harness: Option<&'static Harness>, hook: &str) -> Caller {
    let caller = Caller::at(harness.unwrap_or(Caller::default().harness), hook);
    Caller { moment: caller.moment.or(caller.harness.moment("stop")), ..caller }
}

/// Relation of an event to a supervised run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Supervision {
    /// No run started the session.
    None,
    /// The event happens in a turn of a run.
    Turn,
    /// The run evaluates between two turns whether it is complete.
    Completion,
}

impl Supervision {
    /// Returns the supervision of the process of a hook.
    pub fn of_hook(world: &dyn World) -> Self {
        if world.env(RUN_VARIABLE).is_some() { Self::Turn } else { Self::None }
    }
}

/// One event to evaluate, and how.
pub struct Request<'a> {
    pub event: Event,
    /// The client that reports the event.
    pub caller: Caller,
    /// The supervised run in which it happens.
    pub supervision: Supervision,
    pub now: Timestamp,
    pub policies: Option<&'a Path>,
    pub detail: Detail,
    pub dry_run: bool,
    /// The client and the event as the hook line names them; empty where no hook line is evaluated.
    pub line: String,
    /// The settings of the organization and of the user.
    pub configurations: Rc<Configurations>,
    /// Records the value of each evaluated expression. Set only by `policyd test --coverage`.
    pub watch: Option<Rc<CoverageRecorder>>,
}

impl Request<'_> {
    /// Returns whether a user is present: not in a supervised run, else as the client states.
    pub(super) fn is_attended(&self, world: &dyn World) -> bool {
        self.supervision == Supervision::None
            && attendance::is_attended(world, self.caller.harness, &self.event)
    }
}

/// Finds the client that the command line names.
///
/// # Errors
/// No client has this name.
pub fn named_harness(name: Option<&str>) -> Result<Option<&'static Harness>, AppError> {
    let Some(name) = name else { return Ok(None) };
    harness::find(name).map(Some).ok_or_else(|| {
        let known: Vec<&str> = harness::HARNESSES.iter().map(|it| it.name).collect();
        let help = suggest::did_you_mean(name, &known).unwrap_or_default();
        AppError::usage(format!("unknown client `{name}`; {help}"))
    })
}
