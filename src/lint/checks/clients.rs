//! Checks of what rules ask of one client: events that it does not report, and answers that it does
//! not take.

use crate::subject::PackEntry;
use crate::{Findings, Subject};
use policyd_facts::event::EventKind;
use policyd_harness::{Capability, Harness};
use policyd_yaml::node::Node;

/// Looks where a client is named, `policyd lint --harness NAME`.
pub(crate) fn not_in_harness(subject: &Subject<'_>, out: &mut Findings) {
    let Some(harness) = subject.harness else { return };
    for entry in &subject.entries {
        let needs = needs(entry);
        let written = entry.node.get("on");
        for node in written.into_iter().flat_map(each) {
            if let Some(kind) = node.text().and_then(EventKind::find) {
                look(out, harness, node, kind, &needs);
            }
        }
        // A consideration that names no event is judged at both kinds of stops.
        if written.is_none()
            && entry.file == "considerations.yaml"
            && let Some(kind) = Some(EventKind::Stop)
        {
            look(out, harness, entry.id, kind, &needs);
        }
    }
}

/// The events of a list, or the one that stands alone.
fn each(node: &Node) -> Vec<&Node> {
    node.items().map_or_else(|| vec![node], |items| items.iter().collect())
}

/// What a rule wants to say.
fn needs(entry: &PackEntry<'_>) -> Vec<Capability> {
    let enforced = entry.text("mode").is_none_or(|it| it == "enforce");
    let mut needs = Vec::new();
    match entry.text("decision") {
        Some("deny" | "block") => needs.push(Capability::Block),
        Some("ask") => needs.push(Capability::Ask),
        Some("allow") => needs.push(Capability::Allow),
        Some("defer") => needs.push(Capability::Defer),
        Some("halt") => needs.push(Capability::Halt),
        Some("context") => needs.push(Capability::Context),
        Some("mask") => needs.push(Capability::Output),
        Some(_) => {}
        None if entry.text("severity") == Some("blocker") => needs.push(Capability::Block),
        None => {}
    }
    if entry.node.get("updated_input").is_some() {
        needs.push(Capability::Input);
    }
    if enforced { needs } else { Vec::new() }
}

fn look(out: &mut Findings, harness: &Harness, node: &Node, kind: EventKind, needs: &[Capability]) {
    let (title, event) = (harness.title, kind.name());
    let Some(moment) = harness.moment_of(kind) else {
        let help = "the rule never runs there; add another event under `on`";
        out.help(node.span.clone(), format!("{title} does not report `{event}`"), help);
        return;
    };
    for ability in needs.iter().filter(|it| !moment.can(**it)) {
        let before = event == "pre_tool_use" && moment.can(Capability::Block);
        let becomes = match ability {
            Capability::Allow => "policyd makes no decision, and the client asks as usual",
            Capability::Ask | Capability::Defer | Capability::Input if before => {
                "the decision becomes a block with guidance"
            }
            Capability::Halt if moment.can(Capability::Block) => "the decision becomes a block",
            Capability::Ask
            | Capability::Defer
            | Capability::Input
            | Capability::Output
            | Capability::Halt
            | Capability::Block
            | Capability::Context
            | Capability::Notice => {
                "the user sees a note that the rule was not enforced, if the client shows notes"
            }
        };
        let message = format!("{title} does not support `{}` at `{event}`", ability.as_str());
        out.help(node.span.clone(), message, becomes);
    }
}
