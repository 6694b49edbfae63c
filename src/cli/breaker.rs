//! `policyd breaker`: list, ask, feed and reset the circuit breakers of the project.

use std::time::Duration;

use serde_json::json;

use super::{
    BreakerAction, CallResult, Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ListFormat,
    pack, project,
};
use crate::policy::Policy;
use crate::state::breaker::{Answer, Breaker, Event};
use crate::store::breakers::BreakerStore;
use crate::time::duration_text;
use crate::world::{World, WorldError};

/// Longest name of a breaker.
const KEY_MAX: usize = 200;

/// A script would rather wait than lose a result.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// Runs one action.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, action: &BreakerAction) -> u8 {
    let Some(policy) = pack::sound(world, console, None) else { return EXIT_BROKEN };
    let project = project::find(world, None);
    let (sessions, own) = project::sessions(world, &project, &policy.settings);
    let named = match action {
        BreakerAction::List { .. } => None,
        BreakerAction::Allow { key }
        | BreakerAction::Record { key, .. }
        | BreakerAction::Reset { key } => Some(key),
    };
    if named.is_some_and(|it| it.is_empty() || it.len() > KEY_MAX || it.contains(char::is_control))
    {
        console.complain(&format!("a breaker's name is a text of 1 to {KEY_MAX} printable bytes"));
        return EXIT_USAGE;
    }
    let store = BreakerStore::new(world, &own, sessions.durability.clone()).patient(LOCK_WAIT);
    match action {
        BreakerAction::List { format } => list(world, console, (&store, &policy), *format),
        BreakerAction::Allow { key } => allow(world, console, (&store, &policy), key),
        BreakerAction::Record { key, result, error } => {
            let event = match result {
                CallResult::Success => Event::Success,
                CallResult::Failure => Event::Failure(error),
            };
            match store.record(key, event, &policy.breaker(key), world.now()) {
                Ok(breaker) => {
                    console.say(&format!("{key}: {}\n", breaker.phase.as_str()));
                    EXIT_OK
                }
                Err(error) => refused(console, key, &error),
            }
        }
        BreakerAction::Reset { key } => match store.reset(key, world.now()) {
            Ok(true) => EXIT_OK,
            Ok(false) => {
                console.complain(&format!("there is no breaker `{key}`; nothing was reset"));
                EXIT_FOUND
            }
            Err(error) => refused(console, key, &error),
        },
    }
}

fn refused(console: &mut Console<'_>, key: &str, error: &WorldError) -> u8 {
    console.complain(&format!("the breaker `{key}` could not be changed: {error}"));
    EXIT_BROKEN
}

fn allow(
    world: &dyn World,
    console: &mut Console<'_>,
    (store, policy): (&BreakerStore<'_>, &Policy),
    key: &str,
) -> u8 {
    let (breaker, answer) = store.request(key, &policy.breaker(key), world.now());
    match answer {
        Answer::Admitted | Answer::Noted => EXIT_OK,
        Answer::Rejected { wait } => {
            let wait = duration_text(Duration::from_secs(wait.as_secs().saturating_add(1)));
            let last = last_error(&breaker);
            console.say(&format!("{key}: {}, retry after {wait}{last}\n", breaker.phase.as_str()));
            EXIT_FOUND
        }
    }
}

fn last_error(breaker: &Breaker) -> String {
    match breaker.last_error.as_str() {
        "" => String::new(),
        error => format!("; last error: {error}"),
    }
}

fn list(
    world: &dyn World,
    console: &mut Console<'_>,
    (store, policy): (&BreakerStore<'_>, &Policy),
    format: ListFormat,
) -> u8 {
    let now = world.now();
    if store.is_damaged() {
        console.complain("state/circuit-breakers.json is damaged: every call is admitted, and the next change puts it aside");
    }
    for (key, it) in store.all() {
        let phase = it.phase_at(&policy.breaker(&key), now).as_str();
        let until = it.cooldown_until.filter(|at| *at > now);
        let until = until.map(|at| at.to_string());
        let failures = it.failures.len();
        let line = match format {
            ListFormat::Json => json!({"key": key, "state": phase, "failures": failures,
                "cooldown_until": until, "last_error": it.last_error})
            .to_string(),
            ListFormat::Text | ListFormat::Compact => {
                let until = until.map(|at| format!(" until {at}")).unwrap_or_default();
                format!("{key}: {phase}{until}, {failures} failure(s){}", last_error(&it))
            }
        };
        console.say(&format!("{line}\n"));
    }
    EXIT_OK
}
