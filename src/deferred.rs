//! A value that stays encoded until it is looked at: a call that decodes a whole pack spends most of
//! its time on rules and texts that it never needs.

use std::ops::Deref;
use std::sync::OnceLock;

use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value, or what it was encoded as. Bytes that are no such value read as its default; whoever
/// keeps them proves them by a checksum.
#[derive(Debug, Clone, Default)]
pub struct Deferred<T> {
    encoded: Vec<u8>,
    value: OnceLock<T>,
}

impl<T: DeserializeOwned + Default> Deferred<T> {
    /// The value itself.
    #[must_use]
    pub fn into_inner(mut self) -> T {
        let _decoded = &*self;
        self.value.take().unwrap_or_default()
    }

    /// Changes the value.
    pub fn change<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut value = std::mem::take(self).into_inner();
        let made = change(&mut value);
        *self = value.into();
        made
    }
}

impl<T> From<T> for Deferred<T> {
    fn from(value: T) -> Self {
        Self { encoded: Vec::new(), value: OnceLock::from(value) }
    }
}

impl<T: DeserializeOwned + Default> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.get_or_init(|| postcard::from_bytes(&self.encoded).unwrap_or_default())
    }
}

impl<T: DeserializeOwned + Default + std::fmt::Display> std::fmt::Display for Deferred<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: DeserializeOwned + Default + PartialEq> PartialEq for Deferred<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: DeserializeOwned + Default + Eq> Eq for Deferred<T> {}

impl<T: Serialize + DeserializeOwned + Default> Serialize for Deferred<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let encoded = postcard::to_stdvec(&**self).map_err(serde::ser::Error::custom)?;
        to.serialize_bytes(&encoded)
    }
}

impl<'de, T> Deserialize<'de> for Deferred<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let encoded = from.deserialize_bytes(Bytes)?;
        Ok(Self { encoded, value: OnceLock::new() })
    }
}

struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(bytes.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded_when_it_is_looked_at() {
        let texts = vec!["a".to_owned(), "b".to_owned()];
        let known = Deferred::from(texts.clone());
        let bytes = postcard::to_stdvec(&known).unwrap();
        let read: Deferred<Vec<String>> = postcard::from_bytes(&bytes).unwrap();
        assert!(read.value.get().is_none(), "nothing is decoded yet");
        assert_eq!(postcard::to_stdvec(&read).unwrap(), bytes);
        assert_eq!(read, known);
        assert_eq!(read.into_inner(), texts);
    }

    #[test]
    fn what_was_changed_is_encoded_as_it_is_now() {
        let bytes = postcard::to_stdvec(&Deferred::from(vec![1_u8, 2])).unwrap();
        let mut numbers: Deferred<Vec<u8>> = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(numbers.change(|it| it.pop()), Some(2));
        let bytes = postcard::to_stdvec(&numbers).unwrap();
        assert_eq!(postcard::from_bytes::<Deferred<Vec<u8>>>(&bytes).unwrap().into_inner(), [1]);
    }

    #[test]
    fn what_is_no_value_reads_as_the_default() {
        let odd: Deferred<Vec<String>> = postcard::from_bytes(&[2, 9, 9]).unwrap();
        assert!(odd.is_empty());
        assert!(Deferred::<Vec<String>>::default().is_empty());
    }
}
