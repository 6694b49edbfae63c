//! A review of packs as JSON, as annotations of GitHub Actions, and its summary for people.

use serde_json::{Value, json};

use super::diagnostics::{in_order, level_name, merged, object};
use crate::lint::Ignored;
use crate::lint::baseline::fingerprints;
use crate::source::{Diagnostic, Level};

/// Version of the JSON form; it grows when a field changes its meaning or goes.
pub const VERSION: u32 = 1;

/// What lint found in all packs it looked at.
#[derive(Debug, Default)]
pub struct Review {
    /// Files that were read, as they are shown.
    pub files: Vec<String>,
    /// What stands.
    pub findings: Vec<Diagnostic>,
    /// What comments silence.
    pub ignored: Vec<Ignored>,
    /// What the baseline knows.
    pub known: Vec<Diagnostic>,
    /// What could not be read, for people.
    pub unreadable: Vec<String>,
}

impl Review {
    /// How many findings of a level stand.
    #[must_use]
    pub fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|it| it.level == level).count()
    }

    /// How many findings `--fix` would cure, and how many of those change no decision.
    fn fixable(&self) -> (usize, usize) {
        let fixes = || self.findings.iter().filter_map(|it| it.fix.as_ref());
        (fixes().count(), fixes().filter(|it| it.safe).count())
    }
}

/// The review as one object.
#[must_use]
pub fn json(review: &Review) -> Value {
    let ignored =
        review.ignored.iter().map(|it| merged(object(&it.finding), json!({ "reason": it.reason })));
    json!({
        "version": VERSION,
        "policyd": env!("CARGO_PKG_VERSION"),
        "files": review.files,
        "unreadable": review.unreadable,
        "findings": with_fingerprints(&in_order(&review.findings)),
        "ignored": ignored.collect::<Vec<Value>>(),
        "known": with_fingerprints(&in_order(&review.known)),
        "summary": {
            "errors": review.count(Level::Error),
            "warnings": review.count(Level::Warning),
            "notes": review.count(Level::Note),
        },
    })
}

fn with_fingerprints(findings: &[&Diagnostic]) -> Vec<Value> {
    let prints = fingerprints(findings);
    let both = findings.iter().zip(prints);
    both.map(|(it, print)| merged(object(it), json!({ "fingerprint": print }))).collect()
}

/// One workflow command for each finding, as GitHub Actions reads them from the output.
#[must_use]
pub fn github(review: &Review) -> String {
    let line = |it: &Diagnostic| {
        let level = if it.level == Level::Note { "notice" } else { level_name(it.level) };
        let (line, column) = it.span.line_column();
        let end = crate::source::Span { start: it.span.end, ..it.span.clone() }.line_column();
        // A column means something only where the finding ends on its line.
        let columns = if end.0 == line {
            format!(",col={column},endColumn={}", end.1)
        } else {
            String::new()
        };
        let file = property(&it.span.source.name);
        let title = property(&format!("policyd {}", crate::lint::code_of(it.code)));
        let help = it.help.as_ref().map_or_else(String::new, |help| format!("\nhelp: {help}"));
        let text = data(&format!("{}{help}", it.message));
        let end = end.0;
        format!("::{level} file={file},line={line},endLine={end}{columns},title={title}::{text}\n")
    };
    let unreadable =
        review.unreadable.iter().map(|it| format!("::error title=policyd::{}\n", data(it)));
    in_order(&review.findings).into_iter().map(line).chain(unreadable).collect()
}

/// Text of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// How it stands, in one line.
#[must_use]
pub fn summary(review: &Review) -> String {
    let counted = |number: usize, what: &str| {
        format!("{number} {what}{}", if number == 1 { "" } else { "s" })
    };
    let mut parts = vec![counted(review.files.len(), "file")];
    parts.push(counted(review.count(Level::Error), "error"));
    parts.push(counted(review.count(Level::Warning), "warning"));
    for (number, what) in
        [(review.count(Level::Note), "note"), (review.unreadable.len(), "unreadable file")]
    {
        parts.extend((number > 0).then(|| counted(number, what)));
    }
    let (fixable, safe) = review.fixable();
    for (number, what) in
        [(review.ignored.len(), "ignored"), (review.known.len(), "in the baseline")]
    {
        parts.extend((number > 0).then(|| format!("{number} {what}")));
    }
    if fixable > 0 {
        parts.push(match (safe, fixable - safe) {
            (safe, 0) => format!("{safe} fixable by --fix"),
            (0, more) => format!("{more} fixable by --fix=all"),
            (safe, more) => format!("{safe} fixable by --fix, {more} more by --fix=all"),
        });
    }
    format!("{}\n", parts.join(", "))
}
