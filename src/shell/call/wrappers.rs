//! Simple commands and the wrappers around them: `sudo`, `env`, `sh -c`, `xargs`, `find -exec`.
//!
//! Contains: the loop that removes wrappers until a program is left, shells that read text, programs that start
//! another program for each item, and options whose value is shell text.
//! Does not contain: the generic recognition of one wrapper (`facts::shell`), the program itself (`programs`).

use super::compose::is_composer;
use super::find::{file_below, find_names, find_roots};
use super::invocation::{Invocation, StandardInput, is_standard_input};
use super::program_database::ShellValue;
use super::scanner::Scanner;
use super::scripts::ScriptKind;
use super::shell_output::ShellOutput;
use super::shell_state::{MANY_VALUES, ShellState, WorkingFolder};
use super::shell_text::ShellText;
use super::simple_command::{Redirects, SimpleCommand};
use crate::glob::word_matches;
use crate::limits::SHELL_DEPTH_MAX;
use crate::pattern::CommandPattern;
use crate::shell::{
    COPROCESS, ShellWord, UnwrapResult, called_name, is_assignment, is_keyword, quote,
    unwrap_command,
};
use policyd_yaml::rows::Rows;

/// The command that is left after one wrapper was removed.
enum UnwrapStep {
    /// Words to unwrap again.
    Command(Vec<ShellText>),
    /// Nothing is left: the output of the command.
    Done(ShellOutput),
    /// Words that run in another directory. `None` if the directory is unknown.
    There(Option<String>, Vec<ShellText>),
}

impl Scanner<'_> {
    /// Runs a simple command.
    pub(super) fn run_simple(
        &mut self,
        simple: SimpleCommand,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> ShellOutput {
        if !self.enter() {
            return ShellOutput::default();
        }
        let is_coprocess = simple.words.first().is_some_and(|it| it.text == COPROCESS);
        let output = match is_coprocess && simple.words.len() > 1 {
            true => self.run_coprocess(simple, scope, input),
            false => self.run_entered(simple, scope, input),
        };
        self.leave();
        output
    }

    /// Runs a command in the background whose standard input is a pipe: `coproc bash`. Later commands write to it.
    fn run_coprocess(
        &mut self,
        mut simple: SimpleCommand,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> ShellOutput {
        let keyword = simple.words.remove(0);
        self.keep_wrapper(&[keyword], &mut simple.wrappers, scope, input);
        let before = self.call.programs.len();
        let piped = StandardInput { piped: true, ..StandardInput::default() };
        let output = self.run_entered(simple, scope, &piped);
        let readers = (before..self.call.programs.len()).collect();
        scope.descriptors.insert("COPROC".to_owned(), readers);
        output
    }

    fn run_entered(
        &mut self,
        simple: SimpleCommand,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> ShellOutput {
        let SimpleCommand { mut words, variables, redirects, mut wrappers } = simple;
        if words.is_empty() {
            scope.variables.extend(variables);
            return self.redirect_output(redirects, ShellOutput::empty(), scope);
        }
        if !variables.is_empty() {
            let simple = SimpleCommand::new(words, redirects, wrappers);
            return self.run_with_variables(variables, simple, scope, input);
        }
        for _ in 0..SHELL_DEPTH_MAX * 2 {
            // A program that a wrapper starts is usually not a function of the shell.
            let is_own = wrappers.iter().all(|it| is_keyword(it));
            let around = self.functions.enter_process_if(wrappers.iter().any(|it| it == COPROCESS));
            let called = self.call_function(&words, is_own, scope, input);
            self.functions.leave(around);
            if let Some(output) = called {
                return self.redirect_output(redirects, output, scope);
            }
            if let Some(inner) = self.expand_git_alias(&words, scope) {
                words = inner;
                continue;
            }
            let all = words.clone();
            self.scan_shell_values(&all, scope);
            match self.unwrap_words(words, scope, input) {
                UnwrapResult::Command(inner) => {
                    match self.run_wrapped(&all, inner, &mut wrappers, scope, input) {
                        UnwrapStep::Command(inner) => words = inner,
                        UnwrapStep::Done(output) => {
                            return self.redirect_output(redirects, output, scope);
                        }
                        UnwrapStep::There(folder, words) => {
                            let simple = SimpleCommand::new(words, redirects, wrappers);
                            let folder = WorkingFolder::certain(folder);
                            let mut there = ShellState { folder, ..scope.clone() };
                            let output = self.run_simple(simple, &mut there, input);
                            scope.files = there.files;
                            return output;
                        }
                    }
                }
                UnwrapResult::Shell(text) => {
                    self.keep_wrapper(&all, &mut wrappers, scope, input);
                    let output = self.run_shell_text(&all, text, scope, input, wrappers);
                    return self.redirect_output(redirects, output, scope);
                }
                UnwrapResult::ShellInput(program) => {
                    let simple = SimpleCommand::new(program, redirects, wrappers);
                    return self.run_shell_input(simple, scope, input);
                }
                UnwrapResult::Program(program) => {
                    let simple = SimpleCommand::new(program, redirects, wrappers);
                    return self.start_program(simple, scope, input);
                }
                UnwrapResult::Find(program, actions) => {
                    let roots = self.find_folders(&program, scope);
                    let names = find_names(&program);
                    let simple = SimpleCommand::new(program, redirects, wrappers);
                    let output = self.start_program(simple, scope, input);
                    for action in actions {
                        self.run_for_each(&action, &roots, &names, scope);
                    }
                    return output;
                }
            }
        }
        self.mark_over_limit("it is wrapped too often");
        ShellOutput::default()
    }

    /// Runs a simple command with variables: `A=b command`.
    fn run_with_variables(
        &mut self,
        mut variables: Vec<(String, Vec<ShellText>)>,
        simple: SimpleCommand,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> ShellOutput {
        for (name, values) in &variables {
            values.first().into_iter().for_each(|it| self.set_variable(name, it, scope));
        }
        let exported = scope.exported.clone();
        scope.exported.extend(variables.iter().map(|it| it.0.clone()));
        scope.swap(&mut variables);
        let output = self.run_simple(simple, scope, input);
        scope.swap(&mut variables);
        scope.exported = exported;
        output
    }

    /// Removes one wrapper. A file that the line wrote may not be a shell, whatever its name is
    /// (`curl -o bash host && ./bash`); therefore it is also started as a program.
    fn unwrap_words(
        &mut self,
        words: Vec<ShellText>,
        scope: &ShellState,
        input: &StandardInput,
    ) -> UnwrapResult<ShellText> {
        let was_written =
            |it: &&ShellText| it.text.contains('/') && self.known_content(it, scope).is_some();
        let written = words.first().filter(was_written).map(|_| words.clone());
        let meant = unwrap_command(words, self.context.lens);
        let is_program = matches!(meant, UnwrapResult::Program(_) | UnwrapResult::Find(..));
        if let Some(words) = written.filter(|_| !is_program) {
            let simple = SimpleCommand { words, ..SimpleCommand::default() };
            self.start_program(simple, &mut scope.clone(), input);
        }
        meant
    }

    /// Records a removed wrapper. A kept wrapper (such as `sudo`) is also added as a program.
    fn keep_wrapper(
        &mut self,
        taken: &[ShellText],
        wrappers: &mut Vec<String>,
        scope: &mut ShellState,
        input: &StandardInput,
    ) {
        if taken.first().is_some_and(|it| self.is_kept(it)) {
            let own = self.build_invocation(taken, scope, input, wrappers.clone());
            self.add_program(own);
        }
        if let Some(name) = taken.first().map(|it| called_name(&it.text).to_owned()) {
            let is_plain = self.is_plain(&name, taken);
            self.call
                .wrappers
                .entry(name.clone())
                .and_modify(|it| *it &= is_plain)
                .or_insert(is_plain);
            wrappers.push(name);
        }
    }

    /// Returns whether a wrapper changes neither what its program does nor its rights.
    fn is_plain(&self, name: &str, taken: &[ShellText]) -> bool {
        let words: Option<Vec<&str>> = taken.iter().map(ShellText::all).collect();
        let mut rows = self.context.lens.wrappers().named(name);
        is_keyword(name) || words.is_some_and(|words| rows.any(|it| it.is_plain(&words)))
    }

    /// Runs the command that is left after a wrapper was removed.
    fn run_wrapped(
        &mut self,
        all: &[ShellText],
        inner: Vec<ShellText>,
        wrappers: &mut Vec<String>,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> UnwrapStep {
        let taken = all.get(..all.len().saturating_sub(inner.len())).unwrap_or_default();
        self.keep_wrapper(taken, wrappers, scope, input);
        if is_composer(taken) {
            let whole = self.build_invocation(all, scope, input, wrappers.clone());
            self.run_composed(&whole, scope);
        }
        self.record_variables(taken, scope);
        if let Some(folder) = self.wrapper_folder(taken, scope) {
            return UnwrapStep::There(folder, inner);
        }
        if taken.first().is_some_and(|it| self.is_shell(it)) {
            return UnwrapStep::Done(self.run_script(taken, inner, scope, input, wrappers.clone()));
        }
        let mut each = self.commands_for_input(taken, inner, input);
        if each.len() == 1 && each.first().is_some_and(|it| !holds_text(it)) {
            return UnwrapStep::Command(each.pop().unwrap_or_default());
        }
        let mut output = ShellOutput::empty();
        for words in each {
            if !self.spend_steps(words.iter().map(|it| it.text.len()).sum()) {
                break;
            }
            let mut inner = scope.clone();
            let wrappers = wrappers.clone();
            let own = match holds_text(&words) {
                true => {
                    let text = <ShellText as ShellWord>::joined(&words);
                    self.run_shell_text(all, text, &mut inner, input, wrappers)
                }
                false => {
                    let simple = SimpleCommand { words, wrappers, ..SimpleCommand::default() };
                    self.run_simple(simple, &mut inner, &StandardInput::default())
                }
            };
            output = output.then(own);
            scope.files = inner.files;
        }
        UnwrapStep::Done(output)
    }

    /// Records the variables that a wrapper sets: `env A=b`.
    fn record_variables(&mut self, taken: &[ShellText], scope: &ShellState) {
        for word in taken.iter().filter(|it| is_assignment(&it.text)) {
            if let Some((name, _)) = word.text.split_once('=') {
                let value = word.tail(name.len().saturating_add(1));
                self.set_variable(name, &value, scope);
            }
        }
    }

    /// Returns the directory in which a wrapper runs its command: `env -C directory`. The outer
    /// `None` means that the wrapper does not change it.
    fn wrapper_folder(&self, taken: &[ShellText], scope: &ShellState) -> Option<Option<String>> {
        let wrappers = self.context.lens.wrappers();
        let name = taken.first().map(|it| called_name(&it.text)).unwrap_or_default();
        let rows = wrappers.named(name).filter(|it| it.command == name);
        let program = Invocation { args: taken.to_vec(), ..Invocation::default() };
        let folder =
            rows.flat_map(|it| &it.folder_options).flat_map(|it| program.values(it)).next();
        folder.map(|it| self.resolve_path(&it, scope).absolute)
    }

    /// Returns whether a wrapper has effects of its own.
    fn is_kept(&self, word: &ShellText) -> bool {
        let (wrappers, name) = (self.context.lens.wrappers(), called_name(&word.text));
        wrappers.named(name).any(|it| it.kept && word_matches(&it.command, name))
    }

    pub(super) fn is_shell(&self, word: &ShellText) -> bool {
        let wrappers = self.context.lens.wrappers();
        let name = called_name(&word.text);
        name != "env"
            && wrappers
                .named(name)
                .any(|it| !it.shell_option.is_empty() && word_matches(&it.command, name))
    }

    /// Runs shell text that is an argument.
    fn run_shell_text(
        &mut self,
        words: &[ShellText],
        text: ShellText,
        scope: &mut ShellState,
        input: &StandardInput,
        wrappers: Vec<String>,
    ) -> ShellOutput {
        let name = words.first().map(|it| called_name(&it.text)).unwrap_or_default();
        let (here, text) = (name == "eval", readable(text));
        if here && !text.is_known() {
            scope.forget_empty();
        }
        let unknown_start = text.known_part().trim().is_empty();
        if !text.is_known() && (unknown_start || !text.from.is_empty()) {
            let program = Invocation {
                fed_by: text.from.clone(),
                runs_unknown: true,
                ..self.build_invocation(words, scope, input, wrappers.clone())
            };
            self.add_program(program);
            self.run_printed(&text.from, &ScriptKind::Shell, scope);
        }
        if unknown_start && !text.from.is_empty() {
            return ShellOutput::default();
        }
        let before = std::mem::replace(&mut self.as_written, !text.is_known());
        if here {
            let output = self.run_text(wrappers, &text.text, scope, input);
            self.as_written = before;
            return output;
        }
        let at = words.iter().position(|it| it.text == text.text).unwrap_or(words.len());
        let mut inner = ShellState {
            // In `sh -c text name args`, the word after the text is `$0`.
            parameters: Some(words.iter().skip(at.saturating_add(2)).cloned().collect()),
            ..scope.of_a_process()
        };
        let own_name = words.get(at.saturating_add(1)).cloned();
        inner.variables.extend(own_name.map(|it| ("0".to_owned(), vec![it])));
        let output = self.run_text(wrappers, &text.text, &mut inner, input);
        self.as_written = before;
        scope.files = inner.files;
        output
    }

    /// Runs shell text that the given programs start.
    pub(super) fn run_text(
        &mut self,
        starters: Vec<String>,
        text: &str,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> ShellOutput {
        let before = self.starters.len();
        let is_other = starters.last().is_none_or(|it| it != "eval");
        self.starters.extend(starters);
        let around = self.functions.enter_process_if(is_other);
        let output = self.scan_text(text, scope, input);
        self.functions.leave(around);
        self.starters.truncate(before);
        output
    }

    /// Runs a shell that reads its commands from standard input.
    fn run_shell_input(
        &mut self,
        simple: SimpleCommand,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> ShellOutput {
        let given = simple.redirects.input.as_ref().unwrap_or(input);
        if let Some(text) = given.text.clone() {
            // The first command is the value of a variable or the output of another program.
            if given.as_written && text.trim_start().starts_with(['$', '`']) {
                let program =
                    self.build_invocation(&simple.words, scope, given, simple.wrappers.clone());
                self.add_program(Invocation { runs_unknown: true, ..program });
            }
            let mut inner = scope.of_a_process();
            let shell = simple.words.first().map(|it| called_name(&it.text).to_owned());
            let starters = simple.wrappers.iter().cloned().chain(shell).collect();
            let before = std::mem::replace(&mut self.as_written, given.as_written);
            let output = self.run_text(starters, &text, &mut inner, &StandardInput::default());
            self.as_written = before;
            scope.files = inner.files;
            return self.redirect_output(simple.redirects, output, scope);
        }
        let (runs_unknown, given) = (given.piped, given.clone());
        let SimpleCommand { words, redirects, wrappers, .. } = simple;
        for file in self.printed_files(&given).iter().chain(&redirects.reads) {
            self.run_file(file, ScriptKind::Shell, &[], scope);
        }
        let program =
            Invocation { runs_unknown, ..self.build_invocation(&words, scope, &given, wrappers) };
        self.finish_program(program, redirects, scope)
    }

    /// Runs a shell that reads a script file.
    fn run_script(
        &mut self,
        shell: &[ShellText],
        words: Vec<ShellText>,
        scope: &mut ShellState,
        input: &StandardInput,
        wrappers: Vec<String>,
    ) -> ShellOutput {
        let Some((file, args)) = words.split_first() else { return ShellOutput::default() };
        let reads_input = shell.iter().any(|it| it.text == "-s") || is_standard_input(&file.text);
        if reads_input {
            let words = shell.iter().chain(&words).cloned().collect();
            let simple = SimpleCommand { words, wrappers, ..SimpleCommand::default() };
            return self.run_shell_input(simple, scope, input);
        }
        let known = self.known_content(file, scope).and_then(|it| it.text);
        if let Some(text) = known.or_else(|| file.piped.clone()) {
            let mut inner = ShellState { parameters: Some(args.to_vec()), ..scope.of_a_process() };
            return self.run_text(wrappers, &text, &mut inner, input);
        }
        let written = self.known_content(file, scope);
        let all: Vec<ShellText> = shell.iter().chain(&words).cloned().collect();
        let mut program = self.build_invocation(&words, scope, input, wrappers.clone());
        if file.pipe || written.is_some() {
            self.run_file(file, ScriptKind::Shell, args, scope);
            self.run_printed(&file.from, &ScriptKind::Shell, scope);
            program = self.build_invocation(&all, scope, input, wrappers);
            program.runs_unknown = true;
            program.fed_by.extend(written.into_iter().flat_map(|it| it.from));
        } else {
            self.run_file(file, ScriptKind::Shell, args, scope);
        }
        self.finish_program(program, Redirects::default(), scope)
    }

    /// Runs words that code of another language starts as a program.
    pub(super) fn run_words(
        &mut self,
        words: Vec<ShellText>,
        by: &str,
        scope: &mut ShellState,
    ) -> ShellOutput {
        let simple =
            SimpleCommand { words, wrappers: vec![by.to_owned()], ..SimpleCommand::default() };
        self.run_simple(simple, scope, &StandardInput::default())
    }
}

/// Returns whether words are shell text (`watch 'rm -rf /'`): the name of a program contains no
/// blanks.
fn holds_text(words: &[ShellText]) -> bool {
    words.first().is_some_and(|it| it.text.contains(char::is_whitespace))
}

/// Joins words to a command line.
#[must_use]
pub(super) fn line(words: &[String]) -> String {
    words.iter().map(|it| quote(it)).collect::<Vec<_>>().join(" ")
}

/// Runs each line of its input as a command if it has no program.
const PARALLEL: &str = "parallel";
/// Wrappers that append their input to the words of their command.
const FROM_INPUT: [&str; 2] = ["xargs", PARALLEL];
/// Precedes the literal values of `parallel`.
const LISTED: &str = ":::";
/// Represents unknown input. A shell would parse the parentheses, see [`readable`].
const STANDARD_INPUT: &str = "(standard input)";
/// Maximum number of words or lines of one input that are followed. The rest is one unknown value.
pub(super) const INPUT_VALUES_MAX: usize = 32;

impl Scanner<'_> {
    /// Returns the commands that a wrapper starts for its input. With a placeholder, and for
    /// `parallel`, there is one command for each line; otherwise there is one command with all
    /// words. For other wrappers it is the wrapped command.
    pub(super) fn commands_for_input(
        &self,
        taken: &[ShellText],
        mut words: Vec<ShellText>,
        input: &StandardInput,
    ) -> Vec<Vec<ShellText>> {
        let wrapper = taken.first().map(|it| called_name(&it.text)).unwrap_or_default();
        if !FROM_INPUT.contains(&wrapper) {
            return vec![words];
        }
        let is_parallel = wrapper == PARALLEL;
        let listed = words.iter().position(|it| is_parallel && it.text == LISTED);
        let listed = listed.map(|at| words.split_off(at));
        let mark = mark_of(taken).or_else(|| is_parallel.then(|| "{}".to_owned()));
        let is_named = |mark: &String| words.iter().any(|it| it.text.contains(mark.as_str()));
        // `xargs -I X` adds nothing to a command without `X`.
        if !is_parallel && mark.as_ref().is_some_and(|it| !is_named(it)) {
            return vec![words];
        }
        let mark = mark.filter(is_named);
        let one_each = mark.is_some() || is_parallel;
        let mut read: Vec<ShellText> = match (listed, &input.text, input.files.as_slice()) {
            (Some(listed), ..) => listed.into_iter().filter(|it| it.text != LISTED).collect(),
            (None, Some(text), _) => {
                let lines = one_each || splits_lines(taken);
                let pieces: Vec<&str> = match lines {
                    true => text.lines().filter(|it| !it.trim().is_empty()).collect(),
                    false => text.split_whitespace().collect(),
                };
                let known = |it| ShellText {
                    glob: false,
                    from: input.from.clone(),
                    ..ShellText::known(it)
                };
                pieces.into_iter().map(known).collect()
            }
            (None, None, []) => {
                vec![ShellText { from: input.from.clone(), ..ShellText::unknown(STANDARD_INPUT) }]
            }
            (None, None, files) => files.to_vec(),
        };
        if read.len() > INPUT_VALUES_MAX {
            read.truncate(INPUT_VALUES_MAX);
            read.push(ShellText::unknown(MANY_VALUES));
        }
        if !one_each {
            words.extend(read);
            return vec![words];
        }
        let line = |value: ShellText| match &mark {
            Some(mark) => words.iter().map(|it| put(it, mark, &value)).collect(),
            None => words.iter().cloned().chain([value]).collect(),
        };
        read.into_iter().map(line).collect()
    }

    /// Returns whether a program runs each line of its input, as `parallel` does without a program.
    pub(super) fn starts_lines(&self, program: &[ShellText]) -> bool {
        let named = program.split_first().filter(|it| called_name(&it.0.text) == PARALLEL);
        let Some((_, args)) = named else { return false };
        let rows = self.context.lens.wrappers();
        let Some(row) = rows.named(PARALLEL).find(|it| it.command == PARALLEL) else {
            return false;
        };
        let mut args = args.iter().map(|it| it.text.as_str());
        while let Some(arg) = args.next() {
            if !arg.starts_with('-') {
                return false;
            }
            if row.value_options.iter().any(|it| it == arg) {
                args.next();
            }
        }
        true
    }

    /// Returns the directories in which a program searches for files.
    pub(super) fn find_folders(&self, words: &[ShellText], scope: &ShellState) -> Vec<ShellText> {
        let called = words.first().map(|it| called_name(&it.text)).unwrap_or_default();
        if called == "find" {
            return find_roots(words.get(1..).unwrap_or_default());
        }
        // `fd pattern directory… -x program`
        let end = words
            .iter()
            .position(|it| matches!(it.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"));
        let words = words.get(..end.unwrap_or(words.len())).unwrap_or_default();
        let program = self.build_invocation(words, scope, &StandardInput::default(), Vec::new());
        let values = self.context.lens.value_options();
        let folders: Vec<ShellText> =
            program.operands(values).into_iter().skip(1).cloned().collect();
        if folders.is_empty() { vec![ShellText::known(".")] } else { folders }
    }

    /// Runs the command that `find` starts for each file: once for an unknown file below each root,
    /// and once for each name that it searches for. `fd` appends the file without a
    /// placeholder.
    pub(super) fn run_for_each(
        &mut self,
        action: &[ShellText],
        roots: &[ShellText],
        names: &[ShellText],
        scope: &mut ShellState,
    ) {
        let mark = action.iter().all(|it| !it.text.contains("{}")).then(|| ShellText::known("{}"));
        let action: Vec<ShellText> = action.iter().cloned().chain(mark).collect();
        let named = |root| names.iter().filter_map(move |it| file_below(root, it));
        self.call.wrappers.entry("find".to_owned()).or_insert(true);
        let files = roots.iter().flat_map(|root| std::iter::once(root.below()).chain(named(root)));
        for file in files.collect::<Vec<_>>() {
            if !self.spend_steps(file.text.len()) {
                break;
            }
            let filled =
                |it: &ShellText| if it.is_known() { put(it, "{}", &file) } else { it.clone() };
            let words = action.iter().map(filled).collect();
            let simple = SimpleCommand {
                words,
                wrappers: vec!["find".to_owned()],
                ..SimpleCommand::default()
            };
            self.run_simple(simple, scope, &StandardInput::default());
        }
    }
}

/// Returns the placeholder that a wrapper replaces by its input.
fn mark_of(taken: &[ShellText]) -> Option<String> {
    taken.iter().enumerate().find_map(|(at, it)| match it.text.as_str() {
        "-I" | "-J" => taken.get(at + 1).map(|it| it.text.clone()),
        "-i" | "--replace" | "--replace=" => Some("{}".to_owned()),
        glued => {
            let glued = glued.strip_prefix("-I").or_else(|| glued.strip_prefix("--replace="));
            glued.map(str::to_owned)
        }
    })
}

/// Returns whether `xargs` splits its input at line ends only: `-d '
/// '`, `-0`.
fn splits_lines(taken: &[ShellText]) -> bool {
    let program = Invocation { args: taken.to_vec(), ..Invocation::default() };
    let ends_line = |it: ShellText| matches!(it.text.as_str(), "\\n" | "\n");
    ["-d", "--delimiter"].iter().flat_map(|it| program.values(it)).any(ends_line)
        || ["-0", "--null"].iter().any(|it| program.has(it, &Rows::default()))
}

/// Replaces unknown input in shell text, so that a shell can parse the text.
pub(super) fn readable(text: ShellText) -> ShellText {
    match text.is_known() {
        true => text,
        false => ShellText { text: text.text.replace(STANDARD_INPUT, "\u{2026}"), ..text },
    }
}

/// Replaces each placeholder in a word by a value.
fn put(word: &ShellText, mark: &str, value: &ShellText) -> ShellText {
    let mut pieces = word.text.split(mark);
    let mut made = ShellText::known(pieces.next().unwrap_or_default());
    made.glob = word.glob;
    for piece in pieces {
        made.append(value);
        made.append(&ShellText::known(piece));
    }
    made
}

/// Ends of a line that is typed into a terminal.
const ENDS_OF_LINE: [&str; 4] = ["Enter", "C-m", "\\n", "^M"];

impl Scanner<'_> {
    /// Scans the values of a program that are shell text: `git rebase --exec`, `vim -c '!…'`, `tmux
    /// send-keys`.
    pub(super) fn scan_shell_values(&mut self, words: &[ShellText], scope: &ShellState) {
        let context = self.context;
        let name = words.first().map(|it| called_name(&it.text)).unwrap_or_default();
        let begins = |it: &CommandPattern| it.names(name);
        let rows = &context.knowledge.shell_values;
        if !rows.named(name).any(|it| it.programs.iter().any(begins)) {
            return;
        }
        let values = context.lens.value_options();
        let program = self.build_invocation(words, scope, &StandardInput::default(), Vec::new());
        for row in rows.named(&program.name) {
            let pattern = row.programs.iter().find(|it| program.is(it, values));
            let Some(pattern) = pattern else { continue };
            let given: Vec<ShellText> = match row.options.is_empty() {
                true => {
                    let named = pattern.operands(&program.name, values);
                    program.operands(values).into_iter().skip(named).cloned().collect()
                }
                false => row.options.iter().flat_map(|it| program.values(it)).collect(),
            };
            for text in given.iter().filter_map(|it| text_of(row, it)) {
                self.scan_text(&text, &mut scope.clone(), &StandardInput::default());
            }
        }
    }
}

/// Returns the shell text in a value.
fn text_of(row: &ShellValue, value: &ShellText) -> Option<String> {
    let text = value.text.trim();
    let text = match row.after.is_empty() {
        true => text,
        false => row.after.iter().find_map(|it| after(text, it))?,
    };
    let ends = ENDS_OF_LINE.iter().find_map(|it| text.strip_suffix(it));
    let text = ends.unwrap_or(text).trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the text after a prefix, ignoring case.
fn after<'t>(text: &'t str, mark: &str) -> Option<&'t str> {
    let head = text.get(..mark.len())?;
    if head.eq_ignore_ascii_case(mark) { text.get(mark.len()..) } else { None }
}
