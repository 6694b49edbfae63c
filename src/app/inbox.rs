//! `policyd inbox`: what waits for a human in all projects, and the answers. A question and the tasks that it is about are
//! one item.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::blocked_calls;
use crate::dashboard::{self, AnsweredItem, ItemAnswer};
use crate::error::AppError;
use crate::overview::{self, OpenProject};
use crate::shared_items::SharedItems;
use crate::workspace::human::Actor;
use crate::workspace::project;
use policyd_cores as cores;
use policyd_report::overview::WaitingItem;
use policyd_store::projects::{KnownProject, ProjectRegistry};
use policyd_world::{FileKind, World};

/// Something that waits for a human in a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxItem {
    /// Directory of the project.
    pub project: PathBuf,
    pub item: WaitingItem,
}

/// Returns the known projects whose directories exist, and that of the working directory.
pub fn known_projects(world: &dyn World) -> Vec<KnownProject> {
    let mut known = ProjectRegistry::new(world).all();
    let here = project::find(world, None);
    if !known.iter().any(|it| it.directory == here.main) {
        let since = world.now();
        known.push(KnownProject { directory: here.main, state_dir: here.state, since });
    }
    known.retain(|it| world.stat(&it.directory).is_ok_and(|it| it.kind == FileKind::Folder));
    known
}

/// Returns what waits in all known projects, questions first.
#[must_use]
pub fn items(world: &dyn World) -> Vec<InboxItem> {
    let known = known_projects(world);
    let opened = known.iter().filter_map(|it| {
        Some((it.directory.clone(), OpenProject::of(world, it)?.state_dir(world)))
    });
    let shared = SharedItems::of(world, opened);
    let shared_codes: BTreeSet<String> = shared.codes().collect();
    let items = cores::on_all(world.cores(), &known, |known| {
        let item = |item| InboxItem { project: known.directory.clone(), item };
        let open = OpenProject::of(world, known);
        let calls = open.iter().flat_map(|it| blocked_calls::items(world, it));
        let calls = calls.filter(|it| !shared_codes.contains(&it.id));
        overview::waiting(world, known).into_iter().chain(calls).map(item).collect::<Vec<_>>()
    });
    let mut items: Vec<InboxItem> = items.into_iter().flatten().collect();
    items.extend(shared.items().map(|(project, item)| InboxItem { project, item }));
    items.sort_by_key(|it| it.item.kind);
    items
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
    let target = AnsweredItem { open, kind: item.item.kind, id: &item.item.id };
    dashboard::answer(world, target, answer, actor)
}
