//! Command patterns such as `cargo test` or `python -m pytest`: their reading and their match
//! against one program. Quoting and wrappers are behind them: see `shell`.

use super::command::{Command, Program};
use super::glob::word_matches;
use super::lens::ValueOptions;

/// Words that recognise a program: its name, its leading arguments, and options it must have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandPattern {
    words: Vec<String>,
}

impl CommandPattern {
    /// Splits the pattern into its words; a pattern without words matches nothing.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        // Programs are known by their base name, however they were called.
        if let Some((first, base)) = words.first_mut().and_then(|it| {
            let base = it.rsplit(['/', '\\']).next()?.to_owned();
            Some((it, base))
        }) {
            *first = base;
        }
        Self { words }
    }

    /// How many operands of the program it names: 1 for `git push`.
    #[must_use]
    pub fn operands(&self) -> usize {
        self.words.iter().skip(1).filter(|it| !it.starts_with('-')).count()
    }

    /// The name of the program, maybe with `*`.
    #[must_use]
    pub fn program(&self) -> &str {
        self.words.first().map(String::as_str).unwrap_or_default()
    }

    /// Whether the program is one of those meant. `value_options` say which options take their
    /// value from the next argument, so that the value is not taken for an argument.
    #[must_use]
    pub fn matches(&self, program: &Program, value_options: &[ValueOptions]) -> bool {
        let Some((name, wanted)) = self.words.split_first() else { return false };
        if !word_matches(name, &program.name) {
            return false;
        }
        let values = ValuesOf { program: &program.name, rows: value_options };
        let wanted = Arguments::read(wanted, &values);
        let found = Arguments::read(&program.args, &values);
        wanted.positional.len() <= found.positional.len()
            && wanted.positional.iter().zip(&found.positional).all(|(w, f)| word_matches(w, f))
            && wanted.options.iter().all(|option| found.has(option))
    }
}

impl Command {
    /// Whether one of the programs of this command matches.
    #[must_use]
    pub fn ran(&self, pattern: &CommandPattern, value_options: &[ValueOptions]) -> bool {
        self.programs.iter().any(|program| pattern.matches(program, value_options))
    }
}

/// The options of one program that take a value from the next argument.
#[derive(Clone, Copy)]
pub(super) struct ValuesOf<'a> {
    pub(super) program: &'a str,
    pub(super) rows: &'a [ValueOptions],
}

impl ValuesOf<'_> {
    pub(super) fn takes_value(&self, option: &str) -> bool {
        self.rows
            .iter()
            .filter(|row| word_matches(&row.program, self.program))
            .any(|row| row.options.iter().any(|known| known == option))
    }

    /// The short value option that `-C/path` begins with.
    fn attached<'o>(&self, option: &'o str) -> Option<(&'o str, &'o str)> {
        let (end, _) = option.char_indices().nth(2)?;
        let (short, value) = option.split_at_checked(end)?;
        (!option.starts_with("--") && self.takes_value(short)).then_some((short, value))
    }
}

/// Arguments told apart into positional ones and options with their values.
struct Arguments<'a> {
    positional: Vec<&'a str>,
    options: Vec<Choice<'a>>,
}

struct Choice<'a> {
    name: &'a str,
    value: Option<&'a str>,
}

impl<'a> Arguments<'a> {
    fn read(words: &'a [String], values: &ValuesOf<'_>) -> Self {
        let mut arguments = Self { positional: Vec::new(), options: Vec::new() };
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            if word == "--" {
                arguments.positional.extend(words);
                break;
            }
            let toolchain = word.starts_with('+') && arguments.positional.is_empty();
            if !(word.len() > 1 && (word.starts_with('-') || toolchain)) {
                arguments.positional.push(word);
            } else if values.takes_value(word) {
                arguments.options.push(Choice { name: word, value: words.next() });
            } else if let Some((name, value)) = values.attached(word) {
                arguments.options.push(Choice { name, value: Some(value) });
            } else if let Some((name, value)) = word.split_once('=') {
                arguments.options.push(Choice { name, value: Some(value) });
            } else {
                arguments.options.push(Choice { name: word, value: None });
            }
        }
        arguments
    }

    fn has(&self, wanted: &Choice<'_>) -> bool {
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
        self.options.iter().filter_map(|option| short_letters(option.name))
    }
}

/// The letters of `-rf`. Longer ones are words behind a single dash, such as `-delete`.
fn short_letters(option: &str) -> Option<&str> {
    const BUNDLE_MAX: usize = 4;
    let letters = option.strip_prefix('-')?;
    let bundle = (1..=BUNDLE_MAX).contains(&letters.len());
    (bundle && letters.bytes().all(|b| b.is_ascii_alphanumeric())).then_some(letters)
}
