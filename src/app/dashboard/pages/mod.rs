//! The pages in HTML. Every text of a log, a transcript, or an agent is escaped by the templates.

mod breakers;
mod decisions;
pub(super) mod layout;
mod overview;
mod playground;
mod rules;
mod runs;
mod waiting;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::live::{Live, Snapshot};
use super::{PageRequest, Reply, actions, replies};
use crate::metrics;
use crate::overview::OpenProject;
use crate::webhook::SignatureError;
use crate::workspace::human::Actor;
use policyd_index::{DecisionIndex, IndexError};
use policyd_report::overview::short_name;
use policyd_store::projects::KnownProject;
use policyd_world::World;
use policyd_yaml::time::{Timestamp, parse_duration};

pub(super) use decisions::find as find_decision;

/// The page that evaluates rules of the user. Its form changes nothing, so a read-only dashboard has it, too.
pub(super) const PLAYGROUND: &str = "/playground";

/// Makes pages.
pub(super) struct Pages<'a> {
    pub(super) world: &'a dyn World,
    pub(super) live: &'a Live<'a>,
    /// Path of the index.
    pub(super) index: &'a Path,
    /// In whose name questions are answered. `None`: the dashboard is read-only.
    pub(super) actor: Option<&'a Actor>,
    /// Key of the signatures of webhook replies. `None`: no reply is accepted.
    pub(super) reply_key: Option<&'a str>,
}

/// Why a page was not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    #[error("The page does not exist.")]
    NoPage,
    /// The project is not listed.
    #[error("The project {0} is not listed. `policyd status --all` shows the listed projects.")]
    NoProject(String),
    /// The record of a decision does not exist any more.
    #[error("The log does not contain the decision {0} anymore. Old logs are removed.")]
    NoDecision(String),
    #[error("The run does not exist.")]
    NoRun,
    #[error("The index of decisions cannot be read: {0}")]
    Index(#[from] IndexError),
    /// A change was not made.
    #[error("{0}")]
    Refused(String),
    /// A webhook reply is rejected.
    #[error("The reply is rejected: {0}.")]
    Signature(SignatureError),
}

/// What every page shows and needs.
pub(super) struct PageView<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) form_token: &'a str,
    pub(super) is_read_only: bool,
    pub(super) now: Timestamp,
    pub(super) query: &'a BTreeMap<String, String>,
}

impl PageView<'_> {
    /// Returns a field of the address that is not empty.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str).filter(|it| !it.is_empty())
    }

    /// Returns the length of time that the address asks for, with its text; a day if it names none.
    pub(super) fn since(&self) -> (Duration, String) {
        let named =
            self.field("since").and_then(|it| Some((parse_duration(it).ok()?, it.to_owned())));
        named.unwrap_or_else(|| (Duration::from_secs(24 * 60 * 60), "24h".to_owned()))
    }

    /// Returns the time before which nothing counts.
    pub(super) fn oldest(&self) -> Timestamp {
        self.now.minus(self.since().0)
    }

    /// Returns the number of the page of a list, from 0.
    pub(super) fn page(&self) -> usize {
        self.field("page").and_then(|it| it.parse().ok()).unwrap_or(0)
    }

    /// Returns the shortest name that distinguishes a project.
    pub(super) fn name(&self, project: &str) -> String {
        let all: Vec<&str> = self.snapshot.known.keys().map(String::as_str).collect();
        short_name(project, &all)
    }
}

impl Pages<'_> {
    /// Makes the page of a request, or does what its form asks for.
    pub(super) fn reply(&self, request: &PageRequest) -> Reply {
        let made = match &request.form {
            None if request.message.is_some() => request
                .message
                .as_ref()
                .map_or(Err(PageError::NoPage), |it| replies::accept(self, it)),
            Some(form) if request.path != PLAYGROUND => actions::act(self, &request.path, form),
            Some(_) | None => self.page(request),
        };
        made.unwrap_or_else(|error| match error {
            PageError::NoPage
            | PageError::NoProject(_)
            | PageError::NoDecision(_)
            | PageError::NoRun => Reply::NotFound(error.to_string()),
            PageError::Refused(why) => Reply::Refused(why),
            PageError::Signature(_) => Reply::Unsigned(error.to_string()),
            PageError::Index(_) => Reply::Failed(error.to_string()),
        })
    }

    fn page(&self, request: &PageRequest) -> Result<Reply, PageError> {
        let snapshot: Arc<Snapshot> = self.live.snapshot();
        if request.path == "/metrics" {
            let metrics = match snapshot.is_complete {
                true => metrics::of_rows(self.world, &snapshot.rows, &snapshot.logs),
                false => metrics::collect(self.world),
            };
            return Ok(match metrics {
                Ok(text) => Reply::Metrics(text),
                Err(error) => Reply::Failed(error.to_string()),
            });
        }
        let view = PageView {
            snapshot: &snapshot,
            form_token: &request.form_token,
            is_read_only: self.actor.is_none(),
            now: self.world.now(),
            query: &request.query,
        };
        let page = match request.path.as_str() {
            "/" => overview::all(self, &view, self.live.since()),
            "/project" => overview::one(self, &view)?,
            "/decisions" => decisions::list(self, &view)?,
            "/decision" => decisions::one(self, &view)?,
            "/rules" => rules::page(self, &view)?,
            "/breakers" => breakers::page(self, &view)?,
            "/waiting" => waiting::page(self, &view),
            "/runs" => runs::list(self, &view),
            "/run" => runs::one(self, &view)?,
            PLAYGROUND => playground::page(self, &view, request.form.as_ref()),
            _ => return Err(PageError::NoPage),
        };
        Ok(Reply::Page(page))
    }

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
