//! Finds user preferences in the text of a file. Searches each paragraph, without comments and
//! code.

use policyd_facts::lazy::LazyRegex;

/// Returns whether one of `regexes` matches within one paragraph of `text`.
#[must_use]
pub fn found(text: &str, regexes: &[LazyRegex]) -> bool {
    paragraphs(text).iter().any(|it| regexes.iter().any(|regex| regex.is_match(it)))
}

/// Returns paragraphs as single lines. A heading, a list item or an empty line ends a paragraph, so
/// that unrelated sections never form one sentence.
fn paragraphs(text: &str) -> Vec<String> {
    let mut found: Vec<String> = vec![String::new()];
    let mut fenced = false;
    for line in without_comments(text).lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        let begins = line.is_empty()
            || line.starts_with(['#', '-', '*', '+', '>'])
            || line.starts_with(|c: char| c.is_ascii_digit());
        if begins {
            found.push(String::new());
        }
        if let Some(paragraph) = found.last_mut() {
            paragraph.push(' ');
            line.split('`').step_by(2).for_each(|prose| paragraph.push_str(prose));
        }
    }
    found
}

/// Removes HTML comments. An unclosed comment hides the rest.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!--") {
        kept.push_str(before);
        rest = after.split_once("-->").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_auto_merge(text: &str) -> bool {
        let regex = r"\b(never|do not|don't)\b.*\bmerge\b.*\bwithout\b.*\b(permission|approval)\b";
        found(text, &[policyd_fact_table::pattern::prose_regex(regex)])
    }

    #[test]
    fn a_preference_is_found_within_a_paragraph() {
        assert!(no_auto_merge("# P\n\nNEVER merge pull requests\nwithout explicit permission.\n"));
        assert!(no_auto_merge("**NEVER Merge PRs or Commit Without Explicit Permission**"));
        assert!(no_auto_merge("- don't merge PRs without permission\n"));
    }

    #[test]
    fn not_across_sections_comments_or_code() {
        assert!(!no_auto_merge("Never push.\n\nMerge without asking for permission.\n"));
        assert!(!no_auto_merge("- never push\n- merge without permission\n"));
        assert!(!no_auto_merge("<!-- NEVER merge PRs without permission -->\nMerge freely.\n"));
        assert!(!no_auto_merge("```\nnever merge without permission\n```\n"));
        assert!(!no_auto_merge("`never merge without permission`"));
        assert!(!no_auto_merge("<!-- never merge without permission"));
    }
}
