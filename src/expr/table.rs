//! What expressions can name: the table of facts, and the names that a pack defines. The program implements both.
//! Does not contain: facts, and what they are computed from.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::rc::Rc;

use rhai::Dynamic;

use super::FactError;
use super::record::Shape;
use super::types::{Domain, Evidence, NameClass, TextForm, TextMatch, Type, Unit};

/// A row of the table: a global name, a field, or a method.
#[derive(Debug)]
pub struct Member {
    /// Type that the member belongs to; [`Type::Global`] for a name that an expression begins with.
    pub owner: Type,
    /// Name in expressions.
    pub name: &'static str,
    /// `None` for a field or a global name; the parameters of a method.
    pub params: Option<&'static [(Type, Domain)]>,
    /// Type of its value.
    pub result: Type,
    /// What kind of evidence it is.
    pub evidence: Evidence,
    /// One sentence.
    pub doc: &'static str,
    /// A use of it that type-checks.
    pub example: &'static str,
    /// The values it can have, if they are few; a comparison with another one is an error.
    pub values: &'static [&'static str],
    /// The form of its text.
    pub form: TextForm,
    /// The least and the greatest number it can be.
    pub range: (i64, i64),
    /// What its number counts; `None` if it is not a number.
    pub unit: Option<Unit>,
    /// The kind of names that its value, its texts, its items, or its argument are.
    pub ids: Option<NameClass>,
    /// Whether its argument must be a constant, because it is read before the expression is evaluated.
    pub is_written_out: bool,
}

/// What counts and positions can be.
pub const COUNTS: (i64, i64) = (0, i64::MAX);

impl Member {
    /// Returns how it compares something with its only argument, and whether that is a list.
    #[must_use]
    pub const fn compares(&self) -> Option<(TextMatch, bool)> {
        match self.params {
            Some([(Type::Text, Domain::Text(compared))]) => Some((*compared, false)),
            Some([(Type::Texts, Domain::Text(compared))]) => Some((*compared, true)),
            Some(_) | None => None,
        }
    }

    /// Returns whether it is true if it is true for one of the texts of its argument.
    #[must_use]
    pub const fn asks_for_any(&self) -> bool {
        matches!(
            (self.result, self.compares()),
            (
                Type::Bool,
                Some((
                    TextMatch::Whole
                        | TextMatch::Word
                        | TextMatch::Path
                        | TextMatch::Command
                        | TextMatch::Option,
                    true,
                )),
            )
        )
    }

    /// Returns the name, with the types of its parameters if it is called.
    #[must_use]
    pub fn signature(&self) -> String {
        let Some(params) = self.params else { return self.name.to_owned() };
        let types: Vec<String> = params.iter().map(|(it, _)| it.to_string()).collect();
        format!("{}({})", self.name, types.join(", "))
    }
}

/// Members that a pack names, such as the probes of `probes`.
#[derive(Debug, Clone, Copy)]
pub struct NamedMembers {
    /// Names that the members can have.
    pub kind: NameClass,
    /// Type of each member.
    pub result: Type,
    /// What kind of evidence they are.
    pub evidence: Evidence,
}

/// The items that any text in brackets names, such as `breakers["api/claude"]`.
#[derive(Debug, Clone, Copy)]
pub struct NamedItems {
    /// Type that has the items.
    pub owner: Type,
    /// Type of each item.
    pub result: Type,
    /// What an item is called in messages: `breaker`.
    pub noun: &'static str,
    /// An expression with an item.
    pub example: &'static str,
}

/// The table of facts.
pub trait FactTable {
    /// Returns the row of `owner.name`. Members are looked up at every step of an expression. [`builtins::find`] has
    /// the rows of texts and lists.
    ///
    /// [`builtins::find`]: super::builtins::find
    fn find(&self, owner: Type, name: &str) -> Option<&'static Member>;

    /// Returns all rows, in the order of the reference documentation.
    fn rows(&self) -> Box<dyn Iterator<Item = &'static Member>>;

    /// Returns the members of a type that a pack names.
    fn named_members(&self, owner: Type) -> Option<NamedMembers>;

    /// Returns the items of the one type that has some.
    fn items(&self) -> NamedItems;

    /// Returns the kind of the named lists that a list compared in this way can contain as `@name`.
    fn named_lists(&self, compared: TextMatch) -> Option<NameClass>;
}

/// Returns the name of the list of the pack that an item of a list includes or excludes: `key_files` for `@key_files` and
/// `!@key_files`.
#[must_use]
pub fn list_name(item: &str) -> Option<&str> {
    let name = item.strip_prefix('!').unwrap_or(item).strip_prefix('@')?;
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    (name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_part))
        .then_some(name)
}

/// The names that expressions of a pack can use.
pub trait KnownNames {
    /// Returns the table of facts.
    fn table(&self) -> &'static dyn FactTable;

    /// Returns the names of a kind that the pack defines.
    fn of_kind(&self, kind: NameClass) -> &BTreeSet<String>;

    /// Returns the values of a fact whose values are names of a kind, if the pack defines all of them.
    fn values(&self, ids: NameClass) -> Option<Vec<&str>>;

    /// Returns whether a vocabulary could not be read. Then no name counts as unknown.
    fn is_incomplete(&self) -> bool;

    /// Returns the record that expressions read. If there is one, they read nothing else.
    fn record(&self) -> Option<&Shape>;
}

/// A part of the context of an evaluation, such as `files`. Cloning a handle copies a pointer.
pub trait Handle: Debug + Clone + 'static {
    /// Everything that expressions can read in one evaluation.
    type Context: Debug + Clone;

    /// The table that describes the handles.
    const TABLE: &'static dyn FactTable;

    /// Returns the handle of a global name.
    fn of_global(context: &Rc<Self::Context>, name: &str) -> Option<Self>;

    /// Returns whether the value of an expression can change within one evaluation.
    fn can_change(expression: &str) -> bool;

    /// Returns the value of a field, of a method, or of an item.
    ///
    /// # Errors
    /// The error of the fact, or [`FactError::NoMember`].
    fn value(&self, name: &str, arguments: &[Dynamic]) -> Result<Dynamic, FactError>;

    /// Returns the value of a method.
    ///
    /// # Errors
    /// [`FactError::NoMember`] if no method has this name and number of parameters; otherwise the error of the fact.
    fn call(&self, name: &str, arguments: &[Dynamic]) -> Result<Dynamic, FactError>;
}

#[cfg(test)]
mod tests {
    // The language over a small table: two globals, a method, names of a pack, and items in brackets.
    use std::cell::Cell;

    use super::*;
    use crate::check::check;
    use crate::completion::candidates;
    use crate::dynamic::{count, text_argument};
    use crate::marks::{ExpectedWord, ExpressionWord, WordSense, marks, place};
    use crate::record::{FactRecord, RecordField};
    use crate::text_list::TextList;
    use crate::types::ObjectType;
    use crate::{Evaluator, Value, builtins, template};

    const SHELF: Type = Type::Object(ObjectType { number: 0, name: "shelf" });
    const BOOK: Type = Type::Object(ObjectType { number: 1, name: "book" });
    const FLAGS: Type = Type::Object(ObjectType { number: 2, name: "flags" });
    const FLAG: NameClass = NameClass { number: 0, noun: "flag", is_foreign: false };

    const fn row(owner: Type, name: &'static str, result: Type) -> Member {
        let evidence = Evidence::Structure;
        let (doc, example) = ("A row.", "shelf.books > 0");
        let (params, values) = (None, [].as_slice());
        Member {
            owner,
            name,
            params,
            result,
            evidence,
            doc,
            example,
            values,
            form: TextForm::Any,
            range: COUNTS,
            unit: None,
            ids: None,
            is_written_out: false,
        }
    }

    static ROWS: [Member; 6] = [
        row(Type::Global, "shelf", SHELF),
        row(Type::Global, "flags", FLAGS),
        row(SHELF, "books", Type::Int),
        Member {
            params: Some(&[(Type::Text, Domain::Name(FLAG))]),
            ..row(SHELF, "flagged", Type::Bool)
        },
        Member { form: TextForm::Day, ..row(BOOK, "day", Type::Text) },
        Member { values: &["new", "used"], ..row(BOOK, "state", Type::Text) },
    ];

    struct Library;

    impl FactTable for Library {
        fn find(&self, owner: Type, name: &str) -> Option<&'static Member> {
            let own = ROWS.iter().find(|it| it.owner == owner && it.name == name);
            own.or_else(|| builtins::find(owner, name))
        }

        fn rows(&self) -> Box<dyn Iterator<Item = &'static Member>> {
            Box::new(ROWS.iter().chain(builtins::ROWS))
        }

        fn named_members(&self, owner: Type) -> Option<NamedMembers> {
            let evidence = Evidence::Neutral;
            (owner == FLAGS).then_some(NamedMembers { kind: FLAG, result: Type::Bool, evidence })
        }

        fn items(&self) -> NamedItems {
            let example = "shelf[\"Emma\"]";
            NamedItems { owner: SHELF, result: BOOK, noun: "book", example }
        }

        fn named_lists(&self, _: TextMatch) -> Option<NameClass> {
            None
        }
    }

    #[derive(Debug, Clone)]
    enum Object {
        Shelf(Rc<Shelf>),
        Book(String),
        Flags,
    }

    #[derive(Debug, Clone, Default)]
    struct Shelf {
        reads: Cell<i64>,
    }

    impl Handle for Object {
        type Context = Shelf;

        const TABLE: &'static dyn FactTable = &Library;

        fn of_global(context: &Rc<Shelf>, name: &str) -> Option<Self> {
            match name {
                "shelf" => Some(Self::Shelf(Rc::clone(context))),
                "flags" => Some(Self::Flags),
                _ => None,
            }
        }

        fn can_change(expression: &str) -> bool {
            expression.contains("shelf")
        }

        fn value(&self, name: &str, arguments: &[Dynamic]) -> Result<Dynamic, FactError> {
            match (self, name) {
                (Self::Shelf(shelf), "books") => {
                    shelf.reads.set(shelf.reads.get() + 1);
                    Ok(count(shelf.reads.get() / 2))
                }
                (Self::Shelf(_), "flagged") => Ok((text_argument(arguments, 0)? == "red").into()),
                (Self::Shelf(_), title) => Ok(Dynamic::from(Self::Book(title.to_owned()))),
                (Self::Book(title), "state") if title == "Emma" => Ok("used".into()),
                (Self::Book(_), "state") => Err("the state is unknown".into()),
                (Self::Flags, name) => Ok((name == "red").into()),
                (Self::Book(_), _) => Err(FactError::NoMember(name.to_owned())),
            }
        }

        fn call(&self, name: &str, arguments: &[Dynamic]) -> Result<Dynamic, FactError> {
            match (self, name) {
                (Self::Shelf(_), "flagged") => self.value(name, arguments),
                _ => Err(FactError::NoMember(name.to_owned())),
            }
        }
    }

    #[derive(Default)]
    struct Names {
        flags: BTreeSet<String>,
        record: Option<Shape>,
    }

    impl KnownNames for Names {
        fn table(&self) -> &'static dyn FactTable {
            &Library
        }

        fn of_kind(&self, _: NameClass) -> &BTreeSet<String> {
            &self.flags
        }

        fn values(&self, _: NameClass) -> Option<Vec<&str>> {
            None
        }

        fn is_incomplete(&self) -> bool {
            false
        }

        fn record(&self) -> Option<&Shape> {
            self.record.as_ref()
        }
    }

    fn names() -> Names {
        Names { flags: ["red", "green"].map(str::to_owned).into(), record: None }
    }

    fn findings(text: &str, names: &Names) -> String {
        let typed = check(text, names);
        typed.findings.into_iter().map(|it| it.message).collect::<Vec<_>>().join("; ")
    }

    fn evaluator() -> Evaluator<Object> {
        Evaluator::new(Rc::new(Shelf::default()))
    }

    #[test]
    fn expressions_are_typed_by_the_table() {
        for (text, message) in [
            ("shelf.books > 1 && flags.red && shelf.flagged(\"green\")", ""),
            ("shelf[\"Emma\"].state == \"used\"", ""),
            ("shelf.book > 1", "shelf has no `book`"),
            ("shelf.books == \"a\"", "`==` compares a number with a text, which are never equal"),
            ("flags.blue", "unknown flag `blue`"),
            ("shelf.flagged(\"blue\")", "unknown flag `blue`"),
            ("flags[\"red\"]", "a flags has nothing in brackets"),
            ("shelf[1].state == \"new\"", "the name of a book is a text, not a number"),
            ("shelf[\"books\"].state == \"new\"", "`books` is not the name of a book"),
            ("shelf[\"Emma\"].state == \"old\"", "`shelf[\"Emma\"].state` is never \"old\""),
            (
                "shelf[\"Emma\"].day == \"May\"",
                "`shelf[\"Emma\"].day` is never like \"May\", and is compared as a text",
            ),
            ("shelf", ""),
        ] {
            assert_eq!(findings(text, &names()), message, "{text}");
        }
        let typed =
            check("shelf.books > 1 && flags.red && shelf[\"Emma\"].state == \"new\"", &names());
        let uses: Vec<&str> = typed.uses.iter().map(String::as_str).collect();
        assert_eq!(uses, ["flags.red", "shelf.books", "shelf[\"Emma\"].state"]);
        assert_eq!((typed.result, typed.evidence), (Type::Bool, Evidence::Structure));
    }

    #[test]
    fn values_are_those_of_rhai() {
        for (text, value) in [
            ("flags.red && !flags.green", Ok(Value::Bool(true))),
            ("shelf.flagged(\"red\") || shelf.flagged(\"green\")", Ok(Value::Bool(true))),
            ("shelf[\"Emma\"].state + \"!\"", Ok(Value::Text("used!".to_owned()))),
            ("shelf[\"Ulysses\"].state == \"new\"", Err("the state is unknown")),
            ("if flags.red { 1 } else { 2 }", Ok(Value::Int(1))),
        ] {
            let found = evaluator().eval(text).map_err(|it| it.message);
            assert_eq!(found, value.map_err(str::to_owned), "{text}");
            assert_eq!(evaluator().eval_by_rhai(text).map_err(|it| it.message), found, "{text}");
        }
        assert_eq!(template::render("${flags.red}, $${x}", &mut evaluator()), "true, ${x}");
    }

    #[test]
    fn a_value_that_can_change_is_computed_again() {
        let mut evaluator = evaluator();
        // Debug builds evaluate each expression twice: in its tree, and in Rhai.
        let reads =
            |it: &mut Evaluator<Object>| it.eval_by_rhai("shelf.books").unwrap().to_string();
        assert_eq!([(); 4].map(|()| reads(&mut evaluator)), ["0", "1", "1", "2"]);
    }

    #[test]
    fn names_are_completed_from_the_table() {
        let listed = |text: &str| -> Vec<String> {
            candidates(text, &names()).into_iter().map(|it| it.name).collect()
        };
        assert_eq!(listed("she"), ["shelf"]);
        assert_eq!(listed("shelf[\"Emma\"].st"), ["state"]);
        assert_eq!(listed("flags."), ["green", "red"]);
        assert_eq!(listed("shelf.flagged(\"gr\")"), ["green"]);
    }

    #[test]
    fn a_list_is_prepared_once_for_each_type() {
        let list = TextList::from(vec!["a".to_owned()]);
        let calls = Cell::new(0);
        let length = |texts: &[String]| {
            calls.set(calls.get() + 1);
            texts.len()
        };
        assert_eq!((*list.prepared(length), *list.prepared(length), calls.get()), (1, 1, 1));
        assert_eq!(*list.prepared(|texts| texts.concat()), "a");
    }

    fn shape() -> Shape {
        Shape {
            name: "task".to_owned(),
            fields: vec![
                RecordField::new("attempts", Type::Int, "Failed attempts."),
                RecordField::new("confidence", Type::Decimal, "From 0 to 1."),
                RecordField::new("title", Type::Text, "Its title."),
                RecordField::new("priority", Type::Text, "How urgent it is.")
                    .of_values(&["high", "medium", "low"]),
            ],
        }
    }

    #[test]
    fn rules_see_their_record_and_nothing_else() {
        let names = Names { record: Some(shape()), ..names() };
        let findings = |text: &str| findings(text, &names);
        assert_eq!(findings("task.attempts >= 5 && task.confidence < 0.30"), "");
        assert_eq!(findings("task.confidence < 1 && task.title.matches(\"auth\")"), "");
        assert_eq!(findings("task.attemps >= 5"), "`task` has no `attemps`");
        assert_eq!(findings("shelf.books > 0"), "`shelf` is not available here");
        assert_eq!(findings("task.priority == \"urgent\""), "`task.priority` is never \"urgent\"");
        assert_eq!(
            findings("task.title > 0.5"),
            "`>` compares a text with a decimal, which have no order"
        );
    }

    #[test]
    fn what_was_not_given_is_empty() {
        let record = FactRecord::new(&shape()).with("confidence", 0.3).with("nothing", 1_i64);
        let mut evaluator = Evaluator::<Object>::about(record);
        for (text, value) in [
            ("task.attempts == 0", true),
            ("task.confidence < 0.3", false),
            ("task.confidence < 0.31 && task.confidence > 0", true),
            ("task.title == \"\"", true),
        ] {
            assert_eq!(evaluator.eval_bool(text), Ok(value), "{text}");
        }
        assert_eq!(evaluator.eval("task.confidence").unwrap().to_string(), "0.3");
    }

    fn words(text: &str) -> String {
        let mark = |it: &ExpressionWord| {
            let word = text.get(it.inner(text)).unwrap();
            match &it.kind {
                WordSense::Fact { path, .. } => format!("{word}=fact:{path}"),
                WordSense::PackName { class, .. } => format!("{word}={}", class.noun),
                WordSense::Value { fact, .. } => format!("{word}=of:{fact}"),
                WordSense::Unknown => format!("{word}=unknown"),
                WordSense::Number => format!("{word}=number"),
                WordSense::Keyword => format!("{word}=keyword"),
                WordSense::Item => format!("{word}=item"),
                WordSense::Operator
                | WordSense::Text
                | WordSense::Regex
                | WordSense::Record
                | WordSense::Field { .. } => panic!("{word}: {:?}", it.kind),
            }
        };
        let marks = marks(text, &names());
        let marks = marks.iter().filter(|it| !matches!(it.kind, WordSense::Operator));
        marks.map(mark).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_have_the_meaning_of_their_place() {
        for (text, expected) in [
            ("shelf.books > 1", "shelf=fact:shelf books=fact:shelf.books 1=number"),
            ("flags.red", "flags=fact:flags red=flag"),
            ("shelf.flagged(\"red\")", "shelf=fact:shelf flagged=fact:shelf.flagged red=flag"),
            (
                "shelf[\"Emma\"].state == \"new\"",
                "shelf=fact:shelf Emma=item state=fact:shelf.state new=of:shelf.state",
            ),
            (
                "\"new\" == shelf[\"x\"].state",
                "new=of:shelf.state shelf=fact:shelf x=item state=fact:shelf.state",
            ),
            (
                "shelf[\"x\"].state in [\"new\"",
                "shelf=fact:shelf x=item state=fact:shelf.state in=keyword new=of:shelf.state",
            ),
            (
                "(shelf.books && shelf.flagged(\"re",
                "shelf=fact:shelf books=fact:shelf.books shelf=fact:shelf flagged=fact:shelf.flagged re=flag",
            ),
            ("unheard.of", "unheard=unknown of=unknown"),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn a_place_expects_what_fits_there() {
        let at = |text: &str| {
            let (before, after) = text.split_once('|').unwrap();
            let whole = format!("{before}{after}");
            let found = place(&whole, before.len(), &names());
            let expected = match found.expected {
                ExpectedWord::Nothing => "nothing".to_owned(),
                ExpectedWord::Members(owner) => format!("members of {owner}"),
                ExpectedWord::PackNames(class) => class.noun.to_owned(),
                ExpectedWord::Values { fact, values } => format!("{fact}: {}", values.join(" ")),
                ExpectedWord::Items => "items".to_owned(),
            };
            (
                whole.get(found.word).unwrap().to_owned(),
                expected,
                found.call.map(|(it, at)| (it.name, at)),
            )
        };
        for (text, word, expected, call) in [
            ("|", "", "members of global", None),
            ("she|", "she", "members of global", None),
            ("shelf.|", "", "members of shelf", None),
            ("shelf.bo|oks > 1", "books", "members of shelf", None),
            ("shelf.books > 1 && fl|", "fl", "members of global", None),
            ("shelf.books |", "", "nothing", None),
            ("flags.|", "", "members of flags", None),
            ("shelf.flagged(\"|", "", "flag", Some(("flagged", 0))),
            ("shelf.flagged(\"r|\") && x", "r", "flag", Some(("flagged", 0))),
            ("shelf[\"a\"].state == \"|", "", "shelf.state: new used", None),
            ("shelf[\"a\"].state == |", "", "shelf.state: new used", None),
            ("shelf[\"a|\"]", "a", "items", None),
            ("shelf[\"a\"].st|", "st", "members of book", None),
        ] {
            assert_eq!(at(text), (word.to_owned(), expected.to_owned(), call), "{text}");
        }
    }
}
