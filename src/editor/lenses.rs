//! What an editor shows above a rule: how many cases check it, how they ended, and how often the rule would have fired
//! in recorded sessions.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::ids::{IdKind, Occurrence};
use super::view::PackView;
use policyd_cases::result::{CaseOutcome, CaseResult};
use policyd_record::decision_log::Entry;
use policyd_replay::tally::{Example, Tally};
use policyd_yaml::Source;

/// A rule of a file, and the cases that name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleCases {
    /// Id of the rule.
    pub id: String,
    /// Whether it is a guard, and not a check.
    pub is_guard: bool,
    /// Where the id is written.
    pub range: Range<usize>,
    /// The cases that name the rule: the file, and the bytes of the name of the case.
    pub cases: Vec<(String, Range<usize>)>,
}

/// A case of a case file.
struct CaseItem {
    name: Range<usize>,
    whole: Range<usize>,
}

fn case_items(view: &PackView, source: &Arc<Source>) -> Vec<CaseItem> {
    let tree = view.reviewed.memo.tree(source);
    let Some(root) = tree.as_ref() else { return Vec::new() };
    let item = |node: &policyd_yaml::node::Node| {
        let name = &node.get("name")?.span;
        Some(CaseItem { name: name.start..name.end, whole: node.span.start..node.span.end })
    };
    root.items().unwrap_or_default().iter().filter_map(item).collect()
}

/// Returns the checks and guards that a file defines, in their order.
#[must_use]
pub fn rules(view: &PackView, ids: &[Occurrence], file: &str) -> Vec<RuleCases> {
    let kinds = [IdKind::Check, IdKind::Guard];
    let is_rule = |it: &&Occurrence| {
        it.entry.is_some()
            && it.span.source.name == file
            && kinds.iter().any(|kind| it.kinds == [*kind])
    };
    let rules: Vec<&Occurrence> = ids.iter().filter(is_rule).collect();
    if rules.is_empty() {
        return Vec::new();
    }
    // What cases name, by the id: the file and the byte.
    let mut named: BTreeMap<&str, Vec<(&Occurrence, usize)>> = BTreeMap::new();
    for (number, source) in view.cases.iter().enumerate() {
        for it in ids.iter().filter(|it| it.span.source.name == source.name) {
            named.entry(&it.name).or_default().push((it, number));
        }
    }
    let items: Vec<Vec<CaseItem>> = view.cases.iter().map(|it| case_items(view, it)).collect();
    let rule = |rule: &&Occurrence| {
        let mut cases: Vec<(String, Range<usize>)> = Vec::new();
        for (it, number) in named.get(rule.name.as_str()).into_iter().flatten() {
            let around = items.get(*number).into_iter().flatten();
            let around =
                around.filter(|case| it.means(rule) && case.whole.contains(&it.span.start));
            for case in around {
                let found = (it.span.source.name.clone(), case.name.clone());
                if !cases.contains(&found) {
                    cases.push(found);
                }
            }
        }
        RuleCases {
            id: rule.name.clone(),
            is_guard: rule.kinds == [IdKind::Guard],
            range: rule.span.start..rule.span.end,
            cases,
        }
    };
    rules.iter().map(rule).collect()
}

/// Formats how the cases of a rule ended; `results` are those of all cases of the pack, if they ran. They can be those of an
/// earlier text, in which the cases stood elsewhere: then the cases are only counted.
#[must_use]
pub fn cases_text(rule: &RuleCases, results: Option<&[CaseResult]>) -> String {
    let number = rule.cases.len();
    let all = results.unwrap_or_default();
    let of_case = |(file, name): &(String, Range<usize>)| {
        let is_of = |it: &&CaseResult| it.file == *file && it.span.start == name.start;
        let found: Vec<&CaseResult> = all.iter().filter(is_of).collect();
        (!found.is_empty()).then_some(found)
    };
    let found: Option<Vec<_>> = rule.cases.iter().map(of_case).collect();
    let Some(found) = found.filter(|_| number > 0) else {
        return match number {
            0 => "no cases".to_owned(),
            1 => "1 case".to_owned(),
            _ => format!("{number} cases"),
        };
    };
    let (mut ended, mut passed, mut failed, mut skipped) = (0_usize, 0_usize, 0_usize, 0_usize);
    for it in found.into_iter().flatten() {
        ended += 1;
        match it.ending {
            CaseOutcome::Passed => passed += 1,
            CaseOutcome::Failed(_) => failed += 1,
            CaseOutcome::Skipped(_) => skipped += 1,
        }
    }
    // A case with `each` ran once for each of its values.
    let noun = if ended == 1 { "case" } else { "cases" };
    let mut text = format!("{ended} {noun}: {passed} passed");
    for (count, word) in [(failed, "failed"), (skipped, "skipped")] {
        if count > 0 {
            text.push_str(&format!(", {count} {word}"));
        }
    }
    text
}

/// How often rules fired in recorded sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayCounts {
    /// Recorded stops that were evaluated.
    pub stops: u64,
    /// Recorded tool calls that were evaluated.
    pub calls: u64,
    /// Rules by id: how often each fired, and the first examples.
    rules: BTreeMap<String, (u64, Vec<Example>)>,
}

impl ReplayCounts {
    /// Takes the counts of a replay.
    #[must_use]
    pub fn new(tally: &Tally) -> Self {
        let rules = tally.rules.iter().chain(&tally.guards);
        let rule = |it: &policyd_replay::tally::RuleTally| {
            (it.id.clone(), (it.fired.times, it.fired.examples.clone()))
        };
        Self { stops: tally.judged, calls: tally.guarded, rules: rules.map(rule).collect() }
    }

    /// Formats how often a rule would have fired. `None` if nothing was recorded that the rule looks at.
    #[must_use]
    pub fn text(&self, rule: &RuleCases) -> Option<String> {
        let (fired, _) = self.rules.get(&rule.id)?;
        let (all, what) = match rule.is_guard {
            true => (self.calls, "tool calls"),
            false => (self.stops, "stops"),
        };
        (all > 0).then(|| format!("would fire on {fired} of {all} recorded {what}"))
    }

    /// The first places at which a rule would have fired.
    #[must_use]
    pub fn examples(&self, id: &str) -> &[Example] {
        self.rules.get(id).map(|(_, it)| it.as_slice()).unwrap_or_default()
    }
}

/// How often rules fired in the project, by its decision log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FiredCounts {
    days: i64,
    /// Decisions of that time.
    decisions: u64,
    /// Rules by id.
    rules: BTreeMap<String, u64>,
}

impl FiredCounts {
    /// Returns the counts of no decision yet, for the last days.
    #[must_use]
    pub fn new(days: i64) -> Self {
        Self { days, ..Self::default() }
    }

    /// Counts a decision.
    pub fn add(&mut self, entry: &Entry) {
        self.decisions = self.decisions.saturating_add(1);
        let guards = entry.guards.iter().map(|it| it.id.as_str());
        let checks = entry.verdicts.iter().filter(|it| it.details.is_some());
        for id in guards.chain(checks.map(|it| it.id.as_str())) {
            let count = self.rules.entry(id.to_owned()).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// Formats how often a rule fired. `None` if nothing was decided in that time.
    #[must_use]
    pub fn text(&self, id: &str) -> Option<String> {
        let days = self.days;
        let fired = self.rules.get(id).copied().unwrap_or_default();
        (self.decisions > 0).then(|| match fired {
            0 => format!("never fired in {days} days"),
            1 => format!("fired once in {days} days"),
            _ => format!("fired {fired} times in {days} days"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_yaml::Span;

    #[test]
    fn a_rule_that_never_fired_is_said_to_only_if_something_was_decided() {
        let mut counts = FiredCounts::new(30);
        assert_eq!(counts.text("rm"), None);
        let entry = |rule: &str| {
            let entry = serde_json::json!({"id": "a", "event": "pre_tool_use", "timestamp": "T",
                "decision": "block", "guards": [{"id": rule}]});
            Entry::parse(entry.to_string().as_bytes()).unwrap()
        };
        counts.add(&entry("other"));
        assert_eq!(counts.text("rm").as_deref(), Some("never fired in 30 days"));
        counts.add(&entry("rm"));
        assert_eq!(counts.text("rm").as_deref(), Some("fired once in 30 days"));
        counts.add(&entry("rm"));
        assert_eq!(counts.text("rm").as_deref(), Some("fired 2 times in 30 days"));
    }

    #[test]
    fn cases_that_ran_several_times_count_each_time() {
        let source = std::sync::Arc::new(Source { name: "c".to_owned(), text: String::new() });
        let result = |start, ending| CaseResult {
            file: "c".to_owned(),
            name: String::new(),
            span: Span { source: source.clone(), start, end: start + 1 },
            ending,
        };
        let cases = vec![("c".to_owned(), 3..4)];
        let rule = RuleCases { id: "x".to_owned(), is_guard: false, range: 0..1, cases };
        assert_eq!(cases_text(&rule, None), "1 case");
        let skipped = CaseOutcome::Skipped("later".to_owned());
        let results = [
            result(3, CaseOutcome::Passed),
            result(3, CaseOutcome::Failed(vec![])),
            result(3, skipped),
            result(9, CaseOutcome::Passed),
        ];
        assert_eq!(cases_text(&rule, Some(&results)), "3 cases: 1 passed, 1 failed, 1 skipped");
        let moved = RuleCases { cases: vec![("c".to_owned(), 4..5)], ..rule.clone() };
        assert_eq!(cases_text(&moved, Some(&results)), "1 case", "the results are of another text");
        let none = RuleCases { cases: vec![], ..rule };
        assert_eq!(cases_text(&none, Some(&results)), "no cases");
    }
}
