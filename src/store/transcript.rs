//! The transcript as facts: only the bytes that are new since the last reading are read.
//! Lives here: the order of reads, and when a cursor may be trusted. What lines mean is in `facts`.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use policyd_base::limits::{CURSOR_BYTES_MAX, LAST_MESSAGE_BYTES_MAX, TRANSCRIPT_CHUNK_BYTES};
use policyd_base::text::cut_front;
use policyd_evaluation::inputs::{TranscriptPosition, message_proof};
use policyd_facts::Facts;
use policyd_facts::compiled::CompiledMatchers;
use policyd_facts::cursor::{self, Key, Position};
use policyd_facts::lines::{LineChunk, Lines};
use policyd_facts::record::{self, RecordEntry};
use policyd_world::{OpenFile, World, WorldError};
use policyd_yaml::checksum::hex;

/// Header of a cursor on top of its body, with room to spare.
const CURSOR_FILE_BYTES_MAX: usize = CURSOR_BYTES_MAX + 1024;

/// Room for what a client may append between the look at a transcript and its reading.
const GROWTH_BYTES: usize = 4096;

/// Keeps a cursor. It is a cache: a refusal only costs the next reading time.
pub fn keep(world: &dyn World, path: &Path, cursor: &[u8]) {
    let _refused = world.write(path, cursor);
}

/// Why a transcript cannot be read, wholly or in part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptError {
    /// The payload of the event contains no path of a transcript.
    #[error("the payload names no transcript")]
    NotNamed,
    #[error("transcript `{path}`: {source}")]
    Unreadable { path: String, source: WorldError },
    #[error("transcript `{path}`: no valid record (lines read: {lines})")]
    NoValidLine { path: String, lines: u64 },
    /// The part that was read before has other contents now.
    #[error("transcript `{0}` was rewritten: the part that was read before has other content")]
    Rewritten(String),
}

/// What was read of a transcript.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TranscriptDelta {
    /// The facts, empty where nothing could be read.
    pub facts: Facts,
    /// Whether they continue those of an earlier reading.
    pub from_cursor: bool,
    /// Bytes read of the transcript for this.
    pub bytes_read: u64,
    /// Why the facts might be incomplete.
    pub problem: Option<TranscriptError>,
    /// The cursor to keep for the next reading, where it moved.
    pub cursor: Option<Vec<u8>>,
    /// How far it was read, and the proof of it.
    pub position: Position,
    /// Bytes of a line without its end that count, after that position.
    pub unfinished: usize,
    /// How long the end of the transcript was waited for.
    pub waited: Duration,
}

/// When a transcript shows all that it should, and how long that is waited for.
#[derive(Clone, Copy)]
pub struct Patience<'p> {
    /// Whether facts show everything.
    pub complete: &'p dyn Fn(&Facts) -> bool,
    /// The longest wait.
    pub limit: Duration,
}

impl Patience<'_> {
    /// Takes a transcript as it is.
    pub const NONE: Self = Self { complete: &|_| true, limit: Duration::ZERO };
}

/// The pauses between two looks at a transcript that grows: each is twice as long as the one before.
struct PollBackoff<'w> {
    world: &'w dyn World,
    limit: Duration,
    next: Duration,
    so_far: Duration,
}

impl<'w> PollBackoff<'w> {
    fn new(world: &'w dyn World, limit: Duration) -> Self {
        Self { world, limit, next: FIRST_WAIT, so_far: Duration::ZERO }
    }

    /// Makes a pause; `false` once the limit is reached.
    fn pause(&mut self) -> bool {
        let left = self.limit.saturating_sub(self.so_far);
        if left.is_zero() {
            return false;
        }
        let began = self.world.elapsed();
        self.world.sleep(self.next.min(left));
        let took = self.world.elapsed().saturating_sub(began);
        // A clock that stands still must not make it endless.
        self.so_far = self.so_far.saturating_add(took.max(self.next.min(left)));
        self.next = self.next.saturating_mul(2).min(LONGEST_WAIT);
        true
    }
}

/// First pause.
const FIRST_WAIT: Duration = Duration::from_millis(4);
/// Longest pause.
const LONGEST_WAIT: Duration = Duration::from_millis(25);

/// Where a transcript is, and where its cursor is kept (`None`: nowhere).
#[derive(Debug, Clone, Copy)]
pub struct Places<'p> {
    /// The transcript.
    pub transcript: &'p Path,
    /// The cursor.
    pub cursor: Option<&'p Path>,
    /// Whether it is a subagent's own transcript.
    pub subagent: bool,
}

/// Reads what is new in a transcript, until `deadline` at the latest (as `World::elapsed` tells).
#[must_use]
pub fn read(
    world: &dyn World,
    places: Places<'_>,
    lens: &CompiledMatchers,
    key: Key,
    deadline: Duration,
) -> TranscriptDelta {
    read_patiently(world, places, lens, key, deadline, Patience::NONE)
}

/// Reads what is new in a transcript, and waits until it is complete.
#[must_use]
pub fn read_patiently(
    world: &dyn World,
    places: Places<'_>,
    lens: &CompiledMatchers,
    key: Key,
    deadline: Duration,
    patience: Patience<'_>,
) -> TranscriptDelta {
    let mut reading = TranscriptDelta::default();
    reading.facts.sidechain = places.subagent;
    let mut waiting = PollBackoff::new(world, patience.limit);
    let mut file = loop {
        match world.open(places.transcript) {
            Ok(file) => break file,
            // The client might create the file after its first hooks.
            Err(WorldError::NotFound) if waiting.pause() => {}
            Err(error) => {
                return TranscriptDelta { problem: Some(problem(places, error)), ..reading };
            }
        }
    };
    let stat = match file.stat() {
        Ok(stat) => stat,
        Err(error) => return TranscriptDelta { problem: Some(problem(places, error)), ..reading },
    };
    let mut position = Position { identity: stat.identity, ..Position::default() };
    if let Some((known, facts)) = saved(world, places, key)
        && known.identity == stat.identity
        && known.offset <= stat.length
        && facts.sidechain == places.subagent
        && proof_at(file.as_mut(), known.offset) == Some(known.proof)
    {
        position = known;
        reading.facts = facts;
        reading.from_cursor = true;
    }
    let start = position.offset;
    let mut lines = Lines::default();
    loop {
        let rest = start + reading.bytes_read..stat.length;
        let ended = tail(world, file.as_mut(), rest, deadline, |chunk| {
            reading.bytes_read += chunk.len() as u64;
            lines.push(chunk, |piece| match piece {
                LineChunk::Line(line) => reading.facts.ingest_record(line, lens),
                LineChunk::TooLong => reading.facts.skip_line(),
            });
        });
        reading.problem = ended.map(|error| problem(places, error));
        if reading.problem.is_some()
            || shows_all(&reading.facts, lines.unfinished(), lens, patience)
            || !waiting.pause()
        {
            break;
        }
    }
    reading.waited = waiting.so_far;
    let skipped = reading.facts.lines_skipped;
    if reading.problem.is_none() && skipped > 0 && skipped == reading.facts.seq {
        let path = places.transcript.display().to_string();
        reading.problem = Some(TranscriptError::NoValidLine { path, lines: skipped });
    }
    position.offset = start + reading.bytes_read - lines.unfinished_bytes();
    if position.offset != start || !reading.from_cursor {
        reading.cursor = moved(file.as_mut(), &mut position, &reading.facts, key);
    }
    // A client writes a line and its end in one go or in two: what is complete already counts,
    // but not in the cursor, which will meet the line again with its end.
    if is_complete_object(lines.unfinished()) {
        reading.facts.ingest_record(lines.unfinished(), lens);
        reading.unfinished = lines.unfinished().len();
    }
    reading.position = position;
    reading
}

/// Whether the facts, with a last line that has no end yet, show everything.
fn shows_all(
    facts: &Facts,
    unfinished: &[u8],
    lens: &CompiledMatchers,
    patience: Patience<'_>,
) -> bool {
    if (patience.complete)(facts) {
        return true;
    }
    if !is_complete_object(unfinished) {
        return false;
    }
    let mut facts = facts.clone();
    facts.ingest_record(unfinished, lens);
    (patience.complete)(&facts)
}

/// Reads a transcript as far as it was read before.
///
/// # Errors
/// [`TranscriptError`] if the transcript cannot be read, or was rewritten since.
pub fn read_again(
    world: &dyn World,
    read: &TranscriptPosition,
    lens: &CompiledMatchers,
    deadline: Duration,
) -> Result<Facts, TranscriptError> {
    let gone = |source| TranscriptError::Unreadable { path: read.path.clone(), source };
    let mut file = world.open(Path::new(&read.path)).map_err(gone)?;
    let proof = proof_at(file.as_mut(), read.offset).map(|it| hex(&it));
    if proof.as_ref() != Some(&read.proof) {
        return Err(TranscriptError::Rewritten(read.path.clone()));
    }
    let mut facts = Facts { sidechain: read.subagent, ..Facts::default() };
    let end = read.offset.saturating_add(u64::try_from(read.unfinished).unwrap_or(u64::MAX));
    let (mut lines, mut left) = (Lines::default(), end);
    let ended = tail(world, file.as_mut(), 0..end, deadline, |chunk| {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
        left = left.saturating_sub(u64::try_from(wanted).unwrap_or(u64::MAX));
        lines.push(chunk.get(..wanted).unwrap_or_default(), |piece| match piece {
            LineChunk::Line(line) => facts.ingest_record(line, lens),
            LineChunk::TooLong => facts.skip_line(),
        });
    });
    if let Some(error) = ended {
        return Err(gone(error));
    }
    if !lines.unfinished().is_empty() {
        facts.ingest_record(lines.unfinished(), lens);
    }
    Ok(facts)
}

/// Returns the message of the agent with the checksum `proof` from anywhere in a transcript.
#[must_use]
pub fn find_said(
    world: &dyn World,
    transcript: &Path,
    proof: &str,
    deadline: Duration,
) -> Option<String> {
    let mut file = world.open(transcript).ok()?;
    let (mut lines, mut found) = (Lines::default(), None);
    let mut look = |line: &[u8]| {
        let said = || said(line).into_iter().find(|it| message_proof(it) == proof);
        found = found.take().or_else(said);
    };
    let length = file.stat().ok()?.length;
    tail(world, file.as_mut(), 0..length, deadline, |chunk| {
        lines.push(chunk, |piece| match piece {
            LineChunk::Line(line) => look(line),
            LineChunk::TooLong => {}
        });
    });
    look(lines.unfinished());
    found
}

/// Bytes at the end of a transcript in which the model of the last call is looked for, and those where these do
/// not tell: one result may be longer than the first.
const LAST_CALL_BYTES: [u64; 2] = [256 * 1024, 8 * 1024 * 1024];

/// Returns the model of the last API call, as the client names it. `None` if the end of the
/// transcript contains no call. `of_subagent`: whether the transcript is a subagent's own; in other
/// transcripts, calls of side chains are skipped.
#[must_use]
pub fn last_model(
    world: &dyn World,
    transcript: &Path,
    of_subagent: bool,
    deadline: Duration,
) -> Option<String> {
    let mut file = world.open(transcript).ok()?;
    let length = file.stat().ok()?.length;
    LAST_CALL_BYTES.into_iter().find_map(|bytes| {
        let rest = length.saturating_sub(bytes)..length;
        model_in(world, file.as_mut(), rest, of_subagent, deadline)
    })
}

fn model_in(
    world: &dyn World,
    file: &mut dyn OpenFile,
    rest: Range<u64>,
    of_subagent: bool,
    deadline: Duration,
) -> Option<String> {
    let (mut lines, mut found) = (Lines::default(), None);
    let mut look = |line: &[u8]| {
        // The first line might be the rest of a line, which is not a record.
        let told = record::read_repaired(&record::trimmed(line), |record| {
            let model = |it: &RecordEntry<'_>| {
                let RecordEntry::Usage(usage) = it else { return None };
                (!usage.model.is_empty()).then(|| usage.model.to_string())
            };
            let last = record.entries.iter().rev().find_map(model);
            last.filter(|_| record.sidechain == of_subagent)
        });
        if let Some(model) = told.flatten() {
            found = Some(model);
        }
    };
    tail(world, file, rest, deadline, |chunk| {
        lines.push(chunk, |piece| match piece {
            LineChunk::Line(line) => look(line),
            LineChunk::TooLong => {}
        });
    });
    look(lines.unfinished());
    found
}

/// Returns the texts of the agent in a line: each block, and all blocks joined.
fn said(line: &[u8]) -> Vec<String> {
    let record = record::read(line.trim_ascii());
    let entries = record.map(|it| it.entries).unwrap_or_default();
    let texts = entries.iter().filter_map(|it| match it {
        RecordEntry::Said(text) => Some(text.to_string()),
        RecordEntry::Asked(_)
        | RecordEntry::Prompt { .. }
        | RecordEntry::Injected { .. }
        | RecordEntry::Call { .. }
        | RecordEntry::Result(_)
        | RecordEntry::Done { .. }
        | RecordEntry::Usage(_)
        | RecordEntry::Compacted
        | RecordEntry::Stopping { .. }
        | RecordEntry::Stopped { .. }
        | RecordEntry::CutOff => None,
    });
    let mut texts: Vec<String> = texts.collect();
    texts.extend((texts.len() > 1).then(|| texts.join("\n")));
    texts.iter().map(|it| cut_front(it, LAST_MESSAGE_BYTES_MAX).to_owned()).collect()
}

/// Passes every line of a transcript from its beginning, the last one also without its end where
/// it is complete; returns the bytes read.
///
/// # Errors
/// [`WorldError`] that ended the reading. The lines before it were passed to `take`.
pub fn lines(
    world: &dyn World,
    path: &Path,
    mut take: impl FnMut(LineChunk<'_>),
) -> Result<u64, WorldError> {
    let mut file = world.open(path)?;
    let length = file.stat()?.length;
    let (mut lines, mut bytes) = (Lines::default(), 0);
    let problem = tail(world, file.as_mut(), 0..length, Duration::MAX, |chunk| {
        bytes += chunk.len() as u64;
        lines.push(chunk, &mut take);
    });
    if problem.is_none() && is_complete_object(lines.unfinished()) {
        take(LineChunk::Line(lines.unfinished()));
    }
    problem.map_or(Ok(bytes), Err)
}

/// Passes everything from the start of `rest` to the end of the file, which may have grown
/// beyond it; what ended it too early is returned.
fn tail(
    world: &dyn World,
    file: &mut dyn OpenFile,
    rest: Range<u64>,
    deadline: Duration,
    mut take: impl FnMut(&[u8]),
) -> Option<WorldError> {
    let expected = usize::try_from(rest.end.saturating_sub(rest.start)).unwrap_or(usize::MAX);
    let room = expected.saturating_add(GROWTH_BYTES).min(TRANSCRIPT_CHUNK_BYTES);
    let (mut offset, mut buffer) = (rest.start, vec![0; room]);
    loop {
        if world.elapsed() >= deadline {
            return Some(WorldError::TimedOut);
        }
        match file.read_at(offset, &mut buffer) {
            Ok(0) => return None,
            Ok(count) => {
                take(buffer.get(..count).unwrap_or_default());
                offset += count as u64;
            }
            Err(error) => return Some(error),
        }
    }
}

fn saved(world: &dyn World, places: Places<'_>, key: Key) -> Option<(Position, Facts)> {
    let bytes = world.read(places.cursor?, CURSOR_FILE_BYTES_MAX).ok()?;
    cursor::decode(&bytes, key)
}

/// The cursor at a position it moved to.
fn moved(
    file: &mut dyn OpenFile,
    position: &mut Position,
    facts: &Facts,
    key: Key,
) -> Option<Vec<u8>> {
    position.proof = proof_at(file, position.offset)?;
    cursor::encode(position, facts, key)
}

fn proof_at(file: &mut dyn OpenFile, offset: u64) -> Option<[u8; 8]> {
    let (start, length) = Position::proof_range(offset);
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match file.read_at(start + filled as u64, bytes.get_mut(filled..)?) {
            Ok(0) | Err(_) => return None,
            Ok(count) => filled += count,
        }
    }
    Some(cursor::proof(&bytes))
}

fn is_complete_object(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.starts_with(b"{") && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}

fn problem(places: Places<'_>, source: WorldError) -> TranscriptError {
    TranscriptError::Unreadable { path: places.transcript.display().to_string(), source }
}
