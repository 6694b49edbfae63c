//! Expressions of plain form, evaluated without the engine: facts, comparisons, sums, `&&`, `||`, `!`.
//! Most conditions are of that form. Parsing one, and setting the engine up for it, costs more than
//! its value: so the plain form is what a compiled pack keeps.
//! INVARIANT: a value is the one that the engine gives, and what a fact says of why it has none, too;
//! debug builds ask both. Only texts and lists may be longer here than the engine lets them be. Whatever
//! is of another form, or goes wrong otherwise, is left to the engine.

use rhai::{AST, Array, Dynamic, Expr, FnCallExpr, ImmutableString, Stmt};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::FactError;
use super::context::Object;
use super::globals::Globals;
use super::pattern::prose_regex;
use super::text_list::TextList;
use super::{builtins, lately, members};
use crate::deferred::Deferred;

/// An expression of plain form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Plain {
    Bool(bool),
    Int(i64),
    Text(String),
    List(Vec<Plain>),
    Global(String),
    /// All of them hold.
    And(Vec<Plain>),
    /// One of them holds.
    Or(Vec<Plain>),
    Not(Box<Plain>),
    Compare(Relation, Box<[Plain; 2]>),
    /// Of two numbers; two texts can be added, too.
    Calculate(Operation, Box<[Plain; 2]>),
    /// The second is one of the first.
    In(Box<[Plain; 2]>),
    /// A member of the owner, with arguments where it is called.
    Member(Box<Plain>, String, Option<Vec<Plain>>),
    /// A method whose one argument is a list of texts, written out.
    Listed(Box<Plain>, String, TextList),
    /// What the owner has under a name, as in `breakers["x"]`.
    Item(Box<[Plain; 2]>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Relation {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Operation {
    Add,
    Subtract,
    Multiply,
}

/// The plain form of an expression as a compiled pack keeps it; nothing in a pack that was just
/// loaded, whose expressions are parsed when they are met. It follows from the text, so that two of
/// them never differ.
#[derive(Debug, Clone, Default)]
pub struct Kept(Deferred<Option<Plain>>);

impl PartialEq for Kept {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Kept {}

impl Kept {
    /// The form of an expression, to be kept.
    #[must_use]
    pub fn of(text: &str) -> Self {
        // It was typed a moment ago.
        let familiar = lately::read(text).ok();
        Self(familiar.and_then(|it| read(&it.expr)).into())
    }

    pub(super) fn plain(&self) -> Option<&Plain> {
        self.0.as_ref()
    }
}

impl Serialize for Kept {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Kept {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Deferred::deserialize(from).map(Self)
    }
}

/// The plain form of what was parsed, where it has one.
pub(super) fn of(ast: &AST) -> Option<Plain> {
    match ast.statements() {
        [Stmt::Expr(expr)] => read(expr),
        [Stmt::FnCall(call, _)] => operator(call),
        _ => None,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "Rhai has more forms than are plain")]
fn read(expr: &Expr) -> Option<Plain> {
    Some(match expr {
        Expr::BoolConstant(value, _) => Plain::Bool(*value),
        Expr::IntegerConstant(value, _) => Plain::Int(*value),
        Expr::StringConstant(text, _) => Plain::Text(text.to_string()),
        Expr::Array(items, _) => Plain::List(all(items)?),
        Expr::Variable(name, ..) => Plain::Global(name.1.to_string()),
        Expr::And(items, _) => Plain::And(all(items.iter())?),
        Expr::Or(items, _) => Plain::Or(all(items.iter())?),
        Expr::FnCall(call, _) => operator(call)?,
        Expr::Dot(chain, flags, _) if flags.is_empty() => {
            let mut owner = read(&chain.lhs)?;
            let mut rest = &chain.rhs;
            while let Expr::Dot(chain, flags, _) = rest {
                if !flags.is_empty() {
                    return None;
                }
                owner = member(owner, &chain.lhs)?;
                rest = &chain.rhs;
            }
            member(owner, rest)?
        }
        Expr::Index(chain, flags, _) if flags.is_empty() => {
            let Expr::Dot(inside, flags, _) = &chain.rhs else { return None };
            if !flags.is_empty() || matches!(inside.rhs, Expr::Dot(..)) {
                return None;
            }
            let item = Plain::Item(Box::new([read(&chain.lhs)?, read(&inside.lhs)?]));
            member(item, &inside.rhs)?
        }
        _ => return None,
    })
}

fn all<'e>(items: impl IntoIterator<Item = &'e Expr>) -> Option<Vec<Plain>> {
    items.into_iter().map(read).collect()
}

fn operator(call: &FnCallExpr) -> Option<Plain> {
    let relation = match call.name.as_str() {
        "==" => Some(Relation::Equal),
        "!=" => Some(Relation::Unequal),
        "<" => Some(Relation::Less),
        "<=" => Some(Relation::LessOrEqual),
        ">" => Some(Relation::Greater),
        ">=" => Some(Relation::GreaterOrEqual),
        _ => None,
    };
    let operation = match call.name.as_str() {
        "+" => Some(Operation::Add),
        "-" => Some(Operation::Subtract),
        "*" => Some(Operation::Multiply),
        _ => None,
    };
    match (call.name.as_str(), relation, call.args.as_ref()) {
        ("!", _, [one]) => Some(Plain::Not(Box::new(read(one)?))),
        (_, None, [one, other]) if operation.is_some() => {
            Some(Plain::Calculate(operation?, Box::new([read(one)?, read(other)?])))
        }
        (_, Some(relation), [one, other]) => {
            Some(Plain::Compare(relation, Box::new([read(one)?, read(other)?])))
        }
        // How `text in list` is called.
        ("contains", _, [list, text]) => Some(Plain::In(Box::new([read(list)?, read(text)?]))),
        _ => None,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "Rhai has more forms than are plain")]
fn member(owner: Plain, member: &Expr) -> Option<Plain> {
    let (name, arguments) = match member {
        Expr::Property(name, _) => (&name.2, None),
        Expr::MethodCall(call, _) => (&call.name, Some(all(&call.args)?)),
        _ => return None,
    };
    let list = if let Some([list]) = arguments.as_deref() { written_out(list) } else { None };
    Some(match list {
        Some(list) => Plain::Listed(Box::new(owner), name.to_string(), list),
        None => Plain::Member(Box::new(owner), name.to_string(), arguments),
    })
}

/// A list that holds nothing but texts.
fn written_out(list: &Plain) -> Option<TextList> {
    let Plain::List(items) = list else { return None };
    let text = |it: &Plain| if let Plain::Text(text) = it { Some(text.clone()) } else { None };
    items.iter().map(text).collect::<Option<Vec<_>>>().map(TextList::from)
}

/// Why an expression of plain form has no value.
#[derive(Debug)]
pub(super) enum NoValue {
    /// Only the engine can tell.
    NotPlain,
    /// A fact is not there to be looked at, and says why.
    Failed(FactError),
}

type Evaluated<T = Dynamic> = Result<T, NoValue>;

impl Plain {
    /// Its value by the facts.
    pub(super) fn value(&self, globals: &Globals) -> Evaluated {
        let value = |it: &Self| it.value(globals);
        Ok(match self {
            Self::Bool(value) => (*value).into(),
            Self::Int(value) => (*value).into(),
            Self::Text(text) => text.as_str().into(),
            Self::List(items) => items.iter().map(value).collect::<Evaluated<Array>>()?.into(),
            Self::Global(name) => globals.value(name).ok_or(NoValue::NotPlain)?,
            Self::And(items) => first(items, false, globals)?.into(),
            Self::Or(items) => first(items, true, globals)?.into(),
            Self::Not(one) => (!one.holds(globals)?).into(),
            Self::Compare(relation, sides) => {
                let [one, other] = sides.as_ref();
                let order = compare(*relation, &value(one)?, &value(other)?);
                order.ok_or(NoValue::NotPlain)?.into()
            }
            Self::Calculate(operation, sides) => {
                let [one, other] = sides.as_ref();
                calculate(*operation, &value(one)?, &value(other)?).ok_or(NoValue::NotPlain)?
            }
            Self::In(sides) => {
                let [list, text] = sides.as_ref();
                let (list, text) = (value(list)?, value(text)?);
                is_in(&list, &text).ok_or(NoValue::NotPlain)?.into()
            }
            Self::Member(owner, name, arguments) => {
                // Which of several arguments of a chain fails first, the engine knows.
                let value = |it: &Self| it.value(globals).map_err(|_| NoValue::NotPlain);
                match arguments.as_deref() {
                    None => owner.owner(globals)?.member(name, None)?,
                    Some([only]) => {
                        let only = [value(only)?];
                        owner.owner(globals)?.member(name, Some(&only))?
                    }
                    Some(all) => {
                        let all = all.iter().map(value).collect::<Evaluated<Vec<_>>>()?;
                        owner.owner(globals)?.member(name, Some(&all))?
                    }
                }
            }
            Self::Listed(owner, name, list) => owner.owner(globals)?.listed(name, list)?,
            Self::Item(sides) => {
                let [owner, key] = sides.as_ref();
                let key = value(key).map_err(|_| NoValue::NotPlain)?;
                let key = key.into_immutable_string().map_err(|_| NoValue::NotPlain)?;
                let item = owner.owner(globals)?.ask(|it| members::value(it, &key, &[]));
                item.ok_or(NoValue::NotPlain)?.map_err(NoValue::Failed)?
            }
        })
    }

    /// Whether it is true.
    fn holds(&self, globals: &Globals) -> Evaluated<bool> {
        self.value(globals)?.as_bool().map_err(|_| NoValue::NotPlain)
    }

    /// Its value, for a member of it to be asked.
    fn owner(&self, globals: &Globals) -> Evaluated<Owner> {
        let handle = if let Self::Global(name) = self { globals.handle(name) } else { None };
        handle.map_or_else(|| self.value(globals).map(Owner::Value), |it| Ok(Owner::Handle(it)))
    }
}

/// What has members. Most are parts of the context by their names, and no value of the engine's is needed
/// for those.
enum Owner {
    Handle(Object),
    Value(Dynamic),
}

impl Owner {
    /// Asks the part of the context that it is; nothing where it is something else.
    fn ask<T>(&self, ask: impl FnOnce(&Object) -> T) -> Option<T> {
        match self {
            Self::Handle(handle) => Some(ask(handle)),
            Self::Value(value) => value.read_lock::<Object>().map(|it| ask(&it)),
        }
    }

    /// A member of it: of a fact, or of what texts and lists are asked most.
    fn member(&self, name: &str, arguments: Option<&[Dynamic]>) -> Evaluated {
        if let Some(found) = self.ask(|it| members::value(it, name, arguments.unwrap_or_default()))
        {
            return found.map_err(NoValue::Failed);
        }
        let Self::Value(value) = self else { return Err(NoValue::NotPlain) };
        member_of(value, name, arguments).ok_or(NoValue::NotPlain)
    }

    /// The same, where it is asked about a list.
    fn listed(&self, name: &str, list: &TextList) -> Evaluated {
        let argument = || [Dynamic::from(list.clone())];
        if let Some(found) = self.ask(|it| members::value(it, name, &argument())) {
            return found.map_err(NoValue::Failed);
        }
        let Self::Value(value) = self else { return Err(NoValue::NotPlain) };
        let items = value.read_lock::<Array>().ok_or(NoValue::NotPlain)?;
        let mut items = builtins::texts(&items);
        match name {
            "any_in" => Ok(items.any(|it| list.has(&it)).into()),
            "all_in" => Ok(items.all(|it| list.has(&it)).into()),
            _ => Err(NoValue::NotPlain),
        }
    }
}

/// Whether one of the items has this value; those after it are not looked at.
fn first(items: &[Plain], wanted: bool, globals: &Globals) -> Evaluated<bool> {
    for item in items {
        if item.holds(globals)? == wanted {
            return Ok(wanted);
        }
    }
    Ok(!wanted)
}

/// What texts and lists are asked most.
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

/// Whether a list of texts has a text; nothing where they are none.
fn is_in(list: &Dynamic, text: &Dynamic) -> Option<bool> {
    contains(&*list.read_lock::<Array>()?, &text.read_lock::<ImmutableString>()?)
}

/// Whether a list of texts has one; nothing where it holds anything else.
fn contains(list: &Array, wanted: &str) -> Option<bool> {
    let mut found = false;
    for item in list {
        found |= item.read_lock::<ImmutableString>()?.as_str() == wanted;
    }
    Some(found)
}

/// Calculates with two values of one type; nothing where the result is beyond what a number can be.
fn calculate(operation: Operation, one: &Dynamic, other: &Dynamic) -> Option<Dynamic> {
    if let (Ok(one), Ok(other)) = (one.as_int(), other.as_int()) {
        let result = match operation {
            Operation::Add => one.checked_add(other),
            Operation::Subtract => one.checked_sub(other),
            Operation::Multiply => one.checked_mul(other),
        };
        return result.map(Dynamic::from);
    }
    let one = one.read_lock::<ImmutableString>()?;
    let other = other.read_lock::<ImmutableString>()?;
    (operation == Operation::Add).then(|| format!("{}{}", *one, *other).into())
}

/// Compares two values of one type.
fn compare(relation: Relation, one: &Dynamic, other: &Dynamic) -> Option<bool> {
    let order = if let (Ok(one), Ok(other)) = (one.as_int(), other.as_int()) {
        one.cmp(&other)
    } else if let (Ok(one), Ok(other)) = (one.as_bool(), other.as_bool()) {
        if !matches!(relation, Relation::Equal | Relation::Unequal) {
            return None;
        }
        one.cmp(&other)
    } else {
        let one = one.read_lock::<ImmutableString>()?;
        one.as_str().cmp(other.read_lock::<ImmutableString>()?.as_str())
    };
    Some(match relation {
        Relation::Equal => order.is_eq(),
        Relation::Unequal => order.is_ne(),
        Relation::Less => order.is_lt(),
        Relation::LessOrEqual => order.is_le(),
        Relation::Greater => order.is_gt(),
        Relation::GreaterOrEqual => order.is_ge(),
    })
}
