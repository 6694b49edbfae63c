//! Combines the allows of command guards: the whole command line is allowed, or nothing.

use std::collections::BTreeSet;

use super::{GuardOutput, GuardVerdict, GuardsOutcome, SilentGuard};
use policyd_fact_table::program_facts::line;
use policyd_facts::call::{Call, Invocation};
use policyd_facts::event::Event;
use policyd_policy::Mode;
use policyd_policy::guards::{GuardAction, GuardBody};

/// Collected allows of command guards.
#[derive(Default)]
pub(super) struct Allows {
    /// Indexes of the allowed programs of the call.
    programs: BTreeSet<usize>,
    outputs: Vec<GuardOutput>,
}

impl Allows {
    /// Adds the result of a guard that allows these programs.
    pub(super) fn add(&mut self, output: GuardOutput, programs: Vec<usize>) {
        self.programs.extend(programs);
        self.outputs.push(output);
    }

    /// Applies the allows if every program of the line is allowed. An allow skips the client's own
    /// permission prompt, so it must cover the whole line.
    pub(super) fn take_effect(self, guarded: &mut GuardsOutcome, call: &Call, event: &Event) {
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
        for GuardOutput { verdict, updated_input } in self.outputs {
            match &why {
                None => guarded.add(*verdict, updated_input, event),
                Some(why) => {
                    let GuardVerdict { id, place, explanation, .. } = *verdict;
                    guarded.silent.push(SilentGuard { id, place, why: why.clone(), explanation });
                }
            }
        }
    }
}

/// Returns whether a guard allows calls when it fires.
pub(super) fn is_allow(mode: Mode, body: &GuardBody) -> bool {
    mode == Mode::Enforce && body.verb == GuardAction::Allow
}

/// Returns why no guard can allow a program by its name: another program starts it and can change
/// its effect or its privileges (`sudo`, `env`), or it is called by a path.
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
