//! Loops that start jobs without end: `while true; do work & done`. Lives here: which forms of the grammar
//! those are. A loop that waits for its jobs, sleeps, or is left at some point is none.

use tree_sitter::Node;

use super::super::shell::word;

/// What `while` goes on with for ever.
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
/// Programs by which a loop is left, or takes its time.
const BOUNDING: [&str; 6] = ["sleep", "break", "exit", "return", "exec", "read"];

/// Whether a statement starts jobs for ever.
pub(super) fn starts_jobs(statement: Node<'_>, source: &str) -> bool {
    goes_on(statement, source)
        && statement.child_by_field_name("body").is_some_and(|it| jobs(it, source).are_left())
}

/// Whether a loop never ends by its own condition.
fn goes_on(statement: Node<'_>, source: &str) -> bool {
    if statement.kind() == "c_style_for_statement" {
        return statement.child_by_field_name("condition").is_none();
    }
    let mut cursor = statement.walk();
    let conditions: Vec<Node<'_>> =
        statement.children_by_field_name("condition", &mut cursor).collect();
    let text: String = conditions.iter().map(|it| word::raw(*it, source)).collect();
    let text: String = text.chars().filter(|c| !c.is_whitespace() && *c != ';').collect();
    match word::raw(statement, source).starts_with("until") {
        true => FALSE.contains(&text.as_str()),
        false => TRUE.contains(&text.as_str()),
    }
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
    /// Whether it may be left, or takes its time.
    bounded: bool,
}

impl Jobs {
    /// Whether some may run on when it is done. One job alone is waited for at the next beginning, too.
    const fn are_left(&self) -> bool {
        let waits_first = self.waited && self.started == 1;
        self.lost || (self.running > 0 && !self.bounded && !waits_first)
    }

    fn program(&mut self, name: &str) {
        match name {
            "wait" => (self.waited, self.running) = (true, 0),
            "disown" => self.lost |= self.started > 0,
            other => self.bounded |= BOUNDING.contains(&other),
        }
    }
}

/// The jobs of a body, one statement after the other.
fn jobs(body: Node<'_>, source: &str) -> Jobs {
    let mut found = Jobs::default();
    let mut cursor = body.walk();
    for child in body.children(&mut cursor) {
        let is_job = child.next_sibling().is_some_and(|it| it.kind() == "&");
        match child.kind() {
            "&" => (found.started, found.running) = (found.started + 1, found.running + 1),
            _ if is_job => {}
            "command" | "redirected_statement" | "list" | "test_command" | "negated_command" => {
                let text = word::raw(child, source);
                let programs = text.split(['&', '|', ';']);
                programs
                    .filter_map(|it| it.split_whitespace().next())
                    .for_each(|it| found.program(it));
            }
            // Nobody else can wait for its jobs.
            "subshell" => found.lost |= jobs(child, source).are_left(),
            "function_definition" | "comment" => {}
            "if_statement" if is_never_taken(child, source) => {}
            _ => {
                let inner = jobs(child, source);
                found.started += inner.started;
                found.running =
                    if inner.waited { inner.running } else { found.running + inner.running };
                found.waited |= inner.waited;
                found.lost |= inner.lost;
                found.bounded |= inner.bounded;
            }
        }
    }
    found
}

/// Whether a branch is one that is never taken.
fn is_never_taken(branch: Node<'_>, source: &str) -> bool {
    let condition = branch.child_by_field_name("condition");
    condition.is_some_and(|it| word::raw(it, source).trim_end_matches(';').trim() == "false")
}
