//! What is sent together, and what is not sent any more: alerts about one failure are one alert, alerts of one kind that are
//! due at the same moment become one message of a channel that people read, and an alert about something that was
//! answered is dropped.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::abandoned_runs;
use crate::alerts::WaitingAlert;
use crate::overview::OpenProject;
use crate::tasks::incidents::Incident;
use crate::tasks::{StoreLocation, Stores};
use crate::workspace::project;
use policyd_base::text::counted;
use policyd_evaluation::message::cut;
use policyd_record::alert::{Alert, Recipe};
use policyd_record::notice::NoticeKind;
use policyd_state::breaker::{Breaker, BreakerPhase};
use policyd_state::dead_letter::TaskQueue;
use policyd_state::escalation::Escalation;
use policyd_state::run::{Run, RunStatus};
use policyd_state::signal::End;
use policyd_store::alert_settings::AlertChannel;
use policyd_store::file::Durability;
use policyd_store::projects::KnownProject;
use policyd_store::runs::RunStore;
use policyd_world::World;

/// Names of projects in the title of a digest.
const NAMES_MAX: usize = 3;
/// Characters of the first line of an alert in a digest of lines.
const LINE_CHARS_MAX: usize = 120;
/// Characters left for the last lines of such a digest.
const LINES_RESERVE: usize = 100;

/// Returns one alert about several of one kind, the most severe first. If their texts are longer than what the channel shows, the
/// message has one line for each, as many as fit. `None` without an alert.
pub(crate) fn digest(mut alerts: Vec<Alert>, recipe: &Recipe) -> Option<Alert> {
    alerts.sort_by_key(|it| Reverse(it.severity()));
    let first = alerts.first()?.clone();
    let noun = NoticeKind::find(&first.kind).map_or("alert", NoticeKind::noun);
    let mut projects: Vec<&str> = Vec::new();
    for it in &alerts {
        if !projects.contains(&it.project.as_str()) {
            projects.push(&it.project);
        }
    }
    let names: Vec<&str> = projects.iter().map(|it| it.rsplit('/').next().unwrap_or(it)).collect();
    let mut listed = names.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => {}
        more => listed.push_str(&format!(" and {more} more")),
    }
    let texts: Vec<String> = alerts.iter().map(|it| format!("{}\n{}", it.title, it.text)).collect();
    let texts = texts.join("\n\n");
    let is_short = shown_chars(recipe, &texts) <= recipe.chars_max;
    let text = if is_short { texts } else { lines(&alerts, recipe) };
    Some(Alert {
        key: alerts.iter().map(|it| it.key.as_str()).collect::<Vec<_>>().join(" "),
        project: if projects.len() == 1 { first.project.clone() } else { String::new() },
        subject: String::new(),
        title: format!("{}: {listed}", counted(alerts.len(), noun)),
        text,
        html: None,
        ..first
    })
}

/// Characters of a text in the format of a channel.
fn shown_chars(recipe: &Recipe, text: &str) -> usize {
    recipe.format.inert(text).chars().count()
}

/// One line for each alert, as many as a channel shows: its title, and the first line of its text.
fn lines(alerts: &[Alert], recipe: &Recipe) -> String {
    let (mut lines, mut left) = (Vec::new(), recipe.chars_max.saturating_sub(LINES_RESERVE));
    for alert in alerts {
        let first = cut(alert.text.lines().next().unwrap_or_default(), LINE_CHARS_MAX);
        let line = if first.is_empty() {
            format!("- {}", alert.title)
        } else {
            format!("- {}: {first}", alert.title)
        };
        let Some(rest) = left.checked_sub(shown_chars(recipe, &line).saturating_add(1)) else {
            break;
        };
        left = rest;
        lines.push(line);
    }
    match alerts.len().saturating_sub(lines.len()) {
        0 => {}
        more => lines.push(format!("and {more} more")),
    }
    let kind = alerts.first().and_then(|it| NoticeKind::find(&it.kind));
    if matches!(
        kind,
        Some(NoticeKind::Escalation | NoticeKind::SignalRequest | NoticeKind::DeadLetter)
    ) {
        lines.push("`policyd inbox` shows each of them.".to_owned());
    }
    lines.join("\n")
}

/// Joins alerts about one failure: a question, else a dead letter, else a run, and the run, the breakers, and the dead letters
/// that belong to it. Returns the alerts that joined another one of their channel.
pub(crate) fn join_incidents(
    world: &dyn World,
    ready: &mut Vec<(&AlertChannel, WaitingAlert)>,
) -> Vec<WaitingAlert> {
    let mut joined = Vec::new();
    for kind in [NoticeKind::Escalation, NoticeKind::DeadLetter, NoticeKind::RunEnd] {
        let of_kind = ready.iter().filter(|(_, it)| it.alert.kind == kind.name());
        let leaders: BTreeMap<String, Alert> =
            of_kind.map(|(_, it)| (it.alert.key.clone(), it.alert.clone())).collect();
        for leader in leaders.into_values() {
            let is_other = |it: &Alert| it.project == leader.project && it.key != leader.key;
            // Most alerts are alone, and then no store is read.
            if ready.iter().any(|(_, it)| is_other(&it.alert))
                && let Some(incident) = incident_of(world, &leader)
            {
                let belongs = |it: &Alert| is_other(it) && belongs_to(&incident, it);
                joined.extend(join(ready, &leader, belongs));
            }
        }
    }
    joined
}

/// Joins alerts to a leader in each channel that has it.
fn join(
    ready: &mut Vec<(&AlertChannel, WaitingAlert)>,
    leader: &Alert,
    belongs: impl Fn(&Alert) -> bool,
) -> Vec<WaitingAlert> {
    let is_leader = |it: &Alert| it.key == leader.key;
    let leading = ready.iter().filter(|(_, it)| is_leader(&it.alert));
    let channels: Vec<String> = leading.map(|(channel, _)| channel.id.clone()).collect();
    let others =
        ready.extract_if(.., |(channel, it)| channels.contains(&channel.id) && belongs(&it.alert));
    let others: Vec<WaitingAlert> = others.map(|(_, it)| it).collect();
    for (channel, it) in ready.iter_mut().filter(|(_, it)| is_leader(&it.alert)) {
        let of_channel = others.iter().filter(|it| it.channel == channel.id);
        let what: Vec<&str> = of_channel.map(|it| it.alert.what()).collect();
        if !what.is_empty() {
            it.alert.text.push_str(&format!("\n\nOf the same failure: {}", what.join("; ")));
        }
    }
    others
}

/// Returns what belongs to the failure of an alert. `None` if the alert is about no failure, or its project cannot be read.
fn incident_of(world: &dyn World, alert: &Alert) -> Option<Incident> {
    let subject = alert.subject.as_str();
    in_stores(world, alert, |stores| {
        let (lists, breakers) = (stores.queues.peek(), stores.breakers.all().ok()?);
        match NoticeKind::find(&alert.kind)? {
            NoticeKind::Escalation => {
                let all = stores.escalations.all().ok()?;
                let question = all.iter().find(|it| it.id == subject)?;
                Some(Incident::of_question(question, &lists, &breakers))
            }
            NoticeKind::DeadLetter => Some(Incident::of_task(lists.find(subject)?, &breakers)),
            NoticeKind::RunEnd => {
                Some(Incident::of_error(&run_in(stores, alert)?.last_error, &breakers))
            }
            NoticeKind::SignalRequest
            | NoticeKind::CallRequest
            | NoticeKind::BreakerOpen
            | NoticeKind::BreakerChange
            | NoticeKind::Switch(_) => None,
        }
    })
    .flatten()
}

/// Returns whether an alert is about a consequence of a failure.
fn belongs_to(incident: &Incident, alert: &Alert) -> bool {
    let subject = &alert.subject;
    match NoticeKind::find(&alert.kind) {
        Some(NoticeKind::RunEnd) => incident.runs.contains(subject),
        Some(NoticeKind::DeadLetter) => incident.tasks.contains(subject),
        Some(NoticeKind::BreakerOpen) => incident.breakers.contains(subject),
        Some(
            NoticeKind::Escalation
            | NoticeKind::SignalRequest
            | NoticeKind::CallRequest
            | NoticeKind::BreakerChange
            | NoticeKind::Switch(_),
        )
        | None => false,
    }
}

/// Returns whether what an alert is about needs no human any more: it was answered, or the run is complete.
pub(crate) fn is_over(world: &dyn World, alert: &Alert) -> bool {
    if alert.kind != NoticeKind::RunEnd.name() {
        return is_answered(world, alert);
    }
    let is_over = |it: Run| is_taken_up(&it) || it.status() == Some(RunStatus::Complete);
    in_stores(world, alert, |stores| run_in(stores, alert).is_some_and(is_over)).unwrap_or(false)
}

/// Returns whether a human resumed or dismissed a run that ended.
fn is_taken_up(run: &Run) -> bool {
    run.dismissed || run.status().is_none()
}

fn run_in(stores: &Stores<'_>, alert: &Alert) -> Option<Run> {
    RunStore::new(stores.world, &stores.own, Durability::default()).load(&alert.subject).ok()
}

/// Returns whether what an alert is about was answered: an escalation, a signal, a dead letter, a breaker that closed, or a run
/// that was resumed or dismissed. What cannot be read was not.
pub(crate) fn is_answered(world: &dyn World, alert: &Alert) -> bool {
    let subject = alert.subject.as_str();
    if alert.kind == abandoned_runs::KIND {
        let is_continued = |stores: &Stores<'_>| {
            let store = RunStore::new(stores.world, &stores.own, Durability::default());
            store
                .load(subject)
                .is_ok_and(|it| it.dismissed || it.status().is_some() || store.is_active())
        };
        return in_stores(world, alert, is_continued).unwrap_or(false);
    }
    let answered = match NoticeKind::find(&alert.kind) {
        Some(NoticeKind::Escalation) => in_stores(world, alert, |stores| {
            let is_it = |it: &Escalation| it.id == subject && it.closed.is_some();
            stores.escalations.all().is_ok_and(|all| all.iter().any(is_it))
        }),
        Some(NoticeKind::SignalRequest) => in_stores(world, alert, |stores| {
            let text = |it: &Value, key| it.get(key).and_then(Value::as_str).map(str::to_owned);
            let answers = [End::Approved, End::Rejected].map(End::as_str);
            let is_it = |it: &Value| {
                text(it, "id").as_deref() == Some(subject)
                    && text(it, "outcome").is_some_and(|it| answers.contains(&it.as_str()))
            };
            stores.signals.history().is_ok_and(|all| all.iter().any(is_it))
        }),
        Some(NoticeKind::DeadLetter) => in_stores(world, alert, |stores| {
            let lists = stores.queues.peek();
            lists.find(subject).is_some_and(|it| it.place != TaskQueue::DeadLetter)
        }),
        Some(NoticeKind::BreakerOpen) => in_stores(world, alert, |stores| {
            let is_it =
                |(key, it): &(String, Breaker)| key == subject && it.phase == BreakerPhase::Closed;
            stores.breakers.all().is_ok_and(|all| all.iter().any(is_it))
        }),
        Some(NoticeKind::RunEnd) => in_stores(world, alert, |stores| {
            run_in(stores, alert).is_some_and(|it| is_taken_up(&it))
        }),
        Some(NoticeKind::CallRequest | NoticeKind::BreakerChange | NoticeKind::Switch(_))
        | None => None,
    };
    answered.unwrap_or(false)
}

/// Asks the stores of the project of an alert. `None` if the project cannot be opened.
fn in_stores<T>(world: &dyn World, alert: &Alert, ask: impl FnOnce(&Stores<'_>) -> T) -> Option<T> {
    let directory = PathBuf::from(&alert.project);
    let state_dir = project::at(world, &directory).state;
    let known = KnownProject { directory, state_dir, since: alert.at };
    let open = OpenProject::of(world, &known)?;
    let (state_dir, durability) = (open.state_dir(world), Durability::default());
    let location =
        StoreLocation { state_dir: &state_dir, durability: &durability, lock_wait: Duration::ZERO };
    Some(ask(&Stores::new(world, &open.policy, location)))
}
