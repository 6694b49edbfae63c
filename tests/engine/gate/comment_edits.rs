//! Edits that change only comments.

use serde_json::json;

use super::scene::Scene;

/// The decision at a stop after an edit of a file that also contains `x = 1`.
fn edited(old: &str, new: &str) -> String {
    let mut scene = Scene::new();
    let file = "/work/a.py";
    scene.world.put(file, format!("x = 1\n{old}\n"));
    let input = json!({"file_path": file, "old_string": old, "new_string": new});
    let call = json!({"hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": input});
    scene.call("pre-tool-use", &scene.payload(&call).to_string(), &[]);
    scene.events(&[
        json!({"user": "Explain the cart"}),
        json!({"tool": "Edit", "input": input}),
        json!({"claude_user_tool_result": "ok"}),
        json!({"assistant": "It is explained."}),
    ]);
    scene.world.put(file, format!("x = 1\n{new}\n"));
    scene.stop().decision()
}

#[test]
fn an_edit_of_comments_alone_needs_no_test() {
    assert_eq!(edited("# old", "# Prices are in cents."), "approve");
    assert_eq!(edited("# old", "# Prices are in cents.\ny = 2"), "block");
    assert_eq!(edited("y = 1", "y = 2"), "block");
}
