//! Recorded sessions of real clients, where they lie beside the repository: the facts one reads
//! out of them by eye.

use super::lens;
use crate::support::shared;
use policyd::facts::{CommandOutcome, CommandVerdict, Facts};

fn sample(name: &str) -> Option<Facts> {
    let bytes = std::fs::read(shared::path("samples")?.join(name)).unwrap();
    let lens = lens::compiled();
    let mut facts = Facts::default();
    bytes.split(|b| *b == b'\n').for_each(|line| facts.ingest_record(line, &lens));
    Some(facts)
}

fn prompts(facts: &Facts) -> Vec<&str> {
    facts.prompts.first.iter().map(|prompt| prompt.text.as_str()).collect()
}

fn said(facts: &Facts) -> Vec<&str> {
    facts.messages.last.iter().map(|message| message.text.as_str()).collect()
}

fn commands(facts: &Facts) -> Vec<(&str, CommandOutcome, Option<i32>)> {
    facts.commands.recent.iter().map(|c| (c.text.as_str(), c.outcome, c.exit_code)).collect()
}

#[test]
fn claude_code() {
    let Some(facts) = sample("claude-code/transcript.jsonl") else { return };
    assert_eq!(prompts(&facts), ["/fix the login bug"]);
    assert_eq!(
        said(&facts),
        [
            "I'll look at the file.",
            "The login bug is fixed and all tests pass.",
            "Tests: 1 passed."
        ]
    );
    let edits: Vec<_> = facts.files.iter().map(|f| (f.path.as_str(), f.tool.as_str())).collect();
    assert_eq!(
        edits,
        [("/home/dev/project/app.py", "Edit"), ("/home/dev/project/NOTES.md", "Write")]
    );
    let last = "python3 -c 'from app import add; assert add(1,2)==3; print(\"1 passed\")'";
    assert_eq!(
        commands(&facts),
        [
            ("ls", CommandOutcome::Succeeded, None),
            ("python3 -m pytest -q", CommandOutcome::Failed, Some(1)),
            ("git push --force origin main", CommandOutcome::Denied, None),
            (last, CommandOutcome::Succeeded, None),
        ]
    );
    let test = &facts.commands.by_kind["test"];
    assert_eq!((test.count, test.failed, test.last.verdict), (1, 1, CommandVerdict::Failed));
    assert_eq!(test.last.quote, "python3: No module named pytest");
    assert_eq!(facts.commands.by_kind["force_push"].count, 0, "it was denied");
    assert_eq!((facts.tools.total, facts.tools.failed, facts.tools.denied), (9, 1, 1));
    assert_eq!(facts.tokens.meters.occupied, 15_606);
    assert_eq!(facts.tokens.meters.model, "claude-opus-5-5");
    assert_eq!(facts.tokens.counted.len(), 10);
    assert_eq!((facts.branch.as_str(), facts.folder.as_str()), ("", "/home/dev/project"));
    assert_eq!((facts.lines_skipped, facts.pending.len()), (0, 0));
}

#[test]
fn an_older_claude_code() {
    let Some(facts) = sample("claude-code/transcript.claude-2.1.197.jsonl") else { return };
    assert_eq!(prompts(&facts), ["do the task"]);
    assert_eq!(said(&facts), ["All done.", "second answer"]);
    assert_eq!((facts.tokens.meters.occupied, facts.permission_mode.as_str()), (100, "default"));
}

#[test]
fn a_subagent_is_not_the_main_chain() {
    let Some(facts) = sample("claude-code/transcript.subagent.jsonl") else { return };
    assert_eq!((facts.prompts.count, facts.messages.count, facts.tools.total), (0, 0, 0));
}

#[test]
fn codex() {
    let Some(facts) = sample("codex/rollout.jsonl") else { return };
    assert_eq!(prompts(&facts), ["do the task"]);
    assert_eq!(said(&facts), ["running", "All done.", "Second answer."]);
    assert_eq!(
        commands(&facts),
        [("echo hello > f.txt; cat f.txt", CommandOutcome::Succeeded, Some(0))]
    );
    assert_eq!(facts.files[0].path, "f.txt");
    assert_eq!(
        (
            facts.tokens.meters.total().input,
            facts.tokens.meters.total().output,
            facts.tokens.meters.occupied
        ),
        (300, 30, 100)
    );
    assert_eq!((facts.folder.as_str(), facts.lines_skipped), ("/home/dev/project", 0));
}

#[test]
fn gemini() {
    let Some(facts) = sample("gemini/session.jsonl") else { return };
    assert_eq!(said(&facts), ["running", "All done.", "Second answer."]);
    assert_eq!(
        commands(&facts),
        [("echo hello > f.txt; cat f.txt", CommandOutcome::Succeeded, None)]
    );
    // This client records a hook's text as if a human had asked.
    assert_eq!(prompts(&facts), ["do the task", "REASON_MARK fix it"]);
    assert_eq!((facts.tokens.meters.total().input, facts.lines_skipped), (300, 0));
}
