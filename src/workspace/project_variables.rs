//! Variables that a file of the project sets, and that a client therefore gives to its hooks. They are the word of the
//! repository, so policyd does not read them.
//!
//! Contains: which variables these are. Does not contain: how the World leaves them out.

use std::path::{Path, PathBuf};

use serde_json::Value;

use policyd_base::limits::POLICY_FILE_BYTES_MAX;
use policyd_harness::{HARNESSES, VariableFileFormat};
use policyd_world::{ProjectVariable, World};

/// Beginnings of the names that policyd reads to find or to change what the user chose.
const PREFIXES: [&str; 2] = ["POLICYD_", "AMPLIHACK_"];
/// Directories of the user.
const DIRECTORIES: [&str; 5] =
    ["HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"];
/// Variable with the project of a client.
const CLIENT_PROJECT: &str = "CLAUDE_PROJECT_DIR";
/// Directories above the working directory in which a client looks for such files.
const LEVELS_MAX: usize = 32;

/// Returns the variables of the environment that a file of the project sets. Reads a file only if the environment has a
/// variable that matters.
pub fn find(world: &dyn World) -> Vec<ProjectVariable> {
    let levels = levels(world);
    let candidates: Vec<String> =
        world.variables().into_iter().filter(|it| matters(world, it, &levels)).collect();
    if candidates.is_empty() {
        return Vec::new();
    }
    // Files of the home directory belong to the user.
    let home = super::human::home_of_account(world);
    let levels = levels.iter().filter(|it| home.as_ref() != Some(*it));
    let files = HARNESSES.iter().flat_map(|it| it.variable_files);
    let files = levels.flat_map(|level| files.clone().map(|it| (level.join(it.path), it)));
    let mut found: Vec<ProjectVariable> = Vec::new();
    for (path, file) in files {
        let Ok(bytes) = world.read(&path, POLICY_FILE_BYTES_MAX) else { continue };
        for name in names(&String::from_utf8_lossy(&bytes), file.format) {
            if candidates.contains(&name) && !found.iter().any(|it| it.name == name) {
                found.push(ProjectVariable { name, file: path.clone() });
            }
        }
    }
    found
}

/// Returns whether policyd reads a variable, and for a directory of the user whether it is in the project.
fn matters(world: &dyn World, name: &str, levels: &[PathBuf]) -> bool {
    let is_within = |value: String| levels.iter().any(|it| Path::new(&value).starts_with(it));
    PREFIXES.iter().any(|it| name.starts_with(it))
        || (DIRECTORIES.contains(&name) && world.env(name).is_some_and(is_within))
}

/// Returns the directories of the project: the working directory and that of the client, each with those above it up to
/// the root of the repository.
fn levels(world: &dyn World) -> Vec<PathBuf> {
    let client = world.env(CLIENT_PROJECT).map(PathBuf::from);
    let mut levels: Vec<PathBuf> = Vec::new();
    for start in std::iter::once(world.working_folder()).chain(client) {
        let above: Vec<&Path> = start.ancestors().take(LEVELS_MAX).collect();
        let root = above.iter().position(|it| world.stat(&it.join(".git")).is_ok());
        let own = above.into_iter().take(root.map_or(1, |it| it.saturating_add(1)));
        levels.extend(own.map(Path::to_path_buf));
    }
    levels.dedup();
    levels
}

/// Returns the names that a file sets.
fn names(text: &str, format: VariableFileFormat) -> Vec<String> {
    match format {
        VariableFileFormat::Settings => {
            let settings: Value = serde_json::from_str(text).unwrap_or_default();
            let variables = settings.get("env").and_then(Value::as_object);
            variables.into_iter().flatten().map(|(name, _)| name.clone()).collect()
        }
        VariableFileFormat::Lines => text
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(name, _)| name.trim().trim_start_matches("export ").trim().to_owned())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::fake::FakeWorld;

    fn machine(files: &[(&str, &str)], variables: &[(&str, &str)]) -> FakeWorld {
        let world = FakeWorld::new();
        world.put("/work/.git/HEAD", "");
        files.iter().for_each(|(path, text)| world.put(path, *text));
        variables.iter().for_each(|(name, value)| world.set_env(name, value));
        world
    }

    fn hidden(world: &FakeWorld) -> Vec<String> {
        find(world).into_iter().map(|it| it.name).collect()
    }

    #[test]
    fn a_variable_that_a_file_of_the_project_sets_is_found() {
        let settings =
            r#"{"env": {"POLICYD_DISABLED": "1", "PATH": "/x", "XDG_CONFIG_HOME": "/work/x"}}"#;
        let variables = [
            ("POLICYD_DISABLED", "1"),
            ("POLICYD_POLICIES", "/p"),
            ("PATH", "/x"),
            ("XDG_CONFIG_HOME", "/work/x"),
        ];
        for path in ["/work/.claude/settings.json", "/work/.claude/settings.local.json"] {
            let world = machine(&[(path, settings)], &variables);
            assert_eq!(hidden(&world), ["POLICYD_DISABLED", "XDG_CONFIG_HOME"], "{path}");
        }
        let lines = "# x\nexport POLICYD_DISABLED=1\nPOLICYD_POLICIES = './p'\n";
        for path in ["/work/.env", "/work/.gemini/.env"] {
            let world = machine(&[(path, lines)], &variables);
            assert_eq!(hidden(&world), ["POLICYD_DISABLED", "POLICYD_POLICIES"], "{path}");
        }
    }

    #[test]
    fn variables_of_the_user_are_not_found() {
        let settings = r#"{"env": {"POLICYD_DISABLED": "1", "XDG_CONFIG_HOME": "/home/me/x"}}"#;
        // Not in the environment; or the file is not in the project, or damaged.
        assert!(hidden(&machine(&[("/work/.claude/settings.json", settings)], &[])).is_empty());
        let of_user = [("POLICYD_DISABLED", "1"), ("XDG_CONFIG_HOME", "/home/me/x")];
        assert!(
            hidden(&machine(&[("/home/me/.claude/settings.json", settings)], &of_user)).is_empty()
        );
        assert!(hidden(&machine(&[("/work/.claude/settings.json", "{")], &of_user)).is_empty());
        assert!(hidden(&machine(&[], &of_user)).is_empty());
        // A directory of the user that is not in the project cannot be set by the repository.
        let only = [("XDG_CONFIG_HOME", "/home/me/x")];
        assert!(hidden(&machine(&[("/work/.claude/settings.json", settings)], &only)).is_empty());
    }
}
