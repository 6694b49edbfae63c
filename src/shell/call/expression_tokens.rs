//! The tokens of code in other languages: names, texts, numbers, and signs, and which brackets belong together.
//!
//! Contains: [`CodeLanguage`], [`ExpressionTokens`], and the parts of a text: `"a{b}"`.
//! Does not contain: what the tokens mean (`code_paths`), what names are set to (`code_values`).

use std::ops::Range;

use super::code::unescaped;

/// Longest pattern between slashes, in bytes.
const PATTERN_MAX: usize = 1_000;
/// Longest expression in a text, in bytes.
const VALUE_MAX: usize = 2_000;
/// Signs of more than one character, longest first.
const SIGNS: [&str; 34] = [
    "...", "**=", "//=", "||=", "&&=", "??=", "===", "!==", "=>", "->", "::", ":=", "==", "!=",
    "<=", ">=", "+=", "-=", "*=", "/=", "%=", ".=", "|=", "&=", "=~", "||", "&&", "??", "?.", "**",
    "//", "..", "++", "--",
];
/// Signs behind which a line continues.
const CONTINUES: [&str; 12] = ["+", ".", "=", "/", "%", ",", "||", "&&", "??", "?", "->", "=>"];

/// A language whose expressions are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeLanguage {
    Python,
    JavaScript,
    Ruby,
    Perl,
    Php,
}

impl CodeLanguage {
    /// Returns the language of a program. `None` if its expressions are not read.
    pub(super) fn of(program: &str) -> Option<Self> {
        let begins = |names: &[&str]| names.iter().any(|it| program.starts_with(it));
        match program {
            _ if begins(&["python", "pypy"]) => Some(Self::Python),
            "node" | "nodejs" | "bun" | "deno" | "tsx" | "ts-node" => Some(Self::JavaScript),
            _ if begins(&["ruby"]) => Some(Self::Ruby),
            _ if begins(&["perl"]) => Some(Self::Perl),
            _ if begins(&["php"]) => Some(Self::Php),
            _ => None,
        }
    }

    /// Returns whether names of values begin with a sign: `$a`.
    pub(super) const fn has_sigils(self) -> bool {
        matches!(self, Self::Perl | Self::Php | Self::Ruby)
    }

    /// Returns whether a call needs no brackets.
    pub(super) const fn is_bare(self) -> bool {
        matches!(self, Self::Perl | Self::Ruby)
    }

    const fn has_slash_comments(self) -> bool {
        matches!(self, Self::JavaScript | Self::Php)
    }

    const fn has_patterns(self) -> bool {
        matches!(self, Self::JavaScript | Self::Ruby | Self::Perl)
    }
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeTokenKind {
    /// A name or a keyword.
    Name,
    /// A number.
    Number,
    /// A text with its quotes.
    Text(TextForm),
    /// A pattern between slashes, or a command between backticks.
    Other,
    /// An operator, a bracket, or another sign.
    Sign,
    /// The end of a line that ends a statement.
    Line,
}

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextForm {
    /// Length of everything before the text.
    open: usize,
    /// Length of everything behind it.
    close: usize,
    /// Whether a backslash is a character.
    is_raw: bool,
    /// Whether expressions are in it, and their form.
    values: TextValues,
}

/// The form of expressions in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextValues {
    None,
    /// `{x}`
    Braces,
    /// `${x}`
    Dollar,
    /// `#{x}`
    Hash,
    /// `$x`
    Names,
}

/// One token.
#[derive(Debug, Clone)]
pub(super) struct CodeToken {
    pub(super) kind: CodeTokenKind,
    pub(super) at: usize,
    pub(super) end: usize,
    /// Index of the bracket that belongs to this one.
    pub(super) partner: Option<usize>,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TextPart<'c> {
    Known(String),
    /// The source of an expression.
    Expression(&'c str),
}

/// The tokens of a piece of code.
#[derive(Debug)]
pub(super) struct ExpressionTokens<'c> {
    pub(super) code: &'c str,
    pub(super) language: CodeLanguage,
    pub(super) tokens: Vec<CodeToken>,
    /// Indexes of the brackets that are open.
    open: Vec<usize>,
}

impl<'c> ExpressionTokens<'c> {
    /// Reads code.
    pub(super) fn of(language: CodeLanguage, code: &'c str) -> Self {
        let mut read = Self { code, language, tokens: Vec::new(), open: Vec::new() };
        let mut at = 0;
        while let Some(c) = read.rest(at).chars().next() {
            at += read.add_token(at, c).max(c.len_utf8());
        }
        read
    }

    fn rest(&self, at: usize) -> &'c str {
        self.code.get(at..).unwrap_or_default()
    }

    /// Returns the text of a token. Empty behind the last one.
    pub(super) fn text(&self, index: usize) -> &'c str {
        let token = self.tokens.get(index);
        token.and_then(|it| self.code.get(it.at..it.end)).unwrap_or_default()
    }

    /// Returns the kind of a token.
    pub(super) fn kind(&self, index: usize) -> Option<CodeTokenKind> {
        self.tokens.get(index).map(|it| it.kind)
    }

    /// Returns whether a token is this sign.
    pub(super) fn is_sign(&self, index: usize, sign: &str) -> bool {
        self.kind(index) == Some(CodeTokenKind::Sign) && self.text(index) == sign
    }

    /// Returns whether a token is this name or keyword.
    pub(super) fn is_name(&self, index: usize, name: &str) -> bool {
        self.kind(index) == Some(CodeTokenKind::Name) && self.text(index) == name
    }

    /// Returns whether a sign leads from an object to its member: `a.b`, `a->b`.
    pub(super) fn is_member_sign(&self, index: usize) -> bool {
        let is_dot = !matches!(self.language, CodeLanguage::Perl | CodeLanguage::Php);
        match self.text(index) {
            "." => is_dot,
            "?." | "->" | "::" => true,
            _ => false,
        }
    }

    /// Returns the tokens between a bracket and the one that belongs to it.
    pub(super) fn inside(&self, open: usize) -> Range<usize> {
        let partner = self.tokens.get(open).and_then(|it| it.partner);
        open + 1..partner.filter(|it| *it > open).unwrap_or(self.tokens.len())
    }

    /// Returns the index of the first token at or behind a byte offset.
    pub(super) fn index_at(&self, offset: usize) -> usize {
        self.tokens.partition_point(|it| it.at < offset)
    }

    /// Splits tokens at the commas outside of brackets.
    pub(super) fn split(&self, part: &Range<usize>) -> Vec<Range<usize>> {
        let (mut found, mut start, mut at) = (Vec::new(), part.start, part.start);
        while at < part.end {
            if self.is_sign(at, ",") {
                found.push(start..at);
                start = at + 1;
            }
            at = self.behind(at);
        }
        found.push(start..part.end);
        found.retain(|it| !it.is_empty());
        found
    }

    /// Returns the index behind a token, or behind the brackets that it opens.
    pub(super) fn behind(&self, at: usize) -> usize {
        let partner = self.tokens.get(at).and_then(|it| it.partner).filter(|it| *it > at);
        partner.unwrap_or(at) + 1
    }

    /// Returns the source of a range of tokens.
    pub(super) fn source(&self, part: &Range<usize>) -> &'c str {
        let start = self.tokens.get(part.start).map(|it| it.at);
        let end = part.end.checked_sub(1).and_then(|it| self.tokens.get(it)).map(|it| it.end);
        start.zip(end).and_then(|(start, end)| self.code.get(start..end)).unwrap_or_default()
    }
}

impl ExpressionTokens<'_> {
    /// Adds the token at an offset, if one begins there. Returns the length of what was read.
    fn add_token(&mut self, at: usize, c: char) -> usize {
        if c == '\n' {
            self.add_line(at);
            return 1;
        }
        if c.is_whitespace() {
            return c.len_utf8();
        }
        if let Some(len) = self.comment(at, c) {
            return len;
        }
        if matches!(c, '"' | '\'' | '`') {
            return self.add_text(at, at, c);
        }
        let rest = self.rest(at);
        if c.is_ascii_digit() {
            let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
            let len = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let len = rest.get(..len).and_then(|it| it.find("..")).unwrap_or(len);
            return self.push(CodeTokenKind::Number, at, len);
        }
        if let Some(len) = self.name_length(at) {
            let quote = self.rest(at + len).chars().next();
            let name = rest.get(..len).unwrap_or_default();
            let is_prefix = self.language == CodeLanguage::Python
                && len <= 2
                && name.chars().all(|it| "rRbBuUfF".contains(it));
            return match quote.filter(|it| is_prefix && matches!(it, '"' | '\'')) {
                Some(quote) => self.add_text(at, at + len, quote),
                None => self.push(CodeTokenKind::Name, at, len),
            };
        }
        if c == '/'
            && self.language.has_patterns()
            && self.expects_value()
            && let Some(len) = pattern_length(rest)
        {
            return self.push(CodeTokenKind::Other, at, len);
        }
        let sign =
            SIGNS.iter().find(|it| rest.starts_with(**it)).map_or(c.len_utf8(), |it| it.len());
        let index = self.tokens.len();
        let len = self.push(CodeTokenKind::Sign, at, sign);
        match c {
            '(' | '[' | '{' => self.open.push(index),
            ')' | ']' | '}' => self.close(index, c),
            _ => {}
        }
        len
    }

    fn push(&mut self, kind: CodeTokenKind, at: usize, len: usize) -> usize {
        self.tokens.push(CodeToken { kind, at, end: at + len, partner: None });
        len
    }

    /// Joins a bracket with the one that it closes.
    fn close(&mut self, index: usize, c: char) {
        let wanted = match c {
            ')' => "(",
            ']' => "[",
            _ => "{",
        };
        let Some(open) = self.open.last().copied().filter(|it| self.text(*it) == wanted) else {
            return;
        };
        self.open.pop();
        for (one, other) in [(open, index), (index, open)] {
            if let Some(token) = self.tokens.get_mut(one) {
                token.partner = Some(other);
            }
        }
    }

    /// Adds the end of a line, unless the statement continues.
    fn add_line(&mut self, at: usize) {
        let in_brackets = self.open.last().is_some_and(|it| matches!(self.text(*it), "(" | "["));
        let next = self.rest(at).trim_start();
        let begins_member = next.starts_with('.') && !next.starts_with("..");
        let last = self.tokens.len().checked_sub(1);
        let continues = last.is_some_and(|it| CONTINUES.contains(&self.text(it)));
        if !in_brackets && !begins_member && !continues {
            self.push(CodeTokenKind::Line, at, 1);
        }
    }

    /// Returns the length of the comment at an offset.
    fn comment(&self, at: usize, c: char) -> Option<usize> {
        let rest = self.rest(at);
        let line = || rest.find('\n').unwrap_or(rest.len());
        if self.language.has_slash_comments() && rest.starts_with("//") {
            return Some(line());
        }
        if self.language.has_slash_comments() && rest.starts_with("/*") {
            return Some(rest.find("*/").map_or(rest.len(), |it| it + 2));
        }
        let before = self.code.get(..at).and_then(|it| it.chars().next_back());
        let begins = before.is_none_or(|it| it.is_whitespace() || ",;()[]{}:".contains(it));
        (c == '#' && begins && self.language != CodeLanguage::JavaScript).then(line)
    }

    /// Returns the length of the name at an offset.
    fn name_length(&self, at: usize) -> Option<usize> {
        let rest = self.rest(at);
        let is_first = |c: char| c.is_alphabetic() || c == '_';
        let is_dollar = self.language == CodeLanguage::JavaScript;
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || (is_dollar && c == '$');
        let is_sigil = |c: char| c == '$' || (c == '@' && self.language != CodeLanguage::Php);
        let is_hash = self.language == CodeLanguage::Perl && rest.starts_with('%');
        let sigils = match self.language.has_sigils() {
            true if is_hash && self.expects_value() => 1,
            true => rest.chars().take(2).take_while(|it| is_sigil(*it)).count(),
            false => 0,
        };
        let name = rest.get(sigils..)?;
        if !name.starts_with(|c| is_first(c) || (is_dollar && c == '$')) {
            return None;
        }
        Some(sigils + name.find(|c| !is_part(c)).unwrap_or(name.len()))
    }

    /// Returns whether a value can begin behind the last token.
    fn expects_value(&self) -> bool {
        let Some(last) = self.tokens.len().checked_sub(1) else { return true };
        match self.kind(last) {
            Some(CodeTokenKind::Sign) => !matches!(self.text(last), ")" | "]" | "}"),
            Some(CodeTokenKind::Line) | None => true,
            Some(CodeTokenKind::Name) => {
                matches!(self.text(last), "return" | "in" | "of" | "and" | "or")
            }
            Some(CodeTokenKind::Number | CodeTokenKind::Text(_) | CodeTokenKind::Other) => false,
        }
    }

    /// Adds the text whose quote is at an offset. A prefix begins at `start`.
    fn add_text(&mut self, start: usize, at: usize, quote: char) -> usize {
        let is_python = self.language == CodeLanguage::Python;
        let prefix = self.code.get(start..at).unwrap_or_default().to_ascii_lowercase();
        let rest = self.rest(at);
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        let close = if is_python && rest.starts_with(&triple) { triple } else { quote.to_string() };
        let is_raw = prefix.contains('r') || (quote == '\'' && self.language.has_sigils());
        let one_line = close.len() == 1
            && matches!(
                (self.language, quote),
                (CodeLanguage::Python | CodeLanguage::JavaScript, '"' | '\'')
            );
        let Some(len) = text_length(rest, &close, one_line) else {
            return self.push(CodeTokenKind::Other, start, at - start + quote.len_utf8());
        };
        let values = match (self.language, quote) {
            (CodeLanguage::Python, _) if prefix.contains('f') => TextValues::Braces,
            (CodeLanguage::JavaScript, '`') => TextValues::Dollar,
            (CodeLanguage::Ruby, '"') => TextValues::Hash,
            (CodeLanguage::Perl | CodeLanguage::Php, '"') => TextValues::Names,
            _ => TextValues::None,
        };
        let is_command = quote == '`' && self.language != CodeLanguage::JavaScript;
        let form = TextForm { open: at - start + close.len(), close: close.len(), is_raw, values };
        let kind = if is_command { CodeTokenKind::Other } else { CodeTokenKind::Text(form) };
        self.push(kind, start, at - start + len)
    }
}

/// Returns the length of a text with its quotes. `None` if it does not end.
fn text_length(text: &str, close: &str, one_line: bool) -> Option<usize> {
    let mut at = close.len();
    loop {
        let rest = text.get(at..)?;
        let c = rest.chars().next()?;
        if rest.starts_with(close) {
            return Some(at + close.len());
        }
        at += c.len_utf8();
        match c {
            '\n' if one_line => return None,
            '\\' => at += text.get(at..)?.chars().next().map_or(0, char::len_utf8),
            _ => {}
        }
    }
}

/// Returns the length of a pattern between slashes.
fn pattern_length(text: &str) -> Option<usize> {
    let (mut is_escaped, mut in_set) = (false, false);
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if at > PATTERN_MAX => return None,
            '\n' => return None,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => in_set = true,
            ']' => in_set = false,
            '/' if !in_set => return Some(at + 1),
            _ => {}
        }
    }
    None
}

impl<'c> ExpressionTokens<'c> {
    /// Returns the parts of the text that a token is.
    pub(super) fn text_parts(&self, index: usize) -> Vec<TextPart<'c>> {
        let Some(token) = self.tokens.get(index) else { return Vec::new() };
        let CodeTokenKind::Text(form) = token.kind else { return Vec::new() };
        let inner = self.code.get(token.at + form.open..token.end - form.close).unwrap_or_default();
        let mut parts = Vec::new();
        let (mut known, mut rest) = (String::new(), inner);
        while let Some(c) = rest.chars().next() {
            if let Some((value, len)) = value_in_text(rest, form.values) {
                parts.push(TextPart::Known(std::mem::take(&mut known)));
                parts.push(TextPart::Expression(value));
                rest = rest.get(len..).unwrap_or_default();
                continue;
            }
            let after = rest.get(c.len_utf8()..).unwrap_or_default();
            rest = match c {
                '\\' if !form.is_raw => {
                    let mut chars = after.chars();
                    known.extend(unescaped(&mut chars));
                    chars.as_str()
                }
                // `{{` of a format.
                '{' | '}' if form.values == TextValues::Braces => {
                    known.push(c);
                    after.strip_prefix(c).unwrap_or(after)
                }
                c => {
                    known.push(c);
                    after
                }
            };
        }
        parts.push(TextPart::Known(known));
        parts
    }
}

/// Returns the expression that begins a text, and the length of its form.
fn value_in_text(text: &str, values: TextValues) -> Option<(&str, usize)> {
    let open = match values {
        TextValues::None => return None,
        TextValues::Braces if text.starts_with("{{") => return None,
        TextValues::Braces => "{",
        TextValues::Dollar => "${",
        TextValues::Hash => "#{",
        TextValues::Names => return name_in_text(text),
    };
    let inside = text.strip_prefix(open)?;
    let Some(end) = closing(inside) else { return Some(("", text.len())) };
    let mut value = inside.get(..end)?;
    if values == TextValues::Braces {
        // `{x!r:>10}`
        let is_end = |at: usize, c: char| {
            let next = value.get(at + 1..).unwrap_or_default();
            (c == '!' && !next.starts_with('='))
                || (c == ':' && !value.get(..at).unwrap_or_default().contains(['(', '[']))
        };
        let format = value.char_indices().find(|(at, c)| is_end(*at, *c));
        value = value.get(..format.map_or(value.len(), |it| it.0))?;
    }
    Some((value, open.len() + end + 1))
}

/// Returns where the brace that is open closes. `None` if it is too far away.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            _ if at > VALUE_MAX => return None,
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the variable that begins a text: `$a`, `${a}`, `{$a}`, `$a{b}`.
fn name_in_text(text: &str) -> Option<(&str, usize)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if let Some(inside) = text.strip_prefix("{$") {
        let Some(end) = closing(inside) else { return Some(("", text.len())) };
        return Some((text.get(1..end + 2)?, end + 3));
    }
    let name = text.strip_prefix('$').or_else(|| text.strip_prefix('@'))?;
    if let Some(inside) = name.strip_prefix('{') {
        let Some(end) = closing(inside) else { return Some(("", text.len())) };
        return Some((inside.get(..end)?, end + 3));
    }
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return None;
    }
    let end = name.find(|c| !is_part(c)).unwrap_or(name.len());
    let behind = name.get(end..)?;
    let arrow = behind.strip_prefix("->").map_or(0, |_| 2);
    let member = behind.get(arrow..)?.strip_prefix(['{', '[']);
    let member = member.and_then(|it| it.find(['}', ']']));
    let len = 1 + end + member.map_or(0, |it| arrow + it + 2);
    Some((text.get(..len)?, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_has_tokens() {
        for (language, code, expected) in [
            (CodeLanguage::Python, "a = b / 'c' # d", vec!["a", "=", "b", "/", "'c'"]),
            (
                CodeLanguage::Python,
                "f(rf'x{y}', \"\"\"a'\nb\"\"\")",
                vec!["f", "(", "rf'x{y}'", ",", "\"\"\"a'\nb\"\"\"", ")"],
            ),
            (CodeLanguage::Python, "a\nb(\nc)", vec!["a", "\n", "b", "(", "c", ")"]),
            (
                CodeLanguage::JavaScript,
                "a.replace(/'\\/[/]/g, b) // c",
                vec!["a", ".", "replace", "(", "/'\\/[/]/", "g", ",", "b", ")"],
            ),
            (CodeLanguage::JavaScript, "a / b / c", vec!["a", "/", "b", "/", "c"]),
            (CodeLanguage::JavaScript, "a\n  .b()", vec!["a", ".", "b", "(", ")"]),
            (CodeLanguage::Perl, "my $a = @b . %c", vec!["my", "$a", "=", "@b", ".", "%c"]),
            (CodeLanguage::Ruby, "A::B.c @d", vec!["A", "::", "B", ".", "c", "@d"]),
            (CodeLanguage::Python, "don't", vec!["don", "'", "t"]),
            (CodeLanguage::Python, "1.5 + 2", vec!["1.5", "+", "2"]),
        ] {
            let read = ExpressionTokens::of(language, code);
            let found: Vec<&str> = (0..read.tokens.len()).map(|it| read.text(it)).collect();
            assert_eq!(found, expected, "{code}");
        }
    }

    #[test]
    fn texts_have_parts() {
        let known = |it: &str| TextPart::Known(it.to_owned());
        for (language, code, expected) in [
            (
                CodeLanguage::Python,
                "f'a{b!r:>5}{{c'",
                vec![known("a"), TextPart::Expression("b"), known("{c")],
            ),
            (CodeLanguage::Python, "'a{b}\\n'", vec![known("a{b}n")]),
            (
                CodeLanguage::JavaScript,
                "`${a.b}/c`",
                vec![known(""), TextPart::Expression("a.b"), known("/c")],
            ),
            (
                CodeLanguage::Ruby,
                "\"#{a}#b\"",
                vec![known(""), TextPart::Expression("a"), known("#b")],
            ),
            (
                CodeLanguage::Perl,
                "\"$a/${b}$c->{d}\"",
                vec![
                    known(""),
                    TextPart::Expression("$a"),
                    known("/"),
                    TextPart::Expression("b"),
                    known(""),
                    TextPart::Expression("$c->{d}"),
                    known(""),
                ],
            ),
            (CodeLanguage::Perl, "'$a'", vec![known("$a")]),
        ] {
            let read = ExpressionTokens::of(language, code);
            assert_eq!(read.text_parts(0), expected, "{code}");
        }
    }

    #[test]
    fn brackets_belong_together() {
        let read = ExpressionTokens::of(CodeLanguage::Python, "a(b[c], {d}))");
        let partners: Vec<Option<usize>> = read.tokens.iter().map(|it| it.partner).collect();
        assert_eq!(partners[1], Some(10));
        assert_eq!(read.inside(1), 2..10);
        assert_eq!(partners[11], None);
        assert_eq!(read.split(&(2..10)), [2..6, 7..10]);
    }
}
