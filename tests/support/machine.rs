//! A simulated machine with a project in `/work`, and calls of the program on it as a person, a script or
//! a client makes them.

use policyd::cli::{self, Console};
use policyd::time::Timestamp;
use policyd::world::fake::FakeWorld;

/// What a call said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Ada's machine at noon.
pub(crate) fn machine() -> FakeWorld {
    let world = FakeWorld::new();
    world.set_now(Timestamp::parse("2026-01-25T12:00:00Z").unwrap());
    world.set_env("HOME", "/home/me");
    world.set_env("USER", "ada");
    world.put_folder("/work/.git");
    world
}

/// Gives it a file of a pack of its own.
pub(crate) fn packed(world: &FakeWorld, file: &str, text: &str) {
    world.set_env("POLICYD_POLICIES", "/pack");
    world.put("/pack/policyd.yaml", "version: 1\nextends: [builtin]\n");
    world.put(format!("/pack/{file}"), text);
}

/// Calls the program.
pub(crate) fn call(world: &FakeWorld, words: &[&str], stdin: &[u8]) -> Said {
    let arguments: Vec<_> = ["policyd"].iter().chain(words).map(Into::into).collect();
    let (mut input, mut out, mut err) = (stdin, Vec::new(), Vec::new());
    let mut console = Console {
        stdin: &mut input,
        stdout: &mut out,
        stderr: &mut err,
        terminal: false,
        watched: false,
        typed: false,
    };
    let code = cli::run(world, &mut console, &arguments);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code, out: text(out), err: text(err) }
}
