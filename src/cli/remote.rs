//! `policyd pack`: fetches, updates, verifies, and publishes remote packs. Hooks never fetch.

use std::path::{Path, PathBuf};

use super::{
    Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, ManifestArguments, PackAction, PushArguments,
    UpdateArguments, error,
};
use crate::human::require_human;
use policyd_app::packs::remote::fetch::{self, FetchMode, FetchReport, FetchResult};
use policyd_app::packs::remote::publish;
use policyd_app::packs::{self, folder};
use policyd_app::workspace::project::{self, Project};
use policyd_shell::path::normal;
use policyd_store::pack_lock::LockedPack;
use policyd_store::user;
use policyd_world::World;

/// Runs the action.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, action: &PackAction) -> u8 {
    match action {
        PackAction::Fetch(it) => fetch(world, console, it.policies.as_deref(), FetchMode::Locked),
        PackAction::Update(it) => update(world, console, it),
        PackAction::Verify(it) => verify(world, console, it.policies.as_deref()),
        PackAction::Manifest(it) => manifest(world, console, it),
        PackAction::Push(it) => push(world, console, it),
    }
}

fn update(world: &dyn World, console: &mut Console<'_>, arguments: &UpdateArguments) -> u8 {
    let mode = if arguments.allow_older { FetchMode::AllowOlder } else { FetchMode::Update };
    if arguments.allow_older
        && let Err(code) = require_human(world, console, "accept older versions of remote packs")
    {
        return code;
    }
    fetch(world, console, arguments.policies.as_deref(), mode)
}

/// Verifies the remote packs on this machine.
fn verify(world: &dyn World, console: &mut Console<'_>, named: Option<&Path>) -> u8 {
    let project = project::find(world, None);
    let Some(folder) = directory(world, &project, named) else { return no_pack(console) };
    let found = packs::at(world, Some(&folder.display().to_string()));
    for problem in &found.unreadable {
        console.eprint(problem);
    }
    let mut is_valid = found.unreadable.is_empty();
    if found.remote().is_empty() {
        console.print(&format!("no remote packs in {}\n", folder.display()));
    }
    for pack in found.remote() {
        match &pack.files {
            Ok(_) => {
                let hash = pack.sha256.as_deref().unwrap_or_default();
                console.print(&format!("valid  {}  ({hash})\n", pack.source));
            }
            Err(problem) => {
                is_valid = false;
                let source = &pack.source;
                console.eprint(&format!("{source} {problem}\nhelp: {}", problem.help()));
            }
        }
    }
    if is_valid { EXIT_OK } else { EXIT_FOUND }
}

/// Writes the file list of a pack.
fn manifest(world: &dyn World, console: &mut Console<'_>, arguments: &ManifestArguments) -> u8 {
    let folder = normal(&world.working_folder().join(&arguments.folder));
    match publish::write_list(world, &folder) {
        Ok((path, list)) => {
            let path = path.display();
            console.print(&format!("wrote  {path}  {} ({})\n", list.title(), list.hash()));
            console.print(&format!("sign it with `minisign -Sm {path}`\n"));
            EXIT_OK
        }
        Err(error) => error::report(console, &error),
    }
}

/// Publishes a pack.
fn push(world: &dyn World, console: &mut Console<'_>, arguments: &PushArguments) -> u8 {
    let PushArguments { folder, target, key } = arguments;
    let folder = normal(&world.working_folder().join(folder));
    match publish::push(world, &folder, target, key.as_deref()) {
        Ok(published) => {
            let (title, hash) = (published.list.title(), published.list.hash());
            let digest = published.digest.map(|it| format!("  {it}")).unwrap_or_default();
            console.print(&format!("pushed  {target}  {title} ({hash}){digest}\n"));
            if !published.is_signed {
                console.eprint(
                    "the pack is not signed\nhelp: run `policyd pack manifest`, and sign `pack.manifest` with minisign",
                );
            }
            EXIT_OK
        }
        Err(error) => error::report(console, &error),
    }
}

/// Reports a project without a pack.
fn no_pack(console: &mut Console<'_>) -> u8 {
    console.eprint(
        "this project contains no pack\nhelp: create one with `policyd init`, or pass `--policies`",
    );
    EXIT_BROKEN
}

/// The directory of a pack: the named one, that of the project, or that of the user.
fn directory(world: &dyn World, project: &Project, named: Option<&Path>) -> Option<PathBuf> {
    if let Some(named) = named {
        return Some(normal(&world.working_folder().join(named)));
    }
    let user = || user::config_folder(world).map(|it| it.join("policies"));
    let user = || user().filter(|it| folder::holds_policies(world, it));
    packs::nearest_of(world, project).or_else(user)
}

fn fetch(
    world: &dyn World,
    console: &mut Console<'_>,
    named: Option<&Path>,
    mode: FetchMode,
) -> u8 {
    let project = project::find(world, None);
    let Some(folder) = directory(world, &project, named) else { return no_pack(console) };
    let was_trusted = packs::is_trusted(world, &project, &folder);
    let reports = match fetch::fetch(world, &folder, mode) {
        Ok(reports) => reports,
        Err(error) => return error::report(console, &error),
    };
    if reports.is_empty() {
        console.print(&format!("no remote packs in {}\n", folder.display()));
    }
    for report in &reports {
        print_report(console, report);
    }
    if was_trusted && !packs::is_trusted(world, &project, &folder) {
        console.eprint(
            "the lock file has changed, so the pack is not used until you trust it again\nhelp: run `policyd trust`",
        );
    }
    let failed = reports.iter().any(|it| matches!(it.result, FetchResult::Failed { .. }));
    if failed { EXIT_FOUND } else { EXIT_OK }
}

fn print_report(console: &mut Console<'_>, report: &FetchReport) {
    let source = &report.source;
    match &report.result {
        FetchResult::Current(pack) => {
            console.print(&format!("current  {source}  {}\n", describe(pack)));
        }
        FetchResult::Fetched { pack, before: None } => {
            console.print(&format!("fetched  {source}  {}\n", describe(pack)));
        }
        FetchResult::Fetched { pack, before: Some(before) } => {
            let (before, now) = (describe(before), describe(pack));
            console.print(&format!("updated  {source}  {before} -> {now}\n"));
        }
        FetchResult::Failed { error, active } => {
            let stays = match active {
                Some(active) => format!("{} stays active", describe(active)),
                None => "the pack that extends it does not load".to_owned(),
            };
            console.eprint(&format!("{source}: {error}; {stays}"));
        }
    }
}

/// Describes a content by name, version, and hash.
fn describe(pack: &LockedPack) -> String {
    let version = pack.pack_version.as_deref().map(|it| format!(" {it}")).unwrap_or_default();
    format!("{}{version} ({})", pack.name, pack.sha256)
}
