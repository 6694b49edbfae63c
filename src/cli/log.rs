//! `policyd log`: what was decided, one line each, from the decision log of the project.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ListFormat, LogArguments};
use policyd_app::sessions::log_reader::{LogContent, LogQuery, LogReader, ProjectEntry};
use policyd_app::sessions::log_summary::{Summary, guards, text, was_judged};
use policyd_app::workspace::project;
use policyd_evaluation::message::in_one_line;
use policyd_record::decision_log::NoOpinionKind;
use policyd_record::notice::NoticeKind;
use policyd_record::paint::TextColor;
use policyd_record::table::{Align, Screen, TextCell, TextTable};
use policyd_report::overview::short_name;
use policyd_store::log_chain::ChainReport;
use policyd_world::World;
use policyd_yaml::time::{Timestamp, parse_duration};

/// Said where `--since` is no duration.
pub(super) const SINCE_HELP: &str =
    "`--since` must be a duration with a unit, such as `12h` or `3d`";

/// The time that `--since` names, the beginning of time where it is left out; `None` where it is no
/// duration.
pub(super) fn oldest(world: &dyn World, since: Option<&str>) -> Option<Timestamp> {
    let Some(since) = since else { return Some(Timestamp::from_millis(i64::MIN)) };
    Some(world.now().minus(parse_duration(since).ok()?))
}

/// Interval at which `--follow` looks for new entries.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

/// Lists decisions, oldest first.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &LogArguments) -> u8 {
    let Some(oldest) = oldest(world, arguments.since.as_deref()) else {
        console.eprint(SINCE_HELP);
        return EXIT_USAGE;
    };
    let mut reader = match arguments.all {
        true => LogReader::of_all_projects(world),
        false => LogReader::of_projects(world, &[project::find(world, None)]),
    };
    if arguments.verify {
        return verify(console, &reader, arguments.format);
    }
    warn_of_changes(console, &reader);
    let newest = if arguments.summary { usize::MAX } else { arguments.lines };
    let LogContent { entries, oldest, problems } =
        read(console, &mut reader, arguments, Some(oldest), newest);
    let code = if problems.is_empty() { EXIT_OK } else { EXIT_BROKEN };
    if arguments.would_block && entries.is_empty() && !arguments.follow {
        console.eprint(&nothing_observed(oldest, arguments.since.as_deref()));
    }
    if arguments.summary {
        let is_decision = |it: &&Value| NoticeKind::find(text(it, "event")).is_none();
        let decisions = entries.iter().map(|it| &it.entry).filter(is_decision);
        let summary = Summary::of(&decisions.collect::<Vec<_>>());
        console.print(&match arguments.format {
            ListFormat::Json => format!("{:#}\n", summary.to_json()),
            ListFormat::Text | ListFormat::Compact => summary.to_text(console.screen()),
        });
        return code;
    }
    let surplus = entries.len().saturating_sub(arguments.lines);
    let shown = entries.get(surplus..).unwrap_or_default();
    if print(console, shown, arguments) && arguments.follow {
        follow(world, console, &mut reader, arguments);
    }
    code
}

/// Reports for each log whether lines were removed or changed.
fn verify(console: &mut Console<'_>, reader: &LogReader<'_>, format: ListFormat) -> u8 {
    let mut code = EXIT_OK;
    for (path, result) in reader.verify() {
        let report = match result {
            Ok(report) => report,
            Err(error) => {
                console.eprint(&format!("{}: {error}", path.display()));
                code = EXIT_BROKEN;
                continue;
            }
        };
        let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
        if !problems.is_empty() && code == EXIT_OK {
            code = EXIT_FOUND;
        }
        let ChainReport { lines, unchained, unlocked, .. } = report;
        if format == ListFormat::Json {
            let shown = json!({"log": path.to_str(), "lines": lines, "unchained": unchained,
                "unlocked": unlocked, "problems": problems});
            console.print(&format!("{shown}\n"));
            continue;
        }
        let result = if problems.is_empty() { "no line was removed or changed" } else { "changed" };
        console.print(&format!("{}: {lines} lines: {result}\n", path.display()));
        for problem in problems {
            console.print(&format!("  {problem}\n"));
        }
        if unchained > 0 {
            console.print(&format!(
                "  not checked: {unchained} lines that an earlier version wrote\n"
            ));
        }
        if unlocked > 0 {
            console.print(&format!(
                "  not certain: {unlocked} lines that were written while another process held the lock; the removal of one \
                 of them can remain unnoticed\n"
            ));
        }
    }
    code
}

/// Warns of logs that were changed.
fn warn_of_changes(console: &mut Console<'_>, reader: &LogReader<'_>) {
    for (path, result) in reader.verify() {
        // What cannot be read is reported by the reading.
        let Some(first) = result.ok().and_then(|it| it.problems.into_iter().next()) else {
            continue;
        };
        console.eprint(&format!(
            "warning: the decision log was changed: {first}\nhelp: `policyd log --verify` lists every change of {}",
            path.display()
        ));
    }
}

/// Reads the new entries that the arguments ask for; reports logs that cannot be read.
fn read(
    console: &mut Console<'_>,
    reader: &mut LogReader<'_>,
    arguments: &LogArguments,
    since: Option<Timestamp>,
    newest: usize,
) -> LogContent {
    let LogArguments { session, notable, would_block: observed, .. } = arguments;
    let accepts = |entry: &Value| {
        session.as_ref().is_none_or(|id| text(entry, "session_id").starts_with(id))
            && (!notable || is_notable(entry))
            && (!observed || would_block(entry))
    };
    let asks = session.is_some() || *notable || *observed;
    let reading = reader.read(LogQuery { since, newest, accepts: asks.then_some(&accepts) });
    for (path, error) in &reading.problems {
        console.eprint(&format!("could not read {}: {error}", path.display()));
    }
    reading
}

/// Prints new entries until the user interrupts, or nobody reads the output any more.
fn follow(
    world: &dyn World,
    console: &mut Console<'_>,
    reader: &mut LogReader<'_>,
    arguments: &LogArguments,
) {
    loop {
        world.sleep(FOLLOW_INTERVAL);
        if world.interrupted() {
            return;
        }
        if arguments.all {
            reader.add_projects();
        }
        let new = read(console, reader, arguments, None, usize::MAX).entries;
        if !print(console, &new, arguments) {
            return;
        }
    }
}

/// Prints entries; returns whether a reader is left.
fn print(console: &mut Console<'_>, shown: &[ProjectEntry], arguments: &LogArguments) -> bool {
    if shown.is_empty() {
        return true;
    }
    let screen = match arguments.format {
        ListFormat::Json => {
            let json = |it: &ProjectEntry| {
                let mut entry = it.entry.clone();
                if let Some(fields) = entry.as_object_mut().filter(|_| arguments.all) {
                    fields.insert("project".to_owned(), it.project.as_str().into());
                }
                format!("{entry}\n")
            };
            return console.try_print(&shown.iter().map(json).collect::<String>());
        }
        ListFormat::Text => console.screen(),
        ListFormat::Compact => Screen::default(),
    };
    console.try_print(&table(shown, arguments.all).render(screen))
}

fn is_notable(entry: &Value) -> bool {
    let problems = entry.get("problems").and_then(Value::as_array);
    let unknown = |it: &Value| text(it, "status") == "unknown";
    matches!(text(entry, "decision"), "block" | "halt" | "ask")
        || NoticeKind::find(text(entry, "event")).is_some_and(|it| it != NoticeKind::BreakerChange)
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

/// That no entry would have been blocked, and how far back the log was searched; `oldest` is the time of its first entry.
fn nothing_observed(oldest: Option<Timestamp>, since: Option<&str>) -> String {
    match (since, oldest) {
        (Some(since), _) => format!("no rule would have blocked or asked within {since}"),
        (None, None) => "no decision of this project is logged yet".to_owned(),
        (None, Some(oldest)) => {
            format!("no rule would have blocked or asked since the first entry of {oldest}")
        }
    }
}

/// `time  id  session  what  findings`; with `all`, the name of the project comes after the time.
fn table(entries: &[ProjectEntry], all: bool) -> TextTable {
    let columns = vec![Align::Left; if all { 6 } else { 5 }];
    let mut table = TextTable::new(0, &columns);
    let mut projects: Vec<&str> = entries.iter().map(|it| it.project.as_str()).collect();
    projects.sort_unstable();
    projects.dedup();
    for it in entries {
        let mut cells = row(&it.entry);
        if all {
            cells.insert(1, short_name(&it.project, &projects).into());
        }
        table.row(cells);
    }
    table
}

fn row(entry: &Value) -> Vec<TextCell> {
    let (what, findings) = match (notice(entry), guards(entry)) {
        (Some((kind, notice)), _) => of_notice(kind, notice),
        (None, Some(guards)) => of_guards(entry, guards),
        (None, None) => of_stop(entry),
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

/// The kind of a notice, and what it contains.
fn notice(entry: &Value) -> Option<(NoticeKind, &Value)> {
    Some((NoticeKind::find(text(entry, "event"))?, entry.get("notice")?))
}

/// What happened beside decisions, and to what.
fn of_notice(kind: NoticeKind, notice: &Value) -> (String, Vec<String>) {
    let word = match kind {
        NoticeKind::RunEnd => "run".to_owned(),
        NoticeKind::BreakerChange => "breaker".to_owned(),
        NoticeKind::BreakerOpen
        | NoticeKind::DeadLetter
        | NoticeKind::Escalation
        | NoticeKind::SignalRequest
        | NoticeKind::CallRequest
        | NoticeKind::Switch(_) => kind.name().replace('_', " "),
    };
    let parts = [word.as_str(), text(notice, "outcome")];
    let what: Vec<&str> = parts.into_iter().filter(|it| !it.is_empty()).collect();
    (what.join(" "), vec![format!("{}: {}", text(notice, "subject"), text(notice, "text"))])
}

/// The color of a decision by its first word.
fn color(what: &str) -> TextColor {
    match what.split_once(' ').unwrap_or((what, "")) {
        ("block" | "halt" | "escalation", _) | ("run", "human_needed") => TextColor::Red,
        ("clean" | "allow", _) | ("run", "complete") | ("breaker", "closed") => TextColor::Green,
        ("ask" | "released" | "paused" | "disabled" | "run" | "breaker" | "dead", _) => {
            TextColor::Yellow
        }
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
        _ if NoticeKind::find(text(entry, "event")).is_some() => text(entry, "event").to_owned(),
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
        let entry = ProjectEntry { project: "/w/app".to_owned(), at: None, entry: entry.clone() };
        table(&[entry], false).render(Screen::default())
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
    fn notices_are_notable_and_show_what_happened() {
        let entry = json!({"timestamp": "T", "id": "a1", "event": "run_end", "decision": "none",
            "notice": {"subject": "r1", "outcome": "human_needed", "text": "fix it: asks"}});
        assert!(is_notable(&entry));
        assert_eq!(line(&entry), "T  a1    run human_needed  r1: fix it: asks\n");
        let entry = json!({"timestamp": "T", "id": "a1", "event": "breaker_open",
            "decision": "none", "notice": {"subject": "api/x", "text": "HTTP 500"}});
        assert_eq!(line(&entry), "T  a1    breaker open  api/x: HTTP 500\n");
        let entry = json!({"timestamp": "T", "id": "a1", "event": "breaker_change", "decision": "none",
            "notice": {"subject": "api/x", "outcome": "closed", "text": "a user reset it"}});
        assert_eq!(line(&entry), "T  a1    breaker closed  api/x: a user reset it\n");
        assert!(!is_notable(&entry));
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
