//! Snapshot files in insta's format, so that `cargo insta review` reads them: a header between two
//! lines `---`, and the content below.

/// Directory of the snapshots, beside the case files.
pub const FOLDER: &str = "snapshots";

/// Returns the file name of a step's snapshot: `<file>__<case>.snap`, with the number of the step
/// if the case has several.
#[must_use]
pub fn name(file: &str, case: &str, step: Option<usize>) -> String {
    let plain = |text: &str| {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|it| !it.is_empty());
        words.collect::<Vec<_>>().join("_").to_lowercase()
    };
    let step = step.map(|it| format!("_step_{it}")).unwrap_or_default();
    format!("{}__{}{step}.snap", plain(file.trim_end_matches(".yaml")), plain(case))
}

/// Formats a snapshot file. `source` is the case file, `expression` the name of the case.
#[must_use]
pub fn write(source: &str, expression: &str, content: &str) -> String {
    // A JSON string is a valid YAML string.
    let expression = serde_json::Value::from(expression);
    format!("---\nsource: {source}\nexpression: {expression}\n---\n{}\n", content.trim_end())
}

/// Returns the content below the header, or the whole text without a header.
#[must_use]
pub fn read(text: &str) -> &str {
    let body = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    body.map_or(text, |(_, content)| content)
}

/// Returns whether two contents are equal. Like insta, ignores whitespace at the end.
#[must_use]
pub fn same(one: &str, other: &str) -> bool {
    let lines = |text: &str| text.trim_end().replace("\r\n", "\n");
    lines(one) == lines(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let text = write("policies/tests/a.yaml", "say \"no\": twice", "one\n---\ntwo\n\n");
        assert_eq!(text.lines().nth(2), Some(r#"expression: "say \"no\": twice""#));
        assert!(same(read(&text), "one\n---\ntwo"));
        assert!(!same(read(&text), "one\n---\ntwo!"));
        assert_eq!(read("no header"), "no header");
    }

    #[test]
    fn names_are_plain_words() {
        assert_eq!(name("a b.yaml", "What? A `case`!", None), "a_b__what_a_case.snap");
        assert_eq!(name("a.yaml", "x", Some(2)), "a__x_step_2.snap");
    }
}
