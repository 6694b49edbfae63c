//! A tree as bytes, for files that are known when the program is built: reading those again takes a fraction of
//! the time that parsing their texts takes. What a tree is made of says `yaml`, in the build script.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Node, NodeKind, Scalar, ScalarStyle, Source, Span};

/// A node without its source file.
#[derive(Serialize, Deserialize)]
struct StoredNode<'a> {
    start: usize,
    end: usize,
    #[serde(borrow)]
    kind: StoredKind<'a>,
}

#[derive(Serialize, Deserialize)]
enum StoredKind<'a> {
    Scalar(#[serde(borrow)] Cow<'a, str>, ScalarStyle, usize),
    List(#[serde(borrow)] Vec<StoredNode<'a>>),
    Map(#[serde(borrow)] Vec<(StoredNode<'a>, StoredNode<'a>)>),
    Invalid,
}

/// The tree as bytes; `read` makes the same tree of them and of the text it was made of.
///
/// # Errors
/// None that a tree of a file can cause: the encoder's own.
pub fn write(tree: &Node) -> Result<Vec<u8>, postcard::Error> {
    postcard::to_stdvec(&StoredNode::of(tree))
}

/// Returns the tree that `write` received for the same source text. `None` if the bytes are not a tree.
#[must_use]
pub fn read(bytes: &[u8], source: &Arc<Source>) -> Option<Node> {
    postcard::from_bytes::<StoredNode<'_>>(bytes).ok().map(|it| it.within(source))
}

impl<'a> StoredNode<'a> {
    fn of(node: &'a Node) -> Self {
        let kind = match &node.kind {
            NodeKind::Scalar(it) => {
                StoredKind::Scalar(Cow::Borrowed(&it.text), it.style, it.indent)
            }
            NodeKind::List(items) => StoredKind::List(items.iter().map(StoredNode::of).collect()),
            NodeKind::Map(entries) => StoredKind::Map(
                entries.iter().map(|(key, it)| (StoredNode::of(key), StoredNode::of(it))).collect(),
            ),
            NodeKind::Invalid => StoredKind::Invalid,
        };
        Self { start: node.span.start, end: node.span.end, kind }
    }

    fn within(self, source: &Arc<Source>) -> Node {
        let kind = match self.kind {
            StoredKind::Scalar(text, style, indent) => {
                NodeKind::Scalar(Scalar { text: text.into_owned(), style, indent })
            }
            StoredKind::List(items) => {
                NodeKind::List(items.into_iter().map(|it| it.within(source)).collect())
            }
            StoredKind::Map(entries) => {
                let entries = entries.into_iter();
                NodeKind::Map(
                    entries.map(|(key, it)| (key.within(source), it.within(source))).collect(),
                )
            }
            StoredKind::Invalid => NodeKind::Invalid,
        };
        let span = Span { source: Arc::clone(source), start: self.start, end: self.end };
        Node { span, kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    fn source(text: &str) -> Arc<Source> {
        Arc::new(Source { name: "a.yaml".to_owned(), text: text.to_owned() })
    }

    #[test]
    fn what_was_written_is_read_as_the_same_tree() {
        for text in [
            "a: 1\nb: [x, 'y''s', \"z\\n\"]\nc: {d: ~, e: }\n",
            "- |2\n    kept\n  lines\n- >-\n  fold\n  ed\n- ä: ö\n",
            "a: *alias\n",
        ] {
            let source = source(text);
            let tree = yaml::parse(&source).0.unwrap();
            assert_eq!(read(&write(&tree).unwrap(), &source), Some(tree), "{text}");
        }
    }

    #[test]
    fn bytes_that_are_no_tree_are_none() {
        let tree = write(&yaml::parse(&source("a: 1")).0.unwrap()).unwrap();
        assert_eq!(read(&tree[..tree.len() - 1], &source("a: 1")), None);
        assert_eq!(read(&[], &source("")), None);
    }
}
