//! Command-line arguments: one struct per command.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use super::exit_codes::exit_codes;
pub(super) use checking::{
    CheckArguments, FailLevel, FixLevel, LintArguments, LintFormat, LspArguments, TestArguments,
    TestFormat, Update,
};
pub(super) use context::{ContextAction, ContextArguments};
pub(super) use format::{ListFormat, ReportFormat};
pub(super) use inbox::{AnswerArguments, InboxAction, InboxArguments};
pub(super) use pack::{
    ManifestArguments, PackAction, PackArguments, PushArguments, UpdateArguments,
};
use policyd_eval::{EvalCall, EvalFormat};
pub(super) use queue::{
    DlqAction, DlqAdd, DlqArguments, DlqRetry, EscalationAction, EscalationArguments,
    EscalationOpen, QueueSelector,
};
pub(super) use report::{
    ExportAction, ExportArguments, ExportFormat, ExportTo, MorningFormatName, ReportArguments,
};
pub(super) use resilience::{
    BreakerAction, BreakerArguments, CallResult, FailureAction, FailureArguments, FailureOptions,
    RationalizationAction, RationalizationArguments, RecordArguments,
};
pub(super) use rule::{
    RuleAction, RuleArguments, RuleListArguments, RuleStateArguments, RulesArguments,
};
pub(super) use run::{RunArguments, RunFormat};
pub(super) use setup::{
    DoctorArguments, InstallArguments, OnFailure, Scope, TrustArguments, UninstallArguments,
};
pub(super) use signals::{DecideArguments, SignalAction, SignalArguments};
pub(super) use status::{DashboardArguments, MetricsArguments, StatusArguments, TopArguments};
pub(super) use store::{RejectedAction, StoreAction, StoreArguments, StorePlace};

mod checking;
mod context;
mod format;
mod inbox;
mod pack;
mod queue;
mod report;
mod resilience;
mod rule;
mod run;
mod setup;
mod signals;
mod status;
mod store;
mod values;

#[derive(Debug, Parser)]
#[command(
    name = "policyd",
    version,
    about = "Decide what a coding agent may do and whether it may stop",
    disable_help_subcommand = true,
    after_help = exit_codes()
)]
pub(super) struct Arguments {
    /// When to colorize the output: `auto`, `always` or `never`
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "auto",
        value_name = "WHEN",
        hide_possible_values = true,
        display_order = 900
    )]
    pub(super) color: Color,
    /// Run as if policyd was started in this directory
    #[arg(short = 'C', value_name = "DIR", global = true, display_order = 901)]
    pub(super) directory: Option<PathBuf>,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Evaluate one hook event: event JSON on stdin, decision JSON on stdout
    Eval(EvalArguments),
    /// Show what policyd decides about a command line or another tool call, without running it
    Check(CheckArguments),
    /// Create a custom pack: a check, a guard and their cases, or an example pack
    Init(InitArguments),
    /// Check packs for errors and likely mistakes, and suggest fixes
    Lint(LintArguments),
    /// Run the test cases of a pack
    Test(TestArguments),
    /// Serve editors on standard input and output: findings and fixes while a pack is written
    Lsp(LspArguments),
    /// List or search the active rules, or explain one rule with examples and how to soften it
    Rules(RulesArguments),
    /// Disable, soften, or enforce single rules, and list which rules were changed
    Rule(RuleArguments),
    /// Explain the facts and functions that rules can read, or show their values in a session
    Facts(FactsArguments),
    /// Evaluate an expression on the facts of a session and show the value of each part
    Try(TryArguments),
    /// Let a rule, or one exact tool call that was blocked, pass once or for a limited time
    Allow(AllowArguments),
    /// Teach policyd that a command belongs to a class, such as `test`
    Learn(LearnArguments),
    /// Suggest rules that answer the permission prompts which you always approved
    Suggest(SuggestArguments),
    /// Pause policyd for a limited time, in this project or in one session
    Pause(PauseArguments),
    /// End a pause
    Resume(ResumeArguments),
    /// Disable policyd in this project until `policyd enable`
    Disable(DisableArguments),
    /// Enable policyd in this project again
    Enable,
    /// Enforce rules that only observe: every rule, or single rules and guard sets
    Enforce(EnforceArguments),
    /// Evaluate recorded sessions with the current pack and report which rules fire
    Replay(ReplayArguments),
    /// Show what happened in projects: runs, stops, blocks, questions, context, and cost
    Status(StatusArguments),
    /// List what waits for you in all projects, questions first, and answer it
    Inbox(InboxArguments),
    /// Show all projects in the browser, and answer questions there
    Dashboard(DashboardArguments),
    /// Show all projects on the terminal, refreshed, with keys to sort, filter, and open
    Top(TopArguments),
    /// Print metrics of all projects for Prometheus
    Metrics(MetricsArguments),
    /// Report what ended, what waits, what it cost, and what was blocked, such as overnight
    Report(ReportArguments),
    /// Send logged decisions and ends of runs of all projects to a collector or a SIEM
    Export(ExportArguments),
    /// List logged decisions, newest last
    Log(LogArguments),
    /// Explain a decision: which rules fired and with which values
    Explain(ExplainArguments),
    /// Query, update, explain, open and reset the circuit breakers of the project
    Breaker(BreakerArguments),
    /// Manage the dead-letter queue: record, list, review, requeue and abandon failed tasks
    Dlq(DlqArguments),
    /// Manage escalations: requests for a human decision
    Escalation(EscalationArguments),
    /// Run an agent command turn by turn until the goal is complete or the run cannot continue
    Run(RunArguments),
    /// Manage the shared store: what several hosts share on one PostgreSQL server
    Store(StoreArguments),
    /// Create, list, consume and answer signals between processes
    Signal(SignalArguments),
    /// Show how full the context window of a session is, and summarize the session
    Context(ContextArguments),
    /// Add hooks to the settings of clients
    Install(InstallArguments),
    /// Remove the hooks from the settings of clients
    Uninstall(UninstallArguments),
    /// Check the installation and run the hook path on simulated machines
    Doctor(DoctorArguments),
    /// Trust the current content of a project's pack; list or revoke trust
    Trust(TrustArguments),
    /// Fetch, update, verify, and publish remote packs
    Pack(PackArguments),
    /// Print the JSON Schema of a file type
    Schema(SchemaArguments),
    /// Inspect sessions and diagnostic logs, and evaluate failures, decision tables, and texts
    Debug(DebugArguments),
    /// Print the help of a command or a page of the book; `help topics` lists the pages
    Help {
        /// Command, such as `breaker allow`, or topic, such as `guards`
        topic: Vec<String>,
    },
    /// Print shell completions
    Completions {
        /// Shell to print completions for
        shell: clap_complete::Shell,
    },
    /// Print the man page of policyd or of one of its commands
    Man {
        /// Command, such as `lint` or `breaker allow`; default: policyd itself
        command: Vec<String>,
    },
}

/// Arguments of `policyd debug`.
#[derive(Debug, clap::Args)]
pub(super) struct DebugArguments {
    #[command(subcommand)]
    pub(super) action: DebugAction,
}

/// Rarely used commands. `line::grouped` also accepts them without `debug`.
#[derive(Debug, Subcommand)]
pub(super) enum DebugAction {
    /// Show, verify or reset the state of a session
    State(StateArguments),
    /// Show the diagnostic logs of sessions
    Diag(DiagArguments),
    /// Classify a failure, compute the retry delay, and choose the recovery action
    Failure(FailureArguments),
    /// Evaluate a decision table and explain the result
    Decide(DecideArguments),
    /// Find rationalizations and red flags in a text
    Rationalization(RationalizationArguments),
}

/// When output is colorized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// Colorize on a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`
    Auto,
    /// Always colorize
    Always,
    /// Never colorize
    Never,
}

/// Output format of `policyd eval`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Response in the client's hook protocol; the exit code is always 0
    Hook,
    /// Full report as JSON
    Json,
    /// Human-readable text
    Text,
}

#[derive(Debug, clap::Args)]
pub(super) struct EvalArguments {
    /// Hook event, such as `stop`, `subagent-stop` or `pre-tool-use`
    #[arg(long, value_name = "EVENT")]
    pub(super) hook: String,
    /// Client that sends the event; default: detected from the payload
    #[arg(long, value_name = "NAME")]
    pub(super) harness: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "hook")]
    pub(super) format: Format,
    /// Pack directory; default: the pack of the project
    #[arg(long, value_name = "DIR")]
    pub(super) policies: Option<PathBuf>,
    /// Read the event from a file instead of standard input
    #[arg(long, value_name = "FILE")]
    pub(super) input: Option<PathBuf>,
    /// Dry run: write no files and do not change state
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Show the value of each part of each condition
    #[arg(long)]
    pub(super) explain: bool,
    /// Evaluate as of this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub(super) now: Option<String>,
}

impl From<EvalArguments> for EvalCall {
    fn from(arguments: EvalArguments) -> Self {
        let EvalArguments { hook, harness, format, policies, input, dry_run, explain, now } =
            arguments;
        let format = match format {
            Format::Hook => EvalFormat::Hook,
            Format::Json => EvalFormat::Json,
            Format::Text => EvalFormat::Text,
        };
        Self { hook, harness, format, policies, input, dry_run, explain, now }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct InitArguments {
    /// Pack directory; default: `.policyd/policies` of the project
    #[arg(value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
    /// Write an example pack of the cookbook; without a name: list the examples
    #[arg(long, value_name = "NAME", num_args = 0..=1, conflicts_with = "upgrade")]
    #[expect(clippy::option_option, reason = "clap: absent, without a value, with a value")]
    pub(super) example: Option<Option<String>>,
    /// List the example packs with one sentence each
    #[arg(long, conflicts_with_all = ["example", "upgrade"])]
    pub(super) list_examples: bool,
    /// Show the changes of the built-in pack since it was copied, and update the copy
    #[arg(long)]
    pub(super) upgrade: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct FactsArguments {
    /// Subject (`files`), fact (`files.count`), or word to search for; default: list the subjects
    #[arg(value_name = "SUBJECT|WORD", conflicts_with = "session")]
    pub(super) name: Option<String>,
    /// Show the values in this session: transcript file or session ID prefix
    #[arg(long, value_name = "SESSION")]
    pub(super) session: Option<String>,
    /// Treat the transcript as a subagent's
    #[arg(long, requires = "session")]
    pub(super) subagent: bool,
    /// Pack directory; default: the pack of the project
    #[arg(long, value_name = "DIR")]
    pub(super) policies: Option<PathBuf>,
    /// Output format; `json` includes all data derived from the transcript
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: ListFormat,
}

#[derive(Debug, clap::Args)]
pub(super) struct ReplayArguments {
    /// Transcript files or directories; default: summarize the recorded sessions of all clients
    #[arg(value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    /// Pack directory; default: the pack of the project
    #[arg(long, value_name = "DIR")]
    pub(super) policies: Option<PathBuf>,
    /// Also evaluate this pack and show the differences
    #[arg(long, value_name = "DIR")]
    pub(super) compare: Option<PathBuf>,
    /// Exit with 1 if the other pack is stricter: it blocks or asks where the current pack does not
    #[arg(long, requires = "compare")]
    pub(super) fail_on_new_blocks: bool,
    /// Show only this rule
    #[arg(long, value_name = "ID")]
    pub(super) rule: Option<String>,
    /// Number of examples to show for each result
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(super) examples: usize,
    /// Only stops within this duration before now, such as `12h` or `3d`; default without PATH: `7d`
    #[arg(long, value_name = "DURATION")]
    pub(super) since: Option<String>,
    /// Show the turn of an example of the summary, by its number
    #[arg(long, value_name = "N", conflicts_with_all = ["paths", "compare", "rule", "all_rules", "save_cases"])]
    pub(super) show: Option<usize>,
    /// Show the full report of every rule also without PATH
    #[arg(long)]
    pub(super) all_rules: bool,
    /// Write the examples of each rule that fired as test cases into this directory
    #[arg(long, value_name = "DIR")]
    pub(super) save_cases: Option<PathBuf>,
    /// Number of threads; default: number of CPU cores
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) jobs: Option<u16>,
    /// Output format
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
        /// Session ID
        session: String,
    },
    /// Verify the state of a session; `code` in the output is the error code of amplihack
    Verify {
        /// Session ID
        session: String,
        /// Output format
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Reset the state of a session: its counters restart at zero
    Reset {
        /// Session ID
        session: String,
    },
    /// List sessions, newest first
    List,
}

#[derive(Debug, clap::Args)]
pub(super) struct LogArguments {
    /// Only sessions whose ID starts with this prefix
    #[arg(long, value_name = "ID")]
    pub(super) session: Option<String>,
    /// Only entries within this duration before now, such as `12h` or `3d`
    #[arg(long, value_name = "DURATION")]
    pub(super) since: Option<String>,
    /// Entries of all projects in which policyd evaluated something
    #[arg(long)]
    pub(super) all: bool,
    /// Wait for new entries and print them
    #[arg(long, short = 'f', conflicts_with = "summary")]
    pub(super) follow: bool,
    /// Show only blocks, releases, problems, ends of runs, and what waits for a human
    #[arg(long)]
    pub(super) notable: bool,
    /// Show only what a rule would have blocked or asked, had it been enforced
    #[arg(long)]
    pub(super) would_block: bool,
    /// Show only the permission prompts that policyd answered in place of you
    #[arg(long)]
    pub(super) approved: bool,
    /// Show counts of decisions, checks and preferences instead of entries
    #[arg(long)]
    pub(super) summary: bool,
    /// Check that no line of the log was removed or changed, instead of showing entries
    #[arg(long, conflicts_with_all = ["summary", "follow", "session", "since", "notable", "would_block", "approved"])]
    pub(super) verify: bool,
    /// Maximum number of entries
    #[arg(long, short = 'n', default_value_t = 50)]
    pub(super) lines: usize,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: ListFormat,
}

#[derive(Debug, clap::Args)]
pub(super) struct TryArguments {
    /// Expression, such as `files.count > 3`; default: standard input
    #[arg(allow_hyphen_values = true)]
    pub(super) expression: Option<String>,
    /// Transcript file or session ID prefix; default: an empty session
    #[arg(long, value_name = "SESSION")]
    pub(super) session: Option<String>,
    /// Pack directory; default: the pack of the project
    #[arg(long, value_name = "DIR")]
    pub(super) policies: Option<PathBuf>,
    /// Output format; `compact` prints only the value
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: ListFormat,
}

#[derive(Debug, clap::Args)]
pub(super) struct AllowArguments {
    /// Ids of checks or guards
    #[arg(value_name = "RULE", required_unless_present_any = ["call", "deny", "waiting", "list", "revoke"])]
    pub(super) rules: Vec<String>,
    /// Only the next time that the rule would block or ask, within an hour (default)
    #[arg(long, conflicts_with = "duration")]
    pub(super) once: bool,
    /// For this duration, such as `10m`; at most 24 hours
    #[arg(long = "for", value_name = "DURATION")]
    pub(super) duration: Option<String>,
    /// Only in the session whose ID starts with this prefix
    #[arg(long, value_name = "ID")]
    pub(super) session: Option<String>,
    /// Let exactly the blocked call with this code pass once, within an hour
    #[arg(long, value_name = "CODE", conflicts_with_all = ["rules", "once", "duration", "session"])]
    pub(super) call: Option<String>,
    /// Refuse the call with this code, which was blocked on another host of the shared store
    #[arg(long, value_name = "CODE", conflicts_with_all = ["rules", "once", "duration", "session", "call"])]
    pub(super) deny: Option<String>,
    /// List the blocked calls of all hosts of the shared store that wait for an answer
    #[arg(long, conflicts_with_all = ["rules", "once", "duration", "session", "call", "deny"])]
    pub(super) waiting: bool,
    /// Output format of `--waiting`
    #[arg(long, value_enum, default_value = "text", requires = "waiting")]
    pub(super) format: ListFormat,
    /// List what is allowed in this project
    #[arg(long, conflicts_with_all = ["rules", "once", "duration", "session", "call"])]
    pub(super) list: bool,
    /// Revoke what is allowed, by rule or code
    #[arg(
        long,
        value_name = "RULE|CODE",
        conflicts_with_all = ["rules", "once", "duration", "session", "call", "list"]
    )]
    pub(super) revoke: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct LearnArguments {
    /// Command class of the vocabulary, such as `test`, `lint` or `build`
    #[arg(value_name = "CLASS")]
    pub(super) kind: String,
    /// The command as one argument, such as `bin/qualify`
    #[arg(value_name = "COMMAND")]
    pub(super) command: String,
}

#[derive(Debug, Subcommand)]
pub(super) enum SuggestAction {
    /// Add suggested rules to your own pack, for every project
    Accept {
        /// Ids of the rules
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct SuggestArguments {
    #[command(subcommand)]
    pub(super) action: Option<SuggestAction>,
    /// Only prompts within this duration before now, such as `12h` or `3d`
    #[arg(long, value_name = "DURATION", default_value = "30d", global = true)]
    pub(super) since: String,
    /// Prompts of all projects in which policyd evaluated something
    #[arg(long, global = true)]
    pub(super) all: bool,
    /// Number of prompts that you must have approved for a rule
    #[arg(long, value_name = "N", default_value = "3", global = true)]
    pub(super) min: std::num::NonZeroUsize,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: ReportFormat,
}

#[derive(Debug, clap::Args)]
pub(super) struct PauseArguments {
    /// Duration, such as `30m`, `2h` or `1h30m`; at most 7 days
    #[arg(default_value = "30m")]
    pub(super) duration: String,
    /// Reason, shown to the user at every stop
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(super) reason: String,
    /// Pause only the session whose ID starts with this prefix
    #[arg(long, value_name = "ID")]
    pub(super) session: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct DisableArguments {
    /// Reason, shown at every session start and stop
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(super) reason: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct EnforceArguments {
    /// Ids of checks or guards, or names of guard sets; default: every rule
    #[arg(value_name = "RULE_OR_SET")]
    pub(super) names: Vec<String>,
    /// Observe again instead: every rule, or those named that were enforced while the rest observes
    #[arg(long)]
    pub(super) observe: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ResumeArguments {
    /// Resume only the session whose ID starts with this prefix; default: all sessions
    #[arg(long, value_name = "ID")]
    pub(super) session: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct ExplainArguments {
    /// Decision ID as shown by `policyd log`; default: the last evaluated decision
    pub(super) id: Option<String>,
    /// Explain the last evaluated decision (default)
    #[arg(long)]
    pub(super) last: bool,
    /// Only sessions whose ID starts with this prefix
    #[arg(long, value_name = "ID")]
    pub(super) session: Option<String>,
    /// Show every rule with its values, not only those that fired
    #[arg(long)]
    pub(super) all: bool,
    /// Pack directory; default: the pack of the project
    #[arg(long, value_name = "DIR")]
    pub(super) policies: Option<PathBuf>,
    /// Output format
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
    /// List entries that report a failure
    Failures(DiagFilter),
    /// Show how often saves were retried
    Retries(DiagFilter),
    /// List corrupt state files
    Corruption(DiagFilter),
    /// Show the last entries
    Tail(DiagFilter),
}

#[derive(Debug, Clone, clap::Args)]
pub(super) struct DiagFilter {
    /// Show only this session
    #[arg(long)]
    pub(super) session: Option<String>,
    /// Maximum number of entries
    #[arg(long, short = 'n', default_value_t = 50)]
    pub(super) lines: usize,
}

#[derive(Debug, clap::Args)]
pub(super) struct SchemaArguments {
    /// File type, such as `considerations`; default: list the file types
    pub(super) name: Option<String>,
}
