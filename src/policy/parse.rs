//! Parses the files of a pack and checks their shapes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{builtin, shapes};
use crate::source::node::Node;
use crate::source::shape::Kind;
use crate::source::{Diagnostic, Source, check, suggest, yaml};

/// The files of a pack that could be read, by name.
pub type Files = BTreeMap<&'static str, Node>;

/// Parses every file and checks its shape; unsound files are left out.
pub(super) fn read_files(
    files: &[(String, Arc<Source>)],
    diagnostics: &mut Vec<Diagnostic>,
) -> Files {
    let mut nodes = Files::new();
    for (file, source) in files {
        let node = builtin::tree(file, source).or_else(|| {
            let (node, complaints) = yaml::parse(source);
            diagnostics.extend(complaints);
            node
        });
        let Some(node) = node else { continue };
        let Some(known) = shapes::FILES.iter().find(|it| it.file == file) else {
            diagnostics.push(unknown_file(file, &node));
            continue;
        };
        let before = diagnostics.len();
        if !builtin::wrote(source) {
            // A test holds those of the built-in pack against their shapes.
            check::check(&node, &known.kind, diagnostics);
        }
        if diagnostics.len() == before || matches!(known.kind, Kind::List(_) | Kind::Map(_)) {
            nodes.insert(known.file, node);
        }
    }
    nodes
}

fn unknown_file(file: &str, node: &Node) -> Diagnostic {
    let known: Vec<&str> = shapes::FILES.iter().map(|it| it.file).collect();
    let start = node.span.clone();
    let message = format!("`{file}` is not a file of a pack");
    let found = Diagnostic::error("unknown-file", start, message);
    found.with_help_if(suggest::did_you_mean(file, &known))
}
