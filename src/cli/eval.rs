//! `policyd eval`: judges one hook event. The only place that knows the order of effects:
//! read payload, pack and transcript; plan; ask; lock and load; decide; save; log; speak.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::log::DECISION_LOG;
use super::project::{self, Project};
use super::{Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, EvalArguments, Format, pack};
use crate::facts::Facts;
use crate::facts::compiled::CompiledLens;
use crate::facts::event::{Event, EventKind};
use crate::hook::claude_code::{self, Answer};
use crate::id::SessionId;
use crate::judge::combine::Decision;
use crate::judge::{self, Bench, Outcome, Plan, preference};
use crate::limits;
use crate::policy::{Forgotten, OnError, Policy};
use crate::probe;
use crate::report::outcome::{self as report, Circumstances};
use crate::script::Evaluator;
use crate::script::context::{self, Context, Learned};
use crate::script::pattern::{TextPattern, TextPatternSource, prose_regex};
use crate::source::suggest;
use crate::state::SessionState;
use crate::store::file::Saved;
use crate::store::session::{LockError, LockedSession, SessionStore};
use crate::store::transcript::{self, Places, Reading};
use crate::store::{layout, log};
use crate::time::Timestamp;
use crate::world::overlay::OverlayWorld;
use crate::world::{World, WorldError};

/// Longest wait for the lock of a session; without it nothing is blocked.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Everything learned about one event, until it is spoken.
#[derive(Debug, Default)]
struct Report {
    outcome: Option<Outcome>,
    answer: Answer,
    around: Circumstances,
    /// What the debug log says.
    trace: Vec<String>,
}

impl Report {
    fn silent(mut self, why: impl Into<String>) -> Self {
        self.around.no_opinion = Some(why.into());
        self
    }

    /// Something the user should know; nothing is blocked because of it.
    fn problem(&mut self, text: &str) {
        self.around.problems.push(judge::message::cut(text, limits::PROBLEM_CHARS_MAX));
    }

    fn note(&mut self, text: impl Into<String>) {
        self.trace.push(text.into());
    }
}

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
    let usage = match prepare(world, console, arguments) {
        Ok(request) => {
            report = evaluate(world, &request);
            EXIT_OK
        }
        Err((code, problem)) => {
            report.problem(&problem);
            code
        }
    };
    let took = world.elapsed().saturating_sub(began);
    report.around.micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    speak(world, console, arguments, &report, usage)
}

/// What is asked of this call.
struct Request<'a> {
    event: Event,
    now: Timestamp,
    policies: Option<&'a Path>,
    explain: bool,
    dry_run: bool,
}

/// Reads arguments and payload; what is wrong with them is one sentence with its cure.
fn prepare<'a>(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &'a EvalArguments,
) -> Result<Request<'a>, (u8, String)> {
    let kind = EventKind::find(&arguments.hook).ok_or_else(|| {
        let known: Vec<&str> = crate::facts::event::EVENTS.iter().map(|it| it.name).collect();
        let help = suggest::did_you_mean(&arguments.hook, &known).unwrap_or_default();
        (EXIT_USAGE, format!("there is no event `{}`; {help}", arguments.hook))
    })?;
    let now = match &arguments.now {
        None => world.now(),
        Some(text) => Timestamp::parse(text).ok_or_else(|| {
            (EXIT_USAGE, format!("`{text}` is not a time; write 2026-01-31T10:00:00Z"))
        })?,
    };
    let bytes = match &arguments.input {
        Some(path) => world
            .read(path, limits::STDIN_BYTES_MAX)
            .map_err(|error| (EXIT_BROKEN, format!("{}: {error}", path.display())))?,
        None => read_stdin(console),
    };
    let event =
        claude_code::parse(&bytes, kind).map_err(|error| (EXIT_BROKEN, error.to_string()))?;
    let policies = arguments.policies.as_deref();
    let (explain, dry_run) = (arguments.explain, arguments.dry_run);
    Ok(Request { event, now, policies, explain, dry_run })
}

/// Standard input up to one byte over the bound, so that a longer payload is noticed.
fn read_stdin(console: &mut Console<'_>) -> Vec<u8> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let bound = u64::try_from(limits::STDIN_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    // What could be read is judged; an empty payload is reported as such.
    drop((&mut *console.stdin).take(bound).read_to_end(&mut bytes));
    bytes
}

fn evaluate(world: &dyn World, request: &Request<'_>) -> Report {
    let event = &request.event;
    let mut report = Report::default();
    report.around.event = event.kind.name().to_owned();
    report.around.session_id = event.session_id.to_string();
    report.around.saved = "unchanged".to_owned();
    // Events without rules are answered before anything is read.
    if !event.kind.is_stop() {
        return report.silent("no rule for this event");
    }
    let project = project::find(world, Some(event));
    if let Some(why) = project::switched_off(world, &project) {
        return report.silent(format!("switched off: {why}"));
    }
    let found = pack::find(world, &project, request.policies);
    let mut policy = match pack::policy(world, &found) {
        Ok(policy) => policy,
        Err(broken) => {
            let report = answer_broken(report, &broken, event);
            let blocked = report.answer.block.is_some();
            let entry = report::unjudged_entry(request.now, event, &report.around, blocked);
            log_decision(world, &project::own_root(world, &project), entry);
            return report;
        }
    };
    report.around.pack.clone_from(&policy.name);
    if !policy.settings.enabled {
        return report.silent("the pack is switched off (`enabled: false`)");
    }
    let asked = |it: &crate::policy::Consideration| {
        it.enabled && it.on.iter().any(|name| name == event.kind.name())
    };
    if !policy.considerations.iter().any(asked) {
        return report.silent("no rule for this event");
    }
    if !event.session_known {
        return report.silent("the payload names no session, so no block could be remembered");
    }
    let (lens, texts) = (std::mem::take(&mut policy.lens), std::mem::take(&mut policy.texts));
    let words = Words { lens: CompiledLens::new(lens), texts };
    // The process ends with its answer: taking a policy apart would only delay it.
    let policy = ManuallyDrop::new(policy);
    Stopping { world, request, policy: &policy, project: &project }.judge(words, report)
}

/// A broken pack never breaks the agent: the user is told, and the manifest's `on_error` answers.
fn answer_broken(mut report: Report, broken: &pack::Broken, event: &Event) -> Report {
    let text = pack::explain(broken);
    // A block that is not counted is spoken at most once per turn.
    if broken.on_error == Some(OnError::Block) && !event.stop_active {
        report.answer.block = Some(format!("policyd: {text}. Tell the user to mend it."));
    }
    report.problem(&format!("{text}; nothing was checked. Run `policyd lint`."));
    report
}

/// What facts are recognised by, taken out of the policy: the context keeps it.
struct Words {
    lens: CompiledLens,
    texts: BTreeMap<String, TextPatternSource>,
}

/// A stop that is judged by a sound pack.
struct Stopping<'a> {
    world: &'a dyn World,
    request: &'a Request<'a>,
    policy: &'a Policy,
    project: &'a Project,
}

impl Stopping<'_> {
    fn judge(&self, words: Words, mut report: Report) -> Report {
        let (world, event) = (self.world, &self.request.event);
        let (store, own) = project::sessions(world, self.project, &self.policy.settings);
        let interactive = world.env("CLAUDE_CODE_ENTRYPOINT").as_deref() != Some("sdk-cli")
            && world.env("CLAUDE_CODE_SESSION_ATTENDED").as_deref() != Some("0");

        // Read the transcript, and see whether there is anything to judge.
        let cursor_path = cursor_path(&store, event);
        let (context, cursor) = self.context(&cursor_path, words, interactive, &mut report);
        let context = Rc::new(context);
        let keep = || cursor.iter().for_each(|it| transcript::keep(world, &cursor_path, it));
        // Half of a transcript is no evidence: the guard is not even stepped.
        let unread = context.transcript_problem.as_ref().map(|_| "the transcript was not read");
        if let Some(why) = unread.or(judge::no_opinion(event, &context.facts, interactive)) {
            keep();
            return report.silent(why);
        }
        let mut evaluator = ManuallyDrop::new(Evaluator::new(context.clone()));

        // Ask what must be asked before the lock is taken.
        let forced = self.policy.settings.session_type_env.iter().find_map(|it| world.env(it));
        let plan = judge::plan(self.policy, &context, forced.as_deref(), &mut evaluator);
        self.ask(&plan, &context, &mut report);

        // Decide on fresh state, under the lock; a block is durable before it is spoken.
        let mut locked = match store.lock(&event.session_id, LOCK_WAIT) {
            Ok(locked) => Some(locked),
            Err(error) => {
                report.problem(&lock_problem(&error));
                None
            }
        };
        let state = match &mut locked {
            Some(locked) => locked.load().state,
            None => SessionState::new(event.session_id.clone()),
        };
        let stopwatch = || world.elapsed();
        let report_path = own.join(DECISION_LOG).display().to_string();
        let bench = Bench {
            policy: self.policy,
            context: &context,
            state: &state,
            stopwatch: &stopwatch,
            explain: self.request.explain,
            report_path: &report_path,
        };
        let outcome = judge::decide(bench, &mut evaluator);
        let remembered = self.remember(locked.as_mut(), &outcome, &mut report);
        keep();
        drop(locked);

        // Log, then hand over what is to be spoken.
        self.answer(&outcome, remembered, &mut report);
        self.log(&own, &outcome, &mut report);
        report.outcome = Some(outcome);
        report
    }

    /// Everything that expressions see, the transcript's tail read; and the cursor to keep.
    fn context(
        &self,
        cursor_path: &Path,
        words: Words,
        interactive: bool,
        report: &mut Report,
    ) -> (Context, Option<Vec<u8>>) {
        let event = self.request.event.clone();
        let deadline = self.world.elapsed().saturating_add(self.policy.settings.deadline);
        let mut read = match &event.transcript {
            None => Reading {
                problem: Some("the payload names no transcript".to_owned()),
                ..Reading::default()
            },
            Some(transcript) => {
                let subagent = event.subagent_transcript;
                let places = Places { transcript, cursor: Some(cursor_path), subagent };
                transcript::read(self.world, places, &words.lens, self.policy.lens_key, deadline)
            }
        };
        let cursor = read.cursor.take();
        self.drop_mended(&mut read.facts);
        report.note(format!(
            "transcript: {} bytes read, cursor {}",
            read.bytes_read,
            if read.from_cursor { "used" } else { "not used" }
        ));
        if let Some(problem) = &read.problem {
            report.problem(&format!("{problem}; nothing in it was checked"));
        }
        let said = event.last_message.clone().filter(|it| !it.trim().is_empty());
        let last = || read.facts.messages.last.last().map(|it| it.text.clone());
        let patterns = words.texts.into_iter();
        let context = Context {
            last_message: said.or_else(last).unwrap_or_default(),
            event,
            transcript_problem: read.problem,
            facts: read.facts,
            lens: Rc::new(words.lens),
            interactive,
            project: self.project.root.clone(),
            patterns: patterns.map(|(id, it)| (id, TextPattern::new(it))).collect(),
            now: self.request.now,
            learned: RefCell::new(Learned::default()),
        };
        (context, cursor)
    }

    /// Forgets findings that the file on the disk no longer has: they were mended by a command
    /// (`sed -i`, `rm`) that the transcript does not tell.
    fn drop_mended(&self, facts: &mut Facts) {
        facts.findings.retain(|it| {
            let path = self.project.folder.join(&it.path);
            match self.world.read(&path, limits::POLICY_FILE_BYTES_MAX) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).contains(it.excerpt.as_str()),
                // The file is gone; where its folder is not here either, nothing can be told.
                Err(WorldError::Missing) => {
                    path.parent().is_none_or(|folder| self.world.stat(folder).is_err())
                }
                Err(_) => true,
            }
        });
    }

    /// Looks for preferences and runs probes.
    fn ask(&self, plan: &Plan, context: &Context, report: &mut Report) {
        report.note(format!("session type: {}", plan.session_type));
        for id in &plan.preferences {
            let found = self.preference(id, report);
            report.note(format!("Preference detected: {id} = {found}"));
            context.learned.borrow_mut().preferences.insert(id.clone(), found);
        }
        let policy = self.policy;
        for it in policy.probes.iter().filter(|it| plan.probes.contains(&it.id)) {
            report.note(format!("Executing: {}", it.command.join(" ")));
        }
        let deadline = policy.settings.deadline;
        let readings =
            probe::gather(self.world, &policy.probes, &plan.probes, &self.project.folder, deadline);
        for (id, reading) in &readings {
            report.note(match reading {
                context::Reading::Answer { code, value } => {
                    format!(
                        "probe {id}: exit {code}, {}",
                        judge::message::cut(&value.to_string(), 400)
                    )
                }
                context::Reading::Failed(why) => format!("probe {id} failed: {why}"),
            });
        }
        context.learned.borrow_mut().probes = readings;
    }

    /// Whether a preference is found; a file that cannot be read is no preference.
    fn preference(&self, id: &str, report: &mut Report) -> bool {
        let Some(it) = self.policy.preferences.iter().find(|it| it.id == id) else { return false };
        if let Some(value) = it.value {
            return value;
        }
        let regexes: Vec<_> = it.regexes.iter().map(|it| prose_regex(it)).collect();
        report.note(format!("Preference pattern: {}", it.regexes.join(" | ")));
        it.files.iter().any(|file| {
            let path = self.project.root.join(file);
            report.note(format!("Reading {}", path.display()));
            match self.world.read(&path, limits::POLICY_FILE_BYTES_MAX) {
                Ok(bytes) => preference::found(&String::from_utf8_lossy(&bytes), &regexes),
                Err(WorldError::Missing) => false,
                Err(error) => {
                    report.note(format!("WARNING: {}: {error}", path.display()));
                    false
                }
            }
        })
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
            report.answer.block = Some(outcome.reason.clone());
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

    fn log(&self, own: &Path, outcome: &Outcome, report: &mut Report) {
        let event = &self.request.event;
        let blocked = report.answer.block.is_some();
        let entry = report::log_entry(self.request.now, event, outcome, &report.around, blocked);
        if !log_decision(self.world, own, entry) {
            report.note("the decision log could not be written");
        }
        if project::debug(self.world) {
            let now = self.request.now.to_string();
            let lines = report.trace.iter();
            let lines: Vec<_> =
                lines.map(|it| serde_json::json!({"timestamp": now, "debug": it})).collect();
            log::append(self.world, &own.join("logs").join("debug.jsonl"), &lines);
        }
    }
}

/// Appends to the decision log; its folder is made where there is none, hidden from git.
fn log_decision(world: &dyn World, own: &Path, entry: serde_json::Value) -> bool {
    let (path, entry) = (own.join(DECISION_LOG), [entry]);
    if log::append(world, &path, &entry) {
        return true;
    }
    let made = path.parent().is_some_and(|logs| world.create_folder(logs).is_ok());
    if made {
        layout::hide(world, own);
    }
    made && log::append(world, &path, &entry)
}

/// The cursor lies beside the state; a subagent's transcript has its own.
fn cursor_path(store: &SessionStore<'_>, event: &Event) -> PathBuf {
    let folder = store.paths(&event.session_id).folder;
    let own = event.agent_id.as_deref().filter(|_| event.kind.name() == "subagent_stop");
    folder.join(match own {
        Some(agent) => format!("cursor-{}.bin", SessionId::sanitise(agent)),
        None => "cursor.bin".to_owned(),
    })
}

fn lock_problem(error: &LockError) -> String {
    format!("the state of the session could not be locked ({error}), so nothing is blocked")
}

/// Speaks last: one write, in the form that was asked for.
fn speak(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &EvalArguments,
    report: &Report,
    usage: u8,
) -> u8 {
    let blocked = report.answer.block.is_some();
    match arguments.format {
        Format::Hook => {
            let mut answer = report.answer.clone();
            let problems = report.around.problems.iter().map(|it| format!("policyd: {it}"));
            let said: Vec<String> = problems.chain(answer.notice.take()).collect();
            let notice = judge::message::cut(&said.join("\n"), limits::SPOKEN_CHARS_MAX);
            answer.notice = (!notice.is_empty()).then_some(notice);
            console.say(&claude_code::render(&answer));
            return EXIT_OK;
        }
        Format::Json => {
            let value = report::to_json(report.outcome.as_ref(), &report.around);
            console.say(&format!("{value:#}\n"));
        }
        Format::Text => {
            let color = console.color(world);
            console.say(&report::to_text(report.outcome.as_ref(), &report.around, color));
        }
    }
    if project::debug(world) {
        report.trace.iter().for_each(|it| console.complain(it));
    }
    match (usage, report.outcome.is_none() && !report.around.problems.is_empty(), blocked) {
        (EXIT_OK, false, false) => EXIT_OK,
        (EXIT_OK, false, true) => EXIT_FOUND,
        (EXIT_OK, true, _) => EXIT_BROKEN,
        (code, _, _) => code,
    }
}
