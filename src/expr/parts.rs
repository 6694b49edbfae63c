//! The parts of an expression that have a value of their own, with their places in its text and whether they are
//! reached: `&&`, `||`, and `if` do not evaluate the rest once the result is known.

use std::ops::Range;

use super::ast::{Expr, ExprKind, MemberAccess, Path};
use super::table::{FactTable, Handle};
use super::types::Type;
use super::value::Value;
use super::{Evaluator, ScriptError};
use crate::limits;

/// A part of an expression and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Where it begins, in bytes of the expression.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
    /// The byte under which its value is shown: the operator, or the last name of a path.
    pub at: usize,
    /// The result.
    pub found: PartValue,
}

/// The result of a part of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartValue {
    /// The value.
    Value(Value),
    /// The part could not be evaluated.
    Failed(ScriptError),
    /// The result was known before the part.
    NotReached,
}

impl std::fmt::Display for PartValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(value) => value.fmt(f),
            Self::Failed(error) => write!(f, "<{error}>"),
            Self::NotReached => f.write_str("not reached"),
        }
    }
}

/// Returns the parts of an expression with their values, innermost first, the whole last. Of an expression with more
/// than `EXPLAINED_PARTS_MAX` parts, it returns the last ones.
pub(super) fn explain<H: Handle>(evaluator: &mut Evaluator<H>, text: &str) -> Vec<Part> {
    let tree = Expr::of_text(text);
    let mut explanation = PartsExplanation { evaluator, text, parts: Vec::new() };
    explanation.visit(&tree, true);
    // Blanks and parentheses around the whole belong to the last part.
    let at = explanation.parts.pop().map_or(0, |it| it.at);
    explanation.push(0..text.len(), at, true);
    let mut parts = explanation.parts;
    parts.drain(..parts.len().saturating_sub(limits::EXPLAINED_PARTS_MAX));
    parts
}

struct PartsExplanation<'e, H: Handle> {
    evaluator: &'e mut Evaluator<H>,
    text: &'e str,
    parts: Vec<Part>,
}

impl<H: Handle> PartsExplanation<'_, H> {
    /// Adds the parts of `expr` and then `expr` itself, if its value can be shown. Returns whether it is true or
    /// false.
    fn visit(&mut self, expr: &Expr, reached: bool) -> Option<bool> {
        let at = expr.operator(self.text).unwrap_or(expr.range.start);
        match &expr.kind {
            ExprKind::And(items) => self.operands(items, false, reached),
            ExprKind::Or(items) => self.operands(items, true, reached),
            ExprKind::Not(one) if one.range == expr.range => {
                // Of `a !in b`, the negation is one part.
                self.all(one.parts().into_iter().rev(), reached);
            }
            ExprKind::In(one, other) => {
                self.all([&**other, &**one], reached);
            }
            ExprKind::If(parts) => {
                let [condition, one, other] = parts.as_ref();
                let choice = self.visit(condition, reached);
                self.visit(one, reached && choice == Some(true));
                self.visit(other, reached && choice == Some(false));
            }
            ExprKind::Fact(path, arguments) => {
                let global = H::TABLE.find(Type::Global, path.name());
                let owner = global.map_or(Type::Any, |it| it.result);
                return self.path(expr.range.start, owner, (path, arguments), reached);
            }
            ExprKind::Member(base, path, arguments) => {
                self.visit(base, reached);
                let is_list = matches!(base.kind, ExprKind::List(_));
                let owner = if is_list { Type::Texts } else { Type::Text };
                return self.path(expr.range.start, owner, (path, arguments), reached);
            }
            ExprKind::List(items) => {
                return self.all(items, reached);
            }
            ExprKind::Bool(_) | ExprKind::Int(_) | ExprKind::Decimal(_) | ExprKind::Text(_) => {
                return None;
            }
            ExprKind::Not(_)
            | ExprKind::Negative(_)
            | ExprKind::Compare(..)
            | ExprKind::Arithmetic(..)
            | ExprKind::Other(..) => {
                self.all(expr.parts(), reached);
            }
        }
        self.push(expr.range.clone(), at, reached)
    }

    /// Visits parts one after the other. Returns whether the last one is true or false.
    fn all<'p>(
        &mut self,
        parts: impl IntoIterator<Item = &'p Expr>,
        reached: bool,
    ) -> Option<bool> {
        parts.into_iter().map(|it| self.visit(it, reached)).last().flatten()
    }

    /// The operands of `&&` or `||`, up to the first one with the value `last`.
    fn operands(&mut self, items: &[Expr], last: bool, reached: bool) {
        let mut reached = reached;
        for item in items {
            // `true` and `false` decide as well.
            let value = if matches!(item.kind, ExprKind::Bool(_)) {
                self.push(item.range.clone(), item.range.start, reached)
            } else {
                self.visit(item, reached)
            };
            reached = reached && value == Some(!last);
        }
    }

    /// The members of a path of which a value can be shown, each from `start` on.
    fn path(
        &mut self,
        start: usize,
        owner: Type,
        (path, arguments): (&Path, &[Expr]),
        reached: bool,
    ) -> Option<bool> {
        let (mut owner, mut rest, mut value) = (owner, arguments, None);
        let mut steps = path.steps().iter().peekable();
        while let Some(step) = steps.next() {
            let (own, others) = rest.split_at_checked(step.arguments())?;
            rest = others;
            value = self.all(own, reached).or(value);
            owner = match step.access {
                MemberAccess::Item => H::TABLE.items().result,
                MemberAccess::Field | MemberAccess::Call(_) => {
                    member_type(H::TABLE, owner, path.member(step))
                }
            };
            let is_last = steps.peek().is_none() && step.access != MemberAccess::Item;
            if owner.is_shown() || (is_last && owner == Type::Any) {
                let range = step.range.start as usize..step.range.end as usize;
                value = self.push(start..range.end, range.start, reached);
            }
        }
        value
    }

    /// Adds a part. Returns whether it is true or false.
    fn push(&mut self, range: Range<usize>, at: usize, reached: bool) -> Option<bool> {
        let Range { start, end } = range;
        let found = match self.text.get(start..end).filter(|_| reached) {
            None => PartValue::NotReached,
            Some(part) => {
                self.evaluator.value(part.into()).map_or_else(PartValue::Failed, PartValue::Value)
            }
        };
        let value =
            if let PartValue::Value(Value::Bool(value)) = found { Some(value) } else { None };
        self.parts.push(Part { start, end, at, found });
        value
    }
}

fn member_type(table: &dyn FactTable, owner: Type, name: &str) -> Type {
    let row = table.find(owner, name).map(|it| it.result);
    row.or_else(|| table.named_members(owner).map(|it| it.result)).unwrap_or(Type::Any)
}
