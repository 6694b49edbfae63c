//! What guards decided about, small enough to be logged with what they said: so that it can be judged
//! again. Lives here: the values, taken from a tool call and made into one again.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::inputs::Whose;
use crate::checksum::hex;
use crate::facts::call::{CallEnvironment, LinkTarget};
use crate::facts::event::{Continued, Event};
use crate::limits::READING_LOGGED_BYTES_MAX;

/// What guards decided about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["program", "pack_hash", "around", "masked", "left_out"]))]
pub struct Called {
    /// Version of the program.
    #[schemars(length(min = 1))]
    pub program: String,
    /// What the sources of the pack came to, in hexadecimal digits.
    pub pack_hash: String,
    /// The folder of the pack; absent for the built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pack_folder: Option<String>,
    /// Where it happened.
    pub around: CallEnvironment,
    /// The tool's input, secrets masked.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub input: Value,
    /// What the user said, where the event is that; secrets masked.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schemars(with = "Option<String>")]
    pub prompt: Value,
    /// Secrets that were replaced before it was logged.
    pub masked: usize,
    /// Bytes that were too many to be logged.
    pub left_out: usize,
    /// The client's permission mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// The subagent's type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// What a session continues, where it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continued: Option<Continued>,
    /// Guards that also looked at what the session did or what is stored, which is not kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<String>,
    /// Files whose patches were read, which are not kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<String>,
}

/// What decided about a call.
#[derive(Debug, Clone, Copy)]
pub struct By<'a> {
    /// Version of the program.
    pub program: &'a str,
    /// What the sources of the pack come to.
    pub pack_hash: &'a [u8],
    /// The folder of the pack; none for the built-in one.
    pub pack_folder: Option<&'a str>,
}

impl Called {
    /// Takes it from an event. `mask` replaces secrets and counts them.
    #[must_use]
    pub fn new(
        event: &Event,
        (around, patches): (&CallEnvironment, &[String]),
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
        // A word of a command line is taken for a path where it could be one.
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
        let patches = patches.iter().map(|it| hidden(it)).collect();
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
            agent_type: event.agent_type.clone(),
            continued: Some(event.continued).filter(|it| *it != Continued::default()),
            elsewhere: Vec::new(),
            patches,
        }
    }

    /// The same event.
    #[must_use]
    pub fn event(&self, whose: &Whose, tool: Option<&str>) -> Event {
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

    /// What cannot be had of it any more, one sentence each.
    #[must_use]
    pub fn lost(&self) -> Vec<String> {
        let mut lost = Vec::new();
        if self.masked > 0 {
            lost.push(format!("{} secret(s) in the call were masked in the log", self.masked));
        }
        if self.left_out > 0 {
            lost.push(format!("the call was too long to be logged ({} bytes)", self.left_out));
        }
        for path in &self.patches {
            lost.push(format!("what the patch `{path}` said is not kept"));
        }
        for id in &self.elsewhere {
            lost.push(format!(
                "`{id}` also looked at what the session did or what was stored, which is not kept: it is \
                 not judged again"
            ));
        }
        lost
    }
}
