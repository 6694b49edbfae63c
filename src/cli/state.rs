//! `policyd debug state`: show, verify, reset and list the state of sessions.

use std::time::Duration;

use serde_json::json;

use super::{Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ListFormat, StateAction, pack};
use crate::human::require_human;
use crate::lists::print_empty;
use policyd_app::workspace::project;
use policyd_base::id::SessionId;
use policyd_base::limits;
use policyd_state::SessionState;
use policyd_store::block_copies;
use policyd_store::file::SaveOutcome;
use policyd_store::session::{SessionLookup, SessionStore, StateOrigin};
use policyd_world::World;

/// Runs one action.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, action: &StateAction) -> u8 {
    let Some(policy) = pack::require_valid(world, console, None) else { return EXIT_BROKEN };
    let project = project::find(world, None);
    let fenced = project::fenced_by_pack(world, &project, &policy.settings);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let (store, _) = project::sessions(world, &project, &policy.settings);
    match action {
        StateAction::Show { session } => {
            with(console, &store, session, |console, id| show(console, &store, id))
        }
        StateAction::Verify { session, format } => {
            with(console, &store, session, |console, id| verify(console, &store, id, *format))
        }
        StateAction::Reset { session } => {
            with(console, &store, session, |console, id| reset(console, &store, id))
        }
        StateAction::List => list(console, &store),
    }
}

/// Acts on the session whose id begins so.
fn with(
    console: &mut Console<'_>,
    store: &SessionStore<'_>,
    session: &str,
    act: impl FnOnce(&mut Console<'_>, &SessionId) -> u8,
) -> u8 {
    match store.named(session) {
        SessionLookup::One(id) => act(console, &id),
        SessionLookup::Unknown(Some(id)) => act(console, &id),
        SessionLookup::Unknown(None) => {
            console.eprint(&format!(
                "invalid session id `{session}`\nhelp: use letters, digits, `_` and `-`"
            ));
            EXIT_USAGE
        }
        SessionLookup::Several(ids) => {
            console.eprint(&format!("ambiguous session id: {}", ids.join(", ")));
            EXIT_USAGE
        }
    }
}

fn show(console: &mut Console<'_>, store: &SessionStore<'_>, id: &SessionId) -> u8 {
    match store.world.read(&store.paths(id).state, limits::STATE_FILE_BYTES_MAX) {
        Ok(bytes) => {
            console.print(&format!("{}\n", String::from_utf8_lossy(&bytes).trim_end()));
            EXIT_OK
        }
        Err(error) => {
            console.eprint(&format!("could not read the state of session {id}: {error}"));
            EXIT_BROKEN
        }
    }
}

/// The seed's codes: 0 success, 2 validation failed.
fn verify(
    console: &mut Console<'_>,
    store: &SessionStore<'_>,
    id: &SessionId,
    format: ListFormat,
) -> u8 {
    let loaded = store.peek(id);
    let (code, text) = match &loaded.origin {
        StateOrigin::Fresh => (0, "no state yet".to_owned()),
        StateOrigin::File => (0, "the state is valid".to_owned()),
        StateOrigin::Newer { version } => {
            (0, format!("written by a newer version ({version}); read only"))
        }
        StateOrigin::Recovered { reason, .. } => (2, format!("corrupt: {reason}")),
    };
    if format == ListFormat::Json {
        let value = json!({
            "version": 1, "session_id": id.as_str(), "code": code, "message": text,
            "consecutive_blocks": loaded.state.main.consecutive_blocks,
        });
        console.print(&format!("{value}\n"));
    } else {
        console.print(&format!("{id}: {text}\n"));
    }
    if code == 0 { EXIT_OK } else { EXIT_FOUND }
}

fn reset(console: &mut Console<'_>, store: &SessionStore<'_>, id: &SessionId) -> u8 {
    if store.peek(id).origin == StateOrigin::Fresh {
        console.eprint(&format!(
            "unknown session {id}\nhelp: run `policyd debug state list` to list them"
        ));
        return EXIT_BROKEN;
    }
    let action = format!("reset the counters of session {id}");
    if let Err(code) = require_human(store.world, console, &action) {
        return code;
    }
    let mut locked = match store.lock(id, Duration::from_secs(2)) {
        Ok(locked) => locked,
        Err(error) => {
            console.eprint(&error.to_string());
            return EXIT_BROKEN;
        }
    };
    let old = locked.load().state;
    let fresh = SessionState { revision: old.revision, ..SessionState::new(id.clone()) };
    match locked.commit(&fresh) {
        SaveOutcome::Durable { .. } | SaveOutcome::Degraded { .. } => {
            block_copies::forget(store.world, id);
            console.print(&format!("{id}: counters reset\n"));
            EXIT_OK
        }
        SaveOutcome::NotSaved { why, .. } => {
            console.eprint(&format!("could not save the state: {why}"));
            EXIT_BROKEN
        }
    }
}

fn list(console: &mut Console<'_>, store: &SessionStore<'_>) -> u8 {
    let mut rows: Vec<_> =
        store.sessions().into_iter().map(|id| (store.peek(&id).state, id)).collect();
    rows.sort_by_key(|(state, _)| std::cmp::Reverse(state.last_check));
    if rows.is_empty() {
        print_empty(console, ListFormat::Text, "sessions");
    }
    for (state, id) in rows {
        let last = state.last_check.map(|it| it.to_string()).unwrap_or_default();
        console.print_lines(&format!(
            "{last:24}  blocks: {:3} now, {:4} in total; released: {:3}  {id}\n",
            state.main.consecutive_blocks, state.main.total_blocks, state.main.releases
        ));
    }
    EXIT_OK
}
