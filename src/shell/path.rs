//! Operations on the text of paths. None of them reads the disk or resolves links.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

/// Converts a path to the form that shells use. Windows paths become Git Bash paths: `C:\a\b`
/// becomes `/c/a/b`, `\\host\a` becomes `//host/a`, also behind the prefix `\\?\` of the system. Other paths do not change.
#[must_use]
pub fn in_shell(path: &str) -> Cow<'_, str> {
    if let Some(rest) = [r"\\?\", r"\\.\"].iter().find_map(|it| path.strip_prefix(it)) {
        return match rest.strip_prefix(r"UNC\") {
            Some(share) => format!("//{}", share.replace('\\', "/")).into(),
            None => in_shell(rest).into_owned().into(),
        };
    }
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

/// Joins a directory and a file name.
#[must_use]
pub fn in_folder(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}

/// Removes `.` and `..` from a path.
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
            (r"\\?\C:\Users\ada\.env", "/c/Users/ada/.env"),
            ("//./etc/passwd", "//./etc/passwd"),
            (r"\\?\UNC\host\share\x", "//host/share/x"),
            ("/home/ada", "/home/ada"),
            (r"a\b", r"a\b"),
            ("C:x", "C:x"),
            ("", ""),
        ] {
            assert_eq!(in_shell(path), expected, "{path}");
        }
    }
}
