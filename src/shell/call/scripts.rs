//! Files that a call runs: `bash x.sh`, `python x.py`, `./x`, `make t`, `npm run t`, `psql -f x.sql`.
//!
//! Contains: which programs run which file, and the analysis of such a file as a separate call.
//! Does not contain: the files of task runners (`recipes`), files that the line itself wrote (`statements`).
//!
//! The file is analyzed as it is now. What another program writes into it before it runs is not seen.

use std::path::Path;
use std::rc::Rc;

use super::analysis_context::AnalysisContext;
use super::container_mounts::ContainerMounts;
use super::disk::ScriptFile;
use super::invocation::{Invocation, StandardInput};
use super::program_database::FileEffect;
use super::recipes::{TaskLines, TaskSource, image_commands, justfile, makefile, package_scripts};
use super::scanner::Scanner;
use super::shell_state::{MANY_VALUES, ShellState, WorkingFolder};
use super::shell_text::ShellText;
use super::tool_call::{Call, Script};
use crate::path::in_folder;
use crate::shell::base_name;

/// Endings of files of code, each with a program that reads it.
const LANGUAGES: [(&str, &str); 8] = [
    (".py", "python3"),
    (".js", "node"),
    (".mjs", "node"),
    (".cjs", "node"),
    (".ts", "node"),
    (".rb", "ruby"),
    (".pl", "perl"),
    (".php", "php"),
];
/// The subcommand of `go` that runs a program.
const RUNS: &str = "run";
/// Options with which a task runner only prints what it would do.
const PRINT_ONLY: [&str; 4] = ["-n", "--dry-run", "--just-print", "--recon"];

/// Endings of other files of code that tests and builds load, each with the name of its language.
const LOADED: [(&str, &str); 34] = [
    (".jsx", "node"),
    (".mts", "node"),
    (".cts", "node"),
    (".tsx", "node"),
    (".vue", "node"),
    (".svelte", "node"),
    (".rake", "ruby"),
    (".gemspec", "ruby"),
    ("Rakefile", "ruby"),
    ("Gemfile", "ruby"),
    (".pm", "perl"),
    (".t", "perl"),
    (".rs", "rust"),
    (".go", "go"),
    (".java", "java"),
    (".kt", "kotlin"),
    (".kts", "kotlin"),
    (".groovy", "groovy"),
    (".gradle", "groovy"),
    (".scala", "scala"),
    (".sbt", "scala"),
    (".swift", "swift"),
    (".cs", "csharp"),
    (".c", "c"),
    (".cc", "c"),
    (".cpp", "c"),
    (".h", "c"),
    (".hpp", "c"),
    (".ex", "elixir"),
    (".exs", "elixir"),
    (".lua", "lua"),
    (".jl", "julia"),
    (".R", "Rscript"),
    ("Dockerfile", IMAGE),
];
/// The language of files that build an image.
const IMAGE: &str = "dockerfile";

/// Returns whether a name has the ending of a file of code.
pub(super) fn is_code_file(name: &str) -> bool {
    LANGUAGES.iter().any(|it| name.ends_with(it.0))
}

/// Returns whether a path is one of code that tests and builds can load.
#[must_use]
pub fn is_code_path(path: &str) -> bool {
    loaded_language(base_name(path)).is_some()
}

/// Returns the language of a file of code that tests and builds can load.
fn loaded_language(name: &str) -> Option<&'static str> {
    if name.starts_with("Dockerfile.") || name == "Containerfile" {
        return Some(IMAGE);
    }
    LANGUAGES.iter().chain(&LOADED).find(|it| name.ends_with(it.0)).map(|it| it.1)
}

/// The file of a task runner.
struct TaskFile {
    /// Absolute path. `None` if the line writes the file.
    path: Option<String>,
    /// `None` if the text is not analyzed, which is recorded.
    text: Option<String>,
}

/// A file that runs, with its arguments.
pub(super) type ScriptRun = (String, Vec<ShellText>);

/// How a file is read.
#[derive(Debug, Clone)]
pub(super) enum ScriptKind {
    /// By a shell.
    Shell,
    /// By the interpreter of this name.
    Code(String),
    /// By the program that its first line names.
    Named,
    /// As input of a program, such as statements of a data base.
    Input(Box<Invocation>),
}

impl ScriptKind {
    /// Returns the file that runs if a program is given a directory: `python3 tools`.
    fn main_file(&self) -> Option<&'static str> {
        let Self::Code(name) = self else { return None };
        let mains = [("python", "__main__.py"), ("node", "index.js"), ("bun", "index.ts")];
        mains.iter().find(|it| name.starts_with(it.0)).map(|it| it.1)
    }
}

impl Call {
    /// Adds files of code that a program loads by itself, such as files of tests, to those that the call runs.
    pub fn load_files<'p>(
        &mut self,
        paths: impl Iterator<Item = &'p str>,
        context: AnalysisContext<'_>,
    ) {
        let folder = WorkingFolder::certain(Some(context.around.project.clone()));
        let scope = ShellState { folder, ..ShellState::default() };
        let mut bytes = None;
        for path in paths {
            if self.all_scripts().iter().any(|it| it.path == path) {
                continue;
            }
            let mut loaded = Self { tool: self.tool.clone(), ..Self::default() };
            let mut scanner = Scanner::new(&mut loaded, context);
            // Each file may run others, but all together are read to one limit.
            scanner.scripts_left.bytes = bytes.unwrap_or(scanner.scripts_left.bytes);
            match loaded_language(base_name(path)) {
                Some(IMAGE) => scanner.build_image(path, &scope),
                Some(language) => {
                    let kind = ScriptKind::Code(language.to_owned());
                    scanner.run_path(path.to_owned(), kind, &[], &scope);
                }
                None => {}
            }
            bytes = Some(scanner.scripts_left.bytes);
            self.scripts.append(&mut loaded.scripts);
        }
    }

    /// Adds a file that the call runs and that is not analyzed.
    pub fn add_unread(&mut self, path: &str, why: &str) {
        let mut script = Script { path: path.to_owned(), ..Script::default() };
        script.call.tool.clone_from(&self.tool);
        script.call.over(why);
        if !self.scripts.contains(&script) {
            self.scripts.push(script);
        }
    }

    /// Returns the files that the call runs, and those that these run.
    #[must_use]
    pub fn all_scripts(&self) -> Vec<&Script> {
        let mut found: Vec<&Script> = self.scripts.iter().collect();
        let mut at = 0;
        while let Some(script) = found.get(at).copied() {
            found.extend(&script.call.scripts);
            at += 1;
        }
        found
    }
}

impl Scanner<'_> {
    /// Analyzes a file that a program runs with some arguments.
    pub(super) fn run_file(
        &mut self,
        file: &ShellText,
        kind: ScriptKind,
        args: &[ShellText],
        scope: &ShellState,
    ) {
        // What the line writes is not on the disk yet. Of a copy, the original is.
        let written = self.known_content(file, scope);
        let copied = written.as_ref().map(|it| self.copied_files(it).into_iter().next());
        let file = match &copied {
            None => file,
            Some(Some(original)) => original,
            Some(None) => return,
        };
        let place = self.resolve_path(file, scope);
        if file.text.contains(MANY_VALUES) {
            return self.mark_over_limit("it runs one of many files");
        }
        // Scripts work with variables, so an unknown file passes.
        let Some(path) = place.absolute.filter(|_| file.is_known()) else { return };
        // The value of a loop over a glob is the glob, also in quotes.
        let is_glob = place.glob
            || (path.contains(['*', '?']) && self.context.disk.exists(&path) == Some(false));
        match is_glob {
            true => self.run_matches(&path, &kind, args, scope),
            false => self.run_path(path, kind, args, scope),
        }
    }

    /// Analyzes the files that fit a glob. Which of them run is not known.
    fn run_matches(
        &mut self,
        pattern: &str,
        kind: &ScriptKind,
        args: &[ShellText],
        scope: &ShellState,
    ) {
        match self.context.disk.matches(pattern) {
            Some(paths) => {
                paths.into_iter().for_each(|it| self.run_path(it, kind.clone(), args, scope));
            }
            None => self.call.add_unread(pattern, "which files its glob fits is not known"),
        }
    }

    /// Analyzes the file at an absolute path.
    fn run_path(&mut self, path: String, kind: ScriptKind, args: &[ShellText], scope: &ShellState) {
        let run = (path.clone(), args.to_vec());
        if self.running.contains(&run) {
            return;
        }
        if self.context.disk.is_directory(&path) == Some(true) {
            let main = kind.main_file().map(|it| in_folder(&path, it));
            main.into_iter().for_each(|it| self.run_path(it, kind.clone(), args, scope));
            return;
        }
        let file = self.context.disk.script(&path);
        let is_started = matches!(kind, ScriptKind::Named);
        let Some(text) = self.script_text(&path, file, is_started) else { return };
        let mut inner = ShellState { parameters: Some(args.to_vec()), ..scope.of_a_process() };
        let own = ShellText::known(path.as_str());
        for name in ["0", "BASH_SOURCE"] {
            inner.variables.insert(name.to_owned(), vec![own.clone()]);
        }
        let kind = match kind {
            ScriptKind::Named => self.named_kind(&path, &text),
            kind @ (ScriptKind::Shell | ScriptKind::Code(_) | ScriptKind::Input(_)) => Some(kind),
        };
        let Some(kind) = kind else {
            return self.call.add_unread(&path, "policyd does not read its language");
        };
        inner.ends_on_error |= has_error_option(&text);
        let script = Script { path, text: text.clone(), ..Script::default() };
        self.add_script(script, run, |scanner| match &kind {
            ScriptKind::Shell | ScriptKind::Named => {
                // Unlike those of a command line, functions that a script does not call do not run.
                scanner.scan_to_end(&text, &mut inner);
            }
            ScriptKind::Code(name) => {
                scanner.lines_of = Some(usize::MAX);
                scanner.run_code(name, &text, &mut inner);
            }
            ScriptKind::Input(program) => {
                let input = StandardInput {
                    piped: true,
                    text: Some(text.clone()),
                    ..StandardInput::default()
                };
                scanner.line = changing_line(&text);
                scanner.add_program(Invocation {
                    input,
                    fed_by: Vec::new(),
                    ..(**program).clone()
                });
            }
        });
    }

    /// Returns the text of a file that runs now. `None` if there is nothing to analyze, or if the file cannot be analyzed,
    /// which is recorded. `is_started` if the kernel starts the file.
    fn script_text(&mut self, path: &str, file: ScriptFile, is_started: bool) -> Option<String> {
        let why = match file {
            ScriptFile::Absent => return None,
            ScriptFile::Program if is_started => return None,
            ScriptFile::Program => "it is a compiled program",
            ScriptFile::Unread(why) => why,
            ScriptFile::Text(_) if self.scripts_left.files == 0 => "the call runs too many files",
            ScriptFile::Text(text) if self.scripts_left.bytes < text.len() => {
                "the files that the call runs are too long"
            }
            ScriptFile::Text(text) => {
                self.scripts_left.files -= 1;
                self.scripts_left.bytes -= text.len();
                return Some(text);
            }
        };
        self.call.add_unread(path, why);
        None
    }

    /// Analyzes the commands that build an image. They see no file of this machine, and run in the image.
    fn build_image(&mut self, path: &str, scope: &ShellState) {
        let folder = Path::new(path).parent().unwrap_or(Path::new("/")).display().to_string();
        let state = ShellState {
            container: Some(Rc::new(ContainerMounts::default())),
            folder: WorkingFolder::certain(Some("/".to_owned())),
            ..scope.of_a_process()
        };
        let files = [base_name(path).to_owned()];
        self.run_task_in(&folder, &files, false, &state, |it| image_commands(it.text));
    }

    /// Adds a file whose effects `read` finds with a separate scanner. `run` is the file with its arguments.
    pub(super) fn add_script(
        &mut self,
        mut script: Script,
        run: ScriptRun,
        read: impl FnOnce(&mut Scanner<'_>),
    ) {
        script.call.tool.clone_from(&self.call.tool);
        let mut running = self.running.clone();
        running.push(run);
        let mut inner = Scanner {
            text_depth: self.text_depth,
            nesting: self.nesting,
            running,
            scripts_left: self.scripts_left,
            lines_of: Some(self.text_depth + 1),
            ..Scanner::new(&mut script.call, self.context)
        };
        read(&mut inner);
        self.scripts_left = inner.scripts_left;
        script.lines = std::mem::take(&mut inner.lines);
        self.call.scripts.push(script);
    }

    /// Returns how the program reads a file that its first line names: `#!/usr/bin/env python3`.
    fn named_kind(&self, path: &str, text: &str) -> Option<ScriptKind> {
        let Some(first) = text.strip_prefix("#!") else {
            let language = LANGUAGES.iter().find(|it| path.ends_with(it.0)).map(|it| it.1);
            return Some(language.map_or(ScriptKind::Shell, |it| ScriptKind::Code(it.to_owned())));
        };
        let line = first.lines().next().unwrap_or_default();
        let mut words = line.split_whitespace().map(base_name);
        let name = words.find(|it| *it != "env" && !it.starts_with('-'))?;
        let is_listed = self.context.knowledge.interpreters.named(name).next().is_some();
        match self.is_shell(&ShellText::known(name)) {
            true => Some(ScriptKind::Shell),
            false => is_listed.then(|| ScriptKind::Code(name.to_owned())),
        }
    }

    /// Analyzes the files that a program runs, apart from the script of an interpreter: tasks, and statements.
    pub(super) fn run_files_of(&mut self, program: &Invocation, scope: &ShellState) {
        match program.name.as_str() {
            "make" | "gmake" => self.run_make(program, scope),
            "just" => self.run_just(program, scope),
            "npm" | "pnpm" | "yarn" | "bun" | "composer" => self.run_package_script(program, scope),
            name if name.starts_with("python") => self.run_module(program, scope),
            "go" => self.run_go(program, scope),
            _ if self.run_composed(program, scope) => {}
            _ => self.run_statements(program, scope),
        }
    }

    /// Analyzes the files whose content a program receives as statements: `psql -f x.sql`, `mysql < x.sql`.
    fn run_statements(&mut self, program: &Invocation, scope: &ShellState) {
        let values = self.context.lens.value_options();
        let rows = self.context.knowledge.effects.named(&program.name);
        let rows: Vec<&FileEffect> = rows
            .filter(|row| {
                !row.run_options.is_empty() && row.programs.iter().any(|it| program.is(it, values))
            })
            .collect();
        if rows.is_empty() {
            return;
        }
        let options = rows.iter().flat_map(|it| &it.run_options);
        let mut files: Vec<ShellText> = options.flat_map(|it| program.values(it)).collect();
        files.extend(program.reads.iter().cloned());
        files.extend(self.printed_files(&program.input));
        files.extend(included_statements(program));
        for file in files {
            let kind = ScriptKind::Input(Box::new(program.clone()));
            self.run_file(&file, kind, &[], scope);
        }
    }

    /// Returns the files that an unknown input consists of: `cat x.sql | psql`.
    pub(super) fn printed_files(&self, input: &StandardInput) -> Vec<ShellText> {
        let feeding = input.from.iter().filter_map(|it| self.call.programs.get(*it));
        // `$(<x)` is a `:` that reads.
        let prints = |it: &&Invocation| matches!(it.name.as_str(), "cat" | ":");
        let printers = feeding.filter(|it| prints(it) && input.text.is_none());
        let files = printers.flat_map(|it| it.args.iter().chain(&it.reads));
        files.filter(|it| !it.text.starts_with('-')).cloned().collect()
    }

    /// Analyzes the files whose content is the text of a shell or the code of a program: `eval "$(cat x)"`, `sh <(cat x)`.
    pub(super) fn run_printed(&mut self, from: &[usize], kind: &ScriptKind, scope: &ShellState) {
        let printed = StandardInput { from: from.to_vec(), ..StandardInput::default() };
        for file in self.printed_files(&printed) {
            self.run_file(&file, kind.clone(), &[], scope);
        }
    }

    /// Analyzes a module of Python: `python -m tools.wipe`.
    fn run_module(&mut self, python: &Invocation, scope: &ShellState) {
        let Some(module) = python.values("-m").next() else { return };
        let path = module.text.replace('.', "/");
        for file in [format!("{path}.py"), format!("{path}/__main__.py")] {
            let kind = ScriptKind::Code(python.name.clone());
            self.run_file(&ShellText::known(file), kind, &[], scope);
        }
    }

    /// Analyzes the program that `go run` builds and starts.
    fn run_go(&mut self, go: &Invocation, scope: &ShellState) {
        let operands = self.operand_texts(go);
        let Some((_, rest)) = operands.split_first().filter(|it| it.0 == RUNS) else { return };
        let files = rest.iter().take_while(|it| it.ends_with(".go")).cloned();
        let package = rest.first().filter(|it| it.starts_with('.') && !it.ends_with(".go"));
        let package = package.map(|it| in_folder(it, "*.go"));
        for file in files.chain(package) {
            let kind = ScriptKind::Code("go".to_owned());
            let glob = file.ends_with("*.go");
            self.run_file(&ShellText { glob, ..ShellText::known(file) }, kind, &[], scope);
        }
    }

    fn run_make(&mut self, make: &Invocation, scope: &ShellState) {
        let Some(folder) = self.task_folder(make, &["-C", "--directory"], scope) else { return };
        if PRINT_ONLY.iter().any(|it| make.has(it, self.context.lens.value_options())) {
            return;
        }
        let named = ["-f", "--file", "--makefile"].iter().flat_map(|it| make.values(it));
        let mut files: Vec<Vec<String>> = named.map(|it| vec![it.text]).collect();
        if files.is_empty() {
            files = vec![["GNUmakefile", "makefile", "Makefile"].map(str::to_owned).to_vec()];
        }
        let operands = self.operand_texts(make);
        let (given, targets): (Vec<&str>, Vec<&str>) =
            operands.iter().map(String::as_str).partition(|it| it.contains('='));
        let home = self.context.around.home.clone();
        let own =
            [("CURDIR", folder.as_str()), ("PWD", &folder), ("HOME", &home), ("MAKE", "make")];
        let given = given.iter().filter_map(|it| it.split_once('='));
        let given: Vec<(&str, &str)> = own.into_iter().chain(given).collect();
        for files in files {
            self.run_task(&folder, &files, false, scope, |it| makefile(it, &targets, &given));
        }
    }

    fn run_just(&mut self, just: &Invocation, scope: &ShellState) {
        let options = ["-d", "--working-directory"];
        let Some(folder) = self.task_folder(just, &options, scope) else { return };
        if PRINT_ONLY.iter().any(|it| just.has(it, self.context.lens.value_options())) {
            return;
        }
        let operands = self.operand_texts(just);
        let mut words = operands.iter().map(String::as_str);
        let (wanted, args) = (words.next(), words.collect::<Vec<&str>>());
        let named = ["-f", "--justfile"].iter().find_map(|it| just.values(it).next());
        let climbs = named.is_none();
        let files = match named {
            Some(file) => vec![file.text],
            None => ["justfile", "Justfile", ".justfile"].map(str::to_owned).to_vec(),
        };
        self.run_task(&folder, &files, climbs, scope, |it| justfile(it, wanted, &args));
    }

    /// Analyzes the scripts of a `package.json` with those that run before and after them.
    fn run_package_script(&mut self, runner: &Invocation, scope: &ShellState) {
        let options = ["--prefix", "-C", "--dir", "--cwd"];
        let Some(folder) = self.task_folder(runner, &options, scope) else { return };
        let operands = self.operand_texts(runner);
        let mut words = operands.iter().map(String::as_str);
        let first = words.next();
        let name = match first {
            Some("run" | "run-script" | "rum" | "urn") => words.next(),
            Some("t" | "tst") => Some("test"),
            Some("i" | "ci" | "add") | None => Some("install"),
            own => own,
        };
        let Some(name) = name else { return };
        let names: Vec<String> = match name {
            "install" => {
                ["preinstall", "install", "postinstall", "prepare"].map(str::to_owned).to_vec()
            }
            name => vec![format!("pre{name}"), name.to_owned(), format!("post{name}")],
        };
        let is_composer = runner.name == "composer";
        let files = [if is_composer { "composer.json" } else { "package.json" }.to_owned()];
        self.run_task(&folder, &files, true, scope, |it| package_scripts(it.text, &names));
    }

    fn operand_texts(&self, program: &Invocation) -> Vec<String> {
        let operands = program.operands(self.context.lens.value_options());
        operands.into_iter().map(|it| it.text.clone()).collect()
    }

    /// Returns the directory in which a task runner works. `None` if it is unknown.
    pub(super) fn task_folder(
        &self,
        runner: &Invocation,
        options: &[&str],
        scope: &ShellState,
    ) -> Option<String> {
        match options.iter().find_map(|it| runner.values(it).next()) {
            Some(folder) => self.resolve_path(&folder, scope).absolute,
            None => runner.folder.clone(),
        }
    }

    /// Analyzes the lines of a task, each in a separate shell. Its file is the first of `files` that exists in the
    /// directory, or, if `climbs`, in one above it.
    pub(super) fn run_task(
        &mut self,
        folder: &str,
        files: &[String],
        climbs: bool,
        scope: &ShellState,
        lines: impl FnOnce(&mut TaskSource<'_>) -> TaskLines,
    ) {
        let own = WorkingFolder::certain(Some(folder.to_owned()));
        let state = ShellState { folder: own, ..scope.of_a_process() };
        self.run_task_in(folder, files, climbs, &state, lines);
    }

    /// Analyzes the lines of a task in shells with a state.
    fn run_task_in(
        &mut self,
        folder: &str,
        files: &[String],
        climbs: bool,
        state: &ShellState,
        lines: impl FnOnce(&mut TaskSource<'_>) -> TaskLines,
    ) {
        let mut above = Some(folder);
        while let Some(folder) = above.filter(|it| !it.is_empty()) {
            if let Some(file) = self.task_file(folder, files, state) {
                // A task may run another task of the same file, so the file itself may run already.
                if let Some(text) = file.text {
                    self.run_task_text(folder, file.path, text, state, lines);
                }
                return;
            }
            above = folder.rsplit_once('/').map(|it| it.0).filter(|_| climbs);
        }
    }

    /// Returns the first of some files that a directory has, as it is when the line has come to it.
    fn task_file(
        &mut self,
        folder: &str,
        files: &[String],
        state: &ShellState,
    ) -> Option<TaskFile> {
        for name in files {
            let place = self.context.around.known_place(name, Some(folder));
            let Some(path) = place.absolute else { continue };
            let written = self.known_content(&ShellText::known(path.as_str()), state);
            if let Some(text) = written.as_ref().and_then(|it| it.text.clone()) {
                return Some(TaskFile { path: None, text: Some(text) });
            }
            // Of a copy, the original is on the disk. What else changes a file is not known.
            let original = written.and_then(|it| self.copied_files(&it).into_iter().next());
            let original = original.and_then(|it| self.resolve_path(&it, state).absolute);
            let path = original.unwrap_or(path);
            let file = self.context.disk.script(&path);
            if file != ScriptFile::Absent {
                let text = self.script_text(&path, file, false);
                return Some(TaskFile { path: Some(path), text });
            }
        }
        None
    }

    /// Analyzes the lines of a task in a text. Without a path, the line itself contains the text.
    pub(super) fn run_task_text(
        &mut self,
        folder: &str,
        path: Option<String>,
        text: String,
        state: &ShellState,
        lines: impl FnOnce(&mut TaskSource<'_>) -> TaskLines,
    ) {
        let mut all = vec![(path.clone().unwrap_or_default(), text.clone())];
        let mut include = |name: &str| self.included_files(folder, name, state, &mut all);
        let found = lines(&mut TaskSource { text: &text, include: &mut include });
        match (found.unread, &path) {
            (Some(why), Some(path)) => self.call.add_unread(path, why),
            (Some(why), None) => self.mark_over_limit(why),
            (None, _) => {}
        }
        for (file, (path, text)) in all.into_iter().enumerate() {
            let own = found.lines.iter().filter(|it| it.file == file);
            if path.is_empty() {
                own.for_each(|it| self.scan_to_end(&it.text, &mut state.clone()));
                continue;
            }
            let run = (path.clone(), Vec::new());
            self.add_script(Script { path, text, ..Script::default() }, run, |scanner| {
                scanner.lines_of = None;
                for line in own {
                    scanner.line = line.at;
                    scanner.scan_to_end(&line.text, &mut state.clone());
                }
            });
        }
    }

    /// Reads the files that a file of a task runner includes by a name, and adds them to `all`, without a path if the line
    /// writes them. Returns the index and the text of each.
    fn included_files(
        &mut self,
        folder: &str,
        name: &str,
        state: &ShellState,
        all: &mut Vec<(String, String)>,
    ) -> Vec<(usize, String)> {
        // Scripts work with variables, so an unknown name passes.
        if name.contains('$') {
            return Vec::new();
        }
        let path = self.context.around.known_place(name, Some(folder)).absolute;
        let Some(path) = path else { return Vec::new() };
        let paths = match name.contains(['*', '?', '[']) {
            true => self.context.disk.matches(&path),
            false => Some(vec![path.clone()]),
        };
        let Some(paths) = paths else {
            self.call.add_unread(&path, "which files its glob fits is not known");
            return Vec::new();
        };
        let mut found = Vec::new();
        for path in paths {
            if all.iter().any(|it| it.0 == path) {
                continue;
            }
            let written = self.known_content(&ShellText::known(path.as_str()), state);
            if let Some(text) = written.and_then(|it| it.text) {
                found.push((all.len(), text.clone()));
                all.push((String::new(), text));
                continue;
            }
            let file = self.context.disk.script(&path);
            let Some(text) = self.script_text(&path, file, false) else { continue };
            found.push((all.len(), text.clone()));
            all.push((path, text));
        }
        found
    }
}

/// Statements that change or delete data or a schema.
const CHANGES: [&str; 10] = [
    "drop ",
    "truncate ",
    "delete from",
    "alter table",
    "update ",
    "flushall",
    "flushdb",
    ".drop(",
    "deletemany(",
    "dropdatabase",
];

/// Returns the first line of statements that changes or deletes data or a schema, counted from 1, or 0 without one. The
/// statements are judged together, because the first ones can choose the database of the others.
fn changing_line(text: &str) -> usize {
    let is_change = |line: &str| {
        let line = line.trim_start().to_lowercase();
        !line.starts_with("--") && CHANGES.iter().any(|it| line.contains(it))
    };
    text.lines().position(is_change).map_or(0, |it| it + 1)
}

/// Returns the files that the statements of a program name: `source x.sql`, `\\i x.sql`, `.read x.sql`.
fn included_statements(program: &Invocation) -> Vec<ShellText> {
    let words = ["source ", "\\. ", "\\i ", "\\ir ", "\\include ", ".read "];
    let texts = program.args.iter().filter_map(ShellText::all);
    let texts = texts.chain(program.input.text.as_deref());
    let lines = texts.flat_map(|it| it.split(['\n', ';']));
    let files = lines.filter_map(|line| {
        let line = line.trim_start_matches("--command=").trim_start_matches("--execute=");
        let line = line.strip_prefix("-e").unwrap_or(line).trim();
        let file = words.iter().find_map(|it| line.strip_prefix(it))?;
        Some(ShellText::known(file.trim().trim_matches(['\'', '"'])))
    });
    files.collect()
}

/// Returns whether the first line of a script ends it at the first error: `#!/bin/bash -e`.
fn has_error_option(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let mut options = first.split_whitespace().filter_map(|it| it.strip_prefix('-'));
    first.starts_with("#!") && options.any(|it| !it.starts_with('-') && it.contains('e'))
}
