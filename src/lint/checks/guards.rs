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
pub(super) fn guards<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = &'s Entry<'s>> {
    FILES.iter().flat_map(|file| subject.of(file))
}

pub(in crate::lint) fn guard_always_fires(subject: &Subject<'_>, out: &mut Findings) {
    for entry in guards(subject) {
        let decision = subject.said(entry, "decision").and_then(Node::text).unwrap_or_default();
        let strong = matches!(decision, "deny" | "block" | "ask" | "halt" | "defer");
        let narrowed =
            ["tools", "commands", "unless"].iter().any(|it| subject.said(entry, it).is_some());
        if !strong || narrowed || entry.is("enabled", false) {
            continue;
        }
        let always =
            match subject.said(entry, "when") {
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

/// Whether a name can be that of a tool of an MCP server: `mcp__server__tool`, up to `*`.
fn is_mcp(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("mcp__") else { return false };
    // `.*` is how the regular expressions of some clients say `*`.
    (rest.contains("__") || rest.contains('*')) && !rest.contains(".*")
}

/// The tools of the server that a name begins with.
fn mcp_glob(name: &str) -> String {
    let name = name.replace(".*", "*");
    if name.ends_with('*') { name } else { format!("{}__*", name.trim_end_matches('_')) }
}

/// What a guard looks at, by the key that lists it.
const FILTERS: [(&str, &str); 3] = [("tools", "tool"), ("commands", "program"), ("on", "event")];

pub(in crate::lint) fn empty_filter(subject: &Subject<'_>, out: &mut Findings) {
    for entry in guards(subject) {
        for (key, what) in FILTERS {
            let Some(list) = entry.node.get(key) else { continue };
            let names = list.one_or_items();
            let empty = names.iter().find(|it| it.text().is_none_or(|it| it.trim().is_empty()));
            if names.is_empty() {
                let message = format!("`{key}` names no {what}");
                out.add(list.span.clone(), message, |it| {
                    it.with_note("a guard without a list of them looks at all")
                        .with_help(format!("name the {what}s, or leave `{key}` out"))
                });
            } else if let Some(empty) = empty {
                let message = format!("`{key}` holds an empty name, which no {what} has");
                out.help(empty.span.clone(), message, "delete it");
            }
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
            // Another client's tool may differ in case alone: it is meant where both are named.
            let real = real_tool(name).filter(|real| !items.iter().any(|it| it.says(real)));
            let other = real.is_some_and(|it| it != name);
            if is_mcp(name) || name == "*" || (!other && known.iter().any(fits)) {
                continue;
            }
            let near = real.or_else(|| suggest::nearest(name, &known));
            let help = match near {
                _ if name.starts_with("mcp__") => format!("write `{}`", mcp_glob(name)),
                Some(near) => format!("did you mean `{near}`?"),
                None => "tools of MCP servers start with `mcp__`".to_owned(),
            };
            out.help(item.span.clone(), format!("no client has a tool `{name}`"), &help);
        }
    }
}
