//! What a session leaves, and what the next one gets of it. Each session's files are put into an
//! archive of its own; what the next one needs stays where it is, too.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::Supervisor;
use crate::workspace::git;
use policyd_evaluation::message::cut;
use policyd_record::mask::mask;
use policyd_record::summary::{SummaryInput, markdown};
use policyd_state::run::{RestartReason, Run};
use policyd_store::file;
use policyd_world::WorldError;

/// What the next session receives.
pub(super) const SUMMARY: &str = "context-summary.md";
/// Progress of the run, which humans and the next session read.
const PROGRESS: &str = "progress.md";
/// What went wrong last.
const ERRORS: &str = "error-summary.json";
/// loki-mode's ledgers and handoffs. The next session receives the newest ledger, and the newest handoff of the
/// last day.
const LEDGERS: &str = "memory/ledgers";
const LEDGER_LINES: usize = 100;
const HANDOFFS: &str = "memory/handoffs";
const HANDOFF_LINES: usize = 80;
const HANDOFF_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// File in which agents save their progress, as in loki-mode.
const CONTINUITY: &str = "CONTINUITY.md";
/// Characters of a ledger or a handoff that the next session receives.
const NOTE_CHARS: usize = 4_000;
const NOTE_BYTES_MAX: usize = 1024 * 1024;

impl Supervisor<'_> {
    fn kept(&self, name: &str) -> PathBuf {
        self.paths.folder.join(name)
    }

    fn read_text(&self, path: &Path, bytes_max: usize) -> Option<String> {
        let bytes = self.world.read(path, bytes_max).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Writes one of the files of a run durably; that it could not be written is said.
    pub(super) fn write(&mut self, path: &Path, text: &str) {
        let saved = file::save(self.world, path, text.as_bytes(), &self.durability);
        if let file::SaveOutcome::NotSaved { why, .. } = saved {
            self.problem(&format!("{}: {why}", path.display()));
        }
    }

    /// What the session before left, for the prompt.
    pub(super) fn summary(&self) -> String {
        if self.run.session <= 1 {
            return String::new();
        }
        self.read_text(&self.kept(SUMMARY), NOTE_BYTES_MAX).unwrap_or_default().trim().to_owned()
    }

    /// Writes down where the run stands after a turn.
    pub(super) fn write_progress(&mut self, run: &Run) {
        let tests = match run.trail.marks.last().and_then(|it| it.tests) {
            Some(true) => "passing",
            Some(false) => "failing",
            None => "unknown",
        };
        let error = if run.last_error.is_empty() { "none" } else { run.last_error.as_str() };
        let text = format!(
            "# Progress\n\n## Goal\n{}\n\n## Status\n- Iteration: {}/{}\n- Session restart: {}/{}\n- Tests: {tests}\n- Tokens: {}\n- Cost: {}\n\n## Last Error\n{error}\n\n## Timestamp\n{}\n",
            run.goal,
            run.iteration,
            run.iterations_max(&self.limits),
            run.restarts,
            self.limits.restarts,
            run.spend.tokens(),
            run.cost().text_with_unit(),
            self.world.now(),
        );
        let errors = json!({
            "iteration": run.iteration,
            "timestamp": self.world.now().to_string(),
            "error_count": run.trail.same_error(),
            "error_class": run.last_class,
            "error_lines": run.last_error.lines().take(10).collect::<Vec<_>>(),
        });
        let (text, errors) =
            (mask(&text).0.into_owned(), mask(&format!("{errors:#}\n")).0.into_owned());
        self.write(&self.kept(PROGRESS), &text);
        if self.failed {
            self.write(&self.kept(ERRORS), &errors);
        } else {
            // None is there most of the time.
            self.world.remove(&self.kept(ERRORS)).ok();
        }
    }

    /// Archives a session, and saves the summary that the next session receives. `next`: the run after the restart.
    pub(super) fn renew(&mut self, why: RestartReason, next: &Run) {
        let mut summary = vec![self.summarize(next)];
        if why == RestartReason::Cleared {
            // The order of loki-mode: ledger, handoffs, then the signal is consumed.
            summary.extend(self.notes());
            self.take_clear();
        }
        let summary = mask(&summary.join("\n\n")).0.into_owned();
        self.write(&self.kept(SUMMARY), &format!("{}\n", summary.trim_end()));
        self.record_renewal();
        self.write_progress(next);
        if let Err(error) = self.archive() {
            self.problem(&format!("the session could not be put into the archive: {error}"));
        }
    }

    /// What is worth knowing of the run so far: its conversation, what git says, where it stands.
    fn summarize(&self, next: &Run) -> String {
        let facts = self.facts();
        let git = git::ask(self.world, &self.project.folder, None);
        let mut known = SummaryInput::of(&facts, &self.context, &git, &self.project.folder);
        known.goal.clone_from(&self.run.goal);
        known.iteration = u64::from(next.iteration);
        let turns = next.iterations_max(&self.limits);
        known.status.splice(
            0..0,
            [
                format!("turn {} of {turns}", next.iteration),
                format!("restart {} of {}", next.restarts, self.limits.restarts),
            ],
        );
        if !next.last_error.is_empty() {
            known.errors.insert(0, next.last_error.clone());
        }
        markdown(&known)
    }

    /// The newest ledger, and the newest handoff of the last day.
    fn notes(&self) -> Vec<String> {
        let newest = |folder: &str, prefix: &str, age: Option<Duration>| {
            let folder = self.paths.own.join(folder);
            let names = self.world.list(&folder).unwrap_or_default();
            let names =
                names.into_iter().filter(|it| it.starts_with(prefix) && it.ends_with(".md"));
            let dated = names.filter_map(|it| {
                let path = folder.join(it);
                let modified = self.world.stat(&path).ok()?.modified;
                let young = age.is_none_or(|age| self.world.now().since(modified) < age);
                young.then_some((modified, path))
            });
            dated.max().map(|it| it.1)
        };
        let told = |title: &str, path: Option<PathBuf>, lines: usize| {
            let text = self.read_text(&path?, NOTE_BYTES_MAX)?;
            let text: Vec<&str> = text.lines().take(lines).collect();
            Some(format!("### {title}\n{}", cut(&text.join("\n"), NOTE_CHARS)))
        };
        let ledger = told("Ledger", newest(LEDGERS, "LEDGER-", None), LEDGER_LINES);
        let handoff = told("Handoff", newest(HANDOFFS, "", Some(HANDOFF_AGE)), HANDOFF_LINES);
        let last = told("Continuity", Some(self.paths.own.join(CONTINUITY)), HANDOFF_LINES);
        ledger.into_iter().chain(handoff).chain(last).collect()
    }

    /// Copies what the session left, and moves its logs. Idempotent.
    fn archive(&self) -> Result<(), WorldError> {
        let folder = self.kept("archive").join(format!("session-{}", self.run.session));
        self.world.create_folder(&folder)?;
        for name in [SUMMARY, PROGRESS, ERRORS] {
            match self.world.read(&self.kept(name), NOTE_BYTES_MAX) {
                Ok(bytes) => {
                    let saved =
                        file::save(self.world, &folder.join(name), &bytes, &self.durability);
                    if let file::SaveOutcome::NotSaved { why, .. } = saved {
                        return Err(WorldError::Io(why));
                    }
                }
                Err(WorldError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        for name in self.world.list(&self.paths.folder)? {
            if name.starts_with("iteration-") {
                self.world.rename(&self.kept(&name), &folder.join(&name))?;
            }
        }
        Ok(())
    }
}
