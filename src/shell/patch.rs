//! The patch text of `apply_patch`: the files that it changes, with their removed and added lines.

/// One file of a patch.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FilePatch<'a> {
    pub path: &'a str,
    pub old: String,
    pub new: String,
    /// Whether the patch creates or replaces the whole file.
    pub whole: bool,
}

/// Returns the files of a patch in order. Text of an unknown format has none.
pub fn files(patch: &str) -> Vec<FilePatch<'_>> {
    let mut files: Vec<FilePatch<'_>> = Vec::new();
    for line in patch.lines() {
        if let Some((verb, path)) = header(line) {
            let whole = verb != "Update File";
            files.push(FilePatch { path, whole, ..FilePatch::default() });
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        let (text, taken, put) = match line.split_at_checked(1) {
            Some(("-", text)) => (text, true, false),
            Some(("+", text)) => (text, false, true),
            _ => continue,
        };
        for (side, wanted) in [(&mut file.old, taken), (&mut file.new, put)] {
            if wanted {
                side.push_str(text);
                side.push('\n');
            }
        }
    }
    files
}

/// Returns the operation and the path of a header line of a patch. Operations: `Add File`, `Update
/// File`, `Delete File`, `Move to`.
pub(crate) fn header(line: &str) -> Option<(&str, &str)> {
    let (verb, path) = line.strip_prefix("*** ")?.split_once(": ")?;
    let known = ["Update File", "Add File", "Delete File", "Move to"].contains(&verb);
    known.then_some((verb, path.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_patch() {
        let patch = "*** Begin Patch\n*** Update File: a.rs\n@@\n x\n-old\n+new\n*** Add File: b.rs\n\
                     +one\n+two\n*** Delete File: c.rs\n*** End Patch\n";
        let found = files(patch);
        let show: Vec<_> =
            found.iter().map(|f| (f.path, f.old.as_str(), f.new.as_str(), f.whole)).collect();
        assert_eq!(
            show,
            [
                ("a.rs", "old\n", "new\n", false),
                ("b.rs", "", "one\ntwo\n", true),
                ("c.rs", "", "", true)
            ]
        );
        assert!(files("no patch\n+x").is_empty());
    }
}
