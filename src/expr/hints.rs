//! Fixes for expressions that are not understood, mostly for the syntax of other languages.

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
pub(super) fn cure(text: &str, at: usize) -> Option<String> {
    let (before, rest) = (text.get(..at)?.trim_end(), text.get(at..)?);
    let word = rest.get(..token_length(rest)).unwrap_or_default();
    let last =
        before.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
    let begins_closure = before.ends_with('(') && matches!(word, "|" | "||");
    let closure = begins_closure || takes_argument(before, rest);
    if closure {
        return Some(NO_CLOSURES.to_owned());
    }
    let after = rest.get(word.len()..).unwrap_or_default().trim_start();
    let is_text = word.starts_with('"') && word.len() > 1 && word.ends_with('"');
    let is_side = ["||", "&&"].iter().any(|it| before.ends_with(it) || after.starts_with(it));
    if is_text && is_side {
        return Some(
            "each side is a condition of its own: `x == \"a\" || x == \"b\"`, or `x in [\"a\", \"b\"]`"
                .to_owned(),
        );
    }
    let known = other_spelling(word).filter(|_| !rest.starts_with("=~"));
    if let Some(spelling) = known {
        return Some(format!("write `{spelling}`"));
    }
    if last == "not" {
        let help = if word == "in" { "write `!(… in […])`" } else { "write `!`" };
        return Some(help.to_owned());
    }
    let closed = word.len() > 1 && word.ends_with('"');
    let begins = before.is_empty() || before.ends_with(['(', '&', '|']);
    let help = match rest.chars().next() {
        Some('\'') => "write a text in double quotes: `\"main\"`",
        Some('`') => "write a text in double quotes",
        Some('“' | '”' | '„' | '‘' | '’' | '«') => {
            "write a text in straight quotes: `\"main\"`"
        }
        Some('$') => "an expression stands alone here; `${…}` belongs into texts",
        Some('?') => "write `if … { … } else { … }`",
        Some(';') => "leave it out: an expression is one value",
        Some('~') if begins => "write `!`",
        Some('~') => "write `.matches(\"…\")`",
        Some('"') if !closed => "close the text with `\"`; a backslash in it is written twice",
        _ if rest.starts_with("=>") => "write `>=`",
        _ if rest.starts_with("=<") => "write `<=`",
        _ if rest.starts_with("=~") || word == "like" => "write `.matches(\"…\")`",
        _ if word == "between" => "compare twice: `files.count >= 1 && files.count <= 2`",
        _ if rest.trim().is_empty() => "something is missing at its end",
        _ => return None,
    };
    Some(help.to_owned())
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

/// The operator or literal for a spelling of other languages.
pub(super) fn other_spelling(word: &str) -> Option<&'static str> {
    match word {
        "or" | "OR" | "|" => Some("||"),
        "and" | "AND" | "&" => Some("&&"),
        "not" | "NOT" => Some("!"),
        "=" | "is" | "===" => Some("=="),
        "<>" | "!==" => Some("!="),
        "null" | "None" | "nil" => Some("\"\""),
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
            ("commands.ran('x')", 13, Some("double quotes")),
            ("not todos.seen", 4, Some("write `!`")),
            ("${{ todos.seen }}", 0, Some("belongs into texts")),
            ("todos.seen ? true : false", 11, Some("if … {")),
            ("files.count => 1", 12, Some("write `>=`")),
            ("files.count == 1;", 16, Some("leave it out")),
            ("session.branch =~ \"x\"", 15, Some("matches")),
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
            ("if(count => 1) { true }", 9, Some("write `>=`")),
            ("session.branch == “main”", 18, Some("straight quotes")),
            ("~todos.seen", 0, Some("write `!`")),
            ("session.branch not in [\"a\"]", 19, Some("!(… in")),
            ("todos.seen todos.seen", 11, None),
        ] {
            let found = cure(text, at);
            match help {
                Some(help) => {
                    assert!(found.as_ref().is_some_and(|it| it.contains(help)), "{text}: {found:?}")
                }
                None => assert_eq!(found, None, "{text}"),
            }
        }
    }
}
