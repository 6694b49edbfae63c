//! The result of a rule in one logged decision, in one word: metrics, the index, and the dashboard use the same words.

use super::activity::StopOutcomeWord;
use super::decision_log::{Entry, LoggedGuard, LoggedVerdict};
use super::notice::NoticeKind;
use policyd_facts::event::EventKind;

/// Result of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleResult {
    /// The rule blocked a stop, a tool call, or another event.
    Blocked,
    /// The rule ended the work of the agent.
    Halted,
    /// The user was asked.
    Asked,
    /// The block limit let the agent stop although the check had not passed.
    Released,
    /// An allowance of the user let it pass.
    Overridden,
    /// The rule only observed, and would have blocked or asked.
    WouldBlock,
    /// The rule warned.
    Warned,
    /// The rule only logged.
    Logged,
    /// The rule allowed the tool call.
    Allowed,
    /// A value that the rule reads was unknown.
    Unknown,
    /// Any other effect, such as text for the agent.
    Other,
}

impl RuleResult {
    /// Every result, the strongest first.
    pub const ALL: [Self; 11] = [
        Self::Blocked,
        Self::Halted,
        Self::Asked,
        Self::Released,
        Self::Overridden,
        Self::WouldBlock,
        Self::Warned,
        Self::Logged,
        Self::Allowed,
        Self::Unknown,
        Self::Other,
    ];

    /// Returns the name in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Halted => "halted",
            Self::Asked => "asked",
            Self::Released => "released",
            Self::Overridden => "overridden",
            Self::WouldBlock => "would_block",
            Self::Warned => "warned",
            Self::Logged => "logged",
            Self::Allowed => "allowed",
            Self::Unknown => "unknown",
            Self::Other => "other",
        }
    }

    /// Returns the result of a name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }

    /// Returns the result of a guard that decided.
    #[must_use]
    pub fn of_decision(decision: &str) -> Self {
        match decision {
            "block" => Self::Blocked,
            "halt" => Self::Halted,
            "ask" => Self::Asked,
            "allow" => Self::Allowed,
            "warn" => Self::Warned,
            _ => Self::Other,
        }
    }
}

impl Entry {
    /// Returns whether the entry is about a stop, which was evaluated or not. Guards of a stop have an entry of their own.
    #[must_use]
    pub fn is_about_stop(&self) -> bool {
        let is_stop = || EventKind::find(&self.event).is_none_or(EventKind::is_stop);
        let is_evaluated = self.inputs.is_some();
        NoticeKind::find(&self.event).is_none()
            && (is_evaluated || (self.guards.is_empty() && is_stop()))
    }

    /// Returns whether the entry is the evaluation of a stop.
    #[must_use]
    pub fn is_evaluated_stop(&self) -> bool {
        self.is_about_stop() && self.inputs.is_some()
    }

    /// Returns whether a tool call or another event was blocked, or the user was asked about it.
    #[must_use]
    pub fn stopped_call(&self) -> bool {
        matches!(self.decision.as_str(), "block" | "ask" | "halt")
    }

    /// Returns whether policyd answered a permission prompt in place of the user.
    #[must_use]
    pub fn approved_call(&self) -> bool {
        self.decision == "allow" && self.event == EventKind::PermissionRequest.name()
    }

    /// Returns whether policyd left a permission prompt to the user.
    #[must_use]
    pub fn left_prompt(&self) -> bool {
        self.decision == "none" && self.event == EventKind::PermissionRequest.name()
    }

    /// Returns whether a rule would have blocked or asked if it had been enforced.
    #[must_use]
    pub fn would_stop(&self) -> bool {
        self.verdicts.iter().any(|it| it.would_block)
            || self.guards.iter().any(|it| it.would.is_some())
    }

    /// Returns why the block limit let the agent stop. `None` if it did not.
    #[must_use]
    pub fn release_reason(&self) -> Option<&str> {
        self.release.as_deref().filter(|it| !it.is_empty())
    }

    /// Returns the result of each rule that fired or is unknown, each rule once, the strongest result first.
    #[must_use]
    pub fn rule_results(&self) -> Vec<(&str, RuleResult)> {
        let is_released =
            self.is_evaluated_stop() && StopOutcomeWord::of(self) == StopOutcomeWord::Released;
        let of_limit = |result| {
            let is_released = is_released && result == RuleResult::Blocked;
            if is_released { RuleResult::Released } else { result }
        };
        let checks = self.verdicts.iter();
        let checks = checks.filter_map(|it| Some((&it.id, it.allowed.is_some(), it.result()?)));
        // A rule that the user let pass is one even if nothing else is known about it.
        let allowed = self.verdicts.iter().filter(|it| it.allowed.is_some());
        let allowed = allowed.map(|it| (&it.id, true, RuleResult::Overridden));
        let guards = self.guards.iter().map(|it| (&it.id, it.allowed.is_some(), it.result()));
        let mut rules: Vec<(&str, RuleResult)> = Vec::new();
        for (id, is_allowed, result) in checks.chain(allowed).chain(guards) {
            let result = if is_allowed { RuleResult::Overridden } else { of_limit(result) };
            match rules.iter_mut().find(|(it, _)| it == id) {
                // What the user let pass did not block, whatever else the rule found.
                Some((_, RuleResult::Overridden)) => {}
                Some((_, known)) if is_allowed => *known = result,
                Some((_, known)) => *known = result.min(*known),
                None => rules.push((id, result)),
            }
        }
        rules.sort_by_key(|(_, result)| *result);
        rules
    }
}

impl LoggedVerdict {
    /// Returns the result of the check; `None` if it passed.
    fn result(&self) -> Option<RuleResult> {
        match (self.consequence.as_str(), self.status.as_str()) {
            _ if self.would_block => Some(RuleResult::WouldBlock),
            ("blocks", _) => Some(RuleResult::Blocked),
            ("warns", _) => Some(RuleResult::Warned),
            (_, "unknown") => Some(RuleResult::Unknown),
            _ => None,
        }
    }
}

impl LoggedGuard {
    fn result(&self) -> RuleResult {
        match (self.would.as_deref(), self.mode.as_str(), self.status.as_str()) {
            (Some(_), _, _) => RuleResult::WouldBlock,
            (None, "shadow", _) => RuleResult::Logged,
            (None, "warn", _) => RuleResult::Warned,
            (None, _, "unknown") => RuleResult::Unknown,
            (None, _, _) => RuleResult::of_decision(&self.decision),
        }
    }
}
