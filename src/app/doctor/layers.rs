//! The settings of the clients, layer by layer: which hooks will run, and what may keep them from it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::check::{CheckHealth, DoctorCheck};
use crate::install::places::{PLACES, SettingsPlace, SettingsScope};
use crate::install::settings::{self, SettingsLine};
use crate::workspace::project::Project;
use policyd_base::limits::SETTINGS_FILE_BYTES_MAX;
use policyd_base::text::counted;
use policyd_facts::event::EventKind;
use policyd_harness::claude_code;
use policyd_world::{World, WorldError};

const ABOUT: &str = "hooks";

/// Folders of plugins that are looked at, at each level.
const PLUGINS_MAX: usize = 200;

/// Checks every settings layer of every client. Returns the checks and the clients that call policyd.
pub(super) fn inspect_layers(
    world: &dyn World,
    project: &Project,
) -> (Vec<DoctorCheck>, Vec<&'static SettingsPlace>) {
    let mut checks = Vec::new();
    let mut callers = Vec::new();
    for place in &PLACES {
        let mut installed = 0_usize;
        for scope in [
            SettingsScope::System,
            SettingsScope::User,
            SettingsScope::Project,
            SettingsScope::Local,
        ] {
            let Some(path) = place.file(world, project, scope) else { continue };
            let bytes = match world.read(&path, SETTINGS_FILE_BYTES_MAX) {
                Ok(bytes) => bytes,
                Err(WorldError::NotFound) => continue,
                Err(error) => {
                    let text = format!("{}: {error}", path.display());
                    checks.push(DoctorCheck::new(ABOUT, CheckHealth::Bad, text));
                    continue;
                }
            };
            let text = String::from_utf8_lossy(&bytes).into_owned();
            checks.extend(layer(world, place, &path, &text, &mut installed));
            if place.harness.name == "claude-code" {
                let is_of_project = matches!(scope, SettingsScope::Project | SettingsScope::Local);
                checks.extend(claude_switches(&path, &text, is_of_project));
            }
        }
        if place.harness.name == "claude-code" {
            checks.extend(plugins(world, place, &mut installed));
        }
        if installed > 0 {
            callers.push(place);
        }
    }
    checks.extend(doubled(world, project, &callers));
    let inspected = SettingsPlace::of("claude-code").and_then(SettingsPlace::system_file);
    for path in claude_code::MANAGED_SETTINGS
        .map(PathBuf::from)
        .into_iter()
        .filter(|it| Some(it) != inspected.as_ref())
    {
        if let Ok(bytes) = world.read(&path, SETTINGS_FILE_BYTES_MAX) {
            checks.extend(claude_switches(&path, &String::from_utf8_lossy(&bytes), false));
        }
    }
    checks.extend(safe_mode(world));
    if callers.is_empty() {
        let text = "no client calls policyd yet: policyd install";
        checks.push(DoctorCheck::new(ABOUT, CheckHealth::Look, text));
    }
    (checks, callers)
}

/// Hooks that one client runs twice: it reads its own file and Claude Code's, and policyd is in both.
fn doubled(
    world: &dyn World,
    project: &Project,
    callers: &[&'static SettingsPlace],
) -> Vec<DoctorCheck> {
    let files = |place: &SettingsPlace| -> Vec<PathBuf> {
        let scopes = [
            SettingsScope::System,
            SettingsScope::User,
            SettingsScope::Project,
            SettingsScope::Local,
        ];
        let mut files: Vec<PathBuf> =
            scopes.into_iter().filter_map(|it| place.file(world, project, it)).collect();
        files.retain(|it| calls_policyd(world, place, it));
        files
    };
    let Some(claude) = SettingsPlace::of("claude-code") else { return Vec::new() };
    let theirs = files(claude);
    let readers = callers.iter().filter(|it| it.runs_claude_hooks);
    let twice = readers.filter(|_| !theirs.is_empty()).map(|place| {
        let all = files(place).into_iter().chain(theirs.iter().cloned());
        let all: Vec<String> = all.map(|it| it.display().to_string()).collect();
        let text = format!(
            "{}: doubled hooks: it reads {}, and policyd is in each of them, so each event is evaluated {} \
             times. Keep one: policyd uninstall --harness NAME --scope SCOPE",
            place.harness.title,
            all.join(" and "),
            all.len()
        );
        DoctorCheck::new(ABOUT, CheckHealth::Look, text)
    });
    twice.collect()
}

/// Whether a hook line of a file calls policyd.
fn calls_policyd(world: &dyn World, place: &SettingsPlace, path: &Path) -> bool {
    let Ok(bytes) = world.read(path, SETTINGS_FILE_BYTES_MAX) else { return false };
    let text = String::from_utf8_lossy(&bytes);
    match place.form {
        Some(form) => settings::lines(&text, form).is_ok_and(|all| all.iter().any(|it| it.ours)),
        None => text.contains("policyd"),
    }
}

/// Plugins of Claude Code that call policyd; whether one is switched on is not looked at.
fn plugins(
    world: &dyn World,
    place: &'static SettingsPlace,
    installed: &mut usize,
) -> Vec<DoctorCheck> {
    let Some(cache) = place.user_folder(world).map(|it| it.join("plugins/cache")) else {
        return Vec::new();
    };
    // Below it: marketplace, plugin, version.
    let inner = |folders: Vec<PathBuf>| -> Vec<PathBuf> {
        let names = |it: &PathBuf| world.list(it).unwrap_or_default();
        let all = folders.iter().flat_map(|it| names(it).into_iter().map(|name| it.join(name)));
        all.take(PLUGINS_MAX).collect()
    };
    let versions = inner(inner(inner(vec![cache])));
    let files = versions.iter().map(|it| it.join("hooks/hooks.json"));
    let mut checks = Vec::new();
    for path in files {
        let Ok(bytes) = world.read(&path, SETTINGS_FILE_BYTES_MAX) else { continue };
        let Some(Ok(lines)) =
            place.form.map(|form| settings::lines(&String::from_utf8_lossy(&bytes), form))
        else {
            continue;
        };
        let ours: Vec<&SettingsLine> = lines.iter().filter(|it| it.ours).collect();
        if ours.is_empty() {
            continue;
        }
        let (name, events) = (path.display(), ours.iter().map(|it| it.event.as_str()));
        let events = events.collect::<Vec<_>>().join(", ");
        checks.push(match *installed {
            0 => DoctorCheck::good(ABOUT, format!("Claude Code: plugin {name}: policyd at {events}")),
            _ => {
                let text = format!(
                    "Claude Code: plugin {name} also calls policyd, so policyd runs twice: disable the \
                     plugin, or run `policyd uninstall`"
                );
                DoctorCheck::new(ABOUT, CheckHealth::Look, text)
            }
        });
        *installed = installed.saturating_add(ours.len());
    }
    checks
}

fn layer(
    world: &dyn World,
    place: &'static SettingsPlace,
    path: &Path,
    text: &str,
    installed: &mut usize,
) -> Vec<DoctorCheck> {
    let (title, name) = (place.harness.title, path.display());
    let Some(form) = place.form else {
        *installed = installed.saturating_add(1);
        return vec![DoctorCheck::good(ABOUT, format!("{title}: {name} is installed"))];
    };
    let lines = match settings::lines(text, form) {
        Ok(lines) => lines,
        Err(why) => {
            let text = format!("{name}: {why}; {title} runs no hook of this file");
            return vec![DoctorCheck::new(ABOUT, CheckHealth::Bad, text)];
        }
    };
    let mut checks = Vec::new();
    let ours: Vec<&SettingsLine> = lines.iter().filter(|it| it.ours).collect();
    *installed = installed.saturating_add(ours.len());
    let events: Vec<&str> = ours.iter().map(|it| it.event.as_str()).collect();
    let others = counted(lines.len().saturating_sub(ours.len()), "hook");
    if !lines.is_empty() {
        let text = format!(
            "{title}: {name}: policyd at {}; {others} of other programs",
            if events.is_empty() { "no event".to_owned() } else { events.join(", ") }
        );
        let mut check = DoctorCheck::good(ABOUT, text);
        check.more = ours.iter().map(|it| shown(it)).collect();
        checks.push(check);
    }
    checks.extend(ours.iter().filter_map(|it| wrong(world, place, path, it)));
    // Hooks of the machine need no approval.
    let is_of_machine = place.system_file().is_some_and(|it| it == path);
    if place.harness.approves_hooks && !ours.is_empty() && !is_of_machine {
        checks.push(codex_trust(world, place));
    }
    checks
}

/// A hook line, and what its client does if the hook fails.
fn shown(line: &SettingsLine) -> String {
    let failing = if line.closed { "closed" } else { "open" };
    format!("{}: {} (on failure: {failing})", line.event, line.command)
}

/// What is wrong with a hook line of policyd.
fn wrong(
    world: &dyn World,
    place: &'static SettingsPlace,
    path: &Path,
    line: &SettingsLine,
) -> Option<DoctorCheck> {
    let name = path.display();
    let bad =
        |text: String| Some(DoctorCheck::new(ABOUT, CheckHealth::Bad, format!("{name}: {text}")));
    let Some(moment) = place.harness.moment(&line.event) else {
        let title = place.harness.title;
        return bad(format!(
            "{title} does not have the event `{}`, so this line never runs",
            line.event
        ));
    };
    if moment.kind == Some(EventKind::WorktreeCreate) {
        return bad("a hook at WorktreeCreate breaks --worktree: policyd install".to_owned());
    }
    let (program, rest) = line.command.split_once(" eval").unwrap_or((&line.command, ""));
    let program = program.trim_matches(['"', '\'', ' ']);
    let named = rest.split_whitespace().skip_while(|it| *it != "--hook").nth(1).unwrap_or_default();
    let meant = place.harness.moment(named).and_then(|it| it.kind);
    if meant != moment.kind {
        return bad(format!("the line at {} says `--hook {named}`", line.event));
    }
    if Path::new(program).is_absolute() && world.stat(Path::new(program)).is_err() {
        return bad(format!("{program} does not exist, so nothing is checked: policyd install"));
    }
    None
}

/// What keeps Claude Code from running hooks. Variables of policyd in a file of the project are ignored.
fn claude_switches(path: &Path, text: &str, is_of_project: bool) -> Vec<DoctorCheck> {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let name = path.display();
    let is_on = |key: &str| value.get(key) == Some(&Value::Bool(true));
    let mut checks = Vec::new();
    if is_on("disableAllHooks") {
        let text = format!("{name}: `disableAllHooks` disables all hooks");
        checks.push(DoctorCheck::new(ABOUT, CheckHealth::Bad, text));
    }
    if is_on("allowManagedHooksOnly") {
        let text =
            format!("{name}: `allowManagedHooksOnly` permits only hooks of the organization");
        checks.push(DoctorCheck::new(ABOUT, CheckHealth::Look, text));
    }
    let env = value.get("env").and_then(Value::as_object);
    let is_ignored = |variable: &str| is_of_project && variable != SAFE_MODE;
    for (variable, effect) in OFF_BY_VARIABLE {
        let set = env.and_then(|it| it.get(variable)).is_some_and(is_set);
        if set && is_ignored(variable) {
            checks.push(ignored_variable(path, variable));
        } else if set {
            let text = format!("{name}: `env.{variable}` {effect}");
            checks.push(DoctorCheck::new(ABOUT, CheckHealth::Bad, text));
        }
    }
    for (variable, effect) in ELSEWHERE_BY_VARIABLE {
        let value = env.and_then(|it| it.get(variable)).and_then(Value::as_str).unwrap_or_default();
        if !value.is_empty() && is_ignored(variable) {
            checks.push(ignored_variable(path, variable));
        } else if !value.is_empty() {
            let text = format!("{name}: `env.{variable}` {effect}: `{value}`");
            checks.push(DoctorCheck::new(ABOUT, CheckHealth::Look, text));
        }
    }
    checks
}

/// A variable that a file of the project sets.
fn ignored_variable(path: &Path, variable: &str) -> DoctorCheck {
    let text = format!(
        "{}: `env.{variable}` is ignored, because a repository can contain this file: set it in your shell",
        path.display()
    );
    DoctorCheck::new(ABOUT, CheckHealth::Look, text)
}

/// Variables that keep policyd from being asked, or from answering.
const OFF_BY_VARIABLE: [(&str, &str); 2] = [
    (SAFE_MODE, "starts Claude Code in safe mode, in which it runs no hook"),
    ("POLICYD_DISABLED", "disables policyd"),
];

/// Variables that give hooks another pack or state directory than this command sees.
const ELSEWHERE_BY_VARIABLE: [(&str, &str); 2] = [
    ("POLICYD_POLICIES", "makes hooks use the pack in another directory"),
    ("POLICYD_STATE_DIR", "makes hooks keep their state in another directory"),
];

/// The variable for the safe mode of Claude Code, which is `--safe-mode` on its command line, too.
const SAFE_MODE: &str = "CLAUDE_CODE_SAFE_MODE";

/// Whether the value of a variable in a settings file switches something on.
fn is_set(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            !matches!(text.trim().to_ascii_lowercase().as_str(), "" | "0" | "false" | "no" | "off")
        }
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// What the environment says of Claude Code.
fn safe_mode(world: &dyn World) -> Option<DoctorCheck> {
    let value = Value::from(world.env(SAFE_MODE)?);
    let text = format!("{SAFE_MODE} is set: Claude Code runs no hook in safe mode");
    is_set(&value).then(|| DoctorCheck::new(ABOUT, CheckHealth::Bad, text))
}

/// Codex skips hooks silently until its user approved them; its settings contain the approval.
fn codex_trust(world: &dyn World, place: &'static SettingsPlace) -> DoctorCheck {
    let config = place.user_folder(world).map(|it| it.join("config.toml"));
    let text = config.and_then(|it| world.read(&it, SETTINGS_FILE_BYTES_MAX).ok());
    let text = text.map(|it| String::from_utf8_lossy(&it).into_owned()).unwrap_or_default();
    if text.contains("trusted_hash") {
        return DoctorCheck::good(
            ABOUT,
            "Codex CLI: some hooks are approved; after a change, approve them again with `/hooks`",
        );
    }
    let text = "Codex CLI skips hooks silently until you approve them: start it and enter `/hooks`";
    DoctorCheck::new(ABOUT, CheckHealth::Look, text)
}
