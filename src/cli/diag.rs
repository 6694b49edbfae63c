//! `policyd debug diag`: failures, retries and corrupt files in the diagnostic logs of the sessions.

use serde_json::Value;

use super::{Console, DiagAction, DiagFilter, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, ListFormat, pack};
use crate::lists::print_empty;
use policyd_app::workspace::project;
use policyd_base::id::SessionId;
use policyd_store::session::SessionStore;
use policyd_store::{health, log};
use policyd_world::World;

/// Runs one question: exit 1 where failures or corruption were found.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, action: &DiagAction) -> u8 {
    let Some(policy) = pack::require_valid(world, console, None) else { return EXIT_BROKEN };
    let project = project::find(world, None);
    let (store, _) = project::sessions(world, &project, &policy.settings);
    match action {
        DiagAction::Failures(filter) => failures(console, &entries(world, &store, filter), filter),
        DiagAction::Retries(filter) => retries(console, &entries(world, &store, filter)),
        DiagAction::Corruption(filter) => {
            corruption(console, &entries(world, &store, filter), filter)
        }
        DiagAction::Tail(filter) => {
            let entries = entries(world, &store, filter);
            if entries.is_empty() {
                print_empty(console, ListFormat::Text, "log entries");
            }
            for entry in health::tail(&entries, filter.lines) {
                console.print(&format!("{}\n", log::line(entry).trim_end()));
            }
            EXIT_OK
        }
    }
}

/// Entries of one session or of all, oldest first.
fn entries(world: &dyn World, store: &SessionStore<'_>, filter: &DiagFilter) -> Vec<Value> {
    let sessions = match &filter.session {
        Some(id) => vec![SessionId::sanitize(id)],
        None => store.sessions(),
    };
    let mut entries: Vec<Value> =
        sessions.iter().flat_map(|id| log::read_all(world, &store.paths(id).log)).collect();
    let time = |it: &Value| it.get("timestamp").and_then(Value::as_str).map(str::to_owned);
    entries.sort_by_key(time);
    entries
}

fn failures(console: &mut Console<'_>, entries: &[Value], filter: &DiagFilter) -> u8 {
    let rows = health::failures(entries);
    for row in rows.iter().rev().take(filter.lines).rev() {
        console.print_lines(&format!("{}\t{}\t{}\n", row.timestamp, row.operation, row.reason));
    }
    if rows.is_empty() {
        print_empty(console, ListFormat::Text, "failures");
        return EXIT_OK;
    }
    EXIT_FOUND
}

fn retries(console: &mut Console<'_>, entries: &[Value]) -> u8 {
    match health::retries(entries).mean() {
        Some(mean) => console.print(&format!("{mean:.3} retries per save\n")),
        None => print_empty(console, ListFormat::Text, "logged saves"),
    }
    EXIT_OK
}

fn corruption(console: &mut Console<'_>, entries: &[Value], filter: &DiagFilter) -> u8 {
    let rows = health::corruption(entries);
    for row in rows.iter().rev().take(filter.lines).rev() {
        console.print_lines(&format!("{}\t{}\n", row.timestamp, row.reason));
    }
    if rows.is_empty() {
        print_empty(console, ListFormat::Text, "corrupt files");
        return EXIT_OK;
    }
    EXIT_FOUND
}
