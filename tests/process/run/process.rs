//! Runs on real processes: the agent is `agent.sh`, git is git, and the supervisor is killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use policyd::store::user;
use policyd::world::real::RealWorld;
use serde_json::Value;
use tempfile::TempDir;

const POLICYD: &str = env!("CARGO_BIN_EXE_policyd");
/// What takes longer hangs.
const BOUND: Duration = Duration::from_secs(60);

/// A repository with an agent that plays.
struct Theatre {
    folder: TempDir,
}

impl Theatre {
    fn new(plays: &[&str]) -> Self {
        let theatre = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(theatre.plays()).unwrap();
        fs::create_dir_all(theatre.project()).unwrap();
        for (number, play) in plays.iter().enumerate() {
            fs::write(theatre.plays().join(format!("{}.sh", number + 1)), play).unwrap();
        }
        theatre.git(&["init", "-q"]);
        theatre.git(&[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "begin",
        ]);
        theatre
    }

    fn plays(&self) -> PathBuf {
        self.folder.path().join("plays")
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn git(&self, words: &[&str]) {
        let done = Command::new("git").args(words).current_dir(self.project()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    /// Lets the user honor the switch files of the project.
    fn honor_switch_files(&self) {
        let key = user::key(&RealWorld::new(), &self.project().join(".policyd"));
        let folder = self.folder.path().join(".config/policyd/projects");
        fs::create_dir_all(&folder).unwrap();
        let text = "{\"version\": 1, \"switch_files\": true}";
        fs::write(folder.join(format!("{key}.json")), text).unwrap();
    }

    fn command(&self, options: &[&str]) -> Command {
        let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process/run/agent.sh");
        let mut command = Command::new(POLICYD);
        command.arg("run").args(options).args(["--format", "jsonl"]);
        if !options.contains(&"--resume") {
            command.args(["--goal", "play", "--", "sh"]).arg(agent).arg(self.plays());
        }
        command.current_dir(self.project()).env("HOME", self.folder.path()).env("POLICYD", POLICYD);
        for name in ["CLAUDECODE", "CLAUDE_PROJECT_DIR", "POLICYD_STATE_DIR", "POLICYD_POLICIES"] {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, options: &[&str]) -> (i32, Vec<Value>) {
        let output: Output = self.command(options).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let events = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        (output.status.code().unwrap(), events)
    }

    fn start(&self, options: &[&str]) -> Child {
        self.command(options).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// The state of the last run; nothing while there is none.
    fn state(&self) -> Option<Value> {
        let runs = fs::read_dir(self.project().join(".policyd/runs")).ok()?;
        let mut states: Vec<PathBuf> =
            runs.map(|it| it.unwrap().path().join("state.json")).collect();
        states.retain(|it| it.exists());
        states.sort();
        Some(serde_json::from_str(&fs::read_to_string(states.pop()?).unwrap()).unwrap())
    }

    fn turns(&self) -> u64 {
        let text = fs::read_to_string(self.plays().join("count")).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }
}

fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < BOUND, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    // What is dead and not taken off yet is dead.
    !stat.is_empty() && !stat.contains(") Z ")
}

fn signal(child: &Child, name: &str) {
    let done = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(done.success());
}

#[test]
fn a_whole_run_on_real_processes() {
    let theatre = Theatre::new(&[
        "commits one; uses 1000 0.25",
        "garbage; floods 3000000; commits two; uses 2000 0.5",
        "commits three; claims; uses 3000 0.25",
    ]);
    let (code, events) = theatre.run(&["--max-iterations", "9"]);
    assert_eq!(code, 0, "{events:#?}");
    let state = theatre.state().unwrap();
    assert_eq!(
        (state["iteration"].as_u64(), state["spend"]["cost_usd"].as_f64()),
        (Some(3), Some(1.0))
    );
    let turns: Vec<&Value> =
        events.iter().filter(|it| it["type"] == "loop.iteration_complete").collect();
    assert!(turns.iter().all(|it| it["moved"] == true), "its own commits are progress: {turns:?}");
    assert_eq!(turns[1]["tokens"], 2010);
    let prompt = fs::read_to_string(theatre.plays().join("1.prompt")).unwrap();
    assert!(prompt.starts_with("play\n\n"), "{prompt}");
}

#[test]
fn an_agent_that_does_nothing_makes_no_progress_however_much_we_write() {
    let theatre = Theatre::new(&["uses 10 0.01"]);
    // Our own files are not hidden from git here.
    fs::create_dir_all(theatre.project().join(".policyd")).unwrap();
    fs::write(theatre.project().join(".policyd/.gitignore"), "").unwrap();
    let (code, events) = theatre.run(&["--max-iterations", "8"]);
    assert_eq!((code, events.last().unwrap()["status"].as_str()), (13, Some("circuit_breaker")));
    assert_eq!(theatre.turns(), 3);
}

#[test]
fn a_full_context_is_restarted_with_a_summary() {
    let theatre =
        Theatre::new(&["commits one; uses 150000 0.5", "commits two; claims; uses 10 0.5"]);
    let (code, events) = theatre.run(&[]);
    assert_eq!(code, 0, "{events:#?}");
    let prompt = fs::read_to_string(theatre.plays().join("2.prompt")).unwrap();
    assert!(prompt.starts_with("play\n\n## Previous Session Context (Summarized)\n"), "{prompt}");
    assert_eq!(theatre.state().unwrap()["spend"]["cost_usd"], 1.0);
}

#[test]
fn an_interrupt_ends_the_whole_group_and_the_run_goes_on_later() {
    for name in ["-INT", "-TERM"] {
        let theatre = Theatre::new(&["hangs", "commits two; claims"]);
        let grandchild = theatre.plays().join("grandchild");
        let mut run = theatre.start(&[]);
        wait_for("the agent hangs", || {
            fs::read_to_string(&grandchild).is_ok_and(|it| it.ends_with('\n'))
        });
        let pid = fs::read_to_string(&grandchild).unwrap();
        assert!(is_alive(&pid));
        signal(&run, name);
        assert_eq!(run.wait().unwrap().code(), Some(130), "{name}");
        wait_for("the grandchild is dead", || !is_alive(&pid));
        let (code, _) = theatre.run(&["--resume"]);
        assert_eq!((code, theatre.state().unwrap()["iteration"].as_u64()), (0, Some(1)));
    }
}

#[test]
fn a_deadline_ends_the_whole_group() {
    let theatre = Theatre::new(&["hangs"]);
    let (code, events) = theatre.run(&["--max-iterations", "1", "--turn-deadline", "1s"]);
    let turn = events.iter().find(|it| it["type"] == "loop.iteration_complete").unwrap();
    assert_eq!((code, turn["failure"].as_str()), (11, Some("timeout")));
    let pid = fs::read_to_string(theatre.plays().join("grandchild")).unwrap();
    assert!(!is_alive(&pid));
}

#[test]
fn a_turn_that_a_signal_ends_says_so() {
    for (play, text) in [
        ("exit 137", "killed by signal 9 (SIGKILL), often because memory ran out"),
        ("kill -9 $$", "killed by signal 9 (SIGKILL), often because memory ran out"),
        ("kill -15 $$", "ended by signal 15 (SIGTERM)"),
    ] {
        let (_, events) = Theatre::new(&[play]).run(&["--max-iterations", "1"]);
        let turn = events.iter().find(|it| it["type"] == "loop.iteration_complete").unwrap();
        assert_eq!((&turn["failure"], &turn["error"]), (&"killed".into(), &text.into()), "{play}");
    }
}

#[test]
fn what_is_said_while_the_agent_is_asked_to_end_is_booked() {
    let play = "uses 10 0.25; trap 'uses 10 4.5; exit 0' TERM INT; echo x > \"$plays/hangs\"\n\
                while :; do sleep 0.05; done";
    let theatre = Theatre::new(&[play]);
    let (_, events) = theatre.run(&["--max-iterations", "1", "--turn-deadline", "2s"]);
    let turn = events.iter().find(|it| it["type"] == "loop.iteration_complete").unwrap();
    assert_eq!((&turn["failure"], &turn["cost_usd"]), (&"timeout".into(), &4.5.into()));
    let theatre = Theatre::new(&[play]);
    let mut run = theatre.start(&[]);
    wait_for("the agent hangs", || theatre.plays().join("hangs").exists());
    signal(&run, "-INT");
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert_eq!(theatre.state().unwrap()["spend"]["cost_usd"], 4.5);
}

/// Numbers that look random, out of a seed (splitmix64).
struct Random(u64);

impl Random {
    /// The seed of the environment, or of the clock.
    fn new() -> Self {
        let said = std::env::var("POLICYD_SEED").ok().and_then(|it| it.parse().ok());
        let clock = || {
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            u64::from(since.subsec_nanos())
        };
        Self(said.unwrap_or_else(clock))
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (it ^ (it >> 31)) % bound
    }
}

/// `kill -9` at random moments, again and again: of the supervisor first, then of whoever goes on.
#[test]
fn killed_at_random_moments_nothing_is_lost_nothing_counted_twice_and_no_child_left() {
    const TURNS: u64 = 4;
    const ROUNDS: u64 = 6;
    let mut random = Random::new();
    for round in 0..ROUNDS {
        let seed = random.0;
        let moments: Vec<u64> = (0..=random.below(3)).map(|_| random.below(1_200)).collect();
        let told = format!("POLICYD_SEED={seed}, round {round}: killed after {moments:?} ms");
        println!("{told}");
        // An agent that was killed may have left a lock in the repository, which nobody else takes away.
        let play = "find .git -name '*.lock' -delete\n\
                    echo $$ >> \"$plays/pids\"; sleep 300 > /dev/null 2>&1 &\n\
                    echo $! >> \"$plays/pids\"; uses 100 0.25; sleep 0.1; commits more";
        let theatre = Theatre::new(&[play]);
        let (most, mut spent, mut iteration) = (TURNS.to_string(), 0.0, 0);
        for moment in moments {
            let options: &[&str] = match theatre.state() {
                Some(_) => &["--resume"],
                None => &["--max-iterations", &most],
            };
            let mut run = theatre.start(options);
            std::thread::sleep(Duration::from_millis(moment));
            run.kill().unwrap();
            run.wait().unwrap();
            let Some(state) = theatre.state() else { continue };
            let now = (
                state["spend"]["cost_usd"].as_f64().unwrap(),
                state["iteration"].as_u64().unwrap(),
            );
            assert!(now.0 >= spent && now.1 >= iteration, "{told}: {state:#}");
            (spent, iteration) = now;
        }
        let options: &[&str] =
            if theatre.state().is_some() { &["--resume"] } else { &["--max-iterations", &most] };
        let (code, events) = theatre.run(options);
        let state = theatre.state().unwrap();
        assert_eq!(code, 11, "{told}: {events:?}");
        assert_eq!(state["iteration"], TURNS, "{told}");
        // Every turn that the agent made is in the books once: those that broke off by what they said.
        let made = theatre.turns();
        let tokens = state["spend"]["input"].as_u64().unwrap();
        assert!(tokens >= TURNS * 100 && tokens <= made * 100, "{told}: {tokens} of {made} turns");
        let cost = state["spend"]["cost_usd"].as_f64().unwrap();
        assert!((1.0..1.01).contains(&cost), "{told}: {cost}, for what broke off by its tokens");
        let completed = events.iter().filter(|it| it["type"] == "loop.iteration_complete");
        let numbers: Vec<u64> = completed.map(|it| it["iteration"].as_u64().unwrap()).collect();
        assert!(numbers.is_sorted_by(|one, other| one < other), "{told}: {numbers:?}");
        let log = Command::new("git")
            .args(["fsck", "--no-dangling"])
            .current_dir(theatre.project())
            .output()
            .unwrap();
        assert!(log.status.success(), "{told}: {log:?}");
        let pids = fs::read_to_string(theatre.plays().join("pids")).unwrap();
        let alive: Vec<&str> = pids.lines().filter(|it| is_alive(it)).collect();
        assert!(alive.is_empty(), "{told}: {alive:?}");
    }
}

#[test]
fn what_a_killed_supervisor_left_running_ends_with_it() {
    let theatre = Theatre::new(&["hangs", "commits two; claims"]);
    let grandchild = theatre.plays().join("grandchild");
    let mut run = theatre.start(&[]);
    wait_for("the agent hangs", || {
        fs::read_to_string(&grandchild).is_ok_and(|it| it.ends_with('\n'))
    });
    let pid = fs::read_to_string(&grandchild).unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    wait_for("the agent ends without a budget", || !is_alive(&pid));
    let (code, _) = theatre.run(&["--resume"]);
    assert_eq!(code, 0);
}

#[test]
fn what_goes_on_to_start_others_is_ended_with_them() {
    let starts = "while :; do sleep 300 > /dev/null 2>&1 & echo $! >> \"$plays/pids\"; done";
    let theatre = Theatre::new(&[starts, "commits two; claims"]);
    let pids = || fs::read_to_string(theatre.plays().join("pids")).unwrap_or_default();
    let mut run = theatre.start(&[]);
    wait_for("the agent starts others", || pids().lines().count() > 20);
    run.kill().unwrap();
    run.wait().unwrap();
    let (code, _) = theatre.run(&["--resume"]);
    assert_eq!(code, 0);
    let pids = pids();
    let alive: Vec<&str> = pids.lines().filter(|it| is_alive(it)).collect();
    assert!(alive.is_empty(), "{} of {}: {alive:?}", alive.len(), pids.lines().count());
}

/// Plays a turn that leaves a process behind, whose id the script writes to `left`.
fn assert_ended_with_its_turn(leaves: &str) {
    let theatre = Theatre::new(&[leaves]);
    let (code, events) = theatre.run(&["--max-iterations", "1"]);
    assert_eq!(code, 0, "{events:#?}");
    let told: Vec<&str> = events.iter().filter_map(|it| it["problem"].as_str()).collect();
    assert!(told.contains(&"1 process that the turn left behind was ended"), "{told:?}");
    assert!(!is_alive(&fs::read_to_string(theatre.plays().join("left")).unwrap()));
}

#[test]
fn what_leaves_its_group_is_ended_with_its_turn() {
    assert_ended_with_its_turn(
        "setsid sleep 300 > /dev/null 2>&1 & echo $! > \"$plays/left\"; commits one; claims",
    );
}

#[cfg(target_os = "linux")]
#[test]
fn what_has_neither_the_group_nor_the_environment_of_its_turn_is_ended_with_it() {
    assert_ended_with_its_turn(
        "(setsid env -i sleep 300 > /dev/null 2>&1 & echo $! > \"$plays/left\"); commits one; claims",
    );
}

#[test]
fn a_gate_that_is_switched_off_between_two_turns_is_found_out() {
    let refused = "commits one; touch \"$plays/over\"; refused 'rate_limit_error Retry-After: 2'";
    let theatre = Theatre::new(&[refused, "commits two; claims"]);
    theatre.honor_switch_files();
    let (over, switch) =
        (theatre.plays().join("over"), theatre.project().join(".policyd/.disabled"));
    // A process that the turn did not start.
    let other = std::thread::spawn(move || {
        wait_for("the first turn is over", || over.exists());
        std::thread::sleep(Duration::from_millis(500));
        fs::write(switch, "").unwrap();
    });
    let (code, events) = theatre.run(&["--max-iterations", "2"]);
    other.join().unwrap();
    assert_eq!(code, 11, "{events:#?}");
    let told: Vec<&str> = events.iter().filter_map(|it| it["problem"].as_str()).collect();
    assert!(told[0].starts_with("the gate was switched off while the run was at work"), "{told:?}");
    let place = |kind: &str| events.iter().rposition(|it| it["type"] == kind).unwrap();
    assert!(place("loop.problem") < place("loop.iteration_complete"), "before the turn is made");
}

#[test]
fn the_tree_is_compared_with_the_tree_before_the_turn() {
    let big = "seq 1 300 > big.txt; looks";
    let theatre = Theatre::new(&[
        big,
        "echo one > new.txt; looks",
        "sed -i s/^7$/x/ big.txt; looks",
        // The same tree, committed.
        "commits three; git add .; git -c user.name=a -c user.email=a@b commit -qm all",
        "sed -i s/^x$/7/ big.txt; rm new.txt work.txt; looks",
        "looks",
    ]);
    let (_, events) = theatre.run(&["--max-iterations", "6"]);
    let turns = events.iter().filter(|it| it["type"] == "loop.iteration_complete");
    let seen: Vec<_> =
        turns.map(|it| (it["lines"].as_u64().unwrap(), it["moved"].as_bool().unwrap())).collect();
    assert_eq!(seen, [(300, true), (1, true), (2, true), (1, true), (4, true), (0, false)]);
    let trail = theatre.state().unwrap()["trail"].clone();
    let content = |at: usize| trail[at]["content"].as_str().unwrap().to_owned();
    assert_eq!(content(0), content(4), "committed or not, it is the same tree: {trail:#}");
    assert_ne!(content(0), content(1));
}

#[test]
fn an_agent_that_goes_to_and_fro_is_stuck_in_a_real_repository_too() {
    let fails = |edit: &str| {
        format!(
            "echo '{edit}' > calc.txt; looks; \
             printf '%s\\n' '{{\"type\":\"assistant\",\"message\":{{\"id\":\"t'$n'\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"t'$n'\",\"name\":\"Bash\",\"input\":{{\"command\":\"pytest\"}}}}]}}}}'; \
             printf '%s\\n' '{{\"type\":\"user\",\"message\":{{\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"t'$n'\",\"is_error\":true,\"content\":\"Exit code 1\\n1 failed\"}}]}}}}'"
        )
    };
    let (a, b) = (fails("a - b"), fails("a * b"));
    let plays: Vec<&str> = [&a, &b].into_iter().cycle().take(12).map(String::as_str).collect();
    let theatre = Theatre::new(&plays);
    let (code, events) = theatre.run(&["--max-iterations", "40"]);
    let turns = events.iter().filter(|it| it["type"] == "loop.iteration_complete").count();
    assert_eq!(code, 10, "{events:#?}");
    assert!(turns <= 8, "{turns}");
}
