//! `policyd run`: starts a supervised run, and prints its events and how it stands.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use super::{Console, EXIT_BROKEN, RunArguments, RunFormat, error, pack};
use policyd_app::supervisor::{self, RunObserver, RunRequest};
use policyd_record::paint::for_terminal;
use policyd_report::run as report;
use policyd_report::standing::RunStatusLine;
use policyd_state::run::Options;
use policyd_world::World;

/// Supervises one run to its end.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &RunArguments) -> u8 {
    let named = arguments.policies.as_deref();
    let Some((policy, found)) = pack::require_valid_with_pack(world, console, named) else {
        return EXIT_BROKEN;
    };
    let mut observer = ConsoleObserver::new(console, arguments.format);
    match supervisor::run(world, &mut observer, policy, found, &request(arguments)) {
        Ok(status) => status.exit_code(),
        Err(error) => error::report(console, &error),
    }
}

fn request(arguments: &RunArguments) -> RunRequest {
    let millis = |it: Duration| u64::try_from(it.as_millis()).unwrap_or(u64::MAX);
    RunRequest {
        goal: arguments.goal.clone().unwrap_or_default(),
        command: arguments.command.clone(),
        options: Options {
            max_iterations: arguments.max_iterations,
            max_restarts: arguments.max_restarts,
            budget_usd: arguments.budget_usd,
            turn_deadline_ms: arguments.turn_deadline.map(millis),
            claims: arguments.claim.iter().map(|it| it.as_str().to_owned()).collect(),
        },
        state_dir: arguments.state_dir.clone(),
        resume: arguments.resume,
    }
}

/// Prints events as lines or as JSON, and on a terminal one line that shows how the run stands.
struct ConsoleObserver<'c, 'o> {
    console: &'c mut Console<'o>,
    format: RunFormat,
    bar: Option<ProgressBar>,
}

impl<'c, 'o> ConsoleObserver<'c, 'o> {
    fn new(console: &'c mut Console<'o>, format: RunFormat) -> Self {
        let is_shown = console.stderr_is_tty && format == RunFormat::Text;
        let bar = is_shown.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            match ProgressStyle::with_template("{spinner} {wide_msg}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        Self { console, format, bar }
    }
}

impl RunObserver for ConsoleObserver<'_, '_> {
    fn receive(&mut self, event: &Value) {
        let line = match self.format {
            RunFormat::Jsonl => Some(event.to_string()),
            RunFormat::Text => report::line(event),
        };
        let Some(line) = line else { return };
        let console = &mut self.console;
        match &self.bar {
            Some(bar) => bar.suspend(|| console.print(&format!("{line}\n"))),
            None => console.print(&format!("{line}\n")),
        }
    }

    fn shows_standing(&self) -> bool {
        self.bar.is_some()
    }

    fn show(&self, standing: &RunStatusLine<'_>) {
        if let Some(bar) = &self.bar {
            bar.set_message(for_terminal(&standing.line()).into_owned());
            bar.tick();
        }
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
