//! What a turn changed: the content of the project before and after it, as git sees it. Nothing is
//! written, and what is not under git is not known. Our own files are no work of the agent's.

use std::path::Path;
use std::time::Duration;

use crate::checksum::{checksum, hex};
use crate::world::{Command, CommandOutput, World};

/// Time that git may take.
const GIT_MAX: Duration = Duration::from_secs(30);
/// Output of git that is looked at.
const OUTPUT_MAX: usize = 16 * 1024 * 1024;
/// New files whose content is looked at, and how large they may be; of others the time and length.
const NEW_FILES_MAX: usize = 500;
const NEW_FILE_BYTES_MAX: usize = 1024 * 1024;

/// The content of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Content {
    /// Changes with every byte that is part of it.
    pub(super) fingerprint: String,
    /// The commit that is checked out; empty where there is none yet.
    pub(super) commit: String,
}

/// A project that git may know.
pub(super) struct Tree<'a> {
    pub(super) world: &'a dyn World,
    pub(super) root: &'a Path,
    /// Our own files, which do not count.
    pub(super) own: &'a Path,
}

impl Tree<'_> {
    fn git(&self, words: &[&str]) -> Option<CommandOutput> {
        let argv = ["git", "--no-optional-locks"].iter().chain(words).map(|it| (*it).to_owned());
        let command = Command {
            argv: argv.collect(),
            folder: self.root.to_owned(),
            deadline: GIT_MAX,
            output_max: OUTPUT_MAX,
            ..Command::default()
        };
        self.world.run(&command).ok().filter(|it| it.code == Some(0))
    }

    /// Everything but what is our own.
    fn paths(&self) -> Vec<String> {
        let own = self.own.strip_prefix(self.root).ok().filter(|it| !it.as_os_str().is_empty());
        let own = own.map(|it| format!(":(top,exclude){}", it.display()));
        [":(top)".to_owned()].into_iter().chain(own).collect()
    }

    fn words<'w>(words: &[&'w str], paths: &'w [String]) -> Vec<&'w str> {
        let paths = paths.iter().map(String::as_str);
        words.iter().copied().chain(["--"]).chain(paths).collect()
    }

    /// The content now; nothing where git does not know the project.
    pub(super) fn content(&self) -> Option<Content> {
        self.git(&["rev-parse", "--is-inside-work-tree"])?;
        let head = self.git(&["rev-parse", "--verify", "HEAD", "HEAD^{tree}"]);
        let head = head.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
        let head = head.unwrap_or_default();
        let mut lines = head.lines();
        let commit = lines.next().unwrap_or_default().to_owned();
        let tree = lines.next().unwrap_or_default().to_owned();
        let paths = self.paths();
        let changed = if commit.is_empty() {
            self.git(&Self::words(&["ls-files", "--stage"], &paths))
        } else {
            let words = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD"];
            self.git(&Self::words(&words, &paths))
        }?;
        let listed = self.git(&Self::words(
            &["ls-files", "--others", "--exclude-standard", "--full-name", "-z"],
            &paths,
        ))?;
        let mut parts = vec![tree.into_bytes(), changed.stdout];
        for (at, name) in listed.stdout.split(|it| *it == 0).filter(|it| !it.is_empty()).enumerate()
        {
            parts.push(name.to_vec());
            parts.push(self.new_file(&String::from_utf8_lossy(name), at < NEW_FILES_MAX));
        }
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        Some(Content { fingerprint: hex(&checksum(&parts)), commit })
    }

    fn new_file(&self, name: &str, closely: bool) -> Vec<u8> {
        let path = self.root.join(name);
        let read = closely.then(|| self.world.read(&path, NEW_FILE_BYTES_MAX).ok()).flatten();
        read.unwrap_or_else(|| {
            let stat = self.world.stat(&path).ok();
            let known = stat.map(|it| format!("{} {}", it.length, it.modified.millis()));
            known.unwrap_or_default().into_bytes()
        })
    }

    /// Lines that differ from a commit, those of new files counted, too.
    pub(super) fn lines_since(&self, commit: &str) -> Option<u32> {
        let paths = self.paths();
        let since = if commit.is_empty() { EMPTY_TREE } else { commit };
        let words = ["diff", "--numstat", "--no-ext-diff", "--no-textconv", since];
        let told = self.git(&Self::words(&words, &paths))?;
        let text = String::from_utf8_lossy(&told.stdout).into_owned();
        let counts = text.lines().flat_map(|it| it.split('\t').take(2));
        let changed = counts.filter_map(|it| it.parse::<u32>().ok());
        let changed = changed.fold(0_u32, u32::saturating_add);
        let listed = self.git(&Self::words(
            &["ls-files", "--others", "--exclude-standard", "--full-name", "-z"],
            &paths,
        ))?;
        let names = listed.stdout.split(|it| *it == 0).filter(|it| !it.is_empty());
        let new = names.take(NEW_FILES_MAX).map(|name| {
            let path = self.root.join(String::from_utf8_lossy(name).as_ref());
            let bytes = self.world.read(&path, NEW_FILE_BYTES_MAX).unwrap_or_default();
            u32::try_from(memchr::memchr_iter(b'\n', &bytes).count().max(1)).unwrap_or(u32::MAX)
        });
        Some(new.fold(changed, u32::saturating_add))
    }
}

/// What git calls the content of nothing.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
