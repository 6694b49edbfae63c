//! The program: builds the real World, hands over to `cli`, and exits.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use policyd::cli::{self, Console};
use policyd::net::RealNetwork;
use policyd::world::real::RealWorld;

fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let directory = cli::take_directory(&mut arguments);
    let hook = cli::is_hook_call(&arguments);
    if hook {
        // The answer is the only thing a hook says; the panic itself is told below.
        std::panic::set_hook(Box::new(|_| {}));
    }
    ignore_file_limits();
    let mut world = RealWorld::new().with_network(&RealNetwork).announcing_waits(!hook);
    if hook {
        cli::prepare_crash_answer(&world, &arguments);
    }
    if let Some(directory) = &directory {
        match world.enter(directory) {
            Ok(entered) => world = entered,
            Err(error) => {
                let text =
                    format!("policyd: cannot use the directory {}: {error}\n", directory.display());
                drop(std::io::stderr().lock().write_all(text.as_bytes()));
                return ExitCode::from(cli::EXIT_USAGE);
            }
        }
    }
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
        cli::run(&world, &mut console, &arguments)
    }));
    match outcome {
        Ok(code) => ExitCode::from(code),
        // Nothing was said yet: an answer is spoken last, in one write.
        Err(_) if hook => {
            let answer = cli::internal_error_answer(&arguments);
            drop(std::io::stdout().lock().write_all(answer.as_bytes()));
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::from(cli::EXIT_BROKEN),
    }
}

/// A write beyond `ulimit -f` is an error, and not the end of this process. Programs that are started have
/// the machine's own answer to that signal again.
fn ignore_file_limits() {
    #[cfg(unix)]
    {
        let signal = rustix::process::Signal::XFSZ.as_raw();
        // Where this is refused, the signal ends the process, as it would without this.
        drop(signal_hook::flag::register(signal, std::sync::Arc::default()));
    }
}
