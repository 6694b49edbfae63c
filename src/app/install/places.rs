//! Where each client keeps its hooks, and how a hook line looks there: one row each.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::workspace::project::Project;
use policyd_base::limits::HOOK_TIMEOUT_SECONDS as TIMEOUT_SECONDS;
use policyd_facts::event::EventKind;
use policyd_harness::{
    ClientEvent, Harness, UserFolder, claude_code, codex, copilot, cursor, droid, gemini, opencode,
};
use policyd_world::World;

/// Codex CLI reports an error at each start if a hook at the end of a session has a longer timeout.
const CODEX_SESSION_END_SECONDS: u32 = 3;

/// How a client nests its hook lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsShape {
    /// `hooks.EVENT[].hooks[]`.
    Grouped,
    /// `hooks.EVENT[]`, beside a `version`.
    Flat,
}

/// How a settings file is read.
#[derive(Debug, Clone, Copy)]
pub struct SettingsFormat {
    /// How hook lines are nested.
    pub shape: SettingsShape,
    /// Whether its client takes comments and commas at the end.
    pub comments: bool,
}

/// Which settings of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsScope {
    /// Of the user, for all projects.
    User,
    /// Of the project, shared with the team.
    Project,
    /// Of the user, for this project.
    Local,
    /// Of the machine, for all users, who cannot change them.
    System,
}

/// Where a client keeps its hooks.
pub struct SettingsPlace {
    /// The client.
    pub harness: &'static Harness,
    /// Name of the client's executable.
    pub program: &'static str,
    /// The first version that reads such a hook line, and what it does then; nothing where that is
    /// not known.
    pub since: Option<(&'static str, &'static str)>,
    /// Its folder of the user.
    user: UserFolder,
    /// The file in that folder.
    user_file: &'static str,
    /// The file in a project.
    project_file: &'static str,
    /// The file in a project that is kept out of the repository.
    local_file: Option<&'static str>,
    /// The file of the machine: on Linux, and on macOS. `None` if the client documents none with hooks.
    system_file: Option<(&'static str, &'static str)>,
    /// A hooks file in the same folder that is used instead where it exists: the client reads hooks there.
    hooks_file: Option<&'static str>,
    /// The key and the value in a hook line by which a hook that fails blocks; none where the client has no
    /// such setting.
    pub failing: Option<FailureSetting>,
    /// Whether it also runs the hooks of Claude Code's settings.
    pub runs_claude_hooks: bool,
    /// How the file is read; none for one that is policyd's alone.
    pub form: Option<SettingsFormat>,
    /// A hook line of an event that calls a program.
    line: fn(&ClientEvent, &str) -> Value,
    /// What its user has to do yet.
    pub then: &'static str,
}

/// A setting of a hook line by which a hook that fails blocks what it guards.
pub struct FailureSetting {
    /// Its key in a hook line.
    pub key: &'static str,
    /// Its value; a text, or `true`.
    value: Option<&'static str>,
}

const CLAUDE_FAILING: FailureSetting = FailureSetting { key: "onFailure", value: Some("block") };
const CURSOR_FAILING: FailureSetting = FailureSetting { key: "failClosed", value: None };

impl FailureSetting {
    /// Its value in a hook line.
    fn value(&self) -> Value {
        self.value.map_or(Value::Bool(true), Value::from)
    }

    /// Whether a hook line has it.
    pub fn is_in(handler: &Value) -> bool {
        [CLAUDE_FAILING, CURSOR_FAILING].iter().any(|it| handler.get(it.key) == Some(&it.value()))
    }

    /// Whether it is meant for an event: one at which guards decide. A stop is never blocked because
    /// a hook fails, since the agent could not end.
    pub fn concerns(moment: &ClientEvent) -> bool {
        moment.kind.is_some_and(EventKind::is_before_call)
    }
}

const GROUPED: Option<SettingsFormat> =
    Some(SettingsFormat { shape: SettingsShape::Grouped, comments: false });
const FLAT: Option<SettingsFormat> =
    Some(SettingsFormat { shape: SettingsShape::Flat, comments: false });
const WITH_COMMENTS: Option<SettingsFormat> =
    Some(SettingsFormat { shape: SettingsShape::Grouped, comments: true });

/// Every client that hooks can be installed in.
pub const PLACES: [SettingsPlace; 7] = [
    SettingsPlace {
        harness: &claude_code::HARNESS,
        program: "claude",
        since: Some(("2.1.139", "passes `args` to a hook")),
        user: claude_code::USER_FOLDER,
        user_file: "settings.json",
        project_file: ".claude/settings.json",
        local_file: Some(".claude/settings.local.json"),
        system_file: Some((claude_code::MANAGED_SETTINGS[0], claude_code::MANAGED_SETTINGS[1])),
        hooks_file: None,
        failing: Some(CLAUDE_FAILING),
        runs_claude_hooks: false,
        form: GROUPED,
        // Other clients read this file, too, so the line names none.
        line: |moment, program| {
            json!({"type": "command", "command": program,
                "args": ["eval", "--hook", moment.hook_name()],
                "timeout": TIMEOUT_SECONDS})
        },
        then: "Claude Code reads it at once; it holds back hooks of a folder that you did not trust",
    },
    SettingsPlace {
        harness: &codex::HARNESS,
        program: "codex",
        since: None,
        user: codex::USER_FOLDER,
        user_file: "hooks.json",
        project_file: ".codex/hooks.json",
        local_file: None,
        system_file: Some(("/etc/codex/hooks.json", "/etc/codex/hooks.json")),
        hooks_file: None,
        failing: None,
        runs_claude_hooks: false,
        form: GROUPED,
        line: |moment, program| {
            let timeout = match moment.kind {
                Some(EventKind::SessionEnd) => CODEX_SESSION_END_SECONDS,
                _ => TIMEOUT_SECONDS,
            };
            json!({"type": "command", "command": shell_line("codex", moment, program),
                "timeout": timeout})
        },
        then: "Codex CLI skips hooks silently until you approve them: start it and say /hooks, now and \
               after every change of them",
    },
    SettingsPlace {
        harness: &gemini::HARNESS,
        program: "gemini",
        since: None,
        user: UserFolder { variable: "", below_home: ".gemini" },
        user_file: "settings.json",
        project_file: ".gemini/settings.json",
        local_file: None,
        system_file: Some((
            "/etc/gemini-cli/settings.json",
            "/Library/Application Support/GeminiCli/settings.json",
        )),
        hooks_file: None,
        failing: None,
        runs_claude_hooks: false,
        form: WITH_COMMENTS,
        // Its timeouts are milliseconds.
        line: |moment, program| {
            json!({"type": "command", "name": "policyd",
                "command": shell_line("gemini", moment, program),
                "timeout": TIMEOUT_SECONDS.saturating_mul(1000)})
        },
        then: "Gemini CLI loads hooks of a project only where the workspace is trusted",
    },
    SettingsPlace {
        harness: &cursor::HARNESS,
        program: "cursor-agent",
        since: None,
        user: UserFolder { variable: "", below_home: ".cursor" },
        user_file: "hooks.json",
        project_file: ".cursor/hooks.json",
        local_file: None,
        system_file: Some((
            "/etc/cursor/hooks.json",
            "/Library/Application Support/Cursor/hooks.json",
        )),
        hooks_file: None,
        failing: Some(CURSOR_FAILING),
        runs_claude_hooks: true,
        form: FLAT,
        line: |moment, program| json!({"command": shell_line("cursor", moment, program), "timeout": TIMEOUT_SECONDS}),
        then: "Cursor reads it at once in a trusted workspace",
    },
    SettingsPlace {
        harness: &copilot::HARNESS,
        program: "copilot",
        since: None,
        user: UserFolder { variable: "", below_home: ".copilot" },
        user_file: "hooks/policyd.json",
        project_file: ".github/hooks/policyd.json",
        local_file: None,
        system_file: Some((
            "/etc/github-copilot/policy.d/policyd.json",
            "/etc/github-copilot/policy.d/policyd.json",
        )),
        hooks_file: None,
        failing: None,
        runs_claude_hooks: true,
        form: FLAT,
        line: |moment, program| {
            json!({"type": "command", "bash": shell_line("copilot", moment, program),
                "powershell": shell_line("copilot", moment, program),
                "timeoutSec": TIMEOUT_SECONDS})
        },
        then: "GitHub Copilot CLI reads it when it starts",
    },
    SettingsPlace {
        harness: &droid::HARNESS,
        program: "droid",
        since: None,
        user: UserFolder { variable: "", below_home: ".factory" },
        user_file: "settings.json",
        project_file: ".factory/settings.json",
        local_file: None,
        system_file: None,
        hooks_file: Some("hooks.json"),
        failing: None,
        runs_claude_hooks: false,
        form: WITH_COMMENTS,
        line: |moment, program| {
            json!({"type": "command", "command": shell_line("droid", moment, program),
                "timeout": TIMEOUT_SECONDS})
        },
        then: "Factory droid reads it when it starts",
    },
    SettingsPlace {
        harness: &opencode::HARNESS,
        program: "opencode",
        since: None,
        user: UserFolder { variable: "", below_home: ".config/opencode" },
        user_file: "plugins/policyd.js",
        project_file: ".opencode/plugins/policyd.js",
        local_file: None,
        system_file: None,
        hooks_file: None,
        failing: None,
        runs_claude_hooks: false,
        form: None,
        line: |_, _| Value::Null,
        then: "OpenCode loads it when it starts",
    },
];

impl SettingsPlace {
    /// The row of a client.
    pub fn of(name: &str) -> Option<&'static Self> {
        PLACES.iter().find(|it| it.harness.name == name)
    }

    /// The directory of the client below the user's home directory; `None` without a home directory.
    pub fn user_folder(&self, world: &dyn World) -> Option<PathBuf> {
        let UserFolder { variable, below_home } = self.user;
        let named = Some(variable).filter(|it| !it.is_empty()).and_then(|it| world.env(it));
        let moved = || {
            let rest = below_home.strip_prefix(".config/")?;
            Some(Path::new(&world.env("XDG_CONFIG_HOME")?).join(rest))
        };
        let home = || Some(Path::new(&world.env("HOME")?).join(below_home));
        named.map(PathBuf::from).or_else(moved).or_else(home)
    }

    /// The settings file of a scope; `None` if the client has no such scope.
    pub fn file(
        &self,
        world: &dyn World,
        project: &Project,
        scope: SettingsScope,
    ) -> Option<PathBuf> {
        let file = match scope {
            SettingsScope::User => self.user_folder(world)?.join(self.user_file),
            SettingsScope::Project => project.root.join(self.project_file),
            SettingsScope::Local => project.root.join(self.local_file?),
            SettingsScope::System => return self.system_file(),
        };
        let own = self.hooks_file.map(|it| file.with_file_name(it));
        Some(own.filter(|it| world.stat(it).is_ok()).unwrap_or(file))
    }

    /// The settings file of the machine, which only its administrator can change.
    pub fn system_file(&self) -> Option<PathBuf> {
        let (linux, macos) = self.system_file?;
        if cfg!(windows) {
            return None;
        }
        Some(PathBuf::from(if cfg!(target_os = "macos") { macos } else { linux }))
    }

    /// The hook lines of some events, each with the client's name of its event.
    pub fn lines(
        &self,
        moments: &[&'static ClientEvent],
        program: &str,
        closed: bool,
    ) -> Vec<(&'static str, Value)> {
        let line = |moment: &&'static ClientEvent| {
            let mut line = (self.line)(moment, program);
            if let (Some(failing), Value::Object(fields)) = (&self.failing, &mut line)
                && closed
                && FailureSetting::concerns(moment)
            {
                fields.insert(failing.key.to_owned(), failing.value());
            }
            (moment.native, line)
        };
        moments.iter().map(line).collect()
    }

    /// What the client does if a hook fails that was installed to block in that case.
    pub fn closed_note(&self) -> String {
        match &self.failing {
            Some(failing) => format!(
                "a hook that fails blocks tool calls (`{}`); stops stay open, so that an agent can end",
                failing.key
            ),
            None => format!(
                "{} has no setting for a hook that fails: its hooks stay open",
                self.harness.title
            ),
        }
    }
}

/// A hook line for clients that pass it to a shell.
fn shell_line(harness: &str, moment: &ClientEvent, program: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:\\".contains(c);
    let program =
        if program.chars().all(plain) { program.to_owned() } else { format!("\"{program}\"") };
    format!("{program} eval --hook {} --harness {harness}", moment.native)
}
