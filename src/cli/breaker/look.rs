//! `policyd breaker list`, `status`, `show`, `explain` and `watch`: nothing is changed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::BreakerCommand;
use crate::lists::print_empty;
use crate::{Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, ListFormat};
use policyd_app::sharing;
use policyd_record::breaker_view::{self, BreakerView};
use policyd_state::breaker::load::LoadLevel;
use policyd_store::document::DocumentError;
use policyd_yaml::time::Timestamp;

/// All breakers as they stand now.
fn all(command: &BreakerCommand<'_>) -> Result<Vec<BreakerView>, DocumentError> {
    let all = command.store.all()?;
    Ok(all.into_iter().map(|(key, it)| command.seen(&key, it)).collect())
}

/// Reports a file that is damaged or cannot be read. Returns the exit code of a command that lists breakers.
fn report_damage(command: &BreakerCommand<'_>, console: &mut Console<'_>) -> u8 {
    match command.store.damage() {
        Some(damage) => {
            console.eprint(&damage);
            EXIT_BROKEN
        }
        None => EXIT_OK,
    }
}

pub(super) fn list(
    command: &BreakerCommand<'_>,
    console: &mut Console<'_>,
    format: ListFormat,
) -> u8 {
    let code = report_damage(command, console);
    let Ok(breakers) = all(command) else { return EXIT_BROKEN };
    if breakers.is_empty() && code == EXIT_OK {
        print_empty(console, format, "breakers");
    }
    for seen in breakers {
        match format {
            ListFormat::Json => console.print(&format!("{}\n", seen.json())),
            ListFormat::Text | ListFormat::Compact => {
                console.print_lines(&format!("{}\n", seen.line()));
            }
        }
    }
    code
}

pub(super) fn status(
    command: &BreakerCommand<'_>,
    console: &mut Console<'_>,
    format: ListFormat,
) -> u8 {
    let code = report_damage(command, console);
    let Ok(all) = all(command) else { return EXIT_BROKEN };
    let level = all.iter().map(BreakerView::load_level).max().unwrap_or_default();
    let line = match format {
        ListFormat::Text | ListFormat::Compact => breaker_view::status(&all),
        ListFormat::Json => {
            let keys = |wanted: &dyn Fn(&&BreakerView) -> bool| -> Vec<Value> {
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
    console.print(&format!("{line}\n"));
    if code == EXIT_OK && level == LoadLevel::Reduced { EXIT_FOUND } else { code }
}

pub(super) fn show(
    command: &BreakerCommand<'_>,
    console: &mut Console<'_>,
    key: &str,
    format: ListFormat,
) -> u8 {
    let code = report_damage(command, console);
    let Ok(breaker) = command.store.peek(key) else { return EXIT_BROKEN };
    let seen = command.seen(key, breaker);
    console.print(&match format {
        ListFormat::Json => format!("{:#}\n", seen.json()),
        ListFormat::Compact => format!("{}\n", seen.line()),
        ListFormat::Text => seen.details(),
    });
    code
}

pub(super) fn explain(command: &BreakerCommand<'_>, console: &mut Console<'_>, key: &str) -> u8 {
    let code = report_damage(command, console);
    let Ok(breaker) = command.store.peek(key) else { return EXIT_BROKEN };
    let seen = command.seen(key, breaker);
    console.print(&seen.explanation(command.policy.breaker_origin(key)));
    code
}

/// Prints each breaker when it is first seen and when its state changes, until standard output is closed.
pub(super) fn watch(
    command: &BreakerCommand<'_>,
    console: &mut Console<'_>,
    every: Duration,
) -> u8 {
    // Looking without a pause would keep a processor busy.
    let every = every.max(Duration::from_millis(50));
    let mut known: BTreeMap<String, (u64, &'static str)> = BTreeMap::new();
    loop {
        let (root, durability) = (command.store.root(), command.store.durability());
        // Without a server, the local copy is shown.
        let _without = sharing::sync(command.world, root, durability, sharing::QUICK);
        let all = match all(command) {
            Ok(all) => all,
            Err(error) => {
                console.eprint(&command.store.unreadable(&error));
                return EXIT_BROKEN;
            }
        };
        for seen in all {
            let state = (seen.breaker.generation, seen.phase().as_str());
            if known.insert(seen.key.clone(), state) == Some(state) {
                continue;
            }
            let now: Timestamp = seen.now;
            let line = format!("{now} {}\n", seen.line());
            if !console.try_print(&line) {
                return EXIT_OK;
            }
        }
        command.world.sleep(every);
    }
}
