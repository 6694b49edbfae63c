//! The walk over the syntax tree of a command line.
//!
//! Contains: [`Scanner`], the statements of the shell grammar (lists, pipelines, branches, loops, simple
//! commands), redirections, and the values that a variable can have after a branch.
//! Does not contain: what a simple command starts (`wrappers`, `programs`), the values of words (`words`).

use std::borrow::Cow;
use std::collections::BTreeMap;

use tree_sitter::{Node, Tree};

use super::super::shell::{child_of_kind, is_assignment, node_text, syntax};
use super::heredoc::Heredocs;
use super::paths::{Place, followed};
use super::scope::{Functions, Output, Scope};
use super::words::{Text, Word, Words, behind_value, escaped_blanks, touching, whole};
use super::wrappers::Simple;
use super::{Call, Input, Invocation, Reading, endless};
use crate::limits::{
    CALL_PROGRAMS_MAX, CALL_STEP_BYTES, CALL_STEPS_MAX, SHELL_DEPTH_MAX, SHELL_NESTING_MAX,
    SHELL_TEXT_MAX,
};

/// Reads a command line into a call.
pub(super) fn scan(call: &mut Call, text: &str, reading: Reading<'_>) {
    let folder = reading.around.folder.clone();
    let mut scope = Scope { folder: Some(folder).filter(|it| !it.is_empty()), ..Scope::default() };
    let mut scanner = Scanner {
        call,
        reading,
        text_depth: 0,
        starters: Vec::new(),
        nesting: 0,
        functions: Functions::default(),
        steps: 0,
        loop_end: 0,
        at_the_end: Vec::new(),
        heredocs: Heredocs::default(),
        as_written: false,
    };
    scanner.text(text, &mut scope, &Input::default());
    for text in std::mem::take(&mut scanner.at_the_end) {
        scanner.text(&text, &mut scope.clone(), &Input::default());
    }
    scanner.uncalled(&scope);
}

/// The walk.
pub(super) struct Scanner<'a> {
    pub(super) call: &'a mut Call,
    pub(super) reading: Reading<'a>,
    text_depth: usize,
    /// Programs that start the text that is read now: `su` of `su -c 'npm test'`.
    pub(super) starters: Vec<String>,
    pub(super) nesting: usize,
    pub(super) functions: Functions,
    /// Statements looked at so far.
    steps: usize,
    /// Where the loop without end ends that was looked at last, in the text that is read now.
    pub(super) loop_end: usize,
    /// Texts that run when the line is done: `trap … EXIT`.
    pub(super) at_the_end: Vec<String>,
    /// Bodies of here-documents that are not parsed with the line.
    pub(super) heredocs: Heredocs,
    /// Whether the text that is read now was put together of parts that cannot be known, and stand in it as they
    /// were written.
    pub(super) as_written: bool,
}

impl Scanner<'_> {
    /// Shell text that a shell reads within another.
    pub(super) fn text(&mut self, source: &str, scope: &mut Scope, input: &Input) -> Output {
        if self.text_depth >= SHELL_DEPTH_MAX {
            self.over("it is nested too deeply or too long");
            return Output::default();
        }
        self.text_depth += 1;
        let output = self.body(source, scope, input);
        self.text_depth -= 1;
        output
    }

    /// Shell text that belongs to the shell which reads it: the body of a function.
    pub(super) fn body(&mut self, source: &str, scope: &mut Scope, input: &Input) -> Output {
        let shortened = self.shortened(source);
        let (source, tree) = match &shortened {
            Some((text, tree)) => (text.as_str(), Some(Cow::Borrowed(tree))),
            None => (source, None),
        };
        if source.len() > SHELL_TEXT_MAX {
            self.over("it is nested too deeply or too long");
            return Output::default();
        }
        if !self.may_go_on(source.len()) {
            return Output::default();
        }
        let Some(tree) = tree.or_else(|| syntax(source).map(Cow::Owned)) else {
            self.over("it takes too long to read");
            return Output::default();
        };
        if tree.root_node().has_error() {
            self.unread("its form is not that of a shell command");
        }
        let loop_end = std::mem::take(&mut self.loop_end);
        let output = self.sequence(tree.root_node(), source, scope, input);
        self.loop_end = loop_end;
        output
    }

    /// A long text without its here-documents, with its tree; nothing, where it is read as it is.
    fn shortened(&mut self, source: &str) -> Option<(String, Tree)> {
        let short = self.heredocs.take_out(source)?;
        let tree = Some(&short.text).filter(|it| it.len() <= SHELL_TEXT_MAX);
        let tree = tree.and_then(|it| syntax(it)).filter(|it| short.is_borne_out(it))?;
        Some((short.text, tree))
    }

    /// Notes that something could not be understood.
    pub(super) fn unread(&mut self, why: &str) {
        self.call.not_read(why);
    }

    /// Notes that a part is not looked at, since it goes over a bound.
    pub(super) fn over(&mut self, why: &str) {
        self.call.over(why);
    }

    /// Counts one more statement, or text, of that many bytes; whether it may still be looked at. Once
    /// it may not, the whole walk comes to its end.
    pub(super) fn may_go_on(&mut self, bytes: usize) -> bool {
        self.steps = self.steps.saturating_add(1 + bytes / CALL_STEP_BYTES);
        if self.is_spent() {
            self.over("it does very much, its loops counted");
        } else if (self.reading.patience.0)() {
            self.over("it takes too long to analyze");
            self.steps = CALL_STEPS_MAX;
        }
        !self.is_spent()
    }

    /// Whether nothing more is looked at.
    pub(super) const fn is_spent(&self) -> bool {
        self.steps >= CALL_STEPS_MAX
    }

    /// Adds a program; its place among them.
    pub(super) fn push(&mut self, program: Invocation) -> Option<usize> {
        // A loop starts the same again: what is said of one is said of all.
        if let Some(at) = self.call.programs.iter().position(|it| *it == program) {
            return Some(at);
        }
        let at = self.call.programs.len();
        if at >= CALL_PROGRAMS_MAX {
            self.over("it starts very many programs");
            self.steps = CALL_STEPS_MAX;
            return None;
        }
        self.call.programs.push(program);
        Some(at)
    }

    /// What `$(…)` comes to, blank lines at its end taken off.
    pub(super) fn substitution(&mut self, node: Node<'_>, source: &str, scope: &Scope) -> Text {
        let mut inner = scope.clone();
        let around = self.functions.enter(node, source);
        let output = self.sequence(node, source, &mut inner, &Input::default());
        self.functions.leave(around);
        output.substituted(node_text(node, source))
    }

    /// The values of a variable, as far as they are known.
    pub(super) fn values(&mut self, name: &str, written: &str, scope: &Scope) -> Vec<Text> {
        let found = self.lookup(name, scope).filter(|found| {
            // A value may be made of itself again and again.
            found.iter().all(|it| self.may_go_on(it.text.len()))
        });
        found.unwrap_or_else(|| vec![Text::unknown(written)])
    }

    /// The values of a variable, if they are known.
    pub(super) fn lookup(&self, name: &str, scope: &Scope) -> Option<Vec<Text>> {
        let home = &self.reading.around.home;
        let found = self.found(name, scope)?;
        Some(found.into_iter().map(|it| it.with_home(home)).collect())
    }

    fn found(&self, name: &str, scope: &Scope) -> Option<Vec<Text>> {
        if let Some(values) = scope.variables.get(name) {
            return Some(values.clone());
        }
        let around = self.reading.around;
        let given = |it: &str| Some(vec![Text::known(it)]);
        match name {
            "HOME" if !around.home.is_empty() => given(&around.home),
            // Whatever it is, it reads what a shell does.
            "SHELL" | "BASH" => given("bash"),
            "PWD" => given(scope.folder.as_deref()?),
            "TMPDIR" | "TMP" | "TEMP" => {
                let own = around.temporary.get(super::Surroundings::TEMPORARY.len());
                given(own.or(around.temporary.first())?)
            }
            "IFS" => given(" \t\n"),
            // What stands in the text as it was written may have been another's.
            name if self.as_written
                && !name.starts_with(|c: char| c.is_alphabetic() || c == '_') =>
            {
                None
            }
            "@" | "*" => scope.parameters.clone(),
            "#" => given(&scope.parameters.as_ref()?.len().to_string()),
            _ => {
                // `$0` is known where a text was given its name; then it is a variable.
                let at = name.parse::<usize>().ok()?.checked_sub(1)?;
                let found = scope.parameters.as_ref()?.get(at);
                Some(found.cloned().into_iter().collect())
            }
        }
    }

    /// The place of a path, seen from where the shell stands.
    pub(super) fn place(&self, path: &Text, scope: &Scope) -> Place {
        let place = self.reading.around.place(path, scope.folder.as_deref());
        let absolute = place.absolute.map(|it| followed(it, &scope.links));
        Place { absolute, ..place }
    }
}

/// Values of a loop's variable that are followed.
const LOOP_VALUES_MAX: usize = 8;

impl Scanner<'_> {
    /// Statements one after the other.
    pub(super) fn sequence(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        input: &Input,
    ) -> Output {
        let mut output = Output::empty();
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        for child in children.into_iter().filter(|it| it.kind() != "comment") {
            if self.is_spent() {
                break;
            }
            output = output.then(self.statement(child, source, scope, input));
        }
        output
    }

    /// One statement.
    pub(super) fn statement(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        input: &Input,
    ) -> Output {
        if self.nesting >= SHELL_NESTING_MAX {
            self.over("it is nested too deeply or too long");
            return Output::default();
        }
        let bytes = match node.kind() {
            "command" | "redirected_statement" | "test_command" => node.byte_range().len(),
            "variable_assignment" | "declaration_command" => node.byte_range().len(),
            _ => 0,
        };
        if !self.may_go_on(bytes) {
            return Output::default();
        }
        self.nesting += 1;
        let around = self.functions.enter(node, source);
        self.look_at_loop(node, source);
        let output = match node.kind() {
            "command" => self.command(node, source, scope, input, Redirects::default()),
            "variable_assignment" | "variable_assignments" => {
                self.assignments(node, source, scope);
                Output::empty()
            }
            "declaration_command" => self.declaration(node, source, scope),
            "unset_command" => self.unset(node, source, scope),
            "redirected_statement" => self.redirected(node, source, scope, input),
            "pipeline" => self.pipeline(node, source, scope, input),
            "command_substitution" if node_text(node, source).starts_with('`') => {
                self.in_backticks(node_text(node, source), scope);
                Output::empty()
            }
            "subshell" | "command_substitution" | "process_substitution" => {
                let mut inner = scope.clone();
                let output = self.sequence(node, source, &mut inner, input);
                scope.files = inner.files;
                output
            }
            "file_redirect" => self.content(node, source, scope),
            "if_statement" | "case_statement" => self.clauses(node, source, scope, input),
            "list" => self.list(node, source, scope, input),
            "while_statement" => self.while_loop(node, source, scope, input),
            "for_statement" => self.for_loop(node, source, scope, input),
            "function_definition" => self.definition(node, source, scope),
            "test_command" => {
                self.inner_commands(node, source, scope);
                Output::empty()
            }
            // Words out of braces at the place of a program: the grammar takes them for a block.
            "ERROR" if words_in_braces(node_text(node, source)).is_some() => {
                let words = words_in_braces(node_text(node, source)).unwrap_or_default();
                self.text(&format!("command {words}"), scope, input)
            }
            // Whatever a branch or a loop does may happen.
            _ => self.sequence(node, source, scope, input),
        };
        self.functions.leave(around);
        self.nesting -= 1;
        output
    }

    /// Notes a loop that starts jobs without end; what is within one was looked at with it.
    fn look_at_loop(&mut self, node: Node<'_>, source: &str) {
        if self.loop_end <= node.start_byte() && endless::goes_on(node, source) {
            self.call.endless |= endless::leaves_jobs(node, source, "");
            self.loop_end = node.end_byte();
        }
    }

    fn pipeline(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        input: &Input,
    ) -> Output {
        let mut cursor = node.walk();
        let members: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        self.piped(&members, source, scope, input.clone())
    }

    fn piped(
        &mut self,
        members: &[Node<'_>],
        source: &str,
        scope: &mut Scope,
        mut input: Input,
    ) -> Output {
        let mut output = Output::empty();
        for member in members.iter().filter(|it| it.kind() != "comment") {
            let mut inner = scope.clone();
            output = self.statement(*member, source, &mut inner, &input);
            scope.files = inner.files;
            input = output.clone().piped();
        }
        output
    }

    /// A statement with redirections, maybe with a here-document that goes into a pipe.
    fn redirected(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        input: &Input,
    ) -> Output {
        let redirects = self.redirects(node, source, scope);
        let heredoc = child_of_kind(node, "heredoc_redirect");
        let own = redirects.input.clone().unwrap_or_else(|| input.clone());
        let away = redirects.away;
        let mut output = match node.child_by_field_name("body") {
            Some(body) if body.kind() == "command" => {
                let mut redirects = redirects;
                if let Some(heredoc) = heredoc {
                    // Words that stand behind the mark of a here-document.
                    let mut cursor = heredoc.walk();
                    let after: Vec<Node<'_>> =
                        heredoc.children_by_field_name("argument", &mut cursor).collect();
                    let after = before_body(after, source);
                    let words = self.words_of(&after, source, scope).split();
                    redirects.words.splice(..0, words);
                }
                self.command(body, source, scope, &own, redirects)
            }
            // Of a pipeline it is the last program that is redirected; the files are touched
            // whatever the body is.
            Some(body) => {
                let from = self.call.programs.len();
                let output = self.statement(body, source, scope, &own);
                self.note_files(&redirects, &output, scope);
                let last = self.call.programs.get_mut(from..).and_then(<[_]>::last_mut);
                if let Some(last) = last {
                    last.writes.extend(redirects.writes.iter().cloned());
                    last.reads.extend(redirects.reads.iter().cloned());
                }
                self.bare(&redirects, scope);
                if away { Output::empty() } else { output }
            }
            None => {
                self.note_files(&redirects, &Output::empty(), scope);
                self.bare(&redirects, scope);
                let words = redirects.words;
                if words.is_empty() {
                    Output::empty()
                } else {
                    self.simple(Simple { words, ..Simple::default() }, scope, &own)
                }
            }
        };
        let Some(heredoc) = heredoc else { return output };
        if let Some(pipeline) = child_of_kind(heredoc, "pipeline") {
            let mut cursor = pipeline.walk();
            let members: Vec<Node<'_>> = pipeline.named_children(&mut cursor).collect();
            output = self.piped(&members, source, scope, output.piped());
        }
        if let Some(right) = heredoc.child_by_field_name("right") {
            output = output.then(self.statement(right, source, scope, input));
        }
        output
    }

    fn for_loop(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        input: &Input,
    ) -> Output {
        let name = node.child_by_field_name("variable").map(|it| node_text(it, source).to_owned());
        let mut cursor = node.walk();
        let values: Vec<Node<'_>> = node.children_by_field_name("value", &mut cursor).collect();
        let written = !values.is_empty();
        let mut words = self.words_of(&values, source, scope).split();
        if !written {
            let own = self.values("@", "$@", scope);
            words.extend(own);
        }
        let many = words.len() > LOOP_VALUES_MAX;
        words.truncate(LOOP_VALUES_MAX);
        if many {
            words.push(Text::unknown("one of many values"));
        }
        let Some(body) = node.child_by_field_name("body") else { return Output::default() };
        let mut output = Output::empty();
        for word in words {
            if self.is_spent() {
                break;
            }
            let kept = name.clone().map(|it| (it, vec![word]));
            scope.variables.extend(kept);
            output = output.then(self.sequence(body, source, scope, input));
        }
        output
    }

    /// `while read …`, once for each line that it is known to read; any other once.
    fn while_loop(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        input: &Input,
    ) -> Output {
        let condition = node.child_by_field_name("condition");
        let reads = condition.is_some_and(|it| node_text(it, source).contains("read"));
        let Some(text) = input.text.as_deref().filter(|_| reads) else {
            return self.sequence(node, source, scope, input);
        };
        if text.is_empty() {
            return self.sequence(node, source, scope, input);
        }
        let mut output = Output::empty();
        for line in text.split_inclusive('\n').take(LOOP_VALUES_MAX) {
            let line = Input { text: Some(line.to_owned()), ..input.clone() };
            output = output.then(self.sequence(node, source, scope, &line));
        }
        if text.lines().count() > LOOP_VALUES_MAX {
            let any = Input { text: None, ..input.clone() };
            output = output.then(self.sequence(node, source, scope, &any));
        }
        output
    }

    fn definition(&mut self, node: Node<'_>, source: &str, scope: &mut Scope) -> Output {
        let name = node.child_by_field_name("name").map(|it| node_text(it, source).to_owned());
        // Its redirections belong to its body.
        let body = node.child_by_field_name("body");
        let body = body.and_then(|it| source.get(it.start_byte()..node.end_byte()));
        if let (Some(name), Some(body)) = (name, body) {
            let leaves_jobs = endless::leaves_jobs(node, source, &name);
            self.define(name, (body, leaves_jobs), scope);
        }
        Output::empty()
    }

    /// Programs inside substitutions of a node whose value does not matter.
    pub(super) fn inner_commands(&mut self, node: Node<'_>, source: &str, scope: &mut Scope) {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        for child in children {
            match child.kind() {
                "command_substitution" if node_text(child, source).starts_with('`') => {
                    self.in_backticks(node_text(child, source), scope);
                }
                "command_substitution" | "process_substitution" => {
                    self.substitution(child, source, scope);
                }
                kind => {
                    if kind == "expansion" {
                        self.in_backticks(node_text(child, source), scope);
                    }
                    self.inner_commands(child, source, scope);
                }
            }
        }
    }

    /// A simple command.
    fn command(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        input: &Input,
        mut redirects: Redirects,
    ) -> Output {
        let own = self.redirects(node, source, scope);
        redirects.writes.extend(own.writes);
        redirects.reads.extend(own.reads);
        redirects.away |= own.away;
        redirects.input = own.input.or(redirects.input);
        redirects.words.extend(own.words);
        let (mut words, mut variables) = (Words::default(), Vec::new());
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        let (mut end, mut of_value) = (node.start_byte(), false);
        for child in children.into_iter().filter(|it| it.kind() != "comment") {
            if child.start_byte() < end {
                continue; // It belongs to an assignment or a here-string.
            }
            let gap = source.get(end..child.start_byte()).unwrap_or_default();
            words.between(if of_value { behind_value(gap).1 } else { gap });
            end = child.end_byte();
            of_value = false;
            match child.kind() {
                "variable_assignment" if words.is_empty() => {
                    variables.push(self.assignment(child, source, scope));
                    end = touching(child, source).last().map_or(end, Node::end_byte);
                    of_value = true;
                }
                "herestring_redirect" => {
                    words.end();
                    of_value = true;
                    end = touching(child, source).last().map_or(end, Node::end_byte);
                }
                "file_redirect" | "heredoc_redirect" => words.end(),
                "ERROR" => {
                    words.end();
                    // `cat <<A; next` is an error inside `cat` to the grammar: start afresh.
                    let text = node_text(child, source);
                    if text.contains([';', '&', '|', '\n']) {
                        let words = std::mem::take(&mut words).split();
                        self.simple(Simple { words, ..Simple::default() }, scope, input);
                    }
                }
                _ => self.add_piece(child, source, scope, &mut words),
            }
        }
        words.between(source.get(end..node.end_byte()).unwrap_or_default());
        words.between(escaped_blanks(source, node.end_byte().max(end)));
        let mut words = words.split();
        if names_descriptor(node, source) {
            words.pop();
        }
        // Behind `A='a'\b` the grammar takes what follows for a program and its arguments.
        while !variables.is_empty()
            && let Some((name, value)) = words.first().and_then(assigned)
        {
            variables.push((name, vec![value]));
            words.remove(0);
        }
        words.append(&mut redirects.words);
        let input = redirects.input.take().unwrap_or_else(|| input.clone());
        let simple = Simple { words, variables, redirects, wrappers: Vec::new() };
        self.simple(simple, scope, &input)
    }
}

/// The name and the value of a word that is an assignment.
fn assigned(word: &Text) -> Option<(String, Text)> {
    let (name, _) = word.known_part().split_once('=').filter(|_| is_assignment(&word.text))?;
    Some((name.trim_end_matches('+').to_owned(), word.tail(name.len() + 1)))
}

/// `{rm,-rf}` at the beginning of a piece that the grammar does not know.
fn words_in_braces(raw: &str) -> Option<&str> {
    let raw = raw.trim_start_matches(|c: char| "&|;".contains(c) || c.is_whitespace());
    let inside = raw.strip_prefix('{')?;
    let is_list = inside.contains(',') && inside.contains('}');
    (is_list && !inside.starts_with(char::is_whitespace)).then_some(raw)
}

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

/// Where the output of a command goes, and what its input is.
#[derive(Debug, Clone, Default)]
pub(super) struct Redirects {
    pub(super) writes: Vec<Text>,
    pub(super) reads: Vec<Text>,
    pub(super) input: Option<Input>,
    /// Whether its standard output goes elsewhere.
    pub(super) away: bool,
    /// Words of the command that stand behind a redirection, which the grammar takes for files of it:
    /// `rm > log -rf build`.
    pub(super) words: Vec<Text>,
}

impl Scanner<'_> {
    /// The redirections of a statement.
    pub(super) fn redirects(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
    ) -> Redirects {
        let mut found = Redirects::default();
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        for child in children {
            match child.kind() {
                "file_redirect" => self.file_redirect(child, source, scope, &mut found),
                "herestring_redirect" => {
                    found.input = Some(self.herestring(child, source, scope));
                }
                "heredoc_redirect" => {
                    found.input = Some(self.heredoc(child, source, scope));
                    let inner = self.redirects(child, source, scope);
                    found.writes.extend(inner.writes);
                    found.reads.extend(inner.reads);
                    found.away |= inner.away;
                    found.words.extend(inner.words);
                }
                _ => {}
            }
        }
        found
    }

    /// `<<<word`, with what touches the word behind it, where the grammar sees another one.
    fn herestring(&mut self, node: Node<'_>, source: &str, scope: &mut Scope) -> Input {
        let mut cursor = node.walk();
        let own = node.children(&mut cursor).skip_while(|it| it.kind() != "<<<").skip(1);
        let pieces: Vec<Node<'_>> = own.chain(touching(node, source)).collect();
        let from = pieces.first().map_or(0, Node::start_byte);
        let text = whole(&self.units_of(from, &pieces, source, scope));
        let text = text.with_home(&self.reading.around.home);
        let known = text.all().map(str::to_owned);
        Input { piped: true, text: known, from: text.from, ..Input::default() }
    }

    fn heredoc(&mut self, node: Node<'_>, source: &str, scope: &mut Scope) -> Input {
        let Some(body) = child_of_kind(node, "heredoc_body") else { return Input::default() };
        let start = child_of_kind(node, "heredoc_start").map(|it| node_text(it, source));
        let is_quoted = start.is_some_and(|it| it.contains(['\'', '"', '\\']));
        let lost = first_line_lost(node, source).map(|from| {
            let end =
                child_of_kind(node, "heredoc_end").map_or(body.end_byte(), |it| it.start_byte());
            source.get(from..end).unwrap_or_default()
        });
        if is_quoted {
            let text = self.heredocs.put_back(lost.unwrap_or_else(|| node_text(body, source)));
            return Input { piped: true, text: Some(text), ..Input::default() };
        }
        let units = match lost {
            None if body.named_child_count() > 0 => {
                self.units_of(body.start_byte(), &[body], source, scope)
            }
            lost => {
                self.inner_commands(node, source, scope);
                let raw = self.heredocs.put_back(lost.unwrap_or_else(|| node_text(body, source)));
                let mut units = Vec::new();
                self.heredoc_text(&raw, scope, &mut units);
                units
            }
        };
        let text = whole(&units);
        // A part that cannot be known stays as it was written: the shell that reads it may know.
        let as_written = !text.is_known();
        let (text, from) = (Some(text.text), text.from);
        Input { piped: true, text, as_written, from, ..Input::default() }
    }

    fn file_redirect(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Scope,
        found: &mut Redirects,
    ) {
        let mut cursor = node.walk();
        let destinations: Vec<Node<'_>> =
            node.children_by_field_name("destination", &mut cursor).collect();
        let destinations = before_body(destinations, source);
        let mut words = self.words_of(&destinations, source, scope).unsplit();
        if names_descriptor(node, source) {
            words.pop();
        }
        let mut words = words.into_iter();
        // What stands for names stands for one.
        let Some(file) = words.next().map(Word::whole) else { return };
        words.for_each(|it| it.split(&mut found.words));
        let mut cursor = node.walk();
        let operator = node.children(&mut cursor).find(|it| !it.is_named());
        let operator = operator.map(|it| it.kind().to_owned()).unwrap_or_default();
        let descriptor = child_of_kind(node, "file_descriptor").map(|it| node_text(it, source));
        let is_descriptor = file.text == "-" || file.text.bytes().all(|b| b.is_ascii_digit());
        match operator.as_str() {
            "<" => {
                found.input = Some(Input {
                    piped: file.pipe,
                    text: file.piped.clone(),
                    from: file.from.clone(),
                    is_file: !file.pipe,
                    ..Input::default()
                });
                if let Some(written) = self.written_into(&file, scope) {
                    found.input = Some(Input { is_file: true, ..written });
                }
                if !file.pipe {
                    found.reads.push(file);
                }
            }
            "<&" | ">&" if is_descriptor => {}
            _ => {
                found.away |= descriptor.is_none_or(|it| it == "1");
                found.writes.push(file);
            }
        }
    }

    /// What the line itself wrote into a file before.
    pub(super) fn written_into(&self, file: &Text, scope: &Scope) -> Option<Input> {
        scope.files.get(&self.place(file, scope).absolute?).cloned()
    }

    /// Notes what went into the files that a command was redirected to.
    pub(super) fn note_files(&self, redirects: &Redirects, output: &Output, scope: &mut Scope) {
        for file in &redirects.writes {
            if let Some(place) = self.place(file, scope).absolute {
                scope.files.insert(place, Input { is_file: true, ..output.clone().piped() });
            }
        }
    }

    /// Redirections that no single program makes: `> file`, `{ …; } > file`. Their place among the
    /// programs; nothing where there are none.
    pub(super) fn bare(&mut self, redirects: &Redirects, scope: &mut Scope) -> Option<usize> {
        if redirects.writes.is_empty() && redirects.reads.is_empty() {
            return None;
        }
        let program = Invocation {
            name: ":".to_owned(),
            called: Text::known(":"),
            folder: scope.folder.clone(),
            writes: redirects.writes.clone(),
            reads: redirects.reads.clone(),
            ..Invocation::default()
        };
        let at = self.push(program)?;
        self.touch(at, &Output::empty(), scope);
        Some(at)
    }

    /// `$(< file)`: what is in the file.
    pub(super) fn content(&mut self, node: Node<'_>, source: &str, scope: &mut Scope) -> Output {
        let mut redirects = Redirects::default();
        self.file_redirect(node, source, scope, &mut redirects);
        self.note_files(&redirects, &Output::empty(), scope);
        let from = self.bare(&redirects, scope).into_iter().collect();
        let text = redirects.input.and_then(|it| it.text);
        let reads = redirects.writes.is_empty();
        if reads { Output { text, from, files: Vec::new() } } else { Output::empty() }
    }
}

/// Whether the last word of a node is the variable that the number of an opened file goes to: `{fd}>log`.
pub(super) fn names_descriptor(node: Node<'_>, source: &str) -> bool {
    let is_redirected = source.get(node.end_byte()..).is_some_and(|it| it.starts_with(['<', '>']));
    let last = node_text(node, source).rsplit(char::is_whitespace).next().unwrap_or_default();
    let name = last.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    is_redirected && !name.is_empty() && name.chars().all(is_name)
}

/// The nodes behind the mark of a here-document that stand on its line: a body that begins with a backslash is
/// more of them to the grammar.
pub(super) fn before_body<'t>(mut nodes: Vec<Node<'t>>, source: &str) -> Vec<Node<'t>> {
    let end = nodes.iter().position(|it| is_in_body(*it, source));
    nodes.truncate(end.unwrap_or(nodes.len()));
    nodes
}

/// Where the body of a here-document begins whose first line the grammar took for words.
fn first_line_lost(node: Node<'_>, source: &str) -> Option<usize> {
    let mut cursor = node.walk();
    let own = node.children(&mut cursor).flat_map(|it| {
        let mut cursor = it.walk();
        let inner: Vec<Node<'_>> = match it.kind() {
            "file_redirect" => it.children(&mut cursor).collect(),
            _ => vec![it],
        };
        inner
    });
    own.into_iter().find(|it| is_in_body(*it, source)).map(|it| it.start_byte() + 1)
}

fn is_in_body(node: Node<'_>, source: &str) -> bool {
    node.kind() != "heredoc_body" && node_text(node, source).starts_with("\n\\")
}
