//! The commands of tasks: what `make t`, `just t` and `npm run t` run, by the text of the file that describes them.
//!
//! Contains: the targets, prerequisites and variables of a `Makefile`, the recipes of a `justfile`, and the scripts of a
//! `package.json`, each reduced to the shell lines that a task runs, with the files that these files include.
//! Does not contain: functions of `make` and `just` (their results are unknown), the reading of files (`scripts`).

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::shell::quote;

/// Tasks that one task may need, each with the tasks that it needs.
const TASKS_MAX: usize = 512;
/// Variables in variables.
const VALUES_DEPTH_MAX: usize = 8;
/// Represents a value that only the task runner knows. No shell variable has this name.
const UNKNOWN: &str = "${__unknown__}";
/// Represents a value beyond `VALUES_DEPTH_MAX`.
const TOO_DEEP: &str = "${__too_deep__}";

/// A line of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaskLine {
    /// Index of its file: 0 for the file of the task runner, others for those that it includes.
    pub(super) file: usize,
    /// Where it begins in its file, counted from 1.
    pub(super) at: usize,
    pub(super) text: String,
}

/// What a task runs.
#[derive(Debug, Default)]
pub(super) struct TaskLines {
    pub(super) lines: Vec<TaskLine>,
    /// Why a part of it is unknown.
    pub(super) unread: Option<&'static str>,
}

/// The files of a task runner.
pub(super) struct TaskSource<'a> {
    /// Text of the first file.
    pub(super) text: &'a str,
    /// Reads the files that a name includes: the index and the text of each file that was not read before.
    pub(super) include: &'a mut dyn FnMut(&str) -> Vec<(usize, String)>,
}

/// Values of variables by name.
type Values = BTreeMap<String, String>;

/// A target of a `Makefile`, or a recipe of a `justfile`.
#[derive(Debug, Default)]
struct TaskRecipe {
    needs: Vec<String>,
    parameters: Vec<String>,
    lines: Vec<TaskLine>,
}

/// Tasks in the order of their file.
#[derive(Debug, Default)]
struct Tasks(Vec<(String, TaskRecipe)>);

impl Tasks {
    /// Returns a task and all that it needs, each once. `unread` is set if these are too many.
    fn with_needs<'t>(
        &'t self,
        wanted: &str,
        unread: &mut Option<&'static str>,
    ) -> Vec<(&'t str, &'t TaskRecipe)> {
        let (mut found, mut open) = (Vec::new(), vec![wanted]);
        while let Some(name) = open.pop() {
            let is_known = found.iter().any(|(it, _): &(&str, &TaskRecipe)| *it == name);
            if is_known {
                continue;
            }
            if found.len() >= TASKS_MAX {
                *unread = Some("its task needs too many tasks");
                break;
            }
            for (own, task) in self.0.iter().filter(|it| it.0 == name) {
                found.push((own.as_str(), task));
                open.extend(task.needs.iter().map(String::as_str));
            }
        }
        found
    }
}

/// Returns the lines that `make` runs for some targets; without one, for the first target. `given` are the variables of
/// its command line.
pub(super) fn makefile(
    source: &mut TaskSource<'_>,
    targets: &[&str],
    given: &[(&str, &str)],
) -> TaskLines {
    let mut values = Values::new();
    // What the command line sets holds for the names of included files, too.
    let set = || given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    values.extend(set());
    let mut tasks = Tasks::default();
    add_make_tasks(source.text, 0, source.include, &mut tasks, &mut values);
    values.extend(set());
    let first = tasks.0.iter().map(|it| it.0.as_str()).find(|it| !it.starts_with('.'));
    let wanted = if targets.is_empty() { first.into_iter().collect() } else { targets.to_vec() };
    let mut found = TaskLines::default();
    for (name, task) in wanted.iter().flat_map(|it| tasks.with_needs(it, &mut found.unread)) {
        let mut own = values.clone();
        own.insert("@".to_owned(), name.to_owned());
        own.insert("<".to_owned(), task.needs.first().cloned().unwrap_or_default());
        own.insert("^".to_owned(), task.needs.join(" "));
        let expanded = task
            .lines
            .iter()
            .map(|it| TaskLine { text: command(&make_value(&it.text, &own, 0)), ..it.clone() });
        found.lines.extend(expanded);
    }
    if found.lines.iter().any(|it| it.text.contains(TOO_DEEP)) {
        found.unread = Some("its variables contain each other too often");
    }
    found
}

/// Adds the targets and the variables of the `Makefile` with an index, and of those that it includes.
fn add_make_tasks(
    text: &str,
    file: usize,
    include: &mut dyn FnMut(&str) -> Vec<(usize, String)>,
    tasks: &mut Tasks,
    values: &mut Values,
) {
    let mut current: Vec<usize> = Vec::new();
    for (at, line) in logical_lines(text) {
        if let Some(recipe) = line.strip_prefix('\t') {
            for task in &current {
                let lines = tasks.0.get_mut(*task).map(|it| &mut it.1.lines);
                let text = recipe.to_owned();
                lines.into_iter().for_each(|it| it.push(TaskLine { file, at, text: text.clone() }));
            }
            continue;
        }
        let line = line.split(" #").next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(names) = included(line, &["include ", "-include ", "sinclude "]) {
            for name in make_value(names, values, 0).split_whitespace() {
                for (file, text) in include(name) {
                    add_make_tasks(&text, file, include, tasks, values);
                }
            }
            continue;
        }
        if let Some((name, sign, value)) = assignment(line) {
            let before = values.get(&name).cloned();
            match sign {
                "+" => values.insert(name, [before.unwrap_or_default(), value].join(" ")),
                "?" if before.is_some() => None,
                _ => values.insert(name, value),
            };
            continue;
        }
        let Some((targets, rest)) = line.split_once(':') else { continue };
        let (needs, recipe) = rest.split_once(';').unwrap_or((rest, ""));
        let needs = make_value(needs.trim_start_matches(':'), values, 0);
        current.clear();
        for name in make_value(targets, values, 0).split_whitespace() {
            current.push(tasks.0.len());
            let needs = needs.split_whitespace().filter(|it| *it != "|").map(str::to_owned);
            let line = TaskLine { file, at, text: recipe.trim().to_owned() };
            let task = TaskRecipe {
                needs: needs.collect(),
                lines: Vec::from_iter(Some(line).filter(|it| !it.text.is_empty())),
                ..TaskRecipe::default()
            };
            tasks.0.push((name.to_owned(), task));
        }
    }
}

/// Returns what a line includes.
fn included<'l>(line: &'l str, words: &[&str]) -> Option<&'l str> {
    words.iter().find_map(|it| line.strip_prefix(it)).map(str::trim)
}

/// Returns the lines of a text with their numbers. A backslash at the end joins a line with the next one.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (at, line) in text.lines().enumerate() {
        let (body, continues) = match line.strip_suffix('\\') {
            Some(body) => (body, true),
            None => (line, false),
        };
        match lines.last_mut().filter(|_| is_open) {
            Some(last) => {
                last.1.push(' ');
                last.1.push_str(body.trim_start());
            }
            None => lines.push((at + 1, body.to_owned())),
        }
        is_open = continues;
    }
    lines
}

/// Returns the name, the sign before `=`, and the value of `NAME := value`.
fn assignment(line: &str) -> Option<(String, &'static str, String)> {
    let (name, value) = line.split_once('=')?;
    let name =
        name.strip_prefix("export ").or_else(|| name.strip_prefix("override ")).unwrap_or(name);
    let (name, sign) = match name.trim_end() {
        it if it.ends_with('+') => (it.trim_end_matches('+'), "+"),
        it if it.ends_with('?') => (it.trim_end_matches('?'), "?"),
        it => (it.trim_end_matches([':', '!']), ""),
    };
    let name = name.trim();
    let is_name = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    let is_one = !name.is_empty() && name.chars().all(is_name);
    is_one.then(|| (name.to_owned(), sign, value.trim().to_owned()))
}

/// Expands the variables of `make` in a text. What `make` inherits is a variable of the shell.
fn make_value(text: &str, values: &Values, depth: usize) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(rest.get(..at).unwrap_or_default());
        let after = rest.get(at + 1..).unwrap_or_default();
        let (name, used) = match after.chars().next() {
            Some('$') => ("$", 1),
            Some(open @ ('(' | '{')) => {
                let close = if open == '(' { ')' } else { '}' };
                match enclosed(after, open, close) {
                    Some(name) => (name, name.len() + 2),
                    None => ("", 0),
                }
            }
            Some(one) => (after.get(..one.len_utf8()).unwrap_or_default(), one.len_utf8()),
            None => ("", 0),
        };
        match values.get(name) {
            _ if name == "$" => out.push('$'),
            Some(value) if depth < VALUES_DEPTH_MAX => {
                out.push_str(&make_value(value, values, depth + 1));
            }
            Some(_) => out.push_str(TOO_DEEP),
            None if matches!(name, "CURDIR" | "PWD") => out.push_str("${PWD}"),
            None if name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.is_empty() => {
                out.push_str(&format!("${{{name}}}"));
            }
            _ => out.push_str(UNKNOWN),
        }
        rest = after.get(used..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Returns the text between the first bracket and the one that closes it.
fn enclosed(text: &str, open: char, close: char) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return text.get(open.len_utf8()..at);
            }
        }
    }
    None
}

/// Removes the marks before a command that make the runner silent or tolerant.
fn command(line: &str) -> String {
    line.trim_start().trim_start_matches(['@', '-', '+']).trim_start().to_owned()
}

/// Returns the lines that `just` runs for a recipe; without one, for the first. `args` are the arguments of the recipe.
pub(super) fn justfile(
    source: &mut TaskSource<'_>,
    wanted: Option<&str>,
    args: &[&str],
) -> TaskLines {
    let mut values = Values::new();
    let mut tasks = Tasks::default();
    add_just_tasks(source.text, "", 0, source.include, &mut tasks, &mut values);
    let first = tasks.0.first().map(|it| it.0.as_str());
    let Some(wanted) = wanted.or(first) else { return TaskLines::default() };
    // `just module recipe`
    let in_module = args.first().map(|it| format!("{wanted}::{it}"));
    let in_module = in_module.filter(|name| tasks.0.iter().any(|it| it.0 == *name));
    let (wanted, args) = match &in_module {
        Some(name) => (name.as_str(), args.get(1..).unwrap_or_default()),
        None => (wanted, args),
    };
    let mut found = TaskLines::default();
    for (name, task) in tasks.with_needs(wanted, &mut found.unread) {
        let mut own = values.clone();
        for (at, parameter) in task.parameters.iter().enumerate() {
            let (parameter, default) = parameter.split_once('=').unwrap_or((parameter, UNKNOWN));
            let is_rest = parameter.starts_with(['*', '+']);
            let given = match is_rest {
                true => args.get(at..).map(|it| it.join(" ")),
                false => args.get(at).map(|it| (*it).to_owned()),
            };
            let value = given.filter(|_| name == wanted).unwrap_or_else(|| unquoted(default));
            own.insert(parameter.trim_start_matches(['*', '+', '$']).to_owned(), value);
        }
        let lines = task.lines.iter();
        found.lines.extend(
            lines.map(|it| TaskLine { text: command(&just_value(&it.text, &own)), ..it.clone() }),
        );
    }
    found
}

/// Adds the recipes and the variables of the `justfile` with an index, and of those that it imports. `prefix` is before
/// the names of the recipes of a module.
fn add_just_tasks(
    text: &str,
    prefix: &str,
    file: usize,
    include: &mut dyn FnMut(&str) -> Vec<(usize, String)>,
    tasks: &mut Tasks,
    values: &mut Values,
) {
    for (at, line) in logical_lines(text) {
        if line.starts_with([' ', '\t']) {
            let text = line.trim().to_owned();
            let last = tasks.0.last_mut();
            last.into_iter().for_each(|it| {
                it.1.lines.push(TaskLine { file, at, text: text.clone() });
            });
            continue;
        }
        if line.trim().is_empty() || line.starts_with(['#', '[']) {
            continue;
        }
        if let Some((names, prefix)) = just_module(&line, prefix) {
            for (file, text) in names.iter().flat_map(|it| include(it)).collect::<Vec<_>>() {
                add_just_tasks(&text, &prefix, file, include, tasks, values);
            }
        } else if let Some((name, value)) = line.split_once(":=") {
            let name = name.trim().trim_start_matches("export ").to_owned();
            values.insert(name, unquoted(value));
        } else if let Some((head, needs)) = line.split_once(':') {
            let mut words = head.split_whitespace().map(str::to_owned);
            let name = words.next().unwrap_or_default();
            let needs = needs.split_whitespace().map(|it| it.trim_matches(['(', ')']));
            let task = TaskRecipe {
                needs: needs.map(|it| format!("{prefix}{it}")).collect(),
                parameters: words.collect(),
                ..TaskRecipe::default()
            };
            tasks.0.push((format!("{prefix}{}", name.trim_start_matches('@')), task));
        }
    }
}

/// Returns the files that a line of a `justfile` includes, and what is before the names of their recipes.
fn just_module(line: &str, prefix: &str) -> Option<(Vec<String>, String)> {
    if let Some(file) = included(line, &["import ", "import? "]) {
        return Some((vec![unquoted(file)], prefix.to_owned()));
    }
    let module = included(line, &["mod ", "mod? "])?;
    let (name, file) = module.split_once(' ').unwrap_or((module, ""));
    let files = match file {
        "" => [".just", "/mod.just", "/justfile", "/.justfile"]
            .map(|it| format!("{name}{it}"))
            .to_vec(),
        file => vec![unquoted(file)],
    };
    Some((files, format!("{prefix}{name}::")))
}

/// Replaces `{{name}}` in a line of a recipe.
fn just_value(line: &str, values: &Values) -> String {
    let mut pieces = line.split("{{");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, after) = piece.split_once("}}").unwrap_or((piece, ""));
        out.push_str(values.get(name.trim()).map_or(UNKNOWN, String::as_str));
        out.push_str(after);
    }
    out
}

/// Returns a literal of `just` without its quotes; another expression is unknown.
fn unquoted(text: &str) -> String {
    let text = text.trim();
    let inner = ['\'', '"'].iter().find_map(|it| text.strip_prefix(*it)?.strip_suffix(*it));
    inner.unwrap_or(if text.is_empty() { text } else { UNKNOWN }).to_owned()
}

/// Returns the commands of a `Dockerfile`. A command in the form of a list is one without a shell.
pub(super) fn image_commands(text: &str) -> TaskLines {
    let commands = logical_lines(text).into_iter().filter_map(|(at, line)| {
        let line = line.trim();
        let (word, command) = line.split_once(char::is_whitespace)?;
        if !word.eq_ignore_ascii_case("run") {
            return None;
        }
        // Options such as `--mount=type=cache,…`.
        let is_option = |it: &str| it.starts_with("--");
        let command = command.trim_start();
        let end = command.split_whitespace().take_while(|it| is_option(it)).last();
        let command = end.and_then(|it| command.split_once(it)).map_or(command, |it| it.1);
        let words = serde_json::from_str::<Vec<String>>(command);
        let text = words.map_or_else(
            |_| command.to_owned(),
            |it| it.iter().map(|it| quote(it)).collect::<Vec<_>>().join(" "),
        );
        Some(TaskLine { file: 0, at, text })
    });
    TaskLines { lines: commands.collect(), unread: None }
}

/// Returns the lines of some scripts of a `package.json`, in their order.
pub(super) fn package_scripts(text: &str, names: &[String]) -> TaskLines {
    let Ok(package) = serde_json::from_str::<Json>(text.trim_start_matches('\u{feff}')) else {
        return TaskLines { unread: Some("its form is not that of JSON"), ..TaskLines::default() };
    };
    let scripts = names.iter().filter_map(|name| {
        let script = match package.get("scripts")?.get(name)? {
            Json::String(text) => text.clone(),
            Json::Array(lines) => {
                lines.iter().filter_map(Json::as_str).collect::<Vec<_>>().join("\n")
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_) => return None,
        };
        let key = format!("\"{name}\"");
        // The key may also stand above the scripts, or be written with escapes.
        let section = text.find("\"scripts\"").unwrap_or_default();
        let at = text.get(section..).and_then(|it| it.find(&key)).map(|it| it + section);
        let line = at.and_then(|it| text.get(..it)).map(|it| it.matches('\n').count() + 1);
        Some(TaskLine { file: 0, at: line.unwrap_or_default(), text: script })
    });
    TaskLines { lines: scripts.collect(), unread: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines that some task runs, with their places. No file is included.
    fn shown(
        text: &str,
        read: impl FnOnce(&mut TaskSource<'_>) -> TaskLines,
    ) -> Vec<(usize, String)> {
        let mut source = TaskSource { text, include: &mut |_| Vec::new() };
        let found = read(&mut source);
        assert_eq!(found.unread, None);
        found.lines.into_iter().map(|it| (it.at, it.text)).collect()
    }

    fn at(at: usize, text: &str) -> (usize, String) {
        (at, text.to_owned())
    }

    #[test]
    fn a_target_runs_what_it_needs_with_its_variables() {
        let text = "OUT := build\nDEST = $(HOME)/$(OUT)\n.PHONY: all\nall: deep\n\t@echo $@\ndeep:\n\t-rm -rf \\\n\t  $(DEST)\n\
                    other:\n\trm x\nlist:\n\techo $$f $(shell date)\n";
        let lines = shown(text, |it| makefile(it, &[], &[]));
        assert_eq!(lines, [at(5, "echo all"), at(7, "rm -rf  ${HOME}/build")]);
        let given = shown(text, |it| makefile(it, &["deep"], &[("DEST", "x")]));
        assert_eq!(given, [at(7, "rm -rf  x")]);
        let list = shown(text, |it| makefile(it, &["list"], &[]));
        assert_eq!(list, [at(12, "echo $f ${__unknown__}")]);
    }

    #[test]
    fn a_recipe_has_its_arguments_and_defaults() {
        let text = "dir := 'out'\n\nnuke target='all': prepare\n  @rm -rf {{dir}}/{{target}} {{env('X')}}\nprepare:\n  true\n";
        let lines = shown(text, |it| justfile(it, Some("nuke"), &["some"]));
        assert_eq!(lines, [at(4, "rm -rf out/some ${__unknown__}"), at(6, "true")]);
        let lines = shown(text, |it| justfile(it, None, &[]));
        assert_eq!(lines.first(), Some(&at(4, "rm -rf out/all ${__unknown__}")));
    }

    #[test]
    fn a_file_can_include_others() {
        let mut names = Vec::new();
        let mut include = |name: &str| {
            names.push(name.to_owned());
            let text = if name.ends_with(".mk") { "all: ; rm x\n" } else { "nuke:\n  rm x\n" };
            vec![(1, text.to_owned())]
        };
        let mut source =
            TaskSource { text: "D = lib\n-include $(D)/a.mk\n", include: &mut include };
        let line = TaskLine { file: 1, at: 1, text: "rm x".to_owned() };
        assert_eq!(makefile(&mut source, &["all"], &[]).lines, [line]);
        let mut source = TaskSource { text: "mod db 'db.just'\n", include: &mut include };
        let line = TaskLine { file: 1, at: 2, text: "rm x".to_owned() };
        assert_eq!(justfile(&mut source, Some("db"), &["nuke"]).lines, std::slice::from_ref(&line));
        let mut source = TaskSource { text: "import 'x.just'\n", include: &mut include };
        assert_eq!(justfile(&mut source, Some("nuke"), &[]).lines, [line]);
        assert_eq!(names, ["lib/a.mk", "db.just", "x.just"]);
    }

    #[test]
    fn what_is_behind_a_limit_is_named() {
        let chain: String = (0..20).map(|it| format!("V{it} = $(V{})\n", it + 1)).collect();
        let needs: String = (0..600).map(|it| format!("t{it}: t{}\n\ttrue\n", it + 1)).collect();
        for text in [format!("{chain}V20 = ~\nall:\n\trm -rf $(V0)\n"), format!("all: t0\n{needs}")]
        {
            let mut source = TaskSource { text: &text, include: &mut |_| Vec::new() };
            assert!(makefile(&mut source, &["all"], &[]).unread.is_some());
        }
        assert!(package_scripts("{", &[]).unread.is_some());
    }

    #[test]
    fn a_script_is_found_below_its_key() {
        let text =
            "{\n \"test\": 1,\n \"scripts\": {\n  \"pretest\": \"a\",\n  \"test\": \"b\"\n }\n}";
        let names = ["pretest", "test", "posttest"].map(str::to_owned);
        let lines = shown(text, |it| package_scripts(it.text, &names));
        assert_eq!(lines, [at(4, "a"), at(5, "b")]);
    }
}
