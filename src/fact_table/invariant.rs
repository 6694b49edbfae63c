//! What a row of the table says of its fact and of another one, whatever happens in a session.

use super::ast::{Expr, ExprKind, Relation as Operator};

/// Something that is always true of a fact and of another member, which it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invariant {
    /// The fact is so, another member of its owner is so, or both.
    Either(Is, &'static str, Is),
    /// The fact is at most another member of its owner.
    AtMost(&'static str),
    /// The fact is at most this member of the whole, if its owner is a part of one: `files.kind("code")` of `files`.
    AtMostOfWhole(&'static str),
    /// If the fact is true, the function of this name is true for the same argument.
    Implies(&'static str),
}

/// How a fact can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Is {
    /// True.
    True,
    /// False.
    False,
    /// 0.
    Zero,
    /// Another number than 0.
    NotZero,
    /// A number above 0.
    Positive,
    /// The empty text.
    Empty,
}

impl Is {
    /// The condition that a fact is so.
    pub(super) fn of(self, fact: &Expr) -> Expr {
        let compared = |operator, value| {
            let value = Expr::new(value, fact.range.clone());
            ExprKind::Compare(operator, Box::new(fact.clone()), Box::new(value))
        };
        let kind = match self {
            Self::True => return fact.clone(),
            Self::False => ExprKind::Not(Box::new(fact.clone())),
            Self::Zero => compared(Operator::Equal, ExprKind::Int(0)),
            Self::NotZero => compared(Operator::NotEqual, ExprKind::Int(0)),
            Self::Positive => compared(Operator::Greater, ExprKind::Int(0)),
            Self::Empty => compared(Operator::Equal, ExprKind::Text(String::new())),
        };
        Expr::new(kind, fact.range.clone())
    }
}
