//! The keys `channels` and `reports` of `config.yaml`: who receives alerts, and when reports are made. Only the user and
//! the organization can set them: what a repository contains must not start programs, send mail, or read secrets.

use std::path::{Path, PathBuf};
use std::time::Duration;

use policyd_policy::field_value::{Word, words};
use policyd_policy::record;
use policyd_policy::record::{Conversion, one_or_list};
use policyd_record::alert::{RECIPE_NAMES, RECIPES, Recipe};
use policyd_record::notice::NoticeSeverity;
use policyd_yaml::Node;
use policyd_yaml::layered_map::LayeredMap;
use policyd_yaml::shape::Kind;

const DAY_MINUTES: u32 = 24 * 60;

record! {
    /// Keys of a channel.
    pub const CHANNEL: RecordType<AlertChannel> = {
        id [mandatory()]: Kind::Text => id, "Name of the channel, as `policyd escalation test` takes it.";
        kind [mandatory()]: Kind::Choice(RECIPE_NAMES) => recipe by RECIPE, "What receives the alerts.";
        url: Kind::Text => url, "Address of the webhook; for `ntfy`, the address of the topic.";
        url_file: Kind::Text => url_file, "File that contains the address, if the address is a secret.";
        secret_file: Kind::Text => secret_file,
            "File that contains the secret: the routing key of `pagerduty`, the signing key of `webhook`, a bearer token \
             of `ntfy`.";
        to: Kind::OneOrList(&Kind::Text) => to by one_or_list(), "Addresses that `email` is sent to.";
        from: Kind::Text => from, "Address that `email` is sent from. Default: what `sendmail` inserts.";
        command: Kind::List(&Kind::Text) => command by one_or_list(),
            "Program and arguments of `command`, which gets the alert as Markdown on standard input; for `email`, the \
             program. Default for `email`: `sendmail -t -i`.";
        severity: Kind::Choice(SEVERITY_NAMES) => severity by SEVERITY, "Lowest severity that is sent.";
        projects: Kind::OneOrList(&Kind::Text) => projects by one_or_list(),
            "Directories: only alerts of projects in them are sent. Default: of all projects.";
        quiet_hours: Kind::Text => quiet_hours by QUIET_HOURS,
            "Local time without alerts, such as `22:00-07:00`. They are sent at its end; `critical` ones at once.";
        repeat_interval: Kind::Duration => repeat_interval,
            "Time after which an escalation without an answer or acknowledgment is sent again. Default: never.";
        duplicate_interval: Kind::Duration => duplicate_interval,
            "Time in which a second alert about the same thing is not sent.";
        timeout: Kind::Duration => timeout, "Time that sending may take.";
    }
    /// Keys of a report.
    pub const REPORT: RecordType<ReportSchedule> = {
        id [mandatory()]: Kind::Text => id, "Name of the report.";
        at [mandatory()]: Kind::Text => at by TIME_OF_DAY,
            "Local time of day at which it is made, such as `07:30`.";
        since: Kind::Duration => since, "Time that it is about.";
        format: words::<MorningFormat>() => format, "Format.";
        file: Kind::Text => file,
            "File that it is written to; `{date}` is the date. A relative path is below the user's state directory.";
        channel: Kind::Text => channel, "Channel that it is sent to.";
    }
}

const SEVERITY_NAMES: &[&str] = &["low", "medium", "high", "critical"];

const RECIPE: Conversion<&Recipe> = Conversion::reading(|node, _| Recipe::find(node.text()?));

const SEVERITY: Conversion<NoticeSeverity> = Conversion {
    read: |node, _| NoticeSeverity::find(node.text()?),
    show: |severity| Some(severity.as_str().into()),
};

const QUIET_HOURS: Conversion<Option<QuietTime>> =
    Conversion::reading(|node, _| QuietTime::parse(node.text()?).map(Some));

const TIME_OF_DAY: Conversion<u32> = Conversion::reading(|node, _| time_of_day(node.text()?));

/// A channel that receives alerts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertChannel {
    pub id: String,
    pub recipe: &'static Recipe,
    pub url: String,
    pub url_file: Option<PathBuf>,
    pub secret_file: Option<PathBuf>,
    pub to: Vec<String>,
    pub from: Option<String>,
    pub command: Vec<String>,
    /// Lowest severity that is sent.
    pub severity: NoticeSeverity,
    /// Directories of the projects; empty for all.
    pub projects: Vec<PathBuf>,
    pub quiet_hours: Option<QuietTime>,
    /// Time after which an unanswered escalation is sent again. `None`: never.
    pub repeat_interval: Option<Duration>,
    /// Time in which a second alert about the same thing is not sent.
    pub duplicate_interval: Duration,
    pub timeout: Duration,
}

/// A time of day without alerts, in minutes since local midnight. It may include midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietTime {
    from: u32,
    to: u32,
}

/// A report that is made every day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportSchedule {
    pub id: String,
    /// Minutes since local midnight.
    pub at: u32,
    pub since: Duration,
    pub format: MorningFormat,
    pub file: Option<String>,
    pub channel: Option<String>,
}

/// Why a channel or a report is ignored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AlertSettingProblem {
    #[error("channel `{0}` has no `url` or `url_file`")]
    NoUrl(String),
    #[error("channel `{0}` has no `secret_file`")]
    NoSecret(String),
    #[error("channel `{0}` has no `to`")]
    NoRecipient(String),
    #[error("channel `{0}` has no `command`")]
    NoCommand(String),
    #[error("channel `{0}`: `{1}` is not a time such as `22:00-07:00`")]
    QuietTime(String, String),
    #[error("two channels are called `{0}`; the first one is used")]
    SameChannel(String),
    #[error("report `{0}`: `{1}` is not a time of day such as `07:30`")]
    TimeOfDay(String, String),
    #[error("report `{0}` has no `file` and no `channel`")]
    NoDestination(String),
}

impl Default for AlertChannel {
    fn default() -> Self {
        let [recipe, ..] = &RECIPES;
        Self {
            id: String::new(),
            recipe,
            url: String::new(),
            url_file: None,
            secret_file: None,
            to: Vec::new(),
            from: None,
            command: Vec::new(),
            severity: NoticeSeverity::Medium,
            projects: Vec::new(),
            quiet_hours: None,
            repeat_interval: None,
            duplicate_interval: Duration::from_secs(60 * 60),
            timeout: Duration::from_secs(10),
        }
    }
}

impl Default for ReportSchedule {
    fn default() -> Self {
        Self {
            id: String::new(),
            at: 0,
            since: Duration::from_secs(24 * 60 * 60),
            format: MorningFormat::Html,
            file: None,
            channel: None,
        }
    }
}

impl QuietTime {
    fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        Some(Self { from: time_of_day(from)?, to: time_of_day(to)? })
    }

    /// Returns how long the quiet time lasts from a local time of day on, in minutes. `None` outside it.
    #[must_use]
    pub fn left(&self, minutes: u32) -> Option<u32> {
        let until = |it: u32| self.to.saturating_add(DAY_MINUTES).saturating_sub(it) % DAY_MINUTES;
        let length = until(self.from);
        let left = until(minutes);
        (left > 0 && left <= length).then_some(left)
    }
}

/// Parses a time of day, as minutes since midnight.
fn time_of_day(text: &str) -> Option<u32> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let number = |text: &str, max: u32| {
        let is_plain = (1..=2).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
        text.parse::<u32>().ok().filter(|it| is_plain && *it <= max)
    };
    Some(number(hours, 23)?.saturating_mul(60).saturating_add(number(minutes, 59)?))
}

/// The channels and reports of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlertSettings {
    pub channels: Vec<AlertChannel>,
    pub reports: Vec<ReportSchedule>,
}

impl AlertSettings {
    /// Reads the keys of a configuration, and returns what is ignored. Invalid values do not count; the check of the
    /// shape reports them.
    #[must_use]
    pub fn from_node(node: &Node) -> (Self, Vec<AlertSettingProblem>) {
        let (mut settings, mut problems) = (Self::default(), Vec::new());
        for it in node.get("channels").map(Node::one_or_items).unwrap_or_default() {
            match AlertChannel::from_node(it) {
                Ok(Some(channel)) if settings.channel(&channel.id).is_some() => {
                    problems.push(AlertSettingProblem::SameChannel(channel.id));
                }
                Ok(Some(channel)) => settings.channels.push(channel),
                Ok(None) => {}
                Err(problem) => problems.push(problem),
            }
        }
        for it in node.get("reports").map(Node::one_or_items).unwrap_or_default() {
            match ReportSchedule::from_node(it) {
                Ok(Some(report)) => settings.reports.push(report),
                Ok(None) => {}
                Err(problem) => problems.push(problem),
            }
        }
        (settings, problems)
    }

    /// Adds those of another file; the first channel of a name is used. Returns what is ignored.
    pub fn add(&mut self, other: Self) -> Vec<AlertSettingProblem> {
        self.reports.extend(other.reports);
        let mut problems = Vec::new();
        for channel in other.channels {
            match self.channel(&channel.id) {
                Some(_) => problems.push(AlertSettingProblem::SameChannel(channel.id)),
                None => self.channels.push(channel),
            }
        }
        problems
    }

    /// Returns the channel with a name.
    #[must_use]
    pub fn channel(&self, id: &str) -> Option<&AlertChannel> {
        self.channels.iter().find(|it| it.id == id)
    }
}

impl AlertChannel {
    /// Reads a channel. `None` if a required key is absent or invalid.
    fn from_node(node: &Node) -> Result<Option<Self>, AlertSettingProblem> {
        let text = |key: &str| node.get(key).and_then(Node::text);
        let mut channel = CHANNEL.read_untyped(&LayeredMap::from_iter([node]));
        if text("id").is_none() || text("kind") != Some(channel.recipe.name) {
            return Ok(None);
        }
        if channel.quiet_hours.is_none()
            && let Some(invalid) = text("quiet_hours")
        {
            return Err(AlertSettingProblem::QuietTime(channel.id, invalid.to_owned()));
        }
        if text("url").is_none() {
            channel.url = channel.recipe.url.unwrap_or_default().to_owned();
        }
        channel.checked().map(Some)
    }

    fn checked(self) -> Result<Self, AlertSettingProblem> {
        let is_sent_to_url = !matches!(self.recipe.name, "email" | "command");
        if is_sent_to_url && self.url.is_empty() && self.url_file.is_none() {
            return Err(AlertSettingProblem::NoUrl(self.id));
        }
        if self.recipe.needs_secret && self.secret_file.is_none() {
            return Err(AlertSettingProblem::NoSecret(self.id));
        }
        if self.recipe.name == "email" && self.to.is_empty() {
            return Err(AlertSettingProblem::NoRecipient(self.id));
        }
        if self.recipe.name == "command" && self.command.is_empty() {
            return Err(AlertSettingProblem::NoCommand(self.id));
        }
        Ok(self)
    }

    /// Returns whether an alert of this severity and project is sent.
    #[must_use]
    pub fn accepts(&self, severity: NoticeSeverity, project: &Path) -> bool {
        let is_listed =
            self.projects.is_empty() || self.projects.iter().any(|it| project.starts_with(it));
        severity >= self.severity && is_listed
    }
}

impl ReportSchedule {
    /// Reads a report. `None` if a required key is absent or invalid.
    fn from_node(node: &Node) -> Result<Option<Self>, AlertSettingProblem> {
        let text = |key: &str| node.get(key).and_then(Node::text);
        let report = REPORT.read_untyped(&LayeredMap::from_iter([node]));
        let (Some(_), Some(at)) = (text("id"), text("at")) else { return Ok(None) };
        if time_of_day(at).is_none() {
            return Err(AlertSettingProblem::TimeOfDay(report.id, at.to_owned()));
        }
        if report.file.is_none() && report.channel.is_none() {
            return Err(AlertSettingProblem::NoDestination(report.id));
        }
        Ok(Some(report))
    }
}

/// Format of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MorningFormat {
    /// Text for a terminal.
    Text,
    /// Markdown for a message.
    Markdown,
    /// One HTML file without scripts.
    Html,
}

impl Word for MorningFormat {
    const NAMES: &'static [&'static str] = &["html", "md", "text"];
    const VALUES: &'static [Self] = &[Self::Html, Self::Markdown, Self::Text];
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use policyd_yaml::{Source, yaml};

    fn settings(text: &str) -> (AlertSettings, Vec<AlertSettingProblem>) {
        let source = Source { name: "config.yaml".to_owned(), text: text.to_owned() };
        AlertSettings::from_node(&yaml::parse(&Arc::new(source)).0.unwrap())
    }

    #[test]
    fn quiet_time_may_include_midnight() {
        let night = QuietTime::parse("22:00-07:00").unwrap();
        assert_eq!(night.left(22 * 60), Some(9 * 60));
        assert_eq!(night.left(6 * 60 + 59), Some(1));
        assert_eq!((night.left(7 * 60), night.left(21 * 60 + 59)), (None, None));
        let noon = QuietTime::parse("12:00-13:30").unwrap();
        assert_eq!(
            (noon.left(13 * 60), noon.left(11 * 60), noon.left(810)),
            (Some(30), None, None)
        );
        for invalid in ["22-07", "24:00-07:00", "22:00", "22:60-07:00", "+2:00-07:00"] {
            assert_eq!(QuietTime::parse(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn channels_need_what_their_recipe_needs() {
        let (read, problems) = settings(
            "channels:\n\
             - {id: a, kind: slack, url: 'https://x.example', severity: high, projects: /w}\n\
             - {id: b, kind: teams}\n\
             - {id: c, kind: pagerduty}\n\
             - {id: d, kind: email}\n\
             - {id: e, kind: command}\n\
             - {id: f, kind: ntfy, url_file: /x, quiet_hours: night}\n\
             - {id: a, kind: ntfy, url_file: /x}\n\
             reports:\n\
             - {id: r, at: '07:30', channel: z}\n\
             - {id: s, at: '7.30', channel: a}\n\
             - {id: t, at: '07:30'}\n",
        );
        let ids: Vec<&str> = read.channels.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(ids, ["a"]);
        assert_eq!(problems.len(), 8, "{problems:?}");
        assert_eq!(read.reports.len(), 1);
        let channel = read.channel("a").unwrap();
        assert!(channel.accepts(NoticeSeverity::High, Path::new("/w/app")));
        assert!(!channel.accepts(NoticeSeverity::Medium, Path::new("/w/app")));
        assert!(!channel.accepts(NoticeSeverity::High, Path::new("/wo/app")));
    }
}
