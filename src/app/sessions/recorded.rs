//! A session as it was when an entry of the decision log was written.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use crate::packs::{self, InvalidPack};
use crate::workspace::gate_status::GateStatus;
use crate::workspace::project::{self, Project};
use policyd_evaluation::inputs::Inputs;
use policyd_evaluation::situation::Matchers;
use policyd_fact_table::context::{FactView, Readings, StoreSnapshots};
use policyd_facts::Facts;
use policyd_policy::Policy;
use policyd_record::decision_log::Entry;
use policyd_store::decision_log::DECISION_LOG;
use policyd_store::subagents::Reader;
use policyd_store::transcript::{self, TranscriptError};
use policyd_world::World;

/// Time limit for reading a transcript again.
pub const READING_MAX: Duration = Duration::from_secs(600);

/// The decision logs of the project: below its state directory, and where `policy` keeps its own.
pub fn log_paths(world: &dyn World, project: &Project, policy: Option<&Policy>) -> Vec<PathBuf> {
    let own = policy.map(|it| project::sessions(world, project, &it.settings).1);
    let roots = [project.state.clone()].into_iter().chain(own);
    let mut logs: Vec<PathBuf> = roots.map(|it| it.join(DECISION_LOG)).collect();
    logs.dedup();
    logs
}

/// The pack as it is now, with the project's switches.
///
/// # Errors
/// [`InvalidPack`] if the pack cannot be loaded.
pub fn policy(
    world: &dyn World,
    project: &Project,
    found: &packs::FoundPack,
) -> Result<Policy, InvalidPack> {
    let mut policy = packs::policy(world, found)?;
    if let Some(config) = GateStatus::read(world, project, None, world.now()).config {
        drop(config.apply(&mut policy));
    }
    Ok(policy)
}

/// How far a transcript is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadLimit {
    /// As far as it was then.
    Then,
    /// To its end.
    Now,
}

/// Rebuilds the facts that expressions read when an entry was written. Each difference from then is added to `lost`.
/// `None` if the facts are unavailable.
pub fn view(
    world: &dyn World,
    entry: &Entry,
    inputs: &Inputs,
    policy: &mut Policy,
    until: ReadLimit,
    lost: &mut Vec<String>,
) -> Option<FactView> {
    let Some(whose) = entry.whose() else {
        lost.push("the record does not say whose decision it was".to_owned());
        return None;
    };
    let words = Matchers::out_of(policy);
    let facts = facts(world, inputs, &words, policy, until);
    let facts = facts.map_err(|error| lost.push(error.to_string())).ok()?;
    let said =
        inputs.last_message.as_ref().filter(|_| until == ReadLimit::Then).and_then(|proof| {
            let deadline = world.elapsed().saturating_add(READING_MAX);
            let said =
                transcript::find_said(world, Path::new(&inputs.transcript.path), proof, deadline);
            if said.is_none() {
                let text = "what the agent said last is not in the transcript; its last text there \
                        was taken instead";
                lost.push(text.to_owned());
            }
            said
        });
    let mut situation = inputs.situation(&whose, facts, said);
    if until == ReadLimit::Now {
        situation.now = world.now();
    }
    lost.extend(inputs.lost_readings());
    Some(FactView {
        stores: Rc::new(StoreSnapshots {
            breakers: inputs.breakers.clone(),
            waiting: inputs.waiting.clone(),
            signals: inputs.signals.clone(),
            costs: inputs.costs.clone(),
            memory: inputs.remembered.clone(),
        }),
        readings: Rc::new(Readings {
            preferences: entry.preferences.clone().unwrap_or_default(),
            probes: inputs.readings(),
        }),
        disk: Rc::new(inputs.project_files.disk()),
        session_type: entry.session_type.clone().unwrap_or_default(),
        ..situation.view(policy, &words)
    })
}

fn facts(
    world: &dyn World,
    inputs: &Inputs,
    words: &Matchers,
    policy: &Policy,
    until: ReadLimit,
) -> Result<Facts, TranscriptError> {
    let deadline = world.elapsed().saturating_add(READING_MAX);
    let read = &inputs.transcript;
    let (lens, key) = (&*words.lens, policy.lens_key);
    let reader = Reader { world, lens, key, cursors: None, deadline };
    match until {
        ReadLimit::Then => {
            let mut facts = transcript::read_again(world, read, &words.lens, deadline)?;
            reader.add_again(&mut facts, &inputs.subagents)?;
            facts.tools.unseen = inputs.unseen;
            inputs.forgotten.again(&mut facts, &words.lens);
            Ok(facts)
        }
        ReadLimit::Now => {
            let places = transcript::Places {
                transcript: Path::new(&read.path),
                cursor: None,
                subagent: read.subagent,
            };
            let mut now = transcript::read(world, places, &words.lens, policy.lens_key, deadline);
            if !read.subagent {
                reader.add(&mut now.facts, Path::new(&read.path));
            }
            now.problem.map_or(Ok(now.facts), Err)
        }
    }
}
