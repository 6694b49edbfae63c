//! Parses an expression into its tree.
//! INVARIANT: what is parsed here, Rhai parses in the same way. The grammar, the precedence of operators, literals,
//! and the limit of depth follow Rhai's parser. Text that is not understood here is an error here, and Rhai decides:
//! its syntax errors are the ones that users see.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use rhai::FloatWrapper;

use super::ast::{Expr, ExprKind, Foreign, MemberAccess, Path, Relation};
use super::lexer::{self, Token, TokenKind};
use crate::limits;

/// The expression is not in the language that is parsed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnsupportedSyntax {
    /// The byte at which parsing stopped.
    pub(super) offset: usize,
}

type ParseResult<T = Expr> = Result<T, UnsupportedSyntax>;

thread_local! {
    /// The last expressions that lint parsed: it reads most of them several times, and again when their pack changes.
    static LAST_PARSED: RefCell<BTreeMap<String, Option<Arc<Expr>>>> = RefCell::default();
}

impl Expr {
    /// Returns the tree of an expression for readers of its source: `None` if it has a syntax error, or if it
    /// contains a comment, which an edit of the source could remove.
    #[must_use]
    pub fn parse(text: &str) -> Option<Arc<Self>> {
        if let Some(known) = LAST_PARSED.with_borrow(|known| known.get(text).cloned()) {
            return known;
        }
        let may_comment = text.contains("//") || text.contains("/*");
        let is_readable = !may_comment || !lexer::has_comment(text);
        let tree = parse(text).ok().filter(|_| is_readable).map(Arc::new);
        LAST_PARSED.with_borrow_mut(|known| {
            if known.len() >= limits::EXPRESSIONS_PARSED_MAX {
                known.clear();
            }
            known.insert(text.to_owned(), tree.clone());
        });
        tree
    }

    /// Returns the tree of an expression that was checked. Text that is not an expression is one opaque part.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        let opaque = |_| Self::new(ExprKind::Other(Foreign::Syntax, Vec::new()), 0..text.len());
        parse(text).unwrap_or_else(opaque)
    }
}

/// Parses an expression.
///
/// # Errors
/// The place of the first thing that is not understood.
pub(super) fn parse(text: &str) -> ParseResult {
    if text.len() > limits::EXPRESSION_BYTES_MAX {
        return Err(UnsupportedSyntax { offset: 0 });
    }
    let tokens = lexer::tokens(text).map_err(|offset| UnsupportedSyntax { offset })?;
    let mut parser = Parser { tokens: &tokens, at: 0, end: text.len() };
    let tree = parser.expression(NestingLevel::default())?;
    if parser.at < tokens.len() { Err(parser.stopped()) } else { Ok(tree) }
}

/// How deep a part is nested, counted as Rhai counts it.
#[derive(Debug, Clone, Copy, Default)]
struct NestingLevel(usize);

struct Parser<'t> {
    tokens: &'t [Token<'t>],
    /// The number of the next token.
    at: usize,
    /// Bytes of the text.
    end: usize,
}

/// A binary operator.
#[derive(Debug, Clone, Copy)]
struct Operator {
    sign: &'static str,
    precedence: u8,
}

const fn operator(sign: &'static str, precedence: u8) -> Operator {
    Operator { sign, precedence }
}

/// The binary operators of Rhai; those from `|` on are not in the expression language.
const OPERATORS: [Operator; 22] = [
    operator("||", 30),
    operator("&&", 60),
    operator("==", 90),
    operator("!=", 90),
    operator("in", 110),
    operator("!in", 110),
    operator("<", 130),
    operator("<=", 130),
    operator(">", 130),
    operator(">=", 130),
    operator("+", 150),
    operator("-", 150),
    operator("*", 180),
    operator("/", 180),
    operator("%", 180),
    operator("|", 30),
    operator("^", 30),
    operator("&", 60),
    operator("??", 135),
    operator("**", 190),
    operator("<<", 210),
    operator(">>", 210),
];

/// Whether a sign is a binary operator of Rhai.
pub(super) fn is_binary(sign: &str) -> bool {
    OPERATORS.iter().any(|it| it.sign == sign)
}

const RELATIONS: [Relation; 6] = [
    Relation::Equal,
    Relation::NotEqual,
    Relation::Less,
    Relation::AtMost,
    Relation::Greater,
    Relation::AtLeast,
];

/// Whether Rhai rejects a part where a condition is needed.
const fn is_no_condition(part: &Expr) -> bool {
    matches!(
        part.kind,
        ExprKind::Int(_) | ExprKind::Decimal(_) | ExprKind::Text(_) | ExprKind::List(_)
    ) || matches!(part.kind, ExprKind::Other(Foreign::Syntax, ref parts) if parts.is_empty())
}

impl<'t> Parser<'t> {
    fn stopped(&self) -> UnsupportedSyntax {
        UnsupportedSyntax { offset: self.tokens.get(self.at).map_or(self.end, |it| it.range.start) }
    }

    fn deeper(&self, level: NestingLevel) -> ParseResult<NestingLevel> {
        if level.0 >= limits::EXPRESSION_DEPTH_MAX {
            Err(self.stopped())
        } else {
            Ok(NestingLevel(level.0 + 1))
        }
    }

    fn peek(&self) -> Option<&'t Token<'t>> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> ParseResult<&'t Token<'t>> {
        let token = self.peek().ok_or_else(|| self.stopped())?;
        self.at += 1;
        Ok(token)
    }

    fn is_next(&self, sign: &str) -> bool {
        self.peek().is_some_and(|it| it.is(sign))
    }

    /// Takes the next token if it is this sign or keyword.
    fn take(&mut self, sign: &str) -> Option<Range<usize>> {
        let token = self.peek().filter(|it| it.is(sign))?;
        self.at += 1;
        Some(token.range.clone())
    }

    fn expect(&mut self, sign: &str) -> ParseResult<Range<usize>> {
        self.take(sign).ok_or_else(|| self.stopped())
    }

    fn expression(&mut self, level: NestingLevel) -> ParseResult {
        let level = self.deeper(level)?;
        let first = self.unary(level)?;
        self.binary(level, 1, first)
    }

    /// The next token as a binary operator.
    fn operator(&self) -> Option<Operator> {
        let token = self.peek()?;
        OPERATORS.into_iter().find(|it| token.is(it.sign))
    }

    /// The operators that bind tighter than `parent`, and what they join.
    fn binary(&mut self, mut level: NestingLevel, parent: u8, first: Expr) -> ParseResult {
        let binds = |it: Operator, parent: u8| {
            it.precedence > parent || (it.precedence == parent && it.sign == "**")
        };
        let mut left = first;
        while let Some(operator) = self.operator().filter(|it| binds(*it, parent)) {
            let sign = self.next()?.range.clone();
            let mut right = self.unary(level)?;
            if self.operator().is_some_and(|it| binds(it, operator.precedence)) {
                let level = self.deeper(level)?;
                right = self.binary(level, operator.precedence, right)?;
            }
            level = self.deeper(level)?;
            left = self.joined(operator.sign, sign, left, right)?;
        }
        Ok(left)
    }

    fn joined(
        &self,
        sign: &'static str,
        place: Range<usize>,
        left: Expr,
        right: Expr,
    ) -> ParseResult {
        let range = left.outer.start..right.outer.end;
        if matches!(sign, "&&" | "||") {
            if is_no_condition(&left) || is_no_condition(&right) {
                return Err(UnsupportedSyntax { offset: place.start });
            }
            return Ok(Expr::new(condition(sign == "&&", left, right), range));
        }
        let (one, other) = (Box::new(left), Box::new(right));
        let relation = RELATIONS.into_iter().find(|it| it.as_str() == sign);
        let kind = match (sign, relation) {
            (_, Some(relation)) => ExprKind::Compare(relation, one, other),
            ("in", None) => ExprKind::In(one, other),
            ("!in", None) => {
                ExprKind::Not(Box::new(Expr::new(ExprKind::In(one, other), range.clone())))
            }
            ("+" | "-" | "*" | "/" | "%", None) => {
                let sign = sign.chars().next().unwrap_or_default();
                ExprKind::Arithmetic(sign, one, other)
            }
            ("??", None) => ExprKind::Other(Foreign::Syntax, vec![*one, *other]),
            (_, None) => ExprKind::Other(Foreign::Function(sign.to_owned()), vec![*one, *other]),
        };
        Ok(Expr::new(kind, range))
    }

    fn unary(&mut self, level: NestingLevel) -> ParseResult {
        let Some(token) = self.peek() else { return Err(self.stopped()) };
        let start = token.range.start;
        if self.take("!").is_some() {
            let one = self.unary(self.deeper(level)?)?;
            let range = start..one.outer.end;
            return Ok(Expr::new(ExprKind::Not(Box::new(one)), range));
        }
        if let Some(sign) = self.take("-") {
            if let Some(number) = self.peek().filter(|it| it.range.start == sign.end)
                && let TokenKind::Number(digits) = &number.kind
            {
                self.at += 1;
                let range = start..number.range.end;
                let kind = self.number(&format!("-{digits}"), start)?;
                return self.postfix(level, Expr::new(kind, range));
            }
            let one = self.unary(self.deeper(level)?)?;
            let range = start..one.outer.end;
            let kind = if let ExprKind::Int(value) = &one.kind {
                ExprKind::Int(value.checked_neg().ok_or(UnsupportedSyntax { offset: start })?)
            } else if let ExprKind::Decimal(text) = &one.kind {
                negated_decimal(text)
            } else {
                ExprKind::Negative(Box::new(one))
            };
            return Ok(Expr::new(kind, range));
        }
        if self.take("+").is_some() {
            let one = self.unary(self.deeper(level)?)?;
            let range = start..one.outer.end;
            let kind = if matches!(one.kind, ExprKind::Int(_) | ExprKind::Decimal(_)) {
                one.kind
            } else {
                ExprKind::Other(Foreign::Function("+".to_owned()), vec![one])
            };
            return Ok(Expr::new(kind, range));
        }
        self.primary(level)
    }

    fn number(&self, digits: &str, offset: usize) -> ParseResult<ExprKind> {
        let unsigned = digits.strip_prefix('-').unwrap_or(digits);
        let radix = match unsigned.as_bytes().get(..2) {
            Some(b"0x" | b"0X") => Some(16),
            Some(b"0o" | b"0O") => Some(8),
            Some(b"0b" | b"0B") => Some(2),
            Some(_) | None => None,
        };
        if let Some(radix) = radix {
            let digits = digits.get(2..).filter(|_| unsigned.len() == digits.len());
            let value = digits.and_then(|it| u64::from_str_radix(it, radix).ok());
            let value = value.ok_or(UnsupportedSyntax { offset })?;
            return Ok(ExprKind::Int(value.cast_signed()));
        }
        if let Ok(value) = digits.parse() {
            return Ok(ExprKind::Int(value));
        }
        let value: f64 = digits.parse().map_err(|_| UnsupportedSyntax { offset })?;
        Ok(ExprKind::Decimal(FloatWrapper::new(value).to_string()))
    }

    fn primary(&mut self, level: NestingLevel) -> ParseResult {
        let token = self.next()?;
        let range = token.range.clone();
        let kind = match &token.kind {
            TokenKind::Number(digits) => self.number(digits, range.start)?,
            TokenKind::Text(text) => ExprKind::Text(text.clone()),
            TokenKind::Character => ExprKind::Other(Foreign::Syntax, Vec::new()),
            TokenKind::Name => match token.text {
                "true" => ExprKind::Bool(true),
                "false" => ExprKind::Bool(false),
                "if" => {
                    let level = self.deeper(level)?;
                    let part = self.conditional(level, range.start)?;
                    return self.postfix(level, part);
                }
                name if lexer::is_reserved(name) => {
                    return Err(UnsupportedSyntax { offset: range.start });
                }
                name if self.is_next("(") => {
                    let (arguments, end) = self.arguments(level)?;
                    let kind = ExprKind::Other(Foreign::Function(name.to_owned()), arguments);
                    return self.postfix(level, Expr::new(kind, range.start..end));
                }
                _ if self.is_next("!") => return Err(self.stopped()),
                name => ExprKind::Fact(Path::new(name), Vec::new()),
            },
            TokenKind::Sign if token.text == "(" => {
                let inner = self.deeper(level)?;
                let mut part = self.expression(inner)?;
                part.outer = range.start..self.expect(")")?.end;
                return self.postfix(level, part);
            }
            TokenKind::Sign if token.text == "[" => {
                let (items, end) = self.items(level)?;
                let part = Expr::new(ExprKind::List(items), range.start..end);
                return self.postfix(level, part);
            }
            TokenKind::Sign => return Err(UnsupportedSyntax { offset: range.start }),
        };
        self.postfix(level, Expr::new(kind, range))
    }

    /// The items of a list behind its opening bracket, and its end.
    fn items(&mut self, level: NestingLevel) -> ParseResult<(Vec<Expr>, usize)> {
        let level = self.deeper(level)?;
        let mut items = Vec::new();
        loop {
            if items.len() >= limits::EXPRESSION_ARRAY_MAX {
                return Err(self.stopped());
            }
            if let Some(close) = self.take("]") {
                return Ok((items, close.end));
            }
            items.push(self.expression(self.deeper(level)?)?);
            if !self.is_next("]") {
                self.expect(",")?;
            }
        }
    }

    /// The arguments of a call with the parentheses around them, and their end.
    fn arguments(&mut self, level: NestingLevel) -> ParseResult<(Vec<Expr>, usize)> {
        self.expect("(")?;
        let mut arguments = Vec::new();
        if let Some(close) = self.take(")") {
            return Ok((arguments, close.end));
        }
        let level = self.deeper(level)?;
        loop {
            arguments.push(self.expression(level)?);
            let comma = self.take(",");
            if let Some(close) = self.take(")") {
                return Ok((arguments, close.end));
            }
            if comma.is_none() {
                return Err(self.stopped());
            }
        }
    }

    /// `a { b } else { c }` behind the `if` at `start`.
    fn conditional(&mut self, level: NestingLevel, start: usize) -> ParseResult {
        let level = self.deeper(level)?;
        let condition = self.expression(level)?;
        if is_no_condition(&condition) {
            return Err(UnsupportedSyntax { offset: condition.range.start });
        }
        let (one, end) = self.block(level)?;
        if self.take("else").is_none() {
            let kind = ExprKind::Other(Foreign::WithoutElse, vec![condition, one]);
            return Ok(Expr::new(kind, start..end));
        }
        let (other, end) = match self.take("if") {
            Some(nested) => {
                let other = self.conditional(level, nested.start)?;
                let end = other.outer.end;
                (other, end)
            }
            None => self.block(level)?,
        };
        Ok(Expr::new(ExprKind::If(Box::new([condition, one, other])), start..end))
    }

    /// `{ a }`, and its end.
    fn block(&mut self, level: NestingLevel) -> ParseResult<(Expr, usize)> {
        self.expect("{")?;
        let level = self.deeper(level)?;
        let value = self.expression(level)?;
        Ok((value, self.expect("}")?.end))
    }

    /// The members of a value.
    fn postfix(&mut self, mut level: NestingLevel, base: Expr) -> ParseResult {
        let mut chain = Chain::new(base);
        loop {
            let Some(sign) = self.peek() else { return Ok(chain.into_expr()) };
            let optional = matches!(sign.text, "?." | "?[");
            if sign.is(".") || sign.is("?.") {
                self.at += 1;
                level = self.deeper(level)?;
                let name = self.next()?;
                if !matches!(name.kind, TokenKind::Name) || lexer::is_reserved(name.text) {
                    return Err(UnsupportedSyntax { offset: name.range.start });
                }
                let (arguments, access, end) = if self.is_next("(") {
                    let (arguments, end) = self.arguments(level)?;
                    let count = u32::try_from(arguments.len()).map_err(|_| self.stopped())?;
                    (arguments, MemberAccess::Call(count), end)
                } else if self.is_next("!") {
                    return Err(self.stopped());
                } else {
                    (Vec::new(), MemberAccess::Field, name.range.end)
                };
                let range = name.range.start..end;
                chain.push(name.text, access, arguments, range, optional);
            } else if sign.is("[") || sign.is("?[") {
                if chain.ends_in_brackets() {
                    return Err(self.stopped());
                }
                self.at += 1;
                let inner = self.deeper(self.deeper(level)?)?;
                let key = self.expression(inner)?;
                let range = sign.range.start..self.expect("]")?.end;
                chain.push("", MemberAccess::Item, vec![key], range, optional);
            } else {
                return Ok(chain.into_expr());
            }
        }
    }
}

/// A value and the members that are read of it.
struct Chain {
    base: Expr,
    path: Option<Path>,
    arguments: Vec<Expr>,
    range: Range<usize>,
}

impl Chain {
    fn new(base: Expr) -> Self {
        Self { range: base.outer.clone(), base, path: None, arguments: Vec::new() }
    }

    /// Whether another bracket cannot follow, as behind `a["b"]` and behind a literal.
    fn ends_in_brackets(&self) -> bool {
        match &self.path {
            Some(path) => path.steps().last().is_some_and(|it| it.access == MemberAccess::Item),
            None => !matches!(self.base.kind, ExprKind::Fact(..)),
        }
    }

    fn push(
        &mut self,
        name: &str,
        access: MemberAccess,
        arguments: Vec<Expr>,
        range: Range<usize>,
        optional: bool,
    ) {
        self.range.end = range.end;
        let path = self.path.get_or_insert_with(|| {
            let ExprKind::Fact(path, known) = &mut self.base.kind else { return Path::new("") };
            self.arguments = std::mem::take(known);
            std::mem::replace(path, Path::new(""))
        });
        path.push(name, access, &arguments, range, optional);
        self.arguments.extend(arguments);
    }

    fn into_expr(self) -> Expr {
        let Self { base, path, arguments, range } = self;
        let Some(path) = path else { return base };
        if matches!(base.kind, ExprKind::Fact(..)) {
            return Expr::new(ExprKind::Fact(path, arguments), range);
        }
        // `[…].contains(item)` is `item in […]`.
        let is_contains =
            matches!(path.steps(), [only] if !only.optional && path.member(only) == "contains");
        let is_membership = is_contains && matches!(base.kind, ExprKind::List(_));
        let kind = match <[Expr; 1]>::try_from(arguments) {
            Ok([item]) if is_membership => ExprKind::In(Box::new(item), Box::new(base)),
            Ok([one]) => ExprKind::Member(Box::new(base), path, vec![one]),
            Err(arguments) => ExprKind::Member(Box::new(base), path, arguments),
        };
        Expr::new(kind, range)
    }
}

/// The decimal of the opposite sign.
fn negated_decimal(text: &str) -> ExprKind {
    let opposite = text.strip_prefix('-').map_or_else(|| format!("-{text}"), str::to_owned);
    ExprKind::Decimal(if text == "0.0" { text.to_owned() } else { opposite })
}

/// A conjunction or a disjunction of two parts. Rhai joins nested ones as well.
fn condition(is_and: bool, left: Expr, right: Expr) -> ExprKind {
    let items = |part: Expr| match (part.kind, is_and) {
        (ExprKind::And(items), true) | (ExprKind::Or(items), false) => items,
        (kind, _) => vec![Expr { kind, ..part }],
    };
    let mut all = items(left);
    all.extend(items(right));
    if is_and { ExprKind::And(all) } else { ExprKind::Or(all) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine;

    fn canonical(text: &str) -> String {
        parse(text).map_or_else(|it| format!("! {}", it.offset), |it| it.canonical().into_owned())
    }

    #[test]
    fn operators_bind_as_in_rhai() {
        for (text, expected) in [
            ("a || b && c == d in e < f + g * h", "(a||(b&&(c==(d in (e<(f+(g*h)))))))"),
            ("a - b - c", "((a-b)-c)"),
            ("a ** b ** c", "**(a,**(b,c))"),
            ("!a.b == -c", "(!a.b==-c)"),
            ("a && (b && c) && d", "(a&&b&&c&&d)"),
            ("x -1 - -2", "((x-1)--2)"),
            ("a !in [\"b\",]", "!(a in (\"b\"))"),
            ("[\"a\"].contains(b)", "(b in (\"a\"))"),
            ("(a.b)[\"k\"].c", "a.b[\"k\"].c"),
            ("(a + b).len()", "(a+b).len()"),
            ("if a { b } else if c { d } else { e }", "if(a;b;if(c;d;e))"),
            ("a /* b */ && // c\n d", "(a&&d)"),
            ("foo(1, x)", "foo(1,x)"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
    }

    #[test]
    fn literals_are_read_as_in_rhai() {
        for (text, expected) in [
            ("1_000", "1000"),
            ("0x1F", "31"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("9223372036854775808", "9.223372036854776e18"),
            ("1.50", "1.5"),
            ("-(2)", "-2"),
            (r#""a\"b\\\n\x41\u00e4""#, r#""a\"b\\\nAä""#),
            (r#""a""b""#, r#""a\"b""#),
            ("`a\\b``c`", r#""a\\b`c""#),
            ("\"a \\\n   b\"", "\"a   b\""),
            ("  \"a \\\n   b\"", "\"a b\""),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
            assert_eq!(engine::check_syntax(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_is_not_in_the_language_ends_the_parser() {
        for (text, offset) in [
            ("", 0),
            ("a b", 2),
            ("a && 1", 2),
            ("a.is", 2),
            ("let", 0),
            ("a <- b", 2),
            ("a == `x ${b}`", 5),
            ("a == \"x", 5),
            ("#{a: 1}", 0),
            ("(a", 2),
            ("a = b", 2),
        ] {
            assert_eq!(canonical(text), format!("! {offset}"), "{text}");
        }
    }

    #[test]
    fn the_limit_of_depth_is_that_of_rhai() {
        let nested: [fn(&str) -> String; 7] = [
            |it| format!("({it})"),
            |it| format!("!{it}"),
            |it| format!("x && (y || {it})"),
            |it| format!("x + {it}"),
            |it| format!("{it}.b"),
            |it| format!("a.b([{it}])"),
            |it| format!("if {it} {{ x }} else {{ {it} }}"),
        ];
        for nest in nested {
            let mut text = "c".to_owned();
            while text.len() < 2_000 {
                text = nest(&text);
                let is_rhai = engine::check_syntax(&text).is_ok();
                assert_eq!(parse(&text).is_ok(), is_rhai, "{text}");
            }
        }
    }

    #[test]
    fn no_reserved_word_is_a_name() {
        for word in lexer::RESERVED {
            assert!(engine::check_syntax(&format!("a.{word}")).is_err(), "{word}");
            assert!(canonical(&format!("a.{word}")).starts_with('!'), "{word}");
        }
    }
}
