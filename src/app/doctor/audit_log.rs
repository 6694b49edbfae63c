//! Whether decisions can be recorded: the audit log is opened for an append, and never changed.

use std::path::Path;

use super::check::{CheckHealth, DoctorCheck, try_to_write};
use crate::packs;
use crate::sessions::recorded;
use crate::workspace::project::{self, Project};
use policyd_world::{FileKind, World, WorldError};

const ABOUT: &str = "audit log";
const HELP: &str = "help: correct the type, owner or permissions of that path, or name another state \
                    directory in POLICYD_STATE_DIR";

/// Checks every audit log that the project's hooks write to.
pub(super) fn inspect_log(world: &dyn World, project: &Project) -> Vec<DoctorCheck> {
    let policy = packs::policy(world, &packs::find(world, project, None)).ok();
    let logs = recorded::log_paths(world, project, policy.as_ref());
    // As for a hook: nothing is written behind a symbolic link.
    let fenced = project::fenced(world, project);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let by_pack = policy.and_then(|it| project::fenced_by_pack(world, project, &it.settings));
    let world = by_pack.as_ref().map_or(world, |it| it as &dyn World);
    logs.iter().map(|it| check(world, it)).collect()
}

fn check(world: &dyn World, log: &Path) -> DoctorCheck {
    let name = log.display();
    let found = world.stat(log).ok();
    let tried = match found.as_ref().map(|it| it.kind) {
        Some(FileKind::File) => world.append(log, b"").map_err(|error| (log, error)),
        Some(FileKind::Folder | FileKind::Special) => Err((log, WorldError::NotAFile)),
        None => try_to_create(world, log),
    };
    match tried {
        Ok(()) if found.is_some() => DoctorCheck::good(ABOUT, format!("{name} is writable")),
        Ok(()) => DoctorCheck::good(ABOUT, format!("{name} is created with the first decision")),
        Err((path, error)) => {
            let why = if path == log {
                error.to_string()
            } else {
                format!("{}: {error}", path.display())
            };
            let text = format!("{name} could not be written ({why}); decisions are not recorded");
            DoctorCheck {
                more: vec![HELP.to_owned()],
                ..DoctorCheck::new(ABOUT, CheckHealth::Bad, text)
            }
        }
    }
}

/// Creates and removes a file in the nearest directory above a log that does not exist.
fn try_to_create<'l>(world: &dyn World, log: &'l Path) -> Result<(), (&'l Path, WorldError)> {
    let above = || log.ancestors().skip(1);
    let (nearest, found) = above()
        .find_map(|it| Some((it, world.stat(it).ok()?)))
        .ok_or((log, WorldError::NotFound))?;
    if found.kind != FileKind::Folder {
        return Err((nearest, WorldError::Io("not a directory".to_owned())));
    }
    try_to_write(world, nearest).map_err(|error| (nearest, error))
}
