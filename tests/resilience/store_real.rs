//! The store and the real World on a real disk: locks, links, pipes, commands, and the seed's
//! recipes with the real `grep` and `jq`.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use policyd::id::SessionId;
use policyd::store::file::{Durability, LoadedDocument, SaveOutcome, load, save};
use policyd::store::session::{Layout, SessionStore, StateOrigin};
use policyd::world::real::RealWorld;
use policyd::world::{CommandOutput, ExternalCommand, World, WorldError};

fn id() -> SessionId {
    SessionId::parse("s1").unwrap()
}

const WAIT: Duration = Duration::from_secs(20);

fn block(store: &SessionStore<'_>) -> SaveOutcome {
    let mut locked = store.lock(&id(), WAIT).unwrap();
    let mut state = locked.load().state;
    state.main.consecutive_blocks += 1;
    locked.commit(&state)
}

#[test]
fn eight_writers_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let world = RealWorld::new();
                let mut store = SessionStore::new(&world, folder.path(), Layout::policyd());
                store.durability.fsync = false;
                for _ in 0..50 {
                    assert_eq!(block(&store), SaveOutcome::Durable { retries: 0 });
                }
            });
        }
    });
    let world = RealWorld::new();
    let state = SessionStore::new(&world, folder.path(), Layout::policyd()).peek(&id()).state;
    assert_eq!((state.main.consecutive_blocks, state.revision), (400, 400));
}

#[test]
fn files_are_private_and_the_root_is_hidden_from_git() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join(".policyd");
    let world = RealWorld::new();
    let store = SessionStore::new(&world, &root, Layout::policyd());
    assert_eq!(block(&store), SaveOutcome::Durable { retries: 0 });
    assert_eq!(block(&store), SaveOutcome::Durable { retries: 0 });
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let paths = store.paths(&id());
    for path in [&paths.state, &paths.log, &paths.lock] {
        assert_eq!(mode(path), 0o600, "{}", path.display());
    }
    for path in [&root, &root.join("sessions"), &paths.folder] {
        assert_eq!(mode(path), 0o700, "{}", path.display());
    }
    let ignore = fs::read_to_string(root.join(".gitignore")).unwrap();
    assert!(ignore.contains("/*") && ignore.contains("!/policies/"));
    let backup = fs::read(paths.folder.join(".state.json.tmp")).unwrap();
    assert!(String::from_utf8(backup).unwrap().contains("\"revision\": 1"));
}

#[test]
fn links_are_never_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let (world, victim) = (RealWorld::new(), folder.path().join("victim"));
    fs::write(&victim, "mine").unwrap();
    let store = SessionStore::new(&world, folder.path(), Layout::policyd());
    let paths = store.paths(&id());
    fs::create_dir_all(&paths.folder).unwrap();
    for path in [&paths.state, &paths.log, &paths.folder.join(".state.json.tmp")] {
        symlink(&victim, path).unwrap();
    }
    assert!(matches!(block(&store), SaveOutcome::Durable { .. }));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    assert!(fs::symlink_metadata(&paths.state).unwrap().is_file());
    let link = folder.path().join("link");
    symlink(&victim, &link).unwrap();
    let refused = Err(WorldError::Io("is a symbolic link".to_owned()));
    assert_eq!(world.write(&link, b"x"), refused);
    assert_eq!(world.append(&link, b"x"), refused);
    assert!(world.lock(&link, Duration::ZERO).is_err());
    assert_eq!(world.read(&link, 99), Ok(b"mine".to_vec()));
}

#[test]
fn a_pipe_never_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let world = RealWorld::new();
    let store = SessionStore::new(&world, folder.path(), Layout::policyd());
    let paths = store.paths(&id());
    fs::create_dir_all(&paths.folder).unwrap();
    for path in [&paths.state, &paths.log] {
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    }
    assert!(matches!(store.peek(&id()).origin, StateOrigin::Recovered { .. }));
    assert_eq!(world.append(&paths.log, b"x"), Err(WorldError::NotAFile));
    assert_eq!(block(&store), SaveOutcome::Durable { retries: 0 });
    assert_eq!(store.peek(&id()).state.main.consecutive_blocks, 1);
}

#[test]
fn looking_into_a_folder_says_what_asking_twice_says() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("folder");
    fs::create_dir_all(folder.join("below")).unwrap();
    ["b.yaml", "a.yaml", ".hidden"].iter().for_each(|it| fs::write(folder.join(it), "").unwrap());
    symlink(&folder, temp.path().join("link")).unwrap();
    let pipe = temp.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let world = RealWorld::new();
    let identity = world.stat(&folder).unwrap().identity;
    let names = world.list(&folder).unwrap();
    assert_eq!(names, [".hidden", "a.yaml", "b.yaml", "below"]);
    for path in [folder.clone(), temp.path().join("link")] {
        assert_eq!(world.look_into(&path), Ok((identity, names.clone())));
    }
    for none in [folder.join("a.yaml"), folder.join("none"), pipe] {
        assert_eq!(world.look_into(&none), Err(WorldError::NotFound), "{}", none.display());
    }
}

#[test]
fn files_are_read_whole_whatever_length_they_tell() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("file");
    let world = RealWorld::new();
    for length in [0, 1, 8192, 300_000] {
        let bytes: Vec<u8> = (0..length).map(|it: usize| it.to_le_bytes()[0]).collect();
        fs::write(&path, &bytes).unwrap();
        assert_eq!(world.read(&path, 300_000), Ok(bytes));
    }
    // One that tells none.
    if cfg!(target_os = "linux") {
        let maps = Path::new("/proc/self/maps");
        assert!(world.read(maps, 1_000_000).unwrap().len() > 100);
        assert_eq!(world.read(maps, 10), Err(WorldError::TooLarge(11)));
    }
}

#[test]
fn a_held_lock_times_out_and_a_deleted_lock_file_protects_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let world = RealWorld::new();
    let held = world.lock(&path, Duration::ZERO).unwrap();
    let refused = world.lock(&path, Duration::from_millis(30)).err();
    assert!(matches!(refused, Some(WorldError::Locked(_))), "{refused:?}");
    fs::remove_file(&path).unwrap();
    let second = world.lock(&path, Duration::ZERO).unwrap();
    drop(held);
    assert!(world.lock(&path, Duration::ZERO).is_err());
    drop(second);
    assert!(world.lock(&path, Duration::ZERO).is_ok());
}

#[test]
fn a_save_exchanges_two_files_and_reads_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("value.json");
    let world = RealWorld::new();
    let put = |text: &str| save(&world, &path, text.as_bytes(), &Durability::default());
    let inode = || fs::metadata(&path).unwrap().ino();
    assert_eq!(put("{\"n\": 1}"), SaveOutcome::Durable { retries: 0 });
    let first = inode();
    assert_eq!(put("{\"n\": 2}"), SaveOutcome::Durable { retries: 0 });
    assert_eq!(put("{\"n\": 3}"), SaveOutcome::Durable { retries: 0 });
    if world.exchange(&path, &path) == Ok(()) {
        assert_eq!(inode(), first);
    }
    assert_eq!(load(&world, &path, 99), LoadedDocument::Whole(b"{\"n\": 3}".to_vec()));
    assert_eq!(world.read(&path, 3), Err(WorldError::TooLarge(8)));
    assert_eq!(world.read(folder.path(), 99), Err(WorldError::NotAFile));
    assert_eq!(world.read(&folder.path().join("none"), 99), Err(WorldError::NotFound));
    let mut file = world.open(&path).unwrap();
    let mut buffer = [0; 3];
    assert_eq!((file.read_at(5, &mut buffer), &buffer), (Ok(3), b" 3}"));
    assert_eq!(file.read_at(8, &mut buffer), Ok(0));
}

fn run(script: &str, stdin: &[u8], deadline: Duration) -> Result<CommandOutput, WorldError> {
    RealWorld::new().run(&ExternalCommand {
        argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
        folder: std::env::temp_dir(),
        stdin: stdin.to_vec(),
        env: vec![("GREETING".to_owned(), "hello".to_owned())],
        env_removed: vec!["HOME".to_owned()],
        deadline,
        output_max: 10_000,
        ..ExternalCommand::default()
    })
}

#[test]
fn commands_answer_with_both_streams_cut_at_the_bound() {
    let many = "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; exit 3";
    let output = run(many, b"", WAIT).unwrap();
    assert_eq!((output.code, output.truncated), (Some(3), true));
    assert_eq!((output.stdout.len(), output.stderr.len()), (10_000, 10_000));
    let echo = run("echo $GREETING${HOME-}; cat", b"there", WAIT).unwrap();
    assert_eq!((echo.stdout.as_slice(), echo.truncated), (b"hello\nthere".as_slice(), false));
    let deaf = run("exec true", &vec![b'x'; 1 << 20], WAIT).unwrap();
    assert_eq!(deaf.code, Some(0));
    assert_eq!(run("kill -9 $$", b"", WAIT).unwrap().code, None);
}

#[test]
fn a_deadline_kills_the_whole_group() {
    let folder = tempfile::tempdir().unwrap();
    let sign = folder.path().join("alive");
    let script = format!("(sleep 3; touch {}) & sleep 60", sign.display());
    let began = Instant::now();
    assert_eq!(run(&script, b"", Duration::from_millis(150)), Err(WorldError::TimedOut));
    assert!(began.elapsed() < Duration::from_secs(3));
    std::thread::sleep(Duration::from_millis(3_200));
    assert!(!sign.exists());
}

#[test]
fn a_grandchild_that_holds_the_streams_does_not_hold_us() {
    let began = Instant::now();
    let output = run("echo done; sleep 60 & exit 0", b"", WAIT).unwrap();
    assert_eq!(output.stdout, b"done\n");
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn programs_that_are_not_there_are_missing() {
    let command = |argv: &[&str], folder: &str| ExternalCommand {
        argv: argv.iter().map(|&it| it.to_owned()).collect(),
        folder: folder.into(),
        deadline: WAIT,
        output_max: 10,
        ..ExternalCommand::default()
    };
    let run = |command: ExternalCommand| RealWorld::new().run(&command);
    assert_eq!(run(command(&["no-such-program-here"], "/")), Err(WorldError::NotFound));
    assert!(matches!(run(command(&["true"], "/no/such")), Err(WorldError::Io(_))));
    assert!(matches!(run(command(&[], "/")), Err(WorldError::Io(_))));
}

/// The three recipes of seed 000, word for word.
#[test]
fn the_seeds_recipes_work() {
    let folder = tempfile::tempdir().unwrap();
    let world = RealWorld::new();
    let shell = |script: &str| {
        let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
        let folder = folder.path().to_owned();
        let command = ExternalCommand {
            argv,
            folder,
            deadline: WAIT,
            output_max: 1 << 16,
            ..ExternalCommand::default()
        };
        String::from_utf8(world.run(&command).unwrap().stdout).unwrap()
    };
    if shell("command -v jq").is_empty() {
        eprintln!("skipped: jq is not installed");
        return;
    }
    let mut store = SessionStore::new(&world, folder.path(), Layout::power_steering());
    store.durability.retry_delays = vec![Duration::ZERO];
    assert_eq!(block(&store), SaveOutcome::Durable { retries: 0 });
    let sibling = store.paths(&id()).folder.join(".state.json.tmp");
    fs::write(folder.path().join("victim"), "").unwrap();
    symlink(folder.path().join("victim"), &sibling).unwrap();
    assert_eq!(block(&store), SaveOutcome::Durable { retries: 1 });
    fs::write(store.paths(&id()).state, "{\"consecutive_blocks\": -1, \"session_id\": \"s1\"}")
        .unwrap();
    assert_eq!(block(&store), SaveOutcome::Durable { retries: 0 });
    let failures = shell(
        "cat .claude/runtime/power-steering/*/diagnostic.jsonl | \\
           grep '\"success\": false' | \\
           jq -r '[.timestamp, .operation, .reason] | @tsv'",
    );
    let columns = |line: &str| line.split('\t').skip(1).collect::<Vec<_>>().join(" ");
    let rows: Vec<String> = failures.lines().map(columns).collect();
    let expected = [
        "state_save write: is a symbolic link",
        "state_load negative_counter",
        "validation negative_counter",
    ];
    assert_eq!(rows, expected);
    let mean = shell(
        "cat .claude/runtime/power-steering/*/diagnostic.jsonl | \\
           grep '\"retry_count\"' | \\
           jq '.retry_count' | \\
           awk '{sum+=$1; count++} END {print sum/count}'",
    );
    assert_eq!(mean.trim(), "0.333333");
    let corruption = shell(
        "cat .claude/runtime/power-steering/*/diagnostic.jsonl | \\
           grep '\"validation_failed\": true'",
    );
    let entry: serde_json::Value = serde_json::from_str(corruption.trim()).unwrap();
    assert_eq!(entry["corrupted_state"]["consecutive_blocks"], -1);
    assert_eq!(store.peek(&id()).state.main.consecutive_blocks, 3);
}
