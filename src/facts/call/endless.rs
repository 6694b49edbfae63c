//! What may start jobs without end: loops, `while true; do work & done`, and functions that call themselves,
//! `f() { f | f & }`. Lives here: which forms of the grammar those are. A loop that runs anything itself takes
//! its time or is left at some point, and is none.

use tree_sitter::Node;

use super::super::shell::word;
use crate::limits::SHELL_NESTING_MAX;

/// What `while` goes on with for ever, blanks left out.
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
/// What `until` goes on with for ever.
const FALSE: [&str; 5] = ["false", "/bin/false", "/usr/bin/false", "((0))", "!true"];
/// Commands that take no time and leave no loop.
const IDLE: [&str; 10] =
    [":", "true", "false", "echo", "printf", "test", "[", "wait", "disown", "continue"];

/// Whether a loop that goes on for ever starts jobs that are left to themselves.
pub(super) fn starts_jobs(statement: Node<'_>, source: &str) -> bool {
    let body = statement.child_by_field_name("body");
    body.is_some_and(|it| jobs(it, source, SHELL_NESTING_MAX).are_left())
}

/// Whether a statement is a loop that never ends by its own condition.
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
    let text: String = conditions.iter().map(|it| word::raw(*it, source)).collect();
    match word::raw(statement, source).starts_with("until") {
        true => FALSE.contains(&squeezed(&text).as_str()),
        false => TRUE.contains(&squeezed(&text).as_str()),
    }
}

/// Whether a statement runs each time that it is come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chance {
    Always,
    Maybe,
    Never,
}

/// Whether what a statement holds runs each time that it is come to: a branch or a loop, and what stands behind
/// `&&` or `||`, need not.
pub(super) fn chance(node: Node<'_>, source: &str) -> Chance {
    let runs_if = |condition: Option<bool>, wanted: bool| match condition {
        Some(is) if is == wanted => Chance::Always,
        Some(_) => Chance::Never,
        None => Chance::Maybe,
    };
    match node.kind() {
        "if_statement" => runs_if(ends_with(node.child_by_field_name("condition"), source), true),
        "case_item" => match node.child_by_field_name("value").map(|it| word::raw(it, source)) {
            Some("*") => Chance::Always,
            _ => Chance::Maybe,
        },
        "for_statement" if has_values(node, source) => Chance::Always,
        "while_statement" if goes_on(node, source) => Chance::Always,
        "c_style_for_statement" if goes_on(node, source) => Chance::Always,
        "for_statement" | "while_statement" | "c_style_for_statement" => Chance::Maybe,
        _ if node.parent().is_some_and(|it| it.kind() == "list") => {
            let Some(before) = node.prev_named_sibling() else { return Chance::Always };
            let is_or = node.prev_sibling().is_some_and(|it| it.kind() == "||");
            runs_if(ends_with(Some(before), source), !is_or)
        }
        _ => Chance::Always,
    }
}

/// Whether a loop goes through words that are there as they stand: `for i in 1 2`.
fn has_values(node: Node<'_>, source: &str) -> bool {
    let mut cursor = node.walk();
    let mut values = node.children_by_field_name("value", &mut cursor);
    values.any(|it| !word::raw(it, source).contains(['$', '`', '*', '?', '[', '{']))
}

/// Whether a condition holds, whatever happens; nothing where that depends.
fn ends_with(condition: Option<Node<'_>>, source: &str) -> Option<bool> {
    let condition = condition?;
    let part = |at: u32| ends_with(condition.named_child(at), source);
    let text = word::raw(condition, source);
    match condition.kind() {
        "negated_command" => part(0).map(|it| !it),
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
                ["echo" | "printf", ..] => Some(true),
                ["[" | "[[", a, "=" | "==", b, "]" | "]]"] | ["test", a, "=" | "==", b] => {
                    Some(a == b)
                }
                ["[" | "[[", a, "]" | "]]"] | ["test", a] => Some(!matches!(*a, "''" | "\"\"")),
                _ => None,
            }
        }
    }
}

/// Whether a statement runs in a process of its own.
pub(super) fn starts_process(node: Node<'_>) -> bool {
    let kinds = ["pipeline", "subshell", "command_substitution", "process_substitution"];
    kinds.contains(&node.kind()) || node.next_sibling().is_some_and(|it| it.kind() == "&")
}

/// A condition without blanks and ends of lines.
fn squeezed(condition: &str) -> String {
    condition.chars().filter(|c| !c.is_whitespace() && *c != ';').collect()
}

/// What a body does with the jobs that it starts.
#[derive(Default)]
struct Jobs {
    /// Jobs that it has started.
    started: usize,
    /// Those that it has not waited for.
    running: usize,
    waited: bool,
    /// Whether some are out of its reach: those of a subshell, and those that it has disowned.
    lost: bool,
    /// Whether it runs something itself.
    busy: bool,
}

impl Jobs {
    /// Whether some may run on when it is done. One job alone is waited for at the next beginning, too.
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

    /// What a part of the body does, after what came before it.
    const fn then(&mut self, part: &Self) {
        self.started += part.started;
        self.running = if part.waited { part.running } else { self.running + part.running };
        self.waited |= part.waited;
        self.lost |= part.lost;
        self.busy |= part.busy;
    }
}

/// The jobs of a body, one statement after the other; parts that are nested too deeply are not looked at.
fn jobs(body: Node<'_>, source: &str, depth: usize) -> Jobs {
    let mut found = Jobs::default();
    let Some(depth) = depth.checked_sub(1) else { return found };
    let mut cursor = body.walk();
    let children: Vec<Node<'_>> = body.children(&mut cursor).collect();
    for (at, child) in children.iter().enumerate() {
        let is_job = children.get(at + 1).is_some_and(|it| it.kind() == "&");
        match child.kind() {
            "&" => (found.started, found.running) = (found.started + 1, found.running + 1),
            _ if is_job => {}
            "command" => {
                let name = word::raw(*child, source).split_whitespace().next();
                found.command(name.unwrap_or_default());
            }
            // Nobody else can wait for its jobs.
            "subshell" => {
                let inner = jobs(*child, source, depth);
                found.lost |= inner.are_left();
                found.busy |= inner.busy;
            }
            "function_definition" | "comment" => {}
            "if_statement" if chance(*child, source) == Chance::Never => {}
            _ => found.then(&jobs(*child, source, depth)),
        }
    }
    found
}
