//! The command line itself: variables for options, completions for shells, the man page.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches};

use super::arguments::Arguments;
use super::{Console, EXIT_BROKEN, EXIT_OK};

/// Options that a variable must not set: those of a hook call come from its hook line alone, and
/// `--policies` has rules of its own (see `pack::find`).
const WITHOUT_VARIABLE: (&str, [&str; 1]) = ("eval", ["policies"]);

/// Reads the arguments; an option that is not given may be set by its variable.
pub(super) fn parse(arguments: &[OsString]) -> Result<Arguments, clap::Error> {
    let mut matches = described().try_get_matches_from(arguments)?;
    Arguments::from_arg_matches_mut(&mut matches)
}

/// All commands, each option with its variable: `--fail-level` is `POLICYD_FAIL_LEVEL`.
fn described() -> clap::Command {
    let (hooks, own) = WITHOUT_VARIABLE;
    let variable = move |argument: clap::Arg| match argument.get_long() {
        Some(long) if !own.contains(&long) => {
            let name = format!("POLICYD_{}", long.to_uppercase().replace('-', "_"));
            argument.env(name).hide_env(true)
        }
        Some(_) | None => argument,
    };
    let with_variables = move |command: clap::Command| {
        if command.get_name() == hooks {
            return command;
        }
        command.mut_args(variable).mut_subcommands(move |it| it.mut_args(variable))
    };
    Arguments::command().mut_args(variable).mut_subcommands(with_variables)
}

/// Prints the completions of a shell.
pub(super) fn completions(console: &mut Console<'_>, shell: clap_complete::Shell) -> u8 {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "policyd", &mut text);
    console.say(&String::from_utf8_lossy(&text));
    EXIT_OK
}

/// Prints the man page: the program, then each command.
pub(super) fn man(console: &mut Console<'_>) -> u8 {
    let mut text = Vec::new();
    match clap_mangen::Man::new(Arguments::command().flatten_help(true)).render(&mut text) {
        Ok(()) => console.say(&String::from_utf8_lossy(&text)),
        Err(error) => {
            console.complain(&error.to_string());
            return EXIT_BROKEN;
        }
    }
    EXIT_OK
}
