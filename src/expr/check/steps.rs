//! Members: fields, calls, and brackets, and the names that a pack defines.

use std::ops::Range;

use super::Checker;
use crate::ast::{Expr, ExprKind, MemberAccess, Path, Step};
use crate::hints::other_member;
use crate::pattern::check_regex;
use crate::rewrite::{Remedy, asks_for_text, tested};
use crate::table::{Member, NamedItems, list_name};
use crate::types::{Domain, Evidence, NameClass, TextMatch, Type};

/// A member whose owner was typed.
struct TypedMember<'a> {
    owner: Type,
    /// The names that lead to the owner, as `uses` has them.
    path: &'a str,
    name: &'a str,
    /// The bytes of the name and of its arguments.
    range: Range<usize>,
}

impl Checker<'_> {
    /// A name and its members.
    pub(super) fn fact(&mut self, path: &Path, arguments: &[Expr], whole: &Expr) -> Type {
        if let Some(step) = path.steps().first().filter(|it| it.optional) {
            let (sign, written, noun) = match step.access {
                MemberAccess::Item => ("?[", "[", self.names.table().items().noun),
                MemberAccess::Field | MemberAccess::Call(_) => ("?.", ".", "fact"),
            };
            let text = format!("`{sign}` is not needed");
            let before = self.text.get(..step.range.start as usize + 1).unwrap_or_default();
            let reason = format!(": every {noun} is always there");
            let fix = before.rfind(sign).map(|at| Remedy::write(at..at + sign.len(), written));
            let fix = fix.map(|it| it.because(&reason));
            self.report("expression-syntax", whole.range.start, text, fix);
        }
        let owner = self.global(path.name(), whole.range.start);
        self.members(owner, path, arguments)
    }

    /// The members of a value of type `owner`.
    pub(super) fn members(&mut self, owner: Type, path: &Path, arguments: &[Expr]) -> Type {
        let (mut owner, mut names, mut rest) = (owner, path.name().to_owned(), arguments);
        for (at, step) in path.steps().iter().enumerate() {
            let (own, others) = rest.split_at_checked(step.arguments()).unwrap_or((rest, &[]));
            rest = others;
            let name = path.member(step);
            let range = step.range.start as usize..step.range.end as usize;
            let reached = TypedMember { owner, path: &names, name, range };
            owner = match (step.access, own) {
                (MemberAccess::Field, _) => self.property(&reached),
                (MemberAccess::Call(_), arguments) => self.call(&reached, arguments),
                (MemberAccess::Item, [key]) if at == 0 => {
                    names = format!(
                        "{names}[{}]",
                        self.text.get(key.range.clone()).unwrap_or_default()
                    );
                    if !self.item(owner, path.name(), key) {
                        return Type::Any;
                    }
                    self.names.table().items().result
                }
                (MemberAccess::Item, _) => {
                    return self.item_behind(owner, path.steps().get(at - 1));
                }
            };
            if step.access != MemberAccess::Item {
                names = format!("{names}.{name}");
            }
        }
        owner
    }

    /// A name in brackets; returns whether it can be an item.
    fn item(&mut self, owner: Type, global: &str, key: &Expr) -> bool {
        let NamedItems { owner: wanted, noun, example, .. } = self.names.table().items();
        if owner != wanted && owner != Type::Any {
            let text = format!("a {owner} has nothing in brackets");
            let help = format!("only {noun}s are named so: `{example}`");
            self.at(key, "expression-syntax", &text, Some(help.into()));
            return false;
        }
        let found = self.infer(key);
        if !matches!(found, Type::Text | Type::Any) {
            let text = format!("the name of a {noun} is a text, not a {found}");
            self.at(key, "wrong-arguments", &text, None);
        }
        if let ExprKind::Text(name) = &key.kind
            && self.names.table().find(wanted, name).is_some()
        {
            let help = format!("write `{global}.{name}`, or give the {noun} another name");
            let message = format!("`{name}` is not the name of a {noun}");
            self.at(key, "unknown-fact", &message, Some(help.into()));
        }
        true
    }

    /// Brackets behind a member, which nothing has.
    fn item_behind(&mut self, owner: Type, step: Option<&Step>) -> Type {
        let text = "this form is not part of the expression language".to_owned();
        let help = "a list is asked by `.first()`, `.len()`, `.contains(…)` and `in`";
        let help = (owner == Type::Texts).then(|| help.into());
        let start = step.map_or(0, |it| it.range.start as usize);
        self.report("expression-syntax", start, text, help);
        Type::Any
    }

    fn property(&mut self, reached: &TypedMember<'_>) -> Type {
        let TypedMember { owner, path, name, ref range } = *reached;
        let start = range.start;
        match (owner, self.names.table().find(owner, name)) {
            (Type::Any, _) => Type::Any,
            (_, Some(row)) if row.params.is_none() => self.used(row, format!("{path}.{name}")),
            (_, Some(row)) => {
                let fix = match row.params {
                    Some([]) => Remedy::write(range.clone(), format!("{name}()")),
                    Some(_) | None => format!("write `{}`", row.example).into(),
                };
                let text = format!("`{name}` is called with parentheses");
                self.report("wrong-arguments", start, text, Some(fix));
                row.result
            }
            (Type::Record, None) => self.record_field(path, name, start),
            (_, None) => match self.names.table().named_members(owner) {
                Some(named) => {
                    self.pack_name(name, named.kind, start);
                    self.uses.insert(format!("{path}.{name}"));
                    self.evidence = self.evidence.max(named.evidence);
                    named.result
                }
                None => self.unknown_member(reached),
            },
        }
    }

    /// A field of the record that the rules speak of.
    fn record_field(&mut self, path: &str, name: &str, start: usize) -> Type {
        let Some(record) = self.names.record() else { return Type::Any };
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

    fn call(&mut self, reached: &TypedMember<'_>, arguments: &[Expr]) -> Type {
        let TypedMember { owner, path, name, ref range } = *reached;
        let start = range.start;
        let Some(row) = self.names.table().find(owner, name).filter(|_| owner != Type::Any) else {
            arguments.iter().for_each(|it| {
                self.infer(it);
            });
            return if owner == Type::Any { Type::Any } else { self.unknown_member(reached) };
        };
        let Some(params) = row.params else {
            let text = format!("`{}` is a field, so it has no parentheses", row.name);
            let fix = arguments.is_empty().then(|| Remedy::write(range.clone(), row.name));
            self.report("wrong-arguments", start, text, fix);
            return row.result;
        };
        if params.len() != arguments.len() {
            let (wanted, found) = (params.len(), arguments.len());
            let ending = if wanted == 1 { "" } else { "s" };
            let text = format!("`{}` takes {wanted} argument{ending}, not {found}", row.name);
            let fix = self.as_one_list(params, arguments);
            let fix = fix.unwrap_or_else(|| format!("for example `{}`", row.example).into());
            self.report("wrong-arguments", start, text, Some(fix));
            arguments.iter().for_each(|it| {
                self.infer(it);
            });
            return self.used(row, format!("{path}.{}", row.name));
        }
        for (parameter, argument) in params.iter().zip(arguments) {
            self.call_argument(row, *parameter, argument);
        }
        self.used(row, format!("{path}.{}", row.name))
    }

    /// Several texts as the list that a call takes.
    fn as_one_list(&self, params: &[(Type, Domain)], arguments: &[Expr]) -> Option<Remedy> {
        let [(Type::Texts, _)] = params else { return None };
        let are_texts = arguments.iter().all(|it| matches!(it.kind, ExprKind::Text(_)));
        let range = arguments.first()?.range.start..arguments.last()?.range.end;
        are_texts.then(|| Remedy::write(range.clone(), format!("[{}]", self.part(&range))))
    }

    /// One argument of a call, by the parameter that it is for.
    pub(super) fn call_argument(
        &mut self,
        row: &Member,
        (wanted, domain): (Type, Domain),
        argument: &Expr,
    ) {
        let found = self.infer(argument);
        if row.is_written_out && found == wanted && !matches!(argument.kind, ExprKind::Text(_)) {
            let text = format!("`{}` needs a text that is written out here", row.name);
            let fix = format!("write the text itself, for example `{}`", row.example);
            self.at(argument, "wrong-arguments", &text, Some(fix.into()));
        }
        if found != wanted && found != Type::Any {
            let text = format!("`{}` needs a {wanted} here, not a {found}", row.name);
            let written = match (wanted, &argument.kind) {
                (Type::Texts, ExprKind::Text(_)) => {
                    Some(format!("[{}]", self.part(&argument.range)))
                }
                (Type::Text, ExprKind::List(items)) => match items.as_slice() {
                    [only] => Some(self.part(&only.outer).to_owned()),
                    _ => None,
                },
                _ => None,
            };
            let fix = written.map(|it| Remedy::write(argument.range.clone(), it));
            let fix = fix.unwrap_or_else(|| format!("for example `{}`", row.example).into());
            self.at(argument, "wrong-arguments", &text, Some(fix));
        }
        self.argument(domain, argument);
    }

    /// A literal argument must name something that exists.
    fn argument(&mut self, domain: Domain, argument: &Expr) {
        if let (ExprKind::List(items), Domain::Text(compared)) = (&argument.kind, domain) {
            self.named_lists(compared, items);
        }
        let ExprKind::Text(text) = &argument.kind else { return };
        let start = argument.range.start;
        match domain {
            Domain::Text(_) => {}
            Domain::Name(kind) => self.pack_name(text, kind, start),
            Domain::Regex if !self.regexes => {}
            Domain::Regex => {
                if let Err(why) = check_regex(text) {
                    self.report("bad-regex", start, format!("the regex is not valid: {why}"), None);
                }
            }
        }
    }

    /// An item `@name` of a list must be a list of the pack.
    fn named_lists(&mut self, compared: TextMatch, items: &[Expr]) {
        let Some(kind) = self.names.table().named_lists(compared) else { return };
        for item in items {
            let ExprKind::Text(text) = &item.kind else { continue };
            let known = self.names.of_kind(kind);
            let Some(name) = list_name(text) else { continue };
            if known.contains(name) || self.names.is_incomplete() {
                continue;
            }
            let sign = text.strip_suffix(name).unwrap_or_default();
            let known: Vec<String> = known.iter().map(|it| format!("{sign}{it}")).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let message = format!("unknown {} `{name}`", kind.noun);
            self.report_word(("unknown-name", item.range.start, message), (text, &known));
        }
    }

    fn pack_name(&mut self, name: &str, kind: NameClass, start: usize) {
        let (known, what) = (self.names.of_kind(kind), kind.noun);
        if !known.contains(name) && !self.names.is_incomplete() {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let message = format!("unknown {what} `{name}`");
            match known.as_slice() {
                // A similar name of another authority means another thing.
                all if kind.is_foreign => {
                    let same = all.iter().find(|it| it.eq_ignore_ascii_case(name));
                    match same {
                        Some(same) => {
                            self.report_word(("unknown-name", start, message), (name, &[*same]))
                        }
                        None => {
                            let help = "write the name of the IANA database, a region and a large city: `Europe/Berlin`, `Asia/Kolkata`, `UTC`";
                            self.report("unknown-name", start, message, Some(help.into()));
                        }
                    }
                }
                [] => {
                    let help = format!("the pack defines no {what}");
                    self.report("unknown-name", start, message, Some(help.into()));
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

    fn unknown_member(&mut self, reached: &TypedMember<'_>) -> Type {
        let TypedMember { owner, name, ref range, .. } = *reached;
        let start = range.start;
        let mut known = self.members_of(owner);
        known.sort_unstable();
        let message = format!("{owner} has no `{name}`");
        let meant = other_member(name).and_then(|it| self.names.table().find(owner, it));
        if let Some(member) = meant {
            let written = match member.params {
                Some([]) => (range.clone(), format!("{}()", member.name)),
                Some(_) | None => (self.token(start), member.name.to_owned()),
            };
            let fix = if member.name == "matches" && !asks_for_text(self.text, range) {
                tested(self.text, range)
                    .unwrap_or_else(|| Remedy::advice(format!("write `{}`", member.example)))
            } else {
                Remedy::word(member.name, Some(written))
            };
            self.report("unknown-fact", start, message, Some(fix));
            return Type::Any;
        }
        self.report_word(("unknown-fact", start, message), (name, &known));
        Type::Any
    }
}
