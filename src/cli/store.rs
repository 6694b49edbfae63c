//! `policyd store`: the server that several hosts share.

mod runs;
mod waiting;

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::{
    Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ListFormat, StoreAction, StorePlace,
    pack,
};
use crate::human::HumanAnswer;
use policyd_app::sharing;
use policyd_app::workspace::project;
use policyd_base::limits::SHARED_STORE_WAIT;
use policyd_store::configuration::{Configuration, ConfigurationOwner};
use policyd_store::decision_log::DECISION_LOG;
use policyd_store::file::Durability;
use policyd_store::projects::ProjectRegistry;
use policyd_store::shared::settings::{SharedStoreSettings, SharedSubject, VARIABLE};
use policyd_store::shared::{
    CopyResult, STORE_COMMAND, SharedStore, SyncError, SyncLimits, SyncPosition, SyncResult,
};
use policyd_world::World;
use policyd_world::server::{ServerError, ServerStatus};
use policyd_yaml::time::short_text;

/// Time after which the outbox is looked at, while no notification comes.
const WATCH_SLICE: Duration = Duration::from_secs(1);
/// Number of these times after which the server is asked without a notification.
const WATCH_SLICES: u32 = 5;

/// The files that a command changes.
#[derive(Clone, Copy)]
pub(super) struct LocalFiles<'f> {
    /// State directory.
    pub(super) root: &'f Path,
    pub(super) durability: &'f Durability,
}

/// What a synchronization around another command did.
#[derive(Clone, Copy)]
struct SyncOutcome {
    /// Whether the local files contain what the server knows, or nothing is shared.
    is_current: bool,
    /// Whether the server rejected a change.
    is_rejected: bool,
}

/// Synchronizes around another command. A problem is reported, and the command continues with the local copy.
fn sync(
    world: &dyn World,
    console: &mut Console<'_>,
    files: LocalFiles<'_>,
    limits: SyncLimits<'_>,
) -> SyncOutcome {
    match sharing::sync(world, files.root, files.durability, limits) {
        Ok(result) => {
            let SyncResult { rejected, notes, unread, is_partial, .. } = result.unwrap_or_default();
            let all = rejected.iter().chain(&notes).chain(&unread);
            all.for_each(|it| console.eprint(&format!("shared store: {it}")));
            return SyncOutcome { is_current: !is_partial, is_rejected: !rejected.is_empty() };
        }
        // Reported when it happened.
        Err(SyncError::Deferred(_)) => {}
        Err(error) => console.eprint(&format!("{error}\nhelp: the local copy is used until then")),
    }
    SyncOutcome { is_current: false, is_rejected: false }
}

/// Runs an action of another command on a current copy, and sends its changes. The action receives whether the copy is
/// current, and where it puts the answer of a human, which is logged unless the server refused it. The synchronizations share
/// the time of the limits, with what the action does within it.
pub(super) fn around(
    world: &dyn World,
    console: &mut Console<'_>,
    files: LocalFiles<'_>,
    limits: SyncLimits<'_>,
    act: impl FnOnce(&mut Console<'_>, bool, &mut Option<HumanAnswer>) -> u8,
) -> u8 {
    let mut answer = None;
    let left = Cell::new(limits.wait);
    let limits = if limits.left.is_some() { limits } else { limits.within(&left) };
    let before = sync(world, console, files, limits);
    let waited = sharing::waiting_count(world, files.root);
    let code = act(console, before.is_current, &mut answer);
    let is_changed = sharing::waiting_count(world, files.root) > waited;
    register_project(world, files.root);
    let is_rejected = sharing::has_waiting(world, files.root)
        && sync(world, console, files, limits.and_then()).is_rejected;
    // Only commands that wait for the server say that it did not answer.
    if limits.at_once && is_changed && !is_rejected && sharing::has_waiting(world, files.root) {
        console.eprint(
            "shared store: the change is saved on this host and queued for the server\n\
             help: `policyd store sync` sends it at once",
        );
    }
    if code != EXIT_OK {
        return code;
    }
    if is_rejected {
        return EXIT_BROKEN;
    }
    if let Some(answer) = answer {
        answer.log(world, files.root);
    }
    EXIT_OK
}

/// Lists the project of the working directory, if it has state: what waits in it is in the inbox, although no session ran.
fn register_project(world: &dyn World, state_dir: &Path) {
    if world.stat(state_dir).is_ok() {
        let project = project::find(world, None);
        ProjectRegistry::new(world).register(&project.main, &project.state, world.now());
    }
}

/// Runs one action.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, action: &StoreAction) -> u8 {
    let project = project::find(world, None);
    let Some(policy) = pack::or_builtin_policy(world, console, &project) else {
        return EXIT_BROKEN;
    };
    let fenced = project::fenced_by_pack(world, &project, &policy.settings);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let (sessions, own) = project::sessions(world, &project, &policy.settings);
    let store = match SharedStore::find(world, &own, &sessions.durability) {
        Ok(Some(store)) => store,
        Ok(None) => {
            console.eprint(
                "no shared store is configured\nhelp: add `store: {url: postgres://…}` to \
                 `config.yaml` in your configuration directory",
            );
            return EXIT_USAGE;
        }
        Err(error) => {
            console.eprint(&error.to_string());
            return EXIT_BROKEN;
        }
    };
    let is_valid = report_settings(world, console);
    let settle = |code| if code == EXIT_OK && !is_valid { EXIT_FOUND } else { code };
    let done = match action {
        StoreAction::Init { url } => migrate(world, console, &store, url.as_deref(), true),
        StoreAction::Migrate { url } => migrate(world, console, &store, url.as_deref(), false),
        StoreAction::Status { format } => Ok(status(console, &store, *format)),
        StoreAction::Verify => verify(console, &store),
        StoreAction::Copy { from, to } => copy(console, &store, *from, *to),
        StoreAction::Runs { format } => Ok(runs::list(world, console, &store, *format)),
        StoreAction::Sync => synchronize(console, &store, &own.join(DECISION_LOG)),
        StoreAction::Move { from, from_group } => {
            waiting::move_from(console, &store, from, from_group.as_deref())
        }
        StoreAction::Rejected { action, names, format } => waiting::rejected(
            console,
            &store,
            *action,
            &waiting::Selection { names, format: *format },
        ),
        StoreAction::Watch => watch(world, console, &store, &own.join(DECISION_LOG)),
    };
    settle(done.unwrap_or_else(|error| {
        console.eprint(&error.to_string());
        EXIT_BROKEN
    }))
}

/// Reports what is ignored of the settings: a word of `share` that does not exist shares nothing. Returns whether nothing is.
fn report_settings(world: &dyn World, console: &mut Console<'_>) -> bool {
    let owners = [ConfigurationOwner::Organization, ConfigurationOwner::User];
    let problems = owners.into_iter().flat_map(|it| Configuration::load(world, it).problems);
    let problems: Vec<_> = problems.collect();
    problems.iter().for_each(|it| console.eprint(&it.to_string()));
    problems.is_empty()
}

/// Creates or updates the tables.
fn migrate(
    world: &dyn World,
    console: &mut Console<'_>,
    store: &SharedStore<'_>,
    url: Option<&str>,
    is_new: bool,
) -> Result<u8, SyncError> {
    let settings = store.settings();
    let address = match url {
        Some(url) => settings.address_of(world, url)?,
        None => settings.address(world, SHARED_STORE_WAIT)?,
    };
    let mut server = world.connect(&address, SHARED_STORE_WAIT)?;
    if !is_new && server.status()?.schema.is_none() {
        return Err(ServerError::NoSchema.into());
    }
    let (before, after) = server.migrate()?;
    let group = &store.settings().group;
    console.print(&match (before, after) {
        (0, after) => format!("schema version {after} created; group `{group}`\n"),
        (before, after) if before == after => {
            format!("schema version {after} is current; group `{group}`\n")
        }
        (before, after) => format!("schema version {before} updated to {after}; group `{group}`\n"),
    });
    Ok(EXIT_OK)
}

/// Sends new lines of the decision log, if it is shared.
fn send_decisions(
    console: &mut Console<'_>,
    store: &SharedStore<'_>,
    log: &Path,
) -> Result<(), SyncError> {
    if !store.settings().shares(SharedSubject::Decisions) {
        return Ok(());
    }
    // A long log takes several rounds.
    loop {
        let sent = store.send_decisions(log, SHARED_STORE_WAIT)?;
        if sent == 0 {
            return Ok(());
        }
        console.print(&format!("decisions sent: {sent}\n"));
    }
}

fn synchronize(
    console: &mut Console<'_>,
    store: &SharedStore<'_>,
    log: &Path,
) -> Result<u8, SyncError> {
    let mut code = EXIT_OK;
    loop {
        let result = store.sync(STORE_COMMAND)?;
        let waiting = match result.waiting {
            0 => String::new(),
            count => format!(", {count} waiting"),
        };
        console.print(&format!("{} sent, {} received{waiting}\n", result.sent, result.received));
        result.rejected.iter().for_each(|it| console.eprint(&format!("rejected: {it}")));
        result.notes.iter().chain(&result.unread).for_each(|it| console.eprint(it));
        if !result.rejected.is_empty() {
            code = EXIT_FOUND;
        }
        if result.waiting == 0 && !result.is_partial {
            break;
        }
        // A long outbox, and a long list of changes, take several rounds.
        if result.sent == 0 && (result.waiting > 0 || result.received == 0) {
            console.eprint("help: another process of this host sends, or a file waits; try again");
            code = EXIT_FOUND;
            break;
        }
    }
    send_decisions(console, store, log)?;
    Ok(code)
}

/// Compares both places, and changes nothing. What the next synchronization sends or reads is not an error.
fn verify(console: &mut Console<'_>, store: &SharedStore<'_>) -> Result<u8, SyncError> {
    let differences = store.compare(SHARED_STORE_WAIT)?;
    for it in &differences {
        console.print(&format!("{} `{}`: {}\n", it.kind, it.name, it.difference.as_str()));
    }
    let (pending, lasting): (Vec<_>, Vec<_>) =
        differences.into_iter().partition(|it| it.difference.is_pending());
    if lasting.is_empty() && pending.is_empty() {
        console.print("the local copy and the server are the same\n");
    }
    if !pending.is_empty() {
        console.eprint("help: `policyd store sync` sends what waits, and reads what changed");
    }
    Ok(if lasting.is_empty() { EXIT_OK } else { EXIT_FOUND })
}

fn copy(
    console: &mut Console<'_>,
    store: &SharedStore<'_>,
    from: StorePlace,
    to: StorePlace,
) -> Result<u8, SyncError> {
    match (from, to) {
        (StorePlace::Files, StorePlace::Postgres) => {
            let CopyResult { copied, left } = store.copy_to_server(SHARED_STORE_WAIT)?;
            console.print(&format!("documents copied to the server: {copied}\n"));
            left.iter().for_each(|it| console.eprint(&format!("not copied: {it}")));
            if !left.is_empty() {
                return Ok(EXIT_FOUND);
            }
        }
        (StorePlace::Postgres, StorePlace::Files) => {
            store.forget_position()?;
            let result = store.sync(STORE_COMMAND)?;
            console.print(&format!("documents copied to the files: {}\n", result.received));
        }
        (StorePlace::Files, StorePlace::Files) | (StorePlace::Postgres, StorePlace::Postgres) => {
            console.eprint("`--from` and `--to` are the same");
            return Ok(EXIT_USAGE);
        }
    }
    Ok(EXIT_OK)
}

/// Synchronizes at each notification of the server.
fn watch(
    world: &dyn World,
    console: &mut Console<'_>,
    store: &SharedStore<'_>,
    log: &Path,
) -> Result<u8, SyncError> {
    world.note_interrupts();
    let limits = STORE_COMMAND;
    let mut server = None;
    while !world.interrupted() {
        let mut round = || -> Result<(), SyncError> {
            let connected = match server.take() {
                Some(connected) => connected,
                None => store.server(SHARED_STORE_WAIT)?,
            };
            let connected = server.insert(connected);
            let result = store.sync(limits)?;
            if result.sent > 0 || result.received > 0 {
                console.print(&format!("{} sent, {} received\n", result.sent, result.received));
            }
            result.rejected.iter().for_each(|it| console.eprint(&format!("rejected: {it}")));
            result.notes.iter().for_each(|it| console.eprint(it));
            send_decisions(console, store, log)?;
            for _ in 0..WATCH_SLICES {
                // A change of another host, or one of this host that waits.
                if connected.wait(WATCH_SLICE)? || store.has_waiting() {
                    return Ok(());
                }
            }
            Ok(())
        };
        if let Err(error) = round() {
            server = None;
            console.eprint(&error.to_string());
            world.sleep(WATCH_SLICE.saturating_mul(WATCH_SLICES));
        }
    }
    Ok(EXIT_OK)
}

fn status(console: &mut Console<'_>, store: &SharedStore<'_>, format: ListFormat) -> u8 {
    let asked = store.server(SHARED_STORE_WAIT).and_then(|mut it| Ok(it.status()?));
    let settings = store.settings();
    let code = match &asked {
        Ok(it) if it.schema.is_some() && it.version.is_some() && !it.read_only => EXIT_OK,
        Ok(_) | Err(_) => EXIT_FOUND,
    };
    let position = match store.position() {
        Ok(position) => position,
        Err(problem) => {
            console.eprint(&problem.to_string());
            return EXIT_BROKEN;
        }
    };
    if format == ListFormat::Json {
        console.print(&format!("{:#}\n", status_json(store, &asked, &position)));
        return code;
    }
    if let Some(chosen) = store.ignored_url() {
        console.eprint(&format!(
            "{VARIABLE} is ignored: `{chosen}` is not a URL of your configuration\nhelp: add it to \
             `alternatives` of `store`"
        ));
    }
    let waiting = store.waiting().len();
    let lacks_group = asked.as_ref().is_ok_and(|it| it.schema.is_some() && it.version.is_none());
    let group = match lacks_group {
        true => {
            " (it does not exist, or this account must not use it; `policyd store init` creates it)"
        }
        false => "",
    };
    console.print(&format!(
        "url        {}\ngroup      {}{group}\n",
        settings.shown_url(),
        settings.group
    ));
    match asked {
        Ok(it) => print_server(console, &it),
        Err(error) => console.print(&format!("server     {error}\n")),
    }
    let age = position.at.map(|it| short_text(store.now().since(it)));
    console.print(&format!(
        "copied     {}\n",
        age.map_or("never".to_owned(), |it| format!("{it} ago"))
    ));
    console.print(&format!("waiting    {waiting}\n"));
    let elsewhere = store.waiting_elsewhere();
    if elsewhere > 0 {
        console.print(&format!(
            "elsewhere  {elsewhere} (for another server or group; `policyd store move` moves them here)\n"
        ));
    }
    let rejected = store.rejected().len();
    if rejected > 0 {
        console.print(&format!("rejected   {rejected} (`policyd store rejected` lists them)\n"));
    }
    code
}

/// Prints what a server said of itself.
fn print_server(console: &mut Console<'_>, it: &ServerStatus) {
    let schema =
        it.schema.map_or_else(|| "none; run `policyd store init`".to_owned(), |it| it.to_string());
    let encryption = if it.encrypted { "encrypted" } else { "not encrypted" };
    console.print(&format!("server     {}, {encryption}, account `{}`\n", it.program, it.role));
    if it.read_only {
        console.print("writes     refused; it is a standby, or the database is read-only\n");
    }
    console.print(&format!("schema     {schema}\n"));
    for (kind, count) in &it.documents {
        console.print(&format!("{kind:<10} {count}\n"));
    }
}

fn status_json(
    store: &SharedStore<'_>,
    asked: &Result<ServerStatus, SyncError>,
    position: &SyncPosition,
) -> serde_json::Value {
    let settings: &SharedStoreSettings = store.settings();
    let known = asked.as_ref().ok();
    json!({
        "url": settings.shown_url(), "group": settings.group,
        "reachable": known.is_some(), "problem": asked.as_ref().err().map(ToString::to_string),
        "server": known.map(|it| &it.program), "role": known.map(|it| &it.role),
        "encrypted": known.map(|it| it.encrypted), "read_only": known.map(|it| it.read_only), "schema": known.and_then(|it| it.schema),
        "version": known.map(|it| it.version), "copied_version": position.version,
        "copied_at": position.at.map(|it| it.to_string()), "clock_ahead_ms": position.ahead_ms,
        "documents": known.map(|it| it.documents.iter().map(|(kind, count)| (kind.clone(), (*count).into())).collect::<serde_json::Map<_, _>>()),
        "waiting": store.waiting().len(), "waiting_elsewhere": store.waiting_elsewhere(), "rejected": store.rejected().len(),
    })
}
