//! Steps of a case that are not events: a table is evaluated, a signal is created, a task fails. Also the state after
//! a step, in the words of expectations.

use serde_json::{Map, Value, json};

use super::error::CaseError;
use crate::tasks::{FailureReport, Stores};
use policyd_cases::happens::{FailedTask, StepAction};
use policyd_evaluation::{signals as due, tables};
use policyd_fact_table::words;
use policyd_policy::records;
use policyd_policy::records::signals::RUN;
use policyd_policy::tables::find;
use policyd_state::dead_letter::{Attempt, Task, TaskQueue};
use policyd_store::signals::Draft;

/// Performs an action of a case that is not an event; returns its result.
///
/// # Errors
/// [`CaseError`] if the action is invalid, or a store cannot be written.
pub(super) fn perform(stores: &Stores<'_>, action: &StepAction) -> Result<Value, CaseError> {
    let mut seen = match action {
        StepAction::Event { .. } => Map::new(),
        StepAction::Table { id, inputs } => decided(stores, id, inputs)?,
        StepAction::Run(words) => due_signals(stores, words)?,
        StepAction::Signal { name, fields } => signaled(stores, name, fields)?,
        StepAction::Task(task) => failed(stores, task)?,
        StepAction::Failure { named, text } => {
            let class = stores.policy.classify(named, text).class.id;
            Map::from_iter([("class".to_owned(), class.into())])
        }
    };
    seen.extend(waits(stores));
    Ok(Value::Object(seen))
}

fn decided(
    stores: &Stores<'_>,
    id: &str,
    inputs: &[String],
) -> Result<Map<String, Value>, CaseError> {
    let table = find(&stores.policy.tables, id)?;
    let given = tables::given(table, inputs)?;
    let decided = tables::decide(table, given, stores.watch.as_ref());
    let decided = decided.map_err(|(location, source)| CaseError::Row { location, source })?;
    Ok([("answer", decided.answer), ("why", decided.reason)]
        .map(|(key, text)| (key.to_owned(), Value::from(text)))
        .into_iter()
        .collect())
}

fn due_signals(stores: &Stores<'_>, said: &[String]) -> Result<Map<String, Value>, CaseError> {
    let run = words::record(records::shape(&RUN), due::run(), said)?;
    let (due, failed) = due::due(&stores.policy.signals, run, stores.watch.as_ref());
    if let Some((trigger, source)) = failed.into_iter().next() {
        return Err(CaseError::Trigger { id: trigger.id.clone(), source });
    }
    let mut names: Vec<&str> = due.iter().map(|it| it.trigger.emit.as_str()).collect();
    names.sort_unstable();
    Ok(Map::from_iter([("due".to_owned(), json!(names))]))
}

fn signaled(
    stores: &Stores<'_>,
    name: &str,
    fields: &Map<String, Value>,
) -> Result<Map<String, Value>, CaseError> {
    let draft =
        Draft { name: name.to_owned(), fields: fields.clone(), by_user: true, ..Draft::default() };
    let emitted = stores.emit(&draft)?;
    let said = emitted.drift.map(|it| it.message).unwrap_or_default();
    Ok(Map::from_iter([
        ("why".to_owned(), Value::from(said)),
        ("problems".to_owned(), json!(emitted.problems)),
    ]))
}

fn failed(stores: &Stores<'_>, it: &FailedTask) -> Result<Map<String, Value>, CaseError> {
    let report = FailureReport {
        task: Task { id: it.id.clone(), title: it.title.clone(), ..Task::default() },
        attempt: Attempt {
            approach: it.approach.clone(),
            error_type: it.named.clone(),
            error: it.failure.clone(),
            counts: stores.counts(&it.named, &it.failure),
            ..Attempt::default()
        },
        at_once: false,
    };
    let taken = stores.fail(&report)?;
    Ok(Map::from_iter([("problems".to_owned(), json!(taken.problems))]))
}

/// Tasks by their places, signals that wait, questions to humans.
pub(crate) fn waits(stores: &Stores<'_>) -> Map<String, Value> {
    let lists = stores.queues.peek();
    let place = |it: &Task| {
        let at_work = matches!(it.place, TaskQueue::Pending | TaskQueue::InProgress);
        let blocked = at_work && !it.waits_for.is_empty();
        if blocked { "blocked" } else { it.place.as_str() }
    };
    let tasks = lists.tasks.iter().map(|it| (it.id.clone(), Value::from(place(it))));
    let pending = stores.signals.pending(stores.now);
    let mut signals: Vec<&str> = pending.iter().map(|it| it.name.as_str()).collect();
    signals.sort_unstable();
    let decided = stores.escalations.all().unwrap_or_default();
    let open = decided.iter().filter(|it| it.closed.is_none());
    let questions = open.map(|it| format!("{} {}: {}", it.severity, it.trigger, it.title));
    Map::from_iter([
        ("tasks".to_owned(), tasks.collect::<Map<_, _>>().into()),
        ("signals".to_owned(), json!(signals)),
        ("questions".to_owned(), questions.collect::<Vec<_>>().into()),
    ])
}
