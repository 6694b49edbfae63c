//! Reads `codex exec --json`: items with a beginning and an end.

use serde_json::{Value, json};

use super::{AgentOutput, LookUp, lines, number, usage_of};

impl AgentOutput {
    /// Ingests the end of a turn, or an error.
    pub(super) fn codex(&mut self, record: &Value) {
        let text = |path: &[&str]| {
            let found = path.iter().try_fold(record, |it, key| it.get(key));
            found.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        if let Some(usage) = record.get("usage").filter(|it| it.is_object()) {
            let mut used = usage_of(usage);
            used.cache_read = number(usage, "cached_input_tokens");
            used.input = used.input.saturating_sub(used.cache_read);
            self.told = Some(self.told.unwrap_or_default().plus(&used));
        }
        if text(&["type"]) == "turn.failed" || text(&["type"]) == "error" {
            self.failed = true;
            self.answer = [text(&["error", "message"]), text(&["message"])].concat();
        }
    }

    /// Converts the beginning or the end of an item to records of the conversation.
    pub(super) fn codex_item(&mut self, record: &Value, look_up: LookUp<'_>) -> Vec<String> {
        let Some(item) = record.get("item") else { return Vec::new() };
        let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
        let ended = record.get("type").and_then(Value::as_str) == Some("item.completed");
        // Ids start from 0 in each run of the program.
        let id = format!("{}-{}", self.session_id, text("id"));
        match text("type") {
            "command_execution" => self.codex_command(item, &id, ended),
            "file_change" if ended => self.codex_files(item, &id, look_up),
            "mcp_tool_call" if ended => {
                let name = format!("mcp__{}__{}", text("server"), text("tool"));
                let input = item.get("arguments").filter(|it| it.is_object());
                let input = input.cloned().unwrap_or_else(|| json!({}));
                self.tools = self.tools.saturating_add(1);
                let failed = text("status") == "failed";
                vec![
                    lines::tool_use(&id, &name, &input),
                    lines::tool_result(&id, "", lines::ToolEnd::of(failed)),
                ]
            }
            kind if ended && kind.ends_with("message") => {
                text("text").clone_into(&mut self.answer);
                self.say(text("text"));
                self.records = self.records.saturating_add(1);
                vec![lines::said(text("text"))]
            }
            _ => Vec::new(),
        }
    }

    /// Converts a command: a call at its beginning, a result at its end.
    fn codex_command(&mut self, item: &Value, id: &str, ended: bool) -> Vec<String> {
        let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
        let mut records = Vec::new();
        if self.begun_commands.insert(id.to_owned()) {
            self.tools = self.tools.saturating_add(1);
            records.push(lines::tool_use(id, "Bash", &json!({"command": text("command")})));
        }
        let code = item.get("exit_code").and_then(Value::as_i64);
        let output = text("aggregated_output");
        let result = match (text("status"), code) {
            ("declined", _) => lines::tool_result(id, output, lines::ToolEnd::Denied),
            ("completed" | "failed", Some(0)) => {
                lines::tool_result(id, output, lines::ToolEnd::Succeeded)
            }
            ("completed" | "failed", Some(code)) => {
                let output = format!("Exit code {code}\n{output}");
                lines::tool_result(id, &output, lines::ToolEnd::Failed)
            }
            ("failed", None) => lines::tool_result(id, output, lines::ToolEnd::Failed),
            // The command is still running, or its end is unknown.
            _ => return records,
        };
        if ended {
            records.push(result);
        }
        records
    }

    /// Converts a patch: one call for each file, with the text that `look_up` returns.
    fn codex_files(&mut self, item: &Value, id: &str, look_up: LookUp<'_>) -> Vec<String> {
        let failed = item.get("status").and_then(Value::as_str) != Some("completed");
        let changes = item.get("changes").and_then(Value::as_array);
        let mut records = Vec::new();
        for (at, change) in changes.into_iter().flatten().enumerate() {
            let text = |key: &str| change.get(key).and_then(Value::as_str).unwrap_or_default();
            let mut input = json!({"file_path": text("path")});
            if !failed && text("kind") != "delete" {
                let file = look_up(text("path"), text("kind") != "add");
                if let (Some(now), Value::Object(fields)) = (file.now, &mut input) {
                    fields.insert("content".to_owned(), now.into());
                    fields.insert("old_string".to_owned(), file.before.into());
                }
            }
            self.tools = self.tools.saturating_add(1);
            let id = format!("{id}-{at}");
            records.push(lines::tool_use(&id, "Write", &input));
            records.push(lines::tool_result(&id, "", lines::ToolEnd::of(failed)));
        }
        records
    }
}
