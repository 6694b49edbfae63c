//! The files that a call reads, writes or deletes.
//!
//! Contains: the file effects of programs and of tools, patches, and the git work tree that a program changes.
//! Does not contain: the data about programs (`program_database`), the resolution of paths (`paths`), redirections
//! (`statements`).

use serde_json::Value as Json;

use super::analysis_context::AnalysisContext;
use super::effect_set::CallEffects;
use super::file_access::{Access, FileAccess, PatchFile};
use super::find::{deleted_by_find, find_commands, is_filtered};
use super::invocation::{Invocation, StandardInput};
use super::paths::{CallEnvironment, ResolvedPath};
use super::program_database::{FileEffect, OperandSelector};
use super::scanner::Scanner;
use super::shell_output::ShellOutput;
use super::shell_state::ShellState;
use super::shell_text::ShellText;
use super::tool_call::Call;
use crate::patch;
use crate::path::in_folder;
use crate::pattern::{CommandPattern, bundled_letters};
use crate::shell::{base_name, own_folder};
use crate::vocabulary::ValueOptions;
use policyd_yaml::rows::Rows;

/// Programs that change the attributes of a file, or create it, and keep its content.
const KEEPERS: [&str; 12] = [
    "chmod", "chown", "chgrp", "touch", "mkdir", "mkfifo", "setfacl", "chattr", "setfattr",
    "chcon", "chflags", "xattr",
];

/// Letters of a bundle of options in which one asks for a dry run: `-fdn`.
const BUNDLE_MAX: usize = 4;
/// Words of a command before `help`: `s3 rm help`.
const WORDS_BEFORE_HELP: usize = 2;

/// Values of an option for a dry run that turn it off.
const DENIALS: [&str; 4] = ["none", "false", "no", "0"];

/// Programs that make a named pipe.
const PIPE_MAKERS: [&str; 2] = ["mkfifo", "mknod"];

impl Call {
    /// Adds the files of a patch whose text was read from disk.
    pub fn apply(&mut self, patch: &PatchFile, text: &str, around: &CallEnvironment) {
        let runs_in = self.programs.get(patch.program).and_then(|it| it.folder.clone());
        let (files, added) = parse_patch(text);
        for (does, path) in files {
            let below = patch.folder.as_ref().map(|it| format!("{it}/")).unwrap_or_default();
            let place = around.known_place(&format!("{below}{path}"), runs_in.as_deref());
            let program = Some(patch.program);
            self.files.push(FileAccess::new(does, place, program));
        }
        self.written.extend(added);
    }
}

/// Keys of tool inputs that contain a path.
const PATH_KEYS: [&str; 6] =
    ["file_path", "notebook_path", "path", "filePath", "absolute_path", "pattern"];
/// Keys of tool inputs that contain text to write.
const TEXT_KEYS: [&str; 6] =
    ["content", "new_string", "new_source", "newString", "text", "file_text"];
/// Keys of tool inputs that contain a patch.
const PATCH_KEYS: [&str; 3] = ["input", "patch", "command"];

/// Adds the files that a tool for reading or editing accesses.
pub(super) fn add(call: &mut Call, input: &Json, context: AnalysisContext<'_>) {
    let edits = context.lens.is_edit_tool(&call.tool);
    let reads = context.knowledge.read_tools.contains(&call.tool);
    let does = match (edits, reads) {
        (true, _) => Access::Write,
        (false, true) => Access::Read,
        (false, false) => return,
    };
    let around = context.around;
    let folder = Some(around.folder.as_str()).filter(|it| !it.is_empty());
    let place = |path: &str| {
        let place = around.known_place(path, folder);
        ResolvedPath { glob: path.contains(['*', '?', '[']), ..place }
    };
    let edits = input.get("edits").and_then(Json::as_array);
    for part in std::iter::once(input).chain(edits.into_iter().flatten()) {
        for key in PATH_KEYS {
            // For other tools than `Glob`, `pattern` is a search pattern for text.
            let is_search = key == "pattern" && call.tool != "Glob";
            let path =
                part.get(key).and_then(Json::as_str).filter(|it| !it.is_empty() && !is_search);
            let place = path.map(place);
            call.files.extend(place.map(|place| FileAccess::by_tool(does, place)));
        }
        let searched = searched_files(part).into_iter().filter(|_| does == Access::Read);
        call.files.extend(searched.map(|it| FileAccess::by_tool(does, place(&it))));
        let texts = TEXT_KEYS.iter().filter_map(|it| part.get(*it).and_then(Json::as_str));
        if does == Access::Write {
            call.written.extend(texts.map(str::to_owned));
        }
    }
    let (files, added) = parse_patch(patch_text(input));
    for (does, path) in files {
        let file = FileAccess::by_tool(does, place(path));
        // The input may also name the first file of the patch.
        if !call.files.contains(&file) {
            call.files.push(file);
        }
    }
    call.written.extend(added);
}

/// Returns the files whose lines a search prints: those that its filter of names fits. Other searches print names only, or are about a
/// whole directory.
fn searched_files(input: &Json) -> Vec<String> {
    let text = |key: &str| input.get(key).and_then(Json::as_str).filter(|it| !it.is_empty());
    let prints_lines = text("output_mode") == Some("content");
    let Some(glob) = text("glob").filter(|_| prints_lines).or_else(|| text("include")) else {
        return Vec::new();
    };
    let folder = text("path").unwrap_or(".").trim_end_matches('/');
    ["", "**/"].iter().map(|below| format!("{folder}/{below}{glob}")).collect()
}

/// Returns whether an option is the last argument, and not behind another option, whose value it can be. A script of the
/// project, and what is behind `--`, might not know the option. A word counts only behind a command: `s3 rm help`.
fn asks_at_end(program: &Invocation, option: &str) -> bool {
    let Some((last, before)) = program.args.split_last() else { return false };
    let is_option = |it: &ShellText| !it.is_known() || it.text.starts_with('-');
    let is_name = |it: &ShellText| {
        it.text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    let is_command = || {
        before.len() <= WORDS_BEFORE_HELP && before.iter().all(|it| is_name(it) && !is_option(it))
    };
    last.all() == Some(option)
        && own_folder(&program.called.text).is_empty()
        && before.iter().all(|it| it.text != "--")
        && !before.last().is_some_and(is_option)
        && (option.starts_with('-') || is_command())
}

/// Returns the text of the patch in the input of a tool. Empty without one.
pub(super) fn patch_text(input: &Json) -> &str {
    let patch = PATCH_KEYS.iter().find_map(|key| input.get(*key)).unwrap_or(input);
    // Some clients give the words of a command: `["apply_patch", TEXT]`.
    let text = patch.as_str().or_else(|| patch.as_array()?.last()?.as_str());
    text.unwrap_or_default()
}

/// Returns the path in a patch header. A timestamp may follow it.
fn in_header(line: &str) -> &str {
    line.split('\t').next().unwrap_or(line).trim()
}

/// Returns the files of a patch, and the text that it adds.
pub(super) fn parse_patch(text: &str) -> (Vec<(Access, &str)>, Option<String>) {
    let (mut files, mut added, mut before) = (Vec::new(), String::new(), "");
    for line in text.lines() {
        if let Some((verb, path)) = patch::header(line.trim()) {
            files.push((if verb == "Delete File" { Access::Delete } else { Access::Write }, path));
        } else if let Some(path) = line.strip_prefix("--- ").map(in_header) {
            before = path.strip_prefix("a/").unwrap_or(path);
        } else if let Some(path) = line.strip_prefix("+++ ").map(in_header) {
            files.push(match path {
                "/dev/null" => (Access::Delete, before),
                path => (Access::Write, path.strip_prefix("b/").unwrap_or(path)),
            });
        } else if let Some(path) = line.strip_prefix("rename from ") {
            files.push((Access::Delete, path.trim()));
        } else if let Some(path) =
            line.strip_prefix("rename to ").or_else(|| line.strip_prefix("copy to "))
        {
            files.push((Access::Write, path.trim()));
        } else if let Some(text) = line.strip_prefix('+') {
            added.push_str(text);
            added.push('\n');
        }
    }
    (files, Some(added).filter(|it| !it.is_empty()))
}

/// Files without stored content.
const NOWHERE: [&str; 6] =
    ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", "/dev/zero"];

/// Returns whether what is written to a file is not stored.
#[must_use]
pub fn is_nowhere(path: &str) -> bool {
    NOWHERE.contains(&path)
}

/// Maximum number of copied files that are followed into the target directory.
const SOURCES_MAX: usize = 64;

/// Programs that apply a patch.
const PATCHERS: [&str; 5] = ["apply_patch", "applypatch", "patch", "git apply", "git am"];

impl Scanner<'_> {
    /// Adds the files of the patches that a program applies.
    fn apply_patches(&mut self, at: usize, program: &Invocation, scope: &ShellState) {
        let values = self.context.lens.value_options();
        let known = PATCHERS.iter().any(|it| {
            it.starts_with(&program.name) && program.is(&CommandPattern::parse(it), values)
        });
        let looks = ["--check", "--stat", "--numstat", "--summary", "--dry-run"];
        if !known || looks.iter().any(|it| program.has(it, values)) {
            return;
        }
        let below = ["--directory", "-d"].iter().find_map(|it| program.values(it).next());
        let args = program.args.iter().map(|it| it.text.clone());
        let mut texts: Vec<String> = program.input.text.iter().cloned().chain(args).collect();
        // The content of a file that the line itself wrote is known. Other patch files are read
        // from disk later.
        let named = program.operands(values).into_iter().chain(&program.reads);
        let options = ["-i", "--input"].iter().flat_map(|it| program.values(it));
        for file in named.chain(options.collect::<Vec<_>>().iter()) {
            match self.known_content(file, scope) {
                Some(written) => texts.extend(written.text),
                None => {
                    self.call.patches.extend(self.resolve_path(file, scope).absolute.map(|path| {
                        let folder = below.as_ref().and_then(ShellText::all).map(str::to_owned);
                        PatchFile { path, folder, program: at }
                    }))
                }
            }
        }
        for text in &texts {
            let (files, added) = parse_patch(text);
            for (does, path) in files {
                let folder = below.as_ref().map(|it| format!("{}/", it.text)).unwrap_or_default();
                let place = self.resolve_path(&ShellText::known(format!("{folder}{path}")), scope);
                self.call.files.push(FileAccess::new(does, place, Some(at)));
            }
            self.call.written.extend(added);
        }
    }

    /// Adds the files that a program accesses.
    pub(super) fn record_effects(
        &mut self,
        at: usize,
        output: &ShellOutput,
        scope: &mut ShellState,
    ) {
        let Some(program) = self.call.programs.get(at).cloned() else { return };
        self.apply_patches(at, &program, scope);
        let values = self.context.lens.value_options();
        let is_dry_run = self.is_dry_run(&program);
        let rows = match is_dry_run {
            true => Vec::new(),
            false => rows_of(&program, self.context),
        };
        if let Some(own) = self.call.programs.get_mut(at) {
            own.is_dry_run = is_dry_run;
            own.described = rows.iter().any(|it| it.selects_operands());
            own.fetches = rows.iter().any(|it| it.fetches || it.clones);
            let options =
                rows.iter().flat_map(|it| it.marked_options.iter().chain(&it.sent_options));
            own.sent = options.flat_map(|it| program.values(it)).collect();
        }
        rows.iter().for_each(|it| self.record_trees(it, at, scope));
        let (touched, takes_trees) = self.touched_files(&program, &rows);
        let base = self.archive_base(&program, scope);
        for (does, file) in touched {
            // `@file`, `if=file` and `name=@file` name files.
            let file = without_mark(&program.name, &file);
            let is_stream = file.text == "-" && !does.removes();
            let is_file = !file.text.is_empty() && !NOWHERE.contains(&file.text.as_str());
            if file.pipe || is_stream || !is_file {
                continue;
            }
            let place = match base.as_deref().filter(|_| does != Access::Write) {
                Some(base) => self.resolve_from(&file, Some(base), scope),
                None => self.resolve_path(&file, scope),
            };
            if let Some(path) = &place.absolute {
                self.pass_through_pipe(path, at, does, scope);
                self.pass_on_origin(path, at, does, scope);
            }
            if let Some(path) = place.absolute.clone().filter(|_| does == Access::Write)
                && !program.writes.contains(&file)
                && self.named_pipe(&path, scope).is_none()
            {
                let written = self.written_content(at, &program, output, scope);
                if let Some(written) = written {
                    scope.files.insert(path, written);
                }
            }
            let place = ResolvedPath { itself: does.removes(), ..place };
            let keeps = program.appends.contains(&file)
                || KEEPERS.contains(&program.name.as_str())
                || (program.name == "tee" && program.has("-a", values));
            if let Some(own) = self.call.programs.get_mut(at) {
                own.effects = own.effects.union(CallEffects::of_program(does));
            }
            let tree = does == Access::Move || (does == Access::Delete && takes_trees);
            self.call.files.push(FileAccess { does, place, program: Some(at), keeps, tree });
        }
    }

    /// Returns the files that a program is given, each with what it does to it, and whether it deletes directories with
    /// everything below them.
    fn touched_files(
        &self,
        program: &Invocation,
        rows: &[&FileEffect],
    ) -> (Vec<(Access, ShellText)>, bool) {
        let values = self.context.lens.value_options();
        let is_tree = |row: &&FileEffect| row.recursive.iter().any(|it| program.is(it, values));
        let mut takes_trees = rows.iter().any(is_tree);
        let mut touched: Vec<(Access, ShellText)> =
            rows.iter().flat_map(|it| files_of_row(it, program, values)).collect();
        if program.name == "find" && self.is_deleting_find(program) {
            takes_trees = !is_filtered(&program.args);
            touched
                .extend(deleted_by_find(&program.args).into_iter().map(|it| (Access::Delete, it)));
        }
        if program.name == "dd" {
            let marked = |mark: &str, does: Access| {
                let args = program.args.iter().filter(move |it| it.text.starts_with(mark));
                args.map(move |it| (does, it.clone())).collect::<Vec<_>>()
            };
            touched.extend(marked("if=", Access::Read));
            touched.extend(marked("of=", Access::Write));
        }
        let addressed = program.args.iter().filter(|it| it.text.starts_with("file://"));
        touched.extend(addressed.map(|it| (Access::Read, it.clone())));
        touched.extend(program.reads.iter().map(|it| (Access::Read, it.clone())));
        touched.extend(program.writes.iter().map(|it| (Access::Write, it.clone())));
        (touched, takes_trees)
    }

    /// Returns whether a program only prints what it would do, by the vocabulary. A part of a long option, and a letter of
    /// a long word behind a single dash (`-chdir` of `terraform`), can be another option.
    fn is_dry_run(&self, program: &Invocation) -> bool {
        let values = self.context.lens.value_options();
        let is_whole = |option: &str| {
            program.args.iter().any(|it| {
                let letters = bundled_letters(&it.text).filter(|it| it.len() <= BUNDLE_MAX);
                match option.len() > 2 {
                    true => it.text.split('=').next() == Some(option),
                    false => letters.is_some_and(|it| option.ends_with(|sign| it.contains(sign))),
                }
            })
        };
        let texts = || program.args.iter().map(|it| it.text.as_str());
        let is_denied = || {
            let pairs = texts().map(|it| it.split_once('=').unwrap_or((it, "")));
            let after = texts().zip(texts().skip(1));
            texts().any(|it| it.starts_with("--no-dry"))
                || pairs.chain(after).any(|it| it.0.starts_with("--dry") && DENIALS.contains(&it.1))
        };
        let mut rows = self.context.knowledge.dry_runs.named(&program.name);
        rows.any(|row| {
            let is_given = |it: &String| match row.at_end {
                true => asks_at_end(program, it),
                false => program.has(it, values) && is_whole(it),
            };
            row.options.iter().any(is_given) && row.programs.iter().any(|it| program.is(it, values))
        }) && !is_denied()
    }

    /// Returns whether `find` deletes what it finds: itself, or by a program that the vocabulary describes as one that deletes.
    fn is_deleting_find(&self, find: &Invocation) -> bool {
        let values = self.context.lens.value_options();
        let deletes = |words: &[ShellText]| {
            let Some((name, args)) = words.split_first() else { return false };
            let program = Invocation {
                name: base_name(&name.text).to_owned(),
                args: args.to_vec(),
                ..Invocation::default()
            };
            let rows = rows_of(&program, self.context);
            rows.iter().any(|it| it.delete != OperandSelector::None)
        };
        find.has("-delete", values) || find_commands(&find.args).any(deletes)
    }

    /// Returns the program that made a named pipe.
    pub(super) fn named_pipe(&self, path: &str, scope: &ShellState) -> Option<usize> {
        let content = scope.files.content(path)?;
        let is_maker = |it: &&usize| {
            self.call.programs.get(**it).is_some_and(|it| PIPE_MAKERS.contains(&it.name.as_str()))
        };
        content.from.iter().find(is_maker).copied()
    }

    /// Records that a program writes into a named pipe, or reads what others write into it.
    fn pass_through_pipe(&mut self, path: &str, at: usize, does: Access, scope: &ShellState) {
        let Some(pipe) = self.named_pipe(path, scope).filter(|it| *it != at) else { return };
        let (reader, writer) = match does {
            Access::Read => (at, pipe),
            Access::Write => (pipe, at),
            Access::Delete | Access::Move => return,
        };
        if let Some(reader) = self.call.programs.get_mut(reader) {
            reader.fed_by.extend((!reader.fed_by.contains(&writer)).then_some(writer));
        }
    }

    /// Records that a program reads what others fetched into a file.
    fn pass_on_origin(&mut self, path: &str, at: usize, does: Access, scope: &ShellState) {
        if does != Access::Read || scope.files.is_empty() {
            return;
        }
        let content = scope.files.content(path).filter(|it| it.text.is_none()).cloned();
        let Some(content) = content.or_else(|| self.fetched_content(path, scope)) else { return };
        if !self.call.has_fetcher(&content.from) {
            return;
        }
        if let Some(reader) = self.call.programs.get_mut(at) {
            reader.fed_by.extend(content.from.iter().filter(|it| **it != at));
        }
    }

    /// Returns the directory from which an archiver reads its files: `tar -C directory`.
    fn archive_base(&self, program: &Invocation, scope: &ShellState) -> Option<String> {
        let mut options =
            ["-C", "--directory", "--cd"].iter().filter(|_| program.name.ends_with("tar"));
        let folder = options.find_map(|it| program.values(it).last())?;
        self.resolve_path(&folder, scope).absolute
    }

    /// Returns the content that a program writes into files. `None` if it does not change their
    /// content.
    fn written_content(
        &self,
        at: usize,
        program: &Invocation,
        output: &ShellOutput,
        scope: &ShellState,
    ) -> Option<StandardInput> {
        let unknown = StandardInput { piped: true, from: vec![at], ..StandardInput::default() };
        match program.name.as_str() {
            name if PIPE_MAKERS.contains(&name) => Some(unknown),
            name if KEEPERS.contains(&name) => None,
            "tee" => Some(StandardInput { text: output.text.clone(), ..unknown }),
            "cp" | "mv" | "install" | "ln" | "dd" => {
                let from = match program.name.as_str() {
                    "dd" => program.args.iter().find(|it| it.text.starts_with("if=")),
                    _ => program.args.iter().find(|it| !it.text.starts_with('-')),
                };
                let from = from.map(|it| without_mark(&program.name, it));
                let known = from.and_then(|it| self.known_content(&it, scope));
                Some(known.unwrap_or(unknown))
            }
            _ => Some(unknown),
        }
    }
}

/// Returns the rows of the database that describe a program.
fn rows_of<'a>(program: &Invocation, context: AnalysisContext<'a>) -> Vec<&'a FileEffect> {
    let values = context.lens.value_options();
    let any = |patterns: &[CommandPattern]| patterns.iter().any(|it| program.is(it, values));
    let rows = context.knowledge.effects.named(&program.name);
    rows.filter(|it| any(&it.programs) && !any(&it.except)).collect()
}

/// Returns the file accesses of a program by one row of the database.
fn files_of_row(
    row: &FileEffect,
    program: &Invocation,
    values: &Rows<ValueOptions>,
) -> Vec<(Access, ShellText)> {
    let mut touched: Vec<(Access, ShellText)> = Vec::new();
    // Subcommand words are not files.
    let pattern = row.programs.iter().find(|it| program.is(it, values));
    let own_words = pattern.map_or(0, |it| it.operands(&program.name, values));
    let mut into: Vec<ShellText> = Vec::new();
    let options = [
        (Access::Read, &row.read_options),
        (Access::Write, &row.write_options),
        (Access::Write, &row.folder_options),
    ];
    for (does, names) in options {
        for name in names {
            for value in program.values(name).chain(program.bundled_values(name, values)) {
                into.extend(row.folder_options.contains(name).then(|| value.clone()));
                touched.push((does, value));
            }
        }
    }
    // With `mv -t directory a b`, the last operand is not the target.
    let target_given = !into.is_empty();
    let marked = row.marked_options.iter();
    let marked = marked.flat_map(|it| program.values(it).chain(program.bundled_values(it, values)));
    touched.extend(marked.filter_map(|it| Some((Access::Read, marked_file(&it)?))));
    let operands = row.file_operands(program, own_words, values);
    let files = operands.iter();
    let files: Vec<&&ShellText> =
        files.filter(|it| !touched.iter().any(|known| known.1 == ***it)).collect();
    let saved = files.iter().enumerate().filter(|it| row.saves.takes(it.0, files.len()));
    touched.extend(saved.filter_map(|it| Some((Access::Write, last_step(it.1)?))));
    let parts = [
        (Access::Read, row.read),
        (Access::Write, row.write),
        (Access::Delete, row.delete),
        (Access::Move, row.moves),
    ];
    for (does, which) in parts {
        let which = if target_given { which.without_target() } else { which };
        let taken = files.iter().enumerate().filter(|it| which.takes(it.0, files.len()));
        touched.extend(taken.filter_map(|it| Some((does, row.marked(it.1)?))));
    }
    touched.extend(copied(row, &files, into.last()).into_iter().map(|it| (Access::Write, it)));
    touched.retain(|(_, file)| !row.remote || !is_remote(file));
    touched
}

/// Returns whether an operand names a file of another machine or system: `host:/path`, `s3://bucket/key`. The letter of a
/// drive is not a name.
pub(super) fn is_remote(operand: &ShellText) -> bool {
    let known = operand.text.get(..operand.known_to).unwrap_or_default();
    let before = known.split_once(':').map(|it| it.0);
    before.is_some_and(|it| it.len() > 1 && !it.contains('/') && !it.contains('\\'))
}

/// Returns the path of a source of a copy, without the machine that has it.
pub(super) fn path_of_source(source: &ShellText) -> Option<&str> {
    let text = source.all()?;
    match text.split_once(':').filter(|_| is_remote(source)) {
        Some((_, path)) => Some(path),
        None => Some(text),
    }
}

/// Returns the file that the value of an option names: behind `@`, `name=@`, `name@`, or `name=<`. `None` if the value is a text.
fn marked_file(value: &ShellText) -> Option<ShellText> {
    if value.known_to == 0 {
        return Some(value.clone());
    }
    let is_name = |it: &str| it.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let text = value.text.as_str();
    let named = || text.find('@').filter(|it| text.get(..*it).is_some_and(is_name));
    form_file(value).or_else(|| named().map(|it| value.tail(it + 1)))
}

/// Returns the file in a field of a form: `name=@file`, `name=<file`.
fn form_file(field: &ShellText) -> Option<ShellText> {
    let at = ["=@", "=<"].iter().find_map(|it| Some(field.text.find(it)? + it.len()))?;
    let file = field.tail(at);
    // Parameters of the file follow behind a comma or a semicolon.
    let end = file.text.find([',', ';']).unwrap_or(file.text.len());
    let text = file.text.get(..end).unwrap_or_default().to_owned();
    Some(ShellText { known_to: file.known_to.min(text.len()), text, ..file })
}

/// Returns the files that a program creates in its target directory: one for each source with a
/// known name. A target that may be a file counts as a directory.
fn copied(row: &FileEffect, files: &[&&ShellText], into: Option<&ShellText>) -> Vec<ShellText> {
    let has_sources = row.read == OperandSelector::BeforeLast;
    let (sources, folder) = match (files, into) {
        (files, Some(folder)) if has_sources => (files, folder),
        ([sources @ .., last], None) if has_sources => (sources, **last),
        (_, into) => return into.map(ShellText::below).into_iter().collect(),
    };
    let name = |it: &ShellText| Some(base_name(path_of_source(it)?).to_owned());
    // If the source is `directory/`, its content is copied to the target.
    let is_name = |it: &String| !it.is_empty() && !it.ends_with('/') && it != "." && it != "..";
    let within = |source: &&&ShellText| match (folder.all(), name(source).filter(is_name)) {
        (Some(folder), Some(name)) => {
            ShellText { glob: source.glob, ..ShellText::known(in_folder(folder, &name)) }
        }
        _ => folder.below(),
    };
    let rest = (sources.len() > SOURCES_MAX).then(|| folder.below());
    sources.iter().take(SOURCES_MAX).map(within).chain(rest).collect()
}

/// Returns the last path segment of a URL, without the query.
fn last_step(address: &ShellText) -> Option<ShellText> {
    let text = address.text.split(['?', '#']).next()?;
    let (_, path) = text.split_once("://").unwrap_or(("", text));
    let (_, step) = path.rsplit_once('/')?;
    (!step.is_empty()).then(|| ShellText { from: address.from.clone(), ..ShellText::known(step) })
}

/// Returns the file in `@file`, `if=file` and `name=@file`, and in the `revision:file` of git.
fn without_mark(program: &str, word: &ShellText) -> ShellText {
    let text = word.text.as_str();
    if let Some((revision, _)) = text.split_once(':').filter(|_| program == "git") {
        return word.tail(revision.len() + 1);
    }
    let marks = ["if=", "of=", "@"];
    if let Some(mark) = marks.iter().find(|it| text.starts_with(**it)) {
        return word.tail(mark.len());
    }
    form_file(word).unwrap_or_else(|| word.clone())
}

/// Programs that do not change tracked files when they run before another program of the same line.
const HARMLESS: [&str; 7] = ["cd", "echo", "git", "ls", "pwd", "test", "true"];

/// Options of git with a value, before its subcommand.
const WITH_VALUE: [&str; 5] =
    ["-c", "--namespace", "--config-env", "--attr-source", "--super-prefix"];

/// Environment variables that select another work tree.
const VARIABLES: [&str; 4] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"];

impl Call {
    /// Returns the directory whose work tree a git command changes. `None` if it is unknown, or if
    /// an earlier program of the line may change the tree.
    #[must_use]
    pub fn tree_folder(&self, at: usize, around: &CallEnvironment) -> Option<String> {
        let program = self.programs.get(at).filter(|it| it.name == "git")?;
        let other_tree = VARIABLES.iter().any(|it| self.variables.contains_key(*it));
        let mut before = self.programs.iter().take(at);
        let touched = before.any(changes_tree);
        let redirected = self.programs.iter().take(at).any(|it| !it.writes.is_empty());
        if other_tree || touched || redirected || !program.wrappers.is_empty() {
            return None;
        }
        folder_of(program, around)
    }
}

impl Call {
    /// Returns whether a git command works in a repository that the line itself created in a temporary directory.
    #[must_use]
    pub fn is_new_tree(&self, at: usize, around: &CallEnvironment) -> bool {
        let Some(folder) = self.programs.get(at).and_then(|it| folder_of(it, around)) else {
            return false;
        };
        let is_there =
            |place: ResolvedPath| place.absolute.as_ref() == Some(&folder) && !place.open;
        let creates = |it: &Invocation| {
            let is_new = it.args.iter().any(|it| matches!(it.text.as_str(), "init" | "clone"));
            let own = folder_of(it, around);
            let named = it.args.iter().map(|word| around.place(word, own.as_deref()));
            is_new
                && it.name == "git"
                && (own.as_ref() == Some(&folder) || named.into_iter().any(is_there))
        };
        around.is_temporary(&folder) && self.programs.iter().take(at).any(creates)
    }
}

/// Returns whether a program may change tracked files in another way than git does.
fn changes_tree(program: &Invocation) -> bool {
    let stash = program.name == "git" && program.args.iter().any(|it| it.text == "stash");
    stash || !HARMLESS.contains(&program.name.as_str())
}

/// Returns the directory in which git runs, after its `-C` options. `None` if it is not known.
#[must_use]
pub fn folder_of(git: &Invocation, around: &CallEnvironment) -> Option<String> {
    let mut folder = git.folder.clone()?;
    let mut args = git.args.iter();
    while let Some(arg) = args.next().filter(|it| it.text.starts_with('-')) {
        let text = arg.text.as_str();
        if text == "-C" {
            let place = around.place(args.next()?, Some(&folder));
            folder = place.absolute.filter(|_| !place.open && !place.glob)?;
        } else if WITH_VALUE.contains(&text) {
            args.next()?;
        } else if ["--git-dir", "--work-tree"].iter().any(|it| text.starts_with(it)) {
            return None;
        }
    }
    Some(folder)
}
