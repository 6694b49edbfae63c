//! Transcripts of any size in the shape real sessions have: prompts, edits, test runs with their
//! output, files read, and the attachments and API records between them. About 4 KB a message.

use std::io::{self, Write};

/// Messages (records of the user or the agent) in one turn.
const TURN_MESSAGES: usize = 4;
/// Turns from one prompt to the stop before the next, in a session of an agent that works long.
pub(crate) const TURNS_TO_A_STOP: usize = 20;

/// Writes a transcript of about that many messages, the same bytes every time; whether the tests
/// passed the last time they ran, how often the agent stops, and what it says at the end, is the caller's choice.
pub(crate) fn write(
    out: &mut dyn Write,
    messages: usize,
    passing: bool,
    turns_to_a_stop: usize,
    last_message: Option<&str>,
) -> io::Result<()> {
    let texts = Texts::new();
    let turns = (messages / TURN_MESSAGES).max(2);
    for number in 0..turns {
        let turn = Turn { number, texts: &texts };
        if number % turns_to_a_stop == 0 {
            if number > 0 {
                turn.said(out, "The part is improved, and the tests pass.")?;
            }
            turn.user(out, &format!("\"please improve part {number}\""), "")?;
        }
        turn.attachment(out)?;
        turn.thought(out)?;
        let last = number + 1 == turns;
        let (call, shown) = if last { turn.last_run(passing) } else { turn.call() };
        let failed = last && !passing;
        let content = format!(
            r#"[{{"tool_use_id":"toolu_{number}","type":"tool_result","content":"{shown}","is_error":{failed}}}]"#
        );
        let more = format!(r#","toolUseResult":{{"stdout":"{shown}","interrupted":false}}"#);
        turn.assistant(out, &format!(r#"{{"type":"tool_use","id":"toolu_{number}",{call}}}"#))?;
        turn.user(out, &content, &more)?;
        writeln!(
            out,
            r#"{{"type":"file-history-snapshot","messageId":"m{number}","snapshot":{{"trackedFileBackups":{{}}}},"isSnapshotUpdate":false}}"#
        )?;
        if let Some(text) = last_message.filter(|_| last) {
            turn.said(out, text)?;
        }
    }
    Ok(())
}

/// The long texts, made once.
struct Texts {
    source: String,
    output: String,
    thought: String,
    prompt: String,
}

impl Texts {
    fn new() -> Self {
        Self {
            source: "    let value = compute(&input, index)?; // a \\\"quoted\\\" word\\n"
                .repeat(70),
            output: "test module::case_number_17 ... ok\\n".repeat(100),
            thought: "Looking at how the parts fit together before changing them. ".repeat(30),
            prompt: "You are an agent working in a repository. ".repeat(60),
        }
    }
}

struct Turn<'t> {
    number: usize,
    texts: &'t Texts,
}

impl Turn<'_> {
    /// A tool call and what it answered.
    fn call(&self) -> (String, String) {
        let part = self.number % 90;
        match self.number % 4 {
            0 => (
                format!(
                    r#""name":"Edit","input":{{"file_path":"/w/src/part{part}.rs","old_string":"let a = 1;","new_string":"let a = 2;\nlet b = 3;"}}"#
                ),
                "The file has been updated.".to_owned(),
            ),
            1 => {
                let summary = "test result: ok. 140 passed; 0 failed";
                (test_run(), format!("{}{summary}", self.texts.output))
            }
            _ => (
                format!(r#""name":"Read","input":{{"file_path":"/w/src/part{part}.rs"}}"#),
                self.texts.source.clone(),
            ),
        }
    }

    fn last_run(&self, passing: bool) -> (String, String) {
        let summary = match passing {
            true => "test result: ok. 140 passed; 0 failed",
            false => "test result: FAILED. 139 passed; 1 failed",
        };
        (test_run(), format!("{}{summary}", self.texts.output))
    }

    fn head(&self) -> String {
        format!(r#"{{"parentUuid":"0b8e4d1c-{:012}","isSidechain":false"#, self.number)
    }

    fn tail(&self) -> String {
        format!(
            r#""uuid":"5f1c2a77-{:012}","timestamp":"2026-01-01T10:00:00.000Z","userType":"external","entrypoint":"cli","cwd":"/w","sessionId":"6fbb1ada-4a29-4af1-ab6e-bfc8745f3638","version":"2.1.329","gitBranch":"feat/parts"}}"#,
            self.number
        )
    }

    fn user(&self, out: &mut dyn Write, content: &str, more: &str) -> io::Result<()> {
        let (head, tail) = (self.head(), self.tail());
        writeln!(
            out,
            r#"{head},"promptId":"p","type":"user","message":{{"role":"user","content":{content}}}{more},{tail}"#
        )
    }

    fn assistant(&self, out: &mut dyn Write, block: &str) -> io::Result<()> {
        let (head, tail, id) = (self.head(), self.tail(), self.number);
        writeln!(
            out,
            r#"{head},"message":{{"id":"msg_{id:020}","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{block}],"stop_reason":"tool_use","stop_sequence":null,"usage":{{"input_tokens":6,"cache_creation_input_tokens":410,"cache_read_input_tokens":14530,"output_tokens":120,"server_tool_use":{{"web_search_requests":0,"web_fetch_requests":0}},"service_tier":"standard"}}}},"requestId":"req_{id:020}","type":"assistant",{tail}"#
        )
    }

    fn thought(&self, out: &mut dyn Write) -> io::Result<()> {
        let thought = &self.texts.thought;
        let signature = "QUJD".repeat(80);
        self.assistant(
            out,
            &format!(r#"{{"type":"thinking","thinking":"{thought}","signature":"{signature}"}}"#),
        )?;
        self.said(out, "Now I read the file and run the tests.")
    }

    fn said(&self, out: &mut dyn Write, text: &str) -> io::Result<()> {
        self.assistant(out, &format!(r#"{{"type":"text","text":"{text}"}}"#))
    }

    fn attachment(&self, out: &mut dyn Write) -> io::Result<()> {
        let (head, tail, prompt) = (self.head(), self.tail(), &self.texts.prompt);
        writeln!(
            out,
            r#"{head},"attachment":{{"type":"prompt_snapshot","systemPrompt":["{prompt}"]}},"type":"attachment",{tail}"#
        )
    }
}

fn test_run() -> String {
    r#""name":"Bash","input":{"command":"cd /w && cargo test 2>&1 | tail -200","description":"Run tests"}"#
        .to_owned()
}
