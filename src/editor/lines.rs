//! Finds a place in a YAML file by the indentation of its lines, for files that the parser does not accept.

use super::place::{PathStep, Role, ScalarPlace, YamlPlace};
use policyd_yaml::ScalarStyle;

/// What a line begins with: the dashes of list items, then a key with its colon.
#[derive(Debug, Default)]
struct LineStart<'t> {
    /// Columns of the dashes.
    dashes: Vec<usize>,
    /// Column of what follows the dashes.
    column: usize,
    /// Key of the line.
    key: Option<&'t str>,
    /// Byte of the text that follows the key, or of what follows the dashes.
    rest: usize,
}

/// Finds what is at a byte of a file.
#[must_use]
pub(super) fn find(text: &str, at: usize) -> YamlPlace {
    let at = super::text::on_boundary(text, at);
    let line_start = text.get(..at).and_then(|it| it.rfind('\n')).map_or(0, |it| it + 1);
    let line_end = text.get(at..).and_then(|it| it.find('\n')).map_or(text.len(), |it| at + it);
    let line = text.get(line_start..line_end).unwrap_or_default().trim_end_matches('\r');
    let own = line_start_of(line, line_start);
    let is_blank = line.trim().is_empty();
    let column = if is_blank { at - line_start } else { own.column };
    let above = Above::new(text, line_start, column, &own, is_blank);
    if let Some(found) = above.text_around(text, at) {
        return found;
    }
    let mut path = above.path;
    path.extend(own.dashes.iter().map(|_| PathStep::Item));
    let mut siblings = above.siblings;
    if own.key.is_none() || at < own.rest {
        if own.dashes.is_empty() {
            siblings.extend(siblings_below(text, line_end, column));
        }
        return flow_or_word(text, at, own.rest, path, siblings, own.key);
    }
    path.push(PathStep::Key(own.key.unwrap_or_default().to_owned()));
    value(text, at, own.rest, path)
}

/// A word at the beginning of a line, or a list or map in brackets behind a dash.
fn flow_or_word(
    text: &str,
    at: usize,
    start: usize,
    path: Vec<PathStep>,
    siblings: Vec<String>,
    key: Option<&str>,
) -> YamlPlace {
    let content = text.get(start..).unwrap_or_default();
    if key.is_none() && content.starts_with(['[', '{']) && start < at {
        return flow(text, at, start, path);
    }
    if let Some(key) = key {
        let key_start = text.get(..start).and_then(|it| it.rfind(key)).unwrap_or(start);
        let role = Role::Key { range: key_start..key_start + key.len(), has_colon: true };
        return YamlPlace { path, role, siblings };
    }
    if content.starts_with(['"', '\'']) && start < at {
        let place = quoted(text, start, at, ends_of_line(text, start));
        return YamlPlace { path, role: Role::Value(place), siblings };
    }
    let end = ends_of_line(text, start);
    let written = text.get(start..end).unwrap_or_default();
    let word = written.trim_end().len();
    let range = if start <= at { start..start + word } else { at..at };
    YamlPlace { path, role: Role::Key { range, has_colon: false }, siblings }
}

fn ends_of_line(text: &str, start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    start + rest.find(['\n', '\r']).unwrap_or(rest.len())
}

/// The scalar, the list, or the map behind a key.
fn value(text: &str, at: usize, start: usize, path: Vec<PathStep>) -> YamlPlace {
    let content = text.get(start..).unwrap_or_default();
    if content.starts_with(['[', '{']) && start < at {
        return flow(text, at, start, path);
    }
    let end = ends_of_line(text, start);
    let role = if content.starts_with(['"', '\'']) && start < at {
        Role::Value(quoted(text, start, at, end))
    } else {
        Role::Value(plain(text, start.min(at), at, end))
    };
    YamlPlace { path, role, siblings: Vec::new() }
}

/// A scalar without quotes, to the end of the line or to a comment, but at least to the place.
fn plain(text: &str, start: usize, at: usize, end: usize) -> ScalarPlace {
    let written = text.get(start..end).unwrap_or_default();
    let comment = written.find(" #").filter(|it| start + it >= at);
    let content = written.get(..comment.unwrap_or(written.len())).unwrap_or_default();
    let length = content.trim_end().len().max(at.saturating_sub(start));
    let content = text.get(start..start + length).unwrap_or_default();
    let places = (start..=start + content.len()).collect();
    ScalarPlace::new(content.to_owned(), places, ScalarStyle::Plain, at)
}

/// A scalar that begins with a quotation mark at `start` and ends at `end` at the latest.
fn quoted(text: &str, start: usize, at: usize, end: usize) -> ScalarPlace {
    let double = text.get(start..).is_some_and(|it| it.starts_with('"'));
    let (mut decoded, mut places, mut next) = (String::new(), Vec::new(), start + 1);
    while let Some(c) = text.get(next..end).and_then(|it| it.chars().next()) {
        let rest = text.get(next + c.len_utf8()..end).unwrap_or_default();
        let follows = rest.chars().next();
        let (meant, length) = match c {
            '\\' if double => match follows {
                Some('n') => ('\n', 2),
                Some('t') => ('\t', 2),
                Some(other) => (other, 1 + other.len_utf8()),
                None => break,
            },
            '"' if double => break,
            '\'' if !double && follows == Some('\'') => ('\'', 2),
            '\'' if !double => break,
            c => (c, c.len_utf8()),
        };
        decoded.push(meant);
        places.extend(std::iter::repeat_n(next, meant.len_utf8()));
        next += length;
    }
    places.push(next);
    let style = if double { ScalarStyle::DoubleQuoted } else { ScalarStyle::SingleQuoted };
    ScalarPlace::new(decoded, places, style, at)
}

/// An open bracket of a list or a map in brackets.
struct Open {
    is_map: bool,
    /// Keys of the map before the last one.
    keys: Vec<String>,
    /// The key whose value follows.
    key: Option<String>,
}

/// A place in a list or a map in brackets, which begins at `start`.
fn flow(text: &str, at: usize, start: usize, path: Vec<PathStep>) -> YamlPlace {
    let mut open: Vec<Open> = Vec::new();
    let (mut next, mut word) = (start, start);
    while next < at {
        let Some(c) = text.get(next..).and_then(|it| it.chars().next()) else { break };
        match c {
            '[' | '{' => {
                open.push(Open { is_map: c == '{', keys: Vec::new(), key: None });
                word = next + 1;
            }
            ']' | '}' => {
                open.pop();
                word = next + 1;
            }
            '"' | '\'' if text.get(word..next).is_some_and(|it| it.trim().is_empty()) => {
                let end = close_of(text, next, c);
                if at <= end {
                    let place = quoted(text, next, at, end.max(at));
                    return in_brackets(path, &open, Role::Value(place));
                }
                next = end;
            }
            ':' if text.get(next + 1..).is_some_and(|it| it.starts_with([' ', '\n'])) => {
                let key = text.get(word..next).unwrap_or_default().trim().trim_matches(['"', '\'']);
                if let Some(it) = open.last_mut().filter(|it| it.is_map) {
                    it.key = Some(key.to_owned());
                }
                word = next + 1;
            }
            ',' => {
                if let Some(it) = open.last_mut() {
                    it.keys.extend(it.key.take());
                }
                word = next + 1;
            }
            _ => {}
        }
        next += c.len_utf8();
    }
    let rest = text.get(word..).unwrap_or_default();
    let word = (word + rest.len() - rest.trim_start().len()).min(at);
    let end =
        at + text.get(at..).unwrap_or_default().find([',', ']', '}', '\n', '\r', ':']).unwrap_or(0);
    let is_value = open.last().is_some_and(|it| !it.is_map || it.key.is_some());
    let is_key = open.last().is_some_and(|it| it.is_map && it.key.is_none());
    let written = text.get(word..end).unwrap_or_default().trim_end().len();
    let range = word..(word + written).max(at);
    let role = if is_value && !range.is_empty() {
        Role::Value(plain(text, word, at, range.end))
    } else if is_value && open.last().is_some_and(|it| it.is_map) {
        Role::Value(plain(text, at, at, at))
    } else {
        let has_colon = is_key && text.get(range.end..).is_some_and(|it| it.starts_with(':'));
        Role::Key { range, has_colon }
    };
    in_brackets(path, &open, role)
}

/// The place in open brackets.
fn in_brackets(mut path: Vec<PathStep>, open: &[Open], role: Role) -> YamlPlace {
    for it in open {
        match (&it.key, it.is_map) {
            (Some(key), true) => path.push(PathStep::Key(key.clone())),
            (_, false) => path.push(PathStep::Item),
            (None, true) => {}
        }
    }
    let siblings = open.last().map(|it| it.keys.clone()).unwrap_or_default();
    YamlPlace { path, role, siblings }
}

/// The byte of the quotation mark that ends a text; the end of the line if the text is open.
fn close_of(text: &str, start: usize, quote: char) -> usize {
    let mut escaped = false;
    let rest = text.get(start + 1..).unwrap_or_default();
    for (at, c) in rest.char_indices() {
        match c {
            '\n' | '\r' => return start + 1 + at,
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            c if c == quote => return start + 1 + at,
            _ => {}
        }
    }
    text.len()
}

/// Reads the beginning of a line, whose first byte is `start`.
fn line_start_of(line: &str, start: usize) -> LineStart<'_> {
    let mut found = LineStart::default();
    let mut column = line.len() - line.trim_start_matches(' ').len();
    loop {
        let rest = line.get(column..).unwrap_or_default();
        let Some(after) = rest.strip_prefix('-').filter(|it| it.is_empty() || it.starts_with(' '))
        else {
            break;
        };
        found.dashes.push(column);
        column += 1 + after.len() - after.trim_start_matches(' ').len();
    }
    let rest = line.get(column..).unwrap_or_default();
    (found.column, found.rest) = (column, start + column);
    if let Some((key, length)) = key_of(rest) {
        let after = rest.get(length..).unwrap_or_default();
        let blanks = after.len() - after.trim_start_matches(' ').len();
        found.key = Some(key);
        found.rest = start + column + length + blanks;
    }
    found
}

/// The key at the beginning of a text, and its length with the colon.
fn key_of(text: &str) -> Option<(&str, usize)> {
    if text.starts_with(['#', '[', '{', '|', '>']) {
        return None;
    }
    if let Some(quote) = text.chars().next().filter(|it| matches!(it, '"' | '\'')) {
        let inner = text.get(1..)?;
        let end = inner.find(quote)?;
        let after = inner.get(end + 1..)?;
        return after.starts_with(':').then(|| Some((inner.get(..end)?, end + 3)))?;
    }
    let end = text.match_indices(':').map(|(at, _)| at).find(|at| {
        text.get(at + 1..).is_some_and(|it| it.is_empty() || it.starts_with([' ', '\r']))
    })?;
    let key = text.get(..end)?;
    (!key.contains(" #")).then_some((key, end + 1))
}

/// What the lines above a place say about it.
struct Above {
    path: Vec<PathStep>,
    siblings: Vec<String>,
    /// The byte behind the key of the innermost map, if the line of the place is indented below that key.
    parent_value: Option<usize>,
    /// Column of the line of the place.
    column: usize,
}

impl Above {
    fn new(text: &str, line_start: usize, column: usize, own: &LineStart<'_>, blank: bool) -> Self {
        let mut found = Self { path: vec![], siblings: vec![], parent_value: None, column };
        let mut dash = !own.dashes.is_empty() && !blank;
        let mut wanted = if dash { own.dashes.first().copied().unwrap_or(column) } else { column };
        let mut end = line_start;
        while end > 0 && (wanted > 0 || found.path.is_empty() || dash) {
            let before = text.get(..end - 1).unwrap_or_default();
            let start = before.rfind('\n').map_or(0, |it| it + 1);
            let line = before.get(start..).unwrap_or_default().trim_end_matches('\r');
            end = start;
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            let above = line_start_of(line, start);
            if let Some(key) = above.key {
                if above.column < wanted || (above.column == wanted && dash) {
                    if found.path.is_empty() {
                        found.parent_value = Some(above.rest);
                    }
                    found.path.push(PathStep::Key(key.to_owned()));
                    (wanted, dash) = (above.column, false);
                } else if above.column == wanted && found.path.is_empty() && !dash {
                    found.siblings.push(key.to_owned());
                }
            }
            for column in above.dashes.iter().rev() {
                if *column < wanted {
                    found.path.push(PathStep::Item);
                    (wanted, dash) = (*column, true);
                }
            }
        }
        found.path.reverse();
        found.siblings.reverse();
        found
    }

    /// The place in a text of several lines, or in brackets of several lines, that a line above opens.
    fn text_around(&self, text: &str, at: usize) -> Option<YamlPlace> {
        let start = self.parent_value?;
        let end = ends_of_line(text, start);
        let header = text.get(start..end)?.trim();
        if header.starts_with(['[', '{']) {
            return Some(flow(text, at, start, self.path.clone()));
        }
        let style = match header.chars().next()? {
            '|' => ScalarStyle::Literal,
            '>' => ScalarStyle::Folded,
            _ => return None,
        };
        let is_header = header.get(1..)?.split(" #").next()?.chars();
        let mut is_header = is_header.filter(|it| !it.is_whitespace());
        if !is_header.all(|it| it.is_ascii_digit() || matches!(it, '-' | '+')) {
            return None;
        }
        let role = Role::Value(self.block(text, end, at, style));
        Some(YamlPlace { path: self.path.clone(), role, siblings: Vec::new() })
    }

    /// The text of the lines below a header, up to the first line that is indented less.
    fn block(&self, text: &str, header_end: usize, at: usize, style: ScalarStyle) -> ScalarPlace {
        let (mut content, mut places) = (String::new(), Vec::new());
        let mut next = header_end;
        let mut indent = None;
        while let Some(rest) = text.get(next..).and_then(|it| it.find('\n')).map(|it| next + it + 1)
        {
            let end = ends_of_line(text, rest);
            let line = text.get(rest..end).unwrap_or_default();
            let blanks = line.len() - line.trim_start_matches(' ').len();
            let indent =
                *indent.get_or_insert(if line.trim().is_empty() { self.column } else { blanks });
            if blanks < indent && !line.trim().is_empty() && rest > at {
                break;
            }
            if !content.is_empty() || next > header_end {
                content.push('\n');
                places.push(next);
            }
            let from = rest + blanks.min(indent);
            let line = text.get(from..end).unwrap_or_default();
            content.push_str(line);
            places.extend(from..end);
            next = end;
        }
        places.push(next);
        ScalarPlace::new(content, places, style, at)
    }
}

/// The keys of the map on the lines below a place, in the same column.
fn siblings_below(text: &str, line_end: usize, column: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = line_end + 1;
    for line in text.get(at..).unwrap_or_default().split_inclusive('\n') {
        let content = line.trim_end();
        let start = line_start_of(content, at);
        at += line.len();
        if content.is_empty() || content.trim_start().starts_with('#') {
            continue;
        }
        let first = start.dashes.first().copied().unwrap_or(start.column);
        if first < column || (first == column && !start.dashes.is_empty()) {
            break;
        }
        if start.column == column && start.dashes.is_empty() {
            found.extend(start.key.map(str::to_owned));
        }
    }
    found
}
