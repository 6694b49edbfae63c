//! `policyd log`: what was decided, one line each, from the decision log of the project.

use serde_json::Value;

use super::{Console, EXIT_OK, EXIT_USAGE, ListFormat, LogArguments};
use crate::app::packs;
use crate::app::sessions::log_summary::{Summary, guards, text, was_judged};
use crate::app::sessions::recorded;
use crate::app::workspace::project;
use crate::evaluation::message::in_one_line;
use crate::report::decision_log::{self, NoOpinionKind};
use crate::report::paint::TextColor;
use crate::report::table::{Align, Screen, TextCell, TextTable};
use crate::time::{Timestamp, parse_duration};
use crate::world::World;

/// Said where `--since` is no duration.
pub(super) const SINCE_HELP: &str =
    "`--since` must be a duration with a unit, such as `12h` or `3d`";

/// The time that `--since` names, the beginning of time where it is left out; `None` where it is no
/// duration.
pub(super) fn oldest(world: &dyn World, since: Option<&str>) -> Option<Timestamp> {
    let Some(since) = since else { return Some(Timestamp::from_millis(i64::MIN)) };
    let age = i64::try_from(parse_duration(since).ok()?.as_millis()).unwrap_or(i64::MAX);
    Some(Timestamp::from_millis(world.now().millis().saturating_sub(age)))
}

/// Lists decisions, oldest first.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &LogArguments) -> u8 {
    let Some(oldest) = oldest(world, arguments.since.as_deref()) else {
        console.eprint(SINCE_HELP);
        return EXIT_USAGE;
    };
    let project = project::find(world, None);
    let policy = packs::policy(world, &packs::find(world, &project, None)).ok();
    let entries = recorded::entries(world, &project, policy.as_ref());
    let wanted: Vec<&Value> = entries
        .iter()
        .filter(|it| Timestamp::parse(text(it, "timestamp")).is_none_or(|at| at >= oldest))
        .filter(|it| {
            arguments.session.as_deref().is_none_or(|id| text(it, "session_id").starts_with(id))
        })
        .filter(|it| !arguments.notable || is_notable(it))
        .filter(|it| !arguments.would_block || would_block(it))
        .collect();
    if arguments.would_block && wanted.is_empty() {
        console.eprint(&nothing_observed(&entries, arguments.since.as_deref()));
    }
    if arguments.summary {
        let judged: Vec<&Value> = wanted.into_iter().filter(|it| !is_switch(it)).collect();
        let summary = Summary::of(&judged);
        console.print(&match arguments.format {
            ListFormat::Json => format!("{:#}\n", summary.to_json()),
            ListFormat::Text | ListFormat::Compact => summary.to_text(console.screen()),
        });
        return EXIT_OK;
    }
    let surplus = wanted.len().saturating_sub(arguments.lines);
    let shown = wanted.into_iter().skip(surplus);
    match arguments.format {
        ListFormat::Json => shown.for_each(|it| console.print(&format!("{it}\n"))),
        ListFormat::Text => console.print(&table(shown).render(console.screen())),
        ListFormat::Compact => console.print(&table(shown).render(Screen::default())),
    }
    EXIT_OK
}

/// Whether somebody switched the gate: no stop was judged.
fn is_switch(entry: &Value) -> bool {
    decision_log::is_switch(text(entry, "event"))
}

fn is_notable(entry: &Value) -> bool {
    let problems = entry.get("problems").and_then(Value::as_array);
    let unknown = |it: &Value| text(it, "status") == "unknown";
    matches!(text(entry, "decision"), "block" | "halt" | "ask")
        || is_switch(entry)
        || guards(entry).is_some_and(|it| it.iter().any(unknown))
        || !text(entry, "release").is_empty()
        || problems.is_some_and(|it| !it.is_empty())
}

/// Whether a rule would have blocked or asked, had it been enforced.
fn would_block(entry: &Value) -> bool {
    let verdicts = entry.get("verdicts").and_then(Value::as_array).into_iter().flatten();
    let mut verdicts = verdicts.filter(|it| it.get("would_block") == Some(&Value::Bool(true)));
    verdicts.next().is_some()
        || guards(entry).is_some_and(|it| it.iter().any(|it| !text(it, "would").is_empty()))
}

/// That no entry would have been blocked, and how far back the log was searched.
fn nothing_observed(entries: &[Value], since: Option<&str>) -> String {
    match (since, entries.first()) {
        (_, None) => "no decision of this project is logged yet".to_owned(),
        (Some(since), _) => format!("no rule would have blocked or asked within {since}"),
        (None, Some(first)) => {
            let first = text(first, "timestamp");
            format!("no rule would have blocked or asked since the first entry of {first}")
        }
    }
}

/// `time  id  session  what  findings`
fn table<'e>(entries: impl Iterator<Item = &'e Value>) -> TextTable {
    let mut table = TextTable::new(0, &[Align::Left; 5]);
    entries.for_each(|it| table.row(row(it)));
    table
}

fn row(entry: &Value) -> Vec<TextCell> {
    let (what, findings) = match guards(entry) {
        Some(guards) => of_guards(entry, guards),
        None => of_stop(entry),
    };
    let problems = entry.get("problems").and_then(Value::as_array).map(Vec::as_slice);
    let problems = problems.unwrap_or_default().iter().filter_map(Value::as_str).map(str::to_owned);
    let said: Vec<String> = findings.into_iter().chain(problems).collect();
    let session: String = text(entry, "session_id").chars().take(8).collect();
    let (time, id) = (text(entry, "timestamp"), text(entry, "id"));
    let said = in_one_line(&said.join("; "));
    let what = TextCell::new(what.as_str(), color(&what));
    vec![time.into(), id.into(), session.into(), what, said.into()]
}

/// The color of a decision by its first word.
fn color(what: &str) -> TextColor {
    match what.split(' ').next().unwrap_or_default() {
        "block" | "halt" => TextColor::Red,
        "ask" | "released" | "paused" | "disabled" => TextColor::Yellow,
        "clean" | "allow" => TextColor::Green,
        _ => TextColor::Plain,
    }
}

/// What became of a stop, and what was found at it.
fn of_stop(entry: &Value) -> (String, Vec<String>) {
    let verdicts = entry.get("verdicts").and_then(Value::as_array).map(Vec::as_slice);
    let verdicts = verdicts.unwrap_or_default();
    let found = |consequence: &str, mark: &str| -> Vec<String> {
        let all = verdicts.iter().filter(|it| text(it, "consequence") == consequence);
        all.map(|it| format!("{mark}{}: {}", text(it, "id"), text(it, "details"))).collect()
    };
    let what = match (text(entry, "decision"), text(entry, "release")) {
        ("block", _) if entry.get("spoken") == Some(&Value::Bool(false)) => {
            "block dropped".to_owned()
        }
        ("block", _) => "block".to_owned(),
        _ if is_switch(entry) => text(entry, "event").to_owned(),
        (_, why) => match NoOpinionKind::of_entry(entry) {
            Some(NoOpinionKind::Paused) => "paused".to_owned(),
            Some(NoOpinionKind::Disabled) => "disabled".to_owned(),
            None if !was_judged(entry) => "not evaluated".to_owned(),
            None if why.is_empty() => "clean".to_owned(),
            None => format!("released ({why})"),
        },
    };
    let silent = Some(text(entry, "no_opinion").to_owned()).filter(|it| !it.is_empty());
    // What blocked stands first.
    let would = verdicts.iter().filter(|it| it.get("would_block") == Some(&Value::Bool(true)));
    let would = would.map(|it| format!("would block: {}: {}", text(it, "id"), text(it, "details")));
    let findings = [found("blocks", ""), would.collect(), found("warns", "warn: ")].concat();
    (what, findings.into_iter().chain(silent).collect())
}

/// What guards made of an event, and what each of them said, what decided first.
fn of_guards(entry: &Value, guards: &[Value]) -> (String, Vec<String>) {
    let decision = text(entry, "decision");
    let said = |it: &Value| {
        let mark = match (text(it, "mode"), text(it, "status")) {
            _ if !text(it, "would").is_empty() => format!("would {}: ", text(it, "would")),
            ("shadow", _) => "log: ".to_owned(),
            _ if it.get("observed") == Some(&Value::Bool(true)) => "log: ".to_owned(),
            ("warn", _) => "warn: ".to_owned(),
            (_, "unknown") => "unknown: ".to_owned(),
            _ if text(it, "decision") == decision => String::new(),
            _ => format!("{}: ", text(it, "decision")),
        };
        let program = Some(text(it, "program")).filter(|it| !it.is_empty());
        let program = program.map(|it| format!(" (`{it}`)")).unwrap_or_default();
        let why = Some(text(it, "why")).filter(|it| !it.is_empty());
        let why = why.map(|it| format!("{it}. ")).unwrap_or_default();
        let message = text(it, "message").replace('\n', " ");
        format!("{mark}{}{program}: {why}{message}", text(it, "id"))
    };
    let decided = |it: &&Value| text(it, "decision") == decision && text(it, "mode") == "enforce";
    let (first, rest): (Vec<&Value>, Vec<&Value>) = guards.iter().partition(decided);
    let tool = text(entry, "tool");
    let about = if tool.is_empty() { text(entry, "event") } else { tool };
    let word = if decision == "none" { "no decision" } else { decision };
    (format!("{word} {about}"), first.into_iter().chain(rest).map(said).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stop_that_was_not_evaluated_shows_the_kind_of_its_reason() {
        for (kind, why, what) in [
            (json!("paused"), "a pause in other words", "paused  "),
            (json!("disabled"), "paused? no, disabled", "disabled  "),
            (json!(null), "paused until 12:00 (5m left)", "not evaluated  "),
        ] {
            let entry = json!({"timestamp": "T", "id": "a", "session_id": "s", "event": "stop",
                "decision": "none", "no_opinion": why, "no_opinion_kind": kind});
            let told = line(&entry);
            assert!(told.contains(what) && told.contains(why), "{told}");
        }
    }

    fn line(entry: &Value) -> String {
        table([entry].into_iter()).render(Screen::default())
    }

    #[test]
    fn an_old_entry_shows_the_kind_of_its_sentence() {
        for (why, what) in [
            ("paused until 12:00 (5m left)", "paused  "),
            ("disabled: the variable POLICYD_OFF is set", "disabled  "),
            ("the pack does not load: policies/a.yaml:1:1", "not evaluated  "),
            ("the agent is planning", "not evaluated  "),
        ] {
            let entry = json!({"timestamp": "T", "id": "a", "session_id": "s", "event": "stop",
                "decision": "none", "no_opinion": why});
            let told = line(&entry);
            assert!(told.contains(what) && told.contains(why), "{told}");
        }
    }

    #[test]
    fn a_line_tells_what_guards_said() {
        let guard = |id: &str, decision: &str, mode: &str| {
            json!({"id": id, "status": "fired", "decision": decision, "mode": mode, "message": "No.",
                "program": "git push", "why": null})
        };
        let unknown = json!({"id": "odd", "status": "unknown", "decision": "warn", "mode": "enforce",
            "message": "Odd.", "program": "", "why": "the line was not understood"});
        let entry = json!({"timestamp": "T", "id": "a1", "session_id": "s", "decision": "block",
            "tool": "Bash", "guards": [guard("seen", "block", "shadow"), unknown,
            guard("asked", "ask", "enforce"), guard("never", "block", "enforce")]});
        assert_eq!(
            line(&entry),
            "T  a1  s  block Bash  \
             never (`git push`): No.; log: seen (`git push`): No.; \
             unknown: odd: the line was not understood. Odd.; ask: asked (`git push`): No.\n"
        );
        assert!(is_notable(&entry));
        let entry = json!({"timestamp": "T", "id": "a1", "session_id": "s", "decision": "none",
            "event": "user_prompt_submit", "guards": [guard("told", "context", "enforce")]});
        let told = line(&entry);
        assert!(
            told.contains("no decision user_prompt_submit") && told.contains("context: told"),
            "{told}"
        );
        assert!(!is_notable(&entry));
    }
}
