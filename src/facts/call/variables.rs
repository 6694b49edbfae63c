//! Variables that a line sets: assignments, and what `export`, `local`, `declare` and `unset` do.

use tree_sitter::Node;

use super::super::shell::node::child_of_kind;
use super::super::shell::word;
use super::scan::{Output, Scanner, Scope};
use super::value::Text;

impl Scanner<'_> {
    /// All assignments below a node.
    pub(super) fn assignments(&mut self, node: Node<'_>, source: &str, scope: &mut Scope) {
        if node.kind() == "variable_assignment" {
            let (name, values) = self.assignment(node, source, scope);
            scope.variables.insert(name, values);
            return;
        }
        let mut cursor = node.walk();
        let each: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        each.into_iter().for_each(|it| self.assignments(it, source, scope));
    }

    /// The name and the values of `NAME=value`.
    pub(super) fn assignment(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
    ) -> (String, Vec<Text>) {
        let name = node.child_by_field_name("name");
        if let Some(name) = name.filter(|it| it.kind() == "subscript") {
            self.inner_commands(name, source, scope);
        }
        let name = name.map(|it| word::raw(it, source)).unwrap_or_default();
        let name = name.split('[').next().unwrap_or(name).to_owned();
        let adds = child_of_kind(node, "+=").is_some();
        let mut values = match node.child_by_field_name("value") {
            Some(list) if list.kind() == "array" => {
                let mut cursor = list.walk();
                let items: Vec<Node<'_>> = list.named_children(&mut cursor).collect();
                items.into_iter().flat_map(|it| self.words_of(it, source, scope)).collect()
            }
            Some(value) => vec![self.text_of(value, source, scope)],
            None => vec![Text::known("")],
        };
        if adds && let Some(before) = self.lookup(&name, scope) {
            values = match (before.as_slice(), values.as_slice()) {
                ([one], [other]) => {
                    let mut both = one.clone();
                    both.append(other);
                    vec![both]
                }
                _ => before.into_iter().chain(values).collect(),
            };
        }
        (name, values)
    }

    /// `export A=b`, `local a`, `unset A`.
    pub(super) fn declaration(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
    ) -> Output {
        let keyword = node.child(0).map(|it| word::raw(it, source)).unwrap_or_default().to_owned();
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        let is_local = matches!(keyword.as_str(), "declare" | "typeset" | "local");
        // What is behind `declare -n` names another variable: what either holds cannot be known from here on.
        let refers = is_local
            && children.iter().any(|it| {
                let text = word::raw(*it, source);
                text.starts_with('-') && text.contains('n')
            });
        // All its words are put together before any of them is set.
        let mut set = Vec::new();
        for child in children {
            match child.kind() {
                "variable_assignment" => {
                    let (name, mut values) = self.assignment(child, source, scope);
                    if refers {
                        let unknown = vec![Text::unknown(word::raw(child, source))];
                        let target = values.first().and_then(Text::all).map(str::to_owned);
                        set.extend(target.map(|it| (it, unknown.clone())));
                        values = unknown;
                    }
                    if matches!(keyword.as_str(), "export" | "declare" | "typeset")
                        && let Some(value) = values.first()
                    {
                        self.call.variables.insert(name.clone(), value.clone());
                    }
                    if is_local {
                        self.made_local(&name, scope);
                    }
                    set.push((name, values));
                }
                "variable_name" if keyword == "unset" => {
                    scope.variables.insert(word::raw(child, source).to_owned(), Vec::new());
                }
                "variable_name" if keyword == "local" => {
                    let name = word::raw(child, source).to_owned();
                    self.made_local(&name, scope);
                    set.push((name, vec![Text::known("")]));
                }
                "variable_name" if keyword == "export" => {
                    let name = word::raw(child, source).to_owned();
                    let value = self.lookup(&name, scope).unwrap_or_default();
                    self.call.variables.extend(value.into_iter().next().map(|it| (name, it)));
                }
                // `export $(…)`: what is printed is what is set.
                _ => {
                    for word in self.words_of(child, source, scope) {
                        if let Some((name, value)) = word.all().and_then(|it| it.split_once('=')) {
                            let (name, value) = (name.to_owned(), Text::known(value));
                            self.call.variables.insert(name.clone(), value.clone());
                            scope.variables.insert(name, vec![value]);
                        }
                    }
                }
            }
        }
        scope.variables.extend(set);
        Output::empty()
    }
}
