//! Colours of a terminal, or none.

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    pub(super) color: bool,
}

impl Paint {
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
