//! Slow work beside the requests, on a third thread: cases and recorded sessions are evaluated with the unsaved texts.
//! A job ends early if it is canceled. Only packs that the user trusts are evaluated.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use super::worker::{Buffer, JobResult, with_buffers};
use policyd_app::cases::suite::Suite;
use policyd_app::cases::{CaseRequest, run_suite};
use policyd_app::overview::ProjectScope;
use policyd_app::packs::places;
use policyd_app::replay::ReplayTask;
use policyd_app::replay::sessions::{self, FoundSessions, ReplaySession};
use policyd_app::sessions::log_reader::{LogQuery, LogReader, ProjectLine};
use policyd_app::sessions::recordings;
use policyd_app::workspace::project;
use policyd_cases::result::CaseResult;
use policyd_cases::shape::FOLDER;
use policyd_editor::lenses::{FiredCounts, ReplayCounts};
use policyd_policy::{Policy, builtin, load};
use policyd_replay::tally::Tally;
use policyd_world::World;
use policyd_yaml::time::Timestamp;

/// Days of recorded sessions that rules are evaluated on, and of decisions that are counted.
const REPLAY_DAYS: i64 = 30;
/// Milliseconds of a day.
const DAY: i64 = 86_400_000;
/// Sessions between two looks at a cancellation.
const BATCH: usize = 8;
/// Examples of each rule.
const EXAMPLES: usize = 20;

/// Evaluation of a pack.
#[derive(Debug)]
pub(super) struct SlowJob {
    pub(super) folder: PathBuf,
    /// Hash of the content of the pack and of the settings.
    pub(super) key: u64,
    pub(super) buffers: Vec<Buffer>,
    /// Files or directories with recorded sessions; empty: those of the clients. `None`: sessions are not evaluated.
    pub(super) recordings: Option<Vec<String>>,
    /// Whether the result is not needed anymore.
    pub(super) cancel: Arc<AtomicBool>,
    /// Name of the job in reports of its progress.
    pub(super) token: String,
}

/// What a job reports.
#[derive(Debug)]
pub(super) enum SlowResult {
    /// The cases of a pack ran.
    Cases { folder: PathBuf, key: u64, results: Vec<CaseResult> },
    /// The decision log of the project was read.
    Logged { folder: PathBuf, counts: FiredCounts },
    /// So many of all sessions were evaluated.
    Progress { token: String, done: usize, all: usize },
    /// The sessions were evaluated.
    Replay { folder: PathBuf, key: u64, counts: ReplayCounts },
    /// The job ended or was canceled.
    End { folder: PathBuf, token: String },
}

/// The third thread.
pub(super) struct SlowWorker<'w> {
    pub(super) world: &'w dyn World,
    /// Whether the server ends.
    pub(super) stop: &'w AtomicBool,
}

impl SlowWorker<'_> {
    /// Does jobs until no more can come.
    pub(super) fn work(&self, jobs: &Receiver<SlowJob>, results: &Sender<JobResult>) {
        while let Ok(job) = jobs.recv() {
            let (folder, token) = (job.folder.clone(), job.token.clone());
            let done = std::panic::AssertUnwindSafe(|| self.evaluate(&job, results));
            // A job that fails has no result, and the next one can have one.
            let _failed = std::panic::catch_unwind(done);
            if results.send(JobResult::Slow(SlowResult::End { folder, token })).is_err() {
                return;
            }
        }
    }

    fn is_canceled(&self, job: &SlowJob) -> bool {
        job.cancel.load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed)
    }

    fn evaluate(&self, job: &SlowJob, results: &Sender<JobResult>) {
        let world = with_buffers(self.world, &job.buffers);
        let files = places::read_files(&world, &job.folder);
        let loaded = load::load(&files.pack, &builtin::pack());
        let Some(policy) = loaded.policy.filter(|_| !self.is_canceled(job)) else { return };
        let folder = Some(job.folder.join(FOLDER));
        let suite = Suite { pack: files.pack, folder, files: files.cases, whole: true };
        let request = CaseRequest { filter: None, update: None, coverage: false, threshold: None };
        let cases = run_suite(&world, &suite, &request).cases;
        let (folder, key) = (job.folder.clone(), job.key);
        let done = SlowResult::Cases { folder, key, results: cases };
        let sent = results.send(JobResult::Slow(done)).is_ok()
            && results.send(JobResult::Slow(self.logged(&job.folder))).is_ok();
        if sent && !self.is_canceled(job) {
            self.replay(job, &policy, results);
        }
    }

    /// Counts how often rules fired in the project.
    fn logged(&self, folder: &Path) -> SlowResult {
        let scope = ProjectScope::Some(vec![project::at(self.world, folder)]);
        let oldest = self.oldest();
        // A log that cannot be read is reported by `policyd doctor`.
        let query = LogQuery::since(Some(oldest));
        let lines = LogReader::new(self.world, &scope).read(query).lines;
        let mut counts = FiredCounts::new(REPLAY_DAYS);
        lines.iter().filter_map(ProjectLine::entry).for_each(|it| counts.add(&it));
        SlowResult::Logged { folder: folder.to_owned(), counts }
    }

    /// The time before which nothing counts.
    fn oldest(&self) -> Timestamp {
        let now = self.world.now().millis();
        Timestamp::from_millis(now.saturating_sub(REPLAY_DAYS * DAY))
    }

    fn replay(&self, job: &SlowJob, policy: &Policy, results: &Sender<JobResult>) {
        let Some(recordings) = &job.recordings else { return };
        let oldest = self.oldest();
        let sessions = self.sessions(recordings, oldest);
        let task = ReplayTask {
            world: self.world,
            policy,
            other: None,
            oldest,
            examples: EXAMPLES,
            scratch: project::scratch_folders(self.world),
            temporary: project::temporary_folders(self.world),
        };
        let mut whole = Tally::new(policy, None, EXAMPLES);
        let (all, mut done) = (sessions.len(), 0);
        let mut sessions = sessions.into_iter();
        loop {
            let batch: Vec<ReplaySession> = sessions.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                break;
            }
            done += batch.len();
            let found = FoundSessions { sessions: batch, unreadable: Vec::new() };
            // One thread: the others answer the user.
            whole.merge(task.replay(found, 1, &|_| ()));
            let token = job.token.clone();
            let progress = SlowResult::Progress { token, done, all };
            if self.is_canceled(job) || results.send(JobResult::Slow(progress)).is_err() {
                return;
            }
        }
        let (folder, key) = (job.folder.clone(), job.key);
        let counts = ReplayCounts::new(&whole);
        // The result is not received only if the server ends.
        let _sent = results.send(JobResult::Slow(SlowResult::Replay { folder, key, counts }));
    }

    fn sessions(&self, recordings: &[String], oldest: Timestamp) -> Vec<ReplaySession> {
        let own = || recordings::directories(self.world).into_iter().map(|it| it.path);
        let paths: Vec<PathBuf> = match recordings {
            [] => own().filter(|it| self.world.stat(it).is_ok()).collect(),
            named => named.iter().map(PathBuf::from).collect(),
        };
        sessions::find(self.world, &paths, oldest).sessions
    }
}

/// Whether the user trusts the pack in a directory, in its present content or in a former one, or owns the directory.
pub(super) fn is_trusted(world: &dyn World, folder: &Path) -> bool {
    let project = project::at(world, folder);
    policyd_app::packs::was_trusted(world, &project, folder)
}
