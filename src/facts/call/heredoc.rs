//! Here-documents of a long line: a body that the shell does not expand is data until some program
//! reads it, so that it is taken out before the line is parsed, and counts for nothing in its length.
//! Where a body lies is only guessed before: the tree of the shortened line has to bear it out.

use std::collections::BTreeMap;

use tree_sitter::{Node, Tree};

use super::super::shell::{child_of_kind, node_text};

/// Lines shorter than that, in bytes, are parsed as they are.
const LINE_SHORT: usize = 8 * 1024;
/// What stands in the place of a body, before its number.
const MARK: &str = "policyd-here-document-";

/// Bodies that were taken out.
#[derive(Debug, Default)]
pub(super) struct Heredocs {
    bodies: Vec<String>,
}

/// A text without the bodies of its here-documents.
#[derive(Debug)]
pub(super) struct Shortened {
    pub(super) text: String,
    /// What stands in the place of each body, and the mark that it was taken for.
    taken: Vec<(String, Mark)>,
}

impl Shortened {
    /// Whether its tree has every body that was taken out as the body of that very here-document. What
    /// was taken out elsewhere, out of quotes or behind a comment, may be commands.
    pub(super) fn is_borne_out(&self, tree: &Tree) -> bool {
        let mut left: BTreeMap<&str, &Mark> =
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

/// The body of a here-document in the tree, and its mark.
fn heredoc<'t>(node: Node<'_>, source: &'t str) -> Option<(&'t str, Mark)> {
    if node.kind() != "heredoc_redirect" {
        return None;
    }
    let body = node_text(child_of_kind(node, "heredoc_body")?, source).trim();
    let start = node_text(child_of_kind(node, "heredoc_start")?, source);
    let dash = if child_of_kind(node, "<<-").is_some() { "-" } else { "" };
    Some((body, mark(&format!("{dash}{start}"))?))
}

impl Heredocs {
    /// A long text without the bodies of its here-documents; nothing, where it is short or has none,
    /// or where it cannot be told where they begin.
    pub(super) fn take_out(&mut self, source: &str) -> Option<Shortened> {
        if source.len() < LINE_SHORT || !source.contains("<<") || source.contains(MARK) {
            return None;
        }
        let (mut text, mut taken) = (String::new(), Vec::new());
        let mut rest = source;
        while !rest.is_empty() {
            let (line, after) = cut_line(rest);
            text.push_str(line);
            rest = after;
            for mark in marks(line)? {
                // Without an end it is none, or the line is broken.
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
        (!taken.is_empty()).then_some(Shortened { text, taken })
    }

    /// The body that was taken out, or the text itself.
    pub(super) fn put_back(&self, text: &str) -> String {
        let number = text.trim().strip_prefix(MARK).and_then(|it| it.parse::<usize>().ok());
        let body = number.and_then(|it| self.bodies.get(it));
        body.map_or_else(|| text.to_owned(), Clone::clone)
    }
}

/// The mark of a here-document: `<<'EOF'`.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    word: String,
    quoted: bool,
    /// Whether tabs before its end are left out: `<<-`.
    tabs: bool,
}

impl Mark {
    /// The body, and what follows from its end on.
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

/// The first line of a text with its end, and the rest.
fn cut_line(text: &str) -> (&str, &str) {
    let end = text.find('\n').map_or(text.len(), |it| it + 1);
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// The marks in a line, outside of quotes; nothing where a body may not begin in the next line, since a
/// quote or a substitution behind a mark is still open.
fn marks(line: &str) -> Option<Vec<Mark>> {
    let (mut found, mut quote, mut skip) = (Vec::new(), None, 0);
    // How many braces and parentheses are open since the first mark.
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
                    found.extend(mark(rest.get(ends..).unwrap_or_default()));
                    // Its quotes are not those of the line.
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

fn mark(text: &str) -> Option<Mark> {
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
    // What more may stand in a word means too much.
    let plain = |c: char| c.is_alphanumeric() || "_-.:/+=@%,!".contains(c);
    (!word.is_empty() && word.chars().all(plain)).then_some(Mark { word, quoted, tabs })
}

#[cfg(test)]
mod tests {
    use super::super::super::shell::syntax;
    use super::*;

    #[test]
    fn bodies_of_long_lines_are_taken_out_and_put_back() {
        let body = "rm -rf / $HOME\n".repeat(1000);
        let mut heredocs = Heredocs::default();
        let line = format!("cat <<'EOF' > a.txt && cat <<-B\n{body}EOF\n\tx $Y\n\tB\necho done\n");
        let short = heredocs.take_out(&line).unwrap().text;
        assert_eq!(
            short,
            "cat <<'EOF' > a.txt && cat <<-B\npolicyd-here-document-0\nEOF\n\tx $Y\n\tB\necho done\n"
        );
        assert_eq!(heredocs.put_back("policyd-here-document-0\n"), body);
        assert_eq!(heredocs.put_back("policyd-here-document-9\n"), "policyd-here-document-9\n");
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
            let made = Heredocs::default().take_out(&line);
            assert!(made.is_none(), "{}", line.get(..20).unwrap_or_default());
        }
        assert!(Heredocs::default().take_out("cat <<'E'\na\nE\n").is_none(), "short");
    }

    #[test]
    fn what_was_taken_out_is_the_body_of_its_heredoc() {
        let pad = format!("# {}\n", "x".repeat(LINE_SHORT));
        let borne_out = |line: &str| {
            let short = Heredocs::default().take_out(&format!("{line}{pad}"))?;
            Some(short.is_borne_out(&syntax(&short.text)?))
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
