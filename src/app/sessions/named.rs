//! A session that is named on the command line, as expressions see it now: by its id, from the
//! decision log, by its transcript, or none at all.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use serde_json::json;

use super::logged_entries::{DecisionLogs, EntryQuery};
use super::recorded::{self, READING_MAX, ReadLimit};
use crate::error::AppError;
use crate::tasks::{StoreLocation, Stores};
use crate::workspace::checkout;
use crate::workspace::project::{self, Project};
use policyd_base::id::SessionId;
use policyd_evaluation as evaluation;
use policyd_evaluation::situation::{EventContext, Matchers};
use policyd_fact_table::FactEvaluator;
use policyd_fact_table::context::{Context, FactView, ProbeResult};
use policyd_fact_table::context_facts::ContextUsage;
use policyd_fact_table::source::FactSources;
use policyd_facts::Facts;
use policyd_facts::event::EventKind;
use policyd_hook::payload;
use policyd_policy::Policy;
use policyd_store::session::SessionStore;
use policyd_store::subagents::Reader;
use policyd_store::transcript::{self, Places};
use policyd_world::{FileKind, World};

/// Which session is meant.
#[derive(Debug, Clone, Copy)]
pub struct SessionSelector<'a> {
    /// A transcript, or the beginning of a session's id; none for no session at all.
    pub named: Option<&'a str>,
    /// Whether the transcript is a subagent's own.
    pub subagent: bool,
}

/// A session as expressions see it.
pub struct Session {
    pub view: FactView,
    /// What is not as at a stop, one sentence each.
    pub notes: Vec<String>,
}

impl Session {
    /// Finds it; its type is classified, nothing is run.
    ///
    /// # Errors
    /// The session cannot be read; the message contains the fix.
    pub fn find(
        world: &dyn World,
        project: &Project,
        policy: &mut Policy,
        wanted: SessionSelector<'_>,
    ) -> Result<Self, AppError> {
        let is_file = |named: &&str| {
            let path = Path::new(named);
            world.stat(path).is_ok_and(|it| it.kind == FileKind::File)
                || path.components().count() > 1
        };
        let session = match wanted.named {
            Some(named) if !is_file(&named) => recorded_session(world, project, policy, named)?,
            path => from_file(world, project, policy, path.map(Path::new), wanted.subagent)?,
        };
        let (store, own) = project::sessions(world, project, &policy.settings);
        let mut view = session.view;
        let location = {
            let (state_dir, durability) = (own.as_path(), &store.durability);
            StoreLocation { state_dir, durability, lock_wait: Duration::ZERO }
        };
        let stores = Stores { now: view.context.now, ..Stores::new(world, policy, location) };
        view.stores = Rc::new(stores.snapshots(FactSources::STORES));
        view.usage = Some(Rc::new(usage(policy, &view.context, &store)));
        // What the plan asks for is not asked here; the type of the session is learned.
        let mut evaluator = FactEvaluator::new(Rc::new(view.clone()));
        view.session_type =
            evaluation::plan(policy, &view.context, None, &mut evaluator).session_type;
        let readings = Rc::make_mut(&mut view.readings);
        for probe in policy.probes.iter() {
            let not_run = || ProbeResult::Failed(format!("probe `{}` is not run here", probe.id));
            readings.probes.entry(probe.id.clone()).or_insert_with(not_run);
        }
        let readings = Rc::clone(&view.readings);
        evaluator.change(|it| it.readings = readings);
        let excuses = evaluation::rationalization::search(policy, &view.context, &mut evaluator);
        view.excuses = Some(excuses);
        Ok(Session { view, notes: session.notes })
    }
}

/// How full the context is, whether or not a rule asks.
fn usage(policy: &Policy, context: &Context, store: &SessionStore<'_>) -> ContextUsage {
    let standing = store.peek(&context.event.session_id).state.context;
    let overrides = context.overrides.naming(&standing);
    let rules = &*policy.context;
    let gauge = evaluation::context::gauge(rules, &overrides, &context.facts);
    evaluation::context::settle(&gauge, &standing, rules, &overrides, &context.facts)
}

/// A session by its transcript alone, or one in which nothing happened yet.
fn from_file(
    world: &dyn World,
    project: &Project,
    policy: &mut Policy,
    path: Option<&Path>,
    subagent: bool,
) -> Result<Session, AppError> {
    let words = Matchers::out_of(policy);
    let mut facts = Facts::default();
    if let Some(transcript) = path {
        let places = Places { transcript, cursor: None, subagent };
        let deadline = world.elapsed().saturating_add(READING_MAX);
        let (lens, key) = (&*words.lens, policy.lens_key);
        let read = transcript::read(world, places, lens, key, deadline);
        if let Some(problem) = read.problem {
            return Err(AppError::failed(problem));
        }
        facts = read.facts;
        if !subagent {
            Reader { world, lens, key, cursors: None, deadline }.add(&mut facts, transcript);
        }
    }
    let kind = if subagent { "subagent_stop" } else { "stop" };
    let fields = json!({"transcript_path": path.map(Path::to_string_lossy),
        "cwd": project.folder.to_string_lossy()});
    let event = EventKind::find(kind)
        .and_then(|it| payload::parse(fields.to_string().as_bytes(), it).ok())
        .ok_or_else(|| AppError::failed_as("the event could not be made"))?;
    let situation = EventContext {
        gauged: true,
        event,
        facts,
        transcript_problem: None,
        recorded: false,
        interactive: true,
        supervised: false,
        project: project.root.clone(),
        remote_host: checkout::remote_host(world, &project.main),
        project_view: None,
        overrides: project::overrides(world).0,
        now: world.now(),
    };
    Ok(Session { view: situation.view(policy, &words), notes: Vec::new() })
}

/// A session by its id: its transcript to the end, the rest as at its last stop.
fn recorded_session(
    world: &dyn World,
    project: &Project,
    policy: &mut Policy,
    named: &str,
) -> Result<Session, AppError> {
    let query = EntryQuery { session: Some(named), stops_only: true, ..EntryQuery::default() };
    let found = DecisionLogs::of(world, project, Some(policy)).find(query);
    let entry = found.map(|it| it.entry).map_err(|error| {
        AppError::failed_as(format!("{error}; the path of a transcript names a session, too"))
    })?;
    let inputs = entry.read_inputs();
    let inputs = inputs.ok_or_else(|| AppError::failed_as("the record holds no inputs"))?;
    let mut notes = Vec::new();
    let view = recorded::view(world, &entry, &inputs, policy, ReadLimit::Now, &mut notes);
    let mut view = view.ok_or_else(|| AppError::failed_as(notes.join("; ")))?;
    let (store, _) = project::sessions(world, project, &policy.settings);
    let state = store.peek(&SessionId::sanitize(&entry.session_id)).state;
    view.memory = evaluation::memory(&state, &view.context.event);
    notes.push(format!("probes and preferences as at its stop of {}", entry.timestamp));
    Ok(Session { view, notes })
}
