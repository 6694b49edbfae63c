//! Types an expression at load: every unknown name, wrong type and wrong argument, with its place.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use rhai::{ASTFlags, Expr, Position, Stmt};

use super::engine::byte_offset;
use super::members;
use super::tokens::{cure, operand_text, other_spelling, token_length};
use super::types::{Evidence, Names, Type};
use super::{ScriptError, lately};
use crate::source::{Diagnostic, Span, suggest};

mod brackets;
mod operators;
mod steps;

/// One thing wrong in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Stable name of the finding.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// Where, as a byte range of the expression.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// The cure.
    pub help: Option<String>,
    /// A mistyped word, and what it was probably meant to be.
    pub meant: Option<(String, String)>,
}

impl Finding {
    /// The finding where its expression is written.
    #[must_use]
    pub fn at(&self, span: Span) -> Diagnostic {
        let found = Diagnostic::error(self.code, span, self.message.clone());
        let found = found.with_help_if(self.help.clone());
        match &self.meant {
            Some((word, near)) => found.with_word(word, near),
            None => found,
        }
    }
}

/// What is known of an expression once it is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// Type of its value; `Any` when something is wrong.
    pub result: Type,
    /// Facts it reads, such as `todos.open`, `probes.pr`.
    pub uses: BTreeSet<String>,
    /// The strongest evidence among them.
    pub evidence: Evidence,
    /// Everything wrong with it.
    pub findings: Vec<Finding>,
}

/// Types `text` against the table of facts and the names of a pack.
#[must_use]
pub fn check(text: &str, names: &Names) -> Typed {
    match lately::read(text) {
        Ok(read) => typed(text, &read.expr, names, true),
        Err(error) => unreadable(text, error),
    }
}

/// The same, remembered for whoever asks again by the same names.
#[must_use]
pub fn check_shared(text: &str, names: &Arc<Names>) -> Rc<Typed> {
    shared(text, names, true)
}

/// The same for an expression that was checked before, so that its regexes are known to be sound:
/// compiling them to see it costs more than all else.
#[must_use]
pub fn check_again(text: &str, names: &Arc<Names>) -> Rc<Typed> {
    shared(text, names, false)
}

fn shared(text: &str, names: &Arc<Names>, regexes: bool) -> Rc<Typed> {
    match lately::read(text) {
        Ok(read) => read.typed(names, |expr| typed(text, expr, names, regexes)),
        Err(error) => Rc::new(unreadable(text, error)),
    }
}

fn typed(text: &str, expr: &Expr, names: &Names, regexes: bool) -> Typed {
    let mut checker = Checker::new(text, names, regexes);
    let result = checker.infer(expr);
    checker.typed(result)
}

/// What is known of a text that is no expression.
fn unreadable(text: &str, error: ScriptError) -> Typed {
    let names = Names::default();
    let mut checker = Checker::new(text, &names, false);
    let start = error.offset.unwrap_or(0).min(text.len());
    let help = match error.message.contains("escape sequence") {
        true => Some("a backslash within a text is written twice: `\\\\b`".to_owned()),
        false => cure(text, start),
    };
    checker.report("expression-syntax", start, error.message, help);
    checker.typed(Type::Any)
}

struct Checker<'a> {
    text: &'a str,
    names: &'a Names,
    /// Whether regexes are compiled to see that they are sound.
    regexes: bool,
    uses: BTreeSet<String>,
    evidence: Evidence,
    findings: Vec<Finding>,
}

impl<'a> Checker<'a> {
    const fn new(text: &'a str, names: &'a Names, regexes: bool) -> Self {
        let evidence = Evidence::Neutral;
        Self { text, names, regexes, uses: BTreeSet::new(), evidence, findings: Vec::new() }
    }

    fn typed(self, result: Type) -> Typed {
        let Self { uses, evidence, findings, .. } = self;
        Typed { result, uses, evidence, findings }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "Rhai has more forms than the language allows"
    )]
    fn infer(&mut self, expr: &Expr) -> Type {
        match expr {
            Expr::BoolConstant(..) => Type::Bool,
            Expr::IntegerConstant(..) => Type::Int,
            Expr::FloatConstant(..) => Type::Decimal,
            Expr::StringConstant(..) => Type::Text,
            Expr::Array(items, _) => self.list(items),
            Expr::Variable(name, _, position) => self.global(&name.1, *position),
            Expr::And(items, _) | Expr::Or(items, _) => {
                for item in items.iter() {
                    self.expect(item, Type::Bool, "both sides of && and || must be true or false");
                }
                Type::Bool
            }
            Expr::FnCall(call, position) => self.operator(call, *position),
            Expr::Dot(chain, flags, _) => {
                if flags.contains(ASTFlags::NEGATED) {
                    let help = Some("write `.`: every fact is always there".to_owned());
                    self.at(expr, "expression-syntax", "`?.` is not needed", help);
                }
                if let (Expr::Array(items, _), Expr::MethodCall(call, _)) = (&chain.lhs, &chain.rhs)
                    && let ("contains", [item]) = (call.name.as_str(), call.args.as_slice())
                {
                    items.iter().for_each(|it| self.closed_value(item, it, true));
                }
                let owner = self.infer(&chain.lhs);
                let path = self.slice(&chain.lhs).to_owned();
                self.chain(owner, &path, &chain.rhs)
            }
            Expr::Index(chain, flags, _) => {
                if flags.contains(ASTFlags::NEGATED) {
                    let help = Some("write `[`: every breaker is always there".to_owned());
                    self.at(expr, "expression-syntax", "`?[` is not needed", help);
                }
                let owner = self.infer(&chain.lhs);
                let path = self.slice(&chain.lhs).to_owned();
                self.indexed(owner, &path, &chain.rhs)
            }
            Expr::Stmt(block) => self.conditional(block.statements(), expr),
            _ => {
                let text = "this form is not part of the expression language";
                self.at(expr, "expression-syntax", text, None);
                Type::Any
            }
        }
    }

    fn list(&mut self, items: &[Expr]) -> Type {
        for item in items {
            self.expect(item, Type::Text, "a list holds texts");
        }
        Type::Texts
    }

    /// `if c { a } else { b }`
    fn conditional(&mut self, statements: &[Stmt], whole: &Expr) -> Type {
        let [Stmt::If(flow, _)] = statements else {
            let text = "only `if … { … } else { … }` is allowed as a block";
            self.at(whole, "expression-syntax", text, None);
            return Type::Any;
        };
        self.expect(&flow.expr, Type::Bool, "the condition of `if` must be true or false");
        let one = self.branch(flow.body.statements(), whole);
        let other = self.branch(flow.branch.statements(), whole);
        if one != other && one != Type::Any && other != Type::Any {
            let text = format!("one branch is a {one}, the other a {other}");
            self.at(whole, "type-mismatch", &text, None);
        }
        one
    }

    fn branch(&mut self, statements: &[Stmt], whole: &Expr) -> Type {
        match statements {
            [Stmt::Expr(expr)] => self.infer(expr),
            [Stmt::FnCall(call, position)] => self.operator(call, *position),
            [nested @ Stmt::If(..)] => self.conditional(std::slice::from_ref(nested), whole),
            _ => {
                let text = "each branch of `if` needs exactly one value, and `else` is needed";
                self.at(whole, "expression-syntax", text, None);
                Type::Any
            }
        }
    }

    fn global(&mut self, name: &str, position: Position) -> Type {
        if let Some(record) = &self.names.record {
            if record.name == name {
                return Type::Record;
            }
            let start = byte_offset(self.text, position).unwrap_or(0);
            let help = format!("rules of this file speak of `{}` only", record.name);
            let message = format!("there is no `{name}` here");
            self.report("unknown-fact", start, message, Some(help));
            return Type::Any;
        }
        if let Some(row) = members::find(Type::Global, name) {
            return row.result;
        }
        let start = byte_offset(self.text, position).unwrap_or(0);
        if let Some(spelling) = other_spelling(name) {
            let message = format!("there is no fact `{name}`");
            self.report("unknown-fact", start, message, Some(format!("write `{spelling}`")));
            return Type::Any;
        }
        let known = members::tables().filter(|it| it.owner == Type::Global).map(|it| it.name);
        let found = ("unknown-fact", start, format!("there is no fact `{name}`"));
        self.report_word(found, (name, &known.collect::<Vec<_>>()));
        Type::Any
    }

    fn expect(&mut self, expr: &Expr, wanted: Type, why: &str) -> Type {
        let found = self.infer(expr);
        if found != wanted && found != Type::Any {
            let code = if wanted == Type::Bool { "not-a-condition" } else { "type-mismatch" };
            self.at(expr, code, &format!("{why}; this is a {found}"), None);
        }
        wanted
    }

    fn at(&mut self, expr: &Expr, code: &'static str, message: &str, help: Option<String>) {
        let start = byte_offset(self.text, expr.start_position()).unwrap_or(0);
        self.report(code, start, message.to_owned(), help);
    }

    fn report(&mut self, code: &'static str, start: usize, message: String, help: Option<String>) {
        let end = start.saturating_add(token_length(self.text.get(start..).unwrap_or_default()));
        self.findings.push(Finding { code, message, start, end, help, meant: None });
    }

    /// Reports a word that is none of those that are known.
    fn report_word(
        &mut self,
        (code, start, message): (&'static str, usize, String),
        (word, known): (&str, &[&str]),
    ) {
        self.report(code, start, message, suggest::did_you_mean(word, known));
        let near = suggest::nearest(word, known);
        if let Some(finding) = self.findings.last_mut() {
            finding.meant = near.map(|near| (word.to_owned(), near.to_owned()));
        }
    }

    /// The dotted chain an expression is written as.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "Rhai has more forms than the language allows"
    )]
    fn slice(&self, expr: &Expr) -> String {
        let start = byte_offset(self.text, expr.start_position());
        let rest = start.and_then(|start| self.text.get(start..)).unwrap_or_default();
        match expr {
            Expr::Property(name, _) => name.2.to_string(),
            Expr::MethodCall(call, _) => call.name.to_string(),
            Expr::Variable(name, ..) => name.1.to_string(),
            _ => operand_text(rest),
        }
    }
}
