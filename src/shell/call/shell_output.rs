//! The standard output of a statement, as the input of the next program or as a value.

use super::invocation::StandardInput;
use super::shell_text::ShellText;

/// The standard output of a statement.
#[derive(Debug, Clone, Default)]
pub(super) struct ShellOutput {
    /// The text. `None` if it is unknown.
    pub(super) text: Option<String>,
    /// Indexes of the programs that write it.
    pub(super) from: Vec<usize>,
    /// The files that the output names: first an unknown path below their common directory, then
    /// the names that were searched for.
    pub(super) files: Vec<ShellText>,
}

impl ShellOutput {
    /// Returns the output of a statement that prints nothing.
    pub(super) fn empty() -> Self {
        Self { text: Some(String::new()), ..Self::default() }
    }

    /// Converts the output to the standard input of the next program of a pipeline.
    pub(super) fn piped(self) -> StandardInput {
        let Self { text, from, files } = self;
        StandardInput { piped: true, text, from, files, ..StandardInput::default() }
    }

    /// Converts the output to the value of a command substitution. `written` is the source of the
    /// substitution; newlines at the end are removed.
    pub(super) fn substituted(self, written: &str) -> ShellText {
        match self.text {
            Some(text) => {
                ShellText { from: self.from, ..ShellText::known(text.trim_end_matches('\n')) }
            }
            // The names of the files are unknown, but their directory is known.
            None => {
                let below = self.files.first().map(ShellText::known_part).unwrap_or_default();
                let mut text = ShellText::known(below);
                text.append(&ShellText { from: self.from, ..ShellText::unknown(written) });
                text
            }
        }
    }

    /// Appends the output of the next statement.
    pub(super) fn then(self, next: Self) -> Self {
        let text = self.text.zip(next.text).map(|(mut one, other)| {
            one.push_str(&other);
            one
        });
        let mut from = self.from;
        from.extend(next.from);
        let files = if self.files.is_empty() { next.files } else { self.files };
        Self { text, from, files }
    }
}
