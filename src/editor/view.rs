//! A pack as it is being written: its files, what they mean, and its findings.

use std::sync::Arc;

use policyd_harness::Harness;
use policyd_lint::{self as lint, Profile, Subject};
use policyd_policy::Pack;
use policyd_policy::review::{Base, ReviewedPolicy};
use policyd_yaml::time::Timestamp;
use policyd_yaml::{Diagnostic, Source};

/// A pack, loaded as lint loads it.
#[derive(Debug)]
pub struct PackView {
    /// The files of the pack.
    pub pack: Pack,
    /// Its case files.
    pub cases: Vec<Arc<Source>>,
    /// Names of policy files that policyd does not load.
    pub unread: Vec<String>,
    /// The loaded pack.
    pub reviewed: ReviewedPolicy,
}

/// How a pack is linted.
#[derive(Debug, Clone, Copy)]
pub struct LintSettings {
    /// The set of rules.
    pub profile: Profile,
    /// The client for which the pack is written, if the user names one.
    pub harness: Option<&'static Harness>,
}

impl PackView {
    /// Loads a pack, which can extend `base`.
    #[must_use]
    pub fn new(pack: Pack, cases: Vec<Arc<Source>>, unread: Vec<String>, base: &Base) -> Self {
        let mut pack = pack;
        for (_, source) in &mut pack.files {
            *source = base.memo().source(Arc::clone(source));
        }
        let cases = cases.into_iter().map(|it| base.memo().source(it)).collect();
        let reviewed = ReviewedPolicy::new(&pack, base);
        Self { pack, cases, unread, reviewed }
    }

    /// Returns the findings of lint, suppressed ones left out. A number of cores evaluate the rules.
    #[must_use]
    pub fn lint(&self, settings: LintSettings, now: Timestamp, cores: usize) -> Vec<Diagnostic> {
        let subject = Subject::new(&self.pack, &self.reviewed, now).with_cases(self.cases.clone());
        let subject = subject.with_unread(self.unread.clone()).for_harness(settings.harness);
        lint::review(&subject.on_cores(cores), settings.profile, true).findings
    }

    /// All files of the pack, its case files last.
    pub fn sources(&self) -> impl Iterator<Item = &Arc<Source>> {
        self.pack.files.iter().map(|(_, source)| source).chain(&self.cases)
    }

    /// The file with this name.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<&Arc<Source>> {
        self.sources().find(|it| it.name == name)
    }
}
