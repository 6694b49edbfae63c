//! What an incomplete or unknown name in an expression could be meant to be.

use std::collections::BTreeSet;

use super::check::{Finding, check};
use super::table::{KnownNames, Member};
use super::types::{Domain, Type};
use policyd_yaml::suggest;

/// A name that could stand there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// It, with its parameters where it is called: `kind(text)`.
    pub name: String,
    /// Type of its value.
    pub result: Type,
    /// One sentence; empty for the names of a pack.
    pub doc: &'static str,
}

/// The names that an expression lacks: for each unknown one those that begin like it, else all that
/// could stand there, the nearest first; for one that ends too early what could follow. Nothing
/// where it is complete.
#[must_use]
pub fn candidates(text: &str, names: &dyn KnownNames) -> Vec<Candidate> {
    let typed = check(text, names);
    let ends = text.trim_end().len();
    if typed.findings.is_empty() {
        return members_of(typed.result, "", names);
    }
    let mut found: Vec<Candidate> = Vec::new();
    for it in &typed.findings {
        let all = match it.code {
            "unknown-fact" | "unknown-function" => at(text, it.end, names),
            "unknown-name" => pack_names(text, it, names),
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

/// What could stand where the name that ends at `end` stands.
fn at(text: &str, end: usize, names: &dyn KnownNames) -> Vec<Candidate> {
    let before = text.get(..end).unwrap_or_default();
    let start = before.trim_end_matches(is_name_character).len();
    let (before, begun) = before.split_at_checked(start).unwrap_or_default();
    match before.trim_end().strip_suffix('.') {
        Some(chain) => {
            owner(chain, names).map(|it| members_of(it, begun, names)).unwrap_or_default()
        }
        // A complete text that something is missing after: no name could help.
        None if begun.starts_with(|c: char| c.is_ascii_digit()) => Vec::new(),
        None if begun.is_empty() && !before.trim_end().ends_with(OPENINGS) => Vec::new(),
        None => rows(Type::Global, begun, names),
    }
}

/// What may stand before a name.
const OPENINGS: [char; 11] = ['(', '[', '{', '!', '&', '|', '=', '<', '>', ',', '+'];

fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The type of what a text ends with: the shortest end of it that is an expression.
fn owner(chain: &str, names: &dyn KnownNames) -> Option<Type> {
    let mut starts = chain.char_indices().map(|(at, _)| at).rev();
    starts.find_map(|start| {
        let (before, operand) = chain.split_at_checked(start)?;
        let continues = before.ends_with(|c| is_name_character(c) || c == '.' || c == '"');
        if continues || operand.trim_start() != operand {
            return None;
        }
        let typed = check(operand, names);
        (typed.findings.is_empty() && typed.result != Type::Any).then_some(typed.result)
    })
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

/// The names of the pack that a text argument may be.
fn pack_names(text: &str, finding: &Finding, names: &dyn KnownNames) -> Vec<Candidate> {
    let before = text.get(..finding.start).unwrap_or_default().trim_end();
    let Some(called) = before.strip_suffix('(').map(str::trim_end) else {
        return at(text, finding.end, names);
    };
    let start = called.trim_end_matches(is_name_character).len();
    let (chain, method) = called.split_at_checked(start).unwrap_or_default();
    let owner = chain.trim_end().strip_suffix('.').and_then(|it| owner(it, names));
    let row = owner.and_then(|it| names.table().find(it, method));
    let domain = row.and_then(|it| it.params?.first().map(|(_, domain)| *domain));
    let Some(Domain::Name(kind)) = domain else { return Vec::new() };
    let written = text.get(finding.start..finding.end).unwrap_or_default();
    named(names.of_kind(kind), written.trim_matches('"'), Type::Text)
}
