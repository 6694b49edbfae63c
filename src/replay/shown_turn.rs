//! One recorded turn as a reader sees it: the prompt, what the agent said, and what it called.
//!
//! Contains: [`RecordedTurn`]. Does not contain: results of calls, which can be long.

use policyd_facts::Facts;
use policyd_facts::record::{self, RecordEntry};

use super::calls::{RecordedCall, calls};
use policyd_facts::call_subject::subject;

/// Steps of a turn that are kept: the last ones before the place.
const STEPS_MAX: usize = 30;

/// A turn of a transcript up to a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedTurn {
    /// Prompt of the user. Empty if the client wrote it.
    pub prompt: String,
    /// What the agent did, the oldest first.
    pub steps: Vec<TurnStep>,
    /// Number of earlier steps that are left out.
    pub left_out: usize,
    /// Number of the last line that was taken.
    line: u64,
}

/// A step of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnStep {
    /// A text.
    Said(String),
    /// A tool call: the tool, and its command or file.
    Called { tool: String, subject: String },
}

impl RecordedTurn {
    /// Takes the next line. Returns whether the place is reached: the line of a tool call, or the end of a turn whose last
    /// action is at that line.
    pub fn take(&mut self, line: &[u8], place: u64, is_call: bool) -> bool {
        self.line = self.line.saturating_add(1);
        let is_over = self.line > place;
        let Some(record) = record::read(line) else { return is_over && is_call };
        for entry in &record.entries {
            match entry {
                RecordEntry::Prompt { queued: false, .. } | RecordEntry::Injected { .. }
                    if is_over =>
                {
                    return true;
                }
                RecordEntry::Prompt { text, queued: false, .. } => self.begin(text),
                RecordEntry::Injected { .. } => self.begin(""),
                RecordEntry::Said(text) if !text.trim().is_empty() => {
                    self.add(TurnStep::Said(text.trim().to_owned()));
                }
                RecordEntry::Stopped { .. } if is_over => return true,
                RecordEntry::Prompt { .. }
                | RecordEntry::Said(_)
                | RecordEntry::Stopped { .. }
                | RecordEntry::CutOff
                | RecordEntry::Asked(_)
                | RecordEntry::Call { .. }
                | RecordEntry::Result(_)
                | RecordEntry::Done { .. }
                | RecordEntry::Stopping { .. }
                | RecordEntry::Usage(_)
                | RecordEntry::Compacted => {}
            }
        }
        for RecordedCall { tool, input, .. } in calls(line, &record, &Facts::default()) {
            let subject = subject(&tool, &input);
            self.add(TurnStep::Called { tool, subject });
        }
        is_call && self.line >= place
    }

    fn begin(&mut self, prompt: &str) {
        *self = Self { prompt: prompt.trim().to_owned(), line: self.line, ..Self::default() };
    }

    fn add(&mut self, step: TurnStep) {
        self.steps.push(step);
        if self.steps.len() > STEPS_MAX {
            self.steps.remove(0);
            self.left_out = self.left_out.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 6] = [
        r#"{"type":"user","message":{"content":"first"}}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"done"}]}}"#,
        r#"{"type":"user","message":{"content":"second"}}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"ls"}}]}}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"so"}]}}"#,
        r#"{"type":"user","message":{"content":"third"}}"#,
    ];

    fn turn(place: u64, is_call: bool) -> RecordedTurn {
        let mut turn = RecordedTurn::default();
        let mut lines = LINES.iter();
        let _reached = lines.any(|line| turn.take(line.as_bytes(), place, is_call));
        turn
    }

    #[test]
    fn a_turn_begins_at_its_prompt_and_ends_at_the_place() {
        let called = TurnStep::Called { tool: "Bash".to_owned(), subject: "ls".to_owned() };
        let stop = turn(5, false);
        assert_eq!((stop.prompt.as_str(), stop.steps.len()), ("second", 2));
        let call = turn(4, true);
        assert_eq!((call.prompt.as_str(), call.steps), ("second", vec![called]));
        assert_eq!(turn(2, false).prompt, "first");
    }
}
