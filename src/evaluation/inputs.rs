//! Inputs of a decision, small enough to be logged with it, so that `policyd explain` can evaluate it again.
//! Contains: conversions from an evaluation and back. Large inputs are logged as references: the transcript
//! by its position, the last message by its checksum.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::guard_of;
use super::situation::{EventContext, ExcludedFacts};
use policyd_base::id::SessionId;
use policyd_base::limits::READING_LOGGED_BYTES_MAX;
use policyd_fact_table::FactError;
use policyd_fact_table::breaker_facts::BreakersSnapshot as Breakers;
use policyd_fact_table::context::{FactView, ProbeResult};
use policyd_fact_table::cost_facts::CostSnapshot;
use policyd_fact_table::project_facts::ProjectView;
use policyd_fact_table::queue_facts::QueueSnapshot;
use policyd_fact_table::remembered_facts::MemorySnapshot;
use policyd_fact_table::signal_facts::SignalSnapshot;
use policyd_fact_table::text_facts::DiskFacts;
use policyd_facts::Facts;
use policyd_facts::cursor::Position;
use policyd_facts::event::{BackgroundTask, Event, EventKind};
use policyd_state::context::{Overrides, TierState};
use policyd_state::{BlockLimiterState, Release, SessionState};
use policyd_yaml::checksum::{checksum, hex};
use policyd_yaml::time::Timestamp;

/// Inputs of a decision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["program", "pack_hash", "transcript", "event", "interactive", "project", "memory"]))]
pub struct Inputs {
    /// Version of policyd.
    #[schemars(length(min = 1))]
    pub program: String,
    /// Hash of the pack's sources in hexadecimal digits.
    #[schemars(length(min = 1))]
    pub pack_hash: String,
    /// Directory of the pack; absent for the built-in pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pack_folder: Option<String>,
    /// Read position in the transcript.
    pub transcript: TranscriptPosition,
    /// Read positions in the transcripts of subagents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<SubagentRead>,
    /// Number of tool calls that hooks saw and the transcript lacked.
    #[serde(skip_serializing_if = "is_zero")]
    pub unseen: u64,
    /// Files and findings that were not counted as work of the agent.
    #[serde(skip_serializing_if = "ExcludedFacts::is_empty")]
    pub forgotten: ExcludedFacts,
    /// Checksum of the last message in the payload, in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_message: Option<String>,
    /// Other fields of the payload.
    pub event: PayloadFields,
    /// Whether the session was interactive.
    pub interactive: bool,
    /// Whether the session was a turn of a supervised run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub supervised: bool,
    /// Root directory of the project.
    #[schemars(length(min = 1))]
    pub project: String,
    /// Host of the project's remote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_host: Option<String>,
    /// What the disk showed of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_view: Option<ProjectView>,
    /// What checks asked about files of the project.
    #[serde(skip_serializing_if = "ProjectAnswers::is_empty")]
    pub project_files: ProjectAnswers,
    /// Settings of the context window in the environment.
    #[serde(skip_serializing_if = "Overrides::is_empty")]
    pub window: Overrides,
    /// Session type in the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forced_type: Option<String>,
    /// State of the block limiter before the decision.
    pub memory: LimiterSnapshot,
    /// Results of probes, by id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub probes: BTreeMap<String, LoggedProbeResult>,
    /// State of the circuit breakers if the pack reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    pub breakers: Option<Breakers>,
    /// State of the queues and escalations if the pack reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    pub waiting: Option<QueueSnapshot>,
    /// Pending signals if the pack reads them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signals: Option<SignalSnapshot>,
    /// What was spent that day if the pack reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<CostSnapshot>,
    /// What the rules of the pack remembered, if they read it. Named `remembered`, because `memory` is the limiter's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remembered: Option<MemorySnapshot>,
}

/// What checks asked about files of the project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProjectAnswers {
    /// Whether the project has a path or a file of a glob. `null`: it is not known.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    has: BTreeMap<String, Option<bool>>,
    /// Files whose texts were read. The texts are not logged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    texts: Vec<String>,
    /// Whether the owners of files were read. They are not logged.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    owners: bool,
}

impl ProjectAnswers {
    fn new(disk: &DiskFacts) -> Self {
        Self {
            has: disk.has.clone(),
            texts: disk.project_texts.keys().cloned().collect(),
            owners: disk.owners.is_some(),
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns what expressions read of it again.
    #[must_use]
    pub fn disk(&self) -> DiskFacts {
        let not_kept =
            |what: &str| FactError::NotRecorded(format!("what `{what}` contained is not kept"));
        let texts = self.texts.iter().map(|path| (path.clone(), Err(not_kept(path))));
        DiskFacts {
            has: self.has.clone(),
            project_texts: texts.collect(),
            owners: self.owners.then(|| Err(not_kept("CODEOWNERS"))),
            ..DiskFacts::default()
        }
    }
}

/// Read position in a transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["path", "subagent", "offset", "unfinished", "proof"]))]
pub struct TranscriptPosition {
    /// Path of the file; bytes that are not UTF-8 are replaced.
    #[schemars(length(min = 1))]
    pub path: String,
    /// Whether the transcript is a subagent's own.
    pub subagent: bool,
    /// Length of the complete lines in bytes.
    pub offset: u64,
    /// Length of the incomplete line after them in bytes.
    pub unfinished: usize,
    /// Checksum of the bytes before `offset`, in hexadecimal digits.
    #[schemars(length(min = 1))]
    pub proof: String,
}

impl TranscriptPosition {
    /// Returns the position in the transcript of an event.
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

    /// Returns the position in a subagent's transcript.
    #[must_use]
    pub fn at(path: &Path, position: &Position, unfinished: usize) -> Self {
        let proof = hex(&position.proof);
        Self { path: text(path), subagent: true, offset: position.offset, unfinished, proof }
    }
}

/// Read position in the transcript of one subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SubagentRead {
    /// Id of the subagent.
    pub agent: String,
    /// The position.
    #[serde(flatten)]
    pub read: TranscriptPosition,
}

/// Fields of the payload other than the transcript and the last message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PayloadFields {
    /// Working directory of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    /// Permission mode of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_mode: Option<String>,
    /// Type of the subagent.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_type: Option<String>,
    /// Whether the agent continued because of a block.
    stop_active: bool,
    /// Background tasks: id, kind, and status.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    background: Vec<[String; 3]>,
}

/// State of the block limiter before the decision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LimiterSnapshot {
    /// Key of the episode.
    episode: String,
    /// Blocks of the episode.
    consecutive_blocks: u32,
    /// Blocks of the session.
    total_blocks: u64,
    /// Blocks since the last clean stop.
    blocks_since_clean: u32,
    /// Stops that changed the state.
    turns: u64,
    /// Consecutive blocks without a tool call after them.
    idle_blocks: u32,
    /// Number of tool calls at the last block.
    tools_at_block: u64,
    /// Fingerprints of the blocks of the episode.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fingerprints: Vec<String>,
    /// The last release: finding, episode, and number of edits.
    #[serde(skip_serializing_if = "Option::is_none")]
    released: Option<(String, String, u64)>,
    /// Fingerprints that were reported since that release.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reported: Vec<String>,
    /// Blocks that the transcript showed at the last clean stop.
    #[serde(skip_serializing_if = "is_zero")]
    shown_at_clean_stop: u32,
    /// Beginning of the last block's reason.
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    /// Tier of the context: id, number of compactions, and position in the transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<(String, u64, u64)>,
    /// Number of API calls when the client reported that the context was cleared or compacted.
    #[serde(skip_serializing_if = "is_zero")]
    calls: u64,
    /// Number of compactions when a summary with the goal was last added to the context.
    #[serde(skip_serializing_if = "is_zero")]
    restated: u64,
    /// Model as the client named it.
    #[serde(skip_serializing_if = "String::is_empty")]
    model: String,
}

/// Logged result of a probe.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LoggedProbeResult {
    /// Exit code.
    code: i32,
    /// Answer of the probe, with masked secrets.
    #[serde(skip_serializing_if = "Value::is_null")]
    value: Value,
    /// Why the probe failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    /// Length in bytes of an answer that was too long to be logged.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
    /// Number of masked secrets in `value`.
    #[serde(skip_serializing_if = "is_zero")]
    masked: usize,
}

fn is_zero<T: Default + PartialEq>(count: &T) -> bool {
    *count == T::default()
}

impl LoggedProbeResult {
    fn new(reading: &ProbeResult, mask: impl FnOnce(&mut Value) -> usize) -> Self {
        match reading {
            ProbeResult::Failed(why) => Self { failed: Some(why.clone()), ..Self::default() },
            ProbeResult::Answer { code, value } => {
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

    fn reading(&self) -> ProbeResult {
        match &self.failed {
            Some(why) => ProbeResult::Failed(why.clone()),
            None if self.left_out > 0 => {
                ProbeResult::Failed("its answer was not logged".to_owned())
            }
            None => ProbeResult::Answer { code: self.code, value: self.value.clone() },
        }
    }
}

/// Inputs of a decision that its context lacks.
#[derive(Clone, Copy)]
pub struct DecisionMetadata<'a> {
    /// State of the session before the decision.
    pub state: &'a SessionState,
    /// Version of policyd.
    pub program: &'a str,
    /// Hash of the pack's sources.
    pub pack_hash: &'a [u8],
    /// Directory of the pack; `None` for the built-in pack.
    pub pack_folder: Option<&'a str>,
    /// Read position in the transcript.
    pub transcript: &'a TranscriptPosition,
    /// Read positions in the transcripts of subagents.
    pub subagents: &'a [SubagentRead],
    /// Files and findings that were not counted as work of the agent.
    pub forgotten: &'a ExcludedFacts,
    /// Host of the project's remote.
    pub remote_host: Option<&'a str>,
    /// Session type in the environment.
    pub forced_type: Option<&'a str>,
}

impl Inputs {
    /// Returns the inputs of an evaluation. `mask` replaces secrets and returns their number.
    #[must_use]
    pub fn new(
        view: &FactView,
        besides: DecisionMetadata<'_>,
        mask: fn(&mut Value) -> usize,
    ) -> Self {
        let (context, stores) = (&*view.context, &*view.stores);
        let event = &context.event;
        let task = |it: &BackgroundTask| [it.id.clone(), it.kind.clone(), it.status.clone()];
        let probes = &view.readings.probes;
        Self {
            program: besides.program.to_owned(),
            pack_hash: hex(besides.pack_hash),
            pack_folder: besides.pack_folder.map(str::to_owned),
            transcript: besides.transcript.clone(),
            subagents: besides.subagents.to_vec(),
            unseen: context.facts.tools.unseen,
            forgotten: besides.forgotten.clone(),
            last_message: event.last_message.as_deref().map(message_proof),
            event: PayloadFields {
                folder: event.folder.as_deref().map(text),
                permission_mode: event.permission_mode.clone(),
                agent_type: event.agent_type.clone(),
                stop_active: event.stop_active,
                background: event.background.iter().map(task).collect(),
            },
            interactive: context.interactive,
            supervised: context.supervised,
            project: text(&context.project),
            remote_host: besides.remote_host.map(str::to_owned),
            project_view: context.project_view.clone(),
            project_files: ProjectAnswers::new(&view.disk),
            window: context.overrides.clone(),
            forced_type: besides.forced_type.map(str::to_owned),
            memory: remembered(besides.state, &guard_of(besides.state, event)),
            probes: probes
                .iter()
                .map(|(id, it)| (id.clone(), LoggedProbeResult::new(it, mask)))
                .collect(),
            breakers: stores.breakers.clone(),
            waiting: stores.waiting.clone(),
            signals: stores.signals.clone(),
            costs: stores.costs.clone(),
            remembered: stores.memory.clone(),
        }
    }

    /// Returns the recorded event with its facts.
    #[must_use]
    pub fn situation(
        &self,
        whose: &DecisionSubject,
        facts: Facts,
        last_message: Option<String>,
    ) -> EventContext {
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
        EventContext {
            gauged: true,
            event,
            facts,
            transcript_problem: None,
            recorded: false,
            interactive: self.interactive,
            supervised: self.supervised,
            project: PathBuf::from(&self.project),
            remote_host: self.remote_host.clone(),
            project_view: self.project_view.clone(),
            overrides: self.window.clone(),
            now: whose.at,
        }
    }

    /// Returns the results of probes by id.
    #[must_use]
    pub fn readings(&self) -> BTreeMap<String, ProbeResult> {
        self.probes.iter().map(|(id, it)| (id.clone(), it.reading())).collect()
    }

    /// Describes results of probes that were not logged completely, one sentence each.
    #[must_use]
    pub fn lost_readings(&self) -> Vec<String> {
        let lost = |(id, it): (&String, &LoggedProbeResult)| match (it.left_out, it.masked) {
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

    /// Returns the state of the session that the decision needs.
    #[must_use]
    pub fn state(&self, whose: &DecisionSubject) -> SessionState {
        let it = &self.memory;
        let guard = BlockLimiterState {
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
                reported: it.reported.clone(),
            }),
            shown_at_clean_stop: it.shown_at_clean_stop,
            reason: it.reason.clone(),
            ..BlockLimiterState::default()
        };
        let mut state = SessionState::new(whose.session.clone());
        state.turn_count = it.turns;
        if let Some((tier, compactions, since)) = it.context.clone() {
            let (calls, model, restated) = (it.calls, it.model.clone(), it.restated);
            state.context = TierState { tier, compactions, since, calls, model, restated };
        }
        match &whose.agent {
            Some(agent) => drop(state.agents.insert(agent.clone(), guard)),
            None => state.main = guard,
        }
        state
    }
}

/// Subject and time of a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionSubject {
    /// Kind of the event.
    pub kind: EventKind,
    /// Id of the session.
    pub session: SessionId,
    /// Id of the subagent; `None` for the main agent.
    pub agent: Option<String>,
    /// Id of the prompt that the agent worked on.
    pub prompt: Option<String>,
    /// Time of the decision.
    pub at: Timestamp,
}

/// Returns a path as JSON text.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn remembered(state: &SessionState, guard: &BlockLimiterState) -> LimiterSnapshot {
    let released = guard.released.as_ref();
    let tier = &state.context;
    let known = *tier != TierState::default();
    LimiterSnapshot {
        episode: guard.episode.clone(),
        consecutive_blocks: guard.consecutive_blocks,
        total_blocks: guard.total_blocks,
        blocks_since_clean: guard.blocks_since_clean,
        turns: state.turn_count,
        idle_blocks: guard.idle_blocks,
        tools_at_block: guard.tools_at_block,
        fingerprints: guard.fingerprints.clone(),
        released: released.map(|it| (it.finding.clone(), it.episode.clone(), it.edits)),
        reported: released.map(|it| it.reported.clone()).unwrap_or_default(),
        shown_at_clean_stop: guard.shown_at_clean_stop,
        reason: guard.reason.clone(),
        context: known.then(|| (tier.tier.clone(), tier.compactions, tier.since)),
        calls: tier.calls,
        model: tier.model.clone(),
        restated: tier.restated,
    }
}

/// Returns the checksum by which a last message is found in the transcript.
#[must_use]
pub fn message_proof(text: &str) -> String {
    hex(&checksum(&[text.trim().as_bytes()]))
}
