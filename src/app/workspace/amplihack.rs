//! amplihack's configuration of a project: its switch, and those of single checks. A file that is not
//! right is not used at all, as in amplihack; policyd reports it to the user.

use std::path::PathBuf;

use serde_json::Value;

use super::project::Project;
use crate::limits;
use crate::policy::Policy;
use crate::source::suggest;
use crate::world::{World, WorldError};

/// Where amplihack keeps it in a project.
const PATH: &str = ".claude/tools/amplihack/.power_steering_config";

/// What the file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PowerSteeringConfig {
    /// The file.
    pub(crate) path: PathBuf,
    /// Whether policyd is disabled.
    pub(crate) off: bool,
    /// Checks with their own switch.
    checks: Vec<(String, bool)>,
}

/// Reads the file of a project; `Ok(None)` where there is none.
///
/// # Errors
/// Why it is not used, in one sentence that names the file and the cure.
pub(crate) fn read_config(
    world: &dyn World,
    project: &Project,
) -> Result<Option<PowerSteeringConfig>, String> {
    // A worktree has a copy of its own.
    let own = project.root.join(PATH);
    let path = if world.stat(&own).is_ok() { own } else { project.main.join(PATH) };
    let wrong = |why: &str| format!("{} is not used: {why}", path.display());
    match world.read(&path, limits::POLICY_FILE_BYTES_MAX) {
        Err(WorldError::NotFound) => Ok(None),
        Err(error) => Err(wrong(&error.to_string())),
        Ok(bytes) => {
            let value =
                serde_json::from_slice(&bytes).map_err(|error| wrong(&error.to_string()))?;
            let found = parse(&value).map_err(|why| wrong(&why))?;
            Ok(Some(PowerSteeringConfig { path: path.clone(), ..found }))
        }
    }
}

fn parse(value: &Value) -> Result<PowerSteeringConfig, String> {
    let fields = value.as_object().ok_or("it must hold a JSON object")?;
    let enabled = fields.get("enabled").ok_or("`enabled` is missing; write `\"enabled\": true`")?;
    let enabled = enabled.as_bool().ok_or("`enabled` must be true or false, without quotes")?;
    if fields.get("phase").is_some_and(|it| !it.is_u64()) {
        return Err("`phase` must be a whole number".to_owned());
    }
    let none = Value::Object(serde_json::Map::new());
    let checks = fields.get("checkers_enabled").unwrap_or(&none);
    let checks = checks.as_object().ok_or("`checkers_enabled` must be an object")?;
    let switch = |(id, on): (&String, &Value)| match on.as_bool() {
        Some(on) => Ok((id.clone(), on)),
        None => Err(format!("`checkers_enabled.{id}` must be true or false, without quotes")),
    };
    let checks = checks.iter().map(switch).collect::<Result<_, _>>()?;
    Ok(PowerSteeringConfig { off: !enabled, checks, ..PowerSteeringConfig::default() })
}

impl PowerSteeringConfig {
    /// Whether it disables policyd or a check.
    pub(crate) fn disables_something(&self) -> bool {
        self.off || self.checks.iter().any(|(_, on)| !on)
    }

    /// Switches checks of the policy off; names that are no check's are returned as problems.
    pub(crate) fn apply(&self, policy: &mut Policy) -> Vec<String> {
        let mut problems = Vec::new();
        for (id, on) in &self.checks {
            let known = policy.considerations.change(|all| {
                let check = all.iter_mut().find(|it| it.id == *id);
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
