//! An entry of the decision log, as far as counts and overviews need it. Texts are borrowed from the line.

use std::borrow::Cow;

use serde::Deserialize;

use super::activity::StopOutcomeWord;
use super::notice::{LoggedRun, NoticeKind};
use super::rule_result::RuleResult;

/// The part of an entry that is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct LoggedLine<'a> {
    #[serde(borrow)]
    pub timestamp: Cow<'a, str>,
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub event: Cow<'a, str>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    #[serde(borrow)]
    pub agent_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub decision: Cow<'a, str>,
    pub spoken: bool,
    #[serde(borrow)]
    pub release: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub tool: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub no_opinion: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub verdicts: Vec<LineVerdict<'a>>,
    #[serde(borrow)]
    pub guards: Vec<LineGuard<'a>>,
    #[serde(borrow)]
    pub inputs: Option<LineInputs<'a>>,
    #[serde(borrow)]
    pub notice: Option<LineNotice<'a>>,
    #[serde(borrow)]
    pub saved: Cow<'a, str>,
    pub micros: Option<u64>,
}

impl<'a> LoggedLine<'a> {
    /// Parses a line of the log. `None` for a line that is not an entry.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// Whether the entry is the evaluation of a stop.
    pub fn is_stop(&self) -> bool {
        self.inputs.is_some() && NoticeKind::find(&self.event).is_none()
    }

    /// Whether a tool call or another event was blocked, or the user was asked about it.
    pub fn stopped_call(&self) -> bool {
        matches!(&*self.decision, "block" | "ask" | "halt")
    }

    /// Whether a rule would have blocked or asked if it had been enforced.
    pub fn would_stop(&self) -> bool {
        self.verdicts.iter().any(|it| it.would_block)
            || self.guards.iter().any(|it| it.would.is_some())
    }

    /// Returns the result of each rule that fired or is unknown, each rule once, the strongest result first.
    pub fn rule_results(&self) -> Vec<(Cow<'a, str>, RuleResult)> {
        let is_released = self.is_stop() && StopOutcomeWord::of(self) == StopOutcomeWord::Released;
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
        let mut rules: Vec<(Cow<'a, str>, RuleResult)> = Vec::new();
        for (id, is_allowed, result) in checks.chain(allowed).chain(guards) {
            let result = if is_allowed { RuleResult::Overridden } else { of_limit(result) };
            match rules.iter_mut().find(|(it, _)| it == id) {
                // What the user let pass did not block, whatever else the rule found.
                Some((_, RuleResult::Overridden)) => {}
                Some((_, known)) if is_allowed => *known = result,
                Some((_, known)) => *known = result.min(*known),
                None => rules.push((id.clone(), result)),
            }
        }
        rules.sort_by_key(|(_, result)| *result);
        rules
    }
}

/// What a line reports beside decisions.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct LineNotice<'a> {
    #[serde(borrow)]
    pub subject: Cow<'a, str>,
    #[serde(borrow)]
    pub outcome: Cow<'a, str>,
    #[serde(borrow)]
    pub text: Cow<'a, str>,
    pub run: Option<LoggedRun>,
}

/// Result of one check in a line.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct LineVerdict<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub consequence: Cow<'a, str>,
    #[serde(borrow)]
    pub details: Cow<'a, str>,
    #[serde(borrow)]
    pub status: Cow<'a, str>,
    pub would_block: bool,
    #[serde(borrow)]
    pub allowed: Option<Cow<'a, str>>,
}

impl LineVerdict<'_> {
    /// Returns the result of the check; `None` if it passed.
    fn result(&self) -> Option<RuleResult> {
        match (&*self.consequence, &*self.status) {
            _ if self.would_block => Some(RuleResult::WouldBlock),
            ("blocks", _) => Some(RuleResult::Blocked),
            ("warns", _) => Some(RuleResult::Warned),
            (_, "unknown") => Some(RuleResult::Unknown),
            _ => None,
        }
    }
}

/// Result of one guard in a line.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct LineGuard<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub status: Cow<'a, str>,
    #[serde(borrow)]
    pub decision: Cow<'a, str>,
    #[serde(borrow)]
    pub mode: Cow<'a, str>,
    #[serde(borrow)]
    pub would: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub allowed: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub message: Cow<'a, str>,
}

impl LineGuard<'_> {
    fn result(&self) -> RuleResult {
        match (self.would.as_deref(), &*self.mode, &*self.status) {
            (Some(_), _, _) => RuleResult::WouldBlock,
            (None, "shadow", _) => RuleResult::Logged,
            (None, "warn", _) => RuleResult::Warned,
            (None, _, "unknown") => RuleResult::Unknown,
            (None, _, _) => RuleResult::of_decision(&self.decision),
        }
    }
}

/// Inputs of the decision in a line.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct LineInputs<'a> {
    #[serde(borrow)]
    pub transcript: LineTranscript<'a>,
}

/// The transcript that a line names.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct LineTranscript<'a> {
    #[serde(borrow)]
    pub path: Cow<'a, str>,
    pub subagent: bool,
}
