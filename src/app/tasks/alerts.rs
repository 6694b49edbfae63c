//! How humans are told that they are needed: programs and folders of `escalation.yaml`, each program
//! through its own breaker.

use std::time::Duration;

use super::Stores;
use crate::app::workspace::project;
use crate::limits::{ESCALATIONS_FILE_BYTES_MAX, REMINDING_TIME_MAX};
use crate::policy::resilience::Channel;
use crate::probe::outside_of;
use crate::state::breaker::{BreakerEvent as Result, BreakerResponse as Ask};
use crate::state::escalation::{Escalation, EscalationEffect, EscalationEvent};
use crate::store::document::Documents;
use crate::store::escalations;
use crate::store::file::Durability;
use crate::world::{ExternalCommand, WorldError};

/// Output of an alert's program that is kept, in bytes.
const OUTPUT_MAX: usize = 4096;

impl Stores<'_> {
    /// Tells humans of every open escalation that is due; says what could not be told.
    pub(crate) fn remind(&self) -> Vec<String> {
        if self.policy.escalation.channels.is_empty() {
            return Vec::new();
        }
        let (began, mut problems) = (self.world.elapsed(), Vec::new());
        for it in self.escalations.all() {
            if self.world.elapsed().saturating_sub(began) >= REMINDING_TIME_MAX {
                break;
            }
            let (_, answer) =
                crate::state::escalation::step(&it, EscalationEvent::Looked, self.now);
            if answer == EscalationEffect::Due {
                problems.extend(self.notify(&it));
            }
        }
        problems
    }

    /// Tells humans of one escalation through every channel.
    fn notify(&self, it: &Escalation) -> Vec<String> {
        let mut problems = Vec::new();
        let mut told = false;
        for channel in &self.policy.escalation.channels {
            match self.through(channel, it) {
                Ok(()) => told = true,
                Err(why) => problems.push(format!("channel `{}`: {why}", channel.id)),
            }
        }
        if told && let Err(error) = self.escalations.step(&it.id, EscalationEvent::Told, self.now) {
            problems.push(format!("notified about `{}`, but could not record it: {error}", it.id));
        }
        problems
    }

    fn through(&self, channel: &Channel, it: &Escalation) -> std::result::Result<(), String> {
        if !Channel::may_write_to(&channel.folder) {
            return Err(format!("`folder: {}` is not inside the root", channel.folder));
        }
        if !channel.folder.is_empty() {
            let text = format!("{:#}\n", escalations::record_of(it, None));
            let (durability, bytes_max) = (Durability::default(), ESCALATIONS_FILE_BYTES_MAX);
            let alerts =
                Documents::new(self.world, &self.own, durability, Duration::ZERO, bytes_max);
            // The name is unique: no other process writes this file.
            let saved = self.world.create_folder(&self.own.join(&channel.folder));
            saved
                .and_then(|()| alerts.save(&format!("{}/{}.json", channel.folder, it.id), &text))
                .map_err(|error| error.to_string())?;
        }
        if channel.command.is_empty() {
            return Ok(());
        }
        let settings = self.policy.breaker(&channel.breaker);
        let (breaker, answer) = self.breakers.request(&channel.breaker, &settings, self.now);
        if let Ask::Rejected { .. } = answer {
            return Err(format!(
                "skipped after repeated failures; last error: {}",
                breaker.last_error
            ));
        }
        let ran = self.run(channel, it);
        let result = match &ran {
            Ok(()) => Result::success(),
            Err(why) => Result::failure(why),
        };
        // A breaker that cannot be written counts nothing; the alert stands.
        let _refused = self.breakers.record(&channel.breaker, result, &settings, self.now);
        ran
    }

    fn run(&self, channel: &Channel, it: &Escalation) -> std::result::Result<(), String> {
        let path = self.escalations.path(&it.id);
        let max = ESCALATIONS_FILE_BYTES_MAX;
        let variable = |name: &str, value: &str| (format!("POLICYD_{name}"), value.to_owned());
        let project = project::find(self.world, None);
        let beside = self.own.parent().unwrap_or(&self.own);
        let folders = [project.root.as_path(), &project.main, beside];
        let command = ExternalCommand {
            argv: channel.command.clone(),
            folder: self.own.clone(),
            stdin: self.world.read(&path, max).unwrap_or_default(),
            env: vec![
                variable("ESCALATION", &it.id),
                variable("SEVERITY", &it.severity),
                variable("TITLE", &it.title),
                variable("DOCUMENT", &path.display().to_string()),
            ],
            env_removed: Vec::new(),
            deadline: channel.timeout,
            output_max: OUTPUT_MAX,
            not_from: Some(outside_of(self.world, &folders)),
            ..ExternalCommand::default()
        };
        match self.world.run(&command) {
            Ok(output) if output.code == Some(0) => Ok(()),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                let line = said.lines().next().unwrap_or_default();
                Err(format!("exit {:?}: {line}", output.code.unwrap_or(-1)))
            }
            Err(WorldError::NotFound) => Err("program not found".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}
