//! Variables, parameters, and functions of the simulated shell.
//!
//! Contains: assignments and declarations, parameter expansion (`${NAME:-word}`), and calls of functions that the line
//! defines.
//! Does not contain: the state itself (`shell_state`), builtins that change the state (`programs`), branches and loops
//! (`statements`).

use std::collections::BTreeMap;
use std::rc::Rc;

use tree_sitter::Node;

use super::function_table::RunningFunction;
use super::invocation::StandardInput;
use super::scanner::Scanner;
use super::shell_output::ShellOutput;
use super::shell_state::{ShellFunction, ShellState};
use super::shell_text::ShellText;
use super::words::{
    UnitKind, WordUnit, adjacent_nodes, escaped_blanks, expand_braces, join_units, name_end, plain,
    push_gap, push_value, push_values, separates_words, split, split_after_value,
};
use crate::shell::{ShellWord, child_of_kind, node_text};

impl Scanner<'_> {
    /// Applies all assignments below a node.
    pub(super) fn apply_assignments(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
    ) {
        if node.kind() == "variable_assignment" {
            let (name, values) = self.evaluate_assignment(node, source, scope);
            scope.variables.insert(name, values);
            return;
        }
        let mut cursor = node.walk();
        let each: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        each.into_iter().for_each(|it| self.apply_assignments(it, source, scope));
    }

    /// Returns the name and the values of `NAME=value`.
    pub(super) fn evaluate_assignment(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
    ) -> (String, Vec<ShellText>) {
        let name = node.child_by_field_name("name");
        if let Some(name) = name.filter(|it| it.kind() == "subscript") {
            self.scan_substitutions(name, source, scope);
        }
        let name = name.map(|it| node_text(it, source)).unwrap_or_default();
        let name = name.split('[').next().unwrap_or(name).to_owned();
        self.call.assigned.insert(name.clone());
        let text = node_text(node, source);
        // Arithmetic evaluates a subscript in a value: `x='a[$(y)]'; [[ $x -gt 0 ]]`.
        if text.contains("='") && ["[$(", "[`"].iter().any(|it| text.contains(it)) {
            self.call.mark_not_understood("a subscript in quotes runs commands");
        }
        let adds = child_of_kind(node, "+=").is_some();
        let list = node.child_by_field_name("value").filter(|it| it.kind() == "array");
        let mut values = match node.child_by_field_name("value") {
            Some(list) if list.kind() == "array" => {
                let mut cursor = list.walk();
                let items: Vec<Node<'_>> = list.named_children(&mut cursor).collect();
                self.words_from_nodes(&items, source, scope).split()
            }
            value => vec![self.evaluate_value(node, value, source, scope)],
        };
        if adds && let Some(before) = self.known_values(&name, scope) {
            values = match (before.as_slice(), values.as_slice()) {
                ([one], [other]) if list.is_none() => {
                    let mut both = one.clone();
                    both.append(other);
                    vec![both]
                }
                _ => before.into_iter().chain(values).collect(),
            };
        }
        (name, values)
    }

    /// Evaluates the part behind the `=` of an assignment.
    fn evaluate_value(
        &mut self,
        node: Node<'_>,
        value: Option<Node<'_>>,
        source: &str,
        scope: &mut ShellState,
    ) -> ShellText {
        let sign = node.children(&mut node.walk()).find(|it| it.kind().ends_with('='));
        let from = sign.map_or(node.end_byte(), |it| it.end_byte());
        let pieces: Vec<Node<'_>> = value.into_iter().chain(adjacent_nodes(node, source)).collect();
        let gap = value.and_then(|it| source.get(from..it.start_byte())).unwrap_or_default();
        if separates_words(gap) {
            // After a line continuation and an empty line, the grammar parses the next command as
            // the value.
            self.mark_not_understood("its form is not that of a shell command");
        }
        let mut units = self.units_from_nodes(from, &pieces, source, scope);
        let end = pieces.last().map_or(from, Node::end_byte);
        let (own, _) = split_after_value(escaped_blanks(source, end));
        plain(own, &mut units);
        let is_declared = node.parent().is_some_and(|it| it.kind() == "declaration_command");
        // `declare A={a,b}` is split into two assignments, as words are.
        let mut each = if is_declared { expand_braces(units) } else { vec![units] };
        let (is_split, last) = (each.len() > 1, each.pop().unwrap_or_default());
        let mut words = Vec::new();
        if is_split {
            split(&last, &mut words);
        }
        let value = words.into_iter().next().unwrap_or_else(|| join_units(&last));
        ShellText { glob: false, ..value }.with_home(&self.context.around.home)
    }

    /// Adds a declaration that prints variables as a program: `declare -p`.
    fn add_printing(&mut self, keyword: &str, words: &[&str], scope: &ShellState) {
        let words = std::iter::once(keyword).chain(words.iter().copied()).map(ShellText::known);
        let words: Vec<ShellText> = words.collect();
        let program = self.build_invocation(&words, scope, &StandardInput::default(), Vec::new());
        self.add_program(program);
    }

    /// Applies `export A=b`, `local a` and similar declarations.
    pub(super) fn apply_declaration(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
    ) -> ShellOutput {
        let keyword = node.child(0).map(|it| node_text(it, source)).unwrap_or_default().to_owned();
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        let is_local = matches!(keyword.as_str(), "declare" | "typeset" | "local");
        // `declare -n` makes a reference to another variable. From here on both values are unknown.
        let words: Vec<&str> = children.iter().map(|it| node_text(*it, source)).collect();
        let has = |letter: char| words.iter().any(|it| it.starts_with('-') && it.contains(letter));
        let (refers, exports) = (is_local && has('n'), keyword == "export" || has('x'));
        // Without names, a declaration prints all variables.
        if !is_local && words.is_empty() || has('p') {
            self.add_printing(&keyword, &words, scope);
        }
        // A shell evaluates all words of a declaration before it sets the first variable.
        let mut set = Vec::new();
        let mut end = node.start_byte();
        for child in children {
            if child.start_byte() < end {
                continue; // It is part of an assignment.
            }
            match child.kind() {
                "variable_assignment" => {
                    end = adjacent_nodes(child, source).last().map_or(end, Node::end_byte);
                    let (name, mut values) = self.evaluate_assignment(child, source, scope);
                    if refers {
                        let unknown = vec![ShellText::unknown(node_text(child, source))];
                        let target = values.first().and_then(ShellText::all).map(str::to_owned);
                        set.extend(target.map(|it| (it, unknown.clone())));
                        values = unknown;
                    }
                    if matches!(keyword.as_str(), "export" | "declare" | "typeset")
                        && let Some(value) = values.first()
                    {
                        self.set_variable(&name, value, scope);
                    }
                    if is_local {
                        self.make_local(&name, scope);
                    }
                    scope.exported.extend(exports.then(|| name.clone()));
                    set.push((name, values));
                }
                "variable_name" if keyword == "local" => {
                    let name = node_text(child, source).to_owned();
                    self.make_local(&name, scope);
                    set.push((name, vec![ShellText::known("")]));
                }
                "variable_name" if exports => {
                    let name = node_text(child, source).to_owned();
                    let value = self.known_values(&name, scope).unwrap_or_default();
                    scope.exported.insert(name.clone());
                    self.call.variables.extend(value.into_iter().next().map(|it| (name, it)));
                }
                // `export $(…)` sets what the command prints.
                _ => {
                    for word in self.words_from_nodes(&[child], source, scope).split() {
                        if !word.is_known() {
                            scope.forget_empty();
                        }
                        if let Some((name, value)) = word.all().and_then(|it| it.split_once('=')) {
                            let (name, value) = (name.to_owned(), ShellText::known(value));
                            self.call.variables.insert(name.clone(), value.clone());
                            scope.exported.insert(name.clone());
                            scope.variables.insert(name, vec![value]);
                        }
                    }
                }
            }
        }
        scope.variables.extend(set);
        ShellOutput::empty()
    }

    /// Applies `unset A` and `unset -f name`. If no variable has the name, `unset` removes the
    /// function.
    pub(super) fn apply_unset(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
    ) -> ShellOutput {
        let mut cursor = node.walk();
        let words: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        let is_said = |option: &str| words.iter().any(|it| node_text(*it, source) == option);
        let (of_functions, of_variables) = (is_said("-f"), is_said("-v"));
        for word in self.words_from_nodes(&words, source, scope).split() {
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
        ShellOutput::empty()
    }
}

impl Scanner<'_> {
    /// Expands the variable whose name `text` begins with. Returns the rest of `text` after the
    /// name.
    pub(super) fn expand_named<'t>(
        &mut self,
        text: &'t str,
        scope: &ShellState,
        kind: UnitKind,
        out: &mut Vec<WordUnit>,
    ) -> &'t str {
        let (name, rest) = text.split_at_checked(name_end(text)).unwrap_or((text, ""));
        let written = format!("${name}");
        // A shell expands braces and line continuations first: `$A{b,c}` expands `Ab` and `Ac`.
        let goes_on =
            kind == UnitKind::Plain && (rest.starts_with('{') || rest.starts_with("\\\n"));
        // An unknown value directly behind the name may be part of the name.
        if goes_on || self.as_written && rest.starts_with(['$', '`']) {
            out.push(WordUnit::Unknown(ShellText::unknown(written)));
            return rest;
        }
        let values = self.variable_values(name, &written, scope);
        let values = if kind == UnitKind::Plain { scope.separated(values) } else { values };
        let is_joined = kind == UnitKind::Quoted && name == "*";
        push_values(if is_joined { vec![joined(&values)] } else { values }, kind, out);
        rest
    }

    /// Expands `$NAME`.
    pub(super) fn expand_variable(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        kind: UnitKind,
        out: &mut Vec<WordUnit>,
    ) {
        let from = node.end_byte() - node_text(node, source).len() + 1;
        let name = source.get(from..node.end_byte()).unwrap_or_default();
        let from = from + name.len() - name.trim_start_matches("\\\n").len();
        let name = name.trim_start_matches("\\\n");
        // Behind a single `$`, the grammar parses a blank or the next characters as the name.
        if name_end(name) == 0 {
            out.push(WordUnit::Char('$', kind));
            return push_gap(name, kind, out);
        }
        // The source behind the node determines where the name ends.
        let after = source.get(from..).unwrap_or_default();
        let rest = self.expand_named(after, scope, kind, out);
        // `$12` is `$1` and a digit. The grammar parses both digits as the name.
        let own = name.len().saturating_sub(after.len() - rest.len());
        out.extend(rest.chars().take(own).map(|c| WordUnit::Char(c, kind)));
    }

    /// Expands `${NAME…}`.
    pub(super) fn expand_parameter(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        kind: UnitKind,
        out: &mut Vec<WordUnit>,
    ) {
        let raw = node_text(node, source);
        self.scan_backticks(raw, scope);
        let inside = raw.strip_prefix("${").and_then(|it| it.strip_suffix('}')).unwrap_or_default();
        if let Some(name) = inside.strip_prefix('!') {
            // `${!NAME}` expands the variable that `NAME` names.
            let named = self.variable_values(name, raw, scope);
            let named = named.first().and_then(ShellText::all).map(str::to_owned);
            let found = named.map(|it| self.variable_values(&it, raw, scope));
            let found = found.unwrap_or_else(|| vec![ShellText::unknown(raw)]);
            found.into_iter().for_each(|it| push_value(it, kind, out));
            return;
        }
        let ParameterExpansion { name, is_joined, rest } = ParameterExpansion::read(inside);
        let set = self.known_values(name, scope);
        // With a colon, an empty value counts as unset.
        let colon = rest.starts_with(':');
        let has_value = set.as_ref().is_some_and(|it| !(it.is_empty() || colon && all_empty(it)));
        if rest == "@P" {
            self.call.mark_not_understood("`@P` expands a value as a prompt, which runs commands");
        }
        match rest.strip_prefix(':').unwrap_or(rest).chars().next().unwrap_or(' ') {
            operator @ ('-' | '=' | '?') if !has_value => {
                let from = out.len();
                if !self.expand_operand(node, source, scope, kind, out) && operator == '?' {
                    out.push(WordUnit::Unknown(ShellText::unknown(raw)));
                }
                if operator == '=' {
                    let value = join_units(out.get(from..).unwrap_or_default());
                    scope.variables.insert(name.to_owned(), vec![value]);
                }
            }
            '+' if has_value => {
                self.expand_operand(node, source, scope, kind, out);
            }
            '+' => {
                // The value is unknown: the variable may be set in the environment.
                self.scan_substitutions(node, source, scope);
            }
            '-' | '=' | '?' | ' ' if !rest.starts_with(": ") => {
                let values = self.variable_values(name, raw, scope);
                let values = if kind == UnitKind::Plain { scope.separated(values) } else { values };
                let is_joined = is_joined && kind == UnitKind::Quoted;
                push_values(if is_joined { vec![joined(&values)] } else { values }, kind, out);
            }
            _ => {
                self.scan_substitutions(node, source, scope);
                let value = set.filter(|it| it.len() == 1).and_then(|it| it.into_iter().next());
                let changed = value.and_then(|it| changed(it.all()?, rest));
                let made = changed.map_or_else(|| ShellText::unknown(raw), ShellText::known);
                push_value(made, kind, out);
            }
        }
    }

    /// Expands the operand of `${NAME:-operand}`. Returns whether there is one.
    fn expand_operand(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        kind: UnitKind,
        out: &mut Vec<WordUnit>,
    ) -> bool {
        let behind: Vec<Node<'_>> = node
            .children(&mut node.walk())
            .skip_while(|it| !it.kind().starts_with([':', '-', '=', '+', '?']))
            .skip(1)
            .filter(|it| it.kind() != "}")
            .collect();
        let from = out.len();
        for child in &behind {
            self.expand_node(*child, source, scope, kind, out);
        }
        // The blanks of the operand separate words, as those of a value do.
        for unit in out.iter_mut().skip(from) {
            if let WordUnit::Char(_, kind @ UnitKind::Plain) = unit {
                *kind = UnitKind::Value;
            }
        }
        !behind.is_empty()
    }
}

/// The parts of `${…}`.
struct ParameterExpansion<'t> {
    name: &'t str,
    /// Whether a quoted list expands to one word: `*`, `NAME[*]`.
    is_joined: bool,
    /// The operator and its operand.
    rest: &'t str,
}

impl<'t> ParameterExpansion<'t> {
    fn read(inside: &'t str) -> Self {
        let digits = inside.find(|c: char| !c.is_ascii_digit()).unwrap_or(inside.len());
        let end = name_end(inside).max(digits);
        let (name, rest) = inside.split_at_checked(end).unwrap_or((inside, ""));
        if let Some(rest) = rest.strip_prefix("[@]") {
            return Self { name, is_joined: false, rest };
        }
        match rest.strip_prefix("[*]") {
            Some(rest) => Self { name, is_joined: true, rest },
            None => Self { name, is_joined: name == "*", rest },
        }
    }
}

/// Joins the items of a list to one word: `"$*"`.
fn joined(items: &[ShellText]) -> ShellText {
    <ShellText as ShellWord>::joined(items)
}

fn all_empty(values: &[ShellText]) -> bool {
    values.iter().all(|it| it.text.is_empty())
}

/// Applies the operators `%`, `#`, `/`, `:`, `^` and `,` to a value. `None` if the operator or its
/// pattern is not supported.
fn changed(value: &str, rest: &str) -> Option<String> {
    let plain = |it: &str| !it.contains(['*', '?', '[', '$', '`', '\\', '"', '\'']);
    if let Some(pattern) = rest.strip_prefix('%').map(|it| it.trim_start_matches('%')) {
        return match pattern {
            "/*" if !rest.starts_with("%%") => {
                Some(value.rsplit_once('/').map_or(value, |it| it.0).to_owned())
            }
            ".*" => Some(value.rsplit_once('.').map_or(value, |it| it.0).to_owned()),
            _ if plain(pattern) => Some(value.strip_suffix(pattern).unwrap_or(value).to_owned()),
            _ => None,
        };
    }
    if let Some(pattern) = rest.strip_prefix('#').map(|it| it.trim_start_matches('#')) {
        return match pattern {
            "*/" => Some(value.rsplit('/').next().unwrap_or(value).to_owned()),
            _ if plain(pattern) => Some(value.strip_prefix(pattern).unwrap_or(value).to_owned()),
            _ => None,
        };
    }
    if let Some(change) = rest.strip_prefix('/') {
        let all = change.starts_with('/');
        let change = change.trim_start_matches('/');
        let (from, to) = change.split_once('/').unwrap_or((change, ""));
        if from.is_empty() || !plain(from) || !plain(to) {
            return None;
        }
        return Some(if all { value.replace(from, to) } else { value.replacen(from, to, 1) });
    }
    if let Some(range) = rest.strip_prefix(':') {
        let (start, count) = range.split_once(':').unwrap_or((range, ""));
        let start: isize = start.trim().parse().ok()?;
        let from_end = value.chars().count().checked_add_signed(start);
        // An offset from the end that is beyond the beginning gives an empty value.
        let start = if start < 0 { from_end.unwrap_or(usize::MAX) } else { start.unsigned_abs() };
        let chars = value.chars().skip(start);
        return Some(match count.trim() {
            "" => chars.collect(),
            count => chars.take(count.parse().ok()?).collect(),
        });
    }
    match rest {
        ",," => Some(value.to_lowercase()),
        "^^" => Some(value.to_uppercase()),
        _ => None,
    }
}

/// Maximum depth to which recursive calls of a function are followed.
const RECURSIONS_MAX: usize = 4;

impl Scanner<'_> {
    /// Defines a function. `leaves_jobs`: whether a call leaves processes in the background.
    pub(super) fn define_function(
        &mut self,
        name: String,
        body: &str,
        leaves_jobs: bool,
        scope: &mut ShellState,
    ) {
        let function =
            ShellFunction { body: Rc::from(body), leaves_jobs, ..ShellFunction::default() };
        scope.functions.insert(name.clone(), function.clone());
        if self.functions.running.is_empty() {
            self.functions.uncalled.push((name, function));
        }
    }

    /// Calls a function that the line defines. Returns `None` if the function is not defined,
    /// or if the program of this name may run instead. `is_own` is false if a program (a wrapper)
    /// makes the call.
    pub(super) fn call_function(
        &mut self,
        words: &[ShellText],
        is_own: bool,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> Option<ShellOutput> {
        let (name, args) = words.split_first()?;
        let name = name.all()?;
        let function = scope.functions.get(name)?.clone();
        let is_doubtful = function.is_doubtful || !is_own;
        let calls = self.functions.depth(name);
        if is_doubtful && calls > 0 && !(is_own && scope.exported.contains(name)) {
            return None; // Inside, the name means the program.
        }
        // A call with different arguments each time may end.
        self.call.endless |=
            calls >= RECURSIONS_MAX && self.functions.goes_on(name, function.leaves_jobs);
        // With fewer arguments each time, the recursion ends: `shift; f "$@"`.
        let last = self.functions.running.iter().rfind(|it| it.name == name);
        if calls > RECURSIONS_MAX && last.is_some_and(|it| args.len() >= it.given) {
            return Some(ShellOutput::default());
        }
        self.functions.uncalled.retain(|(it, own)| it != name || own.body != function.body);
        // The last call represents all further calls, with any arguments.
        let is_last = calls == RECURSIONS_MAX && last.is_some_and(|it| args.len() >= it.given);
        let own_words = scope.parameters.replace(args.to_vec());
        scope.parameters.take_if(|_| is_last);
        let own = self.functions.locals.len();
        let around = self.functions.around;
        let (name, given) = (name.to_owned(), args.len());
        self.functions.running.push(RunningFunction { name, given, around, may_end: false });
        // Rows of the body are not rows of the file: the line is that of the call.
        let lines = self.lines_of.take();
        let mut output = self.scan_body(&function.body, scope, input);
        if let Some(before) = &function.before {
            scope.parameters = Some(args.to_vec());
            output = self.scan_body(&before.body, scope, input);
        }
        self.lines_of = lines;
        self.functions.running.pop();
        scope.parameters = own_words;
        for (name, value) in self.functions.locals.split_off(own).into_iter().rev() {
            match value {
                Some(value) => scope.variables.insert(name, value),
                None => scope.variables.remove(&name),
            };
        }
        Some(output).filter(|_| !is_doubtful)
    }

    /// Saves the value of a variable that becomes local to the running function.
    pub(super) fn make_local(&mut self, name: &str, scope: &ShellState) {
        if !self.functions.running.is_empty() {
            self.functions.locals.push((name.to_owned(), scope.variables.get(name).cloned()));
        }
    }

    /// Scans the functions that the line defines but does not call: other commands may call them.
    pub(super) fn scan_uncalled_functions(&mut self, scope: &ShellState) {
        let uncalled = std::mem::take(&mut self.functions.uncalled);
        if uncalled.is_empty() {
            return;
        }
        let mut scope = scope.clone();
        (scope.functions, scope.parameters) = (BTreeMap::new(), None);
        for (_, function) in uncalled {
            if self.is_spent() {
                return;
            }
            self.scan_body(&function.body, &mut scope.clone(), &StandardInput::default());
        }
    }
}
