//! Kinds of effects of calls and of programs. Guards whose condition asks about other kinds are neither decoded nor evaluated.

use serde::{Deserialize, Serialize};

use super::file_access::Access;

/// A set of kinds of effects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEffects(u16);

impl CallEffects {
    /// A file is read.
    pub const READ: Self = Self(1);
    /// A file is written or deleted.
    pub const CHANGE: Self = Self(1 << 1);
    /// A directory tree is written, or mounted in a container.
    pub const TREE: Self = Self(1 << 2);
    /// A variable of a program is set.
    pub const VARIABLE: Self = Self(1 << 3);
    /// A part does not end.
    pub const ENDLESS: Self = Self(1 << 4);
    /// A program deletes a file.
    pub const DELETE: Self = Self(1 << 5);
    /// A program moves a file to another path.
    pub const MOVE: Self = Self(1 << 6);
    /// A program writes a file.
    pub const WRITE: Self = Self(1 << 7);
    /// A program runs statements of a database.
    pub const QUERY: Self = Self(1 << 8);
    /// A program can come from a registry and run at once.
    pub const PACKAGE: Self = Self(1 << 9);
    /// Every kind.
    pub const ALL: Self = Self(u16::MAX);

    /// Effects by which `commands` of a guard names programs.
    pub const OF_PROGRAMS: [(&str, Self); 5] = [
        ("@deletes", Self::DELETE),
        ("@moves", Self::MOVE),
        ("@writes", Self::WRITE),
        ("@queries", Self::QUERY),
        ("@packages", Self::PACKAGE),
    ];

    /// The kinds of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the effects by which guards name a program that accesses a file.
    pub(super) const fn of_program(does: Access) -> Self {
        match does {
            Access::Delete => Self::DELETE,
            Access::Move => Self::MOVE,
            Access::Write => Self::WRITE,
            Access::Read => Self(0),
        }
    }

    /// Returns the names of the effects in the set by which `commands` of a guard names programs.
    pub fn labels(self) -> impl Iterator<Item = &'static str> {
        Self::OF_PROGRAMS.into_iter().filter(move |it| self.has_some(it.1)).map(|it| it.0)
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
