//! `policyd breaker`: list, ask, feed, open and reset the circuit breakers of the project.

mod look;
mod route;

use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::time::Duration;

use super::human::require_human;
use super::{
    BreakerAction, CallResult, Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ListFormat,
    RecordArguments, pack, project,
};
use crate::limits::COMMAND_LOCK_WAIT;
use crate::policy::Policy;
use crate::report::breakers::Seen;
use crate::report::mask::mask;
use crate::source::suggest;
use crate::state::breaker::{Answer, Breaker, Effect, Event, Failure, Mode, Settings, Told};
use crate::store::breakers::BreakerStore;
use crate::time::duration_text;
use crate::world::{World, WorldError};

/// Longest name of a breaker.
const KEY_MAX: usize = 200;

/// What every action needs.
struct Desk<'a> {
    world: &'a dyn World,
    store: BreakerStore<'a>,
    policy: ManuallyDrop<Policy>,
}

impl Desk<'_> {
    /// A breaker as it stands now.
    fn seen(&self, key: &str, breaker: Breaker) -> Seen {
        let settings = self.policy.breaker(key);
        Seen { key: key.to_owned(), breaker, settings, now: self.world.now() }
    }
}

/// Runs one action.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, action: &BreakerAction) -> u8 {
    let named = match action {
        BreakerAction::List { .. }
        | BreakerAction::Status { .. }
        | BreakerAction::Watch { .. }
        | BreakerAction::Route { .. } => None,
        BreakerAction::Show { key, .. }
        | BreakerAction::Explain { key }
        | BreakerAction::Allow { key, .. }
        | BreakerAction::Record(RecordArguments { key, .. })
        | BreakerAction::Trip { key, .. }
        | BreakerAction::Reset { key } => Some(key),
    };
    if named.is_some_and(|it| it.is_empty() || it.len() > KEY_MAX || it.contains(char::is_control))
    {
        console.complain(&format!("breaker key must have 1 to {KEY_MAX} printable bytes"));
        return EXIT_USAGE;
    }
    let project = project::find(world, None);
    let Some(policy) = pack::sound_of(world, console, &project) else { return EXIT_BROKEN };
    let fenced = project::fenced_by_pack(world, &project, &policy.settings);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let (sessions, own) = project::sessions(world, &project, &policy.settings);
    let store =
        BreakerStore::new(world, &own, sessions.durability.clone()).patient(COMMAND_LOCK_WAIT);
    // The process ends with its answer: taking a policy apart would only delay it.
    let desk = &Desk { world, store, policy: ManuallyDrop::new(policy) };
    match action {
        BreakerAction::List { format } => look::list(desk, console, *format),
        BreakerAction::Status { format } => look::status(desk, console, *format),
        BreakerAction::Show { key, format } => look::show(desk, console, key, *format),
        BreakerAction::Explain { key } => look::explain(desk, console, key),
        BreakerAction::Watch { every } => look::watch(desk, console, *every),
        BreakerAction::Allow { key, format } => allow(desk, console, key, *format),
        BreakerAction::Record(arguments) => record(desk, console, arguments),
        BreakerAction::Trip { key, length, reason } => {
            trip(desk, console, key, (*length, reason.as_str()))
        }
        BreakerAction::Reset { key } => reset(desk, console, key),
        BreakerAction::Route { chain, format } => {
            route::run(desk, console, chain.as_deref(), *format)
        }
    }
}

fn refused(console: &mut Console<'_>, key: &str, error: &WorldError) -> u8 {
    console.complain(&format!("could not change breaker `{key}`: {error}"));
    EXIT_BROKEN
}

fn allow(desk: &Desk<'_>, console: &mut Console<'_>, key: &str, format: ListFormat) -> u8 {
    let settings = desk.policy.breaker(key);
    let (breaker, answer) = desk.store.request(key, &settings, desk.world.now());
    let seen = desk.seen(key, breaker);
    match (format, answer) {
        (ListFormat::Json, answer) => console.say(&format!("{}\n", seen.answer_json(answer))),
        (_, Answer::Rejected { wait }) => console.say(&format!("{}\n", seen.rejection(wait))),
        (_, Answer::Tolerated { wait }) => {
            console.complain(&format!("call permitted in shadow mode: {}", seen.rejection(wait)));
        }
        (_, Answer::Admitted | Answer::Noted) => {}
    }
    if matches!(answer, Answer::Rejected { .. }) { EXIT_FOUND } else { EXIT_OK }
}

/// What errors of a class do, which is named by its id or as hooks name it: the breaker's own lists
/// come before what `failures.yaml` says. A class that nobody knows counts, and that is told.
fn effect_of(
    desk: &Desk<'_>,
    console: &mut Console<'_>,
    settings: &Settings,
    class: &str,
) -> Effect {
    let classes = &desk.policy.failures.classes;
    let known = classes.iter().find(|it| it.id == class || it.errors.iter().any(|it| it == class));
    let effect = settings.effect_of(class).or_else(|| known.map(|it| it.effect));
    effect.unwrap_or_else(|| {
        let names = classes.iter().flat_map(|it| it.errors.iter().chain([&it.id]));
        let names = names.chain(&settings.ignore).chain(&settings.permanent);
        let mut names: Vec<&str> = names.map(String::as_str).collect();
        let mut seen = BTreeSet::new();
        names.retain(|it| seen.insert(*it));
        let help = suggest::did_you_mean(class, &names);
        let help = help.unwrap_or_else(|| "the pack defines no failure class".to_owned());
        console.complain(&format!(
            "unknown failure class `{class}`, so the failure counts\nhelp: {help}"
        ));
        Effect::Trip
    })
}

fn record(desk: &Desk<'_>, console: &mut Console<'_>, arguments: &RecordArguments) -> u8 {
    let (key, settings) = (&arguments.key, desk.policy.breaker(&arguments.key));
    let told = Told { generation: arguments.generation, took: arguments.took };
    let (error, _) = mask(&arguments.error);
    let class = arguments.class.as_deref();
    let effect = class.map_or(Effect::Trip, |it| effect_of(desk, console, &settings, it));
    let retry_after = arguments.retry_after;
    let event = match arguments.result {
        CallResult::Success => Event::Success(told),
        CallResult::Failure => Event::Failure(Failure { error: &error, effect, retry_after, told }),
    };
    match desk.store.record(key, event, &settings, desk.world.now()) {
        Ok(breaker) => {
            console.say(&format!("{key}: {}\n", breaker.phase.as_str()));
            if breaker.needs_human && effect == Effect::Permanent {
                console
                    .complain(&format!("`{key}`: permanent failure; a human must fix the cause"));
            }
            EXIT_OK
        }
        Err(error) => refused(console, key, &error),
    }
}

fn trip(
    desk: &Desk<'_>,
    console: &mut Console<'_>,
    key: &str,
    (length, reason): (Option<Duration>, &str),
) -> u8 {
    let settings = desk.policy.breaker(key);
    let length_text = length.map_or_else(String::new, |it| format!(" for {}", duration_text(it)));
    let action = format!("open the breaker `{key}`{length_text}");
    let actor = match require_human(desk.world, console, &action) {
        Ok(actor) => actor,
        Err(code) => return code,
    };
    let (reason, _) = mask(reason);
    let reason = match reason.is_empty() {
        true => actor.text(),
        false => format!("{reason}, by {}", actor.text()),
    };
    let event = Event::Trip { length, reason: &reason };
    match desk.store.record(key, event, &settings, desk.world.now()) {
        Ok(breaker) => {
            console.say(&format!("{}\n", desk.seen(key, breaker).line()));
            if settings.mode != Mode::Enforce {
                console.complain(&format!(
                    "`{key}` does not reject calls: its `mode` is not `enforce`"
                ));
            }
            EXIT_OK
        }
        Err(error) => refused(console, key, &error),
    }
}

fn reset(desk: &Desk<'_>, console: &mut Console<'_>, key: &str) -> u8 {
    if !desk.store.is_damaged() && !desk.store.knows(key) {
        console.complain(&format!("unknown breaker `{key}`; nothing reset"));
        return EXIT_FOUND;
    }
    if let Err(code) = require_human(desk.world, console, &format!("reset the breaker `{key}`")) {
        return code;
    }
    let settings = desk.policy.breaker(key);
    match desk.store.record(key, Event::Reset, &settings, desk.world.now()) {
        Ok(_) => EXIT_OK,
        Err(error) => refused(console, key, &error),
    }
}
