//! Exports decision logs of all projects from a position that is saved after each log: an entry is sent at least once, with
//! an id by which a receiver drops what came twice. A hook never exports.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::overview::ProjectScope;
use crate::sessions::log_reader::{LogReader, ProjectLine};
use policyd_base::limits::{EXPORT_RECORDS_MAX, EXPORT_RESPONSE_BYTES_MAX, USER_LOCK_WAIT};
use policyd_record::exported::ExportedEntry;
use policyd_report::otlp::{OtlpRecord, logs_request, record, traces_request};
use policyd_store::document::{DamageAction, DocumentError};
use policyd_store::file::Durability;
use policyd_store::log_position::LogPosition;
use policyd_store::user_state::UserStateFile;
use policyd_world::{HttpMethod, HttpRequest, HttpResponse, World, WorldError};
use policyd_yaml::checksum::hex;

/// Directory below the user's state directory.
const FOLDER: &str = "exports";
/// Hexadecimal digits of a file name and of the id of an entry.
const NAME_DIGITS: usize = 16;
const UID_DIGITS: usize = 32;
/// Variable of OpenTelemetry with headers: `key=value,key=value`.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
/// Time limit of one request.
const DEADLINE: Duration = Duration::from_secs(10);
/// Attempts to send a request.
const ATTEMPTS_MAX: u32 = 6;
/// Wait after the first failed attempt; each further wait is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Why an export ended before its end. The rest is sent the next time.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The position cannot be read or saved.
    #[error(transparent)]
    State(#[from] DocumentError),
    #[error("{}: {source}", path.display())]
    Output { path: PathBuf, source: WorldError },
    #[error("the collector answered with HTTP {status}: {text}")]
    Status { status: u16, text: String },
    #[error("could not reach the collector: {0}")]
    Unreachable(WorldError),
    #[error("could not compress a request: {0}")]
    Gzip(#[from] std::io::Error),
}

/// What was exported.
#[derive(Debug, Default)]
pub struct ExportResult {
    pub entries: usize,
    pub spans: usize,
    /// Logs that cannot be read, and records that the collector rejected.
    pub problems: Vec<String>,
}

/// Where an export ended.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct ExportState {
    /// Where the entries go.
    target: String,
    #[serde(rename = "cursors")]
    positions: BTreeMap<PathBuf, LogPosition>,
}

/// Locks and reads the file with the position of the export to a target.
fn position_file<'w>(
    world: &'w dyn World,
    target: &str,
) -> Result<(UserStateFile<'w>, ExportState), DocumentError> {
    let mut name = hex(&Sha256::digest(target.as_bytes()));
    name.truncate(NAME_DIGITS);
    let name = format!("{FOLDER}/{name}.json");
    UserStateFile::open(world, &name, DamageAction::Refuse, USER_LOCK_WAIT)
}

/// Calls `send` with the new entries of each log, and saves the position after each log.
fn each_log(
    world: &dyn World,
    target: &str,
    exported: &mut ExportResult,
    mut send: impl FnMut(&[(String, ProjectLine)], &mut ExportResult) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let (file, state) = position_file(world, target)?;
    let mut state = ExportState { target: target.to_owned(), ..state };
    let mut reader = LogReader::new(world, &ProjectScope::All);
    reader.resume(&state.positions);
    for number in 0..reader.count() {
        let lines = match reader.read_log(number) {
            Ok(lines) => lines,
            Err((path, error)) => {
                exported.problems.push(format!("could not read {}: {error}", path.display()));
                continue;
            }
        };
        if lines.is_empty() {
            continue;
        }
        let entries: Vec<_> = lines.into_iter().map(|it| (uid(&it), it)).collect();
        for batch in entries.chunks(EXPORT_RECORDS_MAX) {
            send(batch, exported)?;
            exported.entries = exported.entries.saturating_add(batch.len());
        }
        state.positions.extend(reader.positions());
        file.save(&state, &Durability::default())?;
    }
    Ok(())
}

/// Returns an id that only this entry has: a hash of its project and its content.
fn uid(it: &ProjectLine) -> String {
    let content = [it.project.as_bytes(), &it.line].join(&b'\n');
    let mut uid = hex(&Sha256::digest(content));
    uid.truncate(UID_DIGITS);
    uid
}

/// Sends new entries to a collector by OTLP/HTTP.
///
/// # Errors
/// The collector did not take a request, or the position cannot be read or saved.
pub fn otlp(world: &dyn World, endpoint: &str) -> Result<ExportResult, ExportError> {
    let endpoint = endpoint.trim_end_matches('/');
    let host = world.env("HOSTNAME").unwrap_or_default();
    let now = world.now();
    let mut exported = ExportResult::default();
    each_log(world, &format!("otlp {endpoint}"), &mut exported, |batch, exported| {
        let entry = |(uid, it): &(String, ProjectLine)| {
            let exported = ExportedEntry { project: &it.project, uid, line: &it.line };
            record(exported, now)
        };
        let records: Vec<OtlpRecord> = batch.iter().filter_map(entry).collect();
        if let Some(body) = traces_request(&records, &host) {
            post(world, &format!("{endpoint}/v1/traces"), &body, &mut exported.problems)?;
        }
        let body = logs_request(&records, &host);
        post(world, &format!("{endpoint}/v1/logs"), &body, &mut exported.problems)?;
        let spans = records.iter().filter(|it| it.span.is_some()).count();
        exported.spans = exported.spans.saturating_add(spans);
        Ok(())
    })?;
    Ok(exported)
}

/// Gives new entries to `write` as events of OCSF, one JSON object per line.
///
/// # Errors
/// The events cannot be written, or the position cannot be read or saved.
pub fn ocsf(
    world: &dyn World,
    target: &str,
    mut write: impl FnMut(&str) -> Result<(), WorldError>,
) -> Result<ExportResult, ExportError> {
    let mut exported = ExportResult::default();
    each_log(world, &format!("ocsf {target}"), &mut exported, |batch, _| {
        let event = |(uid, it): &(String, ProjectLine)| {
            let exported = ExportedEntry { project: &it.project, uid, line: &it.line };
            policyd_report::ocsf::event(exported).map(|it| format!("{it}\n"))
        };
        let text: String = batch.iter().filter_map(event).collect();
        write(&text).map_err(|source| ExportError::Output { path: PathBuf::from(target), source })
    })?;
    Ok(exported)
}

/// Posts a request, again while the collector is busy or cannot be reached.
fn post(
    world: &dyn World,
    url: &str,
    body: &Value,
    problems: &mut Vec<String>,
) -> Result<(), ExportError> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(body.to_string().as_bytes())?;
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("content-encoding".to_owned(), "gzip".to_owned()),
    ];
    headers.extend(own_headers(&world.env(HEADERS).unwrap_or_default()));
    let request = HttpRequest {
        method: HttpMethod::Post,
        url: url.to_owned(),
        headers,
        body: gzip.finish()?,
        deadline: DEADLINE,
        bytes_max: EXPORT_RESPONSE_BYTES_MAX,
        roots: None,
    };
    let mut wait = FIRST_WAIT;
    for attempt in 1.. {
        let response = world.request(&request);
        let (error, asked) = match response {
            Ok(response) if (200..300).contains(&response.status) => {
                problems.extend(rejected(&response));
                return Ok(());
            }
            Ok(response) => {
                let is_busy = matches!(response.status, 429 | 502 | 503 | 504);
                let asked = response.header("retry-after").and_then(|it| it.trim().parse().ok());
                let text = String::from_utf8_lossy(&response.body);
                let text = text.lines().next().unwrap_or_default().chars().take(200).collect();
                let error = ExportError::Status { status: response.status, text };
                if !is_busy {
                    return Err(error);
                }
                (error, asked.map(Duration::from_secs))
            }
            Err(error) => (ExportError::Unreachable(error), None),
        };
        if attempt >= ATTEMPTS_MAX || world.interrupted() {
            return Err(error);
        }
        world.sleep(asked.unwrap_or(wait).min(WAIT_MAX));
        wait = wait.saturating_mul(2);
    }
    Ok(())
}

/// Reads what a collector rejected of a request that it took. Such records must not be sent again.
fn rejected(response: &HttpResponse) -> Option<String> {
    let body: Value = serde_json::from_slice(&response.body).ok()?;
    let partial = body.get("partialSuccess")?;
    let count = ["rejectedLogRecords", "rejectedSpans"].into_iter().find_map(|it| {
        let count = partial.get(it)?;
        count.as_u64().or_else(|| count.as_str()?.parse().ok())
    });
    let why = partial.get("errorMessage").and_then(Value::as_str).unwrap_or_default();
    let count = count.filter(|it| *it > 0)?;
    let records = if count == 1 { "record" } else { "records" };
    Some(format!("the collector rejected {count} {records}: {why}"))
}

/// Reads headers as OpenTelemetry writes them: `key=value,key=value`.
fn own_headers(text: &str) -> Vec<(String, String)> {
    let pair = |it: &str| {
        let (key, value) = it.split_once('=')?;
        Some((key.trim().to_ascii_lowercase(), value.trim().replace("%20", " ")))
    };
    text.split(',').filter_map(pair).filter(|it| !it.0.is_empty()).collect()
}
