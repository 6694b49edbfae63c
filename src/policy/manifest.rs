//! `policyd.yaml`: the manifest of a pack. It states which packs the pack extends, and the settings of policyd.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::builder::Builder;
use super::builtin;
use super::field_value::{FieldValue, words};
use super::fields::TEXTS;
use super::record::{Conversion, record, words};
use super::remote::REMOTE;
use super::shared::SharedValue;
use policyd_base::limits;
use policyd_state::block_limiter::BlockLimits;
use policyd_yaml::layered_map::LayeredMap;
use policyd_yaml::node::Node;
use policyd_yaml::shape::{Field, Kind, field};
use policyd_yaml::{Diagnostic, Level};

const COUNT: Kind = Kind::Int { min: 0, max: 1000 };

/// Settings of a pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestSettings {
    /// Whether the pack is used.
    pub enabled: bool,
    /// Whether the rules of the pack have an effect. `None`: the user decides.
    pub mode: Option<EnforcementMode>,
    /// Answer to an event if the pack cannot be evaluated.
    pub on_error: OnError,
    /// Effect of a block whose state could not be saved.
    pub when_forgotten: OnSaveFailure,
    /// Deadline of all probes of one event.
    pub deadline: Duration,
    /// Limits of consecutive blocks.
    pub guard: BlockLimits,
    /// How state is written.
    pub durability: Durability,
    /// Timeout of the lock of a session. Without the lock, nothing is blocked.
    pub lock_wait: Duration,
    /// Where state is stored.
    pub paths: Paths,
    /// Retention of sessions.
    pub sessions_max_age: Duration,
    /// Maximum number of stored sessions.
    pub sessions_max_count: usize,
    /// Voice of the messages.
    pub voice: String,
    /// Environment variables that set the session type. The first set variable decides.
    pub session_type_env: Vec<String>,
}

impl Default for ManifestSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            mode: None,
            on_error: OnError::default(),
            when_forgotten: OnSaveFailure::default(),
            deadline: limits::PROBE_TIMEOUT,
            guard: BlockLimits::default(),
            durability: Durability::default(),
            lock_wait: limits::LOCK_WAIT,
            paths: Paths::default(),
            sessions_max_age: limits::SESSIONS_MAX_AGE,
            sessions_max_count: limits::SESSIONS_MAX_COUNT,
            voice: "plain".to_owned(),
            session_type_env: Vec::new(),
        }
    }
}

/// How state is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Durability {
    /// Sync the file and its directory. Without it, a power loss can lose a block.
    pub fsync: bool,
    /// Read the file back and compare. Without it, a torn write is not detected.
    pub verify: bool,
    /// Delays between attempts. The last delay doubles if there are more attempts.
    pub retry_delays: Vec<Duration>,
    /// Number of attempts, from 1 to `SAVE_ATTEMPTS_MAX`.
    pub attempts: u32,
}

impl Default for Durability {
    /// amplihack: three attempts, with 0.1 s and 0.2 s between them, and 0.4 s before a fourth.
    fn default() -> Self {
        Self {
            fsync: true,
            verify: true,
            retry_delays: [100, 200, 400].map(Duration::from_millis).to_vec(),
            attempts: 3,
        }
    }
}

impl Durability {
    /// Returns the delay after attempt `attempt`, counted from 0.
    #[must_use]
    pub fn delay_after(&self, attempt: u32) -> Duration {
        let index = usize::try_from(attempt).unwrap_or(usize::MAX);
        if let Some(delay) = self.retry_delays.get(index) {
            return *delay;
        }
        let last = self.retry_delays.last().copied().unwrap_or_default();
        let beyond = index.saturating_sub(self.retry_delays.len()).saturating_add(1);
        let factor = 1_u32.checked_shl(u32::try_from(beyond).unwrap_or(u32::MAX));
        last.saturating_mul(factor.unwrap_or(u32::MAX))
    }
}

/// Where state is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paths {
    /// Layout of the files below the root.
    pub layout: LayoutName,
    /// Root directory, relative to the project. Empty: that of the layout.
    pub root: String,
    /// Directory of the diagnostic logs. Empty: beside the state.
    pub diagnostics: String,
}

/// Name of a layout of the stored files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LayoutName {
    /// `.policyd/sessions/<id>/…`
    #[default]
    Policyd,
    /// amplihack's `.claude/runtime/power-steering/<id>/…`
    Amplihack,
}

/// Whether rules have an effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnforcementMode {
    /// Rules are evaluated and logged as in mode `shadow`.
    Observe,
    /// Each rule has the effect of its own mode.
    #[default]
    Enforce,
}

/// Effect of a failed evaluation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnError {
    /// The failure has no effect.
    #[default]
    Allow,
    /// The failure is reported and does not block.
    Warn,
    /// The check counts as not passed.
    Block,
}

/// Effect of a block whose state could not be saved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnSaveFailure {
    /// The block is dropped: blocks that are not saved would not be limited.
    #[default]
    Allow,
    /// The block is sent.
    Block,
}

words! {
    EnforcementMode { Observe = "observe", Enforce = "enforce" }
    LayoutName { Policyd = "policyd", Amplihack = "amplihack" }
    OnError { Allow = "allow", Warn = "warn", Block = "block" }
    OnSaveFailure { Allow = "allow", Block = "block" }
}

/// Built-in sets of guards, which the manifest can disable.
const GUARD_SETS: &[Field] = &[
    set("destructive-commands", "What destroys work: `rm -rf`, `git reset --hard`, `dd`."),
    set("protected-paths", "Files that are not the agent's: policies, keys, CI, lockfiles."),
    set("secrets", "Secrets in files, prompts and commands."),
    set("git-discipline", "Main branches, skipped hooks, merges."),
    set("network-exfiltration", "Data that leaves, and code that comes in."),
    set("approve-read", "Calls that only read, approved if the user chose it."),
    set("approve-work", "The usual work in a project, approved if the user chose it."),
];

/// Returns the key of a set of guards, which is enabled by default.
const fn set(name: &'static str, doc: &'static str) -> Field {
    field(name, Kind::Bool, doc).with_default(|| Some(true.into()))
}

/// The mode of a pack, which the user decides by default.
const MODE: Conversion<Option<EnforcementMode>> =
    Conversion::reading(|node, _| EnforcementMode::from_node(node).map(Some));

record! {
    const GUARD: RecordType<ManifestSettings> = {
        max_consecutive_blocks: COUNT => guard.max_consecutive_blocks,
            "Blocks of one episode before the agent is released.";
        warn_from: COUNT => guard.warn_from, "Blocks from which the agent is warned.";
        same_failure_max: Kind::Int { min: 1, max: 1000 } => guard.same_failure_max,
            "Stops with the same finding.";
        idle_blocks_max: Kind::Int { min: 1, max: 1000 } => guard.idle_blocks_max,
            "Blocks in a row without a tool.";
    }

    const DURABILITY: RecordType<ManifestSettings> = {
        fsync: Kind::Bool => durability.fsync, "Force state to the disk.";
        verify: Kind::Bool => durability.verify, "Read state back and compare.";
        attempts: Kind::Int { min: 1, max: 20 } => durability.attempts,
            "Attempts before the fallback.";
        retry_delays: Kind::List(&Kind::Duration) => durability.retry_delays,
            "Waits between attempts; the last one doubles on.";
        lock_wait: Kind::Duration => lock_wait,
            "Longest wait for the lock of a session; without it nothing is blocked.";
    }

    const PATHS: RecordType<ManifestSettings> = {
        layout: words::<LayoutName>() => paths.layout, "Layout of the stored files.";
        root: Kind::Text => paths.root, "Root folder, relative to the project.";
        diagnostics: Kind::Text => paths.diagnostics, "Folder of the diagnostic logs.";
    }

    const SESSIONS: RecordType<ManifestSettings> = {
        max_age: Kind::Duration => sessions_max_age, "Older sessions are removed.";
        max_count: Kind::Int { min: 1, max: 100_000 } => sessions_max_count, "Sessions kept.";
    }

    pub(super) const MANIFEST: RecordType<ManifestSettings> = {
        version: Kind::Int { min: 1, max: 1 }, "Version of the pack format; 1.";
        name: Kind::Text, "Name of the pack.";
        pack_version: Kind::Text,
            "Version of the pack, such as `1.4.0`. A pack that others fetch needs one, so that an older version is \
             rejected.";
        extends [with_default(|| Some(vec![builtin::NAME].into()))]:
            Kind::List(&Kind::Either(&[Kind::Choice(&[builtin::NAME]), REMOTE.map])),
            "Packs it builds on, the lowest first: `[builtin]` by default, `[]` for none. An entry with `source` is \
             a remote pack, which `policyd pack fetch` fetches.";
        enabled: Kind::Bool => enabled, "Whether the pack judges at all.";
        mode: words::<EnforcementMode>() => mode by MODE,
            "Ceiling of all rules: `observe` logs what they would do, and nothing is blocked. Default: the user's \
             choice.";
        on_error: words::<OnError>() => on_error, "The answer when the pack cannot be evaluated.";
        when_forgotten: words::<OnSaveFailure>() => when_forgotten, "A block that was not saved.";
        deadline: Kind::Duration => deadline, "Time all probes of one event may take together.";
        voice: Kind::Text => voice, "Voice of the messages.";
        session_type_env: TEXTS => session_type_env, "Variables that force the session type.";
        guard_sets: Kind::Record(GUARD_SETS), "Built-in guards, switched off by set.";
        guard: section GUARD, "Numbers of the loop guard.";
        durability: section DURABILITY, "How state is written.";
        paths: section PATHS, "Where state is kept.";
        sessions: section SESSIONS, "How long sessions are kept.";
    }
}

impl Builder<'_> {
    /// Reads each setting of the topmost manifest that has it.
    pub(super) fn settings(&mut self, manifests: &[SharedValue<Node>]) -> ManifestSettings {
        let map: LayeredMap<'_> = manifests.iter().map(|file| &**file).collect();
        let durability = map.section("durability");
        warn_unsafe(durability.get("fsync"), "state may be lost with the power", self.diagnostics);
        warn_unsafe(durability.get("verify"), "a torn write goes unnoticed", self.diagnostics);
        let disabled = "nothing is judged: the whole pack is switched off";
        warn_unsafe(map.get("enabled"), disabled, self.diagnostics);
        if let Some(node) = map.get("when_forgotten").filter(|node| node.says("block")) {
            let message = "unsafe setting: a guard that forgets may hold the agent for ever";
            self.diagnostics.push(Diagnostic::warning(
                "unsafe-setting",
                node.span.clone(),
                message,
            ));
        }
        warn_high_cap(map.section("guard").get("max_consecutive_blocks"), self.diagnostics);
        MANIFEST.read(&map, self)
    }
}

/// Returns the deadline of probes that a pack above the built-in one sets.
pub(super) fn own_deadline(manifests: &[SharedValue<Node>]) -> Option<Duration> {
    let own = manifests.iter().filter(|it| !builtin::wrote(&it.span.source));
    own.filter_map(|it| it.get("deadline")).find_map(Node::duration)
}

/// Warns of a limit that Claude Code reaches first: it would release the agent without a message.
fn warn_high_cap(node: Option<&Node>, diagnostics: &mut Vec<Diagnostic>) {
    if let Some(node) = node.filter(|it| it.int().is_some_and(|cap| cap >= CLIENT_CAP)) {
        let message = format!("the client itself gives up after {CLIENT_CAP} blocks in a row");
        let found = Diagnostic::warning("contradictory-settings", node.span.clone(), message);
        diagnostics
            .push(found.with_help("use a lower number, so that policyd reports the release"));
    }
}

/// Number of consecutive blocks after which Claude Code 2.1.329 overrides a stop hook.
const CLIENT_CAP: i64 = 8;

/// Warns of a disabled safety.
fn warn_unsafe(node: Option<&Node>, effect: &str, diagnostics: &mut Vec<Diagnostic>) {
    if let Some(node) = node.filter(|it| it.bool() == Some(false)) {
        let message = format!("unsafe setting: {effect}");
        let found = Diagnostic::warning("unsafe-setting", node.span.clone(), message);
        diagnostics.push(Diagnostic { level: Level::Warning, ..found });
    }
}
