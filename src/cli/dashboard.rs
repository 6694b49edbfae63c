//! `policyd dashboard`: all projects in the browser. Starting it is a command for humans, because it answers questions.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Console, DashboardArguments, EXIT_OK, EXIT_USAGE, error};
use crate::human::require_human;
use policyd_app::dashboard::{self, DashboardOptions, DashboardTerminal};
use policyd_base::limits::DASHBOARD_SECRET_BYTES_MAX;
use policyd_world::{World, WorldError};
use policyd_yaml::time::parse_duration;

/// Shortest secret.
const SECRET_CHARS_MIN: usize = 16;

/// Serves the dashboard until Ctrl-C.
pub(super) fn run(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &DashboardArguments,
) -> u8 {
    let Ok(since) = parse_duration(&arguments.since) else {
        console.eprint(super::log::SINCE_HELP);
        return EXIT_USAGE;
    };
    let secret = |file: &Option<PathBuf>| file.as_ref().map(|it| secret(world, it)).transpose();
    let secrets = secret(&arguments.metrics_token)
        .and_then(|token| Ok((token, secret(&arguments.reply_key)?)));
    let (metrics_token, reply_key) = match secrets {
        Ok(secrets) => secrets,
        Err(why) => {
            console.eprint(&why.to_string());
            return EXIT_USAGE;
        }
    };
    let action = match &reply_key {
        None => "answer questions in the browser until it ends",
        Some(_) => "answer questions in the browser, and by signed webhooks, until it ends",
    };
    let actor = match arguments.read_only {
        true => None,
        false => match require_human(world, console, action) {
            Ok(actor) => Some(actor),
            Err(code) => {
                console.eprint("help: `policyd dashboard --read-only` needs no confirmation");
                return code;
            }
        },
    };
    let options = DashboardOptions {
        port: arguments.port,
        actor,
        by_address: arguments.by_address,
        metrics_token,
        reply_key,
        since,
    };
    let mut terminal = ConsoleTerminal { world, console, is_closed: false, has_link: false };
    match dashboard::serve(world, &options, &mut terminal) {
        Ok(()) => EXIT_OK,
        Err(error) => error::report(console, &error),
    }
}

/// Why a secret is not used.
#[derive(Debug, thiserror::Error)]
enum SecretError {
    #[error("could not read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: WorldError },
    #[error(
        "the secret in {} is shorter than {SECRET_CHARS_MIN} characters\nhelp: create one: openssl rand -hex 32",
        path.display()
    )]
    Short { path: PathBuf },
}

/// Reads a secret from a file, so that it is not an argument that other processes can read.
fn secret(world: &dyn World, path: &Path) -> Result<String, SecretError> {
    let path = world.working_folder().join(path);
    let bytes = match world.read(&path, DASHBOARD_SECRET_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(source) => return Err(SecretError::Unreadable { path, source }),
    };
    let secret = String::from_utf8_lossy(&bytes).trim().to_owned();
    if secret.chars().count() < SECRET_CHARS_MIN {
        return Err(SecretError::Short { path });
    }
    Ok(secret)
}

/// The terminal on which links are shown.
struct ConsoleTerminal<'t, 'c> {
    world: &'t dyn World,
    console: &'t mut Console<'c>,
    /// Whether standard input ended.
    is_closed: bool,
    has_link: bool,
}

impl DashboardTerminal for ConsoleTerminal<'_, '_> {
    fn show_link(&mut self, link: &str) {
        self.console.print(&format!("{link}\n"));
        if !self.has_link {
            self.has_link = true;
            let more = if self.console.stdin_is_tty { " Press Enter for another one." } else { "" };
            self.console.eprint(&format!(
                "the link works once, within 10 minutes.{more} Press Ctrl-C to end the dashboard."
            ));
        }
    }

    fn show_problem(&mut self, text: &str) {
        self.console.eprint(text);
    }

    fn enter_pressed(&mut self, within: Duration) -> bool {
        if self.is_closed || !self.console.stdin_is_tty {
            self.world.sleep(within);
            return false;
        }
        if !self.world.input_comes(within) {
            return false;
        }
        let mut typed = [0; 256];
        let count = self.console.stdin.read(&mut typed).unwrap_or(0);
        self.is_closed = count == 0;
        typed.get(..count).unwrap_or_default().contains(&b'\n')
    }
}
