//! Metrics in the text format of Prometheus: totals of decisions, which are folded from decision logs, and the state of
//! projects. The number of time series is bounded.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::overview::{ProjectRow, RunProgress};
use policyd_base::limits::{METRIC_PROJECTS_MAX, METRIC_RULES_MAX};
use policyd_record::activity::{Activity, StopOutcomeWord};
use policyd_record::decision_log::Entry;
use policyd_record::notice::{Notice, NoticeKind};
use policyd_record::rule_result::RuleResult;
use policyd_state::run::{RunStatus, STATUSES};
use policyd_yaml::time::Timestamp;

/// Upper limits of the histogram of durations, in microseconds.
const DURATION_LIMITS: [u64; 11] = [
    1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000, 60_000_000,
];
/// Label of what exceeds a limit.
const OTHER: &str = "other";

/// Counts by two labels.
type Counts = BTreeMap<String, BTreeMap<String, u64>>;

/// Totals of all decisions that were ever folded in. They never decrease.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MetricTotals {
    /// Decisions by event and decision.
    decisions: Counts,
    /// Results of rules by rule and result.
    rules: Counts,
    /// Stops by project and outcome.
    stops: Counts,
    /// Blocked or asked tool calls by project and decision.
    calls: Counts,
    /// Decisions whose state was not saved durably, by how it was saved.
    saves: BTreeMap<String, u64>,
    /// Runs that ended, escalations, openings of breakers, and dead letters, by project and event.
    notices: Counts,
    /// Runs that ended by project and ending.
    endings: Counts,
    /// Tokens of runs that ended by project and type.
    tokens: Counts,
    /// Cost in millionths of a US dollar of runs that ended, by project.
    cost_micros: BTreeMap<String, u64>,
    /// Durations of runs that ended.
    runs: Histogram,
    /// Durations of logged decisions by event.
    durations: BTreeMap<String, Histogram>,
}

/// Upper limits of the histogram of runs, in microseconds: a minute to a day.
const RUN_LIMITS: [u64; 11] = [
    60_000_000,
    300_000_000,
    900_000_000,
    1_800_000_000,
    3_600_000_000,
    7_200_000_000,
    14_400_000_000,
    21_600_000_000,
    28_800_000_000,
    43_200_000_000,
    86_400_000_000,
];

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Histogram {
    /// Number of values up to each limit, not cumulative.
    counts: [u64; DURATION_LIMITS.len()],
    /// Number of all values.
    count: u64,
    /// Sum of all values in microseconds.
    sum: u64,
}

impl Histogram {
    fn add(&mut self, micros: u64, limits: &[u64; DURATION_LIMITS.len()]) {
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(micros);
        let at = limits.iter().position(|limit| micros <= *limit);
        if let Some(count) = at.and_then(|it| self.counts.get_mut(it)) {
            *count = count.saturating_add(1);
        }
    }
}

/// Adds one to a count. A first label beyond the limit counts as [`OTHER`].
fn count(counts: &mut Counts, first: &str, second: &str, limit: usize) {
    count_many(counts, [first, second], 1, limit);
}

/// Adds a number to a count, as [`count`] does.
fn count_many(counts: &mut Counts, [first, second]: [&str; 2], more: u64, limit: usize) {
    let is_known = counts.contains_key(first) || counts.len() < limit;
    let inner = counts.entry(if is_known { first } else { OTHER }.to_owned()).or_default();
    let number = inner.entry(second.to_owned()).or_default();
    *number = number.saturating_add(more);
}

/// Returns a cost in millionths of a US dollar.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "negative costs are left out, and a conversion of a float saturates"
)]
fn micro_usd(usd: f64) -> u64 {
    (usd.max(0.0) * 1e6).round() as u64
}

impl MetricTotals {
    /// Adds a line of the decision log of a project, also to `activity`, of which only the last things are used.
    pub fn add(&mut self, project: &str, line: &[u8], activity: &mut Activity) {
        let Some(entry) = Entry::parse(line) else { return };
        let at = Timestamp::parse(&entry.timestamp);
        activity.add_entry(&entry, at, Timestamp::from_millis(i64::MAX));
        if entry.event.is_empty() {
            return;
        }
        if let Some(kind) = NoticeKind::find(&entry.event) {
            self.add_notice(project, kind, entry.notice.as_ref());
            return;
        }
        count(&mut self.decisions, &entry.event, &entry.decision, METRIC_RULES_MAX);
        for (rule, result) in entry.rule_results() {
            count(&mut self.rules, rule, result.as_str(), METRIC_RULES_MAX);
        }
        if entry.inputs.is_some() {
            let outcome = StopOutcomeWord::of(&entry).as_str();
            count(&mut self.stops, project, outcome, METRIC_PROJECTS_MAX);
        } else if entry.stopped_call() {
            let outcome = RuleResult::of_decision(&entry.decision).as_str();
            count(&mut self.calls, project, outcome, METRIC_PROJECTS_MAX);
        }
        if matches!(entry.saved.as_str(), "degraded" | "not saved") {
            let number = self.saves.entry(entry.saved.replace(' ', "_")).or_default();
            *number = number.saturating_add(1);
        }
        if let Some(micros) = entry.micros {
            self.durations.entry(entry.event).or_default().add(micros, &DURATION_LIMITS);
        }
    }

    fn add_notice(&mut self, project: &str, kind: NoticeKind, notice: Option<&Notice>) {
        let Some(notice) = notice else { return };
        let limit = METRIC_PROJECTS_MAX;
        count(&mut self.notices, project, kind.name(), limit);
        let Some(run) = &notice.run else { return };
        let ending = RunStatus::find(&notice.outcome).map_or(OTHER, RunStatus::as_str);
        count(&mut self.endings, project, ending, limit);
        let usage = run.unreported();
        for (kind, tokens) in [
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
            ("cached", usage.cached_tokens),
        ] {
            count_many(&mut self.tokens, [project, kind], tokens, limit);
        }
        let is_known = self.cost_micros.contains_key(project) || self.cost_micros.len() < limit;
        let project = if is_known { project } else { OTHER }.to_owned();
        let cost = self.cost_micros.entry(project).or_default();
        *cost = cost.saturating_add(micro_usd(usage.cost_usd));
        self.runs.add(usage.worked_ms.saturating_mul(1_000), &RUN_LIMITS);
    }
}

/// The text format, family by family.
#[derive(Default)]
struct Exposition(String);

impl Exposition {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _written = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _written = writeln!(self.0, "{name}{labels} {value}");
    }

    fn counts(&mut self, name: &str, help: &str, labels: [&str; 2], counts: &Counts) {
        self.family(name, "counter", help);
        let [first_label, second_label] = labels;
        for (first, inner) in counts {
            for (second, number) in inner {
                self.sample(name, &[(first_label, first), (second_label, second)], number);
            }
        }
    }

    fn histogram(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        histogram: &Histogram,
        limits: &[u64; DURATION_LIMITS.len()],
    ) {
        let bucket = format!("{name}_bucket");
        let mut cumulative = 0_u64;
        for (limit, number) in limits.iter().zip(histogram.counts) {
            cumulative = cumulative.saturating_add(number);
            let limit = seconds(*limit).to_string();
            let labels: Vec<_> = labels.iter().copied().chain([("le", limit.as_str())]).collect();
            self.sample(&bucket, &labels, cumulative);
        }
        let all: Vec<_> = labels.iter().copied().chain([("le", "+Inf")]).collect();
        self.sample(&bucket, &all, histogram.count);
        self.sample(&format!("{name}_sum"), labels, seconds(histogram.sum));
        self.sample(&format!("{name}_count"), labels, histogram.count);
    }

    /// A gauge with one sample for each project that has a value.
    fn gauge(&mut self, name: &str, help: &str, values: &[(&str, Option<f64>)]) {
        self.family(name, "gauge", help);
        for (project, value) in values {
            if let Some(value) = value {
                self.sample(name, &[("project", project)], value);
            }
        }
    }
}

/// Escapes the value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Returns all metrics. At most [`METRIC_PROJECTS_MAX`] projects have series of their own.
#[must_use]
pub fn to_text(totals: &MetricTotals, rows: &[ProjectRow]) -> String {
    let mut out = Exposition::default();
    out.family("policyd_build_info", "gauge", "Version of policyd.");
    out.sample("policyd_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    add_totals(&mut out, totals);
    add_notices(&mut out, totals);
    let rows: Vec<&ProjectRow> = rows.iter().take(METRIC_PROJECTS_MAX).collect();
    add_projects(&mut out, &rows);
    add_runs(&mut out, &rows);
    out.0
}

fn add_totals(out: &mut Exposition, totals: &MetricTotals) {
    let MetricTotals { decisions, rules, stops, calls, saves, durations, .. } = totals;
    let help = "Logged decisions of hooks.";
    out.counts("policyd_decisions_total", help, ["event", "decision"], decisions);
    out.counts("policyd_rule_results_total", "Results of rules.", ["rule", "result"], rules);
    out.counts("policyd_stops_total", "Evaluated stops.", ["project", "outcome"], stops);
    let help = "Tool calls that were blocked, or about which the user was asked.";
    out.counts("policyd_tool_calls_total", help, ["project", "outcome"], calls);
    let name = "policyd_saves_degraded_total";
    out.family(name, "counter", "Decisions whose state was not saved durably.");
    for (saved, number) in saves {
        out.sample(name, &[("saved", saved)], number);
    }
    let name = "policyd_decision_duration_seconds";
    out.family(name, "histogram", "Time from the start of a hook to its logged decision.");
    for (event, histogram) in durations {
        out.histogram(name, &[("event", event)], histogram, &DURATION_LIMITS);
    }
}

/// Adds what happened beside decisions.
fn add_notices(out: &mut Exposition, totals: &MetricTotals) {
    let help = "Runs that ended, escalations, signals that ask, openings of breakers, and new dead letters.";
    out.counts("policyd_notices_total", help, ["project", "event"], &totals.notices);
    let help = "Supervised runs that ended.";
    out.counts("policyd_runs_ended_total", help, ["project", "ending"], &totals.endings);
    let help = "Tokens of supervised runs that ended.";
    out.counts("policyd_runs_tokens_total", help, ["project", "type"], &totals.tokens);
    let name = "policyd_runs_cost_usd_total";
    out.family(
        name,
        "counter",
        "Cost in US dollars of supervised runs that ended, as far as it is known.",
    );
    for (project, micros) in &totals.cost_micros {
        out.sample(name, &[("project", project)], seconds(*micros));
    }
    let name = "policyd_run_duration_seconds";
    out.family(name, "histogram", "Time that the turns of a supervised run took.");
    out.histogram(name, &[], &totals.runs, &RUN_LIMITS);
}

fn add_projects(out: &mut Exposition, rows: &[&ProjectRow]) {
    let values = |value: &dyn Fn(&ProjectRow) -> Option<f64>| -> Vec<(&str, Option<f64>)> {
        rows.iter().map(|it| (it.directory.as_str(), value(it))).collect()
    };
    let number = |count: usize| Some(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
    let help = "Breakers that reject calls.";
    out.gauge("policyd_breakers_open", help, &values(&|it| number(it.open_breakers.len())));
    let help = "Breakers that permit trial calls only.";
    out.gauge("policyd_breakers_half_open", help, &values(&|it| number(it.half_open_breakers)));
    let help = "Tasks in the dead-letter queue.";
    out.gauge("policyd_dead_letters", help, &values(&|it| number(it.dead_letters)));
    let help = "Questions that wait for a human.";
    out.gauge("policyd_questions_waiting", help, &values(&|it| number(it.questions().count())));
    let used = |it: &ProjectRow| Some(f64::from(u32::try_from(it.context_percent?).ok()?) / 100.0);
    let help = "Used part of the context window in the last session.";
    out.gauge("policyd_context_used_ratio", help, &values(&used));
    let help = "Cost in US dollars of the last session.";
    out.gauge("policyd_session_cost_usd", help, &values(&|it| it.session_cost_usd));
    let help = "Time of the last decision or step of a run.";
    let activity = |it: &ProjectRow| it.last_activity.map(unix_seconds);
    out.gauge("policyd_last_activity_timestamp_seconds", help, &values(&activity));
}

fn add_runs(out: &mut Exposition, rows: &[&ProjectRow]) {
    let runs: Vec<_> =
        rows.iter().filter_map(|it| Some((it.directory.as_str(), it.run.as_ref()?))).collect();
    let cost: Vec<_> = runs.iter().map(|(it, run)| (*it, run.cost().usd())).collect();
    out.gauge(
        "policyd_run_cost_usd",
        "Cost in US dollars of the last run, as far as it is known.",
        &cost,
    );
    let name = "policyd_run_tokens";
    out.family(name, "gauge", "Tokens of the last run.");
    for (project, run) in &runs {
        out.sample(name, &[("project", project)], run.tokens);
    }
    let name = "policyd_runs";
    out.family(name, "gauge", "Projects by the state of their last run.");
    let of = |state: &str| runs.iter().filter(|(_, run)| state_of(&run.progress) == state).count();
    let states = ["working", "waiting", "paused", "abandoned"];
    for state in states.into_iter().chain(STATUSES.iter().map(|it| it.1)) {
        out.sample(name, &[("state", state)], of(state));
    }
}

fn state_of(progress: &RunProgress) -> &'static str {
    match progress {
        RunProgress::Working => "working",
        RunProgress::Waiting { .. } => "waiting",
        RunProgress::Paused => "paused",
        RunProgress::Abandoned => "abandoned",
        RunProgress::Ended { status, .. } => status.as_str(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a duration is rounded for display")]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 are below 2^53")]
fn unix_seconds(at: Timestamp) -> f64 {
    at.millis() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn totals_are_counted_and_exposed() {
        let (mut totals, mut activity) = (MetricTotals::default(), Activity::default());
        let stop = json!({"event": "stop", "decision": "block", "spoken": true, "micros": 3_000,
            "saved": "degraded", "inputs": {"transcript": {"path": "/t"}},
            "verdicts": [{"id": "tests", "consequence": "blocks", "status": "unsatisfied"}]});
        let call = json!({"event": "pre_tool_use", "decision": "ask", "micros": 1_000,
            "guards": [{"id": "rm\"x", "decision": "ask", "mode": "enforce", "status": "fired"}]});
        let switch = json!({"event": "pause", "decision": "none"});
        let run = json!({"turns": 3, "worked_ms": 400_000, "input_tokens": 70, "output_tokens": 5,
            "cached_tokens": 900, "cost_usd": 1.25});
        let end = json!({"event": "run_end", "decision": "none",
            "notice": {"subject": "r1", "outcome": "human_needed", "run": run}});
        let opened = json!({"event": "breaker_open", "decision": "none", "notice": {}});
        let mut released = stop.clone();
        released["decision"] = json!("none");
        released["release"] = json!("max_blocks");
        for line in [&released, &stop, &stop, &call, &switch, &end, &end, &opened] {
            totals.add("/w/app", line.to_string().as_bytes(), &mut activity);
        }
        totals.add("/w/app", b"no json", &mut activity);
        assert_eq!(activity.last_stop.unwrap().outcome, StopOutcomeWord::Blocked);
        let text = to_text(&totals, &[]);
        for line in [
            "policyd_decisions_total{event=\"stop\",decision=\"block\"} 2",
            "policyd_rule_results_total{rule=\"tests\",result=\"blocked\"} 2",
            "policyd_rule_results_total{rule=\"tests\",result=\"released\"} 1",
            "policyd_rule_results_total{rule=\"rm\\\"x\",result=\"asked\"} 1",
            "policyd_stops_total{project=\"/w/app\",outcome=\"blocked\"} 2",
            "policyd_stops_total{project=\"/w/app\",outcome=\"released\"} 1",
            "policyd_tool_calls_total{project=\"/w/app\",outcome=\"asked\"} 1",
            "policyd_saves_degraded_total{saved=\"degraded\"} 3",
            "policyd_decision_duration_seconds_bucket{event=\"stop\",le=\"0.002\"} 0",
            "policyd_decision_duration_seconds_bucket{event=\"stop\",le=\"0.005\"} 3",
            "policyd_decision_duration_seconds_bucket{event=\"stop\",le=\"+Inf\"} 3",
            "policyd_decision_duration_seconds_sum{event=\"stop\"} 0.009",
            "policyd_runs_ended_total{project=\"/w/app\",ending=\"human_needed\"} 2",
            "policyd_runs_tokens_total{project=\"/w/app\",type=\"cached\"} 1800",
            "policyd_runs_cost_usd_total{project=\"/w/app\"} 2.5",
            "policyd_run_duration_seconds_bucket{le=\"300\"} 0",
            "policyd_run_duration_seconds_bucket{le=\"900\"} 2",
            "policyd_notices_total{project=\"/w/app\",event=\"breaker_open\"} 1",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        assert!(!text.contains("\"pause\""), "{text}");
    }

    #[test]
    fn the_number_of_projects_is_bounded() {
        let mut totals = MetricTotals::default();
        let line = json!({"event": "stop", "decision": "none", "inputs": {}}).to_string();
        for number in 0..METRIC_PROJECTS_MAX + 10 {
            totals.add(&format!("/w/{number}"), line.as_bytes(), &mut Activity::default());
        }
        let text = to_text(&totals, &[]);
        assert!(text.contains("policyd_stops_total{project=\"other\",outcome=\"passed\"} 10\n"));
    }
}
