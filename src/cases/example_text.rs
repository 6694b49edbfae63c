//! What happens in a case, as an example for the user: the actions of the agent, and what it says.

use super::{CaseStep, TranscriptAddition};
use policyd_yaml::node::Node;

/// Actions that an example names: the last ones.
const ACTIONS_MAX: usize = 3;
/// Characters of one action.
const ACTION_CHARS_MAX: usize = 90;

/// Describes what happens in a step before its event. Empty if it contains no action that can be named.
#[must_use]
pub fn of_step(step: &CaseStep) -> String {
    let TranscriptAddition::List(happenings) = &step.transcript else { return String::new() };
    let actions: Vec<String> = happenings.iter().filter_map(action).collect();
    let first = actions.len().saturating_sub(ACTIONS_MAX);
    let shown = actions.get(first..).unwrap_or_default().join(", ");
    if first == 0 { shown } else { format!("…, {shown}") }
}

/// Describes a happening. `None` for what the user or the client does.
fn action(node: &Node) -> Option<String> {
    let text = |key: &str| node.get(key).and_then(Node::text);
    let has_failed = node.get("failed").and_then(Node::bool) == Some(true);
    let end = if has_failed { " (fails)" } else { "" };
    if let Some(path) = text("edit") {
        let content = text("text").map(|it| format!(": `{}`", short(it))).unwrap_or_default();
        return Some(format!("edits {path}{content}"));
    }
    if let Some(command) = text("ran") {
        return Some(format!("runs `{}`{end}", short(command)));
    }
    if let Some(message) = text("assistant") {
        return Some(format!("says \"{}\"", short(message)));
    }
    if let Some(todos) = node.get("todos").and_then(Node::entries) {
        let todo = |(what, state): &(Node, Node)| {
            Some(format!("{} ({})", what.text()?, state.text()?.replace('_', " ")))
        };
        let todos: Vec<String> = todos.iter().filter_map(todo).collect();
        return Some(format!("keeps the todos {}", short(&todos.join(", "))));
    }
    text("tool").map(|tool| format!("calls {tool}{end}"))
}

fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(ACTION_CHARS_MAX) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default().trim_end()),
        None => line,
    }
}
