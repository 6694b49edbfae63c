//! Makes the morning report: over named projects or all of them, on request or by the schedule of the configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::alerts::{self, AlertError};
use crate::overview::{self, ActivitySource, ProjectScope};
use crate::sessions::log_reader::LogReader;
use crate::workspace::local_time;
use policyd_base::limits::USER_LOCK_WAIT;
use policyd_record::alert::Alert;
use policyd_record::notice::NoticeSeverity;
use policyd_record::table::Screen;
use policyd_report::morning::{MorningReport, ProjectNight, ReportTime, ReportedProject};
use policyd_store::alert_settings::{AlertSettings, MorningFormat, ReportSchedule};
use policyd_store::document::{DamageAction, DocumentError};
use policyd_store::file::{self, Durability, SaveOutcome};
use policyd_store::user::UserDirectory;
use policyd_store::user_state::UserStateFile;
use policyd_world::{World, WorldError};
use policyd_yaml::time::Timestamp;

/// Files below the user's state directory.
const STATE: &str = "reports.json";
const FOLDER: &str = "reports";

/// Columns of a report as text that is sent.
const SENT_COLUMNS: usize = 100;

/// Why a scheduled report was not made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("report `{0}`: no channel is called `{1}`")]
    NoChannel(String, String),
    #[error("report `{0}`: {1}")]
    NotSent(String, AlertError),
    /// Contains the path and the reason.
    #[error("report `{id}`: could not write {}: {why}", path.display())]
    NotWritten { id: String, path: PathBuf, why: String },
    #[error(transparent)]
    State(#[from] DocumentError),
}

/// Collects a report that ends now. Also returns which decision logs could not be read.
pub fn collect(
    world: &dyn World,
    scope: &ProjectScope,
    since: Duration,
) -> (MorningReport, Vec<(PathBuf, WorldError)>) {
    let now = world.now();
    let time = ReportTime { now, since, utc_offset: local_time::utc_offset(world, now) };
    let start = time.start();
    let source = ActivitySource::Logs { since: start };
    let rows = overview::rows(world, scope, source);
    let mut nights: BTreeMap<String, ProjectNight> = BTreeMap::new();
    let reader = LogReader::new(world, scope);
    let changed = reader.changed();
    let problems = reader.visit(start, |project, entry| {
        nights.entry(project.to_owned()).or_default().add(&time, entry);
    });
    let projects = rows.into_iter().map(|mut row| {
        for it in changed.iter().filter(|it| it.project == row.directory) {
            row.problems.push(format!(
                "the decision log was changed, so numbers can be wrong: {}; `policyd log --verify` lists every change",
                it.problem
            ));
        }
        let night = nights.remove(&row.directory).unwrap_or_default();
        ReportedProject { row, night }
    });
    (MorningReport::new(time, projects.collect()), problems)
}

/// When each scheduled report was made last, by its id.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct MadeReports {
    made: BTreeMap<String, Timestamp>,
}

/// Makes the scheduled reports that are due. Returns the ids of those that were made, and what failed; these are due
/// again at the next call.
///
/// # Errors
/// It could not be read or saved which reports were made.
pub fn make_due(
    world: &dyn World,
    settings: &AlertSettings,
) -> Result<(Vec<String>, Vec<ReportError>), ReportError> {
    let Some(folder) = UserDirectory::State.path(world) else { return Ok(Default::default()) };
    if settings.reports.is_empty() {
        return Ok(Default::default());
    }
    // After damage, each report is made once more.
    let opened = UserStateFile::open(world, STATE, DamageAction::Quarantine, USER_LOCK_WAIT)?;
    let (stored, mut state): (_, MadeReports) = opened;
    let (mut made, mut problems) = (Vec::new(), Vec::new());
    for schedule in &settings.reports {
        let due = last_due(world, schedule);
        if state.made.get(&schedule.id).is_some_and(|it| *it >= due) {
            continue;
        }
        match make(world, settings, schedule, &folder) {
            Ok(()) => {
                state.made.insert(schedule.id.clone(), world.now());
                stored.save(&state, &Durability::default())?;
                made.push(schedule.id.clone());
            }
            Err(problem) => problems.push(problem),
        }
    }
    Ok((made, problems))
}

/// Returns the last time at which a report was due.
fn last_due(world: &dyn World, schedule: &ReportSchedule) -> Timestamp {
    const DAY: i64 = 24 * 60 * 60 * 1_000;
    let now = world.now();
    let local = local_time::local(world, now).millis();
    let offset = local.saturating_sub(now.millis());
    let midnight = local.saturating_sub(local.rem_euclid(DAY));
    let today = midnight.saturating_add(i64::from(schedule.at).saturating_mul(60_000));
    let last = if today > local { today.saturating_sub(DAY) } else { today };
    Timestamp::from_millis(last.saturating_sub(offset))
}

/// Makes a report, and writes and sends it.
fn make(
    world: &dyn World,
    settings: &AlertSettings,
    schedule: &ReportSchedule,
    folder: &Path,
) -> Result<(), ReportError> {
    let (report, _unread) = collect(world, &ProjectScope::All, schedule.since);
    let screen = Screen { columns: Some(SENT_COLUMNS), color: false };
    let text = report.format(schedule.format, screen);
    if let Some(file) = &schedule.file {
        let local = local_time::local(world, world.now());
        let date: String = local.to_string().chars().take("2026-01-31".len()).collect();
        let path = folder.join(FOLDER).join(file.replace("{date}", &date));
        let parent = path.parent().unwrap_or(folder);
        let not_written = |why: String| {
            let (id, path) = (schedule.id.clone(), path.clone());
            ReportError::NotWritten { id, path, why }
        };
        world.create_folder(parent).map_err(|error| not_written(error.to_string()))?;
        let saved = file::save(world, &path, text.as_bytes(), &Durability::default());
        if let SaveOutcome::NotSaved { why, .. } = saved {
            return Err(not_written(why));
        }
    }
    let Some(id) = &schedule.channel else { return Ok(()) };
    let Some(channel) = settings.channel(id) else {
        return Err(ReportError::NoChannel(schedule.id.clone(), id.clone()));
    };
    let now = world.now();
    let alert = Alert {
        id: format!("{}-{}", schedule.id, now.millis()),
        key: format!("report|{}", schedule.id),
        at: now,
        severity: NoticeSeverity::Low.as_str().to_owned(),
        kind: "report".to_owned(),
        subject: schedule.id.clone(),
        title: format!("policyd: {}", report.summary()),
        html: (schedule.format == MorningFormat::Html).then_some(text),
        text: report.format(MorningFormat::Markdown, screen),
        ..Alert::default()
    };
    alerts::send(world, channel, &alert)
        .map_err(|error| ReportError::NotSent(schedule.id.clone(), error))
}
