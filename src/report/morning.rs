//! The morning report: what ended, what waits for a human, what it cost, what was blocked and released, and which
//! breakers and dead letters are left, over one or all projects. As text, Markdown, or one HTML file.

mod html;

use std::collections::BTreeMap;
use std::time::Duration;

use super::html::legend;
use super::overview::{
    CommandScope, ProjectRow, RunProgress, RunRow, Urgency, WaitingItem, short_name,
};
use super::plot::{self, Axis, Bar, Lane};
use maud::{Markup, html};
use policyd_base::limits::REPORT_ROWS_MAX;
use policyd_evaluation::message::in_one_line;
use policyd_record::decision_log::{Entry, LoggedGuard};
use policyd_record::inert::TextFormat;
use policyd_record::notice::{LoggedRun, NoticeKind};
use policyd_record::paint::TextColor;
use policyd_record::table::TextCell;
use policyd_record::table::{Align, Screen, TextTable};
use policyd_state::run::RunStatus;
use policyd_state::run::budget::TurnCost;
use policyd_store::alert_settings::MorningFormat;
use policyd_yaml::time::{Timestamp, duration_text, short_text};

/// Number of bars over the time of the report.
const BARS: usize = 24;

/// Quiet projects that are named.
const QUIET_SHOWN_MAX: usize = 10;

/// The time that a report is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportTime {
    /// End of the time.
    pub now: Timestamp,
    /// Length of the time.
    pub since: Duration,
    /// Offset of the local time from UTC, in seconds.
    pub utc_offset: i32,
}

impl ReportTime {
    /// Returns the start of the time.
    #[must_use]
    pub fn start(&self) -> Timestamp {
        self.now.minus(self.since)
    }

    /// Returns a point in time as the local clock shows it: `2026-01-31 07:30`.
    fn local(&self, at: Timestamp) -> String {
        let offset = i64::from(self.utc_offset).saturating_mul(1_000);
        let text = Timestamp::from_millis(at.millis().saturating_add(offset)).to_string();
        text.replace('T', " ").chars().take(16).collect()
    }

    /// Returns where a point in time is between the start, 0, and the end, 1.
    fn position(&self, at: Timestamp) -> f64 {
        at.since(self.start()).as_secs_f64() / self.since.as_secs_f64().max(1.0)
    }

    /// Returns the bar in which a point in time lies. `None` if it is outside.
    fn bar(&self, at: Timestamp) -> Option<usize> {
        let (start, end) = (self.start().millis(), self.now.millis());
        let length = end.saturating_sub(start).max(1);
        let since = at.millis().saturating_sub(start);
        let bars = i64::try_from(BARS).unwrap_or(i64::MAX);
        let bar = usize::try_from(since.saturating_mul(bars).checked_div(length)?).ok()?;
        (at.millis() <= end).then(|| bar.min(BARS.saturating_sub(1)))
    }
}

/// A run that ended in the time of the report.
#[derive(Debug, Clone, PartialEq)]
struct EndedRun {
    at: Timestamp,
    id: String,
    status: String,
    text: String,
    run: LoggedRun,
}

/// How often a rule acted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ReportedRule {
    blocked: u64,
    asked: u64,
    released: u64,
}

impl ReportedRule {
    const fn sum(self) -> u64 {
        self.blocked.saturating_add(self.asked).saturating_add(self.released)
    }
}

/// What happened in a project in the time of the report, from its decision log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProjectNight {
    runs: Vec<EndedRun>,
    rules: BTreeMap<String, ReportedRule>,
    /// Blocked and released decisions by bar.
    bars: [[u64; 2]; BARS],
    /// Openings of breakers and tasks that became dead letters.
    incidents: Vec<(Timestamp, NoticeKind, String)>,
}

impl ProjectNight {
    /// Adds an entry of the decision log of the project.
    pub fn add(&mut self, time: &ReportTime, entry: Entry) {
        let Some(at) = Timestamp::parse(&entry.timestamp) else { return };
        let Some(bar) = time.bar(at) else { return };
        if let Some(kind) = NoticeKind::find(&entry.event) {
            self.add_notice(at, kind, entry);
            return;
        }
        let blocks = entry.stopped_call();
        let blocked = blocks && (entry.spoken || entry.decision == "ask");
        let released = !blocked && entry.release_reason().is_some();
        if let Some([blocks, releases]) = self.bars.get_mut(bar) {
            *blocks = blocks.saturating_add(u64::from(blocked));
            *releases = releases.saturating_add(u64::from(released));
        }
        let asked = entry.decision == "ask";
        let mut count = |id: &str| {
            let counts = self.rules.entry(id.to_owned()).or_default();
            let number = match (blocked, asked) {
                (true, true) => &mut counts.asked,
                (true, false) => &mut counts.blocked,
                (false, _) => &mut counts.released,
            };
            *number = number.saturating_add(1);
        };
        if !blocked && !released {
            return;
        }
        entry.verdicts.iter().filter(|it| it.consequence == "blocks").for_each(|it| count(&it.id));
        let decided = |it: &&LoggedGuard| it.decision == entry.decision && it.mode == "enforce";
        entry.guards.iter().filter(decided).for_each(|it| count(&it.id));
    }

    fn add_notice(&mut self, at: Timestamp, kind: NoticeKind, entry: Entry) {
        let Some(notice) = entry.notice else { return };
        match kind {
            NoticeKind::RunEnd => {
                let run = notice.run.unwrap_or_default();
                let (id, status, text) = (notice.subject, notice.outcome, notice.text);
                self.runs.push(EndedRun { at, id, status, text, run });
            }
            NoticeKind::BreakerOpen | NoticeKind::DeadLetter => {
                self.incidents.push((at, kind, format!("{}: {}", notice.subject, notice.text)));
            }
            // Open questions are in the row of the project.
            NoticeKind::Escalation
            | NoticeKind::SignalRequest
            | NoticeKind::CallRequest
            | NoticeKind::BreakerChange
            | NoticeKind::Switch(_) => {}
        }
    }
}

/// A project in the report.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportedProject {
    /// What waits in it now.
    pub row: ProjectRow,
    /// What happened in it.
    pub night: ProjectNight,
}

impl ReportedProject {
    /// The run that has not ended.
    fn run_without_end(&self) -> Option<&RunRow> {
        let run = self.row.run.as_ref();
        run.filter(|it| !matches!(it.progress, RunProgress::Ended { .. }))
    }

    /// Each run that ended, with its last end. A resumed run has several ends.
    fn ended_runs(&self) -> impl Iterator<Item = &EndedRun> {
        let runs = &self.night.runs;
        let open = self.run_without_end().map(|it| &it.id);
        let goes_on = move |run: &EndedRun| {
            Some(&run.id) == open || runs.iter().any(|it| it.id == run.id && it.at > run.at)
        };
        runs.iter().filter(move |it| !goes_on(it))
    }

    /// Returns the cost of what runs did in the time of the report; of a run without an end, since it began.
    fn cost_of_runs(&self) -> TurnCost {
        let ends = self.night.runs.iter();
        let ended = ends.map(|it| it.run.unreported().cost());
        let ended = ended.fold(TurnCost::default(), TurnCost::plus);
        let open = self.run_without_end().map_or(TurnCost::default(), |run| {
            let ends = self.night.runs.iter().filter(|it| it.id == run.id);
            let reported = ends.max_by_key(|it| it.at).map(|it| it.run.usage.cost());
            let reported = reported.unwrap_or_default();
            TurnCost {
                known_usd: run.cost_usd - reported.known_usd,
                unpriced: run.unpriced_turns.saturating_sub(reported.unpriced),
            }
        });
        ended.plus(open)
    }
}

/// A part of the report, before it has a format.
enum ReportPart {
    /// A sentence.
    Text(String),
    /// Numbers with their names.
    Numbers(Vec<(String, String)>),
    Table(ReportTable),
    /// Only HTML shows it.
    Plot(Markup),
}

/// A table: the names of its columns, their alignment, and the rows.
struct ReportTable {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

struct ReportSection {
    title: &'static str,
    parts: Vec<ReportPart>,
}

/// The morning report over projects.
#[derive(Debug, Clone, PartialEq)]
pub struct MorningReport {
    time: ReportTime,
    projects: Vec<ReportedProject>,
}

impl MorningReport {
    /// Creates a report. Projects that need a human come first.
    #[must_use]
    pub fn new(time: ReportTime, mut projects: Vec<ReportedProject>) -> Self {
        projects.sort_by(|one, other| {
            let key = |it: &ReportedProject| (it.row.urgency(), it.row.directory.clone());
            key(one).cmp(&key(other))
        });
        Self { time, projects }
    }

    /// Formats the report.
    #[must_use]
    pub fn format(&self, format: MorningFormat, screen: Screen) -> String {
        let (title, sections) = (self.title(), self.sections());
        match format {
            MorningFormat::Text => text(&title, &sections, screen),
            MorningFormat::Markdown => markdown(&title, &sections),
            MorningFormat::Html => html::page(&title, &sections),
        }
    }

    /// Returns the most important numbers in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let numbers = self.numbers();
        let words: Vec<String> =
            numbers.iter().map(|(name, value)| format!("{name} {value}")).collect();
        words.join(", ")
    }

    fn title(&self) -> String {
        let (now, since) = (self.time.local(self.time.now), duration_text(self.time.since));
        format!("policyd: the last {since} until {now}")
    }

    fn sections(&self) -> Vec<ReportSection> {
        let all = vec![
            ReportSection { title: "", parts: vec![ReportPart::Numbers(self.numbers())] },
            self.waiting(),
            self.ended(),
            self.blocked(),
            self.incidents(),
            self.quiet(),
        ];
        all.into_iter().filter(|it| !it.parts.is_empty()).collect()
    }

    fn name(&self, project: &ReportedProject) -> String {
        let all: Vec<&str> = self.projects.iter().map(|it| it.row.directory.as_str()).collect();
        short_name(&project.row.directory, &all)
    }

    fn runs(&self) -> impl Iterator<Item = (&ReportedProject, &EndedRun)> {
        self.projects.iter().flat_map(|it| it.ended_runs().map(move |run| (it, run)))
    }

    fn numbers(&self) -> Vec<(String, String)> {
        let (mut complete, mut other) = (0_usize, 0_usize);
        for (_, run) in self.runs() {
            let is_complete = RunStatus::find(&run.status) == Some(RunStatus::Complete);
            *(if is_complete { &mut complete } else { &mut other }) += 1;
        }
        let open = self.projects.iter().filter_map(ReportedProject::run_without_end);
        let (abandoned, at_work): (Vec<&RunRow>, Vec<&RunRow>) =
            open.partition(|it| it.progress == RunProgress::Abandoned);
        let cost = self.projects.iter().map(ReportedProject::cost_of_runs);
        let cost = cost.fold(TurnCost::default(), TurnCost::plus);
        let sum = |index: usize| -> u64 {
            let bars = self.projects.iter().flat_map(|it| it.night.bars.iter());
            bars.filter_map(|it| it.get(index)).sum()
        };
        let waiting = self.projects.iter().filter(|it| it.row.urgency() == Urgency::Human).count();
        let dead_letters: usize = self.projects.iter().map(|it| it.row.dead_letters).sum();
        let breakers: usize = self.projects.iter().map(|it| it.row.open_breakers.len()).sum();
        [
            ("projects", self.projects.len().to_string()),
            ("waiting for you", waiting.to_string()),
            ("runs complete", complete.to_string()),
            ("runs ended otherwise", other.to_string()),
            ("runs at work", at_work.len().to_string()),
            ("runs abandoned", abandoned.len().to_string()),
            ("cost of runs in USD", cost.text()),
            ("blocked", sum(0).to_string()),
            ("released", sum(1).to_string()),
            ("open breakers", breakers.to_string()),
            ("dead letters", dead_letters.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    /// What waits for a human, a row each.
    fn waiting(&self) -> ReportSection {
        let scope = CommandScope::of(self.projects.len());
        let mut rows = Vec::new();
        for project in &self.projects {
            let name = self.name(project);
            let row = |it: WaitingItem| {
                let command = scope.command(&project.row.directory, &it.command);
                vec![name.clone(), it.kind.name().to_owned(), it.text, command]
            };
            rows.extend(project.row.waiting_items().into_iter().map(row));
        }
        let columns = [("project", Align::Left), ("what", Align::Left), ("", Align::Left)];
        let columns = columns.into_iter().chain([("next", Align::Left)]).collect();
        let part = match rows.is_empty() {
            true => ReportPart::Text("Nothing waits for you.".to_owned()),
            false => ReportPart::Table(ReportTable { columns, rows }),
        };
        ReportSection { title: "Waits for you", parts: vec![part] }
    }

    fn ended(&self) -> ReportSection {
        let mut runs: Vec<(&ReportedProject, &EndedRun)> = self.runs().collect();
        runs.sort_by_key(|(_, it)| it.at);
        let row = |(project, it): &(&ReportedProject, &EndedRun)| {
            vec![
                self.name(project),
                it.status.clone(),
                it.run.goal.clone(),
                it.run.turns.to_string(),
                short_text(Duration::from_millis(it.run.usage.worked_ms)),
                it.run.usage.tokens().to_string(),
                it.run.usage.cost().text(),
                self.time.local(it.at),
            ]
        };
        let columns = vec![
            ("project", Align::Left),
            ("ending", Align::Left),
            ("goal", Align::Left),
            ("turns", Align::Right),
            ("worked", Align::Right),
            ("tokens", Align::Right),
            ("USD", Align::Right),
            ("ended", Align::Left),
        ];
        let mut parts = Vec::new();
        if runs.is_empty() {
            parts.push(ReportPart::Text("No run ended.".to_owned()));
        } else {
            let lane = |(project, it): &(&ReportedProject, &EndedRun)| {
                let is_complete = RunStatus::find(&it.status) == Some(RunStatus::Complete);
                Lane {
                    name: self.name(project),
                    class: if is_complete { "good" } else { "bad" },
                    from: self.time.position(it.run.started),
                    to: self.time.position(it.at),
                    title: format!("{}: {}", it.status, it.text),
                }
            };
            let lanes: Vec<Lane> = runs.iter().take(REPORT_ROWS_MAX).map(lane).collect();
            parts.push(ReportPart::Plot(html! { figure {
                (plot::lanes("Runs over time", &lanes, &self.axis()))
                (legend(&[("good", "complete"), ("bad", "ended otherwise")]))
            } }));
            let rows = runs.iter().map(row).collect();
            parts.push(ReportPart::Table(ReportTable { columns, rows }));
        }
        ReportSection { title: "Runs that ended", parts }
    }

    fn axis(&self) -> Axis {
        let [begin, end] = [self.time.start(), self.time.now].map(|it| self.time.local(it));
        Axis { begin, end, unit: "", most: None }
    }

    fn blocked(&self) -> ReportSection {
        let mut bars = [[0_u64; 2]; BARS];
        let mut rules: BTreeMap<&str, ReportedRule> = BTreeMap::new();
        for project in &self.projects {
            for (sum, bar) in bars.iter_mut().zip(&project.night.bars) {
                for (sum, number) in sum.iter_mut().zip(bar) {
                    *sum = sum.saturating_add(*number);
                }
            }
            for (id, more) in &project.night.rules {
                let counts = rules.entry(id).or_default();
                counts.blocked = counts.blocked.saturating_add(more.blocked);
                counts.asked = counts.asked.saturating_add(more.asked);
                counts.released = counts.released.saturating_add(more.released);
            }
        }
        if bars.iter().flatten().all(|it| *it == 0) {
            let text = "Nothing was blocked or released.".to_owned();
            return ReportSection {
                title: "Blocked and released",
                parts: vec![ReportPart::Text(text)],
            };
        }
        let mut rules: Vec<(&str, ReportedRule)> = rules.into_iter().collect();
        rules.sort_by_key(|(id, it)| (std::cmp::Reverse(it.sum()), *id));
        let left_out = rules.len().saturating_sub(REPORT_ROWS_MAX);
        let row = |(id, it): &(&str, ReportedRule)| {
            let counts = [it.blocked, it.asked, it.released].map(|it| it.to_string());
            [(*id).to_owned()].into_iter().chain(counts).collect()
        };
        let columns = vec![
            ("rule", Align::Left),
            ("blocked", Align::Right),
            ("asked", Align::Right),
            ("released", Align::Right),
        ];
        let rows = rules.iter().take(REPORT_ROWS_MAX).map(row).collect();
        let plot = self.blocked_plot(&bars);
        let mut parts =
            vec![ReportPart::Plot(plot), ReportPart::Table(ReportTable { columns, rows })];
        if left_out > 0 {
            parts.push(ReportPart::Text(format!("{left_out} more rules are not shown.")));
        }
        ReportSection { title: "Blocked and released", parts }
    }

    #[expect(clippy::cast_precision_loss, reason = "positions and heights of a plot")]
    fn blocked_plot(&self, bars: &[[u64; 2]; BARS]) -> Markup {
        let bar = |(number, [blocked, released]): (usize, &[u64; 2])| Bar {
            at: number as f64 / BARS as f64,
            parts: vec![("bad", *blocked as f64), ("released", *released as f64)],
            title: format!("{blocked} blocked, {released} released"),
        };
        let bars = bars.iter().enumerate().filter(|(_, it)| **it != [0, 0]);
        let bars: Vec<Bar> = bars.map(bar).collect();
        let count = u32::try_from(BARS).unwrap_or(u32::MAX);
        let name = "Blocked and released decisions over time";
        html! { figure {
            (plot::bars(name, &bars, count, &self.axis()))
            (legend(&[("bad", "blocked"), ("released", "released by the block limit")]))
        } }
    }

    fn incidents(&self) -> ReportSection {
        let mut all: Vec<(Timestamp, Vec<String>)> = Vec::new();
        for project in &self.projects {
            let name = self.name(project);
            for (at, kind, text) in &project.night.incidents {
                let what = kind.name().replace('_', " ");
                all.push((*at, vec![self.time.local(*at), name.clone(), what, text.clone()]));
            }
        }
        all.sort_by_key(|it| it.0);
        let mut parts = Vec::new();
        let open = self.projects.iter().filter(|it| !it.row.open_breakers.is_empty());
        let open: Vec<String> = open
            .map(|it| format!("{}: {}", self.name(it), it.row.open_breakers.join(", ")))
            .collect();
        if !open.is_empty() {
            parts.push(ReportPart::Text(format!("Open breakers: {}.", open.join("; "))));
        }
        let letters = self.projects.iter().filter(|it| it.row.dead_letters > 0);
        let letters: Vec<String> =
            letters.map(|it| format!("{}: {}", self.name(it), it.row.dead_letters)).collect();
        if !letters.is_empty() {
            parts.push(ReportPart::Text(format!("Dead letters: {}.", letters.join("; "))));
        }
        if !all.is_empty() {
            let columns =
                vec![("time", Align::Left), ("project", Align::Left), ("what", Align::Left)];
            let columns = columns.into_iter().chain([("", Align::Left)]).collect();
            let rows = all.into_iter().map(|it| it.1).take(REPORT_ROWS_MAX).collect();
            parts.push(ReportPart::Table(ReportTable { columns, rows }));
        }
        ReportSection { title: "Breakers and dead letters", parts }
    }

    /// Projects in which nothing waits or is at work, and those whose row is incomplete.
    fn quiet(&self) -> ReportSection {
        let problems: Vec<String> = self
            .projects
            .iter()
            .flat_map(|it| it.row.problems.iter().map(|text| format!("{}: {text}", self.name(it))))
            .collect();
        let quiet = self.projects.iter().filter(|it| it.row.urgency() == Urgency::Quiet);
        let quiet: Vec<String> = quiet.map(|it| self.name(it)).collect();
        let mut parts: Vec<ReportPart> = problems.into_iter().map(ReportPart::Text).collect();
        if !quiet.is_empty() {
            let (shown, rest) = quiet.split_at(quiet.len().min(QUIET_SHOWN_MAX));
            let names = shown.join(", ");
            let text = match rest.len() {
                0 => format!("Nothing waits in {names}."),
                more => format!("Nothing waits in {names}, and {more} more."),
            };
            parts.push(ReportPart::Text(text));
        }
        ReportSection { title: "Other projects", parts }
    }
}

fn text(title: &str, sections: &[ReportSection], screen: Screen) -> String {
    let mut out = String::new();
    screen.paragraph(&mut out, "", title);
    for section in sections {
        if !section.title.is_empty() {
            let style = screen.style();
            out.push_str(&format!("\n{}\n", style.paint(TextColor::Bold, section.title)));
        }
        for part in &section.parts {
            match part {
                ReportPart::Text(text) => screen.paragraph(&mut out, "  ", &in_one_line(text)),
                ReportPart::Numbers(numbers) => {
                    let words: Vec<String> =
                        numbers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
                    screen.paragraph(&mut out, "", &words.join("; "));
                }
                ReportPart::Table(it) => out.push_str(&text_table(it, screen)),
                ReportPart::Plot(_) => {}
            }
        }
    }
    out
}

fn text_table(it: &ReportTable, screen: Screen) -> String {
    let aligns: Vec<Align> = it.columns.iter().map(|it| it.1).collect();
    let mut table = TextTable::new(2, &aligns);
    table.row(it.columns.iter().map(|it| TextCell::new(it.0, TextColor::Dim)).collect());
    for row in &it.rows {
        table.row(row.iter().map(|it| in_one_line(it).into()).collect());
    }
    table.render(screen)
}

fn markdown(title: &str, sections: &[ReportSection]) -> String {
    let inert = |it: &str| TextFormat::Markdown.inert(&in_one_line(it));
    let escaped = |it: &str| inert(&it.replace('\\', "\\\\").replace('|', "\\|"));
    let mut out = format!("# {title}\n");
    for section in sections {
        if !section.title.is_empty() {
            out.push_str(&format!("\n## {}\n", section.title));
        }
        for part in &section.parts {
            match part {
                ReportPart::Text(text) => out.push_str(&format!("\n{}\n", inert(text))),
                ReportPart::Numbers(numbers) => {
                    out.push('\n');
                    for (name, value) in numbers {
                        out.push_str(&format!("- {name}: **{value}**\n"));
                    }
                }
                ReportPart::Table(it) => {
                    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
                    out.push('\n');
                    out.push_str(&line(it.columns.iter().map(|it| it.0.to_owned()).collect()));
                    let rule = it.columns.iter().map(|it| match it.1 {
                        Align::Left => "---".to_owned(),
                        Align::Right => "---:".to_owned(),
                    });
                    out.push_str(&line(rule.collect()));
                    for row in &it.rows {
                        out.push_str(&line(row.iter().map(|it| escaped(it)).collect()));
                    }
                }
                ReportPart::Plot(_) => {}
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::overview::{RunRow, WaitingKind};

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_millis(1_770_000_000_000 + hour * 3_600_000)
    }

    /// A night with two projects: one whose run needs a human, one that is complete.
    pub(super) fn report() -> MorningReport {
        let time =
            ReportTime { now: at(12), since: Duration::from_secs(12 * 3_600), utc_offset: 3_600 };
        let ended = |hour: i64, status: &str, goal: &str| {
            json!({"timestamp": at(hour).to_string(), "event": "run_end", "decision": "none",
                "notice": {"subject": "r", "outcome": status, "text": "why | <b>so</b>",
                "run": {"goal": goal, "started": at(hour - 3).to_string(), "turns": 12,
                    "worked_ms": 9_000_000, "input_tokens": 70, "output_tokens": 30, "cost_usd": 2.5}}})
        };
        let stop = |hour: i64, decision: &str, release: &str| {
            json!({"timestamp": at(hour).to_string(), "event": "stop", "decision": decision,
                "spoken": decision == "block", "release": release,
                "verdicts": [{"id": "tests", "consequence": "blocks"}]})
        };
        let asked = json!({"timestamp": at(5).to_string(), "event": "pre_tool_use", "decision": "ask",
            "guards": [{"id": "publish", "decision": "ask", "mode": "enforce"},
                {"id": "seen", "decision": "block", "mode": "shadow"}]});
        let opened = json!({"timestamp": at(6).to_string(), "event": "breaker_open",
            "decision": "none", "notice": {"subject": "api/x", "text": "HTTP 500"}});
        let before = stop(-1, "block", "");
        let night = |entries: &[Value]| {
            let mut night = ProjectNight::default();
            for it in entries {
                night.add(&time, Entry::parse(it.to_string().as_bytes()).unwrap());
            }
            night
        };
        let reason = "a human must answer".to_owned();
        let run = RunRow {
            id: "r".to_owned(),
            goal: "Remove the old table".to_owned(),
            progress: RunProgress::Ended { status: RunStatus::HumanNeeded, reason },
            turns: 12,
            tokens: 100,
            cost_usd: 2.5,
            unpriced_turns: 0,
            updated: at(8),
            is_given_up: false,
            is_answered: false,
        };
        let billing = ReportedProject {
            row: ProjectRow {
                directory: "/w/billing".to_owned(),
                run: Some(run),
                waiting: vec![WaitingItem::new(WaitingKind::Signal, "s", "", "May I delete <it>?")],
                open_breakers: vec!["api/x".to_owned()],
                dead_letters: 1,
                ..ProjectRow::default()
            },
            night: night(&[
                stop(1, "block", ""),
                before,
                stop(2, "none", "max_blocks"),
                asked,
                opened,
                ended(8, "human_needed", "Remove the old table"),
            ]),
        };
        let web = ReportedProject {
            row: ProjectRow { directory: "/w/web".to_owned(), ..ProjectRow::default() },
            night: night(&[ended(4, "complete", "Build it")]),
        };
        MorningReport::new(time, vec![web, billing])
    }

    /// Compares a text with `snapshots/views/morning__….snap`.
    fn snapshot(format: &str, text: &str) {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(format!("{}/../../snapshots/views", env!("CARGO_MANIFEST_DIR")));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(format!("morning__{format}"), text));
    }

    #[test]
    fn the_report_shows_what_ended_waits_cost_and_was_blocked() {
        snapshot("text", &report().format(MorningFormat::Text, Screen::default()));
        snapshot("markdown", &report().format(MorningFormat::Markdown, Screen::default()));
        let summary = report().summary();
        assert!(summary.contains("cost of runs in USD 5.00, blocked 2, released 1"), "{summary}");
    }

    #[test]
    fn an_abandoned_run_is_not_at_work_and_a_sum_with_an_unknown_cost_is_a_minimum() {
        let mut report = report();
        let run = report.projects.iter_mut().find_map(|it| it.row.run.as_mut()).unwrap();
        run.progress = RunProgress::Abandoned;
        (run.cost_usd, run.unpriced_turns) = (3.0, 1);
        let summary = report.summary();
        let wanted = "runs at work 0, runs abandoned 1, cost of runs in USD at least 5.50";
        assert!(summary.contains(wanted), "{summary}");
    }

    #[test]
    fn html_is_one_file_without_scripts_and_with_escaped_texts() {
        let page = report().format(MorningFormat::Html, Screen::default());
        for text in ["<script", "<b>so", "<it>", "http://", "https://", "url("] {
            assert!(!page.contains(text), "{text}\n{page}");
        }
        assert_eq!(page.matches("<svg").count(), 2);
        assert!(page.contains("prefers-color-scheme: dark") && page.contains("&lt;it&gt;"));
        let content = page.split_once("</style>").unwrap().1;
        snapshot("html", &content.replace("><", ">\n<"));
    }
}
