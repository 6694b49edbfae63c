//! Finds user preferences in the text of a file. Searches each paragraph as a reader sees it: without comments, code,
//! struck-out text, and the marks of Markdown.

use policyd_facts::lazy::LazyRegex;

/// Returns whether one of `regexes` matches within one paragraph of `text`.
#[must_use]
pub fn found(text: &str, regexes: &[LazyRegex]) -> bool {
    let paragraphs = paragraphs(text).into_iter().map(as_read);
    paragraphs.into_iter().any(|it| regexes.iter().any(|regex| regex.is_match(&it)))
}

/// Marks in a paragraph up to which it is read as Markdown. One with more is not prose, and would take long.
const MARKS_MAX: usize = 200;

/// Returns a paragraph as a reader sees it.
fn as_read(paragraph: String) -> String {
    match paragraph.matches(['~', '<', '[', '*', '_']).count() {
        0 => paragraph,
        1..=MARKS_MAX => without_marks(&without_struck_out(&paragraph)),
        _ => paragraph,
    }
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
        if line.is_empty() || begins_block(line) {
            found.push(String::new());
        }
        if let Some(paragraph) = found.last_mut() {
            paragraph.push(' ');
            paragraph.push_str(
                line.strip_prefix(BULLETS).filter(|_| begins_block(line)).unwrap_or(line),
            );
        }
    }
    found.into_iter().map(|it| without_code(&it)).collect()
}

/// Marks of list items without a number.
const BULLETS: [char; 3] = ['-', '*', '+'];

/// Returns whether a line begins a heading, a quote, a list item, or a rule. `**Never**` and `2027 is near` do not.
fn begins_block(line: &str) -> bool {
    let ends = |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t']);
    let is_rule = |mark: char| line.chars().filter(|it| *it == mark).count() >= 3;
    let numbered = line.trim_start_matches(|it: char| it.is_ascii_digit());
    let is_numbered =
        numbered.len() < line.len() && numbered.strip_prefix(['.', ')']).is_some_and(ends);
    let is_bullet = line.strip_prefix(BULLETS).is_some_and(ends);
    let is_heading = line.starts_with('#') && ends(line.trim_start_matches('#'));
    let only_marks = line.chars().all(|it| matches!(it, '-' | '*' | '_' | '=' | ' '));
    let is_line = only_marks && ['-', '*', '_', '='].into_iter().any(is_rule);
    line.starts_with('>') || is_heading || is_bullet || is_numbered || is_line
}

/// Removes code in a line: the words beside it stay one sentence. An unclosed mark is text.
fn without_code(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`') {
        kept.push_str(before);
        rest = after.split_once('`').map_or(after, |(_, after)| after);
    }
    kept + rest
}

/// Elements of HTML for text that its author took back.
const STRUCK_OUT: [[&str; 2]; 3] =
    [["<del>", "</del>"], ["<s>", "</s>"], ["<strike>", "</strike>"]];

/// Removes text between `~~` and `~~`, or `~` and `~`, and its elements of HTML. An unclosed mark removes nothing.
fn without_struck_out(text: &str) -> String {
    let mut text = text.to_owned();
    for [opens, closes] in STRUCK_OUT {
        while let Some((before, rest)) = split_once(&text, opens)
            && let Some((_, after)) = split_once(rest, closes)
        {
            text = format!("{before}{after}");
        }
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(start) = rest.find('~') {
        let (before, struck) = rest.split_at(start);
        let inside = struck.trim_start_matches('~');
        let mark = struck.strip_suffix(inside).unwrap_or_default();
        let opens = mark.len() <= 2 && !inside.starts_with(char::is_whitespace);
        let mut ends = inside.match_indices(mark).filter(|(at, _)| {
            inside.get(..*at).is_some_and(|it| !it.is_empty() && !it.ends_with(char::is_whitespace))
        });
        kept.push_str(before);
        rest = match ends.next().filter(|_| opens).and_then(|(at, _)| inside.get(at..)) {
            Some(after) => after.trim_start_matches('~'),
            None => {
                kept.push_str(mark);
                inside
            }
        };
    }
    kept + rest
}

/// Splits a text at an element of HTML, in capital or small letters.
fn split_once<'t>(text: &'t str, element: &str) -> Option<(&'t str, &'t str)> {
    let at = text.to_ascii_lowercase().find(element)?;
    Some((text.get(..at)?, text.get(at.saturating_add(element.len())..)?))
}

/// Removes the marks of emphasis, and replaces links by their text. `snake_case` stays.
fn without_marks(text: &str) -> String {
    let text = without_links(text);
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(start) = rest.find(['*', '_']) {
        let (before, marks) = rest.split_at(start);
        let after = marks.trim_start_matches(['*', '_']);
        let run = marks.strip_suffix(after).unwrap_or_default();
        let in_word =
            before.ends_with(char::is_alphanumeric) && after.starts_with(char::is_alphanumeric);
        kept.push_str(before);
        if in_word && !run.contains('*') {
            kept.push_str(run);
        }
        rest = after;
    }
    kept + rest
}

/// Replaces `[text](address)` and `[text][name]` by the text, and `![text](address)` as well.
fn without_links(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        kept.push_str(before.strip_suffix('!').unwrap_or(before));
        let link = after.split_once(']').and_then(|(label, after)| {
            let target = after.strip_prefix('(').and_then(|it| it.split_once(')'));
            let target =
                target.or_else(|| after.strip_prefix('[').and_then(|it| it.split_once(']')));
            Some((label, target?.1))
        });
        match link {
            Some((label, after)) => {
                kept.push_str(label);
                rest = after;
            }
            None => {
                kept.push('[');
                rest = after;
            }
        }
    }
    kept + rest
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
    fn a_paragraph_of_marks_is_searched_as_it_is_written() {
        for mark in ["[", "~ ", "<del>", "*", "_", "<del></del>"] {
            let marks = mark.repeat(200_000);
            assert!(no_auto_merge(&format!("{marks}\n\nNEVER merge PRs **without** permission")));
            assert!(
                no_auto_merge(&format!("{marks} NEVER merge PRs without permission")),
                "{mark}"
            );
        }
    }

    #[test]
    fn a_preference_is_found_within_a_paragraph() {
        assert!(no_auto_merge("# P\n\nNEVER merge pull requests\nwithout explicit permission.\n"));
        assert!(no_auto_merge("**NEVER Merge PRs or Commit Without Explicit Permission**"));
        assert!(no_auto_merge("- don't merge PRs without permission\n"));
    }

    #[test]
    fn marks_of_markdown_are_not_text() {
        for text in [
            "NEVER merge PRs **without** explicit _permission_",
            "__NEVER__ merge PRs ***without*** my __permission__.",
            "_Never merge PRs without permission_",
            "**Never**\n**merge** PRs\n**without** permission",
            "Never [merge](docs/merge.md) PRs [without][1] permission",
            "Never merge PRs, see [the rules](a.md), without permission",
            "Never merge (see `foo.md`) without permission",
            "*Never* merge\n2027 PRs without permission",
            "~~Merge freely.~~ Never merge PRs without permission",
            "Never merge ~5 PRs without permission",
            "Never merge PRs without ~~any~~ permission",
            "Never merge PRs ~ without ~ permission",
            "Never merge the `unclosed PRs without permission",
            "Never merge PRs without permis**sion**",
        ] {
            assert!(no_auto_merge(text), "{text}");
        }
    }

    #[test]
    fn struck_out_text_does_not_count() {
        for text in [
            "~~NEVER merge PRs without permission~~",
            "~~NEVER merge PRs\nwithout permission~~",
            "~never merge PRs without permission~",
            "- ~~never merge PRs without permission~~\n- Merge freely.",
            "Never ~~merge PRs without permission~~ push to main.",
            "<del>Never merge PRs without permission</del>",
            "Never push. <S>Never merge PRs without permission</S>",
            "Never merge__without permission",
            "Never merge_without permission",
        ] {
            assert!(!no_auto_merge(text), "{text}");
        }
        // An unclosed mark, and the mark of a code block, strike nothing out.
        assert!(no_auto_merge("~~Never merge PRs without permission"));
        assert!(no_auto_merge("~~~\nx\n~~~\nNever merge PRs without permission"));
    }

    #[test]
    fn not_across_sections_comments_or_code() {
        assert!(!no_auto_merge("1. never push\n2. merge without permission\n"));
        assert!(!no_auto_merge("never push\n---\nmerge without permission\n"));
        assert!(!no_auto_merge("* never push\n* merge without permission\n"));
        assert!(!no_auto_merge("Never push.\n\nMerge without asking for permission.\n"));
        assert!(!no_auto_merge("- never push\n- merge without permission\n"));
        assert!(!no_auto_merge("<!-- NEVER merge PRs without permission -->\nMerge freely.\n"));
        assert!(!no_auto_merge("```\nnever merge without permission\n```\n"));
        assert!(!no_auto_merge("`never merge without permission`"));
        assert!(!no_auto_merge("<!-- never merge without permission"));
    }
}
