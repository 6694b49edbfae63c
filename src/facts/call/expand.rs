//! Words as the shell would pass them: quotes taken off, braces, variables and substitutions put in.
//! What cannot be known stays as written, and is marked.

use tree_sitter::Node;

use super::super::shell::word;
use super::Input;
use super::scan::{Scanner, Scope};
use super::units::{Kind, Unit, add, braces, plain, put, split};
use super::value::Text;

impl Scanner<'_> {
    /// The words that a node comes to.
    pub(super) fn words_of(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
    ) -> Vec<Text> {
        if let Some(word) = literal(node, source) {
            debug_assert_eq!(self.put_together(node, source, scope), std::slice::from_ref(&word));
            return vec![word];
        }
        self.put_together(node, source, scope)
    }

    /// The same, character by character.
    fn put_together(&mut self, node: Node<'_>, source: &str, scope: &mut Scope) -> Vec<Text> {
        let mut units = Vec::new();
        self.units(node, source, scope, Kind::Plain, &mut units);
        let mut words = Vec::new();
        for units in braces(units) {
            split(&units, &mut words);
        }
        words
    }

    /// The one text that a node comes to where nothing is split: in an assignment, a here-string.
    pub(super) fn text_of(&mut self, node: Node<'_>, source: &str, scope: &mut Scope) -> Text {
        Text { glob: false, ..self.file_of(node, source, scope) }
    }

    /// The one file that a node comes to, behind a redirection: what stands for names stands for one.
    pub(super) fn file_of(&mut self, node: Node<'_>, source: &str, scope: &mut Scope) -> Text {
        let mut units = Vec::new();
        self.units(node, source, scope, Kind::Plain, &mut units);
        let mut text = Text::default();
        for unit in &units {
            add(unit, &mut text);
        }
        text
    }

    fn units(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        kind: Kind,
        out: &mut Vec<Unit>,
    ) {
        let raw = word::raw(node, source);
        let quoted = |text: &str, out: &mut Vec<Unit>| {
            out.extend(text.chars().map(|c| Unit::Char(c, Kind::Quoted)));
        };
        match node.kind() {
            "raw_string" => {
                if raw == "''" {
                    out.push(Unit::Char('\u{0}', Kind::Quoted)); // An empty word is a word.
                }
                quoted(word::inside(raw, "'", "'"), out);
            }
            "ansi_c_string" => {
                let mut text = String::new();
                word::unescape_ansi(word::inside(raw, "$'", "'"), &mut text);
                quoted(&text, out);
            }
            "string" | "translated_string" => {
                // An empty word is a word, but for a list of none: `"$@"`.
                if !raw.contains('@') {
                    out.push(Unit::Char('\u{0}', Kind::Quoted));
                }
                self.parts(node, source, scope, Kind::Quoted, out);
            }
            "concatenation" | "command_name" | "brace_expression" | "heredoc_body" => {
                self.parts(node, source, scope, kind, out);
            }
            "simple_expansion" => self.variable(node, source, scope, kind, out),
            "expansion" => self.expansion(node, source, scope, kind, out),
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
            _ if kind == Kind::Quoted => {
                let mut text = String::new();
                word::unescape(raw, |c| "\"\\$`\n".contains(c), &mut text);
                quoted(&text, out);
            }
            _ => plain(raw, out),
        }
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
            let start = child.end_byte() - word::raw(child, source).len();
            let gap = source.get(end..start).unwrap_or_default().replace("\\\n", "");
            end = child.end_byte();
            out.extend(gap.chars().map(|c| Unit::Char(c, kind)));
            match child.kind() {
                "\"" | "$\"" => {}
                _ => self.units(child, source, scope, kind, out),
            }
        }
        let gap = source.get(end..node.end_byte()).unwrap_or_default();
        out.extend(gap.chars().map(|c| Unit::Char(c, kind)));
    }

    fn variable(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        kind: Kind,
        out: &mut Vec<Unit>,
    ) {
        let raw = word::raw(node, source);
        let name = raw.trim_start_matches('$');
        for (at, value) in self.values(name, raw, scope).into_iter().enumerate() {
            if at > 0 {
                out.push(Unit::Break);
            }
            put(value, kind, out);
        }
    }

    /// `${NAME…}`
    fn expansion(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        kind: Kind,
        out: &mut Vec<Unit>,
    ) {
        let raw = word::raw(node, source);
        self.in_backticks(raw, scope);
        let inside = raw.strip_prefix("${").and_then(|it| it.strip_suffix('}')).unwrap_or_default();
        if let Some(name) = inside.strip_prefix('!') {
            // The value of the variable that another one names.
            let named = self.values(name, raw, scope);
            let named = named.first().and_then(Text::all).map(str::to_owned);
            let found = named.map(|it| self.values(&it, raw, scope));
            let found = found.unwrap_or_else(|| vec![Text::unknown(raw)]);
            found.into_iter().for_each(|it| put(it, kind, out));
            return;
        }
        let end =
            inside.find(|c: char| !(c.is_alphanumeric() || c == '_' || "@*#?!$-".contains(c)));
        // `-` begins a default, unless it is the name.
        let dash = inside.find('-').filter(|at| *at > 0);
        let end = [end, dash].into_iter().flatten().min().unwrap_or(inside.len());
        let (name, mut rest) = inside.split_at_checked(end).unwrap_or((inside, ""));
        if let Some(index) = rest.strip_prefix("[@]").or_else(|| rest.strip_prefix("[*]")) {
            rest = index;
        }
        let set = self.lookup(name, scope);
        let operator = rest.trim_start_matches(':').chars().next().unwrap_or(' ');
        let by_children = |it: &mut Self, scope: &mut Scope, out: &mut Vec<Unit>| {
            let mut found = false;
            let after: Vec<Node<'_>> = node
                .children(&mut node.walk())
                .skip_while(|it| !it.kind().starts_with([':', '-', '=', '+', '?']))
                .skip(1)
                .filter(|it| it.kind() != "}")
                .collect();
            for child in after {
                found = true;
                it.units(child, source, scope, kind, out);
            }
            found
        };
        match operator {
            '-' | '=' | '?' if set.as_ref().is_none_or(|it| it.is_empty() || all_empty(it)) => {
                if !by_children(self, scope, out) && operator == '?' {
                    out.push(Unit::Unknown(Text::unknown(raw)));
                }
            }
            '+' => {
                if set.is_some() {
                    by_children(self, scope, out);
                } else {
                    // The environment may have it.
                    self.inner_commands(node, source, scope);
                }
            }
            '-' | '=' | '?' | ' ' => {
                for (at, value) in self.values(name, raw, scope).into_iter().enumerate() {
                    if at > 0 {
                        out.push(Unit::Break);
                    }
                    put(value, kind, out);
                }
            }
            _ => {
                self.inner_commands(node, source, scope);
                let value = set.filter(|it| it.len() == 1).and_then(|it| it.into_iter().next());
                let changed = value.and_then(|it| changed(it.all()?, rest));
                let made = changed.map_or_else(|| Text::unknown(raw), Text::known);
                put(made, kind, out);
            }
        }
    }
}

impl Scanner<'_> {
    /// Commands in backticks within `${…}`, where the grammar takes them for text.
    pub(super) fn in_backticks(&mut self, raw: &str, scope: &Scope) {
        let mut open: Option<String> = None;
        let mut chars = raw.chars();
        while let Some(c) = chars.next() {
            match (c, &mut open) {
                ('`', None) => open = Some(String::new()),
                ('`', Some(_)) => {
                    let text = open.take().unwrap_or_default();
                    self.text(&text, &mut scope.clone(), &Input::default());
                }
                ('\\', inner) => {
                    let next = chars.next();
                    if let Some(inner) = inner {
                        let is_taken_off = matches!(next, Some('`' | '\\' | '$'));
                        inner.extend(Some(c).filter(|_| !is_taken_off));
                        inner.extend(next);
                    }
                }
                (c, Some(inner)) => inner.push(c),
                (_, None) => {}
            }
        }
    }
}

/// The one word that a node is where nothing in it means anything to the shell: most are, and are read
/// without going through their characters. Debug builds do both.
fn literal(node: Node<'_>, source: &str) -> Option<Text> {
    let raw = word::raw(node, source);
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
    let glob = !is_quoted && text.contains(['*', '?', '[']);
    Some(Text { glob, quoted_home: is_quoted && text.starts_with('~'), ..Text::known(text) })
}

fn all_empty(values: &[Text]) -> bool {
    values.iter().all(|it| it.text.is_empty())
}

/// What `%`, `#`, `/`, `:`, `^` and `,` make of a value; nothing where that is not worked out.
fn changed(value: &str, rest: &str) -> Option<String> {
    let plain = |it: &str| !it.contains(['*', '?', '[', '$', '`', '\\', '"', '\'']);
    if let Some(pattern) = rest.strip_prefix('%').map(|it| it.trim_start_matches('%')) {
        return match pattern {
            "/*" if !rest.starts_with("%%") => {
                Some(value.rsplit_once('/').map_or(value, |it| it.0).to_owned())
            }
            ".*" => Some(value.rsplit_once('.').map_or(value, |it| it.0).to_owned()),
            _ if plain(pattern) => Some(value.strip_suffix(pattern).unwrap_or(value).to_owned()),
            _ => None,
        };
    }
    if let Some(pattern) = rest.strip_prefix('#').map(|it| it.trim_start_matches('#')) {
        return match pattern {
            "*/" => Some(value.rsplit('/').next().unwrap_or(value).to_owned()),
            _ if plain(pattern) => Some(value.strip_prefix(pattern).unwrap_or(value).to_owned()),
            _ => None,
        };
    }
    if let Some(change) = rest.strip_prefix('/') {
        let all = change.starts_with('/');
        let change = change.trim_start_matches('/');
        let (from, to) = change.split_once('/').unwrap_or((change, ""));
        if from.is_empty() || !plain(from) || !plain(to) {
            return None;
        }
        return Some(if all { value.replace(from, to) } else { value.replacen(from, to, 1) });
    }
    if let Some(range) = rest.strip_prefix(':') {
        let (start, count) = range.split_once(':').unwrap_or((range, ""));
        let start: usize = start.trim().parse().ok()?;
        let chars = value.chars().skip(start);
        return Some(match count.trim() {
            "" => chars.collect(),
            count => chars.take(count.parse().ok()?).collect(),
        });
    }
    match rest {
        ",," => Some(value.to_lowercase()),
        "^^" => Some(value.to_uppercase()),
        _ => None,
    }
}
