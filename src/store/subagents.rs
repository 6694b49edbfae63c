//! The work of a session's subagents, added to the facts of the session. Claude Code keeps their
//! transcripts in a folder named like the session's: `<session>/subagents/agent-<id>.jsonl`.
//! Each transcript has its own cursor, so that only its new bytes are read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::transcript::{self, Places, TranscriptError};
use policyd_base::id::SessionId;
use policyd_base::limits::SUBAGENTS_KEPT_MAX;
use policyd_evaluation::inputs::{SubagentRead, TranscriptPosition};
use policyd_facts::Facts;
use policyd_facts::compiled::CompiledMatchers;
use policyd_facts::cursor::Key;
use policyd_world::World;

/// How subagents' transcripts are read.
#[derive(Clone, Copy)]
pub struct Reader<'r> {
    /// Where it all happens.
    pub world: &'r dyn World,
    /// How facts are recognized.
    pub lens: &'r CompiledMatchers,
    /// Key of the cursors.
    pub key: Key,
    /// Folder of the cursors; `None`: nothing is kept.
    pub cursors: Option<&'r Path>,
    /// Time at which reading ends (as `World::elapsed` counts it).
    pub deadline: Duration,
}

impl Reader<'_> {
    /// Adds what the subagents of a session did. Returns how far each transcript was read. One that
    /// cannot be read is left out: the session's own transcript names the subagent's result.
    pub fn add(&self, facts: &mut Facts, transcript: &Path) -> Vec<SubagentRead> {
        let (mut reads, mut parts) = (Vec::new(), Vec::new());
        for (agent, path) in transcripts(self.world, transcript) {
            let cursor = self.cursors.map(|it| it.join(cursor_name(&agent)));
            let places = Places { transcript: &path, cursor: cursor.as_deref(), subagent: true };
            let read = transcript::read(self.world, places, self.lens, self.key, self.deadline);
            if read.problem.is_some() {
                continue;
            }
            if let (Some(cursor), Some(bytes)) = (&cursor, &read.cursor) {
                transcript::keep(self.world, cursor, bytes);
            }
            let position = TranscriptPosition::at(&path, &read.position, read.unfinished);
            reads.push(SubagentRead { agent: agent.clone(), read: position });
            parts.push((agent, read.facts));
        }
        facts.add_subagents(parts);
        reads
    }

    /// Adds what the subagents had done when their transcripts were read before.
    ///
    /// # Errors
    /// [`TranscriptError`] if a transcript cannot be read, or was rewritten since.
    pub fn add_again(
        &self,
        facts: &mut Facts,
        reads: &[SubagentRead],
    ) -> Result<(), TranscriptError> {
        let again = |it: &SubagentRead| {
            let facts = transcript::read_again(self.world, &it.read, self.lens, self.deadline)?;
            Ok((it.agent.clone(), facts))
        };
        let parts: Result<Vec<_>, TranscriptError> = reads.iter().map(again).collect();
        facts.add_subagents(parts?);
        Ok(())
    }
}

/// Name of the cursor of a subagent's transcript.
#[must_use]
pub fn cursor_name(agent: &str) -> String {
    format!("cursor-{}.bin", SessionId::sanitize(agent))
}

/// The transcripts of a session's subagents, by id.
fn transcripts(world: &dyn World, transcript: &Path) -> Vec<(String, PathBuf)> {
    let folder = transcript.with_extension("").join("subagents");
    let names = world.list(&folder).unwrap_or_default();
    let agents = names.iter().filter_map(|name| {
        let agent = name.strip_prefix("agent-")?.strip_suffix(".jsonl")?;
        Some((agent.to_owned(), folder.join(name)))
    });
    agents.take(SUBAGENTS_KEPT_MAX).collect()
}
