//! What waits on the hosts of the shared store: blocked tool calls of all hosts, and signals of other hosts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use policyd_evaluation::call_code;
use policyd_report::overview::{WaitingItem, WaitingKind};
use policyd_store::file::Durability;
use policyd_store::shared::action::{ApprovalChange, SharedAction};
use policyd_store::shared::settings::SharedSubject;
use policyd_store::shared::{NamedRequest, NamedSignal, QueuedOperation, SharedStore};
use policyd_world::World;

/// Items of a kind at most.
const ITEMS_MAX: usize = 60;

/// What waits on the hosts of the shared store.
#[derive(Debug, Default)]
pub struct SharedItems {
    /// Blocked tool calls of all hosts.
    pub calls: Vec<SharedCall>,
    /// Signals of other hosts that ask, with a project of this host that knows them.
    pub signals: Vec<(PathBuf, NamedSignal)>,
    /// Why some of them are unknown.
    pub problems: BTreeSet<String>,
}

/// A blocked tool call of a host.
#[derive(Debug)]
pub struct SharedCall {
    /// A project of this host that knows the call.
    pub directory: PathBuf,
    pub named: NamedRequest,
    /// Whether an answer of this host waits for the server.
    pub is_queued: bool,
}

impl SharedItems {
    /// Reads the local copies of projects: their directories, and their state directories. Each project has a copy.
    #[must_use]
    pub fn of(world: &dyn World, projects: impl Iterator<Item = (PathBuf, PathBuf)>) -> Self {
        let (mut seen, mut items) = (BTreeSet::new(), Self::default());
        for (directory, state_dir) in projects {
            let found = SharedStore::find(world, &state_dir, &Durability::default());
            // The store is configured for all projects of the user.
            let Ok(Some(store)) = found else { break };
            if store.settings().shares(SharedSubject::Approvals) {
                items.add_calls(world, &directory, &store, &mut seen);
            }
            if store.settings().shares(SharedSubject::Signals) {
                items.add_signals(&directory, &store, &mut seen);
            }
        }
        items
    }

    fn add_calls(
        &mut self,
        world: &dyn World,
        directory: &Path,
        store: &SharedStore<'_>,
        seen: &mut BTreeSet<String>,
    ) {
        let queued = queued_answers(store);
        let all = store.approvals().unwrap_or_else(|problem| {
            self.problems.insert(problem.to_string());
            Vec::new()
        });
        for named in all.into_iter().filter(|it| it.request.is_open(world.now())) {
            if self.calls.len() < ITEMS_MAX && seen.insert(named.id.clone()) {
                let is_queued = queued.contains(&named.id);
                self.calls.push(SharedCall { directory: directory.to_owned(), named, is_queued });
            }
        }
    }

    fn add_signals(
        &mut self,
        directory: &Path,
        store: &SharedStore<'_>,
        seen: &mut BTreeSet<String>,
    ) {
        let all = store.signals_of_others().unwrap_or_else(|problem| {
            self.problems.insert(problem.to_string());
            Vec::new()
        });
        for it in all.into_iter().filter(|it| it.signal.asks) {
            if self.signals.len() < ITEMS_MAX && seen.insert(it.document.clone()) {
                self.signals.push((directory.to_owned(), it));
            }
        }
    }

    /// Returns the codes of the blocked calls.
    pub fn codes(&self) -> impl Iterator<Item = String> {
        self.calls.iter().map(|it| call_code::code(&it.named.request.call.digest))
    }

    /// Returns what can be answered now as items of the inbox, with the project that answers.
    pub fn items(&self) -> impl Iterator<Item = (PathBuf, WaitingItem)> {
        let calls = self.calls.iter().filter(|it| !it.is_queued).map(|it| {
            let call = &it.named.request.call;
            let text = format!("{} on {} in {}", call.input, call.host, call.project);
            let item = WaitingItem::new(WaitingKind::Call, &it.named.id, &call.tool, &text);
            (it.directory.clone(), item)
        });
        let signals = self.signals.iter().map(|(directory, it)| {
            let place = format!("from {} in {}", it.signal.host, it.signal.project);
            let text = match it.signal.message() {
                "" => place,
                message => format!("{message} ({place})"),
            };
            let kind = WaitingKind::RemoteSignal;
            (directory.clone(), WaitingItem::new(kind, &it.document, &it.signal.signal, &text))
        });
        calls.chain(signals)
    }
}

/// Returns the ids of calls whose answers wait for the server.
fn queued_answers(store: &SharedStore<'_>) -> BTreeSet<String> {
    let id = |it: QueuedOperation| match it.action {
        SharedAction::Approval { id, change: ApprovalChange::Answered { .. } } => Some(id),
        SharedAction::Approval { .. }
        | SharedAction::Breaker { .. }
        | SharedAction::Task { .. }
        | SharedAction::Escalation { .. }
        | SharedAction::Run { .. }
        | SharedAction::Signal { .. }
        | SharedAction::Void(_) => None,
    };
    store.waiting().into_iter().filter_map(id).collect()
}
