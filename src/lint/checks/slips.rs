//! Slips of the keyboard: the known word that a similar one is probably meant to be.

/// Shorter names are one letter from too many others: `gt`, `nm` and `ip` are programs, too.
pub(super) const LETTERS_MIN: usize = 4;

/// Programs and subcommands that exist and are similar to known ones.
const REAL: [&str; 25] = [
    "argo", "buck", "elm", "ent", "erl", "fpc", "instal", "ionic", "isntall", "lld", "nim", "nvm",
    "pic", "pnp", "ppm", "pst", "serve", "shasum", "sql", "sqlite", "star", "sync", "test", "top",
    "tst",
];

/// Returns the known name from which a name differs in case, in one letter too few or too many, or in two letters
/// that changed places.
pub(super) fn slip<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    if known.contains(&name) {
        return None;
    }
    let is_near =
        |it: &&&str| it.eq_ignore_ascii_case(name) || is_slip(it, name) || is_slip(name, it);
    known.iter().find(is_near).copied()
}

/// Whether a word is another one with a letter left out, or with two that changed places.
fn is_slip(word: &str, meant: &str) -> bool {
    let (word, meant) = (word.as_bytes(), meant.as_bytes());
    let same = word.iter().zip(meant).take_while(|(one, other)| one == other).count();
    let (rest, wanted) = (word.get(same..), meant.get(same..));
    let (Some(rest), Some(wanted)) = (rest, wanted) else { return false };
    if word.len() + 1 == meant.len() {
        return wanted.get(1..) == Some(rest);
    }
    match (rest, wanted) {
        ([a, b, rest @ ..], [x, y, wanted @ ..]) => a == y && b == x && rest == wanted,
        _ => false,
    }
}

/// The known word that becomes this one where a letter is left out, or changes places with the next.
pub(super) fn slip_of<'k>(
    word: &str,
    mut known: impl Iterator<Item = &'k str> + Clone,
) -> Option<&'k str> {
    if REAL.contains(&word) || known.clone().any(|it| it == word) {
        return None;
    }
    let is_glob = |it: &str| it.contains(['*', '?', '{']);
    let is_comparable = |it: &str| is_glob(it) == is_glob(word) && it.len() >= LETTERS_MIN;
    known.find(|it| is_comparable(it) && (is_slip(word, it) || is_stuttered(word, it)))
}

/// Whether a word is another one with a letter written twice.
fn is_stuttered(word: &str, meant: &str) -> bool {
    let is_longer = word.len() == meant.len() + 1 && word.len() > LETTERS_MIN;
    let same = word.bytes().zip(meant.bytes()).take_while(|(one, other)| one == other).count();
    let at = |at: Option<usize>| at.and_then(|it| word.as_bytes().get(it));
    is_longer && is_slip(meant, word) && at(Some(same)) == at(same.checked_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_left_out_or_two_that_changed_places_are_slips() {
        let known = ["cargo", "docker", "curl", "git", "npm", "pnpm"];
        for (word, expected) in [
            ("crago", Some("cargo")),
            ("carg", Some("cargo")),
            ("dockre", Some("docker")),
            ("ucrl", Some("curl")),
            ("cur", Some("curl")),
            ("cargo", None),
            ("gti", None),
            ("npm", None),
            ("dockerd", None),
            ("podman", None),
            ("doc*", None),
            ("", None),
        ] {
            assert_eq!(slip_of(word, known.into_iter()), expected, "{word}");
        }
    }
}
