//! The index of decision logs: how many decisions it takes in per second, and how long the queries of a first page take.
//! Then the dashboard: how long its start takes until the first page is complete, and how long each page takes.
//! `cargo bench --bench decision_index [DECISIONS] [PROJECTS]`; by default 1,000,000 decisions of 200 projects.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a measurement of real files"
)]

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use policyd::index::{DecisionFilter, DecisionIndex, IndexedLog};
use policyd::store::log_files::rotated;
use policyd::time::Timestamp;
use policyd::world::World;
use policyd::world::real::RealWorld;

/// Goals of issue 37.
const DECISIONS_PER_SECOND: f64 = 50_000.0;
const PAGE_TIME: Duration = Duration::from_secs(1);
/// Size at which a log is rotated.
const FILE_BYTES: usize = 4 * 1024 * 1024;

/// One entry as hooks write it: three stops, then seven tool calls.
fn entry(project: usize, number: usize, at: Timestamp) -> String {
    let (id, session) = (format!("{number:08x}"), format!("session-{project}-{}", number / 50));
    let rule =
        ["rm_recursive", "force_push", "secrets", "tests_pass", "todos_complete"][number % 5];
    if number % 10 < 3 {
        let (decision, spoken) =
            if number.is_multiple_of(2) { ("block", true) } else { ("none", false) };
        return format!(
            r#"{{"version": 1, "timestamp": "{at}", "id": "{id}", "event": "stop", "session_id": "{session}", "agent_id": null, "prompt_id": "p1", "decision": "{decision}", "spoken": {spoken}, "release": "", "session_type": "DEVELOPMENT", "consecutive_blocks": 1, "verdicts": [{{"id": "{rule}", "status": "unsatisfied", "consequence": "blocks", "micros": 120, "details": "2 tests failed in src/parser.rs", "evidence": ["cargo test"], "conditions": [{{"key": "satisfied", "place": "considerations.yaml:12", "expression": "tests.last == \"passed\" && files.count > 0", "parts": [[0, 10, 6, "failed"], [0, 22, 11, false], [26, 37, 32, null]]}}]}}, {{"id": "docs", "status": "satisfied", "consequence": "none", "micros": 12}}, {{"id": "style", "status": "satisfied", "consequence": "none", "micros": 15}}], "skipped": {{"not applicable": ["ci", "review", "merge"]}}, "preferences": {{}}, "pack": "builtin", "inputs": {{"program": "0.2.0", "pack_hash": "0123456789abcdef", "transcript": {{"path": "/home/me/.claude/projects/p{project}/{session}.jsonl", "subagent": false, "offset": 123456, "unfinished": 0, "proof": "0123456789abcdef"}}, "event": {{"folder": "/work/p{project}"}}, "interactive": true, "project": "/work/p{project}", "memory": {{}}}}, "micros": 8123, "saved": "durable", "problems": []}}"#
        ) + "\n";
    }
    let decision = ["block", "ask", "none"][number % 3];
    format!(
        r#"{{"version": 1, "timestamp": "{at}", "id": "{id}", "event": "pre_tool_use", "session_id": "{session}", "agent_id": null, "prompt_id": "p1", "decision": "{decision}", "spoken": true, "guards": [{{"id": "{rule}", "status": "fired", "decision": "{decision}", "mode": "enforce", "message": "Deletes files outside of the project. Delete single files instead.", "program": "rm -rf", "why": null}}], "tool": "Bash", "verdicts": [], "pack": "builtin", "call_digest": "0123456789abcdef0123456789abcdef", "call": {{"program": "0.2.0", "pack_hash": "0123456789abcdef", "around": {{"folder": "/work/p{project}", "project": "/work/p{project}"}}, "input": {{"command": "cd build && rm -rf ../cache/*.o && make -j8 all", "description": "Clean and build"}}, "masked": 0, "left_out": 0}}, "micros": 4321, "saved": "unchanged", "problems": []}}"#
    ) + "\n"
}

fn write_log(path: &Path, project: usize, decisions: usize, now: Timestamp) -> usize {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let (mut files, mut text, mut bytes) = (Vec::new(), String::new(), 0);
    for number in 0..decisions {
        // The last day, evenly.
        let age = (decisions - number) as i64 * 86_400_000 / decisions as i64;
        let at = Timestamp::from_millis(now.millis() - age);
        let _written = write!(text, "{}", entry(project, number, at));
        if text.len() >= FILE_BYTES {
            bytes += text.len();
            files.push(std::mem::take(&mut text));
        }
    }
    bytes += text.len();
    files.push(text);
    for (age, text) in files.iter().rev().enumerate() {
        let name = if age == 0 { path.to_owned() } else { rotated(path, age) };
        fs::write(name, text).unwrap();
    }
    bytes
}

fn report(name: &str, took: Duration, goal: Duration) {
    let verdict = if took <= goal { "ok" } else { "MISSED" };
    println!("{name:<44}{:>10.1} ms   {verdict}", took.as_secs_f64() * 1e3);
}

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|it| it.parse().ok()).collect();
    let decisions = numbers.first().copied().unwrap_or(1_000_000);
    let projects = numbers.get(1).copied().unwrap_or(200);
    let (folder, world) = (tempfile::tempdir().unwrap(), RealWorld::new());
    let now = world.now();
    let logs: Vec<(String, PathBuf)> = (0..projects)
        .map(|it| {
            let project = folder.path().join(format!("p{it}"));
            (project.display().to_string(), project.join(".policyd/logs/decisions.jsonl"))
        })
        .collect();
    let bytes: usize = logs
        .iter()
        .enumerate()
        .map(|(number, (_, path))| write_log(path, number, decisions / projects, now))
        .sum();
    let path = folder.path().join("state/policyd/decisions.sqlite");
    let began = Instant::now();
    let mut index = DecisionIndex::open(&world, &path).unwrap();
    let all: Vec<IndexedLog<'_>> =
        logs.iter().map(|(project, path)| IndexedLog { project, path }).collect();
    let cpu = cpu_time();
    let taken = index.ingest_all(&world, &all, &mut |_| true).unwrap().added;
    let cpu = cpu_time() - cpu;
    let took = began.elapsed().as_secs_f64();
    let rate = taken as f64 / took;
    let verdict = if rate >= DECISIONS_PER_SECOND { "ok" } else { "MISSED" };
    println!("{projects} projects, {taken} decisions, {} MB", bytes / 1_000_000);
    println!("{:<44}{rate:>10.0} /s   {verdict}", "ingest");
    println!("{:<44}{:>10.0} /s", "ingest, by the time of the processor", taken as f64 / cpu);
    println!("{:<44}{:>10} MB", "index", fs::metadata(&path).unwrap().len() / 1_000_000);
    let began = Instant::now();
    index.ingest_all(&world, &all, &mut |_| true).unwrap();
    report("a look at logs that did not change", began.elapsed(), PAGE_TIME);
    drop(index);
    let began = Instant::now();
    let mut index = DecisionIndex::open(&world, &path).unwrap();
    assert_eq!(index.ingest_all(&world, &all, &mut |_| true).unwrap().added, 0);
    report("a start with an index that is current", began.elapsed(), PAGE_TIME);
    drop(index);
    let day = Timestamp::from_millis(now.millis() - 86_400_000);
    let all = DecisionFilter { since: Some(day), ..DecisionFilter::default() };
    let rare = DecisionFilter { session: Some("session-7-3".to_owned()), ..all.clone() };
    let rule = DecisionFilter { rule: Some("secrets".to_owned()), ..all.clone() };
    let began = Instant::now();
    let index = DecisionIndex::open_to_read(&path).unwrap();
    let activity = index.activity(day).unwrap();
    assert_eq!(activity.projects.len(), projects);
    report("first page: activity of all projects", began.elapsed(), PAGE_TIME);
    let timed = |name: &str, query: &dyn Fn() -> usize| {
        let began = Instant::now();
        let found = query();
        report(&format!("{name} ({found})"), began.elapsed(), PAGE_TIME);
    };
    timed("newest decisions", &|| index.decisions(&all, 0, 101).unwrap().len());
    timed("page 50 of decisions", &|| index.decisions(&all, 5_000, 101).unwrap().len());
    timed("decisions of a session", &|| index.decisions(&rare, 0, 101).unwrap().len());
    timed("decisions of a rule", &|| index.decisions(&rule, 0, 101).unwrap().len());
    timed("decisions over time", &|| index.over_time(&all, day, 1_800_000).unwrap().len());
    timed("rules", &|| index.rules(&all).unwrap().len());
    drop(index);
    dashboard(folder.path(), &logs);
}

/// Returns the seconds that this process used of a processor, on Linux.
fn cpu_time() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(2);
    fields.filter_map(|it| it.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Starts the dashboard over an index that is current, and measures its pages.
fn dashboard(folder: &Path, logs: &[(String, PathBuf)]) {
    let registry = folder.join("state/policyd/projects");
    fs::create_dir_all(&registry).unwrap();
    for (number, (project, _)) in logs.iter().enumerate() {
        let entry = format!(
            r#"{{"directory": "{project}", "state_dir": "{project}/.policyd", "since": "2026-01-01T00:00:00Z"}}"#
        );
        fs::write(registry.join(format!("{number}.json")), entry).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_policyd"));
    command.args(["dashboard", "--read-only", "--by-address"]).env_clear();
    command.env("HOME", folder).env("XDG_STATE_HOME", folder.join("state")).current_dir(folder);
    let began = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut link = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut link).unwrap();
    let (host, path) = link.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
    let opened = get(host, &format!("/{path}"), "");
    let (_, cookie) = opened.split_once("set-cookie: ").unwrap();
    let cookie = cookie.split(';').next().unwrap();
    while get(host, "/", cookie).contains("The logs are being read") {
        std::thread::sleep(Duration::from_millis(10));
    }
    report("dashboard: from its start to the first page", began.elapsed(), PAGE_TIME);
    for page in
        ["/", "/decisions", "/decisions?since=36500d", "/rules", "/breakers", "/waiting", "/runs"]
    {
        let began = Instant::now();
        let bytes = get(host, page, cookie).len();
        report(&format!("dashboard: {page} ({} KB)", bytes / 1024), began.elapsed(), PAGE_TIME);
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

fn get(host: &str, path: &str, cookie: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\ncookie: {cookie}\r\n");
    stream.write_all(format!("{request}connection: close\r\n\r\n").as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{path}: {response}");
    response
}
