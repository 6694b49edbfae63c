//! Asks for the human that some commands require, and prints why one is refused. Refuses what the organization does
//! not allow any user.

use std::path::Path;

use super::{Console, EXIT_FOUND};
use policyd_app::workspace::human::{self, Actor};
use policyd_record::notice::{LoggedAnswer, answer_entry};
use policyd_report::overview::WaitingKind;
use policyd_store::configuration::{Configuration, ConfigurationOwner, Pins};
use policyd_store::decision_log::log_decision;
use policyd_world::World;

/// The answer of a human to something that waited, for the decision log.
pub(super) struct HumanAnswer {
    /// What was done with it, such as `approve`.
    pub(super) verb: &'static str,
    /// What waited, as the inbox names it.
    pub(super) kind: WaitingKind,
    pub(super) id: String,
    /// What it is about.
    pub(super) what: String,
    /// What the human added.
    pub(super) text: String,
    pub(super) actor: Actor,
}

impl HumanAnswer {
    /// Returns an answer without texts.
    pub(super) fn new(verb: &'static str, kind: WaitingKind, id: &str, actor: Actor) -> Self {
        let (what, text) = (String::new(), String::new());
        Self { verb, kind, id: id.to_owned(), what, text, actor }
    }

    /// Logs the answer in the project of a state directory.
    pub(super) fn log(&self, world: &dyn World, state_dir: &Path) {
        let Self { verb, kind, id, what, text, actor } = self;
        let item = LoggedAnswer { verb, kind: kind.name(), id, texts: &[what, text] };
        let entry = answer_entry(world.now(), &item, actor.text());
        // The answer itself stands.
        let _unlogged = log_decision(world, state_dir, entry);
    }
}

/// Requires that a human runs this command and confirms the action; returns who it is, or the exit code
/// of the refusal, which is printed.
pub(super) fn require_human(
    world: &dyn World,
    console: &mut Console<'_>,
    action: &str,
) -> Result<Actor, u8> {
    human::confirm(world, action).map_err(|refusal| {
        console.eprint(&refusal.to_string());
        EXIT_FOUND
    })
}

/// Refuses an action if an agent runs this command; returns the exit code of the refusal, which is printed.
pub(super) fn refuse_agent(
    world: &dyn World,
    console: &mut Console<'_>,
    action: &str,
) -> Result<(), u8> {
    human::refuse_agent(world, action).map_err(|refusal| {
        console.eprint(&refusal.to_string());
        EXIT_FOUND
    })
}

/// Refuses a command if the organization decided what it would change; `decision` returns the key of the decision.
pub(super) fn require_unpinned(
    world: &dyn World,
    console: &mut Console<'_>,
    decision: impl FnOnce(&Pins) -> Option<&'static str>,
) -> Result<(), u8> {
    let pins = Configuration::load(world, ConfigurationOwner::Organization).pins;
    let Some(key) = decision(&pins) else { return Ok(()) };
    let path = ConfigurationOwner::Organization.path(world).unwrap_or_default();
    let path = path.display();
    let text = match pins.is_assumed {
        true => format!(
            "the organization may forbid this, because its settings in `{path}` cannot be used\nhelp: ask the \
             administrator of this machine to fix the file; `policyd doctor` names the error"
        ),
        false => format!(
            "the organization does not allow this: `{key}` in `{path}`\nhelp: ask the administrator of this machine"
        ),
    };
    console.eprint(&text);
    Err(EXIT_FOUND)
}

/// The key that keeps users from disabling policyd.
pub(super) fn keeps_on(pins: &Pins) -> Option<&'static str> {
    (!pins.allow_disable).then_some("allow_disable: false")
}
