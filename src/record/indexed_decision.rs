//! An entry of the decision log as a row of the index: what lists, filters, and counts need of it.

use super::activity::{Activity, StopOutcomeWord};
use super::decision_log::Entry;
use super::notice::NoticeKind;
use super::rule_result::RuleResult;
use policyd_base::limits::INDEX_DETAIL_CHARS_MAX;
use policyd_evaluation::message::cut;
use policyd_yaml::time::Timestamp;

/// Outcome of a decision, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DecisionOutcome {
    /// A stop was blocked.
    BlockedStop,
    /// The block limit let the agent stop.
    ReleasedStop,
    /// A stop passed.
    PassedStop,
    /// A tool call or another event was blocked.
    BlockedCall,
    /// The work of the agent was ended.
    Halted,
    /// The user was asked.
    Asked,
    /// A rule fired and did not block.
    Noted,
    /// policyd approved a call at the permission prompt of the client.
    ApprovedCall,
    /// The user answered a permission prompt.
    LeftPrompt,
    /// A user turned policyd or a rule off or on.
    Switched,
    /// Nothing was evaluated.
    NotEvaluated,
    /// A supervised run ended.
    RunEnded,
    /// A human was asked for a decision.
    Escalated,
    /// A blocked tool call waits for a human.
    CallRequested,
    /// A breaker began to reject calls.
    BreakerOpened,
    /// A breaker permits a trial call.
    BreakerHalfOpened,
    /// A breaker permits calls again.
    BreakerClosed,
    /// A task entered the dead-letter queue.
    DeadLettered,
}

impl DecisionOutcome {
    /// Every outcome, in the order of a menu.
    pub const ALL: [Self; 18] = [
        Self::BlockedStop,
        Self::ReleasedStop,
        Self::PassedStop,
        Self::BlockedCall,
        Self::Halted,
        Self::Asked,
        Self::Noted,
        Self::ApprovedCall,
        Self::LeftPrompt,
        Self::Switched,
        Self::NotEvaluated,
        Self::RunEnded,
        Self::Escalated,
        Self::CallRequested,
        Self::BreakerOpened,
        Self::BreakerHalfOpened,
        Self::BreakerClosed,
        Self::DeadLettered,
    ];

    /// Returns the name in addresses of pages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BlockedStop => "blocked_stop",
            Self::ReleasedStop => "released_stop",
            Self::PassedStop => "passed_stop",
            Self::BlockedCall => "blocked_call",
            Self::Halted => "halted",
            Self::Asked => "asked",
            Self::Noted => "noted",
            Self::ApprovedCall => "approved_call",
            Self::LeftPrompt => "left_prompt",
            Self::Switched => "switched",
            Self::NotEvaluated => "not_evaluated",
            Self::RunEnded => "run_ended",
            Self::Escalated => "escalated",
            Self::CallRequested => "call_requested",
            Self::BreakerOpened => "breaker_opened",
            Self::BreakerHalfOpened => "breaker_half_opened",
            Self::BreakerClosed => "breaker_closed",
            Self::DeadLettered => "dead_lettered",
        }
    }

    /// Returns the outcome of a name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }

    fn of_notice(kind: NoticeKind, outcome: &str) -> Self {
        match kind {
            NoticeKind::RunEnd => Self::RunEnded,
            NoticeKind::Escalation | NoticeKind::SignalRequest => Self::Escalated,
            NoticeKind::CallRequest => Self::CallRequested,
            NoticeKind::BreakerChange if outcome == "half_open" => Self::BreakerHalfOpened,
            NoticeKind::BreakerChange if outcome == "closed" => Self::BreakerClosed,
            NoticeKind::BreakerOpen | NoticeKind::BreakerChange => Self::BreakerOpened,
            NoticeKind::DeadLetter => Self::DeadLettered,
            NoticeKind::Switch(_) => Self::Switched,
        }
    }

    fn of(entry: &Entry) -> Self {
        if let Some(kind) = NoticeKind::find(&entry.event) {
            let outcome = entry.notice.as_ref().map(|it| it.outcome.as_str()).unwrap_or_default();
            return Self::of_notice(kind, outcome);
        }
        match entry.decision.as_str() {
            _ if entry.is_evaluated_stop() => match StopOutcomeWord::of(entry) {
                StopOutcomeWord::Blocked => Self::BlockedStop,
                StopOutcomeWord::Released => Self::ReleasedStop,
                StopOutcomeWord::Passed => Self::PassedStop,
            },
            "block" => Self::BlockedCall,
            "halt" => Self::Halted,
            "ask" => Self::Asked,
            _ if entry.no_opinion.is_some() => Self::NotEvaluated,
            _ if entry.approved_call() => Self::ApprovedCall,
            _ if entry.left_prompt() => Self::LeftPrompt,
            _ => Self::Noted,
        }
    }
}

/// A row of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedDecision {
    /// Time of the decision.
    pub at: Timestamp,
    /// Id of the entry.
    pub id: String,
    /// Id of the session.
    pub session: String,
    /// Neutral name of the event.
    pub event: String,
    /// Tool that the event was about, or empty.
    pub tool: String,
    /// What was decided.
    pub outcome: DecisionOutcome,
    /// Whether a rule would have blocked or asked if it had been enforced.
    pub would_stop: bool,
    /// Results of the rules that fired or are unknown.
    pub rules: Vec<(String, RuleResult)>,
    /// The most important finding, in one line.
    pub detail: String,
}

impl IndexedDecision {
    /// Parses a line of the log, and adds it to `activity`, whose counts stay as they are: the index counts by time.
    /// `None` for a line that is not an entry.
    #[must_use]
    pub fn parse(line: &[u8], activity: &mut Activity) -> Option<Self> {
        let entry = Entry::parse(line)?;
        if entry.event.is_empty() {
            return None;
        }
        let at = Timestamp::parse(&entry.timestamp);
        activity.add_entry(&entry, at, Timestamp::from_millis(i64::MAX));
        let rules = entry.rule_results();
        let detail = cut(&detail(&entry, &rules), INDEX_DETAIL_CHARS_MAX);
        Some(Self {
            at: at.unwrap_or_default(),
            outcome: DecisionOutcome::of(&entry),
            would_stop: entry.would_stop(),
            rules: rules.into_iter().map(|(id, result)| (id.to_owned(), result)).collect(),
            detail,
            tool: entry.tool.unwrap_or_default(),
            id: entry.id,
            session: entry.session_id,
            event: entry.event,
        })
    }
}

/// The finding of the strongest rule, or why nothing was evaluated.
fn detail(entry: &Entry, rules: &[(&str, RuleResult)]) -> String {
    if let Some(notice) = &entry.notice {
        let text = notice.text.clone();
        return match NoticeKind::find(&entry.event) {
            // The other texts name what they are about.
            Some(NoticeKind::BreakerOpen | NoticeKind::BreakerChange) => {
                format!("{}: {text}", notice.subject)
            }
            _ => text,
        };
    }
    let Some((rule, _)) = rules.first() else {
        let text = entry.no_opinion.as_deref().or(entry.release.as_deref());
        return text.unwrap_or_default().to_owned();
    };
    let check = entry.verdicts.iter().find(|it| it.id == *rule);
    let check = check.and_then(|it| it.details.as_deref());
    let guard = || entry.guards.iter().find(|it| it.id == *rule).map(|it| it.message.as_str());
    let text = check.filter(|it| !it.is_empty()).or_else(guard).unwrap_or_default();
    format!("{rule}: {}", text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn outcome(line: &Value) -> DecisionOutcome {
        let text = line.to_string();
        IndexedDecision::parse(text.as_bytes(), &mut Activity::default()).unwrap().outcome
    }

    #[test]
    fn every_kind_of_entry_has_an_outcome() {
        let stop = |decision: &str, release: &str, spoken: bool| {
            json!({"event": "stop", "decision": decision, "release": release, "spoken": spoken,
                "inputs": {"transcript": {"path": "/t"}}})
        };
        let call = |decision: &str| json!({"event": "pre_tool_use", "decision": decision});
        let prompt = |decision: &str| json!({"event": "permission_request", "decision": decision});
        let change = |outcome: &str| {
            json!({"event": "breaker_change", "decision": "none",
                "notice": {"subject": "api/x", "outcome": outcome, "text": "E"}})
        };
        for (line, expected) in [
            (stop("block", "", true), DecisionOutcome::BlockedStop),
            (stop("block", "", false), DecisionOutcome::PassedStop),
            (stop("none", "max_blocks", false), DecisionOutcome::ReleasedStop),
            (stop("none", "", false), DecisionOutcome::PassedStop),
            (call("block"), DecisionOutcome::BlockedCall),
            (call("halt"), DecisionOutcome::Halted),
            (call("ask"), DecisionOutcome::Asked),
            (call("none"), DecisionOutcome::Noted),
            (prompt("allow"), DecisionOutcome::ApprovedCall),
            (prompt("none"), DecisionOutcome::LeftPrompt),
            (prompt("block"), DecisionOutcome::BlockedCall),
            (json!({"event": "pause", "decision": "none"}), DecisionOutcome::Switched),
            (json!({"event": "run_end", "decision": "none"}), DecisionOutcome::RunEnded),
            (json!({"event": "escalation", "decision": "none"}), DecisionOutcome::Escalated),
            (json!({"event": "breaker_open", "decision": "none"}), DecisionOutcome::BreakerOpened),
            (change("open"), DecisionOutcome::BreakerOpened),
            (change("half_open"), DecisionOutcome::BreakerHalfOpened),
            (change("closed"), DecisionOutcome::BreakerClosed),
            (json!({"event": "dead_letter", "decision": "none"}), DecisionOutcome::DeadLettered),
            (
                json!({"event": "stop", "decision": "none", "no_opinion": "paused"}),
                DecisionOutcome::NotEvaluated,
            ),
        ] {
            assert_eq!(outcome(&line), expected, "{line}");
            assert_eq!(DecisionOutcome::find(expected.as_str()), Some(expected));
        }
        for broken in ["", "{", "[]", "{}", "null", "{\"event\": 1}"] {
            let parsed = IndexedDecision::parse(broken.as_bytes(), &mut Activity::default());
            assert_eq!(parsed, None, "{broken}");
        }
    }

    #[test]
    fn a_row_names_each_rule_once_with_its_strongest_result() {
        let line = json!({"timestamp": "2026-01-02T10:00:00Z", "event": "stop", "id": "a1", "session_id": "s",
            "decision": "none", "release": "max_blocks", "inputs": {"transcript": {"path": "/t"}},
            "verdicts": [
                {"id": "passed", "status": "satisfied", "consequence": "none"},
                {"id": "style", "status": "unsatisfied", "consequence": "warns", "details": "long\nline"},
                {"id": "tests", "status": "unsatisfied", "consequence": "blocks", "details": "2 failed"},
                {"id": "docs", "status": "unsatisfied", "consequence": "recorded", "allowed": "once"},
            ],
            "guards": [{"id": "style", "decision": "context", "mode": "enforce", "status": "fired"}]});
        let mut activity = Activity::default();
        let text = line.to_string();
        let row = IndexedDecision::parse(text.as_bytes(), &mut activity).unwrap();
        let rules: Vec<(&str, RuleResult)> =
            row.rules.iter().map(|(id, it)| (id.as_str(), *it)).collect();
        assert_eq!(
            rules,
            [
                ("tests", RuleResult::Released),
                ("docs", RuleResult::Overridden),
                ("style", RuleResult::Warned)
            ]
        );
        assert_eq!(row.detail, "tests: 2 failed");
        assert_eq!(row.at, Timestamp::parse("2026-01-02T10:00:00Z").unwrap());
        assert_eq!((activity.released_stops, activity.last), (0, Some(row.at)));
        assert_eq!(activity.last_stop.unwrap().outcome, StopOutcomeWord::Released);
    }
}
