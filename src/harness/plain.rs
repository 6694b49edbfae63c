//! The plain protocol, for custom clients, with neutral names in both directions.
//!
//! Input: `{"event": "pre_tool_use", "session_id": "s", "tool": "Bash", "input": {"command":
//! "ls"}}`, and `cwd`, `transcript_path`, `prompt`, `prompt_id`, `agent_id`, `last_message` if they
//! are known. Output: `decision` with `reason`, `notice` for the user, `context` for the agent,
//! `updated_input`, `updated_output`; `{}` without a decision.

use super::{Ability, Harness, Moment, ProcessSigns, Put, Way, rename};
use crate::facts::event::EventKind;

/// Allow.
pub(super) const ALLOW: Way = Way {
    says: Ability::Allow,
    fields: &[("decision", Put::Text("allow")), ("reason", Put::Reason)],
};
/// Defer the call.
const DEFER: Way = Way {
    says: Ability::Defer,
    fields: &[("decision", Put::Text("defer")), ("reason", Put::Reason)],
};
/// Question to the user.
pub(super) const ASK: Way =
    Way { says: Ability::Ask, fields: &[("decision", Put::Text("ask")), ("reason", Put::Reason)] };
/// Block.
pub(super) const BLOCK: Way = Way {
    says: Ability::Block,
    fields: &[("decision", Put::Text("block")), ("reason", Put::Reason)],
};
/// End of the session.
const HALT: Way = Way {
    says: Ability::Halt,
    fields: &[("decision", Put::Text("halt")), ("reason", Put::Reason)],
};
/// Context for the agent.
pub(super) const CONTEXT: Way =
    Way { says: Ability::Context, fields: &[("context", Put::Context)] };
/// Changed input of a tool.
pub(super) const INPUT: Way =
    Way { says: Ability::Input, fields: &[("updated_input", Put::Input)] };
/// Changed result of a tool.
const OUTPUT: Way = Way { says: Ability::Output, fields: &[("updated_output", Put::Output)] };
/// Notice to the user.
pub(super) const NOTICE: Way = Way { says: Ability::Notice, fields: &[("notice", Put::Notice)] };

const WAYS: &[&Way] = &[&ALLOW, &DEFER, &ASK, &BLOCK, &HALT, &CONTEXT, &INPUT, &OUTPUT, &NOTICE];

#[expect(
    clippy::indexing_slicing,
    reason = "in a constant an index out of bounds does not compile"
)]
const MOMENTS: [Moment; EventKind::ALL.len()] = {
    let mut all = [const { Moment { native: "", kind: None, ways: WAYS } }; EventKind::ALL.len()];
    let mut at = 0;
    while at < all.len() {
        all[at].native = EventKind::ALL[at].name();
        all[at].kind = Some(EventKind::ALL[at]);
        at += 1;
    }
    all
};

/// Row of this client.
pub const HARNESS: Harness = Harness {
    name: "plain",
    title: "plain JSON",
    moments: &MOMENTS,
    tools: &[],
    inputs: &[],
    silence: "{}",
    signs: |payload| payload.contains_key("event") && !payload.contains_key("hook_event_name"),
    variable: "",
    process: ProcessSigns { variables: &[], programs: &[], packages: &[] },
    neutral: |_, payload| {
        for (native, neutral) in [
            ("event", "hook_event_name"),
            ("tool", "tool_name"),
            ("input", "tool_input"),
            ("last_message", "last_assistant_message"),
        ] {
            rename(payload, native, neutral);
        }
        true
    },
};
