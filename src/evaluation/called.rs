//! The event that guards decided about, small enough to be logged, so that `policyd explain` can
//! evaluate it again.
//!
//! Contains: the conversion from a tool call and back.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::inputs::DecisionSubject;
use policyd_base::limits::READING_LOGGED_BYTES_MAX;
use policyd_facts::call::{CallEnvironment, LinkTarget};
use policyd_facts::event::{ContinuedConversation, Event};
use policyd_yaml::checksum::hex;

/// The logged event of a guard decision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["program", "pack_hash", "around", "masked", "left_out"]))]
pub struct LoggedEvent {
    /// Version of policyd that decided.
    #[schemars(length(min = 1))]
    pub program: String,
    /// Hash of the pack's sources, in hexadecimal digits.
    pub pack_hash: String,
    /// Directory of the pack. `None` for the built-in pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pack_folder: Option<String>,
    /// Environment of the call.
    pub around: CallEnvironment,
    /// Input of the tool, with secrets replaced.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub input: Value,
    /// Prompt of a prompt event, with secrets replaced.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schemars(with = "Option<String>")]
    pub prompt: Value,
    /// Number of secrets that were replaced.
    pub masked: usize,
    /// Number of bytes that exceeded the limit and were not logged.
    pub left_out: usize,
    /// Permission mode of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// Whether no user was present.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
    /// Whether it happened in a turn of a supervised run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub supervised: bool,
    /// Type of the subagent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// The conversation that a session continues, at its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continued: Option<ContinuedConversation>,
    /// Guards that also read the session's facts, stored state, or files, which are not logged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<String>,
    /// Files whose content was read: patches that the call applies, and scripts that it runs. The content is not
    /// logged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_files: Vec<String>,
}

/// The program and the pack that decided.
#[derive(Debug, Clone, Copy)]
pub struct By<'a> {
    /// Version of policyd.
    pub program: &'a str,
    /// Hash of the pack's sources.
    pub pack_hash: &'a [u8],
    /// Directory of the pack. `None` for the built-in pack.
    pub pack_folder: Option<&'a str>,
}

impl LoggedEvent {
    /// Builds the log entry of an event. `mask` replaces secrets and returns their number.
    #[must_use]
    pub fn new(
        event: &Event,
        around: &CallEnvironment,
        read_files: &[String],
        by: By<'_>,
        mask: fn(&mut Value) -> usize,
    ) -> Self {
        let (mut input, mut prompt) = (event.tool_input.clone(), Value::from(event.prompt.clone()));
        let bytes = input.to_string().len().saturating_add(prompt.to_string().len());
        let left_out = if bytes > READING_LOGGED_BYTES_MAX { bytes } else { 0 };
        if left_out > 0 {
            (input, prompt) = (Value::Null, Value::Null);
        }
        let mut masked = mask(&mut input).saturating_add(mask(&mut prompt));
        let mut hidden = |text: &str| {
            let mut value = Value::from(text);
            masked = masked.saturating_add(mask(&mut value));
            value.as_str().unwrap_or_default().to_owned()
        };
        // A word of a command line counts as a path if it could be one.
        let mut around = around.clone();
        around.real = std::mem::take(&mut around.real)
            .into_iter()
            .map(|(path, it)| {
                let real = LinkTarget { lies: hidden(&it.lies), leads: hidden(&it.leads) };
                (hidden(&path), real)
            })
            .collect();
        around.clean_trees = std::mem::take(&mut around.clean_trees)
            .into_iter()
            .map(|(folder, clean)| (hidden(&folder), clean))
            .collect();
        let read_files = read_files.iter().map(|it| hidden(it)).collect();
        Self {
            program: by.program.to_owned(),
            pack_hash: hex(by.pack_hash),
            pack_folder: by.pack_folder.map(str::to_owned),
            around,
            input,
            prompt,
            masked,
            left_out,
            permission_mode: event.permission_mode.clone(),
            unattended: false,
            supervised: false,
            agent_type: event.agent_type.clone(),
            continued: Some(event.continued).filter(|it| *it != ContinuedConversation::default()),
            elsewhere: Vec::new(),
            read_files,
        }
    }

    /// Builds the event again.
    #[must_use]
    pub fn event(&self, whose: &DecisionSubject, tool: Option<&str>) -> Event {
        Event {
            agent_id: whose.agent.clone(),
            agent_type: self.agent_type.clone(),
            prompt_id: whose.prompt.clone(),
            folder: Some(PathBuf::from(&self.around.folder)),
            permission_mode: self.permission_mode.clone(),
            tool_name: tool.map(str::to_owned),
            tool_input: self.input.clone(),
            prompt: self.prompt.as_str().map(str::to_owned),
            continued: self.continued.unwrap_or_default(),
            ..Event::of(whose.kind, whose.session.clone())
        }
    }

    /// Lists the missing inputs, one sentence each.
    #[must_use]
    pub fn lost(&self) -> Vec<String> {
        let mut lost = Vec::new();
        if self.masked > 0 {
            lost.push(format!("secrets of the call masked in the log: {}", self.masked));
        }
        if self.left_out > 0 {
            lost.push(format!("the call was too long to be logged ({} bytes)", self.left_out));
        }
        for path in &self.read_files {
            lost.push(format!("what `{path}` contained is not kept"));
        }
        for id in &self.elsewhere {
            lost.push(format!(
                "`{id}` also looked at what the session did, what was stored, or what files contained, \
                 which is not kept: it is not judged again"
            ));
        }
        lost
    }
}
