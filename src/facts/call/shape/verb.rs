//! What a tool does with paths, by the words of its name.

/// What is done with paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Read,
    Write,
    Copy,
    Move,
    Delete,
}

const READS: [&str; 22] = [
    "cat", "check", "diff", "exists", "find", "get", "glob", "grep", "head", "info", "list",
    "load", "ls", "open", "read", "search", "show", "stat", "tail", "tree", "upload", "view",
];
const WRITES: [&str; 23] = [
    "append",
    "apply",
    "create",
    "download",
    "dump",
    "edit",
    "export",
    "insert",
    "mkdir",
    "modify",
    "overwrite",
    "patch",
    "put",
    "replace",
    "save",
    "screenshot",
    "set",
    "store",
    "touch",
    "truncate",
    "update",
    "write",
    "writefile",
];
const COPIES: [&str; 3] = ["copy", "cp", "duplicate"];
const MOVES: [&str; 3] = ["move", "mv", "rename"];
const DELETES: [&str; 7] = ["delete", "erase", "remove", "rm", "rmdir", "trash", "unlink"];

impl Verb {
    /// The verb of some words; what destroys most wins, of the others the first.
    pub(super) fn of(words: &[String]) -> Option<Self> {
        let is = |verbs: &[&str]| words.iter().any(|it| verbs.contains(&it.as_str()));
        if is(&DELETES) {
            return Some(Self::Delete);
        }
        if is(&MOVES) {
            return Some(Self::Move);
        }
        if is(&["replace"]) {
            return Some(Self::Write);
        }
        words.iter().find_map(|it| match it.as_str() {
            it if READS.contains(&it) => Some(Self::Read),
            it if WRITES.contains(&it) => Some(Self::Write),
            it if COPIES.contains(&it) => Some(Self::Copy),
            _ => None,
        })
    }
}

/// Whether a text is a single word, as those are that say what a tool is to do.
pub(super) fn is_word(text: &str) -> bool {
    let text = text.trim();
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// The words of a name, in small letters: `mcp__files__writeFile` has `mcp`, `files`, `write`, `file`.
pub(super) fn words(name: &str) -> Vec<String> {
    let (mut found, mut word, mut small) = (Vec::new(), String::new(), false);
    for c in name.chars() {
        let ends = !c.is_alphanumeric() || (c.is_uppercase() && small);
        if ends && !word.is_empty() {
            found.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        small = c.is_lowercase();
    }
    found.extend(Some(word).filter(|it| !it.is_empty()));
    found
}
