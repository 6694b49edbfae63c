//! Command lines of hooks: which ones they are, and what can be said about one that is wrong.

use std::ffi::OsString;
use std::path::PathBuf;

use policyd_gate as gate;
use policyd_harness as harness;
use policyd_hook::{self as hook, Caller, HookResponse};
use policyd_world::World;

use crate::breaker::AllowCall;
use crate::{EvalCall, EvalFormat};

/// Removes `-C DIR` at the beginning of the arguments, and returns the directory.
pub fn take_directory(arguments: &mut Vec<OsString>) -> Option<PathBuf> {
    let directory = match arguments.as_slice() {
        [_, option, directory, ..] if option == "-C" => PathBuf::from(directory),
        _ => return None,
    };
    arguments.drain(1..3);
    Some(directory)
}

/// Reads the line of a hook: `eval --hook EVENT`, and perhaps `--harness NAME`, `--input FILE`, and `--dry-run`. The whole
/// command line reads every other line.
#[must_use]
pub fn plain_hook_call(arguments: &[OsString]) -> Option<EvalCall> {
    let [_, eval, name, event, options @ ..] = arguments else { return None };
    if eval != "eval" || name != "--hook" {
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

/// Reads the line that scripts start before each call: `breaker allow KEY`, and perhaps `--format json`. The whole command line
/// reads every other line.
#[must_use]
pub fn plain_allow_call(arguments: &[OsString]) -> Option<AllowCall> {
    let [_, breaker, allow, key, options @ ..] = arguments else { return None };
    if breaker != "breaker" || allow != "allow" {
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
pub fn is_status_line_call(arguments: &[OsString]) -> bool {
    matches!(arguments, [_, context, line] if context == "context" && line == "line")
}

/// Returns the value of an option, unless it can be another option.
fn value(word: &OsString) -> Option<String> {
    word.to_str().filter(|it| !it.starts_with('-')).map(str::to_owned)
}

/// Returns the answer of a hook in which the program itself failed: a tool call needs the user's approval, and at
/// other events the user is notified.
#[must_use]
pub fn internal_error_answer(arguments: &[OsString]) -> String {
    let why = "internal error; nothing was checked at this event. Please report it.";
    not_analyzed_answer(arguments, why)
}

/// Returns the answer of a hook that could not analyze its event.
#[must_use]
pub fn not_analyzed_answer(arguments: &[OsString], why: &str) -> String {
    let caller = caller_in(arguments);
    hook::speak(caller, &HookResponse::not_analyzed(caller, why), None).0
}

/// Prepares the answer of a hook that a signal ends.
pub fn prepare_crash_answer(world: &dyn World, arguments: &[OsString]) {
    policyd_gate::crash::prepare(world, caller_in(arguments));
}

/// Who calls, as far as a command line says that may be wrong in any other way.
#[must_use]
pub fn caller_in(arguments: &[OsString]) -> Caller {
    let name = option_in(arguments, "--harness");
    let harness = name.and_then(|it| harness::find(&it));
    gate::caller(harness, &option_in(arguments, "--hook").unwrap_or_default())
}

/// The value of an option, in a command line that may be wrong in any other way.
#[must_use]
pub fn option_in(arguments: &[OsString], option: &str) -> Option<String> {
    let texts: Vec<_> = arguments.iter().map(|it| it.to_string_lossy()).collect();
    let after = texts.iter().position(|it| it == option).and_then(|at| texts.get(at + 1));
    let joined = || texts.iter().find_map(|it| it.strip_prefix(option)?.strip_prefix('='));
    after.map(AsRef::as_ref).or_else(joined).map(str::to_owned)
}

/// Whether these arguments are a hook call: `eval`, and not in another format. It must hold for
/// command lines that clap refuses too, so that none of them ends with 2 by accident: whatever
/// names a hook is one, and a format counts as another one only where no `hook` contradicts it.
#[must_use]
pub fn is_hook_call(arguments: &[OsString]) -> bool {
    let texts = arguments.iter().skip(1).map(|it| it.to_string_lossy());
    let texts: Vec<_> = texts.take_while(|it| it != "--").collect();
    let names_hook = texts.iter().any(|it| it == "--hook" || it.starts_with("--hook="));
    let command = texts.iter().find(|it| !it.starts_with('-'));
    let evals = names_hook || command.is_some_and(|it| it == "eval");
    let separate = texts.iter().zip(texts.iter().skip(1)).filter(|(name, _)| *name == "--format");
    let joined = texts.iter().filter_map(|it| it.strip_prefix("--format="));
    let mut formats = separate.map(|(_, value)| value.as_ref()).chain(joined).peekable();
    let other = formats.peek().is_some() && formats.all(|it| matches!(it, "json" | "text"));
    evals && !other
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_hook(line: &str) -> bool {
        let words = line.split_whitespace().map(OsString::from);
        is_hook_call(&words.collect::<Vec<_>>())
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
    fn the_answer_to_an_internal_error_is_one_object_without_a_decision() {
        let said = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            internal_error_answer(&words)
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
