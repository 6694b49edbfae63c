//! What a node of the grammar comes to in a word: quotes taken off, variables and substitutions put in. What
//! cannot be known stays as written, and is marked.

use tree_sitter::Node;

use super::super::shell::word;
use super::parameter::{name_end, variable_in};
use super::scan::{Scanner, Scope};
use super::units::{EMPTY, Kind, Unit, between, plain, put, quoted};
use super::value::Text;

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
        let raw = word::raw(node, source);
        match node.kind() {
            "raw_string" => self.raw_string(word::inside(raw, "'", "'"), out),
            "ansi_c_string" => {
                let mut text = String::new();
                word::unescape_ansi(word::inside(raw, "$'", "'"), &mut text);
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
                word::unescape(raw, |c| "\"\\$`\n".contains(c), &mut text);
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
            quoted(&word::in_heredoc(before), out);
            rest = self.named(after.get(1..).unwrap_or_default(), scope, Kind::Quoted, out);
        }
        quoted(&word::in_heredoc(rest), out);
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
