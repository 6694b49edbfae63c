//! White space between the tokens of an expression, as `policyd lsp` formats it.

use std::ops::Range;

use super::lexer::{Token, TokenKind, tokens};
use super::parse;

/// Keywords before an operand.
const BEFORE_OPERAND: [&str; 5] = ["in", "if", "else", "let", "return"];

/// White space that should be another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpacingMistake {
    /// Bytes between two tokens; can be empty.
    pub range: Range<usize>,
    /// White space that it should be.
    pub wanted: &'static str,
}

/// Returns the white space of an expression that should be another. Comments, line breaks, and everything that is not an
/// expression stay as they are, so a change of the white space changes no token.
#[must_use]
pub fn spacing_mistakes(text: &str) -> Vec<SpacingMistake> {
    let tokens = tokens(text).unwrap_or_default();
    let mut found = Vec::new();
    let mut before = None;
    for (left, right) in tokens.iter().zip(tokens.iter().skip(1)) {
        let range = left.range.end..right.range.start;
        let gap = text.get(range.clone()).unwrap_or_default();
        let wanted = wanted(before, left, right, gap);
        if let Some(wanted) = wanted.filter(|it| gap.chars().all(|c| c == ' ') && *it != gap) {
            found.push(SpacingMistake { range, wanted });
        }
        before = Some(left);
    }
    found
}

/// Returns the white space between two tokens; `None` if any is right. `before` is the token before the left one.
fn wanted(
    before: Option<&Token<'_>>,
    left: &Token<'_>,
    right: &Token<'_>,
    gap: &str,
) -> Option<&'static str> {
    let is_binary = |it: &Token<'_>, before: Option<&Token<'_>>| {
        // A bar encloses the arguments of a function.
        let is_operator = it.kind == TokenKind::Sign && it.text != "|" && parse::is_binary(it.text);
        is_operator && before.is_some_and(ends_operand)
    };
    let is_any = |it: &Token<'_>, signs: &[&str]| signs.iter().any(|sign| it.is(sign));
    if right.is(",") {
        return Some("");
    }
    if left.is(",") || is_binary(left, before) || is_binary(right, Some(left)) {
        return Some(" ");
    }
    let is_closed = is_any(right, &[")", "]", "."]) || is_any(left, &["(", "[", ".", "!"]);
    let is_sign = left.is("-");
    let is_call = is_any(right, &["(", "["]) && ends_operand(left);
    if is_closed || is_sign || is_call {
        return Some("");
    }
    (gap.len() > 1).then_some(" ")
}

/// Whether an operand ends with a token.
fn ends_operand(it: &Token<'_>) -> bool {
    match it.kind {
        TokenKind::Name => !BEFORE_OPERAND.contains(&it.text),
        TokenKind::Sign => [")", "]", "}"].contains(&it.text),
        TokenKind::Number(_) | TokenKind::Text(_) | TokenKind::Character => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(text: &str) -> String {
        let mut out = text.to_owned();
        for it in spacing_mistakes(text).into_iter().rev() {
            out.replace_range(it.range, it.wanted);
        }
        out
    }

    #[test]
    fn white_space_is_regular_and_tokens_stay() {
        for (text, wanted) in [
            ("a>1&&b", "a > 1 && b"),
            ("a   ==  \"x  ==  y\"", "a == \"x  ==  y\""),
            ("f( a ,b ) . count -1", "f(a, b).count - 1"),
            ("x in [ \"a\",\"b\" ]", "x in [\"a\", \"b\"]"),
            ("! a || - 1 < b", "!a || -1 < b"),
            ("a - -1", "a - -1"),
            ("a  /* why */  && b", "a  /* why */  && b"),
            ("a  &&\n    b", "a &&\n    b"),
            ("if a{1}else{2}", "if a{1}else{2}"),
            ("if  (a) { 1 }", "if (a) { 1 }"),
            ("xs.any(|x|x>1)", "xs.any(|x|x > 1)"),
            ("not ' an expression", "not ' an expression"),
        ] {
            let out = formatted(text);
            assert_eq!(out, wanted);
            assert_eq!(formatted(&out), out, "a second time changes nothing");
            let texts = |it: &str| -> Vec<String> {
                tokens(it).unwrap_or_default().iter().map(|it| it.text.to_owned()).collect()
            };
            assert_eq!(texts(text), texts(&out));
        }
    }
}
