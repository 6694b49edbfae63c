//! Unexplained changes: files changed in a turn whose output shows no tool call. The checks of a
//! claim read facts about tool calls, so they do not cover such a turn.

use serde::{Deserialize, Serialize};

/// Number of consecutive claims that are rejected only because of such changes before the run ends.
pub const CLAIMS_MAX: u32 = 3;
/// Maximum number of stored paths.
const KEPT: usize = 100;
/// Maximum number of paths in a text.
const NAMED: usize = 3;

/// Effect of unseen changes if nothing else contradicts a claim.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnseenChanges {
    /// The claim is refused, and the run goes on; the third such claim in a row ends it.
    #[default]
    Continue,
    /// A human is asked (`HUMAN_REVIEW_NEEDED`).
    Human,
    /// The run ends.
    End,
}

impl UnseenChanges {
    /// Names in `run.yaml`.
    pub const NAMES: &[&str] = &["continue", "human", "end"];

    /// Finds a value by its name. `Continue` for any other text.
    #[must_use]
    pub fn find(name: &str) -> Self {
        match name {
            "human" => Self::Human,
            "end" => Self::End,
            _ => Self::Continue,
        }
    }
}

/// Returns the unexplained changes after a turn that changed `files`. A turn with a visible tool
/// call shows that the client can be observed, so the checks cover later changes.
#[must_use]
pub fn after(before: &[String], files: &[String], tools_seen: bool) -> Vec<String> {
    if tools_seen {
        return Vec::new();
    }
    let mut all: Vec<String> = before.iter().chain(files).cloned().collect();
    all.sort();
    all.dedup();
    all.truncate(KEPT);
    all
}

/// Describes the changes that could not be observed, as a clause.
#[must_use]
pub fn describe(files: &[String]) -> String {
    let count = match files.len() {
        1 => "1 file".to_owned(),
        KEPT => format!("{KEPT} or more files"),
        many => format!("{many} files"),
    };
    let more = if files.len() > NAMED { ", …" } else { "" };
    let names = files.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    format!(
        "{count} changed ({names}{more}), and no tool call was visible in the client's output, so the \
         checks could not verify them"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &str) -> Vec<String> {
        names.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn changes_add_up_until_a_tool_call_is_visible() {
        for (before, files, seen, wanted) in [
            ("", "", false, ""),
            ("", "b a", false, "a b"),
            ("a", "", false, "a"),
            ("a", "a c", false, "a c"),
            ("a", "b", true, ""),
        ] {
            assert_eq!(after(&of(before), &of(files), seen), of(wanted), "{before}, {files}");
        }
        let many: Vec<String> = (0..300).map(|it| it.to_string()).collect();
        assert_eq!(after(&[], &many, false).len(), KEPT);
    }

    #[test]
    fn the_text_names_what_could_not_be_seen() {
        let tail = ", and no tool call was visible in the client's output, so the checks could not verify them";
        assert_eq!(describe(&of("a.rs")), format!("1 file changed (a.rs){tail}"));
        assert_eq!(describe(&of("a b c d")), format!("4 files changed (a, b, c, …){tail}"));
    }
}
