//! Health of a run as a score and a verdict. shipwright uses the same score.
//!
//! | score | better than before | not better, or the first |
//! |---|---|---|
//! | 70 and more | continue | continue |
//! | 50 to 69 | continue | warn |
//! | 30 to 49 | warn | intervene |
//! | below 30 | abort | abort |

/// Verdict on a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthVerdict {
    /// Progress is good.
    Continue,
    /// A user might inspect the run.
    Warn,
    /// A user should intervene.
    Intervene,
    /// The run makes no progress.
    Abort,
}

impl HealthVerdict {
    /// Names of the verdicts.
    pub const NAMES: &[&str] = &[
        Self::Continue.as_str(),
        Self::Warn.as_str(),
        Self::Intervene.as_str(),
        Self::Abort.as_str(),
    ];

    /// Returns the stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Warn => "warn",
            Self::Intervene => "intervene",
            Self::Abort => "abort",
        }
    }
}

/// Returns the verdict on a score, by the previous score.
#[must_use]
pub fn verdict(score: u32, previous: Option<u32>) -> HealthVerdict {
    let better = previous.is_some_and(|before| score > before);
    match (score, better) {
        (70.., _) | (50..=69, true) => HealthVerdict::Continue,
        (50..=69, false) | (30..=49, true) => HealthVerdict::Warn,
        (30..=49, false) => HealthVerdict::Intervene,
        (0..=29, _) => HealthVerdict::Abort,
    }
}

/// Parts of a score, each from 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vitals {
    /// Share of the last turns that changed files.
    pub momentum: u32,
    /// Share of the last turns without an error.
    pub convergence: u32,
    /// Remaining share of the turns or of the cost limit, whichever is less.
    pub budget: u32,
    /// 100 without errors, less with repeated errors.
    pub maturity: u32,
}

impl Vitals {
    /// Returns the weighted mean, from 0 to 100.
    #[must_use]
    pub fn score(self) -> u32 {
        let weighed =
            [(self.momentum, 35), (self.convergence, 30), (self.budget, 20), (self.maturity, 15)];
        let sum: u32 =
            weighed.iter().map(|(part, weight)| (*part).min(100).saturating_mul(*weight)).sum();
        sum / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_that_of_the_table() {
        for score in 0..=100_u32 {
            let wanted = match score {
                70.. => ["continue"; 3],
                50..=69 => ["warn", "warn", "continue"],
                30..=49 => ["intervene", "intervene", "warn"],
                _ => ["abort"; 3],
            };
            let got =
                [None, Some(score), score.checked_sub(1)].map(|it| verdict(score, it).as_str());
            let wanted = if score == 0 { ["abort"; 3] } else { wanted };
            assert_eq!(got, wanted, "{score}");
        }
    }

    #[test]
    fn the_score_is_weighed() {
        let all = |it| Vitals { momentum: it, convergence: it, budget: it, maturity: it };
        assert_eq!(
            [all(0).score(), all(50).score(), all(100).score(), all(900).score()],
            [0, 50, 100, 100]
        );
        assert_eq!(Vitals { momentum: 100, ..all(0) }.score(), 35);
        assert_eq!(Vitals { convergence: 100, ..all(0) }.score(), 30);
        assert_eq!(Vitals { budget: 100, ..all(0) }.score(), 20);
        assert_eq!(Vitals { maturity: 100, ..all(0) }.score(), 15);
    }
}
