//! Work beside the requests: packs are read and linted on a second thread. Does not contain: when that happens.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use super::background::SlowResult;
use policyd_app::packs::places;
use policyd_editor::view::{LintSettings, PackView};
use policyd_policy::review::Base;
use policyd_world::World;
use policyd_world::overlay::OverlayWorld;
use policyd_yaml::Diagnostic;

/// A file that is open in the editor, with its unsaved text.
#[derive(Debug, Clone)]
pub(super) struct Buffer {
    pub(super) path: PathBuf,
    pub(super) text: Arc<str>,
}

/// Lint of a pack.
#[derive(Debug)]
pub(super) struct LintJob {
    pub(super) folder: PathBuf,
    /// Number of the state of the pack.
    pub(super) generation: u64,
    /// Open files of the pack.
    pub(super) buffers: Vec<Buffer>,
    pub(super) settings: LintSettings,
}

/// A linted pack.
#[derive(Debug)]
pub(super) struct LintResult {
    pub(super) folder: PathBuf,
    pub(super) generation: u64,
    pub(super) view: Arc<PackView>,
    pub(super) findings: Vec<Diagnostic>,
    /// What could not be read.
    pub(super) unreadable: Vec<String>,
    /// How long that took.
    pub(super) took: Duration,
}

/// The result of a job.
#[derive(Debug)]
pub(super) enum JobResult {
    Lint(Box<LintResult>),
    /// The lint of a pack failed.
    Failed(PathBuf),
    /// A report of the third thread.
    Slow(SlowResult),
}

/// The second thread.
pub(super) struct Worker<'w> {
    pub(super) world: &'w dyn World,
    pub(super) base: &'w Base,
    /// Whether the server ends.
    pub(super) stop: &'w AtomicBool,
}

impl Worker<'_> {
    /// Does jobs until no more can come.
    pub(super) fn work(&self, jobs: &Receiver<LintJob>, results: &Sender<JobResult>) {
        while let Ok(job) = jobs.recv() {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let folder = job.folder.clone();
            let lint = std::panic::AssertUnwindSafe(|| lint(self.world, self.base, job));
            let done = std::panic::catch_unwind(lint)
                .map_or(JobResult::Failed(folder), |linted| JobResult::Lint(Box::new(linted)));
            if results.send(done).is_err() {
                return;
            }
        }
    }
}

/// Reads a pack with the unsaved texts of open files, and lints it.
fn lint(world: &dyn World, base: &Base, job: LintJob) -> LintResult {
    let began = world.elapsed();
    let LintJob { folder, generation, buffers, settings } = job;
    base.memo().begin_review();
    let (view, unreadable) = view(world, base, &folder, &buffers);
    let findings = view.lint(settings, world.now(), world.cores());
    let took = world.elapsed().saturating_sub(began);
    LintResult { folder, generation, view: Arc::new(view), findings, unreadable, took }
}

/// Reads a pack with the unsaved texts of open files. Also returns what could not be read.
pub(super) fn view(
    world: &dyn World,
    base: &Base,
    folder: &std::path::Path,
    buffers: &[Buffer],
) -> (PackView, Vec<String>) {
    let world = with_buffers(world, buffers);
    let files = places::read_files(&world, folder);
    (PackView::new(files.pack, files.cases, files.unread, base), files.unreadable)
}

/// The machine with the unsaved texts of open files.
pub(super) fn with_buffers<'w>(world: &'w dyn World, buffers: &[Buffer]) -> OverlayWorld<'w> {
    let overlay = OverlayWorld::new(world);
    for buffer in buffers {
        if let Some(folder) = buffer.path.parent() {
            // A file can be written before its directory exists. Both stay in memory, where nothing fails.
            let _created = overlay.create_folder(folder);
        }
        let _written = overlay.write(&buffer.path, buffer.text.as_bytes());
    }
    overlay
}
