//! What each client records: the parts of a record, and the clients whose samples contain them. A new part does not
//! compile here before it has a row.

use std::collections::{BTreeMap, BTreeSet};

use policyd::facts::record::output::Output;
use policyd::facts::record::{
    self, Record, RecordEntry, RecordOrigin, TokenUse, ToolResult, TranscriptFormat,
};
use policyd::harness::HARNESSES;

/// Transcripts of a format in `tests/samples`. The other files there are outputs of `policyd run`.
fn transcripts(format: TranscriptFormat) -> &'static [&'static str] {
    match format {
        TranscriptFormat::ClaudeCode => &[
            "transcript.jsonl",
            "claude-code/transcript.background-pass.jsonl",
            "claude-code/transcript.background-test.jsonl",
            "claude-code/transcript.subagent-work.jsonl",
            "claude-code/transcript.subagent-work.main.jsonl",
        ],
        TranscriptFormat::Codex => {
            &["codex/rollout.code-mode.jsonl", "codex/rollout.long-test.jsonl"]
        }
        TranscriptFormat::Copilot => {
            &["copilot/events.exit-code.jsonl", "copilot/events.loop.jsonl"]
        }
        TranscriptFormat::Gemini => &["gemini/session.exit-code.jsonl"],
        TranscriptFormat::OpenCode => &["opencode/messages.jsonl"],
    }
}

/// Part of a record, and whether a record contains it.
type Part = (&'static str, bool);

fn parts(record: &Record<'_>) -> Vec<Part> {
    let Record {
        branch,
        folder,
        permission_mode,
        replaces,
        sidechain,
        origin,
        names_session,
        entries,
    } = record;
    let RecordOrigin { time, session, agent, entrypoint, copied } = origin;
    let mut all = vec![
        ("branch", !branch.is_empty()),
        ("folder", !folder.is_empty()),
        ("permission_mode", !permission_mode.is_empty()),
        ("replaces", !replaces.is_empty()),
        ("sidechain", *sidechain),
        ("origin.time", !time.is_empty()),
        ("origin.session", !session.is_empty()),
        ("origin.agent", !agent.is_empty()),
        ("origin.entrypoint", !entrypoint.is_empty()),
        ("origin.copied", *copied),
        ("names_session", *names_session),
    ];
    entries.iter().for_each(|it| all.extend(parts_of_entry(it)));
    all
}

fn parts_of_entry(entry: &RecordEntry<'_>) -> Vec<Part> {
    match entry {
        RecordEntry::Stopped { feedback } => {
            vec![("Stopped", true), ("Stopped.feedback", feedback.is_some())]
        }
        RecordEntry::CutOff => vec![("CutOff", true)],
        RecordEntry::Asked(_) => vec![("Asked", true)],
        RecordEntry::Prompt { id, text, queued } => vec![
            ("Prompt.id", !id.is_empty()),
            ("Prompt.text", !text.is_empty()),
            ("Prompt.queued", *queued),
        ],
        RecordEntry::Injected { id } => vec![("Injected.id", !id.is_empty())],
        RecordEntry::Said(_) => vec![("Said", true)],
        RecordEntry::Call { .. } => vec![("Call", true)],
        RecordEntry::Result(result) => parts_of_result(result),
        RecordEntry::Done { result, .. } => {
            let mut all = parts_of_result(result);
            all.push(("Done", true));
            all
        }
        RecordEntry::Stopping { sent_at } => vec![("Stopping", *sent_at > 0)],
        RecordEntry::Usage(usage) => parts_of_usage(usage),
        RecordEntry::Compacted => vec![("Compacted", true)],
    }
}

fn parts_of_result(result: &ToolResult<'_>) -> Vec<Part> {
    let ToolResult {
        id,
        text,
        stdout,
        stderr,
        error,
        denial,
        interrupted,
        background,
        background_task,
        task_id,
        agent,
        running,
        exit_code,
    } = result;
    let is_written = |it: &Output<'_>| !it.text().is_empty();
    vec![
        ("Result.id", !id.is_empty()),
        ("Result.text", is_written(text)),
        ("Result.stdout", is_written(stdout)),
        ("Result.stderr", is_written(stderr)),
        ("Result.error", *error),
        ("Result.denial", !denial.is_empty()),
        ("Result.interrupted", *interrupted),
        ("Result.background", *background),
        ("Result.background_task", !background_task.is_empty()),
        ("Result.task_id", !task_id.is_empty()),
        ("Result.agent", !agent.is_empty()),
        ("Result.running", !running.is_empty()),
        ("Result.exit_code", exit_code.is_some()),
    ]
}

fn parts_of_usage(usage: &TokenUse<'_>) -> Vec<Part> {
    let TokenUse { id, model, input, output, cache_read, cache_creation } = usage;
    vec![
        ("Usage.id", !id.is_empty()),
        ("Usage.model", !model.is_empty()),
        ("Usage.input", *input > 0),
        ("Usage.output", *output > 0),
        ("Usage.cache_read", *cache_read > 0),
        ("Usage.cache_creation", *cache_creation > 0),
    ]
}

#[test]
fn samples_show_what_each_client_records() {
    let mut clients: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let recorded = HARNESSES.iter().filter_map(|it| it.transcripts.as_ref());
    for format in recorded.map(|it| it.format) {
        for file in transcripts(format) {
            let path = format!("{}/tests/samples/{file}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).unwrap();
            for record in text.lines().filter_map(|it| record::read(it.as_bytes())) {
                for (part, is_there) in parts(&record) {
                    let of_part = clients.entry(part).or_default();
                    if is_there {
                        of_part.insert(format.as_str());
                    }
                }
            }
        }
    }
    let row = |(part, clients): (&&str, &BTreeSet<&str>)| {
        let names: Vec<&str> = clients.iter().copied().collect();
        format!(
            "{part}: {}\n",
            if names.is_empty() { "no sample".to_owned() } else { names.join(", ") }
        )
    };
    insta::assert_snapshot!(clients.iter().map(row).collect::<String>(), @"
    Call: claude_code, codex, copilot, gemini, opencode
    Done: codex
    Prompt.id: claude_code, codex, copilot, gemini, opencode
    Prompt.queued: no sample
    Prompt.text: claude_code, codex, copilot, gemini, opencode
    Result.agent: claude_code
    Result.background: claude_code
    Result.background_task: claude_code
    Result.denial: opencode
    Result.error: claude_code, codex, opencode
    Result.exit_code: claude_code, codex, copilot, gemini, opencode
    Result.id: claude_code, codex, copilot, gemini, opencode
    Result.interrupted: opencode
    Result.running: codex
    Result.stderr: no sample
    Result.stdout: no sample
    Result.task_id: no sample
    Result.text: claude_code, codex, copilot, gemini, opencode
    Said: claude_code, codex, copilot, gemini, opencode
    Stopped: claude_code, opencode
    Stopped.feedback: claude_code, opencode
    Stopping: copilot
    Usage.cache_creation: opencode
    Usage.cache_read: opencode
    Usage.id: claude_code, codex, gemini, opencode
    Usage.input: claude_code, codex, gemini, opencode
    Usage.model: claude_code, gemini, opencode
    Usage.output: claude_code, codex, gemini, opencode
    branch: claude_code
    folder: claude_code, codex, opencode
    names_session: claude_code
    origin.agent: claude_code
    origin.copied: no sample
    origin.entrypoint: claude_code
    origin.session: claude_code, opencode
    origin.time: claude_code
    permission_mode: claude_code
    replaces: gemini, opencode
    sidechain: claude_code
    ");
}
