//! `policyd eval`: judges one hook event. The only place that knows the order of effects:
//! read payload, pack and transcript; plan; ask; lock and load; decide; save; log; speak.

mod broken;
mod calls;
mod guarding;
mod inquiry;
mod occupancy;
mod on_disk;
mod probing;
mod reactions;
mod request;
mod speech;
mod switching;
mod work_tree;

use std::mem::ManuallyDrop;
use std::path::Path;
use std::rc::Rc;

use super::amplihack::PowerSteeringConfig;
use super::gate_status::{GateStatus, OffReason};
use super::log::DECISION_LOG;
use super::project::{self, Project};
use super::{Console, EXIT_OK, EvalArguments, pack};
use crate::facts::Facts;
use crate::facts::event::Event;
use crate::harness::{self, Harness};
use crate::hook::Answer;
use crate::judge::combine::Decision;
use crate::judge::situation::Words;
use crate::judge::{self, Bench, Detail, Outcome};
use crate::policy::{Forgotten, Policy, records};
use crate::script::Evaluator;
use crate::source::suggest;
use crate::state::SessionState;
use crate::store::file::Saved;
use crate::store::session::{LockError, LockedSession, SessionStore};
use crate::store::transcript;
use crate::world::World;
use crate::world::overlay::OverlayWorld;
use guarding::Guarding;
use inquiry::cursor_path;
use reactions::Reacting;
pub(super) use request::{Request, caller, named_harness};
pub(super) use speech::{Report, Unjudged, log_decision};
pub(super) use switching::switched;

/// Judges one event and speaks.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &EvalArguments) -> u8 {
    let overlay;
    let world: &dyn World = if arguments.dry_run {
        overlay = OverlayWorld::new(world);
        &overlay
    } else {
        world
    };
    let began = world.elapsed();
    let mut report = Report::default();
    let mut caller = request::caller_of(arguments);
    let usage = match request::read(world, console, arguments, &mut caller) {
        Ok(None) => EXIT_OK,
        Ok(Some(request)) => {
            report = evaluate(world, &request);
            report.around.explained = request.detail == Detail::Values;
            EXIT_OK
        }
        Err(error) => {
            report.problem(&error.to_string());
            error.exit_code()
        }
    };
    let took = world.elapsed().saturating_sub(began);
    report.around.micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    speech::speak(world, console, (arguments, caller), &report, usage)
}

/// A pack that is loaded, with what its facts are recognised by: it judges any number of events.
pub(super) struct Ready {
    /// The pack without its vocabulary.
    pub(super) policy: Policy,
    /// How facts are recognised.
    pub(super) words: Words,
    /// Where the pack was found; nothing for a pack that no project has.
    pub(super) found: Option<Rc<pack::Found>>,
}

impl Ready {
    /// Prepares a pack.
    pub(super) fn new(mut policy: Policy) -> Self {
        let words = Words::out_of(&mut policy);
        Self { policy, words, found: None }
    }
}

/// Judges an event by the pack of its project.
fn evaluate(world: &dyn World, request: &Request<'_>) -> Report {
    let mut report = Report::of(&request.event);
    let (project, switches) = match enter(world, request, &mut report) {
        Ok(entered) => entered,
        Err(report) => return *report,
    };
    let fenced = project::fenced(world, &project);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let found = pack::find(world, &project, request.policies);
    // It is told where a session begins and ends its turns, not at every call.
    if request.event.kind.is_main_boundary() {
        found.passed_over.iter().for_each(|it| report.problem(&it.text()));
    }
    let mut policy = match pack::policy(world, &found) {
        Ok(policy) => policy,
        Err(broken) if broken.enabled == Some(false) => {
            return speech::report_off(world, &project, request, OffReason::Manifest, report);
        }
        // It is said at a stop and where a session begins.
        Err(why) if !request.event.kind.is_boundary() => {
            let Some(mut policy) = pack::builtin_policy(world) else {
                return report.silent(broken::BROKEN);
            };
            switches.iter().for_each(|it| drop(it.apply(&mut policy)));
            return broken::judge(world, request, policy, &project, (report, &why));
        }
        Err(why) => {
            let mut report = broken::answer(world, &project, request, report, &why);
            let blocked = report.answer.refuses();
            speech::log_unjudged(world, &project.state, request, blocked, &mut report);
            return report;
        }
    };
    for problem in switches.iter().flat_map(|it| it.apply(&mut policy)) {
        report.problem(&problem);
    }
    let fenced = project::fenced_by_pack(world, &project, &policy.settings);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let nothing = nothing_to_judge(&policy, &request.event, &mut report);
    // The process ends with its answer: taking a policy apart would only delay it.
    let ready = ManuallyDrop::new(Ready::new(policy));
    judge(world, request, (&ready, Some(&found)), &project, (report, nothing))
}

/// Judges an event by a pack that is loaded already; all the rest is as for a hook.
pub(super) fn evaluate_by(world: &dyn World, request: &Request<'_>, ready: &Ready) -> Report {
    let mut report = Report::of(&request.event);
    let (project, switches) = match enter(world, request, &mut report) {
        Ok(entered) => entered,
        Err(report) => return *report,
    };
    let changed = switches.map(|switches| {
        let mut policy = ready.policy.clone();
        let problems = switches.apply(&mut policy);
        problems.iter().for_each(|it| report.problem(it));
        Ready { policy, words: ready.words.clone(), found: ready.found.clone() }
    });
    let ready = changed.as_ref().unwrap_or(ready);
    let nothing = nothing_to_judge(&ready.policy, &request.event, &mut report);
    judge(world, request, (ready, ready.found.as_deref()), &project, (report, nothing))
}

/// Judges an event by a sound pack, unless it has nothing to say.
fn judge(
    world: &dyn World,
    request: &Request<'_>,
    pack: (&Ready, Option<&pack::Found>),
    project: &Project,
    (report, nothing): (Report, Option<Unjudged>),
) -> Report {
    match nothing {
        None => judge_stop(world, request, pack, project, report),
        Some(Unjudged::Off(reason)) => speech::report_off(world, project, request, reason, report),
        Some(why) => judge_other(world, request, pack, project, (report, why)),
    }
}

/// Notes what the pack says about an event that nothing is judged at.
fn react(
    world: &dyn World,
    request: &Request<'_>,
    policy: &Policy,
    project: &Project,
    report: &mut Report,
) {
    if !policy.settings.enabled || !Reacting::concerns(policy, request.event.kind) {
        return;
    }
    let (store, own) = project::sessions(world, project, &policy.settings);
    Reacting { world, request, policy, own: (&own, &store.durability), model: "" }.react(report);
}

/// The project of an event and amplihack's configuration of it; else the report of an event at which
/// nothing is evaluated, whatever the pack.
fn enter(
    world: &dyn World,
    request: &Request<'_>,
    report: &mut Report,
) -> Result<(Project, Option<PowerSteeringConfig>), Box<Report>> {
    let silent = |report: &mut Report, why| {
        Err(Box::new(std::mem::take(report).not_judged(why, request.now)))
    };
    let event = &request.event;
    if let Some(said) = event.said_kind.filter(|it| *it != event.kind)
        && (said.is_stop() != event.kind.is_stop()
            || [said, event.kind].iter().any(|it| it.is_before_call()))
    {
        let [line, right] = [event.kind, said].map(|it| it.name().replace('_', "-"));
        let reported = said.client_name();
        report.problem(&format!(
            "the hook line says `--hook {line}`, and the client reports {reported}; nothing was checked. \
             Write `--hook {right}` there"
        ));
        let why = "the event is another one than the hook line says".to_owned();
        return silent(report, Unjudged::Other(why));
    }
    // Events that nothing can be said to are answered before anything is read.
    let says = |it: &&Harness| it.moment_of(event.kind).is_some_and(|it| !it.ways.is_empty());
    let heard = harness::HARNESSES.iter().any(says);
    if !heard && !records::REACTING.contains(&event.kind) {
        return silent(report, Unjudged::NoRule);
    }
    let project = project::find(world, Some(event));
    let status = GateStatus::read(world, &project, Some(&event.session_id), request.now);
    if event.kind.is_main_boundary() {
        status.problems.iter().for_each(|it| report.problem(it));
    }
    match status.off {
        None => Ok((project, status.config)),
        Some(reason) => {
            let report = std::mem::take(report);
            Err(Box::new(speech::report_off(world, &project, request, reason, report)))
        }
    }
}

/// Why a sound pack has nothing to say to an event.
fn nothing_to_judge(policy: &Policy, event: &Event, report: &mut Report) -> Option<Unjudged> {
    report.around.pack.clone_from(&policy.name);
    if !policy.settings.enabled {
        return Some(Unjudged::Off(OffReason::Manifest));
    }
    if !policy.judges(event.kind) {
        return Some(Unjudged::NoRule);
    }
    if !event.session_known {
        report.problem(
            "the payload names no session, so no block could be remembered; nothing was checked",
        );
        return Some(Unjudged::Other("the payload names no session".to_owned()));
    }
    None
}

/// An event at which no consideration is judged: what the pack notes about it, how full the context
/// is, and its guards.
fn judge_other(
    world: &dyn World,
    request: &Request<'_>,
    (ready, found): (&Ready, Option<&pack::Found>),
    project: &Project,
    (mut report, why): (Report, Unjudged),
) -> Report {
    let Ready { policy, words, .. } = ready;
    react(world, request, policy, project, &mut report);
    if occupancy::concerns(policy, &request.event) {
        occupancy::meter(world, request, (ready, project), &mut report);
    }
    let guarding = Guarding { world, request, policy, words, project, found };
    let guarded = policy.settings.enabled && guarding.guard(&mut report);
    if policy.settings.enabled && !report.answer.refuses() {
        calls::record(world, request, policy, project);
    }
    if guarded { report } else { report.not_judged(why, request.now) }
}

/// Judges a stop by a sound pack.
fn judge_stop(
    world: &dyn World,
    request: &Request<'_>,
    (ready, found): (&Ready, Option<&pack::Found>),
    project: &Project,
    report: Report,
) -> Report {
    let Ready { policy, words, .. } = ready;
    let (store, own) = project::sessions(world, project, &policy.settings);
    let (store, own) = (&store, own.as_path());
    Stopping { world, request, policy, project, store, own, found }.judge(words, report)
}

/// A stop that is judged by a sound pack.
struct Stopping<'a> {
    world: &'a dyn World,
    request: &'a Request<'a>,
    policy: &'a Policy,
    project: &'a Project,
    store: &'a SessionStore<'a>,
    /// The root of our own.
    own: &'a Path,
    /// Where the pack was found; nowhere for one that is given.
    found: Option<&'a pack::Found>,
}

impl Stopping<'_> {
    fn judge(&self, words: &Words, mut report: Report) -> Report {
        let (world, event) = (self.world, &self.request.event);
        let (store, own) = (self.store, self.own);
        let interactive = world.env("CLAUDE_CODE_ENTRYPOINT").as_deref() != Some("sdk-cli")
            && world.env("CLAUDE_CODE_SESSION_ATTENDED").as_deref() != Some("0");

        // Read the transcript, and see whether there is anything to judge.
        let cursor_path = cursor_path(store, event);
        let gathered = self.gather(&cursor_path, words, interactive, &mut report);
        let context = &gathered.context;
        let keep =
            || gathered.cursor.iter().for_each(|it| transcript::keep(world, &cursor_path, it));
        // Half of a transcript is no evidence: the guard is not even stepped.
        if context.transcript_problem.is_some() {
            speech::log_unjudged(world, own, self.request, false, &mut report);
            keep();
            return report.silent("the transcript was not read");
        }
        if let Some(why) = judge::no_opinion(event, &context.facts, interactive) {
            keep();
            return report.silent(why);
        }
        let mut evaluator = ManuallyDrop::new(Evaluator::new(context.clone()));
        evaluator.watch.clone_from(&self.request.watch);

        // Ask what must be asked before the lock is taken.
        let forced = self.forced_type(&mut report);
        let plan = judge::plan(self.policy, context, forced.as_deref(), &mut evaluator);
        let memory = store.paths(&event.session_id).folder;
        let answers = self.ask(&plan, (context, &mut evaluator), &memory, &mut report);

        // Decide on fresh state, under the lock; a block is durable before it is spoken.
        let lock_wait = self.policy.settings.lock_wait;
        let mut locked = match store.lock(&event.session_id, lock_wait) {
            Ok(locked) => Some(locked),
            Err(error) => {
                report.problem(&lock_problem(&error));
                None
            }
        };
        if locked.is_some() {
            answers.save(world);
        }
        let state = match &mut locked {
            Some(locked) => locked.load().state,
            None => SessionState::new(event.session_id.clone()),
        };
        let mark = gathered.stop_mark(self.request);
        if state.last_stop.as_ref().is_some_and(|it| mark.repeats(it)) {
            return report.silent("another hook line reported this stop just before");
        }
        let stopwatch = || world.elapsed();
        let report_path = own.join(DECISION_LOG).display().to_string();
        let bench = Bench {
            policy: self.policy,
            context,
            state: &state,
            stopwatch: &stopwatch,
            detail: self.request.detail,
            report_path: &report_path,
        };
        let inputs = self.inputs(&gathered, &state, forced.as_deref());
        let mut outcome = judge::decide(bench, &mut evaluator);
        outcome.state.last_stop = Some(mark).filter(|_| outcome.moved).or(outcome.state.last_stop);
        let remembered = self.remember(locked.as_mut(), &outcome, &mut report);
        calls::record_stop(self, &context.facts);
        self.tell_unsafe(&mut report);
        keep();
        drop(locked);

        // Log, then hand over what is to be spoken.
        self.answer(&outcome, remembered, &mut report);
        self.react(&outcome, &context.facts, &mut report);
        speech::log(world, own, self.request, (&outcome, &inputs), &mut report);
        speech::document(world, own, self.request, &context.learned.borrow(), &mut report);
        report.outcome = Some(outcome);
        report
    }

    /// The session type that the environment names; an unknown one is reported.
    fn forced_type(&self, report: &mut Report) -> Option<String> {
        let variables = &self.policy.settings.session_type_env;
        let forced = variables.iter().find_map(|it| self.world.env(it));
        if let Some(name) = forced.as_deref().filter(|it| !self.policy.has_session_type(it)) {
            let known: Vec<&str> =
                self.policy.session_types.iter().map(|it| it.id.as_str()).collect();
            let help = suggest::did_you_mean(name, &known).unwrap_or_default();
            report.problem(&format!("there is no session type `{name}` to be forced; {help}"));
        }
        forced
    }

    /// Notes what the pack says about a stop that was judged.
    fn react(&self, outcome: &Outcome, facts: &Facts, report: &mut Report) {
        let (world, request, policy) = (self.world, self.request, self.policy);
        let (own, model) = ((self.own, &self.store.durability), &facts.tokens.called);
        let reacting = Reacting { world, request, policy, own, model };
        if policy.considerations.iter().any(|it| !it.emit.is_empty()) {
            reacting.emit_for(outcome, report);
        }
        if policy.reacts_to.contains(&request.event.kind) {
            reacting.react(report);
        }
        if request.event.agent_id.is_none() {
            let (by, of) = ((policy, self.own), (self.store, facts));
            occupancy::request_clear(world, request, by, of, report);
        }
        // An agent that may stop is not kept by what waits; one that goes on is told.
        if report.answer.refuses() {
            reacting.tell_signals(report);
        }
    }

    /// Tells the settings under which what is saved may be lost.
    fn tell_unsafe(&self, report: &mut Report) {
        let durability = &self.store.durability;
        let unsafe_settings = [(durability.fsync, "no fsync"), (durability.verify, "no verify")];
        for (_, what) in unsafe_settings.iter().filter(|(safe, _)| !safe) {
            report.around.saved.push_str(&format!(", unsafe: {what}"));
        }
    }

    /// Saves what is to be remembered; says whether a block may be spoken.
    fn remember(
        &self,
        locked: Option<&mut LockedSession<'_>>,
        outcome: &Outcome,
        report: &mut Report,
    ) -> bool {
        let Some(locked) = locked else {
            report.around.saved = "not saved".to_owned();
            return false;
        };
        if !outcome.moved {
            return true;
        }
        let saved = locked.commit(&outcome.state);
        let (text, remembered) = match &saved {
            Saved::Durable { .. } => ("durable", true),
            Saved::Degraded { why, .. } => {
                report.problem(&format!("the state was saved in place only: {why}"));
                ("degraded", true)
            }
            Saved::NotSaved { why, .. } => {
                report.problem(&format!("the state could not be saved: {why}"));
                ("not saved", false)
            }
        };
        report.around.saved =
            if self.request.dry_run { "dry run".to_owned() } else { text.to_owned() };
        remembered
    }

    fn answer(&self, outcome: &Outcome, remembered: bool, report: &mut Report) {
        let spoken = remembered || self.policy.settings.when_forgotten == Forgotten::Block;
        let mut notices = Vec::new();
        if outcome.decision == Decision::Block && spoken {
            report.answer = Answer::block(outcome.reason.clone());
        } else if outcome.decision == Decision::Block {
            notices.push(outcome.forgotten_notice.clone());
        }
        notices.push(outcome.notice.clone());
        notices.retain(|it| !it.is_empty());
        report.answer.notice = (!notices.is_empty()).then(|| notices.join("\n"));
        let verdicts = outcome.verdicts.iter();
        let lines = verdicts.map(|it| format!("{} {}: {}", it.id, it.status.as_str(), it.details));
        report.trace.extend(lines);
    }
}

fn lock_problem(error: &LockError) -> String {
    let help = match error {
        LockError::Busy(_) => "end that process if it hangs",
        LockError::Refused(_) => "POLICYD_STATE_DIR may name a folder that can be written",
    };
    format!("the state of the session could not be locked ({error}), so nothing is blocked; {help}")
}
