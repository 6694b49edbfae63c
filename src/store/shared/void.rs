//! A void: what is left of a question whose asker did not get the answer, because the connection was lost during the commit
//! or the process ended. The server then never applies the question. If it did already, the change is taken back where that
//! is possible.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::action::{SharedAction, SharedResponse, TaskChange};
use super::signal_document::{SignalChange, SignalResponse};
use policyd_state::dead_letter::TaskEffect;
use policyd_world::server::NewContent;

/// A question that no process waits for anymore.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VoidQuestion {
    /// Id of its operation.
    pub operation: String,
    /// What was asked.
    pub asked: Box<SharedAction>,
    /// Takes the change back. `None`: the change stays, and the user is notified of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
}

/// How a change is taken back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Undo {
    /// The opposite change.
    pub action: Box<SharedAction>,
    /// Field of the document that the change set.
    field: String,
    /// Its value. If the document contains another one, there is nothing to take back.
    made: Value,
}

impl VoidQuestion {
    /// Returns the void of a question that the server would answer with `response` and `content`. `None` if the question
    /// changes nothing, or nothing that matters: whether a call is permitted is asked again before the next call.
    pub(super) fn of(
        operation: &str,
        asked: &SharedAction,
        response: &SharedResponse,
        content: &NewContent,
    ) -> Option<Self> {
        if matches!(asked, SharedAction::Breaker { .. }) {
            return None;
        }
        let undo = match content {
            NewContent::Unchanged => return None,
            NewContent::Removed => None,
            NewContent::Text(text) => {
                let document: Value = serde_json::from_str(text).unwrap_or_default();
                opposite(asked, response).and_then(|(action, field)| {
                    let made = document.get(field)?.clone();
                    Some(Undo { action: Box::new(action), field: field.to_owned(), made })
                })
            }
        };
        Some(Self { operation: operation.to_owned(), asked: Box::new(asked.clone()), undo })
    }

    /// Returns what the user learns if the server applied the question.
    pub(super) fn note(&self) -> String {
        let document = self.asked.document();
        let outcome = match self.undo {
            Some(_) => "was taken back",
            None => "was made",
        };
        format!(
            "{} `{}`: a change whose answer did not come {outcome}",
            document.kind, document.name
        )
    }
}

impl Undo {
    /// Returns whether a document contains the change.
    pub(super) fn applies(&self, known: Option<&Value>) -> bool {
        known.and_then(|it| it.get(&self.field)) == Some(&self.made)
    }
}

/// Returns the opposite of a change, and the field that the change set. `None` if it cannot be taken back.
fn opposite(
    asked: &SharedAction,
    response: &SharedResponse,
) -> Option<(SharedAction, &'static str)> {
    match (asked, response) {
        (
            SharedAction::Task { id, change: TaskChange::Claimed { .. } },
            SharedResponse::Task(Some((task, effects))),
        ) if effects.contains(&TaskEffect::Claimed) => {
            let generation = task.claim.as_ref()?.generation;
            let change = TaskChange::Unclaimed { generation };
            Some((SharedAction::Task { id: id.clone(), change }, "claim"))
        }
        (SharedAction::Signal { id, change }, SharedResponse::Signal(SignalResponse::Changed)) => {
            let (change, field) = match change {
                SignalChange::Claimed { by, .. } => {
                    (SignalChange::Released { by: by.clone() }, "claim")
                }
                SignalChange::Consumed { by } => {
                    (SignalChange::Reopened { by: by.clone() }, "ended")
                }
                SignalChange::Emitted(_)
                | SignalChange::Released { .. }
                | SignalChange::Reopened { .. }
                | SignalChange::Ended(_) => return None,
            };
            Some((SharedAction::Signal { id: id.clone(), change }, field))
        }
        (_, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use policyd_yaml::time::Timestamp;

    const NOW: Timestamp = Timestamp::from_millis(1_767_225_600_000);

    fn signal(change: SignalChange) -> SharedAction {
        SharedAction::Signal { id: "s1".to_owned(), change }
    }

    /// Applies a change, and then takes it back. Returns the document between and after it.
    fn taken_back(asked: &SharedAction, before: &Value) -> [Value; 2] {
        let (content, response) = asked.apply(Some(before), NOW);
        let void = VoidQuestion::of("op", asked, &response, &content).unwrap();
        let saved: VoidQuestion = serde_json::from_value(json!(void)).unwrap();
        assert_eq!(saved, void);
        let undo = saved.undo.unwrap();
        let NewContent::Text(text) = content else { panic!("{content:?}") };
        let between: Value = serde_json::from_str(&text).unwrap();
        assert!(undo.applies(Some(&between)) && !undo.applies(Some(before)));
        assert!(!undo.applies(None));
        let (NewContent::Text(text), _) = undo.action.apply(Some(&between), NOW) else {
            panic!("{undo:?}")
        };
        [between, serde_json::from_str(&text).unwrap()]
    }

    #[test]
    fn a_claim_and_a_consumption_are_taken_back() {
        let lease = Duration::from_secs(600);
        let task = json!({"task_id": "t1", "queue": "dead-letter"});
        let holder = "me".to_owned();
        let change = TaskChange::Claimed { holder, lease };
        let claim = SharedAction::Task { id: "t1".to_owned(), change };
        let [claimed, free] = taken_back(&claim, &task);
        assert_eq!(
            (&claimed["claim"]["holder"], &claimed["claim"]["generation"]),
            (&json!("me"), &json!(1))
        );
        assert!(free["claim"]["holder"].as_str().unwrap_or_default().is_empty(), "{free}");
        let by = || "me@host".to_owned();
        let pending = json!({"id": "s1", "signal": "DONE", "created": NOW});
        let [claimed, free] =
            taken_back(&signal(SignalChange::Claimed { by: by(), lease }), &pending);
        assert_eq!((&claimed["claim"]["by"], &free["claim"]), (&json!("me@host"), &Value::Null));
        let [consumed, open] = taken_back(&signal(SignalChange::Consumed { by: by() }), &pending);
        assert_eq!(
            (&consumed["ended"]["outcome"], &open["ended"]),
            (&json!("consumed"), &Value::Null)
        );
        let (content, _) =
            signal(SignalChange::Reopened { by: "other".to_owned() }).apply(Some(&consumed), NOW);
        assert_eq!(content, NewContent::Unchanged, "only the consumer gives a signal back");
    }

    #[test]
    fn what_changes_nothing_needs_no_void_and_the_rest_is_reported() {
        let asked = signal(SignalChange::Consumed { by: "me".to_owned() });
        let (content, response) = asked.apply(None, NOW);
        assert_eq!(VoidQuestion::of("op", &asked, &response, &content), None);
        let finished = SharedAction::Task {
            id: "t1".to_owned(),
            change: TaskChange::Finished { generation: 1 },
        };
        let void = VoidQuestion::of("op", &finished, &SharedResponse::Run, &NewContent::Removed);
        let note = void.unwrap().note();
        assert_eq!(note, "task `t1`: a change whose answer did not come was made");
    }
}
