//! What programs do with the files they are given, by the table of what is known of programs.

use super::super::lens::ValueOptions;
use super::super::pattern::CommandPattern;
use super::super::shell::unwrap::base_name;
use super::each::{looked_for, named_below};
use super::files::{FileUse, PatchFile, Use, patched};
use super::known::{FileEffect, Which};
use super::place::Place;
use super::scan::{Output, Scanner, Scope};
use super::value::Text;
use super::{Input, Invocation, output};
use crate::path::in_folder;

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
    output::roots(finder).into_iter().flat_map(found).collect()
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
