//! A lint rule: its code, name, level, profile, page, and checks.

use policyd_yaml::Level;

use crate::findings::Findings;
use crate::profile::Profile;
use crate::subject::Subject;

/// Reviews a pack for one kind of mistake.
pub type RuleFn = fn(&Subject<'_>, &mut Findings);

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Stable code, `PD101`.
    pub code: &'static str,
    /// Stable name, `unknown-key`; the value of `Diagnostic::code`.
    pub name: &'static str,
    /// Severity of a finding.
    pub level: Level,
    /// The least strict profile that reports it.
    pub profile: Profile,
    /// One sentence about what it reports.
    pub summary: &'static str,
    /// The page of the rule, in Markdown.
    pub page: &'static str,
    /// The checks that report its findings; empty if the loader reports them.
    pub checks: &'static [RuleFn],
}

impl Rule {
    /// Whether a comment or a baseline can suppress it: not if the pack does not load.
    #[must_use]
    pub fn can_be_silenced(&self) -> bool {
        !self.checks.is_empty() || self.level < Level::Error
    }

    /// Starts the findings of a review with a profile.
    pub(crate) fn findings(&self, profile: Profile) -> Findings {
        Findings::new(self.name, self.level, profile)
    }
}
