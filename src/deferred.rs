//! A value that stays encoded until it is looked at: a call that decodes a whole pack spends most of
//! its time on rules and texts that it never needs. What is read as a whole is kept as a whole, and each
//! value knows its part of it: nothing is copied to be left alone.

use std::cell::RefCell;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value, or what it was encoded as. Bytes that are no such value read as its default; whoever
/// keeps them proves them by a checksum.
#[derive(Debug, Clone, Default)]
pub struct Deferred<T> {
    /// Nothing, where the value never was encoded.
    encoded: Option<Encoded>,
    value: OnceLock<T>,
}

/// A part of bytes that were read as a whole.
#[derive(Clone)]
struct Encoded {
    whole: Arc<Vec<u8>>,
    part: Range<usize>,
}

impl std::fmt::Debug for Encoded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.part.len())
    }
}

thread_local! {
    /// What is being decoded, for the values within it that are left encoded.
    static WHOLE: RefCell<Arc<Vec<u8>>> = RefCell::default();
}

/// Decodes a part of bytes that were read as a whole; what is left encoded goes on to share them.
#[must_use]
pub fn decode<T: DeserializeOwned>(whole: &Arc<Vec<u8>>, part: Range<usize>) -> Option<T> {
    let bytes = whole.get(part)?;
    let around = WHOLE.replace(Arc::clone(whole));
    let value = postcard::from_bytes(bytes).ok();
    WHOLE.replace(around);
    value
}

impl Encoded {
    /// These bytes, which are a part of what is being decoded, or a copy of them.
    fn of(bytes: &[u8]) -> Self {
        WHOLE.with_borrow(|whole| {
            let start = bytes.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
            let part = start..start.wrapping_add(bytes.len());
            match whole.get(part.clone()) {
                Some(found) if std::ptr::eq(found, bytes) => {
                    Self { whole: Arc::clone(whole), part }
                }
                Some(_) | None => Self { part: 0..bytes.len(), whole: Arc::new(bytes.to_vec()) },
            }
        })
    }
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
        Self { encoded: None, value: OnceLock::from(value) }
    }
}

impl<T: DeserializeOwned + Default> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        let decoded = |it: &Encoded| decode(&it.whole, it.part.clone());
        self.value.get_or_init(|| self.encoded.as_ref().and_then(decoded).unwrap_or_default())
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
        let encoded = Some(from.deserialize_bytes(Bytes)?);
        Ok(Self { encoded, value: OnceLock::new() })
    }
}

struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = Encoded;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Encoded::of(bytes))
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
    fn what_was_read_as_a_whole_is_shared_however_deep_a_value_lies() {
        type Nested = (u8, Deferred<Vec<Deferred<Vec<String>>>>);
        let texts = |count: usize| -> Vec<String> { (0..count).map(|it| it.to_string()).collect() };
        let known = Deferred::from(vec![Deferred::from(texts(3)), Deferred::from(texts(0))]);
        let bytes = postcard::to_stdvec(&(7_u8, &known)).unwrap();
        // Other bytes stand before it, as a key does.
        let whole = Arc::new([b"key".as_slice(), &bytes].concat());
        let (number, read): Nested = decode(&whole, 3..whole.len()).unwrap();
        assert_eq!((number, &read), (7, &known));
        let shares = |it: &Option<Encoded>| Arc::ptr_eq(&it.as_ref().unwrap().whole, &whole);
        assert!(shares(&read.encoded) && read.iter().all(|it| shares(&it.encoded)));
        assert_eq!(decode::<Vec<String>>(&whole, 3..whole.len() + 1), None, "beyond the end");
        // What is decoded by itself has bytes of its own.
        let (_, alone): Nested = postcard::from_bytes(&bytes).unwrap();
        assert!(!shares(&alone.encoded) && alone == known);
    }

    #[test]
    fn what_is_no_value_reads_as_the_default() {
        let odd: Deferred<Vec<String>> = postcard::from_bytes(&[2, 9, 9]).unwrap();
        assert!(odd.is_empty());
        assert!(Deferred::<Vec<String>>::default().is_empty());
    }
}
