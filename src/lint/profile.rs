//! Profiles: how strict a review is.

/// How strict a review is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// Errors and probable mistakes.
    Default,
    /// Also missing cases, texts, and reasons, for packs that others rely on.
    Strict,
    /// Equal to strict since 0.2.0, which removed the rules about style.
    Pedantic,
}

impl Profile {
    /// Returns the name of the profile.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Strict => "strict",
            Self::Pedantic => "pedantic",
        }
    }
}
