//! The block limiter: decides whether a stop with failed blockers can be blocked once more.
//!
//! `step(state, stop, limits, now) -> (state, ruling)`. The agent can never be trapped.
//!
//! | the stop | decision | state |
//! |---|---|---|
//! | no blocker failed | `Approve` | the episode ends: its counters return to zero, a release is cleared |
//! | a failure, in an episode that was already released | `Release(already_released)` | `releases` grows |
//! | the released finding, no edit since | `Release(already_released)` | `releases` grows |
//! | a failure, blocks at the limit of the episode or of the session | `Release(max_blocks)` | finding and edits are saved |
//! | the same finding for the last permitted time | `Release(same_failure)` | finding and edits are saved |
//! | a failure, no tool ran after the last block | `Release(no_progress)` | finding and edits are saved |
//! | any other failure | `Block` | counters grow |
//!
//! The limit of the session holds whatever a client reports as an episode: blocks since the last
//! clean stop never exceed `SESSION_CAP_FACTOR` times the limit of an episode.
//!
//! The saved state can be lost, or replaced by an older one. The transcript and the client know of
//! blocks, too, and the largest count applies: a copy of the state ([`newer`]), the reasons of
//! blocks in the transcript, and the flag of a stop that follows a block.
//!
//! INVARIANT: within an episode `consecutive_blocks` never shrinks while a blocker fails;
//! `total_blocks` and `releases` never shrink.

use super::{BlockLimiterState, BlockRecord, FailedConsideration, Release};
use policyd_base::limits;
use policyd_yaml::time::Timestamp;

/// Limit of the session, as a multiple of the limit of an episode.
const SESSION_CAP_FACTOR: u32 = 4;

/// Limits of consecutive blocks. The manifest sets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BlockLimits {
    /// Number of blocks in one episode after which the agent is released. amplihack: 5; below the
    /// clients' limit of 8.
    pub max_consecutive_blocks: u32,
    /// Number of blocks from which the agent is warned of the release. amplihack: 2.
    pub warn_from: u32,
    /// Number of stops with the same fingerprint at which the agent is released. amplihack: 3.
    pub same_failure_max: u32,
    /// Number of consecutive blocks without a tool call after which the agent is released.
    pub idle_blocks_max: u32,
}

impl Default for BlockLimits {
    fn default() -> Self {
        Self { max_consecutive_blocks: 5, warn_from: 2, same_failure_max: 3, idle_blocks_max: 1 }
    }
}

/// Input of the block limiter for one stop.
#[derive(Debug, Clone, Copy)]
pub struct Stop<'a> {
    /// Key of the user prompt that began the episode. Empty if the client sends no prompt id.
    pub episode: &'a str,
    /// Fingerprint of the failed blockers. `None` if none failed.
    pub fingerprint: Option<&'a str>,
    /// Fingerprint of the failed blockers with their details, which identifies a release.
    pub digest: &'a str,
    /// Failed blockers, for the history.
    pub failed: &'a [FailedConsideration],
    /// Number of tool calls.
    pub tools: u64,
    /// Number of edits.
    pub edits: u64,
    /// Blocks of this episode that the transcript shows.
    pub blocks_shown: u32,
    /// Number of tool calls at the last of them.
    pub tools_at_shown_block: u64,
    /// Whether the client reports that the agent continued because of a block.
    pub follows_block: bool,
}

/// Reason of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseReason {
    /// The limit of blocks is reached.
    MaxBlocks,
    /// The same finding was repeated too often.
    SameFailure,
    /// No tool ran after the last blocks.
    NoProgress,
    /// The agent was released before, and nothing was edited since.
    AlreadyReleased,
}

impl ReleaseReason {
    /// Returns the stable name, as stored and logged.
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

/// Decision of the block limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimiterDecision {
    /// No blocker failed.
    Approve,
    /// Block once more.
    Block {
        /// Number of this block in its episode, from 1.
        number: u32,
        /// Number of blocks until the limit releases the agent.
        remaining: u32,
        /// Number of blocks until the same finding releases the agent.
        same_remaining: u32,
        /// Number of blocks without a tool call until the agent is released.
        idle_remaining: u32,
        /// Whether the agent should be warned of the release.
        warn: bool,
    },
    /// Release the agent, and hand over to the user.
    Release {
        reason: ReleaseReason,
        /// Whether the user was notified of this finding since the agent was released.
        is_repeated: bool,
    },
}

/// Decides about one stop by the saved state.
#[must_use]
pub fn step(
    state: &BlockLimiterState,
    stop: &Stop<'_>,
    limits: &BlockLimits,
    now: Timestamp,
) -> (BlockLimiterState, LimiterDecision) {
    let state = enter_episode(state, stop.episode);
    let Some(fingerprint) = stop.fingerprint else {
        return (end_episode(state, stop), LimiterDecision::Approve);
    };
    let state = count_lost_blocks(state, stop);
    if let Some(reason) = release_reason(&state, stop, fingerprint, limits) {
        return release(state, stop, fingerprint, reason);
    }
    block(state, stop, fingerprint, limits, now)
}

/// Returns the newer of a saved state and its copy. A state that git or a backup restored has smaller
/// totals than the copy, which the restore did not reach.
#[must_use]
pub fn newer(saved: BlockLimiterState, copy: BlockLimiterState) -> BlockLimiterState {
    let age = |it: &BlockLimiterState| (it.total_blocks, it.releases);
    if age(&copy) <= age(&saved) {
        return saved;
    }
    let history = if copy.history.is_empty() { saved.history } else { copy.history };
    BlockLimiterState { history, ..copy }
}

/// Returns what counts in another project: the totals of the session.
#[must_use]
pub fn in_a_new_project(saved: &BlockLimiterState) -> BlockLimiterState {
    let BlockLimiterState { total_blocks, releases, .. } = *saved;
    BlockLimiterState { total_blocks, releases, ..BlockLimiterState::default() }
}

/// Adds the blocks of this episode that the transcript or the client shows and the state does not.
fn count_lost_blocks(state: BlockLimiterState, stop: &Stop<'_>) -> BlockLimiterState {
    let shown = stop.blocks_shown.saturating_sub(state.shown_at_clean_stop);
    // The flag does not say how many blocks there were, nor of which hook. It counts if nothing else does.
    let reported = u32::from(stop.follows_block && state.total_blocks == 0);
    let blocks = shown.max(reported);
    if blocks <= state.consecutive_blocks {
        return state;
    }
    BlockLimiterState {
        consecutive_blocks: blocks,
        blocks_since_clean: state.blocks_since_clean.max(blocks),
        total_blocks: state.total_blocks.max(u64::from(blocks)),
        tools_at_block: stop.tools_at_shown_block,
        ..state
    }
}

/// Returns the state at the beginning of `stop`. A new user prompt begins a new episode.
fn enter_episode(state: &BlockLimiterState, episode: &str) -> BlockLimiterState {
    if state.episode == episode {
        return state.clone();
    }
    BlockLimiterState {
        episode: episode.to_owned(),
        shown_at_clean_stop: 0,
        ..end_counters(state.clone())
    }
}

fn end_counters(state: BlockLimiterState) -> BlockLimiterState {
    BlockLimiterState {
        consecutive_blocks: 0,
        first_block: None,
        last_block: None,
        fingerprints: Vec::new(),
        idle_blocks: 0,
        ..state
    }
}

fn end_episode(state: BlockLimiterState, stop: &Stop<'_>) -> BlockLimiterState {
    BlockLimiterState {
        released: None,
        blocks_since_clean: 0,
        shown_at_clean_stop: stop.blocks_shown,
        ..end_counters(state)
    }
}

fn idle_blocks(state: &BlockLimiterState, stop: &Stop<'_>) -> u32 {
    if state.consecutive_blocks > 0 && stop.tools <= state.tools_at_block {
        state.idle_blocks.saturating_add(1)
    } else {
        0
    }
}

fn release_reason(
    state: &BlockLimiterState,
    stop: &Stop<'_>,
    fingerprint: &str,
    limits: &BlockLimits,
) -> Option<ReleaseReason> {
    let let_go = state.released.as_ref().is_some_and(|release| {
        let same_episode = release.episode == stop.episode;
        let same_finding = release.finding == stop.digest && stop.edits <= release.edits;
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

fn release(
    mut state: BlockLimiterState,
    stop: &Stop<'_>,
    fingerprint: &str,
    reason: ReleaseReason,
) -> (BlockLimiterState, LimiterDecision) {
    state.releases = state.releases.saturating_add(1);
    let mut is_repeated = false;
    match (&mut state.released, reason) {
        (Some(released), ReleaseReason::AlreadyReleased) => {
            is_repeated = released.reported.iter().any(|it| it == fingerprint);
            if !is_repeated {
                released.reported.push(fingerprint.to_owned());
                drop_oldest(&mut released.reported, limits::BLOCK_HISTORY_MAX);
            }
        }
        (released, _) => {
            *released = Some(Release {
                finding: stop.digest.to_owned(),
                episode: stop.episode.to_owned(),
                edits: stop.edits,
                reason: reason.as_str().to_owned(),
                reported: Vec::new(),
            });
        }
    }
    (state, LimiterDecision::Release { reason, is_repeated })
}

fn block(
    mut state: BlockLimiterState,
    stop: &Stop<'_>,
    fingerprint: &str,
    limits: &BlockLimits,
    now: Timestamp,
) -> (BlockLimiterState, LimiterDecision) {
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
    let idle = limits.idle_blocks_max.saturating_sub(state.idle_blocks.saturating_add(1));
    let idle_remaining = idle.min(same_remaining);
    let warn = number >= limits.warn_from;
    (state, LimiterDecision::Block { number, remaining, same_remaining, idle_remaining, warn })
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
            blocks_shown: 0,
            tools_at_shown_block: 0,
            follows_block: false,
        }
    }

    /// Runs stops in order and returns the decisions as short words.
    fn rulings(stops: &[Stop<'_>]) -> Vec<String> {
        let mut state = BlockLimiterState::default();
        let mut words = Vec::new();
        for stop in stops {
            let (next, ruling) = step(&state, stop, &BlockLimits::default(), NOW);
            assert!(next.total_blocks >= state.total_blocks, "total never goes back");
            assert!(next.releases >= state.releases, "releases never go back");
            if next.episode == state.episode && stop.fingerprint.is_some() {
                assert!(next.consecutive_blocks >= state.consecutive_blocks);
            }
            state = next;
            words.push(match ruling {
                LimiterDecision::Approve => "approve".to_owned(),
                LimiterDecision::Block { number, remaining, warn, .. } => {
                    format!(
                        "block {number}, {remaining} left{}",
                        if warn { ", warned" } else { "" }
                    )
                }
                LimiterDecision::Release { reason, is_repeated } => {
                    format!("{}{}", reason.as_str(), if is_repeated { ", reported" } else { "" })
                }
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
                "already_released, reported"
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
    fn a_stop_without_a_tool_call_after_a_block_is_released() {
        let stops = [stop("p1", Some("a"), 7, 0), stop("p1", Some("b"), 7, 0)];
        assert_eq!(rulings(&stops), ["block 1, 4 left", "no_progress"]);
    }

    #[test]
    fn each_finding_of_a_released_agent_is_reported_once() {
        let stops = [
            stop("p1", Some("a"), 7, 0),
            stop("p1", Some("a"), 7, 0),
            stop("p1", Some("b"), 8, 1),
            stop("p1", Some("a"), 9, 2),
            stop("p1", Some("b"), 9, 2),
            stop("p1", Some("a"), 9, 2),
        ];
        assert_eq!(
            rulings(&stops)[1..],
            [
                "no_progress",
                "already_released",
                "already_released",
                "already_released, reported",
                "already_released, reported"
            ]
        );
    }

    #[test]
    fn a_tool_call_between_blocks_is_progress() {
        let stops =
            [stop("p1", Some("a"), 7, 0), stop("p1", Some("b"), 8, 0), stop("p1", Some("c"), 9, 0)];
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

    /// Every pair of state and stop, over the values that the step distinguishes.
    #[test]
    fn every_pair_lets_the_agent_go_in_the_end() {
        for max in 0..4 {
            for same in 1..4 {
                for idle in 1..3 {
                    let limits = BlockLimits {
                        max_consecutive_blocks: max,
                        warn_from: 2,
                        same_failure_max: same,
                        idle_blocks_max: idle,
                    };
                    for pattern in 0..64_u64 {
                        let mut state = BlockLimiterState::default();
                        let mut blocks = 0;
                        for turn in 0..12_u64 {
                            let finding = if pattern >> (turn % 6) & 1 == 0 { "a" } else { "b" };
                            let stop = stop("p", Some(finding), turn, turn);
                            let (next, ruling) = step(&state, &stop, &limits, NOW);
                            blocks += u32::from(matches!(ruling, LimiterDecision::Block { .. }));
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
        let limits = BlockLimits {
            max_consecutive_blocks: 999,
            same_failure_max: 999,
            ..BlockLimits::default()
        };
        let mut state = BlockLimiterState::default();
        for tools in 0..200 {
            state = step(&state, &stop("p", Some("a"), tools, 0), &limits, NOW).0;
        }
        assert_eq!(state.history.len(), limits::BLOCK_HISTORY_MAX);
        assert_eq!(state.consecutive_blocks, 200, "{limits:?}");
    }

    /// Stops until a release, each with a new finding after a tool call and with the state that `before`
    /// returns. The transcript shows every block, the last `hidden` ones excepted.
    fn blocks_with(
        hidden: u32,
        before: impl Fn(&BlockLimiterState) -> BlockLimiterState,
    ) -> Vec<u32> {
        let (mut state, mut numbers) = (BlockLimiterState::default(), Vec::new());
        for tools in 1..40 {
            let blocks = u32::try_from(numbers.len()).unwrap();
            let (name, follows_block) = (format!("finding {tools}"), blocks > 0);
            let stop = Stop {
                blocks_shown: blocks.saturating_sub(hidden),
                tools_at_shown_block: tools - 1,
                follows_block,
                ..stop("p", Some(&name), tools, tools)
            };
            let (next, decision) = step(&before(&state), &stop, &BlockLimits::default(), NOW);
            state = next;
            match decision {
                LimiterDecision::Block { number, .. } => numbers.push(number),
                LimiterDecision::Approve | LimiterDecision::Release { .. } => break,
            }
        }
        numbers
    }

    #[test]
    fn the_transcript_counts_for_a_state_that_is_lost_at_every_stop() {
        let lost = |_: &BlockLimiterState| BlockLimiterState::default();
        assert_eq!(blocks_with(0, lost), [1, 2, 3, 4, 5]);
        assert_eq!(blocks_with(1, lost).len(), 6, "the last line of a transcript can be missing");
        assert_eq!(blocks_with(0, BlockLimiterState::clone), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn the_copy_counts_for_a_state_that_is_lost_or_old() {
        let old = BlockLimiterState { total_blocks: 1, ..BlockLimiterState::default() };
        for saved in [BlockLimiterState::default(), old] {
            assert_eq!(blocks_with(99, |copy| newer(saved.clone(), copy.clone())), [1, 2, 3, 4, 5]);
        }
        let state = BlockLimiterState { releases: 1, ..BlockLimiterState::default() };
        assert_eq!(newer(state.clone(), BlockLimiterState::default()), state);
    }

    #[test]
    fn a_stop_that_follows_a_block_is_not_the_first() {
        let follows = |tools| Stop { follows_block: true, ..stop("p", Some("a"), tools, 0) };
        assert_eq!(rulings(&[follows(3)]), ["block 2, 3 left, warned"]);
        assert_eq!(rulings(&[follows(0)]), ["no_progress"]);
        assert_eq!(
            rulings(&[stop("p", Some("a"), 1, 0), follows(3)])[1],
            "block 2, 3 left, warned"
        );
    }

    #[test]
    fn a_clean_stop_ends_what_the_transcript_counts() {
        let shown = |stop| Stop { blocks_shown: 4, tools_at_shown_block: 1, ..stop };
        let stops = [
            shown(stop("p", None, 2, 1)),
            shown(stop("p", Some("a"), 3, 2)),
            shown(stop("q", Some("b"), 4, 3)),
        ];
        assert_eq!(rulings(&stops), ["approve", "block 1, 4 left", "block 5, 0 left, warned"]);
    }
}
