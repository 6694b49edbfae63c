//! An entry of the decision log, as far as counts and overviews need it. Texts are borrowed from the line.

use std::borrow::Cow;

use serde::Deserialize;

use super::notice::LoggedRun;

/// The part of an entry that is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LoggedLine<'a> {
    #[serde(borrow)]
    pub(super) timestamp: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) event: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) session_id: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) agent_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) decision: Cow<'a, str>,
    pub(super) spoken: bool,
    #[serde(borrow)]
    pub(super) release: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) verdicts: Vec<LineVerdict<'a>>,
    #[serde(borrow)]
    pub(super) guards: Vec<LineGuard<'a>>,
    #[serde(borrow)]
    pub(super) inputs: Option<LineInputs<'a>>,
    #[serde(borrow)]
    pub(super) notice: Option<LineNotice<'a>>,
    #[serde(borrow)]
    pub(super) saved: Cow<'a, str>,
    pub(super) micros: Option<u64>,
}

impl<'a> LoggedLine<'a> {
    /// Parses a line of the log. `None` for a line that is not an entry.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LineNotice<'a> {
    #[serde(borrow)]
    pub(super) outcome: Cow<'a, str>,
    pub(super) run: Option<LoggedRun>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LineVerdict<'a> {
    #[serde(borrow)]
    pub(super) id: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) consequence: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) details: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) status: Cow<'a, str>,
    pub(super) would_block: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LineGuard<'a> {
    #[serde(borrow)]
    pub(super) id: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) status: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) decision: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) mode: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) would: Option<Cow<'a, str>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LineInputs<'a> {
    #[serde(borrow)]
    pub(super) transcript: LineTranscript<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LineTranscript<'a> {
    #[serde(borrow)]
    pub(super) path: Cow<'a, str>,
    pub(super) subagent: bool,
}
