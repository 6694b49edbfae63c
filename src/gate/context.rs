//! The inputs that all parts of an evaluation share: the event, the policy, the project, and where the session saves its
//! state.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::time::Duration;

use super::admission::AdmittedEvent;
use super::loaded_policy::LoadedPolicy;
use super::organization_layer::OrganizationLayer;
use super::request::{Request, Supervision};
use policyd_evaluation::situation::Matchers;
use policyd_facts::event::EventKind;
use policyd_packs::FoundPack;
use policyd_policy::Policy;
use policyd_store::allowance::Allowance;
use policyd_store::breakers::BreakerStore;
use policyd_store::session::SessionStore;
use policyd_store::subagents;
use policyd_tasks::{StoreLocation, Stores};
use policyd_workspace::project::{self, Project};
use policyd_world::World;

/// One event, with the policy and the project by which it is evaluated.
pub(super) struct GateContext<'a> {
    pub(super) world: &'a dyn World,
    pub(super) request: &'a Request<'a>,
    pub(super) policy: &'a Policy,
    pub(super) words: &'a Matchers,
    /// Where the pack was found.
    pub(super) found: Option<&'a FoundPack>,
    pub(super) project: &'a Project,
    pub(super) store: SessionStore<'a>,
    pub(super) state_dir: PathBuf,
    /// Rules and calls that the user lets pass now. `None` if the user cannot let any pass.
    pub(super) allowances: Option<&'a [Allowance]>,
    /// Whether the rules are those of the organization: then nothing that the user chose counts.
    pub(super) is_organization: bool,
    /// Whether guards are only asked if they object to an approval.
    pub(super) is_approval: bool,
    /// The rules of the organization, which can object to an approval.
    pub(super) organization: Option<&'a OrganizationLayer>,
    /// Whether a user is present, once [`GateContext::is_attended`] found out.
    pub(super) attended: OnceCell<bool>,
}

impl<'a> GateContext<'a> {
    /// Creates the context of an event. Reads no file.
    pub(super) fn new(
        world: &'a dyn World,
        request: &'a Request<'a>,
        loaded: &'a LoadedPolicy,
        admitted: &'a AdmittedEvent,
    ) -> Self {
        let allowances = admitted.allowances.as_deref();
        Self { allowances, ..Self::of_project(world, request, loaded, &admitted.project) }
    }

    /// Creates the context of an event in a project, without what the user lets pass.
    pub(super) fn of_project(
        world: &'a dyn World,
        request: &'a Request<'a>,
        loaded: &'a LoadedPolicy,
        project: &'a Project,
    ) -> Self {
        let LoadedPolicy { policy, words, found } = loaded;
        let (store, state_dir) = project::sessions(world, project, &policy.settings);
        let found = found.as_deref();
        let (allowances, is_organization) = (None, false);
        Self {
            world,
            request,
            policy,
            words,
            found,
            project,
            store,
            state_dir,
            allowances,
            is_organization,
            is_approval: false,
            organization: None,
            attended: OnceCell::new(),
        }
    }

    /// Creates a context for the question whether guards object to the approval of the event.
    pub(super) fn for_approval<'b>(&'b self, request: &'b Request<'b>) -> GateContext<'b>
    where
        'a: 'b,
    {
        let (store, state_dir) = project::sessions(self.world, self.project, &self.policy.settings);
        GateContext {
            world: self.world,
            request,
            policy: self.policy,
            words: self.words,
            found: self.found,
            project: self.project,
            store,
            state_dir,
            allowances: None,
            is_organization: self.is_organization,
            is_approval: true,
            organization: None,
            attended: OnceCell::new(),
        }
    }

    /// Returns whether a user is present who can answer a question.
    pub(super) fn is_attended(&self) -> bool {
        *self.attended.get_or_init(|| self.request.is_attended(self.world))
    }

    /// Returns whether the event happens in a turn of a supervised run, after which another one follows.
    pub(super) fn is_supervised(&self) -> bool {
        self.request.supervision == Supervision::Turn
    }

    /// Opens the breakers. Those of the organization's probes are its own: a user cannot force them open.
    pub(super) fn breakers(&self) -> BreakerStore<'a> {
        let directory = if self.is_organization { &self.store.root } else { &self.state_dir };
        BreakerStore::new(self.world, directory, self.store.durability.clone())
    }

    /// Opens the stores of tasks and signals. `lock_wait` is the longest wait for a lock.
    pub(super) fn stores(&self, lock_wait: Duration) -> Stores<'a> {
        let (state_dir, durability) = (self.state_dir.as_path(), &self.store.durability);
        let location = StoreLocation { state_dir, durability, lock_wait };
        Stores::new(self.world, self.policy, location)
    }

    /// Returns the path of the transcript's cursor, beside the state. The transcript of a subagent has its own cursor.
    pub(super) fn cursor_path(&self) -> PathBuf {
        let event = &self.request.event;
        let folder = self.store.paths(&event.session_id).folder;
        let subagent = event.agent_id.as_deref().filter(|_| event.kind == EventKind::SubagentStop);
        folder.join(match subagent {
            Some(agent) => subagents::cursor_name(agent),
            None => "cursor.bin".to_owned(),
        })
    }
}
