//! Recognition of a command class by the shape of a call: names of tasks and scripts, and a command of the class
//! behind a program that is in no class, such as a container or a remote host.
//!
//! Contains: the words of names, and the search behind a program.
//! Does not contain: the names themselves (`vocabulary.yaml`), or recognition by output (`fold::commands`).

use policyd_shell::pattern::operands;
use policyd_shell::vocabulary::ShellVocabulary;

use super::compiled::{CompiledKind, CompiledMatchers};
use super::glob::word_matches;
use super::{Program, shell};

/// Words between a task runner and the name of a task: `mise run test`.
const RUN_VERBS: [&str; 6] = ["run", "run-script", "task", "exec", "do", "x"];

/// Endings of scripts.
const SCRIPT_ENDINGS: [&str; 11] =
    ["sh", "bash", "zsh", "ps1", "bat", "cmd", "py", "rb", "js", "mjs", "ts"];

/// Words behind a program in which a command of the class is searched.
const INNER_WORDS_MAX: usize = 16;

impl CompiledKind {
    /// Returns whether the names in a call say that it belongs to this class.
    pub(super) fn is_named_by(&self, program: &Program, lens: &CompiledMatchers) -> bool {
        if !self.has_tasks() {
            return false;
        }
        if self.is_script(program, lens) {
            return true;
        }
        let operands = operands(program, lens.value_options());
        // `dotnet build Calc.Tests`: another class lists the program with this task.
        let is_listed = || {
            let mut others = lens.kinds().iter().filter(|kind| kind.name != self.name);
            others.any(|kind| kind.names_task_of(program, lens))
        };
        if operands.first().is_some_and(|it| self.names_other_task(it)) && is_listed() {
            return false;
        }
        if lens.is_task_runner(&program.name) {
            let options = program.args.iter().map(String::as_str);
            // `clj -M:test`
            let aliases = options.filter(|it| it.starts_with('-') && it.contains(':'));
            return operands.into_iter().chain(aliases).any(|it| self.names_task(it));
        }
        // A task runner among the wrappers leaves the name of its task: `pdm run test`.
        if operands.is_empty() && is_bare(&program.name) && self.names_task(&program.name) {
            return true;
        }
        let mut names = operands.into_iter().filter(|it| !RUN_VERBS.contains(it));
        names.next().is_some_and(|it| is_bare(it) && self.names_task(it))
    }

    /// Returns whether the program is a script with a name of this class, or runs one.
    fn is_script(&self, program: &Program, lens: &CompiledMatchers) -> bool {
        let ending = program.name.rsplit_once('.').map_or("", |(_, ending)| ending);
        if !program.folder.is_empty() || SCRIPT_ENDINGS.contains(&ending) {
            let folder = program.folder.rsplit('/').next().unwrap_or_default();
            return self.names_task(&program.name)
                || (!folder.is_empty() && self.names_task(folder));
        }
        if !lens.is_script_runner(&program.name) {
            return false;
        }
        let operands = operands(program, lens.value_options());
        let Some((script, rest)) = operands.split_first() else { return false };
        let mut parts = script.rsplit('/').take(2);
        // `setup.py test`
        parts.any(|it| self.names_task(it)) || rest.first().is_some_and(|it| self.is_task(it))
    }

    /// Returns whether a command of this class follows in the arguments: `docker run image pytest`.
    pub(super) fn runs_inside(&self, program: &Program, lens: &CompiledMatchers) -> bool {
        // A wrapper of one word leaves a command line: `hyperfine 'cargo test'`.
        let line = Some(&program.name).filter(|it| it.contains(' '));
        if line.is_some_and(|line| self.is_in_line(line, lens)) {
            return true;
        }
        let words = program.args.iter().enumerate().take(INNER_WORDS_MAX);
        words.filter(|(_, word)| !word.starts_with('-')).any(|(at, word)| {
            let rest = program.args.get(at..).unwrap_or_default();
            let name = word.rsplit('/').next().unwrap_or_default();
            // `go run example.com/gotestsum@latest`
            let name = name.split('@').next().unwrap_or_default();
            if word.contains(' ') {
                return self.is_in_line(word, lens);
            }
            if lens.wrappers().named(name).any(|it| it.command == name) {
                return self.is_in_line(&quoted(rest), lens);
            }
            let args = rest.get(1..).unwrap_or_default().to_vec();
            let inner = Program { name: name.to_owned(), args, ..Program::default() };
            let runs_task = lens.is_task_runner(name) || lens.is_script_runner(name);
            self.lists(&inner, lens) || (runs_task && self.is_named_by(&inner, lens))
        })
    }

    fn is_in_line(&self, line: &str, lens: &CompiledMatchers) -> bool {
        let programs = shell::parse(line, lens).0;
        programs.iter().any(|it| self.lists(it, lens) || self.is_named_by(it, lens))
    }

    /// Returns whether a name contains a word of this class, and no word of another one.
    fn names_task(&self, name: &str) -> bool {
        let words = words(name);
        let any = |known: &[String]| {
            words.iter().any(|word| known.iter().any(|it| word_matches(it, word)))
        };
        any(self.tasks()) && !any(self.except_tasks())
    }

    /// Returns whether every word of a name is one of those that are not of this class.
    fn names_other_task(&self, name: &str) -> bool {
        let words = words(name);
        let is_other = |word: &String| self.except_tasks().iter().any(|it| word_matches(it, word));
        !words.is_empty() && words.iter().all(is_other)
    }

    /// Returns whether a name is a word of this class.
    fn is_task(&self, name: &str) -> bool {
        self.tasks().iter().any(|it| word_matches(it, name))
    }
}

/// Returns whether the purpose of a program is not known: it is in no class, or a class lists it without the task or
/// script that it runs.
pub(super) fn is_unrecognized(program: &Program, lens: &CompiledMatchers) -> bool {
    let tasks = operands(program, lens.value_options());
    let runs_named = lens.is_task_runner(&program.name) || lens.is_script_runner(&program.name);
    // `make build`
    let is_other = |task: &&str| lens.kinds().iter().any(|kind| kind.names_other_task(task));
    if runs_named && tasks.first().is_some_and(is_other) {
        return false;
    }
    let mut own = lens.kinds().iter().filter(|kind| kind.includes(program, lens)).peekable();
    if own.peek().is_none() {
        return true;
    }
    let is_known = |kind: &CompiledKind| {
        kind.no_evidence || kind.by_output || kind.names_task_of(program, lens)
    };
    runs_named && !tasks.is_empty() && !own.any(is_known)
}

/// Returns the words of a name in small letters: `run-unitTests.sh` has `run`, `unit`, `tests`, and `sh`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (after_small && letter.is_uppercase()) {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
        after_small = letter.is_lowercase();
    }
    words.retain(|it| !it.is_empty());
    words
}

/// Returns whether a word can be the name of a task: not a file, address, or assignment.
fn is_bare(word: &str) -> bool {
    word.chars().all(|it| it.is_alphanumeric() || matches!(it, '-' | '_' | ':'))
}

fn quoted(words: &[String]) -> String {
    words.iter().map(|it| format!("'{}'", it.replace('\'', "'\\''"))).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(words("run-unitTests.sh"), ["run", "unit", "tests", "sh"]);
        assert_eq!(words(":app:testDebug"), ["app", "test", "debug"]);
        assert_eq!(words("latest"), ["latest"]);
        assert!(words("--").is_empty());
    }
}
