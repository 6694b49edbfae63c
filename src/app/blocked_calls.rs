//! Tool calls of this machine that guards blocked a short time ago: the user can still let each of them pass once.

use std::collections::BTreeSet;

use crate::overview::OpenProject;
use crate::sessions::logged_entries::DecisionLogs;
use policyd_base::limits::ALLOWANCE_ONCE;
use policyd_evaluation::call_code;
use policyd_facts::call_subject;
use policyd_record::decision_log::Entry;
use policyd_report::overview::{WaitingItem, WaitingKind};
use policyd_store::allowance::AllowanceTarget;
use policyd_store::user_choices::UserChoiceStore;
use policyd_world::World;
use policyd_yaml::time::Timestamp;

/// Calls of one project, the newest.
const CALLS_MAX: usize = 5;
/// Entries of a log that are read for them.
const ENTRIES_MAX: usize = 500;

/// Returns the calls of a project that were blocked within the time in which an allowance must be used, newest first. A call
/// that passed later, that the user allowed, or that the organization blocks is left out.
#[must_use]
pub(super) fn items(world: &dyn World, open: &OpenProject) -> Vec<WaitingItem> {
    let now = world.now();
    let logs = DecisionLogs::of(world, &open.project, Some(&open.policy));
    let is_recent = |it: &Entry| {
        Timestamp::parse(&it.timestamp).is_some_and(|at| now.since(at) <= ALLOWANCE_ONCE)
    };
    let recent = logs.newest_first().take(ENTRIES_MAX).take_while(is_recent);
    let mut seen = allowed_calls(world, open, now);
    let mut items = Vec::new();
    for entry in recent {
        let Some(digest) = entry.call_digest.clone() else { continue };
        // The newest entry about a call decides, and the entry of the organization is the newer one.
        if seen.insert(digest.clone()) && entry.decision == "block" && !entry.organization {
            items.push(item(&entry, &digest));
        }
        if items.len() >= CALLS_MAX {
            break;
        }
    }
    items
}

/// Returns the digests of the calls that the user allowed.
fn allowed_calls(world: &dyn World, open: &OpenProject, now: Timestamp) -> BTreeSet<String> {
    let choices = UserChoiceStore::new(world, &open.project.state).load().unwrap_or_default();
    let allowed = choices.allowances.into_iter().filter(|it| it.holds(now));
    let digest = allowed.filter_map(|it| match it.target {
        AllowanceTarget::Call(digest) => Some(digest),
        AllowanceTarget::Rule(_) => None,
    });
    digest.collect()
}

fn item(entry: &Entry, digest: &str) -> WaitingItem {
    let tool = entry.tool.clone().unwrap_or_default();
    let input = entry.read_call().map(|it| it.input);
    let subject = input.map_or_else(|| tool.clone(), |it| call_subject::subject(&tool, &it));
    let blocking = entry.guards.iter().filter(|it| it.decision == "block" || it.decision == "deny");
    let mut rules: Vec<&str> = blocking.map(|it| it.id.as_str()).collect();
    rules.dedup();
    let text = match rules.is_empty() {
        true => subject,
        false => format!("{subject} (blocked by {})", rules.join(", ")),
    };
    WaitingItem::new(WaitingKind::LocalCall, &call_code::code(digest), "", &text)
}
