//! Arguments told apart: options, their values, and what is left.

use super::super::lens::ValueOptions;
use super::super::pattern::{CommandPattern, ValuesOf};
use super::Invocation;
use super::value::Text;

/// Options longer than that are no bundle of letters.
const BUNDLE_MAX: usize = 8;

/// An argument that is neither the value of an option nor `--`.
enum Argument<'a> {
    /// An option, without a value that is glued to it.
    Option(&'a str),
    /// Anything else.
    Operand(&'a Text),
}

impl Invocation {
    /// Whether it is one of those meant by a command pattern; one that cannot be known may be any.
    #[must_use]
    #[inline]
    pub fn is(&self, pattern: &CommandPattern, values: &[ValueOptions]) -> bool {
        let args = self.args.iter().map(|it| it.text.as_str());
        pattern.matches_words(&self.name, args, values)
    }

    /// Whether an option is given: `-r` alone or in a bundle, `--recursive` whole or shortened, and not
    /// taken back by `--no-recursive` after it.
    #[must_use]
    pub fn has(&self, option: &str, values: &[ValueOptions]) -> bool {
        let mut given = false;
        for arg in self.told_apart(values) {
            let Argument::Option(arg) = arg else { continue };
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

    /// Values of an option of one letter that are glued to it in a bundle: `-sFfile`.
    pub(super) fn bundled_values<'a>(
        &'a self,
        option: &'a str,
        rows: &'a [ValueOptions],
    ) -> impl Iterator<Item = Text> + 'a {
        let own = rows.iter().filter(|it| it.program == self.name).flat_map(|it| &it.options);
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

    /// The arguments that are neither options nor values of options.
    #[must_use]
    pub fn operands(&self, values: &[ValueOptions]) -> Vec<&Text> {
        let operand = |it| if let Argument::Operand(text) = it { Some(text) } else { None };
        self.told_apart(values).into_iter().filter_map(operand).collect()
    }

    /// Options and operands in their order. What a subcommand takes is told by the row of both words:
    /// its letters may stand in a bundle, and `-S*` has its value right behind it or none.
    fn told_apart(&self, rows: &[ValueOptions]) -> Vec<Argument<'_>> {
        let own = ValuesOf { program: &self.name, rows };
        let mut sub: Option<&[String]> = None;
        let mut found = Vec::new();
        let mut words = self.args.iter();
        while let Some(whole) = words.next() {
            let word = whole.text.as_str();
            if word == "--" {
                found.extend(words.map(Argument::Operand));
                break;
            }
            if word.len() < 2 || !word.starts_with('-') {
                sub = sub.or_else(|| Some(subcommand(rows, &self.name, word)));
                found.push(Argument::Operand(whole));
                continue;
            }
            let (option, takes_next) = match option_of(sub.unwrap_or_default(), word) {
                Some(told) => told,
                None => (word, own.takes_value(word)),
            };
            found.push(Argument::Option(option));
            if takes_next {
                words.next();
            }
        }
        found
    }

    fn end_of_options(&self) -> usize {
        self.args.iter().position(|it| it.text == "--").unwrap_or(self.args.len())
    }
}

/// The options with values of a subcommand: those of the row `git commit`.
fn subcommand<'a>(rows: &'a [ValueOptions], program: &str, word: &str) -> &'a [String] {
    let of_both = |it: &&ValueOptions| it.program.split_once(' ') == Some((program, word));
    rows.iter().find(of_both).map_or(&[], |it| &it.options)
}

/// The option with a value that a word holds, without that value, and whether the next word is it.
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
