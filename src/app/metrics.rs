//! Metrics of all projects: totals over their decision logs, which are read from where the last call ended, and the state
//! of each project.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::app::cores;
use crate::app::error::AppError;
use crate::app::overview::{self, ActivitySource, ProjectOverview};
use crate::limits::{METRICS_FILE_BYTES_MAX, USER_LOCK_WAIT};
use crate::report::metrics::{MetricTotals, to_text};
use crate::report::overview::ProjectRow;
use crate::store::file::{self, Durability, Saved};
use crate::store::log_cursor::{LogCursor, read_new};
use crate::store::projects::ProjectRegistry;
use crate::store::user::UserDirectory;
use crate::world::{World, WorldError};

/// Files below the user's state directory.
const STATE: &str = "metrics.json";
const LOCK: &str = ".metrics.lock";
const VERSION: u32 = 1;

/// The totals with the lines that they contain. Both are saved in one write, so that each line counts once.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredMetrics {
    version: u32,
    totals: MetricTotals,
    /// Where the reading of each decision log ended.
    cursors: BTreeMap<PathBuf, LogCursor>,
}

/// Reads the new lines of all decision logs, and returns the metrics in the text format of Prometheus.
///
/// # Errors
/// The user has no state directory, another process holds the lock, a log cannot be read, or the totals cannot be saved.
pub(crate) fn collect(world: &dyn World) -> Result<String, AppError> {
    let folder = UserDirectory::State.path(world).ok_or_else(|| {
        AppError::failed_as("neither XDG_STATE_HOME nor HOME is set, so totals cannot be saved")
    })?;
    let at = |path: &Path| {
        let shown = path.display().to_string();
        move |error: WorldError| AppError::failed(error).about(shown)
    };
    world.create_folder(&folder).map_err(at(&folder))?;
    let lock = folder.join(LOCK);
    let _held = world.lock(&lock, USER_LOCK_WAIT).map_err(at(&lock))?;
    let path = folder.join(STATE);
    let mut stored = load(world, &path)?;
    let projects = ProjectRegistry::new(world).all();
    let source = ActivitySource::Logs { since: world.now() };
    let overviews =
        cores::on_all(world.cores(), &projects, |it| overview::of_known(world, it, source));
    let mut rows: Vec<ProjectRow> = Vec::new();
    for ProjectOverview { row, logs, .. } in overviews {
        for log in logs {
            let cursor = stored.cursors.get(&log).cloned().unwrap_or_default();
            let add = |line: &[u8]| stored.totals.add(&row.directory, line);
            let reached = read_new(world, &log, &cursor, add).map_err(at(&log))?;
            stored.cursors.insert(log, reached);
        }
        rows.push(row);
    }
    stored.version = VERSION;
    let text = format!("{}\n", json!(stored));
    match file::save(world, &path, text.as_bytes(), &Durability::default()) {
        Saved::Durable { .. } | Saved::Degraded { .. } => Ok(to_text(&stored.totals, &rows)),
        Saved::NotSaved { why, .. } => Err(AppError::failed_as(why).about(path.display())),
    }
}

/// Loads the totals. A damaged file is an error: to begin again would count everything twice.
fn load(world: &dyn World, path: &Path) -> Result<StoredMetrics, AppError> {
    let bytes = match world.read(path, METRICS_FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(WorldError::NotFound) => return Ok(StoredMetrics::default()),
        Err(error) => return Err(AppError::failed(error).about(path.display())),
    };
    let help = "remove the file to count from the beginning of the logs";
    let stored: StoredMetrics = serde_json::from_slice(&bytes).map_err(|error| {
        AppError::failed_as(format!("{error}\nhelp: {help}")).about(path.display())
    })?;
    if stored.version > VERSION {
        let text = format!("a newer version of policyd wrote it\nhelp: {help}");
        return Err(AppError::failed_as(text).about(path.display()));
    }
    Ok(stored)
}
