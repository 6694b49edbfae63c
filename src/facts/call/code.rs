//! Code that is given on the command line, `python -c "os.system('…')"`: the programs that its calls
//! would start, as far as their arguments are written out.

use super::super::glob::word_matches;
use super::known::Interpreter;
use super::scan::{Scanner, Scope};
use super::value::Text;
use super::wrap::line;
use super::{Input, Invocation};

/// Calls of one name that are followed.
const CALLS_MAX: usize = 16;

impl Scanner<'_> {
    /// What an interpreter runs.
    pub(super) fn interpret(&self, program: &mut Invocation, scope: &Scope) {
        let known = &self.reading.knowledge.interpreters;
        let Some(row) = known.iter().find(|it| word_matches(&it.program, &program.name)) else {
            return;
        };
        let mut words = program.args.iter();
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if let Some(value) = given_code(row, text) {
                let code = match value {
                    Some(at) => Some(word.tail(at)),
                    None => words.next().cloned(),
                };
                let code = code.unwrap_or_default();
                program.runs_unknown |= !code.from.is_empty() && !code.is_known();
                program.code = code.text;
                return;
            }
            if row.other.iter().any(|it| it == text) {
                return;
            }
            if text == "-" {
                break;
            }
            if text.starts_with('-') {
                continue;
            }
            if row.first {
                program.code.clone_from(&word.text);
                return;
            }
            // A script.
            let written = self.written_into(word, scope);
            if let Some(text) = written.as_ref().and_then(|it| it.text.clone()) {
                program.code = text;
            } else if word.pipe || written.is_some() {
                program.runs_unknown = true;
                program.fed_by.extend(written.into_iter().flat_map(|it| it.from));
            }
            return;
        }
        if row.first {
            return;
        }
        match &program.input.text {
            Some(text) => program.code.clone_from(text),
            None => program.runs_unknown = program.input.piped,
        }
    }

    /// What a piece of code would start.
    pub(super) fn code(&mut self, program: &str, code: &str, scope: &mut Scope) {
        let knowledge = self.reading.knowledge;
        let fits =
            |only: &[String]| only.is_empty() || only.iter().any(|it| word_matches(it, program));
        for row in knowledge.calls.iter().filter(|it| fits(&it.only)) {
            for arguments in calls(code, &row.call).into_iter().take(CALLS_MAX) {
                if let Some(path) = opened_to_write(&row.call, &arguments) {
                    self.words(vec![Text::known("tee"), Text::known(path)], program, scope);
                    continue;
                }
                if !row.like.is_empty() {
                    let like = row.like.iter().map(Text::known);
                    let given = arguments.iter().map(|it| match literals(it).into_iter().next() {
                        Some(text) => Text::known(text),
                        None => Text::unknown(it.trim()),
                    });
                    self.words(like.chain(given).collect(), program, scope);
                    continue;
                }
                let Some(first) = arguments.first() else { continue };
                let texts = literals(first);
                let is_list = first.trim_start().starts_with(['[', '(']);
                let rest = arguments.iter().skip(1).flat_map(|it| literals(it));
                let words: Vec<String> = match texts.as_slice() {
                    [] => continue,
                    _ if is_list => texts,
                    // `spawn("rm", ["-rf", "/"])`, `execlp("rm", "rm", "-rf")`
                    [one] if !one.contains(' ') => {
                        std::iter::once(one.clone()).chain(rest).collect()
                    }
                    [one, ..] => {
                        let mut inner = scope.clone();
                        self.text(one, &mut inner, &Input::default());
                        continue;
                    }
                };
                let mut inner = scope.clone();
                self.text(&line(&words), &mut inner, &Input::default());
            }
        }
    }
}

/// Whether an option of an interpreter gives code: then, where in the word it begins, or nothing where
/// it is the next word.
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
        let is_bundle = bundle.len() <= 4 && bundle.bytes().all(|b| b.is_ascii_alphabetic());
        if is_bundle && bundle.ends_with(letter) {
            return Some(None);
        }
        // `python3 -c'code'`.
        let glued = text.strip_prefix(option.as_str()).filter(|it| it.contains(['(', ' ', ';']));
        glued.map(|_| Some(option.len()))
    })
}

/// The file that `open(path, "w")` or Perl's `open(F, ">", path)` makes or changes; nothing where it is
/// only read.
fn opened_to_write(call: &str, arguments: &[String]) -> Option<String> {
    if call != "open" {
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

/// The arguments of each call of a name in a piece of code.
fn calls(code: &str, name: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    if name == "`" {
        let parts: Vec<&str> = code.split('`').collect();
        let inside = parts.iter().skip(1).step_by(2);
        return inside.map(|it| vec![format!("\"{}\"", it.replace('"', "'"))]).collect();
    }
    for (at, _) in code.match_indices(name) {
        let before = code.get(..at).and_then(|it| it.chars().next_back());
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        // What a method is called on stands before it.
        if name.starts_with('.') {
            let object = code.get(..at).and_then(|it| it.strip_suffix(')'));
            let inside = object.and_then(|it| it.rsplit_once('('));
            found.extend(inside.map(|(_, path)| vec![path.to_owned()]));
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

/// The arguments up to the parenthesis that closes.
fn arguments(text: &str) -> Vec<String> {
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

/// The texts in quotes that stand in a piece of code.
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
                '\\' => text.extend(chars.next()),
                next if next == c => break,
                next => text.push(next),
            }
        }
        found.push(text);
    }
    found
}
