//! Questions of one fact that follow from each other, for one asks for more than the other: what writes
//! `src/gen/**` writes `src/**`, and changes it. A path that is itself a pattern of the shell (`cat set*local`) is
//! only guessed at, by the plain names among the globs, and left out of account here.

use std::slice::from_ref;

use super::ast::{Expr, ExprKind};
use super::invariant::{Invariant, Is};
use super::members::{self, Member};
use super::paths::{self, Fact};
use super::relations::{at_most, either};
use super::types::{TextMatch, Type};
use policyd_facts::covers;

/// Whether a text, as an argument, asks for all that another one asks for.
type Covers = fn(&str, &str) -> bool;

/// Returns whether a text, as an argument of a function that compares so, asks for all that another one asks for.
/// `None` if a function that compares so does not ask.
fn covers(compared: TextMatch) -> Option<Covers> {
    Some(match compared {
        TextMatch::Whole | TextMatch::Option => |wider, narrow| wider == narrow,
        TextMatch::Part => |wider, narrow| narrow.contains(wider),
        TextMatch::Beginning => |wider, narrow| narrow.starts_with(wider),
        TextMatch::End => |wider, narrow| narrow.ends_with(wider),
        TextMatch::Word => covers::word,
        TextMatch::Path => covers::path,
        TextMatch::Command => covers::command,
        TextMatch::Each | TextMatch::Not => return None,
    })
}

/// A call at the end of a fact: its owner, the function, and its texts.
struct FactCall<'t> {
    owner: Fact<'t>,
    row: &'static Member,
    covers: Covers,
    texts: Vec<&'t str>,
}

impl<'t> FactCall<'t> {
    fn new(fact: Fact<'t>) -> Option<Self> {
        let (owner, row) = (fact.owner()?, paths::member(fact)?);
        let covers = covers(row.compares()?.0)?;
        let argument = fact.last()?.arguments.last()?;
        let items =
            if let ExprKind::List(items) = &argument.kind { items } else { from_ref(argument) };
        let texts = items
            .iter()
            .map(|it| if let ExprKind::Text(it) = &it.kind { Some(it.as_str()) } else { None });
        let texts: Vec<&str> = texts.collect::<Option<_>>()?;
        // What stands behind `!` is left out of the others.
        let is_plain = !texts.is_empty() && !texts.iter().any(|it| it.starts_with('!'));
        is_plain.then_some(Self { owner, row, covers, texts })
    }

    /// The same of a question.
    fn asking(fact: Fact<'t>) -> Option<Self> {
        Self::new(fact).filter(|it| it.row.result == Type::Bool)
    }

    /// Whether the other function is true for each argument for which this one is.
    fn implies(&self, other: &Self) -> bool {
        let begins_or_ends = || {
            let compared = (self.row.compares(), other.row.compares());
            matches!(
                compared,
                (Some((TextMatch::Beginning | TextMatch::End, _)), Some((TextMatch::Part, _)))
            )
        };
        let row = members::row_of(self.row.owner, self.row.name);
        row.is_some_and(|it| it.invariants.contains(&Invariant::Implies(other.row.name)))
            || begins_or_ends()
    }

    /// Whether this holds wherever the other does.
    fn follows(&self, other: &Self) -> bool {
        self.owner == other.owner
            && (self.row.name == other.row.name || other.implies(self))
            && other
                .texts
                .iter()
                .all(|narrow| self.texts.iter().any(|it| (self.covers)(it, narrow)))
    }
}

/// Whether a function chooses some of what its owner has by their paths.
fn chooses_paths(row: &Member) -> bool {
    row.result == row.owner && row.compares() == Some((TextMatch::Path, false))
}

/// The call that chooses what a fact is a member of: `files.matching("src/**")`.
fn choice(owner: Fact<'_>) -> Option<Fact<'_>> {
    owner.owners().filter(|it| paths::member(*it).is_some_and(chooses_paths)).last()
}

/// Whether two owners of facts are chosen in the same way.
#[must_use]
pub fn alike(one: Fact<'_>, other: Fact<'_>) -> bool {
    let chosen = [one, other].map(|it| choice(it).and_then(Fact::owner));
    chosen[0].is_some() && chosen[0] == chosen[1]
}

/// The condition that one fact is false or another one is true.
fn implies(narrow: &Expr, wide: &Expr) -> Expr {
    either(Is::False.of(narrow), Is::True.of(wide))
}

/// Returns what such questions among these facts say of each other.
#[must_use]
pub fn between(facts: &[&Expr]) -> Vec<Expr> {
    // Nothing follows from most facts.
    let calls: Vec<(&Expr, FactCall<'_>)> =
        facts.iter().filter_map(|it| Some((*it, FactCall::asking(it.fact()?)?))).collect();
    let chosen = facts.iter().filter_map(|expr| {
        let fact = expr.fact()?;
        let member = fact.last()?.name;
        let call = FactCall::new(fact.owner()?).filter(|it| chooses_paths(it.row))?;
        let row = members::row_of(call.row.result, member)?;
        row.invariants.iter().find(|it| **it == Invariant::AtMostOfWhole(row.member.name))?;
        Some((*expr, member, call))
    });
    let chosen: Vec<(&Expr, &str, FactCall<'_>)> = chosen.collect();
    let mut found = Vec::new();
    for (narrow, one) in &calls {
        let wider = calls.iter().filter(|(wide, it)| narrow != wide && it.follows(one));
        found.extend(wider.map(|(wide, _)| implies(narrow, wide)));
    }
    for (narrow, member, one) in &chosen {
        let wider = chosen
            .iter()
            .filter(|(wide, of, it)| narrow != wide && member == of && it.follows(one));
        found.extend(wider.map(|(wide, ..)| at_most(narrow, wide)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_for_more_follows_from_one_for_less() {
        for (facts, said) in [
            ([r#"action.writes(["src/gen/**"])"#, r#"action.writes(["src/**"])"#], "!{0} || {1}"),
            (
                [r#"action.writes(["src/**"])"#, r#"action.touches(["docs/**","**"])"#],
                "!{0} || {1}",
            ),
            ([r#"action.runs("git push")"#, r#"action.runs("git*")"#], "!{0} || {1}"),
            ([r#"program.names(["main"])"#, r#"program.names(["main","x"])"#], "!{0} || {1}"),
            (
                [r#"session.branch.starts_with("a/b")"#, r#"session.branch.contains("a/")"#],
                "!{0} || {1}",
            ),
            (
                [r#"files.matching("src/*.rs").count"#, r#"files.matching("src/**").count"#],
                "{0} <= {1}",
            ),
            ([r#"action.touches(["src/**"])"#, r#"action.writes(["src/**"])"#], "!{1} || {0}"),
            ([r#"action.writes(["a","!b"])"#, r#"action.writes(["a"])"#], ""),
            ([r#"action.writes(["a"])"#, r#"action.reads(["a"])"#], ""),
            ([r#"files.paths.contains("ab")"#, r#"files.paths.contains("a")"#], ""),
            ([r#"files.matching("a").count"#, r#"files.matching("a").edits"#], ""),
            ([r#"files.matching("a").count"#, r#"files.matching("b").count"#], ""),
        ] {
            let said = said.replace("{0}", facts[0]).replace("{1}", facts[1]);
            let trees = facts.map(Expr::of_text);
            let found = between(&[&trees[0], &trees[1]]);
            let found: Vec<_> = found.iter().map(Expr::canonical).collect();
            let expected =
                if said.is_empty() { said } else { Expr::of_text(&said).canonical().into_owned() };
            assert_eq!(found.join("; "), expected, "{facts:?}");
        }
    }
}
