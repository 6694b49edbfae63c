//! Questions to git about a folder that may be hostile. Git asks the configuration of the repository which
//! programs to run: here it runs none of them, whatever the configuration says.
//! May not live here: what the answers mean.

use std::cell::OnceCell;
use std::path::Path;
use std::time::Duration;

use super::outside_of;
use crate::limits::GIT_CONFIG_BYTES_MAX;
use crate::world::{Command, CommandOutput, World};

/// How git is called: no lock, no pager, no file system monitor, no hook, no signature check, no summary of
/// submodules, and no path quoted. What an option sets here comes before every configuration file.
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

/// The option of `status` and `diff` that keeps git out of the work trees of submodules, whose configuration
/// it would read as well.
pub const NO_SUBMODULE_TREES: &str = "--ignore-submodules=dirty";

/// No prompt, and no object fetched for a partial clone: that would start the transport that the
/// configuration names.
const ENVIRONMENT: [(&str, &str); 6] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_PAGER", ""),
];

/// Names the filters that configuration files define, each with the scope of its file.
const FILTERS: [&str; 7] =
    ["config", "--includes", "--show-scope", "--name-only", "-z", "--get-regexp", "^filter\\."];
/// Scopes of files that belong to the user and to this machine, and not to the repository.
const OWN_SCOPES: [&str; 2] = ["system", "global"];

/// A folder that git is asked about.
pub struct Git<'a> {
    world: &'a dyn World,
    folder: &'a Path,
    project: &'a Path,
    deadline: Duration,
    /// End of the time for all questions, as [`World::elapsed`] counts it.
    end: Option<Duration>,
    output_max: usize,
    /// Options that switch the filters of the repository off; nothing if they are not known.
    filters: OnceCell<Option<Vec<String>>>,
}

impl<'a> Git<'a> {
    /// Asks about a folder of a project; each question may take `deadline`, and `output_max` bytes of its
    /// answer are kept.
    #[must_use]
    pub fn new(
        world: &'a dyn World,
        (folder, project): (&'a Path, &'a Path),
        deadline: Duration,
        output_max: usize,
    ) -> Self {
        Self { world, folder, project, deadline, end: None, output_max, filters: OnceCell::new() }
    }

    /// Ends all questions together at this time, as [`World::elapsed`] counts it.
    #[must_use]
    pub fn until(self, end: Duration) -> Self {
        Self { end: Some(end), ..self }
    }

    /// What git answers; nothing where it fails, or where its filters are not known.
    #[must_use]
    pub fn ask(&self, words: &[&str]) -> Option<CommandOutput> {
        let filters = self.filters.get_or_init(|| self.filters()).as_ref()?;
        self.call(filters, words, self.output_max).filter(|it| it.code == Some(0))
    }

    fn call(&self, options: &[String], words: &[&str], output_max: usize) -> Option<CommandOutput> {
        let left = self.end.map(|end| end.saturating_sub(self.world.elapsed()));
        let deadline = left.map_or(self.deadline, |left| left.min(self.deadline));
        if deadline.is_zero() {
            return None;
        }
        let argv = NEUTRAL.iter().map(|it| (*it).to_owned());
        let argv = argv.chain(options.iter().cloned());
        let command = Command {
            argv: argv.chain(words.iter().map(|it| (*it).to_owned())).collect(),
            folder: self.folder.to_owned(),
            env: ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            env_removed: vec!["GIT_EXTERNAL_DIFF".to_owned()],
            deadline,
            output_max,
            not_from: Some(outside_of(self.world, &[self.folder, self.project])),
            path_reduced: true,
            ..Command::default()
        };
        self.world.run(&command).ok()
    }

    /// The options without which `status` and `diff` run the filters of a repository's own configuration.
    /// Attributes alone cannot keep them off: `.git/info/attributes` is always read.
    fn filters(&self) -> Option<Vec<String>> {
        let told = self.call(&[], &FILTERS, GIT_CONFIG_BYTES_MAX)?;
        match told.code {
            Some(0) if !told.truncated => off(&String::from_utf8(told.stdout).ok()?),
            // There is none.
            Some(1) => Some(Vec::new()),
            Some(_) | None => None,
        }
    }
}

/// The options that switch the filters off that are listed. Nothing if an option cannot name one of them.
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
