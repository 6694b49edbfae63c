//! Expectations of a step, each with its location, and their comparison with the actual result.

use regex::Regex;
use serde_json::Value;

use super::kinds::{COUNT, TEXTS};
use super::names::{NameKind, NameTable, check_names};
use policyd_fact_table::pattern::{compile_regex, matches_every_text};
use policyd_policy::record;
use policyd_policy::record::{Conversion, one_or_list};
use policyd_yaml::node::Node;
use policyd_yaml::shape::{Field, Kind, field};
use policyd_yaml::{Diagnostic, Span};

/// One expectation.
#[derive(Debug)]
pub struct Expectation {
    /// Location of the expectation.
    pub span: Span,
    /// Keys of the expected value, outermost first.
    pub path: Vec<String>,
    /// Condition of the value.
    pub test: Matcher,
}

/// Condition of an expected value.
#[derive(Debug)]
pub enum Matcher {
    /// Equals this value.
    Is(Value),
    /// Is absent.
    Gone,
    /// Is a text, or a list of lines, for which the condition is true.
    Says(TextCondition),
}

/// Condition of a text.
#[derive(Debug, Default)]
pub struct TextCondition {
    /// The whole text.
    pub equals: Option<String>,
    /// Parts that must occur.
    pub contains: Vec<String>,
    /// Parts that must not occur.
    pub lacks: Vec<String>,
    /// Pattern that must match.
    pub matches: Option<Regex>,
}

record! {
    /// Keys of the condition of a text.
    const TEXT_CONDITION: RecordType<TextCondition> = {
        equals: Kind::Text => equals, "The whole text; `\"\"` for an empty text.";
        contains: Kind::OneOrList(&Kind::Text) => contains by one_or_list(), "Texts that must occur.";
        lacks: Kind::OneOrList(&Kind::Text) => lacks by one_or_list(), "Texts that must not occur.";
        matches: Kind::Regex => matches by REGEX, "A regex that must match somewhere in the text.";
    }
}

const REGEX: Conversion<Option<Regex>> =
    Conversion::reading(|node, _| compile_regex(node.text()?).ok().map(Some));

/// Condition of a text: required parts, or a map of conditions.
const SAID: Kind = Kind::Either(&[Kind::Text, TEXTS, TEXT_CONDITION.map]);

/// Result of a check, one word.
const VERDICT: Kind = Kind::Choice(&[
    "passed",
    "fired",
    "skipped",
    "unknown",
    "block",
    "warn",
    "log",
    "satisfied",
    "unsatisfied",
    "blocks",
    "warns",
    "recorded",
]);

const VERDICT_PARTS: &[Field] = &[
    field(
        "status",
        Kind::Choice(&["passed", "fired", "skipped", "unknown", "satisfied", "unsatisfied"]),
        "Result; `satisfied` is an alias of `passed`, and `unsatisfied` of `fired`.",
    ),
    field(
        "consequence",
        Kind::Choice(&["none", "log", "warn", "block", "recorded", "warns", "blocks"]),
        "Effect; `recorded` is an alias of `log`, `warns` of `warn`, and `blocks` of `block`.",
    ),
    field("why", SAID, "Reason why it was skipped or is unknown."),
    field("softened", SAID, "Reason why a blocker only warns."),
    field("details", SAID, "The sentence that explains the result."),
    field("evidence", SAID, "Evidence, one line each."),
    field("error", SAID, "Error of a probe or of another external input."),
];

const LOGGED: &[Field] = &[
    field("decision", Kind::Text, "The decision."),
    field("spoken", Kind::Bool, "Whether a block was sent."),
    field("release", Kind::Text, "Reason of a release."),
    field("saved", Kind::Text, "Result of the save."),
];

const EFFECTS: &[Field] = &[
    field("probes", TEXTS, "Probes that ran, in order; `[]` for none."),
    field(
        "saved",
        Kind::Choice(&["durable", "degraded", "not saved", "unchanged"]),
        "Result of the save.",
    ),
    field(
        "logged",
        Kind::Either(&[Kind::Bool, Kind::Record(LOGGED)]),
        "Whether the decision log has a new entry, or the entry.",
    ),
];

const STATE_AFTER: &[Field] = &[
    field("total_blocks", COUNT, "Number of blocks in the session."),
    field("consecutive_blocks", COUNT, "Number of blocks in this episode."),
    field("turns", COUNT, "Number of stops that changed the state."),
    field("releases", COUNT, "Number of releases."),
    field("quality_score", COUNT, "Share of passed checks, 0 to 100."),
    field("workflow_compliant", Kind::Bool, "Whether no blocker failed."),
];

const EXPECT: &[Field] = &[
    field(
        "decision",
        Kind::Choice(&["none", "allow", "defer", "ask", "block", "deny", "halt"]),
        "Decision; `none` lets the agent stop, `deny` is an alias of `block`.",
    ),
    field("reason", SAID, "Reason for the agent."),
    field(
        "release",
        Kind::Choice(&["none", "max_blocks", "same_failure", "no_progress", "already_released"]),
        "Reason of a release.",
    ),
    field("session_type", Kind::Text, "Type of the session."),
    field("no_opinion", SAID, "Reason why no rule was evaluated."),
    field(
        "considerations",
        Kind::Map(&Kind::Either(&[VERDICT, Kind::Record(VERDICT_PARTS)])),
        "Results of checks, by id.",
    ),
    field("notice", SAID, "Text for the user."),
    field("context", SAID, "Additional text for the agent."),
    field("summary", SAID, "The line about the check results."),
    field("problems", SAID, "Problems that are reported to the user, one line each."),
    field(
        "guards",
        Kind::Map(&Kind::Choice(&["passed", "fired", "unknown", "silent"])),
        "Results of guards, by id.",
    ),
    field("classes", TEXTS, "Classes of the vocabulary that the command of the call belongs to."),
    field("decided_by", TEXTS, "Guards that determine the decision, in order."),
    field(
        "updated_input",
        Kind::Either(&[Kind::Choice(&["none"]), Kind::Map(&Kind::Any)]),
        "Changed fields of the tool's input; `none` if it is unchanged.",
    ),
    field("updated_output", Kind::Any, "Changed result of the tool; `none` if it is unchanged."),
    field("preferences", Kind::Map(&Kind::Bool), "Preferences that were searched for."),
    field("effects", Kind::Record(EFFECTS), "Effects on the machine."),
    field("state", Kind::Record(STATE_AFTER), "Saved state of the session after the step."),
    field(
        "breakers",
        Kind::Map(&Kind::Choice(&["closed", "open", "half_open"])),
        "States of circuit breakers after the step, by name.",
    ),
    field(
        "tasks",
        Kind::Map(&Kind::Choice(&[
            "pending",
            "in-progress",
            "blocked",
            "dead-letter",
            "abandoned",
            "gone",
        ])),
        "Queues of tasks after the step, by id; `gone` is in no queue.",
    ),
    field("signals", TEXTS, "Names of pending signals, sorted."),
    field("questions", SAID, "Requests to humans, one line each: severity, trigger, title."),
    field("answer", Kind::Text, "Answer of the table."),
    field("why", SAID, "Reason of the answer."),
    field("class", Kind::Text, "Class of the failure."),
    field("due", TEXTS, "Names of due signals, sorted."),
];

/// The kind of the value of `expect`.
pub(super) const EXPECTATION: Kind =
    Kind::Either(&[Kind::Choice(&["snapshot", "snapshot_json"]), Kind::Record(EXPECT)]);

/// An expectation that was not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Location of the expectation.
    pub span: Span,
    /// Path of the value: `considerations.local_testing.status`.
    pub what: String,
    /// Expected value, as displayed.
    pub wanted: String,
    /// Actual value, as displayed.
    pub got: String,
    /// Expected text, if a comparison by lines is useful.
    pub whole: Option<String>,
}

impl Expectation {
    /// Compares the expectation with the actual result. A missing path is a mismatch, so that an
    /// expectation never passes without a comparison.
    #[must_use]
    pub fn check(&self, seen: &Value) -> Vec<Mismatch> {
        let got = self.path.iter().try_fold(seen, |at, key| at.get(key));
        let mismatch = |wanted: String, got: String, whole: Option<String>| Mismatch {
            span: self.span.clone(),
            what: self.path.join("."),
            wanted,
            got,
            whole,
        };
        let Some(got) = got else {
            let parent = self.path.split_last().map(|(_, keys)| keys).unwrap_or_default();
            let looked_at = parent.iter().try_fold(seen, |at, key| at.get(key)).is_some();
            if looked_at && matches!(self.test, Matcher::Gone) {
                return Vec::new();
            }
            return vec![mismatch(self.test.in_words(), "no such value".to_owned(), None)];
        };
        let said = text(got);
        match &self.test {
            Matcher::Gone => vec![mismatch(self.test.in_words(), said, None)],
            Matcher::Is(wanted) if wanted == got => Vec::new(),
            Matcher::Is(wanted) => vec![mismatch(text(wanted), said, None)],
            Matcher::Says(TextCondition { equals, contains, lacks, matches }) => {
                let mut found = Vec::new();
                if let Some(whole) = equals.as_ref().filter(|it| it.trim() != said.trim()) {
                    found.push(mismatch(shown(whole), shown(&said), Some(whole.clone())));
                }
                for part in contains.iter().filter(|it| !said.contains(it.as_str())) {
                    found.push(mismatch(format!("contains {part:?}"), shown(&said), None));
                }
                for part in lacks.iter().filter(|it| said.contains(it.as_str())) {
                    found.push(mismatch(format!("lacks {part:?}"), shown(&said), None));
                }
                if let Some(regex) = matches.as_ref().filter(|it| !it.is_match(&said)) {
                    found.push(mismatch(format!("matches {regex}"), shown(&said), None));
                }
                found
            }
        }
    }
}

impl Matcher {
    /// Returns whether the expectation requires this text, as a part or as the whole.
    pub(super) fn matches(&self, wanted: &str) -> bool {
        match self {
            Self::Is(value) => value == wanted,
            Self::Gone => false,
            Self::Says(TextCondition { equals, contains, .. }) => {
                equals.iter().chain(contains).any(|it| it.trim() == wanted)
            }
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::Is(value) => text(value),
            Self::Gone => "gone".to_owned(),
            Self::Says(TextCondition { equals, contains, .. }) => {
                let texts = equals.iter().chain(contains);
                texts.map(|it| shown(it)).collect::<Vec<_>>().join(", ")
            }
        }
    }
}

fn shown(text: &str) -> String {
    if text.is_empty() { "nothing".to_owned() } else { text.to_owned() }
}

/// Converts a value to text. A list becomes lines.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join("\n"),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

/// Reads the map under `expect`, whose shape is valid.
pub(super) fn read(
    node: &Node,
    known: &NameTable,
    findings: &mut Vec<Diagnostic>,
) -> Vec<Expectation> {
    let before = findings.len();
    let mut reader = ExpectationReader { known, findings, wanted: Vec::new() };
    for (key, value) in node.entries().unwrap_or_default() {
        reader.entry(key.text().unwrap_or_default(), value);
    }
    let wanted = reader.wanted;
    if wanted.is_empty() && findings.len() == before {
        let finding =
            Diagnostic::error("empty-expectation", node.span.clone(), "`expect` is empty");
        findings.push(finding.with_help("write the expected result: `decision: none`"));
    }
    wanted
}

/// The word that stored results of checks use for a word of a case.
fn stored_word(word: &str) -> &str {
    match word {
        "passed" => "satisfied",
        "fired" => "unsatisfied",
        "block" => "blocks",
        "warn" => "warns",
        "log" => "recorded",
        other => other,
    }
}

struct ExpectationReader<'a> {
    known: &'a NameTable,
    findings: &'a mut Vec<Diagnostic>,
    wanted: Vec<Expectation>,
}

impl ExpectationReader<'_> {
    fn entry(&mut self, key: &str, value: &Node) {
        self.check_names(key, value);
        let known = self.known;
        match key {
            // Guards use the word `deny`.
            "decision" if value.says("deny") => {
                self.push(&[key], value, Matcher::Is("block".into()));
            }
            "decided_by" => {
                let ids = known.rules(Some(value), NameKind::GUARD, &known.guards, self.findings);
                self.push(&[key], value, Matcher::Is(ids.into()));
            }
            "classes" => {
                for item in value.items().unwrap_or_default() {
                    let path = [key, item.text().unwrap_or_default()];
                    self.push(&path, item, Matcher::Is(true.into()));
                }
            }
            "considerations" => self.considerations(value),
            "updated_output" => self.is(&[key], value),
            _ if is_text_condition(key) => self.says(&[key], value),
            _ if value.entries().is_some() => self.entries(&[key], value),
            _ => self.is(&[key], value),
        }
    }

    /// Reports names that the pack does not have.
    fn check_names(&mut self, key: &str, value: &Node) {
        let known = self.known;
        let kind = |noun| NameKind { noun, code: "unknown-name" };
        let (kind, names) = match key {
            "session_type" => (kind("session type"), &known.session_types),
            "preferences" => (NameKind::PREFERENCE, &known.preferences),
            "classes" => (kind("command class"), &known.classes_of_commands),
            "breakers" => (NameKind::BREAKER, &known.breakers),
            "signals" | "due" => (kind("signal"), &known.signals),
            "class" => {
                let kind = NameKind { noun: "failure class", code: "unknown-class" };
                (kind, &known.classes)
            }
            "effects" => {
                let probes = value.get("probes");
                return check_names(probes, NameKind::PROBE, &known.probe_ids(), self.findings);
            }
            _ => return,
        };
        check_names(Some(value), kind, names, self.findings);
    }

    fn is(&mut self, path: &[&str], value: &Node) {
        self.push(path, value, Matcher::Is(value.json()));
    }

    fn push(&mut self, path: &[&str], at: &Node, test: Matcher) {
        let path = path.iter().map(|&it| it.to_owned()).collect();
        self.wanted.push(Expectation { span: at.span.clone(), path, test });
    }

    /// Reads a map with one expectation in each entry.
    fn entries(&mut self, path: &[&str], map: &Node) {
        for (key, value) in map.entries().unwrap_or_default() {
            let id = match path {
                ["guards"] => {
                    self.known.rule(key, NameKind::GUARD, &self.known.guards, self.findings)
                }
                _ => key.text().unwrap_or_default(),
            };
            let test = match (path, value.text()) {
                (["guards"], Some("passed")) => Matcher::Is("silent".into()),
                (["tasks"], Some("gone")) => Matcher::Gone,
                // Templates always give texts.
                (["updated_input"], Some(text)) => {
                    let equals = Some(text.to_owned());
                    Matcher::Says(TextCondition { equals, ..TextCondition::default() })
                }
                (["effects"], None) if id == "logged" => {
                    self.entries(&["effects", "log"], value);
                    continue;
                }
                _ => Matcher::Is(value.json()),
            };
            self.push(&[path, &[id]].concat(), value, test);
        }
    }

    fn considerations(&mut self, node: &Node) {
        for (key, value) in node.entries().unwrap_or_default() {
            let kind = NameKind { noun: "consideration", code: "unknown-consideration" };
            let known = &self.known.considerations;
            let id = self.known.rule(key, kind, known, self.findings);
            let Some(parts) = value.entries() else {
                let word = value.text().map(stored_word).unwrap_or_default();
                let part = match word {
                    "blocks" | "warns" | "recorded" => "consequence",
                    _ => "status",
                };
                self.push(&["considerations", id, part], value, Matcher::Is(word.into()));
                continue;
            };
            if parts.is_empty() {
                let message = format!("no expectation for `{id}`");
                let finding = Diagnostic::error("empty-expectation", value.span.clone(), message);
                self.findings.push(finding.with_help("write `passed`, or `status: passed`"));
            }
            for (part, value) in parts {
                let path = ["considerations", id, part.text().unwrap_or_default()];
                match (path, value.text().map(stored_word)) {
                    ([.., "status" | "consequence"], Some(word)) => {
                        self.push(&path, value, Matcher::Is(word.into()));
                    }
                    _ => self.says(&path, value),
                }
            }
        }
    }

    /// Reads a text, a list of texts, or a map of conditions.
    fn says(&mut self, path: &[&str], node: &Node) {
        let condition = TextCondition::read(node);
        let regex = node.get("matches").and_then(Node::text).map(compile_regex);
        if let (Some(Err(why)), Some(node)) = (regex, node.get("matches")) {
            let message = format!("the regex is not valid: {why}");
            self.findings.push(Diagnostic::error("bad-regex", node.span.clone(), message));
        } else if condition.is_always_true() {
            let message = "this expectation is true for every text";
            let finding = Diagnostic::error("empty-expectation", node.span.clone(), message);
            self.findings.push(finding.with_help("write `{equals: \"\"}` for an empty text"));
        } else {
            self.push(path, node, Matcher::Says(condition));
        }
    }
}

/// Returns whether a key of `expect` holds the condition of a text.
fn is_text_condition(key: &str) -> bool {
    let field = EXPECT.iter().find(|it| it.name == key);
    field.is_some_and(|it| matches!(it.kind, Kind::Either([Kind::Text, ..])))
}

impl TextCondition {
    /// Reads a text, a list of texts, or a map of conditions.
    fn read(node: &Node) -> Self {
        if node.entries().is_some() {
            return TEXT_CONDITION.read_node(node);
        }
        let contains = node.one_or_items().iter().filter_map(Node::text).map(str::to_owned);
        Self { contains: contains.collect(), ..Self::default() }
    }

    /// An empty text occurs in every text, so the expectation would always pass.
    fn is_always_true(&self) -> bool {
        let Self { equals, contains, lacks, matches } = self;
        contains.iter().chain(lacks).any(String::is_empty)
            || (equals.is_none()
                && contains.is_empty()
                && lacks.is_empty()
                && matches.as_ref().is_none_or(holds_always))
    }
}

/// Returns whether a regex matches every text.
fn holds_always(regex: &Regex) -> bool {
    regex_syntax::parse(regex.as_str()).is_ok_and(|it| matches_every_text(&it))
}
