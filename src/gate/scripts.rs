//! Guards about the files that a call runs: `bash x.sh`, `make t`. A guard looks at each program of such a file as at
//! the programs of a command line. What is unknown in a file passes: a script works with variables, and a question about
//! each of them would be noise. What was not analyzed does not pass: a guard with `in_scripts: only_changed` reads
//! `action.not_analyzed`. Guards that read the transcript are not evaluated.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::call_files::DiskReader;
use super::context::GateContext;
use super::on_disk;
use policyd_evaluation::Detail;
use policyd_evaluation::combine::Decision;
use policyd_evaluation::guards::{self, GuardsOutcome};
use policyd_fact_table::FactEvaluator;
use policyd_fact_table::call_facts::CallFacts;
use policyd_fact_table::context::Context;
use policyd_fact_table::source::{FactSource, FactSources};
use policyd_facts::call::Script;
use policyd_policy::Mode;
use policyd_policy::guards::{Guard, GuardAction, GuardedScripts};
use policyd_probe::git::{Git, GitError};

/// Time for the question whether a file is committed.
const TIME_MAX: Duration = Duration::from_secs(1);
/// Questions without an answer in time. After these, git is not asked again.
const SILENT_MAX: usize = 2;
/// One line is enough.
const ANSWER_BYTES_MAX: usize = 4096;

/// The guards about the files that one call runs.
pub(super) struct ScriptGuards<'a> {
    pub(super) context: &'a GateContext<'a>,
    pub(super) call_facts: &'a CallFacts,
}

impl ScriptGuards<'_> {
    /// Evaluates the guards about each file, and adds the verdicts to `outcome`.
    pub(super) fn evaluate(
        &self,
        context: &Context,
        evaluator: &mut FactEvaluator,
        outcome: &mut GuardsOutcome,
    ) {
        let mut committed = CommittedFiles::default();
        for script in self.call_facts.call.all_scripts() {
            self.evaluate_script(script, context, evaluator, outcome, &mut committed);
        }
    }

    /// Evaluates the guards about one file.
    fn evaluate_script<'s>(
        &self,
        script: &'s Script,
        context: &Context,
        evaluator: &mut FactEvaluator,
        outcome: &mut GuardsOutcome,
        committed: &mut CommittedFiles<'s>,
    ) {
        let (policy, request) = (self.context.policy, self.context.request);
        let concerned = guards::script_guards(policy, &request.event, &script.call, request.now);
        let concerned: Vec<&Guard> = concerned.into_iter().filter(|it| can_evaluate(it)).collect();
        let values = &self.context.words.lens.lens().value_options;
        let is_matched = |it: &&&Guard| guards::matches_any_program(it, &script.call, values);
        if !concerned.iter().any(|it| is_matched(&it)) {
            return;
        }
        let (call, around) = (script.call.clone(), Rc::clone(&self.call_facts.around));
        let mut facts = CallFacts { call, around, ..CallFacts::default() };
        if concerned.iter().any(|it| it.sources.has_some(FactSources::PATHS)) {
            let environment = Rc::make_mut(&mut facts.around);
            on_disk::inspect_paths(self.context.world, &mut facts.call, environment);
        }
        let reads_files = |it: &&&Guard| it.sources.has_some(FactSources::FILES) && is_matched(it);
        let readers: Vec<&Guard> = concerned.iter().filter(reads_files).copied().collect();
        if !readers.is_empty() {
            let reader = DiskReader { context: self.context, call_facts: &facts };
            facts.disk = Rc::new(reader.read(&readers));
        }
        let facts = Rc::new(facts);
        // The command line and the file are calls of their own, with effects of their own.
        evaluator.change_all(|it| it.call = Some(Rc::clone(&facts)));
        let of_file = concerned.iter().copied();
        let found =
            guards::judge(of_file, &request.event, &facts, context, evaluator, Detail::Findings);
        let mut memory = found.memory;
        for mut verdict in found.verdicts {
            let stops = verdict.unknown.is_none() && verdict.decision() >= Decision::Ask;
            let would_stop = verdict.unknown.is_none() && verdict.would().is_some();
            let Some(guard) = concerned.iter().find(|it| it.id == verdict.id) else { continue };
            if !(stops || would_stop) {
                continue;
            }
            let Some(note) = self.state_note(guard, script, committed) else { continue };
            verdict.script = self.location(script, &verdict.program) + note;
            outcome.memory.extend(memory.extract_if(.., |it| it.guard == verdict.id));
            outcome.judged.extend((!outcome.judged.contains(&guard.id)).then(|| guard.id.clone()));
            outcome.add_script_verdict(verdict, &request.event);
        }
    }

    /// Returns what the answer says of the state of a file. `None` if the guard does not look into a file in this state.
    fn state_note<'s>(
        &self,
        guard: &Guard,
        script: &'s Script,
        committed: &mut CommittedFiles<'s>,
    ) -> Option<&'static str> {
        let skipped = match guard.in_scripts {
            // An approval does not trust a committed file as the user's own.
            GuardedScripts::Changed | GuardedScripts::OnlyChanged if self.context.is_approval => {
                return Some("");
            }
            GuardedScripts::None | GuardedScripts::All => return Some(""),
            GuardedScripts::Changed | GuardedScripts::OnlyChanged => CommitState::Committed,
            GuardedScripts::Committed => CommitState::Changed,
        };
        let skips_unknown = guard.in_scripts == GuardedScripts::Committed;
        match committed.state(&script.path, || self.state(&script.path)) {
            state if state == skipped => None,
            // Other guards judge it as a changed file.
            CommitState::Unknown if skips_unknown => None,
            CommitState::Unknown => Some(" (git did not answer in time, so it counts as changed)"),
            CommitState::Committed | CommitState::Changed => Some(""),
        }
    }

    /// Returns the path of a file, from the project on, and the line of a program in it.
    fn location(&self, script: &Script, program: &str) -> String {
        let root = &self.context.project.root;
        let path = Path::new(&script.path);
        let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
        let programs = script.call.programs.iter().zip(&script.lines);
        let lines = programs.filter(|it| it.0.line() == program && *it.1 > 0).map(|it| it.1);
        match lines.min() {
            Some(line) => format!("{shown}:{line}"),
            None => shown,
        }
    }

    /// Returns whether the user committed a file in this form. A file outside the project and outside temporary
    /// directories counts as the user's, too.
    fn state(&self, path: &str) -> CommitState {
        let (path, root) = (Path::new(path), &self.context.project.root);
        if !path.starts_with(root) {
            let is_temporary =
                self.call_facts.around.temporary.iter().any(|it| path.starts_with(it));
            return if is_temporary { CommitState::Changed } else { CommitState::Committed };
        }
        let folder = path.parent().unwrap_or(root);
        let shown = path.display().to_string();
        let words = ["status", "--porcelain", "--ignored", "--untracked-files=all", "--", &shown];
        let git = Git::new(self.context.world, folder, root, TIME_MAX, ANSWER_BYTES_MAX);
        match git.answer(&words) {
            Ok(answer) if answer.stdout.is_empty() => CommitState::Committed,
            Ok(_) | Err(GitError::Failed) => CommitState::Changed,
            Err(GitError::NoAnswer) => CommitState::Unknown,
        }
    }
}

/// Whether the user committed a file in its form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CommitState {
    Committed,
    Changed,
    /// git did not answer in time. The file is judged as a changed one, and the message says so.
    Unknown,
}

/// The files for which git was asked already.
#[derive(Default)]
struct CommittedFiles<'s> {
    known: BTreeMap<&'s str, CommitState>,
    /// Questions without an answer.
    silent: usize,
}

impl<'s> CommittedFiles<'s> {
    /// Returns the state of a file, which `ask` finds out.
    fn state(&mut self, path: &'s str, ask: impl FnOnce() -> CommitState) -> CommitState {
        if let Some(known) = self.known.get(path) {
            return *known;
        }
        let state = if self.silent < SILENT_MAX { ask() } else { CommitState::Unknown };
        self.silent += usize::from(state == CommitState::Unknown);
        self.known.insert(path, state);
        state
    }
}

/// Stores that guards about files do not read.
const UNREAD_STORES: FactSources =
    FactSources::of(&[FactSource::Breakers, FactSource::Queues, FactSource::Signals]);

/// Returns whether a guard can be evaluated about a file: it may stop the call, and reads nothing but the call.
pub(super) fn can_evaluate(guard: &Guard) -> bool {
    let body = &*guard.body;
    let stops = matches!(body.verb, GuardAction::Ask | GuardAction::Block | GuardAction::Halt);
    let reads_more = guard.sources.has_some(FactSources::SESSION)
        || guard.sources.has_some(UNREAD_STORES)
        || guard.sources.contains(FactSource::WorkTree);
    stops && guard.mode != Mode::Warn && !reads_more
}
