//! What other clients than Claude Code print: their tool calls reach the checks of a claim, and what no
//! client showed is never agreed to.

use policyd::hook::agent_output::{AgentOutput, WrittenFile};
use policyd::world::fake::Play;
use serde_json::{Value, json};

use super::stage::{Stage, changes, looks, signals, turn, usage};
use crate::support::snapshot;

const CODEX_FAILING: &str = include_str!("../../samples/codex/exec.failing.jsonl");
const CODEX_FIXED: &str = include_str!("../../samples/codex/exec.fixed.jsonl");
const GEMINI: &str = include_str!("../../samples/gemini/stream.jsonl");

/// A turn that prints this, changes a file and claims to be done.
fn claims(content: &str, output: &str) -> Vec<Play> {
    let mut plays = vec![changes(content)];
    plays.extend(output.lines().map(Play::says));
    plays.push(signals("COMPLETION_REQUESTED"));
    plays
}

/// Gemini's output of a command that the client calls a success.
fn gemini(command: &str, output: &str) -> String {
    let lines = [
        json!({"type": "tool_use", "tool_name": "write_file", "tool_id": "w",
            "parameters": {"file_path": "/work/calc.py", "content": "def add(a, b):\n    return a - b\n"}}),
        json!({"type": "tool_result", "tool_id": "w", "status": "success"}),
        json!({"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "c",
            "parameters": {"command": command}}),
        json!({"type": "tool_result", "tool_id": "c", "status": "success", "output": output}),
        json!({"type": "message", "role": "assistant", "content": "All ", "delta": true}),
        json!({"type": "message", "role": "assistant", "content": "done.", "delta": true}),
        json!({"type": "result", "status": "success"}),
    ];
    lines.map(|it| it.to_string()).join("\n")
}

/// Why the claim of the first turn was refused; empty if it was accepted.
fn refusal(output: &str) -> String {
    let stage = Stage::new();
    stage.play(claims("a", output));
    let said = stage.run(&["--max-iterations", "1"]);
    let refused = said.of("loop.completion_refused");
    let why = refused.first().map(|it| it["reason"].as_str().unwrap().to_owned());
    assert_eq!(said.code == 0, why.is_none(), "{said:?}");
    why.unwrap_or_default()
}

#[test]
fn a_failing_test_in_the_output_of_codex_is_held_against_a_claim() {
    let why = refusal(CODEX_FAILING);
    assert!(why.contains("the last test run failed"), "{why}");
    assert_eq!(refusal(CODEX_FIXED), "");
}

#[test]
fn a_command_of_codex_that_never_ended_has_no_result() {
    let running: Vec<&str> = CODEX_FIXED.lines().take_while(|it| !it.contains("item_9")).collect();
    let begun =
        CODEX_FIXED.lines().find(|it| it.contains("item.started") && it.contains("item_10"));
    let text = [running.join("\n").as_str(), begun.unwrap()].join("\n");
    assert_ne!(refusal(&text), "");
}

#[test]
fn the_output_of_gemini_decides_and_its_success_does_not() {
    let why =
        refusal(&gemini("python3 -m unittest", "Ran 1 test in 0.000s\n\nFAILED (failures=1)"));
    assert!(why.contains("the last test run failed"), "{why}");
    assert_eq!(refusal(&gemini("python3 -m unittest", "Ran 1 test in 0.000s\n\nOK")), "");
    let why = refusal(&gemini("make test", "checking 3 things"));
    assert!(!why.is_empty(), "what does not say that it passed did not pass");
}

#[test]
fn items_and_pieces_become_lines_of_a_transcript() {
    let transcript = |text: &str| {
        let look_up = |path: &str, existed: bool| WrittenFile {
            before: if existed { "old\n".to_owned() } else { String::new() },
            now: Some(format!("{path} now\n")),
        };
        let mut output = AgentOutput::default();
        let mut lines = output.absorb_with(text.as_bytes(), &look_up);
        lines.extend(output.finish());
        let records = lines.iter().map(|it| serde_json::from_str::<Value>(it).unwrap());
        let contents = records.map(|it| it["message"]["content"][0].to_string());
        let lines: Vec<String> = contents.collect();
        format!("{}\n{} calls, answer: {}\n", lines.join("\n"), output.tools, output.answer)
    };
    snapshot("run", "transcript__codex", transcript(CODEX_FIXED));
    snapshot("run", "transcript__gemini", transcript(GEMINI));
}

const UNSEEN: &str = "1 file changed (a.rs), and no tool call was visible in the client's output, so the \
                      checks could not verify them";

/// A pack with a setting for changes that nothing explains.
fn unseen(setting: &str) -> Stage {
    Stage::new().with_pack("run.yaml", &format!("unseen_changes: {setting}\n"))
}

#[test]
fn a_claim_over_changes_that_nobody_saw_is_never_agreed_to() {
    let stage = Stage::new();
    stage.play(claims("a", "I did it."));
    stage.play(vec![Play::says("Really."), signals("COMPLETION_REQUESTED")]);
    let said = stage.run(&["--max-iterations", "9"]);
    assert_eq!((said.code, said.status().as_str()), (14, "unverified"), "{said:?}");
    assert_eq!(stage.prompts().len(), 3, "it does not go on for ever");
    let refused = said.of("loop.completion_refused");
    assert_eq!(refused.len(), stage.prompts().len(), "in later turns, too");
    assert!(refused.iter().all(|it| it["reason"] == format!("{UNSEEN}.")), "{refused:?}");
    assert!(stage.prompts()[1].contains(UNSEEN), "the agent knows: {}", stage.prompts()[1]);
    assert_eq!(said.of("loop.end")[0]["reason"], format!("{UNSEEN}."));
    // Without a claim, the end names it, too.
    let stage = Stage::new();
    stage.play(vec![changes("a")]);
    let said = stage.run(&["--max-iterations", "1"]);
    assert_eq!(said.of("loop.end")[0]["reason"], format!("all 1 turns are used up; {UNSEEN}"));
}

#[test]
fn a_visible_tool_call_lets_the_checks_decide() {
    let stage = Stage::new();
    stage.play(claims("a", "I did it."));
    stage.play(turn("b", vec![signals("COMPLETION_REQUESTED")]));
    assert_eq!(stage.run(&["--max-iterations", "2"]).status(), "complete");
    let stage = Stage::new();
    stage.play(vec![Play::says("There is nothing to do."), signals("COMPLETION_REQUESTED")]);
    assert_eq!(stage.run(&[]).status(), "complete", "nothing changed, so nothing was missed");
}

#[test]
fn changes_that_nobody_saw_may_end_the_run() {
    let stage = unseen("end");
    stage.play(claims("a", "I did it."));
    let said = stage.run(&[]);
    assert_eq!((said.code, said.status().as_str()), (14, "unverified"), "{said:?}");
    assert_eq!(said.of("loop.end")[0]["reason"], format!("{UNSEEN}."));
    // A human who goes on has looked at them.
    stage.play(vec![signals("COMPLETION_REQUESTED")]);
    assert_eq!(stage.resume(&[]).status(), "complete");
}

#[test]
fn a_human_may_be_asked_about_them() {
    let stage = unseen("human");
    stage.play(claims("a", "I did it."));
    let said = stage.run(&[]);
    assert_eq!((said.code, said.status().as_str()), (14, "human_needed"), "{said:?}");
    let end = &said.of("loop.end")[0];
    assert!(end["reason"].as_str().unwrap().contains(UNSEEN), "{end}");
    let asked = stage.world.files();
    let asked = asked.iter().any(|it| it.to_string_lossy().contains("HUMAN_REVIEW_NEEDED"));
    assert!(asked, "{:?}", stage.world.files());
    // Nobody has answered yet.
    assert_eq!(stage.resume(&[]).status(), "human_needed");
}

/// A test run of Claude Code that fails, always in the same words.
fn fails(number: usize) -> [Play; 2] {
    let id = format!("t{number}");
    let call = json!({"type": "assistant", "message": {"id": id, "content": [
        {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "python3 -m unittest -q"}}]}});
    let result = json!({"type": "user", "message": {"role": "user", "content": [{"type": "tool_result",
        "tool_use_id": id, "is_error": true,
        "content": "Exit code 1\nRan 1 test in 0.001s\n\nFAILED (failures=1)"}]}});
    [Play::says(call), Play::says(result)]
}

#[test]
fn an_agent_that_goes_to_and_fro_between_two_wrong_edits_is_stuck_within_8_turns() {
    let stage = Stage::new();
    for (number, content) in "ababababababab".chars().enumerate() {
        let plays = [changes(content.to_string()), looks()];
        stage.play(plays.into_iter().chain(fails(number)).chain(usage(1_000, 100, 0.01)));
    }
    let said = stage.run(&["--max-iterations", "40"]);
    assert_eq!((said.code, said.status().as_str()), (10, "stuck"), "{said:?}");
    assert!(stage.prompts().len() <= 8, "{}", stage.prompts().len());
    let found = said.of("loop.stuckness_detected");
    assert!(found.iter().all(|it| it["reasons"] == "same_error, oscillation"), "{found:?}");
    let restarts = said.of("loop.restart");
    let reasons: Vec<&Value> = restarts.iter().map(|it| &it["reason"]).collect();
    assert!(
        reasons.contains(&&json!("context_clear")),
        "a clear context does not hide it: {reasons:?}"
    );
}

#[test]
fn the_prompt_names_the_program_by_its_absolute_path() {
    let stage = Stage::new();
    stage.play(turn("a", vec![]));
    stage.run(&["--max-iterations", "1"]);
    let prompt = &stage.prompts()[0];
    assert!(prompt.contains("`/usr/bin/policyd signal emit COMPLETION_REQUESTED`"), "{prompt}");
}
