//! What `rationalizations.yaml` means.

use super::{Builder, text, texts};
use crate::policy::builtin;
use crate::policy::layers::{Entry, Layers, wanted};
use crate::policy::rationalizations::{EXCUSE, Rationalization, Rationalizations, Row};
use crate::script::pattern::{TextPatternSource, compile_regex};
use crate::script::types::Type;
use crate::source::Diagnostic;
use crate::source::node::Node;

const FILE: &str = "rationalizations.yaml";
/// Texts are looked at when everything is known but what was decided, and nothing is asked for them.
const AT_A_TEXT: &[&str] = &[
    "prefs",
    "probes",
    "breakers",
    "dead_letter",
    "escalations",
    "rule",
    "outcome",
    "rationalizations",
];

impl Builder<'_> {
    /// What all layers say of excuses.
    pub(super) fn rationalizations(&mut self, layers: &Layers) -> Rationalizations {
        let files = layers.top(FILE);
        let unless = files.iter().filter_map(|it| it.get("unless"));
        let unless: Vec<&Node> = unless.collect();
        unless.iter().for_each(|it| self.prove(Some(it)));
        let before = std::mem::replace(&mut self.unknown_here, AT_A_TEXT);
        let entries = wanted(layers.section(FILE, "entries"), self.own_only);
        let entries = entries.filter_map(|it| self.rationalization(it)).collect();
        self.unknown_here = before;
        let unless = unless.into_iter().flat_map(|it| texts(Some(it))).collect();
        Rationalizations { unless, entries }
    }

    fn rationalization(&mut self, entry: &Entry) -> Option<Row> {
        for key in ["wrong", "action"] {
            if entry.get(key).is_none() {
                self.missing(entry, key, "every excuse is countered");
            }
        }
        let pattern = TextPatternSource {
            phrases: texts(entry.get("phrases")),
            regexes: texts(entry.get("regexes")),
            unless: texts(entry.get("unless")),
        };
        self.prove(entry.get("regexes"));
        self.prove(entry.get("unless"));
        if pattern.phrases.is_empty() && pattern.regexes.is_empty() {
            self.missing(entry, "phrases", "without `phrases` or `regexes` it is never found");
        }
        let when = self.expression(entry.get("when"), Type::Bool);
        let blocking = self.expression(entry.get("blocking"), Type::Bool);
        if let Some(node) =
            entry.get("blocking").filter(|_| blocking.as_ref().is_some_and(|it| it.words_only))
        {
            let message = "words prove nothing, and this condition reads nothing else";
            let found = Diagnostic::warning("words-only-proof", node.span.clone(), message);
            self.diagnostics
                .push(found.with_help("ask for what happened: commands, files, results"));
        }
        let enabled = entry.is_used();
        let words = pattern.words().join("\n");
        let meant = Rationalization {
            id: entry.id.clone(),
            family: entry.get("family").and_then(Node::text).unwrap_or(EXCUSE).to_owned(),
            pattern,
            wrong: text(entry.get("wrong")),
            action: text(entry.get("action")),
            when,
            blocking,
        };
        enabled.then(|| Row { words, entry: meant.into() })
    }

    /// Complains of regexes that do not compile. A test proves those of the built-in pack.
    fn prove(&mut self, list: Option<&Node>) {
        let regexes = list.and_then(Node::items).unwrap_or_default().iter();
        for node in regexes.filter(|it| !builtin::wrote(&it.span.source)) {
            if let Err(why) = node.text().map_or(Ok(()), |it| compile_regex(it).map(|_| ())) {
                let message = format!("the regex is not valid: {why}");
                self.diagnostics.push(Diagnostic::error("bad-regex", node.span.clone(), message));
            }
        }
    }
}
