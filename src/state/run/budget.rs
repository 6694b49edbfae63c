//! Cost limit of a run: its parser, and the level of the amount spent.

/// Parses a limit in US dollars: digits with at most one point, with or without a leading `$`.
/// `None` for any other text, which the caller must report, because a typo must not remove the
/// limit.
#[must_use]
pub fn parse(text: &str) -> Option<f64> {
    let text = text.strip_prefix('$').unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    let any = !whole.is_empty() || !fraction.is_empty();
    if !any || !digits(whole) || !digits(fraction) {
        return None;
    }
    format!("0{whole}.{fraction}0").parse().ok().filter(|it: &f64| it.is_finite())
}

/// Formats an amount of money with cents; from a billion on in scientific notation.
#[must_use]
pub fn usd_text(amount: f64) -> String {
    const PLAIN_BELOW: f64 = 1e9;
    // The sum of no amounts is -0.0.
    let amount = amount + 0.0;
    if amount.abs() < PLAIN_BELOW { format!("{amount:.2}") } else { format!("{amount:.2e}") }
}

/// Cost of supervised turns. The cost of some of them can be unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TurnCost {
    /// Sum in USD of the turns whose cost is known.
    pub known_usd: f64,
    /// Number of turns whose cost is unknown.
    pub unpriced: u32,
}

impl TurnCost {
    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            known_usd: self.known_usd + more.known_usd,
            unpriced: self.unpriced.saturating_add(more.unpriced),
        }
    }

    /// Returns the amount in USD. `None` if the cost of every turn is unknown.
    #[must_use]
    pub fn usd(self) -> Option<f64> {
        (self.unpriced == 0 || self.known_usd > 0.0).then_some(self.known_usd)
    }

    /// Formats the amount: `1.25`, `at least 1.25`, or `unknown`.
    #[must_use]
    pub fn text(self) -> String {
        match self.usd() {
            None => "unknown".to_owned(),
            Some(usd) if self.unpriced > 0 => format!("at least {}", usd_text(usd)),
            Some(usd) => usd_text(usd),
        }
    }

    /// Formats the amount with its unit: `1.25 USD`, `at least 1.25 USD`, or `unknown cost`.
    #[must_use]
    pub fn text_with_unit(self) -> String {
        match self.usd() {
            None => "unknown cost".to_owned(),
            Some(_) => format!("{} USD", self.text()),
        }
    }
}

/// Level of the amount spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetLevel {
    /// Below the warning level.
    Within,
    /// At or above the warning level.
    Warn,
    /// At or above the limit.
    Spent,
}

/// Returns the level of `spent`. The warning level is `warn_percent` of `limit`.
#[must_use]
pub fn level(spent: f64, limit: Option<f64>, warn_percent: u32) -> BudgetLevel {
    match limit {
        Some(limit) if spent >= limit => BudgetLevel::Spent,
        Some(limit) if spent * 100.0 >= limit * f64::from(warn_percent) => BudgetLevel::Warn,
        Some(_) | None => BudgetLevel::Within,
    }
}

/// Returns a part as a percentage of a whole, rounded down. 100 if the whole is zero.
pub(super) fn percent(part: f64, whole: f64) -> u32 {
    let share = if whole > 0.0 { (part * 100.0 / whole).clamp(0.0, 1e6) } else { 100.0 };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to what fits"
    )]
    let whole = share as u32;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_digits_with_at_most_one_point() {
        let read = |text: &str| parse(text).map(|it| it.to_string());
        for (text, limit) in
            [("10", "10"), ("10.", "10"), (".5", "0.5"), ("$10.00", "10"), ("007", "7"), ("0", "0")]
        {
            assert_eq!(read(text).as_deref(), Some(limit), "{text}");
        }
        for text in
            ["", ".", "$", "$$5", "abc", "10.0.0", "1..2", "-5", "+5", "1e3", " 5", "inf", "NaN"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn no_amount_fills_the_screen() {
        for (amount, text) in [
            (0.0, "0.00"),
            (0.005_1, "0.01"),
            (999_999_999.0, "999999999.00"),
            (1e9, "1.00e9"),
            (1e308, "1.00e308"),
            (-1e308, "-1.00e308"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(usd_text(amount), text);
        }
    }

    #[test]
    fn the_limit_itself_is_spent_and_its_warning_begins_at_the_share() {
        let levels = |spent| level(spent, Some(100.0), 80);
        assert_eq!(levels(79.99), BudgetLevel::Within);
        assert_eq!(levels(80.0), BudgetLevel::Warn);
        assert_eq!(levels(99.99), BudgetLevel::Warn);
        assert_eq!(levels(100.0), BudgetLevel::Spent);
        assert_eq!(level(1e9, None, 80), BudgetLevel::Within);
        assert_eq!(level(0.0, Some(0.0), 80), BudgetLevel::Spent);
    }

    #[test]
    fn an_unknown_cost_is_not_zero() {
        let known = TurnCost { known_usd: 1.25, unpriced: 0 };
        let unknown = TurnCost { known_usd: 0.0, unpriced: 2 };
        assert_eq!(TurnCost::default().text_with_unit(), "0.00 USD");
        assert_eq!(known.text_with_unit(), "1.25 USD");
        assert_eq!((unknown.text(), unknown.usd()), ("unknown".to_owned(), None));
        assert_eq!(unknown.text_with_unit(), "unknown cost");
        assert_eq!(known.plus(unknown).text_with_unit(), "at least 1.25 USD");
    }
}
