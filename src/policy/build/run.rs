//! Turns the layers of `run.yaml` into meaning.

use std::time::Duration;

use super::super::layers::Layers;
use super::super::records;
use super::super::run::{RunPolicy, Section};
use super::{Builder, texts};
use crate::source::node::Node;
use crate::state::retry::Pause;
use crate::state::run::iterations::Extension;
use crate::state::run::{Limits, UnseenChanges, stuckness};

const FILE: &str = "run.yaml";
const MINUTE: Duration = Duration::from_secs(60);

/// One key over all layers, the topmost that has it.
struct Top<'l>(&'l Layers);

impl Top<'_> {
    fn files(&self) -> impl Iterator<Item = &Node> {
        self.0.top(FILE).iter().map(|it| &**it)
    }

    fn get(&self, key: &str) -> Option<&Node> {
        self.files().find_map(|it| it.get(key)).filter(|it| !it.is_null())
    }

    fn part(&self, section: &str, key: &str) -> Option<&Node> {
        self.files().filter_map(|it| it.get(section)).find_map(|it| it.get(key))
    }

    fn count(&self, section: &str, key: &str, default: u32) -> u32 {
        let found = self.part(section, key).and_then(Node::int);
        found.and_then(|it| u32::try_from(it).ok()).unwrap_or(default)
    }

    fn time(&self, section: &str, key: &str, default: Duration) -> Duration {
        self.part(section, key).and_then(Node::duration).unwrap_or(default)
    }
}

impl Builder<'_> {
    /// What `run.yaml` means.
    pub(super) fn run(&mut self, layers: &Layers, pause: Pause) -> RunPolicy {
        let top = Top(layers);
        let prompt = self.section(layers, (FILE, "prompt"), &["text"], |it, entry, when| {
            Some(Section { id: entry.id.clone(), when, text: it.template(entry.get("text")?)? })
        });
        let breaker = self.speaking_of(records::names(FILE, ""), |it| {
            top.get("breaker").and_then(|node| it.template(node)).unwrap_or_default()
        });
        let keep = top.get("keep").and_then(Node::int).and_then(|it| usize::try_from(it).ok());
        RunPolicy {
            limits: limits(&top, pause),
            deadline: top.time("turn", "longest", MINUTE * 60),
            silence: top.time("turn", "silence", MINUTE * 30),
            grace: top.time("turn", "grace", Duration::from_secs(5)),
            breaker,
            claims: match top.get("claims") {
                Some(node) => texts(Some(node)),
                None => vec!["signal".to_owned()],
            },
            keep: keep.unwrap_or(20),
            prompt,
        }
    }
}

fn limits(top: &Top<'_>, pause: Pause) -> Limits {
    let default = stuckness::Settings::default();
    let count = |key: &str, default| top.count("stuckness", key, default);
    Limits {
        iterations: top.count("iterations", "max", 50),
        extension: Extension {
            times: top.count("iterations", "extend", 0),
            turns: top.count("iterations", "extend_by", 5),
        },
        restarts: top.count("restarts", "max", 3),
        budget_usd: top.part("budget", "usd").and_then(Node::number),
        warn_percent: top.count("budget", "warn", 80),
        time: top.get("time").and_then(Node::duration),
        idle: count("idle", 3),
        aborts: count("aborts", 3),
        breaker_wait: top.get("breaker_wait").and_then(Node::duration).unwrap_or(MINUTE * 10),
        stuckness: stuckness::Settings {
            signs: count("signs", default.signs),
            rounds: count("rounds", default.rounds),
            window: count("window", default.window),
            lines: count("lines", default.lines),
            words_percent: count("words", default.words_percent),
            budget_percent: count("budget", default.budget_percent),
        },
        restart_when_stuck: top.part("restarts", "when_stuck").and_then(Node::bool).unwrap_or(true),
        wait_for_human: top.get("on_review").and_then(Node::text) == Some("wait"),
        unseen_changes: UnseenChanges::find(
            top.get("unseen_changes").and_then(Node::text).unwrap_or_default(),
        ),
        pause,
    }
}
