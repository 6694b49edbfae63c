//! Programs that run another one for each of something: `xargs` and `parallel` for what they read,
//! `find` and `fd` for the files below a folder.

use super::super::shell::unwrap::base_name;
use super::scan::{Scanner, Scope};
use super::value::Text;
use super::wrap::Simple;
use super::{Input, Invocation, output};
use crate::path::in_folder;

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
            return output::roots(words.get(1..).unwrap_or_default());
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
