//! The content of files before edits: `before-edits.log` beside the state of a session. One line per edit: the
//! checksums of the content and the path, separated by a tab.
//!
//! A cache of evidence: a line that is lost makes an edit count, never disappear. Nothing is synced.

use std::collections::BTreeMap;
use std::path::Path;

use policyd_world::World;

/// Name of the file in the directory of a session.
const FILE: &str = "before-edits.log";

/// Size in bytes from which nothing more is recorded.
const BYTES_MAX: usize = 256 * 1024;

/// Records the content of a file before an edit. A failure is ignored: see the module.
pub fn append(world: &dyn World, folder: &Path, path: &str, content: &str) {
    let file = folder.join(FILE);
    let is_full = world.stat(&file).is_ok_and(|it| it.length >= BYTES_MAX as u64);
    if !is_full && !path.contains(char::is_control) {
        let _ignored = world.append(&file, format!("{content}\t{path}\n").as_bytes());
    }
}

/// Returns the recorded contents of each file, oldest first. Empty if the record is full, because then
/// it is not complete.
#[must_use]
pub fn read(world: &dyn World, folder: &Path) -> BTreeMap<String, Vec<String>> {
    let mut contents: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let bytes = world.read(&folder.join(FILE), BYTES_MAX).unwrap_or_default();
    for line in String::from_utf8_lossy(&bytes).lines() {
        if let Some((content, path)) = line.split_once('\t') {
            contents.entry(path.to_owned()).or_default().push(content.to_owned());
        }
    }
    contents
}
