//! The names that a pack defines, and the table of facts as the language reads it.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use policyd_expr::table::{FactTable, KnownNames, Member, NamedItems, NamedMembers};
use policyd_expr::types::{Domain, Evidence, NameClass, TextMatch, Type};

use super::record::Shape;
use super::subject::{ITEMS, PackName, Subject};
use super::{members, time_zones};
use policyd_facts::record::wire::KEPT_FIELDS;
use policyd_yaml::checksum::fingerprint;

/// Names a pack defines that expressions may use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Command kinds.
    pub command_kinds: BTreeSet<String>,
    /// File kinds.
    pub file_kinds: BTreeSet<String>,
    /// Lists of paths.
    pub path_lists: BTreeSet<String>,
    /// Content patterns.
    pub contents: BTreeSet<String>,
    /// Text patterns.
    pub texts: BTreeSet<String>,
    /// Preferences.
    pub preferences: BTreeSet<String>,
    /// Probes.
    pub probes: BTreeSet<String>,
    /// Entries of the memory.
    pub memory: BTreeSet<String>,
    /// Session types.
    pub session_types: BTreeSet<String>,
    /// Forges.
    pub forges: BTreeSet<String>,
    /// Tiers of the context.
    pub tiers: BTreeSet<String>,
    /// Whether a vocabulary could not be read. Then no name counts as unknown.
    pub incomplete: bool,
    /// The record that expressions read. If there is one, they read nothing else.
    pub record: Option<Arc<Shape>>,
}

impl Names {
    /// The names that a text argument of this kind can be; `None` if it is not a name.
    #[must_use]
    pub fn of(&self, domain: Domain) -> Option<&BTreeSet<String>> {
        match domain {
            Domain::Name(kind) => PackName::from_kind(kind).map(|it| self.of_name(it)),
            Domain::Text(_) | Domain::Regex => None,
        }
    }

    /// Returns a hash of the names.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        fingerprint(&[&format!("{self:?}")])
    }

    /// The names of a class that the pack defines.
    #[must_use]
    pub fn of_class(&self, class: NameClass) -> &BTreeSet<String> {
        self.of_kind(class)
    }

    /// The class of names that are the members of a type; `None` if the table has its members.
    #[must_use]
    pub fn class_of_members(owner: Type) -> Option<NameClass> {
        TableOfFacts.named_members(owner).map(|it| it.kind)
    }

    /// Returns the type of the members of a type whose names a pack defines.
    #[must_use]
    pub fn type_of_members(owner: Type) -> Option<Type> {
        TableOfFacts.named_members(owner).map(|it| it.result)
    }

    fn of_name(&self, name: PackName) -> &BTreeSet<String> {
        match name {
            PackName::CommandKind => &self.command_kinds,
            PackName::FileKind => &self.file_kinds,
            PackName::PathList => &self.path_lists,
            PackName::Content => &self.contents,
            PackName::Text => &self.texts,
            PackName::Tier => &self.tiers,
            PackName::Preference => &self.preferences,
            PackName::Probe => &self.probes,
            PackName::MemoryEntry => &self.memory,
            PackName::SessionType => &self.session_types,
            PackName::Forge => &self.forges,
            PackName::InputField => &INPUT_FIELDS,
            PackName::TimeZone => &time_zones::ZONES,
            PackName::Signal
            | PackName::Excuse
            | PackName::Alarm
            | PackName::Breaker
            | PackName::FailureClass
            | PackName::ErrorType
            | PackName::ErrorName
            | PackName::Trigger
            | PackName::Tool
            | PackName::Program
            | PackName::Secret
            | PackName::IssuedSecret
            | PackName::PermissionMode
            | PackName::SessionSource => &NO_NAMES,
        }
    }
}

/// Fields of the input of a tool call that facts keep.
static INPUT_FIELDS: LazyLock<BTreeSet<String>> =
    LazyLock::new(|| KEPT_FIELDS.iter().map(|it| (*it).to_owned()).collect());

/// Names of a kind that is not kept here.
static NO_NAMES: BTreeSet<String> = BTreeSet::new();

impl KnownNames for Names {
    fn table(&self) -> &'static dyn FactTable {
        &TableOfFacts
    }

    fn of_kind(&self, kind: NameClass) -> &BTreeSet<String> {
        PackName::from_kind(kind).map_or(&NO_NAMES, |it| self.of_name(it))
    }

    fn values(&self, ids: NameClass) -> Option<Vec<&str>> {
        let name = PackName::from_kind(ids)?;
        let is_complete =
            name == PackName::SessionType || (name == PackName::Forge && !self.incomplete);
        let known = Some(self.of_name(name)).filter(|_| is_complete)?;
        // A session may be of no type.
        Some(known.iter().map(String::as_str).chain([""]).collect())
    }

    fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    fn record(&self) -> Option<&Shape> {
        self.record.as_deref()
    }
}

/// The table of facts, as the language reads it.
#[derive(Debug)]
pub(super) struct TableOfFacts;

impl FactTable for TableOfFacts {
    fn find(&self, owner: Type, name: &str) -> Option<&'static Member> {
        members::find(owner, name)
    }

    fn rows(&self) -> Box<dyn Iterator<Item = &'static Member>> {
        Box::new(members::tables())
    }

    fn named_members(&self, owner: Type) -> Option<NamedMembers> {
        let named = |name: PackName, result, evidence| {
            Some(NamedMembers { kind: name.as_kind(), result, evidence })
        };
        if owner == Subject::Preferences.as_type() {
            named(PackName::Preference, Type::Bool, Evidence::Neutral)
        } else if owner == Subject::Probes.as_type() {
            named(PackName::Probe, Subject::Probe.as_type(), Evidence::Structure)
        } else if owner == Subject::Memory.as_type() {
            named(PackName::MemoryEntry, Subject::MemoryEntry.as_type(), Evidence::Structure)
        } else {
            None
        }
    }

    fn items(&self) -> NamedItems {
        ITEMS
    }

    fn named_lists(&self, compared: TextMatch) -> Option<NameClass> {
        (compared == TextMatch::Path).then(|| PackName::PathList.as_kind())
    }
}

#[cfg(test)]
mod tests {
    use policyd_expr::completion::candidates;

    use super::*;

    fn names() -> Names {
        let set = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
        Names {
            file_kinds: set(&["code", "config", "ui"]),
            preferences: set(&["no_auto_merge"]),
            probes: set(&["judge", "pr"]),
            ..Names::default()
        }
    }

    /// What is listed, or its beginning where it is long.
    fn listed(text: &str) -> String {
        let found: Vec<String> = candidates(text, &names()).into_iter().map(|it| it.name).collect();
        found.iter().take(4).cloned().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn names_are_completed_where_they_stand() {
        for (text, expected) in [
            ("todos.", "last_at open open_list seen"),
            ("todos.op", "open open_list"),
            ("files.count > 3 && todos.ope", "open open_list"),
            ("todos.opne == 0", "open last_at open_list seen"),
            ("todos", "last_at open open_list seen"),
            ("tod", "todos"),
            ("!tod", "todos"),
            ("files.count > tok", "tokens"),
            ("(todos.op", "open open_list"),
            ("files.kind(\"code\").cou", "count"),
            ("files.kind(\"co\").count", "code config"),
            ("files.kind(\"zzz\").count", "code config ui"),
            ("prefs.", "no_auto_merge"),
            ("breakers[\"api/x\"].op", "open"),
            ("probes.j", "judge"),
            ("probes.p && prefs.no", "pr no_auto_merge"),
            ("event.kind == \"stop\" &&", "action agents breakers commands"),
            ("files.count >", "action agents breakers commands"),
            // Complete, or an error that a name does not fix.
            ("files.count > 3", ""),
            ("files.count > \"a\"", ""),
            ("files.count 3", ""),
            ("", ""),
        ] {
            assert_eq!(listed(text), expected, "{text}");
        }
    }
}
