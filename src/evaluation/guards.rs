//! Guards: evaluates the rules on an event and combines their results.
//!
//! | a guard | its effect |
//! |---|---|
//! | fires, `enforce` | its decision; context and warnings are texts that accompany any decision |
//! | fires, `warn` | a warning to the user |
//! | fires, `shadow` | a log entry |
//! | is unknown | by its `on_error`: none, a warning to the user, a question, a block |
//! | the line was only partly analyzed | the guards that may block ask together, at least |
//! | allows programs, and the line runs others that no guard allows | none: an allow is for the whole line |
//!
//! The strongest decision wins ([`Decision`]). Texts are joined in the order of the pack.

mod allows;
mod doubt;
mod evaluator;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::Value as Json;

use super::Detail;
use super::combine::Decision;
use super::verdict::ConditionExplanation;
use allows::Allows;
use evaluator::{GuardEvaluator, GuardOutput, GuardResult, may_match, words};
pub use evaluator::{matches_any_program, matching_programs};
use policyd_fact_table::FactEvaluator;
use policyd_fact_table::call_facts::CallFacts;
use policyd_fact_table::context::Context;
use policyd_facts::call::{Call, CallEffects};
use policyd_facts::event::{Event, EventKind};
use policyd_facts::glob::word_matches;
use policyd_facts::lens::ValueOptions;
use policyd_facts::pattern::HashedName;
use policyd_policy::approval::ApprovalLevel;
use policyd_policy::guards::{Guard, GuardAction, GuardedScripts, OnUnknown};
use policyd_policy::requests::without_requests;
use policyd_policy::{Mode, Policy};
use policyd_state::memory;
use policyd_yaml::rows::Rows;
use policyd_yaml::secrets::secrets;
use policyd_yaml::time::Timestamp;

/// Result of one guard that fired or is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardVerdict {
    pub id: String,
    /// Guard set that contains it.
    pub set: String,
    /// Action of the guard.
    pub verb: GuardAction,
    /// Message of the guard. If the result is unknown, only what to do; it can be empty.
    pub message: String,
    /// Reason why the result is unknown.
    pub unknown: Option<String>,
    /// What the guard would say of the call, if the result is unknown. Empty if that is not a statement about the call.
    pub question: String,
    pub mode: Mode,
    /// Whether the guard is only logged, because policyd observes.
    pub observed: bool,
    /// Allowance of the user by which the decision of the guard is dropped.
    pub allowed: Option<String>,
    /// Program that the guard matched; otherwise empty.
    pub program: String,
    /// The file that runs the program, and its line: `clean.sh:3`. Empty if the call itself runs it.
    pub script: String,
    /// Source location of the guard.
    pub place: String,
    /// Conditions with the values of their parts, if requested.
    pub explanation: Vec<ConditionExplanation>,
}

impl GuardVerdict {
    /// Returns the status: `fired` or `unknown`.
    #[must_use]
    pub const fn status(&self) -> &'static str {
        if self.unknown.is_some() { "unknown" } else { "fired" }
    }

    /// Returns the action by the guard's mode. `None` if the guard is only logged.
    #[must_use]
    pub const fn in_force(&self) -> Option<GuardAction> {
        match (self.observed, self.mode) {
            _ if matches!(self.verb, GuardAction::Remember) => None,
            (false, Mode::Enforce) => Some(self.verb),
            (false, Mode::Warn) => Some(GuardAction::Warn),
            (true, _) | (_, Mode::Shadow) => None,
        }
    }

    /// Returns what the guard would do to the call if it were enforced: block, ask, or halt. `None` if it would do
    /// nothing of these, or if it did it.
    #[must_use]
    pub fn would(&self) -> Option<GuardAction> {
        let stops = matches!(self.verb, GuardAction::Ask | GuardAction::Block | GuardAction::Halt);
        (stops && self.mode != Mode::Warn && self.in_force().is_none()).then_some(self.verb)
    }

    /// Returns the decision. [`Decision::None`] if the guard only reports.
    #[must_use]
    pub const fn decision(&self) -> Decision {
        if self.allowed.is_some() {
            return Decision::None;
        }
        match self.in_force() {
            Some(GuardAction::Allow) => Decision::Allow,
            Some(GuardAction::Defer) => Decision::Defer,
            Some(GuardAction::Ask) => Decision::Ask,
            Some(GuardAction::Block) => Decision::Block,
            Some(GuardAction::Halt) => Decision::Halt,
            Some(
                GuardAction::Context
                | GuardAction::Mask
                | GuardAction::Warn
                | GuardAction::Remember,
            )
            | None => Decision::None,
        }
    }

    /// Returns the message with the guard's name.
    #[must_use]
    pub fn format_message(&self) -> String {
        format!("{} (guard `{}`)", self.text(), self.id)
    }

    /// Returns the message, or why the guard cannot tell.
    fn text(&self) -> String {
        let text = self.full_text();
        match self.in_force() {
            Some(GuardAction::Warn) => without_requests(&text).to_owned(),
            _ => text,
        }
    }

    fn full_text(&self) -> String {
        let Self { message, script, .. } = self;
        match &self.unknown {
            None if !script.is_empty() => {
                format!("In `{script}`, which this call runs: {message}")
            }
            None => message.clone(),
            Some(why) => {
                let asked = match self.question.as_str() {
                    "" => "this is allowed",
                    question => question,
                };
                let advice = if message.is_empty() { "" } else { " " };
                format!("policyd cannot tell whether {asked}: {why}.{advice}{message}")
            }
        }
    }

    /// Returns whether another guard cannot tell the same for the same reason, with the same advice.
    fn is_unknown_as(&self, other: &Self) -> bool {
        self.unknown.is_some()
            && self.unknown == other.unknown
            && self.question == other.question
            && self.message == other.message
    }
}

/// Guards that are named in a text.
const NAMES_MAX: usize = 3;

/// Returns the messages of guards with their names. What several guards cannot tell for one reason is one message.
fn messages(verdicts: &[&GuardVerdict]) -> Vec<String> {
    let mut groups: Vec<Vec<&GuardVerdict>> = Vec::new();
    for verdict in verdicts {
        let same = |group: &&mut Vec<&GuardVerdict>| {
            group.first().is_some_and(|it| it.is_unknown_as(verdict))
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(verdict),
            None => groups.push(vec![verdict]),
        }
    }
    let message = |group: Vec<&GuardVerdict>| {
        let text = group.first().map(|it| it.text()).unwrap_or_default();
        let mut names: Vec<String> =
            group.iter().take(NAMES_MAX).map(|it| format!("`{}`", it.id)).collect();
        let more = group.len().saturating_sub(NAMES_MAX);
        names.extend((more > 0).then(|| format!("and {more} more")));
        let word = if group.len() == 1 { "guard" } else { "guards" };
        format!("{text} ({word} {})", names.join(", "))
    };
    groups.into_iter().map(message).collect()
}

/// Combined result of all guards for one event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardsOutcome {
    /// The strongest decision.
    pub decision: Decision,
    /// Reason of the decision, as displayed.
    pub reason: String,
    /// Additional text for the agent.
    pub context: String,
    /// Additional text for the user.
    pub notice: String,
    /// Changed input of the tool.
    pub updated_input: Option<Json>,
    /// Digest of the call, if guards block it or ask about it.
    pub digest: Option<String>,
    /// Whether secrets in the tool's result must be replaced.
    pub masks: bool,
    /// What the guards that fired change in the memory.
    pub memory: Vec<MemoryChange>,
    /// Guards that fired or are unknown.
    pub verdicts: Vec<GuardVerdict>,
    /// Ids of the evaluated guards.
    pub judged: Vec<String>,
    /// Evaluated guards that passed, if their conditions were requested.
    pub silent: Vec<SilentGuard>,
    /// At a permission prompt: positions of the programs of the call that no guard allows.
    pub not_allowed: Vec<usize>,
}

/// A change of the memory by a guard that fired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryChange {
    /// Id of the guard.
    pub guard: String,
    /// Id of the entry.
    pub entry: String,
    /// The text that it remembers. `None`: it forgets everything.
    pub text: Option<String>,
}

impl MemoryChange {
    /// Says what changes.
    fn text(&self) -> String {
        match &self.text {
            Some(text) => format!("`{}` remembers `{}`.", self.entry, memory::kept_text(text)),
            None => format!("`{}` forgets everything.", self.entry),
        }
    }
}

/// A guard that was evaluated and passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SilentGuard {
    pub id: String,
    /// Source location of the guard.
    pub place: String,
    /// Reason, if the conditions do not explain it.
    pub why: String,
    /// Conditions with the values of their parts, for the last program that the guard matched.
    pub explanation: Vec<ConditionExplanation>,
}

/// Returns the guards of a pack that can apply to an event, before any input is read.
pub fn applicable_guards<'p>(
    policy: &'p Policy,
    event: &Event,
    now: Timestamp,
) -> impl Iterator<Item = &'p Guard> {
    let tool = event.tool_name.clone().unwrap_or_default();
    let level = approval_level(policy, event);
    guards_for(policy, event.kind, tool).filter(move |it| it.level <= level && in_force(it, now))
}

/// Returns the level up to which calls are approved at an event. A session that plans changes nothing.
fn approval_level(policy: &Policy, event: &Event) -> ApprovalLevel {
    match event.permission_mode.as_deref() {
        Some("plan") => policy.approvals.min(ApprovalLevel::Read),
        Some(_) | None => policy.approvals,
    }
}

/// Returns the guards of a pack that can apply to an event with this tool call. The others do not apply, and stay
/// encoded.
#[must_use]
pub fn concerned_guards<'p>(
    policy: &'p Policy,
    event: &Event,
    call: &Call,
    now: Timestamp,
) -> Vec<&'p Guard> {
    let content = CallContent::of(call);
    if content.line.is_none() {
        return applicable_guards(policy, event, now).filter(|it| content.can_match(it)).collect();
    }
    let tool = event.tool_name.as_deref().unwrap_or_default();
    let names = call.programs.iter().map(|it| it.name.as_str());
    let found = policy.guards.of_programs(event.kind, names, content.effects);
    let level = approval_level(policy, event);
    let applies = |it: &&Guard| it.level <= level && looks_at_call(it) && content.can_match(it);
    found.filter(applies).filter(|it| fits_tool(it, tool) && in_force(it, now)).collect()
}

/// Returns the guards of a pack that look into a file that a call runs. `call` is what the file does.
#[must_use]
pub fn script_guards<'p>(
    policy: &'p Policy,
    event: &Event,
    call: &Call,
    now: Timestamp,
) -> Vec<&'p Guard> {
    if !policy.guarded.contains(&event.kind) {
        return Vec::new();
    }
    let tool = event.tool_name.as_deref().unwrap_or_default();
    let names = call.programs.iter().map(|it| it.name.as_str());
    let found = policy.guards.of_programs(event.kind, names, call.effects());
    let looks = |it: &&Guard| it.in_scripts != GuardedScripts::None;
    found.filter(looks).filter(|it| fits_tool(it, tool) && in_force(it, now)).collect()
}

/// Returns whether a program of a call loads code of the project, as a guard that approves it says.
#[must_use]
pub fn runs_project_code(policy: &Policy, call: &Call, values: &Rows<ValueOptions>) -> bool {
    let names = call.programs.iter().map(|it| it.name.as_str());
    let event = EventKind::PermissionRequest;
    let mut found = policy.guards.of_programs(event, names, CallEffects::default());
    found.any(|it| it.runs_code && matches_any_program(it, call, values))
}

/// Returns whether a guard looks at calls, and not only into the files that they run.
fn looks_at_call(guard: &Guard) -> bool {
    !matches!(guard.in_scripts, GuardedScripts::Committed | GuardedScripts::OnlyChanged)
}

/// Returns the guards of a pack for one tool and one kind of event, at any time.
pub fn guards_for(policy: &Policy, kind: EventKind, tool: String) -> impl Iterator<Item = &Guard> {
    let guards = policy.guarded.contains(&kind).then(|| policy.guards.at(kind));
    guards.into_iter().flatten().filter(move |it| looks_at_call(it) && fits_tool(it, &tool))
}

/// Returns whether a guard is for a tool.
fn fits_tool(guard: &Guard, tool: &str) -> bool {
    guard.tools.is_empty() || guard.tools.iter().any(|glob| word_matches(glob, tool))
}

/// What a call has of what guards need.
#[derive(Debug)]
pub struct CallContent {
    effects: CallEffects,
    /// The command line in lower case. `None` if a part of it is unknown.
    line: Option<String>,
}

impl CallContent {
    /// Looks at a call.
    #[must_use]
    pub fn of(call: &Call) -> Self {
        let is_certain = call.is_understood()
            && !call.beyond
            && call.programs.iter().all(|it| !it.name.is_empty());
        let line = is_certain.then(|| call.command.to_ascii_lowercase());
        Self { effects: call.effects(), line }
    }

    /// Returns whether the call has an effect that a guard without programs needs, and a text that a guard needs in the
    /// line. Another guard does not fire.
    #[must_use]
    pub fn can_match(&self, guard: &Guard) -> bool {
        let has_effect =
            guard.of_programs || guard.effects.is_none_or(|it| it.has_some(self.effects));
        let texts = guard.line_texts.as_slice();
        // The lower case of letters beyond ASCII can differ.
        let has_text =
            |line: &String| !line.is_ascii() || texts.iter().any(|it| line.contains(it.as_str()));
        has_effect && (texts.is_empty() || self.line.as_ref().is_none_or(has_text))
    }
}

/// Returns whether a guard has not expired.
#[must_use]
pub fn in_force(guard: &Guard, now: Timestamp) -> bool {
    guard.expires_millis.is_none_or(|at| now.millis() < at)
}

/// Steps of the evaluation of one call. Each guard and each program that it looks at are one step; the length of the
/// line makes it more, because conditions may search it. Steps do not depend on the load of the machine.
const STEPS_MAX: usize = 200_000;
/// Bytes of a line that count as one more step.
const STEP_BYTES: usize = 4096;

/// Evaluates guards. `seen` is the tool call of the event.
pub fn judge<'p>(
    guards: impl Iterator<Item = &'p Guard>,
    event: &Event,
    seen: &Rc<CallFacts>,
    context: &Context,
    evaluator: &mut FactEvaluator,
    detail: Detail,
) -> GuardsOutcome {
    let mut guarded = GuardsOutcome::default();
    let mut allows = Allows::default();
    let mut unsure: Option<&Guard> = None;
    let split = !seen.call.is_understood() && !seen.call.beyond;
    let words = if split { words(&seen.call.command) } else { BTreeSet::new() };
    let names: Vec<HashedName> =
        seen.call.programs.iter().map(|it| HashedName::new(&it.name)).collect();
    let weight = 1 + seen.call.command.len() / STEP_BYTES;
    let mut steps = 0;
    let mut guards = guards.peekable();
    let secret = guards.peek().is_some() && holds_secrets(&event.tool_response);
    for guard in guards.filter(|it| secret || !it.masks) {
        let (names, words) = (names.as_slice(), &words);
        let programs = seen.call.programs.iter().zip(names);
        let programs = programs.filter(|(it, name)| may_match(guard, it, **name)).count();
        steps += weight * programs.max(1);
        if steps > STEPS_MAX {
            unsure = unsure.or(Some(guard).filter(|it| may_stop(it)));
            continue;
        }
        let mut of_call = GuardEvaluator { guard, seen, names, words, context, evaluator, detail };
        let found = of_call.evaluate();
        // A guard that only observes asks nothing, so another one asks first.
        unsure = unsure.filter(|it| !it.observed || guard.observed || !may_stop(guard));
        unsure = unsure.or(Some(guard).filter(|it| seen.call.beyond && may_stop(it)));
        if !matches!(found, GuardResult::NotApplicable) {
            guarded.judged.push(guard.id.clone());
            if guard.of_programs {
                evaluator.change(|it| it.program = None);
            }
        }
        match found {
            GuardResult::NotApplicable => {}
            GuardResult::Passed(explanation) => {
                if !explanation.is_empty() {
                    let (id, place) = (guard.id.clone(), guard.body.place.to_string());
                    guarded.silent.push(SilentGuard { id, place, why: String::new(), explanation });
                }
            }
            GuardResult::Allows(output, programs) => allows.add(output, programs),
            GuardResult::Fired(output) => {
                guarded.memory.extend(output.memory);
                guarded.add(*output.verdict, output.updated_input, event);
            }
        }
    }
    allows.take_effect(&mut guarded, seen, context.lens.lens(), event);
    // An unanalyzed part can contain anything, so no guard can pass for certain.
    if let Some(guard) = unsure {
        let unread = seen.call.unread.iter().map(String::as_str);
        let long = Some("it starts very many programs").filter(|_| steps > STEPS_MAX);
        let why: Vec<&str> = unread.chain(long).collect();
        guarded.ask_for(guard, &why.join(", "), event);
    }
    guarded
}

/// Returns whether a text in the result of a tool contains a secret.
fn holds_secrets(result: &Json) -> bool {
    match result {
        Json::String(text) => !secrets(text).is_empty(),
        Json::Array(items) => items.iter().any(holds_secrets),
        Json::Object(fields) => fields.values().any(holds_secrets),
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}

/// Returns whether a guard can block or ask, and does not ignore unknown results.
pub fn may_stop(guard: &Guard) -> bool {
    let body = &*guard.body;
    guard.mode == Mode::Enforce
        && matches!(body.verb, GuardAction::Ask | GuardAction::Block | GuardAction::Halt)
        && body.on_error != OnUnknown::Allow
}

impl GuardsOutcome {
    /// Returns the distinct ids of the guards that determine the decision.
    #[must_use]
    pub fn decided_by(&self) -> Vec<&str> {
        let deciding = self.verdicts.iter().filter(|it| it.decision() == self.decision);
        let mut ids: Vec<&str> = Vec::new();
        for verdict in deciding.filter(|_| self.decision != Decision::None) {
            if !ids.contains(&verdict.id.as_str()) {
                ids.push(&verdict.id);
            }
        }
        ids
    }

    /// Adds a question in the name of a guard that may block, because a part of the call was not
    /// analyzed. Has no effect if the decision is already as strong.
    pub fn ask_for(&mut self, guard: &Guard, why: &str, event: &Event) {
        if self.decision >= Decision::Ask {
            return;
        }
        let verdict = GuardVerdict {
            id: guard.id.clone(),
            set: guard.set.clone(),
            verb: GuardAction::Ask,
            message: "Split it into shorter command lines, each as one text".to_owned(),
            unknown: Some(format!("not all of the command line was looked at: {why}")),
            question: String::new(),
            mode: guard.mode,
            observed: guard.observed,
            allowed: None,
            program: String::new(),
            script: String::new(),
            place: guard.body.place.to_string(),
            explanation: Vec::new(),
        };
        self.add(verdict, Vec::new(), event);
    }

    /// Withdraws the allow of the guards, because another rule wants a question.
    pub fn withdraw_allow(&mut self, why: &str) {
        let is_allow = |it: &GuardVerdict| it.decision() == Decision::Allow;
        for verdict in self.verdicts.extract_if(.., |it| is_allow(it)) {
            let GuardVerdict { id, place, explanation, .. } = verdict;
            self.memory.retain(|it| it.guard != id);
            self.silent.push(SilentGuard { id, place, why: why.to_owned(), explanation });
        }
        let decisions = self.verdicts.iter().map(GuardVerdict::decision);
        self.decision = decisions.fold(Decision::None, Decision::combine);
        self.updated_input = None;
        self.reason.clear();
    }

    /// Drops the decisions of guards that block or ask and that the user allows; `granted` contains the text of each
    /// allowance.
    pub fn allow(&mut self, granted: &BTreeMap<String, String>) {
        for verdict in self.verdicts.iter_mut().filter(|it| it.decision() >= Decision::Ask) {
            verdict.allowed = granted.get(&verdict.id).cloned();
        }
        let decisions = self.verdicts.iter().map(GuardVerdict::decision);
        self.decision = decisions.fold(Decision::None, Decision::combine);
        self.write_texts();
    }

    /// Writes the reason of the decision, and what the user reads besides it. What no guard can tell is written once.
    fn write_texts(&mut self) {
        let decides =
            |it: &&GuardVerdict| self.decision != Decision::None && it.decision() == self.decision;
        let deciding: Vec<&GuardVerdict> = self.verdicts.iter().filter(decides).collect();
        let warns = |it: &&GuardVerdict| {
            it.in_force() == Some(GuardAction::Warn)
                && !deciding.iter().any(|by| it.is_unknown_as(by))
        };
        let warning: Vec<&GuardVerdict> = self.verdicts.iter().filter(warns).collect();
        self.reason = messages(&deciding).join("\n");
        let notices = messages(&warning).into_iter().map(|it| match it.starts_with("policyd ") {
            true => it,
            false => format!("policyd: {it}"),
        });
        self.notice = notices.collect::<Vec<String>>().join("\n");
    }

    /// Adds what a guard says about a file that the call runs.
    pub fn add_script_verdict(&mut self, verdict: GuardVerdict, event: &Event) {
        self.add(verdict, Vec::new(), event);
    }

    fn add(&mut self, verdict: GuardVerdict, updated: Vec<(String, String)>, event: &Event) {
        let fallback = verdict.unknown.is_some();
        let (verb, decision) = (verdict.in_force(), verdict.decision());
        let join = |into: &mut String, text: &str| {
            if !into.is_empty() {
                into.push('\n');
            }
            into.push_str(text);
        };
        match verb {
            Some(GuardAction::Context) => join(&mut self.context, &verdict.message),
            Some(GuardAction::Mask) => {
                self.masks = true;
                join(&mut self.context, &verdict.message);
            }
            Some(
                GuardAction::Warn
                | GuardAction::Allow
                | GuardAction::Defer
                | GuardAction::Ask
                | GuardAction::Block
                | GuardAction::Halt
                | GuardAction::Remember,
            )
            | None => {}
        }
        self.decision = self.decision.combine(decision);
        if !updated.is_empty() && verb == Some(verdict.verb) && !fallback {
            let before = self.updated_input.take().unwrap_or_else(|| event.tool_input.clone());
            let mut fields = before.as_object().cloned().unwrap_or_default();
            fields.extend(updated.into_iter().map(|(key, value)| (key, Json::from(value))));
            self.updated_input = Some(Json::Object(fields));
        }
        self.verdicts.push(verdict);
        self.write_texts();
    }
}
