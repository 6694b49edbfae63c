//! Paths: the location that a written path resolves to, and whether it matches a glob of a policy.
//!
//! Contains: [`CallEnvironment`], [`ResolvedPath`], [`PathMatchers`], and file name patterns of the shell
//! (`.e[mn]*`).
//! Does not contain: access to the file system. The caller reads symbolic links and stores them in
//! [`CallEnvironment::real`].

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use self::own_program::OWN_PROGRAM;
use super::shell_text::ShellText;
use crate::glob::{PathGlob, word_matches};
use crate::path::in_shell;

mod own_program;

/// Where a call happens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["folder", "project", "home"]))]
pub struct CallEnvironment {
    /// Working directory of the agent.
    pub folder: String,
    /// Root directory of the project.
    pub project: String,
    /// Home directory of the user.
    pub home: String,
    /// Directories for temporary files.
    pub temporary: Vec<String>,
    /// File in which the client records the session. Empty if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub transcript: String,
    /// The running program. Empty if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// Resolved paths with symbolic links, by the unresolved path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub real: BTreeMap<String, LinkTarget>,
    /// Directories that a call may create and that do not exist.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub missing: BTreeSet<String>,
    /// Existing files whose content a call replaces.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub replaced: BTreeSet<String>,
    /// Globs one of whose files can be a link to a place outside.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub linked: BTreeSet<String>,
    /// Whether the file system ignores case.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub folds_case: bool,
    /// Whether `\` separates directories: the paths of the machine are those of Windows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_backslashes: bool,
    /// Whether git reports a work tree without changes, by directory.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub clean_trees: BTreeMap<String, bool>,
    /// Branch that is checked out in the project. Empty without one, `None` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// The target of a path that contains symbolic links.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LinkTarget {
    /// The path after the links of its directory are resolved. The last segment may still be a
    /// link.
    #[schemars(length(min = 1))]
    pub lies: String,
    /// The path after all links are resolved.
    #[schemars(length(min = 1))]
    pub leads: String,
}

/// A path as written, and the location that it resolves to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResolvedPath {
    /// As written, after the expansion of variables.
    pub written: String,
    /// Absolute path without `.` and `..`. `None` if it is unknown.
    pub absolute: Option<String>,
    /// Absolute path with its `..`, if it has any. Behind a symbolic link, `..` leads to another
    /// directory.
    pub back: Option<String>,
    /// Absolute path in lower case, if the file system ignores case.
    pub folded: Option<String>,
    /// Whether the end of the path is unknown. Then `absolute` ends with `…`.
    pub open: bool,
    /// Whether the shell expands the `*`, `?` and `[` of the path to file names.
    pub glob: bool,
    /// Whether the call affects a link and not its target: it deletes the link.
    pub itself: bool,
}

/// Globs for paths. A glob behind `!` excludes paths that the others match. Each glob is compiled
/// once, because it is compared with many paths.
#[derive(Debug)]
pub struct PathMatchers {
    wanted: Vec<Arc<PathMatcher>>,
    left_out: Vec<Arc<PathMatcher>>,
}

/// One glob for paths.
#[derive(Debug)]
struct PathMatcher {
    written: String,
    /// Whether the glob is also compared with paths as written. A path of another machine
    /// (`host:path`) contains a `:`.
    of_writing: bool,
    /// The part below the home directory, from the slash on: `/.ssh/*` for `~/.ssh/*`.
    below_home: Option<PathGlob>,
    /// The part below the project directory, from the slash on: `/src/*` for `./src/*`.
    below_project: Option<PathGlob>,
    /// The glob itself. A glob below the home directory is expanded to the usual home directories
    /// of other machines.
    globs: Vec<PathGlob>,
    /// The directories whose files the glob matches. Compiled for the first deletion.
    folders: OnceLock<Vec<PathGlob>>,
    /// The glob in lower case. Compiled if the file system ignores case.
    folded: OnceLock<Box<PathMatcher>>,
}

/// Usual home directories of other machines, as globs.
const HOMES: [&str; 3] = ["/home/*", "/Users/*", "/root"];

/// Expands a glob below the home directory to the usual home directories of other machines.
fn at_homes(glob: &str) -> Vec<String> {
    match below_home(glob) {
        Some(rest) => HOMES.iter().map(|it| format!("{it}{rest}")).collect(),
        None => vec![glob.to_owned()],
    }
}

/// Returns the part of a glob below the home directory, from the slash on.
fn below_home(glob: &str) -> Option<&str> {
    glob.strip_prefix('~').filter(|it| it.is_empty() || it.starts_with('/'))
}

/// Returns the part of a glob below the project directory, from the slash on.
fn below_project(glob: &str) -> Option<&str> {
    glob.strip_prefix('.').filter(|it| it.starts_with('/'))
}

impl PathMatchers {
    /// Compiles globs; `!` in front of a glob excludes its paths.
    pub fn new<'g>(globs: impl IntoIterator<Item = &'g str>) -> Self {
        Self::with_lists(globs, |_| None)
    }

    /// Compiles globs. An item for which `list` returns other matchers is replaced by them, with what they exclude. `!` in
    /// front of it excludes the paths that they match.
    pub fn with_lists<'g, 'm>(
        globs: impl IntoIterator<Item = &'g str>,
        list: impl Fn(&str) -> Option<&'m Self>,
    ) -> Self {
        let (mut wanted, mut left_out) = (Vec::new(), Vec::new());
        for item in globs {
            let (glob, side) = match item.strip_prefix('!') {
                Some(glob) => (glob, &mut left_out),
                None => (item, &mut wanted),
            };
            match list(glob) {
                None => side.push(Arc::new(PathMatcher::new(glob))),
                Some(named) => {
                    side.extend(named.wanted.iter().map(Arc::clone));
                    if !item.starts_with('!') {
                        left_out.extend(named.left_out.iter().map(Arc::clone));
                    }
                }
            }
        }
        Self { wanted, left_out }
    }

    /// Returns whether a path may match a glob and is not certainly excluded.
    #[must_use]
    pub fn fit(&self, place: &ResolvedPath, around: &CallEnvironment) -> bool {
        let paths = place.paths(around);
        self.wanted.iter().any(|it| it.may_be(place, &paths, around))
            && !self.left_out.iter().any(|it| it.is(place, &paths, around))
    }

    /// Returns whether a file of a glob may lie below a directory, or be the directory itself.
    #[must_use]
    pub fn may_lie_below(&self, tree: &ResolvedPath, around: &CallEnvironment) -> bool {
        let paths = tree.paths(around);
        let below = |it: &Arc<PathMatcher>| {
            paths.iter().any(|path| it.fits(path, around) || it.lies_below(path, tree.glob, around))
        };
        self.wanted.iter().any(below)
    }
}

impl PathMatcher {
    fn new(glob: &str) -> Self {
        let globs = at_homes(glob).iter().map(|it| PathGlob::new(it)).collect();
        let below_home = below_home(glob).map(PathGlob::new);
        let below_project = below_project(glob).map(PathGlob::new);
        let (written, of_writing) = (glob.to_owned(), glob.contains(':'));
        let (folders, folded) = (OnceLock::new(), OnceLock::new());
        Self { written, of_writing, below_home, below_project, globs, folders, folded }
    }

    /// Returns whether the files of the glob are deleted together with a directory.
    fn go_with(&self, folder: &str, is_pattern: bool, around: &CallEnvironment) -> bool {
        if self.written == OWN_PROGRAM {
            return around.holds_program(folder);
        }
        if let Some(rest) = below_project(&self.written) {
            return around.leads_below_project(rest, folder, is_pattern);
        }
        let folders = self.folders.get_or_init(|| {
            let whole = at_homes(&self.written);
            whole.iter().flat_map(|it| folders_of(it)).map(PathGlob::new).collect()
        });
        folders
            .iter()
            .any(|it| it.matches(folder) || (is_pattern && could_mean_folder(folder, it.written())))
    }

    /// Returns whether a file of the glob may lie below a directory. For a glob that begins at any
    /// directory, such as `**/.x/a`, only the directories that it names count: `.x`.
    fn lies_below(&self, path: &str, is_pattern: bool, around: &CallEnvironment) -> bool {
        if self.written == OWN_PROGRAM {
            return around.holds_program(path);
        }
        if let Some(rest) = below_home(&self.written) {
            let homes = [around.home.as_str(), around.led_to(&around.home)];
            return homes.into_iter().any(|home| {
                let glob = format!("{}{rest}", home.trim_end_matches('/'));
                leads_into(&glob, path, is_pattern)
            });
        }
        if let Some(rest) = below_project(&self.written) {
            return around.leads_below_project(rest, path, is_pattern);
        }
        if self.written.starts_with('/') {
            return leads_into(&self.written, path, is_pattern);
        }
        let named = self.written.match_indices('/').filter_map(|it| self.written.get(..it.0));
        let named = named.filter(|it| !it.is_empty() && !it.ends_with('*'));
        named.into_iter().any(|it| {
            PathGlob::new(it).matches(path) || (is_pattern && could_mean_folder(path, it))
        })
    }

    /// Returns whether a path matches the glob. A glob of temporary files, such as `/tmp/**`, matches no file of a project that
    /// lies in that directory.
    fn fits(&self, path: &str, around: &CallEnvironment) -> bool {
        let is_own =
            || around.is_glob_of_temporary(&self.written) && around.is_of_temporary_project(path);
        self.names(path, around) && !is_own()
    }

    fn names(&self, path: &str, around: &CallEnvironment) -> bool {
        if self.written == OWN_PROGRAM {
            return around.is_program(path);
        }
        if let Some(rest) = &self.below_project {
            let matches = |it: &str| rest.matches(it);
            return rest.may_match(path) && around.below_project(path).is_some_and(matches);
        }
        // If the home directory is unknown, a shell expands `~/x` to `/x`.
        let below = |home: &str, glob: &PathGlob| {
            let rest = path.strip_prefix(home.trim_end_matches('/'));
            rest.is_some_and(|it| {
                if glob.written().is_empty() { it.is_empty() } else { glob.matches(it) }
            })
        };
        let homes = || [around.home.as_str(), around.led_to(&around.home)];
        let at_a_known_home = || self.globs.iter().any(|it| it.matches(path));
        self.below_home.as_ref().map_or_else(at_a_known_home, |rest| {
            // Check the part below the home directory first: it is the same for every home
            // directory and rarely matches.
            rest.may_match(path)
                && (at_a_known_home() || homes().iter().any(|home| below(home, rest)))
        })
    }

    /// Returns whether a path may match the glob, as resolved or as written. A file name pattern of
    /// the shell matches if it could expand to a file of the glob.
    fn may_be(&self, place: &ResolvedPath, paths: &[&str], around: &CallEnvironment) -> bool {
        let fits = |path: &str| {
            self.fits(path, around)
                || (place.glob && self.could_be_meant(path, place.itself, around))
        };
        let folded = || {
            let path = place.folded.as_deref()?;
            let glob =
                self.folded.get_or_init(|| Box::new(Self::new(&self.written.to_lowercase())));
            let own = ResolvedPath { folded: None, ..place.clone() };
            Some(glob.may_be(&own, &[path], around))
        };
        paths.iter().any(|it| fits(it) || (place.itself && self.go_with(it, place.glob, around)))
            || folded().unwrap_or(false)
            || (paths.is_empty() && self.may_be_below_project(place))
            || ((paths.is_empty() || self.of_writing) && fits(&without_back(&place.written)))
    }

    /// Returns whether a path would match the glob in the project directory, if its directory is unknown.
    fn may_be_below_project(&self, place: &ResolvedPath) -> bool {
        let written = || format!("/{}", without_back(&place.written));
        let is_relative = !place.written.starts_with(['/', '~']);
        is_relative && self.below_project.as_ref().is_some_and(|it| it.matches(&written()))
    }

    /// Returns whether a path certainly matches the glob. Some file of a directory (`/x/…`) does if all of them do.
    fn is(&self, place: &ResolvedPath, paths: &[&str], around: &CallEnvironment) -> bool {
        let is_certain = !place.open || (place.is_below() && self.written.ends_with("/**"));
        is_certain && !paths.is_empty() && paths.iter().all(|it| self.fits(it, around))
    }

    /// Returns whether a file name pattern could expand to a file of the glob, in any home
    /// directory. All hidden files of the project are meant only if they are deleted: `rm -rf .[!.]*`.
    fn could_be_meant(&self, path: &str, is_deleted: bool, around: &CallEnvironment) -> bool {
        let hidden = is_deleted && around.in_project(path);
        let could_mean = |pattern: &str, glob: &str| could_be_file(pattern, glob, hidden);
        if let Some(rest) = below_project(&self.written) {
            let mut roots = around.roots();
            return roots
                .any(|it| could_mean(path, &format!("{}{rest}", it.trim_end_matches('/'))));
        }
        match below_home(&self.written) {
            Some(rest) => {
                let own = [around.led_to(&around.home), around.home.as_str()];
                let mut homes = own.into_iter().chain(HOMES);
                homes.any(|home| could_mean(path, &format!("{}{rest}", home.trim_end_matches('/'))))
            }
            None => could_mean(path, &self.written),
        }
    }
}

/// Returns whether a directory is above the files of an absolute glob, or below its `**`.
fn leads_into(glob: &str, path: &str, is_pattern: bool) -> bool {
    let mut wanted = glob.split('/').filter(|it| !it.is_empty());
    let mut steps = path.split('/').filter(|it| !it.is_empty());
    loop {
        match (steps.next(), wanted.next()) {
            (None, Some(_)) | (Some(_), Some(ANY_FOLDERS)) => return true,
            (Some(step), Some(want)) => {
                let could_be = is_pattern && is_wild(step) && could_be_named(step, want);
                if !could_be && !word_matches(want, step) {
                    return false;
                }
            }
            (_, None) => return false,
        }
    }
}

/// Returns the directories whose files a glob matches: `a/b` for `a/b/*.pem`, `.x` for `.x/**`.
fn folders_of(glob: &str) -> Vec<&str> {
    let is_open = |step: &str| step.contains(['*', '?', '[', '{']);
    let ends = glob.match_indices('/').filter(|(at, _)| {
        let (before, after) = (glob.get(..*at), glob.get(at + 1..));
        let last = before.and_then(|it| it.rsplit('/').next()).unwrap_or_default();
        let next = after.and_then(|it| it.split('/').next()).unwrap_or_default();
        !last.is_empty() && !is_open(last) && is_open(next)
    });
    ends.filter_map(|(at, _)| glob.get(..at)).collect()
}

/// Returns a path with the names under which Windows looks for its files: it ignores dots and blanks at the end of a name, and
/// `name::$DATA` is the content of the file. `C:name` is taken for a file of the working directory.
fn named_by_windows(path: &str) -> String {
    let steps = path.split(['/', '\\']).enumerate().map(|(at, step)| {
        let step = match step.split_once(':') {
            Some((drive, rest)) if at == 0 && drive.len() == 1 => rest,
            Some((name, _stream)) => name,
            None => step,
        };
        match step.trim_end_matches(['.', ' ']) {
            "" => step,
            name => name,
        }
    });
    steps.collect::<Vec<&str>>().join("/")
}

/// Whether a path is one of Windows.
fn is_of_windows(path: &str) -> bool {
    matches!(in_shell(path), Cow::Owned(_))
}

/// Maximum number of symbolic links that are followed.
const LINKS_MAX: usize = 8;

impl CallEnvironment {
    /// Directories for temporary files on every machine.
    pub const TEMPORARY: [&str; 4] = ["/tmp", "/var/tmp", "/private/tmp", "/private/var/tmp"];

    /// Builds the environment from the paths of the operating system. Windows paths are converted
    /// to the form that shells use.
    #[must_use]
    pub fn new(folder: &str, project: &str, home: &str, temporary: &[String]) -> Self {
        let written = |it: &str| in_shell(it).into_owned();
        Self {
            folder: written(folder),
            project: written(project),
            home: written(home),
            temporary: temporary.iter().map(|it| written(it)).collect(),
            has_backslashes: cfg!(windows) || is_of_windows(folder) || is_of_windows(project),
            ..Self::default()
        }
    }

    /// Sets the file in which the client records the session.
    #[must_use]
    pub fn with_transcript(self, transcript: &str) -> Self {
        Self { transcript: in_shell(transcript).into_owned(), ..self }
    }

    /// Resolves a path from a directory. `None` if the directory is unknown.
    #[must_use]
    pub fn place(&self, path: &ShellText, folder: Option<&str>) -> ResolvedPath {
        let written = path.text.clone();
        let known = path.known_part();
        let (known, open) = match path.is_known() {
            true => (known, false),
            // An unknown end is assumed to be below the known directory.
            false => match known.rfind('/') {
                Some(end) => (known.get(..=end).unwrap_or(known), true),
                None => ("", true),
            },
        };
        let whole = match known {
            "" => None,
            known if path.quoted_home => self.whole(&format!("./{known}"), folder),
            known => self.whole(known, folder),
        };
        let absolute = whole.as_deref().map(normal);
        let back = whole.filter(|it| !open && it.contains("/../"));
        // An unknown path below the directory.
        let absolute = absolute.map(|it| if open { normal(&format!("{it}/\u{2026}")) } else { it });
        let folds_case = self.folds_case || self.has_backslashes || is_of_windows(known);
        let folded = absolute.as_deref().filter(|_| folds_case).map(|it| self.folded(it));
        ResolvedPath { written, absolute, back, folded, open, glob: path.glob, itself: false }
    }

    /// Returns a path in lower case, except the home directory at its beginning.
    #[must_use]
    pub fn folded(&self, path: &str) -> String {
        let (lower, home) = (path.to_lowercase(), self.home.trim_end_matches('/'));
        match lower.strip_prefix(&home.to_lowercase()) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
            _ => lower,
        }
    }

    /// Like [`place`](Self::place), for a path that is fully known.
    #[must_use]
    pub fn known_place(&self, path: &str, folder: Option<&str>) -> ResolvedPath {
        self.place(&ShellText::known(path), folder)
    }

    /// Like [`in_shell`]. In Windows, each spelling of a name becomes one.
    fn in_shell<'p>(&self, path: &'p str) -> Cow<'p, str> {
        if !self.has_backslashes {
            return in_shell(path);
        }
        let is_of_system = path.starts_with("//?/") || path.starts_with("//./");
        let path = if is_of_system { path.replace('/', "\\").into() } else { Cow::Borrowed(path) };
        named_by_windows(&in_shell(&path)).into()
    }

    /// Returns an absolute path. `..` is not resolved.
    fn whole(&self, path: &str, folder: Option<&str>) -> Option<String> {
        let path = &*self.in_shell(path.strip_prefix("file://").unwrap_or(path));
        Some(match path.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                format!("{}{rest}", self.home)
            }
            Some("+") => folder?.to_owned(),
            Some(rest) if !rest.starts_with('-') => format!("/home/{rest}"),
            _ if path.starts_with('/') => path.to_owned(),
            _ => format!("{}/{path}", folder?),
        })
    }

    /// Returns whether a path is the project directory or is below it. The home directory and the
    /// directories above it never count.
    #[must_use]
    pub fn in_project(&self, path: &str) -> bool {
        let own = [&self.project, &self.folder].into_iter();
        let mut roots = own.flat_map(|it| [it.as_str(), self.led_to(it)]);
        roots.any(|it| within(path, it) && !self.is_of_home(path, it))
    }

    /// Returns the project directory, also behind links.
    fn roots(&self) -> impl Iterator<Item = &str> {
        [self.project.as_str(), self.led_to(&self.project)].into_iter().filter(|it| !it.is_empty())
    }

    /// Returns the part of a path below the project directory, from the slash on: empty for the directory
    /// itself. `None` for another path.
    #[must_use]
    pub fn below_project<'p>(&self, path: &'p str) -> Option<&'p str> {
        let below = |root: &str| {
            let rest = path.strip_prefix(root.trim_end_matches('/'))?;
            (rest.is_empty() || rest.starts_with('/')).then_some(rest)
        };
        let mut roots = self.roots();
        roots.find_map(below).or_else(|| {
            let folded = || self.roots().map(|it| self.folded(it)).find_map(|it| below(&it));
            self.folds_case.then(folded).flatten()
        })
    }

    /// Returns whether a directory is above files of a glob below the project, or below its `**`.
    fn leads_below_project(&self, rest: &str, path: &str, is_pattern: bool) -> bool {
        match self.below_project(path) {
            Some(below) => leads_into(rest, below, is_pattern),
            None => self.roots().any(|it| within(it, all_of(path))),
        }
    }

    /// Returns whether a path below a root belongs to the home directory and not to a project. If
    /// the root is above the home directory, as `/` in a container, all of the home directory does.
    /// If the root is the home directory, it does with the directories directly in it.
    fn is_of_home(&self, path: &str, root: &str) -> bool {
        let path = all_of(path);
        [self.home.as_str(), self.led_to(&self.home)].into_iter().any(|home| {
            let home = home.trim_end_matches('/');
            let below = path.strip_prefix(home).map(|it| it.trim_start_matches('/'));
            let is_own = match root.trim_end_matches('/') == home {
                true => below.is_some_and(|it| !it.contains('/')),
                false => within(home, root) && within(path, home),
            };
            !home.is_empty() && (is_own || (within(home, root) && within(home, path)))
        })
    }

    /// Returns whether a path is the directory of the project itself.
    #[must_use]
    pub fn is_project(&self, path: &str) -> bool {
        [self.project.as_str(), self.led_to(&self.project)].contains(&path)
    }

    /// Returns whether a glob is below a directory for temporary files, and does not name the project.
    fn is_glob_of_temporary(&self, glob: &str) -> bool {
        let mut folders = self.temporary.iter().map(String::as_str);
        folders.any(|it| within(glob, it) || within(glob, self.led_to(it)))
            && !self.roots().any(|it| within(glob, it))
    }

    /// Returns whether a path is in the project, and the project lies in a directory for temporary files.
    fn is_of_temporary_project(&self, path: &str) -> bool {
        self.roots().any(|it| within(path, it) && self.is_temporary(it))
    }

    /// Returns the target of a directory of the environment.
    fn led_to<'a>(&'a self, folder: &'a str) -> &'a str {
        self.real.get(folder).map_or(folder, |it| &it.leads)
    }

    /// Returns whether a path is below a directory for temporary files. A home directory in such a
    /// directory (as in some containers) is not temporary.
    #[must_use]
    pub fn is_temporary(&self, path: &str) -> bool {
        let below = |folder: &str| within(path, folder) && path != folder;
        let of_home = within(path, &self.home) || within(&self.home, all_of(path));
        let holds_home = |folder: &str| within(&self.home, folder) && self.home != folder;
        let mut folders = self.temporary.iter().map(String::as_str);
        folders.any(|it| (below(it) || below(self.led_to(it))) && !(of_home && holds_home(it)))
    }

    /// Returns whether a path is the home directory or is below it.
    #[must_use]
    pub fn is_home(&self, path: &str) -> bool {
        let home = self.home.as_str();
        !home.is_empty() && [home, self.led_to(home)].iter().any(|it| within(path, it))
    }

    /// Returns whether a path is neither in the project nor temporary.
    #[must_use]
    pub fn is_outside(&self, path: &str) -> bool {
        !self.in_project(path) && !self.is_temporary(path)
    }

    /// Returns whether a path may be the transcript of the session, or a deleted directory that
    /// contains it.
    #[must_use]
    pub fn is_transcript(&self, place: &ResolvedPath) -> bool {
        let transcript = self.transcript.as_str();
        if transcript.is_empty() {
            return false;
        }
        let folder = transcript.rsplit_once('/').map_or("", |it| it.0);
        let holds = |path: &str| {
            path == transcript
                || path == self.led_to(transcript)
                || (place.itself && (within(transcript, path) || within(folder, all_of(path))))
                || (place.glob && could_mean(path, transcript))
                || (place.open && path.rsplit_once('/').is_some_and(|it| it.0 == folder))
        };
        let folded = place.folded.as_deref().is_some_and(|it| {
            let transcript = self.folded(transcript);
            it == transcript || (place.itself && within(&transcript, it))
        });
        folded || place.paths(self).into_iter().any(holds)
    }

    /// Returns whether a path is the project, contains it, or is a pattern for all of its files.
    #[must_use]
    pub fn holds_project(&self, path: &str) -> bool {
        let path = all_of(path);
        within(&self.project, path)
            || within(self.led_to(&self.project), path)
            || (self.stands_alone() && within(&self.folder, path))
    }

    /// Returns whether the working directory is outside of the project. Then it counts as a project
    /// of its own.
    fn stands_alone(&self) -> bool {
        let folder = self.folder.as_str();
        let in_project =
            within(folder, &self.project) || within(folder, self.led_to(&self.project));
        !folder.is_empty() && !in_project && !self.is_temporary(folder)
    }
}

/// Resolves the `..` of a path from an unknown directory, without access to links.
fn without_back(path: &str) -> Cow<'_, str> {
    if path.starts_with('/') || !path.contains("/..") {
        return path.into();
    }
    normal(path).trim_start_matches('/').to_owned().into()
}

/// Returns the directory if a path means all of its files (`/w/*`), otherwise the path itself.
fn all_of(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", all)) if is_for_most(all) => "/",
        Some((folder, all)) if is_for_most(all) => folder,
        _ => path,
    }
}

impl ResolvedPath {
    /// Returns whether this is some file of a directory that is known.
    fn is_below(&self) -> bool {
        let folder = self.written.strip_suffix("/\u{2026}");
        folder.is_some_and(|it| !it.contains(['$', '`', '(']))
    }

    /// Returns all absolute forms of the path: as written, and behind symbolic links.
    fn paths<'a>(&'a self, around: &'a CallEnvironment) -> Vec<&'a str> {
        let Some(absolute) = self.absolute.as_deref() else { return Vec::new() };
        let real = around.real.get(absolute);
        let behind = real.into_iter().flat_map(|it| {
            [Some(it.lies.as_str()), Some(it.leads.as_str()).filter(|_| !self.itself)]
        });
        std::iter::once(absolute).chain(behind.flatten()).collect()
    }

    /// Returns the path that is accessed in the end. `None` if it is unknown.
    #[must_use]
    pub fn real<'a>(&'a self, around: &'a CallEnvironment) -> Option<&'a str> {
        self.paths(around).last().copied()
    }
}

/// Follows the symbolic links that the line created. A directory of the path may be a link, too.
/// `None` if there are too many.
#[must_use]
pub(super) fn follow_links(mut path: String, links: &BTreeMap<String, String>) -> Option<String> {
    for _ in 0..LINKS_MAX {
        let below =
            |link: &str| path.strip_prefix(link).filter(|it| it.is_empty() || it.starts_with('/'));
        let Some((rest, target)) =
            links.iter().find_map(|(link, target)| Some((below(link)?, target)))
        else {
            return Some(path);
        };
        path = normal(&format!("{target}{rest}"));
    }
    None
}

/// Returns whether a path is a directory or is below it.
fn within(path: &str, folder: &str) -> bool {
    if folder.is_empty() {
        return false;
    }
    folder == "/"
        || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Normalizes an absolute path: removes `.`, `..` and empty segments.
#[must_use]
pub fn normal(path: &str) -> String {
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop();
            }
            step => steps.push(step),
        }
    }
    format!("/{}", steps.join("/"))
}

/// Minimum number of letters in the last segment of a pattern: `.e*` is specific, `*` matches any
/// file.
const LETTERS_MIN: usize = 2;
/// Minimum number of letters in a directory that is meant as a whole: `.pol*`, but not `.ca*`.
const FOLDER_LETTERS_MIN: usize = 4;
/// Linux opens no longer path (`PATH_MAX`).
const PATH_BYTES_MAX: usize = 4_096;
/// The segment of a glob that matches any directories.
const ANY_FOLDERS: &str = "**";

/// Returns whether a file name pattern could expand to a file of a glob: `.e*` for `.env`,
/// `/home/x/.ss*/id_rsa` for `**/.ssh/id_rsa`. A relative pattern may begin at any segment of the
/// glob.
pub(super) fn could_mean(pattern: &str, glob: &str) -> bool {
    could_be_file(pattern, glob, false)
}

/// Like [`could_mean`]. `hidden` says whether a pattern of all hidden files means each of them.
fn could_be_file(pattern: &str, glob: &str, hidden: bool) -> bool {
    if !is_wild(pattern) || pattern.len() > PATH_BYTES_MAX {
        return false;
    }
    let mut wanted: Vec<&str> = glob.split('/').filter(|it| !it.is_empty()).collect();
    if !says_enough(pattern, &wanted, hidden) {
        return false;
    }
    if !glob.starts_with('/') && !glob.starts_with(ANY_FOLDERS) {
        wanted.insert(0, ANY_FOLDERS);
    }
    let steps: Vec<&str> = pattern.split('/').filter(|it| !it.is_empty()).collect();
    let starts = if pattern.starts_with('/') { 1 } else { wanted.len() };
    let mut ends = (0..starts).filter_map(|at| wanted.get(at..));
    // The `**` and `*` at the end of a glob match anything, so a segment before them must match.
    ends.any(|it| it.iter().any(|it| letters(it) > 0) && leads_along(&steps, it))
}

/// Returns whether a file name pattern could expand to a directory of a glob.
pub(super) fn could_mean_folder(pattern: &str, glob: &str) -> bool {
    let last = pattern.rsplit('/').next().unwrap_or_default();
    letters(last) >= FOLDER_LETTERS_MIN && could_mean(pattern, glob)
}

/// Returns whether the last segment of a pattern is specific enough, or a directory that could be one of the glob.
fn says_enough(pattern: &str, wanted: &[&str], hidden: bool) -> bool {
    let (folders, last) = pattern.rsplit_once('/').unwrap_or(("", pattern));
    let is_specific = |it: &str| is_telling(it) && (hidden || !is_for_hidden(it));
    let by_last = if is_wild(last) { is_specific(last) } else { letters(last) >= LETTERS_MIN };
    let is_wanted = |step: &str| wanted.iter().any(|it| letters(it) > 0 && could_be(step, it));
    let by_folder = |it: &str| is_wild(it) && letters(it) >= FOLDER_LETTERS_MIN && is_wanted(it);
    by_last || folders.split('/').any(by_folder)
}

/// Returns whether the segments of a pattern could be those of a glob. Only the last `**` is
/// retried, so the time is linear in the length of the path.
fn leads_along(steps: &[&str], wanted: &[&str]) -> bool {
    let names_file = wanted.last().is_some_and(|it| letters(it) > 0);
    // Below a directory every file matches, so the segment for that directory must be specific.
    let leads_to = |step: &str, wanted: &str| {
        let says_nothing = is_wild(step) && letters(step) < LETTERS_MIN && letters(wanted) > 0;
        could_be(step, wanted) && (names_file || !says_nothing)
    };
    let (mut step, mut want) = (0_usize, 0_usize);
    let mut again: Option<(usize, usize)> = None;
    while let Some(next) = steps.get(step) {
        match (wanted.get(want), again) {
            (Some(&ANY_FOLDERS), _) => {
                want = want.saturating_add(1);
                again = Some((want, step));
            }
            (Some(first), _) if leads_to(next, first) => {
                (step, want) = (step.saturating_add(1), want.saturating_add(1));
            }
            (_, Some((behind, from))) => {
                let from = from.saturating_add(1);
                (step, want, again) = (from, behind, Some((behind, from)));
            }
            (_, None) => return false,
        }
    }
    wanted.get(want..).is_some_and(|it| it.iter().all(|it| *it == ANY_FOLDERS))
}

/// Returns whether a segment of a pattern could match a segment of a glob. Two patterns must be
/// equal.
fn could_be(step: &str, wanted: &str) -> bool {
    if !is_wild(step) {
        return word_matches(wanted, step);
    }
    // `*` does not match a name that begins with a dot.
    let is_hidden = wanted.starts_with('.') && !step.starts_with(['.', '[']);
    let is_name = !wanted.contains(['*', '?', '{']) && !is_hidden;
    step == wanted || wanted == "*" || (is_name && could_be_named(step, wanted))
}

/// Returns whether a segment is specific: `*`, `*.yml`, and `*.[ch]` usually mean ordinary files.
fn is_telling(step: &str) -> bool {
    let ending = step.strip_prefix("*.");
    let is_part = |it: u8| it.is_ascii_alphanumeric() || b"[]!^-*?".contains(&it);
    let is_ending = ending.is_some_and(|it| it.bytes().all(is_part));
    is_wild(step) && letters(step) >= LETTERS_MIN && !is_ending
}

/// Returns whether a segment matches all hidden files: `.[!.]*`, `.??*`.
fn is_for_hidden(step: &str) -> bool {
    let is_any = |it| match it {
        GlobToken::Any | GlobToken::One => true,
        GlobToken::OneOf(set) => matches!(set, b"!." | b"^."),
        GlobToken::Letter(letter) => letter == b'.',
    };
    step.contains('*') && signs(step).all(is_any)
}

/// No system has longer names (`NAME_MAX`). A longer segment is assumed to match any name.
const NAME_BYTES_MAX: usize = 255;

/// Returns the number of letters in a segment; a bracket expression counts as one.
pub(super) fn letters(step: &str) -> usize {
    if step.len() > NAME_BYTES_MAX {
        return step.len();
    }
    signs(step).filter(|it| matches!(it, GlobToken::Letter(_) | GlobToken::OneOf(_))).count()
}

/// Returns whether a segment matches most names: `*`, `.*`, `[a-z]*`, `[!.]*`.
pub(super) fn is_for_most(step: &str) -> bool {
    let of_letters = |set: &[u8]| {
        let mut ranges = set.windows(3).filter(|it| it.get(1) == Some(&b'-'));
        ranges.any(|it| it.first().is_some_and(u8::is_ascii_alphabetic))
    };
    let is_broad = |it| match it {
        GlobToken::Any | GlobToken::One => true,
        GlobToken::OneOf(set) => {
            is_left_out(set) || of_letters(set) || (has_class(set) && set != b"[:digit:]")
        }
        GlobToken::Letter(_) => false,
    };
    let step = step.strip_prefix('.').unwrap_or(step);
    step.contains('*') && step.len() <= NAME_BYTES_MAX && signs(step).all(is_broad)
}

/// Returns whether a segment is a pattern.
pub(super) fn is_wild(step: &str) -> bool {
    step.contains(['*', '?', '['])
}

/// One token of a file name pattern.
#[derive(Debug, Clone, Copy)]
enum GlobToken<'p> {
    /// `*`
    Any,
    /// `?`
    One,
    /// The content of a bracket expression: `[ab]`, `[a-z]`, `[!ab]`.
    OneOf(&'p [u8]),
    Letter(u8),
}

/// Returns the tokens of a segment.
fn signs(step: &str) -> impl Iterator<Item = GlobToken<'_>> {
    let mut rest = step.as_bytes();
    std::iter::from_fn(move || {
        let (sign, behind) = GlobToken::first_of(rest)?;
        rest = behind;
        Some(sign)
    })
}

impl<'p> GlobToken<'p> {
    /// Returns the first token of a pattern, and the rest.
    fn first_of(pattern: &'p [u8]) -> Option<(Self, &'p [u8])> {
        let (first, behind) = pattern.split_first()?;
        Some(match first {
            b'*' => (Self::Any, behind),
            b'?' => (Self::One, behind),
            b'[' => match set_of(behind) {
                Some((set, behind)) => (Self::OneOf(set), behind),
                None => (Self::Letter(b'['), behind),
            },
            letter => (Self::Letter(*letter), behind),
        })
    }

    /// Returns whether the token may match a letter.
    fn takes(self, letter: u8) -> bool {
        match self {
            Self::Any | Self::One => true,
            Self::Letter(own) => own == letter,
            Self::OneOf(set) => is_in(set, letter),
        }
    }
}

/// Returns the content of a bracket expression, and the rest. In `[]ab]` and `[!]ab]` the first
/// closing bracket is a letter.
fn set_of(behind: &[u8]) -> Option<(&[u8], &[u8])> {
    memchr::memrchr(b']', behind)?; // Fast path: most segments have no brackets.
    let mut at = usize::from(is_left_out(behind));
    at += usize::from(behind.get(at) == Some(&b']'));
    while *behind.get(at)? != b']' {
        let rest = behind.get(at..)?;
        // In `[[:alpha:]]`, `[[=e=]]` and `[[.e.]]` the inner bracket does not end the expression.
        let class = match rest {
            [b'[', sign @ (b':' | b'=' | b'.'), ..] => memchr::memmem::find(rest, &[*sign, b']']),
            _ => None,
        };
        at += class.map_or(1, |it| it + 2);
    }
    Some((behind.get(..at)?, behind.get(at + 1..)?))
}

/// Returns whether a bracket expression is negated.
fn is_left_out(set: &[u8]) -> bool {
    set.starts_with(b"!") || set.starts_with(b"^")
}

/// Returns whether a bracket expression contains a class: `[:alpha:]`, `[=e=]`.
fn has_class(set: &[u8]) -> bool {
    set.windows(2).any(|it| matches!(it, b"[:" | b"[=" | b"[."))
}

/// Returns whether a bracket expression may match a letter. Classes and negated expressions match
/// every letter: the `!` may have been quoted, and then it is a letter.
fn is_in(set: &[u8], letter: u8) -> bool {
    if is_left_out(set) || has_class(set) {
        return true;
    }
    let mut rest = set;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        let is_listed = match behind {
            [b'-', last, after @ ..] => {
                rest = after;
                (*first..=*last).contains(&letter)
            }
            _ => *first == letter,
        };
        if is_listed {
            return true;
        }
    }
    false
}

/// Returns whether a segment could match a name. Only the last `*` is retried.
pub(super) fn could_be_named(step: &str, name: &str) -> bool {
    if step.len() > NAME_BYTES_MAX {
        return true;
    }
    let (mut pattern, mut rest) = (step.as_bytes(), name.as_bytes());
    let mut again: Option<(&[u8], &[u8])> = None;
    loop {
        let (sign, behind) = match GlobToken::first_of(pattern) {
            Some((GlobToken::Any, behind)) => {
                (pattern, again) = (behind, Some((behind, rest)));
                continue;
            }
            Some((sign, behind)) => (Some(sign), behind),
            None => (None, pattern),
        };
        match (sign, rest.split_first()) {
            (None, None) => return true,
            (Some(sign), Some((letter, after))) if sign.takes(*letter) => {
                (pattern, rest) = (behind, after);
            }
            _ => match again.and_then(|(behind, from)| Some((behind, from.get(1..)?))) {
                Some((behind, from)) => {
                    (pattern, rest, again) = (behind, from, Some((behind, from)));
                }
                None => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests;
