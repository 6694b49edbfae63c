//! Alerts and scheduled reports while a run is at work: a run is the process that lives overnight.

use std::time::Duration;

use super::Supervisor;
use crate::{alerts, morning};
use policyd_store::alert_settings::AlertSettings;

/// How often a run looks for alerts and reports that are due, at most: it looks between turns.
const INTERVAL: Duration = Duration::from_secs(60);
/// Longest time that a run waits between its turns. A receiver that does not answer is skipped by its breaker then.
const WAIT_OF_RUN: Duration = Duration::from_secs(2);

/// The channels and reports of the user and the organization, and when a run looked at them last.
pub(super) struct AlertTimer {
    settings: AlertSettings,
    /// Time since the start of the process.
    last: Option<Duration>,
}

impl AlertTimer {
    pub(super) fn new(settings: AlertSettings) -> Self {
        Self { settings, last: None }
    }
}

impl Supervisor<'_> {
    /// Sends alerts and makes reports, if the last time was long ago.
    pub(super) fn alert_if_due(&mut self) {
        let elapsed = self.world.elapsed();
        let is_early = |last: Duration| elapsed.saturating_sub(last) < INTERVAL;
        if !self.alerting.last.is_some_and(is_early) {
            self.alerting.last = Some(elapsed);
            self.alert(WAIT_OF_RUN, false);
        }
    }

    /// Sends alerts for at most that time, and makes reports. What fails is reported, and waits for the next time. `is_last`: this is
    /// the last time.
    pub(super) fn alert(&mut self, time_max: Duration, is_last: bool) {
        if self.alerting.settings.channels.is_empty() && self.alerting.settings.reports.is_empty() {
            return;
        }
        let mut problems: Vec<String> = Vec::new();
        match alerts::deliver(self.world, &self.alerting.settings, time_max, is_last) {
            Ok(delivery) => problems.extend(delivery.problems),
            Err(error) => problems.push(error.to_string()),
        }
        match morning::make_due(self.world, &self.alerting.settings) {
            Ok((_, failed)) => problems.extend(failed.iter().map(ToString::to_string)),
            Err(error) => problems.push(error.to_string()),
        }
        problems.iter().for_each(|it| self.problem(&format!("alerts: {it}")));
    }
}
