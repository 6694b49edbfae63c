//! Files that a call runs: `bash x.sh`, `python x.py`, `./x`, `make t`, `npm run t`, `psql -f x.sql`.
//!
//! Contains: which programs run which file, and the analysis of such a file as a separate call.
//! Does not contain: the files of task runners (`recipes`), files that the line itself wrote (`statements`).
//!
//! The file is analyzed as it is now. What another program writes into it before it runs is not seen.

use super::invocation::{Invocation, StandardInput};
use super::program_database::FileEffect;
use super::recipes::{TaskLine, justfile, makefile, package_scripts};
use super::scanner::Scanner;
use super::shell_state::{ShellState, WorkingFolder};
use super::shell_text::ShellText;
use super::tool_call::{Call, Script};
use crate::path::in_folder;
use crate::shell::base_name;

/// Directories above the working directory in which a task runner looks for its file.
const PARENTS_MAX: usize = 4;

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
/// Options with which a task runner only prints what it would do.
const PRINT_ONLY: [&str; 4] = ["-n", "--dry-run", "--just-print", "--recon"];

/// Returns whether a name has the ending of a file of code.
pub(super) fn is_code_file(name: &str) -> bool {
    LANGUAGES.iter().any(|it| name.ends_with(it.0))
}

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

impl Call {
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
        let Some(path) = place.absolute.filter(|_| file.is_known() && !place.glob) else { return };
        let Some(text) = self.script_text(&path) else { return };
        let mut inner = ShellState { parameters: Some(args.to_vec()), ..scope.of_a_process() };
        let own = ShellText::known(path.as_str());
        for name in ["0", "BASH_SOURCE"] {
            inner.variables.insert(name.to_owned(), vec![own.clone()]);
        }
        let kind = match kind {
            ScriptKind::Named => self.named_kind(&path, &text),
            kind @ (ScriptKind::Shell | ScriptKind::Code(_) | ScriptKind::Input(_)) => Some(kind),
        };
        let Some(kind) = kind else { return };
        inner.ends_on_error |= has_error_option(&text);
        let script = Script { path, text: text.clone(), ..Script::default() };
        self.add_script(script, |scanner| match &kind {
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
                scanner.add_program(Invocation {
                    input,
                    fed_by: Vec::new(),
                    ..(**program).clone()
                });
            }
        });
    }

    /// Reads a file that runs now, unless it runs already, or a limit is reached.
    fn script_text(&mut self, path: &str) -> Option<String> {
        if self.running.iter().any(|it| it == path) || self.scripts_left == 0 {
            return None;
        }
        let text = self.context.disk.script(path)?;
        self.scripts_left -= 1;
        Some(text)
    }

    /// Adds a file whose effects `read` finds with a scanner of its own.
    fn add_script(&mut self, mut script: Script, read: impl FnOnce(&mut Scanner<'_>)) {
        script.call.tool.clone_from(&self.call.tool);
        let mut running = self.running.clone();
        running.push(script.path.clone());
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
        for file in files {
            let kind = ScriptKind::Input(Box::new(program.clone()));
            self.run_file(&file, kind, &[], scope);
        }
    }

    /// Returns the files that an unknown input consists of: `cat x.sql | psql`.
    pub(super) fn printed_files(&self, input: &StandardInput) -> Vec<ShellText> {
        let feeding = input.from.iter().filter_map(|it| self.call.programs.get(*it));
        let printers = feeding.filter(|it| it.name == "cat" && input.text.is_none());
        let files = printers.flat_map(|it| &it.args).filter(|it| !it.text.starts_with('-'));
        files.cloned().collect()
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

    fn run_make(&mut self, make: &Invocation, scope: &ShellState) {
        let Some(folder) = self.task_folder(make, &["-C", "--directory"], scope) else { return };
        if PRINT_ONLY.iter().any(|it| make.has(it, self.context.lens.value_options())) {
            return;
        }
        let named = ["-f", "--file", "--makefile"].iter().find_map(|it| make.values(it).next());
        let files = match named {
            Some(file) => vec![file.text],
            None => ["GNUmakefile", "makefile", "Makefile"].map(str::to_owned).to_vec(),
        };
        let operands = self.operand_texts(make);
        let (given, targets): (Vec<&str>, Vec<&str>) =
            operands.iter().map(String::as_str).partition(|it| it.contains('='));
        let home = self.context.around.home.clone();
        let known = [("CURDIR", folder.as_str()), ("PWD", &folder), ("HOME", &home)];
        let given = given.iter().filter_map(|it| it.split_once('='));
        let given: Vec<(&str, &str)> = known.into_iter().chain(given).collect();
        self.run_task(&folder, &files, 0, scope, |text| makefile(text, &targets, &given));
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
        let files = ["justfile", "Justfile", ".justfile"].map(str::to_owned);
        self.run_task(&folder, &files, PARENTS_MAX, scope, |text| justfile(text, wanted, &args));
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
        self.run_task(&folder, &files, PARENTS_MAX, scope, |text| package_scripts(text, &names));
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

    /// Analyzes the lines of a task, each in a shell of its own. Its file is the first of `files` that exists in the
    /// directory or in one of `parents` directories above it.
    fn run_task(
        &mut self,
        folder: &str,
        files: &[String],
        parents: usize,
        scope: &ShellState,
        lines: impl FnOnce(&str) -> Vec<TaskLine>,
    ) {
        // A task may run another task of the same file, so the file itself may run already.
        if self.scripts_left == 0 {
            return;
        }
        let mut folder = folder;
        let mut found = None;
        for _ in 0..=parents {
            let mut paths = files.iter().map(|it| in_folder(folder, it));
            found = paths.find_map(|path| Some((self.context.disk.script(&path)?, path)));
            let above = folder.rsplit_once('/').map(|it| it.0).filter(|it| !it.is_empty());
            let Some(above) = above.filter(|_| found.is_none()) else { break };
            folder = above;
        }
        let Some((text, path)) = found else { return };
        self.scripts_left -= 1;
        let lines = lines(&text);
        let folder = WorkingFolder::certain(Some(folder.to_owned()));
        let state = ShellState { folder, ..scope.of_a_process() };
        self.add_script(Script { path, text, ..Script::default() }, |scanner| {
            scanner.lines_of = None;
            for (line, text) in lines {
                scanner.line = line;
                scanner.scan_to_end(&text, &mut state.clone());
            }
        });
    }
}

/// Returns whether the first line of a script ends it at the first error: `#!/bin/bash -e`.
fn has_error_option(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let mut options = first.split_whitespace().filter_map(|it| it.strip_prefix('-'));
    first.starts_with("#!") && options.any(|it| !it.starts_with('-') && it.contains('e'))
}
