//! Expectations: what a step wants to see, each with its place, and what it got instead.

use regex::Regex;
use serde_json::Value;

use super::names::{Known, check_name};
use crate::script::pattern::{compile_regex, matches_every_text};
use crate::source::node::Node;
use crate::source::{Diagnostic, Span};

/// One thing that must be as it says.
#[derive(Debug)]
pub struct Wanted {
    /// Where it is written.
    pub span: Span,
    /// The keys that lead to what is looked at, outermost first.
    pub path: Vec<String>,
    /// What it must be.
    pub test: Test,
}

/// What something must be.
#[derive(Debug)]
pub enum Test {
    /// This value.
    Is(Value),
    /// Nothing: the last key is not there.
    Gone,
    /// A text, or a list of lines, of which this holds.
    Says {
        /// The whole.
        equals: Option<String>,
        /// What must be in it.
        contains: Vec<String>,
        /// What must not be in it.
        lacks: Vec<String>,
        /// What must match.
        matches: Option<Regex>,
    },
}

/// Something that is not as it was wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Where the expectation is written.
    pub span: Span,
    /// What was looked at: `considerations.local_testing.status`.
    pub what: String,
    /// What was wanted, in words.
    pub wanted: String,
    /// What there was.
    pub got: String,
    /// The text that was wanted as a whole, where a comparison by lines tells more.
    pub whole: Option<String>,
}

impl Wanted {
    /// What is amiss with it in what was seen; a path that leads nowhere is amiss too, so that
    /// nothing passes because nothing was looked at.
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
            if looked_at && matches!(self.test, Test::Gone) {
                return Vec::new();
            }
            return vec![mismatch(self.test.in_words(), "nothing of the kind".to_owned(), None)];
        };
        let said = text(got);
        match &self.test {
            Test::Gone => vec![mismatch(self.test.in_words(), said, None)],
            Test::Is(wanted) if wanted == got => Vec::new(),
            Test::Is(wanted) => vec![mismatch(text(wanted), said, None)],
            Test::Says { equals, contains, lacks, matches } => {
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

impl Test {
    /// Whether it asks for this text, as a part or as the whole.
    pub(super) fn says(&self, wanted: &str) -> bool {
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

/// A value as text: a list is its lines.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join("\n"),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

/// Reads the map under `expect`, which fits its shape.
pub(super) fn read(node: &Node, known: &Known, findings: &mut Vec<Diagnostic>) -> Vec<Wanted> {
    let before = findings.len();
    let mut reader = Reader { known, findings, wanted: Vec::new() };
    for (key, value) in node.entries().unwrap_or_default() {
        reader.entry(key.text().unwrap_or_default(), value);
    }
    let wanted = reader.wanted;
    if wanted.is_empty() && findings.len() == before {
        let finding =
            Diagnostic::error("empty-expectation", node.span.clone(), "nothing is expected here");
        findings.push(finding.with_help("write what must come of it: `decision: none`"));
    }
    wanted
}

struct Reader<'a> {
    known: &'a Known,
    findings: &'a mut Vec<Diagnostic>,
    wanted: Vec<Wanted>,
}

impl Reader<'_> {
    fn entry(&mut self, key: &str, value: &Node) {
        match key {
            // As guards say it.
            "decision" if value.says("deny") => self.push(&[key], value, Test::Is("block".into())),
            "decision" | "release" => self.is(&[key], value),
            "session_type" => {
                let known = &self.known.session_types;
                check_name(value, ("session type", "unknown-session-type"), known, self.findings);
                self.is(&[key], value);
            }
            "considerations" => self.considerations(value),
            "preferences" => {
                let known = self.known.preferences.clone();
                self.named(key, value, ("preference", "unknown-preference"), &known);
            }
            "guards" => {
                let known = self.known.guards.clone();
                self.named(key, value, ("guard", "unknown-name"), &known);
            }
            "decided_by" => {
                for item in value.items().unwrap_or_default() {
                    check_name(item, ("guard", "unknown-name"), &self.known.guards, self.findings);
                }
                self.is(&[key], value);
            }
            "updated_input" => self.updated_input(value),
            "updated_output" => self.is(&[key], value),
            "breakers" => {
                let known = self.known.breakers.clone();
                self.named(key, value, ("breaker", "unknown-breaker"), &known);
            }
            "tasks" => self.tasks(value),
            "signals" | "due" => {
                for item in value.items().unwrap_or_default() {
                    let (what, known) = (("signal", "unknown-signal"), &self.known.signals);
                    check_name(item, what, known, self.findings);
                }
                self.is(&[key], value);
            }
            "class" => {
                let known = &self.known.classes;
                check_name(value, ("failure class", "unknown-class"), known, self.findings);
                self.is(&[key], value);
            }
            "answer" => self.is(&[key], value),
            "state" => self.parts(&[key], value),
            "effects" => self.effects(value),
            // The rest is texts.
            _ => self.says(&[key], value),
        }
    }

    fn is(&mut self, path: &[&str], value: &Node) {
        self.push(path, value, Test::Is(value.json()));
    }

    fn push(&mut self, path: &[&str], at: &Node, test: Test) {
        let path = path.iter().map(|&it| it.to_owned()).collect();
        self.wanted.push(Wanted { span: at.span.clone(), path, test });
    }

    fn parts(&mut self, path: &[&str], node: &Node) {
        for (key, value) in node.entries().unwrap_or_default() {
            self.is(&[path, &[key.text().unwrap_or_default()]].concat(), value);
        }
    }

    fn named(&mut self, group: &str, node: &Node, what: (&str, &'static str), known: &[String]) {
        for (key, value) in node.entries().unwrap_or_default() {
            check_name(key, what, known, self.findings);
            self.is(&[group, key.text().unwrap_or_default()], value);
        }
    }

    fn tasks(&mut self, node: &Node) {
        for (key, value) in node.entries().unwrap_or_default() {
            let path = ["tasks", key.text().unwrap_or_default()];
            match value.text() {
                Some("gone") => self.push(&path, value, Test::Gone),
                _ => self.is(&path, value),
            }
        }
    }

    fn considerations(&mut self, node: &Node) {
        for (key, value) in node.entries().unwrap_or_default() {
            let known = &self.known.considerations;
            check_name(key, ("consideration", "unknown-consideration"), known, self.findings);
            let id = key.text().unwrap_or_default();
            let path = ["considerations", id];
            if let Some(word) = value.text() {
                let part = match word {
                    "blocks" | "warns" | "recorded" => "consequence",
                    _ => "status",
                };
                self.is(&[path.as_slice(), &[part]].concat(), value);
            }
            let parts = value.entries().unwrap_or_default();
            if value.entries().is_some() && parts.is_empty() {
                let message = format!("nothing is expected of `{id}`");
                let finding = Diagnostic::error("empty-expectation", value.span.clone(), message);
                self.findings.push(finding.with_help("write `satisfied`, or `status: satisfied`"));
            }
            for (part, value) in parts {
                let part = part.text().unwrap_or_default();
                let path = [path.as_slice(), &[part]].concat();
                match part {
                    "status" | "consequence" => self.is(&path, value),
                    _ => self.says(&path, value),
                }
            }
        }
    }

    /// Templates come to texts, whatever is in them.
    fn updated_input(&mut self, node: &Node) {
        let Some(fields) = node.entries() else { return self.is(&["updated_input"], node) };
        for (key, value) in fields {
            let path = ["updated_input", key.text().unwrap_or_default()];
            match value.text() {
                Some(text) => {
                    let (equals, matches) = (Some(text.to_owned()), None);
                    let (contains, lacks) = (Vec::new(), Vec::new());
                    self.push(&path, value, Test::Says { equals, contains, lacks, matches });
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
                        check_name(probe, ("probe", "unknown-probe"), &known, self.findings);
                    }
                    self.is(&path, value);
                }
                "logged" if value.entries().is_some() => self.parts(&["effects", "log"], value),
                _ => self.is(&path, value),
            }
        }
    }

    /// A text, a list of texts, or a map that says more exactly what a text must be.
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
        // An empty text is in every text, and what matches it may match anywhere: it would always pass.
        let vacuous = contains.iter().chain(&lacks).any(String::is_empty)
            || (equals.is_none()
                && contains.is_empty()
                && lacks.is_empty()
                && matches.as_ref().is_none_or(holds_always));
        if vacuous {
            let message = "this says nothing: it holds of every text";
            let finding = Diagnostic::error("empty-expectation", node.span.clone(), message);
            self.findings.push(finding.with_help("write `{equals: \"\"}` for no text at all"));
            return;
        }
        self.push(path, node, Test::Says { equals, contains, lacks, matches });
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

/// Whether a regex matches within every text.
fn holds_always(regex: &Regex) -> bool {
    regex_syntax::parse(regex.as_str()).is_ok_and(|it| matches_every_text(&it))
}
