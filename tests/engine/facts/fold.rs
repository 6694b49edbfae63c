//! What the fold makes of prompts, messages, tokens and damaged lines: each test is one situation.

use super::lens;
use super::session::{bash, call, every_kind, facts, prompts, result, said, user, with};
use policyd::facts::cursor::{self, Key, Position};
use policyd::facts::{CommandVerdict, Facts};
use serde_json::{Value, json};

#[test]
fn who_is_human() {
    let typed = |source: &str| with(user("x"), "promptSource", json!(source));
    for (line, expected) in [
        (user("do it"), true),
        (typed("typed"), true),
        (typed("sdk"), true),
        (typed("system"), false),
        (with(user("x"), "origin", json!({"kind": "human"})), true),
        (with(user("x"), "origin", json!({"kind": "coordinator"})), false),
        (with(user("x"), "isMeta", json!(true)), false),
        (with(user("x"), "isVisibleInTranscriptOnly", json!(true)), false),
        (with(user("x"), "turnCompanion", json!(true)), false),
        (with(user("x"), "isSidechain", json!(true)), false),
        (with(user("x"), "toolUseResult", json!("y")), false),
        (user("Stop hook feedback:\nx"), false),
        (user("[Request interrupted by user]"), false),
        (user("Caveat: x"), false),
        (user("<command-name>/clear</command-name>"), true),
        (user("<bash-input>ls</bash-input>"), false),
        (user(""), false),
        (
            json!({"type": "user", "message": {"content": [{"type": "image"}, {"type": "text", "text": "see"}]}}),
            true,
        ),
        (
            json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "x"}, {"type": "text", "text": "t"}]}}),
            false,
        ),
        (json!({"type": "user", "message": "text"}), true),
        (
            json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": "x", "commandMode": "task-notification"}}),
            false,
        ),
        (
            json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": [{"type": "text", "text": "x"}], "commandMode": "prompt"}}),
            true,
        ),
    ] {
        assert_eq!(facts(std::slice::from_ref(&line)).prompts.count == 1, expected, "{line}");
    }
}

#[test]
fn first_and_last_prompts_are_kept() {
    let lines: Vec<Value> = (0..20).map(|n| user(&format!("p{n}"))).collect();
    let facts = facts(&lines);
    assert_eq!(facts.prompts.count, 20);
    assert_eq!(
        prompts(&facts),
        ["p0", "p1", "p2", "p3", "p4", "p5", "p14", "p15", "p16", "p17", "p18", "p19"]
    );
}

#[test]
fn usage_counts_once_per_message_and_context_is_that_of_the_last() {
    let mut lines = vec![said("m1", "a"), said("m1", "b"), said("m2", "c")];
    let facts_before = facts(&lines);
    assert_eq!(facts_before.tokens.meters.occupied, 321);
    assert_eq!(
        (facts_before.tokens.meters.total().input, facts_before.tokens.meters.total().output),
        (2, 8000)
    );
    lines.push(json!({"type": "system", "subtype": "compact_boundary"}));
    assert_eq!(facts(&lines).tokens.meters.occupied, 0);
    let mut zero = said("m3", "x");
    zero["message"]["usage"] = json!({"input_tokens": 0, "output_tokens": null});
    lines.extend([said("m4", "d"), zero, with(said("m5", "e"), "isSidechain", json!(true))]);
    let mut synthetic = said("m6", "f");
    synthetic["message"]["model"] = json!("<synthetic>");
    lines.push(synthetic);
    lines.push(with(said("m7", "error"), "isApiErrorMessage", json!(true)));
    let after = facts(&lines);
    assert_eq!(after.tokens.meters.occupied, 321);
    assert_eq!(after.messages.last.last().unwrap().text, "x");
}

#[test]
fn a_question_waits_until_it_is_answered_or_a_human_goes_on() {
    let ask = call("q", "AskUserQuestion", json!({"questions": []}));
    assert_eq!(facts(std::slice::from_ref(&ask)).pending[0].name, "AskUserQuestion");
    assert!(facts(&[ask.clone(), result("q", "answers", false)]).pending.is_empty());
    assert!(facts(&[ask, user("never mind")]).pending.is_empty());
}

#[test]
fn gemini_messages_are_replaced_by_later_ones() {
    let text = json!({"id": "g", "type": "gemini", "content": "running", "tokens": {"input": 100, "output": 10}});
    let calls = json!([{"id": "c", "name": "run_shell_command", "args": {"command": "cargo test"},
        "status": "success", "resultDisplay": "test result: ok."}]);
    let full = with(text.clone(), "toolCalls", calls);
    let facts = facts(&[
        json!({"sessionId": "s", "projectHash": "h"}),
        json!({"id": "u", "type": "user", "content": [{"text": "do it"}]}),
        json!({"$set": {"lastUpdated": "x"}}),
        text,
        full.clone(),
        full,
    ]);
    assert_eq!(
        (facts.messages.count, facts.tools.total, facts.tokens.meters.total().input),
        (1, 1, 100)
    );
    assert_eq!(facts.commands.by_kind["test"].last.verdict, CommandVerdict::Passed);
    assert_eq!((prompts(&facts), facts.lines_skipped), (vec!["do it"], 0));
}

#[test]
fn everything_is_bounded() {
    let long = "\u{e4}x".repeat(5_000);
    let mut lines = vec![user(&long), said("m", &long), bash("b", &format!("echo {long}"))];
    for n in 0..400 {
        let path = format!("{n}/{long}.py");
        let text = "# TODO\n".repeat(20);
        let edit = json!({"file_path": path, "content": text});
        lines.push(call(&format!("w{n}"), "Write", edit));
        let input = json!({"skill": long, "subject": long});
        lines.push(call(&format!("x{n}"), &format!("tool{n}"), input));
        lines.push(user(&format!("/s{n} x")));
    }
    let facts = facts(&lines);
    assert!(facts.files.len() <= 300 && facts.findings.len() <= 100 && facts.skills.len() <= 200);
    assert!(facts.tools.by_name.len() <= 201 && facts.pending.len() <= 64);
    assert!(postcard::to_stdvec(&facts).unwrap().len() < 1_000_000);
}

#[test]
fn lines_that_are_no_records_are_counted() {
    let lens = lens::compiled();
    for (line, skipped) in [
        (&b"not json"[..], 1),
        (b"{\"type\":\"user\"", 1),
        (b"[1,2]", 1),
        (b"42", 1),
        (b"{\"unknown\":1}", 1),
        (b"", 0),
        (b"  \t", 0),
        (b"\0\0\0", 0),
        (b"{\"type\":\"new-kind-of-record\"}", 0),
        (b"{\"type\":\"user\",\"message\":{\"content\":3},\"isMeta\":\"x\",\"cwd\":[{}]}", 0),
        (b"{\"type\":\"assistant\",\"message\":[null,1.5,-3,{\"a\":[]}]}", 0),
    ] {
        let mut facts = Facts::default();
        facts.ingest_record(line, &lens);
        assert_eq!(facts.lines_skipped, skipped, "{}", String::from_utf8_lossy(line));
    }
}

#[test]
fn damaged_text_is_read_all_the_same() {
    let lens = lens::compiled();
    for line in [
        &b"\0\0{\"type\":\"user\",\"message\":{\"content\":\"x\xff\xfey\"}}"[..],
        b"{\"type\":\"user\",\"message\":{\"content\":\"x\\ud83d y\"}}",
        b"{\"type\":\"user\",\"message\":{\"content\":\"x\\udc00\\\\ud800 y\"}}\r",
    ] {
        let mut facts = Facts::default();
        facts.ingest_record(line, &lens);
        assert_eq!((facts.prompts.count, facts.lines_skipped), (1, 0));
        assert!(
            facts.prompts.first[0].text.starts_with('x')
                && facts.prompts.first[0].text.ends_with('y')
        );
    }
    let mut facts = Facts::default();
    facts.ingest_record("[".repeat(1_000_000).as_bytes(), &lens);
    facts.ingest_record(format!("{{\"message\":{}", "{\"a\":".repeat(100_000)).as_bytes(), &lens);
    let nested =
        format!("{{\"type\":\"user\",\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    facts.ingest_record(nested.as_bytes(), &lens);
    assert_eq!(facts.lines_skipped, 2);
}

#[test]
fn mutated_records_never_fail() {
    let lens = lens::compiled();
    let lines: Vec<Vec<u8>> = every_kind().iter().map(|l| l.to_string().into_bytes()).collect();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % below as u64).unwrap()
    };
    let mut facts = Facts::default();
    for _ in 0..3_000 {
        let mut line = lines[next(lines.len())].clone();
        for _ in 0..=next(4) {
            if line.is_empty() {
                break;
            }
            let at = next(line.len());
            match next(4) {
                0 => line[at] = u8::try_from(next(256)).unwrap(),
                1 => drop(line.remove(at)),
                2 => line.insert(at, b"\"{}[],:\\0tnu"[next(12)]),
                _ => line.truncate(at.max(1)),
            }
        }
        facts.ingest_record(&line, &lens);
    }
    assert!(facts.seq >= 2_900);
}

#[test]
fn a_cursor_holds_no_secret_and_goes_on_as_one_fold() {
    let secret = format!("ghp_{}", "4fQz9Lk2Xw".repeat(3));
    let todo =
        |status: &str| json!({"todos": [{"content": format!("use {secret}"), "status": status}]});
    let write = |old: &str, new: &str| json!({"file_path": "/w/a.py", "old_string": old, "new_string": new});
    let marked = format!("# TODO use {secret}");
    let error = format!("error: {secret}");
    let lines = [
        user(&format!("take {secret}")),
        call("w", "Edit", write("x = 1", &marked)),
        result("w", "ok", false),
        bash("b", &format!("mysql -uroot -phunter2 && echo {secret}")),
        result("b", &error, true),
        bash("c", "cargo test"),
        result("c", &error, true),
        call("t", "TodoWrite", todo("pending")),
        said("m", &format!("{}{secret}", "x ".repeat(2500))),
        call("v", "Edit", write(&marked, "x = 2")),
        result("v", "ok", false),
    ];
    let whole = facts(&lines);
    assert_eq!((whole.tools.same_errors, whole.findings.len()), (2, 0), "{whole:?}");
    let (lens, key) = (lens::compiled(), Key::default());
    for cut in 0..lines.len() {
        let before = facts(&lines[..cut]);
        let bytes = cursor::encode(&Position::default(), &before, key).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(&secret) && !text.contains("hunter2"), "cut at {cut}: {text}");
        let (_, mut warm) = cursor::decode(&bytes, key).unwrap();
        lines[cut..].iter().for_each(|it| warm.ingest_record(it.to_string().as_bytes(), &lens));
        assert_eq!(warm, whole, "cut at {cut}");
    }
}

#[test]
fn a_cut_leaves_no_part_of_a_secret() {
    let secret = format!("ghp_{}", "4fQz9Lk2Xw".repeat(3));
    for length in 4080..4100 {
        let filler = "x ".repeat(length / 2);
        let facts = facts(&[
            user(&format!("{filler}{secret} y")),
            said("m", &format!("{secret} {filler}")),
        ]);
        for text in prompts(&facts).into_iter().chain([facts.messages.last[0].text.as_str()]) {
            assert!(!text.contains("4fQz") && !text.contains("9Lk2"), "{text}");
        }
    }
}

#[test]
fn a_message_without_a_session_is_ignored_where_the_client_names_it() {
    let line = |session: &str, id: &str| {
        let content = json!([{"type": "tool_use", "id": id, "name": "Bash",
            "input": {"command": "cargo test"}}]);
        json!({"type": "assistant", "sessionId": session,
            "message": {"role": "assistant", "content": content}})
    };
    let read = |lines: &[Value]| facts(lines);
    let named = read(&[line("s", "a"), line("", "b"), line("s", "c")]);
    assert_eq!((named.tools.total, named.lines_foreign), (2, 1));
    let unnamed = read(&[line("", "a"), line("", "b")]);
    assert_eq!((unnamed.tools.total, unnamed.lines_foreign), (2, 0));
}
