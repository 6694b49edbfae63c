//! The state of the simulated shell: variables, parameters, functions, aliases and the working directory.
//!
//! Contains: [`Scope`] and [`Output`], assignments and declarations, parameter expansion (`${NAME:-word}`), and
//! calls of functions that the line defines.
//! Does not contain: builtins that change the state (`programs`), branches and loops (`statements`).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tree_sitter::Node;

use super::super::shell::{ShellWord, child_of_kind, node_text};
use super::Input;
use super::endless::{self, Chance};
use super::statements::Scanner;
use super::words::{
    Kind, Text, Unit, behind_value, between, braces, escaped_blanks, parts, plain, put, put_all,
    split, touching, whole,
};

/// Variables that every process is handed.
const OF_SURROUNDINGS: [&str; 9] =
    ["HOME", "PATH", "PWD", "SHELL", "USER", "TMPDIR", "TMP", "TEMP", "LANG"];

/// What a shell knows at one place.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    /// Values of variables; several for a list, none for one that was taken away.
    pub(super) variables: BTreeMap<String, Vec<Text>>,
    /// Names of those that the line hands to the programs it starts.
    pub(super) exported: BTreeSet<String>,
    /// Its folder, where that is known.
    pub(super) folder: Option<String>,
    /// Functions and aliases.
    pub(super) functions: BTreeMap<String, Function>,
    /// What a function was given; nothing, where that is not known.
    pub(super) parameters: Option<Vec<Text>>,
    /// What was written into files, by where they lie.
    pub(super) files: BTreeMap<String, Input>,
    /// Where symbolic links lead that were made.
    pub(super) links: BTreeMap<String, String>,
}

impl Scope {
    /// What another shell knows that is started: of the variables those that it is handed; the others are what
    /// they were in the surroundings. Which functions it knows is its own affair.
    pub(super) fn of_a_process(&self) -> Self {
        let mut inner = self.clone();
        let is_handed =
            |name: &str| self.exported.contains(name) || OF_SURROUNDINGS.contains(&name);
        inner.variables.retain(|name, _| is_handed(name));
        inner.functions.values_mut().for_each(|it| it.is_doubtful = true);
        inner.parameters = Some(Vec::new());
        inner
    }

    /// Notes that a variable is set to what cannot be known.
    pub(super) fn forget(&mut self, name: &str) {
        self.variables.insert(name.to_owned(), vec![Text::unknown(format!("${name}"))]);
    }

    /// Notes that a text was run which is not known here: it was run to set something, as likely as not what
    /// was empty before.
    pub(super) fn forget_empty(&mut self) {
        for (name, values) in &mut self.variables {
            if values.iter().all(|it| it.all() == Some("")) {
                *values = vec![Text::unknown(format!("${name}"))];
            }
        }
    }

    /// Exchanges variables for what they were before; those that were not known are known to nobody.
    pub(super) fn swap(&mut self, variables: &mut Vec<(String, Vec<Text>)>) {
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

/// What a statement would write to its standard output.
#[derive(Debug, Clone, Default)]
pub(super) struct Output {
    /// The text, where it is known.
    pub(super) text: Option<String>,
    /// Programs that write it.
    pub(super) from: Vec<usize>,
    /// The files that it names: something below the folder that all lie in, then what was looked for there.
    pub(super) files: Vec<Text>,
}

impl Output {
    /// Nothing at all.
    pub(super) fn empty() -> Self {
        Self { text: Some(String::new()), ..Self::default() }
    }

    /// As the input of what comes next.
    pub(super) fn piped(self) -> Input {
        let Self { text, from, files } = self;
        Input { piped: true, text, from, files, ..Input::default() }
    }

    /// As what `$(…)` comes to that is written like this: blank lines at its end taken off.
    pub(super) fn substituted(self, written: &str) -> Text {
        match self.text {
            Some(text) => Text { from: self.from, ..Text::known(text.trim_end_matches('\n')) },
            // Which of the files it is nobody knows; that it lies below a folder is.
            None => {
                let below = self.files.first().map(Text::known_part).unwrap_or_default();
                let mut text = Text::known(below);
                text.append(&Text { from: self.from, ..Text::unknown(written) });
                text
            }
        }
    }

    /// This and then that.
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
        let name = name.map(|it| node_text(it, source)).unwrap_or_default();
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
        let keyword = node.child(0).map(|it| node_text(it, source)).unwrap_or_default().to_owned();
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        let is_local = matches!(keyword.as_str(), "declare" | "typeset" | "local");
        // What is behind `declare -n` names another variable: what either holds cannot be known from here on.
        let refers = is_local
            && children.iter().any(|it| {
                let text = node_text(*it, source);
                text.starts_with('-') && text.contains('n')
            });
        let exports = keyword == "export"
            || children.iter().any(|it| {
                let text = node_text(*it, source);
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
                        let unknown = vec![Text::unknown(node_text(child, source))];
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
                    let name = node_text(child, source).to_owned();
                    self.made_local(&name, scope);
                    set.push((name, vec![Text::known("")]));
                }
                "variable_name" if exports => {
                    let name = node_text(child, source).to_owned();
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
        let is_said = |option: &str| words.iter().any(|it| node_text(*it, source) == option);
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

impl Scanner<'_> {
    /// The value of the variable whose name a text begins with; what follows the name.
    pub(super) fn named<'t>(
        &mut self,
        text: &'t str,
        scope: &Scope,
        kind: Kind,
        out: &mut Vec<Unit>,
    ) -> &'t str {
        let (name, rest) = text.split_at_checked(name_end(text)).unwrap_or((text, ""));
        let written = format!("${name}");
        // Braces are put out first: `$A{b,c}` are the variables `Ab` and `Ac`. So is the end of a line.
        let goes_on = kind == Kind::Plain && (rest.starts_with('{') || rest.starts_with("\\\n"));
        // What is written behind the name where it cannot be known may be more of it.
        if goes_on || self.as_written && rest.starts_with(['$', '`']) {
            out.push(Unit::Unknown(Text::unknown(written)));
            return rest;
        }
        let values = self.values(name, &written, scope);
        let is_joined = kind == Kind::Quoted && name == "*";
        put_all(if is_joined { vec![joined(&values)] } else { values }, kind, out);
        rest
    }

    /// `$NAME`
    pub(super) fn variable(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        kind: Kind,
        out: &mut Vec<Unit>,
    ) {
        let from = node.end_byte() - node_text(node, source).len() + 1;
        let name = source.get(from..node.end_byte()).unwrap_or_default();
        let from = from + name.len() - name.trim_start_matches("\\\n").len();
        let name = name.trim_start_matches("\\\n");
        // Behind a lone `$` the grammar takes a blank for the name, or what follows it.
        if name_end(name) == 0 {
            out.push(Unit::Char('$', kind));
            return between(name, kind, out);
        }
        // What follows the node tells, too, whether the name ends here.
        let after = source.get(from..).unwrap_or_default();
        let rest = self.named(after, scope, kind, out);
        // `$12` is `$1` and a digit, which the grammar takes for more of the name.
        let own = name.len().saturating_sub(after.len() - rest.len());
        out.extend(rest.chars().take(own).map(|c| Unit::Char(c, kind)));
    }

    /// `${NAME…}`
    pub(super) fn expansion(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        kind: Kind,
        out: &mut Vec<Unit>,
    ) {
        let raw = node_text(node, source);
        self.in_backticks(raw, scope);
        let inside = raw.strip_prefix("${").and_then(|it| it.strip_suffix('}')).unwrap_or_default();
        if let Some(name) = inside.strip_prefix('!') {
            // The value of the variable that another one names.
            let named = self.values(name, raw, scope);
            let named = named.first().and_then(Text::all).map(str::to_owned);
            let found = named.map(|it| self.values(&it, raw, scope));
            let found = found.unwrap_or_else(|| vec![Text::unknown(raw)]);
            found.into_iter().for_each(|it| put(it, kind, out));
            return;
        }
        let Parameter { name, is_joined, rest } = Parameter::read(inside);
        let set = self.lookup(name, scope);
        // Behind a colon an empty value counts as none.
        let colon = rest.starts_with(':');
        let has_value = set.as_ref().is_some_and(|it| !(it.is_empty() || colon && all_empty(it)));
        match rest.strip_prefix(':').unwrap_or(rest).chars().next().unwrap_or(' ') {
            operator @ ('-' | '=' | '?') if !has_value => {
                let from = out.len();
                if !self.behind_operator(node, source, scope, kind, out) && operator == '?' {
                    out.push(Unit::Unknown(Text::unknown(raw)));
                }
                if operator == '=' {
                    let value = whole(out.get(from..).unwrap_or_default());
                    scope.variables.insert(name.to_owned(), vec![value]);
                }
            }
            '+' if has_value => {
                self.behind_operator(node, source, scope, kind, out);
            }
            '+' => {
                // Where nothing is known of it, the environment may have it.
                self.inner_commands(node, source, scope);
            }
            '-' | '=' | '?' | ' ' if !rest.starts_with(": ") => {
                let values = self.values(name, raw, scope);
                let is_joined = is_joined && kind == Kind::Quoted;
                put_all(if is_joined { vec![joined(&values)] } else { values }, kind, out);
            }
            _ => {
                self.inner_commands(node, source, scope);
                let value = set.filter(|it| it.len() == 1).and_then(|it| it.into_iter().next());
                let changed = value.and_then(|it| changed(it.all()?, rest));
                let made = changed.map_or_else(|| Text::unknown(raw), Text::known);
                put(made, kind, out);
            }
        }
    }

    /// What stands behind the operator of `${NAME:-…}`; whether there is anything.
    fn behind_operator(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        kind: Kind,
        out: &mut Vec<Unit>,
    ) -> bool {
        let behind: Vec<Node<'_>> = node
            .children(&mut node.walk())
            .skip_while(|it| !it.kind().starts_with([':', '-', '=', '+', '?']))
            .skip(1)
            .filter(|it| it.kind() != "}")
            .collect();
        let from = out.len();
        for child in &behind {
            self.units(*child, source, scope, kind, out);
        }
        // Its blanks part words, as those of a value do.
        for unit in out.iter_mut().skip(from) {
            if let Unit::Char(_, kind @ Kind::Plain) = unit {
                *kind = Kind::Value;
            }
        }
        !behind.is_empty()
    }
}

/// The parts of `${…}`.
struct Parameter<'t> {
    name: &'t str,
    /// Whether a list is one word in quotes: `*`, `NAME[*]`.
    is_joined: bool,
    /// The operator and what follows it.
    rest: &'t str,
}

impl<'t> Parameter<'t> {
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

/// Where the name of a variable ends that a text begins with.
pub(super) fn name_end(text: &str) -> usize {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match text.chars().next() {
        Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => 1,
        _ => text.find(|c| !is_name(c)).unwrap_or(text.len()),
    }
}

/// Where a variable stands in a text of the shell.
pub(super) fn variable_in(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let name = text.get(at + 1..).filter(|_| c == '$' && !is_escaped);
        is_escaped = c == '\\' && !is_escaped;
        name.filter(|it| name_end(it) > 0).map(|_| at)
    })
}

/// The items of a list as one word: `"$*"`.
fn joined(items: &[Text]) -> Text {
    <Text as ShellWord>::joined(items)
}

fn all_empty(values: &[Text]) -> bool {
    values.iter().all(|it| it.text.is_empty())
}

/// What `%`, `#`, `/`, `:`, `^` and `,` make of a value; nothing where that is not worked out.
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
        // Counted from the end, and beyond it there is nothing.
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

/// Calls of a function within itself that are followed.
const RECURSIONS_MAX: usize = 4;

/// A function, or an alias.
#[derive(Debug, Clone, Default)]
pub(super) struct Function {
    pub(super) body: Rc<str>,
    /// Whether it leaves jobs to themselves each time that it runs: `sleep 9 & f`.
    leaves_jobs: bool,
    /// What its name stood for before: an alias holds for the lines behind its own, and is not put in everywhere.
    before: Option<Rc<Self>>,
    /// Whether what has its name may be started in its place. An alias some shells put in where they run a text
    /// (`zsh -c`), others do not (`bash -c`); what a function is to a shell that is started depends on that
    /// shell, and on what was exported.
    pub(super) is_doubtful: bool,
}

/// The functions that run now, and those that nobody called.
#[derive(Debug, Default)]
pub(super) struct Functions {
    running: Vec<Running>,
    /// Functions that nobody called yet.
    uncalled: Vec<(String, Function)>,
    /// Variables that those which run have for themselves, with what they were before.
    locals: Vec<(String, Option<Vec<Text>>)>,
    /// What stands around the statement that is read now.
    around: Around,
}

/// A function that runs.
#[derive(Debug)]
struct Running {
    name: String,
    /// How many words it was given.
    given: usize,
    /// What stood around its call.
    around: Around,
    /// Whether it may come to its end before the statement that is read now.
    may_end: bool,
}

/// How many forms stand around a statement, by what they do with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Around {
    /// Those that may leave it out: branches, and loops over something that ends.
    conditions: usize,
    /// Those that leave it out: `if false`.
    bars: usize,
    /// Those that start a process for it: pipelines, subshells, jobs.
    processes: usize,
}

impl Functions {
    /// Counts the form that a statement is, where a function runs; what was counted before is put back with
    /// `leave`.
    pub(super) fn enter(&mut self, node: Node<'_>, source: &str) -> Around {
        let before = self.around;
        if !self.running.is_empty() {
            let chance = endless::chance(node, source);
            self.around.conditions += usize::from(chance == Chance::Maybe);
            self.around.bars += usize::from(chance == Chance::Never);
            self.around.processes += usize::from(endless::starts_process(node));
        }
        before
    }

    /// Puts back what stood around a statement.
    pub(super) const fn leave(&mut self, before: Around) {
        self.around = before;
    }

    /// Counts that what is read now runs in a process of its own, if it does; what was counted before is put back
    /// with `leave`.
    pub(super) fn enter_process_if(&mut self, is_one: bool) -> Around {
        let before = self.around;
        self.around.processes += usize::from(is_one);
        before
    }

    /// Notes that the function which runs may come to its end here: `[ "$1" = 0 ] && return`.
    pub(super) fn may_end(&mut self) {
        self.end(1);
    }

    /// Notes that all that run may come to their end here.
    pub(super) fn may_all_end(&mut self) {
        self.end(self.running.len());
    }

    /// Notes that as many of the last functions may come to their end; what runs in a process of its own ends
    /// that one alone.
    fn end(&mut self, count: usize) {
        let processes = self.around.processes;
        if self.around.bars > 0 {
            return;
        }
        for function in self.running.iter_mut().rev().take(count) {
            function.may_end |= function.around.processes == processes;
        }
    }

    /// Calls of a function that run within each other.
    fn depth(&self, name: &str) -> usize {
        self.running.iter().filter(|it| it.name == name).count()
    }

    /// Whether a function that was called within itself again and again comes here each time, and starts a process
    /// on its way.
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

impl Scope {
    /// Notes an alias. What had its name before is looked at, too.
    pub(super) fn alias(&mut self, name: &str, body: &str) {
        let body = Rc::from(format!("{body} \"$@\""));
        let before = self.functions.remove(name).map(|it| Function { before: None, ..it });
        let before = before.map(Rc::new);
        let alias = Function { body, before, is_doubtful: true, ..Function::default() };
        self.functions.insert(name.to_owned(), alias);
    }
}

impl Scanner<'_> {
    /// Notes a function that the line defines.
    pub(super) fn define(
        &mut self,
        name: String,
        (body, leaves_jobs): (&str, bool),
        scope: &mut Scope,
    ) {
        let function = Function { body: Rc::from(body), leaves_jobs, ..Function::default() };
        scope.functions.insert(name.clone(), function.clone());
        if self.functions.running.is_empty() {
            self.functions.uncalled.push((name, function));
        }
    }

    /// Calls a function that the line defined, by the shell itself or by a program that it starts; nothing where
    /// there is none of that name, or where what has its name may be started in its place.
    pub(super) fn called(
        &mut self,
        words: &[Text],
        is_own: bool,
        scope: &mut Scope,
        input: &Input,
    ) -> Option<Output> {
        let (name, args) = words.split_first()?;
        let name = name.all()?;
        let function = scope.functions.get(name)?.clone();
        let is_doubtful = function.is_doubtful || !is_own;
        let calls = self.functions.depth(name);
        if is_doubtful && calls > 0 && !(is_own && scope.exported.contains(name)) {
            return None; // Its own name stands for the program within it.
        }
        // What is called with other words each time may come to its end.
        self.call.endless |=
            calls >= RECURSIONS_MAX && self.functions.goes_on(name, function.leaves_jobs);
        // Words that become fewer come to an end: `shift; f "$@"`.
        let last = self.functions.running.iter().rfind(|it| it.name == name);
        if calls >= RECURSIONS_MAX && last.is_some_and(|it| args.len() >= it.given) {
            return Some(Output::default());
        }
        self.functions.uncalled.retain(|(it, _)| it != name);
        let own_words = scope.parameters.replace(args.to_vec());
        let own = self.functions.locals.len();
        let around = self.functions.around;
        let (name, given) = (name.to_owned(), args.len());
        self.functions.running.push(Running { name, given, around, may_end: false });
        let mut output = self.body(&function.body, scope, input);
        if let Some(before) = &function.before {
            scope.parameters = Some(args.to_vec());
            output = self.body(&before.body, scope, input);
        }
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

    /// Notes what a variable is before a function has one of that name for itself.
    pub(super) fn made_local(&mut self, name: &str, scope: &Scope) {
        if !self.functions.running.is_empty() {
            self.functions.locals.push((name.to_owned(), scope.variables.get(name).cloned()));
        }
    }

    /// Reads the functions that nobody called here: they may be called elsewhere.
    pub(super) fn uncalled(&mut self, scope: &Scope) {
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
            self.body(&function.body, &mut scope.clone(), &Input::default());
        }
    }
}
