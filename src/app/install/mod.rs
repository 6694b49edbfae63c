//! Hook lines in the settings files of clients: planned as changes, then written. A malformed file is not
//! changed; a file that is changed is copied first.

pub mod leftovers;
pub mod places;
pub mod settings;

use std::fmt::Display;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::AppError;
use crate::programs;
use crate::workspace::project::{self, Project};
use places::{PLACES, SettingsPlace, SettingsScope};
use policyd_base::limits::SETTINGS_FILE_BYTES_MAX;
use policyd_facts::event::EventKind;
use policyd_harness::ClientEvent;
use policyd_store::administrator;
use policyd_store::file::{SaveOutcome, rewrite};
use policyd_world::{World, WorldError};
use policyd_yaml::suggest;

/// Events that are installed where none are named: those that policyd may have an opinion on.
const USUAL: [EventKind; 13] = [
    EventKind::SessionStart,
    EventKind::UserPromptSubmit,
    EventKind::PreToolUse,
    EventKind::PermissionRequest,
    EventKind::PostToolUse,
    EventKind::PostToolUseFailure,
    EventKind::PreCompact,
    EventKind::PostCompact,
    EventKind::PostModelSwitch,
    EventKind::SubagentStop,
    EventKind::Stop,
    EventKind::StopFailure,
    EventKind::SessionEnd,
];
/// An event after every tool call: useless if the client shows no answer there.
const TO_TELL: EventKind = EventKind::PostToolUse;
/// A hook there that prints nothing breaks what the client does.
const NEVER: [EventKind; 1] = [EventKind::WorktreeCreate];
/// Claude Code refuses a plugin with an event that its check of plugins does not know.
const NOT_IN_PLUGINS: [EventKind; 1] = [EventKind::PostModelSwitch];
/// What a file is kept as before it is changed for the first time.
const KEPT_AS: &str = "before-policyd";
/// The settings of one user in one project.
const OF_ONE: &str = ".claude/settings.local.json";
/// What is to be done about them.
const KEPT_OUT: &str = "Claude Code reads it at once; it names a path of this machine, so leave \
    `.claude/settings.local.json` out of the repository (.gitignore)";
/// What is known about settings of the machine.
const OF_ALL: &str = "the client applies it to every user, and no user can change it";
/// The client that loads a directory as a plugin.
pub const PLUGIN_CLIENT: &str = "claude-code";
/// The plugin of a client that knows no hook lines.
const OPENCODE: &str = include_str!("opencode.js");

/// What is done to one file.
pub struct SettingsChange {
    pub place: &'static SettingsPlace,
    /// What is to be known once it is there.
    pub then: &'static str,
    /// Whether a hook of tool calls that fails is to block.
    pub closed: bool,
    /// Whether every user must be able to read the file.
    pub is_public: bool,
    pub path: PathBuf,
    /// Current content; `None` if the file does not exist.
    pub before: Option<String>,
    /// What is to be there; none where the file goes.
    pub after: Option<String>,
}

/// Which hooks are installed.
pub struct InstallRequest<'r> {
    /// Clients by name; empty: those found on this machine.
    pub clients: &'r [String],
    pub scope: SettingsScope,
    /// Events by name, or `all`; empty: the usual ones.
    pub events: &'r [String],
    /// Whether a hook of tool calls that fails is to block.
    pub closed: bool,
    /// Path of this program.
    pub program: &'r str,
}

/// Plans the insertion of hook lines.
///
/// # Errors
/// A client or an event is unknown, or no client is found.
pub fn plan_install(
    world: &dyn World,
    request: &InstallRequest<'_>,
) -> Result<SettingsPlan, AppError> {
    require_lasting_program(Path::new(request.program))?;
    if request.scope == SettingsScope::System {
        require_root(world)?;
        require_safe_programs(world)?;
    }
    let targets = targets(world, request.clients, request.scope)?;
    let change = |(place, path): (&'static SettingsPlace, PathBuf)| {
        let moments = moments(place, request.events)?;
        Ok(insert_hooks(world, place, path, &moments, request))
    };
    targets.into_iter().map(change).collect()
}

/// Directories of package runners, from which a program goes without notice: a part of their path, and the command
/// that installs policyd to stay.
const RUNNERS: [(&str, &str); 6] = [
    ("_npx", "npm install --global policyd"),
    ("dlx", "pnpm add --global policyd"),
    ("bunx-", "bun add --global policyd"),
    ("archive-v0", "uv tool install policyd"),
    ("environments-v2", "uv tool install policyd"),
    ("builds-v0", "uv tool install policyd"),
];

/// A hook must call a program that is still there when the client runs it.
fn require_lasting_program(program: &Path) -> Result<(), AppError> {
    let parts: Vec<String> = program.iter().map(|it| it.to_string_lossy().into_owned()).collect();
    let is_part = |part: &str| {
        parts.iter().any(|it| it == part || (part.ends_with('-') && it.starts_with(part)))
    };
    let Some((_, command)) = RUNNERS.iter().find(|(part, _)| is_part(part)) else { return Ok(()) };
    Err(AppError::usage(format!(
        "`{}` is in a cache of a package runner, so hooks would stop working when the cache is cleaned\nhelp: run \
         `{command}`, then `policyd install`",
        program.display()
    )))
}

/// Settings of the machine belong to root.
fn require_root(world: &dyn World) -> Result<(), AppError> {
    match world.user() {
        Some(0) => Ok(()),
        Some(_) | None => Err(AppError::usage(
            "the settings of the machine can only be changed by root\nhelp: run the command with `sudo`",
        )),
    }
}

/// A hook of the machine must call programs that no user can replace.
fn require_safe_programs(world: &dyn World) -> Result<(), AppError> {
    let programs = programs::installed(world);
    match programs.iter().find_map(|it| administrator::weakness_on_way(world, it)) {
        None => Ok(()),
        Some(weakness) => Err(AppError::usage(format!(
            "the program that the hooks of the machine call must not be replaceable by a user: {weakness}\nhelp: \
             copy policyd and policyd-tools to a directory of root, such as `/usr/local/bin`, and run policyd there"
        ))),
    }
}

/// Plans the removal of hook lines.
///
/// # Errors
/// A client is unknown, or no client is found.
pub fn plan_uninstall(
    world: &dyn World,
    clients: &[String],
    scope: SettingsScope,
) -> Result<SettingsPlan, AppError> {
    if scope == SettingsScope::System {
        require_root(world)?;
    }
    let change =
        |(place, path): (&'static SettingsPlace, PathBuf)| remove_hooks(world, place, path);
    Ok(targets(world, clients, scope)?.into_iter().map(change).collect())
}

/// Plans a directory that Claude Code loads as a plugin.
///
/// # Errors
/// An event is unknown.
pub fn plan_plugin(
    world: &dyn World,
    request: &InstallRequest<'_>,
    folder: &Path,
) -> Result<SettingsPlan, AppError> {
    let place = SettingsPlace::of(PLUGIN_CLIENT)
        .ok_or_else(|| AppError::failed_as("no client loads plugins"))?;
    let manifest = serde_json::json!({"name": "policyd", "version": env!("CARGO_PKG_VERSION"),
        "description": "Decides what the agent may do, and whether it may stop"});
    let mut moments = moments(place, request.events)?;
    moments.retain(|it| it.kind.is_none_or(|kind| !NOT_IN_PLUGINS.contains(&kind)));
    let form = place.form.ok_or_else(|| AppError::failed_as("the client has no settings file"))?;
    let lines = place.lines(&moments, request.program, request.closed);
    let hooks = settings::insert_hooks("{}\n", form, &lines).map_err(AppError::failed)?;
    let files =
        [(".claude-plugin/plugin.json", format!("{manifest:#}\n")), ("hooks/hooks.json", hooks)];
    let change = |(name, text): (&str, String)| {
        let path = folder.join(name);
        let before = read(world, &path)?;
        let (closed, is_public) = (false, false);
        Ok(SettingsChange { place, then: "", closed, is_public, before, path, after: Some(text) })
    };
    Ok(files.into_iter().map(change).collect())
}

/// The change of each settings file, or the reason why the file is not changed.
pub type SettingsPlan = Vec<Result<SettingsChange, AppError>>;

/// The files that are meant: of the clients that are named, else of those that are there.
fn targets(
    world: &dyn World,
    named: &[String],
    scope: SettingsScope,
) -> Result<Vec<(&'static SettingsPlace, PathBuf)>, AppError> {
    let project = project::find(world, None);
    let mut places = Vec::new();
    for name in named {
        places.push(SettingsPlace::of(name).ok_or_else(|| {
            let known: Vec<&str> = PLACES.iter().map(|it| it.harness.name).collect();
            let is_meant = |it: &&SettingsPlace| {
                it.program == name.as_str() || it.harness.name.starts_with(name.as_str())
            };
            let meant = PLACES.iter().find(is_meant).filter(|_| !name.is_empty());
            let help = match meant {
                Some(place) => format!("did you mean `{}`?", place.harness.name),
                None => suggest::did_you_mean(name, &known).unwrap_or_default(),
            };
            AppError::usage(format!("unknown client `{name}`\nhelp: {help}"))
        })?);
    }
    match scope {
        SettingsScope::System if named.is_empty() => {
            places.extend(PLACES.iter().filter(|it| it.system_file().is_some()));
        }
        SettingsScope::User | SettingsScope::Project | SettingsScope::Local if named.is_empty() => {
            places.extend(PLACES.iter().filter(|it| is_there(world, &project, it, scope)));
        }
        SettingsScope::System
        | SettingsScope::User
        | SettingsScope::Project
        | SettingsScope::Local => {}
    }
    if places.is_empty() {
        let known: Vec<&str> = PLACES.iter().map(|it| it.harness.name).collect();
        let known = known.join(", ");
        return Err(AppError::usage(format!(
            "no supported client found\nhelp: pass `--harness` with one of {known}"
        )));
    }
    places
        .into_iter()
        .map(|place| {
            let path = place.file(world, &project, scope).ok_or_else(|| {
                let title = place.harness.title;
                let why = match scope {
                    SettingsScope::User => "has its settings below HOME, which is not set",
                    SettingsScope::Project | SettingsScope::Local => {
                        "has no settings of that scope"
                    }
                    SettingsScope::System => {
                        "documents no settings of the machine that contain hooks"
                    }
                };
                AppError::usage(format!("{title} {why}"))
            })?;
            Ok((place, path))
        })
        .collect()
}

/// Whether a client is used by this user, or in this project.
fn is_there(
    world: &dyn World,
    project: &Project,
    place: &SettingsPlace,
    scope: SettingsScope,
) -> bool {
    let file = place.file(world, project, scope);
    let folder = match scope {
        SettingsScope::User => place.user_folder(world),
        SettingsScope::Project | SettingsScope::Local | SettingsScope::System => {
            file.as_ref().and_then(|it| it.parent()).map(Path::to_path_buf)
        }
    };
    file.is_some() && folder.is_some_and(|it| world.stat(&it).is_ok())
}

/// The events of a client that are meant: the usual ones, all, or those that are named.
fn moments(place: &SettingsPlace, named: &[String]) -> Result<Vec<&'static ClientEvent>, AppError> {
    let harness = place.harness;
    let all = || harness.moments.iter().filter(|it| it.kind.is_some());
    // Of several names for one event, only the first is installed.
    let first =
        |it: &&ClientEvent| harness.moments.iter().find(|own| own.kind == it.kind) == Some(*it);
    let is_never = |it: &ClientEvent| it.kind.is_some_and(|kind| NEVER.contains(&kind));
    let safe = |it: &&ClientEvent| !is_never(it);
    if named.iter().any(|it| it == "all") {
        return Ok(all().filter(first).filter(safe).collect());
    }
    if named.is_empty() {
        let usual = |it: &&ClientEvent| {
            it.kind.is_some_and(|kind| {
                USUAL.contains(&kind) && (kind != TO_TELL || !it.ways.is_empty())
            })
        };
        return Ok(all().filter(first).filter(usual).collect());
    }
    let find = |name: &String| {
        let moment = harness.moment(name).filter(|it| it.kind.is_some());
        let title = harness.title;
        let moment = moment.ok_or_else(|| {
            let known: Vec<&str> = all().map(|it| it.native).collect();
            let help = suggest::did_you_mean(name, &known).unwrap_or_default();
            AppError::usage(format!("{title} has no event `{name}`\nhelp: {help}"))
        })?;
        if is_never(moment) {
            let why = format!("a hook at {} breaks what {title} does there", moment.native);
            return Err(AppError::usage(why));
        }
        Ok(moment)
    };
    named.iter().map(find).collect()
}

/// Plans the hook lines of one file.
fn insert_hooks(
    world: &dyn World,
    place: &'static SettingsPlace,
    path: PathBuf,
    moments: &[&'static ClientEvent],
    request: &InstallRequest<'_>,
) -> Result<SettingsChange, AppError> {
    let before = read(world, &path)?;
    let after = match place.form {
        Some(form) => {
            let lines = place.lines(moments, request.program, request.closed);
            settings::insert_hooks(before.as_deref().unwrap_or_default(), form, &lines)
                .map_err(|error| malformed(&path, &error))?
        }
        None => OPENCODE
            .replace("@PROGRAM@", &request.program.replace('\\', "\\\\").replace('"', "\\\"")),
    };
    // The file names a path of this machine only.
    let is_public = request.scope == SettingsScope::System;
    let then = match request.scope {
        SettingsScope::System => OF_ALL,
        SettingsScope::User | SettingsScope::Project | SettingsScope::Local
            if path.ends_with(OF_ONE) =>
        {
            KEPT_OUT
        }
        SettingsScope::User | SettingsScope::Project | SettingsScope::Local => place.then,
    };
    let closed = request.closed;
    Ok(SettingsChange { place, then, closed, is_public, path, before, after: Some(after) })
}

/// Plans the removal of the hook lines of one file.
fn remove_hooks(
    world: &dyn World,
    place: &'static SettingsPlace,
    path: PathBuf,
) -> Result<SettingsChange, AppError> {
    let before = read(world, &path)?;
    let after = match (place.form, &before) {
        (Some(form), Some(before)) => {
            let rest =
                settings::remove_hooks(before, form).map_err(|error| malformed(&path, &error))?;
            let kept = read(world, &kept_as(&path))?;
            match kept {
                // What was there before says the same: then it is there again, byte for byte.
                Some(kept) if same(&kept, &rest) && same_notes(&kept, &rest) => Some(kept),
                Some(_) => Some(rest),
                None if *before != rest && is_empty(&rest) => None,
                None => Some(rest),
            }
        }
        (None, Some(before)) if before.contains("policyd install --harness") => None,
        (_, before) => before.clone(),
    };
    let is_public = place.system_file().is_some_and(|it| it == path);
    Ok(SettingsChange { place, then: "", closed: false, is_public, path, before, after })
}

/// Whether two texts hold the same values in the same order, whatever they hold nothing under.
fn same(one: &str, other: &str) -> bool {
    let value = |text: &str| {
        let root = jsonc_parser::cst::CstRootNode::parse(text, &Default::default()).ok()?;
        let mut value = root.to_serde_value()?;
        let fields = value.as_object_mut()?;
        if let Some(events) = fields.get_mut("hooks").and_then(Value::as_object_mut) {
            events.retain(|_, it| it.as_array().is_none_or(|it| !it.is_empty()));
            if events.is_empty() {
                fields.shift_remove("hooks");
            }
        }
        Some(value)
    };
    let (one, other) = (value(one), value(other));
    let empty = |it: &Option<Value>| it.as_ref().is_none_or(|it| *it == serde_json::json!({}));
    one == other || (empty(&one) && empty(&other))
}

/// Whether two texts with the same values differ in blanks and commas alone, or hold no comments at all.
fn same_notes(one: &str, other: &str) -> bool {
    let (one, other) = (settings::without_blanks(one), settings::without_blanks(other));
    one == other || (one.1 == 0 && other.1 == 0)
}

/// Whether nothing but what policyd wrote was there.
fn is_empty(text: &str) -> bool {
    matches!(serde_json::from_str::<Value>(text), Ok(Value::Object(it))
        if it.keys().all(|it| it == "version"))
}

fn read(world: &dyn World, path: &Path) -> Result<Option<String>, AppError> {
    match world.read(path, SETTINGS_FILE_BYTES_MAX) {
        Ok(bytes) => String::from_utf8(bytes)
            .map(Some)
            .map_err(|error| malformed(path, &format!("not UTF-8 text: {error}"))),
        Err(WorldError::NotFound) => Ok(None),
        Err(error) => Err(AppError::failed(error).about(path.display())),
    }
}

fn malformed(path: &Path, why: &dyn Display) -> AppError {
    let text = format!(
        "could not parse `{}`: {why}; file not changed\nhelp: fix the JSON, then run this \
         command again",
        path.display()
    );
    AppError::failed_as(text)
}

fn kept_as(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}.{KEPT_AS}"))
}

/// Why a settings file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: WorldError },
    /// The file cannot be written where it is, for example because it is a link.
    #[error(
        "{}: {source}; file not changed. policyd writes only regular files: replace the link by a \
         copy of its target, then run this command again",
        path.display()
    )]
    NotWritable { path: PathBuf, source: WorldError },
    /// The backup could not be saved.
    #[error("{}: {why}; {} is unchanged", backup.display(), path.display())]
    Backup { backup: PathBuf, path: PathBuf, why: String },
    /// The new content could not be saved; a backup of the old content exists.
    #[error(
        "{}: {why}; the file is unchanged; {} holds it as it was before policyd",
        path.display(), backup.display()
    )]
    Changed { path: PathBuf, backup: PathBuf, why: String },
    /// The new file could not be saved.
    #[error("{}: {why}; the file is unchanged", path.display())]
    New { path: PathBuf, why: String },
}

/// Saves a backup, then writes the file. Returns why a power loss could undo the change.
///
/// # Errors
/// [`WriteError`]; the file is unchanged.
pub fn write(world: &dyn World, change: &SettingsChange) -> Result<Vec<String>, WriteError> {
    let path = &change.path;
    let failed = |path: &Path, source| WriteError::Io { path: path.to_path_buf(), source };
    let kept = kept_as(path);
    let Some(after) = &change.after else {
        return world.remove(path).map(|()| Vec::new()).map_err(|error| failed(path, error));
    };
    if let Some(folder) = path.parent() {
        let missing: Vec<&Path> =
            folder.ancestors().take_while(|it| world.stat(it).is_err()).collect();
        world.create_folder(folder).map_err(|error| failed(folder, error))?;
        for it in missing.into_iter().filter(|_| change.is_public) {
            world.publish(it).map_err(|error| failed(it, error))?;
        }
    }
    if change.before.is_some() {
        // Whether it can be written is known before anything is kept beside it.
        world
            .append(path, b"")
            .map_err(|source| WriteError::NotWritable { path: path.clone(), source })?;
    }
    let mut unsafe_writes = Vec::new();
    let is_kept = world.stat(&kept).is_ok();
    if let (Some(before), false) = (&change.before, is_kept) {
        match rewrite(world, &kept, before.as_bytes()) {
            SaveOutcome::Durable { .. } => {}
            SaveOutcome::Degraded { why, .. } => unsafe_writes.push(why),
            SaveOutcome::NotSaved { why, .. } => {
                return Err(WriteError::Backup { backup: kept, path: path.clone(), why });
            }
        }
    }
    match rewrite(world, path, after.as_bytes()) {
        SaveOutcome::Durable { .. } => {}
        SaveOutcome::Degraded { why, .. } => unsafe_writes.push(why),
        SaveOutcome::NotSaved { why, .. } => {
            let path = path.clone();
            return Err(match change.before {
                Some(_) => WriteError::Changed { path, backup: kept, why },
                None => WriteError::New { path, why },
            });
        }
    }
    if change.is_public {
        world.publish(path).map_err(|error| failed(path, error))?;
    }
    // The file has its original content again, so the backup is removed.
    let same = |it: Vec<u8>| it == after.as_bytes();
    if is_kept && world.read(&kept, SETTINGS_FILE_BYTES_MAX).is_ok_and(same) {
        world.remove(&kept).map_err(|error| failed(&kept, error))?;
    }
    Ok(unsafe_writes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::fake::{FakeWorld, Survival};

    const BEFORE: &str = "{\"permissions\": {\"deny\": [\"Read(./.env)\"]}}\n";

    fn change(after: Option<&str>) -> SettingsChange {
        SettingsChange {
            place: SettingsPlace::of("claude-code").unwrap(),
            then: "",
            closed: false,
            is_public: false,
            path: "/work/.claude/settings.json".into(),
            before: Some(BEFORE.to_owned()),
            after: after.map(str::to_owned),
        }
    }

    fn machine() -> FakeWorld {
        let world = FakeWorld::new();
        world.put("/work/.claude/settings.json", BEFORE);
        world.clear_log();
        world
    }

    fn settings(world: &FakeWorld) -> String {
        String::from_utf8(world.get("/work/.claude/settings.json").unwrap()).unwrap()
    }

    #[test]
    fn a_program_in_a_cache_is_refused_with_the_command_for_a_lasting_one() {
        for (program, command) in [
            ("/home/me/.npm/_npx/1a2b/node_modules/policyd/bin/policyd", "npm install --global"),
            ("/home/me/.cache/pnpm/dlx/ab/node_modules/policyd/policyd", "pnpm add --global"),
            ("/tmp/bunx-1000-policyd@latest/node_modules/policyd/policyd", "bun add --global"),
            ("/home/me/.cache/uv/archive-v0/Xy/bin/policyd", "uv tool install"),
        ] {
            let why = require_lasting_program(Path::new(program)).unwrap_err().to_string();
            assert!(why.contains(command) && why.contains(program), "{why}");
        }
        for program in [
            "/usr/local/bin/policyd",
            "/home/me/.local/share/uv/tools/policyd/bin/policyd",
            "/usr/lib/node_modules/policyd/bin/policyd",
        ] {
            require_lasting_program(Path::new(program)).unwrap();
        }
    }

    #[test]
    fn a_plugin_has_no_event_that_its_client_refuses() {
        let world = machine();
        let events = ["all".to_owned()];
        for events in [&[][..], &events] {
            let (clients, scope) = (&[][..], SettingsScope::User);
            let program = "/usr/bin/policyd";
            let request = InstallRequest { clients, scope, events, closed: false, program };
            let planned = plan_plugin(&world, &request, Path::new("/plugin")).unwrap();
            let files: Vec<String> =
                planned.into_iter().map(|it| it.unwrap().after.unwrap()).collect();
            assert!(files.iter().any(|it| it.contains("\"PreToolUse\"")), "{files:?}");
            assert!(!files.iter().any(|it| it.contains("PostModelSwitch")), "{files:?}");
        }
    }

    #[test]
    fn settings_survive_every_refused_operation_as_a_whole() {
        let world = machine();
        write(&world, &change(Some("{}"))).unwrap();
        let (steps, mut refused) = (world.ops(), 0);
        assert!(steps > 10, "{:?}", world.log());
        for step in 0..steps {
            let world = machine();
            world.refuse_at(step, WorldError::Io("no space left".to_owned()));
            let written = write(&world, &change(Some("{}")));
            let after = settings(&world);
            match written {
                Ok(_) => assert_eq!(after, "{}", "step {step}"),
                Err(why) => {
                    assert_eq!(after, BEFORE, "step {step}: {why}");
                    refused += 1;
                }
            }
            let left = world.files().into_iter().filter(|it| it.to_string_lossy().contains("-new"));
            assert_eq!(left.count(), 0, "step {step}");
        }
        assert!(refused > 5, "{refused}");
    }

    #[test]
    fn settings_survive_a_loss_of_power_at_every_step() {
        let world = machine();
        write(&world, &change(Some("{}"))).unwrap();
        for step in 0..world.ops() {
            for survival in Survival::all(6) {
                let world = machine();
                world.crash_at(step);
                drop(write(&world, &change(Some("{}"))));
                let after = settings(&world.reboot(survival));
                assert!([BEFORE, "{}"].contains(&after.as_str()), "{step} {survival:?}: {after:?}");
            }
        }
    }

    #[test]
    fn a_failure_names_the_backup_and_says_that_the_file_is_unchanged() {
        let world = machine();
        let full = WorldError::Io("no space left".to_owned());
        world.refuse_always(policyd_world::fake::Op::Write, "settings.json.policyd-new", full);
        let why = write(&world, &change(Some("{}"))).unwrap_err().to_string();
        assert!(why.contains("no space left; the file is unchanged"), "{why}");
        assert!(why.contains("settings.json.before-policyd holds it"), "{why}");
        assert_eq!(
            world.get("/work/.claude/settings.json.before-policyd").unwrap(),
            BEFORE.as_bytes()
        );
    }
}
