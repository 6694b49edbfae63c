//! Shell words: what quotes and escapes come to. What the shell would compute stays as written.

use std::str::Chars;

use tree_sitter::Node;

/// The text of a word as the shell would pass it.
pub(super) fn text_of(node: Node<'_>, source: &str) -> String {
    let mut out = String::new();
    append(node, source, &mut out);
    out
}

/// The source of a node, without the blanks before it: within quotes the grammar counts them to what follows.
pub(in crate::facts) fn raw<'s>(node: Node<'_>, source: &'s str) -> &'s str {
    let whole = source.get(node.byte_range()).unwrap_or_default();
    let begins: &[char] = match node.kind() {
        "\"" => &['"'],
        "simple_expansion" | "expansion" | "arithmetic_expansion" => &['$'],
        "command_substitution" => &['$', '`'],
        _ => return whole,
    };
    whole.find(begins).and_then(|at| whole.get(at..)).unwrap_or(whole)
}

fn append(node: Node<'_>, source: &str, out: &mut String) {
    let text = raw(node, source);
    match node.kind() {
        "raw_string" => out.push_str(inside(text, "'", "'")),
        "string" => unescape(inside(text, "\"", "\""), |c| "\"\\$`".contains(c), out),
        "translated_string" => unescape(inside(text, "$\"", "\""), |c| "\"\\$`".contains(c), out),
        "ansi_c_string" => unescape_ansi(inside(text, "$'", "'"), out),
        "word" => unescape(text, |_| true, out),
        "concatenation" | "command_name" => {
            let mut end = node.start_byte();
            let mut cursor = node.walk();
            for child in node.children(&mut cursor) {
                out.push_str(source.get(end..child.start_byte()).unwrap_or_default());
                append(child, source, out);
                end = child.end_byte();
            }
        }
        _ => out.push_str(text),
    }
}

pub(in crate::facts) fn inside<'t>(text: &'t str, open: &str, close: &str) -> &'t str {
    let text = text.strip_prefix(open).unwrap_or(text);
    text.strip_suffix(close).unwrap_or(text)
}

/// Removes the backslash before what it protects; a protected line end vanishes.
pub(in crate::facts) fn unescape(text: &str, protects: impl Fn(char) -> bool, out: &mut String) {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('\n') => {}
            Some(next) if protects(next) => out.push(next),
            Some(next) => out.extend(['\\', next]),
            None => out.push('\\'),
        }
    }
}

/// What a shell makes of the text of a here-document that it expands.
pub(in crate::facts) fn in_heredoc(text: &str) -> String {
    let mut out = String::new();
    unescape(text, |c| "\\$`".contains(c), &mut out);
    out
}

pub(in crate::facts) fn unescape_ansi(text: &str, out: &mut String) {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let mut octal = chars.clone();
        let Some(kind) = chars.next() else { break };
        let code = match kind {
            'x' => number(&mut chars, 16, 2),
            'u' => number(&mut chars, 16, 4),
            'U' => number(&mut chars, 16, 8),
            // A control character: the letter without its upper bits.
            'c' => chars.next().map(|it| u32::from(it) & 0x1f),
            '0'..='7' => {
                let code = number(&mut octal, 8, 3);
                chars = octal;
                code
            }
            plain => {
                out.push(match plain {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    'e' | 'E' => '\u{1b}',
                    other => other,
                });
                continue;
            }
        };
        let code = char::from_u32(code.unwrap_or_default());
        out.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
}

/// The number of an escape, of so many digits at most; nothing where there is none.
pub(in crate::facts) fn number(chars: &mut Chars<'_>, radix: u32, most: usize) -> Option<u32> {
    let mut value = None;
    for _ in 0..most {
        let Some(digit) = chars.clone().next().and_then(|it| it.to_digit(radix)) else { break };
        value = Some(value.unwrap_or(0_u32).wrapping_mul(radix).wrapping_add(digit));
        chars.next();
    }
    value
}

/// A word of a list, written so that a shell reads it as that word.
pub(in crate::facts) fn quoted(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(&b);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
