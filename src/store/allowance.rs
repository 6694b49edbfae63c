//! An allowance: the user lets a rule, or one exact tool call, pass once or for a while. Kept among the choices of the
//! user.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::user_choices::UserChoices;
use policyd_base::id::SessionId;
use policyd_base::limits::{ALLOWANCE_MAX, ALLOWANCES_KEPT};
use policyd_evaluation::combine::Decision;
use policyd_yaml::time::Timestamp;

/// What an allowance lets pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllowanceTarget {
    /// A check or a guard, by its id.
    Rule(String),
    /// A tool call, by its digest.
    Call(String),
}

/// A rule or a call that may pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    /// The rule or the call.
    pub target: AllowanceTarget,
    /// Session in which it applies; `None` for the whole project.
    pub session: Option<SessionId>,
    /// Time at which the user gave it.
    pub since: Timestamp,
    /// Time at which it ends.
    pub until: Timestamp,
    /// Whether it ends with its first use.
    pub once: bool,
    /// Name of the user who gave it.
    pub by: String,
}

impl Allowance {
    /// Returns whether the allowance applies at a time. A clock before its start ends it.
    #[must_use]
    pub fn holds(&self, now: Timestamp) -> bool {
        self.since <= now && now < self.until && self.until.since(self.since) <= ALLOWANCE_MAX
    }

    /// Describes the allowance, as it is logged with the decision that it changed.
    #[must_use]
    pub fn text(&self) -> String {
        let once = if self.once { " once" } else { "" };
        format!("allowed{once} by {} until {}", self.by, self.until)
    }

    fn is_of_rule(&self, id: &str) -> bool {
        matches!(&self.target, AllowanceTarget::Rule(rule) if rule == id)
    }
}

/// An event that rules block or ask about.
#[derive(Debug, Clone)]
pub struct BlockedEvent<'a> {
    /// Session of the event.
    pub session: &'a SessionId,
    /// Digest of its tool call.
    pub digest: Option<&'a str>,
    /// Ids of the rules that block or ask, each with its decision.
    pub rules: Vec<(&'a str, Decision)>,
}

impl UserChoices {
    /// Adds an allowance; one of the same target and session is replaced. Expired ones, and the oldest beyond a limit,
    /// are removed.
    pub fn add_allowance(&mut self, allowance: Allowance, now: Timestamp) {
        self.allowances.retain(|it| {
            it.holds(now) && (it.session != allowance.session || it.target != allowance.target)
        });
        self.allowances.push(allowance);
        let surplus = self.allowances.len().saturating_sub(ALLOWANCES_KEPT);
        self.allowances.drain(..surplus);
    }

    /// Uses the allowances for an event: returns the rules whose decision is dropped, each with the text of its
    /// allowance. An allowance that ends with its first use is used only if the event gets a weaker decision by it.
    pub fn use_allowances(
        &mut self,
        event: &BlockedEvent<'_>,
        now: Timestamp,
    ) -> BTreeMap<String, String> {
        let applies = |it: &Allowance| {
            it.holds(now) && it.session.as_ref().is_none_or(|id| id == event.session)
        };
        let of_call = self.allowances.iter().position(|it| {
            applies(it)
                && matches!((&it.target, event.digest),
                    (AllowanceTarget::Call(own), Some(digest)) if own == digest)
        });
        if let Some(at) = of_call {
            let text = self.allowances.remove(at).text();
            return event.rules.iter().map(|(id, _)| ((*id).to_owned(), text.clone())).collect();
        }
        let find = |id: &str, once: bool| {
            let fits = |it: &&Allowance| it.once == once && it.is_of_rule(id) && applies(it);
            self.allowances.iter().find(fits).map(|it| (id.to_owned(), it.text()))
        };
        let mut granted: BTreeMap<String, String> =
            event.rules.iter().filter_map(|(id, _)| find(id, false)).collect();
        let mut used = BTreeMap::new();
        for level in Decision::ALL.into_iter().rev() {
            let rules = event.rules.iter().filter(|(_, decision)| *decision == level);
            let rules = rules.filter(|(id, _)| !granted.contains_key(*id));
            let once: Option<BTreeMap<_, _>> = rules.map(|(id, _)| find(id, true)).collect();
            let Some(once) = once else { break };
            used.extend(once);
        }
        self.allowances.retain(|it| {
            let is_used = used.keys().any(|id| it.once && it.is_of_rule(id) && applies(it));
            !is_used
        });
        granted.extend(used);
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn allowance(rule: &str, once: bool) -> Allowance {
        let since = Timestamp::from_millis(0);
        Allowance {
            target: AllowanceTarget::Rule(rule.to_owned()),
            session: None,
            since,
            until: since.plus(Duration::from_secs(600)),
            once,
            by: "ada".to_owned(),
        }
    }

    fn used(choices: &mut UserChoices, rules: &[(&str, Decision)], minutes: i64) -> Vec<String> {
        let session = SessionId::parse("s").unwrap();
        let event = BlockedEvent { session: &session, digest: Some("d1"), rules: rules.to_vec() };
        let now = Timestamp::from_millis(minutes * 60_000);
        choices.use_allowances(&event, now).into_keys().collect()
    }

    #[test]
    fn an_allowance_is_used_once_or_until_it_ends() {
        let now = Timestamp::from_millis(0);
        let block = [("a", Decision::Block)];
        let mut choices = UserChoices::default();
        choices.add_allowance(allowance("a", true), now);
        assert_eq!(used(&mut choices, &block, 1), ["a"]);
        assert!(used(&mut choices, &block, 1).is_empty());
        choices.add_allowance(allowance("a", false), now);
        assert_eq!(used(&mut choices, &block, 1), ["a"]);
        assert_eq!(used(&mut choices, &block, 9), ["a"]);
        assert!(used(&mut choices, &block, 10).is_empty());
    }

    #[test]
    fn what_would_not_change_the_decision_is_not_used() {
        let now = Timestamp::from_millis(0);
        let mut choices = UserChoices::default();
        choices.add_allowance(allowance("a", true), now);
        let both = [("a", Decision::Block), ("b", Decision::Block)];
        assert!(used(&mut choices, &both, 1).is_empty());
        assert_eq!(choices.allowances.len(), 1);
        assert_eq!(used(&mut choices, &[("a", Decision::Block), ("b", Decision::Ask)], 1), ["a"]);
        choices.add_allowance(allowance("a", true), now);
        choices.add_allowance(allowance("b", false), now);
        assert_eq!(used(&mut choices, &both, 1), ["a", "b"]);
        assert_eq!(choices.allowances.len(), 1);
    }

    #[test]
    fn a_call_passes_by_its_whole_digest_in_its_session_alone() {
        let now = Timestamp::from_millis(0);
        let block = [("a", Decision::Block)];
        for (digest, session, passes) in
            [("d1", "s", true), ("d", "s", false), ("d10", "s", false), ("d1", "t", false)]
        {
            let mut choices = UserChoices::default();
            let target = AllowanceTarget::Call(digest.to_owned());
            let session = SessionId::parse(session);
            choices.add_allowance(Allowance { target, session, ..allowance("", true) }, now);
            assert_eq!(used(&mut choices, &block, 1).len() == 1, passes, "{digest}");
            assert!(used(&mut choices, &block, 1).is_empty());
        }
    }

    #[test]
    fn old_allowances_go() {
        let mut choices = UserChoices::default();
        for number in 0..ALLOWANCES_KEPT + 2 {
            choices.add_allowance(allowance(&number.to_string(), true), Timestamp::from_millis(0));
        }
        assert_eq!(choices.allowances.len(), ALLOWANCES_KEPT);
        choices.add_allowance(allowance("x", true), Timestamp::from_millis(3_600_000));
        assert_eq!(choices.allowances.len(), 1);
    }
}
