//! The tree of an expression. The parser builds it once; the type checker, the direct evaluator, explanations,
//! coverage, and lint read it.
//! Lives here: the shape of the tree. `parse` builds it, `evaluate` computes its value.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::lexer::after_blanks;
use super::paths::Fact;
use super::text_list::TextList;

/// A part of an expression.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expr {
    /// What the part is.
    pub kind: ExprKind,
    /// The bytes of the part, without parentheses around it.
    pub range: Range<usize>,
    /// The bytes of the part with the parentheses around it.
    pub outer: Range<usize>,
}

/// Kinds of parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExprKind {
    /// `a && b && …`; nested conjunctions are one.
    And(Vec<Expr>),
    /// `a || b || …`; nested disjunctions are one.
    Or(Vec<Expr>),
    /// `!a`, and `a !in b` as the negation of `a in b` with the same bytes.
    Not(Box<Expr>),
    /// `a == b`, `a < b`, and so on.
    Compare(Relation, Box<Expr>, Box<Expr>),
    /// `item in list`, or `[…].contains(item)`: the item, then the list.
    In(Box<Expr>, Box<Expr>),
    /// `a + b`, `a - b`, `a * b`, `a / b`, `a % b`.
    Arithmetic(char, Box<Expr>, Box<Expr>),
    /// `-a`, where `a` is not a literal.
    Negative(Box<Expr>),
    /// `true`, `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction, as Rhai formats it.
    Decimal(String),
    /// `"text"`.
    Text(String),
    /// `["a", "b"]`.
    List(Vec<Expr>),
    /// A name and its members, such as `commands.kind("test").count`, and all arguments in it.
    Fact(Path, Vec<Expr>),
    /// Members of a value that is not a name, such as `(a + b).len()`, and all arguments in them.
    Member(Box<Expr>, Path, Vec<Expr>),
    /// `if a { b } else { c }`.
    If(Box<[Expr; 3]>),
    /// Something that Rhai parses and the expression language does not contain, and its parts.
    Other(Foreign, Vec<Expr>),
}

/// What an `ExprKind::Other` is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Foreign {
    /// A call of a free function, or an operator, by its name.
    Function(String),
    /// `if` without `else`.
    WithoutElse,
    /// Anything else.
    Syntax,
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// What joins operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// `&&`
    And,
    /// `||`
    Or,
}

/// A name and its members. Equal texts mean the same fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// The path without blanks, with its arguments.
    text: String,
    /// Bytes of the leading name in `text`; 0 for members of a value that is not a name.
    name: u32,
    steps: Vec<Step>,
}

/// One member of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Step {
    /// Its name in the text of the path; for `Access::Item`, the brackets.
    name: Range<u32>,
    /// Its bytes in the expression, from the name to the end of the arguments.
    pub(super) range: Range<u32>,
    pub(super) access: MemberAccess,
    /// Whether it is written `?.` or `?[`.
    pub(super) optional: bool,
    #[serde(skip)]
    texts: CachedTexts,
}

/// How a member is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum MemberAccess {
    /// `.name`
    Field,
    /// `.name(…)`, with this many arguments.
    Call(u32),
    /// `["key"]`: the key is one argument.
    Item,
}

/// The argument of a call as a list of text constants, built at the first evaluation. It follows from the
/// arguments, so it is not compared.
#[derive(Debug, Clone, Default)]
struct CachedTexts(OnceLock<Option<TextList>>);

impl PartialEq for CachedTexts {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for CachedTexts {}

impl Step {
    /// The number of arguments of the path that belong to the step.
    pub(super) const fn arguments(&self) -> usize {
        match self.access {
            MemberAccess::Field => 0,
            MemberAccess::Call(count) => count as usize,
            MemberAccess::Item => 1,
        }
    }

    /// The only argument of a call, if it is a list of text constants.
    pub(super) fn texts(&self, arguments: &[Expr]) -> Option<&TextList> {
        let (MemberAccess::Call(1), [Expr { kind: ExprKind::List(items), .. }]) =
            (self.access, arguments)
        else {
            return None;
        };
        let text =
            |it: &Expr| if let ExprKind::Text(text) = &it.kind { Some(text.clone()) } else { None };
        let texts = || items.iter().map(text).collect::<Option<Vec<_>>>().map(TextList::from);
        self.texts.0.get_or_init(texts).as_ref()
    }
}

impl Path {
    /// The path that begins with a name.
    pub(super) fn new(name: &str) -> Self {
        let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
        Self { text: name.to_owned(), name: length, steps: Vec::new() }
    }

    /// Appends a member with its arguments; `range` are its bytes in the expression.
    pub(super) fn push(
        &mut self,
        name: &str,
        access: MemberAccess,
        arguments: &[Expr],
        range: Range<usize>,
        optional: bool,
    ) {
        let position = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
        if access != MemberAccess::Item {
            self.text.push('.');
        }
        let start = position(self.text.len());
        self.text.push_str(name);
        let end = position(self.text.len());
        let (open, close) = match access {
            MemberAccess::Field => ("", ""),
            MemberAccess::Call(_) => ("(", ")"),
            MemberAccess::Item => ("[", "]"),
        };
        self.text.push_str(open);
        self.text.push_str(&joined(arguments, ",", Expr::source));
        self.text.push_str(close);
        let range = position(range.start)..position(range.end);
        let texts = CachedTexts::default();
        self.steps.push(Step { name: start..end, range, access, optional, texts });
    }

    /// The leading name; empty for members of a value that is not a name.
    pub(super) fn name(&self) -> &str {
        self.text.get(..self.name as usize).unwrap_or_default()
    }

    /// The members in their order.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The text up to the end of the first members.
    pub(super) fn beginning(&self, members: usize) -> &str {
        let end = match self.steps.get(members) {
            Some(next) if next.access == MemberAccess::Item => next.name.start,
            // Before the dot.
            Some(next) => next.name.start.saturating_sub(1),
            None => return &self.text,
        };
        self.text.get(..end as usize).unwrap_or_default()
    }

    /// The path with the first of its members.
    pub(super) fn first(&self, members: usize) -> Self {
        let steps = self.steps.iter().take(members).cloned().collect();
        Self { text: self.beginning(members).to_owned(), name: self.name, steps }
    }

    /// The name of a member; empty for `Access::Item`.
    pub(super) fn member(&self, step: &Step) -> &str {
        self.text.get(step.name.start as usize..step.name.end as usize).unwrap_or_default()
    }
}

impl Relation {
    /// The operator.
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

    /// Returns the relation that is true exactly if this one is false.
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

    /// Returns the relation for exchanged sides.
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

impl Expr {
    /// A part without parentheses around it.
    #[must_use]
    pub fn new(kind: ExprKind, range: Range<usize>) -> Self {
        Self { kind, outer: range.clone(), range }
    }

    /// Returns the direct parts of this part, in their order.
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

    /// Calls `look` with each direct part.
    fn each<'t>(&'t self, look: &mut dyn FnMut(&'t Self)) {
        match &self.kind {
            ExprKind::And(items)
            | ExprKind::Or(items)
            | ExprKind::List(items)
            | ExprKind::Other(_, items)
            | ExprKind::Fact(_, items) => items.iter().for_each(look),
            ExprKind::Member(base, _, items) => {
                look(base);
                items.iter().for_each(look);
            }
            ExprKind::If(parts) => parts.iter().for_each(look),
            ExprKind::Not(one) | ExprKind::Negative(one) => look(one),
            ExprKind::Compare(_, one, other)
            | ExprKind::In(one, other)
            | ExprKind::Arithmetic(_, one, other) => {
                look(one);
                look(other);
            }
            ExprKind::Bool(_) | ExprKind::Int(_) | ExprKind::Decimal(_) | ExprKind::Text(_) => {}
        }
    }

    /// Returns the fact that the part is.
    #[must_use]
    pub fn fact(&self) -> Option<Fact<'_>> {
        if let ExprKind::Fact(path, arguments) = &self.kind {
            Some(Fact::new(path, arguments))
        } else {
            None
        }
    }

    /// Returns the name of the last member of the part, such as `lower` of `session.branch.lower()`.
    #[must_use]
    pub fn last_name(&self) -> Option<&str> {
        let (ExprKind::Fact(path, _) | ExprKind::Member(_, path, _)) = &self.kind else {
            return None;
        };
        path.steps.last().map(|it| path.member(it))
    }

    /// Returns a fact without which the condition is never true: one of the operands of `&&`, or one
    /// in each operand of `||`. A fact in a comparison does not count, because the comparison can be true without it.
    pub fn needs<'t>(&'t self, is_such: &impl Fn(Fact<'t>) -> bool) -> Option<Fact<'t>> {
        if let ExprKind::And(items) = &self.kind {
            items.iter().find_map(|it| it.needs(is_such))
        } else if let ExprKind::Or(items) = &self.kind {
            let of_each: Option<Vec<Fact<'t>>> = items.iter().map(|it| it.needs(is_such)).collect();
            of_each?.first().copied()
        } else {
            self.fact().filter(|it| is_such(*it))
        }
    }

    /// Returns what joins the operands of this part, and the operands, also behind `!`; `None` if the part is one
    /// operand.
    #[must_use]
    pub fn operands(&self) -> Option<(Join, &[Self])> {
        let inner = self.without_not();
        if let ExprKind::And(items) = &inner.kind {
            Some((Join::And, items))
        } else if let ExprKind::Or(items) = &inner.kind {
            Some((Join::Or, items))
        } else {
            None
        }
    }

    /// Returns the parts that neither `&&` nor `||` joins: `a`, `b`, and `c` of `a && (b || c)`.
    #[must_use]
    pub fn leaves(&self) -> Vec<&Self> {
        match self.operands() {
            None => vec![self],
            Some((_, items)) => items.iter().flat_map(Self::leaves).collect(),
        }
    }

    /// Returns whether the part is `true` or `false`, or the negation of one.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        matches!(self.without_not().kind, ExprKind::Bool(_))
    }

    fn without_not(&self) -> &Self {
        let mut inner = self;
        while let ExprKind::Not(one) = &inner.kind {
            inner = one;
        }
        inner
    }

    /// The byte of the operator, of a called name, or of the `if`; `None` for facts and literals. `text` is the text
    /// of the whole expression.
    pub(super) fn operator(&self, text: &str) -> Option<usize> {
        match &self.kind {
            ExprKind::And(items) | ExprKind::Or(items) => Some(items.first()?.end(text)),
            ExprKind::Compare(_, one, _) | ExprKind::Arithmetic(_, one, _) => Some(one.end(text)),
            // Behind the dot of `list.contains(item)`.
            ExprKind::In(item, list) if is_call(item, list) => {
                Some(after_blanks(text, list.end(text).saturating_add(1)))
            }
            ExprKind::In(item, _) => Some(item.end(text)),
            // `!in` is one operator.
            ExprKind::Not(one) if one.range == self.range => one.operator(text),
            ExprKind::Other(Foreign::Function(_) | Foreign::Syntax, items) => {
                let first = items.first().filter(|it| it.outer.start == self.range.start);
                Some(first.map_or(self.range.start, |it| it.end(text)))
            }
            ExprKind::Not(_)
            | ExprKind::Negative(_)
            | ExprKind::If(_)
            | ExprKind::Other(Foreign::WithoutElse, _) => Some(self.range.start),
            ExprKind::Fact(..)
            | ExprKind::Member(..)
            | ExprKind::List(_)
            | ExprKind::Bool(_)
            | ExprKind::Int(_)
            | ExprKind::Decimal(_)
            | ExprKind::Text(_) => None,
        }
    }

    /// The byte of what follows the part.
    pub(super) fn end(&self, text: &str) -> usize {
        after_blanks(text, self.outer.end)
    }

    /// Returns the text without blanks and without parentheses around parts. Equal texts mean the same.
    #[must_use]
    pub fn canonical(&self) -> Cow<'_, str> {
        let list = |items: &[Self], between: &str| {
            format!("({})", joined(items, between, Self::canonical))
        };
        let made = match &self.kind {
            ExprKind::And(items) => list(items, "&&"),
            ExprKind::Or(items) => list(items, "||"),
            ExprKind::List(items) => list(items, ","),
            ExprKind::Not(one) => format!("!{}", one.canonical()),
            ExprKind::Negative(one) => format!("-{}", one.canonical()),
            ExprKind::Compare(relation, one, other) => {
                format!("({}{}{})", one.canonical(), relation.as_str(), other.canonical())
            }
            ExprKind::In(one, other) => format!("({} in {})", one.canonical(), other.canonical()),
            ExprKind::Arithmetic(sign, one, other) => {
                format!("({}{sign}{})", one.canonical(), other.canonical())
            }
            ExprKind::Bool(value) => value.to_string(),
            ExprKind::Int(value) => value.to_string(),
            ExprKind::Text(text) => format!("{text:?}"),
            ExprKind::Decimal(text) => return Cow::Borrowed(text),
            ExprKind::Fact(path, _) => return Cow::Borrowed(&path.text),
            ExprKind::Member(base, path, _) => format!("{}{}", base.canonical(), path.text),
            ExprKind::If(parts) => format!("if{}", list(parts.as_slice(), ";")),
            ExprKind::Other(Foreign::Function(name), items) => {
                format!("{name}{}", list(items, ","))
            }
            ExprKind::Other(Foreign::WithoutElse | Foreign::Syntax, items) => {
                format!("?{}", list(items, ";"))
            }
        };
        Cow::Owned(made)
    }

    /// The part as an argument in the text of a path.
    fn source(&self) -> Cow<'_, str> {
        if let ExprKind::List(items) = &self.kind {
            return Cow::Owned(format!("[{}]", joined(items, ",", Self::source)));
        }
        if let ExprKind::Arithmetic('+', one, other) = &self.kind {
            return Cow::Owned(format!("{}+{}", one.source(), other.canonical()));
        }
        self.canonical()
    }
}

/// Whether a membership is written `list.contains(item)`.
pub(super) const fn is_call(item: &Expr, list: &Expr) -> bool {
    list.range.start < item.range.start
}

/// The texts of parts with `between` between them.
fn joined<'t>(items: &'t [Expr], between: &str, text: impl Fn(&'t Expr) -> Cow<'t, str>) -> String {
    let mut joined = String::new();
    for (at, item) in items.iter().enumerate() {
        joined.push_str(if at > 0 { between } else { "" });
        joined.push_str(&text(item));
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every part with the text it covers, outermost first.
    fn parts(text: &str) -> Vec<&str> {
        let tree = Expr::parse(text).unwrap();
        let mut found = Vec::new();
        tree.visit(&mut |it| found.push(it.range.clone()));
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
        let tree = Expr::parse(text).unwrap();
        let ExprKind::And(items) = &tree.kind else { unreachable!() };
        assert_eq!(items[0].canonical(), "!breakers[\"a.b\"].open");
    }

    #[test]
    fn a_row_of_conjunctions_is_one() {
        let texts = ["a && b && (c && d) && e", "a && (b && (c && d))", "(a && b) && c && (d)"];
        for text in texts {
            let tree = Expr::parse(text).unwrap();
            let conjunction = matches!(&tree.kind, ExprKind::And(items) if items.len() >= 4);
            assert!(conjunction && parts(text)[0] == text, "{text}: {tree:?}");
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
        let canonical = |text: &str| Expr::parse(text).unwrap().canonical().into_owned();
        assert_eq!(canonical("( a.b==1 )&&c"), canonical("a . b == 1 && (c)"));
        assert_ne!(canonical("a == 1"), canonical("a == 2"));
    }

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
            let tree = Expr::of_text(text);
            let leaves: Vec<&str> =
                tree.leaves().into_iter().filter_map(|it| text.get(it.range.clone())).collect();
            assert_eq!(leaves, expected, "{text}");
        }
    }

    #[test]
    fn the_weaker_operator_joins_first() {
        let found = Expr::of_text("a && b || c");
        let (join, operands) = found.operands().unwrap();
        assert_eq!((join, operands[0].operands().unwrap().0), (Join::Or, Join::And));
    }

    #[test]
    fn what_is_always_the_same_is_known() {
        assert!(Expr::of_text("true").is_fixed());
        assert!(Expr::of_text("!false").is_fixed());
        assert!(!Expr::of_text("a || true").is_fixed());
        assert!(Expr::of_text("a || true").leaves()[1].is_fixed());
    }
}
