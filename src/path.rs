//! Paths by their text alone. Lives here: what needs no look at the disk, and knows of no links.

use std::path::{Component, Path, PathBuf};

/// The path without `.` and `..`.
#[must_use]
pub fn normal(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}
