//! Command lines before the full reader sees them: which ones are hooks, and what can be said about one that is wrong.

use std::ffi::OsString;
use std::path::PathBuf;

use policyd_gate as gate;
use policyd_harness as harness;
use policyd_hook::{self as hook, Caller, HookResponse};
use policyd_world::World;

use crate::breaker::AllowCall;
use crate::{EvalCall, EvalFormat};

/// Options before a command that take a value in the next argument.
const VALUED: [&str; 2] = ["-C", "--color"];

/// A command line, as far as it can be read without its commands. Only the full reader of `policyd-tools` knows them, but a
/// hook is answered whatever its line looks like.
#[derive(Debug, Clone, Copy)]
pub struct ArgumentLine<'a> {
    arguments: &'a [OsString],
    /// Index of the command, or of the end.
    command: usize,
}

impl<'a> ArgumentLine<'a> {
    /// Reads arguments, the first of which is the name of the program.
    #[must_use]
    pub fn new(arguments: &'a [OsString]) -> Self {
        let mut command = 1;
        while let Some(option) = arguments.get(command).filter(|it| is_option(it)) {
            command += if VALUED.iter().any(|it| option == it) { 2 } else { 1 };
        }
        Self { arguments, command: command.min(arguments.len()) }
    }

    /// Returns the index of the command in the arguments, or their number.
    #[must_use]
    pub fn command_index(&self) -> usize {
        self.command
    }

    /// Returns the command and its arguments.
    #[must_use]
    pub fn words(&self) -> &'a [OsString] {
        self.arguments.get(self.command..).unwrap_or_default()
    }

    /// Returns the name of the command.
    #[must_use]
    pub fn command(&self) -> Option<&'a str> {
        self.words().first()?.to_str()
    }

    /// Returns the directory that `-C` names before the command.
    #[must_use]
    pub fn directory(&self) -> Option<PathBuf> {
        let options = self.arguments.get(..self.command)?;
        let (at, _) = options.iter().enumerate().rev().find(|(_, it)| *it == "-C")?;
        options.get(at + 1).map(PathBuf::from)
    }

    /// Returns whether nothing but `-C DIR` stands before the command.
    fn is_plain(&self) -> bool {
        match self.arguments.get(1..self.command) {
            Some([option, _]) => option == "-C",
            options => options.is_some_and(<[OsString]>::is_empty),
        }
    }

    /// Reads the line of a hook: `eval --hook EVENT`, and perhaps `--harness NAME`, `--input FILE`, and `--dry-run`. The whole
    /// command line reads every other line.
    #[must_use]
    pub fn plain_hook_call(&self) -> Option<EvalCall> {
        let [eval, name, event, options @ ..] = self.words() else { return None };
        if eval != "eval" || name != "--hook" || !self.is_plain() {
            return None;
        }
        let mut call = EvalCall {
            hook: value(event)?,
            format: EvalFormat::Hook,
            harness: None,
            policies: None,
            input: None,
            dry_run: false,
            explain: false,
            now: None,
        };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match option.to_str()? {
                "--harness" if call.harness.is_none() => {
                    call.harness = Some(value(options.next()?)?);
                }
                "--input" if call.input.is_none() => {
                    let path = value(options.next()?).filter(|it| !it.is_empty())?;
                    call.input = Some(PathBuf::from(path));
                }
                "--dry-run" if !call.dry_run => call.dry_run = true,
                _ => return None,
            }
        }
        Some(call)
    }

    /// Reads the line that scripts start before each call: `breaker allow KEY`, and perhaps `--format json`. The whole command
    /// line reads every other line.
    #[must_use]
    pub fn plain_allow_call(&self) -> Option<AllowCall> {
        let [breaker, allow, key, options @ ..] = self.words() else { return None };
        if breaker != "breaker" || allow != "allow" || !self.is_plain() {
            return None;
        }
        let json = match options {
            [] => false,
            [name, format] if name == "--format" && format == "json" => true,
            _ => return None,
        };
        value(key).map(|key| AllowCall { key, json })
    }

    /// Returns whether this is the line of a client for its status line: `context line`.
    #[must_use]
    pub fn is_status_line_call(&self) -> bool {
        let is_named =
            matches!(self.words(), [context, line] if context == "context" && line == "line");
        is_named && self.is_plain()
    }

    /// Returns the answer of a hook in which the program itself failed: a tool call needs the user's approval, and at
    /// other events the user is notified.
    #[must_use]
    pub fn internal_error_answer(&self) -> String {
        self.not_analyzed_answer(
            "internal error; nothing was checked at this event. Please report it.",
        )
    }

    /// Returns the answer of a hook that could not analyze its event.
    #[must_use]
    pub fn not_analyzed_answer(&self, why: &str) -> String {
        let caller = self.caller();
        hook::speak(caller, &HookResponse::not_analyzed(caller, why), None).0
    }

    /// Prepares the answer of a hook that a signal ends.
    pub fn prepare_crash_answer(&self, world: &dyn World) {
        policyd_gate::crash::prepare(world, self.caller());
    }

    /// Returns who calls, as far as a line says that may be wrong in any other way.
    #[must_use]
    pub fn caller(&self) -> Caller {
        let harness = self.option("--harness").and_then(|it| harness::find(&it));
        gate::caller(harness, &self.option("--hook").unwrap_or_default())
    }

    /// Returns the value of an option, in a line that may be wrong in any other way.
    #[must_use]
    pub fn option(&self, option: &str) -> Option<String> {
        self.options(option).next()
    }

    /// Returns the values of an option, wherever it stands before `--`.
    fn options(&self, option: &str) -> impl Iterator<Item = String> {
        let texts: Vec<_> = self.arguments.iter().skip(1).map(|it| it.to_string_lossy()).collect();
        let end = texts.iter().position(|it| it == "--").unwrap_or(texts.len());
        let value = |at: usize| match texts.get(at)?.strip_prefix(option)? {
            "" => texts.get(at + 1).filter(|_| at + 1 < end).map(|it| it.clone().into_owned()),
            joined => joined.strip_prefix('=').map(str::to_owned),
        };
        (0..end).filter_map(value).collect::<Vec<_>>().into_iter()
    }

    /// Returns whether the line has the option `--hook`, with a value or without.
    #[must_use]
    pub fn names_hook(&self) -> bool {
        let is_named =
            |it: &OsString| it == "--hook" || it.as_encoded_bytes().starts_with(b"--hook=");
        self.arguments.iter().take_while(|it| *it != "--").any(is_named)
    }

    /// Returns whether these arguments are a hook call: `eval`, and not in another format. It must hold for lines that
    /// the full reader refuses too, so that none of them ends with 2 by accident: whatever names a hook is one, and a
    /// format counts as another one only if no `hook` contradicts it.
    #[must_use]
    pub fn is_hook_call(&self) -> bool {
        let mut formats = self.options("--format").peekable();
        let other =
            formats.peek().is_some() && formats.all(|it| matches!(it.as_str(), "json" | "text"));
        (self.names_hook() || self.command() == Some("eval")) && !other
    }
}

/// Returns whether an argument before the command is an option.
fn is_option(word: &OsString) -> bool {
    word.as_encoded_bytes().starts_with(b"-")
}

/// Returns the value of an option, unless it can be another option.
fn value(word: &OsString) -> Option<String> {
    word.to_str().filter(|it| !it.starts_with('-')).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_hook(line: &str) -> bool {
        let words = line.split_whitespace().map(OsString::from);
        ArgumentLine::new(&words.collect::<Vec<_>>()).is_hook_call()
    }

    #[test]
    fn whatever_names_a_hook_and_no_other_format_is_a_hook_call() {
        for hook in [
            "policyd eval",
            "policyd eval --hook stop --format hook",
            "policyd eval --hook stop --format",
            "policyd eval --hook stop --format TEXT",
            "policyd eval --hook stop -- --format text",
            "policyd eval --format text --format hook",
            "policyd --policies x eval --hook stop",
            "policyd evl --hook=stop",
        ] {
            assert!(is_hook(hook), "{hook}");
        }
        for other in [
            "policyd",
            "policyd lint eval",
            "policyd rules --policies eval",
            "policyd eval --format text --hook",
            "policyd eval --hook stop --format=json",
        ] {
            assert!(!is_hook(other), "{other}");
        }
    }

    #[test]
    fn options_before_the_command_are_passed_over() {
        for (line, command, directory) in [
            ("policyd", None, None),
            ("policyd lint -C x", Some("lint"), None),
            ("policyd -C x lint", Some("lint"), Some("x")),
            ("policyd --color never -C x eval --hook stop", Some("eval"), Some("x")),
            ("policyd --color=never --help lint", Some("lint"), None),
            ("policyd -C", None, None),
            ("policyd -C eval", None, Some("eval")),
        ] {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            let read = ArgumentLine::new(&words);
            let directory = directory.map(PathBuf::from);
            assert_eq!((read.command(), read.directory()), (command, directory), "{line}");
        }
    }

    #[test]
    fn the_answer_to_an_internal_error_is_one_object_without_a_decision() {
        let said = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            ArgumentLine::new(&words).internal_error_answer()
        };
        let answer: serde_json::Value =
            serde_json::from_str(&said("policyd eval --hook stop")).unwrap();
        let keys: Vec<_> = answer.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["systemMessage"]);
        // A client hears it in its own form, whatever else is wrong with its command line.
        let shown: Vec<_> = policyd_harness::HARNESSES
            .iter()
            .map(|it| {
                (it.name, said(&format!("policyd eval --bad --harness={} --hook x", it.name)))
            })
            .collect();
        for (name, said) in &shown {
            let silence = policyd_harness::find(name).unwrap().silence;
            assert!(said.contains("internal error") || said == silence, "{name}: {said}");
        }
        assert_ne!(shown.first(), shown.last());
    }
}
