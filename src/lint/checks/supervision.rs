//! Checks of `context.yaml` and `run.yaml`: numbers that contradict each other or have no effect.

use crate::subject::PackEntry;
use crate::{Findings, Subject};
use policyd_fact_table::template::{TemplatePart, pieces};
use policyd_facts::glob::{specificity, word_matches};
use policyd_policy::context::ContextRules;
use policyd_policy::run::RunPolicy;
use policyd_state::context::{ACT, MeterKind};
use policyd_state::run::stuckness::{KEPT, SIGNS};
use policyd_yaml::node::Node;
use policyd_yaml::time::duration_text;

/// The file about contexts.
const FILE: &str = "context.yaml";

pub(crate) fn context_contradiction(subject: &Subject<'_>, out: &mut Findings) {
    let Some(file) = subject.file(FILE) else { return };
    let rules = subject.reviewed.meant.context();
    tiers(file, rules, out);
    never_left(file, rules, out);
    moved_tiers(subject, rules, out);
    models(file, out);
    windows(file, out);
    let plain = rules.window;
    for (name, value) in file.get("variants").and_then(Node::entries).unwrap_or_default() {
        let window = value.int().and_then(|it| u64::try_from(it).ok()).unwrap_or(u64::MAX);
        if window <= plain {
            let name = name.text().unwrap_or_default();
            let message =
                format!("the variant `{name}` is not larger than the standard window of {plain}");
            out.help(value.span.clone(), message, "write the larger window of the variant");
        }
    }
}

fn tiers(file: &Node, rules: &ContextRules, out: &mut Findings) {
    let settings = &rules.settings;
    let written = file.get("tiers").and_then(Node::items).unwrap_or_default();
    for tier in written {
        let id = tier.get("id").and_then(Node::text).unwrap_or_default();
        let Some(node) = tier.get("at") else { continue };
        let at = node.number().unwrap_or_default();
        if settings.measured == MeterKind::Occupancy && at > 100.0 {
            let message = format!("`{id}` is at {at}%, but the context never exceeds 100%");
            let help = "write at most 100, or measure spent tokens (`meter: cumulative`)";
            out.help(node.span.clone(), message, help);
        } else if at <= settings.hysteresis {
            let held = settings.hysteresis;
            let message = format!("`{id}` is at {at}%, within the hysteresis of {held} points");
            let help = "the tier is never left: set it above `hysteresis`";
            out.help(node.span.clone(), message, help);
        }
    }
    for pair in written.windows(2) {
        let at = |it: &Node| it.get("at").and_then(Node::number);
        if let [first, second] = pair
            && let (Some(one), Some(other), Some(node)) = (at(first), at(second), second.get("at"))
            && other < one
        {
            let message = format!("the tier at {other}% follows a tier at {one}%");
            out.help(node.span.clone(), message, "sort the tiers in ascending order");
        }
    }
    if let Some(node) = file.get("tiers").filter(|_| settings.at(ACT).is_none()) {
        let message = format!("the tier `{ACT}` is missing, so a full context has no effect");
        out.help(node.span.clone(), message, "add a tier with this id");
    }
}

/// Reports inherited tiers that the `hysteresis` of the pack keeps until the context is compacted.
fn never_left(file: &Node, rules: &ContextRules, out: &mut Findings) {
    let Some(node) = file.get("hysteresis") else { return };
    let written = file.get("tiers").and_then(Node::items).unwrap_or_default();
    let moved = |id: &str| {
        let own = written.iter().find(|it| it.get("id").is_some_and(|it| it.says(id)));
        own.is_some_and(|it| it.get("at").is_some())
    };
    let held = rules.settings.hysteresis;
    let kept = rules.settings.tiers.iter().filter(|it| it.at <= held && !moved(&it.id));
    let kept: Vec<String> = kept.map(|it| format!("`{}` at {}%", it.id, it.at)).collect();
    if !kept.is_empty() {
        let message =
            format!("`hysteresis` is {held}: only a compaction resets {}", kept.join(", "));
        let help = "set it below the lowest tier";
        out.help(node.span.clone(), message, help);
    }
}

/// Tiers of a pack below that an override puts on the other side of one another.
fn moved_tiers(subject: &Subject<'_>, rules: &ContextRules, out: &mut Findings) {
    let order: Vec<&str> = subject.reviewed.meant.ids(FILE, "tiers").collect();
    let place = |id: &str| order.iter().position(|it| *it == id);
    // In which order the pack writes its own is looked at above.
    let own = |id: &str| subject.of(FILE).any(|it| it.name() == id);
    for entry in subject.of(FILE).filter(|it| subject.inherited(it).is_some()) {
        let Some(node) = entry.node.get("at") else { continue };
        let (name, at) = (entry.name(), node.number().unwrap_or_default());
        if at <= rules.settings.hysteresis {
            continue; // `tiers` reports it.
        }
        let passed = rules.settings.tiers.iter().find(|other| {
            let was_below = place(name) < place(&other.id);
            !own(&other.id) && ((was_below && at > other.at) || (!was_below && at < other.at))
        });
        if let Some(other) = passed {
            let side = if at > other.at { "above" } else { "below" };
            let message = format!("`{name}` is at {at}%, {side} `{}` at {}%", other.id, other.at);
            let help = "keep the order of the tiers: move the other one, too";
            out.help(node.span.clone(), message, help);
        }
    }
}

/// Fewer tokens than any model holds.
const WINDOW_MIN: i64 = 1_000;

fn windows(file: &Node, out: &mut Findings) {
    let models = file.get("models").and_then(Node::entries).unwrap_or_default();
    let variants = file.get("variants").and_then(Node::entries).unwrap_or_default();
    let of_models = models.iter().filter_map(|(_, it)| it.get("window"));
    let all =
        file.get("window").into_iter().chain(of_models).chain(variants.iter().map(|(_, it)| it));
    for node in all {
        let Some(tokens) = node.int().filter(|it| *it < WINDOW_MIN) else { continue };
        let message = format!("no model has a window of {tokens} tokens");
        let fix =
            node.unquoted(&format!("{tokens}000")).because(&format!(" for {tokens} thousand"));
        out.help(node.span.clone(), message, fix);
    }
}

fn models(file: &Node, out: &mut Findings) {
    let all = file.get("models").and_then(Node::entries).unwrap_or_default();
    for (at, (name, model)) in all.iter().enumerate() {
        let glob = name.text().unwrap_or_default();
        // Both globs match a name, and neither is more specific.
        let same = |other: &str| {
            let names = [glob, other].map(|it| it.replace(['*', '?'], ""));
            specificity(glob) == specificity(other)
                && names.iter().any(|it| word_matches(glob, it) && word_matches(other, it))
        };
        let before = all.iter().take(at).filter_map(|(it, _)| it.text());
        if let Some(other) = before.into_iter().find(|it| *it != glob && same(it)) {
            let message =
                format!("`{glob}` and `{other}` match the same models and are equally long");
            out.help(name.span.clone(), message, "make the preferred glob longer");
        }
        let price = |key: &str| Some((model.get(key)?, model.get(key)?.number()?));
        let Some((_, input)) = price("input") else {
            let odd = ["output", "cache_read", "cache_write"].into_iter().find_map(price);
            if let Some((node, _)) = odd {
                let message = format!("`{glob}` has a price but no input price");
                out.help(
                    node.span.clone(),
                    message,
                    "add `input`: without it, no cost is computed",
                );
            }
            continue;
        };
        for (key, dear) in [("output", false), ("cache_read", true)] {
            let Some((node, value)) = price(key) else { continue };
            if (value > input) == dear && (value - input).abs() > f64::EPSILON {
                let much = if dear { "more" } else { "less" };
                let message = format!("`{key}` of `{glob}` costs {much} than its input");
                out.help(node.span.clone(), message, "check whether the two prices are swapped");
            }
        }
    }
}

pub(crate) fn signal_contradiction(subject: &Subject<'_>, out: &mut Findings) {
    let signals = subject.file("signals.yaml").and_then(|it| it.get("signals")?.items());
    let signals = signals.unwrap_or_default();
    for entry in subject.of("signals.yaml").filter(|it| !it.is("enabled", false)) {
        let own = |keys: [&str; 2]| keys.into_iter().find_map(|it| entry.node.get(it));
        let time = |key: &str| subject.said(entry, key).and_then(Node::duration);
        let (answered, expires) = (time("answer_within"), time("expires"));
        if let Some((answered, expires)) = answered.zip(expires).filter(|(one, other)| other < one)
            && let Some(node) = own(["expires", "answer_within"])
        {
            let (answered, expires) = (duration_text(answered), duration_text(expires));
            let message = format!("it expires after {expires}, before its deadline of {answered}");
            out.add(node.span.clone(), message, |it| {
                it.with_note("the action for a missing answer never runs")
                    .with_help("set `expires` to more than `answer_within`")
            });
        }
        if let Some(node) = entry.node.get("on_timeout").filter(|_| answered.is_none()) {
            let message = "`on_timeout` has no effect without a deadline";
            out.help(node.span.clone(), message, "add `answer_within`");
        }
        let shown = subject.said(entry, "shown").and_then(Node::bool) == Some(true);
        // What a drift leads to is always said.
        let is_signal = signals.iter().any(|it| std::ptr::eq(it, entry.node));
        if let Some(node) = entry.node.get("text").filter(|_| is_signal && !shown) {
            let message = "this text is never used: the signal is not shown";
            out.help(node.span.clone(), message, "write `shown: true`, or remove the text");
        }
        if let Some(node) = entry.node.get("approves").filter(|it| it.says(entry.name())) {
            let message = "a signal cannot approve itself";
            out.help(node.span.clone(), message, "write the signal of the request");
        }
    }
}

/// A key of a section that says something odd: whether it does, what that leads to, what to do.
type Odd = (&'static str, &'static str, bool, String, &'static str);

pub(crate) fn run_contradiction(subject: &Subject<'_>, out: &mut Findings) {
    let Some(file) = subject.file("run.yaml") else { return };
    let run = subject.reviewed.meant.run();
    let odd = limits(run).into_iter().chain(turn(run)).chain(stuckness(run));
    for (section, key, _, effect, help) in odd.filter(|it| it.2) {
        if let Some(node) = file.get(section).and_then(|it| it.get(key)) {
            let value = node.text().unwrap_or_default();
            out.help(node.span.clone(), format!("`{key}` is {value}: {effect}"), help);
        }
    }
    longer_than_all(file, run, out);
    if let Some(node) = file.get("claims").filter(|it| it.items().is_some_and(<[_]>::is_empty)) {
        let message = "the agent cannot report completion, so a run never completes";
        out.help(node.span.clone(), message, "add one, or remove the key");
    }
}

/// A turn that may last longer than all of them together: the time is looked at where one has ended.
fn longer_than_all(file: &Node, run: &RunPolicy, out: &mut Findings) {
    let turn = || file.get("turn").and_then(|it| it.get("longest"));
    let time = run.limits.time.filter(|it| !it.is_zero() && *it < run.deadline);
    if let (Some(time), Some(node)) = (time, file.get("time").or_else(turn)) {
        let (time, longest) = (duration_text(time), duration_text(run.deadline));
        let message = format!("`time` is {time}, but a turn can last {longest}");
        out.add(node.span.clone(), message, |it| {
            it.with_note("policyd checks `time` only between turns")
                .with_help(format!("write `turn: {{longest: {time}}}`, or less"))
        });
    }
}

pub(crate) fn goal_missing_from_prompt(subject: &Subject<'_>, out: &mut Findings) {
    if !out.is_strict() {
        return;
    }
    const FILE: &str = "run.yaml";
    let tells = |it: &TemplatePart<'_>| match it {
        TemplatePart::Hole { expression, .. } => expression.replace(' ', "").contains("run.goal"),
        TemplatePart::Text(_) => false,
    };
    let names_goal = |it: &str| pieces(it).is_ok_and(|all| all.iter().any(tells));
    if subject.file(FILE).is_none() || subject.reviewed.meant.prompt_parts().any(names_goal) {
        return;
    }
    let told_it = |it: &&PackEntry<'_>| {
        let before = subject.inherited(it).and_then(|it| it.get("text")?.text());
        before.is_some_and(names_goal)
    };
    let entry = subject.of(FILE).find(told_it).or_else(|| subject.of(FILE).next());
    if let Some(entry) = entry {
        out.add(entry.id.span.clone(), "no part of the prompt contains the goal", |it| {
            it.with_note(
                "the argument of `policyd run --goal` reaches the agent only through the prompt",
            )
            .with_help("add `${run.goal}` to one of the parts")
        });
    }
}

fn limits(run: &RunPolicy) -> [Odd; 4] {
    let (limits, extension) = (&run.limits, run.limits.extension);
    let no_turns = extension.times > 0 && extension.turns == 0;
    let none_left = limits.restart_when_stuck && limits.restarts == 0;
    let spent = limits.budget_usd.is_some_and(|it| it <= 0.0);
    let says = str::to_owned;
    [
        (
            "iterations",
            "max",
            limits.iterations == 0,
            says("the run has no turns"),
            "raise the value",
        ),
        (
            "iterations",
            "extend_by",
            no_turns,
            says("an extension adds no turns"),
            "raise the value",
        ),
        (
            "restarts",
            "when_stuck",
            none_left,
            says("fresh sessions are enabled, but `max` permits none"),
            "raise `max`, or write `false`",
        ),
        (
            "budget",
            "usd",
            spent,
            says("the budget is spent before the first turn"),
            "raise the value",
        ),
    ]
}

fn turn(run: &RunPolicy) -> [Odd; 3] {
    let longest = duration_text(run.deadline);
    let ends = format!("a turn of {longest} ends before it");
    let help = "set it below `longest`";
    [
        (
            "turn",
            "longest",
            run.deadline.is_zero(),
            "turns have no time".to_owned(),
            "raise the value",
        ),
        ("turn", "silence", run.silence >= run.deadline, ends.clone(), help),
        ("turn", "grace", run.grace >= run.deadline, ends, help),
    ]
}

fn stuckness(run: &RunPolicy) -> [Odd; 5] {
    const PART: &str = "stuckness";
    let (limits, stuck) = (&run.limits, &run.limits.stuckness);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let turns = limits.iterations;
    let has = format!("a run has {turns} turns");
    let fewer = "write at most `iterations.max`";
    let signs = format!("only {SIGNS} signals exist, so detection never triggers");
    let window = format!("only {KEPT} turns are recorded, so the window is never full");
    [
        (PART, "signs", stuck.signs > number(SIGNS), signs, "lower the value"),
        (PART, "window", stuck.window > number(KEPT), window, "lower the value"),
        (PART, "rounds", stuck.rounds > turns, has.clone(), fewer),
        (PART, "idle", limits.idle > turns, has.clone(), fewer),
        (PART, "aborts", limits.aborts > turns, has, fewer),
    ]
}
