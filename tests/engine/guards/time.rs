//! How long a command line takes to read: in proportion to its length. No answer depends on the load of the machine.

use std::time::Duration;
use std::{fs, thread};

use policyd::evaluation::situation::Matchers;
use policyd::facts::call::{AnalysisContext, Call, CallEnvironment, NoDisk};
use policyd::facts::compiled::CompiledMatchers;
use policyd::policy::{builtin, load};
use serde_json::json;

use super::machine::Machine;

const PROJECT: &str = "/home/dev/project";

type Line = (&'static str, fn(usize) -> String);

/// Long lines of simple parts.
const LINES: &[Line] = &[
    ("commands", |count| "true;".repeat(count)),
    ("lines", |count| "true\n".repeat(count)),
    ("assignments", |count| "a=1;".repeat(count)),
    ("other assignments", |count| (0..count).map(|it| format!("a{it}=1;")).collect()),
    ("functions", |count| (0..count / 2).map(|it| format!("f{it}() {{ :; }};")).collect()),
    ("words", |count| format!("echo {}", "a ".repeat(count))),
    ("substitutions", |count| format!("echo {}", "$(true) ".repeat(count))),
    ("subshells", |count| "(true);".repeat(count)),
    ("pipelines", |count| "true|true;".repeat(count)),
    ("redirections", |count| "true >/dev/null;".repeat(count)),
    ("branches", |count| "if true; then :; fi;".repeat(count / 2)),
];

/// Returns the CPU time of this thread, which other load does not change. `None` if the machine does not report it.
fn cpu_time() -> Option<Duration> {
    // The scheduler updates the number when the thread yields.
    thread::yield_now();
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

#[test]
#[ignore = "second tier: it measures"]
fn a_line_of_simple_parts_takes_time_in_proportion_to_its_length() {
    if cpu_time().is_none() {
        println!("skipped: the CPU time of a thread is not known");
        return;
    }
    let pack = builtin::pack();
    let policy = load::load(&pack, &pack).policy.unwrap();
    let words = Matchers::new(CompiledMatchers::new(policy.lens.clone()), policy.texts.clone());
    let around = CallEnvironment { folder: "/work".to_owned(), ..CallEnvironment::default() };
    let knowledge = &*policy.guards.knowledge;
    let reading = AnalysisContext { lens: &*words.lens, knowledge, around: &around, disk: &NoDisk };
    let taken = |line: &str| {
        let input = json!({ "command": line });
        let once = || {
            let begun = cpu_time().unwrap();
            let _call = Call::read("Bash", &input, reading);
            cpu_time().unwrap() - begun
        };
        (0..3).map(|_| once()).min().unwrap()
    };
    for (name, line) in LINES {
        let (short, long) = (taken(&line(500)), taken(&line(4000)));
        // Of eight times the length: eight times, where it is in proportion, and 64 where it is squared.
        assert!(long < short * 30, "{name}: {short:?} and {long:?}");
    }
}

#[test]
fn a_call_with_very_many_programs_is_asked_about_at_any_speed() {
    let word = "a".repeat(110);
    let line: String = (0..500).map(|it| format!("git log {word}{it};")).collect();
    for tick in [0, 400] {
        let machine = Machine::new(PROJECT);
        machine.world.tick(Duration::from_millis(tick));
        let (decision, reason) = machine.bash(&line);
        assert_eq!(decision, "ask", "{reason}");
        assert!(reason.contains("it starts very many programs"), "{reason}");
        let machine = Machine::new(PROJECT);
        machine.world.tick(Duration::from_millis(tick));
        assert_eq!(machine.bash("true; true; true").0, "");
    }
}
