//! Metrics of all projects: totals over their decision logs, which are read from where the last call ended, and the state
//! of each project.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::error::AppError;
use crate::overview::{self, ActivitySource, KnownResults, ProjectScope};
use policyd_base::limits::USER_LOCK_WAIT;
use policyd_gate::meter::SessionUsage;
use policyd_record::activity::Activity;
use policyd_report::metrics::{MetricTotals, to_text};
use policyd_report::overview::ProjectRow;
use policyd_store::document::DamageAction;
use policyd_store::file::Durability;
use policyd_store::log_position::{LogPosition, read_new};
use policyd_store::user_state::UserStateFile;
use policyd_world::{World, WorldError};

/// File below the user's state directory.
const STATE: &str = "metrics.json";

/// The totals with the lines that they contain. Both are saved in one write, so that each line counts once.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredMetrics {
    totals: MetricTotals,
    logs: BTreeMap<PathBuf, MeasuredLog>,
    /// Usage of the last session, by project.
    usages: BTreeMap<String, MeasuredUsage>,
}

/// Usage of a session, with the hash of what it was measured from.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct MeasuredUsage {
    key: String,
    usage: SessionUsage,
}

/// A decision log, as far as it was read.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct MeasuredLog {
    #[serde(rename = "cursor")]
    position: LogPosition,
    /// The last things that the log tells. Its counts are not used: totals have them.
    activity: Activity,
}

/// The totals while logs are read, by several threads.
struct MetricReader<'a> {
    world: &'a dyn World,
    stored: Mutex<StoredMetrics>,
    problems: Mutex<Vec<(PathBuf, WorldError)>>,
}

/// Reads the new lines of all decision logs and the state of all projects, and returns the metrics in the text format of
/// Prometheus.
///
/// # Errors
/// The user has no state directory, another process holds the lock, a log cannot be read, or the totals cannot be saved.
pub fn collect(world: &dyn World) -> Result<String, AppError> {
    measure(world, |reader| {
        let rows = overview::rows(world, &ProjectScope::All, ActivitySource::Known(reader));
        let listed: BTreeSet<&str> = rows.iter().map(|it| it.directory.as_str()).collect();
        held(&reader.stored).usages.retain(|it, _| listed.contains(it.as_str()));
        rows
    })
}

/// Reads the new lines of decision logs, each with its project. The state of projects is known already.
///
/// # Errors
/// As for [`collect`].
pub fn of_rows(
    world: &dyn World,
    rows: &[ProjectRow],
    logs: &[(String, PathBuf)],
) -> Result<String, AppError> {
    measure(world, |reader| {
        logs.iter().for_each(|(project, log)| drop(reader.read(project, log)));
        let mut rows = rows.to_vec();
        rows.sort_by(|one, other| one.directory.cmp(&other.directory));
        rows
    })
}

/// Reads logs under the lock, and saves the totals.
fn measure(
    world: &dyn World,
    read: impl FnOnce(&MetricReader<'_>) -> Vec<ProjectRow>,
) -> Result<String, AppError> {
    // To begin again after damage would count everything twice, so it is an error.
    let opened = UserStateFile::open(world, STATE, DamageAction::Refuse, USER_LOCK_WAIT);
    let (file, stored) = opened.map_err(AppError::failed)?;
    let reader = MetricReader { world, stored: Mutex::new(stored), problems: Mutex::default() };
    let rows = read(&reader);
    let problems = reader.problems.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some((path, error)) = problems.into_iter().next() {
        return Err(AppError::failed(error).about(path.display()));
    }
    let stored: StoredMetrics = reader.stored.into_inner().unwrap_or_else(PoisonError::into_inner);
    file.save(&stored, &Durability::default()).map_err(AppError::failed)?;
    Ok(to_text(&stored.totals, &rows))
}

impl MetricReader<'_> {
    /// Reads the new lines of a log. Returns the last things that the log tells.
    fn read(&self, project: &str, log: &Path) -> Activity {
        let mut known = held(&self.stored).logs.get(log).cloned().unwrap_or_default();
        let mut lines: Vec<Vec<u8>> = Vec::new();
        let reached = read_new(self.world, log, &known.position, |line| lines.push(line.to_vec()));
        match reached {
            Ok(position) => known.position = position,
            Err(error) => {
                held(&self.problems).push((log.to_owned(), error));
                return known.activity;
            }
        }
        let mut stored = held(&self.stored);
        lines.iter().for_each(|it| stored.totals.add(project, it, &mut known.activity));
        let activity = known.activity.clone();
        stored.logs.insert(log.to_owned(), known);
        activity
    }
}

impl KnownResults for MetricReader<'_> {
    fn activity(&self, project: &str, log: &Path) -> Activity {
        self.read(project, log)
    }

    fn usage(
        &self,
        project: &str,
        key: &str,
        measure: &mut dyn FnMut() -> Option<SessionUsage>,
    ) -> Option<SessionUsage> {
        if let Some(known) = held(&self.stored).usages.get(project).filter(|it| it.key == key) {
            return Some(known.usage.clone());
        }
        let usage = measure()?;
        let measured = MeasuredUsage { key: key.to_owned(), usage: usage.clone() };
        held(&self.stored).usages.insert(project.to_owned(), measured);
        Some(usage)
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
