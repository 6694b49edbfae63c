//! Reads the tree of an expression: which bytes each part was written with.

use std::borrow::Cow;
use std::ops::Range;

use rhai::{Expr, FnCallExpr, Position, Stmt};

use super::{Form, Relation, Term};
use crate::script::engine::{byte_offset, in_brackets};
use crate::script::tokens::token_length;

/// The tree of an expression that was read by Rhai; nothing where a comment stands in it.
pub(super) fn read(expr: &Expr, text: &str) -> Option<Term> {
    let tokens = tokens(text);
    if text.contains('/') && tokens.windows(2).any(|it| is_comment(text, it)) {
        return None;
    }
    let reader = Reader { text, tokens: &tokens };
    let mut term = reader.term(expr)?;
    term.outer = reader.with_parentheses(term.range.clone());
    Some(term)
}

/// Whether two tokens begin a comment.
fn is_comment(text: &str, tokens: &[Range<usize>]) -> bool {
    let [one, other] = tokens else { return false };
    one.end == other.start && matches!(text.get(one.start..other.end), Some("//" | "/*"))
}

/// Operators of two characters.
const PAIRS: [&str; 6] = ["==", "!=", "<=", ">=", "&&", "||"];

/// The tokens of a text, as byte ranges.
fn tokens(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(rest) = text.get(at..)
        && let Some(first) = rest.chars().next()
    {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let is_sign = first.is_ascii_punctuation() && !matches!(first, '_' | '"' | '`');
        let length = match is_sign {
            true => PAIRS.iter().find(|it| rest.starts_with(**it)).map_or(1, |it| it.len()),
            false => token_length(rest).max(1),
        };
        found.push(at..at + length);
        at += length;
    }
    found
}

/// A token, a text in backticks as it is written in quotes: what is looked for in a path is written so.
fn in_quotes(token: &str) -> Cow<'_, str> {
    match token.strip_prefix('`').and_then(|it| it.strip_suffix('`')) {
        Some(inside) => format!("{:?}", inside.replace("``", "`")).into(),
        None => token.into(),
    }
}

struct Reader<'a> {
    text: &'a str,
    tokens: &'a [Range<usize>],
}

impl Reader<'_> {
    fn slice(&self, range: &Range<usize>) -> &str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    fn token(&self, at: usize) -> &str {
        self.tokens.get(at).map(|it| self.slice(it)).unwrap_or_default()
    }

    /// Number of the token that holds a byte.
    fn index(&self, byte: usize) -> Option<usize> {
        self.tokens.iter().position(|it| it.contains(&byte))
    }

    fn at(&self, position: Position) -> Option<usize> {
        self.index(byte_offset(self.text, position)?)
    }

    /// Number of the token that closes the bracket at `open`.
    fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for (at, _) in self.tokens.iter().enumerate().skip(open) {
            match self.token(at) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Some(at);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The bytes from one token to another.
    fn between(&self, first: usize, last: usize) -> Option<Range<usize>> {
        Some(self.tokens.get(first)?.start..self.tokens.get(last)?.end)
    }

    /// `range` with the parentheses that stand around it and nothing else.
    fn with_parentheses(&self, mut range: Range<usize>) -> Range<usize> {
        loop {
            let last = range.end.checked_sub(1).and_then(|it| self.index(it));
            let (Some(first), Some(last)) = (self.index(range.start), last) else { return range };
            let Some(open) = first.checked_sub(1) else { return range };
            let calls = open.checked_sub(1).is_some_and(|it| self.is_name(it));
            if calls || self.token(open) != "(" || self.token(last + 1) != ")" {
                return range;
            }
            let Some(wider) = self.between(open, last + 1) else { return range };
            range = wider;
        }
    }

    /// `range` with the ends of the parentheses that open in it and the beginnings of those that
    /// close in it: `a && (b && c)` is one conjunction of three.
    fn balanced(&self, range: Range<usize>) -> Option<Range<usize>> {
        let (mut first, mut last) =
            (self.index(range.start)?, self.index(range.end.checked_sub(1)?)?);
        let (mut open, mut at) = (0_usize, first);
        while at <= last || (open > 0 && at < self.tokens.len()) {
            match self.token(at) {
                "(" => open += 1,
                ")" if open > 0 => open -= 1,
                ")" => first = (0..first).rev().find(|it| self.token(*it) == "(")?,
                _ => {}
            }
            last = last.max(at);
            at += 1;
        }
        self.between(first, last)
    }

    /// Whether a token is a name that could be called.
    fn is_name(&self, at: usize) -> bool {
        let word = self.token(at);
        word.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && !matches!(word, "in" | "if" | "else")
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "Rhai has more forms than the language allows"
    )]
    fn term(&self, expr: &Expr) -> Option<Term> {
        let at = self.at(expr.start_position());
        let own = |at: Option<usize>| at.and_then(|it| self.tokens.get(it)).cloned();
        let (form, range) = match expr {
            Expr::BoolConstant(value, _) => (Form::Bool(*value), own(at)?),
            Expr::StringConstant(text, _) => (Form::Text(text.to_string()), own(at)?),
            Expr::IntegerConstant(value, _) => {
                let last = at? + usize::from(self.token(at?) == "-");
                (Form::Int(*value), self.between(at?, last)?)
            }
            Expr::FloatConstant(value, _) => {
                let last = at? + usize::from(self.token(at?) == "-");
                (Form::Decimal(value.to_string()), self.between(at?, last)?)
            }
            Expr::Array(items, _) => {
                let items = items.iter().map(|it| self.term(it)).collect::<Option<Vec<_>>>()?;
                (Form::List(items), self.between(at?, self.closing(at?)?)?)
            }
            Expr::And(items, _) | Expr::Or(items, _) => {
                let items = items.iter().map(|it| self.term(it)).collect::<Option<Vec<_>>>()?;
                let range = self.balanced(items.first()?.outer.start..items.last()?.outer.end)?;
                let form =
                    if matches!(expr, Expr::And(..)) { Form::And(items) } else { Form::Or(items) };
                (form, range)
            }
            Expr::FnCall(call, position) => self.operator(call, *position)?,
            Expr::Variable(..) | Expr::Dot(..) | Expr::Index(..) => self.fact(expr, at?)?,
            Expr::Stmt(block) => self.conditional(block.statements())?,
            _ => return None,
        };
        let outer = self.with_parentheses(range.clone());
        Some(Term { form, range, outer })
    }

    fn operator(&self, call: &FnCallExpr, position: Position) -> Option<(Form, Range<usize>)> {
        let arguments = call.args.iter().map(|it| self.term(it)).collect::<Option<Vec<_>>>()?;
        let mut arguments = arguments.into_iter();
        let (one, other) = (Box::new(arguments.next()?), arguments.next().map(Box::new));
        let Some(other) = other else {
            let range = byte_offset(self.text, position)?..one.outer.end;
            let form = if call.name == "!" { Form::Not(one) } else { Form::Other(vec![*one]) };
            return Some((form, range));
        };
        // `item in list` is a call with the list first.
        if call.name == "contains" {
            if self.token(self.at(position)?) == "contains" {
                return None; // It is written as a call.
            }
            let range = other.outer.start..one.outer.end;
            return Some((Form::In(other, one), range));
        }
        let range = one.outer.start..other.outer.end;
        if let Some(relation) = Relation::find(&call.name) {
            return Some((Form::Compare(relation, one, other), range));
        }
        let sign = call.name.chars().next()?;
        Some((Form::Arithmetic(sign, one, other), range))
    }

    /// A dotted chain: names and calls from its first token on.
    fn fact(&self, expr: &Expr, first: usize) -> Option<(Form, Range<usize>)> {
        if let Expr::Dot(chain, ..) = expr
            && !matches!(chain.lhs, Expr::Variable(..))
        {
            // `list.contains(item)` says `item in list`.
            if let (Expr::Array(..), Expr::MethodCall(call, _)) = (&chain.lhs, &chain.rhs)
                && let ("contains", [item]) = (call.name.as_str(), call.args.as_slice())
            {
                let (item, list) = (self.term(item)?, self.term(&chain.lhs)?);
                let last = self.closing(self.closing(first)? + 3)?;
                let range = self.between(first, last)?;
                return Some((Form::In(Box::new(item), Box::new(list)), range));
            }
            return None; // It begins with a list or in parentheses, and has no name.
        }
        let mut last = first;
        loop {
            if matches!(self.token(last + 1), "(" | "[") {
                last = self.closing(last + 1)?;
            }
            if self.token(last + 1) != "." {
                break;
            }
            last += 2;
        }
        let mut arguments = Vec::new();
        self.arguments(expr, &mut arguments)?;
        let path: String = (first..=last).map(|it| in_quotes(self.token(it))).collect();
        Some((Form::Fact(path, arguments), self.between(first, last)?))
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "Rhai has more forms than the language allows"
    )]
    fn arguments(&self, expr: &Expr, found: &mut Vec<Term>) -> Option<()> {
        match expr {
            Expr::Dot(chain, ..) => {
                self.arguments(&chain.lhs, found)?;
                self.arguments(&chain.rhs, found)
            }
            Expr::Index(chain, ..) => {
                self.arguments(&chain.lhs, found)?;
                let (key, rest) = in_brackets(&chain.rhs);
                found.push(self.term(key)?);
                rest.map_or(Some(()), |rest| self.arguments(rest, found))
            }
            Expr::MethodCall(call, _) => {
                for argument in &call.args {
                    found.push(self.term(argument)?);
                }
                Some(())
            }
            _ => Some(()),
        }
    }

    fn conditional(&self, statements: &[Stmt]) -> Option<(Form, Range<usize>)> {
        let [Stmt::If(flow, position)] = statements else { return None };
        let mut parts = vec![self.term(&flow.expr)?];
        for body in [flow.body.statements(), flow.branch.statements()] {
            match body {
                [Stmt::Expr(expr)] => parts.push(self.term(expr)?),
                [Stmt::FnCall(call, position)] => {
                    let (form, range) = self.operator(call, *position)?;
                    parts.push(Term { form, outer: range.clone(), range });
                }
                nested => {
                    let (form, range) = self.conditional(nested)?;
                    parts.push(Term { form, outer: range.clone(), range });
                }
            }
        }
        let start = byte_offset(self.text, *position)?;
        let end = self.index(parts.last()?.outer.end.checked_sub(1)?)?;
        let close = (end..self.tokens.len()).find(|it| self.token(*it) == "}")?;
        Some((Form::Other(parts), start..self.tokens.get(close)?.end))
    }
}
