//! Computes the value of an expression from its tree, without Rhai: facts, comparisons, sums, `&&`, `||`, `!`.
//! Most conditions need nothing else, and setting up Rhai costs more than their value.
//! INVARIANT: a value is the one that Rhai computes, and so is the error of a fact; debug builds evaluate both. Only
//! texts and lists may be longer here than Rhai's limits. Everything else is left to Rhai.

use rhai::{Array, Dynamic, ImmutableString};

use super::ast::{Expr, ExprKind, MemberAccess, Path, Relation, Step, is_call};
use super::pattern::prose_regex;
use super::scope::Globals;
use super::table::Handle;
use super::text_list::TextList;
use super::{FactError, builtins};

/// Why an expression has no value here.
#[derive(Debug)]
pub(super) enum NoValue {
    /// Only Rhai can tell.
    Beyond,
    /// A fact has no value.
    Failed(FactError),
}

type ExprResult<T = Dynamic> = Result<T, NoValue>;

impl Expr {
    /// Computes the value.
    pub(super) fn value<H: Handle>(&self, globals: &Globals<H>) -> ExprResult {
        let value = |it: &Self| it.value(globals);
        Ok(match &self.kind {
            ExprKind::Bool(value) => (*value).into(),
            ExprKind::Int(value) => (*value).into(),
            ExprKind::Text(text) => text.as_str().into(),
            ExprKind::List(items) => items.iter().map(value).collect::<ExprResult<Array>>()?.into(),
            ExprKind::And(items) => first(items, false, globals)?.into(),
            ExprKind::Or(items) => first(items, true, globals)?.into(),
            ExprKind::Not(one) => (!one.is_true(globals)?).into(),
            ExprKind::Compare(relation, one, other) => {
                let order = compare(*relation, &value(one)?, &value(other)?);
                order.ok_or(NoValue::Beyond)?.into()
            }
            ExprKind::Arithmetic(sign, one, other) => {
                calculate(*sign, &value(one)?, &value(other)?).ok_or(NoValue::Beyond)?
            }
            ExprKind::In(item, list) => {
                // Rhai evaluates the arguments of a call before its list; then only Rhai knows what fails first.
                let (list, item) = match is_call(item, list) {
                    true => {
                        let item = value(item).map_err(|_| NoValue::Beyond)?;
                        (value(list)?, item)
                    }
                    false => (value(list)?, value(item)?),
                };
                is_in(&list, &item).ok_or(NoValue::Beyond)?.into()
            }
            ExprKind::Fact(path, arguments) => {
                let handle = globals.handle(path.name()).map(Owner::Handle);
                let owner = match handle {
                    Some(owner) => owner,
                    None => Owner::Value(globals.value(path.name()).ok_or(NoValue::Beyond)?),
                };
                owner.members(path, arguments, globals)?
            }
            ExprKind::Member(base, path, arguments) => {
                let base = base.value(globals).map_err(|it| it.before(arguments))?;
                Owner::<H>::Value(base).members(path, arguments, globals)?
            }
            ExprKind::Decimal(_)
            | ExprKind::Negative(_)
            | ExprKind::If(_)
            | ExprKind::Other(..) => return Err(NoValue::Beyond),
        })
    }

    /// Whether the value is `true`.
    fn is_true<H: Handle>(&self, globals: &Globals<H>) -> ExprResult<bool> {
        self.value(globals)?.as_bool().map_err(|_| NoValue::Beyond)
    }

    /// Whether the value is written out, so that evaluating it cannot fail.
    fn is_literal(&self) -> bool {
        if let ExprKind::List(items) = &self.kind {
            return items.iter().all(Self::is_literal);
        }
        matches!(self.kind, ExprKind::Bool(_) | ExprKind::Int(_) | ExprKind::Text(_))
    }
}

impl NoValue {
    /// The error of a call. Rhai knows whether another type has a function with this name.
    fn of_call(error: FactError) -> Self {
        match error {
            FactError::NoMember(_) => Self::Beyond,
            FactError::NotRecorded(_) | FactError::Unavailable(_) => Self::Failed(error),
        }
    }

    /// The error of something that Rhai evaluates after these arguments.
    fn before(self, arguments: &[Expr]) -> Self {
        if arguments.iter().all(Expr::is_literal) { self } else { Self::Beyond }
    }
}

/// A value with members. Most are parts of the context by their names, which need no value of Rhai's.
enum Owner<H> {
    Handle(H),
    Value(Dynamic),
}

impl<H: Handle> Owner<H> {
    /// The value of a path that begins here. Rhai evaluates the arguments of all its members first.
    fn members(self, path: &Path, arguments: &[Expr], globals: &Globals<H>) -> ExprResult {
        let (mut owner, mut rest) = (self, arguments);
        for step in path.steps() {
            let (own, others) = rest.split_at_checked(step.arguments()).ok_or(NoValue::Beyond)?;
            rest = others;
            let value = owner.step(path.member(step), step, own, globals);
            owner = Self::Value(value.map_err(|it| it.before(others))?);
        }
        Ok(match owner {
            Self::Handle(handle) => Dynamic::from(handle),
            Self::Value(value) => value,
        })
    }

    fn step(&self, name: &str, step: &Step, own: &[Expr], globals: &Globals<H>) -> ExprResult {
        let value = |it: &Expr| it.value(globals).map_err(|_| NoValue::Beyond);
        match (step.access, own) {
            _ if step.optional => Err(NoValue::Beyond),
            (MemberAccess::Field, _) => self.member(name, None),
            (MemberAccess::Item, own) => {
                let key = value(own.first().ok_or(NoValue::Beyond)?)?;
                let key = key.into_immutable_string().map_err(|_| NoValue::Beyond)?;
                let item = self.ask(|it| it.value(&key, &[]));
                item.ok_or(NoValue::Beyond)?.map_err(NoValue::Failed)
            }
            (MemberAccess::Call(_), [only]) => match step.texts(own) {
                Some(list) => self.listed(name, list),
                None => self.member(name, Some(&[value(only)?])),
            },
            (MemberAccess::Call(_), all) => {
                let all = all.iter().map(value).collect::<ExprResult<Vec<_>>>()?;
                self.member(name, Some(&all))
            }
        }
    }

    /// Asks the part of the context; `None` for another value.
    fn ask<T>(&self, ask: impl FnOnce(&H) -> T) -> Option<T> {
        match self {
            Self::Handle(handle) => Some(ask(handle)),
            Self::Value(value) => value.read_lock::<H>().map(|it| ask(&it)),
        }
    }

    /// A member of a fact, of a text, or of a list.
    fn member(&self, name: &str, arguments: Option<&[Dynamic]>) -> ExprResult {
        let found = self.ask(|it| match arguments {
            Some(arguments) => it.call(name, arguments).map_err(NoValue::of_call),
            None => it.value(name, &[]).map_err(NoValue::Failed),
        });
        if let Some(found) = found {
            return found;
        }
        let Self::Value(value) = self else { return Err(NoValue::Beyond) };
        number_of(value, name, arguments)
            .map(|it| it.map(Dynamic::from).map_err(NoValue::Failed))
            .unwrap_or_else(|| member_of(value, name, arguments).ok_or(NoValue::Beyond))
    }

    /// A member whose argument is a list of text constants.
    fn listed(&self, name: &str, list: &TextList) -> ExprResult {
        let argument = || [Dynamic::from(list.clone())];
        if let Some(found) = self.ask(|it| it.call(name, &argument())) {
            return found.map_err(NoValue::of_call);
        }
        let Self::Value(value) = self else { return Err(NoValue::Beyond) };
        let items = value.read_lock::<Array>().ok_or(NoValue::Beyond)?;
        let mut items = builtins::texts(&items);
        match name {
            "any_in" => Ok(items.any(|it| list.has(&it)).into()),
            "all_in" => Ok(items.all(|it| list.has(&it)).into()),
            _ => Err(NoValue::Beyond),
        }
    }
}

/// Whether one of the items has the wanted value. The items behind it are not evaluated.
fn first<H: Handle>(items: &[Expr], wanted: bool, globals: &Globals<H>) -> ExprResult<bool> {
    for item in items {
        if item.is_true(globals)? == wanted {
            return Ok(wanted);
        }
    }
    Ok(!wanted)
}

/// The number that a text or a list shows; `None` for another member.
fn number_of(
    owner: &Dynamic,
    name: &str,
    arguments: Option<&[Dynamic]>,
) -> Option<Result<i64, FactError>> {
    match (name, arguments?) {
        ("sum", []) => Some(builtins::sum_of(builtins::texts(&owner.read_lock::<Array>()?))),
        ("sum" | "number", [regex]) => {
            let regex = regex.read_lock::<ImmutableString>()?;
            let text = owner.read_lock::<ImmutableString>()?;
            Some(match name {
                "sum" => builtins::shown_sum(&text, &regex),
                _ => builtins::shown_number(&text, &regex),
            })
        }
        _ => None,
    }
}

/// The common members of texts and lists.
fn member_of(owner: &Dynamic, name: &str, arguments: Option<&[Dynamic]>) -> Option<Dynamic> {
    let values = arguments?;
    let text = |value: Option<&Dynamic>| value?.clone().into_immutable_string().ok();
    if let Some(list) = owner.read_lock::<Array>() {
        return match (name, values.len()) {
            ("len", 0) => Some(builtins::number(list.len()).into()),
            ("contains", 1) => Some(contains(&list, &text(values.first())?)?.into()),
            ("any_in", 1) => {
                let other = values.first()?.read_lock::<Array>()?;
                Some(builtins::any_in(&list, &other).into())
            }
            ("all_in", 1) => {
                let other = values.first()?.read_lock::<Array>()?;
                Some(builtins::all_in(&list, &other).into())
            }
            ("first", 0) => Some(builtins::first(&list).into()),
            ("join", 1) => Some(builtins::join(&list, &text(values.first())?).into()),
            _ => None,
        };
    }
    let owner = owner.read_lock::<ImmutableString>()?;
    let part = text(values.first());
    match (name, part, values.len()) {
        ("contains", Some(part), 1) => Some(owner.contains(part.as_str()).into()),
        ("starts_with", Some(part), 1) => Some(owner.starts_with(part.as_str()).into()),
        ("ends_with", Some(part), 1) => Some(owner.ends_with(part.as_str()).into()),
        ("matches", Some(regex), 1) => Some(prose_regex(&regex).is_match(&owner).into()),
        ("lower", None, 0) => Some(owner.to_lowercase().into()),
        ("trim", None, 0) => Some(owner.trim().into()),
        _ => None,
    }
}

/// Whether a list of texts contains a text; `None` for other values.
fn is_in(list: &Dynamic, text: &Dynamic) -> Option<bool> {
    contains(&*list.read_lock::<Array>()?, &text.read_lock::<ImmutableString>()?)
}

/// Whether a list of texts contains a text; `None` if it contains anything but texts.
fn contains(list: &Array, wanted: &str) -> Option<bool> {
    let mut found = false;
    for item in list {
        found |= item.read_lock::<ImmutableString>()?.as_str() == wanted;
    }
    Some(found)
}

/// Adds, subtracts, or multiplies two numbers, or adds two texts; `None` if only Rhai can.
fn calculate(sign: char, one: &Dynamic, other: &Dynamic) -> Option<Dynamic> {
    if let (Ok(one), Ok(other)) = (one.as_int(), other.as_int()) {
        let result = match sign {
            '+' => one.checked_add(other),
            '-' => one.checked_sub(other),
            '*' => one.checked_mul(other),
            _ => None,
        };
        return result.map(Dynamic::from);
    }
    let one = one.read_lock::<ImmutableString>()?;
    let other = other.read_lock::<ImmutableString>()?;
    (sign == '+').then(|| format!("{}{}", *one, *other).into())
}

/// Compares two values of one type; `None` if only Rhai can.
fn compare(relation: Relation, one: &Dynamic, other: &Dynamic) -> Option<bool> {
    let order = if let (Ok(one), Ok(other)) = (one.as_int(), other.as_int()) {
        one.cmp(&other)
    } else if let (Ok(one), Ok(other)) = (one.as_bool(), other.as_bool()) {
        if !matches!(relation, Relation::Equal | Relation::NotEqual) {
            return None;
        }
        one.cmp(&other)
    } else {
        let one = one.read_lock::<ImmutableString>()?;
        one.as_str().cmp(other.read_lock::<ImmutableString>()?.as_str())
    };
    Some(match relation {
        Relation::Equal => order.is_eq(),
        Relation::NotEqual => order.is_ne(),
        Relation::Less => order.is_lt(),
        Relation::AtMost => order.is_le(),
        Relation::Greater => order.is_gt(),
        Relation::AtLeast => order.is_ge(),
    })
}
