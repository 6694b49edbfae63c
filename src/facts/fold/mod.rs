//! The fold: computes the facts after a transcript line from the facts before it. Each subject has
//! its own file.
//!
//! Stored texts have placeholders instead of secrets, because the cursor stores the facts.
//!
//! INVARIANT: the facts do not depend on where reading was interrupted.

mod calls;
mod commands;
mod edits;
mod results;
mod todos;

use memchr::memmem;

use super::compiled::CompiledMatchers;
use super::meters::Usage;
use super::record::{self, Record, RecordEntry, TokenUse};
use super::{Facts, Feedback, Message, Messages, Prompt, Prompts, Tokens};
use policyd_base::limits::{
    COUNTED_MESSAGES_MAX, MESSAGE_TEXT_MAX, MESSAGES_KEPT_MAX, NAME_TEXT_MAX, PROMPTS_KEPT_MAX,
    SKILLS_KEPT_MAX,
};
use policyd_base::text::{cut, cut_front};
use policyd_yaml::secrets::mask;

/// Beginnings of Claude Code's state records, which do not affect facts.
const STATE_KINDS: [&[u8]; 8] = [
    b"api-request",
    b"file-history-",
    b"queue-operation\"",
    b"last-prompt\"",
    b"tools-used\"",
    b"cost-state\"",
    b"content-replacement\"",
    b"attribution-snapshot\"",
];

impl Facts {
    /// Ingests one line of the transcript. A line that cannot be parsed is counted.
    pub fn ingest_record(&mut self, line: &[u8], lens: &CompiledMatchers) {
        self.ingest_parsed(line, lens, |_, _| {});
    }

    /// Like [`ingest_record`](Self::ingest_record). `before` sees each record, and the facts before it.
    pub fn ingest_parsed(
        &mut self,
        line: &[u8],
        lens: &CompiledMatchers,
        before: impl FnMut(&mut Self, &Record<'_>),
    ) {
        self.absorb_trimmed(&record::trimmed(line), lens, before);
    }

    /// Counts a line that was too long to be read.
    pub fn skip_line(&mut self) {
        self.seq += 1;
        self.lines_skipped += 1;
    }

    fn absorb_trimmed(
        &mut self,
        line: &[u8],
        lens: &CompiledMatchers,
        mut before: impl FnMut(&mut Self, &Record<'_>),
    ) {
        if line.is_empty() {
            return;
        }
        if cannot_matter(line) {
            self.seq += 1;
            return;
        }
        let taken = record::read_repaired(line, |record| {
            before(self, &record);
            self.seq += 1;
            self.apply(record, lens);
        });
        if taken.is_none() {
            self.skip_line();
        }
    }

    fn apply(&mut self, record: Record<'_>, lens: &CompiledMatchers) {
        // Names every field, so that a new one does not compile before the fold handles it.
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
        if sidechain != self.sidechain {
            return;
        }
        if names_session {
            // A client that names the session does so in each message. Another program wrote the
            // other messages.
            if origin.session.is_empty() && self.session_named {
                self.lines_foreign += 1;
                return;
            }
            self.session_named |= !origin.session.is_empty();
        }
        self.branch_named(&branch);
        replace_named(&mut self.folder, &folder);
        replace_named(&mut self.permission_mode, &permission_mode);
        self.apply_entries(entries, &replaces, lens);
        if !replaces.is_empty() {
            self.tokens.count_id(&replaces);
        }
    }

    /// Applies the entries of a record. `replaces`: id of the message that the record replaces, or empty.
    fn apply_entries(
        &mut self,
        entries: Vec<RecordEntry<'_>>,
        replaces: &str,
        lens: &CompiledMatchers,
    ) {
        let said_before = !replaces.is_empty() && self.tokens.is_counted(replaces);
        let mut calls = 0;
        for entry in entries {
            match entry {
                RecordEntry::CutOff => self.cut_off_seq = self.seq,
                RecordEntry::Stopped { feedback } => {
                    let blocks = feedback.is_some_and(|text| lens.contains_block(&text));
                    self.stopped(blocks && !said_before);
                }
                RecordEntry::Stopping { sent_at } => self.stop_sent_at = sent_at,
                // Clients without a record for it send the reason of a block as a prompt.
                RecordEntry::Prompt { text, .. } if lens.begins_as_block(&text) => {
                    self.stopped(!said_before);
                }
                RecordEntry::Prompt { id, text, queued } => {
                    if !said_before {
                        self.feedback = Feedback::default();
                    }
                    self.prompt(&id, &text, queued);
                }
                RecordEntry::Asked(name) => self.asked(&name),
                RecordEntry::Injected { id } => self.prompts.inject(&id),
                RecordEntry::Said(text) if !said_before => {
                    self.said(&text);
                    self.messages.push(self.seq, &text);
                }
                RecordEntry::Said(_) => {}
                RecordEntry::Call { id, .. }
                | RecordEntry::Result(record::ToolResult { id, .. })
                    if !replaces.is_empty() && self.tokens.is_counted(&id) => {}
                RecordEntry::Call { id, name, input } => {
                    // Each call gets its own position.
                    self.seq += u64::from(calls > 0);
                    calls += 1;
                    self.call(&id, &name, &input, lens);
                }
                RecordEntry::Result(result) => {
                    self.result(&result, lens);
                    if !replaces.is_empty() {
                        self.tokens.count_id(&result.id);
                    }
                }
                RecordEntry::Done { name, input, result } => {
                    if !self.knows_call(&result.id) {
                        self.seq += u64::from(calls > 0);
                        calls += 1;
                        self.call(&result.id, &name, &input, lens);
                    }
                    self.result(&result, lens);
                }
                RecordEntry::Usage(usage) => self.tokens.add(&usage),
                RecordEntry::Compacted => self.compacted(),
            }
        }
    }

    /// Records a stop. `blocked`: whether it was blocked by policyd.
    fn stopped(&mut self, blocked: bool) {
        self.stop_seq = self.seq;
        if blocked {
            self.blocked();
        }
    }

    fn compacted(&mut self) {
        self.compactions.count += 1;
        self.compactions.last_seq = self.seq;
        self.history_bytes = 0;
        self.tools.last_error.clear();
        self.tools.same_errors = 0;
        self.prompts.before_compaction = self.prompts.count;
        self.tokens.meters.compacted();
    }

    fn branch_named(&mut self, branch: &str) {
        let branch = cut(branch, NAME_TEXT_MAX);
        if !branch.is_empty() && branch != "HEAD" && branch != self.branch_recorded {
            branch.clone_into(&mut self.branch_recorded);
            branch.clone_into(&mut self.branch);
        }
    }

    fn prompt(&mut self, id: &str, text: &str, queued: bool) {
        self.said(text);
        if !queued {
            // Interrupted calls get no result. A command that runs in a session continues.
            self.pending.retain(|it| !it.session.is_empty());
            self.tokens.meters.turn();
        }
        if let Some(name) = text.strip_prefix('/').and_then(|rest| rest.split_whitespace().next()) {
            self.skill(name);
        }
        self.prompts.push(Prompt {
            seq: self.seq,
            id: cut(id, NAME_TEXT_MAX).to_owned(),
            text: masked_front(text, MESSAGE_TEXT_MAX),
        });
    }

    fn blocked(&mut self) {
        let blocks = self.feedback.blocks.saturating_add(1);
        self.feedback = Feedback { blocks, tools: self.tools.total };
    }

    fn said(&mut self, text: &str) {
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.history_bytes = self.history_bytes.saturating_add(bytes);
    }

    fn asked(&mut self, name: &str) {
        if self.skills_asked.len() < SKILLS_KEPT_MAX {
            self.skills_asked.insert(cut(name, NAME_TEXT_MAX).to_owned());
        }
    }

    fn skill(&mut self, name: &str) {
        let name = cut(name, NAME_TEXT_MAX);
        let has_place = self.skills.len() < SKILLS_KEPT_MAX || self.skills.contains_key(name);
        if !name.is_empty() && has_place {
            self.skills.insert(name.to_owned(), self.seq);
        }
    }
}

impl Prompts {
    fn push(&mut self, prompt: Prompt) {
        const HALF: usize = PROMPTS_KEPT_MAX / 2;
        self.count += 1;
        if self.first.len() < HALF {
            self.first.push(prompt);
        } else {
            push_bounded(&mut self.last, prompt, HALF);
        }
    }

    fn inject(&mut self, id: &str) {
        if !id.is_empty() {
            cut(id, NAME_TEXT_MAX).clone_into(&mut self.injected_id);
        }
    }
}

impl Messages {
    fn push(&mut self, seq: u64, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        self.count += 1;
        let text = masked_end(text, MESSAGE_TEXT_MAX);
        push_bounded(&mut self.last, Message { seq, text }, MESSAGES_KEPT_MAX);
    }
}

impl Tokens {
    fn add(&mut self, usage: &TokenUse<'_>) {
        let TokenUse { id, model, input, output, cache_read, cache_creation } = usage;
        let model = cut(model, NAME_TEXT_MAX);
        if !model.is_empty() {
            model.clone_into(&mut self.called);
        }
        let tokens = Usage {
            input: *input,
            output: *output,
            cache_read: *cache_read,
            cache_creation: *cache_creation,
        };
        if tokens.total() == 0 {
            return; // Written by the client itself: no model was asked.
        }
        if self.is_counted(id) {
            // The blocks of a streamed message report an increasing output.
            let more = tokens.output.saturating_sub(self.last_output);
            let newest = self.counted.last().is_some_and(|it| it == cut(id, NAME_TEXT_MAX));
            if newest && more > 0 {
                self.last_output = tokens.output;
                self.meters.spend(model, &Usage { output: more, ..Usage::default() });
            }
            return;
        }
        self.count_id(id);
        self.last_output = tokens.output;
        self.meters.call(model, &tokens);
    }

    fn is_counted(&self, id: &str) -> bool {
        let id = cut(id, NAME_TEXT_MAX);
        !id.is_empty() && self.counted.iter().rev().any(|known| known == id)
    }

    fn count_id(&mut self, id: &str) {
        if !id.is_empty() && !self.is_counted(id) {
            let id = cut(id, NAME_TEXT_MAX).to_owned();
            push_bounded(&mut self.counted, id, COUNTED_MESSAGES_MAX);
        }
    }
}

/// Returns whether the beginning of the line shows a record that does not affect facts. These are
/// the longest lines (system prompts, API requests), so they are not parsed.
fn cannot_matter(line: &[u8]) -> bool {
    let starts_with_kind = |line: &[u8]| {
        let kind = after_key(line.strip_prefix(b"{").unwrap_or_default(), b"\"type\":");
        let kind = kind.and_then(|kind| kind.strip_prefix(b"\""));
        kind.is_some_and(|kind| STATE_KINDS.iter().any(|known| kind.starts_with(known)))
    };
    starts_with_kind(line)
        || (holds_attachment(line) && memmem::find(line, b"queued_command").is_none())
}

/// Returns whether the first object inside the line is the value of the key `attachment`.
fn holds_attachment(line: &[u8]) -> bool {
    const KEY: &[u8] = b"\"attachment\":";
    let Some(inner) = memchr::memchr_iter(b'{', line).nth(1) else { return false };
    let before = line.get(..inner).unwrap_or_default().trim_ascii_end();
    // Inside a string the quotes of the key are escaped, and the second quote does not match.
    before.ends_with(KEY) && !before.ends_with(b"\\\"attachment\":")
}

fn after_key<'l>(line: &'l [u8], key: &[u8]) -> Option<&'l [u8]> {
    line.trim_ascii_start().strip_prefix(key).map(<[u8]>::trim_ascii_start)
}

/// Replaces a name, if the record contains one.
fn replace_named(name: &mut String, recorded: &str) {
    if !recorded.is_empty() && recorded != name {
        cut(recorded, NAME_TEXT_MAX).clone_into(name);
    }
}

/// Appends a value, and removes the oldest above the bound.
pub(super) fn push_bounded<T>(list: &mut Vec<T>, value: T, max: usize) {
    if list.len() >= max {
        list.drain(..=list.len() - max);
    }
    list.push(value);
}

/// Bytes beyond a cut that are masked with the stored text, so that no part of a secret remains.
const MASKED_BEYOND: usize = 512;

/// Returns the beginning of a text of at most `bytes_max` bytes, with secrets replaced.
fn masked_front(text: &str, bytes_max: usize) -> String {
    cut(&mask(cut(text, bytes_max + MASKED_BEYOND)).0, bytes_max).to_owned()
}

/// Returns the end of a text of at most `bytes_max` bytes, with secrets replaced.
fn masked_end(text: &str, bytes_max: usize) -> String {
    cut_front(&mask(cut_front(text, bytes_max + MASKED_BEYOND)).0, bytes_max).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_cannot_matter() {
        for (line, expected) in [
            (r#"{"type":"api-request-blob","x":1}"#, true),
            (r#"{ "type": "queue-operation", "operation":"enqueue"}"#, true),
            (r#"{"type":"user","message":{}}"#, false),
            (r#"{"x":{"type":"api-request"}}"#, false),
            (r#"{"uuid":"a","attachment":{"type":"prompt_snapshot"},"type":"attachment"}"#, true),
            (r#"{"uuid":"a","attachment": {"type":"queued_command"}}"#, false),
            (r#"{"message":{"attachment":{}}}"#, false),
            (r#"{"content":"\"attachment\":{","type":"user"}"#, false),
            (r#"{"type":"queue-operations"}"#, false),
        ] {
            assert_eq!(cannot_matter(line.as_bytes()), expected, "{line}");
        }
    }
}
