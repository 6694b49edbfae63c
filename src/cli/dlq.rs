//! `policyd dlq`: lists tasks that failed repeatedly, reviews them, and requeues or abandons them.

mod moving;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Read as _;

use serde_json::json;

use super::{
    Console, DlqAction, DlqAdd, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, ListFormat, QueueSelector, pack,
};
use crate::human::{HumanAnswer, require_human};
use crate::lists::print_empty;
use crate::store::LocalFiles;
use policyd_app::sharing::{COMMAND, SyncLimits};
use policyd_app::tasks::{self, FailureReport, RecordedFailure, ReviewRow, ReviewedTasks, Stores};
use policyd_app::workspace::project;
use policyd_base::limits::TASK_TEXT_CHARS_MAX;
use policyd_evaluation::dead_letter::{alarms, cause, queue_record, review_due};
use policyd_record::notice;
use policyd_report::dead_letter as shown;
use policyd_state::dead_letter::{Attempt, Hints, Task, TaskQueue};
use policyd_store::file::Durability;
use policyd_store::queues::Lists;
use policyd_world::{World, WorldError};

/// Runs one action.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, action: &DlqAction) -> u8 {
    let Some(policy) = pack::or_builtin_policy(world, console, &project::find(world, None)) else {
        return EXIT_BROKEN;
    };
    let fenced = tasks::fenced(world, &policy);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let stores = Stores::of_project(world, &policy);
    let files = LocalFiles { root: &stores.own, durability: &Durability::default() };
    let left = Cell::new(COMMAND.wait);
    let limits = COMMAND.within(&left);
    let code =
        super::store::around(world, console, files, limits, |console, is_current, answer| {
            let copy = CopyLimits { is_current, sync: limits.and_then() };
            act(&stores, console, action, copy, answer)
        });
    console.warn_if_not_durable(&stores.degraded());
    code
}

/// The local copy of the shared store, as a command finds it.
#[derive(Clone, Copy)]
struct CopyLimits<'t> {
    /// Whether it contains what the server knows.
    is_current: bool,
    /// Limits of questions to the server.
    sync: SyncLimits<'t>,
}

/// Runs one action on the local copy.
fn act(
    stores: &Stores<'_>,
    console: &mut Console<'_>,
    action: &DlqAction,
    copy: CopyLimits<'_>,
    answer: &mut Option<HumanAnswer>,
) -> u8 {
    match action {
        DlqAction::Add(arguments) => add(stores, console, arguments),
        DlqAction::List { place, cause, format } => {
            list(stores, console, *place, cause.as_deref(), *format)
        }
        DlqAction::Show { task, format } => show(stores, console, task, *format),
        DlqAction::Review { tasks, if_due, dry_run, format } => {
            let request = ReviewRequest { tasks, if_due: *if_due, dry_run: *dry_run };
            review(stores, console, &request, *format)
        }
        DlqAction::Retry(arguments) => moving::retry(stores, console, arguments, answer),
        DlqAction::Abandon { task, reason } => {
            moving::abandon(stores, console, task, reason, answer)
        }
        DlqAction::Resolve { task } => moving::resolve(stores, console, task, answer),
        DlqAction::Redrive { tasks, cause, dry_run } => {
            moving::redrive(stores, console, tasks, cause.as_deref(), *dry_run)
        }
        DlqAction::Claim { task, holder, lease, format } => {
            let ids = task.as_ref().map_or_else(|| stores.claimable(), |it| vec![it.clone()]);
            let user = stores.user();
            let holder = if holder.is_empty() { user.as_str() } else { holder };
            moving::claim(
                stores,
                console,
                &moving::ClaimRequest { ids: &ids, holder, lease: *lease, copy },
                *format,
            )
        }
        DlqAction::Unclaim { task, generation } => {
            let end = moving::ClaimEnd { id: task, generation: *generation, is_done: false };
            moving::end_claim(stores, console, end, copy.sync)
        }
        DlqAction::Finish { task, generation } => {
            let end = moving::ClaimEnd { id: task, generation: *generation, is_done: true };
            moving::end_claim(stores, console, end, copy.sync)
        }
        DlqAction::Stats { format } => stats(stores, console, *format),
    }
}

/// Says that a change was not made.
pub(super) fn refused(console: &mut Console<'_>, error: &WorldError) -> u8 {
    console.eprint(&format!("could not change the task queues: {error}; no data is lost"));
    EXIT_BROKEN
}

/// Reports that a task is unknown.
fn unknown(stores: &Stores<'_>, console: &mut Console<'_>, lists: &Lists, id: &str) -> u8 {
    if !lists.unreadable.is_empty() {
        return console.report_unread(stores.queues.problems());
    }
    let known: Vec<&str> = lists.tasks.iter().map(|it| it.id.as_str()).collect();
    let help = policyd_yaml::suggest::nearest(id, &known);
    let help = help.map(|it| format!("\nhelp: did you mean `{it}`?")).unwrap_or_default();
    console.eprint(&format!("unknown task `{id}`{help}"));
    EXIT_FOUND
}

fn report_problems(console: &mut Console<'_>, problems: &[String]) {
    problems.iter().for_each(|it| console.eprint(it));
}

fn add(stores: &Stores<'_>, console: &mut Console<'_>, arguments: &DlqAdd) -> u8 {
    let human = arguments.marks.iter().any(|it| it.starts_with("human_"));
    if human {
        let action = format!("label task `{}` as {}", arguments.task, arguments.marks.join(", "));
        if let Err(code) = require_human(stores.world, console, &action) {
            return code;
        }
    }
    let mut error = arguments.error.clone();
    if error == "-" {
        let mut bytes = Vec::new();
        let bound = u64::try_from(TASK_TEXT_CHARS_MAX.saturating_mul(4)).unwrap_or(u64::MAX);
        // After a read error, the bytes that were read so far are the error text.
        drop((&mut *console.stdin).take(bound).read_to_end(&mut bytes));
        error = String::from_utf8_lossy(&bytes).trim().to_owned();
    }
    let report = FailureReport {
        task: Task {
            id: arguments.task.clone(),
            title: arguments.title.clone(),
            description: arguments.description.clone(),
            priority: arguments.priority.clone().unwrap_or_default(),
            dependencies: arguments.dependencies.clone(),
            confidence: arguments.confidence,
            hints: Hints { marks: arguments.marks.iter().cloned().collect(), ..Hints::default() },
            ..Task::default()
        },
        attempt: Attempt {
            approach: arguments.approach.clone(),
            error_type: arguments.error_type.clone(),
            error: error.clone(),
            agent: arguments.agent.clone(),
            counts: stores.counts(&arguments.error_type, &error),
            key: arguments.key.clone(),
            ..Attempt::default()
        },
        at_once: arguments.immediately,
    };
    match stores.fail(&report) {
        Err(error) => refused(console, &error),
        Ok(taken) => {
            console.print(&match arguments.format {
                ListFormat::Json => format!("{}\n", taken_json(&taken)),
                ListFormat::Text | ListFormat::Compact => taken_text(&taken),
            });
            report_problems(console, &taken.problems);
            EXIT_OK
        }
    }
}

fn taken_json(taken: &RecordedFailure) -> serde_json::Value {
    json!({
        "task_id": taken.task.id, "dead_letter": taken.task.place == TaskQueue::DeadLetter,
        "place": taken.task.place.as_str(), "attempts": taken.task.failed_attempts(),
        "failure_count": taken.task.failures, "rule": taken.entered,
        "simplify": taken.simplify, "known": taken.known, "escalation": taken.escalation,
    })
}

fn taken_text(taken: &RecordedFailure) -> String {
    let task = &taken.task;
    let (id, attempts) = (&task.id, task.failed_attempts());
    if taken.known {
        return format!("{id}: duplicate report (same `--key`); ignored\n");
    }
    let counts = task.attempts.last().is_none_or(|it| it.counts);
    let mut text = if counts {
        format!("{id}: recorded failed attempt {attempts}\n")
    } else {
        format!("{id}: recorded; the failure does not count as an attempt\n")
    };
    if !taken.entered.is_empty() {
        let plan =
            if task.strategy.is_empty() { String::new() } else { format!("; {}", task.strategy) };
        text = format!(
            "{id}: moved to the dead-letter queue after failed attempt {attempts} ({}{plan})\n",
            taken.entered
        );
    }
    if taken.simplify {
        text.push_str(&format!("{id}: try a simpler approach, or a smaller scope\n"));
    }
    if !taken.escalation.is_empty() {
        text.push_str(&format!("{id}: escalated: escalations/{}.md\n", taken.escalation));
    }
    text
}

fn list(
    stores: &Stores<'_>,
    console: &mut Console<'_>,
    place: QueueSelector,
    wanted: Option<&str>,
    format: ListFormat,
) -> u8 {
    let lists = stores.queues.peek();
    let code = console.report_unread(stores.queues.problems());
    let place = match place {
        QueueSelector::Pending => Some(TaskQueue::Pending),
        QueueSelector::InProgress => Some(TaskQueue::InProgress),
        QueueSelector::DeadLetter => Some(TaskQueue::DeadLetter),
        QueueSelector::Abandoned => Some(TaskQueue::Abandoned),
        QueueSelector::All => None,
    };
    let fits = |it: &&Task| {
        place.is_none_or(|place| it.place == place)
            && wanted.is_none_or(|wanted| cause(it).is_some_and(|it| it.starts_with(wanted)))
    };
    let mut is_empty = true;
    for task in lists.tasks.iter().filter(fits) {
        is_empty = false;
        match format {
            ListFormat::Json => console.print(&format!("{}\n", shown::to_json(task))),
            ListFormat::Text | ListFormat::Compact => {
                console.print_lines(&shown::line(task, stores.now));
            }
        }
    }
    if is_empty && code == EXIT_OK {
        let what = match place {
            None => "failed tasks",
            Some(TaskQueue::Pending) => "pending tasks",
            Some(TaskQueue::InProgress) => "tasks in progress",
            Some(TaskQueue::DeadLetter) => "dead-lettered tasks",
            Some(TaskQueue::Abandoned) => "abandoned tasks",
        };
        print_empty(console, format, what);
    }
    code
}

fn show(stores: &Stores<'_>, console: &mut Console<'_>, id: &str, format: ListFormat) -> u8 {
    let lists = stores.queues.peek();
    let Some(task) = lists.find(id) else { return unknown(stores, console, &lists, id) };
    let next = stores.preview_review(&[id.to_owned()]).into_iter().next();
    match format {
        ListFormat::Json => {
            let mut value = shown::to_json(task);
            if let (Some(fields), Some(next)) = (value.as_object_mut(), &next) {
                fields.insert("next_review".to_owned(), row_json(next));
            }
            console.print(&format!("{value:#}\n"));
        }
        ListFormat::Text | ListFormat::Compact => {
            console.print_lines(&shown::details(task, stores.now));
            if let Some(next) = next {
                console.print(&format!("  next review: {}", row_text(&next)));
            }
        }
    }
    EXIT_OK
}

/// Which dead-lettered tasks are reviewed.
struct ReviewRequest<'r> {
    /// Ids; empty: all of them.
    tasks: &'r [String],
    /// Whether nothing is done unless a review is due.
    if_due: bool,
    dry_run: bool,
}

fn review(
    stores: &Stores<'_>,
    console: &mut Console<'_>,
    request: &ReviewRequest<'_>,
    format: ListFormat,
) -> u8 {
    let ReviewRequest { tasks, if_due, dry_run } = *request;
    let lists = stores.queues.peek();
    if !lists.unreadable.is_empty() {
        return console.report_unread(stores.queues.problems());
    }
    let every = stores.policy.dead_letter.review_every;
    let is_due = review_due(lists.metadata.last_reviewed, every, stores.now);
    if if_due && !is_due && lists.review_from.is_empty() {
        console.print("last review is recent; nothing done\n");
        return EXIT_OK;
    }
    if let Some(id) = tasks.iter().find(|it| lists.find(it).is_none()) {
        return unknown(stores, console, &lists, id);
    }
    let foreseen = || Ok(ReviewedTasks { rows: stores.preview_review(tasks), left: 0 });
    let reviewed = if dry_run { foreseen() } else { stores.review(tasks) };
    match reviewed {
        Err(error) => refused(console, &error),
        Ok(ReviewedTasks { rows, left }) => {
            for row in &rows {
                console.print(&match format {
                    ListFormat::Json => format!("{}\n", row_json(row)),
                    ListFormat::Text | ListFormat::Compact => row_text(row),
                });
                report_problems(console, &row.problems);
            }
            if rows.is_empty() && format == ListFormat::Text {
                console.print("no dead-lettered tasks to review\n");
            }
            if left > 0 {
                console.eprint(&format!(
                    "dead-lettered tasks left for the next review: {left}\nhelp: run this command again, \
                     or wait for the next session"
                ));
            }
            EXIT_OK
        }
    }
}

fn row_json(row: &ReviewRow) -> serde_json::Value {
    json!({
        "task_id": row.task.id, "action": row.action, "rule": row.rule, "to": row.task.place.as_str(),
        "recovery_strategy": row.task.strategy, "reason": row.task.reason,
        "escalation": row.escalation, "part": row.part, "unknown_dependencies": row.unknown,
    })
}

pub(super) fn row_text(row: &ReviewRow) -> String {
    let ReviewRow { task, rule, .. } = row;
    let id = &task.id;
    match row.action {
        "retry" => format!("{id}: requeued to {} ({rule})\n", task.place.as_str()),
        "split" => format!("{id}: replaced by `{}` ({rule})\n", row.part),
        "escalate" if row.escalation.is_empty() => format!("{id}: escalated ({rule})\n"),
        "escalate" => {
            format!("{id}: escalated: escalations/{}.md ({rule})\n", row.escalation)
        }
        "abandon" => format!("{id}: abandoned, {} ({rule})\n", task.reason),
        "wait" => format!("{id}: waiting ({rule})\n"),
        _ if row.unknown.is_empty() => format!("{id}: unchanged, no rule applies\n"),
        _ => {
            let unknown = row.unknown.join("`, `");
            format!(
                "{id}: unchanged, no rule applies; in no queue and not known to be done: `{unknown}`\n"
            )
        }
    }
}

fn stats(stores: &Stores<'_>, console: &mut Console<'_>, format: ListFormat) -> u8 {
    let lists = stores.queues.peek();
    let code = console.report_unread(stores.queues.problems());
    let counts: BTreeMap<&str, usize> =
        TaskQueue::ALL.into_iter().map(|it| (it.as_str(), lists.on(it).count())).collect();
    let mut causes: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for task in lists.on(TaskQueue::DeadLetter) {
        if let Some(cause) = cause(task) {
            causes.entry(cause).or_insert_with(|| (0, task.summary.clone())).0 += 1;
        }
    }
    let tasks: Vec<&Task> = lists.tasks.iter().collect();
    let metadata = lists.metadata;
    let record = queue_record(&tasks, metadata.last_reviewed, stores.now);
    let alarms = alarms(&stores.policy.dead_letter, record, None);
    let due =
        review_due(metadata.last_reviewed, stores.policy.dead_letter.review_every, stores.now);
    let reviewed = metadata.last_reviewed.map(|it| it.to_string());
    if format == ListFormat::Json {
        let causes: Vec<_> = causes
            .iter()
            .map(|(cause, (count, example))| json!({"cause": cause, "tasks": count, "example": example}))
            .collect();
        let alarms: Vec<_> =
            alarms.iter().map(|(id, text)| json!({"id": id, "text": text})).collect();
        let value = json!({"counts": counts, "causes": causes, "last_reviewed": reviewed,
            "review_due": due, "total_abandoned": metadata.total_abandoned,
            "total_recovered": metadata.total_recovered, "alarms": alarms});
        console.print(&format!("{value:#}\n"));
        return code;
    }
    for (name, count) in counts {
        console.print(&format!("{name:<12} {count}\n"));
    }
    let due = if due { ", due" } else { "" };
    console.print(&format!("reviewed     {}{due}\n", reviewed.as_deref().unwrap_or("never")));
    console.print(&format!("recovered    {}\n", metadata.total_recovered));
    console.print(&format!("abandoned    {}\n", metadata.total_abandoned));
    for (cause, (count, example)) in causes {
        let (cause, example) = (notice::shown(&cause), notice::shown(&example));
        console.print(&format!("cause {cause}: {count}x, such as: {example}\n"));
    }
    for (id, text) in alarms {
        console.print(&format!("ALARM {id}: {text}\n"));
    }
    code
}
