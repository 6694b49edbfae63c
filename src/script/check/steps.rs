//! What follows a dot: fields and calls of a value, and the names that a pack defines.

use std::collections::BTreeSet;

use rhai::{Expr, FnCallExpr, Position};

use super::Checker;
use crate::script::engine::byte_offset;
use crate::script::members::{self, Member};
use crate::script::pattern::compile_regex;
use crate::script::types::{Domain, Evidence, Type};

impl Checker<'_> {
    /// What follows a dot.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "Rhai has more forms than the language allows"
    )]
    pub(super) fn chain(&mut self, owner: Type, path: &str, expr: &Expr) -> Type {
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

    pub(super) fn used(&mut self, row: &Member, path: String) -> Type {
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
}
