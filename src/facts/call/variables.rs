//! Variables that a line sets: assignments, and what `export`, `local`, `declare` and `unset` do.

use tree_sitter::Node;

use super::super::shell::node::child_of_kind;
use super::super::shell::word;
use super::scan::{Output, Scanner, Scope};
use super::units::{braces, plain, split, whole};
use super::value::Text;
use super::words::{behind_value, escaped_blanks, parts, touching};

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
                self.words_of(&items, source, scope).split()
            }
            value => vec![self.value(node, value, source, scope)],
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

    /// What stands behind the sign of an assignment.
    fn value(
        &mut self,
        node: Node<'_>,
        value: Option<Node<'_>>,
        source: &str,
        scope: &mut Scope,
    ) -> Text {
        let sign = node.children(&mut node.walk()).find(|it| it.kind().ends_with('='));
        let from = sign.map_or(node.end_byte(), |it| it.end_byte());
        let pieces: Vec<Node<'_>> = value.into_iter().chain(touching(node, source)).collect();
        let gap = value.and_then(|it| source.get(from..it.start_byte())).unwrap_or_default();
        if parts(gap) {
            // Behind a line that goes on with an empty one the grammar takes the next command for the value.
            self.unread("its form is not that of a shell command");
        }
        let mut units = self.units_of(from, &pieces, source, scope);
        let end = pieces.last().map_or(from, Node::end_byte);
        let (own, _) = behind_value(escaped_blanks(source, end));
        plain(own, &mut units);
        let is_declared = node.parent().is_some_and(|it| it.kind() == "declaration_command");
        // `declare A={a,b}` are two assignments, split as words are.
        let mut each = if is_declared { braces(units) } else { vec![units] };
        let (is_split, last) = (each.len() > 1, each.pop().unwrap_or_default());
        let mut words = Vec::new();
        if is_split {
            split(&last, &mut words);
        }
        let value = words.into_iter().next().unwrap_or_else(|| whole(&last));
        Text { glob: false, ..value }.with_home(&self.reading.around.home)
    }

    /// `export A=b`, `local a`.
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
        let exports = keyword == "export"
            || children.iter().any(|it| {
                let text = word::raw(*it, source);
                text.starts_with('-') && text.contains('x')
            });
        // All its words are put together before any of them is set.
        let mut set = Vec::new();
        let mut end = node.start_byte();
        for child in children {
            if child.start_byte() < end {
                continue; // It belongs to an assignment.
            }
            match child.kind() {
                "variable_assignment" => {
                    end = touching(child, source).last().map_or(end, Node::end_byte);
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
                    scope.exported.extend(exports.then(|| name.clone()));
                    set.push((name, values));
                }
                "variable_name" if keyword == "local" => {
                    let name = word::raw(child, source).to_owned();
                    self.made_local(&name, scope);
                    set.push((name, vec![Text::known("")]));
                }
                "variable_name" if exports => {
                    let name = word::raw(child, source).to_owned();
                    let value = self.lookup(&name, scope).unwrap_or_default();
                    scope.exported.insert(name.clone());
                    self.call.variables.extend(value.into_iter().next().map(|it| (name, it)));
                }
                // `export $(…)`: what is printed is what is set.
                _ => {
                    for word in self.words_of(&[child], source, scope).split() {
                        if !word.is_known() {
                            scope.forget_empty();
                        }
                        if let Some((name, value)) = word.all().and_then(|it| it.split_once('=')) {
                            let (name, value) = (name.to_owned(), Text::known(value));
                            self.call.variables.insert(name.clone(), value.clone());
                            scope.exported.insert(name.clone());
                            scope.variables.insert(name, vec![value]);
                        }
                    }
                }
            }
        }
        scope.variables.extend(set);
        Output::empty()
    }

    /// `unset A`, `unset -f name`: of a name that is no variable the function is taken away.
    pub(super) fn unset(&mut self, node: Node<'_>, source: &str, scope: &mut Scope) -> Output {
        let mut cursor = node.walk();
        let words: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        let is_said = |option: &str| words.iter().any(|it| word::raw(*it, source) == option);
        let (of_functions, of_variables) = (is_said("-f"), is_said("-v"));
        for word in self.words_of(&words, source, scope).split() {
            match word.all().filter(|it| !it.starts_with('-')) {
                Some(name) if of_functions => {
                    scope.functions.remove(name);
                }
                Some(name) => {
                    let before = scope.variables.insert(name.to_owned(), Vec::new());
                    if before.is_none() && !of_variables {
                        scope.functions.remove(name);
                    }
                }
                None => {}
            }
        }
        Output::empty()
    }
}
