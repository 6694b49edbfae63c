//! Whether everything that a program names lies in the project or among temporary files. A program may be approved without
//! a question only if that is known.

use super::FactError;
use super::place_facts::not_known;
use super::snapshots::CallFacts;
use policyd_facts::call::{
    Access, CallEnvironment, Invocation, ResolvedPath, ShellText, is_nowhere,
};
use policyd_facts::lens::ValueOptions;
use policyd_yaml::rows::Rows;

/// Where the working directory and the named paths of a program may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    Project,
    OrTemporary,
}

/// Returns whether the working directory, the files, and the paths in the arguments of a program lie in the project or among
/// temporary files. Fails if one of them is not known.
pub(super) fn stays_inside(
    at: usize,
    seen: &CallFacts,
    values: &Rows<ValueOptions>,
    inside: Inside,
) -> Result<bool, FactError> {
    let Some(program) = seen.call.programs.get(at) else { return Ok(false) };
    let around = &*seen.around;
    if program.runs_unknown || program.container.is_some() {
        return Err(not_known(&program.called.text).into());
    }
    let folder = program.folder.as_deref();
    let folder = folder.ok_or_else(|| not_known("the working directory"))?;
    let named = named_paths(program, values)?;
    let files: Vec<_> = seen.call.files.iter().filter(|it| it.program == Some(at)).collect();
    let is_written = |it: &&ShellText| {
        files.iter().any(|file| file.does == Access::Write && file.place.written == it.text)
    };
    let named = named.iter().filter(|it| !is_written(it));
    let named = named.map(|it| program.place(it, false, around));
    for place in std::iter::once(around.known_place(folder, None)).chain(named) {
        let is_named = inside == Inside::OrTemporary || is_in_project(&place, around);
        if !is_named || !is_inside(&place, around)? {
            return Ok(false);
        }
    }
    for place in files.iter().map(|it| &it.place) {
        if !is_inside(place, around)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the working directory of a program and the paths in its arguments, as far as they are known. Operands that are
/// files, as the vocabulary says, are left out.
pub(super) fn named_places(
    at: usize,
    seen: &CallFacts,
    values: &Rows<ValueOptions>,
) -> Vec<ResolvedPath> {
    let Some(program) = seen.call.programs.get(at) else { return Vec::new() };
    let around = &*seen.around;
    let folder = program.folder.as_deref().map(|it| around.known_place(it, None));
    let operands = program.operands(values);
    let words = program.args.iter().filter(|it| !it.pipe && it.is_known()).filter_map(|word| {
        let is_operand = operands.iter().any(|it| std::ptr::eq(*it, word));
        match word.text.split_once('=') {
            _ if is_operand && program.described => None,
            Some((_, value)) => Some(ShellText::known(value)),
            None if word.text.starts_with('-') => behind_option(&word.text).map(ShellText::known),
            None => Some(word.clone()),
        }
    });
    folder.into_iter().chain(words.map(|it| program.place(&it, false, around))).collect()
}

/// Returns whether a path lies in the project, or has no stored content.
fn is_in_project(place: &ResolvedPath, around: &CallEnvironment) -> bool {
    place.real(around).is_some_and(|it| is_nowhere(it) || around.in_project(it))
}

/// Returns whether a path lies in the project or among temporary files. Fails if it is not known. What a program such as
/// `find` prints lies below its directory.
fn is_inside(place: &ResolvedPath, around: &CallEnvironment) -> Result<bool, FactError> {
    if place.glob && place.absolute.as_ref().is_some_and(|it| around.linked.contains(it)) {
        return Err(not_known(&place.written).into());
    }
    let is_below = place.written.ends_with("/\u{2026}");
    let real = place.real(around).filter(|_| !place.open || is_below);
    let real = real.ok_or_else(|| not_known(&place.written))?;
    Ok(is_nowhere(real) || !around.is_outside(real))
}

/// Returns the words of a program that may be paths: operands, unless the vocabulary says that they are texts, the values of
/// options, and what follows an option in the same word. Fails if a word can be an option that is not known.
fn named_paths(
    program: &Invocation,
    values: &Rows<ValueOptions>,
) -> Result<Vec<ShellText>, FactError> {
    let operands = program.operands(values);
    let mut paths = Vec::new();
    for word in &program.args {
        let is_operand = operands.iter().any(|it| std::ptr::eq(*it, word));
        // What writes to a pipe is a program of the call, too.
        if word.pipe {
            continue;
        }
        if !word.is_known() && (word.known_part().is_empty() || !is_operand) {
            return Err(not_known(&word.text).into());
        }
        if word.text.starts_with('-') {
            paths.extend(behind_option(&word.text).map(ShellText::known));
        } else if !(is_operand && program.described) {
            paths.push(word.clone());
        }
    }
    Ok(paths)
}

/// Returns the path behind an option in the same word: `/etc/x` in `--file=/etc/x` and in `-f/etc/x`.
fn behind_option(word: &str) -> Option<&str> {
    let value = match word.split_once('=') {
        Some((_, value)) => value,
        None => word.trim_start_matches(|c: char| c == '-' || c.is_ascii_alphanumeric()),
    };
    let is_path = value.contains('/') || value.starts_with('~') || value.starts_with("..");
    is_path.then_some(value)
}

#[cfg(test)]
mod tests {
    use super::behind_option;

    #[test]
    fn a_path_behind_an_option_is_found() {
        let expected = [
            ("--file=/etc/x", Some("/etc/x")),
            ("-f/etc/x", Some("/etc/x")),
            ("-I../lib", Some("../lib")),
            ("-C~", Some("~")),
            ("--config=src/a.yaml", Some("src/a.yaml")),
            ("-rn", None),
            ("--color=never", None),
            ("--stat", None),
        ];
        for (word, path) in expected {
            assert_eq!(behind_option(word), path, "{word}");
        }
    }
}
