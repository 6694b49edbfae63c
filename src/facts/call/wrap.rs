//! Simple commands: functions and wrappers taken off until a program is left, which `start` then takes.

use super::super::glob::word_matches;
use super::super::lens::Wrapper;
use super::super::shell::unwrap::{
    COPROCESS, Meaning, Word, base_name, is_assignment, is_keyword, meaning,
};
use super::super::shell::word::quoted;
use super::each::{looked_for, readable};
use super::redirects::Redirects;
use super::scan::{Output, Scanner, Scope};
use super::value::Text;
use super::{Input, Invocation};
use crate::limits::SHELL_DEPTH_MAX;

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
                    let text = <Text as Word>::joined(&words);
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
    words.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(" ")
}
