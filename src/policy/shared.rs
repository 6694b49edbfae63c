//! Values that many packs share. A value can be made when it is used first.

use std::ops::Deref;
use std::sync::{Arc, LazyLock};

/// Makes a value, once.
type Make<T> = Box<dyn FnOnce() -> T + Send>;

/// A value that its clones share.
#[derive(Debug)]
pub(super) enum SharedValue<T> {
    /// The value exists.
    Made(Arc<T>),
    /// The value is made when it is used first.
    Later(Arc<LazyLock<T, Make<T>>>),
}

impl<T> SharedValue<T> {
    /// Returns an existing value.
    pub(super) fn new(value: T) -> Self {
        Self::Made(Arc::new(value))
    }

    /// Returns a value that `make` makes when it is used first.
    pub(super) fn later(make: impl FnOnce() -> T + Send + 'static) -> Self {
        Self::Later(Arc::new(LazyLock::new(Box::new(make))))
    }

    /// Returns the value if it was created by [`new`](Self::new).
    pub(super) fn made(&self) -> Option<&T> {
        match self {
            Self::Made(value) => Some(value),
            Self::Later(_) => None,
        }
    }
}

impl<T: Clone> SharedValue<T> {
    /// Returns the value for changes. A shared value is cloned first.
    pub(super) fn to_mut(&mut self) -> &mut T {
        match self {
            Self::Made(value) => Arc::make_mut(value),
            Self::Later(value) => {
                *self = Self::new(T::clone(value));
                self.to_mut()
            }
        }
    }

    /// Returns the value. A shared value is cloned.
    pub(super) fn into_owned(self) -> T {
        match self {
            Self::Made(value) => Arc::unwrap_or_clone(value),
            Self::Later(value) => T::clone(&value),
        }
    }
}

impl<T> Clone for SharedValue<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Made(value) => Self::Made(Arc::clone(value)),
            Self::Later(value) => Self::Later(Arc::clone(value)),
        }
    }
}

impl<T: Default> Default for SharedValue<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Deref for SharedValue<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Made(value) => value,
            Self::Later(value) => value,
        }
    }
}
