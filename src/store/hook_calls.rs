//! The tool calls that hooks saw since the last stop: `tool-calls.log` beside the state of a session.
//! One line per event, fields separated by tabs: `begin ID AGENT`, `end ID AGENT`, `stop TOTAL`,
//! `waited SEQ AGENT`.
//! A cache of evidence: a line that is lost makes a stop less certain, never wrong. Nothing is synced.

use std::path::Path;

use policyd_base::limits::ENDED_CALLS_KEPT_MAX;
use policyd_facts::complete::{HookCall, HookCalls};
use policyd_world::World;

/// Name of the file in the folder of a session.
pub const FILE: &str = "tool-calls.log";

/// Bytes at the end of the file that a stop reads: about 250 calls.
const TAIL_BYTES: usize = 16 * 1024;

/// Event that a line records.
#[derive(Debug, Clone, Copy)]
pub enum CallLine<'a> {
    /// A call is about to run.
    Begin {
        /// Its id, empty where the client names none.
        id: &'a str,
        /// The subagent, empty for the main agent.
        agent: &'a str,
    },
    /// A call ended.
    End {
        /// See `Begin`.
        id: &'a str,
        /// See `Begin`.
        agent: &'a str,
    },
    /// A stop was evaluated.
    Stop {
        /// Tool calls in the transcript.
        total: u64,
    },
    /// A stop waited in vain for the results of calls.
    Waited {
        /// Position in the transcript.
        seq: u64,
        /// See `Begin`.
        agent: &'a str,
    },
}

/// Size in bytes above which a stop begins the file again: only what follows the last stop is read.
const BYTES_MAX: u64 = 256 * 1024;

/// Appends a line to the file in `folder`, which must exist. A failure is ignored: see the module.
pub fn append(world: &dyn World, folder: &Path, line: CallLine<'_>) {
    let path = folder.join(FILE);
    // A separator in an id would make two fields of it.
    let field = |text: &str| text.replace(char::is_control, "");
    let text = match line {
        CallLine::Begin { id, agent } => format!("begin\t{}\t{}\n", field(id), field(agent)),
        CallLine::End { id, agent } => format!("end\t{}\t{}\n", field(id), field(agent)),
        CallLine::Stop { total } => format!("stop\t{total}\n"),
        CallLine::Waited { seq, agent } => format!("waited\t{seq}\t{}\n", field(agent)),
    };
    let ends_turn = matches!(line, CallLine::Stop { .. });
    let full = ends_turn && world.stat(&path).is_ok_and(|it| it.length > BYTES_MAX);
    let _ignored = match full {
        true => world.write(&path, text.as_bytes()),
        false => world.append(&path, text.as_bytes()),
    };
}

/// Reads the calls since the last stop.
#[must_use]
pub fn read(world: &dyn World, folder: &Path) -> HookCalls {
    let mut buffer = vec![0; TAIL_BYTES];
    let bytes = tail(world, folder, &mut buffer).unwrap_or_default();
    parse(&String::from_utf8_lossy(bytes))
}

fn tail<'b>(world: &dyn World, folder: &Path, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let mut file = world.open(&folder.join(FILE)).ok()?;
    let length = file.stat().ok()?.length;
    let start = length.saturating_sub(u64::try_from(buffer.len()).ok()?);
    let mut filled = 0;
    while let Some(free) = buffer.get_mut(filled..).filter(|it| !it.is_empty()) {
        match file.read_at(start.saturating_add(u64::try_from(filled).ok()?), free) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(_) => return None,
        }
    }
    let bytes = buffer.get(..filled)?;
    if start == 0 {
        return Some(bytes);
    }
    // The first line might be the end of one.
    let first = bytes.iter().position(|byte| *byte == b'\n')?;
    bytes.get(first + 1..)
}

fn parse(text: &str) -> HookCalls {
    let mut found = HookCalls::default();
    let mut from_start = true;
    for line in text.lines() {
        let mut fields = line.split('\t');
        let (kind, id) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let agent = fields.next().unwrap_or_default();
        match kind {
            "stop" => {
                found.calls.clear();
                found.total_before = id.parse().ok();
                from_start = false;
            }
            "waited" => {
                found.waited.retain(|it| it.0 != agent);
                found.waited.extend(id.parse().ok().map(|seq| (agent.to_owned(), seq)));
            }
            "begin" | "end" => {
                let ended = kind == "end";
                let same = |it: &&mut HookCall| it.id == id && it.agent == agent;
                let open = |it: &&mut HookCall| !id.is_empty() || !it.ended;
                match found.calls.iter_mut().find(|it| ended && same(it) && open(it)) {
                    Some(call) => call.ended = true,
                    None => {
                        let (id, agent) = (id.to_owned(), agent.to_owned());
                        found.calls.push(HookCall { id, agent, ended });
                    }
                }
            }
            _ => {}
        }
    }
    // Facts know the ends of the last calls only.
    let known = ENDED_CALLS_KEPT_MAX / 2;
    found.calls.drain(..found.calls.len().saturating_sub(known));
    // Without a stop before them, the calls are those of a session that policyd joined at any point.
    if from_start {
        found.total_before = None;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_since_the_last_stop_are_read() {
        let read = parse(
            "begin\ta\t\nend\ta\t\nstop\t1\nbegin\tb\t\nbegin\tc\tsub\nend\tc\tsub\nend\t\t\n",
        );
        let call =
            |id: &str, agent: &str, ended| HookCall { id: id.into(), agent: agent.into(), ended };
        let calls = vec![call("b", "", false), call("c", "sub", true), call("", "", true)];
        assert_eq!(read, HookCalls { calls, total_before: Some(1), waited: Vec::new() });
        assert_eq!(parse("begin\ta\t\n").total_before, None);
        assert_eq!(parse("garbage\nbeg"), HookCalls::default());
    }

    #[test]
    fn what_a_stop_waited_for_is_known_at_later_stops() {
        let read =
            parse("waited\t4\t\nstop\t1\nwaited\t7\tsub\nwaited\t9\t\nstop\t2\nwaited\tx\t\n");
        assert_eq!(read.waited, [("sub".to_owned(), 7)], "an unreadable position is left out");
        let read = parse("waited\t4\t\nstop\t1\nwaited\t9\t\nstop\t2\n");
        assert_eq!(read.waited, [(String::new(), 9)]);
    }
}
