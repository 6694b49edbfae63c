//! `policyd learn`: adds a command to a class of the vocabulary, in the pack that is used, with a case that proves it.
//! Files keep their order and their comments.

use std::path::PathBuf;
use std::sync::Arc;

use super::FoundPack;
use super::pack_change::{PackChange, PackChangeError, USER_MANIFEST, line_end, with_files};
use super::rule_addition::{quoted, read_cases};
use crate::workspace::project::Project;
use policyd_cases::shape::FOLDER;
use policyd_facts::compiled::CompiledMatchers;
use policyd_facts::{Program, shell};
use policyd_policy::Policy;
use policyd_store::user;
use policyd_world::World;
use policyd_yaml::node::{Node, NodeKind};
use policyd_yaml::{Source, suggest, yaml};

const VOCABULARY: &str = "vocabulary.yaml";
/// File of the cases, in the directory of cases.
const CASES: &str = "learned.yaml";

/// Why a command was not learned.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    #[error("unknown command class `{kind}`\nhelp: {help}")]
    UnknownKind { kind: String, help: String },
    #[error("`{command}` runs {count} programs\nhelp: name the command of one program")]
    NotOneProgram { command: String, count: usize },
    #[error(
        "a command pattern cannot contain the word `{0}`\nhelp: name the program and the words that always follow it"
    )]
    NotPlain(String),
    /// A nearer pack is not used. Contains its text.
    #[error("{0}")]
    Untrusted(String),
    #[error("{0}\nhelp: run `policyd lint`, fix the pack, and run the command again")]
    Invalid(String),
    #[error("neither `XDG_CONFIG_HOME` nor `HOME` is set, so no pack of the user can be written")]
    NoDirectory,
    #[error("cannot add a program to {path}\nhelp: add these lines:\n{lines}", path = path.display())]
    NotExtended { path: PathBuf, lines: String },
    #[error(transparent)]
    Change(#[from] PackChangeError),
}

/// What the command changes.
#[derive(Debug)]
pub enum LearnPlan {
    /// Nothing: the command already belongs to the class.
    Known,
    /// Files to write.
    Change(Box<Lesson>),
}

/// A command that becomes a member of a class.
#[derive(Debug)]
pub struct Lesson {
    /// The command pattern.
    pub pattern: String,
    /// The files of the pack in use.
    pub change: PackChange,
}

/// Plans how the pack in use learns a command.
pub fn plan(
    world: &dyn World,
    project: &Project,
    kind: &str,
    command: &str,
) -> Result<LearnPlan, LearnError> {
    let found = super::find(world, project, None);
    if let Some(pack) = found.untrusted.first() {
        return Err(LearnError::Untrusted(pack.text()));
    }
    let policy = policy_of(world, &found)?;
    let classes = CompiledMatchers::new(policy.lens.clone());
    require_class(&policy, kind)?;
    let (programs, _) = shell::parse(command, &classes);
    if classes.kinds_of(&programs).any(|it| it == kind) {
        return Ok(LearnPlan::Known);
    }
    let [program] = programs.as_slice() else {
        let (command, count) = (command.to_owned(), programs.len());
        return Err(LearnError::NotOneProgram { command, count });
    };
    let pattern = pattern(program)?;
    let of_user = || user::config_folder(world).map(|it| it.join("policies"));
    let folder = found.folder().map(PathBuf::from).or_else(of_user);
    let folder = folder.ok_or(LearnError::NoDirectory)?;
    let pack = found.own_files();
    let text_of = |file: &str| pack.and_then(|it| it.files.iter().find(|(name, _)| name == file));
    let before = text_of(VOCABULARY).map_or("", |(_, source)| source.text.as_str());
    let path = folder.join(VOCABULARY);
    let lines = lines(&["commands", kind, "programs"], &quoted(&pattern), 0);
    let not_extended = || LearnError::NotExtended { path: path.clone(), lines: lines.clone() };
    let text = with_program(before, kind, &pattern).ok_or_else(not_extended)?;
    let mut changed = vec![(VOCABULARY.to_owned(), text)];
    if pack.is_none() {
        changed.insert(0, (USER_MANIFEST.0.to_owned(), USER_MANIFEST.1.to_owned()));
    }
    let after = found.with_pack(with_files(pack, &folder, &changed));
    let learned = super::loaded(&after).map_err(|_| not_extended())?;
    if !CompiledMatchers::new(learned.lens).kinds_of(&programs).any(|it| it == kind) {
        return Err(not_extended());
    }
    let cases = folder.join(FOLDER).join(CASES);
    let case = case(kind, command);
    let mut files: Vec<(PathBuf, String)> =
        changed.into_iter().map(|(file, text)| (folder.join(file), text)).collect();
    let mut cases_before = read_cases(world, &cases)?;
    if cases_before.is_empty() {
        "# Cases of `policyd learn`.\n".clone_into(&mut cases_before);
    }
    if !cases_before.contains(&case) {
        files.push((cases, format!("{}\n\n{case}", cases_before.trim_end())));
    }
    let change = PackChange { folder, files, after, trusts_new: false };
    Ok(LearnPlan::Change(Box::new(Lesson { pattern, change })))
}

/// Returns the policy of the pack in use.
fn policy_of(world: &dyn World, found: &FoundPack) -> Result<Policy, LearnError> {
    super::policy(world, found).map_err(|invalid| LearnError::Invalid(super::explain(&invalid)))
}

fn require_class(policy: &Policy, kind: &str) -> Result<(), LearnError> {
    let known: Vec<&str> = policy.lens.commands.iter().map(|it| it.name.as_str()).collect();
    if known.contains(&kind) {
        return Ok(());
    }
    let near = suggest::nearest(kind, &known).map(|it| format!("did you mean `{it}`?"));
    let help = near.unwrap_or_else(|| format!("the classes are {}", known.join(", ")));
    Err(LearnError::UnknownKind { kind: kind.to_owned(), help })
}

/// Returns the pattern of a program and its words.
fn pattern(program: &Program) -> Result<String, LearnError> {
    let words = std::iter::once(&program.name).chain(&program.args);
    for word in words.clone() {
        let is_odd = |c: char| c.is_whitespace() || matches!(c, '$' | '`' | '"' | '\'' | '*' | '?');
        if word.is_empty() || word.contains(is_odd) {
            return Err(LearnError::NotPlain(word.clone()));
        }
    }
    Ok(words.cloned().collect::<Vec<_>>().join(" "))
}

/// Returns the case that proves that a command belongs to a class.
fn case(kind: &str, command: &str) -> String {
    let name = quoted(&format!("`{command}` is a {kind} command"));
    let command = quoted(command);
    format!("- name: {name}\n  on: {{command: {command}}}\n  expect: {{classes: [{kind}]}}\n")
}

/// Adds a program to a class in the text of a vocabulary. `None` if the class has a form that this does not extend.
fn with_program(text: &str, kind: &str, pattern: &str) -> Option<String> {
    let source = Arc::new(Source { name: VOCABULARY.to_owned(), text: text.to_owned() });
    let (item, keys) = (quoted(pattern), ["commands", kind, "programs"]);
    let mut path = keys.as_slice();
    let Some(root) = yaml::parse(&source).0 else {
        let before = if text.trim().is_empty() { "" } else { text };
        return Some(format!("{before}{}", lines(path, &item, 0)));
    };
    let mut node = &root;
    while let Some((key, rest)) = path.split_first()
        && let Some(below) = node.get(key)
    {
        (node, path) = (below, rest);
    }
    let (at, added) = match &node.kind {
        NodeKind::List(items) => list_item(node, items.last(), &item)?,
        NodeKind::Map(entries) if !path.is_empty() => {
            let first = entries.first().map(|(key, _)| key);
            map_entry(node, first, path, &item)
        }
        NodeKind::Map(_) | NodeKind::Scalar(_) | NodeKind::Invalid => return None,
    };
    let (before, after) = text.split_at_checked(at)?;
    Some(format!("{before}{added}{after}"))
}

/// Returns where an item of a list is inserted, and its text.
fn list_item(list: &Node, last: Option<&Node>, item: &str) -> Option<(usize, String)> {
    let text = &list.span.source.text;
    if list.span.text().starts_with('[') {
        return Some(match last {
            Some(last) => (last.span.end, format!(", {item}")),
            None => (list.span.start.saturating_add(1), item.to_owned()),
        });
    }
    let before = text.get(..last?.span.start)?;
    let line = before.get(before.rfind('\n').map_or(0, |at| at.saturating_add(1))..)?;
    let indent = line.split('-').next()?;
    Some((line_end(text, list.span.end), format!("\n{indent}- {item}")))
}

/// Returns where an entry of a map is inserted, and its text: behind the last entry, so that comments stay where they
/// are.
fn map_entry(map: &Node, first: Option<&Node>, path: &[&str], item: &str) -> (usize, String) {
    if map.span.text().starts_with('{') {
        let comma = if first.is_some() { ", " } else { "" };
        let (last, outer) = path.split_last().map_or(("", path), |(last, rest)| (*last, rest));
        let inner = format!("{last}: [{item}]");
        let entry = outer.iter().rev().fold(inner, |text, key| format!("{key}: {{{text}}}"));
        return (map.span.start.saturating_add(1), format!("{entry}{comma}"));
    }
    let indent = first.map_or(0, |key| key.span.line_column().1.saturating_sub(1));
    let entry = lines(path, item, indent);
    (line_end(&map.span.source.text, map.span.end), format!("\n{}", entry.trim_end()))
}

/// Returns keys below each other with a list of one item, as lines.
fn lines(path: &[&str], item: &str, indent: usize) -> String {
    let mut text = String::new();
    for (depth, key) in path.iter().enumerate() {
        let value = if depth.saturating_add(1) == path.len() {
            format!(" [{item}]")
        } else {
            String::new()
        };
        let indent = indent.saturating_add(depth.saturating_mul(2));
        text.push_str(&format!("{:indent$}{key}:{value}\n", ""));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_added_in_each_form_and_the_rest_stays() {
        for (before, after) in [
            ("", "commands:\n  test:\n    programs: [x y]\n"),
            ("# note\n", "# note\ncommands:\n  test:\n    programs: [x y]\n"),
            (
                "# note\nmain_branches: [dev]  # ours\n# end\n",
                "# note\nmain_branches: [dev]  # ours\ncommands:\n  test:\n    programs: [x y]\n# end\n",
            ),
            (
                "commands:\n  # ours\n  lint:\n    programs: [l]\ntexts: {}\n",
                "commands:\n  # ours\n  lint:\n    programs: [l]\n  test:\n    programs: [x y]\ntexts: {}\n",
            ),
            (
                "commands:\n    test:\n        except: [t]  # no\n",
                "commands:\n    test:\n        except: [t]  # no\n        programs: [x y]\n",
            ),
            (
                "commands:\n  test:\n    programs: [\"a b\"]  # ours\n",
                "commands:\n  test:\n    programs: [\"a b\", x y]  # ours\n",
            ),
            (
                "commands:\n  test:\n    programs:\n      - a  # ours\n      # more\n    failed: ['-']\n",
                "commands:\n  test:\n    programs:\n      - a  # ours\n      - x y\n      # more\n    failed: ['-']\n",
            ),
            ("commands: {test: {programs: []}}\n", "commands: {test: {programs: [x y]}}\n"),
            (
                "commands: {lint: {programs: [l]}}\n",
                "commands: {test: {programs: [x y]}, lint: {programs: [l]}}\n",
            ),
        ] {
            assert_eq!(with_program(before, "test", "x y").as_deref(), Some(after), "{before}");
        }
        assert_eq!(
            with_program("- a\n", "test", "x"),
            Some("- a\n- x\n".to_owned()),
            "the pack is checked afterwards"
        );
        assert_eq!(with_program("commands: x\n", "test", "x"), None);
    }

    #[test]
    fn a_text_is_quoted_where_yaml_needs_it() {
        assert_eq!(quoted("verify --all"), "verify --all");
        assert_eq!(quoted("a: b"), "\"a: b\"");
        assert_eq!(quoted("123"), "\"123\"");
    }
}
