//! Decisions, and their combination: the strongest decision wins.
//!
//! `none < allow < defer < ask < block < halt`. No decision never becomes an allow.

/// Decision on an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Decision {
    /// No decision: the client acts as it would without policyd.
    #[default]
    None,
    /// Allow without asking the user.
    Allow,
    /// Defer the call. The run ends, and the call waits for a later decision.
    Defer,
    /// Ask the user.
    Ask,
    /// Block the tool call, or continue a stop.
    Block,
    /// End the session.
    Halt,
}

impl Decision {
    /// All decisions, weakest first.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Allow, Self::Defer, Self::Ask, Self::Block, Self::Halt];

    /// Returns the stronger of two decisions.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        self.max(other)
    }

    /// Returns the stable name, as in the log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Allow => "allow",
            Self::Defer => "defer",
            Self::Ask => "ask",
            Self::Block => "block",
            Self::Halt => "halt",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combining_is_a_lattice() {
        for a in Decision::ALL {
            assert_eq!(a.combine(a), a, "idempotent");
            assert_eq!(a.combine(Decision::None), a, "no opinion changes nothing");
            for b in Decision::ALL {
                assert_eq!(a.combine(b), b.combine(a), "commutative");
                assert!(a.combine(b) >= a, "monotone");
                for c in Decision::ALL {
                    assert_eq!(a.combine(b).combine(c), a.combine(b.combine(c)), "associative");
                }
            }
        }
    }

    #[test]
    fn no_opinions_never_make_an_allow() {
        let combined = [Decision::None; 5].into_iter().fold(Decision::None, Decision::combine);
        assert_eq!(combined, Decision::None);
    }
}
