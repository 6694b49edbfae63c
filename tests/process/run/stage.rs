//! A simulated machine on which an agent plays its part, and calls of the program on it.

use std::path::Path;
use std::time::Duration;

use policyd::store::user_choices::UserChoiceStore;
use policyd::world::CommandOutput;
use policyd::world::fake::{FakeWorld, Play};
use serde_json::{Value, json};

pub(crate) use crate::support::console::Said;
use crate::support::console::call;
use crate::support::machine::{machine, packed};

/// Where runs are kept.
pub(crate) const RUNS: &str = "/work/.policyd/runs/";

pub(crate) struct Stage {
    pub(crate) world: FakeWorld,
}

impl Said {
    /// The events that were printed, the last one last.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.out.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
    }

    /// Those of one type.
    pub(crate) fn of(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|it| it["type"] == kind).collect()
    }

    /// How it ended.
    pub(crate) fn status(&self) -> String {
        let end = self.of("loop.end").pop().unwrap_or_else(|| panic!("{self:?}"));
        end["status"].as_str().unwrap().to_owned()
    }
}

/// A turn of an agent whose one API call put so many tokens before the model, for so much money.
pub(crate) fn usage(input: u64, output: u64, cost_usd: f64) -> Vec<Play> {
    let usage = json!({"input_tokens": input, "output_tokens": output,
        "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0});
    let call = json!({"type": "assistant", "session_id": "s", "message": {"id": "m", "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "I work."}], "usage": usage}});
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": "I work.",
        "total_cost_usd": cost_usd, "usage": usage});
    vec![Play::Takes(Duration::from_secs(30)), Play::says(call), Play::says(result)]
}

/// A turn that changes something by a tool, and says and does more besides.
pub(crate) fn turn(content: &str, more: Vec<Play>) -> Vec<Play> {
    [changes(content), looks()].into_iter().chain(more).chain(usage(1_000, 100, 0.25)).collect()
}

/// A call of a tool as it stands in the stream.
pub(crate) fn tool(id: &str, name: &str, input: &Value) -> Play {
    Play::says(json!({"type": "assistant", "message": {"id": id, "content": [
        {"type": "tool_use", "id": id, "name": name, "input": input}]}}))
}

/// A tool call that is visible in the client's output.
pub(crate) fn looks() -> Play {
    tool("look", "Read", &json!({"file_path": "/work/a.rs"}))
}

/// A turn that the API refuses.
pub(crate) fn refused(name: &str, text: &str) -> Vec<Play> {
    let call = json!({"type": "assistant", "error": name, "message": {"id": "e", "model": "<synthetic>",
        "content": [{"type": "text", "text": text}]}});
    let result = json!({"type": "result", "subtype": "success", "is_error": true, "result": text});
    vec![
        Play::Takes(Duration::from_secs(1)),
        Play::says(call),
        Play::says(result),
        Play::Ends(Some(1)),
    ]
}

/// The agent creates a signal.
pub(crate) fn signals(name: &'static str) -> Play {
    Play::does(move |world| world.put(format!("/work/.policyd/signals/{name}"), ""))
}

/// The agent changes a file, so that git sees another content.
pub(crate) fn changes(content: impl Into<String>) -> Play {
    let content = content.into();
    Play::does(move |world| git(world, &content))
}

/// What git says from now on.
fn git(world: &FakeWorld, content: &str) {
    let said = |text: &str| {
        Ok(CommandOutput { code: Some(0), stdout: text.into(), stderr: vec![], truncated: false })
    };
    let base = policyd::probe::git::NEUTRAL;
    let answer = |words: &[&str], text: &str| {
        let argv = [&base[..], words].concat();
        world.unscript(&argv);
        world.script(&argv, said(text), Duration::ZERO);
    };
    let none = CommandOutput { code: Some(1), stdout: vec![], stderr: vec![], truncated: false };
    let filters = [&base[..], &["config"]].concat();
    world.unscript(&filters);
    world.script(&filters, Ok(none), Duration::ZERO);
    answer(&["rev-parse"], "c0ffee\nbeef\n");
    answer(&["ls-files"], "");
    if content.is_empty() {
        return answer(&["diff"], "");
    }
    let lines = content.len() * 10;
    world.put("/work/a.rs", (0..lines).map(|it| format!("{content} {it}\n")).collect::<String>());
    answer(&["diff"], &format!(":100644 100644 1 0 M\0a.rs\0{lines}\t0\ta.rs\0"));
}

impl Stage {
    pub(crate) fn new() -> Self {
        let world = machine();
        git(&world, "");
        Self { world }
    }

    /// Lets the user honor the switch files of the project.
    pub(crate) fn honor_switch_files(&self) {
        let store = UserChoiceStore::new(&self.world, Path::new("/work/.policyd"));
        store.change(|it| it.switch_files = true).unwrap();
    }

    /// The same with a file of a pack of its own.
    pub(crate) fn with_pack(self, file: &str, text: &str) -> Self {
        packed(&self.world, file, text);
        self
    }

    /// What the agent does in its next turn, the last one for ever.
    pub(crate) fn play(&self, plays: impl IntoIterator<Item = Play>) -> &Self {
        self.world.play(&["agent"], plays.into_iter().collect());
        self
    }

    pub(crate) fn call(&self, words: &[&str]) -> Said {
        call(&self.world, words, b"")
    }

    /// A run with these options.
    pub(crate) fn run(&self, options: &[&str]) -> Said {
        let words = [
            &["run", "--goal", "Do the thing", "--format", "jsonl"],
            options,
            &["--", "agent", "-p"],
        ];
        self.call(&words.concat())
    }

    pub(crate) fn resume(&self, options: &[&str]) -> Said {
        self.call(&[&["run", "--resume", "--format", "jsonl"], options].concat())
    }

    /// The prompts so far.
    pub(crate) fn prompts(&self) -> Vec<String> {
        let ran = self.world.ran().into_iter().filter(|it| it.argv[0] == "agent");
        ran.map(|it| String::from_utf8(it.stdin).unwrap()).collect()
    }

    /// Names of the files of the runs, without the runs' own names.
    pub(crate) fn kept(&self) -> Vec<String> {
        let files = self.world.files();
        let names = files.iter().filter_map(|it| it.to_str()?.strip_prefix(RUNS));
        names.filter_map(|it| Some(it.split_once('/')?.1.to_owned())).collect()
    }

    /// A file of the last run.
    pub(crate) fn file(&self, name: &str) -> String {
        let files = self.world.files();
        let found = files.iter().rev().find(|it| {
            it.to_str().is_some_and(|it| it.starts_with(RUNS) && it.ends_with(&format!("/{name}")))
        });
        let found = found.unwrap_or_else(|| panic!("no {name} in {:?}", self.kept()));
        String::from_utf8(self.world.get(found).unwrap()).unwrap()
    }

    pub(crate) fn state(&self) -> Value {
        serde_json::from_str(&self.file("state.json")).unwrap()
    }

    /// The log of events, in the order in which they were written.
    pub(crate) fn logged(&self, kind: &str) -> Vec<Value> {
        let bytes = self.world.get("/work/.policyd/logs/events.jsonl").unwrap_or_default();
        let text = String::from_utf8(bytes).unwrap();
        let all = text.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
        all.filter(|it| it["type"] == kind).collect()
    }
}
