//! A transcript: read at once or in two goes it gives the same facts, and nothing in it fails. The
//! first byte says where the cut is.

use std::path::Path;
use std::time::Duration;

use policyd::facts::Facts;
use policyd::facts::compiled::CompiledMatchers;
use policyd::facts::cursor::Key;
use policyd::policy::{builtin, load};
use policyd::store::transcript::{Places, keep, read};
use policyd::world::World;
use policyd::world::fake::FakeWorld;

const TRANSCRIPT: &str = "/t/session.jsonl";
const CURSOR: &str = "/t/cursor";

thread_local! {
    static LENS: (CompiledMatchers, Key) = {
        let pack = builtin::pack();
        let policy = load::load(&pack, &pack).policy.expect("the built-in pack loads");
        (CompiledMatchers::new(policy.lens), policy.lens_key)
    };
}

/// Reads what stands there now, from the cursor on where there is one.
fn go_on(world: &FakeWorld, bytes: &[u8]) -> Facts {
    world.write(Path::new(TRANSCRIPT), bytes).expect("a simulated file can be written");
    let cursor = Some(Path::new(CURSOR));
    let places = Places { transcript: Path::new(TRANSCRIPT), cursor, subagent: false };
    LENS.with(|(lens, key)| {
        let reading = read(world, places, lens, *key, Duration::from_secs(1_000));
        reading.cursor.iter().for_each(|it| keep(world, Path::new(CURSOR), it));
        reading.facts
    })
}

pub(super) fn run(data: &[u8]) {
    let Some((first, bytes)) = data.split_first() else { return };
    let world = || {
        let world = FakeWorld::new();
        world.put_folder("/t");
        world
    };
    let at_once = go_on(&world(), bytes);
    let cut = bytes.len() * usize::from(*first) / 255;
    let growing = world();
    go_on(&growing, bytes.get(..cut).unwrap_or_default());
    assert_eq!(go_on(&growing, bytes), at_once, "cut at {cut} of {}", bytes.len());
}
