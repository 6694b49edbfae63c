//! `policyd-tools`: every command of policyd but the hook. `policyd`, which lies beside it, starts it; users type
//! `policyd` only.
#![expect(
    clippy::disallowed_methods,
    reason = "the two programs find each other before a World exists"
)]

use std::ffi::OsString;
use std::io::{IsTerminal, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;

use policyd_base::programs::{COMPILE_PACK, FRONT, FRONT_RELEASE, beside};
use policyd_tools::cli::{self, ArgumentLine, Console};
use policyd_tools::compiler;
use policyd_tools::net::RealNetwork;
use policyd_tools::world::real::RealWorld;
use policyd_workspace::project_variables;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|it| it == COMPILE_PACK) {
        return compile_pack();
    }
    let line = ArgumentLine::new(&arguments);
    let hook = line.is_hook_call();
    if hook {
        // A hook writes its answer and nothing else. The panic is reported below.
        std::panic::set_hook(Box::new(|_| {}));
    }
    let world = RealWorld::new().with_network(&RealNetwork);
    let mut world = world.announcing_waits(!hook).owning_process();
    if let Some(front) = front() {
        world = world.with_program(front);
    }
    if hook {
        line.prepare_crash_answer(&world);
    }
    if let Some(directory) = cli::directory(&arguments) {
        match world.enter(&directory) {
            Ok(entered) => world = entered,
            Err(error) => {
                let why = format!("the directory {} cannot be used: {error}", directory.display());
                return refuse(line, &why);
            }
        }
    }
    let ignored = project_variables::find(&world);
    let world = world.without_variables(ignored);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut console = Console {
            stdin: &mut std::io::stdin().lock(),
            stdout: &mut std::io::stdout().lock(),
            stderr: &mut std::io::stderr().lock(),
            stdout_is_tty: std::io::stdout().is_terminal(),
            stderr_is_tty: std::io::stderr().is_terminal(),
            stdin_is_tty: std::io::stdin().is_terminal(),
            columns: terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)),
        };
        match cli::other_release(&world) {
            Some(problem) => cli::refuse(&mut console, &arguments, &problem),
            None => cli::run(&world, &mut console, &arguments),
        }
    }));
    match outcome {
        Ok(code) => ExitCode::from(code),
        // Nothing was said yet: an answer is spoken last, in one write.
        Err(_) if hook => {
            let answer = line.internal_error_answer();
            drop(std::io::stdout().lock().write_all(answer.as_bytes()));
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::from(cli::EXIT_BROKEN),
    }
}

/// Compiles the pack in standard input for the hook program.
fn compile_pack() -> ExitCode {
    if let Some(problem) = cli::other_release(&RealWorld::new()) {
        drop(writeln!(std::io::stderr().lock(), "{problem}"));
        return ExitCode::from(cli::EXIT_BROKEN);
    }
    let mut input = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut input);
    let output = read.ok().and_then(|_| compiler::run(&input));
    let is_written = |it: Vec<u8>| std::io::stdout().lock().write_all(&it).is_ok();
    if output.is_some_and(is_written) {
        return ExitCode::SUCCESS;
    }
    drop(writeln!(std::io::stderr().lock(), "the input is not a pack of this release"));
    ExitCode::from(cli::EXIT_BROKEN)
}

/// Refuses a command line. A hook is answered.
fn refuse(line: ArgumentLine<'_>, why: &str) -> ExitCode {
    if line.is_hook_call() {
        let answer = line.not_analyzed_answer(&format!("{why}."));
        drop(std::io::stdout().lock().write_all(answer.as_bytes()));
        return ExitCode::SUCCESS;
    }
    drop(writeln!(std::io::stderr().lock(), "policyd: {why}"));
    ExitCode::from(cli::EXIT_USAGE)
}

/// The program that users and clients call: the first argument if `policyd` started this program, else the one beside it.
fn front() -> Option<PathBuf> {
    let own = std::env::current_exe().and_then(|it| it.canonicalize()).ok()?;
    let is_other = |it: &PathBuf| it.canonicalize().is_ok_and(|it| it != own);
    let is_started = std::env::var_os(FRONT_RELEASE).is_some();
    let named = std::env::args_os().next().map(PathBuf::from).filter(|_| is_started);
    let usual = beside(&own, FRONT);
    let named = named.filter(|it| it.is_absolute() && is_other(it));
    named.or_else(|| usual.metadata().is_ok().then_some(usual))
}
