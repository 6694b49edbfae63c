//! Reading a transcript: cursors, cuts, torn ends, files that change under it.

use std::path::Path;
use std::time::Duration;

use super::bench_transcript;
use super::lens;
use super::session::{every_kind, said, user};
use crate::support::{full, shared};
use policyd::facts::Facts;
use policyd::facts::cursor::Key;
use policyd::limits::TRANSCRIPT_LINE_BYTES_MAX;
use policyd::store::transcript::{Places, TranscriptDelta, keep, read};
use policyd::world::fake::{FakeWorld, Op, Survival};
use policyd::world::{World, WorldError};

const FOREVER: Duration = Duration::from_secs(1_000);
const TRANSCRIPT: &str = "/work/t";
const CURSOR: &str = "/work/c";

/// Sets the content; the file stays the same file.
fn set(world: &FakeWorld, path: &str, bytes: &[u8]) {
    world.write(Path::new(path), bytes).unwrap();
}

fn writes(world: &FakeWorld) -> Vec<String> {
    world.log().into_iter().filter(|line| line.starts_with("write")).collect()
}

fn read_now(world: &FakeWorld) -> TranscriptDelta {
    read_until(world, FOREVER)
}

fn read_until(world: &FakeWorld, deadline: Duration) -> TranscriptDelta {
    let places = Places {
        transcript: Path::new(TRANSCRIPT),
        cursor: Some(Path::new(CURSOR)),
        subagent: false,
    };
    let key = Key::of(&lens::test_lens());
    let reading = read(world, places, &lens::compiled(), key, deadline);
    reading.cursor.iter().for_each(|it| keep(world, Path::new(CURSOR), it));
    reading
}

/// The facts of a reading without any cursor.
fn fresh(bytes: &[u8]) -> Facts {
    let world = FakeWorld::new();
    set(&world, TRANSCRIPT, bytes);
    read_now(&world).facts
}

fn session() -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in every_kind() {
        bytes.extend_from_slice(line.to_string().as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

fn every_split_gives_the_same(bytes: &[u8], step: usize) {
    let whole = fresh(bytes);
    let (lens, key) = (lens::compiled(), Key::of(&lens::test_lens()));
    let places = Places {
        transcript: Path::new(TRANSCRIPT),
        cursor: Some(Path::new(CURSOR)),
        subagent: false,
    };
    let growing = FakeWorld::new();
    for cut in (0..=bytes.len()).step_by(step) {
        // One world reads the file as it grows; another goes on from there to the end.
        set(&growing, TRANSCRIPT, bytes.get(..cut).unwrap_or_default());
        let grown = read(&growing, places, &lens, key, FOREVER);
        grown.cursor.iter().for_each(|it| keep(&growing, Path::new(CURSOR), it));
        let world = growing.reboot(Survival::EVERYTHING);
        set(&world, TRANSCRIPT, bytes);
        let second = read(&world, places, &lens, key, FOREVER);
        assert!(second.from_cursor, "cut at {cut}");
        assert_eq!(second.facts, whole, "cut at {cut}");
    }
}

#[test]
fn a_file_read_in_two_parts_cut_anywhere_gives_the_same_facts() {
    every_split_gives_the_same(&session(), if full() { 1 } else { 9 });
}

#[test]
fn a_recorded_session_read_in_two_parts_gives_the_same_facts() {
    let Some(path) = shared::path("samples/claude-code/transcript.jsonl") else { return };
    let bytes = std::fs::read(path).unwrap();
    every_split_gives_the_same(&bytes, if full() { 509 } else { 5_003 });
    every_split_gives_the_same(&bytes[bytes.len() - 2_000..], if full() { 1 } else { 9 });
}

/// A transcript of about that many messages.
fn generated(messages: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    bench_transcript::write(&mut bytes, messages, false, bench_transcript::TURNS_TO_A_STOP, None)
        .ok();
    bytes
}

#[test]
fn only_what_is_new_is_read() {
    let world = FakeWorld::new();
    let mut bytes = generated(160);
    set(&world, TRANSCRIPT, &bytes);
    let first = read_now(&world);
    assert_eq!((first.from_cursor, first.bytes_read), (false, bytes.len() as u64));
    let more = format!("{}\n", said("new", "later"));
    bytes.extend_from_slice(more.as_bytes());
    set(&world, TRANSCRIPT, &bytes);
    let second = read_now(&world);
    assert_eq!((second.from_cursor, second.bytes_read), (true, more.len() as u64));
    assert_eq!(second.facts, fresh(&bytes));
    world.clear_log();
    let third = read_now(&world);
    assert!(writes(&world).is_empty(), "written although nothing moved");
    assert_eq!(
        (third.bytes_read, &third.facts),
        (0, &second.facts),
        "nothing moved, nothing saved"
    );
}

#[test]
fn another_file_or_a_changed_one_is_read_from_the_start() {
    let bytes = session();
    let start = |world: &FakeWorld| {
        set(world, TRANSCRIPT, &bytes);
        read_now(world);
    };
    let world = FakeWorld::new();
    start(&world);
    set(&world, TRANSCRIPT, &bytes[..bytes.len() / 2]);
    assert!(!read_now(&world).from_cursor, "shorter");
    start(&world);
    let mut changed = bytes.clone();
    let last = changed.len() - 5;
    changed[last] ^= 1;
    set(&world, TRANSCRIPT, &changed);
    assert!(!read_now(&world).from_cursor, "other bytes before the offset");
    start(&world);
    world.put(TRANSCRIPT, &bytes);
    let replaced = read_now(&world);
    assert!(!replaced.from_cursor, "another file of the same name");
    assert_eq!(replaced.facts, fresh(&bytes));
    start(&world);
    set(&world, CURSOR, b"garbage");
    assert_eq!(read_now(&world).facts, fresh(&bytes));
}

#[test]
fn an_unfinished_line_counts_as_soon_as_it_is_whole() {
    let world = FakeWorld::new();
    let (first, second) = (user("one").to_string(), user("two").to_string());
    let torn = format!("{first}\n{}", second.trim_end_matches('}'));
    for (bytes, prompts) in [
        (torn, 1),
        (format!("{first}\n{second}"), 2),
        (format!("{first}\n{second}\n"), 2),
        (format!("{first}\n{second}\n{first}"), 3),
    ] {
        set(&world, TRANSCRIPT, bytes.as_bytes());
        assert_eq!(read_now(&world).facts.prompts.count, prompts, "{bytes}");
    }
}

#[test]
fn what_cannot_be_read_says_so() {
    let world = FakeWorld::new();
    for (setup, text) in [("", "no such file"), ("folder", "not a regular file")] {
        if setup == "folder" {
            world.put_folder(TRANSCRIPT);
        }
        let reading = read_now(&world);
        assert_eq!(reading.facts, Facts::default());
        assert!(reading.problem.unwrap().to_string().contains(text));
    }
    let world = FakeWorld::new();
    set(&world, TRANSCRIPT, &session());
    let refused = WorldError::Io("input/output error".to_owned());
    world.refuse_always(Op::ReadAt, "t", refused);
    assert!(read_now(&world).problem.unwrap().to_string().contains("input/output"));
}

#[test]
fn a_deadline_stops_and_the_next_reading_goes_on() {
    let world = FakeWorld::new();
    let bytes = generated(240);
    set(&world, TRANSCRIPT, &bytes);
    world.tick(Duration::from_millis(10));
    let first = read_until(&world, Duration::from_millis(35));
    assert!(first.problem.unwrap().to_string().contains("too long"));
    assert!(first.bytes_read > 0 && first.bytes_read < bytes.len() as u64);
    let second = read_now(&world);
    assert!(second.from_cursor && second.problem.is_none());
    assert_eq!(second.facts, fresh(&bytes));
}

#[test]
fn a_line_over_the_bound_is_skipped_and_what_follows_is_read() {
    let mut bytes = format!("{}\n{{\"type\":\"user\",\"x\":\"", user("one")).into_bytes();
    bytes.resize(bytes.len() + TRANSCRIPT_LINE_BYTES_MAX, b'x');
    bytes.extend_from_slice(format!("\"}}\n{}\n", user("two")).as_bytes());
    let facts = fresh(&bytes);
    assert_eq!((facts.prompts.count, facts.lines_skipped, facts.seq), (2, 1, 3));
}

#[test]
fn without_a_place_for_the_cursor_none_is_kept() {
    let world = FakeWorld::new();
    set(&world, TRANSCRIPT, &session());
    world.clear_log();
    let places = Places { transcript: Path::new(TRANSCRIPT), cursor: None, subagent: false };
    let key = Key::of(&lens::test_lens());
    for _ in 0..2 {
        let reading = read(&world, places, &lens::compiled(), key, FOREVER);
        assert_eq!((reading.from_cursor, reading.problem), (false, None));
    }
    assert!(writes(&world).is_empty(), "a cursor was kept");
}
