//! The loop guard: whether a stop with unsatisfied blockers may be blocked once more.
//!
//! `step(state, stop, limits, now) -> (state, ruling)`; the agent can never be trapped.
//!
//! | what the stop shows | ruling | state |
//! |---|---|---|
//! | nothing unsatisfied | `Approve` | the episode ends: its counters return to zero, a release is forgotten |
//! | something, in an episode that was already released | `Release(already_released)` | `releases` grows |
//! | the released finding, no edit since | `Release(already_released)` | `releases` grows |
//! | something, blocks at the cap of the episode or of the session | `Release(max_blocks)` | finding and edits are remembered |
//! | the same finding for the last allowed time | `Release(same_failure)` | the same |
//! | something, no tool ran after the last blocks | `Release(no_progress)` | the same |
//! | something else | `Block` | counters grow |
//!
//! The cap of the session holds whatever a client calls an episode: blocks since the last clean
//! stop are never more than `SESSION_CAP_FACTOR` times the cap of an episode.
//!
//! INVARIANT: within an episode `consecutive_blocks` never shrinks while something is unsatisfied;
//! `total_blocks` and `releases` never shrink at all.

use super::{BlockRecord, FailedConsideration, GuardState, Release};
use crate::limits;
use crate::time::Timestamp;

/// Caps of an episode that one session may use up before a stop is clean again.
const SESSION_CAP_FACTOR: u32 = 4;

/// How long a guard may hold an agent; every number is set in the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GuardLimits {
    /// Blocks of one episode after which the agent is released (amplihack: 5; below the clients' 8).
    pub max_consecutive_blocks: u32,
    /// Blocks from which the agent is warned of its release (amplihack: 2).
    pub warn_from: u32,
    /// Stops with the same fingerprint at which the agent is released (amplihack: 3).
    pub same_failure_max: u32,
    /// Consecutive blocks without a tool call after which the agent is released.
    pub idle_blocks_max: u32,
}

impl Default for GuardLimits {
    fn default() -> Self {
        Self { max_consecutive_blocks: 5, warn_from: 2, same_failure_max: 3, idle_blocks_max: 2 }
    }
}

/// One stop, as the guard sees it.
#[derive(Debug, Clone, Copy)]
pub struct Stop<'a> {
    /// Key of the human prompt that began the episode; empty when the client names none.
    pub episode: &'a str,
    /// Fingerprint of the unsatisfied blockers, or `None` without any.
    pub fingerprint: Option<&'a str>,
    /// Digest of these blockers with their details.
    pub digest: &'a str,
    /// What is unsatisfied, for the history.
    pub failed: &'a [FailedConsideration],
    /// Tool calls so far.
    pub tools: u64,
    /// Edits so far.
    pub edits: u64,
}

/// Why an agent is released although a check did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseReason {
    /// The cap on blocks is reached.
    MaxBlocks,
    /// The same finding came back too often.
    SameFailure,
    /// No tool ran after the last blocks.
    NoProgress,
    /// The agent was released before, and nothing was edited since.
    AlreadyReleased,
}

impl ReleaseReason {
    /// Stable name, as stored and logged.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MaxBlocks => "max_blocks",
            Self::SameFailure => "same_failure",
            Self::NoProgress => "no_progress",
            Self::AlreadyReleased => "already_released",
        }
    }
}

/// What the guard says to a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// Nothing stands against the stop.
    Approve,
    /// Block once more.
    Block {
        /// Number of this block in its episode, from 1.
        number: u32,
        /// Blocks that remain before the cap lets the agent go.
        remaining: u32,
        /// Blocks that remain while it is the same finding.
        same_remaining: u32,
        /// Whether the agent should be warned of its release.
        warn: bool,
    },
    /// Release the agent, and notify the human.
    Release(ReleaseReason),
}

/// Judges one stop against what the session remembers.
#[must_use]
pub fn step(
    state: &GuardState,
    stop: &Stop<'_>,
    limits: &GuardLimits,
    now: Timestamp,
) -> (GuardState, Ruling) {
    let state = enter_episode(state, stop.episode);
    let Some(fingerprint) = stop.fingerprint else {
        return (end_episode(state), Ruling::Approve);
    };
    if let Some(reason) = release_reason(&state, stop, fingerprint, limits) {
        return (release(state, stop, reason), Ruling::Release(reason));
    }
    block(state, stop, fingerprint, limits, now)
}

/// The state at the beginning of `stop`: a new human prompt begins a new episode.
fn enter_episode(state: &GuardState, episode: &str) -> GuardState {
    if state.episode == episode {
        return state.clone();
    }
    GuardState { episode: episode.to_owned(), ..end_counters(state.clone()) }
}

fn end_counters(state: GuardState) -> GuardState {
    GuardState {
        consecutive_blocks: 0,
        first_block: None,
        last_block: None,
        fingerprints: Vec::new(),
        idle_blocks: 0,
        ..state
    }
}

fn end_episode(state: GuardState) -> GuardState {
    GuardState { released: None, blocks_since_clean: 0, ..end_counters(state) }
}

fn idle_blocks(state: &GuardState, stop: &Stop<'_>) -> u32 {
    if state.consecutive_blocks > 0 && stop.tools <= state.tools_at_block {
        state.idle_blocks.saturating_add(1)
    } else {
        0
    }
}

fn release_reason(
    state: &GuardState,
    stop: &Stop<'_>,
    fingerprint: &str,
    limits: &GuardLimits,
) -> Option<ReleaseReason> {
    let let_go = state.released.as_ref().is_some_and(|it| {
        let same_episode = it.episode == stop.episode;
        let same_finding = it.finding == stop.digest && stop.edits <= it.edits;
        same_episode || same_finding
    });
    let same = state.fingerprints.iter().filter(|it| *it == fingerprint).count();
    let same = u32::try_from(same).unwrap_or(u32::MAX).saturating_add(1);
    if let_go {
        Some(ReleaseReason::AlreadyReleased)
    } else if state.consecutive_blocks >= limits.max_consecutive_blocks
        || state.blocks_since_clean
            >= limits.max_consecutive_blocks.saturating_mul(SESSION_CAP_FACTOR)
    {
        Some(ReleaseReason::MaxBlocks)
    } else if same >= limits.same_failure_max {
        Some(ReleaseReason::SameFailure)
    } else if idle_blocks(state, stop) >= limits.idle_blocks_max {
        Some(ReleaseReason::NoProgress)
    } else {
        None
    }
}

fn release(mut state: GuardState, stop: &Stop<'_>, reason: ReleaseReason) -> GuardState {
    state.releases = state.releases.saturating_add(1);
    if reason != ReleaseReason::AlreadyReleased {
        state.released = Some(Release {
            finding: stop.digest.to_owned(),
            episode: stop.episode.to_owned(),
            edits: stop.edits,
            reason: reason.as_str().to_owned(),
        });
    }
    state
}

fn block(
    mut state: GuardState,
    stop: &Stop<'_>,
    fingerprint: &str,
    limits: &GuardLimits,
    now: Timestamp,
) -> (GuardState, Ruling) {
    state.idle_blocks = idle_blocks(&state, stop);
    state.consecutive_blocks = state.consecutive_blocks.saturating_add(1);
    state.total_blocks = state.total_blocks.saturating_add(1);
    state.blocks_since_clean = state.blocks_since_clean.saturating_add(1);
    state.first_block = state.first_block.or(Some(now));
    state.last_block = Some(now);
    state.tools_at_block = stop.tools;
    state.released = None;
    state.fingerprints.push(fingerprint.to_owned());
    state.history.push(BlockRecord {
        number: state.consecutive_blocks,
        at: now,
        fingerprint: fingerprint.to_owned(),
        failed: stop.failed.to_vec(),
    });
    drop_oldest(&mut state.history, limits::BLOCK_HISTORY_MAX);
    drop_oldest(&mut state.fingerprints, limits::BLOCK_HISTORY_MAX);
    let number = state.consecutive_blocks;
    let remaining = limits.max_consecutive_blocks.saturating_sub(number);
    let same = state.fingerprints.iter().filter(|it| *it == fingerprint).count();
    let same = u32::try_from(same).unwrap_or(u32::MAX).saturating_add(1);
    let same_remaining = limits.same_failure_max.saturating_sub(same).min(remaining);
    let warn = number >= limits.warn_from;
    (state, Ruling::Block { number, remaining, same_remaining, warn })
}

fn drop_oldest<T>(items: &mut Vec<T>, keep: usize) {
    let surplus = items.len().saturating_sub(keep);
    items.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn stop<'a>(
        episode: &'a str,
        fingerprint: Option<&'a str>,
        tools: u64,
        edits: u64,
    ) -> Stop<'a> {
        Stop {
            episode,
            fingerprint,
            digest: fingerprint.unwrap_or_default(),
            failed: &[],
            tools,
            edits,
        }
    }

    /// Runs stops in order and returns the rulings as short words.
    fn rulings(stops: &[Stop<'_>]) -> Vec<String> {
        let mut state = GuardState::default();
        let mut words = Vec::new();
        for stop in stops {
            let (next, ruling) = step(&state, stop, &GuardLimits::default(), NOW);
            assert!(next.total_blocks >= state.total_blocks, "total never goes back");
            assert!(next.releases >= state.releases, "releases never go back");
            if next.episode == state.episode && stop.fingerprint.is_some() {
                assert!(next.consecutive_blocks >= state.consecutive_blocks);
            }
            state = next;
            words.push(match ruling {
                Ruling::Approve => "approve".to_owned(),
                Ruling::Block { number, remaining, warn, .. } => {
                    format!(
                        "block {number}, {remaining} left{}",
                        if warn { ", warned" } else { "" }
                    )
                }
                Ruling::Release(reason) => reason.as_str().to_owned(),
            });
        }
        words
    }

    #[test]
    fn the_same_failure_is_blocked_twice_then_let_go_for_the_episode() {
        let stops: Vec<_> = (1..=5).map(|tools| stop("p1", Some("tests"), tools, tools)).collect();
        assert_eq!(
            rulings(&stops),
            [
                "block 1, 4 left",
                "block 2, 3 left, warned",
                "same_failure",
                "already_released",
                "already_released"
            ]
        );
    }

    #[test]
    fn five_different_failures_reach_the_cap() {
        let names = ["a", "b", "c", "d", "e", "f"];
        let stops: Vec<_> =
            names.iter().zip(1..).map(|(name, tools)| stop("p1", Some(name), tools, 0)).collect();
        assert_eq!(rulings(&stops).last().unwrap(), "max_blocks");
        assert_eq!(rulings(&stops)[4], "block 5, 0 left, warned");
    }

    #[test]
    fn two_blocks_without_a_tool_call_let_go() {
        let stops =
            [stop("p1", Some("a"), 7, 0), stop("p1", Some("b"), 7, 0), stop("p1", Some("c"), 7, 0)];
        assert_eq!(rulings(&stops), ["block 1, 4 left", "block 2, 3 left, warned", "no_progress"]);
    }

    #[test]
    fn a_tool_call_between_blocks_is_progress() {
        let stops =
            [stop("p1", Some("a"), 7, 0), stop("p1", Some("b"), 7, 0), stop("p1", Some("c"), 8, 0)];
        assert_eq!(rulings(&stops).last().unwrap(), "block 3, 2 left, warned");
    }

    #[test]
    fn a_new_prompt_is_judged_again_but_not_the_same_finding_without_an_edit() {
        let stops = [
            stop("p1", Some("a"), 1, 1),
            stop("p1", Some("a"), 2, 1),
            stop("p1", Some("a"), 3, 1),
            stop("p2", Some("a"), 4, 1),
            stop("p3", Some("a"), 5, 2),
        ];
        assert_eq!(
            rulings(&stops),
            [
                "block 1, 4 left",
                "block 2, 3 left, warned",
                "same_failure",
                "already_released",
                "block 1, 4 left"
            ]
        );
    }

    #[test]
    fn a_clean_stop_ends_the_episode_and_later_work_is_judged_again() {
        let stops = [
            stop("p1", Some("a"), 1, 1),
            stop("p1", None, 2, 1),
            stop("p1", Some("a"), 3, 2),
            stop("p2", Some("a"), 4, 3),
        ];
        assert_eq!(
            rulings(&stops),
            ["block 1, 4 left", "approve", "block 1, 4 left", "block 1, 4 left"]
        );
    }

    /// Every (state x stop) pair over the values that the step distinguishes.
    #[test]
    fn every_pair_lets_the_agent_go_in_the_end() {
        for max in 0..4 {
            for same in 1..4 {
                for idle in 1..3 {
                    let limits = GuardLimits {
                        max_consecutive_blocks: max,
                        warn_from: 2,
                        same_failure_max: same,
                        idle_blocks_max: idle,
                    };
                    for pattern in 0..64_u64 {
                        let mut state = GuardState::default();
                        let mut blocks = 0;
                        for turn in 0..12_u64 {
                            let finding = if pattern >> (turn % 6) & 1 == 0 { "a" } else { "b" };
                            let stop = stop("p", Some(finding), turn, turn);
                            let (next, ruling) = step(&state, &stop, &limits, NOW);
                            blocks += u32::from(matches!(ruling, Ruling::Block { .. }));
                            state = next;
                        }
                        assert!(blocks <= max, "{limits:?} {pattern:b}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_client_that_names_a_new_episode_at_every_stop_is_let_go_too() {
        let episodes: Vec<String> = (0..40).map(|n| format!("p{n}")).collect();
        let stops: Vec<_> = episodes
            .iter()
            .zip(1..)
            .map(|(episode, work)| stop(episode, Some("a"), work, work))
            .collect();
        let blocks = rulings(&stops).iter().filter(|it| it.starts_with("block")).count();
        assert_eq!(blocks, 20);
    }

    #[test]
    fn history_stays_bounded() {
        let limits = GuardLimits {
            max_consecutive_blocks: 999,
            same_failure_max: 999,
            ..GuardLimits::default()
        };
        let mut state = GuardState::default();
        for tools in 0..200 {
            state = step(&state, &stop("p", Some("a"), tools, 0), &limits, NOW).0;
        }
        assert_eq!(state.history.len(), limits::BLOCK_HISTORY_MAX);
        assert_eq!(state.consecutive_blocks, 200, "{limits:?}");
    }
}
