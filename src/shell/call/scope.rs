//! The state of the simulated shell: variables, parameters, functions, aliases and the working directory.
//!
//! Contains: [`ShellState`] and [`ShellOutput`], assignments and declarations, parameter expansion
//! (`${NAME:-word}`), calls of functions that the line defines, and the values after a branch.
//! Does not contain: builtins that change the state (`programs`), branches and loops (`statements`).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tree_sitter::Node;

use super::StandardInput;
use super::containers::ContainerMounts;
use super::endless::{self, Likelihood};
use super::statements::Scanner;
use super::words::{
    ShellText, UnitKind, WordUnit, adjacent_nodes, escaped_blanks, expand_braces, join_units,
    plain, push_gap, push_value, push_values, separates_words, split, split_after_value,
};
use crate::shell::{ShellWord, child_of_kind, node_text};

/// Variables that every process inherits.
const OF_SURROUNDINGS: [&str; 9] =
    ["HOME", "PATH", "PWD", "SHELL", "USER", "TMPDIR", "TMP", "TEMP", "LANG"];

/// The state of one shell at one point of the command line.
#[derive(Debug, Clone, Default)]
pub(super) struct ShellState {
    /// Values of variables by name. Several values for an array, none for a variable that was
    /// unset.
    pub(super) variables: Variables,
    /// Names of the variables that the line exports.
    pub(super) exported: BTreeSet<String>,
    /// Working directory.
    pub(super) folder: WorkingFolder,
    /// Working directory if the last statement failed. `None` if that makes no difference.
    pub(super) failed: Option<WorkingFolder>,
    /// The mounts of the container in which the shell runs.
    pub(super) container: Option<Rc<ContainerMounts>>,
    /// Whether the shell ends if a statement fails: `set -e`.
    pub(super) ends_on_error: bool,
    /// Functions and aliases by name.
    pub(super) functions: BTreeMap<String, ShellFunction>,
    /// Positional parameters. `None` if they are unknown.
    pub(super) parameters: Option<Vec<ShellText>>,
    /// Content that the line wrote into files, by absolute path.
    pub(super) files: BTreeMap<String, StandardInput>,
    /// Targets of the symbolic links that the line created, by absolute path.
    pub(super) links: BTreeMap<String, String>,
    /// Programs that read what is written to a descriptor, by its number or the variable that has it.
    pub(super) descriptors: BTreeMap<String, Vec<usize>>,
}

impl ShellState {
    /// Returns the state of a shell that this shell starts. Of the variables it inherits only
    /// exported ones; the others have the values of the environment. Its functions are doubtful.
    pub(super) fn of_a_process(&self) -> Self {
        let mut inner = self.clone();
        let is_handed =
            |name: &str| self.exported.contains(name) || OF_SURROUNDINGS.contains(&name);
        inner.variables.retain(|name, _| is_handed(name));
        inner.functions.values_mut().for_each(|it| it.is_doubtful = true);
        inner.parameters = Some(Vec::new());
        inner
    }

    /// Returns the characters at which this shell splits values, if the line sets them: `IFS=,`.
    pub(super) fn separators(&self) -> Option<&str> {
        self.variables.get("IFS")?.first()?.all()
    }

    /// Replaces the separators in unquoted values by blanks.
    fn separated(&self, values: Vec<ShellText>) -> Vec<ShellText> {
        let Some(separators) = self.separators() else { return values };
        let blank = |it: ShellText| match it.is_known() {
            true => ShellText { text: it.text.replace(|c| separators.contains(c), " "), ..it },
            false => it,
        };
        let is_ascii = separators.is_ascii();
        values.into_iter().map(|it| if is_ascii { blank(it) } else { it }).collect()
    }

    /// Returns the programs that read what is written to a descriptor: `3`, `$fd`, `${COPROC[1]}`.
    pub(super) fn consumers_of(&self, descriptor: &ShellText) -> Option<&Vec<usize>> {
        let name = descriptor.variables().next().unwrap_or(descriptor.text.as_str());
        self.descriptors.get(name)
    }

    /// Begins the next statement: the last one may have failed.
    pub(super) fn settle(&mut self) {
        if let Some(failed) = self.failed.take() {
            self.folder.join(failed);
        }
    }

    /// Returns the working directory if the last statement failed.
    pub(super) fn take_failed(&mut self) -> WorkingFolder {
        self.failed.take().unwrap_or_else(|| self.folder.clone())
    }

    /// Sets a variable to an unknown value.
    pub(super) fn forget(&mut self, name: &str) {
        self.variables.insert(name.to_owned(), vec![ShellText::unknown(format!("${name}"))]);
    }

    /// Marks all empty variables as unknown, after text ran that policyd cannot read: it may have
    /// set them.
    pub(super) fn forget_empty(&mut self) {
        for (name, values) in &mut self.variables {
            if values.iter().all(|it| it.all() == Some("")) {
                *values = vec![ShellText::unknown(format!("${name}"))];
            }
        }
    }

    /// Exchanges the values of variables with those in `variables`. An empty list unsets a
    /// variable.
    pub(super) fn swap(&mut self, variables: &mut Vec<(String, Vec<ShellText>)>) {
        let mut before = Vec::new();
        for (name, values) in variables.drain(..) {
            let own = self.variables.remove(&name);
            before.push((name.clone(), own.unwrap_or_default()));
            if !values.is_empty() {
                self.variables.insert(name, values);
            }
        }
        *variables = before;
    }
}

/// Values of variables by name.
type Variables = BTreeMap<String, Vec<ShellText>>;

/// Maximum number of values of a variable that are followed. More are one unknown value.
pub(super) const VALUES_MAX: usize = 8;
/// Maximum number of working directories that are followed. More are unknown.
const FOLDERS_MAX: usize = 4;
/// Represents the values beyond a limit.
pub(super) const MANY_VALUES: &str = "one of many values";

/// Adds alternative values to variables, before their current values.
pub(super) fn join(variables: &mut Variables, other: Variables) {
    for (name, mut values) in other {
        let own = variables.entry(name).or_default();
        values.retain(|it| !own.contains(it));
        values.append(own);
        if values.len() > VALUES_MAX {
            values.truncate(VALUES_MAX);
            let rest = ShellText::unknown(MANY_VALUES);
            values.extend((!values.contains(&rest)).then_some(rest));
        }
        *own = values;
    }
}

/// The working directory of a shell where it is not certain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WorkingFolder {
    /// The directory if each `cd` succeeded and the last branch was taken. `None` if it is unknown.
    pub(super) path: Option<String>,
    /// Other directories that it may be.
    pub(super) others: Vec<String>,
}

impl WorkingFolder {
    /// A directory without alternatives.
    pub(super) const fn certain(path: Option<String>) -> Self {
        Self { path, others: Vec::new() }
    }

    /// Adds the directories of another branch.
    pub(super) fn join(&mut self, other: Self) {
        for folder in other.path.into_iter().chain(other.others) {
            if self.path.as_ref() != Some(&folder) && !self.others.contains(&folder) {
                self.others.push(folder);
            }
        }
        if self.others.len() > FOLDERS_MAX {
            *self = Self::default();
        }
    }

    /// Returns the directories after `cd`. `change` returns the new directory for an old one.
    pub(super) fn changed(&self, change: impl Fn(Option<&str>) -> Option<String>) -> Self {
        let mut changed = Self::certain(change(self.path.as_deref()));
        let others = self.others.iter().filter_map(|it| change(Some(it)));
        others.for_each(|it| changed.join(Self::certain(Some(it))));
        changed
    }
}

/// The standard output of a statement.
#[derive(Debug, Clone, Default)]
pub(super) struct ShellOutput {
    /// The text. `None` if it is unknown.
    pub(super) text: Option<String>,
    /// Indexes of the programs that write it.
    pub(super) from: Vec<usize>,
    /// The files that the output names: first an unknown path below their common directory, then
    /// the names that were searched for.
    pub(super) files: Vec<ShellText>,
}

impl ShellOutput {
    /// Returns the output of a statement that prints nothing.
    pub(super) fn empty() -> Self {
        Self { text: Some(String::new()), ..Self::default() }
    }

    /// Converts the output to the standard input of the next program of a pipeline.
    pub(super) fn piped(self) -> StandardInput {
        let Self { text, from, files } = self;
        StandardInput { piped: true, text, from, files, ..StandardInput::default() }
    }

    /// Converts the output to the value of a command substitution. `written` is the source of the
    /// substitution; newlines at the end are removed.
    pub(super) fn substituted(self, written: &str) -> ShellText {
        match self.text {
            Some(text) => {
                ShellText { from: self.from, ..ShellText::known(text.trim_end_matches('\n')) }
            }
            // The names of the files are unknown, but their directory is known.
            None => {
                let below = self.files.first().map(ShellText::known_part).unwrap_or_default();
                let mut text = ShellText::known(below);
                text.append(&ShellText { from: self.from, ..ShellText::unknown(written) });
                text
            }
        }
    }

    /// Appends the output of the next statement.
    pub(super) fn then(self, next: Self) -> Self {
        let text = self.text.zip(next.text).map(|(mut one, other)| {
            one.push_str(&other);
            one
        });
        let mut from = self.from;
        from.extend(next.from);
        let files = if self.files.is_empty() { next.files } else { self.files };
        Self { text, from, files }
    }
}

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

/// Returns the length of the variable name that a text begins with. 0 if it begins with no name.
pub(super) fn name_end(text: &str) -> usize {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match text.chars().next() {
        Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => 1,
        _ => text.find(|c| !is_name(c)).unwrap_or(text.len()),
    }
}

/// Returns the byte offset of the first unescaped variable in a text.
pub(super) fn variable_in(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let name = text.get(at + 1..).filter(|_| c == '$' && !is_escaped);
        is_escaped = c == '\\' && !is_escaped;
        name.filter(|it| name_end(it) > 0).map(|_| at)
    })
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

/// A function or an alias that the line defines.
#[derive(Debug, Clone, Default)]
pub(super) struct ShellFunction {
    pub(super) body: Rc<str>,
    /// Whether each call starts background jobs and does not wait for them: `sleep 9 & f`.
    leaves_jobs: bool,
    /// The function that had this name before. An alias applies only to the lines after its own, so
    /// both are scanned.
    before: Option<Rc<Self>>,
    /// Whether the program of the same name may run instead. Shells differ: `zsh -c` expands
    /// aliases, `bash -c` does not, and a started shell only has exported functions.
    pub(super) is_doubtful: bool,
}

/// The calls of functions that run now, and the functions that were never called.
#[derive(Debug, Default)]
pub(super) struct FunctionTable {
    running: Vec<RunningFunction>,
    /// Functions without a call.
    uncalled: Vec<(String, ShellFunction)>,
    /// Local variables of the running functions, with the values to restore.
    locals: Vec<(String, Option<Vec<ShellText>>)>,
    /// Control flow around the current statement.
    around: ControlFlowDepth,
}

/// A call of a function that runs now.
#[derive(Debug)]
struct RunningFunction {
    name: String,
    /// Number of arguments of the call.
    given: usize,
    /// Control flow around the call.
    around: ControlFlowDepth,
    /// Whether the function may return before the current statement.
    may_end: bool,
}

/// The number of control structures around a statement, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ControlFlowDepth {
    /// Structures that may skip the statement: branches, and loops that end.
    conditions: usize,
    /// Structures that always skip the statement: `if false`.
    bars: usize,
    /// Structures that run the statement in another process: pipelines, subshells, jobs.
    processes: usize,
}

impl FunctionTable {
    /// Counts the control structure of a statement while a function runs. Returns the value for
    /// [`leave`](Self::leave).
    pub(super) fn enter(&mut self, node: Node<'_>, source: &str) -> ControlFlowDepth {
        let before = self.around;
        if !self.running.is_empty() {
            let chance = endless::chance(node, source);
            self.around.conditions += usize::from(chance == Likelihood::Maybe);
            self.around.bars += usize::from(chance == Likelihood::Never);
            self.around.processes += usize::from(endless::starts_process(node));
        }
        before
    }

    /// Restores the control flow that [`enter`](Self::enter) returned.
    pub(super) const fn leave(&mut self, before: ControlFlowDepth) {
        self.around = before;
    }

    /// Counts a process around the following text if `is_one`. Returns the value for
    /// [`leave`](Self::leave).
    pub(super) fn enter_process_if(&mut self, is_one: bool) -> ControlFlowDepth {
        let before = self.around;
        self.around.processes += usize::from(is_one);
        before
    }

    /// Records that the running function may return here: `[ "$1" = 0 ] && return`.
    pub(super) fn may_end(&mut self) {
        self.end(1);
    }

    /// Records that all running functions may end here: `exit`.
    pub(super) fn may_all_end(&mut self) {
        self.end(self.running.len());
    }

    /// Records that the last `count` functions may end. A statement in a subshell ends only the
    /// subshell.
    fn end(&mut self, count: usize) {
        let processes = self.around.processes;
        if self.around.bars > 0 {
            return;
        }
        for function in self.running.iter_mut().rev().take(count) {
            function.may_end |= function.around.processes == processes;
        }
    }

    /// Returns how many calls of a function run within each other.
    fn depth(&self, name: &str) -> usize {
        self.running.iter().filter(|it| it.name == name).count()
    }

    /// Returns whether a recursive function reaches this call every time, and starts a process on
    /// the way.
    fn goes_on(&self, name: &str, leaves_jobs: bool) -> bool {
        let last = self.running.iter().rposition(|it| it.name == name);
        let within = last.and_then(|at| self.running.get(at..)).unwrap_or_default();
        within.first().is_some_and(|it| {
            it.around.conditions == self.around.conditions
                && self.around.bars == 0
                && (leaves_jobs || it.around.processes < self.around.processes)
                && within.iter().all(|it| !it.may_end)
        })
    }
}

impl ShellState {
    /// Defines an alias. A function of the same name is kept and scanned, too.
    pub(super) fn alias(&mut self, name: &str, body: &str) {
        let body = Rc::from(format!("{body} \"$@\""));
        let before = self.functions.remove(name).map(|it| ShellFunction { before: None, ..it });
        let before = before.map(Rc::new);
        let alias = ShellFunction { body, before, is_doubtful: true, ..ShellFunction::default() };
        self.functions.insert(name.to_owned(), alias);
    }
}

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
