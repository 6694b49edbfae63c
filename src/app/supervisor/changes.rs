//! What a turn changed: the files of the project before and after it, as git sees them. Nothing is
//! written, and what is not under git is not known. The files of policyd itself do not count.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::Duration;

use policyd_hook::agent_output::WrittenFile;
use policyd_probe::git::{Git, NO_SUBMODULE_TREES};
use policyd_world::{CommandOutput, World};
use policyd_yaml::checksum::{checksum, hex};

/// Time that git may take.
const GIT_MAX: Duration = Duration::from_secs(30);
/// Output of git that is read.
const OUTPUT_MAX: usize = 16 * 1024 * 1024;
/// Changed files whose content is read, and how large each may be; of others, time and length count.
const FILES_READ_MAX: usize = 500;
const FILE_BYTES_MAX: usize = 1024 * 1024;
/// Length of a written file that is put into the transcript.
const WRITTEN_BYTES_MAX: usize = 256 * 1024;
/// Mode of a submodule.
const SUBMODULE: &str = "160000";

/// A file that differs from the base of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct FileState {
    /// Changes with every byte of it.
    digest: String,
    /// Hashes of its lines, sorted; `None` for a file that was not read.
    lines: Option<Vec<u64>>,
    /// Lines that differ from the base.
    from_base: u32,
}

/// The content of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FileContent {
    /// Equal for equal trees, whether they are committed or not.
    pub(super) fingerprint: String,
    /// Tree of the checked out commit. Empty in a repository without a commit.
    committed: String,
    /// Files that differ from the base.
    files: BTreeMap<String, FileState>,
}

/// Difference between two contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Paths of the files that differ.
    pub(super) files: Vec<String>,
    /// Lines that were added and removed.
    pub(super) lines: u32,
    /// Whether files differ, or something was committed.
    pub(super) moved: bool,
}

impl FileContent {
    /// What changed since `before`.
    pub(super) fn since(&self, before: &Self) -> Changes {
        let mut changes = Changes::default();
        let paths =
            self.files.keys().chain(before.files.keys().filter(|it| !self.files.contains_key(*it)));
        for path in paths {
            let lines = match (before.files.get(path), self.files.get(path)) {
                (Some(before), Some(now)) if before.digest == now.digest => continue,
                (Some(before), Some(now)) => between(before, now),
                (Some(one), None) | (None, Some(one)) => one.from_base,
                (None, None) => continue,
            };
            changes.lines = changes.lines.saturating_add(lines.max(1));
            changes.files.push(path.clone());
        }
        changes.files.sort();
        changes.moved = !changes.files.is_empty() || self.committed != before.committed;
        changes
    }
}

/// Lines that are in one of two files only.
fn between(before: &FileState, now: &FileState) -> u32 {
    let (Some(old), Some(new)) = (&before.lines, &now.lines) else {
        return before.from_base.abs_diff(now.from_base);
    };
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    let mut count = 0_u32;
    loop {
        match (old.peek(), new.peek()) {
            (Some(left), Some(right)) if left == right => {
                old.next();
                new.next();
                continue;
            }
            (Some(left), Some(right)) if left < right => old.next(),
            (Some(_), None) => old.next(),
            (_, Some(_)) => new.next(),
            (None, None) => return count,
        };
        count = count.saturating_add(1);
    }
}

/// A project that git may know.
pub(super) struct Tree<'a> {
    world: &'a dyn World,
    root: &'a Path,
    /// The state directory, which does not count.
    own: &'a Path,
    git: Git<'a>,
}

impl<'a> Tree<'a> {
    /// The project in `root`, whose state directory is `own`.
    pub(super) fn new(world: &'a dyn World, root: &'a Path, own: &'a Path) -> Self {
        Self { world, root, own, git: Git::new(world, root, root, GIT_MAX, OUTPUT_MAX) }
    }

    fn git(&self, words: &[&str]) -> Option<CommandOutput> {
        self.git.ask(words)
    }

    /// Everything but the state directory.
    fn paths(&self) -> Vec<String> {
        let own = self.own.strip_prefix(self.root).ok().filter(|it| !it.as_os_str().is_empty());
        let own = own.map(|it| format!(":(top,exclude){}", it.display()));
        [":(top)".to_owned()].into_iter().chain(own).collect()
    }

    fn words<'w>(words: &[&'w str], paths: &'w [String]) -> Vec<&'w str> {
        let paths = paths.iter().map(String::as_str);
        words.iter().copied().chain(["--"]).chain(paths).collect()
    }

    /// What the files of a run that begins now are compared with: the commit that is checked out, or the
    /// empty tree. `None` if git does not know the project.
    pub(super) fn base(&self) -> Option<String> {
        let line = |words: &[&str]| {
            let told = String::from_utf8_lossy(&self.git(words)?.stdout).into_owned();
            told.lines().next().map(str::to_owned)
        };
        self.git(&["rev-parse", "--is-inside-work-tree"])?;
        line(&["rev-parse", "--verify", "--quiet", "HEAD"])
            .or_else(|| line(&["hash-object", "-t", "tree", "--stdin"]))
    }

    /// The content now, compared with `base`, or with what is checked out if that is gone. `None` if git
    /// does not know the project.
    pub(super) fn content(&self, base: &str) -> Option<FileContent> {
        if base.is_empty() {
            return None;
        }
        self.files(base).or_else(|| self.files(&self.base()?))
    }

    fn files(&self, base: &str) -> Option<FileContent> {
        let paths = self.paths();
        let words = [
            "diff",
            "--raw",
            "--numstat",
            "-z",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-relative",
            NO_SUBMODULE_TREES,
            base,
        ];
        let told = self.git(&Self::words(&words, &paths))?;
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        let words = ["ls-files", "--others", "--exclude-standard", "--full-name", "-z"];
        let listed = self.git(&Self::words(&words, &paths))?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let head = self.git(&["rev-parse", "--verify", "--quiet", "HEAD^{tree}"]);
        let committed = head.map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned());

        let mut files = BTreeMap::new();
        let tracked = differing(&told);
        let new = listed.split('\0').filter(|it| !it.is_empty());
        let new =
            new.map(|it| (it.to_owned(), ChangedFile { new: true, ..ChangedFile::default() }));
        for (at, (path, it)) in tracked.into_iter().chain(new).enumerate() {
            let state = self.state(base, &path, &it, at < FILES_READ_MAX);
            files.insert(path, state);
        }
        let parts = files.iter().flat_map(|(path, it)| [path.as_bytes(), it.digest.as_bytes()]);
        let parts: Vec<&[u8]> = [base.as_bytes()].into_iter().chain(parts).collect();
        let fingerprint = hex(&checksum(&parts));
        let committed = committed.unwrap_or_default();
        Some(FileContent { fingerprint, committed, files })
    }

    fn state(&self, base: &str, name: &str, it: &ChangedFile, closely: bool) -> FileState {
        let path = self.root.join(name);
        let read = closely.then(|| self.world.read(&path, FILE_BYTES_MAX).ok()).flatten();
        let lines = read.as_ref().map(|bytes| {
            let mut lines: Vec<u64> =
                bytes.split_inclusive(|it| *it == b'\n').map(hashed).collect();
            lines.sort_unstable();
            lines
        });
        let bytes = match read {
            Some(bytes) => bytes,
            None if it.submodule => {
                let options = ["--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short"];
                let told = self.git(
                    &[&["diff"], &options[..], &[NO_SUBMODULE_TREES, base, "--", name]].concat(),
                );
                told.map(|it| it.stdout).unwrap_or_default()
            }
            None => {
                let stat = self.world.stat(&path).ok();
                let known = stat.map(|it| format!("{} {}", it.length, it.modified.millis()));
                known.unwrap_or_default().into_bytes()
            }
        };
        let from_base = match &lines {
            Some(lines) if it.new => u32::try_from(lines.len()).unwrap_or(u32::MAX),
            Some(_) | None => it.lines,
        };
        let digest = hex(&checksum(&[it.mode.as_bytes(), &bytes]));
        FileState { digest, lines, from_base }
    }

    /// A file that the agent wrote, with its text before the run.
    pub(super) fn written(&self, base: &str, path: &str, existed: bool) -> WrittenFile {
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).ok().filter(|it| it.len() <= WRITTEN_BYTES_MAX)
        };
        let path = self.root.join(path);
        let now = self.world.read(&path, WRITTEN_BYTES_MAX).ok().and_then(text);
        let name = path.strip_prefix(self.root).ok().filter(|_| existed && !base.is_empty());
        let before = name.and_then(|it| {
            let told = self.git(&["show", "--no-textconv", &format!("{base}:{}", it.display())])?;
            text(told.stdout).filter(|_| !told.truncated)
        });
        WrittenFile { before: before.unwrap_or_default(), now }
    }
}

fn hashed(line: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

/// What git says of a file that differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ChangedFile {
    /// Lines added and removed.
    lines: u32,
    /// Its mode, if only that changed.
    mode: String,
    submodule: bool,
    /// Whether git does not track it.
    new: bool,
}

/// Reads `git diff --raw --numstat -z`.
fn differing(told: &str) -> BTreeMap<String, ChangedFile> {
    let mut files: BTreeMap<String, ChangedFile> = BTreeMap::new();
    let mut parts = told.split('\0').filter(|it| !it.is_empty());
    while let Some(part) = parts.next() {
        if let Some(modes) = part.strip_prefix(':') {
            let Some(path) = parts.next() else { break };
            let mut words = modes.split(' ');
            let (old, new) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let file = files.entry(path.to_owned()).or_default();
            file.submodule = new == SUBMODULE;
            // A file that is new or gone has the mode 000000 on one side.
            let kept = old != "000000" && new != "000000";
            if kept && old != new {
                new.clone_into(&mut file.mode);
            }
            continue;
        }
        let mut columns = part.splitn(3, '\t');
        let mut count = || columns.next().and_then(|it| it.parse::<u32>().ok()).unwrap_or(0);
        let lines = count().saturating_add(count());
        if let Some(path) = columns.next() {
            files.entry(path.to_owned()).or_default().lines = lines;
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(files: &[(&str, &str)]) -> FileContent {
        let state = |text: &str| {
            let mut lines: Vec<u64> =
                text.as_bytes().split_inclusive(|it| *it == b'\n').map(hashed).collect();
            lines.sort_unstable();
            let from_base = u32::try_from(lines.len()).unwrap();
            FileState { digest: text.to_owned(), lines: Some(lines), from_base }
        };
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), state(text))).collect();
        FileContent { files, ..FileContent::default() }
    }

    #[test]
    fn a_turn_changed_what_differs_from_the_tree_before_it() {
        for (before, now, files, lines) in [
            (&[][..], &[("a", "1\n2\n")][..], "a", 2),
            (&[("a", "1\n2\n")], &[("a", "1\n2\n")], "", 0),
            (&[("a", "1\n2\n3\n")], &[("a", "1\nx\n3\n")], "a", 2),
            (&[("a", "1\n2\n")], &[("a", "2\n1\n")], "a", 1),
            (&[("a", "1\n"), ("b", "1\n")], &[("b", "1\n2\n")], "a b", 2),
        ] {
            let changes = content(now).since(&content(before));
            assert_eq!(
                (changes.files.join(" ").as_str(), changes.lines),
                (files, lines),
                "{now:?}"
            );
            assert_eq!(changes.moved, !files.is_empty());
        }
    }

    #[test]
    fn what_git_says_is_read() {
        let told = ":100644 100644 1 0 M\0a b.rs\0:100644 100755 1 0 M\0run.sh\0:160000 160000 1 0 M\0sub\0\
                    :000000 100644 0 0 A\0new\n1\0" .to_owned()
            + "3\t2\ta b.rs\0-\t-\trun.sh\x001\t1\tsub\x007\t0\tnew\n1\0";
        let found = differing(&told);
        let show: Vec<_> = found
            .iter()
            .map(|(path, it)| (path.as_str(), it.lines, it.mode.as_str(), it.submodule))
            .collect();
        assert_eq!(
            show,
            [
                ("a b.rs", 5, "", false),
                ("new\n1", 7, "", false),
                ("run.sh", 0, "100755", false),
                ("sub", 2, "", true)
            ]
        );
    }
}
