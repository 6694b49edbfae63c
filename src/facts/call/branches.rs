//! What may have been done or not: `if`, `case`, `&&` and `||`. Each branch is read as if it were taken, and a
//! variable has all the values afterwards that it may have.

use std::collections::BTreeMap;

use tree_sitter::Node;

use super::super::shell::node::child_of_kind;
use super::Input;
use super::scan::{Output, Scanner, Scope};
use super::value::Text;

/// Variables by name.
type Variables = BTreeMap<String, Vec<Text>>;

/// Values of a variable that are followed; the last ones, where there are more.
const VALUES_MAX: usize = 8;

impl Scanner<'_> {
    /// `if` and `case`: their clauses begin with what was known before them, as does what follows where none of
    /// them need be taken.
    pub(super) fn clauses(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        input: &Input,
    ) -> Output {
        let before = scope.variables.clone();
        let mut output = Output::empty();
        let (mut ends, mut is_taken) = (Vec::new(), false);
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        let is_case = node.kind() == "case_statement";
        for child in children.into_iter().filter(|it| it.kind() != "comment") {
            if matches!(child.kind(), "elif_clause" | "else_clause" | "case_item") {
                ends.push(std::mem::replace(&mut scope.variables, before.clone()));
                is_taken |= child.kind() == "else_clause";
            }
            output = output.then(self.statement(child, source, scope, input));
        }
        // Of `case` the first end is what was before.
        if !is_case && !is_taken {
            ends.push(before);
        }
        for end in ends.into_iter().rev() {
            join(&mut scope.variables, end);
        }
        output
    }

    /// `a && b` and `a || b`: behind `||` what `a` set may not be so, and behind the whole what `b` did.
    pub(super) fn list(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        input: &Input,
    ) -> Output {
        let before = scope.variables.clone();
        let is_or = child_of_kind(node, "||").is_some();
        let mut cursor = node.walk();
        let mut children = node.named_children(&mut cursor).filter(|it| it.kind() != "comment");
        let mut output = Output::empty();
        if let Some(left) = children.next() {
            output = self.statement(left, source, scope, input);
        }
        let right: Vec<Node<'_>> = children.collect();
        for right in right {
            if is_or {
                let left = std::mem::replace(&mut scope.variables, before.clone());
                output = output.then(self.statement(right, source, scope, input));
                join(&mut scope.variables, left);
            } else {
                output = output.then(self.statement(right, source, scope, input));
            }
        }
        // What stands further on in the same list runs only where this did.
        if node.parent().is_none_or(|it| it.kind() != "list") {
            join(&mut scope.variables, before);
        }
        output
    }
}

/// Adds the values that variables may have instead, before those that they have.
fn join(variables: &mut Variables, other: Variables) {
    for (name, mut values) in other {
        match variables.get_mut(&name) {
            Some(own) if own.len() == 1 && values.len() == 1 || own.len() > 1 => {
                values.retain(|it| !own.contains(it));
                values.append(own);
                values.drain(..values.len().saturating_sub(VALUES_MAX));
                *own = values;
            }
            Some(_) => {}
            None => {
                variables.insert(name, values);
            }
        }
    }
}
