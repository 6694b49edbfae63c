//! What is known of signals beside their files: claims, endings that are not yet told everywhere,
//! answers that the agent was not told. One document, changed under the lock of the signals.
//!
//! A signal ends the moment its ending stands here; the history and the removal of its file follow,
//! and are made up for by whoever comes next, where a process died in between.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::limits::SIGNAL_ANSWERS_MAX;
use crate::time::Timestamp;

const VERSION: u32 = 1;

/// Who wants to consume a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) by: String,
    pub(super) until: Timestamp,
}

/// The document.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Ledger {
    /// By id of the signal.
    pub(super) claims: BTreeMap<String, Claim>,
    /// When a call first saw a signal late, by id of the signal.
    pub(super) late: BTreeMap<String, Timestamp>,
    /// Entries of the history by id, each with the file that goes.
    pub(super) endings: BTreeMap<String, Value>,
    /// Drifts before this moment do not count any more.
    pub(super) drifts_from: Option<Timestamp>,
    /// What became of requests, oldest first, until the agent was told.
    pub(super) answers: Vec<Value>,
    /// Keys of others.
    beside: Map<String, Value>,
}

impl Ledger {
    pub(super) fn read(value: Option<Value>) -> Self {
        let Some(Value::Object(mut all)) = value else { return Self::default() };
        let mut map = |key: &str| match all.remove(key) {
            Some(Value::Object(entries)) => entries,
            _ => Map::new(),
        };
        let claim = |it: &Value| {
            let by = it.get("by")?.as_str()?.to_owned();
            Some(Claim { by, until: Timestamp::parse(it.get("until")?.as_str()?)? })
        };
        let claims =
            map("claims").iter().filter_map(|(id, it)| Some((id.clone(), claim(it)?))).collect();
        let time = |it: &Value| Timestamp::parse(it.as_str()?);
        let late = map("late").into_iter().filter_map(|(id, it)| Some((id, time(&it)?))).collect();
        let endings = map("endings").into_iter().filter(|(_, it)| it.is_object()).collect();
        let drifts_from = all.remove("drifts_from");
        let drifts_from = drifts_from.and_then(|it| Timestamp::parse(it.as_str()?));
        let answers = match all.remove("answers") {
            Some(Value::Array(answers)) => answers,
            _ => Vec::new(),
        };
        all.remove("version");
        Self { claims, late, endings, drifts_from, answers, beside: all }
    }

    pub(super) fn text(&self) -> String {
        let claim = |it: &Claim| json!({"by": it.by, "until": it.until.to_string()});
        let claims: Map<String, Value> =
            self.claims.iter().map(|(id, it)| (id.clone(), claim(it))).collect();
        let late: Map<String, Value> =
            self.late.iter().map(|(id, it)| (id.clone(), it.to_string().into())).collect();
        let endings: Map<String, Value> = self.endings.clone().into_iter().collect();
        let mut all = self.beside.clone();
        all.insert("version".to_owned(), VERSION.into());
        all.insert("claims".to_owned(), claims.into());
        all.insert("late".to_owned(), late.into());
        all.insert("endings".to_owned(), endings.into());
        all.insert("drifts_from".to_owned(), self.drifts_from.map(|it| it.to_string()).into());
        all.insert("answers".to_owned(), self.answers.clone().into());
        format!("{:#}\n", Value::Object(all))
    }

    /// Records since when a signal is late, or that it is not.
    pub(super) fn set_late(&mut self, id: &str, since: Option<Timestamp>) {
        match since {
            Some(since) => {
                self.late.insert(id.to_owned(), since);
            }
            None => {
                self.late.remove(id);
            }
        }
    }

    /// Takes note of an answer that the agent is to be told; the oldest are forgotten.
    pub(super) fn answered(&mut self, answer: Value) {
        self.answers.push(answer);
        let surplus = self.answers.len().saturating_sub(SIGNAL_ANSWERS_MAX);
        self.answers.drain(..surplus);
    }
}
