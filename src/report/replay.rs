//! Results of a replay as text and JSON.

use serde_json::{Map, Value, json};

use super::mask::mask;
use super::outcome::mode;
use super::paint::{AnsiStyle, line};
use crate::evaluation::message::in_one_line;
use crate::limits::ID_CHARS_MAX;
use crate::replay::compare::{Comparison, RuleChange, RuleEffect};
use crate::replay::tally::{Count, Example, RuleTally, Tally};

/// Version of the JSON report.
pub const REPLAY_VERSION: u32 = 1;

/// What a report is about.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// Name of the pack that judged.
    pub pack: &'a str,
    /// The only rule that is shown, where one was asked for.
    pub rule: Option<&'a str>,
}

impl Scope<'_> {
    fn shows(&self, id: &str) -> bool {
        self.rule.is_none_or(|wanted| wanted == id)
    }
}

/// Inputs that no recording contains, and their effect.
const NOT_RECORDED: &str = "\
A recording holds no answers of probes, no preferences and no remote: what rests on them is unknown.
Files are taken as the recorded edits left them.";

/// The report as JSON.
#[must_use]
pub fn to_json(tally: &Tally, scope: Scope<'_>) -> Value {
    let reading = &tally.reading;
    let unreadable = reading.unreadable.iter();
    let unreadable: Vec<Value> =
        unreadable.map(|(file, why)| json!({"file": file, "why": why})).collect();
    let rules = tally.rules.iter().filter(|it| scope.shows(&it.id));
    let guards = tally.guards.iter().filter(|it| scope.shows(&it.id));
    json!({
        "version": REPLAY_VERSION,
        "pack": scope.pack,
        "reading": {
            "transcripts": reading.transcripts,
            "no_transcripts": reading.no_transcripts,
            "unreadable": unreadable,
            "broken_lines": reading.broken_lines,
            "bytes": reading.bytes,
        },
        "sessions": tally.sessions,
        "stops": tally.stops,
        "subagent_stops": tally.subagent_stops,
        "judged": tally.judged,
        "no_opinion": tally.no_opinion,
        "blocked_then": tally.blocked_then,
        "copied": tally.copied,
        "cut_off": tally.cut_off,
        "tool_calls": tally.tool_calls,
        "blocks": count_json(&tally.blocks),
        "warnings": tally.warnings,
        "releases": tally.releases,
        "rules": rules.map(rule_json).collect::<Vec<_>>(),
        "guarded": tally.guarded,
        "stopped": count_json(&tally.stopped),
        "asked": count_json(&tally.asked),
        "guards": guards.map(guard_json).collect::<Vec<_>>(),
        "comparison": tally.comparison.as_ref().map(|it| comparison_json(it, scope)),
    })
}

fn rule_json(it: &RuleTally) -> Value {
    json!({
        "id": it.id,
        "mode": mode(it.mode),
        "place": it.place,
        "fired": count_json(&it.fired),
        "silent": it.silent,
        "unknown": count_json(&it.unknown),
        "skipped": it.skipped,
        "sessions": it.sessions,
        "would_block": it.would_block,
        "would_warn": it.would_warn,
    })
}

fn guard_json(it: &RuleTally) -> Value {
    json!({
        "id": it.id,
        "mode": mode(it.mode),
        "place": it.place,
        "fired": count_json(&it.fired),
        "silent": it.silent,
        "unknown": count_json(&it.unknown),
        "sessions": it.sessions,
        "would_stop": it.would_block,
        "would_ask": it.would_ask,
        "would_warn": it.would_warn,
    })
}

fn comparison_json(it: &Comparison, scope: Scope<'_>) -> Value {
    let rules = it.rules.iter().chain(it.guards.values()).filter(|it| scope.shows(&it.id));
    let rules = rules.map(|it| {
        let moves = it.moves.iter().map(|((here, there), count)| {
            let mut fields = Map::new();
            fields.insert("here".to_owned(), here.as_str().into());
            fields.insert("there".to_owned(), there.as_str().into());
            fields.insert("count".to_owned(), count_json(count));
            Value::Object(fields)
        });
        json!({"id": it.id, "here": it.here, "there": it.there, "moves": moves.collect::<Vec<_>>()})
    });
    json!({
        "pack": it.pack,
        "blocks": it.blocks,
        "newly_blocked": count_json(&it.newly_blocked),
        "no_longer_blocked": count_json(&it.no_longer_blocked),
        "newly_stopped": count_json(&it.newly_stopped),
        "no_longer_stopped": count_json(&it.no_longer_stopped),
        "rules": rules.collect::<Vec<_>>(),
    })
}

fn count_json(it: &Count) -> Value {
    let examples = it.examples.iter();
    let examples = examples.map(
        |it| json!({"file": it.file, "line": it.line, "details": mask(&it.details).0.into_owned()}),
    );
    json!({"times": it.times, "examples": examples.collect::<Vec<_>>()})
}

/// Returns the report as text: totals, a table of the rules, where they fired first, and what
/// the other pack would change.
#[must_use]
pub fn to_text(tally: &Tally, scope: Scope<'_>, color: bool) -> String {
    let paint = AnsiStyle::new(color);
    let mut text = String::new();
    judged(&mut text, tally, scope, &paint);
    let mut rules: Vec<&RuleTally> = tally.rules.iter().filter(|it| scope.shows(&it.id)).collect();
    let (mut guards, quiet): (Vec<&RuleTally>, Vec<&RuleTally>) = tally
        .guards
        .iter()
        .filter(|it| scope.shows(&it.id))
        .partition(|it| scope.rule.is_some() || it.fired.times > 0 || it.unknown.times > 0);
    for (rules, columns) in [(&mut rules, AT_STOPS), (&mut guards, AT_CALLS)] {
        // What fires most stands first; rules that fire equally often stay in the order of the pack.
        rules.sort_by_key(|it| std::cmp::Reverse((it.fired.times, it.unknown.times)));
        table(&mut text, rules, columns, &paint);
    }
    if !quiet.is_empty() {
        let asked = quiet.iter().filter(|it| it.silent > 0).count();
        let never = quiet.len().saturating_sub(asked);
        let rest = format!("other guards: {asked} always passed, {never} never applied");
        line(&mut text, &paint.dim(&rest));
    }
    for it in rules.iter().chain(&guards) {
        places(&mut text, it, &paint);
    }
    if let Some(comparison) = &tally.comparison {
        compared(&mut text, tally, comparison, scope, &paint);
    }
    line(&mut text, &format!("\n{}", paint.dim(NOT_RECORDED)));
    text
}

/// The first lines: how much was judged, and what the pack would have done.
fn judged(text: &mut String, tally: &Tally, scope: Scope<'_>, paint: &AnsiStyle) {
    let reading = &tally.reading;
    line(
        text,
        &paint.bold(&format!(
            "{} of {}, evaluated with the pack `{}`",
            counted(tally.stops, "stop"),
            counted(tally.sessions, "session"),
            scope.pack
        )),
    );
    line(
        text,
        &format!(
            "  blocked {}, released {}, warned at {}; {} were blocked when they were recorded",
            grouped(tally.blocks.times),
            grouped(tally.releases.values().sum()),
            grouped(tally.warnings),
            grouped(tally.blocked_then)
        ),
    );
    for (why, times) in &tally.no_opinion {
        line(text, &format!("  not evaluated {}: {why}", grouped(*times)));
    }
    let mut more = vec![
        (tally.subagent_stops, "of them by subagents"),
        (tally.cut_off, "turn(s) were cut off and are no stops"),
        (tally.copied, "stop(s) were copied from a forked session and are counted there"),
        (reading.broken_lines, "line(s) could not be read"),
        (reading.no_transcripts, "file(s) tell of nothing an agent did"),
        (count(reading.unreadable.len()), "file(s) could not be read"),
    ];
    more.retain(|(times, _)| *times > 0);
    let more = more.iter().map(|(times, what)| format!("  {} {what}", grouped(*times)));
    more.for_each(|it| line(text, &it));
    line(
        text,
        &format!(
            "  of {}: blocked {}, asked the user about {}",
            counted(tally.tool_calls, "tool call"),
            grouped(tally.stopped.times),
            grouped(tally.asked.times),
        ),
    );
    line(
        text,
        &format!(
            "  read {} in {}",
            megabytes(reading.bytes),
            counted(reading.transcripts, "transcript"),
        ),
    );
}

/// A column of a table: its title, and its number.
type Column = (&'static str, fn(&RuleTally) -> u64);

const AT_STOPS: [Column; 7] = [
    ("fired", |it| it.fired.times),
    ("passed", |it| it.silent),
    ("unknown", |it| it.unknown.times),
    ("skipped", |it| it.skipped),
    ("sessions", |it| it.sessions),
    ("would block", |it| it.would_block),
    ("would warn", |it| it.would_warn),
];

const AT_CALLS: [Column; 7] = [
    ("fired", |it| it.fired.times),
    ("passed", |it| it.silent),
    ("unknown", |it| it.unknown.times),
    ("sessions", |it| it.sessions),
    ("would block", |it| it.would_block),
    ("would ask", |it| it.would_ask),
    ("would warn", |it| it.would_warn),
];

fn table(text: &mut String, rules: &[&RuleTally], columns: [Column; 7], paint: &AnsiStyle) {
    let (asked, never): (Vec<&RuleTally>, Vec<&RuleTally>) =
        rules.iter().partition(|it| it.fired.times + it.silent + it.unknown.times > 0);
    let width = id_width(asked.iter().map(|it| it.id.as_str()));
    let titles = columns.map(|it| it.0);
    if !asked.is_empty() {
        let head = row("rule", "mode", width, titles, titles.map(str::to_owned));
        line(text, &format!("\n{}", paint.bold(&head)));
    }
    for it in asked {
        let numbers = columns.map(|(_, number)| grouped(number(it)));
        line(text, &row(&it.id, mode(it.mode), width, titles, numbers));
    }
    if !never.is_empty() {
        let never: Vec<&str> = never.iter().map(|it| it.id.as_str()).collect();
        line(text, &paint.dim(&format!("never applied: {}", never.join(", "))));
    }
}

/// The width of the column of ids.
fn id_width<'a>(ids: impl Iterator<Item = &'a str>) -> usize {
    ids.map(|it| it.chars().count()).max().unwrap_or(0).clamp("rule".len(), ID_CHARS_MAX)
}

/// A line of the table: each number under the end of its title.
fn row(id: &str, mode: &str, width: usize, titles: [&str; 7], numbers: [String; 7]) -> String {
    let mut text = format!("{id:width$}  {mode:7}");
    for (number, title) in numbers.into_iter().zip(titles) {
        let width = title.len().max(7);
        text.push_str(&format!("  {number:>width$}"));
    }
    text
}

/// Where a rule fired first, and where and why it is unknown.
fn places(text: &mut String, it: &RuleTally, paint: &AnsiStyle) {
    if it.fired.examples.is_empty() && it.unknown.examples.is_empty() {
        return;
    }
    line(text, &format!("\n{}  {}", paint.bold(&it.id), paint.dim(&it.place)));
    examples(text, &paint.red("fired  "), &it.fired, usize::MAX);
    // Why it is unknown is much the same everywhere.
    examples(text, &paint.yellow("unknown"), &it.unknown, 1);
}

fn examples(text: &mut String, what: &str, count: &Count, max: usize) {
    let mut shown = 0;
    for Example { file, line: at, details } in count.examples.iter().take(max) {
        let details = in_one_line(&mask(details).0);
        line(text, &format!("  {what}  {file}:{at}  {details}"));
        shown += 1;
    }
    let more = count.times.saturating_sub(shown);
    if more > 0 && shown > 0 {
        line(text, &format!("           and {} more", grouped(more)));
    }
}

fn compared(
    text: &mut String,
    tally: &Tally,
    it: &Comparison,
    scope: Scope<'_>,
    paint: &AnsiStyle,
) {
    let stops = counted(tally.stops, "stop");
    let title = format!("\ncompared with this, the pack `{}`", it.pack);
    line(text, &paint.bold(&title));
    line(text, &format!("  would newly block {} of {stops}", grouped(it.newly_blocked.times)));
    examples(text, &paint.red("block  "), &it.newly_blocked, usize::MAX);
    line(text, &format!("  would no longer block {}", grouped(it.no_longer_blocked.times)));
    examples(text, &paint.green("pass   "), &it.no_longer_blocked, usize::MAX);
    let blocks = (grouped(it.blocks), grouped(tally.blocks.times));
    line(text, &format!("  would block {} in all, instead of {}", blocks.0, blocks.1));
    let calls = counted(tally.tool_calls, "tool call");
    let newly = grouped(it.newly_stopped.times);
    line(text, &format!("  would newly block, or ask about, {newly} of {calls}"));
    examples(text, &paint.red("block  "), &it.newly_stopped, usize::MAX);
    line(
        text,
        &format!("  would no longer block, or ask about, {}", grouped(it.no_longer_stopped.times)),
    );
    examples(text, &paint.green("pass   "), &it.no_longer_stopped, usize::MAX);
    let rules = it.rules.iter().map(|it| (it, "stop"));
    let rules = rules.chain(it.guards.values().map(|it| (it, "tool call")));
    let changed: Vec<(&RuleChange, &str)> =
        rules.filter(|(it, _)| scope.shows(&it.id) && !it.moves.is_empty()).collect();
    if changed.is_empty() {
        line(text, "  no rule would have another effect");
    }
    for (rule, place) in changed {
        let where_it_is = match (rule.here, rule.there) {
            (true, true) | (false, false) => String::new(),
            (true, false) => paint.dim("  only in this pack"),
            (false, true) => paint.dim("  only in the other pack"),
        };
        line(text, &format!("\n{}{where_it_is}", paint.bold(&rule.id)));
        for ((here, there), count) in &rule.moves {
            let at = counted(count.times, place);
            line(text, &format!("  {} -> {} at {at}", effect_word(*here), effect_word(*there)));
            examples(text, "       ", count, usize::MAX);
        }
    }
}

/// Returns the displayed word of an effect; JSON keeps the words of its version.
const fn effect_word(effect: RuleEffect) -> &'static str {
    match effect {
        RuleEffect::Nothing => "none",
        RuleEffect::Recorded => "log",
        RuleEffect::Warns => "warn",
        RuleEffect::Asks => "ask",
        RuleEffect::Blocks => "block",
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// `1 stop`, `5,120 stops`.
fn counted(number: u64, what: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {what}{ending}", grouped(number))
}

/// A number with its thousands apart: `5,120`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn megabytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        1_000_000.. => format!("{} MB", grouped(bytes / 1_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_at_a_glance() {
        let texts = [0, 7, 999, 1000, 5120, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "7", "999", "1,000", "5,120", "1,234,567"]);
        assert_eq!([counted(1, "stop"), counted(0, "stop")], ["1 stop", "0 stops"]);
        assert_eq!([0, 1, 999_999, 2_500_000].map(megabytes), ["0 kB", "1 kB", "1000 kB", "2 MB"]);
    }

    #[test]
    fn an_id_of_any_length_is_shown() {
        let id = "x".repeat(70_000);
        let width = id_width([id.as_str(), "odd"].into_iter());
        let titles = AT_STOPS.map(|it| it.0);
        let shown = |id: &str| row(id, "enforce", width, titles, titles.map(str::to_owned));
        assert!(shown(&id).starts_with(&format!("{id}  enforce")), "the long id is shown whole");
        assert!(shown("odd").starts_with(&format!("odd{:127}enforce", "")), "the width is bounded");
    }
}
