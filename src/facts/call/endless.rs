//! What may start jobs without end: loops, `while true; do work & done`, and functions that call themselves,
//! `f() { f | f & }`. Lives here: which forms of the grammar those are. A loop that runs anything itself takes
//! its time or is left at some point, and is none.

use tree_sitter::Node;

use super::super::shell::node_text;
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

/// Whether the body of a loop or a function leaves jobs to themselves each time that it runs; the function's own
/// name takes no time in it.
pub(super) fn leaves_jobs(statement: Node<'_>, source: &str, own: &str) -> bool {
    let body = statement.child_by_field_name("body");
    body.is_some_and(|it| jobs(it, (source, own), SHELL_NESTING_MAX).are_left())
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
    let text: String = conditions.iter().map(|it| node_text(*it, source)).collect();
    match node_text(statement, source).starts_with("until") {
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

/// Whether a statement runs each time that what it stands in is come to: a branch, the body of a loop, and what
/// stands behind `&&` or `||`, need not.
pub(super) fn chance(node: Node<'_>, source: &str) -> Chance {
    let Some(parent) = node.parent() else { return Chance::Always };
    match parent.kind() {
        "if_statement" | "elif_clause" => {
            let condition = parent.child_by_field_name("condition");
            let holds = ends_with(condition.or_else(|| parent.named_child(0)), source);
            match node.kind() {
                "elif_clause" | "else_clause" => runs_if(holds, false),
                _ if is_condition(node) => Chance::Always,
                _ => runs_if(holds, true),
            }
        }
        "do_group" => parent.parent().map_or(Chance::Maybe, |it| chance_of_body(it, source)),
        "case_item" => {
            let is_first = parent.prev_named_sibling().is_none_or(|it| it.kind() != "case_item");
            let pattern = parent.child_by_field_name("value").map(|it| node_text(it, source));
            let value = parent.parent().and_then(|it| it.child_by_field_name("value"));
            let same = pattern == Some("*") || pattern == value.map(|it| node_text(it, source));
            if is_first && same { Chance::Always } else { Chance::Maybe }
        }
        "list" => {
            let Some(before) = node.prev_named_sibling() else { return Chance::Always };
            let is_or = node.prev_sibling().is_some_and(|it| it.kind() == "||");
            runs_if(ends_with(Some(before), source), !is_or)
        }
        _ => Chance::Always,
    }
}

/// Whether something runs that does where a condition comes to this.
const fn runs_if(condition: Option<bool>, wanted: bool) -> Chance {
    match condition {
        Some(is) if is == wanted => Chance::Always,
        Some(_) => Chance::Never,
        None => Chance::Maybe,
    }
}

/// Whether a statement of `if` is one of its conditions.
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

/// Whether the body of a loop runs each time that the loop is come to.
fn chance_of_body(statement: Node<'_>, source: &str) -> Chance {
    if statement.kind() == "for_statement" {
        return if has_values(statement, source) { Chance::Always } else { Chance::Maybe };
    }
    let ends = ends_with(statement.child_by_field_name("condition"), source);
    let ends_at_once = match node_text(statement, source).starts_with("until") {
        true => ends == Some(true),
        false => ends == Some(false),
    };
    if goes_on(statement, source) {
        Chance::Always
    } else if ends_at_once {
        Chance::Never
    } else {
        Chance::Maybe
    }
}

/// Whether a loop goes through words that are there as they stand: `for i in 1 2`.
fn has_values(node: Node<'_>, source: &str) -> bool {
    let mut cursor = node.walk();
    let mut values = node.children_by_field_name("value", &mut cursor);
    values.any(|it| !node_text(it, source).contains(['$', '`', '*', '?', '[']))
}

/// Whether a condition holds, whatever happens; nothing where that depends.
fn ends_with(condition: Option<Node<'_>>, source: &str) -> Option<bool> {
    let condition = condition?;
    let part = |at: u32| ends_with(condition.named_child(at), source);
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
fn jobs(body: Node<'_>, (source, own): (&str, &str), depth: usize) -> Jobs {
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
                let name = node_text(*child, source).split_whitespace().next();
                found.command(name.filter(|it| *it != own).unwrap_or(":"));
            }
            // Nobody else can wait for its jobs.
            "subshell" => {
                let inner = jobs(*child, (source, own), depth);
                found.lost |= inner.are_left();
                found.busy |= inner.busy;
            }
            "function_definition" | "comment" => {}
            "if_statement" if is_never_taken(*child, source) => {}
            _ => found.then(&jobs(*child, (source, own), depth)),
        }
    }
    found
}

/// Whether a branch is one that is never taken.
fn is_never_taken(branch: Node<'_>, source: &str) -> bool {
    ends_with(branch.child_by_field_name("condition"), source) == Some(false)
}
