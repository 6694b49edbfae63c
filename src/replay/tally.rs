//! Counts of a replay, by rule and over all stops. Counts of parts add up in any order, so that the
//! distribution of work does not matter.

use std::collections::BTreeMap;

use super::compare::Comparison;
use super::judge::StopResult;
use policyd_evaluation::StopOutcome;
use policyd_evaluation::combine::Decision;
use policyd_evaluation::guards::{GuardVerdict, GuardsOutcome};
use policyd_evaluation::verdict::{CheckStatus, CheckVerdict, Consequence};
use policyd_policy::guards::GuardAction;
use policyd_policy::{Mode, Policy};
use policyd_yaml::time::Timestamp;

/// A location in a transcript, with the finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Example {
    /// Path of the transcript.
    pub file: String,
    /// Line of the agent's last action before the stop, from 1.
    pub line: u64,
    /// Time of the stop or the tool call.
    pub at: Timestamp,
    /// Id of the session.
    pub session: String,
    /// Command or file of the tool call. Empty for a stop.
    pub subject: String,
    /// Finding, in the rule's words.
    pub details: String,
    /// Whether the rule would block there, or ask.
    pub interrupts: bool,
}

/// Number of occurrences, with the first examples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Count {
    pub times: u64,
    /// First examples, by file and line.
    pub examples: Vec<Example>,
}

impl Example {
    /// Returns whether it is a tool call, not a stop.
    #[must_use]
    pub fn is_call(&self) -> bool {
        !self.subject.is_empty()
    }
}

impl Count {
    /// Counts an occurrence further down in the same transcript. `example` runs only if its result
    /// is stored.
    pub fn add(&mut self, examples_max: usize, example: impl FnOnce() -> Example) {
        self.times = self.times.saturating_add(1);
        if self.examples.len() < examples_max {
            self.examples.push(example());
        }
    }

    /// Adds the count of another part.
    pub fn merge(&mut self, other: Self, examples_max: usize) {
        self.times = self.times.saturating_add(other.times);
        if !other.examples.is_empty() {
            self.examples.extend(other.examples);
            self.examples.sort();
            self.examples.truncate(examples_max);
        }
    }
}

/// Counts of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleTally {
    pub id: String,
    pub mode: Mode,
    /// Source location.
    pub place: String,
    /// Stops at which it fired.
    pub fired: Count,
    /// Stops at which it passed.
    pub silent: u64,
    /// Stops at which its result was unknown. The examples contain the reasons.
    pub unknown: Count,
    /// Stops at which it did not apply.
    pub skipped: u64,
    /// Sessions in which it fired.
    pub sessions: u64,
    /// Stops that it would block in `enforce` mode.
    pub would_block: u64,
    /// Stops at which it would warn in `enforce` mode.
    pub would_warn: u64,
    /// Tool calls that it would ask about in `enforce` mode.
    pub would_ask: u64,
}

impl RuleTally {
    fn new(id: &str, mode: Mode, place: String) -> Self {
        Self {
            id: id.to_owned(),
            mode,
            place,
            fired: Count::default(),
            silent: 0,
            unknown: Count::default(),
            skipped: 0,
            sessions: 0,
            would_block: 0,
            would_warn: 0,
            would_ask: 0,
        }
    }

    /// Counts the result of a guard for a call with this decision.
    fn add_said(
        &mut self,
        verdict: &GuardVerdict,
        decision: Decision,
        examples_max: usize,
        example: impl FnOnce() -> Example,
    ) {
        let interrupts =
            matches!(verdict.verb, GuardAction::Block | GuardAction::Halt | GuardAction::Ask);
        let example = || Example { interrupts, ..example() };
        match &verdict.unknown {
            None => self.fired.add(examples_max, example),
            Some(_) => self.unknown.add(examples_max, example),
        }
        let is_stopped = matches!(decision, Decision::Block | Decision::Halt);
        increase(match verdict.verb {
            GuardAction::Block | GuardAction::Halt => &mut self.would_block,
            // The user is not asked about a call that another guard blocks.
            GuardAction::Ask if is_stopped => return,
            GuardAction::Ask => &mut self.would_ask,
            // What a recording does not contain is unknown, and no reason to warn.
            GuardAction::Warn | GuardAction::Context if verdict.unknown.is_some() => return,
            GuardAction::Warn | GuardAction::Context => &mut self.would_warn,
            GuardAction::Allow | GuardAction::Defer | GuardAction::Mask | GuardAction::Remember => {
                return;
            }
        });
    }

    /// Counts the result of a check at a stop with this decision.
    fn add(
        &mut self,
        verdict: &CheckVerdict,
        decision: Decision,
        examples_max: usize,
        example: impl FnOnce() -> Example,
    ) {
        // The user's words, or the limit of blocks, released the stop.
        let is_released = verdict.consequence == Consequence::Blocks && decision != Decision::Block;
        let interrupts = verdict.enforced == Consequence::Blocks && !is_released;
        let example = || Example { interrupts, ..example() };
        match verdict.status {
            CheckStatus::Satisfied => self.silent = self.silent.saturating_add(1),
            CheckStatus::Skipped(_) => self.skipped = self.skipped.saturating_add(1),
            CheckStatus::Unsatisfied => self.fired.add(examples_max, example),
            CheckStatus::Unknown(_) => self.unknown.add(examples_max, example),
        }
        match verdict.enforced {
            Consequence::Blocks if is_released => {}
            Consequence::Blocks => self.would_block = self.would_block.saturating_add(1),
            Consequence::Warns => self.would_warn = self.would_warn.saturating_add(1),
            Consequence::None | Consequence::Recorded => {}
        }
    }

    fn merge(&mut self, other: Self, examples_max: usize) {
        self.fired.merge(other.fired, examples_max);
        self.unknown.merge(other.unknown, examples_max);
        for (own, more) in [
            (&mut self.silent, other.silent),
            (&mut self.skipped, other.skipped),
            (&mut self.sessions, other.sessions),
            (&mut self.would_block, other.would_block),
            (&mut self.would_warn, other.would_warn),
            (&mut self.would_ask, other.would_ask),
        ] {
            *own = own.saturating_add(more);
        }
    }
}

/// Statistics of the input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputStats {
    /// Transcripts with at least one entry.
    pub transcripts: u64,
    /// Files without any record of a client.
    pub no_transcripts: u64,
    /// Files that could not be read, with the reason.
    pub unreadable: Vec<(String, String)>,
    /// Lines that are not JSON, too long, or of an unknown shape.
    pub broken_lines: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// Result of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// Maximum examples of each count.
    pub examples_max: usize,
    /// Statistics of the input.
    pub reading: InputStats,
    /// Sessions with a stop.
    pub sessions: u64,
    /// Stops, those of subagents included.
    pub stops: u64,
    /// Stops of subagents.
    pub subagent_stops: u64,
    /// Stops that were evaluated.
    pub judged: u64,
    /// Stops without a decision, by reason.
    pub no_opinion: BTreeMap<&'static str, u64>,
    /// Stops that a hook blocked when the session was recorded.
    pub blocked_then: u64,
    /// Copied stops of forked sessions, which count only in the original.
    pub copied: u64,
    /// Turns that ended without a stop.
    pub cut_off: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Stops that the pack blocks.
    pub blocks: Count,
    /// Stops at which the pack warns and does not block.
    pub warnings: u64,
    /// Stops that the block limit releases, by reason.
    pub releases: BTreeMap<&'static str, u64>,
    /// All checks, in the order of the pack.
    pub rules: Vec<RuleTally>,
    /// Tool calls for which guards were evaluated.
    pub guarded: u64,
    /// Tool calls that the pack blocks.
    pub stopped: Count,
    /// Tool calls that the pack asks about.
    pub asked: Count,
    /// Tool calls whose permission prompt policyd would answer at the level `work`.
    pub approvable: u64,
    /// All guards, in the order of the pack.
    pub guards: Vec<RuleTally>,
    /// Comparison with another pack.
    pub comparison: Option<Comparison>,
}

impl Tally {
    /// Creates an empty tally.
    #[must_use]
    pub fn new(policy: &Policy, other: Option<&Policy>, examples_max: usize) -> Self {
        let rules = policy.considerations.iter();
        let rules = rules.map(|it| RuleTally::new(&it.id, it.mode, it.place.to_string()));
        let guards = policy.guards.rules.iter();
        let guards = guards.map(|it| RuleTally::new(&it.id, it.mode, it.body.place.to_string()));
        Self {
            examples_max,
            reading: InputStats::default(),
            sessions: 0,
            stops: 0,
            subagent_stops: 0,
            judged: 0,
            no_opinion: BTreeMap::new(),
            blocked_then: 0,
            copied: 0,
            cut_off: 0,
            tool_calls: 0,
            blocks: Count::default(),
            warnings: 0,
            releases: BTreeMap::new(),
            rules: rules.collect(),
            guarded: 0,
            approvable: 0,
            stopped: Count::default(),
            asked: Count::default(),
            guards: guards.collect(),
            comparison: other.map(|other| Comparison::new(policy, other)),
        }
    }

    /// Counts an evaluated stop. `place` builds an example from the details of a finding.
    pub fn add(
        &mut self,
        judged: &StopResult,
        other: Option<&StopResult>,
        place: impl Fn(String) -> Example,
    ) {
        match judged {
            Ok(outcome) => self.add_outcome(outcome, &place),
            Err(why) => increase(self.no_opinion.entry(*why).or_default()),
        }
        if let (Some(comparison), Some(other)) = (&mut self.comparison, other) {
            comparison.add(judged, other, self.examples_max, place);
        }
    }

    fn add_outcome(&mut self, outcome: &StopOutcome, place: &impl Fn(String) -> Example) {
        increase(&mut self.judged);
        let max = self.examples_max;
        for (rule, verdict) in self.rules.iter_mut().zip(&outcome.verdicts) {
            rule.add(verdict, outcome.decision, max, || place(verdict.details.clone()));
        }
        if outcome.decision == Decision::Block {
            self.blocks.add(max, || place(blockers(outcome)));
        } else if outcome.verdicts.iter().any(|it| it.consequence == Consequence::Warns) {
            increase(&mut self.warnings);
        }
        if !outcome.release.is_empty() {
            increase(self.releases.entry(outcome.release).or_default());
        }
    }

    /// Counts a tool call for which guards were evaluated. `place` is as for a stop.
    pub fn add_call(
        &mut self,
        guarded: &GuardsOutcome,
        other: Option<&GuardsOutcome>,
        place: impl Fn(String) -> Example,
    ) {
        increase(&mut self.guarded);
        let max = self.examples_max;
        let mut next = 0;
        for id in &guarded.judged {
            let said = guarded.verdicts.iter().any(|it| it.id == *id);
            let guard = self.guard(id, &mut next).filter(|_| !said);
            guard.into_iter().for_each(|it| increase(&mut it.silent));
        }
        for it in &guarded.verdicts {
            let guard = self.guard(&it.id, &mut next);
            guard.into_iter().for_each(|guard| {
                guard.add_said(it, guarded.decision, max, || place(it.format_message()));
            });
        }
        match guarded.decision {
            Decision::Block | Decision::Halt => {
                self.stopped.add(max, || place(guarded.reason.clone()));
            }
            Decision::Ask => self.asked.add(max, || place(guarded.reason.clone())),
            Decision::None | Decision::Allow | Decision::Defer => {}
        }
        if let (Some(comparison), Some(other)) = (&mut self.comparison, other) {
            comparison.add_call(guarded, other, max, place);
        }
    }

    /// Returns the counts of a guard. The search begins at `next`, because most guards come in the
    /// order of the pack.
    fn guard(&mut self, id: &str, next: &mut usize) -> Option<&mut RuleTally> {
        let mut places = (*next..self.guards.len()).chain(0..*next);
        let is_it = |place: &usize| self.guards.get(*place).is_some_and(|it| it.id == id);
        let place = places.find(is_it)?;
        *next = place.saturating_add(1);
        self.guards.get_mut(place)
    }

    /// Ends a session.
    pub fn end_session(&mut self) {
        self.sessions = u64::from(self.stops > 0);
        for rule in self.rules.iter_mut().chain(&mut self.guards) {
            rule.sessions = u64::from(rule.fired.times > 0);
        }
    }

    /// Adds the tally of another part, of the same packs.
    pub fn merge(&mut self, other: Self) {
        let max = self.examples_max;
        if !other.reading.unreadable.is_empty() {
            self.reading.unreadable.extend(other.reading.unreadable);
            self.reading.unreadable.sort();
        }
        for (own, more) in [
            (&mut self.reading.transcripts, other.reading.transcripts),
            (&mut self.reading.no_transcripts, other.reading.no_transcripts),
            (&mut self.reading.broken_lines, other.reading.broken_lines),
            (&mut self.reading.bytes, other.reading.bytes),
            (&mut self.sessions, other.sessions),
            (&mut self.stops, other.stops),
            (&mut self.subagent_stops, other.subagent_stops),
            (&mut self.judged, other.judged),
            (&mut self.blocked_then, other.blocked_then),
            (&mut self.copied, other.copied),
            (&mut self.cut_off, other.cut_off),
            (&mut self.tool_calls, other.tool_calls),
            (&mut self.warnings, other.warnings),
            (&mut self.guarded, other.guarded),
            (&mut self.approvable, other.approvable),
        ] {
            *own = own.saturating_add(more);
        }
        self.blocks.merge(other.blocks, max);
        self.stopped.merge(other.stopped, max);
        self.asked.merge(other.asked, max);
        add_all(&mut self.no_opinion, other.no_opinion);
        add_all(&mut self.releases, other.releases);
        let own = self.rules.iter_mut().chain(&mut self.guards);
        for (rule, more) in own.zip(other.rules.into_iter().chain(other.guards)) {
            rule.merge(more, max);
        }
        if let (Some(own), Some(more)) = (&mut self.comparison, other.comparison) {
            own.merge(more, max);
        }
    }
}

/// Increments a number.
pub fn increase(number: &mut u64) {
    *number = number.saturating_add(1);
}

fn add_all(own: &mut BTreeMap<&'static str, u64>, more: BTreeMap<&'static str, u64>) {
    for (why, times) in more {
        let number = own.entry(why).or_default();
        *number = number.saturating_add(times);
    }
}

/// Returns the blockers of a stop: each check with its finding.
#[must_use]
pub fn blockers(outcome: &StopOutcome) -> String {
    let blocking = outcome.verdicts.iter().filter(|it| it.consequence == Consequence::Blocks);
    let texts: Vec<String> = blocking.map(|it| format!("{}: {}", it.id, it.details)).collect();
    texts.join("; ")
}
