//! Every command that only a human may run: refused to an agent, without a terminal and without the
//! displayed word, with nothing written; done with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use policyd::cli::{COMMAND_GROUPS, CommandRunner};
use policyd::world::fake::FakeWorld;
use policyd::world::{Ancestor, Confirmation};

use crate::support::console::call;
use crate::support::machine::machine;

const PACK: &str = "/work/.policyd/policies";

/// The commands; `ID` stands for the id of the escalation, and `SIGNAL` for the one of the request.
const COMMANDS: [&str; 32] = [
    "trust",
    "trust --changes",
    "trust --revoke",
    "trust --switch-files",
    "trust --switch-files --revoke",
    "pause 5m",
    "allow rm_recursive --for 10m",
    "disable --reason x",
    "learn test bin/qualify",
    "enforce --observe",
    "enforce rm_recursive",
    "rule off rm_recursive",
    "rule warn git-discipline --user",
    "rule observe local_testing --project",
    "rule off rm_recursive --project --reason x",
    "install --harness claude-code --observe",
    "uninstall --harness claude-code",
    "state reset s1",
    "breaker trip api/x",
    "breaker reset api/x",
    "signal approve SIGNAL",
    "signal reject SIGNAL",
    "signal emit HUMAN_APPROVED",
    "signal consume HUMAN_REVIEW_NEEDED",
    "escalation resolve ID --decision yes",
    "inbox answer ID yes",
    "dlq abandon sec --reason no",
    "dlq resolve sec",
    "dlq retry sec",
    "dlq add sec --error E --label human_approved",
    "init",
    "init --upgrade",
];

/// Other commands that an agent may not run, and why they are not here.
const NOT_HERE: [(&str, &str); 10] = [
    ("dashboard", "serves until it is ended"),
    ("enable", "only the guard refuses it"),
    ("escalation notify", "only the guard refuses it"),
    ("escalation test", "only the guard refuses it"),
    ("export", "only the guard refuses it"),
    ("export otlp", "only the guard refuses it"),
    ("pack push", "only the guard refuses it"),
    ("pack update", "only the guard refuses it, without `--allow-older`"),
    ("rule on", "undoes what another of these commands changed"),
    ("suggest accept", "needs recorded permission prompts"),
];

/// A machine on which every command has something to do, and the ids.
fn prepared() -> (FakeWorld, String, String) {
    let world = machine();
    let run = |line: &str| call(&world, &line.split(' ').collect::<Vec<_>>(), b"");
    assert_eq!(run("init").code, 0);
    world.put(format!("{PACK}/builtin/policyd.yaml"), "changed");
    world.put(format!("{PACK}/schemas/policyd.schema.json"), "{}");
    assert_eq!(run("install --harness claude-code").code, 0);
    // Code was edited and no test was run, so the stop is blocked, and the session remembers that.
    let write = r#"{"type":"tool_use","id":"t","name":"Write","input":{"file_path":"/work/a.py","content":"x = 1"}}"#;
    let result =
        r#"{"type":"tool_result","tool_use_id":"t","content":"File created successfully"}"#;
    let records = [
        r#"{"type":"user","message":{"role":"user","content":"Add a parser"}}"#.to_owned(),
        format!(r#"{{"type":"assistant","message":{{"id":"m","content":[{write}]}}}}"#),
        format!(r#"{{"type":"user","message":{{"role":"user","content":[{result}]}}}}"#),
    ];
    world.put("/work.jsonl", records.join("\n") + "\n");
    let stop = br#"{"session_id": "s1", "hook_event_name": "Stop", "cwd": "/work",
        "transcript_path": "/work.jsonl"}"#;
    assert_eq!(call(&world, &["eval", "--hook", "stop"], stop).code, 0);
    assert_eq!(run("breaker record api/x failure").code, 0);
    let add = ["dlq", "add", "sec", "--title", "Rotate passwords", "--error", "E", "--immediately"];
    assert_eq!(call(&world, &add, b"").code, 0);
    assert_eq!(run("signal emit HUMAN_REVIEW_NEEDED reason=keys").code, 0);
    let first = |out: &str, key: &str| {
        let line: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
        line.get(key).unwrap().as_str().unwrap().to_owned()
    };
    let escalation = first(&run("escalation list --format json").out, "id");
    let signal = first(&run("signal list --format json").out, "id");
    assert!(
        world.questions().is_empty(),
        "none of this is for humans alone: {:?}",
        world.questions()
    );
    (world, escalation, signal)
}

/// What is on the disk.
fn files(world: &FakeWorld) -> BTreeMap<PathBuf, Vec<u8>> {
    // A lock is taken before an action is known to be refused.
    let files = world.files().into_iter().filter(|it| {
        it.extension().is_none_or(|it| it != "lock") && !it.starts_with("/home/me/.cache")
    });
    files.map(|it| (it.clone(), world.get(&it).unwrap())).collect()
}

#[test]
fn every_command_for_humans_requires_one() {
    let program = "/usr/bin/codex".to_owned();
    let codex = vec![Ancestor { pid: 9, program, ..Ancestor::default() }];
    for line in COMMANDS {
        let (world, escalation, signal) = prepared();
        if line == "trust" {
            // `init` trusts its own pack.
            world.put(format!("{PACK}/guards.yaml"), "[]\n");
        }
        let before = files(&world);
        let line = line.replace("ID", &escalation).replace("SIGNAL", &signal);
        let words: Vec<&str> = line.split(' ').collect();
        let refused = |evidence: &str| {
            let said = call(&world, &words, b"");
            assert_eq!(said.code, 1, "{line}: {said:?}");
            assert!(said.err.contains(evidence), "{line}: {evidence}: {said:?}");
            assert!(files(&world) == before, "{line} changed something");
        };
        world.set_confirmation(Confirmation::NoTerminal);
        refused("run it in a terminal");
        world.set_confirmation(Confirmation::No);
        refused("not confirmed");
        world.set_confirmation(Confirmation::Yes);
        world.set_ancestors(codex.clone());
        refused("the process 9 `codex` is Codex");
        world.set_ancestors(Vec::new());
        let said = call(&world, &words, b"");
        assert_eq!(world.questions().len(), 3, "{line}: {:?}", world.questions());
        assert!(files(&world) != before, "{line} did nothing: {said:?}");
    }
}

#[test]
fn every_command_of_the_table_for_humans_is_here() {
    let rows = COMMAND_GROUPS.iter().flat_map(|it| it.rows);
    let humans = rows.filter(|it| it.runner == CommandRunner::Human).map(|it| it.words);
    let is_here = |words: &str| {
        let words = words.trim_start_matches("debug ");
        COMMANDS.iter().any(|it| *it == words || it.starts_with(&format!("{words} ")))
    };
    let absent: BTreeSet<&str> = humans.filter(|it| !is_here(it)).collect();
    let known = NOT_HERE.map(|(words, _)| words);
    assert_eq!(absent, BTreeSet::from(known), "`COMMANDS` has a line for each command");
}

#[test]
fn what_gives_an_agent_no_more_is_for_everyone() {
    for line in [
        "trust --list",
        "resume",
        "enable",
        "uninstall --dry-run",
        "dlq list",
        "signal list",
        "breaker list",
        "signal emit PAUSE",
        "breaker allow api/y",
        "state list",
    ] {
        let (world, ..) = prepared();
        world.set_env("CLAUDECODE", "1");
        let said = call(&world, &line.split(' ').collect::<Vec<_>>(), b"");
        assert!(!said.err.contains("for humans"), "{line}: {said:?}");
        assert!(world.questions().is_empty(), "{line}");
    }
}

#[test]
fn who_did_it_is_recorded() {
    let (world, escalation, signal) = prepared();
    let program = "/bin/zsh".to_owned();
    world.set_ancestors(vec![Ancestor { pid: 9, program, ..Ancestor::default() }]);
    let run = |line: &str| call(&world, &line.split(' ').collect::<Vec<_>>(), b"").out;
    for line in ["pause 5m", "resume", "disable", "enable", "trust --switch-files"] {
        run(line);
    }
    let log = |name: &str| {
        let bytes = world.get(format!("/work/.policyd/logs/{name}.jsonl")).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let decisions = log("decisions");
    let by = |event: &str| {
        decisions.lines().any(|it| it.contains(event) && it.contains(r#""by": "ada (zsh)""#))
    };
    for event in ["pause", "resume", "disable", "enable", "trust"] {
        assert!(by(&format!(r#""event": "{event}""#)), "{event}: {decisions}");
    }
    run(&format!("escalation resolve {escalation} --decision go"));
    assert!(run("escalation list --all").contains("approved by ada"));
    run(&format!("signal approve {signal}"));
    let history = run("signal history --format json");
    assert!(history.contains("ada"), "{history}");
    run("breaker trip api/y --reason maintenance");
    assert!(run("breaker show api/y").contains("maintenance, by ada (zsh)"));
    run("signal emit STOP");
    assert!(run("signal list --format json").contains(r#""sender":"ada""#));
    run("dlq add t --error E");
    run("dlq resolve t");
    let tasks = log("dead-letter");
    assert!(tasks.contains("ada (zsh)"), "{tasks}");
}
