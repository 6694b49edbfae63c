//! A false alarm becomes the draft of a test case, in which the rule does not fire. The draft is in the state directory of
//! the project and not in its pack: a file in the pack would end the trust in it.

use std::path::{Path, PathBuf};

use maud::html;
use serde_json::{Map, Value, json};

use super::page_context::PageContext;
use super::page_error::PageError;
use super::pages::{find_decision, layout};
use crate::sessions::recordings;
use policyd_base::limits::{CASE_DRAFT_BYTES_MAX, CASE_DRAFT_CHARS_MAX};
use policyd_cases::draft::{self, CaseDraft};
use policyd_evaluation::called::LoggedEvent;
use policyd_record::decision_log::Entry;
use policyd_record::mask::mask;
use policyd_store::file::{self, Durability, SaveOutcome};
use policyd_store::runs::RUNS;
use policyd_world::{World, WorldError};

/// Directory below the state directory.
const FOLDER: &str = "case-drafts";

/// Why the transcript is not beside a draft.
#[derive(Debug, thiserror::Error)]
enum TranscriptProblem {
    #[error("the record names no transcript")]
    NotLogged,
    #[error("{path}: {source}")]
    Unreadable { path: String, source: WorldError },
    /// Any process can send a hook event, and name any file in it.
    #[error("{0} is not in a directory of a client, so it is not copied")]
    Elsewhere(String),
}

/// Writes the draft of a case for a decision that was wrong. Returns the page that shows it.
///
/// # Errors
/// The decision does not exist any more, the rule did not fire in it, or the draft cannot be written.
pub(super) fn write(
    context: &PageContext<'_>,
    project: &str,
    id: &str,
    rule: &str,
    note: &str,
) -> Result<String, PageError> {
    let entry = find_decision(context, project, id)?.entry;
    let name = file_name(rule, id);
    let draft = draft_of(&entry, rule, note, &format!("{name}.jsonl"));
    let draft = draft.ok_or_else(|| {
        PageError::Refused(format!("The rule {rule} did not fire in this decision."))
    })?;
    let open = context.open(project)?;
    let state_dir = open.state_dir(context.world);
    let (path, missing) =
        open.fenced(context.world, |world| save_draft(world, &state_dir, &name, &draft, &entry))?;
    let body = html! {
        p { "The draft is in " code { (path.display()) } "." }
        @if let Some(why) = missing { p { "The transcript was not copied: " (why) } }
        p { "Check it, move it to the directory " code { "tests" } " of your pack, and run " code { "policyd test" } ". \
             The case fails until you change the rule." }
        pre tabindex="0" role="region" aria-label="Draft of the case" { (draft.to_text()) }
    };
    Ok(layout::result("Draft of a case", &body))
}

/// Saves a draft with its transcript. Returns its path, and why the transcript is missing.
fn save_draft(
    world: &dyn World,
    state_dir: &Path,
    name: &str,
    draft: &CaseDraft,
    entry: &Entry,
) -> Result<(PathBuf, Option<TranscriptProblem>), PageError> {
    let folder = state_dir.join(FOLDER);
    let path = folder.join(format!("{name}.yaml"));
    let mut missing = None;
    if draft.transcript.is_some() {
        match transcript(world, state_dir, entry) {
            Ok(bytes) => save(world, &folder, &folder.join(format!("{name}.jsonl")), &bytes)?,
            Err(why) => missing = Some(why),
        }
    }
    save(world, &folder, &path, draft.to_text().as_bytes())?;
    Ok((path, missing))
}

fn save(world: &dyn World, folder: &Path, path: &Path, bytes: &[u8]) -> Result<(), PageError> {
    let failed = |why: String| PageError::Refused(format!("{}: {why}", path.display()));
    world.create_folder(folder).map_err(|error| failed(error.to_string()))?;
    match file::save(world, path, bytes, &Durability::default()) {
        SaveOutcome::Durable { .. } | SaveOutcome::Degraded { .. } => Ok(()),
        SaveOutcome::NotSaved { why, .. } => Err(failed(why)),
    }
}

/// A name that is one part of a path on every system.
fn file_name(rule: &str, id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    format!("{rule}-{id}").chars().take(CASE_DRAFT_CHARS_MAX).map(plain).collect()
}

/// Returns the draft of a case in which the rule does not fire; `None` if it did not fire in the decision.
fn draft_of(entry: &Entry, rule: &str, note: &str, transcript: &str) -> Option<CaseDraft> {
    let is_guard = entry.guards.iter().any(|it| it.id == rule);
    let is_check = entry.verdicts.iter().any(|it| it.id == rule && it.details.is_some());
    let mut case = CaseDraft::default();
    let mut expect = |key: &str, word: &str| {
        case.expect.insert(key.to_owned(), json!({rule: word}));
    };
    match (entry.read_call(), is_guard, is_check) {
        (Some(call), true, _) => {
            expect("guards", "silent");
            case.on = event(entry, &call);
        }
        (_, _, true) => {
            expect("considerations", "passed");
            case.transcript = Some(transcript.to_owned());
        }
        _ => return None,
    }
    case.name = format!("{rule}: false alarm at the decision {}", entry.id);
    case.reason = Some(mask(note.trim()).0.into_owned()).filter(|it| !it.is_empty());
    case.comment = format!(
        "A user reported a false alarm of {}. Check the case, and move it to `tests/` of your pack.",
        entry.timestamp
    );
    Some(case)
}

/// Returns the event as the map under `on`.
fn event(entry: &Entry, call: &LoggedEvent) -> Map<String, Value> {
    let mut on = draft::event(&entry.event, entry.tool.as_deref(), &call.input);
    if call.prompt.is_string() {
        on.insert("said".to_owned(), call.prompt.clone());
    }
    on
}

/// Returns the transcript as far as the decision read it, with secrets masked. It must be in a directory in which clients
/// and supervised runs keep transcripts.
fn transcript(
    world: &dyn World,
    state_dir: &Path,
    entry: &Entry,
) -> Result<Vec<u8>, TranscriptProblem> {
    let read = entry.transcript();
    let read = read.filter(|it| !it.path.is_empty()).ok_or(TranscriptProblem::NotLogged)?;
    let unreadable = |source| TranscriptProblem::Unreadable { path: read.path.clone(), source };
    // A link in such a directory could lead to another file.
    let path = world.real_path(Path::new(&read.path)).map_err(unreadable)?;
    let of_clients = recordings::directories(world).into_iter().map(|it| it.path);
    let mut folders = of_clients.chain([state_dir.join(RUNS)]);
    let holds = |folder: PathBuf| world.real_path(&folder).is_ok_and(|it| path.starts_with(it));
    if !folders.any(holds) {
        return Err(TranscriptProblem::Elsewhere(read.path.clone()));
    }
    let bytes = world.read(&path, CASE_DRAFT_BYTES_MAX).map_err(unreadable)?;
    let end = usize::try_from(read.offset).unwrap_or(usize::MAX).min(bytes.len());
    let text = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned();
    let lines = text.lines().map(|it| format!("{}\n", mask(it).0));
    Ok(lines.collect::<String>().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::project;
    use policyd_world::fake::FakeWorld;

    fn entry(value: Value) -> Entry {
        Entry::parse(value.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_tool_call_becomes_a_case_without_the_guard() {
        let entry =
            entry(json!({"id": "a1", "event": "pre_tool_use", "tool": "Bash", "timestamp": "T",
            "decision": "block", "guards": [{"id": "rm"}],
            "call": {"input": {"command": "rm -rf \"a: b\"", "description": "x"}}}));
        let found = draft_of(&entry, "rm", " it is a temporary directory ", "t.jsonl").unwrap();
        assert_eq!(found.transcript, None);
        insta::assert_snapshot!(found.to_text(), @r#"
        # A user reported a false alarm of T. Check the case, and move it to `tests/` of your pack.
        - name: 'rm: false alarm at the decision a1'
          reason: it is a temporary directory
          on:
            event: pre_tool_use
            command: 'rm -rf "a: b"'
          expect:
            guards:
              rm: silent
        "#);
        assert_eq!(draft_of(&entry, "other", "", "t.jsonl"), None);
    }

    #[test]
    fn only_a_transcript_of_a_client_is_copied() {
        let world = FakeWorld::new();
        world.set_env("HOME", "/home/me");
        let known = "/home/me/.claude/projects/-w-app/s1.jsonl";
        for path in [known, "/w/.policyd/runs/r1/transcript.jsonl", "/home/me/.ssh/id_ed25519"] {
            world.put(path, "{\"text\": \"PGPASSWORD=hunter2\"}\n");
        }
        world.put_link("/home/me/.claude/projects/-w-app/s2.jsonl", "/home/me/.ssh/id_ed25519");
        let copied = |path: &str| {
            let inputs = json!({"transcript": {"path": path, "offset": 1000}});
            let entry =
                entry(json!({"id": "a1", "event": "stop", "timestamp": "T", "decision": "block",
                "inputs": inputs}));
            transcript(&world, Path::new("/w/.policyd"), &entry)
        };
        let text = String::from_utf8(copied(known).unwrap()).unwrap();
        assert!(text.ends_with("}\n") && !text.contains("hunter2"), "{text}");
        assert!(copied("/w/.policyd/runs/r1/transcript.jsonl").is_ok());
        for path in [
            "/home/me/.ssh/id_ed25519",
            "/home/me/.claude/projects/-w-app/s2.jsonl",
            "/home/me/.claude/projects/../../.ssh/id_ed25519",
        ] {
            let refused = copied(path);
            assert!(matches!(refused, Err(TranscriptProblem::Elsewhere(_))), "{refused:?}");
        }
    }

    #[test]
    fn a_draft_is_not_written_behind_a_link_of_the_repository() {
        let world = FakeWorld::new();
        world.put("/w/.policyd/logs/decisions.jsonl", "");
        world.put_folder("/home/me");
        world.put_link("/w/.policyd/case-drafts", "/home/me");
        let entry =
            entry(json!({"id": "a1", "event": "stop", "timestamp": "T", "decision": "block"}));
        let draft = CaseDraft { name: "x".to_owned(), ..CaseDraft::default() };
        let project = project::at(&world, Path::new("/w"));
        let fenced = project::fenced(&world, &project).unwrap();
        let refused = save_draft(&fenced, Path::new("/w/.policyd"), "x", &draft, &entry);
        assert!(matches!(refused, Err(PageError::Refused(why)) if why.contains("symbolic link")));
        assert_eq!(world.get("/home/me/x.yaml"), None);
    }

    #[test]
    fn a_stop_becomes_a_case_with_its_transcript() {
        let entry =
            entry(json!({"id": "a1", "event": "stop", "timestamp": "T", "decision": "block",
            "verdicts": [{"id": "tests", "status": "unsatisfied", "details": "2 failed"},
                {"id": "docs", "status": "satisfied"}]}));
        let found = draft_of(&entry, "tests", "", "tests-a1.jsonl").unwrap();
        assert!(found.transcript.is_some());
        assert!(found.to_text().contains("  transcript: tests-a1.jsonl\n"), "{}", found.to_text());
        assert!(
            found.to_text().ends_with("considerations:\n      tests: passed\n"),
            "{}",
            found.to_text()
        );
        assert_eq!(draft_of(&entry, "docs", "", "t.jsonl"), None, "it passed");
        assert_eq!(file_name("../tests", "a/1"), "---tests-a-1");
    }
}
