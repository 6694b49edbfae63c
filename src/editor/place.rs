//! Finds where a byte of a YAML file is: the keys above it, and the key or the scalar at it. Works on files that are not
//! valid YAML yet: the parser decides if it can, otherwise the lines do.

use std::ops::Range;
use std::sync::Arc;

use super::lines;
use policyd_yaml::node::Node;
use policyd_yaml::scalar::decoded_map;
use policyd_yaml::{NodeKind, ScalarStyle, Source, yaml};

/// A step from a value to a value in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// The value of a key.
    Key(String),
    /// An item of a list.
    Item,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlPlace {
    /// Steps from the content of the file to the map or list that contains the word, or to the scalar.
    pub path: Vec<PathStep>,
    /// What is there.
    pub role: Role,
    /// The keys of the map that contains the place, without the one at the place.
    pub siblings: Vec<String>,
}

/// What is at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// A key, or a word that can become a key or an item of a list.
    Key {
        /// Its bytes; empty if nothing is written yet.
        range: Range<usize>,
        /// Whether a colon follows.
        has_colon: bool,
    },
    /// A scalar.
    Value(ScalarPlace),
}

/// A scalar, and a place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalarPlace {
    /// The text without quotes, escapes, and indentation.
    pub text: String,
    /// The byte of the place in `text`.
    pub offset: usize,
    /// The byte of the file for each byte of `text`, and for its end.
    places: Vec<usize>,
    /// Style.
    pub style: ScalarStyle,
}

impl ScalarPlace {
    /// A scalar whose bytes are written at `places`, with the byte of the file at which the place is.
    pub(super) fn new(text: String, places: Vec<usize>, style: ScalarStyle, at: usize) -> Self {
        let offset = places.partition_point(|it| *it < at).min(text.len());
        let offset = (0..=offset).rev().find(|it| text.is_char_boundary(*it)).unwrap_or(0);
        Self { text, offset, places, style }
    }

    /// The scalar at a node; `None` if the node is something else.
    #[must_use]
    pub fn of_node(node: &Node, at: usize) -> Option<Self> {
        let scalar = node.scalar()?;
        let map = decoded_map(node)?;
        let place = |byte: usize| map.source_range(byte..byte + 1).map(|it| it.start);
        let mut places: Vec<usize> = (0..scalar.text.len()).map_while(place).collect();
        let quoted = matches!(scalar.style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
        places.push(node.span.end.saturating_sub(usize::from(quoted)));
        (places.len() == scalar.text.len() + 1)
            .then(|| Self::new(scalar.text.clone(), places, scalar.style, at))
    }

    /// The bytes of the file with which a range of the text is written.
    #[must_use]
    pub fn source(&self, range: &Range<usize>) -> Range<usize> {
        let end = self.places.last().copied().unwrap_or(0);
        let place = |at: usize| self.places.get(at).copied().unwrap_or(end);
        place(range.start)..place(range.end).max(place(range.start))
    }

    /// The text as it is written in the scalar: with its escapes.
    #[must_use]
    pub fn written(&self, text: &str) -> String {
        match self.style {
            ScalarStyle::DoubleQuoted => text.replace('\\', "\\\\").replace('"', "\\\""),
            ScalarStyle::SingleQuoted => text.replace('\'', "''"),
            ScalarStyle::Plain | ScalarStyle::Literal | ScalarStyle::Folded => text.to_owned(),
        }
    }
}

/// Finds what is at a byte of a file.
#[must_use]
pub fn find(text: &str, offset: usize) -> YamlPlace {
    let source = Arc::new(Source { name: String::new(), text: text.to_owned() });
    let parsed = yaml::parse(&source).0;
    let in_tree = parsed.and_then(|root| in_node(&root, offset, Vec::new(), Vec::new()));
    in_tree.unwrap_or_else(|| lines::find(text, offset))
}

/// Finds the key or the scalar of a tree that contains a byte.
fn in_node(
    node: &Node,
    at: usize,
    path: Vec<PathStep>,
    siblings: Vec<String>,
) -> Option<YamlPlace> {
    match &node.kind {
        NodeKind::Map(entries) => {
            let (key, value) = entries.iter().rfind(|(key, _)| key.span.start <= at)?;
            let others = entries.iter().map(|(key, _)| key).filter(|it| it.span != key.span);
            let others = others.filter_map(|it| it.text().map(str::to_owned)).collect();
            if at <= key.span.end {
                let role = Role::Key { range: key.span.start..key.span.end, has_colon: true };
                return Some(YamlPlace { path, role, siblings: others });
            }
            let mut path = path;
            path.push(PathStep::Key(key.text()?.to_owned()));
            in_node(value, at, path, others)
        }
        NodeKind::List(items) => {
            let item = items.iter().rfind(|it| it.span.start <= at)?;
            let mut path = path;
            path.push(PathStep::Item);
            in_node(item, at, path, Vec::new())
        }
        NodeKind::Scalar(scalar) => {
            let span = node.span.start..node.span.end;
            let is_inside = match scalar.style {
                ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
                    span.start < at && at < span.end
                }
                ScalarStyle::Plain => !span.is_empty() && span.start <= at && at <= span.end,
                ScalarStyle::Literal | ScalarStyle::Folded => span.start <= at && at <= span.end,
            };
            let place = ScalarPlace::of_node(node, at).filter(|_| is_inside)?;
            Some(YamlPlace { path, role: Role::Value(place), siblings })
        }
        NodeKind::Invalid => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place of `|`, in one line: the path, then the key, or the scalar with the place in it.
    fn shown(text: &str) -> String {
        let at = text.find('¦').unwrap();
        let text = text.replace('¦', "");
        let found = find(&text, at);
        let mut path = String::new();
        for step in &found.path {
            match step {
                PathStep::Key(key) => path.push_str(&format!("/{key}")),
                PathStep::Item => path.push_str("/-"),
            }
        }
        let siblings = found.siblings.join(",");
        match found.role {
            Role::Key { range, has_colon } => {
                let colon = if has_colon { ":" } else { "" };
                format!("{path} key `{}{colon}` [{siblings}]", text.get(range).unwrap())
            }
            Role::Value(it) => {
                let (before, after) = it.text.split_at(it.offset);
                assert!(it.source(&(it.offset..it.offset)).start <= text.len());
                format!("{path} {before}¦{after}")
            }
        }
    }

    #[test]
    fn places_of_valid_files_are_those_of_the_parser() {
        for (text, expected) in [
            ("- id: a\n  when: files.¦count > 0\n", "/-/when files.¦count > 0"),
            ("- id: a\n  wh¦en: x\n", "/- key `when:` [id]"),
            ("- id: a\n  when: \"a \\\"b¦\\\" c\"\n", "/-/when a \"b¦\" c"),
            ("- id: a\n  when: 'it''s ¦x'\n", "/-/when it's ¦x"),
            ("a: |-\n  one\n  t¦wo\n", "/a one\nt¦wo"),
            ("a: >\n  one\n  t¦wo\n", "/a one t¦wo\n"),
            ("a: one\n  t¦wo\n", "/a one t¦wo"),
            ("a: {b: [x, y¦]}\n", "/a/b/- y¦"),
            ("a: é ¦x\n", "/a é ¦x"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn places_of_unfinished_files_are_found_by_the_lines() {
        for (text, expected) in [
            ("- id: a\n  wh¦\n", "/- key `wh` [id]"),
            ("- id: a\n  ¦\n- id: b\n", "/- key `` [id]"),
            ("- id: a\n  when: x\n  ¦\n  then: y\n", "/- key `` [id,when,then]"),
            ("¦", " key `` []"),
            ("- ¦", "/- key `` []"),
            ("version: 1\nna¦", " key `na` [version]"),
            ("- id: a\n  when: ¦\n", "/-/when ¦"),
            ("- id: a\n  when: !files.¦\n", "/-/when !files.¦"),
            ("- id: a\n  when: \"files.¦\n  then: y\n", "/-/when files.¦"),
            ("- id: a\n  when: files.count > ¦\n", "/-/when files.count > ¦"),
            ("a:\n  b:\n    - ¦\n", "/a/b/- key `` []"),
            ("a:\n  b:\n  - x: 1\n    ¦\n", "/a/b/- key `` [x]"),
            ("a: |-\n  one &&\n  ¦\n", "/a one &&\n¦\n"),
            ("a: {b: 1, ¦", "/a key `` [b]"),
            ("a: {b: {c: x¦", "/a/b/c x¦"),
            ("a: {\"b¦\r\nc: [\n", "/a b¦"),
            ("a: [x, \"y¦", "/a/- y¦"),
            ("a: [{when: \"files.¦\"}\n", "/a/-/when files.¦"),
            ("a: {b: [\n  x, ¦\n", "/a/b/- key `` []"),
            ("a:\n  b: 1\nc¦", " key `c` [a]"),
            (
                "- id: a\n  details:\n    - when: files.¦\n      text: [\n",
                "/-/details/-/when files.¦",
            ),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}
