//! Fixes of an expression that rewrite a part of it: the part, and the new text. Works on text that is not an
//! expression yet, so it knows tokens and brackets, and no tree.

use std::ops::Range;

use super::hints::token_length;
use policyd_yaml::Suggestion;

/// A fix of an expression.
pub(super) type Remedy = Suggestion<Range<usize>>;

/// The tokens of a text from a byte on, without spaces between them.
pub(super) fn tokens(text: &str, from: usize) -> impl Iterator<Item = Range<usize>> {
    let mut at = from;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let start = at + (rest.len() - rest.trim_start().len());
        let length = token_length(text.get(start..)?);
        at = start + length;
        (length > 0).then_some(start..at)
    })
}

/// Whether a token ends an operand of `&&` and `||`, in the spelling of any language.
fn is_between_conditions(token: &str) -> bool {
    matches!(token, "&&" | "||" | "&" | "|" | "?" | ":" | ";" | ",")
        || ["and", "or"].iter().any(|it| it.eq_ignore_ascii_case(token))
}

/// Whether no operand goes on over a token: it joins conditions, or it is a word of a statement.
fn is_boundary(token: &str) -> bool {
    // `&&!` is one token.
    is_between_conditions(token.trim_end_matches('!')) || begins_statement(token)
}

/// Whether a token is a word of a statement, which is before an operand.
fn begins_statement(token: &str) -> bool {
    matches!(token, "if" | "else" | "return" | "let")
}

/// Whether `!` before an operand with this token would apply to a part of the operand only.
fn is_infix(token: &str) -> bool {
    matches!(token, "in" | "is" | "like") || token.chars().all(|c| "=!<>+-*/%".contains(c))
}

/// The operand that begins at a byte, and whether it needs parentheses behind `!`.
fn operand_after(text: &str, start: usize) -> (Range<usize>, bool) {
    let (mut depth, mut end, mut is_compound) = (0_usize, start, false);
    for token in tokens(text, start) {
        let sign = text.get(token.clone()).unwrap_or_default();
        match sign {
            // The block behind a condition.
            "{" if depth == 0 && end > start => break,
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 0 => break,
            ")" | "]" | "}" => depth -= 1,
            _ if depth == 0 && is_boundary(sign) => break,
            _ => is_compound |= depth == 0 && is_infix(sign),
        }
        end = token.end;
    }
    (start..end, is_compound)
}

/// The operand that ends at a byte, without a `!` before it.
fn operand_before(text: &str, end: usize) -> Range<usize> {
    let before = text.get(..end).unwrap_or_default().trim_end();
    // The beginning of the operand at each depth of brackets; none yet, if it did not begin.
    let mut starts = vec![None];
    for token in tokens(before, 0) {
        let sign = before.get(token.clone()).unwrap_or_default();
        let is_close = matches!(sign, ")" | "]" | "}");
        if is_close && starts.len() > 1 {
            starts.pop();
            continue;
        }
        if let Some(last) = starts.last_mut() {
            let is_negation = last.is_none() && sign.trim_start_matches('!').is_empty();
            let begins_anew = is_boundary(sign) || sign == "=" || is_negation;
            *last = if begins_anew { None } else { last.or(Some(token.start)) };
        }
        if matches!(sign, "(" | "[" | "{") {
            starts.push(None);
        }
    }
    starts.last().copied().flatten().unwrap_or(before.len())..before.len()
}

/// `not x` as `!x`: the sign, and the operand that begins behind it.
pub(super) fn negation(text: &str, sign: &Range<usize>) -> Remedy {
    let rest = text.get(sign.end..).unwrap_or_default();
    let start = sign.end + (rest.len() - rest.trim_start().len());
    let (operand, is_compound) = operand_after(text, start);
    let part = text.get(operand.clone()).unwrap_or_default();
    if part.is_empty() {
        return Remedy::advice("write `!`");
    }
    let negated = if is_compound { format!("!({part})") } else { format!("!{part}") };
    Remedy::write(sign.start..operand.end, negated)
}

/// The joins of conditions in the same brackets as a part, on both sides of it.
fn joins_beside<'t>(text: &'t str, part: &Range<usize>) -> Vec<&'t str> {
    let sign = |token: &Range<usize>| text.get(token.clone()).unwrap_or_default();
    let is_end = |it: &str| matches!(it, "," | ";" | ":" | "?" | "if" | "else" | "return" | "=");
    let mut groups = vec![Vec::new()];
    for before in tokens(text, 0).take_while(|it| it.start < part.start) {
        match sign(&before) {
            "(" | "[" | "{" => groups.push(Vec::new()),
            ")" | "]" | "}" => drop(groups.pop()),
            it if is_end(it) => groups.last_mut().into_iter().for_each(Vec::clear),
            it if is_boundary(it) => groups.last_mut().into_iter().for_each(|all| all.push(it)),
            _ => {}
        }
    }
    let (mut found, mut depth) = (groups.pop().unwrap_or_default(), 0_usize);
    for it in tokens(text, part.end).map(|it| sign(&it)) {
        match it {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 0 => break,
            ")" | "]" | "}" => depth -= 1,
            _ if depth == 0 && is_end(it) => break,
            _ if depth == 0 && is_boundary(it) => found.push(it),
            _ => {}
        }
    }
    found
}

/// `x not in […]` as `!(x in […])`, where `not` is these bytes and `in` follows.
pub(super) fn not_in(text: &str, not: &Range<usize>) -> Remedy {
    let (list, _) = operand_after(text, not.end);
    let item = operand_before(text, not.start);
    let part = |range: &Range<usize>| text.get(range.clone()).unwrap_or_default().trim();
    let is_in = tokens(text, not.end).next().is_some_and(|it| part(&it) == "in");
    if part(&item).is_empty() || !is_in || part(&list).len() <= "in".len() {
        return Remedy::advice("write `!(… in […])`");
    }
    let written = format!("!({} {})", part(&item), part(&list));
    Remedy::write(item.start..list.end, written)
}

/// `x == "a" || "b"` as `x in ["a", "b"]`, where the text without a comparison is these bytes.
pub(super) fn one_of(text: &str, side: &Range<usize>) -> Option<Remedy> {
    let part = |range: &Range<usize>| text.get(range.clone()).unwrap_or_default();
    let joins = text.get(..side.start)?.trim_end();
    let (before, sign, word) = [("||", "==", "or"), ("&&", "!=", "and")]
        .iter()
        .find_map(|(join, sign, word)| Some((joins.strip_suffix(join)?, *sign, *word)))?;
    let join = joins.get(before.len()..)?;
    let comparison = operand_before(text, before.len());
    let (fact, first) = part(&comparison).rsplit_once(sign)?;
    let is_text = |it: &str| it.starts_with('"') && it.len() > 1 && it.ends_with('"');
    let (mut items, mut end) = (vec![first.trim(), part(side)], side.end);
    let mut behind = tokens(text, end);
    while let (Some(sign), Some(next)) = (behind.next(), behind.next()) {
        let is_join = part(&sign) == join || part(&sign).eq_ignore_ascii_case(word);
        if !is_join || !is_text(part(&next)) {
            break;
        }
        items.push(part(&next));
        end = next.end;
    }
    let follows = tokens(text, end).next().map_or("", |it| part(&it));
    let is_end = matches!(follows, "" | ")" | "}") || is_between_conditions(follows);
    let is_compared = tokens(fact, 0).all(|it| !fact.get(it).is_some_and(is_infix));
    let is_negated = part(&(0..comparison.start)).trim_end().ends_with('!');
    if fact.trim().is_empty() || !is_compared || is_negated {
        return None;
    }
    // Beside another operator, the author alone knows what belongs together.
    let is_same = |it: &str| it == join || it.eq_ignore_ascii_case(word);
    let is_alone = joins_beside(text, &(comparison.start..end)).into_iter().all(is_same);
    if !items.iter().all(|it| is_text(it)) || !is_end || !is_alone {
        return None;
    }
    let listed = format!("{} in [{}]", fact.trim(), items.join(", "));
    let written = if sign == "==" { listed } else { format!("!({listed})") };
    Some(Remedy::write(comparison.start..end, written))
}

/// `x between 1 and 3` as `(x >= 1 && x <= 3)`, where `between` is these bytes.
pub(super) fn between(text: &str, sign: &Range<usize>) -> Option<Remedy> {
    let part = |range: &Range<usize>| text.get(range.clone()).unwrap_or_default();
    let item = operand_before(text, sign.start);
    let mut behind = tokens(text, sign.end);
    let (least, and, most) = (behind.next()?, behind.next()?, behind.next()?);
    let is_number = |it: &Range<usize>| part(it).bytes().all(|c| c.is_ascii_digit());
    let is_joined = part(&and).eq_ignore_ascii_case("and") || part(&and) == "&&";
    if !is_joined || !is_number(&least) || !is_number(&most) || part(&item).is_empty() {
        return None;
    }
    let (item_text, least, end) = (part(&item).trim(), part(&least), most.end);
    let written = format!("({item_text} >= {least} && {item_text} <= {})", part(&most));
    Some(Remedy::write(item.start..end, written))
}

/// `a ? b : c` as `if a { b } else { c }`, where `?` is at this byte.
pub(super) fn conditional(text: &str, at: usize) -> Remedy {
    let advice = || Remedy::advice("write `if … { … } else { … }`");
    let before = text.get(..at).unwrap_or_default();
    let (one, _) = operand_after(text, at + 1);
    let behind = text.get(one.end..).unwrap_or_default();
    let Some(other) = behind.trim_start().strip_prefix(':') else { return advice() };
    let signs = |part: &str| {
        let all: Vec<Range<usize>> = tokens(part, 0).collect();
        all.into_iter().filter_map(|it| part.get(it).map(str::to_owned)).collect::<Vec<_>>()
    };
    let depth = |part: &str| {
        let count = |wanted: &str| signs(part).iter().filter(|it| wanted.contains(*it)).count();
        count("([{") == count(")]}")
    };
    let is_one = !signs(other).iter().any(|it| it == "?" || it == ":");
    let one = text.get(one).unwrap_or_default().trim();
    let parts = [before.trim(), one, other.trim()];
    let is_statement = |it: &String| begins_statement(it) || matches!(it.as_str(), "{" | ";" | "=");
    let is_one = is_one && !parts.iter().any(|it| signs(it).iter().any(is_statement));
    if !is_one || parts.iter().any(|it| it.is_empty() || !depth(it)) {
        return advice();
    }
    let [condition, one, other] = parts;
    Remedy::write(0..text.len(), format!("if {condition} {{ {one} }} else {{ {other} }}"))
}

/// The text constant that a member at a byte is asked of.
fn text_before(text: &str, member: usize) -> Option<Range<usize>> {
    let before = text.get(..member)?.trim_end().strip_suffix('.')?.trim_end();
    let last = tokens(before, 0).last()?;
    before.get(last.clone())?.starts_with(['"', '`']).then_some(last)
}

/// Whether a call has a text constant as its argument and another value as its owner: `x.test("y")`.
pub(super) fn asks_for_text(text: &str, call: &Range<usize>) -> bool {
    let argument = text.get(call.clone()).and_then(|it| it.split_once('('));
    argument.is_some_and(|(_, it)| it.trim_start().starts_with(['"', '`', '\'']))
        && text_before(text, call.start).is_none()
}

/// `"x".test(y)` as `y.matches("x")`, where the call is these bytes: a regular expression is the owner in other
/// languages, and the argument here. `None` unless a text constant is asked, and for a fact.
pub(super) fn tested(text: &str, call: &Range<usize>) -> Option<Remedy> {
    let owner = text_before(text, call.start)?;
    let inside = text.get(call.clone())?.strip_prefix("test")?.trim_start();
    let argument = inside.strip_prefix('(')?.strip_suffix(')')?.trim();
    let is_name = |it: &str| {
        it.starts_with(|c: char| c.is_ascii_alphabetic())
            && it.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let is_fact = argument.contains('.') && argument.split('.').all(is_name);
    let written = format!("{argument}.matches({})", text.get(owner.clone())?);
    is_fact.then(|| Remedy::write(owner.start..call.end, written))
}

/// Texts in other quotes as texts in double quotes, from the first of them to the last one. `None` if one of them has
/// no end, or an escaped quote.
pub(super) fn double_quotes(text: &str, at: usize) -> Option<Remedy> {
    let (mut written, mut end, mut copied) = (String::new(), at, at);
    for token in tokens(text, at) {
        let part = text.get(token.clone())?;
        let opens = |c: char| c == '\'' || CURLY.contains(c);
        if part.starts_with(opens) {
            let mut inside = part.chars();
            inside.next().zip(inside.next_back())?;
            let inside = inside.as_str();
            let quotes = |c: char| c == '"' || opens(c);
            if inside.ends_with('\\') || inside.split('\\').skip(1).any(|it| it.starts_with(quotes))
            {
                return None;
            }
            written.push_str(text.get(copied..token.start)?);
            written.push_str(&format!("\"{}\"", inside.replace('"', "\\\"")));
            (end, copied) = (token.end, token.end);
        }
    }
    (end > at).then(|| Remedy::write(at..end, written))
}

/// Quotes of printed texts.
pub(super) const CURLY: &str = "“”„‘’«»";

/// Doubles the backslashes of the text around a byte that begin no escape: `"\b"` as `"\\b"`.
pub(super) fn double_backslashes(text: &str, at: usize) -> Option<Remedy> {
    let token = tokens(text, 0).find(|it| it.contains(&at))?;
    let (mut written, mut characters) = (String::new(), text.get(token.clone())?.chars());
    while let Some(c) = characters.next() {
        written.push(c);
        let Some(next) = (c == '\\').then(|| characters.next()).flatten() else { continue };
        if !"\\\"trnxuU\n".contains(next) {
            written.push('\\');
        }
        written.push(next);
    }
    Some(Remedy::write(token, written).because(": a backslash within a text is written twice"))
}

/// `x =~ "y"` as `x.matches("y")`, where the sign is these bytes.
pub(super) fn regex_match(text: &str, sign: &Range<usize>) -> Remedy {
    let before = text.get(..sign.start).unwrap_or_default().trim_end();
    let pattern = tokens(text, sign.end).next().and_then(|it| Some((text.get(it.clone())?, it)));
    match pattern {
        Some((pattern, range)) if pattern.starts_with('"') && pattern.len() > 1 => {
            Remedy::write(before.len()..range.end, format!(".matches({pattern})"))
        }
        Some(_) | None => Remedy::advice("write `.matches(\"…\")`"),
    }
}

/// `${x}` as `x`, where `$` is at this byte; also `{x}` where it is all of the expression.
pub(super) fn without_braces(text: &str, at: usize) -> Option<Remedy> {
    let rest = text.get(at..)?;
    let inside = rest.strip_prefix("${").or_else(|| rest.strip_prefix('{'))?;
    let opens = rest.len() - inside.len();
    let (operand, is_compound) = operand_after(inside, 0);
    let closed = inside.get(operand.end..)?.trim_start().strip_prefix('}')?;
    let (end, mut written) = (text.len() - closed.len(), inside.get(operand)?.trim());
    while let Some(inner) = written.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
        written = inner.trim();
    }
    let is_whole = at == 0 && closed.trim().is_empty();
    let fits = !written.is_empty() && (is_whole || (opens == 2 && !is_compound));
    fits.then(|| Remedy::write(at..end, written))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with the fix made.
    fn fixed(text: &str, fix: Option<Remedy>) -> Option<String> {
        let (range, new) = fix?.edit()?;
        Some(format!("{}{new}{}", text.get(..range.start)?, text.get(range.end..)?))
    }

    #[test]
    fn a_negation_keeps_its_operand() {
        for (text, after) in [
            ("not a.b", "!a.b"),
            ("not a.b(\"x and y\") and c", "!a.b(\"x and y\") and c"),
            ("not a == b || c", "!(a == b) || c"),
            ("not (a == b) || c", "!(a == b) || c"),
            ("not a in [\"x\", \"y\"]", "!(a in [\"x\", \"y\"])"),
        ] {
            assert_eq!(fixed(text, Some(negation(text, &(0..3)))).as_deref(), Some(after));
        }
        assert_eq!(fixed("not", Some(negation("not", &(0..3)))), None);
    }

    #[test]
    fn an_operand_ends_at_a_block() {
        let change = |text: &str| {
            let at = text.find("not").unwrap();
            fixed(text, Some(negation(text, &(at..at + 3))))
        };
        let after = "if !(a == \"x\") { b } else { c }";
        assert_eq!(change("if not a == \"x\" { b } else { c }").as_deref(), Some(after));
        assert_eq!(change("not a == b &&!c").as_deref(), Some("!(a == b) &&!c"));
        assert_eq!(change("not a = b").as_deref(), Some("!(a = b)"));
        assert_eq!(change("not if a { b } else { c }"), None);
        let change = |text: &str| {
            let at = text.find("not").unwrap();
            fixed(text, Some(not_in(text, &(at..at + 3))))
        };
        let after = "if !(a.b in [\"x\"]) { c } else { d }";
        assert_eq!(change("if a.b not in [\"x\"] { c } else { d }").as_deref(), Some(after));
        let after = "if a { b } else if !(c in [\"x\"]) { d }";
        assert_eq!(change("if a { b } else if c not in [\"x\"] { d }").as_deref(), Some(after));
        assert_eq!(change("return a not in b").as_deref(), Some("return !(a in b)"));
        assert_eq!(change("!a not in b").as_deref(), Some("!!(a in b)"));
        assert_eq!(change("a not IN b"), None);
    }

    #[test]
    fn not_in_negates_the_whole() {
        let text = "a && (b.c not in [\"x\", \"y\"]) || d";
        let at = text.find("not").unwrap();
        let after = "a && (!(b.c in [\"x\", \"y\"])) || d";
        assert_eq!(fixed(text, Some(not_in(text, &(at..at + 3)))).as_deref(), Some(after));
    }

    #[test]
    fn a_conditional_of_other_languages_is_an_if() {
        let change = |text: &str| fixed(text, Some(conditional(text, text.find('?').unwrap())));
        let after = "if a > 3 { b.c } else { d(\":\") }";
        assert_eq!(change("a > 3 ? b.c : d(\":\")").as_deref(), Some(after));
        for unclear in ["a ? b : c ? d : e", "(a ? b : c) || d", "a ? b"] {
            assert_eq!(change(unclear), None, "{unclear}");
        }
    }

    #[test]
    fn a_comparison_with_several_values_is_a_list() {
        let change = |text: &str| {
            let start = text.rfind(" \"b").unwrap() + 1;
            let end = start + token_length(text.get(start..).unwrap());
            fixed(text, one_of(text, &(start..end)))
        };
        let after = "c && (x.y in [\"a\", \"b\"])";
        assert_eq!(change("c && (x.y == \"a\" || \"b\")").as_deref(), Some(after));
        let after = "!(x in [\"a\", \"b\", \"c\"]) && d";
        assert_eq!(change("x != \"a\" && \"b\" && \"c\" && d").as_deref(), Some(after));
        for unclear in [
            "x == y || \"b\"",
            "x != \"a\" || \"b\"",
            "x == \"a\" || \"b\" == y",
            "x == \"a\" || \"b\" && c",
            "x == \"a\" || \"b\" || d && c",
            "c && x == \"a\" || \"b\"",
            "!x == \"a\" || \"b\"",
            "x in y == \"a\" || \"b\"",
        ] {
            assert_eq!(change(unclear), None, "{unclear}");
        }
        let (text, after) = ("a.b between 1 and 3 || c", "(a.b >= 1 && a.b <= 3) || c");
        assert_eq!(fixed(text, between(text, &(4..11))).as_deref(), Some(after));
    }

    #[test]
    fn texts_get_double_quotes_and_backslashes() {
        let text = "a in ['x', 'y\"z'] && b";
        let after = "a in [\"x\", \"y\\\"z\"] && b";
        assert_eq!(fixed(text, double_quotes(text, 6)).as_deref(), Some(after));
        assert_eq!(fixed("a == “b”", double_quotes("a == “b”", 5)).as_deref(), Some("a == \"b\""));
        assert_eq!(fixed("“it’s”", double_quotes("“it’s”", 0)).as_deref(), Some("\"it’s\""));
        for unclear in [r"'a\'b'", r#"'a\"b'"#, r"'a\\'", "'a' + b's", "‘it’s’"] {
            assert_eq!(double_quotes(unclear, 0), None, "{unclear}");
        }
        let (text, after) = (r#"a.matches("\bx\.\\d\n")"#, r#"a.matches("\\bx\\.\\d\n")"#);
        assert_eq!(fixed(text, double_backslashes(text, 11)).as_deref(), Some(after));
    }

    #[test]
    fn braces_of_texts_are_left_out() {
        let change = |text: &str| fixed(text, without_braces(text, 0));
        assert_eq!(change("${a.b} == 0").as_deref(), Some("a.b == 0"));
        assert_eq!(change("${a == 0}").as_deref(), Some("a == 0"));
        assert_eq!(change("{ a.b }").as_deref(), Some("a.b"));
        for unclear in ["${a == 0} || b", "{a} || b", "${}", "${a || b}"] {
            assert_eq!(change(unclear), None, "{unclear}");
        }
    }
}
