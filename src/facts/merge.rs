//! Merges the facts of an agent with those of its subagents into one order of positions. A
//! subagent's work comes at the position of its report, or at the end if it has not reported.
//!
//! Contains: edits, findings, commands, tool calls. Does not contain: prompts, messages, todo items
//! and tokens of a subagent.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::fold::push_bounded;
use super::{Commands, EditedFile, Facts, KindFacts, LatestCall, ShellCommand, Tools};
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
    ///
    /// This function and [`add`](Self::add) name every field, so that a new one does not compile before they handle it.
    fn renumber(&mut self, moved: &dyn Fn(u64) -> u64) {
        let change = |seq: &mut u64| {
            if *seq > 0 {
                *seq = moved(*seq);
            }
        };
        let Self {
            seq,
            prompts,
            messages,
            tools,
            commands,
            files,
            undone_seq: _, // Known at a stop only, after the merge.
            findings,
            todos,
            compactions,
            pending,
            background,
            background_runs,
            skills,
            subagents,
            agents,
            cut_off_seq,
            stop_seq,
            sidechain: _,
            lines_skipped: _,
            lines_foreign: _,
            session_named: _,
            tokens: _,
            history_bytes: _,
            branch: _,
            branch_recorded: _,
            folder: _,
            permission_mode: _,
            skills_asked: _,
            ended: _,
            feedback: _,
            stop_sent_at: _,
        } = self;
        change(seq);
        prompts.first.iter_mut().chain(&mut prompts.last).for_each(|it| change(&mut it.seq));
        messages.last.iter_mut().for_each(|it| change(&mut it.seq));
        change(&mut tools.last_seq);
        commands.renumber(&change);
        for file in files {
            change(&mut file.first_seq);
            change(&mut file.last_seq);
            file.edited_at.iter_mut().for_each(&change);
        }
        findings.iter_mut().for_each(|it| change(&mut it.seq));
        change(&mut todos.last_seq);
        change(&mut compactions.last_seq);
        for call in pending.iter_mut().chain(background) {
            change(&mut call.seq);
            change(&mut call.reads);
        }
        background_runs.iter_mut().for_each(|it| change(&mut it.seq));
        subagents.iter_mut().for_each(|it| change(&mut it.seq));
        agents.values_mut().chain(tools.latest.values_mut()).for_each(|it| change(&mut it.seq));
        skills.values_mut().for_each(&change);
        change(cut_off_seq);
        change(stop_seq);
    }

    /// Adds facts whose positions are already mapped.
    fn add(&mut self, part: Self) {
        let Self {
            seq,
            lines_skipped,
            lines_foreign,
            tools,
            commands,
            files,
            findings,
            skills,
            agents,
            pending,
            background,
            background_runs,
            ended,
            // The agent's own.
            sidechain: _,
            session_named: _,
            prompts: _,
            messages: _,
            undone_seq: _,
            todos: _,
            tokens: _,
            history_bytes: _,
            compactions: _,
            branch: _,
            branch_recorded: _,
            folder: _,
            permission_mode: _,
            skills_asked: _,
            subagents: _,
            cut_off_seq: _,
            feedback: _,
            stop_seq: _,
            stop_sent_at: _,
        } = part;
        self.seq = self.seq.max(seq);
        self.lines_skipped = self.lines_skipped.saturating_add(lines_skipped);
        self.lines_foreign = self.lines_foreign.saturating_add(lines_foreign);
        self.tools.add(tools);
        self.commands.add(commands);
        for file in files {
            match self.files.iter_mut().find(|it| it.path == file.path) {
                Some(own) => own.add(file),
                None => self.files.push(file),
            }
        }
        self.findings.extend(findings);
        for (name, seq) in skills {
            let own = self.skills.entry(name).or_default();
            *own = seq.max(*own);
        }
        keep_newest(&mut self.agents, agents);
        self.pending.extend(pending);
        self.background.extend(background);
        self.background_runs.extend(background_runs);
        for hash in ended {
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
        self.background_runs.sort_by_key(|it| it.seq);
        keep_last(&mut self.background_runs, PENDING_TOOLS_MAX);
    }
}

impl Tools {
    fn add(&mut self, part: Self) {
        let Self {
            total,
            by_name,
            failed,
            denied,
            latest,
            last_name,
            last_seq,
            // The agent's own.
            last_error: _,
            same_errors: _,
            unseen: _,
        } = part;
        self.total = self.total.saturating_add(total);
        self.failed = self.failed.saturating_add(failed);
        self.denied = self.denied.saturating_add(denied);
        for (name, count) in by_name {
            *self.by_name.entry(name).or_default() += count;
        }
        keep_newest(&mut self.latest, latest);
        if last_seq > self.last_seq {
            self.last_seq = last_seq;
            self.last_name = last_name;
        }
    }
}

/// Adds calls that are newer than those of the same name.
fn keep_newest(own: &mut BTreeMap<String, LatestCall>, part: BTreeMap<String, LatestCall>) {
    for (name, call) in part {
        let newest = own.entry(name).or_default();
        if call.seq > newest.seq {
            *newest = call;
        }
    }
}

impl Commands {
    fn renumber(&mut self, change: &dyn Fn(&mut u64)) {
        let command = |command: &mut Rc<ShellCommand>| {
            let command = Rc::make_mut(command);
            change(&mut command.seq);
            change(&mut command.result_seq);
        };
        self.recent.iter_mut().for_each(command);
        for kind in self.by_kind.values_mut().map(Rc::make_mut) {
            change(&mut kind.last_passed_seq);
            change(&mut kind.last_failed_seq);
            change(&mut kind.last_denied_seq);
            command(&mut kind.last);
        }
    }

    fn add(&mut self, part: Self) {
        let Self { total, recent, by_kind } = part;
        self.total = self.total.saturating_add(total);
        self.recent.extend(recent);
        for (name, kind) in by_kind {
            match self.by_kind.get_mut(&name) {
                Some(own) => Rc::make_mut(own).add(&kind),
                None => {
                    self.by_kind.insert(name, kind);
                }
            }
        }
    }
}

impl EditedFile {
    fn add(&mut self, part: Self) {
        let Self {
            path: _,
            edits,
            written,
            first_seq,
            last_seq,
            tool,
            kinds: _, // Of the path.
            edited_at,
            open_changes,
        } = part;
        self.edits = self.edits.saturating_add(edits);
        self.written = self.written.saturating_add(written);
        self.first_seq = self.first_seq.min(first_seq);
        self.edited_at.extend(edited_at);
        self.edited_at.sort_unstable();
        self.open_changes.extend(open_changes);
        if last_seq > self.last_seq {
            self.last_seq = last_seq;
            self.tool = tool;
        }
    }
}

impl KindFacts {
    fn add(&mut self, part: &Self) {
        let Self {
            count,
            failed,
            last_passed_seq,
            last_failed_seq,
            last_denied_seq,
            last_passed_text,
            failures,
            failures_before: _, // The agent's own.
            last,
        } = part;
        self.count = self.count.saturating_add(*count);
        self.failed = self.failed.saturating_add(*failed);
        if *last_passed_seq > self.last_passed_seq {
            self.last_passed_seq = *last_passed_seq;
            self.last_passed_text.clone_from(last_passed_text);
        }
        if *last_failed_seq > self.last_failed_seq {
            self.last_failed_seq = *last_failed_seq;
            self.failures.clone_from(failures);
        }
        self.last_denied_seq = self.last_denied_seq.max(*last_denied_seq);
        if last.seq > self.last.seq {
            self.last = Rc::clone(last);
        }
    }
}

fn keep_last<T>(list: &mut Vec<T>, most: usize) {
    list.drain(..list.len().saturating_sub(most));
}
