//! Cost of a hook call, as ratios to an empty dynamic Rust process of the same run, all copied as an
//! installation does: `cargo bench --bench ratios`. Other binaries, compared pairwise: `-- --binary PATH`,
//! repeatable. Parts: `-- start` (start-up), `-- lint`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark that cannot run stops; it measures real processes, files and time"
)]

mod lint;
mod measure;
mod start;
mod transcript;

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use measure::{median, newlines};
use policyd::store::trust::{TrustStore, TrustedPack};
use policyd::world::World as _;
use policyd::world::real::RealWorld;
use start::Usage;

/// Rounds of the short cases; each round runs every case once, so that noise meets all alike.
const ROUNDS: usize = 150;
const COLD_ROUNDS: usize = 7;
const MESSAGES: [usize; 3] = [200, 2_000, 20_000];
/// Stands for a question to a breaker in place of a hook.
const ALLOW: &str = "breaker allow";
/// User considerations whose cost is measured.
const RULES: usize = 200;
/// User guards whose cost is measured.
const GUARDS: usize = 100;
/// What the agent says before it stops.
const LAST_MESSAGE: &str = "The parts are in place and work.";
/// A hook that waits is a mistake of the benchmark: its time by the clock is near its time on a processor.
const WAIT_MAX: Duration = Duration::from_millis(250);
/// A tool call as it comes all day: two programs and a pipe.
const CALL: &str = r#""hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"cargo test --all 2>&1 | tail -5 && git status"}"#;

fn main() {
    let machines: Vec<Machine> = programs().iter().map(|it| Machine::new(it)).collect();
    let [machine, ..] = machines.as_slice() else { return };
    if std::env::args().any(|it| it == "lint") {
        return lint::table(&machine.binary);
    }
    start::table(&machines);
    if std::env::args().any(|it| it == "start") {
        return;
    }
    let sessions = MESSAGES.map(|it| machine.session("plain", it, true));
    let failing = machine.session("plain", 200, false);
    let few = machine.session("one", 200, true);
    let many = machine.session("many", 200, true);
    machine.rules("one", 1);
    machine.rules("many", 1 + RULES);

    let guarded = machine.session("guarded", 200, true);
    machine.guards("guarded", GUARDS);
    machine.breakers(&sessions[0]);

    let [small, middle, large] = &sessions;
    let mut cases = vec![
        Case::empty("empty process", &machine.empty),
        Case::stop("warm stop, 200 messages", small),
        Case::stop("warm stop, 2,000 messages", middle),
        Case::stop("warm stop, 20,000 messages", large),
        Case::stop("warm stop, state saved durably", &failing),
        Case { uncached: true, ..Case::stop("one user consideration, no compiled pack", &few) },
        Case { hook: "notification", ..Case::stop("event without rules", small) },
        Case { hook: "pre-tool-use", ..Case::stop("tool call, built-in guards", small) },
        Case { hook: "pre-tool-use", ..Case::stop("tool call, 100 more guards", &guarded) },
        Case { hook: "post-tool-use", ..Case::stop("after a tool call", small) },
        Case::stop("one user consideration", &few),
        Case::stop("201 user considerations", &many),
        Case { hook: ALLOW, ..Case::stop("breaker allow, no state moves", small) },
    ];
    for _ in 0..6 {
        // The first stops write caches and enter the episode; what comes after repeats.
        for case in &cases {
            case.run(machine);
        }
    }
    for _ in 0..ROUNDS {
        cases.iter_mut().for_each(|it| it.measure(machine));
    }
    warm_table(&cases);
    cold_table(machine, &sessions);
    memory_table(machine, large);
    lint::table(&machine.binary);
}

/// Ratios of the short cases.
fn warm_table(cases: &[Case<'_>]) {
    let [
        empty,
        small,
        middle,
        large,
        saved,
        uncached,
        none,
        call,
        guarded,
        after,
        few,
        many,
        allow,
    ] = cases
    else {
        return;
    };
    let floor = empty.median();
    println!("\n{:<40}{:>10}{:>10}  goal", "median of a whole process", "ms", "ratio");
    let line = |case: &Case<'_>, goal: &str| {
        let (ms, ratio) = (case.median() * 1e3, case.median() / floor);
        println!("{:<40}{ms:>10.3}{ratio:>9.2}x  {goal}", case.name);
    };
    line(empty, "");
    line(none, "");
    line(small, "<= 3x, aim 1.8x");
    line(middle, "<= 3x");
    line(large, "<= 3x");
    line(saved, "<= 4x, aim 2.2x");
    line(uncached, "stated; aim 5x");
    line(call, "<= 3x, aim 2x");
    line(guarded, "");
    line(after, "");
    line(allow, "<= 2x");
    let ratio = guarded.median() / call.median();
    println!("{:<50}{ratio:>9.2}x  <= 1.5x", format!("{GUARDS} more guards / built-in ones"));
    for case in [middle, large] {
        let ratio = case.median() / small.median();
        println!("{:<50}{ratio:>9.2}x  <= 1.2x", format!("{} / 200 messages", case.name));
    }
    let micros = (many.median() - few.median()) * 1e6 / count(RULES);
    println!("{:<48}{micros:>9.1} µs  <= 20 µs", format!("each of {RULES} user considerations"));
}

/// Reading a whole transcript, against a plain scan for line ends of the same bytes.
fn cold_table(machine: &Machine, sessions: &[Session]) {
    println!(
        "\n{:<30}{:>10}{:>10}{:>10}{:>10}  goal",
        "cold stop (no cursor)", "MB", "ms", "MB/s", "of scan"
    );
    for session in sessions {
        let mut case = Case::stop("", session);
        let mut scans = Vec::new();
        for _ in 0..COLD_ROUNDS {
            session.forget();
            case.measure(machine);
            let began = Instant::now();
            std::hint::black_box(newlines(&session.transcript));
            scans.push(began.elapsed());
        }
        let megabytes = count(fs::metadata(&session.transcript).unwrap().len()) / 1e6;
        let (cold, scan) = (case.median(), median(&mut scans));
        let goal = if megabytes > 5.0 { ">= 500 MB/s" } else { "(mostly the process)" };
        println!(
            "{:<30}{megabytes:>10.1}{:>10.2}{:>10.0}{:>9.2}x  {goal}",
            format!("{} messages", session.messages),
            cold * 1e3,
            megabytes / cold,
            cold / scan,
        );
    }
}

/// Peak memory, warm and cold.
fn memory_table(machine: &Machine, large: &Session) {
    println!("\n{:<50}{:>10}  goal", "peak memory, 20,000 messages", "MB");
    Case::stop("", large).run(machine);
    let line = |name: &str, goal: &str| match machine.peak(&Case::stop("", large)) {
        Some(kilobytes) => println!("{name:<50}{:>10.1}  {goal}", count(kilobytes) / 1e3),
        None => println!("{name:<50}{:>10}  {goal}", "?"),
    };
    line("warm", "<= 12 MB");
    large.forget();
    line("cold", "grows with the facts, not with the file");
    println!("\n{:<38}{:>12}{:>12}  goal", "context status of a transcript", "peak MB", "ms");
    let table = [(1, ""), (200, "flat")]
        .map(|(megabytes, goal)| (machine.long(megabytes), megabytes, goal));
    for (path, megabytes, flat) in table {
        for (state, goal) in
            [("cold", flat), ("warm", if flat.is_empty() { "" } else { "as of 1 MB" })]
        {
            let began = Instant::now();
            let peak = machine.status(&path);
            let (took, name) = (began.elapsed(), format!("{state}, {megabytes} MB"));
            let peak = peak.map_or("?".to_owned(), |it| format!("{:.1}", count(it) / 1e3));
            println!("{name:<38}{peak:>12}{:>12.1}  {goal}", took.as_secs_f64() * 1e3);
        }
    }
}

/// The programs that are measured; each has a machine of its own.
fn programs() -> Vec<PathBuf> {
    let arguments: Vec<String> = std::env::args().collect();
    let pairs = arguments.iter().zip(arguments.iter().skip(1));
    let named = pairs.filter(|(name, _)| *name == "--binary").map(|(_, path)| PathBuf::from(path));
    let named: Vec<PathBuf> = named.collect();
    if named.is_empty() { vec![env!("CARGO_BIN_EXE_policyd").into()] } else { named }
}

/// One kind of process, and what its runs cost.
struct Case<'s> {
    name: &'static str,
    /// `None`: the program that is measured.
    program: Option<&'s Path>,
    /// `None`: the process gets no arguments and no input.
    session: Option<&'s Session>,
    hook: &'static str,
    uncached: bool,
    took: Vec<Duration>,
    usage: Vec<Usage>,
}

impl<'s> Case<'s> {
    fn empty(name: &'static str, program: &'s Path) -> Self {
        let (took, usage) = (Vec::new(), Vec::new());
        let program = Some(program);
        Self { name, program, session: None, hook: "", uncached: false, took, usage }
    }

    fn stop(name: &'static str, session: &'s Session) -> Self {
        let (took, usage) = (Vec::new(), Vec::new());
        let session = Some(session);
        Self { name, program: None, session, hook: "stop", uncached: false, took, usage }
    }

    fn command(&self, machine: &Machine, program: &Path) -> Command {
        let mut command = match self.session {
            Some(session) => machine.call(program, session, self.hook),
            None => machine.command(program, machine.folder.path()),
        };
        if self.uncached {
            command.env("POLICYD_NO_CACHE", "1");
        }
        command
    }

    fn run(&self, machine: &Machine) -> (Duration, Option<Usage>) {
        let mut command = self.command(machine, self.program.unwrap_or(&machine.binary));
        let payload = self.payload();
        let began = Instant::now();
        let mut child = command.spawn().unwrap();
        // An empty process may be gone before it is written to.
        drop(child.stdin.take().unwrap().write_all(payload.as_bytes()));
        let usage = Usage::at_exit(&child);
        let status = child.wait().unwrap();
        assert!(status.success(), "{}", self.name);
        (began.elapsed(), usage)
    }

    fn payload(&self) -> String {
        self.session.map(|it| it.payload_of(self.hook)).unwrap_or_default()
    }

    fn measure(&mut self, machine: &Machine) {
        let (took, usage) = self.run(machine);
        if let Some(usage) = &usage {
            assert!(took < usage.cpu * 4 + WAIT_MAX, "{} waits: {took:?}", self.name);
        }
        self.took.push(took);
        self.usage.extend(usage);
    }

    /// In seconds.
    fn median(&self) -> f64 {
        median(&mut self.took.clone())
    }
}

fn count(value: impl TryInto<u32>) -> f64 {
    f64::from(value.try_into().unwrap_or(u32::MAX))
}

/// A session of an agent: its transcript, and what a hook is told.
struct Session {
    messages: usize,
    transcript: PathBuf,
    payload: String,
    /// Where policyd keeps it.
    state: PathBuf,
}

impl Session {
    /// What a hook is told at an event.
    fn payload_of(&self, hook: &str) -> String {
        let named = match hook {
            "pre-tool-use" => CALL.to_owned(),
            "post-tool-use" => {
                format!(r#"{},"tool_response":{{}}"#, CALL.replace("PreToolUse", "PostToolUse"))
            }
            "notification" => r#""hook_event_name":"Notification","message":"m""#.to_owned(),
            _ => return self.payload.clone(),
        };
        self.payload.replace(r#""hook_event_name":"Stop""#, &named)
    }

    /// Makes the next stop a cold one.
    fn forget(&self) {
        fs::remove_file(self.state.join("cursor.bin")).unwrap();
    }
}

/// A temporary home with projects, and the programs to compare.
struct Machine {
    folder: tempfile::TempDir,
    binary: PathBuf,
    /// A dynamic program that does nothing, and a static one.
    empty: PathBuf,
    empty_static: PathBuf,
}

impl Machine {
    fn new(program: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let binary = installed(program, &folder.path().join("policyd"));
        // A dynamic program names its loader near its beginning.
        let mut start = Vec::new();
        File::open(&binary).unwrap().take(4096).read_to_end(&mut start).unwrap();
        let is_static = memchr::memmem::find(&start, b"/ld-").is_none();
        let empty = |name: &str, is_static: bool| {
            let built = empty_program(folder.path(), is_static);
            installed(&built, &folder.path().join(name))
        };
        let (empty, empty_static) = (empty("dynamic", false), empty("static", true));
        fs::create_dir(folder.path().join("home")).unwrap();
        println!("{} {}", program.display(), if is_static { "(static)" } else { "" });
        Self { folder, binary, empty, empty_static }
    }

    fn project(&self, name: &str) -> PathBuf {
        let project = self.folder.path().join(name);
        fs::create_dir_all(project.join(".git")).unwrap();
        fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        project
    }

    /// A session in a project; nothing was stopped in it yet.
    fn session(&self, project: &str, messages: usize, passing: bool) -> Session {
        let id = format!("{messages}-{}", if passing { "ok" } else { "failing" });
        let project = self.project(project);
        let transcript = project.join(format!("{id}.jsonl"));
        let mut out = BufWriter::new(File::create(&transcript).unwrap());
        // A hook waits for the message that a stop names.
        let (turns, last) = (transcript::TURNS_TO_A_STOP, Some(LAST_MESSAGE));
        transcript::write(&mut out, messages, passing, turns, last).unwrap();
        // Written to the disk now: later it would be measured as part of a save.
        out.into_inner().unwrap().sync_all().unwrap();
        let payload = format!(
            r#"{{"session_id":"{id}","transcript_path":"{}","cwd":"{}","prompt_id":"p","permission_mode":"default","hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"{LAST_MESSAGE}","background_tasks":[]}}"#,
            transcript.display(),
            project.display()
        );
        let state = project.join(".policyd").join("sessions").join(&id);
        Session { messages, transcript, payload, state }
    }

    /// Gives a project considerations of its own, each with a condition, a text and evidence.
    fn rules(&self, project: &str, count: usize) {
        let folder = self.project(project).join(".policyd").join("policies");
        fs::create_dir_all(&folder).unwrap();
        let mut file = File::create(folder.join("considerations.yaml")).unwrap();
        for number in 0..count {
            writeln!(
                file,
                r#"- id: rule_{number}
  category: Rules of the project
  question: Is part {number} of the change covered?
  severity: blocker
  applicable_session_types: ["*"]
  when: files.count > 0 && tools.total > {number}
  satisfied: files.kind("code").count >= 0 && !commands.ran("forbidden{number} now")
  details: ${{files.count}} file(s) were edited
  evidence: ["last edited: ${{files.last_path}}"]
  guidance: Look at part {number} again."#
            )
            .unwrap();
        }
        self.trust(project);
    }

    /// Gives a project guards of its own, none of which concerns what is called.
    fn guards(&self, project: &str, count: usize) {
        let folder = self.project(project).join(".policyd").join("policies");
        fs::create_dir_all(&folder).unwrap();
        let mut file = File::create(folder.join("guards.yaml")).unwrap();
        for number in 0..count {
            writeln!(
                file,
                r#"- id: guard_{number}
  commands: [deploy{number}, "make release{number}"]
  when: program.names(["production", "prod-{number}"]) || program.targets.outside
  unless: program.has(["--dry-run"])
  decision: deny
  message: "`${{program.line}}` is for humans.""#
            )
            .unwrap();
        }
        self.trust(project);
    }

    /// Lets the user of the machine trust the pack of a project.
    fn trust(&self, project: &str) {
        let folder = self.project(project).join(".policyd/policies");
        let world = RealWorld::new();
        let store = TrustStore::new(&world, &self.folder.path().join("home/.config/policyd"));
        let folder = folder.to_str().unwrap().to_owned();
        store.add(TrustedPack { folder, hash: None, since: world.now() }).unwrap();
    }

    fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.folder.path().join("home")).current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn call(&self, program: &Path, session: &Session, hook: &str) -> Command {
        let mut command = self.command(program, session.transcript.parent().unwrap());
        match hook {
            ALLOW => command.args(["breaker", "allow", "api/3"]),
            hook => command.args(["eval", "--hook", hook]),
        };
        command
    }

    /// Lets the project of a session remember some breakers that failed and are closed.
    fn breakers(&self, session: &Session) {
        let state = session.transcript.parent().unwrap().join(".policyd/state");
        fs::create_dir_all(&state).unwrap();
        let record = |name: usize| {
            format!(
                r#""api/{name}": {{"state": "CLOSED", "failure_count": 1, "success_count": 0,
                "last_failure_time": "2026-01-01T00:00:00Z", "last_error": "529 overloaded"}}"#
            )
        };
        let records: Vec<String> = (0..10).map(record).collect();
        let text = format!("{{{}}}", records.join(",\n"));
        fs::write(state.join("circuit-breakers.json"), text).unwrap();
    }

    /// A transcript of so many megabytes, in lines as long as those with the output of tools.
    fn long(&self, megabytes: usize) -> PathBuf {
        let path = self.folder.path().join(format!("{megabytes}.jsonl"));
        let mut file = BufWriter::new(File::create(&path).unwrap());
        let filler = "x".repeat(64 * 1024);
        for number in 0..megabytes * 16 {
            let line = format!(
                r#"{{"type":"assistant","uuid":"{number}","message":{{"id":"m{number}","model":"claude-opus-4-5","content":[{{"type":"text","text":"{filler}"}}],"usage":{{"input_tokens":{number},"output_tokens":9}}}}}}"#
            );
            writeln!(file, "{line}").unwrap();
        }
        let sessions = self.folder.path().join(format!(".policyd/sessions/{megabytes}"));
        fs::create_dir_all(sessions).unwrap();
        path
    }

    /// Peak memory in KB of `policyd context status`, where GNU time is installed.
    fn status(&self, transcript: &Path) -> Option<u64> {
        let mut command = self.command(&self.binary, self.folder.path());
        command.args(["context", "status"]).arg(transcript);
        self.peak_of(&command, "")
    }

    /// Peak memory of a case in KB, where GNU time is installed.
    fn peak(&self, case: &Case<'_>) -> Option<u64> {
        let command = case.command(self, case.program.unwrap_or(&self.binary));
        self.peak_of(&command, &case.payload())
    }

    fn peak_of(&self, command: &Command, payload: &str) -> Option<u64> {
        let mut timed = self.command(Path::new("/usr/bin/time"), command.get_current_dir()?);
        timed.args(["-f", "%M"]).arg(command.get_program()).args(command.get_args());
        timed.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut child = timed.stderr(Stdio::piped()).spawn().ok()?;
        drop(child.stdin.take()?.write_all(payload.as_bytes()));
        let output = child.wait_with_output().ok()?;
        String::from_utf8(output.stderr).ok()?.trim().lines().last()?.parse().ok()
    }
}

/// A program as it lies where it is installed: copied. What a linker leaves in the page cache lies there in
/// small pieces, and its pages are mapped one by one: a hook of it takes a seventh longer, until the file is
/// read from disk again.
fn installed(program: &Path, place: &Path) -> PathBuf {
    fs::copy(program, place).unwrap();
    place.to_path_buf()
}

/// Compiles `fn main() {}`.
fn empty_program(folder: &Path, is_static: bool) -> PathBuf {
    let (source, program) = (folder.join("empty.rs"), folder.join("empty"));
    fs::write(&source, "fn main() {}").unwrap();
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "-O", "-C", "strip=symbols"]);
    if is_static {
        rustc.args(["-C", "target-feature=+crt-static"]);
    }
    assert!(rustc.arg("-o").arg(&program).arg(&source).status().unwrap().success());
    program
}
