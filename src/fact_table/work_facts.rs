//! Facts about what the agent did: tools, subagents, and commands.

use std::collections::BTreeSet;
use std::rc::Rc;

use rhai::Dynamic;

use super::FactError;
use super::ast::{Expr, ExprKind};
use super::context::{ContextPart, Object};
use super::dynamic::{count, text_argument, texts};
use super::invariant::{Invariant, Is};
use super::params::{COMMAND, NAME};
use super::paths::Fact;
use super::row::{FactRow, field, method, number};
use super::types::{Evidence::Structure, PackName, Subject, TextForm, Type, Unit};
use policyd_facts::pattern::CommandPattern;
use policyd_facts::{CommandOutcome, CommandVerdict, KindFacts, LatestCall, ShellCommand};

/// Rows of `tools`, `agents`, `commands` and what they lead to.
pub(super) const ROWS: &[FactRow] = &[
    number(
        Subject::Tools,
        "total",
        Unit::Count,
        Structure,
        ["Tool calls.", "tools.total == 0"],
        |it, _| Ok(count(it.context().facts.tools.total)),
    ),
    number(
        Subject::Tools,
        "failed",
        Unit::Count,
        Structure,
        ["Tool calls whose result was an error.", "tools.failed > 3"],
        |it, _| Ok(count(it.context().facts.tools.failed)),
    ),
    number(
        Subject::Tools,
        "denied",
        Unit::Count,
        Structure,
        ["Tool calls that were refused.", "tools.denied > 0"],
        |it, _| Ok(count(it.context().facts.tools.denied)),
    ),
    number(
        Subject::Tools,
        "unseen",
        Unit::Count,
        Structure,
        [
            "Tool calls that hooks saw and the transcript does not show; 0 where hooks do not report calls.",
            "tools.unseen == 0",
        ],
        |it, _| Ok(count(it.context().facts.tools.unseen)),
    ),
    field(
        Subject::Tools,
        "last_name",
        Type::Text,
        Structure,
        ["Name of the newest tool call, else empty.", "tools.last_name == \"Bash\""],
        |it, _| Ok(it.context().facts.tools.last_name.clone().into()),
    )
    .of_ids(PackName::Tool),
    number(
        Subject::Tools,
        "last_at",
        Unit::Position,
        Structure,
        ["Position of the newest tool call, 0 when none.", "tools.last_at > files.last_at"],
        |it, _| Ok(count(it.context().facts.tools.last_seq)),
    ),
    method(
        Subject::Tools,
        "count",
        NAME,
        (Type::Int, Structure),
        ["Calls of one tool.", "tools.count(\"Read\") > 1"],
        |it, args| {
            let name = text_argument(args, 0)?;
            Ok(count(it.context().facts.tools.by_name.get(name.as_str()).copied().unwrap_or(0)))
        },
    )
    .of_ids(PackName::Tool)
    .of_unit(Unit::Count)
    .always(&[Invariant::AtMost("total")]),
    method(
        Subject::Tools,
        "last",
        NAME,
        (Subject::ToolCall.as_type(), Structure),
        ["The newest call of one tool, written out.", "tools.last(\"WebFetch\").at > 0"],
        |it, args| {
            let (facts, name) = (&it.context().facts, text_argument(args, 0)?);
            if !it.context().lens.lens().kept_calls.contains(name.as_str()) {
                return Err("the argument of `tools.last` must be written out".into());
            }
            let call = facts.tools.latest.get(name.as_str());
            Ok(it.part(ContextPart::ToolCall(call.map(|it| Rc::new(it.clone())))))
        },
    )
    .written_out()
    .of_ids(PackName::Tool),
    method(
        Subject::Agents,
        "ran",
        NAME,
        (Type::Bool, Structure),
        [
            "Whether a subagent of a type ran, and did not fail.",
            "agents.ran(\"security-reviewer\")",
        ],
        |it, args| {
            let name = text_argument(args, 0)?;
            let call = it.context().facts.agents.get(name.as_str());
            Ok(call.is_some_and(|it| it.outcome == CommandOutcome::Succeeded).into())
        },
    ),
    method(
        Subject::Agents,
        "last",
        NAME,
        (Subject::ToolCall.as_type(), Structure),
        [
            "The newest call that started a subagent of a type.",
            "agents.last(\"security-reviewer\").at > files.last_at",
        ],
        |it, args| {
            let call = it.context().facts.agents.get(text_argument(args, 0)?.as_str());
            Ok(it.part(ContextPart::ToolCall(call.map(|it| Rc::new(it.clone())))))
        },
    ),
    field(
        Subject::Agents,
        "types",
        Type::Texts,
        Structure,
        ["Types of the subagents that the agent started.", "agents.types.len() > 0"],
        |it, _| Ok(texts(it.context().facts.agents.keys().cloned())),
    ),
    field(
        Subject::ToolCall,
        "exists",
        Type::Bool,
        Structure,
        ["Whether there is one.", "agents.last(\"security-reviewer\").exists"],
        |it, _| Ok(tool_call(it).is_some().into()),
    )
    .always(&[
        Invariant::Either(Is::True, "at", Is::Zero),
        Invariant::Either(Is::False, "at", Is::Positive),
        Invariant::Either(Is::True, "outcome", Is::Empty),
    ]),
    number(
        Subject::ToolCall,
        "at",
        Unit::Position,
        Structure,
        [
            "Its position in the transcript, 0 when none.",
            "agents.last(\"security-reviewer\").at > files.last_at",
        ],
        |it, _| Ok(count(tool_call(it).map_or(0, |it| it.seq))),
    ),
    field(
        Subject::ToolCall,
        "outcome",
        Type::Text,
        Structure,
        ["How it ended.", "agents.last(\"security-reviewer\").outcome == \"succeeded\""],
        |it, _| Ok(tool_call(it).map_or("", |it| outcome_name(it.outcome)).into()),
    )
    .with_values(OUTCOMES),
    method(
        Subject::ToolCall,
        "input",
        &[(Type::Text, PackName::InputField.as_domain())],
        (Type::Text, Structure),
        [
            "A field of its input, else empty. Only the first 256 bytes are kept.",
            "tools.last(\"Skill\").input(\"skill\") == \"review\"",
        ],
        |it, args| {
            let name = text_argument(args, 0)?;
            let text = tool_call(it).and_then(|it| it.input.get(name.as_str()));
            Ok(text.cloned().unwrap_or_default().into())
        },
    ),
    method(
        Subject::Tools,
        "skill_at",
        NAME,
        (Type::Int, Structure),
        [
            "Position of the last use of a skill, 0 when none.",
            "tools.skill_at(\"review\") > files.last_at",
        ],
        |it, args| {
            let name = text_argument(args, 0)?;
            Ok(count(it.context().facts.skills.get(name.as_str()).copied().unwrap_or(0)))
        },
    )
    .of_unit(Unit::Position),
    method(
        Subject::Tools,
        "skill_used",
        NAME,
        (Type::Bool, Structure),
        ["Whether a skill was invoked.", "tools.skill_used(\"review\")"],
        |it, args| {
            Ok(it.context().facts.skills.contains_key(text_argument(args, 0)?.as_str()).into())
        },
    ),
    field(
        Subject::Tools,
        "skills",
        Type::Texts,
        Structure,
        ["Names of the skills that were invoked.", "tools.skills.len() == 0"],
        |it, _| Ok(texts(it.context().facts.skills.keys().cloned())),
    ),
    field(
        Subject::Tools,
        "skills_missed",
        Type::Texts,
        Structure,
        [
            "Names of the skills that a human asked for and the agent did not invoke.",
            "tools.skills_missed.len() == 0",
        ],
        |it, _| Ok(texts(skills_missed(&it.context().facts))),
    ),
    number(
        Subject::Commands,
        "total",
        Unit::Count,
        Structure,
        ["Shell commands.", "commands.total > 0"],
        |it, _| Ok(count(it.context().facts.commands.total)),
    ),
    field(
        Subject::Commands,
        "recent",
        Type::Texts,
        Structure,
        ["The last commands with what they came to, oldest first.", "commands.recent.len() > 20"],
        |it, _| {
            let recent = &it.context().facts.commands.recent;
            Ok(texts(recent.iter().map(|it| format!("{} ({})", it.text, came_to(it)))))
        },
    ),
    field(
        Subject::Commands,
        "after_edit",
        Type::Texts,
        Structure,
        [
            "The last commands after the last edit with their results, oldest first, at most five.",
            "commands.after_edit.len() == 0",
        ],
        |it, _| {
            let facts = &it.context().facts;
            let edited = facts.files.iter().map(|it| it.last_seq).max().unwrap_or(0);
            let after = facts.commands.recent.iter().filter(|it| it.seq > edited);
            let after: Vec<String> =
                after.map(|it| format!("`{}` ({})", it.text, result(it))).collect();
            let older = after.len().saturating_sub(COMMANDS_SHOWN_MAX);
            Ok(texts(after.into_iter().skip(older)))
        },
    ),
    field(
        Subject::Commands,
        "unrecognized",
        Subject::Command.as_type(),
        Structure,
        [
            "The newest command that ended without an error and has a program in no command kind.",
            "commands.unrecognized.at > files.last_at",
        ],
        |it, _| {
            let unknown =
                |it: &&Rc<ShellCommand>| it.unrecognized && it.outcome == CommandOutcome::Succeeded;
            let newest = it.context().facts.commands.recent.iter().rev().find(unknown);
            Ok(it.part(ContextPart::Command(newest.cloned())))
        },
    ),
    method(
        Subject::Commands,
        "ran",
        COMMAND,
        (Type::Bool, Structure),
        ["Whether a program ran, by command pattern.", "commands.ran(\"git push\")"],
        |it, args| Ok(last_command(it, args)?.is_some().into()),
    )
    .of_ids(PackName::Program)
    .always(&[Invariant::Either(Is::False, "total", Is::Positive)]),
    method(
        Subject::Commands,
        "last",
        COMMAND,
        (Subject::Command.as_type(), Structure),
        ["The newest command that matches.", "commands.last(\"git commit\").exists"],
        |it, args| Ok(it.part(ContextPart::Command(last_command(it, args)?))),
    )
    .of_ids(PackName::Program),
    method(
        Subject::Commands,
        "kind",
        &[(Type::Text, PackName::CommandKind.as_domain())],
        (Subject::CommandKind.as_type(), Structure),
        ["All commands of a kind.", "commands.kind(\"test\").count > 0"],
        |it, args| {
            let name = text_argument(args, 0)?;
            let kind = it.context().facts.commands.by_kind.get(name.as_str()).cloned();
            Ok(it.part(ContextPart::CommandKind(kind)))
        },
    ),
    number(
        Subject::CommandKind,
        "count",
        Unit::Count,
        Structure,
        ["How many ran.", "commands.kind(\"test\").count > 0"],
        |it, _| Ok(count(of_kind(it, |it| it.count))),
    )
    .always(&[Invariant::AtMostOfWhole("total")]),
    field(
        Subject::CommandKind,
        "passed",
        Type::Bool,
        Structure,
        ["Whether the newest that told its result passed.", "commands.kind(\"test\").passed"],
        |it, _| Ok(of_kind(it, |it| it.last_passed_seq > it.last_failed_seq).into()),
    )
    .always(&[
        Invariant::Either(Is::False, "failed", Is::False),
        Invariant::Either(Is::False, "count", Is::Positive),
        Invariant::Either(Is::False, "last_passed_at", Is::Positive),
    ]),
    field(
        Subject::CommandKind,
        "failed",
        Type::Bool,
        Structure,
        ["Whether the newest that told its result failed.", "commands.kind(\"test\").failed"],
        |it, _| Ok(of_kind(it, |it| it.last_failed_seq > it.last_passed_seq).into()),
    )
    .always(&[Invariant::Either(Is::False, "count", Is::Positive)]),
    field(
        Subject::CommandKind,
        "pending",
        Type::Bool,
        Structure,
        [
            "Whether the newest one has not ended: its result is missing, or it still runs in the background.",
            "!commands.kind(\"test\").pending",
        ],
        |it, _| Ok(is_pending(it).into()),
    ),
    number(
        Subject::CommandKind,
        "last_passed_at",
        Unit::Position,
        Structure,
        [
            "Position of the last one that passed, 0 when none.",
            "commands.kind(\"test\").last_passed_at > files.last_at",
        ],
        |it, _| Ok(count(of_kind(it, |it| it.last_passed_seq))),
    ),
    number(
        Subject::CommandKind,
        "denied_at",
        Unit::Position,
        Structure,
        [
            "Position of the last one that was denied, 0 when none.",
            "commands.kind(\"test\").denied_at > files.last_at",
        ],
        |it, _| Ok(count(of_kind(it, |it| it.last_denied_seq))),
    ),
    field(
        Subject::CommandKind,
        "failures",
        Type::Texts,
        Structure,
        [
            "Failures of the last one that failed: the lines that name failed tests, otherwise its last line.",
            "commands.kind(\"test\").failures.len() > 3",
        ],
        |it, _| Ok(texts(of_kind(it, |it| it.failures.clone()))),
    ),
    field(
        Subject::CommandKind,
        "new_failures",
        Type::Texts,
        Structure,
        [
            "Those failures that no command before the first edit had.",
            "commands.kind(\"test\").new_failures.len() == 0",
        ],
        |it, _| Ok(texts(of_kind(it, new_failures))),
    ),
    field(
        Subject::CommandKind,
        "last",
        Subject::Command.as_type(),
        Structure,
        ["The newest one.", "commands.kind(\"test\").last.exists"],
        |it, _| {
            let last = of_kind(it, |it| (it.count > 0).then(|| Rc::clone(&it.last)));
            Ok(it.part(ContextPart::Command(last)))
        },
    ),
    field(
        Subject::Command,
        "exists",
        Type::Bool,
        Structure,
        ["Whether there is one.", "commands.last(\"git push\").exists"],
        |it, _| Ok(command(it).is_some().into()),
    )
    .always(&[
        Invariant::Either(Is::True, "text", Is::Empty),
        Invariant::Either(Is::True, "at", Is::Zero),
        Invariant::Either(Is::False, "at", Is::Positive),
    ]),
    field(
        Subject::Command,
        "text",
        Type::Text,
        Structure,
        ["The command line.", "commands.last(\"git push\").text.contains(\"--force\")"],
        |it, _| Ok(of_command(it, |it| it.text.clone().into())),
    ),
    number(
        Subject::Command,
        "at",
        Unit::Position,
        Structure,
        ["Its position in the transcript.", "commands.last(\"git push\").at > files.last_at"],
        |it, _| Ok(command(it).map_or_else(|| count(0), |it| count(it.seq))),
    ),
    field(
        Subject::Command,
        "outcome",
        Type::Text,
        Structure,
        ["How the call ended.", "commands.last(\"git push\").outcome == \"succeeded\""],
        |it, _| Ok(of_command(it, |it| outcome_name(it.outcome).into())),
    )
    .with_values(OUTCOMES),
    field(
        Subject::Command,
        "verdict",
        Type::Text,
        Structure,
        ["What it came to.", "commands.kind(\"test\").last.verdict == \"failed\""],
        |it, _| Ok(of_command(it, |it| verdict_name(it.verdict).into())),
    )
    .with_values(&["", "unknown", "empty", "unable", "passed", "failed"]),
    field(
        Subject::Command,
        "quote",
        Type::Text,
        Structure,
        [
            "The line of output that decided, else empty.",
            "commands.kind(\"test\").last.quote != \"\"",
        ],
        |it, _| Ok(of_command(it, |it| it.quote.clone().into())),
    ),
    field(
        Subject::Command,
        "output",
        Type::Text,
        Structure,
        ["End of its output.", "commands.last(\"git status\").output.contains(\"behind\")"],
        |it, _| Ok(of_command(it, |it| it.output.clone().into())),
    ),
    field(
        Subject::Command,
        "branch",
        Type::Text,
        Structure,
        ["Git branch when it ran, else empty.", "commands.last(\"git commit\").branch == \"main\""],
        |it, _| Ok(of_command(it, |it| it.branch.clone().into())),
    )
    .of_form(TextForm::Branch),
];

/// How a call can have ended; empty without a call.
const OUTCOMES: &[&str] = &["", "pending", "succeeded", "failed", "denied", "background"];

fn tool_call(it: &Object) -> Option<&LatestCall> {
    if let ContextPart::ToolCall(call) = &it.part { call.as_deref() } else { None }
}

/// Returns the tools of which an expression asks for the newest call.
#[must_use]
pub fn kept_calls(tree: &Expr) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    tree.visit(&mut |part| {
        let owners = part.fact().into_iter().flat_map(Fact::owners);
        let step = owners.filter(|it| it.is("tools.last")).find_map(Fact::last);
        if let Some([Expr { kind: ExprKind::Text(name), .. }]) = step.map(|it| it.arguments) {
            found.insert(name.clone());
        }
    });
    found
}

fn last_command(it: &Object, args: &[Dynamic]) -> Result<Option<Rc<ShellCommand>>, FactError> {
    let pattern = CommandPattern::parse(&text_argument(args, 0)?);
    let recent = it.context().facts.commands.recent.iter().rev();
    let mut ran = recent.filter(|it| it.outcome != CommandOutcome::Denied);
    Ok(ran.find(|command| command.ran(&pattern, &it.context().lens.lens().value_options)).cloned())
}

fn command(it: &Object) -> Option<&ShellCommand> {
    if let ContextPart::Command(command) = &it.part { command.as_deref() } else { None }
}

fn of_command(it: &Object, value: fn(&ShellCommand) -> Dynamic) -> Dynamic {
    command(it).map_or_else(|| String::new().into(), value)
}

fn of_kind<T: Default>(it: &Object, value: fn(&KindFacts) -> T) -> T {
    if let ContextPart::CommandKind(Some(kind)) = &it.part { value(kind) } else { T::default() }
}

/// Whether the newest command of a kind has not ended. What the client put into the background runs
/// as long as the client lists a running shell.
fn is_pending(it: &Object) -> bool {
    let event = &it.context().event;
    let shells = event.shells_in_background() > 0;
    !event.transcript_final
        && of_kind(it, |it| Some(it.last.outcome)).is_some_and(|outcome| match outcome {
            CommandOutcome::Pending => {
                let last = of_kind(it, |it| it.last.seq);
                it.context().facts.pending.iter().any(|call| call.seq == last)
            }
            CommandOutcome::Background => shells,
            CommandOutcome::Succeeded | CommandOutcome::Failed | CommandOutcome::Denied => false,
        })
}

/// Skills asked for that were not invoked; a plugin's name before the last colon does not count.
fn skills_missed(facts: &policyd_facts::Facts) -> Vec<String> {
    let plain = |name: &str| name.rsplit(':').next().unwrap_or(name).to_lowercase();
    let used: Vec<String> = facts.skills.keys().map(|it| plain(it)).collect();
    facts.skills_asked.iter().filter(|it| !used.contains(&plain(it))).cloned().collect()
}

/// Commands that a message shows.
const COMMANDS_SHOWN_MAX: usize = 5;

/// Returns how a command ended: its exit code if the client reports one.
fn result(command: &ShellCommand) -> String {
    match command.exit_code {
        Some(code) => format!("exit code {code}"),
        None => outcome_name(command.outcome).to_owned(),
    }
}

fn new_failures(kind: &KindFacts) -> Vec<String> {
    let known = &kind.failures_before;
    kind.failures.iter().filter(|it| !known.contains(*it)).cloned().collect()
}

fn came_to(command: &ShellCommand) -> String {
    match command.quote.as_str() {
        "" => outcome_name(command.outcome).to_owned(),
        quote => format!("{}: {quote}", outcome_name(command.outcome)),
    }
}

const fn outcome_name(outcome: CommandOutcome) -> &'static str {
    match outcome {
        CommandOutcome::Pending => "pending",
        CommandOutcome::Succeeded => "succeeded",
        CommandOutcome::Failed => "failed",
        CommandOutcome::Denied => "denied",
        CommandOutcome::Background => "background",
    }
}

const fn verdict_name(verdict: CommandVerdict) -> &'static str {
    match verdict {
        CommandVerdict::Unknown => "unknown",
        CommandVerdict::Empty => "empty",
        CommandVerdict::Unable => "unable",
        CommandVerdict::Passed => "passed",
        CommandVerdict::Failed => "failed",
    }
}
