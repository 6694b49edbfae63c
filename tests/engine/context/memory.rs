//! However long a transcript is: what is kept of it has a bound, and a warm cursor reads what is new.

use std::path::Path;
use std::time::Duration;

use policyd::facts::Facts;
use policyd::facts::compiled::CompiledMatchers;
use policyd::facts::cursor::{Key, Position, encode};
use policyd::facts::lens::MatcherConfig;
use policyd::policy::{builtin, load};
use policyd::store::transcript::{self, Places};

use policyd::world::World;

use super::status::{Desk, call, prompt, transcript as path_of};

/// Bytes of a cursor after so many calls of the model, a prompt before every tenth.
fn kept(calls: u64) -> usize {
    let (mut facts, lens) = (Facts::default(), CompiledMatchers::new(MatcherConfig::default()));
    for number in 0..calls {
        if number % 10 == 0 {
            facts.ingest_record(
                prompt(&format!("p{number:06}"), "Go on.").to_string().as_bytes(),
                &lens,
            );
        }
        let line = call(&format!("m{number:06}"), 50_000 + number % 1_000).to_string();
        facts.ingest_record(line.as_bytes(), &lens);
    }
    assert_eq!(facts.tokens.meters.calls, calls);
    encode(&Position::default(), &facts, Key::of(&MatcherConfig::default())).unwrap().len()
}

#[test]
fn what_is_kept_of_a_transcript_does_not_grow() {
    let (short, long) = (kept(500), kept(20_000));
    assert!(long < short + 64, "numbers have more digits, and nothing else: {short} {long}");
    assert!(long < 16 * 1024, "{long}");
}

#[test]
fn with_a_warm_cursor_only_what_is_new_is_read() {
    let read = |calls: usize| {
        let desk = Desk::new();
        let mut lines = vec![prompt("p1", "Build it.")];
        lines.extend((0..calls).map(|it| call(&format!("m{it}"), 60_000)));
        desk.write("s-1", &lines);
        desk.world.put_folder("/work/.policyd/sessions/s-1");
        // The command keeps the cursor where the hooks look for it, and the other way round.
        assert_eq!(desk.call("context status", "").0, 0);
        let new = call("new", 61_000);
        let line = format!("{new}\n");
        desk.world.append(Path::new(&path_of("s-1")), line.as_bytes()).unwrap();
        let pack = builtin::pack();
        let policy = load::load(&pack, &pack).policy.unwrap();
        let (path, cursor) = (path_of("s-1"), "/work/.policyd/sessions/s-1/cursor.bin");
        let places = Places {
            transcript: Path::new(&path),
            cursor: Some(Path::new(cursor)),
            subagent: false,
        };
        let lens = CompiledMatchers::new(policy.lens.clone());
        let limit = Duration::from_secs(60);
        let read = transcript::read(&desk.world, places, &lens, policy.lens_key, limit);
        assert!(read.from_cursor);
        assert_eq!(read.facts.tokens.meters.occupied, 61_000);
        assert_eq!(read.facts.tokens.meters.calls, calls as u64 + 1);
        assert_eq!(read.bytes_read, new.to_string().len() as u64 + 1, "the new line and its end");
        read.bytes_read
    };
    assert_eq!(read(20), read(5_000));
}

#[test]
fn status_on_a_long_transcript_does_after_a_warm_cursor_what_it_does_on_a_short_one() {
    let effects = |bytes: usize| {
        let desk = Desk::new();
        let mut text = format!("{}\n", prompt("p1", "Build it."));
        // Lines as long as those with the output of tools.
        let filler = "x".repeat(64 * 1024);
        for number in 0..bytes / filler.len() {
            let mut line = call(&format!("m{number:05}"), 60_000);
            line["message"]["content"][0]["text"] = filler.as_str().into();
            text.push_str(&format!("{line}\n"));
        }
        desk.world.put(path_of("s-1"), &text);
        desk.world.put_folder("/work/.policyd/sessions/s-1");
        assert_eq!(desk.call("context status", "").0, 0);
        desk.world.clear_log();
        let (code, said, _) = desk.call("context status --format json", "");
        assert_eq!(code, 0);
        let calls = serde_json::from_str::<serde_json::Value>(&said).unwrap()["calls"].clone();
        assert_eq!(calls, bytes / filler.len());
        (desk.world.log(), desk.world.bytes_read())
    };
    let ((short, short_bytes), (long, long_bytes)) = (effects(1 << 20), effects(16 << 20));
    assert_eq!(short, long, "the same files, as often");
    // The cursor's own length and the compiled pack are read, and the few bytes that prove the place.
    assert!(long_bytes < short_bytes + 1_024, "{short_bytes} and {long_bytes} bytes are read");
}
