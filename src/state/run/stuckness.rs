//! Whether a run goes round in circles: signs of independent causes. A cause that shows in two ways
//! is one sign: without a change, the diff is the same again, and the same error ends with the same
//! exit code.
//!
//! | sign | holds |
//! |---|---|
//! | `standstill` | the last turn changed less than `lines` lines, from turn 3 on, and did not oscillate; or the last `window` turns left the same content |
//! | `same_error` | the last `window` turns ended with one error, or one exit code other than 0; or one error came `window` times in 5 turns; or the turn ended with an error of the circle |
//! | `oscillation` | the content comes back after another one, or to one of the circle, and nothing stands still |
//! | `same_words` | the agent says what it said before |
//! | `budget` | more than `budget_percent` of the turns are used up, and the tests do not pass |
//!
//! The error of a turn is that of its command, else the test that failed in it last. The circle are the turns
//! for which a fresh session was begun: it does not have to be walked again to be recognized.
//!
//! Tests that pass and a gate that is content take one sign away where there are several: then the
//! work is done, and only its judges differ.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::state::uncertainty;

/// Turns that are looked at for an error that comes again and again.
const ERRORS: usize = 5;
/// Turns that are remembered.
pub const KEPT: usize = 8;
/// Signs that there are.
pub const SIGNS: usize = 5;
/// The first turn after which little change is a sign.
const STILL_FROM: u32 = 3;

/// When a run counts as stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Signs that must hold at once.
    pub signs: u32,
    /// Turns in a row in which they must hold before something is done about it.
    pub rounds: u32,
    /// Equal turns that are a sign.
    pub window: u32,
    /// Changed lines below which a turn changed nothing to speak of.
    pub lines: u32,
    /// Share of the lines said that were said before, in percent.
    pub words_percent: u32,
    /// Share of the turns after which tests should pass, in percent.
    pub budget_percent: u32,
}

impl Default for Settings {
    /// shipwright's numbers; two rounds as in loki-mode.
    fn default() -> Self {
        Self { signs: 2, rounds: 2, window: 3, lines: 5, words_percent: 90, budget_percent: 70 }
    }
}

/// A sign of being stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// Nothing changes.
    Standstill,
    /// The same goes wrong again.
    SameError,
    /// The content oscillates.
    Oscillation,
    /// The same is said again.
    SameWords,
    /// Most turns are used up.
    Budget,
}

impl Sign {
    /// Returns the stored name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standstill => "standstill",
            Self::SameError => "same_error",
            Self::Oscillation => "oscillation",
            Self::SameWords => "same_words",
            Self::Budget => "budget",
        }
    }
}

/// Record of one turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Mark {
    /// Fingerprint of the project's content after the turn; empty if unknown.
    pub content: String,
    /// Lines that the turn changed, if known.
    pub lines: Option<u32>,
    /// Fingerprint of the error: the failure of the command, else the failed test; empty for none.
    pub error: String,
    /// Exit code of the command; 0 if a signal ended it.
    pub exit_code: i32,
    /// Share of the output lines that the turn before also had, in percent.
    #[schemars(range(max = 100))]
    pub words_percent: u32,
    /// Whether tests passed, if known.
    pub tests: Option<bool>,
}

/// The last turns, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Trail {
    /// One for each turn.
    pub marks: Vec<Mark>,
}

/// What is known beside the turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Around<'c> {
    /// Turns taken.
    pub iteration: u32,
    /// Turns that are allowed.
    pub iterations_max: u32,
    /// Whether the gate is content.
    pub content: bool,
    /// The turns for which the last fresh session was begun.
    pub circle: &'c [Mark],
}

impl Trail {
    /// Remembers a turn.
    pub fn add(&mut self, mark: Mark) {
        self.marks.push(mark);
        let over = self.marks.len().saturating_sub(KEPT);
        self.marks.drain(..over);
    }

    /// How often the error of the last turn came, counted over the remembered turns.
    #[must_use]
    pub fn same_error(&self) -> u32 {
        let Some(last) = self.marks.last().filter(|it| !it.error.is_empty()) else { return 0 };
        let same = self.marks.iter().filter(|it| it.error == last.error).count();
        u32::try_from(same).unwrap_or(u32::MAX)
    }

    /// The last turns of a window that is full.
    fn window(&self, settings: Settings) -> Option<&[Mark]> {
        let size = usize::try_from(settings.window.max(1)).unwrap_or(usize::MAX);
        self.marks.get(self.marks.len().checked_sub(size)?..)
    }

    /// Whether the turns of a window left one content.
    fn is_unchanged(&self, settings: Settings) -> bool {
        self.window(settings).is_some_and(|it| {
            let first = it.first().map(|it| it.content.as_str()).unwrap_or_default();
            !first.is_empty() && it.iter().all(|it| it.content == first)
        })
    }

    /// Whether the last turn changed little.
    fn changes_little(&self, settings: Settings, around: Around<'_>) -> bool {
        let few = self.marks.last().and_then(|it| it.lines).is_some_and(|it| it < settings.lines);
        few && around.iteration >= STILL_FROM
    }

    fn repeats_error(&self, settings: Settings, circle: &[Mark]) -> bool {
        let known = self.marks.last().is_some_and(|last| {
            !last.error.is_empty() && circle.iter().any(|it| it.error == last.error)
        });
        let same = self.window(settings).is_some_and(|it| {
            let Some(first) = it.first() else { return false };
            let error = !first.error.is_empty() && it.iter().all(|it| it.error == first.error);
            let code = first.exit_code != 0 && it.iter().all(|it| it.exit_code == first.exit_code);
            error || code
        });
        let lately = self.marks.iter().rev().take(ERRORS);
        let again = lately.clone().any(|one| {
            let times = lately.clone().filter(|it| it.error == one.error).count();
            !one.error.is_empty() && u32::try_from(times).is_ok_and(|it| it >= settings.window)
        });
        known || same || again
    }

    /// Whether the last turn left a content that a turn of the circle left, too.
    #[must_use]
    pub fn is_back(&self, circle: &[Mark]) -> bool {
        self.marks.last().is_some_and(|last| {
            !last.content.is_empty() && circle.iter().any(|it| it.content == last.content)
        })
    }

    fn swings(&self, circle: &[Mark]) -> bool {
        let before = self.marks.iter().rev().nth(1).or(circle.last());
        let moved = before.map(|it| &it.content) != self.marks.last().map(|it| &it.content);
        if moved && self.is_back(circle) {
            return true;
        }
        let ring: Vec<String> = self.marks.iter().map(|it| it.content.clone()).collect();
        ring.split_last().is_some_and(|(last, before)| {
            before.last() != Some(last) && uncertainty::swings(before, last)
        })
    }

    /// The signs that hold, each of a cause of its own.
    #[must_use]
    pub fn signs(&self, settings: Settings, around: Around<'_>) -> Vec<Sign> {
        let Some(last) = self.marks.last() else { return Vec::new() };
        let swings = self.swings(around.circle);
        let still =
            self.is_unchanged(settings) || (self.changes_little(settings, around) && !swings);
        let used = u64::from(around.iteration) * 100
            > u64::from(around.iterations_max) * u64::from(settings.budget_percent);
        let holds: [(Sign, bool); SIGNS] = [
            (Sign::Standstill, still),
            (Sign::SameError, self.repeats_error(settings, around.circle)),
            (Sign::Oscillation, !still && swings),
            (Sign::SameWords, last.words_percent >= settings.words_percent),
            (Sign::Budget, around.iterations_max > 0 && used && last.tests != Some(true)),
        ];
        let mut signs: Vec<Sign> = holds.into_iter().filter(|it| it.1).map(|it| it.0).collect();
        if signs.len() > 1 && last.tests == Some(true) && around.content {
            signs.pop();
        }
        signs
    }
}

/// Returns the share of the last lines of a text that another one also has, in percent. Repeated lines count as
/// often as in both. A few lines can be equal by chance.
#[must_use]
pub fn overlap_percent(now: &str, before: &str) -> u32 {
    const LINES: usize = 50;
    const FEW: usize = 5;
    let lines = |text: &str| {
        let mut lines: Vec<String> = text
            .lines()
            .rev()
            .take(LINES)
            .filter(|it| !it.trim().is_empty())
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    };
    let (now, mut before) = (lines(now), lines(before));
    let total = now.len();
    if total < FEW {
        return 0;
    }
    let common = now.iter().filter(|line| {
        let found = before.iter().position(|it| it == *line);
        found.map(|at| before.remove(at)).is_some()
    });
    let percent = common.count().saturating_mul(100).checked_div(total).unwrap_or(0);
    u32::try_from(percent).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trail(marks: &[Mark]) -> Trail {
        let mut trail = Trail::default();
        marks.iter().for_each(|it| trail.add(it.clone()));
        trail
    }

    fn at(iteration: u32) -> Around<'static> {
        Around { iteration, iterations_max: 100, ..Around::default() }
    }

    fn of(contents: &str) -> Trail {
        let mark = |it: char| Mark { content: it.to_string(), lines: Some(20), ..Mark::default() };
        trail(&contents.chars().map(mark).collect::<Vec<_>>())
    }

    fn names(trail: &Trail, around: Around<'_>) -> Vec<&'static str> {
        trail.signs(Settings::default(), around).into_iter().map(Sign::as_str).collect()
    }

    #[test]
    fn content_stands_still_or_swings_and_never_both() {
        for (contents, signs) in [
            ("", vec![]),
            ("ab", vec![]),
            ("aa", vec![]),
            ("aaa", vec!["standstill"]),
            ("aba", vec!["oscillation"]),
            ("abab", vec!["oscillation"]),
            ("abaaa", vec!["standstill"]),
            ("abc", vec![]),
        ] {
            assert_eq!(names(&of(contents), at(9)), signs, "{contents}");
        }
    }

    #[test]
    fn a_fresh_session_that_is_back_in_the_circle_is_recognized_at_once() {
        let mark = |content: &str, error: &str| Mark {
            content: content.into(),
            lines: Some(20),
            error: error.into(),
            ..Mark::default()
        };
        let circle = [mark("a", "x"), mark("b", "x")];
        let around = Around { circle: &circle, ..at(9) };
        for (marks, signs, back) in [
            (vec![mark("a", "x")], vec!["same_error", "oscillation"], true),
            (vec![mark("c", "x")], vec!["same_error"], false),
            (vec![mark("c", "")], vec![], false),
            (vec![mark("b", "")], vec![], true), // Nothing changed yet.
            (vec![mark("c", ""), mark("b", "y")], vec!["oscillation"], true),
        ] {
            let trail = trail(&marks);
            assert_eq!((names(&trail, around), trail.is_back(&circle)), (signs, back), "{marks:?}");
        }
        assert!(!trail(&[Mark::default()]).is_back(&[Mark::default()]), "unknown is not equal");
    }

    #[test]
    fn little_change_is_a_sign_from_the_third_turn_on() {
        let little = trail(&[Mark { content: "a".into(), lines: Some(4), ..Mark::default() }]);
        assert!(names(&little, at(2)).is_empty());
        assert_eq!(names(&little, at(3)), ["standstill"]);
        let mark = |it: char| Mark { content: it.to_string(), lines: Some(2), ..Mark::default() };
        let swings = trail(&"aba".chars().map(mark).collect::<Vec<_>>());
        assert_eq!(names(&swings, at(3)), ["oscillation"], "oscillation, however little");
        let unknown = trail(&[Mark::default()]);
        assert!(names(&unknown, at(3)).is_empty(), "unknown values are not a sign");
    }

    #[test]
    fn one_error_shows_once_however_it_shows() {
        let failed =
            |error: &str, exit_code| Mark { error: error.into(), exit_code, ..Mark::default() };
        for marks in [
            vec![failed("x", 1); 3],
            vec![failed("x", 0); 3],
            vec![failed("", 7); 3],
            vec![failed("x", 1), failed("y", 2), failed("x", 3), failed("", 0), failed("x", 4)],
        ] {
            assert_eq!(names(&trail(&marks), at(9)), ["same_error"], "{marks:?}");
        }
        let different = [failed("x", 1), failed("x", 1), failed("y", 2)];
        assert!(names(&trail(&different), at(9)).is_empty());
        assert!(names(&trail(&[failed("", 0), failed("", 0), failed("", 0)]), at(9)).is_empty());
        assert_eq!(trail(&different).same_error(), 1);
        assert_eq!(trail(&[failed("x", 1), failed("y", 1), failed("x", 1)]).same_error(), 2);
    }

    #[test]
    fn tests_that_pass_and_a_gate_that_is_content_take_one_sign_away() {
        let mut mark = Mark { content: "a".into(), words_percent: 95, ..Mark::default() };
        let around = Around { content: true, ..at(9) };
        assert_eq!(names(&trail(&vec![mark.clone(); 3]), around), ["standstill", "same_words"]);
        mark.tests = Some(true);
        assert_eq!(names(&trail(&vec![mark.clone(); 3]), around), ["standstill"]);
        assert_eq!(names(&trail(&vec![mark; 3]), at(9)).len(), 2);
    }

    #[test]
    fn most_of_the_turns_are_a_sign_where_tests_do_not_pass() {
        let mark = |tests| trail(&[Mark { tests, ..Mark::default() }]);
        assert!(names(&mark(None), at(70)).is_empty());
        assert_eq!(names(&mark(None), at(71)), ["budget"]);
        assert_eq!(names(&mark(Some(false)), at(71)), ["budget"]);
        assert!(names(&mark(Some(true)), at(71)).is_empty());
    }

    #[test]
    fn lines_said_before_are_counted_as_often_as_in_both() {
        let all = "a\nb\nc\nd\ne\n";
        assert_eq!(overlap_percent(all, "e\nd\nc\nb\na"), 100);
        assert_eq!(overlap_percent("a\na\na\na\n\nb", "a\na"), 40);
        assert_eq!(overlap_percent(all, "a\nx\ny"), 20);
        assert_eq!(overlap_percent("", all), 0);
        assert_eq!(overlap_percent(all, ""), 0);
        assert_eq!(overlap_percent("a\nb\nc\nd", "a\nb\nc\nd"), 0, "by chance");
    }

    #[test]
    fn the_oldest_turns_are_forgotten() {
        assert_eq!(of("abcdefghijkl").marks.len(), KEPT);
    }
}
