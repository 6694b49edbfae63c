//! Detects the turns of a transcript, and so the stops of a recorded agent.
//!
//! | last event of the turn | followed by | result |
//! |---|---|---|
//! | a text of the agent | a prompt, of the user or of the client | a stop |
//! | any | feedback or summary of Stop hooks | a stop |
//! | a call or its result | a prompt | cut off: the client was killed |
//! | any | an interruption, an API error | cut off: no Stop hook runs |
//!
//! The end of the file counts as a prompt. A queued prompt that the client inserted while the agent
//! was working does not end the turn.

use policyd_facts::record::{Record, RecordEntry};

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnd {
    /// The agent wanted to stop.
    Stop {
        /// Whether a hook sent the agent back to work.
        blocked: bool,
    },
    /// The turn was interrupted or failed.
    CutOff,
}

/// Last action of the agent in this turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Nothing,
    Spoke,
    Worked,
}

/// The current turn.
#[derive(Debug, Default)]
pub struct Turn {
    last: Last,
}

impl Turn {
    /// Processes a record of the agent's chain. Returns how a turn ended before it, if one did.
    pub fn take(&mut self, record: &Record<'_>) -> Option<TurnEnd> {
        let mut ended = None;
        for entry in &record.entries {
            let ending = match entry {
                RecordEntry::Said(text) if !text.trim().is_empty() => {
                    self.last = Last::Spoke;
                    None
                }
                RecordEntry::Call { .. } | RecordEntry::Result(_) | RecordEntry::Done { .. } => {
                    self.last = Last::Worked;
                    None
                }
                RecordEntry::Stopped { feedback } => {
                    self.end(|_| TurnEnd::Stop { blocked: feedback.is_some() })
                }
                RecordEntry::CutOff => self.end(|_| TurnEnd::CutOff),
                RecordEntry::Prompt { queued: false, .. } | RecordEntry::Injected { .. } => {
                    self.finish()
                }
                RecordEntry::Prompt { queued: true, .. }
                | RecordEntry::Said(_)
                | RecordEntry::Asked(_)
                | RecordEntry::Usage(_)
                | RecordEntry::Stopping { .. }
                | RecordEntry::Compacted => None,
            };
            ended = ended.or(ending);
        }
        ended
    }

    /// Ends the turn, as a prompt or the end of the file does.
    pub fn finish(&mut self) -> Option<TurnEnd> {
        self.end(|last| match last {
            Last::Spoke => TurnEnd::Stop { blocked: false },
            Last::Worked | Last::Nothing => TurnEnd::CutOff,
        })
    }

    fn end(&mut self, how: impl FnOnce(Last) -> TurnEnd) -> Option<TurnEnd> {
        let last = std::mem::take(&mut self.last);
        (last != Last::Nothing).then(|| how(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_facts::record;

    /// Returns the endings of a transcript in short form, each with the number of the record after
    /// it.
    fn endings(lines: &[&str]) -> Vec<String> {
        let mut turn = Turn::default();
        let mut found = Vec::new();
        let word = |ending| match ending {
            TurnEnd::Stop { blocked: false } => "stop",
            TurnEnd::Stop { blocked: true } => "blocked",
            TurnEnd::CutOff => "cut off",
        };
        for (line, number) in lines.iter().zip(1..) {
            let line = match *line {
                "prompt" => r#"{"type":"user","message":{"content":"do it"}}"#,
                "said" => {
                    r#"{"type":"assistant","message":{"content":[{"type":"text","text":"so"}]}}"#
                }
                "thought" => {
                    r#"{"type":"assistant","message":{"content":[{"type":"thinking"}],"usage":{"input_tokens":1}}}"#
                }
                "call" => {
                    r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Bash"}]}}"#
                }
                "result" => {
                    r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a"}]}}"#
                }
                "feedback" => {
                    r#"{"type":"user","isMeta":true,"message":{"content":"Stop hook feedback:\nno"}}"#
                }
                "summary" => r#"{"type":"system","subtype":"stop_hook_summary"}"#,
                "meta" => r#"{"type":"user","isMeta":true,"message":{"content":"skill body"}}"#,
                "notice" => {
                    r#"{"type":"user","message":{"content":"<task-notification>done"},"promptId":"q"}"#
                }
                "queued" => {
                    r#"{"type":"attachment","attachment":{"type":"queued_command","prompt":"and this"}}"#
                }
                "interrupted" => {
                    r#"{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#
                }
                "error" => {
                    r#"{"type":"assistant","isApiErrorMessage":true,"message":{"model":"<synthetic>","content":[{"type":"text","text":"API Error"}]}}"#
                }
                other => other,
            };
            let record = record::read(line.as_bytes()).unwrap();
            found.extend(turn.take(&record).map(|it| format!("{number} {}", word(it))));
        }
        found.extend(turn.finish().map(|it| format!("end {}", word(it))));
        found
    }

    #[test]
    fn a_turn_ends_where_the_agent_spoke_last() {
        for (lines, expected) in [
            ("prompt said", "end stop"),
            ("prompt said call result said prompt said", "6 stop, end stop"),
            ("prompt said prompt prompt", "3 stop"),
            ("prompt thought said thought", "end stop"),
            ("prompt said meta prompt", "4 stop"),
            ("prompt", ""),
        ] {
            check(lines, expected);
        }
    }

    #[test]
    fn a_hook_ends_it_and_says_whether_it_blocked() {
        for (lines, expected) in [
            ("prompt said feedback summary call result said summary", "3 blocked, 8 stop"),
            ("prompt said feedback said prompt", "3 blocked, 5 stop"),
            ("prompt said summary prompt", "3 stop"),
            ("prompt call result summary", "4 stop"),
        ] {
            check(lines, expected);
        }
    }

    #[test]
    fn what_broke_off_is_no_stop() {
        for (lines, expected) in [
            ("prompt call prompt said", "3 cut off, end stop"),
            ("prompt call result", "end cut off"),
            ("prompt said interrupted prompt said", "3 cut off, end stop"),
            ("prompt call result error prompt", "4 cut off"),
            ("prompt interrupted", ""),
        ] {
            check(lines, expected);
        }
    }

    #[test]
    fn a_notice_ends_a_turn_and_a_queued_prompt_does_not() {
        check("prompt said notice said", "3 stop, end stop");
        check("prompt call queued result said", "end stop");
    }

    fn check(lines: &str, expected: &str) {
        let lines: Vec<&str> = lines.split(' ').collect();
        assert_eq!(endings(&lines).join(", "), expected, "{lines:?}");
    }
}
