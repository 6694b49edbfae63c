//! Combines the allows of command guards: the whole command line is allowed, or nothing.

use std::collections::BTreeSet;

use super::{GuardOutput, GuardVerdict, GuardsOutcome, SilentGuard};
use policyd_fact_table::call_facts::CallFacts;
use policyd_facts::call::{Invocation, PathMatchers, ShellText};
use policyd_facts::event::{Event, EventKind};
use policyd_facts::glob::word_matches;
use policyd_facts::lens::MatcherConfig;
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
    pub(super) fn take_effect(
        mut self,
        guarded: &mut GuardsOutcome,
        seen: &CallFacts,
        lens: &MatcherConfig,
        event: &Event,
    ) {
        let call = &seen.call;
        let is_free = |at: &usize| {
            call.programs.get(*at).is_some_and(|it| withheld(it, seen, lens).is_none())
        };
        self.programs.extend(seen.allowed.iter().copied().filter(is_free));
        // A guard that allows a program knows its arguments.
        let is_known = |it: &Invocation| {
            let mut allowed = self.programs.iter().filter_map(|at| call.programs.get(*at));
            it.guessed && allowed.any(|by| it.wrappers.last() == Some(&by.name))
        };
        let is_other =
            |(at, it): &(usize, &Invocation)| !is_known(it) && !self.programs.contains(at);
        let mut others = call.programs.iter().enumerate().filter(is_other);
        if event.kind == EventKind::PermissionRequest {
            guarded.not_allowed = others.clone().map(|(at, _)| at).collect();
        }
        let other = others.next().map(|(_, it)| it);
        let unread =
            || Some(format!("the command line was not understood: {}", call.unread.first()?));
        let is_plain = |name: &str, value: &ShellText| {
            let known = value.all().map(|it| format!("{name}={it}"));
            let known = known.as_deref().filter(|it| !it.contains(".."));
            let fits = |it: &String| {
                word_matches(it, name) || known.is_some_and(|known| word_matches(it, known))
            };
            lens.plain_variables.iter().any(fits)
        };
        let set = || {
            let (name, _) = call.variables.iter().find(|it| !is_plain(it.0, it.1))?;
            Some(format!("the line sets `{name}`, which its programs may heed"))
        };
        let more = |it: &Invocation| {
            withheld(it, seen, lens).unwrap_or_else(|| {
                format!("no guard allows `{}`, which the same line runs", it.line())
            })
        };
        let why = unread().or_else(|| other.map(more)).or_else(set);
        for GuardOutput { verdict, updated_input, memory } in self.outputs {
            match &why {
                None => {
                    guarded.memory.extend(memory);
                    guarded.add(*verdict, updated_input, event);
                }
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
pub(super) fn withheld(
    program: &Invocation,
    seen: &CallFacts,
    lens: &MatcherConfig,
) -> Option<String> {
    let is_plain = |it: &&String| seen.call.wrappers.get(*it) == Some(&true);
    if let Some(wrapper) = program.wrappers.iter().find(|it| !is_plain(it)) {
        return Some(format!("`{wrapper}` starts `{}`", program.line()));
    }
    let called = &program.called.text;
    let by_path = called.contains(['/', '\\']) && !is_installed(program, seen, lens);
    by_path.then(|| format!("`{called}` is called by its path, and may be any program"))
}

/// Directories of programs that only an administrator changes.
const SYSTEM_FOLDERS: [&str; 4] = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/"];

/// Returns whether a path is that of an installed program: one of the system, or one of the project's own tools.
fn is_installed(program: &Invocation, seen: &CallFacts, lens: &MatcherConfig) -> bool {
    let Some(called) = program.called.all() else { return false };
    let of_system = SYSTEM_FOLDERS.iter().filter_map(|it| called.strip_prefix(it));
    if of_system.into_iter().any(|it| it == program.name) {
        return true;
    }
    let place = seen.around.place(&program.called, program.folder.as_deref());
    let tools = || PathMatchers::new(lens.tool_folders.iter().map(String::as_str));
    place.real(&seen.around).is_some_and(|it| seen.around.in_project(it))
        && tools().fit(&place, &seen.around)
}
