//! The overview of projects: one row each, the projects that need a human first.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use policyd_base::text::counted;
use policyd_facts::shell::quote;
use policyd_record::activity::{LastStop, StopOutcomeWord};
use policyd_record::notice::shown;
use policyd_record::paint::TextColor;
use policyd_record::table::{Align, Screen, TextCell, TextTable};
use policyd_state::run::RunStatus;
use policyd_state::run::budget::TurnCost;
use policyd_yaml::time::{Timestamp, duration_text, short_text};

/// Version of the JSON form.
pub const OVERVIEW_VERSION: u32 = 1;

/// The last supervised run of a project.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRow {
    /// Id of the run.
    pub id: String,
    /// Goal of the run.
    pub goal: String,
    /// Where the run stands.
    #[serde(flatten)]
    pub progress: RunProgress,
    /// Turns so far.
    pub turns: u32,
    /// Tokens of all turns.
    pub tokens: u64,
    /// Cost in USD of the turns whose cost is known.
    pub cost_usd: f64,
    /// Turns of unknown cost.
    pub unpriced_turns: u32,
    /// Last step of the run.
    pub updated: Timestamp,
    /// Whether its task was abandoned or a human dismissed it, so that it does not continue.
    #[serde(skip)]
    pub is_given_up: bool,
    /// Whether a human answered what it ended for, so that it can be resumed.
    #[serde(skip)]
    pub is_answered: bool,
}

impl RunRow {
    /// Returns the cost of all turns.
    #[must_use]
    pub const fn cost(&self) -> TurnCost {
        TurnCost { known_usd: self.cost_usd, unpriced: self.unpriced_turns }
    }

    /// Returns whether it ended for a human, was paused, or was left by its process, and its task was not abandoned.
    #[must_use]
    pub fn waits_for_human(&self) -> bool {
        waiting_run(self).is_some()
    }

    /// Returns whether it ended because a human must decide, after a point in time.
    #[must_use]
    pub fn ended_for_human_since(&self, at: Timestamp) -> bool {
        matches!(self.progress, RunProgress::Ended { status: RunStatus::HumanNeeded, .. })
            && self.updated >= at
    }
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "progress")]
pub enum RunProgress {
    /// A process makes turns.
    Working,
    /// A process waits.
    Waiting {
        /// Reason for the wait.
        reason: String,
    },
    /// A user paused it.
    Paused,
    /// It has not ended, and no process continues it.
    Abandoned,
    /// It ended.
    Ended {
        /// How it ended.
        status: RunStatus,
        /// Reason, in one sentence.
        reason: String,
    },
}

impl RunProgress {
    /// Returns the word of a table.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Waiting { .. } => "waiting",
            Self::Paused => "paused",
            Self::Abandoned => "abandoned",
            Self::Ended { status, .. } => status.as_str(),
        }
    }
}

/// A project.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ProjectRow {
    /// Main checkout of the project.
    pub directory: String,
    /// Why the row is incomplete: a missing directory, an invalid pack, a damaged file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Whether a stored document cannot be read, so that more can wait than the row tells.
    #[serde(skip)]
    pub is_unread: bool,
    /// Why policyd is off or paused there, each with how to end it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<String>,
    /// That rules only observe there, with how to enforce them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observes: Option<String>,
    /// The last supervised run.
    pub run: Option<RunRow>,
    /// The last stop.
    pub last_stop: Option<LastStop>,
    /// Blocked stops in the time of the overview.
    pub blocked_stops: u64,
    /// Released stops in that time.
    pub released_stops: u64,
    /// Tool calls in that time that were blocked, or about which the user was asked.
    pub blocked_calls: u64,
    /// Permission prompts in that time that policyd answered.
    pub approved_calls: u64,
    /// Permission prompts in that time that policyd left to the user.
    pub left_prompts: u64,
    /// Decisions in that time that were only observed.
    pub observed: u64,
    /// Tasks in the dead-letter queue.
    pub dead_letters: usize,
    /// Dead letters that wait for a human.
    pub dead_letters_for_human: usize,
    /// Breakers that reject calls.
    pub open_breakers: Vec<String>,
    /// Number of breakers that permit trial calls only.
    pub half_open_breakers: usize,
    /// What waits for a human, without the run: in the order of the kinds.
    pub waiting: Vec<WaitingItem>,
    /// Used part of the context window in percent, in the session that was evaluated last.
    pub context_percent: Option<u64>,
    /// Cost in USD of that session.
    pub session_cost_usd: Option<f64>,
    /// Newest decision, or last step of the run.
    pub last_activity: Option<Timestamp>,
}

/// Where a human runs the commands that a view names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandScope {
    /// In the only project that the view shows.
    Project,
    /// In any directory: the view shows several projects.
    Anywhere,
}

impl CommandScope {
    /// Returns the scope of a view of this number of projects.
    #[must_use]
    pub const fn of(projects: usize) -> Self {
        if projects > 1 { Self::Anywhere } else { Self::Project }
    }

    /// Returns a command about a project, with `-C DIR` if it must name the project. The inbox finds the project itself.
    #[must_use]
    pub fn command(self, directory: &str, command: &str) -> String {
        match (self, command.strip_prefix("policyd ")) {
            (Self::Anywhere, Some(words)) if !words.starts_with("inbox ") => {
                format!("policyd -C {} {words}", quote(directory))
            }
            (Self::Anywhere | Self::Project, _) => command.to_owned(),
        }
    }
}

/// How much a project needs a human; the greatest need comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    /// Work waits for an answer or a repair.
    Human,
    /// Work ended before it was complete.
    Failed,
    /// Something is worth a look, and work goes on.
    Look,
    /// A run is at work.
    Working,
    /// Nothing is going on.
    Quiet,
}

impl Urgency {
    /// Returns the name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Failed => "failed",
            Self::Look => "look",
            Self::Working => "working",
            Self::Quiet => "quiet",
        }
    }

    /// Returns the word of a table, and its color.
    #[must_use]
    pub const fn cell(self) -> (&'static str, TextColor) {
        match self {
            Self::Human => ("needs you", TextColor::Red),
            Self::Failed => ("failed", TextColor::Red),
            Self::Look => ("look", TextColor::Yellow),
            Self::Working => ("working", TextColor::Green),
            Self::Quiet => ("quiet", TextColor::Dim),
        }
    }
}

impl ProjectRow {
    /// Returns how much the project needs a human.
    #[must_use]
    pub fn urgency(&self) -> Urgency {
        let run = self.run.as_ref().filter(|it| !it.is_given_up).map(|it| &it.progress);
        let of_run = match run {
            Some(RunProgress::Ended { status, .. }) => urgency_after(*status),
            Some(RunProgress::Paused | RunProgress::Abandoned) => Urgency::Human,
            Some(RunProgress::Working | RunProgress::Waiting { .. }) => Urgency::Working,
            None => Urgency::Quiet,
        };
        let released =
            self.last_stop.as_ref().is_some_and(|it| it.outcome == StopOutcomeWord::Released);
        let is_urgent = |it: &WaitingItem| it.kind != WaitingKind::DeadLetter;
        if self.waiting_items().iter().any(is_urgent) || self.dead_letters_for_human > 0 {
            Urgency::Human
        } else if of_run == Urgency::Failed || !self.problems.is_empty() {
            Urgency::Failed
        } else if released || self.dead_letters > 0 || !self.open_breakers.is_empty() {
            Urgency::Look
        } else {
            of_run
        }
    }

    /// Returns what waits for a human, questions first.
    #[must_use]
    pub fn waiting_items(&self) -> Vec<WaitingItem> {
        let mut items = self.waiting.clone();
        let is_asked =
            |run: &RunRow| items.iter().flat_map(|it| &it.related).any(|it| it.is_run(&run.id));
        items.extend(self.run.as_ref().filter(|it| !is_asked(it)).and_then(waiting_run));
        items
    }

    /// Returns the escalations and signals that wait for an answer.
    pub fn questions(&self) -> impl Iterator<Item = &WaitingItem> {
        self.waiting.iter().filter(|it| it.kind.is_question())
    }

    /// Returns the keys of the breakers that a human must reset.
    fn breakers_for_human(&self) -> impl Iterator<Item = &str> {
        let breakers = self.waiting.iter().filter(|it| it.kind == WaitingKind::Breaker);
        breakers.map(|it| it.id.as_str())
    }

    /// Returns the cost of the last run, else of the last session.
    #[must_use]
    pub fn cost(&self) -> Option<TurnCost> {
        let of_session = |it| TurnCost { known_usd: it, unpriced: 0 };
        self.run.as_ref().map(RunRow::cost).or_else(|| self.session_cost_usd.map(of_session))
    }

    /// Returns what waits or failed, the most important first.
    #[must_use]
    pub fn details(&self, scope: CommandScope) -> Vec<(TextColor, String)> {
        let command = |it: &str| scope.command(&self.directory, it);
        let mut details = Vec::new();
        let mut add = |color, text: String| details.push((color, text));
        self.switches.iter().for_each(|it| add(TextColor::Yellow, format!("policyd is {it}")));
        for it in self.questions() {
            add(TextColor::Red, format!("{}: {}", it.kind.name(), it.text));
        }
        for key in self.breakers_for_human() {
            let reset = command(&format!("policyd breaker reset {key}"));
            add(TextColor::Red, format!("breaker {key}: waits for `{reset}`"));
        }
        match (self.dead_letters, self.dead_letters_for_human) {
            (0, _) => {}
            (all, 0) => add(TextColor::Yellow, counted(all, "dead letter")),
            (all, waiting) => add(
                TextColor::Red,
                format!("{}, {waiting} for a human", counted(all, "dead letter")),
            ),
        }
        for key in
            self.open_breakers.iter().filter(|key| self.breakers_for_human().all(|it| it != *key))
        {
            add(TextColor::Yellow, format!("breaker {key}: open"));
        }
        if let Some((color, text)) = self.run.as_ref().and_then(|it| run_detail(it, &command)) {
            add(color, text);
        }
        if let Some(stop) = &self.last_stop
            && stop.outcome != StopOutcomeWord::Passed
            && !stop.reason.is_empty()
        {
            add(TextColor::Yellow, format!("last stop {}: {}", stop.outcome.as_str(), stop.reason));
        }
        details.extend(self.problems.iter().map(|it| (TextColor::Red, it.clone())));
        details
    }
}

/// Something that waits for a human. The command `inbox`, the overview, the report, and the dashboard show the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitingItem {
    /// Id of the escalation, the signal, the task, or the run; key of the breaker.
    pub id: String,
    /// Kind, which decides how it is answered.
    pub kind: WaitingKind,
    /// What is asked, or why it waits, in one line.
    pub text: String,
    /// The command that shows it or lets it continue.
    pub command: String,
    /// What the same failure left. One answer clears all of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<RelatedItem>,
}

/// Something that an answer to another item clears, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RelatedItem {
    /// Key of the breaker, or id of the run.
    pub id: String,
    pub kind: WaitingKind,
}

impl RelatedItem {
    fn is_run(&self, id: &str) -> bool {
        self.kind == WaitingKind::Run && self.id == id
    }
}

impl WaitingItem {
    /// Returns an item of a title, which can be empty, and a text.
    #[must_use]
    pub fn new(kind: WaitingKind, id: &str, title: &str, text: &str) -> Self {
        let parts: Vec<&str> = [title, text].into_iter().filter(|it| !it.is_empty()).collect();
        let command = match kind {
            WaitingKind::Question => "policyd escalation list".to_owned(),
            WaitingKind::Signal => "policyd signal list".to_owned(),
            WaitingKind::RemoteSignal | WaitingKind::Call => {
                format!("policyd inbox answer {id} yes|no")
            }
            WaitingKind::LocalCall => format!("policyd allow --call {id}"),
            WaitingKind::DeadLetter => "policyd dlq list".to_owned(),
            WaitingKind::Breaker => format!("policyd breaker reset {id}"),
            WaitingKind::UnverifiedRun => format!("policyd inbox answer {id} yes|no"),
            WaitingKind::Run => "policyd run --resume".to_owned(),
        };
        let text = shown(&parts.join(": "));
        Self { id: id.to_owned(), kind, text, command, related: Vec::new() }
    }

    /// Adds what the same failure left, and names it in the text.
    #[must_use]
    pub fn with_related(mut self, related: Vec<RelatedItem>) -> Self {
        if !related.is_empty() {
            let names: Vec<String> =
                related.iter().map(|it| format!("{} {}", it.kind.name(), it.id)).collect();
            self.text.push_str(&format!(" (also: {})", names.join(", ")));
        }
        self.related = related;
        self
    }
}

/// Kinds of things that wait for a human. The order is that of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitingKind {
    /// An open escalation.
    Question,
    /// A signal that asks.
    Signal,
    /// A signal of another host of the shared store that asks.
    RemoteSignal,
    /// A blocked tool call of a host of the shared store.
    Call,
    /// A tool call of this machine that was blocked a short time ago.
    LocalCall,
    /// A task in the dead-letter queue without an open question.
    DeadLetter,
    /// A breaker that only a human can reset.
    Breaker,
    /// A run whose work no check could verify.
    UnverifiedRun,
    /// Another run that ended for a human, was paused, or was left by its process.
    Run,
}

impl WaitingKind {
    /// Returns the word that the user reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Signal => "signal",
            Self::RemoteSignal => "signal of another host",
            Self::Call => "blocked call",
            Self::LocalCall => "blocked call",
            Self::DeadLetter => "dead letter",
            Self::Breaker => "breaker",
            Self::UnverifiedRun => "unverified run",
            Self::Run => "run",
        }
    }

    /// Returns whether it waits for an answer.
    #[must_use]
    pub const fn is_question(self) -> bool {
        matches!(self, Self::Question | Self::Signal | Self::RemoteSignal | Self::Call)
    }

    /// Returns what a yes does.
    #[must_use]
    pub const fn yes(self) -> &'static str {
        match self {
            Self::Question | Self::Signal | Self::RemoteSignal | Self::Call => "approve",
            Self::LocalCall => "allow",
            Self::DeadLetter => "retry",
            Self::Breaker => "reset",
            Self::UnverifiedRun => "accept",
            Self::Run => "resume",
        }
    }

    /// Returns what a no does. `None` if a no changes nothing.
    #[must_use]
    pub const fn no(self) -> Option<&'static str> {
        match self {
            Self::Question | Self::Signal | Self::RemoteSignal | Self::Call => Some("reject"),
            Self::DeadLetter => Some("abandon"),
            Self::UnverifiedRun | Self::Run => Some("dismiss"),
            Self::LocalCall | Self::Breaker => None,
        }
    }
}

/// Returns the item of a run that waits for a human.
fn waiting_run(run: &RunRow) -> Option<WaitingItem> {
    if run.is_given_up {
        return None;
    }
    let state = match &run.progress {
        RunProgress::Ended { status, reason } if urgency_after(*status) == Urgency::Human => reason,
        RunProgress::Paused => "paused: it waits for an answer, or for the end of the PAUSE",
        RunProgress::Abandoned => "abandoned: its process ended without a result",
        RunProgress::Ended { .. } | RunProgress::Working | RunProgress::Waiting { .. } => {
            return None;
        }
    };
    let kind = match &run.progress {
        RunProgress::Ended { status, .. } if status.can_be_accepted() => WaitingKind::UnverifiedRun,
        RunProgress::Ended { .. }
        | RunProgress::Paused
        | RunProgress::Abandoned
        | RunProgress::Working
        | RunProgress::Waiting { .. } => WaitingKind::Run,
    };
    let state =
        if run.is_answered { "your answer is recorded; the run can be resumed" } else { state };
    let mut item = WaitingItem::new(kind, &run.id, &run.goal, state);
    if run.progress == RunProgress::Paused {
        // The process of the run waits, so it cannot be resumed.
        "policyd signal consume PAUSE".clone_into(&mut item.command);
    }
    Some(item)
}

fn urgency_after(status: RunStatus) -> Urgency {
    match status {
        RunStatus::Complete | RunStatus::Stopped => Urgency::Quiet,
        RunStatus::CompleteUnclaimed
        | RunStatus::HumanNeeded
        | RunStatus::Unverified
        | RunStatus::DeadLetter => Urgency::Human,
        RunStatus::Stuck
        | RunStatus::Budget
        | RunStatus::MaxIterations
        | RunStatus::TimeUp
        | RunStatus::ContextExhaustion
        | RunStatus::BreakerOpen
        | RunStatus::CircuitBreaker
        | RunStatus::CannotRun
        | RunStatus::Interrupted => Urgency::Failed,
    }
}

fn run_detail(run: &RunRow, command: &dyn Fn(&str) -> String) -> Option<(TextColor, String)> {
    let id = &run.id;
    Some(match &run.progress {
        RunProgress::Working => return None,
        RunProgress::Waiting { reason } => (TextColor::Plain, format!("run waits: {reason}")),
        RunProgress::Paused => (
            TextColor::Red,
            format!(
                "run {id} is paused: `{}` shows what it waits for",
                command("policyd signal list")
            ),
        ),
        RunProgress::Abandoned => (
            TextColor::Red,
            format!(
                "run {id} has not ended, and no process continues it: `{}`",
                command("policyd run --resume")
            ),
        ),
        RunProgress::Ended { status, reason } => match urgency_after(*status) {
            Urgency::Human => (TextColor::Red, format!("run ended: {reason}")),
            Urgency::Failed => (TextColor::Yellow, format!("run ended: {reason}")),
            Urgency::Look | Urgency::Working | Urgency::Quiet => return None,
        },
    })
}

/// Sorts rows: the greatest need first, then the newest activity.
pub fn sort(rows: &mut [ProjectRow]) {
    rows.sort_by(|one, other| {
        let newest = other.last_activity.cmp(&one.last_activity);
        one.urgency()
            .cmp(&other.urgency())
            .then(newest)
            .then_with(|| one.directory.cmp(&other.directory))
    });
}

/// Returns the overview as JSON.
#[must_use]
pub fn to_json(rows: &[ProjectRow], now: Timestamp, since: Duration) -> Value {
    let row = |it: &ProjectRow| {
        let mut value = json!(it);
        if let Some(fields) = value.as_object_mut() {
            fields.insert("urgency".to_owned(), json!(it.urgency()));
        }
        value
    };
    let projects: Vec<Value> = rows.iter().map(row).collect();
    json!({"version": OVERVIEW_VERSION, "timestamp": now, "since_seconds": since.as_secs(),
        "projects": projects})
}

/// Returns the overview as a table. What waits or failed is below its row.
#[must_use]
pub fn to_text(rows: &[ProjectRow], now: Timestamp, since: Duration, screen: Screen) -> String {
    let aligns = [
        Align::Left,
        Align::Left,
        Align::Left,
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
    ];
    let mut table = TextTable::new(0, &aligns);
    let head = ["project", "state", "run", "last stop", "blocked", "context", "USD", "age"];
    table.row(head.map(|it| TextCell::new(it, TextColor::Bold)).to_vec());
    let names: Vec<&str> = rows.iter().map(|it| it.directory.as_str()).collect();
    for row in rows {
        table.row(cells(row, &names, now));
    }
    let scope = CommandScope::of(rows.len());
    let rendered = table.render(screen);
    let style = screen.style();
    let mut lines = rendered.lines();
    let mut out = String::new();
    out.extend(lines.next().map(|it| format!("{it}\n")));
    for (row, line) in rows.iter().zip(lines) {
        out.push_str(line);
        out.push('\n');
        for (color, text) in row.details(scope) {
            let mut paragraph = String::new();
            screen.paragraph(&mut paragraph, "    ", &text.replace('\n', " "));
            paragraph.lines().for_each(|it| {
                out.push_str(&style.paint(color, it));
                out.push('\n');
            });
        }
    }
    out.push_str(&format!("\n{}\n", totals(rows, since)));
    // The choice of the user holds for many projects.
    let mut observing: BTreeMap<&str, usize> = BTreeMap::new();
    for text in rows.iter().filter_map(|it| it.observes.as_deref()) {
        let projects = observing.entry(text).or_default();
        *projects = projects.saturating_add(1);
    }
    for (text, projects) in observing {
        let scope = if projects == rows.len() {
            String::new()
        } else {
            format!("{} of {}: ", counted(projects, "project"), rows.len())
        };
        screen.paragraph(&mut out, "", &format!("{scope}{text}"));
    }
    out
}

fn cells(row: &ProjectRow, all: &[&str], now: Timestamp) -> Vec<TextCell> {
    let (word, color) = row.urgency().cell();
    let run = row.run.as_ref().map_or("–", |it| it.progress.as_str());
    let stop = row.last_stop.as_ref().map_or("–", |it| it.outcome.as_str());
    let blocked = format!("{}+{}", row.blocked_stops, row.blocked_calls);
    let context = row.context_percent.map_or_else(|| "–".to_owned(), |it| format!("{it}%"));
    let cost = row.cost().map_or_else(|| "–".to_owned(), TurnCost::text);
    let age = row.last_activity.map_or_else(|| "–".to_owned(), |it| age(it, now));
    vec![
        short_name(&row.directory, all).into(),
        TextCell::new(word, color),
        run.into(),
        stop.into(),
        blocked.into(),
        context.into(),
        cost.into(),
        age.into(),
    ]
}

/// Returns the last part of a directory, with as many parts before it as distinguish it from all others.
#[must_use]
pub fn short_name(directory: &str, all: &[&str]) -> String {
    let parts: Vec<&str> = directory.split('/').filter(|it| !it.is_empty()).collect();
    let end = |count: usize| parts.get(parts.len().saturating_sub(count)..).unwrap_or_default();
    let is_shared = |end: &str| {
        let suffix = format!("/{end}");
        all.iter().filter(|it| it.ends_with(&suffix)).count() > 1
    };
    let ends = (1..=parts.len()).map(|count| end(count).join("/"));
    ends.into_iter().find(|it| !is_shared(it)).unwrap_or_else(|| directory.to_owned())
}

/// Returns how long ago a point in time was, in the largest unit.
#[must_use]
pub fn age(at: Timestamp, now: Timestamp) -> String {
    let millis = now.millis().saturating_sub(at.millis()).max(0).unsigned_abs();
    let text = short_text(Duration::from_millis(millis));
    let unit = text.find(|it: char| it.is_ascii_alphabetic());
    match unit.and_then(|it| text.get(..=it)) {
        Some(largest) => largest.to_owned(),
        None => text,
    }
}

/// Returns the last line of the overview.
fn totals(rows: &[ProjectRow], since: Duration) -> String {
    let waiting = rows.iter().filter(|it| it.urgency() == Urgency::Human).count();
    let sum = |count: &dyn Fn(&ProjectRow) -> u64| rows.iter().map(count).sum::<u64>();
    let (stops, calls) = (sum(&|it| it.blocked_stops), sum(&|it| it.blocked_calls));
    let released = sum(&|it| it.released_stops);
    let (approved, left) = (sum(&|it| it.approved_calls), sum(&|it| it.left_prompts));
    let prompts = match approved.saturating_add(left) {
        0 => String::new(),
        all => format!(" Permission prompts: {approved} of {all} answered by policyd."),
    };
    format!(
        "{}; projects that need you: {waiting}. Blocked or asked about within {}: {} + {}; released: {}.{prompts}",
        counted(rows.len(), "project"),
        duration_text(since),
        counted(stops, "stop"),
        counted(calls, "tool call"),
        counted(released, "stop"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(directory: &str) -> ProjectRow {
        ProjectRow { directory: directory.to_owned(), ..ProjectRow::default() }
    }

    fn ended(status: RunStatus) -> Option<RunRow> {
        let progress = RunProgress::Ended { status, reason: "the reason".to_owned() };
        Some(RunRow {
            id: "r1".to_owned(),
            goal: "goal".to_owned(),
            progress,
            turns: 3,
            tokens: 1000,
            cost_usd: 1.25,
            unpriced_turns: 0,
            updated: Timestamp::from_millis(0),
            is_given_up: false,
            is_answered: false,
        })
    }

    #[test]
    fn projects_that_need_a_human_come_first() {
        let mut rows = vec![
            row("/w/quiet"),
            ProjectRow { run: ended(RunStatus::Stuck), ..row("/w/stuck") },
            ProjectRow { open_breakers: vec!["api/x".to_owned()], ..row("/w/breaker") },
            ProjectRow { run: ended(RunStatus::HumanNeeded), ..row("/w/asked") },
            ProjectRow { run: ended(RunStatus::Complete), ..row("/w/done") },
        ];
        sort(&mut rows);
        let order: Vec<_> = rows.iter().map(|it| it.directory.as_str()).collect();
        assert_eq!(order, ["/w/asked", "/w/stuck", "/w/breaker", "/w/done", "/w/quiet"]);
        assert_eq!(rows.iter().map(ProjectRow::urgency).max(), Some(Urgency::Quiet));
    }

    #[test]
    fn names_are_as_long_as_they_must_be() {
        let rows = [row("/a/x/app"), row("/a/y/app"), row("/a/tool")];
        let all: Vec<&str> = rows.iter().map(|it| it.directory.as_str()).collect();
        let names: Vec<_> = rows.iter().map(|it| short_name(&it.directory, &all)).collect();
        assert_eq!(names, ["x/app", "y/app", "tool"]);
    }

    #[test]
    fn ages_have_one_unit() {
        let age_of =
            |seconds: i64| age(Timestamp::from_millis(0), Timestamp::from_millis(seconds * 1000));
        assert_eq!(
            [age_of(0), age_of(59), age_of(7260), age_of(200_000)],
            ["0s", "59s", "2h", "2d"]
        );
    }

    #[test]
    fn a_paused_run_is_not_resumed_and_an_unknown_cost_is_not_zero() {
        let mut run = ended(RunStatus::HumanNeeded).unwrap();
        (run.cost_usd, run.unpriced_turns) = (0.0, 2);
        assert_eq!(run.cost().text(), "unknown");
        assert_eq!(waiting_run(&run).unwrap().text, "goal: the reason");
        run.is_answered = true;
        assert!(waiting_run(&run).unwrap().text.contains("can be resumed"));
        run.progress = RunProgress::Paused;
        assert_eq!(waiting_run(&run).unwrap().command, "policyd signal consume PAUSE");
        run.progress = RunProgress::Abandoned;
        assert_eq!(waiting_run(&run).unwrap().command, "policyd run --resume");
    }

    #[test]
    fn commands_name_their_project_if_several_are_shown() {
        let mut run = ended(RunStatus::HumanNeeded).unwrap();
        run.progress = RunProgress::Abandoned;
        let breaker = WaitingItem::new(WaitingKind::Breaker, "api/x", "", "waits for a reset");
        let waiting = vec![breaker.clone()];
        let first = ProjectRow { run: Some(run), waiting, ..row("/w/my app") };
        let text = |rows: &[ProjectRow]| {
            let day = Duration::from_secs(24 * 60 * 60);
            to_text(rows, Timestamp::from_millis(0), day, Screen::default())
        };
        let one = text(std::slice::from_ref(&first));
        assert!(one.contains("`policyd breaker reset api/x`"), "{one}");
        assert!(one.contains("`policyd run --resume`"), "{one}");
        let two = text(&[first, row("/w/b")]);
        assert!(two.contains("`policyd -C '/w/my app' breaker reset api/x`"), "{two}");
        assert!(two.contains("`policyd -C '/w/my app' run --resume`"), "{two}");
        let answer = "policyd inbox answer a yes|no";
        assert_eq!(CommandScope::Anywhere.command("/w/b", answer), answer);
        assert_eq!(CommandScope::of(1).command("/w/b", &breaker.command), breaker.command);
    }

    #[test]
    fn the_table_shows_what_waits_below_its_project() {
        let rows = [ProjectRow {
            waiting: vec![WaitingItem::new(WaitingKind::Question, "q", "", "may I deploy?")],
            dead_letters: 2,
            dead_letters_for_human: 1,
            blocked_stops: 3,
            blocked_calls: 4,
            context_percent: Some(71),
            run: ended(RunStatus::HumanNeeded),
            ..row("/w/app")
        }];
        let screen = Screen { columns: Some(80), color: false };
        let day = Duration::from_secs(24 * 60 * 60);
        let text = to_text(&rows, Timestamp::from_millis(0), day, screen);
        insta::assert_snapshot!(text, @"
        project  state      run           last stop  blocked  context   USD  age
        app      needs you  human_needed  –              3+4      71%  1.25    –
            question: may I deploy?
            2 dead letters, 1 for a human
            run ended: the reason

        1 project; projects that need you: 1. Blocked or asked about within 1d: 3 stops + 4 tool calls; released: 0 stops.
        ");
    }
}
