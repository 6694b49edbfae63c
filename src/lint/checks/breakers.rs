//! Checks of circuit breakers: numbers that contradict each other, or have no effect.

use crate::{Findings, Subject};
use policyd_state::breaker::{BreakerSettings, Window};

/// Whether something is so of a breaker.
type Holds = fn(&BreakerSettings) -> bool;

/// What is wrong with numbers of a breaker: the keys it may be said at, the first that is written
/// counts; the message and its cure.
struct Contradiction {
    holds: Holds,
    keys: &'static [&'static str],
    message: &'static str,
    help: &'static str,
}

const CONTRADICTIONS: [Contradiction; 7] = [
    Contradiction {
        holds: |it| it.half_open_interval > it.cooldown,
        keys: &["half_open_interval", "cooldown"],
        message: "trial calls are rarer than the cooldown",
        help: "set `half_open_interval` to at most `cooldown`",
    },
    Contradiction {
        holds: |it| it.grows() && it.cooldown_max < it.cooldown,
        keys: &["cooldown_max", "cooldown", "cooldown_factor"],
        message: "the longest cooldown is shorter than the first one, so cooldowns never grow",
        help: "set `cooldown_max` to more than `cooldown`",
    },
    Contradiction {
        holds: |it| matches!(it.window, Window::Calls(calls) if rated(it) && calls < it.minimum_calls),
        keys: &["min_calls", "window_calls", "failure_rate", "slow_rate"],
        message: "the window has fewer calls than `min_calls` requires, so no rate opens the breaker",
        help: "set `min_calls` to at most `window_calls`",
    },
    Contradiction {
        holds: |it| {
            let counted = it.failure_rate.is_none();
            matches!(it.window, Window::Calls(calls) if counted && calls < it.threshold)
        },
        keys: &["window_calls", "threshold"],
        message: "the window has fewer calls than `threshold` requires, so the breaker never opens",
        help: "set `threshold` to at most `window_calls`",
    },
    Contradiction {
        holds: |it| it.window == Window::Consecutive && rated(it),
        keys: &["failure_rate", "slow_rate", "consecutive"],
        message: "consecutive failures have no rate",
        help: "remove `consecutive` or the rate",
    },
    Contradiction {
        holds: |it| it.max_concurrent_calls_reduced > it.max_concurrent_calls,
        keys: &["parallelism_reduced", "parallelism"],
        message: "the open breaker permits more concurrent calls than the closed one",
        help: "set `parallelism_reduced` to at most `parallelism`",
    },
    Contradiction {
        holds: |it| it.ignore.iter().any(|class| it.permanent.contains(class)),
        keys: &["ignore", "permanent"],
        message: "an error class is both ignored and permanent",
        help: "keep it in one of the two lists",
    },
];

const fn rated(settings: &BreakerSettings) -> bool {
    settings.failure_rate.is_some() || settings.slow_call_rate.is_some()
}

/// Two keys of which one takes the place of the other.
const RIVALS: [(&str, &str); 4] = [
    ("failure_rate", "threshold"),
    ("window_calls", "window"),
    ("consecutive", "window"),
    ("consecutive", "window_calls"),
];

/// A key that has no effect without another one.
const IDLE: [(&str, &str, Holds); 3] = [
    ("cooldown_max", "`cooldown_factor`", |it| !it.grows()),
    ("slow_call", "`slow_rate`", |it| it.slow_call_rate.is_none()),
    ("min_calls", "`failure_rate` or `slow_rate`", |it| !rated(it)),
];

pub(crate) fn breaker_contradiction(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("breakers.yaml") {
        let known = subject.reviewed.meant.breakers().iter().find(|(name, _)| name == entry.name());
        let Some((_, settings)) = known else { continue };
        for it in CONTRADICTIONS.iter().filter(|it| (it.holds)(settings)) {
            // What is wrong already where it is inherited from is said there.
            if let Some(node) = it.keys.iter().find_map(|key| entry.node.get(key)) {
                out.help(node.span.clone(), it.message, it.help);
            }
        }
        for (stronger, weaker) in RIVALS {
            let off = entry.is(stronger, false);
            if let (Some(_), false, Some(node)) =
                (entry.node.get(stronger), off, entry.node.get(weaker))
            {
                let message = format!("`{stronger}` replaces `{weaker}`");
                out.help(node.span.clone(), message, "remove one of them");
            }
        }
        for (key, needed, idle) in IDLE {
            if let Some(node) = entry.node.get(key).filter(|_| idle(settings)) {
                let message = format!("`{key}` has no effect without {needed}");
                out.help(node.span.clone(), message, "add that key, or remove this one");
            }
        }
    }
}
