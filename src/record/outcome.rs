//! Outcomes as text grouped by category, and as versioned JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use super::decision_log::{LoggedGuard, NoOpinionKind, masked_parts};
use super::drawing;
use super::mask::mask;
use super::paint::{AnsiStyle, line};
use policyd_base::limits;
use policyd_evaluation::combine::Decision;
use policyd_evaluation::guards::{GuardVerdict, GuardsOutcome};
use policyd_evaluation::message::indented;
use policyd_evaluation::verdict::{CheckStatus, CheckVerdict, ConditionExplanation, Consequence};
use policyd_evaluation::{StopOutcome, message};
use policyd_fact_table::parts::PartValue;
use policyd_policy::{Mode, Severity};

/// Version of the JSON report.
pub const REPORT_VERSION: u32 = 1;

/// What is known of an evaluation besides the outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportContext {
    /// Neutral name of the event.
    pub event: String,
    /// The session.
    pub session_id: String,
    /// The subagent that wanted to stop, if it was one.
    pub agent_id: Option<String>,
    /// Name of the pack.
    pub pack: String,
    /// Whether it is the pack of the organization.
    pub of_organization: bool,
    /// How the state of the session was saved.
    pub saved: SaveReport,
    /// Why nothing was evaluated, in one sentence.
    pub no_opinion: Option<String>,
    /// Why nothing was evaluated, if policyd was off.
    pub no_opinion_kind: Option<NoOpinionKind>,
    /// Anything the user should know: a broken pack, an unreadable transcript.
    pub problems: Vec<String>,
    /// Preferences that were asked for, and whether they were found.
    pub preferences: BTreeMap<String, bool>,
    /// Time of the whole evaluation, in microseconds.
    pub micros: u64,
    /// Whether the values of conditions are shown.
    pub explained: bool,
    /// What guards said to the event.
    pub guarded: Option<GuardsOutcome>,
}

/// How the state of a session was saved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SaveReport {
    /// Result of the save.
    pub result: SaveResult,
    /// Whether the pack leaves out `fsync`, so that a loss of power can lose the state.
    pub without_fsync: bool,
    /// Whether the pack leaves out the comparison of what was written.
    pub without_verify: bool,
}

/// Result of saving the state of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SaveResult {
    /// Nothing changed.
    #[default]
    Unchanged,
    /// Saved, also if the power fails.
    Durable,
    /// Saved in place only.
    Degraded,
    /// Not saved.
    NotSaved,
    /// Not saved, because nothing is in a dry run.
    DryRun,
}

impl fmt::Display for SaveReport {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str(match self.result {
            SaveResult::Unchanged => "unchanged",
            SaveResult::Durable => "durable",
            SaveResult::Degraded => "degraded",
            SaveResult::NotSaved => "not saved",
            SaveResult::DryRun => "dry run",
        })?;
        let unsafe_settings =
            [(self.without_fsync, "no fsync"), (self.without_verify, "no verify")];
        unsafe_settings
            .iter()
            .filter(|(is_set, _)| *is_set)
            .try_for_each(|(_, what)| write!(text, ", unsafe: {what}"))
    }
}

/// The report as JSON; `outcome` is absent where there was no opinion.
#[must_use]
pub fn to_json(outcome: Option<&StopOutcome>, around: &ReportContext) -> Value {
    let verdicts = outcome.map(|it| it.verdicts.as_slice()).unwrap_or_default();
    json!({
        "version": REPORT_VERSION,
        "event": around.event,
        "session_id": around.session_id,
        "decision": decided(outcome, around).as_str(),
        "release": outcome.map_or("", |it| it.release),
        "no_opinion": around.no_opinion,
        "session_type": outcome.map_or("", |it| it.session_type.as_str()),
        "reason": outcome.map_or_else(|| guarded_reason(around), |it| it.reason.clone()),
        "notice": outcome.map_or("", |it| it.notice.as_str()),
        "summary": outcome.map_or("", |it| it.summary.as_str()),
        "check_results": outcome.map(|it| json!({
            "files_modified": it.state.check_results.files_modified.as_ref(),
            "workflow_compliant": it.state.check_results.workflow_compliant,
            "quality_score": it.state.check_results.quality_score,
        })),
        "consecutive_blocks": outcome.map_or(0, |it| blocks(it, around.agent_id.as_deref())),
        "considerations": verdicts.iter().map(|it| with_values(it, around.explained)).collect::<Vec<_>>(),
        "guards": guards_json(around),
        "preferences": around.preferences,
        "pack": around.pack,
        "saved": around.saved.to_string(),
        "problems": around.problems,
        "micros": around.micros,
    })
}

/// What was decided: about a stop by the considerations, about anything else by guards.
fn decided(outcome: Option<&StopOutcome>, around: &ReportContext) -> Decision {
    let guarded = around.guarded.as_ref().map(|it| it.decision).unwrap_or_default();
    outcome.map(|it| it.decision).unwrap_or_default().combine(guarded)
}

fn guarded_reason(around: &ReportContext) -> String {
    around.guarded.as_ref().map(|it| mask(&it.reason).0.into_owned()).unwrap_or_default()
}

/// What every guard that was judged came to, by id.
fn guards_json(around: &ReportContext) -> Value {
    let Some(guarded) = &around.guarded else { return json!({}) };
    let silent = guarded.judged.iter().map(|id| (id.clone(), json!({"status": "silent"})));
    let said = guarded.verdicts.iter().map(|it| (it.id.clone(), guard_json(it)));
    Value::Object(silent.chain(said).collect())
}

/// Returns the result of one guard without its id, with masked secrets.
#[must_use]
pub fn guard_json(it: &GuardVerdict) -> Value {
    json!(LoggedGuard { id: String::new(), ..LoggedGuard::new(it) })
}

/// Blocks of the agent that wanted to stop, in its episode.
pub(super) fn blocks(outcome: &StopOutcome, agent: Option<&str>) -> u32 {
    let guard = match agent {
        Some(agent) => outcome.state.agents.get(agent),
        None => Some(&outcome.state.main),
    };
    guard.map_or(0, |it| it.consecutive_blocks)
}

/// One verdict as JSON.
#[must_use]
pub fn verdict_json(it: &CheckVerdict) -> Value {
    let why = match &it.status {
        CheckStatus::Skipped(why) => Some((*why).to_owned()),
        CheckStatus::Unknown(why) => Some(why.clone()),
        CheckStatus::Satisfied | CheckStatus::Unsatisfied => None,
    };
    json!({
        "id": it.id,
        "category": it.category,
        "severity": severity(it.severity),
        "mode": mode(it.mode),
        "status": it.status.as_str(),
        "why": why,
        "consequence": it.consequence.as_str(),
        "softened": it.softened,
        "details": it.details,
        "evidence": it.evidence,
        "error": it.error,
        "place": it.place,
        "micros": it.micros,
    })
}

/// One verdict as JSON; `explained`: with the values of its conditions.
fn with_values(it: &CheckVerdict, explained: bool) -> Value {
    let mut value = verdict_json(it);
    if let (Value::Object(fields), false) = (&mut value, it.explanation.is_empty() || !explained) {
        let parts = it.explanation.iter().flat_map(parts_json);
        fields.insert("explanation".to_owned(), parts.collect());
    }
    value
}

/// The parts of a condition, innermost first; places are bytes of the condition.
fn parts_json(it: &ConditionExplanation) -> impl Iterator<Item = Value> {
    masked_parts(&it.parts).into_iter().map(|part| {
        let value = message::cut(&part.found.to_string(), limits::EVIDENCE_CHARS_MAX);
        json!({
            "expression": it.expression.get(part.start..part.end),
            "value": value,
            "reached": part.found != PartValue::NotReached,
            "key": it.key,
            "place": it.place,
            "start": part.start,
            "end": part.end,
        })
    })
}

const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Blocker => "blocker",
        Severity::Warning => "warning",
    }
}

/// Returns the name of a mode, as in the log.
pub const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Warn => "warn",
        Mode::Shadow => "shadow",
    }
}

/// Returns the report as text: the decision, then every check by category.
#[must_use]
pub fn to_text(outcome: Option<&StopOutcome>, around: &ReportContext, color: bool) -> String {
    let paint = AnsiStyle::new(color);
    let mut text = String::new();
    for problem in &around.problems {
        line(&mut text, &format!("{} {problem}", paint.yellow("problem:")));
    }
    if let Some(guarded) = around.guarded.as_ref().filter(|_| outcome.is_none()) {
        guarded_text(&mut text, guarded, paint);
        return text;
    }
    let Some(outcome) = outcome else {
        let why = around.no_opinion.as_deref().unwrap_or("no rule applies");
        line(&mut text, &format!("{} {why}", paint.bold("not evaluated:")));
        return text;
    };
    line(&mut text, &format!("{} {}", paint.bold("decision:"), decision(outcome, paint)));
    let kind = &outcome.session_type;
    line(&mut text, &format!("{} {kind}, {}", paint.bold("session: "), outcome.summary));
    let mut categories: Vec<&str> = Vec::new();
    for it in &outcome.verdicts {
        if !categories.contains(&&*it.category) {
            categories.push(&it.category);
        }
    }
    let width = outcome.verdicts.iter().map(|it| it.id.chars().count()).max().unwrap_or(0);
    for category in categories {
        line(&mut text, "");
        line(&mut text, &paint.bold(category));
        for it in outcome.verdicts.iter().filter(|it| *it.category == *category) {
            verdict_lines(&mut text, it, width, paint);
            if around.explained {
                it.explanation.iter().for_each(|it| drawn(&mut text, it, paint));
            }
        }
    }
    if !outcome.reason.is_empty() {
        line(&mut text, &format!("\n{}\n{}", paint.bold("message to the agent"), outcome.reason));
    }
    if !outcome.notice.is_empty() {
        line(&mut text, &format!("\n{}\n{}", paint.bold("message to the user"), outcome.notice));
    }
    text
}

/// Writes the results of guards as text.
fn guarded_text(text: &mut String, guarded: &GuardsOutcome, paint: AnsiStyle) {
    let decision = guarded.decision.as_str();
    let count = match guarded.judged.len() {
        1 => "1 guard evaluated".to_owned(),
        count => format!("{count} guards evaluated"),
    };
    line(text, &format!("{} {decision} ({count})", paint.bold("decision:")));
    for it in &guarded.verdicts {
        let why = it.unknown.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        let message = mask(&it.message).0.into_owned();
        line(text, &format!("  {} {}{why}: {message}", it.verb.as_str(), it.id));
        line(text, &format!("      {}", it.place));
    }
    for it in guarded.silent.iter().filter(|it| !it.why.is_empty()) {
        line(text, &format!("  passed {}: {}", it.id, mask(&it.why).0));
        line(text, &format!("      {}", it.place));
    }
}

fn decision(outcome: &StopOutcome, paint: AnsiStyle) -> String {
    if outcome.decision == policyd_evaluation::combine::Decision::Block {
        return paint.red("block");
    }
    if outcome.release.is_empty() {
        return paint.green("clean");
    }
    paint.yellow(&format!("released ({})", outcome.release))
}

fn verdict_lines(text: &mut String, it: &CheckVerdict, width: usize, paint: AnsiStyle) {
    let mark = match (&it.status, it.consequence) {
        (CheckStatus::Satisfied, _) => paint.green("pass   "),
        (CheckStatus::Skipped(_), _) => paint.dim("skip   "),
        (_, Consequence::Blocks) => paint.red("block  "),
        (_, Consequence::Warns) => paint.yellow("warn   "),
        (CheckStatus::Unknown(_), _) => paint.yellow("unknown"),
        (CheckStatus::Unsatisfied, Consequence::None | Consequence::Recorded) => {
            paint.dim("log    ")
        }
    };
    let padding = " ".repeat(width.saturating_sub(it.id.chars().count()));
    let column = width.saturating_add(13);
    line(text, &format!("  {mark}  {}{padding}  {}", it.id, indented(&it.details, column)));
    let indent = " ".repeat(column);
    for evidence in &it.evidence {
        line(text, &format!("{indent}{}", paint.dim(&indented(evidence, column))));
    }
    if let Some(why) = &it.allowed {
        line(text, &format!("{indent}{}", paint.dim(&format!("does not block: {why}"))));
    }
    if let Some(why) = it.softened {
        line(text, &format!("{indent}{}", paint.dim(&format!("does not block: {why}"))));
    }
}

fn drawn(text: &mut String, it: &ConditionExplanation, paint: AnsiStyle) {
    let indent = " ".repeat(6);
    line(text, &format!("{indent}{} ({})", it.key, paint.dim(&it.place)));
    for drawn in drawing::draw(&it.expression, &masked_parts(&it.parts)).lines() {
        line(text, format!("{indent}  {drawn}").trim_end());
    }
}
