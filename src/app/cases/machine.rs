//! A simulated machine on which the steps of one case happen: files, clock, answers of probes and a
//! session's transcript are what the case says, and nothing else. The events run through `eval`.

use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::actions::{perform, waits};
use super::error::CaseError;
use crate::gate::{self, LoadedPolicy, Report, Request, Supervision};
use crate::tasks::{StoreLocation, Stores};
use crate::workspace::project::{self, Project};
use policyd_base::id::SessionId;
use policyd_base::{git_index, limits};
use policyd_cases::happens::StepAction;
use policyd_cases::transcript::{PROJECT, Recorder, absolute};
use policyd_cases::{CaseStep, Given, PackChanges, ProbeStub, StateBefore, TranscriptAddition};
use policyd_evaluation::Detail;
use policyd_evaluation::guards::GuardsOutcome;
use policyd_fact_table::watch::CoverageRecorder;
use policyd_facts::compiled::CompiledMatchers;
use policyd_facts::event::{Event, EventKind};
use policyd_facts::shell;
use policyd_harness::claude_code;
use policyd_hook::{Caller, payload};
use policyd_policy::Policy;
use policyd_policy::approval::ApprovalLevel;
use policyd_policy::field_value::Word;
use policyd_policy::guards::Guard;
use policyd_probe::git::NEUTRAL;
use policyd_record::outcome;
use policyd_state::{SessionState, breaker};
use policyd_store::breakers::BreakerStore;
use policyd_store::configuration::Configurations;
use policyd_store::decision_log::DECISION_LOG;
use policyd_store::user_choices::UserChoiceStore;
use policyd_world::fake::{FakeWorld, Op};
use policyd_world::{CommandOutput, World, WorldError};

/// Configuration directory of the user of a case.
const USER_CONFIG: &str = "/user/config";
/// The state directory of the user.
const USER_STATE: &str = "/user/state";
/// Where the transcript of the session lies.
const TRANSCRIPT: &str = "/sessions/session-1.jsonl";

/// Reads a file that a case names.
pub(crate) type ReadFile<'a> = &'a dyn Fn(&Path) -> Result<String, CaseError>;

/// The machine of one case.
pub(crate) struct Machine<'a> {
    pub world: FakeWorld,
    pub ready: &'a mut LoadedPolicy,
    /// What the case changed in the pack, as it was before.
    unchanged: OriginalParts,
    recorder: Recorder,
    read_file: ReadFile<'a>,
}

/// How much had happened before a step.
struct Before {
    /// Entries of the decision log.
    entries: usize,
    /// Commands that ran.
    commands: usize,
}

/// What came of a step.
pub(crate) struct StepOutcome {
    /// Everything that can be expected, by the keys of expectations.
    pub value: Value,
    /// The report itself.
    pub report: Report,
}

impl<'a> Machine<'a> {
    /// An empty project under git with no transcript yet.
    pub(crate) fn new(ready: &'a mut LoadedPolicy, read_file: ReadFile<'a>) -> Self {
        let world = FakeWorld::new();
        world.put(format!("{PROJECT}/.git/HEAD"), "ref: refs/heads/main\n");
        let unchanged = OriginalParts::of(&ready.policy);
        script_tree(&world, false);
        script_git(&world, &LISTED_CHANGES, Vec::new());
        // A case may give a switch file, whose user honors it.
        world.set_env("XDG_CONFIG_HOME", USER_CONFIG);
        world.set_env("XDG_STATE_HOME", USER_STATE);
        let choices =
            UserChoiceStore::new(&world, &Path::new(PROJECT).join(project::STATE_DIR_NAME));
        drop(choices.change(|it| it.switch_files = true));
        Self { world, ready, unchanged, recorder: Recorder::default(), read_file }
    }

    /// Runs a step.
    ///
    /// # Errors
    /// [`CaseError`] if the step is invalid, or a file of the case cannot be read.
    pub(crate) fn step(
        &mut self,
        step: &CaseStep,
        detail: Detail,
        watch: Option<Rc<CoverageRecorder>>,
    ) -> Result<StepOutcome, CaseError> {
        self.world.advance(step.after);
        self.prepare(&step.given);
        match &step.transcript {
            TranscriptAddition::Nothing => {}
            TranscriptAddition::List(happenings) => {
                for happening in happenings {
                    for (path, text) in self.recorder.happening(happening) {
                        self.world.put(path, text);
                    }
                }
            }
            TranscriptAddition::File(_, path) => self.recorder.recorded(&(self.read_file)(path)?),
        }
        self.world.put(TRANSCRIPT, self.recorder.text());
        let event = match &step.on {
            StepAction::Event { name, fields } => self.event(name, fields)?,
            // It happens in a session all the same.
            StepAction::Table { .. }
            | StepAction::Run(_)
            | StepAction::Signal { .. }
            | StepAction::Task(_)
            | StepAction::Failure { .. } => self.event("stop", &Map::new())?,
        };
        let project = project::find(&self.world, Some(&event));
        self.remember(&step.given, &project, &event);
        if !matches!(step.on, StepAction::Event { .. }) {
            let value = perform(&self.stores(&project, watch), &step.on)?;
            return Ok(StepOutcome { value, report: Report::default() });
        }
        let before = Before { entries: self.log(&project).len(), commands: self.world.ran().len() };
        let now = self.world.now();
        let request = Request {
            caller: Caller::at(&claude_code::HARNESS, event.kind.name()),
            supervision: Supervision::of_hook(&self.world),
            event,
            now,
            policies: None,
            detail,
            dry_run: false,
            line: String::new(),
            configurations: Rc::new(Configurations::load(&self.world)),
            watch,
        };
        let report = gate::evaluate_by(&self.world, &request, self.ready);
        let mut value = self.seen(&report, &request.event, &project, &before);
        if let (true, Value::Object(seen)) = (step.expects("classes"), &mut value) {
            seen.insert("classes".to_owned(), classes(&self.ready.words.lens, &request.event));
        }
        Ok(StepOutcome { value, report })
    }

    /// Changes what a step gives before its transcript goes on.
    fn prepare(&mut self, given: &Given) {
        let world = &self.world;
        given.now.into_iter().for_each(|now| world.set_now(now));
        given.env.iter().for_each(|(name, value)| world.set_env(name, value));
        given.files.iter().for_each(|(path, text)| world.put(absolute(path), text));
        // What is not there needs no removal.
        given.removed.iter().for_each(|path| drop(world.remove(Path::new(&absolute(path)))));
        // A case that lists no files is about a project with tests.
        if given.files.is_empty() {
            world.put(absolute(TEST_FILE), "");
        }
        if let Some(remote) = &given.remote {
            let config = format!("[remote \"origin\"]\n\turl = {remote}\n");
            world.put(format!("{PROJECT}/.git/config"), config);
        }
        if let Some(level) = given.approvals {
            // A policy that is adjusted is a copy, whose expressions are not counted as covered.
            self.ready.policy.approvals = level;
            let text = format!("approvals: {}\n", level.name());
            world.put(format!("{USER_CONFIG}/policyd/config.yaml"), text);
        }
        given.tree_clean.into_iter().for_each(|it| script_tree(world, it));
        if !given.tracked.is_empty() {
            let names: BTreeSet<&str> = given.tracked.iter().map(String::as_str).collect();
            world.put(format!("{PROJECT}/.git/index"), git_index::with_names(names));
        }
        let changes: String = given.uncommitted.iter().map(|it| format!(" M {it}\0")).collect();
        if !changes.is_empty() {
            script_git(world, &LISTED_CHANGES, changes.into_bytes());
        }
        if let Some(watched) = given.interactive {
            world.set_env("CLAUDE_CODE_SESSION_ATTENDED", if watched { "1" } else { "0" });
        }
        match given.disk_full {
            Some(true) => {
                let full = || WorldError::Io("no space left on device".to_owned());
                for op in [Op::Write, Op::Append, Op::CreateFolder] {
                    world.refuse_always(op, "", full());
                }
            }
            Some(false) => world.refuse_nothing(),
            None => {}
        }
        if let Some(branch) = &given.branch {
            self.recorder.set_branch(branch);
            script_git(world, &["branch"], format!("{branch}\n").into_bytes());
        }
        for (id, answers) in &given.probes {
            self.script(id, answers);
        }
        change(&mut self.ready.policy, &given.pack);
    }

    fn script(&self, id: &str, answers: &[ProbeStub]) {
        let probes = &self.ready.policy.probes;
        let Some(probe) = probes.iter().find(|it| it.id == id) else { return };
        let command: Vec<&str> = probe.command.iter().map(String::as_str).collect();
        self.world.unscript(&command);
        for answer in answers {
            let (result, least) = if answer.missing {
                (Err(WorldError::NotFound), Duration::ZERO)
            } else if answer.timeout {
                let longer = probe.timeout.saturating_add(Duration::from_secs(1));
                (Err(WorldError::TimedOut), longer)
            } else {
                let bytes = |it: &Option<String>| it.clone().unwrap_or_default().into_bytes();
                let (stdout, stderr) = (bytes(&answer.prints), bytes(&answer.stderr));
                let code = Some(answer.code.unwrap_or(0));
                (Ok(CommandOutput { code, stdout, stderr, truncated: false }), Duration::ZERO)
            };
            self.world.script(&command, result, answer.takes.max(least));
        }
    }

    /// The payload as the client would send it, read as a hook reads it.
    fn event(&self, name: &str, changes: &Map<String, Value>) -> Result<Event, CaseError> {
        let mut payload = json!({
            "session_id": "session-1", "transcript_path": TRANSCRIPT, "cwd": PROJECT,
            "prompt_id": self.recorder.prompt_id(), "permission_mode": "default",
            "stop_hook_active": false, "background_tasks": [],
        });
        if let Value::Object(fields) = &mut payload {
            fields.extend(changes.clone());
        }
        let kind = EventKind::find(name).ok_or_else(|| CaseError::UnknownEvent(name.to_owned()))?;
        Ok(payload::parse(payload.to_string().as_bytes(), kind)?)
    }

    /// Puts down what the session and its breakers remember.
    fn remember(&self, given: &Given, project: &Project, event: &Event) {
        let policy = &self.ready.policy;
        let (store, own) = project::sessions(&self.world, project, &policy.settings);
        if let Some(StateBefore { total_blocks, consecutive_blocks, turns }) = given.state {
            let mut state = SessionState::new(event.session_id.clone());
            state.turn_count = turns;
            state.main.episode = event.prompt_id.clone().unwrap_or_default();
            state.main.total_blocks = total_blocks;
            state.main.consecutive_blocks = consecutive_blocks;
            state.main.blocks_since_clean = consecutive_blocks;
            if let Ok(mut locked) = store.lock(&event.session_id, limits::LOCK_WAIT) {
                locked.load();
                // What was not saved is not remembered, which the case will tell.
                let _saved = locked.commit(&state);
            }
        }
        let breakers = BreakerStore::new(&self.world, &own, store.durability.clone());
        for key in &given.breakers {
            let settings = policy.breaker(key);
            let failure = breaker::BreakerEvent::failure("it failed before");
            for _ in 0..settings.threshold.max(settings.minimum_calls) {
                // One that cannot be written stays closed, which the case will tell.
                let _refused = breakers.record(key, failure, &settings, self.world.now());
            }
        }
    }

    /// The stores of the project.
    fn stores(&self, project: &Project, watch: Option<Rc<CoverageRecorder>>) -> Stores<'_> {
        let policy = &self.ready.policy;
        let (sessions, own) = project::sessions(&self.world, project, &policy.settings);
        let (state_dir, durability) = (own.as_path(), &sessions.durability);
        let location = StoreLocation { state_dir, durability, lock_wait: Duration::ZERO };
        Stores { watch, ..Stores::new(&self.world, policy, location) }
    }

    /// The decisions of the decision log.
    fn log(&self, project: &Project) -> Vec<Value> {
        let path = project.state.join(DECISION_LOG);
        let text = self.world.get(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let entries = text.lines().filter_map(|it| serde_json::from_str(it).ok());
        entries.filter(|it: &Value| it.get("notice").is_none()).collect()
    }

    /// Everything that can be expected of a step; the log and the commands from here on are new.
    fn seen(&self, report: &Report, event: &Event, project: &Project, before: &Before) -> Value {
        let policy = &self.ready.policy;
        let outcome = report.outcome.as_ref();
        let text = |it: &Option<String>| it.clone().unwrap_or_default();
        let verdicts = outcome.map(|it| it.verdicts.as_slice()).unwrap_or_default();
        let considerations = verdicts.iter().map(|it| (it.id.clone(), outcome::verdict_json(it)));
        let entries = self.log(project);
        let fresh = entries.get(before.entries..).unwrap_or_default();
        let probe = |command: &[String]| {
            let mut probes = policy.probes.iter();
            probes.find(|it| it.command == command).map(|it| it.id.clone())
        };
        let commands = self.world.ran();
        let asked = commands.iter().skip(before.commands).filter_map(|it| probe(&it.argv));
        let release = outcome.map(|it| it.release).filter(|it| !it.is_empty());
        let mut seen = json!({
            "decision": report.answer.decision.as_str(),
            "release": release.unwrap_or("none"),
            "session_type": outcome.map_or("", |it| it.session_type.as_str()),
            "no_opinion": text(&report.context.no_opinion),
            "considerations": considerations.collect::<Map<_, _>>(),
            "reason": report.answer.reason,
            "notice": text(&report.answer.notice),
            "context": text(&report.answer.context),
            "summary": outcome.map_or("", |it| it.summary.as_str()),
            "problems": report.context.problems,
            "preferences": report.context.preferences,
            "effects": {
                "probes": asked.collect::<Vec<_>>(),
                "saved": report.context.saved.to_string(),
                "logged": !fresh.is_empty(),
                "log": fresh.last(),
            },
            "state": self.state(event, project),
            "breakers": self.breakers(project),
        });
        if let Value::Object(seen) = &mut seen {
            seen.insert("guards".to_owned(), guards(report, policy, event.kind));
            let guarded = report.context.guarded.as_ref();
            let decided_by = guarded.map(GuardsOutcome::decided_by).unwrap_or_default();
            seen.insert("decided_by".to_owned(), decided_by.into());
            let updated = report.answer.updated_input.clone();
            seen.insert("updated_input".to_owned(), updated.unwrap_or_else(|| "none".into()));
            let updated = report.answer.updated_output.clone();
            seen.insert("updated_output".to_owned(), updated.unwrap_or_else(|| "none".into()));
            seen.extend(waits(&self.stores(project, None)));
        }
        seen
    }

    fn state(&self, event: &Event, project: &Project) -> Value {
        let (store, _) = project::sessions(&self.world, project, &self.ready.policy.settings);
        let id: &SessionId = &event.session_id;
        let SessionState { turn_count, check_results, main, agents, .. } = store.peek(id).state;
        let guard = match &event.agent_id {
            Some(agent) => agents.get(agent).cloned().unwrap_or_default(),
            None => main,
        };
        json!({
            "total_blocks": guard.total_blocks,
            "consecutive_blocks": guard.consecutive_blocks,
            "turns": turn_count,
            "releases": guard.releases,
            "quality_score": check_results.quality_score,
            "workflow_compliant": check_results.workflow_compliant,
        })
    }

    fn breakers(&self, project: &Project) -> Value {
        let policy = &self.ready.policy;
        let (store, own) = project::sessions(&self.world, project, &policy.settings);
        let breakers = BreakerStore::new(&self.world, &own, store.durability.clone());
        let phase = |key: &String| {
            let phase = breakers
                .peek(key)
                .unwrap_or_default()
                .phase_at(&policy.breaker(key), self.world.now());
            (key.clone(), Value::from(phase.as_str().to_ascii_lowercase()))
        };
        let known = policy
            .breaker_names()
            .into_iter()
            .chain(breakers.all().unwrap_or_default().into_iter().map(|it| it.0));
        Value::Object(known.map(|it| phase(&it)).collect())
    }
}

/// The classes that the command of a call belongs to.
fn classes(matchers: &CompiledMatchers, event: &Event) -> Value {
    let command = event.tool_input.get("command").and_then(Value::as_str).unwrap_or_default();
    let (programs, _) = shell::parse(command, matchers);
    Value::Object(matchers.kinds_of(&programs).map(|it| (it.to_owned(), true.into())).collect())
}

/// What git answers about the work tree from here on.
fn script_tree(world: &FakeWorld, clean: bool) {
    let changes = if clean { Vec::new() } else { b" M src/lib.rs\n".to_vec() };
    for question in ["--untracked-files=no", "--ignored"] {
        script_git(world, &["status", "--porcelain", question], changes.clone());
    }
}

/// The beginning of the question which paths have changes.
const LISTED_CHANGES: [&str; 3] = ["status", "--porcelain", "-z"];

/// Sets what git answers to a question that begins with these words.
fn script_git(world: &FakeWorld, question: &[&str], stdout: Vec<u8>) {
    let output = CommandOutput { code: Some(0), stdout, stderr: Vec::new(), truncated: false };
    // The repository's configuration defines no filter.
    let none = CommandOutput { code: Some(1), ..CommandOutput::default() };
    for (question, output) in [(&["config"][..], none), (question, output)] {
        let start = [&NEUTRAL[..], question].concat();
        world.unscript(&start);
        world.script(&start, Ok(output), Duration::ZERO);
    }
}

/// What every guard came to. One that the call does not concern is silent; one that is never asked at this
/// event is neither, so that no case is met by it.
fn guards(report: &Report, policy: &Policy, kind: EventKind) -> Value {
    let said = report.context.guarded.iter().flat_map(|it| &it.verdicts);
    let said = said.map(|it| (it.id.clone(), it.status()));
    let asked = |it: &Guard| it.on.contains(&kind);
    let unsaid = |it: &Guard| match it.on.as_slice() {
        [] => "switched off in this case",
        _ if asked(it) => "silent",
        _ => "not asked at this event",
    };
    let all = policy.guards.rules.iter().map(|it| (it.id.clone(), unsaid(it)));
    Value::Object(all.chain(said).map(|(id, status)| (id, status.into())).collect())
}

/// Test file of the project of a case that lists no files.
const TEST_FILE: &str = "tests/test_project.py";

impl Drop for Machine<'_> {
    /// The pack is the same for every case.
    fn drop(&mut self) {
        self.unchanged.put_back(&mut self.ready.policy);
        self.ready.policy.approvals = ApprovalLevel::None;
    }
}

/// What a case may change in a pack. It is changed in place, so that every text stays where it is:
/// the coverage watch knows it by that.
struct OriginalParts {
    considerations: Vec<bool>,
    probes: Vec<bool>,
    preferences: Vec<Option<bool>>,
    /// The events of each guard.
    guarded: Vec<Vec<EventKind>>,
    voice: String,
}

impl OriginalParts {
    fn of(policy: &Policy) -> Self {
        Self {
            considerations: policy.considerations.iter().map(|it| it.enabled).collect(),
            probes: policy.probes.iter().map(|it| it.enabled).collect(),
            preferences: policy.preferences.iter().map(|it| it.value).collect(),
            guarded: policy.guards.rules.iter().map(|it| it.on.clone()).collect(),
            voice: policy.settings.voice.clone(),
        }
    }

    fn put_back(&self, policy: &mut Policy) {
        policy.change_checks(|all| {
            all.iter_mut().zip(&self.considerations).for_each(|(it, on)| it.enabled = *on);
        });
        policy.probes.change(|all| {
            all.iter_mut().zip(&self.probes).for_each(|(it, on)| it.enabled = *on);
        });
        policy.preferences.change(|all| {
            all.iter_mut().zip(&self.preferences).for_each(|(it, value)| it.value = *value);
        });
        let put_back = |rules: &mut Vec<Guard>| {
            rules.iter_mut().zip(&self.guarded).for_each(|(it, on)| it.on.clone_from(on));
        };
        policy.guards.change(|all| all.rules.change(put_back));
        policy.settings.voice.clone_from(&self.voice);
    }
}

fn change(policy: &mut Policy, changes: &PackChanges) {
    let switched = |id: &String, enabled: bool| {
        if changes.disable.contains(id) { false } else { enabled || changes.enable.contains(id) }
    };
    policy.change_checks(|all| {
        all.iter_mut().for_each(|it| it.enabled = switched(&it.id, it.enabled));
    });
    policy.probes.change(|all| {
        all.iter_mut().for_each(|it| it.enabled = switched(&it.id, it.enabled));
    });
    policy.preferences.change(|all| {
        for it in all {
            let set = changes.preferences.iter().find(|(id, _)| *id == it.id);
            it.value = set.map_or(it.value, |(_, value)| Some(*value));
        }
    });
    let switch_off = |rules: &mut Vec<Guard>| {
        // One that is for no event is never asked.
        let off = rules.iter_mut().filter(|it| changes.disable.contains(&it.id));
        off.for_each(|it| it.on.clear());
    };
    policy.guards.change(|all| all.rules.change(switch_off));
    if let Some(voice) = &changes.voice {
        policy.settings.voice.clone_from(voice);
    }
}
