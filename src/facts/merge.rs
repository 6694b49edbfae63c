//! Merges the facts of an agent with those of its subagents into one order of positions. A
//! subagent's work comes at the position of its report, or at the end if it has not reported.
//!
//! Contains: edits, findings, commands, tool calls. Does not contain: prompts, messages, todo items
//! and tokens of a subagent.

use std::rc::Rc;

use super::fold::push_bounded;
use super::{Facts, KindFacts, ShellCommand};
use policyd_base::limits::{
    COMMANDS_KEPT_MAX, ENDED_CALLS_KEPT_MAX, FILES_KEPT_MAX, FINDINGS_KEPT_MAX, PENDING_TOOLS_MAX,
};

/// The range of positions of one subagent within those of the agent.
struct Shift {
    /// Position of the agent after which the subagent's work is inserted.
    after: u64,
    /// Number of positions that the subagent used.
    length: u64,
}

impl Facts {
    /// Adds the work of subagents, each with its id.
    pub fn add_subagents(&mut self, subagents: Vec<(String, Self)>) {
        let mut parts: Vec<(u64, Self)> = subagents
            .into_iter()
            .filter(|(_, facts)| facts.seq > 0)
            .map(|(agent, facts)| (self.report_of(&agent), facts))
            .collect();
        if parts.is_empty() {
            return;
        }
        parts.sort_by_key(|(after, _)| *after);
        let shifts: Vec<Shift> =
            parts.iter().map(|(after, it)| Shift { after: *after, length: it.seq }).collect();
        let moved = |seq: u64| {
            let before = shifts.iter().filter(|it| it.after < seq);
            seq.saturating_add(before.map(|it| it.length).sum())
        };
        self.renumber(&moved);
        let mut earlier = 0_u64;
        for (after, mut part) in parts {
            let start = after.saturating_add(earlier);
            earlier = earlier.saturating_add(part.seq);
            part.renumber(&|seq| start.saturating_add(seq));
            self.add(part);
        }
        self.settle();
    }

    /// Returns the position after which the work of a subagent is inserted.
    fn report_of(&self, agent: &str) -> u64 {
        let report = self.subagents.iter().rev().find(|it| it.agent == agent);
        report.map_or(self.seq, |it| it.seq.saturating_sub(1))
    }

    /// Maps every position. 0 still means "none".
    fn renumber(&mut self, moved: &dyn Fn(u64) -> u64) {
        let change = |seq: &mut u64| {
            if *seq > 0 {
                *seq = moved(*seq);
            }
        };
        change(&mut self.seq);
        let prompts = self.prompts.first.iter_mut().chain(&mut self.prompts.last);
        prompts.for_each(|it| change(&mut it.seq));
        self.messages.last.iter_mut().for_each(|it| change(&mut it.seq));
        change(&mut self.tools.last_seq);
        let command = |command: &mut Rc<ShellCommand>| {
            let command = Rc::make_mut(command);
            change(&mut command.seq);
            change(&mut command.result_seq);
        };
        self.commands.recent.iter_mut().for_each(command);
        for kind in self.commands.by_kind.values_mut().map(Rc::make_mut) {
            change(&mut kind.last_passed_seq);
            change(&mut kind.last_failed_seq);
            change(&mut kind.last_denied_seq);
            command(&mut kind.last);
        }
        for file in &mut self.files {
            change(&mut file.first_seq);
            change(&mut file.last_seq);
            file.edited_at.iter_mut().for_each(&change);
        }
        self.findings.iter_mut().for_each(|it| change(&mut it.seq));
        change(&mut self.todos.last_seq);
        change(&mut self.compactions.last_seq);
        self.pending.iter_mut().chain(&mut self.background).for_each(|it| change(&mut it.seq));
        self.subagents.iter_mut().for_each(|it| change(&mut it.seq));
        change(&mut self.cut_off_seq);
        change(&mut self.stop_seq);
    }

    /// Adds facts whose positions are already mapped.
    fn add(&mut self, part: Self) {
        self.seq = self.seq.max(part.seq);
        self.lines_skipped = self.lines_skipped.saturating_add(part.lines_skipped);
        self.lines_foreign = self.lines_foreign.saturating_add(part.lines_foreign);
        self.tools.total = self.tools.total.saturating_add(part.tools.total);
        self.tools.failed = self.tools.failed.saturating_add(part.tools.failed);
        self.tools.denied = self.tools.denied.saturating_add(part.tools.denied);
        for (name, count) in part.tools.by_name {
            *self.tools.by_name.entry(name).or_default() += count;
        }
        if part.tools.last_seq > self.tools.last_seq {
            self.tools.last_seq = part.tools.last_seq;
            self.tools.last_name = part.tools.last_name;
        }
        self.commands.total = self.commands.total.saturating_add(part.commands.total);
        self.commands.recent.extend(part.commands.recent);
        for (name, kind) in part.commands.by_kind {
            match self.commands.by_kind.get_mut(&name) {
                Some(own) => add_kind(Rc::make_mut(own), &kind),
                None => {
                    self.commands.by_kind.insert(name, kind);
                }
            }
        }
        for file in part.files {
            match self.files.iter_mut().find(|it| it.path == file.path) {
                Some(own) => {
                    own.edits = own.edits.saturating_add(file.edits);
                    own.written = own.written.saturating_add(file.written);
                    own.first_seq = own.first_seq.min(file.first_seq);
                    own.edited_at.extend(file.edited_at);
                    own.edited_at.sort_unstable();
                    own.open_changes.extend(file.open_changes);
                    if file.last_seq > own.last_seq {
                        own.last_seq = file.last_seq;
                        own.tool = file.tool;
                    }
                }
                None => self.files.push(file),
            }
        }
        self.findings.extend(part.findings);
        self.skills.extend(part.skills);
        self.pending.extend(part.pending);
        self.background.extend(part.background);
        for hash in part.ended {
            push_bounded(&mut self.ended, hash, ENDED_CALLS_KEPT_MAX);
        }
    }

    /// Sorts every list and applies its limit.
    fn settle(&mut self) {
        self.commands.recent.sort_by_key(|it| it.seq);
        keep_last(&mut self.commands.recent, COMMANDS_KEPT_MAX);
        self.files.sort_by_key(|it| it.last_seq);
        keep_last(&mut self.files, FILES_KEPT_MAX);
        self.findings.sort_by_key(|it| it.seq);
        keep_last(&mut self.findings, FINDINGS_KEPT_MAX.saturating_mul(8));
        self.pending.sort_by_key(|it| it.seq);
        keep_last(&mut self.pending, PENDING_TOOLS_MAX);
    }
}

/// Adds the commands of one class that another agent ran.
fn add_kind(own: &mut KindFacts, other: &KindFacts) {
    own.count = own.count.saturating_add(other.count);
    own.failed = own.failed.saturating_add(other.failed);
    if other.last_passed_seq > own.last_passed_seq {
        own.last_passed_seq = other.last_passed_seq;
        own.last_passed_text.clone_from(&other.last_passed_text);
    }
    if other.last_failed_seq > own.last_failed_seq {
        own.last_failed_seq = other.last_failed_seq;
        own.failures.clone_from(&other.failures);
    }
    own.last_denied_seq = own.last_denied_seq.max(other.last_denied_seq);
    if other.last.seq > own.last.seq {
        own.last = Rc::clone(&other.last);
    }
}

fn keep_last<T>(list: &mut Vec<T>, most: usize) {
    list.drain(..list.len().saturating_sub(most));
}
