//! The program on a simulated machine, called as a person or a script calls it.

use std::time::Duration;

use policyd::time::Timestamp;
use policyd::world::fake::FakeWorld;
use serde_json::Value;

pub(crate) use crate::support::console::Said;
use crate::support::console::call;
use crate::support::machine::{machine, packed};

/// A machine with a project in `/work`.
pub(crate) struct Desk {
    pub(crate) world: FakeWorld,
}

impl Said {
    /// The JSON values of the lines.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::at("2026-01-25T12:00:00Z")
    }

    pub(crate) fn at(now: &str) -> Self {
        let world = machine();
        world.set_now(Timestamp::parse(now).unwrap());
        world.set_env("CLAUDE_PROJECT_DIR", "/work");
        Self { world }
    }

    /// The same with a file of a pack of its own.
    pub(crate) fn with_pack(self, file: &str, text: &str) -> Self {
        packed(&self.world, file, text);
        self
    }

    pub(crate) fn advance(&self, hours: u64) {
        self.world.advance(Duration::from_secs(hours * 3600));
    }

    /// Calls the program with words that hold no blanks, or with those of a list.
    pub(crate) fn call(&self, line: &str) -> Said {
        self.words(&line.split_whitespace().collect::<Vec<_>>())
    }

    pub(crate) fn words(&self, words: &[&str]) -> Said {
        self.run(words, b"")
    }

    pub(crate) fn run(&self, words: &[&str], stdin: &[u8]) -> Said {
        call(&self.world, words, stdin)
    }

    /// A file under the root of our own, as JSON; null where there is none.
    pub(crate) fn file(&self, name: &str) -> Value {
        let bytes = self.world.get(format!("/work/.policyd/{name}")).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or(Value::Null)
    }

    pub(crate) fn put(&self, name: &str, value: &Value) {
        self.world.put(format!("/work/.policyd/{name}"), value.to_string());
    }

    /// The names under a folder of our own.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let folder = format!("/work/.policyd/{folder}/");
        let files = self.world.files();
        let names = files.iter().filter_map(|it| it.to_str()?.strip_prefix(&folder));
        names.filter(|it| !it.starts_with('.')).map(str::to_owned).collect()
    }
}
