//! The initial state of a case: files, clock, environment, probe results, saved state.

use std::time::Duration;

use super::kinds::{COUNT, TEXTS};
use super::names::{NameKind, NameTable, check_names};
use policyd_policy::approval::ApprovalLevel;
use policyd_policy::field_value::words;
use policyd_policy::record;
use policyd_policy::record::{Conversion, entries};
use policyd_yaml::Diagnostic;
use policyd_yaml::node::Node;
use policyd_yaml::shape::Kind;
use policyd_yaml::time::Timestamp;

/// Changes of the machine before a step.
#[derive(Debug, Default)]
pub struct Given {
    /// Files by path, relative to the project.
    pub files: Vec<(String, String)>,
    /// Paths of files that are removed.
    pub removed: Vec<String>,
    /// Wall-clock time.
    pub now: Option<Timestamp>,
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// The git branch.
    pub branch: Option<String>,
    /// URL of the git remote.
    pub remote: Option<String>,
    /// Whether the git work tree is clean.
    pub tree_clean: Option<bool>,
    /// Paths that git tracks.
    pub tracked: Vec<String>,
    /// Paths with changes that are not committed.
    pub uncommitted: Vec<String>,
    /// Which permission prompts policyd answers.
    pub approvals: Option<ApprovalLevel>,
    /// Whether a user is present.
    pub interactive: Option<bool>,
    /// Probe results, by id.
    pub probes: Vec<(String, Vec<ProbeStub>)>,
    /// Saved state of the session.
    pub state: Option<StateBefore>,
    /// Names of open circuit breakers.
    pub breakers: Vec<String>,
    /// Whether writes fail.
    pub disk_full: Option<bool>,
    /// Changes of the pack.
    pub pack: PackChanges,
}

/// Saved state of a session before a step.
#[derive(Debug, Clone, Copy, Default)]
pub struct StateBefore {
    /// Blocks of the session.
    pub total_blocks: u64,
    /// Blocks since the last prompt of the user.
    pub consecutive_blocks: u32,
    /// Stops that changed the state.
    pub turns: u64,
}

/// One stubbed result of a probe: the program ends, is missing, or exceeds its time limit.
#[derive(Debug, Clone, Default)]
pub struct ProbeStub {
    /// Standard output.
    pub prints: Option<String>,
    /// Exit code.
    pub code: Option<i32>,
    /// Standard error.
    pub stderr: Option<String>,
    /// Whether the program is not installed.
    pub missing: bool,
    /// Whether the program exceeds its time limit.
    pub timeout: bool,
    /// Duration of the program.
    pub takes: Duration,
}

/// Changes of the pack in a case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackChanges {
    /// Checks and probes to enable.
    pub enable: Vec<String>,
    /// Checks, probes and guards to disable.
    pub disable: Vec<String>,
    /// Voice of the messages.
    pub voice: Option<String>,
    /// Fixed values of preferences.
    pub preferences: Vec<(String, bool)>,
}

record! {
    /// Keys under `given`.
    pub(super) const GIVEN: RecordType<Given> = {
        files: Kind::Map(&Kind::Text) => files by entries(), "Files by path, relative to the project.";
        removed: TEXTS => removed, "Paths of files that are removed.";
        now: Kind::Date => now by TIME, "The wall clock.";
        env: Kind::Map(&Kind::Text) => env by entries(), "Environment variables.";
        branch: Kind::Text => branch, "The git branch that is checked out.";
        remote: Kind::Text => remote, "URL of the git remote `origin`.";
        tree_clean: Kind::Bool => tree_clean,
            "Whether the git work tree has no changes; `false` by default.";
        tracked: TEXTS => tracked,
            "Paths that git tracks, relative to the project; none by default.";
        uncommitted: TEXTS => uncommitted,
            "Paths with changes that are not committed, relative to the project; none by default.";
        approvals: words::<ApprovalLevel>() => approvals,
            "Which permission prompts policyd answers, as in the user's `config.yaml`; `none` by default.";
        interactive: Kind::Bool => interactive, "Whether a user is present; `true` by default.";
        probes: Kind::Map(&Kind::OneOrList(&Kind::Either(&[Kind::Text, PROBE_STUB.map]))),
            "Probe results, by id. A list is used in order, and its last result repeats.";
        state: STATE_BEFORE.map => state by STATE, "Saved state of the session.";
        breakers: Kind::Map(&Kind::Choice(&["open"])) => breakers by KEYS,
            "Circuit breakers that opened just now, by name.";
        disk_full: Kind::Bool => disk_full, "Whether writes fail.";
        pack: section PACK_CHANGES, "Changes of the pack.";
    }

    /// Keys under `given.state`.
    const STATE_BEFORE: RecordType<StateBefore> = {
        total_blocks: COUNT => total_blocks, "Number of blocks in the session.";
        consecutive_blocks: COUNT => consecutive_blocks,
            "Number of blocks since the last prompt of the user.";
        turns: COUNT => turns, "Number of stops that changed the state.";
    }

    /// Keys under `given.pack`.
    const PACK_CHANGES: RecordType<Given> = {
        enable: TEXTS, "Checks and probes to enable.";
        disable: TEXTS, "Checks, probes and guards to disable.";
        voice: Kind::Text => pack.voice, "Voice of the messages.";
        preferences: Kind::Map(&Kind::Bool) => pack.preferences by entries(),
            "Fixed values of preferences.";
    }

    /// Keys of a probe result.
    const PROBE_STUB: RecordType<ProbeStub> = {
        prints: Kind::Any => prints by PRINTED,
            "Output of the program; a map or a list becomes JSON.";
        code: Kind::Int { min: 0, max: 255 } => code, "Exit code; 0 by default.";
        stderr: Kind::Text => stderr, "Standard error of the program.";
        missing: Kind::Bool => missing, "Whether the program is not installed.";
        timeout: Kind::Bool => timeout, "Whether the program exceeds its time limit.";
        takes: Kind::Duration => takes, "Duration of the program.";
    }
}

const TIME: Conversion<Option<Timestamp>> = Conversion::reading(|node, _| node.date().map(Some));

const STATE: Conversion<Option<StateBefore>> =
    Conversion::reading(|node, _| Some(Some(STATE_BEFORE.read_node(node))));

const KEYS: Conversion<Vec<String>> = Conversion::reading(|node, _| {
    let keys = node.entries()?.iter().filter_map(|(key, _)| key.text());
    Some(keys.map(str::to_owned).collect())
});

const PRINTED: Conversion<Option<String>> =
    Conversion::reading(|node, _| Some(Some(text_or_json(node))));

/// Returns the text of a scalar, or a list or a map as JSON.
pub(super) fn text_or_json(node: &Node) -> String {
    node.text().map_or_else(|| node.json().to_string(), str::to_owned)
}

/// Reads the map under `given`, whose shape is valid.
pub(super) fn read(node: &Node, known: &NameTable, findings: &mut Vec<Diagnostic>) -> Given {
    let mut given = GIVEN.read_node(node);
    let of_pack = |key: &str| node.get("pack")?.get(key);
    let kind = NameKind { noun: "consideration or probe", code: "unknown-name" };
    given.pack.enable = known.rules(of_pack("enable"), kind, &known.switched_on(), findings);
    let kind = NameKind { noun: "consideration, probe or guard", code: "unknown-name" };
    given.pack.disable = known.rules(of_pack("disable"), kind, &known.switched_off(), findings);
    let kind = NameKind { noun: "voice", code: "misspelled-name" };
    check_names(of_pack("voice"), kind, &known.voices, findings);
    check_names(of_pack("preferences"), NameKind::PREFERENCE, &known.preferences, findings);
    for (key, results) in node.get("probes").and_then(Node::entries).unwrap_or_default() {
        let id = key.text().unwrap_or_default();
        check_names(Some(key), NameKind::PROBE, &known.probe_ids(), findings);
        let is_off = known.probes.iter().any(|(name, on)| name == id && !on);
        if is_off && !given.pack.enable.iter().any(|it| it == id) {
            let message = format!("the probe `{id}` is switched off, so it does not run");
            let finding = Diagnostic::error("probe-is-off", key.span.clone(), message);
            let help = format!("switch it on for this case: `pack: {{enable: [{id}]}}`");
            findings.push(finding.with_help(help));
        }
        let stubs = results.one_or_items().iter().map(|it| ProbeStub::read(it, findings));
        given.probes.push((id.to_owned(), stubs.collect()));
    }
    check_names(node.get("breakers"), NameKind::BREAKER, &known.breakers, findings);
    given
}

impl ProbeStub {
    /// Reads a result, which can be stated as its output.
    fn read(node: &Node, findings: &mut Vec<Diagnostic>) -> Self {
        if node.text().is_some() {
            return Self { prints: node.text().map(str::to_owned), ..Self::default() };
        }
        let stub = PROBE_STUB.read_node(node);
        let ways = [stub.missing, stub.timeout, stub.prints.is_some()];
        let count = ways.iter().filter(|it| **it).count();
        if count > 1 || (count == 0 && stub.code.is_none() && stub.stderr.is_none()) {
            let message = "a probe result is exactly one of `prints`, `missing` and `timeout`";
            let finding = Diagnostic::error("unclear-reading", node.span.clone(), message);
            findings.push(finding.with_help("write `prints:`, `missing: true` or `timeout: true`"));
        }
        stub
    }
}

impl Given {
    /// Merges two states; `later` overrides.
    pub(super) fn then(mut self, later: Self) -> Self {
        self.files.extend(later.files);
        self.removed.extend(later.removed);
        self.env.extend(later.env);
        self.tracked.extend(later.tracked);
        self.uncommitted.extend(later.uncommitted);
        self.breakers.extend(later.breakers);
        self.probes.retain(|(id, _)| !later.probes.iter().any(|(other, _)| other == id));
        self.probes.extend(later.probes);
        self.pack.enable.extend(later.pack.enable);
        self.pack.disable.extend(later.pack.disable);
        self.pack.preferences.extend(later.pack.preferences);
        self.pack.voice = later.pack.voice.or(self.pack.voice);
        Self {
            now: later.now.or(self.now),
            branch: later.branch.or(self.branch),
            remote: later.remote.or(self.remote),
            tree_clean: later.tree_clean.or(self.tree_clean),
            approvals: later.approvals.or(self.approvals),
            interactive: later.interactive.or(self.interactive),
            state: later.state.or(self.state),
            disk_full: later.disk_full.or(self.disk_full),
            ..self
        }
    }
}
