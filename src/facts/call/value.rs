//! Values of shell words: what is known of a text that the shell would put together.

use super::super::shell::unwrap::Word;
use super::super::shell::word::quoted;

/// A text that the shell would make, as far as it can be known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// The text; a part that cannot be known stands in it as it was written.
    pub text: String,
    /// Where its first part begins that cannot be known, in bytes; its length where all is known.
    pub known_to: usize,
    /// Whether the shell would put names of files in the place of its `*` and `?`.
    pub glob: bool,
    /// Whether a `~` that it begins with is a file's name and not the home: it was quoted.
    pub quoted_home: bool,
    /// Programs whose output is in it.
    pub from: Vec<usize>,
    /// Whether it is the name of a pipe from those programs: `<(…)`.
    pub pipe: bool,
    /// What is in that pipe, where that is known.
    pub piped: Option<String>,
}

impl Text {
    /// A text that is known.
    #[must_use]
    pub fn known(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { known_to: text.len(), text, ..Self::default() }
    }

    /// A text of which nothing can be known.
    #[must_use]
    pub fn unknown(written: impl Into<String>) -> Self {
        Self { text: written.into(), ..Self::default() }
    }

    /// A text that is known, and was data before: a `~` that it begins with is no home.
    pub(super) fn data(text: impl Into<String>) -> Self {
        let known = Self::known(text);
        Self { quoted_home: known.text.starts_with('~'), ..known }
    }

    /// With the home in the place of the `~` that it begins with, as the shell put it in when the text became
    /// a word.
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

    /// Whether all of it is known.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.known_to >= self.text.len()
    }

    /// The text, where all of it is known.
    #[must_use]
    pub fn all(&self) -> Option<&str> {
        self.is_known().then_some(self.text.as_str())
    }

    /// Names of variables in the part that cannot be known.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let unknown = self.text.get(self.known_part().len()..).unwrap_or_default();
        unknown.split('$').skip(1).map(|it| {
            let name = it.trim_start_matches('{');
            let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
            name.get(..end).unwrap_or_default()
        })
    }

    /// The part before anything that cannot be known.
    #[must_use]
    pub fn known_part(&self) -> &str {
        self.text.get(..self.known_to).unwrap_or(&self.text)
    }

    /// Adds a character behind it.
    pub(super) fn push(&mut self, c: char) {
        if self.is_known() {
            self.known_to = self.text.len().saturating_add(c.len_utf8());
        }
        self.text.push(c);
    }

    /// Adds a text behind it.
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

    /// Something that lies below it, where it is a folder.
    pub(super) fn below(&self) -> Self {
        let mut path = self.clone();
        path.text.truncate(path.text.trim_end_matches('/').len());
        path.known_to = path.known_to.min(path.text.len());
        path.append(&Self::known("/"));
        path.append(&Self::unknown("\u{2026}"));
        path
    }

    /// A part of it, from a byte on.
    pub(super) fn tail(&self, at: usize) -> Self {
        let text = self.text.get(at..).unwrap_or_default().to_owned();
        Self { known_to: self.known_to.saturating_sub(at).min(text.len()), text, ..self.clone() }
    }
}

impl Word for Text {
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
        // The home stays one.
        let home = self.text.starts_with('~') && !self.quoted_home;
        match self.all().filter(|_| !home) {
            Some(word) => Self { from: self.from.clone(), ..Self::known(quoted(word)) },
            None => self.clone(),
        }
    }
}
