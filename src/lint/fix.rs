//! Fixes of findings as changes of whole files.

use std::collections::BTreeMap;
use std::sync::Arc;

use policyd_yaml::{Diagnostic, Fix, Source, Span};

/// One file before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file as it is.
    pub source: Arc<Source>,
    /// Its text with the fixes made.
    pub text: String,
    /// Fixes that were made.
    pub fixes: usize,
}

/// The edits that fix findings in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdits {
    /// The file as it is.
    pub source: Arc<Source>,
    /// Spans and their replacements. Spans do not overlap.
    pub edits: Vec<(Span, String)>,
    /// Fixes that the edits make.
    pub fixes: usize,
}

/// Selects the fixes that are wanted; of two that overlap the first one is made.
#[must_use]
pub fn edits(findings: &[Diagnostic], wanted: impl Fn(&Fix) -> bool) -> Vec<FileEdits> {
    let mut files: BTreeMap<String, FileEdits> = BTreeMap::new();
    for fix in findings.iter().filter_map(|it| it.fix.as_ref()).filter(|it| wanted(it)) {
        let Some((first, _)) = fix.edits.first() else { continue };
        let known = files.entry(first.source.name.clone());
        let source = Arc::clone(&first.source);
        let FileEdits { edits, fixes, .. } =
            known.or_insert_with(|| FileEdits { source, edits: Vec::new(), fixes: 0 });
        let of_file = fix.edits.iter().all(|(span, _)| span.source == first.source);
        let free = fix.edits.iter().all(|(span, _)| edits.iter().all(|(it, _)| !overlap(it, span)));
        if of_file && free {
            edits.extend(fix.edits.iter().cloned());
            *fixes += 1;
        }
    }
    files.into_values().collect()
}

/// Makes the fixes that are wanted in the texts of the files.
#[must_use]
pub fn changes(findings: &[Diagnostic], wanted: impl Fn(&Fix) -> bool) -> Vec<Change> {
    let changed = edits(findings, wanted).into_iter().map(|FileEdits { source, edits, fixes }| {
        let text = edited(&source.text, edits);
        Change { source, text, fixes }
    });
    changed.filter(|it| it.text != it.source.text).collect()
}

/// Whether two places share a byte, or begin at the same one.
fn overlap(one: &Span, other: &Span) -> bool {
    one.start == other.start || (one.start < other.end && other.start < one.end)
}

fn edited(text: &str, mut edits: Vec<(Span, String)>) -> String {
    edits.sort_by_key(|(span, _)| span.start);
    let (mut after, mut at) = (String::with_capacity(text.len()), 0);
    for (span, new) in edits {
        after.push_str(text.get(at..span.start).unwrap_or_default());
        after.push_str(&new);
        at = span.end;
    }
    after.push_str(text.get(at..).unwrap_or_default());
    after
}
