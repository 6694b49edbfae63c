//! Sends what happened to the channels of the user and the organization. Commands and supervised runs call it; a hook
//! never does. A channel that fails is skipped while its breaker is open, and its alerts wait.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::abandoned_runs;
use crate::alert_groups;
use crate::channel_program::{ChannelProgram, ProgramError};
use crate::overview::ProjectScope;
use crate::sessions::log_reader::{LogContent, LogQuery, LogReader};
use crate::webhook;
use crate::workspace::{local_time, project};
use policyd_base::limits::{ALERT_AGE_MAX, ALERT_RESPONSE_BYTES_MAX, POLICY_FILE_BYTES_MAX};
use policyd_record::alert::{Alert, RecipeParameters, Transport, mail};
use policyd_record::notice::NoticeSeverity;
use policyd_state::breaker::{BreakerEvent, BreakerFailure, BreakerResponse, BreakerSettings};
use policyd_store::alert_settings::{AlertChannel, AlertSettings};
use policyd_store::breakers::record;
use policyd_store::configuration::{Configuration, ConfigurationOwner, ConfigurationProblem};
use policyd_store::document::{DamageAction, DocumentError};
use policyd_store::escalations::EscalationStore;
use policyd_store::file::Durability;
use policyd_store::log_position::LogPosition;
use policyd_store::user::UserDirectory;
use policyd_store::user_state::UserStateFile;
use policyd_world::{HttpMethod, HttpRequest, World, WorldError};
use policyd_yaml::time::Timestamp;

/// File below the user's state directory.
const STATE: &str = "alerts.json";

/// Attempts to send an alert, after which it is dropped.
const ATTEMPTS_MAX: u32 = 12;
/// Wait before the second attempt; each further wait is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(30);
/// Alerts of this age are sent when policyd looks for alerts for the first time.
const FIRST_AGE_MAX: Duration = Duration::from_secs(60 * 60);

/// Why a channel did not take an alert.
#[derive(Debug, thiserror::Error)]
pub enum AlertError {
    /// A file with the address or the secret cannot be read.
    #[error("could not read {}: {source}", path.display())]
    Secret { path: PathBuf, source: WorldError },
    /// The server answered with this status.
    #[error("HTTP {0}: {1}")]
    Status(u16, String),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    World(#[from] WorldError),
}

/// Result of a delivery.
#[derive(Debug, Default)]
pub struct Delivery {
    pub sent: usize,
    /// Alerts that wait: for the end of the quiet time, or for another attempt.
    pub waiting: usize,
    /// Channels that failed lately, and when each is tried again at the earliest.
    pub paused: BTreeMap<String, Timestamp>,
    pub problems: Vec<String>,
}

/// A failure that took this long is that of a receiver that hangs.
const HANGS_FROM: Duration = Duration::from_secs(2);
/// A receiver that hangs is not tried again before this time is over: it holds up the run that sends.
const HANG_PAUSE: Duration = Duration::from_secs(5 * 60);

/// When one pass ends.
struct SendLimits {
    /// Elapsed time from which nothing more is sent.
    until: Duration,
    /// Channels that were tried although they failed lately. `None`: such channels are not tried.
    tried: Option<BTreeSet<String>>,
}

/// Which alerts were seen, sent, and acknowledged.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct AlertState {
    /// Where the reading of each decision log ended.
    #[serde(rename = "cursors")]
    positions: BTreeMap<PathBuf, LogPosition>,
    waiting: Vec<WaitingAlert>,
    sent: Vec<SentAlert>,
    /// Breakers of the channels.
    breakers: Map<String, Value>,
    /// Ids of escalations that a human acknowledged.
    acknowledged: BTreeSet<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WaitingAlert {
    /// Id of the channel.
    pub(crate) channel: String,
    pub(crate) alert: Alert,
    attempts: u32,
    not_before: Timestamp,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct SentAlert {
    channel: String,
    alert: Alert,
    at: Timestamp,
    /// Whether the channel knows that it is over, or received it only as a part of another alert.
    #[serde(default)]
    is_resolved: bool,
}

impl WaitingAlert {
    fn into_sent(self, at: Timestamp) -> SentAlert {
        let alert = Alert { html: None, ..self.alert };
        SentAlert { channel: self.channel, alert, at, is_resolved: false }
    }
}

/// What is lost with the power is sent again.
fn quick() -> Durability {
    Durability { fsync: false, ..Durability::default() }
}

/// Returns the channels and reports of the organization and the user, and what is ignored of both configurations.
pub fn settings(world: &dyn World) -> (AlertSettings, Vec<ConfigurationProblem>) {
    let organization = Configuration::load(world, ConfigurationOwner::Organization);
    let user = Configuration::load(world, ConfigurationOwner::User);
    let (mut settings, mut problems) = (organization.alerts, organization.problems);
    problems.extend(user.problems);
    problems.extend(settings.add(user.alerts).into_iter().map(Into::into));
    (settings, problems)
}

/// Sends what happened in all projects since the last call, and what waited. Begins to send nothing more after `time_max`.
/// Does nothing if another process does it. `is_last`: this process sends nothing later, so a channel that failed is tried once.
///
/// # Errors
/// The state file cannot be read or saved.
pub fn deliver(
    world: &dyn World,
    settings: &AlertSettings,
    time_max: Duration,
    is_last: bool,
) -> Result<Delivery, DocumentError> {
    if settings.channels.is_empty() {
        return Ok(Delivery::default());
    }
    let opened = UserStateFile::open(world, STATE, DamageAction::Refuse, Duration::ZERO);
    let (file, mut state): (_, AlertState) = match opened {
        Ok(opened) => opened,
        Err(DocumentError::Io { source: WorldError::Locked(_), .. }) => {
            return Ok(Delivery::default());
        }
        Err(error) => return Err(error),
    };
    let mut delivery = Delivery::default();
    let age = if !file.is_stored { FIRST_AGE_MAX } else { ALERT_AGE_MAX };
    let mut reader = LogReader::new(world, &ProjectScope::All);
    reader.resume(&state.positions);
    let now = world.now();
    let LogContent { lines, problems: unread, .. } =
        reader.read(LogQuery::since(Some(now.minus(age))));
    for (path, error) in unread {
        delivery.problems.push(format!("could not read {}: {error}", path.display()));
    }
    for it in &lines {
        let alert = it.entry().and_then(|entry| Alert::of_entry(&it.project, &entry));
        let Some(alert) = alert else { continue };
        for channel in &settings.channels {
            if channel.accepts(alert.severity(), Path::new(&alert.project)) {
                state.add(channel, &alert, now);
            }
        }
    }
    state.add_abandoned(world, settings, now.minus(age));
    state.add_repeated(world, settings, now);
    state.positions = reader.positions();
    state.prune(now);
    file.save(&state, &quick())?;
    let until = world.elapsed().saturating_add(time_max);
    let limits = SendLimits { until, tried: is_last.then(BTreeSet::new) };
    send_waiting(world, settings, &file, &mut state, &mut delivery, limits)?;
    if state.resolve(world, settings, &mut delivery, until) {
        file.save(&state, &quick())?;
    }
    delivery.waiting = state.waiting.len();
    Ok(delivery)
}

/// Sends the alerts that are due, and saves each result: after a crash, an alert can be sent again, with the same id.
fn send_waiting(
    world: &dyn World,
    settings: &AlertSettings,
    file: &UserStateFile<'_>,
    state: &mut AlertState,
    delivery: &mut Delivery,
    mut limits: SendLimits,
) -> Result<(), DocumentError> {
    let mut rest = due(world, settings, state).into_iter();
    while let Some((channel, group)) = rest.next() {
        if world.elapsed() >= limits.until {
            state.waiting.extend(group);
            continue;
        }
        let is_first = limits.tried.as_mut().is_some_and(|it| it.insert(channel.id.clone()));
        if let Some(wait) = state.wait_of(channel, world.now()).filter(|_| !is_first) {
            delivery.paused.insert(channel.id.clone(), world.now().plus(wait));
            state.waiting.extend(group);
            continue;
        }
        let is_open = |it: &WaitingAlert| !alert_groups::is_answered(world, &it.alert);
        let group: Vec<WaitingAlert> = group.into_iter().filter(is_open).collect();
        state.send_group(world, channel, group, delivery);
        let done = state.waiting.len();
        state.waiting.extend(rest.as_slice().iter().flat_map(|(_, group)| group.iter().cloned()));
        let saved = file.save(state, &quick());
        state.waiting.truncate(done);
        saved?;
    }
    file.save(state, &quick())
}

/// Takes the alerts that are due: those that become one message, with their channel. What is not due stays. An alert about a
/// consequence of a failure joins the alert about the failure, and counts as sent.
fn due<'s>(
    world: &dyn World,
    settings: &'s AlertSettings,
    state: &mut AlertState,
) -> Vec<(&'s AlertChannel, Vec<WaitingAlert>)> {
    let now = world.now();
    let mut ready = Vec::new();
    for mut it in std::mem::take(&mut state.waiting) {
        let Some(channel) = settings.channel(&it.channel) else { continue };
        if let Some(end) = quiet_until(world, channel, &it.alert, now) {
            it.not_before = it.not_before.max(end);
        }
        if it.not_before > now {
            state.waiting.push(it);
        } else {
            ready.push((channel, it));
        }
    }
    let mut groups: Vec<(&AlertChannel, Vec<WaitingAlert>)> = Vec::new();
    let joined = alert_groups::join_incidents(world, &mut ready);
    let joined = joined.into_iter().map(|it| SentAlert { is_resolved: true, ..it.into_sent(now) });
    state.sent.extend(joined);
    for (channel, it) in ready {
        let is_same = |group: &[WaitingAlert]| {
            let first = group.first();
            channel.recipe.groups
                && first
                    .is_some_and(|of| of.channel == it.channel && of.alert.kind == it.alert.kind)
        };
        match groups.iter_mut().find(|(_, group)| is_same(group)) {
            Some((_, group)) => group.push(it),
            None => groups.push((channel, vec![it])),
        }
    }
    // An alert that the receiver refused does not stay in the way of others.
    groups.sort_by_key(|(_, group)| {
        let attempts = group.iter().map(|it| it.attempts).max();
        (attempts, Reverse(group.iter().map(|it| it.alert.severity()).max()))
    });
    groups
}

/// Returns the end of the quiet time of a channel. `None` if the alert can be sent now.
fn quiet_until(
    world: &dyn World,
    channel: &AlertChannel,
    alert: &Alert,
    now: Timestamp,
) -> Option<Timestamp> {
    let quiet = channel.quiet_hours?;
    if alert.severity() == NoticeSeverity::Critical {
        return None;
    }
    let local = local_time::local(world, now).millis().div_euclid(60_000);
    let minutes = u32::try_from(local.rem_euclid(24 * 60)).unwrap_or(0);
    let left = quiet.left(minutes)?;
    Some(now.plus(Duration::from_secs(u64::from(left).saturating_mul(60))))
}

impl AlertState {
    /// Adds an alert that waits for a channel, unless the same was sent or waits.
    fn add(&mut self, channel: &AlertChannel, alert: &Alert, now: Timestamp) {
        let is_same = |id: &str, other: &Alert| id == channel.id && other.key == alert.key;
        let waits = self.waiting.iter().any(|it| is_same(&it.channel, &it.alert));
        let mut sent = self.sent.iter().filter(|it| is_same(&it.channel, &it.alert));
        if waits || sent.any(|it| now.since(it.at) < channel.duplicate_interval) {
            return;
        }
        let (channel, alert) = (channel.id.clone(), alert.clone());
        self.waiting.push(WaitingAlert { channel, alert, attempts: 0, not_before: now });
    }

    /// Adds each run whose supervisor died since a point in time, once.
    fn add_abandoned(&mut self, world: &dyn World, settings: &AlertSettings, since: Timestamp) {
        for alert in abandoned_runs::alerts(world, since) {
            for channel in &settings.channels {
                let is_sent =
                    |it: &SentAlert| it.channel == channel.id && it.alert.key == alert.key;
                if channel.accepts(alert.severity(), Path::new(&alert.project))
                    && !self.sent.iter().any(is_sent)
                {
                    self.add(channel, &alert, world.now());
                }
            }
        }
    }

    /// Adds escalations again that wait for an answer and were not acknowledged.
    fn add_repeated(&mut self, world: &dyn World, settings: &AlertSettings, now: Timestamp) {
        let mut due = Vec::new();
        for channel in &settings.channels {
            let Some(repeat) = channel.repeat_interval else { continue };
            let mut last: BTreeMap<&str, &SentAlert> = BTreeMap::new();
            let sent = self.sent.iter().filter(|it| it.channel == channel.id);
            sent.filter(|it| it.alert.kind == "escalation").for_each(|it| {
                last.insert(&it.alert.key, it);
            });
            for it in last.into_values() {
                let is_over = now.since(it.at) >= repeat.max(channel.duplicate_interval);
                if is_over
                    && !self.acknowledged.contains(&it.alert.subject)
                    && is_open(world, &it.alert)
                {
                    due.push((channel, it.alert.clone()));
                }
            }
        }
        due.iter().for_each(|(channel, alert)| self.add(channel, alert, now));
    }

    /// Sends alerts of one kind as one message. They wait again if that fails.
    fn send_group(
        &mut self,
        world: &dyn World,
        channel: &AlertChannel,
        group: Vec<WaitingAlert>,
        delivery: &mut Delivery,
    ) {
        let alerts: Vec<Alert> = group.iter().map(|it| it.alert.clone()).collect();
        let message = match alerts.as_slice() {
            [one] => Some(one.clone()),
            [] | [_, ..] => alert_groups::digest(alerts, channel.recipe),
        };
        let Some(message) = message else { return };
        let began = world.elapsed();
        let sent = send(world, channel, &message);
        let failure = sent.as_ref().err().map(ToString::to_string);
        self.record(
            channel,
            failure.as_deref(),
            world.elapsed().saturating_sub(began),
            world.now(),
        );
        let Some(failure) = failure else {
            delivery.sent = delivery.sent.saturating_add(group.len());
            let at = world.now();
            self.sent.extend(group.into_iter().map(|it| it.into_sent(at)));
            return;
        };
        delivery.problems.push(format!("channel `{}`: {failure}", channel.id));
        for mut it in group {
            let wait = FIRST_WAIT.saturating_mul(1_u32 << it.attempts.min(10));
            it.attempts = it.attempts.saturating_add(1);
            it.not_before = world.now().plus(wait);
            if it.attempts < ATTEMPTS_MAX {
                self.waiting.push(it);
            } else {
                delivery.problems.push(format!(
                    "channel `{}`: the alert `{}` is dropped after {ATTEMPTS_MAX} attempts",
                    channel.id, it.alert.title
                ));
            }
        }
    }

    /// Tells the channels that can close an alert what is over. Returns whether a channel received that.
    fn resolve(
        &mut self,
        world: &dyn World,
        settings: &AlertSettings,
        delivery: &mut Delivery,
        until: Duration,
    ) -> bool {
        let mut is_changed = false;
        for position in 0..self.sent.len() {
            let Some(sent) = self.sent.get(position).filter(|it| !it.is_resolved) else { continue };
            let channel = settings.channel(&sent.channel);
            let Some(channel) = channel.filter(|it| it.recipe.resolution.is_some()) else {
                continue;
            };
            if world.elapsed() >= until {
                break;
            }
            let alert = sent.alert.clone();
            if !alert_groups::is_over(world, &alert) || self.wait_of(channel, world.now()).is_some()
            {
                continue;
            }
            let began = world.elapsed();
            let failure = resolve(world, channel, &alert).err().map(|it| it.to_string());
            let took = world.elapsed().saturating_sub(began);
            self.record(channel, failure.as_deref(), took, world.now());
            match failure {
                Some(failure) => {
                    delivery.problems.push(format!("channel `{}`: {failure}", channel.id));
                }
                None => {
                    if let Some(sent) = self.sent.get_mut(position) {
                        sent.is_resolved = true;
                    }
                }
            }
            is_changed = true;
        }
        is_changed
    }

    fn prune(&mut self, now: Timestamp) {
        let oldest = now.minus(ALERT_AGE_MAX.saturating_mul(7));
        self.sent.retain(|it| it.at >= oldest);
    }

    /// Returns how long the breaker of a channel rejects calls. `None`: it admits one now.
    fn wait_of(&mut self, channel: &AlertChannel, now: Timestamp) -> Option<Duration> {
        match self.step(channel, BreakerEvent::Request, now) {
            BreakerResponse::Rejected { wait } => Some(wait.unwrap_or_default()),
            BreakerResponse::Recorded
            | BreakerResponse::Permitted
            | BreakerResponse::WouldReject { .. } => None,
        }
    }

    fn record(
        &mut self,
        channel: &AlertChannel,
        failure: Option<&str>,
        took: Duration,
        now: Timestamp,
    ) {
        let failed = |error| {
            let retry_after = (took >= HANGS_FROM).then_some(HANG_PAUSE);
            BreakerEvent::Failure(BreakerFailure { retry_after, ..BreakerFailure::new(error) })
        };
        self.step(channel, failure.map_or_else(BreakerEvent::success, failed), now);
    }

    fn step(
        &mut self,
        channel: &AlertChannel,
        event: BreakerEvent<'_>,
        now: Timestamp,
    ) -> BreakerResponse {
        let known = self.breakers.get(&channel.id);
        let settings = BreakerSettings::default();
        let (_, record, response) = record::step(known, event, &settings, now);
        if let Some(record) = record {
            self.breakers.insert(channel.id.clone(), record);
        }
        response
    }
}

/// Returns whether the escalation of an alert waits for an answer.
fn is_open(world: &dyn World, alert: &Alert) -> bool {
    let state = project::at(world, Path::new(&alert.project)).state;
    let store = EscalationStore::new(world, &state, Durability::default(), Duration::ZERO);
    // An alert whose escalation is unknown is sent again.
    store
        .all()
        .map_or(true, |all| all.iter().any(|it| it.id == alert.subject && it.closed.is_none()))
}

/// Acknowledges an escalation: its alerts are not sent again. Returns whether it was not acknowledged before.
///
/// # Errors
/// It cannot be saved.
pub fn acknowledge(world: &dyn World, escalation: &str) -> Result<bool, DocumentError> {
    let opened = UserStateFile::open(world, STATE, DamageAction::Refuse, Duration::ZERO)?;
    let (file, mut state): (_, AlertState) = opened;
    let is_new = state.acknowledged.insert(escalation.to_owned());
    state.waiting.retain(|it| it.alert.subject != escalation);
    file.save(&state, &quick())?;
    Ok(is_new)
}

/// Sends an alert through a channel, now.
///
/// # Errors
/// The channel did not take it.
pub fn send(world: &dyn World, channel: &AlertChannel, alert: &Alert) -> Result<(), AlertError> {
    let address = ChannelAddress::of(world, channel)?;
    let parameters = address.parameters(channel);
    match channel.recipe.transport {
        Transport::Post | Transport::PostToTopic | Transport::SignedPost => {
            post(world, channel, &parameters, alert, &parameters.body(alert))
        }
        Transport::Mail => {
            let default = ["sendmail", "-t", "-i"].map(str::to_owned).to_vec();
            let argv = if channel.command.is_empty() { default } else { channel.command.clone() };
            let text = mail(alert, &channel.to, channel.from.as_deref());
            run(world, channel, argv, text, alert)
        }
        Transport::Program => {
            let format = channel.recipe.format;
            let text =
                format!("# {}\n\n{}\n", format.inert(&alert.title), format.inert(&alert.text));
            run(world, channel, channel.command.clone(), text, alert)
        }
    }
}

/// Closes an alert in a channel that can.
fn resolve(world: &dyn World, channel: &AlertChannel, alert: &Alert) -> Result<(), AlertError> {
    let address = ChannelAddress::of(world, channel)?;
    let parameters = address.parameters(channel);
    match parameters.resolution(alert) {
        Some(body) => post(world, channel, &parameters, alert, &body),
        None => Ok(()),
    }
}

/// The address of a channel, with its secret.
struct ChannelAddress {
    url: String,
    secret: String,
}

impl ChannelAddress {
    fn of(world: &dyn World, channel: &AlertChannel) -> Result<Self, AlertError> {
        let text = |path: &Option<PathBuf>| path.as_ref().map(|it| secret(world, it)).transpose();
        let url = text(&channel.url_file)?.unwrap_or_else(|| channel.url.clone());
        Ok(Self { url, secret: text(&channel.secret_file)?.unwrap_or_default() })
    }

    fn parameters<'a>(&'a self, channel: &'a AlertChannel) -> RecipeParameters<'a> {
        RecipeParameters { recipe: channel.recipe, url: &self.url, secret: &self.secret }
    }
}

/// Returns the text of a file without the blanks around it.
fn secret(world: &dyn World, path: &Path) -> Result<String, AlertError> {
    let home = world.env("HOME").map(PathBuf::from);
    let path = match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    };
    let bytes = match UserDirectory::Configuration.path(world) {
        // A relative path is below the configuration, never in the directory of a project.
        Some(folder) => world.read(&folder.join(&path), POLICY_FILE_BYTES_MAX),
        None => world.read(&path, POLICY_FILE_BYTES_MAX),
    };
    let bytes = bytes.map_err(|source| AlertError::Secret { path, source })?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

fn post(
    world: &dyn World,
    channel: &AlertChannel,
    parameters: &RecipeParameters<'_>,
    alert: &Alert,
    body: &Value,
) -> Result<(), AlertError> {
    let body = body.to_string();
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    match channel.recipe.transport {
        Transport::SignedPost => {
            let id = format!("{}-{}", alert.id, channel.id);
            let seconds = world.now().millis().div_euclid(1_000).to_string();
            if !parameters.secret.is_empty() {
                let signature = webhook::sign(parameters.secret, &id, &seconds, &body);
                headers.push((webhook::SIGNATURE.to_owned(), signature));
            }
            headers.push((webhook::ID.to_owned(), id));
            headers.push((webhook::TIMESTAMP.to_owned(), seconds));
        }
        Transport::PostToTopic if !parameters.secret.is_empty() => {
            headers.push(("authorization".to_owned(), format!("Bearer {}", parameters.secret)));
        }
        Transport::Post | Transport::PostToTopic | Transport::Mail | Transport::Program => {}
    }
    let response = world.request(&HttpRequest {
        method: HttpMethod::Post,
        url: parameters.address().to_owned(),
        headers,
        body: body.into_bytes(),
        deadline: channel.timeout,
        bytes_max: ALERT_RESPONSE_BYTES_MAX,
        roots: None,
    })?;
    match response.status {
        200..=299 => Ok(()),
        status => {
            let text = String::from_utf8_lossy(&response.body);
            let line: String = text.lines().next().unwrap_or_default().chars().take(200).collect();
            Err(AlertError::Status(status, line))
        }
    }
}

fn run(
    world: &dyn World,
    channel: &AlertChannel,
    argv: Vec<String>,
    stdin: String,
    alert: &Alert,
) -> Result<(), AlertError> {
    let folder = UserDirectory::State.path(world).unwrap_or_else(|| world.working_folder());
    // An account without state has no folder yet.
    world.create_folder(&folder)?;
    let program = ChannelProgram {
        argv,
        folder,
        stdin: stdin.into_bytes(),
        variables: &[
            ("ALERT", &alert.kind),
            ("SEVERITY", &alert.severity),
            ("TITLE", &alert.title),
            ("PROJECT", &alert.project),
            ("SUBJECT", &alert.subject),
        ],
        deadline: channel.timeout,
        outside: &[Path::new(&alert.project)],
    };
    Ok(program.run(world)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use policyd_base::limits::ALERT_TIME_MAX;
    use policyd_record::alert::Recipe;
    use policyd_state::run::Run;
    use policyd_world::CommandOutput;
    use policyd_world::fake::FakeWorld;
    const LOG: &str = "/w/app/.policyd/logs/decisions.jsonl";
    const HOOK: &str = "https://hook.example/x";
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// A user with one project and these channels, at noon.
    fn world(channels: &str) -> FakeWorld {
        let world = FakeWorld::new();
        world.set_env("HOME", "/home/me");
        world.set_now(Timestamp::parse("2026-01-02T12:00:00Z").unwrap());
        world.put_folder("/w/app");
        let project = json!({"directory": "/w/app", "state_dir": "/w/app/.policyd",
            "since": "2026-01-01T00:00:00Z"});
        world.put("/home/me/.local/state/policyd/projects/a.json", project.to_string());
        world.put("/home/me/.config/policyd/config.yaml", channels);
        world
    }

    fn happens(world: &FakeWorld, kind: &str, subject: &str, outcome: &str) {
        let mut log = world.get(LOG).unwrap_or_default();
        let entry = json!({"id": subject, "timestamp": world.now().to_string(), "event": kind,
            "decision": "none", "notice": {"subject": subject, "outcome": outcome, "text": "why"}});
        log.extend_from_slice(format!("{entry}\n").as_bytes());
        world.put(LOG, log);
    }

    /// Delivers: numbers of sent and waiting alerts and of problems.
    fn delivered(world: &FakeWorld) -> (usize, usize, usize) {
        let (settings, problems) = settings(world);
        assert!(problems.is_empty(), "{problems:?}");
        let it = deliver(world, &settings, ALERT_TIME_MAX, false).unwrap();
        (it.sent, it.waiting, it.problems.len())
    }

    #[test]
    fn an_alert_is_sent_once_by_severity_and_project() {
        let world = world(
            "channels:\n- {id: a, kind: slack, url: 'https://hook.example/x', severity: high}\n\
             - {id: b, kind: teams, url: 'https://hook.example/x', projects: [/elsewhere]}\n",
        );
        world.serve(HOOK, "ok");
        happens(&world, "run_end", "r1", "complete");
        happens(&world, "run_end", "r2", "human_needed");
        happens(&world, "stop", "s", "");
        assert_eq!(delivered(&world), (1, 0, 0));
        assert_eq!(delivered(&world), (0, 0, 0));
        happens(&world, "escalation", "e1", "critical");
        assert_eq!(delivered(&world), (1, 0, 0));
    }

    #[test]
    fn a_run_whose_supervisor_died_is_one_alert() {
        let world = world("channels: [{id: a, kind: slack, url: 'https://hook.example/x'}]\n");
        world.serve(HOOK, "ok");
        let run = Run::new("r1", "Build it", &["agent".to_owned()], world.now());
        world.put("/w/app/.policyd/runs/r1/state.json", json!(run).to_string());
        assert_eq!(delivered(&world), (1, 0, 0));
        world.advance(DAY / 2);
        assert_eq!(delivered(&world), (0, 0, 0), "once");
    }

    #[test]
    fn a_pager_receives_that_an_incident_is_over_once() {
        let world = world("channels: [{id: a, kind: pagerduty, secret_file: key}]\n");
        world.put("/home/me/.config/policyd/key", "k");
        let pager = "https://events.pagerduty.com/v2/enqueue";
        world.serve(pager, "ok");
        let requests = || world.log().iter().filter(|it| it.contains(pager)).count();
        let breaker = |state: &str| {
            let breakers = json!({"api/x": {"state": state, "failure_count": 0}});
            world.put("/w/app/.policyd/state/circuit-breakers.json", breakers.to_string());
        };
        breaker("OPEN");
        happens(&world, "breaker_open", "api/x", "");
        assert_eq!((delivered(&world), requests()), ((1, 0, 0), 1));
        assert_eq!((delivered(&world), requests()), ((0, 0, 0), 1), "it is open");
        breaker("CLOSED");
        assert_eq!((delivered(&world), requests()), ((0, 0, 0), 2));
        assert_eq!((delivered(&world), requests()), ((0, 0, 0), 2), "once");
        // What is over before it is sent is not sent.
        world.advance(DAY / 2);
        happens(&world, "breaker_open", "api/x", "");
        assert_eq!((delivered(&world), requests()), ((0, 0, 0), 2));
    }

    #[test]
    fn the_same_thing_is_not_sent_twice_within_a_time() {
        let world = world(
            "channels: [{id: a, kind: webhook, url: 'https://hook.example/x', duplicate_interval: 30m}]\n",
        );
        world.serve(HOOK, "ok");
        happens(&world, "breaker_open", "api/x", "");
        assert_eq!(delivered(&world), (1, 0, 0));
        world.advance(Duration::from_secs(29 * 60));
        happens(&world, "breaker_open", "api/x", "");
        assert_eq!(delivered(&world), (0, 0, 0));
        world.advance(Duration::from_secs(60));
        happens(&world, "breaker_open", "api/x", "");
        assert_eq!(delivered(&world), (1, 0, 0));
    }

    #[test]
    fn in_the_quiet_time_only_critical_alerts_are_sent() {
        let world = world(
            "channels: [{id: a, kind: ntfy, url: 'https://hook.example/x/topic', quiet_hours: '11:00-13:00'}]\n",
        );
        world.serve("https://hook.example/x/", "ok");
        happens(&world, "dead_letter", "t1", "rule");
        happens(&world, "escalation", "e1", "critical");
        assert_eq!(delivered(&world), (1, 1, 0));
        world.advance(Duration::from_secs(59 * 60));
        assert_eq!(delivered(&world), (0, 1, 0));
        world.advance(Duration::from_secs(60));
        assert_eq!(delivered(&world), (1, 0, 0));
    }

    #[test]
    fn a_channel_that_fails_is_tried_again_through_its_breaker_and_nothing_is_lost() {
        let world = world(
            "channels: [{id: a, kind: webhook, url: 'https://hook.example/x', severity: low}]\n",
        );
        for number in 0..5 {
            happens(&world, "run_end", &format!("r{number}"), "complete");
        }
        let requests = || world.log().iter().filter(|it| it.contains("hook.example")).count();
        // The breaker opens after the third failure.
        assert_eq!(delivered(&world), (0, 5, 3));
        assert_eq!(requests(), 3);
        assert_eq!(delivered(&world), (0, 5, 0));
        world.serve(HOOK, "ok");
        let mut sent = 0;
        for _ in 0..60 {
            world.advance(Duration::from_secs(120));
            sent += delivered(&world).0;
        }
        assert_eq!(sent, 5);
        assert_eq!(delivered(&world), (0, 0, 0));
    }

    #[test]
    fn a_receiver_that_hangs_is_waited_for_once_and_once_more_at_the_end() {
        let world = world("channels: [{id: a, kind: command, command: [notify], severity: low}]\n");
        world.script(&["notify"], Ok(CommandOutput::default()), Duration::from_secs(60));
        let (settings, _) = settings(&world);
        let cost = |is_last| {
            happens(&world, "run_end", &world.now().to_string(), "complete");
            let began = world.elapsed();
            let it = deliver(&world, &settings, Duration::from_secs(2), is_last).unwrap();
            (world.elapsed().saturating_sub(began).as_secs(), it.paused.len())
        };
        assert_eq!(cost(false), (10, 0));
        for _ in 0..4 {
            world.advance(Duration::from_secs(60));
            assert_eq!(cost(false), (0, 1));
        }
        assert_eq!(cost(true), (10, 0), "the end of the run is worth the time limit");
    }

    #[test]
    fn wherever_the_process_dies_each_alert_is_sent_at_least_once() {
        let text = "channels: [{id: a, kind: webhook, url: 'https://hook.example/x'}]\n";
        for op in 1.. {
            let world = world(text);
            world.serve(HOOK, "ok");
            happens(&world, "dead_letter", "t1", "rule");
            happens(&world, "dead_letter", "t2", "rule");
            let (settings, _) = settings(&world);
            world.crash_at(world.ops() + op);
            let first = deliver(&world, &settings, ALERT_TIME_MAX, false);
            world.revive();
            let second = deliver(&world, &settings, ALERT_TIME_MAX, false).unwrap();
            assert_eq!((second.waiting, second.problems.len()), (0, 0), "op {op}");
            let sent = world.log().iter().filter(|it| it.contains("hook.example")).count();
            assert!((2..=4).contains(&sent), "op {op}: {sent}");
            if first.is_ok_and(|it| it.sent == 2) {
                assert_eq!(sent, 2);
                return;
            }
        }
    }

    #[test]
    fn alerts_of_one_kind_are_one_message_for_people_and_each_alert_for_programs() {
        let world = world(
            "channels:\n- {id: a, kind: slack, url: 'https://hook.example/x'}\n\
             - {id: b, kind: webhook, url: 'https://hook.example/x'}\n",
        );
        world.serve(HOOK, "ok");
        for number in 0..6 {
            happens(&world, "dead_letter", &format!("t{number}"), "rule");
        }
        happens(&world, "breaker_open", "api/x", "");
        assert_eq!(delivered(&world), (14, 0, 0));
        let sent = world.log().iter().filter(|it| it.contains("hook.example")).count();
        assert_eq!(sent, 2 + 7, "two messages to the chat, and seven to the program");
        let alert = |number: u32, project: &str, severity: &str| Alert {
            kind: "escalation".to_owned(),
            severity: severity.to_owned(),
            project: project.to_owned(),
            title: format!("title {number}"),
            text: format!("text {number}"),
            ..Alert::default()
        };
        let alerts = vec![alert(1, "/w/a", "low"), alert(2, "/w/b", "critical")];
        let one = alert_groups::digest(alerts, Recipe::find("slack").unwrap()).unwrap();
        assert_eq!((one.title.as_str(), one.severity.as_str()), ("2 questions: b, a", "critical"));
        insta::assert_snapshot!(one.text, @r"
        title 2
        text 2

        title 1
        text 1
        ");
    }

    #[test]
    fn a_digest_that_a_channel_would_cut_has_one_line_for_each_alert() {
        let recipe = Recipe::find("slack").unwrap();
        let alert = |number: usize| Alert {
            kind: "dead_letter".to_owned(),
            title: format!("app: task t{number} failed"),
            text: format!("`a && b {number}` failed\n{}", "&".repeat(200)),
            ..Alert::default()
        };
        let short = alert_groups::digest((0..3).map(alert).collect(), recipe).unwrap();
        assert_eq!(short.text.lines().next(), Some("- app: task t0 failed: `a && b 0` failed"));
        assert_eq!(short.text.lines().count(), 4, "{}", short.text);
        let long = alert_groups::digest((0..90).map(alert).collect(), recipe).unwrap();
        assert!(recipe.format.inert(&long.text).chars().count() <= recipe.chars_max);
        let more = long.text.lines().find(|it| it.starts_with("and ")).unwrap();
        let listed = long.text.lines().filter(|it| it.starts_with("- ")).count();
        assert_eq!(more, format!("and {} more", 90 - listed));
        assert!(long.text.ends_with("`policyd inbox` shows each of them."));
    }

    #[test]
    fn what_was_answered_is_not_sent() {
        let world = world("channels: [{id: a, kind: webhook, url: 'https://hook.example/x'}]\n");
        world.serve(HOOK, "ok");
        let index = |status: &str| json!({"escalations": [{"id": "e1", "status": status}]});
        let save = |status| {
            let file = "/w/app/.policyd/escalations/index.json";
            world.put(file, index(status).to_string());
        };
        save("approved");
        happens(&world, "escalation", "e1", "high");
        assert_eq!(delivered(&world), (0, 0, 0));
        save("open");
        happens(&world, "escalation", "e1", "high");
        assert_eq!(delivered(&world), (1, 0, 0));
    }

    #[test]
    fn an_escalation_is_repeated_until_it_is_acknowledged() {
        let world = world(
            "channels: [{id: a, kind: slack, url: 'https://hook.example/x', repeat_interval: 4h, duplicate_interval: 1m}]\n",
        );
        world.serve(HOOK, "ok");
        world.put("/w/app/.policyd/escalations/e1.md", "May I?");
        happens(&world, "escalation", "e1", "high");
        assert_eq!(delivered(&world), (1, 0, 0));
        world.advance(Duration::from_secs(3 * 60 * 60));
        assert_eq!(delivered(&world), (0, 0, 0));
        world.advance(Duration::from_secs(60 * 60));
        assert_eq!(delivered(&world), (1, 0, 0));
        assert!(acknowledge(&world, "e1").unwrap());
        assert!(!acknowledge(&world, "e1").unwrap());
        world.advance(DAY);
        assert_eq!(delivered(&world), (0, 0, 0));
    }

    #[test]
    fn secrets_are_read_below_the_configuration_of_the_user() {
        let world = world(
            "channels:\n- {id: a, kind: pagerduty, url: 'https://hook.example/x', secret_file: key}\n\
             - {id: b, kind: slack, url_file: ~/hook, severity: low}\n\
             - {id: c, kind: email, to: me@example.org}\n\
             - {id: d, kind: command, command: [notify, x]}\n",
        );
        world.put("/work/key", "of the project");
        world.put("/home/me/hook", "https://hook.example/x\n");
        world.serve(HOOK, "ok");
        let (settings, _) = settings(&world);
        let alert = Alert { title: "t".to_owned(), ..Alert::default() };
        let sent = |id: &str| send(&world, settings.channel(id).unwrap(), &alert);
        assert!(matches!(sent("a"), Err(AlertError::Secret { .. })));
        world.put("/home/me/.config/policyd/key", "KEY\n");
        assert!(sent("a").is_ok() && sent("b").is_ok());
        assert!(matches!(sent("c"), Err(AlertError::Program(ProgramError::NotFound))));
        let fine = CommandOutput { code: Some(0), ..CommandOutput::default() };
        world.script(&["sendmail"], Ok(fine.clone()), Duration::ZERO);
        world.script(&["notify"], Ok(fine), Duration::ZERO);
        assert!(sent("c").is_ok() && sent("d").is_ok());
        let ran = world.ran();
        assert!(
            String::from_utf8_lossy(&ran[ran.len() - 2].stdin).starts_with("To: me@example.org\n")
        );
    }
}
