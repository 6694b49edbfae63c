//! Types an expression at load: every unknown name, wrong type and wrong argument, with its place.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use rhai::{ASTFlags, Expr, FnCallExpr, Position, Stmt};

use super::members::{self, Member};
use super::paths::closed_values;
use super::pattern::compile_regex;
use super::tokens::{cure, operand_text, other_spelling, token_length};
use super::types::{Domain, Evidence, Names, Type};
use super::{ScriptError, byte_offset, lately};
use crate::source::{Diagnostic, Span, suggest};
use crate::time::Timestamp;

mod brackets;

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

fn plain_equality(operator: &str) -> bool {
    matches!(operator, "==" | "!=")
}

/// The cure where a number is written as a text.
fn number_in_quotes(sides: [&Expr; 2]) -> Option<String> {
    sides.into_iter().find_map(|it| {
        let Expr::StringConstant(text, _) = it else { return None };
        let number: i64 = text.trim().parse().ok()?;
        Some(format!("write {number} without quotes"))
    })
}

/// Whether a text is written as `now.date` is; the beginning of one orders as it should.
fn is_date(text: &str) -> bool {
    let form = "0000-00-00";
    let fits = |(one, other): (u8, u8)| one == other || (one == b'0' && other.is_ascii_digit());
    let parts = [4, 7, 10].contains(&text.len());
    parts && form.bytes().zip(text.bytes()).all(fits)
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
                    items.iter().for_each(|it| self.closed_value(item, it));
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

    /// What follows a dot.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "Rhai has more forms than the language allows"
    )]
    fn chain(&mut self, owner: Type, path: &str, expr: &Expr) -> Type {
        match expr {
            Expr::Property(name, position) => self.property(owner, path, &name.2, *position),
            Expr::MethodCall(call, position) => self.call(owner, path, call, *position),
            Expr::Dot(chain, _, _) => {
                let step = self.chain(owner, path, &chain.lhs);
                let path = format!("{path}.{}", self.slice(&chain.lhs));
                self.chain(step, &path, &chain.rhs)
            }
            _ => {
                let text = "this form is not part of the expression language";
                let of_list = matches!(expr, Expr::Index(part, ..) if self.chain(owner, path, &part.lhs) == Type::Texts);
                let help = "a list is asked by `.first()`, `.len()`, `.contains(…)` and `in`";
                let help = of_list.then(|| help.to_owned());
                self.at(expr, "expression-syntax", text, help);
                Type::Any
            }
        }
    }

    fn property(&mut self, owner: Type, path: &str, name: &str, position: Position) -> Type {
        let start = byte_offset(self.text, position).unwrap_or(0);
        match (owner, members::find(owner, name)) {
            (Type::Any, _) => Type::Any,
            (_, Some(row)) if row.params.is_none() => self.used(row, format!("{path}.{name}")),
            (_, Some(row)) => {
                let help = Some(format!("write `{}`", row.example));
                let text = format!("`{name}` is called with parentheses");
                self.report("wrong-arguments", start, text, help);
                row.result
            }
            (Type::Preferences, None) => {
                self.pack_name(name, &self.names.preferences, "preference", start);
                self.uses.insert(format!("prefs.{name}"));
                Type::Bool
            }
            (Type::Probes, None) => {
                self.pack_name(name, &self.names.probes, "probe", start);
                self.uses.insert(format!("probes.{name}"));
                self.evidence = self.evidence.max(Evidence::Structure);
                Type::Probe
            }
            (Type::Record, None) => self.record_field(path, name, start),
            (_, None) => self.unknown_member(owner, name, start),
        }
    }

    /// A field of the record that the rules speak of.
    fn record_field(&mut self, path: &str, name: &str, start: usize) -> Type {
        let Some(record) = self.names.record.clone() else { return Type::Any };
        let Some(field) = record.field(name) else {
            let known: Vec<&str> = record.fields.iter().map(|it| it.name.as_str()).collect();
            let message = format!("`{}` has no `{name}`", record.name);
            self.report_word(("unknown-fact", start, message), (name, &known));
            return Type::Any;
        };
        self.uses.insert(format!("{path}.{name}"));
        self.evidence = Evidence::Structure;
        field.result
    }

    fn call(&mut self, owner: Type, path: &str, call: &FnCallExpr, position: Position) -> Type {
        let start = byte_offset(self.text, position).unwrap_or(0);
        let row = members::find(owner, &call.name);
        let (Some(row), true) = (row, owner != Type::Any) else {
            call.args.iter().for_each(|it| {
                self.infer(it);
            });
            return if owner == Type::Any {
                Type::Any
            } else {
                self.unknown_member(owner, &call.name, start)
            };
        };
        let Some(params) = row.params else {
            let text = format!("`{}` is a field: write it without parentheses", row.name);
            self.report("wrong-arguments", start, text, None);
            return row.result;
        };
        if params.len() != call.args.len() {
            let text = format!(
                "`{}` takes {} argument(s), not {}",
                row.name,
                params.len(),
                call.args.len()
            );
            self.report(
                "wrong-arguments",
                start,
                text,
                Some(format!("for example `{}`", row.example)),
            );
        }
        for ((wanted, domain), arg) in params.iter().zip(call.args.iter()) {
            let found = self.infer(arg);
            if found != *wanted && found != Type::Any {
                let text = format!("`{}` needs a {wanted} here, not a {found}", row.name);
                let help = Some(format!("for example `{}`", row.example));
                self.at(arg, "argument-type", &text, help);
            }
            self.argument(*domain, arg);
        }
        self.used(row, format!("{path}.{}", row.name))
    }

    /// A literal argument must name something that exists.
    fn argument(&mut self, domain: Domain, arg: &Expr) {
        let Expr::StringConstant(text, _) = arg else { return };
        let start = byte_offset(self.text, arg.start_position()).unwrap_or(0);
        let names = self.names;
        match domain {
            Domain::Free => {}
            Domain::CommandKind => {
                self.pack_name(text, &names.command_kinds, "command kind", start)
            }
            Domain::FileKind => self.pack_name(text, &names.file_kinds, "file kind", start),
            Domain::Content => self.pack_name(text, &names.contents, "content pattern", start),
            Domain::Text => self.pack_name(text, &names.texts, "text pattern", start),
            Domain::Tier => self.pack_name(text, &names.tiers, "tier of the context", start),
            Domain::Regex if !self.regexes => {}
            Domain::Regex => {
                if let Err(why) = compile_regex(text) {
                    self.report("bad-regex", start, format!("the regex is not valid: {why}"), None);
                }
            }
        }
    }

    fn pack_name(&mut self, name: &str, known: &BTreeSet<String>, what: &str, start: usize) {
        if !known.contains(name) && !self.names.incomplete {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let message = format!("there is no {what} `{name}`");
            match known.as_slice() {
                [] => {
                    let help = format!("the pack defines no {what}");
                    self.report("unknown-name", start, message, Some(help));
                }
                known => self.report_word(("unknown-name", start, message), (name, known)),
            }
        }
    }

    fn used(&mut self, row: &Member, path: String) -> Type {
        if !matches!(row.owner, Type::Text | Type::Texts) {
            self.uses.insert(path);
        }
        self.evidence = self.evidence.max(row.evidence);
        row.result
    }

    fn unknown_member(&mut self, owner: Type, name: &str, start: usize) -> Type {
        let mut known: Vec<&str> =
            members::tables().filter(|it| it.owner == owner).map(|it| it.name).collect();
        known.sort_unstable();
        let found = ("unknown-fact", start, format!("{owner} has no `{name}`"));
        self.report_word(found, (name, &known));
        Type::Any
    }

    fn operator(&mut self, call: &FnCallExpr, position: Position) -> Type {
        let start = byte_offset(self.text, position).unwrap_or(0);
        let args: Vec<&Expr> = call.args.iter().collect();
        match (call.name.as_str(), args.as_slice()) {
            ("!", [one]) => self.expect(one, Type::Bool, "`!` needs true or false"),
            ("-", [one]) => self.expect(one, Type::Int, "`-` needs a number"),
            ("contains", [list, item]) => self.membership(list, item),
            ("==" | "!=" | "<" | "<=" | ">" | ">=", [one, other]) => {
                self.comparison(&call.name, one, other, start)
            }
            ("+", [one, other]) => self.sum(one, other, start),
            ("-" | "*" | "/" | "%", [one, other]) => {
                self.expect(one, Type::Int, "arithmetic needs numbers");
                self.expect(other, Type::Int, "arithmetic needs numbers")
            }
            _ => {
                let known: Vec<&str> = members::tables()
                    .filter(|it| matches!(it.owner, Type::Global))
                    .map(|it| it.name)
                    .collect();
                let method = members::find(Type::Text, &call.name)
                    .or_else(|| members::find(Type::Texts, &call.name));
                let help = other_spelling(&call.name)
                    .map(|it| format!("write `{it}`"))
                    .or_else(|| method.map(|it| format!("ask a value for it: `{}`", it.example)))
                    .or_else(|| {
                        suggest::nearest(&call.name, &known)
                            .map(|it| format!("did you mean `{it}`?"))
                    });
                let text = format!("there is no function or operator `{}`", call.name);
                self.report("unknown-function", start, text, help);
                Type::Any
            }
        }
    }

    /// `item in list`
    fn membership(&mut self, list: &Expr, item: &Expr) -> Type {
        self.expect(item, Type::Text, "the left side of `in` must be a text");
        let found = self.infer(list);
        if !matches!(found, Type::Texts | Type::Text | Type::Any) {
            self.at(list, "type-mismatch", &format!("`in` needs a list, not a {found}"), None);
        }
        if let Expr::Array(items, _) = list {
            items.iter().for_each(|it| self.closed_value(item, it));
        }
        Type::Bool
    }

    fn comparison(&mut self, name: &str, one: &Expr, other: &Expr, start: usize) -> Type {
        let (left, right) = (self.infer(one), self.infer(other));
        let number = |it| matches!(it, Type::Int | Type::Decimal);
        let plain = |it| number(it) || matches!(it, Type::Bool | Type::Text | Type::Any);
        let numbers = number(left) && number(right);
        if left != right && left != Type::Any && right != Type::Any && !numbers {
            let are = if plain_equality(name) { "are never equal" } else { "have no order" };
            let text = format!("`{name}` compares a {left} with a {right}, which {are}");
            let help = number_in_quotes([one, other]).unwrap_or_else(|| {
                "compare two numbers, two texts, or two truth values".to_owned()
            });
            self.report("never-equal", start, text, Some(help));
        } else if !plain(left) {
            let help = Some("compare one of its fields".to_owned());
            self.report("type-mismatch", start, format!("a {left} cannot be compared"), help);
        } else if left == Type::Bool && !plain_equality(name) {
            let text = format!("`{name}` cannot compare true and false");
            self.report("type-mismatch", start, text, None);
        }
        self.closed_value(one, other);
        self.closed_value(other, one);
        if plain_equality(name) {
            self.calendar_day(one, other);
            self.calendar_day(other, one);
        }
        Type::Bool
    }

    /// `now.date == "2026-02-31"`, which no day is; such a text orders as it should.
    fn calendar_day(&mut self, fact: &Expr, value: &Expr) {
        let Expr::StringConstant(text, _) = value else { return };
        if self.slice(fact) == "now.date" && is_date(text) && Timestamp::parse(text).is_none() {
            let start = byte_offset(self.text, value.start_position()).unwrap_or(0);
            let message = format!("`now.date` is never \"{text}\"");
            let help = Some("write a day of the calendar: \"2027-01-31\"".to_owned());
            self.report("impossible-value", start, message, help);
        }
    }

    /// `fact == "value"` where the fact can only have certain values.
    fn closed_value(&mut self, fact: &Expr, value: &Expr) {
        let Expr::StringConstant(text, _) = value else { return };
        let path = self.slice(fact);
        if path == "now.date" && !is_date(text) {
            let start = byte_offset(self.text, value.start_position()).unwrap_or(0);
            let message = format!("`now.date` is never like \"{text}\", and is compared as a text");
            let help = Some("write the year, the month and the day: \"2027-01-31\"".to_owned());
            return self.report("impossible-value", start, message, help);
        }
        let known = closed_values(&path, self.names);
        if !known.is_empty() && !known.contains(&text.as_str()) {
            let start = byte_offset(self.text, value.start_position()).unwrap_or(0);
            let named: Vec<&str> = known.into_iter().filter(|it| !it.is_empty()).collect();
            let message = format!("`{}` is never \"{text}\"", self.slice(fact));
            self.report_word(("impossible-value", start, message), (text, &named));
        }
    }

    fn sum(&mut self, one: &Expr, other: &Expr, start: usize) -> Type {
        let (left, right) = (self.infer(one), self.infer(other));
        match (left, right) {
            (Type::Int, Type::Int) => Type::Int,
            (Type::Text, Type::Text) => Type::Text,
            (Type::Any, _) | (_, Type::Any) => Type::Any,
            _ => {
                let text = format!("`+` cannot add a {left} and a {right}");
                let help = Some("add two numbers or two texts; templates join anything".to_owned());
                self.report("type-mismatch", start, text, help);
                Type::Any
            }
        }
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
