//! Parses the files of a pack and checks their shapes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{builtin, shapes};
use policyd_yaml::checksum::fingerprint;
use policyd_yaml::memo::Memo;
use policyd_yaml::node::Node;
use policyd_yaml::shape::Kind;
use policyd_yaml::{Diagnostic, Source, check, suggest, yaml};

/// The files of a pack that could be read, by name.
pub type Files = BTreeMap<&'static str, Node>;

/// A parsed file.
struct ParsedFile {
    /// Its name and its tree, unless the file is unsound.
    tree: Option<(&'static str, Node)>,
    findings: Vec<Diagnostic>,
}

/// Parses every file and checks its shape; unsound files are left out.
pub(super) fn read_files(
    files: &[(String, Arc<Source>)],
    memo: &Memo,
    diagnostics: &mut Vec<Diagnostic>,
) -> Files {
    let mut nodes = Files::new();
    for (file, source) in files {
        let name = fingerprint(&[file]);
        let read = memo.of_source("read_file", name, source, || read_file(file, source));
        diagnostics.extend_from_slice(&read.findings);
        nodes.extend(read.tree.clone());
    }
    nodes
}

fn read_file(file: &str, source: &Arc<Source>) -> ParsedFile {
    let mut findings = Vec::new();
    let node = builtin::tree(file, source).or_else(|| {
        let (node, complaints) = yaml::parse(source);
        findings.extend(complaints);
        node
    });
    let Some(node) = node else { return ParsedFile { tree: None, findings } };
    let Some(known) = shapes::FILES.iter().find(|it| it.file == file) else {
        findings.push(unknown_file(file, &node));
        return ParsedFile { tree: None, findings };
    };
    let before = findings.len();
    if !builtin::wrote(source) {
        // A test holds those of the built-in pack against their shapes.
        check::check(&node, &known.kind, &mut findings);
    }
    let is_sound = findings.len() == before || matches!(known.kind, Kind::List(_) | Kind::Map(_));
    ParsedFile { tree: is_sound.then_some((known.file, node)), findings }
}

fn unknown_file(file: &str, node: &Node) -> Diagnostic {
    let known: Vec<&str> = shapes::FILES.iter().map(|it| it.file).collect();
    let start = node.span.clone();
    let message = format!("`{file}` is not a file of a pack");
    let found = Diagnostic::error("unknown-file", start, message);
    found.with_help_if(suggest::did_you_mean(file, &known))
}
