//! Wrappers: programs whose arguments are another program, or shell text.
//! Lives here: what a list of words really runs. Which wrappers there are is data of the lens.

use super::super::compiled::CompiledLens;
use super::super::glob::{begins_alike, word_matches};
use super::super::lens::Wrapper;
use super::super::pattern::ValuesOf;
use super::word::quoted;

/// Builtins and keywords that run the words after them.
const PREFIXES: [&str; 5] = ["command", "exec", "builtin", "time", "coproc"];
/// Reserved words behind which a command stands. Where the grammar loses its way (`! if a; then b; fi`) it takes
/// them for programs, which no shell does.
const RESERVED: [&str; 9] = ["!", "{", "if", "then", "elif", "else", "while", "until", "do"];
/// The prefix that starts a process, of what may be a function.
pub(in crate::facts) const COPROCESS: &str = "coproc";
/// Programs that find files.
const FINDERS: [&str; 3] = ["find", "fd", "fdfind"];
/// Options of theirs that run a program for each file.
const FIND_ACTIONS: [&str; 8] =
    ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

/// A word that a shell would pass.
pub(in crate::facts) trait Word: Clone {
    /// Its text.
    fn text(&self) -> &str;
    /// Several words with a blank between them.
    fn joined(words: &[Self]) -> Self;
    /// What follows its first bytes.
    fn after(&self, at: usize) -> Self;
    /// As it is written in shell text, so that it stays one word.
    fn quoted(&self) -> Self;
}

impl Word for String {
    fn text(&self) -> &str {
        self
    }

    fn joined(words: &[Self]) -> Self {
        words.join(" ")
    }

    fn after(&self, at: usize) -> Self {
        self.get(at..).unwrap_or_default().to_owned()
    }

    fn quoted(&self) -> Self {
        quoted(self)
    }
}

/// What a list of words comes to.
pub(in crate::facts) enum Meaning<W> {
    /// A program that wraps nothing.
    Program(Vec<W>),
    /// Another list of words, to be looked at again; they are the end of the list that was given.
    Words(Vec<W>),
    /// Shell text.
    Shell(W),
    /// A shell that reads its text from standard input.
    ShellInput(Vec<W>),
    /// `find` with the programs it runs for each file.
    Find(Vec<W>, Vec<Vec<W>>),
}

/// The program name without its folder.
pub(in crate::facts) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(word)
}

/// Whether a word belongs to the shell's grammar, so that what stands behind it may be a function.
pub(in crate::facts) fn is_keyword(word: &str) -> bool {
    RESERVED.contains(&word) || word == COPROCESS
}

/// Takes one wrapper off, if there is one.
pub(in crate::facts) fn meaning<W: Word>(words: Vec<W>, lens: &CompiledLens) -> Meaning<W> {
    let Some((first, args)) = words.split_first() else {
        return Meaning::Program(words);
    };
    if RESERVED.contains(&first.text()) && !args.is_empty() {
        return Meaning::Words(args.to_vec());
    }
    let name = base_name(first.text());
    if name == "eval" && !args.is_empty() {
        return Meaning::Shell(W::joined(args));
    }
    if PREFIXES.contains(&name)
        && let Some(next) = args.iter().position(|word| !word.text().starts_with('-'))
        && !args.iter().take(next).any(|option| matches!(option.text(), "-v" | "-V" | "-a"))
    {
        return Meaning::Words(args.iter().skip(next).cloned().collect());
    }
    // The longest wrapper wins, so that `uv run` goes before a bare `uv`.
    let wrapper = lens
        .lens()
        .wrappers
        .iter()
        .filter(|wrapper| begins_alike(&wrapper.command, name))
        .filter_map(|wrapper| Some((wrapper, after_command(wrapper, name, args, lens)?)))
        .max_by_key(|(wrapper, _)| wrapper.command.split_whitespace().count());
    if let Some((wrapper, rest)) = wrapper
        && let Some(inner) = inner(wrapper, rest, &words)
    {
        return inner;
    }
    if FINDERS.contains(&name) {
        let actions = find_actions(args);
        if !actions.is_empty() {
            return Meaning::Find(words, actions);
        }
    }
    Meaning::Program(words)
}

/// The arguments after the words the wrapper starts with, options between them skipped.
fn after_command<'a, W: Word>(
    wrapper: &Wrapper,
    name: &str,
    args: &'a [W],
    lens: &CompiledLens,
) -> Option<&'a [W]> {
    let mut wanted = wrapper.command.split_whitespace();
    if !word_matches(wanted.next()?, name) {
        return None;
    }
    let values = ValuesOf { program: name, rows: &lens.lens().value_options };
    let mut rest = args;
    for word in wanted {
        loop {
            let (next, tail) = rest.split_first()?;
            rest = tail;
            let next = next.text();
            if next == word {
                break;
            }
            if !next.starts_with('-') {
                return None;
            }
            if values.takes_value(next) {
                rest = rest.get(1..)?;
            }
        }
    }
    Some(rest)
}

/// What is left of the arguments of a wrapper; `None` when it wraps nothing here.
fn inner<W: Word>(wrapper: &Wrapper, args: &[W], all: &[W]) -> Option<Meaning<W>> {
    let mut rest = args;
    let mut to_skip = wrapper.skip;
    while let Some((whole, tail)) = rest.split_first() {
        let word = whole.text();
        if word == "--" {
            rest = tail.get(to_skip..)?;
            break;
        }
        let is_option = word.len() > 1 && word.starts_with('-');
        if is_option
            && bundles(word, &wrapper.check_option)
            && !bundles(word, &wrapper.shell_option)
        {
            return None;
        }
        if is_option && names_shell_option(word, &wrapper.shell_option) {
            return shell_text(wrapper, whole, tail).map(Meaning::Shell);
        }
        if is_option {
            // The last letter of a bundle may take the next word: `bash -euo pipefail`.
            let takes_value = wrapper.value_options.iter().any(|option| {
                option == word || (bundles(word, option) && word.ends_with(last_of(option)))
            });
            rest = if takes_value { tail.get(1..).unwrap_or_default() } else { tail };
        } else if is_assignment(word) || (word == "-" && wrapper.check_option.is_empty()) {
            // `env - program`, `su - user`; to a shell it is its standard input.
            rest = tail;
        } else if to_skip > 0 {
            to_skip -= 1;
            rest = tail;
        } else {
            break;
        }
    }
    // `runuser user -c text`, `vagrant ssh machine -c text`.
    if let [_, option, text] = rest
        && wrapper.check_option.is_empty()
        && option.text().starts_with('-')
        && names_shell_option(option.text(), &wrapper.shell_option)
    {
        return shell_text(wrapper, option, std::slice::from_ref(text)).map(Meaning::Shell);
    }
    match (wrapper.shell_option.is_empty(), rest.is_empty()) {
        // For a shell that is a script file: `bash ./check.sh` runs `check.sh`.
        (_, false) => Some(Meaning::Words(rest.to_vec())),
        (true, true) => None,
        (false, true) => Some(Meaning::ShellInput(all.to_vec())),
    }
}

/// The shell text that an option has for its value: `-c'text'` and `--command=text` hold it themselves.
/// Of `env -S text words` the words belong to it.
fn shell_text<W: Word>(wrapper: &Wrapper, option: &W, after: &[W]) -> Option<W> {
    let (word, short) = (option.text(), wrapper.shell_option.as_str());
    let splits = short == "-S";
    let long = long_form(short).and_then(|it| word.strip_prefix(it));
    // Of a bundle, `env -vStext`, what follows the letter is the text.
    let bundled = || word.split_once('S').filter(|_| splits).map(|it| it.1);
    let own = long.or_else(|| word.strip_prefix(short)).or_else(bundled);
    let own = own.filter(|it| !it.is_empty());
    let glued = own.filter(|it| splits || it.starts_with('=') || it.contains(' '));
    let start = |it: &str| word.len().saturating_sub(it.trim_start_matches('=').len());
    let glued = glued.map(|it| option.after(start(it)));
    let mut after = after.iter().skip_while(|it| it.text() == "--").cloned();
    let text = glued.or_else(|| after.next())?;
    if !splits {
        return Some(text);
    }
    let words: Vec<W> = std::iter::once(text).chain(after.map(|it| it.quoted())).collect();
    Some(W::joined(&words))
}

/// Whether an option is the one whose value is shell text, alone or bundled as in `-lc`.
fn names_shell_option(word: &str, shell_option: &str) -> bool {
    if shell_option.is_empty() {
        return false;
    }
    let long = long_form(shell_option).and_then(|it| word.strip_prefix(it));
    let is_long = long.is_some_and(|it| it.is_empty() || it.starts_with('='));
    word == shell_option || is_long || bundles(word, shell_option)
}

/// The other name of an option whose value is shell text.
fn long_form(shell_option: &str) -> Option<&'static str> {
    match shell_option {
        "-c" => Some("--command"),
        "-S" => Some("--split-string"),
        _ => None,
    }
}

/// Whether a word is a bundle of letters that holds an option of one letter: `-lc` holds `-c`.
fn bundles(word: &str, option: &str) -> bool {
    let letter = option.strip_prefix('-').filter(|letters| letters.len() == 1);
    let is_bundle = word.starts_with('-') && !word.starts_with("--");
    letter.is_some_and(|letter| is_bundle && word.contains(letter))
}

/// The last letter of an option.
fn last_of(option: &str) -> char {
    option.chars().next_back().unwrap_or('-')
}

/// Whether a word is `NAME=value`.
pub fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

fn find_actions<W: Word>(args: &[W]) -> Vec<Vec<W>> {
    let mut actions = Vec::new();
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        if FIND_ACTIONS.contains(&word.text()) {
            let words = rest.by_ref().take_while(|word| !matches!(word.text(), ";" | "+"));
            actions.push(words.cloned().collect());
        }
    }
    actions
}
