//! Results of functions of texts and files, kept as long as reviews of a pack use them. A language server reviews a pack
//! after each keystroke, and all of its files but one are those of the last review.
//!
//! INVARIANT: a function whose results are kept depends on nothing but its arguments.

use std::any::Any;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Node, Source, yaml};

/// Reviews after which an unused result is dropped.
const REVIEWS_KEPT: u64 = 3;

/// MemoState results. A memo that is off keeps nothing.
#[derive(Debug)]
pub struct Memo {
    kept: Option<Mutex<MemoState>>,
}

#[derive(Debug, Default)]
struct MemoState {
    /// Number of the review.
    review: u64,
    /// The last content of each file.
    sources: BTreeMap<String, MemoEntry<Source>>,
    /// By function, context, and address of the file.
    of_sources: BTreeMap<(&'static str, u64, usize), OfSource>,
    /// By function and context, then by the hash of the text.
    of_texts: BTreeMap<(&'static str, u64), BTreeMap<u64, OfText>>,
}

type Result = dyn Any + Send + Sync;

/// A result of a file, which is kept so that no other file has its address.
type OfSource = (Arc<Source>, MemoEntry<Result>);

/// A result of a text. Of two texts with the same hash, one is kept.
type OfText = (String, MemoEntry<Result>);

/// Returns the hash of a value within this process, by which it is found: long texts take longer to compare than to hash.
#[must_use]
pub fn hash_of<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[derive(Debug)]
struct MemoEntry<T: ?Sized> {
    value: Arc<T>,
    /// Number of the last review that used it.
    used: u64,
}

impl<T: ?Sized> MemoEntry<T> {
    fn value(&mut self, review: u64) -> Arc<T> {
        self.used = review;
        Arc::clone(&self.value)
    }

    const fn is_kept(&self, review: u64) -> bool {
        self.used + REVIEWS_KEPT > review
    }
}

impl Memo {
    /// Returns a memo that keeps nothing.
    #[must_use]
    pub const fn off() -> Self {
        Self { kept: None }
    }

    /// Returns a memo that keeps results.
    #[must_use]
    pub fn on() -> Self {
        Self { kept: Some(Mutex::default()) }
    }

    fn kept(&self) -> Option<MutexGuard<'_, MemoState>> {
        self.kept.as_ref().map(|it| it.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins a review: drops what the last reviews did not use.
    pub fn begin_review(&self) {
        let Some(mut kept) = self.kept() else { return };
        kept.review += 1;
        let review = kept.review;
        kept.sources.retain(|_, it| it.is_kept(review));
        kept.of_sources.retain(|_, (_, it)| it.is_kept(review));
        for known in kept.of_texts.values_mut() {
            known.retain(|_, (_, it)| it.is_kept(review));
        }
    }

    /// Returns a file: the kept one of the same name and text, so that its results are found.
    #[must_use]
    pub fn source(&self, source: Arc<Source>) -> Arc<Source> {
        let Some(mut kept) = self.kept() else { return source };
        let review = kept.review;
        match kept.sources.get_mut(&source.name) {
            Some(known) if known.value == source => known.value(review),
            _ => {
                let entry = MemoEntry { value: Arc::clone(&source), used: review };
                kept.sources.insert(source.name.clone(), entry);
                source
            }
        }
    }

    /// Returns the result of a function of a file in a context.
    pub fn of_source<T: Send + Sync + 'static>(
        &self,
        function: &'static str,
        context: u64,
        source: &Arc<Source>,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        let key = (function, context, Arc::as_ptr(source).addr());
        let known = self.kept().and_then(|mut kept| {
            let review = kept.review;
            kept.of_sources.get_mut(&key).map(|(_, it)| it.value(review))
        });
        if let Some(known) = known.and_then(|it| it.downcast().ok()) {
            return known;
        }
        let value = Arc::new(make());
        if let Some(mut kept) = self.kept() {
            let entry = MemoEntry { value: Arc::clone(&value) as Arc<Result>, used: kept.review };
            kept.of_sources.insert(key, (Arc::clone(source), entry));
        }
        value
    }

    /// Returns the result of a function of a text in a context.
    pub fn of_text<T: Send + Sync + 'static>(
        &self,
        function: &'static str,
        context: u64,
        text: &str,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        let (key, hash) = ((function, context), hash_of(text));
        let known = self.kept().and_then(|mut kept| {
            let review = kept.review;
            let known = kept.of_texts.get_mut(&key)?.get_mut(&hash);
            known.filter(|(known, _)| known == text).map(|(_, it)| it.value(review))
        });
        if let Some(known) = known.and_then(|it| it.downcast().ok()) {
            return known;
        }
        let value = Arc::new(make());
        if let Some(mut kept) = self.kept() {
            let entry = MemoEntry { value: Arc::clone(&value) as Arc<Result>, used: kept.review };
            kept.of_texts.entry(key).or_default().insert(hash, (text.to_owned(), entry));
        }
        value
    }

    /// Returns the tree of a file. `None` if the file is not valid YAML.
    #[must_use]
    pub fn tree(&self, source: &Arc<Source>) -> Arc<Option<Node>> {
        self.of_source("tree", 0, source, || yaml::parse(source).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Arc<Source> {
        Arc::new(Source { name: "a.yaml".to_owned(), text: text.to_owned() })
    }

    #[test]
    fn a_result_is_made_once_for_each_argument() {
        let memo = Memo::on();
        let length = |context: u64, text: &str, made: usize| {
            *memo.of_text("length", context, text, || text.len() + made)
        };
        assert_eq!((length(0, "ab", 0), length(0, "ab", 9), length(0, "abc", 0)), (2, 2, 3));
        assert_eq!(length(1, "ab", 7), 9, "another context");
        let (first, second) = (memo.source(file("a: 1")), memo.source(file("a: 1")));
        assert!(Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&memo.tree(&first), &memo.tree(&second)));
        let changed = memo.source(file("a: 2"));
        assert_eq!(memo.tree(&changed).as_ref().as_ref().unwrap().get("a").unwrap().int(), Some(2));
    }

    #[test]
    fn an_unused_result_is_dropped() {
        let memo = Memo::on();
        let made = |value: u8| *memo.of_text("value", 0, "x", || value);
        assert_eq!(made(1), 1);
        for _ in 0..REVIEWS_KEPT * 2 {
            memo.begin_review();
            assert_eq!(made(2), 1, "each review uses it");
        }
        (0..REVIEWS_KEPT).for_each(|_| memo.begin_review());
        assert_eq!(made(3), 3);
        let off = Memo::off();
        assert_eq!([1, 2].map(|it| *off.of_text("value", 0, "x", || it)), [1, 2]);
    }
}
