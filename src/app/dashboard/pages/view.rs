//! What every page shows and needs: the state of all projects, and the fields of the address.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::live::Snapshot;
use policyd_report::overview::short_name;
use policyd_yaml::time::{Timestamp, parse_duration};

/// What every page shows and needs.
pub(super) struct PageView<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) form_token: &'a str,
    pub(super) is_read_only: bool,
    pub(super) now: Timestamp,
    pub(super) query: &'a BTreeMap<String, String>,
}

impl PageView<'_> {
    /// Returns a field of the address that is not empty.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str).filter(|it| !it.is_empty())
    }

    /// Returns the length of time that the address asks for, with its text; a day if it names none.
    pub(super) fn since(&self) -> (Duration, String) {
        let named =
            self.field("since").and_then(|it| Some((parse_duration(it).ok()?, it.to_owned())));
        named.unwrap_or_else(|| (Duration::from_secs(24 * 60 * 60), "24h".to_owned()))
    }

    /// Returns the time before which nothing counts.
    pub(super) fn oldest(&self) -> Timestamp {
        self.now.minus(self.since().0)
    }

    /// Returns the number of the page of a list, from 0.
    pub(super) fn page(&self) -> usize {
        self.field("page").and_then(|it| it.parse().ok()).unwrap_or(0)
    }

    /// Returns the shortest name that distinguishes a project.
    pub(super) fn name(&self, project: &str) -> String {
        let all: Vec<&str> = self.snapshot.known.keys().map(String::as_str).collect();
        short_name(project, &all)
    }
}
