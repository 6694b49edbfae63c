//! Here-documents of a long line: a body that the shell does not expand is data until some program
//! reads it, so that it is taken out before the line is parsed, and counts for nothing in its length.

use std::borrow::Cow;

/// Lines shorter than that, in bytes, are parsed as they are.
const LINE_SHORT: usize = 8 * 1024;
/// What stands in the place of a body, before its number.
const MARK: &str = "policyd-here-document-";

/// Bodies that were taken out.
#[derive(Debug, Default)]
pub(super) struct Heredocs {
    bodies: Vec<String>,
}

impl Heredocs {
    /// A long text without the bodies of its here-documents; nothing, where it is short or has none.
    pub(super) fn take_out(&mut self, source: &str) -> Option<String> {
        if source.len() < LINE_SHORT || !source.contains("<<") {
            return None;
        }
        let mut out = String::new();
        let mut rest = source;
        let mut any = false;
        while !rest.is_empty() {
            let (line, after) = cut_line(rest);
            out.push_str(line);
            rest = after;
            for heredoc in marks(line) {
                // Without an end it is none, or the line is broken.
                let (body, after) = heredoc.body(rest)?;
                rest = after;
                let expanded = !heredoc.quoted && body.contains(['$', '`', '\\']);
                if expanded || body.is_empty() {
                    out.push_str(body);
                } else {
                    out.push_str(&format!("{MARK}{}\n", self.bodies.len()));
                    self.bodies.push(body.to_owned());
                    any = true;
                }
                let (end, after) = cut_line(rest);
                out.push_str(end);
                rest = after;
            }
        }
        any.then_some(out)
    }

    /// The body that was taken out, or the text itself.
    pub(super) fn put_back(&self, text: &str) -> String {
        let number = text.trim().strip_prefix(MARK).and_then(|it| it.parse::<usize>().ok());
        let body = number.and_then(|it| self.bodies.get(it));
        body.map_or_else(|| text.to_owned(), Clone::clone)
    }
}

/// The mark of a here-document: `<<'EOF'`.
struct Mark<'t> {
    word: Cow<'t, str>,
    quoted: bool,
    /// Whether tabs before its end are left out: `<<-`.
    tabs: bool,
}

impl Mark<'_> {
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

/// The marks in a line, outside of quotes.
fn marks(line: &str) -> Vec<Mark<'_>> {
    let (mut found, mut quote, mut skip) = (Vec::new(), None, 0);
    for (at, c) in line.char_indices() {
        match (quote, c) {
            _ if at < skip => {}
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\\') => skip = at + 2,
            (None, '"' | '\'') => quote = Some(c),
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
    found
}

fn mark(text: &str) -> Option<Mark<'_>> {
    let (tabs, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let text = text.trim_start_matches([' ', '\t']);
    let end = text.find([' ', '\n', ';', '|', '&', ')', '>', '<']).unwrap_or(text.len());
    let word = text.get(..end)?;
    let quoted = word.contains(['\'', '"', '\\']);
    let word = match quoted {
        true => Cow::Owned(word.replace(['\'', '"', '\\'], "")),
        false => Cow::Borrowed(word),
    };
    (!word.is_empty()).then_some(Mark { word, quoted, tabs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_of_long_lines_are_taken_out_and_put_back() {
        let body = "rm -rf / $HOME\n".repeat(1000);
        let mut heredocs = Heredocs::default();
        let line = format!("cat <<'EOF' > a.txt && cat <<-B\n{body}EOF\n\tx $Y\n\tB\necho done\n");
        let short = heredocs.take_out(&line).unwrap_or_default();
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
            assert_eq!(
                Heredocs::default().take_out(&line),
                None,
                "{}",
                line.get(..20).unwrap_or_default()
            );
        }
        assert_eq!(Heredocs::default().take_out("cat <<'E'\na\nE\n"), None, "short");
    }
}
