//! Code of other languages on the command line: `python -c "os.system('…')"`.
//!
//! Contains: the code that an interpreter receives, and the programs that the calls in it start, if their
//! arguments are literals or simple variables.
//! Does not contain: a parser of any language (a heuristic finds the calls), PowerShell (`powershell`).

use std::ops::Range;

use super::awk::is_awk;
use super::code_flow::{CallSite, CodeFlow};
use super::code_names::NameBindings;
use super::code_requests::{CLIENT, method, request_options};
use super::code_syntax::{arguments, literals, without_require};
use super::code_text::{UNKNOWN, path_text, shell_text, simplified};
use super::invocation::{Invocation, StandardInput, is_standard_input};
use super::powershell;
use super::program_database::{CodeCall, Interpreter};
use super::scanner::Scanner;
use super::shell_state::ShellState;
use super::shell_text::ShellText;
use super::wrappers::line;
use crate::glob::word_matches;

/// The subcommand of `deno` and `bun` before a file.
const RUNS: &str = "run";
/// The command of a call that lists files.
const LISTS: &str = "ls";
/// The command of a call that reads a file.
const PRINTS: &str = "cat";
/// The command of such a call if the file is an address.
const FETCHES: &str = "curl";
/// Commands of calls whose first argument is an address.
const CLIENTS: [&str; 5] = [FETCHES, "nc", "ftp", "sendmail", "ssh"];
/// Languages in which a call needs no brackets.
const BARE: [&str; 2] = ["perl", "ruby"];
/// Languages in which a text in backticks is a command.
const COMMANDS: [&str; 3] = ["perl", "ruby", "php"];
/// Modules whose functions start programs.
const MODULES: [&str; 5] = ["child_process", "subprocess", "os", "Kernel", "commands"];
/// Letters of options of interpreters that take the rest of their word: `perl -MEncode`.
const TAKES_REST: [char; 7] = ['M', 'm', 'I', 'r', 'W', 'X', 'l'];

/// Where the code of an interpreter comes from, if its text is not in the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CodeSource {
    /// The file that this argument names.
    Argument(usize),
    /// The output of these programs.
    Programs(Vec<usize>),
    /// The standard input.
    Input,
}

impl Scanner<'_> {
    /// Finds the code that an interpreter runs. Returns where it comes from, if it is not in the line.
    pub(super) fn find_code(
        &self,
        program: &mut Invocation,
        scope: &ShellState,
    ) -> Option<CodeSource> {
        let known = &self.context.knowledge.interpreters;
        let is_row = |it: &&Interpreter| word_matches(&it.program, &program.name);
        let row = known.named(&program.name).find(is_row)?;
        if powershell::is_one(&program.name)
            && let Some(code) = powershell::code(&program.args)
        {
            return given(program, code);
        }
        let mut words = program.args.iter().enumerate();
        while let Some((at, word)) = words.next() {
            let text = word.text.as_str();
            if let Some(value) = given_code(row, text) {
                let code = match value {
                    Some(at) => Some(word.tail(at)),
                    None => words.next().map(|it| it.1.clone()),
                };
                return given(program, code.unwrap_or_default());
            }
            // `python -m module`, `python -mmodule`
            let is_glued =
                |it: &String| it.len() == 2 && !it.ends_with('c') && text.starts_with(it.as_str());
            if row.other.iter().any(|it| it == text || is_glued(it)) {
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
                return Some(CodeSource::Programs(word.from.clone()));
            } else {
                return Some(CodeSource::Argument(at));
            }
            return None;
        }
        if row.first {
            return None;
        }
        match &program.input.text {
            Some(text) => program.code.clone_from(text),
            None => {
                program.runs_unknown = program.input.piped;
                return Some(CodeSource::Input);
            }
        }
        None
    }

    /// Runs the programs that a piece of code starts.
    pub(super) fn run_code(&mut self, program: &str, code: &str, scope: &mut ShellState) {
        if code.len() > self.text_max() {
            self.mark_over_limit("the code that it runs is too long");
            return;
        }
        if powershell::is_one(program) {
            let (text, starters) = (powershell::as_shell(code), vec![program.to_owned()]);
            self.run_text(starters, &text, &mut scope.clone(), &StandardInput::default());
            return;
        }
        if is_awk(program) {
            self.run_awk_targets(program, code, scope);
        }
        let simple = simplified(program, code);
        let Some(names) = NameBindings::of(program, &simple) else {
            self.mark_over_limit("its code has very many values, or deeply nested ones");
            return;
        };
        let code = &*without_require(&simple);
        let knowledge = self.context.knowledge;
        let fits =
            |only: &[String]| only.is_empty() || only.iter().any(|it| word_matches(it, program));
        let rows = || knowledge.calls.iter().filter(|it| fits(&it.only));
        let is_bare = BARE.iter().any(|it| program.starts_with(it));
        let listed = listed_folders(code, &names, rows().filter(|it| it.like == [LISTS]));
        let found: Vec<FoundCall<'_>> = rows()
            .filter(|it| it.like != [LISTS])
            .flat_map(|row| {
                let is_bare = is_bare && (row.like.is_empty() || row.like == [PRINTS]);
                let each = names.calls_of(&row.call);
                let each =
                    each.flat_map(|it| calls(code, &it, &names, is_bare)).collect::<Vec<_>>();
                each.into_iter().map(move |it| FoundCall { row, ..it })
            })
            .collect();
        let around = CodeAround { program, code, names: &names, listed: &listed };
        let mut programs = Vec::new();
        for call in &found {
            self.find_line(code, &call.arguments);
            let mut started = Vec::new();
            for arguments in names.put_in(&call.arguments) {
                if !self.spend_steps(arguments.iter().map(String::len).sum()) {
                    return;
                }
                started.extend(self.run_call(call, &arguments, &around, scope));
            }
            programs.push(started);
        }
        self.add_flow(&found, &programs, &around, scope);
    }

    /// Runs what one call in code is like, with values instead of names. Returns the indexes of the programs that print what it
    /// returns.
    fn run_call(
        &mut self,
        call: &FoundCall<'_>,
        arguments: &[String],
        around: &CodeAround<'_>,
        scope: &mut ShellState,
    ) -> Vec<usize> {
        let row = call.row;
        if row.code {
            return Vec::new();
        }
        if let Some(command) = opened_pipe(&row.call, arguments) {
            return self.scan_text(&command, &mut scope.clone(), &StandardInput::default()).from;
        }
        if let Some(path) = opened_to_write(&row.call, arguments) {
            let words = vec![ShellText::known("tee"), ShellText::known(path)];
            return self.run_words(words, around.program, scope).from;
        }
        if !row.like.is_empty() {
            let named = arguments.iter().filter(|it| !is_setting(it));
            let given = named.flat_map(|it| match path_text(it) {
                Some(path) => vec![path],
                None if around.listed.is_empty() => vec![ShellText::unknown(it.trim())],
                // It is probably one of the files that the code lists.
                None => around.listed.iter().map(ShellText::below).collect(),
            });
            let mut given: Vec<ShellText> = given.collect();
            if row.like.first().is_some_and(|it| it == CLIENT) {
                // `requests.request("DELETE", address)`
                let method = given.first().and_then(|it| method(&it.text));
                let mut options = request_options(arguments.iter().filter(|it| is_setting(it)));
                if let Some(method) = method {
                    given.remove(0);
                    options.extend(["-X", method.as_str()].map(ShellText::known));
                }
                given.splice(0..0, options);
            }
            let fetches = row.like == [PRINTS] && given.first().is_some_and(is_address);
            let like = row.like.iter().map(|it| if fetches { FETCHES } else { it.as_str() });
            let words = like.map(ShellText::known).chain(given).collect();
            return self.run_words(words, around.program, scope).from;
        }
        let Some(first) = arguments.first() else { return Vec::new() };
        let texts = literals(first);
        let rest = arguments.iter().skip(1).flat_map(|it| literals(it));
        let words: Vec<String> = match texts.as_slice() {
            [] => return Vec::new(),
            _ if is_list(first) => texts,
            // `spawn("rm", ["-rf", "/"])`, `execlp("rm", "rm", "-rf")`
            [one] if !one.contains(' ') => std::iter::once(one.clone()).chain(rest).collect(),
            _ => vec![],
        };
        let text = match words.as_slice() {
            [] => shell_text(first).unwrap_or_default(),
            words => line(words),
        };
        self.scan_text(&text, &mut scope.clone(), &StandardInput::default()).from
    }

    /// Records that the programs of a call receive what other calls return, and the code that it runs of it.
    fn add_flow(
        &mut self,
        found: &[FoundCall<'_>],
        programs: &[Vec<usize>],
        around: &CodeAround<'_>,
        scope: &ShellState,
    ) {
        if found.len() < 2 {
            return;
        }
        let sites: Vec<CallSite> = found.iter().map(|it| it.site(around)).collect();
        let Some(flow) = CodeFlow::of(around.program, around.code, &sites) else {
            self.mark_over_limit("its code passes data on too often");
            return;
        };
        for (call, ((own, sources), peers)) in
            found.iter().zip(programs.iter().zip(&flow.into).zip(&flow.peers))
        {
            let from = sources.iter().filter_map(|it| programs.get(*it)).flatten().copied();
            let from: Vec<usize> = from.collect();
            let peers = peers.iter().filter(|_| call.is_client());
            let peers: Vec<ShellText> = peers.flat_map(|it| around.words(it)).collect();
            for index in own {
                let Some(program) = self.call.programs.get_mut(*index) else { continue };
                program.fed_by.extend(from.iter().filter(|it| *it != index));
                program.args.extend(peers.iter().cloned());
            }
            if !from.is_empty() && self.runs_received(call, around) {
                let words = call.unknown_program(around.program);
                let by = vec![around.program.to_owned()];
                let program = self.build_invocation(&words, scope, &StandardInput::default(), by);
                self.add_program(Invocation { fed_by: from, runs_unknown: true, ..program });
            }
        }
    }

    /// Returns whether a call runs a text that is unknown from its start.
    fn runs_received(&self, call: &FoundCall<'_>, around: &CodeAround<'_>) -> bool {
        let Some(first) = call.arguments.first().filter(|_| call.row.like.is_empty()) else {
            return false;
        };
        let before = around.code.get(..call.at).unwrap_or_default();
        let owner = before.strip_suffix('.').map(|it| {
            it.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default()
        });
        let is_module = |it: &str| {
            MODULES.contains(&it) || around.names.imported.iter().any(|(_, known)| known == it)
        };
        if before.ends_with('$') || owner.is_some_and(|it| call.row.code || !is_module(it)) {
            return false;
        }
        // The output of a command.
        let has_commands = COMMANDS.iter().any(|it| around.program.starts_with(it));
        if has_commands && first.trim_start().starts_with('`') {
            return true;
        }
        let words: Vec<String> = call.arguments.iter().flat_map(|it| literals(it)).collect();
        let is_word = |it: &String| !it.contains(char::is_whitespace);
        let is_words =
            is_list(first) || (call.arguments.len() > 1 && words.first().is_some_and(is_word));
        if !is_words || !begins_with_literal(first.trim_start_matches([' ', '\n', '*', '[', '('])) {
            return begins_unknown(first);
        }
        let takes_text = |it: &String| matches!(it.as_str(), "-c" | "-ic" | "-lc" | "-e" | "/c");
        let shell = words.first().map(|it| ShellText::known(it.as_str()));
        shell.is_some_and(|it| self.is_shell(&it)) && words.iter().any(takes_text)
    }
}

/// Returns whether an expression begins with a literal.
fn begins_with_literal(expression: &str) -> bool {
    let text = expression.trim_start().trim_start_matches(['f', 'F', 'r', 'b', 'u']);
    text.starts_with(['"', '\'', '`'])
}

/// Returns whether the text that an expression builds is unknown from its start.
fn begins_unknown(expression: &str) -> bool {
    let is_unknown = |it: String| it.starts_with(UNKNOWN) || it.trim_start().starts_with('$');
    !begins_with_literal(expression) || shell_text(expression).is_some_and(is_unknown)
}

/// Returns whether an argument is a list.
fn is_list(argument: &str) -> bool {
    argument.trim_start_matches([' ', '*', '\n']).starts_with(['[', '('])
}

/// Returns whether a text is an address of another host.
fn is_address(text: &ShellText) -> bool {
    let scheme = text.known_part().split_once("://").map(|it| it.0);
    scheme.is_some_and(|it| it != "file" && it.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// A call that code contains.
#[derive(Debug)]
pub(super) struct FoundCall<'r> {
    row: &'r CodeCall,
    /// Where its name begins.
    at: usize,
    /// Where its arguments begin.
    inside: usize,
    pub(super) arguments: Vec<String>,
}

/// What the calls of a piece of code have in common.
#[derive(Debug)]
struct CodeAround<'a> {
    program: &'a str,
    code: &'a str,
    names: &'a NameBindings,
    listed: &'a [ShellText],
}

impl CodeAround<'_> {
    /// Returns the words that a part of the code contains, as literals or by names.
    fn words(&self, part: &Range<usize>) -> Vec<ShellText> {
        let text = self.code.get(part.clone()).unwrap_or_default();
        let named = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let named = named.flat_map(|it| self.names.values(it));
        let words = literals(text).into_iter().chain(named.flat_map(|it| literals(it)));
        let is_word = |it: &String| !it.is_empty() && !it.contains(char::is_whitespace);
        words.filter(is_word).map(ShellText::known).collect()
    }
}

impl FoundCall<'_> {
    /// Returns whether it is like a program that talks to another host.
    fn is_client(&self) -> bool {
        self.row.like.first().is_some_and(|it| CLIENTS.contains(&it.as_str()))
    }

    /// Returns the call as the flow of data needs it. What a program receives beside its words does not count.
    fn site(&self, around: &CodeAround<'_>) -> CallSite {
        let runs = self.row.like.is_empty();
        let counted = self.arguments.iter().take_while(|it| !(runs && is_setting(it)));
        let length: usize = counted.map(|it| it.len() + 1).sum();
        // The argument of a method is its object.
        let length = if self.row.call.starts_with('.') { 0 } else { length.saturating_sub(1) };
        CallSite {
            at: self.at,
            arguments: self.inside..self.inside + length,
            has_address: self.is_client(),
            fills: around.program.starts_with("perl") && self.row.call == "open",
        }
    }

    /// Returns the words of the program that runs the argument.
    fn unknown_program(&self, language: &str) -> Vec<ShellText> {
        let text = self.arguments.first().map(|it| it.trim()).unwrap_or_default();
        match self.row.code {
            true => {
                let call = format!("{}({text})", self.row.call);
                vec![ShellText::known(language), ShellText::unknown(call)]
            }
            false => vec![ShellText::known("sh"), ShellText::known("-c"), ShellText::unknown(text)],
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
fn given(program: &mut Invocation, code: ShellText) -> Option<CodeSource> {
    let unknown_start = code.known_part().trim().is_empty();
    program.runs_unknown |= !code.is_known() && (unknown_start || !code.from.is_empty());
    let from = (!code.is_known() && !code.from.is_empty()).then_some(code.from);
    program.code = code.text;
    from.map(CodeSource::Programs)
}

/// Returns the directories and patterns that code lists.
fn listed_folders<'r>(
    code: &str,
    names: &NameBindings,
    rows: impl Iterator<Item = &'r CodeCall>,
) -> Vec<ShellText> {
    let calls = rows
        .flat_map(|row| names.calls_of(&row.call).flat_map(|it| calls(code, &it, names, false)));
    let given = calls.flat_map(|it| names.put_in(&it.arguments));
    let folders = given.filter_map(|it| {
        let first = it.into_iter().next()?;
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

/// Returns the calls of a function, without their row. If `is_bare`, its arguments can be without brackets.
pub(super) fn calls(
    code: &str,
    name: &str,
    names: &NameBindings,
    is_bare: bool,
) -> Vec<FoundCall<'static>> {
    let mut found = Vec::new();
    let call = |at, inside, arguments| FoundCall { row: &NO_ROW, at, inside, arguments };
    if name == "`" {
        let mut at = 0;
        for (number, part) in code.split('`').enumerate() {
            let text = format!("\"{}\"", part.replace('"', "'"));
            found.extend((number % 2 == 1).then(|| call(at, at, vec![text])));
            at += part.len() + 1;
        }
        return found;
    }
    for (at, _) in code.match_indices(name) {
        let before = code.get(..at).and_then(|it| it.chars().next_back());
        let is_method = name.starts_with('.');
        if !is_method && before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let end = at + name.len();
        // For a method, the argument is the object before the dot.
        if is_method {
            let owner = code.get(..at).unwrap_or_default();
            let objects: Vec<&str> = match owner.strip_suffix(')') {
                Some(object) => object.rsplit_once('(').map(|(_, path)| path).into_iter().collect(),
                // A name without a known path, such as `os` in `os.unlink(x)`, is not an argument.
                None => {
                    let variable =
                        owner.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next();
                    let values = variable.map(|it| names.values(it)).unwrap_or_default();
                    values.iter().map(String::as_str).collect()
                }
            };
            found.extend(objects.iter().map(|it| call(at, end, vec![(*it).to_owned()])));
            continue;
        }
        let after = code.get(end..).unwrap_or_default();
        let rest = after.trim_start();
        let start = code.len() - rest.len();
        if let Some(inside) = rest.strip_prefix('(') {
            found.push(call(at, start + 1, arguments(inside)));
        } else if rest.len() < after.len()
            && (rest.starts_with(['"', '\'']) || is_bare && begins_value(rest))
        {
            found.push(call(at, start, arguments(rest))); // `system "…"` of Perl and Ruby.
        } else if name.contains("->") && after.starts_with("->") {
            found.push(call(at, end.saturating_sub(1), Vec::new())); // `Client->new->get(…)` of Perl.
        }
    }
    found
}

/// Returns whether a value may begin here, and not a block, an operator, or the rest of a sentence.
fn begins_value(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphanumeric() || "_$@[<".contains(c))
}

/// The row of a call before it is known.
static NO_ROW: CodeCall =
    CodeCall { call: String::new(), like: Vec::new(), only: Vec::new(), code: false };
