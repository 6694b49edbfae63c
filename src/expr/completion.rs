//! What an incomplete or unknown name in an expression could be meant to be.

use std::collections::BTreeSet;

use super::check::check;
use super::marks::{ExpectedWord, place};
use super::table::{KnownNames, Member};
use super::types::Type;
use policyd_yaml::suggest;

/// A name that completes an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The name, with its parameters if it is a function: `kind(text)`.
    pub name: String,
    /// Type of its value.
    pub result: Type,
    /// One sentence; empty for the names of a pack.
    pub doc: &'static str,
}

/// Returns the names that complete an expression. For an unknown name: the names with the same prefix, else all names
/// that are valid at its position, the most similar first. For an incomplete expression: the names that can follow.
/// Empty for a complete expression.
#[must_use]
pub fn candidates(text: &str, names: &dyn KnownNames) -> Vec<Candidate> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let typed = check(text, names);
    let ends = text.trim_end().len();
    if typed.findings.is_empty() {
        return members_of(typed.result, "", names);
    }
    let mut found: Vec<Candidate> = Vec::new();
    for it in &typed.findings {
        let all = match it.code {
            "unknown-fact" => at(text, it.end, names),
            // An argument has quotation marks.
            "unknown-name" if text.get(it.start..).is_some_and(|it| it.starts_with(['"', '`'])) => {
                at(text, it.start + 1, names)
            }
            "unknown-name" => at(text, it.end, names),
            "expression-syntax" => at(text, ends, names),
            _ => Vec::new(),
        };
        for it in all {
            if !found.contains(&it) {
                found.push(it);
            }
        }
    }
    found
}

/// What could stand where the name at a byte stands.
fn at(text: &str, offset: usize, names: &dyn KnownNames) -> Vec<Candidate> {
    let place = place(text, offset, names);
    let begun = text.get(place.word.clone()).unwrap_or_default();
    let is_text = text.get(..place.word.start).is_some_and(|it| it.ends_with(['"', '`']));
    match place.expected {
        ExpectedWord::Members(Type::Global) => rows(Type::Global, begun, names),
        ExpectedWord::Members(owner) => members_of(owner, begun, names),
        ExpectedWord::PackNames(kind) => named(names.of_kind(kind), begun, Type::Text),
        ExpectedWord::Values { .. } if !is_text => rows(Type::Global, begun, names),
        ExpectedWord::Values { .. } | ExpectedWord::Items | ExpectedWord::Nothing => Vec::new(),
    }
}

fn members_of(owner: Type, begun: &str, names: &dyn KnownNames) -> Vec<Candidate> {
    let plain = match owner {
        Type::Bool | Type::Int | Type::Decimal | Type::Record | Type::Any => true,
        // What has a value is complete; its members are named only where one is begun.
        Type::Text | Type::Texts => begun.is_empty(),
        Type::Global | Type::Object(_) => false,
    };
    match names.table().named_members(owner) {
        Some(it) => named(names.of_kind(it.kind), begun, it.result),
        None if plain => Vec::new(),
        None => rows(owner, begun, names),
    }
}

fn rows(owner: Type, begun: &str, names: &dyn KnownNames) -> Vec<Candidate> {
    let all: Vec<&Member> = names.table().rows().filter(|it| it.owner == owner).collect();
    let chosen = chosen(&all.iter().map(|it| it.name).collect::<Vec<_>>(), begun);
    let row = |name: &str| {
        let it = all.iter().find(|it| it.name == name)?;
        Some(Candidate { name: it.signature(), result: it.result, doc: it.doc })
    };
    chosen.into_iter().filter_map(row).collect()
}

fn named(known: &BTreeSet<String>, begun: &str, result: Type) -> Vec<Candidate> {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let name = |it: &str| Candidate { name: it.to_owned(), result, doc: "" };
    chosen(&known, begun).into_iter().map(name).collect()
}

/// The names that begin as `begun`; else all of them, the nearest first.
fn chosen<'n>(known: &[&'n str], begun: &str) -> Vec<&'n str> {
    let mut known: Vec<&str> = known.to_vec();
    known.sort_unstable();
    let folded = begun.to_lowercase();
    let alike: Vec<&str> = known.iter().copied().filter(|it| it.starts_with(&folded)).collect();
    if !alike.is_empty() {
        return alike;
    }
    let nearest = suggest::nearest(begun, &known);
    known.sort_by_key(|it| Some(*it) != nearest);
    known
}
