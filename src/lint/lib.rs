//! Lint: a table of rules, and the review of a pack. The rows are in `src/lint/catalogue.rs`, the checks in `checks`.
//! A rule is a row, its checks, and a page; rules of findings of the loader have no checks.
//!
//! Contains: rules over the files and the tree of a pack. Does not contain: the search for packs, and the output
//! (`policyd-report`).
//!
//! ```
//! let rule = policyd_lint::find("unknown-key").unwrap();
//! assert_eq!(policyd_lint::code_of(rule.name), rule.code);
//! ```

pub mod baseline;
mod catalogue;
mod checks;
pub mod fix;
mod ignore;
mod limit;
mod logic;
mod pairs;
mod site;
mod subject;

use std::collections::BTreeMap;

use policyd_cores as cores;
use policyd_yaml::{Diagnostic, Fix, Level, Span, Suggestion};

pub use ignore::{Ignored, code_at};
pub use site::Site;
pub use subject::Subject;

/// How strict a review is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// Errors and probable mistakes.
    Default,
    /// Also missing cases, texts, and reasons, for packs that others rely on.
    Strict,
    /// Equal to strict since 0.2.0, which removed the rules about style.
    Pedantic,
}

impl Profile {
    /// Returns the name of the profile.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Strict => "strict",
            Self::Pedantic => "pedantic",
        }
    }
}

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

/// Returns the code of a finding by its name. A name without a row is its own code.
#[must_use]
pub fn code_of(name: &'static str) -> &'static str {
    find(name).map_or(name, |rule| rule.code)
}

impl Rule {
    /// Whether a comment or a baseline can suppress it: not if the pack does not load.
    #[must_use]
    pub fn can_be_silenced(&self) -> bool {
        !self.checks.is_empty() || self.level < Level::Error
    }
}

/// All rules, in the order of their codes.
#[must_use]
pub const fn rules() -> &'static [Rule] {
    catalogue::ROWS
}

/// Returns the rule with this code or name.
#[must_use]
pub fn find(code_or_name: &str) -> Option<&'static Rule> {
    let is_named =
        |it: &&Rule| it.name == code_or_name || it.code.eq_ignore_ascii_case(code_or_name);
    catalogue::ROWS.iter().find(is_named)
}

/// Collects the findings of one rule.
#[derive(Debug)]
pub struct Findings {
    rule: &'static Rule,
    profile: Profile,
    found: Vec<Diagnostic>,
}

impl Findings {
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
        let finding = Diagnostic::error(self.rule.name, span, message);
        self.found.push(more(Diagnostic { level: self.rule.level, ..finding }));
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

/// Result of the review of a pack.
#[derive(Debug, Default)]
pub struct Reviewed {
    /// Findings that count, rule by rule.
    pub findings: Vec<Diagnostic>,
    /// Findings that comments of the pack suppress, with the reason.
    pub ignored: Vec<Ignored>,
}

/// Reviews a pack: returns the findings of the loader, and those of the rules of a profile.
#[must_use]
pub fn review(subject: &Subject<'_>, profile: Profile, ignores: bool) -> Reviewed {
    let mut findings = subject.reviewed.diagnostics.clone();
    for finding in &mut findings {
        finding.code = find(finding.code).map_or(finding.code, |rule| rule.name);
    }
    findings.retain(|it| find(it.code).is_none_or(|rule| rule.profile <= profile));
    let rules: Vec<&Rule> = catalogue::ROWS.iter().filter(|it| it.profile <= profile).collect();
    let found = cores::on_all(subject.cores, &rules, |rule| {
        let mut out = Findings { rule, profile, found: Vec::new() };
        rule.checks.iter().for_each(|check| check(subject, &mut out));
        out.found
    });
    findings.extend(found.into_iter().flatten());
    let mut reviewed = ignore::apply(subject, findings, profile, ignores);
    reviewed.findings = shown(subject, reviewed.findings);
    reviewed
}

/// Maximum number of findings of one rule in one pack; of others, only the number is reported.
const SHOWN_MAX: usize = 100;

/// Returns the findings with the rules that contain them, each once, and at most `SHOWN_MAX` of one rule.
fn shown(subject: &Subject<'_>, findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut told: BTreeMap<&str, Vec<Diagnostic>> = BTreeMap::new();
    let mut left: BTreeMap<&str, (usize, Diagnostic)> = BTreeMap::new();
    for mut finding in findings {
        let same_rule = told.entry(finding.code).or_default();
        if same_rule.len() < SHOWN_MAX {
            subject.name_the_rule(&mut finding);
            // Two ways may lead to one finding.
            if !same_rule.contains(&finding) {
                same_rule.push(finding);
            }
        } else {
            left.entry(finding.code).or_insert((0, finding)).0 += 1;
        }
    }
    let more = left.into_values().map(|(number, first)| {
        let message = format!("{number} more findings of this rule are not shown");
        Diagnostic { message, related: vec![], help: None, note: None, fix: None, ..first }
    });
    told.into_values().flatten().chain(more).collect()
}
