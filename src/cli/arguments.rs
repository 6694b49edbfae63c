//! What the command line may say: one struct for each command.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use super::EXIT_CODES;
pub(super) use checking::{
    FailLevel, FixLevel, LintArguments, LintFormat, ProfileName, TestArguments, TestFormat, Update,
};
pub(super) use context::{ContextAction, ContextArguments};
pub(super) use queue::{
    DlqAction, DlqAdd, DlqArguments, DlqRetry, EscalationAction, EscalationArguments,
    EscalationOpen, ListPlace,
};
pub(super) use resilience::{
    BreakerAction, BreakerArguments, CallResult, Failure, FailureAction, FailureArguments,
    RationalizationAction, RationalizationArguments, RecordArguments,
};
pub(super) use run::{RunArguments, RunFormat};
pub(super) use setup::{
    DoctorArguments, InstallArguments, OnFailure, Scope, TrustArguments, UninstallArguments,
};
pub(super) use signals::{DecideArguments, SignalAction, SignalArguments};

mod checking;
mod context;
mod queue;
mod resilience;
mod run;
mod setup;
mod signals;

/// The exit codes, for people.
fn exit_codes() -> String {
    let codes = EXIT_CODES.map(|(code, meaning)| format!("{code} {meaning}"));
    format!("Exit codes: {}.\n`eval` in hook format always exits with 0.", codes.join("; "))
}

#[derive(Debug, Parser)]
#[command(
    name = "policyd",
    version,
    about = "Decides what a coding agent may do, and whether it may stop",
    after_help = exit_codes()
)]
pub(super) struct Arguments {
    /// Colours: `auto` is where the output is a terminal that knows them and NO_COLOR is not set
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    pub(super) color: Color,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Judge one hook event: event JSON on stdin, decision JSON on stdout
    Eval(EvalArguments),
    /// Start a pack of your own: a rule, its case, and the built-in pack for reading
    Init(InitArguments),
    /// Check packs: everything that may be wrong with them, with its place and its cure
    Lint(LintArguments),
    /// Run the cases of a pack: what it should answer in a situation
    Test(TestArguments),
    /// List the active rules, their mode and where they are written
    Rules(PackArguments),
    /// Show the facts of a session as rules see them, or the table of all facts
    Facts(FactsArguments),
    /// Evaluate one expression on a session's facts, and show the value of each part
    Try(TryArguments),
    /// Switch the gate off for a while, in this project or in one session; it ends by itself
    Pause(PauseArguments),
    /// End a pause
    Resume(ResumeArguments),
    /// Disable policyd in this project until `policyd enable`
    Disable(DisableArguments),
    /// Enable policyd again in this project
    Enable,
    /// Judge recorded sessions with the current pack: what would have fired, where, how often
    Replay(ReplayArguments),
    /// Show, verify or reset the state of a session
    State(StateArguments),
    /// List what was decided, newest last: what happened overnight
    Log(LogArguments),
    /// Show why a decision was taken: what was amiss, and the values behind it
    Explain(ExplainArguments),
    /// Read the diagnostic log of the sessions
    Diag(DiagArguments),
    /// Ask, feed, explain, open and reset the circuit breakers of the project
    Breaker(BreakerArguments),
    /// Tasks that failed again and again: take in, list, review, put back, give up
    Dlq(DlqArguments),
    /// What humans are asked to decide, and their answers
    Escalation(EscalationArguments),
    /// Let an agent's command work on a goal, turn after turn, until it is done or cannot go on
    Run(RunArguments),
    /// Say what a failure is, how long to wait, and what to do after it
    Failure(FailureArguments),
    /// Create, list, consume and answer signals between processes
    Signal(SignalArguments),
    /// How full the context of a session is, and what is carried over from it
    Context(ContextArguments),
    /// Ask a decision table: the answer, and why
    Decide(DecideArguments),
    /// Look for excuses and red flags in a text
    Rationalization(RationalizationArguments),
    /// Put hook lines into the settings of clients
    Install(InstallArguments),
    /// Take them out again
    Uninstall(UninstallArguments),
    /// Prove that the installation works
    Doctor(DoctorArguments),
    /// Trust the pack of a repository, as it is now; or list, or revoke
    Trust(TrustArguments),
    /// Print the JSON Schema of a file kind
    Schema(SchemaArguments),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the man page of the program, or of one of its commands
    Man {
        /// The command, such as `lint` or `breaker allow`
        command: Vec<String>,
    },
}

/// When output is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// The caller's protocol; exit code 0, whatever happens
    Hook,
    /// The full report
    Json,
    /// For people
    Text,
}

#[derive(Debug, clap::Args)]
pub(super) struct EvalArguments {
    /// The event: stop, subagent-stop, pre-tool-use, …
    #[arg(long, value_name = "EVENT")]
    pub(super) hook: String,
    /// The client that calls; told from the payload where it is left out
    #[arg(long, value_name = "NAME")]
    pub(super) harness: Option<String>,
    /// Form of the answer
    #[arg(long, value_enum, default_value = "hook")]
    pub(super) format: Format,
    /// Folder of the pack
    #[arg(long, value_name = "DIR")]
    pub(super) policies: Option<PathBuf>,
    /// Read the event from a file instead of stdin
    #[arg(long, value_name = "FILE")]
    pub(super) input: Option<PathBuf>,
    /// Write nothing, move no state
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Show the value of each part of each condition
    #[arg(long)]
    pub(super) explain: bool,
    /// Judge as of this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub(super) now: Option<String>,
}

/// Form of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ListFormat {
    /// For people
    Text,
    /// One line each
    Compact,
    /// For programs
    Json,
}

#[derive(Debug, clap::Args)]
pub(super) struct InitArguments {
    /// Folder of the pack; `.policyd/policies` of the project by default
    #[arg(value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
    /// Show what changed in the built-in pack since its copy was made, and renew the copy
    #[arg(long)]
    pub(super) upgrade: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct PackArguments {
    /// Folder of the pack; the project's own by default
    #[arg(long, value_name = "DIR")]
    pub(super) policies: Option<PathBuf>,
    /// Form of the list
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: ListFormat,
}

#[derive(Debug, clap::Args)]
pub(super) struct FactsArguments {
    /// A transcript, or the beginning of a session's id; without one, the table of facts and
    /// functions is printed
    pub(super) session: Option<String>,
    /// It is a subagent's own transcript
    #[arg(long)]
    pub(super) subagent: bool,
    /// Folder of the pack
    #[arg(long, value_name = "DIR")]
    pub(super) policies: Option<PathBuf>,
    /// Form of the list; `json` holds the whole fold, too
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: ListFormat,
}

/// Form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

#[derive(Debug, clap::Args)]
pub(super) struct ReplayArguments {
    /// Transcripts, or folders of them, such as ~/.claude/projects
    #[arg(required = true, value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    /// Folder of the pack; the project's own by default
    #[arg(long, value_name = "DIR")]
    pub(super) policies: Option<PathBuf>,
    /// Show what this pack would change
    #[arg(long, value_name = "DIR")]
    pub(super) compare: Option<PathBuf>,
    /// End with 1 where the other pack blocks a stop, or refuses or asks about a tool call, that is let through now
    #[arg(long, requires = "compare")]
    pub(super) fail_on_new_blocks: bool,
    /// Show one rule only
    #[arg(long, value_name = "ID")]
    pub(super) rule: Option<String>,
    /// Examples shown of each kind
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(super) examples: usize,
    /// Stops not older than this: `12h`, `3d`
    #[arg(long, value_name = "DURATION")]
    pub(super) since: Option<String>,
    /// Threads; as many as the machine has cores by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) jobs: Option<u16>,
    /// Form of the report
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: ReportFormat,
}

#[derive(Debug, clap::Args)]
pub(super) struct StateArguments {
    #[command(subcommand)]
    pub(super) action: StateAction,
}

#[derive(Debug, Subcommand)]
pub(super) enum StateAction {
    /// Print the state of a session as JSON
    Show {
        /// The session id
        session: String,
    },
    /// Check the state of a session; `code` is the seed's error code
    Verify {
        /// The session id
        session: String,
        /// Form of the answer
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Forget a session: its counters return to zero
    Reset {
        /// The session id
        session: String,
    },
    /// List the sessions, newest first
    List,
}

#[derive(Debug, clap::Args)]
pub(super) struct LogArguments {
    /// Sessions whose id starts with this
    #[arg(long, value_name = "ID")]
    pub(super) session: Option<String>,
    /// Not older than this: `12h`, `3d`
    #[arg(long, value_name = "DURATION")]
    pub(super) since: Option<String>,
    /// Only blocks, releases and problems
    #[arg(long)]
    pub(super) notable: bool,
    /// Counts instead of entries: decisions, checks, preferences
    #[arg(long)]
    pub(super) summary: bool,
    /// Entries at most
    #[arg(long, short = 'n', default_value_t = 50)]
    pub(super) lines: usize,
    /// Form of the list
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: ListFormat,
}

#[derive(Debug, clap::Args)]
pub(super) struct TryArguments {
    /// The expression, such as `files.count > 3`; standard input without one
    #[arg(allow_hyphen_values = true)]
    pub(super) expression: Option<String>,
    /// A session: its transcript, or the beginning of its id; an empty one by default
    #[arg(long, value_name = "SESSION")]
    pub(super) session: Option<String>,
    /// Folder of the pack
    #[arg(long, value_name = "DIR")]
    pub(super) policies: Option<PathBuf>,
    /// Form of the answer; `compact` is the value alone
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: ListFormat,
}

#[derive(Debug, clap::Args)]
pub(super) struct PauseArguments {
    /// How long: `30m`, `2h`, `1h30m`, at most seven days
    #[arg(default_value = "30m")]
    pub(super) duration: String,
    /// Why; the user is told at every stop
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(super) reason: String,
    /// Only in the session whose id starts with this
    #[arg(long, value_name = "ID")]
    pub(super) session: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct DisableArguments {
    /// The reason, shown at every session start and stop
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(super) reason: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct ResumeArguments {
    /// Only in the session whose id starts with this; everywhere by default
    #[arg(long, value_name = "ID")]
    pub(super) session: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct ExplainArguments {
    /// Id of the decision, as `policyd log` shows it; the last evaluated one by default
    pub(super) id: Option<String>,
    /// The last evaluated decision, which is the default
    #[arg(long)]
    pub(super) last: bool,
    /// Of the sessions whose id starts with this
    #[arg(long, value_name = "ID")]
    pub(super) session: Option<String>,
    /// Show every rule with its values, not only what was amiss
    #[arg(long)]
    pub(super) all: bool,
    /// Folder of the pack
    #[arg(long, value_name = "DIR")]
    pub(super) policies: Option<PathBuf>,
    /// Form of the explanation
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: ListFormat,
}

#[derive(Debug, clap::Args)]
pub(super) struct DiagArguments {
    #[command(subcommand)]
    pub(super) action: DiagAction,
}

#[derive(Debug, Subcommand)]
pub(super) enum DiagAction {
    /// Entries that report a failure
    Failures(DiagFilter),
    /// How often saves were retried
    Retries(DiagFilter),
    /// Corrupt state files that were found
    Corruption(DiagFilter),
    /// The last entries
    Tail(DiagFilter),
}

#[derive(Debug, Clone, clap::Args)]
pub(super) struct DiagFilter {
    /// One session only
    #[arg(long)]
    pub(super) session: Option<String>,
    /// Entries at most
    #[arg(long, short = 'n', default_value_t = 50)]
    pub(super) lines: usize,
}

#[derive(Debug, clap::Args)]
pub(super) struct SchemaArguments {
    /// File kind, such as `considerations`; without one, the names are listed
    pub(super) name: Option<String>,
}
