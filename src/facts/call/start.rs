//! One program that is started: what it is, what it runs itself, which files it touches, and what it puts out.
//! Wrappers were taken off before, in `wrap`.

use super::super::shell::unwrap::base_name;
use super::redirects::Redirects;
use super::scan::{Output, Scanner, Scope};
use super::value::Text;
use super::wrap::{Simple, is_standard_input};
use super::{Input, Invocation, output};

impl Scanner<'_> {
    /// A program as it would be started.
    pub(super) fn invocation(
        &self,
        words: &[Text],
        scope: &Scope,
        input: &Input,
        wrappers: Vec<String>,
    ) -> Invocation {
        let (called, args) = match words.split_first() {
            Some((called, args)) => (called.clone(), args.to_vec()),
            None => (Text::default(), Vec::new()),
        };
        let name = called.all().map(program_name).unwrap_or_default();
        let mut fed_by = input.from.clone();
        let more: Vec<usize> = args.iter().flat_map(|it| it.from.clone()).collect();
        fed_by.extend(more);
        fed_by.dedup();
        Invocation {
            name,
            called,
            args,
            folder: scope.folder.clone(),
            input: input.clone(),
            fed_by,
            wrappers: self.starters.iter().cloned().chain(wrappers).collect(),
            links: scope.links.clone(),
            ..Invocation::default()
        }
    }

    /// A program that wraps nothing, or a builtin of the shell.
    pub(super) fn start(&mut self, simple: Simple, scope: &mut Scope, input: &Input) -> Output {
        let Simple { words, redirects, mut wrappers, .. } = simple;
        let starts_lines = self.starts_lines(&words);
        if let Some(lines) = input.text.as_deref().filter(|_| starts_lines) {
            wrappers.extend(words.first().map(|it| base_name(&it.text).to_owned()));
            let output =
                self.started_text(wrappers, lines, &mut scope.of_a_process(), &Input::default());
            return self.away(redirects, output, scope);
        }
        let mut program = self.invocation(&words, scope, input, wrappers);
        if program.called.text.is_empty() {
            return Output::empty();
        }
        program.runs_unknown = starts_lines && input.piped;
        self.builtin(&program, scope, input);
        if matches!(program.name.as_str(), "source" | ".") {
            let file = program.args.first().cloned().unwrap_or_default();
            let written = self.written_into(&file, scope);
            let is_input = is_standard_input(&file.text);
            let read = program.input.text.clone().filter(|_| is_input);
            let known = written.as_ref().and_then(|it| it.text.clone());
            if let Some(text) = known.or_else(|| file.piped.clone()).or(read) {
                return self.text(&text, scope, input);
            }
            scope.forget_empty();
            program.runs_unknown = file.pipe || written.is_some() || (is_input && input.piped);
            program.fed_by.extend(written.into_iter().flat_map(|it| it.from));
        } else {
            self.interpret(&mut program, scope);
        }
        // A file that the line wrote may be started itself: `./x.sh`.
        if program.called.text.contains('/')
            && let Some(written) = self.written_into(&program.called.clone(), scope)
        {
            if let Some(text) = &written.text {
                let parameters = Some(program.args.clone());
                let mut inner = Scope { parameters, ..scope.of_a_process() };
                return self.started_text(Vec::new(), text, &mut inner, input);
            }
            program.runs_unknown = true;
            program.fed_by.extend(written.from);
        }
        let code = program.code.clone();
        let name = program.name.clone();
        let output = self.finish(program, redirects, scope);
        if !code.is_empty() {
            self.code(&name, &code, scope);
        }
        output
    }

    /// Adds a program, and tells what it writes.
    pub(super) fn finish(
        &mut self,
        mut program: Invocation,
        redirects: Redirects,
        scope: &mut Scope,
    ) -> Output {
        program.writes.clone_from(&redirects.writes);
        program.reads.clone_from(&redirects.reads);
        let text = output::text(&program, self.reading.around, |it| {
            self.written_into(it, scope).and_then(|it| it.text)
        });
        let files = output::files(&program);
        let Some(at) = self.push(program) else { return Output::default() };
        let output = Output { text, from: vec![at], files };
        self.touch(at, &output, scope);
        self.linked(at, scope);
        self.note_files(&redirects, &output, scope);
        if redirects.away { Output::empty() } else { output }
    }

    /// Notes where a link leads that is made, once its own place is noted.
    fn linked(&self, at: usize, scope: &mut Scope) {
        let Some(program) = self.call.programs.get(at).filter(|it| it.name == "ln") else { return };
        let paths: Vec<&Text> =
            program.args.iter().filter(|it| !it.text.starts_with('-')).collect();
        if let [target, link] = paths.as_slice() {
            let target = self.place(target, scope).absolute;
            let link = self.place(link, scope).absolute;
            scope.links.extend(link.zip(target).filter(|(link, target)| link != target));
        }
    }

    /// Sends the output of a text or a function where it is redirected to.
    pub(super) fn away(
        &mut self,
        redirects: Redirects,
        output: Output,
        scope: &mut Scope,
    ) -> Output {
        self.bare(&redirects, scope);
        self.note_files(&redirects, &output, scope);
        if redirects.away { Output::empty() } else { output }
    }
}

/// The name that a program is known by: without its folder, and as it is called where the case of
/// letters does not count.
fn program_name(called: &str) -> String {
    let base = base_name(called);
    let base = if base.contains(":\\") { base.rsplit('\\').next().unwrap_or(base) } else { base };
    let ending = base.len().saturating_sub(4);
    let base = match base.get(ending..) {
        Some(end) if end.eq_ignore_ascii_case(".exe") => base.get(..ending).unwrap_or(base),
        _ => base,
    };
    match base.len() > 1 && base.bytes().all(|b| b.is_ascii_uppercase()) {
        true => base.to_lowercase(),
        false => base.to_owned(),
    }
}
