//! Lenient JSON values: a field of an unexpected type reads as empty instead of failing its line.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A scalar, borrowed from the line where it holds no escapes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Scalar<'a> {
    Text(Cow<'a, str>),
    Flag(bool),
    Number(u64),
    Negative(i64),
    #[default]
    Other,
}

struct ScalarVisitor<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for ScalarVisitor<'a> {
    type Value = Scalar<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }
    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Owned(text)))
    }
    fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(Scalar::Flag(flag))
    }
    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Scalar::Number(number))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(u64::try_from(number).map_or(Scalar::Negative(number), Scalar::Number))
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Scalar::Other)
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Scalar::Other)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }
}

fn scalar<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Scalar<'a>, D::Error> {
    from.deserialize_any(ScalarVisitor(PhantomData))
}

/// A text; a number reads as its digits, anything else as the empty text.
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
            Scalar::Text(text) => Self(text),
            Scalar::Number(number) => Self(Cow::Owned(number.to_string())),
            Scalar::Flag(_) | Scalar::Negative(_) | Scalar::Other => Self::default(),
        })
    }
}

/// A flag; anything but `true` reads as false.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flag(pub bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(scalar(from)? == Scalar::Flag(true)))
    }
}

/// A count; anything but a whole number from 0 on reads as 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count(pub u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(match scalar(from)? {
            Scalar::Number(number) => number,
            Scalar::Text(_) | Scalar::Flag(_) | Scalar::Negative(_) | Scalar::Other => 0,
        }))
    }
}

/// An exit code; a value that is not a whole number reads as -1, which is never success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(pub i32);

impl<'de> Deserialize<'de> for Exit {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let code = match scalar(from)? {
            Scalar::Number(number) => i32::try_from(number).ok(),
            Scalar::Negative(number) => i32::try_from(number).ok(),
            Scalar::Text(text) => text.trim().parse().ok(),
            Scalar::Flag(_) | Scalar::Other => None,
        };
        Ok(Self(code.unwrap_or(-1)))
    }
}

/// Text or nested values, whichever a field holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Either<'a, T> {
    /// A text.
    Text(Cow<'a, str>),
    /// An object. Boxed: the shapes hold one another, and most lines use few of them.
    One(Box<T>),
    /// A list; what is neither text nor object in it is left out.
    Many(Vec<Either<'a, T>>),
    /// Anything else.
    #[default]
    None,
}

impl<'a, T> Either<'a, T> {
    /// The object, if it is one.
    pub fn one(&self) -> Option<&T> {
        match self {
            Self::One(value) => Some(value),
            Self::Text(_) | Self::Many(_) | Self::None => None,
        }
    }

    /// The elements of a list, the value itself where it is none, as values of their own.
    pub fn into_elements(self) -> Vec<Self> {
        match self {
            Self::Many(values) => values,
            Self::Text(_) | Self::One(_) => vec![self],
            Self::None => Vec::new(),
        }
    }

    /// The elements of a list, the value itself where it is none.
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
