//! The inputs of a stop decision, small enough to be logged, so that `policyd explain` can evaluate
//! it again.
//!
//! Contains: the conversion from an evaluation and back. Large inputs are not copied but
//! identified: the transcript by its position, the last message by a checksum.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::guard_of;
use super::situation::{Forgotten, Situation};
use crate::checksum::{checksum, hex};
use crate::facts::Facts;
use crate::facts::cursor::Position;
use crate::facts::event::{BackgroundTask, Event, EventKind};
use crate::id::SessionId;
use crate::limits::READING_LOGGED_BYTES_MAX;
use crate::script::breaker_facts::Standing as Breakers;
use crate::script::context::{Context, Reading};
use crate::script::queue_facts::Queued;
use crate::script::signal_facts::Waiting;
use crate::state::context::{Overrides, Standing};
use crate::state::{GuardState, Release, SessionState};
use crate::time::Timestamp;

/// What a decision rested on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inputs {
    /// Version of the program.
    pub program: String,
    /// What the sources of the pack came to, in hexadecimal digits.
    pub pack_hash: String,
    /// The folder of the pack; absent for the built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pack_folder: Option<String>,
    /// How far the transcript was read.
    pub transcript: Read,
    /// How far the subagents' transcripts were read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<SubagentRead>,
    /// Tool calls that hooks saw and the transcript did not show.
    #[serde(skip_serializing_if = "is_zero")]
    pub unseen: u64,
    /// What was not counted as the agent's work.
    #[serde(skip_serializing_if = "Forgotten::is_empty")]
    pub forgotten: Forgotten,
    /// The agent's last text as the payload had it: checksum in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_message: Option<String>,
    /// The rest of the payload.
    pub event: Told,
    /// Whether a human watched.
    pub interactive: bool,
    /// The project's folder.
    pub project: String,
    /// Host of the project's remote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_host: Option<String>,
    /// What the environment said of the context's window.
    #[serde(skip_serializing_if = "Overrides::is_empty")]
    pub window: Overrides,
    /// The session type that the environment named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forced_type: Option<String>,
    /// What the loop guard remembered.
    pub memory: Remembered,
    /// What probes answered, by id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub probes: BTreeMap<String, Answered>,
    /// Where the circuit breakers stood, where the pack looks at them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breakers: Option<Breakers>,
    /// What waited, where the pack looks at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Queued>,
    /// Which signals waited, where the pack looks at them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signals: Option<Waiting>,
}

/// How far a transcript was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Read {
    /// The file; what is no text in its name is lost.
    pub path: String,
    /// Whether it is a subagent's own.
    pub subagent: bool,
    /// Bytes of its whole lines.
    pub offset: u64,
    /// Bytes of a line without its end that were read after them.
    pub unfinished: usize,
    /// Proof of the bytes before `offset`, in hexadecimal digits.
    pub proof: String,
}

impl Read {
    /// Returns the read position of an event's transcript.
    #[must_use]
    pub fn new(event: &Event, position: &Position, unfinished: usize) -> Self {
        Self {
            path: event.transcript.as_deref().map(text).unwrap_or_default(),
            subagent: event.subagent_transcript,
            offset: position.offset,
            unfinished,
            proof: hex(&position.proof),
        }
    }

    /// Returns the read position of a subagent's transcript.
    #[must_use]
    pub fn at(path: &Path, position: &Position, unfinished: usize) -> Self {
        let proof = hex(&position.proof);
        Self { path: text(path), subagent: true, offset: position.offset, unfinished, proof }
    }
}

/// How far the transcript of one subagent was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubagentRead {
    /// Id of the subagent.
    pub agent: String,
    /// How far.
    #[serde(flatten)]
    pub read: Read,
}

/// What a payload told besides the transcript and the last message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Told {
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_type: Option<String>,
    stop_active: bool,
    /// Background tasks: id, kind, status.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    background: Vec<[String; 3]>,
}

/// What the loop guard remembered before the decision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Remembered {
    episode: String,
    consecutive_blocks: u32,
    total_blocks: u64,
    blocks_since_clean: u32,
    turns: u64,
    idle_blocks: u32,
    tools_at_block: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fingerprints: Vec<String>,
    /// What was let go last: finding, episode, edits.
    #[serde(skip_serializing_if = "Option::is_none")]
    released: Option<(String, String, u64)>,
    /// Beginning of the last block's reason.
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    /// The tier that the context had reached: tier, compactions, position.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<(String, u64, u64)>,
    /// API calls when the client said that the context was emptied.
    #[serde(skip_serializing_if = "is_zero")]
    calls: u64,
    /// Compactions when a summary with the goal was given to the context.
    #[serde(skip_serializing_if = "is_zero")]
    restated: u64,
    /// The model as the client named it.
    #[serde(skip_serializing_if = "String::is_empty")]
    model: String,
}

/// What a probe answered, as far as it is logged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answered {
    code: i32,
    #[serde(skip_serializing_if = "Value::is_null")]
    value: Value,
    /// Why it could not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    /// Bytes of an answer that was too long to be logged.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
    /// Secrets in `value` that were replaced before it was logged.
    #[serde(skip_serializing_if = "is_zero")]
    masked: usize,
}

fn is_zero<T: Default + PartialEq>(count: &T) -> bool {
    *count == T::default()
}

impl Answered {
    fn new(reading: &Reading, mask: impl FnOnce(&mut Value) -> usize) -> Self {
        match reading {
            Reading::Failed(why) => Self { failed: Some(why.clone()), ..Self::default() },
            Reading::Answer { code, value } => {
                let bytes = value.to_string().len();
                if bytes > READING_LOGGED_BYTES_MAX {
                    return Self { code: *code, left_out: bytes, ..Self::default() };
                }
                let mut value = value.clone();
                let masked = mask(&mut value);
                Self { code: *code, value, masked, ..Self::default() }
            }
        }
    }

    fn reading(&self) -> Reading {
        match &self.failed {
            Some(why) => Reading::Failed(why.clone()),
            None if self.left_out > 0 => Reading::Failed("its answer was not logged".to_owned()),
            None => Reading::Answer { code: self.code, value: self.value.clone() },
        }
    }
}

/// Inputs of a decision besides its context.
#[derive(Clone, Copy)]
pub struct Besides<'a> {
    /// Saved state of the session before the decision.
    pub state: &'a SessionState,
    /// Version of policyd.
    pub program: &'a str,
    /// Hash of the pack's sources.
    pub pack_hash: &'a [u8],
    /// Directory of the pack. `None` for the built-in pack.
    pub pack_folder: Option<&'a str>,
    /// Read position of the transcript.
    pub transcript: &'a Read,
    /// Read positions of the subagents' transcripts.
    pub subagents: &'a [SubagentRead],
    /// Facts that were excluded.
    pub forgotten: &'a Forgotten,
    /// Host of the project's remote.
    pub remote_host: Option<&'a str>,
    /// Session type from the environment.
    pub forced_type: Option<&'a str>,
}

impl Inputs {
    /// Collects the inputs of an evaluation. `mask` replaces secrets and returns their number.
    #[must_use]
    pub fn new(context: &Context, besides: Besides<'_>, mask: fn(&mut Value) -> usize) -> Self {
        let event = &context.event;
        let task = |it: &BackgroundTask| [it.id.clone(), it.kind.clone(), it.status.clone()];
        let learned = context.learned.borrow();
        let probes = &learned.probes;
        Self {
            program: besides.program.to_owned(),
            pack_hash: hex(besides.pack_hash),
            pack_folder: besides.pack_folder.map(str::to_owned),
            transcript: besides.transcript.clone(),
            subagents: besides.subagents.to_vec(),
            unseen: context.facts.tools.unseen,
            forgotten: besides.forgotten.clone(),
            last_message: event.last_message.as_deref().map(message_proof),
            event: Told {
                folder: event.folder.as_deref().map(text),
                permission_mode: event.permission_mode.clone(),
                agent_type: event.agent_type.clone(),
                stop_active: event.stop_active,
                background: event.background.iter().map(task).collect(),
            },
            interactive: context.interactive,
            project: text(&context.project),
            remote_host: besides.remote_host.map(str::to_owned),
            window: context.overrides.clone(),
            forced_type: besides.forced_type.map(str::to_owned),
            memory: remembered(besides.state, &guard_of(besides.state, event)),
            probes: probes.iter().map(|(id, it)| (id.clone(), Answered::new(it, mask))).collect(),
            breakers: learned.breakers.clone(),
            waiting: learned.waiting.clone(),
            signals: learned.signals.clone(),
        }
    }

    /// Builds the event again, with its facts. No probe has run yet.
    #[must_use]
    pub fn situation(
        &self,
        whose: &Whose,
        facts: Facts,
        last_message: Option<String>,
    ) -> Situation {
        let task = |[id, kind, status]: &[String; 3]| BackgroundTask {
            id: id.clone(),
            kind: kind.clone(),
            status: status.clone(),
            description: String::new(),
        };
        let path = &self.transcript.path;
        let event = Event {
            said_kind: Some(whose.kind),
            agent_id: whose.agent.clone(),
            agent_type: self.event.agent_type.clone(),
            prompt_id: whose.prompt.clone(),
            transcript: (!path.is_empty()).then(|| PathBuf::from(path)),
            subagent_transcript: self.transcript.subagent,
            folder: self.event.folder.as_ref().map(PathBuf::from),
            permission_mode: self.event.permission_mode.clone(),
            stop_active: self.event.stop_active,
            last_message,
            background: self.event.background.iter().map(task).collect(),
            ..Event::of(whose.kind, whose.session.clone())
        };
        Situation {
            gauged: true,
            event,
            facts,
            transcript_problem: None,
            recorded: false,
            interactive: self.interactive,
            project: PathBuf::from(&self.project),
            remote_host: self.remote_host.clone(),
            overrides: self.window.clone(),
            now: whose.at,
        }
    }

    /// Returns the logged results of probes.
    #[must_use]
    pub fn readings(&self) -> BTreeMap<String, Reading> {
        self.probes.iter().map(|(id, it)| (id.clone(), it.reading())).collect()
    }

    /// Lists the missing results of probes, one sentence each.
    #[must_use]
    pub fn lost_readings(&self) -> Vec<String> {
        let lost = |(id, it): (&String, &Answered)| match (it.left_out, it.masked) {
            (0, 0) => None,
            (0, masked) => {
                Some(format!("secrets in the result of probe `{id}` masked in the log: {masked}"))
            }
            (bytes, _) => Some(format!(
                "the answer of probe `{id}` was too long to be logged ({bytes} bytes)"
            )),
        };
        self.probes.iter().filter_map(lost).collect()
    }

    /// Returns the saved state of the session, as far as the decision needs it.
    #[must_use]
    pub fn state(&self, whose: &Whose) -> SessionState {
        let it = &self.memory;
        let guard = GuardState {
            episode: it.episode.clone(),
            consecutive_blocks: it.consecutive_blocks,
            total_blocks: it.total_blocks,
            blocks_since_clean: it.blocks_since_clean,
            fingerprints: it.fingerprints.clone(),
            idle_blocks: it.idle_blocks,
            tools_at_block: it.tools_at_block,
            released: it.released.clone().map(|(finding, episode, edits)| Release {
                finding,
                episode,
                edits,
                reason: String::new(),
            }),
            reason: it.reason.clone(),
            ..GuardState::default()
        };
        let mut state = SessionState::new(whose.session.clone());
        state.turn_count = it.turns;
        if let Some((tier, compactions, since)) = it.context.clone() {
            let (calls, model, restated) = (it.calls, it.model.clone(), it.restated);
            state.context = Standing { tier, compactions, since, calls, model, restated };
        }
        match &whose.agent {
            Some(agent) => drop(state.agents.insert(agent.clone(), guard)),
            None => state.main = guard,
        }
        state
    }
}

/// Session and time of a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Whose {
    pub kind: EventKind,
    pub session: SessionId,
    /// The subagent, if any.
    pub agent: Option<String>,
    /// The prompt that the agent worked on.
    pub prompt: Option<String>,
    /// Wall-clock time.
    pub at: Timestamp,
}

/// Converts a path to text for JSON.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn remembered(state: &SessionState, guard: &GuardState) -> Remembered {
    let released = guard.released.as_ref();
    let tier = &state.context;
    let known = *tier != Standing::default();
    Remembered {
        episode: guard.episode.clone(),
        consecutive_blocks: guard.consecutive_blocks,
        total_blocks: guard.total_blocks,
        blocks_since_clean: guard.blocks_since_clean,
        turns: state.turn_count,
        idle_blocks: guard.idle_blocks,
        tools_at_block: guard.tools_at_block,
        fingerprints: guard.fingerprints.clone(),
        released: released.map(|it| (it.finding.clone(), it.episode.clone(), it.edits)),
        reason: guard.reason.clone(),
        context: known.then(|| (tier.tier.clone(), tier.compactions, tier.since)),
        calls: tier.calls,
        model: tier.model.clone(),
        restated: tier.restated,
    }
}

/// Returns a checksum of a last message, to find the message in the transcript again.
#[must_use]
pub fn message_proof(text: &str) -> String {
    hex(&checksum(&[text.trim().as_bytes()]))
}
