//! However long a transcript is: what is kept of it has a bound, and a warm cursor reads what is new.

use std::path::Path;
use std::time::Duration;

use policyd::facts::Facts;
use policyd::facts::compiled::CompiledLens;
use policyd::facts::cursor::{Key, Position, encode};
use policyd::facts::lens::Lens;
use policyd::policy::{builtin, load};
use policyd::store::transcript::{self, Places};

use policyd::world::World;

use crate::status::{Desk, call, prompt, transcript as path_of};

/// Bytes of a cursor after so many calls of the model, a prompt before every tenth.
fn kept(calls: u64) -> usize {
    let (mut facts, lens) = (Facts::default(), CompiledLens::new(Lens::default()));
    for number in 0..calls {
        if number % 10 == 0 {
            facts.absorb(prompt(&format!("p{number:06}"), "Go on.").to_string().as_bytes(), &lens);
        }
        let line = call(&format!("m{number:06}"), 50_000 + number % 1_000).to_string();
        facts.absorb(line.as_bytes(), &lens);
    }
    assert_eq!(facts.tokens.meters.calls, calls);
    encode(&Position::default(), &facts, Key::of(&Lens::default())).unwrap().len()
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
        let lens = CompiledLens::new(policy.lens.clone());
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
