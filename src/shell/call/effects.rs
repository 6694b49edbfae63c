//! Which kinds of effects a call has. Guards whose condition asks about others are neither decoded nor evaluated.

use serde::{Deserialize, Serialize};

use super::{Access, Call};

/// A set of kinds of effects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEffects(u8);

impl CallEffects {
    /// A file is read.
    pub const READ: Self = Self(1);
    /// A file is written or deleted.
    pub const CHANGE: Self = Self(1 << 1);
    /// A directory tree is written.
    pub const TREE: Self = Self(1 << 2);
    /// A variable of a program is set.
    pub const VARIABLE: Self = Self(1 << 3);
    /// A part does not end.
    pub const ENDLESS: Self = Self(1 << 4);
    /// Every kind.
    pub const ALL: Self = Self((1 << 5) - 1);

    /// The kinds of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether a kind is in both sets.
    #[must_use]
    pub const fn has_some(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the number of each kind in the set.
    pub fn numbers(self) -> impl Iterator<Item = u32> {
        (0..u8::BITS).filter(move |it| self.0 & (1 << it) != 0)
    }
}

impl Call {
    /// Returns the effects that the call may have: all kinds, if a part of it was not understood, or if it applies a patch,
    /// whose files are known when it is read.
    #[must_use]
    pub fn effects(&self) -> CallEffects {
        if !self.is_understood() || self.beyond || !self.patches.is_empty() {
            return CallEffects::ALL;
        }
        let does = |is_such: fn(Access) -> bool| self.files.iter().any(|it| is_such(it.does));
        let kinds = [
            (CallEffects::READ, does(|it| it == Access::Read)),
            (CallEffects::CHANGE, does(|it| it != Access::Read)),
            (CallEffects::TREE, !self.trees.is_empty()),
            (CallEffects::VARIABLE, !self.variables.is_empty()),
            (CallEffects::ENDLESS, self.endless),
        ];
        let kinds = kinds.into_iter().filter_map(|(kind, has)| has.then_some(kind));
        kinds.fold(CallEffects::default(), CallEffects::union)
    }
}
