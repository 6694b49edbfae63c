//! What pages and forms work with: the machine, the view of all projects, the index of decisions, and the human who
//! started the dashboard.

use std::path::Path;

use super::live::Live;
use super::page_error::PageError;
use crate::overview::OpenProject;
use crate::workspace::human::Actor;
use policyd_index::DecisionIndex;
use policyd_store::projects::KnownProject;
use policyd_world::World;

/// The machine, the view of all projects, and what the human chose at the start.
pub(super) struct PageContext<'a> {
    pub(super) world: &'a dyn World,
    pub(super) live: &'a Live<'a>,
    /// Path of the index.
    pub(super) index: &'a Path,
    /// In whose name questions are answered. `None`: the dashboard is read-only.
    pub(super) actor: Option<&'a Actor>,
    /// Key of the signatures of webhook replies. `None`: no reply is accepted.
    pub(super) reply_key: Option<&'a str>,
}

impl PageContext<'_> {
    /// Opens the index to read it.
    pub(super) fn index(&self) -> Result<DecisionIndex, PageError> {
        Ok(DecisionIndex::open_to_read(self.index)?)
    }

    /// Returns a listed project.
    pub(super) fn known(&self, directory: &str) -> Result<KnownProject, PageError> {
        let known = self.live.snapshot().known.get(directory).cloned();
        known.ok_or_else(|| PageError::NoProject(directory.to_owned()))
    }

    /// Returns the directory of any listed project.
    pub(super) fn any_project(&self) -> Option<String> {
        self.live.snapshot().known.keys().next().cloned()
    }

    /// Opens a listed project. An invalid pack is replaced by the built-in one, as commands do.
    pub(super) fn open(&self, directory: &str) -> Result<OpenProject, PageError> {
        OpenProject::of(self.world, &self.known(directory)?)
            .ok_or_else(|| PageError::Refused("The built-in pack is invalid.".to_owned()))
    }
}
