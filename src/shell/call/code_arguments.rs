//! The words of the program that a call in code is like, or that it starts.
//!
//! Contains: operands with their values, the file that `open` writes, and commands with values in them.
//! Does not contain: which calls code contains (`code`), the values of expressions (`code_paths`).

use std::collections::BTreeMap;

use super::code::{is_list, is_setting, literals};
use super::code_parts::PartText;
use super::code_paths::PathReader;
use super::code_text::{UNKNOWN, path_text, shell_text};
use super::words::ShellText;
use super::wrappers::line;

/// Calls that open a file to read or to write it.
const OPENS: [&str; 3] = ["open", "openSync", ".open"];
/// Programs whose calls have a file in their first argument, and data in the others.
const FIRST_ONLY: [&str; 2] = ["tee", "cat"];

/// Commands by their words, each with the length of its known part.
pub(super) type RanCommands = BTreeMap<Vec<(String, usize)>, Vec<usize>>;

/// Reads the arguments of calls.
#[derive(Debug)]
pub(super) struct ArgumentReader<'r, 'c> {
    /// Reads expressions. `None` if the language of the code is not read.
    pub(super) reader: Option<&'r mut PathReader<'c>>,
    /// Directories that the code lists.
    pub(super) listed: &'r [ShellText],
    /// The program whose code it is.
    pub(super) program: &'r str,
    /// The commands that ran, with the programs that print.
    pub(super) ran: &'r mut RanCommands,
}

impl ArgumentReader<'_, '_> {
    fn is_perl(&self) -> bool {
        self.program.starts_with("perl")
    }

    /// Returns the operands of a program that a call is like, once for each value of its arguments. `literal` has the
    /// arguments with literals instead of names.
    pub(super) fn operands(
        &mut self,
        like: &str,
        arguments: &[String],
        literal: &[String],
    ) -> Vec<Vec<ShellText>> {
        let is_first_only = FIRST_ONLY.contains(&like) && !self.is_perl();
        let all = arguments.iter().zip(literal).filter(|it| !is_setting(it.0));
        let all = all.take(if is_first_only { 1 } else { usize::MAX });
        let values: Vec<Vec<ShellText>> =
            all.map(|(it, literal)| self.words(it, literal)).collect();
        in_runs(&values)
    }

    /// Returns the words that an argument can be.
    pub(super) fn words(&mut self, argument: &str, literal: &str) -> Vec<ShellText> {
        let is_number = argument.trim().starts_with(|c: char| c.is_ascii_digit());
        let value = self.reader.as_mut().filter(|_| !is_number).map(|it| it.read(argument));
        let texts = value.map(|it| it.texts).unwrap_or_default();
        let is_known = |it: &PartText| !it.start().is_empty() || it.all().is_some();
        let mut words: Vec<ShellText> =
            texts.iter().filter(|it| is_known(it)).map(PartText::word).collect();
        if words.len() == texts.len() && !words.is_empty() {
            return words;
        }
        // What is written is known at least as a name.
        let written = path_text(literal).filter(|it| !words.contains(it));
        match written {
            Some(path) if words.is_empty() => return vec![path],
            // A name can have the value of its last literal, too.
            Some(path) if literal != argument => words.push(path),
            Some(_) | None => {}
        }
        match self.listed {
            [] => words.push(ShellText::unknown(argument.trim())),
            // It is probably one of the files that the code lists.
            listed => words.extend(listed.iter().map(ShellText::below)),
        }
        words
    }

    /// Returns the paths that `open(path, "w")` of Python or Node, or `open(F, ">", path)` of Perl, changes. Empty if
    /// the file is only read.
    pub(super) fn opened_to_write(
        &mut self,
        call: &str,
        arguments: &[String],
        literal: &[String],
    ) -> Vec<ShellText> {
        if !OPENS.contains(&call) {
            return Vec::new();
        }
        let mode = |it: &String| !it.is_empty() && it.chars().all(|c| "rwaxbtU+<>".contains(c));
        let texts = |it: &String| literals(it);
        let later: Vec<String> = literal.iter().skip(1).flat_map(texts).collect();
        let by_mode = later.iter().any(|it| mode(it) && it.contains(['w', 'a', 'x', '+', '>']));
        let by_mark = later.iter().any(|it| it.starts_with(['>', '+']));
        if !by_mode && !by_mark {
            return Vec::new();
        }
        let at = if self.is_perl() { 2 } else { 0 };
        let read =
            arguments.get(at).zip(literal.get(at)).map(|(it, literal)| self.words(it, literal));
        let read = read.unwrap_or_default();
        if read.iter().any(|it| !it.known_part().is_empty()) {
            return read;
        }
        let first = literal.first().map(texts).unwrap_or_default();
        let path = first.into_iter().chain(later.into_iter().filter(|it| !mode(it))).next();
        let path = path.map(|it| ShellText::known(it.trim_start_matches(['+', '<', '>', ' '])));
        path.into_iter().collect()
    }

    /// Returns the commands that a call starts: as a text, or as a list of words.
    pub(super) fn commands(&mut self, arguments: &[String], literal: &[String]) -> Vec<String> {
        let Some(first) = literal.first() else { return Vec::new() };
        let texts = literals(first);
        let rest = literal.iter().skip(1).flat_map(|it| literals(it));
        let words: Vec<String> = match texts.as_slice() {
            [] => Vec::new(),
            _ if is_list(first) => texts,
            // `spawn("rm", ["-rf", "/"])`, `execlp("rm", "rm", "-rf")`
            [one] if !one.contains(' ') => std::iter::once(one.clone()).chain(rest).collect(),
            _ => Vec::new(),
        };
        let (read, is_whole) = self.read_command(arguments);
        let written = match words.as_slice() {
            [] if literals(first).is_empty() => String::new(),
            [] => shell_text(first).unwrap_or_default(),
            words => line(words),
        };
        // With unknown values, the command has at least the known pieces of the text as it is written.
        let pieces = known_pieces(&written);
        let is_better = |it: &String| {
            pieces.iter().all(|piece| it.contains(piece))
                && unknown_count(it) < unknown_count(&written)
        };
        match !read.is_empty() && (is_whole || read.iter().all(is_better)) {
            true => read,
            false if written.is_empty() => Vec::new(),
            false => vec![written],
        }
    }

    /// Returns the commands in arguments whose values are known, at least in part, and whether each of their words begins with
    /// a known part.
    fn read_command(&mut self, arguments: &[String]) -> (Vec<String>, bool) {
        let nothing = (Vec::new(), false);
        let Some(reader) = self.reader.as_mut() else { return nothing };
        let given: Vec<&String> = arguments.iter().filter(|it| !is_setting(it)).collect();
        let Some((first, rest)) = given.split_first() else { return nothing };
        let value = reader.read(first);
        let is_word = !value.is_list && !value.texts.iter().any(|it| it.start().contains(' '));
        let mut items = value.items.clone();
        if is_word && !rest.is_empty() {
            items.push(value.clone());
            rest.iter().for_each(|it| items.extend(reader.read_items(it)));
        }
        if items.is_empty() {
            let texts = value.texts.iter().filter(|_| !value.is_list && !value.is_opaque);
            let texts: Vec<String> = texts.map(PartText::in_shell).collect();
            return (texts, value.texts.iter().all(|it| it.all().is_some()));
        }
        let begins_known = |it: &PartText| it.all().is_some() || !it.start().is_empty();
        let is_whole = items.iter().all(|it| !it.is_opaque && it.texts.iter().all(begins_known));
        let words = items.iter().map(|it| it.texts.iter().map(PartText::quoted).collect());
        let words: Vec<Vec<String>> = words.collect();
        (in_runs(&words).into_iter().map(|it| it.join(" ")).collect(), is_whole)
    }
}

/// Returns the known pieces of a shell text.
fn known_pieces(text: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '{' | '}');
    let mut pieces = text.split('$');
    let first = pieces.next();
    first.into_iter().chain(pieces.map(|it| it.trim_start_matches(is_name))).collect()
}

/// Returns the number of unknown parts of a shell text.
fn unknown_count(text: &str) -> usize {
    text.matches('$').count()
}

/// Returns the arguments of several calls, so that each value of an argument is in one of them.
fn in_runs<T: Clone>(values: &[Vec<T>]) -> Vec<Vec<T>> {
    let count = values.iter().map(Vec::len).max().unwrap_or(1);
    let run = |at: usize| {
        values.iter().filter_map(|it| it.get(at).or_else(|| it.last()).cloned()).collect()
    };
    (0..count).map(run).collect()
}

/// Returns the known start of a path with an unknown part.
pub(super) fn listed_folder(text: &PartText) -> Option<ShellText> {
    let known = text.start();
    // What a pattern matches is in its directory.
    let wild = known.find(['*', '?', '[']).filter(|_| text.is_pattern || text.all().is_some());
    let folder = match wild {
        Some(wild) => known.get(..wild)?.rsplit_once('/').map_or(".", |it| it.0),
        None => known,
    };
    (!folder.is_empty() && !folder.contains(UNKNOWN)).then(|| ShellText::known(folder))
}
