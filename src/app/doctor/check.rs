//! The result of one inspection.

use std::path::Path;

use policyd_world::{World, WorldError};

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckHealth {
    /// As it should be.
    Good,
    /// Something the user should know.
    Look,
    /// It does not work.
    Bad,
}

impl CheckHealth {
    /// Returns the word that a user reads.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Look => "warn",
            Self::Bad => "FAIL",
        }
    }

    /// Returns the word of the JSON form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Look => "look",
            Self::Bad => "failed",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone)]
pub struct DoctorCheck {
    /// What, in one or two words.
    pub about: &'static str,
    pub health: CheckHealth,
    /// What was seen.
    pub text: String,
    /// More of it, a line each: what the agent would see.
    pub more: Vec<String>,
}

impl DoctorCheck {
    /// Creates the result of a check.
    pub fn new(about: &'static str, health: CheckHealth, text: impl Into<String>) -> Self {
        Self { about, health, text: text.into(), more: Vec::new() }
    }

    /// Creates the result of a check that found no problem.
    pub fn good(about: &'static str, text: impl Into<String>) -> Self {
        Self::new(about, CheckHealth::Good, text)
    }
}

/// Creates and removes a file in a directory.
pub(super) fn try_to_write(world: &dyn World, directory: &Path) -> Result<(), WorldError> {
    let trial = directory.join(".policyd-doctor.tmp");
    world.write(&trial, b"{}").and_then(|()| world.remove(&trial))
}
