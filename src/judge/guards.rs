//! Guards: what the rules on an event say to it, and how their answers become one.
//!
//! | a guard | its answer |
//! |---|---|
//! | fires, `enforce` | its decision; context and warnings are texts and stand beside any decision |
//! | fires, `warn` | the user is told |
//! | fires, `shadow` | it is logged |
//! | cannot be judged | what its `on_error` says: nothing, the user is told, a question, a refusal |
//! | not all of the line was looked at | all that may stop it ask together, at least |
//! | allows programs, and the line runs others that no guard allows | nothing: an allow holds for the whole line |
//!
//! Of several decisions the strongest wins ([`Decision`]); texts are joined in the order of the pack.

mod allows;
mod judging;

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::Value as Json;

use super::Detail;
use super::combine::Decision;
use super::verdict::Explained;
use crate::facts::event::{Event, EventKind};
use crate::facts::glob::word_matches;
use crate::policy::guards::{Fallback, Guard, Verb};
use crate::policy::{Mode, Policy};
use crate::script::Evaluator;
use crate::script::call_facts::Seen;
use crate::script::context::Context;
use crate::source::secrets::secrets;
use crate::time::Timestamp;
use allows::Allows;
use judging::{Found, Judging, Said, words};
pub use judging::{recognised, recognises};

/// What one guard came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardVerdict {
    /// Its id.
    pub id: String,
    /// The set it belongs to.
    pub set: String,
    /// What it does.
    pub verb: Verb,
    /// What it says.
    pub message: String,
    /// Why it could not be told whether it fires.
    pub unknown: Option<String>,
    /// How far it is in force.
    pub mode: Mode,
    /// The program it is about, else empty.
    pub program: String,
    /// Where it is written.
    pub place: String,
    /// Its conditions with the values of their parts, where they were asked for.
    pub explanation: Vec<Explained>,
}

impl GuardVerdict {
    /// What it came to: `fired`, or `unknown`.
    #[must_use]
    pub const fn status(&self) -> &'static str {
        if self.unknown.is_some() { "unknown" } else { "fired" }
    }

    /// What it does as far as it is in force; nothing, where it is only recorded.
    #[must_use]
    pub const fn in_force(&self) -> Option<Verb> {
        match self.mode {
            Mode::Enforce => Some(self.verb),
            Mode::Warn => Some(Verb::Warn),
            Mode::Shadow => None,
        }
    }

    /// The decision that this is; none, where it only says something.
    #[must_use]
    pub const fn decision(&self) -> Decision {
        match self.in_force() {
            Some(Verb::Allow) => Decision::Allow,
            Some(Verb::Defer) => Decision::Defer,
            Some(Verb::Ask) => Decision::Ask,
            Some(Verb::Block) => Decision::Block,
            Some(Verb::Halt) => Decision::Halt,
            Some(Verb::Context | Verb::Mask | Verb::Warn) | None => Decision::None,
        }
    }

    /// What it says, with its name.
    #[must_use]
    pub fn said(&self) -> String {
        let Self { message, id, .. } = self;
        match &self.unknown {
            None => format!("{message} (guard `{id}`)"),
            Some(why) => format!(
                "policyd cannot tell whether this is allowed: {why}. {message} (guard `{id}`)"
            ),
        }
    }
}

/// What all guards say to an event together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guarded {
    /// The strongest decision.
    pub decision: Decision,
    /// Why, as it is told.
    pub reason: String,
    /// What the agent is told beside it.
    pub context: String,
    /// What the user is told beside it.
    pub notice: String,
    /// The input that the tool is to run with.
    pub updated_input: Option<Json>,
    /// Whether secrets in the result of the tool are to be replaced.
    pub masks: bool,
    /// Guards that fired, or could not be judged.
    pub verdicts: Vec<GuardVerdict>,
    /// Guards that were judged, by id.
    pub judged: Vec<String>,
    /// Of those, the ones that are silent, with their conditions, where they were asked for.
    pub silent: Vec<SilentGuard>,
}

/// A guard that was judged and says nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SilentGuard {
    /// Its id.
    pub id: String,
    /// Where it is written.
    pub place: String,
    /// Why it is silent, where its conditions do not tell.
    pub why: String,
    /// Its conditions with the values of their parts, as they are for the last program that it looked at.
    pub explanation: Vec<Explained>,
}

/// Guards of a pack that an event concerns, by what is known before anything is read.
pub fn concerned<'p>(
    policy: &'p Policy,
    event: &Event,
    now: Timestamp,
) -> impl Iterator<Item = &'p Guard> {
    let tool = event.tool_name.clone().unwrap_or_default();
    meant_for(policy, event.kind, tool).filter(move |it| in_force(it, now))
}

/// Guards of a pack for one tool at one kind of event, whenever that is.
pub fn meant_for(policy: &Policy, kind: EventKind, tool: String) -> impl Iterator<Item = &Guard> {
    let listed = policy.guarded.contains(&kind);
    let rules = if listed { policy.guards.rules.as_slice() } else { &[] };
    rules.iter().filter(move |it| {
        let fits = it.tools.is_empty() || it.tools.iter().any(|glob| word_matches(glob, &tool));
        fits && it.on.contains(&kind)
    })
}

/// Whether a guard has not expired.
#[must_use]
pub fn in_force(guard: &Guard, now: Timestamp) -> bool {
    guard.expires_millis.is_none_or(|at| now.millis() < at)
}

/// Judges the guards that an event concerns; `seen` is its tool call.
pub fn judge<'p>(
    guards: impl Iterator<Item = &'p Guard>,
    event: &Event,
    seen: &Rc<Seen>,
    (context, evaluator): (&Context, &mut Evaluator),
    detail: Detail,
) -> Guarded {
    let mut guarded = Guarded::default();
    let mut allows = Allows::default();
    let mut unsure: Option<&Guard> = None;
    let split = !seen.call.is_understood() && !seen.call.beyond;
    let words = if split { words(&seen.call.command) } else { BTreeSet::new() };
    let initials = seen.call.programs.iter().map(|it| it.name.as_str()).collect();
    let mut guards = guards.peekable();
    let secret = guards.peek().is_some() && holds_secrets(&event.tool_response);
    for guard in guards.filter(|it| secret || it.body.verb != Verb::Mask) {
        let words = &words;
        let mut judging = Judging { guard, seen, initials, words, context, evaluator, detail };
        let found = judging.verdict();
        unsure = unsure.or(Some(guard).filter(|it| seen.call.beyond && may_stop(it)));
        context.learned.borrow_mut().program = None;
        if !matches!(found, Found::NotConcerned) {
            guarded.judged.push(guard.id.clone());
        }
        match found {
            Found::NotConcerned => {}
            Found::Silent(explanation) => {
                if !explanation.is_empty() {
                    let (id, place) = (guard.id.clone(), guard.body.place.to_string());
                    guarded.silent.push(SilentGuard { id, place, why: String::new(), explanation });
                }
            }
            Found::Allows(said, programs) => allows.add(said, programs),
            Found::Says((verdict, updated)) => guarded.add(*verdict, updated, event),
        }
    }
    allows.take_effect(&mut guarded, &seen.call, event);
    // What was not looked at may be anything, so no guard is sure of its silence.
    if let Some(guard) = unsure {
        let why = seen.call.unread.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        guarded.ask_for(guard, &why, event);
    }
    guarded
}

/// Whether a text within the result of a tool holds a secret.
fn holds_secrets(result: &Json) -> bool {
    match result {
        Json::String(text) => !secrets(text).is_empty(),
        Json::Array(items) => items.iter().any(holds_secrets),
        Json::Object(fields) => fields.values().any(holds_secrets),
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}

/// Whether a guard stops or asks where it fires, and is not told to let go what it cannot tell.
pub fn may_stop(guard: &Guard) -> bool {
    let body = &*guard.body;
    guard.mode == Mode::Enforce
        && matches!(body.verb, Verb::Ask | Verb::Block | Verb::Halt)
        && body.on_error != Fallback::Allow
}

impl Guarded {
    /// Ids of the guards whose answer the decision is, each once.
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

    /// Asks for a guard that may stop calls, since a part of this one was not looked at; nothing where something
    /// as strong is decided.
    pub fn ask_for(&mut self, guard: &Guard, why: &str, event: &Event) {
        if self.decision >= Decision::Ask {
            return;
        }
        let verdict = GuardVerdict {
            id: guard.id.clone(),
            set: guard.set.clone(),
            verb: Verb::Ask,
            message: "Split it into shorter command lines".to_owned(),
            unknown: Some(format!("not all of the command line was looked at: {why}")),
            mode: guard.mode,
            program: String::new(),
            place: guard.body.place.to_string(),
            explanation: Vec::new(),
        };
        self.add(verdict, Vec::new(), event);
    }

    fn add(&mut self, verdict: GuardVerdict, updated: Vec<(String, String)>, event: &Event) {
        let fallback = verdict.unknown.is_some();
        let (verb, decision) = (verdict.in_force(), verdict.decision());
        let said = verdict.said();
        let join = |into: &mut String, text: &str| {
            if !into.is_empty() {
                into.push('\n');
            }
            into.push_str(text);
        };
        match verb {
            Some(Verb::Context) => join(&mut self.context, &verdict.message),
            Some(Verb::Mask) => {
                self.masks = true;
                join(&mut self.context, &verdict.message);
            }
            Some(Verb::Warn) => join(&mut self.notice, &format!("policyd: {said}")),
            Some(Verb::Allow | Verb::Defer | Verb::Ask | Verb::Block | Verb::Halt) | None => {}
        }
        if decision != Decision::None {
            if decision > self.decision {
                self.reason.clear();
            }
            if decision >= self.decision {
                join(&mut self.reason, &said);
            }
            self.decision = self.decision.combine(decision);
        }
        if !updated.is_empty() && verb == Some(verdict.verb) && !fallback {
            let before = self.updated_input.take().unwrap_or_else(|| event.tool_input.clone());
            let mut fields = before.as_object().cloned().unwrap_or_default();
            fields.extend(updated.into_iter().map(|(key, value)| (key, Json::from(value))));
            self.updated_input = Some(Json::Object(fields));
        }
        self.verdicts.push(verdict);
    }
}
