//! Evaluation of a stop. All inputs are arguments.
//!
//! [`plan`] lists the required probes and preferences. [`decide`] evaluates every check, applies
//! the block limit, and returns the state to save and the texts to send.
//!
//! Contains: decisions over facts and a policy, and their messages. Does not contain: the reading of inputs, and files.
//!
//! ```
//! use policyd_evaluation::combine::Decision;
//!
//! // The strongest decision wins, and no decision never becomes an allow.
//! assert_eq!(Decision::Ask.combine(Decision::Block), Decision::Block);
//! assert_eq!(Decision::None.combine(Decision::None), Decision::None);
//! ```

pub mod call_code;
pub mod called;
pub mod combine;
mod consider;
pub mod context;
pub mod dead_letter;
pub mod escalation;
mod evaluation_context;
mod exemption;
pub mod guards;
pub mod inputs;
pub mod message;
mod outcome;
pub mod preference;
mod quoted_text;
pub mod rationalization;
pub mod signals;
pub mod situation;
pub mod standing;
pub mod tables;
pub mod verdict;

use std::collections::BTreeSet;
use std::rc::Rc;

use sha2::{Digest, Sha256};

use policyd_fact_table::FactEvaluator;
use policyd_fact_table::context::{Context, Excuse, FactView, Memory, ProbeResult, RuleFacts};
use policyd_fact_table::context_facts::ContextUsage;
use policyd_fact_table::source::{FactSource, source};
use policyd_facts::event::{Event, EventKind};
use policyd_facts::{Facts, Feedback, Prompt};
use policyd_policy::{AskedNames, Check, Policy, Probe};
use policyd_state::block_limiter::{self, Stop};
use policyd_state::context::TierState;
use policyd_state::{BlockLimiterState, FailedConsideration, SessionState};
use policyd_yaml::checksum::hex;
use policyd_yaml::time::Timestamp;

use consider::Applicability;
pub use evaluation_context::EvaluationContext;
pub use outcome::StopOutcome;
pub use verdict::Detail;
use verdict::{CheckVerdict, Consequence};

/// Inputs that must be collected before a decision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    pub session_type: String,
    /// Probes to run, and preferences to search for.
    pub asks: AskedNames,
}

/// Returns why an event gets no decision, whatever the rules and the transcript are.
#[must_use]
pub fn no_opinion_by_event(event: &Event, interactive: bool) -> Option<&'static str> {
    if event.agent_type.as_deref() == Some("") && event.kind == EventKind::SubagentStop {
        return Some("an internal agent of the client");
    }
    if event.permission_mode.as_deref() == Some("plan") {
        return Some("the agent is planning");
    }
    // Other agents return with results; a shell can be a server that never ends.
    if interactive && event.agents_in_background() > 0 {
        return Some("background agents are still running");
    }
    None
}

/// Returns why an agent with these facts gets no decision, whatever the rules are.
#[must_use]
pub fn no_opinion_by_facts(facts: &Facts) -> Option<&'static str> {
    // The agent waits for an answer of the user, and may stop.
    let asks = |name: &str| matches!(name, "AskUserQuestion" | "ExitPlanMode");
    let waits = facts.pending.last().is_some_and(|it| asks(&it.name));
    waits.then_some("the agent waits for the user")
}

/// Classifies the session and lists the inputs of the applicable checks.
#[must_use]
pub fn plan(
    policy: &Policy,
    context: &Context,
    forced_type: Option<&str>,
    evaluator: &mut FactEvaluator,
) -> Plan {
    let session_type = classify(policy, forced_type, evaluator);
    let mut uses = BTreeSet::new();
    for it in policy.considerations.iter() {
        let out = consider::out_of_scope(it, context.event.kind, &session_type, context.now);
        // The inputs of a condition must be collected before its evaluation.
        let whens = [it.when.as_ref(), it.check.when.as_ref()].into_iter().flatten();
        let asked: Vec<&str> = whens.flat_map(|it| it.uses.iter()).map(String::as_str).collect();
        // A probe that has not run is an error, so a condition that reads it counts as applicable.
        // The other globals already have a value, which can change later.
        let unknown_yet =
            |name: &&str| source(name).is_some_and(FactSource::changes_after_planning);
        let may_apply = out.is_none()
            && (asked.iter().any(unknown_yet)
                || consider::applicability(it, evaluator) != Applicability::NotApplicable);
        if may_apply {
            uses.extend(it.check.uses.iter().map(String::as_str));
            uses.extend(asked);
        }
    }
    Plan { session_type, asks: AskedNames::of_uses(uses.iter().copied()) }
}

/// Classifies the session and sets the session type for expressions.
pub fn classify(policy: &Policy, forced: Option<&str>, evaluator: &mut FactEvaluator) -> String {
    let wanted = forced.map(str::to_ascii_uppercase);
    let mut types = policy.session_types.iter();
    let known = types.clone().find(|it| Some(&it.id) == wanted.as_ref());
    let found = known.or_else(|| types.find(|it| evaluator.eval_bool(&it.when).unwrap_or(false)));
    let session_type = found.map(|it| it.id.clone()).unwrap_or_default();
    evaluator.change(|it| it.session_type.clone_from(&session_type));
    session_type
}

/// Evaluates a stop. The evaluator keeps only values that this view and its successors have, too.
#[must_use]
pub fn decide(bench: EvaluationContext<'_>, evaluator: &mut FactEvaluator) -> StopOutcome {
    let context = bench.context();
    let guard = guard_of(bench.state, &context.event);
    let memory = memory(bench.state, &context.event);
    let usage = bench.view.usage.as_ref().map(|it| settled_usage(bench, it));
    evaluator.change(|it| *it = FactView { memory, usage, ..bench.view.clone() });
    let mut excuses = None;
    let checks = bench.policy.considerations.iter();
    let mut verdicts: Vec<CheckVerdict> =
        checks.map(|it| judge(it, bench, &mut excuses, evaluator)).collect();
    let facts = &context.facts;
    let episode = episode(&context.event, facts, &guard);
    let blocked_before = guard.episode == episode && guard.consecutive_blocks > 0;
    let texts = exemption::apply(&mut verdicts, blocked_before, bench, evaluator);
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
    // Evidence can be text of a model, which is never the same twice.
    let digest = digest(failed.iter().map(|it| format!("{}\n{}", it.id, it.details)));
    // In a replay, the transcript shows the blocks of the recorded pack.
    let recorded = context.recorded;
    let shown = if recorded { Feedback::default() } else { facts.feedback };
    let stop = Stop {
        episode: &episode,
        fingerprint: fingerprint.as_deref(),
        digest: digest.as_deref().unwrap_or_default(),
        failed: &failed,
        tools: facts.tools.total,
        edits: facts.files.iter().map(|it| it.edits).sum(),
        blocks_shown: shown.blocks,
        tools_at_shown_block: shown.tools,
        follows_block: context.event.stop_active && !recorded,
    };
    let (guard, ruling) =
        block_limiter::step(&guard, &stop, &bench.policy.settings.guard, context.now);
    let result = outcome::LimiterResult { guard, ruling };
    let checks = outcome::CheckEvaluation { verdicts, excuses: excuses.unwrap_or_default() };
    outcome::outcome(bench, checks, result, &texts, evaluator)
}

/// Adds the saved tier to the context usage.
fn settled_usage(bench: EvaluationContext<'_>, measured: &Rc<ContextUsage>) -> Rc<ContextUsage> {
    let context = bench.context();
    // The saved tier is the main agent's.
    let nothing = TierState::default();
    let main = context.event.agent_id.is_none();
    let standing = if main { &bench.state.context } else { &nothing };
    let overrides = context.overrides.naming(standing);
    let rules = &*bench.policy.context;
    let gauge = match overrides == context.overrides {
        true => Rc::clone(measured),
        false => Rc::new(context::gauge(rules, &overrides, &context.facts)),
    };
    Rc::new(context::settle(&gauge, standing, rules, &overrides, &context.facts))
}

/// Evaluates one check. `excuses` are searched for once, for the first check that reads them.
fn judge(
    it: &Check,
    bench: EvaluationContext<'_>,
    excuses: &mut Option<Rc<Vec<Excuse>>>,
    evaluator: &mut FactEvaluator,
) -> CheckVerdict {
    let began = (bench.stopwatch)();
    let context = bench.context();
    let out = consider::out_of_scope(it, context.event.kind, &bench.view.session_type, context.now);
    let mut verdict = if let Some(why) = out {
        consider::skipped(it, why)
    } else {
        let keywords = |it: &Check| keywords(&it.question, &bench.policy.stop_words);
        let keywords = if it.asks_for_keywords { keywords(it) } else { Vec::new() };
        evaluator.change(|view| view.rule = RuleFacts { id: it.id.clone(), keywords });
        if it.asks_for_excuses && excuses.is_none() {
            *excuses = Some(rationalization::search(bench.policy, context, evaluator));
        }
        match consider::applicability(it, evaluator) {
            Applicability::NotApplicable => consider::not_applicable(it, evaluator, bench.detail),
            Applicability::NotRecorded(why) => consider::untold(it, why),
            Applicability::Applies => consider::consider(it, context, evaluator, bench.detail),
        }
    };
    if verdict.consequence == Consequence::Blocks
        && let Some(text) = bench.allowed.get(&it.id)
    {
        verdict.consequence = Consequence::Recorded;
        verdict.allowed = Some(text.clone());
    }
    let took = (bench.stopwatch)().saturating_sub(began);
    verdict.micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    verdict
}

/// Returns the significant words of a question: four or more letters, without stop words.
fn keywords(question: &str, stop_words: &[String]) -> Vec<String> {
    let words = question.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    words.filter(|it| it.chars().count() >= 4 && !stop_words.contains(it)).collect()
}

/// Returns a short hash of the failed checks. amplihack computes the same hash.
#[must_use]
pub fn fingerprint<'a>(ids: impl Iterator<Item = &'a str>) -> Option<String> {
    digest(ids.map(str::to_owned))
}

/// Returns the first 16 hexadecimal digits of the SHA-256 of the sorted texts, joined with `|`, as
/// amplihack does.
fn digest(texts: impl Iterator<Item = String>) -> Option<String> {
    let texts: BTreeSet<String> = texts.collect();
    if texts.is_empty() {
        return None;
    }
    let digest = Sha256::digest(texts.into_iter().collect::<Vec<_>>().join("|"));
    digest.get(..8).map(hex)
}

/// Returns the block limiter's state for the agent that wants to stop.
#[must_use]
pub fn guard_of(state: &SessionState, event: &Event) -> BlockLimiterState {
    match &event.agent_id {
        Some(agent) => state.agents.get(agent).cloned().unwrap_or_default(),
        None => state.main.clone(),
    }
}

/// Replaces the block limiter's state by the copy of it, if the copy is newer. What was counted in a project whose
/// directory was created at another time than `created` does not count.
pub fn restore(
    state: &mut SessionState,
    event: &Event,
    copy: Option<BlockLimiterState>,
    created: Option<Timestamp>,
) {
    let is_here = |it: &BlockLimiterState| {
        created.is_none() || it.project_created.is_none() || it.project_created == created
    };
    let saved = guard_of(state, event);
    let mut guard = if is_here(&saved) { saved } else { block_limiter::in_a_new_project(&saved) };
    if let Some(copy) = copy.filter(is_here) {
        guard = block_limiter::newer(guard, copy);
    }
    guard.project_created = created.or(guard.project_created);
    match &event.agent_id {
        Some(agent) => drop(state.agents.insert(agent.clone(), guard)),
        None => state.main = guard,
    }
}

/// Returns the session's saved state for expressions.
#[must_use]
pub fn memory(state: &SessionState, event: &Event) -> Memory {
    let guard = guard_of(state, event);
    Memory {
        blocks: guard.consecutive_blocks,
        total_blocks: guard.total_blocks,
        turns: state.turn_count,
    }
}

/// Returns the result of a probe that is switched off.
#[must_use]
pub fn switched_off(probe: &Probe) -> Option<ProbeResult> {
    let why = || format!("probe `{}` is switched off (`enabled: false`)", probe.id);
    (!probe.enabled).then(|| ProbeResult::Failed(why()))
}

/// Returns the user prompt that the agent works on. A new episode needs a prompt that the
/// transcript shows as the user's. The notice of a finished background task, a wake-up or a
/// reminder continues the current episode, so that only a user can reset the count. A client
/// without prompt ids can send the reason of a block back as a prompt (GitHub Copilot CLI, Cursor).
/// Such a prompt continues the episode, too.
fn episode(event: &Event, facts: &Facts, guard: &BlockLimiterState) -> String {
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
