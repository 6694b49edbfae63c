//! Findings that were there before: a file that names them, so that only new ones count.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{code_of, find};
use policyd_policy::builtin;
use policyd_shell::path::normal;
use policyd_yaml::checksum::checksum;
use policyd_yaml::{Diagnostic, Source};

/// Version of the format.
const VERSION: u32 = 1;

/// Why a file is not a baseline.
#[derive(Debug)]
pub enum BaselineError {
    /// The file is not JSON of this format.
    Syntax(serde_json::Error),
    /// The file has another version of the format.
    Version(u32),
}

impl fmt::Display for BaselineError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(error) => error.fmt(out),
            Self::Version(version) => write!(out, "unsupported version {version}"),
        }
    }
}

impl Error for BaselineError {}

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Version of the format; 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: u32,
    /// Findings that are known.
    pub findings: Vec<BaselineEntry>,
}

/// A finding that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineEntry {
    /// Fingerprint of the finding; it does not depend on line numbers.
    #[schemars(length(min = 1))]
    pub fingerprint: String,
    /// Code of its rule.
    #[schemars(length(min = 1))]
    pub code: String,
    /// File of the finding; informative.
    #[schemars(length(min = 1))]
    pub file: String,
    /// Message of the finding; informative.
    #[schemars(length(min = 1))]
    pub message: String,
}

/// Where a baseline lies, and where it is looked at from: files are named from its own folder on, so that
/// it knows them wherever lint is run.
#[derive(Debug, Clone, Copy)]
pub struct BaselineLocation<'p> {
    /// The working folder, from the root on.
    pub here: &'p Path,
    /// The baseline, from the working folder or from the root on.
    pub file: &'p Path,
}

impl BaselineLocation<'_> {
    /// The name of a file as the baseline has it.
    fn name(&self, source: &Source) -> String {
        if builtin::wrote(source) {
            return source.name.clone();
        }
        let file = normal(&self.here.join(&source.name));
        let baseline = normal(&self.here.join(self.file));
        let folder = baseline.parent().unwrap_or(&baseline);
        let shared = |it: &&Path| file.starts_with(it);
        let above = folder.ancestors().find(shared).unwrap_or(Path::new(""));
        let up = folder.strip_prefix(above).into_iter().flatten().map(|_| "..".into());
        let down = file.strip_prefix(above).into_iter().flatten().map(OsStr::to_string_lossy);
        up.chain(down).collect::<Vec<_>>().join("/")
    }
}

impl Baseline {
    /// A baseline of these findings.
    #[must_use]
    pub fn of(findings: &[&Diagnostic], seat: BaselineLocation<'_>) -> Self {
        let prints = fingerprints_by(findings, |it| seat.name(it));
        let known = findings.iter().zip(prints).map(|(it, fingerprint)| BaselineEntry {
            fingerprint,
            code: code_of(it.code).to_owned(),
            file: seat.name(&it.span.source),
            message: it.message.clone(),
        });
        Self { version: VERSION, findings: known.collect() }
    }

    /// Parses a file.
    ///
    /// # Errors
    /// Returns an error if the text is not a baseline of a supported version.
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        let baseline: Self = serde_json::from_str(text).map_err(BaselineError::Syntax)?;
        let version = baseline.version;
        if version == VERSION { Ok(baseline) } else { Err(BaselineError::Version(version)) }
    }

    /// For each finding, whether it is known. Errors of the loader are never: the pack is broken.
    #[must_use]
    pub fn knows(&self, findings: &[&Diagnostic], seat: BaselineLocation<'_>) -> Vec<bool> {
        let known = |print: &str| self.findings.iter().any(|known| known.fingerprint == print);
        let silent = |it: &Diagnostic| find(it.code).is_some_and(super::Rule::can_be_silenced);
        let pairs = findings.iter().zip(fingerprints_by(findings, |it| seat.name(it)));
        pairs.map(|(finding, fingerprint)| silent(finding) && known(&fingerprint)).collect()
    }
}

/// Returns the fingerprint of each finding: rule, file, the line without its indent, and the number of the finding
/// among equal ones. The line number is not part of it.
#[must_use]
pub fn fingerprints(findings: &[&Diagnostic]) -> Vec<String> {
    fingerprints_by(findings, |it| it.name.clone())
}

fn fingerprints_by(findings: &[&Diagnostic], name: impl Fn(&Source) -> String) -> Vec<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let print = |finding: &&Diagnostic| {
        let text = &finding.span.source.text;
        let before = text.get(..finding.span.start).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = text.get(start..).and_then(|it| it.lines().next()).unwrap_or_default().trim();
        let (rule, file) = (code_of(finding.code), name(&finding.span.source));
        let what = format!("{rule}\n{file}\n{line}\n{}", finding.message);
        let number = seen.entry(what.clone()).or_default();
        *number += 1;
        let sum = checksum(&[what.as_bytes(), &number.to_le_bytes()]);
        format!("{:016x}", u64::from_le_bytes(sum))
    };
    findings.iter().map(print).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_name_in_a_baseline_wherever_it_is_looked_at_from() {
        for (here, baseline, file, expected) in [
            ("/w", "lint.json", "policies/a.yaml", "policies/a.yaml"),
            ("/w", "./lint.json", "./policies/a.yaml", "policies/a.yaml"),
            ("/w/policies", "../lint.json", "a.yaml", "policies/a.yaml"),
            ("/elsewhere", "/w/lint.json", "/w/policies/a.yaml", "policies/a.yaml"),
            ("/w", "ci/lint.json", "policies/a.yaml", "../policies/a.yaml"),
            ("/w", "lint.json", "builtin/guards.yaml", "builtin/guards.yaml"),
        ] {
            let seat = BaselineLocation { here: Path::new(here), file: Path::new(baseline) };
            let source = Source { name: file.to_owned(), text: String::new() };
            assert_eq!(seat.name(&source), expected, "{file} from {here}");
        }
    }
}
