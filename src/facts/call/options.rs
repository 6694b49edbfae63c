//! Arguments told apart: options, their values, and what is left.

use super::super::lens::ValueOptions;
use super::super::pattern::{CommandPattern, ValuesOf};
use super::Invocation;
use super::value::Text;
use crate::facts::Program;

/// Options longer than that are no bundle of letters.
const BUNDLE_MAX: usize = 8;

/// Options of the commands of git that take a value: letters whose value may be the next word, letters
/// whose value stands right behind them, and long ones. Sources: the manual pages of git.
const GIT_VALUES: [(&str, &str, &str, &[&str]); 8] = [
    (
        "commit",
        "mFCct",
        "uS",
        &["--message", "--file", "--author", "--date", "--template", "--trailer", "--cleanup"],
    ),
    ("push", "o", "", &["--push-option", "--repo", "--receive-pack", "--exec"]),
    ("clean", "e", "", &["--exclude"]),
    ("merge", "msXF", "S", &["--message", "--file", "--strategy", "--strategy-option"]),
    ("rebase", "xsX", "S", &["--exec", "--strategy", "--strategy-option", "--onto"]),
    ("cherry-pick", "msX", "S", &["--mainline", "--strategy", "--strategy-option"]),
    ("revert", "msX", "S", &["--mainline", "--strategy", "--strategy-option"]),
    ("tag", "mFu", "", &["--message", "--file", "--local-user"]),
];

impl Invocation {
    /// Whether it is one of those meant by a command pattern; one that cannot be known may be any.
    #[must_use]
    pub fn is(&self, pattern: &CommandPattern, values: &[ValueOptions]) -> bool {
        let program = Program {
            name: self.name.clone(),
            args: self.args.iter().map(|it| it.text.clone()).collect(),
            ..Program::default()
        };
        pattern.matches(&program, values)
    }

    /// Whether an option is given: `-r` alone or in a bundle, `--recursive` whole or shortened, and not
    /// taken back by `--no-recursive` after it.
    #[must_use]
    pub fn has(&self, option: &str) -> bool {
        let mut given = false;
        for arg in self.options() {
            let (name, _) = split(arg);
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

    /// Values of an option: `-o file`, `-ofile`, `--output file`, `--output=file`.
    pub fn values<'a>(&'a self, option: &'a str) -> impl Iterator<Item = Text> + 'a {
        let words = self.args.iter().enumerate();
        let end = self.end_of_options();
        words.take(end).filter_map(move |(at, arg)| {
            let next = || self.args.get(at.saturating_add(1)).cloned();
            let text = arg.text.as_str();
            if text == option {
                return next();
            }
            if option.starts_with("--") {
                let (name, value) = split(text);
                if !(name.starts_with("--") && same_option(option, name)) {
                    return None;
                }
                return match value {
                    Some(at) => Some(arg.tail(at)),
                    None => next(),
                };
            }
            let is_letter = option.len() == 2;
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
            let bundled = is_letter
                && text.len() <= BUNDLE_MAX
                && text.starts_with('-')
                && !text.starts_with("--")
                && text.ends_with(letter);
            if bundled { next() } else { None }
        })
    }

    /// The arguments that are neither options nor values of options.
    #[must_use]
    pub fn operands(&self, values: &[ValueOptions]) -> Vec<&Text> {
        let own = ValuesOf { program: &self.name, rows: values };
        let mut found = Vec::new();
        let mut words = self.args.iter();
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if text == "--" {
                found.extend(words);
                break;
            }
            if text.len() > 1 && text.starts_with('-') {
                if own.takes_value(text) {
                    words.next();
                }
                continue;
            }
            found.push(word);
        }
        found
    }

    /// Words that are options, as far as `--`: without values, and bundles without what is glued to
    /// them.
    fn options(&self) -> impl Iterator<Item = &str> {
        let command = self.args.iter().map(|it| it.text.as_str());
        let mut command = command.filter(|_| self.name == "git");
        let row = command.find_map(|word| GIT_VALUES.iter().find(|it| it.0 == word));
        let (next, glued, long) =
            row.map_or(("", "", &[] as &[&str]), |(_, next, glued, long)| (*next, *glued, *long));
        let mut is_value = false;
        let words = self.args.iter().take(self.end_of_options()).map(|it| it.text.as_str());
        words.filter_map(move |word| {
            if std::mem::take(&mut is_value) || word.len() < 2 || !word.starts_with('-') {
                return None;
            }
            if word.starts_with("--") {
                is_value = long.contains(&word);
                return Some(word);
            }
            let takes = |c: char| next.contains(c) || glued.contains(c);
            let Some((at, letter)) = word.char_indices().find(|(_, c)| takes(*c)) else {
                return Some(word);
            };
            let end = at + letter.len_utf8();
            is_value = next.contains(letter) && end == word.len();
            word.get(..end)
        })
    }

    fn end_of_options(&self) -> usize {
        self.args.iter().position(|it| it.text == "--").unwrap_or(self.args.len())
    }
}

/// The name of an option, and where its value begins.
fn split(arg: &str) -> (&str, Option<usize>) {
    match arg.split_once('=') {
        Some((name, _)) => (name, Some(name.len().saturating_add(1))),
        None => (arg, None),
    }
}

/// Whether an option that was given is the one that is meant.
fn same_option(wanted: &str, given: &str) -> bool {
    if wanted == given {
        return true;
    }
    if let Some(long) = wanted.strip_prefix("--") {
        // Programs take any beginning of a long option that is clear enough.
        let short = given.strip_prefix("--").unwrap_or_default();
        return !short.is_empty() && long.starts_with(short);
    }
    let letters = |it: &str| {
        let bundle = it.strip_prefix('-').filter(|it| !it.starts_with('-'))?.to_owned();
        let plain = !bundle.is_empty() && bundle.len() <= BUNDLE_MAX;
        (plain && bundle.bytes().all(|b| b.is_ascii_alphanumeric())).then_some(bundle)
    };
    match (letters(wanted), letters(given)) {
        (Some(wanted), Some(given)) if wanted.len() == 1 => given.contains(&wanted),
        _ => false,
    }
}
