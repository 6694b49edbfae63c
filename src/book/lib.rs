//! The pages of the book and the example packs, embedded. The build script lists the files of `src/docs`.
//!
//! Contains: the pages that people wrote. Does not contain: generated pages, whose content commands print.
//!
//! ```
//! assert!(policyd_book::page("guards").is_some());
//! assert!(!policyd_book::EXAMPLES.is_empty());
//! ```

include!(concat!(env!("OUT_DIR"), "/book.rs"));

/// A page of the book.
#[derive(Debug)]
pub struct Page {
    /// Path below `src/docs` without extension, such as `write/guards`.
    pub path: &'static str,
    /// Markdown text.
    pub text: &'static str,
}

impl Page {
    /// The last part of the path, such as `guards`.
    #[must_use]
    pub fn topic(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }

    /// The first sentence below the heading, on one line and without its period.
    #[must_use]
    pub fn summary(&self) -> String {
        first_sentence(self.text)
    }
}

/// An example pack of the cookbook.
#[derive(Debug)]
pub struct ExamplePack {
    /// Name of its directory below `src/docs/examples`.
    pub name: &'static str,
    /// Its files by their paths in the pack, the manifest among them.
    pub files: &'static [(&'static str, &'static str)],
}

impl ExamplePack {
    /// The ids of the checks that the pack adds.
    fn checks(&self) -> impl Iterator<Item = &'static str> {
        let file = self.files.iter().find(|it| it.0 == "considerations.yaml").map_or("", |it| it.1);
        file.lines().filter_map(|line| line.strip_prefix("- id: ")).map(str::trim_end)
    }

    /// The purpose of the pack: the comment on the first line of its manifest, without its period.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        let manifest = self.files.iter().find(|it| it.0 == "policyd.yaml").map_or("", |it| it.1);
        let first = manifest.lines().next().unwrap_or_default();
        first.trim_start_matches(['#', ' ']).trim_end_matches('.')
    }
}

/// The page with a topic or a path.
#[must_use]
pub fn page(topic: &str) -> Option<&'static Page> {
    let topic = topic.trim_end_matches(".md");
    PAGES.iter().find(|it| it.topic() == topic || it.path == topic)
}

/// The example pack with a name.
#[must_use]
pub fn example(name: &str) -> Option<&'static ExamplePack> {
    EXAMPLES.iter().find(|it| it.name == name)
}

/// The example pack that defines a check.
#[must_use]
pub fn example_with(check: &str) -> Option<&'static ExamplePack> {
    EXAMPLES.iter().find(|it| it.checks().any(|id| id == check))
}

/// The first sentence of the first paragraph of a Markdown text, without its period.
#[must_use]
pub fn first_sentence(text: &str) -> String {
    let is_prose = |it: &&str| !it.is_empty() && !it.starts_with(['#', '<']);
    let mut lines = text.lines().skip_while(|it| !is_prose(it)).take_while(|it| !it.is_empty());
    let first = lines.next().unwrap_or_default().to_owned();
    let paragraph = lines.fold(first, |text, line| text + " " + line);
    let sentence = paragraph.split_once(". ").map_or(paragraph.as_str(), |it| it.0);
    without_links(sentence.trim_end_matches(['.', ':']))
}

/// Markdown links replaced by their texts.
fn without_links(text: &str) -> String {
    let mut parts = text.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    let text = parts.fold(first, |text, part| text + part.split_once(')').map_or("", |it| it.1));
    text.replace('[', "")
}
