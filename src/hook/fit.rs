//! Fits an answer to what an event of a client can take: nothing is ever rendered into a field that
//! is not honoured there. What cannot be said becomes the nearest honest thing, and that is told.
//!
//! | meant | where it cannot be said |
//! |---|---|
//! | halt | block; where neither can be, the user is told |
//! | block | the user is told that it was not enforced |
//! | ask, defer | a question; before something happens a block that says to ask the user; else the user is told |
//! | allow | silence: the client asks as it would |
//! | another input | before a tool runs a block that names the input; else the user is told |
//! | another result | the user is told that the result is unchanged |
//! | context | added to the reason of a block; before a compaction nothing; else the user is told |
//! | notice | the agent is told, where it can be without keeping it going; else nobody, which is logged |

use super::{Answer, Caller};
use crate::facts::event::EventKind;
use crate::harness::{Ability, Harness, Moment, Put};
use crate::judge::combine::Decision;
use crate::judge::message::cut;
use crate::limits::SPOKEN_CHARS_MAX;

/// An answer that its event takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The answer.
    pub answer: Answer,
    /// What could not be said as it was meant, one line each.
    pub changed: Vec<String>,
}

/// What says a decision; nothing says that there is none.
#[must_use]
pub const fn ability(decision: Decision) -> Option<Ability> {
    match decision {
        Decision::None => None,
        Decision::Allow => Some(Ability::Allow),
        Decision::Defer => Some(Ability::Defer),
        Decision::Ask => Some(Ability::Ask),
        Decision::Block => Some(Ability::Block),
        Decision::Halt => Some(Ability::Halt),
    }
}

/// Fits an answer to its caller.
#[must_use]
pub fn fit(caller: Caller, answer: &Answer) -> Fitted {
    let Some(moment) = caller.moment else {
        let nothing = *answer == Answer::default();
        let why = format!("{} has no such event, so nothing can be said", caller.harness.title);
        let changed = if nothing { Vec::new() } else { vec![why] };
        return Fitted { answer: Answer::default(), changed };
    };
    let place = format!("{} at {}", caller.harness.title, moment.native);
    let mut fitting = Fitting {
        harness: caller.harness,
        moment,
        place,
        answer: answer.clone(),
        changed: Vec::new(),
    };
    fitting.decision();
    fitting.input(answer.decision);
    fitting.output();
    fitting.context();
    fitting.reason();
    fitting.notice();
    Fitted { answer: fitting.answer, changed: fitting.changed }
}

/// The beginning of a text, at most so many bytes, cut between characters.
fn cut_end(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

struct Fitting {
    harness: &'static Harness,
    moment: &'static Moment,
    /// Who it is said to, for people.
    place: String,
    answer: Answer,
    changed: Vec<String>,
}

impl Fitting {
    fn can(&self, decision: Decision) -> bool {
        ability(decision).is_none_or(|it| self.moment.can(it))
    }

    /// Whether something is about to happen, so that refusing it is the safe side of a question.
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
            // Without a word the client does what it would: that is less than an allow, never more.
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

    /// `meant`: a changed input may need the allow that alone says nothing.
    fn input(&mut self, meant: Decision) {
        let Some(input) = self.answer.updated_input.take() else { return };
        if self.answer.refuses() {
            return; // It does not run at all.
        }
        let way = self.moment.way(Ability::Input);
        let needs_allow =
            way.is_some_and(|it| it.fields.iter().any(|(_, put)| *put == Put::Text("allow")));
        if way.is_some() && (!needs_allow || meant == Decision::Allow) {
            self.answer.updated_input = Some(input);
            return;
        }
        let cannot = format!("the input cannot be changed for {}", self.place);
        if self.comes_before() && self.moment.can(Ability::Block) {
            let reason = format!("{}\nRun it with this input instead: {input}", self.answer.reason);
            self.answer.decision = Decision::Block;
            self.answer.reason = reason.trim().to_owned();
        } else {
            self.tell_user(&format!("policyd: {cannot}"));
        }
        self.changed.push(cannot);
    }

    fn output(&mut self) {
        if self.answer.updated_output.is_none() || self.moment.can(Ability::Output) {
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
        if self.moment.can(Ability::Context) {
            self.answer.context = Some(self.shortened(&text));
            return;
        }
        self.changed.push(format!("{} takes no context", self.place));
        // What the compactor should keep is of no use to the user.
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

    /// A context that the client hands to the model as it is.
    fn shortened(&self, text: &str) -> String {
        let text = cut(text, SPOKEN_CHARS_MAX);
        let bytes_max = self.harness.context_bytes_max();
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
        // A refusal without a reason is not honoured.
        if self.answer.refuses() && self.answer.reason.trim().is_empty() {
            self.answer.reason = "policyd: refused without a reason; it is not done yet".to_owned();
        }
        let said = way.fields.iter().any(|(_, put)| *put == Put::Reason);
        if !said && self.answer.decision > Decision::Allow {
            let reason = std::mem::take(&mut self.answer.reason);
            if !reason.trim().is_empty() {
                self.tell_user(&format!("policyd: {reason}"));
            }
        }
        self.answer.reason = cut(&self.answer.reason, SPOKEN_CHARS_MAX);
    }

    fn notice(&mut self) {
        let told = self.answer.notice.take().filter(|it| !it.trim().is_empty());
        let Some(text) = told else { return };
        if self.moment.can(Ability::Notice) {
            self.answer.notice = Some(cut(&text, SPOKEN_CHARS_MAX));
            return;
        }
        // What is printed as it is goes to whoever summarises, not to the agent.
        let way = self.moment.way(Ability::Context);
        if way.is_some_and(|it| it.fields.iter().all(|(path, _)| !path.is_empty())) {
            let context = self.answer.context.take().unwrap_or_default();
            let both = format!("{context}\nTell the user: {text}");
            self.answer.context = Some(self.shortened(both.trim()));
        }
        let line = text.lines().next().unwrap_or_default();
        self.changed.push(format!("{} shows the user no notice: {line}", self.place));
    }
}
