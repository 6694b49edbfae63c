//! `policyd pause`, `resume`, `disable` and `enable`: the user turns policyd off in a project, for a
//! while or until they enable it. Reported in the log, by `policyd rules`, and at each session start
//! and stop.

use std::time::Duration;

use super::{
    Console, DisableArguments, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, PauseArguments,
    ResumeArguments, pack,
};
use crate::human::{keeps_on, require_human, require_unpinned};
use policyd_app::workspace::gate_status::OffReason;
use policyd_app::workspace::human::Actor;
use policyd_app::workspace::project::{self, Project};
use policyd_base::id::SessionId;
use policyd_base::limits::{EVIDENCE_CHARS_MAX, PAUSE_MAX};
use policyd_evaluation::message;
use policyd_record::mask::mask;
use policyd_record::notice::{SwitchKind, switch_entry};
use policyd_store::decision_log::log_decision;
use policyd_store::pause::Pause;
use policyd_store::session::SessionLookup;
use policyd_store::user_choices::{DisabledProject, UserChoiceStore};
use policyd_world::World;
use policyd_yaml::time::{DurationError, duration_text, parse_duration};

/// Pauses the gate.
pub(super) fn pause(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &PauseArguments,
) -> u8 {
    let length = match length(&arguments.duration) {
        Ok(length) => length,
        Err(error) => {
            console.eprint(&error.to_string());
            return EXIT_USAGE;
        }
    };
    if let Err(code) = require_unpinned(world, console, keeps_on) {
        return code;
    }
    let project = project::find(world, None);
    let session = match named_session(world, console, &project, arguments.session.as_deref()) {
        Ok(session) => session,
        Err(code) => return code,
    };
    let whose = session
        .as_ref()
        .map_or_else(|| format!("in {}", project.root.display()), |id| format!("in session {id}"));
    let action = format!("pause policyd {whose} for {}", duration_text(length));
    let actor = match require_human(world, console, &action) {
        Ok(actor) => actor,
        Err(code) => return code,
    };
    let now = world.now();
    let pause =
        Pause { session, since: now, until: now.plus(length), reason: one_line(&arguments.reason) };
    let store = UserChoiceStore::new(world, &project.state);
    if let Err(problem) = store.change(|it| it.add_pause(pause.clone(), now)) {
        console.eprint(&format!("{problem}; nothing is paused"));
        return EXIT_BROKEN;
    }
    log(world, &project, SwitchKind::Pause, pause.session.as_ref(), pause.text(now), &actor);
    console.print(&format!("{}\n", pause.text(now)));
    EXIT_OK
}

/// Ends pauses: exit 1 where there was none.
pub(super) fn resume(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &ResumeArguments,
) -> u8 {
    let project = project::find(world, None);
    let session = match named_session(world, console, &project, arguments.session.as_deref()) {
        Ok(session) => session,
        Err(code) => return code,
    };
    let now = world.now();
    let store = UserChoiceStore::new(world, &project.state);
    match store.change(|it| it.end_pauses(session.as_ref(), now)) {
        Err(problem) => {
            console.eprint(&format!("{problem}; the pause continues"));
            EXIT_BROKEN
        }
        Ok(ended) if ended.is_empty() => {
            console.eprint("nothing was paused");
            EXIT_FOUND
        }
        Ok(ended) => {
            let actor = Actor::of(world);
            for it in ended {
                let text = "resumed".to_owned();
                log(world, &project, SwitchKind::Resume, it.session.as_ref(), text, &actor);
                let whose = it.session.map_or_else(String::new, |id| format!(" session {id}"));
                console.print(&format!("resumed{whose}\n"));
            }
            EXIT_OK
        }
    }
}

/// Disables policyd in the project.
pub(super) fn disable(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &DisableArguments,
) -> u8 {
    if let Err(code) = require_unpinned(world, console, keeps_on) {
        return code;
    }
    let project = project::find(world, None);
    let action = format!("disable policyd in {}", project.root.display());
    let actor = match require_human(world, console, &action) {
        Ok(actor) => actor,
        Err(code) => return code,
    };
    let since = world.now();
    let reason = one_line(&arguments.reason);
    let disabled = DisabledProject { since, reason };
    let store = UserChoiceStore::new(world, &project.state);
    if let Err(problem) = store.change(|it| it.disabled = Some(disabled.clone())) {
        console.eprint(&format!("{problem}; policyd is not disabled"));
        return EXIT_BROKEN;
    }
    let text = OffReason::Disabled(disabled).text(since);
    log(world, &project, SwitchKind::Disable, None, text.clone(), &actor);
    console.print(&format!("{text}\n"));
    EXIT_OK
}

/// Enables policyd in the project: exit 1 if it was not disabled by [`disable`].
pub(super) fn enable(world: &dyn World, console: &mut Console<'_>) -> u8 {
    let project = project::find(world, None);
    let store = UserChoiceStore::new(world, &project.state);
    match store.change(|it| it.disabled.take()) {
        Err(problem) => {
            console.eprint(&format!("{problem}; policyd is still disabled"));
            EXIT_BROKEN
        }
        Ok(None) => {
            console.eprint("policyd was not disabled in this project");
            EXIT_FOUND
        }
        Ok(Some(_)) => {
            log(world, &project, SwitchKind::Enable, None, "enabled".to_owned(), &Actor::of(world));
            console.print("enabled\n");
            EXIT_OK
        }
    }
}

/// A reason as one short line without secrets.
fn one_line(reason: &str) -> String {
    let line: String = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    message::cut(&mask(&line).0, EVIDENCE_CHARS_MAX)
}

/// Shape of a pause duration.
const FORM: &str = "use a number with a unit, such as `30m`, `2h` or `1h30m`";

/// Why the duration of a pause is invalid.
#[derive(Debug, thiserror::Error)]
enum PauseError {
    #[error("pause duration must be greater than zero\nhelp: {FORM}")]
    Zero,
    #[error(
        "`{0}` is longer than {max}; to disable policyd in this project until you enable it, run \
         `policyd disable`",
        max = duration_text(PAUSE_MAX)
    )]
    TooLong(String),
    #[error("`{0}` is not a duration\nhelp: {FORM}")]
    NotADuration(String),
}

fn length(text: &str) -> Result<Duration, PauseError> {
    match parse_duration(text) {
        Ok(length) if length.is_zero() => Err(PauseError::Zero),
        Ok(length) if length > PAUSE_MAX => Err(PauseError::TooLong(text.to_owned())),
        Ok(length) => Ok(length),
        Err(DurationError::TooLong) => Err(PauseError::TooLong(text.to_owned())),
        Err(DurationError::NoUnit | DurationError::Malformed) => {
            Err(PauseError::NotADuration(text.to_owned()))
        }
    }
}

/// The session whose id begins so; one that was never judged is named in full.
pub(super) fn named_session(
    world: &dyn World,
    console: &mut Console<'_>,
    project: &Project,
    named: Option<&str>,
) -> Result<Option<SessionId>, u8> {
    let Some(named) = named else { return Ok(None) };
    let Some(policy) = pack::require_valid(world, console, None) else { return Err(EXIT_BROKEN) };
    let (store, _) = project::sessions(world, project, &policy.settings);
    match store.named(named) {
        SessionLookup::One(id) => Ok(Some(id)),
        SessionLookup::Unknown(Some(id)) => {
            console.eprint(&format!("no session {id} is known yet; it is taken as a whole id"));
            Ok(Some(id))
        }
        SessionLookup::Unknown(None) => {
            console.eprint(&format!("invalid session id `{named}`"));
            Err(EXIT_USAGE)
        }
        SessionLookup::Several(ids) => {
            console.eprint(&format!("ambiguous session id: {}", ids.join(", ")));
            Err(EXIT_USAGE)
        }
    }
}

/// Logs that the user turned policyd off or on, and who did it.
pub(super) fn log(
    world: &dyn World,
    project: &Project,
    kind: SwitchKind,
    session: Option<&SessionId>,
    text: String,
    actor: &Actor,
) {
    let entry = switch_entry(world.now(), kind, session, text, actor.text());
    // The switch itself stands; every stop tells it.
    let _unwritten = log_decision(world, &project.state, entry);
}
