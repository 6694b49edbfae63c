//! Reads the decision logs of one project, or of all projects of the registry, and again what was added since.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::recorded;
use crate::app::packs;
use crate::app::workspace::project::{self, Project};
use crate::cores;
use crate::store::log_cursor::{LogCursor, read_new};
use crate::store::projects::{KnownProject, ProjectRegistry};
use crate::time::Timestamp;
use crate::world::{FileKind, World, WorldError};

/// An entry of a decision log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProjectEntry {
    /// Main checkout of the project.
    pub(crate) project: String,
    /// Time of the entry; `None` if it has none.
    pub(crate) at: Option<Timestamp>,
    pub(crate) entry: Value,
}

/// A decision log, and how far it was read.
#[derive(Debug)]
struct ProjectLog {
    /// Main checkout of the project.
    project: String,
    path: PathBuf,
    cursor: LogCursor,
    /// Identity and length at the last reading.
    seen: Option<(u64, u64)>,
}

/// Decision logs that are read together.
pub(crate) struct LogReader<'a> {
    world: &'a dyn World,
    logs: Vec<ProjectLog>,
}

impl<'a> LogReader<'a> {
    /// Returns a reader of the logs of some projects.
    pub(crate) fn of_projects(world: &'a dyn World, projects: &[Project]) -> Self {
        let logs = cores::on_all(world.cores(), projects, |it| logs_of(world, it));
        Self { world, logs: logs.into_iter().flatten().collect() }
    }

    /// Returns a reader of the logs of all projects that are listed now.
    pub(crate) fn of_all_projects(world: &'a dyn World) -> Self {
        let mut reader = Self { world, logs: Vec::new() };
        reader.add_projects();
        reader
    }

    /// Adds the logs of projects that were listed since.
    pub(crate) fn add_projects(&mut self) {
        let known = ProjectRegistry::new(self.world).all();
        let is_new = |it: &&KnownProject| {
            let directory = it.directory.display().to_string();
            self.logs.iter().all(|log| log.project != directory)
        };
        let new: Vec<&KnownProject> = known.iter().filter(is_new).collect();
        let world = self.world;
        let logs = cores::on_all(world.cores(), &new, |it| {
            if !world.stat(&it.directory).is_ok_and(|it| it.kind == FileKind::Folder) {
                return Vec::new();
            }
            let project =
                Project { state: it.state_dir.clone(), ..project::at(world, &it.directory) };
            let mut logs = logs_of(world, &project);
            logs.iter_mut().for_each(|log| log.project = it.directory.display().to_string());
            logs
        });
        self.logs.extend(logs.into_iter().flatten());
    }

    /// Lets the next reading begin where another one ended.
    pub(crate) fn resume(&mut self, cursors: &BTreeMap<PathBuf, LogCursor>) {
        for log in &mut self.logs {
            if let Some(cursor) = cursors.get(&log.path) {
                log.cursor = cursor.clone();
            }
        }
    }

    /// Returns where the reading of each log ended.
    pub(crate) fn cursors(&self) -> BTreeMap<PathBuf, LogCursor> {
        self.logs.iter().map(|it| (it.path.clone(), it.cursor.clone())).collect()
    }

    /// Returns the number of logs.
    pub(crate) fn count(&self) -> usize {
        self.logs.len()
    }

    /// Returns the entries that were added to one log since its last reading.
    ///
    /// # Errors
    /// The path of the log and the error, if it cannot be read now.
    pub(crate) fn read_log(
        &mut self,
        number: usize,
    ) -> Result<Vec<ProjectEntry>, (PathBuf, WorldError)> {
        let Some(log) = self.logs.get_mut(number) else { return Ok(Vec::new()) };
        match read(self.world, log, None) {
            Ok(Some(new)) => {
                (log.cursor, log.seen) = (new.cursor, Some(new.seen));
                Ok(new.entries)
            }
            Ok(None) => Ok(Vec::new()),
            Err(error) => Err((log.path.clone(), error)),
        }
    }

    /// Returns the entries that were added since the last call, from `since` on and sorted by time, and which logs could
    /// not be read. These are read the next time.
    pub(crate) fn read(
        &mut self,
        since: Option<Timestamp>,
    ) -> (Vec<ProjectEntry>, Vec<(PathBuf, WorldError)>) {
        let world = self.world;
        let read = cores::on_all(world.cores(), &self.logs, |log| read(world, log, since));
        let (mut entries, mut problems) = (Vec::new(), Vec::new());
        for (log, read) in self.logs.iter_mut().zip(read) {
            match read {
                Ok(Some(new)) => {
                    (log.cursor, log.seen) = (new.cursor, Some(new.seen));
                    entries.extend(new.entries);
                }
                Ok(None) => {}
                Err(error) => problems.push((log.path.clone(), error)),
            }
        }
        entries.sort_by_key(|it| it.at);
        (entries, problems)
    }
}

fn logs_of(world: &dyn World, project: &Project) -> Vec<ProjectLog> {
    let policy = packs::policy(world, &packs::find(world, project, None)).ok();
    let paths = recorded::log_paths(world, project, policy.as_ref());
    let directory = project.main.display().to_string();
    let log = |path| ProjectLog {
        project: directory.clone(),
        path,
        cursor: LogCursor::default(),
        seen: None,
    };
    paths.into_iter().map(log).collect()
}

/// What was added to a log.
struct NewEntries {
    entries: Vec<ProjectEntry>,
    cursor: LogCursor,
    seen: (u64, u64),
}

/// Reads what was added to a log. `None` if nothing was.
fn read(
    world: &dyn World,
    log: &ProjectLog,
    since: Option<Timestamp>,
) -> Result<Option<NewEntries>, WorldError> {
    let seen = match world.stat(&log.path) {
        Ok(stat) => (stat.identity, stat.length),
        Err(WorldError::NotFound) => return Ok(None),
        Err(error) => return Err(error),
    };
    if log.seen == Some(seen) {
        return Ok(None);
    }
    let mut entries = Vec::new();
    let cursor = read_new(world, &log.path, &log.cursor, |line| {
        let at = time_of(line);
        if since.is_some_and(|since| at.is_some_and(|at| at < since)) {
            return;
        }
        let Ok(entry) = serde_json::from_slice::<Value>(line) else { return };
        if entry.is_object() {
            entries.push(ProjectEntry { project: log.project.clone(), at, entry });
        }
    })?;
    Ok(Some(NewEntries { entries, cursor, seen }))
}

/// Returns the time of a line without the rest of it.
fn time_of(line: &[u8]) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct LoggedTime<'a> {
        #[serde(borrow)]
        timestamp: Cow<'a, str>,
    }
    let line: LoggedTime<'_> = serde_json::from_slice(line).ok()?;
    Timestamp::parse(&line.timestamp)
}
