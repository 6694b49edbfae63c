//! Results of a replay as text and JSON.

use serde_json::{Map, Value, json};
use unicode_width::UnicodeWidthStr;

use policyd_base::text::{counted, grouped};
use policyd_evaluation::message::in_one_line;
use policyd_policy::Mode;
use policyd_record::mask::mask;
use policyd_record::outcome::mode;
use policyd_record::paint::{TextColor, line};
use policyd_record::table::{Align, Screen, TextCell, TextTable, wrap};
use policyd_replay::compare::{Comparison, RuleChange, RuleEffect};
use policyd_replay::tally::{Count, Example, RuleTally, Tally};

/// Version of the JSON report.
pub const REPLAY_VERSION: u32 = 1;

/// What a report is about.
#[derive(Debug, Clone, Copy)]
pub struct ReplayScope<'a> {
    /// Name of the pack that judged.
    pub pack: &'a str,
    /// The only rule that is shown, where one was asked for.
    pub rule: Option<&'a str>,
}

impl ReplayScope<'_> {
    fn shows(&self, id: &str) -> bool {
        self.rule.is_none_or(|wanted| wanted == id)
    }
}

/// Inputs that no recording contains, and their effect.
const NOT_RECORDED: &str = "\
A recording has no results of probes, no preferences, and no remote. Rules that need them are unknown. Whether a project has
tests is unknown, too, so code without a test run is blocked live more often. Files have the content of the recorded edits.";

/// The report as JSON.
#[must_use]
pub fn to_json(tally: &Tally, scope: ReplayScope<'_>) -> Value {
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
        "approvable": tally.approvable,
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

fn comparison_json(it: &Comparison, scope: ReplayScope<'_>) -> Value {
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
    let examples = examples.map(|it| {
        json!({"file": it.file, "line": it.line, "at": it.at, "session": it.session,
            "details": mask(&it.details).0.into_owned()})
    });
    json!({"times": it.times, "examples": examples.collect::<Vec<_>>()})
}

/// Returns the report as text: totals, a table of the rules, where they fired first, and what
/// the other pack would change.
#[must_use]
pub fn to_text(tally: &Tally, scope: ReplayScope<'_>, screen: Screen) -> String {
    let paint = screen.style();
    let mut text = String::new();
    judged(&mut text, tally, scope, screen);
    let mut rules: Vec<&RuleTally> = tally.rules.iter().filter(|it| scope.shows(&it.id)).collect();
    let (mut guards, quiet): (Vec<&RuleTally>, Vec<&RuleTally>) = tally
        .guards
        .iter()
        .filter(|it| scope.shows(&it.id))
        .partition(|it| scope.rule.is_some() || it.fired.times > 0 || it.unknown.times > 0);
    for (rules, columns) in [(&mut rules, AT_STOPS), (&mut guards, AT_CALLS)] {
        // What fires most stands first; rules that fire equally often stay in the order of the pack.
        rules.sort_by_key(|it| std::cmp::Reverse((it.fired.times, it.unknown.times)));
        table(&mut text, rules, columns, screen);
    }
    if !quiet.is_empty() {
        let asked = quiet.iter().filter(|it| it.silent > 0).count();
        let never = quiet.len().saturating_sub(asked);
        let rest = format!("other guards: {asked} always passed, {never} never applied");
        line(&mut text, &paint.dim(&rest));
    }
    for it in rules.iter().chain(&guards) {
        places(&mut text, it, screen);
    }
    if let Some(comparison) = &tally.comparison {
        compared(&mut text, tally, comparison, scope, screen);
    }
    line(&mut text, "");
    dim_paragraph(&mut text, NOT_RECORDED, screen);
    text
}

/// The first lines: how much was judged, and what the pack would have done.
fn judged(text: &mut String, tally: &Tally, scope: ReplayScope<'_>, screen: Screen) {
    let reading = &tally.reading;
    line(
        text,
        &screen.style().bold(&format!(
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
            grouped(tally.blocks.times, ','),
            grouped(tally.releases.values().sum(), ','),
            grouped(tally.warnings, ','),
            grouped(tally.blocked_then, ',')
        ),
    );
    for (why, times) in &tally.no_opinion {
        line(text, &format!("  not evaluated {}: {why}", grouped(*times, ',')));
    }
    let mut more = vec![
        (tally.subagent_stops, "stops of subagents"),
        (tally.cut_off, "turns that were cut off, not counted as stops"),
        (tally.copied, "stops that a forked session copied, counted in the original session"),
        (reading.broken_lines, "lines that could not be read"),
        (reading.no_transcripts, "files without agent activity"),
        (count(reading.unreadable.len()), "files that could not be read"),
    ];
    more.retain(|(times, _)| *times > 0);
    let more = more.iter().map(|(times, what)| format!("  {what}: {}", grouped(*times, ',')));
    more.for_each(|it| line(text, &it));
    line(
        text,
        &format!(
            "  of {}: blocked {}, asked the user about {}",
            counted(tally.tool_calls, "tool call"),
            grouped(tally.stopped.times, ','),
            grouped(tally.asked.times, ','),
        ),
    );
    if tally.approvable > 0 {
        let calls = grouped(tally.approvable, ',');
        line(
            text,
            &format!("  could run without a question: {calls} (policyd install --approve work)"),
        );
    }
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

/// Columns that a narrow table leaves out, the least important first.
const OPTIONAL: [&str; 3] = ["skipped", "sessions", "would warn"];

fn table(text: &mut String, rules: &[&RuleTally], columns: [Column; 7], screen: Screen) {
    let (asked, never): (Vec<&RuleTally>, Vec<&RuleTally>) =
        rules.iter().partition(|it| it.fired.times + it.silent + it.unknown.times > 0);
    if !asked.is_empty() {
        let (mut columns, mut omitted) = (columns.to_vec(), Vec::new());
        let mut table = rule_table(&asked, &columns);
        for title in OPTIONAL {
            if table.width() <= screen.width() {
                break;
            }
            columns.retain(|it| it.0 != title);
            omitted.push(title);
            table = rule_table(&asked, &columns);
        }
        text.push_str(&format!("\n{}", table.render(screen)));
        if !omitted.is_empty() {
            let note = format!("columns for a wider terminal: {}", omitted.join(", "));
            dim_paragraph(text, &note, screen);
        }
    }
    if !never.is_empty() {
        let never: Vec<&str> = never.iter().map(|it| it.id.as_str()).collect();
        dim_paragraph(text, &format!("never applied: {}", never.join(", ")), screen);
    }
}

/// A table of rules. A mode other than `enforce` follows the id.
fn rule_table(rules: &[&RuleTally], columns: &[Column]) -> TextTable {
    let mut aligns = vec![Align::Left];
    aligns.extend(columns.iter().map(|_| Align::Right));
    let mut table = TextTable::new(0, &aligns);
    let title = |text: &str| TextCell::new(text, TextColor::Bold);
    table.row(std::iter::once("rule").chain(columns.iter().map(|it| it.0)).map(title).collect());
    for it in rules {
        let id = match it.mode {
            Mode::Enforce => it.id.clone(),
            Mode::Warn | Mode::Shadow => format!("{} ({})", it.id, mode(it.mode)),
        };
        let numbers = columns.iter().map(|(_, number)| grouped(number(it), ','));
        table.row(std::iter::once(id).chain(numbers).map(TextCell::from).collect());
    }
    table
}

fn dim_paragraph(text: &mut String, paragraph: &str, screen: Screen) {
    for it in wrap(paragraph, screen.width()) {
        line(text, &screen.style().dim(&it));
    }
}

/// Where a rule fired first, and where and why it is unknown.
fn places(text: &mut String, it: &RuleTally, screen: Screen) {
    if it.fired.examples.is_empty() && it.unknown.examples.is_empty() {
        return;
    }
    let paint = screen.style();
    line(text, &format!("\n{}  {}", paint.bold(&it.id), paint.dim(&it.place)));
    examples(text, &it.fired, &ExampleStyle::all("fired  ", TextColor::Red), screen);
    // Why it is unknown is much the same everywhere.
    let style = ExampleStyle { word: "unknown", color: TextColor::Yellow, max: 1 };
    examples(text, &it.unknown, &style, screen);
}

/// How the examples of a count are displayed.
struct ExampleStyle {
    /// Result, padded to the width of the longest one.
    word: &'static str,
    color: TextColor,
    /// Maximum number of examples.
    max: usize,
}

impl ExampleStyle {
    const fn all(word: &'static str, color: TextColor) -> Self {
        Self { word, color, max: usize::MAX }
    }
}

fn examples(text: &mut String, count: &Count, style: &ExampleStyle, screen: Screen) {
    let indent = style.word.len().saturating_add(4);
    let mut shown = 0;
    for it in count.examples.iter().take(style.max) {
        let Example { file, line: number, details, .. } = it;
        let place = format!("{}  {file}:{number}", it.at.minute());
        let details = in_one_line(&mask(details).0);
        let what = screen.style().paint(style.color, style.word);
        let whole = indent.saturating_add(place.width()).saturating_add(details.width() + 2);
        if whole <= screen.width() {
            line(text, &format!("  {what}  {place}  {details}"));
        } else {
            line(text, &format!("  {what}  {place}"));
            screen.paragraph(text, &" ".repeat(indent), &details);
        }
        shown += 1;
    }
    let more = count.times.saturating_sub(shown);
    if more > 0 && shown > 0 {
        line(text, &format!("           and {} more", grouped(more, ',')));
    }
}

fn compared(
    text: &mut String,
    tally: &Tally,
    it: &Comparison,
    scope: ReplayScope<'_>,
    screen: Screen,
) {
    let paint = screen.style();
    let stops = counted(tally.stops, "stop");
    let title = format!("\ncompared with this, the pack `{}`", it.pack);
    line(text, &paint.bold(&title));
    line(text, &format!("  would newly block {} of {stops}", grouped(it.newly_blocked.times, ',')));
    examples(text, &it.newly_blocked, &ExampleStyle::all("block  ", TextColor::Red), screen);
    line(text, &format!("  would no longer block {}", grouped(it.no_longer_blocked.times, ',')));
    examples(text, &it.no_longer_blocked, &ExampleStyle::all("pass   ", TextColor::Green), screen);
    let blocks = (grouped(it.blocks, ','), grouped(tally.blocks.times, ','));
    line(text, &format!("  would block {} in all, instead of {}", blocks.0, blocks.1));
    let calls = counted(tally.tool_calls, "tool call");
    let newly = grouped(it.newly_stopped.times, ',');
    line(text, &format!("  would newly block, or ask about, {newly} of {calls}"));
    examples(text, &it.newly_stopped, &ExampleStyle::all("block  ", TextColor::Red), screen);
    line(
        text,
        &format!(
            "  would no longer block, or ask about, {}",
            grouped(it.no_longer_stopped.times, ',')
        ),
    );
    examples(text, &it.no_longer_stopped, &ExampleStyle::all("pass   ", TextColor::Green), screen);
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
            examples(text, count, &ExampleStyle::all("       ", TextColor::Plain), screen);
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

fn megabytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        1_000_000.. => format!("{} MB", grouped(bytes / 1_000_000, ',')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_at_a_glance() {
        let texts = [0, 7, 999, 1000, 5120, 1_234_567].map(|it| grouped(it, ','));
        assert_eq!(texts, ["0", "7", "999", "1,000", "5,120", "1,234,567"]);
        assert_eq!([counted(1, "stop"), counted(0, "stop")], ["1 stop", "0 stops"]);
        assert_eq!([0, 1, 999_999, 2_500_000].map(megabytes), ["0 kB", "1 kB", "1000 kB", "2 MB"]);
    }
}
