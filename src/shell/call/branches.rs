//! Branches and loops of the shell, and lists with `&&` and `||`: what each of their parts leaves for the statements
//! behind them.
//!
//! Does not contain: the state that the parts change (`shell_state`), loops that start jobs endlessly (`endless`).

use tree_sitter::Node;

use super::endless;
use super::invocation::StandardInput;
use super::scanner::Scanner;
use super::shell_output::ShellOutput;
use super::shell_state::{MANY_VALUES, ShellState, join};
use super::shell_text::ShellText;
use crate::shell::{child_of_kind, node_text};

/// Maximum number of values of a loop variable that are followed.
const LOOP_VALUES_MAX: usize = 8;

impl Scanner<'_> {
    pub(super) fn scan_for_loop(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> ShellOutput {
        let name = node.child_by_field_name("variable").map(|it| node_text(it, source).to_owned());
        let mut cursor = node.walk();
        let values: Vec<Node<'_>> = node.children_by_field_name("value", &mut cursor).collect();
        let written = !values.is_empty();
        let mut words = self.words_from_nodes(&values, source, scope).split();
        if !written {
            let own = self.variable_values("@", "$@", scope);
            words.extend(own);
        }
        let many = words.len() > LOOP_VALUES_MAX;
        words.truncate(LOOP_VALUES_MAX);
        if many {
            words.push(ShellText::unknown(MANY_VALUES));
        }
        let Some(body) = node.child_by_field_name("body") else { return ShellOutput::default() };
        let mut output = ShellOutput::empty();
        // Without a known value, the body may not run; that of `select` runs only if the user answers.
        let is_select = child_of_kind(node, "select").is_some();
        let is_run = !is_select && words.iter().any(ShellText::is_known);
        let before = (!is_run).then(|| (scope.variables.clone(), scope.folder.clone()));
        let is_open = words.iter().any(|it| !it.is_known());
        self.loops += usize::from(is_open);
        for word in words {
            if self.is_spent() {
                break;
            }
            let kept = name.clone().map(|it| (it, vec![word]));
            scope.variables.extend(kept);
            scope.settle();
            output = output.then(self.scan_sequence(body, source, scope, input));
        }
        self.loops -= usize::from(is_open);
        if let Some((variables, folder)) = before {
            join(&mut scope.variables, variables);
            scope.folder.join(folder);
        }
        output
    }

    /// Scans a loop with a condition. Its body may run never, once, or again with the values that it set.
    pub(super) fn scan_while_loop(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> ShellOutput {
        let (variables, folder) = (scope.variables.clone(), scope.folder.clone());
        self.loops += 1;
        let mut output = self.scan_rounds(node, source, scope, input);
        scope.settle();
        let is_changed = scope.variables != variables || scope.folder != folder;
        join(&mut scope.variables, variables);
        scope.folder.join(folder);
        if is_changed && !self.is_spent() {
            let (variables, folder) = (scope.variables.clone(), scope.folder.clone());
            output = output.then(self.scan_sequence(node, source, scope, input));
            join(&mut scope.variables, variables);
            scope.folder.join(folder);
        }
        self.loops -= 1;
        output
    }

    /// Scans the body of a loop once for each known line if the loop reads its input (`while read`), otherwise once.
    fn scan_rounds(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> ShellOutput {
        let condition = node.child_by_field_name("condition");
        let reads = condition.is_some_and(|it| node_text(it, source).contains("read"));
        let Some(text) = input.text.as_deref().filter(|_| reads) else {
            return self.scan_sequence(node, source, scope, input);
        };
        if text.is_empty() {
            return self.scan_sequence(node, source, scope, input);
        }
        let mut output = ShellOutput::empty();
        for line in text.split_inclusive('\n').take(LOOP_VALUES_MAX) {
            let line = StandardInput { text: Some(line.to_owned()), ..input.clone() };
            output = output.then(self.scan_sequence(node, source, scope, &line));
        }
        if text.lines().count() > LOOP_VALUES_MAX {
            let any = StandardInput { text: None, ..input.clone() };
            output = output.then(self.scan_sequence(node, source, scope, &any));
        }
        output
    }

    /// Scans `if` and `case`. Each clause begins with the variables before the statement. If no
    /// clause must run, the statement after it begins with them, too.
    pub(super) fn scan_clauses(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> ShellOutput {
        let before = scope.variables.clone();
        // Where the shell is if no clause ran yet.
        let mut skipped = scope.folder.clone();
        let mut output = ShellOutput::empty();
        let (mut ends, mut is_taken) = (Vec::new(), false);
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        let is_case = node.kind() == "case_statement";
        for (at, child) in children.into_iter().filter(|it| it.kind() != "comment").enumerate() {
            if matches!(child.kind(), "elif_clause" | "else_clause" | "case_item") {
                scope.settle();
                let folder = std::mem::replace(&mut scope.folder, skipped.clone());
                ends.push((std::mem::replace(&mut scope.variables, before.clone()), folder));
                is_taken |= child.kind() == "else_clause";
            } else if at > 1 {
                scope.settle();
            }
            let printed = self.scan_statement(child, source, scope, input);
            let is_clause = matches!(child.kind(), "elif_clause" | "else_clause" | "case_item");
            // Only one clause prints.
            let is_other = is_clause && output.text.as_deref() != Some("");
            output = output.then(printed);
            output.text = output.text.filter(|_| !is_other);
            if at == 0 {
                skipped = scope.take_failed();
            }
        }
        scope.settle();
        // For `case`, the first stored state is the one before the statement.
        if !is_case && !is_taken {
            ends.push((before, skipped));
        }
        for (variables, folder) in ends.into_iter().rev() {
            join(&mut scope.variables, variables);
            scope.folder.join(folder);
        }
        output
    }

    /// Scans `a && b` and `a || b`. Variables that a skipped command sets keep their previous
    /// values as alternatives.
    pub(super) fn scan_list(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> ShellOutput {
        let before = scope.variables.clone();
        let is_or = child_of_kind(node, "||").is_some();
        let mut cursor = node.walk();
        let mut children = node.named_children(&mut cursor).filter(|it| it.kind() != "comment");
        let mut output = ShellOutput::empty();
        if let Some(left) = children.next() {
            output = self.scan_statement(left, source, scope, input);
        }
        let right: Vec<Node<'_>> = children.collect();
        for right in right {
            let mut failed = scope.take_failed();
            if is_or {
                let left = std::mem::replace(&mut scope.variables, before.clone());
                let folder = std::mem::replace(&mut scope.folder, failed);
                output = output.then(self.scan_statement(right, source, scope, input));
                join(&mut scope.variables, left);
                if endless::leaves(right, source) {
                    (scope.folder, scope.failed) = (folder, None);
                } else {
                    scope.folder.join(folder);
                }
            } else {
                output = output.then(self.scan_statement(right, source, scope, input));
                failed.join(scope.take_failed());
                scope.failed = Some(failed).filter(|it| *it != scope.folder);
            }
        }
        // The rest of the same list runs only if this part ran.
        if node.parent().is_none_or(|it| it.kind() != "list") {
            join(&mut scope.variables, before);
        }
        output
    }
}
