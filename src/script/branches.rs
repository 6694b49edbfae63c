//! The boolean skeleton of an expression: which operands `&&` and `||` join, and where each stands.
//! May not live here: values.

use std::ops::Range;

use super::tree::{Form, Term};

/// An expression, or a part of one that is true or false on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Where it stands, in bytes of the expression, parentheses around it left out.
    pub range: Range<usize>,
    /// What joins its operands; nothing where it has none.
    pub join: Option<Join>,
    /// Its operands. Of `!(a && b)` they are `a` and `b`.
    pub operands: Vec<Branch>,
    /// Whether it is `true` or `false` as it is written, and never anything else.
    pub fixed: bool,
}

/// What joins operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// `&&`
    And,
    /// `||`
    Or,
}

impl Branch {
    /// The skeleton of an expression that passed the load-time checks.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let whole =
            || Self { range: 0..text.len(), join: None, operands: Vec::new(), fixed: false };
        Term::parse(text).map_or_else(whole, |term| branch(&term))
    }

    /// The parts that are joined with no other: `a`, `b` and `c` of `a && (b || c)`. An expression
    /// without operators is one itself.
    #[must_use]
    pub fn leaves(&self) -> Vec<&Self> {
        if self.operands.is_empty() {
            return vec![self];
        }
        self.operands.iter().flat_map(Self::leaves).collect()
    }
}

fn branch(term: &Term) -> Branch {
    let mut inner = term;
    // `!` around a joined part changes nothing about its operands.
    while let Form::Not(one) = &inner.form {
        inner = one;
    }
    let (join, items) = match &inner.form {
        Form::And(items) => (Some(Join::And), items.as_slice()),
        Form::Or(items) => (Some(Join::Or), items.as_slice()),
        Form::Not(_)
        | Form::Compare(..)
        | Form::In(..)
        | Form::Arithmetic(..)
        | Form::Bool(_)
        | Form::Int(_)
        | Form::Decimal(_)
        | Form::Text(_)
        | Form::List(_)
        | Form::Fact(..)
        | Form::Other(_) => (None, [].as_slice()),
    };
    let operands = items.iter().map(branch).collect();
    let fixed = matches!(inner.form, Form::Bool(_));
    Branch { range: term.range.clone(), join, operands, fixed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_found_within_parentheses_and_negations() {
        for (text, expected) in [
            ("a", vec!["a"]),
            ("a && b", vec!["a", "b"]),
            ("a || b && c", vec!["a", "b", "c"]),
            ("!(a && (b || !c)) || d", vec!["a", "b", "!c", "d"]),
            ("((a))", vec!["a"]),
            ("(a || b) && (c || d)", vec!["a", "b", "c", "d"]),
            (r#"x.f("a && b") && y == "||""#, vec![r#"x.f("a && b")"#, r#"y == "||""#]),
            (r#"x.matches("\"&&") || !y"#, vec![r#"x.matches("\"&&")"#, "!y"]),
            ("a != b && !c", vec!["a != b", "!c"]),
            (r#"a in ["x && y", "z"]"#, vec![r#"a in ["x && y", "z"]"#]),
            ("a\n  && b\n  || c", vec!["a", "b", "c"]),
        ] {
            let skeleton = Branch::of(text);
            let leaves: Vec<&str> =
                skeleton.leaves().into_iter().filter_map(|it| text.get(it.range.clone())).collect();
            assert_eq!(leaves, expected, "{text}");
        }
    }

    #[test]
    fn the_weaker_operator_joins_first() {
        let found = Branch::of("a && b || c");
        assert_eq!(found.join, Some(Join::Or));
        assert_eq!(found.operands[0].join, Some(Join::And));
    }

    #[test]
    fn what_is_always_the_same_is_known() {
        assert!(Branch::of("true").fixed);
        assert!(Branch::of("!false").fixed);
        assert!(!Branch::of("a || true").fixed);
        assert!(Branch::of("a || true").operands[1].fixed);
    }
}
