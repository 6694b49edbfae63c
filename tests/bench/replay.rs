//! How fast recorded sessions are judged again, against a plain scan for line ends of the same
//! files in the same run: `cargo bench --bench replay`. Another binary: `-- --binary PATH`; recorded
//! sessions of your own: `-- --sessions DIR`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark that cannot run stops; it measures real processes, files and time"
)]

mod measure;
mod transcript;

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use measure::{median, newlines};

/// Rounds; each round runs every case once, so that noise meets all alike.
const ROUNDS: usize = 9;
/// Transcripts of one set, and messages in each: 4 KB a message.
const FILES: usize = 12;
const MESSAGES: usize = 4_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| arguments.iter().skip_while(|it| *it != name).nth(1).cloned();
    let binary = value("--binary").unwrap_or_else(|| env!("CARGO_BIN_EXE_policyd").to_owned());
    let folder = tempfile::tempdir().unwrap();
    let sets = match value("--sessions") {
        Some(sessions) => vec![Set::of("sessions of your own", PathBuf::from(sessions))],
        None => vec![
            Set::new(folder.path(), "a stop in 320 KB", transcript::TURNS_TO_A_STOP),
            Set::new(folder.path(), "a stop in 100 KB", 6),
            Set::new(folder.path(), "a stop in 32 KB", 2),
        ],
    };
    let cores = std::thread::available_parallelism().unwrap().get();
    println!(
        "\n{:<28}{:>8}{:>10}{:>12}{:>10}  goal",
        "replay", "MB", "MB/s", "MB/s a core", "of scan"
    );
    for set in &sets {
        for jobs in [1, cores] {
            set.line(&binary, jobs);
        }
    }
}

/// Transcripts that belong together.
struct Set {
    name: &'static str,
    folder: PathBuf,
    files: Vec<PathBuf>,
}

impl Set {
    /// Sessions whose agents stop after so many turns.
    fn new(folder: &Path, name: &'static str, turns_to_a_stop: usize) -> Self {
        let folder = folder.join(turns_to_a_stop.to_string());
        fs::create_dir(&folder).unwrap();
        for number in 0..FILES {
            let file = File::create(folder.join(format!("{number}.jsonl"))).unwrap();
            let mut out = BufWriter::new(file);
            transcript::write(&mut out, MESSAGES, true, turns_to_a_stop, None).unwrap();
            // Written to the disk now: later it would be measured as part of a run.
            out.into_inner().unwrap().sync_all().unwrap();
        }
        Self::of(name, folder)
    }

    fn of(name: &'static str, folder: PathBuf) -> Self {
        let (mut files, mut todo) = (Vec::new(), vec![folder.clone()]);
        while let Some(next) = todo.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => todo.push(path),
                    false if path.extension().is_some_and(|it| it == "jsonl") => files.push(path),
                    false => {}
                }
            }
        }
        Self { name, folder, files }
    }

    fn line(&self, binary: &str, jobs: usize) {
        let (mut replays, mut scans) = (Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let (replay, scan) = (self.replay(binary, jobs), self.scan(jobs));
            // The first round only brings the files into memory.
            if round > 0 {
                replays.push(replay);
                scans.push(scan);
            }
        }
        let (replay, scan) = (median(&mut replays), median(&mut scans));
        let bytes: u64 = self.files.iter().map(|it| fs::metadata(it).unwrap().len()).sum();
        let megabytes = f64::from(u32::try_from(bytes / 1_000).unwrap()) / 1e3;
        let speed = megabytes / replay;
        println!(
            "{:<28}{megabytes:>8.0}{speed:>10.0}{:>12.0}{:>9.1}x  >= 300 MB/s a core, <= 3x",
            format!("{}, {jobs} thread(s)", self.name),
            speed / f64::from(u32::try_from(jobs).unwrap()),
            replay / scan,
        );
    }

    fn replay(&self, binary: &str, jobs: usize) -> Duration {
        let mut command = Command::new(binary);
        command.arg("replay").arg(&self.folder).args(["--jobs", &jobs.to_string()]);
        command.current_dir(&self.folder).stdout(Stdio::null()).stdin(Stdio::null());
        let began = Instant::now();
        assert!(command.status().unwrap().success());
        began.elapsed()
    }

    /// Line ends of all files, by as many threads.
    fn scan(&self, jobs: usize) -> Duration {
        let next = AtomicUsize::new(0);
        let began = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    while let Some(file) = self.files.get(next.fetch_add(1, Ordering::Relaxed)) {
                        std::hint::black_box(newlines(file));
                    }
                });
            }
        });
        began.elapsed()
    }
}
