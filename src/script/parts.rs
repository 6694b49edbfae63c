//! The parts of an expression that have a value of their own, with their places in its text and
//! whether they are reached: `&&`, `||` and `if` leave the rest alone once the answer is known.

use std::ops::Range;

use rhai::{Engine, Expr, FnCallExpr, Stmt, Token};

use super::engine::{byte_offset, compile, in_brackets};
use super::members;
use super::tokens::token_length;
use super::types::Type;
use super::{Evaluator, ScriptError, Value};
use crate::limits;

/// A part of an expression and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Where it begins, in bytes of the expression.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
    /// The byte its value stands under: the operator, or the last name of a chain.
    pub at: usize,
    /// What became of it.
    pub found: Found,
}

/// What became of a part of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It has this value.
    Value(Value),
    /// It could not be evaluated.
    Failed(ScriptError),
    /// The answer was known before it was looked at.
    NotReached,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(value) => value.fmt(f),
            Self::Failed(error) => write!(f, "<{error}>"),
            Self::NotReached => f.write_str("not reached"),
        }
    }
}

/// The parts of `text` with their values, innermost first, the whole last; of an expression with
/// more than `EXPLAINED_PARTS_MAX` the last ones, the whole among them.
pub(super) fn explain(evaluator: &mut Evaluator, text: &str) -> Vec<Part> {
    let whole = Piece { range: 0..text.len(), at: 0, order: Order::All, groups: Vec::new() };
    let mut pieces = pieces(&evaluator.engine, text).unwrap_or_default();
    if pieces.is_empty() {
        pieces.push(whole);
    }
    let mut parts = Vec::new();
    visit_all(evaluator, text, &pieces, true, &mut parts);
    parts.drain(..parts.len().saturating_sub(limits::EXPLAINED_PARTS_MAX));
    parts
}

/// A part before it is evaluated.
#[derive(Debug)]
struct Piece {
    range: Range<usize>,
    at: usize,
    order: Order,
    /// What it is made of: one group for each operand.
    groups: Vec<Vec<Piece>>,
}

/// Which of its operands a piece looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Every one.
    All,
    /// One after the other, up to the first that has this value.
    Until(bool),
    /// The first, then the second or the third.
    Choice,
}

fn visit_all(
    evaluator: &mut Evaluator,
    text: &str,
    pieces: &[Piece],
    reached: bool,
    parts: &mut Vec<Part>,
) -> Option<bool> {
    pieces.iter().map(|it| visit(evaluator, text, it, reached, parts)).last().flatten()
}

/// Takes in a piece after what it is made of; says whether it is true or false.
fn visit(
    evaluator: &mut Evaluator,
    text: &str,
    piece: &Piece,
    reached: bool,
    parts: &mut Vec<Part>,
) -> Option<bool> {
    let mut open = reached;
    let mut choice = None;
    for (index, group) in piece.groups.iter().enumerate() {
        let looked_at = match (piece.order, index) {
            (Order::Choice, 1) => open && choice == Some(true),
            (Order::Choice, 2) => open && choice == Some(false),
            (Order::All | Order::Until(_) | Order::Choice, _) => open,
        };
        let value = visit_all(evaluator, text, group, looked_at, parts);
        match piece.order {
            Order::All => {}
            Order::Until(last) => open = open && value == Some(!last),
            Order::Choice if index == 0 => choice = value,
            Order::Choice => {}
        }
    }
    let Range { start, end } = piece.range;
    let found = match text.get(start..end).filter(|_| reached) {
        None => Found::NotReached,
        Some(part) => evaluator.value(part.into()).map_or_else(Found::Failed, Found::Value),
    };
    let value = if let Found::Value(Value::Bool(value)) = found { Some(value) } else { None };
    parts.push(Part { start, end, at: piece.at, found });
    value
}

/// What an expression is made of; nothing where its text cannot be read.
fn pieces(engine: &Engine, text: &str) -> Option<Vec<Piece>> {
    let ast = compile(engine, text).ok()?;
    let reader = Reader { text, tokens: tokens(engine, text) };
    let [statement] = ast.statements() else { return None };
    let mut pieces = reader.statement(statement)?.pieces;
    let whole = pieces.pop()?;
    // Brackets and blanks around the whole belong to it.
    pieces.push(Piece { range: 0..text.len(), ..whole });
    Some(pieces)
}

/// A token and, of a bracket, the place of its partner among the tokens.
struct Lexeme {
    range: Range<usize>,
    partner: Option<usize>,
}

fn tokens(engine: &Engine, text: &str) -> Vec<Lexeme> {
    let (mut found, mut open): (Vec<Lexeme>, Vec<usize>) = (Vec::new(), Vec::new());
    let inputs = [text];
    let (stream, _control) = engine.lex(&inputs);
    for (token, position) in stream.take_while(|(token, _)| *token != Token::EOF) {
        let Some(start) = byte_offset(text, position) else { continue };
        let opens = matches!(token, Token::LeftParen | Token::LeftBracket | Token::LeftBrace);
        let closes = matches!(token, Token::RightParen | Token::RightBracket | Token::RightBrace);
        let rest = text.get(start..).unwrap_or_default();
        let length = if token == Token::Unit {
            2 // `()`
        } else {
            token_length(rest)
        };
        let mut lexeme = Lexeme { range: start..start.saturating_add(length), partner: None };
        let index = found.len();
        if opens {
            open.push(index);
        } else if closes {
            lexeme.partner = open.pop();
            if let Some(other) = lexeme.partner.and_then(|it| found.get_mut(it)) {
                other.partner = Some(index);
            }
        }
        found.push(lexeme);
    }
    found
}

/// An operand: the text it covers, and its parts with the operand itself at the end.
struct Operand {
    range: Range<usize>,
    pieces: Vec<Piece>,
}

struct Reader<'t> {
    text: &'t str,
    tokens: Vec<Lexeme>,
}

impl Reader<'_> {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "Rhai has more forms than the language allows"
    )]
    fn statement(&self, statement: &Stmt) -> Option<Operand> {
        match statement {
            Stmt::Expr(expr) => self.operand(expr),
            Stmt::FnCall(call, position) => self.operator(call, byte_offset(self.text, *position)?),
            Stmt::If(flow, position) => {
                let at = byte_offset(self.text, *position)?;
                let [one] = flow.body.statements() else { return None };
                let [other] = flow.branch.statements() else { return None };
                let operands =
                    [self.operand(&flow.expr)?, self.statement(one)?, self.statement(other)?];
                Some(self.joined(at, Order::Choice, operands.into()))
            }
            _ => None,
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "Rhai has more forms than the language allows"
    )]
    fn operand(&self, expr: &Expr) -> Option<Operand> {
        match expr {
            Expr::And(items, position) | Expr::Or(items, position) => {
                let last = matches!(expr, Expr::Or(..));
                let at = byte_offset(self.text, *position)?;
                let items = items.iter().map(|it| self.side(it)).collect::<Option<Vec<_>>>()?;
                Some(self.joined(at, Order::Until(last), items))
            }
            Expr::FnCall(call, position) => self.operator(call, byte_offset(self.text, *position)?),
            Expr::Dot(chain, ..) => {
                let base = self.operand(&chain.lhs)?;
                self.steps(base, base_type(&chain.lhs), Some(&chain.rhs))
            }
            Expr::Index(chain, ..) => {
                let mut base = self.operand(&chain.lhs)?;
                let (key, rest) = in_brackets(&chain.rhs);
                base.pieces.extend(self.operand(key)?.pieces);
                base.range.end = self.token_after(base.range.end)?.end;
                self.steps(self.balanced(base), Type::Breaker, rest)
            }
            Expr::Stmt(block) => {
                let [statement] = block.statements() else { return None };
                self.statement(statement)
            }
            Expr::Array(items, position) => {
                let start = byte_offset(self.text, *position)?;
                let items = items.iter().map(|it| self.operand(it)).collect::<Option<Vec<_>>>()?;
                let pieces = items.into_iter().flat_map(|it| it.pieces).collect();
                Some(Operand { range: self.token(start)?, pieces }).map(|it| self.balanced(it))
            }
            _ => {
                let range = self.token(byte_offset(self.text, expr.start_position())?)?;
                Some(Operand { range, pieces: Vec::new() })
            }
        }
    }

    /// One side of `&&` or `||`: a plain `true` or `false` decides, too.
    fn side(&self, expr: &Expr) -> Option<Operand> {
        let mut side = self.operand(expr)?;
        if matches!(expr, Expr::BoolConstant(..)) {
            let (range, at) = (side.range.clone(), side.range.start);
            side.pieces.push(Piece { range, at, order: Order::All, groups: Vec::new() });
        }
        Some(side)
    }

    /// An operator with what stands beside it.
    fn operator(&self, call: &FnCallExpr, at: usize) -> Option<Operand> {
        // `a !in b` is a `!` and an `in` at one place.
        let negated = match call.args.as_slice() {
            [Expr::FnCall(inner, position)] if byte_offset(self.text, *position) == Some(at) => {
                Some(inner)
            }
            _ => None,
        };
        let args = &negated.map_or(call, |it| it).args;
        let operands = args.iter().map(|it| self.operand(it)).collect::<Option<Vec<_>>>()?;
        Some(self.joined(at, Order::All, operands))
    }

    /// The piece that `operands` and the token at `at` form.
    fn joined(&self, at: usize, order: Order, operands: Vec<Operand>) -> Operand {
        let own = self.token(at).unwrap_or(at..at);
        let bounds = operands.iter().map(|it| &it.range);
        let start = bounds.clone().map(|it| it.start).fold(own.start, usize::min);
        let end = bounds.map(|it| it.end).fold(own.end, usize::max);
        let mut whole = self.balanced(Operand { range: start..end, pieces: Vec::new() });
        let groups: Vec<Vec<Piece>> = operands.into_iter().map(|it| it.pieces).collect();
        let range = whole.range.clone();
        whole.pieces.push(Piece { range, at, order, groups });
        whole
    }

    /// `a.b(c).d`: each step whose value can be shown is a part.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "Rhai has more forms than the language allows"
    )]
    fn steps(&self, base: Operand, owner: Type, rest: Option<&Expr>) -> Option<Operand> {
        let Operand { mut range, mut pieces } = base;
        let (start, mut owner, mut rest) = (range.start, owner, rest);
        while let Some(step) = rest {
            let (member, next) = match step {
                Expr::Dot(chain, ..) => (&chain.lhs, Some(&chain.rhs)),
                last => (last, None),
            };
            let (name, args, position) = match member {
                Expr::Property(name, position) => (name.2.as_str(), None, position),
                Expr::MethodCall(call, position) => {
                    (call.name.as_str(), Some(&call.args), position)
                }
                _ => return None,
            };
            let at = byte_offset(self.text, *position)?;
            range = start..self.token(at)?.end;
            if let Some(args) = args {
                range.end = self.token_after(range.end)?.end;
                for arg in args {
                    pieces.extend(self.operand(arg)?.pieces);
                }
            }
            range = self.balanced(Operand { range, pieces: Vec::new() }).range;
            owner = member_type(owner, name);
            if owner.is_shown() || (next.is_none() && owner == Type::Any) {
                let groups = vec![std::mem::take(&mut pieces)];
                pieces.push(Piece { range: range.clone(), at, order: Order::All, groups });
            }
            rest = next;
        }
        Some(Operand { range, pieces })
    }

    fn token(&self, start: usize) -> Option<Range<usize>> {
        self.tokens.iter().find(|it| it.range.start == start).map(|it| it.range.clone())
    }

    fn token_after(&self, end: usize) -> Option<Range<usize>> {
        self.tokens.iter().find(|it| it.range.start >= end).map(|it| it.range.clone())
    }

    /// The operand with every bracket that it holds only one half of.
    fn balanced(&self, mut operand: Operand) -> Operand {
        let range = &mut operand.range;
        loop {
            let before = range.clone();
            for lexeme in &self.tokens {
                let inside = before.start <= lexeme.range.start && lexeme.range.end <= before.end;
                let partner = lexeme.partner.and_then(|it| self.tokens.get(it));
                if let Some(partner) = partner.filter(|_| inside) {
                    range.start = range.start.min(partner.range.start);
                    range.end = range.end.max(partner.range.end);
                }
            }
            if *range == before {
                return operand;
            }
        }
    }
}

fn base_type(base: &Expr) -> Type {
    if let Expr::Variable(name, ..) = base {
        return members::find(Type::Global, &name.1).map_or(Type::Any, |it| it.result);
    }
    if matches!(base, Expr::Array(..)) { Type::Texts } else { Type::Text }
}

fn member_type(owner: Type, name: &str) -> Type {
    match (owner, members::find(owner, name)) {
        (_, Some(row)) => row.result,
        (Type::Preferences, None) => Type::Bool,
        (Type::Probes, None) => Type::Probe,
        (_, None) => Type::Any,
    }
}
