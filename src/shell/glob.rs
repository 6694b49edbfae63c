//! Globs over paths and words: `*`, `**`, `?`, `{a,b}`.
//!
//! Contains: matching of text. Does not contain: reading directories.

use std::sync::OnceLock;

use memchr::memmem::Finder;

use crate::limits::GLOB_ALTERNATIVES_MAX;

/// A path glob that is matched against many paths. Its braces are expanded at the first path.
#[derive(Debug)]
pub struct PathGlob {
    glob: String,
    alternatives: OnceLock<Vec<Alternative>>,
}

/// A glob without braces.
#[derive(Debug)]
struct Alternative {
    glob: String,
    needs: Needs,
}

/// A requirement that every matching path fulfills. It excludes most paths quickly.
#[derive(Debug)]
enum Needs {
    /// The path ends with the last bytes of the glob, this many.
    Ending(usize),
    /// The path contains this text.
    Text(Box<Finder<'static>>),
}

impl Alternative {
    fn new(glob: String) -> Self {
        let ending = glob.rsplit(['*', '?', '/']).next().map_or(0, str::len);
        let needs = if ending > 0 {
            Needs::Ending(ending)
        } else {
            let text = glob.split(['*', '?', '/']).max_by_key(|it| it.len()).unwrap_or_default();
            Needs::Text(Box::new(Finder::new(text).into_owned()))
        };
        Self { glob, needs }
    }

    /// Returns whether a path fulfills the requirement.
    fn may_match(&self, path: &str) -> bool {
        let (glob, bytes) = (self.glob.as_bytes(), path.as_bytes());
        match &self.needs {
            Needs::Ending(length) => {
                // The last byte alone excludes most paths.
                let ending = || glob.get(glob.len().saturating_sub(*length)..);
                glob.last() == bytes.last() && ending().is_some_and(|it| bytes.ends_with(it))
            }
            Needs::Text(text) => text.find(bytes).is_some(),
        }
    }

    fn matches(&self, path: &str) -> bool {
        self.may_match(path) && one_path_matches(self.glob.as_bytes(), path)
    }
}

impl PartialEq for PathGlob {
    /// Compares the sources of the globs.
    fn eq(&self, other: &Self) -> bool {
        self.glob == other.glob
    }
}

impl PathGlob {
    /// Stores the glob. Expands nothing yet.
    #[must_use]
    pub fn new(glob: &str) -> Self {
        Self { glob: glob.to_owned(), alternatives: OnceLock::new() }
    }

    /// Returns the source of the glob.
    #[must_use]
    pub fn written(&self) -> &str {
        &self.glob
    }

    /// Returns whether a path matches, by the rules of [`path_matches`].
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        self.alternatives().iter().any(|it| it.matches(path))
    }

    /// Returns whether a path might match, by a fast test. `false` is certain.
    #[must_use]
    pub fn may_match(&self, path: &str) -> bool {
        self.alternatives().iter().any(|it| it.may_match(path))
    }

    fn alternatives(&self) -> &[Alternative] {
        self.alternatives
            .get_or_init(|| alternatives(&self.glob).into_iter().map(Alternative::new).collect())
    }
}

/// Returns whether a path matches. A glob without `/` is compared with the base name, a glob that
/// starts with `/` with the whole path, any other glob with the path and with each tail of it that
/// begins at a directory.
#[must_use]
pub fn path_matches(glob: &str, path: &str) -> bool {
    PathGlob::new(glob).matches(path)
}

/// Returns the rank of a glob over names: a name is more specific than any glob, and a longer glob
/// is more specific than a shorter one.
#[must_use]
pub fn specificity(glob: &str) -> (bool, usize) {
    (!glob.contains(['*', '?']), glob.len())
}

/// Returns whether the first byte of a word permits a match. Excludes almost all words.
#[must_use]
#[inline]
pub fn begins_alike(glob: &str, word: &str) -> bool {
    let first = glob.as_bytes().first();
    first == word.as_bytes().first() || matches!(first, Some(b'*' | b'?' | b'{') | None)
}

/// Returns whether a word matches. `*` matches any character, because words have no directories.
#[must_use]
#[inline]
pub fn word_matches(glob: &str, word: &str) -> bool {
    begins_alike(glob, word) && whole_word_matches(glob, word)
}

fn whole_word_matches(glob: &str, word: &str) -> bool {
    // Up to the first glob character both must be equal, and mostly they are not.
    let is_sign = |byte: u8| matches!(byte, b'*' | b'?' | b'{');
    let mut pairs = glob.bytes().zip(word.bytes());
    if let Some((byte, _)) = pairs.find(|(one, other)| one != other || is_sign(*one))
        && !is_sign(byte)
    {
        return false;
    }
    // A part of the word, as in `*opus*`.
    let part = glob.strip_prefix('*').and_then(|it| it.strip_suffix('*'));
    if let Some(part) = part.filter(|it| !it.bytes().any(is_sign)) {
        return word.contains(part);
    }
    if !glob.contains('{') {
        return matches(glob.as_bytes(), word.as_bytes(), false);
    }
    alternatives(glob).iter().any(|one| matches(one.as_bytes(), word.as_bytes(), false))
}

fn one_path_matches(glob: &[u8], path: &str) -> bool {
    // Most globs are `*.rs`: an ending of the base name.
    if let Some(ending) = glob.strip_prefix(b"*")
        && !ending.iter().any(|byte| b"*?/".contains(byte))
    {
        return path.as_bytes().ends_with(ending);
    }
    if !glob.contains(&b'/') {
        let base = path.rsplit('/').next().unwrap_or(path);
        return matches(glob, base.as_bytes(), true);
    }
    // `**/` represents the directories that the tails leave out.
    if glob.starts_with(b"/") || glob.starts_with(b"**/") {
        return matches(glob, path.as_bytes(), true);
    }
    let path = path.as_bytes();
    let folders = memchr::memchr_iter(b'/', path).filter_map(|slash| path.get(slash + 1..));
    std::iter::once(path).chain(folders).any(|tail| matches(glob, tail, true))
}

/// Expands `{a,b}`. Braces can nest. An unclosed brace is a literal.
fn alternatives(glob: &str) -> Vec<String> {
    let mut open = vec![glob.to_owned()];
    let mut done = Vec::new();
    while let Some(next) = open.pop() {
        if done.len() + open.len() >= GLOB_ALTERNATIVES_MAX {
            done.push(next);
            continue;
        }
        match innermost_brace(&next) {
            Some((before, inside, after)) => {
                open.extend(inside.split(',').map(|choice| [before, choice, after].concat()));
            }
            None => done.push(next),
        }
    }
    done
}

fn innermost_brace(glob: &str) -> Option<(&str, &str, &str)> {
    let (head, after) = glob.split_once('}')?;
    let (before, inside) = head.rsplit_once('{')?;
    Some((before, inside, after))
}

/// Matches bytes. Backtracks only to the last `*` and to the last `**`, so each costs at most
/// quadratic time.
fn matches(glob: &[u8], text: &[u8], folders: bool) -> bool {
    let (mut g, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    let mut deep: Option<(usize, usize, bool)> = None;
    loop {
        if glob.get(g..).is_some_and(|rest| rest.starts_with(b"**"))
            || (!folders && at(glob, g) == Some(b'*'))
        {
            while at(glob, g) == Some(b'*') {
                g += 1;
            }
            // `**/` matches whole directories, also none.
            let whole = folders && at(glob, g) == Some(b'/');
            g += usize::from(whole);
            deep = Some((g, t, whole));
            star = None;
            continue;
        }
        match (at(glob, g), at(text, t)) {
            (Some(b'*'), _) => {
                g += 1;
                star = Some((g, t));
                continue;
            }
            (Some(b'?'), Some(c)) if !(folders && c == b'/') => {
                g += 1;
                t += 1;
                continue;
            }
            (Some(wanted), Some(found)) if wanted == found && wanted != b'?' => {
                g += 1;
                t += 1;
                continue;
            }
            (None, None) => return true,
            _ => {}
        }
        if let Some((after, from)) = star
            && at(text, from).is_some_and(|c| !(folders && c == b'/'))
        {
            star = Some((after, from + 1));
            (g, t) = (after, from + 1);
        } else if let Some((after, from, whole)) = deep
            && let Some(next) = next_start(text, from, whole)
        {
            deep = Some((after, next, whole));
            star = None;
            (g, t) = (after, next);
        } else {
            return false;
        }
    }
}

/// Returns where the text after `**` can begin next.
fn next_start(text: &[u8], from: usize, whole_folders: bool) -> Option<usize> {
    if whole_folders {
        return memchr::memchr(b'/', text.get(from..)?).map(|slash| from + slash + 1);
    }
    (from < text.len()).then_some(from + 1)
}

fn at(bytes: &[u8], index: usize) -> Option<u8> {
    bytes.get(index).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths() {
        for (glob, path, expected) in [
            ("*.rs", "src/main.rs", true),
            ("*.rs", "/home/dev/main.rs", true),
            ("*.rs", "main.rs.bak", false),
            ("Makefile", "/w/Makefile", true),
            ("Makefile", "/w/Makefile.am", false),
            ("src/*.rs", "/w/src/lib.rs", true),
            ("src/*.rs", "/w/src/a/lib.rs", false),
            ("src/**/*.rs", "/w/src/a/b/lib.rs", true),
            ("src/**/*.rs", "/w/src/lib.rs", true),
            ("**/tests/**", "/w/tests/x.py", true),
            ("**/tests/**", "tests/a/b.py", true),
            ("**/tests/**", "/w/mytests/b.py", false),
            ("**/*.md", "README.md", true),
            ("/w/*.rs", "/w/a.rs", true),
            ("/w/*.rs", "/x/w/a.rs", false),
            ("*.{ts,tsx}", "a/b.tsx", true),
            ("*.{ts,tsx}", "a/b.js", false),
            ("{src,lib}/{a,b}.rs", "lib/b.rs", true),
            ("test_?.py", "test_1.py", true),
            ("test_?.py", "test_12.py", false),
            ("docs/**", "/w/docs/a/b.md", true),
            ("a?b", "a/b", false),
            ("*", "a/b", true),
            ("*rc", "/home/.bashrc", true),
            ("*rc", "src/c", false),
            ("*", "", true),
            (".github/workflows/*", "/w/.github/workflows/ci.yml", true),
            ("*.{rs", "x.{rs", true),
            ("", "x", false),
        ] {
            assert_eq!(path_matches(glob, path), expected, "{glob} {path}");
        }
    }

    #[test]
    fn words() {
        for (glob, word, expected) in [
            ("python*", "python3.12", true),
            ("python*", "ipython", false),
            ("test*", "test:unit", true),
            ("*", "", true),
            ("a*c", "a/b/c", true),
            ("--force*", "--force-with-lease", true),
            ("{npm,pnpm}", "pnpm", true),
            ("npm", "npm2", false),
        ] {
            assert_eq!(word_matches(glob, word), expected, "{glob} {word}");
        }
    }

    #[test]
    fn hostile_globs_end() {
        let text = "a".repeat(5_000);
        assert!(!word_matches(&format!("{}b", "*a".repeat(200)), &text));
        assert!(!path_matches(&format!("{}b", "{a,b}".repeat(60)), &text));
        assert!(!path_matches(&format!("x/{}b", "**/a*".repeat(60)), &text));
    }

    proptest! {
        #[test]
        fn short_ways_come_to_what_the_long_one_does(glob in "[ab*?]{0,6}", word in "[ab]{0,6}") {
            let long = matches(glob.as_bytes(), word.as_bytes(), false);
            prop_assert_eq!(word_matches(&glob, &word), long);
        }
    }
}
