//! `policyd eval`: reads one hook event, evaluates it, and writes the answer.

use std::io::ErrorKind;
use std::rc::Rc;

use crate::exit::{EXIT_BROKEN, EXIT_FOUND, EXIT_OK};
use crate::{Console, EvalCall, EvalFormat, error};
use policyd_base::limits;
use policyd_evaluation::Detail;
use policyd_evaluation::combine::Decision;
use policyd_facts::event::{EVENT_NAMES, EventKind};
use policyd_gate::crash;
use policyd_gate::{self as gate, Report, Request, Supervision};
use policyd_harness::{self as harness, Harness};
use policyd_hook::payload::{self, JsonExtent, PayloadError};
use policyd_hook::{self as hook, Caller, HookResponse};
use policyd_packs::LoadPack;
use policyd_record::outcome as report;
use policyd_store::configuration::Configurations;
use policyd_workspace::error::AppError;
use policyd_workspace::project;
use policyd_world::World;
use policyd_world::overlay::OverlayWorld;
use policyd_yaml::suggest;
use policyd_yaml::time::Timestamp;

/// Bytes that one read of standard input returns at most. The buffer of standard input is smaller, so a part never stays in it
/// unseen by [`World::input_comes`].
const STDIN_PART_BYTES: usize = 16 * 1024;

/// Evaluates one event and prints the answer. `load` returns the policies of packs.
pub fn run(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &EvalCall,
    configurations: Rc<Configurations>,
    load: LoadPack,
) -> u8 {
    let overlay;
    let world: &dyn World = if arguments.dry_run {
        overlay = OverlayWorld::new(world);
        &overlay
    } else {
        world
    };
    let began = world.elapsed();
    let mut caller = caller_of(arguments);
    let line_caller = caller;
    let (mut report, usage) = match read(world, console, arguments, configurations, &mut caller) {
        Ok(ReadEvent { request: None, .. }) => (Report::default(), EXIT_OK),
        Ok(ReadEvent { request: Some(request), is_whole }) => {
            if !is_same(caller, line_caller) {
                crash::prepare(world, caller);
            }
            let mut report = gate::evaluate(world, &request, load);
            if !is_whole && report.answer.decision < Decision::Ask {
                report.answer = HookResponse::not_analyzed(caller, NOT_WHOLE);
            }
            report.context.explained = request.detail == Detail::Values;
            (report, EXIT_OK)
        }
        Err(error) => {
            // The problem says more than the notice.
            let answer = HookResponse::not_analyzed(caller, UNREADABLE);
            let answer = HookResponse { notice: None, ..answer };
            (Report::unreadable(answer, &error.to_string()), error::exit_code(&error))
        }
    };
    let took = world.elapsed().saturating_sub(began);
    report.context.micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    speak(world, console, arguments, caller, &report, usage)
}

/// Returns whether a call can be answered completely only with a network.
#[must_use]
pub fn needs_network(world: &dyn World, configurations: &Configurations, call: &EvalCall) -> bool {
    let kind = caller_of(call).moment.and_then(|it| it.kind);
    kind.is_some_and(|it| gate::needs_network(world, configurations, it))
}

/// Returns whether two callers read the same form of answer.
fn is_same(one: Caller, other: Caller) -> bool {
    let native = |it: Caller| it.moment.map(|it| it.native);
    one.harness.name == other.harness.name && native(one) == native(other)
}

/// Returns the caller that the command line names. An invalid name is reported later, as at a stop.
fn caller_of(arguments: &EvalCall) -> Caller {
    gate::caller(arguments.harness.as_deref().and_then(harness::find), &arguments.hook)
}

/// Why a call is asked about whose payload could not be read. The notice says more.
const UNREADABLE: &str = "it could not be read. Approve it only if you know what it does.";
/// Why a call is asked about whose payload contains bytes that are not UTF-8.
const NOT_WHOLE: &str =
    "it contains bytes that are not UTF-8, so the client may run something else than policyd read.";

/// An event as it was read.
struct ReadEvent<'a> {
    /// `None` for an event of the client that means none of ours.
    request: Option<Request<'a>>,
    /// Whether each byte of the payload was understood.
    is_whole: bool,
}

/// Reads arguments and payload; what is wrong with them is one sentence with its cure.
fn read<'a>(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &'a EvalCall,
    configurations: Rc<Configurations>,
    caller: &mut Caller,
) -> Result<ReadEvent<'a>, AppError> {
    let named = gate::named_harness(arguments.harness.as_deref())?;
    known_event(arguments, named)?;
    let now = match &arguments.now {
        None => world.now(),
        Some(text) => Timestamp::parse(text).ok_or_else(|| {
            AppError::usage(format!("`{text}` is not a time; write 2026-01-31T10:00:00Z"))
        })?,
    };
    let is_set = |variable: &str| world.env(variable).is_some();
    let expected =
        payload::PayloadExpectation { hook: &arguments.hook, harness: named, is_set: &is_set };
    let bytes = match &arguments.input {
        Some(path) => world
            .read(path, limits::STDIN_BYTES_MAX)
            .map_err(|error| AppError::failed(error).about(path.display())),
        None => read_stdin(world, console).map_err(AppError::failed_as),
    };
    *caller = payload::unread_caller(&expected);
    let bytes = bytes?;
    let (event, from) = payload::read(&bytes, &expected).map_err(AppError::failed_as)?;
    *caller = from;
    let is_whole = std::str::from_utf8(&bytes).is_ok();
    let Some(event) = event else { return Ok(ReadEvent { request: None, is_whole }) };
    let policies = arguments.policies.as_deref();
    let detail = match (arguments.explain, arguments.format) {
        (true, _) => Detail::Values,
        (false, EvalFormat::Hook) if !project::debug(world) => Detail::Findings,
        (false, EvalFormat::Hook | EvalFormat::Json | EvalFormat::Text) => Detail::Everything,
    };
    let dry_run = arguments.dry_run;
    let line = format!("{} {}", arguments.harness.as_deref().unwrap_or("-"), arguments.hook);
    let supervision = Supervision::of_hook(world);
    let caller = *caller;
    let watch = None;
    let request = Request {
        event,
        caller,
        supervision,
        now,
        policies,
        detail,
        dry_run,
        line,
        configurations,
        watch,
    };
    Ok(ReadEvent { request: Some(request), is_whole })
}

/// Whether the event is one of ours, or one of the harness; without a harness, of any.
fn known_event(arguments: &EvalCall, named: Option<&'static Harness>) -> Result<(), AppError> {
    let hook = arguments.hook.as_str();
    let is_known = match named {
        Some(harness) => harness.moment(hook).is_some() || EventKind::find(hook).is_some(),
        None => harness::knows_event(hook),
    };
    if is_known {
        return Ok(());
    }
    let help = suggest::did_you_mean(hook, EVENT_NAMES).unwrap_or_default();
    Err(AppError::usage(format!("unknown event `{hook}`; {help}")))
}

/// Reads standard input until its JSON value is complete, or up to one part over the limit, so that a longer payload is
/// noticed. A client may keep its end open.
fn read_stdin(world: &dyn World, console: &mut Console<'_>) -> Result<Vec<u8>, PayloadError> {
    let (mut bytes, mut extent) = (Vec::new(), JsonExtent::default());
    let mut part = vec![0; STDIN_PART_BYTES];
    let end = world.elapsed().saturating_add(limits::STDIN_WAIT_MAX);
    while bytes.len() <= limits::STDIN_BYTES_MAX {
        if !world.input_comes(end.saturating_sub(world.elapsed())) {
            return Err(PayloadError::Late);
        }
        let read = match console.stdin.read(&mut part) {
            // What could be read is evaluated; an empty payload is reported as such.
            Ok(0) => break,
            Ok(read) => part.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        bytes.extend_from_slice(read);
        if extent.ends_in(read) {
            break;
        }
    }
    Ok(bytes)
}

/// Speaks last: one write, in the form that was asked for.
fn speak(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &EvalCall,
    caller: Caller,
    report: &Report,
    usage: u8,
) -> u8 {
    let blocked = report.answer.refuses();
    match arguments.format {
        EvalFormat::Hook => {
            let mut answer = report.answer.clone();
            let problems = report.context.problems.iter().map(|it| format!("policyd: {it}"));
            let said: Vec<String> = problems.chain(answer.notice.take()).collect();
            answer.notice = Some(said.join("\n"));
            let (text, changed) = hook::speak(caller, &answer, report.tool.as_deref());
            world.prepare_crash_answer(None);
            console.print(&text);
            if project::debug(world) {
                changed.iter().for_each(|it| console.eprint(it));
            }
            return EXIT_OK;
        }
        EvalFormat::Json => {
            let value = report::to_json(report.outcome.as_ref(), &report.context);
            console.print(&format!("{value:#}\n"));
        }
        EvalFormat::Text => {
            let color = console.color();
            console.print(&report::to_text(report.outcome.as_ref(), &report.context, color));
        }
    }
    if project::debug(world) {
        report.trace.iter().for_each(|it| console.eprint(it));
    }
    match (usage, report.outcome.is_none() && !report.context.problems.is_empty(), blocked) {
        (EXIT_OK, false, false) => EXIT_OK,
        (EXIT_OK, false, true) => EXIT_FOUND,
        (EXIT_OK, true, _) => EXIT_BROKEN,
        (code, _, _) => code,
    }
}
