//! Words of the shell out of the pieces that the grammar makes of them: what touches is one word to a shell,
//! and may be several nodes to the grammar (`'a'\b`, `a$"b"`, a line that goes on within a word), while an
//! escaped blank before a word belongs to no node at all.

use tree_sitter::Node;

use super::super::shell::word;
use super::scan::{Scanner, Scope};
use super::units::{Kind, Unit, blank, braces, plain, split, whole};
use super::value::Text;

/// Words in the making, from left to right.
#[derive(Debug, Default)]
pub(super) struct Words {
    done: Vec<Word>,
    /// The units of the word that may still go on.
    open: Vec<Unit>,
}

/// One word before it is split.
#[derive(Debug)]
pub(super) enum Word {
    /// Nothing in it means anything to the shell.
    Literal(Text),
    Units(Vec<Unit>),
}

impl Word {
    /// The words that the shell makes of it.
    pub(super) fn split(self, words: &mut Vec<Text>) {
        match self {
            Self::Literal(text) => words.push(text),
            Self::Units(units) => {
                for units in units.split(Unit::is_blank) {
                    braces(units.to_vec()).iter().for_each(|it| split(it, words));
                }
            }
        }
    }

    /// The one text that it is where nothing is split.
    pub(super) fn whole(self) -> Text {
        match self {
            Self::Literal(text) => text,
            Self::Units(units) => whole(&units),
        }
    }
}

impl Words {
    /// Whether there are none so far.
    pub(super) const fn is_empty(&self) -> bool {
        self.done.is_empty() && self.open.is_empty()
    }

    /// Takes in what stands between two pieces: blanks end a word, anything else belongs to one.
    pub(super) fn between(&mut self, gap: &str) {
        let mut rest = gap;
        while let Some(c) = rest.chars().next() {
            let length = match c {
                '\\' => rest.chars().take(2).map(char::len_utf8).sum(),
                '#' if self.open.is_empty() => rest.find('\n').unwrap_or(rest.len()),
                c => c.len_utf8(),
            };
            let (part, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
            rest = after;
            match c {
                c if blank(c) => self.end(),
                '#' if self.open.is_empty() => {}
                _ => plain(part, &mut self.open),
            }
        }
    }

    /// Ends the word that is open.
    pub(super) fn end(&mut self) {
        if !self.open.is_empty() {
            self.done.push(Word::Units(std::mem::take(&mut self.open)));
        }
    }

    /// The words before they are split.
    pub(super) fn unsplit(mut self) -> Vec<Word> {
        self.end();
        self.done
    }

    /// The words as the shell would pass them.
    pub(super) fn split(self) -> Vec<Text> {
        let unsplit = self.unsplit();
        let mut words = Vec::with_capacity(unsplit.len());
        unsplit.into_iter().for_each(|it| it.split(&mut words));
        words
    }
}

impl Scanner<'_> {
    /// Takes a node into the words.
    pub(super) fn add_piece(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        words: &mut Words,
    ) {
        if words.open.is_empty()
            && word_ends(source, node.end_byte())
            && let Some(literal) = literal(node, source)
        {
            debug_assert_eq!(self.by_units(node, source, scope), std::slice::from_ref(&literal));
            words.done.push(Word::Literal(literal));
            return;
        }
        self.units(node, source, scope, Kind::Plain, &mut words.open);
    }

    /// The same for one node, character by character.
    fn by_units(&mut self, node: Node<'_>, source: &str, scope: &mut Scope) -> Vec<Text> {
        let mut words = Words::default();
        self.units(node, source, scope, Kind::Plain, &mut words.open);
        words.split()
    }

    /// The words that nodes come to which stand in one row.
    pub(super) fn words_of(
        &mut self,
        nodes: &[Node<'_>],
        source: &str,
        scope: &mut Scope,
    ) -> Words {
        let mut words = Words::default();
        let before = nodes.first().and_then(Node::prev_sibling);
        let mut end = before.map_or(0, |it| it.end_byte());
        for node in nodes {
            words.between(source.get(end..node.start_byte()).unwrap_or_default());
            self.add_piece(*node, source, scope, &mut words);
            end = node.end_byte();
        }
        words.between(escaped_blanks(source, end));
        words
    }

    /// The units of one word that its pieces come to, from a byte on.
    pub(super) fn units_of(
        &mut self,
        from: usize,
        pieces: &[Node<'_>],
        source: &str,
        scope: &mut Scope,
    ) -> Vec<Unit> {
        let (mut units, mut end) = (Vec::new(), from);
        for piece in pieces {
            plain(source.get(end..piece.start_byte()).unwrap_or_default(), &mut units);
            self.units(*piece, source, scope, Kind::Plain, &mut units);
            end = piece.end_byte();
        }
        units
    }
}

/// Whether no word goes on from here.
fn word_ends(source: &str, at: usize) -> bool {
    let next = source.get(at..).and_then(|it| it.chars().next());
    next.is_none_or(|it| blank(it) || matches!(it, ';' | '&' | '|' | '(' | ')' | '<' | '>'))
}

/// What stands behind an assignment: what is still its value, and the rest.
pub(super) fn behind_value(gap: &str) -> (&str, &str) {
    let mut is_escaped = false;
    let end = gap.find(|c| {
        let ends = blank(c) && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    });
    gap.split_at_checked(end.unwrap_or(gap.len())).unwrap_or((gap, ""))
}

/// Whether what stands between two pieces parts them.
pub(super) fn parts(gap: &str) -> bool {
    let mut words = Words { open: vec![Unit::Break], ..Words::default() };
    words.between(gap);
    !words.done.is_empty()
}

/// The escaped blanks from here on, which end a command to the grammar.
pub(super) fn escaped_blanks(source: &str, from: usize) -> &str {
    let rest = source.get(from..).unwrap_or_default();
    let mut end = 0;
    loop {
        let after = rest.get(end..).unwrap_or_default();
        let blanks = after.len() - after.trim_start_matches([' ', '\t']).len();
        match after.as_bytes().get(blanks..blanks + 2) {
            Some(b"\\ " | b"\\\t") => end += blanks + 2,
            // The line goes on.
            Some(b"\\\n") if after.get(blanks + 2..).is_some_and(|it| it.starts_with('\\')) => {
                end += blanks + 2;
            }
            _ => return rest.get(..end).unwrap_or_default(),
        }
    }
}

/// The pieces behind a node that touch it: to a shell they belong to its last word.
pub(super) fn touching<'t>(node: Node<'t>, source: &str) -> Vec<Node<'t>> {
    let mut found: Vec<Node<'t>> = Vec::new();
    let mut end = node.end_byte();
    let mut next = node.next_sibling().filter(|_| !word_ends(source, end));
    while let Some(piece) = next.filter(|it| is_piece(*it)) {
        if parts(source.get(end..piece.start_byte()).unwrap_or_default()) {
            break;
        }
        end = piece.end_byte();
        found.push(piece);
        next = piece.next_sibling();
    }
    found
}

/// Whether a node is a word or a piece of one.
fn is_piece(node: Node<'_>) -> bool {
    let kind = node.kind();
    kind.ends_with("string")
        || kind.ends_with("expansion")
        || kind.ends_with("substitution")
        || matches!(
            kind,
            "word"
                | "number"
                | "concatenation"
                | "command_name"
                | "variable_name"
                | "brace_expression"
                | "$"
        )
}

/// The one word that a node is where nothing in it means anything to the shell: most are, and are read
/// without going through their characters. Debug builds do both.
fn literal(node: Node<'_>, source: &str) -> Option<Text> {
    let raw = word::raw(node, source);
    let means_something =
        |c: char| matches!(c, '\\' | '$' | '`' | '{' | '}' | '"' | '\'' | '\u{0}');
    let text = match node.kind() {
        "word" => raw,
        "raw_string" => raw.strip_prefix('\'')?.strip_suffix('\'')?,
        "string" => raw.strip_prefix('"')?.strip_suffix('"')?,
        "command_name" if node.child_count() == 1 => return literal(node.child(0)?, source),
        _ => return None,
    };
    if text.is_empty() || text.contains(means_something) {
        return None;
    }
    let is_quoted = text.len() < raw.len();
    // Behind some signs the grammar takes two words for one.
    if !is_quoted && text.contains(blank) {
        return None;
    }
    let glob = !is_quoted && text.contains(['*', '?', '[']);
    Some(Text { glob, quoted_home: is_quoted && text.starts_with('~'), ..Text::known(text) })
}
