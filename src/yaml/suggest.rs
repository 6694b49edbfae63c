//! Suggestions for a mistyped name: the nearest candidate, or the list of candidates.
//!
//! Contains: the distance limit, and the text of the suggestion.
//! Does not contain: the edit distance itself (`strsim`), the names that are compared.

use strsim::osa_distance;

/// Maximum number of candidates that are listed if none is near.
const LISTED_MAX: usize = 24;
/// Longer words, in characters, are not compared.
const WORD_CHARS_MAX: usize = 64;

/// Returns the candidate nearest to `word`; of several, the first one. The distance (optimal string
/// alignment) is at most a third of the length of `word`, or one edit for short words. Of names with several parts, more than
/// two edits must leave a part as it is: otherwise another name was meant. Case is ignored, and `-` equals `_`.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word = folded(word)?;
    let length = word.chars().count();
    let far = (length / 3).max(1) + 1;
    let (best, distance) = candidates
        .iter()
        .filter_map(|it| {
            let other = folded(it)?;
            Some((*it, osa_distance(&word, &other))).filter(|(_, far)| is_typo(&word, &other, *far))
        })
        .min_by_key(|(_, distance)| *distance)?;
    (distance < far.min(length.max(1))).then_some(best).or_else(|| other_form(&word, candidates))
}

/// Edits of a typo in a name of several parts that changes each part.
const PARTS_EDITS_MAX: usize = 2;

/// Whether a word can be a typo of another one. Names of several parts are often as long as each other, and all of a kind.
fn is_typo(word: &str, other: &str, edits: usize) -> bool {
    let parts: Vec<&str> = word.split('-').collect();
    let has_parts = parts.len() > 1 && other.contains('-');
    !has_parts || edits <= PARTS_EDITS_MAX || other.split('-').any(|it| parts.contains(&it))
}

/// Letters that two forms of a word begin with, at least.
const STEM_MIN: usize = 4;

/// Returns the only candidate that is another form of a word: `warning` of `warn`, `succeeded` of `success`. Its stem
/// is more than half of it. A word of several parts has no forms.
fn other_form<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let stem =
        |it: &str| word.bytes().zip(it.bytes()).take_while(|(one, other)| one == other).count();
    let is_word = |it: &str| it.bytes().all(|c| c.is_ascii_lowercase());
    let is_form = |it: &&&str| {
        let stem = stem(it);
        is_word(it) && stem >= STEM_MIN && stem * 2 > word.len().max(it.len())
    };
    let mut forms = candidates.iter().filter(is_form);
    let only = forms.next().filter(|_| is_word(word))?;
    forms.next().is_none().then_some(*only)
}

/// Returns help for a mistyped name: the nearest candidate, or the list of candidates.
#[must_use]
pub fn did_you_mean(word: &str, candidates: &[&str]) -> Option<String> {
    match nearest(word, candidates) {
        Some(near) => Some(is_it(near)),
        None => choice_of(candidates),
    }
}

/// Asks whether a known name is the right one.
#[must_use]
pub fn is_it(near: &str) -> String {
    format!("did you mean `{near}`?")
}

/// Lists the candidates, at most [`LISTED_MAX`]. `None` for an empty list.
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

/// Returns a word in the form in which words are compared. `None` if it is too long.
fn folded(word: &str) -> Option<String> {
    let fold = |c: char| if c == '_' { '-' } else { c.to_ascii_lowercase() };
    (word.chars().count() <= WORD_CHARS_MAX).then(|| word.chars().map(fold).collect())
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
        assert_eq!(nearest("lebel", &["label", "level"]), Some("label"), "the first of two");
    }

    #[test]
    fn a_name_of_several_parts_is_not_a_typo_of_an_unrelated_one() {
        let ids = ["hosts_file_written", "rm_recursive", "no_stubs"];
        assert_eq!(nearest("rm_recursiv", &ids), Some("rm_recursive"));
        assert_eq!(nearest("rm_recusrvie", &ids), Some("rm_recursive"));
        assert_eq!(nearest("no_telnet", &ids), None);
        assert_eq!(
            nearest("costs_mail_written", &ids),
            Some("hosts_file_written"),
            "one part is the same"
        );
        assert_eq!(nearest("costs_mail_wrihten", &ids), None);
    }

    #[test]
    fn other_forms_of_a_word_are_found() {
        let outcomes = ["pending", "succeeded", "failed", "denied"];
        assert_eq!(nearest("success", &outcomes), Some("succeeded"));
        assert_eq!(nearest("warn", &["blocker", "warning"]), Some("warning"));
        assert_eq!(nearest("warn", &["warning", "warned"]), None, "one of two");
        assert_eq!(nearest("tools_not", &["tools"]), None, "another name");
        assert_eq!(nearest("done", &outcomes), None);
    }

    #[test]
    fn far_names_are_not() {
        assert_eq!(nearest("color", &KEYS), None);
        assert_eq!(nearest("x", &KEYS), None);
        assert_eq!(nearest("", &KEYS), None);
        assert_eq!(nearest(&"severity".repeat(100), &KEYS), None);
    }

    #[test]
    fn help_names_the_nearest_or_lists_a_few() {
        assert_eq!(did_you_mean("severty", &KEYS).unwrap(), "did you mean `severity`?");
        assert_eq!(did_you_mean("color", &KEYS[..2]).unwrap(), "one of `severity`, `enabled`");
        let many: Vec<String> = (10..40).map(|it| format!("name{it}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(did_you_mean("zzz", &many).unwrap().ends_with("`name33`, … (6 more)"));
        assert_eq!(did_you_mean("x", &[]), None);
    }
}
