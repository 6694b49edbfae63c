//! Sends the decision log to the server. Hooks only append to the file. A line is sent once: its id is its content.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{SharedStore, SyncError, position};
use crate::log_files::paths;
use policyd_base::limits::{
    DECISIONS_AT_ONCE, LOG_SHIPPED_BYTES_MAX, OPERATION_BYTES_MAX, SHARED_FILE_BYTES_MAX,
};
use policyd_world::server::LogEntry;
use policyd_yaml::checksum::hex;

const FILE: &str = "decisions.json";

/// How far the log was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct SentPosition {
    /// Which server and group it is about.
    store: String,
    /// Identity of the file; a rotation gives it another name.
    identity: u64,
    /// Bytes that were sent.
    offset: usize,
}

impl SharedStore<'_> {
    /// Sends the lines of a log that were not sent yet, as many as there is time for. Returns their number.
    ///
    /// # Errors
    /// The server cannot be reached, or the log cannot be read. The rest is sent later.
    pub fn send_decisions(&self, log: &Path, wait: Duration) -> Result<usize, SyncError> {
        let end = self.world.elapsed().saturating_add(wait);
        let client = position::client(self.world, &self.folder)?;
        let mut sent_position = self.sent_position();
        let mut server = None;
        let mut sent: usize = 0;
        for (path, identity) in self.unsent(log, sent_position.identity) {
            if identity != sent_position.identity {
                (sent_position.identity, sent_position.offset) = (identity, 0);
            }
            let bytes = self.world.read(&path, LOG_SHIPPED_BYTES_MAX)?;
            let rest = bytes.get(sent_position.offset..).unwrap_or_default();
            // A line without its end is still being written.
            let whole = memchr::memrchr(b'\n', rest).map_or(0, |at| at.saturating_add(1));
            let text = String::from_utf8_lossy(rest.get(..whole).unwrap_or_default()).into_owned();
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            for batch in lines.chunks(DECISIONS_AT_ONCE) {
                let left = end.saturating_sub(self.world.elapsed());
                if left.is_zero() {
                    return Ok(sent);
                }
                let entry = |line: &&str| LogEntry {
                    id: hex(&Sha256::digest(format!("{client}\n{line}").as_bytes())),
                    text: line.trim_end().to_owned(),
                };
                // The server takes no larger entry; the log keeps it.
                let is_json = |it: &LogEntry| {
                    it.text.len() <= OPERATION_BYTES_MAX
                        && serde_json::from_str::<serde::de::IgnoredAny>(&it.text).is_ok()
                };
                let entries: Vec<LogEntry> = batch.iter().map(entry).filter(is_json).collect();
                let connected = match server.take() {
                    Some(connected) => connected,
                    None => self.server(left)?,
                };
                let server = server.insert(connected);
                server.limit(left);
                server.append(&entries)?;
                sent = sent.saturating_add(entries.len());
                let bytes: usize = batch.iter().map(|it| it.len()).sum();
                sent_position.offset = sent_position.offset.saturating_add(bytes);
                let text = json!(sent_position).to_string();
                self.world.write(&self.folder.join(FILE), text.as_bytes())?;
            }
        }
        Ok(sent)
    }

    fn sent_position(&self) -> SentPosition {
        let store = self.settings.fingerprint();
        let bytes = self.world.read(&self.folder.join(FILE), SHARED_FILE_BYTES_MAX);
        let known: Option<SentPosition> =
            bytes.ok().and_then(|it| serde_json::from_slice(&it).ok());
        let known = known.filter(|it| it.store == store);
        known.unwrap_or_else(|| SentPosition { store, ..SentPosition::default() })
    }

    /// Returns the files with unsent lines, oldest first: the one that was sent last, and the newer ones.
    fn unsent(&self, log: &Path, identity: u64) -> Vec<(PathBuf, u64)> {
        let mut found = Vec::new();
        for path in paths(log) {
            // Gaps are normal.
            let Ok(stat) = self.world.stat(&path) else { continue };
            found.push((path, stat.identity));
            if stat.identity == identity {
                break;
            }
        }
        found.reverse();
        found
    }
}
