//! Answers that arrive as signed webhooks, such as from a chat. The human who started the dashboard named the key, and
//! each program that has it answers in the name of a human.

use serde::Deserialize;

use super::actions::{self, FormFields};
use super::answer_kind::AnswerKind;
use super::page_context::PageContext;
use super::page_error::PageError;
use super::request::Reply;
use crate::webhook::SignedMessage;
use crate::workspace::human::Actor;

/// The body of a reply.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WebhookReply {
    /// Directory of the project, as the alert names it.
    project: String,
    /// Subject of the alert.
    id: String,
    kind: ReplyKind,
    approve: bool,
    /// Text of the answer to a question.
    #[serde(default)]
    text: String,
    /// Name of the human.
    by: String,
}

/// What a reply answers, by the `kind` of the alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReplyKind {
    Escalation,
    CallRequest,
}

/// Verifies a reply, and records its answer.
///
/// # Errors
/// Why nothing was answered.
pub(super) fn accept(
    context: &PageContext<'_>,
    message: &SignedMessage,
) -> Result<Reply, PageError> {
    let key = context.reply_key.ok_or(PageError::NoPage)?;
    message.verify(key, context.world.now()).map_err(PageError::Signature)?;
    let reply: WebhookReply = serde_json::from_str(&message.body)
        .map_err(|error| PageError::Refused(format!("The reply is invalid: {error}.")))?;
    if reply.by.trim().is_empty() {
        return Err(PageError::Refused("The reply names no human in `by`.".to_owned()));
    }
    let kind = match reply.kind {
        ReplyKind::Escalation => AnswerKind::Escalation,
        ReplyKind::CallRequest => AnswerKind::Call,
    };
    let verdict = if reply.approve { "approve" } else { "reject" };
    let project = match (context.known(&reply.project), reply.kind) {
        // The shared store belongs to no project, so the call of another host is answered through any of this host.
        (Err(_), ReplyKind::CallRequest) => context.any_project().unwrap_or(reply.project),
        (Ok(_) | Err(_), _) => reply.project,
    };
    let fields = [
        ("project", project.as_str()),
        ("kind", kind.as_str()),
        ("id", &reply.id),
        ("verdict", verdict),
        ("decision", &reply.text),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let actor = Actor::of_reply(&reply.by);
    match actions::change(context, "/answer", &actor, &FormFields::from(fields))? {
        None => Ok(Reply::Noted("The answer is recorded.".to_owned())),
        Some(why) => Ok(Reply::Noted(format!("The answer is queued for the shared store: {why}."))),
    }
}
