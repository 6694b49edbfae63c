//! Findings of one rule, to which its checks add, and the edits that fix a finding.

use policyd_yaml::{Diagnostic, Fix, Level, Span, Suggestion};

use crate::profile::Profile;

/// Collects the findings of one rule.
#[derive(Debug)]
pub struct Findings {
    /// Name of the rule.
    name: &'static str,
    /// Severity of the rule.
    level: Level,
    profile: Profile,
    /// What the rule found so far.
    pub(crate) found: Vec<Diagnostic>,
}

impl Findings {
    /// No findings yet of the rule with this name and level.
    pub(crate) const fn new(name: &'static str, level: Level, profile: Profile) -> Self {
        Self { name, level, profile, found: Vec::new() }
    }

    /// Whether the profile asks for more than mistakes.
    pub(crate) fn is_strict(&self) -> bool {
        self.profile >= Profile::Strict
    }

    /// Adds a finding, which `more` completes.
    pub(crate) fn add(
        &mut self,
        span: Span,
        message: impl Into<String>,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let finding = Diagnostic::error(self.name, span, message);
        self.found.push(more(Diagnostic { level: self.level, ..finding }));
    }

    /// Adds a finding with a fix.
    pub(crate) fn help(
        &mut self,
        span: Span,
        message: impl Into<String>,
        fix: impl Into<Suggestion>,
    ) {
        self.add(span, message, |it| it.suggest(fix));
    }
}

/// Adds an edit that fixes a finding, if there is one.
pub(crate) fn with_edit(
    finding: Diagnostic,
    safe: bool,
    edit: Option<(Span, String)>,
) -> Diagnostic {
    with_edits(finding, safe, [edit])
}

/// Adds edits that fix a finding together, if all of them can be made.
pub(crate) fn with_edits<const N: usize>(
    mut finding: Diagnostic,
    safe: bool,
    edits: [Option<(Span, String)>; N],
) -> Diagnostic {
    let edits: Option<Vec<_>> = edits.into_iter().collect();
    finding.fix = edits.map(|edits| Fix { safe, edits });
    finding
}
