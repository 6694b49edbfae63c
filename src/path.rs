//! Paths by their text alone. Lives here: what needs no look at the disk, and knows of no links.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

/// A path as shells write it: one of Windows as its Git Bash does, `C:\a\b` as `/c/a/b` and `\\host\a` as
/// `//host/a`; any other as it is.
#[must_use]
pub fn in_shell(path: &str) -> Cow<'_, str> {
    let bytes = path.as_bytes();
    match bytes {
        [drive, b':', rest @ ..]
            if drive.is_ascii_alphabetic() && matches!(rest.first(), None | Some(b'/' | b'\\')) =>
        {
            let drive = char::from(drive.to_ascii_lowercase());
            format!("/{drive}{}", path.get(2..).unwrap_or_default().replace('\\', "/")).into()
        }
        [b'\\', b'\\', ..] => path.replace('\\', "/").into(),
        _ => path.into(),
    }
}

/// The path of a file in a folder.
#[must_use]
pub fn in_folder(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_windows_are_written_as_its_shell_does() {
        for (path, expected) in [
            (r"C:\Users\ada\.env", "/c/Users/ada/.env"),
            ("d:/work", "/d/work"),
            ("C:", "/c"),
            (r"\\host\share\x", "//host/share/x"),
            ("/home/ada", "/home/ada"),
            (r"a\b", r"a\b"),
            ("C:x", "C:x"),
            ("", ""),
        ] {
            assert_eq!(in_shell(path), expected, "{path}");
        }
    }
}
