//! Tools that the vocabulary does not list. The keys of the tool input say what the tool does: `command` holds
//! a command line, `path` a file, `sql` a statement.
//!
//! Contains: what a call of such a tool runs and which files it touches, and the recognition of SQL.
//! Does not contain: the keys and verbs that are recognized (`tool_words` of the vocabulary), what a tool does to a service
//! (`tool_effects`), tools that the vocabulary lists (`files`).

use serde_json::{Map, Value as Json};

use super::analysis_context::AnalysisContext;
use super::file_access::{Access, FileAccess};
use super::paths::ResolvedPath;
use super::powershell;
use super::requests::SAFE_METHODS;
use super::statements;
use super::tool_call::Call;
use super::tool_effects::effects_of_tool;
use crate::glob::word_matches;
use crate::shell::{quote, syntax};
use crate::tool_vocabulary::ToolWords;

/// Words of tools that run command lines of PowerShell.
const POWERSHELLS: [&str; 2] = ["powershell", "pwsh"];
/// Beginnings of the lines of a notebook that a shell runs.
const SHELL_LINES: [&str; 3] = ["!", "%sx ", "%system "];
/// Texts by which code is JavaScript.
const OF_JAVASCRIPT: [&str; 5] = ["const ", "let ", "require(", "=>", "console."];
/// A key of [`ToolWords::content_keys`] whose text is in the file before.
const OLD_TEXT: &str = "oldstring";
/// Texts of one input that guards can read, in bytes.
const STRINGS_BYTES_MAX: usize = 1024 * 1024;
/// Longer texts are not paths.
const PATH_BYTES_MAX: usize = 4096;

/// Adds the effects of a tool, by the keys of its input.
pub(super) fn add(call: &mut Call, input: &Json, context: AnalysisContext<'_>) {
    let shape = ToolInput {
        fields: InputFields::new(input),
        name: words(&call.tool),
        words: context.lens.tool_words(),
        home: &context.around.home,
    };
    let known = shape.words;
    let own = shape.own_program(&call.tool, context);
    let behind = |it: String| behind_program(it, own.as_deref(), context);
    let mut commands: Vec<String> = shape.commands().into_iter().map(behind).collect();
    if commands.is_empty() && own.is_some() {
        commands.extend(shape.own_arguments().map(behind));
    }
    commands.extend(shape.codes());
    let mut lines = Vec::new();
    if !commands.is_empty() {
        let folder = shape.fields.texts(&known.folder_keys).next();
        lines.extend(folder.map(|it| format!("cd -- {}", quote(it))));
        call.command = commands.join("\n");
        lines.extend(commands);
    }
    lines.extend(shape.statements());
    lines.extend(shape.request(input));
    match shape.verb() {
        ToolVerb::Delete => lines.extend(shape.line("rm -rf --", shape.paths(&known.path_keys))),
        verb @ (ToolVerb::Move | ToolVerb::Copy) => {
            let program = if verb == ToolVerb::Move { "mv --" } else { "cp -r --" };
            let from = shape.paths(&known.source_keys);
            let (from, to) = if from.is_empty() {
                (shape.paths(&known.path_keys), shape.paths(&known.target_keys))
            } else {
                (from, shape.paths(&known.target_keys))
            };
            lines.extend(shape.line(program, [from, to].concat()));
        }
        ToolVerb::Write => {
            shape.touch(call, Access::Write, context);
            call.written.extend(shape.written());
        }
        ToolVerb::Read => shape.touch(call, Access::Read, context),
    }
    if !lines.is_empty() {
        statements::scan_line(call, &lines.join("\n"), context);
    }
    call.tool_effects = effects_of_tool(call, input, &shape.fields, context);
    let only_reads =
        ToolVerb::of(&shape.name, known) == Some(ToolVerb::Read) && shape.verb() == ToolVerb::Read;
    if !only_reads || !call.command.is_empty() {
        add_strings(call, input);
    }
}

/// Adds every text of an input in its order, then every key. Above the limits, the call counts as not analyzed.
fn add_strings(call: &mut Call, input: &Json) {
    let (mut open, mut keys) = (vec![input], Vec::new());
    let mut bytes = 0_usize;
    while let Some(value) = open.pop() {
        match value {
            Json::String(text) => {
                bytes = bytes.saturating_add(text.len());
                call.strings.push(text.clone());
            }
            Json::Array(items) => open.extend(items.iter().rev()),
            Json::Object(fields) => {
                bytes = fields.keys().fold(bytes, |bytes, key| bytes.saturating_add(key.len()));
                keys.extend(fields.keys().cloned());
                open.extend(fields.values().rev());
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
        if bytes > STRINGS_BYTES_MAX {
            return call.over("the texts in its input are too long");
        }
    }
    call.strings.append(&mut keys);
}

/// Returns whether a tool that the vocabulary does not list writes the files that its input names.
/// `holds_content`: whether the input contains text for a file.
#[must_use]
pub fn writes_files(tool: &str, holds_content: bool, known: &ToolWords) -> bool {
    match ToolVerb::of(&words(tool), known) {
        Some(ToolVerb::Write) => true,
        Some(ToolVerb::Read) | None => holds_content,
        Some(ToolVerb::Copy | ToolVerb::Move | ToolVerb::Delete) => false,
    }
}

struct ToolInput<'a> {
    fields: InputFields<'a>,
    /// Words in the name of the tool.
    name: Vec<String>,
    words: &'a ToolWords,
    home: &'a str,
}

impl ToolInput<'_> {
    fn named(&self, words: &[String]) -> bool {
        self.name.iter().any(|it| words.contains(it))
    }

    fn is_named_after_powershell(&self) -> bool {
        self.name.iter().any(|it| POWERSHELLS.contains(&it.as_str()))
    }

    /// Returns the command that runs code of a language.
    fn interpreter(&self, language: &str) -> Option<&str> {
        let row = self.words.languages.iter().find(|it| it.0 == language);
        row.map(|it| it.1.as_str())
    }

    /// Returns the command lines.
    fn commands(&self) -> Vec<String> {
        let of_name = |it: &&(String, String)| self.name.contains(&it.0);
        let language = self.words.languages.iter().find(of_name).map(|it| it.1.as_str());
        let argument_keys = &self.words.argument_keys;
        let mut lines = Vec::new();
        for (key, value) in self.fields.commands(self.words) {
            let many = key == "commands" || value.as_array().is_some_and(|it| holds_lines(it));
            let given: Vec<String> = match value.is_array() && !many {
                true => vec![texts(value).map(quote).collect::<Vec<_>>().join(" ")],
                false => texts(value).map(str::to_owned).collect(),
            };
            let after: Vec<String> = match key {
                "script" => Vec::new(),
                key if argument_keys.iter().any(|it| it == key) => Vec::new(),
                _ => self.fields.lists(argument_keys).map(quote).collect(),
            };
            for line in given.into_iter().filter(|it| !it.trim().is_empty()) {
                let is_line = after.is_empty();
                if is_line && !self.is_command(key, &line) {
                    continue;
                }
                lines.push(match language {
                    Some(program) => format!("{program} {}", quote(&line)),
                    None if self.is_named_after_powershell() => powershell::as_shell(&line),
                    None if is_line => line,
                    None => format!("{line} {}", after.join(" ")),
                });
            }
        }
        lines.extend(self.program());
        if lines.is_empty() && self.named(&self.words.shell_words) {
            let typed =
                self.fields.texts(&self.words.typed_keys).filter(|it| !it.trim().is_empty());
            lines.extend(typed.map(str::to_owned));
        }
        lines
    }

    /// Returns the command line of a program that a key names apart from its arguments.
    fn program(&self) -> Option<String> {
        let program =
            self.fields.texts(&self.words.program_keys).next().filter(|it| !it.contains(' '))?;
        let arguments: Vec<String> =
            self.fields.lists(&self.words.argument_keys).map(quote).collect();
        (!arguments.is_empty()).then(|| format!("{} {}", quote(program), arguments.join(" ")))
    }

    /// Returns the code that the tool runs, as command lines.
    fn codes(&self) -> Vec<String> {
        let by_name = self.name.iter().find_map(|it| self.interpreter(it));
        if !self.named(&self.words.runner_words) && by_name.is_none() {
            return Vec::new();
        }
        let given = self.fields.texts(&self.words.language_keys).next().map(str::to_lowercase);
        let given = given.unwrap_or_default();
        let is_shell = |it: &String| {
            self.words.shell_words.contains(it) && !POWERSHELLS.contains(&it.as_str())
        };
        let in_page = self.named(&self.words.page_words);
        let texts = self.fields.texts(&self.words.code_keys);
        let texts = texts.filter(|it| !is_word(it) && !in_page);
        let lines = texts.flat_map(|code| {
            let shell_lines = code.lines().filter_map(|line| {
                SHELL_LINES.iter().find_map(|it| line.trim_start().strip_prefix(it))
            });
            let mut lines: Vec<String> = shell_lines.map(str::to_owned).collect();
            let is_javascript = || OF_JAVASCRIPT.iter().any(|it| code.contains(it));
            let guessed = || if is_javascript() { "node -e" } else { "python3 -c" };
            lines.push(match self.interpreter(&given).or(by_name) {
                _ if is_shell(&given) || code.starts_with("#!/bin/") => code.to_owned(),
                _ if code.starts_with("%%bash") || code.starts_with("%%sh") => {
                    code.split_once('\n').map_or("", |it| it.1).to_owned()
                }
                program => format!("{} {}", program.unwrap_or_else(guessed), quote(code)),
            });
            lines
        });
        lines.collect()
    }

    /// Returns the program that the tool has as its name, or that its name contains: `mcp__cluster__kubectl`,
    /// `run_gcloud_command`.
    fn own_program(&self, tool: &str, context: AnalysisContext<'_>) -> Option<String> {
        let name = tool.rsplit("__").next().filter(|it| tool.contains("__") && is_word(it))?;
        let ToolWords { shell_words, runner_words, program_words, inner_words, .. } = self.words;
        let listed = &context.knowledge.listed;
        let is_listed = listed.has(name, |it| it != "*" && word_matches(it, name));
        if is_listed && !self.named(shell_words) && !self.named(runner_words) {
            return Some(name.to_owned());
        }
        let words = words(name);
        let runs_inside = words.iter().any(|it| inner_words.contains(it));
        words.into_iter().find(|it| program_words.contains(it) && !runs_inside)
    }

    /// Returns the arguments of the program in the name of the tool, if its input has no command.
    fn own_arguments(&self) -> Option<String> {
        let keys = &self.words.argument_keys;
        let list: Vec<String> = self.fields.lists(keys).map(quote).collect();
        let text = || self.fields.texts(keys).next().map(str::to_owned);
        if list.is_empty() { text() } else { Some(list.join(" ")) }
    }

    /// Returns whether a text is a command line. A single word may be an action of the tool itself,
    /// and a script may be in another language, unless the name of the tool names a shell.
    fn is_command(&self, key: &str, line: &str) -> bool {
        let of_other_language =
            || key == "script" && syntax(line).is_none_or(|it| it.root_node().has_error());
        self.named(&self.words.shell_words) || !(is_word(line) || of_other_language())
    }

    /// Returns the SQL statements, each as an equivalent command.
    fn statements(&self) -> Vec<String> {
        let ToolWords { search_words, database_words, query_keys, sql_keys, .. } = self.words;
        let searches = self.named(search_words) && !self.named(database_words);
        let objects = &self.words.sql_objects;
        let asked = self.fields.texts(query_keys);
        let asked = asked.filter(|it| !searches && is_sql(it, objects));
        let said = self.fields.texts(sql_keys).chain(asked);
        said.map(|it| format!("psql -c {}", quote(it))).collect()
    }

    /// Returns an HTTP request that can change something, as an equivalent command.
    fn request(&self, input: &Json) -> Option<String> {
        let ToolWords { address_keys, method_keys, .. } = self.words;
        let address = self.fields.texts(address_keys).next()?;
        let method = self.fields.texts(method_keys).next().filter(|it| is_word(it))?;
        if SAFE_METHODS.contains(&method.to_ascii_uppercase().as_str()) {
            return None;
        }
        let headers = input.get("headers").and_then(Json::as_object);
        let headers = headers.into_iter().flat_map(Map::iter).filter_map(|(name, value)| {
            Some(format!(" -H {}", quote(&format!("{name}: {}", value.as_str()?))))
        });
        let headers: String = headers.collect();
        let method = method.to_ascii_uppercase();
        Some(format!("curl -X {method}{headers} {}", quote(address)))
    }

    /// Returns the action of the tool on its paths.
    fn verb(&self) -> ToolVerb {
        let known = self.words;
        let said = self.fields.texts(&known.action_keys);
        let said: Vec<String> = said.filter(|it| is_word(it)).flat_map(words).collect();
        let writes = || self.fields.of(&known.content_keys).next().is_some();
        match ToolVerb::of(&said, known).or_else(|| ToolVerb::of(&self.name, known)) {
            Some(ToolVerb::Read) if writes() => ToolVerb::Write,
            Some(verb) => verb,
            None if writes() || self.fields.of(&known.text_keys).next().is_some() => {
                ToolVerb::Write
            }
            None => ToolVerb::Read,
        }
    }

    /// Returns the paths in some keys, with the home directory expanded.
    fn paths(&self, keys: &[String]) -> Vec<String> {
        let is_path = |it: &&str| {
            let elsewhere = it.contains("://") && !it.starts_with("file://");
            !it.is_empty() && it.len() <= PATH_BYTES_MAX && !it.contains('\n') && !elsewhere
        };
        let with_home = |it: &str| match it.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                format!("{}{rest}", self.home)
            }
            _ => it.to_owned(),
        };
        self.fields.texts(keys).filter(is_path).map(with_home).collect()
    }

    /// Returns a command line with paths. `None` without paths.
    fn line(&self, program: &str, paths: Vec<String>) -> Option<String> {
        let written: Vec<String> = paths.iter().map(|it| quote(it)).collect();
        (!written.is_empty()).then(|| format!("{program} {}", written.join(" ")))
    }

    fn touch(&self, call: &mut Call, does: Access, context: AnalysisContext<'_>) {
        let folder = Some(context.around.folder.as_str()).filter(|it| !it.is_empty());
        for path in self.paths(&self.words.path_keys) {
            let place = context.around.known_place(&path, folder);
            let place = ResolvedPath { glob: path.contains(['*', '?', '[']), ..place };
            call.files.push(FileAccess::by_tool(does, place));
        }
    }

    /// Returns the text that is written into files.
    fn written(&self) -> Vec<String> {
        let ToolWords { content_keys, text_keys, .. } = self.words;
        let keys = content_keys.iter().chain(text_keys).filter(|it| *it != OLD_TEXT);
        let keys: Vec<String> = keys.cloned().collect();
        self.fields.texts(&keys).map(str::to_owned).collect()
    }
}

/// Returns a command line that begins with the program of the tool, unless it begins with another known program. A word can
/// be a subcommand or a program (`exec`): then both lines count.
fn behind_program(line: String, program: Option<&str>, context: AnalysisContext<'_>) -> String {
    let first = line.split_whitespace().next().unwrap_or_default();
    let Some(program) = program.filter(|it| first != *it) else { return line };
    let is_other = context.lens.tool_words().program_words.iter().any(|it| it == first);
    if is_other || first.contains('/') || line.trim_start().starts_with(['$', '!', '(', '#']) {
        return line;
    }
    let listed = &context.knowledge.listed;
    match listed.has(first, |it| it != "*" && word_matches(it, first)) {
        true => format!("{program} {line}\n{line}"),
        false => format!("{program} {line}"),
    }
}

/// Returns whether a list contains command lines, and not the words of one.
fn holds_lines(items: &[Json]) -> bool {
    let first = items.first().and_then(Json::as_str).unwrap_or_default();
    first.trim().contains(char::is_whitespace)
}

/// Fields of a tool input and of the objects in it (one level deep), with normalized keys and the words of the keys.
pub(super) struct InputFields<'a>(Vec<(String, &'a Json, Vec<String>)>);

impl<'a> InputFields<'a> {
    fn new(input: &'a Json) -> Self {
        let mut found = Vec::new();
        let mut add = |fields: &'a Map<String, Json>| {
            found.extend(fields.iter().map(|(key, value)| (normal(key), value, words(key))));
        };
        let fields = input.as_object();
        fields.into_iter().for_each(&mut add);
        for value in fields.into_iter().flat_map(Map::values) {
            value.as_object().into_iter().for_each(&mut add);
            let items = value.as_array().into_iter().flatten();
            items.filter_map(Json::as_object).for_each(&mut add);
        }
        found.retain(|it| !is_empty(it.1));
        Self(found)
    }

    /// Returns the non-empty fields with some keys.
    pub(super) fn of(&self, keys: &[String]) -> impl Iterator<Item = (&str, &'a Json)> {
        let meant = self.0.iter().filter(move |it| keys.contains(&it.0));
        meant.map(|it| (it.0.as_str(), it.1))
    }

    /// Returns the non-empty fields whose key is one of a command line.
    fn commands(&self, known: &ToolWords) -> impl Iterator<Item = (&str, &'a Json)> {
        let is_command = |(key, _, parts): &&(String, &'a Json, Vec<String>)| {
            let has = |words: &[String]| parts.iter().any(|it| words.contains(it));
            known.command_keys.contains(key)
                || (has(&known.command_words) && !has(&known.about_words))
        };
        self.0.iter().filter(is_command).map(|(key, value, _)| (key.as_str(), *value))
    }

    /// Returns the texts of some keys, including those in lists.
    pub(super) fn texts(&self, keys: &[String]) -> impl Iterator<Item = &'a str> {
        self.of(keys).flat_map(|(_, value)| texts(value))
    }

    /// Returns the texts in the lists of some keys.
    fn lists(&self, keys: &[String]) -> impl Iterator<Item = &'a str> {
        self.of(keys).filter(|(_, value)| value.is_array()).flat_map(|(_, value)| texts(value))
    }
}

/// Returns a text, or the texts in a list.
fn texts(value: &Json) -> impl Iterator<Item = &str> {
    let items = value.as_array().into_iter().flatten();
    value.as_str().into_iter().chain(items.filter_map(Json::as_str))
}

/// Normalizes a key: letters and digits only, in lower case.
pub(super) fn normal(key: &str) -> String {
    key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        Json::Object(fields) => fields.is_empty(),
        Json::Bool(_) | Json::Number(_) => false,
    }
}

/// The action of a tool on paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolVerb {
    Read,
    Write,
    Copy,
    Move,
    Delete,
}

impl ToolVerb {
    /// Returns the action that some words name. The most destructive one wins, then the first one.
    fn of(words: &[String], known: &ToolWords) -> Option<Self> {
        let is = |verbs: &[String]| words.iter().any(|it| verbs.contains(it));
        if is(&known.delete_verbs) {
            return Some(Self::Delete);
        }
        if is(&known.move_verbs) {
            return Some(Self::Move);
        }
        if words.iter().any(|it| it == "replace") {
            return Some(Self::Write);
        }
        words.iter().find_map(|it| match it {
            it if known.read_verbs.contains(it) => Some(Self::Read),
            it if known.write_verbs.contains(it) => Some(Self::Write),
            it if known.copy_verbs.contains(it) => Some(Self::Copy),
            _ => None,
        })
    }
}

/// Returns whether a text is a single word, as the name of an action is.
pub(super) fn is_word(text: &str) -> bool {
    let text = text.trim();
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Splits a name into words in lower case: `mcp__files__writeFile` has `mcp`, `files`, `write`,
/// `file`.
pub(super) fn words(name: &str) -> Vec<String> {
    let (mut found, mut word, mut small) = (Vec::new(), String::new(), false);
    for c in name.chars() {
        let ends = !c.is_alphanumeric() || (c.is_uppercase() && small);
        if ends && !word.is_empty() {
            found.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        small = c.is_lowercase();
    }
    found.extend(Some(word).filter(|it| !it.is_empty()));
    found
}

/// Returns whether one of the statements in a text is SQL.
fn is_sql(text: &str, objects: &[String]) -> bool {
    text.split(';').any(|it| begins(it, objects))
}

fn begins(text: &str, objects: &[String]) -> bool {
    let lower = code(text).to_lowercase();
    let mut words =
        lower.split(|c: char| c.is_whitespace() || c == '(').filter(|it| !it.is_empty());
    let (Some(verb), second) = (words.next(), words.next().unwrap_or_default()) else {
        return false;
    };
    let has = |word: &str| lower.split_whitespace().any(|it| it == word);
    match verb {
        "select" => has("from") || has("into"),
        "drop" | "alter" | "create" => {
            objects.iter().any(|it| it == second)
                || matches!(second, "or" | "temp" | "temporary" | "unique")
        }
        "truncate" => second == "table" || lower.split_whitespace().count() == 2,
        "delete" => second == "from",
        "insert" | "replace" | "merge" => second == "into",
        "update" => has("set"),
        "grant" | "revoke" => has("on") || has("to") || has("from"),
        "with" => has("as"),
        "explain" => matches!(second, "analyze" | "delete" | "insert" | "select" | "update"),
        _ => false,
    }
}

/// Removes the comments and parentheses at the beginning of a text.
fn code(text: &str) -> &str {
    let mut rest = text.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    loop {
        let after = match (rest.strip_prefix("--"), rest.strip_prefix("/*")) {
            (Some(line), _) => line.split_once('\n').map_or("", |it| it.1),
            (None, Some(block)) => block.split_once("*/").map_or("", |it| it.1),
            (None, None) => return rest,
        };
        rest = after.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    }
}
