//! Checks and the considerations that use them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::{Builder, Entry, on_error, place, text};
use crate::facts::event::{EVENT_NAMES, EventKind};
use crate::policy::layers::{Entries, Layers};
use crate::policy::review::{Base, applicable_types};
use crate::policy::{Check, CheckBody, Consideration, Mode, OnError, Severity};
use crate::script::types::Type;
use crate::source::Diagnostic;
use crate::source::node::Node;
use crate::time::Timestamp;

/// Checkers of the packs below by their names, each built once somebody names it.
#[derive(Debug)]
pub(in crate::policy) struct Named(BTreeMap<String, OnceLock<Option<Check>>>);

impl Named {
    /// None of which is built yet.
    pub(in crate::policy) fn new(layers: &Layers) -> Self {
        Self(layers.checkers.iter().map(|it| (it.id.clone(), OnceLock::new())).collect())
    }
}

/// Named checkers: the pack's own, and those of the packs below.
pub(super) struct Checkers<'a> {
    pub(super) own: &'a BTreeMap<String, Check>,
    pub(super) base: Option<&'a Base>,
    /// All of them.
    pub(super) known: &'a Entries,
}

impl Checkers<'_> {
    fn get(&self, name: &str) -> Option<&Check> {
        self.own.get(name).or_else(|| inherited(self.base?, name))
    }
}

/// A checker of the packs below; what is wrong there is said where they are looked at.
fn inherited<'b>(base: &'b Base, name: &str) -> Option<&'b Check> {
    let build = || {
        let entry = base.layers.checkers.iter().find(|it| it.id == name)?;
        let (names, mut unheard) = (Arc::clone(&base.built.names), Vec::new());
        Builder::new(names, true, None, &mut unheard).checker(entry)
    };
    base.checkers.0.get(name)?.get_or_init(build).as_ref()
}

impl Builder<'_> {
    pub(super) fn checker(&mut self, entry: &Entry) -> Option<Check> {
        let Some(satisfied) = entry.get("satisfied") else {
            self.missing(entry, "satisfied", "a checker says when it is satisfied");
            return None;
        };
        self.uses.clear();
        let satisfied = self.expression(Some(satisfied), Type::Bool)?;
        let when = self.expression(entry.get("when"), Type::Bool);
        let body = CheckBody {
            satisfied,
            blocking: self.expression(entry.get("blocking"), Type::Bool),
            details: self.choices(entry.get("details")),
            evidence: self.choices(entry.get("evidence")),
            error: self.choices(entry.get("error")),
        };
        let uses: Vec<String> = std::mem::take(&mut self.uses).into_iter().collect();
        Some(Check { name: entry.id.clone(), when, body: body.into(), uses: uses.into() })
    }

    pub(super) fn consideration(
        &mut self,
        entry: &Entry,
        checkers: &Checkers<'_>,
    ) -> Option<Consideration> {
        for key in ["category", "question", "severity"] {
            if entry.get(key).is_none() {
                self.missing(entry, key, "every consideration has it");
            }
        }
        let check = self.check(entry, checkers)?;
        let own_when = self.expression(entry.get("when"), Type::Bool);
        let severity = match text(entry.get("severity")).as_str() {
            "blocker" => Severity::Blocker,
            _ => Severity::Warning,
        };
        let mode = match text(entry.get("mode")).as_str() {
            "warn" => Mode::Warn,
            "shadow" => Mode::Shadow,
            _ => Mode::Enforce,
        };
        let guidance = entry.get("guidance").or_else(|| entry.get("message"));
        let uses = own_when.iter().flat_map(|it| it.uses.iter()).chain(check.uses.iter());
        let asks_for = |fact: &str| uses.clone().any(|it| it.starts_with(fact));
        let asks_for_keywords = asks_for("rule.keywords_seen");
        let asks_for_excuses = asks_for("rationalizations.");
        Some(Consideration {
            id: entry.id.clone(),
            category: text(entry.get("category")).into(),
            question: text(entry.get("question")).into(),
            guidance: text(guidance).trim().into(),
            severity,
            enabled: entry.is_used(),
            session_types: self.session_types(entry),
            on: self.events(entry),
            when: own_when,
            check,
            asks_for_keywords,
            asks_for_excuses,
            emit: text(entry.get("emit")),
            mode,
            once: entry.get("once").and_then(Node::bool).unwrap_or(false),
            on_error: on_error(&text(entry.get("on_error"))).unwrap_or(OnError::Allow),
            expires_millis: entry.get("expires").and_then(Node::date).map(Timestamp::millis),
            place: Arc::new(entry.span().map(place).unwrap_or_default()),
        })
    }

    /// The check written in place, or the named one.
    pub(super) fn check(&mut self, entry: &Entry, checkers: &Checkers<'_>) -> Option<Check> {
        if entry.get("satisfied").is_some() {
            // `when` of the entry is the consideration's own.
            let check = self.checker(entry)?;
            return Some(Check { when: None, ..check });
        }
        let Some(node) = entry.get("checker") else {
            let keys = ["checker", "satisfied"];
            self.missing_one_of(entry, keys, "name a checker, or write `satisfied`");
            return None;
        };
        let name = node.text()?;
        if let Some(check) = checkers.get(name) {
            return Some(self.overlaid(check.clone(), entry));
        }
        let known: Vec<&str> = checkers.known.iter().map(|it| it.id.as_str()).collect();
        if !known.contains(&name) {
            let message = format!("there is no checker `{name}`");
            let found = Diagnostic::error("unknown-checker", node.span.clone(), message);
            self.diagnostics.push(found.with_meant(name, &known));
        }
        None
    }

    /// A named checker with what the consideration says otherwise.
    pub(super) fn overlaid(&mut self, check: Check, entry: &Entry) -> Check {
        self.uses.clear();
        let (mut body, mut uses) = (check.body.into_inner(), check.uses.into_inner());
        if entry.get("blocking").is_some() {
            body.blocking = self.expression(entry.get("blocking"), Type::Bool);
        }
        let texts = [
            ("details", &mut body.details),
            ("evidence", &mut body.evidence),
            ("error", &mut body.error),
        ];
        for (key, own) in texts {
            if entry.get(key).is_some() {
                *own = self.choices(entry.get(key));
            }
        }
        uses.extend(std::mem::take(&mut self.uses));
        Check { body: body.into(), uses: uses.into(), ..check }
    }

    pub(super) fn session_types(&mut self, entry: &Entry) -> Vec<String> {
        let node = entry.get("applicable_session_types");
        let items = node.and_then(Node::items).unwrap_or_default();
        let names = Arc::clone(&self.names);
        for item in items {
            let name = item.text().unwrap_or_default();
            if name != "*" && !names.session_types.contains(name) {
                let known: Vec<&str> = names.session_types.iter().map(String::as_str).collect();
                self.unknown("unknown-session-type", "session type", item, &known);
            }
        }
        applicable_types(node).into_iter().map(str::to_owned).collect()
    }

    pub(super) fn events(&mut self, entry: &Entry) -> Vec<EventKind> {
        let node = entry.get("on");
        let mut events = Vec::new();
        for item in node.and_then(Node::items).unwrap_or_default() {
            match item.text().and_then(EventKind::find) {
                Some(kind) if kind.is_stop() => events.push(kind),
                Some(kind) => {
                    let message =
                        format!("considerations are judged at stops, not at `{}`", kind.name());
                    let found = Diagnostic::error("event-cannot-block", item.span.clone(), message);
                    self.diagnostics.push(found.with_help("write `stop` or `subagent_stop`"));
                }
                None => self.unknown("unknown-event", "event", item, EVENT_NAMES),
            }
        }
        match node {
            None => events.push(EventKind::Stop),
            Some(node) if node.items().is_some_and(<[Node]>::is_empty) => {
                let message = format!("`{}` is judged at no event", entry.id);
                let found = Diagnostic::error("no-event", node.span.clone(), message);
                self.diagnostics.push(found.with_help("leave `on` out, or write `enabled: false`"));
            }
            Some(_) => {}
        }
        events
    }
}
