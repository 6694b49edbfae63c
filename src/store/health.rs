//! Analyses of a diagnostic log: failures, retries, corruption, and whether the counter stalls or
//! oscillates. Reads entries with `operation` and older ones of amplihack with `event`.
//! May not live here: files; a function takes the entries, oldest first.

use serde_json::Value;

use super::diagnostic::text;

/// Equal counters in a row that are a stall (amplihack).
const STALL_WRITES: usize = 10;
/// Share of failed writes above which health is a warning (amplihack).
const FAILURE_RATE_MAX: f64 = 0.30;

/// One entry that says that something failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureRow {
    /// When, as written.
    pub timestamp: String,
    /// `state_save`, `verification_read`, `validation`, …
    pub operation: String,
    /// Reason of the failure.
    pub reason: String,
    /// The seed's return code, where the entry has one.
    pub code: Option<i64>,
}

/// The entries that failed (the seed's first recipe, and entries written before `success` was).
#[must_use]
pub fn failures(entries: &[Value]) -> Vec<FailureRow> {
    const FLAGS: [&str; 4] = ["success", "save_success", "verification_success", "load_success"];
    let is = |entry: &Value, key: &str, value: bool| entry.get(key) == Some(&Value::Bool(value));
    let failed = |entry: &&Value| {
        FLAGS.iter().any(|flag| is(entry, flag, false))
            || is(entry, "validation_failed", true)
            || matches!(name(entry), "state_write_failure" | "verification_failed")
    };
    entries.iter().filter(failed).map(failure).collect()
}

fn failure(entry: &Value) -> FailureRow {
    let details = entry.get("details").unwrap_or(&Value::Null);
    let reasons = [text(entry, "reason"), text(entry, "error"), text(details, "error")];
    let reason = reasons.into_iter().find(|it| !it.is_empty()).unwrap_or_default();
    FailureRow {
        timestamp: text(entry, "timestamp").to_owned(),
        operation: name(entry).to_owned(),
        reason: reason.to_owned(),
        code: entry.get("code").and_then(Value::as_i64),
    }
}

/// Name of the operation in both formats.
fn name(entry: &Value) -> &str {
    let operation = text(entry, "operation");
    if operation.is_empty() { text(entry, "event") } else { operation }
}

/// Retries over all entries that count them (the seed's second recipe).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retries {
    /// Entries with a `retry_count`.
    pub entries: u64,
    /// Their sum; divided by `entries` it is what the recipe prints.
    pub total: u64,
    /// The largest.
    pub most: u64,
}

impl Retries {
    /// Retries per entry; `None` without entries.
    #[must_use]
    pub fn mean(self) -> Option<f64> {
        ratio(self.total, self.entries)
    }
}

/// Sums the retries.
#[must_use]
pub fn retries(entries: &[Value]) -> Retries {
    let counts = entries.iter().filter_map(|entry| entry.get("retry_count")?.as_u64());
    counts.fold(Retries::default(), |sum, count| Retries {
        entries: sum.entries.saturating_add(1),
        total: sum.total.saturating_add(count),
        most: sum.most.max(count),
    })
}

/// One corrupt state file.
#[derive(Debug, Clone, PartialEq)]
pub struct CorruptionRow {
    /// When it was found, as written.
    pub timestamp: String,
    /// The seed's reason code.
    pub reason: String,
    /// Content of the file.
    pub corrupted_state: Value,
}

/// The corrupt states that were found (the seed's third recipe).
#[must_use]
pub fn corruption(entries: &[Value]) -> Vec<CorruptionRow> {
    let found = entries.iter().filter(|it| it.get("validation_failed") == Some(&Value::Bool(true)));
    let row = |entry: &Value| CorruptionRow {
        timestamp: text(entry, "timestamp").to_owned(),
        reason: text(entry, "reason").to_owned(),
        corrupted_state: entry.get("corrupted_state").cloned().unwrap_or_default(),
    };
    found.map(row).collect()
}

/// The last `count` entries, oldest first.
#[must_use]
pub fn tail(entries: &[Value], count: usize) -> &[Value] {
    entries.get(entries.len().saturating_sub(count)..).unwrap_or_default()
}

/// How well the memory works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HealthLevel {
    /// Nothing is wrong.
    Healthy,
    /// Many writes fail.
    Warning,
    /// The counter does not move, or moves back and forth: the loop guard does not hold.
    Critical,
}

impl HealthLevel {
    /// As amplihack writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// Summary of a diagnostic log of the block limiter's state.
#[derive(Debug, Clone, PartialEq)]
pub struct Health {
    /// The value at which the last ten written counters stand.
    pub stall: Option<i64>,
    /// The two values between which the last four written counters went (A, B, A, B).
    pub oscillation: Option<(i64, i64)>,
    /// Writes that were tried.
    pub attempts: u64,
    /// Writes that failed.
    pub failures: u64,
    /// The worst of it.
    pub level: HealthLevel,
}

impl Health {
    /// Failed writes per write; `None` where nothing was written.
    #[must_use]
    pub fn failure_rate(&self) -> Option<f64> {
        ratio(self.failures, self.attempts)
    }
}

/// Judges a log as amplihack's `detect_infinite_loop` does. The counter is the one that must grow
/// with every write: `turn_count`, or `counter_after` in entries of the seed.
#[must_use]
pub fn health(entries: &[Value]) -> Health {
    let (mut counters, mut attempts, mut failures) = (Vec::new(), 0_u64, 0_u64);
    for entry in entries {
        match name(entry) {
            "state_write_attempt" => attempts = attempts.saturating_add(1),
            "state_write_failure" => failures = failures.saturating_add(1),
            "state_write_success" => {
                counters.extend(integer(entry.get("details"), "turn_count"));
            }
            "state_save" => {
                attempts = attempts.saturating_add(1);
                if entry.get("save_success") == Some(&Value::Bool(true)) {
                    let turn = integer(Some(entry), "turn_count");
                    counters.extend(turn.or_else(|| integer(Some(entry), "counter_after")));
                } else {
                    failures = failures.saturating_add(1);
                }
            }
            _ => {}
        }
    }
    let last = |count: usize| counters.get(counters.len().checked_sub(count)?..);
    let stall = last(STALL_WRITES).and_then(|it| {
        let first = it.first()?;
        it.iter().all(|counter| counter == first).then_some(*first)
    });
    let oscillation = match last(4) {
        Some([a, b, c, d]) if a == c && b == d && a != b => Some((*a, *b)),
        Some(_) | None => None,
    };
    let level = if stall.is_some() || oscillation.is_some() {
        HealthLevel::Critical
    } else if ratio(failures, attempts).is_some_and(|rate| rate > FAILURE_RATE_MAX) {
        HealthLevel::Warning
    } else {
        HealthLevel::Healthy
    };
    Health { stall, oscillation, attempts, failures, level }
}

fn integer(value: Option<&Value>, key: &str) -> Option<i64> {
    value?.get(key)?.as_i64()
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    let small = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    (whole > 0).then(|| small(part) / small(whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn entries_of_the_seed_without_success_are_failures_too() {
        let entries = [
            json!({"timestamp": "t1", "operation": "state_save", "save_success": false,
                "error": "disk full"}),
            json!({"timestamp": "t2", "operation": "state_save", "save_success": true,
                "retry_count": 2}),
            json!({"timestamp": "t3", "operation": "validation", "validation_failed": true,
                "reason": "negative_counter", "corrupted_state": {"consecutive_blocks": -1}}),
        ];
        let found: Vec<_> = failures(&entries).into_iter().map(|it| it.reason).collect();
        assert_eq!(found, ["disk full", "negative_counter"]);
        assert_eq!(corruption(&entries).len(), 1);
        assert_eq!(retries(&entries), Retries { entries: 1, total: 2, most: 2 });
        assert_eq!(retries(&[]).mean(), None);
        assert_eq!(tail(&entries, 2).len(), 2);
        assert_eq!(tail(&entries, 9).len(), 3);
    }

    #[test]
    fn releases_with_a_counter_of_zero_are_no_stall() {
        let entry = |turn: i64| {
            json!({"operation": "state_save", "save_success": true, "counter_after": 0,
                "turn_count": turn})
        };
        let entries: Vec<Value> = (0..20).map(entry).collect();
        assert_eq!(health(&entries).level, HealthLevel::Healthy);
        let stalled: Vec<Value> = (0..10).map(|_| entry(7)).collect();
        assert_eq!(health(&stalled).stall, Some(7));
    }
}
