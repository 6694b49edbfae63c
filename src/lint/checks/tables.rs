//! Checks of decision tables.

use std::collections::BTreeSet;

use crate::{Findings, Subject};
use policyd_yaml::node::Node;

pub(crate) fn unused_input(subject: &Subject<'_>, out: &mut Findings) {
    for table in subject.of("tables.yaml") {
        let mut used = BTreeSet::new();
        let sites = subject.sites_of(table);
        if sites.iter().any(|it| it.term.is_none()) {
            continue; // What cannot be read may use anything.
        }
        for site in sites {
            site.visit(|part| {
                let given = part.fact().filter(|it| it.begins_with("given"));
                used.extend(given.and_then(|it| it.steps().next()).map(|it| it.name));
            });
        }
        let inputs = table.node.get("inputs").and_then(Node::entries).unwrap_or_default();
        for (key, _) in
            inputs.iter().filter(|(it, _)| it.text().is_some_and(|it| !used.contains(it)))
        {
            let name = key.text().unwrap_or_default();
            let message = format!("no row uses the input `{name}`");
            out.help(key.span.clone(), message, "remove it, or add the missing row");
        }
    }
}
