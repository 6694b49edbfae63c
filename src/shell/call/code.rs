//! Code of other languages on the command line: `python -c "os.system('…')"`.
//!
//! Contains: the code that an interpreter receives, and the programs that the calls in it start, if their
//! arguments are literals or simple variables.
//! Does not contain: a parser of any language (a heuristic finds the calls), PowerShell (`powershell`).

use std::collections::BTreeMap;
use std::str::Chars;

use super::code_text::{path_text, shell_text, simplified};
use super::files::{CodeCall, Interpreter};
use super::scope::ShellState;
use super::statements::Scanner;
use super::words::ShellText;
use super::wrappers::{is_standard_input, line};
use super::{Invocation, StandardInput, powershell};
use crate::glob::word_matches;
use crate::limits::SHELL_TEXT_MAX;
use crate::shell::escape_number;

/// The subcommand of `deno` and `bun` before a file.
const RUNS: &str = "run";
/// The command of a call that lists files.
const LISTS: &str = "ls";
/// Letters of options of interpreters that take the rest of their word: `perl -MEncode`.
const TAKES_REST: [char; 7] = ['M', 'm', 'I', 'r', 'W', 'X', 'l'];

impl Scanner<'_> {
    /// Finds the code that an interpreter runs. Returns the index of the argument that is a file of code.
    pub(super) fn find_code(&self, program: &mut Invocation, scope: &ShellState) -> Option<usize> {
        let known = &self.context.knowledge.interpreters;
        let is_row = |it: &&Interpreter| word_matches(&it.program, &program.name);
        let row = known.named(&program.name).find(is_row)?;
        if powershell::is_one(&program.name)
            && let Some(code) = powershell::code(&program.args)
        {
            given(program, code);
            return None;
        }
        let mut words = program.args.iter().enumerate();
        while let Some((at, word)) = words.next() {
            let text = word.text.as_str();
            if let Some(value) = given_code(row, text) {
                let code = match value {
                    Some(at) => Some(word.tail(at)),
                    None => words.next().map(|it| it.1.clone()),
                };
                given(program, code.unwrap_or_default());
                return None;
            }
            if row.other.iter().any(|it| it == text) {
                return None;
            }
            if text == RUNS {
                continue;
            }
            if is_standard_input(text) {
                break;
            }
            if text.starts_with('-') {
                continue;
            }
            if row.first {
                program.code.clone_from(&word.text);
                return None;
            }
            // The argument is a script file.
            let written = self.known_content(word, scope);
            let known = written.as_ref().and_then(|it| it.text.clone());
            if let Some(text) = known.or_else(|| word.piped.clone()) {
                program.code = text;
            } else if word.pipe || written.is_some() {
                program.runs_unknown = true;
                program.fed_by.extend(written.into_iter().flat_map(|it| it.from));
            } else {
                return Some(at);
            }
            return None;
        }
        if row.first {
            return None;
        }
        match &program.input.text {
            Some(text) => program.code.clone_from(text),
            None => program.runs_unknown = program.input.piped,
        }
        None
    }

    /// Runs the programs that a piece of code starts.
    pub(super) fn run_code(&mut self, program: &str, code: &str, scope: &mut ShellState) {
        if code.len() > SHELL_TEXT_MAX {
            self.mark_over_limit("the code that it runs is too long");
            return;
        }
        if powershell::is_one(program) {
            let (text, starters) = (powershell::as_shell(code), vec![program.to_owned()]);
            self.run_text(starters, &text, &mut scope.clone(), &StandardInput::default());
            return;
        }
        let knowledge = self.context.knowledge;
        let simple = simplified(program, code);
        let code = &*simple;
        let names = NameBindings::of(code);
        let fits =
            |only: &[String]| only.is_empty() || only.iter().any(|it| word_matches(it, program));
        let rows = || knowledge.calls.iter().filter(|it| fits(&it.only));
        let listed = listed_folders(code, &names, rows().filter(|it| it.like == [LISTS]));
        for row in rows().filter(|it| it.like != [LISTS]) {
            let found = names.calls_of(&row.call).flat_map(|it| calls(code, &it, &names));
            let found: Vec<Vec<String>> = found.collect();
            for arguments in found {
                if !self.spend_steps(arguments.iter().map(String::len).sum()) {
                    return;
                }
                self.find_line(code, &arguments);
                let arguments = names.put_in(arguments);
                if let Some(command) = opened_pipe(&row.call, &arguments) {
                    self.scan_text(&command, &mut scope.clone(), &StandardInput::default());
                    continue;
                }
                if let Some(path) = opened_to_write(&row.call, &arguments) {
                    self.run_words(
                        vec![ShellText::known("tee"), ShellText::known(path)],
                        program,
                        scope,
                    );
                    continue;
                }
                if !row.like.is_empty() {
                    let like = row.like.iter().map(ShellText::known);
                    let named = arguments.iter().filter(|it| !is_setting(it));
                    let given = named.flat_map(|it| match path_text(it) {
                        Some(path) => vec![path],
                        None if listed.is_empty() => vec![ShellText::unknown(it.trim())],
                        // It is probably one of the files that the code lists.
                        None => listed.iter().map(ShellText::below).collect(),
                    });
                    self.run_words(like.chain(given).collect(), program, scope);
                    continue;
                }
                let Some(first) = arguments.first() else { continue };
                let texts = literals(first);
                let is_list = first.trim_start_matches([' ', '*']).starts_with(['[', '(']);
                let rest = arguments.iter().skip(1).flat_map(|it| literals(it));
                let words: Vec<String> = match texts.as_slice() {
                    [] => continue,
                    _ if is_list => texts,
                    // `spawn("rm", ["-rf", "/"])`, `execlp("rm", "rm", "-rf")`
                    [one] if !one.contains(' ') => {
                        std::iter::once(one.clone()).chain(rest).collect()
                    }
                    _ => {
                        let mut inner = scope.clone();
                        let text = shell_text(first).unwrap_or_default();
                        self.scan_text(&text, &mut inner, &StandardInput::default());
                        continue;
                    }
                };
                let mut inner = scope.clone();
                self.scan_text(&line(&words), &mut inner, &StandardInput::default());
            }
        }
    }
}

impl Scanner<'_> {
    /// Sets the current line of a file of code to that of a call with these arguments.
    fn find_line(&mut self, code: &str, arguments: &[String]) {
        if self.lines_of.is_none() {
            return;
        }
        let first = arguments.iter().map(String::as_str).find(|it| !it.trim().is_empty());
        let before = first.and_then(|it| code.get(..code.find(it)?));
        self.line = before.map_or(0, |it| it.matches('\n').count() + 1);
    }
}

/// Names that a piece of code defines by simple statements.
#[derive(Debug, Default)]
struct NameBindings {
    /// Variables with the literal text or list that they are set to.
    values: BTreeMap<String, String>,
    /// Imported modules and functions with their local names.
    imported: Vec<(String, String)>,
}

impl NameBindings {
    fn of(code: &str) -> Self {
        let mut names = Self::default();
        for statement in statements(code) {
            let words: Vec<&str> = statement.split_whitespace().collect();
            match words.as_slice() {
                ["import", rest @ ..] => names.imports(&rest.join(" "), ""),
                ["from", module, "import", rest @ ..] => names.imports(&rest.join(" "), module),
                _ => names.assigned(statement),
            }
        }
        names
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

    /// Records `name = "text"`, `const name = ['a', 'b']`.
    fn assigned(&mut self, statement: &str) {
        let Some((name, value)) = statement.split_once('=') else { return };
        let name = name.split_whitespace().next_back().unwrap_or_default();
        let is_name = |c: char| c.is_alphanumeric() || "_$@".contains(c);
        let value = value.trim();
        // `Path("x")` counts as its text.
        let value = value.strip_prefix("pathlib.").unwrap_or(value);
        let path = value.strip_prefix("Path(").and_then(|it| it.strip_suffix(')'));
        let value = path.unwrap_or(value);
        let value = self.values.get(value).cloned().unwrap_or_else(|| value.to_owned());
        if !name.is_empty() && name.chars().all(is_name) && value.starts_with(['"', '\'', '`', '['])
        {
            self.values.insert(name.to_owned(), value);
        }
    }

    /// Returns all names that the code has for a function.
    fn calls_of(&self, call: &str) -> impl Iterator<Item = String> {
        let other = self.imported.iter().filter(|(whole, known)| whole != known);
        let other = other.filter_map(|(whole, known)| {
            let rest = call.strip_prefix(whole.as_str())?;
            (rest.is_empty() || rest.starts_with('.')).then(|| format!("{known}{rest}"))
        });
        std::iter::once(call.to_owned()).chain(other)
    }

    /// Replaces variables by their values.
    fn put_in(&self, arguments: Vec<String>) -> Vec<String> {
        let put = |it: String| self.values.get(it.trim()).cloned().unwrap_or(it);
        arguments.into_iter().map(put).collect()
    }
}

/// Splits code into statements at semicolons and line ends outside of quotes.
fn statements(code: &str) -> Vec<&str> {
    let (mut found, mut start, mut quote) = (Vec::new(), 0, None);
    let mut escaped = false;
    for (at, c) in code.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (_, '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, ';' | '\n') => {
                found.push(code.get(start..at).unwrap_or_default().trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(code.get(start..).unwrap_or_default().trim());
    found
}

/// Returns whether an argument is a setting and not an operand: `ignore_errors=True`, `{force:
/// true}`.
fn is_setting(argument: &str) -> bool {
    let text = argument.trim();
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let keyword = text.split_once('=').is_some_and(|(name, value)| {
        !name.is_empty() && name.trim().chars().all(is_name) && !value.starts_with('=')
    });
    let is_value = matches!(text, "True" | "False" | "None" | "true" | "false" | "null" | "nil");
    keyword || is_value || text.starts_with('{') || text.contains("=>")
}

/// Returns whether an option of an interpreter is followed by code. The inner value is the byte
/// offset of the code in the word; `None` if the code is the next word.
fn given_code(row: &Interpreter, text: &str) -> Option<Option<usize>> {
    row.code.iter().find_map(|option| {
        if text == option {
            return Some(None);
        }
        if option.starts_with("--") {
            let rest = text.strip_prefix(option.as_str())?;
            return rest.starts_with('=').then_some(Some(option.len() + 1));
        }
        let letter = option.strip_prefix('-')?;
        let bundle = text.strip_prefix('-').filter(|it| !it.starts_with('-'))?;
        // `perl -ne code`, `python3 -Bc code`.
        let is_bundle =
            !bundle.starts_with(TAKES_REST) && bundle.bytes().all(|b| b.is_ascii_alphabetic());
        if is_bundle && bundle.ends_with(letter) {
            return Some(None);
        }
        // `python3 -c'code'`, `perl -we'code'`.
        let is_first =
            |at: &usize| *at == 0 || (letter.len() == 1 && !bundle.starts_with(TAKES_REST));
        let at = bundle.find(letter).filter(is_first)?;
        let start = at + option.len();
        let glued = text.get(start..).filter(|it| it.contains(['(', ' ', ';']));
        glued.map(|_| Some(start))
    })
}

/// Records the code that a program runs. The code may be unknown: a variable or the output of
/// another program.
fn given(program: &mut Invocation, code: ShellText) {
    let unknown_start = code.known_part().trim().is_empty();
    program.runs_unknown |= !code.is_known() && (unknown_start || !code.from.is_empty());
    program.code = code.text;
}

/// Returns the directories and patterns that code lists.
fn listed_folders<'r>(
    code: &str,
    names: &NameBindings,
    rows: impl Iterator<Item = &'r CodeCall>,
) -> Vec<ShellText> {
    let calls =
        rows.flat_map(|row| names.calls_of(&row.call).flat_map(|it| calls(code, &it, names)));
    let folders = calls.filter_map(|it| {
        let first = names.put_in(it).into_iter().next()?;
        let text = literals(&first).into_iter().next()?;
        // What a pattern matches lies in its directory.
        let wild = text.find(['*', '?', '[']).unwrap_or(text.len());
        let folder = match text.get(..wild)?.rsplit_once('/') {
            Some((folder, _)) if wild < text.len() => folder.to_owned(),
            None if wild < text.len() => ".".to_owned(),
            _ => text,
        };
        Some(ShellText::known(folder))
    });
    folders.collect()
}

/// Returns the command in `open(P, "|command")` and `open(P, "-|", "command")` of Perl.
fn opened_pipe(call: &str, arguments: &[String]) -> Option<String> {
    if call != "open" {
        return None;
    }
    let texts: Vec<String> = arguments.iter().skip(1).flat_map(|it| literals(it)).collect();
    match texts.as_slice() {
        [mode, rest @ ..] if matches!(mode.as_str(), "-|" | "|-") => Some(rest.join(" ")),
        [one] => {
            let command = one.strip_prefix('|').or_else(|| one.strip_suffix('|'));
            command.map(str::to_owned)
        }
        _ => None,
    }
}

/// Returns the file that `open(path, "w")` of Python or Node, or `open(F, ">", path)` of Perl,
/// changes. `None` if the file is only read.
fn opened_to_write(call: &str, arguments: &[String]) -> Option<String> {
    if !matches!(call, "open" | "openSync") {
        return None;
    }
    let mode = |it: &String| !it.is_empty() && it.chars().all(|c| "rwaxbtU+<>".contains(c));
    let texts = |it: &String| literals(it);
    let later: Vec<String> = arguments.iter().skip(1).flat_map(texts).collect();
    let by_mode = later.iter().any(|it| mode(it) && it.contains(['w', 'a', 'x', '+', '>']));
    let by_mark = later.iter().any(|it| it.starts_with(['>', '+']));
    if !by_mode && !by_mark {
        return None;
    }
    let first = arguments.first().map(texts).unwrap_or_default();
    let path = first.into_iter().chain(later.into_iter().filter(|it| !mode(it))).next()?;
    Some(path.trim_start_matches(['+', '<', '>', ' ']).to_owned())
}

/// Returns the arguments of each call of a function.
fn calls(code: &str, name: &str, names: &NameBindings) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    if name == "`" {
        let parts: Vec<&str> = code.split('`').collect();
        let inside = parts.iter().skip(1).step_by(2);
        return inside.map(|it| vec![format!("\"{}\"", it.replace('"', "'"))]).collect();
    }
    for (at, _) in code.match_indices(name) {
        let before = code.get(..at).and_then(|it| it.chars().next_back());
        let is_method = name.starts_with('.');
        if !is_method && before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        // For a method, the argument is the object before the dot.
        if is_method {
            let owner = code.get(..at).unwrap_or_default();
            let object = match owner.strip_suffix(')') {
                Some(object) => object.rsplit_once('(').map(|(_, path)| path),
                // A name without a known path, such as `os` in `os.unlink(x)`, is not an argument.
                None => {
                    let variable =
                        owner.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next();
                    variable.and_then(|it| names.values.get(it)).map(String::as_str)
                }
            };
            found.extend(object.map(|it| vec![it.to_owned()]));
            continue;
        }
        let after = code.get(at + name.len()..).unwrap_or_default();
        let rest = after.trim_start();
        if let Some(inside) = rest.strip_prefix('(') {
            found.push(arguments(inside));
        } else if rest.starts_with(['"', '\'']) && rest.len() < after.len() {
            found.push(arguments(rest)); // `system "…"` of Perl and Ruby.
        }
    }
    found
}

/// Splits the arguments up to the closing parenthesis.
pub(super) fn arguments(text: &str) -> Vec<String> {
    let (mut found, mut word, mut depth) = (Vec::new(), String::new(), 0_usize);
    let mut quote: Option<char> = None;
    let mut escaped = false;
    for c in text.chars() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}' | ';' | '\n') if depth == 0 => break,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                found.push(std::mem::take(&mut word));
                continue;
            }
            (None, _) => {}
        }
        word.push(c);
    }
    if !word.trim().is_empty() {
        found.push(word);
    }
    found
}

/// Returns the string literals of a piece of code.
fn literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut chars = code.chars();
    while let Some(c) = chars.next() {
        if !matches!(c, '"' | '\'' | '`') {
            continue;
        }
        let mut text = String::new();
        while let Some(next) = chars.next() {
            match next {
                '\\' => text.extend(unescaped(&mut chars)),
                next if next == c => break,
                next => text.push(next),
            }
        }
        found.push(text);
    }
    found
}

/// Returns the character of an escape sequence that most languages share: `\x20`, `\040`. Any other
/// escaped character is itself.
pub(super) fn unescaped(chars: &mut Chars<'_>) -> Option<char> {
    let first = chars.clone().next()?;
    let code = match first {
        'x' => chars.next().and_then(|_| escape_number(chars, 16, 2)),
        '0'..='7' => escape_number(chars, 8, 3),
        _ => return chars.next(),
    };
    let code = code.and_then(char::from_u32);
    code.filter(|it| *it != '\0').or(Some(first))
}
