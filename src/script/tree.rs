//! An expression as a tree in which every part knows the bytes it was written with.
//! Lives here: the form. What it means is `check`'s, what may be wrong with its logic is lint's.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use super::lately;

mod reader;

/// A part of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// What it is.
    pub form: Form,
    /// The bytes it was written with, parentheses around it left out.
    pub range: Range<usize>,
    /// The same with the parentheses around it.
    pub outer: Range<usize>,
}

/// Forms of parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// `a && b && …`
    And(Vec<Term>),
    /// `a || b || …`
    Or(Vec<Term>),
    /// `!a`
    Not(Box<Term>),
    /// `a == b` and its like
    Compare(Relation, Box<Term>, Box<Term>),
    /// `a in b`
    In(Box<Term>, Box<Term>),
    /// `a + b` and its like
    Arithmetic(char, Box<Term>, Box<Term>),
    /// `true`, `false`
    Bool(bool),
    /// A whole number
    Int(i64),
    /// A number with a fraction, as it is shown.
    Decimal(String),
    /// `"text"`
    Text(String),
    /// `["a", "b"]`
    List(Vec<Term>),
    /// A fact: its text without blanks, and the arguments of the calls in it.
    Fact(String, Vec<Term>),
    /// `if c { a } else { b }` and whatever has no form of its own; its parts.
    Other(Vec<Term>),
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

impl Relation {
    fn find(text: &str) -> Option<Self> {
        Some(match text {
            "==" => Self::Equal,
            "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::AtMost,
            ">" => Self::Greater,
            ">=" => Self::AtLeast,
            _ => return None,
        })
    }

    /// How it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        }
    }

    /// What holds exactly where this does not.
    #[must_use]
    pub const fn negated(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::AtLeast,
            Self::AtLeast => Self::Less,
            Self::Greater => Self::AtMost,
            Self::AtMost => Self::Greater,
        }
    }

    /// The same with the sides exchanged.
    #[must_use]
    pub const fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::Greater => Self::Less,
            Self::AtMost => Self::AtLeast,
            Self::AtLeast => Self::AtMost,
            same @ (Self::Equal | Self::NotEqual) => same,
        }
    }
}

impl Term {
    /// The text of an expression as a tree, unless it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Rc<Self>> {
        lately::read(text).ok()?.term(|expr| reader::read(expr, text))
    }

    /// The parts of this part, in the order they are written.
    #[must_use]
    pub fn parts(&self) -> Vec<&Self> {
        let mut parts = Vec::new();
        self.each(&mut |it| parts.push(it));
        parts
    }

    /// Calls `look` with this part and every part below it, outermost first.
    pub fn visit<'t>(&'t self, look: &mut impl FnMut(&'t Self)) {
        look(self);
        self.each(&mut |it| it.visit(look));
    }

    /// Calls `look` with each part of this part.
    fn each<'t>(&'t self, look: &mut dyn FnMut(&'t Self)) {
        match &self.form {
            Form::And(items)
            | Form::Or(items)
            | Form::List(items)
            | Form::Other(items)
            | Form::Fact(_, items) => items.iter().for_each(look),
            Form::Not(one) => look(one),
            Form::Compare(_, one, other)
            | Form::In(one, other)
            | Form::Arithmetic(_, one, other) => {
                look(one);
                look(other);
            }
            Form::Bool(_) | Form::Int(_) | Form::Decimal(_) | Form::Text(_) => {}
        }
    }

    /// A fact among these without which the condition never holds, by its path: one of what `&&` joins, or of each
    /// that `||` joins. A fact that stands in a comparison is none: that may hold of nothing, too.
    pub fn needs<'t>(&'t self, is_such: &impl Fn(&str) -> bool) -> Option<&'t str> {
        if let Form::And(items) = &self.form {
            items.iter().find_map(|it| it.needs(is_such))
        } else if let Form::Or(items) = &self.form {
            let of_each: Option<Vec<&str>> = items.iter().map(|it| it.needs(is_such)).collect();
            of_each?.first().copied()
        } else if let Form::Fact(path, _) = &self.form {
            is_such(path).then_some(path.as_str())
        } else {
            None
        }
    }

    /// Its text without blanks and parentheses around parts: equal texts mean the same.
    #[must_use]
    pub fn canonical(&self) -> Cow<'_, str> {
        let joined = |items: &[Self], between: &str| {
            let texts: Vec<_> = items.iter().map(Self::canonical).collect();
            format!("({})", texts.join(between))
        };
        let made = match &self.form {
            Form::And(items) => joined(items, "&&"),
            Form::Or(items) => joined(items, "||"),
            Form::List(items) => joined(items, ","),
            Form::Other(items) => format!("if{}", joined(items, ";")),
            Form::Not(one) => format!("!{}", one.canonical()),
            Form::Compare(relation, one, other) => {
                format!("({}{}{})", one.canonical(), relation.as_str(), other.canonical())
            }
            Form::In(one, other) => format!("({} in {})", one.canonical(), other.canonical()),
            Form::Arithmetic(sign, one, other) => {
                format!("({}{sign}{})", one.canonical(), other.canonical())
            }
            Form::Bool(value) => value.to_string(),
            Form::Int(value) => value.to_string(),
            Form::Text(text) => format!("{text:?}"),
            Form::Decimal(text) | Form::Fact(text, _) => return Cow::Borrowed(text),
        };
        Cow::Owned(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every part with the text it covers, outermost first.
    fn parts(text: &str) -> Vec<&str> {
        let term = Term::parse(text).unwrap();
        let mut found = Vec::new();
        term.visit(&mut |it| found.push(it.range.clone()));
        found.into_iter().map(|range| text.get(range).unwrap()).collect()
    }

    #[test]
    fn every_part_covers_what_it_was_written_with() {
        assert_eq!(
            parts("!(todos.open == 0) && (files.count > -1 || \"a)\" in [\"b\", session.branch])"),
            [
                "!(todos.open == 0) && (files.count > -1 || \"a)\" in [\"b\", session.branch])",
                "!(todos.open == 0)",
                "todos.open == 0",
                "todos.open",
                "0",
                "files.count > -1 || \"a)\" in [\"b\", session.branch]",
                "files.count > -1",
                "files.count",
                "-1",
                "\"a)\" in [\"b\", session.branch]",
                "\"a)\"",
                "[\"b\", session.branch]",
                "\"b\"",
                "session.branch",
            ]
        );
        assert_eq!(
            parts("commands.last(\"a \\\" (\") . text.matches(session.branch + \"x\")"),
            [
                "commands.last(\"a \\\" (\") . text.matches(session.branch + \"x\")",
                "\"a \\\" (\"",
                "session.branch + \"x\"",
                "session.branch",
                "\"x\"",
            ]
        );
    }

    #[test]
    fn what_is_named_in_brackets_is_one_fact() {
        let text = "!breakers[ \"a.b\" ].open && breakers[\"x\" + session.branch].failures > 1";
        assert_eq!(
            parts(text)[1..],
            [
                "!breakers[ \"a.b\" ].open",
                "breakers[ \"a.b\" ].open",
                "\"a.b\"",
                "breakers[\"x\" + session.branch].failures > 1",
                "breakers[\"x\" + session.branch].failures",
                "\"x\" + session.branch",
                "\"x\"",
                "session.branch",
                "1",
            ]
        );
        let term = Term::parse(text).unwrap();
        let Form::And(items) = &term.form else { unreachable!() };
        assert_eq!(items[0].canonical(), "!breakers[\"a.b\"].open");
    }

    #[test]
    fn a_row_of_conjunctions_is_one() {
        let texts = ["a && b && (c && d) && e", "a && (b && (c && d))", "(a && b) && c && (d)"];
        for text in texts {
            let term = Term::parse(text).unwrap();
            let conjunction = matches!(&term.form, Form::And(items) if items.len() >= 4);
            assert!(conjunction && parts(text)[0] == text, "{text}: {term:?}");
        }
    }

    #[test]
    fn a_conditional_covers_its_branches() {
        let text = "if todos.open > 0 { \"a\" } else if files.count > 0 { \"b\" } else { \"c\" }";
        assert_eq!(parts(text)[0], text);
        assert_eq!(parts("if a { b } else { c } ")[0], "if a { b } else { c }");
    }

    #[test]
    fn equal_meanings_have_equal_canonical_texts() {
        let canonical = |text: &str| Term::parse(text).unwrap().canonical().into_owned();
        assert_eq!(canonical("( a.b==1 )&&c"), canonical("a . b == 1 && (c)"));
        assert_ne!(canonical("a == 1"), canonical("a == 2"));
    }
}
