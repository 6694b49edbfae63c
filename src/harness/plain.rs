//! The plain protocol, for custom clients, with neutral names in both directions.
//!
//! Input: `{"event": "pre_tool_use", "session_id": "s", "tool": "Bash", "input": {"command":
//! "ls"}}`, and `cwd`, `transcript_path`, `prompt`, `prompt_id`, `agent_id`, `last_message` if they
//! are known. Output: `decision` with `reason`, `notice` for the user, `context` for the agent,
//! `updated_input`, `updated_output`; `{}` without a decision.

use super::client_event::ClientEvent;
use super::payload_fields::rename;
use super::response::{Capability, ResponseField, ResponseTemplate};
use super::row::{AbsenceSigns, Harness, PermissionRules, ProcessSigns};
use policyd_facts::event::EventKind;

/// Allow.
pub(super) const ALLOW: ResponseTemplate = ResponseTemplate {
    says: Capability::Allow,
    fields: &[("decision", ResponseField::Text("allow")), ("reason", ResponseField::Reason)],
};
/// Defer the call.
const DEFER: ResponseTemplate = ResponseTemplate {
    says: Capability::Defer,
    fields: &[("decision", ResponseField::Text("defer")), ("reason", ResponseField::Reason)],
};
/// Question to the user.
pub(super) const ASK: ResponseTemplate = ResponseTemplate {
    says: Capability::Ask,
    fields: &[("decision", ResponseField::Text("ask")), ("reason", ResponseField::Reason)],
};
/// Block.
pub(super) const BLOCK: ResponseTemplate = ResponseTemplate {
    says: Capability::Block,
    fields: &[("decision", ResponseField::Text("block")), ("reason", ResponseField::Reason)],
};
/// End of the session.
const HALT: ResponseTemplate = ResponseTemplate {
    says: Capability::Halt,
    fields: &[("decision", ResponseField::Text("halt")), ("reason", ResponseField::Reason)],
};
/// Context for the agent.
pub(super) const CONTEXT: ResponseTemplate =
    ResponseTemplate { says: Capability::Context, fields: &[("context", ResponseField::Context)] };
/// Changed input of a tool.
pub(super) const INPUT: ResponseTemplate = ResponseTemplate {
    says: Capability::Input,
    fields: &[("updated_input", ResponseField::Input)],
};
/// Changed result of a tool.
const OUTPUT: ResponseTemplate = ResponseTemplate {
    says: Capability::Output,
    fields: &[("updated_output", ResponseField::Output)],
};
/// Notice to the user.
pub(super) const NOTICE: ResponseTemplate =
    ResponseTemplate { says: Capability::Notice, fields: &[("notice", ResponseField::Notice)] };

const WAYS: &[&ResponseTemplate] =
    &[&ALLOW, &DEFER, &ASK, &BLOCK, &HALT, &CONTEXT, &INPUT, &OUTPUT, &NOTICE];

#[expect(
    clippy::indexing_slicing,
    reason = "in a constant an index out of bounds does not compile"
)]
const MOMENTS: [ClientEvent; EventKind::ALL.len()] = {
    let mut all =
        [const { ClientEvent { native: "", kind: None, ways: WAYS } }; EventKind::ALL.len()];
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
    absence: AbsenceSigns { field: "attended", ..AbsenceSigns::NONE },
    reports_blocks: false,
    variable_files: &[],
    transcripts: None,
    permission_rules: PermissionRules::Unread,
    approves_hooks: false,
    context_bytes_max: usize::MAX,
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
