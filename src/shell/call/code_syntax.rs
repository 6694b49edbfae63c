//! The syntax that most languages share: arguments, literals, escapes, and the calls that load modules of JavaScript.
//!
//! Does not contain: the statements and names of a language (`code_tokens`), the calls and what they do (`code`).

use std::borrow::Cow;
use std::str::Chars;

use crate::shell::escape_number;

/// Returns each `require('module')`: where it begins, the last part of the module, and where it ends.
pub(super) fn required(code: &str) -> Vec<(usize, String, usize)> {
    let found = code.match_indices("require(").filter_map(|(at, mark)| {
        let rest = code.get(at + mark.len()..)?;
        let quote = rest.chars().next().filter(|it| matches!(it, '"' | '\'' | '`'))?;
        let (path, after) = rest.get(1..)?.split_once(quote)?;
        let after = after.strip_prefix(')')?;
        let module = path.rsplit(['/', ':']).next().unwrap_or(path);
        let is_name =
            !module.is_empty() && module.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        is_name.then(|| (at, module.to_owned(), code.len() - after.len()))
    });
    found.collect()
}

/// Returns code with the names of modules instead of the calls that load them: `fs.readFile` for `require('fs').readFile`.
pub(super) fn without_require(code: &str) -> Cow<'_, str> {
    let found = required(code);
    if found.is_empty() {
        return Cow::Borrowed(code);
    }
    let (mut out, mut start) = (String::new(), 0);
    for (at, module, end) in found {
        out.push_str(code.get(start..at).unwrap_or_default());
        out.push_str(&module);
        start = end;
    }
    out.push_str(code.get(start..).unwrap_or_default());
    Cow::Owned(out)
}

/// Splits the arguments up to the closing parenthesis.
pub(super) fn arguments(text: &str) -> Vec<String> {
    let (mut found, mut word, mut depth) = (Vec::new(), String::new(), 0_usize);
    let mut quote: Option<char> = None;
    let mut escaped = false;
    for c in text.chars() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}' | ';' | '\n') if depth == 0 => break,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                found.push(std::mem::take(&mut word));
                continue;
            }
            (None, _) => {}
        }
        word.push(c);
    }
    if !word.trim().is_empty() {
        found.push(word);
    }
    found
}

/// Returns the string literals of a piece of code.
pub(super) fn literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut chars = code.chars();
    while let Some(c) = chars.next() {
        if !matches!(c, '"' | '\'' | '`') {
            continue;
        }
        let mut text = String::new();
        while let Some(next) = chars.next() {
            match next {
                '\\' => text.extend(unescaped(&mut chars)),
                next if next == c => break,
                next => text.push(next),
            }
        }
        found.push(text);
    }
    found
}

/// Returns the character of an escape sequence that most languages share: `\x20`, `\040`. Any other
/// escaped character is itself.
pub(super) fn unescaped(chars: &mut Chars<'_>) -> Option<char> {
    let first = chars.clone().next()?;
    let code = match first {
        'x' => chars.next().and_then(|_| escape_number(chars, 16, 2)),
        '0'..='7' => escape_number(chars, 8, 3),
        _ => return chars.next(),
    };
    let code = code.and_then(char::from_u32);
    code.filter(|it| *it != '\0').or(Some(first))
}
