//! What the user answered at the permission prompts of a recorded session. A transcript does not contain the prompt, but whether
//! the call ran.

use std::collections::BTreeMap;

use serde_json::Value;

use super::calls::{RecordedCall, calls};
use policyd_facts::Facts;
use policyd_facts::call_subject::subject;
use policyd_facts::record::{self, EntryCall, RecordEntry};

/// Answer of the user at a permission prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PromptAnswer {
    /// The call ran.
    Approved,
    /// The call was denied.
    Denied,
}

/// A tool call, in a form that is equal for the same call in a hook event and in a transcript.
type CallKey = (String, String);

/// Answers of one transcript, collected line by line.
#[derive(Debug)]
pub struct PromptAnswers {
    /// Replaces secrets in an input, as in the decision log.
    mask: fn(&mut Value) -> usize,
    /// Calls by their ids. A client can use an id again.
    calls: BTreeMap<String, CallKey>,
    answers: BTreeMap<CallKey, PromptAnswer>,
}

impl PromptAnswers {
    /// Creates an empty collection. `mask` replaces the secrets of an input.
    #[must_use]
    pub fn new(mask: fn(&mut Value) -> usize) -> Self {
        Self { mask, calls: BTreeMap::new(), answers: BTreeMap::new() }
    }

    /// Adds a line of the transcript.
    pub fn take(&mut self, line: &[u8]) {
        let Some(record) = record::read(line) else { return };
        for call in calls(line, &record, &Facts::default()) {
            let RecordedCall { id, tool, mut input } = call;
            (self.mask)(&mut input);
            self.calls.insert(id, key(&tool, &input));
        }
        for entry in &record.entries {
            let result = match (entry, entry.call()) {
                (RecordEntry::Result(result), _) | (_, Some(EntryCall::Ended { result, .. })) => {
                    result
                }
                (_, Some(EntryCall::Begun { .. }) | None) => continue,
            };
            let Some(call) = self.calls.get(result.id.as_ref()) else { continue };
            let answer =
                if result.is_denied() { PromptAnswer::Denied } else { PromptAnswer::Approved };
            let known = self.answers.entry(call.clone()).or_insert(answer);
            // The same call can be denied and approved: what was denied once was not always approved.
            *known = answer.max(*known);
        }
    }

    /// Returns what the user answered to a call. `None` if the transcript does not contain the end of such a call.
    #[must_use]
    pub fn answer(&self, tool: &str, masked_input: &Value) -> Option<PromptAnswer> {
        self.answers.get(&key(tool, masked_input)).copied()
    }
}

/// Returns the key of a call: its command or file, or the whole input.
fn key(tool: &str, input: &Value) -> CallKey {
    let subject = subject(tool, input);
    let text = if subject == tool { input.to_string() } else { subject };
    (tool.to_owned(), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn called(id: &str, name: &str, input: &Value) -> Vec<u8> {
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": input});
        let message = json!({"id": id, "role": "assistant", "content": [block]});
        json!({"type": "assistant", "uuid": id, "message": message}).to_string().into_bytes()
    }

    fn ended(id: &str, is_error: bool, text: &str) -> Vec<u8> {
        let block = json!({"type": "tool_result", "tool_use_id": id, "is_error": is_error, "content": text});
        let message = json!({"role": "user", "content": [block]});
        json!({"type": "user", "uuid": format!("{id}r"), "message": message})
            .to_string()
            .into_bytes()
    }

    #[test]
    fn a_call_that_ran_was_approved_and_one_denial_counts() {
        let refused =
            "The user doesn't want to proceed with this tool use. The tool use was rejected";
        let bash = |command: &str| json!({"command": command});
        let search = json!({"kind": "open"});
        let mut answers = PromptAnswers::new(|_| 0);
        for line in [
            called("a", "Bash", &bash("npm run lint")),
            ended("a", false, "ok"),
            called("b", "Bash", &bash("terraform apply")),
            ended("b", true, refused),
            called("c", "Bash", &bash("terraform apply")),
            ended("c", false, "done"),
            called("d", "Bash", &bash("make deploy")),
            called("e", "mcp__tracker__search", &search),
            ended("e", true, "Error: not found"),
        ] {
            answers.take(&line);
        }
        assert_eq!(answers.answer("Bash", &bash("npm run lint")), Some(PromptAnswer::Approved));
        assert_eq!(answers.answer("Bash", &bash("terraform apply")), Some(PromptAnswer::Denied));
        assert_eq!(answers.answer("Bash", &bash("make deploy")), None, "its end is not recorded");
        assert_eq!(answers.answer("mcp__tracker__search", &search), Some(PromptAnswer::Approved));
        assert_eq!(answers.answer("mcp__tracker__search", &json!({"kind": "closed"})), None);
    }
}
