//! The summary of a replay: what policyd would have blocked or asked about, the rules behind it, and numbered examples.
//! 60 sessions with 108 MB take 2.4 s on two cores (x86-64, 2026-11-25, no link-time optimization; goal 1 s).

use std::cmp::Reverse;

use serde_json::{Value, json};

use policyd_base::text::{counted, grouped};
use policyd_evaluation::message::{cut, in_one_line};
use policyd_policy::Mode;
use policyd_record::mask::mask;
use policyd_record::paint::{TextColor, line};
use policyd_record::table::{Align, Screen, TextTable};
use policyd_replay::shown_turn::{RecordedTurn, TurnStep};
use policyd_replay::tally::{Example, RuleTally, Tally};
use unicode_width::UnicodeWidthStr as _;

/// Period that is replayed if neither a path nor `--since` is given.
pub const SINCE_DEFAULT: &str = "7d";

/// Number of rules in the summary, and of different examples of a rule.
const RULES_MAX: usize = 10;
const GROUPS_MAX: usize = 3;
/// Characters of the id of a session in the summary.
const SESSION_CHARS: usize = 8;
/// Characters of a step of a turn.
const STEP_CHARS_MAX: usize = 400;
/// Examples of a rule from which the summary counts equal ones.
pub const EXAMPLES_MAX: usize = 200;

/// A directory in which a client records sessions.
#[derive(Debug, Clone)]
pub struct SearchedDirectory {
    /// Client, as displayed.
    pub client: &'static str,
    /// Path of the directory.
    pub path: String,
    /// Sessions in the period. `None`: the directory does not exist.
    pub sessions: Option<usize>,
}

/// Inputs of a summary.
#[derive(Debug, Clone, Copy)]
pub struct OverviewScope<'a> {
    /// Name of the pack.
    pub pack: &'a str,
    /// Period before now, as given to `--since`.
    pub since: &'a str,
    /// Searched directories.
    pub searched: &'a [SearchedDirectory],
}

/// A rule with the effect that it would have had.
struct RuleCount<'t> {
    rule: &'t RuleTally,
    effect: &'static str,
    times: u64,
    /// Part of the blocked events. `None` for a rule that blocks none.
    share: Option<Share>,
}

/// Part of a rule in all events that are blocked.
struct Share {
    percent: u64,
    all: BlockedEvents,
}

/// Number of the events that are blocked, and what they are.
#[derive(Clone, Copy)]
struct BlockedEvents {
    times: u64,
    events: &'static str,
}

/// Findings or calls of a rule with the same text.
struct ExampleGroup<'t> {
    /// The first of them.
    example: &'t Example,
    text: String,
    times: u64,
}

/// An example of the summary.
pub struct NumberedExample<'t> {
    pub example: &'t Example,
    /// Id of the rule.
    pub rule: &'t str,
    /// What the rule would have done: `block`, `ask`, `warn`, or `log`.
    pub effect: &'static str,
}

/// Returns the example with a number of the summary, from 1.
#[must_use]
pub fn example(tally: &Tally, number: usize) -> Option<NumberedExample<'_>> {
    let mut all = most_frequent(tally).into_iter().flat_map(|it| {
        let (rule, effect) = (it.rule.id.as_str(), it.effect);
        let groups = it.groups().into_iter();
        groups.map(move |it| NumberedExample { example: it.example, rule, effect })
    });
    all.nth(number.checked_sub(1)?)
}

impl<'t> RuleCount<'t> {
    /// Returns the count of a rule among the events that are blocked.
    fn new(rule: &'t RuleTally, blocked: BlockedEvents) -> Self {
        let (effect, times) = match rule.mode {
            Mode::Enforce if rule.would_block > 0 => ("block", rule.would_block),
            Mode::Enforce if rule.would_ask > 0 => ("ask", rule.would_ask),
            Mode::Enforce | Mode::Warn if effects(rule) > 0 => ("warn", effects(rule)),
            Mode::Enforce | Mode::Warn | Mode::Shadow => ("log", rule.fired.times),
        };
        let rounded = times.saturating_mul(100).saturating_add(blocked.times / 2);
        let percent = rounded.checked_div(blocked.times);
        let percent = percent.filter(|_| effect == "block");
        let share = percent.map(|percent| Share { percent, all: blocked });
        Self { rule, effect, times, share }
    }

    /// Returns whether the user notices the effect: the agent is blocked, or the user is asked.
    fn interrupts(&self) -> bool {
        matches!(self.effect, "block" | "ask")
    }

    /// Returns the examples, those with the same text once, the most frequent first.
    fn groups(&self) -> Vec<ExampleGroup<'t>> {
        let mut groups: Vec<ExampleGroup<'t>> = Vec::new();
        let examples = self.rule.fired.examples.iter().chain(&self.rule.unknown.examples);
        // A check that blocks one stop can only warn at another.
        for example in examples.filter(|it| it.interrupts || !self.interrupts()) {
            let text = shown(example);
            match groups.iter_mut().find(|it| it.text == text) {
                Some(known) => known.times = known.times.saturating_add(1),
                None => groups.push(ExampleGroup { example, text, times: 1 }),
            }
        }
        groups.sort_by_key(|it| Reverse(it.times));
        groups.truncate(GROUPS_MAX);
        groups
    }

    fn color(&self) -> TextColor {
        match self.effect {
            "block" => TextColor::Red,
            "ask" | "warn" => TextColor::Yellow,
            _ => TextColor::Dim,
        }
    }
}

fn effects(rule: &RuleTally) -> u64 {
    rule.would_block.saturating_add(rule.would_ask).saturating_add(rule.would_warn)
}

/// Returns the number of stops that the block limit releases.
fn released(tally: &Tally) -> u64 {
    tally.releases.values().fold(0, |sum, it| sum.saturating_add(*it))
}

/// Returns the most frequent rules: first those that block or ask, then the others.
fn most_frequent(tally: &Tally) -> Vec<RuleCount<'_>> {
    let stops = BlockedEvents { times: tally.blocks.times, events: "stops" };
    let calls = BlockedEvents { times: tally.stopped.times, events: "calls" };
    let guards = tally.guards.iter().map(|it| RuleCount::new(it, calls));
    let rules = guards.chain(tally.rules.iter().map(|it| RuleCount::new(it, stops)));
    let mut rules: Vec<RuleCount<'_>> = rules.filter(|it| it.times > 0).collect();
    rules.sort_by_key(|it| (!it.interrupts(), Reverse(it.times)));
    rules.truncate(RULES_MAX);
    rules
}

/// The command of a tool call, or the finding of a check, without secrets.
fn shown(example: &Example) -> String {
    let text = if example.subject.is_empty() { &example.details } else { &example.subject };
    in_one_line(&mask(text).0)
}

/// Adds the data of the summary to the JSON report.
#[must_use]
pub fn with_overview(mut report: Value, tally: &Tally, scope: OverviewScope<'_>) -> Value {
    let rules = most_frequent(tally).into_iter().map(|it| {
        let examples = it.groups().into_iter().map(|group| {
            let Example { file, line, at, session, .. } = group.example;
            json!({"file": file, "line": line, "at": at, "session": session, "text": group.text})
        });
        json!({"id": it.rule.id, "effect": it.effect, "times": it.times, "percent": it.share.as_ref().map(|it| it.percent),
            "examples": examples.collect::<Vec<_>>()})
    });
    let rules: Vec<Value> = rules.collect();
    let searched = scope.searched.iter().map(|it| {
        json!({"client": it.client, "directory": it.path, "exists": it.sessions.is_some(),
            "sessions": it.sessions.unwrap_or(0)})
    });
    let searched: Vec<Value> = searched.collect();
    if let Value::Object(fields) = &mut report {
        fields.insert("since".to_owned(), scope.since.into());
        fields.insert("searched".to_owned(), searched.into());
        fields.insert("most_frequent".to_owned(), rules.into());
    }
    report
}

/// Returns the summary as text.
#[must_use]
pub fn to_text(tally: &Tally, scope: OverviewScope<'_>, screen: Screen) -> String {
    let style = screen.style();
    let mut text = String::new();
    let clients = scope.searched.iter().filter(|it| it.sessions.is_some_and(|it| it > 0));
    let clients: Vec<&str> = clients.map(|it| it.client).collect();
    line(&mut text, &style.bold("What policyd would have done in your recorded sessions"));
    let period = format!(
        "The last {}: {}, {}, {} of {}. Pack: `{}`.{}",
        scope.since,
        counted(tally.sessions, "session"),
        counted(tally.stops, "stop"),
        counted(tally.tool_calls, "tool call"),
        clients.join(", "),
        scope.pack,
        if scope.since == SINCE_DEFAULT { " `--since 30d` changes the period." } else { "" },
    );
    screen.paragraph(&mut text, "", &period);
    line(&mut text, "");
    let mut totals = TextTable::new(2, &[Align::Left, Align::Right, Align::Left]);
    for (effect, count, what) in [
        ("would block", tally.stopped.times, "tool call"),
        ("would block", tally.blocks.times, "stop"),
        // The same finding was blocked before, as often as the limit permits.
        ("would release", released(tally), "repeated stop"),
        ("would ask about", tally.asked.times, "tool call"),
        ("would warn at", tally.warnings, "stop"),
    ] {
        let what = if count == 1 { what.to_owned() } else { format!("{what}s") };
        totals.row(vec![effect.into(), grouped(count, ',').into(), what.into()]);
    }
    text.push_str(&totals.render(screen));
    frequent(&mut text, &most_frequent(tally), screen);
    let note = "A recording has no output of probes, such as the state of CI, and no preferences. \
                Rules that need them are not counted.";
    line(&mut text, "");
    screen.paragraph(&mut text, "", note);
    next_commands(&mut text, tally, screen);
    text
}

/// Adds the most frequent rules, each with its examples below.
fn frequent(text: &mut String, rules: &[RuleCount<'_>], screen: Screen) {
    let style = screen.style();
    if rules.is_empty() {
        line(text, "\nNo rule fired.");
        return;
    }
    line(text, &format!("\n{}", style.bold("Most frequent rules")));
    screen.paragraph(
        text,
        "  ",
        "Repeat the command with `--show N` to print the turn of an example.",
    );
    let width = rules.iter().map(|it| grouped(it.times, ',').len()).max().unwrap_or(0);
    let mut number: usize = 0;
    for it in rules {
        let times = format!("{:>width$}x", grouped(it.times, ','));
        let effect = style.paint(it.color(), &format!("{:5}", it.effect));
        let share = it.share.as_ref().map_or_else(String::new, |it| {
            let BlockedEvents { times, events } = it.all;
            format!(" ({}% of {} {events})", it.percent, grouped(times, ','))
        });
        line(text, &format!("  {times}  {effect}  {}{share}", style.bold(&it.rule.id)));
        for group in it.groups() {
            number = number.saturating_add(1);
            let indent = width.saturating_add(5);
            let whole = it.rule.fired.times.saturating_add(it.rule.unknown.times);
            let is_part = whole > u64::try_from(EXAMPLES_MAX).unwrap_or(u64::MAX);
            let times = match group.times {
                1 => String::new(),
                times => format!("{times}{}x ", if is_part { "+" } else { "" }),
            };
            let what = format!("{number:>3}  {times}{}", group.text);
            line(text, &format!("{:indent$}{}", "", screen.cut(&what, indent)));
            let indent = indent.saturating_add(5);
            let place = place(group.example, screen.width().saturating_sub(indent));
            line(text, &format!("{:indent$}{}", "", style.dim(&place)));
        }
    }
}

/// Returns the date, the session, and the file of an example in so many columns. Most clients name the file by the session.
fn place(example: &Example, columns: usize) -> String {
    let Example { file, line, at, session, .. } = example;
    let session = if file.contains(session.as_str()) {
        String::new()
    } else {
        format!("session {}  ", session.chars().take(SESSION_CHARS).collect::<String>())
    };
    let (when, file) = (format!("{}  {session}", at.minute()), format!("{file}:{line}"));
    let left = columns.saturating_sub(when.width());
    // The end of a path says most.
    let over = file.width().saturating_sub(left);
    let end: String =
        file.chars().skip(if over == 0 { 0 } else { over.saturating_add(1) }).collect();
    format!("{when}{}{end}", if over == 0 { "" } else { "…" })
}

/// Returns an example with the turn that led to it.
#[must_use]
pub fn show(
    number: usize,
    found: &NumberedExample<'_>,
    turn: &RecordedTurn,
    screen: Screen,
) -> String {
    let NumberedExample { example, rule, effect } = found;
    let style = screen.style();
    let what = if example.is_call() { "tool call" } else { "stop" };
    let verb = match *effect {
        "block" => "would block",
        "ask" => "would ask about",
        "warn" => "would warn at",
        _ => "would log",
    };
    let mut text = String::new();
    line(&mut text, &format!("Example {number}: {} {verb} this {what}", style.bold(rule)));
    line(&mut text, &format!("  {}, session {}", example.at.minute(), example.session));
    line(&mut text, &format!("  {}:{}", example.file, example.line));
    screen.paragraph(&mut text, "  ", &in_one_line(&mask(&example.details).0));
    line(&mut text, "");
    let mut step = |name: &str, said: &str| {
        let said = cut(&in_one_line(&mask(said).0), STEP_CHARS_MAX);
        screen.paragraph(&mut text, &format!("{name:<10} "), &said);
    };
    step("user", if turn.prompt.is_empty() { "(no prompt of the user)" } else { &turn.prompt });
    if turn.left_out > 0 {
        step("…", &counted(turn.left_out, "earlier step"));
    }
    for it in &turn.steps {
        match it {
            TurnStep::Said(said) => step("agent", said),
            TurnStep::Called { tool, subject } => {
                let subject = subject.strip_prefix(tool.as_str()).unwrap_or(subject);
                step(tool, subject.trim_start());
            }
        }
    }
    text
}

fn next_commands(text: &mut String, tally: &Tally, screen: Screen) {
    let first = most_frequent(tally).first().map_or("ID", |it| it.rule.id.as_str()).to_owned();
    let mut table = TextTable::new(2, &[Align::Left, Align::Left]);
    for (command, purpose) in [
        (format!("policyd rules {first}"), "what a rule does, and how to soften or disable it"),
        ("policyd replay --all-rules".to_owned(), "every rule, with locations"),
        ("policyd install --observe".to_owned(), "log decisions in new sessions, block nothing"),
    ] {
        table.row(vec![command.into(), purpose.into()]);
    }
    line(text, &format!("\n{}", screen.style().bold("Next")));
    text.push_str(&table.render(screen));
}

/// Returns the text for a machine without a recorded session in the period.
#[must_use]
pub fn nothing_found(scope: OverviewScope<'_>, screen: Screen) -> String {
    let mut text = String::new();
    line(&mut text, &format!("no recorded session of the last {}", scope.since));
    if scope.searched.is_empty() {
        line(&mut text, "HOME is not set, so the directories of the clients are unknown");
    }
    let mut table = TextTable::new(2, &[Align::Left, Align::Left]);
    for it in scope.searched {
        let state = match it.sessions {
            None => "does not exist",
            Some(_) => "has no session of this period",
        };
        table.row(vec![it.client.into(), format!("{} {state}", it.path).into()]);
    }
    text.push_str(&table.render(screen));
    let help = "help: use a longer period, such as `--since 90d`, or pass transcript files or \
                directories: `policyd replay PATH`";
    screen.paragraph(&mut text, "", help);
    text
}
