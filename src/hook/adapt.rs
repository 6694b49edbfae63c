//! Adapts a response to the capabilities of a client at an event. No value is ever rendered into a
//! field that the client does not support. An unsupported part becomes the nearest supported one,
//! and the downgrade is reported.
//!
//! | part | if it is not supported |
//! |---|---|
//! | halt | block; without block a notice to the user |
//! | block | a notice to the user that it was not enforced |
//! | ask, defer | a question; before an action a block that says to ask the user; otherwise a notice to the user |
//! | allow | an empty response: the client asks as usual |
//! | changed input | before a tool runs a block that contains the input; otherwise a notice to the user |
//! | changed result | a notice to the user that the result is unchanged |
//! | context | appended to the reason of a block; before a compaction dropped; otherwise a notice to the user |
//! | override hint | dropped |
//! | notice | context for the agent, if that does not make it continue; otherwise dropped and logged |

use super::{Caller, HookResponse};
use policyd_base::limits::SPOKEN_CHARS_MAX;
use policyd_evaluation::combine::Decision;
use policyd_evaluation::message::cut;
use policyd_facts::event::EventKind;
use policyd_harness::{Capability, ClientEvent, Harness, ResponseField};

/// A response that its event supports.
#[derive(Debug, Clone, PartialEq)]
pub struct AdaptedResponse {
    pub answer: HookResponse,
    /// Downgrades, one line each.
    pub changed: Vec<String>,
}

/// Returns the capability that expresses a decision. `None` for no decision.
#[must_use]
pub const fn ability(decision: Decision) -> Option<Capability> {
    match decision {
        Decision::None => None,
        Decision::Allow => Some(Capability::Allow),
        Decision::Defer => Some(Capability::Defer),
        Decision::Ask => Some(Capability::Ask),
        Decision::Block => Some(Capability::Block),
        Decision::Halt => Some(Capability::Halt),
    }
}

/// Adapts a response to its client.
#[must_use]
pub fn adapt(caller: Caller, answer: &HookResponse) -> AdaptedResponse {
    let Some(moment) = caller.moment else {
        let nothing = *answer == HookResponse::default();
        let why = format!("{} has no such event, so nothing can be said", caller.harness.title);
        let changed = if nothing { Vec::new() } else { vec![why] };
        return AdaptedResponse { answer: HookResponse::default(), changed };
    };
    let place = format!("{} at {}", caller.harness.title, moment.native);
    let mut adapter = ResponseAdapter {
        harness: caller.harness,
        moment,
        place,
        answer: answer.clone(),
        changed: Vec::new(),
    };
    adapter.decision();
    adapter.input(answer.decision);
    adapter.output();
    adapter.context();
    adapter.reason();
    adapter.override_hint();
    adapter.notice();
    AdaptedResponse { answer: adapter.answer, changed: adapter.changed }
}

/// Returns the beginning of a text of at most `bytes_max` bytes, cut between characters.
fn cut_end(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

struct ResponseAdapter {
    harness: &'static Harness,
    moment: &'static ClientEvent,
    /// Client and event, for messages.
    place: String,
    answer: HookResponse,
    changed: Vec<String>,
}

impl ResponseAdapter {
    fn can(&self, decision: Decision) -> bool {
        ability(decision).is_none_or(|it| self.moment.can(it))
    }

    /// Returns whether the event precedes an action, so that a block is the safe replacement of a
    /// question.
    fn comes_before(&self) -> bool {
        self.moment.kind.is_some_and(|it| it.is_before_call() || it == EventKind::PreModelSwitch)
    }

    fn tell_user(&mut self, text: &str) {
        let before = self.answer.notice.take().filter(|it| !it.is_empty());
        let both: Vec<String> = before.into_iter().chain([text.to_owned()]).collect();
        self.answer.notice = Some(both.join("\n"));
    }

    fn decision(&mut self) {
        let meant = self.answer.decision;
        if self.can(meant) {
            return;
        }
        let careful = self.comes_before();
        let nearest: &[Decision] = match meant {
            Decision::Halt => &[Decision::Block],
            Decision::Ask if careful => &[Decision::Block],
            Decision::Defer if careful => &[Decision::Ask, Decision::Block],
            Decision::Defer => &[Decision::Ask],
            Decision::None | Decision::Allow | Decision::Ask | Decision::Block => &[],
        };
        let spoken = nearest.iter().copied().find(|it| self.can(*it)).unwrap_or_default();
        self.answer.decision = spoken;
        let name = if meant == Decision::Block { "refuse" } else { meant.as_str() };
        let cannot = format!("{} cannot {name}", self.place);
        let reason = std::mem::take(&mut self.answer.reason);
        let sentence = match (meant, spoken) {
            // Without a response the client asks as usual, which is weaker than an allow, never
            // stronger.
            (Decision::Allow, _) => String::new(),
            (_, Decision::None) => {
                self.tell_user(&format!("policyd: not enforced, {cannot}: {reason}"));
                String::new()
            }
            (Decision::Halt, _) => {
                self.tell_user(&format!("policyd: {cannot}; end the session yourself: {reason}"));
                reason
            }
            (_, Decision::Block) => {
                format!(
                    "{reason}\nThis needs the user's approval, but {cannot}. Ask the user in your reply."
                )
            }
            (_, _) => reason,
        };
        self.answer.reason = sentence.trim().to_owned();
        self.changed.push(format!("{cannot}; said as `{}`", spoken.as_str()));
    }

    /// Adapts a changed input. `meant`: the decision, because some clients accept a changed input
    /// only with an allow.
    fn input(&mut self, meant: Decision) {
        let Some(input) = self.answer.updated_input.take() else { return };
        if self.answer.refuses() {
            return; // It does not run at all.
        }
        let way = self.moment.way(Capability::Input);
        let needs_allow = way.is_some_and(|it| {
            it.fields.iter().any(|(_, put)| *put == ResponseField::Text("allow"))
        });
        if way.is_some() && (!needs_allow || meant == Decision::Allow) {
            self.answer.updated_input = Some(input);
            return;
        }
        let cannot = format!("the input cannot be changed for {}", self.place);
        if self.comes_before() && self.moment.can(Capability::Block) {
            let reason = format!("{}\nRun it with this input instead: {input}", self.answer.reason);
            self.answer.decision = Decision::Block;
            self.answer.reason = reason.trim().to_owned();
        } else {
            self.tell_user(&format!("policyd: {cannot}"));
        }
        self.changed.push(cannot);
    }

    fn output(&mut self) {
        if self.answer.updated_output.is_none() || self.moment.can(Capability::Output) {
            return;
        }
        self.answer.updated_output = None;
        let cannot = format!("the result cannot be changed for {}", self.place);
        self.tell_user(&format!("policyd: {cannot}, so the agent reads its secrets"));
        self.changed.push(cannot);
    }

    fn context(&mut self) {
        let told = self.answer.context.take().filter(|it| !it.trim().is_empty());
        let Some(text) = told else { return };
        if self.moment.can(Capability::Context) {
            self.answer.context = Some(self.shortened(&text));
            return;
        }
        self.changed.push(format!("{} takes no context", self.place));
        // The instructions for the summarizer are of no use to the user.
        if self.moment.kind == Some(EventKind::PreCompact)
            && self.answer.decision != Decision::Block
        {
            return;
        }
        if self.answer.decision == Decision::Block {
            self.answer.reason = format!("{}\n\n{text}", self.answer.reason).trim().to_owned();
        } else {
            self.tell_user(&format!("policyd: {text}"));
        }
    }

    /// Shortens a context to the size that the client passes to the model unchanged.
    fn shortened(&self, text: &str) -> String {
        let text = cut(text, SPOKEN_CHARS_MAX);
        let bytes_max = self.harness.context_bytes_max;
        if text.len() <= bytes_max {
            return text;
        }
        let notice =
            "\n… [cut; the full report is the last entry of .policyd/logs/decisions.jsonl]";
        format!("{}{notice}", cut_end(&text, bytes_max.saturating_sub(notice.len())))
    }

    fn reason(&mut self) {
        let Some(way) = ability(self.answer.decision).and_then(|it| self.moment.way(it)) else {
            self.answer.reason.clear();
            return;
        };
        // Clients ignore a block without a reason.
        if self.answer.refuses() && self.answer.reason.trim().is_empty() {
            self.answer.reason = "policyd: refused without a reason; it is not done yet".to_owned();
        }
        let said = way.fields.iter().any(|(_, put)| *put == ResponseField::Reason);
        if !said && self.answer.decision > Decision::Allow {
            let reason = std::mem::take(&mut self.answer.reason);
            if !reason.trim().is_empty() {
                self.tell_user(&format!("policyd: {reason}"));
            }
        }
        self.answer.reason = cut(&self.answer.reason, SPOKEN_CHARS_MAX);
    }

    /// Adds how the user can allow what is blocked, if the client shows it to the user.
    fn override_hint(&mut self) {
        let hint = self.answer.override_hint.take();
        if let Some(hint) =
            hint.filter(|_| self.answer.refuses() && self.moment.can(Capability::Notice))
        {
            self.tell_user(&hint);
        }
    }

    fn notice(&mut self) {
        let told = self.answer.notice.take().filter(|it| !it.trim().is_empty());
        let Some(text) = told else { return };
        if self.moment.can(Capability::Notice) {
            self.answer.notice = Some(cut(&text, SPOKEN_CHARS_MAX));
            return;
        }
        // Plain text goes to the summarizer, not to the agent.
        let way = self.moment.way(Capability::Context);
        if way.is_some_and(|it| it.fields.iter().all(|(path, _)| !path.is_empty())) {
            let context = self.answer.context.take().unwrap_or_default();
            let both = format!("{context}\nTell the user: {text}");
            self.answer.context = Some(self.shortened(both.trim()));
        }
        let line = text.lines().next().unwrap_or_default();
        self.changed.push(format!("{} shows the user no notice: {line}", self.place));
    }
}
