//! Types an expression at load: every unknown name, wrong type, and wrong argument, with its location.

use std::collections::BTreeSet;
use std::ops::Range;

use super::ast::{Expr, ExprKind, Foreign};
use super::hints::{cure, other_spelling, spelled, token_length};
use super::rewrite::{Remedy, double_backslashes};
use super::table::KnownNames;
use super::types::{Evidence, Type};
use super::{ScriptError, engine, parse};
use policyd_yaml::{Diagnostic, Node, suggest};

mod operators;
mod steps;

/// One thing wrong in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeFinding {
    /// Stable name of the finding.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// Where, as a byte range of the expression.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// The fix, with a byte range of the expression.
    pub fix: Option<Remedy>,
}

impl TypeFinding {
    /// The finding where its expression is written: in a scalar, from a byte of its text on.
    #[must_use]
    pub fn within(&self, node: &Node, offset: usize) -> Diagnostic {
        let range = self.start.saturating_add(offset)..self.end.saturating_add(offset);
        let found = Diagnostic::error(self.code, node.sub_span(range), self.message.clone());
        match self.fix.clone() {
            Some(fix) => found.suggest(fix.within(node, offset)),
            None => found,
        }
    }
}

/// The result of typing an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedExpression {
    /// Type of the value; `Any` if something is wrong.
    pub result: Type,
    /// The facts that it reads, such as `todos.open` and `probes.pr`.
    pub uses: BTreeSet<String>,
    /// The strongest evidence among them.
    pub evidence: Evidence,
    /// Everything that is wrong.
    pub findings: Vec<TypeFinding>,
    /// The tree of the expression; `None` if the text is not one.
    pub tree: Option<Expr>,
}

/// Types an expression by the table of facts and the names of a pack.
#[must_use]
pub fn check(text: &str, names: &dyn KnownNames) -> TypedExpression {
    typed(text, names, true)
}

/// Types an expression whose regexes are known to be valid: compiling them takes longer than everything else.
#[must_use]
pub fn check_again(text: &str, names: &dyn KnownNames) -> TypedExpression {
    typed(text, names, false)
}

fn typed(text: &str, names: &dyn KnownNames, regexes: bool) -> TypedExpression {
    let mut checker = Checker::new(text, names, regexes);
    match parse::parse(text) {
        Ok(tree) => {
            debug_assert_eq!(engine::check_syntax(text), Ok(()), "`{text}` is not Rhai");
            let result = checker.infer(&tree);
            checker.typed(result, Some(tree))
        }
        Err(stopped) => {
            match engine::check_syntax(text) {
                Err(error) => checker.report_syntax(error),
                Ok(()) => checker.report_foreign(stopped.offset),
            }
            checker.typed(Type::Any, None)
        }
    }
}

struct Checker<'a> {
    text: &'a str,
    names: &'a dyn KnownNames,
    /// Whether regexes are compiled to see that they are sound.
    regexes: bool,
    uses: BTreeSet<String>,
    evidence: Evidence,
    findings: Vec<TypeFinding>,
}

impl<'a> Checker<'a> {
    const fn new(text: &'a str, names: &'a dyn KnownNames, regexes: bool) -> Self {
        let evidence = Evidence::Neutral;
        Self { text, names, regexes, uses: BTreeSet::new(), evidence, findings: Vec::new() }
    }

    fn typed(self, result: Type, tree: Option<Expr>) -> TypedExpression {
        let Self { uses, evidence, findings, .. } = self;
        TypedExpression { result, uses, evidence, findings, tree }
    }

    fn report_syntax(&mut self, error: ScriptError) {
        let start = error.offset.unwrap_or(0).min(self.text.len());
        let fix = match error.message.contains("escape sequence") {
            true => double_backslashes(self.text, start),
            false => cure(self.text, start),
        };
        self.report("expression-syntax", start, error.message, fix);
    }

    fn report_foreign(&mut self, start: usize) {
        let message = "this form is not part of the expression language".to_owned();
        let rest = self.text.get(start..).unwrap_or_default();
        let fix = rest.starts_with('\'').then(|| cure(self.text, start)).flatten();
        self.report("expression-syntax", start, message, fix);
    }

    fn infer(&mut self, expr: &Expr) -> Type {
        match &expr.kind {
            ExprKind::Bool(_) => Type::Bool,
            ExprKind::Int(_) => Type::Int,
            ExprKind::Decimal(_) => Type::Decimal,
            ExprKind::Text(_) => Type::Text,
            ExprKind::List(items) => {
                for item in items {
                    self.expect(item, Type::Text, "a list holds texts");
                }
                Type::Texts
            }
            ExprKind::And(items) | ExprKind::Or(items) => {
                for item in items {
                    self.expect(item, Type::Bool, "both sides of && and || must be true or false");
                }
                Type::Bool
            }
            ExprKind::Not(one) => self.expect(one, Type::Bool, "`!` needs true or false"),
            ExprKind::Negative(one) => self.expect(one, Type::Int, "`-` needs a number"),
            ExprKind::Compare(relation, one, other) => self.comparison(*relation, one, other),
            ExprKind::In(item, list) => self.membership(item, list),
            ExprKind::Arithmetic('+', one, other) => self.sum(one, other),
            ExprKind::Arithmetic(_, one, other) => {
                self.expect(one, Type::Int, "arithmetic needs numbers");
                self.expect(other, Type::Int, "arithmetic needs numbers")
            }
            ExprKind::Fact(path, arguments) => self.fact(path, arguments, expr),
            ExprKind::Member(base, path, arguments) => {
                let owner = self.infer(base);
                self.members(owner, path, arguments)
            }
            ExprKind::If(parts) => self.conditional(parts, expr.range.start),
            ExprKind::Other(Foreign::Function(name), _) => self.unknown_function(name, expr),
            ExprKind::Other(Foreign::WithoutElse, _) => self.without_else(expr.range.start),
            ExprKind::Other(Foreign::Syntax, _) => {
                self.report_foreign(self.position(expr));
                Type::Any
            }
        }
    }

    /// `if c { a } else { b }`; `start` is the byte of the outermost `if`.
    fn conditional(&mut self, [condition, one, other]: &[Expr; 3], start: usize) -> Type {
        self.expect(condition, Type::Bool, "the condition of `if` must be true or false");
        let one = self.infer(one);
        let other = if let ExprKind::If(parts) = &other.kind {
            self.conditional(parts, start)
        } else if let ExprKind::Other(Foreign::WithoutElse, _) = &other.kind {
            self.without_else(start)
        } else {
            self.infer(other)
        };
        if one != other && one != Type::Any && other != Type::Any {
            let text = format!("one branch is a {one}, the other a {other}");
            self.report("type-mismatch", start, text, None);
        }
        one
    }

    fn without_else(&mut self, start: usize) -> Type {
        let text = "each branch of `if` needs exactly one value, and `else` is needed".to_owned();
        self.report("expression-syntax", start, text, None);
        Type::Any
    }

    /// The byte at which a part is reported: its operator, or its beginning.
    fn position(&self, expr: &Expr) -> usize {
        if let ExprKind::And(items)
        | ExprKind::Or(items)
        | ExprKind::Other(Foreign::Syntax, items) = &expr.kind
        {
            return items.first().map_or(expr.range.start, |it| self.position(it));
        }
        expr.operator(self.text).unwrap_or(expr.range.start)
    }

    fn global(&mut self, name: &str, start: usize) -> Type {
        if let Some(record) = self.names.record() {
            if record.name == name {
                return Type::Record;
            }
            let help = format!("rules of this file speak of `{}` only", record.name);
            let message = format!("`{name}` is not available here");
            self.report("unknown-fact", start, message, Some(help.into()));
            return Type::Any;
        }
        if let Some(row) = self.names.table().find(Type::Global, name) {
            return row.result;
        }
        if let Some(spelling) = other_spelling(name) {
            let message = format!("unknown fact `{name}`");
            let fix = spelled(start..start.saturating_add(name.len()), spelling);
            self.report("unknown-fact", start, message, Some(fix));
            return Type::Any;
        }
        let known = self.members_of(Type::Global);
        let found = ("unknown-fact", start, format!("unknown fact `{name}`"));
        self.report_word(found, (name, &known));
        Type::Any
    }

    /// The names of the members of a type, in the order of the table.
    fn members_of(&self, owner: Type) -> Vec<&'static str> {
        let rows = self.names.table().rows();
        rows.filter(|it| it.owner == owner).map(|it| it.name).collect()
    }

    fn expect(&mut self, expr: &Expr, wanted: Type, why: &str) -> Type {
        let found = self.infer(expr);
        if found != wanted && found != Type::Any {
            let text = self.part(&expr.outer);
            let fix = match (wanted, found) {
                (Type::Bool, Type::Int) => {
                    Some(Remedy::write(expr.outer.clone(), format!("({text} > 0)")))
                }
                (Type::Bool, Type::Texts) => {
                    Some(Remedy::write(expr.outer.clone(), format!("({text}.len() > 0)")))
                }
                _ => None,
            };
            self.at(expr, "type-mismatch", &format!("{why}; this is a {found}"), fix);
        }
        wanted
    }

    fn at(&mut self, expr: &Expr, code: &'static str, message: &str, fix: Option<Remedy>) {
        let start = self.position(expr);
        self.report(code, start, message.to_owned(), fix);
    }

    fn report(&mut self, code: &'static str, start: usize, message: String, fix: Option<Remedy>) {
        let end = self.token(start).end;
        self.findings.push(TypeFinding { code, message, start, end, fix });
    }

    /// The bytes of the token that begins at a byte.
    fn token(&self, start: usize) -> Range<usize> {
        start..start.saturating_add(token_length(self.text.get(start..).unwrap_or_default()))
    }

    /// The part of the text of a range.
    fn part(&self, range: &Range<usize>) -> &str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    /// Reports an unknown word, and suggests a known one.
    fn report_word(
        &mut self,
        (code, start, message): (&'static str, usize, String),
        (word, known): (&str, &[&str]),
    ) {
        let token = self.token(start);
        let fix = match suggest::nearest(word, known) {
            Some(near) => {
                let is_name = self.part(&token) == word;
                let written = if is_name { near.to_owned() } else { format!("{near:?}") };
                let is_text = self.part(&token).starts_with('"');
                Some(Remedy::word(near, (is_name || is_text).then_some((token, written))))
            }
            None => suggest::did_you_mean(word, known).map(Remedy::advice),
        };
        self.report(code, start, message, fix);
    }
}
