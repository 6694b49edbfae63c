//! Decides whether a pattern matches everything that another pattern matches. `true` is certain;
//! `false` can be wrong.

use super::glob::{path_matches, word_matches};

/// Returns whether a text contains a glob character.
fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '{', '[', '\\'])
}

/// Returns whether a path glob covers another one, by the rules of [`path_matches`].
#[must_use]
pub fn path(wider: &str, narrow: &str) -> bool {
    if wider == narrow || matches!(wider, "*" | "**" | "**/*") {
        return true;
    }
    let is_whole = |it: &str| it.starts_with(['/', '~']);
    if wider.contains(['{', '[', '\\']) || (is_whole(wider) != is_whole(narrow) && is_whole(wider))
    {
        return false;
    }
    if !is_glob(narrow) && !narrow.starts_with('~') && path_matches(wider, narrow) {
        return true;
    }
    // Everything below a directory.
    if let Some(folder) = wider.strip_suffix("/**").filter(|it| !is_glob(it)) {
        let below = narrow.strip_prefix(folder).is_some_and(|it| it.starts_with('/'));
        return below && is_whole(wider) == is_whole(narrow);
    }
    // Everything with a name, in any directory.
    let name = wider.strip_prefix("**/").unwrap_or(wider);
    let last = narrow.rsplit('/').next().unwrap_or(narrow);
    // Within a path, `**` crosses directories.
    !name.contains('/') && !last.contains("**") && word(name, last)
}

/// Returns whether a word glob covers another one, by the rules of [`word_matches`].
#[must_use]
pub fn word(wider: &str, narrow: &str) -> bool {
    if wider == narrow {
        return true;
    }
    if !is_glob(narrow) {
        return word_matches(wider, narrow);
    }
    // `*.lock` matches every word with this end, and `npm*` every word with this beginning.
    let one_end = |end: Option<&str>| end.filter(|it| !is_glob(it)).map(str::to_owned);
    let plain = !narrow.contains(['{', '[', '\\']);
    let ends = one_end(wider.strip_prefix('*')).is_some_and(|it| narrow.ends_with(&it));
    let begins = one_end(wider.strip_suffix('*')).is_some_and(|it| narrow.starts_with(&it));
    plain && (ends || begins)
}

/// Returns whether a command pattern covers another one. Each word of `wider` must cover the word of
/// `narrow` at its position. Behind the program, a glob matches operands, not options.
#[must_use]
pub fn command(wider: &str, narrow: &str) -> bool {
    let mut words = narrow.split_whitespace();
    let mut wider = wider.split_whitespace();
    let (Some(program), Some(other)) = (wider.next(), words.next()) else { return false };
    let is_operand = |it: &str| !it.starts_with(['-', '+']);
    word(program, other)
        && wider.all(|part| {
            words
                .next()
                .is_some_and(|other| part == other || (is_operand(other) && word(part, other)))
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_covers_and_what_does_not() {
        for (wider, narrow, covers) in [
            ("src/**", "src/gen/**", true),
            ("src/**", "src/main.rs", true),
            ("**/*.lock", "Cargo.lock", true),
            ("**/*.lock", "web/*.lock", true),
            ("*.pem", "**/*.pem", true),
            ("**", "/etc/**", true),
            ("/etc/**", "/etc/ssh/**", true),
            ("~/.ssh/**", "~/.ssh/id_*", true),
            ("src/gen/**", "src/**", false),
            ("src/**", "src", false),
            ("src/**", "srcs/**", false),
            ("/etc/**", "etc/passwd", false),
            ("*.lock", "*.lock/x", false),
            ("*.lock", "**", false),
            ("test_*", "tests/test_**", false),
            ("*.lock", "*.{lock,md}", false),
        ] {
            assert_eq!(path(wider, narrow), covers, "{wider} {narrow}");
        }
        for (wider, narrow, covers) in [
            ("git", "git push", true),
            ("git*", "git push", true),
            ("git push", "git push --force", true),
            ("git push", "git", false),
            ("npm run *", "npm run test", true),
            ("npm run *", "npm run --silent", false),
            ("rm -r*", "rm -rf", false),
            ("cargo *", "cargo +nightly", false),
            ("", "git", false),
        ] {
            assert_eq!(command(wider, narrow), covers, "{wider} {narrow}");
        }
    }

    proptest! {
        #[test]
        fn what_a_covered_pattern_matches_the_wider_one_matches(
            wider in "(/|\\*\\*/)?([ab*]{1,3}/){0,2}([ab*]{1,3}|\\*\\*)",
            narrow in "(/|\\*\\*/)?([ab*?]{1,3}/){0,2}([ab*?]{1,3}|\\*\\*)",
            found in "/?([ab]{1,2}/){0,3}[ab]{1,2}",
        ) {
            let both = path(&wider, &narrow) && path_matches(&narrow, &found);
            prop_assert!(!both || path_matches(&wider, &found), "{wider} {narrow} {found}");
            let (one, other) = (wider.replace('/', ""), narrow.replace('/', ""));
            let word_found = found.replace('/', "");
            let both = word(&one, &other) && word_matches(&other, &word_found);
            prop_assert!(!both || word_matches(&one, &word_found), "{one} {other} {word_found}");
        }
    }
}
