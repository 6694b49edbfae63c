//! How reports for people are written: lines and colours.

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    color: bool,
}

impl Paint {
    /// Colours, where the reader sees them.
    pub(super) const fn new(color: bool) -> Self {
        Self { color }
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(super) fn red(self, text: &str) -> String {
        self.with("1;31", text)
    }

    pub(super) fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(super) fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }
}

/// Adds a line.
pub(super) fn line(text: &mut String, content: &str) {
    text.push_str(content);
    text.push('\n');
}
