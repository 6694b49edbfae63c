//! Operators: comparisons, `in`, and sums; and values that a fact never has.

use super::Checker;
use crate::ast::{Expr, ExprKind, Foreign, Relation, is_call};
use crate::builtins;
use crate::hints::{other_member, other_spelling, spelled};
use crate::rewrite::{Remedy, negation};
use crate::table::Member;
use crate::types::{Domain, TextForm, TextMatch, Type};
use policyd_yaml::suggest;
use policyd_yaml::time::Timestamp;

const fn is_equality(relation: Relation) -> bool {
    matches!(relation, Relation::Equal | Relation::NotEqual)
}

/// The fix for a number that is written as a text.
fn number_in_quotes(sides: [&Expr; 2]) -> Option<Remedy> {
    sides.into_iter().find_map(|side| {
        let ExprKind::Text(text) = &side.kind else { return None };
        let number: i64 = text.trim().parse().ok()?;
        Some(Remedy::write(side.range.clone(), number.to_string()).because(" without quotes"))
    })
}

/// Whether a text has the form of a day, or of the beginning of one.
fn is_date(text: &str) -> bool {
    let form = "0000-00-00";
    let fits = |(one, other): (u8, u8)| one == other || (one == b'0' && other.is_ascii_digit());
    let parts = [4, 7, 10].contains(&text.len());
    parts && form.bytes().zip(text.bytes()).all(fits)
}

impl Checker<'_> {
    /// A call of a free function, or an operator, that the language does not have.
    pub(super) fn unknown_function(&mut self, name: &str, expr: &Expr) -> Type {
        let known = self.members_of(Type::Global);
        let method = other_member(name).unwrap_or(name);
        let find = |owner| builtins::find(owner, method);
        let method = find(Type::Text).or_else(|| find(Type::Texts));
        let token = self.token(self.position(expr));
        let text = format!("unknown function or operator `{name}`");
        let start = token.start;
        let fix = match (other_spelling(name), method) {
            (Some("!"), _) => Some(negation(self.text, &token)),
            (Some(spelling), _) => Some(spelled(token, spelling)),
            (None, Some(method)) => Some(self.as_method(expr, method)),
            (None, None) => suggest::nearest(name, &known)
                .map(|near| Remedy::word(near, Some((token, near.to_owned())))),
        };
        self.report("unknown-fact", start, text, fix);
        Type::Any
    }

    /// `len(x)` as `x.len()`.
    fn as_method(&self, call: &Expr, method: &Member) -> Remedy {
        if let ExprKind::Other(Foreign::Function(_), items) = &call.kind
            && let [owner, arguments @ ..] = items.as_slice()
            && matches!(owner.kind, ExprKind::Fact(..) | ExprKind::Member(..))
            && method.params.is_some_and(|it| it.len() == arguments.len())
        {
            let arguments: Vec<&str> = arguments.iter().map(|it| self.part(&it.outer)).collect();
            let owner = self.part(&owner.outer);
            let written = format!("{owner}.{}({})", method.name, arguments.join(", "));
            return Remedy::write(call.range.clone(), written);
        }
        Remedy::advice(format!("ask a value for it: `{}`", method.example))
    }

    /// `item in list`, or `[…].contains(item)`.
    pub(super) fn membership(&mut self, item: &Expr, list: &Expr) -> Type {
        if is_call(item, list) {
            self.infer(list);
            if let Some(row) = builtins::find(Type::Texts, "contains") {
                self.call_argument(row, (Type::Text, Domain::Text(TextMatch::Whole)), item);
            }
        } else {
            self.expect(item, Type::Text, "the left side of `in` must be a text");
            let found = self.infer(list);
            if !matches!(found, Type::Texts | Type::Text | Type::Any) {
                self.at(list, "type-mismatch", &format!("`in` needs a list, not a {found}"), None);
            }
        }
        if let ExprKind::List(items) = &list.kind {
            items.iter().for_each(|it| self.closed_value(item, it, true));
        }
        Type::Bool
    }

    pub(super) fn comparison(&mut self, relation: Relation, one: &Expr, other: &Expr) -> Type {
        let name = relation.as_str();
        let start = one.end(self.text);
        let (left, right) = (self.infer(one), self.infer(other));
        let number = |it| matches!(it, Type::Int | Type::Decimal);
        let plain = |it| number(it) || matches!(it, Type::Bool | Type::Text | Type::Any);
        let numbers = number(left) && number(right);
        let equal = is_equality(relation);
        if left != right && left != Type::Any && right != Type::Any && !numbers {
            let are = if equal { "are never equal" } else { "have no order" };
            let text = format!("`{name}` compares a {left} with a {right}, which {are}");
            let fix = number_in_quotes([one, other])
                .unwrap_or_else(|| "compare two numbers, two texts, or two truth values".into());
            self.report("type-mismatch", start, text, Some(fix));
        } else if !plain(left) {
            let help = Some("compare one of its fields".into());
            self.report("type-mismatch", start, format!("a {left} cannot be compared"), help);
        } else if left == Type::Bool && !equal {
            let text = format!("`{name}` cannot compare true and false");
            self.report("type-mismatch", start, text, None);
        }
        self.closed_value(one, other, equal);
        self.closed_value(other, one, equal);
        Type::Bool
    }

    /// `fact == "value"` where the fact has a closed set of values. If the value is compared by its order (`equal`
    /// is false), it need not be a day of the calendar: `<= "2026-02-31"`.
    fn closed_value(&mut self, fact: &Expr, value: &Expr, equal: bool) {
        let (Some(fact), ExprKind::Text(text)) = (fact.fact(), &value.kind) else { return };
        let start = value.range.start;
        let is_day = fact.member(self.names).is_some_and(|it| it.form == TextForm::Day);
        let path = fact.text();
        if is_day && !is_date(text) {
            let message = format!("`{path}` is never like \"{text}\", and is compared as a text");
            let help = Some("write the year, the month and the day: \"2027-01-31\"".into());
            return self.report("impossible-value", start, message, help);
        }
        if is_day && equal && Timestamp::parse(text).is_none() {
            let message = format!("`{path}` is never \"{text}\"");
            let help = Some("write a day of the calendar: \"2027-01-31\"".into());
            return self.report("impossible-value", start, message, help);
        }
        let known = fact.closed_values(self.names);
        if !known.is_empty() && !known.contains(&text.as_str()) {
            let named: Vec<&str> = known.into_iter().filter(|it| !it.is_empty()).collect();
            let message = format!("`{path}` is never \"{text}\"");
            self.report_word(("impossible-value", start, message), (text, &named));
        }
    }

    pub(super) fn sum(&mut self, one: &Expr, other: &Expr) -> Type {
        let (left, right) = (self.infer(one), self.infer(other));
        match (left, right) {
            (Type::Int, Type::Int) => Type::Int,
            (Type::Text, Type::Text) => Type::Text,
            (Type::Any, _) | (_, Type::Any) => Type::Any,
            _ => {
                let text = format!("`+` cannot add a {left} and a {right}");
                let help = Some("add two numbers or two texts; templates join anything".into());
                self.report("type-mismatch", one.end(self.text), text, help);
                Type::Any
            }
        }
    }
}
