//! What is sent together, and what is not sent any more: alerts of one kind that are due at the same moment become one message
//! of a channel that people read, and an alert about something that was answered is dropped.

use std::cmp::Reverse;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::overview::OpenProject;
use crate::tasks::{StoreLocation, Stores};
use crate::workspace::project;
use policyd_base::text::counted;
use policyd_record::alert::Alert;
use policyd_record::notice::NoticeKind;
use policyd_state::dead_letter::TaskQueue;
use policyd_state::escalation::Escalation;
use policyd_state::signal::End;
use policyd_store::file::Durability;
use policyd_store::projects::KnownProject;
use policyd_world::World;

/// Names of projects in the title of a digest.
const NAMES_MAX: usize = 3;

/// Returns one alert about several of one kind, the most severe first. `None` without one.
pub(crate) fn digest(mut alerts: Vec<Alert>) -> Option<Alert> {
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
    Some(Alert {
        key: alerts.iter().map(|it| it.key.as_str()).collect::<Vec<_>>().join(" "),
        project: if projects.len() == 1 { first.project.clone() } else { String::new() },
        subject: String::new(),
        title: format!("{}: {listed}", counted(alerts.len(), noun)),
        text: texts.join("\n\n"),
        html: None,
        ..first
    })
}

/// Returns whether what an alert is about was answered: an escalation, a signal, or a dead letter. What cannot be read was not.
pub(crate) fn is_answered(world: &dyn World, alert: &Alert) -> bool {
    let subject = alert.subject.as_str();
    match NoticeKind::find(&alert.kind) {
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
        Some(
            NoticeKind::RunEnd
            | NoticeKind::CallRequest
            | NoticeKind::BreakerOpen
            | NoticeKind::BreakerChange
            | NoticeKind::Switch(_),
        )
        | None => false,
    }
}

/// Asks the stores of the project of an alert. False if the project cannot be opened.
fn in_stores(world: &dyn World, alert: &Alert, ask: impl FnOnce(&Stores<'_>) -> bool) -> bool {
    let directory = PathBuf::from(&alert.project);
    let state_dir = project::at(world, &directory).state;
    let known = KnownProject { directory, state_dir, since: alert.at };
    let Some(open) = OpenProject::of(world, &known) else { return false };
    let (state_dir, durability) = (open.state_dir(world), Durability::default());
    let location =
        StoreLocation { state_dir: &state_dir, durability: &durability, lock_wait: Duration::ZERO };
    ask(&Stores::new(world, &open.policy, location))
}
