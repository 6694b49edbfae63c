//! What changed in the files of a pack, as lines for the user.

use std::collections::{BTreeMap, BTreeSet};

use similar::TextDiff;

use policyd_base::limits::TRUST_DIFF_LINES_MAX;
use policyd_base::text::counted;
use policyd_record::paint::on_one_line;

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 2;

/// Returns the differences of files by their names, control characters escaped. Long ones are cut, and say so.
#[must_use]
pub fn unified(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let text = |files: &BTreeMap<String, String>, name: &String| -> String {
        files.get(name).cloned().unwrap_or_default()
    };
    let mut lines = Vec::new();
    for name in names {
        let (before, now) = (text(before, name), text(now, name));
        if before != now {
            let diff = TextDiff::from_lines(before.as_str(), now.as_str());
            let mut unified = diff.unified_diff();
            let text = unified.context_radius(CONTEXT_LINES).header(name, name).to_string();
            lines.extend(text.lines().map(on_one_line));
        }
    }
    let surplus = lines.len().saturating_sub(TRUST_DIFF_LINES_MAX);
    if surplus > 0 {
        lines.truncate(TRUST_DIFF_LINES_MAX);
        lines.push(format!("… {} not shown", counted(surplus, "more line")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(text: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("a.yaml".to_owned(), text.to_owned())])
    }

    #[test]
    fn changed_lines_are_shown_and_long_differences_are_cut() {
        let lines = unified(&files("one\ntwo\n"), &files("one\n\u{1b}[2K\n"));
        assert_eq!(lines.get(..2).unwrap(), ["--- a.yaml", "+++ a.yaml"]);
        assert!(
            lines.contains(&"-two".to_owned()) && lines.iter().all(|it| !it.contains('\u{1b}'))
        );
        assert!(unified(&files("one\n"), &files("one\n")).is_empty());
        let removed = unified(&files("one\n"), &BTreeMap::new());
        assert!(removed.contains(&"-one".to_owned()), "{removed:?}");
        let long = unified(&files(""), &files(&"x\n".repeat(1000)));
        assert_eq!(long.len(), TRUST_DIFF_LINES_MAX + 1);
        assert!(long.last().unwrap().contains("not shown"));
    }
}
