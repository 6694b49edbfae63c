//! The texts that expressions of other languages build: `os.path.join(home, "x")`, `f"{base}/x"`, `base / "x"`.
//!
//! Contains: [`CodeValues`], the values of names, and the texts of expressions with them.
//! Does not contain: which statements set a name (`code_names`), the calls that receive a text (`code`).

use std::cell::Cell;
use std::collections::BTreeMap;

use super::code_syntax::{arguments, unescaped};
use super::code_text::UNKNOWN;

/// Functions that join their arguments to a path.
const JOINS: [&str; 7] =
    ["join", "joinpath", "resolve", "Path", "PurePath", "PosixPath", "Pathname"];
/// Functions whose result is the path, or the text, of their first argument.
const KEEPS: [&str; 16] = [
    "expanduser",
    "expandvars",
    "abspath",
    "realpath",
    "normpath",
    "expand_path",
    "fspath",
    "str",
    "String",
    "Request",
    "URI",
    "URL",
    "parse",
    "pathToFileURL",
    "fileURLToPath",
    "realpathSync",
];
/// Methods whose result is the path, or the text, of their object.
const SAME: [&str; 12] = [
    "expanduser",
    "expandvars",
    "resolve",
    "absolute",
    "as_posix",
    "as_uri",
    "strip",
    "trim",
    "toString",
    "to_s",
    "to_path",
    "expand_path",
];
/// Objects whose `join` and `parse` are not those of paths: texts and lists.
const PATH_OWNERS: [&str; 12] = [
    "path",
    "p",
    "posixpath",
    "os",
    "File",
    "Pathname",
    "pathlib",
    "Path",
    "URI",
    "url",
    "request",
    "posix",
];
/// Expressions for the directory of the script, or the current one, which is taken for it.
const HERE: [&str; 9] = [
    "__dirname",
    "__dir__",
    "__DIR__",
    "import.meta.dirname",
    "os.getcwd()",
    "process.cwd()",
    "Path.cwd()",
    "Dir.pwd",
    "getcwd()",
];
/// Nested expressions, at most.
const DEPTH_MAX: usize = 12;

/// Values of names.
#[derive(Debug, Default)]
pub(super) struct CodeValues {
    /// For each name the values that it is set to: a literal or a list of literals, as code.
    values: BTreeMap<String, Vec<String>>,
    /// Whether an expression was nested too deep.
    is_over_limit: Cell<bool>,
}

impl CodeValues {
    /// Adds a value. Returns whether it is new.
    pub(super) fn add(&mut self, name: &str, value: String) -> bool {
        let known = self.values.entry(name.to_owned()).or_default();
        let is_new = !known.contains(&value);
        if is_new {
            known.push(value);
        }
        is_new
    }

    /// Returns whether an expression was nested too deep to be read.
    pub(super) const fn is_over_limit(&self) -> bool {
        self.is_over_limit.get()
    }

    /// Returns the values of a name.
    pub(super) fn of(&self, name: &str) -> &[String] {
        self.values.get(own(name)).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the largest number of values that a name in an expression has; 1 without names.
    pub(super) fn variants(&self, expression: &str) -> usize {
        let names = expression.split(|c: char| !is_part(c));
        names.map(|it| self.of(it).len()).max().unwrap_or_default().max(1)
    }

    /// Returns the value of an expression as a literal or a list of literals. `None` if it is neither. Each number of a
    /// variant chooses one value of each name.
    pub(super) fn value(&self, expression: &str, variant: usize) -> Option<String> {
        let text = expression.trim();
        if let Some(inside) = text.strip_prefix(['[', '(']).filter(|_| text.ends_with([']', ')'])) {
            let elements = arguments(inside);
            let is_whole = elements.iter().map(|it| it.len() + 1).sum::<usize>() + 1 >= text.len();
            if is_whole && (text.starts_with('[') || elements.len() > 1) {
                let element =
                    |it: &String| self.value(it, variant).unwrap_or_else(|| it.trim().to_owned());
                return Some(format!(
                    "[{}]",
                    elements.iter().map(element).collect::<Vec<_>>().join(", ")
                ));
            }
        }
        if let Some(known) = self.chosen(text, variant) {
            return Some(known.to_owned());
        }
        TextReader { values: self, variant, rest: text, depth: 0 }.whole().map(|it| literal(&it))
    }

    /// Returns one value of a name.
    fn chosen(&self, name: &str, variant: usize) -> Option<&str> {
        let all = self.of(name);
        all.get(variant).or(all.last()).map(String::as_str)
    }

    /// Returns a literal without its values in braces, or behind a dollar sign.
    fn filled(&self, text: &str, is_format: bool, variant: usize) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some(at) = rest.find(['{', '$', '#']) {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let (mark, has_sign) = match from {
                it if it.starts_with("${") || it.starts_with("#{") || it.starts_with("{$") => {
                    (2, true)
                }
                it if it.starts_with('{') && is_format => (1, true),
                it if it.starts_with('$') => (1, false),
                _ => (0, false),
            };
            let inside = from.get(mark..).unwrap_or_default();
            let end = match has_sign {
                true => inside.find('}'),
                false => Some(inside.find(|c| !is_part(c)).unwrap_or(inside.len())),
            };
            let (Some(end), 1..) = (end, mark) else {
                let step = from.chars().next().map_or(1, char::len_utf8);
                out.push_str(from.get(..step).unwrap_or_default());
                rest = from.get(step..).unwrap_or_default();
                continue;
            };
            let name = inside.get(..end).unwrap_or_default().trim();
            let behind = end + usize::from(has_sign);
            let written = from.get(..mark + behind).unwrap_or_default();
            // Perl and PHP name a value with its sign.
            let known = self.chosen(name, variant);
            let known = known.or_else(|| self.chosen(&format!("${name}"), variant));
            match known.and_then(content) {
                Some(value) => out.push_str(&value),
                None if is_format || from.starts_with("#{") => out.push_str(UNKNOWN),
                None => out.push_str(written),
            }
            rest = inside.get(behind..).unwrap_or_default();
        }
        out + rest
    }
}

/// Reads the text of an expression.
struct TextReader<'c> {
    values: &'c CodeValues,
    variant: usize,
    rest: &'c str,
    depth: usize,
}

impl<'c> TextReader<'c> {
    /// Reads the whole expression. `None` if it is not a text of which a part is known.
    fn whole(mut self) -> Option<String> {
        let text = self.sum()?;
        let is_known = text.replace(UNKNOWN, "").chars().any(char::is_alphanumeric) || text == "~";
        let behind = self.rest.trim();
        let is_whole = behind.is_empty() || behind.starts_with('#') || behind.starts_with("//");
        (is_whole && is_known).then_some(text)
    }

    /// Reads texts that are joined: `a + b`, `a . b`, `a / b`.
    fn sum(&mut self) -> Option<String> {
        let mut text = self.term()?;
        loop {
            let behind = self.rest.trim_start();
            let is_apart = behind.len() < self.rest.len();
            let (sign, next) = behind.split_at_checked(1).unwrap_or((behind, ""));
            match sign {
                "+" => self.rest = next,
                "." if next.starts_with('.') => self.rest = next.get(1..).unwrap_or_default(),
                "." if is_apart && next.starts_with(' ') => self.rest = next,
                "/" if !next.starts_with('/') => self.rest = next,
                _ => return Some(text),
            }
            let more = self.term()?;
            text = if sign == "/" { joined(&text, &more) } else { text + &more };
        }
    }

    /// Reads one operand. Of an expression that is not known, the text is unknown.
    fn term(&mut self) -> Option<String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            self.values.is_over_limit.set(true);
            return None;
        }
        self.rest = self.rest.trim_start();
        self.rest = self.rest.strip_prefix("new ").unwrap_or(self.rest);
        let mut text = self.operand()?;
        while let Some(behind) = self.rest.strip_prefix('.') {
            let end = behind.find(|c| !is_part(c)).unwrap_or(behind.len());
            let (method, after) = behind.split_at(end);
            if method.is_empty() {
                break;
            }
            let given = after.strip_prefix('(');
            text = match method {
                "parent" | "dirname" => {
                    text.rsplit_once('/').map_or_else(|| ".".to_owned(), |it| it.0.to_owned())
                }
                "joinpath" => self.joined_arguments(Some(text), given?)?,
                _ if SAME.contains(&method) => text,
                _ => return None,
            };
            self.rest = given.map_or(after, behind_brackets);
        }
        self.depth -= 1;
        Some(text)
    }

    fn operand(&mut self) -> Option<String> {
        let text = self.rest;
        if let Some(inside) = text.strip_prefix('(') {
            let all = arguments(inside);
            let [one] = all.as_slice() else { return None };
            self.rest = behind_brackets(inside);
            return self.inner(one);
        }
        if let Some(here) = HERE.iter().find(|it| text.starts_with(**it)) {
            self.rest = text.get(here.len()..).unwrap_or_default();
            return Some(".".to_owned());
        }
        let start = text.find(['"', '\'', '`', '(', '.', ' ']).unwrap_or(text.len());
        let (prefix, from) = text.split_at(start);
        if from.starts_with(['"', '\'', '`'])
            && prefix.len() <= 2
            && prefix.chars().all(|it| "fFrRbBuU@".contains(it))
        {
            return self.literal(prefix.contains(['f', 'F']), from);
        }
        self.name(text)
    }

    /// Reads a literal.
    fn literal(&mut self, is_format: bool, from: &'c str) -> Option<String> {
        let quote = from.chars().next()?;
        let long = ["\"\"\"", "'''"].into_iter().find(|it| from.starts_with(it));
        let body = from.get(long.map_or(1, str::len)..)?;
        let mut text = String::new();
        let mut chars = body.chars();
        loop {
            let rest = chars.as_str();
            let c = chars.next()?;
            if c == '\\' {
                text.extend(unescaped(&mut chars));
            } else if c == quote && long.is_none_or(|it| rest.starts_with(it)) {
                self.rest = rest.get(long.map_or(1, str::len)..)?;
                return Some(self.values.filled(&text, is_format || quote == '`', self.variant));
            } else {
                text.push(c);
            }
        }
    }

    /// Reads a name or a call.
    fn name(&mut self, text: &'c str) -> Option<String> {
        let end = text.find(|c| !is_part(c) && c != '.' && c != ':').unwrap_or(text.len());
        let (mut name, mut after) = text.split_at(end);
        let Some(inside) = after.strip_prefix('(') else {
            // `a.b` of a name `a` is a member or a method.
            if self.values.of(name).is_empty()
                && let Some((first, _)) = own(name).split_once('.')
            {
                let start = name.len() - own(name).len();
                (name, after) = text.split_at(start + first.len());
            }
            self.rest = after;
            let known = self.values.chosen(name, self.variant).and_then(content);
            let is_name = !name.is_empty() && !name.starts_with(|c: char| c.is_numeric());
            return known.or_else(|| is_name.then(|| UNKNOWN.to_owned()));
        };
        let (owner, function) = name.rsplit_once(['.', ':']).unwrap_or(("", name));
        if !self.values.of(owner).is_empty() {
            (_, self.rest) = text.split_at(owner.len());
            return self.values.chosen(owner, self.variant).and_then(content);
        }
        self.rest = behind_brackets(inside);
        let last_owner = owner.rsplit(['.', ':']).next().unwrap_or_default();
        let is_path = owner.is_empty() || PATH_OWNERS.contains(&last_owner);
        if JOINS.contains(&function) && is_path {
            return self.joined_arguments(None, inside);
        }
        if KEEPS.contains(&function) && (is_path || last_owner == "new") {
            return self.inner(arguments(inside).first()?);
        }
        if function == "dirname" {
            let text = self.inner(arguments(inside).first()?)?;
            return Some(
                text.rsplit_once('/').map_or_else(|| ".".to_owned(), |it| it.0.to_owned()),
            );
        }
        Some(UNKNOWN.to_owned())
    }

    /// Returns the path of arguments, behind a first part.
    fn joined_arguments(&self, first: Option<String>, inside: &str) -> Option<String> {
        let parts = arguments(inside);
        let texts = parts.iter().map(|it| self.inner(it)).collect::<Option<Vec<String>>>()?;
        first.into_iter().chain(texts).reduce(|path, it| joined(&path, &it))
    }

    /// Reads an inner expression.
    fn inner(&self, text: &str) -> Option<String> {
        let text = text.trim();
        if matches!(text, "__file__" | "__FILE__" | "__filename" | "import.meta.url") {
            return Some("./script".to_owned());
        }
        let mut reader = TextReader {
            values: self.values,
            variant: self.variant,
            rest: text,
            depth: self.depth + 1,
        };
        let found = reader.sum()?;
        reader.rest.trim().is_empty().then_some(found)
    }
}

/// Returns a path below another one. An absolute one replaces it.
fn joined(path: &str, below: &str) -> String {
    match below.starts_with(['/', '~']) || path.is_empty() {
        true => below.to_owned(),
        false => format!("{}/{below}", path.trim_end_matches('/')),
    }
}

/// Returns the text behind the bracket that closes.
fn behind_brackets(inside: &str) -> &str {
    let (mut depth, mut quote, mut is_escaped) = (0_usize, None, false);
    for (at, c) in inside.char_indices() {
        match (quote, c) {
            _ if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') if depth == 0 => {
                return inside.get(at + 1..).unwrap_or_default();
            }
            (None, ')' | ']' | '}') => depth -= 1,
            (None, _) => {}
        }
    }
    ""
}

/// Returns the literal of a text.
fn literal(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns the text of a literal. `None` for a list.
fn content(literal: &str) -> Option<String> {
    let inside = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::new();
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.extend(chars.next()),
            c => text.push(c),
        }
    }
    Some(text)
}

/// Returns a name without the object to which it belongs.
pub(super) fn own(name: &str) -> &str {
    ["self.", "this.", "cls."].into_iter().find_map(|it| name.strip_prefix(it)).unwrap_or(name)
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || "_$@".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_built_of_literals_names_and_functions_of_paths() {
        let mut values = CodeValues::default();
        for (name, value) in [("home", "~"), ("$base", "/var"), ("root", "/srv"), ("@dir", "/opt")]
        {
            values.add(name, literal(value));
        }
        for (expression, expected) in [
            ("\"a\"", "a"),
            ("home", "~"),
            ("self.root", "/srv"),
            ("home + '/x'", "~/x"),
            ("root / 'a' / \"b\"", "/srv/a/b"),
            ("\"~\" / \"Documents\"", "~/Documents"),
            ("os.path.join(home, 'a', 'b')", "~/a/b"),
            ("os.path.join('a', '/b')", "/b"),
            ("path.join(\"~\", 'x')", "~/x"),
            ("os.path.expanduser('~/x') # it's", "~/x"),
            ("os.path.join(os.path.expanduser('~'), '.bashrc')", "~/.bashrc"),
            ("Path('~/.aws').expanduser()", "~/.aws"),
            ("pathlib.Path(root).joinpath('x').resolve()", "/srv/x"),
            ("(root / 'a').parent", "/srv"),
            ("f'{root}/x'", "/srv/x"),
            ("f'{other}/x'", "${__unknown__}/x"),
            ("`${root}/x`", "/srv/x"),
            ("\"#{root}/x\"", "/srv/x"),
            ("\"$base/mysql\"", "/var/mysql"),
            ("\"${base}/mysql\"", "/var/mysql"),
            ("$base . \"/x\"", "/var/x"),
            ("File.join(@dir, 'x')", "/opt/x"),
            ("File.expand_path('~/x')", "~/x"),
            ("path.join(__dirname, 'dist')", "./dist"),
            ("os.path.join(os.path.dirname(os.path.abspath(__file__)), 'out')", "./out"),
            ("Path(__file__).resolve().parent / 'out'", "./out"),
            ("os.path.join(argv[1], 'x')", ""),
            ("json.load(open('x'))", ""),
            ("open('x').read()", ""),
            ("', '.join(names)", ""),
            ("names.join('/')", ""),
            ("fetch(root)", ""),
            ("home == 'a'", ""),
            ("tmp()", ""),
        ] {
            let expected = (!expected.is_empty()).then(|| literal(expected));
            assert_eq!(values.value(expression, 0), expected, "{expression}");
        }
        assert_eq!(values.value("['rm', root]", 0).unwrap(), "[\"rm\", \"/srv\"]");
    }
}
