//! `reactions.yaml`: what policyd records and reports if an event happens.

use serde::{Deserialize, Serialize};

use crate::Expression;
use crate::builder::Builder;
use crate::fields::{DESCRIPTION, ENABLED, ID, OVERRIDE, TEXTS};
use crate::layers::{LayerEntry, Layers, wanted};
use crate::record::{Conversion, TEMPLATE, TEMPLATES, record};
use crate::records::{self, REACTING_NAMES, SEVERITIES};
use crate::signals::Signals;
use policyd_facts::event::EventKind;
use policyd_yaml::shape::Kind;

/// A rule that records or reports something if an event happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reaction {
    /// Id, unique in `reactions.yaml`.
    pub id: String,
    /// Events at which the rule is evaluated.
    pub on: Vec<EventKind>,
    /// Condition of the rule, over `event`. `None`: always.
    pub when: Option<Expression>,
    /// Name of the circuit breaker that records the result; a template. Empty: none.
    pub breaker: String,
    /// Whether the breaker records a success.
    pub worked: bool,
    /// Task whose attempt failed. An empty id: none.
    pub task: ReactionTask,
    /// Signal that is created. An empty name: none.
    pub signal: ReactionSignal,
    /// Reason why a human is needed; a template. Empty: no human is asked.
    pub reason: String,
    /// Severity of the escalation, one of [`SEVERITIES`].
    pub severity: String,
    /// Options of the human.
    pub options: Vec<String>,
    /// Text for the agent or the user; a template. Empty: none.
    pub say: String,
    /// Whether the reaction applies in turns of a supervised run. `None`: see [`Reaction::applies_supervised`].
    pub supervised: Option<bool>,
}

/// The task whose attempt failed. All fields are templates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactionTask {
    /// Id of the task.
    pub id: String,
    /// Title of the task.
    pub title: String,
    /// Approach of the attempt.
    pub approach: String,
}

/// The signal that a reaction creates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactionSignal {
    /// Name of a signal of `signals.yaml`.
    pub name: String,
    /// Names and templates of its fields.
    pub fields: Vec<(String, String)>,
}

impl Default for Reaction {
    fn default() -> Self {
        Self {
            id: String::new(),
            on: Vec::new(),
            when: None,
            breaker: String::new(),
            worked: false,
            task: ReactionTask::default(),
            signal: ReactionSignal::default(),
            reason: String::new(),
            severity: "high".to_owned(),
            options: Vec::new(),
            say: String::new(),
            supervised: None,
        }
    }
}

impl Reaction {
    /// Whether the reaction applies to an event of a turn that `policyd run` supervises.
    ///
    /// The supervisor records the result of each turn in a breaker and at a task. A hook that records the end of the
    /// same turn would count one failure twice, so it does that only if the reaction asks for it.
    #[must_use]
    pub fn applies_supervised(&self, event: EventKind) -> bool {
        let records = !self.breaker.is_empty() || !self.task.id.is_empty();
        self.supervised.unwrap_or(!(records && event.ends_turn()))
    }

    /// Whether the only effect of the reaction is that a breaker records a success.
    #[must_use]
    pub fn only_tells_success(&self) -> bool {
        let others = [&self.task.id, &self.signal.name, &self.reason, &self.say];
        self.worked && others.iter().all(|text| text.is_empty())
    }
}

/// Result of a call: `success` or `failure`.
const WORKED: Conversion<bool> = Conversion::reading(|node, _| Some(node.text()? == "success"));

/// A boolean that can be absent.
const SUPERVISED: Conversion<Option<bool>> = Conversion::reading(|node, _| Some(node.bool()));

record! {
    const TASK: RecordType<Reaction> = {
        id [mandatory()]: Kind::Template => task.id by TEMPLATE,
            "Id of the task that an attempt is counted against.";
        title: Kind::Template => task.title by TEMPLATE, "Its title.";
        approach: Kind::Template => task.approach by TEMPLATE, "What was tried.";
    }

    const SIGNAL: RecordType<Reaction> = {
        name [mandatory()]: Kind::Text => signal.name, "A signal of signals.yaml.";
        fields: Kind::Map(&Kind::Template) => signal.fields by TEMPLATES, "Fields of the signal.";
    }

    const ASK_HUMAN: RecordType<Reaction> = {
        reason [mandatory()]: Kind::Template => reason by TEMPLATE, "Why a human is needed.";
        severity: Kind::Choice(SEVERITIES) => severity, "How much it matters; `high` by default.";
        options: TEXTS => options, "What a human may decide, each with what it costs.";
    }

    /// An entry of `reactions.yaml`.
    pub(in crate) const REACTION: RecordType<Reaction> = {
        use ID => id;
        on [needed()]: Kind::List(&Kind::Choice(REACTING_NAMES)) => on, "Its events.";
        when: Kind::Expression => when, "Holds where it applies; always, where absent.";
        breaker: Kind::Template => breaker by TEMPLATE,
            "Circuit breaker that records the result of a call.";
        result: Kind::Choice(&["failure", "success"]) => worked by WORKED, "Result of the call.";
        task: part TASK, "The failure is an attempt at this task.";
        signal: part SIGNAL, "The signal that is created.";
        ask_human: part ASK_HUMAN, "A human is asked, once for each reason.";
        say: Kind::Template => say by TEMPLATE,
            "Message to the agent, or to the user if the event does not accept one.";
        supervised: Kind::Bool => supervised by SUPERVISED,
            "Whether it applies in turns of `policyd run`. By default, a `breaker` or a `task` is not recorded at the end of such a turn, because the run records it.";
        use DESCRIPTION;
        use ENABLED;
        use OVERRIDE;
    }
}

impl Builder<'_> {
    /// Builds the reactions. `signals` are those that reactions can create.
    pub(crate) fn reactions(&mut self, layers: &Layers, signals: &Signals) -> Vec<Reaction> {
        self.speaking_of(records::names("reactions.yaml", ""), |builder| {
            let built =
                wanted(layers.list("reactions.yaml"), builder.own_only).filter_map(|entry| {
                    let reaction = builder.reaction(entry, signals);
                    entry.is_used().then_some(reaction)
                });
            built.collect()
        })
    }

    fn reaction(&mut self, entry: &LayerEntry, signals: &Signals) -> Reaction {
        self.must_have(entry, &REACTION, "every entry of this list has it");
        if let Some(name) = entry.get("signal").and_then(|signal| signal.get("name")) {
            self.known_signal(name, signals);
        }
        let reaction = REACTION.read(&entry.map(), self);
        if !reaction.breaker.is_empty() && entry.get("result").is_none() {
            self.missing(
                entry,
                "result",
                "write `failure` or `success`: the result that the breaker records",
            );
        }
        reaction
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_supervised_turn_is_recorded_by_the_run() {
        let breaker = Reaction { breaker: "api/claude".to_owned(), ..Reaction::default() };
        let task = ReactionTask { id: "t".to_owned(), ..ReactionTask::default() };
        let task = Reaction { task, ..Reaction::default() };
        let say = Reaction { say: "x".to_owned(), ..Reaction::default() };
        for (reaction, at_end, at_call) in
            [(&breaker, false, true), (&task, false, true), (&say, true, true)]
        {
            for event in [EventKind::Stop, EventKind::SubagentStop, EventKind::StopFailure] {
                assert_eq!(reaction.applies_supervised(event), at_end, "{event:?}");
            }
            assert_eq!(reaction.applies_supervised(EventKind::PostToolUseFailure), at_call);
        }
        let asked = Reaction { supervised: Some(true), ..breaker };
        assert!(asked.applies_supervised(EventKind::StopFailure));
        let never = Reaction { supervised: Some(false), ..say };
        assert!(!never.applies_supervised(EventKind::SessionStart));
    }
}
