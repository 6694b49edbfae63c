//! What facts say of each other, whatever happens in a session.

use super::paths;
use super::types::Subject;

/// Something that always holds of two facts.
#[derive(Debug)]
pub struct Relation {
    /// Types of their owners.
    pub owners: [Subject; 2],
    /// Whose members the two are.
    pub kin: OwnerRelation,
    /// The names of the two.
    pub members: [&'static str; 2],
    /// What holds; `{0}` and `{1}` stand for the two.
    pub holds: &'static str,
}

/// Whose members two facts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerRelation {
    /// Of one owner.
    Same,
    /// The first of a part of what the second is of: `files.kind("code")` and `files`.
    Part,
}

const fn row(owner: Subject, members: [&'static str; 2], holds: &'static str) -> Relation {
    Relation { owners: [owner; 2], kin: OwnerRelation::Same, members, holds }
}

/// A number of a part is at most one of the whole.
const fn part(owners: [Subject; 2], members: [&'static str; 2]) -> Relation {
    Relation { owners, kin: OwnerRelation::Part, members, holds: "{0} <= {1}" }
}

/// All of them.
pub const ALWAYS: &[Relation] = &[
    row(Subject::CommandKind, ["passed", "failed"], "!({0} && {1})"),
    row(Subject::CommandKind, ["passed", "count"], "!{0} || {1} > 0"),
    row(Subject::CommandKind, ["failed", "count"], "!{0} || {1} > 0"),
    row(Subject::CommandKind, ["passed", "last_passed_at"], "!{0} || {1} > 0"),
    row(Subject::Command, ["exists", "text"], "{0} || {1} == \"\""),
    row(Subject::Command, ["exists", "at"], "{0} || {1} == 0"),
    row(Subject::Command, ["exists", "at"], "!{0} || {1} > 0"),
    row(Subject::Commands, ["ran", "total"], "!{0} || {1} > 0"),
    row(Subject::Files, ["count", "edits"], "{0} <= {1}"),
    row(Subject::Files, ["count", "last_at"], "{0} > 0 || {1} == 0"),
    row(Subject::Files, ["count", "last_at"], "{0} == 0 || {1} > 0"),
    row(Subject::Todos, ["open", "total"], "{0} <= {1}"),
    row(Subject::Tools, ["count", "total"], "{0} <= {1}"),
    row(Subject::Probe, ["ok", "code"], "!{0} || {1} == 0"),
    row(Subject::Probe, ["ok", "code"], "{0} || {1} != 0"),
    row(Subject::Probe, ["ok", "error"], "!{0} || {1} == \"\""),
    part([Subject::CommandKind, Subject::Commands], ["count", "total"]),
    part([Subject::Files, Subject::Files], ["count", "count"]),
    part([Subject::Files, Subject::Files], ["edits", "edits"]),
    part([Subject::Files, Subject::Files], ["last_at", "last_at"]),
];

impl Relation {
    /// It said of two facts, by their texts.
    fn of(&self, [one, other]: [&str; 2]) -> String {
        self.holds.replace("{0}", one).replace("{1}", other)
    }

    /// Whether it speaks of two facts.
    fn speaks_of(&self, one: Fact<'_>, other: Fact<'_>) -> bool {
        let kin = match self.kin {
            OwnerRelation::Same => one.owner == other.owner,
            OwnerRelation::Part => {
                one.owner.strip_prefix(other.owner).is_some_and(|it| it.starts_with('.'))
            }
        };
        kin && self.members == [one.member, other.member]
            && [one, other].map(|it| paths::type_of(it.owner))
                == self.owners.map(|it| Some(it.as_type()))
    }
}

/// A fact by the text of its path.
#[derive(Clone, Copy)]
struct Fact<'f> {
    path: &'f str,
    owner: &'f str,
    member: &'f str,
}

impl<'f> Fact<'f> {
    fn new(path: &'f str) -> Option<Self> {
        let (owner, member) = paths::owner_and_member(path)?;
        Some(Self { path, owner, member })
    }
}

/// What those of `relations` say of these facts, by their texts, that have both facts they speak of.
#[must_use]
pub fn between(facts: &[&str], relations: &[Relation]) -> Vec<String> {
    let facts: Vec<Fact<'_>> = facts.iter().filter_map(|path| Fact::new(path)).collect();
    let mut found = Vec::new();
    for one in &facts {
        for relation in relations.iter().filter(|it| it.members[0] == one.member) {
            let others = facts.iter().filter(|it| relation.speaks_of(*one, **it));
            found.extend(others.map(|it| relation.of([one.path, it.path])));
        }
    }
    found
}
