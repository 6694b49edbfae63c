//! Paths: the location that a written path resolves to, and whether it matches a glob of a policy.
//!
//! Contains: [`CallEnvironment`], [`ResolvedPath`], [`PathMatchers`], and file name patterns of the shell
//! (`.e[mn]*`).
//! Does not contain: access to the file system. The caller reads symbolic links and stores them in
//! [`CallEnvironment::real`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::super::glob::{PathGlob, word_matches};
use super::words::Text;
use crate::path::in_shell;

/// Where a call happens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Surroundings {
    /// The folder that the agent works in.
    pub folder: String,
    /// The project's folder.
    pub project: String,
    /// The user's home.
    pub home: String,
    /// Folders for temporary files.
    pub temporary: Vec<String>,
    /// The file in which the client records the session, empty if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub transcript: String,
    /// Where paths lead that have symbolic links of the disk in them, by themselves.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub real: BTreeMap<String, Real>,
    /// Whether the file system takes letters of both cases for the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub folds_case: bool,
    /// Whether git reports no change in a work tree, by the folder that was asked about.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub clean_trees: BTreeMap<String, bool>,
}

/// Where a path leads that has symbolic links in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Real {
    /// The place itself, the links of its folder followed.
    pub lies: String,
    /// What it leads to, where it is a link itself.
    pub leads: String,
}

/// A path as it was written, and the place it leads to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// As it was written, its values put in.
    pub written: String,
    /// From the root on, without `.` and `..`; nothing where it cannot be known.
    pub absolute: Option<String>,
    /// The same with its `..`, where it has some: behind a link they lead elsewhere.
    pub back: Option<String>,
    /// The same in small letters, where the file system takes letters of both cases for the same.
    pub folded: Option<String>,
    /// Whether its end cannot be known: then `absolute` ends in `…`.
    pub open: bool,
    /// Whether the shell would put names of files in the place of its `*` and `?`.
    pub glob: bool,
    /// Whether a link is meant and not what it leads to: it is deleted.
    pub itself: bool,
}

/// Globs over places, of which those behind `!` leave out what the others mean. They are held against
/// many places, so each is prepared once.
#[derive(Debug)]
pub struct PlaceGlobs {
    wanted: Vec<PlaceGlob>,
    left_out: Vec<PlaceGlob>,
}

/// One glob over places.
#[derive(Debug)]
struct PlaceGlob {
    written: String,
    /// Whether it is held against paths as they are written, too: those of another machine have a `:`.
    of_writing: bool,
    /// What stands in it below the home, from the slash on.
    below_home: Option<PathGlob>,
    /// The glob itself, or that of the home at every home that other machines may have.
    globs: Vec<PathGlob>,
    /// The folders whose files it means; made where something is deleted.
    folders: OnceLock<Vec<PathGlob>>,
    /// The same glob in small letters; made where the file system takes both cases for the same.
    folded: OnceLock<Box<PlaceGlob>>,
}

/// Homes of other machines, as globs.
const HOMES: [&str; 3] = ["/home/*", "/Users/*", "/root"];

/// A glob, or that below a home at every home that other machines may have.
fn at_homes(glob: &str) -> Vec<String> {
    match below_home(glob) {
        Some(rest) => HOMES.iter().map(|it| format!("{it}{rest}")).collect(),
        None => vec![glob.to_owned()],
    }
}

/// What stands in a glob below the home, from the slash on.
fn below_home(glob: &str) -> Option<&str> {
    glob.strip_prefix('~').filter(|it| it.starts_with('/'))
}

impl PlaceGlobs {
    /// The globs as they are written.
    pub fn new<'g>(globs: impl IntoIterator<Item = &'g str>) -> Self {
        let (mut wanted, mut left_out) = (Vec::new(), Vec::new());
        for glob in globs {
            match glob.strip_prefix('!') {
                Some(glob) => left_out.push(PlaceGlob::new(glob)),
                None => wanted.push(PlaceGlob::new(glob)),
            }
        }
        Self { wanted, left_out }
    }

    /// Whether a place could be one of them, and can be none of those that are left out.
    #[must_use]
    pub fn fit(&self, place: &Place, around: &Surroundings) -> bool {
        let paths = place.paths(around);
        self.wanted.iter().any(|it| it.may_be(place, &paths, around))
            && !self.left_out.iter().any(|it| it.is(place, &paths, around))
    }
}

impl PlaceGlob {
    fn new(glob: &str) -> Self {
        let globs = at_homes(glob).iter().map(|it| PathGlob::new(it)).collect();
        let below_home = below_home(glob).map(PathGlob::new);
        let (written, of_writing) = (glob.to_owned(), glob.contains(':'));
        let (folders, folded) = (OnceLock::new(), OnceLock::new());
        Self { written, of_writing, below_home, globs, folders, folded }
    }

    /// Whether its files lie in a folder: they go with it.
    fn go_with(&self, folder: &str, is_pattern: bool) -> bool {
        let folders = self.folders.get_or_init(|| {
            let whole = at_homes(&self.written);
            whole.iter().flat_map(|it| folders_of(it)).map(PathGlob::new).collect()
        });
        folders
            .iter()
            .any(|it| it.matches(folder) || (is_pattern && could_mean_folder(folder, it.written())))
    }

    /// Whether it fits a path.
    fn fits(&self, path: &str, around: &Surroundings) -> bool {
        // Where no home is known, `~/x` is read as `/x`, by the shell's own rule.
        let below = |home: &str, glob: &PathGlob| {
            path.strip_prefix(home.trim_end_matches('/')).is_some_and(|it| glob.matches(it))
        };
        let homes = || [around.home.as_str(), around.led_to(&around.home)];
        let at_a_known_home = || self.globs.iter().any(|it| it.matches(path));
        self.below_home.as_ref().map_or_else(at_a_known_home, |rest| {
            // What stands below the home is there wherever that is, and mostly it is not.
            rest.may_match(path)
                && (at_a_known_home() || homes().iter().any(|home| below(home, rest)))
        })
    }

    /// Whether a place could be meant by it: by where it leads or by how it is written. A pattern of
    /// the shell matches where a file of the glob could be meant by it.
    fn may_be(&self, place: &Place, paths: &[&str], around: &Surroundings) -> bool {
        let fits = |path: &str| {
            self.fits(path, around) || (place.glob && self.could_be_meant(path, around))
        };
        let folded = || {
            let path = place.folded.as_deref()?;
            let glob =
                self.folded.get_or_init(|| Box::new(Self::new(&self.written.to_lowercase())));
            let own = Place { folded: None, ..place.clone() };
            Some(glob.may_be(&own, &[path], around))
        };
        paths.iter().any(|it| fits(it) || (place.itself && self.go_with(it, place.glob)))
            || folded().unwrap_or(false)
            || ((paths.is_empty() || self.of_writing) && fits(&without_back(&place.written)))
    }

    /// Whether a place can only be a file of it.
    fn is(&self, place: &Place, paths: &[&str], around: &Surroundings) -> bool {
        !place.open && !paths.is_empty() && paths.iter().all(|it| self.fits(it, around))
    }

    /// Whether a pattern of the shell could stand for a file of it, at any home.
    fn could_be_meant(&self, path: &str, around: &Surroundings) -> bool {
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

/// Folders whose files a glob means: of `a/b/*.pem` that is `a/b`, of `.x/**` it is `.x`.
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

/// Steps that symbolic links are followed.
const LINKS_MAX: usize = 8;

impl Surroundings {
    /// Folders for temporary files on every machine.
    pub const TEMPORARY: [&str; 4] = ["/tmp", "/var/tmp", "/private/tmp", "/private/var/tmp"];

    /// Folders as the machine names them, written as shells do.
    #[must_use]
    pub fn new(folder: &str, project: &str, home: &str, temporary: &[String]) -> Self {
        let written = |it: &str| in_shell(it).into_owned();
        Self {
            folder: written(folder),
            project: written(project),
            home: written(home),
            temporary: temporary.iter().map(|it| written(it)).collect(),
            ..Self::default()
        }
    }

    /// The same surroundings with the file in which the client records the session.
    #[must_use]
    pub fn with_transcript(self, transcript: &str) -> Self {
        Self { transcript: in_shell(transcript).into_owned(), ..self }
    }

    /// The place that a path leads to, seen from a folder.
    #[must_use]
    pub fn place(&self, path: &Text, folder: Option<&str>) -> Place {
        let written = path.text.clone();
        let known = path.known_part();
        let (known, open) = match path.is_known() {
            true => (known, false),
            // What follows a folder that is known is taken to lie in it.
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
        // Something that lies below it.
        let absolute = absolute.map(|it| if open { normal(&format!("{it}/\u{2026}")) } else { it });
        let folds_case = self.folds_case || matches!(in_shell(known), Cow::Owned(_));
        let folded = absolute.as_deref().filter(|_| folds_case).map(|it| self.folded(it));
        Place { written, absolute, back, folded, open, glob: path.glob, itself: false }
    }

    /// A path in small letters; the home at its beginning keeps its own.
    #[must_use]
    pub fn folded(&self, path: &str) -> String {
        let (lower, home) = (path.to_lowercase(), self.home.trim_end_matches('/'));
        match lower.strip_prefix(&home.to_lowercase()) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
            _ => lower,
        }
    }

    /// The same for a path of which all is known.
    #[must_use]
    pub fn known_place(&self, path: &str, folder: Option<&str>) -> Place {
        self.place(&Text::known(path), folder)
    }

    /// A path from the root on.
    fn whole(&self, path: &str, folder: Option<&str>) -> Option<String> {
        let path = &*in_shell(path.strip_prefix("file://").unwrap_or(path));
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

    /// Whether a place lies in the project, or is it.
    #[must_use]
    pub fn in_project(&self, path: &str) -> bool {
        [&self.project, &self.folder]
            .into_iter()
            .any(|it| within(path, it) || within(path, self.led_to(it)))
    }

    /// Where a folder of the surroundings leads.
    fn led_to<'a>(&'a self, folder: &'a str) -> &'a str {
        self.real.get(folder).map_or(folder, |it| &it.leads)
    }

    /// Whether a place lies in a folder for temporary files, and is none of them. A home that lies there (as in
    /// some containers) is a home.
    #[must_use]
    pub fn is_temporary(&self, path: &str) -> bool {
        let below = |folder: &str| within(path, folder) && path != folder;
        let of_home = within(path, &self.home) || within(&self.home, all_of(path));
        let holds_home = |folder: &str| within(&self.home, folder) && self.home != folder;
        let mut folders = self.temporary.iter().map(String::as_str);
        folders.any(|it| (below(it) || below(self.led_to(it))) && !(of_home && holds_home(it)))
    }

    /// Whether a place lies neither in the project nor among temporary files.
    #[must_use]
    pub fn is_outside(&self, path: &str) -> bool {
        !self.in_project(path) && !self.is_temporary(path)
    }

    /// Whether a place could be the transcript of the session, or is a deleted folder above it.
    #[must_use]
    pub fn is_transcript(&self, place: &Place) -> bool {
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

    /// Whether a place is the project, holds it, or stands for all that is in it.
    #[must_use]
    pub fn holds_project(&self, path: &str) -> bool {
        let path = all_of(path);
        within(&self.project, path)
            || within(self.led_to(&self.project), path)
            || (self.stands_alone() && within(&self.folder, path))
    }

    /// Whether the agent's folder lies outside of the project: then it is as much as a project of its own.
    fn stands_alone(&self) -> bool {
        let folder = self.folder.as_str();
        let in_project =
            within(folder, &self.project) || within(folder, self.led_to(&self.project));
        !folder.is_empty() && !in_project && !self.is_temporary(folder)
    }
}

/// A path from an unknown folder, its `..` resolved by the text.
fn without_back(path: &str) -> Cow<'_, str> {
    if path.starts_with('/') || !path.contains("/..") {
        return path.into();
    }
    normal(path).trim_start_matches('/').to_owned().into()
}

/// The folder of which a path means all that is in it (`/w/*`), else the path itself.
fn all_of(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", all)) if is_for_most(all) => "/",
        Some((folder, all)) if is_for_most(all) => folder,
        _ => path,
    }
}

impl Place {
    /// Every path that it can be said to be: as it is written from the root on, and behind links.
    fn paths<'a>(&'a self, around: &'a Surroundings) -> Vec<&'a str> {
        let Some(absolute) = self.absolute.as_deref() else { return Vec::new() };
        let real = around.real.get(absolute);
        let behind = real.into_iter().flat_map(|it| {
            [Some(it.lies.as_str()), Some(it.leads.as_str()).filter(|_| !self.itself)]
        });
        std::iter::once(absolute).chain(behind.flatten()).collect()
    }

    /// The path that is touched in the end; nothing where it cannot be known.
    #[must_use]
    pub fn real<'a>(&'a self, around: &'a Surroundings) -> Option<&'a str> {
        self.paths(around).last().copied()
    }
}

/// The place behind symbolic links, by where they lie; a folder of the path may be one, too.
#[must_use]
pub(super) fn followed(mut path: String, links: &BTreeMap<String, String>) -> String {
    for _ in 0..LINKS_MAX {
        let below =
            |link: &str| path.strip_prefix(link).filter(|it| it.is_empty() || it.starts_with('/'));
        let Some((rest, target)) =
            links.iter().find_map(|(link, target)| Some((below(link)?, target)))
        else {
            return path;
        };
        path = normal(&format!("{target}{rest}"));
    }
    path
}

/// Whether a path is a folder or lies in it.
fn within(path: &str, folder: &str) -> bool {
    if folder.is_empty() {
        return false;
    }
    folder == "/"
        || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A path from the root on, without `.`, `..` and empty steps.
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

/// Letters that the last step of a pattern must have: `.e*` says what it is after, `*` means any file.
const LETTERS_MIN: usize = 2;
/// Those that a folder must have that is meant as a whole: `.pol*`, and not `.ca*`.
const FOLDER_LETTERS_MIN: usize = 4;
/// No system opens a longer path (`PATH_MAX` of Linux).
const PATH_BYTES_MAX: usize = 4_096;
/// The step of a glob that stands for any folders.
const ANY_FOLDERS: &str = "**";

/// Whether a pattern could stand for a file of a glob: `.e*` for `.env`, `/home/x/.ss*/id_rsa` for
/// `**/.ssh/id_rsa`. One that does not begin at the root may begin at any step of the glob.
pub(super) fn could_mean(pattern: &str, glob: &str) -> bool {
    if !is_wild(pattern) || pattern.len() > PATH_BYTES_MAX || !says_enough(pattern) {
        return false;
    }
    let mut wanted: Vec<&str> = glob.split('/').filter(|it| !it.is_empty()).collect();
    if !glob.starts_with('/') && !glob.starts_with(ANY_FOLDERS) {
        wanted.insert(0, ANY_FOLDERS);
    }
    let steps: Vec<&str> = pattern.split('/').filter(|it| !it.is_empty()).collect();
    let starts = if pattern.starts_with('/') { 1 } else { wanted.len() };
    let mut ends = (0..starts).filter_map(|at| wanted.get(at..));
    // `**` and `*` at the end of a glob are anything, and nothing without what stands before them.
    ends.any(|it| it.iter().any(|it| letters(it) > 0) && leads_along(&steps, it))
}

/// Whether a pattern could stand for a folder that a glob means.
pub(super) fn could_mean_folder(pattern: &str, glob: &str) -> bool {
    let last = pattern.rsplit('/').next().unwrap_or_default();
    letters(last) >= FOLDER_LETTERS_MIN && could_mean(pattern, glob)
}

/// Whether a pattern says by its last step, or by a folder, which files it is after.
fn says_enough(pattern: &str) -> bool {
    let (folders, last) = pattern.rsplit_once('/').unwrap_or(("", pattern));
    let by_last = if is_wild(last) { is_telling(last) } else { letters(last) >= LETTERS_MIN };
    let by_folder = |it: &str| is_wild(it) && letters(it) >= FOLDER_LETTERS_MIN;
    by_last || folders.split('/').any(by_folder)
}

/// Whether the steps of a pattern could be those of a glob. Of its `**` only the last one met is tried
/// again, so that a long path costs no more than its length.
fn leads_along(steps: &[&str], wanted: &[&str]) -> bool {
    let names_file = wanted.last().is_some_and(|it| letters(it) > 0);
    // Below a folder any file is meant, so a step must say that it is after that folder.
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

/// Whether one step of a pattern could be one of a glob; two patterns only where they are the same.
fn could_be(step: &str, wanted: &str) -> bool {
    if !is_wild(step) {
        return word_matches(wanted, step);
    }
    // `*` stands for no name that begins with a dot.
    let is_hidden = wanted.starts_with('.') && !step.starts_with(['.', '[']);
    let is_name = !wanted.contains(['*', '?', '{']) && !is_hidden;
    step == wanted || wanted == "*" || (is_name && could_be_named(step, wanted))
}

/// Whether a step stands for names, and says which: `*` and `*.yml` mean ordinary files.
fn is_telling(step: &str) -> bool {
    let ending = step.strip_prefix("*.");
    let is_ending = ending.is_some_and(|it| it.bytes().all(|it| it.is_ascii_alphanumeric()));
    is_wild(step) && letters(step) >= LETTERS_MIN && !is_ending
}

/// Longer names are none of any system (`NAME_MAX`); a longer step is taken to stand for any name.
const NAME_BYTES_MAX: usize = 255;

/// How much a step says: its letters, of which those in brackets are one.
pub(super) fn letters(step: &str) -> usize {
    if step.len() > NAME_BYTES_MAX {
        return step.len();
    }
    signs(step).filter(|it| matches!(it, Sign::Letter(_) | Sign::OneOf(_))).count()
}

/// Whether a step stands for most of what is in a folder: `*`, `.*`, `[a-z]*`, `[!.]*`.
pub(super) fn is_for_most(step: &str) -> bool {
    let of_letters = |set: &[u8]| {
        let mut ranges = set.windows(3).filter(|it| it.get(1) == Some(&b'-'));
        ranges.any(|it| it.first().is_some_and(u8::is_ascii_alphabetic))
    };
    let is_broad = |it| match it {
        Sign::Any | Sign::One => true,
        Sign::OneOf(set) => {
            is_left_out(set) || of_letters(set) || (has_class(set) && set != b"[:digit:]")
        }
        Sign::Letter(_) => false,
    };
    let step = step.strip_prefix('.').unwrap_or(step);
    step.contains('*') && step.len() <= NAME_BYTES_MAX && signs(step).all(is_broad)
}

/// Whether a step stands for names of files.
pub(super) fn is_wild(step: &str) -> bool {
    step.contains(['*', '?', '['])
}

/// One sign of a pattern.
#[derive(Debug, Clone, Copy)]
enum Sign<'p> {
    /// `*`
    Any,
    /// `?`
    One,
    /// `[ab]`, `[a-z]`, `[!ab]`: what stands in the brackets.
    OneOf(&'p [u8]),
    Letter(u8),
}

/// The signs of a step, one after the other.
fn signs(step: &str) -> impl Iterator<Item = Sign<'_>> {
    let mut rest = step.as_bytes();
    std::iter::from_fn(move || {
        let (sign, behind) = Sign::first_of(rest)?;
        rest = behind;
        Some(sign)
    })
}

impl<'p> Sign<'p> {
    /// The first sign of a pattern, and what is behind it.
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

    /// Whether it may stand for a letter.
    fn takes(self, letter: u8) -> bool {
        match self {
            Self::Any | Self::One => true,
            Self::Letter(own) => own == letter,
            Self::OneOf(set) => is_in(set, letter),
        }
    }
}

/// What stands between brackets, behind the first one, and what follows them. Of `[]ab]` and `[!]ab]` the first
/// bracket is one of the letters.
fn set_of(behind: &[u8]) -> Option<(&[u8], &[u8])> {
    memchr::memrchr(b']', behind)?; // Most have none, and end here.
    let mut at = usize::from(is_left_out(behind));
    at += usize::from(behind.get(at) == Some(&b']'));
    while *behind.get(at)? != b']' {
        let rest = behind.get(at..)?;
        // Of `[[:alpha:]]`, `[[=e=]]` and `[[.e.]]` the inner bracket ends none.
        let class = match rest {
            [b'[', sign @ (b':' | b'=' | b'.'), ..] => memchr::memmem::find(rest, &[*sign, b']']),
            _ => None,
        };
        at += class.map_or(1, |it| it + 2);
    }
    Some((behind.get(..at)?, behind.get(at + 1..)?))
}

/// Whether a set leaves out what it lists.
fn is_left_out(set: &[u8]) -> bool {
    set.starts_with(b"!") || set.starts_with(b"^")
}

/// Whether a set names a class: `[:alpha:]`, `[=e=]`.
fn has_class(set: &[u8]) -> bool {
    set.windows(2).any(|it| matches!(it, b"[:" | b"[=" | b"[."))
}

/// Whether a letter may be one of those in brackets. Of a class (`[:alpha:]`) any is taken to be, and of a set
/// that begins with `!`: whether that stood in quotes, where it is a letter like any other, is not known here.
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

/// Whether a step could stand for a name. Of its `*` only the last one met is tried again.
pub(super) fn could_be_named(step: &str, name: &str) -> bool {
    if step.len() > NAME_BYTES_MAX {
        return true;
    }
    let (mut pattern, mut rest) = (step.as_bytes(), name.as_bytes());
    let mut again: Option<(&[u8], &[u8])> = None;
    loop {
        let (sign, behind) = match Sign::first_of(pattern) {
            Some((Sign::Any, behind)) => {
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
mod tests {
    use super::*;

    #[test]
    fn a_pattern_could_be_a_file_of_the_glob() {
        for (pattern, glob) in [
            (".e*", ".env"),
            ("/w/.en?", ".env"),
            ("/w/.[e]nv", ".env"),
            ("/w/[.]e[mn]v", ".env"),
            ("/home/x/.ss*/id_rsa", "**/.ssh/id_rsa"),
            ("/home/*/.ssh/id_r*", "**/.ssh/id_rsa"),
            ("/w/.pol*/policyd.yaml", "**/.policyd/**"),
            ("/w/.cl*/hooks/stop.sh", "**/.claude/hooks/**"),
            ("/etc/sha*", "/etc/shadow"),
            ("/e?c/shadow", "/etc/shadow"),
            ("/*/shadow", "/etc/shadow"),
            ("/e*/sudoers", "/etc/sudoers"),
            ("e*/shadow", "/etc/shadow"),
            ("sha*", "/etc/shadow"),
            (".ss*/id_rsa", "**/.ssh/id_rsa"),
            ("/w/.[a-f]nv", ".env"),
            ("/w/.[!f]nv", ".env"),
            ("/w/.[!.]*", ".env"),
            ("/w/.[!x]??", "**/.git"),
            ("/w/.[[:alpha:]]nv", ".env"),
            ("/w/.[]e]nv", ".env"),
            ("/w/.*nv", ".env"),
        ] {
            assert!(could_mean(pattern, glob), "{pattern} {glob}");
        }
    }

    #[test]
    fn a_folder_is_meant_by_more_than_its_first_letters() {
        assert!(could_mean_folder("/w/.pol*", ".policyd"));
        assert!(!could_mean_folder("/w/.ca*", ".cargo"));
    }

    #[test]
    fn long_paths_are_looked_through_once() {
        for steps in ["a/", ".pol*/", "*b*/"] {
            let long = format!("/{}x", steps.repeat(500));
            assert!(!could_mean(&long, "**/.policyd/**/a/**/b/**/c.yaml"), "{steps}");
        }
        assert!(could_mean(&format!("/{}.pol*/x", "a/".repeat(500)), "**/.policyd/**"));
    }

    #[test]
    fn a_pattern_that_says_nothing_or_something_else_is_none() {
        for (pattern, glob) in [
            ("*", ".env"),
            ("/w/*", ".env"),
            ("/w/.*", ".env"),
            ("/w/*.yml", "secrets.yml"),
            ("/w/src/*.rs", "**/.policyd/**"),
            ("/w/s*/main.rs", "**/.ssh/id_rsa"),
            ("/usr/sha*", "/etc/shadow"),
            ("/w/.env", ".env"),
            ("/w/.[e]nvelope", ".env"),
            ("/w/*/config", "**/.kube/config"),
            ("/w/?kube/config", "**/.kube/config"),
            ("/w/.cl*/skills/x", "**/.claude/hooks/**"),
            ("$D/generated_*.json", "**/.gnupg/**"),
            ("$D.old*", "**/.ssh/*"),
            ("/w/packages/*/dist.tgz", "**/LaunchAgents/**"),
            ("/w/*/x", "/w/secrets/**"),
            ("/w/scripts/*[^cmd]", "credentials.json"),
            ("/w/src/*.[ch]*", "secrets.yml"),
            ("/w/.[f-z]nv", ".env"),
        ] {
            assert!(!could_mean(pattern, glob), "{pattern} {glob}");
        }
    }

    #[test]
    fn a_step_is_the_names_that_a_shell_puts_in_its_place() {
        for (step, name) in [
            (".e[mn]*", ".env"),
            ("*.[ch]", "a.c"),
            ("[!a-y]*", "zoo"),
            ("[^a-y]*", "zoo"),
            ("[]x]y", "]y"),
            ("[!]x]y", "ay"),
            ("[[:alpha:]]b", "ab"),
            ("[[=a=]]b", "ab"),
            // In quotes, which are gone here, `!` is a letter: `["!"a]`.
            ("[!a]b", "ab"),
            ("[a-]b", "-b"),
            ("a[b", "a[b"),
            ("*a*b", "xaxbxb"),
            ("*", ""),
        ] {
            assert!(could_be_named(step, name), "{step} {name}");
        }
        for (step, name) in
            [("*.[ch]", "a.rs"), ("[]x]y", "ay"), ("?", ""), ("*a*b", "xaxbxc"), ("a", "ab")]
        {
            assert!(!could_be_named(step, name), "{step} {name}");
        }
    }

    #[test]
    fn letters_in_brackets_are_one() {
        for (step, count) in [(".e*", 2), ("*[^cmd]", 1), ("[ab]c", 2), ("?*", 0), ("a[b", 3)] {
            assert_eq!(letters(step), count, "{step}");
        }
    }

    #[test]
    fn most_of_a_folder_is_meant_by_no_letters() {
        for step in ["*", ".*", "[a-z]*", "[!.]*", "[^.]?*", "?*", ".[!.]*", "*?", "[[:alnum:]]*"] {
            assert!(is_for_most(step), "{step}");
        }
        for step in ["a*", "*.rs", "[ab]*", "?", "[a-z]", ".e*", "[0-9]*", "*[0-9]"] {
            assert!(!is_for_most(step), "{step}");
        }
    }

    #[test]
    fn many_brackets_take_no_longer_than_their_letters() {
        for part in ["[", "[[:", "[a", "[]", "[!"] {
            let step = part.repeat(2_000);
            assert!(letters(&step) > 0 && could_be_named(&step, ".env"), "{part}");
            let step = format!("{}]", part.repeat(80));
            assert!(!could_be_named(&step, &"x".repeat(200)), "{part}");
        }
    }
}
