//! Fixes for expressions that are not understood, mostly for the syntax of other languages.

use std::ops::Range;

use super::rewrite::{
    CURLY, Remedy, between, conditional, double_quotes, negation, not_in, one_of, regex_match,
    tokens, without_braces,
};

/// Bytes of the token that `rest` starts with: a name, a number, a string, an operator.
pub(super) fn token_length(rest: &str) -> usize {
    let Some(first) = rest.chars().next() else { return 0 };
    let run = |keep: fn(char) -> bool| rest.find(|c| !keep(c)).unwrap_or(rest.len());
    if first == '"' {
        let mut escaped = false;
        let inner = rest.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        return inner.map_or(rest.len(), |(at, _)| at.saturating_add(1));
    }
    if first == '`' {
        // Two backticks are an escaped backtick.
        let mut signs = rest.match_indices('`').map(|(at, _)| at).skip(1).peekable();
        while let Some(at) = signs.next() {
            if signs.next_if_eq(&(at + 1)).is_none() {
                return at + 1;
            }
        }
        return rest.len();
    }
    let closes: &[char] = match first {
        '‘' | '’' => &['’'],
        '«' => &['»'],
        '»' => &['«'],
        '“' | '”' | '„' => &['”', '“'],
        _ => &['\''],
    };
    if first == '\'' || CURLY.contains(first) {
        let inner = rest.char_indices().skip(1).take_while(|(_, c)| *c != '\n');
        let end = inner.filter(|(_, c)| closes.contains(c)).map(|(at, c)| at + c.len_utf8()).next();
        return end.unwrap_or(first.len_utf8());
    }
    if first.is_ascii_digit() {
        let whole = run(|c| c.is_ascii_digit() || c == '_');
        let fraction = rest.get(whole..).and_then(|it| it.strip_prefix('.')).unwrap_or_default();
        let digits = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
        return if digits == 0 {
            run(|c| c.is_alphanumeric() || c == '_')
        } else {
            whole + 1 + digits
        };
    }
    if first.is_alphanumeric() || first == '_' {
        return run(|c| c.is_alphanumeric() || c == '_');
    }
    run(|c| "=!<>&|+-*/%?".contains(c)).max(first.len_utf8())
}

/// Returns the fix for a syntax error at `at`: what to write instead of the syntax of other languages.
pub(super) fn cure(text: &str, at: usize) -> Option<Remedy> {
    let (before, rest) = (text.get(..at)?.trim_end(), text.get(at..)?);
    let word = rest.get(..token_length(rest)).unwrap_or_default();
    let token = at..at + word.len();
    let last = before.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_').len();
    let last = last..before.len();
    let is_not = |it: &str| it.eq_ignore_ascii_case("not");
    let begins_closure = before.ends_with('(') && matches!(word, "|" | "||");
    let closure = begins_closure || takes_argument(before, rest);
    if closure {
        return Some(NO_CLOSURES.into());
    }
    let after = rest.get(word.len()..).unwrap_or_default().trim_start();
    let is_text = word.starts_with('"') && word.len() > 1 && word.ends_with('"');
    let is_side = ["||", "&&"].iter().any(|it| before.ends_with(it) || after.starts_with(it));
    if is_text && is_side {
        const SIDES: &str = "each side is a condition by itself: `x == \"a\" || x == \"b\"`, or `x in [\"a\", \"b\"]`";
        return Some(one_of(text, &token).map_or_else(
            || SIDES.into(),
            |it| it.because(": each side is a condition by itself"),
        ));
    }
    let mut next = tokens(after, 0).map(|it| after.get(it).unwrap_or_default());
    let (next, third) = (next.next().unwrap_or_default(), next.next().unwrap_or_default());
    if is_not(word) && next.eq_ignore_ascii_case("in") {
        return Some(not_in(text, &token));
    }
    if is_not(word) {
        return Some(negation(text, &token));
    }
    if text.get(last.clone()).is_some_and(is_not) {
        let is_in = word.eq_ignore_ascii_case("in");
        return Some(if is_in { not_in(text, &last) } else { negation(text, &last) });
    }
    if word == "is" {
        let end = text.len() - after.len() + next.len();
        match next {
            "in" => return Some(Remedy::write(at..end, "in")),
            _ if is_not(next) && third == "in" => return Some(not_in(text, &(at..end))),
            _ if is_not(next) => return Some(Remedy::write(at..end, "!=")),
            _ => {}
        }
    }
    let known = other_spelling(word).filter(|_| !rest.starts_with("=~") && !rest.starts_with("=<"));
    known.map(|it| spelled(token, it)).or_else(|| sign_cure(text, at, word))
}

/// The fix that writes a spelling of another language as it is here.
pub(super) fn spelled(token: Range<usize>, spelling: &str) -> Remedy {
    match spelling {
        // No value of another type is an empty text.
        EMPTY => Remedy::advice(format!("write `{spelling}`")),
        _ => Remedy::write(token, spelling),
    }
}

/// The fix for a token that begins with a sign of other languages.
fn sign_cure(text: &str, at: usize, word: &str) -> Option<Remedy> {
    let (before, rest) = (text.get(..at)?.trim_end(), text.get(at..)?);
    let sign = |length: usize| at..at + length;
    let closed = word.len() > 1 && word.ends_with('"');
    let begins = before.is_empty() || before.ends_with(['(', '&', '|']);
    Some(match rest.chars().next() {
        Some(c) if c == '\'' || CURLY.contains(c) => double_quotes(text, at)
            .unwrap_or_else(|| Remedy::advice("write a text in double quotes: `\"main\"`")),
        Some('`') => Remedy::advice("write a text in double quotes"),
        Some('$' | '{') => {
            const ALONE: &str = "an expression stands alone here; `${…}` belongs into texts";
            let advice = rest.starts_with('$').then(|| Remedy::advice(ALONE));
            without_braces(text, at).or(advice)?
        }
        Some('?') => conditional(text, at),
        Some(';') if rest.trim() == ";" => Remedy::delete(sign(1), ";"),
        Some(';') => Remedy::advice("leave it out: an expression is one value"),
        Some('~') if begins => negation(text, &sign(1)),
        Some('~') => Remedy::advice("write `.matches(\"…\")`"),
        Some('"') if !closed => {
            Remedy::advice("close the text with `\"`; a backslash in it is written twice")
        }
        Some('>') if text.get(..at)?.ends_with('<') => Remedy::write(at - 1..at + 1, "!="),
        _ if rest.starts_with("=>") => Remedy::write(sign(2), ">="),
        _ if rest.starts_with("=<") => Remedy::write(sign(2), "<="),
        _ if rest.starts_with("=~") => regex_match(text, &sign(2)),
        _ if word == "like" => Remedy::advice("write `.matches(\"…\")`"),
        _ if word == "between" => {
            const TWICE: &str = "compare twice: `files.count >= 1 && files.count <= 2`";
            between(text, &sign(word.len())).unwrap_or_else(|| TWICE.into())
        }
        _ if rest.trim().is_empty() => Remedy::advice("something is missing at its end"),
        _ => return None,
    })
}

/// The fix for a closure.
const NO_CLOSURES: &str =
    "ask the list itself: `\"a\" in files.paths`, `files.matching(\"**/*.md\").count > 0`";

/// Whether the text goes on with the arrow of a closure: `any(x => …)`, `any((x) => …)`.
fn takes_argument(before: &str, rest: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let inner = before.strip_suffix(')').unwrap_or(before);
    let called = inner.trim_end_matches(is_name).trim_end_matches('(');
    let opens = inner.len() - called.len() > inner.len() - inner.trim_end_matches(is_name).len();
    // `if (count => 1)` calls nothing.
    let call = called.ends_with(is_name) && !called.ends_with("if");
    opens && call && (rest.starts_with("=>") || rest.starts_with("->"))
}

/// An empty text.
const EMPTY: &str = "\"\"";

/// The member for the name of one in other languages.
pub(super) fn other_member(name: &str) -> Option<&'static str> {
    match name {
        "length" | "size" | "count" => Some("len"),
        "includes" | "include" | "has" => Some("contains"),
        "toLowerCase" | "to_lower" | "lowercase" | "downcase" => Some("lower"),
        "match" | "test" | "search" => Some("matches"),
        "strip" => Some("trim"),
        _ => None,
    }
}

/// The operator or literal for a spelling of other languages.
pub(super) fn other_spelling(word: &str) -> Option<&'static str> {
    match word {
        "or" | "OR" | "|" => Some("||"),
        "and" | "AND" | "&" => Some("&&"),
        "not" | "NOT" => Some("!"),
        "=" | "is" | "===" => Some("=="),
        "<>" | "!==" => Some("!="),
        "null" | "None" | "nil" => Some(EMPTY),
        "True" | "TRUE" => Some("true"),
        "False" | "FALSE" => Some("false"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_token() {
        for (text, token) in [
            (r#""a \" b" in x"#, r#""a \" b""#),
            ("`a b` in x", "`a b`"),
            ("`a `` b`) in x", "`a `` b`"),
            ("``.len()", "``"),
            ("`open", "`open"),
        ] {
            assert_eq!(text.get(..token_length(text)), Some(token), "{text}");
        }
    }

    #[test]
    fn what_other_languages_write_has_a_cure() {
        for (text, at, help) in [
            ("commands.ran('x')", 13, Some("write `\"x\"`")),
            ("not todos.seen", 4, Some("write `!todos.seen`")),
            ("${{ todos.seen }} || x", 0, Some("write `todos.seen`")),
            ("${x || y} || x", 0, Some("belongs into texts")),
            (
                "todos.seen ? true : false",
                11,
                Some("write `if todos.seen { true } else { false }`"),
            ),
            ("files.count => 1", 12, Some("write `>=`")),
            ("files.count == 1;", 16, Some("remove `;`")),
            ("session.branch =~ \"x\"", 15, Some("write `.matches(\"x\")`")),
            ("todos.seen and files.count > 1", 11, Some("write `&&`")),
            ("todos.seen ||", 13, Some("missing at its end")),
            ("session.branch == \"a\" \"b\"", 22, None),
            ("files.paths.any(|x| x)", 16, Some("ask the list")),
            ("files.paths.any(x => x)", 18, Some("ask the list")),
            ("files.paths.any(x -> x)", 18, Some("ask the list")),
            ("files.paths.any((x) => x)", 20, Some("ask the list")),
            ("files.paths.any(|| true)", 16, Some("ask the list")),
            ("(files.count => 1)", 13, Some("write `>=`")),
            ("(count => 1)", 7, Some("write `>=`")),
            ("a is not b", 2, Some("write `!=`")),
            ("session.branch is not in [\"a\"]", 15, Some("write `!(session.branch in [\"a\"])`")),
            ("a is in [\"a\"]", 2, Some("write `in`")),
            ("a not in[\"a\"]", 2, Some("write `!(a in[\"a\"])`")),
            ("if(count => 1) { true }", 9, Some("write `>=`")),
            ("session.branch == “main”", 18, Some("write `\"main\"`")),
            ("~todos.seen", 0, Some("write `!todos.seen`")),
            ("session.branch not in [\"a\"]", 19, Some("!(session.branch in")),
            ("todos.seen todos.seen", 11, None),
        ] {
            let found = cure(text, at);
            match help {
                Some(help) => {
                    let is_such = found.as_ref().is_some_and(|it| it.help().contains(help));
                    assert!(is_such, "{text}: {found:?}")
                }
                None => assert_eq!(found, None, "{text}"),
            }
        }
    }
}
