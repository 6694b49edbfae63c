//! `run.yaml`: how `policyd run` supervises the command of an agent.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Expression;
use super::builder::Builder;
use super::field_value::words;
use super::fields::{OVERRIDE, enabled};
use super::layers::Layers;
use super::record::{Conversion, TEMPLATE, record, words};
use super::records;
use policyd_base::limits::RESTARTS_MAX;
use policyd_state::retry::RetryPause;
use policyd_state::run::iterations::Extension;
use policyd_state::run::{RunLimits, UnseenChanges, stuckness};
use policyd_yaml::shape::Kind;

const FILE: &str = "run.yaml";
const COUNT: Kind = Kind::Int { min: 0, max: 1_000_000 };
const PERCENT: Kind = Kind::Int { min: 1, max: 100 };
const FEW: Kind = Kind::Int { min: 1, max: 100 };
const MINUTE: Duration = Duration::from_secs(60);

/// How an agent may say that it is done.
pub const CLAIMS: &[&str] = &["signal", "structured", "exit"];

/// Settings and prompt of supervised runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunPolicy {
    /// Limits of a run.
    pub limits: RunLimits,
    /// Maximum duration of one turn.
    pub deadline: Duration,
    /// Maximum duration of one turn without output.
    pub silence: Duration,
    /// Time between the request to end a turn and its forced end.
    pub grace: Duration,
    /// Name of the circuit breaker that must permit each turn; a template over `run`. Empty: none.
    pub breaker: String,
    /// Accepted ways to claim completion, a subset of [`CLAIMS`].
    pub claims: Vec<String>,
    /// Number of runs whose files are kept.
    pub keep: usize,
    /// Parts of the prompt, in order.
    pub prompt: Vec<PromptSection>,
}

impl Default for RunPolicy {
    fn default() -> Self {
        Self {
            limits: RunLimits {
                iterations: 50,
                extension: Extension { times: 0, turns: 5 },
                restarts: 3,
                budget_usd: None,
                warn_percent: 80,
                time: None,
                idle: 3,
                aborts: 3,
                breaker_wait: 10 * MINUTE,
                stuckness: stuckness::StuckSettings::default(),
                restart_when_stuck: true,
                wait_for_human: false,
                unseen_changes: UnseenChanges::default(),
                pause: RetryPause::default(),
            },
            deadline: 60 * MINUTE,
            silence: 30 * MINUTE,
            grace: Duration::from_secs(5),
            breaker: String::new(),
            claims: vec!["signal".to_owned()],
            keep: 20,
            prompt: Vec::new(),
        }
    }
}

/// A part of the prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptSection {
    /// Id, unique in the prompt.
    pub id: String,
    /// Condition of the part, over `run`. Empty: always.
    pub when: Expression,
    /// Text of the part; a template over `run`.
    pub text: String,
}

words! {
    UnseenChanges { Continue = "continue", Human = "human", End = "end" }
}

/// Whether the run waits for the answer of a human: `wait`, else `end`.
const WAIT_FOR_HUMAN: Conversion<bool> = Conversion {
    read: |node, _| Some(node.text()? == "wait"),
    show: |waits| Some(if *waits { "wait" } else { "end" }.into()),
};

record! {
    const ITERATIONS: RecordType<RunPolicy> = {
        max: COUNT => limits.iterations, "Turns of all sessions together.";
        extend: COUNT => limits.extension.times,
            "Times a run is extended that has used them up; 0 by default.";
        extend_by: COUNT => limits.extension.turns, "Turns of one extension.";
    }

    const RESTARTS: RecordType<RunPolicy> = {
        max: Kind::Int { min: 0, max: RESTARTS_MAX as i64 } => limits.restarts,
            "Fresh sessions at most.";
        when_stuck: Kind::Bool => limits.restart_when_stuck,
            "Whether one is tried where the agent is stuck.";
    }

    const BUDGET: RecordType<RunPolicy> = {
        usd: Kind::Number { min: 0.0, max: 1e9 } => limits.budget_usd,
            "Money at most; no limit, else.";
        warn: PERCENT => limits.warn_percent, "Share of it that is worth a warning, in percent.";
    }

    const TURN: RecordType<RunPolicy> = {
        longest: Kind::Duration => deadline, "Longest time of one turn.";
        silence: Kind::Duration => silence, "Longest time without any output.";
        grace: Kind::Duration => grace, "Time it has to end after a request.";
    }

    const STUCKNESS: RecordType<RunPolicy> = {
        signs: FEW => limits.stuckness.signs, "Signs that must hold at once.";
        rounds: FEW => limits.stuckness.rounds, "Turns in a row in which they must hold.";
        window: FEW => limits.stuckness.window, "Identical turns that count as stuck.";
        lines: COUNT => limits.stuckness.lines,
            "Changed lines below which a turn changed nothing to speak of.";
        words: PERCENT => limits.stuckness.words_percent,
            "Share of the lines that were said before, in percent.";
        budget: PERCENT => limits.stuckness.budget_percent,
            "Share of the turns after which tests should pass, in percent.";
        idle: COUNT => limits.idle, "Turns in a row without any change that end it; 0 for never.";
        aborts: COUNT => limits.aborts,
            "Turns in a row of a health below 30 that end it; 0 for never.";
    }

    const SECTION: RecordType<PromptSection> = {
        id [mandatory()]: Kind::Text => id, "Name of the section.";
        when: Kind::Expression => when, "Whether it is said, over `run`; always by default.";
        text [needed()]: Kind::Template => text by TEMPLATE, "What is said, over `run`.";
        use enabled("Whether it is used; `true` by default.");
        use OVERRIDE;
    }

    pub(super) const RUN: RecordType<RunPolicy> = {
        iterations: section ITERATIONS, "How many turns it may take.";
        restarts: section RESTARTS, "How often a fresh session is begun.";
        budget: section BUDGET, "What it may cost.";
        time: Kind::Duration => limits.time,
            "Time at work at most; no limit, where it is left out.";
        turn: section TURN, "How long one turn may take.";
        stuckness: section STUCKNESS, "When it counts as stuck.";
        breaker: Kind::Template => breaker by TEMPLATE,
            "The breaker that is asked before each turn, over `run`.";
        breaker_wait: Kind::Duration => limits.breaker_wait,
            "Longest wait for it; the run ends, else.";
        on_review: Kind::Choice(&["end", "wait"]) => limits.wait_for_human by WAIT_FOR_HUMAN,
            "What it does while a human is asked.";
        unseen_changes: words::<UnseenChanges>() => limits.unseen_changes,
            "What follows if files changed, no tool call was visible, and the agent says that it \
             is done; `continue` by default.";
        claims: Kind::List(&Kind::Choice(CLAIMS)) => claims, "How an agent says that it is done.";
        keep: Kind::Int { min: 1, max: 10_000 } => keep, "Runs whose files are kept.";
        prompt: SECTION.list, "Sections of the prompt, in order.";
    }
}

impl Builder<'_> {
    /// Builds the policy of runs. `pause` comes from `failures.yaml`.
    pub(super) fn run(&mut self, layers: &Layers, pause: RetryPause) -> RunPolicy {
        let prompt = self.section(layers, FILE, "prompt", &SECTION);
        let names = records::names(FILE, "");
        let settings = self.speaking_of(names, |builder| RUN.read(&layers.top_map(FILE), builder));
        RunPolicy { limits: RunLimits { pause, ..settings.limits }, prompt, ..settings }
    }
}

impl RunPolicy {
    /// Whether an agent may claim completion in this way.
    #[must_use]
    pub fn takes_claim(&self, way: &str) -> bool {
        self.claims.iter().any(|claim| claim == way)
    }
}
