//! Code without its comments: an edit that changes only comments needs no test.

use std::path::Path;

/// Marks of comments that go to the end of the line, by extensions of files.
const MARKS: [(&str, &[&str]); 3] = [
    ("#", &["py", "rb", "sh", "bash", "zsh", "pl", "pm", "r", "jl", "ex", "exs", "nim", "ps1"]),
    (
        "//",
        &[
            "js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "rs", "go", "java", "kt", "kts",
            "scala", "groovy", "c", "h", "cc", "cpp", "cxx", "hh", "hpp", "cs", "fs", "swift",
            "dart", "php", "zig", "sol",
        ],
    ),
    ("--", &["lua", "hs", "sql"]),
];
/// Beginnings of comments that programs read: doc tests, build tags, directives.
const READ: [&str; 7] = ["#!", "///", "//!", "//go:", "// +build", "//#", "# -*-"];
/// Marks of texts of several lines. A line within one is not a comment.
const TEXTS: [&str; 3] = ["\"\"\"", "'''", "`"];

/// Returns the lines of code that are not comments or blank. The text itself, if the comments of the language are not known,
/// or if the file can contain texts up to a word.
pub(super) fn without_comments(path: &Path, text: &str) -> String {
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    let known = MARKS.iter().find(|(_, extensions)| extensions.contains(&extension));
    let Some((mark, _)) = known.filter(|_| !text.contains("<<")) else { return text.to_owned() };
    let mut open: Option<&str> = None;
    let is_code = |line: &&str| {
        let start = line.trim_start();
        let is_read = READ.iter().any(|it| start.starts_with(it));
        let is_comment = open.is_none() && start.starts_with(mark) && !is_read;
        if !is_comment {
            open = after(line, open);
        }
        !(is_comment || open.is_none() && start.is_empty())
    };
    text.lines().filter(is_code).collect::<Vec<_>>().join("\n")
}

/// Returns the mark of the text of several lines that is open after a line.
fn after<'m>(line: &str, mut open: Option<&'m str>) -> Option<&'m str>
where
    'static: 'm,
{
    let mut rest = line;
    loop {
        let next = match open {
            Some(mark) => rest.find(mark).map(|at| (at, mark)),
            None => TEXTS.iter().filter_map(|it| Some((rest.find(it)?, *it))).min(),
        };
        let Some((at, mark)) = next else { return open };
        open = if open.is_some() { None } else { Some(mark) };
        rest = rest.get(at.saturating_add(mark.len())..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blank_lines_are_left_out_and_texts_are_not() {
        for (path, text, expected) in [
            ("a.py", "x = 1\n# a\n\n  # b\ny = 2\n", "x = 1\ny = 2"),
            ("a.py", "#!/usr/bin/env python3\nx = 1\n", "#!/usr/bin/env python3\nx = 1"),
            ("a.py", "t = \"\"\"\n# a\n\n\"\"\"\n# b\n", "t = \"\"\"\n# a\n\n\"\"\""),
            ("a.ts", "// a\nconst x = `\n// b\n`;\n", "const x = `\n// b\n`;"),
            ("a.rs", "// a\n/// ```\nfn f() {}\n", "/// ```\nfn f() {}"),
            ("a.go", "//go:build x\n// a\npackage a\n", "//go:build x\npackage a"),
            ("a.sh", "cat <<E\n# a\nE\n", "cat <<E\n# a\nE\n"),
            ("a.css", "# a\n", "# a\n"),
        ] {
            assert_eq!(without_comments(Path::new(path), text), expected, "{path}: {text}");
        }
    }
}
