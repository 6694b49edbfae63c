//! Incremental reader of an agent command's output: Claude Code's `--output-format stream-json` and
//! `json`, Codex's `exec --json`, Gemini's `-o stream-json`, or plain text.
//!
//! The format of each line is detected; a line that is not a JSON object is text. Returns
//! transcript lines in Claude Code's format, whatever client printed them.
//!
//! INVARIANT: no output is an error.

mod codex;
mod gemini;
mod lines;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use policyd_base::limits::OUTPUT_LINE_BYTES_MAX;
use policyd_facts::meters::{Meters, Usage};
use policyd_harness::claude_code;

/// Stored lines of the agent's text.
const SAID_LINES: usize = 200;
/// Maximum characters of one such line.
const SAID_CHARS: usize = 2_000;
/// Maximum number of API calls whose tokens are counted separately.
const CALLS_MAX: usize = 20_000;

/// Maximum cost of a command in US dollars, so that sums stay finite.
const COST_USD_MAX: f64 = 1e12;

/// Tokens of one API call.
#[derive(Debug, Clone, Default)]
struct CallUsage {
    model: String,
    usage: Usage,
    /// Whether the call belongs to the main conversation.
    own: bool,
}

/// Result of the output that was read so far.
#[derive(Debug, Clone, Default)]
pub struct AgentOutput {
    /// The unfinished line.
    begun: Vec<u8>,
    /// Whether the unfinished line is too long, so that it is dropped.
    overlong: bool,
    /// Texts of the agent, newest last.
    said: VecDeque<String>,
    /// API calls, oldest first.
    calls: Vec<CallUsage>,
    /// Index of each call in `calls`, because each block of a message repeats the tokens of its
    /// call.
    places: BTreeMap<String, usize>,
    /// Total tokens that the command reported at its end.
    told: Option<Usage>,
    /// Cost in US dollars that the command reported.
    pub cost_usd: Option<f64>,
    /// The agent's last answer.
    pub answer: String,
    /// Session id of the agent.
    pub session_id: String,
    /// Model, if it was reported.
    pub model: String,
    /// The client's name of an error.
    pub error: String,
    /// Whether the command reported a failure.
    pub failed: bool,
    /// Whether a structured answer contains `complete: true`.
    pub complete: bool,
    /// Number of lines that were dropped because of their length.
    pub dropped: u32,
    /// Number of records of the conversation.
    pub records: u32,
    /// Number of visible tool calls, those of subagents included.
    pub tools: u32,
    /// Gemini: text of the agent that is not finished yet.
    begun_text: String,
    /// Codex: commands that have begun.
    begun_commands: BTreeSet<String>,
}

/// A file that an agent wrote, if the output contains only its path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenFile {
    /// Text before the run began. Empty for a file that is new or unknown.
    pub before: String,
    /// Current text. `None` if the file does not exist, is too large, or is not text.
    pub now: Option<String>,
}

/// Reads a file that the output names. Arguments: its path, and whether it existed before.
pub type LookUp<'l> = &'l dyn Fn(&str, bool) -> WrittenFile;

impl AgentOutput {
    /// Ingests output. Returns the complete lines that are records of the conversation.
    pub fn absorb(&mut self, bytes: &[u8]) -> Vec<String> {
        self.absorb_with(bytes, &|_, _| WrittenFile::default())
    }

    /// Like [`absorb`](Self::absorb). `look_up` supplies the texts of files that the output only
    /// names.
    pub fn absorb_with(&mut self, bytes: &[u8], look_up: LookUp<'_>) -> Vec<String> {
        let mut records = Vec::new();
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            self.lengthen(line);
            records.extend(self.line(look_up));
            rest = after.get(1..).unwrap_or_default();
        }
        self.lengthen(rest);
        records
    }

    /// Ingests the last line, which can lack a line break.
    pub fn finish(&mut self) -> Vec<String> {
        let mut records = self.line(&|_, _| WrittenFile::default());
        records.extend(self.end_text());
        records
    }

    fn lengthen(&mut self, more: &[u8]) {
        if self.begun.len().saturating_add(more.len()) > OUTPUT_LINE_BYTES_MAX {
            self.overlong = true;
            self.begun.clear();
        }
        if !self.overlong {
            self.begun.extend_from_slice(more);
        }
    }

    /// Ends the unfinished line.
    fn line(&mut self, look_up: LookUp<'_>) -> Vec<String> {
        let line = std::mem::take(&mut self.begun);
        if std::mem::take(&mut self.overlong) {
            self.dropped = self.dropped.saturating_add(1);
            return Vec::new();
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Array(records)) if records.iter().any(Value::is_object) => {
                records.iter().flat_map(|it| self.record(it, look_up)).collect()
            }
            Ok(record @ Value::Object(_)) => self.record(&record, look_up),
            Ok(_) | Err(_) => {
                self.say(text);
                Vec::new()
            }
        }
    }

    fn say(&mut self, text: &str) {
        for line in text.lines().filter(|it| !it.trim().is_empty()) {
            self.said.push_back(line.chars().take(SAID_CHARS).collect());
        }
        let over = self.said.len().saturating_sub(SAID_LINES);
        self.said.drain(..over);
    }

    /// Ingests one JSON object. Returns its records of the conversation.
    fn record(&mut self, record: &Value, look_up: LookUp<'_>) -> Vec<String> {
        let text = |key: &str| record.get(key).and_then(Value::as_str).unwrap_or_default();
        self.records = self.records.saturating_add(u32::from(text("type") == "assistant"));
        for key in ["session_id", "thread_id"] {
            if !text(key).is_empty() {
                text(key).clone_into(&mut self.session_id);
            }
        }
        match text("type") {
            "assistant" => {
                self.assistant(record);
                vec![as_transcript(record)]
            }
            "user" => vec![as_transcript(record)],
            "system" => {
                if !text("model").is_empty() {
                    text("model").clone_into(&mut self.model);
                }
                vec![record.to_string()]
            }
            "result" => {
                let records = self.end_text().into_iter().collect();
                self.result(record);
                records
            }
            "turn.completed" | "turn.failed" | "error" => {
                self.codex(record);
                Vec::new()
            }
            "item.started" | "item.completed" => self.codex_item(record, look_up),
            "init" | "message" | "tool_use" | "tool_result" => self.gemini(record),
            _ => Vec::new(),
        }
    }

    fn assistant(&mut self, record: &Value) {
        let Some(message) = record.get("message") else { return };
        let own = record.get("parent_tool_use_id").is_none_or(Value::is_null);
        let text = |it: &Value, key: &str| {
            it.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        if let Some(usage) = message.get("usage").filter(|it| it.is_object()) {
            let call = CallUsage { model: text(message, "model"), usage: usage_of(usage), own };
            self.call(&text(message, "id"), call);
        }
        let name = text(record, "error");
        if let Some(fields) = record.as_object().filter(|_| !name.is_empty()) {
            self.error = claude_code::error_name(fields, name);
        }
        let blocks = message.get("content").and_then(Value::as_array);
        let calls = blocks.into_iter().flatten().filter(|it| text(it, "type") == "tool_use");
        self.tools = self.tools.saturating_add(u32::try_from(calls.count()).unwrap_or(u32::MAX));
        let texts = blocks.into_iter().flatten().filter_map(|it| it.get("text")?.as_str());
        let said: Vec<&str> = texts.collect();
        if !said.is_empty() && own {
            self.answer = said.join("\n");
        }
        said.iter().for_each(|it| self.say(it));
        let model = text(message, "model");
        if own && !model.is_empty() && !model.starts_with('<') {
            self.model = model;
        }
    }

    fn call(&mut self, id: &str, call: CallUsage) {
        if let Some(known) = self.places.get(id).copied().and_then(|at| self.calls.get_mut(at)) {
            *known = call;
        } else if self.calls.len() < CALLS_MAX {
            if !id.is_empty() {
                self.places.insert(id.to_owned(), self.calls.len());
            }
            self.calls.push(call);
        }
    }

    /// Ingests Claude Code's result at the end of a call.
    fn result(&mut self, record: &Value) {
        let cost = record.get("total_cost_usd").and_then(Value::as_f64);
        let cost = cost.filter(|it| it.is_finite() && *it >= 0.0);
        self.cost_usd = cost.map(|it| it.min(COST_USD_MAX)).or(self.cost_usd);
        if let Some(usage) = record.get("usage").filter(|it| it.is_object()) {
            self.told = Some(usage_of(usage));
        }
        if let Some(stats) = record.get("stats").filter(|it| it.is_object()) {
            self.told = Some(gemini::usage_of(stats));
        }
        let models = record.get("modelUsage").and_then(Value::as_object);
        if let Some(model) =
            models.and_then(|it| it.keys().next()).filter(|_| self.model.is_empty())
        {
            self.model.clone_from(model);
        }
        if let Some(answer) = record.get("result").and_then(Value::as_str) {
            if self.answer != answer {
                self.say(answer);
            }
            answer.clone_into(&mut self.answer);
        }
        let text = |key: &str| record.get(key).and_then(Value::as_str).unwrap_or_default();
        if text("status") == "error" {
            let message = record.pointer("/error/message").and_then(Value::as_str);
            message.unwrap_or_default().clone_into(&mut self.answer);
        }
        // An agent that used up its own turns did not fail.
        let subtype = text("subtype");
        let ran_out = subtype.starts_with("error_max_");
        self.failed = record.get("is_error").and_then(Value::as_bool) == Some(true) && !ran_out
            || subtype == "error_during_execution"
            || text("status") == "error";
        if let Some(fields) = record.as_object().filter(|_| self.failed) {
            self.error = claude_code::error_name(fields, std::mem::take(&mut self.error));
        }
        let structured = record.get("structured_output").and_then(|it| it.get("complete"));
        self.complete = structured.and_then(Value::as_bool) == Some(true);
    }

    /// Returns the token counters: by call if calls were reported, otherwise the total.
    #[must_use]
    pub fn meters(&self) -> Meters {
        let mut meters = Meters { model: self.model.clone(), ..Meters::default() };
        for call in &self.calls {
            let model = if call.model.is_empty() { &self.model } else { &call.model };
            if call.own {
                meters.call(model, &call.usage);
            } else {
                meters.spend(model, &call.usage);
            }
        }
        if let Some(told) = self.told.filter(|_| self.calls.is_empty()) {
            meters.spend(&self.model, &told);
        }
        meters
    }

    /// Returns the last texts of the agent.
    #[must_use]
    pub fn last_texts(&self) -> String {
        self.said.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// Formats the record as a transcript line. Work of a subagent is a side chain.
fn as_transcript(record: &Value) -> String {
    let mut record = record.clone();
    let of_subagent = record.get("parent_tool_use_id").is_some_and(|it| !it.is_null());
    if let Value::Object(fields) = &mut record
        && of_subagent
    {
        fields.insert("isSidechain".to_owned(), true.into());
    }
    record.to_string()
}

fn number(usage: &Value, key: &str) -> u64 {
    usage.get(key).and_then(Value::as_u64).unwrap_or(0)
}

fn usage_of(usage: &Value) -> Usage {
    Usage {
        input: number(usage, "input_tokens"),
        output: number(usage, "output_tokens"),
        cache_read: number(usage, "cache_read_input_tokens"),
        cache_creation: number(usage, "cache_creation_input_tokens"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> AgentOutput {
        let mut output = AgentOutput::default();
        output.absorb(text.as_bytes());
        output.finish();
        output
    }

    const STREAM: &str = r#"{"type":"system","subtype":"init","session_id":"s1","model":"claude-x"}
{"type":"assistant","message":{"id":"m1","model":"claude-x","content":[{"type":"text","text":"one"}],"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":20}},"parent_tool_use_id":null}
{"type":"assistant","message":{"id":"m1","model":"claude-x","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}],"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":20}}}
{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"sub"}],"usage":{"input_tokens":1,"output_tokens":1}},"parent_tool_use_id":"t"}
{"type":"result","subtype":"success","is_error":false,"result":"one","total_cost_usd":0.25,"usage":{"input_tokens":11,"output_tokens":6}}
"#;

    #[test]
    fn tokens_are_counted_once_per_call_and_the_context_is_the_main_ones() {
        let output = read(STREAM);
        let all = Usage { input: 11, output: 6, cache_read: 100, cache_creation: 20 };
        let meters = output.meters();
        assert_eq!((meters.total(), meters.occupied, meters.calls), (all, 130, 1));
        assert_eq!(meters.model, "claude-x");
        assert_eq!((output.answer.as_str(), output.session_id.as_str()), ("one", "s1"));
        assert!(output.cost_usd == Some(0.25) && !output.failed && !output.complete);
    }

    #[test]
    fn however_the_bytes_are_cut_the_same_is_read() {
        let whole = read(STREAM);
        for size in [1, 7, 64, 4096] {
            let mut output = AgentOutput::default();
            let records: usize =
                STREAM.as_bytes().chunks(size).map(|it| output.absorb(it).len()).sum();
            assert_eq!(records, 4, "{size}");
            assert_eq!(
                (output.meters(), output.last_texts()),
                (whole.meters(), whole.last_texts()),
                "{size}"
            );
        }
    }

    #[test]
    fn one_object_or_an_array_of_them_is_read_as_a_stream_is() {
        let lines: Vec<&str> = STREAM.lines().collect();
        assert_eq!(read(&format!("[{}]", lines.join(","))).meters(), read(STREAM).meters());
        let last = read(lines.last().unwrap());
        assert_eq!((last.meters().total().input, last.cost_usd), (11, Some(0.25)));
    }

    #[test]
    fn garbage_is_text_and_a_flood_is_dropped() {
        let output =
            read("{\"type\":\"result\"\n{]\n\u{0}\u{1}\n42\n\"result\"\n[1,2]\n{\"type\":7}\n");
        assert_eq!(output.meters(), Meters::default());
        assert!(!output.failed && !output.complete && output.cost_usd.is_none());
        let mut output = AgentOutput::default();
        let chunk = vec![b'x'; 1024 * 1024];
        (0..9).for_each(|_| assert!(output.absorb(&chunk).is_empty()));
        assert!(output.begun.len() <= OUTPUT_LINE_BYTES_MAX);
        output.absorb(b"\nafter\n");
        assert_eq!((output.dropped, output.last_texts().as_str()), (1, "after"));
    }

    #[test]
    fn text_that_says_complete_is_no_structured_answer() {
        for (line, complete) in [
            (r#"{"type":"result","structured_output":{"complete":true}}"#, true),
            (r#"{"type":"result","structured_output":{"complete":"true"}}"#, false),
            (r#"{"type":"result","result":"{\"complete\":true} LOOP_COMPLETE"}"#, false),
            (r#"{"type":"assistant","structured_output":{"complete":true}}"#, false),
            ("LOOP_COMPLETE COMPLETION PROMISE FULFILLED", false),
        ] {
            assert_eq!(read(line).complete, complete, "{line}");
        }
    }

    #[test]
    fn an_agent_that_used_up_its_own_turns_did_not_fail() {
        let failed = |line: &str| read(line).failed;
        assert!(failed(r#"{"type":"result","subtype":"success","is_error":true}"#));
        assert!(failed(r#"{"type":"result","subtype":"error_during_execution"}"#));
        assert!(!failed(r#"{"type":"result","subtype":"error_max_turns","is_error":true}"#));
    }

    #[test]
    fn an_overloaded_server_is_known_by_its_status() {
        let error = |line: &str| read(line).error;
        for (line, name) in [
            (
                r#"{"type":"assistant","error":"server_error","api_error_status":529,"message":{}}"#,
                "overloaded",
            ),
            (
                r#"{"type":"assistant","error":"server_error","api_error_status":500,"message":{}}"#,
                "server_error",
            ),
            (
                r#"{"type":"assistant","error":"server_error","message":{}}
{"type":"result","subtype":"success","is_error":true,"api_error_status":529}"#,
                "overloaded",
            ),
        ] {
            assert_eq!(error(line), name, "{line}");
        }
    }

    #[test]
    fn codex_tells_its_tokens_at_the_end_of_a_turn() {
        let output = read(
            r#"{"type":"item.completed","item":{"type":"agent_message","text":"done"}}
{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":7}}"#,
        );
        let all = output.meters().total();
        assert_eq!((all.input, all.cache_read, all.output), (60, 40, 7));
        assert_eq!(output.answer, "done");
        assert!(read(r#"{"type":"turn.failed","error":{"message":"overloaded"}}"#).failed);
    }

    #[test]
    fn an_overloaded_provider_is_told_by_its_status() {
        let assistant = r#"{"type":"assistant","error":"server_error","message":{"id":"m","content":[{"type":"text","text":"API Error: 529"}]}}"#;
        let field =
            r#"{"type":"result","is_error":true,"api_error_status":529,"result":"Overloaded"}"#;
        let text = r#"{"type":"result","is_error":true,"result":"API Error: 529 Overloaded"}"#;
        let other = r#"{"type":"result","is_error":true,"api_error_status":500,"result":"x"}"#;
        for (result, expected) in
            [(field, "overloaded"), (text, "overloaded"), (other, "server_error")]
        {
            assert_eq!(read(&format!("{assistant}\n{result}\n")).error, expected, "{result}");
        }
    }
}
