//! What guards of programs allow: a whole command line, or nothing of it.

use std::collections::BTreeSet;

use super::{GuardVerdict, Guarded, Said, SilentGuard};
use crate::facts::call::{Call, Invocation};
use crate::facts::event::Event;
use crate::policy::Mode;
use crate::policy::guards::{GuardBody, Verb};
use crate::script::program_facts::line;

/// What guards of programs allow, each on its own.
#[derive(Default)]
pub(super) struct Allows {
    /// Programs of the call, by their numbers.
    programs: BTreeSet<usize>,
    said: Vec<Said>,
}

impl Allows {
    /// Takes in what a guard says that allows these programs, by their numbers.
    pub(super) fn add(&mut self, said: Said, programs: Vec<usize>) {
        self.programs.extend(programs);
        self.said.push(said);
    }

    /// An allow is one of the whole line, and skips the user's own prompt: it holds where every program is allowed.
    pub(super) fn take_effect(self, guarded: &mut Guarded, call: &Call, event: &Event) {
        let mut programs = call.programs.iter().enumerate();
        let other = programs.find(|(at, _)| !self.programs.contains(at)).map(|(_, it)| it);
        let unread =
            || Some(format!("the command line was not understood: {}", call.unread.first()?));
        let set = || {
            let name = call.variables.keys().next()?;
            Some(format!("the line sets `{name}`, which its programs may heed"))
        };
        let more = |it: &Invocation| {
            withheld(it).unwrap_or_else(|| {
                format!("no guard allows `{}`, which the same line runs", line(it))
            })
        };
        let why = unread().or_else(|| other.map(more)).or_else(set);
        for (verdict, updated) in self.said {
            match &why {
                None => guarded.add(*verdict, updated, event),
                Some(why) => {
                    let GuardVerdict { id, place, explanation, .. } = *verdict;
                    guarded.silent.push(SilentGuard { id, place, why: why.clone(), explanation });
                }
            }
        }
    }
}

/// Whether a guard lets go what it fires at.
pub(super) fn lets_go(mode: Mode, body: &GuardBody) -> bool {
    mode == Mode::Enforce && body.verb == Verb::Allow
}

/// Why no guard can allow a program by its name: another one starts it, which may change what it does or by whose
/// right (`sudo`, `env`), or it is called by a path, which may lead to any program.
pub(super) fn withheld(program: &Invocation) -> Option<String> {
    let called = &program.called.text;
    match program.wrappers.first() {
        Some(wrapper) => Some(format!("`{wrapper}` starts `{}`", line(program))),
        None if called.contains(['/', '\\']) => {
            Some(format!("`{called}` is called by its path, and may be any program"))
        }
        None => None,
    }
}
