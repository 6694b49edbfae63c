//! Fetches one commit of a repository with git, and returns its files as a tar archive. Runs no hook and asks for nothing.

use std::path::Path;
use std::time::Duration;

use super::git::NEUTRAL;
use super::outside_of;
use policyd_world::{CommandOutput, ExternalCommand, World, WorldError};

/// Bytes of messages of git.
const MESSAGES_MAX: usize = 4 * 1024;

/// Environment of every call: no prompt, and only transports that the caller names.
const ENVIRONMENT: [(&str, &str); 5] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("GIT_PAGER", ""),
    ("GIT_ALLOW_PROTOCOL", "https:ssh:file"),
    ("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"),
];

/// Variables that make git use another repository or another program.
const NOT_INHERITED: [&str; 5] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND"];

/// A commit to fetch.
#[derive(Debug, Clone, Copy)]
pub struct GitCommit<'a> {
    /// Address of the repository.
    pub url: &'a str,
    /// Branch, tag, or full commit id.
    pub revision: &'a str,
    /// Directory in the repository whose files are returned. Empty: the top.
    pub subdirectory: &'a str,
    /// File with the accepted certificate authorities. `None`: those of git.
    pub ca_file: Option<&'a Path>,
}

/// Limits of a fetch.
#[derive(Debug, Clone, Copy)]
pub struct GitLimits {
    /// Time limit of each call of git.
    pub deadline: Duration,
    /// Maximum bytes of the tar archive.
    pub bytes_max: usize,
}

/// The files of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitFiles {
    /// Full id of the commit.
    pub commit: String,
    /// Tar archive of the files.
    pub tar: Vec<u8>,
}

/// Why a commit is not fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GitFetchError {
    /// Git could not be started, or was not ready in time.
    #[error("could not run git: {0}")]
    NotRun(WorldError),
    /// Git reported an error.
    #[error("git reports: {0}")]
    Failed(String),
    /// The files exceed the limit.
    #[error("the files of the repository are larger than {0} bytes")]
    TooLarge(usize),
}

/// Fetches a commit into a new repository in `folder`, which the caller removes.
///
/// # Errors
/// [`GitFetchError`]
pub fn fetch(
    world: &dyn World,
    folder: &Path,
    commit: &GitCommit<'_>,
    limits: GitLimits,
) -> Result<GitFiles, GitFetchError> {
    let git = GitProcess { world, folder, ca_file: commit.ca_file, deadline: limits.deadline };
    git.call(&["init", "--quiet", "--bare", "--template="], MESSAGES_MAX)?;
    let fetch = ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules"];
    let named = ["--end-of-options", commit.url, commit.revision];
    git.call(&[fetch.as_slice(), &named].concat(), MESSAGES_MAX)?;
    let id = git.call(&["rev-parse", "--verify", "FETCH_HEAD^{commit}"], MESSAGES_MAX)?;
    let id = String::from_utf8_lossy(&id.stdout).trim().to_owned();
    let tree = match commit.subdirectory {
        "" => id.clone(),
        below => format!("{id}:{below}"),
    };
    let files = git.call(&["archive", "--format=tar", &tree], limits.bytes_max)?;
    match files.truncated {
        true => Err(GitFetchError::TooLarge(limits.bytes_max)),
        false => Ok(GitFiles { commit: id, tar: files.stdout }),
    }
}

struct GitProcess<'a> {
    world: &'a dyn World,
    folder: &'a Path,
    ca_file: Option<&'a Path>,
    deadline: Duration,
}

impl GitProcess<'_> {
    fn call(&self, words: &[&str], output_max: usize) -> Result<CommandOutput, GitFetchError> {
        let mut argv: Vec<String> = NEUTRAL.iter().map(|it| (*it).to_owned()).collect();
        if let Some(file) = self.ca_file {
            argv.extend(["-c".to_owned(), format!("http.sslCAInfo={}", file.display())]);
        }
        argv.extend(words.iter().map(|it| (*it).to_owned()));
        let command = ExternalCommand {
            argv,
            folder: self.folder.to_owned(),
            env: ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            env_removed: NOT_INHERITED.map(str::to_owned).to_vec(),
            deadline: self.deadline,
            output_max,
            not_from: Some(outside_of(self.world, &[self.folder])),
            path_reduced: true,
            ..ExternalCommand::default()
        };
        let output = self.world.run(&command).map_err(GitFetchError::NotRun)?;
        match output.code {
            Some(0) => Ok(output),
            Some(_) | None => Err(GitFetchError::Failed(last_line(&output.stderr))),
        }
    }
}

/// Returns the last line of git's messages, which states the error.
fn last_line(messages: &[u8]) -> String {
    let text = String::from_utf8_lossy(messages);
    let line = text.lines().rev().find(|it| !it.trim().is_empty()).unwrap_or("no message");
    line.trim().to_owned()
}
