//! Merges the texts and decisions of rules into the answer of an event. Each function takes an answer and returns it
//! with what it adds.

use policyd_base::limits::SPOKEN_CHARS_MAX;
use policyd_evaluation::combine::Decision;
use policyd_evaluation::guards::GuardsOutcome;
use policyd_evaluation::message::cut;
use policyd_facts::event::Event;
use policyd_harness::Capability;
use policyd_hook::HookResponse;
use policyd_record::mask::{mask, mask_json};

use super::reactions::ReactionOutcome;
use super::request::Request;

/// Adds the notice and the texts of reactions.
pub(super) fn add_reactions(
    answer: HookResponse,
    request: &Request<'_>,
    reactions: &ReactionOutcome,
) -> HookResponse {
    let notice = joined(answer.notice, reactions.notice.clone(), "\n");
    add_reaction_text(HookResponse { notice, ..answer }, request, &reactions.text)
}

/// Adds a text of reactions: for the agent if the event permits it, else for the user.
pub(super) fn add_reaction_text(
    answer: HookResponse,
    request: &Request<'_>,
    text: &str,
) -> HookResponse {
    if text.trim().is_empty() {
        return answer;
    }
    let text = masked(text);
    if request.caller.harness.can(request.event.kind, Capability::Context) {
        let context = joined(answer.context, Some(text), "\n");
        HookResponse { context: context.map(|it| cut(&it, SPOKEN_CHARS_MAX)), ..answer }
    } else {
        let notice = joined(answer.notice, Some(format!("policyd: {text}")), "\n");
        HookResponse { notice, ..answer }
    }
}

/// Adds a text about the context window, in a separate paragraph. `text` is masked already.
pub(super) fn add_context_text(answer: HookResponse, text: Option<String>) -> HookResponse {
    let context = joined(answer.context, text, "\n\n");
    HookResponse { context: context.map(|it| cut(&it, SPOKEN_CHARS_MAX)), ..answer }
}

/// Adds the decision and the texts of guards.
pub(super) fn add_guards(
    answer: HookResponse,
    event: &Event,
    guards: &GuardsOutcome,
    override_hint: Option<String>,
) -> HookResponse {
    let join = |earlier: Option<String>, text: &str| joined(earlier, Some(masked(text)), "\n");
    let (decision, reason) = match guards.decision > answer.decision {
        true => (guards.decision, masked(&guards.reason)),
        false => (answer.decision, answer.reason),
    };
    // The tool of a blocked call does not run, so it needs no input.
    let updated_input = match guards.decision {
        Decision::Block | Decision::Halt => None,
        Decision::None | Decision::Allow | Decision::Defer | Decision::Ask => {
            guards.updated_input.clone()
        }
    };
    let updated_output = match guards.masks {
        true => {
            let mut output = event.tool_response.clone();
            mask_json(&mut output);
            Some(output)
        }
        false => answer.updated_output,
    };
    HookResponse {
        decision,
        reason,
        notice: join(answer.notice, &guards.notice),
        override_hint: override_hint.or(answer.override_hint),
        context: join(answer.context, &guards.context),
        updated_input,
        updated_output,
    }
}

/// Combines the answers of two layers of rules. The decision of `stronger` wins, with its reason and its hint. Notices and
/// contexts of both are kept, and both reasons of equal decisions.
pub(super) fn combine_layers(stronger: HookResponse, weaker: HookResponse) -> HookResponse {
    let join = |one: Option<String>, other: Option<String>| joined(one, other, "\n");
    let is_equal = weaker.decision == stronger.decision;
    let updated_input = match stronger.refuses() {
        true => stronger.updated_input,
        false => stronger.updated_input.or(weaker.updated_input),
    };
    HookResponse {
        decision: stronger.decision,
        reason: match is_equal && weaker.decision != Decision::None {
            true => format!("{}\n{}", stronger.reason, weaker.reason),
            false => stronger.reason,
        },
        notice: join(stronger.notice, weaker.notice),
        override_hint: stronger.override_hint,
        context: join(stronger.context, weaker.context),
        updated_input,
        updated_output: stronger.updated_output.or(weaker.updated_output),
    }
}

/// Joins two texts by a separator. An empty text counts as absent.
fn joined(one: Option<String>, other: Option<String>, separator: &str) -> Option<String> {
    let texts = one.into_iter().chain(other).filter(|it| !it.trim().is_empty());
    texts.reduce(|one, other| format!("{one}{separator}{other}"))
}

/// Returns a text without secrets, cut to what an answer may contain.
fn masked(text: &str) -> String {
    cut(&mask(text).0, SPOKEN_CHARS_MAX)
}
