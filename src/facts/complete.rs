//! Detects whether a transcript is complete at a stop. Clients write it while their hooks run, so
//! that the last message, the last tool call or its result can be missing.
//!
//! Contains: the comparison with the calls that hooks saw. Does not contain: reading and waiting.

use super::event::Event;
use super::{Facts, PendingTool};
use policyd_yaml::secrets::mask;

/// Tools whose result is an answer of the user. A stop does not wait for it.
const USER_TOOLS: [&str; 2] = ["AskUserQuestion", "ExitPlanMode"];

/// A tool call that a hook saw since the last stop and that policyd did not block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookCall {
    /// Id of the call. Empty if the client sends none.
    pub id: String,
    /// Id of the subagent that made the call. Empty for the main agent.
    pub agent: String,
    /// Whether the call ended, so that the client has its result.
    pub ended: bool,
}

/// The tool calls that hooks saw since the last stop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookCalls {
    /// Distinct calls, oldest first.
    pub calls: Vec<HookCall>,
    /// Tool calls in the transcript at the last stop. `None` if unknown.
    pub total_before: Option<u64>,
    /// Agents (`""`: the main agent) whose stop waited in vain for results, each with its position in the
    /// transcript then, newest last.
    pub waited: Vec<(String, u64)>,
}

impl HookCalls {
    /// Returns the calls of one agent (`""`: the main agent).
    fn of<'a>(&'a self, agent: &'a str) -> impl Iterator<Item = &'a HookCall> {
        self.calls.iter().filter(move |it| it.agent == agent)
    }

    /// Returns the position up to which a stop of an agent waited for results.
    fn waited_to(&self, agent: &str) -> u64 {
        self.waited.iter().rev().find(|it| it.0 == agent).map_or(0, |it| it.1)
    }
}

impl Facts {
    /// Returns whether these facts contain everything that the event and the hooks report.
    #[must_use]
    pub fn is_complete(&self, event: &Event, hooks: &HookCalls) -> bool {
        if let Some(sent_at) = event.stop_recorded_at {
            // The client records each stop, so that no earlier line can be missing.
            return self.stop_sent_at >= sent_at;
        }
        let agent = event.agent_id.as_deref().unwrap_or_default();
        let waited_to = hooks.waited_to(agent);
        let accounts_for = |call: &HookCall| self.accounts_for(&call.id, waited_to);
        let missing = hooks.of(agent).any(|it| !it.id.is_empty() && !accounts_for(it));
        self.shows_message(event)
            && !self.awaits_result(waited_to)
            && !missing
            && self.missing_by_count(hooks.of(agent), hooks, |_| true) == 0
    }

    /// Counts tool calls that ended before the stop and are not in these facts.
    #[must_use]
    pub fn unseen_calls(&self, event: &Event, hooks: &HookCalls) -> u64 {
        let agent = event.agent_id.as_deref().unwrap_or_default();
        let ended = hooks.of(agent).filter(|it| it.ended && !it.id.is_empty());
        let named = ended.filter(|it| !self.knows_call(&it.id)).count();
        let named = u64::try_from(named).unwrap_or(u64::MAX);
        named.saturating_add(self.missing_by_count(hooks.of(agent), hooks, |it| it.ended))
    }

    /// Returns whether a stop waits for the result of a call after `waited_to`. Each result is waited for
    /// once: the client might never write it.
    #[must_use]
    pub fn awaits_result(&self, waited_to: u64) -> bool {
        let is_awaited =
            |it: &PendingTool| it.session.is_empty() && !USER_TOOLS.contains(&it.name.as_str());
        self.pending.iter().any(|it| is_awaited(it) && !self.is_given_up(it, waited_to))
    }

    /// Returns whether a stop waited for the result of a call in vain. In a shorter transcript, the position
    /// is another one.
    fn is_given_up(&self, call: &PendingTool, waited_to: u64) -> bool {
        call.seq <= waited_to && waited_to <= self.seq
    }

    /// Returns whether a call has its result here, is known to continue, or was waited for.
    fn accounts_for(&self, id: &str, waited_to: u64) -> bool {
        let is_settled =
            |it: &PendingTool| !it.session.is_empty() || self.is_given_up(it, waited_to);
        self.has_ended(id)
            || self.background.iter().any(|it| it.id == id)
            || self.pending.iter().any(|it| it.id == id && is_settled(it))
    }

    /// Counts the missing calls without ids, by comparing totals.
    fn missing_by_count<'h>(
        &self,
        calls: impl Iterator<Item = &'h HookCall>,
        hooks: &HookCalls,
        counts: impl Fn(&HookCall) -> bool,
    ) -> u64 {
        let Some(before) = hooks.total_before else { return 0 };
        let seen = calls.filter(|it| it.id.is_empty() && counts(it)).count();
        let seen = u64::try_from(seen).unwrap_or(u64::MAX);
        seen.saturating_sub(self.tools.total.saturating_sub(before))
    }

    /// Returns whether the agent's last message is here, if the event contains it.
    fn shows_message(&self, event: &Event) -> bool {
        // Stored messages have placeholders instead of secrets.
        let said = mask(event.last_message.as_deref().unwrap_or_default().trim()).0;
        let said = said.as_ref();
        if said.is_empty() {
            return true;
        }
        let newest = self.messages.last.last();
        newest.filter(|it| it.seq > self.stop_seq).is_some_and(|message| {
            let recorded = message.text.trim();
            !recorded.is_empty() && (said.ends_with(recorded) || recorded.ends_with(said))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::compiled::CompiledMatchers;
    use super::super::event::EventKind;
    use super::super::lens::MatcherConfig;
    use super::*;
    use policyd_base::id::SessionId;

    const CALL: &str = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test"}}]}}"#;
    const RESULT: &str = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}}"#;
    const SAID: &str =
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"All done."}]}}"#;

    fn facts(lines: &[&str]) -> Facts {
        let lens = CompiledMatchers::new(MatcherConfig::default());
        let mut facts = Facts::default();
        lines.iter().for_each(|line| facts.ingest_record(line.as_bytes(), &lens));
        facts
    }

    fn stop(message: &str) -> Event {
        let kind = EventKind::Stop;
        let last_message = Some(message.to_owned());
        Event { last_message, ..Event::of(kind, SessionId::sanitize("s")) }
    }

    fn hooks(id: &str, ended: bool) -> HookCalls {
        let call = HookCall { id: id.to_owned(), agent: String::new(), ended };
        HookCalls { calls: vec![call], total_before: Some(0), waited: Vec::new() }
    }

    #[test]
    fn a_transcript_is_complete_with_the_last_message_and_every_result() {
        let event = stop("All done.");
        let none = HookCalls::default();
        assert!(facts(&[CALL, RESULT, SAID]).is_complete(&event, &none));
        assert!(facts(&[CALL, RESULT, SAID]).is_complete(&event, &hooks("t1", true)));
        assert!(!facts(&[CALL, RESULT]).is_complete(&event, &none), "the message is missing");
        assert!(!facts(&[CALL, SAID]).is_complete(&event, &none), "the result is missing");
        assert!(!facts(&[SAID]).is_complete(&event, &hooks("t1", false)), "the call is missing");
        assert!(!facts(&[SAID]).is_complete(&event, &hooks("", false)), "a call without an id");
        assert!(!facts(&[CALL, RESULT, SAID]).is_complete(&stop("Really."), &none));
    }

    #[test]
    fn a_result_is_waited_for_once() {
        let event = stop("All done.");
        let waited = HookCalls { waited: vec![(String::new(), 2)], ..hooks("t1", false) };
        assert!(facts(&[CALL, SAID]).is_complete(&event, &waited), "its stop waited before");
        let later = CALL.replace("t1", "t2");
        assert!(!facts(&[CALL, SAID, &later, SAID]).is_complete(&event, &waited), "a later call");
        let other = HookCalls { waited: vec![("a".to_owned(), 2)], ..HookCalls::default() };
        assert!(!facts(&[CALL, SAID]).is_complete(&event, &other), "another agent waited");
        let longer = HookCalls { waited: vec![(String::new(), 9)], ..HookCalls::default() };
        assert!(!facts(&[CALL, SAID]).is_complete(&event, &longer), "another transcript");
    }

    #[test]
    fn a_stop_that_the_client_records_is_waited_for() {
        let event = Event { stop_recorded_at: Some(7), ..stop("") };
        let marker =
            r#"{"type":"hook.start","data":{"hookType":"agentStop","input":{"timestamp":7}}}"#;
        let earlier =
            r#"{"type":"hook.start","data":{"hookType":"agentStop","input":{"timestamp":6}}}"#;
        assert!(facts(&[marker]).is_complete(&event, &HookCalls::default()));
        assert!(!facts(&[earlier]).is_complete(&event, &HookCalls::default()));
    }

    #[test]
    fn calls_that_ended_and_are_not_recorded_are_unseen() {
        let event = stop("All done.");
        assert_eq!(facts(&[SAID]).unseen_calls(&event, &hooks("t1", true)), 1);
        assert_eq!(
            facts(&[SAID]).unseen_calls(&event, &hooks("t1", false)),
            0,
            "it might be refused"
        );
        assert_eq!(facts(&[SAID]).unseen_calls(&event, &hooks("", true)), 1);
        assert_eq!(facts(&[CALL, SAID]).unseen_calls(&event, &hooks("t1", true)), 0);
        assert_eq!(facts(&[CALL, RESULT]).unseen_calls(&event, &hooks("", true)), 0);
    }
}
