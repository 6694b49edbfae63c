//! One program that a command line starts, after its wrappers were removed.
//!
//! Contains: the start of a program, builtins of the shell, and the text that simple programs (`echo`, `printf`,
//! `base64 -d`) print.
//! Does not contain: options and operands (`invocation`), wrappers (`wrappers`), the files that a program touches
//! (`files`), code of other languages (`code`).

use super::code::CodeSource;
use super::find::{find_roots, found_files};
use super::hidden::OUTPUT_PIPE;
use super::invocation::{Invocation, StandardInput, is_standard_input};
use super::paths::CallEnvironment;
use super::program_database::OperandSelector;
use super::scanner::Scanner;
use super::scripts::{ScriptKind, is_code_file};
use super::shell_output::ShellOutput;
use super::shell_state::{ShellState, WorkingFolder};
use super::shell_text::ShellText;
use super::simple_command::{Redirects, SimpleCommand};
use super::words::emptied_by;
use super::wrappers::INPUT_VALUES_MAX;
use crate::path::in_folder;
use crate::pattern::CommandPattern;
use crate::shell::{base_name, called_name, is_keyword, unescape, unescape_ansi};

impl Scanner<'_> {
    /// Builds the program that a list of words starts.
    pub(super) fn build_invocation(
        &self,
        words: &[ShellText],
        scope: &ShellState,
        input: &StandardInput,
        wrappers: Vec<String>,
    ) -> Invocation {
        let (called, args) = match words.split_first() {
            Some((called, args)) => (called.clone(), args.to_vec()),
            None => (ShellText::default(), Vec::new()),
        };
        let name = self.real_name(&called, scope);
        let args = if name.ends_with("tar") { with_tar_options(args) } else { args };
        let mut fed_by = input.from.clone();
        let feeds = |it: &&ShellText| !(it.pipe && it.text.starts_with(OUTPUT_PIPE));
        let more: Vec<usize> = args.iter().filter(feeds).flat_map(|it| it.from.clone()).collect();
        fed_by.extend(more);
        fed_by.dedup();
        Invocation {
            name,
            called,
            args,
            folder: scope.folder.path.clone(),
            input: input.clone(),
            fed_by,
            wrappers: self.starters.iter().cloned().chain(wrappers).collect(),
            links: scope.links.clone(),
            container: scope.container.clone(),
            ..Invocation::default()
        }
    }

    /// Returns the name of a program. What the line copied or linked from a listed program has that name, unless its own name
    /// is listed, too: the copy can fail.
    fn real_name(&self, called: &ShellText, scope: &ShellState) -> String {
        let own = called.all().map(program_name).unwrap_or_default();
        let is_known = own.is_empty() || self.names_program(&own);
        let original = || self.originals(called, scope).into_iter().next();
        if is_known { own } else { original().unwrap_or(own) }
    }

    /// Returns the names of the listed programs of which a path can be a copy or a link that the line made.
    fn originals(&self, called: &ShellText, scope: &ShellState) -> Vec<String> {
        let Some(path) = called.all().filter(|it| it.contains('/')) else { return Vec::new() };
        // Most lines copy and link nothing.
        if scope.files.is_empty() && scope.links.is_empty() {
            return Vec::new();
        }
        let file = ShellText::known(path);
        let link = self.resolve_path(&file, scope).absolute.filter(|_| !scope.links.is_empty());
        let written = self.known_content(&file, scope);
        let copied = written.iter().flat_map(|it| self.copied_files(it));
        let mut names: Vec<String> = Vec::new();
        for path in copied.filter_map(|it| it.all().map(str::to_owned)).chain(link) {
            let name = program_name(&path);
            if self.names_program(&path) && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Returns the files of which a file that the line wrote is a copy.
    pub(super) fn copied_files(&self, written: &StandardInput) -> Vec<ShellText> {
        let from = written.from.iter().filter(|_| written.text.is_none());
        let programs = from.filter_map(|at| self.call.programs.get(*at));
        let files = programs.flat_map(|program| match program.name.as_str() {
            "cp" | "mv" | "install" | "ln" | "cat" => {
                let operands = program.operands(self.context.lens.value_options());
                operands.into_iter().cloned().collect()
            }
            "dd" => {
                let read = program.args.iter().filter_map(|it| it.all()?.strip_prefix("if="));
                read.map(ShellText::known).collect()
            }
            _ => Vec::new(),
        });
        files.collect()
    }

    /// Starts a program, or a builtin of the shell, that wraps no other program.
    pub(super) fn start_program(
        &mut self,
        simple: SimpleCommand,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> ShellOutput {
        let SimpleCommand { words, redirects, mut wrappers, .. } = simple;
        let starts_lines = self.starts_lines(&words);
        if let Some(lines) = input.text.as_deref().filter(|_| starts_lines) {
            wrappers.extend(words.first().map(|it| called_name(&it.text).to_owned()));
            let output = self.run_text(
                wrappers,
                lines,
                &mut scope.of_a_process(),
                &StandardInput::default(),
            );
            return self.redirect_output(redirects, output, scope);
        }
        let mut program = self.build_invocation(&words, scope, input, wrappers);
        if program.called.text.is_empty() {
            return ShellOutput::empty();
        }
        program.runs_unknown = starts_lines && input.piped;
        // The words behind the image are a command of the container.
        if !self.run_in_container(&program, scope, input) {
            self.scan_hidden(&program, scope, input);
        }
        self.apply_builtin(&program, scope, input);
        if matches!(program.name.as_str(), "source" | ".") {
            if let Some(output) = self.source_file(&mut program, &redirects, scope, input) {
                return output;
            }
        } else if let Some(source) = self.find_code(&mut program, scope) {
            self.run_code_of(&program, source, &redirects.reads, scope);
        }
        // The line may start a file that it wrote itself: `./x.sh`.
        if program.called.text.contains('/')
            && let Some(written) = self.known_content(&program.called.clone(), scope)
        {
            if let Some(text) = &written.text {
                let parameters = Some(program.args.clone());
                let mut inner = ShellState { parameters, ..scope.of_a_process() };
                return self.run_text(Vec::new(), text, &mut inner, input);
            }
            if self.originals(&program.called, scope).is_empty() {
                program.runs_unknown = true;
                self.run_file(&program.called, ScriptKind::Named, &program.args, scope);
                program.fed_by.extend(written.from);
            }
        } else if program.called.text.contains('/') || is_code_file(&program.name) {
            self.run_file(&program.called, ScriptKind::Named, &program.args, scope);
        }
        program.reads.clone_from(&redirects.reads);
        self.run_files_of(&program, scope);
        let fetched = self.fetched_project(&program, scope);
        program.runs_unknown |= !fetched.is_empty();
        program.fed_by.extend(fetched);
        let code = program.code.clone();
        let name = program.name.clone();
        let output = self.finish_program(program, redirects, scope);
        if !code.is_empty() {
            self.run_code(&name, &code, scope);
        }
        output
    }

    /// Reads the file that `source` runs in this shell. Returns its output if the text is known from the line.
    fn source_file(
        &mut self,
        program: &mut Invocation,
        redirects: &Redirects,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> Option<ShellOutput> {
        let file = program.args.first().cloned().unwrap_or_default();
        let written = self.known_content(&file, scope);
        let is_input = is_standard_input(&file.text);
        let read = program.input.text.clone().filter(|_| is_input);
        let known = written.as_ref().and_then(|it| it.text.clone());
        if let Some(text) = known.or_else(|| file.piped.clone()).or(read) {
            return Some(self.scan_text(&text, scope, input));
        }
        scope.forget_empty();
        program.runs_unknown = file.pipe || written.is_some() || (is_input && input.piped);
        program.fed_by.extend(written.into_iter().flat_map(|it| it.from));
        let args = program.args.get(1..).unwrap_or_default();
        self.run_file(&file, ScriptKind::Shell, args, scope);
        self.run_printed(&file.from, &ScriptKind::Shell, scope);
        let inputs = if is_input { redirects.reads.as_slice() } else { &[] };
        inputs.iter().for_each(|it| self.run_file(it, ScriptKind::Shell, args, scope));
        None
    }

    /// Analyzes the code of an interpreter that is not in the line. `reads` are the files that its input is redirected from.
    fn run_code_of(
        &mut self,
        program: &Invocation,
        source: CodeSource,
        reads: &[ShellText],
        scope: &ShellState,
    ) {
        let kind = ScriptKind::Code(program.name.clone());
        let (files, args) = match source {
            CodeSource::Argument(at) => program.args.split_at(at + 1),
            CodeSource::Programs(from) => return self.run_printed(&from, &kind, scope),
            CodeSource::Input => {
                self.run_printed(&program.input.from, &kind, scope);
                return reads.iter().for_each(|it| self.run_file(it, kind.clone(), &[], scope));
            }
        };
        if let Some(file) = files.last() {
            self.run_file(file, kind, args, scope);
        }
    }

    /// Adds a program and returns its output.
    pub(super) fn finish_program(
        &mut self,
        mut program: Invocation,
        redirects: Redirects,
        scope: &mut ShellState,
    ) -> ShellOutput {
        program.writes.clone_from(&redirects.writes);
        program.appends.clone_from(&redirects.appended);
        program.reads.clone_from(&redirects.reads);
        let text = printed_text(&program, self.context.around, |it| {
            self.known_content(it, scope).and_then(|it| it.text)
        });
        let files = self.listed_files(&program);
        let elsewhere = (!scope.folder.others.is_empty()).then(|| program.clone());
        let originals = self.originals(&program.called, scope);
        let others: Vec<Invocation> = originals
            .into_iter()
            .filter(|it| *it != program.name)
            .map(|name| Invocation { name, ..program.clone() })
            .collect();
        let text = text.filter(|_| elsewhere.is_none() || program.name != "pwd");
        if text.as_ref().is_some_and(String::is_empty) {
            program.fed_by.extend(emptied_by(&program.writes, &program.appends));
        }
        let Some(at) = self.add_program(program) else { return ShellOutput::default() };
        let output = ShellOutput { text, from: vec![at], files };
        self.record_effects(at, &output, scope);
        if let Some(program) = elsewhere {
            self.add_elsewhere(&program, &output, scope);
        }
        for other in others {
            if let Some(at) = self.add_program(other) {
                self.record_effects(at, &output, scope);
            }
        }
        self.record_link(at, scope);
        self.record_content(&redirects, &output, scope);
        let program = self.call.programs.get(at);
        if program.is_some_and(|it| it.name == "exec" && it.args.is_empty()) {
            scope.descriptors.extend(redirects.opened);
        }
        if redirects.away { ShellOutput::empty() } else { output }
    }

    /// Adds a program once more for each other directory in which it may run.
    fn add_elsewhere(
        &mut self,
        program: &Invocation,
        output: &ShellOutput,
        scope: &mut ShellState,
    ) {
        let before = scope.folder.clone();
        for folder in &before.others {
            scope.folder = WorkingFolder::certain(Some(folder.clone()));
            let program = Invocation { folder: Some(folder.clone()), ..program.clone() };
            if let Some(at) = self.add_program(program) {
                self.record_effects(at, output, scope);
            }
        }
        scope.folder = before;
    }

    /// Records the target of a link that `ln` creates, after the effects of the program itself.
    fn record_link(&self, at: usize, scope: &mut ShellState) {
        let Some(program) = self.call.programs.get(at).filter(|it| it.name == "ln") else { return };
        let paths: Vec<&ShellText> =
            program.args.iter().filter(|it| !it.text.starts_with('-')).collect();
        let Some((last, before)) = paths.split_last() else { return };
        // With one operand, or with several targets, each link has the name of its target.
        let within = |target: &ShellText, folder: &str| {
            Some(ShellText::known(in_folder(
                folder,
                base_name(target.all()?.trim_end_matches('/')),
            )))
        };
        let into = last.all().filter(|it| before.len() > 1 || it.ends_with('/'));
        let links: Vec<(&ShellText, Option<ShellText>)> = match (before, into) {
            ([], _) => vec![(last, within(last, "."))],
            (before, Some(folder)) => before.iter().map(|it| (*it, within(it, folder))).collect(),
            (before, None) => before.iter().map(|it| (*it, Some((*last).clone()))).collect(),
        };
        for (target, link) in links {
            let target = self.resolve_path(target, scope).absolute;
            let link = link.and_then(|it| self.resolve_path(&it, scope).absolute);
            scope.links.extend(link.zip(target).filter(|(link, target)| link != target));
        }
    }

    /// Redirects the output of shell text or of a function.
    pub(super) fn redirect_output(
        &mut self,
        redirects: Redirects,
        output: ShellOutput,
        scope: &mut ShellState,
    ) -> ShellOutput {
        self.add_redirect_program(&redirects, scope);
        self.record_content(&redirects, &output, scope);
        if redirects.away { ShellOutput::empty() } else { output }
    }
}

/// Returns the name of a program: without its directory and `.exe`, and in lower case if all
/// letters are capitals.
fn program_name(called: &str) -> String {
    let base = base_name(called);
    let base = if base.contains(":\\") { base.rsplit('\\').next().unwrap_or(base) } else { base };
    let base = called_name(base);
    // A version belongs to the package that `npx` gets: `rimraf@5`.
    let base = base.split_once('@').map_or(base, |(it, _)| if it.is_empty() { base } else { it });
    match base.len() > 1 && base.bytes().all(|b| b.is_ascii_uppercase()) {
        true => base.to_lowercase(),
        false => base.to_owned(),
    }
}

impl Scanner<'_> {
    /// Applies the effect of a builtin on the shell state.
    pub(super) fn apply_builtin(
        &mut self,
        program: &Invocation,
        scope: &mut ShellState,
        input: &StandardInput,
    ) {
        let first = program.args.iter().find(|it| !it.text.starts_with('-') || it.text == "-");
        match program.name.as_str() {
            "cd" | "pushd" | "chdir" => {
                let home = &self.context.around.home;
                let folder = match first {
                    None => Some(home.clone()).filter(|it| !it.is_empty()).map(ShellText::known),
                    Some(folder) if folder.text == "-" => None,
                    folder => folder.filter(|it| it.is_known()).cloned(),
                };
                self.change_folder(folder.as_ref(), scope);
            }
            "popd" => scope.folder = WorkingFolder::default(),
            "read" => apply_read(&program.args, input, scope),
            "mapfile" | "readarray" => {
                if let Some(name) = operands(&program.args, "dnOsuCc").last() {
                    let lines =
                        input.text.as_ref().map(|it| it.lines().map(ShellText::data).collect());
                    let lines = lines.unwrap_or_else(|| vec![unknown_input(name, input)]);
                    scope.variables.insert(name.text.clone(), lines);
                }
            }
            "set" if program.args.first().is_some_and(|it| it.text == "--") => {
                scope.parameters = Some(program.args.iter().skip(1).cloned().collect());
            }
            "set" if program.args.iter().any(|it| ends_on_error(&it.text)) => {
                scope.ends_on_error = !program.args.iter().any(|it| it.text.starts_with('+'));
            }
            "shift" => {
                if let Some(parameters) = scope.parameters.as_mut().filter(|it| !it.is_empty()) {
                    parameters.remove(0);
                }
            }
            "alias" => {
                for (name, body) in program.args.iter().filter_map(|it| it.all()?.split_once('=')) {
                    scope.alias(name, body);
                }
            }
            "printf" => {
                let joined = program.args.first().and_then(|it| it.text.strip_prefix("-v"));
                let name = match joined {
                    Some("") => program.args.get(1).map(|it| it.text.as_str()),
                    joined => joined,
                };
                if let Some(name) = name {
                    let skipped = if joined == Some("") { 2 } else { 1 };
                    let rest = program.args.get(skipped..).unwrap_or_default();
                    let rest: Option<Vec<&str>> = rest.iter().map(ShellText::all).collect();
                    let printed = rest.filter(|it| !it.is_empty()).and_then(|it| printf(&it));
                    match printed {
                        Some(text) => {
                            scope.variables.insert(name.to_owned(), vec![ShellText::data(text)]);
                        }
                        None => scope.forget(name),
                    }
                }
            }
            "return" | "break" if is_here(program) => self.functions.may_end(),
            "exit" if is_here(program) => self.functions.may_all_end(),
            "trap" => {
                self.at_the_end.extend(first.and_then(ShellText::all).map(str::to_owned));
            }
            _ => {}
        }
    }
}

/// Represents the unknown name of a file that `mktemp` creates.
const TEMPORARY_NAME: &str = "mktemp.XXXXXX";
/// Programs that create the directories that they name.
const CREATORS: [&str; 14] = [
    "mkdir", "git", "gh", "cp", "mv", "ln", "tar", "unzip", "cargo", "npm", "npx", "cmake",
    "install", "rsync",
];

impl Scanner<'_> {
    /// Changes the working directory to `target`, `None` if that is unknown.
    fn change_folder(&self, target: Option<&ShellText>, scope: &mut ShellState) {
        let Some(target) = target else {
            scope.folder = WorkingFolder::default();
            return;
        };
        let changed = scope.folder.changed(|it| self.resolve_here(target, it, scope).absolute);
        let is_missing = |it: &&str| self.context.disk.is_directory(it) == Some(false);
        let is_own = scope.container.is_none();
        let missing = changed.path.as_deref().filter(|it| is_own && is_missing(it));
        let before = std::mem::replace(&mut scope.folder, changed.clone());
        if missing.is_some_and(|it| !self.is_created(it)) {
            scope.failed = Some(before);
        }
    }

    /// Returns whether the line creates a directory, as far as the names of its programs tell.
    fn is_created(&self, folder: &str) -> bool {
        let name = base_name(folder);
        let is_it = |it: &ShellText| {
            let word = it.text.trim_end_matches('/');
            let word = word.strip_suffix(".git").unwrap_or(word);
            word == folder || base_name(word) == name || word.split('/').any(|it| it == name)
        };
        let is_temporary = |it: &Invocation| it.name == "mktemp" && name == TEMPORARY_NAME;
        let mut programs = self.call.programs.iter();
        programs.any(|program| {
            let creates = CREATORS.contains(&program.name.as_str());
            is_temporary(program) || (creates && program.args.iter().any(is_it))
        })
    }
}

/// Returns whether an argument of `set` is the option by which a shell ends at the first error, with either sign.
fn ends_on_error(arg: &str) -> bool {
    let letters = arg.strip_prefix(['-', '+']).unwrap_or_default();
    arg == "errexit" || letters.contains('e')
}

/// Returns whether the shell itself runs a builtin, and not a program that it starts.
fn is_here(program: &Invocation) -> bool {
    const OF_SHELL: [&str; 3] = ["eval", "builtin", "command"];
    program.wrappers.iter().all(|it| OF_SHELL.contains(&it.as_str()) || is_keyword(it))
}

/// Returns the arguments that are neither options nor values of the options with these letters.
fn operands<'a>(args: &'a [ShellText], valued: &str) -> Vec<&'a ShellText> {
    let mut found = Vec::new();
    let mut is_value = false;
    for arg in args {
        if std::mem::take(&mut is_value) {
            continue;
        }
        match arg.text.strip_prefix('-').filter(|it| !it.is_empty()) {
            Some(letters) => is_value = letters.ends_with(|c| valued.contains(c)),
            None => found.push(arg),
        }
    }
    found
}

/// Returns the value of a variable that was read from unknown input.
fn unknown_input(name: &ShellText, input: &StandardInput) -> ShellText {
    ShellText { from: input.from.clone(), ..ShellText::unknown(format!("${}", name.text)) }
}

/// Applies `read`: each name gets one word of the first line, the last name gets the rest.
fn apply_read(args: &[ShellText], input: &StandardInput, scope: &mut ShellState) {
    let mut names = operands(args, "adinNptu");
    let reply = ShellText::known("REPLY");
    let has =
        |letter: char| args.iter().any(|it| it.text.starts_with('-') && it.text.contains(letter));
    if names.is_empty() {
        names.push(&reply);
    }
    let Some(text) = input.text.as_ref().filter(|_| !has('a')) else {
        // Each line is the path of a file: `find | while read file`.
        let is_path = names.len() == 1 && !has('a') && !input.files.is_empty();
        let listed = if is_path { input.files.as_slice() } else { &[] };
        for name in args.iter().filter(|it| !it.text.starts_with('-')).chain(names) {
            let is_all = is_path && listed.len() <= INPUT_VALUES_MAX;
            let unknown = (!is_all).then(|| unknown_input(name, input));
            let named = |it: &ShellText| ShellText { from: input.from.clone(), ..it.clone() };
            let values = listed.iter().take(INPUT_VALUES_MAX).map(named).chain(unknown);
            scope.variables.insert(name.text.clone(), values.collect());
        }
        return;
    };
    let mut line = String::new();
    match (has('r'), has('d')) {
        (_, true) => text.clone_into(&mut line),
        (true, false) => line.push_str(text.lines().next().unwrap_or_default()),
        // A line that ends with a backslash continues.
        (false, false) => {
            unescape(&first_line(text), |_| true, &mut line);
        }
    }
    let separators = scope.separators().unwrap_or(" \t\n").to_owned();
    let is_blank = |c: char| separators.contains(c);
    let mut rest = line.trim_matches(is_blank);
    for (at, name) in names.iter().enumerate() {
        let is_last = at + 1 == names.len();
        let (word, after) = match is_last {
            true => (rest, ""),
            false => rest.split_once(is_blank).unwrap_or((rest, "")),
        };
        rest = after.trim_start_matches(is_blank);
        scope.variables.insert(name.text.clone(), vec![ShellText::data(word)]);
    }
}

/// Returns the first line and its continuation lines.
fn first_line(text: &str) -> String {
    let mut line = String::new();
    for part in text.lines() {
        line.push_str(part);
        let backslashes = part.len() - part.trim_end_matches('\\').len();
        if backslashes % 2 == 0 {
            break;
        }
        line.push('\n');
    }
    line
}

/// The file without content.
const NOTHING: &str = "/dev/null";
/// Programs that print lines of their input, all or some.
const FILTERS: [&str; 9] = ["grep", "egrep", "rg", "head", "tail", "sort", "uniq", "tac", "shuf"];

/// Returns the text that a program prints, if it is known without running the program. `written`
/// returns the content that the line wrote into a file.
fn printed_text(
    program: &Invocation,
    around: &CallEnvironment,
    written: impl Fn(&ShellText) -> Option<String>,
) -> Option<String> {
    let args: Vec<ShellText> =
        program.args.iter().map(|it| it.clone().with_home(&around.home)).collect();
    let args: Option<Vec<&str>> = args.iter().map(ShellText::all).collect();
    let operands = || program.args.iter().filter(|it| !it.text.starts_with('-') || it.text == "-");
    match program.name.as_str() {
        "mktemp" => Some(format!("{}/{TEMPORARY_NAME}\n", around.temporary.first()?)),
        "pwd" => Some(format!("{}\n", program.folder.as_ref()?)),
        "echo" => Some(echo(&args?)),
        "printf" => printf(&args?),
        "true" | ":" | "cd" | "export" | "set" | "mkdir" | "touch" | "sleep" => Some(String::new()),
        "git" if args.as_deref() == Some(&["rev-parse", "--show-toplevel"]) => {
            Some(format!("{}\n", around.project))
        }
        "cat" => {
            let files: Vec<&ShellText> = operands().collect();
            match files.as_slice() {
                [] => program.input.text.clone(),
                [one] if one.text == "-" => program.input.text.clone(),
                files => files
                    .iter()
                    .map(|it| if it.text == NOTHING { Some(String::new()) } else { written(it) })
                    .collect::<Option<Vec<_>>>()
                    .map(|it| it.concat()),
            }
        }
        "tee" => program.input.text.clone(),
        "base64" if args.as_ref()?.iter().any(|it| matches!(*it, "-d" | "-D" | "--decode")) => {
            base64(program.input.text.as_deref()?)
        }
        "xxd" if args.as_ref()?.iter().any(|it| it.starts_with("-r")) => {
            hex(program.input.text.as_deref()?)
        }
        "rev" => {
            let text = program.input.text.as_deref()?;
            let lines: Vec<String> = text.lines().map(|it| it.chars().rev().collect()).collect();
            Some(lines.join("\n"))
        }
        "dirname" => {
            let path = operands().next()?.all()?;
            Some(path.trim_end_matches('/').rsplit_once('/').map_or(".", |it| it.0).to_owned())
        }
        "which" => found(&args?),
        "command" if args.as_ref()?.first() == Some(&"-v") => found(&args?),
        "type" if args.as_ref()?.iter().any(|it| matches!(*it, "-p" | "-P")) => found(&args?),
        // If the path is a link, its target is resolved where the path is used.
        "readlink" | "realpath" => {
            let path = around.known_place(operands().next()?.all()?, program.folder.as_deref());
            Some(format!("{}\n", path.absolute?))
        }
        "basename" => Some(operands().next()?.all()?.rsplit('/').next()?.to_owned()),
        _ => None,
    }
}

impl Scanner<'_> {
    /// Returns the files whose names a program prints, as in [`ShellOutput::files`].
    fn listed_files(&self, program: &Invocation) -> Vec<ShellText> {
        let name = program.name.as_str();
        if name == "find" {
            let roots = find_roots(&program.args);
            return roots.iter().flat_map(|it| found_files(it, &program.args)).collect();
        }
        if FILTERS.contains(&name) && program.input.piped {
            return program.input.files.clone();
        }
        let values = self.context.lens.value_options();
        let is = |it: &&CommandPattern| program.is(it, values);
        let rows = self.context.knowledge.effects.named(name);
        let mut rows = rows.filter(|it| it.lists != OperandSelector::None);
        let found = rows.find_map(|row| {
            let pattern = row.programs.iter().find(is)?;
            (!row.except.iter().any(|it| is(&it))).then_some((pattern, row))
        });
        let Some((pattern, row)) = found else { return Vec::new() };
        let own_words = pattern.operands(name, values);
        let operands: Vec<&ShellText> =
            program.operands(values).into_iter().skip(own_words).collect();
        let chosen = operands.iter().enumerate();
        let chosen = chosen.filter(|it| row.lists.takes(it.0, operands.len()));
        let below: Vec<ShellText> = chosen.map(|it| it.1.below()).collect();
        if below.is_empty() { vec![ShellText::known(".").below()] } else { below }
    }
}

/// Returns the path of each program that `which` searches for. The installation directory is
/// unknown; `/usr/local/bin` is assumed.
fn found(args: &[&str]) -> Option<String> {
    let names = args.iter().filter(|it| !it.starts_with('-'));
    let paths: String =
        names
            .map(|it| {
                if it.contains('/') { format!("{it}\n") } else { format!("/usr/local/bin/{it}\n") }
            })
            .collect();
    Some(paths).filter(|it| !it.is_empty())
}

fn echo(args: &[&str]) -> String {
    let is_option = |it: &&&str| {
        it.len() > 1
            && it.strip_prefix('-').is_some_and(|it| it.bytes().all(|b| b"neE".contains(&b)))
    };
    let options: Vec<&&str> = args.iter().take_while(is_option).collect();
    let has = |c: char| options.iter().any(|it| it.contains(c));
    let text = args.get(options.len()..).unwrap_or_default().join(" ");
    let text = if has('e') { escaped(&text) } else { text };
    if has('n') { text } else { format!("{text}\n") }
}

fn printf(args: &[&str]) -> Option<String> {
    let args = args.strip_prefix(&["--"]).unwrap_or(args);
    let (format, values) = args.split_first()?;
    let mut values = values.iter();
    let mut out = String::new();
    loop {
        let left = values.len();
        let mut rest = *format;
        while let Some((before, after)) = rest.split_once('%') {
            out.push_str(&escaped(before));
            let mut chars = after.chars();
            let kind = chars.next()?;
            rest = chars.as_str();
            match kind {
                '%' => out.push('%'),
                's' | 'd' | 'i' => out.push_str(values.next().copied().unwrap_or_default()),
                'b' => out.push_str(&escaped(values.next().copied().unwrap_or_default())),
                _ => return None,
            }
        }
        out.push_str(&escaped(rest));
        if values.len() == 0 || values.len() == left {
            break;
        }
    }
    Some(out)
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    unescape_ansi(text, &mut out);
    out
}

fn base64(text: &str) -> Option<String> {
    let mut bits = 0_u32;
    let (mut held, mut out) = (0_u32, Vec::new());
    for byte in text.bytes().filter(|b| !b.is_ascii_whitespace() && *b != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push(u8::try_from((bits >> held) & 0xff).unwrap_or_default());
        }
    }
    String::from_utf8(out).ok()
}

fn hex(text: &str) -> Option<String> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16))
        .collect::<Option<_>>()?;
    let bytes: Option<Vec<u8>> = digits
        .chunks(2)
        .map(|it| match it {
            [high, low] => u8::try_from(high * 16 + low).ok(),
            _ => None,
        })
        .collect();
    String::from_utf8(bytes?).ok()
}

/// Returns the arguments of `tar` with the letters of its old form as options: `-czf` for `czf`. The letter of the archive is
/// last, because its value follows.
fn with_tar_options(mut args: Vec<ShellText>) -> Vec<ShellText> {
    let modes = ['c', 'x', 't', 'r', 'u', 'A'];
    if let Some(first) = args.first_mut()
        && let Some(text) = first.all().map(str::to_owned)
        && !text.is_empty()
        && text.bytes().all(|it| it.is_ascii_alphabetic())
        && text.chars().filter(|it| modes.contains(it)).count() == 1
    {
        let (archive, letters): (String, String) = text.chars().partition(|it| *it == 'f');
        *first = ShellText::known(format!("-{letters}{archive}"));
    }
    args
}
