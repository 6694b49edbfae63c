//! Facts of expressions as trees: a name and its members, their types, and the values and the numbers they can have.
//! `ast` has the shape that is stored.

use super::ast::{Expr, ExprKind, MemberAccess, Path};
use super::record::{RecordField, Shape};
use super::table::{FactTable, KnownNames, Member};
use super::types::{NameClass, Type, Unit};

/// A fact in an expression, or the owner of one: a name, and the first of the members behind it.
#[derive(Debug, Clone, Copy)]
pub struct Fact<'t> {
    path: &'t Path,
    /// The arguments of these members.
    arguments: &'t [Expr],
    /// Number of these members.
    length: usize,
}

/// A member of a fact.
#[derive(Debug, Clone, Copy)]
pub struct FactStep<'t> {
    /// Its name; empty for an item in brackets.
    pub name: &'t str,
    /// Whether it is called.
    pub is_call: bool,
    /// Its arguments; for an item, the key.
    pub arguments: &'t [Expr],
}

/// Facts with the same text are equal.
impl PartialEq for Fact<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Fact<'_> {}

impl<'t> Fact<'t> {
    pub(super) fn new(path: &'t Path, arguments: &'t [Expr]) -> Self {
        Self { path, arguments, length: path.steps().len() }
    }

    /// Returns the text without blanks, for messages. Facts with equal texts are equal.
    #[must_use]
    pub fn text(self) -> &'t str {
        self.path.beginning(self.length)
    }

    /// Returns the members in their order.
    pub fn steps(self) -> impl Iterator<Item = FactStep<'t>> {
        let mut rest = self.arguments;
        self.path.steps().iter().take(self.length).map(move |step| {
            let (arguments, others) =
                rest.split_at_checked(step.arguments()).unwrap_or((rest, &[]));
            rest = others;
            let is_call = matches!(step.access, MemberAccess::Call(_));
            FactStep { name: self.path.member(step), is_call, arguments }
        })
    }

    /// Returns the name that it begins with, and the names of the members.
    pub fn names(self) -> impl Iterator<Item = &'t str> {
        std::iter::once(self.path.name()).chain(self.steps().map(|it| it.name))
    }

    /// Returns whether it has these names, such as `commands.kind`, with any arguments.
    #[must_use]
    pub fn is(self, names: &str) -> bool {
        self.names().eq(names.split('.'))
    }

    /// Returns whether it has one of these names.
    #[must_use]
    pub fn is_one_of(self, names: &[&str]) -> bool {
        names.iter().any(|it| self.is(it))
    }

    /// Returns whether its first names are these.
    #[must_use]
    pub fn begins_with(self, names: &str) -> bool {
        let mut own = self.names();
        names.split('.').all(|it| own.next() == Some(it))
    }

    /// Returns the fact, and what each of its members is of, the shortest one last.
    pub fn owners(self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self), |it| it.owner())
    }

    /// Returns the last member.
    #[must_use]
    pub fn last(self) -> Option<FactStep<'t>> {
        self.steps().last()
    }

    /// Returns what the last member is of. `None` for a name without members.
    #[must_use]
    pub fn owner(self) -> Option<Self> {
        self.first(self.length.checked_sub(1)?)
    }

    /// Returns the fact up to the first member with an argument: `program.has` of `program.has(["-f"])`.
    #[must_use]
    pub fn asked(self) -> Option<Self> {
        let at = self.steps().position(|it| !it.arguments.is_empty())?;
        self.first(at.saturating_add(1))
    }

    /// The fact with the first of its members.
    fn first(self, length: usize) -> Option<Self> {
        let count = self.steps().take(length).map(|it| it.arguments.len()).sum();
        Some(Self { arguments: self.arguments.get(..count)?, length, ..self })
    }

    /// Returns whether it is another fact, or a member of one.
    #[must_use]
    pub fn is_within(self, other: Self) -> bool {
        self.length >= other.length && self.path.beginning(other.length) == other.text()
    }

    /// Returns the same question with another argument. `None` if its last member has not exactly one.
    #[must_use]
    pub fn asking(self, argument: Expr) -> Option<ExprKind> {
        let (first, last) = (self.owner()?, self.path.steps().get(self.length.checked_sub(1)?)?);
        if last.arguments() != 1 {
            return None;
        }
        let mut path = self.path.first(first.length);
        let range = last.range.start as usize..last.range.end as usize;
        let arguments = [argument];
        path.push(self.path.member(last), last.access, &arguments, range, last.optional);
        Some(ExprKind::Fact(path, first.arguments.iter().cloned().chain(arguments).collect()))
    }

    /// Returns its type. `None` if it is unknown.
    #[must_use]
    pub fn result(self, names: &dyn KnownNames) -> Option<Type> {
        find(self.names(), names.table(), names.record()).map(|it| it.0)
    }

    /// Returns the row of its last name. `None` for names that a pack defines.
    #[must_use]
    pub fn member(self, names: &dyn KnownNames) -> Option<&'static Member> {
        find(self.names(), names.table(), names.record())?.1
    }

    /// Returns the field of a record that it is.
    #[must_use]
    pub fn field(self, names: &dyn KnownNames) -> Option<&RecordField> {
        names.record()?.at(self.text())
    }

    /// Returns what its number counts.
    #[must_use]
    pub fn unit(self, names: &dyn KnownNames) -> Option<Unit> {
        match self.field(names) {
            Some(field) => field.unit,
            None => self.member(names)?.unit,
        }
    }

    /// Returns the kind of names that its value, its texts, its items, or its argument are.
    #[must_use]
    pub fn ids(self, names: &dyn KnownNames) -> Option<NameClass> {
        match self.field(names) {
            Some(field) => field.ids,
            None => self.member(names)?.ids,
        }
    }

    /// Returns the values it can have, if they are few.
    #[must_use]
    pub fn closed_values(self, names: &dyn KnownNames) -> Vec<&str> {
        if let Some(field) = self.field(names) {
            return field.values.iter().map(String::as_str).collect();
        }
        let Some(row) = self.member(names) else { return Vec::new() };
        row.ids.and_then(|it| names.values(it)).unwrap_or_else(|| row.values.to_vec())
    }

    /// Returns which numbers it can be.
    #[must_use]
    pub fn number(self, names: &dyn KnownNames) -> Number {
        let field = self.field(names);
        let (range, result) = field
            .map(|it| (it.limits.range(), it.result))
            .or_else(|| self.member(names).map(|it| (it.range, it.result)))
            .unwrap_or((Number::ANY.range, Type::Any));
        Number { range, is_decimal: result == Type::Decimal }
    }
}

impl Expr {
    /// The condition that a fact without arguments is one of these texts.
    #[must_use]
    pub fn one_of(names: &str, texts: &[&str]) -> Self {
        let mut names = names.split('.');
        let mut path = Path::new(names.next().unwrap_or_default());
        names.for_each(|it| path.push(it, MemberAccess::Field, &[], 0..0, false));
        let part = |kind| Self::new(kind, 0..0);
        let items = texts.iter().map(|it| part(ExprKind::Text((*it).to_owned()))).collect();
        let (fact, list) = (ExprKind::Fact(path, Vec::new()), ExprKind::List(items));
        part(ExprKind::In(Box::new(part(fact)), Box::new(part(list))))
    }
}

/// What is known of a fact that is compared with a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// The least and the greatest whole number it can be.
    pub range: (i64, i64),
    /// Whether it has a fraction, so that something lies between 0 and 1.
    pub is_decimal: bool,
}

impl Number {
    /// What is known of a value that is not a fact.
    pub const ANY: Self = Self { range: (i64::MIN, i64::MAX), is_decimal: false };
}

/// Returns the type of a fact by its names, and the row of the last one; names that a pack defines, and fields of the
/// record, have no row. The name of an item in brackets is empty.
#[must_use]
pub fn find<'n>(
    names: impl Iterator<Item = &'n str>,
    table: &dyn FactTable,
    record: Option<&Shape>,
) -> Option<(Type, Option<&'static Member>)> {
    let (mut owner, mut row) = (Type::Global, None);
    for name in names {
        match (record, owner) {
            (Some(record), Type::Global) if record.name == name => {
                owner = Type::Record;
                continue;
            }
            (Some(record), Type::Record) => {
                owner = record.field(name)?.result;
                continue;
            }
            (Some(_) | None, _) => {}
        }
        if name.is_empty() {
            if owner == table.items().owner {
                owner = table.items().result;
            }
            continue;
        }
        row = table.find(owner, name);
        owner = match row {
            Some(row) => row.result,
            // A member that is named by the pack and has members itself.
            None => table.named_members(owner).map(|it| it.result).filter(|it| !it.is_shown())?,
        };
    }
    Some((owner, row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_has_names_owners_and_arguments() {
        let tree = Expr::of_text(r#"commands.kind("a.b").last.text.contains(x.y)"#);
        let fact = tree.fact().unwrap();
        assert!(fact.is("commands.kind.last.text.contains") && !fact.is("commands.kind"));
        assert!(fact.begins_with("commands.kind") && !fact.begins_with("commands.last"));
        let (last, owner) = (fact.last().unwrap(), fact.owner().unwrap());
        assert_eq!((last.name, last.arguments[0].canonical()), ("contains", "x.y".into()));
        assert_eq!(owner.text(), r#"commands.kind("a.b").last.text"#);
        assert!(fact.is_within(owner) && owner.is_within(owner) && !owner.is_within(fact));
        assert_eq!(fact.asked().unwrap().text(), r#"commands.kind("a.b")"#);
        let other = Expr::of_text("\"z\"");
        let kind = fact.asking(other).unwrap();
        let asked = Expr { kind, ..tree.clone() };
        assert_eq!(asked.canonical(), r#"commands.kind("a.b").last.text.contains("z")"#);
        assert_eq!(asked.fact().unwrap().last().unwrap().arguments.len(), 1);
    }

    #[test]
    fn an_item_in_brackets_has_no_name() {
        let tree = Expr::of_text(r#"breakers["x.y"].open"#);
        let fact = tree.fact().unwrap();
        assert_eq!(fact.names().collect::<Vec<_>>(), ["breakers", "", "open"]);
        assert_eq!(fact.owner().unwrap().text(), r#"breakers["x.y"]"#);
        assert!(!fact.is("breakers.open"));
        assert!(Expr::of_text("1 + 2").fact().is_none());
    }
}
