//! Tests of the index: every line is one row, whatever happens to the logs, and counts agree with the fold of one log.

use serde_json::{Value, json};

use super::*;
use policyd_record::activity::Activity;
use policyd_store::log_files::rotated;
use policyd_world::fake::FakeWorld;
use policyd_world::real::RealWorld;

const LOG: &str = "/work/.policyd/logs/decisions.jsonl";
const PROJECT: &str = "/work";

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

/// A blocked tool call.
fn call(number: i64) -> Value {
    json!({"timestamp": at(number).to_string(), "id": format!("c{number}"), "event": "pre_tool_use",
        "session_id": format!("session-{}", number % 3), "decision": "block", "spoken": true,
        "tool": "Bash",
        "guards": [{"id": "rm", "decision": "block", "mode": "enforce", "status": "fired",
            "message": "Do not remove it."}]})
}

fn stop(number: i64, decision: &str, release: &str) -> Value {
    json!({"timestamp": at(number).to_string(), "id": format!("s{number}"), "event": "stop",
        "session_id": "s", "decision": decision, "spoken": decision == "block", "release": release,
        "verdicts": [{"id": "tests", "status": "unsatisfied", "consequence": "blocks",
            "details": format!("{number} failed")}],
        "inputs": {"transcript": {"path": "/t.jsonl"}}})
}

fn text(entries: impl IntoIterator<Item = Value>) -> String {
    entries.into_iter().map(|it| format!("{it}\n")).collect()
}

fn ingest(index: &mut DecisionIndex, world: &FakeWorld) -> u64 {
    index.ingest(world, IndexedLog { project: PROJECT, path: Path::new(LOG) }).unwrap()
}

fn ids(index: &DecisionIndex, filter: &DecisionFilter) -> Vec<String> {
    index.decisions(filter, 0, 100).unwrap().into_iter().map(|it| it.id).collect()
}

fn all(index: &DecisionIndex) -> Vec<String> {
    ids(index, &DecisionFilter::default())
}

#[test]
fn each_line_is_one_row() {
    let (world, mut index) = (FakeWorld::new(), DecisionIndex::in_memory().unwrap());
    assert_eq!(ingest(&mut index, &world), 0);
    let second = call(2).to_string();
    let (begin, end) = second.split_at(20);
    world.put(LOG, format!("{}not an entry\n{begin}", text([call(1)])));
    assert_eq!(ingest(&mut index, &world), 1);
    assert_eq!(ingest(&mut index, &world), 0);
    world.put(LOG, format!("{}not an entry\n{begin}{end}\n{}", text([call(1)]), text([call(3)])));
    assert_eq!(ingest(&mut index, &world), 2);
    assert_eq!(all(&index), ["c3", "c2", "c1"]);
}

#[test]
fn rows_follow_rotation_and_go_with_their_file() {
    let (world, mut index) = (FakeWorld::new(), DecisionIndex::in_memory().unwrap());
    world.put(LOG, text([call(1)]));
    ingest(&mut index, &world);
    world.put(rotated(Path::new(LOG), 1), text([call(1), call(2)]));
    world.put(LOG, text([call(3)]));
    assert_eq!(ingest(&mut index, &world), 2);
    assert_eq!(all(&index), ["c3", "c2", "c1"]);
    let (_, location) = index.decision(PROJECT, "c2").unwrap().unwrap();
    assert_eq!(location.read(&world), Some(format!("{}\n", call(2)).into_bytes()));
    world.put(rotated(Path::new(LOG), 1), text([call(3)]));
    world.put(LOG, text([call(4)]));
    assert_eq!(ingest(&mut index, &world), 1);
    assert_eq!(all(&index), ["c4", "c3"]);
    assert_eq!(location.read(&world), None, "the file was rotated away");
    index.retain_logs(|_, _| false).unwrap();
    assert_eq!(all(&index), [""; 0]);
}

#[test]
fn a_rewritten_log_is_read_again() {
    let (world, mut index) = (FakeWorld::new(), DecisionIndex::in_memory().unwrap());
    world.put(LOG, text([call(1), call(2), call(3)]));
    ingest(&mut index, &world);
    world.put(LOG, text([call(1), call(2)]));
    assert_eq!(ingest(&mut index, &world), 2, "it is shorter");
    assert_eq!(all(&index), ["c2", "c1"]);
    world.put(LOG, text([call(1), call(5), call(6)]));
    assert_eq!(ingest(&mut index, &world), 3, "it has other lines");
    assert_eq!(all(&index), ["c6", "c5", "c1"]);
    world.remove(Path::new(LOG)).unwrap();
    assert_eq!(ingest(&mut index, &world), 0);
    assert_eq!(all(&index), [""; 0]);
}

#[test]
fn a_log_that_cannot_be_read_keeps_its_rows() {
    let (world, mut index) = (FakeWorld::new(), DecisionIndex::in_memory().unwrap());
    world.put(LOG, text([call(1)]));
    ingest(&mut index, &world);
    world.put(LOG, text([call(1), call(2)]));
    let refused = WorldError::Io("permission denied".to_owned());
    world.refuse_always(policyd_world::fake::Op::ReadAt, "decisions.jsonl", refused);
    let log = IndexedLog { project: PROJECT, path: Path::new(LOG) };
    assert!(matches!(index.ingest(&world, log), Err(IndexError::Io { .. })));
    assert_eq!(all(&index), ["c1"]);
}

#[test]
fn two_processes_add_each_line_once() {
    let folder = tempfile::tempdir().unwrap();
    let (path, log) = (folder.path().join("state/i.sqlite"), folder.path().join("d.jsonl"));
    let world = RealWorld::new();
    world.append(&log, text((0..500).map(call)).as_bytes()).unwrap();
    let added: Vec<u64> = std::thread::scope(|threads| {
        let take = || {
            let mut index = DecisionIndex::open(&RealWorld::new(), &path).unwrap();
            index.ingest(&RealWorld::new(), IndexedLog { project: PROJECT, path: &log }).unwrap()
        };
        let threads: Vec<_> = (0..4).map(|_| threads.spawn(take)).collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(added.iter().sum::<u64>(), 500, "{added:?}");
    assert_eq!(DecisionIndex::open(&world, &path).unwrap().count().unwrap(), 500);
}

#[test]
fn a_damaged_index_and_one_of_another_version_are_built_again() {
    let folder = tempfile::tempdir().unwrap();
    let (path, world) = (folder.path().join("i.sqlite"), RealWorld::new());
    let log = folder.path().join("d.jsonl");
    world.append(&log, text([call(1)]).as_bytes()).unwrap();
    let take = |index: &mut DecisionIndex| {
        index.ingest(&world, IndexedLog { project: PROJECT, path: &log }).unwrap()
    };
    assert_eq!(take(&mut DecisionIndex::open(&world, &path).unwrap()), 1);
    assert_eq!(take(&mut DecisionIndex::open(&world, &path).unwrap()), 0);
    remove(&world, &path).unwrap();
    world.write(&path, &[b'x'; 5000]).unwrap();
    assert_eq!(take(&mut DecisionIndex::open(&world, &path).unwrap()), 1);
    let other = Connection::open(&path).unwrap();
    other.pragma_update(None, "user_version", 99).unwrap();
    drop(other);
    assert_eq!(take(&mut DecisionIndex::open(&world, &path).unwrap()), 1);
}

#[test]
fn counts_agree_with_the_fold_of_the_log() {
    let (world, mut index) = (FakeWorld::new(), DecisionIndex::in_memory().unwrap());
    let mut random = policyd_yaml::checksum::checksum(&[b"seed"]).map(u64::from);
    let mut next = |limit: u64| {
        random[0] = random[0].wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
        (random[0] >> 33) % limit
    };
    let mut lines = Vec::new();
    for number in 0..400 {
        let mut entry = match next(5) {
            0 => call(number),
            1 => stop(number, "block", ""),
            2 => stop(number, "none", "max_blocks"),
            3 => stop(number, "none", ""),
            _ => json!({"timestamp": at(number).to_string(), "event": "pause", "decision": "none"}),
        };
        if next(4) == 0 {
            entry["guards"] = json!([{"id": "seen", "would": "block", "decision": "block"}]);
        }
        if next(4) == 0 {
            entry["agent_id"] = json!("sub");
        }
        lines.push(entry);
    }
    for parts in [1, 3, 7] {
        let (mut written, size) = (Vec::new(), lines.len() / parts + 1);
        for part in lines.chunks(size) {
            written.extend(part.iter().cloned());
            world.put(LOG, text(written.iter().cloned()));
            ingest(&mut index, &world);
        }
        for since in [0, 100, 399, 1000] {
            let mut expected = Activity::default();
            lines.iter().for_each(|it| expected.add(it.to_string().as_bytes(), at(since)));
            let found = index.activity(at(since)).unwrap().projects;
            assert_eq!(found.get(PROJECT), Some(&expected), "since {since}, in {parts} parts");
        }
        index.retain_logs(|_, _| false).unwrap();
    }
}

#[test]
fn filters_select_decisions() {
    let (world, mut index) = (FakeWorld::new(), DecisionIndex::in_memory().unwrap());
    let other = "/other/.policyd/logs/decisions.jsonl";
    world.put(LOG, text([call(1), stop(2, "block", ""), stop(3, "none", "max_blocks")]));
    world.put(other, text([call(4)]));
    ingest(&mut index, &world);
    let log = IndexedLog { project: "/other", path: Path::new(other) };
    index.ingest(&world, log).unwrap();
    let none = DecisionFilter::default;
    for (filter, expected) in [
        (none(), &["c4", "s3", "s2", "c1"] as &[&str]),
        (DecisionFilter { project: Some("/other".to_owned()), ..none() }, &["c4"]),
        (DecisionFilter { rule: Some("rm".to_owned()), ..none() }, &["c4", "c1"]),
        (DecisionFilter { rule: Some("unknown".to_owned()), ..none() }, &[]),
        (
            DecisionFilter {
                rule: Some("tests".to_owned()),
                results: vec![RuleResult::Released, RuleResult::Halted],
                ..none()
            },
            &["s3"],
        ),
        (DecisionFilter { outcomes: vec![DecisionOutcome::BlockedStop], ..none() }, &["s2"]),
        (
            DecisionFilter {
                outcomes: vec![DecisionOutcome::BlockedStop, DecisionOutcome::ReleasedStop],
                ..none()
            },
            &["s3", "s2"],
        ),
        (DecisionFilter { session: Some("session-1".to_owned()), ..none() }, &["c4", "c1"]),
        (DecisionFilter { since: Some(at(2)), until: Some(at(4)), ..none() }, &["s3", "s2"]),
        (DecisionFilter { would_stop: true, ..none() }, &[]),
    ] {
        assert_eq!(ids(&index, &filter), expected, "{filter:?}");
    }
    assert_eq!(index.decisions(&none(), 1, 2).unwrap().len(), 2);
    let rules = index.rules(&none()).unwrap();
    let counts: Vec<(&str, u64)> =
        rules.iter().map(|it| (it.rule.as_str(), it.results.values().sum())).collect();
    assert_eq!(counts, [("rm", 2), ("tests", 2)]);
    assert_eq!(rules[1].results.get(&RuleResult::Released), Some(&1));
    let of_project = DecisionFilter { project: Some("/other".to_owned()), ..none() };
    assert_eq!(index.rules(&of_project).unwrap().len(), 1);
    assert_eq!(index.oldest(&none()).unwrap(), Some(at(1)));
    assert_eq!(index.oldest(&of_project).unwrap(), Some(at(4)));
    let slots = |begin: i64| -> Vec<(i64, u64)> {
        let slots = index.over_time(&none(), at(begin), 2000).unwrap();
        slots.iter().map(|it| (it.begins.millis(), it.outcomes.values().sum())).collect()
    };
    assert_eq!(slots(1), [(1000, 2), (3000, 2)], "the first part begins where it should");
    assert_eq!(slots(2), [(2000, 2), (4000, 1)], "what is older is left out");
}

#[test]
fn what_happens_beside_decisions_is_found_by_its_own_index() {
    let rare = DecisionOutcome::ALL.into_iter().filter(|it| *it >= DecisionOutcome::RunEnded);
    for outcome in rare {
        assert!(mark(outcome, false) >= 22, "{outcome:?}");
    }
    assert!(mark(DecisionOutcome::NotEvaluated, true) < 22);
    let index = DecisionIndex::in_memory().unwrap();
    let plan = |outcomes: &[DecisionOutcome]| -> String {
        let filter = DecisionFilter { outcomes: outcomes.to_vec(), ..DecisionFilter::default() };
        index.plan(&filter).unwrap().join("; ")
    };
    let breakers = plan(&[DecisionOutcome::BreakerOpened, DecisionOutcome::BreakerClosed]);
    assert!(breakers.contains("decision_rare") && !breakers.contains("TEMP B-TREE"), "{breakers}");
    let blocked = plan(&[DecisionOutcome::BlockedCall]);
    assert!(blocked.contains("decision_time") && !blocked.contains("TEMP B-TREE"), "{blocked}");
}
