//! Turns the layers of `signals.yaml` into meaning.

use std::sync::Arc;

use super::super::layers::Layers;
use super::super::records::signals::{is_common, signal};
use super::super::signals::{
    DriftRule, DriftStep, FieldType, Form, SignalField, SignalKind, SignalTrigger, Signals,
    TimeoutAction,
};
use super::{Builder, Entry, text, texts};
use crate::script::record::Shape;
use crate::script::types::Names;
use crate::source::Diagnostic;
use crate::source::node::Node;

const FILE: &str = "signals.yaml";

impl Builder<'_> {
    /// What `signals.yaml` means.
    pub(super) fn signals(&mut self, layers: &Layers) -> Signals {
        // What is named below may be a kind of the packs below.
        let own_only = std::mem::take(&mut self.own_only);
        let kinds =
            self.section_by(layers, (FILE, "signals"), &[], |it, entry, _| it.signal_kind(entry));
        self.own_only = own_only;
        let known: Vec<String> = kinds.iter().map(|it| it.id.clone()).collect();
        let all = Signals { kinds, ..Signals::default() };
        self.approvals(layers, &all);
        let named = |it: &mut Self, node: Option<&Node>| {
            let name = text(node);
            if let Some(node) = node.filter(|_| all.kind(&name).is_none()) {
                it.no_signal(node, &known);
            }
            name
        };
        let triggers = self.section_by(
            layers,
            (FILE, "triggers"),
            &["when", "emit", "reason"],
            |it, entry, when| {
                Some(SignalTrigger {
                    id: entry.id.clone(),
                    when,
                    emit: named(it, entry.get("emit")),
                    reason: it.template(entry.get("reason")?)?,
                    severity: entry
                        .get("severity")
                        .and_then(Node::text)
                        .unwrap_or("high")
                        .to_owned(),
                })
            },
        );
        let drift = self.section_by(
            layers,
            (FILE, "drift"),
            &["when", "do", "message"],
            |it, entry, when| {
                let flag = |key: &str| entry.get(key).and_then(Node::bool).unwrap_or(false);
                let emit = entry.get("emit").and_then(Node::items).unwrap_or_default();
                Some(DriftRule {
                    id: entry.id.clone(),
                    when,
                    action: text(entry.get("do")),
                    message: it.template(entry.get("message")?)?,
                    emit: emit.iter().map(|node| named(it, Some(node))).collect(),
                    pause_task: flag("pause_task"),
                    escalate: flag("escalate"),
                    reviewer: text(entry.get("reviewer")),
                })
            },
        );
        let drift_always = self.section_by(layers, (FILE, "drift_always"), &[], |it, entry, _| {
            Some(DriftStep { id: entry.id.clone(), text: it.choices(entry.get("text")) })
        });
        Signals { triggers, drift, drift_always, ..all }
    }

    fn signal_kind(&mut self, entry: &Entry) -> Option<SignalKind> {
        self.signal_name(entry);
        self.field_names(entry);
        let fields = signal_fields(entry);
        let names = Names { record: Some(Arc::new(signal(&fields))), ..Names::default() };
        let said = self.speaking(Arc::new(names), |it| it.choices(entry.get("text")));
        let shown = entry.get("shown").and_then(Node::bool).unwrap_or(false);
        if shown && said.is_empty() {
            self.missing(entry, "text", "say what the agent is told of it");
        }
        let on_timeout = texts(entry.get("on_timeout"));
        Some(SignalKind {
            id: entry.id.clone(),
            form: Form::find(&text(entry.get("form"))).unwrap_or(Form::Json),
            purpose: text(entry.get("purpose")),
            created_by: text(entry.get("created_by")),
            consumed_by: text(entry.get("consumed_by")),
            fields,
            answer_within: entry.get("answer_within").and_then(Node::duration),
            on_timeout: on_timeout.iter().filter_map(|it| TimeoutAction::find(it)).collect(),
            expires: entry.get("expires").and_then(Node::duration),
            approves: text(entry.get("approves")),
            ends_drift: entry.get("ends_drift").and_then(Node::bool).unwrap_or(false),
            interrupts: text(entry.get("interrupts")),
            shown,
            text: said,
        })
    }

    /// A name is also the name of a file.
    fn signal_name(&mut self, entry: &Entry) {
        let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*');
        let stars = entry.id.matches('*').count();
        if entry.id.chars().all(sound) && stars <= 1 && entry.id != "*" {
            return;
        }
        if let Some(span) = entry.span() {
            let message = format!("`{}` is no name of a signal", entry.id);
            let found = Diagnostic::error("bad-signal-name", span.clone(), message);
            self.diagnostics.push(found.with_help(
                "write letters, digits, `_` and `-`, with one `*` at most, as in `FEATURE_READY_*`",
            ));
        }
    }

    fn field_names(&mut self, entry: &Entry) {
        let fields = entry.get("fields").and_then(Node::entries).unwrap_or_default();
        for (key, _) in fields.iter().filter(|(key, _)| !may_be_field(key)) {
            let name = key.text().unwrap_or_default();
            let message = format!("`{name}` cannot be a field of a signal");
            let found = Diagnostic::error("bad-field-name", key.span.clone(), message);
            self.diagnostics.push(found.with_help(
                "take another name, of letters, digits and `_`; every signal has an `id`, a `name` \
                 and the like already",
            ));
        }
    }

    /// Whatever is approved must be there.
    fn approvals(&mut self, layers: &Layers, all: &Signals) {
        let known: Vec<String> = all.kinds.iter().map(|it| it.id.clone()).collect();
        let entries = layers.section(FILE, "signals").iter();
        for node in entries.filter_map(|it| it.get("approves")) {
            let name = text(Some(node));
            if !name.is_empty() && !known.contains(&name) {
                self.no_signal(node, &known);
            }
        }
    }

    fn no_signal(&mut self, node: &Node, known: &[String]) {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let name = node.text().unwrap_or_default();
        let message = format!("there is no signal `{name}`");
        let found = Diagnostic::error("unknown-signal", node.span.clone(), message);
        self.diagnostics.push(found.with_meant(name, &known));
    }
}

fn may_be_field(key: &Node) -> bool {
    let name = key.text().unwrap_or_default();
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    plain && !name.is_empty() && !is_common(name)
}

fn signal_fields(entry: &Entry) -> Vec<SignalField> {
    let fields = entry.get("fields").and_then(Node::entries).unwrap_or_default();
    let fields =
        fields.iter().filter(|(key, _)| may_be_field(key)).map(|(key, node)| SignalField {
            name: text(Some(key)),
            kind: FieldType::find(&text(node.get("type"))).unwrap_or(FieldType::Text),
            required: node.get("required").and_then(Node::bool).unwrap_or(false),
            description: text(node.get("description")),
        });
    fields.collect()
}

/// What the text of a signal sees.
pub(super) fn spoken_of(entry: &Entry) -> Shape {
    signal(&signal_fields(entry))
}
