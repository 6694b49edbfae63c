//! How far policyd answers permission prompts in place of the user.

use serde::{Deserialize, Serialize};

use super::field_value::Word;

/// Calls that are approved without a question. Only the user or the organization chooses it; a project cannot.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum ApprovalLevel {
    /// None.
    #[default]
    None,
    /// Calls that only read.
    Read,
    /// Also the usual work in the project.
    Work,
}

impl Word for ApprovalLevel {
    const NAMES: &'static [&'static str] = &["none", "read", "work"];
    const VALUES: &'static [Self] = &[Self::None, Self::Read, Self::Work];
}

impl ApprovalLevel {
    /// Returns the word of the level.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Work => "work",
        }
    }

    /// Combines the choices of the organization and of the user: the lower one counts, if both chose.
    #[must_use]
    pub fn chosen(organization: Option<Self>, user: Option<Self>) -> Self {
        match (organization, user) {
            (Some(one), Some(other)) => one.min(other),
            (one, other) => one.or(other).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ApprovalLevel::{self, None as Nothing, Read, Work};

    #[test]
    fn the_lower_level_counts_if_both_chose() {
        let expected = [
            (None, None, Nothing),
            (None, Some(Work), Work),
            (Some(Read), None, Read),
            (Some(Read), Some(Work), Read),
            (Some(Work), Some(Read), Read),
            (Some(Nothing), Some(Work), Nothing),
        ];
        for (organization, user, level) in expected {
            assert_eq!(ApprovalLevel::chosen(organization, user), level);
        }
    }
}
