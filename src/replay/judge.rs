//! One pack judging recorded stops, one after the other, as `eval` would have.
//! What a recording does not hold is not known: no probe has run, no preference was looked for, no
//! file is there to be looked at.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use crate::facts::Facts;
use crate::facts::compiled::CompiledLens;
use crate::facts::event::Event;
use crate::judge::situation::{Situation, Words, forget_scratch, is_scratch};
use crate::judge::{self, Bench, Detail, Outcome};
use crate::policy::Policy;
use crate::script::Evaluator;
use crate::script::context::Context;
use crate::state::SessionState;
use crate::state::context::Overrides;
use crate::time::Timestamp;

/// What a stop came to, or why the pack has no opinion on it.
pub type Judged = Result<Outcome, &'static str>;

/// A recorded stop.
#[derive(Debug)]
pub struct Stop<'s> {
    /// The event a hook would have been told of.
    pub event: Event,
    /// Whether a human watched.
    pub interactive: bool,
    /// Folder the session began in.
    pub project: &'s Path,
    /// Temporary folders besides the usual ones.
    pub scratch: &'s [PathBuf],
    /// When it was.
    pub now: Timestamp,
}

/// A pack that judges; what it prepared for one stop serves the next.
pub struct Judge<'p> {
    policy: &'p Policy,
    words: Words,
    evaluator: Option<Evaluator>,
}

impl<'p> Judge<'p> {
    /// Makes a pack ready to judge.
    #[must_use]
    pub fn new(policy: &'p Policy) -> Self {
        let words = Words::new(CompiledLens::new(policy.lens.clone()), policy.texts.clone());
        Self { policy, words, evaluator: None }
    }

    /// The pack.
    #[must_use]
    pub fn policy(&self) -> &'p Policy {
        self.policy
    }

    /// What the fold notices for it.
    #[must_use]
    pub fn lens(&self) -> Rc<CompiledLens> {
        Rc::clone(&self.words.lens)
    }

    /// Judges a stop and moves the state on. The facts are the same afterwards.
    pub fn judge(
        &mut self,
        stop: &Stop<'_>,
        facts: &mut Facts,
        state: &mut SessionState,
    ) -> Judged {
        if !self.policy.settings.enabled {
            return Err("the pack is switched off (`enabled: false`)");
        }
        let kind = stop.event.kind.name();
        let asked = |on: &[String]| on.iter().any(|it| it == kind);
        if !self.policy.considerations.iter().any(|it| it.enabled && asked(&it.on)) {
            return Err("no rule for this event");
        }
        if let Some(why) = judge::no_opinion(&stop.event, facts, stop.interactive) {
            return Err(why);
        }
        let own = [Some(stop.project), stop.event.folder.as_deref()].into_iter().flatten();
        // Everything lies in the empty path: a folder that is not told says nothing.
        let own: Vec<&Path> = own.filter(|it| !it.as_os_str().is_empty()).collect();
        let foreign = |path: &str| is_scratch(path, &own, stop.scratch);
        let any = facts.files.iter().any(|it| foreign(&it.path))
            || facts.findings.iter().any(|it| foreign(&it.path));
        let all = any.then(|| (facts.files.clone(), facts.findings.clone()));
        forget_scratch(facts, &own, stop.scratch);
        let outcome = self.decide(stop, facts, state);
        if let Some((files, findings)) = all {
            (facts.files, facts.findings) = (files, findings);
        }
        state.clone_from(&outcome.state);
        Ok(outcome)
    }

    fn decide(&mut self, stop: &Stop<'_>, facts: &mut Facts, state: &SessionState) -> Outcome {
        let situation = Situation {
            event: stop.event.clone(),
            facts: std::mem::take(facts),
            transcript_problem: None,
            interactive: stop.interactive,
            recorded: true,
            project: stop.project.to_path_buf(),
            remote_host: None,
            overrides: Overrides::default(),
            now: stop.now,
        };
        let context = Rc::new(situation.context(self.policy, &self.words));
        let evaluator = match &mut self.evaluator {
            Some(evaluator) => {
                evaluator.turn_to(Rc::clone(&context));
                evaluator
            }
            empty @ None => empty.insert(Evaluator::new(Rc::clone(&context))),
        };
        // What else a plan would ask for is not there to be asked.
        judge::classify(self.policy, &context, None, evaluator);
        known_before(self.policy, &context);
        let bench = Bench {
            policy: self.policy,
            context: &context,
            state,
            stopwatch: &|| Duration::ZERO,
            detail: Detail::Findings,
            report_path: "",
        };
        let outcome = judge::decide(bench, evaluator);
        evaluator.leave();
        // Nobody else holds the context any more; were it otherwise, a copy would do.
        *facts = Rc::try_unwrap(context).map_or_else(|held| held.facts.clone(), |it| it.facts);
        outcome
    }
}

/// What the pack alone answers: fixed preferences, and probes that never run.
fn known_before(policy: &Policy, context: &Context) {
    let mut learned = context.learned.borrow_mut();
    let fixed = policy.preferences.iter().filter_map(|it| Some((it.id.clone(), it.value?)));
    learned.preferences.extend(fixed);
    let off = policy.probes.iter().filter_map(|it| Some((it.id.clone(), judge::switched_off(it)?)));
    learned.probes.extend(off);
}
