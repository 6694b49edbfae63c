//! What is asked of a call: who calls, and the event that it gives.

use std::path::Path;
use std::rc::Rc;

use crate::cli::error::CliError;
use crate::cli::{Console, EvalArguments, Format, project};
use crate::facts::event::{Event, EventKind};
use crate::harness::{self, Harness};
use crate::hook::{Caller, payload};
use crate::judge::Detail;
use crate::limits;
use crate::script::watch::Watch;
use crate::source::suggest;
use crate::time::Timestamp;
use crate::world::World;

/// Who calls, as far as the command line says; what is wrong with it is told as at a stop.
pub(super) fn caller_of(arguments: &EvalArguments) -> Caller {
    caller(arguments.harness.as_deref().and_then(harness::find), &arguments.hook)
}

/// A client at an event, whose name may be no event of it.
pub(in crate::cli) fn caller(harness: Option<&'static Harness>, hook: &str) -> Caller {
    let caller = Caller::at(harness.unwrap_or(Caller::default().harness), hook);
    Caller { moment: caller.moment.or(caller.harness.moment("stop")), ..caller }
}

/// What is asked of this call.
pub(in crate::cli) struct Request<'a> {
    pub(in crate::cli) event: Event,
    pub(in crate::cli) now: Timestamp,
    pub(in crate::cli) policies: Option<&'a Path>,
    pub(in crate::cli) detail: Detail,
    pub(in crate::cli) dry_run: bool,
    /// The client and the event as the hook line names them; empty where no hook line is evaluated.
    pub(in crate::cli) line: String,
    /// Is told what the expressions came to; nobody is, for a hook.
    pub(in crate::cli) watch: Option<Rc<Watch>>,
}

/// Reads arguments and payload; what is wrong with them is one sentence with its cure. Nothing for an
/// event of the client that means none of ours.
pub(super) fn read<'a>(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &'a EvalArguments,
    caller: &mut Caller,
) -> Result<Option<Request<'a>>, CliError> {
    let named = named_harness(arguments.harness.as_deref()).map_err(CliError::usage)?;
    known_event(arguments, named)?;
    let now = match &arguments.now {
        None => world.now(),
        Some(text) => Timestamp::parse(text).ok_or_else(|| {
            CliError::usage(format!("`{text}` is not a time; write 2026-01-31T10:00:00Z"))
        })?,
    };
    let bytes = match &arguments.input {
        Some(path) => world
            .read(path, limits::STDIN_BYTES_MAX)
            .map_err(|error| CliError::failed(error).about(path.display()))?,
        None => read_stdin(console),
    };
    let is_set = |variable: &str| world.env(variable).is_some();
    let expected = payload::Expected { hook: &arguments.hook, harness: named, is_set: &is_set };
    let (event, from) = payload::read(&bytes, &expected).map_err(|(error, from)| {
        *caller = from;
        CliError::failed_as(error)
    })?;
    *caller = from;
    let Some(event) = event else { return Ok(None) };
    let policies = arguments.policies.as_deref();
    let detail = match (arguments.explain, arguments.format) {
        (true, _) => Detail::Values,
        (false, Format::Hook) if !project::debug(world) => Detail::Findings,
        (false, Format::Hook | Format::Json | Format::Text) => Detail::Everything,
    };
    let dry_run = arguments.dry_run;
    let line = format!("{} {}", arguments.harness.as_deref().unwrap_or("-"), arguments.hook);
    Ok(Some(Request { event, now, policies, detail, dry_run, line, watch: None }))
}

/// The harness that the command line names.
pub(in crate::cli) fn named_harness(
    name: Option<&str>,
) -> Result<Option<&'static Harness>, String> {
    let Some(name) = name else { return Ok(None) };
    harness::find(name).map(Some).ok_or_else(|| {
        let known: Vec<&str> = harness::HARNESSES.iter().map(|it| it.name).collect();
        let help = suggest::did_you_mean(name, &known).unwrap_or_default();
        format!("there is no harness `{name}`; {help}")
    })
}

/// Whether the event is one of ours, or one of the harness; without a harness, of any.
fn known_event(arguments: &EvalArguments, named: Option<&'static Harness>) -> Result<(), CliError> {
    let hook = arguments.hook.as_str();
    let is_known = match named {
        Some(harness) => harness.moment(hook).is_some() || EventKind::find(hook).is_some(),
        None => harness::knows_event(hook),
    };
    if is_known {
        return Ok(());
    }
    let known = crate::facts::event::EVENT_NAMES;
    let help = suggest::did_you_mean(hook, known).unwrap_or_default();
    Err(CliError::usage(format!("there is no event `{hook}`; {help}")))
}

/// Standard input up to one byte over the bound, so that a longer payload is noticed.
fn read_stdin(console: &mut Console<'_>) -> Vec<u8> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let bound = u64::try_from(limits::STDIN_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    // What could be read is judged; an empty payload is reported as such.
    drop((&mut *console.stdin).take(bound).read_to_end(&mut bytes));
    bytes
}
