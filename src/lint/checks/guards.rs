//! Checks of guards.

use super::expressions::{TOOLS, real_tool};
use crate::facts::glob::word_matches;
use crate::lint::subject::Entry;
use crate::lint::{Findings, Subject};
use crate::policy::guards::FILES;
use crate::script::tree::Form;
use crate::source::node::Node;
use crate::source::suggest;

/// The guards that the pack itself writes.
fn guards<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = &'s Entry<'s>> {
    FILES.iter().flat_map(|file| subject.of(file))
}

/// What a guard says under a key, also by what it changes.
fn said<'s>(subject: &Subject<'s>, entry: &Entry<'s>, key: &str) -> Option<&'s Node> {
    entry.node.get(key).or_else(|| subject.inherited(entry)?.get(key)).filter(|it| !it.is_null())
}

pub(in crate::lint) fn guard_always_fires(subject: &Subject<'_>, out: &mut Findings) {
    for entry in FILES.iter().flat_map(|file| subject.of(file)) {
        let decision = said(subject, entry, "decision").and_then(Node::text).unwrap_or_default();
        let strong = matches!(decision, "deny" | "block" | "ask" | "halt" | "defer");
        let narrowed =
            ["tools", "commands", "unless"].iter().any(|it| said(subject, entry, it).is_some());
        if !strong || narrowed || entry.is("enabled", false) {
            continue;
        }
        let always =
            match said(subject, entry, "when") {
                None => true,
                Some(_) => subject.sites_of(entry).iter().filter(|it| it.key == "when").any(|it| {
                    matches!(it.term.as_ref().map(|it| &it.form), Some(Form::Bool(true)))
                }),
            };
        if always {
            let message = format!("`{}` fires at every call of every tool", entry.name());
            let help = "say which: `tools: [Bash]`, `commands: [deploy]`, or `when`";
            out.help(entry.id.span.clone(), message, help);
        }
    }
}

pub(in crate::lint) fn unknown_guard_tool(subject: &Subject<'_>, out: &mut Findings) {
    for entry in guards(subject) {
        let items = entry.node.get("tools").and_then(Node::items).unwrap_or_default();
        for item in items {
            let name = item.text().unwrap_or_default();
            let known: Vec<&str> = subject.reviewed.meant.tools().chain(TOOLS).collect();
            let fits = |it: &&str| word_matches(name, it);
            if name.starts_with("mcp__") || name == "*" || known.iter().any(fits) {
                continue;
            }
            let near = real_tool(name).or_else(|| suggest::nearest(name, &known));
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "tools of MCP servers start with `mcp__`".to_owned(),
            };
            out.help(item.span.clone(), format!("no client has a tool `{name}`"), &help);
        }
    }
}
