//! Which permission prompts policyd answers: changes `approvals` in the user's `config.yaml`. The rest of the file stays as
//! it is.

use std::path::PathBuf;

use policyd_base::limits::POLICY_FILE_BYTES_MAX;
use policyd_policy::approval::ApprovalLevel;
use policyd_store::configuration::ConfigurationOwner;
use policyd_store::file::{SaveOutcome, rewrite};
use policyd_world::{World, WorldError};

/// Why the choice was not saved.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalsError {
    #[error("the directory of your configuration is unknown: `HOME` is not set")]
    NoDirectory,
    #[error("`{}` cannot be read: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error("`{}` was not written: {why}", path.display())]
    NotSaved { path: PathBuf, why: String },
}

/// Sets `approvals` in the user's `config.yaml`. Returns the file.
///
/// # Errors
/// The file cannot be read or written. Then it is unchanged.
pub fn set(world: &dyn World, level: ApprovalLevel) -> Result<PathBuf, ApprovalsError> {
    let path = ConfigurationOwner::User.path(world).ok_or(ApprovalsError::NoDirectory)?;
    let unreadable = |why: String| ApprovalsError::Unreadable { path: path.clone(), why };
    let before = match world.read(&path, POLICY_FILE_BYTES_MAX) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8".into()))?,
        Err(WorldError::NotFound) => String::new(),
        Err(error) => return Err(unreadable(error.to_string())),
    };
    let not_saved = |why: String| ApprovalsError::NotSaved { path: path.clone(), why };
    if let Some(folder) = path.parent() {
        world.create_folder(folder).map_err(|error| not_saved(error.to_string()))?;
    }
    match rewrite(world, &path, changed(&before, level).as_bytes()) {
        SaveOutcome::Durable { .. } | SaveOutcome::Degraded { .. } => Ok(path),
        SaveOutcome::NotSaved { why, .. } => Err(not_saved(why)),
    }
}

/// Returns the text of the file with another level. The key has a separate line, because its value is one word.
fn changed(before: &str, level: ApprovalLevel) -> String {
    let line = format!("approvals: {}", level.as_str());
    let is_key = |it: &&str| it.starts_with("approvals:");
    if !before.lines().any(|it| is_key(&it)) {
        let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
        return format!("{before}{gap}{line}\n");
    }
    let lines = before.lines().map(|it| if is_key(&it) { line.as_str() } else { it });
    lines.map(|it| format!("{it}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_the_file_stays() {
        let level = ApprovalLevel::Work;
        assert_eq!(changed("", level), "approvals: work\n");
        assert_eq!(changed("# mine\nstore: x", level), "# mine\nstore: x\napprovals: work\n");
        let before = "approvals: read # few\n# mine\nchannels: []\n";
        assert_eq!(changed(before, level), "approvals: work\n# mine\nchannels: []\n");
    }
}
