//! Input -> expected data: the project's own cases of `tests/cases/`, and the cases about the
//! replaced systems beside the project where they are. A table of agreement is printed.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use policyd::evaluation;
use policyd::evaluation::preference;
use policyd::expr::pattern::prose_regex;
use policyd::expr::reply;
use policyd::facts::record::lenient::Either;
use policyd::facts::record::wire::Input;
use policyd::facts::record::{self, RecordEntry, TranscriptFormat};
use policyd::policy::{builtin, load};
use policyd::source::Source;
use policyd::state::BlockLimiterState;
use policyd::state::block_limiter::{self, BlockLimits, LimiterDecision, Stop};
use policyd::time::Timestamp;
use policyd::world::fake::FakeWorld;
use serde_json::{Value, json};

use super::complete::{complete_policy, moved_checks};
use super::forge;
use super::scene::Scene;
use crate::support::shared;
use crate::support::snapshot;

/// Disagreements with the replaced systems that are meant, each with its reason.
const REASONS: &[(&str, &str)] = &[
    (
        "hook/lock_custom_prompt",
        "amplihack's lock mode is another feature; policyd never blocks without a cause",
    ),
    (
        "hook/lock_foreign_session",
        "no lock mode: policyd does not delete another program's lock file",
    ),
    (
        "session/ops_wins_over_code",
        "a session that edited code is judged as development (the case's own note agrees)",
    ),
];

/// Kinds about things that policyd does not do, each with the reason; their cases are listed.
const KIND_REASONS: &[(&str, &str)] = &[
    (
        "addressed_heuristic",
        "what the agent says of a finding is no evidence that it is met: the finding is judged anew",
    ),
    (
        "compaction_events",
        "compactions are read from the transcript; no other file can tell of them or lead elsewhere",
    ),
    (
        "compaction_recent",
        "a compaction replaces messages by a summary: that one is gone is no finding",
    ),
];

/// Kinds that `tests/resilience/shared_state_cases.rs` runs.
const ELSEWHERE: &[&str] = &[
    "diagnostics",
    "session_id_sanitize",
    "session_id_valid",
    "state_load",
    "state_save_fault",
    "state_validate",
];

/// What a case of a kind gives; `None` where the kind is not of this test.
fn run(kind: &str, input: &Value) -> Option<Value> {
    Some(match kind {
        "hook_io" => hook_io(input),
        "disabled" => disabled(input),
        "auto_approve" => auto_approve(input),
        "loop_detect" => loop_detect(input)?,
        "fingerprint" => fingerprint(input),
        "stop_sequence" => stop_sequence(input),
        "session_type" => session_type(input),
        "merge_preference" => merge_preference(input),
        "transcript_format" => transcript_format(input),
        "checker" => checker(input),
        "ci_status" => forge::ci_status(input),
        "pr_state_json" => forge::pr_state_json(input),
        "evidence_pr" => forge::evidence_pr(input),
        "evidence_ci" => forge::evidence_ci(input),
        "consideration_schema" => consideration_schema(input),
        "compaction_todos" => compaction_todos(input),
        "config_validate" => config_validate(input),
        "transcript_normalize" => transcript_normalize(input),
        "llm_verdict_parse" => llm_verdict_parse(input),
        _ => return None,
    })
}

fn hook_io(input: &Value) -> Value {
    let scene = Scene::new();
    set_up(&scene.world, input);
    if let Some(events) = input["events"].as_array() {
        let mut scene = scene;
        scene.events(events);
        let called = scene.stop();
        return json!({"exit_code": called.code, "decision": called.decision()});
    }
    let called = scene.call("stop", input["stdin"].as_str().unwrap_or_default(), &[]);
    json!({"exit_code": called.code, "decision": called.decision()})
}

fn set_up(world: &FakeWorld, input: &Value) {
    for (name, value) in input["env"].as_object().into_iter().flatten() {
        world.set_env(name, value.as_str().unwrap());
    }
    for (path, text) in input["files"].as_object().into_iter().flatten() {
        world.put(Path::new("/work").join(path), text.as_str().unwrap());
    }
}

/// Whether amplihack's configuration of a project is taken as it is, without a complaint.
fn config_validate(input: &Value) -> Value {
    let mut scene = Scene::new();
    scene.events(&failing_events());
    let path = "/work/.claude/tools/amplihack/.power_steering_config";
    scene.world.put(path, input["config"].to_string());
    scene.honor_switch_files();
    json!({"valid": scene.report()["problems"].as_array().unwrap().is_empty()})
}

/// A model's reply to one question; without a clear verdict it holds nobody.
fn llm_verdict_parse(input: &Value) -> Value {
    let content = reply::content(input["response"].as_str().unwrap()).unwrap_or_default();
    json!({"satisfied": reply::verdict(&content) != "unsatisfied"})
}

/// A session that would be blocked, with the switch of the case.
fn disabled(input: &Value) -> Value {
    let mut scene = Scene::new();
    scene.events(&failing_events());
    set_up(&scene.world, input);
    scene.honor_switch_files();
    if input["cwd_disabled_file"] == true {
        scene.world.put("/work/.disabled", "");
    }
    if input["shared_disabled_file"] == true {
        scene.world.put("/work/.claude/runtime/power-steering/.disabled", "");
    }
    if let Some(file) = input["file"].as_str() {
        scene.world.put(Path::new("/work").join(file), "");
    }
    json!({"disabled": scene.stop().decision() != "block"})
}

fn failing_events() -> Vec<Value> {
    vec![
        json!({"user": "Add a parser"}),
        json!({"tool": "Write", "input": {"file_path": "/work/a.py", "content": "x = 1\n"}}),
        json!({"claude_user_tool_result": "File created successfully"}),
        json!({"assistant": "Done."}),
    ]
}

/// A stop without anything that other sources than the state show.
const STOP: Stop<'static> = Stop {
    episode: "p",
    fingerprint: None,
    digest: "",
    failed: &[],
    tools: 0,
    edits: 0,
    blocks_shown: 0,
    tools_at_shown_block: 0,
    follows_block: false,
};

fn guard_after(blocks: u64, limits: &BlockLimits) -> (BlockLimiterState, Option<LimiterDecision>) {
    let mut state = BlockLimiterState::default();
    let mut last = None;
    for number in 0..blocks {
        let fingerprint = format!("finding-{number}");
        let stop = Stop {
            fingerprint: Some(&fingerprint),
            digest: &fingerprint,
            tools: number + 1,
            edits: number,
            ..STOP
        };
        let (next, ruling) = block_limiter::step(&state, &stop, limits, Timestamp::default());
        (state, last) = (next, Some(ruling));
    }
    (state, last)
}

fn auto_approve(input: &Value) -> Value {
    let number = |key: &str| input[key].as_u64().unwrap();
    let limits = BlockLimits {
        max_consecutive_blocks: u32::try_from(number("max")).unwrap(),
        warn_from: u32::try_from(number("warn_at")).unwrap(),
        ..BlockLimits::default()
    };
    let blocks = number("consecutive_blocks").min(number("max"));
    let (state, last) = guard_after(blocks, &limits);
    let stop =
        Stop { fingerprint: Some("one more"), digest: "one more", tools: 99, edits: 99, ..STOP };
    let (_, ruling) = block_limiter::step(&state, &stop, &limits, Timestamp::default());
    let approve = matches!(ruling, LimiterDecision::Release { .. });
    let escalation = match last {
        Some(LimiterDecision::Block { number, remaining, warn: true, .. }) if !approve => {
            Some(format!(
                "Warning: {number}/{} blocks used. Auto-approval in {remaining} more blocks if issues persist.",
                limits.max_consecutive_blocks
            ))
        }
        _ => None,
    };
    json!({"approve": approve, "escalation": escalation})
}

/// Fingerprints of the blocks so far and of this stop -> whether it is a loop.
fn loop_detect(input: &Value) -> Option<Value> {
    let before = input["failure_fingerprints"].as_array().or(input["fingerprints"].as_array())?;
    let current = input["current"].as_str()?;
    let state = BlockLimiterState {
        episode: "p".to_owned(),
        fingerprints: before.iter().map(|it| it.as_str().unwrap().to_owned()).collect(),
        ..BlockLimiterState::default()
    };
    let stop = Stop { fingerprint: Some(current), digest: current, tools: 9, edits: 9, ..STOP };
    let (_, ruling) =
        block_limiter::step(&state, &stop, &BlockLimits::default(), Timestamp::default());
    Some(json!({"loop": matches!(ruling, LimiterDecision::Release { .. })}))
}

fn fingerprint(input: &Value) -> Value {
    let ids = input["ids"].as_array().unwrap().iter().map(|it| it.as_str().unwrap());
    json!({"fingerprint": evaluation::fingerprint(ids)})
}

/// Several stops of one session; each transcript replaces the one before.
fn stop_sequence(input: &Value) -> Value {
    let world = Scene::new().world;
    let decisions: Vec<String> = input["transcripts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|events| {
            let mut scene = Scene::new();
            scene.world = world.clone();
            scene.events(events.as_array().unwrap());
            scene.stop().decision()
        })
        .collect();
    json!({"decisions": decisions})
}

fn session_type(input: &Value) -> Value {
    let mut scene = Scene::new();
    set_up(&scene.world, input);
    scene.events(input["events"].as_array().unwrap());
    json!({"session_type": scene.report()["session_type"]})
}

fn merge_preference(input: &Value) -> Value {
    let pack = builtin::pack();
    let policy = load::load(&pack, &pack).policy.unwrap();
    let preference = policy.preferences.iter().find(|it| it.id == "no_auto_merge").unwrap();
    let regexes: Vec<_> = preference.regexes.iter().map(|it| prose_regex(it)).collect();
    json!({"no_auto_merge": preference::found(input["text"].as_str().unwrap(), &regexes)})
}

fn transcript_format(input: &Value) -> Value {
    let line = input["first_line"].as_str().unwrap();
    json!({"format": TranscriptFormat::of_line(line.as_bytes()).as_str()})
}

/// What the lines of a transcript say, one message a line that says something.
fn transcript_normalize(input: &Value) -> Value {
    let lines = input["lines"].as_array().unwrap().iter().map(|it| it.as_str().unwrap());
    let messages = lines.filter_map(|line| {
        let (mut who, mut text, mut tools) = ("", String::new(), vec![]);
        for entry in record::read(line.as_bytes())?.entries {
            match entry {
                RecordEntry::Prompt { text: said, .. } => (who, text) = ("user", said.into_owned()),
                RecordEntry::Said(said) => (who, text) = ("assistant", said.into_owned()),
                RecordEntry::Call { name, input, .. } => {
                    who = "assistant";
                    tools.push(json!({"name": name, "input": call_input(&input)}));
                }
                RecordEntry::Asked(_)
                | RecordEntry::Injected { .. }
                | RecordEntry::Result(_)
                | RecordEntry::Done { .. }
                | RecordEntry::Stopping { .. }
                | RecordEntry::Usage(_)
                | RecordEntry::Stopped { .. }
                | RecordEntry::CutOff
                | RecordEntry::Compacted => {}
            }
        }
        (!who.is_empty()).then(|| json!({"type": who, "text": text, "tools": tools}))
    });
    json!({"messages": messages.collect::<Vec<_>>()})
}

/// The fields of a tool's input that facts are made of.
fn call_input(input: &Either<'_, Input<'_>>) -> Value {
    let decoded;
    let input = match input {
        Either::One(input) => input.as_ref(),
        Either::Text(text) => {
            decoded = record::decode_input(text).unwrap_or_default();
            &decoded
        }
        Either::Many(_) | Either::None => return json!({}),
    };
    let command = if let Either::Text(text) = &input.command { text.as_ref() } else { "" };
    let fields = [
        ("command", command),
        ("file_path", &*input.file_path),
        ("path", &*input.path),
        ("content", &*input.content),
        ("old_string", &*input.old_string),
        ("new_string", &*input.new_string),
    ];
    let said = fields.into_iter().filter(|(_, text)| !text.is_empty());
    said.map(|(name, text)| (name.to_owned(), json!(text)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// What a checker of the built-in pack says wherever it applies and whatever the session type is
/// (`satisfied`), and what its consideration comes to in this session.
fn checker(input: &Value) -> Value {
    let policy = complete_policy();
    let id = policy.rule_id(input["consideration"].as_str().unwrap()).unwrap();
    let mut scene = Scene::new();
    set_up(&scene.world, input);
    for program in ["gh", "glab", "tea"] {
        forge::script(&scene.world, program, &input[program]);
    }
    scene.world.set_env("XDG_CACHE_HOME", "/cache");
    scene.world.put("/work/.policyd/policies/considerations.yaml", every_checker());
    COMPILED
        .with_borrow(|packs| packs.iter().for_each(|(path, bytes)| scene.world.put(path, bytes)));
    scene.events(&spread(input["events"].as_array().unwrap()));
    let report = scene.report();
    if COMPILED.with_borrow(Vec::is_empty) {
        let files = scene.world.files().into_iter().filter(|it| it.starts_with("/cache"));
        COMPILED.set(files.map(|it| (it.clone(), scene.world.get(&it).unwrap())).collect());
    }
    let asked = forge::verdict(&report, &format!("asked_{id}"));
    assert_ne!(asked["status"], "unknown", "{id}: {asked}");
    let own = forge::verdict(&report, id);
    let evidence = own["evidence"].as_array().into_iter().flatten();
    let evidence = evidence.filter_map(Value::as_str).collect::<Vec<_>>().join("\n");
    json!({"satisfied": asked["status"] == "satisfied", "status": own["status"],
        "consequence": own["consequence"], "details": own["details"], "evidence": evidence})
}

/// What is said where only this consideration of the built-in pack is switched on. `compiled`:
/// the pack in compiled form, once there is one.
fn situation(case: &Value, all: &[String], compiled: &mut Vec<(PathBuf, Vec<u8>)>) -> String {
    let (input, mut scene) = (&case["input"], Scene::new());
    let id = input["consideration"].as_str().unwrap();
    set_up(&scene.world, input);
    for program in ["gh", "glab", "tea"] {
        forge::script(&scene.world, program, &input[program]);
    }
    let switched = all.iter().map(|it| json!({"id": it, "override": true, "enabled": it == id}));
    let mut pack: String = switched.map(|it| format!("- {it}\n")).collect();
    let moved = moved_checks().split_inclusive("\n\n").collect::<Vec<_>>();
    pack.extend(moved.iter().filter(|it| it.starts_with(&format!("- id: {id}\n"))).copied());
    scene.world.put("/work/.policyd/policies/considerations.yaml", pack);
    scene.world.set_env("XDG_CACHE_HOME", "/cache");
    compiled.iter().for_each(|(path, bytes)| scene.world.put(path, bytes));
    scene.events(&spread(input["events"].as_array().unwrap()));
    let report = scene.report();
    let files = scene.world.files().into_iter().filter(|it| it.starts_with("/cache"));
    *compiled = files.map(|it| (it.clone(), scene.world.get(&it).unwrap())).collect();
    let own = forge::verdict(&report, id);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let said = format!("{}{}", text(&report["reason"]), text(&report["notice"]));
    let said = said.lines().map(|line| format!("  | {line}").trim_end().to_owned() + "\n");
    let [status, consequence, details] =
        ["status", "consequence", "details"].map(|key| text(&own[key]));
    let name = text(&case["name"]);
    format!("{name}\n  {status}, {consequence}: {details}\n{}", said.collect::<String>())
}

/// The whole message of every situation of every consideration.
#[test]
fn situations_are_said_in_whole() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/checker.yaml");
    let cases: Vec<Value> = serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let all = load::load(&builtin::pack(), &builtin::pack()).policy.unwrap().considerations;
    let all: Vec<String> = all.iter().map(|it| it.id.clone()).collect();
    let mut by_id: BTreeMap<&str, (String, Vec<_>)> = BTreeMap::new();
    for case in &cases {
        let id = case["input"]["consideration"].as_str().unwrap();
        let (text, compiled) = by_id.entry(id).or_default();
        text.push_str(&situation(case, &all, compiled));
    }
    for (id, (text, _)) in by_id {
        snapshot("situations", id, text.trim_end());
    }
}

thread_local! {
    /// The compiled pack of `every_checker`, which is the same for every case.
    static COMPILED: RefCell<Vec<(PathBuf, Vec<u8>)>> = const { RefCell::new(Vec::new()) };
    static EVERY_CHECKER: String = {
        let policy = complete_policy();
        let asked = policy.considerations.iter().map(|it| {
            json!({"id": format!("asked_{}", it.id), "category": "c", "question": "q",
                "severity": "blocker", "satisfied": it.check.body.satisfied.text,
                "applicable_session_types": ["*"]})
        });
        let asked: String = asked.map(|it| format!("- {it}\n")).collect();
        format!("{}\n{asked}", moved_checks())
    };
}

/// A pack that asks every checker of amplihack's list and the built-in pack wherever it applies.
fn every_checker() -> String {
    EVERY_CHECKER.with(String::clone)
}

/// Short forms of events for cases: `edit: path` with `text`, `ran: command` with `printed` and
/// `failed`, `called: tool` with `input`, `repeat: n` with an event whose `#` becomes the number,
/// `compacted`.
fn spread(events: &[Value]) -> Vec<Value> {
    let mut all = Vec::new();
    for event in events {
        if let Some(times) = event["repeat"].as_u64() {
            for number in 0..times {
                let text = event["event"].to_string().replace('#', &number.to_string());
                all.extend(spread(&[serde_json::from_str(&text).unwrap()]));
            }
        } else if let Some(path) = event["edit"].as_str() {
            let text = event["text"].as_str().unwrap_or("x = 1\n");
            all.push(json!({"tool": "Write", "input": {"file_path": path, "content": text}}));
            all.push(json!({"claude_user_tool_result": "File created successfully"}));
        } else if let Some(tool) = event["called"].as_str() {
            all.push(json!({"tool": tool, "input": event["input"]}));
            all.push(json!({"claude_user_tool_result": "ok"}));
        } else if event["compacted"] == true {
            all.push(json!({"record": {"type": "system", "subtype": "compact_boundary"}}));
        } else if let Some(command) = event["ran"].as_str() {
            all.push(json!({"tool": "Bash", "input": {"command": command}}));
            all.push(
                json!({"claude_user_tool_result": event["printed"].as_str().unwrap_or_default(),
                "is_error": event["failed"] == true}),
            );
        } else {
            all.push(event.clone());
        }
    }
    all
}

/// Whether a consideration alone is a sound pack.
fn consideration_schema(input: &Value) -> Value {
    let mut own = builtin::pack();
    own.name = "own".to_owned();
    let text = json!([input["consideration"]]).to_string();
    let source = Source { name: "considerations.yaml".to_owned(), text };
    own.files = vec![("considerations.yaml".to_owned(), source.into())];
    json!({"valid": load::load(&own, &builtin::pack()).policy.is_some()})
}

/// A list kept before a compaction and never touched again.
fn compaction_todos(input: &Value) -> Value {
    let mut scene = Scene::new();
    let said = |key: &str| -> Vec<String> {
        let texts = input[key].as_array().unwrap().iter();
        texts.map(|it| it.as_str().unwrap().to_owned()).collect()
    };
    let todos: Vec<Value> = said("pre")
        .iter()
        .flat_map(|it| it.lines())
        .filter_map(|it| it.strip_prefix("TODO: "))
        .map(|it| json!({"content": it, "status": "pending"}))
        .collect();
    scene.events(&[
        json!({"user": said("pre")[0]}),
        json!({"tool": "TodoWrite", "input": {"todos": todos}}),
        json!({"claude_user_tool_result": "ok"}),
    ]);
    scene.events(&spread(&[json!({"compacted": true})]));
    for text in said("post") {
        scene.events(&[json!({"assistant": text})]);
    }
    let verdict = forge::verdict(&scene.report(), "compaction_handling");
    let passed = verdict["status"] == "satisfied";
    json!({"passed": passed, "warning": if passed { Value::Null } else { verdict["details"].clone() }})
}

/// Whether what was expected is there: objects by the keys that are expected, `not` negates.
fn agrees(expected: &Value, got: &Value) -> bool {
    match expected.as_object() {
        Some(fields) => fields.iter().all(|(key, wanted)| match key.as_str() {
            "not" => wanted != got,
            "stdout" => {
                let decision = wanted["decision"].as_str().unwrap_or("approve");
                got["decision"] == decision
            }
            // Why a stop was let through is said in other words here.
            "reasons" | "files_removed" => true,
            _ => agrees(wanted, &got[key]),
        }),
        None => expected == got,
    }
}

struct Tally {
    rows: Vec<String>,
    wrong: Vec<String>,
    kinds: BTreeMap<String, (usize, usize)>,
}

fn judge_cases(cases: &[Value]) -> Tally {
    let mut tally = Tally { rows: vec![], wrong: vec![], kinds: BTreeMap::new() };
    for case in cases {
        let (kind, name) = (case["kind"].as_str().unwrap(), case["name"].as_str().unwrap());
        if let Some((_, why)) = KIND_REASONS.iter().find(|(it, _)| *it == kind) {
            tally.kinds.entry(kind.to_owned()).or_default().1 += 1;
            tally.rows.push(format!("{kind:18} {name:42} not done here: {why}"));
            continue;
        }
        let Some(got) = run(kind, &case["input"]) else {
            let elsewhere = ELSEWHERE.contains(&kind);
            assert!(elsewhere, "{kind} {name}: no test runs cases of this kind");
            continue;
        };
        let agrees = agrees(&case["expected"], &got);
        let reason = REASONS.iter().find(|(it, _)| *it == name).map(|(_, why)| *why);
        let counts = tally.kinds.entry(kind.to_owned()).or_default();
        counts.1 += 1;
        counts.0 += usize::from(agrees);
        let verdict = match (agrees, reason) {
            (true, _) => "agrees".to_owned(),
            (false, Some(why)) => format!("differs: {why}"),
            (false, None) => {
                tally
                    .wrong
                    .push(format!("{kind} {name}: expected {}, got {got}", case["expected"]));
                "WRONG".to_owned()
            }
        };
        tally.rows.push(format!("{kind:18} {name:42} {verdict}"));
    }
    tally
}

fn report(tally: &Tally) {
    for row in &tally.rows {
        println!("{row}");
    }
    for (kind, (agreed, all)) in &tally.kinds {
        println!("{kind:18} {agreed} of {all} agree");
    }
    assert!(tally.wrong.is_empty(), "\n{}", tally.wrong.join("\n"));
}

#[test]
fn cases_of_the_replaced_system_agree_or_have_a_reason() {
    let Some(cases) = shared::cases("amplihack_cases.json") else { return };
    report(&judge_cases(&cases));
}

#[test]
fn own_cases_agree() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases = vec![];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let list: Vec<Value> = serde_yaml::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        cases.extend(list.into_iter().map(|mut case| {
            case["kind"] = kind.as_str().into();
            case
        }));
    }
    for it in complete_policy().considerations.into_inner() {
        let of_it = cases.iter().filter(|case| case["input"]["consideration"] == it.id.as_str());
        assert!(of_it.count() >= 6, "{}: fewer than six situations", it.id);
    }
    let tally = judge_cases(&cases);
    assert_eq!(tally.rows.len(), cases.len(), "every own case is of a kind that runs");
    assert!(cases.len() > 60, "{} own cases", cases.len());
    report(&tally);
}
