//! The files that a call reads, writes or deletes.
//!
//! Contains: [`ProgramDatabase`] (data from `vocabulary.yaml`), the file effects of programs and of tools,
//! patches, and the git work tree that a program changes.
//! Does not contain: the resolution of paths (`paths`), redirections (`statements`).

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::super::lens::ValueOptions;
use super::super::pattern::CommandPattern;
use super::super::shell::base_name;
use super::paths::{Place, Surroundings};
use super::programs::find_roots;
use super::scope::{Output, Scope};
use super::statements::Scanner;
use super::words::Text;
use super::wrappers::{looked_for, named_below};
use super::{Call, Input, Invocation, Reading};
use crate::facts::fold::patch;
use crate::path::in_folder;

/// What is known of programs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knowledge {
    /// Programs that run code.
    pub interpreters: Vec<Interpreter>,
    /// What programs do with the files they are given.
    pub effects: Vec<FileEffect>,
    /// Calls in code that start programs or touch files.
    pub calls: Vec<CodeCall>,
    /// Options and operands that are shell text.
    pub shell_values: Vec<ShellValue>,
    /// Tools that read files.
    pub read_tools: Vec<String>,
}

/// A program that runs code which is not shell text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interpreter {
    /// Its name, `*` for any letters: `python*`.
    pub program: String,
    /// Options whose value is code: `-c`.
    pub code: Vec<String>,
    /// Options after which what follows is not code: `-m`.
    pub other: Vec<String>,
    /// Whether its first argument is code: `awk`.
    pub first: bool,
}

/// Which of the files that a program is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Which {
    /// None of them.
    #[default]
    None,
    /// All of them.
    All,
    /// The first one.
    First,
    /// The last one.
    Last,
    /// All but the first one.
    AfterFirst,
    /// All but the last one.
    BeforeLast,
}

impl Which {
    /// Those of operands whose target is told by an option.
    pub(super) const fn without_target(self) -> Self {
        match self {
            Self::BeforeLast => Self::All,
            Self::Last => Self::None,
            Self::None | Self::All | Self::First | Self::AfterFirst => self,
        }
    }

    /// How they are written.
    pub const NAMES: &[&str] = &["all", "first", "last", "after_first", "before_last"];

    /// Those of this name.
    #[must_use]
    pub fn find(name: &str) -> Self {
        match name {
            "all" => Self::All,
            "first" => Self::First,
            "last" => Self::Last,
            "after_first" => Self::AfterFirst,
            "before_last" => Self::BeforeLast,
            _ => Self::None,
        }
    }

    /// Whether one at this position of so many is meant.
    #[must_use]
    pub const fn takes(self, at: usize, count: usize) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::First => at == 0,
            Self::Last => at.saturating_add(1) == count,
            Self::AfterFirst => at > 0,
            Self::BeforeLast => at.saturating_add(1) < count,
        }
    }
}

/// What some programs do with the files they are given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEffect {
    /// Programs that do it.
    pub programs: Vec<CommandPattern>,
    /// Those that are left out.
    pub except: Vec<CommandPattern>,
    /// Arguments that they read.
    pub read: Which,
    /// Arguments that they write.
    pub write: Which,
    /// Arguments that they delete.
    pub delete: Which,
    /// Arguments whose last step is the name of a file that they write where they stand: of an
    /// address what is fetched from it.
    pub saves: Which,
    /// Options whose value is a file that they read.
    pub read_options: Vec<String>,
    /// Options whose value is a file that they write.
    pub write_options: Vec<String>,
    /// Options whose value is a folder that they write files into.
    pub folder_options: Vec<String>,
}

/// A call in code that starts a program or touches a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeCall {
    /// Its name, as it stands before the parenthesis: `os.system`.
    pub call: String,
    /// The words that it is like, its arguments after them; none, where its argument is shell text
    /// or a list of words.
    pub like: Vec<String>,
    /// Programs whose code it is looked for in; all, where there are none.
    pub only: Vec<String>,
}

/// Options and operands of some programs that are shell text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellValue {
    /// Programs that take it.
    pub programs: Vec<CommandPattern>,
    /// Options whose value it is; where there are none, the operands are it.
    pub options: Vec<String>,
    /// What stands before it: `!` in `vim -c '!ls'`. Where there is something, a value without it is
    /// no shell text.
    pub after: Vec<String>,
}

/// What is done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Its content is read.
    Reads,
    /// Its content is changed, or it is made.
    Writes,
    /// It is taken away.
    Deletes,
}

/// A file that a call would touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUse {
    /// What is done with it.
    pub does: Use,
    /// Where it is.
    pub place: Place,
    /// The program that does it; nothing, where it is the tool itself.
    pub program: Option<usize>,
}

/// A file whose patch a program would apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchFile {
    /// Where it is.
    pub path: String,
    /// The folder that the paths in it are taken from, as it was written; none, where they are taken
    /// from where the program runs.
    pub folder: Option<String>,
    /// The program that applies it.
    pub program: usize,
}

impl Call {
    /// Notes the files that a patch touches which is known by now.
    pub fn apply(&mut self, patch: &PatchFile, text: &str, around: &Surroundings) {
        let runs_in = self.programs.get(patch.program).and_then(|it| it.folder.clone());
        let (files, added) = patched(text);
        for (does, path) in files {
            let below = patch.folder.as_ref().map(|it| format!("{it}/")).unwrap_or_default();
            let place = around.known_place(&format!("{below}{path}"), runs_in.as_deref());
            self.files.push(FileUse { does, place, program: Some(patch.program) });
        }
        self.written.extend(added);
    }
}

/// Keys of tool inputs that hold the path of a file.
const PATH_KEYS: [&str; 6] =
    ["file_path", "notebook_path", "path", "filePath", "absolute_path", "pattern"];
/// Keys that hold text which is written.
const TEXT_KEYS: [&str; 6] =
    ["content", "new_string", "new_source", "newString", "text", "file_text"];
/// Keys that hold a patch.
const PATCH_KEYS: [&str; 3] = ["input", "patch", "command"];

/// Adds what a tool that reads or edits files would touch.
pub(super) fn add(call: &mut Call, input: &Json, reading: Reading<'_>) {
    let edits = reading.lens.is_edit_tool(&call.tool);
    let reads = reading.knowledge.read_tools.contains(&call.tool);
    let does = match (edits, reads) {
        (true, _) => Use::Writes,
        (false, true) => Use::Reads,
        (false, false) => return,
    };
    let around = reading.around;
    let folder = Some(around.folder.as_str()).filter(|it| !it.is_empty());
    let place = |path: &str| {
        let place = around.known_place(path, folder);
        Place { glob: path.contains(['*', '?', '[']), ..place }
    };
    let edits = input.get("edits").and_then(Json::as_array);
    for part in std::iter::once(input).chain(edits.into_iter().flatten()) {
        for key in PATH_KEYS {
            // The pattern of a search in texts is no path.
            let is_search = key == "pattern" && call.tool != "Glob";
            let path =
                part.get(key).and_then(Json::as_str).filter(|it| !it.is_empty() && !is_search);
            let place = path.map(place);
            call.files.extend(place.map(|place| FileUse { does, place, program: None }));
        }
        let texts = TEXT_KEYS.iter().filter_map(|it| part.get(*it).and_then(Json::as_str));
        if does == Use::Writes {
            call.written.extend(texts.map(str::to_owned));
        }
    }
    let patch = PATCH_KEYS.iter().find_map(|key| input.get(*key)).unwrap_or(input).as_str();
    let (files, added) = patched(patch.unwrap_or_default());
    for (does, path) in files {
        let file = FileUse { does, place: place(path), program: None };
        // The first one may be named beside the patch.
        if !call.files.contains(&file) {
            call.files.push(file);
        }
    }
    call.written.extend(added);
}

/// The path in a header of a patch, which may be followed by a time.
fn in_header(line: &str) -> &str {
    line.split('\t').next().unwrap_or(line).trim()
}

/// The files that a patch touches, and the text it adds.
pub(super) fn patched(text: &str) -> (Vec<(Use, &str)>, Option<String>) {
    let (mut files, mut added, mut before) = (Vec::new(), String::new(), "");
    for line in text.lines() {
        if let Some((verb, path)) = patch::header(line.trim()) {
            files.push((if verb == "Delete File" { Use::Deletes } else { Use::Writes }, path));
        } else if let Some(path) = line.strip_prefix("--- ").map(in_header) {
            before = path.strip_prefix("a/").unwrap_or(path);
        } else if let Some(path) = line.strip_prefix("+++ ").map(in_header) {
            files.push(match path {
                "/dev/null" => (Use::Deletes, before),
                path => (Use::Writes, path.strip_prefix("b/").unwrap_or(path)),
            });
        } else if let Some(path) = line.strip_prefix("rename from ") {
            files.push((Use::Deletes, path.trim()));
        } else if let Some(path) =
            line.strip_prefix("rename to ").or_else(|| line.strip_prefix("copy to "))
        {
            files.push((Use::Writes, path.trim()));
        } else if let Some(text) = line.strip_prefix('+') {
            added.push_str(text);
            added.push('\n');
        }
    }
    (files, Some(added).filter(|it| !it.is_empty()))
}

/// Files that are none: what is written there is gone, or seen by whoever started the program.
const NOWHERE: [&str; 6] =
    ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", "/dev/zero"];

/// Sources of one program that are followed to the folder that it copies them into.
const SOURCES_MAX: usize = 64;

/// Programs that apply the patch which they are given.
const PATCHERS: [&str; 5] = ["apply_patch", "applypatch", "patch", "git apply", "git am"];

impl Scanner<'_> {
    /// Notes the files of a patch that a program is given as text.
    fn apply(&mut self, at: usize, program: &Invocation, scope: &Scope) {
        let values = &self.reading.lens.lens().value_options;
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
        // What is in a file that the line itself wrote is known; others are looked at on the disk.
        let named = program.operands(values).into_iter().chain(&program.reads);
        let options = ["-i", "--input"].iter().flat_map(|it| program.values(it));
        for file in named.chain(options.collect::<Vec<_>>().iter()) {
            match self.written_into(file, scope) {
                Some(written) => texts.extend(written.text),
                None => self.call.patches.extend(self.place(file, scope).absolute.map(|path| {
                    let folder = below.as_ref().and_then(Text::all).map(str::to_owned);
                    PatchFile { path, folder, program: at }
                })),
            }
        }
        for text in &texts {
            let (files, added) = patched(text);
            for (does, path) in files {
                let folder = below.as_ref().map(|it| format!("{}/", it.text)).unwrap_or_default();
                let place = self.place(&Text::known(format!("{folder}{path}")), scope);
                self.call.files.push(FileUse { does, place, program: Some(at) });
            }
            self.call.written.extend(added);
        }
    }

    /// Notes the files that a program touches.
    pub(super) fn touch(&mut self, at: usize, output: &Output, scope: &mut Scope) {
        let Some(program) = self.call.programs.get(at).cloned() else { return };
        self.apply(at, &program, scope);
        let values = &self.reading.lens.lens().value_options;
        let rows = self.reading.knowledge.effects.iter().filter(|row| {
            let any =
                |patterns: &[CommandPattern]| patterns.iter().any(|it| program.is(it, values));
            any(&row.programs) && !any(&row.except)
        });
        let mut touched: Vec<(Use, Text)> =
            rows.flat_map(|it| files_of_row(it, &program, values)).collect();
        if program.name == "find" && program.has("-delete", values) {
            touched.extend(found(&program.args).into_iter().map(|it| (Use::Deletes, it)));
        }
        if program.name == "dd" {
            let marked = |mark: &str, does: Use| {
                let args = program.args.iter().filter(move |it| it.text.starts_with(mark));
                args.map(move |it| (does, it.clone())).collect::<Vec<_>>()
            };
            touched.extend(marked("if=", Use::Reads));
            touched.extend(marked("of=", Use::Writes));
        }
        let addressed = program.args.iter().filter(|it| it.text.starts_with("file://"));
        touched.extend(addressed.map(|it| (Use::Reads, it.clone())));
        touched.extend(program.reads.iter().map(|it| (Use::Reads, it.clone())));
        touched.extend(program.writes.iter().map(|it| (Use::Writes, it.clone())));
        for (does, file) in touched {
            // What is behind `@`, `if=` and a name of a form is a file, too.
            let file = without_mark(&program.name, &file);
            if file.pipe || file.text.is_empty() || NOWHERE.contains(&file.text.as_str()) {
                continue;
            }
            let place = self.place(&file, scope);
            if let Some(path) = place.absolute.clone().filter(|_| does == Use::Writes)
                && !program.writes.contains(&file)
            {
                let written = self.written(at, &program, output, scope);
                if let Some(written) = written {
                    scope.files.insert(path, written);
                }
            }
            let place = Place { itself: does == Use::Deletes, ..place };
            self.call.files.push(FileUse { does, place, program: Some(at) });
        }
    }

    /// What a program puts into the files that it writes; nothing where it leaves their content alone.
    fn written(
        &self,
        at: usize,
        program: &Invocation,
        output: &Output,
        scope: &Scope,
    ) -> Option<Input> {
        let unknown = Input { piped: true, from: vec![at], ..Input::default() };
        match program.name.as_str() {
            "chmod" | "chown" | "chgrp" | "touch" | "mkdir" | "setfacl" | "chattr" => None,
            "tee" => Some(Input { text: output.text.clone(), ..unknown }),
            "cp" | "mv" | "install" | "ln" | "dd" => {
                let from = match program.name.as_str() {
                    "dd" => program.args.iter().find(|it| it.text.starts_with("if=")),
                    _ => program.args.iter().find(|it| !it.text.starts_with('-')),
                };
                let from = from.map(|it| without_mark(&program.name, it));
                let known = from.and_then(|it| self.written_into(&it, scope));
                Some(known.unwrap_or(unknown))
            }
            _ => Some(unknown),
        }
    }
}

/// What is done with the files that a program is given, by one row of the table.
fn files_of_row(
    row: &FileEffect,
    program: &Invocation,
    values: &[ValueOptions],
) -> Vec<(Use, Text)> {
    let mut touched: Vec<(Use, Text)> = Vec::new();
    // The words that name the program itself are no files.
    let pattern = row.programs.iter().find(|it| program.is(it, values));
    let own_words = pattern.map_or(0, |it| it.operands(&program.name, values));
    let mut into: Vec<Text> = Vec::new();
    let options = [
        (Use::Reads, &row.read_options),
        (Use::Writes, &row.write_options),
        (Use::Writes, &row.folder_options),
    ];
    for (does, names) in options {
        for name in names {
            for value in program.values(name).chain(program.bundled_values(name, values)) {
                into.extend(row.folder_options.contains(name).then(|| value.clone()));
                touched.push((does, value));
            }
        }
    }
    // `mv -t folder a b`: the last one is no target.
    let target_given = !into.is_empty();
    let operands = program.operands(values);
    let files = operands.iter().skip(own_words);
    let files: Vec<&&Text> =
        files.filter(|it| !touched.iter().any(|known| known.1 == ***it)).collect();
    let saved = files.iter().enumerate().filter(|it| row.saves.takes(it.0, files.len()));
    touched.extend(saved.filter_map(|it| Some((Use::Writes, last_step(it.1)?))));
    let parts = [(Use::Reads, row.read), (Use::Writes, row.write), (Use::Deletes, row.delete)];
    for (does, which) in parts {
        let which = if target_given { which.without_target() } else { which };
        let taken = files.iter().enumerate().filter(|it| which.takes(it.0, files.len()));
        touched.extend(taken.map(|it| (does, (**it.1).clone())));
    }
    touched.extend(copied(row, &files, into.last()).into_iter().map(|it| (Use::Writes, it)));
    touched
}

/// What `find` finds, by its roots and the name that it looks for: where it looks for nothing, all of a
/// root, else something in it.
fn found(finder: &[Text]) -> Vec<Text> {
    let names = looked_for(finder);
    let mut tests = finder.iter().filter(|it| it.text.starts_with('-'));
    let all = tests.all(|it| matches!(it.text.as_str(), "-delete" | "-depth" | "-type"));
    let found = |root: Text| -> Vec<Text> {
        match names.as_slice() {
            [] if all => vec![root],
            [] => vec![root.below()],
            names => names.iter().filter_map(|it| named_below(&root, it)).collect(),
        }
    };
    find_roots(finder).into_iter().flat_map(found).collect()
}

/// What lies in the folder that a program writes into: files of the names of its sources, where it has
/// some; a target that may be a folder counts as one.
fn copied(row: &FileEffect, files: &[&&Text], into: Option<&Text>) -> Vec<Text> {
    let has_sources = row.read == Which::BeforeLast;
    let (sources, folder) = match (files, into) {
        (files, Some(folder)) if has_sources => (files, folder),
        ([sources @ .., last], None) if has_sources => (sources, **last),
        (_, into) => return into.map(Text::below).into_iter().collect(),
    };
    let name = |it: &Text| Some(it.all().map(base_name)?.to_owned());
    // What the sources hold lies in the folder, where they are folders that are written as such.
    let is_name = |it: &String| !it.is_empty() && !it.ends_with('/') && it != "." && it != "..";
    let within = |source: &&&Text| match (folder.all(), name(source).filter(is_name)) {
        (Some(folder), Some(name)) => {
            Text { glob: source.glob, ..Text::known(in_folder(folder, &name)) }
        }
        _ => folder.below(),
    };
    let rest = (sources.len() > SOURCES_MAX).then(|| folder.below());
    sources.iter().take(SOURCES_MAX).map(within).chain(rest).collect()
}

/// The last step of an address, without what is asked there.
fn last_step(address: &Text) -> Option<Text> {
    let text = address.text.split(['?', '#']).next()?;
    let (_, path) = text.split_once("://").unwrap_or(("", text));
    let (_, step) = path.rsplit_once('/')?;
    (!step.is_empty()).then(|| Text { from: address.from.clone(), ..Text::known(step) })
}

/// The file in `@file`, `if=file`, `name=@file`, and in git's `revision:file`.
fn without_mark(program: &str, word: &Text) -> Text {
    let text = word.text.as_str();
    if let Some((revision, _)) = text.split_once(':').filter(|_| program == "git") {
        return word.tail(revision.len() + 1);
    }
    let marks = ["if=", "of=", "@"];
    if let Some(mark) = marks.iter().find(|it| text.starts_with(**it)) {
        return word.tail(mark.len());
    }
    match text.split_once("=@") {
        // Behind a comma or a semicolon stands what more is said of it.
        Some((name, file)) => {
            let end = file.find([',', ';']).unwrap_or(file.len());
            let tail = word.tail(name.len() + 2);
            let text = tail.text.get(..end).unwrap_or_default().to_owned();
            Text { known_to: tail.known_to.min(text.len()), text, ..tail }
        }
        None => word.clone(),
    }
}

/// Programs that change no file that git tracks, before another program of the same line.
const HARMLESS: [&str; 7] = ["cd", "echo", "git", "ls", "pwd", "test", "true"];

/// Options of git with a value of their own, before its subcommand.
const WITH_VALUE: [&str; 2] = ["-c", "--namespace"];

/// Variables that give git another tree.
const VARIABLES: [&str; 4] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"];

impl Call {
    /// The folder whose work tree this program would change; nothing where that is unknown, or where an
    /// earlier program of the line may change the tree before it.
    #[must_use]
    pub fn tree_folder(&self, at: usize, around: &Surroundings) -> Option<String> {
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

/// Whether a program may change files that git tracks, other than to what git has.
fn changes_tree(program: &Invocation) -> bool {
    let stash = program.name == "git" && program.args.iter().any(|it| it.text == "stash");
    stash || !HARMLESS.contains(&program.name.as_str())
}

/// The folder that git is called in, its `-C` options applied.
fn folder_of(git: &Invocation, around: &Surroundings) -> Option<String> {
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
