//! The size of a context as a bar, one line, JSON, and the events of shipwright.

use serde_json::{Value, json};

use crate::paint::{AnsiStyle, line};
use policyd_base::limits::CONTEXT_TURNS_MAX;
use policyd_base::text::{counted, grouped};
use policyd_fact_table::context_facts::ContextUsage;
use policyd_facts::meters::dollars;
use policyd_state::context::{ACT, ContextSettings, percent};
use policyd_yaml::time::Timestamp;

/// Columns of the bar.
const COLUMNS: u64 = 40;
/// Columns of the bar in one line.
const COLUMNS_SHORT: u64 = 10;

/// A session's context as it is looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextView<'a> {
    /// Id of the session; empty if unknown.
    pub session: &'a str,
    /// What the meters say.
    pub gauge: &'a ContextUsage,
    /// The tiers in force.
    pub settings: &'a ContextSettings,
    /// Models without a price.
    pub unpriced: Vec<&'a str>,
}

impl ContextView<'_> {
    /// Returns the report as text.
    #[must_use]
    pub fn text(&self, color: bool) -> String {
        let (paint, gauge) = (AnsiStyle::new(color), self.gauge);
        let mut text = String::new();
        let model = if gauge.model.is_empty() { "unknown model" } else { &gauge.model };
        let session = if self.session.is_empty() { "session" } else { self.session };
        line(&mut text, &format!("{}  {model}", paint.bold(session)));
        line(&mut text, &format!("  {}", self.bar(COLUMNS, paint)));
        if gauge.known {
            line(
                &mut text,
                &format!(
                    "  context   {} of {} tokens, {} %",
                    grouped(gauge.tokens, ' '),
                    grouped(gauge.window, ' '),
                    gauge.percent
                ),
            );
        } else if gauge.window == 0 {
            line(&mut text, "  context   no window is known, so nothing is measured");
        } else {
            let why = if gauge.compactions > 0 { "since it was compacted" } else { "yet" };
            line(&mut text, &format!("  context   no call of the model {why}"));
        }
        let tier = if gauge.tier.is_empty() { "none" } else { &gauge.tier };
        let tiers: Vec<String> =
            self.settings.tiers.iter().map(|it| format!("{} {}", it.id, it.at)).collect();
        let meter = self.settings.measured.as_str();
        line(&mut text, &format!("  tier      {tier} ({}; by {meter})", tiers.join(", ")));
        line(&mut text, &format!("  outlook   {}", self.outlook()));
        let priced = if self.unpriced.is_empty() {
            String::new()
        } else {
            format!(" (no price is known of {})", self.unpriced.join(", "))
        };
        line(
            &mut text,
            &format!(
                "  spent     {} in, {} out, ${:.2}{priced}; {} % of a window in all",
                grouped(gauge.input_tokens, ' '),
                grouped(gauge.output_tokens, ' '),
                dollars(gauge.cost_nano),
                gauge.cumulative_pct
            ),
        );
        line(
            &mut text,
            &format!(
                "  so far    {}, {}",
                counted(gauge.calls, "call"),
                counted(gauge.compactions, "compaction")
            ),
        );
        text
    }

    /// One line, short enough for a status line.
    #[must_use]
    pub fn line(&self, color: bool) -> String {
        let (paint, gauge) = (AnsiStyle::new(color), self.gauge);
        let full = if gauge.known { format!("{} %", gauge.percent) } else { "–".to_owned() };
        let mut text = format!("{} {full}", self.bar(COLUMNS_SHORT, paint));
        if !gauge.tier.is_empty() {
            text.push_str(&format!(" {}", self.painted(&gauge.tier, paint)));
        }
        if gauge.known && gauge.calls_left > 0 && gauge.calls_left < CONTEXT_TURNS_MAX {
            text.push_str(&format!(" ~{}", self.left()));
        }
        if gauge.cost_nano > 0 {
            text.push_str(&format!(" ${:.2}", dollars(gauge.cost_nano)));
        }
        text
    }

    /// Returns the report as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let gauge = self.gauge;
        let tiers: Vec<Value> =
            self.settings.tiers.iter().map(|it| json!({"id": it.id, "at": it.at})).collect();
        json!({
            "version": 1,
            "session_id": self.session,
            "model": gauge.model,
            "known": gauge.known,
            "tokens": gauge.tokens,
            "window": gauge.window,
            "percent": gauge.percent,
            "meter": self.settings.measured.as_str(),
            "measured": gauge.measured,
            "tier": gauge.tier,
            "tiers": tiers,
            "threshold": self.settings.threshold(),
            "growth": gauge.growth,
            "turns_left": (gauge.turns_left < CONTEXT_TURNS_MAX).then_some(gauge.turns_left),
            "call_growth": gauge.call_growth,
            "calls_left": (gauge.calls_left < CONTEXT_TURNS_MAX).then_some(gauge.calls_left),
            "calls": gauge.calls,
            "prompts": gauge.prompts,
            "compactions": gauge.compactions,
            "spent": {
                "input_tokens": gauge.input_tokens,
                "output_tokens": gauge.output_tokens,
                "cost_usd": dollars(gauge.cost_nano),
                "unpriced_models": self.unpriced,
            },
            "cumulative_pct": gauge.cumulative_pct,
            "exhausted": gauge.exhausted,
        })
    }

    /// What is to be expected.
    fn outlook(&self) -> String {
        let gauge = self.gauge;
        let threshold = self.settings.threshold();
        if !gauge.known {
            return "not known".to_owned();
        }
        let each = |growth: u64, what: &str| format!("{} tokens a {what}", grouped(growth, ' '));
        match gauge.calls_left {
            0 => format!("past {threshold} %"),
            CONTEXT_TURNS_MAX if gauge.turns_left == CONTEXT_TURNS_MAX => {
                "it does not grow".to_owned()
            }
            _ => format!(
                "{} until {threshold} %, at {} and {}",
                self.left(),
                each(gauge.growth, "turn"),
                each(gauge.call_growth, "call")
            ),
        }
    }

    /// Turns and calls until the threshold.
    fn left(&self) -> String {
        let counted = |count: u64, what: &str| {
            let s = if count == 1 { "" } else { "s" };
            if count < CONTEXT_TURNS_MAX { format!("{count} {what}{s}") } else { String::new() }
        };
        let gauge = self.gauge;
        let parts = [counted(gauge.turns_left, "turn"), counted(gauge.calls_left, "call")];
        let parts: Vec<String> = parts.into_iter().filter(|it| !it.is_empty()).collect();
        format!("{} left", parts.join(", "))
    }

    fn bar(&self, columns: u64, paint: AnsiStyle) -> String {
        let filled = (self.gauge.percent.min(100) * columns).div_ceil(100).min(columns);
        let columns = usize::try_from(columns).unwrap_or(0);
        let filled = usize::try_from(filled).unwrap_or(0);
        let (full, empty) = ("█".repeat(filled), "░".repeat(columns.saturating_sub(filled)));
        format!("{}{}", self.painted(&full, paint), paint.dim(&empty))
    }

    /// Paints text in the color of the tier.
    fn painted(&self, text: &str, paint: AnsiStyle) -> String {
        match self.gauge.tier.as_str() {
            "" => paint.green(text),
            ACT => paint.red(text),
            _ => paint.yellow(text),
        }
    }
}

/// Whose event it is, and when it happened.
#[derive(Debug, Clone, Copy)]
pub struct EventOrigin<'a> {
    /// Id of the session; empty without one.
    pub session: &'a str,
    /// Time of the event.
    pub now: Timestamp,
    /// Turn, from 1.
    pub iteration: u64,
}

impl EventOrigin<'_> {
    fn event(&self, kind: &str, fields: Value) -> Value {
        let mut event = json!({"timestamp": self.now.to_string(), "type": kind,
            "session_id": self.session, "iteration": self.iteration});
        if let (Some(event), Value::Object(fields)) = (event.as_object_mut(), fields) {
            event.extend(fields);
        }
        event
    }
}

/// `loop.context_usage` of shipwright: once in a turn. `usage_pct` is the cumulative percentage, as there;
/// `occupancy_pct` is what stands before the model. `cost_usd` is the cost of the session, if it is known.
#[must_use]
pub fn usage(whose: EventOrigin<'_>, gauge: &ContextUsage) -> Value {
    let mut event = whose.event(
        "loop.context_usage",
        json!({
            "input_tokens": gauge.input_tokens,
            "output_tokens": gauge.output_tokens,
            "usage_pct": gauge.cumulative_pct,
            "occupancy_pct": gauge.known.then_some(gauge.percent),
            "threshold": gauge.threshold,
        }),
    );
    if let Some(fields) = event.as_object_mut().filter(|_| gauge.cost_nano > 0) {
        fields.insert("cost_usd".to_owned(), dollars(gauge.cost_nano).into());
    }
    event
}

/// `loop.context_exhaustion_warning`: the threshold of shipwright was crossed.
#[must_use]
pub fn warning(whose: EventOrigin<'_>, gauge: &ContextUsage) -> Value {
    whose.event(
        "loop.context_exhaustion_warning",
        json!({
            "usage_pct": gauge.measured,
            "threshold": gauge.threshold,
            "input_tokens": gauge.input_tokens,
            "output_tokens": gauge.output_tokens,
            "window": gauge.window,
            "occupancy_pct": gauge.known.then(|| percent(gauge.tokens, gauge.window)),
            "tier": gauge.tier,
        }),
    )
}

/// `loop.context_exhaustion_restart`: work continues in a fresh context, as in shipwright. `restart`: its
/// number; `before`: the turn at which the old one ended.
#[must_use]
pub fn restart(whose: EventOrigin<'_>, restart: u64, before: u64) -> Value {
    whose.event(
        "loop.context_exhaustion_restart",
        json!({"restart": restart, "prev_iteration": before}),
    )
}
