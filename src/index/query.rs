//! What is read from the index: activity of projects, decisions by filters, counts of rules, and counts over time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, params, params_from_iter};

use super::{DecisionIndex, IndexError, integer, mark, moment, outcome_of, result_of};
use policyd_record::activity::Activity;
use policyd_record::indexed_decision::DecisionOutcome;
use policyd_record::rule_result::RuleResult;
use policyd_store::log_files::{LogFile, paths};
use policyd_store::log_position::LogPosition;
use policyd_world::{World, WorldError};
use policyd_yaml::time::Timestamp;

/// Smallest mark of what happens beside decisions, which a separate index finds.
const RARE: i64 = 22;

/// Which decisions are listed. Empty fields match all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecisionFilter {
    /// Main checkout of the project.
    pub project: Option<String>,
    /// Id of a rule that fired or is unknown.
    pub rule: Option<String>,
    /// Results of that rule.
    pub results: Vec<RuleResult>,
    /// Outcomes of the decision.
    pub outcomes: Vec<DecisionOutcome>,
    /// Whether only decisions count in which a rule would have blocked or asked.
    pub would_stop: bool,
    /// Beginning of the id of the session.
    pub session: Option<String>,
    /// Oldest time.
    pub since: Option<Timestamp>,
    /// Time before which decisions count.
    pub until: Option<Timestamp>,
}

/// A listed decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionRow {
    /// Main checkout of the project.
    pub project: String,
    /// Id of the entry.
    pub id: String,
    /// Time of the decision.
    pub at: Timestamp,
    /// Id of the session.
    pub session: String,
    /// Neutral name of the event.
    pub event: String,
    /// Tool that the event was about, or empty.
    pub tool: String,
    /// What was decided.
    pub outcome: DecisionOutcome,
    /// Whether a rule would have blocked or asked if it had been enforced.
    pub would_stop: bool,
    /// The most important finding.
    pub detail: String,
}

/// What the logs of a project tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectActivity {
    /// By main checkout; counts since the time that was asked for.
    pub projects: BTreeMap<String, Activity>,
}

/// Results of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleCounts {
    /// Id of the rule.
    pub rule: String,
    /// Number of decisions by result.
    pub results: BTreeMap<RuleResult, u64>,
    /// Newest decision in which it fired.
    pub last: Timestamp,
}

/// Number of decisions by outcome.
pub type OutcomeCounts = BTreeMap<DecisionOutcome, u64>;

/// Counts of a part of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeSlot {
    /// Begin of the part.
    pub begins: Timestamp,
    /// Decisions of the part.
    pub outcomes: OutcomeCounts,
}

/// Where the line of a decision is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineLocation {
    log: PathBuf,
    position: LogPosition,
    length: usize,
}

impl DecisionIndex {
    /// Returns the number of decisions.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn count(&self) -> Result<u64, IndexError> {
        let count: i64 =
            self.connection.query_row("SELECT count(*) FROM decision", [], |it| it.get(0))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Returns what the logs tell about each project. Decisions count from `since` on.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn activity(&self, since: Timestamp) -> Result<ProjectActivity, IndexError> {
        let mut files: BTreeMap<i64, String> = BTreeMap::new();
        let mut projects: BTreeMap<String, Activity> = BTreeMap::new();
        let mut statement = self.connection.prepare_cached(
            "SELECT file.id, log.project, file.activity FROM file JOIN log ON log.id = file.log",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let project: String = row.get(1)?;
            let part: Activity =
                serde_json::from_str(&row.get::<_, String>(2)?).unwrap_or_default();
            projects.entry(project.clone()).or_default().merge(part);
            files.insert(row.get(0)?, project);
        }
        let mut statement = self.connection.prepare_cached(
            "SELECT file, mark, count(*) FROM decision INDEXED BY decision_time WHERE at >= ?1 \
             GROUP BY file, mark",
        )?;
        let mut rows = statement.query([since.millis()])?;
        while let Some(row) = rows.next()? {
            let project = files.get(&row.get::<_, i64>(0)?);
            let Some(activity) = project.and_then(|it| projects.get_mut(it)) else { continue };
            let (outcome, would_stop) = outcome_of(row.get(1)?);
            count(activity, outcome, would_stop, u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0));
        }
        Ok(ProjectActivity { projects })
    }

    /// Returns decisions, newest first.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn decisions(
        &self,
        filter: &DecisionFilter,
        skip: usize,
        limit: usize,
    ) -> Result<Vec<DecisionRow>, IndexError> {
        let (query, mut values) = list_query(filter);
        values.extend([Value::from(integer(limit)), Value::from(integer(skip))]);
        let mut statement = self.connection.prepare_cached(&query)?;
        let rows = statement.query_map(params_from_iter(values), decision_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the steps in which SQLite lists decisions.
    #[cfg(test)]
    pub(super) fn plan(&self, filter: &DecisionFilter) -> Result<Vec<String>, IndexError> {
        let (query, mut values) = list_query(filter);
        values.extend([Value::from(1), Value::from(0)]);
        let mut statement = self.connection.prepare(&format!("EXPLAIN QUERY PLAN {query}"))?;
        let rows = statement.query_map(params_from_iter(values), |row| row.get(3))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the decision of a project with an id, and where its line is.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn decision(
        &self,
        project: &str,
        id: &str,
    ) -> Result<Option<(DecisionRow, LineLocation)>, IndexError> {
        let query = "SELECT log.project, decision.entry, decision.at, session.text, event.text, tool.text, \
             decision.mark, decision.detail, log.path, file.first_line, decision.start, decision.length \
             FROM log JOIN file ON file.log = log.id JOIN decision ON decision.file = file.id \
             JOIN name AS session ON session.id = decision.session \
             JOIN name AS event ON event.id = decision.event \
             JOIN name AS tool ON tool.id = decision.tool \
             WHERE log.project = ?1 AND decision.entry = ?2 ORDER BY decision.at DESC LIMIT 1";
        let found = self.connection.prepare_cached(query)?.query_row(params![project, id], |it| {
            let location = LineLocation {
                log: PathBuf::from(it.get::<_, String>(8)?),
                position: LogPosition {
                    file: it.get(9)?,
                    offset: u64::try_from(it.get::<_, i64>(10)?).unwrap_or(0),
                },
                length: usize::try_from(it.get::<_, i64>(11)?).unwrap_or(0),
            };
            Ok((decision_row(it)?, location))
        });
        Ok(found.optional()?)
    }

    /// Returns the rules that fired, the most frequent first.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn rules(&self, filter: &DecisionFilter) -> Result<Vec<RuleCounts>, IndexError> {
        let since = filter.since.map_or(i64::MIN, Timestamp::millis);
        let project = match &filter.project {
            Some(_) => {
                "AND firing.file IN (SELECT file.id FROM file JOIN log ON log.id = file.log \
                 WHERE log.project = ?2)"
            }
            None => "AND ?2 IS NULL",
        };
        let query = format!(
            "SELECT name.text, found.result, found.number, found.last FROM \
             (SELECT rule, result, count(*) AS number, max(at) AS last FROM firing \
              INDEXED BY firing_rule WHERE at >= ?1 {project} GROUP BY rule, result) AS found \
             JOIN name ON name.id = found.rule"
        );
        let mut counts: BTreeMap<String, RuleCounts> = BTreeMap::new();
        let mut statement = self.connection.prepare_cached(&query)?;
        let mut rows = statement.query(params![since, filter.project])?;
        while let Some(row) = rows.next()? {
            let (rule, last): (String, i64) = (row.get(0)?, row.get(3)?);
            let entry = counts.entry(rule.clone()).or_insert_with(|| RuleCounts {
                rule,
                results: BTreeMap::new(),
                last: moment(i64::MIN),
            });
            let number = u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0);
            entry.results.insert(result_of(row.get(1)?), number);
            entry.last = entry.last.max(moment(last));
        }
        let mut rules: Vec<RuleCounts> = counts.into_values().collect();
        rules.sort_by_key(|it| std::cmp::Reverse(it.results.values().sum::<u64>()));
        Ok(rules)
    }

    /// Returns the time of the oldest decision that has one.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn oldest(&self, filter: &DecisionFilter) -> Result<Option<Timestamp>, IndexError> {
        let (tables, conditions, values) = filter.conditions();
        let query =
            format!("SELECT min(decision.at) FROM {tables} WHERE {conditions} AND decision.at > 0");
        let mut statement = self.connection.prepare_cached(&query)?;
        let oldest: Option<i64> =
            statement.query_row(params_from_iter(values), |row| row.get(0))?;
        Ok(oldest.map(moment))
    }

    /// Returns the number of decisions in each part of time of a length in milliseconds, oldest first; the first part
    /// begins at `begin`. Parts without a decision are left out.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn over_time(
        &self,
        filter: &DecisionFilter,
        begin: Timestamp,
        slot_ms: u64,
    ) -> Result<Vec<TimeSlot>, IndexError> {
        let (begin, slot_ms) = (begin.millis(), integer(slot_ms.max(1)));
        let filter =
            DecisionFilter { since: filter.since.max(Some(moment(begin))), ..filter.clone() };
        let (tables, conditions, values) = filter.conditions();
        let query = format!(
            "SELECT (decision.at - {begin}) / {slot_ms} AS slot, decision.mark, count(*) FROM {tables} \
             WHERE {conditions} GROUP BY slot, decision.mark ORDER BY slot"
        );
        let mut slots: Vec<TimeSlot> = Vec::new();
        let mut statement = self.connection.prepare_cached(&query)?;
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            let begins =
                moment(row.get::<_, i64>(0)?.saturating_mul(slot_ms).saturating_add(begin));
            if slots.last().is_none_or(|it| it.begins != begins) {
                slots.push(TimeSlot { begins, outcomes: OutcomeCounts::new() });
            }
            let number = u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0);
            if let Some(slot) = slots.last_mut() {
                let count = slot.outcomes.entry(outcome_of(row.get(1)?).0).or_default();
                *count = count.saturating_add(number);
            }
        }
        Ok(slots)
    }
}

impl DecisionFilter {
    /// Column with the time, by whose index decisions are found in their order.
    const fn time(&self) -> &'static str {
        if self.rule.is_some() { "firing.at" } else { "decision.at" }
    }

    /// Whether only what happens beside decisions is wanted.
    fn is_rare(&self) -> bool {
        !self.outcomes.is_empty() && self.outcomes.iter().all(|it| mark(*it, false) >= RARE)
    }

    /// Tables, conditions, and their values in SQL.
    fn conditions(&self) -> (&'static str, String, Vec<Value>) {
        let mut conditions = vec!["1".to_owned()];
        let mut values: Vec<Value> = Vec::new();
        let time = self.time();
        if let Some(rule) = &self.rule {
            conditions.push("firing.rule = (SELECT id FROM name WHERE text = ?)".to_owned());
            values.push(rule.clone().into());
            if !self.results.is_empty() {
                let numbers = self.results.iter().map(|it| super::result_number(*it));
                conditions.push(format!("firing.result IN ({})", list(numbers)));
            }
        }
        if let Some(since) = self.since {
            conditions.push(format!("{time} >= ?"));
            values.push(since.millis().into());
        }
        if let Some(until) = self.until {
            conditions.push(format!("{time} < ?"));
            values.push(until.millis().into());
        }
        if let Some(project) = &self.project {
            let files =
                "SELECT file.id FROM file JOIN log ON log.id = file.log WHERE log.project = ?";
            conditions.push(format!("decision.file IN ({files})"));
            values.push(project.clone().into());
        }
        if !self.outcomes.is_empty() {
            let numbers = self.outcomes.iter().map(|it| mark(*it, false) / 2);
            if self.is_rare() {
                conditions.push(format!("decision.mark >= {RARE}"));
            }
            conditions.push(format!("decision.mark / 2 IN ({})", list(numbers)));
        }
        if let Some(session) = &self.session {
            let ids = "decision.session IN (SELECT id FROM name WHERE text >= ? AND text < ?)";
            conditions.push(ids.to_owned());
            values.push(session.clone().into());
            values.push(format!("{session}\u{10ffff}").into());
        }
        if self.would_stop {
            conditions.push("decision.mark % 2 = 1".to_owned());
        }
        let tables = match (&self.rule, self.is_rare()) {
            (Some(_), _) => {
                "firing JOIN decision ON decision.file = firing.file AND decision.start = firing.start"
            }
            (None, true) => "decision INDEXED BY decision_rare",
            (None, false) => "decision",
        };
        (tables, conditions.join(" AND "), values)
    }
}

/// Returns the query of a list of decisions. Its last values are the limit and the offset.
fn list_query(filter: &DecisionFilter) -> (String, Vec<Value>) {
    let (tables, conditions, values) = filter.conditions();
    let query = format!(
        "SELECT log.project, decision.entry, decision.at, session.text, event.text, tool.text, \
         decision.mark, decision.detail \
         FROM {tables} \
         JOIN file ON file.id = decision.file JOIN log ON log.id = file.log \
         JOIN name AS session ON session.id = decision.session \
         JOIN name AS event ON event.id = decision.event \
         JOIN name AS tool ON tool.id = decision.tool \
         WHERE {conditions} ORDER BY {time} DESC LIMIT ? OFFSET ?",
        time = filter.time(),
    );
    (query, values)
}

/// Numbers in SQL.
fn list(numbers: impl Iterator<Item = i64>) -> String {
    numbers.map(|it| it.to_string()).collect::<Vec<_>>().join(", ")
}

fn decision_row(row: &Row<'_>) -> Result<DecisionRow, rusqlite::Error> {
    let (outcome, would_stop) = outcome_of(row.get(6)?);
    Ok(DecisionRow {
        project: row.get(0)?,
        id: row.get(1)?,
        at: moment(row.get(2)?),
        session: row.get(3)?,
        event: row.get(4)?,
        tool: row.get(5)?,
        outcome,
        would_stop,
        detail: row.get(7)?,
    })
}

/// Adds decisions to the counts of a project, as the overview of one project counts them.
fn count(activity: &mut Activity, outcome: DecisionOutcome, would_stop: bool, number: u64) {
    if would_stop {
        activity.observed = activity.observed.saturating_add(number);
    }
    let counted = match outcome {
        DecisionOutcome::BlockedStop => &mut activity.blocked_stops,
        DecisionOutcome::ReleasedStop => &mut activity.released_stops,
        DecisionOutcome::BlockedCall | DecisionOutcome::Halted | DecisionOutcome::Asked => {
            &mut activity.blocked_calls
        }
        DecisionOutcome::ApprovedCall => &mut activity.approved_calls,
        DecisionOutcome::LeftPrompt => &mut activity.left_prompts,
        DecisionOutcome::PassedStop
        | DecisionOutcome::Noted
        | DecisionOutcome::Switched
        | DecisionOutcome::NotEvaluated
        | DecisionOutcome::RunEnded
        | DecisionOutcome::Escalated
        | DecisionOutcome::CallRequested
        | DecisionOutcome::BreakerOpened
        | DecisionOutcome::BreakerHalfOpened
        | DecisionOutcome::BreakerClosed
        | DecisionOutcome::DeadLettered => return,
    };
    *counted = counted.saturating_add(number);
}

impl LineLocation {
    /// Reads the line from the log; `None` if its file was rotated away or rewritten since.
    #[must_use]
    pub fn read(&self, world: &dyn World) -> Option<Vec<u8>> {
        paths(&self.log).find_map(|path| self.read_from(world, &path).ok().flatten())
    }

    fn read_from(&self, world: &dyn World, path: &Path) -> Result<Option<Vec<u8>>, WorldError> {
        let file = LogFile::open(world, path)?.filter(|it| it.first_line == self.position.file);
        let Some(mut file) = file else { return Ok(None) };
        let line = file.read(self.position.offset, self.length)?;
        Ok(Some(line).filter(|it| it.len() == self.length))
    }
}
