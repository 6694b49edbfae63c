//! A review of packs as JSON, as annotations of GitHub Actions, and its summary as text.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::diagnostics::{FindingRecord, in_order, level_name};
use policyd_lint::SuppressedFinding;
use policyd_lint::baseline::fingerprints;
use policyd_yaml::{Diagnostic, Level};

/// Version of the JSON form; it grows when a field changes its meaning or goes.
pub const VERSION: u32 = 1;

/// What lint found in all packs it looked at.
#[derive(Debug, Default)]
pub struct LintReview {
    /// Files that were read, as they are shown.
    pub files: Vec<String>,
    /// What stands.
    pub findings: Vec<Diagnostic>,
    /// What comments silence.
    pub ignored: Vec<SuppressedFinding>,
    /// What the baseline knows.
    pub known: Vec<Diagnostic>,
    /// Files that could not be read, with the reason.
    pub unreadable: Vec<String>,
}

impl LintReview {
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

/// The output of `policyd lint --format json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LintReport<'a> {
    /// Version of the format.
    #[schemars(range(min = 1, max = 1))]
    version: u32,
    /// Version of policyd.
    #[schemars(length(min = 1))]
    policyd: &'static str,
    /// Files that were read.
    files: &'a [String],
    /// Files that could not be read, with the reason.
    unreadable: &'a [String],
    /// Findings.
    findings: Vec<FindingRecord<'a>>,
    /// Findings that comments suppress.
    ignored: Vec<FindingRecord<'a>>,
    /// Findings of the baseline.
    known: Vec<FindingRecord<'a>>,
    /// Number of findings by severity.
    summary: LevelCounts,
}

/// Number of findings by severity.
#[derive(Debug, Serialize, JsonSchema)]
struct LevelCounts {
    /// Number of errors.
    errors: usize,
    /// Number of warnings.
    warnings: usize,
    /// Number of notes.
    notes: usize,
}

/// Renders the review as a JSON object.
#[must_use]
pub fn json(review: &LintReview) -> Value {
    let ignored = review
        .ignored
        .iter()
        .map(|ignored| FindingRecord::new(&ignored.finding).with_reason(&ignored.reason));
    json!(LintReport {
        version: VERSION,
        policyd: env!("CARGO_PKG_VERSION"),
        files: &review.files,
        unreadable: &review.unreadable,
        findings: with_fingerprints(&in_order(&review.findings)),
        ignored: ignored.collect(),
        known: with_fingerprints(&in_order(&review.known)),
        summary: LevelCounts {
            errors: review.count(Level::Error),
            warnings: review.count(Level::Warning),
            notes: review.count(Level::Note),
        },
    })
}

fn with_fingerprints<'a>(findings: &[&'a Diagnostic]) -> Vec<FindingRecord<'a>> {
    let both = findings.iter().zip(fingerprints(findings));
    both.map(|(finding, print)| FindingRecord::new(finding).with_fingerprint(print)).collect()
}

/// One workflow command for each finding, as GitHub Actions reads them from the output.
#[must_use]
pub fn github(review: &LintReview) -> String {
    let line = |it: &Diagnostic| {
        let level = if it.level == Level::Note { "notice" } else { level_name(it.level) };
        let (line, column) = it.span.line_column();
        let end = policyd_yaml::Span { start: it.span.end, ..it.span.clone() }.line_column();
        // A column means something only where the finding ends on its line.
        let columns = if end.0 == line {
            format!(",col={column},endColumn={}", end.1)
        } else {
            String::new()
        };
        let file = property(&it.span.source.name);
        let title = property(&format!("policyd {}", policyd_lint::code_of(it.code)));
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
pub fn summary(review: &LintReview) -> String {
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
