//! `policyd debug failure`: what a failure is, how long to wait, and what to do after it.

use std::io::Read as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, FailureAction, FailureOptions,
    ListFormat, pack,
};
use policyd_app::workspace::local_time::{WallClock, later};
use policyd_policy::Policy;
use policyd_policy::failures::{
    ClassificationBasis, FailureClassification, FailureClassifier, RetryContext,
};
use policyd_state::recovery::{Action, FailureContext, recover};
use policyd_world::World;
use policyd_yaml::suggest;
use policyd_yaml::time::duration_text;

/// Most of what is read from standard input; the end of a log says how it ended, and logs are piped
/// through `tail`.
const TEXT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Runs one action.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, action: &FailureAction) -> u8 {
    let (FailureAction::Classify { what, .. }
    | FailureAction::Wait { what, .. }
    | FailureAction::Recover { what, .. }) = action;
    let Some(text) = text(console, what) else { return EXIT_USAGE };
    let Some(policy) = pack::require_valid(world, console, what.policies.as_deref()) else {
        return EXIT_BROKEN;
    };
    let found = policy.classify(&what.error, &text);
    match action {
        FailureAction::Classify { profile: None, .. } => classify(console, what, &found),
        FailureAction::Classify { profile: Some(name), .. } => {
            let Some(labels) = policy.failures.profile(name) else {
                return no_profile(console, &policy, name);
            };
            let found = policy.failures.classify(labels, &what.error, &text);
            classify(console, what, &found)
        }
        FailureAction::Wait { attempt, rpm, local_time, .. } => {
            let now = world.now();
            let millis = now.millis().rem_euclid(86_400_000).unsigned_abs();
            // Jitter from the clock: processes that fail together rarely run in the same millisecond.
            let chance = u16::try_from(millis % 1_000).map_or(0.0, f64::from) / 1_000.0;
            let waits = &policy.failures.waits;
            let until_reset = if let Some(given) = *local_time {
                waits.reset_time(&text, &|wait| later(given, wait))
            } else {
                WallClock::until_reset(world, now, waits, &text, |it| console.eprint(it))
            };
            let at = RetryContext {
                now,
                until_reset,
                attempt: *attempt,
                requests_per_minute: *rpm,
                chance,
            };
            wait(console, what, &found, policy.failures.wait(&found, &text, &at))
        }
        FailureAction::Recover {
            attempts,
            elapsed,
            cost,
            history,
            exit_code,
            tree_corrupt,
            provider_down,
            ..
        } => {
            let situation = FailureContext {
                class: &found.class.id,
                permanent: found.is_permanent(),
                signature: found.signature(*exit_code),
                history,
                attempts: *attempts,
                elapsed: *elapsed,
                cost: *cost,
                tree_corrupt: *tree_corrupt,
                provider_down: *provider_down,
                exit_code: *exit_code,
            };
            recovery(console, what, &situation, &policy)
        }
    }
}

/// What failed said: the argument, or standard input where it is `-` or nothing else is known.
fn text(console: &mut Console<'_>, what: &FailureOptions) -> Option<String> {
    match what.text.as_deref() {
        Some("-") => {}
        Some(text) => return Some(text.to_owned()),
        None if !what.error.is_empty() => return Some(String::new()),
        None if console.stdin_is_tty => {
            console.eprint(
                "no failure given\nhelp: pass its text, `-` for standard input, or `--error NAME`",
            );
            return None;
        }
        None => {}
    }
    let mut bytes = Vec::new();
    drop((&mut *console.stdin).take(TEXT_BYTES_MAX).read_to_end(&mut bytes));
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn no_profile(console: &mut Console<'_>, policy: &Policy, name: &str) -> u8 {
    let known: Vec<&str> = policy.failures.profiles.iter().map(|(it, _)| it.as_str()).collect();
    let help = suggest::did_you_mean(name, &known).unwrap_or_default();
    console.eprint(&format!("unknown profile `{name}`\nhelp: {help}"));
    EXIT_USAGE
}

fn classify(console: &mut Console<'_>, what: &FailureOptions, found: &FailureClassification) -> u8 {
    let class = &found.class;
    let answer = match what.format {
        ListFormat::Compact => format!("{}\n", found.label),
        ListFormat::Json => format!("{:#}\n", class_json(found)),
        ListFormat::Text => {
            let named =
                if found.label == class.id { String::new() } else { format!(" ({})", class.id) };
            let (most, first) = (found.retry.max, duration_text(found.retry.initial));
            let retry = if found.is_permanent() || most == 0 {
                "never".to_owned()
            } else {
                format!("up to {most} times, first after {first}")
            };
            format!(
                "{}{named}\n  breaker:     {}\n  attempt:     {}\n  human:       {}\n  tried again: {retry}\n  why:         {}\n",
                found.label,
                class.effect.as_str(),
                if class.attempt { "counts" } else { "does not count" },
                if class.human { "needed" } else { "not needed" },
                why(&found.by),
            )
        }
    };
    console.print(&answer);
    EXIT_OK
}

/// Returns a sentence that explains why a failure has its class.
fn why(by: &ClassificationBasis) -> String {
    match by {
        ClassificationBasis::Name(name) => format!("the error is named `{name}`"),
        ClassificationBasis::Words { regex, line } if line.is_empty() => {
            format!("no output: `{regex}`")
        }
        ClassificationBasis::Words { regex, line } => format!("`{regex}` in \"{line}\""),
        ClassificationBasis::Nothing => "no class matches the name or the text".to_owned(),
    }
}

fn class_json(found: &FailureClassification) -> Value {
    let class = &found.class;
    let by = match &found.by {
        ClassificationBasis::Name(name) => json!({"error": name}),
        ClassificationBasis::Words { regex, line } => json!({"regex": regex, "line": line}),
        ClassificationBasis::Nothing => Value::Null,
    };
    json!({
        "class": class.id,
        "label": found.label,
        "effect": class.effect.as_str(),
        "attempt": class.attempt,
        "human": class.human,
        "retries": if found.is_permanent() { 0 } else { found.retry.max },
        "by": by,
    })
}

fn wait(
    console: &mut Console<'_>,
    what: &FailureOptions,
    found: &FailureClassification,
    wait: Option<(Duration, String)>,
) -> u8 {
    let class = &found.class.id;
    let given_up = || {
        if found.is_permanent() {
            format!("`{class}` is permanent: the same call fails again")
        } else {
            format!("`{class}` is tried again {} times at most", found.retry.max)
        }
    };
    let seconds = wait.as_ref().map(|(it, _)| rounded_up(*it));
    let told = wait.as_ref().map_or_else(given_up, |(_, why)| why.clone());
    console.print(&match (what.format, seconds) {
        (ListFormat::Json, _) => {
            format!("{:#}\n", json!({"wait_s": seconds, "class": class, "why": told}))
        }
        (ListFormat::Compact, Some(seconds)) => format!("{seconds}\n"),
        (ListFormat::Compact, None) => String::new(),
        (ListFormat::Text, Some(seconds)) => format!("{seconds} s: {told}\n"),
        (ListFormat::Text, None) => format!("no further attempt: {told}\n"),
    });
    if seconds.is_some() { EXIT_OK } else { EXIT_FOUND }
}

/// Whole seconds that are not too few.
const fn rounded_up(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(if wait.subsec_nanos() > 0 { 1 } else { 0 })
}

fn recovery(
    console: &mut Console<'_>,
    what: &FailureOptions,
    situation: &FailureContext<'_>,
    policy: &Policy,
) -> u8 {
    let limits = &policy.failures.recovery;
    let (action, reason) = recover(situation, limits);
    let tier = (action == Action::Failover).then_some(&limits.tier);
    console.print(&match what.format {
        ListFormat::Json => {
            let answer = json!({"action": action.as_str(), "reason": reason, "tier": tier,
                "class": situation.class, "signature": situation.signature});
            format!("{answer:#}\n")
        }
        ListFormat::Compact => format!("{}\n", action.as_str()),
        ListFormat::Text => {
            let tier = tier.map(|it| format!(", to tier `{it}`")).unwrap_or_default();
            format!("{}: {reason}{tier}\n", action.as_str())
        }
    });
    match action {
        Action::Retry | Action::Revise | Action::Rollback | Action::Failover => EXIT_OK,
        Action::Escalate | Action::Stop => EXIT_FOUND,
    }
}
