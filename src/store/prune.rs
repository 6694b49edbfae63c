//! Old sessions are deleted by age and count. It runs when a session folder is made, which is
//! once per session, and deletes a bounded number at a time.
//! May not live here: which numbers a policy wants.

use std::path::Path;
use std::time::Duration;

use super::layout::{LOCK_FILE, STATE_FILE};
use policyd_base::id::SessionId;
use policyd_base::limits::PRUNED_AT_ONCE_MAX;
use policyd_world::World;
use policyd_yaml::time::Timestamp;

/// How long sessions are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Sessions whose state was not written for longer than this go; each time without any
    /// session counts as one day at most.
    pub age_max: Duration,
    /// Maximum number of sessions. The least recently written ones are removed.
    pub sessions_max: usize,
}

impl Default for Retention {
    /// Thirty days, two hundred sessions.
    fn default() -> Self {
        Self { age_max: Duration::from_secs(30 * 24 * 60 * 60), sessions_max: 200 }
    }
}

/// Deletes old sessions in `folder`, never `keep`, never one that is locked, never a folder that
/// holds no state of ours. Returns the names of what was deleted, oldest first.
pub fn prune(
    world: &dyn World,
    folder: &Path,
    retention: Retention,
    keep: &SessionId,
) -> Vec<String> {
    let names = world.list(folder).unwrap_or_default();
    let others = names.into_iter().filter_map(|name| SessionId::parse(&name));
    let mut sessions: Vec<(Timestamp, SessionId)> = others
        .filter(|session| session != keep)
        .filter_map(|session| Some((written(world, &folder.join(session.as_str()))?, session)))
        .collect();
    sessions.sort();
    let surplus = sessions.len().saturating_add(1).saturating_sub(retention.sessions_max);
    let ages = ages(world.now(), &sessions);
    let sessions = sessions.into_iter().zip(ages).enumerate();
    let old = sessions.filter(|(index, (_, age))| *index < surplus || *age > retention.age_max);
    let deleted = old.take(PRUNED_AT_ONCE_MAX).filter_map(|(_, ((_, session), _))| {
        let session_folder = folder.join(session.as_str());
        let _held = world.lock(&session_folder.join(LOCK_FILE), Duration::ZERO).ok()?;
        world.remove_folder(&session_folder).ok()?;
        Some(session.to_string())
    });
    deleted.collect()
}

/// The ages of sessions, which are sorted by time. Each time in which no session was written counts
/// as one day at most, so that a clock that jumps ahead makes no session old by itself: not at the
/// next call, and not at the calls after it.
fn ages(now: Timestamp, sessions: &[(Timestamp, SessionId)]) -> Vec<Duration> {
    const GAP_MAX: Duration = Duration::from_secs(24 * 60 * 60);
    let newest_first = sessions.iter().rev();
    let ages = newest_first.scan((now, Duration::ZERO), |(later, age), (at, _)| {
        *age = age.saturating_add(later.since(*at).min(GAP_MAX));
        *later = *at;
        Some(*age)
    });
    let mut ages: Vec<Duration> = ages.collect();
    ages.reverse();
    ages
}

/// When the state in a session folder was last written; `None` without a state of policyd.
fn written(world: &dyn World, folder: &Path) -> Option<Timestamp> {
    let state = world.stat(&folder.join(STATE_FILE));
    state.or_else(|_| world.stat(&folder.join(LOCK_FILE))).ok().map(|it| it.modified)
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::fake::FakeWorld;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn sessions(count: usize) -> FakeWorld {
        let world = FakeWorld::new();
        for number in 0..count {
            world.put(format!("/work/sessions/s{number}/state.json"), "{}");
            world.advance(DAY);
        }
        world
    }

    fn pruned(world: &FakeWorld, retention: Retention) -> Vec<String> {
        let keep = SessionId::parse("s0").unwrap();
        prune(world, Path::new("/work/sessions"), retention, &keep)
    }

    #[test]
    fn old_ones_go_by_age_and_by_count_and_the_current_one_stays() {
        let by_age = Retention { age_max: DAY * 3, sessions_max: 100 };
        assert_eq!(pruned(&sessions(6), by_age), ["s1", "s2"]);
        let by_count = Retention { age_max: DAY * 100, sessions_max: 2 };
        assert_eq!(pruned(&sessions(5), by_count), ["s1", "s2", "s3"]);
        assert!(pruned(&sessions(5), Retention::default()).is_empty());
    }

    #[test]
    fn a_clock_that_jumps_ahead_deletes_nothing() {
        let world = sessions(20);
        world.advance(DAY * 365 * 73);
        for number in 100..112 {
            assert!(pruned(&world, Retention::default()).is_empty());
            world.put(format!("/work/sessions/s{number}/state.json"), "{}");
            world.advance(DAY);
        }
        assert_eq!(pruned(&world, Retention::default()), ["s1"], "used on more than 30 days since");
    }

    #[test]
    fn locked_and_foreign_folders_stay() {
        let world = sessions(3);
        world.put("/work/sessions/notes/readme", "mine");
        world.put("/work/sessions/not a session/state.json", "{}");
        let _held = world.lock(Path::new("/work/sessions/s1/.state.lock"), Duration::ZERO).unwrap();
        let none = Retention { age_max: Duration::ZERO, sessions_max: 0 };
        assert_eq!(pruned(&world, none), ["s2"]);
        assert!(world.get("/work/sessions/notes/readme").is_some());
        assert!(world.get("/work/sessions/s1/state.json").is_some());
        assert_eq!(world.get("/work/sessions/s2/state.json"), None);
    }

    #[test]
    fn one_call_deletes_a_bounded_number() {
        let none = Retention { age_max: Duration::ZERO, sessions_max: 0 };
        assert_eq!(pruned(&sessions(50), none).len(), PRUNED_AT_ONCE_MAX);
    }
}
