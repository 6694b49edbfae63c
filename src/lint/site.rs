//! One expression of a pack: where it is written, its tree, and cheap looks that turn most questions away.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::logic;
use policyd_fact_table::ast::Expr;
use policyd_fact_table::types::Names;
use policyd_yaml::Span;
use policyd_yaml::node::Node;
use policyd_yaml::pairs::BigramFilter;
use policyd_yaml::suggestion::{Edit, Suggestion};

/// One expression.
#[derive(Debug)]
pub struct Site<'a> {
    /// File of the pack it is in.
    pub file: &'static str,
    /// The entry it belongs to, by its number in `Subject::entries`.
    pub entry: Option<usize>,
    /// The key it is the value of, or is in the template of.
    pub key: &'a str,
    /// Whether it must be true or false; a hole of a template need not.
    pub condition: bool,
    /// The scalar it is written in.
    pub node: &'a Node,
    /// Where it begins in the decoded text of the scalar.
    pub start: usize,
    /// Text of the expression, without YAML quotes and escapes.
    pub text: &'a str,
    /// Its parts, where it can be read.
    pub term: Option<Arc<Expr>>,
    /// The names it sees, where it speaks of a record; else it sees what the pack defines.
    record: Option<&'a Names>,
    /// What its text can name.
    pairs: BigramFilter,
    /// Whether the expression contains a text constant.
    quotes: bool,
    /// What may be called in it.
    calls: Calls,
    /// Whether the condition is always true or always false. Computed when it is first needed.
    truth: OnceLock<Option<bool>>,
}

/// Names of functions, of which some share a bit: what is not among them is called nowhere.
#[derive(Debug, Clone, Copy)]
pub struct Calls(u64);

impl Calls {
    /// The names before parentheses in a text.
    fn of_text(text: &str) -> Self {
        let opens = memchr::memchr_iter(b'(', text.as_bytes());
        Self::of(opens.map(|at| {
            let before = text.get(..at).unwrap_or_default().trim_end();
            let name = before.rfind(|c: char| !(c.is_alphanumeric() || c == '_'));
            before.get(name.map_or(0, |it| it + 1)..).unwrap_or_default()
        }))
    }

    /// These names.
    pub fn of<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        Self(names.fold(0, |bits, name| {
            let byte = |it: Option<&u8>| it.copied().unwrap_or(0);
            let (first, last) = (byte(name.as_bytes().first()), byte(name.as_bytes().last()));
            bits | Self::bit(first, last, name.len())
        }))
    }

    const fn bit(first: u8, last: u8, length: usize) -> u64 {
        1 << ((first as usize * 3 + last as usize * 5 + length * 11) % 64)
    }
}

/// Where in a pack a value is.
#[derive(Debug, Clone, Copy)]
pub(super) struct SiteLocation<'a> {
    pub(super) file: &'static str,
    pub(super) entry: Option<usize>,
    pub(super) key: &'a str,
    pub(super) record: Option<&'a Names>,
}

impl<'a> Site<'a> {
    /// Whether it reads a record, and no facts.
    #[must_use]
    pub fn reads_record(&self) -> bool {
        self.record.is_some_and(|it| it.record.is_some())
    }

    /// Whether it speaks of the record of this name.
    pub fn speaks_of(&self, name: &str) -> bool {
        let record = self.record.and_then(|it| it.record.as_ref());
        record.is_some_and(|it| it.name == name)
    }

    pub(super) fn new(
        at: SiteLocation<'a>,
        node: &'a Node,
        start: usize,
        text: &'a str,
        condition: bool,
    ) -> Self {
        let SiteLocation { file, entry, key, record } = at;
        let (term, pairs, truth) =
            (Expr::parse(text), BigramFilter::from_text(text), OnceLock::new());
        let quotes = memchr::memchr2(b'"', b'`', text.as_bytes()).is_some();
        let calls = Calls::of_text(text);
        Self {
            file,
            entry,
            key,
            condition,
            node,
            start,
            text,
            term,
            record,
            pairs,
            quotes,
            calls,
            truth,
        }
    }

    /// Whether it sees other names than those of the pack.
    pub(super) const fn has_own_names(&self) -> bool {
        self.record.is_some()
    }

    /// The names it sees: those of its record, or what the pack defines.
    pub fn names<'n>(&self, pack: &'n Names) -> &'n Names
    where
        'a: 'n,
    {
        self.record.unwrap_or(pack)
    }

    /// Whether one of these members may be asked for somewhere in it: most are turned away.
    pub fn may_name(&self, members: &[&str]) -> bool {
        members.iter().any(|it| self.pairs.may_hold(it))
    }

    /// Whether it has a text constant.
    pub const fn has_text(&self) -> bool {
        self.quotes
    }

    /// Whether one of these members may be asked for a text constant in it.
    pub fn may_ask(&self, members: &[&str]) -> bool {
        self.quotes && self.may_name(members)
    }

    /// Whether one of these may be called with a text constant in it.
    pub fn may_call(&self, calls: Calls) -> bool {
        self.quotes && self.calls.0 & calls.0 != 0
    }

    /// Where a part of it is written.
    #[must_use]
    pub fn span(&self, range: &Range<usize>) -> Span {
        self.node.sub_span(self.start + range.start..self.start + range.end)
    }

    /// Where all of it is written.
    #[must_use]
    pub fn whole(&self) -> Span {
        self.span(&(0..self.text.trim_end().len()))
    }

    /// Whether it is always true or always false.
    pub fn truth(&self, names: &Names) -> Option<bool> {
        let term = self.term.as_deref();
        let names = self.names(names);
        *self.truth.get_or_init(|| term.and_then(|it| logic::truth(it, names)))
    }

    /// What a part of it is written as.
    pub fn part(&self, range: &Range<usize>) -> &'_ str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    /// Returns the edit that replaces a part of the expression, with the quotes and escapes of its scalar.
    /// `None` if the scalar cannot contain the text.
    pub fn edit(&self, range: &Range<usize>, text: &str) -> Option<Edit> {
        self.node.replaced(self.start + range.start..self.start + range.end, text)
    }

    /// Returns the suggestion to write another expression as a part of this one.
    pub fn write(&self, range: &Range<usize>, text: impl Into<String>) -> Suggestion {
        Suggestion::write(range.clone(), text).within(self.node, self.start)
    }

    /// Returns the suggestion to write another text for a text constant.
    pub fn write_text(&self, range: &Range<usize>, text: &str) -> Suggestion {
        Suggestion::edited(format!("write `{text}`"), self.edit(range, &format!("{text:?}")))
    }

    /// Returns the suggestion to write a similar word for a text constant.
    pub fn word(&self, range: &Range<usize>, near: &str) -> Suggestion {
        Suggestion::word(near, self.edit(range, &format!("{near:?}")))
    }

    /// Calls `look` with every part of it.
    pub fn visit<'s>(&'s self, mut look: impl FnMut(&'s Expr)) {
        if let Some(term) = &self.term {
            term.visit(&mut look);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Calls;

    #[test]
    fn a_call_is_known_by_its_name() {
        let ends = Calls::of(["matches", "reads", "any"].into_iter());
        for text in ["files.paths.any([\"a\"])", "x.matches (\"a\")", "action.reads(x)"] {
            assert_ne!(ends.0 & Calls::of_text(text).0, 0, "{text}");
        }
        assert_eq!(ends.0 & Calls::of_text("files.count > 0").0, 0);
        assert_eq!(ends.0.count_ones(), 3);
    }
}
