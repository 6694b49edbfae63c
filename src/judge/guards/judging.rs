//! One guard before one call: whether it is concerned, whether it fires, and what it says then.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::GuardVerdict;
use super::allows;
use crate::facts::call::{Call, Invocation};
use crate::facts::glob::word_matches;
use crate::facts::lens::ValueOptions;
use crate::facts::pattern::{CommandPattern, Initials};
use crate::judge::Detail;
use crate::judge::verdict::Explained;
use crate::policy::guards::{Fallback, Guard, GuardBody, Verb};
use crate::script::call_facts::Seen;
use crate::script::context::Context;
use crate::script::program_facts::{Recognised, line};
use crate::script::{Evaluator, template};

/// Whether one of the programs of a guard is in a call, or may be; of a guard without programs, always.
#[must_use]
pub fn recognises(guard: &Guard, call: &Call, values: &[ValueOptions]) -> bool {
    let found = |program: &Invocation| pattern_of(guard, program, values).is_some();
    !guard.of_programs || call.programs.iter().any(found)
}

/// The programs of a call that a guard recognises, by their positions.
pub fn recognised<'a>(
    guard: &'a Guard,
    call: &'a Call,
    values: &'a [ValueOptions],
) -> impl Iterator<Item = usize> + 'a {
    let programs = call.programs.iter().enumerate();
    programs.filter(|(_, it)| pattern_of(guard, it, values).is_some()).map(|(at, _)| at)
}

/// The pattern by which a guard recognises a program. One that cannot be known may be any that goes by its
/// name alone; that says nothing where the name is all that the guard asks for.
fn pattern_of<'g>(
    guard: &'g Guard,
    program: &Invocation,
    values: &[ValueOptions],
) -> Option<&'g CommandPattern> {
    // Most end here, and none of them is decoded.
    if !guard.initials.meets([program.name.as_str()].into_iter().collect()) {
        return None;
    }
    let mut patterns = guard.commands.iter();
    match may_be_any(program) {
        true => {
            let args = || program.args.iter().map(|it| it.text.as_str());
            patterns.find(|it| it.may_be(args(), values)).filter(|_| guard.body.when.is_some())
        }
        false => patterns.find(|it| program.is(it, values)),
    }
}

/// Whether what a program is cannot be known.
fn may_be_any(program: &Invocation) -> bool {
    program.name.is_empty()
}

/// What a guard says, and the fields that it gives the tool's input.
pub(super) type Said = (Box<GuardVerdict>, Vec<(String, String)>);

/// What asking a guard came to.
pub(super) enum Found {
    /// None of its programs is there.
    NotConcerned,
    /// It does not fire; its conditions, where they were asked for.
    Silent(Vec<Explained>),
    /// It would allow these programs of the call, by their numbers.
    Allows(Said, Vec<usize>),
    /// It fires, or it cannot be told whether it does.
    Says(Said),
}

pub(super) struct Judging<'a> {
    pub(super) guard: &'a Guard,
    pub(super) seen: &'a Rc<Seen>,
    /// First letters of the programs of the call.
    pub(super) initials: Initials,
    /// Words of a command line that was not understood; none of one that was.
    pub(super) words: &'a BTreeSet<&'a str>,
    pub(super) context: &'a Context,
    pub(super) evaluator: &'a mut Evaluator,
    pub(super) detail: Detail,
}

impl Judging<'_> {
    pub(super) fn verdict(&mut self) -> Found {
        if !self.guard.of_programs {
            // Most calls touch nothing, and most guards of paths are not even decoded then.
            let untouched = self.guard.needs_effects && !self.seen.call.has_effects();
            if untouched && self.detail != Detail::Values {
                return Found::Silent(Vec::new());
            }
            let body = &*self.guard.body;
            return match self.holds(body) {
                Ok(false) => Found::Silent(self.explained(body)),
                Ok(true) => self.fires(body, ""),
                Err(why) => self.unknown(body, why, ""),
            };
        }
        // Most guards of programs end here.
        if self.words.is_empty() && !self.guard.initials.meets(self.initials) {
            return Found::NotConcerned;
        }
        let seen = Rc::clone(self.seen);
        let (mut concerned, mut silent) = (false, Vec::new());
        let mut doubt: Option<(String, String)> = None;
        let mut allowed: Option<(Said, Vec<usize>)> = None;
        for (at, program) in seen.call.programs.iter().enumerate() {
            let values = &self.context.lens.lens().value_options;
            let Some(pattern) = pattern_of(self.guard, program, values) else { continue };
            let (body, dark) = (&*self.guard.body, may_be_any(program));
            concerned = true;
            let recognised = Recognised { at, named: pattern.operands(&program.name, values) };
            self.context.learned.borrow_mut().program = Some(recognised);
            match self.holds(body) {
                Ok(true) if !dark && allows::lets_go(self.guard.mode, body) => {
                    let first = || (self.fired(body, &line(program)), Vec::new());
                    let (_, programs) = allowed.get_or_insert_with(first);
                    programs.extend(allows::withheld(program).is_none().then_some(at));
                }
                Ok(true) if !dark => return self.fires(body, &line(program)),
                Ok(true) => {
                    let why = format!("what `{}` runs cannot be known", program.called.text);
                    doubt = doubt.or(Some((why, line(program))));
                }
                Ok(false) => silent = self.explained(body),
                Err(why) if !dark => doubt = doubt.or(Some((why, line(program)))),
                Err(_) => {}
            }
        }
        // What is allowed of the line says nothing of what cannot be known of it.
        let unheard = self.guard.body.on_error == Fallback::Allow;
        if let Some((said, programs)) = allowed.filter(|_| unheard || doubt.is_none()) {
            return Found::Allows(said, programs);
        }
        if let Some((why, program)) = doubt {
            return self.unknown(&self.guard.body, why, &program);
        }
        // Over a bound all guards answer together, see `judge`.
        let mut programs = self.guard.commands.iter().map(|it| it.program());
        if let Some(why) = seen.call.unread.first().filter(|_| !seen.call.beyond)
            && let Some(program) = programs.find(|it| named(self.words, it))
        {
            let why = format!("the command line was not understood: {why}");
            let message = format!("It names `{program}`: write that as a command of its own.");
            return self.doubts(&self.guard.body, (message, why), "");
        }
        if concerned { Found::Silent(silent) } else { Found::NotConcerned }
    }

    fn holds(&mut self, body: &GuardBody) -> Result<bool, String> {
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
            (Err(why), _) | (_, Err(why)) => Err(why.message),
        }
    }

    /// What it says where it fires.
    fn fired(&mut self, body: &GuardBody, program: &str) -> Said {
        let message = template::render(&body.message, self.evaluator);
        let verdict = self.says(body, body.verb, (message, None), program);
        let updated = body.updated_input.iter();
        let updated = updated
            .map(|(key, text)| (key.clone(), template::render(text, self.evaluator)))
            .collect();
        (Box::new(verdict), updated)
    }

    fn fires(&mut self, body: &GuardBody, program: &str) -> Found {
        Found::Says(self.fired(body, program))
    }

    fn unknown(&mut self, body: &GuardBody, why: String, program: &str) -> Found {
        let message = template::render(&body.message, self.evaluator);
        self.doubts(body, (message, why), program)
    }

    /// What it says where it cannot be told whether it fires.
    fn doubts(
        &mut self,
        body: &GuardBody,
        (message, why): (String, String),
        program: &str,
    ) -> Found {
        let verb = match body.on_error {
            Fallback::Allow => return Found::Silent(self.explained(body)),
            Fallback::Warn => Verb::Warn,
            Fallback::Ask => Verb::Ask,
            Fallback::Block => Verb::Block,
        };
        Found::Says((Box::new(self.says(body, verb, (message, Some(why)), program)), Vec::new()))
    }

    /// Its conditions with their values, as they are for the program that it looks at now.
    fn explained(&mut self, body: &GuardBody) -> Vec<Explained> {
        let written = [("when", &body.when), ("unless", &body.unless)];
        let asked = written.into_iter().filter(|_| self.detail == Detail::Values);
        asked
            .filter_map(|(key, it)| Some((key, it.as_ref()?)))
            .map(|(key, it)| Explained {
                key,
                place: it.place.to_string(),
                expression: it.text.clone(),
                parts: self.evaluator.explain(&it.text),
            })
            .collect()
    }

    fn says(
        &mut self,
        body: &GuardBody,
        verb: Verb,
        (message, unknown): (String, Option<String>),
        program: &str,
    ) -> GuardVerdict {
        let guard = self.guard;
        let message = if message.is_empty() { format!("`{}` says so", guard.id) } else { message };
        GuardVerdict {
            id: guard.id.clone(),
            set: guard.set.clone(),
            verb,
            message,
            unknown,
            mode: guard.mode,
            program: program.to_owned(),
            place: body.place.to_string(),
            explanation: self.explained(body),
        }
    }
}

/// The words of a command line, whatever its grammar.
pub(super) fn words(line: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    line.split(|c: char| !is_part(c)).collect()
}

/// Whether a program is named among words.
fn named(words: &BTreeSet<&str>, program: &str) -> bool {
    words.contains(program)
        || (program.contains('*') && words.iter().any(|it| word_matches(program, it)))
}
