//! Words of a shell command line and the values that they have.
//!
//! The grammar splits one shell word into several nodes (`'a'\b`, `a$"b"`). This module joins the nodes that
//! touch, character by character, and then splits and expands them as a shell does.
//!
//! Contains: the units of a word, brace expansion, word splitting, quotes, and substitutions in backticks.
//! Does not contain: the value of a word (`shell_text`), parameters (`scope`), file name patterns (`paths`), the syntax of
//! quoted text (`shell`).

use tree_sitter::Node;

use super::hidden::OUTPUT_PIPE;
use super::invocation::StandardInput;
use super::scanner::Scanner;
use super::shell_output::ShellOutput;
use super::shell_state::{MANY_VALUES, ShellState};
use super::shell_text::ShellText;
use crate::shell::{node_text, strip_delimiters, unescape, unescape_ansi, unescape_heredoc};

/// One character of a word, or one unknown part of it.
#[derive(Debug, Clone)]
pub(super) enum WordUnit {
    Char(char, UnitKind),
    /// An unknown part, with the programs that it comes from.
    Unknown(ShellText),
    /// The end of one item of a list such as `"$@"`.
    Break,
}

impl WordUnit {
    /// Returns whether this is an unquoted blank. Behind some tokens the grammar joins two words
    /// (`''- b`).
    pub(super) fn is_blank(&self) -> bool {
        matches!(self, Self::Char(c, UnitKind::Plain) if is_blank(*c))
    }

    /// Returns whether this is the given character, unquoted.
    fn is(&self, wanted: char) -> bool {
        matches!(self, Self::Char(c, UnitKind::Plain) if *c == wanted)
    }
}

/// How a character became part of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitKind {
    /// Written outside of quotes.
    Plain,
    /// Quoted: it has no special meaning to the shell.
    Quoted,
    /// Part of an unquoted value: the shell splits it at blanks and expands file name patterns in
    /// it.
    Value,
}

/// Marks a quoted part. It makes an empty word (`''`) a word.
pub(super) const EMPTY: WordUnit = WordUnit::Char('\u{0}', UnitKind::Quoted);

/// Maximum number of words that brace expansion makes of one word. The rest is one unknown word.
const BRACES_MAX: usize = 32;

/// Appends a value to a word.
pub(super) fn push_value(value: ShellText, kind: UnitKind, out: &mut Vec<WordUnit>) {
    let kind = if kind == UnitKind::Quoted { UnitKind::Quoted } else { UnitKind::Value };
    let known = value.known_part();
    out.extend(known.chars().map(|c| WordUnit::Char(c, kind)));
    if !value.is_known() || !value.from.is_empty() {
        out.push(WordUnit::Unknown(value.tail(known.len())));
    }
}

/// Appends the values of a list to a word, each as a separate word.
pub(super) fn push_values(values: Vec<ShellText>, kind: UnitKind, out: &mut Vec<WordUnit>) {
    for (at, value) in values.into_iter().enumerate() {
        if at > 0 {
            out.push(WordUnit::Break);
        }
        if kind == UnitKind::Quoted {
            out.push(EMPTY);
        }
        push_value(value, kind, out);
    }
}

/// Appends quoted characters.
pub(super) fn push_quoted(text: &str, out: &mut Vec<WordUnit>) {
    out.extend(text.chars().map(|c| WordUnit::Char(c, UnitKind::Quoted)));
}

/// Appends the source between two parts of one word.
pub(super) fn push_gap(gap: &str, kind: UnitKind, out: &mut Vec<WordUnit>) {
    if kind == UnitKind::Plain {
        plain(gap, out);
    } else {
        out.extend(gap.replace("\\\n", "").chars().map(|c| WordUnit::Char(c, kind)));
    }
}

/// Appends the characters of an unquoted word and removes its backslashes.
pub(super) fn plain(raw: &str, out: &mut Vec<WordUnit>) {
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') => {}
                Some(next) => out.push(WordUnit::Char(next, UnitKind::Quoted)),
                None => out.push(WordUnit::Char('\\', UnitKind::Quoted)),
            },
            c => out.push(WordUnit::Char(c, UnitKind::Plain)),
        }
    }
}

/// Appends a unit to a text.
fn add(unit: &WordUnit, text: &mut ShellText) {
    match unit {
        WordUnit::Char('\u{0}', _) => text.quoted_home |= text.text.is_empty(),
        WordUnit::Char(c, kind) => {
            if text.text.is_empty() {
                text.quoted_home = *c == '~' && (text.quoted_home || *kind == UnitKind::Quoted);
            }
            text.glob |= *kind != UnitKind::Quoted && matches!(c, '*' | '?' | '[');
            text.push(*c);
        }
        WordUnit::Unknown(part) => text.append(part),
        WordUnit::Break => text.push(' '),
    }
}

/// Joins units to one text, without word splitting.
pub(super) fn join_units(units: &[WordUnit]) -> ShellText {
    let mut text = ShellText::default();
    units.iter().for_each(|it| add(it, &mut text));
    text
}

/// Returns whether an unquoted character separates words.
pub(super) const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n')
}

/// Splits a word as the shell does.
pub(super) fn split(units: &[WordUnit], words: &mut Vec<ShellText>) {
    let (mut text, mut any) = (ShellText::default(), false);
    for unit in units {
        let ends = match unit {
            WordUnit::Char(c, UnitKind::Value) => is_blank(*c),
            WordUnit::Break => true,
            WordUnit::Char(..) | WordUnit::Unknown(_) => false,
        };
        if ends {
            if any {
                words.push(std::mem::take(&mut text));
            }
            any = false;
        } else {
            add(unit, &mut text);
            any |= !matches!(unit, WordUnit::Unknown(part) if part.text.is_empty());
        }
    }
    if any {
        words.push(text);
    }
}

/// Expands `{a,b}` and `{1..3}`.
pub(super) fn expand_braces(units: Vec<WordUnit>) -> Vec<Vec<WordUnit>> {
    let mut open = vec![units];
    let mut done = Vec::new();
    while let Some(units) = open.pop() {
        match expand_first_brace(&units) {
            Some(_) if open.len() + done.len() >= BRACES_MAX => {
                done.push(vec![many_values()]);
                break;
            }
            Some(made) => open.extend(made.into_iter().rev()),
            None => done.push(units),
        }
    }
    done
}

/// Represents the words beyond the limit.
fn many_values() -> WordUnit {
    WordUnit::Unknown(ShellText::unknown(MANY_VALUES))
}

/// Expands the first brace expression of a word. `None` if the word has none.
fn expand_first_brace(units: &[WordUnit]) -> Option<Vec<Vec<WordUnit>>> {
    let mut opens = (0..units.len()).filter(|at| units.get(*at).is_some_and(|it| it.is('{')));
    let made = opens.by_ref().take(BRACES_MAX).find_map(|open| {
        let (before, inside) = (units.get(..open)?, units.get(open + 1..)?);
        let (items, close) = items(inside)?;
        let after = inside.get(close + 1..)?;
        Some(items.into_iter().map(|it| [before, &it, after].concat()).collect())
    });
    made.or_else(|| opens.next().map(|_| vec![vec![many_values()]]))
}

/// Returns the items of a brace expression and the index of its closing brace. `None` if the brace
/// is literal.
fn items(inside: &[WordUnit]) -> Option<(Vec<Vec<WordUnit>>, usize)> {
    if inside.first().is_some_and(|it| it.is('}')) {
        return None;
    }
    let (mut depth, mut from) = (0_usize, 0);
    let mut items: Vec<&[WordUnit]> = Vec::new();
    for (at, unit) in inside.iter().enumerate() {
        if unit.is('{') {
            depth += 1;
        } else if depth > 0 && unit.is('}') {
            depth -= 1;
        } else if depth == 0 && unit.is(',') {
            items.push(inside.get(from..at)?);
            from = at + 1;
        } else if unit.is('}') {
            let last = inside.get(from..at)?;
            if !items.is_empty() {
                items.push(last);
                return Some((items.into_iter().map(<[WordUnit]>::to_vec).collect(), at));
            }
            let plain = |it: &WordUnit| {
                if let WordUnit::Char(c, UnitKind::Plain) = it { Some(*c) } else { None }
            };
            let range =
                last.iter().map(plain).collect::<Option<String>>().and_then(|it| range(&it));
            // A brace without a list or a range is literal.
            if let Some(range) = range {
                let quoted =
                    |it: &String| it.chars().map(|c| WordUnit::Char(c, UnitKind::Quoted)).collect();
                // The values beyond the limit: a pattern that any of them matches.
                let rest =
                    (range.len() >= BRACES_MAX).then(|| vec![WordUnit::Char('*', UnitKind::Plain)]);
                return Some((range.iter().map(quoted).chain(rest).collect(), at));
            }
        }
    }
    None
}

/// Expands `1..3`, `c..a` and `01..9..2`.
fn range(text: &str) -> Option<Vec<String>> {
    let (start, rest) = text.split_once("..")?;
    let (end, step) = rest.split_once("..").unwrap_or((rest, "1"));
    let step = step.parse::<i64>().ok()?.unsigned_abs().max(1);
    let steps = |from: i64, to: i64| {
        let each = usize::try_from(step).unwrap_or(usize::MAX);
        let up = (from..=to).step_by(each).take(BRACES_MAX);
        let down = (to..=from).rev().step_by(each).take(BRACES_MAX);
        up.chain(down.filter(move |_| from > to)).collect::<Vec<i64>>()
    };
    if let (Ok(from), Ok(to)) = (start.parse::<i64>(), end.parse::<i64>()) {
        let padded = [start, end].iter().any(|it| {
            let digits = it.trim_start_matches(['-', '+']);
            digits.len() > 1 && digits.starts_with('0')
        });
        let width = if padded { start.len().max(end.len()) } else { 0 };
        // The width of a format argument is at most `u16::MAX`.
        let width = width.min(usize::from(u16::MAX));
        return Some(steps(from, to).iter().map(|it| format!("{it:0width$}")).collect());
    }
    let one = |it: &str| it.chars().next().filter(|c| c.is_ascii_alphabetic() && it.len() == 1);
    let (from, to) = (one(start)?, one(end)?);
    let letter = |it: i64| u8::try_from(it).ok().map(|it| char::from(it).to_string());
    steps(i64::from(u32::from(from)), i64::from(u32::from(to))).into_iter().map(letter).collect()
}

/// Builds the words of a command from left to right.
#[derive(Debug, Default)]
pub(super) struct ShellWords {
    done: Vec<UnsplitWord>,
    /// The units of the last word, which may continue.
    open: Vec<WordUnit>,
}

/// One word before word splitting.
#[derive(Debug)]
pub(super) enum UnsplitWord {
    /// A word without any special character.
    Literal(ShellText),
    Units(Vec<WordUnit>),
}

impl UnsplitWord {
    /// Appends the words that the shell makes of this word.
    pub(super) fn split(self, words: &mut Vec<ShellText>) {
        match self {
            Self::Literal(text) => words.push(text),
            Self::Units(units) => {
                for units in units.split(WordUnit::is_blank) {
                    expand_braces(units.to_vec()).iter().for_each(|it| split(it, words));
                }
            }
        }
    }

    /// Returns the text of this word, without word splitting.
    pub(super) fn whole(self) -> ShellText {
        match self {
            Self::Literal(text) => text,
            Self::Units(units) => join_units(&units),
        }
    }
}

impl ShellWords {
    /// Returns whether no word has been started.
    pub(super) const fn is_empty(&self) -> bool {
        self.done.is_empty() && self.open.is_empty()
    }

    /// Adds the source between two nodes. Blanks end the current word; other characters belong to a
    /// word.
    pub(super) fn between(&mut self, gap: &str) {
        let mut rest = gap;
        while let Some(c) = rest.chars().next() {
            let length = match c {
                '\\' => rest.chars().take(2).map(char::len_utf8).sum(),
                '#' if self.open.is_empty() => rest.find('\n').unwrap_or(rest.len()),
                c => c.len_utf8(),
            };
            let (part, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
            rest = after;
            match c {
                c if is_blank(c) => self.end(),
                '#' if self.open.is_empty() => {}
                _ => plain(part, &mut self.open),
            }
        }
    }

    /// Ends the current word.
    pub(super) fn end(&mut self) {
        if !self.open.is_empty() {
            self.done.push(UnsplitWord::Units(std::mem::take(&mut self.open)));
        }
    }

    /// Returns the words before word splitting.
    pub(super) fn unsplit(mut self) -> Vec<UnsplitWord> {
        self.end();
        self.done
    }

    /// Returns the words as the shell passes them to a program.
    pub(super) fn split(self) -> Vec<ShellText> {
        let unsplit = self.unsplit();
        let mut words = Vec::with_capacity(unsplit.len());
        unsplit.into_iter().for_each(|it| it.split(&mut words));
        words
    }
}

impl Scanner<'_> {
    /// Adds the value of a node.
    pub(super) fn add_word_part(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        words: &mut ShellWords,
    ) {
        if words.open.is_empty()
            && word_ends(source, node.end_byte())
            && let Some(literal) = literal(node, source)
        {
            debug_assert!(
                self.is_near_limit()
                    || self.split_by_units(node, source, scope) == std::slice::from_ref(&literal)
            );
            words.done.push(UnsplitWord::Literal(literal));
            return;
        }
        self.expand_node(node, source, scope, UnitKind::Plain, &mut words.open);
    }

    /// Evaluates one node character by character. Debug builds compare the result with the fast
    /// path.
    fn split_by_units(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
    ) -> Vec<ShellText> {
        let mut words = ShellWords::default();
        self.expand_node(node, source, scope, UnitKind::Plain, &mut words.open);
        words.split()
    }

    /// Evaluates adjacent nodes as a list of words.
    pub(super) fn words_from_nodes(
        &mut self,
        nodes: &[Node<'_>],
        source: &str,
        scope: &mut ShellState,
    ) -> ShellWords {
        let mut words = ShellWords::default();
        let before = nodes.first().and_then(Node::prev_sibling);
        let mut end = before.map_or(0, |it| it.end_byte());
        for node in nodes {
            words.between(source.get(end..node.start_byte()).unwrap_or_default());
            self.add_word_part(*node, source, scope, &mut words);
            end = node.end_byte();
        }
        words.between(escaped_blanks(source, end));
        words
    }

    /// Evaluates the parts of one word, beginning at a byte offset.
    pub(super) fn units_from_nodes(
        &mut self,
        from: usize,
        pieces: &[Node<'_>],
        source: &str,
        scope: &mut ShellState,
    ) -> Vec<WordUnit> {
        let (mut units, mut end) = (Vec::new(), from);
        for piece in pieces {
            plain(source.get(end..piece.start_byte()).unwrap_or_default(), &mut units);
            self.expand_node(*piece, source, scope, UnitKind::Plain, &mut units);
            end = piece.end_byte();
        }
        units
    }
}

/// Returns whether a word ends at a byte offset.
fn word_ends(source: &str, at: usize) -> bool {
    let next = source.get(at..).and_then(|it| it.chars().next());
    next.is_none_or(|it| is_blank(it) || matches!(it, ';' | '&' | '|' | '(' | ')' | '<' | '>'))
}

/// Splits the source behind an assignment: the rest of its value, and everything after it.
pub(super) fn split_after_value(gap: &str) -> (&str, &str) {
    let mut is_escaped = false;
    let end = gap.find(|c| {
        let ends = is_blank(c) && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    });
    gap.split_at_checked(end.unwrap_or(gap.len())).unwrap_or((gap, ""))
}

/// Returns whether the source between two nodes separates words.
pub(super) fn separates_words(gap: &str) -> bool {
    let mut words = ShellWords { open: vec![WordUnit::Break], ..ShellWords::default() };
    words.between(gap);
    !words.done.is_empty()
}

/// Returns the escaped blanks at a byte offset. The grammar ends a command there, but a shell does
/// not.
pub(super) fn escaped_blanks(source: &str, from: usize) -> &str {
    let rest = source.get(from..).unwrap_or_default();
    let mut end = 0;
    loop {
        let after = rest.get(end..).unwrap_or_default();
        let blanks = after.len() - after.trim_start_matches([' ', '\t']).len();
        match after.as_bytes().get(blanks..blanks + 2) {
            Some(b"\\ " | b"\\\t") => end += blanks + 2,
            // The next line continues this one.
            Some(b"\\\n") if after.get(blanks + 2..).is_some_and(|it| it.starts_with('\\')) => {
                end += blanks + 2;
            }
            _ => return rest.get(..end).unwrap_or_default(),
        }
    }
}

/// Returns the sibling nodes that touch a node. To a shell they belong to its last word.
pub(super) fn adjacent_nodes<'t>(node: Node<'t>, source: &str) -> Vec<Node<'t>> {
    let mut found: Vec<Node<'t>> = Vec::new();
    let mut end = node.end_byte();
    let mut next = node.next_sibling().filter(|_| !word_ends(source, end));
    while let Some(piece) = next.filter(|it| is_word_part(*it)) {
        if separates_words(source.get(end..piece.start_byte()).unwrap_or_default()) {
            break;
        }
        end = piece.end_byte();
        found.push(piece);
        next = piece.next_sibling();
    }
    found
}

/// Returns whether a node is a word or a part of one.
fn is_word_part(node: Node<'_>) -> bool {
    let kind = node.kind();
    kind.ends_with("string")
        || kind.ends_with("expansion")
        || kind.ends_with("substitution")
        || matches!(
            kind,
            "word"
                | "number"
                | "concatenation"
                | "command_name"
                | "variable_name"
                | "brace_expression"
                | "$"
        )
}

/// Returns the word of a node that has no special characters. This fast path avoids a vector of
/// units for most words; debug builds check it against [`Scanner::split_by_units`].
fn literal(node: Node<'_>, source: &str) -> Option<ShellText> {
    let raw = node_text(node, source);
    let means_something =
        |c: char| matches!(c, '\\' | '$' | '`' | '{' | '}' | '"' | '\'' | '\u{0}');
    let text = match node.kind() {
        "word" => raw,
        "raw_string" => raw.strip_prefix('\'')?.strip_suffix('\'')?,
        "string" => raw.strip_prefix('"')?.strip_suffix('"')?,
        "command_name" if node.child_count() == 1 => return literal(node.child(0)?, source),
        _ => return None,
    };
    if text.is_empty() || text.contains(means_something) {
        return None;
    }
    let is_quoted = text.len() < raw.len();
    // Behind some tokens the grammar joins two words.
    if !is_quoted && text.contains(is_blank) {
        return None;
    }
    let glob = !is_quoted && text.contains(['*', '?', '[']);
    Some(ShellText {
        glob,
        quoted_home: is_quoted && text.starts_with('~'),
        ..ShellText::known(text)
    })
}

impl Scanner<'_> {
    /// Appends the units that a node evaluates to.
    pub(super) fn expand_node(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        kind: UnitKind,
        out: &mut Vec<WordUnit>,
    ) {
        if self.enter() {
            self.expand_entered(node, source, scope, kind, out);
            self.leave();
        } else {
            out.push(WordUnit::Unknown(ShellText::unknown(node_text(node, source))));
        }
    }

    fn expand_entered(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        kind: UnitKind,
        out: &mut Vec<WordUnit>,
    ) {
        let raw = node_text(node, source);
        match node.kind() {
            "raw_string" => self.expand_raw_string(strip_delimiters(raw, "'", "'"), out),
            "ansi_c_string" => {
                let mut text = String::new();
                unescape_ansi(strip_delimiters(raw, "$'", "'"), &mut text);
                out.push(EMPTY);
                push_quoted(&text, out);
            }
            "translated_string" => self.expand_translated_string(node, source, scope, kind, out),
            "string" => {
                // The grammar parses the `$` of `$"…"` behind another part as a separate token.
                if matches!(out.last(), Some(WordUnit::Char('$', UnitKind::Plain))) {
                    out.pop();
                }
                // A quoted empty word is a word, except an empty list: `"$@"`.
                if !raw.contains('@') {
                    out.push(EMPTY);
                }
                self.expand_children(node, source, scope, UnitKind::Quoted, out);
            }
            "heredoc_body" => self.expand_children(node, source, scope, UnitKind::Quoted, out),
            "heredoc_content" => self.expand_heredoc_text(raw, scope, out),
            "concatenation" | "command_name" | "brace_expression" => {
                self.expand_children(node, source, scope, kind, out);
            }
            "simple_expansion" => self.expand_variable(node, source, scope, kind, out),
            "expansion" => self.expand_parameter(node, source, scope, kind, out),
            "command_substitution" if raw.starts_with('`') || raw.starts_with("$`") => {
                self.expand_backticks(raw, scope, kind, out);
            }
            "command_substitution" => {
                let made = self.expand_substitution(node, source, scope);
                push_value(made, kind, out);
            }
            "process_substitution" => {
                let mut made = match raw.starts_with(OUTPUT_PIPE) {
                    true => self.expand_consumer(node, source, scope),
                    false => self.expand_substitution(node, source, scope),
                };
                made.pipe = true;
                made.piped = made.all().map(str::to_owned);
                made.known_to = 0;
                raw.clone_into(&mut made.text);
                out.push(WordUnit::Unknown(made));
            }
            "arithmetic_expansion" => {
                self.scan_substitutions(node, source, scope);
                out.push(WordUnit::Unknown(ShellText::unknown(raw)));
            }
            // An unknown value may contain the variable behind a backslash.
            _ if self.as_written && raw.contains("\\$") => {
                out.push(WordUnit::Unknown(ShellText::unknown(raw)));
            }
            _ if kind == UnitKind::Quoted => {
                let mut text = String::new();
                unescape(raw, |c| "\"\\$`\n".contains(c), &mut text);
                push_quoted(&text, out);
            }
            _ if node.child_count() > 0 => self.expand_children(node, source, scope, kind, out),
            _ => self.expand_plain_text(raw, scope, out),
        }
    }

    /// Evaluates `'…'`.
    fn expand_raw_string(&self, text: &str, out: &mut Vec<WordUnit>) {
        out.push(EMPTY);
        // An unknown value in the text may close the quotes, so the text is not literal.
        if self.as_written && text.contains(['$', '`']) {
            out.push(WordUnit::Unknown(ShellText::unknown(text)));
        } else {
            push_quoted(text, out);
        }
    }

    /// Evaluates `$"…"`. The grammar also accepts blanks between `$` and the quote.
    fn expand_translated_string(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        kind: UnitKind,
        out: &mut Vec<WordUnit>,
    ) {
        let Some(string) = node.child(1) else { return };
        let gap = source.get(node.start_byte() + 1..string.start_byte()).unwrap_or_default();
        if !gap.is_empty() {
            out.push(WordUnit::Char('$', UnitKind::Plain));
            push_gap(gap, UnitKind::Plain, out);
        }
        self.expand_node(string, source, scope, kind, out);
    }

    /// Evaluates unquoted text. The grammar parses some variables as plain text: `{$A,b}`, `'a'$1`.
    fn expand_plain_text(&mut self, raw: &str, scope: &ShellState, out: &mut Vec<WordUnit>) {
        let mut rest = raw;
        if matches!(out.last(), Some(WordUnit::Char('$', UnitKind::Plain))) && name_end(rest) > 0 {
            out.pop();
            rest = self.expand_named(rest, scope, UnitKind::Plain, out);
        }
        while let Some(at) = variable_in(rest) {
            let (before, after) = rest.split_at_checked(at).unwrap_or((rest, "$"));
            plain(before, out);
            rest =
                self.expand_named(after.get(1..).unwrap_or_default(), scope, UnitKind::Plain, out);
        }
        plain(rest, out);
    }

    /// Evaluates the text of an expanded here-document. The grammar misses some of its variables.
    pub(super) fn expand_heredoc_text(
        &mut self,
        raw: &str,
        scope: &ShellState,
        out: &mut Vec<WordUnit>,
    ) {
        let mut rest = raw;
        while let Some(at) = variable_in(rest) {
            let (before, after) = rest.split_at_checked(at).unwrap_or((rest, "$"));
            push_quoted(&unescape_heredoc(before), out);
            rest =
                self.expand_named(after.get(1..).unwrap_or_default(), scope, UnitKind::Quoted, out);
        }
        push_quoted(&unescape_heredoc(rest), out);
    }

    /// Evaluates the children of a node and the source between them.
    fn expand_children(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        kind: UnitKind,
        out: &mut Vec<WordUnit>,
    ) {
        let mut end = node.start_byte();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            let start = child.end_byte() - node_text(child, source).len();
            let gap = source.get(end..start).unwrap_or_default();
            match node.kind() {
                "heredoc_body" => self.expand_heredoc_text(gap, scope, out),
                _ => push_gap(gap, kind, out),
            }
            end = child.end_byte();
            match child.kind() {
                "\"" | "$\"" => {}
                _ => self.expand_node(child, source, scope, kind, out),
            }
        }
        push_gap(source.get(end..node.end_byte()).unwrap_or_default(), kind, out);
    }
}

/// One part of a text with substitutions in backticks.
/// The grammar joins two substitutions that only blanks separate, and parses those within `${…}` as
/// text. Therefore this module splits them itself.
enum BacktickPart {
    /// The commands between two backticks, without their escapes.
    Code(String),
    /// Text outside of backticks.
    Literal(String),
}

impl Scanner<'_> {
    /// Scans the commands in backticks whose output is not used.
    pub(super) fn scan_backticks(&mut self, raw: &str, scope: &ShellState) {
        for piece in split_backticks(raw) {
            if let BacktickPart::Code(code) = piece {
                self.scan_in_process(&code, scope);
            }
        }
    }

    /// Scans commands that run in a subshell and returns their output.
    fn scan_in_process(&mut self, code: &str, scope: &ShellState) -> ShellOutput {
        let around = self.functions.enter_process_if(true);
        let output = self.scan_text(code, &mut scope.clone(), &StandardInput::default());
        self.functions.leave(around);
        output
    }

    /// Evaluates a text with substitutions in backticks.
    pub(super) fn expand_backticks(
        &mut self,
        raw: &str,
        scope: &ShellState,
        kind: UnitKind,
        out: &mut Vec<WordUnit>,
    ) {
        for piece in split_backticks(raw) {
            let value = match piece {
                BacktickPart::Code(code) => {
                    let output = self.scan_in_process(&code, scope);
                    output.substituted(&format!("`{code}`"))
                }
                BacktickPart::Literal(text) => ShellText::data(text),
            };
            push_value(value, kind, out);
        }
    }
}

fn split_backticks(raw: &str) -> Vec<BacktickPart> {
    let mut found = Vec::new();
    let (mut is_code, mut piece) = (false, String::new());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match c {
            '`' => {
                let done = std::mem::take(&mut piece);
                found.push(if is_code {
                    BacktickPart::Code(done)
                } else {
                    BacktickPart::Literal(done)
                });
                is_code = !is_code;
            }
            '\\' => {
                let next = chars.next();
                let is_taken_off = is_code && matches!(next, Some('`' | '\\' | '$'));
                piece.extend(Some(c).filter(|_| !is_taken_off));
                piece.extend(next);
            }
            c => piece.push(c),
        }
    }
    found.push(BacktickPart::Literal(piece));
    found.retain(|it| !matches!(it, BacktickPart::Literal(text) if text.is_empty()));
    found
}

/// Returns the programs that name the files which a program without output empties.
pub(super) fn emptied_by(writes: &[ShellText], appended: &[ShellText]) -> Vec<usize> {
    let emptied = writes.iter().filter(|it| !appended.contains(it));
    emptied.flat_map(|it| it.from.iter().copied()).collect()
}

/// Returns the length of the variable name that a text begins with. 0 if it begins with no name.
pub(super) fn name_end(text: &str) -> usize {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match text.chars().next() {
        Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => 1,
        _ => text.find(|c| !is_name(c)).unwrap_or(text.len()),
    }
}

/// Returns the byte offset of the first unescaped variable in a text.
pub(super) fn variable_in(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let name = text.get(at + 1..).filter(|_| c == '$' && !is_escaped);
        is_escaped = c == '\\' && !is_escaped;
        name.filter(|it| name_end(it) > 0).map(|_| at)
    })
}
