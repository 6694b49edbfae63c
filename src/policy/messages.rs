//! `messages.yaml`: the texts of messages, by voice and condition.

use std::collections::{BTreeMap, BTreeSet};

use super::MessageChoice;
use super::builder::Builder;
use super::fields::{CHOICE_TEXT, CHOICE_WHEN};
use super::record::{TEMPLATE, record};
use super::records;
use super::shared::SharedValue;
use policyd_fact_table::template::{self, TemplatePart};
use policyd_yaml::node::Node;
use policyd_yaml::shape::Kind;

/// Ids of the messages. Other ids are errors.
const MESSAGES: &[&str] = &[
    "block_header",
    "block_footer",
    "warning_header",
    "release",
    "not_saved",
    "summary",
    "escalation",
    "review_done",
    "humans_asked",
    "queue_alarms",
    "signals_pending",
];

record! {
    /// One text of a message.
    pub(super) const MESSAGE_CHOICE: RecordType<MessageChoice> = {
        voice: Kind::Text => voice, "Voice it belongs to; every voice, where absent.";
        use CHOICE_WHEN => choice.when;
        use CHOICE_TEXT => choice.text by TEMPLATE;
    }
}

/// Returns the voices in which messages are written.
pub(super) fn voices(messages: &[SharedValue<Node>]) -> BTreeSet<String> {
    let choices = messages.iter().filter_map(|it| it.entries()).flatten();
    let choices = choices.filter_map(|(_, choices)| choices.items()).flatten();
    let said = choices.filter(|it| it.get("text").is_some());
    said.filter_map(|it| it.get("voice")?.text()).map(str::to_owned).collect()
}

/// Bytes that the beginning of a header needs, so that no other text begins with it by accident.
const HEADER_BYTES_MIN: usize = 16;

/// Returns the beginnings of the reasons with which a pack blocks a stop: the first line of each header, up to
/// its first expression.
pub(super) fn block_headers(messages: &BTreeMap<String, Vec<MessageChoice>>) -> Vec<String> {
    let choices = messages.get("block_header").into_iter().flatten();
    let beginning = |it: &MessageChoice| match template::pieces(&it.choice.text).ok()?.first()? {
        TemplatePart::Text(text) => {
            let line = text.trim_start().lines().next()?.trim_end();
            (line.len() >= HEADER_BYTES_MIN).then(|| line.to_owned())
        }
        TemplatePart::Hole { .. } => None,
    };
    choices.filter_map(beginning).collect()
}

impl Builder<'_> {
    /// Builds the texts of messages. Those of a pack come before the inherited ones.
    pub(super) fn messages<'n>(
        &mut self,
        files: impl Iterator<Item = &'n Node>,
    ) -> BTreeMap<String, Vec<MessageChoice>> {
        let mut messages: BTreeMap<String, Vec<MessageChoice>> = BTreeMap::new();
        for (key, choices) in files.filter_map(Node::entries).flatten() {
            let id = key.text().unwrap_or_default();
            if !MESSAGES.contains(&id) {
                self.unknown("unknown-name", "message", key, MESSAGES);
            }
            let names = records::names("messages.yaml", id);
            let choices =
                self.speaking_of(names, |builder| (MESSAGE_CHOICE.items.read)(choices, builder));
            if let Some(choices) = choices.filter(|choices| !choices.is_empty()) {
                messages.entry(id.to_owned()).or_default().extend(choices);
            }
        }
        messages
    }
}
