//! Circuit breakers as text and JSON: lists, details, and explanations.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use policyd_base::text::counted;
use policyd_policy::SourceLocation;
use policyd_state::breaker::load::LoadLevel;
use policyd_state::breaker::{
    Breaker, BreakerMode, BreakerPhase, BreakerResponse, BreakerSettings, OnPermanent, Window,
    until,
};
use policyd_yaml::time::{Timestamp, duration_text, seconds_rounded_up, short_text};

/// A breaker as it is looked at.
#[derive(Debug, Clone)]
pub struct BreakerView {
    /// Name of the breaker.
    pub key: String,
    /// What is remembered of it.
    pub breaker: Breaker,
    /// How it behaves.
    pub settings: BreakerSettings,
    /// When it is looked at.
    pub now: Timestamp,
}

/// A number of failures with its word.
fn counted_failures(number: usize) -> String {
    counted(u64::try_from(number).unwrap_or(u64::MAX), "failure")
}

impl BreakerView {
    /// Where it stands now.
    #[must_use]
    pub fn phase(&self) -> BreakerPhase {
        self.breaker.phase_at(&self.settings, self.now)
    }

    /// How much load it asks for now.
    #[must_use]
    pub fn load_level(&self) -> LoadLevel {
        self.breaker.load_level(&self.settings, self.now)
    }

    fn wait(&self) -> Option<Duration> {
        self.breaker.wait(&self.settings, self.now)
    }

    fn failures(&self) -> usize {
        self.breaker.failures_at(&self.settings, self.now)
    }

    fn capacity(&self) -> u32 {
        self.breaker.capacity_percent(&self.settings, self.now)
    }

    /// A moment, and how long ago it was or how soon it will be.
    fn moment(&self, at: Timestamp) -> String {
        let (past, ahead) = (self.now.since(at), at.since(self.now));
        if ahead > Duration::ZERO {
            return format!("{at} (in {})", short_text(ahead));
        }
        format!("{at} ({} ago)", short_text(Duration::from_secs(past.as_secs())))
    }

    /// What stands behind its state in one line.
    fn remarks(&self) -> String {
        let mut text = String::new();
        match (self.phase(), &self.breaker.forced) {
            (BreakerPhase::Open, Some(reason)) => {
                text.push_str(&format!(" {} (by hand{})", until(self.wait()), because(reason)));
            }
            (BreakerPhase::Open, None) => text.push_str(&format!(" {}", until(self.wait()))),
            (BreakerPhase::Closed, _) if self.capacity() < 100 => {
                text.push_str(&format!(" at {}% capacity", self.capacity()));
            }
            (BreakerPhase::Closed | BreakerPhase::HalfOpen, _) => {}
        }
        match self.settings.mode {
            BreakerMode::Enforce => {}
            BreakerMode::Observe => text.push_str(" (only observed)"),
            BreakerMode::Off => text.push_str(" (switched off)"),
        }
        if self.breaker.needs_human {
            text.push_str(", needs a human");
        }
        text
    }

    /// One line of a list.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{}: {}", self.key, self.status())
    }

    /// Returns its state in one line, without its name.
    #[must_use]
    pub fn status(&self) -> String {
        let (state, remarks) = (self.phase().as_str(), self.remarks());
        let failures = counted_failures(self.failures());
        format!("{state}{remarks}, {failures}{}", last_error(&self.breaker))
    }

    /// Returns all details as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let it = &self.breaker;
        let text = |at: Option<Timestamp>| at.map(|at| at.to_string());
        let open = self.phase() == BreakerPhase::Open;
        json!({
            "key": self.key,
            "state": self.phase().as_str(),
            "open": self.breaker.is_open(&self.settings, self.now),
            "mode": mode(self.settings.mode),
            "failures": self.failures(),
            "successes": it.successes,
            "generation": it.generation,
            "openings": it.openings,
            "capacity": self.capacity(),
            "parallelism": it.parallelism(&self.settings, self.now),
            "retry_after": self.wait().filter(|it| !it.is_zero()).map(seconds_rounded_up),
            "cooldown_until": text(it.cooldown_until.filter(|_| open)),
            "open_until": text(it.open_until),
            "last_failure": text(it.last_failure),
            "last_change": text(it.last_change),
            "last_probe": text(it.last_probe),
            "recovered_at": text(it.recovered_at),
            "forced": it.forced,
            "needs_human": it.needs_human,
            "last_error": it.last_error,
        })
    }

    /// Returns all details as text.
    #[must_use]
    pub fn details(&self) -> String {
        let it = &self.breaker;
        let mut text = format!("{}\n", self.line());
        let mut row = |name: &str, value: String| {
            text.push_str(&format!("  {name:<14}{value}\n"));
        };
        for (name, at) in [
            ("last failure", it.last_failure),
            ("last change", it.last_change),
            ("cooldown", it.cooldown_until),
            ("retry after", it.open_until),
            ("last probe", it.last_probe),
            ("recovered", it.recovered_at),
        ] {
            if let Some(at) = at {
                row(name, self.moment(at));
            }
        }
        row("generation", it.generation.to_string());
        row("openings", it.openings.to_string());
        row("successes", format!("{} of {}", it.successes, self.settings.recovery_threshold));
        row("capacity", format!("{}%", self.capacity()));
        row("parallelism", it.parallelism(&self.settings, self.now).to_string());
        text
    }

    /// Returns the response to a request as JSON.
    #[must_use]
    pub fn answer_json(&self, answer: BreakerResponse) -> Value {
        let wait = match answer {
            BreakerResponse::Rejected { wait } | BreakerResponse::WouldReject { wait } => {
                wait.map(seconds_rounded_up)
            }
            BreakerResponse::Permitted | BreakerResponse::Recorded => None,
        };
        json!({
            "key": self.key,
            "allowed": !matches!(answer, BreakerResponse::Rejected { .. }),
            "would_reject": matches!(answer, BreakerResponse::Rejected { .. } | BreakerResponse::WouldReject { .. }),
            "state": self.breaker.phase.as_str(),
            "generation": self.breaker.generation,
            "retry_after": wait,
            "forced": self.breaker.forced,
            "last_error": self.breaker.last_error,
        })
    }

    /// Why a request is rejected, or would be.
    #[must_use]
    pub fn rejection(&self, wait: Option<Duration>) -> String {
        let (key, state) = (&self.key, self.breaker.phase.as_str());
        let when = match wait {
            Some(wait) => format!("retry after {}", short_text(wait)),
            None => "until it is reset".to_owned(),
        };
        let hand = self.breaker.forced.as_ref();
        let hand = hand.map(|it| format!(" by hand{}", because(it))).unwrap_or_default();
        format!("{key}: {state}{hand}, {when}{}", last_error(&self.breaker))
    }

    /// Why it stands where it stands, and what happens next; `origin` is the glob that decides over
    /// it, and where its settings are written.
    #[must_use]
    pub fn explanation(
        &self,
        origin: Option<&(String, BTreeMap<String, SourceLocation>)>,
    ) -> String {
        let mut text = format!("{}\n", self.line());
        let mut say = |line: String| writeln!(text, "  {line}").unwrap_or_default();
        if let Some(at) = self.breaker.last_change {
            say(format!("since {}", self.moment(at)));
        }
        say(self.cause());
        for at in self.breaker.failures() {
            let counts = self.breaker.phase != BreakerPhase::Closed || self.still_counts(at);
            let note = if counts { "" } else { ", too old to count" };
            say(format!("failure at {}{note}", self.moment(at)));
        }
        if !self.breaker.last_error.is_empty() {
            say(format!("last error: {}", self.breaker.last_error));
        }
        if self.breaker.needs_human {
            say("waiting does not cure the last error: a human is needed".to_owned());
        }
        say(self.next());
        match origin {
            None => say("no entry of breakers.yaml fits: the defaults hold".to_owned()),
            Some((glob, places)) => {
                say(format!("settings of `{glob}`:"));
                for (key, place) in places {
                    say(format!("  {key:<20}{:<10}  {place}", value(key, &self.settings)));
                }
            }
        }
        text
    }

    fn still_counts(&self, at: Timestamp) -> bool {
        match self.settings.window {
            Window::Time(length) => self.now.since(at) <= length,
            Window::Calls(_) | Window::Consecutive => true,
        }
    }

    /// What brought it to its state.
    fn cause(&self) -> String {
        let it = &self.breaker;
        match (self.breaker.phase, &it.forced) {
            (_, Some(reason)) => format!("opened by hand{}", because(reason)),
            (BreakerPhase::Closed, _) => {
                format!(
                    "{} in the window; {} open it",
                    counted_failures(self.failures()),
                    self.rule()
                )
            }
            (BreakerPhase::Open, _) if it.open_until.is_some() => {
                "it was asked to wait (`Retry-After`)".to_owned()
            }
            (BreakerPhase::Open, _) => format!("{} open it", self.rule()),
            (BreakerPhase::HalfOpen, _) => format!(
                "{} of {} successes in a row",
                it.successes, self.settings.recovery_threshold
            ),
        }
    }

    /// What opens it.
    fn rule(&self) -> String {
        let it = &self.settings;
        let count = match it.failure_rate {
            Some(rate) => format!("{rate}% failures of at least {} calls", it.minimum_calls),
            None => counted(u64::from(it.threshold), "failure"),
        };
        let within = match it.window {
            Window::Time(length) => format!("{count} within {}", duration_text(length)),
            Window::Calls(calls) => format!("{count} among the last {calls} calls"),
            Window::Consecutive => format!("{count} in a row"),
        };
        match it.slow_call_rate {
            Some(rate) => {
                format!("{within}, or {rate}% slower than {}", duration_text(it.slow_call_duration))
            }
            None => within,
        }
    }

    /// What happens next, and when.
    fn next(&self) -> String {
        let it = &self.settings;
        let (interval, needed) = (duration_text(it.half_open_interval), it.recovery_threshold);
        let probing = format!(
            "one call each {interval} is admitted as a probe; {needed} success(es) in a row close it, a failure opens it again"
        );
        match (it.mode, self.phase(), self.wait()) {
            (BreakerMode::Off, _, _) => "next: nothing, it is switched off".to_owned(),
            (_, BreakerPhase::Closed, _) if self.capacity() < 100 => format!(
                "next: the capacity grows by {}% each {}",
                it.recovery_ramp_step,
                duration_text(it.recovery_ramp_every)
            ),
            (_, BreakerPhase::Closed, _) => "next: calls go through".to_owned(),
            (_, BreakerPhase::Open, None) => {
                format!("next: nothing, until `policyd breaker reset {}`", self.key)
            }
            (_, BreakerPhase::Open, Some(wait)) => {
                format!("next: in {}, {probing}", short_text(wait))
            }
            (_, BreakerPhase::HalfOpen, Some(wait)) if !wait.is_zero() => format!(
                "next: a probe is under way, the next one may go in {}; {probing}",
                short_text(wait)
            ),
            (_, BreakerPhase::HalfOpen, _) => format!("next: the next call is a probe; {probing}"),
        }
    }
}

/// One line for a prompt over all breakers.
#[must_use]
pub fn status(all: &[BreakerView]) -> String {
    let notable = all.iter().filter(|it| it.load_level() != LoadLevel::Normal);
    let told: Vec<String> =
        notable.map(|it| format!("{} {}{}", it.key, it.phase().as_str(), it.remarks())).collect();
    if told.is_empty() {
        return "breakers: all closed".to_owned();
    }
    let level = all.iter().map(BreakerView::load_level).max().unwrap_or_default();
    format!("breakers: {}; load {}", told.join(", "), level.as_str())
}

/// Formats the last failure for the end of a line.
#[must_use]
pub fn last_error(breaker: &Breaker) -> String {
    match breaker.last_error.as_str() {
        "" => String::new(),
        error => format!("; last error: {error}"),
    }
}

fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

const fn mode(mode: BreakerMode) -> &'static str {
    match mode {
        BreakerMode::Enforce => "enforce",
        BreakerMode::Observe => "observe",
        BreakerMode::Off => "off",
    }
}

/// The value of a setting as it is written in `breakers.yaml`.
fn value(key: &str, settings: &BreakerSettings) -> String {
    let it = settings;
    let percent = |rate: Option<u32>| rate.map(|it| it.to_string()).unwrap_or_default();
    match key {
        "mode" => mode(it.mode).to_owned(),
        "threshold" => it.threshold.to_string(),
        "window" | "window_calls" | "consecutive" => match it.window {
            Window::Time(length) if key == "window" => duration_text(length),
            Window::Calls(calls) if key == "window_calls" => calls.to_string(),
            Window::Consecutive if key == "consecutive" => "true".to_owned(),
            Window::Time(_) | Window::Calls(_) | Window::Consecutive => "(not used)".to_owned(),
        },
        "failure_rate" => percent(it.failure_rate),
        "slow_call" => duration_text(it.slow_call_duration),
        "slow_rate" => percent(it.slow_call_rate),
        "min_calls" => it.minimum_calls.to_string(),
        "cooldown" => duration_text(it.cooldown),
        "cooldown_factor" => format!("{}", f64::from(it.cooldown_multiplier) / 100.0),
        "cooldown_max" => duration_text(it.cooldown_max),
        "cooldown_jitter" => it.cooldown_jitter.to_string(),
        "retry_after_max" => duration_text(it.retry_after_max),
        "half_open_interval" => duration_text(it.half_open_interval),
        "recovery_threshold" => it.recovery_threshold.to_string(),
        "ramp_start" => it.recovery_ramp_start.to_string(),
        "ramp_step" => it.recovery_ramp_step.to_string(),
        "ramp_every" => duration_text(it.recovery_ramp_every),
        "parallelism" => it.max_concurrent_calls.to_string(),
        "parallelism_reduced" => it.max_concurrent_calls_reduced.to_string(),
        "ignore" => it.ignore.join(", "),
        "permanent" => it.permanent.join(", "),
        "on_permanent" => match it.on_permanent {
            OnPermanent::Open => "open".to_owned(),
            OnPermanent::Note => "note".to_owned(),
        },
        _ => String::new(),
    }
}
