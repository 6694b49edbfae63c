//! What is asked outside before a decision: preferences in files, and probes.

use super::{Builder, text, texts};
use crate::limits;
use crate::policy::builtin;
use crate::policy::layers::Entry;
use crate::policy::{Parse, Preference, Probe};
use crate::script::pattern::compile_regex;
use crate::source::Diagnostic;
use crate::source::node::Node;

impl Builder<'_> {
    pub(super) fn preference(&mut self, entry: &Entry) -> Option<Preference> {
        let value = entry.get("value").and_then(Node::bool);
        if value.is_none() && (entry.get("files").is_none() || entry.get("regexes").is_none()) {
            let why = "a preference has `files` and `regexes`, or a `value`";
            self.missing_one_of(entry, ["regexes", "value"], why);
            return None;
        }
        let regexes = entry.get("regexes").and_then(Node::items).unwrap_or_default();
        for node in regexes.iter().filter(|it| !builtin::wrote(&it.span.source)) {
            if let Err(why) = node.text().map_or(Ok(()), |it| compile_regex(it).map(|_| ())) {
                let message = format!("the regex is not valid: {why}");
                self.diagnostics.push(Diagnostic::error("bad-regex", node.span.clone(), message));
            }
        }
        let (files, regexes) = (texts(entry.get("files")), texts(entry.get("regexes")));
        let once = text(entry.get("cache")) == "session";
        Some(Preference { id: entry.id.clone(), value, files, regexes, once })
    }

    pub(super) fn probe(&mut self, entry: &Entry) -> Option<Probe> {
        let command = texts(entry.get("command"));
        if command.is_empty() {
            if entry.get("command").is_none_or(|it| it.items().is_some()) {
                self.missing(entry, "command", "a probe runs a program");
            }
            return None;
        }
        let cures = entry.get("cures").and_then(Node::entries).unwrap_or_default();
        let cures = cures.iter().map(|(key, value)| (text(Some(key)), text(Some(value)))).collect();
        let parse = match text(entry.get("parse")).as_str() {
            "text" => Parse::Text,
            "reply" => Parse::Reply,
            _ => Parse::Json,
        };
        let enabled = entry.is_used();
        let timeout = entry.get("timeout").and_then(Node::duration);
        // A probe of the built-in pack that nobody touched ends with the deadline, as it is meant to.
        if let (Some(took), Some(span), Some(deadline)) = (timeout, entry.span(), self.deadline)
            && enabled
            && took > deadline
            && !builtin::wrote(&span.source)
        {
            let took = crate::time::duration_text(took);
            let message = format!("it may take {took}, all probes of one stop together less");
            let found = Diagnostic::warning("timeout-over-deadline", span.clone(), message);
            let deadline = crate::time::duration_text(deadline);
            self.diagnostics.push(found.with_help(format!(
                "raise `deadline` in policyd.yaml, which is {deadline}, above it, or leave it out"
            )));
        }
        Some(Probe {
            id: entry.id.clone(),
            enabled,
            command,
            stdin: entry.get("stdin").and_then(|it| self.template(it)).unwrap_or_default(),
            timeout: timeout.unwrap_or(limits::PROBE_TIMEOUT),
            cache: entry.get("cache").and_then(Node::duration),
            breaker: match text(entry.get("breaker")) {
                named if named.is_empty() => format!("probe/{}", entry.id),
                named => named,
            },
            parse,
            missing: text(entry.get("missing")),
            cures,
        })
    }
}
