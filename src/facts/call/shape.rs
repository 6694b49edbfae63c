//! Tools that no list of the vocabulary names, read by the shape of their input: a key such as `command`
//! holds a command line, `path` a file, `sql` a statement. What fits no shape says nothing.

mod fields;
mod sql;
mod verb;

use serde_json::Value as Json;

use super::super::shell::{syntax, word::quoted};
use super::files::{FileUse, Use};
use super::place::Place;
use super::{Call, Reading, powershell, scan};
use fields::{Fields, texts};
use verb::{Verb, words};

/// Keys of a command line, in the form of [`fields::normal`].
const COMMANDS: [&str; 6] = ["command", "commands", "cmd", "script", "commandline", "shellcommand"];
/// Keys of the words behind a command.
const ARGUMENTS: [&str; 3] = ["args", "arguments", "argv"];
/// Keys of the folder that a command runs in.
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
/// Keys of a path that is moved or copied, and of the path that it goes to.
const SOURCES: [&str; 6] = ["source", "src", "from", "oldpath", "sourcepath", "path"];
const TARGETS: [&str; 8] =
    ["destination", "dest", "dst", "to", "newpath", "destinationpath", "targetpath", "newname"];
/// Keys of what is written into a file.
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
/// The same where the name of the tool says nothing.
const TEXTS: [&str; 3] = ["text", "data", "body"];
/// Words in names of tools that run command lines.
const SHELLS: [&str; 18] = [
    "bash",
    "cmd",
    "command",
    "commands",
    "console",
    "exec",
    "execute",
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
    "zsh",
];
/// Words in names of tools that run code, and how a shell has it run.
const LANGUAGES: [(&str, &str); 6] = [
    ("python", "python3 -c"),
    ("javascript", "node -e"),
    ("node", "node -e"),
    ("ruby", "ruby -e"),
    ("perl", "perl -e"),
    ("applescript", "osascript -e"),
];
/// Words in names of tools that search for words, and of those that ask a database all the same.
const SEARCHES: [&str; 3] = ["search", "websearch", "docs"];
const DATABASES: [&str; 7] = ["sql", "db", "database", "postgres", "mysql", "sqlite", "supabase"];
/// Longest text that is taken for a path.
const PATH_BYTES_MAX: usize = 4096;

/// Adds what a tool would do by the shape of its input.
pub(super) fn add(call: &mut Call, input: &Json, reading: Reading<'_>) {
    let shape =
        Shape { fields: Fields::new(input), name: words(&call.tool), home: &reading.around.home };
    let commands = shape.commands();
    let mut lines = Vec::new();
    if !commands.is_empty() {
        let folder = shape.fields.texts(&FOLDERS).next();
        lines.extend(folder.map(|it| format!("cd -- {}", quoted(it))));
        call.command = commands.join("\n");
        lines.extend(commands);
    }
    lines.extend(shape.statements());
    match shape.verb() {
        Verb::Delete => lines.extend(shape.line("rm -rf --", shape.paths(&PATHS))),
        verb @ (Verb::Move | Verb::Copy) => {
            let program = if verb == Verb::Move { "mv --" } else { "cp -r --" };
            let from = shape.paths(&SOURCES);
            let (from, to) = if from.is_empty() {
                (shape.paths(&PATHS), shape.paths(&TARGETS))
            } else {
                (from, shape.paths(&TARGETS))
            };
            lines.extend(shape.line(program, [from, to].concat()));
        }
        Verb::Write => {
            shape.touch(call, Use::Writes, reading);
            call.written.extend(shape.written());
        }
        Verb::Read => shape.touch(call, Use::Reads, reading),
    }
    if !lines.is_empty() {
        scan::scan(call, &lines.join("\n"), reading);
    }
}

struct Shape<'a> {
    fields: Fields<'a>,
    /// Words of the name of the tool.
    name: Vec<String>,
    home: &'a str,
}

impl Shape<'_> {
    fn named(&self, words: &[&str]) -> bool {
        self.name.iter().any(|it| words.contains(&it.as_str()))
    }

    /// The command lines.
    fn commands(&self) -> Vec<String> {
        let language = LANGUAGES.iter().find(|it| self.named(&[it.0])).map(|it| it.1);
        let mut lines = Vec::new();
        for (key, value) in self.fields.of(&COMMANDS) {
            let many = key == "commands" || value.as_array().is_some_and(|it| holds_lines(it));
            let given: Vec<String> = match value.is_array() && !many {
                true => vec![texts(value).map(quoted).collect::<Vec<_>>().join(" ")],
                false => texts(value).map(str::to_owned).collect(),
            };
            let after: Vec<String> = match key {
                "script" => Vec::new(),
                _ => self.fields.lists(&ARGUMENTS).map(quoted).collect(),
            };
            for line in given.into_iter().filter(|it| !it.trim().is_empty()) {
                let is_line = after.is_empty();
                if is_line && !self.is_command(key, &line) {
                    continue;
                }
                lines.push(match language {
                    Some(program) => format!("{program} {}", quoted(&line)),
                    None if self.named(&["powershell", "pwsh"]) => powershell::as_shell(&line),
                    None if is_line => line,
                    None => format!("{line} {}", after.join(" ")),
                });
            }
        }
        lines
    }

    /// Whether a text is a command line. A single word may be the name of what the tool does itself, and a
    /// script may be of another language, unless the tool is called a shell.
    fn is_command(&self, key: &str, line: &str) -> bool {
        let of_other_language =
            || key == "script" && syntax(line).is_none_or(|it| it.root_node().has_error());
        self.named(&SHELLS) || !(verb::is_word(line) || of_other_language())
    }

    /// What is said to databases, as a shell has it run.
    fn statements(&self) -> Vec<String> {
        let searches = self.named(&SEARCHES) && !self.named(&DATABASES);
        let asked = self.fields.texts(&["query", "queries"]);
        let asked = asked.filter(|it| !searches && sql::is_sql(it));
        let said = self.fields.texts(&["sql"]).chain(asked);
        said.map(|it| format!("psql -c {}", quoted(it))).collect()
    }

    /// What is done with the paths.
    fn verb(&self) -> Verb {
        let said = self.fields.texts(&["command", "action", "operation", "op", "mode"]);
        let said: Vec<String> = said.filter(|it| verb::is_word(it)).flat_map(words).collect();
        let writes = || self.fields.of(&CONTENTS).next().is_some();
        match Verb::of(&said).or_else(|| Verb::of(&self.name)) {
            Some(Verb::Read) if writes() => Verb::Write,
            Some(verb) => verb,
            None if writes() || self.fields.of(&TEXTS).next().is_some() => Verb::Write,
            None => Verb::Read,
        }
    }

    /// Paths of some keys, the home put in.
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

    /// A command line with paths; nothing where there are none.
    fn line(&self, program: &str, paths: Vec<String>) -> Option<String> {
        let written: Vec<String> = paths.iter().map(|it| quoted(it)).collect();
        (!written.is_empty()).then(|| format!("{program} {}", written.join(" ")))
    }

    fn touch(&self, call: &mut Call, does: Use, reading: Reading<'_>) {
        let folder = Some(reading.around.folder.as_str()).filter(|it| !it.is_empty());
        for path in self.paths(&PATHS) {
            let place = reading.around.known_place(&path, folder);
            let place = Place { glob: path.contains(['*', '?', '[']), ..place };
            call.files.push(FileUse { does, place, program: None });
        }
    }

    /// Text that is written into files.
    fn written(&self) -> Vec<String> {
        let keys: Vec<&str> =
            CONTENTS.into_iter().chain(TEXTS).filter(|it| *it != "oldstring").collect();
        self.fields.texts(&keys).map(str::to_owned).collect()
    }
}

/// Whether a list holds lines, and not the words of one.
fn holds_lines(items: &[Json]) -> bool {
    let first = items.first().and_then(Json::as_str).unwrap_or_default();
    first.trim().contains(char::is_whitespace)
}
