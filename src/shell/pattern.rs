//! Command patterns such as `cargo test` or `python -m pytest`: parsing, and matching with one
//! program whose quoting and wrappers are already removed.

use std::borrow::Cow;
use std::collections::BTreeSet;

use policyd_yaml::deferred::SharedBytes;
use policyd_yaml::rows::{RowNames, Rows};
use serde::{Deserialize, Serialize};

use super::glob::{begins_alike, word_matches};
use super::program::Program;
use super::vocabulary::ValueOptions;

/// Words that identify a program: its name, its leading arguments, and options that it must have.
/// Stored as one text, because most patterns consist of a name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandPattern(String);

impl CommandPattern {
    /// Parses a pattern. A pattern without words matches nothing.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        // Programs match by their base name, however they were called.
        let folder = text.get(..end).and_then(|it| it.rfind(['/', '\\']));
        let text = text.get(folder.map_or(0, |it| it + 1)..).unwrap_or_default();
        Self(text.trim_start().to_owned())
    }

    /// Returns the normalized source.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether a program with an unknown name might match: the pattern names no operand,
    /// and the arguments contain the option values that it names. An unknown name can bring options
    /// of its own.
    #[must_use]
    pub fn may_be<'p>(
        &self,
        args: impl Iterator<Item = &'p str>,
        value_options: &Rows<ValueOptions>,
    ) -> bool {
        let words = || self.words().skip(1);
        if words().all(|it| it.starts_with('-')) {
            return true;
        }
        let values = ValuesOf { program: self.program(), rows: value_options };
        let wanted = ProgramArguments::read(words(), &values);
        wanted.positional.is_empty() && {
            let found = ProgramArguments::read(args, &values);
            wanted.options.iter().all(|it| found.has(it))
        }
    }

    /// Counts the operands that the pattern names for a program of this name: 1 for `git push`. The
    /// value of an option is not an operand.
    #[must_use]
    pub fn operands(&self, program: &str, value_options: &Rows<ValueOptions>) -> usize {
        let words = || self.words().skip(1);
        // Most patterns name no option.
        if !words().any(|it| it.starts_with('-')) {
            return words().count();
        }
        let values = ValuesOf { program, rows: value_options };
        let arguments = ProgramArguments::read(words(), &values);
        let toolchains = arguments.options.iter().filter(|it| it.name.starts_with('+'));
        arguments.positional.len() + toolchains.count()
    }

    /// Returns the program name, which can contain `*`.
    #[must_use]
    pub fn program(&self) -> &str {
        self.words().next().unwrap_or_default()
    }

    /// Returns whether a program with this name can match.
    #[must_use]
    #[inline]
    pub fn names(&self, program: &str) -> bool {
        // Each program is compared with hundreds of patterns.
        begins_alike(&self.0, program)
            && self.words().next().is_some_and(|it| word_matches(it, program))
    }

    /// Returns whether the pattern consists of a name only.
    fn is_name(&self) -> bool {
        self.words().nth(1).is_none()
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.0.split_whitespace()
    }

    /// Returns whether the pattern matches the program. `value_options` lists the options that take
    /// their value from the next argument, so that the value does not count as an argument.
    #[must_use]
    pub fn matches(&self, program: &Program, value_options: &Rows<ValueOptions>) -> bool {
        let args = program.args.iter().map(String::as_str);
        self.matches_words(&program.name, args, value_options, OptionReading::Listed)
    }

    /// Like [`matches`](Self::matches), for a program given as name and arguments.
    #[inline]
    pub(super) fn matches_words<'p>(
        &self,
        program: &str,
        args: impl Iterator<Item = &'p str> + Clone,
        value_options: &Rows<ValueOptions>,
        reads_options: OptionReading,
    ) -> bool {
        self.names(program) && self.fits(program, args, value_options, reads_options)
    }

    /// Returns whether the arguments of a program with a matching name match.
    fn fits<'p>(
        &self,
        program: &str,
        args: impl Iterator<Item = &'p str> + Clone,
        value_options: &Rows<ValueOptions>,
        reads_options: OptionReading,
    ) -> bool {
        if self.is_name() {
            return true;
        }
        // A word that is an option in the pattern is not an operand.
        let mut operands = self.words().skip(1).take_while(|it| !it.starts_with(['-', '+']));
        if !operands.all(|it| args.clone().any(|arg| word_matches(it, arg))) {
            return false;
        }
        let values = ValuesOf { program, rows: value_options };
        let wanted = ProgramArguments::read(self.words().skip(1), &values);
        let found = ProgramArguments::read(args, &values);
        let skips = if reads_options == OptionReading::Any { found.doubtful } else { 0 };
        let begins = |skipped| {
            let found = found.positional.get(skipped..).unwrap_or_default();
            wanted.positional.len() <= found.len()
                && wanted.positional.iter().zip(found).all(|(w, f)| word_matches(w, f))
        };
        (0..=skips).any(begins) && wanted.options.iter().all(|option| found.has(option))
    }
}

impl RowNames for CommandPattern {
    fn names(&self) -> Vec<Cow<'_, str>> {
        vec![self.program().into()]
    }
}

/// Names of the programs of command patterns, as a test that decodes no pattern and almost never errs.
///
/// With a set of first letters instead, each program of a call decoded the patterns of a quarter of all guards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameFilter {
    /// Two bytes of the hash of each name that is not a glob.
    hashes: SharedBytes,
    /// First bytes of the globs, one bit each; all bits if one of them begins with a special character.
    globs: u64,
}

/// The name of a program in the form that a [`NameFilter`] tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashedName {
    hash: [u8; 2],
    initial: u64,
    is_unknown: bool,
}

impl NameFilter {
    /// Returns whether a program with this name might match a pattern. `false` is certain. A program with an unknown
    /// name might match any pattern.
    #[must_use]
    pub fn may_have(&self, name: HashedName) -> bool {
        self.globs & name.initial != 0
            || (name.is_unknown && !(self.globs == 0 && self.hashes.is_empty()))
            || self.hashes.as_chunks::<2>().0.contains(&name.hash)
    }
}

impl HashedName {
    /// Returns the form of a name. An empty name is unknown.
    #[must_use]
    pub fn new(name: &str) -> Self {
        // FNV-1a. Its low bits change with each byte.
        let hash = name
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        let [one, two, three, four] = hash.to_le_bytes();
        let initial = name.as_bytes().first().map_or(0, |byte| 1 << (byte % 64));
        Self { hash: [one ^ three, two ^ four], initial, is_unknown: name.is_empty() }
    }
}

impl<'p> FromIterator<&'p CommandPattern> for NameFilter {
    fn from_iter<T: IntoIterator<Item = &'p CommandPattern>>(patterns: T) -> Self {
        let (mut hashes, mut globs) = (Vec::new(), 0);
        for name in patterns.into_iter().map(CommandPattern::program) {
            let hashed = HashedName::new(name);
            match name.find(['*', '?', '{']) {
                Some(0) => globs = u64::MAX,
                Some(_) => globs |= hashed.initial,
                None if hashed.is_unknown => globs = u64::MAX,
                None if hashes.as_chunks::<2>().0.contains(&hashed.hash) => {}
                None => hashes.extend(hashed.hash),
            }
        }
        Self { hashes: hashes.into(), globs }
    }
}

/// Options of one program that take a value from the next argument.
#[derive(Clone, Copy)]
pub(crate) struct ValuesOf<'a> {
    pub(crate) program: &'a str,
    pub(crate) rows: &'a Rows<ValueOptions>,
}

impl ValuesOf<'_> {
    pub(crate) fn takes_value(&self, option: &str) -> bool {
        self.rows
            .named(self.program)
            .filter(|row| word_matches(&row.program, self.program))
            .any(|row| row.options.iter().any(|known| known == option))
    }

    /// Returns whether a subcommand takes a value by this option: `docker compose -f file down`.
    pub(crate) fn taken_by(&self, sub: &str, option: &str) -> bool {
        let of_both = |it: &&ValueOptions| it.program.split_once(' ') == Some((self.program, sub));
        let mut rows = self.rows.named(self.program).filter(of_both);
        rows.any(|row| row.options.iter().any(|known| known == option))
    }

    /// Returns the short value option with which `-C/path` begins, and its value.
    pub(crate) fn attached<'o>(&self, option: &'o str) -> Option<(&'o str, &'o str)> {
        let (end, _) = option.char_indices().nth(2)?;
        let (short, value) = option.split_at_checked(end)?;
        (!option.starts_with("--") && self.takes_value(short)).then_some((short, value))
    }
}

/// Returns the operands of a program: its arguments without options and their values.
#[must_use]
pub fn operands<'p>(program: &'p Program, value_options: &Rows<ValueOptions>) -> Vec<&'p str> {
    let values = ValuesOf { program: &program.name, rows: value_options };
    ProgramArguments::read(program.args.iter().map(String::as_str), &values).positional
}

/// Which options count as such that take a value from the next argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionReading {
    /// Those of the vocabulary.
    Listed,
    /// Each one before the first operand can: `restic -r FOLDER forget` is also `restic forget`.
    Any,
}

/// Arguments separated into operands and options with their values.
struct ProgramArguments<'a> {
    positional: Vec<&'a str>,
    options: Vec<OptionValue<'a>>,
    /// Number of the first positional words that each follow an option without a value, and so might be its value.
    doubtful: usize,
}

struct OptionValue<'a> {
    name: &'a str,
    value: Option<&'a str>,
}

impl<'a> ProgramArguments<'a> {
    fn read(mut words: impl Iterator<Item = &'a str>, values: &ValuesOf<'_>) -> Self {
        let mut arguments = Self { positional: Vec::new(), options: Vec::new(), doubtful: 0 };
        let mut sub: Option<&'a str> = None;
        let mut follows_option = false;
        while let Some(word) = words.next() {
            let is_behind = std::mem::take(&mut follows_option);
            if word == "--" {
                arguments.positional.extend(words);
                break;
            }
            let toolchain = word.starts_with('+') && arguments.positional.is_empty();
            if !(word.len() > 1 && (word.starts_with('-') || toolchain)) {
                sub = sub.or(Some(word));
                let is_doubtful = is_behind && arguments.doubtful == arguments.positional.len();
                arguments.doubtful += usize::from(is_doubtful);
                arguments.positional.push(word);
            } else if values.takes_value(word) || sub.is_some_and(|it| values.taken_by(it, word)) {
                arguments.options.push(OptionValue { name: word, value: words.next() });
            } else if let Some((name, value)) = values.attached(word) {
                arguments.options.push(OptionValue { name, value: Some(value) });
            } else if let Some((name, value)) = word.split_once('=') {
                arguments.options.push(OptionValue { name, value: Some(value) });
            } else {
                arguments.options.push(OptionValue { name: word, value: None });
                follows_option = true;
            }
        }
        arguments
    }

    fn has(&self, wanted: &OptionValue<'_>) -> bool {
        let exact = self.options.iter().any(|found| {
            word_matches(wanted.name, found.name)
                && wanted
                    .value
                    .is_none_or(|value| found.value.is_some_and(|f| word_matches(value, f)))
        });
        let bundled = || {
            wanted.value.is_none()
                && short_letters(wanted.name).is_some_and(|letters| {
                    letters.chars().all(|letter| self.bundles().any(|b| b.contains(letter)))
                })
        };
        exact || bundled()
    }

    fn bundles(&self) -> impl Iterator<Item = &'a str> {
        // A longer word is a word behind a single dash (`go test -count`), unless it repeats few letters.
        let letters = self.options.iter().filter_map(|option| bundled_letters(option.name));
        letters.filter(|it| it.bytes().collect::<BTreeSet<u8>>().len() <= BUNDLE_LETTERS_MAX)
    }
}

/// Different letters of a bundle in a pattern, and of one that a pattern matches.
const BUNDLE_LETTERS_MAX: usize = 4;

/// Returns the letters of a pattern such as `-rf`. A longer option is a word after a single dash, such as `-delete`.
fn short_letters(option: &str) -> Option<&str> {
    bundled_letters(option).filter(|it| it.len() <= BUNDLE_LETTERS_MAX)
}

/// Returns the letters of an argument that may be a bundle of one-letter options: `-rf`. Some programs have words
/// behind a single dash, such as `-delete`; no limit of length tells them apart.
#[must_use]
pub(crate) fn bundled_letters(option: &str) -> Option<&str> {
    let letters = option.strip_prefix('-')?;
    let is_bundle = !letters.is_empty() && letters.bytes().all(|b| b.is_ascii_alphanumeric());
    is_bundle.then_some(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_without_its_folder() {
        for written in ["slashed", " slashed ", "/usr/bin/slashed x", "bin/ slashed"] {
            assert!(CommandPattern::parse(written).names("slashed"), "{written}");
        }
    }

    #[test]
    fn the_value_of_an_option_is_no_operand() {
        let rows =
            vec![ValueOptions { program: "python".to_owned(), options: vec!["-m".to_owned()] }];
        let rows = Rows::from(rows);
        for (pattern, operands) in [
            ("git", 0),
            ("git push", 1),
            ("python -m pytest", 0),
            ("python -m pytest run", 1),
            ("py* -m pytest run", 1),
            ("git push --force", 1),
            ("cargo +nightly test -q", 2),
        ] {
            assert_eq!(
                CommandPattern::parse(pattern).operands("python", &rows),
                operands,
                "{pattern}"
            );
        }
    }

    #[test]
    fn an_unknown_program_may_be_one_that_goes_by_its_options() {
        let rows = vec![ValueOptions {
            program: "docker".to_owned(),
            options: vec!["--context".to_owned()],
        }];
        let rows = Rows::from(rows);
        for (pattern, args, may_be) in [
            ("gpg", &["-x"][..], true),
            ("gpg --export", &[], true),
            ("git push", &["push"], false),
            ("docker --context prod", &["--context", "prod", "rm"], true),
            ("docker --context prod", &["--context", "test", "rm"], false),
            ("docker --context prod", &["rm"], false),
            ("docker --context=prod", &["rm"], true),
        ] {
            let args = args.iter().copied();
            assert_eq!(CommandPattern::parse(pattern).may_be(args, &rows), may_be, "{pattern}");
        }
    }

    #[test]
    fn a_filter_excludes_names_and_never_a_name_of_a_pattern() {
        let filter = |texts: &[&str]| -> NameFilter {
            let patterns: Vec<CommandPattern> =
                texts.iter().map(|it| CommandPattern::parse(it)).collect();
            patterns.iter().collect()
        };
        let may = |filter: &NameFilter, name: &str| filter.may_have(HashedName::new(name));
        let plain = filter(&["git push", "cargo", "git pull"]);
        assert_eq!(plain.hashes.len(), 4, "each name once");
        assert!(may(&plain, "git") && may(&plain, "cargo") && may(&plain, ""));
        for other in ["gh", "Git", "gi", "gitk", "make", "c"] {
            assert!(!may(&plain, other), "{other}");
        }
        let globs = filter(&["python* -m pip", "git"]);
        assert!(may(&globs, "python3") && may(&globs, "pip") && may(&globs, "git"));
        assert!(!may(&globs, "cargo"));
        for any in ["*", "{a,b}", "?x"] {
            assert!(may(&filter(&[any]), "cargo") && may(&filter(&[any]), ""), "{any}");
        }
        assert!(!may(&filter(&[]), "git") && !may(&filter(&[]), "") && may(&filter(&[""]), ""));
    }
}
