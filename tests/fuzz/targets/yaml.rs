//! A YAML file: findings and nodes have spans inside the text, a scalar map has the text of its scalar, a stored tree
//! is read back, and masked text contains no secret.

use std::sync::Arc;

use policyd::source::scalar::decoded_map;
use policyd::source::secrets::{mask, secrets};
use policyd::source::{Node, NodeKind, Source, Span, stored, yaml};

pub(super) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    assert_eq!(secrets(&mask(text).0), []);
    let source = Arc::new(Source { name: "fuzz.yaml".to_owned(), text: text.to_owned() });
    let (root, findings) = yaml::parse(&source);
    findings.iter().for_each(|finding| check_span(&finding.span));
    if let Some(root) = root {
        check_node(&root);
        let bytes = stored::write(&root).expect("any tree can be stored");
        assert_eq!(stored::read(&bytes, &source), Some(root));
    }
}

fn check_span(span: &Span) {
    let inside = span.source.text.get(span.start..span.end);
    assert!(inside.is_some(), "{}..{}", span.start, span.end);
}

fn check_node(node: &Node) {
    check_span(&node.span);
    match &node.kind {
        NodeKind::Scalar(scalar) => {
            assert!(decoded_map(node).is_none_or(|map| map.text() == scalar.text));
            check_span(&node.sub_span(0..scalar.text.len()));
        }
        NodeKind::List(items) => items.iter().for_each(check_node),
        NodeKind::Map(entries) => entries.iter().for_each(|(key, value)| {
            check_node(key);
            check_node(value);
        }),
        NodeKind::Invalid => {}
    }
}
