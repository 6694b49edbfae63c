//! Simple commands and the wrappers around them: `sudo`, `env`, `sh -c`, `xargs`, `find -exec`.
//!
//! Contains: the loop that removes wrappers until a program is left, shells that read text, programs that start
//! another program for each item, and options whose value is shell text.
//! Does not contain: the generic recognition of one wrapper (`facts::shell`), the program itself (`programs`).

use super::super::glob::word_matches;
use super::super::lens::Wrapper;
use super::super::pattern::CommandPattern;
use super::super::shell::{
    COPROCESS, Meaning, ShellWord, base_name, is_assignment, is_keyword, meaning, quote,
};
use super::files::ShellValue;
use super::programs::find_roots;
use super::scope::{Output, Scope};
use super::statements::{Redirects, Scanner};
use super::words::Text;
use super::{Input, Invocation};
use crate::limits::SHELL_DEPTH_MAX;
use crate::path::in_folder;

/// A simple command, its words put together.
#[derive(Debug, Default)]
pub(super) struct Simple {
    pub(super) words: Vec<Text>,
    /// Variables that are set for it, or by it where there are no words.
    pub(super) variables: Vec<(String, Vec<Text>)>,
    pub(super) redirects: Redirects,
    pub(super) wrappers: Vec<String>,
}

/// What is left of a wrapped command.
enum Inner {
    /// Words, to be looked at again.
    Words(Vec<Text>),
    /// Nothing: this is what it puts out.
    Done(Output),
    /// Words that run in another folder.
    There(Option<String>, Vec<Text>),
}

impl Scanner<'_> {
    /// What a simple command does.
    pub(super) fn simple(&mut self, simple: Simple, scope: &mut Scope, input: &Input) -> Output {
        let Simple { mut words, variables, redirects, mut wrappers } = simple;
        if words.is_empty() {
            scope.variables.extend(variables);
            return self.away(redirects, Output::empty(), scope);
        }
        if !variables.is_empty() {
            let simple = Simple { words, redirects, wrappers, ..Simple::default() };
            return self.with_variables(variables, simple, scope, input);
        }
        for _ in 0..SHELL_DEPTH_MAX * 2 {
            // What a program starts is hardly one of the shell's functions.
            let is_own = wrappers.iter().all(|it| is_keyword(it));
            let around = self.functions.enter_process_if(wrappers.iter().any(|it| it == COPROCESS));
            let called = self.called(&words, is_own, scope, input);
            self.functions.leave(around);
            if let Some(output) = called {
                return self.away(redirects, output, scope);
            }
            if let Some(inner) = self.other_form(&words) {
                words = inner;
                continue;
            }
            let all = words.clone();
            self.shell_values(&all, scope);
            match self.meant(words, scope, input) {
                Meaning::Words(inner) => {
                    match self.taken_off(&all, inner, &mut wrappers, scope, input) {
                        Inner::Words(inner) => words = inner,
                        Inner::Done(output) => return self.away(redirects, output, scope),
                        Inner::There(folder, words) => {
                            let simple = Simple { words, redirects, wrappers, ..Simple::default() };
                            let mut there = Scope { folder, ..scope.clone() };
                            let output = self.simple(simple, &mut there, input);
                            scope.files = there.files;
                            return output;
                        }
                    }
                }
                Meaning::Shell(text) => {
                    self.keep(&all, &mut wrappers, scope, input);
                    let output = self.shell_text(&all, text, scope, input, wrappers);
                    return self.away(redirects, output, scope);
                }
                Meaning::ShellInput(program) => {
                    let simple =
                        Simple { words: program, redirects, wrappers, ..Simple::default() };
                    return self.shell_input(simple, scope, input);
                }
                Meaning::Program(program) => {
                    let simple =
                        Simple { words: program, redirects, wrappers, ..Simple::default() };
                    return self.start(simple, scope, input);
                }
                Meaning::Find(program, actions) => {
                    let roots = self.looked_in(&program, scope);
                    let names = looked_for(&program);
                    let simple =
                        Simple { words: program, redirects, wrappers, ..Simple::default() };
                    let output = self.start(simple, scope, input);
                    for action in actions {
                        self.for_each(&action, (&roots, &names), scope);
                    }
                    return output;
                }
            }
        }
        self.over("it is wrapped too often");
        Output::default()
    }

    /// What a simple command does for which variables are set: `A=b command`.
    fn with_variables(
        &mut self,
        mut variables: Vec<(String, Vec<Text>)>,
        simple: Simple,
        scope: &mut Scope,
        input: &Input,
    ) -> Output {
        for (name, values) in &variables {
            let value = values.first().cloned();
            self.call.variables.extend(value.map(|it| (name.clone(), it)));
        }
        let exported = scope.exported.clone();
        scope.exported.extend(variables.iter().map(|it| it.0.clone()));
        scope.swap(&mut variables);
        let output = self.simple(simple, scope, input);
        scope.swap(&mut variables);
        scope.exported = exported;
        output
    }

    /// What words come to. What the line wrote itself may be no shell, whatever it is called
    /// (`curl -o bash host && ./bash`): it is started as a program, too.
    fn meant(&mut self, words: Vec<Text>, scope: &Scope, input: &Input) -> Meaning<Text> {
        let was_written =
            |it: &&Text| it.text.contains('/') && self.written_into(it, scope).is_some();
        let written = words.first().filter(was_written).map(|_| words.clone());
        let meant = meaning(words, self.reading.lens);
        let is_program = matches!(meant, Meaning::Program(_) | Meaning::Find(..));
        if let Some(words) = written.filter(|_| !is_program) {
            let simple = Simple { words, ..Simple::default() };
            self.start(simple, &mut scope.clone(), input);
        }
        meant
    }

    /// Notes a wrapper that is taken off; one that is kept counts as a program, too.
    fn keep(
        &mut self,
        taken: &[Text],
        wrappers: &mut Vec<String>,
        scope: &mut Scope,
        input: &Input,
    ) {
        if taken.first().is_some_and(|it| self.is_kept(it)) {
            let own = self.invocation(taken, scope, input, wrappers.clone());
            self.push(own);
        }
        wrappers.extend(taken.first().map(|it| base_name(&it.text).to_owned()));
    }

    /// What is left when a wrapper is taken off.
    fn taken_off(
        &mut self,
        all: &[Text],
        inner: Vec<Text>,
        wrappers: &mut Vec<String>,
        scope: &mut Scope,
        input: &Input,
    ) -> Inner {
        let taken = all.get(..all.len().saturating_sub(inner.len())).unwrap_or_default();
        self.keep(taken, wrappers, scope, input);
        self.set_by(taken);
        if let Some(folder) = self.moved_by(taken, scope) {
            return Inner::There(folder, inner);
        }
        if taken.first().is_some_and(|it| self.is_shell(it)) {
            return Inner::Done(self.script(taken, inner, scope, input, wrappers.clone()));
        }
        let mut each = self.with_input(taken, inner, input);
        if each.len() == 1 && each.first().is_some_and(|it| !holds_text(it)) {
            return Inner::Words(each.pop().unwrap_or_default());
        }
        let mut output = Output::empty();
        for words in each {
            if !self.may_go_on(words.iter().map(|it| it.text.len()).sum()) {
                break;
            }
            let mut inner = scope.clone();
            let wrappers = wrappers.clone();
            let own = match holds_text(&words) {
                true => {
                    let text = <Text as ShellWord>::joined(&words);
                    self.shell_text(all, text, &mut inner, input, wrappers)
                }
                false => {
                    let simple = Simple { words, wrappers, ..Simple::default() };
                    self.simple(simple, &mut inner, &Input::default())
                }
            };
            output = output.then(own);
            scope.files = inner.files;
        }
        Inner::Done(output)
    }

    /// Another way to write a simple command: `git -c alias.x=!cmd x`.
    fn other_form(&self, words: &[Text]) -> Option<Vec<Text>> {
        if base_name(words.first()?.all()?) != "git" {
            return None;
        }
        let at = words.iter().position(|it| it.text == "-c")?;
        let setting = words.get(at + 1)?.all()?;
        let (name, value) = setting.strip_prefix("alias.")?.split_once('=')?;
        let used = words.iter().skip(at + 2).position(|it| it.text == name)? + at + 2;
        let after = words.get(used + 1..)?.iter().cloned();
        let words: Vec<Text> = match value.strip_prefix('!') {
            Some(shell) => ["sh", "-c", shell].map(Text::known).into_iter().chain(after).collect(),
            None => {
                let own = value.split_whitespace().map(Text::known);
                std::iter::once(Text::known("git")).chain(own).chain(after).collect()
            }
        };
        Some(words)
    }

    /// What a wrapper sets for its program: `env A=b`.
    fn set_by(&mut self, taken: &[Text]) {
        for word in taken.iter().filter(|it| is_assignment(&it.text)) {
            if let Some((name, _)) = word.text.split_once('=') {
                let value = word.tail(name.len().saturating_add(1));
                self.call.variables.insert(name.to_owned(), value);
            }
        }
    }

    /// Where a wrapper has its program run: `env -C folder`; nothing where it does not say.
    fn moved_by(&self, taken: &[Text], scope: &Scope) -> Option<Option<String>> {
        let wrappers = &self.reading.lens.lens().wrappers;
        let name = taken.first().map(|it| base_name(&it.text)).unwrap_or_default();
        let rows = wrappers.iter().filter(|it| it.command == name && !it.folder_options.is_empty());
        let program = Invocation { args: taken.to_vec(), ..Invocation::default() };
        let folder =
            rows.flat_map(|it| &it.folder_options).flat_map(|it| program.values(it)).next();
        folder.map(|it| self.place(&it, scope).absolute)
    }

    /// Whether a wrapper does something of its own.
    fn is_kept(&self, word: &Text) -> bool {
        let (wrappers, name) = (&self.reading.lens.lens().wrappers, base_name(&word.text));
        wrappers.iter().any(|it| it.kept && word_matches(&it.command, name))
    }

    fn is_shell(&self, word: &Text) -> bool {
        let wrappers: &[Wrapper] = &self.reading.lens.lens().wrappers;
        let name = base_name(&word.text);
        name != "env"
            && wrappers
                .iter()
                .any(|it| !it.shell_option.is_empty() && word_matches(&it.command, name))
    }

    /// Shell text that is given as an argument.
    fn shell_text(
        &mut self,
        words: &[Text],
        text: Text,
        scope: &mut Scope,
        input: &Input,
        wrappers: Vec<String>,
    ) -> Output {
        let name = words.first().map(|it| base_name(&it.text)).unwrap_or_default();
        let (here, text) = (name == "eval", readable(text));
        if here && !text.is_known() {
            scope.forget_empty();
        }
        let unknown_start = text.known_part().trim().is_empty();
        if !text.is_known() && (unknown_start || !text.from.is_empty()) {
            let program = Invocation {
                fed_by: text.from.clone(),
                runs_unknown: true,
                ..self.invocation(words, scope, input, wrappers.clone())
            };
            self.push(program);
        }
        if unknown_start && !text.from.is_empty() {
            return Output::default();
        }
        let before = std::mem::replace(&mut self.as_written, !text.is_known());
        if here {
            let output = self.started_text(wrappers, &text.text, scope, input);
            self.as_written = before;
            return output;
        }
        let at = words.iter().position(|it| it.text == text.text).unwrap_or(words.len());
        let mut inner = Scope {
            // Of `sh -c text name args` the first word is its name.
            parameters: Some(words.iter().skip(at.saturating_add(2)).cloned().collect()),
            ..scope.of_a_process()
        };
        let own_name = words.get(at.saturating_add(1)).cloned();
        inner.variables.extend(own_name.map(|it| ("0".to_owned(), vec![it])));
        let output = self.started_text(wrappers, &text.text, &mut inner, input);
        self.as_written = before;
        scope.files = inner.files;
        output
    }

    /// Shell text that these programs start.
    pub(super) fn started_text(
        &mut self,
        starters: Vec<String>,
        text: &str,
        scope: &mut Scope,
        input: &Input,
    ) -> Output {
        let before = self.starters.len();
        let is_other = starters.last().is_none_or(|it| it != "eval");
        self.starters.extend(starters);
        let around = self.functions.enter_process_if(is_other);
        let output = self.text(text, scope, input);
        self.functions.leave(around);
        self.starters.truncate(before);
        output
    }

    /// A shell that reads what it runs.
    fn shell_input(&mut self, simple: Simple, scope: &mut Scope, input: &Input) -> Output {
        let given = simple.redirects.input.as_ref().unwrap_or(input);
        if let Some(text) = given.text.clone() {
            // The first command is the value of a variable, or what another program prints.
            if given.as_written && text.trim_start().starts_with(['$', '`']) {
                let program = self.invocation(&simple.words, scope, given, simple.wrappers.clone());
                self.push(Invocation { runs_unknown: true, ..program });
            }
            let mut inner = scope.of_a_process();
            let shell = simple.words.first().map(|it| base_name(&it.text).to_owned());
            let starters = simple.wrappers.iter().cloned().chain(shell).collect();
            let before = std::mem::replace(&mut self.as_written, given.as_written);
            let output = self.started_text(starters, &text, &mut inner, &Input::default());
            self.as_written = before;
            scope.files = inner.files;
            return self.away(simple.redirects, output, scope);
        }
        let (runs_unknown, given) = (given.piped, given.clone());
        let Simple { words, redirects, wrappers, .. } = simple;
        let program =
            Invocation { runs_unknown, ..self.invocation(&words, scope, &given, wrappers) };
        self.finish(program, redirects, scope)
    }

    /// A shell that runs a script.
    fn script(
        &mut self,
        shell: &[Text],
        words: Vec<Text>,
        scope: &mut Scope,
        input: &Input,
        wrappers: Vec<String>,
    ) -> Output {
        let Some((file, args)) = words.split_first() else { return Output::default() };
        let reads_input = shell.iter().any(|it| it.text == "-s") || is_standard_input(&file.text);
        if reads_input {
            let words = shell.iter().chain(&words).cloned().collect();
            let simple = Simple { words, wrappers, ..Simple::default() };
            return self.shell_input(simple, scope, input);
        }
        let known = self.written_into(file, scope).and_then(|it| it.text);
        if let Some(text) = known.or_else(|| file.piped.clone()) {
            let mut inner = Scope { parameters: Some(args.to_vec()), ..scope.of_a_process() };
            return self.started_text(wrappers, &text, &mut inner, input);
        }
        let written = self.written_into(file, scope);
        let all: Vec<Text> = shell.iter().chain(&words).cloned().collect();
        let mut program = self.invocation(&words, scope, input, wrappers.clone());
        if file.pipe || written.is_some() {
            program = self.invocation(&all, scope, input, wrappers);
            program.runs_unknown = true;
            program.fed_by.extend(written.into_iter().flat_map(|it| it.from));
        }
        self.finish(program, Redirects::default(), scope)
    }

    /// Words that code would start as a program.
    pub(super) fn words(&mut self, words: Vec<Text>, by: &str, scope: &mut Scope) {
        let simple = Simple { words, wrappers: vec![by.to_owned()], ..Simple::default() };
        self.simple(simple, scope, &Input::default());
    }
}

/// Whether words are shell text, as in `watch 'rm -rf /'`: no program has a blank in its name.
fn holds_text(words: &[Text]) -> bool {
    words.first().is_some_and(|it| it.text.contains(char::is_whitespace))
}

/// Whether the name of a script is that of the standard input.
pub(super) fn is_standard_input(name: &str) -> bool {
    matches!(name, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

/// Words as a command line.
#[must_use]
pub(super) fn line(words: &[String]) -> String {
    words.iter().map(|it| quote(it)).collect::<Vec<_>>().join(" ")
}

/// The wrapper that starts what it reads where it is given no program.
const PARALLEL: &str = "parallel";
/// Wrappers that put what they read behind the words they are given.
const FROM_INPUT: [&str; 2] = ["xargs", PARALLEL];
/// What stands before the values of `parallel` that are written out.
const LISTED: &str = ":::";
/// How what they read is told, where it is not known; to a shell the brackets would be signs of its own.
const STANDARD_INPUT: &str = "(standard input)";
/// Words or lines of one input that are followed; the rest is one of which nothing is known.
const INPUT_VALUES_MAX: usize = 32;

impl Scanner<'_> {
    /// The command lines that a wrapper starts for what it reads: one for each line, where it puts lines at
    /// a mark or is `parallel`, else one with all words behind its own. Of any other wrapper it is what it
    /// wraps.
    pub(super) fn with_input(
        &self,
        taken: &[Text],
        mut words: Vec<Text>,
        input: &Input,
    ) -> Vec<Vec<Text>> {
        let wrapper = taken.first().map(|it| base_name(&it.text)).unwrap_or_default();
        if !FROM_INPUT.contains(&wrapper) {
            return vec![words];
        }
        let is_parallel = wrapper == PARALLEL;
        let listed = words.iter().position(|it| is_parallel && it.text == LISTED);
        let listed = listed.map(|at| words.split_off(at));
        let mark = mark_of(taken).or_else(|| is_parallel.then(|| "{}".to_owned()));
        let mark = mark.filter(|mark| words.iter().any(|it| it.text.contains(mark.as_str())));
        let one_each = mark.is_some() || is_parallel;
        let mut read: Vec<Text> = match (listed, &input.text, input.files.as_slice()) {
            (Some(listed), ..) => listed.into_iter().filter(|it| it.text != LISTED).collect(),
            (None, Some(text), _) => {
                let lines = one_each || splits_lines(taken);
                let pieces: Vec<&str> = match lines {
                    true => text.lines().filter(|it| !it.trim().is_empty()).collect(),
                    false => text.split_whitespace().collect(),
                };
                let known = |it| Text { glob: false, from: input.from.clone(), ..Text::known(it) };
                pieces.into_iter().map(known).collect()
            }
            (None, None, []) => {
                vec![Text { from: input.from.clone(), ..Text::unknown(STANDARD_INPUT) }]
            }
            (None, None, files) => files.to_vec(),
        };
        if read.len() > INPUT_VALUES_MAX {
            read.truncate(INPUT_VALUES_MAX);
            read.push(Text::unknown("one of many values"));
        }
        if !one_each {
            words.extend(read);
            return vec![words];
        }
        let line = |value: Text| match &mark {
            Some(mark) => words.iter().map(|it| put(it, mark, &value)).collect(),
            None => words.iter().cloned().chain([value]).collect(),
        };
        read.into_iter().map(line).collect()
    }

    /// Whether a program is one that starts each line that it reads, as `parallel` does where it is not
    /// given a program.
    pub(super) fn starts_lines(&self, program: &[Text]) -> bool {
        let named = program.split_first().filter(|it| base_name(&it.0.text) == PARALLEL);
        let Some((_, args)) = named else { return false };
        let rows = &self.reading.lens.lens().wrappers;
        let Some(row) = rows.iter().find(|it| it.command == PARALLEL) else { return false };
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

    /// The folders that a program looks for files in.
    pub(super) fn looked_in(&self, words: &[Text], scope: &Scope) -> Vec<Text> {
        let called = words.first().map(|it| base_name(&it.text)).unwrap_or_default();
        if called == "find" {
            return find_roots(words.get(1..).unwrap_or_default());
        }
        // `fd pattern folder… -x program`
        let end = words
            .iter()
            .position(|it| matches!(it.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"));
        let words = words.get(..end.unwrap_or(words.len())).unwrap_or_default();
        let program = self.invocation(words, scope, &Input::default(), Vec::new());
        let values = &self.reading.lens.lens().value_options;
        let folders: Vec<Text> = program.operands(values).into_iter().skip(1).cloned().collect();
        if folders.is_empty() { vec![Text::known(".")] } else { folders }
    }

    /// What `find` runs for each file below its roots, and for one of the name that it looks for; `fd` puts
    /// the file at the end where it is not told a place.
    pub(super) fn for_each(
        &mut self,
        action: &[Text],
        (roots, names): (&[Text], &[Text]),
        scope: &mut Scope,
    ) {
        let mark = action.iter().all(|it| !it.text.contains("{}")).then(|| Text::known("{}"));
        let action: Vec<Text> = action.iter().cloned().chain(mark).collect();
        let named = |root| names.iter().filter_map(move |it| named_below(root, it));
        let files = roots.iter().flat_map(|root| std::iter::once(root.below()).chain(named(root)));
        for file in files.collect::<Vec<_>>() {
            if !self.may_go_on(file.text.len()) {
                break;
            }
            let filled = |it: &Text| if it.is_known() { put(it, "{}", &file) } else { it.clone() };
            let words = action.iter().map(filled).collect();
            let simple = Simple { words, wrappers: vec!["find".to_owned()], ..Simple::default() };
            self.simple(simple, scope, &Input::default());
        }
    }
}

/// The mark of a wrapper at whose place it puts what it reads.
fn mark_of(taken: &[Text]) -> Option<String> {
    taken.iter().enumerate().find_map(|(at, it)| match it.text.as_str() {
        "-I" | "-J" => taken.get(at + 1).map(|it| it.text.clone()),
        "-i" | "--replace" | "--replace=" => Some("{}".to_owned()),
        glued => {
            let glued = glued.strip_prefix("-I").or_else(|| glued.strip_prefix("--replace="));
            glued.map(str::to_owned)
        }
    })
}

/// Whether `xargs` takes a line for one word: `-d '\n'`, `-0`.
fn splits_lines(taken: &[Text]) -> bool {
    let program = Invocation { args: taken.to_vec(), ..Invocation::default() };
    let ends_line = |it: Text| matches!(it.text.as_str(), "\\n" | "\n");
    ["-d", "--delimiter"].iter().flat_map(|it| program.values(it)).any(ends_line)
        || ["-0", "--null"].iter().any(|it| program.has(it, &[]))
}

/// Shell text into which a wrapper put what it reads, so that a shell can read it.
pub(super) fn readable(text: Text) -> Text {
    match text.is_known() {
        true => text,
        false => Text { text: text.text.replace(STANDARD_INPUT, "\u{2026}"), ..text },
    }
}

/// A word with a value at each place of the mark.
fn put(word: &Text, mark: &str, value: &Text) -> Text {
    let mut pieces = word.text.split(mark);
    let mut made = Text::known(pieces.next().unwrap_or_default());
    made.glob = word.glob;
    for piece in pieces {
        made.append(value);
        made.append(&Text::known(piece));
    }
    made
}

/// The names of the files that `find` looks for, or paths below a root.
pub(super) fn looked_for(finder: &[Text]) -> Vec<Text> {
    // What it is told to pass over has names, too; of several tests a name says the most.
    let tests = ["-prune", "-name", "-iname"];
    let by_path = !finder.iter().any(|it| tests.contains(&it.text.as_str()));
    let mut names = Vec::new();
    for (at, word) in finder.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|it| finder.get(it));
        let is_negated = before.is_some_and(|it| matches!(it.text.as_str(), "!" | "-not"));
        let value = finder.get(at + 1).filter(|_| !is_negated);
        match word.text.as_str() {
            "-name" | "-iname" => names.extend(value.cloned()),
            "-path" | "-ipath" | "-wholename" if by_path => {
                names.extend(value.and_then(below_any));
            }
            _ => {}
        }
    }
    names
}

/// Of a path that may lie anywhere below a root what stands behind that: of `*/.ssh/*` it is `.ssh/*`.
fn below_any(path: &Text) -> Option<Text> {
    let path = path.all()?.trim_start_matches(['*', '.']);
    let below = path.strip_prefix('/').filter(|it| !it.is_empty() && !it.starts_with('*'));
    below.map(Text::known)
}

/// A file of a name below a folder, where both are known.
pub(super) fn named_below(folder: &Text, name: &Text) -> Option<Text> {
    let (folder, name) = (folder.all()?, name.all()?);
    Some(Text { glob: name.contains(['*', '?', '[']), ..Text::known(in_folder(folder, name)) })
}

/// What ends a line that is typed into a terminal.
const ENDS_OF_LINE: [&str; 4] = ["Enter", "C-m", "\\n", "^M"];

impl Scanner<'_> {
    /// Reads the values of a program that are shell text.
    pub(super) fn shell_values(&mut self, words: &[Text], scope: &Scope) {
        let reading = self.reading;
        let name = words.first().map(|it| base_name(&it.text)).unwrap_or_default();
        let begins = |it: &CommandPattern| it.names(name);
        let rows = &reading.knowledge.shell_values;
        if !rows.iter().any(|it| it.programs.iter().any(begins)) {
            return;
        }
        let values = &reading.lens.lens().value_options;
        let program = self.invocation(words, scope, &Input::default(), Vec::new());
        for row in rows {
            let pattern = row.programs.iter().find(|it| program.is(it, values));
            let Some(pattern) = pattern else { continue };
            let given: Vec<Text> = match row.options.is_empty() {
                true => {
                    let named = pattern.operands(&program.name, values);
                    program.operands(values).into_iter().skip(named).cloned().collect()
                }
                false => row.options.iter().flat_map(|it| program.values(it)).collect(),
            };
            for text in given.iter().filter_map(|it| text_of(row, it)) {
                self.text(&text, &mut scope.clone(), &Input::default());
            }
        }
    }
}

/// The shell text in a value, if there is any.
fn text_of(row: &ShellValue, value: &Text) -> Option<String> {
    let text = value.text.trim();
    let text = match row.after.is_empty() {
        true => text,
        false => row.after.iter().find_map(|it| after(text, it))?,
    };
    let ends = ENDS_OF_LINE.iter().find_map(|it| text.strip_suffix(it));
    let text = ends.unwrap_or(text).trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// What follows a mark at the beginning of a text, whatever the case of its letters.
fn after<'t>(text: &'t str, mark: &str) -> Option<&'t str> {
    let head = text.get(..mark.len())?;
    if head.eq_ignore_ascii_case(mark) { text.get(mark.len()..) } else { None }
}
