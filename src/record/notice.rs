//! Entries of the decision log beside decisions: the user turned policyd off or on, a run ended, a human is
//! needed, a breaker opened, a task became a dead letter.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::decision_log::{ENTRY_VERSION, Entry, entry_id};
use super::mask::mask;
use policyd_base::id::SessionId;
use policyd_base::limits::NOTICE_CHARS_MAX;
use policyd_base::text::counted;
use policyd_evaluation::message::{cut, in_one_line};
use policyd_state::approval::BlockedCall;
use policyd_state::breaker::{Breaker, BreakerPhase};
use policyd_state::dead_letter::Task;
use policyd_state::escalation::Escalation;
use policyd_state::run::budget::TurnCost;
use policyd_state::run::{Run, RunPhase, RunStatus, RunTotals};
use policyd_yaml::time::Timestamp;

/// What an entry reports beside decisions. Its name is the `event` of the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeKind {
    /// A user changed what policyd does.
    Switch(SwitchKind),
    /// A supervised run ended.
    RunEnd,
    /// A human was asked for a decision.
    Escalation,
    /// A signal asks a human.
    SignalRequest,
    /// A blocked tool call waits for a human on any host of the shared store.
    CallRequest,
    /// A closed breaker began to reject calls.
    BreakerOpen,
    /// A breaker that was open permits a trial call, opened again, or closed.
    BreakerChange,
    /// A task entered the dead-letter queue.
    DeadLetter,
}

/// How a user changed what policyd does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SwitchKind {
    /// policyd is paused.
    Pause,
    /// A pause ended.
    Resume,
    /// policyd is disabled.
    Disable,
    /// policyd is enabled.
    Enable,
    /// Switch files are honored, or not anymore.
    Trust,
    /// Rules enforce.
    Enforce,
    /// Rules observe.
    Observe,
    /// A rule or a call may pass.
    Allow,
    /// What was allowed is revoked.
    Revoke,
    /// A rule is disabled, softened, or enforced again.
    Rule,
    /// A human answered what waited.
    Answer,
    /// policyd answers other permission prompts than before.
    Approvals,
    /// The shared store refused a change that this host made.
    Refusal,
}

impl NoticeKind {
    /// Every kind.
    pub const ALL: [Self; 20] = [
        Self::Switch(SwitchKind::Pause),
        Self::Switch(SwitchKind::Resume),
        Self::Switch(SwitchKind::Disable),
        Self::Switch(SwitchKind::Enable),
        Self::Switch(SwitchKind::Trust),
        Self::Switch(SwitchKind::Enforce),
        Self::Switch(SwitchKind::Observe),
        Self::Switch(SwitchKind::Allow),
        Self::Switch(SwitchKind::Revoke),
        Self::Switch(SwitchKind::Rule),
        Self::Switch(SwitchKind::Answer),
        Self::Switch(SwitchKind::Approvals),
        Self::Switch(SwitchKind::Refusal),
        Self::RunEnd,
        Self::Escalation,
        Self::SignalRequest,
        Self::CallRequest,
        Self::BreakerOpen,
        Self::BreakerChange,
        Self::DeadLetter,
    ];

    /// Returns the `event` of its entries.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Switch(SwitchKind::Pause) => "pause",
            Self::Switch(SwitchKind::Resume) => "resume",
            Self::Switch(SwitchKind::Disable) => "disable",
            Self::Switch(SwitchKind::Enable) => "enable",
            Self::Switch(SwitchKind::Trust) => "trust",
            Self::Switch(SwitchKind::Enforce) => "enforce",
            Self::Switch(SwitchKind::Observe) => "observe",
            Self::Switch(SwitchKind::Allow) => "allow",
            Self::Switch(SwitchKind::Revoke) => "revoke",
            Self::Switch(SwitchKind::Rule) => "rule",
            Self::Switch(SwitchKind::Answer) => "answer",
            Self::Switch(SwitchKind::Approvals) => "approvals",
            Self::Switch(SwitchKind::Refusal) => "refusal",
            Self::RunEnd => "run_end",
            Self::Escalation => "escalation",
            Self::SignalRequest => "signal_request",
            Self::CallRequest => "call_request",
            Self::BreakerOpen => "breaker_open",
            Self::BreakerChange => "breaker_change",
            Self::DeadLetter => "dead_letter",
        }
    }

    /// Returns the noun of a thing that such a notice is about.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::RunEnd => "ended run",
            Self::Escalation | Self::SignalRequest => "question",
            Self::CallRequest => "blocked call",
            Self::BreakerOpen | Self::BreakerChange => "breaker",
            Self::DeadLetter => "dead letter",
            Self::Switch(_) => "switch",
        }
    }

    /// Returns the kind of an entry by its `event`. `None` for a decision.
    #[must_use]
    pub fn find(event: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == event)
    }

    /// Returns how much a notice of this kind matters to a human.
    #[must_use]
    pub fn severity(self, outcome: &str) -> NoticeSeverity {
        match self {
            Self::RunEnd => match RunStatus::find(outcome) {
                Some(RunStatus::Complete | RunStatus::Stopped | RunStatus::Interrupted) => {
                    NoticeSeverity::Low
                }
                Some(RunStatus::HumanNeeded | RunStatus::Unverified | RunStatus::DeadLetter) => {
                    NoticeSeverity::High
                }
                Some(_) | None => NoticeSeverity::Medium,
            },
            Self::Escalation => NoticeSeverity::find(outcome).unwrap_or(NoticeSeverity::High),
            Self::SignalRequest => NoticeSeverity::High,
            Self::CallRequest
            | Self::BreakerOpen
            | Self::DeadLetter
            | Self::Switch(SwitchKind::Disable) => NoticeSeverity::Medium,
            Self::BreakerChange | Self::Switch(_) => NoticeSeverity::Low,
        }
    }
}

/// How much something matters to a human.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeSeverity {
    /// Worth knowing.
    Low,
    /// Worth a look.
    Medium,
    /// Work waits.
    High,
    /// Damage is possible.
    Critical,
}

impl NoticeSeverity {
    /// Every severity, the lowest first.
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    /// Returns the stored name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }

    /// Returns the severity with a stored name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }
}

/// What happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["subject", "text"]))]
pub struct Notice {
    /// Id of the run, the escalation, the signal, the request, or the task; name of the breaker.
    pub subject: String,
    /// How the run ended, severity of the escalation, rule by which the task entered the queue, or new state of the
    /// breaker: `open`, `half_open`, or `closed`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// What happened, in one line.
    pub text: String,
    /// The run that ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<LoggedRun>,
}

/// A supervised run that ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LoggedRun {
    /// Goal of the run, in one line.
    pub goal: String,
    /// Program of the agent.
    pub program: String,
    /// Start of the run.
    pub started: Timestamp,
    /// How often the run was resumed after it had ended.
    pub resumes: u32,
    /// Time of the last resume.
    pub resumed: Option<Timestamp>,
    /// Turns of the run since its beginning.
    pub turns: u32,
    /// Restarts of the run since its beginning.
    pub restarts: u32,
    /// Usage of the run since its beginning.
    #[serde(flatten)]
    pub usage: LoggedUsage,
    /// The part of the usage that the last end of the run reported, if the run was resumed since.
    pub reported: LoggedUsage,
}

/// Usage of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LoggedUsage {
    /// Duration of all turns in milliseconds.
    pub worked_ms: u64,
    /// Plain input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens that the provider read from its cache or wrote to it.
    pub cached_tokens: u64,
    /// Cost in USD.
    #[schemars(range(min = -1e9, max = 1e9))]
    pub cost_usd: f64,
    /// Turns of unknown cost. `cost_usd` does not contain them.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced_turns: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl LoggedUsage {
    fn of(totals: &RunTotals) -> Self {
        let RunTotals { spend, worked_ms, unpriced } = totals;
        Self {
            worked_ms: *worked_ms,
            input_tokens: spend.input,
            output_tokens: spend.output,
            cached_tokens: spend.cache_read.saturating_add(spend.cache_creation),
            cost_usd: spend.cost_usd,
            unpriced_turns: *unpriced,
        }
    }

    /// Returns the cost.
    #[must_use]
    pub const fn cost(&self) -> TurnCost {
        TurnCost { known_usd: self.cost_usd, unpriced: self.unpriced_turns }
    }

    /// Returns the sum of all kinds of tokens.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens).saturating_add(self.cached_tokens)
    }
}

impl LoggedRun {
    /// Returns the usage that no earlier entry reported. The sum over all entries of a run is its usage.
    #[must_use]
    pub fn unreported(&self) -> LoggedUsage {
        let Self { usage, reported, .. } = self;
        LoggedUsage {
            worked_ms: usage.worked_ms.saturating_sub(reported.worked_ms),
            input_tokens: usage.input_tokens.saturating_sub(reported.input_tokens),
            output_tokens: usage.output_tokens.saturating_sub(reported.output_tokens),
            cached_tokens: usage.cached_tokens.saturating_sub(reported.cached_tokens),
            cost_usd: usage.cost_usd - reported.cost_usd,
            unpriced_turns: usage.unpriced_turns.saturating_sub(reported.unpriced_turns),
        }
    }
}

impl Notice {
    /// Returns the notice of a run that ended. `None` for a run that goes on.
    #[must_use]
    pub fn of_run(run: &Run) -> Option<Self> {
        let RunPhase::Over { status, why } = &run.phase else { return None };
        let program = run.command.first().map(String::as_str).unwrap_or_default();
        let logged = LoggedRun {
            goal: shown(&run.goal),
            program: program.rsplit(['/', '\\']).next().unwrap_or_default().to_owned(),
            started: Timestamp::from_millis(run.started_ms),
            resumes: run.resumes,
            resumed: run.resumed_ms.map(Timestamp::from_millis),
            turns: run.iteration,
            restarts: run.restarts,
            usage: LoggedUsage::of(&run.totals()),
            reported: LoggedUsage::of(&run.at_last_end),
        };
        let text = format!(
            "{}: {} ({}, {})",
            logged.goal,
            shown(why),
            counted(u64::from(logged.turns), "turn"),
            logged.usage.cost().text_with_unit()
        );
        let (subject, outcome) = (run.id.clone(), status.as_str().to_owned());
        Some(Self { subject, outcome, text, run: Some(logged) })
    }

    /// Returns the notice of an escalation that was opened.
    #[must_use]
    pub fn of_escalation(it: &Escalation) -> Self {
        let text = shown(&format!("{}: {}", it.title, it.reason));
        Self { subject: it.id.clone(), outcome: it.severity.clone(), text, run: None }
    }

    /// Returns the notice of a signal that asks a human.
    #[must_use]
    pub fn of_signal(id: &str, name: &str, message: &str) -> Self {
        let text = if message.is_empty() { name.to_owned() } else { format!("{name}: {message}") };
        Self { subject: id.to_owned(), outcome: String::new(), text: shown(&text), run: None }
    }

    /// Returns the notice of a blocked call that waits for a human.
    #[must_use]
    pub fn of_call_request(id: &str, call: &BlockedCall) -> Self {
        let text = format!("{} `{}` (blocked by {})", call.tool, call.input, call.rules.join(", "));
        Self { subject: id.to_owned(), outcome: String::new(), text: shown(&text), run: None }
    }

    /// Returns the notice of a task that entered the dead-letter queue by a rule.
    #[must_use]
    pub fn of_dead_letter(task: &Task, rule: &str) -> Self {
        let error = task.attempts.last().map(|it| it.error.as_str()).unwrap_or_default();
        let parts = [task.title.as_str(), error].into_iter().filter(|it| !it.is_empty());
        let text = shown(&parts.collect::<Vec<_>>().join(": "));
        Self { subject: task.id.clone(), outcome: rule.to_owned(), text, run: None }
    }

    /// Returns the notice of a breaker that changed its state, and its kind.
    #[must_use]
    pub fn of_breaker(key: &str, from: BreakerPhase, now: &Breaker) -> (NoticeKind, Self) {
        let (kind, outcome) = match (from, now.phase) {
            (BreakerPhase::Closed, BreakerPhase::Open) => (NoticeKind::BreakerOpen, String::new()),
            (_, phase) => (NoticeKind::BreakerChange, phase.as_str().to_ascii_lowercase()),
        };
        let why = match now.phase {
            BreakerPhase::Open => now.forced.as_ref().unwrap_or(&now.last_error).as_str(),
            BreakerPhase::HalfOpen => "a trial call is permitted",
            BreakerPhase::Closed if now.recovered_at.is_some() => "the trial calls succeeded",
            BreakerPhase::Closed => "a user reset it",
        };
        let text = if why.is_empty() { "it rejects calls".to_owned() } else { shown(why) };
        (kind, Self { subject: shown(key), outcome, text, run: None })
    }
}

/// Returns a text on one line, secrets masked, cut.
#[must_use]
pub fn shown(text: &str) -> String {
    cut(&in_one_line(&mask(text).0), NOTICE_CHARS_MAX)
}

/// The entry of a notice.
#[must_use]
pub fn notice_entry(now: Timestamp, kind: NoticeKind, notice: Notice) -> Json {
    let timestamp = now.to_string();
    let entry = Entry {
        version: ENTRY_VERSION,
        id: entry_id(&[&timestamp, &notice.subject, kind.name()]),
        timestamp,
        event: kind.name().to_owned(),
        decision: "none".to_owned(),
        notice: Some(notice),
        ..Entry::default()
    };
    entry.to_json()
}

/// What a human decided about something that waited.
#[derive(Debug, Clone, Copy)]
pub struct LoggedAnswer<'a> {
    /// What was done with it, such as `approve`.
    pub verb: &'a str,
    /// What waited, as the inbox names it.
    pub kind: &'a str,
    pub id: &'a str,
    /// What it is about, and what the human added. Empty texts are left out.
    pub texts: &'a [&'a str],
}

/// The entry of a human's answer: `approve question e-1: Use v2?: yes, but later`.
#[must_use]
pub fn answer_entry(now: Timestamp, answer: &LoggedAnswer<'_>, by: String) -> Json {
    let LoggedAnswer { verb, kind, id, texts } = answer;
    let texts = texts.iter().map(|it| it.trim()).filter(|it| !it.is_empty());
    let text = texts.fold(format!("{verb} {kind} {id}"), |text, it| format!("{text}: {it}"));
    switch_entry(now, SwitchKind::Answer, None, mask(&text).0.into_owned(), by)
}

/// The entry of a user who turns policyd off or on.
#[must_use]
pub fn switch_entry(
    now: Timestamp,
    kind: SwitchKind,
    session: Option<&SessionId>,
    text: String,
    by: String,
) -> Json {
    let (timestamp, session) = (now.to_string(), session.map(ToString::to_string));
    let session_id = session.unwrap_or_default();
    let kind = NoticeKind::Switch(kind).name();
    let entry = Entry {
        version: ENTRY_VERSION,
        id: entry_id(&[&timestamp, &session_id, kind]),
        timestamp,
        event: kind.to_owned(),
        session_id,
        decision: "none".to_owned(),
        no_opinion: Some(text),
        by: Some(by),
        ..Entry::default()
    };
    entry.to_json()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_goes_on_has_no_notice_and_one_that_ended_has_its_numbers() {
        let command = ["/usr/bin/agent".to_owned(), "-p".to_owned()];
        let mut run = Run::new("r1", "Fix it\nnow", &command, Timestamp::from_millis(1_000));
        assert_eq!(Notice::of_run(&run), None);
        let why = "PGPASSWORD=hunter2 is asked for".to_owned();
        run.phase = RunPhase::Over { status: RunStatus::HumanNeeded, why };
        (run.iteration, run.spend.cost_usd, run.spend.input) = (3, 1.5, 70);
        let notice = Notice::of_run(&run).unwrap();
        assert!(!notice.text.contains("hunter2") && !notice.text.contains('\n'), "{notice:?}");
        assert_eq!((notice.subject.as_str(), notice.outcome.as_str()), ("r1", "human_needed"));
        let entry = notice_entry(Timestamp::from_millis(2_000), NoticeKind::RunEnd, notice);
        let read = Entry::parse(entry.to_string().as_bytes()).unwrap();
        let logged = read.notice.unwrap().run.unwrap();
        assert_eq!(
            (logged.program.as_str(), logged.turns, logged.usage.input_tokens),
            ("agent", 3, 70)
        );
        assert_eq!(read.event, "run_end");
    }

    #[test]
    fn each_kind_has_one_name() {
        for kind in NoticeKind::ALL {
            assert_eq!(NoticeKind::find(kind.name()), Some(kind));
            assert_eq!(policyd_facts::event::EventKind::find(kind.name()), None, "{kind:?}");
        }
        assert_eq!(NoticeKind::find("stop"), None);
        assert_eq!(NoticeKind::RunEnd.severity("human_needed"), NoticeSeverity::High);
        assert_eq!(NoticeKind::RunEnd.severity("complete"), NoticeSeverity::Low);
        assert_eq!(NoticeKind::Escalation.severity("critical"), NoticeSeverity::Critical);
    }
}
