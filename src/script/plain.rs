//! Expressions of plain form, evaluated without the engine: facts, comparisons, `&&`, `||`, `!`.
//! Most conditions are of that form, and setting the engine up for one costs more than its value.
//! INVARIANT: a value is the one that the engine gives. Whatever is of another form, or goes wrong,
//! is left to the engine.

use rhai::{AST, Array, Dynamic, Expr, FnCallExpr, ImmutableString, Scope, Stmt};

use super::context::Object;
use super::member_value;

/// The value of an expression of plain form.
pub(super) fn value(ast: &AST, globals: &Scope<'static>) -> Option<Dynamic> {
    let plain = Plain { globals };
    match ast.statements() {
        [Stmt::Expr(expr)] => plain.value(expr),
        [Stmt::FnCall(call, _)] => plain.operator(call),
        _ => None,
    }
}

struct Plain<'s> {
    globals: &'s Scope<'static>,
}

impl Plain<'_> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "Rhai has more forms than are plain")]
    fn value(&self, expr: &Expr) -> Option<Dynamic> {
        Some(match expr {
            Expr::BoolConstant(value, _) => (*value).into(),
            Expr::IntegerConstant(value, _) => (*value).into(),
            Expr::StringConstant(text, _) => text.clone().into(),
            Expr::Array(items, _) => {
                items.iter().map(|it| self.value(it)).collect::<Option<Array>>()?.into()
            }
            Expr::Variable(name, ..) => self.globals.get(&name.1)?.clone(),
            Expr::And(items, _) => self.first(items, false)?.into(),
            Expr::Or(items, _) => self.first(items, true)?.into(),
            Expr::FnCall(call, _) => self.operator(call)?,
            Expr::Dot(chain, flags, _) if flags.is_empty() => {
                let mut owner = self.value(&chain.lhs)?;
                let mut rest = &chain.rhs;
                while let Expr::Dot(chain, flags, _) = rest {
                    if !flags.is_empty() {
                        return None;
                    }
                    owner = self.member(owner, &chain.lhs)?;
                    rest = &chain.rhs;
                }
                self.member(owner, rest)?
            }
            Expr::Index(chain, flags, _) if flags.is_empty() => {
                let Expr::Dot(inside, flags, _) = &chain.rhs else { return None };
                let key = self.value(&inside.lhs)?.into_immutable_string().ok()?;
                let owner = self.value(&chain.lhs)?;
                let owner = member_value(&*owner.read_lock::<Object>()?, &key, &[]).ok()?;
                if !flags.is_empty() || matches!(inside.rhs, Expr::Dot(..)) {
                    return None;
                }
                self.member(owner, &inside.rhs)?
            }
            _ => return None,
        })
    }

    /// Whether one of the items has this value; those after it are not looked at.
    fn first(&self, items: &[Expr], wanted: bool) -> Option<bool> {
        for item in items {
            if self.value(item)?.as_bool().ok()? == wanted {
                return Some(wanted);
            }
        }
        Some(!wanted)
    }

    fn operator(&self, call: &FnCallExpr) -> Option<Dynamic> {
        let mut values = call.args.iter().map(|it| self.value(it));
        let value: bool = match (call.name.as_str(), call.args.len()) {
            ("!", 1) => !values.next()??.as_bool().ok()?,
            ("==" | "!=" | "<" | "<=" | ">" | ">=", 2) => {
                compare(&call.name, &values.next()??, &values.next()??)?
            }
            // How `text in list` is called.
            ("contains", 2) => {
                let (list, text) = (values.next()??, values.next()??);
                let text = text.into_immutable_string().ok()?;
                contains(&list.into_array().ok()?, &text)?
            }
            _ => return None,
        };
        Some(value.into())
    }

    /// A member of a fact, or what texts and lists are asked most.
    #[expect(clippy::wildcard_enum_match_arm, reason = "Rhai has more forms than are plain")]
    fn member(&self, owner: Dynamic, member: &Expr) -> Option<Dynamic> {
        let (name, arguments) = match member {
            Expr::Property(name, _) => (&name.2, None),
            Expr::MethodCall(call, _) => (&call.name, Some(&call.args)),
            _ => return None,
        };
        let values = arguments.into_iter().flatten().map(|it| self.value(it));
        let values = values.collect::<Option<Vec<_>>>()?;
        if let Some(object) = owner.read_lock::<Object>() {
            return member_value(&object, name, &values).ok();
        }
        arguments?;
        let text = |value: Option<&Dynamic>| value?.clone().into_immutable_string().ok();
        if let Some(list) = owner.read_lock::<Array>() {
            return match (name.as_str(), values.len()) {
                ("len", 0) => Some(super::builtins::number(list.len()).into()),
                ("contains", 1) => Some(contains(&list, &text(values.first())?)?.into()),
                _ => None,
            };
        }
        let owner = owner.read_lock::<ImmutableString>()?;
        let part = text(values.first());
        match (name.as_str(), part, values.len()) {
            ("contains", Some(part), 1) => Some(owner.contains(part.as_str()).into()),
            ("starts_with", Some(part), 1) => Some(owner.starts_with(part.as_str()).into()),
            ("ends_with", Some(part), 1) => Some(owner.ends_with(part.as_str()).into()),
            _ => None,
        }
    }
}

/// Whether a list of texts has one; nothing where it holds anything else.
fn contains(list: &Array, wanted: &str) -> Option<bool> {
    let mut found = false;
    for item in list {
        found |= item.read_lock::<ImmutableString>()?.as_str() == wanted;
    }
    Some(found)
}

/// Compares two values of one type.
fn compare(relation: &str, one: &Dynamic, other: &Dynamic) -> Option<bool> {
    let order = if let (Ok(one), Ok(other)) = (one.as_int(), other.as_int()) {
        one.cmp(&other)
    } else if let (Ok(one), Ok(other)) = (one.as_bool(), other.as_bool()) {
        if !matches!(relation, "==" | "!=") {
            return None;
        }
        one.cmp(&other)
    } else {
        let one = one.read_lock::<ImmutableString>()?;
        one.as_str().cmp(other.read_lock::<ImmutableString>()?.as_str())
    };
    match relation {
        "==" => Some(order.is_eq()),
        "!=" => Some(order.is_ne()),
        "<" => Some(order.is_lt()),
        "<=" => Some(order.is_le()),
        ">" => Some(order.is_gt()),
        ">=" => Some(order.is_ge()),
        _ => None,
    }
}
