//! The manifest's settings with their defaults.

use std::time::Duration;

use super::{Shared, on_error, text, texts};
use crate::limits;
use crate::policy::builtin;
use crate::policy::{Durability, Forgotten, Layout, OnError, Paths, Settings};
use crate::source::node::Node;
use crate::source::{Diagnostic, Level};
use crate::state::guard::GuardLimits;

/// Each setting of the topmost manifest that has it.
pub(super) fn settings(manifests: &[Shared<Node>], diagnostics: &mut Vec<Diagnostic>) -> Settings {
    let get = |key: &str| manifests.iter().find_map(|it| it.get(key)).filter(|it| !it.is_null());
    let part = |section: &'static str, key: &'static str| {
        manifests.iter().filter_map(|it| it.get(section)).find_map(|it| it.get(key))
    };
    warn_unsafe(part("durability", "fsync"), "state may be lost with the power", diagnostics);
    warn_unsafe(part("durability", "verify"), "a torn write goes unnoticed", diagnostics);
    let flag = |node: Option<&Node>| node.and_then(Node::bool).unwrap_or(true);
    let number = |node: Option<&Node>, default: u32| {
        node.and_then(Node::int).and_then(|it| u32::try_from(it).ok()).unwrap_or(default)
    };
    let guard = GuardLimits::default();
    let delays = part("durability", "retry_delays").and_then(Node::items);
    let delays = delays.map(|it| it.iter().filter_map(Node::duration).collect());
    let sessions = part("sessions", "max_count").and_then(Node::int);
    warn_unsafe(get("enabled"), "nothing is judged: the whole pack is switched off", diagnostics);
    let forgotten = get("when_forgotten").filter(|it| it.text() == Some("block"));
    if let Some(node) = forgotten {
        let message = "unsafe setting: a guard that forgets may hold the agent for ever";
        diagnostics.push(Diagnostic::warning("unsafe-setting", node.span.clone(), message));
    }
    warn_high_cap(part("guard", "max_consecutive_blocks"), diagnostics);
    Settings {
        enabled: flag(get("enabled")),
        on_error: on_error(&text(get("on_error"))).unwrap_or(OnError::Allow),
        when_forgotten: match text(get("when_forgotten")).as_str() {
            "block" => Forgotten::Block,
            _ => Forgotten::Allow,
        },
        deadline: get("deadline").and_then(Node::duration).unwrap_or(limits::PROBE_TIMEOUT),
        guard: GuardLimits {
            max_consecutive_blocks: number(
                part("guard", "max_consecutive_blocks"),
                guard.max_consecutive_blocks,
            ),
            warn_from: number(part("guard", "warn_from"), guard.warn_from),
            same_failure_max: number(part("guard", "same_failure_max"), guard.same_failure_max),
            idle_blocks_max: number(part("guard", "idle_blocks_max"), guard.idle_blocks_max),
        },
        durability: Durability {
            fsync: flag(part("durability", "fsync")),
            verify: flag(part("durability", "verify")),
            attempts: number(part("durability", "attempts"), 3),
            retry_delays: delays
                .unwrap_or_else(|| [100, 200, 400].map(Duration::from_millis).to_vec()),
            lock_wait: part("durability", "lock_wait")
                .and_then(Node::duration)
                .unwrap_or(limits::LOCK_WAIT),
        },
        paths: Paths {
            layout: match text(part("paths", "layout")).as_str() {
                "amplihack" => Layout::Amplihack,
                _ => Layout::Policyd,
            },
            root: text(part("paths", "root")),
            diagnostics: text(part("paths", "diagnostics")),
        },
        sessions_max_age: part("sessions", "max_age")
            .and_then(Node::duration)
            .unwrap_or(limits::SESSIONS_MAX_AGE),
        sessions_max_count: sessions
            .and_then(|it| usize::try_from(it).ok())
            .unwrap_or(limits::SESSIONS_MAX_COUNT),
        voice: get("voice").and_then(Node::text).unwrap_or("plain").to_owned(),
        session_type_env: texts(get("session_type_env")),
    }
}

/// The deadline of probes that a pack of one's own sets.
pub(super) fn own_deadline(manifests: &[Shared<Node>]) -> Option<Duration> {
    let own = manifests.iter().filter(|it| !builtin::wrote(&it.span.source));
    own.filter_map(|it| it.get("deadline")).find_map(Node::duration)
}

/// Claude Code gives up after 8 blocks in a row: the agent would be let go unseen.
fn warn_high_cap(node: Option<&Node>, diagnostics: &mut Vec<Diagnostic>) {
    if let Some(node) = node.filter(|it| it.int().is_some_and(|cap| cap >= CLIENT_CAP)) {
        let message = format!("the client itself gives up after {CLIENT_CAP} blocks in a row");
        let found = Diagnostic::warning("cap-too-high", node.span.clone(), message);
        diagnostics.push(found.with_help("stay below, so that the user is told"));
    }
}

/// Consecutive blocks after which Claude Code 2.1.329 overrides a stop hook.
const CLIENT_CAP: i64 = 8;

/// Switching a safety off is allowed, and said.
fn warn_unsafe(node: Option<&Node>, effect: &str, diagnostics: &mut Vec<Diagnostic>) {
    if let Some(node) = node.filter(|it| it.bool() == Some(false)) {
        let message = format!("unsafe setting: {effect}");
        let found = Diagnostic::warning("unsafe-setting", node.span.clone(), message);
        diagnostics.push(Diagnostic { level: Level::Warning, ..found });
    }
}
