//! Ids of a pack: where they are defined, and where files, expressions, and cases name them.

use std::sync::{Arc, LazyLock};

use super::place::PathStep;
use super::view::PackView;
use policyd_cases as cases;
use policyd_fact_table::marks::{WordSense, marks};
use policyd_fact_table::paths;
use policyd_fact_table::types::{Names, PackName};
use policyd_facts::event::EVENT_NAMES;
use policyd_lint::Subject;
use policyd_policy::builtin;
use policyd_policy::layers::GUARD_FILES;
use policyd_yaml::node::Node;
use policyd_yaml::time::Timestamp;
use policyd_yaml::{NodeKind, Source, Span, yaml};

/// Kind of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IdKind {
    /// A check of `considerations.yaml`.
    Check,
    /// A named checker.
    Checker,
    /// A guard.
    Guard,
    /// A probe.
    Probe,
    /// A preference.
    Preference,
    /// An entry of the memory.
    Memory,
    /// A type of sessions.
    SessionType,
    /// A decision table.
    Table,
    /// A kind of signal.
    Signal,
    /// A class of failures.
    FailureClass,
    /// A tier of the context window.
    Tier,
    /// A rationalization.
    Excuse,
    /// A trigger of escalations.
    Trigger,
    /// An alarm of the dead-letter queue.
    Alarm,
    /// A kind of command.
    CommandKind,
    /// A kind of file.
    FileKind,
    /// A list of paths.
    PathList,
    /// A pattern of edited text.
    Content,
    /// A pattern of prose.
    TextPattern,
    /// A code host.
    Forge,
    /// An event; policyd defines it.
    Event,
    /// A tool of a client.
    Tool,
    /// A program of a command pattern.
    Program,
}

impl IdKind {
    /// What the id is called.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Checker => "checker",
            Self::Guard => "guard",
            Self::Probe => "probe",
            Self::Preference => "preference",
            Self::Memory => "entry of the memory",
            Self::SessionType => "session type",
            Self::Table => "decision table",
            Self::Signal => "signal",
            Self::FailureClass => "failure class",
            Self::Tier => "tier of the context",
            Self::Excuse => "rationalization",
            Self::Trigger => "trigger",
            Self::Alarm => "alarm",
            Self::CommandKind => "command kind",
            Self::FileKind => "file kind",
            Self::PathList => "list of paths",
            Self::Content => "content pattern",
            Self::TextPattern => "text pattern",
            Self::Forge => "code host",
            Self::Event => "event",
            Self::Tool => "tool",
            Self::Program => "program",
        }
    }

    /// The kind of the names that expressions use as members, as arguments, and as values of facts. Names of other
    /// kinds are not in files.
    const fn of_name(name: PackName) -> &'static [Self] {
        match name {
            PackName::CommandKind => &[Self::CommandKind],
            PackName::FileKind => &[Self::FileKind],
            PackName::PathList => &[Self::PathList],
            PackName::Content => &[Self::Content],
            PackName::Text => &[Self::TextPattern],
            PackName::Tier => &[Self::Tier],
            PackName::Preference => &[Self::Preference],
            PackName::Probe => &[Self::Probe],
            PackName::MemoryEntry => &[Self::Memory],
            PackName::SessionType => &[Self::SessionType],
            PackName::Forge => &[Self::Forge],
            PackName::Signal => &[Self::Signal],
            PackName::Excuse => &[Self::Excuse],
            PackName::Alarm => &[Self::Alarm],
            PackName::FailureClass => &[Self::FailureClass],
            PackName::Trigger => &[Self::Trigger],
            PackName::Tool => &[Self::Tool],
            PackName::Program => &[Self::Program],
            PackName::Breaker
            | PackName::ErrorType
            | PackName::ErrorName
            | PackName::Secret
            | PackName::IssuedSecret
            | PackName::PermissionMode
            | PackName::SessionSource
            | PackName::TimeZone
            | PackName::InputField => &[],
        }
    }

    /// The kind of the texts that a fact has as values, by its names.
    #[must_use]
    pub fn of_fact(fact: &str, names: &Names) -> Option<&'static [Self]> {
        let kinds = Self::of_name(PackName::from_kind(paths::ids_of_names(fact, names)?)?);
        Some(kinds).filter(|it| !it.is_empty())
    }

    /// The names of this kind that a pack can use, those of the packs that it extends among them.
    #[must_use]
    pub fn known(self, view: &PackView) -> Vec<String> {
        let (meant, names) = (&view.reviewed.meant, &view.reviewed.names);
        let file = |file| meant.ids_of(file).map(str::to_owned).collect();
        let section = |file, section| meant.ids(file, section).map(str::to_owned).collect();
        let set = |it: &std::collections::BTreeSet<String>| it.iter().cloned().collect();
        match self {
            Self::Check => file("considerations.yaml"),
            Self::Checker => file("checkers.yaml"),
            Self::Guard => file("guards.yaml"),
            Self::Table => file("tables.yaml"),
            Self::Signal => section("signals.yaml", "signals"),
            Self::FailureClass => section("failures.yaml", "classes"),
            Self::Excuse => section("rationalizations.yaml", "entries"),
            Self::Trigger => section("escalation.yaml", "triggers"),
            Self::Alarm => section("dead_letter.yaml", "alarms"),
            Self::Probe => set(&names.probes),
            Self::Preference => set(&names.preferences),
            Self::Memory => set(&names.memory),
            Self::SessionType => set(&names.session_types),
            Self::Tier => set(&names.tiers),
            Self::CommandKind => set(&names.command_kinds),
            Self::FileKind => set(&names.file_kinds),
            Self::PathList => set(&names.path_lists),
            Self::Content => set(&names.contents),
            Self::TextPattern => set(&names.texts),
            Self::Forge => set(&names.forges),
            Self::Event => EVENT_NAMES.iter().map(|it| (*it).to_owned()).collect(),
            Self::Tool => meant.tools().chain(meant.read_tools()).map(str::to_owned).collect(),
            Self::Program => meant.known_programs().keys().cloned().collect(),
        }
    }
}

/// Where files have ids.
struct IdRow {
    /// File; `guards.yaml` is every file of guards.
    file: &'static str,
    /// Keys above the id; `-` is an item of a list, `*` any key.
    path: &'static [&'static str],
    /// Whether the id is a key below the path, and not the value there.
    is_key: bool,
    kinds: &'static [IdKind],
    is_definition: bool,
}

const fn defined(
    file: &'static str,
    path: &'static [&'static str],
    kinds: &'static [IdKind],
) -> IdRow {
    IdRow { file, path, is_key: false, kinds, is_definition: true }
}

const fn defined_key(
    file: &'static str,
    path: &'static [&'static str],
    kinds: &'static [IdKind],
) -> IdRow {
    IdRow { file, path, is_key: true, kinds, is_definition: true }
}

const fn named(
    file: &'static str,
    path: &'static [&'static str],
    kinds: &'static [IdKind],
) -> IdRow {
    IdRow { file, path, is_key: false, kinds, is_definition: false }
}

const fn named_key(
    file: &'static str,
    path: &'static [&'static str],
    kinds: &'static [IdKind],
) -> IdRow {
    IdRow { file, path, is_key: true, kinds, is_definition: false }
}

const CASES: &str = cases::shape::FILE.file;
const SWITCHED: &[IdKind] = &[IdKind::Check, IdKind::Probe, IdKind::Guard];

const ROWS: &[IdRow] = &[
    defined("considerations.yaml", &["-", "id"], &[IdKind::Check]),
    defined_key("checkers.yaml", &[], &[IdKind::Checker]),
    defined("guards.yaml", &["-", "id"], &[IdKind::Guard]),
    defined("probes.yaml", &["-", "id"], &[IdKind::Probe]),
    defined("preferences.yaml", &["-", "id"], &[IdKind::Preference]),
    defined("memory.yaml", &["-", "id"], &[IdKind::Memory]),
    defined("session_types.yaml", &["-", "id"], &[IdKind::SessionType]),
    defined("tables.yaml", &["-", "id"], &[IdKind::Table]),
    defined("signals.yaml", &["signals", "-", "id"], &[IdKind::Signal]),
    defined("failures.yaml", &["classes", "-", "id"], &[IdKind::FailureClass]),
    defined("context.yaml", &["tiers", "-", "id"], &[IdKind::Tier]),
    defined("rationalizations.yaml", &["entries", "-", "id"], &[IdKind::Excuse]),
    defined("escalation.yaml", &["triggers", "-", "id"], &[IdKind::Trigger]),
    defined("dead_letter.yaml", &["alarms", "-", "id"], &[IdKind::Alarm]),
    defined_key("vocabulary.yaml", &["commands"], &[IdKind::CommandKind]),
    defined_key("vocabulary.yaml", &["files"], &[IdKind::FileKind]),
    defined_key("vocabulary.yaml", &["paths"], &[IdKind::PathList]),
    defined_key("vocabulary.yaml", &["contents"], &[IdKind::Content]),
    defined_key("vocabulary.yaml", &["texts"], &[IdKind::TextPattern]),
    defined_key("vocabulary.yaml", &["forges"], &[IdKind::Forge]),
    named("considerations.yaml", &["-", "checker"], &[IdKind::Checker]),
    named("considerations.yaml", &["-", "applicable_session_types"], &[IdKind::SessionType]),
    named("considerations.yaml", &["-", "emit"], &[IdKind::Signal]),
    named("considerations.yaml", &["-", "on"], &[IdKind::Event]),
    named("guards.yaml", &["-", "on"], &[IdKind::Event]),
    named("guards.yaml", &["-", "tools"], &[IdKind::Tool]),
    named_key("guards.yaml", &["-", "remember"], &[IdKind::Memory]),
    named("guards.yaml", &["-", "forget"], &[IdKind::Memory]),
    named("guards.yaml", &["-", "commands"], &[IdKind::Program]),
    named("vocabulary.yaml", &["contents", "*", "files"], &[IdKind::FileKind]),
    named("vocabulary.yaml", &["contents", "*", "except_files"], &[IdKind::FileKind]),
    named("breakers.yaml", &["*", "ignore"], &[IdKind::FailureClass]),
    named("breakers.yaml", &["*", "permanent"], &[IdKind::FailureClass]),
    named("failures.yaml", &["profiles", "*", "-", "classes"], &[IdKind::FailureClass]),
    named("failures.yaml", &["unrecognized"], &[IdKind::FailureClass]),
    named("signals.yaml", &["signals", "-", "approves"], &[IdKind::Signal]),
    named("signals.yaml", &["triggers", "-", "emit"], &[IdKind::Signal]),
    named("signals.yaml", &["drift", "-", "emit"], &[IdKind::Signal]),
    named("reactions.yaml", &["-", "signal", "name"], &[IdKind::Signal]),
    named_key(CASES, &["-", "expect", "considerations"], &[IdKind::Check]),
    named_key(CASES, &["-", "expect", "guards"], &[IdKind::Guard]),
    named(CASES, &["-", "expect", "decided_by"], &[IdKind::Guard]),
    named(CASES, &["-", "expect", "session_type"], &[IdKind::SessionType]),
    named_key(CASES, &["-", "expect", "preferences"], &[IdKind::Preference]),
    named(CASES, &["-", "expect", "effects", "probes"], &[IdKind::Probe]),
    named(CASES, &["-", "expect", "signals"], &[IdKind::Signal]),
    named(CASES, &["-", "expect", "due"], &[IdKind::Signal]),
    named(CASES, &["-", "expect", "class"], &[IdKind::FailureClass]),
    named_key(CASES, &["-", "given", "probes"], &[IdKind::Probe]),
    named(CASES, &["-", "given", "pack", "enable"], SWITCHED),
    named(CASES, &["-", "given", "pack", "disable"], SWITCHED),
    named_key(CASES, &["-", "given", "pack", "preferences"], &[IdKind::Preference]),
    named(CASES, &["-", "on"], &[IdKind::Event]),
    named(CASES, &["-", "on", "event"], &[IdKind::Event]),
    named(CASES, &["-", "on", "table"], &[IdKind::Table]),
    named(CASES, &["-", "on", "signal"], &[IdKind::Signal]),
    named(CASES, &["-", "on", "tool"], &[IdKind::Tool]),
];

/// The kinds of the ids at a place of a file, and whether the place defines them. `is_key`: the id is a key of the map
/// at `path`.
#[must_use]
pub fn kinds_at(file: &str, path: &[PathStep], is_key: bool) -> Option<(&'static [IdKind], bool)> {
    let file = if GUARD_FILES.contains(&file) { "guards.yaml" } else { file };
    let mut path = path;
    if let ([PathStep::Item, PathStep::Key(key), rest @ ..], CASES) = (path, file)
        && key == "steps"
    {
        // A step has the keys of a case.
        path = rest;
    }
    if let [above @ .., PathStep::Item] = path
        && !is_key
        && above.len() > 1
    {
        path = above;
    }
    let fits = |row: &&IdRow| {
        row.file == file
            && row.is_key == is_key
            && row.path.len() == path.len()
            && row.path.iter().zip(path).all(|(wanted, step)| match step {
                PathStep::Item => *wanted == "-",
                PathStep::Key(key) => *wanted == "*" || wanted == key,
            })
    };
    ROWS.iter().find(fits).map(|it| (it.kinds, it.is_definition))
}

/// A byte of a file.
#[derive(Debug, Clone, Copy)]
pub struct FilePlace<'f> {
    /// Displayed name of the file.
    pub file: &'f str,
    /// The byte.
    pub at: usize,
}

/// An id in a file.
#[derive(Debug, Clone)]
pub struct Occurrence {
    /// Possible kinds of the id.
    pub kinds: &'static [IdKind],
    /// The id.
    pub name: String,
    /// Where it is written, without quotation marks.
    pub span: Span,
    /// The entry that it is the id of, if this is a definition.
    pub entry: Option<Span>,
}

impl Occurrence {
    /// Whether another occurrence means the same entry.
    #[must_use]
    pub fn means(&self, other: &Self) -> bool {
        self.name == other.name && self.kinds.iter().any(|it| other.kinds.contains(it))
    }

    /// Whether a byte of a file is in it.
    #[must_use]
    pub fn is_at(&self, place: FilePlace<'_>) -> bool {
        let Span { source, start, end } = &self.span;
        source.name == place.file && *start <= place.at && place.at <= *end
    }
}

/// All ids in the files of a pack and in its case files.
#[must_use]
pub fn occurrences(view: &PackView, now: Timestamp) -> Vec<Occurrence> {
    let mut found = Vec::new();
    for (file, node) in &view.reviewed.own {
        in_node(file, node, &mut Vec::new(), &mut found);
    }
    for source in &view.cases {
        if let Some(node) = view.reviewed.memo.tree(source).as_ref() {
            in_node(CASES, node, &mut Vec::new(), &mut found);
        }
    }
    let subject = Subject::new(&view.pack, &view.reviewed, now);
    for site in &subject.sites {
        let names = site.names(subject.names());
        for mark in marks(site.text, names) {
            let range = mark.inner(site.text);
            let (kinds, name) = match mark.kind {
                WordSense::PackName { class, name } => {
                    (PackName::from_kind(class).map(IdKind::of_name), name)
                }
                WordSense::Value { fact, text } => (IdKind::of_fact(&fact, names), text),
                WordSense::Keyword
                | WordSense::Operator
                | WordSense::Number
                | WordSense::Text
                | WordSense::Regex
                | WordSense::Item
                | WordSense::Fact { .. }
                | WordSense::Record
                | WordSense::Field { .. }
                | WordSense::Unknown => continue,
            };
            if let Some(kinds) = kinds {
                found.push(Occurrence { kinds, name, span: site.span(&range), entry: None });
            }
        }
    }
    found
}

/// The definitions in the packs that a pack extends.
#[must_use]
pub fn inherited(view: &PackView) -> Vec<Occurrence> {
    static BUILTIN: LazyLock<Vec<Occurrence>> =
        LazyLock::new(|| definitions(&builtin::pack().files));
    let remote = view.pack.remote.iter().filter_map(|it| it.files.as_ref().ok());
    let remote = remote.flat_map(|files| definitions(files));
    let builtin = BUILTIN.iter().filter(|_| view.reviewed.extends_builtin);
    remote.chain(builtin.cloned()).collect()
}

fn definitions(files: &[(String, Arc<Source>)]) -> Vec<Occurrence> {
    let mut found = Vec::new();
    for (file, source) in files {
        let node = builtin::tree(file, source).or_else(|| yaml::parse(source).0);
        if let Some(node) = node {
            in_node(file, &node, &mut Vec::new(), &mut found);
        }
    }
    found.retain(|it| it.entry.is_some());
    found
}

/// Adds the ids in a node and below it.
fn in_node(file: &str, node: &Node, path: &mut Vec<PathStep>, found: &mut Vec<Occurrence>) {
    match &node.kind {
        NodeKind::Scalar(_) => found.extend(occurrence(file, node, path, false, &node.span)),
        NodeKind::List(items) => {
            for item in items.iter() {
                path.push(PathStep::Item);
                in_node(file, item, path, found);
                path.pop();
            }
        }
        NodeKind::Map(entries) => {
            for (key, value) in entries.iter() {
                let whole = Span { end: value.span.end.max(key.span.end), ..key.span.clone() };
                found.extend(occurrence(file, key, path, true, &whole));
                let is_id = key.says("id");
                path.push(PathStep::Key(key.text().unwrap_or_default().to_owned()));
                if is_id {
                    // The entry of an id is the map around it.
                    found.extend(occurrence(file, value, path, false, &node.span));
                } else {
                    in_node(file, value, path, found);
                }
                path.pop();
            }
        }
        NodeKind::Invalid => {}
    }
}

fn occurrence(
    file: &str,
    node: &Node,
    path: &[PathStep],
    is_key: bool,
    entry: &Span,
) -> Option<Occurrence> {
    let (kinds, is_definition) = kinds_at(file, path, is_key)?;
    let name = node.text()?.to_owned();
    let span = node.sub_span(0..name.len());
    Some(Occurrence { kinds, name, span, entry: is_definition.then(|| entry.clone()) })
}

/// Why an id cannot be renamed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenameError {
    /// No id of the pack is at the place.
    #[error("nothing at this place can be renamed")]
    NoId,
    /// policyd or a pack that the pack extends defines the id.
    #[error("`{0}` is not defined in this pack, so that it cannot be renamed here")]
    NotOwn(String),
    /// The new id is not valid.
    #[error("`{0}` cannot be an id: use letters, digits, `_`, and `-`")]
    Invalid(String),
    /// Expressions name probes and preferences as members.
    #[error("`{0}` cannot be the name of a member: use lower-case letters, digits, and `_`")]
    NotAMember(String),
    /// A file of the pack cannot be read, so that uses of the id in it are unknown.
    #[error("{0} is not valid YAML, so that the id cannot be renamed in it")]
    Unreadable(String),
    /// Another entry has the new id.
    #[error("another {1} is called `{0}`")]
    Taken(String, &'static str),
}

/// Whether a word without quotation marks is a text in YAML, and not a number or `null`.
fn is_text(word: &str) -> bool {
    let source = Arc::new(Source { name: String::new(), text: word.to_owned() });
    yaml::parse(&source)
        .0
        .is_some_and(|it| it.text().is_some() && it.bool().is_none() && it.number().is_none())
}

/// Checks that all files of a pack and its cases can be searched for an id.
///
/// # Errors
/// [`RenameError::Unreadable`].
pub fn require_readable(view: &PackView) -> Result<(), RenameError> {
    let memo = &view.reviewed.memo;
    let mut broken = view.sources().filter(|it| memo.tree(it).is_none());
    broken.next().map_or(Ok(()), |it| Err(RenameError::Unreadable(it.name.clone())))
}

/// Returns the id at a place, if it can be renamed.
///
/// # Errors
/// [`RenameError::NoId`] and [`RenameError::NotOwn`].
pub fn renamed<'o>(
    all: &'o [Occurrence],
    inherited: &[Occurrence],
    place: FilePlace<'_>,
) -> Result<&'o Occurrence, RenameError> {
    let found = all.iter().find(|it| it.is_at(place)).ok_or(RenameError::NoId)?;
    let is_own = all.iter().any(|it| it.entry.is_some() && it.means(found));
    if !is_own || inherited.iter().any(|it| it.means(found)) {
        return Err(RenameError::NotOwn(found.name.clone()));
    }
    Ok(found)
}

/// Returns the places at which an id is replaced by a new one.
///
/// # Errors
/// The new id is not valid or taken, or the id cannot be renamed.
pub fn rename<'o>(
    all: &'o [Occurrence],
    inherited: &[Occurrence],
    place: FilePlace<'_>,
    new: &str,
) -> Result<Vec<&'o Occurrence>, RenameError> {
    let found = renamed(all, inherited, place)?;
    let is_word = |it: char| it.is_alphanumeric() || "_-".contains(it);
    if !new.chars().all(is_word) || new.starts_with('-') || !is_text(new) {
        return Err(RenameError::Invalid(new.to_owned()));
    }
    let is_member = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
    let is_name = new.chars().all(is_member) && !new.starts_with(|it: char| it.is_ascii_digit());
    let of_members = [IdKind::Probe, IdKind::Preference];
    if !is_name && found.kinds.iter().any(|it| of_members.contains(it)) {
        return Err(RenameError::NotAMember(new.to_owned()));
    }
    let wanted = Occurrence { name: new.to_owned(), ..found.clone() };
    let mut defined = all.iter().chain(inherited).filter(|it| it.entry.is_some());
    if defined.any(|it| it.means(&wanted)) {
        let noun = found.kinds.first().map_or("entry", |it| it.noun());
        return Err(RenameError::Taken(new.to_owned(), noun));
    }
    // A name that several kinds have means the kind that defines it.
    let own: Vec<&Occurrence> =
        all.iter().filter(|it| it.entry.is_some() && it.means(found)).collect();
    Ok(all.iter().filter(|it| own.iter().any(|own| own.means(it))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys;
    use policyd_fact_table::types::NameClass;
    use policyd_policy::Pack;
    use policyd_policy::review::Base;
    use policyd_yaml::shape::Kind;

    #[test]
    fn every_row_is_a_place_of_its_file() {
        for row in ROWS {
            let step = |it: &&str| match *it {
                "-" => PathStep::Item,
                key => PathStep::Key(key.to_owned()),
            };
            let path: Vec<PathStep> = row.path.iter().map(step).collect();
            let root = keys::shape_of(row.file, row.file == CASES).unwrap();
            let kinds = keys::kinds_at(root, &path);
            let fits = match row.is_key {
                true => kinds.iter().any(|it| matches!(it, Kind::Map(_))),
                false => !kinds.is_empty(),
            };
            assert!(fits, "{} {:?}", row.file, row.path);
            let found = kinds_at(row.file, &path, row.is_key).unwrap();
            assert_eq!(found, (row.kinds, row.is_definition), "{} {:?}", row.file, row.path);
        }
    }

    #[test]
    fn names_in_expressions_have_the_kind_of_their_noun() {
        let class = |number| PackName::from_kind(NameClass { number, noun: "", is_foreign: false });
        let names: Vec<PackName> = (0..).map_while(class).collect();
        assert!(names.contains(&PackName::Probe));
        for name in names {
            let kind = IdKind::of_name(name).first();
            assert!(kind.is_none_or(|it| it.noun() == name.as_kind().noun), "{name:?}");
        }
    }

    #[test]
    fn a_pack_inherits_only_ids_of_packs_that_it_extends() {
        let base = Base::new(&builtin::pack());
        let inherits = |manifest: &str| {
            let file = "policyd.yaml".to_owned();
            let source = Source { name: file.clone(), text: manifest.to_owned() };
            let pack = Pack { files: vec![(file, Arc::new(source))], ..Pack::default() };
            let view = PackView::new(pack, vec![], vec![], &base);
            inherited(&view).iter().any(|it| it.name == "DEVELOPMENT")
        };
        assert!(inherits("version: 1\nname: team\nextends: [builtin]\n"));
        assert!(!inherits("version: 1\nname: team\nextends: []\n"));
    }
}
