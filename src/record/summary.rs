//! What is carried over from one context into the next: a summary that never has more than
//! `SUMMARY_CHARS_MAX` characters, as in shipwright. Every section is there; one of which nothing is known says
//! so. Where not all fits, the newest is kept, and what was left out is counted.

pub mod known;

use crate::mask::mask;
use policyd_base::limits::{SUMMARY_CHARS_MAX, SUMMARY_FILES_MAX, SUMMARY_GOAL_CHARS_MAX};
use policyd_base::text::counted;

/// Heading of a summary in the next context, as in shipwright.
pub const HEADING: &str = "## Previous Session Context (Summarized)";
/// Text of a section without content.
const NONE: &str = "- none";
/// The same for files, as the seed has it.
const NO_CHANGES: &str = "- (no changes detected)";
/// Characters of one line.
const LINE_CHARS_MAX: usize = 160;
/// Room for the notice of what was left out.
const NOTICE_CHARS: usize = 80;

/// What is known of a session. Lists begin with what matters most, the newest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SummaryInput {
    /// The turn.
    pub iteration: u64,
    /// The goal in the words of the user.
    pub goal: String,
    /// Where it stands: one line for each thing.
    pub status: Vec<String>,
    /// Files that were changed.
    pub files: Vec<String>,
    /// What failed, and how.
    pub errors: Vec<String>,
    /// How the tests stand.
    pub tests: Vec<String>,
    /// What is still to be done.
    pub todos: Vec<String>,
    /// What was done or said last.
    pub progress: Vec<String>,
}

/// One section while lines are put into it.
struct SummarySection {
    heading: &'static str,
    nothing: &'static str,
    lines: Vec<String>,
    /// Lines taken so far.
    taken: usize,
    /// Whether the lines are in chronological order.
    chronological: bool,
}

/// The summary as markdown.
#[must_use]
pub fn markdown(known: &SummaryInput) -> String {
    let title = format!("# Context Summary (Auto-generated at iteration {})", known.iteration);
    let (short, _) = goal(&known.goal, SUMMARY_GOAL_CHARS_MAX);
    let head = |goal: &str| format!("{title}\n\n## Goal\n{goal}\n");
    let section = |heading, lines: &[String]| SummarySection {
        heading,
        nothing: NONE,
        lines: lines.iter().map(|it| bullet(it)).filter(|it| it.len() > 2).collect(),
        taken: 0,
        chronological: false,
    };
    let files = section("## Modified Files", &known.files);
    let mut sections = [
        section("## Session Status", &known.status),
        SummarySection { nothing: NO_CHANGES, ..files },
        section("## Recent Errors", &known.errors),
        section("## Test Status", &known.tests),
        section("## Open Todos", &known.todos),
        SummarySection { chronological: true, ..section("## Recent Progress", &known.progress) },
    ];
    let fixed: usize =
        sections.iter().map(|it| chars(it.heading) + chars(it.nothing) + "\n\n\n".len()).sum();
    let room = SUMMARY_CHARS_MAX.saturating_sub(chars(&head(&short)) + fixed + NOTICE_CHARS);
    // The goal takes the room that the sections leave.
    let spare = fill(&mut sections, room);
    let (goal, cut) = goal(&known.goal, SUMMARY_GOAL_CHARS_MAX + spare);
    let mut text = head(&goal);
    for it in &sections {
        text.push_str(&format!("\n{}\n{}\n", it.heading, it.text()));
    }
    let left_out: usize = sections.iter().map(|it| it.lines.len() - it.taken).sum();
    if left_out > 0 || cut {
        let goal = cut.then(|| "the goal was cut".to_owned());
        let lines = (left_out > 0).then(|| format!("{} left out", counted(left_out, "line")));
        let what: Vec<String> = goal.into_iter().chain(lines).collect();
        text.push_str(&format!(
            "\n[Truncated: {}; {SUMMARY_CHARS_MAX} characters at most]\n",
            what.join(", ")
        ));
    }
    // The room was reckoned with; this is the law, whatever was reckoned.
    text.chars().take(SUMMARY_CHARS_MAX).collect()
}

/// Gives each section one line after the other, in turns, as long as there is room: a long list
/// never takes the place of the first lines of the others. Returns the room that is left.
fn fill(sections: &mut [SummarySection], mut room: usize) -> usize {
    loop {
        let mut took = false;
        for it in &mut *sections {
            let most = if it.nothing == NO_CHANGES { SUMMARY_FILES_MAX } else { usize::MAX };
            let next = it.lines.get(it.taken).filter(|_| it.taken < most);
            let Some(length) = next.map(|it| chars(it) + 1) else { continue };
            if length <= room {
                it.taken += 1;
                room -= length;
                took = true;
            }
        }
        if !took {
            return room;
        }
    }
}

impl SummarySection {
    fn text(&self) -> String {
        let mut lines: Vec<&str> = self.lines.iter().take(self.taken).map(String::as_str).collect();
        if self.chronological {
            lines.reverse();
        }
        if lines.is_empty() { self.nothing.to_owned() } else { lines.join("\n") }
    }
}

/// The goal with at most `most` characters, and whether it was cut. The text of an earlier summary is removed.
fn goal(text: &str, most: usize) -> (String, bool) {
    let own = text.split(HEADING).next().unwrap_or_default().trim();
    let own = mask(own).0.into_owned();
    if own.is_empty() {
        return (NONE.to_owned(), false);
    }
    // A heading in it would begin a section of its own.
    let lines =
        own.lines().map(|it| if it.starts_with('#') { format!(" {it}") } else { it.to_owned() });
    let own = lines.collect::<Vec<_>>().join("\n");
    if chars(&own) <= most {
        return (own, false);
    }
    let kept: String = own.chars().take(most.saturating_sub(1)).collect();
    (format!("{}…", kept.trim_end()), true)
}

/// One line of a list, on one line, bounded, without secrets.
fn bullet(text: &str) -> String {
    let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let masked = mask(&plain).0;
    if chars(&masked) <= LINE_CHARS_MAX {
        return format!("- {masked}");
    }
    let kept: String = masked.chars().take(LINE_CHARS_MAX - 1).collect();
    format!("- {kept}…")
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

/// Formats a summary for the next context.
#[must_use]
pub fn format_summary(summary: &str) -> String {
    format!("{HEADING}\n{}", summary.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_known_is_said_in_every_section() {
        let text = markdown(&SummaryInput::default());
        assert_eq!(text.matches(NONE).count(), 6, "{text}");
        assert_eq!(text.matches(NO_CHANGES).count(), 1, "{text}");
        assert!(!text.contains("Truncated"));
    }

    #[test]
    fn a_long_goal_takes_the_room_that_nothing_else_needs() {
        let goal = "Write a parser for the new format. ".repeat(200);
        let known = SummaryInput { goal, ..SummaryInput::default() };
        let text = markdown(&known);
        let count = text.chars().count();
        assert!(count <= SUMMARY_CHARS_MAX && count > SUMMARY_CHARS_MAX - 100, "{count}");
        assert!(
            text.ends_with("\n[Truncated: the goal was cut; 2000 characters at most]\n"),
            "{text}"
        );
        let files = (0..20).map(|it| format!("src/{it}/{}.rs", "m".repeat(100))).collect();
        let full = markdown(&SummaryInput { files, ..known });
        assert!(full.chars().count() <= SUMMARY_CHARS_MAX, "{full}");
        let goal = full.split("\n## ").nth(1).unwrap();
        assert!(goal.chars().count() >= SUMMARY_GOAL_CHARS_MAX, "{full}");
    }

    #[test]
    fn it_is_bounded_in_characters_and_not_in_bytes() {
        let many = |what: &str| -> Vec<String> {
            (0..200).map(|it| format!("{what} {it} {}", "日本".repeat(20))).collect()
        };
        let known = SummaryInput {
            goal: "目標 ".repeat(3_000),
            status: many("status"),
            files: many("file"),
            errors: many("error"),
            tests: many("test"),
            todos: many("todo"),
            progress: many("step"),
            iteration: u64::MAX,
        };
        let text = markdown(&known);
        let count = text.chars().count();
        assert!(count <= SUMMARY_CHARS_MAX && count > SUMMARY_CHARS_MAX - 300, "{count}");
        assert!(text.contains("[Truncated: the goal was cut, "), "{text}");
        for newest in ["status 0", "file 0", "error 0", "test 0", "todo 0", "step 0"] {
            assert!(text.contains(newest), "{newest}: {text}");
        }
    }

    #[test]
    fn a_summary_in_a_goal_is_not_carried_on() {
        let goal = format!("Build it.\n\n{HEADING}\n# Context Summary\n## Goal\nBuild it.");
        let text = markdown(&SummaryInput { goal, ..SummaryInput::default() });
        assert_eq!(text.matches("## Goal").count(), 1);
        assert!(text.contains("## Goal\nBuild it.\n") && !text.contains(HEADING), "{text}");
    }

    #[test]
    fn headings_and_secrets_stay_where_they_are() {
        let goal = "# Title\n## Open Todos\nuse PGPASSWORD=hunter2abc".to_owned();
        let errors = vec!["first\nsecond   line\tthird token: ghijklmnop".to_owned()];
        let text = markdown(&SummaryInput { goal, errors, ..SummaryInput::default() });
        assert_eq!(text.lines().filter(|it| *it == "## Open Todos").count(), 1, "{text}");
        assert!(!text.contains("hunter2abc") && !text.contains("ghijklmnop"), "{text}");
        assert!(text.contains("- first second line third"), "{text}");
    }
}
