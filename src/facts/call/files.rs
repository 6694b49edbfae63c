//! Files that tools name in their input, and the text that they would write.

use serde_json::Value as Json;

use super::place::{Place, Surroundings};
use super::{Call, Reading};
use crate::facts::fold::patch;

/// What is done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Its content is read.
    Reads,
    /// Its content is changed, or it is made.
    Writes,
    /// It is taken away.
    Deletes,
}

/// A file that a call would touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUse {
    /// What is done with it.
    pub does: Use,
    /// Where it is.
    pub place: Place,
    /// The program that does it; nothing, where it is the tool itself.
    pub program: Option<usize>,
}

/// A file whose patch a program would apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchFile {
    /// Where it is.
    pub path: String,
    /// The folder that the paths in it are taken from, as it was written; none, where they are taken
    /// from where the program runs.
    pub folder: Option<String>,
    /// The program that applies it.
    pub program: usize,
}

impl Call {
    /// Notes the files that a patch touches which is known by now.
    pub fn apply(&mut self, patch: &PatchFile, text: &str, around: &Surroundings) {
        let runs_in = self.programs.get(patch.program).and_then(|it| it.folder.clone());
        let (files, added) = patched(text);
        for (does, path) in files {
            let below = patch.folder.as_ref().map(|it| format!("{it}/")).unwrap_or_default();
            let place = around.known_place(&format!("{below}{path}"), runs_in.as_deref());
            self.files.push(FileUse { does, place, program: Some(patch.program) });
        }
        self.written.extend(added);
    }
}

/// Keys of tool inputs that hold the path of a file.
const PATH_KEYS: [&str; 6] =
    ["file_path", "notebook_path", "path", "filePath", "absolute_path", "pattern"];
/// Keys that hold text which is written.
const TEXT_KEYS: [&str; 6] =
    ["content", "new_string", "new_source", "newString", "text", "file_text"];
/// Keys that hold a patch.
const PATCH_KEYS: [&str; 3] = ["input", "patch", "command"];

/// Adds what a tool that reads or edits files would touch.
pub(super) fn add(call: &mut Call, input: &Json, reading: Reading<'_>) {
    let edits = reading.lens.is_edit_tool(&call.tool);
    let reads = reading.knowledge.read_tools.contains(&call.tool);
    let does = match (edits, reads) {
        (true, _) => Use::Writes,
        (false, true) => Use::Reads,
        (false, false) => return,
    };
    let around = reading.around;
    let folder = Some(around.folder.as_str()).filter(|it| !it.is_empty());
    let place = |path: &str| {
        let place = around.known_place(path, folder);
        Place { glob: path.contains(['*', '?', '[']), ..place }
    };
    let edits = input.get("edits").and_then(Json::as_array);
    for part in std::iter::once(input).chain(edits.into_iter().flatten()) {
        for key in PATH_KEYS {
            // The pattern of a search in texts is no path.
            let is_search = key == "pattern" && call.tool != "Glob";
            let path =
                part.get(key).and_then(Json::as_str).filter(|it| !it.is_empty() && !is_search);
            let place = path.map(place);
            call.files.extend(place.map(|place| FileUse { does, place, program: None }));
        }
        let texts = TEXT_KEYS.iter().filter_map(|it| part.get(*it).and_then(Json::as_str));
        if does == Use::Writes {
            call.written.extend(texts.map(str::to_owned));
        }
    }
    let patch = PATCH_KEYS.iter().find_map(|key| input.get(*key)).unwrap_or(input).as_str();
    let (files, added) = patched(patch.unwrap_or_default());
    for (does, path) in files {
        let file = FileUse { does, place: place(path), program: None };
        // The first one may be named beside the patch.
        if !call.files.contains(&file) {
            call.files.push(file);
        }
    }
    call.written.extend(added);
}

/// The path in a header of a patch, which may be followed by a time.
fn in_header(line: &str) -> &str {
    line.split('\t').next().unwrap_or(line).trim()
}

/// The files that a patch touches, and the text it adds.
pub(super) fn patched(text: &str) -> (Vec<(Use, &str)>, Option<String>) {
    let (mut files, mut added, mut before) = (Vec::new(), String::new(), "");
    for line in text.lines() {
        if let Some((verb, path)) = patch::header(line.trim()) {
            files.push((if verb == "Delete File" { Use::Deletes } else { Use::Writes }, path));
        } else if let Some(path) = line.strip_prefix("--- ").map(in_header) {
            before = path.strip_prefix("a/").unwrap_or(path);
        } else if let Some(path) = line.strip_prefix("+++ ").map(in_header) {
            files.push(match path {
                "/dev/null" => (Use::Deletes, before),
                path => (Use::Writes, path.strip_prefix("b/").unwrap_or(path)),
            });
        } else if let Some(path) = line.strip_prefix("rename from ") {
            files.push((Use::Deletes, path.trim()));
        } else if let Some(path) =
            line.strip_prefix("rename to ").or_else(|| line.strip_prefix("copy to "))
        {
            files.push((Use::Writes, path.trim()));
        } else if let Some(text) = line.strip_prefix('+') {
            added.push_str(text);
            added.push('\n');
        }
    }
    (files, Some(added).filter(|it| !it.is_empty()))
}
