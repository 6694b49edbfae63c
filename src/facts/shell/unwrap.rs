//! Wrappers: programs whose arguments are another program, or shell text.
//! Lives here: what a list of words really runs. Which wrappers there are is data of the lens.

use super::super::command::Program;
use super::super::compiled::CompiledLens;
use super::super::glob::word_matches;
use super::super::lens::Wrapper;
use super::super::pattern::ValuesOf;

/// Builtins and keywords that run the words after them.
const PREFIXES: [&str; 5] = ["command", "exec", "builtin", "time", "coproc"];
/// Options of `find` that run a program for each file.
const FIND_ACTIONS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];

/// What a list of words comes to.
pub(super) enum Meaning {
    /// A program that wraps nothing.
    Program(Program),
    /// Another list of words, to be looked at again.
    Words(Vec<String>),
    /// Shell text.
    Shell(String),
    /// A shell that reads its text from standard input.
    ShellInput(Program),
    /// `find` with the programs it runs for each file.
    Find(Program, Vec<Vec<String>>),
}

/// The program name without its folder.
pub(super) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(word)
}

/// Takes one wrapper off, if there is one.
pub(super) fn meaning(words: Vec<String>, lens: &CompiledLens) -> Meaning {
    let Some((first, args)) = words.split_first() else {
        return Meaning::Program(Program::default());
    };
    let name = base_name(first);
    if name == "eval" && !args.is_empty() {
        return Meaning::Shell(args.join(" "));
    }
    if PREFIXES.contains(&name)
        && let Some(next) = args.iter().position(|word| !word.starts_with('-'))
        && !args.iter().take(next).any(|option| option == "-v" || option == "-V")
    {
        return Meaning::Words(args.iter().skip(next).cloned().collect());
    }
    // The longest wrapper wins, so that `uv run` goes before a bare `uv`.
    let wrapper = lens
        .lens()
        .wrappers
        .iter()
        .filter_map(|wrapper| Some((wrapper, after_command(wrapper, name, args, lens)?)))
        .max_by_key(|(wrapper, _)| wrapper.command.split_whitespace().count());
    if let Some((wrapper, rest)) = wrapper
        && let Some(inner) = inner(wrapper, rest, name)
    {
        return inner;
    }
    if name == "find" {
        let actions = find_actions(args);
        if !actions.is_empty() {
            return Meaning::Find(program(name, args), actions);
        }
    }
    Meaning::Program(program(name, args))
}

fn program(name: &str, args: &[String]) -> Program {
    Program { name: name.to_owned(), args: args.to_vec(), ..Program::default() }
}

/// The arguments after the words the wrapper starts with, options between them skipped.
fn after_command<'a>(
    wrapper: &Wrapper,
    name: &str,
    args: &'a [String],
    lens: &CompiledLens,
) -> Option<&'a [String]> {
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
fn inner(wrapper: &Wrapper, args: &[String], name: &str) -> Option<Meaning> {
    let mut rest = args;
    let mut to_skip = wrapper.skip;
    while let Some((word, tail)) = rest.split_first() {
        if word == "--" {
            rest = tail.get(to_skip..)?;
            break;
        }
        let is_option = word.len() > 1 && word.starts_with('-');
        if is_option && names_shell_option(word, &wrapper.shell_option) {
            return tail.first().map(|text| Meaning::Shell(text.clone()));
        }
        if is_option {
            let takes_value = wrapper.value_options.iter().any(|option| option == word);
            rest = if takes_value { tail.get(1..).unwrap_or_default() } else { tail };
        } else if is_assignment(word) {
            rest = tail;
        } else if to_skip > 0 {
            to_skip -= 1;
            rest = tail;
        } else {
            break;
        }
    }
    match (wrapper.shell_option.is_empty(), rest.is_empty()) {
        // For a shell that is a script file: `bash ./check.sh` runs `check.sh`.
        (_, false) => Some(Meaning::Words(rest.to_vec())),
        (true, true) => None,
        (false, true) => Some(Meaning::ShellInput(program(name, args))),
    }
}

/// Whether an option is the one whose value is shell text, alone or bundled as in `-lc`.
fn names_shell_option(word: &str, shell_option: &str) -> bool {
    if shell_option.is_empty() {
        return false;
    }
    let bundled = || {
        let letter = shell_option.strip_prefix('-').filter(|letters| letters.len() == 1);
        letter.is_some_and(|letter| !word.starts_with("--") && word.contains(letter))
    };
    word == shell_option || bundled()
}

/// Whether a word is `NAME=value`.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

fn find_actions(args: &[String]) -> Vec<Vec<String>> {
    let mut actions = Vec::new();
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        if FIND_ACTIONS.contains(&word.as_str()) {
            let words = rest.by_ref().take_while(|word| *word != ";" && *word != "+");
            actions.push(words.cloned().collect());
        }
    }
    actions
}
