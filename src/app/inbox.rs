//! `policyd inbox`: what waits for a human in all projects, and the answers. A question and the tasks that it is about are
//! one item.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::dashboard::{self, AnsweredItem, ItemAnswer};
use crate::error::AppError;
use crate::overview::OpenProject;
use crate::tasks::{StoreLocation, Stores};
use crate::workspace::human::Actor;
use crate::workspace::project;
use policyd_cores as cores;
use policyd_state::dead_letter::{Task, TaskQueue};
use policyd_state::run::{Run, RunPhase, RunStatus};
use policyd_store::file::Durability;
use policyd_store::projects::{KnownProject, ProjectRegistry};
use policyd_store::runs::RunStore;
use policyd_world::{FileKind, World};

/// What waits for a human. The order is that of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InboxKind {
    /// An escalation.
    Question,
    /// A signal that asks.
    Signal,
    /// A task in the dead-letter queue without an open question.
    DeadLetter,
    /// A breaker that only a human can reset.
    Breaker,
    /// A run that ended for a human, or was paused.
    Run,
}

impl InboxKind {
    /// Returns the word that the user reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Signal => "signal",
            Self::DeadLetter => "dead letter",
            Self::Breaker => "breaker",
            Self::Run => "run",
        }
    }

    /// Returns what a yes does.
    #[must_use]
    pub const fn yes(self) -> &'static str {
        match self {
            Self::Question | Self::Signal => "approve",
            Self::DeadLetter => "retry",
            Self::Breaker => "reset",
            Self::Run => "resume",
        }
    }

    /// Returns what a no does. `None` if a no changes nothing.
    #[must_use]
    pub const fn no(self) -> Option<&'static str> {
        match self {
            Self::Question | Self::Signal => Some("reject"),
            Self::DeadLetter => Some("abandon"),
            Self::Breaker | Self::Run => None,
        }
    }
}

/// Something that waits for a human.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxItem {
    /// Id of the escalation, the signal, the task, or the run; key of the breaker.
    pub id: String,
    pub kind: InboxKind,
    /// Directory of the project.
    pub project: PathBuf,
    /// What is asked, or why it waits.
    pub text: String,
}

/// Returns what waits in all known projects, questions first.
#[must_use]
pub fn items(world: &dyn World) -> Vec<InboxItem> {
    let mut known = ProjectRegistry::new(world).all();
    let here = project::find(world, None);
    if !known.iter().any(|it| it.directory == here.main) {
        let since = world.now();
        known.push(KnownProject { directory: here.main, state_dir: here.state, since });
    }
    known.retain(|it| world.stat(&it.directory).is_ok_and(|it| it.kind == FileKind::Folder));
    let items = cores::on_all(world.cores(), &known, |it| items_of(world, it));
    let mut items: Vec<InboxItem> = items.into_iter().flatten().collect();
    items.sort_by_key(|it| it.kind);
    items
}

fn items_of(world: &dyn World, known: &KnownProject) -> Vec<InboxItem> {
    let Some(open) = OpenProject::of(world, known) else { return Vec::new() };
    let state_dir = open.state_dir(world);
    let durability = Durability::default();
    let location =
        StoreLocation { state_dir: &state_dir, durability: &durability, lock_wait: Duration::ZERO };
    let stores = Stores::new(world, &open.policy, location);
    let item = |id: &str, kind, text: &str| InboxItem {
        id: id.to_owned(),
        kind,
        project: known.directory.clone(),
        text: policyd_evaluation::message::in_one_line(text),
    };
    let titled = |title: &str, text: &str| match title {
        "" => text.to_owned(),
        title => format!("{title}: {text}"),
    };
    let mut items = Vec::new();
    let escalations = stores.escalations.all().unwrap_or_default();
    let asked: Vec<_> = escalations.iter().filter(|it| it.closed.is_none()).collect();
    for it in &asked {
        items.push(item(&it.id, InboxKind::Question, &titled(&it.title, &it.reason)));
    }
    let view = stores.signals.view(stores.now);
    for it in view.awaiting_human(&open.policy.signals, stores.now) {
        items.push(item(&it.id, InboxKind::Signal, &titled(&it.name, it.message())));
    }
    // The answer to a question also moves its task.
    let lists = stores.queues.peek();
    let is_asked =
        |task: &Task| asked.iter().any(|it| it.task_id == task.id || it.id == task.waits_for);
    for it in lists.on(TaskQueue::DeadLetter).filter(|it| !is_asked(it)) {
        items.push(item(&it.id, InboxKind::DeadLetter, &titled(&it.title, &it.summary)));
    }
    for (key, breaker) in stores.breakers.all().unwrap_or_default() {
        if breaker.needs_human {
            items.push(item(&key, InboxKind::Breaker, "waits for a reset"));
        }
    }
    // A run that waits for an answer can be resumed after the answer.
    if !items.iter().any(|it| matches!(it.kind, InboxKind::Question | InboxKind::Signal)) {
        items.extend(
            waiting_run(world, &state_dir).map(|(id, text)| item(&id, InboxKind::Run, &text)),
        );
    }
    items
}

/// Returns the id of the last run of a project, and why it waits for a human.
fn waiting_run(world: &dyn World, state_dir: &Path) -> Option<(String, String)> {
    let runs = RunStore::new(world, state_dir, Durability::default());
    let run = runs.ids().pop().and_then(|it| runs.load(&it).ok())?;
    let text = format!("{}: {}", run.goal, waits(&run)?);
    Some((run.id, text))
}

/// Returns why a run waits for a human.
fn waits(run: &Run) -> Option<&str> {
    match &run.phase {
        RunPhase::Over { status: RunStatus::HumanNeeded | RunStatus::DeadLetter, why } => Some(why),
        RunPhase::Paused => Some("paused"),
        RunPhase::Over { .. }
        | RunPhase::Waiting { .. }
        | RunPhase::Ready
        | RunPhase::Asking
        | RunPhase::Working => None,
    }
}

/// Answers an item. Returns why the shared store does not have the answer yet; `None` if it has, or without a shared store.
///
/// # Errors
/// Nothing was changed.
pub fn answer(
    world: &dyn World,
    item: &InboxItem,
    answer: ItemAnswer<'_>,
    actor: &Actor,
) -> Result<Option<String>, AppError> {
    let known = ProjectRegistry::new(world).all();
    let here = project::find(world, None);
    let known = known.into_iter().find(|it| it.directory == item.project);
    let known = known.unwrap_or(KnownProject {
        directory: here.main,
        state_dir: here.state,
        since: world.now(),
    });
    let open = OpenProject::of(world, &known)
        .ok_or_else(|| AppError::failed_as("the built-in pack is invalid"))?;
    let target = AnsweredItem { open, kind: item.kind, id: &item.id };
    dashboard::answer(world, target, answer, actor)
}
