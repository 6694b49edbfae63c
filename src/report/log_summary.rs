//! A summary of the decision log: decisions about stops and about calls, how often each check
//! was satisfied, what guards said, how often preferences were found.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::{Value, json};

use policyd_record::decision_log::Entry;
use policyd_record::paint::TextColor;
use policyd_record::table::{Align, Screen, TextCell, TextTable};

/// Counts over entries of the decision log.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LogSummary {
    stops: usize,
    /// Sessions of all entries.
    sessions: BTreeSet<String>,
    blocked: usize,
    /// Blocks that the client did not get, because the state was not saved.
    dropped: usize,
    /// Stops that were released although a check did not pass, by reason.
    released: BTreeMap<String, usize>,
    not_judged: usize,
    with_problems: usize,
    checks: BTreeMap<String, CheckCounts>,
    preferences: BTreeMap<String, PreferenceCounts>,
    /// Events other than stops, by the decision.
    guarded: BTreeMap<String, usize>,
    guards: BTreeMap<String, GuardCounts>,
}

/// Number of events at which a guard fired, and at which its result was unknown.
#[derive(Debug, Default, PartialEq, Eq)]
struct GuardCounts {
    fired: usize,
    unknown: usize,
    /// Events that it would have blocked or asked about, had it been enforced.
    would_block: usize,
}

/// How often a check came to what.
#[derive(Debug, Default, PartialEq, Eq)]
struct CheckCounts {
    satisfied: usize,
    unsatisfied: usize,
    unknown: usize,
    /// Stops that were blocked, this check being one of the reasons.
    blocked: usize,
    /// Stops that it would have blocked, but that were released.
    released: usize,
    warned: usize,
    /// Stops that it would have blocked, had it been enforced.
    would_block: usize,
}

/// How often a preference was asked for, and found.
#[derive(Debug, Default, PartialEq, Eq)]
struct PreferenceCounts {
    asked: usize,
    found: usize,
}

impl LogSummary {
    /// Counts an entry.
    pub fn add(&mut self, entry: &Entry) {
        self.sessions.insert(entry.session_id.clone());
        match entry.is_about_stop() {
            true => self.add_stop(entry),
            false => self.add_other(entry),
        }
    }

    /// Counts an event that is not a stop, and the results of guards.
    fn add_other(&mut self, entry: &Entry) {
        *self.guarded.entry(entry.decision.clone()).or_default() += 1;
        for it in &entry.guards {
            let guard = self.guards.entry(it.id.clone()).or_default();
            guard.fired += usize::from(it.status == "fired");
            guard.unknown += usize::from(it.status == "unknown");
            guard.would_block += usize::from(it.would.is_some());
        }
    }

    fn add_stop(&mut self, entry: &Entry) {
        self.stops += 1;
        let blocked = entry.decision == "block";
        let release = entry.release_reason();
        // Each stop counts once, so that the numbers of the first line add up.
        match release {
            _ if blocked && entry.spoken => self.blocked += 1,
            _ if blocked => self.dropped += 1,
            Some(why) => *self.released.entry(why.to_owned()).or_default() += 1,
            None => self.not_judged += usize::from(entry.session_type.is_none()),
        }
        self.with_problems += usize::from(!entry.problems.is_empty());
        for it in &entry.verdicts {
            let check = self.checks.entry(it.id.clone()).or_default();
            check.satisfied += usize::from(it.status == "satisfied");
            check.unsatisfied += usize::from(it.status == "unsatisfied");
            check.unknown += usize::from(it.status == "unknown");
            // A check that blocks by itself does not block a stop that is released.
            let blocks = it.consequence == "blocks";
            check.blocked += usize::from(blocks && blocked && entry.spoken);
            check.released += usize::from(blocks && !blocked && release.is_some());
            check.warned += usize::from(it.consequence == "warns");
            check.would_block += usize::from(it.would_block);
        }
        for (id, found) in entry.preferences.iter().flatten() {
            let preference = self.preferences.entry(id.clone()).or_default();
            preference.asked += 1;
            preference.found += usize::from(*found);
        }
    }

    /// Renders the summary as JSON.
    pub fn to_json(&self) -> Value {
        let checks = self.checks.iter().map(|(id, it)| {
            let counts = json!({"satisfied": it.satisfied, "unsatisfied": it.unsatisfied,
                "unknown": it.unknown, "blocked": it.blocked, "released": it.released,
                "warned": it.warned, "would_block": it.would_block});
            (id.clone(), counts)
        });
        let preferences = self.preferences.iter();
        let preferences =
            preferences.map(|(id, it)| (id.clone(), json!({"asked": it.asked, "found": it.found})));
        let guards = self.guards.iter();
        let guards = guards.map(|(id, it)| {
            let counts = json!({"fired": it.fired, "unknown": it.unknown,
                    "would_block": it.would_block});
            (id.clone(), counts)
        });
        json!({
            "version": 1,
            "stops": self.stops,
            "sessions": self.sessions.len(),
            "blocked": self.blocked,
            "dropped": self.dropped,
            "released": self.released,
            "not_judged": self.not_judged,
            "with_problems": self.with_problems,
            "checks": checks.collect::<serde_json::Map<_, _>>(),
            "preferences": preferences.collect::<serde_json::Map<_, _>>(),
            "guarded": self.guarded,
            "guards": guards.collect::<serde_json::Map<_, _>>(),
        })
    }

    /// Renders the summary as text: the check that failed most often comes first.
    pub fn to_text(&self, screen: Screen) -> String {
        let mut text = String::new();
        self.totals().iter().for_each(|it| screen.paragraph(&mut text, "", it));
        if !self.checks.is_empty() {
            let _infallible = write!(text, "\n{}", self.check_table().render(screen));
        }
        if !self.preferences.is_empty() {
            let mut table = counts(&["preference", "asked", "found"]);
            for (id, it) in &self.preferences {
                table.row(vec![id.as_str().into(), number(it.asked), number(it.found)]);
            }
            let _infallible = write!(text, "\n{}", table.render(screen));
        }
        if !self.guarded.is_empty() {
            let all: usize = self.guarded.values().sum();
            let decided = self.guarded.iter().map(|(it, count)| format!("{count} {it}"));
            let decided: Vec<String> = decided.collect();
            text.push('\n');
            let line = format!("other events ({all}): {}", decided.join(", "));
            screen.paragraph(&mut text, "", &line);
        }
        if !self.guards.is_empty() {
            let _infallible = write!(text, "\n{}", self.guard_table().render(screen));
        }
        text
    }

    /// The lines about all stops.
    fn totals(&self) -> Vec<String> {
        let released: usize = self.released.values().sum();
        let others = [self.blocked, self.dropped, released, self.not_judged].into_iter();
        let others = others.fold(0, usize::saturating_add);
        let mut lines = vec![format!(
            "stops: {}, sessions: {}; {} clean, {} blocked, {released} released, {} not \
             evaluated; {} with problems",
            self.stops,
            self.sessions.len(),
            self.stops.saturating_sub(others),
            self.blocked,
            self.not_judged,
            self.with_problems
        )];
        if self.dropped > 0 {
            lines.push(format!(
                "  blocks not sent because the state was not saved: {}",
                self.dropped
            ));
        }
        let released = self.released.iter();
        lines.extend(released.map(|(why, count)| format!("  released {count}x: {why}")));
        lines
    }

    fn check_table(&self) -> TextTable {
        let mut table = counts(&[
            "check",
            "passed",
            "",
            "fired",
            "unknown",
            "blocked",
            "released",
            "warned",
            "would block",
        ]);
        let mut checks: Vec<_> = self.checks.iter().collect();
        checks.sort_by_key(|(id, it)| (std::cmp::Reverse(it.unsatisfied), id.as_str()));
        for (id, it) in checks {
            let all = it.satisfied.saturating_add(it.unsatisfied).max(1);
            let share = it.satisfied.saturating_mul(100) / all;
            table.row(vec![
                id.as_str().into(),
                number(it.satisfied),
                format!("{share}%").into(),
                number(it.unsatisfied),
                number(it.unknown),
                number(it.blocked),
                number(it.released),
                number(it.warned),
                number(it.would_block),
            ]);
        }
        table
    }

    fn guard_table(&self) -> TextTable {
        let mut table = counts(&["guard", "fired", "unknown", "would block"]);
        let mut guards: Vec<_> = self.guards.iter().collect();
        guards.sort_by_key(|(id, it)| (std::cmp::Reverse(it.fired), id.as_str()));
        for (id, it) in guards {
            let counts = [it.fired, it.unknown, it.would_block].map(number);
            table.row([id.as_str().into()].into_iter().chain(counts).collect());
        }
        table
    }
}

/// A table of names with counts.
fn counts(head: &[&str]) -> TextTable {
    let columns = head.iter().enumerate();
    let columns: Vec<Align> =
        columns.map(|(at, _)| if at == 0 { Align::Left } else { Align::Right }).collect();
    let mut table = TextTable::new(0, &columns);
    table.row(head.iter().map(|it| TextCell::new(*it, TextColor::Dim)).collect());
    table
}

fn number(count: usize) -> TextCell {
    count.to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(entries: &[Value]) -> LogSummary {
        let mut summary = LogSummary::default();
        for it in entries {
            summary.add(&Entry::parse(it.to_string().as_bytes()).unwrap());
        }
        summary
    }

    #[test]
    fn an_id_of_any_length_is_shown() {
        let id = "x".repeat(70_000);
        let entry = json!({"session_id": "a", "decision": "none",
            "guards": [{"id": id, "status": "fired"}, {"id": "odd", "status": "fired"}]});
        let shown = summary(&[entry]).to_text(Screen::default());
        assert!(shown.contains(&format!("{id}      1")), "the long id is shown whole");
        assert!(
            shown.contains(&format!("\nodd{:131}1        0            0\n", "")),
            "the width is bounded"
        );
    }

    #[test]
    fn calls_are_no_stops() {
        let guard = |id: &str, status: &str| json!({"id": id, "status": status});
        let entries = [
            json!({"session_id": "a", "decision": "block", "spoken": true,
                "guards": [guard("no_force", "fired"), guard("odd", "unknown")]}),
            json!({"session_id": "a", "decision": "none", "guards": [guard("odd", "fired"),
                {"id": "seen", "status": "fired", "would": "ask"}]}),
        ];
        let summary = summary(&entries);
        let counted = summary.to_json();
        assert_eq!((&counted["stops"], &counted["blocked"]), (&json!(0), &json!(0)));
        assert_eq!(counted["guarded"], json!({"block": 1, "none": 1}));
        assert_eq!(counted["guards"]["odd"], json!({"fired": 1, "unknown": 1, "would_block": 0}));
        let shown = summary.to_text(Screen::default());
        assert!(shown.contains("other events (2): 1 block, 1 none"), "{shown}");
        assert!(shown.contains("odd           1        1            0"), "{shown}");
        assert!(shown.contains("seen          1        0            1"), "{shown}");
    }

    #[test]
    fn notices_are_no_stops() {
        let notices = ["breaker_open", "run_end", "dead_letter"];
        let entries = notices.map(|it| json!({"session_id": "", "event": it, "decision": "none"}));
        let counted = summary(&entries).to_json();
        assert_eq!((&counted["stops"], &counted["not_judged"]), (&json!(0), &json!(0)));
    }

    #[test]
    fn entries_are_counted() {
        let verdict = |id: &str, status: &str, consequence: &str| json!({"id": id, "status": status, "consequence": consequence});
        let entries = [
            json!({"session_id": "a", "decision": "block", "spoken": true, "release": "", "session_type": "X",
                "verdicts": [verdict("ci_status", "unsatisfied", "blocks"), verdict("todos", "satisfied", "none")],
                "preferences": {"no_auto_merge": true}, "problems": []}),
            json!({"session_id": "a", "decision": "none", "spoken": false, "release": "same_failure", "session_type": "X",
                "verdicts": [verdict("ci_status", "unsatisfied", "blocks"), verdict("next", "unsatisfied", "warns"),
                    {"id": "saved", "status": "unsatisfied", "consequence": "recorded", "would_block": true}],
                "preferences": {"no_auto_merge": false}, "problems": ["x"]}),
            json!({"session_id": "b", "decision": "none", "spoken": false, "verdicts": [verdict("ci_status", "satisfied", "none")]}),
            json!({"session_id": "b", "decision": "block", "spoken": false, "release": "",
                "verdicts": [verdict("saved", "unsatisfied", "blocks")]}),
        ];
        let summary = summary(&entries);
        let counted = summary.to_json();
        assert_eq!((&counted["stops"], &counted["sessions"]), (&json!(4), &json!(2)));
        assert_eq!((&counted["blocked"], &counted["with_problems"]), (&json!(1), &json!(1)));
        assert_eq!(counted["dropped"], json!(1));
        assert_eq!(counted["released"], json!({"same_failure": 1}));
        let ci = json!({"satisfied": 1, "unsatisfied": 2, "unknown": 0, "blocked": 1,
            "released": 1, "warned": 0, "would_block": 0});
        assert_eq!(counted["checks"]["ci_status"], ci);
        assert_eq!(counted["preferences"]["no_auto_merge"], json!({"asked": 2, "found": 1}));
        let shown = summary.to_text(Screen::default());
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines[0],
            "stops: 4, sessions: 2; 0 clean, 1 blocked, 1 released, 1 not evaluated; 1 with problems"
        );
        assert_eq!(lines[1], "  blocks not sent because the state was not saved: 1");
        let row = "ci_status       1   33%      2        0        1         1       0            0";
        assert_eq!(lines[5], row, "{shown}");
        let row = "saved           0    0%      2        0        0         0       0            1";
        assert!(lines.contains(&row), "{shown}");
    }
}
