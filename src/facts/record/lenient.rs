//! Lenient JSON values: a field of an unexpected type reads as empty, so that its line stays
//! readable.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A scalar, borrowed from the line if it contains no escapes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum JsonScalar<'a> {
    Text(Cow<'a, str>),
    Flag(bool),
    Number(u64),
    Negative(i64),
    #[default]
    Other,
}

struct ScalarVisitor<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for ScalarVisitor<'a> {
    type Value = JsonScalar<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(JsonScalar::Text(Cow::Borrowed(text)))
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(JsonScalar::Text(Cow::Owned(text.to_owned())))
    }
    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(JsonScalar::Text(Cow::Owned(text)))
    }
    fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(JsonScalar::Flag(flag))
    }
    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(JsonScalar::Number(number))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(u64::try_from(number).map_or(JsonScalar::Negative(number), JsonScalar::Number))
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(JsonScalar::Other)
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(JsonScalar::Other)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(JsonScalar::Other)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(JsonScalar::Other)
    }
}

fn scalar<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<JsonScalar<'a>, D::Error> {
    from.deserialize_any(ScalarVisitor(PhantomData))
}

/// A text. A number reads as its digits, any other value as an empty text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text<'a>(pub Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(match scalar(from)? {
            JsonScalar::Text(text) => Self(text),
            JsonScalar::Number(number) => Self(Cow::Owned(number.to_string())),
            JsonScalar::Flag(_) | JsonScalar::Negative(_) | JsonScalar::Other => Self::default(),
        })
    }
}

/// A flag. Any value except `true` reads as false.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flag(pub bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(scalar(from)? == JsonScalar::Flag(true)))
    }
}

/// A count. Any value except a non-negative integer reads as 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LenientCount(pub u64);

impl<'de> Deserialize<'de> for LenientCount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(match scalar(from)? {
            JsonScalar::Number(number) => number,
            JsonScalar::Text(_)
            | JsonScalar::Flag(_)
            | JsonScalar::Negative(_)
            | JsonScalar::Other => 0,
        }))
    }
}

/// An exit code. A value that is not an integer reads as -1, which never means success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(pub i32);

impl<'de> Deserialize<'de> for Exit {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let code = match scalar(from)? {
            JsonScalar::Number(number) => i32::try_from(number).ok(),
            JsonScalar::Negative(number) => i32::try_from(number).ok(),
            JsonScalar::Text(text) => text.trim().parse().ok(),
            JsonScalar::Flag(_) | JsonScalar::Other => None,
        };
        Ok(Self(code.unwrap_or(-1)))
    }
}

/// A text or nested values, depending on the JSON value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Either<'a, T> {
    Text(Cow<'a, str>),
    /// An object. Boxed, because the shapes contain each other and most lines use few of them.
    One(Box<T>),
    /// A list. Elements that are neither text nor object are dropped.
    Many(Vec<Either<'a, T>>),
    /// Any other value.
    #[default]
    None,
}

impl<'a, T> Either<'a, T> {
    /// Returns the object, if the value is one.
    pub fn one(&self) -> Option<&T> {
        match self {
            Self::One(value) => Some(value),
            Self::Text(_) | Self::Many(_) | Self::None => None,
        }
    }

    /// Returns the text, if the value is one; otherwise an empty text.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::One(_) | Self::Many(_) | Self::None => "",
        }
    }

    /// Returns the elements of a list, or the value itself, as owned values.
    pub fn into_elements(self) -> Vec<Self> {
        match self {
            Self::Many(values) => values,
            Self::Text(_) | Self::One(_) => vec![self],
            Self::None => Vec::new(),
        }
    }

    /// Returns the elements of a list, or the value itself.
    pub fn elements(&self) -> std::slice::Iter<'_, Either<'a, T>> {
        match self {
            Self::Many(values) => values.iter(),
            Self::Text(_) | Self::One(_) => std::slice::from_ref(self).iter(),
            Self::None => [].iter(),
        }
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Either<'a, T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(EitherVisitor(PhantomData))
    }
}

struct EitherVisitor<'a, T>(PhantomData<(&'a (), T)>);

impl<'de: 'a, 'a, T: Deserialize<'de>> Visitor<'de> for EitherVisitor<'a, T> {
    type Value = Either<'a, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Either::Text(Cow::Borrowed(text)))
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Either::Text(Cow::Owned(text.to_owned())))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|it| Either::One(Box::new(it)))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element()? {
            if !matches!(value, Either::None) {
                values.push(value);
            }
        }
        Ok(Either::Many(values))
    }
    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Either::None)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Either::None)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Either::None)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Either::None)
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Either::None)
    }
}

/// Returns the first text, or the second one if the first is empty.
pub(super) fn or<'a>(first: Text<'a>, second: Text<'a>) -> Cow<'a, str> {
    if first.is_empty() { second.0 } else { first.0 }
}
