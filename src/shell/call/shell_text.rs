//! The value of a shell word, which can be known in part.

use crate::shell::{ShellWord, quote};

/// The value of a shell word or of a part of it, as far as policyd can know it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellText {
    /// The text. An unknown part appears in it as written in the source.
    pub text: String,
    /// Byte offset at which the first unknown part begins. Equal to the length if all of the text
    /// is known.
    pub known_to: usize,
    /// Whether the shell expands the `*`, `?` and `[` of the text to file names.
    pub glob: bool,
    /// Whether a leading `~` is part of a file name, because it was quoted, and not the home
    /// directory.
    pub quoted_home: bool,
    /// Indexes of the programs whose output the text contains.
    pub from: Vec<usize>,
    /// Whether the text names a pipe from those programs: `<(…)`.
    pub pipe: bool,
    /// Content of that pipe. `None` if it is unknown.
    pub piped: Option<String>,
}

impl ShellText {
    /// Returns a text that is fully known.
    #[must_use]
    pub fn known(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { known_to: text.len(), text, ..Self::default() }
    }

    /// Returns a text that is fully unknown; `written` is its source.
    #[must_use]
    pub fn unknown(written: impl Into<String>) -> Self {
        Self { text: written.into(), ..Self::default() }
    }

    /// Returns a known text that comes from data, such as a line of a file. A leading `~` is not
    /// expanded.
    pub(super) fn data(text: impl Into<String>) -> Self {
        let known = Self::known(text);
        Self { quoted_home: known.text.starts_with('~'), ..known }
    }

    /// Replaces a leading `~` by the home directory, as the shell does when a text becomes a word.
    pub(super) fn with_home(self, home: &str) -> Self {
        let rest = self.text.strip_prefix('~').filter(|_| !self.quoted_home && !home.is_empty());
        match rest.filter(|it| it.is_empty() || it.starts_with('/')) {
            Some(_) if self.known_to > 0 => {
                let mut whole = Self::known(home);
                whole.append(&self.tail(1));
                whole
            }
            _ => self,
        }
    }

    /// Returns whether all of the text is known.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.known_to >= self.text.len()
    }

    /// Returns the text if all of it is known.
    #[must_use]
    pub fn all(&self) -> Option<&str> {
        self.is_known().then_some(self.text.as_str())
    }

    /// Returns the names of the variables in the unknown part.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let unknown = self.text.get(self.known_part().len()..).unwrap_or_default();
        unknown.split('$').skip(1).map(|it| {
            let name = it.trim_start_matches('{');
            let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
            name.get(..end).unwrap_or_default()
        })
    }

    /// Returns the part before the first unknown part.
    #[must_use]
    pub fn known_part(&self) -> &str {
        self.text.get(..self.known_to).unwrap_or(&self.text)
    }

    /// Appends a character.
    pub(super) fn push(&mut self, c: char) {
        if self.is_known() {
            self.known_to = self.text.len().saturating_add(c.len_utf8());
        }
        self.text.push(c);
    }

    /// Appends another text, with its unknown parts and its sources.
    pub(super) fn append(&mut self, other: &Self) {
        if self.is_known() {
            self.known_to = self.text.len().saturating_add(other.known_to);
        }
        self.text.push_str(&other.text);
        self.glob |= other.glob;
        self.pipe |= other.pipe;
        self.piped = self.piped.take().or_else(|| other.piped.clone());
        for from in &other.from {
            if !self.from.contains(from) {
                self.from.push(*from);
            }
        }
    }

    /// Returns an unknown path below this path, if this is a directory.
    pub(super) fn below(&self) -> Self {
        let mut path = self.clone();
        path.text.truncate(path.text.trim_end_matches('/').len());
        path.known_to = path.known_to.min(path.text.len());
        path.append(&Self::known("/"));
        path.append(&Self::unknown("\u{2026}"));
        path
    }

    /// Returns the part from a byte offset to the end.
    pub(super) fn tail(&self, at: usize) -> Self {
        let text = self.text.get(at..).unwrap_or_default().to_owned();
        Self { known_to: self.known_to.saturating_sub(at).min(text.len()), text, ..self.clone() }
    }
}

impl ShellWord for ShellText {
    fn text(&self) -> &str {
        &self.text
    }

    fn joined(words: &[Self]) -> Self {
        let mut whole = Self::default();
        for (at, word) in words.iter().enumerate() {
            if at > 0 {
                whole.append(&Self::known(" "));
            }
            whole.append(word);
        }
        whole
    }

    fn after(&self, at: usize) -> Self {
        self.tail(at)
    }

    fn quoted(&self) -> Self {
        // A leading `~` must stay unquoted, so that it is still the home directory.
        let home = self.text.starts_with('~') && !self.quoted_home;
        match self.all().filter(|_| !home) {
            Some(word) => Self { from: self.from.clone(), ..Self::known(quote(word)) },
            None => self.clone(),
        }
    }
}
