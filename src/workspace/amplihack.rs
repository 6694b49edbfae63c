//! amplihack's configuration of a project: its switch, and those of single checks. A file that is not
//! right is not used at all, as in amplihack; policyd reports it to the user.

use std::path::PathBuf;

use serde_json::Value;

use super::project::Project;
use policyd_base::limits;
use policyd_policy::Policy;
use policyd_world::{World, WorldError};
use policyd_yaml::suggest;

/// Where amplihack keeps it in a project.
const PATH: &str = ".claude/tools/amplihack/.power_steering_config";

/// What the file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PowerSteeringConfig {
    /// The file.
    pub path: PathBuf,
    /// Whether policyd is disabled.
    pub off: bool,
    /// Checks with their own switch.
    checks: Vec<(String, bool)>,
}

/// Why the file of a project is not used.
#[derive(Debug, thiserror::Error)]
#[error("{} is not used: {problem}", path.display())]
pub struct ConfigError {
    path: PathBuf,
    problem: ConfigProblem,
}

/// What is wrong in the file. Each message contains the fix.
#[derive(Debug, thiserror::Error)]
enum ConfigProblem {
    #[error(transparent)]
    Unreadable(#[from] WorldError),
    #[error(transparent)]
    NotJson(#[from] serde_json::Error),
    #[error("it must hold a JSON object")]
    NotAnObject,
    #[error("`enabled` is missing; write `\"enabled\": true`")]
    NoSwitch,
    #[error("`{0}` must be true or false, without quotes")]
    NotBoolean(String),
    #[error("`phase` must be a whole number")]
    Phase,
    #[error("`checkers_enabled` must be an object")]
    Checkers,
}

/// Reads the file of a project. Returns `Ok(None)` if the file does not exist.
///
/// # Errors
/// [`ConfigError`] if the file cannot be read, or one of its keys is invalid.
pub fn read_config(
    world: &dyn World,
    project: &Project,
) -> Result<Option<PowerSteeringConfig>, ConfigError> {
    // A worktree has a copy of its own.
    let own = project.root.join(PATH);
    let path = if world.stat(&own).is_ok() { own } else { project.main.join(PATH) };
    let found = match world.read(&path, limits::POLICY_FILE_BYTES_MAX) {
        Err(WorldError::NotFound) => return Ok(None),
        Err(error) => Err(error.into()),
        Ok(bytes) => parse_bytes(&bytes),
    };
    match found {
        Ok(found) => Ok(Some(PowerSteeringConfig { path, ..found })),
        Err(problem) => Err(ConfigError { path, problem }),
    }
}

fn parse_bytes(bytes: &[u8]) -> Result<PowerSteeringConfig, ConfigProblem> {
    parse(&serde_json::from_slice(bytes)?)
}

fn parse(value: &Value) -> Result<PowerSteeringConfig, ConfigProblem> {
    let not_boolean = |key: &str| ConfigProblem::NotBoolean(key.to_owned());
    let fields = value.as_object().ok_or(ConfigProblem::NotAnObject)?;
    let enabled = fields.get("enabled").ok_or(ConfigProblem::NoSwitch)?;
    let enabled = enabled.as_bool().ok_or_else(|| not_boolean("enabled"))?;
    if fields.get("phase").is_some_and(|it| !it.is_u64()) {
        return Err(ConfigProblem::Phase);
    }
    let none = Value::Object(serde_json::Map::new());
    let checks = fields.get("checkers_enabled").unwrap_or(&none);
    let checks = checks.as_object().ok_or(ConfigProblem::Checkers)?;
    let switch = |(id, on): (&String, &Value)| match on.as_bool() {
        Some(on) => Ok((id.clone(), on)),
        None => Err(not_boolean(&format!("checkers_enabled.{id}"))),
    };
    let checks = checks.iter().map(switch).collect::<Result<_, ConfigProblem>>()?;
    Ok(PowerSteeringConfig { off: !enabled, checks, ..PowerSteeringConfig::default() })
}

impl PowerSteeringConfig {
    /// Whether it disables policyd or a check.
    pub fn disables_something(&self) -> bool {
        self.off || self.checks.iter().any(|(_, on)| !on)
    }

    /// Switches checks of the policy off. Returns a problem for each switched off name that is not the id of a check.
    pub fn apply(&self, policy: &mut Policy) -> Vec<String> {
        let mut problems = Vec::new();
        for (id, on) in &self.checks {
            let present = policy.rule_id(id).map(str::to_owned);
            let known = policy.change_checks(|all| {
                let check = all.iter_mut().find(|it| Some(&it.id) == present.as_ref());
                check.map(|it| it.enabled &= on).is_some()
            });
            // One that is unknown and stays on is as it is anyway.
            if !known && !on {
                let ids = policy.considerations.iter().map(|it| it.id.as_str());
                let help = suggest::did_you_mean(id, &ids.collect::<Vec<_>>()).unwrap_or_default();
                let file = self.path.display();
                problems.push(format!("{file}: unknown check `{id}`; {help}"));
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_file_is_right_as_a_whole_or_not_used() {
        for wrong in [
            json!([]),
            json!({"phase": 1}),
            json!({"enabled": "true"}),
            json!({"enabled": 1}),
            json!({"enabled": true, "phase": "1"}),
            json!({"enabled": true, "checkers_enabled": []}),
            json!({"enabled": true, "checkers_enabled": {"a": "yes"}}),
        ] {
            assert!(parse(&wrong).is_err(), "{wrong}");
        }
        let right = json!({"version": "1.0.0", "enabled": true, "phase": 2, "note": "",
            "checkers_enabled": {"todos_complete": false, "ci_status": true}});
        let found = parse(&right).unwrap();
        assert!(!found.off);
        assert_eq!(
            found.checks,
            [("todos_complete".to_owned(), false), ("ci_status".to_owned(), true)]
        );
        assert!(parse(&json!({"enabled": false})).unwrap().off);
    }
}
