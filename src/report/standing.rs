//! Where a run stands, in one line: what is shown on a terminal while it is at work. The line is cut at
//! the terminal's width, so what matters most comes first.

use std::time::Duration;

use policyd_base::text::grouped;
use policyd_state::run::budget::{self, TurnCost, usd_text};
use policyd_state::run::{Run, RunLimits, RunPhase, Spend};
use policyd_yaml::time::{Timestamp, short_text};

/// Columns of the bar.
const COLUMNS: u64 = 10;

/// What is known of a run at one moment.
#[derive(Debug, Clone, Copy)]
pub struct RunStatusLine<'a> {
    /// The run, as it was when the turn at work began.
    pub run: &'a Run,
    /// Limits of the run.
    pub limits: &'a RunLimits,
    /// What the turn at work used so far.
    pub spent: Spend,
    /// How full the context is, in percent, where that is known.
    pub context: Option<u64>,
    /// Breakers that are not closed, in words.
    pub breakers: &'a str,
    /// What the gate decided last, in words; empty for nothing yet.
    pub gate: &'a str,
    /// Time since this process began.
    pub elapsed: Duration,
    /// The moment.
    pub now: Timestamp,
}

impl RunStatusLine<'_> {
    /// The line.
    #[must_use]
    pub fn line(&self) -> String {
        let (run, limits) = (self.run, self.limits);
        let spend = run.spend.plus(self.spent);
        let mut parts = vec![format!("turn {}/{}", run.iteration, run.iterations_max(limits))];
        parts.extend(self.doing());
        if run.session > 1 {
            parts.push(format!("session {}", run.session));
        }
        parts.extend(self.context.map(bar));
        parts.push(format!("{} tokens", grouped(spend.tokens(), ' ')));
        // The command told tokens, and no price of its model is known.
        let is_unpriced = self.spent.tokens() > 0 && self.spent.cost_usd <= 0.0;
        let unpriced = run.unpriced.saturating_add(u32::from(is_unpriced));
        let cost = TurnCost { known_usd: spend.cost_usd, unpriced };
        parts.push(match limits.budget_usd {
            Some(limit) => format!("{}/{} USD", cost.text(), usd_text(limit)),
            None => cost.text_with_unit(),
        });
        let level = budget::level(spend.cost_usd, limits.budget_usd, limits.warn_percent);
        if level == budget::BudgetLevel::Warn {
            parts.push("money nearly spent".to_owned());
        }
        let breakers = if self.breakers.is_empty() { "closed" } else { self.breakers };
        parts.push(format!("breakers {breakers}"));
        if !self.gate.is_empty() {
            parts.push(format!("gate {}", self.gate));
        }
        parts.extend(run.health.map(|it| format!("health {it}, {}", run.verdict)));
        parts.push(short_text(self.elapsed));
        parts.join(" · ")
    }

    /// What it does, where that is not a turn.
    fn doing(&self) -> Option<String> {
        match &self.run.phase {
            RunPhase::Waiting { until_ms, why } => {
                let left = until_ms.saturating_sub(self.now.millis()).max(0).unsigned_abs();
                Some(format!("waits {}: {why}", short_text(Duration::from_millis(left))))
            }
            RunPhase::Paused => Some("paused".to_owned()),
            RunPhase::Ready | RunPhase::Asking | RunPhase::Working | RunPhase::Over { .. } => None,
        }
    }
}

/// How full the context is, drawn.
fn bar(percent: u64) -> String {
    let filled = (percent.min(100) * COLUMNS).div_ceil(100);
    let columns = |it: u64| usize::try_from(it).unwrap_or(0);
    let (full, empty) = ("█".repeat(columns(filled)), "░".repeat(columns(COLUMNS - filled)));
    format!("{full}{empty} {percent} %")
}
