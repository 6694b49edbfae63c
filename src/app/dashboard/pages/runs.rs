//! Supervised runs: a list, and the timeline of one run. The events of a project also tell the use of the context window.

use std::collections::BTreeMap;
use std::path::PathBuf;

use maud::{Markup, html};
use serde_json::Value;

use super::super::page_context::PageContext;
use super::super::page_error::PageError;
use super::decisions::{decision_table, outcome_words};
use super::layout::{self, PageSection, address, badge, moment, tone};
use super::view::PageView;
use policyd_index::{DecisionFilter, DecisionRow};
use policyd_record::event_log::EVENT_LOG;
use policyd_record::indexed_decision::DecisionOutcome;
use policyd_report::html::{legend, table};
use policyd_report::overview::{ProjectRow, Urgency};
use policyd_report::plot::{self, Axis, PlotLine, PlotMark};
use policyd_report::run;
use policyd_state::run::{EVENT_SESSION_PREFIX, Run};
use policyd_store::file::Durability;
use policyd_store::log;
use policyd_store::runs::RunStore;
use policyd_yaml::time::{Timestamp, short_text};

/// Runs of one page.
const ROWS: usize = 100;
/// Events and decisions of one run.
const EVENTS: usize = 200;
/// Points of a plot.
const POINTS: usize = 300;

/// Returns the page of the last runs of all projects, or of the runs of one.
pub(super) fn list(context: &PageContext<'_>, view: &PageView<'_>) -> String {
    let project = view.field("project").unwrap_or_default();
    let body = html! {
        form.filter method="get" action="/runs" { (layout::project_menu(view)) button { "Show" } }
        @if project.is_empty() { (last_runs(view)) } @else { (runs_of(context, view, project)) }
    };
    layout::page(view, PageSection::Runs, "Runs", &body)
}

fn last_runs(view: &PageView<'_>) -> Markup {
    let with_run = |it: &&ProjectRow| it.run.is_some();
    let rows: Vec<&ProjectRow> = view.snapshot.rows.iter().filter(with_run).take(ROWS).collect();
    let body = html! {
        @for (row, it) in rows.iter().filter_map(|row| Some((row, row.run.as_ref()?))) {
            @let (_, color) = urgency_of_run(row).cell();
            tr {
                th scope="row" { a href=(address("/run", &[("project", &row.directory), ("id", &it.id)])) { (view.name(&row.directory)) } }
                td { (badge(it.progress.as_str(), tone(color))) }
                td { (policyd_evaluation::message::cut(&it.goal, 160)) }
                td.number { (it.turns) } td.number { (it.tokens) } td.number { (it.cost().text()) }
                td.number { (moment(it.updated, view.now)) }
            }
        }
    };
    html! {
        @if rows.is_empty() { (layout::nothing(view, "No supervised run is known. `policyd run` starts one.")) } @else {
            p.hint { "The last run of each project." }
            (table("Runs", &["Project", "State", "Goal", "Turns", "Tokens", "USD", "Age"], &body))
        }
    }
}

/// How much the last run alone needs a human.
fn urgency_of_run(row: &ProjectRow) -> Urgency {
    ProjectRow { run: row.run.clone(), ..ProjectRow::default() }.urgency()
}

fn runs_of(context: &PageContext<'_>, view: &PageView<'_>, project: &str) -> Markup {
    let Ok(open) = context.open(project) else {
        return layout::nothing(view, "The project is not listed.");
    };
    let store = RunStore::new(context.world, &open.state_dir(context.world), Durability::default());
    let runs: Vec<Run> =
        store.ids().iter().rev().take(ROWS).filter_map(|id| store.load(id).ok()).collect();
    let body = html! {
        @for it in &runs {
            tr {
                th scope="row" { a href=(address("/run", &[("project", project), ("id", &it.id)])) { (it.id) } }
                td { @match it.status() { Some(status) => (status.as_str()), None => "not ended" } }
                td { (policyd_evaluation::message::cut(&it.goal, 160)) }
                td.number { (it.iteration) } td.number { (it.spend.tokens()) } td.number { (it.cost_of_begun().text()) }
                td.number { (moment(Timestamp::from_millis(it.updated_ms), view.now)) }
            }
        }
    };
    html! {
        @if runs.is_empty() { p { "The project has no supervised run." } } @else {
            (table("Runs", &["Run", "State", "Goal", "Turns", "Tokens", "USD", "Age"], &body))
        }
    }
}

/// An event of the log of a project.
struct LoggedRunEvent(Value);

impl LoggedRunEvent {
    fn text(&self, key: &str) -> &str {
        self.0.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.0.get(key).and_then(Value::as_f64)
    }

    fn at(&self) -> Option<Timestamp> {
        Timestamp::parse(self.text("ts")).or_else(|| Timestamp::parse(self.text("timestamp")))
    }

    fn is(&self, kind: &str) -> bool {
        self.text("type") == kind
    }
}

fn events(context: &PageContext<'_>, state_dir: PathBuf) -> Vec<LoggedRunEvent> {
    log::read_all(context.world, &state_dir.join(EVENT_LOG))
        .into_iter()
        .map(LoggedRunEvent)
        .collect()
}

/// Returns the events of one run: those from each of its beginnings to the next beginning of any run.
fn events_of(all: Vec<LoggedRunEvent>, id: &str) -> Vec<LoggedRunEvent> {
    let mut is_own = false;
    let mut own = Vec::new();
    for event in all {
        if event.is("loop.start") || event.is("loop.resume") {
            is_own = event.text("run") == id;
        }
        if is_own {
            own.push(event);
        }
    }
    own
}

/// Returns the page of one run.
///
/// # Errors
/// The project is not listed, the run does not exist, or the index cannot be read.
pub(super) fn one(context: &PageContext<'_>, view: &PageView<'_>) -> Result<String, PageError> {
    let project = view.field("project").unwrap_or_default();
    let id = view.field("id").unwrap_or_default();
    let open = context.open(project)?;
    let state_dir = open.state_dir(context.world);
    let store = RunStore::new(context.world, &state_dir, Durability::default());
    // The id becomes a part of a path.
    let known = store.ids().into_iter().find(|it| it == id);
    let run = known.and_then(|it| store.load(&it).ok()).ok_or(PageError::NoRun)?;
    let events = events_of(events(context, state_dir), id);
    let (begin, end) =
        (Timestamp::from_millis(run.started_ms), Timestamp::from_millis(run.updated_ms));
    let filter = DecisionFilter {
        project: Some(project.to_owned()),
        since: Some(begin),
        until: Some(end.plus(std::time::Duration::from_millis(1))),
        ..DecisionFilter::default()
    };
    let decisions = context.index()?.decisions(&filter, 0, EVENTS)?;
    let status = run.status().map_or("not ended", |it| it.as_str());
    let body = html! {
        dl.facts {
            dt { "Project" } dd { a href=(address("/project", &[("project", project)])) { (project) } }
            dt { "Goal" } dd { (run.goal) }
            dt { "State" } dd { (status) }
            dt { "Started" } dd { (begin) " (" (moment(begin, view.now)) " ago)" }
            dt { "Duration" } dd { (short_text(end.since(begin))) }
            dt { "Turns" } dd { (run.iteration) }
            dt { "Tokens" } dd { (run.spend.tokens()) }
            dt { "Cost" } dd { (run.cost_of_begun().text_with_unit()) }
            @if !run.last_error.is_empty() { dt { "Last error" } dd { (policyd_evaluation::message::cut(&run.last_error, 400)) } }
        }
        h2 { "Timeline" }
        (timeline(&events, &decisions, begin, end))
        h2 { "Events" }
        (event_table(view, &events))
        h2 { "Decisions" }
        @if decisions.is_empty() { p { "No decision was logged during the run." } } @else {
            p.hint { "Decisions of all sessions of the project during the run, at most the newest " (EVENTS) "." }
            (decision_table(view, &decisions))
        }
    };
    let title = format!("Run {id}");
    Ok(layout::page(view, PageSection::Runs, &title, &body))
}

#[expect(clippy::cast_precision_loss, reason = "a position in a plot")]
fn position(at: Timestamp, begin: Timestamp, end: Timestamp) -> f64 {
    let whole = end.millis().saturating_sub(begin.millis()).max(1) as f64;
    at.millis().saturating_sub(begin.millis()) as f64 / whole
}

/// Returns the plots of tokens and cost, with decisions and failures as marks.
fn timeline(
    events: &[LoggedRunEvent],
    decisions: &[DecisionRow],
    begin: Timestamp,
    end: Timestamp,
) -> Markup {
    let place = |at: Timestamp| position(at, begin, end);
    let turns: Vec<(Timestamp, &LoggedRunEvent)> = events
        .iter()
        .filter(|it| it.is("loop.iteration_complete"))
        .filter_map(|it| Some((it.at()?, it)))
        .collect();
    let sums = |key: &str| {
        let mut sum = 0.0;
        let points = turns.iter().map(|(at, it)| {
            sum += it.number(key).unwrap_or(0.0);
            (place(*at), sum)
        });
        let points: Vec<(f64, f64)> = points.collect();
        thinned(points)
    };
    let failed = turns.iter().filter(|(_, it)| !it.text("failure").is_empty());
    let failures = failed.map(|(at, it)| PlotMark {
        class: "bad",
        at: place(*at),
        title: format!("turn {}: {}", it.number("iteration").unwrap_or(0.0), it.text("failure")),
    });
    let stopped = decisions.iter().filter(|it| {
        !matches!(
            it.outcome,
            DecisionOutcome::PassedStop
                | DecisionOutcome::Noted
                | DecisionOutcome::ApprovedCall
                | DecisionOutcome::LeftPrompt
        )
    });
    let stopped = stopped.map(|it| {
        let (word, class) = outcome_words(it.outcome);
        PlotMark { class, at: place(it.at), title: format!("{word}: {}", it.detail) }
    });
    let marks: Vec<PlotMark> = failures.chain(stopped).collect();
    let axis = |unit| Axis { begin: begin.to_string(), end: end.to_string(), unit, most: None };
    let plot = |class, key, unit, name: &str| {
        plot::lines(name, &[PlotLine { class, points: sums(key) }], &marks, &axis(unit))
    };
    if turns.is_empty() {
        return html! { p { "No turn of the run is logged." } };
    }
    html! {
        figure {
            (plot("tokens", "tokens", "tokens", "Tokens of the run over time"))
            (plot("cost", "cost_usd", "USD", "Cost of the run over time"))
            (legend(&[("tokens", "tokens, one point per turn"), ("cost", "USD"),
                ("bad", "failure or block"), ("look", "question or release")]))
        }
    }
}

/// Keeps at most [`POINTS`] points, and always the last one: it is the sum.
fn thinned<T>(points: Vec<T>) -> Vec<T> {
    let step = points.len().div_ceil(POINTS).max(1);
    let kept = points.into_iter().rev().step_by(step);
    let mut kept: Vec<T> = kept.collect();
    kept.reverse();
    kept
}

fn event_table(view: &PageView<'_>, events: &[LoggedRunEvent]) -> Markup {
    let lines: Vec<(Timestamp, String)> =
        events.iter().filter_map(|it| Some((it.at()?, run::line(&it.0)?))).collect();
    let skipped = lines.len().saturating_sub(EVENTS);
    let body = html! {
        @for (at, text) in lines.iter().skip(skipped) {
            tr { td.number { (moment(*at, view.now)) } td { (policyd_evaluation::message::cut(text, 400)) } }
        }
    };
    html! {
        @if skipped > 0 { p { "The last " (EVENTS) " of " (lines.len()) " events are shown." } }
        (table("Events", &["Age", "Event"], &body))
    }
}

/// Returns the use of the context window and the cost of a project over time.
///
/// # Errors
/// The project is not listed.
pub(super) fn usage(context: &PageContext<'_>, project: &str) -> Result<Markup, PageError> {
    let open = context.open(project)?;
    let events = events(context, open.state_dir(context.world));
    let timed = |kind: &'static str| {
        events.iter().filter(move |it| it.is(kind)).filter_map(|it| Some((it.at()?, it)))
    };
    let used: Vec<(Timestamp, f64)> = timed("loop.context_usage")
        // `usage_pct` counts all tokens of the session, so it says nothing about the window.
        .filter_map(|(at, it)| Some((at, it.number("occupancy_pct")?)))
        .collect();
    // A run also reports the usage of its agents, whose sessions report their own.
    let of_sessions = timed("loop.context_usage")
        .filter(|(_, it)| !it.text("session_id").starts_with(EVENT_SESSION_PREFIX));
    let (mut by_session, mut total) = (BTreeMap::new(), 0.0);
    let session_cost: Vec<(Timestamp, f64)> = of_sessions
        .filter_map(|(at, it)| {
            let cost = it.number("cost_usd")?;
            total += cost - by_session.insert(it.text("session_id"), cost).unwrap_or(0.0);
            Some((at, total))
        })
        .collect();
    let mut sum = 0.0;
    let cost: Vec<(Timestamp, f64)> = timed("loop.iteration_complete")
        .map(|(at, it)| {
            sum += it.number("cost_usd").unwrap_or(0.0);
            (at, sum)
        })
        .collect();
    let plot = |class, points: Vec<(Timestamp, f64)>, (unit, most), name: &str| {
        let (Some((begin, _)), Some((end, _))) = (points.first(), points.last()) else {
            return html! { p { "Nothing is logged: " (name) "." } };
        };
        let (begin, end) = (*begin, *end);
        let axis = Axis { begin: begin.to_string(), end: end.to_string(), unit, most };
        let points = points.into_iter().map(|(at, value)| (position(at, begin, end), value));
        let points = thinned(points.collect());
        html! { figure { (plot::lines(name, &[PlotLine { class, points }], &[], &axis)) } }
    };
    Ok(html! {
        h2 { "Context window" }
        (plot("tokens", used, ("%", Some(100.0)), "Used percentage of the context window over time"))
        h2 { "Cost of sessions" }
        (plot("cost", session_cost, ("USD", None), "Cost of sessions over time"))
        h2 { "Cost of supervised runs" }
        (plot("cost", cost, ("USD", None), "Cost of supervised runs over time"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_belong_to_the_run_that_began_last() {
        let all = [
            json!({"type": "loop.start", "run": "a"}),
            json!({"type": "loop.iteration_complete", "iteration": 1}),
            json!({"type": "loop.start", "run": "b"}),
            json!({"type": "loop.iteration_complete", "iteration": 1}),
            json!({"type": "loop.resume", "run": "a"}),
            json!({"type": "loop.iteration_complete", "iteration": 2}),
        ];
        let own = events_of(all.into_iter().map(LoggedRunEvent).collect(), "a");
        let turns: Vec<_> = own.iter().filter_map(|it| it.number("iteration")).collect();
        assert_eq!(turns, [1.0, 2.0]);
    }

    #[test]
    fn a_plot_has_few_points() {
        let points = thinned((0..1000).collect::<Vec<_>>());
        assert_eq!((points.len(), points.last()), (250, Some(&999)));
        assert_eq!(thinned(vec![1, 2]), [1, 2]);
    }
}
