//! Declaration of the keys of a map of a policy file, and of `config.yaml`.
//!
//! Each map is declared once, by [`record!`]: its keys with their kinds and descriptions, and the field of the
//! Rust value that each key sets. The shape check, the reader, and the JSON schema follow from the declaration.
//! The default of a key is the value of its field in [`Default::default`].

use serde_json::Value;

use super::builder::Builder;
use super::field_value::FieldValue;
use super::layers::{LayerEntry, Layers, wanted};
use super::records;
use super::{Choice, Expression};
use policyd_fact_table::types::Type;
use policyd_facts::event::EventKind;
use policyd_facts::pattern::CommandPattern;
use policyd_yaml::Node;
use policyd_yaml::layered_map::LayeredMap;
use policyd_yaml::shape::{Field, Kind};

/// The keys of a map of a policy file, which set fields of a `T`.
pub struct RecordType<T: 'static> {
    /// The keys, in the order in which they are documented.
    pub fields: &'static [Field],
    /// The kind of a map with these keys.
    pub map: Kind,
    /// The kind of a list of such maps.
    pub list: Kind,
    /// Reads the items of such a list.
    pub items: Conversion<Vec<T>>,
    /// Sets the fields whose keys are present. Reports invalid expressions.
    pub fill: fn(&mut T, &LayeredMap<'_>, &mut Builder<'_>),
}

impl<T> RecordType<T> {
    /// Sets the fields whose keys have a valid value. Expressions are not typed.
    pub fn fill_untyped(&self, value: &mut T, map: &LayeredMap<'_>) {
        (self.fill)(value, map, &mut Builder::new(false, &mut Vec::new()));
    }
}

impl<T: Default> RecordType<T> {
    /// Reads the value of a map, whose expressions are not typed. A key without a valid value keeps its default.
    #[must_use]
    pub fn read_untyped(&self, map: &LayeredMap<'_>) -> T {
        let mut value = T::default();
        self.fill_untyped(&mut value, map);
        value
    }

    /// Reads the value of one map, like [`read_untyped`](Self::read_untyped).
    #[must_use]
    pub fn read_node(&self, map: &Node) -> T {
        self.read_untyped(&LayeredMap::from_iter([map]))
    }

    /// Reads the items of a list. Use [`items`](Self::items) in records.
    pub fn read_items(&self, list: &Node, builder: &mut Builder<'_>) -> Option<Vec<T>> {
        let maps = list.items()?.iter().map(|item| LayeredMap::from_iter([item]));
        Some(maps.map(|map| self.read(&map, builder)).collect())
    }

    /// Reads the value of a map.
    pub(super) fn read(&self, map: &LayeredMap<'_>, builder: &mut Builder<'_>) -> T {
        let mut value = T::default();
        (self.fill)(&mut value, map, builder);
        value
    }
}

/// A value of a key whose expressions the builder types.
pub trait TypedValue: Sized {
    /// Returns the value of a node. `None` if the node holds another kind of value.
    fn from_node(node: &Node, builder: &mut Builder<'_>) -> Option<Self>;

    /// Returns the value as a policy file states it, for the schema.
    fn to_json(&self) -> Option<Value>;
}

impl<T: FieldValue> TypedValue for T {
    fn from_node(node: &Node, _: &mut Builder<'_>) -> Option<Self> {
        FieldValue::from_node(node)
    }

    fn to_json(&self) -> Option<Value> {
        FieldValue::to_json(self)
    }
}

impl FieldValue for EventKind {
    fn from_node(node: &Node) -> Option<Self> {
        Self::find(node.text()?)
    }

    fn to_json(&self) -> Option<Value> {
        Some(self.name().into())
    }
}

impl TypedValue for Expression {
    /// Types a condition.
    fn from_node(node: &Node, builder: &mut Builder<'_>) -> Option<Self> {
        builder.expression(Some(node), Type::Bool)
    }

    fn to_json(&self) -> Option<Value> {
        None
    }
}

impl TypedValue for Option<Expression> {
    fn from_node(node: &Node, builder: &mut Builder<'_>) -> Option<Self> {
        Expression::from_node(node, builder).map(Some)
    }

    fn to_json(&self) -> Option<Value> {
        None
    }
}

impl TypedValue for Vec<Choice> {
    fn from_node(node: &Node, builder: &mut Builder<'_>) -> Option<Self> {
        Some(builder.choices(Some(node)))
    }

    fn to_json(&self) -> Option<Value> {
        None
    }
}

impl TypedValue for Vec<CommandPattern> {
    fn from_node(node: &Node, _: &mut Builder<'_>) -> Option<Self> {
        let patterns: Vec<String> = FieldValue::from_node(node)?;
        Some(patterns.iter().map(|pattern| CommandPattern::parse(pattern)).collect())
    }

    fn to_json(&self) -> Option<Value> {
        None
    }
}

/// A way to read the value of a key, and to show the default of the key.
pub struct Conversion<T> {
    /// Returns the value of a node. `None` if the node holds another kind of value.
    pub read: fn(&Node, &mut Builder<'_>) -> Option<T>,
    /// Returns the value as a policy file states it, for the schema.
    pub show: fn(&T) -> Option<Value>,
}

impl<T> Conversion<T> {
    /// Returns a conversion of a key without a default.
    #[must_use]
    pub const fn reading(read: fn(&Node, &mut Builder<'_>) -> Option<T>) -> Self {
        Self { read, show: |_| None }
    }
}

impl<T: TypedValue> Conversion<T> {
    /// Returns the conversion that the type of the field determines.
    #[must_use]
    pub const fn of_type() -> Self {
        Self { read: T::from_node, show: T::to_json }
    }
}

/// Returns the conversion of a list that a file may state as one item.
#[must_use]
pub const fn one_or_list<T: FieldValue>() -> Conversion<Vec<T>> {
    Conversion {
        read: |node, _| Some(node.one_or_items().iter().filter_map(T::from_node).collect()),
        show: FieldValue::to_json,
    }
}

/// Returns the conversion of a map whose keys are values, too, in its order. Skips entries of another kind.
#[must_use]
pub const fn entries<K: FieldValue, V: FieldValue>() -> Conversion<Vec<(K, V)>> {
    Conversion::reading(|node, _| {
        let entries = node.entries().unwrap_or_default().iter();
        Some(
            entries.filter_map(|(key, value)| K::from_node(key).zip(V::from_node(value))).collect(),
        )
    })
}

/// A template, whose placeholders are typed.
pub(super) const TEMPLATE: Conversion<String> =
    Conversion { read: |node, builder| builder.template(node), show: FieldValue::to_json };

/// Regular expressions, of which invalid ones are reported.
pub(super) const REGEXES: Conversion<Vec<String>> = Conversion {
    read: |node, builder| {
        builder.report_invalid_regexes(node);
        FieldValue::from_node(node)
    },
    show: FieldValue::to_json,
};

/// A map of templates, in its order.
pub(super) const TEMPLATES: Conversion<Vec<(String, String)>> =
    Conversion::reading(|node, builder| {
        let entries = node.entries().unwrap_or_default().iter();
        let templates = entries
            .filter_map(|(key, node)| Some((key.text()?.to_owned(), builder.template(node)?)));
        Some(templates.collect())
    });

impl Builder<'_> {
    /// Reports the keys that an entry lacks after it is merged with the entry that it overrides.
    pub(super) fn must_have<T>(&mut self, entry: &LayerEntry, record: &RecordType<T>, why: &str) {
        let needed = record.fields.iter().filter(|field| field.needed);
        for field in needed.filter(|field| entry.get(field.name).is_none()) {
            self.missing(entry, field.name, why);
        }
    }

    /// Builds the enabled entries of a list, while expressions see the record of the list.
    pub(super) fn section<T: Default>(
        &mut self,
        layers: &Layers,
        file: &'static str,
        section: &'static str,
        record: &RecordType<T>,
    ) -> Vec<T> {
        self.section_with(layers, file, section, record, |_, _, value| value)
    }

    /// Builds the enabled entries of a list like [`section`](Self::section); `finish` completes each value.
    pub(super) fn section_with<T: Default>(
        &mut self,
        layers: &Layers,
        file: &'static str,
        section: &'static str,
        record: &RecordType<T>,
        mut finish: impl FnMut(&mut Self, &LayerEntry, T) -> T,
    ) -> Vec<T> {
        let entries = layers.section(file, section);
        self.speaking_of(records::names(file, section), |builder| {
            let mut built = Vec::new();
            for entry in wanted(entries, builder.own_only) {
                builder.must_have(entry, record, "every entry of this list has it");
                let value = record.read(&entry.map(), builder);
                let value = finish(builder, entry, value);
                if entry.is_used() {
                    built.push(value);
                }
            }
            built
        })
    }
}

/// The day on which a rule expires: its first millisecond in UTC.
pub(super) const EXPIRES: Conversion<Option<i64>> =
    Conversion::reading(|node, _| node.date().map(|day| Some(day.millis())));

/// Declares [`RecordType`]s. Each row is one key:
///
/// ```text
/// key: KIND => field, "doc";                the key sets `field`, and its default is the default of `field`
/// key: KIND => field by CONVERSION, "doc";  the same, if the type of `field` does not determine the conversion
/// key: KIND, "doc";                         other code reads the key
/// key: section RECORD, "doc";               a map whose keys set the same value, each read from the topmost pack
/// key: part RECORD, "doc";                  the same, but only the map of the topmost pack that has one is read
/// key [needed()]: ...                       methods of `Field` refine the key
/// use FIELD;                                a key that several records share; other code reads it
/// use FIELD => field [by CONVERSION];       the same, and the key sets `field`
/// ```
#[macro_export]
macro_rules! record {
    ($($(#[$meta:meta])* $visibility:vis const $name:ident: RecordType<$target:ty> = { $($rows:tt)* })+) => {
        $($(#[$meta])*
        $visibility const $name: $crate::record::RecordType<$target> = {
            const FIELDS: &[policyd_yaml::shape::Field] = $crate::record!(@fields $target, [] $($rows)*);
            $crate::record::RecordType {
                fields: FIELDS,
                map: policyd_yaml::shape::Kind::Record(FIELDS),
                list: policyd_yaml::shape::Kind::List(&policyd_yaml::shape::Kind::Record(FIELDS)),
                items: $crate::record::Conversion::reading(|list, builder| {
                    $name.read_items(list, builder)
                }),
                fill: |value, map, builder| { $crate::record!(@fill value, map, builder, $($rows)*); },
            }
        };)+
    };

    (@fields $target:ty, [$($done:expr,)*]) => { &[$($done),*] };
    (@fields $target:ty, [$($done:expr,)*]
        use $field:expr $(=> $($place:ident).+ $(by $conversion:expr)?)?; $($rest:tt)*
    ) => {
        $crate::record!(@fields $target, [$($done,)*
            $field $(.with_default($crate::record!(@default $target, $($place).+ $(by $conversion)?)))?,
        ] $($rest)*)
    };
    (@fields $target:ty, [$($done:expr,)*]
        $key:ident $([$($refine:tt)+])?: section $record:path, $doc:literal; $($rest:tt)*
    ) => {
        $crate::record!(@fields $target, [$($done,)*
            policyd_yaml::shape::Field::optional(stringify!($key), $record.map, $doc)
                $(.$($refine)+)?,
        ] $($rest)*)
    };
    (@fields $target:ty, [$($done:expr,)*]
        $key:ident $([$($refine:tt)+])?: part $record:path, $doc:literal; $($rest:tt)*
    ) => {
        $crate::record!(@fields $target, [$($done,)*
            policyd_yaml::shape::Field::optional(stringify!($key), $record.map, $doc)
                $(.$($refine)+)?,
        ] $($rest)*)
    };
    (@fields $target:ty, [$($done:expr,)*]
        $key:ident $([$($refine:tt)+])?: $kind:expr
            $(=> $($place:ident).+ $(by $conversion:expr)?)?, $doc:literal; $($rest:tt)*
    ) => {
        $crate::record!(@fields $target, [$($done,)*
            policyd_yaml::shape::Field::optional(stringify!($key), $kind, $doc)
                $(.with_default($crate::record!(@default $target, $($place).+ $(by $conversion)?)))?
                $(.$($refine)+)?,
        ] $($rest)*)
    };
    (@default $target:ty, $($place:ident).+ $(by $conversion:expr)?) => {
        || {
            let value = <$target>::default();
            ($crate::record!(@conversion $($conversion)?).show)(&value.$($place).+)
        }
    };
    (@conversion) => { $crate::record::Conversion::of_type() };
    (@conversion $conversion:expr) => { $conversion };

    (@fill $value:ident, $map:ident, $builder:ident,) => {
        let _ = ($value, $map, $builder);
    };
    (@fill $value:ident, $map:ident, $builder:ident,
        use $field:expr $(=> $($place:ident).+ $(by $conversion:expr)?)?; $($rest:tt)*
    ) => {
        $(if let Some(node) = $map.get($field.name)
            && let Some(read) = ($crate::record!(@conversion $($conversion)?).read)(node, $builder)
        {
            $value.$($place).+ = read;
        })?
        $crate::record!(@fill $value, $map, $builder, $($rest)*);
    };
    (@fill $value:ident, $map:ident, $builder:ident,
        $key:ident $([$($refine:tt)+])?: section $record:path, $doc:literal; $($rest:tt)*
    ) => {
        ($record.fill)($value, &$map.section(stringify!($key)), $builder);
        $crate::record!(@fill $value, $map, $builder, $($rest)*);
    };
    (@fill $value:ident, $map:ident, $builder:ident,
        $key:ident $([$($refine:tt)+])?: part $record:path, $doc:literal; $($rest:tt)*
    ) => {
        ($record.fill)($value, &$map.get(stringify!($key)).into_iter().collect(), $builder);
        $crate::record!(@fill $value, $map, $builder, $($rest)*);
    };
    (@fill $value:ident, $map:ident, $builder:ident,
        $key:ident $([$($refine:tt)+])?: $kind:expr
            $(=> $($place:ident).+ $(by $conversion:expr)?)?, $doc:literal; $($rest:tt)*
    ) => {
        $(if let Some(node) = $map.get(stringify!($key))
            && let Some(read) = ($crate::record!(@conversion $($conversion)?).read)(node, $builder)
        {
            $value.$($place).+ = read;
        })?
        $crate::record!(@fill $value, $map, $builder, $($rest)*);
    };
}
pub(super) use record;

/// States the word of each variant of enums in policy files, in the order in which the words are documented.
macro_rules! words {
    ($($words:ty { $($variant:ident = $word:literal),+ $(,)? })+) => {
        $(impl $crate::field_value::Word for $words {
            const NAMES: &'static [&'static str] = &[$($word),+];
            const VALUES: &'static [Self] = &[$(Self::$variant),+];
        })+
    };
}
pub(super) use words;
