//! What stands between two values: comparisons, `in`, sums; and the values that a fact never has.

use rhai::{Expr, FnCallExpr, Position};

use super::Checker;
use crate::script::engine::byte_offset;
use crate::script::members;
use crate::script::paths::closed_values;
use crate::script::tokens::other_spelling;
use crate::script::types::Type;
use crate::source::suggest;
use crate::time::Timestamp;

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

impl Checker<'_> {
    pub(super) fn operator(&mut self, call: &FnCallExpr, position: Position) -> Type {
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
            items.iter().for_each(|it| self.closed_value(item, it, true));
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
        let equal = plain_equality(name);
        self.closed_value(one, other, equal);
        self.closed_value(other, one, equal);
        Type::Bool
    }

    /// `fact == "value"` where the fact can only have certain values. What is compared by its order
    /// (`equal` is false) may be no day of the calendar: `now.date <= "2026-02-31"`.
    pub(super) fn closed_value(&mut self, fact: &Expr, value: &Expr, equal: bool) {
        let Expr::StringConstant(text, _) = value else { return };
        let path = self.slice(fact);
        let start = || byte_offset(self.text, value.start_position()).unwrap_or(0);
        if path == "now.date" && !is_date(text) {
            let message = format!("`now.date` is never like \"{text}\", and is compared as a text");
            let help = Some("write the year, the month and the day: \"2027-01-31\"".to_owned());
            return self.report("impossible-value", start(), message, help);
        }
        if path == "now.date" && equal && Timestamp::parse(text).is_none() {
            let message = format!("`now.date` is never \"{text}\"");
            let help = Some("write a day of the calendar: \"2027-01-31\"".to_owned());
            return self.report("impossible-value", start(), message, help);
        }
        let known = closed_values(&path, self.names);
        if !known.is_empty() && !known.contains(&text.as_str()) {
            let named: Vec<&str> = known.into_iter().filter(|it| !it.is_empty()).collect();
            let message = format!("`{}` is never \"{text}\"", self.slice(fact));
            self.report_word(("impossible-value", start(), message), (text, &named));
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
}
