//! `policyd breaker allow`: whether a call is permitted. Scripts ask before each call.

use std::mem::ManuallyDrop;

use policyd_base::limits::COMMAND_LOCK_WAIT;
use policyd_packs::{self as packs, LoadPack};
use policyd_policy::Policy;
use policyd_record::breaker_view::BreakerView;
use policyd_state::breaker::BreakerResponse;
use policyd_store::breakers::BreakerStore;
use policyd_store::configuration::Configurations;
use policyd_tasks::sharing;
use policyd_workspace::project;
use policyd_world::World;

use crate::Console;
use crate::exit::{EXIT_BROKEN, EXIT_FOUND, EXIT_OK};

/// Longest name of a breaker.
pub const KEY_BYTES_MAX: usize = 200;

/// A call of `policyd breaker allow`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowCall {
    /// Name of the breaker.
    pub key: String,
    /// Whether the answer is JSON.
    pub json: bool,
}

/// Returns whether a text can be the name of a breaker.
#[must_use]
pub fn is_key(text: &str) -> bool {
    !text.is_empty() && text.len() <= KEY_BYTES_MAX && !text.contains(char::is_control)
}

/// Answers from the files of this machine. `None` if more is needed: a server, or something to report about the packs.
/// Nothing was written then.
pub fn allow_here(
    world: &dyn World,
    console: &mut Console<'_>,
    call: &AllowCall,
    load: LoadPack,
) -> Option<u8> {
    if !is_key(&call.key) || Configurations::load(world).shared_store(world).is_some() {
        return None;
    }
    let project = project::find(world, None);
    let fenced = project::fenced(world, &project);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let found = packs::find(world, &project, None);
    if !found.untrusted.is_empty() {
        return None;
    }
    // The process ends with its answer: taking a policy apart would only delay it.
    let policy = ManuallyDrop::new(load(world, &found).ok()?);
    let fenced = project::fenced_by_pack(world, &project, &policy.settings);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let (sessions, own) = project::sessions(world, &project, &policy.settings);
    let store = BreakerStore::new(world, &own, sessions.durability).patient(COMMAND_LOCK_WAIT);
    Some(allow(world, console, &store, &policy, call))
}

/// Asks whether a call is permitted, and prints why it is not.
pub fn allow(
    world: &dyn World,
    console: &mut Console<'_>,
    store: &BreakerStore<'_>,
    policy: &Policy,
    call: &AllowCall,
) -> u8 {
    let settings = policy.breaker(&call.key);
    let (breaker, answer) = match sharing::request(world, store, &call.key, &settings) {
        Ok(answered) => answered,
        Err(error) => {
            console.eprint(&store.unreadable(&error));
            return EXIT_BROKEN;
        }
    };
    let seen = BreakerView { key: call.key.clone(), breaker, settings, now: world.now() };
    if call.json {
        console.print(&format!("{}\n", seen.answer_json(answer)));
    } else if let BreakerResponse::Rejected { wait } = answer {
        console.print(&format!("{}\n", seen.rejection(wait)));
    } else if let BreakerResponse::WouldReject { wait } = answer {
        console.eprint(&format!("call permitted in shadow mode: {}", seen.rejection(wait)));
    }
    if matches!(answer, BreakerResponse::Rejected { .. }) { EXIT_FOUND } else { EXIT_OK }
}
