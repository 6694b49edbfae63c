//! Here-documents in long command lines. A body without expansions is data, so it is removed before parsing and
//! does not count for the length limit.
//!
//! Contains: the search for bodies, and the check of the result against the syntax tree.
//! Does not contain: the evaluation of here-documents (`statements`).
//!
//! INVARIANT: a removed body is used only if the syntax tree of the shortened text has a here-document in the
//! same position, because the search for bodies is only a guess.

use std::collections::BTreeMap;

use tree_sitter::{Node, Tree};

use crate::shell::{child_of_kind, node_text};

/// Shorter lines, in bytes, are parsed unchanged.
const LINE_SHORT: usize = 8 * 1024;
/// Prefix of the placeholder that replaces a body. The number of the body follows.
const MARK: &str = "policyd-here-document-";

/// Bodies that were removed from the text.
#[derive(Debug, Default)]
pub(super) struct Heredocs {
    bodies: Vec<String>,
}

/// A text without the bodies of its here-documents.
#[derive(Debug)]
pub(super) struct ShortenedText {
    pub(super) text: String,
    /// Each placeholder, with the delimiter for which its body was removed.
    taken: Vec<(String, HeredocDelimiter)>,
}

impl ShortenedText {
    /// Returns whether the syntax tree has each placeholder as the body of the same here-document.
    /// Otherwise a removed text, for example in quotes or in a comment, may contain commands.
    pub(super) fn matches_tree(&self, tree: &Tree) -> bool {
        let mut left: BTreeMap<&str, &HeredocDelimiter> =
            self.taken.iter().map(|(place, mark)| (place.as_str(), mark)).collect();
        let mut cursor = tree.walk();
        loop {
            if let Some((place, mark)) = heredoc(cursor.node(), &self.text)
                && left.get(place).is_some_and(|it| **it == mark)
            {
                left.remove(place);
            }
            if left.is_empty() || cursor.goto_first_child() {
                if left.is_empty() {
                    return true;
                }
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return false;
                }
            }
        }
    }
}

/// Returns the body of a here-document in the tree, and its delimiter.
fn heredoc<'t>(node: Node<'_>, source: &'t str) -> Option<(&'t str, HeredocDelimiter)> {
    if node.kind() != "heredoc_redirect" {
        return None;
    }
    let body = node_text(child_of_kind(node, "heredoc_body")?, source).trim();
    let start = node_text(child_of_kind(node, "heredoc_start")?, source);
    let dash = if child_of_kind(node, "<<-").is_some() { "-" } else { "" };
    Some((body, parse_delimiter(&format!("{dash}{start}"))?))
}

impl Heredocs {
    /// Returns a long text without the bodies of its here-documents. `None` if the text is short,
    /// has no such body, or if the start of a body is uncertain.
    pub(super) fn extract(&mut self, source: &str) -> Option<ShortenedText> {
        if source.len() < LINE_SHORT || !source.contains("<<") || source.contains(MARK) {
            return None;
        }
        let (mut text, mut taken) = (String::new(), Vec::new());
        let mut rest = source;
        while !rest.is_empty() {
            let (line, after) = cut_line(rest);
            text.push_str(line);
            rest = after;
            for mark in parse_delimiters(line)? {
                // Without its end, it is not a here-document, or the line is incomplete.
                let (body, after) = mark.body(rest)?;
                rest = after;
                let expanded = !mark.quoted && body.contains(['$', '`', '\\']);
                if expanded || body.is_empty() {
                    text.push_str(body);
                } else {
                    let place = format!("{MARK}{}", self.bodies.len());
                    text.push_str(&place);
                    text.push('\n');
                    self.bodies.push(body.to_owned());
                    taken.push((place, mark));
                }
                let (end, after) = cut_line(rest);
                text.push_str(end);
                rest = after;
            }
        }
        (!taken.is_empty()).then_some(ShortenedText { text, taken })
    }

    /// Returns the body for a placeholder. Other text is returned unchanged.
    pub(super) fn restore(&self, text: &str) -> String {
        let number = text.trim().strip_prefix(MARK).and_then(|it| it.parse::<usize>().ok());
        let body = number.and_then(|it| self.bodies.get(it));
        body.map_or_else(|| text.to_owned(), Clone::clone)
    }
}

/// The delimiter of a here-document: `<<'EOF'`.
#[derive(Debug, PartialEq, Eq)]
struct HeredocDelimiter {
    word: String,
    quoted: bool,
    /// Whether leading tabs are removed from the end line: `<<-`.
    tabs: bool,
}

impl HeredocDelimiter {
    /// Splits text into the body and the rest, which begins with the end line.
    fn body<'t>(&self, text: &'t str) -> Option<(&'t str, &'t str)> {
        let mut at = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let (line, after) = cut_line(rest);
            let end = line.trim_end_matches('\n');
            let end = if self.tabs { end.trim_start_matches('\t') } else { end };
            if end == self.word {
                return text.split_at_checked(at);
            }
            at += line.len();
            rest = after;
        }
        None
    }
}

/// Splits text after its first line.
fn cut_line(text: &str) -> (&str, &str) {
    let end = text.find('\n').map_or(text.len(), |it| it + 1);
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Returns the delimiters in a line, outside of quotes. `None` if a quote or a substitution behind
/// a delimiter is still open, because then the body may not begin in the next line.
fn parse_delimiters(line: &str) -> Option<Vec<HeredocDelimiter>> {
    let (mut found, mut quote, mut skip) = (Vec::new(), None, 0);
    // Number of open braces and parentheses since the first delimiter.
    let mut open = 0_i32;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            _ if at < skip => {}
            (Some('\''), '\\') => {}
            (_, '\\') => skip = at + 2,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '(' | '{') if !found.is_empty() => open += 1,
            (None, ')' | '}') if !found.is_empty() => open -= 1,
            (None, '<') => {
                let rest = line.get(at..).unwrap_or_default();
                let ends = rest.find(|c| c != '<').unwrap_or(rest.len());
                skip = at + ends;
                if ends == 2 {
                    found.extend(parse_delimiter(rest.get(ends..).unwrap_or_default()));
                    // Skip the delimiter: its quotes are not quotes of the line.
                    let word = rest.get(ends..).unwrap_or_default();
                    skip += word.find([' ', '\n', ';', '|', '&', ')']).unwrap_or(word.len());
                }
            }
            _ => {}
        }
    }
    let is_open = quote.is_some() || open > 0 || line.ends_with("\\\n");
    (found.is_empty() || !is_open).then_some(found)
}

fn parse_delimiter(text: &str) -> Option<HeredocDelimiter> {
    let (tabs, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let text = text.trim_start_matches([' ', '\t']);
    let end = text.find([' ', '\t', '\n', ';', '|', '&', ')', '>', '<']).unwrap_or(text.len());
    let written = text.get(..end)?;
    let quoted = written.contains(['\'', '"', '\\']);
    let inside = |quote: char| written.strip_prefix(quote)?.strip_suffix(quote);
    let word = inside('\'').or_else(|| inside('"')).or_else(|| written.strip_prefix('\\'));
    let word = word.unwrap_or(written).to_owned();
    // Other characters may have a special meaning.
    let plain = |c: char| c.is_alphanumeric() || "_-.:/+=@%,!".contains(c);
    (!word.is_empty() && word.chars().all(plain)).then_some(HeredocDelimiter { word, quoted, tabs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::syntax;

    #[test]
    fn bodies_of_long_lines_are_taken_out_and_put_back() {
        let body = "rm -rf / $HOME\n".repeat(1000);
        let mut heredocs = Heredocs::default();
        let line = format!("cat <<'EOF' > a.txt && cat <<-B\n{body}EOF\n\tx $Y\n\tB\necho done\n");
        let short = heredocs.extract(&line).unwrap().text;
        assert_eq!(
            short,
            "cat <<'EOF' > a.txt && cat <<-B\npolicyd-here-document-0\nEOF\n\tx $Y\n\tB\necho done\n"
        );
        assert_eq!(heredocs.restore("policyd-here-document-0\n"), body);
        assert_eq!(heredocs.restore("policyd-here-document-9\n"), "policyd-here-document-9\n");
    }

    #[test]
    fn what_is_no_heredoc_stays() {
        let long = "x".repeat(LINE_SHORT);
        for line in [
            format!("cat <<< '{long}'\nEOF\n"),
            format!("echo \"<<EOF\" {long}\nEOF\n"),
            format!("cat <<EOF\n{long}\n"),
            format!("cat <<EOF\n$(rm -rf /) {long}\nEOF\n"),
        ] {
            let made = Heredocs::default().extract(&line);
            assert!(made.is_none(), "{}", line.get(..20).unwrap_or_default());
        }
        assert!(Heredocs::default().extract("cat <<'E'\na\nE\n").is_none(), "short");
    }

    #[test]
    fn what_was_taken_out_is_the_body_of_its_heredoc() {
        let pad = format!("# {}\n", "x".repeat(LINE_SHORT));
        let borne_out = |line: &str| {
            let short = Heredocs::default().extract(&format!("{line}{pad}"))?;
            Some(short.matches_tree(&syntax(&short.text)?))
        };
        for line in [
            "cat <<'E' > a\nx\nE\n",
            "cat > a <<-E\nx\n\tE\n",
            "cat <<\\E\nx\nE\n",
            "if true; then\ncat <<\"E\" | sort\nx\nE\nfi\n",
            "x=$(cat <<'E'\nx\nE\n)\n",
            "cat <<'E' > \"$(pwd)/a\"\nx\nE\n",
            "cat <<E && ls\nx\nE\n",
        ] {
            assert_eq!(borne_out(line), Some(true), "{line}");
        }
        for line in [
            "# see <<E\nrm -rf /\nE\n",
            "echo '\ncat <<A\n'; rm -rf /; : '\nA\n'\n",
            "echo $((1<<A))\nrm -rf /\nA\n",
            "((1<<A))\nrm -rf /\nA\n",
            "echo $[1<<A]\nrm -rf /\nA\n",
            "cat <<E \\\n; rm -rf /\nx\nE\n",
            "x='a\nb <<E c'\nrm -rf /\nE\n",
            "cat <<E 'a\nrm -rf /\nE\n'\n",
            "cat <<E $(ls\nrm -rf /\nE\n)\n",
            "cat <<A # <<B\nx\nA\nrm -rf /\nB\n",
            "cat <<X\n$Y\ncat <<'E'\nX\nrm -rf /\nE\n",
            "cat \"$(cat <<'X'\ncat <<'E'\nX\n)\"; rm -rf /\nE\n",
        ] {
            assert_ne!(borne_out(line), Some(true), "{line}");
        }
    }
}
