//! Cuts an expression into tokens, as Rhai does. May not live here: what tokens mean together.

use std::ops::Range;

/// A token of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) kind: TokenKind,
    /// The token as it is written.
    pub(super) text: &'t str,
    pub(super) range: Range<usize>,
}

/// Kinds of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name or a keyword.
    Name,
    /// An operator or a bracket.
    Sign,
    /// A number: its digits without separators.
    Number(String),
    /// A text: its value.
    Text(String),
    /// A character in single quotes; expressions cannot use one.
    Character,
}

impl Token<'_> {
    /// Whether the token is this sign or keyword.
    pub(super) fn is(&self, text: &str) -> bool {
        matches!(self.kind, TokenKind::Name | TokenKind::Sign) && self.text == text
    }
}

/// Words that Rhai does not accept as a name, besides `true`, `false`, `if`.
pub(super) const RESERVED: [&str; 62] = [
    "Fn",
    "as",
    "async",
    "await",
    "break",
    "call",
    "case",
    "catch",
    "const",
    "continue",
    "curry",
    "debug",
    "default",
    "do",
    "else",
    "eval",
    "export",
    "fn",
    "for",
    "go",
    "goto",
    "import",
    "in",
    "is",
    "is_def_fn",
    "is_def_var",
    "is_shared",
    "let",
    "loop",
    "match",
    "module",
    "new",
    "nil",
    "null",
    "package",
    "print",
    "private",
    "protected",
    "public",
    "return",
    "shared",
    "spawn",
    "static",
    "super",
    "switch",
    "sync",
    "this",
    "thread",
    "throw",
    "try",
    "type_of",
    "until",
    "use",
    "var",
    "void",
    "while",
    "with",
    "yield",
    "true",
    "false",
    "if",
    "_",
];

/// Whether a word cannot be the name of a fact or a member.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
        || !word.trim_start_matches('_').starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Signs, longer ones first.
const SIGNS: [&str; 31] = [
    "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "**", "??", "?.", "?[", "(", ")", "[", "]",
    "{", "}", ",", ".", "!", "<", ">", "+", "-", "*", "/", "%", "|", "&", "^",
];

/// What Rhai reads as one sign and expressions do not have, although it begins as one of `SIGNS` does.
const FOREIGN_SIGNS: [&str; 23] = [
    "===", "!==", "!.", "++", "+=", "--", "-=", "->", "*=", "*)", "(*", "**=", "/=", "%=", "<-",
    "<|", "<<=", ">>=", "|>", "|=", "&=", "^=", "..",
];

/// The tokens of an expression.
///
/// # Errors
/// The byte of the first thing that cannot be a token of an expression.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, usize> {
    let mut found = Vec::with_capacity(text.len() / 4 + 1);
    let mut at = 0;
    loop {
        at = after_blanks(text, at);
        let Some(rest) = text.get(at..).filter(|it| !it.is_empty()) else { return Ok(found) };
        let (kind, length) = token(text, at, rest).ok_or(at)?;
        let range = at..at + length;
        at = range.end;
        found.push(Token { kind, text: text.get(range.clone()).unwrap_or_default(), range });
    }
}

/// The token that begins at `at`, with its length. `None` if none begins there.
pub(super) fn token(text: &str, at: usize, rest: &str) -> Option<(TokenKind, usize)> {
    let first = rest.chars().next()?;
    if first.is_ascii_alphabetic() || first == '_' {
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        return Some((TokenKind::Name, rest.find(is_end).unwrap_or(rest.len())));
    }
    match first {
        '0'..='9' => Some(number(rest)),
        '"' => quoted(text, at),
        '`' => verbatim(rest),
        '\'' => character(rest),
        _ => sign(rest),
    }
}

fn sign(rest: &str) -> Option<(TokenKind, usize)> {
    if FOREIGN_SIGNS.iter().any(|it| rest.starts_with(it)) {
        return None;
    }
    let is_membership = rest
        .strip_prefix("!in")
        .is_some_and(|it| !it.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'));
    if is_membership {
        return Some((TokenKind::Sign, 3));
    }
    let found = SIGNS.iter().find(|it| rest.starts_with(**it))?;
    Some((TokenKind::Sign, found.len()))
}

/// Where the next token begins behind blanks and comments.
pub(super) fn after_blanks(text: &str, mut at: usize) -> usize {
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let next = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
        at += rest.len() - next.len();
        if next.starts_with("//") {
            at += next.find(['\n', '\r']).unwrap_or(next.len());
        } else if next.starts_with("/*") {
            at += comment_length(next);
        } else {
            return at;
        }
    }
}

/// Bytes of the block comment that a text begins with. Comments nest; one without an end takes all.
fn comment_length(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(next) = rest.get(at..).filter(|it| !it.is_empty()) {
        if next.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if next.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += next.chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// Whether an expression contains a comment.
pub(super) fn has_comment(text: &str) -> bool {
    let Ok(tokens) = tokens(text) else { return false };
    let ends = std::iter::once(0).chain(tokens.iter().map(|it| it.range.end));
    let starts = tokens.iter().map(|it| it.range.start).chain([text.len()]);
    ends.zip(starts).any(|(end, start)| {
        text.get(end..start).is_some_and(|it| it.contains(|c: char| !c.is_ascii_whitespace()))
    })
}

/// A number, and its bytes.
fn number(rest: &str) -> (TokenKind, usize) {
    let (mut digits, mut at) = (String::new(), 0);
    let (mut radix, mut has_period, mut has_exponent) = (10, false, false);
    let char_at = |at: usize| rest.get(at..).and_then(|it| it.chars().next());
    while let Some(c) = char_at(at) {
        let after = char_at(at + 1);
        let is_next_digit = after.is_some_and(|it| it.is_ascii_digit());
        match c {
            '_' if at > 0 => {}
            c if c.is_digit(radix) => digits.push(c),
            '.' if !has_period && radix == 10 && is_next_digit => {
                digits.push('.');
                has_period = true;
            }
            '.' if !has_period
                && radix == 10
                && after
                    .is_some_and(|it| !matches!(it, '_' | '.') && !it.is_ascii_alphabetic()) =>
            {
                digits.push_str(".0");
                has_period = true;
            }
            'e' | 'E' if !has_exponent && radix == 10 && is_next_digit => {
                digits.push('e');
                (has_exponent, has_period) = (true, true);
            }
            'e' | 'E' if !has_exponent && radix == 10 && matches!(after, Some('+' | '-')) => {
                digits.push('e');
                digits.extend(after);
                (has_exponent, has_period) = (true, true);
                at += 1;
            }
            'x' | 'X' | 'o' | 'O' | 'b' | 'B' if digits == "0" => {
                digits.push(c);
                radix = match c {
                    'x' | 'X' => 16,
                    'o' | 'O' => 8,
                    _ => 2,
                };
            }
            _ => break,
        }
        at += 1;
    }
    (TokenKind::Number(digits), at)
}

/// `'x'`
fn character(rest: &str) -> Option<(TokenKind, usize)> {
    let mut chars = rest.chars().skip(1);
    let inside = chars.next().filter(|it| !matches!(it, '\\' | '\'' | '\n' | '\r'))?;
    (chars.next() == Some('\'') && chars.next() != Some('\''))
        .then(|| (TokenKind::Character, 2 + inside.len_utf8()))
}

/// Reads a text in backticks. Its only escapes are `\${`, and two backticks for one backtick.
fn verbatim(rest: &str) -> Option<(TokenKind, usize)> {
    let (mut value, mut at) = (String::new(), 1);
    for first in ["\r\n", "\r", "\n"] {
        if rest.get(at..)?.starts_with(first) {
            at += first.len();
            break;
        }
    }
    while let Some(next) = rest.get(at..).filter(|it| !it.is_empty()) {
        if next.starts_with("${") {
            return None;
        }
        if next.starts_with("\\${") {
            value.push('$');
            at += 2;
        } else if next.starts_with("``") {
            value.push('`');
            at += 2;
        } else if next.starts_with('`') {
            return Some((TokenKind::Text(value), at + 1));
        } else {
            let c = next.chars().next()?;
            if !next.starts_with("\r\n") {
                value.push(c);
            }
            at += c.len_utf8();
        }
    }
    None
}

/// A text in double quotes that begins at `start`.
fn quoted(text: &str, start: usize) -> Option<(TokenKind, usize)> {
    let rest = text.get(start..)?;
    let (mut value, mut at) = (String::new(), 1);
    while let Some(next) = rest.get(at..)
        && let Some(c) = next.chars().next()
    {
        at += c.len_utf8();
        match c {
            '"' if next.starts_with("\"\"") => {
                value.push('"');
                at += 1;
            }
            '"' => return Some((TokenKind::Text(value), at)),
            '\n' => return None,
            '\r' if next.starts_with("\r\n") => {}
            '\\' => {
                let (escaped, length) = escape(rest.get(at..)?)?;
                at += length;
                match escaped {
                    Some(c) => value.push(c),
                    None => at += indent(text, start, at),
                }
            }
            c => value.push(c),
        }
    }
    None
}

/// The character behind a backslash, with its bytes; no character if the line goes on below.
fn escape(rest: &str) -> Option<(Option<char>, usize)> {
    let c = rest.chars().next()?;
    let code = |digits: usize| {
        let hex = rest.get(1..1 + digits).filter(|it| it.bytes().all(|b| b.is_ascii_hexdigit()))?;
        Some((Some(char::from_u32(u32::from_str_radix(hex, 16).ok()?)?), 1 + digits))
    };
    match c {
        'n' => Some((Some('\n'), 1)),
        'r' => Some((Some('\r'), 1)),
        't' => Some((Some('\t'), 1)),
        '\\' | '"' => Some((Some(c), 1)),
        'x' => code(2),
        'u' => code(4),
        'U' => code(8),
        '\n' => Some((None, 1)),
        '\r' if rest.starts_with("\r\n") => Some((None, 2)),
        _ => None,
    }
}

/// Bytes of the blanks at `at` that only align a continued line with the quotation mark at `start`.
fn indent(text: &str, start: usize, at: usize) -> usize {
    let line = text.get(..start).map_or(0, |before| before.rfind('\n').map_or(0, |it| it + 1));
    let columns = text.get(line..start).map_or(0, |it| it.chars().count()) + 1;
    let rest = text.get(start + at..).unwrap_or_default();
    let blanks = rest.chars().take(columns).take_while(|it| it.is_whitespace() && *it != '\n');
    blanks.map(char::len_utf8).sum()
}
