//! How a tool for files changes their texts: the edits in its input, applied to the text of a file.
//!
//! Contains: the edits of each tool by the keys of its input, patches, cells of notebooks, and the lines that two texts
//! do not share.
//! Does not contain: reading files. What a command line writes into a file is unknown.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

use super::file_access::Access;
use super::files::patch_text;
use super::shape;
use super::tool_call::Call;
use crate::patch;

/// Longest text behind an edit, in bytes. An edit can make a text longer many times over.
const TEXT_MAX: usize = 4 * 1024 * 1024;
/// Bytes that the edits of one file search, and lines that the hunks of a patch compare. What needs more is unknown.
const STEPS_MAX: usize = 64 * 1024 * 1024;

/// How a call changes the text of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentChange {
    /// The file gets this text.
    Whole(String),
    /// Texts are replaced, in order.
    Replace(Vec<TextReplacement>),
    /// A text is inserted behind this many lines.
    Insert { behind: usize, text: String },
    /// A cell of a notebook changes.
    Cell(CellChange),
    /// A patch changes the file.
    Patch(FileHunks),
    /// The file is deleted.
    Gone,
    /// The file does not change.
    Nothing,
    /// How the file changes cannot be known.
    Unknown,
}

/// One text that an edit replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextReplacement {
    old: String,
    new: String,
    /// How many places have the text.
    times: Times,
}

/// How many places of a file an edit replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Times {
    One,
    /// Exactly this many.
    Count(usize),
    All,
}

/// One cell of a notebook that a call changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellChange {
    /// Id of the cell, or `cell-3`.
    id: String,
    /// Number of the cell from 0, if the call names it.
    number: Option<usize>,
    mode: CellMode,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellMode {
    Replace,
    Insert,
    Delete,
}

/// The hunks of a patch for one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileHunks {
    /// The file whose text the patch changes, if it moves the file.
    pub from: Option<String>,
    /// Whether the patch creates the file.
    is_new: bool,
    hunks: Vec<Hunk>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Hunk {
    /// Line behind which the hunk begins. Can be empty.
    behind: String,
    old: Vec<String>,
    new: Vec<String>,
}

/// The lines that a change adds to a text, and those that it removes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedLines {
    pub added: Vec<String>,
    pub removed: Vec<String>,
}

/// Keys of texts by their meaning, normalized by [`shape::normal`].
const OLD: [&str; 5] = ["oldstring", "oldstr", "oldtext", "search", "oldcontent"];
const NEW: [&str; 6] = ["newstring", "newstr", "newtext", "replace", "replacement", "newcontent"];
const WHOLE: [&str; 6] = ["content", "contents", "filetext", "newcontent", "text", "data"];
const ALL: [&str; 4] = ["replaceall", "changeall", "allowmultiple", "allowmultiplereplacements"];
const COUNTS: [&str; 1] = ["expectedreplacements"];
const INSERTED: [&str; 4] = ["newstr", "inserttext", "newstring", "text"];
/// Words in the names of tools that give a file its whole text.
const WRITERS: [&str; 7] = ["write", "writefile", "create", "save", "overwrite", "put", "replace"];
/// Words in the names of tools that change a part of a file.
const PART_WRITERS: [&str; 6] = ["append", "insert", "patch", "edit", "modify", "line"];
/// Values of `mode` that give a file its whole text.
const WHOLE_MODES: [&str; 5] = ["write", "rewrite", "overwrite", "create", "w"];

impl Call {
    /// Returns how the call changes the texts of files, by their paths as the input names them. A file that the call
    /// changes and that is not in the map changes in an unknown way.
    #[must_use]
    pub fn text_changes(&self, input: &Json, is_listed: bool) -> BTreeMap<String, ContentChange> {
        let patched = file_hunks(patch_text(input));
        if !patched.is_empty() {
            return patched;
        }
        let own = self.files.iter().filter(|it| it.program.is_none() && it.does == Access::Write);
        let paths: BTreeSet<&str> = own.map(|it| it.place.written.as_str()).collect();
        let (Some(path), 1) = (paths.first(), paths.len()) else { return BTreeMap::new() };
        let Some(fields) = input.as_object() else { return BTreeMap::new() };
        let fields = EditInput::new(fields);
        let change = fields.change(&shape::words(&self.tool), is_listed);
        change.into_iter().map(|it| ((*path).to_owned(), it)).collect()
    }
}

/// The fields of an input, with normalized keys.
struct EditInput<'a>(BTreeMap<String, &'a Json>);

impl<'a> EditInput<'a> {
    fn new(fields: &'a Map<String, Json>) -> Self {
        Self(fields.iter().map(|(key, value)| (shape::normal(key), value)).collect())
    }

    fn get(&self, key: &str) -> Option<&'a Json> {
        self.0.get(key).copied().filter(|it| !it.is_null())
    }

    fn text(&self, keys: &[&str]) -> Option<&'a str> {
        keys.iter().find_map(|it| self.get(it)?.as_str())
    }

    fn number(&self, keys: &[&str]) -> Option<usize> {
        let number = keys.iter().find_map(|it| self.get(it)?.as_u64())?;
        usize::try_from(number).ok()
    }

    fn is_set(&self, keys: &[&str]) -> bool {
        keys.iter().any(|it| self.get(it).is_some_and(|it| it.as_bool() == Some(true)))
    }

    /// Returns the change of the one file that the input names. `None` if it is unknown.
    fn change(&self, tool: &[String], is_listed: bool) -> Option<ContentChange> {
        match self.text(&["command"]) {
            Some("view") => return Some(ContentChange::Nothing),
            Some("undo_edit") => return None,
            Some(_) | None => {}
        }
        if self.get("notebookpath").is_some() || self.get("newsource").is_some() {
            return self.cell().map(ContentChange::Cell);
        }
        if let Some(edits) = self.get("edits") {
            let edits =
                edits.as_array()?.iter().map(|it| EditInput::new(it.as_object()?).replacement());
            return edits.collect::<Option<Vec<_>>>().map(ContentChange::Replace);
        }
        if let Some(behind) = self.number(&["insertline"]) {
            let text = self.text(&INSERTED)?.to_owned();
            return Some(ContentChange::Insert { behind, text });
        }
        if self.text(&OLD).is_some() {
            return self.replacement().map(|it| ContentChange::Replace(vec![it]));
        }
        let is_one_of = |words: &[&str]| tool.iter().any(|it| words.contains(&it.as_str()));
        let is_whole = is_listed || (is_one_of(&WRITERS) && !is_one_of(&PART_WRITERS));
        let mode = self.text(&["mode"]).is_none_or(|it| WHOLE_MODES.contains(&it));
        let is_part = ["append", "offset", "position", "startline", "line", "range"];
        let is_part =
            is_part.iter().any(|it| self.get(it).is_some_and(|it| *it != Json::Bool(false)));
        (is_whole && mode && !is_part)
            .then(|| self.text(&WHOLE).map(str::to_owned))?
            .map(ContentChange::Whole)
    }

    fn replacement(&self) -> Option<TextReplacement> {
        let (old, new) = (self.text(&OLD)?.to_owned(), self.text(&NEW)?.to_owned());
        let times = match self.number(&COUNTS) {
            _ if self.is_set(&ALL) => Times::All,
            Some(count) if count > 1 => Times::Count(count),
            Some(_) | None => Times::One,
        };
        Some(TextReplacement { old, new, times })
    }

    fn cell(&self) -> Option<CellChange> {
        let mode = match self.text(&["editmode"]) {
            Some("insert") => CellMode::Insert,
            Some("delete") => CellMode::Delete,
            Some("replace") | None => CellMode::Replace,
            Some(_) => return None,
        };
        let text = self.text(&["newsource"]).unwrap_or_default().to_owned();
        let id = self.text(&["cellid"]).unwrap_or_default().to_owned();
        Some(CellChange { id, number: self.number(&["cellnumber"]), mode, text })
    }
}

impl ContentChange {
    /// Returns the text of a file behind the change. `None` if it cannot be known, such as for an edit whose text the
    /// file does not have.
    #[must_use]
    pub fn apply(&self, before: &str) -> Option<String> {
        match self {
            Self::Whole(text) => Some(plain(text)),
            Self::Replace(all) => replace(all, before),
            Self::Insert { behind, text } => insert(before, *behind, &plain(text)),
            Self::Cell(_) | Self::Unknown => None,
            Self::Patch(hunks) => hunks.apply(before),
            Self::Gone => Some(String::new()),
            Self::Nothing => Some(before.to_owned()),
        }
    }

    /// Returns the lines that the change adds and removes. `None` if they cannot be known.
    #[must_use]
    pub fn lines(&self, before: &str) -> Option<ChangedLines> {
        if let Self::Cell(cell) = self {
            let old = cell.old(before)?;
            let new = if cell.mode == CellMode::Delete { "" } else { &cell.text };
            return Some(ChangedLines::between(&old, &plain(new)));
        }
        Some(ChangedLines::between(before, &self.apply(before)?))
    }
}

/// Returns a text whose lines end with `\n` alone.
#[must_use]
pub fn plain(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Applies replacements, in order.
fn replace(all: &[TextReplacement], before: &str) -> Option<String> {
    let (mut text, mut steps) = (before.to_owned(), 0_usize);
    for it in all {
        steps = steps.saturating_add(text.len());
        text = it.apply(&text).filter(|_| steps <= STEPS_MAX)?;
    }
    Some(text)
}

impl TextReplacement {
    fn apply(&self, text: &str) -> Option<String> {
        let (old, new) = (plain(&self.old), plain(&self.new));
        if old.is_empty() {
            return text.is_empty().then_some(new);
        }
        let count = text.matches(&old).count();
        let is_done = match self.times {
            Times::One => count == 1,
            Times::Count(wanted) => count == wanted,
            Times::All => count > 0,
        };
        let length = count.saturating_mul(new.len()).saturating_add(text.len());
        (is_done && length <= TEXT_MAX).then(|| text.replace(&old, &new))
    }
}

fn insert(before: &str, behind: usize, text: &str) -> Option<String> {
    let mut lines: Vec<&str> = before.lines().collect();
    let at = (behind <= lines.len()).then_some(behind)?;
    lines.splice(at..at, text.lines());
    Some(lines.iter().map(|it| format!("{it}\n")).collect())
}

impl CellChange {
    /// Returns the text of the cell that the change replaces. `None` if the notebook has no such cell.
    fn old(&self, notebook: &str) -> Option<String> {
        let notebook: Json = serde_json::from_str(notebook).ok()?;
        if self.mode == CellMode::Insert {
            return Some(String::new());
        }
        let cells = notebook.get("cells")?.as_array()?;
        let has_id = |it: &&Json| it.get("id").and_then(Json::as_str) == Some(self.id.as_str());
        let by_number = || {
            let named = self.id.strip_prefix("cell-").and_then(|it| it.parse().ok());
            cells.get(self.number.or(named)?)
        };
        let by_id = cells.iter().find(has_id).filter(|_| !self.id.is_empty());
        let source = by_id.or_else(by_number)?.get("source")?;
        let parts = source.as_array().into_iter().flatten().filter_map(Json::as_str);
        Some(source.as_str().into_iter().chain(parts).collect())
    }
}

/// Returns the changes of a patch by file: of `apply_patch`, or a unified diff.
fn file_hunks(text: &str) -> BTreeMap<String, ContentChange> {
    let mut found = BTreeMap::new();
    let mut reader = PatchReader::default();
    for line in text.lines() {
        reader.read(line, &mut found);
    }
    reader.finish(&mut found);
    found
}

/// Reads a patch line by line.
#[derive(Default)]
struct PatchReader {
    path: String,
    hunks: FileHunks,
    is_delete: bool,
    /// Path behind `---` of a unified diff.
    before: String,
    /// Whether the patch is one of `apply_patch`, in which `---` is a removed line.
    is_marked: bool,
    /// Lines of the old and of the new text that the hunk of a unified diff still has.
    left: (usize, usize),
}

impl PatchReader {
    fn read(&mut self, line: &str, found: &mut BTreeMap<String, ContentChange>) {
        if self.left != (0, 0) {
            return self.line(line);
        }
        if let Some((verb, path)) = patch::header(line.trim()) {
            self.is_marked = true;
            if verb == "Move to" {
                self.hunks.from = Some(std::mem::replace(&mut self.path, path.to_owned()));
                return;
            }
            self.finish(found);
            path.clone_into(&mut self.path);
            self.hunks.is_new = verb == "Add File";
            self.is_delete = verb == "Delete File";
        } else if let Some(path) = line.strip_prefix("--- ").filter(|_| !self.is_marked) {
            self.finish(found);
            self.before = in_header(path, "a/");
        } else if let Some(path) = line.strip_prefix("+++ ").filter(|_| !self.is_marked) {
            let path = in_header(path, "b/");
            self.is_delete = path == "/dev/null";
            self.hunks.is_new = self.before == "/dev/null";
            self.path = if self.is_delete { std::mem::take(&mut self.before) } else { path };
        } else if !self.path.is_empty() {
            self.line(line);
        }
    }

    fn line(&mut self, line: &str) {
        if let Some(behind) = line.strip_prefix("@@").filter(|_| self.left == (0, 0)) {
            let numbers = if self.is_marked { None } else { hunk_size(behind) };
            self.left = numbers.unwrap_or_default();
            // The text behind the numbers is only a comment.
            let behind = if numbers.is_some() { "" } else { behind.trim() };
            self.hunks.hunks.push(Hunk { behind: behind.to_owned(), ..Hunk::default() });
            return;
        }
        if line.starts_with("*** ") || line.starts_with('\\') {
            return;
        }
        if self.hunks.hunks.is_empty() {
            self.hunks.hunks.push(Hunk::default());
        }
        let Some(hunk) = self.hunks.hunks.last_mut() else { return };
        let (sign, text) = line.split_at_checked(1).unwrap_or((" ", ""));
        if matches!(sign, "-" | " ") {
            hunk.old.push(text.to_owned());
            self.left.0 = self.left.0.saturating_sub(1);
        }
        if matches!(sign, "+" | " ") {
            hunk.new.push(text.to_owned());
            self.left.1 = self.left.1.saturating_sub(1);
        }
    }

    /// Adds the file that was read last.
    fn finish(&mut self, found: &mut BTreeMap<String, ContentChange>) {
        let is_marked = self.is_marked;
        let Self { path, hunks, is_delete, .. } = std::mem::take(self);
        self.is_marked = is_marked;
        if path.is_empty() {
            return;
        }
        let mut add = |path: String, change: ContentChange| {
            if let Some(known) = found.get_mut(&path) {
                *known = ContentChange::Unknown;
            } else {
                found.insert(path, change);
            }
        };
        if let Some(from) = hunks.from.clone() {
            add(from, ContentChange::Gone);
        }
        add(path, if is_delete { ContentChange::Gone } else { ContentChange::Patch(hunks) });
    }
}

/// Returns the number of old and new lines in the header of a hunk: ` -1,4 +1,5 @@`. `None` for another text.
fn hunk_size(header: &str) -> Option<(usize, usize)> {
    let mut words = header.split_whitespace();
    let mut size = |sign: char| {
        let range = words.next()?.strip_prefix(sign)?;
        range.split_once(',').map_or(Some(1), |it| it.1.parse().ok())
    };
    Some((size('-')?, size('+')?))
}

/// Returns the path in a header of a unified diff. A timestamp may follow it.
fn in_header(line: &str, prefix: &str) -> String {
    let path = line.split('\t').next().unwrap_or(line).trim();
    path.strip_prefix(prefix).unwrap_or(path).to_owned()
}

impl FileHunks {
    fn apply(&self, before: &str) -> Option<String> {
        if self.is_new {
            let added = self.hunks.iter().flat_map(|it| &it.new);
            return Some(added.map(|it| format!("{it}\n")).collect());
        }
        let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
        let (mut from, mut steps) = (0, 0_usize);
        for hunk in &self.hunks {
            let compared = lines.len().saturating_mul(hunk.old.len().max(1));
            steps = steps.saturating_add(compared);
            if steps > STEPS_MAX {
                return None;
            }
            let start = if hunk.behind.is_empty() {
                from
            } else {
                let rest = lines.get(from..)?.iter();
                from + rest.into_iter().position(|it| it.trim() == hunk.behind)? + 1
            };
            let at = match hunk.old.is_empty() {
                true if hunk.behind.is_empty() => lines.len(),
                true => start,
                false => find(&lines, &hunk.old, start)?,
            };
            lines.splice(at..at + hunk.old.len(), hunk.new.iter().cloned());
            from = at + hunk.new.len();
        }
        Some(lines.iter().map(|it| format!("{it}\n")).collect())
    }
}

/// Returns where lines occur in others from a position on: exactly, or with other spaces at their ends.
fn find(lines: &[String], wanted: &[String], from: usize) -> Option<usize> {
    let alike: [fn(&str) -> &str; 3] = [|it| it, str::trim_end, str::trim];
    alike.iter().find_map(|alike| {
        let same =
            |window: &[String]| window.iter().zip(wanted).all(|it| alike(it.0) == alike(it.1));
        let at = lines.get(from..)?.windows(wanted.len()).position(same)?;
        Some(from + at)
    })
}

impl ChangedLines {
    /// Compares two texts. A line counts as added if the second text has it more often, wherever it is. Spaces and a comma
    /// at the end of a line do not count: the line before a new item of a list gets one.
    #[must_use]
    pub fn between(before: &str, after: &str) -> Self {
        Self { added: missing(after, before), removed: missing(before, after) }
    }
}

/// Returns the lines of a text that another one does not have, or does not have as often.
fn missing(text: &str, other: &str) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in other.lines() {
        *counts.entry(bare(line)).or_default() += 1;
    }
    let is_missing = |line: &&str| match counts.get_mut(bare(line)) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        Some(_) | None => !bare(line).is_empty(),
    };
    text.lines().filter(is_missing).map(str::to_owned).collect()
}

/// Returns a line without what does not count at its end.
fn bare(line: &str) -> &str {
    let line = line.trim_end();
    line.strip_suffix(',').unwrap_or(line).trim_end()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{AnalysisContext, CallEnvironment, NoDisk, ProgramDatabase};
    use super::*;
    use crate::tool_vocabulary::{ToolEffect, ToolWords};
    use crate::vocabulary::{ShellVocabulary, ValueOptions, Wrapper};
    use policyd_yaml::rows::Rows;

    #[derive(Debug, Default)]
    struct Tools(Rows<Wrapper>, Rows<ValueOptions>, ToolWords);

    impl ShellVocabulary for Tools {
        fn wrappers(&self) -> &Rows<Wrapper> {
            &self.0
        }

        fn value_options(&self) -> &Rows<ValueOptions> {
            &self.1
        }

        fn is_task_runner(&self, _: &str) -> bool {
            false
        }

        fn is_edit_tool(&self, name: &str) -> bool {
            ["Write", "Edit", "MultiEdit", "NotebookEdit", "apply_patch"].contains(&name)
        }

        fn is_shell_tool(&self, name: &str) -> bool {
            name == "Bash"
        }

        fn tool_words(&self) -> &ToolWords {
            &self.2
        }

        fn tool_effects(&self) -> &[ToolEffect] {
            &[]
        }

        fn database_clients(
            &self,
        ) -> &policyd_yaml::rows::Rows<crate::tool_vocabulary::DatabaseClient> {
            unreachable!("no text runs a program")
        }
    }

    /// Returns the text of `a` behind a call, and the lines that it adds and removes. `None` if they are unknown.
    fn changed(tool: &str, input: Json, before: &str) -> (Option<String>, Option<ChangedLines>) {
        let around = CallEnvironment::new("/w", "/w", "/home/ada", &[]);
        let verbs = |verbs: &str| verbs.split(' ').map(str::to_owned).collect();
        let words = ToolWords {
            write_verbs: verbs("append create edit insert write"),
            path_keys: verbs("path paths filepath"),
            content_keys: verbs("content edits newtext"),
            ..ToolWords::default()
        };
        let lens = Tools(Rows::default(), Rows::default(), words);
        let knowledge = ProgramDatabase::default();
        let context =
            AnalysisContext { lens: &lens, knowledge: &knowledge, around: &around, disk: &NoDisk };
        let call = Call::read(tool, &input, context);
        let changes = call.text_changes(&input, lens.is_edit_tool(tool));
        let change = changes.get("a").unwrap_or(&ContentChange::Unknown);
        (change.apply(before), change.lines(before))
    }

    fn edit(old: &str, new: &str) -> Json {
        json!({"file_path": "a", "old_string": old, "new_string": new})
    }

    #[test]
    fn the_text_behind_an_edit_is_that_of_the_client() {
        let twice =
            json!({"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": true});
        let many = json!({"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"},
            {"old_string": "y", "new_string": "z"}]});
        let counted = json!({"file_path": "a", "old_string": "x", "new_string": "y", "expected_replacements": 2});
        for (tool, input, before, after) in [
            ("Write", json!({"file_path": "a", "content": "new\r\n"}), "old", Some("new\n")),
            ("Write", json!({"file_path": "a"}), "old", None),
            ("Edit", edit("x", "y"), "1 x 2", Some("1 y 2")),
            ("Edit", edit("x", "y"), "x x", None),
            ("Edit", edit("q", "y"), "x", None),
            ("Edit", edit("", "y"), "", Some("y")),
            ("Edit", edit("", "y"), "x", None),
            ("Edit", twice, "x x", Some("y y")),
            ("Edit", counted.clone(), "x x", Some("y y")),
            ("Edit", counted, "x", None),
            ("MultiEdit", many, "x", Some("z")),
            (
                "Edit",
                json!({"path": "a", "insert_line": 1, "insert_text": "b"}),
                "a\nc",
                Some("a\nb\nc\n"),
            ),
            ("Edit", json!({"command": "view", "path": "a"}), "x", Some("x")),
            ("Edit", json!({"file_path": "a", "edits": [{"old_string": "x"}]}), "x", None),
        ] {
            assert_eq!(changed(tool, input.clone(), before).0.as_deref(), after, "{tool} {input}");
        }
    }

    #[test]
    fn a_tool_of_a_server_writes_by_its_keys() {
        let write = json!({"path": "a", "content": "new"});
        let edits = json!({"path": "a", "edits": [{"oldText": "x", "newText": "y"}]});
        for (tool, input, after) in [
            ("mcp__fs__write_file", write.clone(), Some("new")),
            ("mcp__fs__create_file", write.clone(), Some("new")),
            ("mcp__fs__edit_file", edits, Some("y")),
            ("mcp__fs__append_to_file", write.clone(), None),
            ("mcp__fs__insert_lines", write, None),
            ("mcp__fs__write_file", json!({"path": "a", "content": "n", "mode": "append"}), None),
            (
                "mcp__fs__write_file",
                json!({"path": "a", "content": "n", "mode": "rewrite"}),
                Some("n"),
            ),
            ("mcp__fs__write_file", json!({"path": "a", "content": "n", "append": true}), None),
            ("mcp__fs__write_files", json!({"paths": ["a", "b"], "content": "n"}), None),
        ] {
            assert_eq!(changed(tool, input.clone(), "x").0.as_deref(), after, "{tool} {input}");
        }
    }

    #[test]
    fn a_patch_changes_the_lines_that_it_names() {
        let begun =
            |body: &str| json!({"input": format!("*** Begin Patch\n{body}*** End Patch\n")});
        let before = "fn a() {\n    one();\n}\n\nfn b() {\n    one();\n}\n";
        let second = begun("*** Update File: a\n@@ fn b() {\n-    one();\n+    two();\n }\n");
        let after = changed("apply_patch", second, before).0;
        assert_eq!(after.as_deref(), Some("fn a() {\n    one();\n}\n\nfn b() {\n    two();\n}\n"));
        for (body, before, after) in [
            ("*** Add File: a\n+x\n+--- y\n", "", Some("x\n--- y\n")),
            ("*** Update File: a\n@@\n--- x\n+-- y\n", "-- x\n", Some("-- y\n")),
            ("*** Update File: a\n@@\n-q\n+y\n", "x\n", None),
            ("*** Update File: a\n@@ q\n-x\n+y\n", "x\n", None),
            ("*** Delete File: a\n", "x\n", Some("")),
            ("*** Update File: b\n*** Move to: a\n@@\n-x\n+y\n", "x\n", Some("y\n")),
            ("*** Update File: a\n@@\n-x\n+y\n*** Update File: a\n@@\n-y\n+z\n", "x\n", None),
        ] {
            assert_eq!(changed("apply_patch", begun(body), before).0.as_deref(), after, "{body}");
        }
        let unified = "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@ fn\n x\n--- y\n+-- z\n w\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-1\n+2\n";
        let after = changed("apply_patch", json!({"patch": unified}), "x\n-- y\nw\n").0;
        assert_eq!(after.as_deref(), Some("x\n-- z\nw\n"));
    }

    #[test]
    fn what_would_take_too_long_is_unknown() {
        let edit = json!({"old_string": "a", "new_string": "aaaaaaaa", "replace_all": true});
        let input = json!({"file_path": "a", "edits": vec![edit; 30]});
        assert_eq!(changed("MultiEdit", input, "a"), (None, None), "8^30 bytes");
        let edit = json!({"old_string": "b", "new_string": "b"});
        let input = json!({"file_path": "a", "edits": vec![edit; 1_000]});
        let long = format!("{}b", "a".repeat(100_000));
        assert_eq!(changed("MultiEdit", input, &long).0, None);
        let hunk = format!("@@\n{}-b\n+c\n", " a\n".repeat(20_000));
        let patch = format!("*** Begin Patch\n*** Update File: a\n{hunk}*** End Patch");
        let patch = json!({"patch": patch});
        assert_eq!(changed("apply_patch", patch, &"a\n".repeat(50_000)).0, None);
    }

    #[test]
    fn lines_are_added_wherever_they_are() {
        let lines = |before: &str, after: &str| {
            let ChangedLines { added, removed } = ChangedLines::between(before, after);
            (added.join("|"), removed.join("|"))
        };
        let of = |added: &str, removed: &str| (added.to_owned(), removed.to_owned());
        assert_eq!(lines("a\nb\n", "b\n\na\n"), of("", ""));
        assert_eq!(lines("\"a\": 1\n", "\"a\": 1,\n\"b\": 2\n"), of("\"b\": 2", ""));
        assert_eq!(lines("a\n", "a\na\n"), of("a", ""));
        assert_eq!(lines("  a\n", "a\n"), of("a", "  a"));
    }

    #[test]
    fn a_cell_is_found_by_its_id_or_number() {
        let notebook =
            json!({"cells": [{"id": "x", "source": ["one\n", "two"]}, {"source": "three"}]})
                .to_string();
        let lines = |mut input: Json| {
            input["notebook_path"] = "a".into();
            let (after, lines) = changed("NotebookEdit", input, &notebook);
            assert_eq!(after, None, "how the client writes the notebook is unknown");
            lines.map(|it| (it.added.join("|"), it.removed.join("|")))
        };
        let of = |added: &str, removed: &str| Some((added.to_owned(), removed.to_owned()));
        assert_eq!(lines(json!({"cell_id": "x", "new_source": "one\nnew"})), of("new", "two"));
        assert_eq!(lines(json!({"cell_id": "cell-1", "new_source": "new"})), of("new", "three"));
        assert_eq!(
            lines(json!({"cell_number": 1, "edit_mode": "delete", "new_source": ""})),
            of("", "three")
        );
        assert_eq!(lines(json!({"edit_mode": "insert", "new_source": "new"})), of("new", ""));
        assert_eq!(lines(json!({"cell_id": "q", "new_source": "new"})), None);
    }
}
