//! States of a project's circuit breakers, for the expressions of a pack.

use policyd_fact_table::breaker_facts::{BreakerSnapshot, BreakersSnapshot};
use policyd_policy::Policy;
use policyd_state::breaker::Breaker;
use policyd_yaml::time::{Timestamp, seconds_rounded_up};

/// Converts saved breakers, by name, to facts at a point in time.
#[must_use]
pub fn standing(policy: &Policy, known: &[(String, Breaker)], now: Timestamp) -> BreakersSnapshot {
    let seen = known.iter().map(|(key, it)| (key, it, policy.breaker(key)));
    let seen: Vec<_> = seen.collect();
    let level = seen.iter().map(|(_, it, settings)| it.load_level(settings, now)).max();
    let least = seen.iter().map(|(_, it, settings)| it.parallelism(settings, now)).min();
    BreakersSnapshot {
        load_level: level.unwrap_or_default().as_str().to_owned(),
        parallelism: least.unwrap_or_else(|| policy.breaker("").max_concurrent_calls),
        known: seen
            .into_iter()
            .map(|(key, it, settings)| {
                let open = it.is_open(&settings, now);
                let wait = it.wait(&settings, now).filter(|_| open).unwrap_or_default();
                let stands = BreakerSnapshot {
                    state: it.phase_at(&settings, now).as_str().to_owned(),
                    open,
                    retry_after: seconds_rounded_up(wait),
                    failures: it.failures_at(&settings, now),
                    last_error: it.last_error.clone(),
                    capacity: it.capacity_percent(&settings, now),
                    needs_human: it.needs_human,
                };
                (key.clone(), stands)
            })
            .collect(),
    }
}
