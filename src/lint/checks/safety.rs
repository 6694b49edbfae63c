//! Checks of settings that may do harm.

use crate::{Findings, Subject};
use policyd_yaml::node::Node;

pub(crate) fn block_on_error(subject: &Subject<'_>, out: &mut Findings) {
    let manifest = subject.file("policyd.yaml").and_then(|it| it.get("on_error"));
    let own = subject.of("considerations.yaml").filter_map(|it| it.node.get("on_error"));
    for node in manifest.into_iter().chain(own).filter(|it| it.text() == Some("block")) {
        out.add(node.span.clone(), "a rule that cannot be evaluated blocks the agent", |it| {
            it.with_note("the agent cannot fix an error in the pack")
                .with_help("write `allow` or `warn`, or suppress this finding with a reason")
        });
    }
}

pub(crate) fn disabled_guard_set(subject: &Subject<'_>, out: &mut Findings) {
    if !out.is_strict() {
        return;
    }
    let sets = subject.file("policyd.yaml").and_then(|it| it.get("guard_sets"));
    for (name, value) in sets.and_then(Node::entries).unwrap_or_default() {
        if value.bool() == Some(false) {
            let message =
                format!("the guards of `{}` are disabled", name.text().unwrap_or_default());
            out.add(value.span.clone(), message, |it| {
                it.with_note("including guards that later versions add").with_help(
                    "disable single guards with a `reason`, or suppress this finding with one",
                )
            });
        }
    }
}
