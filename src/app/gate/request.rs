//! What a hook call asks for: the event, and who calls.

use std::path::Path;
use std::rc::Rc;

use crate::app::error::AppError;
use crate::evaluation::Detail;
use crate::expr::watch::CoverageRecorder;
use crate::facts::event::Event;
use crate::harness::{self, Harness};
use crate::hook::Caller;
use crate::source::suggest;
use crate::time::Timestamp;
use crate::world::World;

/// A client at an event, whose name may be no event of it.
pub(crate) fn caller(harness: Option<&'static Harness>, hook: &str) -> Caller {
    let caller = Caller::at(harness.unwrap_or(Caller::default().harness), hook);
    Caller { moment: caller.moment.or(caller.harness.moment("stop")), ..caller }
}

/// Whether the client says that a user is present.
pub(super) fn is_attended(world: &dyn World) -> bool {
    world.env("CLAUDE_CODE_ENTRYPOINT").as_deref() != Some("sdk-cli")
        && world.env("CLAUDE_CODE_SESSION_ATTENDED").as_deref() != Some("0")
}

/// What is asked of this call.
pub(crate) struct Request<'a> {
    pub(crate) event: Event,
    pub(crate) now: Timestamp,
    pub(crate) policies: Option<&'a Path>,
    pub(crate) detail: Detail,
    pub(crate) dry_run: bool,
    /// The client and the event as the hook line names them; empty where no hook line is evaluated.
    pub(crate) line: String,
    /// Records the value of each evaluated expression. Set only by `policyd test --coverage`.
    pub(crate) watch: Option<Rc<CoverageRecorder>>,
}

/// The harness that the command line names.
pub(crate) fn named_harness(name: Option<&str>) -> Result<Option<&'static Harness>, AppError> {
    let Some(name) = name else { return Ok(None) };
    harness::find(name).map(Some).ok_or_else(|| {
        let known: Vec<&str> = harness::HARNESSES.iter().map(|it| it.name).collect();
        let help = suggest::did_you_mean(name, &known).unwrap_or_default();
        AppError::usage(format!("there is no harness `{name}`; {help}"))
    })
}
