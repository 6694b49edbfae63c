//! One program that a command line starts: its arguments, options, operands, and standard input.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::container_mounts::ContainerMounts;
use super::effect_set::CallEffects;
use super::find::named_roots;
use super::paths::{CallEnvironment, ResolvedPath, follow_links};
use super::shell_text::ShellText;
use crate::path::in_folder;
use crate::pattern::{CommandPattern, OptionReading, ValuesOf, bundled_letters};
use crate::shell::own_folder;
use crate::vocabulary::ValueOptions;
use policyd_yaml::rows::Rows;

/// One program that a command line starts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Invocation {
    /// Base name. Empty if it is unknown.
    pub name: String,
    /// The program as written.
    pub called: ShellText,
    /// Arguments, without the program.
    pub args: Vec<ShellText>,
    /// Working directory. `None` if it is unknown.
    pub folder: Option<String>,
    /// Files to which its output is redirected.
    pub writes: Vec<ShellText>,
    /// Those of `writes` that keep their content: `>>`.
    pub appends: Vec<ShellText>,
    /// Files from which its input is redirected.
    pub reads: Vec<ShellText>,
    /// Its standard input.
    pub input: StandardInput,
    /// Indexes of the programs whose output it receives: by a pipe, as an argument, or as a file.
    pub fed_by: Vec<usize>,
    /// Code that it runs. Empty without code or if it is unknown.
    pub code: String,
    /// Whether it runs unknown code.
    pub runs_unknown: bool,
    /// Whether it is only supposed to run, because an argument of another program has its name.
    pub guessed: bool,
    /// Whether the vocabulary says which of its operands are files. Other operands are texts then.
    pub described: bool,
    /// What it does to files, as far as guards name programs by it.
    pub effects: CallEffects,
    /// Whether it only prints what it would do, or how it is used.
    pub is_dry_run: bool,
    /// Values of its options that it sends.
    pub sent: Vec<ShellText>,
    /// Whether it writes what another machine sends.
    pub fetches: bool,
    /// Whether a loop runs it for each item of a list that the line does not name.
    pub repeated: bool,
    /// Removed wrappers, outermost first: `sudo`, `xargs`.
    pub wrappers: Vec<String>,
    /// Targets of the symbolic links that the line created before, by absolute path.
    pub links: BTreeMap<String, String>,
    /// The mounts of the container in which it runs.
    pub container: Option<Rc<ContainerMounts>>,
}

impl Invocation {
    /// Resolves an operand of the program through the links that the line created. If `deleted`,
    /// the result is the link itself and not its target.
    #[must_use]
    pub fn place(
        &self,
        operand: &ShellText,
        deleted: bool,
        around: &CallEnvironment,
    ) -> ResolvedPath {
        let place = around.place(operand, self.folder.as_deref());
        let through = ["/", "/."].iter().any(|it| operand.text.ends_with(it));
        let absolute = place.absolute.and_then(|it| match it.rsplit_once('/') {
            Some((folder, last)) if deleted && !through => {
                let folder = follow_links(folder.to_owned(), &self.links)?;
                Some(in_folder(&folder, last))
            }
            _ => follow_links(it, &self.links),
        });
        let absolute = absolute.and_then(|it| match &self.container {
            Some(mounts) => mounts.host(&it),
            None => Some(it),
        });
        ResolvedPath { absolute, itself: deleted, ..place }
    }
}

/// The standard input of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StandardInput {
    /// Whether the input comes from a pipe, a here-document or a here-string.
    pub piped: bool,
    /// Content of the input. `None` if it is unknown.
    pub text: Option<String>,
    /// Whether `text` contains unknown values as written in the source.
    pub as_written: bool,
    /// Whether the input is a file.
    pub is_file: bool,
    /// Indexes of the programs that write the input.
    pub from: Vec<usize>,
    /// The files that the input names: first an unknown path below their common directory, then the
    /// names that were searched for.
    pub files: Vec<ShellText>,
}

impl StandardInput {
    /// Returns the content of a file after this was appended to what the line wrote into it before. What the file
    /// contained before the line is unknown, and does not count.
    pub(super) fn behind(self, before: Option<&Self>) -> Self {
        let Some(before) = before else { return self };
        let both = before.text.as_ref().zip(self.text.as_ref());
        let text = both.map(|(one, other)| format!("{one}{other}"));
        let from = before.from.iter().chain(&self.from).copied().collect();
        Self { text, from, as_written: self.as_written || before.as_written, ..self }
    }
}

/// Returns whether the name of a script is the standard input.
pub(super) fn is_standard_input(name: &str) -> bool {
    matches!(name, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

/// An argument that is not `--` and not the value of an option.
enum ProgramArgument<'a> {
    /// An option, without a value in the same word.
    Option(&'a str),
    Operand(&'a ShellText),
}

impl Invocation {
    /// Returns whether a command pattern matches the program. An unknown word matches every
    /// pattern.
    #[must_use]
    #[inline]
    pub fn is(&self, pattern: &CommandPattern, values: &Rows<ValueOptions>) -> bool {
        self.is_by(pattern, values, OptionReading::Listed)
    }

    /// Like [`is`](Self::is), with a choice which options count as such that take a value.
    #[must_use]
    #[inline]
    pub fn is_by(
        &self,
        pattern: &CommandPattern,
        values: &Rows<ValueOptions>,
        reading: OptionReading,
    ) -> bool {
        let args = self.args.iter().map(|it| it.text.as_str());
        pattern.matches_words(&self.name, args, values, reading)
    }

    /// Returns the program with its arguments, as it is shown.
    #[must_use]
    pub fn line(&self) -> String {
        let called = if self.name.is_empty() { &self.called.text } else { &self.name };
        let args = self.args.iter().map(|it| it.text.as_str());
        std::iter::once(called.as_str()).chain(args).collect::<Vec<_>>().join(" ")
    }

    /// Returns how many words are before `--help` or `--version`, if the arguments ask for nothing else: the program then
    /// does nothing, provided that these words are its subcommand. `None` if that is not certain.
    ///
    /// No further argument is certain. An option before `--help` can take it as its value (`--body --help`), except one
    /// of a subcommand of which the vocabulary lists the options with values. Programs of BSD end their options at the
    /// first operand (`rm -r a --help`). `--version` can have a value (`gem yank a --version 1`), and a script of the
    /// project may know neither (`./deploy.sh --help`).
    #[must_use]
    pub fn words_before_help(&self, values: &Rows<ValueOptions>) -> Option<usize> {
        let (last, before) = self.args.split_last()?;
        let asked = last.all().filter(|it| matches!(*it, "--help" | "--version"))?;
        if !before.iter().all(ShellText::is_known) || !own_folder(&self.called.text).is_empty() {
            return None;
        }
        if !before.iter().any(|it| it.text.starts_with(['-', '+'])) {
            return Some(before.len());
        }
        let sub = before.first().map_or("", |it| it.text.as_str());
        let is_of = |it: &ValueOptions| it.program.split_once(' ') == Some((&self.name, sub));
        if asked != "--help" || !values.named(&self.name).any(is_of) {
            return None;
        }
        let arguments = self.split_arguments(values);
        let operands = arguments.iter().filter(|it| matches!(it, ProgramArgument::Operand(_)));
        let is_option = matches!(arguments.last(), Some(ProgramArgument::Option("--help")));
        is_option.then(|| operands.count())
    }

    /// Returns whether an option is given: `-r` alone or in a bundle, `--recursive` or an
    /// abbreviation of it. A later `--no-recursive` removes it.
    #[must_use]
    pub fn has(&self, option: &str, values: &Rows<ValueOptions>) -> bool {
        let mut given = false;
        for arg in self.split_arguments(values) {
            let ProgramArgument::Option(arg) = arg else { continue };
            let (name, _) = split_option(arg);
            if same_option(option, name) {
                given = true;
            } else if let Some(taken) = name.strip_prefix("--no-")
                && option.strip_prefix("--").is_some_and(|it| it == taken)
            {
                given = false;
            }
        }
        given
    }

    /// Returns whether the program has no other options than these. Each letter of a bundle is an option. Numbers
    /// (`-20`) do not count.
    pub fn has_only(&self, allowed: &[String], values: &Rows<ValueOptions>) -> bool {
        let is_listed = |name: &str| allowed.iter().any(|it| it == name);
        self.split_arguments(values).into_iter().all(|arg| {
            let ProgramArgument::Option(word) = arg else { return true };
            let (name, _) = split_option(word);
            let letters = word.strip_prefix('-').filter(|it| !it.starts_with('-'));
            let each =
                |it: &str| it.chars().all(|c| c.is_ascii_digit() || is_listed(&format!("-{c}")));
            is_listed(name) || letters.is_some_and(each)
        })
    }

    /// Returns the values of an option: `-o file`, `-ofile`, `--output file`, `--output=file`, `-output=file`.
    pub fn values<'a>(&'a self, option: &'a str) -> impl Iterator<Item = ShellText> + 'a {
        let words = self.args.iter().enumerate();
        let end = self.end_of_options();
        words.take(end).filter_map(move |(at, arg)| {
            let next = || self.args.get(at.saturating_add(1)).cloned();
            let text = arg.text.as_str();
            if text == option {
                return next();
            }
            if option.starts_with("--") {
                let (name, value) = split_option(text);
                if !(name.starts_with("--") && same_option(option, name)) {
                    return None;
                }
                return match value {
                    Some(at) => Some(arg.tail(at)),
                    None => next(),
                };
            }
            let is_letter = option.len() == 2;
            // Go and Java write long options with one dash: `-var-file=prod.tfvars`.
            let joined = text.strip_prefix(option).and_then(|it| it.strip_prefix('='));
            if let Some(value) = joined.filter(|_| !is_letter) {
                return Some(arg.tail(text.len().saturating_sub(value.len())));
            }
            let glued = text.strip_prefix(option).filter(|_| is_letter && !text.starts_with("--"));
            if let Some(value) = glued {
                let value = arg.tail(text.len().saturating_sub(value.len()));
                return Some(match value.text.starts_with('=') {
                    true => value.tail(1),
                    false => value,
                });
            }
            // The last letter of a bundle takes the next word.
            let letter = option.strip_prefix('-')?;
            let bundled = is_letter && bundled_letters(text).is_some_and(|it| it.ends_with(letter));
            if bundled { next() } else { None }
        })
    }

    /// Returns the values of a one-letter option in a bundle: `-sFfile`.
    pub(super) fn bundled_values<'a>(
        &'a self,
        option: &'a str,
        rows: &'a Rows<ValueOptions>,
    ) -> impl Iterator<Item = ShellText> + 'a {
        let own = rows.named(&self.name).filter(|it| it.program == self.name);
        let own = own.flat_map(|it| &it.options);
        let known: Vec<String> = own.cloned().collect();
        let words = self.args.iter().take(self.end_of_options());
        words.filter_map(move |arg| {
            let bundle = arg.text.starts_with('-') && !arg.text.starts_with("--");
            let (told, takes_next) = option_of(&known, &arg.text).filter(|_| bundle)?;
            let letter = option.strip_prefix('-').filter(|it| it.len() == 1)?;
            let ours = told.len() > 2 && !takes_next && told.ends_with(letter);
            ours.then(|| arg.tail(told.len()))
        })
    }

    /// Returns the arguments that are neither options nor values of options.
    #[must_use]
    pub fn operands(&self, values: &Rows<ValueOptions>) -> Vec<&ShellText> {
        if self.name == "find" {
            // Behind the directories, a word belongs to a test or an action.
            return named_roots(&self.args).collect();
        }
        let operand = |it| if let ProgramArgument::Operand(text) = it { Some(text) } else { None };
        self.split_arguments(values).into_iter().filter_map(operand).collect()
    }

    /// Returns options and operands in order. The row of a subcommand (`git commit`) lists the
    /// options with values: their letters may be part of a bundle, and `-S*` takes its value only
    /// from the same word.
    fn split_arguments(&self, rows: &Rows<ValueOptions>) -> Vec<ProgramArgument<'_>> {
        let own = ValuesOf { program: &self.name, rows };
        let mut sub: Option<&[String]> = None;
        let mut found = Vec::new();
        let mut words = self.args.iter();
        while let Some(whole) = words.next() {
            let word = whole.text.as_str();
            if word == "--" {
                found.extend(words.map(ProgramArgument::Operand));
                break;
            }
            if word.len() < 2 || !word.starts_with('-') {
                sub = sub.or_else(|| Some(subcommand(rows, &self.name, word)));
                found.push(ProgramArgument::Operand(whole));
                continue;
            }
            let (option, takes_next) = match option_of(sub.unwrap_or_default(), word) {
                Some(told) => told,
                // In `-C/path`, the letters of the value are not options.
                None => match own.attached(word) {
                    Some((option, _)) => (option, false),
                    None => (word, own.takes_value(word)),
                },
            };
            found.push(ProgramArgument::Option(option));
            if takes_next {
                words.next();
            }
        }
        found
    }

    /// Returns the words that can name a subcommand: operands, apart from those that might be the value of an option
    /// behind the first of them.
    pub(super) fn command_words<'a>(
        &'a self,
        values: &'a Rows<ValueOptions>,
    ) -> impl Iterator<Item = &'a str> {
        let own = ValuesOf { program: &self.name, rows: values };
        let (mut begun, mut follows_option) = (false, false);
        self.split_arguments(values).into_iter().filter_map(move |it| {
            let is_value = std::mem::take(&mut follows_option) && begun;
            match it {
                ProgramArgument::Operand(text) if !is_value => {
                    begun = true;
                    Some(text.text.as_str())
                }
                ProgramArgument::Operand(_) => None,
                ProgramArgument::Option(option) => {
                    follows_option = !option.contains('=') && !own.takes_value(option);
                    None
                }
            }
        })
    }

    fn end_of_options(&self) -> usize {
        self.args.iter().position(|it| it.text == "--").unwrap_or(self.args.len())
    }
}

/// Returns the options with values of a subcommand: the row `git commit`.
fn subcommand<'a>(rows: &'a Rows<ValueOptions>, program: &str, word: &str) -> &'a [String] {
    let of_both = |it: &&ValueOptions| it.program.split_once(' ') == Some((program, word));
    rows.named(program).find(of_both).map_or(&[], |it| &it.options)
}

/// Returns the option in a word that takes a value, without the value, and whether the next word is
/// the value.
fn option_of<'w>(known: &[String], word: &'w str) -> Option<(&'w str, bool)> {
    if word.starts_with("--") {
        return known.iter().any(|it| it == word).then_some((word, true));
    }
    let letter_of = |it: &str, c: char| {
        it.strip_prefix('-').and_then(|it| it.strip_prefix(c)).map(str::to_owned)
    };
    let (at, letter, rest) = word.char_indices().skip(1).find_map(|(at, c)| {
        let rest = known.iter().find_map(|it| letter_of(it, c).filter(|it| it.len() < 2))?;
        Some((at, c, rest))
    })?;
    let end = at.saturating_add(letter.len_utf8());
    Some((word.get(..end)?, rest.is_empty() && end == word.len()))
}

/// Splits an option into its name and the byte offset of its value.
fn split_option(arg: &str) -> (&str, Option<usize>) {
    match arg.split_once('=') {
        Some((name, _)) => (name, Some(name.len().saturating_add(1))),
        None => (arg, None),
    }
}

/// Returns whether a given option is the wanted one.
fn same_option(wanted: &str, given: &str) -> bool {
    if wanted == given {
        return true;
    }
    if let Some(long) = wanted.strip_prefix("--") {
        // Programs accept an unambiguous beginning of a long option.
        let short = given.strip_prefix("--").unwrap_or_default();
        return !short.is_empty() && long.starts_with(short);
    }
    match (bundled_letters(wanted), bundled_letters(given)) {
        (Some(wanted), Some(given)) if wanted.len() == 1 => given.contains(wanted),
        _ => false,
    }
}
