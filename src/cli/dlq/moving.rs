//! Tasks that a user or an agent moves by a command: requeued, abandoned, or resolved.

use std::time::Duration;

use serde_json::json;

use super::{CopyLimits, refused, report_problems, unknown};
use crate::human::{HumanAnswer, require_human};
use crate::{Console, DlqRetry, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, ListFormat};
use policyd_app::sharing::SyncLimits;
use policyd_app::tasks::{ClaimError, ReviewedTasks, Stores};
use policyd_evaluation::dead_letter::cause;
use policyd_report::overview::WaitingKind;
use policyd_state::dead_letter::{Hints, Task, TaskClaim, TaskEvent, TaskQueue};

/// Requeues a task. With a new hint, such as another approach, the review decides. Without one, the command decides.
pub(super) fn retry(
    stores: &Stores<'_>,
    console: &mut Console<'_>,
    arguments: &DlqRetry,
    answer: &mut Option<HumanAnswer>,
) -> u8 {
    let (id, lists) = (&arguments.task, stores.queues.peek());
    let Some(task) = lists.find(id) else { return unknown(stores, console, &lists, id) };
    if arguments.force || is_a_humans(task) {
        let action = format!("requeue task `{id}`");
        match require_human(stores.world, console, &action) {
            Ok(actor) => {
                *answer = Some(HumanAnswer::new("retry", WaitingKind::DeadLetter, id, actor))
            }
            Err(code) => return code,
        }
    }
    let at_work = !matches!(task.place, TaskQueue::DeadLetter | TaskQueue::Abandoned);
    if at_work && task.waits_for.is_empty() {
        console.print(&format!("{id}: is at work already ({})\n", task.place.as_str()));
        *answer = None;
        return EXIT_OK;
    }
    if task.redrives >= stores.policy.dead_letter.redrive_times && !arguments.force {
        let times = task.redrives;
        console.eprint(&format!(
            "task `{id}` was requeued {times}x and failed each time\nhelp: let a human review \
             the task, or requeue it with `--force`"
        ));
        return EXIT_FOUND;
    }
    let available = arguments.dependency_available.then(|| "dependency_available".to_owned());
    let learned = Task {
        hints: Hints {
            new_approach: arguments.approach.clone(),
            simpler_scope: arguments.scope.clone(),
            fix_commit: arguments.fix_commit.clone(),
            marks: available.into_iter().collect(),
        },
        ..Task::default()
    };
    if learned == Task::default() || task.place != TaskQueue::DeadLetter {
        return moved(stores, console, id, "released", TaskEvent::Released, "");
    }
    let reviewed = stores.learn(id, &learned).and_then(|_| stores.review(std::slice::from_ref(id)));
    match reviewed {
        Err(error) => refused(console, &error),
        Ok(ReviewedTasks { rows, .. }) => {
            let done = rows.iter().any(|it| matches!(it.action, "retry" | "split"));
            for row in &rows {
                console.print(&super::row_text(row));
                report_problems(console, &row.problems);
            }
            if done { EXIT_OK } else { EXIT_FOUND }
        }
    }
}

/// Whether a human decides, or decided, about a task.
fn is_a_humans(task: &Task) -> bool {
    !task.waits_for.is_empty() || task.reason == "human"
}

/// Gives a task up.
pub(super) fn abandon(
    stores: &Stores<'_>,
    console: &mut Console<'_>,
    id: &str,
    reason: &str,
    answer: &mut Option<HumanAnswer>,
) -> u8 {
    match require_human(stores.world, console, &format!("abandon task `{id}`")) {
        Ok(actor) => {
            let by = actor.text();
            let given = HumanAnswer::new("abandon", WaitingKind::DeadLetter, id, actor);
            *answer = Some(HumanAnswer { text: reason.to_owned(), ..given });
            moved(stores, console, id, "abandoned", TaskEvent::GivenUp { reason }, &by)
        }
        Err(code) => code,
    }
}

/// Says that a task is done.
pub(super) fn resolve(
    stores: &Stores<'_>,
    console: &mut Console<'_>,
    id: &str,
    answer: &mut Option<HumanAnswer>,
) -> u8 {
    match require_human(stores.world, console, &format!("mark task `{id}` as done")) {
        Ok(actor) => {
            let by = actor.text();
            *answer = Some(HumanAnswer::new("resolve", WaitingKind::DeadLetter, id, actor));
            moved(stores, console, id, "resolved", TaskEvent::Resolved, &by)
        }
        Err(code) => code,
    }
}

fn moved(
    stores: &Stores<'_>,
    console: &mut Console<'_>,
    id: &str,
    what: &str,
    event: TaskEvent<'_>,
    by: &str,
) -> u8 {
    let details = if by.is_empty() { json!({}) } else { json!({"by": by}) };
    match stores.act(id, what, event, details) {
        Err(error) => refused(console, &error),
        Ok(None) => unknown(stores, console, &stores.queues.peek(), id),
        Ok(Some((task, _))) => {
            let to =
                if what == "resolved" { "done".to_owned() } else { task.place.as_str().to_owned() };
            console.print(&format!("{id}: {to}\n"));
            EXIT_OK
        }
    }
}

/// Puts dead letters back to work, oldest first, at the rate that the pack allows.
pub(super) fn redrive(
    stores: &Stores<'_>,
    console: &mut Console<'_>,
    tasks: &[String],
    wanted: Option<&str>,
    dry_run: bool,
) -> u8 {
    let lists = stores.queues.peek();
    if !lists.unreadable.is_empty() {
        return console.report_unread(stores.queues.problems());
    }
    if let Some(id) = tasks.iter().find(|it| lists.find(it).is_none()) {
        return unknown(stores, console, &lists, id);
    }
    let rules = &stores.policy.dead_letter;
    let lately = |it: &&Task| {
        it.redriven.is_some_and(|at| stores.now.since(at) < rules.redrive_per && at <= stores.now)
    };
    let left = rules.redrive_rate.saturating_sub(lists.tasks.iter().filter(lately).count());
    let mut dead: Vec<&Task> = lists
        .on(TaskQueue::DeadLetter)
        .filter(|it| tasks.is_empty() || tasks.contains(&it.id))
        .filter(|it| wanted.is_none_or(|wanted| cause(it).is_some_and(|it| it.starts_with(wanted))))
        .collect();
    dead.sort_by_key(|it| it.first_failure);
    let mut moved = 0_usize;
    for task in dead {
        let id = &task.id;
        if !task.waits_for.is_empty() {
            console.print(&format!("{id}: waits for a human\n"));
        } else if task.redrives >= rules.redrive_times {
            console.print(&format!(
                "{id}: already requeued {}x; a human must review it\n",
                task.redrives
            ));
        } else if moved >= left {
            console.print(&format!(
                "{id}: deferred; the limit is {} per {}\n",
                rules.redrive_rate,
                policyd_yaml::time::duration_text(rules.redrive_per)
            ));
        } else if dry_run {
            moved = moved.saturating_add(1);
            console.print(&format!("{id}: would be requeued\n"));
        } else {
            moved = moved.saturating_add(1);
            let event = TaskEvent::Redriven;
            match stores.act(id, "redriven", event, json!({"redrive": true})) {
                Err(error) => return refused(console, &error),
                Ok(_) => console.print(&format!("{id}: pending\n")),
            }
        }
    }
    EXIT_OK
}

/// Which dead letter an agent wants to claim.
pub(super) struct ClaimRequest<'r> {
    /// Ids; the first free one is claimed.
    pub(super) ids: &'r [String],
    /// Name of the agent.
    pub(super) holder: &'r str,
    pub(super) lease: Duration,
    /// The copy that the ids come from.
    pub(super) copy: CopyLimits<'r>,
}

/// How the claim of a dead letter ends.
#[derive(Clone, Copy)]
pub(super) struct ClaimEnd<'r> {
    pub(super) id: &'r str,
    pub(super) generation: u64,
    /// Whether the task is done.
    pub(super) is_done: bool,
}

/// Returns the outcome of a claim whose answer was lost, as a clause.
fn outcome_of(error: &ClaimError) -> &'static str {
    match error.is_outcome_unknown() {
        true => ", or it is taken back",
        false => "",
    }
}

/// Claims a dead letter for an agent.
pub(super) fn claim(
    stores: &Stores<'_>,
    console: &mut Console<'_>,
    wish: &ClaimRequest<'_>,
    format: ListFormat,
) -> u8 {
    let ClaimRequest { ids, holder, lease, copy } = *wish;
    let lists = stores.queues.peek();
    if let [id] = ids
        && copy.is_current
        && lists.find(id).is_none()
    {
        return unknown(stores, console, &lists, id);
    }
    match stores.claim(ids, holder, lease, copy.sync) {
        Err(error) => {
            console.eprint(&format!("{error}; nothing was claimed{}", outcome_of(&error)));
            EXIT_BROKEN
        }
        // Another host can have a free task.
        Ok(None) if !copy.is_current => {
            console.eprint(
                "no dead-lettered task of the local copy is free, and the copy is not current\nhelp: try again",
            );
            EXIT_BROKEN
        }
        Ok(None) => {
            console.eprint("no dead-lettered task is free");
            EXIT_FOUND
        }
        Ok(Some((task, claim))) => {
            let TaskClaim { generation, until, .. } = claim;
            console.print(&match format {
                ListFormat::Json => {
                    let fields = json!({"task_id": task.id, "generation": generation,
                        "until": until.to_string(), "title": task.title});
                    format!("{fields}\n")
                }
                ListFormat::Text | ListFormat::Compact => {
                    format!("{}: claimed until {until}, generation {generation}\n", task.id)
                }
            });
            EXIT_OK
        }
    }
}

/// Gives a claimed dead letter back, or marks it as done.
pub(super) fn end_claim(
    stores: &Stores<'_>,
    console: &mut Console<'_>,
    end: ClaimEnd<'_>,
    limits: SyncLimits<'_>,
) -> u8 {
    let ClaimEnd { id, generation, is_done } = end;
    match stores.end_claim(id, generation, is_done, limits) {
        Err(error) => {
            let text = match error.is_outcome_unknown() {
                true => "see `policyd dlq show` whether the claim ended",
                false => "the claim stays",
            };
            console.eprint(&format!("{error}; {text}"));
            EXIT_BROKEN
        }
        Ok(true) => {
            console
                .print(&format!("{id}: {}\n", if is_done { "done" } else { "no longer claimed" }));
            EXIT_OK
        }
        Ok(false) => {
            console.eprint(&format!(
                "task `{id}` has no claim with generation {generation}; another agent claimed it, or it is done"
            ));
            EXIT_FOUND
        }
    }
}
