//! Can a condition hold? Boolean structure over constraints on single facts: intervals of numbers,
//! sets of texts, truth values. Sound: what is called impossible is; what is too large is unknown.

use std::collections::BTreeMap;

use super::limit::{Constraint, both, in_order, value};
use policyd_fact_table::ast::{Expr, ExprKind};
use policyd_fact_table::relations;
use policyd_fact_table::types::Names;
use policyd_fact_table::wider;

mod atoms;
mod one_by_one;
mod topic;

use atoms::atom;
pub(super) use one_by_one::one_by_one;
use topic::Topic;

/// Conjunctions looked at for one question; beyond them nothing is said.
const CONJUNCTIONS_MAX: usize = 256;

/// Maximum number of earlier entries that are considered for an entry of a list in which the first match decides.
pub(super) const BEFORE_MAX: usize = 32;

/// Whether conditions can be true together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Satisfiability<'t> {
    /// Never.
    Never,
    /// Here: what facts are then, as far as they matter.
    Example(TopicLimits<'t>),
    /// Could not be decided.
    Unknown,
}

impl Satisfiability<'_> {
    /// Returns the example as text, if there is one.
    pub(super) fn witness(&self) -> Option<String> {
        let Self::Example(limits) = self else { return None };
        let told = limits.iter().filter(|(_, limit)| !matches!(limit, Constraint::Order { .. }));
        let values: Vec<String> = told
            .filter_map(|(fact, it)| Some(format!("`{}` is {}", fact.text, value(it)?)))
            .collect();
        (!values.is_empty()).then(|| values.join(", "))
    }
}

/// Whether all these conditions can be as they are said to be.
#[must_use]
pub(super) fn possible<'t>(conditions: &[(&'t Expr, bool)], names: &Names) -> Satisfiability<'t> {
    possible_by(true, conditions, names)
}

/// Returns whether `one` has its value whenever `from` has its value. Compares only the two conditions: relations
/// between facts are not used, because a condition that states a required fact is not redundant.
pub(super) fn follows(one: (&Expr, bool), from: (&Expr, bool), names: &Names) -> bool {
    possible_by(false, &[from, (one.0, !one.1)], names) == Satisfiability::Never
}

/// Whether all these conditions can be as they are said to be; `invariants`: with what is always true of facts.
fn possible_by<'t>(
    invariants: bool,
    conditions: &[(&'t Expr, bool)],
    names: &Names,
) -> Satisfiability<'t> {
    if let Some(limits) = apart(conditions, names) {
        let can_be = limits.values().all(|it| value(it).is_some());
        return if can_be { Satisfiability::Example(limits) } else { Satisfiability::Never };
    }
    let mut conjunctions = vec![Vec::new()];
    for (term, holds) in conditions {
        let Some(more) = alternatives(term, *holds, names) else { return Satisfiability::Unknown };
        let Some(joined) = product(conjunctions, more) else { return Satisfiability::Unknown };
        conjunctions = joined;
    }
    let mut solved = conjunctions.into_iter().filter_map(solve);
    match solved.find(|it| agree(it, invariants, names)) {
        Some(example) => Satisfiability::Example(example),
        None => Satisfiability::Never,
    }
}

/// Whether a condition can be true, and whether it can be false.
#[must_use]
pub(super) fn is_never(term: &Expr, holds: bool, names: &Names) -> bool {
    // Most questions are about one constraint on one fact.
    match alone(term, holds, names) {
        Some((_, limit)) => value(&limit).is_none(),
        None => possible(&[(term, holds)], names) == Satisfiability::Never,
    }
}

/// The one fact that a condition is about, and what that must be.
fn alone<'t>(term: &'t Expr, holds: bool, names: &Names) -> Option<(Topic<'t>, Constraint)> {
    if matches!(
        term.kind,
        ExprKind::Bool(_) | ExprKind::Not(_) | ExprKind::And(_) | ExprKind::Or(_)
    ) {
        return None;
    }
    let (fact, limit) = atom(term, holds, names);
    (!matches!(limit, Constraint::Order { .. })).then_some((fact, limit))
}

/// What each fact must be, where each condition is about one, and no two facts have the same owner, one below the
/// other's, or one that was asked for in the same way: nothing that is said of one then says anything of another.
fn apart<'t>(conditions: &[(&'t Expr, bool)], names: &Names) -> Option<TopicLimits<'t>> {
    let alone = |(term, holds): &(&'t Expr, bool)| alone(term, *holds, names);
    let found: Vec<(Topic<'t>, Constraint)> =
        conditions.iter().map(alone).collect::<Option<_>>()?;
    let topics = || found.iter().map(|(topic, _)| topic);
    let differ = topics()
        .enumerate()
        .all(|(at, one)| !topics().skip(at + 1).any(|other| one.is_related(other)));
    differ.then(|| found.into_iter().collect())
}

/// Whether a condition is always true or always false.
#[must_use]
pub(super) fn truth(term: &Expr, names: &Names) -> Option<bool> {
    if is_never(term, true, names) {
        return Some(false);
    }
    is_never(term, false, names).then_some(true)
}

type Conjunction<'t> = Vec<(Topic<'t>, Constraint)>;

/// What each fact must be.
type TopicLimits<'t> = BTreeMap<Topic<'t>, Constraint>;

/// The ways in which a condition comes to hold, or not to.
fn alternatives<'t>(term: &'t Expr, holds: bool, names: &Names) -> Option<Vec<Conjunction<'t>>> {
    match (&term.kind, holds) {
        (ExprKind::Bool(value), _) => {
            Some(if *value == holds { vec![Vec::new()] } else { Vec::new() })
        }
        (ExprKind::Not(one), _) => alternatives(one, !holds, names),
        (ExprKind::And(items), true) | (ExprKind::Or(items), false) => {
            items.iter().try_fold(vec![Vec::new()], |all, item| {
                product(all, alternatives(item, holds, names)?)
            })
        }
        (ExprKind::Or(items), true) | (ExprKind::And(items), false) => {
            let mut all = Vec::new();
            for item in items {
                all.extend(alternatives(item, holds, names)?);
            }
            (all.len() <= CONJUNCTIONS_MAX).then_some(all)
        }
        _ => Some(vec![vec![atom(term, holds, names)]]),
    }
}

fn product<'t>(
    some: Vec<Conjunction<'t>>,
    others: Vec<Conjunction<'t>>,
) -> Option<Vec<Conjunction<'t>>> {
    if some.len().saturating_mul(others.len()) > CONJUNCTIONS_MAX {
        return None;
    }
    // Nothing but what is always so.
    if matches!(some.as_slice(), [only] if only.is_empty()) {
        return Some(others);
    }
    let pairs = some.iter().flat_map(|one| others.iter().map(move |other| (one, other)));
    Some(pairs.map(|(one, other)| [one.as_slice(), other.as_slice()].concat()).collect())
}

/// Returns the values that facts must have for a conjunction to be true. `None` if it cannot be true.
#[expect(clippy::mutable_key_type, reason = "topics are compared by their texts")]
fn solve(conjunction: Conjunction<'_>) -> Option<TopicLimits<'_>> {
    let mut limits = TopicLimits::new();
    for (fact, limit) in conjunction {
        let joined = match limits.get(&fact) {
            Some(known) => both(known, &limit)?,
            None => limit,
        };
        limits.insert(fact, joined);
    }
    limits.values().all(|it| value(it).is_some()).then_some(limits)
}

/// Whether these limits leave room for what always holds of the facts they are of.
#[expect(clippy::mutable_key_type, reason = "topics are compared by their texts")]
fn agree(limits: &TopicLimits<'_>, invariants: bool, names: &Names) -> bool {
    let facts: Vec<&Expr> = limits.keys().flat_map(Topic::parts).collect();
    let fits = |(topic, limit): &(Topic<'_>, Constraint)| {
        let of_each = topic
            .sides()
            .and_then(|[one, other]| Some(in_order(limits.get(&one)?, limits.get(&other)?, limit)));
        of_each != Some(false)
            && match limits.get(topic) {
                Some(known) => both(known, limit).is_some_and(|it| value(&it).is_some()),
                None => value(limit).is_some(),
            }
    };
    let always = if invariants { relations::between(&facts) } else { Vec::new() };
    let always = always.into_iter().map(|it| it.condition).chain(wider::between(&facts));
    always.into_iter().all(|condition| {
        alternatives(&condition, true, names)
            .is_none_or(|all| all.iter().any(|it| it.iter().all(fits)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> std::sync::Arc<Expr> {
        Expr::parse(text).unwrap()
    }

    fn ask(term: &Expr, holds: bool) -> Satisfiability<'_> {
        let names = Names {
            session_types: ["DEVELOPMENT".to_owned(), "SIMPLE".to_owned()].into(),
            ..Names::default()
        };
        possible(&[(term, holds)], &names)
    }

    #[test]
    fn what_cannot_hold_never_does() {
        for text in [
            "false",
            "files.count > 5 && files.count < 3",
            "files.count < 0",
            "todos.seen && !todos.seen",
            "event.kind == \"stop\" && event.kind == \"pre_tool_use\"",
            "session.branch == \"a\" && session.branch in [\"b\", \"c\"]",
            "now.hour > 23",
            "session.branch.lower() == \"Main\"",
            "tools.last_at > files.last_at && files.last_at >= tools.last_at",
            "1 == 2",
            "tools.total < tools.total",
            "session.type != \"DEVELOPMENT\" && session.type != \"SIMPLE\" && session.type != \"\"",
            "files.count > 0 && 2 < 1",
            "task.confidence > 0.7 && task.confidence < 0.4",
            "task.confidence >= 0.4 && 0.4 > task.confidence",
            "task.confidence == 0.5 && task.confidence > 0.5",
            "commands.kind(\"test\").passed && commands.kind(\"test\").failed",
            "commands.kind(\"test\").passed && commands.kind(\"test\").count == 0",
            "todos.open > todos.total",
            "todos.total == 0 && todos.open > 2",
            "todos.open > 5 && todos.total < 3",
            "files.count == 0 && files.kind(\"code\").count > 0",
            "files.matching(\"*.md\").written.count > files.matching(\"*.md\").count",
            "tools.count(\"Bash\") > 3 && tools.total < 3",
            "commands.total == 0 && commands.ran(\"git push\")",
            "commands.kind(\"test\").count > commands.total",
            "files.edits < files.count",
            "files.count > 0 && files.last_at == 0",
            "probes.pr.ok && probes.pr.code > 0",
            "files.kind(\"code\").count > 0 && files.kind(\"code\").edits == 0",
        ] {
            assert_eq!(ask(&read(text), true), Satisfiability::Never, "{text}");
        }
    }

    #[test]
    fn what_always_holds_cannot_fail() {
        for text in [
            "true",
            "files.count >= 0",
            "files.count == 0 || files.count > 0",
            "session.branch != \"a\" || session.branch != \"b\"",
            "todos.seen || !todos.seen",
            "now.weekday <= 7",
            "task.confidence < 0.5 || task.confidence >= 0.5",
            "!commands.kind(\"test\").passed || !commands.kind(\"test\").failed",
            "todos.total >= todos.open",
        ] {
            assert_eq!(ask(&read(text), false), Satisfiability::Never, "{text}");
        }
    }

    #[test]
    fn an_example_holds() {
        let example = |text| ask(&read(text), true).witness().unwrap();
        assert_eq!(
            example("files.count > 3 && !todos.seen"),
            "`files.count` is 4, `todos.seen` is false"
        );
        assert_eq!(example("files.count != 0"), "`files.count` is 1");
        assert_eq!(example("probes.pr.code < 0"), "`probes.pr.code` is -2147483648");
        assert_eq!(example("task.confidence < 0.5"), "`task.confidence` is -0.5");
        assert_eq!(example("x.y > 9007199254740992.0"), "`x.y` is 9007199254740994");
        assert_eq!(example("task.confidence != 0.5"), "`task.confidence` is 0");
        assert_eq!(example("0.2 < x.y && x.y < 0.3"), "`x.y` is 0.25");
        assert_eq!(example("session.branch in [\"b\"]"), "`session.branch` is \"b\"");
    }

    #[test]
    fn what_has_no_name_of_its_own_is_not_judged() {
        for text in [
            "1 == 1 && 2 < 3",
            "session.type != \"DEVELOPMENT\" && session.type != \"SIMPLE\"",
            "commands.kind(\"test\").passed && commands.kind(\"lint\").failed",
            "todos.open == todos.total && todos.total > 0",
            "todos.open > 2 && todos.total < 4",
            "!probes.pr.ok && probes.pr.code != 0",
        ] {
            assert_ne!(ask(&read(text), true), Satisfiability::Never, "{text}");
        }
        // A chain that begins in parentheses has no name of its own.
        let chain = read("(session.branch + \"x\").len() > 1");
        assert!(matches!(ask(&chain, true), Satisfiability::Example(_)));
        let (called, asked) =
            (read("[\"a\"].contains(session.branch)"), "session.branch in [\"a\"]");
        assert_eq!(called.canonical(), read(asked).canonical());
    }

    #[test]
    fn what_a_fact_needs_does_not_follow_from_what_is_written() {
        let (count, passed) =
            (read("commands.kind(\"test\").count > 0"), read("commands.kind(\"test\").passed"));
        let names = Names::default();
        assert_eq!(possible(&[(&passed, true), (&count, false)], &names), Satisfiability::Never);
        assert!(!follows((&count, true), (&passed, true), &names));
        assert!(follows((&count, true), (&count, true), &names));
    }

    #[test]
    fn one_of_a_list_follows_from_one_of_its_texts() {
        let one = r#"program.has(["-f"]) && files.count > 1"#;
        let more = r#"program.has(["--force", "-f"])"#;
        let (one, more) = (one_by_one(&read(one)), one_by_one(&read(more)));
        let names = Names::default();
        assert_eq!(possible(&[(&one, true), (&more, false)], &names), Satisfiability::Never);
        assert_ne!(possible(&[(&one, false), (&more, true)], &names), Satisfiability::Never);
    }

    #[test]
    fn what_is_too_large_is_unknown() {
        let pairs: Vec<String> = (0..9).map(|it| format!("(a{it} || b{it})")).collect();
        assert_eq!(ask(&read(&pairs.join(" && ")), true), Satisfiability::Unknown);
    }
}
