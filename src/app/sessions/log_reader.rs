//! Reads the decision logs of one project, or of all projects of the registry, and again what was added since.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;

use super::recorded;
use crate::overview::ProjectScope;
use crate::packs;
use crate::workspace::project::{self, Project};
use policyd_cores as cores;
use policyd_record::decision_log::Entry;
use policyd_store::log_chain::{self, ChainProblem, ChainReport};
use policyd_store::log_files::LogStamp;
use policyd_store::log_position::{LogPosition, read_new};
use policyd_store::projects::{KnownProject, ProjectRegistry};
use policyd_world::{FileKind, World, WorldError};
use policyd_yaml::time::Timestamp;

/// A line of a decision log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectLine {
    /// Main checkout of the project.
    pub project: String,
    /// Time of the entry; `None` if it has none.
    pub at: Option<Timestamp>,
    /// The entry as JSON.
    pub line: Vec<u8>,
}

impl ProjectLine {
    /// Returns the entry. `None` if another program wrote the line.
    pub fn entry(&self) -> Option<Entry> {
        Entry::parse(&self.line)
    }
}

/// Which of the new entries a reading returns.
#[derive(Clone, Copy)]
pub struct LogQuery<'a> {
    /// Time of the oldest entry; `None` for no limit.
    pub since: Option<Timestamp>,
    /// Number of entries of each log: the newest ones.
    pub newest: usize,
    /// Whether an entry is meant; `None` for all.
    pub accepts: Option<&'a (dyn Fn(&Entry) -> bool + Sync)>,
}

/// Result of a reading.
#[derive(Default)]
pub struct LogContent {
    /// Lines of the entries that the query accepts, oldest first.
    pub lines: Vec<ProjectLine>,
    /// Time of the oldest entry within the time of the query, accepted or not.
    pub oldest: Option<Timestamp>,
    /// Logs that could not be read. They are read the next time.
    pub problems: Vec<(PathBuf, WorldError)>,
}

/// A decision log, and how far it was read.
#[derive(Debug)]
struct ProjectLog {
    /// Main checkout of the project.
    project: String,
    path: PathBuf,
    position: LogPosition,
    /// Stamp of the last reading.
    seen: Option<LogStamp>,
}

/// A log that another program changed.
#[derive(Debug)]
pub struct ChangedLog {
    /// Main checkout of the project.
    pub project: String,
    pub path: PathBuf,
    /// The first break of its chain.
    pub problem: ChainProblem,
}

/// Decision logs that are read together.
pub struct LogReader<'a> {
    world: &'a dyn World,
    logs: Vec<ProjectLog>,
}

impl<'a> LogReader<'a> {
    /// Returns a reader of the logs of projects; of all, those that are listed now.
    pub fn new(world: &'a dyn World, scope: &ProjectScope) -> Self {
        let mut reader = Self { world, logs: Vec::new() };
        match scope {
            ProjectScope::All => reader.add_projects(),
            ProjectScope::Some(projects) => {
                let logs = cores::on_all(world.cores(), projects, |it| logs_of(world, it));
                reader.logs.extend(logs.into_iter().flatten());
            }
        }
        reader
    }

    /// Adds the logs of projects that were listed since.
    pub fn add_projects(&mut self) {
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
    pub fn resume(&mut self, positions: &BTreeMap<PathBuf, LogPosition>) {
        for log in &mut self.logs {
            if let Some(position) = positions.get(&log.path) {
                log.position = position.clone();
            }
        }
    }

    /// Returns where the reading of each log ended.
    pub fn positions(&self) -> BTreeMap<PathBuf, LogPosition> {
        self.logs.iter().map(|it| (it.path.clone(), it.position.clone())).collect()
    }

    /// Verifies the chain of each log. Returns the paths with the results.
    pub fn verify(&self) -> Vec<(PathBuf, Result<ChainReport, WorldError>)> {
        let world = self.world;
        let results =
            cores::on_all(world.cores(), &self.logs, |it| log_chain::verify(world, &it.path));
        self.logs.iter().map(|it| it.path.clone()).zip(results).collect()
    }

    /// Returns the logs from which lines were removed, or in which lines were changed. What cannot be read is left out.
    pub fn changed(&self) -> Vec<ChangedLog> {
        let changed = self.logs.iter().zip(self.verify()).filter_map(|(log, (path, result))| {
            let problem = result.ok()?.problems.into_iter().next()?;
            Some(ChangedLog { project: log.project.clone(), path, problem })
        });
        changed.collect()
    }

    /// Returns the number of logs.
    pub fn count(&self) -> usize {
        self.logs.len()
    }

    /// Returns the entries that were added to one log since its last reading.
    ///
    /// # Errors
    /// The path of the log and the error, if it cannot be read now.
    pub fn read_log(&mut self, number: usize) -> Result<Vec<ProjectLine>, (PathBuf, WorldError)> {
        let Some(log) = self.logs.get_mut(number) else { return Ok(Vec::new()) };
        match read(self.world, log, LogQuery::since(None)) {
            Ok(Some(new)) => {
                (log.position, log.seen) = (new.position, Some(new.seen));
                Ok(new.lines)
            }
            Ok(None) => Ok(Vec::new()),
            Err(error) => Err((log.path.clone(), error)),
        }
    }

    /// Calls a function with each entry from a time on and its project, in no order, and keeps none: the memory does not grow
    /// with the logs. Returns the logs that could not be read.
    pub fn visit(
        &self,
        since: Timestamp,
        visit: impl FnMut(&str, Entry) + Send,
    ) -> Vec<(PathBuf, WorldError)> {
        let (world, visit) = (self.world, Mutex::new(visit));
        let read = cores::on_all(world.cores(), &self.logs, |log| {
            let read = read_new(world, &log.path, &LogPosition::default(), |line| {
                if time_of(line).is_some_and(|at| at < since) {
                    return;
                }
                let Some(entry) = Entry::parse(line) else { return };
                let mut visit = visit.lock().unwrap_or_else(PoisonError::into_inner);
                visit(&log.project, entry);
            });
            match read {
                Ok(_) | Err(WorldError::NotFound) => None,
                Err(error) => Some((log.path.clone(), error)),
            }
        });
        read.into_iter().flatten().collect()
    }

    /// Returns the entries that were added since the last call.
    pub fn read(&mut self, query: LogQuery<'_>) -> LogContent {
        let world = self.world;
        let read = cores::on_all(world.cores(), &self.logs, |log| read(world, log, query));
        let mut reading = LogContent::default();
        for (log, read) in self.logs.iter_mut().zip(read) {
            match read {
                Ok(Some(new)) => {
                    (log.position, log.seen) = (new.position, Some(new.seen));
                    reading.oldest = [reading.oldest, new.oldest].into_iter().flatten().min();
                    reading.lines.extend(new.lines);
                }
                Ok(None) => {}
                Err(error) => reading.problems.push((log.path.clone(), error)),
            }
        }
        reading.lines.sort_by_key(|it| it.at);
        reading
    }
}

impl LogQuery<'_> {
    /// Returns a query for all entries from a time on.
    pub const fn since(since: Option<Timestamp>) -> Self {
        Self { since, newest: usize::MAX, accepts: None }
    }
}

fn logs_of(world: &dyn World, project: &Project) -> Vec<ProjectLog> {
    let policy = packs::policy(world, &packs::find(world, project, None)).ok();
    let paths = recorded::log_paths(world, project, policy.as_ref());
    let directory = project.main.display().to_string();
    let log = |path| ProjectLog {
        project: directory.clone(),
        path,
        position: LogPosition::default(),
        seen: None,
    };
    paths.into_iter().map(log).collect()
}

/// What was added to a log.
struct NewEntries {
    lines: Vec<ProjectLine>,
    oldest: Option<Timestamp>,
    position: LogPosition,
    seen: LogStamp,
}

/// Reads what was added to a log. `None` if nothing was.
fn read(
    world: &dyn World,
    log: &ProjectLog,
    query: LogQuery<'_>,
) -> Result<Option<NewEntries>, WorldError> {
    let seen = match LogStamp::of(world, &log.path) {
        Ok(seen) => seen,
        Err(WorldError::NotFound) => return Ok(None),
        Err(error) => return Err(error),
    };
    if log.seen == Some(seen) {
        return Ok(None);
    }
    let LogQuery { since, newest, accepts } = query;
    // Only the time of a line is parsed, unless the query asks for more.
    let (mut lines, mut oldest) = (VecDeque::new(), None);
    let position = read_new(world, &log.path, &log.position, |line| {
        let at = time_of(line);
        if since.is_some_and(|since| at.is_some_and(|at| at < since)) {
            return;
        }
        oldest = [oldest, at].into_iter().flatten().min();
        let is_meant = match accepts {
            Some(accepts) => Entry::parse(line).is_some_and(|it| accepts(&it)),
            None => at.is_some() || Entry::parse(line).is_some(),
        };
        if !is_meant {
            return;
        }
        lines.push_back(ProjectLine { project: log.project.clone(), at, line: line.to_owned() });
        if lines.len() > newest {
            lines.pop_front();
        }
    })?;
    Ok(Some(NewEntries { lines: lines.into(), oldest, position, seen }))
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use policyd_world::fake::FakeWorld;

    #[test]
    fn the_newest_entries_that_are_meant_are_returned() {
        let world = FakeWorld::new();
        let line = |second: u8, decision: &str| {
            let timestamp = format!("2026-01-02T03:04:{second:02}Z");
            json!({"id": second.to_string(), "timestamp": timestamp, "decision": decision})
                .to_string()
        };
        let lines = [
            line(1, "block"),
            line(2, "none"),
            line(3, "block"),
            line(4, "none"),
            json!({"id": "5"}).to_string(),
            "{\"id\": \"6\"".to_owned(),
        ];
        world.put("/work/.policyd/logs/decisions.jsonl", lines.join("\n") + "\n");
        let scope = ProjectScope::Some(vec![project::at(&world, Path::new("/work"))]);
        let read = |newest, accepts: Option<&(dyn Fn(&Entry) -> bool + Sync)>| {
            let mut reader = LogReader::new(&world, &scope);
            let reading = reader.read(LogQuery { since: None, newest, accepts });
            assert_eq!(reading.oldest, Timestamp::parse("2026-01-02T03:04:01Z"));
            let ids = reading.lines.iter().map(|it| it.entry().unwrap().id.parse().unwrap());
            let mut ids: Vec<u64> = ids.collect();
            ids.sort_unstable();
            ids
        };
        let blocks = |it: &Entry| it.decision == "block";
        assert_eq!(read(usize::MAX, None), [1, 2, 3, 4, 5]);
        assert_eq!(read(2, None), [4, 5]);
        assert_eq!(read(2, Some(&blocks)), [1, 3]);
        assert_eq!(read(1, Some(&blocks)), [3]);
        assert_eq!(read(0, None), [0; 0]);
    }
}
