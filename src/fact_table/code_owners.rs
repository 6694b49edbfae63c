//! `CODEOWNERS`: which users and teams own a file. The last pattern that matches a path decides; in a file of GitLab,
//! the last one of each section.

use policyd_facts::glob::PathGlob;

/// The places of the file, in the order in which hosts look for it.
pub const PLACES: [&str; 4] =
    [".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"];

/// The patterns of a `CODEOWNERS` file.
#[derive(Debug, Default, PartialEq)]
pub struct CodeOwners {
    sections: Vec<Vec<OwnedFiles>>,
}

/// The owners of the files of one pattern.
#[derive(Debug, PartialEq)]
struct OwnedFiles {
    /// Globs from the root of the project.
    globs: Vec<PathGlob>,
    /// Users and teams as they are written. Empty: the files have no owner.
    owners: Vec<String>,
}

impl CodeOwners {
    /// Reads the text of a file.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut sections = vec![Vec::new()];
        let mut by_default: Vec<String> = Vec::new();
        for line in text.lines().map(str::trim) {
            let words = words(line);
            let Some((first, owners)) = words.split_first() else { continue };
            if let Some(head) = section(line) {
                by_default = head;
                sections.push(Vec::new());
                continue;
            }
            let owners = if owners.is_empty() { by_default.clone() } else { owners.to_vec() };
            if let Some(section) = sections.last_mut() {
                section.push(OwnedFiles { globs: globs(first), owners });
            }
        }
        Self { sections }
    }

    /// Returns the owners of a path, which begins at the root of the project.
    #[must_use]
    pub fn of(&self, path: &str) -> Vec<String> {
        let path = format!("/{}", path.trim_start_matches('/'));
        let fits = |it: &&OwnedFiles| it.globs.iter().any(|glob| glob.matches(&path));
        let last = self.sections.iter().filter_map(|it| it.iter().rev().find(fits));
        let mut owners: Vec<String> = Vec::new();
        for owner in last.flat_map(|it| &it.owners) {
            if !owners.contains(owner) {
                owners.push(owner.clone());
            }
        }
        owners
    }
}

/// Returns the owners in the head of a section of GitLab: `^[Docs][2] @docs`. `None` for another line.
fn section(line: &str) -> Option<Vec<String>> {
    let rest = line.strip_prefix('^').unwrap_or(line).strip_prefix('[')?;
    let (_, rest) = rest.split_once(']')?;
    let rest = match rest.strip_prefix('[').and_then(|it| it.split_once(']')) {
        Some((_, rest)) => rest,
        None => rest,
    };
    Some(words(rest))
}

/// Splits a line at its spaces, up to a comment. A backslash keeps the character behind it.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => word.extend(chars.next()),
            '#' if word.is_empty() => break,
            c if c.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => word.push(c),
        }
    }
    words.extend(Some(word).filter(|it| !it.is_empty()));
    words
}

/// Returns the globs of a pattern, from the root of the project. A pattern without a slash, except at its end, matches in
/// every directory. A directory is all files below it, and `docs/*` only the files in it.
fn globs(pattern: &str) -> Vec<PathGlob> {
    let body = pattern.trim_end_matches('/');
    let base = match body.contains('/') {
        true => format!("/{}", body.trim_start_matches('/')),
        false => format!("/**/{body}"),
    };
    let below = PathGlob::new(&format!("{base}/**"));
    if body.is_empty() {
        return vec![PathGlob::new("/**")];
    }
    match (pattern.ends_with('/'), base.ends_with("/*") && body.contains('/')) {
        (true, _) => vec![below],
        (false, true) => vec![PathGlob::new(&base)],
        (false, false) => vec![PathGlob::new(&base), below],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_pattern_decides() {
        let owners = CodeOwners::parse(
            "# comment\n* @all\n*.js @js # inline\n/build/logs/ @ops\ndocs/* docs@example.com\napps/ @apps\n\
             /src/auth @sec @ops\n/src/auth/public\n**/logs @logs\nwith\\ space.txt @space\n",
        );
        for (path, expected) in [
            ("README.md", "@all"),
            ("a/b.js", "@js"),
            ("build/logs/x", "@logs"),
            ("docs/a.md", "docs@example.com"),
            ("docs/a/b.md", "@all"),
            ("x/apps/y", "@apps"),
            ("src/auth/key.rs", "@sec @ops"),
            ("lib/src/auth/key.rs", "@all"),
            ("src/auth/public", ""),
            ("src/auth/public/x", ""),
            ("with space.txt", "@space"),
        ] {
            assert_eq!(owners.of(path).join(" "), expected, "{path}");
        }
    }

    #[test]
    fn each_section_of_gitlab_has_owners() {
        let owners = CodeOwners::parse(
            "* @all\n[Docs] @docs\n*.md\nREADME.md @readme\n^[Sec][2]\n*.key @sec\n",
        );
        assert_eq!(owners.of("a.md"), ["@all", "@docs"]);
        assert_eq!(owners.of("README.md"), ["@all", "@readme"]);
        assert_eq!(owners.of("a.key"), ["@all", "@sec"]);
    }

    #[test]
    fn an_empty_file_has_no_owners() {
        assert!(CodeOwners::default().of("a").is_empty());
        assert_eq!(CodeOwners::parse("/ @all").of("a/b"), ["@all"]);
    }
}
