//! Detects stuck runs by signs with independent causes. Two symptoms of one cause are one sign: a
//! turn without changes also repeats the last diff, and the same error also repeats the exit code.
//!
//! | sign | condition |
//! |---|---|
//! | `standstill` | the last turn changed less than `lines` lines, from turn 3 on, and did not oscillate; or the last `window` turns left the same content |
//! | `same_error` | the last `window` turns ended with one error, or with one non-zero exit code; or one error occurred `window` times in 5 turns; or the turn ended with an error of the circle |
//! | `oscillation` | an earlier content returns after another one, or a content of the circle returns, without `standstill` |
//! | `same_words` | the agent repeats its output |
//! | `budget` | more than `budget_percent` of the turns are used, and the tests do not pass |
//!
//! The error of a turn is the error of its command, otherwise the last failed test. The *circle* is
//! the list of turns that led to a new session. A repetition of these turns is recognized at once.
//!
//! If tests pass and the stop gate accepts the claim, one of several signs does not count, because
//! the work is done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::uncertainty;

/// Number of turns that are searched for a repeated error.
const ERRORS: usize = 5;
/// Number of stored turns.
pub const KEPT: usize = 8;
/// Number of signs.
pub const SIGNS: usize = 5;
/// First turn in which little change is a sign.
const STILL_FROM: u32 = 3;

/// Thresholds for a stuck run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StuckSettings {
    /// Number of simultaneous signs.
    pub signs: u32,
    /// Number of consecutive turns with these signs.
    pub rounds: u32,
    /// Number of equal turns that are a sign.
    pub window: u32,
    /// Number of changed lines below which a turn counts as unchanged.
    pub lines: u32,
    /// Share of repeated output lines that is a sign, in percent.
    pub words_percent: u32,
    /// Share of the permitted turns after which tests must pass, in percent.
    pub budget_percent: u32,
}

impl Default for StuckSettings {
    /// Defaults of shipwright, and two rounds as in loki-mode.
    fn default() -> Self {
        Self { signs: 2, rounds: 2, window: 3, lines: 5, words_percent: 90, budget_percent: 70 }
    }
}

/// A sign of a stuck run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StuckSignal {
    /// Nothing changes.
    Standstill,
    /// The same error is repeated.
    SameError,
    /// The content oscillates.
    Oscillation,
    /// The output is repeated.
    SameWords,
    /// Most turns are used.
    Budget,
}

impl StuckSignal {
    /// Returns the stable name.
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
pub struct TurnRecord {
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
pub struct TurnHistory {
    /// One for each turn.
    pub marks: Vec<TurnRecord>,
}

/// Context of the turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunContext<'c> {
    /// Number of turns.
    pub iteration: u32,
    /// Permitted number of turns.
    pub iterations_max: u32,
    /// Whether the stop gate accepts the claim.
    pub content: bool,
    /// Turns that led to the last new session.
    pub circle: &'c [TurnRecord],
}

impl TurnHistory {
    /// Records a turn.
    pub fn add(&mut self, mark: TurnRecord) {
        self.marks.push(mark);
        let over = self.marks.len().saturating_sub(KEPT);
        self.marks.drain(..over);
    }

    /// Counts the stored turns with the error of the last turn.
    #[must_use]
    pub fn same_error(&self) -> u32 {
        let Some(last) = self.marks.last().filter(|it| !it.error.is_empty()) else { return 0 };
        let same = self.marks.iter().filter(|it| it.error == last.error).count();
        u32::try_from(same).unwrap_or(u32::MAX)
    }

    /// Returns the last turns of a full window.
    fn window(&self, settings: StuckSettings) -> Option<&[TurnRecord]> {
        let size = usize::try_from(settings.window.max(1)).unwrap_or(usize::MAX);
        self.marks.get(self.marks.len().checked_sub(size)?..)
    }

    /// Returns whether the turns of a window left the same content.
    fn is_unchanged(&self, settings: StuckSettings) -> bool {
        self.window(settings).is_some_and(|marks| {
            let first = marks.first().map(|it| it.content.as_str()).unwrap_or_default();
            !first.is_empty() && marks.iter().all(|it| it.content == first)
        })
    }

    /// Returns whether the last turn changed little.
    fn changes_little(&self, settings: StuckSettings, around: RunContext<'_>) -> bool {
        let few = self.marks.last().and_then(|it| it.lines).is_some_and(|it| it < settings.lines);
        few && around.iteration >= STILL_FROM
    }

    fn repeats_error(&self, settings: StuckSettings, circle: &[TurnRecord]) -> bool {
        let known = self.marks.last().is_some_and(|last| {
            !last.error.is_empty() && circle.iter().any(|it| it.error == last.error)
        });
        let same = self.window(settings).is_some_and(|marks| {
            let Some(first) = marks.first() else { return false };
            let error = !first.error.is_empty() && marks.iter().all(|it| it.error == first.error);
            let code =
                first.exit_code != 0 && marks.iter().all(|it| it.exit_code == first.exit_code);
            error || code
        });
        let lately = self.marks.iter().rev().take(ERRORS);
        let again = lately.clone().any(|one| {
            let times = lately.clone().filter(|it| it.error == one.error).count();
            !one.error.is_empty() && u32::try_from(times).is_ok_and(|it| it >= settings.window)
        });
        known || same || again
    }

    /// Returns whether the last turn left a content of the circle.
    #[must_use]
    pub fn is_back(&self, circle: &[TurnRecord]) -> bool {
        self.marks.last().is_some_and(|last| {
            !last.content.is_empty() && circle.iter().any(|it| it.content == last.content)
        })
    }

    fn oscillates(&self, circle: &[TurnRecord]) -> bool {
        let before = self.marks.iter().rev().nth(1).or(circle.last());
        let moved = before.map(|it| &it.content) != self.marks.last().map(|it| &it.content);
        if moved && self.is_back(circle) {
            return true;
        }
        let ring: Vec<String> = self.marks.iter().map(|it| it.content.clone()).collect();
        ring.split_last().is_some_and(|(last, before)| {
            before.last() != Some(last) && uncertainty::oscillates(before, last)
        })
    }

    /// Returns the signs that apply.
    #[must_use]
    pub fn signs(&self, settings: StuckSettings, around: RunContext<'_>) -> Vec<StuckSignal> {
        let Some(last) = self.marks.last() else { return Vec::new() };
        let swings = self.oscillates(around.circle);
        let still =
            self.is_unchanged(settings) || (self.changes_little(settings, around) && !swings);
        let used = u64::from(around.iteration) * 100
            > u64::from(around.iterations_max) * u64::from(settings.budget_percent);
        let holds: [(StuckSignal, bool); SIGNS] = [
            (StuckSignal::Standstill, still),
            (StuckSignal::SameError, self.repeats_error(settings, around.circle)),
            (StuckSignal::Oscillation, !still && swings),
            (StuckSignal::SameWords, last.words_percent >= settings.words_percent),
            (StuckSignal::Budget, around.iterations_max > 0 && used && last.tests != Some(true)),
        ];
        let mut signs: Vec<StuckSignal> =
            holds.into_iter().filter(|it| it.1).map(|it| it.0).collect();
        if signs.len() > 1 && last.tests == Some(true) && around.content {
            signs.pop();
        }
        signs
    }
}

/// Returns the share of the last lines of a text that also occur in another text, in percent.
/// Repeated lines count as often as in both. A few equal lines can be a coincidence.
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

    fn trail(marks: &[TurnRecord]) -> TurnHistory {
        let mut trail = TurnHistory::default();
        marks.iter().for_each(|it| trail.add(it.clone()));
        trail
    }

    fn at(iteration: u32) -> RunContext<'static> {
        RunContext { iteration, iterations_max: 100, ..RunContext::default() }
    }

    fn of(contents: &str) -> TurnHistory {
        let mark = |it: char| TurnRecord {
            content: it.to_string(),
            lines: Some(20),
            ..TurnRecord::default()
        };
        trail(&contents.chars().map(mark).collect::<Vec<_>>())
    }

    fn names(trail: &TurnHistory, around: RunContext<'_>) -> Vec<&'static str> {
        trail.signs(StuckSettings::default(), around).into_iter().map(StuckSignal::as_str).collect()
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
        let mark = |content: &str, error: &str| TurnRecord {
            content: content.into(),
            lines: Some(20),
            error: error.into(),
            ..TurnRecord::default()
        };
        let circle = [mark("a", "x"), mark("b", "x")];
        let around = RunContext { circle: &circle, ..at(9) };
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
        assert!(
            !trail(&[TurnRecord::default()]).is_back(&[TurnRecord::default()]),
            "unknown is not equal"
        );
    }

    #[test]
    fn little_change_is_a_sign_from_the_third_turn_on() {
        let little =
            trail(&[TurnRecord { content: "a".into(), lines: Some(4), ..TurnRecord::default() }]);
        assert!(names(&little, at(2)).is_empty());
        assert_eq!(names(&little, at(3)), ["standstill"]);
        let mark = |it: char| TurnRecord {
            content: it.to_string(),
            lines: Some(2),
            ..TurnRecord::default()
        };
        let swings = trail(&"aba".chars().map(mark).collect::<Vec<_>>());
        assert_eq!(names(&swings, at(3)), ["oscillation"], "oscillates, however little");
        let unknown = trail(&[TurnRecord::default()]);
        assert!(names(&unknown, at(3)).is_empty(), "unknown values are not signs");
    }

    #[test]
    fn one_error_shows_once_however_it_shows() {
        let failed = |error: &str, exit_code| TurnRecord {
            error: error.into(),
            exit_code,
            ..TurnRecord::default()
        };
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
        let mut mark =
            TurnRecord { content: "a".into(), words_percent: 95, ..TurnRecord::default() };
        let around = RunContext { content: true, ..at(9) };
        assert_eq!(names(&trail(&vec![mark.clone(); 3]), around), ["standstill", "same_words"]);
        mark.tests = Some(true);
        assert_eq!(names(&trail(&vec![mark.clone(); 3]), around), ["standstill"]);
        assert_eq!(names(&trail(&vec![mark; 3]), at(9)).len(), 2);
    }

    #[test]
    fn most_of_the_turns_are_a_sign_where_tests_do_not_pass() {
        let mark = |tests| trail(&[TurnRecord { tests, ..TurnRecord::default() }]);
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
