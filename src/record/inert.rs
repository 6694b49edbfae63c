//! Texts of agents in formats that interpret texts: without mentions, images, and links that show another address than
//! their own.

/// Formats of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// Texts are shown as they are.
    Plain,
    /// Text of Slack, in which `<` begins mentions and links.
    Slack,
    /// Markdown.
    Markdown,
}

impl TextFormat {
    /// Returns a text that the format shows as text.
    #[must_use]
    pub fn inert(self, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Slack => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"),
            // Links and images have the form `[text](address)`.
            Self::Markdown => text.replace('<', "&lt;").replace("](", "] ("),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_links_and_images_are_text() {
        let text = "<!channel> <https://evil.example|docs> ![x](https://evil.example/p.png) R&D";
        assert_eq!(TextFormat::Plain.inert(text), text);
        assert_eq!(
            TextFormat::Slack.inert(text),
            "&lt;!channel&gt; &lt;https://evil.example|docs&gt; ![x](https://evil.example/p.png) R&amp;D"
        );
        assert_eq!(
            TextFormat::Markdown.inert(text),
            "&lt;!channel> &lt;https://evil.example|docs> ![x] (https://evil.example/p.png) R&D"
        );
    }
}
