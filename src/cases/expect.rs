//! Expectations of a step, each with its location, and their comparison with the actual result.

use regex::Regex;
use serde_json::Value;

use super::names::{NameKind, NameTable, check_name};
use policyd_fact_table::pattern::{compile_regex, matches_every_text};
use policyd_yaml::node::Node;
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
    /// Is a text, or a list of lines, with these properties.
    Says {
        /// The whole text.
        equals: Option<String>,
        /// Parts that must occur.
        contains: Vec<String>,
        /// Parts that must not occur.
        lacks: Vec<String>,
        /// Pattern that must match.
        matches: Option<Regex>,
    },
}

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
            Matcher::Says { equals, contains, lacks, matches } => {
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
            Self::Says { equals, contains, .. } => {
                equals.iter().chain(contains).any(|it| it.trim() == wanted)
            }
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::Is(value) => text(value),
            Self::Gone => "gone".to_owned(),
            Self::Says { equals, contains, .. } => {
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
    /// Reads the classes of commands to which a command must belong.
    fn classes(&mut self, value: &Node) {
        for item in value.items().unwrap_or_default() {
            let known = &self.known.classes_of_commands;
            let kind = NameKind { noun: "command class", code: "unknown-name" };
            check_name(item, kind, known, self.findings);
            let path = ["classes", item.text().unwrap_or_default()];
            self.push(&path, item, Matcher::Is(true.into()));
        }
    }

    fn entry(&mut self, key: &str, value: &Node) {
        match key {
            // Guards use the word `deny`.
            "decision" if value.says("deny") => {
                self.push(&[key], value, Matcher::Is("block".into()))
            }
            "decision" | "release" => self.is(&[key], value),
            "session_type" => {
                let known = &self.known.session_types;
                check_name(
                    value,
                    NameKind { noun: "session type", code: "unknown-name" },
                    known,
                    self.findings,
                );
                self.is(&[key], value);
            }
            "considerations" => self.considerations(value),
            "preferences" => {
                let known = self.known.preferences.clone();
                self.named(key, value, NameKind::PREFERENCE, &known);
            }
            "guards" => {
                for (id, result) in value.entries().unwrap_or_default() {
                    let known = &self.known.guards;
                    let id = self.known.rule(id, NameKind::GUARD, known, self.findings);
                    let path = ["guards", id];
                    match result.text() {
                        Some("passed") => self.push(&path, result, Matcher::Is("silent".into())),
                        _ => self.is(&path, result),
                    }
                }
            }
            "decided_by" => {
                let known = &self.known.guards;
                let items = value.items().unwrap_or_default().iter();
                let ids = items
                    .map(|it| self.known.rule(it, NameKind::GUARD, known, self.findings))
                    .collect::<Vec<_>>();
                let wanted = value.items().map_or_else(|| value.json(), |_| ids.into());
                self.push(&[key], value, Matcher::Is(wanted));
            }
            "classes" => self.classes(value),
            "updated_input" => self.updated_input(value),
            "updated_output" | "answer" => self.is(&[key], value),
            "breakers" => {
                let known = self.known.breakers.clone();
                self.named(key, value, NameKind::BREAKER, &known);
            }
            "tasks" => self.tasks(value),
            "signals" | "due" => {
                for item in value.items().unwrap_or_default() {
                    let (kind, known) =
                        (NameKind { noun: "signal", code: "unknown-name" }, &self.known.signals);
                    check_name(item, kind, known, self.findings);
                }
                self.is(&[key], value);
            }
            "class" => {
                let known = &self.known.classes;
                check_name(
                    value,
                    NameKind { noun: "failure class", code: "unknown-class" },
                    known,
                    self.findings,
                );
                self.is(&[key], value);
            }
            "state" => self.parts(&[key], value),
            "effects" => self.effects(value),
            // All other keys are texts.
            _ => self.says(&[key], value),
        }
    }

    fn is(&mut self, path: &[&str], value: &Node) {
        self.push(path, value, Matcher::Is(value.json()));
    }

    fn push(&mut self, path: &[&str], at: &Node, test: Matcher) {
        let path = path.iter().map(|&it| it.to_owned()).collect();
        self.wanted.push(Expectation { span: at.span.clone(), path, test });
    }

    fn parts(&mut self, path: &[&str], node: &Node) {
        for (key, value) in node.entries().unwrap_or_default() {
            self.is(&[path, &[key.text().unwrap_or_default()]].concat(), value);
        }
    }

    fn named(&mut self, group: &str, node: &Node, kind: NameKind<'_>, known: &[String]) {
        for (key, value) in node.entries().unwrap_or_default() {
            check_name(key, kind, known, self.findings);
            self.is(&[group, key.text().unwrap_or_default()], value);
        }
    }

    fn tasks(&mut self, node: &Node) {
        for (key, value) in node.entries().unwrap_or_default() {
            let path = ["tasks", key.text().unwrap_or_default()];
            match value.text() {
                Some("gone") => self.push(&path, value, Matcher::Gone),
                _ => self.is(&path, value),
            }
        }
    }

    fn considerations(&mut self, node: &Node) {
        for (key, value) in node.entries().unwrap_or_default() {
            let kind = NameKind { noun: "consideration", code: "unknown-consideration" };
            let known = &self.known.considerations;
            let id = self.known.rule(key, kind, known, self.findings);
            let path = ["considerations", id];
            if let Some(word) = value.text().map(stored_word) {
                let part = match word {
                    "blocks" | "warns" | "recorded" => "consequence",
                    _ => "status",
                };
                let test = Matcher::Is(word.into());
                self.push(&[path.as_slice(), &[part]].concat(), value, test);
            }
            let parts = value.entries().unwrap_or_default();
            if value.entries().is_some() && parts.is_empty() {
                let message = format!("no expectation for `{id}`");
                let finding = Diagnostic::error("empty-expectation", value.span.clone(), message);
                self.findings.push(finding.with_help("write `passed`, or `status: passed`"));
            }
            for (part, value) in parts {
                let part = part.text().unwrap_or_default();
                let path = [path.as_slice(), &[part]].concat();
                match part {
                    "status" | "consequence" => {
                        let word = value.text().map(stored_word).unwrap_or_default();
                        self.push(&path, value, Matcher::Is(word.into()));
                    }
                    _ => self.says(&path, value),
                }
            }
        }
    }

    /// Reads expected input fields. Templates always give texts.
    fn updated_input(&mut self, node: &Node) {
        let Some(fields) = node.entries() else { return self.is(&["updated_input"], node) };
        for (key, value) in fields {
            let path = ["updated_input", key.text().unwrap_or_default()];
            match value.text() {
                Some(text) => {
                    let (equals, matches) = (Some(text.to_owned()), None);
                    let (contains, lacks) = (Vec::new(), Vec::new());
                    self.push(&path, value, Matcher::Says { equals, contains, lacks, matches });
                }
                None => self.is(&path, value),
            }
        }
    }

    fn effects(&mut self, node: &Node) {
        for (key, value) in node.entries().unwrap_or_default() {
            let key = key.text().unwrap_or_default();
            let path = ["effects", key];
            match key {
                "probes" => {
                    let known = self.known.probe_ids();
                    for probe in value.items().unwrap_or_default() {
                        check_name(probe, NameKind::PROBE, &known, self.findings);
                    }
                    self.is(&path, value);
                }
                "logged" if value.entries().is_some() => self.parts(&["effects", "log"], value),
                _ => self.is(&path, value),
            }
        }
    }

    /// Reads a text, a list of texts, or a map of conditions.
    fn says(&mut self, path: &[&str], node: &Node) {
        let texts = |node: Option<&Node>| -> Vec<String> {
            let nodes = node.map(Node::one_or_items).unwrap_or_default();
            nodes.iter().filter_map(Node::text).map(str::to_owned).collect()
        };
        let before = self.findings.len();
        let (mut equals, mut lacks, mut matches) = (None, Vec::new(), None);
        let contains = if node.entries().is_some() {
            equals = node.get("equals").and_then(Node::text).map(str::to_owned);
            lacks = texts(node.get("lacks"));
            matches = node.get("matches").and_then(|it| self.regex(it));
            texts(node.get("contains"))
        } else {
            texts(Some(node))
        };
        if self.findings.len() > before {
            return;
        }
        // An empty text occurs in every text, so the expectation would always pass.
        let vacuous = contains.iter().chain(&lacks).any(String::is_empty)
            || (equals.is_none()
                && contains.is_empty()
                && lacks.is_empty()
                && matches.as_ref().is_none_or(holds_always));
        if vacuous {
            let message = "this expectation is true for every text";
            let finding = Diagnostic::error("empty-expectation", node.span.clone(), message);
            self.findings.push(finding.with_help("write `{equals: \"\"}` for an empty text"));
            return;
        }
        self.push(path, node, Matcher::Says { equals, contains, lacks, matches });
    }

    fn regex(&mut self, node: &Node) -> Option<Regex> {
        match compile_regex(node.text()?) {
            Ok(regex) => Some(regex),
            Err(why) => {
                let message = format!("the regex is not valid: {why}");
                self.findings.push(Diagnostic::error("bad-regex", node.span.clone(), message));
                None
            }
        }
    }
}

/// Returns whether a regex matches every text.
fn holds_always(regex: &Regex) -> bool {
    regex_syntax::parse(regex.as_str()).is_ok_and(|it| matches_every_text(&it))
}
