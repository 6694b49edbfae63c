//! Notifies humans of escalations through the channels of `escalation.yaml`: programs and directories. Each program has
//! its own breaker.

use super::Stores;
use crate::channel_program::{ChannelProgram, ProgramError};
use policyd_base::limits::{ESCALATIONS_FILE_BYTES_MAX, REMINDING_TIME_MAX};
use policyd_policy::resilience::Channel;
use policyd_state::breaker::{BreakerEvent, BreakerResponse as Ask};
use policyd_state::escalation::{Escalation, EscalationEffect, EscalationEvent};
use policyd_store::document::{DamageAction, DocumentError, StoredDocument};
use policyd_store::escalations;
use policyd_workspace::project;

/// Why a notification channel did not notify.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    #[error("`folder: {0}` is not inside the root")]
    OutsideRoot(String),
    /// The breaker of the channel rejected the call.
    #[error("skipped after repeated failures; last error: {0}")]
    Rejected(String),
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The file could not be written.
    #[error("{}", .0.note())]
    Document(#[from] DocumentError),
}

impl Stores<'_> {
    /// Notifies humans of every open escalation that is due. Returns the notifications that failed.
    pub fn remind(&self) -> Vec<String> {
        if self.policy.escalation.channels.is_empty() {
            return Vec::new();
        }
        let (began, mut problems) = (self.world.elapsed(), Vec::new());
        let open = match self.escalations.all() {
            Ok(open) => open,
            Err(problem) => return vec![problem.note()],
        };
        for it in open {
            if self.world.elapsed().saturating_sub(began) >= REMINDING_TIME_MAX {
                break;
            }
            let (_, answer) =
                policyd_state::escalation::step(&it, EscalationEvent::Looked, self.now);
            if answer == EscalationEffect::Due {
                problems.extend(self.notify(&it));
            }
        }
        problems
    }

    /// Notifies humans of one escalation through every channel.
    fn notify(&self, it: &Escalation) -> Vec<String> {
        let mut problems = Vec::new();
        let mut told = false;
        for channel in &self.policy.escalation.channels {
            match self.through(channel, it) {
                Ok(()) => told = true,
                Err(error) => problems.push(format!("channel `{}`: {error}", channel.id)),
            }
        }
        if told && let Err(error) = self.escalations.step(&it.id, EscalationEvent::Told, self.now) {
            problems.push(format!("notified about `{}`, but could not record it: {error}", it.id));
        }
        problems
    }

    /// Tells a human through one channel that this is a test. `None` if the pack has no such channel.
    pub fn test_channel(&self, id: &str) -> Option<Result<(), ChannelError>> {
        let channel = self.policy.escalation.channels.iter().find(|it| it.id == id)?;
        let text = "This is a test of the channel. Nothing is wrong.".to_owned();
        let test = Escalation {
            id: "test".to_owned(),
            title: "Test of the channel".to_owned(),
            severity: "low".to_owned(),
            reason: text,
            created: self.now,
            ..Escalation::default()
        };
        Some(self.through(channel, &test))
    }

    fn through(&self, channel: &Channel, it: &Escalation) -> Result<(), ChannelError> {
        if !Channel::may_write_to(&channel.folder) {
            return Err(ChannelError::OutsideRoot(channel.folder.clone()));
        }
        if !channel.folder.is_empty() {
            let text = format!("{:#}\n", escalations::record_of(it, None));
            let path = self.own.join(&channel.folder).join(format!("{}.json", it.id));
            let (bytes_max, if_damaged) = (ESCALATIONS_FILE_BYTES_MAX, DamageAction::Refuse);
            let alert = StoredDocument::new(self.world, path, bytes_max, if_damaged);
            // The name is unique: no other process writes this file.
            alert.create_folder()?;
            alert.create(&text)?;
        }
        if channel.command.is_empty() {
            return Ok(());
        }
        let settings = self.policy.breaker(&channel.breaker);
        // An alert is sent also if nothing is known about the calls before it.
        if let Ok((breaker, Ask::Rejected { .. })) =
            self.breakers.request(&channel.breaker, &settings, self.now)
        {
            return Err(ChannelError::Rejected(breaker.last_error));
        }
        let ran = self.run(channel, it);
        let failure = ran.as_ref().err().map(ToString::to_string);
        let result = match &failure {
            None => BreakerEvent::success(),
            Some(why) => BreakerEvent::failure(why),
        };
        // A breaker that cannot be written counts nothing; the alert stands.
        let _refused = self.breakers.record(&channel.breaker, result, &settings, self.now);
        ran
    }

    fn run(&self, channel: &Channel, it: &Escalation) -> Result<(), ChannelError> {
        let path = self.escalations.path(&it.id);
        let max = ESCALATIONS_FILE_BYTES_MAX;
        let project = project::find(self.world, None);
        let beside = self.own.parent().unwrap_or(&self.own);
        let program = ChannelProgram {
            argv: channel.command.clone(),
            folder: self.own.clone(),
            stdin: self.world.read(&path, max).unwrap_or_default(),
            variables: &[
                ("ESCALATION", &it.id),
                ("SEVERITY", &it.severity),
                ("TITLE", &it.title),
                ("DOCUMENT", &path.display().to_string()),
            ],
            deadline: channel.timeout,
            outside: &[project.root.as_path(), &project.main, beside],
        };
        Ok(program.run(self.world)?)
    }
}
