//! `policyd eval`: reads one hook event, evaluates it, and writes the answer.

use std::io::Read as _;

use super::{Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EvalArguments, Format, error};
use crate::app::error::AppError;
use crate::app::gate::{self, Report, Request, Supervision};
use crate::app::workspace::project;
use crate::evaluation::Detail;
use crate::facts::event::{EVENT_NAMES, EventKind};
use crate::harness::{self, Harness};
use crate::hook::{self, Caller, payload};
use crate::limits;
use crate::report::outcome as report;
use crate::source::suggest;
use crate::time::Timestamp;
use crate::world::World;
use crate::world::overlay::OverlayWorld;

/// Judges one event and speaks.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &EvalArguments) -> u8 {
    let overlay;
    let world: &dyn World = if arguments.dry_run {
        overlay = OverlayWorld::new(world);
        &overlay
    } else {
        world
    };
    let began = world.elapsed();
    let mut report = Report::default();
    let mut caller = caller_of(arguments);
    let usage = match read(world, console, arguments, &mut caller) {
        Ok(None) => EXIT_OK,
        Ok(Some(request)) => {
            report = gate::evaluate(world, &request);
            report.around.explained = request.detail == Detail::Values;
            EXIT_OK
        }
        Err(error) => {
            report.problem(&error.to_string());
            error::exit_code(&error)
        }
    };
    let took = world.elapsed().saturating_sub(began);
    report.around.micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    speak(world, console, arguments, caller, &report, usage)
}

/// Who calls, as far as the command line says; what is wrong with it is told as at a stop.
fn caller_of(arguments: &EvalArguments) -> Caller {
    gate::caller(arguments.harness.as_deref().and_then(harness::find), &arguments.hook)
}

/// Reads arguments and payload; what is wrong with them is one sentence with its cure. Nothing for an
/// event of the client that means none of ours.
fn read<'a>(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &'a EvalArguments,
    caller: &mut Caller,
) -> Result<Option<Request<'a>>, AppError> {
    let named = gate::named_harness(arguments.harness.as_deref())?;
    known_event(arguments, named)?;
    let now = match &arguments.now {
        None => world.now(),
        Some(text) => Timestamp::parse(text).ok_or_else(|| {
            AppError::usage(format!("`{text}` is not a time; write 2026-01-31T10:00:00Z"))
        })?,
    };
    let bytes = match &arguments.input {
        Some(path) => world
            .read(path, limits::STDIN_BYTES_MAX)
            .map_err(|error| AppError::failed(error).about(path.display()))?,
        None => read_stdin(console),
    };
    let is_set = |variable: &str| world.env(variable).is_some();
    let expected =
        payload::PayloadExpectation { hook: &arguments.hook, harness: named, is_set: &is_set };
    let (event, from) = payload::read(&bytes, &expected).map_err(|(error, from)| {
        *caller = from;
        AppError::failed_as(error)
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
    let supervision = Supervision::of_hook(world);
    let caller = *caller;
    let watch = None;
    Ok(Some(Request { event, caller, supervision, now, policies, detail, dry_run, line, watch }))
}

/// Whether the event is one of ours, or one of the harness; without a harness, of any.
fn known_event(arguments: &EvalArguments, named: Option<&'static Harness>) -> Result<(), AppError> {
    let hook = arguments.hook.as_str();
    let is_known = match named {
        Some(harness) => harness.moment(hook).is_some() || EventKind::find(hook).is_some(),
        None => harness::knows_event(hook),
    };
    if is_known {
        return Ok(());
    }
    let help = suggest::did_you_mean(hook, EVENT_NAMES).unwrap_or_default();
    Err(AppError::usage(format!("there is no event `{hook}`; {help}")))
}

/// Standard input up to one byte over the bound, so that a longer payload is noticed.
fn read_stdin(console: &mut Console<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let bound = u64::try_from(limits::STDIN_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    // What could be read is judged; an empty payload is reported as such.
    drop((&mut *console.stdin).take(bound).read_to_end(&mut bytes));
    bytes
}

/// Speaks last: one write, in the form that was asked for.
fn speak(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &EvalArguments,
    caller: Caller,
    report: &Report,
    usage: u8,
) -> u8 {
    let blocked = report.answer.refuses();
    match arguments.format {
        Format::Hook => {
            let mut answer = report.answer.clone();
            let problems = report.around.problems.iter().map(|it| format!("policyd: {it}"));
            let said: Vec<String> = problems.chain(answer.notice.take()).collect();
            answer.notice = Some(said.join("\n"));
            let (text, changed) = hook::speak(caller, &answer, report.tool.as_deref());
            console.print(&text);
            if project::debug(world) {
                changed.iter().for_each(|it| console.eprint(it));
            }
            return EXIT_OK;
        }
        Format::Json => {
            let value = report::to_json(report.outcome.as_ref(), &report.around);
            console.print(&format!("{value:#}\n"));
        }
        Format::Text => {
            let color = console.color();
            console.print(&report::to_text(report.outcome.as_ref(), &report.around, color));
        }
    }
    if project::debug(world) {
        report.trace.iter().for_each(|it| console.eprint(it));
    }
    match (usage, report.outcome.is_none() && !report.around.problems.is_empty(), blocked) {
        (EXIT_OK, false, false) => EXIT_OK,
        (EXIT_OK, false, true) => EXIT_FOUND,
        (EXIT_OK, true, _) => EXIT_BROKEN,
        (code, _, _) => code,
    }
}
