//! Programs that a command line starts without naming them as the first word of a command.
//!
//! Contains: names that are file name patterns (`/bin/r?`), programs after a program that the vocabulary does not
//! list (`linux64 rm`), escapes of interactive clients (`.shell rm`), options and variables whose value is a command
//! (`PAGER='rm x' man ls`), and programs that read a pipe (`tee >(sh)`).
//! Does not contain: wrappers that the vocabulary lists (`wrappers`), options that it lists (`shell_values`).

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::invocation::{Invocation, StandardInput};
use super::paths::{could_be_named, is_wild, letters};
use super::scanner::Scanner;
use super::shell_state::ShellState;
use super::shell_text::ShellText;
use super::simple_command::SimpleCommand;
use crate::glob::word_matches;
use crate::shell::{base_name, is_assignment, node_text};

/// Programs whose operands are names, and whose options have commands as values.
const NAMES_ONLY: &[&str] = &["man"];
/// Names of programs that are usual subcommands of other programs. After an unlisted program, they are subcommands unless
/// they are written with a directory.
const SUBCOMMANDS: &[&str] = &[
    "adduser", "at", "batch", "code", "copy", "cut", "date", "del", "diff", "edit", "env", "erase",
    "exec", "groupmod", "halt", "init", "install", "join", "link", "move", "open", "passwd",
    "patch", "paste", "reboot", "screen", "script", "shutdown", "sort", "source", "split", "ssh",
    "time", "touch", "type", "useradd", "userdel", "usermod", "view", "watch",
];
/// Texts with which a client passes the rest of a line to a shell.
const ESCAPES: &[&str] = &[
    "\\!",
    ":!",
    "!",
    ".shell ",
    ".system ",
    "shell ",
    "system ",
    "platform shell ",
    "r !",
    "w !",
    "e !",
    ":r !",
    ":w !",
    "\\o |",
    "\\g |",
    ".output |",
    ".once |",
    ".import |",
];
/// Texts within an argument that pass what follows to a shell.
const CALLS: &[&str] = &[
    "program '",
    "PROGRAM '",
    "execute(",
    "execute-silent(",
    "become(",
    "reload(",
    "EXEC:",
    "SYSTEM:",
];
/// Beginnings of the value of a variable that is a command: `LESSOPEN='|rm x'`.
const PIPES: &[&str] = &["||-", "||", "|-", "|", "-|", "!"];
/// Directories in which a shell finds programs.
const PROGRAM_FOLDERS: &[&str] = &["bin/", "sbin/"];
/// Beginning of a process substitution that reads from a pipe.
pub(super) const OUTPUT_PIPE: &str = ">(";

impl Scanner<'_> {
    /// Scans the programs that a command starts in a way that the vocabulary does not list.
    pub(super) fn scan_hidden(
        &mut self,
        program: &Invocation,
        scope: &ShellState,
        input: &StandardInput,
    ) {
        if program.called.glob {
            self.scan_candidates(program, scope, input);
        }
        let name = program.name.as_str();
        let takes_prose = self.context.knowledge.prose_programs.iter().any(|it| it == name);
        if name.is_empty() || (takes_prose && !NAMES_ONLY.contains(&name)) {
            return;
        }
        self.scan_command_values(program, scope);
        if takes_prose {
            return;
        }
        self.scan_escapes(program, scope);
        if !self.is_listed(name) {
            self.scan_started(program, scope, input);
        }
    }

    /// Runs each listed program that a file name pattern could be.
    fn scan_candidates(&mut self, program: &Invocation, scope: &ShellState, input: &StandardInput) {
        let Some(pattern) = program.called.all() else { return };
        let name = base_name(pattern);
        let folder = pattern.strip_suffix(name).unwrap_or_default();
        let is_program_folder = PROGRAM_FOLDERS.iter().any(|it| folder.ends_with(it));
        if !is_wild(name) || (letters(name) == 0 && !is_program_folder) {
            return;
        }
        let listed = &self.context.knowledge.listed;
        let names = listed.names().map(|it| it.trim_end_matches('*'));
        let names: BTreeSet<String> = names
            .filter(|it| !it.is_empty() && could_be_named(name, it))
            .map(|it| format!("{folder}{it}"))
            .collect();
        for name in names {
            let called = ShellText::known(name);
            let words = std::iter::once(called).chain(program.args.iter().cloned()).collect();
            self.run_hidden(words, program, scope, input);
        }
    }

    /// Runs the arguments of a program from the first one that is the name of a listed program on.
    fn scan_started(&mut self, program: &Invocation, scope: &ShellState, input: &StandardInput) {
        let is_program = |it: &ShellText| {
            let text = it.all().filter(|it| !SUBCOMMANDS.contains(it));
            text.is_some_and(|text| self.names_program(text))
        };
        let Some(at) = program.args.iter().position(is_program) else { return };
        let mut words: Vec<ShellText> = program.args.iter().skip(at).cloned().collect();
        // `start-stop-daemon --exec /bin/rm -- -rf x`
        if words.get(1).is_some_and(|it| it.text == "--") {
            words.remove(1);
        }
        if words.len() > 1 {
            let before = self.call.programs.len();
            self.run_hidden(words, program, scope, input);
            self.call.programs.iter_mut().skip(before).for_each(|it| it.guessed = true);
        }
    }

    /// Returns whether an argument is the name of a listed program, alone or in a directory of
    /// programs.
    pub(super) fn names_program(&self, text: &str) -> bool {
        let base = base_name(text);
        let folder = text.strip_suffix(base).unwrap_or_default();
        let name = base.strip_suffix(".exe").unwrap_or(base);
        let is_place = folder.is_empty() || PROGRAM_FOLDERS.iter().any(|it| folder.ends_with(it));
        is_place && !text.starts_with('-') && self.is_listed(name)
    }

    /// Scans the lines of texts that a client passes to a shell.
    fn scan_escapes(&mut self, program: &Invocation, scope: &ShellState) {
        let args = program.args.iter().filter_map(ShellText::all);
        let texts = args.chain(program.input.text.as_deref());
        let lines = texts.flat_map(str::lines).map(str::trim);
        let commands = lines.filter_map(|line| {
            // `less +!cmd`
            let line = line.trim_start_matches('+');
            let rest = ESCAPES.iter().find_map(|it| line.strip_prefix(it));
            let within = || CALLS.iter().find_map(|it| line.split_once(it)).map(|it| it.1);
            let rest = rest.or_else(within)?;
            Some(rest.trim_end_matches(['\'', '"', ';', ')']).trim().to_owned())
        });
        let commands: Vec<String> = commands.filter(|it| self.is_command(it)).collect();
        commands.iter().for_each(|it| self.scan_hidden_text(it, scope));
    }

    /// Scans the values of options that begin with a listed program and an option, a path or a
    /// command of policyd: `zip -TT 'rm -rf x'`.
    fn scan_command_values(&mut self, program: &Invocation, scope: &ShellState) {
        let mut commands = Vec::new();
        let mut before = "";
        for text in program.args.iter().filter_map(ShellText::all) {
            let value = match text.split_once('=') {
                Some((option, value)) if option.starts_with('-') || is_assignment(text) => value,
                // Behind `--`, a known program has operands.
                _ if before.starts_with('-')
                    && !(before == "--" && self.is_listed(&program.name)) =>
                {
                    text
                }
                _ => "",
            };
            before = text;
            let second = value.split_whitespace().nth(1).unwrap_or_default();
            let is_used =
                second.starts_with(['-', '/', '~', '.', '$']) || value.starts_with("policyd ");
            if is_used && self.is_command(value) {
                commands.push(value.to_owned());
            }
        }
        commands.iter().for_each(|it| self.scan_hidden_text(it, scope));
    }

    /// Records a variable that programs receive, and scans its value.
    pub(super) fn set_variable(&mut self, name: &str, value: &ShellText, scope: &ShellState) {
        self.scan_variable(value, scope);
        self.call.variables.insert(name.to_owned(), value.clone());
    }

    /// Scans the value of a variable that a program receives, if the value is a command or contains
    /// a substitution.
    fn scan_variable(&mut self, value: &ShellText, scope: &ShellState) {
        let Some(text) = value.all() else { return };
        let text = text.trim();
        let command = PIPES.iter().find_map(|it| text.strip_prefix(it)).unwrap_or(text).trim();
        if self.is_command(command) {
            self.scan_hidden_text(command, scope);
        } else if text.contains("$(") || text.contains('`') {
            self.scan_hidden_text(&format!(": {text}"), scope);
        }
    }

    fn scan_hidden_text(&mut self, text: &str, scope: &ShellState) {
        if self.spend_steps(text.len()) {
            self.scan_text(text, &mut scope.clone(), &StandardInput::default());
        }
    }

    fn run_hidden(
        &mut self,
        words: Vec<ShellText>,
        program: &Invocation,
        scope: &ShellState,
        input: &StandardInput,
    ) {
        if !self.spend_steps(words.iter().map(|it| it.text.len()).sum()) {
            return;
        }
        let mut wrappers = program.wrappers.clone();
        wrappers.extend(Some(program.name.clone()).filter(|it| !it.is_empty()));
        let simple = SimpleCommand { words, wrappers, ..SimpleCommand::default() };
        self.run_simple(simple, &mut scope.clone(), input);
    }

    /// Returns whether a text begins with the name of a listed program and has another word.
    fn is_command(&self, text: &str) -> bool {
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        words.next().is_some() && self.names_program(first)
    }

    /// Returns whether the vocabulary or a guard lists a program.
    fn is_listed(&self, name: &str) -> bool {
        let listed = &self.context.knowledge.listed;
        listed.has(name, |pattern| pattern != "*" && word_matches(pattern, name))
    }
}

impl Scanner<'_> {
    /// Evaluates `>(…)`. The result comes from the programs that read the pipe.
    pub(super) fn expand_consumer(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &ShellState,
    ) -> ShellText {
        let before = self.call.programs.len();
        let input = StandardInput { piped: true, ..StandardInput::default() };
        let around = self.functions.enter(node, source);
        self.scan_sequence(node, source, &mut scope.clone(), &input);
        self.functions.leave(around);
        let from = (before..self.call.programs.len()).collect();
        ShellText { from, ..ShellText::unknown(node_text(node, source)) }
    }

    /// Records that the programs of `>(…)` receive the output of a program.
    pub(super) fn feed_consumers(&mut self, at: usize) {
        let own = self.call.programs.get(at);
        let words = own.into_iter().flat_map(|it| it.args.iter().chain(&it.writes));
        let pipes = words.filter(|it| it.pipe && it.text.starts_with(OUTPUT_PIPE));
        for consumer in pipes.flat_map(|it| it.from.clone()).collect::<Vec<_>>() {
            if let Some(consumer) = self.call.programs.get_mut(consumer) {
                consumer.fed_by.push(at);
            }
        }
    }
}

/// Characters that separate commands.
pub(super) const SEPARATORS: [char; 4] = [';', '&', '|', '\n'];

/// Returns whether an error of the grammar is the start of a file name pattern.
pub(super) fn begins_pattern(error: &str) -> bool {
    let is_part =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '[' | ']' | '?' | '*' | '-');
    error.chars().all(is_part) && error.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns the command whose first word the grammar parsed as an error, because it is a file name pattern: `r[m] x`,
/// `p?l x`.
pub(super) fn broken_words<'t>(error: Node<'_>, source: &'t str) -> Option<&'t str> {
    let start = source.get(error.byte_range())?;
    let next = error.next_sibling().filter(|it| it.is_named());
    let end = next.map_or(error.end_byte(), |it| it.end_byte());
    let gap = source.get(error.end_byte()..next.map_or(end, |it| it.start_byte()))?;
    let whole = source
        .get(error.start_byte()..if gap.trim().is_empty() { end } else { error.end_byte() })?;
    let first = whole.split_whitespace().next()?;
    let begins = start.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let is_line = !start.contains(SEPARATORS) && !gap.contains('\n');
    (begins && is_line && is_wild(first)).then_some(whole)
}
