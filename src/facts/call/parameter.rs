//! Values of variables in a word: `$A`, `${A:-x}`, `${A%.*}`. What the grammar takes for a name is read again,
//! for it takes more for one than a shell does.

use tree_sitter::Node;

use super::super::shell::unwrap::Word;
use super::super::shell::word;
use super::scan::{Scanner, Scope};
use super::units::{Kind, Unit, between, put, put_all, whole};
use super::value::Text;

impl Scanner<'_> {
    /// The value of the variable whose name a text begins with; what follows the name.
    pub(super) fn named<'t>(
        &mut self,
        text: &'t str,
        scope: &Scope,
        kind: Kind,
        out: &mut Vec<Unit>,
    ) -> &'t str {
        let (name, rest) = text.split_at_checked(name_end(text)).unwrap_or((text, ""));
        let written = format!("${name}");
        // Braces are put out first: `$A{b,c}` are the variables `Ab` and `Ac`. So is the end of a line.
        let goes_on = kind == Kind::Plain && (rest.starts_with('{') || rest.starts_with("\\\n"));
        // What is written behind the name where it cannot be known may be more of it.
        if goes_on || self.as_written && rest.starts_with(['$', '`']) {
            out.push(Unit::Unknown(Text::unknown(written)));
            return rest;
        }
        let values = self.values(name, &written, scope);
        let is_joined = kind == Kind::Quoted && name == "*";
        put_all(if is_joined { vec![joined(&values)] } else { values }, kind, out);
        rest
    }

    /// `$NAME`
    pub(super) fn variable(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        kind: Kind,
        out: &mut Vec<Unit>,
    ) {
        let from = node.end_byte() - word::raw(node, source).len() + 1;
        let name = source.get(from..node.end_byte()).unwrap_or_default();
        let from = from + name.len() - name.trim_start_matches("\\\n").len();
        let name = name.trim_start_matches("\\\n");
        // Behind a lone `$` the grammar takes a blank for the name, or what follows it.
        if name_end(name) == 0 {
            out.push(Unit::Char('$', kind));
            return between(name, kind, out);
        }
        // What follows the node tells, too, whether the name ends here.
        let after = source.get(from..).unwrap_or_default();
        let rest = self.named(after, scope, kind, out);
        // `$12` is `$1` and a digit, which the grammar takes for more of the name.
        let own = name.len().saturating_sub(after.len() - rest.len());
        out.extend(rest.chars().take(own).map(|c| Unit::Char(c, kind)));
    }

    /// `${NAME…}`
    pub(super) fn expansion(
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
        let Parameter { name, is_joined, rest } = Parameter::read(inside);
        let set = self.lookup(name, scope);
        // Behind a colon an empty value counts as none.
        let colon = rest.starts_with(':');
        let has_value = set.as_ref().is_some_and(|it| !(it.is_empty() || colon && all_empty(it)));
        match rest.strip_prefix(':').unwrap_or(rest).chars().next().unwrap_or(' ') {
            operator @ ('-' | '=' | '?') if !has_value => {
                let from = out.len();
                if !self.behind_operator(node, source, scope, kind, out) && operator == '?' {
                    out.push(Unit::Unknown(Text::unknown(raw)));
                }
                if operator == '=' {
                    let value = whole(out.get(from..).unwrap_or_default());
                    scope.variables.insert(name.to_owned(), vec![value]);
                }
            }
            '+' if has_value => {
                self.behind_operator(node, source, scope, kind, out);
            }
            '+' => {
                // Where nothing is known of it, the environment may have it.
                self.inner_commands(node, source, scope);
            }
            '-' | '=' | '?' | ' ' if !rest.starts_with(": ") => {
                let values = self.values(name, raw, scope);
                let is_joined = is_joined && kind == Kind::Quoted;
                put_all(if is_joined { vec![joined(&values)] } else { values }, kind, out);
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

    /// What stands behind the operator of `${NAME:-…}`; whether there is anything.
    fn behind_operator(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        kind: Kind,
        out: &mut Vec<Unit>,
    ) -> bool {
        let behind: Vec<Node<'_>> = node
            .children(&mut node.walk())
            .skip_while(|it| !it.kind().starts_with([':', '-', '=', '+', '?']))
            .skip(1)
            .filter(|it| it.kind() != "}")
            .collect();
        let from = out.len();
        for child in &behind {
            self.units(*child, source, scope, kind, out);
        }
        // Its blanks part words, as those of a value do.
        for unit in out.iter_mut().skip(from) {
            if let Unit::Char(_, kind @ Kind::Plain) = unit {
                *kind = Kind::Value;
            }
        }
        !behind.is_empty()
    }
}

/// The parts of `${…}`.
struct Parameter<'t> {
    name: &'t str,
    /// Whether a list is one word in quotes: `*`, `NAME[*]`.
    is_joined: bool,
    /// The operator and what follows it.
    rest: &'t str,
}

impl<'t> Parameter<'t> {
    fn read(inside: &'t str) -> Self {
        let digits = inside.find(|c: char| !c.is_ascii_digit()).unwrap_or(inside.len());
        let end = name_end(inside).max(digits);
        let (name, rest) = inside.split_at_checked(end).unwrap_or((inside, ""));
        if let Some(rest) = rest.strip_prefix("[@]") {
            return Self { name, is_joined: false, rest };
        }
        match rest.strip_prefix("[*]") {
            Some(rest) => Self { name, is_joined: true, rest },
            None => Self { name, is_joined: name == "*", rest },
        }
    }
}

/// Where the name of a variable ends that a text begins with.
pub(super) fn name_end(text: &str) -> usize {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match text.chars().next() {
        Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => 1,
        _ => text.find(|c| !is_name(c)).unwrap_or(text.len()),
    }
}

/// Where a variable stands in a text of the shell.
pub(super) fn variable_in(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let name = text.get(at + 1..).filter(|_| c == '$' && !is_escaped);
        is_escaped = c == '\\' && !is_escaped;
        name.filter(|it| name_end(it) > 0).map(|_| at)
    })
}

/// The items of a list as one word: `"$*"`.
fn joined(items: &[Text]) -> Text {
    <Text as Word>::joined(items)
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
        let start: isize = start.trim().parse().ok()?;
        let from_end = value.chars().count().checked_add_signed(start);
        // Counted from the end, and beyond it there is nothing.
        let start = if start < 0 { from_end.unwrap_or(usize::MAX) } else { start.unsigned_abs() };
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
