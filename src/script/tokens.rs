//! Expressions as text: their tokens, what other languages write otherwise.

/// The dotted chain that `rest` starts with: `a.b("x").c`.
pub(super) fn operand_text(rest: &str) -> String {
    let (mut depth, mut quoted) = (0_usize, false);
    let end = rest.char_indices().find(|(_, c)| {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' => depth = depth.saturating_add(1),
            ')' | ']' if depth > 0 => depth = depth.saturating_sub(1),
            c if depth == 0 => return !(c.is_alphanumeric() || matches!(c, '_' | '.')),
            _ => {}
        }
        false
    });
    rest.get(..end.map_or(rest.len(), |(at, _)| at)).unwrap_or_default().to_owned()
}

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

/// What other languages write otherwise.
pub(super) fn other_spelling(rest: &str) -> Option<&'static str> {
    let word = rest.get(..token_length(rest)).unwrap_or_default();
    match word {
        "or" => Some("||"),
        "and" | "&" => Some("&&"),
        "not" => Some("!"),
        "=" | "is" | "===" => Some("=="),
        "<>" | "!==" => Some("!="),
        "null" | "None" | "nil" => Some("\"\""),
        _ => None,
    }
}
