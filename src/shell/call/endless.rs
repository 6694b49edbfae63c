//! Command lines that start jobs endlessly: loops (`while true; do work & done`) and functions that call
//! themselves (`f() { f | f & }`).
//!
//! Contains: the control flow that decides whether a statement always runs, and the count of background jobs.
//! Does not contain: calls of functions (`scope`). A loop that runs a program itself takes time or ends, so it
//! is not endless.

use tree_sitter::Node;

use crate::limits::SHELL_NESTING_MAX;
use crate::shell::node_text;

/// Conditions, without blanks, with which `while` never ends.
const TRUE: [&str; 11] = [
    "true",
    ":",
    "/bin/true",
    "/usr/bin/true",
    "[1]",
    "[true]",
    "[[1]]",
    "[[true]]",
    "((1))",
    "test1",
    "((true))",
];
/// Conditions, without blanks, with which `until` never ends.
const FALSE: [&str; 5] = ["false", "/bin/false", "/usr/bin/false", "((0))", "!true"];
/// Commands that take no time and do not leave a loop.
const IDLE: [&str; 10] =
    [":", "true", "false", "echo", "printf", "test", "[", "wait", "disown", "continue"];

/// Returns whether each run of a loop or function body leaves background jobs running. `own` is the
/// name of the function; its recursive calls take no time.
pub(super) fn leaves_jobs(statement: Node<'_>, source: &str, own: &str) -> bool {
    let body = statement.child_by_field_name("body");
    body.is_some_and(|it| jobs(it, source, own, SHELL_NESTING_MAX).are_left())
}

/// Returns whether a statement ends with a command after which nothing of the same text runs: `exit 1`.
pub(super) fn leaves(statement: Node<'_>, source: &str) -> bool {
    const LEAVES: [&str; 5] = ["exit", "return", "break", "continue", "exec"];
    let mut last = statement;
    for _ in 0..SHELL_NESTING_MAX {
        if last.kind() == "command" {
            let name = last.child_by_field_name("name").map(|it| node_text(it, source));
            return name.is_some_and(|it| LEAVES.contains(&it));
        }
        if !matches!(last.kind(), "compound_statement" | "list" | "redirected_statement") {
            return false;
        }
        let at = last.named_child_count().saturating_sub(1);
        let body = last.child_by_field_name("body");
        let Some(inner) = body.or_else(|| last.named_child(u32::try_from(at).unwrap_or(u32::MAX)))
        else {
            return false;
        };
        last = inner;
    }
    false
}

/// Returns whether a statement is a loop whose condition never ends it.
pub(super) fn goes_on(statement: Node<'_>, source: &str) -> bool {
    if !matches!(statement.kind(), "while_statement" | "c_style_for_statement") {
        return false;
    }
    if statement.kind() == "c_style_for_statement" {
        return statement.child_by_field_name("condition").is_none();
    }
    let mut cursor = statement.walk();
    let conditions: Vec<Node<'_>> =
        statement.children_by_field_name("condition", &mut cursor).collect();
    let text: String = conditions.iter().map(|it| node_text(*it, source)).collect();
    match node_text(statement, source).starts_with("until") {
        true => FALSE.contains(&squeezed(&text).as_str()),
        false => TRUE.contains(&squeezed(&text).as_str()),
    }
}

/// Whether a statement runs each time that its parent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Likelihood {
    Always,
    Maybe,
    Never,
}

/// Returns whether a statement runs each time that its parent runs. A branch, a loop body, or a
/// command behind `&&` or `||` may be skipped.
pub(super) fn chance(node: Node<'_>, source: &str) -> Likelihood {
    let Some(parent) = node.parent() else { return Likelihood::Always };
    match parent.kind() {
        "if_statement" | "elif_clause" => {
            let condition = parent.child_by_field_name("condition");
            let holds = ends_with(condition.or_else(|| parent.named_child(0)), source);
            match node.kind() {
                "elif_clause" | "else_clause" => runs_if(holds, false),
                _ if is_condition(node) => Likelihood::Always,
                _ => runs_if(holds, true),
            }
        }
        "do_group" => parent.parent().map_or(Likelihood::Maybe, |it| chance_of_body(it, source)),
        "case_item" => {
            let is_first = parent.prev_named_sibling().is_none_or(|it| it.kind() != "case_item");
            let pattern = parent.child_by_field_name("value").map(|it| node_text(it, source));
            let value = parent.parent().and_then(|it| it.child_by_field_name("value"));
            let same = pattern == Some("*") || pattern == value.map(|it| node_text(it, source));
            if is_first && same { Likelihood::Always } else { Likelihood::Maybe }
        }
        "list" => {
            let Some(before) = node.prev_named_sibling() else { return Likelihood::Always };
            let is_or = node.prev_sibling().is_some_and(|it| it.kind() == "||");
            runs_if(ends_with(Some(before), source), !is_or)
        }
        _ => Likelihood::Always,
    }
}

/// Returns whether a statement runs that needs the condition to have the value `wanted`.
const fn runs_if(condition: Option<bool>, wanted: bool) -> Likelihood {
    match condition {
        Some(is) if is == wanted => Likelihood::Always,
        Some(_) => Likelihood::Never,
        None => Likelihood::Maybe,
    }
}

/// Returns whether a child of `if` is a part of its condition.
fn is_condition(node: Node<'_>) -> bool {
    let mut next = node.next_sibling();
    while let Some(it) = next {
        if it.kind() == "then" {
            return true;
        }
        next = it.next_sibling();
    }
    false
}

/// Returns whether a loop body runs each time that the loop is reached.
fn chance_of_body(statement: Node<'_>, source: &str) -> Likelihood {
    if statement.kind() == "for_statement" {
        return if has_values(statement, source) { Likelihood::Always } else { Likelihood::Maybe };
    }
    let ends = ends_with(statement.child_by_field_name("condition"), source);
    let ends_at_once = match node_text(statement, source).starts_with("until") {
        true => ends == Some(true),
        false => ends == Some(false),
    };
    if goes_on(statement, source) {
        Likelihood::Always
    } else if ends_at_once {
        Likelihood::Never
    } else {
        Likelihood::Maybe
    }
}

/// Returns whether a `for` loop has a literal value: `for i in 1 2`.
fn has_values(node: Node<'_>, source: &str) -> bool {
    let mut cursor = node.walk();
    let mut values = node.children_by_field_name("value", &mut cursor);
    values.any(|it| !node_text(it, source).contains(['$', '`', '*', '?', '[']))
}

/// Returns the constant value of a condition. `None` if it depends on something.
fn ends_with(condition: Option<Node<'_>>, source: &str) -> Option<bool> {
    ends_within(condition, source, SHELL_NESTING_MAX)
}

/// Returns the constant value of a condition. `None` if it has more than `depth` levels.
fn ends_within(condition: Option<Node<'_>>, source: &str, depth: usize) -> Option<bool> {
    let (condition, depth) = (condition?, depth.checked_sub(1)?);
    let part = |at: u32| ends_within(condition.named_child(at), source, depth);
    let text = node_text(condition, source);
    match condition.kind() {
        "negated_command" => part(0).map(|it| !it),
        "variable_assignment" | "variable_assignments" => Some(true),
        "list" => {
            let is_or = condition.children(&mut condition.walk()).any(|it| it.kind() == "||");
            match (part(0), part(1)) {
                (Some(left), _) if left == is_or => Some(is_or),
                (Some(_), right) => right,
                (None, Some(right)) if right == is_or => Some(is_or),
                (None, _) => None,
            }
        }
        _ if TRUE.contains(&squeezed(text).as_str()) => Some(true),
        _ if FALSE.contains(&squeezed(text).as_str()) => Some(false),
        _ if text.contains(['$', '`', '*', '?', '<', '>']) => None,
        _ => {
            let words: Vec<&str> = text.split_whitespace().collect();
            match words.as_slice() {
                ["echo" | "printf" | "sleep" | "export", ..] => Some(true),
                ["[" | "[[", a, "=" | "==", b, "]" | "]]"] | ["test", a, "=" | "==", b] => {
                    Some(a == b)
                }
                ["[" | "[[", a, "]" | "]]"] | ["test", a] => Some(!matches!(*a, "''" | "\"\"")),
                _ => None,
            }
        }
    }
}

/// Returns whether a statement runs in another process.
pub(super) fn starts_process(node: Node<'_>) -> bool {
    let kinds = ["pipeline", "subshell", "command_substitution", "process_substitution"];
    kinds.contains(&node.kind()) || node.next_sibling().is_some_and(|it| it.kind() == "&")
}

/// Removes blanks and semicolons from a condition.
fn squeezed(condition: &str) -> String {
    condition.chars().filter(|c| !c.is_whitespace() && *c != ';').collect()
}

/// The background jobs of a body.
#[derive(Default)]
struct JobState {
    /// Number of started jobs.
    started: usize,
    /// Number of started jobs that were not waited for.
    running: usize,
    waited: bool,
    /// Whether some jobs cannot be waited for: jobs of a subshell, and disowned jobs.
    lost: bool,
    /// Whether the body itself runs a command that takes time.
    busy: bool,
}

impl JobState {
    /// Returns whether jobs may outlive one run of the body. If the body waits first and starts one
    /// job, the next run waits for that job.
    const fn are_left(&self) -> bool {
        let waits_first = self.waited && self.started == 1;
        self.lost || (self.running > 0 && !self.busy && !waits_first)
    }

    fn command(&mut self, name: &str) {
        match name {
            "wait" => (self.waited, self.running) = (true, 0),
            "disown" => self.lost |= self.started > 0,
            other => self.busy |= !IDLE.contains(&other),
        }
    }

    /// Adds the jobs of the next part of the body.
    const fn then(&mut self, part: &Self) {
        self.started += part.started;
        self.running = if part.waited { part.running } else { self.running + part.running };
        self.waited |= part.waited;
        self.lost |= part.lost;
        self.busy |= part.busy;
    }
}

/// Counts the jobs of a body. Parts below `depth` levels are not counted.
fn jobs(body: Node<'_>, source: &str, own: &str, depth: usize) -> JobState {
    let mut found = JobState::default();
    let Some(depth) = depth.checked_sub(1) else { return found };
    let mut cursor = body.walk();
    let children: Vec<Node<'_>> = body.children(&mut cursor).collect();
    for (at, child) in children.iter().enumerate() {
        let is_job = children.get(at + 1).is_some_and(|it| it.kind() == "&");
        match child.kind() {
            "&" => (found.started, found.running) = (found.started + 1, found.running + 1),
            _ if is_job => {}
            "command" => {
                let name = node_text(*child, source).split_whitespace().next();
                found.command(name.filter(|it| *it != own).unwrap_or(":"));
            }
            // Only the subshell itself can wait for its jobs.
            "subshell" => {
                let inner = jobs(*child, source, own, depth);
                found.lost |= inner.are_left();
                found.busy |= inner.busy;
            }
            "function_definition" | "comment" => {}
            "if_statement" if is_never_taken(*child, source) => {}
            _ => found.then(&jobs(*child, source, own, depth)),
        }
    }
    found
}

/// Returns whether the condition of a branch is always false.
fn is_never_taken(branch: Node<'_>, source: &str) -> bool {
    ends_with(branch.child_by_field_name("condition"), source) == Some(false)
}
