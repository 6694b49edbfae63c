//! A value that many packs share, and that may be made only when somebody asks for it.

use std::ops::Deref;
use std::sync::{Arc, LazyLock};

/// Makes a value, once.
type Make<T> = Box<dyn FnOnce() -> T + Send>;

/// A value that its copies share.
#[derive(Debug)]
pub(super) enum Shared<T> {
    /// It is there.
    Made(Arc<T>),
    /// It is made when somebody looks at it.
    Later(Arc<LazyLock<T, Make<T>>>),
}

impl<T> Shared<T> {
    /// A value that is there.
    pub(super) fn new(value: T) -> Self {
        Self::Made(Arc::new(value))
    }

    /// A value that `make` makes when somebody looks at it first.
    pub(super) fn later(make: impl FnOnce() -> T + Send + 'static) -> Self {
        Self::Later(Arc::new(LazyLock::new(Box::new(make))))
    }

    /// The value, unless it is one that is made later: that one is not made for this.
    pub(super) fn made(&self) -> Option<&T> {
        match self {
            Self::Made(value) => Some(value),
            Self::Later(_) => None,
        }
    }
}

impl<T: Clone> Shared<T> {
    /// The value for changing it: a copy of its own, where others share it.
    pub(super) fn to_mut(&mut self) -> &mut T {
        match self {
            Self::Made(value) => Arc::make_mut(value),
            Self::Later(value) => {
                *self = Self::new(T::clone(value));
                self.to_mut()
            }
        }
    }

    /// The value itself: a copy, where others share it.
    pub(super) fn into_owned(self) -> T {
        match self {
            Self::Made(value) => Arc::unwrap_or_clone(value),
            Self::Later(value) => T::clone(&value),
        }
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Made(value) => Self::Made(Arc::clone(value)),
            Self::Later(value) => Self::Later(Arc::clone(value)),
        }
    }
}

impl<T: Default> Default for Shared<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Made(value) => value,
            Self::Later(value) => value,
        }
    }
}
