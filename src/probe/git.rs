//! Calls git in a directory that can be hostile. Git runs programs that the repository's
//! configuration names; these calls run none of them, whatever the configuration contains. Does not
//! contain: the meaning of git's output.

use std::cell::OnceCell;
use std::path::Path;
use std::time::Duration;

use super::outside_of;
use policyd_base::limits::GIT_CONFIG_BYTES_MAX;
use policyd_world::{CommandOutput, ExternalCommand, World, WorldError};

/// Global options of every call: no lock, pager, file system monitor, hook, signature check,
/// submodule summary, or quoted path. These options override every configuration file.
pub const NEUTRAL: [&str; 17] = [
    "git",
    "--no-optional-locks",
    "--no-pager",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.untrackedCache=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.quotePath=false",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "log.showSignature=false",
    "-c",
    "status.submoduleSummary=false",
];

/// Option of `status` and `diff` that excludes the work trees of submodules, whose configuration
/// git would read, too.
pub const NO_SUBMODULE_TREES: &str = "--ignore-submodules=dirty";

/// Environment of every call: no prompt, and no fetch of missing objects, which would start the
/// transport that the configuration names.
const ENVIRONMENT: [(&str, &str); 6] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_PAGER", ""),
];

/// Arguments that list the filters of all configuration files, each with the scope of its file.
const FILTERS: [&str; 7] =
    ["config", "--includes", "--show-scope", "--name-only", "-z", "--get-regexp", "^filter\\."];
/// Scopes of configuration files that belong to the user or the machine, not to the repository.
const OWN_SCOPES: [&str; 2] = ["system", "global"];

/// Read access to git in one directory.
pub struct Git<'a> {
    world: &'a dyn World,
    folder: &'a Path,
    project: &'a Path,
    deadline: Duration,
    /// Deadline of all calls, as [`World::elapsed`] counts.
    end: Option<Duration>,
    output_max: usize,
    /// Options that disable the repository's filters.
    filters: OnceCell<Result<Vec<String>, GitError>>,
}

/// Why git said nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitError {
    /// git failed or is not installed, the directory is not in a repository, or the filters are unknown.
    Failed,
    /// git did not end in time. What it would say is unknown, and another call can succeed.
    NoAnswer,
}

impl<'a> Git<'a> {
    /// Prepares calls in a directory of a project. `deadline` is the time limit of each call, and
    /// `output_max` the maximum bytes of its output.
    #[must_use]
    pub fn new(
        world: &'a dyn World,
        folder: &'a Path,
        project: &'a Path,
        deadline: Duration,
        output_max: usize,
    ) -> Self {
        Self { world, folder, project, deadline, end: None, output_max, filters: OnceCell::new() }
    }

    /// Sets a deadline for all calls together, as [`World::elapsed`] counts.
    #[must_use]
    pub fn until(self, end: Duration) -> Self {
        Self { end: Some(end), ..self }
    }

    /// Runs git. `None` if it fails, or if the filters are unknown.
    #[must_use]
    pub fn ask(&self, words: &[&str]) -> Option<CommandOutput> {
        self.answer(words).ok()
    }

    /// Runs git.
    ///
    /// # Errors
    /// [`GitError`], if git fails or does not end in time.
    pub fn answer(&self, words: &[&str]) -> Result<CommandOutput, GitError> {
        let filters = self.filters.get_or_init(|| self.filters()).as_ref().map_err(|it| *it)?;
        let answer = self.call(filters, words, self.output_max)?;
        Some(answer).filter(|it| it.code == Some(0)).ok_or(GitError::Failed)
    }

    fn call(
        &self,
        options: &[String],
        words: &[&str],
        output_max: usize,
    ) -> Result<CommandOutput, GitError> {
        let left = self.end.map(|end| end.saturating_sub(self.world.elapsed()));
        let deadline = left.map_or(self.deadline, |left| left.min(self.deadline));
        if deadline.is_zero() {
            return Err(GitError::NoAnswer);
        }
        let argv = NEUTRAL.iter().map(|it| (*it).to_owned());
        let argv = argv.chain(options.iter().cloned());
        let command = ExternalCommand {
            argv: argv.chain(words.iter().map(|it| (*it).to_owned())).collect(),
            folder: self.folder.to_owned(),
            env: ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            env_removed: vec!["GIT_EXTERNAL_DIFF".to_owned()],
            deadline,
            output_max,
            not_from: Some(outside_of(self.world, &[self.folder, self.project])),
            path_reduced: true,
            ..ExternalCommand::default()
        };
        self.world.run(&command).map_err(|error| match error {
            WorldError::TimedOut => GitError::NoAnswer,
            WorldError::NotFound
            | WorldError::AlreadyExists
            | WorldError::Io(_)
            | WorldError::Unsupported
            | WorldError::Locked(_)
            | WorldError::TooLarge(_)
            | WorldError::NotAFile
            | WorldError::PowerLoss => GitError::Failed,
        })
    }

    /// Returns the options that keep `status` and `diff` from running the repository's filters.
    /// Attributes cannot disable them, because git always reads `.git/info/attributes`.
    fn filters(&self) -> Result<Vec<String>, GitError> {
        let told = self.call(&[], &FILTERS, GIT_CONFIG_BYTES_MAX)?;
        let options = match told.code {
            Some(0) if !told.truncated => {
                String::from_utf8(told.stdout).ok().and_then(|it| off(&it))
            }
            // Git found no filter.
            Some(1) => Some(Vec::new()),
            Some(_) | None => None,
        };
        options.ok_or(GitError::Failed)
    }
}

/// Returns the options that disable the listed filters. `None` if an option cannot name one of
/// them.
fn off(listed: &str) -> Option<Vec<String>> {
    let mut options = Vec::new();
    let mut parts = listed.split('\0');
    while let (Some(scope), Some(key)) = (parts.next(), parts.next()) {
        if OWN_SCOPES.contains(&scope) {
            continue;
        }
        // An option ends its key at the first `=`.
        let (name, what) = key.rsplit_once('.').filter(|_| !key.contains('='))?;
        let value = if what == "required" { "false" } else { "" };
        options.extend(["-c".to_owned(), format!("{name}.{what}={value}")]);
    }
    Some(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_of_the_repository_are_switched_off_and_those_of_the_user_are_not() {
        let listed =
            "global\0filter.lfs.clean\0local\0filter.a b.clean\0local\0filter.a b.required\0";
        let expected = ["-c", "filter.a b.clean=", "-c", "filter.a b.required=false"];
        assert_eq!(off(listed).unwrap(), expected);
        assert_eq!(off("").unwrap(), Vec::<String>::new());
        assert_eq!(off("worktree\0filter.x=y.clean\0"), None);
    }
}
