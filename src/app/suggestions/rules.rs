//! Rules that approve what the user always approved: one for each command, with cases that prove it.

use std::collections::BTreeSet;

use crate::packs::rule_addition::{NewRule, quoted};
use policyd_facts::call::{Invocation, ShellText};
use policyd_policy::approval::ApprovalLevel;
use policyd_yaml::time::Timestamp;

/// Words of a command pattern beside the program.
const WORDS_MAX: usize = 4;
/// Separates arguments in a condition. An argument that contains it gets no rule.
const SEPARATOR: &str = "\u{241e}";
/// Characters of a word of a command pattern, beside letters and digits.
const PLAIN: &str = "._:@/+-";
/// Characters of a name in the id of a rule.
const ID_CHARS_MAX: usize = 48;

/// Which calls a rule approves.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApprovedCalls {
    /// A program with its subcommands, and any further arguments within the project.
    Command(Vec<String>),
    /// A program with exactly these arguments.
    Line(Vec<String>),
    /// A tool of a server, with any input.
    Tool(String),
}

impl ApprovedCalls {
    /// Returns the narrowest rule that covers these calls of one program. `None` if they have too little in common.
    pub fn of(programs: &[&Invocation]) -> Option<Self> {
        let lines: BTreeSet<Vec<String>> = programs.iter().filter_map(|it| line(it)).collect();
        if lines.len() < 2 {
            let only = lines
                .into_iter()
                .next()
                .filter(|_| programs.iter().all(|it| line(it).is_some()))?;
            let is_command = only.len() > 1 && only.len() == command(programs.first()?).len();
            return Some(if is_command { Self::Command(only) } else { Self::Line(only) });
        }
        let mut words = command(programs.first()?);
        for program in programs {
            let other = command(program);
            let common = words.iter().zip(&other).take_while(|(one, other)| one == other).count();
            words.truncate(common);
        }
        (words.len() > 1).then_some(Self::Command(words))
    }

    /// Returns whether a rule is about a program.
    pub fn has(&self, program: &Invocation) -> bool {
        match self {
            Self::Command(words) => command(program).starts_with(words),
            Self::Line(words) => line(program).as_ref() == Some(words),
            Self::Tool(_) => false,
        }
    }

    /// Returns the command or the tool, as the user reads it.
    pub fn text(&self) -> String {
        match self {
            Self::Command(words) | Self::Line(words) => words.join(" "),
            Self::Tool(name) => name.clone(),
        }
    }
}

/// Returns the words of a program, up to the first one that is not a plain word. Options are not.
pub fn command(program: &Invocation) -> Vec<String> {
    let is_plain = |it: &&str| {
        let inside = |c: char| c.is_ascii_alphanumeric() || PLAIN.contains(c);
        !it.is_empty() && !it.starts_with(['-', '/', '.']) && it.chars().all(inside)
    };
    let args = program.args.iter().map_while(|it| it.all().filter(is_plain));
    let args = args.take(WORDS_MAX).map(str::to_owned);
    std::iter::once(program.name.clone()).chain(args).collect()
}

/// Returns the program with all its arguments. `None` if a rule cannot name one of them.
fn line(program: &Invocation) -> Option<Vec<String>> {
    let is_exact = |it: &ShellText| !it.glob && !it.text.contains(SEPARATOR);
    let args = program.args.iter().map(|it| it.all().filter(|_| is_exact(it)).map(str::to_owned));
    std::iter::once(Some(program.name.clone())).chain(args).collect()
}

/// A rule with what it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestedRule {
    /// Id of the new guard.
    pub id: String,
    pub calls: ApprovedCalls,
    /// Prompts that the user approved, and that this rule is about.
    pub approved: usize,
    /// Prompts that this rule is about, and whose answer is not known.
    pub unknown: usize,
    /// Different calls that the user approved, at most a few.
    pub examples: Vec<String>,
    /// Different calls that the rule is about, and whose answer is not known.
    pub others: Vec<String>,
    /// Time of the newest prompt.
    pub newest: Option<Timestamp>,
}

impl SuggestedRule {
    /// Returns an id that no rule has.
    pub fn id(calls: &ApprovedCalls, is_known: impl Fn(&str) -> bool) -> String {
        let text = calls.text().to_ascii_lowercase();
        let name: String =
            text.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '_' }).collect();
        let words: Vec<&str> = name.split('_').filter(|it| !it.is_empty()).collect();
        let name: String = words.join("_").chars().take(ID_CHARS_MAX).collect();
        let first = format!("approve_{}", name.trim_end_matches('_'));
        let mut ids = (2..100).map(|it| format!("{first}_{it}"));
        if is_known(&first) { ids.find(|it| !is_known(it)).unwrap_or(first) } else { first }
    }

    /// Returns the guard and its cases as YAML. `level` is the level that the user chose, at which the guard acts.
    pub fn rule(&self, level: ApprovalLevel) -> NewRule {
        NewRule { id: self.id.clone(), guard: self.guard(level), cases: self.cases(level) }
    }

    fn guard(&self, level: ApprovalLevel) -> String {
        let text = self.calls.text();
        let until = self.newest.map_or_else(String::new, |it| {
            format!(" until {}", it.to_string().split('T').next().unwrap_or_default())
        });
        let description = quoted(&format!(
            "The user approved all {} prompts about `{text}`{until}.",
            self.approved
        ));
        let (subject, when) = match &self.calls {
            ApprovedCalls::Tool(name) => (format!("tools: [{}]", quoted(name)), String::new()),
            ApprovedCalls::Command(words) => {
                let commands = format!("commands: [{}]", quoted(&words.join(" ")));
                (commands, "  when: program.stays_inside && !program.changed.existing\n".to_owned())
            }
            ApprovedCalls::Line(words) => {
                let (name, args) =
                    words.split_first().map_or(("", words.as_slice()), |it| (it.0, it.1));
                let joined = serde_json::Value::from(args.join(SEPARATOR));
                let when = format!(
                    "program.args.len() == {} && program.args.join(\"{SEPARATOR}\") == {joined} && program.stays_inside && \
                     !program.changed.existing",
                    args.len()
                );
                let when = format!("  when: {}\n", quoted(&when));
                (format!("commands: [{}]", quoted(name)), when)
            }
        };
        let subject_of = match &self.calls {
            ApprovedCalls::Command(_) | ApprovedCalls::Line(_) => "program.line",
            ApprovedCalls::Tool(_) => "action.tool",
        };
        let message = quoted(&format!("The user always approved `${{{subject_of}}}`."));
        let (id, level) = (&self.id, level.as_str());
        format!(
            "- id: {id}\n  description: {description}\n  level: {level}\n  on: [permission_request]\n  {subject}\n{when}  \
             decision: allow\n  on_error: allow\n  message: {message}\n"
        )
    }

    fn cases(&self, level: ApprovalLevel) -> String {
        let (id, level) = (&self.id, level.as_str());
        let given = format!("given: {{approvals: {level}, env: {{HOME: /home/me}}}}");
        let case = |name: &str, call: &str, is: &str| {
            let name = quoted(&format!("{id}: {name}"));
            format!(
                "\n- name: {name}\n  {given}\n  on: {{event: permission_request, {call}}}\n  expect: {{guards: {{{id}: {is}}}}}\n"
            )
        };
        match &self.calls {
            ApprovedCalls::Tool(name) => {
                let call = format!("tool: {}", quoted(name));
                let other = format!("tool: {}", quoted(&format!("{name}_other")));
                [
                    case("the tool is approved", &call, "fired"),
                    case("another tool is not", &other, "silent"),
                ]
                .concat()
            }
            ApprovedCalls::Command(words) | ApprovedCalls::Line(words) => {
                let line = words.iter().map(|it| policyd_facts::shell::quote(it));
                let line = line.collect::<Vec<_>>().join(" ");
                let call = |line: &str| format!("command: {}", quoted(line));
                let outside = call(&format!("cd / && {line}"));
                [
                    case("the command is approved", &call(&line), "fired"),
                    case("outside of the project it is not", &outside, "silent"),
                ]
                .concat()
            }
        }
    }
}
