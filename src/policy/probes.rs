//! `preferences.yaml` and `probes.yaml`: what policyd asks before a decision, in files of the user and by external
//! commands.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::builder::Builder;
use super::builtin;
use super::field_value::words;
use super::fields::{DESCRIPTION, GLOBS, OVERRIDE, REGEX_LIST, TEXTS, enabled};
use super::layers::LayerEntry;
use super::record::{Conversion, REGEXES, TEMPLATE, entries, record, words};
use policyd_base::limits;
use policyd_facts::event::{EVENT_NAMES, EventKind};
use policyd_yaml::Diagnostic;
use policyd_yaml::node::Node;
use policyd_yaml::shape::Kind;
use policyd_yaml::time::duration_text;

/// A user preference looked for in files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preference {
    /// Its id: `prefs.<id>`.
    pub id: String,
    /// Whether it is looked for; a fixed answer otherwise.
    pub value: Option<bool>,
    /// Files relative to the project, in order.
    pub files: Vec<String>,
    /// Regexes tried on each paragraph, comments and code left out.
    pub regexes: Vec<String>,
    /// Whether it is looked for only once in a session.
    pub once: bool,
}

/// How the output of a probe is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Parse {
    /// As JSON.
    #[default]
    Json,
    /// As text without the last line break.
    Text,
    /// As what a model says: the JSON object in it, else its text.
    Reply,
}

/// An external command whose output is a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Its id: `probes.<id>`.
    pub id: String,
    /// Whether it is run at all.
    pub enabled: bool,
    /// Program and arguments; never a shell line.
    pub command: Vec<String>,
    /// Template of its standard input.
    pub stdin: String,
    /// Time it may take.
    pub timeout: Duration,
    /// Events at which guards may ask it. Checks may always ask it.
    pub at: Vec<EventKind>,
    /// Exit codes other than 0 that are answers.
    pub answers: Vec<i32>,
    /// How its output is read.
    pub parse: Parse,
    /// For how long the same question is not asked again.
    pub cache: Option<Duration>,
    /// Name of its circuit breaker.
    pub breaker: String,
    /// Said when the program is not installed.
    pub missing: String,
    /// Said when its standard error contains the key.
    pub cures: Vec<(String, String)>,
}

/// What an evaluation asks before it decides, by ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedNames {
    /// Probes to run.
    pub probes: Vec<String>,
    /// Preferences to search for.
    pub preferences: Vec<String>,
}

impl AskedNames {
    /// Returns the probes and preferences among the facts that expressions use.
    pub fn of_uses<'u>(uses: impl Iterator<Item = &'u str> + Clone) -> Self {
        let named = |prefix: &str| {
            let names = uses.clone().filter_map(|it| it.strip_prefix(prefix));
            names.filter(|it| !it.contains('.')).map(str::to_owned).collect()
        };
        Self { probes: named("probes."), preferences: named("prefs.") }
    }

    /// Returns whether nothing is asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.probes.is_empty() && self.preferences.is_empty()
    }

    /// Adds what others ask.
    pub fn add(&mut self, others: &Self) {
        let add = |own: &mut Vec<String>, more: &[String]| {
            own.extend(more.iter().cloned());
            own.sort_unstable();
            own.dedup();
        };
        add(&mut self.probes, &others.probes);
        add(&mut self.preferences, &others.preferences);
    }
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            id: String::new(),
            enabled: true,
            command: Vec::new(),
            stdin: String::new(),
            timeout: limits::PROBE_TIMEOUT,
            at: Vec::new(),
            answers: Vec::new(),
            parse: Parse::default(),
            cache: None,
            breaker: String::new(),
            missing: String::new(),
            cures: Vec::new(),
        }
    }
}

words! {
    Parse { Json = "json", Text = "text", Reply = "reply" }
}

/// Whether a preference is looked for once per session: `session`, else `none`.
const ONCE: Conversion<bool> = Conversion {
    read: |node, _| Some(node.text()? == "session"),
    show: |once| Some(if *once { "session" } else { "none" }.into()),
};

/// An exit code that is not 0.
const EXIT_CODE: Kind = Kind::Int { min: 1, max: 255 };

const EXIT_CODES: Conversion<Vec<i32>> = Conversion::reading(|node, _| {
    let codes = node.items().unwrap_or_default().iter().filter_map(Node::int);
    Some(codes.filter_map(|it| i32::try_from(it).ok()).collect())
});

record! {
    /// An entry of `preferences.yaml`.
    pub(super) const PREFERENCE: RecordType<Preference> = {
        id [mandatory()]: Kind::Text => id, "Name of the fact: `prefs.<id>`.";
        value: Kind::Bool => value, "A fixed answer; nothing is looked for.";
        files: GLOBS => files, "Files relative to the project.";
        regexes: REGEX_LIST => regexes by REGEXES, "Tried on each paragraph, case not counted.";
        cache: Kind::Choice(&["none", "session"]) => once by ONCE,
            "`session`: looked for once in a session; by default it is at each stop.";
        use DESCRIPTION;
        use OVERRIDE;
    }

    /// An entry of `probes.yaml`.
    pub(super) const PROBE: RecordType<Probe> = {
        id [mandatory()]: Kind::Text => id, "Name of the fact: `probes.<id>`.";
        use enabled("Whether it is run at all; `true` by default.") => enabled;
        command: TEXTS => command, "Program and arguments; never a shell line.";
        stdin: Kind::Template => stdin by TEMPLATE, "What is written to its standard input.";
        timeout: Kind::Duration => timeout, "Time it may take.";
        at: TEXTS, "Events at which guards may ask it, such as `pre_tool_use`; checks may always ask it. It then has no \
             `stdin`, a `cache`, and a `timeout` of at most 300 ms.";
        answers: Kind::List(&EXIT_CODE) => answers by EXIT_CODES,
            "Exit codes other than 0 that are answers: `[1]` for `test -f`. Every other one is a failure.";
        parse: words::<Parse>() => parse,
            "How its output is read: `reply` is the JSON object in what a model says, else its \
             text.";
        cache: Kind::Duration => cache, "For how long the same question is not asked again.";
        breaker: Kind::Text => breaker, "Name of its circuit breaker; `probe/<id>` by default.";
        missing: Kind::Text => missing, "Said when the program is not installed.";
        cures: Kind::Map(&Kind::Text) => cures by entries(),
            "Said when its error output contains the key.";
        use DESCRIPTION;
        use OVERRIDE;
    }
}

impl Builder<'_> {
    pub(super) fn preference(&mut self, entry: &LayerEntry) -> Option<Preference> {
        let is_fixed = entry.get("value").is_some_and(|node| node.bool().is_some());
        if !is_fixed && (entry.get("files").is_none() || entry.get("regexes").is_none()) {
            let why = "a preference has `files` and `regexes`, or a `value`";
            self.missing_one_of(entry, ["regexes", "value"], why);
            return None;
        }
        Some(PREFERENCE.read(&entry.map(), self))
    }

    pub(super) fn probe(&mut self, entry: &LayerEntry) -> Option<Probe> {
        let mut probe = PROBE.read(&entry.map(), self);
        if probe.command.is_empty() {
            if entry.get("command").is_none_or(|node| node.items().is_some()) {
                self.missing(entry, "command", "a probe runs a program");
            }
            return None;
        }
        if entry.get("timeout").is_some() {
            self.report_long_timeout(entry, &probe);
        }
        probe.at = self.events_of_guards(entry, &mut probe.timeout);
        if probe.breaker.is_empty() {
            probe.breaker = format!("probe/{}", entry.id);
        }
        Some(probe)
    }

    /// Returns the events at which guards may ask a probe. A tool call waits for it, so it must be short.
    fn events_of_guards(&mut self, entry: &LayerEntry, timeout: &mut Duration) -> Vec<EventKind> {
        let Some(node) = entry.get("at") else { return Vec::new() };
        let mut events = Vec::new();
        for item in node.items().unwrap_or_default() {
            match item.text().and_then(EventKind::find) {
                Some(kind) if !kind.is_stop() => events.push(kind),
                Some(kind) => {
                    let message = format!("checks at `{}` ask each probe", kind.name());
                    let found = Diagnostic::error("event-cannot-block", item.span.clone(), message);
                    self.diagnostics.push(found.with_help("name events of guards: `pre_tool_use`"));
                }
                None => self.unknown("unknown-name", "event", item, EVENT_NAMES),
            }
        }
        let max = limits::GUARD_PROBE_TIMEOUT_MAX;
        let mut wrong = |node: &Node, message: String, help: &str| {
            let found = Diagnostic::error("contradictory-settings", node.span.clone(), message);
            self.diagnostics.push(found.with_help(help));
        };
        match entry.get("timeout") {
            None => *timeout = max,
            Some(node) if *timeout > max => {
                let most = duration_text(max);
                let message = format!("a probe that guards ask may take {most} at most");
                wrong(node, message, "each call of the agent waits for it: ask a faster program");
            }
            Some(_) => {}
        }
        if let Some(node) = entry.get("stdin") {
            let message = "a probe that guards ask gets no input".to_owned();
            wrong(node, message, "put what it needs into its arguments");
        }
        if entry.get("cache").is_none() {
            let message = "a probe that guards ask needs a `cache`".to_owned();
            wrong(node, message, "say how long an answer holds: `cache: 30s`");
        }
        events
    }

    /// Reports a timeout above the deadline of all probes. Unchanged probes of the built-in pack are meant to end
    /// with the deadline.
    fn report_long_timeout(&mut self, entry: &LayerEntry, probe: &Probe) {
        let (Some(span), Some(deadline)) = (entry.span(), self.deadline) else { return };
        if !probe.enabled || probe.timeout <= deadline || builtin::wrote(&span.source) {
            return;
        }
        let timeout = duration_text(probe.timeout);
        let message = format!("it may take {timeout}, all probes of one stop together less");
        let found = Diagnostic::warning("contradictory-settings", span.clone(), message);
        let deadline = duration_text(deadline);
        self.diagnostics.push(found.with_help(format!(
            "raise `deadline` in policyd.yaml, which is {deadline}, above it, or leave it out"
        )));
    }
}
