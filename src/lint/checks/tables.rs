//! Checks of decision tables.

use std::collections::BTreeSet;

use crate::{Findings, Subject};
use policyd_fact_table::ast::ExprKind;
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
                if let ExprKind::Fact(path, _) = &part.kind {
                    let name = path.strip_prefix("given.").and_then(|it| it.split('.').next());
                    used.extend(name.map(str::to_owned));
                }
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
