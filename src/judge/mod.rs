//! The judge: what to ask before deciding, and the decision. Pure: everything arrives as values.
//!
//! `plan` says which probes and preferences are needed; `decide` judges every consideration, asks
//! the loop guard, and says what is to be remembered and spoken.

pub mod called;
pub mod combine;
mod consider;
pub mod context;
pub mod dead_letter;
pub mod escalation;
pub mod guards;
pub mod inputs;
pub mod message;
mod outcome;
pub mod preference;
pub mod rationalization;
pub mod signals;
pub mod situation;
pub mod standing;
pub mod tables;
pub mod verdict;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::checksum::hex;
use crate::facts::event::{Event, EventKind};
use crate::facts::{Facts, Prompt};
use crate::policy::{Consideration, Policy, Probe};
use crate::script::Evaluator;
use crate::script::context::{Context, Memory, Reading, RuleFacts};
use crate::state::context::Standing;
use crate::state::guard::{self, Ruling, Stop};
use crate::state::{FailedConsideration, GuardState, SessionState};

use consider::Applicability;
pub use outcome::Outcome;
use verdict::{Consequence, Verdict};

/// What must be asked before deciding.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Type of the session.
    pub session_type: String,
    /// Probes to run, by id.
    pub probes: Vec<String>,
    /// Preferences to look for, by id.
    pub preferences: Vec<String>,
}

/// Why an event gets no opinion, whatever the rules say.
#[must_use]
pub fn no_opinion(event: &Event, facts: &Facts, interactive: bool) -> Option<&'static str> {
    if event.agent_type.as_deref() == Some("") && event.kind == EventKind::SubagentStop {
        return Some("an internal agent of the client");
    }
    if event.permission_mode.as_deref() == Some("plan") {
        return Some("the agent is planning");
    }
    // Other agents come back with results; a shell may be a server that never ends.
    if interactive && event.agents_in_background() > 0 {
        return Some("background agents are still running");
    }
    // A question to the human that has no answer yet: the agent waits, and may.
    let asks = |name: &str| matches!(name, "AskUserQuestion" | "ExitPlanMode");
    if facts.pending.last().is_some_and(|it| asks(&it.name)) {
        return Some("the agent waits for the user");
    }
    None
}

/// Classifies the session and lists what the applicable considerations need to know.
#[must_use]
pub fn plan(
    policy: &Policy,
    context: &Context,
    forced_type: Option<&str>,
    evaluator: &mut Evaluator,
) -> Plan {
    let session_type = classify(policy, context, forced_type, evaluator);
    let mut uses = BTreeSet::new();
    for it in policy.considerations.iter() {
        let out = consider::out_of_scope(it, context.event.kind, &session_type, context.now);
        // What a condition needs to know must be asked before it can be evaluated.
        let whens = [it.when.as_ref(), it.check.when.as_ref()].into_iter().flatten();
        let asked: Vec<&str> = whens.flat_map(|it| it.uses.iter()).map(String::as_str).collect();
        // A probe that was not asked is an error, so that a condition that gets that far applies;
        // the others have a value, which may not be theirs yet.
        let unknown_yet = |name: &&str| {
            ["prefs.", "state.", "rule.", "rationalizations.", "context."]
                .iter()
                .any(|it| name.starts_with(it))
        };
        let may_apply = out.is_none()
            && (asked.iter().any(unknown_yet)
                || consider::applicability(it, evaluator) != Applicability::NotApplicable);
        if may_apply {
            uses.extend(it.check.uses.iter().map(String::as_str));
            uses.extend(asked);
        }
    }
    let named = |prefix: &str| {
        let names = uses.iter().filter_map(|it| it.strip_prefix(prefix));
        names.filter(|it| !it.contains('.')).map(str::to_owned).collect()
    };
    Plan { session_type, probes: named("probes."), preferences: named("prefs.") }
}

/// Classifies the session; expressions see its type from now on.
pub fn classify(
    policy: &Policy,
    context: &Context,
    forced: Option<&str>,
    evaluator: &mut Evaluator,
) -> String {
    let wanted = forced.map(str::to_ascii_uppercase);
    let mut types = policy.session_types.iter();
    let known = types.clone().find(|it| Some(&it.id) == wanted.as_ref());
    let found = known.or_else(|| types.find(|it| evaluator.eval_bool(&it.when).unwrap_or(false)));
    let session_type = found.map(|it| it.id.clone()).unwrap_or_default();
    context.learned.borrow_mut().session_type.clone_from(&session_type);
    session_type
}

/// How much is said of each consideration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Texts where something is amiss: what a hook can say, and what it costs at every stop.
    Findings,
    /// Texts of every consideration that was judged.
    Everything,
    /// The values of the parts of each condition, too.
    Values,
}

/// What `decide` needs besides the context.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// The pack.
    pub policy: &'a Policy,
    /// Everything expressions see; the plan's answers are in it.
    pub context: &'a Context,
    /// What the session remembers, read under the lock.
    pub state: &'a SessionState,
    /// Time since some point, for timings; constant where they do not matter.
    pub stopwatch: &'a dyn Fn() -> Duration,
    /// How much is said of each consideration.
    pub detail: Detail,
    /// Where the full report will be, for a message that had to be cut.
    pub report_path: &'a str,
}

/// Judges a stop.
#[must_use]
pub fn decide(bench: Bench<'_>, evaluator: &mut Evaluator) -> Outcome {
    let guard = guard_of(bench.state, &bench.context.event);
    bench.context.learned.borrow_mut().memory = memory(bench.state, &bench.context.event);
    learn_context(bench);
    let verdicts: Vec<Verdict> =
        bench.policy.considerations.iter().map(|it| judge(it, bench, evaluator)).collect();
    let failed: Vec<FailedConsideration> = verdicts
        .iter()
        .filter(|it| it.consequence == Consequence::Blocks)
        .map(|it| FailedConsideration {
            id: it.id.clone(),
            details: it.details.clone(),
            evidence: it.evidence.clone(),
        })
        .collect();
    let fingerprint = fingerprint(failed.iter().map(|it| it.id.as_str()));
    let facts = &bench.context.facts;
    let episode = episode(&bench.context.event, facts, &guard);
    // Evidence may be a model's words, which are never the same twice.
    let digest = digest(failed.iter().map(|it| format!("{}\n{}", it.id, it.details)));
    let stop = Stop {
        episode: &episode,
        fingerprint: fingerprint.as_deref(),
        digest: digest.as_deref().unwrap_or_default(),
        failed: &failed,
        tools: facts.tools.total,
        edits: facts.files.iter().map(|it| it.edits).sum(),
    };
    let (guard, ruling) =
        guard::step(&guard, &stop, &bench.policy.settings.guard, bench.context.now);
    outcome::outcome(bench, verdicts, (guard, ruling), evaluator)
}

/// Puts the remembered tier to what the meters say, where an expression asks.
fn learn_context(bench: Bench<'_>) {
    let context = bench.context;
    let Some(measured) = context.learned.borrow().context.clone() else { return };
    // Subagents come and go: what is remembered is the main agent's.
    let nothing = Standing::default();
    let main = context.event.agent_id.is_none();
    let standing = if main { &bench.state.context } else { &nothing };
    let overrides = context.overrides.naming(standing);
    let by = (&*bench.policy.context, &overrides);
    let gauge = match overrides == context.overrides {
        true => measured,
        false => Rc::new(context::gauge(by.0, by.1, &context.facts)),
    };
    let settled = context::settle(&gauge, standing, by, &context.facts);
    context.learned.borrow_mut().context = Some(Rc::new(settled));
}

fn judge(it: &Consideration, bench: Bench<'_>, evaluator: &mut Evaluator) -> Verdict {
    let began = (bench.stopwatch)();
    let context = bench.context;
    let out = {
        let session_type = &context.learned.borrow().session_type;
        consider::out_of_scope(it, context.event.kind, session_type, context.now)
    };
    let mut verdict = if let Some(why) = out {
        consider::skipped(it, why)
    } else {
        let keywords = |it: &Consideration| keywords(&it.question, &bench.policy.stop_words);
        let keywords = if it.asks_for_keywords { keywords(it) } else { Vec::new() };
        context.learned.borrow_mut().rule = RuleFacts { id: it.id.clone(), keywords };
        if it.asks_for_excuses {
            rationalization::learn(bench.policy, context, evaluator);
        }
        match consider::applicability(it, evaluator) {
            Applicability::NotApplicable => consider::not_applicable(it, evaluator, bench.detail),
            Applicability::NotRecorded(why) => consider::untold(it, why),
            Applicability::Applies => consider::consider(it, context, evaluator, bench.detail),
        }
    };
    let took = (bench.stopwatch)().saturating_sub(began);
    verdict.micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    verdict
}

/// Significant words of a question: four letters or more, stop words left out.
fn keywords(question: &str, stop_words: &[String]) -> Vec<String> {
    let words = question.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    words.filter(|it| it.chars().count() >= 4 && !stop_words.contains(it)).collect()
}

/// Which considerations failed, as a short hash (amplihack's).
#[must_use]
pub fn fingerprint<'a>(ids: impl Iterator<Item = &'a str>) -> Option<String> {
    digest(ids.map(str::to_owned))
}

/// First 16 hexadecimal digits of the SHA-256 of the sorted texts joined with `|` (amplihack).
fn digest(texts: impl Iterator<Item = String>) -> Option<String> {
    let texts: BTreeSet<String> = texts.collect();
    if texts.is_empty() {
        return None;
    }
    let digest = Sha256::digest(texts.into_iter().collect::<Vec<_>>().join("|"));
    digest.get(..8).map(hex)
}

/// The loop guard's memory for the agent that wants to stop.
fn guard_of(state: &SessionState, event: &Event) -> GuardState {
    match &event.agent_id {
        Some(agent) => state.agents.get(agent).cloned().unwrap_or_default(),
        None => state.main.clone(),
    }
}

/// What the session remembers, as expressions see it.
#[must_use]
pub fn memory(state: &SessionState, event: &Event) -> Memory {
    let guard = guard_of(state, event);
    Memory {
        blocks: guard.consecutive_blocks,
        total_blocks: guard.total_blocks,
        turns: state.turn_count,
    }
}

/// What stands for the answer of a probe that is never run.
#[must_use]
pub fn switched_off(probe: &Probe) -> Option<Reading> {
    let why = || format!("probe `{}` is switched off (`enabled: false`)", probe.id);
    (!probe.enabled).then(|| Reading::Failed(why()))
}

/// The human prompt that the agent works on. A new episode needs a prompt that the transcript
/// shows to be a human's: the notice of a finished background task, a wake-up or a reminder
/// continues the current episode, so that only a human can reset the count. A client that names no
/// prompts might send the reason of a block back as one (GitHub Copilot CLI, Cursor): such a prompt
/// continues the episode, too.
fn episode(event: &Event, facts: &Facts, guard: &GuardState) -> String {
    let (prompts, stored) = (&facts.prompts, guard.episode.as_str());
    let mut humans = prompts.last.iter().rev().chain(prompts.first.iter().rev());
    let newest = humans.clone().next();
    let is_reason = || {
        let begins = |it: &Prompt| it.text.trim_start().starts_with(guard.reason.trim());
        !guard.reason.trim().is_empty() && newest.is_some_and(begins)
    };
    match event.prompt_id.as_deref() {
        Some(id) if stored.is_empty() || humans.any(|it| it.id == id) => id.to_owned(),
        Some(_) => stored.to_owned(),
        None if !stored.is_empty() && (event.stop_active || is_reason()) => stored.to_owned(),
        None => newest.map(|it| it.id.clone()).unwrap_or_default(),
    }
}

/// What the guard said, in the words of messages.
fn release_reason(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Release(reason) => reason.as_str(),
        Ruling::Approve | Ruling::Block { .. } => "",
    }
}
