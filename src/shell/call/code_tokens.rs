//! The names and statements of code in other languages, as far as the flow of data needs them.
//!
//! Contains: [`CodeTokens`]: the code without its texts and comments, its names, brackets, and statements.
//! Does not contain: a parser of any language, calls (`code`), the flow of data (`code_flow`).

use std::ops::Range;

/// Languages whose comments begin with `//`.
const SLASHES: [&str; 8] = ["node", "nodejs", "tsx", "ts-node", "bun", "deno", "php", "osascript"];
/// Words before a `{` that begins statements.
const BLOCKS: [&str; 4] = ["else", "try", "do", "finally"];
/// The names of the object to which a method belongs.
const OWN: [&str; 2] = ["self", "this"];

/// A name in code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CodeName {
    pub(super) at: usize,
    pub(super) end: usize,
    /// Whether it names a value, and not a member of one: `a` of `a.b`, and `b` of `self.b`.
    pub(super) is_value: bool,
}

/// Code without its texts and comments.
#[derive(Debug)]
pub(super) struct CodeTokens {
    /// The code. Blanks replace texts and comments, apart from the values in a text.
    pub(super) code: String,
    /// The names in it, in order.
    pub(super) names: Vec<CodeName>,
    /// Whether the arguments of its calls can have names: `f(data=x)`.
    pub(super) has_keywords: bool,
    /// Whether its functions are arrows.
    pub(super) has_arrows: bool,
}

impl CodeTokens {
    /// Reads the code of a program of this name.
    pub(super) fn of(language: &str, code: &str) -> Self {
        let has_slashes = SLASHES.contains(&language);
        let code = masked(code, has_slashes);
        let begins = |names: &[&str]| names.iter().any(|it| language.starts_with(it));
        Self {
            names: names_of(&code),
            code,
            has_keywords: begins(&["py", "R", "julia"]),
            has_arrows: has_slashes && !begins(&["php", "osascript"]),
        }
    }

    /// Returns the text of a name.
    pub(super) fn text(&self, token: &CodeName) -> &str {
        self.part(&(token.at..token.end))
    }

    /// Returns a part of the code.
    pub(super) fn part(&self, range: &Range<usize>) -> &str {
        self.code.get(range.clone()).unwrap_or_default()
    }

    /// Returns the names in a part.
    pub(super) fn within(&self, range: &Range<usize>) -> &[CodeName] {
        let first = self.names.partition_point(|it| it.at < range.start);
        let last = self.names.partition_point(|it| it.at < range.end);
        self.names.get(first..last).unwrap_or_default()
    }

    /// Returns the first character at or behind an offset that is not a blank, and its offset.
    pub(super) fn next_char(&self, at: usize) -> Option<(usize, char)> {
        let rest = self.code.get(at..)?;
        rest.char_indices().find(|it| !it.1.is_whitespace()).map(|(step, c)| (at + step, c))
    }

    /// Returns the part within the brackets that open at an offset.
    pub(super) fn inside(&self, open: usize) -> Range<usize> {
        let mut depth = 0_usize;
        let rest = self.code.get(open..).unwrap_or_default();
        for (step, c) in rest.char_indices() {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return open + 1..open + step;
                    }
                }
                _ => {}
            }
        }
        (open + 1).min(self.code.len())..self.code.len()
    }

    /// Splits a part at the commas outside of brackets.
    pub(super) fn split(&self, part: &Range<usize>) -> Vec<Range<usize>> {
        let (mut found, mut depth, mut start) = (Vec::new(), 0_usize, part.start);
        for (step, c) in self.part(part).char_indices() {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth = depth.saturating_sub(1),
                ',' if depth == 0 => {
                    found.push(start..part.start + step);
                    start = part.start + step + 1;
                }
                _ => {}
            }
        }
        found.push(start..part.end);
        found
    }

    /// Returns the statements. Those of a block are statements of their own.
    pub(super) fn statements(&self) -> Vec<Range<usize>> {
        // For each open bracket, whether statements are in it.
        let mut open: Vec<bool> = Vec::new();
        let (mut found, mut start) = (Vec::new(), 0);
        for (at, c) in self.code.char_indices() {
            let is_end = match c {
                '(' | '[' => {
                    open.push(false);
                    false
                }
                '{' => {
                    let (is_block, is_end) = self.begins_block(at);
                    open.push(is_block);
                    is_end
                }
                ')' | ']' => {
                    open.pop();
                    false
                }
                '}' => open.pop() == Some(true),
                ';' | '\n' => open.last().is_none_or(|it| *it),
                _ => false,
            };
            if is_end {
                found.push(start..at);
                start = at + 1;
            }
        }
        found.push(start..self.code.len());
        found.retain(|it| !self.part(it).trim().is_empty());
        found
    }

    /// Returns whether a `{` begins statements, and whether it ends the statement before. The parameters of a block of
    /// Ruby belong to that statement.
    fn begins_block(&self, at: usize) -> (bool, bool) {
        if self.has_keywords {
            return (false, false);
        }
        if self.next_char(at + 1).is_some_and(|it| it.1 == '|') {
            return (true, false);
        }
        let before = self.code.get(..at).unwrap_or_default().trim_end();
        let is_block = before.is_empty()
            || before.ends_with([')', ';', '{', '}'])
            || before.ends_with("=>")
            || BLOCKS.iter().any(|it| before.ends_with(it));
        (is_block, is_block)
    }
}

/// Returns the names of code without texts.
fn names_of(code: &str) -> Vec<CodeName> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut found: Vec<CodeName> = Vec::new();
    let mut at = 0;
    while let Some(step) = code.get(at..).and_then(|it| it.find(is_part)) {
        let start = at + step;
        let rest = code.get(start..).unwrap_or_default();
        at = start + rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let before = code.get(..start).unwrap_or_default().trim_end_matches(['$', '@', '%', ' ']);
        let is_member = (before.ends_with('.') && !before.ends_with(".."))
            || before.ends_with("->")
            || before.ends_with("::");
        let is_own = found.last().is_some_and(|it| {
            OWN.contains(&code.get(it.at..it.end).unwrap_or_default()) && start - it.end <= 3
        });
        if !rest.starts_with(|c: char| c.is_ascii_digit()) {
            found.push(CodeName { at: start, end: at, is_value: !is_member || is_own });
        }
    }
    found
}

/// Returns code with blanks instead of the texts and comments.
fn masked(code: &str, has_slashes: bool) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        let is_start = out.is_empty() || out.ends_with(char::is_whitespace);
        let is_comment = match has_slashes {
            true => rest.starts_with("//"),
            false => c == '#' && is_start,
        };
        let len = if is_comment {
            let len = rest.find('\n').unwrap_or(rest.len());
            out.extend(std::iter::repeat_n(' ', len));
            len
        } else if matches!(c, '"' | '\'' | '`') {
            let is_format = out.ends_with(['f', 'F']);
            let (text, len) = masked_text(rest, c, is_format);
            out.push_str(&text);
            len
        } else {
            out.push(c);
            c.len_utf8()
        };
        rest = rest.get(len..).unwrap_or_default();
    }
    out
}

/// Returns the text at the start of code with blanks, apart from the values in it, and its length.
fn masked_text(code: &str, quote: char, is_format: bool) -> (String, usize) {
    let triple: String = std::iter::repeat_n(quote, 3).collect();
    let close = if code.starts_with(&triple) { triple } else { quote.to_string() };
    let is_short = close.len() == 1 && quote != '`';
    let mut out = " ".repeat(close.len());
    let mut rest = code.get(close.len()..).unwrap_or_default();
    let mut is_value = false;
    while let Some(c) = rest.chars().next() {
        if !is_value && rest.starts_with(&close) {
            out.push_str(&" ".repeat(close.len()));
            let len = out.len();
            return (out, len);
        }
        let blank = |it: char| " ".repeat(it.len_utf8());
        let mut len = c.len_utf8();
        match c {
            // The apostrophe of a comment.
            '\n' if is_short && quote == '\'' => return (" ".to_owned(), 1),
            '\\' => {
                len += rest.chars().nth(1).map_or(0, char::len_utf8);
                out.push_str(&" ".repeat(len));
            }
            '{' if !is_value => {
                let before = code.get(..out.len()).unwrap_or_default();
                is_value = is_format || before.ends_with(['$', '#']);
                out.push(' ');
            }
            '}' if is_value => {
                is_value = false;
                out.push(' ');
            }
            '$' if quote == '"' && !is_value => {
                let name = rest.get(1..).unwrap_or_default();
                let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let end = end.unwrap_or(name.len());
                out.push(' ');
                out.push_str(name.get(..end).unwrap_or_default());
                len += end;
            }
            c if is_value && c != '\n' && !matches!(c, '"' | '\'' | '`') => out.push(c),
            c => out.push_str(&blank(c)),
        }
        rest = rest.get(len..).unwrap_or_default();
    }
    let len = out.len();
    (out, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_comments_are_blanks() {
        for (language, code, expected) in [
            ("python3", "a = 'b' # c\nd", "a =        \nd"),
            ("python3", "f(f'x{y}z', \"{n}\")", "f(f   y   ,      )"),
            ("node", "a(`x${b.c}`) // d", "a(    b.c  )     "),
            ("ruby", "a \"#{b}\"", "a    b  "),
            ("perl", "a(\"$b c\")", "a(  b   )"),
            ("python3", "# don't\nb = 'c'", "       \nb =    "),
        ] {
            assert_eq!(CodeTokens::of(language, code).code, expected, "{code}");
        }
    }

    #[test]
    fn statements_end_outside_of_brackets() {
        for (language, code, expected) in [
            ("python3", "a = f(\n b,\n)\nc", vec!["a = f(\n b,\n)", "c"]),
            ("python3", "a = {\n 1: b,\n}; c", vec!["a = {\n 1: b,\n}", " c"]),
            (
                "node",
                "get(u, r => { let d = 1; go(d) })",
                vec!["get(u, r => ", " let d = 1", " go(d) ", ")"],
            ),
            ("node", "a({b: c,\n d: e})", vec!["a({b: c,\n d: e})"]),
            ("ruby", "a.each { |b| go b; c }", vec!["a.each { |b| go b", " c "]),
        ] {
            let tokens = CodeTokens::of(language, code);
            let found: Vec<&str> = tokens.statements().iter().map(|it| tokens.part(it)).collect();
            assert_eq!(found, expected, "{code}");
        }
    }

    #[test]
    fn members_are_no_values() {
        let tokens = CodeTokens::of("python3", "a.b(self.c, d.e.f)");
        let values = tokens.names.iter().filter(|it| it.is_value);
        let values: Vec<&str> = values.map(|it| tokens.text(it)).collect();
        assert_eq!(values, ["a", "self", "c", "d"]);
    }
}
