//! Coverage of a pack by its cases: the rules that cases expect to fire and to pass, and the
//! operands of conditions that were both true and false.
//!
//! [`covered`] reads the expectations alone; [`measure`] adds the recorded evaluations.

mod measure;
mod records;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::expect::{Expectation, Matcher};
use super::names::NameTable;
use super::{Case, Expect, read};
pub use measure::measure;
use policyd_fact_table::ast::Expr;
use policyd_fact_table::watch::{CoverageRecorder, Ways};
use policyd_policy::{Policy, SourceLocation};
use policyd_yaml::Source;

/// Kind of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleKind {
    /// A check at a stop.
    Consideration,
    /// A rule on an event.
    Guard,
    /// A class of sessions.
    SessionType,
    /// A preference that is searched in files.
    Preference,
    Message,
    /// A rule by which a failed task enters the dead-letter queue.
    Entry,
    /// A rule of the review of dead letters.
    Review,
    /// An alarm about the dead-letter queue.
    Alarm,
    /// A trigger of an escalation.
    Trigger,
    /// A reaction to an event.
    Reaction,
    /// A trigger of a signal.
    SignalTrigger,
    /// A response to a drift.
    Drift,
    /// A row of a decision table.
    Row,
    /// A failure class.
    FailureClass,
}

impl RuleKind {
    /// Returns the displayed name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Consideration => "consideration",
            Self::Guard => "guard",
            Self::SessionType => "session type",
            Self::Preference => "preference",
            Self::Message => "message",
            Self::Entry => "entry rule",
            Self::Review => "review rule",
            Self::Alarm => "alarm",
            Self::Trigger => "trigger",
            Self::Reaction => "reaction",
            Self::SignalTrigger => "signal trigger",
            Self::Drift => "drift rule",
            Self::Row => "table row",
            Self::FailureClass => "failure class",
        }
    }
}

/// Rules that cases expect to fire and to pass, by kind and id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpectedRules {
    /// Checks that must fail, the expected session type, preferences that must be found.
    pub firing: BTreeSet<(RuleKind, String)>,
    /// Checks that must pass or not apply, other session types, preferences that must not be found.
    pub silent: BTreeSet<(RuleKind, String)>,
    /// Guards that must pass, each with the called tool. The tool is empty if none is called.
    pub silent_at: BTreeSet<(String, String)>,
}

/// Returns what executed cases expect of the rules. Only expectations by name count, because a rule
/// that fired incidentally was not checked.
#[must_use]
pub fn covered<'c>(cases: impl IntoIterator<Item = &'c Case>, known: &NameTable) -> ExpectedRules {
    let mut covered = ExpectedRules::default();
    let run = cases.into_iter().filter(|it| it.skip.is_none());
    for step in run.flat_map(|it| &it.steps) {
        if let Expect::Wanted(wanted) = &step.expect {
            wanted.iter().for_each(|it| covered.add(it, step.on.tool(), known));
        }
    }
    covered
}

/// Like [`covered`], for case files that are not executed. An invalid case does not count.
#[must_use]
pub fn covered_in(policy: &Policy, files: &[Arc<Source>]) -> ExpectedRules {
    let known = NameTable::of(policy);
    let cases: Vec<Case> = files.iter().flat_map(|it| read::read(it, &known).0).collect();
    covered(&cases, &known)
}

impl ExpectedRules {
    fn add(&mut self, wanted: &Expectation, tool: &str, known: &NameTable) {
        let path: Vec<&str> = wanted.path.iter().map(String::as_str).collect();
        let is = |text: &str| matches!(&wanted.test, Matcher::Is(value) if value == text);
        match path.as_slice() {
            ["considerations", id, "status" | "consequence"] => {
                let rule = (RuleKind::Consideration, (*id).to_owned());
                if ["unsatisfied", "blocks", "warns", "recorded"].iter().any(|it| is(it)) {
                    self.firing.insert(rule);
                } else if is("satisfied") {
                    self.silent.insert(rule);
                }
            }
            ["considerations", id, "why"] if wanted.test.matches("not applicable") => {
                self.silent.insert((RuleKind::Consideration, (*id).to_owned()));
            }
            ["decided_by"] => {
                let ids = if let Matcher::Is(ids) = &wanted.test { ids.as_array() } else { None };
                let ids = ids.into_iter().flatten().filter_map(serde_json::Value::as_str);
                self.firing.extend(ids.map(|it| (RuleKind::Guard, it.to_owned())));
            }
            ["guards", id] => {
                let rule = (RuleKind::Guard, (*id).to_owned());
                if is("fired") {
                    self.firing.insert(rule);
                } else if is("silent") {
                    self.silent_at.insert(((*id).to_owned(), tool.to_owned()));
                    self.silent.insert(rule);
                }
            }
            ["session_type"] => {
                for id in &known.session_types {
                    let side = if is(id) { &mut self.firing } else { &mut self.silent };
                    side.insert((RuleKind::SessionType, id.clone()));
                }
            }
            ["class"] => {
                for id in &known.classes {
                    let side = if is(id) { &mut self.firing } else { &mut self.silent };
                    side.insert((RuleKind::FailureClass, id.clone()));
                }
            }
            ["preferences", id] => {
                let found = matches!(&wanted.test, Matcher::Is(value) if *value == true);
                let side = if found { &mut self.firing } else { &mut self.silent };
                side.insert((RuleKind::Preference, (*id).to_owned()));
            }
            _ => {}
        }
    }

    /// Adds the evaluations of an executed case: whether each message was used, and whether rules
    /// over records matched.
    pub fn add_seen(&mut self, policy: &Policy, watch: &CoverageRecorder) {
        for (id, choices) in policy.messages.iter() {
            let said = choices.iter().any(|it| watch.was_rendered(&it.choice.text));
            let side = if said { &mut self.firing } else { &mut self.silent };
            side.insert((RuleKind::Message, id.clone()));
        }
        for (kind, id, when) in records::rules(policy) {
            let ways = watch.ways(&when.text, &Expr::of_text(&when.text));
            let sides = [(ways.held, &mut self.firing), (ways.failed, &mut self.silent)];
            for (_, side) in sides.into_iter().filter(|(seen, _)| *seen) {
                side.insert((kind, id.clone()));
            }
        }
    }
}

/// One rule and its coverage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleCoverage {
    pub kind: RuleKind,
    pub id: String,
    /// Source location, if known.
    pub place: Option<SourceLocation>,
    /// Whether a case expects it to fire.
    pub firing: bool,
    /// Whether a case expects it to pass. Always true for a rule that cannot pass.
    pub silent: bool,
    /// Conditions. A checker that several rules share is listed at the first of them.
    pub conditions: Vec<ConditionCoverage>,
}

/// A condition with the coverage of its operands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionCoverage {
    /// Key of the condition: `satisfied`, `details[2].when`.
    pub key: String,
    /// Source location.
    pub place: SourceLocation,
    /// Source text.
    pub text: String,
    /// Operands as byte ranges of the text, with their observed values.
    pub operands: Vec<(Range<usize>, Ways)>,
}

impl ConditionCoverage {
    /// Returns the operands that were not both true and false.
    pub fn gaps(&self) -> impl Iterator<Item = (&str, Ways)> {
        let gaps = self.operands.iter().filter(|(_, ways)| !(ways.held && ways.failed));
        gaps.map(|(range, ways)| (self.text.get(range.clone()).unwrap_or_default(), *ways))
    }
}

/// Coverage of a pack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// All rules of the pack itself, without inherited rules.
    pub rules: Vec<RuleCoverage>,
}

impl Coverage {
    /// Returns the number of observed operand values, and of all operand values: two for each
    /// operand.
    #[must_use]
    pub fn branches(&self) -> (usize, usize) {
        let operands = self.rules.iter().flat_map(|it| &it.conditions).flat_map(|it| &it.operands);
        let (mut seen, mut all) = (0_usize, 0_usize);
        for (_, ways) in operands {
            all = all.saturating_add(2);
            seen = seen.saturating_add(usize::from(ways.held)).saturating_add(ways.failed.into());
        }
        (seen, all)
    }

    /// Returns the percentage of observed operand values, rounded down; 100 without operands.
    #[must_use]
    pub fn percent(&self) -> usize {
        let (seen, all) = self.branches();
        seen.saturating_mul(100).checked_div(all).unwrap_or(100)
    }

    /// Returns the rules without a firing case, and those without a passing case.
    #[must_use]
    pub fn lacking(&self) -> (Vec<&RuleCoverage>, Vec<&RuleCoverage>) {
        let unfired = self.rules.iter().filter(|it| !it.firing).collect();
        (unfired, self.rules.iter().filter(|it| !it.silent).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_policy::builtin;

    #[test]
    fn the_words_of_the_glossary_and_the_old_words_expect_the_same() {
        let pack = builtin::pack();
        let policy = policyd_policy::load::load(&pack, &pack).policy.unwrap();
        let expected = |text: &str| {
            let text = format!("- name: x\n  expect: {text}\n");
            let source = Arc::new(Source { name: "a.yaml".to_owned(), text });
            let (cases, findings) = read::read(&source, &NameTable::of(&policy));
            assert_eq!(findings, []);
            let Expect::Wanted(wanted) = &cases[0].steps[0].expect else { panic!("{cases:?}") };
            wanted.iter().map(|it| (it.path.clone(), format!("{:?}", it.test))).collect::<Vec<_>>()
        };
        for (new, old) in [
            ("passed", "satisfied"),
            ("fired", "unsatisfied"),
            ("block", "blocks"),
            ("warn", "warns"),
            ("log", "recorded"),
        ] {
            let of_check =
                |word: &str| expected(&format!("{{considerations: {{shortcuts: {word}}}}}"));
            assert_eq!(of_check(new), of_check(old));
        }
        for (new, old) in [
            (
                "{considerations: {shortcuts: {status: fired, consequence: log}}}",
                "{considerations: {shortcuts: {status: unsatisfied, consequence: recorded}}}",
            ),
            ("{guards: {rm_recursive: passed}}", "{guards: {rm_recursive: silent}}"),
        ] {
            assert_eq!(expected(new), expected(old));
        }
    }

    #[test]
    fn what_is_expected_by_name_is_covered() {
        let pack = builtin::pack();
        let policy = policyd_policy::load::load(&pack, &pack).policy.unwrap();
        let text = "
- name: fires, is silent, does not apply
  expect:
    session_type: DEVELOPMENT
    guards: {rm_recursive: fired, find_delete_outside: silent, truncate: unknown}
    considerations:
      local_testing: blocks
      shortcuts: {status: satisfied}
      ci_status: {status: skipped, why: not applicable}
      next_steps: {details: x}
    preferences: {no_auto_merge: false}
- name: skipped
  skip: not now
  expect: {considerations: {todos_complete: satisfied}}
- name: unknown
  expect: {considerations: {todos_complet: satisfied}}
";
        let source = Source { name: "a.yaml".to_owned(), text: text.to_owned() };
        let ExpectedRules { firing, silent, .. } = covered_in(&policy, &[Arc::new(source)]);
        let ids = |rules: &BTreeSet<(RuleKind, String)>, kind: RuleKind| -> Vec<String> {
            rules.iter().filter(|(it, _)| *it == kind).map(|(_, id)| id.clone()).collect()
        };
        assert_eq!(ids(&firing, RuleKind::Consideration), ["local_testing"]);
        assert_eq!(ids(&silent, RuleKind::Consideration), ["ci_status", "shortcuts"]);
        assert_eq!(ids(&firing, RuleKind::Guard), ["rm_recursive"]);
        assert_eq!(ids(&silent, RuleKind::Guard), ["find_delete_outside"]);
        assert_eq!(ids(&firing, RuleKind::SessionType), ["DEVELOPMENT"]);
        assert_eq!(ids(&silent, RuleKind::SessionType).len(), policy.session_types.len() - 1);
        assert_eq!(ids(&silent, RuleKind::Preference), ["no_auto_merge"]);
    }
}
