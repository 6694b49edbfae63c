//! `failures.yaml`: classes of failures, their names in other programs, and the numbers of retries.
//!
//! A failure belongs to the class of the name that a hook gives it, else to the class whose regular expressions
//! match its text.

use std::time::Duration;

use super::Policy;
use super::builder::{Builder, text};
use super::field_value::words;
use super::fields::{DESCRIPTION, OVERRIDE, REGEX_LIST, TEXTS};
use super::layers::Layers;
use super::record::{Conversion, REGEXES, record, words};
use policyd_fact_table::pattern::prose_regex;
use policyd_state::failure::{Class, FailureEffect, Failures, Label};
use policyd_state::recovery::RecoveryLimits;
use policyd_state::retry::Retry;
use policyd_yaml::layered_map::LayeredMap;
use policyd_yaml::node::Node;
use policyd_yaml::shape::Kind;
use policyd_yaml::time::{Timestamp, duration_text};

const FILE: &str = "failures.yaml";
const COUNT: Kind = Kind::Int { min: 1, max: 1000 };
const FEW: Kind = Kind::Int { min: 1, max: 100 };

/// What a failure was found to be.
#[derive(Debug, Clone, PartialEq)]
pub struct FailureClassification {
    /// The class that matched, else the class for unrecognized failures.
    pub class: Class,
    /// What another program calls it; the id of the class, where none was asked for.
    pub label: String,
    /// When it is tried again.
    pub retry: Retry,
    /// What decided.
    pub by: ClassificationBasis,
}

/// What decided of which class a failure is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClassificationBasis {
    /// The name that a hook or program gave it.
    Name(String),
    /// A regex, and the line it was found in.
    Words {
        /// The regex as the pack has it.
        regex: String,
        /// The line.
        line: String,
    },
    /// Nothing: no class knows the name or the text.
    Nothing,
}

impl Policy {
    /// What a failure is: by its name where a class has it, else by the words of the text.
    #[must_use]
    pub fn classify(&self, error: &str, text: &str) -> FailureClassification {
        self.failures.classify(&[], error, text)
    }
}

/// Values that templates of a wait can use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryContext {
    /// Now.
    pub now: Timestamp,
    /// The wait until the time of day at which a limit is reset, where the text names one.
    pub until_reset: Option<Duration>,
    /// Number of the next attempt, from 1.
    pub attempt: u32,
    /// Requests that the provider allows per minute, where known.
    pub requests_per_minute: Option<u32>,
    /// Between 0 and 1; what chance takes off a wait.
    pub chance: f64,
}

/// Classes of `failures.yaml`, applied to texts.
pub trait FailureClassifier {
    /// The vocabulary of another program.
    fn profile(&self, name: &str) -> Option<&[Label]>;

    /// What a failure is in the words of a profile, whose first label that fits wins. Without one
    /// the first class that fits wins.
    fn classify(&self, profile: &[Label], error: &str, text: &str) -> FailureClassification;

    /// The class with this id.
    fn class(&self, id: &str) -> Option<&Class>;

    /// Whether a program that ended so should not be called again at once: its output has the words
    /// of a class that the profile names, or it failed and said nearly nothing.
    fn is_fatal(
        &self,
        profile: &[Label],
        output: &str,
        exit_code: i64,
        limits: &RecoveryLimits,
    ) -> bool;

    /// How long to wait before the next attempt, and why; nothing where there should be none.
    fn wait(
        &self,
        it: &FailureClassification,
        text: &str,
        at: &RetryContext,
    ) -> Option<(Duration, String)>;
}

impl FailureClassifier for Failures {
    fn profile(&self, name: &str) -> Option<&[Label]> {
        let found = self.profiles.iter().find(|(it, _)| it == name);
        found.map(|(_, labels)| labels.as_slice())
    }

    fn classify(&self, profile: &[Label], error: &str, text: &str) -> FailureClassification {
        let named = self.classes.iter().find(|it| it.errors.iter().any(|name| name == error));
        if let Some(class) = named.filter(|_| !error.is_empty()) {
            return labeled(class.clone(), profile, ClassificationBasis::Name(error.to_owned()));
        }
        let text = last_lines(text, self.lines);
        let of_label = |label: &'_ Label| {
            let classes = label.classes.iter().filter_map(|id| self.class(id));
            let mut hits = classes.filter_map(|it| Some((it, found(it, text)?)));
            let (class, by) = hits.next()?;
            Some(labeled(class.clone(), std::slice::from_ref(label), by))
        };
        let hit = if profile.is_empty() {
            let mut hits = self.classes.iter().filter_map(|it| Some((it, found(it, text)?)));
            hits.next().map(|(class, by)| labeled(class.clone(), &[], by))
        } else {
            profile.iter().find_map(of_label)
        };
        hit.unwrap_or_else(|| {
            let class = self.class(&self.unrecognized).cloned().unwrap_or_default();
            labeled(class, profile, ClassificationBasis::Nothing)
        })
    }

    fn class(&self, id: &str) -> Option<&Class> {
        self.classes.iter().find(|it| it.id == id)
    }

    fn is_fatal(
        &self,
        profile: &[Label],
        output: &str,
        exit_code: i64,
        limits: &RecoveryLimits,
    ) -> bool {
        let told = self.classify(profile, "", output);
        let named = profile.iter().flat_map(|it| &it.classes).any(|it| *it == told.class.id);
        let lines = output.lines().filter(|it| !it.trim().is_empty()).count();
        let few = u32::try_from(lines).is_ok_and(|it| it < limits.crash_lines);
        (named && told.by != ClassificationBasis::Nothing) || (exit_code != 0 && few)
    }

    fn wait(
        &self,
        it: &FailureClassification,
        text: &str,
        at: &RetryContext,
    ) -> Option<(Duration, String)> {
        if it.is_permanent() || at.attempt > it.retry.max {
            return None;
        }
        let waits = &self.waits;
        if let Some(wait) = waits.retry_after(text, at.now) {
            return Some((wait, "the server says so".to_owned()));
        }
        if let Some(wait) = at.until_reset {
            let margin = duration_text(waits.reset_margin);
            return Some((wait, format!("the limit is reset then, and {margin} more")));
        }
        if let Some(requests) = at.requests_per_minute {
            let wait = waits.by_requests_per_minute(requests);
            return Some((wait, format!("{requests} requests per minute are allowed")));
        }
        let (number, most) = (at.attempt, it.retry.max);
        let why = format!("attempt {number} of {most} after `{}`", it.label);
        Some((it.retry.wait(number, at.chance), why))
    }
}

impl FailureClassification {
    /// Its name in a history of failures. That a build failed says its exit code alone.
    #[must_use]
    pub fn signature(&self, exit_code: Option<i64>) -> &str {
        let failed = exit_code.is_some_and(|it| it != 0) && self.by == ClassificationBasis::Nothing;
        if failed { "build_failure" } else { &self.class.id }
    }

    /// Whether the same call fails again, whenever it is made.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.class.effect == FailureEffect::Permanent
    }
}

/// A class under the name that a profile has for it.
fn labeled(class: Class, profile: &[Label], by: ClassificationBasis) -> FailureClassification {
    let label = profile.iter().find(|it| it.classes.contains(&class.id));
    let name = label.map_or(&class.id, |it| &it.name).clone();
    let retry = label.and_then(|it| it.retry).unwrap_or(class.retry);
    FailureClassification { class, label: name, retry, by }
}

/// Returns the line that a class matches. A blank text is one empty line.
fn found(class: &Class, text: &str) -> Option<ClassificationBasis> {
    let unless: Vec<_> = class.unless.iter().map(|it| prose_regex(it)).collect();
    let silent = text.trim().is_empty();
    class.regexes.iter().find_map(|source| {
        let regex = prose_regex(source);
        let fits =
            |line: &&str| !line.trim().is_empty() && !unless.iter().any(|it| it.is_match(line));
        let line =
            if silent { regex.is_match("").then_some("") } else { regex.lines(text).find(fits) }?;
        Some(ClassificationBasis::Words { regex: source.clone(), line: line.trim().to_owned() })
    })
}

/// The last lines of a text.
fn last_lines(text: &str, lines: usize) -> &str {
    let ends = memchr::memrchr_iter(b'\n', text.trim_end().as_bytes());
    let start = ends.map(|at| at + 1).nth(lines.saturating_sub(1)).unwrap_or(0);
    text.get(start..).unwrap_or(text)
}

words! {
    FailureEffect { Trip = "trip", Ignore = "ignore", Permanent = "permanent" }
}

record! {
    const RETRY: RecordType<Retry> = {
        max: Kind::Int { min: 0, max: 1000 } => max, "Times it is made again at most.";
        initial: Kind::Duration => initial, "Wait before the first.";
        multiplier: Kind::Number { min: 1.0, max: 100.0 } => multiplier, "How each wait grows.";
        cap: Kind::Duration => cap, "Longest wait.";
        jitter: Kind::Number { min: 0.0, max: 1.0 } => jitter,
            "Share that chance may take off a wait.";
    }
}

/// The map of [`RETRY`].
const RETRY_MAP: Conversion<Retry> = Conversion::reading(|node, builder| {
    let mut retry = RETRY.read(&LayeredMap::from_iter([node]), builder);
    raise_cap(&mut retry, node.get("cap"));
    Some(retry)
});

/// The same, if its absence differs from its defaults.
const OPTIONAL_RETRY_MAP: Conversion<Option<Retry>> =
    Conversion::reading(|node, builder| Some((RETRY_MAP.read)(node, builder)));

/// Raises the default cap to the initial delay: a long first delay without a cap does not mean a shorter one.
fn raise_cap(retry: &mut Retry, cap: Option<&Node>) {
    if cap.is_none() {
        retry.cap = retry.cap.max(retry.initial);
    }
}

record! {
    const CLASS: RecordType<Class> = {
        id [mandatory()]: Kind::Text => id, "Name of the failure class.";
        errors: TEXTS => errors, "Names by which hooks and programs tell it.";
        regexes: REGEX_LIST => regexes by REGEXES,
            "Tried on each line where no name is known, case not counted.";
        unless: REGEX_LIST => unless by REGEXES, "Found in the same line, they excuse it.";
        effect: words::<FailureEffect>() => effect,
            "What it does to a breaker; `trip` by default. `permanent` is never tried again.";
        attempt: Kind::Bool => attempt,
            "Whether it counts as an attempt at the task; `true` by default.";
        human: Kind::Bool => human, "Whether a person is needed; `false` by default.";
        retry: RETRY.map => retry by RETRY_MAP, "When it is tried again.";
        use DESCRIPTION => description;
        use OVERRIDE;
    }

    const LABEL: RecordType<Label> = {
        label [mandatory()]: Kind::Text => name, "What the other program calls it.";
        classes [mandatory()]: TEXTS => classes, "Ids of the classes with this label.";
        retry: RETRY.map => retry by OPTIONAL_RETRY_MAP,
            "When that program tries again; as the class says, else.";
    }

    const WAITS: RecordType<Failures> = {
        longest: Kind::Duration => waits.max_retry_after,
            "Longest wait that a server's words are followed for.";
        margin: Kind::Duration => waits.reset_margin, "Waited beyond the time at which a limit is reset.";
        per_minute: Kind::Duration => waits.per_minute,
            "Time shared among the requests allowed per minute.";
        least: Kind::Duration => waits.min_delay, "Least wait by requests per minute.";
        most: Kind::Duration => waits.max_delay, "Longest wait by requests per minute.";
    }

    const PAUSE: RecordType<Failures> = {
        after: COUNT => pause.after, "Failures of one class in a row.";
        initial: Kind::Duration => pause.retry.initial, "The first pause.";
        multiplier: Kind::Number { min: 1.0, max: 100.0 } => pause.retry.multiplier,
            "How each pause grows.";
        cap: Kind::Duration => pause.retry.cap, "Longest pause.";
    }

    const RECOVERY: RecordType<Failures> = {
        attempts: COUNT => recovery.attempts, "Attempts at one failure.";
        time: Kind::Duration => recovery.time, "Time spent on one failure.";
        cost: Kind::Number { min: 0.0, max: 1e9 } => recovery.cost,
            "Cost of one failure; no limit, else.";
        repeats: COUNT => recovery.repeats, "Identical failures in a row that end it.";
        tier: Kind::Text => recovery.tier, "Tier that is asked for where the provider is down.";
        crash_lines: Kind::Int { min: 0, max: 1000 } => recovery.crash_lines,
            "A program that failed with fewer lines of output crashed.";
    }

    const LADDER: RecordType<Failures> = {
        escalate: COUNT => ladder.escalate, "Failures in a row that are passed on.";
        pause: COUNT => ladder.pause, "Failures in a row that pause the loop.";
    }

    const UNCERTAINTY: RecordType<Failures> = {
        signs: FEW => uncertainty.signs, "Signs that must hold at once.";
        rounds: FEW => uncertainty.rounds, "Rounds in a row they must hold.";
        ring: Kind::Int { min: 2, max: 100 } => uncertainty.ring,
            "Diffs remembered to see them come back.";
    }

    const CLAIMS: RecordType<Failures> = {
        silence: Kind::Duration => claims.silence, "Longest silence of a worker that is alive.";
    }

    pub(super) const FAILURES: RecordType<Failures> = {
        classes: CLASS.list, "Classes, the first match wins.";
        unrecognized: Kind::Text => unrecognized, "Class of a failure that no class matches.";
        lines: Kind::Int { min: 1, max: 100_000 } => lines,
            "Lines of a text that are looked at, from its end.";
        profiles: Kind::Map(&LABEL.list),
            "Vocabularies of other programs; of each the first label wins.";
        waits: section WAITS, "How requested delays are read from a message.";
        pause: section PAUSE, "The pause after failures of one class in a row.";
        recovery: section RECOVERY, "When recovering is given up.";
        ladder: section LADDER, "What a gate does that fails again and again.";
        uncertainty: section UNCERTAINTY, "When signs of being lost are passed on.";
        claims: section CLAIMS, "When a worker is taken for dead.";
    }
}

impl Builder<'_> {
    pub(super) fn failures(&mut self, layers: &Layers) -> Failures {
        let top = layers.top_map(FILE);
        let entries = layers.section(FILE, "classes");
        let known: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
        if let Some(node) = top.get("unrecognized") {
            self.report_unknown_class(node, &known);
        }
        let profiles = self.profiles(layers, &known);
        let classes = entries.iter().map(|entry| CLASS.read(&entry.map(), self)).collect();
        let mut failures = FAILURES.read(&top, self);
        raise_cap(&mut failures.pause.retry, top.section("pause").get("cap"));
        Failures { classes, profiles, ..failures }
    }

    /// Returns the vocabularies of other programs. That of a pack replaces an inherited one of the same name.
    fn profiles(&mut self, layers: &Layers, known: &[&str]) -> Vec<(String, Vec<Label>)> {
        let mut profiles: Vec<(String, Vec<Label>)> = Vec::new();
        let files = layers.top(FILE).iter();
        for (name, labels) in files.filter_map(|file| file.get("profiles")?.entries()).flatten() {
            let items = labels.items().unwrap_or_default().iter();
            for class in items.filter_map(|label| label.get("classes")?.items()).flatten() {
                self.report_unknown_class(class, known);
            }
            let name = text(Some(name));
            if profiles.iter().all(|(known, _)| *known != name) {
                let labels = (LABEL.items.read)(labels, self);
                profiles.push((name, labels.unwrap_or_default()));
            }
        }
        profiles
    }

    fn report_unknown_class(&mut self, node: &Node, known: &[&str]) {
        if !known.contains(&node.text().unwrap_or_default()) {
            self.unknown("unknown-name", "class of failures", node, known);
        }
    }
}
