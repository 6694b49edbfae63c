//! Ordinary sessions and runs of commands, written before the rules that judge them: is the stop blocked?
//!
//! The files `held_back.yaml` contain a third of each list. They measure whether the rules are general: do not
//! read them while the rules change. `POLICYD_HELD_BACK=1` prints their misjudged entries.
//!
//! An entry with the key `miss` is misjudged today, and the key says why. The test fails if such an entry is
//! judged correctly, too.

mod player;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use player::Player;
use policyd::source::Source;
use policyd::source::yaml;
use serde_json::Value;

use crate::support::shared;

/// A stop that is not blocked.
const NOT_BLOCKED: &str = "not blocked";
/// A stop that is blocked because a run failed.
const FAILED: &str = "blocked: the test run failed";
/// A stop that is blocked because no run is known.
const NO_TEST: &str = "blocked: no test was run";
/// Text of a block without a known run.
const NO_TEST_TEXT: &str = "no test was run";

/// Characters of a line of output that a block quotes at least.
const QUOTED_CHARS: usize = 40;

/// An entry of a list and where it is from.
struct Entry {
    value: Value,
    held_back: bool,
}

/// How an entry was judged.
struct Judged {
    name: String,
    held_back: bool,
    right: bool,
    /// Whether the entry is known to be misjudged.
    known_miss: bool,
    /// Whether a stop that must pass was blocked.
    false_block: bool,
    /// Whether a stop that must be blocked passed.
    missed: bool,
    expected: String,
    got: String,
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let surprise = if self.known_miss && self.right { " (remove `miss`)" } else { "" };
        write!(f, "{}: expected {}, got {}{surprise}", self.name, self.expected, self.got)
    }
}

/// The entries of the files in a directory beside this file.
fn own(list: &str) -> Vec<Entry> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/policies/stops").join(list);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    files.iter().flat_map(|path| read(path)).collect()
}

fn read(path: &Path) -> Vec<Entry> {
    let held_back = path.file_stem().is_some_and(|it| it == "held_back");
    let text = std::fs::read_to_string(path).unwrap();
    let source = Arc::new(Source { name: path.display().to_string(), text });
    let (node, findings) = yaml::parse(&source);
    assert!(findings.is_empty(), "{}: {findings:?}", path.display());
    let Value::Array(entries) = node.unwrap().json() else {
        panic!("{} is a list", path.display())
    };
    entries.into_iter().map(|value| Entry { value, held_back }).collect()
}

/// The entries of a file beside the project. `None` if it is absent.
fn from_shared(file: &str) -> Option<Vec<Entry>> {
    let cases = shared::cases(file)?;
    Some(cases.into_iter().map(|value| Entry { value, held_back: false }).collect())
}

/// Whether a block is of the expected kind. The block for a failed run quotes a line of its output.
fn is_right(expected: &str, blocked: Option<&str>, output: &str) -> bool {
    let found = blocked.map(findings).unwrap_or_default();
    let quotes = |reason: &str| {
        output.lines().map(str::trim).any(|it| !it.is_empty() && reason.contains(beginning(it)))
    };
    match expected {
        "either" => true,
        NOT_BLOCKED => blocked.is_none(),
        "block" | "blocked" => blocked.is_some(),
        FAILED => {
            found.contains("failed") && !found.contains(NO_TEST_TEXT) && blocked.is_some_and(quotes)
        }
        NO_TEST => blocked.is_some() && !found.contains("run failed"),
        other => panic!("unknown expectation: {other}"),
    }
}

/// The findings of a block without their evidence, in one line.
fn findings(reason: &str) -> String {
    let found = reason.lines().filter_map(|it| it.strip_prefix("- "));
    found.collect::<Vec<_>>().join("; ")
}

/// The part of a line of output that a block quotes at least.
fn beginning(line: &str) -> &str {
    let end = line.char_indices().nth(QUOTED_CHARS).map_or(line.len(), |(at, _)| at);
    line.get(..end).unwrap_or(line)
}

/// What the stop did, in one line.
fn in_short(blocked: Option<&str>) -> String {
    blocked.map_or_else(|| "no block".to_owned(), |it| format!("block ({})", findings(it)))
}

fn judged(entry: &Entry, name: &str, blocked: Option<&str>) -> Judged {
    let it = &entry.value;
    let expected = it["expect"].as_str().unwrap();
    let output = it["output"].as_str().unwrap_or_default();
    let right = is_right(expected, blocked, output);
    Judged {
        name: name.to_owned(),
        held_back: entry.held_back,
        right,
        known_miss: it["miss"].is_string(),
        false_block: expected == NOT_BLOCKED && !right,
        missed: expected.starts_with("block") && blocked.is_none(),
        expected: expected.to_owned(),
        got: in_short(blocked),
    }
}

/// Plays a session to its last stop.
fn session(entry: &Entry) -> Judged {
    let it = &entry.value;
    let name = it["name"].as_str().unwrap();
    let mut player = Player::new(it.get("files"), it["attended"] != false, true);
    it["steps"].as_array().unwrap().iter().for_each(|step| player.step(step));
    judged(entry, name, player.stop().as_deref())
}

/// Plays an edit, a run of the command, and the claim that the tests pass.
fn command(entry: &Entry) -> Judged {
    let it = &entry.value;
    let command = it["command"].as_str().unwrap();
    let (code, output) = (it["exit_code"].as_i64().unwrap_or(0), it["output"].as_str());
    let mut player = Player::new(None, true, false);
    for step in [
        serde_json::json!(["user", "Fix the bug in add()"]),
        serde_json::json!(["edit", "src/a.ts", "return x + y", "return x - y"]),
        serde_json::json!(["bash", command, output.unwrap_or_default(), code]),
        serde_json::json!(["say", "I fixed add(). The tests pass."]),
    ] {
        player.step(&step);
    }
    let name = format!("`{}` (exit code {code})", command.replace('\n', "\\n"));
    judged(entry, &name, player.stop().as_deref())
}

/// Prints rates for the shown part and the part that is held back, and the misjudged entries of the
/// former. Fails if an entry is misjudged, or a known miss is not.
fn assess(list: &str, entries: &[Entry], judge: fn(&Entry) -> Judged) {
    let all: Vec<Judged> = entries.iter().map(judge).collect();
    let shows_all = std::env::var_os("POLICYD_HELD_BACK").is_some_and(|it| it == "1");
    for (part, held_back) in [("shown", false), ("held back", true)] {
        let part_of: Vec<_> = all.iter().filter(|it| it.held_back == held_back).collect();
        if part_of.is_empty() {
            continue;
        }
        for it in part_of.iter().filter(|it| it.right == it.known_miss) {
            if !held_back || shows_all {
                println!("{list}, {part}: {it}");
            }
        }
        let count = |is: fn(&Judged) -> bool| part_of.iter().filter(|it| is(it)).count();
        let passing = count(|it| it.expected == NOT_BLOCKED);
        let blocking = count(|it| it.expected.starts_with("block"));
        println!(
            "{list}, {part}: {} of {} misjudged; false blocks: {} of {passing}; missed: {} of \
             {blocking}; other cause: {}; known misses: {}",
            count(|it| !it.right),
            part_of.len(),
            count(|it| it.false_block),
            count(|it| it.missed),
            count(|it| !it.right && !it.false_block && !it.missed),
            count(|it| it.known_miss),
        );
    }
    let wrong = all.iter().filter(|it| it.right == it.known_miss).count();
    assert_eq!(wrong, 0, "{list}: misjudged entries; their lines are above");
}

#[test]
fn ordinary_sessions_are_judged_correctly() {
    let entries = own("sessions");
    assert!(entries.len() >= 120, "{}", entries.len());
    assess("sessions", &entries, session);
}

#[test]
fn runs_of_commands_are_judged_correctly() {
    let entries = own("commands");
    assert!(entries.len() >= 250, "{}", entries.len());
    assess("commands", &entries, command);
}

#[test]
fn shared_sessions_are_judged_correctly() {
    let Some(entries) = from_shared("stop_sessions.json") else { return };
    assess("shared sessions", &entries, session);
}

#[test]
fn shared_runs_of_commands_are_judged_correctly() {
    let Some(entries) = from_shared("test_commands.json") else { return };
    assess("shared commands", &entries, command);
}
