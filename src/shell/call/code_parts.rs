//! Texts and paths that code builds, as far as they are known.
//!
//! Contains: [`PartText`] (a text with unknown parts), and [`CodeValue`] (the texts that an expression can be).
//! Does not contain: how expressions are read (`code_paths`).

use super::code_text::UNKNOWN;
use super::scope::VALUES_MAX;
use super::words::ShellText;
use crate::shell::quote;

/// Longest text that is followed, in bytes.
const TEXT_MAX: usize = 4_096;
/// Unknown parts of a text that are followed.
const PARTS_MAX: usize = 16;
/// Represents an unknown part of a path.
const UNKNOWN_PART: &str = "\u{2026}";

/// A text with unknown parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartText {
    /// The known parts. An unknown part is between each two of them.
    known: Vec<String>,
    /// Whether code made a path of it.
    pub(super) is_path: bool,
    /// Whether it is a pattern for files.
    pub(super) is_pattern: bool,
}

impl PartText {
    /// Returns a text that is known.
    pub(super) fn known(text: impl Into<String>) -> Self {
        Self { known: vec![text.into()], is_path: false, is_pattern: false }
    }

    /// Returns a text that is unknown.
    pub(super) fn unknown() -> Self {
        Self { known: vec![String::new(); 2], is_path: false, is_pattern: false }
    }

    /// Returns whether no part is known.
    pub(super) fn is_unknown(&self) -> bool {
        self.known.len() > 1 && self.known.iter().all(String::is_empty)
    }

    /// Returns the text if all of it is known.
    pub(super) fn all(&self) -> Option<&str> {
        match self.known.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }

    /// Returns the part before the first unknown part.
    pub(super) fn start(&self) -> &str {
        self.known.first().map_or("", String::as_str)
    }

    /// Appends a text. A text that is too long ends with an unknown part.
    pub(super) fn append(mut self, other: &Self) -> Self {
        let mut parts = other.known.iter();
        if let (Some(last), Some(first)) = (self.known.last_mut(), parts.next()) {
            last.push_str(first);
        }
        // Two unknown parts behind each other are one.
        if other.known.len() > 1
            && self.known.len() > 1
            && self.known.last().is_some_and(String::is_empty)
        {
            self.known.pop();
        }
        self.known.extend(parts.cloned());
        self.is_path |= other.is_path;
        self.is_pattern |= other.is_pattern;
        let size: usize = self.known.iter().map(String::len).sum();
        if size > TEXT_MAX || self.known.len() > PARTS_MAX {
            self.known = vec![String::new(); 2];
        }
        self
    }

    /// Returns the text as a path.
    pub(super) fn into_path(self) -> Self {
        Self { is_path: true, ..self }
    }

    /// Returns the text as it is, and not as a path.
    pub(super) fn into_text(self) -> Self {
        Self { is_path: false, is_pattern: false, ..self }
    }

    /// Returns the path as a pattern for files, if it is one.
    pub(super) fn into_pattern(self) -> Self {
        let is_pattern = self.start().contains(['*', '?', '[']);
        Self { is_path: true, is_pattern, ..self }
    }

    /// Appends an unknown part.
    pub(super) fn open(self) -> Self {
        self.append(&Self::unknown())
    }

    /// Returns the path of a file in this directory. If `replaces`, an absolute path replaces the directory.
    pub(super) fn join(self, name: &Self, replaces: bool) -> Self {
        if (replaces && name.start().starts_with(['/', '~'])) || self.all() == Some("") {
            return Self { is_path: true, ..name.clone() };
        }
        if name.all() == Some("") {
            return Self { is_path: true, ..self };
        }
        let mut joined = self;
        if let Some(last) = joined.known.last_mut() {
            last.truncate(last.trim_end_matches('/').len());
        }
        let mut name = name.clone();
        if let Some(first) = name.known.first_mut() {
            *first = first.trim_start_matches('/').to_owned();
        }
        Self { is_path: true, ..joined.append(&Self::known("/")).append(&name) }
    }

    /// Returns the directory of a path.
    pub(super) fn parent(mut self) -> Self {
        self.is_path = true;
        if let Some(last) = self.known.last_mut() {
            last.truncate(last.trim_end_matches('/').len().max(usize::from(last.starts_with('/'))));
        }
        let text = self.all().unwrap_or("x");
        if matches!(text, "~" | "." | ".." | "") || text.ends_with("/..") {
            let up = Self::known("..");
            return if text == "." { Self { is_path: true, ..up } } else { self.join(&up, true) };
        }
        while let Some(last) = self.known.last_mut() {
            if let Some(at) = last.rfind('/') {
                last.truncate(at.max(usize::from(at == 0)));
                return self;
            }
            if self.known.len() == 1 {
                break;
            }
            self.known.pop();
        }
        Self { known: vec![".".to_owned()], ..self }
    }

    /// Returns the text as a word of a command.
    pub(super) fn word(&self) -> ShellText {
        let mut word = ShellText { glob: self.is_pattern, ..ShellText::known(self.start()) };
        for part in self.known.iter().skip(1) {
            word.append(&ShellText::unknown(UNKNOWN_PART));
            word.append(&ShellText::known(part.as_str()));
        }
        word
    }

    /// Returns the text as a part of a shell line.
    pub(super) fn in_shell(&self) -> String {
        self.known.join(UNKNOWN)
    }

    /// Returns the text as one word of a shell line.
    pub(super) fn quoted(&self) -> String {
        let quoted = self.known.iter().enumerate().map(|(at, it)| {
            let is_home = at == 0 && (it == "~" || it.starts_with("~/"));
            match is_home {
                true => format!(
                    "~{}",
                    it.get(1..).filter(|it| !it.is_empty()).map(quote).unwrap_or_default()
                ),
                false if it.is_empty() && self.known.len() > 1 => String::new(),
                false => quote(it),
            }
        });
        quoted.collect::<Vec<String>>().join(UNKNOWN)
    }
}

/// The value of an expression.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CodeValue {
    /// The texts that it can be, or the items of the list that it is.
    pub(super) texts: Vec<PartText>,
    /// The items in order, of a list that the code writes.
    pub(super) items: Vec<CodeValue>,
    /// Whether it is a list.
    pub(super) is_list: bool,
    /// Whether a function with texts of its own made a part of it that is unknown.
    pub(super) is_opaque: bool,
}

impl CodeValue {
    /// Returns the value of a text.
    pub(super) fn one(text: PartText) -> Self {
        Self { texts: vec![text], ..Self::default() }
    }

    /// Returns a known text.
    pub(super) fn known(text: impl Into<String>) -> Self {
        Self::one(PartText::known(text))
    }

    /// Returns an unknown value.
    pub(super) fn unknown() -> Self {
        Self::one(PartText::unknown())
    }

    /// Returns an empty list.
    pub(super) fn list() -> Self {
        Self { is_list: true, ..Self::default() }
    }

    /// Returns whether nothing of the value is known.
    pub(super) fn is_unknown(&self) -> bool {
        self.texts.iter().all(PartText::is_unknown)
    }

    /// Returns whether code made a path of it.
    pub(super) fn is_path(&self) -> bool {
        self.texts.iter().any(|it| it.is_path)
    }

    /// Adds the texts of another value. Beyond the limit, the value is also unknown.
    pub(super) fn add(&mut self, other: Self) {
        self.is_opaque |= other.is_opaque;
        self.items.clear();
        for text in other.texts {
            if self.texts.contains(&text) {
                continue;
            }
            if self.texts.len() >= VALUES_MAX {
                let unknown = PartText::unknown();
                self.texts.extend((!self.texts.contains(&unknown)).then_some(unknown));
                break;
            }
            self.texts.push(text);
        }
    }

    /// Returns each text changed.
    pub(super) fn map(self, change: impl Fn(PartText) -> PartText) -> Self {
        let mut changed = Self { texts: Vec::new(), items: Vec::new(), ..self };
        let texts = self.texts.into_iter().map(change).collect();
        changed.add(Self { texts, ..Self::default() });
        changed
    }

    /// Returns each text of this value combined with each of another.
    pub(super) fn combine(
        self,
        other: &Self,
        join: impl Fn(PartText, &PartText) -> PartText,
    ) -> Self {
        let is_list = self.is_list || other.is_list;
        let mut made = Self { is_list, is_opaque: self.is_opaque, ..Self::default() };
        for left in &self.texts {
            let texts = other.texts.iter().map(|it| join(left.clone(), it)).collect();
            made.add(Self { texts, is_opaque: other.is_opaque, ..Self::default() });
        }
        made
    }

    /// Returns the value followed by another one.
    pub(super) fn append(self, other: &Self) -> Self {
        let is_list = self.is_list && other.is_list;
        Self { is_list, ..self.combine(other, |left, right| left.append(right)) }
    }

    /// Returns the paths of files in directories.
    pub(super) fn join(self, name: &Self, replaces: bool) -> Self {
        self.combine(name, |left, right| left.join(right, replaces))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_and_cut() {
        let joined =
            |left: &str, right: &str| PartText::known(left).join(&PartText::known(right), true);
        for (left, right, expected) in [
            ("~", "a", "~/a"),
            ("/", "srv", "/srv"),
            ("a/", "b", "a/b"),
            ("a", "/b", "/b"),
            ("", "b", "b"),
            ("a", "", "a"),
        ] {
            assert_eq!(joined(left, right).all(), Some(expected));
        }
        for (path, expected) in [
            ("~/a/b", "~/a"),
            ("/a", "/"),
            ("/", "/"),
            ("a", "."),
            (".", ".."),
            ("~", "~/.."),
            ("a/b/", "a"),
            ("..", "../.."),
        ] {
            assert_eq!(PartText::known(path).parent().all(), Some(expected), "{path}");
        }
        let open = PartText::known("~/a/b").open();
        assert_eq!(open.clone().parent().all(), Some("~/a"));
        assert_eq!((open.word().known_part(), open.word().is_known()), ("~/a/b", false));
        assert_eq!(open.quoted(), "~/a/b${__unknown__}");
    }

    #[test]
    fn a_value_beyond_the_limits_is_unknown() {
        let mut many = CodeValue::default();
        (0..20).for_each(|it| many.add(CodeValue::known(it.to_string())));
        assert_eq!(many.texts.len(), VALUES_MAX + 1);
        assert!(many.texts.iter().any(PartText::is_unknown));
        let long = PartText::known("a".repeat(TEXT_MAX));
        assert!(long.append(&PartText::known("b")).is_unknown());
    }
}
