//! Tools that the vocabulary does not list. The keys of the tool input say what the tool does: `command` holds
//! a command line, `path` a file, `sql` a statement.
//!
//! Contains: the keys and verbs that are recognized, and the recognition of SQL.
//! Does not contain: tools that the vocabulary lists (`files`). Input without a known key has no effect.

use serde_json::{Map, Value as Json};

use super::analysis_context::AnalysisContext;
use super::file_access::{Access, FileAccess};
use super::paths::ResolvedPath;
use super::powershell;
use super::statements;
use super::tool_call::Call;
use crate::glob::word_matches;
use crate::shell::{quote, syntax};

/// Keys of a command line, normalized by [`normal`].
const COMMANDS: [&str; 11] = [
    "command",
    "commands",
    "cmd",
    "script",
    "commandline",
    "cmdline",
    "shellcommand",
    "bash",
    "exec",
    "run",
    "argv",
];
/// Words in the keys of command lines: `cli_command`, `shellCmd`.
const COMMAND_WORDS: [&str; 4] = ["command", "commands", "cmd", "commandline"];
/// Words in keys that say something about a command.
const ABOUT: [&str; 14] = [
    "count",
    "description",
    "exit",
    "help",
    "history",
    "id",
    "index",
    "name",
    "output",
    "result",
    "status",
    "timeout",
    "title",
    "type",
];
/// Keys of code, and of its language.
const CODES: [&str; 6] = ["code", "source", "snippet", "sourcecode", "cellsource", "program"];
const CODE_LANGUAGES: [&str; 5] = ["language", "lang", "kernel", "runtime", "interpreter"];
/// Words in the names of tools that run code.
const RUNNERS: [&str; 11] = [
    "cell",
    "eval",
    "evaluate",
    "exec",
    "execute",
    "interpreter",
    "kernel",
    "repl",
    "run",
    "runs",
    "runner",
];
/// Words in the names of tools whose code runs in a page.
const PAGES: [&str; 5] = ["browser", "chrome", "page", "playwright", "puppeteer"];
/// Beginnings of the lines of a notebook that a shell runs.
const SHELL_LINES: [&str; 3] = ["!", "%sx ", "%system "];
/// Texts by which code is JavaScript.
const OF_JAVASCRIPT: [&str; 5] = ["const ", "let ", "require(", "=>", "console."];
/// Keys of the arguments of a command.
const ARGUMENTS: [&str; 3] = ["args", "arguments", "argv"];
/// Keys of a program whose arguments are a list of their own.
const PROGRAMS: [&str; 4] = ["program", "executable", "binary", "bin"];
/// Keys of what a tool types into a shell.
const TYPED: [&str; 4] = ["input", "keys", "text", "line"];
/// Keys of the working directory of a command.
const FOLDERS: [&str; 4] = ["cwd", "workdir", "workingdir", "workingdirectory"];
/// Keys of paths.
const PATHS: [&str; 13] = [
    "path",
    "paths",
    "filepath",
    "filepaths",
    "file",
    "files",
    "filename",
    "filenames",
    "absolutepath",
    "relativepath",
    "targetfile",
    "targetpath",
    "uri",
];
/// Keys of the source and of the target of a copy or move.
const SOURCES: [&str; 6] = ["source", "src", "from", "oldpath", "sourcepath", "path"];
const TARGETS: [&str; 8] =
    ["destination", "dest", "dst", "to", "newpath", "destinationpath", "targetpath", "newname"];
/// Keys of text that is written into a file.
const CONTENTS: [&str; 14] = [
    "content",
    "contents",
    "newcontent",
    "newstring",
    "newstr",
    "newsource",
    "newtext",
    "filetext",
    "inserttext",
    "replacement",
    "edits",
    "patch",
    "diff",
    "oldstring",
];
/// Further keys of text, if the name of the tool does not say what it does.
const TEXTS: [&str; 3] = ["text", "data", "body"];
/// Words in the names of tools that run command lines.
const SHELLS: [&str; 20] = [
    "bash",
    "cmd",
    "command",
    "commands",
    "console",
    "exec",
    "execute",
    "keys",
    "monitor",
    "powershell",
    "process",
    "pwsh",
    "run",
    "script",
    "sh",
    "shell",
    "ssh",
    "terminal",
    "tmux",
    "zsh",
];
/// Words in the names of tools that run code, and the equivalent command.
const LANGUAGES: [(&str, &str); 13] = [
    ("python", "python3 -c"),
    ("python3", "python3 -c"),
    ("py", "python3 -c"),
    ("jupyter", "python3 -c"),
    ("typescript", "node -e"),
    ("js", "node -e"),
    ("ts", "node -e"),
    ("php", "php -r"),
    ("javascript", "node -e"),
    ("node", "node -e"),
    ("ruby", "ruby -e"),
    ("perl", "perl -e"),
    ("applescript", "osascript -e"),
];
/// Words in the names of tools that search text. A tool with a word of `DATABASES` is not one of
/// them.
const SEARCHES: [&str; 3] = ["search", "websearch", "docs"];
const DATABASES: [&str; 7] = ["sql", "db", "database", "postgres", "mysql", "sqlite", "supabase"];
/// Texts of one input that guards can read, in bytes.
const STRINGS_BYTES_MAX: usize = 1024 * 1024;
/// Longer texts are not paths.
const PATH_BYTES_MAX: usize = 4096;

/// Adds the effects of a tool, by the keys of its input.
pub(super) fn add(call: &mut Call, input: &Json, context: AnalysisContext<'_>) {
    let shape = ToolInput {
        fields: InputFields::new(input),
        name: words(&call.tool),
        home: &context.around.home,
    };
    let own = shape.own_program(&call.tool, context);
    let lines = shape.commands().into_iter().chain(shape.codes());
    let commands: Vec<String> = lines.map(|it| behind_program(it, own.as_deref())).collect();
    let mut lines = Vec::new();
    if !commands.is_empty() {
        let folder = shape.fields.texts(&FOLDERS).next();
        lines.extend(folder.map(|it| format!("cd -- {}", quote(it))));
        call.command = commands.join("\n");
        lines.extend(commands);
    }
    lines.extend(shape.statements());
    match shape.verb() {
        ToolVerb::Delete => lines.extend(shape.line("rm -rf --", shape.paths(&PATHS))),
        verb @ (ToolVerb::Move | ToolVerb::Copy) => {
            let program = if verb == ToolVerb::Move { "mv --" } else { "cp -r --" };
            let from = shape.paths(&SOURCES);
            let (from, to) = if from.is_empty() {
                (shape.paths(&PATHS), shape.paths(&TARGETS))
            } else {
                (from, shape.paths(&TARGETS))
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
    let only_reads =
        ToolVerb::of(&shape.name) == Some(ToolVerb::Read) && shape.verb() == ToolVerb::Read;
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
pub fn writes_files(tool: &str, holds_content: bool) -> bool {
    match ToolVerb::of(&words(tool)) {
        Some(ToolVerb::Write) => true,
        Some(ToolVerb::Read) | None => holds_content,
        Some(ToolVerb::Copy | ToolVerb::Move | ToolVerb::Delete) => false,
    }
}

struct ToolInput<'a> {
    fields: InputFields<'a>,
    /// Words in the name of the tool.
    name: Vec<String>,
    home: &'a str,
}

impl ToolInput<'_> {
    fn named(&self, words: &[&str]) -> bool {
        self.name.iter().any(|it| words.contains(&it.as_str()))
    }

    /// Returns the command lines.
    fn commands(&self) -> Vec<String> {
        let language = LANGUAGES.iter().find(|it| self.named(&[it.0])).map(|it| it.1);
        let mut lines = Vec::new();
        for (key, value) in self.fields.commands() {
            let many = key == "commands" || value.as_array().is_some_and(|it| holds_lines(it));
            let given: Vec<String> = match value.is_array() && !many {
                true => vec![texts(value).map(quote).collect::<Vec<_>>().join(" ")],
                false => texts(value).map(str::to_owned).collect(),
            };
            let after: Vec<String> = match key {
                "script" => Vec::new(),
                key if ARGUMENTS.contains(&key) => Vec::new(),
                _ => self.fields.lists(&ARGUMENTS).map(quote).collect(),
            };
            for line in given.into_iter().filter(|it| !it.trim().is_empty()) {
                let is_line = after.is_empty();
                if is_line && !self.is_command(key, &line) {
                    continue;
                }
                lines.push(match language {
                    Some(program) => format!("{program} {}", quote(&line)),
                    None if self.named(&["powershell", "pwsh"]) => powershell::as_shell(&line),
                    None if is_line => line,
                    None => format!("{line} {}", after.join(" ")),
                });
            }
        }
        lines.extend(self.program());
        if lines.is_empty() && self.named(&SHELLS) {
            let typed = self.fields.texts(&TYPED).filter(|it| !it.trim().is_empty());
            lines.extend(typed.map(str::to_owned));
        }
        lines
    }

    /// Returns the command line of a program that a key names apart from its arguments.
    fn program(&self) -> Option<String> {
        let program = self.fields.texts(&PROGRAMS).next().filter(|it| !it.contains(' '))?;
        let arguments: Vec<String> = self.fields.lists(&ARGUMENTS).map(quote).collect();
        (!arguments.is_empty()).then(|| format!("{} {}", quote(program), arguments.join(" ")))
    }

    /// Returns the code that the tool runs, as command lines.
    fn codes(&self) -> Vec<String> {
        if !self.named(&RUNNERS)
            && !self.name.iter().any(|it| LANGUAGES.iter().any(|row| row.0 == it))
        {
            return Vec::new();
        }
        let given = self.fields.texts(&CODE_LANGUAGES).next().map(str::to_lowercase);
        let given = given.unwrap_or_default();
        let is_shell = |it: &str| SHELLS.contains(&it) && !["powershell", "pwsh"].contains(&it);
        let of_row = |it: &str| LANGUAGES.iter().find(|row| row.0 == it).map(|row| row.1);
        let by_name = || self.name.iter().find_map(|it| of_row(it));
        let texts = self.fields.texts(&CODES).filter(|it| !is_word(it) && !self.named(&PAGES));
        let lines = texts.flat_map(|code| {
            let shell_lines = code.lines().filter_map(|line| {
                SHELL_LINES.iter().find_map(|it| line.trim_start().strip_prefix(it))
            });
            let mut lines: Vec<String> = shell_lines.map(str::to_owned).collect();
            let is_javascript = || OF_JAVASCRIPT.iter().any(|it| code.contains(it));
            let guessed = || if is_javascript() { "node -e" } else { "python3 -c" };
            lines.push(match of_row(&given).or_else(by_name) {
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

    /// Returns the program that the tool has as its name: `mcp__cluster__kubectl`.
    fn own_program(&self, tool: &str, context: AnalysisContext<'_>) -> Option<String> {
        let name = tool.rsplit("__").next().filter(|it| tool.contains("__") && is_word(it))?;
        let listed = &context.knowledge.listed;
        let is_listed = listed.has(name, |it| it != "*" && word_matches(it, name));
        (is_listed && !self.named(&SHELLS) && !self.named(&RUNNERS)).then(|| name.to_owned())
    }

    /// Returns whether a text is a command line. A single word may be an action of the tool itself,
    /// and a script may be in another language, unless the name of the tool names a shell.
    fn is_command(&self, key: &str, line: &str) -> bool {
        let of_other_language =
            || key == "script" && syntax(line).is_none_or(|it| it.root_node().has_error());
        self.named(&SHELLS) || !(is_word(line) || of_other_language())
    }

    /// Returns the SQL statements, each as an equivalent command.
    fn statements(&self) -> Vec<String> {
        let searches = self.named(&SEARCHES) && !self.named(&DATABASES);
        let asked = self.fields.texts(&["query", "queries"]);
        let asked = asked.filter(|it| !searches && is_sql(it));
        let said = self.fields.texts(&["sql"]).chain(asked);
        said.map(|it| format!("psql -c {}", quote(it))).collect()
    }

    /// Returns the action of the tool on its paths.
    fn verb(&self) -> ToolVerb {
        let said = self.fields.texts(&["command", "action", "operation", "op", "mode"]);
        let said: Vec<String> = said.filter(|it| is_word(it)).flat_map(words).collect();
        let writes = || self.fields.of(&CONTENTS).next().is_some();
        match ToolVerb::of(&said).or_else(|| ToolVerb::of(&self.name)) {
            Some(ToolVerb::Read) if writes() => ToolVerb::Write,
            Some(verb) => verb,
            None if writes() || self.fields.of(&TEXTS).next().is_some() => ToolVerb::Write,
            None => ToolVerb::Read,
        }
    }

    /// Returns the paths in some keys, with the home directory expanded.
    fn paths(&self, keys: &[&str]) -> Vec<String> {
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
        for path in self.paths(&PATHS) {
            let place = context.around.known_place(&path, folder);
            let place = ResolvedPath { glob: path.contains(['*', '?', '[']), ..place };
            call.files.push(FileAccess { does, place, program: None, keeps: true });
        }
    }

    /// Returns the text that is written into files.
    fn written(&self) -> Vec<String> {
        let keys: Vec<&str> =
            CONTENTS.into_iter().chain(TEXTS).filter(|it| *it != "oldstring").collect();
        self.fields.texts(&keys).map(str::to_owned).collect()
    }
}

/// Returns a command line that begins with the program of the tool.
fn behind_program(line: String, program: Option<&str>) -> String {
    match program.filter(|it| line.split_whitespace().next() != Some(*it)) {
        Some(program) => format!("{program} {line}"),
        None => line,
    }
}

/// Returns whether a list contains command lines, and not the words of one.
fn holds_lines(items: &[Json]) -> bool {
    let first = items.first().and_then(Json::as_str).unwrap_or_default();
    first.trim().contains(char::is_whitespace)
}

/// Fields of a tool input and of the objects in it (one level deep), with normalized keys and the words of the keys.
struct InputFields<'a>(Vec<(String, &'a Json, Vec<String>)>);

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
    fn of(&self, keys: &[&str]) -> impl Iterator<Item = (&str, &'a Json)> {
        let meant = self.0.iter().filter(move |it| keys.contains(&it.0.as_str()));
        meant.map(|it| (it.0.as_str(), it.1))
    }

    /// Returns the non-empty fields whose key is one of a command line.
    fn commands(&self) -> impl Iterator<Item = (&str, &'a Json)> {
        let is_command = |(key, _, parts): &&(String, &'a Json, Vec<String>)| {
            let has = |words: &[&str]| parts.iter().any(|it| words.contains(&it.as_str()));
            COMMANDS.contains(&key.as_str()) || (has(&COMMAND_WORDS) && !has(&ABOUT))
        };
        self.0.iter().filter(is_command).map(|(key, value, _)| (key.as_str(), *value))
    }

    /// Returns the texts of some keys, including those in lists.
    fn texts(&self, keys: &[&str]) -> impl Iterator<Item = &'a str> {
        self.of(keys).flat_map(|(_, value)| texts(value))
    }

    /// Returns the texts in the lists of some keys.
    fn lists(&self, keys: &[&str]) -> impl Iterator<Item = &'a str> {
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

const READS: [&str; 22] = [
    "cat", "check", "diff", "exists", "find", "get", "glob", "grep", "head", "info", "list",
    "load", "ls", "open", "read", "search", "show", "stat", "tail", "tree", "upload", "view",
];
const WRITES: [&str; 23] = [
    "append",
    "apply",
    "create",
    "download",
    "dump",
    "edit",
    "export",
    "insert",
    "mkdir",
    "modify",
    "overwrite",
    "patch",
    "put",
    "replace",
    "save",
    "screenshot",
    "set",
    "store",
    "touch",
    "truncate",
    "update",
    "write",
    "writefile",
];
const COPIES: [&str; 3] = ["copy", "cp", "duplicate"];
const MOVES: [&str; 3] = ["move", "mv", "rename"];
const DELETES: [&str; 7] = ["delete", "erase", "remove", "rm", "rmdir", "trash", "unlink"];

impl ToolVerb {
    /// Returns the action that some words name. The most destructive one wins, then the first one.
    fn of(words: &[String]) -> Option<Self> {
        let is = |verbs: &[&str]| words.iter().any(|it| verbs.contains(&it.as_str()));
        if is(&DELETES) {
            return Some(Self::Delete);
        }
        if is(&MOVES) {
            return Some(Self::Move);
        }
        if is(&["replace"]) {
            return Some(Self::Write);
        }
        words.iter().find_map(|it| match it.as_str() {
            it if READS.contains(&it) => Some(Self::Read),
            it if WRITES.contains(&it) => Some(Self::Write),
            it if COPIES.contains(&it) => Some(Self::Copy),
            _ => None,
        })
    }
}

/// Returns whether a text is a single word, as the name of an action is.
fn is_word(text: &str) -> bool {
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

/// Objects of SQL statements that create, change or drop something.
const OBJECTS: [&str; 18] = [
    "collection",
    "column",
    "database",
    "extension",
    "function",
    "index",
    "keyspace",
    "materialized",
    "owned",
    "policy",
    "role",
    "schema",
    "sequence",
    "table",
    "tablespace",
    "trigger",
    "user",
    "view",
];

/// Returns whether one of the statements in a text is SQL.
fn is_sql(text: &str) -> bool {
    text.split(';').any(begins)
}

fn begins(text: &str) -> bool {
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
            OBJECTS.contains(&second) || matches!(second, "or" | "temp" | "temporary" | "unique")
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
