//! What facts of one owner say of each other, whatever happens in a session.

use std::rc::Rc;

use super::paths;
use super::tree::Term;
use super::types::Type;

/// Something that always holds of two members of one owner.
#[derive(Debug)]
pub struct Relation {
    /// Whose members they are.
    pub owner: Type,
    /// The two.
    pub members: [&'static str; 2],
    /// What holds; `it` stands for the owner.
    pub holds: &'static str,
}

const fn row(owner: Type, members: [&'static str; 2], holds: &'static str) -> Relation {
    Relation { owner, members, holds }
}

/// All of them.
pub const ALWAYS: &[Relation] = &[
    row(Type::CommandKind, ["passed", "failed"], "!(it.passed && it.failed)"),
    row(Type::CommandKind, ["passed", "count"], "!it.passed || it.count > 0"),
    row(Type::CommandKind, ["failed", "count"], "!it.failed || it.count > 0"),
    row(Type::CommandKind, ["passed", "last_passed_at"], "!it.passed || it.last_passed_at > 0"),
    row(Type::Command, ["exists", "text"], "it.exists || it.text == \"\""),
    row(Type::Command, ["exists", "at"], "it.exists || it.at == 0"),
    row(Type::Command, ["exists", "at"], "!it.exists || it.at > 0"),
    row(Type::Files, ["count", "edits"], "it.count <= it.edits"),
    row(Type::Files, ["count", "last_at"], "it.count > 0 || it.last_at == 0"),
    row(Type::Files, ["count", "last_at"], "it.count == 0 || it.last_at > 0"),
    row(Type::Todos, ["open", "total"], "it.open <= it.total"),
    row(Type::Probe, ["ok", "code"], "!it.ok || it.code == 0"),
    row(Type::Probe, ["ok", "code"], "it.ok || it.code != 0"),
    row(Type::Probe, ["ok", "error"], "!it.ok || it.error == \"\""),
];

impl Relation {
    /// It said of one owner, by the text of its path.
    #[must_use]
    pub fn of(&self, owner: &str) -> String {
        self.holds.replace("it.", &format!("{owner}."))
    }
}

/// What those of `relations` say of these facts, by their texts, that have both facts they speak of.
#[must_use]
pub fn between(facts: &[&str], relations: &[Relation]) -> Vec<Rc<Term>> {
    let mut found = Vec::new();
    for (owner, member) in facts.iter().filter_map(|it| it.rsplit_once('.')) {
        for relation in relations.iter().filter(|it| it.members[0] == member) {
            let is_other = |it: &&str| it.rsplit_once('.') == Some((owner, relation.members[1]));
            if facts.iter().any(is_other) && paths::type_of(owner) == Some(relation.owner) {
                found.extend(Term::parse(&relation.of(owner)));
            }
        }
    }
    found
}
