//! What a mistyped name was probably meant to be.

/// Candidates listed when none is near.
const LISTED_MAX: usize = 8;
/// Longer words are not compared.
const WORD_CHARS_MAX: usize = 64;

/// The candidate nearest to `word`, at most a third of its length away (and at least one edit);
/// the first of several. Case, `-` and `_` do not count.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word = folded(word)?;
    let far = (word.len() / 3).max(1) + 1;
    let (best, distance) = candidates
        .iter()
        .filter_map(|it| Some((*it, edits(&word, &folded(it)?))))
        .min_by_key(|(_, distance)| *distance)?;
    (distance < far.min(word.len().max(1))).then_some(best)
}

/// Help for a mistyped name: the nearest candidate, or what there is to choose from.
#[must_use]
pub fn did_you_mean(word: &str, candidates: &[&str]) -> Option<String> {
    match nearest(word, candidates) {
        Some(near) => Some(format!("did you mean `{near}`?")),
        None => choice_of(candidates),
    }
}

/// What there is to choose from, cut when there is much.
pub(super) fn choice_of(candidates: &[&str]) -> Option<String> {
    let listed: Vec<String> =
        candidates.iter().take(LISTED_MAX).map(|it| format!("`{it}`")).collect();
    let more = candidates.len() - listed.len();
    match (listed.as_slice(), more) {
        ([], _) => None,
        ([only], _) => Some(only.clone()),
        (_, 0) => Some(format!("one of {}", listed.join(", "))),
        _ => Some(format!("one of {}, … ({more} more)", listed.join(", "))),
    }
}

fn folded(word: &str) -> Option<Vec<char>> {
    let fold = |c: char| if c == '_' { '-' } else { c.to_ascii_lowercase() };
    let folded: Vec<char> = word.chars().take(WORD_CHARS_MAX + 1).map(fold).collect();
    (folded.len() <= WORD_CHARS_MAX).then_some(folded)
}

/// Insertions, deletions, replacements and swaps of neighbours between two words (optimal string
/// alignment), row by row.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut above: Vec<usize> = (0..=b.len()).collect();
    let mut two_above = above.clone();
    for (row, from) in a.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, to) in b.iter().enumerate() {
            let cost = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX - 1);
            let mut least = (cost(&above, column) + usize::from(from != to))
                .min(cost(&above, column + 1) + 1)
                .min(cost(&current, column) + 1);
            let swapped = row > 0
                && column > 0
                && a.get(row - 1) == Some(to)
                && b.get(column - 1) == Some(from);
            if swapped {
                least = least.min(cost(&two_above, column - 1) + 1);
            }
            current.push(least);
        }
        two_above = std::mem::replace(&mut above, current);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 4] = ["severity", "enabled", "id", "session_types"];

    #[test]
    fn near_names_are_found() {
        assert_eq!(nearest("severty", &KEYS), Some("severity"));
        assert_eq!(nearest("enabeld", &KEYS), Some("enabled"));
        assert_eq!(nearest("Session-Types", &KEYS), Some("session_types"));
        assert_eq!(nearest("di", &KEYS), Some("id"));
    }

    #[test]
    fn far_names_are_not() {
        assert_eq!(nearest("colour", &KEYS), None);
        assert_eq!(nearest("x", &KEYS), None);
        assert_eq!(nearest("", &KEYS), None);
        assert_eq!(nearest(&"severity".repeat(100), &KEYS), None);
    }

    #[test]
    fn help_names_the_nearest_or_lists_a_few() {
        assert_eq!(did_you_mean("severty", &KEYS).unwrap(), "did you mean `severity`?");
        assert_eq!(did_you_mean("colour", &KEYS[..2]).unwrap(), "one of `severity`, `enabled`");
        let many: Vec<String> = (10..20).map(|it| format!("name{it}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(did_you_mean("zzz", &many).unwrap().ends_with("`name17`, … (2 more)"));
        assert_eq!(did_you_mean("x", &[]), None);
    }

    #[test]
    fn edits_are_counted_as_a_person_would() {
        let count = |a: &str, b: &str| edits(&folded(a).unwrap(), &folded(b).unwrap());
        assert_eq!(count("", "abc"), 3);
        assert_eq!(count("abc", "acb"), 1);
        assert_eq!(count("kitten", "sitting"), 3);
    }
}
