//! `policyd inbox`: what waits for a human in all projects, and the answers.

use std::cell::Cell;

use serde_json::json;

use super::arguments::{AnswerArguments, InboxAction, InboxArguments};
use super::{Console, EXIT_OK, EXIT_USAGE, ListFormat, allow, error};
use crate::human::{HumanAnswer, require_human};
use crate::lists::print_empty;
use policyd_app::dashboard::ItemAnswer;
use policyd_app::inbox::{self, InboxItem};
use policyd_app::overview::OpenProject;
use policyd_app::sharing::{self, COMMAND, SyncLimits};
use policyd_app::tasks::{StoreLocation, Stores};
use policyd_app::workspace::project;
use policyd_base::limits::COMMAND_LOCK_WAIT;
use policyd_facts::shell::quote;
use policyd_record::mask::mask;
use policyd_record::paint::TextColor;
use policyd_record::table::{Align, TextCell, TextTable};
use policyd_report::overview::WaitingKind;
use policyd_store::file::Durability;
use policyd_store::shared::{SharedStore, SyncError, SyncResult};
use policyd_world::World;

/// Lists what waits, or answers an item.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &InboxArguments) -> u8 {
    refresh(world).iter().for_each(|it| console.eprint(it));
    match &arguments.action {
        Some(InboxAction::Answer(answer)) => self::answer(world, console, answer),
        Some(InboxAction::List { format }) => list(world, console, *format),
        None => list(world, console, arguments.format),
    }
}

fn list(world: &dyn World, console: &mut Console<'_>, format: ListFormat) -> u8 {
    let items = inbox::items(world);
    let masked = |it: &InboxItem| mask(&it.item.text).0.into_owned();
    match format {
        ListFormat::Json => {
            let item = |it: &InboxItem| {
                json!({"id": it.item.id, "kind": it.item.kind.name(), "project": it.project, "text": masked(it),
                    "yes": it.item.kind.yes(), "no": it.item.kind.no()})
            };
            let items: Vec<_> = items.iter().map(item).collect();
            console.print(&format!("{:#}\n", json!({"version": 1, "items": items})));
        }
        ListFormat::Compact => {
            for it in &items {
                let (kind, project) = (it.item.kind.name(), it.project.display());
                console.print(&format!("{} {kind} {project} {}\n", it.item.id, masked(it)));
            }
        }
        ListFormat::Text if items.is_empty() => print_empty(console, format, "item waits for you"),
        ListFormat::Text => {
            let mut table = TextTable::new(0, &[Align::Left; 4]);
            for it in &items {
                let name = it.project.file_name().unwrap_or(it.project.as_os_str());
                let kind = TextCell::new(it.item.kind.name(), color(it.item.kind));
                let project = name.to_string_lossy().into_owned();
                table.row(vec![
                    it.item.id.as_str().into(),
                    kind,
                    project.into(),
                    masked(it).into(),
                ]);
            }
            let text = table.render(console.screen());
            let has_run = items.iter().any(|it| it.item.kind == WaitingKind::Run);
            let hint = format!(
                "Answer: policyd inbox answer ID yes|no [TEXT].{}",
                if has_run { " Resume a run in its project: policyd run --resume" } else { "" }
            );
            let hint = console.screen().style().dim(&hint);
            console.print(&format!("{text}\n{hint}\n"));
        }
    }
    EXIT_OK
}

const fn color(kind: WaitingKind) -> TextColor {
    match kind {
        WaitingKind::Question
        | WaitingKind::Signal
        | WaitingKind::RemoteSignal
        | WaitingKind::Call
        | WaitingKind::LocalCall => TextColor::Red,
        WaitingKind::DeadLetter
        | WaitingKind::Breaker
        | WaitingKind::UnverifiedRun
        | WaitingKind::Run => TextColor::Yellow,
    }
}

fn answer(world: &dyn World, console: &mut Console<'_>, arguments: &AnswerArguments) -> u8 {
    let items = inbox::items(world);
    let inbox_item = match find(&items, console, &arguments.id) {
        Ok(found) => found,
        Err(code) => return code,
    };
    let InboxItem { project: directory, item } = inbox_item;
    let approved = arguments.answer.is_yes();
    let verb = if approved { Some(item.kind.yes()) } else { item.kind.no() };
    let is_resume = item.kind == WaitingKind::Run && approved;
    let Some(verb) = verb.filter(|_| !is_resume) else {
        let help = match item.kind {
            WaitingKind::Run => {
                let command = item.command.strip_prefix("policyd ").unwrap_or(&item.command);
                let project = quote(&directory.display().to_string());
                format!("`policyd -C {project} {command}` continues it; answer no to dismiss it")
            }
            WaitingKind::Breaker => "answer yes to reset it, or leave it open".to_owned(),
            WaitingKind::LocalCall => {
                "answer yes to allow it once; without an answer, it stays blocked".to_owned()
            }
            WaitingKind::Question
            | WaitingKind::Signal
            | WaitingKind::RemoteSignal
            | WaitingKind::Call
            | WaitingKind::UnverifiedRun
            | WaitingKind::DeadLetter => "answer yes or no".to_owned(),
        };
        console.eprint(&format!("a {} has no such answer\nhelp: {help}", item.kind.name()));
        return EXIT_USAGE;
    };
    if item.kind == WaitingKind::LocalCall {
        return allow::call(world, console, &project::at(world, directory), &item.id);
    }
    let what = mask(&item.text).0.into_owned();
    let action =
        format!("{verb} {} {} ({what}) in {}", item.kind.name(), item.id, directory.display());
    let actor = match require_human(world, console, &action) {
        Ok(actor) => actor,
        Err(code) => return code,
    };
    let text = mask(&arguments.text.join(" ")).0.into_owned();
    let answer = ItemAnswer { approved, text: &text };
    match inbox::answer(world, inbox_item, answer, &actor) {
        Err(error) => error::report(console, &error),
        Ok(queued) => {
            let at = project::at(world, directory);
            let answer =
                HumanAnswer { what, text, ..HumanAnswer::new(verb, item.kind, &item.id, actor) };
            answer.log(world, &at.state);
            console.print(&format!("recorded: {verb} {} {}\n", item.kind.name(), item.id));
            print_related(console, inbox_item, approved);
            if let Some(why) = queued {
                console.eprint(&format!("the shared store does not have the answer yet: {why}"));
            }
            EXIT_OK
        }
    }
}

/// Returns the item with an id, or with an id that begins so.
fn find<'i>(
    items: &'i [InboxItem],
    console: &mut Console<'_>,
    id: &str,
) -> Result<&'i InboxItem, u8> {
    let found: Vec<&InboxItem> = items.iter().filter(|it| it.item.id.starts_with(id)).collect();
    let exact = items.iter().find(|it| it.item.id == id);
    match (exact, found.as_slice()) {
        (Some(item), _) => Ok(item),
        (None, [item]) => Ok(item),
        (None, []) => {
            console.eprint(&format!(
                "nothing waits with the id `{id}`\nhelp: `policyd inbox` lists what waits"
            ));
            Err(EXIT_USAGE)
        }
        (None, [_, ..]) => {
            let ids: Vec<&str> = found.iter().map(|it| it.item.id.as_str()).collect();
            console.eprint(&format!("ambiguous id `{id}`\nhelp: one of {}", ids.join(", ")));
            Err(EXIT_USAGE)
        }
    }
}

/// Prints what else a yes did, and what is left to do.
fn print_related(console: &mut Console<'_>, answered: &InboxItem, approved: bool) {
    for it in answered.item.related.iter().filter(|_| approved) {
        match it.kind {
            WaitingKind::Run => console.print(&format!(
                "continue its run {} in {}: policyd run --resume\n",
                it.id,
                answered.project.display()
            )),
            WaitingKind::Breaker => console.print(&format!("reset breaker {}\n", it.id)),
            WaitingKind::Question
            | WaitingKind::Signal
            | WaitingKind::RemoteSignal
            | WaitingKind::Call
            | WaitingKind::LocalCall
            | WaitingKind::UnverifiedRun
            | WaitingKind::DeadLetter => {}
        }
    }
}

/// Takes over what other hosts of a shared store changed in all known projects, within the time of one command. Returns what
/// the user should know.
fn refresh(world: &dyn World) -> Vec<String> {
    let left = Cell::new(COMMAND.wait);
    let mut texts: Vec<String> = Vec::new();
    for known in inbox::known_projects(world) {
        let found = SharedStore::find(world, &known.state_dir, &Durability::default());
        // The store is configured for all projects of the user.
        if matches!(found, Ok(None)) {
            break;
        }
        let Some(open) = OpenProject::of(world, &known) else { continue };
        let done = open.fenced(world, |world| refresh_project(world, &open, COMMAND.within(&left)));
        let said = done.unwrap_or_else(|error| {
            vec![format!("{error}\nhelp: the local copy is used until then")]
        });
        let new: Vec<String> = said.into_iter().filter(|it| !texts.contains(it)).collect();
        texts.extend(new);
    }
    texts
}

/// Takes over what other hosts changed in a project, the answers of humans to signals of this host included. A project without
/// state stays without it.
fn refresh_project(
    world: &dyn World,
    open: &OpenProject,
    limits: SyncLimits<'_>,
) -> Result<Vec<String>, SyncError> {
    let (sessions, state_dir) = project::sessions(world, &open.project, &open.policy.settings);
    if world.stat(&state_dir).is_err() {
        return Ok(Vec::new());
    }
    let (state_dir, durability) = (state_dir.as_path(), &sessions.durability);
    let synced = sharing::sync(world, state_dir, durability, limits)?;
    let location = StoreLocation { state_dir, durability, lock_wait: COMMAND_LOCK_WAIT };
    let stores = Stores::new(world, &open.policy, location);
    stores.signals.take_over_ends(stores.now)?;
    let SyncResult { rejected, notes, unread, .. } = synced.unwrap_or_default();
    let all = rejected.iter().chain(&notes).chain(&unread);
    Ok(all.map(|it| format!("shared store: {it}")).collect())
}
