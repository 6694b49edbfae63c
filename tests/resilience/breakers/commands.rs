//! `policyd breaker …` as a person or a script meets it: what it prints, and its exit code.

use std::io::{self, Write};
use std::time::Duration;

use policyd::world::fake::FakeWorld;

use crate::support::console::{self, Terminal};
use crate::support::snapshot;

const PACK: &str = "\
api/*: {threshold: 2, cooldown: 2m}
api/watched: {mode: observe, threshold: 1}
api/claude/*: {threshold: 1, permanent: [billing_error], ignore: [invalid_request]}
";

fn machine() -> FakeWorld {
    let world = FakeWorld::new();
    world.put("/work/.git/HEAD", "ref: refs/heads/main\n");
    crate::support::machine::trusting(&world);
    world.put("/work/.policyd/policies/breakers.yaml", PACK);
    world
}

/// Runs the program with words between blanks; `~` within a word stands for a blank.
fn run(world: &FakeWorld, line: &str, stdout: &mut dyn Write) -> (u8, String) {
    let line: Vec<_> = line.split_whitespace().map(|it| it.replace('~', " ")).collect();
    let words: Vec<_> = ["breaker"].into_iter().chain(line.iter().map(String::as_str)).collect();
    console::call_into(world, Terminal::TYPED, &words, b"", stdout)
}

/// A session on one machine: each line with what it prints; `+90` lets as many seconds pass.
fn session(lines: &[&str]) -> String {
    let world = machine();
    let mut text = String::new();
    for line in lines {
        if let Some(seconds) = line.strip_prefix('+') {
            world.advance(Duration::from_secs(seconds.parse().unwrap()));
            text.push_str(&format!("({seconds} s later)\n"));
            continue;
        }
        let mut stdout = Vec::new();
        let (code, stderr) = run(&world, line, &mut stdout);
        let stdout = String::from_utf8(stdout).unwrap();
        text.push_str(&format!("$ policyd breaker {line}\n{stdout}{stderr}= {code}\n\n"));
    }
    text
}

#[test]
fn each_change_of_the_state_is_logged_once() {
    let world = machine();
    let call = |line: &str| drop(run(&world, line, &mut Vec::new()));
    let later = |seconds: u64| world.advance(Duration::from_secs(seconds));
    for line in ["record api/watched failure", "record api/x failure", "record api/x failure"] {
        call(line);
    }
    later(120);
    call("allow api/x");
    call("record api/x failure --error HTTP~500");
    later(3_600);
    for _ in 0..3 {
        call("allow api/x");
        call("record api/x success");
        later(10);
    }
    let log = world.get("/work/.policyd/logs/decisions.jsonl").unwrap();
    let changes: Vec<(String, String, String)> = String::from_utf8(log)
        .unwrap()
        .lines()
        .map(|line| {
            let entry: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = |key: &str| entry["notice"][key].as_str().unwrap_or_default().to_owned();
            (entry["event"].as_str().unwrap().to_owned(), text("outcome"), text("text"))
        })
        .collect();
    let change = |outcome: &str, text: &str| {
        ("breaker_change".to_owned(), outcome.to_owned(), text.to_owned())
    };
    let expected = [
        ("breaker_open".to_owned(), String::new(), "it rejects calls".to_owned()),
        change("half_open", "a trial call is permitted"),
        change("open", "HTTP 500"),
        change("half_open", "a trial call is permitted"),
        change("closed", "the trial calls succeeded"),
    ];
    assert_eq!(changes, expected);
}

#[test]
fn a_breaker_opens_is_probed_and_closes() {
    let lines = [
        "list",
        "status",
        "allow api/x",
        "allow api/x --format json",
        "record api/x failure --error 529~overloaded",
        "explain api/x",
        "+20",
        "record api/x failure --error token=abc123def~is~wrong",
        "list",
        "status",
        "allow api/x",
        "allow api/x --format json",
        "show api/x",
        "show api/x --format json",
        "explain api/x",
        "+120",
        "list",
        "allow api/x --format json",
        "allow api/x",
        "explain api/x",
        "record api/x success --generation 1",
        "record api/x success --generation 2",
        "+10",
        "allow api/x",
        "record api/x success",
        "+10",
        "allow api/x",
        "record api/x success",
        "status",
        "explain api/x",
        "+60",
        "status --format json",
        "+60",
        "status",
    ];
    snapshot("breakers", "commands__opens_is_probed_and_closes", session(&lines));
}

#[test]
fn somebody_opens_a_breaker_by_hand() {
    let lines = [
        "trip api/x --for 10m --reason maintenance",
        "allow api/x",
        "explain api/x",
        "trip api/y",
        "status",
        "allow api/y --format json",
        "explain api/y",
        "reset api/y",
        "list",
        "reset api/y",
        "reset api/unknown",
        "+600",
        "allow api/x",
        "list",
    ];
    snapshot("breakers", "commands__opened_by_hand", session(&lines));
}

#[test]
fn errors_have_classes_and_servers_ask_for_time() {
    let lines = [
        "record api/claude/opus failure --class invalid_request --error 400",
        "list",
        "record api/claude/opus failure --class billing_error --error no~credit",
        "explain api/claude/opus",
        "record api/x failure --class authentication_failed --error 401",
        "record api/y failure --class overloded --error 529",
        "list",
        "record api/slow failure --retry-after 900 --error 429",
        "explain api/slow",
        "record api/watched failure --error 500",
        "allow api/watched",
        "allow api/watched --format json",
        "list --format json",
        "status",
    ];
    snapshot("breakers", "commands__classes_and_retry_after", session(&lines));
}

#[test]
fn a_chain_of_fallbacks_answers_with_the_first_free_tier() {
    let lines = [
        "route",
        "record api/claude/opus failure --error 529",
        "route model",
        "route model --format json",
        "+60",
        "record api/claude/sonnet failure --error 529",
        "record api/claude/haiku failure --error 529",
        "route",
        "route --format json",
        "route modle",
        "+60",
        "route",
        "route",
    ];
    snapshot("breakers", "commands__a_chain_of_fallbacks", session(&lines));
}

#[test]
fn what_is_typed_wrong_is_told_with_its_cure() {
    let lines = [
        "record api/x failure --retry-after soon",
        "trip api/x --for 10",
        "record api/x failed",
        "allow",
    ];
    snapshot("breakers", "commands__typed_wrong", session(&lines));
}

/// A reader that goes away after some lines; whoever writes to it lets time pass.
struct Reader<'w> {
    world: &'w FakeWorld,
    lines: Vec<String>,
    left: usize,
}

impl Write for Reader<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(1).ok_or(io::ErrorKind::BrokenPipe)?;
        self.lines.push(String::from_utf8(bytes.to_vec()).unwrap());
        let mut nothing = Vec::new();
        match self.lines.len() {
            1 => drop(run(self.world, "record api/x failure --error 529", &mut nothing)),
            _ => self.world.advance(Duration::from_secs(30)),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_watcher_tells_changes_until_nobody_reads() {
    let world = machine();
    run(&world, "record api/x failure --error 500", &mut Vec::new());
    let mut reader = Reader { world: &world, lines: Vec::new(), left: 2 };
    let (code, stderr) = run(&world, "watch --every 5s", &mut reader);
    assert_eq!((code, stderr.as_str(), reader.lines.len()), (0, "", 2));
    snapshot("breakers", "commands__a_watcher", reader.lines.concat());
}
