//! Transcripts of any size in the shape real sessions have: prompts, edits, test runs with their
//! output, files read, and the attachments and API records between them. About 4 KB a line.

use std::fmt::Write as _;

/// A transcript with that many turns of the agent (about 24 KB each); the same bytes every time.
pub(crate) fn generate(messages: usize) -> Vec<u8> {
    let mut out = String::new();
    let source = "    let value = compute(&input, index)?; // a \\\"quoted\\\" word\\n".repeat(180);
    let output = "test module::case_number_17 ... ok\\n".repeat(140);
    let thought = "Looking at how the parts fit together before changing them. ".repeat(30);
    let snapshot = "You are an agent working in a repository. ".repeat(160);
    for turn in 0..messages {
        let stem = Stem { turn, message: turn };
        if turn % 20 == 0 {
            stem.user(&mut out, &format!("\"please improve part {turn}\""), "");
        }
        stem.attachment(&mut out, &snapshot);
        stem.assistant(
            &mut out,
            &format!(
                r#"{{"type":"thinking","thinking":"{thought}","signature":"{}"}}"#,
                "QUJD".repeat(80)
            ),
        );
        stem.assistant(
            &mut out,
            r#"{"type":"text","text":"Now I read the file and run the tests."}"#,
        );
        let (tool, result) = match turn % 4 {
            0 => (
                format!(r#""name":"Edit","input":{{"file_path":"/w/src/part{}.rs","old_string":"let a = 1;","new_string":"let a = 2;\nlet b = 3;"}}"#, turn % 90),
                r#"{"filePath":"/w/src/part.rs","structuredPatch":[]}"#.to_owned(),
            ),
            1 => (
                r#""name":"Bash","input":{"command":"cd /w && cargo test 2>&1 | tail -200","description":"Run tests"}"#.to_owned(),
                format!(r#"{{"stdout":"{output}test result: ok. 140 passed; 0 failed","stderr":"","interrupted":false}}"#),
            ),
            _ => (
                format!(r#""name":"Read","input":{{"file_path":"/w/src/part{}.rs"}}"#, turn % 90),
                format!(r#"{{"type":"text","file":{{"filePath":"/w/src/part.rs","content":"{source}","numLines":180}}}}"#),
            ),
        };
        stem.assistant(&mut out, &format!(r#"{{"type":"tool_use","id":"toolu_{turn}",{tool}}}"#));
        let shown = if turn % 4 == 1 { &output } else { &source };
        let content = format!(
            r#"[{{"tool_use_id":"toolu_{turn}","type":"tool_result","content":"{shown}","is_error":false}}]"#
        );
        stem.user(&mut out, &content, &format!(r#","toolUseResult":{result}"#));
        let _infallible = writeln!(
            out,
            r#"{{"type":"file-history-snapshot","messageId":"m{turn}","snapshot":{{"trackedFileBackups":{{}}}},"isSnapshotUpdate":false}}"#
        );
    }
    out.into_bytes()
}

struct Stem {
    turn: usize,
    message: usize,
}

impl Stem {
    fn head(&self) -> String {
        let turn = self.turn;
        format!(r#"{{"parentUuid":"0b8e4d1c-{turn:012}","isSidechain":false"#)
    }

    fn tail(&self) -> String {
        format!(
            r#""uuid":"5f1c2a77-{:012}","timestamp":"2026-01-01T10:00:00.000Z","userType":"external","entrypoint":"cli","cwd":"/w","sessionId":"6fbb1ada-4a29-4af1-ab6e-bfc8745f3638","version":"2.1.329","gitBranch":"main"}}"#,
            self.turn
        )
    }

    fn user(&self, out: &mut String, content: &str, more: &str) {
        let (head, tail) = (self.head(), self.tail());
        let _infallible = writeln!(
            out,
            r#"{head},"promptId":"p","type":"user","message":{{"role":"user","content":{content}}}{more},{tail}"#
        );
    }

    fn assistant(&self, out: &mut String, block: &str) {
        let (head, tail, id) = (self.head(), self.tail(), self.message);
        let _infallible = writeln!(
            out,
            r#"{head},"message":{{"id":"msg_{id:020}","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{block}],"stop_reason":"tool_use","stop_sequence":null,"usage":{{"input_tokens":6,"cache_creation_input_tokens":410,"cache_read_input_tokens":14530,"output_tokens":120,"server_tool_use":{{"web_search_requests":0,"web_fetch_requests":0}},"service_tier":"standard"}}}},"requestId":"req_{id:020}","type":"assistant",{tail}"#
        );
    }

    fn attachment(&self, out: &mut String, text: &str) {
        let (head, tail) = (self.head(), self.tail());
        let _infallible = writeln!(
            out,
            r#"{head},"attachment":{{"type":"prompt_snapshot","systemPrompt":["{text}"]}},"type":"attachment",{tail}"#
        );
    }
}
