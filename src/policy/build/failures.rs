//! What `failures.yaml` means: classes, the names other programs have for them, and numbers.

use std::time::Duration;

use super::{text, texts};
use crate::policy::builtin;
use crate::policy::layers::{Entry, FAILURES, Layers};
use crate::script::pattern::compile_regex;
use crate::source::Diagnostic;
use crate::source::node::Node;
use crate::state::failure::{Class, Effect, Failures, Label, UNKNOWN};
use crate::state::recovery::{Ladder, Limits};
use crate::state::retry::{Claims, Pause, Retry, Waits};
use crate::state::uncertainty;

/// Lines of a text that are looked at, where the pack does not say: shipwright's number.
const LINES: usize = 200;

/// What the packs say of failures, topmost first.
fn files(layers: &Layers) -> impl Iterator<Item = &Node> {
    layers.top(FAILURES).iter().map(|it| &**it)
}

/// All that the layers say of failures. A key is taken from the topmost layer that has it.
pub(super) fn failures(layers: &Layers, diagnostics: &mut Vec<Diagnostic>) -> Failures {
    let top = |key: &str| files(layers).find_map(|it| it.get(key));
    let classes = layers.section(FAILURES, "classes");
    let known: Vec<&str> = classes.iter().map(|it| it.id.as_str()).collect();
    let must_be_known = |node: &Node, diagnostics: &mut Vec<Diagnostic>| {
        let name = node.text().unwrap_or_default();
        if !known.contains(&name) {
            let message = format!("there is no class of failures `{name}`");
            let found = Diagnostic::error("unknown-name", node.span.clone(), message);
            diagnostics.push(found.with_meant(name, &known));
        }
    };
    if let Some(node) = top("unrecognized") {
        must_be_known(node, diagnostics);
    }
    for layer in files(layers).filter_map(|it| it.get("profiles")?.entries()) {
        for label in layer.iter().filter_map(|(_, labels)| labels.items()).flatten() {
            for class in label.get("classes").and_then(Node::items).unwrap_or_default() {
                must_be_known(class, diagnostics);
            }
        }
    }
    let number = |key: &str| top(key).and_then(Node::int).and_then(|it| usize::try_from(it).ok());
    Failures {
        classes: classes.iter().map(|it| class(it, diagnostics)).collect(),
        unrecognized: top("unrecognized").and_then(Node::text).unwrap_or(UNKNOWN).to_owned(),
        lines: number("lines").unwrap_or(LINES),
        profiles: profiles(layers),
        waits: waits(&Section(layers, "waits")),
        pause: pause(&Section(layers, "pause")),
        recovery: recovery(&Section(layers, "recovery")),
        ladder: ladder(&Section(layers, "ladder")),
        uncertainty: uncertainty(&Section(layers, "uncertainty")),
        claims: Claims {
            silence: Section(layers, "claims").time("silence", Claims::default().silence),
        },
    }
}

/// One section over all layers.
struct Section<'l>(&'l Layers, &'static str);

impl Section<'_> {
    fn get(&self, key: &str) -> Option<&Node> {
        files(self.0).filter_map(|it| it.get(self.1)).find_map(|it| it.get(key))
    }

    fn time(&self, key: &str, default: Duration) -> Duration {
        self.get(key).and_then(Node::duration).unwrap_or(default)
    }

    fn count(&self, key: &str, default: u32) -> u32 {
        count(self.get(key), default)
    }
}

fn count(node: Option<&Node>, default: u32) -> u32 {
    node.and_then(Node::int).and_then(|it| u32::try_from(it).ok()).unwrap_or(default)
}

fn class(entry: &Entry, diagnostics: &mut Vec<Diagnostic>) -> Class {
    for key in ["regexes", "unless"] {
        let regexes = entry.get(key).and_then(Node::items).unwrap_or_default();
        // A test proves those of the built-in pack.
        for node in regexes.iter().filter(|it| !builtin::wrote(&it.span.source)) {
            if let Err(why) = node.text().map_or(Ok(()), |it| compile_regex(it).map(|_| ())) {
                let message = format!("the regex is not valid: {why}");
                diagnostics.push(Diagnostic::error("bad-regex", node.span.clone(), message));
            }
        }
    }
    let flag = |key: &str, default: bool| entry.get(key).and_then(Node::bool).unwrap_or(default);
    Class {
        id: entry.id.clone(),
        errors: texts(entry.get("errors")),
        regexes: texts(entry.get("regexes")),
        unless: texts(entry.get("unless")),
        effect: match text(entry.get("effect")).as_str() {
            "ignore" => Effect::Ignore,
            "permanent" => Effect::Permanent,
            _ => Effect::Trip,
        },
        attempt: flag("attempt", true),
        human: flag("human", false),
        retry: retry(entry.get("retry")),
    }
}

fn retry(node: Option<&Node>) -> Retry {
    retry_or(|key| node.and_then(|it| it.get(key)), Retry::default())
}

/// Numbers of waits that grow; what is not said is as in `default`.
fn retry_or<'n>(get: impl Fn(&str) -> Option<&'n Node>, default: Retry) -> Retry {
    let time = |key: &str, default| get(key).and_then(Node::duration).unwrap_or(default);
    let share = |key: &str, default| get(key).and_then(Node::number).unwrap_or(default);
    let initial = time("initial", default.initial);
    Retry {
        max: count(get("max"), default.max),
        initial,
        multiplier: share("multiplier", default.multiplier),
        // Whoever writes a long first wait and no cap does not mean a shorter one.
        cap: time("cap", default.cap.max(initial)),
        jitter: share("jitter", default.jitter),
    }
}

/// Vocabularies of other programs; a pack's own replaces an inherited one of the same name.
fn profiles(layers: &Layers) -> Vec<(String, Vec<Label>)> {
    let mut profiles: Vec<(String, Vec<Label>)> = Vec::new();
    let entries = files(layers).filter_map(|it| it.get("profiles")?.entries()).flatten();
    for (name, labels) in entries {
        let name = text(Some(name));
        if profiles.iter().all(|(it, _)| *it != name) {
            let labels = labels.items().unwrap_or_default().iter().map(|it| Label {
                name: text(it.get("label")),
                classes: texts(it.get("classes")),
                retry: it.get("retry").map(|it| retry(Some(it))),
            });
            profiles.push((name, labels.collect()));
        }
    }
    profiles
}

fn waits(section: &Section<'_>) -> Waits {
    let default = Waits::default();
    Waits {
        longest: section.time("longest", default.longest),
        margin: section.time("margin", default.margin),
        per_minute: section.time("per_minute", default.per_minute),
        least: section.time("least", default.least),
        most: section.time("most", default.most),
    }
}

fn pause(section: &Section<'_>) -> Pause {
    let default = Pause::default();
    let retry = retry_or(|key| section.get(key), default.retry);
    Pause { after: section.count("after", default.after), retry }
}

fn recovery(section: &Section<'_>) -> Limits {
    let default = Limits::default();
    Limits {
        attempts: section.count("attempts", default.attempts),
        time: section.time("time", default.time),
        cost: section.get("cost").and_then(Node::number),
        repeats: section.count("repeats", default.repeats),
        tier: section.get("tier").and_then(Node::text).map_or(default.tier, str::to_owned),
        crash_lines: section.count("crash_lines", default.crash_lines),
    }
}

fn ladder(section: &Section<'_>) -> Ladder {
    let default = Ladder::default();
    Ladder {
        escalate: section.count("escalate", default.escalate),
        pause: section.count("pause", default.pause),
    }
}

fn uncertainty(section: &Section<'_>) -> uncertainty::Settings {
    let default = uncertainty::Settings::default();
    let ring = section.get("ring").and_then(Node::int).and_then(|it| usize::try_from(it).ok());
    uncertainty::Settings {
        signs: section.count("signs", default.signs),
        rounds: section.count("rounds", default.rounds),
        ring: ring.unwrap_or(default.ring),
    }
}
