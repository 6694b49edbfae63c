//! Runs the cases of packs on simulated machines. Nothing of this machine is used but the files of the
//! packs, and nothing is written but snapshots, if the request asks for them.

mod actions;
mod causes;
pub mod error;
mod machine;
pub mod playground;
pub mod recorded;
pub mod suite;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::gate::LoadedPolicy;
use causes::behind;
use error::CaseError;
use machine::{Machine, StepOutcome};
use policyd_cases::coverage::{self, ExpectedRules};
use policyd_cases::expect::Mismatch;
use policyd_cases::names::NameTable;
use policyd_cases::result::{CaseOutcome, CaseResult, CaseSummary, UnmetExpectation};
use policyd_cases::{Case, CaseStep, Expect, SnapshotFormat, TranscriptAddition, read, snapshot};
use policyd_evaluation::Detail;
use policyd_fact_table::watch::CoverageRecorder;
use policyd_policy::{Policy, builtin, load};
use policyd_record::outcome;
use policyd_world::World;
use suite::Suite;

/// What is done with a snapshot that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotUpdate {
    /// It is overwritten.
    Accept,
    /// The new one is written beside it.
    Review,
}

/// Which cases are run, and what is measured.
pub struct CaseRequest {
    /// Text in the name of a case or of its file.
    pub filter: Option<String>,
    pub update: Option<SnapshotUpdate>,
    /// Whether coverage is measured.
    pub coverage: bool,
    /// Required coverage of branches, in percent.
    pub threshold: Option<u8>,
}

/// What is wanting although no case failed.
fn wanting(summary: &CaseSummary, request: &CaseRequest) -> Vec<String> {
    let (passed, failed, _) = summary.counts();
    let mut wanting = Vec::new();
    if passed == 0 && failed == 0 {
        wanting.push(match (&request.filter, summary.filtered) {
            (Some(filter), 1..) => format!("no case of {} contains `{filter}`", summary.pack),
            _ => format!("no case of {} was run", summary.pack),
        });
    }
    let reached = summary.coverage.as_ref().map(coverage::Coverage::branches);
    if let (Some(wanted), Some((seen, all))) = (request.threshold, reached)
        && seen.saturating_mul(100) < all.saturating_mul(usize::from(wanted))
    {
        let name = &summary.pack;
        wanting.push(format!("{name}: {seen} of {all} branches covered; {wanted}% required"));
    }
    wanting
}

/// The name of a pack as the user reads it: the working directory has no name of its own.
fn shown_name(world: &dyn World, name: &str) -> String {
    let here = Path::new(name).file_name().is_none().then(|| world.working_folder());
    let here = here.as_deref().and_then(Path::file_name);
    here.map_or_else(|| name.to_owned(), |it| it.to_string_lossy().into_owned())
}

/// Runs the cases of a pack.
pub fn run_suite(world: &dyn World, suite: &Suite, request: &CaseRequest) -> CaseSummary {
    let builtin = builtin::pack();
    let loaded = load::load(&suite.pack, &builtin);
    let pack = shown_name(world, &suite.pack.name);
    let Some(mut policy) = loaded.policy else {
        return CaseSummary {
            pack,
            findings: loaded.diagnostics,
            broken: true,
            ..CaseSummary::default()
        };
    };
    // Cases show what rules do once they are enforced.
    policy.settings.mode = None;
    let known = NameTable::of(&policy);
    let mut findings = Vec::new();
    let mut files = Vec::new();
    for source in &suite.files {
        let (cases, found) = read::read(source, &known);
        findings.extend(found);
        files.push((source.name.clone(), cases));
    }
    let fits =
        |text: &String, file: &str, case: &Case| case.name.contains(text) || file.contains(text);
    let (asked_for, left_out): (Vec<_>, Vec<_>) = files
        .iter()
        .flat_map(|(file, cases)| cases.iter().map(move |case| (file.as_str(), case)))
        .partition(|(file, case)| request.filter.as_ref().is_none_or(|it| fits(it, file, case)));
    let covered = coverage::covered(asked_for.iter().map(|(_, case)| *case), &known);
    let summary =
        CaseSummary { pack, findings, filtered: left_out.len(), ..CaseSummary::default() };
    let mut runner = Runner { covered, summary, ..Runner::new(world, suite, request, policy) };
    for (file, case) in asked_for {
        runner.run(file, case);
    }
    let Runner { ready, total, covered, compared, mut summary, .. } = runner;
    let everything = suite.whole && summary.filtered == 0 && summary.findings.is_empty();
    if everything {
        summary.orphans = suite.snapshots(world);
        summary.orphans.retain(|it| !compared.contains(it));
    }
    if let Some(watch) = total {
        let inherited = inherited(&ready.policy, &suite.pack, &builtin);
        let measured = coverage::measure(&ready.policy, inherited.as_ref(), &watch, &covered);
        summary.coverage = Some(measured);
    }
    summary.wanting = wanting(&summary, request);
    summary
}

/// The built-in pack, where this one extends it.
fn inherited(policy: &Policy, pack: &load::Pack, builtin: &load::Pack) -> Option<Policy> {
    let extends = policy.session_types.iter().any(|it| builtin::has(&it.when.place.file));
    let below = || load::load(builtin, builtin).policy;
    (extends && pack.name != builtin.name).then(below).flatten()
}

struct Runner<'a> {
    world: &'a dyn World,
    suite: &'a Suite,
    update: Option<SnapshotUpdate>,
    ready: LoadedPolicy,
    /// Coverage of all cases together, if it is measured.
    total: Option<CoverageRecorder>,
    covered: ExpectedRules,
    /// Snapshots that a case compares with, beside the case files.
    compared: BTreeSet<PathBuf>,
    summary: CaseSummary,
}

impl<'a> Runner<'a> {
    fn new(world: &'a dyn World, suite: &'a Suite, request: &CaseRequest, policy: Policy) -> Self {
        let watched = request.coverage || request.threshold.is_some();
        Self {
            world,
            suite,
            update: request.update,
            ready: LoadedPolicy::new(policy, None),
            total: watched.then(CoverageRecorder::default),
            covered: ExpectedRules::default(),
            compared: BTreeSet::new(),
            summary: CaseSummary::default(),
        }
    }

    /// Returns the report of each step of a case, or why it cannot be run.
    fn reports(&mut self, case: &Case) -> Vec<String> {
        let seen = self.steps(case, Detail::Everything, None);
        let report = |seen: &Result<StepOutcome, CaseError>| match seen {
            Ok(seen) => self.report(seen, SnapshotFormat::Text),
            Err(error) => error.to_string(),
        };
        seen.iter().map(report).collect()
    }

    fn run(&mut self, file: &str, case: &Case) {
        let ending = match &case.skip {
            Some(why) => CaseOutcome::Skipped(why.clone()),
            None => {
                let failures = self.failures(file, case);
                if failures.is_empty() {
                    CaseOutcome::Passed
                } else {
                    CaseOutcome::Failed(failures)
                }
            }
        };
        self.summary.cases.push(CaseResult {
            file: file.to_owned(),
            name: case.name.clone(),
            span: case.span.clone(),
            ending,
        });
    }

    fn failures(&mut self, file: &str, case: &Case) -> Vec<UnmetExpectation> {
        let watch = self.total.is_some().then(Rc::<CoverageRecorder>::default);
        let seen = self.steps(case, Detail::Everything, watch.as_ref());
        if let (Some(total), Some(watch)) = (&self.total, &watch) {
            total.absorb(watch);
            self.covered.add_seen(&self.ready.policy, watch);
        }
        let mut failures = Vec::new();
        for (at, (step, seen)) in case.steps.iter().zip(&seen).enumerate() {
            let number = (case.steps.len() > 1).then(|| at.saturating_add(1));
            let mismatches = match seen {
                Err(error) => vec![cannot_be_run(step, error)],
                Ok(seen) => match &step.expect {
                    Expect::Wanted(wanted) => {
                        wanted.iter().flat_map(|it| it.check(&seen.value)).collect()
                    }
                    Expect::Snapshot(..) => self.snapshot(file, case, number, step, seen),
                },
            };
            let failed = mismatches.into_iter();
            failures.extend(failed.map(|mismatch| UnmetExpectation {
                step: number,
                mismatch,
                behind: Vec::new(),
            }));
        }
        if !failures.is_empty() {
            // The same once more, looking at every part of every condition.
            let explained = self.steps(case, Detail::Values, None);
            for failure in &mut failures {
                let at = failure.step.map_or(0, |it| it.saturating_sub(1));
                if let Some(Ok(seen)) = explained.get(at) {
                    failure.behind = behind(&failure.mismatch, seen);
                }
            }
        }
        failures
    }

    /// Lets the steps of a case happen, up to the first that cannot.
    fn steps(
        &mut self,
        case: &Case,
        detail: Detail,
        watch: Option<&Rc<CoverageRecorder>>,
    ) -> Vec<Result<StepOutcome, CaseError>> {
        let (world, suite) = (self.world, self.suite);
        let read_file = |path: &Path| suite.read_beside(world, &case.span.source.name, path);
        let mut machine = Machine::new(&mut self.ready, &read_file);
        let mut all = Vec::new();
        for step in &case.steps {
            let seen = machine.step(step, detail, watch.cloned());
            let stop = seen.is_err();
            all.push(seen);
            if stop {
                break;
            }
        }
        all
    }

    /// Compares a whole report with what is kept of it, and writes it where that is asked for.
    fn snapshot(
        &mut self,
        file: &str,
        case: &Case,
        number: Option<usize>,
        step: &CaseStep,
        seen: &StepOutcome,
    ) -> Vec<Mismatch> {
        let Expect::Snapshot(span, form) = &step.expect else { return Vec::new() };
        let content = self.report(seen, *form);
        let mismatch = |wanted: &str, whole: Option<String>| Mismatch {
            span: span.clone(),
            what: "snapshot".to_owned(),
            wanted: wanted.to_owned(),
            got: content.clone(),
            whole,
        };
        let below =
            self.suite.folder.as_deref().and_then(|it| Path::new(file).strip_prefix(it).ok());
        let case_file =
            below.unwrap_or_else(|| Path::new(Path::new(file).file_name().unwrap_or_default()));
        let case_file = case_file.to_string_lossy();
        let name = snapshot::name(&case_file, &case.name, number);
        let path = Path::new(snapshot::FOLDER).join(name);
        let kept = self.suite.read(self.world, &path).ok();
        if !self.compared.insert(path.clone()) {
            let taken = format!("a separate snapshot: another case writes {}, too", path.display());
            return vec![mismatch(&taken, None)];
        }
        if kept.as_deref().is_some_and(|it| snapshot::same(snapshot::read(it), &content)) {
            return Vec::new();
        }
        let source = format!("{}/{case_file}", policyd_cases::shape::FOLDER);
        let text = snapshot::write(&source, &case.name, &content);
        let differs = || match &kept {
            Some(kept) => mismatch("the snapshot", Some(snapshot::read(kept).to_owned())),
            None => mismatch("a snapshot, which does not exist: run with `--update`", None),
        };
        let (Some(update), Some(folder)) = (self.update, &self.suite.folder) else {
            return vec![differs()];
        };
        let path = folder.join(path);
        let (path, accepted) = match update {
            SnapshotUpdate::Accept => (path, true),
            SnapshotUpdate::Review => (PathBuf::from(format!("{}.new", path.display())), false),
        };
        let made = path.parent().map_or(Ok(()), |it| self.world.create_folder(it));
        match made.and_then(|()| self.world.write(&path, text.as_bytes())) {
            Ok(()) => {
                if accepted {
                    // What waited for a review is out of date, where there was anything.
                    let waiting = format!("{}.new", path.display());
                    let _missing = self.world.remove(Path::new(&waiting));
                }
                self.summary.written.push(path.display().to_string());
                if accepted { Vec::new() } else { vec![differs()] }
            }
            Err(error) => vec![mismatch(&format!("a file that can be written: {error}"), None)],
        }
    }

    /// The report of a step; the folder of the pack is left out of places, so that it is the same
    /// wherever the pack lies.
    fn report(&self, StepOutcome { report, .. }: &StepOutcome, form: SnapshotFormat) -> String {
        let mut around = report.context.clone();
        let pack = &self.suite.pack;
        if around.pack == pack.name {
            around.pack.clear();
        }
        let mut text = match form {
            SnapshotFormat::Text => outcome::to_text(report.outcome.as_ref(), &around, false),
            SnapshotFormat::Json => {
                format!("{:#}", outcome::to_json(report.outcome.as_ref(), &around))
            }
        };
        for (file, source) in &pack.files {
            text = text.replace(&source.name, file);
        }
        text
    }
}

fn cannot_be_run(step: &CaseStep, error: &CaseError) -> Mismatch {
    let span = match (error, &step.transcript) {
        (CaseError::File { .. }, TranscriptAddition::File(span, _)) => span,
        _ => &step.span,
    };
    Mismatch {
        span: span.clone(),
        what: "the step".to_owned(),
        wanted: "to be run".to_owned(),
        got: error.to_string(),
        whole: None,
    }
}
