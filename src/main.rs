//! `policyd`, the program that clients start at each event. It answers hooks itself, and the two commands that are started as
//! often: `breaker allow` and `context line`. For every other command, it starts `policyd-tools`, which lies beside it.

mod sibling;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::rc::Rc;

use policyd_arena::Arena;
use policyd_eval::exit::EXIT_BROKEN;
use policyd_eval::{Console, EvalCall, breaker, line::ArgumentLine, run, status_line};
use policyd_packs::{self as packs, FoundPack, LoadError};
use policyd_policy::Policy;
use policyd_store::configuration::Configurations;
use policyd_workspace::project_variables;
use policyd_world::World;
use policyd_world::real::RealWorld;

#[global_allocator]
static ALLOCATOR: Arena = Arena::new();

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let line = ArgumentLine::new(&arguments);
    if let Some(call) = line.plain_hook_call() {
        return answer(&arguments, &call);
    }
    let frequent = if line.directory().is_none() { run_frequent(line) } else { None };
    frequent.unwrap_or_else(|| other_command(&arguments))
}

/// Runs a command that scripts or clients start as often as hooks. `None` for every other command, and if more than the
/// program of hooks is needed.
fn run_frequent(line: ArgumentLine<'_>) -> Option<ExitCode> {
    let run: &dyn Fn(&dyn World, &mut Console<'_>) -> Option<u8> =
        if let Some(call) = line.plain_allow_call() {
            &move |world, console| breaker::allow_here(world, console, &call, load_pack)
        } else if line.is_status_line_call() && !std::io::stdout().is_terminal() {
            &|world, console| status_line::answer(world, console, load_pack)
        } else {
            return None;
        };
    let world = RealWorld::new();
    let ignored = project_variables::find(&world);
    let world = world.without_variables(ignored);
    let answered = catch_unwind(AssertUnwindSafe(|| with_streams(|console| run(&world, console))));
    // The panic is reported on standard error.
    answered.unwrap_or(Some(EXIT_BROKEN)).map(ExitCode::from)
}

/// Runs with the streams of the process. No output is a terminal that shows colors.
fn with_streams<T>(run: impl FnOnce(&mut Console<'_>) -> T) -> T {
    run(&mut Console {
        stdin: &mut std::io::stdin().lock(),
        stdout: &mut std::io::stdout().lock(),
        stderr: &mut std::io::stderr().lock(),
        stdout_is_tty: false,
        stderr_is_tty: false,
        stdin_is_tty: false,
        columns: None,
    })
}

/// Answers a hook. Its answer is the only thing that is said, and its exit code is 0 whatever happens.
fn answer(arguments: &[OsString], call: &EvalCall) -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    let line = ArgumentLine::new(arguments);
    let mut world = RealWorld::new();
    line.prepare_crash_answer(&world);
    if let Some(directory) = line.directory() {
        match world.enter(&directory) {
            Ok(entered) => world = entered,
            Err(error) => {
                let why = format!("the directory {} cannot be used: {error}.", directory.display());
                return say(&line.not_analyzed_answer(&why));
            }
        }
    }
    let ignored = project_variables::find(&world);
    let world = world.without_variables(ignored);
    let configurations = Rc::new(Configurations::load(&world));
    if run::needs_network(&world, &configurations, call) {
        return other_command(arguments);
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        with_streams(|console| run::run(&world, console, call, configurations, load_pack))
    }));
    match outcome {
        Ok(code) => ExitCode::from(code),
        // Nothing was said yet: an answer is spoken last, in one write.
        Err(_) => say(&line.internal_error_answer()),
    }
}

/// Loads a pack. `policyd-tools` compiles it if it changed.
fn load_pack(world: &dyn World, found: &FoundPack) -> Result<Policy, LoadError> {
    packs::load_by(world, found, |input| sibling::compile(world, input).map_err(Into::into))
}

/// Runs `policyd-tools` with the same arguments. A hook is answered even if this fails.
fn other_command(arguments: &[OsString]) -> ExitCode {
    let line = ArgumentLine::new(arguments);
    if line.is_hook_call() {
        return match sibling::answer(arguments) {
            Ok(answer) => write(&answer),
            Err(error) => say(&line.not_analyzed_answer(&format!("{error}."))),
        };
    }
    let error = match sibling::run(arguments) {
        Ok(code) => return code,
        Err(error) => error,
    };
    drop(writeln!(std::io::stderr().lock(), "policyd: {error}"));
    ExitCode::from(EXIT_BROKEN)
}

fn say(answer: &str) -> ExitCode {
    write(answer.as_bytes())
}

fn write(answer: &[u8]) -> ExitCode {
    drop(std::io::stdout().lock().write_all(answer));
    ExitCode::SUCCESS
}
