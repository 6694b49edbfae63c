//! The command line: arguments and what is printed. One file per command.
//!
//! Contains: the commands, and their dispatch. Does not contain: what they do (`policyd-app`), and the command line of hooks
//! (`policyd-eval`).
//!
//! ```
//! let commands = policyd_cli::command_line();
//! assert!(commands.find_subcommand("lint").is_some());
//! ```

mod allow;
mod arguments;
mod breaker;
mod check;
mod command_table;
mod context;
mod dashboard;
mod decide;
mod diag;
mod dlq;
mod doctor;
mod enforce;
mod escalation;
mod exit_codes;
mod explain;
mod export;
mod facts;
mod failure;
mod help;
mod help_groups;
mod human;
mod inbox;
mod init;
mod install;
mod learn;
mod line;
mod lint;
mod lists;
mod log;
mod lsp;
mod metrics;
mod pack;
mod pause;
mod rationalization;
mod remote;
mod replay;
mod report;
mod rule;
mod rules;
mod run;
mod schema;
mod signal;
mod state;
mod status;
mod store;
mod suggest;
mod test;
mod top;
mod trust;
mod try_out;
mod watch;

use clap::CommandFactory;
use clap::error::ErrorKind;
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;

use arguments::{
    AllowArguments, Arguments, BreakerAction, CallResult, CheckArguments, Color, Command,
    ContextAction, ContextArguments, DashboardArguments, DebugAction, DecideArguments, DiagAction,
    DiagFilter, DisableArguments, DlqAction, DlqAdd, DlqRetry, DoctorArguments, EnforceArguments,
    EscalationAction, EscalationOpen, ExplainArguments, ExportAction, ExportArguments,
    ExportFormat, ExportTo, FactsArguments, FailureAction, FailureOptions, InitArguments,
    InstallArguments, LearnArguments, LintArguments, ListFormat, LogArguments, LspArguments,
    ManifestArguments, MetricsArguments, MorningFormatName, PackAction, PauseArguments,
    PushArguments, QueueSelector, RationalizationAction, RecordArguments, RejectedAction,
    ReplayArguments, ReportArguments, ReportFormat, ResumeArguments, RunArguments, RunFormat,
    SchemaArguments, SignalAction, SignalArguments, StateAction, StatusArguments, StoreAction,
    StorePlace, SuggestArguments, TestArguments, TestFormat, TopArguments, TrustArguments,
    TryArguments, UninstallArguments, Update, UpdateArguments,
};
pub use command_table::{COMMAND_GROUPS, CommandGroup, CommandRow, CommandRunner};
pub use exit_codes::EXIT_CODES;
pub use line::command_line;
use policyd_app::packs;
use policyd_app::workspace::project;
use policyd_base::programs::FRONT_RELEASE;
pub use policyd_eval::exit::{EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE};
pub use policyd_eval::line::ArgumentLine;
pub use policyd_eval::{Console, console::WatchedStream};
use policyd_eval::{error, run as eval};
use policyd_facts::event::EventKind;
use policyd_hook::{self as hook, HookResponse};
use policyd_store::configuration::Configurations;
use policyd_world::World;
use policyd_yaml::suggest::nearest;

/// Runs the program and returns its exit code.
pub fn run(world: &dyn World, console: &mut Console<'_>, arguments: &[OsString]) -> u8 {
    let mut stdout = WatchedStream::new(&mut *console.stdout);
    let Console { stdout_is_tty, stderr_is_tty, stdin_is_tty, columns, .. } = *console;
    let columns = columns.filter(|_| stdout_is_tty);
    let (stdin, stderr) = (&mut *console.stdin, &mut *console.stderr);
    let mut own = Console {
        stdin,
        stdout: &mut stdout,
        stderr,
        stdout_is_tty,
        stderr_is_tty,
        stdin_is_tty,
        columns,
    };
    let code = match ArgumentLine::new(arguments).plain_hook_call() {
        Some(plain) => eval::run(world, &mut own, &plain, configurations(world), packs::load),
        None => command(world, &mut own, arguments),
    };
    if stdout_is_tty {
        stdout.end_line();
    }
    match stdout.lost {
        Some(error) if !ArgumentLine::new(arguments).is_hook_call() => {
            console.eprint(&format!("could not write to standard output: {error}"));
            EXIT_BROKEN
        }
        _ => code,
    }
}

/// Returns the directory that `-C` names, wherever it stands. The caller starts there, so that no command has to know it.
#[must_use]
pub fn directory(arguments: &[OsString]) -> Option<PathBuf> {
    // To read the whole line costs more than a hook.
    let is_named = |it: &OsString| it.as_encoded_bytes().starts_with(b"-C");
    let behind = || line::parse(arguments).ok()?.directory;
    let before = ArgumentLine::new(arguments).directory();
    before.or_else(|| arguments.iter().any(is_named).then(behind)?)
}

/// Returns what to say if a `policyd` of another release started this program.
#[must_use]
pub fn other_release(world: &dyn World) -> Option<String> {
    let own = env!("CARGO_PKG_VERSION");
    let front = world.env(FRONT_RELEASE).filter(|it| it != own)?;
    Some(format!(
        "`policyd` has the release {front}, and `policyd-tools` beside it has {own}. Install policyd again"
    ))
}

/// Refuses to run a command. A hook is answered.
pub fn refuse(console: &mut Console<'_>, arguments: &[OsString], problem: &str) -> u8 {
    let line = ArgumentLine::new(arguments);
    if line.is_hook_call() {
        console.print(&line.not_analyzed_answer(&format!("{problem}.")));
        return EXIT_OK;
    }
    console.eprint(problem);
    EXIT_BROKEN
}

/// Runs the command that the arguments name.
fn command(world: &dyn World, console: &mut Console<'_>, arguments: &[OsString]) -> u8 {
    let fenced = project::fenced(world, &project::find(world, None));
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    if let Some(words) = help::nested(arguments) {
        return help::run(console, &words);
    }
    let parsed = match line::parse(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return usage(&error, world, console, arguments),
    };
    set_terminal(world, console, parsed.color);
    match parsed.command {
        Command::Eval(it) => {
            eval::run(world, console, &it.into(), configurations(world), packs::load)
        }
        Command::Check(it) => check::run(world, console, &it),
        Command::Init(it) => init::run(world, console, &it),
        Command::Lint(it) => lint::run(world, console, &it),
        Command::Test(it) => test::run(world, console, &it),
        Command::Rule(it) => rule::run(world, console, &it.action),
        Command::Rules(it) => rules::run(world, console, &it),
        Command::Facts(it) => facts::run(world, console, &it),
        Command::Try(it) => try_out::run(world, console, &it),
        Command::Allow(it) => allow::run(world, console, &it),
        Command::Learn(it) => learn::run(world, console, &it),
        Command::Suggest(it) => suggest::run(world, console, &it),
        Command::Pause(it) => pause::pause(world, console, &it),
        Command::Resume(it) => pause::resume(world, console, &it),
        Command::Disable(it) => pause::disable(world, console, &it),
        Command::Enable => pause::enable(world, console),
        Command::Enforce(it) => enforce::run(world, console, &it),
        Command::Store(it) => store::run(world, console, &it.action),
        Command::Status(it) => status::run(world, console, &it),
        Command::Inbox(it) => inbox::run(world, console, &it),
        Command::Dashboard(it) => dashboard::run(world, console, &it),
        Command::Top(it) => top::run(world, console, &it),
        Command::Metrics(it) => metrics::run(world, console, &it),
        Command::Report(it) => report::run(world, console, &it),
        Command::Export(it) => export::run(world, console, &it),
        Command::Log(it) => log::run(world, console, &it),
        Command::Lsp(it) => lsp::run(world, console, &it),
        Command::Explain(it) => explain::run(world, console, &it),
        Command::Breaker(it) => breaker::run(world, console, &it.action),
        Command::Dlq(it) => dlq::run(world, console, &it.action),
        Command::Escalation(it) => escalation::run(world, console, &it.action),
        Command::Run(it) => run::run(world, console, &it),
        Command::Signal(it) => signal::run(world, console, &it),
        Command::Context(it) => context::run(world, console, &it),
        Command::Replay(it) => replay::run(world, console, &it),
        Command::Install(it) => install::run(world, console, &it),
        Command::Uninstall(it) => install::uninstall(world, console, &it),
        Command::Doctor(it) => doctor::run(world, console, &it),
        Command::Trust(it) => trust::run(world, console, &it),
        Command::Pack(it) => remote::run(world, console, &it.action),
        Command::Schema(it) => schema::run(console, &it),
        Command::Debug(it) => debug(world, console, &it.action),
        Command::Completions { shell } => line::completions(console, shell),
        Command::Help { topic } => help::run(console, &topic),
        Command::Man { command } => line::man(console, &command),
    }
}

fn debug(world: &dyn World, console: &mut Console<'_>, action: &DebugAction) -> u8 {
    match action {
        DebugAction::State(it) => state::run(world, console, &it.action),
        DebugAction::Diag(it) => diag::run(world, console, &it.action),
        DebugAction::Failure(it) => failure::run(world, console, &it.action),
        DebugAction::Decide(it) => decide::run(world, console, it),
        DebugAction::Rationalization(it) => rationalization::run(world, console, &it.action),
    }
}

/// The settings of the organization and of the user, for one event.
fn configurations(world: &dyn World) -> Rc<Configurations> {
    Rc::new(Configurations::load(world))
}

/// Sets colors and columns, as the options and the environment say.
fn set_terminal(world: &dyn World, console: &mut Console<'_>, color: Color) {
    match color {
        Color::Auto => {
            let is_dumb = world.env("TERM").is_some_and(|it| it == "dumb");
            console.stdout_is_tty &= world.env("NO_COLOR").is_none() && !is_dumb;
        }
        Color::Always => console.stdout_is_tty = true,
        Color::Never => console.stdout_is_tty = false,
    }
    let columns = world.env("COLUMNS").and_then(|it| it.parse().ok()).filter(|it| *it > 0);
    console.columns = columns.or(console.columns);
}

/// Whether the help of the program is shown, and not that of a command.
fn is_help_of_program(error: &clap::Error, line: ArgumentLine<'_>) -> bool {
    let shows_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    let program = Arguments::command();
    shows_help && line.command().is_none_or(|it| program.find_subcommand(it).is_none())
}

/// A hook whose command line is wrong must not block: exit code 2 means "block" to its caller.
fn usage(
    error: &clap::Error,
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &[OsString],
) -> u8 {
    set_terminal(world, console, Color::Auto);
    let arguments = line::grouped(arguments);
    let line = ArgumentLine::new(&arguments);
    let text = match is_help_of_program(error, line) {
        true => help_groups::short(console.screen()),
        false => error.render().to_string(),
    };
    if !error.use_stderr() {
        console.print(&text);
        return EXIT_OK;
    }
    if line.is_hook_call() || (!names_a_command(line) && console.stdin_is_json(world)) {
        let ends = |it: &str| it.starts_with("Usage") || it.starts_with("For more");
        let wrong = text.lines().take_while(|it| !ends(it)).map(str::trim);
        let wrong = wrong.collect::<Vec<_>>().join(" ");
        let wrong = wrong.trim().trim_start_matches("error: ");
        let event = line.option("--hook").filter(|it| EventKind::find(it).is_some());
        let event = event.unwrap_or_else(|| "stop".to_owned());
        let notice = format!(
            "policyd: {wrong}; the hook did nothing. Its command line should be `policyd eval --hook {event}`."
        );
        let caller = line.caller();
        let mut response = HookResponse::not_analyzed(caller, "its hook line is invalid");
        response.notice = Some(notice);
        console.print(&hook::speak(caller, &response, None).0);
        return EXIT_OK;
    }
    console.eprint_as_is(&text);
    console.eprint_as_is(&help_after(error, line));
    EXIT_USAGE
}

/// Returns what to type instead, after an error of the arguments. Empty if the error says it.
fn help_after(error: &clap::Error, line: ArgumentLine<'_>) -> String {
    let is_unknown = error.kind() == ErrorKind::InvalidSubcommand;
    let named = line.command().filter(|it| is_command(it));
    let help = match named {
        // The word after a command was meant for one of its own commands.
        Some(command) if is_unknown => {
            Some(format!("help: `policyd {command} --help` lists the commands of `{command}`"))
        }
        Some("check") if error.kind() == ErrorKind::UnknownArgument => check::hint_at_words(line),
        None if is_unknown => check::hint_at_words(line),
        Some(_) | None => None,
    };
    help.map_or_else(String::new, |it| format!("{it}\n"))
}

/// Whether a word is the name of a command.
fn is_command(word: &str) -> bool {
    Arguments::command().get_subcommands().any(|it| it.get_name() == word)
}

/// Whether the arguments name a command, or nearly one that is not `eval`: then a person or a script
/// called.
fn names_a_command(line: ArgumentLine<'_>) -> bool {
    let program = Arguments::command();
    let known: Vec<&str> = program.get_subcommands().map(clap::Command::get_name).collect();
    let first = line.command();
    if first.is_some_and(|it| known.contains(&it)) {
        return true;
    }
    // `policyd stop` is a hook line without `eval --hook`, although the command `top` has a similar name.
    if first.is_some_and(|it| EventKind::find(it).is_some()) || line.names_hook() {
        return false;
    }
    let is_command = |it: &str| it != "eval" && known.contains(&it);
    let near = first.and_then(|it| nearest(it, &known));
    let is_named = |it: &OsString| it.to_str().is_some_and(is_command);
    line.words().iter().any(is_named) || near.is_some_and(is_command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_eval::breaker::AllowCall;

    #[test]
    fn the_plain_question_means_what_the_full_reader_says() {
        let plain = |words: &[&str]| {
            let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
            let read = line::parse(&arguments).map(|it| format!("{:?}", it.command));
            let wrapped = |call: AllowCall| {
                let format = if call.json { ListFormat::Json } else { ListFormat::Text };
                let action = BreakerAction::Allow { key: call.key, format };
                format!("{:?}", Command::Breaker(arguments::BreakerArguments { action }))
            };
            let short = ArgumentLine::new(&arguments).plain_allow_call().map(wrapped);
            assert!(short.is_none() || short == read.ok(), "{words:?}");
            short.is_some()
        };
        assert!(plain(&["policyd", "breaker", "allow", "api/claude"]));
        assert!(!plain(&["policyd", "breaker", "allow", "--help"]));
        assert!(!plain(&["policyd", "breaker", "allow"]));
        assert!(!plain(&["policyd", "breaker", "show", "api/claude"]));
        assert!(plain(&["policyd", "breaker", "allow", "api/claude", "--format", "json"]));
        assert!(!plain(&["policyd", "breaker", "allow", "api/claude", "--format", "text"]));
        assert!(!plain(&["policyd", "breaker", "allow", "--format", "json", "api/claude"]));
    }

    #[test]
    fn a_directory_is_read_wherever_it_stands() {
        for line in [
            "policyd -C x lint",
            "policyd lint -C x",
            "policyd lint -Cx",
            "policyd state list -C x",
            "policyd --color never state -C x list",
            "policyd eval --hook stop -C x",
        ] {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            assert_eq!(directory(&words), Some(PathBuf::from("x")), "{line}");
        }
    }

    #[test]
    fn the_plain_hook_call_means_what_the_full_reader_says() {
        let plain = |words: &[&str]| {
            let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
            let read = match line::parse(&arguments).map(|it| it.command) {
                Ok(Command::Eval(it)) => Some(it.into()),
                _ => None,
            };
            let short = ArgumentLine::new(&arguments).plain_hook_call();
            assert!(short.is_none() || short == read, "{words:?}");
            short.is_some()
        };
        assert!(plain(&["policyd", "eval", "--hook", "stop"]));
        assert!(plain(&["policyd", "eval", "--hook", "no such event"]));
        assert!(plain(&["policyd", "eval", "--hook", "BeforeTool", "--harness", "gemini"]));
        assert!(plain(&["policyd", "eval", "--hook", "stop", "--input", "a b", "--dry-run"]));
        assert!(plain(&["policyd", "eval", "--hook", "stop", "--dry-run", "--harness", "codex"]));
        for others in [
            &["policyd", "eval", "--hook", "--help"] as &[&str],
            &["policyd", "eval", "--hook"],
            &["policyd", "eval", "--hook", "stop", "--harness", "--help"],
            &["policyd", "eval", "--hook", "stop", "--dry-run", "--dry-run"],
            &["policyd", "eval", "--hook", "stop", "--input"],
            &["policyd", "eval", "--hook", "stop", "--input", ""],
            &["policyd", "eval", "--hook", "stop", "--input", "a", "--input", "b"],
            &["policyd", "eval", "--hook", "stop", "--harness", "a", "--harness", "b"],
            &["policyd", "eval", "--hook", "stop", "--policies", "a"],
            &["policyd", "eval", "--hook=stop", "--explain"],
            &["policyd", "lint", "--hook", "stop"],
        ] {
            assert!(!plain(others), "{others:?}");
        }
    }
}
