//! The names that code of other languages sets, and the values that they have.
//!
//! Contains: [`NameBindings`]. Each value that a name is set to counts, wherever that is: names have no scope, and the order of
//! statements does not count.
//! Does not contain: the values themselves (`code_values`), the flow of unknown data (`code_flow`).

use super::code_syntax::{arguments, required, without_require};
use super::code_tokens::CodeTokens;
use super::code_values::{CodeValues, own};

/// Different values of all names, at most.
const VALUES_MAX: usize = 400;
/// Words that begin a statement whose name is not in front of a colon.
const BEFORE_COLON: [&str; 9] =
    ["if", "elif", "else", "for", "while", "try", "with", "except", "lambda"];

/// Names that a piece of code defines by statements.
#[derive(Debug, Default)]
pub(super) struct NameBindings {
    values: CodeValues,
    /// Imported modules and functions with their local names.
    pub(super) imported: Vec<(String, String)>,
    /// New values that may still be added.
    left: usize,
}

impl NameBindings {
    /// Reads code. `None` if its names have too many values, or if an expression is nested too deep.
    pub(super) fn of(language: &str, code: &str) -> Option<Self> {
        let mut names = Self { left: VALUES_MAX, ..Self::default() };
        for (at, module, _) in required(code) {
            names.requires(code.get(..at).unwrap_or_default(), &module);
        }
        let code = &*without_require(code);
        let tokens = CodeTokens::of(language, code);
        let mut others = Vec::new();
        for range in tokens.statements() {
            let statement = code.get(range).unwrap_or_default().trim();
            let words: Vec<&str> = statement.split_whitespace().collect();
            match words.as_slice() {
                ["import", rest @ .., "from", module] => {
                    let module = module.trim_matches(['"', '\'', ';']);
                    let module = module.rsplit(['/', ':']).next().unwrap_or(module);
                    names.requires(&format!("{}=", rest.join(" ").replace(" as ", ":")), module);
                }
                ["import", rest @ ..] => names.imports(&rest.join(" "), ""),
                ["from", module, "import", rest @ ..] => names.imports(&rest.join(" "), module),
                _ => others.push(statement),
            }
        }
        let functions = functions(code);
        // The second time, a name can have the value of a later one.
        for is_first in [true, false] {
            others.iter().for_each(|it| names.read(it, is_first));
            functions.iter().for_each(|it| names.read_calls(code, it));
        }
        (names.left > 0 && !names.values.is_over_limit()).then_some(names)
    }

    /// Records the name of `const a = require('module')` and those of `const {a, b: c} = require('module')`.
    fn requires(&mut self, before: &str, module: &str) {
        let Some(left) = before.trim_end().strip_suffix('=').map(str::trim_end) else { return };
        let is_end = |c: char| !(c.is_alphanumeric() || c == '_' || c == '$');
        let Some(members) = left.strip_suffix('}').and_then(|it| it.rsplit_once('{')) else {
            let name = left.rsplit(is_end).next().unwrap_or_default();
            self.imported.push((module.to_owned(), name.to_owned()));
            return;
        };
        for member in members.1.split(',') {
            let (name, known) = member.split_once(':').unwrap_or((member, member));
            self.imported.push((format!("{module}.{}", name.trim()), known.trim().to_owned()));
        }
    }

    /// Records `a as b, c`.
    fn imports(&mut self, list: &str, module: &str) {
        for item in list.trim_matches(['(', ')']).split(',') {
            let words: Vec<&str> = item.split_whitespace().collect();
            let (name, known) = match words.as_slice() {
                [name] => (*name, *name),
                [name, "as", known] => (*name, *known),
                _ => continue,
            };
            let whole = if module.is_empty() { name.into() } else { format!("{module}.{name}") };
            self.imported.push((whole, known.to_owned()));
        }
    }

    /// Records the names that a statement sets.
    fn read(&mut self, statement: &str, is_first: bool) {
        if let Some((name, list)) = loop_of(statement) {
            for variant in 0..self.values.variants(list) {
                let value = self.values.value(list, variant).filter(|it| it.starts_with('['));
                let elements = value.map(|it| arguments(it.get(1..).unwrap_or_default()));
                for element in elements.into_iter().flatten() {
                    self.set(name, &element);
                }
            }
        }
        let Some((left, value)) = assignment(statement) else { return };
        let left = left.trim_end();
        let added = left.strip_suffix('+').or_else(|| left.strip_suffix(" ."));
        let typed = left.split_once(':').map(|it| it.0.trim());
        let typed = typed.filter(|it| !it.contains(' ') && !BEFORE_COLON.contains(it));
        let name =
            added.or(typed).unwrap_or(left).split_whitespace().next_back().unwrap_or_default();
        match added {
            None => self.set(name, value),
            // The second time, the same text would be added again.
            Some(_) if is_first => self.set(name, &format!("{name} + {value}")),
            Some(_) => {}
        }
    }

    /// Records the values that an expression has for a name.
    fn set(&mut self, name: &str, expression: &str) {
        let name = own(name);
        if name.is_empty() || !name.chars().all(is_name) {
            return;
        }
        for variant in 0..self.values.variants(expression) {
            let value = self.values.value(expression, variant);
            if value.is_some_and(|it| self.values.add(name, it)) {
                self.left = self.left.saturating_sub(1);
            }
            if self.left == 0 {
                return;
            }
        }
    }

    /// Records what the calls of a function give its parameters.
    fn read_calls(&mut self, code: &str, function: &CodeFunction<'_>) {
        for (at, name) in code.match_indices(function.name) {
            let behind =
                code.get(at + name.len()..).and_then(|it| it.trim_start().strip_prefix('('));
            let is_part = code.get(..at).is_some_and(|it| it.ends_with(is_name));
            let given = behind.filter(|_| !is_part).map(arguments).unwrap_or_default();
            for (parameter, given) in function.parameters.iter().zip(&given) {
                self.set(parameter, given);
            }
        }
    }

    /// Returns all names that the code has for a function.
    pub(super) fn calls_of(&self, call: &str) -> impl Iterator<Item = String> {
        let other = self.imported.iter().filter(|(whole, known)| whole != known);
        let other = other.filter_map(|(whole, known)| {
            let rest = call.strip_prefix(whole.as_str())?;
            (rest.is_empty() || rest.starts_with('.')).then(|| format!("{known}{rest}"))
        });
        std::iter::once(call.to_owned()).chain(other)
    }

    /// Returns the values of a name, as literals or lists of literals.
    pub(super) fn values(&self, name: &str) -> &[String] {
        self.values.of(name)
    }

    /// Returns the arguments with values instead of names, for each value that a name has.
    pub(super) fn put_in(&self, arguments: &[String]) -> Vec<Vec<String>> {
        let variants = arguments.iter().map(|it| self.values.variants(it)).max().unwrap_or(1);
        let put = |it: &String, variant| {
            let is_plain =
                it.trim_start().starts_with(['"', '\'']) && !it.contains(['{', '$', '#']);
            let value = (!is_plain).then(|| self.values.value(it, variant)).flatten();
            value.unwrap_or_else(|| it.clone())
        };
        let each =
            (0..variants).map(|variant| arguments.iter().map(|it| put(it, variant)).collect());
        let mut found: Vec<Vec<String>> = each.collect();
        found.dedup();
        found
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || "_$@".contains(c)
}

/// A function that code defines.
#[derive(Debug)]
struct CodeFunction<'c> {
    name: &'c str,
    parameters: Vec<&'c str>,
}

/// Returns the functions that code defines: `def f(a, b):`, `function f(a, b) {`, `const f = (a, b) =>`.
fn functions(code: &str) -> Vec<CodeFunction<'_>> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let mut found = Vec::new();
    for keyword in ["def ", "function ", "const "] {
        for (at, _) in code.match_indices(keyword) {
            let rest = code.get(at + keyword.len()..).unwrap_or_default().trim_start();
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(end);
            let behind = behind.trim_start();
            let behind = match keyword {
                "const " => behind.strip_prefix('=').map(str::trim_start),
                _ => Some(behind),
            };
            let inside = behind.and_then(|it| it.trim_start_matches("async ").strip_prefix('('));
            let Some((parameters, after)) = inside.and_then(|it| it.split_once(')')) else {
                continue;
            };
            if name.is_empty() || keyword == "const " && !after.trim_start().starts_with("=>") {
                continue;
            }
            let parameters = parameters.split(',').filter_map(|it| it.split([':', '=']).next());
            let parameters = parameters.map(str::trim);
            let parameters = parameters.filter(|it| !matches!(*it, "self" | "cls" | "")).collect();
            found.push(CodeFunction { name, parameters });
        }
    }
    found
}

/// Splits a statement at the sign that sets a name, and does not compare.
fn assignment(statement: &str) -> Option<(&str, &str)> {
    let is_set = |at: &usize| {
        let (before, behind) = statement.split_at(*at);
        !before.ends_with(['=', '!', '<', '>'])
            && !["==", "=>", "=~"].iter().any(|it| behind.starts_with(it))
    };
    let at = statement.match_indices('=').map(|it| it.0).find(is_set)?;
    Some((statement.get(..at)?, statement.get(at + 1..)?))
}

/// Returns the name and the list of `for name in list:`, `for (const name of list)`.
fn loop_of(statement: &str) -> Option<(&str, &str)> {
    let rest = statement.strip_prefix("for")?.trim_start();
    let (left, list) = rest.split_once(" in ").or_else(|| rest.split_once(" of "))?;
    let name = left.trim_start_matches('(').split_whitespace().next_back()?;
    let list = list.trim_end().trim_end_matches([':', '{']).trim_end();
    // The bracket of a loop of JavaScript.
    let is_bracketed = left.starts_with('(');
    Some((name, if is_bracketed { list.strip_suffix(')').unwrap_or(list) } else { list }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_all_their_values() {
        for (language, code, name, expected) in [
            (
                "python3",
                "import os\nd = os.path.expanduser('~/x')  # it's\nrm(d)",
                "d",
                vec!["~/x"],
            ),
            ("python3", "d: str = 'a'\nd = 'b'", "d", vec!["a", "b"]),
            ("python3", "c = 'rm'\nc += ' -rf'", "c", vec!["rm", "rm -rf"]),
            ("python3", "for x in ['a', \"b\"]:\n    rm(x)", "x", vec!["a", "b"]),
            ("python3", "def f(p):\n    rm(p)\nf('a')\nf(q)\nq = 'b'", "p", vec!["a", "b"]),
            (
                "python3",
                "class C:\n  def __init__(self):\n    self.root = '/srv'\n",
                "root",
                vec!["/srv"],
            ),
            ("python3", "if x == 'a': y = 'b'", "y", vec!["b"]),
            ("node", "const b = '/x';\nconst d = path.join(b, 'c');", "d", vec!["/x/c"]),
            ("node", "const f = (p) => rm(p);\nf('a')", "p", vec!["a"]),
            ("node", "for (const d of ['a', 'b']) { rm(d); }", "d", vec!["a", "b"]),
            ("perl", "my $d = \"/a\"; my $e = \"$d/b\";", "$e", vec!["/a/b"]),
            ("php", "$p = $h . '/x'; $h = '/y';", "$p", vec!["${__unknown__}/x", "/y/x"]),
        ] {
            let names = NameBindings::of(language, code).unwrap();
            let expected: Vec<String> = expected.iter().map(|it| format!("\"{it}\"")).collect();
            assert_eq!(names.values(name), expected, "{language}: {code}");
        }
    }

    #[test]
    fn too_many_values_are_not_a_smaller_set() {
        let code: String = (0..500).map(|it| format!("d = 'x{it}'\n")).collect();
        assert!(NameBindings::of("python3", &code).is_none());
    }
}
