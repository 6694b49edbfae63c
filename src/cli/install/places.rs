//! Where each client keeps its hooks, and how a hook line looks there: one row each.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::settings::{Form, Shape};
use crate::cli::arguments::Scope;
use crate::cli::project::Project;
use crate::harness::{
    Harness, Moment, claude_code, codex, copilot, cursor, droid, gemini, opencode,
};
use crate::world::World;

/// Time a hook may take; policyd itself answers much earlier.
const TIMEOUT_SECONDS: u32 = 20;

/// Where a client keeps its hooks.
pub(in crate::cli) struct Place {
    /// The client.
    pub(in crate::cli) harness: &'static Harness,
    /// Its program.
    pub(in crate::cli) program: &'static str,
    /// The first version that reads such a hook line, and what it does then; nothing where that is
    /// not known.
    pub(in crate::cli) since: Option<(&'static str, &'static str)>,
    /// Its folder of the user: a variable that names it, and its name below the home folder.
    user: (&'static str, &'static str),
    /// The file in that folder.
    user_file: &'static str,
    /// The file in a project.
    project_file: &'static str,
    /// The file in a project that is kept out of the repository.
    local_file: Option<&'static str>,
    /// How the file is read; none for one that is policyd's alone.
    pub(in crate::cli) form: Option<Form>,
    /// A hook line of an event that calls a program.
    line: fn(&Moment, &str) -> Value,
    /// What its user has to do yet.
    pub(in crate::cli) then: &'static str,
}

const GROUPED: Option<Form> = Some(Form { shape: Shape::Grouped, comments: false });
const FLAT: Option<Form> = Some(Form { shape: Shape::Flat, comments: false });
const WITH_COMMENTS: Option<Form> = Some(Form { shape: Shape::Grouped, comments: true });

/// Every client that hooks can be installed in.
pub(in crate::cli) const PLACES: [Place; 7] = [
    Place {
        harness: &claude_code::HARNESS,
        program: "claude",
        since: Some(("2.1.139", "passes `args` to a hook")),
        user: ("CLAUDE_CONFIG_DIR", ".claude"),
        user_file: "settings.json",
        project_file: ".claude/settings.json",
        local_file: Some(".claude/settings.local.json"),
        form: GROUPED,
        // Other clients read this file, too, so the line names none.
        line: |moment, program| {
            json!({"type": "command", "command": program,
                "args": ["eval", "--hook", moment.event.replace('_', "-")],
                "timeout": TIMEOUT_SECONDS})
        },
        then: "Claude Code reads it at once; it holds back hooks of a folder that you did not trust",
    },
    Place {
        harness: &codex::HARNESS,
        program: "codex",
        since: None,
        user: ("CODEX_HOME", ".codex"),
        user_file: "hooks.json",
        project_file: ".codex/hooks.json",
        local_file: None,
        form: GROUPED,
        line: |moment, program| {
            json!({"type": "command", "command": shell_line("codex", moment, program),
                "timeout": TIMEOUT_SECONDS})
        },
        then: "Codex CLI skips hooks silently until you approve them: start it and say /hooks, now and \
               after every change of them",
    },
    Place {
        harness: &gemini::HARNESS,
        program: "gemini",
        since: None,
        user: ("", ".gemini"),
        user_file: "settings.json",
        project_file: ".gemini/settings.json",
        local_file: None,
        form: WITH_COMMENTS,
        // Its timeouts are milliseconds.
        line: |moment, program| {
            json!({"type": "command", "name": "policyd",
                "command": shell_line("gemini", moment, program),
                "timeout": TIMEOUT_SECONDS.saturating_mul(1000)})
        },
        then: "Gemini CLI loads hooks of a project only where the workspace is trusted",
    },
    Place {
        harness: &cursor::HARNESS,
        program: "cursor-agent",
        since: None,
        user: ("", ".cursor"),
        user_file: "hooks.json",
        project_file: ".cursor/hooks.json",
        local_file: None,
        form: FLAT,
        line: |moment, program| json!({"command": shell_line("cursor", moment, program), "timeout": TIMEOUT_SECONDS}),
        then: "Cursor reads it at once in a trusted workspace",
    },
    Place {
        harness: &copilot::HARNESS,
        program: "copilot",
        since: None,
        user: ("", ".copilot"),
        user_file: "hooks/policyd.json",
        project_file: ".github/hooks/policyd.json",
        local_file: None,
        form: FLAT,
        line: |moment, program| {
            json!({"type": "command", "bash": shell_line("copilot", moment, program),
                "powershell": shell_line("copilot", moment, program),
                "timeoutSec": TIMEOUT_SECONDS})
        },
        then: "GitHub Copilot CLI reads it when it starts",
    },
    Place {
        harness: &droid::HARNESS,
        program: "droid",
        since: None,
        user: ("", ".factory"),
        user_file: "settings.json",
        project_file: ".factory/settings.json",
        local_file: None,
        form: WITH_COMMENTS,
        line: |moment, program| {
            json!({"type": "command", "command": shell_line("droid", moment, program),
                "timeout": TIMEOUT_SECONDS})
        },
        then: "Factory droid reads it when it starts",
    },
    Place {
        harness: &opencode::HARNESS,
        program: "opencode",
        since: None,
        user: ("", ".config/opencode"),
        user_file: "plugins/policyd.js",
        project_file: ".opencode/plugins/policyd.js",
        local_file: None,
        form: None,
        line: |_, _| Value::Null,
        then: "OpenCode loads it when it starts",
    },
];

impl Place {
    /// The row of a client.
    pub(in crate::cli) fn of(name: &str) -> Option<&'static Self> {
        PLACES.iter().find(|it| it.harness.name == name)
    }

    /// The client's folder of the user; none where there is no home folder.
    pub(in crate::cli) fn user_folder(&self, world: &dyn World) -> Option<PathBuf> {
        let (variable, below_home) = self.user;
        let named = Some(variable).filter(|it| !it.is_empty()).and_then(|it| world.env(it));
        let moved = || {
            let rest = below_home.strip_prefix(".config/")?;
            Some(Path::new(&world.env("XDG_CONFIG_HOME")?).join(rest))
        };
        let home = || Some(Path::new(&world.env("HOME")?).join(below_home));
        named.map(PathBuf::from).or_else(moved).or_else(home)
    }

    /// The file of a scope; none where there is no such.
    pub(in crate::cli) fn file(
        &self,
        world: &dyn World,
        project: &Project,
        scope: Scope,
    ) -> Option<PathBuf> {
        match scope {
            Scope::User => Some(self.user_folder(world)?.join(self.user_file)),
            Scope::Project => Some(project.root.join(self.project_file)),
            Scope::Local => self.local_file.map(|it| project.root.join(it)),
        }
    }

    /// The hook lines of some events, each with the client's name of its event.
    pub(in crate::cli) fn lines(
        &self,
        moments: &[&'static Moment],
        program: &str,
    ) -> Vec<(&'static str, Value)> {
        moments.iter().map(|it| (it.native, (self.line)(it, program))).collect()
    }
}

/// A hook line for clients that pass it to a shell.
fn shell_line(harness: &str, moment: &Moment, program: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:\\".contains(c);
    let program =
        if program.chars().all(plain) { program.to_owned() } else { format!("\"{program}\"") };
    format!("{program} eval --hook {} --harness {harness}", moment.native)
}
