//! Words of a shell command line and the values that they have.
//!
//! The grammar splits one shell word into several nodes (`'a'\b`, `a$"b"`). This module joins the nodes that
//! touch, character by character, and then splits and expands them as a shell does.
//!
//! Contains: [`Text`] (a value that is known in part), the units of a word, brace expansion, word splitting,
//! quotes, and substitutions in backticks.
//! Does not contain: parameters (`scope`), file name patterns (`paths`), the syntax of quoted text (`shell`).

use tree_sitter::Node;

use super::super::shell::{
    ShellWord, node_text, quote, strip_delimiters, unescape, unescape_ansi, unescape_heredoc,
};
use super::Input;
use super::scope::{Output, Scope, name_end, variable_in};
use super::statements::Scanner;

/// A text that the shell would make, as far as it can be known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// The text; a part that cannot be known stands in it as it was written.
    pub text: String,
    /// Where its first part begins that cannot be known, in bytes; its length where all is known.
    pub known_to: usize,
    /// Whether the shell would put names of files in the place of its `*` and `?`.
    pub glob: bool,
    /// Whether a `~` that it begins with is a file's name and not the home: it was quoted.
    pub quoted_home: bool,
    /// Programs whose output is in it.
    pub from: Vec<usize>,
    /// Whether it is the name of a pipe from those programs: `<(…)`.
    pub pipe: bool,
    /// What is in that pipe, where that is known.
    pub piped: Option<String>,
}

impl Text {
    /// A text that is known.
    #[must_use]
    pub fn known(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { known_to: text.len(), text, ..Self::default() }
    }

    /// A text of which nothing can be known.
    #[must_use]
    pub fn unknown(written: impl Into<String>) -> Self {
        Self { text: written.into(), ..Self::default() }
    }

    /// A text that is known, and was data before: a `~` that it begins with is no home.
    pub(super) fn data(text: impl Into<String>) -> Self {
        let known = Self::known(text);
        Self { quoted_home: known.text.starts_with('~'), ..known }
    }

    /// With the home in the place of the `~` that it begins with, as the shell put it in when the text became
    /// a word.
    pub(super) fn with_home(self, home: &str) -> Self {
        let rest = self.text.strip_prefix('~').filter(|_| !self.quoted_home && !home.is_empty());
        match rest.filter(|it| it.is_empty() || it.starts_with('/')) {
            Some(_) if self.known_to > 0 => {
                let mut whole = Self::known(home);
                whole.append(&self.tail(1));
                whole
            }
            _ => self,
        }
    }

    /// Whether all of it is known.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.known_to >= self.text.len()
    }

    /// The text, where all of it is known.
    #[must_use]
    pub fn all(&self) -> Option<&str> {
        self.is_known().then_some(self.text.as_str())
    }

    /// Names of variables in the part that cannot be known.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let unknown = self.text.get(self.known_part().len()..).unwrap_or_default();
        unknown.split('$').skip(1).map(|it| {
            let name = it.trim_start_matches('{');
            let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
            name.get(..end).unwrap_or_default()
        })
    }

    /// The part before anything that cannot be known.
    #[must_use]
    pub fn known_part(&self) -> &str {
        self.text.get(..self.known_to).unwrap_or(&self.text)
    }

    /// Adds a character behind it.
    pub(super) fn push(&mut self, c: char) {
        if self.is_known() {
            self.known_to = self.text.len().saturating_add(c.len_utf8());
        }
        self.text.push(c);
    }

    /// Adds a text behind it.
    pub(super) fn append(&mut self, other: &Self) {
        if self.is_known() {
            self.known_to = self.text.len().saturating_add(other.known_to);
        }
        self.text.push_str(&other.text);
        self.glob |= other.glob;
        self.pipe |= other.pipe;
        self.piped = self.piped.take().or_else(|| other.piped.clone());
        for from in &other.from {
            if !self.from.contains(from) {
                self.from.push(*from);
            }
        }
    }

    /// Something that lies below it, where it is a folder.
    pub(super) fn below(&self) -> Self {
        let mut path = self.clone();
        path.text.truncate(path.text.trim_end_matches('/').len());
        path.known_to = path.known_to.min(path.text.len());
        path.append(&Self::known("/"));
        path.append(&Self::unknown("\u{2026}"));
        path
    }

    /// A part of it, from a byte on.
    pub(super) fn tail(&self, at: usize) -> Self {
        let text = self.text.get(at..).unwrap_or_default().to_owned();
        Self { known_to: self.known_to.saturating_sub(at).min(text.len()), text, ..self.clone() }
    }
}

impl ShellWord for Text {
    fn text(&self) -> &str {
        &self.text
    }

    fn joined(words: &[Self]) -> Self {
        let mut whole = Self::default();
        for (at, word) in words.iter().enumerate() {
            if at > 0 {
                whole.append(&Self::known(" "));
            }
            whole.append(word);
        }
        whole
    }

    fn after(&self, at: usize) -> Self {
        self.tail(at)
    }

    fn quoted(&self) -> Self {
        // The home stays one.
        let home = self.text.starts_with('~') && !self.quoted_home;
        match self.all().filter(|_| !home) {
            Some(word) => Self { from: self.from.clone(), ..Self::known(quote(word)) },
            None => self.clone(),
        }
    }
}

/// One character of a word, or a part of it that cannot be known.
#[derive(Debug, Clone)]
pub(super) enum Unit {
    Char(char, Kind),
    /// Something that cannot be known, with the programs that it comes from.
    Unknown(Text),
    /// The end of one item of a list such as `"$@"`.
    Break,
}

impl Unit {
    /// Whether it is a blank as it was written: the grammar takes two words for one behind some signs (`''- b`).
    pub(super) fn is_blank(&self) -> bool {
        matches!(self, Self::Char(c, Kind::Plain) if blank(*c))
    }

    /// Whether it is this character, as it was written.
    fn is(&self, wanted: char) -> bool {
        matches!(self, Self::Char(c, Kind::Plain) if *c == wanted)
    }
}

/// How a character came into a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// As it was written, outside of quotes.
    Plain,
    /// In quotes: it means nothing to the shell.
    Quoted,
    /// Out of a value outside of quotes: blanks split there, and patterns hold.
    Value,
}

/// What makes a word of nothing: quotes.
pub(super) const EMPTY: Unit = Unit::Char('\u{0}', Kind::Quoted);

/// Words that braces may make of one.
const BRACES_MAX: usize = 32;

/// Puts a value into a word.
pub(super) fn put(value: Text, kind: Kind, out: &mut Vec<Unit>) {
    let kind = if kind == Kind::Quoted { Kind::Quoted } else { Kind::Value };
    let known = value.known_part();
    out.extend(known.chars().map(|c| Unit::Char(c, kind)));
    if !value.is_known() || !value.from.is_empty() {
        out.push(Unit::Unknown(value.tail(known.len())));
    }
}

/// Puts the values of a list into a word, each as a word of its own.
pub(super) fn put_all(values: Vec<Text>, kind: Kind, out: &mut Vec<Unit>) {
    for (at, value) in values.into_iter().enumerate() {
        if at > 0 {
            out.push(Unit::Break);
        }
        if kind == Kind::Quoted {
            out.push(EMPTY);
        }
        put(value, kind, out);
    }
}

/// The characters of a text that means nothing to the shell.
pub(super) fn quoted(text: &str, out: &mut Vec<Unit>) {
    out.extend(text.chars().map(|c| Unit::Char(c, Kind::Quoted)));
}

/// What stands between two pieces of one word.
pub(super) fn between(gap: &str, kind: Kind, out: &mut Vec<Unit>) {
    if kind == Kind::Plain {
        plain(gap, out);
    } else {
        out.extend(gap.replace("\\\n", "").chars().map(|c| Unit::Char(c, kind)));
    }
}

/// The characters of a plain word, its backslashes taken off.
pub(super) fn plain(raw: &str, out: &mut Vec<Unit>) {
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') => {}
                Some(next) => out.push(Unit::Char(next, Kind::Quoted)),
                None => out.push(Unit::Char('\\', Kind::Quoted)),
            },
            c => out.push(Unit::Char(c, Kind::Plain)),
        }
    }
}

/// Adds a unit to a text.
fn add(unit: &Unit, text: &mut Text) {
    match unit {
        Unit::Char('\u{0}', _) => text.quoted_home |= text.text.is_empty(),
        Unit::Char(c, kind) => {
            if text.text.is_empty() {
                text.quoted_home = *c == '~' && (text.quoted_home || *kind == Kind::Quoted);
            }
            text.glob |= *kind != Kind::Quoted && matches!(c, '*' | '?' | '[');
            text.push(*c);
        }
        Unit::Unknown(part) => text.append(part),
        Unit::Break => text.push(' '),
    }
}

/// The one text that units are where nothing is split.
pub(super) fn whole(units: &[Unit]) -> Text {
    let mut text = Text::default();
    units.iter().for_each(|it| add(it, &mut text));
    text
}

/// Whether a character parts words.
pub(super) const fn blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n')
}

/// Splits a word where the shell does.
pub(super) fn split(units: &[Unit], words: &mut Vec<Text>) {
    let (mut text, mut any) = (Text::default(), false);
    for unit in units {
        let ends = match unit {
            Unit::Char(c, Kind::Value) => blank(*c),
            Unit::Break => true,
            Unit::Char(..) | Unit::Unknown(_) => false,
        };
        if ends {
            if any {
                words.push(std::mem::take(&mut text));
            }
            any = false;
        } else {
            add(unit, &mut text);
            any |= !matches!(unit, Unit::Unknown(part) if part.text.is_empty());
        }
    }
    if any {
        words.push(text);
    }
}

/// The words that `{a,b}` and `{1..3}` stand for.
pub(super) fn braces(units: Vec<Unit>) -> Vec<Vec<Unit>> {
    let mut open = vec![units];
    let mut done = Vec::new();
    while let Some(units) = open.pop() {
        let made = if open.len() + done.len() < BRACES_MAX { one_brace(&units) } else { None };
        match made {
            Some(made) => open.extend(made.into_iter().rev()),
            None => done.push(units),
        }
    }
    done
}

/// The words that the first brace stands for which stands for any.
fn one_brace(units: &[Unit]) -> Option<Vec<Vec<Unit>>> {
    let opens = (0..units.len()).filter(|at| units.get(*at).is_some_and(|it| it.is('{')));
    opens.take(BRACES_MAX).find_map(|open| {
        let (before, inside) = (units.get(..open)?, units.get(open + 1..)?);
        let (items, close) = items(inside)?;
        let after = inside.get(close + 1..)?;
        Some(items.into_iter().map(|it| [before, &it, after].concat()).collect())
    })
}

/// What a brace stands for, and where it closes; nothing where it closes nowhere, or stands for itself.
fn items(inside: &[Unit]) -> Option<(Vec<Vec<Unit>>, usize)> {
    if inside.first().is_some_and(|it| it.is('}')) {
        return None;
    }
    let (mut depth, mut from) = (0_usize, 0);
    let mut items: Vec<&[Unit]> = Vec::new();
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
                return Some((items.into_iter().map(<[Unit]>::to_vec).collect(), at));
            }
            let plain =
                |it: &Unit| if let Unit::Char(c, Kind::Plain) = it { Some(*c) } else { None };
            let range =
                last.iter().map(plain).collect::<Option<String>>().and_then(|it| range(&it));
            // Without a list in it, it closes nothing.
            if let Some(range) = range {
                let quoted =
                    |it: &String| it.chars().map(|c| Unit::Char(c, Kind::Quoted)).collect();
                return Some((range.iter().map(quoted).collect(), at));
            }
        }
    }
    None
}

/// The words that `1..3`, `c..a` and `01..9..2` stand for.
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
        // A format cannot pad further.
        let width = width.min(usize::from(u16::MAX));
        return Some(steps(from, to).iter().map(|it| format!("{it:0width$}")).collect());
    }
    let one = |it: &str| it.chars().next().filter(|c| c.is_ascii_alphabetic() && it.len() == 1);
    let (from, to) = (one(start)?, one(end)?);
    let letter = |it: i64| u8::try_from(it).ok().map(|it| char::from(it).to_string());
    steps(i64::from(u32::from(from)), i64::from(u32::from(to))).into_iter().map(letter).collect()
}

/// Words in the making, from left to right.
#[derive(Debug, Default)]
pub(super) struct Words {
    done: Vec<Word>,
    /// The units of the word that may still go on.
    open: Vec<Unit>,
}

/// One word before it is split.
#[derive(Debug)]
pub(super) enum Word {
    /// Nothing in it means anything to the shell.
    Literal(Text),
    Units(Vec<Unit>),
}

impl Word {
    /// The words that the shell makes of it.
    pub(super) fn split(self, words: &mut Vec<Text>) {
        match self {
            Self::Literal(text) => words.push(text),
            Self::Units(units) => {
                for units in units.split(Unit::is_blank) {
                    braces(units.to_vec()).iter().for_each(|it| split(it, words));
                }
            }
        }
    }

    /// The one text that it is where nothing is split.
    pub(super) fn whole(self) -> Text {
        match self {
            Self::Literal(text) => text,
            Self::Units(units) => whole(&units),
        }
    }
}

impl Words {
    /// Whether there are none so far.
    pub(super) const fn is_empty(&self) -> bool {
        self.done.is_empty() && self.open.is_empty()
    }

    /// Takes in what stands between two pieces: blanks end a word, anything else belongs to one.
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
                c if blank(c) => self.end(),
                '#' if self.open.is_empty() => {}
                _ => plain(part, &mut self.open),
            }
        }
    }

    /// Ends the word that is open.
    pub(super) fn end(&mut self) {
        if !self.open.is_empty() {
            self.done.push(Word::Units(std::mem::take(&mut self.open)));
        }
    }

    /// The words before they are split.
    pub(super) fn unsplit(mut self) -> Vec<Word> {
        self.end();
        self.done
    }

    /// The words as the shell would pass them.
    pub(super) fn split(self) -> Vec<Text> {
        let unsplit = self.unsplit();
        let mut words = Vec::with_capacity(unsplit.len());
        unsplit.into_iter().for_each(|it| it.split(&mut words));
        words
    }
}

impl Scanner<'_> {
    /// Takes a node into the words.
    pub(super) fn add_piece(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        words: &mut Words,
    ) {
        if words.open.is_empty()
            && word_ends(source, node.end_byte())
            && let Some(literal) = literal(node, source)
        {
            debug_assert_eq!(self.by_units(node, source, scope), std::slice::from_ref(&literal));
            words.done.push(Word::Literal(literal));
            return;
        }
        self.units(node, source, scope, Kind::Plain, &mut words.open);
    }

    /// The same for one node, character by character.
    fn by_units(&mut self, node: Node<'_>, source: &str, scope: &mut Scope) -> Vec<Text> {
        let mut words = Words::default();
        self.units(node, source, scope, Kind::Plain, &mut words.open);
        words.split()
    }

    /// The words that nodes come to which stand in one row.
    pub(super) fn words_of(
        &mut self,
        nodes: &[Node<'_>],
        source: &str,
        scope: &mut Scope,
    ) -> Words {
        let mut words = Words::default();
        let before = nodes.first().and_then(Node::prev_sibling);
        let mut end = before.map_or(0, |it| it.end_byte());
        for node in nodes {
            words.between(source.get(end..node.start_byte()).unwrap_or_default());
            self.add_piece(*node, source, scope, &mut words);
            end = node.end_byte();
        }
        words.between(escaped_blanks(source, end));
        words
    }

    /// The units of one word that its pieces come to, from a byte on.
    pub(super) fn units_of(
        &mut self,
        from: usize,
        pieces: &[Node<'_>],
        source: &str,
        scope: &mut Scope,
    ) -> Vec<Unit> {
        let (mut units, mut end) = (Vec::new(), from);
        for piece in pieces {
            plain(source.get(end..piece.start_byte()).unwrap_or_default(), &mut units);
            self.units(*piece, source, scope, Kind::Plain, &mut units);
            end = piece.end_byte();
        }
        units
    }
}

/// Whether no word goes on from here.
fn word_ends(source: &str, at: usize) -> bool {
    let next = source.get(at..).and_then(|it| it.chars().next());
    next.is_none_or(|it| blank(it) || matches!(it, ';' | '&' | '|' | '(' | ')' | '<' | '>'))
}

/// What stands behind an assignment: what is still its value, and the rest.
pub(super) fn behind_value(gap: &str) -> (&str, &str) {
    let mut is_escaped = false;
    let end = gap.find(|c| {
        let ends = blank(c) && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    });
    gap.split_at_checked(end.unwrap_or(gap.len())).unwrap_or((gap, ""))
}

/// Whether what stands between two pieces parts them.
pub(super) fn parts(gap: &str) -> bool {
    let mut words = Words { open: vec![Unit::Break], ..Words::default() };
    words.between(gap);
    !words.done.is_empty()
}

/// The escaped blanks from here on, which end a command to the grammar.
pub(super) fn escaped_blanks(source: &str, from: usize) -> &str {
    let rest = source.get(from..).unwrap_or_default();
    let mut end = 0;
    loop {
        let after = rest.get(end..).unwrap_or_default();
        let blanks = after.len() - after.trim_start_matches([' ', '\t']).len();
        match after.as_bytes().get(blanks..blanks + 2) {
            Some(b"\\ " | b"\\\t") => end += blanks + 2,
            // The line goes on.
            Some(b"\\\n") if after.get(blanks + 2..).is_some_and(|it| it.starts_with('\\')) => {
                end += blanks + 2;
            }
            _ => return rest.get(..end).unwrap_or_default(),
        }
    }
}

/// The pieces behind a node that touch it: to a shell they belong to its last word.
pub(super) fn touching<'t>(node: Node<'t>, source: &str) -> Vec<Node<'t>> {
    let mut found: Vec<Node<'t>> = Vec::new();
    let mut end = node.end_byte();
    let mut next = node.next_sibling().filter(|_| !word_ends(source, end));
    while let Some(piece) = next.filter(|it| is_piece(*it)) {
        if parts(source.get(end..piece.start_byte()).unwrap_or_default()) {
            break;
        }
        end = piece.end_byte();
        found.push(piece);
        next = piece.next_sibling();
    }
    found
}

/// Whether a node is a word or a piece of one.
fn is_piece(node: Node<'_>) -> bool {
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

/// The one word that a node is where nothing in it means anything to the shell: most are, and are read
/// without going through their characters. Debug builds do both.
fn literal(node: Node<'_>, source: &str) -> Option<Text> {
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
    // Behind some signs the grammar takes two words for one.
    if !is_quoted && text.contains(blank) {
        return None;
    }
    let glob = !is_quoted && text.contains(['*', '?', '[']);
    Some(Text { glob, quoted_home: is_quoted && text.starts_with('~'), ..Text::known(text) })
}

impl Scanner<'_> {
    /// The units that a node comes to, behind those before.
    pub(super) fn units(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        kind: Kind,
        out: &mut Vec<Unit>,
    ) {
        let raw = node_text(node, source);
        match node.kind() {
            "raw_string" => self.raw_string(strip_delimiters(raw, "'", "'"), out),
            "ansi_c_string" => {
                let mut text = String::new();
                unescape_ansi(strip_delimiters(raw, "$'", "'"), &mut text);
                out.push(EMPTY);
                quoted(&text, out);
            }
            "translated_string" => self.translated(node, source, scope, kind, out),
            "string" => {
                // `$"…"` behind another piece is a sign of its own to the grammar.
                if matches!(out.last(), Some(Unit::Char('$', Kind::Plain))) {
                    out.pop();
                }
                // An empty word is a word, but for a list of none: `"$@"`.
                if !raw.contains('@') {
                    out.push(EMPTY);
                }
                self.parts(node, source, scope, Kind::Quoted, out);
            }
            "heredoc_body" => self.parts(node, source, scope, Kind::Quoted, out),
            "heredoc_content" => self.heredoc_text(raw, scope, out),
            "concatenation" | "command_name" | "brace_expression" => {
                self.parts(node, source, scope, kind, out);
            }
            "simple_expansion" => self.variable(node, source, scope, kind, out),
            "expansion" => self.expansion(node, source, scope, kind, out),
            "command_substitution" if raw.starts_with('`') || raw.starts_with("$`") => {
                self.backticks(raw, scope, kind, out);
            }
            "command_substitution" => {
                let made = self.substitution(node, source, scope);
                put(made, kind, out);
            }
            "process_substitution" => {
                let mut made = self.substitution(node, source, scope);
                made.pipe = true;
                made.piped = made.all().map(str::to_owned);
                made.known_to = 0;
                raw.clone_into(&mut made.text);
                out.push(Unit::Unknown(made));
            }
            "arithmetic_expansion" => {
                self.inner_commands(node, source, scope);
                out.push(Unit::Unknown(Text::unknown(raw)));
            }
            // What could not be known may have been written behind a backslash.
            _ if self.as_written && raw.contains("\\$") => {
                out.push(Unit::Unknown(Text::unknown(raw)));
            }
            _ if kind == Kind::Quoted => {
                let mut text = String::new();
                unescape(raw, |c| "\"\\$`\n".contains(c), &mut text);
                quoted(&text, out);
            }
            _ if node.child_count() > 0 => self.parts(node, source, scope, kind, out),
            _ => self.plain_text(raw, scope, out),
        }
    }

    /// `'…'`
    fn raw_string(&self, text: &str, out: &mut Vec<Unit>) {
        out.push(EMPTY);
        // What could not be known, and was written into this text, is no data.
        if self.as_written && text.contains(['$', '`']) {
            out.push(Unit::Unknown(Text::unknown(text)));
        } else {
            quoted(text, out);
        }
    }

    /// `$"…"`; the grammar sees one where blanks stand in between, too.
    fn translated(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        kind: Kind,
        out: &mut Vec<Unit>,
    ) {
        let Some(string) = node.child(1) else { return };
        let gap = source.get(node.start_byte() + 1..string.start_byte()).unwrap_or_default();
        if !gap.is_empty() {
            out.push(Unit::Char('$', Kind::Plain));
            between(gap, Kind::Plain, out);
        }
        self.units(string, source, scope, kind, out);
    }

    /// Text outside of quotes. Variables in braces and behind quotes are signs and words to the grammar:
    /// `{$A,b}`, `'a'$1`.
    fn plain_text(&mut self, raw: &str, scope: &Scope, out: &mut Vec<Unit>) {
        let mut rest = raw;
        if matches!(out.last(), Some(Unit::Char('$', Kind::Plain))) && name_end(rest) > 0 {
            out.pop();
            rest = self.named(rest, scope, Kind::Plain, out);
        }
        while let Some(at) = variable_in(rest) {
            let (before, after) = rest.split_at_checked(at).unwrap_or((rest, "$"));
            plain(before, out);
            rest = self.named(after.get(1..).unwrap_or_default(), scope, Kind::Plain, out);
        }
        plain(rest, out);
    }

    /// Text of a here-document that is expanded, of whose variables the grammar misses some.
    pub(super) fn heredoc_text(&mut self, raw: &str, scope: &Scope, out: &mut Vec<Unit>) {
        let mut rest = raw;
        while let Some(at) = variable_in(rest) {
            let (before, after) = rest.split_at_checked(at).unwrap_or((rest, "$"));
            quoted(&unescape_heredoc(before), out);
            rest = self.named(after.get(1..).unwrap_or_default(), scope, Kind::Quoted, out);
        }
        quoted(&unescape_heredoc(rest), out);
    }

    /// The children of a node, and what stands between them.
    fn parts(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        kind: Kind,
        out: &mut Vec<Unit>,
    ) {
        let mut end = node.start_byte();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            let start = child.end_byte() - node_text(child, source).len();
            let gap = source.get(end..start).unwrap_or_default();
            match node.kind() {
                "heredoc_body" => self.heredoc_text(gap, scope, out),
                _ => between(gap, kind, out),
            }
            end = child.end_byte();
            match child.kind() {
                "\"" | "$\"" => {}
                _ => self.units(child, source, scope, kind, out),
            }
        }
        between(source.get(end..node.end_byte()).unwrap_or_default(), kind, out);
    }
}

/// A piece of a text with backticks.
enum Piece {
    /// The commands between two backticks, their backslashes taken off.
    Code(String),
    /// What stands around them.
    Text(String),
}

impl Scanner<'_> {
    /// Commands in backticks whose value does not matter.
    pub(super) fn in_backticks(&mut self, raw: &str, scope: &Scope) {
        for piece in pieces(raw) {
            if let Piece::Code(code) = piece {
                self.in_process(&code, scope);
            }
        }
    }

    /// What commands in a process of their own put out.
    fn in_process(&mut self, code: &str, scope: &Scope) -> Output {
        let around = self.functions.enter_process_if(true);
        let output = self.text(code, &mut scope.clone(), &Input::default());
        self.functions.leave(around);
        output
    }

    /// What such substitutions come to in a word.
    pub(super) fn backticks(&mut self, raw: &str, scope: &Scope, kind: Kind, out: &mut Vec<Unit>) {
        for piece in pieces(raw) {
            let value = match piece {
                Piece::Code(code) => {
                    let output = self.in_process(&code, scope);
                    output.substituted(&format!("`{code}`"))
                }
                Piece::Text(text) => Text::data(text),
            };
            put(value, kind, out);
        }
    }
}

fn pieces(raw: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    let (mut is_code, mut piece) = (false, String::new());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match c {
            '`' => {
                let done = std::mem::take(&mut piece);
                found.push(if is_code { Piece::Code(done) } else { Piece::Text(done) });
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
    found.push(Piece::Text(piece));
    found.retain(|it| !matches!(it, Piece::Text(text) if text.is_empty()));
    found
}
