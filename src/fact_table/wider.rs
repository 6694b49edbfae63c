//! Questions of one fact that follow from each other, for one asks for more than the other: what writes
//! `src/gen/**` writes `src/**`, and changes it. A path that is itself a pattern of the shell (`cat set*local`) is
//! only guessed at, by the plain names among the globs, and left out of account here.

use std::slice::from_ref;

use super::ast::{Expr, ExprKind};
use super::paths::{self, Fact};
use super::relations::{Holds, Is};
use super::types::Type;
use policyd_facts::covers;

/// Whether a text, as an argument, asks for all that another one asks for.
type Covers = fn(&str, &str) -> bool;

/// Functions that hold where one of their texts does, and when a text asks for more.
const FUNCTIONS: [(&str, Covers); 19] = [
    ("reads", covers::path),
    ("writes", covers::path),
    ("deletes", covers::path),
    ("changes", covers::path),
    ("touches", covers::path),
    ("overwrites", covers::path),
    ("fed_from", covers::path),
    ("any", covers::path),
    ("matching", covers::path),
    ("names", covers::word),
    ("expands", covers::word),
    ("sets", covers::word),
    ("has", same),
    ("wrapped_by", same),
    ("fed_by", covers::command),
    ("runs", covers::command),
    ("ran", covers::command),
    ("contains", part),
    ("starts_with", beginning),
];

/// A function and those that hold of whatever it holds of.
const MEANT_BY: [(&str, &[&str]); 5] = [
    ("writes", &["changes", "touches"]),
    ("deletes", &["changes", "touches"]),
    ("changes", &["touches"]),
    ("reads", &["touches"]),
    ("starts_with", &["contains"]),
];

/// Members of the files that a glob chooses that are no greater for a narrower one.
const COUNTED: [&str; 3] = ["count", "edits", "last_at"];

fn same(wider: &str, narrow: &str) -> bool {
    wider == narrow
}

fn part(wider: &str, narrow: &str) -> bool {
    narrow.contains(wider)
}

fn beginning(wider: &str, narrow: &str) -> bool {
    narrow.starts_with(wider)
}

/// A call at the end of a fact: its owner, the function, and its texts.
struct Call<'t> {
    owner: Fact<'t>,
    function: &'static str,
    covers: Covers,
    texts: Vec<&'t str>,
}

impl<'t> Call<'t> {
    fn new(fact: Fact<'t>) -> Option<Self> {
        let (owner, last) = (fact.owner()?, fact.last().filter(|it| it.is_call)?);
        let (function, covers) = FUNCTIONS.iter().find(|it| it.0 == last.name)?;
        // A list contains whole texts.
        let of_text = matches!(*function, "contains" | "starts_with");
        if of_text && paths::type_of(owner) != Some(Type::Text) {
            return None;
        }
        let argument = last.arguments.last()?;
        let items =
            if let ExprKind::List(items) = &argument.kind { items } else { from_ref(argument) };
        let texts = items
            .iter()
            .map(|it| if let ExprKind::Text(it) = &it.kind { Some(it.as_str()) } else { None });
        let texts: Vec<&str> = texts.collect::<Option<_>>()?;
        // What stands behind `!` is left out of the others.
        let is_plain = !texts.is_empty() && !texts.iter().any(|it| it.starts_with('!'));
        is_plain.then_some(Self { owner, function, covers: *covers, texts })
    }

    /// Whether this holds wherever the other does.
    fn follows(&self, other: &Self) -> bool {
        self.owner == other.owner
            && (self.function == other.function || is_meant_by(other.function, self.function))
            && other
                .texts
                .iter()
                .all(|narrow| self.texts.iter().any(|it| (self.covers)(it, narrow)))
    }
}

/// Whether a function holds of whatever another one holds of.
fn is_meant_by(narrow: &str, wide: &str) -> bool {
    MEANT_BY.iter().any(|(name, all)| *name == narrow && all.contains(&wide))
}

/// The call that chooses what a fact is a member of: `files.matching("src/**")`.
fn choice(owner: Fact<'_>) -> Option<Fact<'_>> {
    owner.owners().filter(|it| it.last().is_some_and(|it| it.name == "matching")).last()
}

/// Whether two owners of facts are chosen in the same way.
#[must_use]
pub fn alike(one: Fact<'_>, other: Fact<'_>) -> bool {
    let chosen = [one, other].map(|it| choice(it).and_then(Fact::owner));
    chosen[0].is_some() && chosen[0] == chosen[1]
}

/// The condition that one fact is false or another one is true.
fn implies(narrow: &Expr, wide: &Expr) -> Expr {
    Holds::Either(Is::False, Is::True).of(narrow, wide)
}

/// Returns what such questions among these facts say of each other.
#[must_use]
pub fn between(facts: &[&Expr]) -> Vec<Expr> {
    // Nothing follows from most facts.
    let calls: Vec<(&Expr, Call<'_>)> =
        facts.iter().filter_map(|it| Some((*it, Call::new(it.fact()?)?))).collect();
    let chosen = facts.iter().filter_map(|expr| {
        let fact = expr.fact()?;
        let member = fact.last()?.name;
        let call = Call::new(fact.owner()?)
            .filter(|it| it.function == "matching" && COUNTED.contains(&member))?;
        Some((*expr, member, call))
    });
    let chosen: Vec<(&Expr, &str, Call<'_>)> = chosen.collect();
    let mut found = Vec::new();
    for (narrow, one) in &calls {
        let wider = calls.iter().filter(|(wide, it)| narrow != wide && it.follows(one));
        found.extend(wider.map(|(wide, _)| implies(narrow, wide)));
    }
    for (narrow, member, one) in &chosen {
        let wider = chosen
            .iter()
            .filter(|(wide, of, it)| narrow != wide && member == of && it.follows(one));
        found.extend(wider.map(|(wide, ..)| Holds::AtMost.of(narrow, wide)));
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
