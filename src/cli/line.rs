//! The command line as a whole: environment variables of options, shell completions, man pages.

use std::ffi::OsString;

use clap::builder::{BoolishValueParser, PossibleValuesParser};
use clap::{ArgAction, CommandFactory, FromArgMatches, Subcommand};

use super::arguments::{Arguments, DebugAction};
use super::{Console, EXIT_BROKEN, EXIT_OK, EXIT_USAGE};
use policyd_book::{EXAMPLES, PAGES, Page};
use policyd_eval::line::ArgumentLine;
use policyd_harness::HARNESSES;
use policyd_lint as lint;
use policyd_report::schemas;
use policyd_yaml::suggest;

/// Command without environment variables: a hook call uses only the options of its hook line.
const HOOK_COMMAND: &str = "eval";
/// Group of the rarely used commands.
const DEBUG_COMMAND: &str = "debug";
/// Prefix of all environment variables.
const PREFIX: &str = "POLICYD";
/// Option whose variable is read elsewhere: see `packs::find`.
const OWN_VARIABLE: &str = "policies";

/// The commands with their arguments and help texts.
#[must_use]
pub fn command_line() -> clap::Command {
    Arguments::command()
}

/// Reads the arguments; an option that is not given may be set by its variable.
pub(super) fn parse(arguments: &[OsString]) -> Result<Arguments, clap::Error> {
    let arguments = grouped(arguments);
    let mut matches = described(&arguments).try_get_matches_from(&arguments)?;
    Arguments::from_arg_matches_mut(&mut matches)
}

/// Inserts `debug` before a command of this group: `policyd state list` means `policyd debug state list`.
pub(super) fn grouped(arguments: &[OsString]) -> Vec<OsString> {
    let line = ArgumentLine::new(arguments);
    let mut words = arguments.to_vec();
    if line.command().is_some_and(DebugAction::has_subcommand) {
        words.insert(line.command_index(), DEBUG_COMMAND.into());
    }
    words
}

/// All commands; of those that may be meant each option with its variable: `--fail-level` of `lint` is
/// `POLICYD_LINT_FAIL_LEVEL`. To give all of them theirs takes as long as to read the arguments.
fn described(arguments: &[OsString]) -> clap::Command {
    with_variables_of(|it| arguments.iter().any(|word| word == it))
}

/// All commands; of those that are meant each option with its variable.
fn with_variables_of(is_meant: impl Fn(&str) -> bool) -> clap::Command {
    let command = Arguments::command().mut_args(|it| with_variable(it, PREFIX));
    command.mut_subcommands(|it| {
        let has_none = it.get_name() == HOOK_COMMAND || !is_meant(it.get_name());
        if has_none { it } else { with_variables(it, PREFIX) }
    })
}

fn with_variables(command: clap::Command, prefix: &str) -> clap::Command {
    let prefix = format!("{prefix}_{}", command.get_name().to_uppercase());
    let command = command.mut_args(|it| with_variable(it, &prefix));
    command.mut_subcommands(|it| with_variables(it, &prefix))
}

fn with_variable(argument: clap::Arg, prefix: &str) -> clap::Arg {
    let Some(long) = argument.get_long().filter(|it| *it != OWN_VARIABLE) else {
        return argument;
    };
    // A variable of a standard stays.
    if argument.get_env().is_some() {
        return argument;
    }
    let name = format!("{prefix}_{}", long.to_uppercase().replace('-', "_"));
    let argument = argument.env(name).hide_env(true);
    // `1`, `yes` and `on` say yes, as in other programs.
    if matches!(argument.get_action(), ArgAction::SetTrue) {
        argument.value_parser(BoolishValueParser::new())
    } else {
        argument
    }
}

/// The variables of all options.
pub(super) fn variables() -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![with_variables_of(|_| true)];
    while let Some(command) = open.pop() {
        let names = command.get_arguments().filter_map(|it| it.get_env()?.to_str());
        found.extend(names.map(str::to_owned));
        open.extend(command.get_subcommands().cloned());
    }
    found
}

/// Prints the completions of a shell.
pub(super) fn completions(console: &mut Console<'_>, shell: clap_complete::Shell) -> u8 {
    let mut text = Vec::new();
    let mut program = Arguments::command().mut_subcommands(with_names);
    clap_complete::generate(shell, &mut program, "policyd", &mut text);
    console.print(&String::from_utf8_lossy(&text));
    EXIT_OK
}

/// The command with the names that its arguments take: a shell offers them. Reading a line goes without, for
/// whatever else is written there is answered by the command itself.
fn with_names(command: clap::Command) -> clap::Command {
    let is_schema = command.get_name() == "schema";
    command.mut_args(|it| match it.get_id().as_str() {
        "name" if is_schema => one_of(it, schemas::all().iter().map(|(name, _)| *name)),
        "explain" if it.get_action().takes_values() => {
            one_of(it, lint::rules().iter().flat_map(|rule| [rule.code, rule.name]))
        }
        "topic" => one_of(it, PAGES.iter().map(Page::topic)),
        "example" => one_of(it, EXAMPLES.iter().map(|example| example.name)),
        "harness" => one_of(it, HARNESSES.iter().map(|client| client.name)),
        _ => it,
    })
}

fn one_of(argument: clap::Arg, names: impl Iterator<Item = &'static str>) -> clap::Arg {
    argument.value_parser(PossibleValuesParser::new(names))
}

/// Prints the man page of the program, or of a command with its options and their variables.
pub(super) fn man(console: &mut Console<'_>, path: &[String]) -> u8 {
    let program = with_variables_of(|_| true);
    let mut command = program.disable_help_subcommand(true);
    command.build();
    for name in path {
        let Some(found) = command.find_subcommand(name) else {
            let known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            let help = suggest::did_you_mean(name, &known);
            let help = help.unwrap_or_else(|| match known.as_slice() {
                [] => "it has no subcommands".to_owned(),
                known => format!("one of {}", known.join(", ")),
            });
            console.eprint(&format!("unknown command `{name}`\nhelp: {help}"));
            return EXIT_USAGE;
        };
        command = found.clone();
    }
    // The page of `policyd lint` is called `policyd-lint`, and says which variable sets an option.
    let title = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let command = command
        .name(title)
        .version(env!("CARGO_PKG_VERSION"))
        .mut_args(|it| it.hide_env(false).hide_env_values(true));
    let mut text = Vec::new();
    match clap_mangen::Man::new(command).render(&mut text) {
        Ok(()) => console.print(&String::from_utf8_lossy(&text)),
        Err(error) => {
            console.eprint(&error.to_string());
            return EXIT_BROKEN;
        }
    }
    EXIT_OK
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_app::doctor::variables::OWN_VARIABLES;

    #[test]
    fn every_variable_of_the_docs_is_known() {
        let page = include_str!("../docs/reference/environment.md");
        let options = variables();
        for name in page.split(|c: char| !(c.is_ascii_uppercase() || c == '_')) {
            if name.strip_prefix("POLICYD_").is_some_and(|it| !it.is_empty()) {
                let is_known = OWN_VARIABLES.contains(&name) || options.iter().any(|it| it == name);
                assert!(is_known, "{name}");
            }
        }
    }
}
