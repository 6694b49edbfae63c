//! Reads Gemini's `-o stream-json`: messages in parts, tool calls, and results without an exit
//! code.

use serde_json::{Value, json};

use super::{AgentOutput, lines, number};
use policyd_facts::meters::Usage;

/// The tool that runs commands.
const SHELL: &str = "run_shell_command";
/// Suffix of a recorded command line. The stream contains `status: success` for a failed command
/// and no exit code. With this suffix the output alone decides the verdict.
const EXIT_CODE_UNKNOWN: &str = "\ntrue # the client does not report the exit code";

impl AgentOutput {
    /// Converts one line of the stream to records of the conversation.
    pub(super) fn gemini(&mut self, record: &Value) -> Vec<String> {
        let text = |key: &str| record.get(key).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "init" => {
                text("model").clone_into(&mut self.model);
                Vec::new()
            }
            "message" if text("role") == "assistant" => {
                self.begun_text.push_str(text("content"));
                let whole = record.get("delta").and_then(Value::as_bool) != Some(true);
                whole.then(|| self.end_text()).flatten().into_iter().collect()
            }
            // Another client uses the same types with other fields.
            "tool_use" if !text("tool_name").is_empty() => {
                let mut records: Vec<String> = self.end_text().into_iter().collect();
                let mut input = record.get("parameters").cloned().unwrap_or_else(|| json!({}));
                if let Some(Value::String(command)) = input.get_mut("command")
                    && text("tool_name") == SHELL
                {
                    command.push_str(EXIT_CODE_UNKNOWN);
                }
                self.tools = self.tools.saturating_add(1);
                records.push(lines::tool_use(text("tool_id"), text("tool_name"), &input));
                records
            }
            "tool_result" if !text("tool_id").is_empty() => {
                vec![result(record)]
            }
            _ => Vec::new(),
        }
    }

    /// Ends the unfinished text.
    pub(super) fn end_text(&mut self) -> Option<String> {
        let said = std::mem::take(&mut self.begun_text);
        if said.trim().is_empty() {
            return None;
        }
        self.say(&said);
        self.records = self.records.saturating_add(1);
        let line = lines::said(&said);
        self.answer = said;
        Some(line)
    }
}

fn result(record: &Value) -> String {
    let text = |path: &str| record.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (id, failed) = (text("/tool_id"), text("/status") != "success");
    let ending = match text("/error/type") {
        "policy_violation" => lines::ToolEnd::Denied,
        _ => lines::ToolEnd::of(failed),
    };
    let output = text("/output");
    let output = if failed && output.is_empty() { text("/error/message") } else { output };
    lines::tool_result(id, output, ending)
}

/// Returns the tokens of the whole run.
pub(super) fn usage_of(stats: &Value) -> Usage {
    let cached = number(stats, "cached");
    Usage {
        input: number(stats, "input_tokens").saturating_sub(cached),
        output: number(stats, "output_tokens"),
        cache_read: cached,
        cache_creation: 0,
    }
}
