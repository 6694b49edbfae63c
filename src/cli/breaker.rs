//! `policyd breaker`: list, ask, feed, open and reset the circuit breakers of the project.

mod look;
mod route;

use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::time::Duration;

use super::{
    BreakerAction, CallResult, Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ListFormat,
    RecordArguments, pack,
};
use crate::human::{HumanAnswer, require_human};
use crate::store::LocalFiles;
use policyd_app::sharing::{COMMAND, QUICK};
use policyd_app::workspace::project;
use policyd_base::limits::COMMAND_LOCK_WAIT;
use policyd_eval::breaker::{AllowCall, KEY_BYTES_MAX, allow, is_key};
use policyd_policy::Policy;
use policyd_record::breaker_view::BreakerView;
use policyd_record::mask::mask;
use policyd_report::overview::WaitingKind;
use policyd_state::breaker::{
    Breaker, BreakerEvent, BreakerFailure, BreakerMode, BreakerSettings, CallMetadata,
    FailureEffect,
};
use policyd_store::breakers::BreakerStore;
use policyd_world::{World, WorldError};
use policyd_yaml::suggest;
use policyd_yaml::time::duration_text;

/// What every action needs.
struct BreakerCommand<'a> {
    world: &'a dyn World,
    store: BreakerStore<'a>,
    policy: ManuallyDrop<Policy>,
}

impl BreakerCommand<'_> {
    /// A breaker as it stands now.
    fn seen(&self, key: &str, breaker: Breaker) -> BreakerView {
        let settings = self.policy.breaker(key);
        BreakerView { key: key.to_owned(), breaker, settings, now: self.world.now() }
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
    if named.is_some_and(|it| !is_key(it)) {
        console.eprint(&format!("breaker key must have 1 to {KEY_BYTES_MAX} printable bytes"));
        return EXIT_USAGE;
    }
    let project = project::find(world, None);
    let Some(policy) = pack::or_builtin_policy(world, console, &project) else {
        return EXIT_BROKEN;
    };
    let fenced = project::fenced_by_pack(world, &project, &policy.settings);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let (sessions, own) = project::sessions(world, &project, &policy.settings);
    let store =
        BreakerStore::new(world, &own, sessions.durability.clone()).patient(COMMAND_LOCK_WAIT);
    let limits = match action {
        BreakerAction::Allow { .. } => QUICK,
        // Scripts record each call, so a server that did not answer a moment ago is not waited for again.
        BreakerAction::Record(_) => COMMAND.and_then(),
        BreakerAction::List { .. }
        | BreakerAction::Status { .. }
        | BreakerAction::Show { .. }
        | BreakerAction::Explain { .. }
        | BreakerAction::Watch { .. }
        | BreakerAction::Trip { .. }
        | BreakerAction::Reset { .. }
        | BreakerAction::Route { .. } => COMMAND,
    };
    let files = LocalFiles { root: &own, durability: &sessions.durability };
    // The process ends with its answer: taking a policy apart would only delay it.
    let command = BreakerCommand { world, store, policy: ManuallyDrop::new(policy) };
    let code = super::store::around(world, console, files, limits, |console, _, answer| {
        act(&command, console, action, answer)
    });
    console.warn_if_not_durable(command.store.degraded().as_slice());
    code
}

/// Runs one action on the local copy.
fn act(
    command: &BreakerCommand<'_>,
    console: &mut Console<'_>,
    action: &BreakerAction,
    answer: &mut Option<HumanAnswer>,
) -> u8 {
    match action {
        BreakerAction::List { format } => look::list(command, console, *format),
        BreakerAction::Status { format } => look::status(command, console, *format),
        BreakerAction::Show { key, format } => look::show(command, console, key, *format),
        BreakerAction::Explain { key } => look::explain(command, console, key),
        BreakerAction::Watch { every } => look::watch(command, console, *every),
        BreakerAction::Allow { key, format } => {
            let call = AllowCall { key: key.clone(), json: matches!(format, ListFormat::Json) };
            allow(command.world, console, &command.store, &command.policy, &call)
        }
        BreakerAction::Record(arguments) => record(command, console, arguments),
        BreakerAction::Trip { key, length, reason } => trip(command, console, key, *length, reason),
        BreakerAction::Reset { key } => reset(command, console, key, answer),
        BreakerAction::Route { chain, format } => {
            route::run(command, console, chain.as_deref(), *format)
        }
    }
}

fn refused(console: &mut Console<'_>, key: &str, error: &WorldError) -> u8 {
    console.eprint(&format!("could not change breaker `{key}`: {error}"));
    EXIT_BROKEN
}

/// Returns the effect of a failure class on the breaker. `class`: the id of the class, or the error name of a hook. The
/// breaker's own lists take precedence over `failures.yaml`. An unknown class counts as a failure, with a warning.
fn effect_of(
    command: &BreakerCommand<'_>,
    console: &mut Console<'_>,
    settings: &BreakerSettings,
    class: &str,
) -> FailureEffect {
    let classes = &command.policy.failures.classes;
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
        console.eprint(&format!(
            "unknown failure class `{class}`, so the failure counts\nhelp: {help}"
        ));
        FailureEffect::Trip
    })
}

fn record(
    command: &BreakerCommand<'_>,
    console: &mut Console<'_>,
    arguments: &RecordArguments,
) -> u8 {
    let (key, settings) = (&arguments.key, command.policy.breaker(&arguments.key));
    let told = CallMetadata { generation: arguments.generation, took: arguments.took };
    let (error, _) = mask(&arguments.error);
    let class = arguments.class.as_deref();
    let effect = class.map_or(FailureEffect::Trip, |it| effect_of(command, console, &settings, it));
    let retry_after = arguments.retry_after;
    let event = match arguments.result {
        CallResult::Success => BreakerEvent::Success(told),
        CallResult::Failure => {
            BreakerEvent::Failure(BreakerFailure { error: &error, effect, retry_after, told })
        }
    };
    match command.store.record(key, event, &settings, command.world.now()) {
        Ok(breaker) => {
            console.print(&format!("{key}: {}\n", breaker.phase.as_str()));
            if breaker.needs_human && effect == FailureEffect::Permanent {
                console.eprint(&format!("`{key}`: permanent failure; a human must fix the cause"));
            }
            EXIT_OK
        }
        Err(error) => refused(console, key, &error),
    }
}

fn trip(
    command: &BreakerCommand<'_>,
    console: &mut Console<'_>,
    key: &str,
    length: Option<Duration>,
    reason: &str,
) -> u8 {
    let settings = command.policy.breaker(key);
    let length_text = length.map_or_else(String::new, |it| format!(" for {}", duration_text(it)));
    let action = format!("open the breaker `{key}`{length_text}");
    let actor = match require_human(command.world, console, &action) {
        Ok(actor) => actor,
        Err(code) => return code,
    };
    let (reason, _) = mask(reason);
    let reason = match reason.is_empty() {
        true => actor.text(),
        false => format!("{reason}, by {}", actor.text()),
    };
    let event = BreakerEvent::Trip { length, reason: &reason };
    match command.store.record(key, event, &settings, command.world.now()) {
        Ok(breaker) => {
            console.print(&format!("{}\n", command.seen(key, breaker).line()));
            if settings.mode != BreakerMode::Enforce {
                console
                    .eprint(&format!("`{key}` does not reject calls: its `mode` is not `enforce`"));
            }
            EXIT_OK
        }
        Err(error) => refused(console, key, &error),
    }
}

fn reset(
    command: &BreakerCommand<'_>,
    console: &mut Console<'_>,
    key: &str,
    answer: &mut Option<HumanAnswer>,
) -> u8 {
    match command.store.knows(key) {
        Ok(false) if !command.store.is_damaged() => {
            console.eprint(&format!("unknown breaker `{key}`; nothing reset"));
            return EXIT_FOUND;
        }
        Ok(_) => {}
        Err(error) => return refused(console, key, &error.into()),
    }
    let action = format!("reset the breaker `{key}`");
    let actor = match require_human(command.world, console, &action) {
        Ok(actor) => actor,
        Err(code) => return code,
    };
    let settings = command.policy.breaker(key);
    match command.store.record(key, BreakerEvent::Reset, &settings, command.world.now()) {
        Ok(_) => {
            let kind = WaitingKind::Breaker;
            *answer = Some(HumanAnswer::new(kind.yes(), kind, key, actor));
            EXIT_OK
        }
        Err(error) => refused(console, key, &error),
    }
}
