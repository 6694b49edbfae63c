//! How much of the newest transcript of each client is understood. A client that records its work in
//! another form than policyd reads would make every check blind.

use std::collections::BTreeSet;
use std::path::Path;

use super::check::{CheckHealth, DoctorCheck};
use crate::replay::sessions;
use crate::sessions::recordings::{self, RecordingDirectory};
use policyd_facts::lines::LineChunk;
use policyd_facts::record::{self, EntryCall, Record, RecordEntry};
use policyd_harness::Harness;
use policyd_store::transcript;
use policyd_world::World;
use policyd_yaml::time::Timestamp;

const ABOUT: &str = "transcripts";

/// Looks at the newest transcript of each client that has any.
pub(super) fn inspect_transcripts(world: &dyn World) -> Vec<DoctorCheck> {
    let directories = recordings::directories(world);
    let checks: Vec<DoctorCheck> = directories.iter().filter_map(|it| newest(world, it)).collect();
    if checks.is_empty() {
        return vec![DoctorCheck::good(ABOUT, "no client has recorded a session yet")];
    }
    checks
}

fn newest(world: &dyn World, directory: &RecordingDirectory) -> Option<DoctorCheck> {
    world.stat(&directory.path).ok()?;
    let found = sessions::find(world, std::slice::from_ref(&directory.path), Timestamp::default());
    let transcripts = found.sessions.iter().flat_map(|it| &it.transcripts);
    let path = &transcripts.filter(|it| it.agent().is_none()).max_by_key(|it| it.modified)?.path;
    let title = directory.harness.title;
    let mut seen = Understood::new(directory.harness);
    let read = transcript::lines(world, path, |piece| match piece {
        LineChunk::Line(line) => seen.line(line),
        LineChunk::TooLong => {}
    });
    if let Err(error) = read {
        return Some(DoctorCheck::new(
            ABOUT,
            CheckHealth::Bad,
            format!("{title}: {}: {error}", path.display()),
        ));
    }
    Some(seen.check(title, path))
}

/// What is understood of a transcript.
struct Understood<'h> {
    harness: &'h Harness,
    /// Ids of the calls so far, so that a call that is recorded twice counts once.
    calls: BTreeSet<String>,
    /// Tool calls.
    all: u64,
    /// Tool calls of known tools.
    known: u64,
    /// Whether the last call only contains others (Codex's `exec`), and none of them came yet.
    open_container: bool,
    /// Lines that are not empty, and those that are records.
    lines: (u64, u64),
    /// Names of unknown tools.
    unknown: BTreeSet<String>,
}

/// Codex's tool in code mode: its calls are recorded as items.
const CONTAINER: &str = "exec";

impl<'h> Understood<'h> {
    fn new(harness: &'h Harness) -> Self {
        Self {
            harness,
            calls: BTreeSet::new(),
            all: 0,
            known: 0,
            open_container: false,
            lines: (0, 0),
            unknown: BTreeSet::new(),
        }
    }

    fn line(&mut self, line: &[u8]) {
        let line = record::trimmed(line);
        if line.is_empty() {
            return;
        }
        self.lines.0 = self.lines.0.saturating_add(1);
        let read = record::read_repaired(&line, |record| self.record(&record));
        self.lines.1 = self.lines.1.saturating_add(u64::from(read.is_some()));
    }

    fn record(&mut self, record: &Record<'_>) {
        for call in record.entries.iter().filter_map(RecordEntry::call) {
            match call {
                EntryCall::Begun { id, name } => self.call(id, name),
                EntryCall::Ended { name, result, .. } => {
                    self.open_container = false;
                    self.call(&result.id, name);
                }
            }
        }
    }

    fn call(&mut self, id: &str, name: &str) {
        if !id.is_empty() && !self.calls.insert(id.to_owned()) {
            return;
        }
        if name == CONTAINER {
            self.close_container();
            self.open_container = true;
            return;
        }
        self.all = self.all.saturating_add(1);
        if self.harness.knows_tool(name) {
            self.known = self.known.saturating_add(1);
        } else {
            self.unknown.insert(name.to_owned());
        }
    }

    /// A container whose calls were not recorded is one call that is not understood.
    fn close_container(&mut self) {
        if std::mem::take(&mut self.open_container) {
            self.all = self.all.saturating_add(1);
            self.unknown.insert(CONTAINER.to_owned());
        }
    }

    fn check(mut self, title: &str, path: &Path) -> DoctorCheck {
        self.close_container();
        let (lines, records) = self.lines;
        let path = path.display();
        let text =
            format!("{title}: {} of {} tool calls recognized in {path}", self.known, self.all);
        let blind = (lines > 0 && records == 0) || (self.all > 0 && self.known == 0);
        let health = match (blind, self.known == self.all) {
            (true, _) => CheckHealth::Bad,
            (false, true) => CheckHealth::Good,
            (false, false) => CheckHealth::Look,
        };
        let mut check = DoctorCheck::new(ABOUT, health, text);
        if !self.unknown.is_empty() {
            let names: Vec<&str> = self.unknown.iter().map(String::as_str).collect();
            check.more.push(format!("unknown tools: {}", names.join(", ")));
        }
        check
    }
}
