//! Evaluates one guard for one call: whether it applies, whether it fires, and its message.

use std::collections::BTreeSet;
use std::rc::Rc;

use policyd_yaml::rows::Rows;

use super::allows;
use super::doubt::{MessageParts, as_question};
use super::{GuardVerdict, MemoryChange};
use crate::Detail;
use crate::consider::{first, first_template};
use crate::verdict::ConditionExplanation;
use policyd_fact_table::call_facts::CallFacts;
use policyd_fact_table::context::Context;
use policyd_fact_table::program_facts::MatchedProgram;
use policyd_fact_table::{FactEvaluator, ScriptError, template};
use policyd_facts::call::{Call, Invocation};
use policyd_facts::glob::word_matches;
use policyd_facts::lens::ValueOptions;
use policyd_facts::pattern::{CommandPattern, HashedName, OptionReading};
use policyd_policy::guards::{Guard, GuardAction, GuardBody, OnUnknown};

/// Returns whether a call contains, or might contain, a program of a guard. Always true for a guard
/// without programs.
#[must_use]
pub fn matches_any_program(guard: &Guard, call: &Call, values: &Rows<ValueOptions>) -> bool {
    let found =
        |it: &Invocation| pattern_of(guard, it, HashedName::new(&it.name), values).is_some();
    !guard.of_programs || call.programs.iter().any(found)
}

/// Returns the positions of the programs of a call that a guard matches.
pub fn matching_programs<'a>(
    guard: &'a Guard,
    call: &'a Call,
    values: &'a Rows<ValueOptions>,
) -> impl Iterator<Item = usize> + 'a {
    let found =
        |it: &Invocation| pattern_of(guard, it, HashedName::new(&it.name), values).is_some();
    let programs = call.programs.iter().enumerate();
    programs.filter(move |(_, it)| found(it)).map(|(at, _)| at)
}

/// Returns the pattern by which a guard matches a program. An unknown program matches a pattern
/// that does not consist of a name alone. A program that only prints its help, or what it would do, concerns no guard but
/// one that allows it.
fn pattern_of<'g>(
    guard: &'g Guard,
    program: &Invocation,
    name: HashedName,
    values: &Rows<ValueOptions>,
) -> Option<&'g CommandPattern> {
    // Most programs end here, and no pattern is decoded.
    if !may_match(guard, program, name) {
        return None;
    }
    if may_be_any(program) {
        let args = || program.args.iter().map(|it| it.text.as_str());
        let mut patterns = guard.commands.iter();
        return patterns.find(|it| it.may_be(args(), values)).filter(|_| guard.body.when.is_some());
    }
    let is_one = |it: &&CommandPattern| program.is(it, values);
    let is_allow = || guard.body.verb == GuardAction::Allow;
    // Whether a guard allows is asked last, because its body must be decoded for it.
    let might_be = |it: &&CommandPattern| {
        program.is_by(it, values, OptionReading::Any) && (program.is(it, values) || !is_allow())
    };
    let is_excepted = || guard.except_commands.named(&program.name).any(|it| is_one(&it));
    let mut found = guard.commands.named(&program.name).filter(might_be);
    let by_effect = || program.effects.labels().find_map(|it| guard.commands.named(it).next());
    let first = found.next().or_else(by_effect)?;
    let is_help = || {
        let words = program.words_before_help(values)?;
        let mut patterns = std::iter::once(first).chain(found);
        patterns.find(|it| it.operands(&program.name, values) == words)
    };
    let prints_only = || program.is_dry_run || is_help().is_some();
    let is_left_out = || !is_allow() && prints_only();
    Some(first).filter(|_| !is_excepted() && !is_left_out())
}

/// Returns whether a guard might match a program, without decoding its patterns.
pub(super) fn may_match(guard: &Guard, program: &Invocation, name: HashedName) -> bool {
    let has_label = |it| guard.names.may_have(HashedName::new(it));
    guard.names.may_have(name) || program.effects.labels().any(has_label)
}

/// Returns whether a program is unknown.
fn may_be_any(program: &Invocation) -> bool {
    program.name.is_empty()
}

/// Output of a guard that fires.
pub(super) struct GuardOutput {
    pub(super) verdict: Box<GuardVerdict>,
    /// Changed fields of the tool's input.
    pub(super) updated_input: Vec<(String, String)>,
    /// What the memory remembers and forgets.
    pub(super) memory: Vec<MemoryChange>,
}

/// What is unknown about a call.
struct Doubt {
    /// What the guard would say of the call. Can be empty.
    question: String,
    /// Reason why it is unknown.
    why: String,
}

/// Result of one guard for one call.
pub(super) enum GuardResult {
    /// The call contains none of its programs.
    NotApplicable,
    /// The guard passed. Its conditions, if requested.
    Passed(Vec<ConditionExplanation>),
    /// The guard allows these programs of the call, by index.
    Allows(GuardOutput, Vec<usize>),
    /// The guard fires, or its result is unknown.
    Fired(GuardOutput),
}

/// Evaluator of one guard for one call.
pub(super) struct GuardEvaluator<'a> {
    pub(super) guard: &'a Guard,
    pub(super) seen: &'a Rc<CallFacts>,
    /// Names of the programs of the call.
    pub(super) names: &'a [HashedName],
    /// Words of a command line that was not understood; otherwise empty.
    pub(super) words: &'a BTreeSet<&'a str>,
    pub(super) context: &'a Context,
    pub(super) evaluator: &'a mut FactEvaluator,
    pub(super) detail: Detail,
}

impl GuardEvaluator<'_> {
    pub(super) fn evaluate(&mut self) -> GuardResult {
        if !self.guard.of_programs {
            let body = &*self.guard.body;
            return match self.holds(body) {
                Ok(false) => GuardResult::Passed(self.explained(body)),
                Ok(true) => self.fires(body, ""),
                Err(why) => self.unknown(body, why.message, ""),
            };
        }
        // Most command guards end here.
        let seen = Rc::clone(self.seen);
        let mut programs = seen.call.programs.iter().zip(self.names);
        if self.words.is_empty() && !programs.any(|(it, name)| may_match(self.guard, it, *name)) {
            return GuardResult::NotApplicable;
        }
        let (mut concerned, mut silent) = (false, Vec::new());
        let mut doubt: Option<(String, String)> = None;
        let mut allowed: Option<(GuardOutput, Vec<usize>)> = None;
        for ((at, program), name) in seen.call.programs.iter().enumerate().zip(self.names) {
            let values = &self.context.lens.lens().value_options;
            let Some(pattern) = pattern_of(self.guard, program, *name, values) else { continue };
            let (body, dark) = (&*self.guard.body, may_be_any(program));
            concerned = true;
            let matched = MatchedProgram { at, named: pattern.operands(&program.name, values) };
            self.evaluator.change(|it| it.program = Some(matched));
            match self.holds(body) {
                Ok(true) if !dark && allows::is_allow(self.guard.mode, body) => {
                    let first = || (self.fired(body, &program.line()), Vec::new());
                    let (_, programs) = allowed.get_or_insert_with(first);
                    let lens = self.context.lens.lens();
                    let is_free = allows::withheld(program, &seen, lens).is_none();
                    programs.extend(is_free.then_some(at));
                }
                Ok(true) if !dark => return self.fires(body, &program.line()),
                Ok(true) => {
                    let why = format!("what `{}` runs cannot be known", program.called.text);
                    let is_shown = body.on_error != OnUnknown::Warn;
                    let shown = if is_shown { program.line() } else { String::new() };
                    doubt = doubt.or(Some((why, shown)));
                }
                Ok(false) => silent = self.explained(body),
                Err(why) if !dark => doubt = doubt.or(Some((why.message, program.line()))),
                Err(_) => {}
            }
        }
        // An allow for known programs does not cover unknown programs.
        let is_heard = || self.guard.body.on_error != OnUnknown::Allow;
        if let Some((said, programs)) = allowed.filter(|_| doubt.is_none() || !is_heard()) {
            return GuardResult::Allows(said, programs);
        }
        if let Some((why, program)) = doubt {
            return self.unknown(&self.guard.body, why, &program);
        }
        // Above a limit all guards answer together, see `judge`.
        let mut programs = self.guard.commands.iter().map(|it| it.program());
        if let Some(why) = seen.call.unread.first().filter(|_| !seen.call.beyond)
            && programs.any(|it| {
                named(self.words, it) || seen.call.suspected.labels().any(|label| label == it)
            })
        {
            let why = format!("the command line was not understood: {why}");
            let message = "Write it in a simpler form, or each command separately.".to_owned();
            let doubt = Doubt { question: String::new(), why };
            return self.doubts(&self.guard.body, message, doubt, "");
        }
        if concerned { GuardResult::Passed(silent) } else { GuardResult::NotApplicable }
    }

    fn holds(&mut self, body: &GuardBody) -> Result<bool, ScriptError> {
        let when = match &body.when {
            Some(when) => self.evaluator.eval_bool(when),
            None => Ok(true),
        };
        if when == Ok(false) {
            return Ok(false);
        }
        let unless = match &body.unless {
            Some(unless) => self.evaluator.eval_bool(unless),
            None => Ok(false),
        };
        match (when, unless) {
            (_, Ok(true)) => Ok(false),
            (Ok(_), Ok(_)) => Ok(true),
            (Err(why), _) | (_, Err(why)) => Err(why),
        }
    }

    /// Returns the result of a guard that fires.
    fn fired(&mut self, body: &GuardBody, program: &str) -> GuardOutput {
        let memory = self.memory_changes(body);
        let message = if body.verb == GuardAction::Remember {
            memory.iter().map(MemoryChange::text).collect::<Vec<_>>().join(" ")
        } else {
            first(&body.message, self.evaluator).unwrap_or_default()
        };
        let unattended = body.unattended.filter(|_| !self.context.interactive);
        let verb = unattended.unwrap_or(body.verb);
        let message =
            if message.is_empty() { format!("`{}` says so", self.guard.id) } else { message };
        let verdict = self.verdict(body, verb, message, program);
        let fields = body.updated_input.iter();
        let updated_input = fields
            .map(|(key, text)| (key.clone(), template::render(text, self.evaluator)))
            .collect();
        GuardOutput { verdict: Box::new(verdict), updated_input, memory }
    }

    /// Returns how a guard that fires changes the memory: it forgets, then it remembers.
    fn memory_changes(&mut self, body: &GuardBody) -> Vec<MemoryChange> {
        let guard = &self.guard.id;
        let change = |entry: &String, text| MemoryChange {
            guard: guard.clone(),
            entry: entry.clone(),
            text,
        };
        let mut changes: Vec<MemoryChange> =
            body.forget.iter().map(|entry| change(entry, None)).collect();
        for (entry, text) in &body.remember {
            // A text that is not known is not remembered.
            let known = template::render_known(text, self.evaluator);
            changes.extend(known.ok().map(|text| change(entry, Some(text))));
        }
        changes
    }

    fn fires(&mut self, body: &GuardBody, program: &str) -> GuardResult {
        GuardResult::Fired(self.fired(body, program))
    }

    fn unknown(&mut self, body: &GuardBody, why: String, program: &str) -> GuardResult {
        if self.guard.of_programs && program.is_empty() {
            // What an unknown program might do is one notice, whichever guards it concerns.
            let doubt = Doubt { question: String::new(), why };
            return self.doubts(body, String::new(), doubt, "");
        }
        let parts =
            MessageParts::of(first_template(&body.message, self.evaluator).unwrap_or_default());
        let question = as_question(&template::render(parts.claim, self.evaluator));
        let message = template::render(parts.advice, self.evaluator);
        let doubt = Doubt { question, why };
        self.doubts(body, message, doubt, program)
    }

    /// Returns the result of a guard whose condition is unknown.
    fn doubts(
        &mut self,
        body: &GuardBody,
        message: String,
        doubt: Doubt,
        program: &str,
    ) -> GuardResult {
        let verb = match body.on_error {
            // What is not certain is not remembered, and nothing else follows from such a guard.
            _ if body.verb == GuardAction::Remember => {
                return GuardResult::Passed(self.explained(body));
            }
            OnUnknown::Allow => return GuardResult::Passed(self.explained(body)),
            OnUnknown::Warn => GuardAction::Warn,
            OnUnknown::Ask => GuardAction::Ask,
            OnUnknown::Block => GuardAction::Block,
        };
        let verdict = self.verdict(body, verb, message, program);
        let Doubt { question, why } = doubt;
        let verdict = Box::new(GuardVerdict { unknown: Some(why), question, ..verdict });
        GuardResult::Fired(GuardOutput { verdict, updated_input: Vec::new(), memory: Vec::new() })
    }

    /// Explains the conditions with their values for the current program.
    fn explained(&mut self, body: &GuardBody) -> Vec<ConditionExplanation> {
        let written = [("when", &body.when), ("unless", &body.unless)];
        let asked = written.into_iter().filter(|_| self.detail == Detail::Values);
        asked
            .filter_map(|(key, it)| Some((key, it.as_ref()?)))
            .map(|(key, it)| ConditionExplanation {
                key,
                place: it.place.to_string(),
                expression: it.text.clone(),
                parts: self.evaluator.explain(&it.text),
            })
            .collect()
    }

    fn verdict(
        &mut self,
        body: &GuardBody,
        verb: GuardAction,
        message: String,
        program: &str,
    ) -> GuardVerdict {
        let guard = self.guard;
        GuardVerdict {
            id: guard.id.clone(),
            set: guard.set.clone(),
            verb,
            message,
            unknown: None,
            question: String::new(),
            mode: guard.mode,
            observed: guard.observed,
            allowed: None,
            program: program.to_owned(),
            script: String::new(),
            place: body.place.to_string(),
            explanation: self.explained(body),
        }
    }
}

/// Splits a command line into words, without its grammar.
pub(super) fn words(line: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    line.split(|c: char| !is_part(c)).collect()
}

/// Returns whether the words name a program.
fn named(words: &BTreeSet<&str>, program: &str) -> bool {
    words.contains(program)
        || (program.contains('*') && words.iter().any(|it| word_matches(program, it)))
}
