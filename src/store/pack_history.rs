//! What this machine saw of the sources of remote packs: the newest version of each, so that a server cannot return to an
//! older one, and fetches that failed.

use std::collections::BTreeMap;
use std::path::Path;

use semver::Version;
use serde::{Deserialize, Serialize};

use super::document::DocumentError;
use super::user_file::UserFile;
use policyd_state::stored::elements;
use policyd_world::World;
use policyd_yaml::time::Timestamp;

/// Beside the cached contents.
const FILE: &str = "history.json";

/// A fetch that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedFetch {
    pub at: Timestamp,
    /// Why it failed.
    pub reason: String,
}

/// The history of all sources on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PackHistory {
    /// The newest version of each source.
    #[serde(deserialize_with = "elements")]
    pub versions: BTreeMap<String, String>,
    /// The last fetch of a source, if it failed.
    #[serde(deserialize_with = "elements")]
    pub failures: BTreeMap<String, FailedFetch>,
}

impl PackHistory {
    /// Returns the newest version of a source.
    #[must_use]
    pub fn newest(&self, source: &str) -> Option<Version> {
        Version::parse(self.versions.get(source)?).ok()
    }

    /// Records a fetched version, and that the source can be fetched. An older version than the newest one changes
    /// nothing: a lock file of a clone can name one.
    pub fn add(&mut self, source: &str, version: Option<&str>) {
        let is_older = version.is_some_and(|version| {
            self.newest(source).is_some_and(|it| {
                // What is not a version cannot be compared, and does not replace one.
                Version::parse(version).map_or(true, |version| version < it)
            })
        });
        if is_older {
            self.failures.remove(source);
        } else {
            self.replace(source, version);
        }
    }

    /// Records a fetched version although it can be older: the user allowed that.
    pub fn replace(&mut self, source: &str, version: Option<&str>) {
        self.failures.remove(source);
        if let Some(version) = version {
            self.versions.insert(source.to_owned(), version.to_owned());
        }
    }
}

/// The file of the history.
pub struct PackHistoryStore<'a>(UserFile<'a>);

impl<'a> PackHistoryStore<'a> {
    /// Returns the history beside the contents of a cache.
    #[must_use]
    pub fn new(world: &'a dyn World, cache: &Path) -> Self {
        Self(UserFile { world, path: Some(cache.join(FILE)), state_dir: None })
    }

    /// Loads the history. Without a file it is empty.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn load(&self) -> Result<PackHistory, DocumentError> {
        self.0.load()
    }

    /// Changes the history durably, under a lock.
    ///
    /// # Errors
    /// The change was not saved.
    pub fn change(&self, change: impl FnOnce(&mut PackHistory)) -> Result<(), DocumentError> {
        self.0.change(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_user_lowers_the_newest_version() {
        let mut history = PackHistory::default();
        for (version, newest) in [
            ("1.0.0", "1.0.0"),
            ("2.0.0", "2.0.0"),
            ("1.5.0", "2.0.0"),
            ("x", "2.0.0"),
            ("2.0.1", "2.0.1"),
        ] {
            history.add("a", Some(version));
            assert_eq!(history.newest("a"), Version::parse(newest).ok(), "{version}");
        }
        history.add("a", None);
        assert_eq!(history.newest("a"), Version::parse("2.0.1").ok());
        history.replace("a", Some("1.5.0"));
        assert_eq!(history.newest("a"), Version::parse("1.5.0").ok());
    }
}
