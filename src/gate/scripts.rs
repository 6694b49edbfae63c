//! Guards about the files that a call runs: `bash x.sh`, `make t`. A guard looks at each program of such a file as at
//! the programs of a command line. What is unknown in a file passes: a script works with variables, and a question about
//! each of them would be noise. Only guards that look at the call alone are judged, not those of the transcript.

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
use policyd_fact_table::program_facts::line;
use policyd_fact_table::source::{FactSource, FactSources};
use policyd_facts::call::Script;
use policyd_policy::Mode;
use policyd_policy::guards::{Guard, GuardAction, GuardedScripts};
use policyd_probe::git::Git;

/// Time for the question whether a file is committed.
const TIME_MAX: Duration = Duration::from_millis(300);
/// One line is enough.
const ANSWER_BYTES_MAX: usize = 4096;

/// The guards about the files that one call runs.
pub(super) struct ScriptGuards<'a> {
    pub(super) context: &'a GateContext<'a>,
    pub(super) seen: &'a CallFacts,
}

impl ScriptGuards<'_> {
    /// Judges the guards about each file, and adds to `guarded` what they say.
    pub(super) fn judge(
        &self,
        context: &Context,
        evaluator: &mut FactEvaluator,
        guarded: &mut GuardsOutcome,
    ) {
        let mut committed = BTreeMap::new();
        for script in self.seen.call.all_scripts() {
            self.judge_one(script, context, evaluator, guarded, &mut committed);
        }
    }

    fn judge_one<'s>(
        &self,
        script: &'s Script,
        context: &Context,
        evaluator: &mut FactEvaluator,
        guarded: &mut GuardsOutcome,
        committed: &mut BTreeMap<&'s str, bool>,
    ) {
        let (policy, request) = (self.context.policy, self.context.request);
        let concerned = guards::script_guards(policy, &request.event, &script.call, request.now);
        let concerned: Vec<&Guard> = concerned.into_iter().filter(|it| can_judge(it)).collect();
        let values = &self.context.words.lens.lens().value_options;
        let is_matched = |it: &&&Guard| guards::matches_any_program(it, &script.call, values);
        if !concerned.iter().any(|it| is_matched(&it)) {
            return;
        }
        let (call, around) = (script.call.clone(), Rc::clone(&self.seen.around));
        let mut facts = CallFacts { call, around, ..CallFacts::default() };
        if concerned.iter().any(|it| it.sources.has_some(FactSources::PATHS)) {
            let around = Rc::make_mut(&mut facts.around);
            on_disk::inspect_paths(self.context.world, &mut facts.call, around);
        }
        let reads = |it: &&&Guard| it.sources.has_some(FactSources::FILES) && is_matched(it);
        let reading: Vec<&Guard> = concerned.iter().filter(reads).copied().collect();
        if !reading.is_empty() {
            facts.disk = Rc::new(DiskReader { context: self.context, seen: &facts }.read(&reading));
        }
        let facts = Rc::new(facts);
        // What the line does to files is not what the file does.
        evaluator.change_all(|it| it.call = Some(Rc::clone(&facts)));
        let judged = concerned.iter().copied();
        let found =
            guards::judge(judged, &request.event, &facts, context, evaluator, Detail::Findings);
        let mut memory = found.memory;
        for mut verdict in found.verdicts {
            let stops = verdict.unknown.is_none() && verdict.decision() >= Decision::Ask;
            let would = verdict.unknown.is_none() && verdict.would().is_some();
            let Some(guard) = concerned.iter().find(|it| it.id == verdict.id) else { continue };
            if !(stops || would) {
                continue;
            }
            let skipped = match guard.in_scripts {
                // An approval does not trust a committed file as the user's own.
                GuardedScripts::Changed if self.context.is_approval => None,
                GuardedScripts::Changed => Some(true),
                GuardedScripts::Committed => Some(false),
                GuardedScripts::None | GuardedScripts::All => None,
            };
            if let Some(skipped) = skipped {
                let known = committed.entry(&script.path);
                if *known.or_insert_with(|| self.is_committed(&script.path)) == skipped {
                    continue;
                }
            }
            verdict.script = self.place(script, &verdict.program);
            guarded.memory.extend(memory.extract_if(.., |it| it.guard == verdict.id));
            guarded.judged.extend((!guarded.judged.contains(&guard.id)).then(|| guard.id.clone()));
            guarded.add_script_verdict(verdict, &request.event);
        }
    }

    /// Returns the path of a file, from the project on, and the line of a program in it.
    fn place(&self, script: &Script, program: &str) -> String {
        let root = &self.context.project.root;
        let path = Path::new(&script.path);
        let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
        let programs = script.call.programs.iter().zip(&script.lines);
        let lines = programs.filter(|it| line(it.0) == program && *it.1 > 0).map(|it| it.1);
        match lines.min() {
            Some(line) => format!("{shown}:{line}"),
            None => shown,
        }
    }

    /// Returns whether the user committed a file in this form. A file outside the project and outside temporary
    /// directories counts as the user's, too.
    fn is_committed(&self, path: &str) -> bool {
        let (path, root) = (Path::new(path), &self.context.project.root);
        if !path.starts_with(root) {
            return !self.seen.around.temporary.iter().any(|it| path.starts_with(it));
        }
        let folder = path.parent().unwrap_or(root);
        let shown = path.display().to_string();
        let words = ["status", "--porcelain", "--ignored", "--untracked-files=all", "--", &shown];
        let git = Git::new(self.context.world, folder, root, TIME_MAX, ANSWER_BYTES_MAX);
        git.ask(&words).is_some_and(|it| it.stdout.is_empty())
    }
}

/// Stores of which a judge of files knows nothing.
const UNREAD: FactSources =
    FactSources::of(&[FactSource::Breakers, FactSource::Queues, FactSource::Signals]);

/// Returns whether a guard can judge a file: it may stop the call, and needs the call alone.
pub(super) fn can_judge(guard: &Guard) -> bool {
    let body = &*guard.body;
    let stops = matches!(body.verb, GuardAction::Ask | GuardAction::Block | GuardAction::Halt);
    let elsewhere = guard.sources.has_some(FactSources::SESSION)
        || guard.sources.has_some(UNREAD)
        || guard.sources.contains(FactSource::WorkTree);
    stops && guard.mode != Mode::Warn && !elsewhere
}
