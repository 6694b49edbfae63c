//! The commands of tasks: what `make t`, `just t` and `npm run t` run, by the text of the file that describes them.
//!
//! Contains: the targets, prerequisites and variables of a `Makefile`, the recipes of a `justfile`, and the scripts of a
//! `package.json`, each reduced to the shell lines that a task runs.
//! Does not contain: functions of `make` and `just` (their results are unknown), files that others include.

use std::collections::BTreeMap;

use serde_json::Value as Json;

/// Tasks that one task may need, each with the tasks that it needs.
const TASKS_MAX: usize = 64;
/// Variables in variables.
const VALUES_DEPTH_MAX: usize = 8;
/// Represents a value that only the task runner knows. No shell variable has this name.
const UNKNOWN: &str = "${__unknown__}";

/// A line of a task, and where it begins in its file, counted from 1.
pub(super) type TaskLine = (usize, String);

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
    /// Returns a task and all that it needs, each once.
    fn with_needs<'t>(&'t self, wanted: &str) -> Vec<(&'t str, &'t TaskRecipe)> {
        let (mut found, mut open) = (Vec::new(), vec![wanted]);
        while let Some(name) = open.pop() {
            let is_known = found.iter().any(|(it, _): &(&str, &TaskRecipe)| *it == name);
            if is_known || found.len() >= TASKS_MAX {
                continue;
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
pub(super) fn makefile(text: &str, targets: &[&str], given: &[(&str, &str)]) -> Vec<TaskLine> {
    let mut values = Values::new();
    let tasks = make_tasks(text, &mut values);
    values.extend(given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let first = tasks.0.iter().map(|it| it.0.as_str()).find(|it| !it.starts_with('.'));
    let wanted = if targets.is_empty() { first.into_iter().collect() } else { targets.to_vec() };
    let mut lines = Vec::new();
    for (name, task) in wanted.iter().flat_map(|it| tasks.with_needs(it)) {
        let mut own = values.clone();
        own.insert("@".to_owned(), name.to_owned());
        own.insert("<".to_owned(), task.needs.first().cloned().unwrap_or_default());
        own.insert("^".to_owned(), task.needs.join(" "));
        let expanded = task.lines.iter().map(|(at, it)| (*at, command(&make_value(it, &own, 0))));
        lines.extend(expanded);
    }
    lines
}

/// Reads the targets and the variables of a `Makefile`.
fn make_tasks(text: &str, values: &mut Values) -> Tasks {
    let mut tasks = Tasks::default();
    let mut current: Vec<usize> = Vec::new();
    for (at, line) in logical_lines(text) {
        if let Some(recipe) = line.strip_prefix('\t') {
            for task in &current {
                let lines = tasks.0.get_mut(*task).map(|it| &mut it.1.lines);
                lines.into_iter().for_each(|it| it.push((at, recipe.to_owned())));
            }
            continue;
        }
        let line = line.split(" #").next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with('#') {
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
            let lines = Some((at, recipe.trim().to_owned())).filter(|it| !it.1.is_empty());
            let task = TaskRecipe {
                needs: needs.collect(),
                lines: Vec::from_iter(lines),
                ..TaskRecipe::default()
            };
            tasks.0.push((name.to_owned(), task));
        }
    }
    tasks
}

/// Returns the lines of a text with their numbers. A backslash at the end joins a line with the next one.
fn logical_lines(text: &str) -> Vec<TaskLine> {
    let mut lines: Vec<TaskLine> = Vec::new();
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
pub(super) fn justfile(text: &str, wanted: Option<&str>, args: &[&str]) -> Vec<TaskLine> {
    let mut values = Values::new();
    let tasks = just_tasks(text, &mut values);
    let first = tasks.0.first().map(|it| it.0.as_str());
    let Some(wanted) = wanted.or(first) else { return Vec::new() };
    let mut lines = Vec::new();
    for (name, task) in tasks.with_needs(wanted) {
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
        lines.extend(task.lines.iter().map(|(at, it)| (*at, command(&just_value(it, &own)))));
    }
    lines
}

/// Reads the recipes and the variables of a `justfile`.
fn just_tasks(text: &str, values: &mut Values) -> Tasks {
    let mut tasks = Tasks::default();
    for (at, line) in logical_lines(text) {
        if line.starts_with([' ', '\t']) {
            let last = tasks.0.last_mut();
            last.into_iter().for_each(|it| it.1.lines.push((at, line.trim().to_owned())));
            continue;
        }
        if line.trim().is_empty() || line.starts_with(['#', '[']) {
            continue;
        }
        if let Some((name, value)) = line.split_once(":=") {
            let name = name.trim().trim_start_matches("export ").to_owned();
            values.insert(name, unquoted(value));
        } else if let Some((head, needs)) = line.split_once(':') {
            let mut words = head.split_whitespace().map(str::to_owned);
            let name = words.next().unwrap_or_default().trim_start_matches('@').to_owned();
            let needs = needs.split_whitespace().map(|it| it.trim_matches(['(', ')']).to_owned());
            let task = TaskRecipe {
                needs: needs.collect(),
                parameters: words.collect(),
                ..TaskRecipe::default()
            };
            tasks.0.push((name, task));
        }
    }
    tasks
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

/// Returns the lines of some scripts of a `package.json`, in their order.
pub(super) fn package_scripts(text: &str, names: &[String]) -> Vec<TaskLine> {
    let Ok(package) = serde_json::from_str::<Json>(text) else { return Vec::new() };
    let scripts = names.iter().filter_map(|name| {
        let script = match package.get("scripts")?.get(name)? {
            Json::String(text) => text.clone(),
            Json::Array(lines) => {
                lines.iter().filter_map(Json::as_str).collect::<Vec<_>>().join("\n")
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_) => return None,
        };
        let key = format!("\"{name}\"");
        // The key may also stand above the scripts.
        let section = text.find("\"scripts\"").unwrap_or_default();
        let at = text.get(section..)?.find(&key)? + section;
        let line = text.get(..at)?.matches('\n').count() + 1;
        Some((line, script))
    });
    scripts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_runs_what_it_needs_with_its_variables() {
        let text = "OUT := build\nDEST = $(HOME)/$(OUT)\n.PHONY: all\nall: deep\n\t@echo $@\ndeep:\n\t-rm -rf \\\n\t  $(DEST)\n\
                    other:\n\trm x\nlist:\n\techo $$f $(shell date)\n";
        let lines = makefile(text, &[], &[]);
        let shown: Vec<(usize, &str)> = lines.iter().map(|it| (it.0, it.1.as_str())).collect();
        assert_eq!(shown, [(5, "echo all"), (7, "rm -rf  ${HOME}/build")]);
        let given = makefile(text, &["deep"], &[("DEST", "x")]);
        assert_eq!(given.first().map(|it| it.1.as_str()), Some("rm -rf  x"));
        let list = makefile(text, &["list"], &[]);
        assert_eq!(list.first().map(|it| it.1.as_str()), Some("echo $f ${__unknown__}"));
    }

    #[test]
    fn a_recipe_has_its_arguments_and_defaults() {
        let text = "dir := 'out'\n\nnuke target='all': prepare\n  @rm -rf {{dir}}/{{target}} {{env('X')}}\nprepare:\n  true\n";
        let lines = justfile(text, Some("nuke"), &["some"]);
        let shown: Vec<&str> = lines.iter().map(|it| it.1.as_str()).collect();
        assert_eq!(shown, ["rm -rf out/some ${__unknown__}", "true"]);
        let lines = justfile(text, None, &[]);
        assert_eq!(lines.first().map(|it| it.1.as_str()), Some("rm -rf out/all ${__unknown__}"));
    }

    #[test]
    fn a_script_is_found_below_its_key() {
        let text =
            "{\n \"test\": 1,\n \"scripts\": {\n  \"pretest\": \"a\",\n  \"test\": \"b\"\n }\n}";
        let names = ["pretest", "test", "posttest"].map(str::to_owned);
        let expected = vec![(4, "a".to_owned()), (5, "b".to_owned())];
        assert_eq!(package_scripts(text, &names), expected);
    }
}
