//! Which session is meant: by its transcript, by its id, or the newest of the project.

use std::path::{Path, PathBuf};

use crate::error::AppError;
use crate::sessions::logged_entries::DecisionLogs;
use crate::workspace::project::Project;
use policyd_gate::meter::MeterPlace;
use policyd_harness::{UserFolder, claude_code};
use policyd_store::session::SessionStore;
use policyd_world::{FileKind, World};

/// Finds a session.
///
/// # Errors
/// No session was found; the message contains the fix.
pub fn find(
    world: &dyn World,
    store: &SessionStore<'_>,
    project: &Project,
    named: Option<&str>,
) -> Result<MeterPlace, AppError> {
    let is_file = |path: &Path| world.stat(path).is_ok_and(|it| it.kind == FileKind::File);
    if let Some(path) = named.map(Path::new).filter(|it| is_file(it)) {
        return Ok(MeterPlace::of(path, ""));
    }
    let logged = logged(world, project, named);
    let clients = client_folder(world, project).and_then(|folder| newest(world, &folder, named));
    // What the client wrote last is the session that goes on now.
    let modified = |it: &MeterPlace| world.stat(&it.transcript).map(|it| it.modified).ok();
    let found = [logged, clients].into_iter().flatten().filter(|it| modified(it).is_some());
    found.max_by_key(modified).ok_or_else(|| {
        let known = store.sessions().len();
        AppError::failed_as(match named {
            Some(named) => format!(
                "no transcript found for session `{named}` (sessions with state: {known})\nhelp: \
                 pass the path of a transcript"
            ),
            None => {
                "no session found in this project\nhelp: pass the path of a transcript".to_owned()
            }
        })
    })
}

/// The last session that was judged.
fn logged(world: &dyn World, project: &Project, named: Option<&str>) -> Option<MeterPlace> {
    let mut entries = DecisionLogs::of(world, project, None).newest_first();
    entries.find_map(|it| {
        let transcript = it.transcript().filter(|it| !it.subagent && !it.path.is_empty())?;
        let is_named = named.is_none_or(|named| it.session_id.starts_with(named));
        is_named.then(|| MeterPlace::of(Path::new(&transcript.path), &it.session_id))
    })
}

/// The newest transcript of a folder.
fn newest(world: &dyn World, folder: &Path, named: Option<&str>) -> Option<MeterPlace> {
    let names = world.list(folder).ok()?;
    let wanted =
        |it: &&String| it.ends_with(".jsonl") && named.is_none_or(|named| it.starts_with(named));
    let files = names.iter().filter(wanted).filter_map(|it| {
        let path = folder.join(it);
        Some((world.stat(&path).ok()?.modified, path))
    });
    files.max().map(|(_, path)| MeterPlace::of(&path, ""))
}

/// Directory in which Claude Code stores the transcripts of a project. Its name is the project's path, with a dash for
/// every character except ASCII letters and digits.
fn client_folder(world: &dyn World, project: &Project) -> Option<PathBuf> {
    let UserFolder { variable, below_home } = claude_code::USER_FOLDER;
    let home = || world.env("HOME").map(|it| Path::new(&it).join(below_home));
    let root = world.env(variable).map(PathBuf::from).or_else(home)?;
    let text = project.folder.to_string_lossy();
    let key: String =
        text.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' }).collect();
    Some(root.join("projects").join(key))
}
