//! `policyd breaker list`, `status`, `show`, `explain` and `watch`: nothing is changed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::Desk;
use crate::cli::{Console, EXIT_FOUND, EXIT_OK, ListFormat};
use crate::report::breakers::{self, Seen};
use crate::state::breaker::load::LoadLevel;
use crate::time::Timestamp;

/// All breakers as they stand now.
fn all(desk: &Desk<'_>) -> Vec<Seen> {
    desk.store.all().into_iter().map(|(key, it)| desk.seen(&key, it)).collect()
}

fn warn_damaged(desk: &Desk<'_>, console: &mut Console<'_>) {
    if let Some(damage) = desk.store.damage() {
        console.complain(&damage);
    }
}

pub(super) fn list(desk: &Desk<'_>, console: &mut Console<'_>, format: ListFormat) -> u8 {
    warn_damaged(desk, console);
    for seen in all(desk) {
        let line = match format {
            ListFormat::Json => seen.json().to_string(),
            ListFormat::Text | ListFormat::Compact => seen.line(),
        };
        console.say(&format!("{line}\n"));
    }
    EXIT_OK
}

pub(super) fn status(desk: &Desk<'_>, console: &mut Console<'_>, format: ListFormat) -> u8 {
    warn_damaged(desk, console);
    let all = all(desk);
    let level = all.iter().map(Seen::load_level).max().unwrap_or_default();
    let line = match format {
        ListFormat::Text | ListFormat::Compact => breakers::status(&all),
        ListFormat::Json => {
            let keys = |wanted: &dyn Fn(&&Seen) -> bool| -> Vec<Value> {
                all.iter().filter(|it| wanted(it)).map(|it| it.key.clone().into()).collect()
            };
            json!({
                "load_level": level.as_str(),
                "open": keys(&|it| it.load_level() == LoadLevel::Reduced),
                "recovering": keys(&|it| it.load_level() == LoadLevel::Recovering),
                "needs_human": keys(&|it| it.breaker.needs_human),
            })
            .to_string()
        }
    };
    console.say(&format!("{line}\n"));
    if level == LoadLevel::Reduced { EXIT_FOUND } else { EXIT_OK }
}

pub(super) fn show(
    desk: &Desk<'_>,
    console: &mut Console<'_>,
    key: &str,
    format: ListFormat,
) -> u8 {
    warn_damaged(desk, console);
    let seen = desk.seen(key, desk.store.peek(key));
    console.say(&match format {
        ListFormat::Json => format!("{:#}\n", seen.json()),
        ListFormat::Compact => format!("{}\n", seen.line()),
        ListFormat::Text => seen.details(),
    });
    EXIT_OK
}

pub(super) fn explain(desk: &Desk<'_>, console: &mut Console<'_>, key: &str) -> u8 {
    warn_damaged(desk, console);
    let seen = desk.seen(key, desk.store.peek(key));
    console.say(&seen.explanation(desk.policy.breaker_origin(key)));
    EXIT_OK
}

/// Prints each breaker when it is first seen and when its state changes, until nobody reads.
pub(super) fn watch(desk: &Desk<'_>, console: &mut Console<'_>, every: Duration) -> u8 {
    // Looking without a pause would keep a processor busy.
    let every = every.max(Duration::from_millis(50));
    let mut known: BTreeMap<String, (u64, &'static str)> = BTreeMap::new();
    loop {
        for seen in all(desk) {
            let state = (seen.breaker.generation, seen.phase().as_str());
            if known.insert(seen.key.clone(), state) == Some(state) {
                continue;
            }
            let now: Timestamp = seen.now;
            let line = format!("{now} {}\n", seen.line());
            if !console.reaches(&line) {
                return EXIT_OK;
            }
        }
        desk.world.sleep(every);
    }
}
