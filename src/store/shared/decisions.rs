//! Sends the decision log to the server. Hooks only append to the file. A line is sent once: its id is its content.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{SharedStore, SyncError, position};
use crate::document::{DocumentError, StoredDocument};
use crate::log_files::FILE_BYTES_MAX;
use crate::log_position::LogPosition;
use policyd_base::limits::{DECISIONS_AT_ONCE, OPERATION_BYTES_MAX};
use policyd_world::server::LogEntry;
use policyd_yaml::checksum::hex;

const FILE: &str = "decisions.json";

/// How far the log was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct SentLines {
    /// Which server and group it is about.
    store: String,
    position: LogPosition,
}

impl SharedStore<'_> {
    /// Sends the lines of a log that were not sent yet, as many as there is time for. Returns their number.
    ///
    /// # Errors
    /// The server cannot be reached, or the log cannot be read. The rest is sent later.
    pub fn send_decisions(&self, log: &Path, wait: Duration) -> Result<usize, SyncError> {
        let end = self.world.elapsed().saturating_add(wait);
        let client = position::client(self.world, &self.folder)?;
        let mut known = self.sent_lines()?;
        let mut server = None;
        let mut sent: usize = 0;
        for (mut file, start) in known.position.open_new(self.world, log)? {
            // A line without its end is still being written.
            let chunk = file.chunk(&start, FILE_BYTES_MAX)?;
            known.position = start;
            let lines: Vec<&[u8]> = chunk.bytes.split_inclusive(|it| *it == b'\n').collect();
            for batch in lines.chunks(DECISIONS_AT_ONCE) {
                let left = end.saturating_sub(self.world.elapsed());
                if left.is_zero() {
                    return Ok(sent);
                }
                let entry = |line: &&[u8]| {
                    let line = String::from_utf8_lossy(line);
                    LogEntry {
                        id: hex(&Sha256::digest(format!("{client}\n{line}").as_bytes())),
                        text: line.trim_end().to_owned(),
                    }
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
                known.position.add(batch.iter().map(|it| it.len()).sum());
                position::save(&self.sent_document(), &known)?;
            }
        }
        Ok(sent)
    }

    fn sent_document(&self) -> StoredDocument<'_> {
        position::document(self.world, &self.folder, FILE)
    }

    /// Loads how far the log was sent. A damaged document is as good as none: the server knows the lines that it has.
    fn sent_lines(&self) -> Result<SentLines, DocumentError> {
        let store = self.settings.fingerprint();
        let known: Option<SentLines> = match self.sent_document().load() {
            Err(DocumentError::Damaged { .. }) => None,
            loaded => loaded?,
        };
        let known = known.filter(|it| it.store == store);
        Ok(known.unwrap_or_else(|| SentLines { store, ..SentLines::default() }))
    }
}
