//! The conversation of a whole run: each turn is appended to a transcript, so that the stop gate and the summary read
//! it like the transcript of a client.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::Supervisor;
use policyd_facts::{CommandVerdict, Facts};
use policyd_hook::agent_output::AgentOutput;
use policyd_record::mask::{mask, mask_json};
use policyd_state::run::TurnUsage;
use policyd_store::transcript::{self, Places};

/// Bytes of it that are read at once.
const READ_BYTES: usize = 64 * 1024;
/// Longest time that reading it may take.
const READING_MAX: Duration = Duration::from_secs(30);

/// A record with marks in place of secrets.
fn masked_line(line: &str) -> String {
    match serde_json::from_str::<Value>(line) {
        // A record without secrets stays as it was written.
        Ok(mut record) => match mask_json(&mut record) {
            0 => line.to_owned(),
            _ => record.to_string(),
        },
        Err(_) => mask(line).0.into_owned(),
    }
}

impl Supervisor<'_> {
    /// Where it is.
    pub(super) fn transcript(&self) -> PathBuf {
        self.paths.folder.join("transcript.jsonl")
    }

    /// The prompt is the human's word.
    pub(super) fn record_prompt(&mut self, prompt: &str) {
        let record = json!({
            "type": "user", "uuid": format!("{}-{}", self.mark(), self.run.attempt),
            "promptId": self.mark(), "timestamp": self.world.now().to_string(),
            "cwd": self.project.folder, "message": {"role": "user", "content": prompt},
        });
        self.record(&[record.to_string()]);
    }

    /// The answer of a command that told no conversation.
    pub(super) fn record_answer(&mut self, output: &AgentOutput) {
        let said =
            if output.answer.is_empty() { output.last_texts() } else { output.answer.clone() };
        if output.records > 0 || said.trim().is_empty() {
            return;
        }
        let record = json!({
            "type": "assistant", "timestamp": self.world.now().to_string(),
            "message": {"id": format!("{}-{}", self.mark(), self.run.attempt), "role": "assistant",
                "content": [{"type": "text", "text": said}]},
        });
        self.record(&[record.to_string()]);
    }

    /// Ends a session: the counters since the last empty context restart.
    pub(super) fn record_renewal(&mut self) {
        let record = json!({
            "type": "system", "subtype": "compact_boundary", "timestamp": self.world.now().to_string(),
        });
        self.record(&[record.to_string()]);
    }

    /// Adds lines.
    pub(super) fn record(&mut self, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        let text: String = lines.iter().map(|it| masked_line(it) + "\n").collect();
        if let Err(error) = self.world.append(&self.transcript(), text.as_bytes()) {
            self.problem(&format!("could not record the conversation: {error}"));
        }
    }

    /// Returns the length of the transcript, in bytes. 0 if the transcript does not exist.
    pub(super) fn transcript_bytes(&self) -> u64 {
        self.world.stat(&self.transcript()).map_or(0, |it| it.length)
    }

    /// The usage of the turn during which this process died, from its records in the transcript. The client
    /// reports the cost at the end of a turn, so the prices of the pack are used.
    pub(super) fn used_unheard(&mut self) -> Option<TurnUsage> {
        let mut file = self.world.open(&self.transcript()).ok()?;
        let (mut at, mut buffer) = (self.run.heard_from, vec![0; READ_BYTES]);
        let mut output = AgentOutput::default();
        loop {
            let length = file.read_at(at, &mut buffer).ok()?;
            let Some(bytes) = buffer.get(..length).filter(|it| !it.is_empty()) else { break };
            output.absorb(bytes);
            at = at.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
        }
        output.finish();
        let (spend, priced) = self.measure(&output);
        (spend.tokens() > 0).then_some(TurnUsage { spend, priced, took: Duration::ZERO })
    }

    /// What it says. What could not be read is left out; only what is new is read.
    pub(super) fn facts(&self) -> Facts {
        let (policy, words) = (&self.ready.policy, &self.ready.words);
        let (transcript, cursor) = (self.transcript(), self.paths.folder.join("cursor.bin"));
        let places = Places { transcript: &transcript, cursor: Some(&cursor), subagent: false };
        let deadline = self.world.elapsed().saturating_add(READING_MAX);
        let read = transcript::read(self.world, places, &words.lens, policy.lens_key, deadline);
        read.cursor.iter().for_each(|it| transcript::keep(self.world, &cursor, it));
        read.facts
    }

    /// The verdict on the tests that ran last in the turn that began after line `seen`, if they failed.
    pub(super) fn failed_test(&self, seen: u64) -> Option<String> {
        let facts = self.facts();
        let kinds = facts.commands.by_kind.iter().filter(|(name, _)| name.contains("test"));
        let last = kinds.map(|(name, it)| (it.last.seq, name, &it.last)).max_by_key(|it| it.0);
        let (_, name, last) = last.filter(|it| it.0 > seen)?;
        (last.verdict == CommandVerdict::Failed).then(|| format!("{name} {}", last.quote))
    }

    /// Whether the tests passed that ran last; nothing where none is known to have run.
    pub(super) fn tests(&self) -> Option<bool> {
        let facts = self.facts();
        let kinds = facts.commands.by_kind.iter().filter(|(name, _)| name.contains("test"));
        let told = kinds.filter_map(|(_, it)| match it.last.verdict {
            CommandVerdict::Passed => Some((it.last_passed_seq, true)),
            CommandVerdict::Failed => Some((it.last_failed_seq, false)),
            CommandVerdict::Unknown | CommandVerdict::Empty | CommandVerdict::Unable => None,
        });
        told.max().map(|it| it.1)
    }
}
