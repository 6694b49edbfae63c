//! What the block limiter and the reader of the transcript promise, on the simulated machine.

use policyd::world::fake::Op;
use policyd::world::{World, WorldError};
use serde_json::json;

use super::decisions::{asked, edit, ran, said};
use super::scene::Scene;

#[test]
fn a_result_that_never_comes_is_waited_for_once() {
    let mut scene = Scene::new();
    scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
    scene.events(&[json!({"tool": "Bash", "input": {"command": "cargo test"}})]);
    let pauses = |scene: &Scene| {
        scene.world.clear_log();
        scene.stop();
        scene.world.log().iter().filter(|it| it.starts_with("sleep")).count()
    };
    assert!(pauses(&scene) > 10);
    assert_eq!(pauses(&scene), 0);
    scene.events(&[said("I cannot see the result."), ran("ls", "a.py", false)].concat());
    assert_eq!(pauses(&scene), 0);
    scene.events(&[json!({"tool": "Bash", "input": {"command": "cargo test -q"}})]);
    assert!(pauses(&scene) > 10, "another call");
    assert_eq!(pauses(&scene), 0);
}

#[test]
fn a_pack_can_allow_blocks_without_a_tool_call() {
    let mut scene = Scene::new();
    scene.world.put("/work/.policyd/policies/policyd.yaml", "guard: {idle_blocks_max: 2}\n");
    scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
    let reason = scene.stop().json()["reason"].to_string();
    let promise = "After at most 1 more without a tool call, or 1 more for this finding";
    assert!(reason.contains(promise) && !reason.contains("stop again"), "{reason}");
    assert_eq!(scene.stop().decision(), "block");
    assert_eq!(scene.stop().decision(), "approve");
}

#[test]
fn a_header_of_a_pack_is_recognized_in_the_transcript() {
    for header in
        ["Not yet.", "${outcome.failed} left", "Our rules hold you back: ${outcome.failed}"]
    {
        let mut scene = Scene::new();
        let messages = format!("block_header: [{{text: \"{header}\"}}]\n");
        scene.world.put("/work/.policyd/policies/messages.yaml", messages);
        scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
        let mut blocks = 0;
        for turn in 0..9 {
            let answer = scene.stop().json();
            let Some(reason) = answer["reason"].as_str() else { break };
            blocks += 1;
            let feedback = format!("Stop hook feedback:\n{reason}");
            scene.raw(&json!({"type": "user", "isMeta": true, "message": {"content": feedback}}));
            scene.events(&ran(&format!("ls {turn}"), "a.py", false));
            scene.world.remove_folder(std::path::Path::new("/work/.policyd/sessions")).unwrap();
        }
        assert_eq!(blocks, 5, "{header}");
    }
}

#[test]
fn a_file_system_that_does_not_sync_keeps_the_state_and_says_so_once() {
    let mut scene = Scene::new();
    scene.events(&[asked("Add a parser"), edit("/work/a.py", "x = 1\n")].concat());
    for op in [Op::SyncFile, Op::SyncFolder] {
        scene.world.refuse_always(op, "", WorldError::Unsupported);
    }
    let answer = scene.stop();
    assert_eq!(answer.decision(), "block");
    assert_eq!(scene.state()["consecutive_blocks"], 1, "the state is in place");
    let said = format!("{}{}", answer.stdout, answer.stderr);
    assert!(said.matches("a loss of power may undo it").count() <= 1, "{said}");
    assert!(!said.contains("could not be saved"), "{said}");
}
