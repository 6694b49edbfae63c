//! A stored document that cannot be read is not empty: each command that lists its entries names the file and fails,
//! hooks report it, and the file stays as it is.

use std::time::Duration;

use policyd::world::WorldError;
use policyd::world::fake::{FakeWorld, Op};
use serde_json::{Value, json};

use crate::desk::Desk;

/// A document, what a command prints for an empty one, and the commands that list its entries.
struct StoredDocument {
    file: &'static str,
    /// Larger than any limit of the store.
    too_large: usize,
    commands: &'static [&'static str],
}

const DOCUMENTS: [StoredDocument; 5] = [
    StoredDocument {
        file: "escalations/index.json",
        too_large: 9 * 1024 * 1024,
        commands: &["escalation list", "escalation list --all", "escalation show e", "status"],
    },
    StoredDocument {
        file: "state/signals.json",
        too_large: 5 * 1024 * 1024,
        commands: &["signal list", "signal show s", "signal watch --for 1s", "status"],
    },
    StoredDocument {
        file: "queue/dead-letter.json",
        too_large: 33 * 1024 * 1024,
        commands: &[
            "dlq list",
            "dlq list --format json",
            "dlq stats",
            "dlq stats --format json",
            "dlq show t",
            "dlq review --dry-run",
            "dlq redrive --dry-run",
            "status",
        ],
    },
    StoredDocument {
        file: "state/circuit-breakers.json",
        too_large: 5 * 1024 * 1024,
        commands: &["breaker list", "breaker status", "breaker show api", "status"],
    },
    StoredDocument {
        file: "state/context-summaries.json",
        too_large: 300 * 1024,
        commands: &["status"],
    },
];

/// Each way in which a document cannot be read, and words of the report.
fn unreadable(file: &str, path: &str, too_large: usize) -> Vec<(&'static str, Desk)> {
    let desk = |change: &dyn Fn(&FakeWorld)| {
        let desk = Desk::new();
        change(&desk.world);
        desk
    };
    vec![
        (
            "too large",
            desk(&|it| it.put(path, format!("{{\"x\": \"{}\"}}", "x".repeat(too_large)))),
        ),
        (
            "locked by another process",
            desk(&|it| {
                it.put(path, "{}");
                let locked = WorldError::Io("locked by another process".to_owned());
                it.refuse_always(Op::Read, file, locked);
            }),
        ),
        ("not a regular file", desk(&|it| it.put(format!("{path}/x"), ""))),
    ]
}

#[test]
fn a_document_that_cannot_be_read_is_named_and_is_not_empty() {
    for StoredDocument { file, too_large, commands } in DOCUMENTS {
        let path = format!("/work/.policyd/{file}");
        for (why, desk) in unreadable(file, &path, too_large) {
            let before = desk.world.get(&path);
            for line in commands {
                let said = desk.call(line);
                let text = format!("{}{}", said.out, said.err);
                assert_eq!(said.code, 3, "{line}: {why}: {said:?}");
                assert!(text.contains(file) && text.contains(why), "{line}: {why}: {said:?}");
                assert!(!said.out.starts_with("no "), "{line}: {why}: {said:?}");
            }
            assert_eq!(desk.world.get(&path), before, "{file}: {why}");
        }
    }
}

#[test]
fn a_newer_version_is_neither_read_nor_written() {
    let newer = json!({"version": 2, "escalations": [{"id": "e"}], "claims": {}, "tasks": []});
    for StoredDocument { file, commands, .. } in DOCUMENTS {
        let desk = Desk::new();
        desk.put(file, &newer);
        for line in commands {
            let said = desk.call(line);
            let text = format!("{}{}", said.out, said.err);
            assert_eq!(said.code, 3, "{line}: {said:?}");
            assert!(text.contains(file) && text.contains("newer version"), "{line}: {said:?}");
        }
        for line in [
            "escalation open --task t --reason R",
            "signal emit DOCS_NEEDED",
            "dlq add t --error E",
            "dlq add t --error E --immediately",
        ] {
            desk.call(line);
        }
        assert_eq!(desk.file(file), newer, "{file}");
    }
}

#[test]
fn a_damaged_document_is_reported_until_a_change_quarantines_it() {
    for StoredDocument { file, commands, .. } in DOCUMENTS {
        let desk = Desk::new();
        desk.world.put(format!("/work/.policyd/{file}"), "{\"tasks\": [{]");
        for line in commands.iter().filter(|it| !it.contains(" show ") && !it.contains("dry-run")) {
            if line.contains("watch") {
                continue; // Signals of the directory are shown.
            }
            let said = desk.call(line);
            let text = format!("{}{}", said.out, said.err);
            assert_eq!(said.code, 3, "{line}: {said:?}");
            assert!(text.contains(file) && text.contains("damaged"), "{line}: {said:?}");
        }
    }
}

fn hook(desk: &Desk, hook: &str, event: &str) -> Value {
    let payload = json!({"session_id": "s1", "cwd": "/work", "source": "startup",
        "hook_event_name": event, "transcript_path": "/t.jsonl"});
    let said = desk.run(&["eval", "--hook", hook], payload.to_string().as_bytes());
    assert_eq!(said.code, 0, "{said:?}");
    if said.out.is_empty() { Value::Null } else { said.json() }
}

#[test]
fn the_start_of_a_session_reports_documents_that_cannot_be_read() {
    for StoredDocument { file, too_large, .. } in DOCUMENTS {
        let path = format!("/work/.policyd/{file}");
        for (why, desk) in unreadable(file, &path, too_large) {
            let answer = hook(&desk, "session-start", "SessionStart").to_string();
            assert!(answer.contains(file) && answer.contains(why), "{file}: {why}: {answer}");
        }
    }
}

#[test]
fn a_signal_that_stops_a_run_counts_though_the_ledger_cannot_be_read() {
    let desk = Desk::new();
    desk.world.put("/work/.policyd/state/signals.json", "x".repeat(5 * 1024 * 1024));
    desk.world.put("/work/.policyd/signals/STOP", "{\"reason\": \"enough\"}");
    desk.world.advance(Duration::from_secs(60));
    let said = desk.call("signal list");
    assert!(said.code == 3 && said.out.contains("STOP"), "{said:?}");
}
