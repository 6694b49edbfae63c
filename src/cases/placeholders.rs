//! Placeholders: `{{name}}` in a case that runs once for each map of `each`. A name without a value
//! is an error, and so is an unused value.

use std::collections::BTreeSet;

use policyd_yaml::node::{Node, NodeKind, Scalar};
use policyd_yaml::{Diagnostic, Span, Suggestion, suggest};

/// Placeholder of a repetition's number (`times`), which is filled after the values of `each`.
pub(super) const NUMBER: &str = "n";

/// Part of a text with placeholders.
#[derive(Debug, PartialEq, Eq)]
enum PlaceholderPart<'t> {
    Text(&'t str),
    Name { name: &'t str, start: usize },
}

/// Splits a text at every `{{name}}`. Other braces are text.
fn pieces(text: &str) -> Vec<PlaceholderPart<'_>> {
    let mut pieces = Vec::new();
    let (mut done, mut at) = (0_usize, 0_usize);
    while let Some(found) = text.get(at..).and_then(|rest| rest.find("{{")) {
        let open = at.saturating_add(found);
        let start = open.saturating_add(2);
        at = start;
        let Some(length) = text.get(start..).and_then(|rest| rest.find("}}")) else { break };
        let name = text.get(start..start.saturating_add(length)).unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            continue;
        }
        pieces.extend(text.get(done..open).map(PlaceholderPart::Text));
        pieces.push(PlaceholderPart::Name { name, start: open });
        done = start.saturating_add(length).saturating_add(2);
        at = done;
    }
    pieces.extend(text.get(done..).map(PlaceholderPart::Text));
    pieces.retain(|it| *it != PlaceholderPart::Text(""));
    pieces
}

/// Returns whether a text contains placeholders.
pub(super) fn names_in(text: &str) -> bool {
    pieces(text).iter().any(|it| matches!(it, PlaceholderPart::Name { .. }))
}

/// Values by name, and the names that were used.
#[derive(Debug)]
pub(super) struct PlaceholderValues<'a> {
    pub(super) values: &'a [(Node, Node)],
    pub(super) used: BTreeSet<String>,
    pub(super) findings: Vec<Diagnostic>,
}

impl<'a> PlaceholderValues<'a> {
    pub(super) fn new(values: &'a [(Node, Node)]) -> Self {
        Self { values, used: BTreeSet::new(), findings: Vec::new() }
    }

    /// Fills the placeholders of a node. A text that consists of one placeholder becomes the value
    /// itself, of any type. Within a text, a list or a map becomes JSON.
    pub(super) fn fill(&mut self, node: &Node) -> Node {
        let kind = match &node.kind {
            NodeKind::Scalar(scalar) => return self.scalar(node, scalar),
            NodeKind::List(items) => NodeKind::List(items.iter().map(|it| self.fill(it)).collect()),
            NodeKind::Map(entries) => NodeKind::Map(
                entries.iter().map(|(key, value)| (self.fill(key), self.fill(value))).collect(),
            ),
            NodeKind::Invalid => NodeKind::Invalid,
        };
        Node { span: node.span.clone(), kind }
    }

    /// Fills the placeholders of a case. Its name is always a text, whatever the values are.
    pub(super) fn fill_case(&mut self, case: &Node) -> Node {
        let NodeKind::Map(entries) = &case.kind else { return self.fill(case) };
        let entries = entries.iter().map(|(key, value)| match (key.text(), value.scalar()) {
            (Some("name"), Some(name)) => (key.clone(), self.text(value, name)),
            _ => (self.fill(key), self.fill(value)),
        });
        let kind = NodeKind::Map(entries.collect());
        Node { span: case.span.clone(), kind }
    }

    fn scalar(&mut self, node: &Node, scalar: &Scalar) -> Node {
        if let [PlaceholderPart::Name { name, start }] = pieces(&scalar.text).as_slice() {
            return self.value(node, name, *start).cloned().unwrap_or_else(|| node.clone());
        }
        self.text(node, scalar)
    }

    fn text(&mut self, node: &Node, scalar: &Scalar) -> Node {
        let pieces = pieces(&scalar.text);
        let mut text = String::with_capacity(scalar.text.len());
        for piece in pieces {
            match piece {
                PlaceholderPart::Text(plain) => text.push_str(plain),
                PlaceholderPart::Name { name, start } => match self.value(node, name, start) {
                    Some(value) => match value.text() {
                        Some(plain) => text.push_str(plain),
                        None => text.push_str(&value.json().to_string()),
                    },
                    None => text.push_str(&format!("{{{{{name}}}}}")),
                },
            }
        }
        Node { span: node.span.clone(), kind: NodeKind::Scalar(Scalar { text, ..scalar.clone() }) }
    }

    fn value(&mut self, node: &Node, name: &str, start: usize) -> Option<&'a Node> {
        let found = self.values.iter().find(|(key, _)| key.text() == Some(name));
        if let Some((_, value)) = found {
            self.used.insert(name.to_owned());
            return Some(value);
        }
        if name != NUMBER {
            let end = start.saturating_add(name.len()).saturating_add(4);
            let span = node.sub_span(start..end);
            let message = format!("`each` has no value `{name}` here");
            let known: Vec<&str> = self.values.iter().filter_map(|(key, _)| key.text()).collect();
            let finding = Diagnostic::error("unknown-placeholder", span, message);
            let inside = start.saturating_add(2)..end.saturating_sub(2);
            self.findings.push(match suggest::nearest(name, &known) {
                Some(near) => finding.suggest(Suggestion::word(near, node.replaced(inside, near))),
                None => finding.with_help_if(suggest::did_you_mean(name, &known)),
            });
        }
        None
    }

    /// Reports the values that no placeholder uses.
    pub(super) fn unused(self, case: &Node) -> Vec<Diagnostic> {
        let Self { values, used, mut findings } = self;
        for (key, _) in values {
            let name = key.text().unwrap_or_default();
            if !used.contains(name) {
                let message = format!("the value `{{{{{name}}}}}` is not used in the case");
                let finding = Diagnostic::error("unused-value", key.span.clone(), message);
                findings.push(match found_in(case, &format!("{{{name}}}")) {
                    Some(span) => finding
                        .with_related(span, "single braces are text")
                        .with_help(format!("write `{{{{{name}}}}}` there")),
                    None => finding.with_help("use it in the case, or remove it"),
                });
            }
        }
        findings
    }
}

/// Returns the location of the first scalar of a node that contains a text.
fn found_in(node: &Node, text: &str) -> Option<Span> {
    match &node.kind {
        NodeKind::Scalar(scalar) => {
            let at = scalar.text.find(text)?;
            Some(node.sub_span(at..at.saturating_add(text.len())))
        }
        NodeKind::List(items) => items.iter().find_map(|it| found_in(it, text)),
        NodeKind::Map(entries) => entries
            .iter()
            .find_map(|(key, value)| found_in(key, text).or_else(|| found_in(value, text))),
        NodeKind::Invalid => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_case_is_a_text_and_other_values_keep_their_type() {
        let text = "case: {name: \"{{c}}\", on: {inputs: {name: \"{{c}}\"}}}\neach: {c: 1}\n";
        let source = policyd_yaml::Source { name: "a".to_owned(), text: text.to_owned() };
        let (node, findings) = policyd_yaml::yaml::parse(&std::sync::Arc::new(source));
        assert_eq!(findings, []);
        let node = node.unwrap();
        let values = node.get("each").unwrap().entries().unwrap().to_vec();
        let case = PlaceholderValues::new(&values).fill_case(node.get("case").unwrap());
        assert_eq!(case.json(), serde_json::json!({"name": "1", "on": {"inputs": {"name": 1}}}));
    }

    #[test]
    fn names_in_double_braces_are_cut_out() {
        let name = |name, start| PlaceholderPart::Name { name, start };
        assert_eq!(
            pieces("a {{b}}c"),
            [PlaceholderPart::Text("a "), name("b", 2), PlaceholderPart::Text("c")]
        );
        assert_eq!(pieces("{{x}}{{y_1}}"), [name("x", 0), name("y_1", 5)]);
        for plain in ["{{ x }}", "{x}", "{{}}", "{{a.b}}", "{{x", "{{{{"] {
            assert_eq!(pieces(plain), [PlaceholderPart::Text(plain)], "{plain}");
        }
    }
}
