//! Findings that were there before: a file that names them, so that only new ones count.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{code_of, find};
use crate::checksum::checksum;
use crate::source::Diagnostic;

/// Version of the format.
const VERSION: u32 = 1;

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Version of the format; 1.
    pub version: u32,
    /// Findings that are known.
    pub findings: Vec<Known>,
}

/// A finding that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// What it is recognised by, wherever it moves within its file.
    pub fingerprint: String,
    /// Code of its rule.
    pub code: String,
    /// Its file, for people.
    pub file: String,
    /// What it said, for people.
    pub message: String,
}

impl Baseline {
    /// A baseline of these findings.
    #[must_use]
    pub fn of(findings: &[&Diagnostic]) -> Self {
        let known = findings.iter().zip(fingerprints(findings)).map(|(it, fingerprint)| Known {
            fingerprint,
            code: code_of(it.code).to_owned(),
            file: it.span.source.name.clone(),
            message: it.message.clone(),
        });
        Self { version: VERSION, findings: known.collect() }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let baseline: Self = serde_json::from_str(text).map_err(|it| it.to_string())?;
        if baseline.version == VERSION {
            Ok(baseline)
        } else {
            Err(format!("version {} is not known here; write it anew", baseline.version))
        }
    }

    /// For each finding, whether it is known. Errors of the loader are never: the pack is broken.
    #[must_use]
    pub fn knows(&self, findings: &[&Diagnostic]) -> Vec<bool> {
        let known = |it: &String| self.findings.iter().any(|known| known.fingerprint == *it);
        let silent = |it: &Diagnostic| find(it.code).is_some_and(super::Rule::can_be_silenced);
        let pairs = findings.iter().zip(fingerprints(findings));
        pairs.map(|(finding, fingerprint)| silent(finding) && known(&fingerprint)).collect()
    }
}

/// What each finding is recognised by: rule, file, the line without its indent, and its number among
/// those that are alike. Lines may move; a finding whose line changed is a new one.
#[must_use]
pub fn fingerprints(findings: &[&Diagnostic]) -> Vec<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut fingerprint = |it: &&Diagnostic| {
        let text = &it.span.source.text;
        let start = text.get(..it.span.start).and_then(|it| it.rfind('\n')).map_or(0, |at| at + 1);
        let line = text.get(start..).and_then(|it| it.lines().next()).unwrap_or_default().trim();
        let what = format!("{}\n{}\n{line}\n{}", it.code, it.span.source.name, it.message);
        let number = seen.entry(what.clone()).or_default();
        *number += 1;
        let sum = checksum(&[what.as_bytes(), &number.to_le_bytes()]);
        format!("{:016x}", u64::from_le_bytes(sum))
    };
    findings.iter().map(&mut fingerprint).collect()
}
