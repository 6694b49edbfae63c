//! `policyd log`: what was decided, one line each, from the decision log of the project.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ListFormat, LogArguments};
use crate::lists::print_empty;
use policyd_app::overview::ProjectScope;
use policyd_app::sessions::log_reader::{ChangedLog, LogContent, LogQuery, LogReader, ProjectLine};
use policyd_app::workspace::project;
use policyd_evaluation::message::in_one_line;
use policyd_record::decision_log::{Entry, LoggedGuard, NoOpinionKind};
use policyd_record::notice::{Notice, NoticeKind};
use policyd_record::paint::TextColor;
use policyd_record::table::{Align, Screen, TextCell, TextTable};
use policyd_replay::subject;
use policyd_report::log_summary::LogSummary;
use policyd_report::overview::short_name;
use policyd_store::log_chain::ChainReport;
use policyd_world::{World, WorldError};
use policyd_yaml::time::{Timestamp, parse_duration};

/// Help for an invalid duration after `--since`.
pub(super) const SINCE_HELP: &str =
    "`--since` must be a duration with a unit, such as `12h` or `3d`";

/// Returns the time of the oldest entry that `--since` requests. Without `--since`, the earliest time. `None` if the
/// duration is invalid.
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
    let scope = match arguments.all {
        true => ProjectScope::All,
        false => ProjectScope::Some(vec![project::find(world, None)]),
    };
    let mut reader = LogReader::new(world, &scope);
    if arguments.verify {
        return verify(console, &reader, arguments.format);
    }
    warn_of_changes(console, &reader);
    if arguments.summary {
        return summarize(console, &reader, arguments, oldest);
    }
    let LogContent { lines, oldest, problems } =
        read(console, &mut reader, arguments, Some(oldest), arguments.lines);
    let code = if problems.is_empty() { EXIT_OK } else { EXIT_BROKEN };
    if arguments.would_block && lines.is_empty() && !arguments.follow {
        console.eprint(&nothing_observed(oldest, arguments.since.as_deref()));
    }
    if arguments.approved && lines.is_empty() && !arguments.follow {
        console.eprint(
            "policyd answered no permission prompt\nhelp: `policyd install --approve read` lets it approve calls that only read",
        );
    }
    if lines.is_empty() && !(arguments.would_block || arguments.approved || arguments.follow) {
        print_empty(console, arguments.format, "logged decision matches");
    }
    let surplus = lines.len().saturating_sub(arguments.lines);
    let shown = lines.get(surplus..).unwrap_or_default();
    if print(console, shown, arguments) && arguments.follow {
        follow(world, console, &mut reader, arguments);
    }
    code
}

/// Counts the decisions that the arguments ask for.
fn summarize(
    console: &mut Console<'_>,
    reader: &LogReader<'_>,
    arguments: &LogArguments,
    since: Timestamp,
) -> u8 {
    let mut summary = LogSummary::default();
    let problems = reader.visit(since, |_, entry| {
        if NoticeKind::find(&entry.event).is_none() && is_asked_for(&entry, arguments) {
            summary.add(&entry);
        }
    });
    console.print(&match arguments.format {
        ListFormat::Json => format!("{:#}\n", summary.to_json()),
        ListFormat::Text | ListFormat::Compact => summary.to_text(console.screen()),
    });
    report_unread(console, &problems)
}

/// Reports the logs that could not be read.
fn report_unread(console: &mut Console<'_>, problems: &[(PathBuf, WorldError)]) -> u8 {
    for (path, error) in problems {
        console.eprint(&format!("could not read {}: {error}", path.display()));
    }
    if problems.is_empty() { EXIT_OK } else { EXIT_BROKEN }
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
    for ChangedLog { path, problem, .. } in reader.changed() {
        console.eprint(&format!(
            "warning: the decision log was changed: {problem}\nhelp: `policyd log --verify` lists every change of {}",
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
    let LogArguments { session, notable, would_block, approved, .. } = arguments;
    let accepts = |entry: &Entry| is_asked_for(entry, arguments);
    let asks = session.is_some() || *notable || *would_block || *approved;
    let reading = reader.read(LogQuery { since, newest, accepts: asks.then_some(&accepts) });
    report_unread(console, &reading.problems);
    reading
}

/// Whether the arguments ask for an entry.
fn is_asked_for(entry: &Entry, arguments: &LogArguments) -> bool {
    let LogArguments { session, notable, would_block, approved, .. } = arguments;
    session.as_ref().is_none_or(|id| entry.session_id.starts_with(id))
        && (!notable || is_notable(entry))
        && (!would_block || entry.would_stop())
        && (!approved || entry.approved_call())
}

/// Prints new entries until the user interrupts, or standard output is closed.
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
        let new = read(console, reader, arguments, None, usize::MAX).lines;
        if !print(console, &new, arguments) {
            return;
        }
    }
}

/// Prints entries; returns whether a reader is left.
fn print(console: &mut Console<'_>, shown: &[ProjectLine], arguments: &LogArguments) -> bool {
    if shown.is_empty() {
        return true;
    }
    let screen = match arguments.format {
        ListFormat::Json => {
            let json = |it: &ProjectLine| {
                let mut line: Value = serde_json::from_slice(&it.line).unwrap_or_default();
                if let Some(fields) = line.as_object_mut().filter(|_| arguments.all) {
                    fields.insert("project".to_owned(), it.project.as_str().into());
                }
                format!("{line}\n")
            };
            return console.try_print(&shown.iter().map(json).collect::<String>());
        }
        ListFormat::Text => console.screen(),
        ListFormat::Compact => Screen::default(),
    };
    console.try_print(&table(shown, arguments.all).render(screen))
}

fn is_notable(entry: &Entry) -> bool {
    entry.stopped_call()
        || NoticeKind::find(&entry.event).is_some_and(|it| it != NoticeKind::BreakerChange)
        || entry.guards.iter().any(|it| it.status == "unknown")
        || entry.release_reason().is_some()
        || !entry.problems.is_empty()
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
fn table(lines: &[ProjectLine], all: bool) -> TextTable {
    let columns = vec![Align::Left; if all { 6 } else { 5 }];
    let mut table = TextTable::new(0, &columns);
    let mut projects: Vec<&str> = lines.iter().map(|it| it.project.as_str()).collect();
    projects.sort_unstable();
    projects.dedup();
    for it in lines {
        let Some(entry) = it.entry() else { continue };
        let mut cells = row(&entry);
        if all {
            cells.insert(1, short_name(&it.project, &projects).into());
        }
        table.row(cells);
    }
    table
}

fn row(entry: &Entry) -> Vec<TextCell> {
    let kind = NoticeKind::find(&entry.event);
    let (what, findings) = match (kind, &entry.notice) {
        (Some(kind), Some(notice)) => of_notice(kind, notice),
        _ if !entry.guards.is_empty() => of_guards(entry),
        _ if entry.left_prompt() => of_prompt(entry),
        _ => of_stop(entry),
    };
    let by = entry.by.iter().map(|it| format!("by {it}"));
    let findings = findings.into_iter().chain(entry.problems.iter().cloned()).chain(by);
    let findings = in_one_line(&findings.collect::<Vec<_>>().join("; "));
    let session: String = entry.session_id.chars().take(8).collect();
    let what = TextCell::new(what.as_str(), color(&what));
    let (time, id) = (entry.timestamp.as_str(), entry.id.as_str());
    vec![time.into(), id.into(), session.into(), what, findings.into()]
}

/// A permission prompt that the user answered, and the call that it was about.
fn of_prompt(entry: &Entry) -> (String, Vec<String>) {
    let tool = entry.tool.as_deref().unwrap_or_default();
    let call = entry.read_call().map(|it| subject(tool, &it.input));
    (format!("prompt {tool}"), call.into_iter().collect())
}

/// What happened beside decisions, and to what.
fn of_notice(kind: NoticeKind, notice: &Notice) -> (String, Vec<String>) {
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
    let what = format!("{word} {}", notice.outcome).trim_end().to_owned();
    (what, vec![format!("{}: {}", notice.subject, notice.text)])
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

/// The outcome of a stop, and what was found at it.
fn of_stop(entry: &Entry) -> (String, Vec<String>) {
    let found = |consequence: &str, mark: &str| -> Vec<String> {
        let all = entry.verdicts.iter().filter(|it| it.consequence == consequence);
        all.map(|it| format!("{mark}{}", it.to_line())).collect()
    };
    let what = match (entry.decision.as_str(), entry.release_reason()) {
        ("block", _) if !entry.spoken => "block dropped".to_owned(),
        ("block", _) => "block".to_owned(),
        _ if NoticeKind::find(&entry.event).is_some() => entry.event.clone(),
        (_, why) => match (entry.no_opinion_kind, why) {
            (Some(NoOpinionKind::Paused), _) => "paused".to_owned(),
            (Some(NoOpinionKind::Disabled), _) => "disabled".to_owned(),
            (None, _) if entry.session_type.is_none() => "not evaluated".to_owned(),
            (None, None) => "clean".to_owned(),
            (None, Some(why)) => format!("released ({why})"),
        },
    };
    let would = entry.verdicts.iter().filter(|it| it.would_block);
    let would = would.map(|it| format!("would block: {}", it.to_line())).collect();
    // What blocked comes first.
    let findings = [found("blocks", ""), would, found("warns", "warn: ")].concat();
    (what, findings.into_iter().chain(entry.no_opinion.clone()).collect())
}

/// The decision of guards about an event, and the message of each guard, first those that decided.
fn of_guards(entry: &Entry) -> (String, Vec<String>) {
    let Entry { decision, .. } = entry;
    let message = |it: &LoggedGuard| {
        let mark = match (&it.would, it.mode.as_str(), it.status.as_str()) {
            (Some(would), ..) => format!("would {would}: "),
            (None, "shadow", _) => "log: ".to_owned(),
            _ if it.observed => "log: ".to_owned(),
            (None, "warn", _) => "warn: ".to_owned(),
            (None, _, "unknown") => "unknown: ".to_owned(),
            _ if it.decision == *decision => String::new(),
            _ => format!("{}: ", it.decision),
        };
        let program = Some(&it.program).filter(|it| !it.is_empty());
        let program = program.map(|it| format!(" (`{it}`)")).unwrap_or_default();
        let why = it.why.as_ref().map(|it| format!("{it}. ")).unwrap_or_default();
        format!("{mark}{}{program}: {why}{}", it.id, it.message.replace('\n', " "))
    };
    let decided = |it: &&LoggedGuard| it.decision == *decision && it.mode == "enforce";
    let (first, rest): (Vec<_>, Vec<_>) = entry.guards.iter().partition(decided);
    let about = entry.tool.as_ref().filter(|it| !it.is_empty()).unwrap_or(&entry.event);
    let word = if decision == "none" { "no decision" } else { decision };
    // What the call was about helps where the message does not repeat it.
    let call = entry.read_call().map(|it| in_one_line(&subject(about, &it.input)));
    let call = call.filter(|it| it.starts_with(about.as_str()) && it.len() > about.len());
    let about = call.as_ref().map_or(about.as_str(), String::as_str);
    (format!("{word} {about}"), first.into_iter().chain(rest).map(message).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stop_that_was_not_evaluated_shows_the_kind_of_its_reason() {
        for (kind, why, what) in [
            ("paused", "a pause in other words", "paused  "),
            ("disabled", "paused? no, disabled", "disabled  "),
        ] {
            let entry = json!({"timestamp": "T", "id": "a", "session_id": "s", "event": "stop",
                "decision": "none", "no_opinion": why, "no_opinion_kind": kind});
            let told = line(&entry);
            assert!(told.contains(what) && told.contains(why), "{told}");
        }
    }

    fn line(entry: &Value) -> String {
        let line = entry.to_string().into_bytes();
        let line = ProjectLine { project: "/w/app".to_owned(), at: None, line };
        table(&[line], false).render(Screen::default())
    }

    fn notable(entry: &Value) -> bool {
        is_notable(&Entry::parse(entry.to_string().as_bytes()).unwrap())
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
        assert!(notable(&entry));
        assert_eq!(line(&entry), "T  a1    run human_needed  r1: fix it: asks\n");
        let entry = json!({"timestamp": "T", "id": "a1", "event": "breaker_open",
            "decision": "none", "notice": {"subject": "api/x", "text": "HTTP 500"}});
        assert_eq!(line(&entry), "T  a1    breaker open  api/x: HTTP 500\n");
        let entry = json!({"timestamp": "T", "id": "a1", "event": "breaker_change", "decision": "none",
            "notice": {"subject": "api/x", "outcome": "closed", "text": "a user reset it"}});
        assert_eq!(line(&entry), "T  a1    breaker closed  api/x: a user reset it\n");
        assert!(!notable(&entry));
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
        assert!(notable(&entry));
        let entry = json!({"timestamp": "T", "id": "a1", "session_id": "s", "decision": "none",
            "event": "user_prompt_submit", "guards": [guard("told", "context", "enforce")]});
        let told = line(&entry);
        assert!(
            told.contains("no decision user_prompt_submit") && told.contains("context: told"),
            "{told}"
        );
        assert!(!notable(&entry));
    }
}
