//! The forms of the shell's grammar: lists, pipelines, loops, simple commands. What is set stands in `variables`.

use tree_sitter::Node;

use super::super::shell::node::child_of_kind;
use super::super::shell::unwrap::is_assignment;
use super::super::shell::word;
use super::redirects::{Redirects, before_body, names_descriptor};
use super::scan::{Output, Scanner, Scope};
use super::value::Text;
use super::words::{Words, behind_value, escaped_blanks, touching};
use super::wrap::Simple;
use super::{Input, endless};
use crate::limits::SHELL_NESTING_MAX;

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
            "command_substitution" if word::raw(node, source).starts_with('`') => {
                self.in_backticks(word::raw(node, source), scope);
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
            "ERROR" if words_in_braces(word::raw(node, source)).is_some() => {
                let words = words_in_braces(word::raw(node, source)).unwrap_or_default();
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
        let name = node.child_by_field_name("variable").map(|it| word::raw(it, source).to_owned());
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
        let reads = condition.is_some_and(|it| word::raw(it, source).contains("read"));
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
        let name = node.child_by_field_name("name").map(|it| word::raw(it, source).to_owned());
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
                "command_substitution" if word::raw(child, source).starts_with('`') => {
                    self.in_backticks(word::raw(child, source), scope);
                }
                "command_substitution" | "process_substitution" => {
                    self.substitution(child, source, scope);
                }
                kind => {
                    if kind == "expansion" {
                        self.in_backticks(word::raw(child, source), scope);
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
                    let text = word::raw(child, source);
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
