//! Questions of one fact that follow from each other, for one asks for more than the other: what writes
//! `src/gen/**` writes `src/**`, and changes it. A path that is itself a pattern of the shell (`cat set*local`) is
//! only guessed at, by the plain names among the globs, and left out of account here.

use std::slice::from_ref;

use super::ast::{Expr, ExprKind};
use super::paths;
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

/// A call at the end of a path: its owner, the function, and its texts.
struct Call<'f> {
    path: &'f str,
    owner: &'f str,
    function: &'static str,
    covers: Covers,
    texts: Vec<String>,
}

impl<'f> Call<'f> {
    fn new(path: &'f str) -> Option<Self> {
        let (owner, name) = paths::owner_and_member(path)?;
        let (function, covers) = FUNCTIONS.iter().find(|it| it.0 == name)?;
        // A list contains whole texts.
        let of_text = matches!(*function, "contains" | "starts_with");
        if !path.ends_with(')') || (of_text && paths::type_of(owner) != Some(Type::Text)) {
            return None;
        }
        let term = Expr::parse(path)?;
        let ExprKind::Fact(_, arguments) = &term.kind else { return None };
        let argument = arguments.last()?;
        let items =
            if let ExprKind::List(items) = &argument.kind { items } else { from_ref(argument) };
        let texts = items
            .iter()
            .map(|it| if let ExprKind::Text(it) = &it.kind { Some(it.clone()) } else { None });
        let texts: Vec<String> = texts.collect::<Option<_>>()?;
        // What stands behind `!` is left out of the others.
        let is_plain = !texts.is_empty() && !texts.iter().any(|it| it.starts_with('!'));
        is_plain.then_some(Self { path, owner, function, covers: *covers, texts })
    }

    /// Whether this holds wherever the other does.
    fn follows(&self, other: &Self) -> bool {
        let meant = || MEANT_BY.iter().find(|it| it.0 == other.function).map(|it| it.1);
        self.owner == other.owner
            && (self.function == other.function
                || meant().is_some_and(|it| it.contains(&self.function)))
            && other
                .texts
                .iter()
                .all(|narrow| self.texts.iter().any(|it| (self.covers)(it, narrow)))
    }
}

/// What chooses files, whose members are asked for.
const CHOOSING: &str = ".matching(";

/// Whether two owners of facts are chosen in the same way.
#[must_use]
pub fn alike(one: &str, other: &str) -> bool {
    let choice = |it: &str| it.find(CHOOSING);
    choice(one).is_some() && choice(one) == choice(other)
}

/// Whether a call of one of two functions can follow from a call of the other one.
fn are_related(one: &str, other: &str) -> bool {
    let meant =
        |by: &str, it: &str| MEANT_BY.iter().any(|(name, all)| *name == by && all.contains(&it));
    one == other || meant(one, other) || meant(other, one)
}

/// What such questions among these facts say of each other, by their texts.
#[must_use]
pub fn between(facts: &[&str]) -> Vec<String> {
    // Most conditions ask for no two.
    let may_ask = |it: &&&str| it.ends_with(')') || it.contains(CHOOSING);
    if facts.iter().filter(may_ask).count() < 2 {
        return Vec::new();
    }
    // Nothing follows from most calls, by their owners and functions.
    let heads = facts.iter().filter(|it| it.ends_with(')'));
    let heads: Vec<_> = heads.filter_map(|it| Some((*it, paths::owner_and_member(it)?))).collect();
    let calls = heads.iter().filter(|(path, (owner, function))| {
        heads.iter().any(|(other, (of, called))| {
            path != other && owner == of && are_related(function, called)
        })
    });
    let calls: Vec<Call<'_>> = calls.filter_map(|(path, _)| Call::new(path)).collect();
    let pairs = |count: usize| {
        (0..count)
            .flat_map(move |one| (0..count).map(move |it| (one, it)))
            .filter(|it| it.0 != it.1)
    };
    let mut found = Vec::new();
    for (one, other) in pairs(calls.len()) {
        if let (Some(one), Some(other)) = (calls.get(one), calls.get(other))
            && other.follows(one)
        {
            found.push(format!("!{} || {}", one.path, other.path));
        }
    }
    let counted = facts.iter().filter_map(|path| {
        let (owner, member) = paths::owner_and_member(path)?;
        let call =
            Call::new(owner).filter(|it| it.function == "matching" && COUNTED.contains(&member))?;
        Some((*path, member, call))
    });
    let counted: Vec<(&str, &str, Call<'_>)> = counted.collect();
    for (one, other) in pairs(counted.len()) {
        if let (Some((one, member, narrow)), Some((other, of, wide))) =
            (counted.get(one), counted.get(other))
            && member == of
            && wide.follows(narrow)
        {
            found.push(format!("{one} <= {other}"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::between;

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
            assert_eq!(between(&facts).join("; "), said, "{facts:?}");
        }
    }
}
