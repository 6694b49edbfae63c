//! The walk over the syntax tree of a command line.
//!
//! Contains: the statements of the shell grammar (lists, pipelines, branches, loops, simple
//! commands), redirections, and the depth to which text is read.
//! Does not contain: the state of the walk (`scanner`), what a simple command starts (`wrappers`, `programs`), the values
//! of words (`words`).

use std::borrow::Cow;

use tree_sitter::{Node, Tree};

use super::analysis_context::AnalysisContext;
use super::effect_set::CallEffects;
use super::endless;
use super::hidden::{OUTPUT_PIPE, SEPARATORS, begins_pattern, broken_words};
use super::invocation::{Invocation, StandardInput};
use super::scanner::Scanner;
use super::shell_output::ShellOutput;
use super::shell_state::{ShellState, VALUES_MAX, WorkingFolder};
use super::shell_text::ShellText;
use super::simple_command::{Redirects, SimpleCommand};
use super::tool_call::Call;
use super::words::{
    ShellWords, UnsplitWord, adjacent_nodes, emptied_by, escaped_blanks, join_units,
    split_after_value,
};
use crate::limits::{SHELL_DEPTH_MAX, SHELL_TEXT_MAX};
use crate::shell::{child_of_kind, is_assignment, node_text, syntax};

/// Scans a command line and adds its programs, files and variables to a call.
pub(super) fn scan_line(call: &mut Call, text: &str, context: AnalysisContext<'_>) {
    let folder = context.around.folder.clone();
    let folder = WorkingFolder::certain(Some(folder).filter(|it| !it.is_empty()));
    let mut scope = ShellState { folder, ..ShellState::default() };
    let mut scanner = Scanner::new(call, context);
    scanner.scan_to_end(text, &mut scope);
    scanner.scan_uncalled_functions(&scope);
}

impl Scanner<'_> {
    /// Scans the whole text of a shell, and then what it runs when it ends: `trap … EXIT`.
    pub(super) fn scan_to_end(&mut self, text: &str, scope: &mut ShellState) {
        self.scan_text(text, scope, &StandardInput::default());
        for text in std::mem::take(&mut self.at_the_end) {
            // A line of this text is not one of the file.
            let lines = self.lines_of.take();
            self.scan_text(&text, &mut scope.clone(), &StandardInput::default());
            self.lines_of = lines;
        }
    }

    /// Scans shell text that another shell reads.
    pub(super) fn scan_text(
        &mut self,
        source: &str,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> ShellOutput {
        if self.text_depth >= SHELL_DEPTH_MAX {
            self.mark_over_limit("it is nested too deeply or too long");
            return ShellOutput::default();
        }
        self.text_depth += 1;
        let output = self.scan_body(source, scope, input);
        self.text_depth -= 1;
        output
    }

    /// Scans shell text that the current shell runs itself, such as the body of a function.
    pub(super) fn scan_body(
        &mut self,
        source: &str,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> ShellOutput {
        let shortened = self.shorten(source);
        let (source, tree) = match &shortened {
            Some((text, tree)) => (text.as_str(), Some(Cow::Borrowed(tree))),
            None => (source, None),
        };
        if source.len() > self.text_max() {
            self.mark_over_limit("it is nested too deeply or too long");
            return ShellOutput::default();
        }
        if !self.spend_steps(source.len()) {
            return ShellOutput::default();
        }
        let Some(tree) = tree.or_else(|| syntax(source).map(Cow::Owned)) else {
            self.mark_over_limit("it takes too long to read");
            return ShellOutput::default();
        };
        if tree.root_node().has_error() {
            self.mark_not_understood("its form is not that of a shell command");
        }
        let loop_end = std::mem::take(&mut self.loop_end);
        let output = self.scan_sequence(tree.root_node(), source, scope, input);
        self.loop_end = loop_end;
        output
    }

    /// Returns a long text without its here-documents, and its tree. `None` if the text is scanned
    /// unchanged.
    fn shorten(&mut self, source: &str) -> Option<(String, Tree)> {
        let short = self.heredocs.extract(source)?;
        let tree = Some(&short.text).filter(|it| it.len() <= SHELL_TEXT_MAX);
        let tree = tree.and_then(|it| syntax(it)).filter(|it| short.matches_tree(it))?;
        Some((short.text, tree))
    }

    /// Evaluates a command substitution.
    pub(super) fn expand_substitution(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &ShellState,
    ) -> ShellText {
        let mut inner = scope.clone();
        let around = self.functions.enter(node, source);
        let output = self.scan_sequence(node, source, &mut inner, &StandardInput::default());
        self.functions.leave(around);
        output.substituted(node_text(node, source))
    }
}

impl Scanner<'_> {
    /// Scans statements one after the other.
    pub(super) fn scan_sequence(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> ShellOutput {
        let mut output = ShellOutput::empty();
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        for child in children.into_iter().filter(|it| it.kind() != "comment") {
            if self.is_spent() {
                break;
            }
            scope.settle();
            output = output.then(self.scan_statement(child, source, scope, input));
            // In a list, a part that fails does not end the shell.
            scope.failed.take_if(|_| scope.ends_on_error && child.kind() != "list");
        }
        output
    }

    /// Scans one statement.
    pub(super) fn scan_statement(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> ShellOutput {
        let bytes = match node.kind() {
            "command" | "redirected_statement" | "test_command" => node.byte_range().len(),
            "variable_assignment" | "declaration_command" => node.byte_range().len(),
            _ => 0,
        };
        if !self.spend_steps(bytes) || !self.enter() {
            return ShellOutput::default();
        }
        let around = self.functions.enter(node, source);
        self.check_endless_loop(node, source);
        let output = match node.kind() {
            "command" => self.scan_command(node, source, scope, input, Redirects::default()),
            "variable_assignment" | "variable_assignments" => {
                self.apply_assignments(node, source, scope);
                ShellOutput::empty()
            }
            "declaration_command" => self.apply_declaration(node, source, scope),
            "unset_command" => self.apply_unset(node, source, scope),
            "redirected_statement" => self.scan_redirected(node, source, scope, input),
            "pipeline" => self.scan_pipeline(node, source, scope, input),
            "command_substitution" if node_text(node, source).starts_with('`') => {
                self.scan_backticks(node_text(node, source), scope);
                ShellOutput::empty()
            }
            "subshell" | "command_substitution" | "process_substitution" => {
                let mut inner = scope.clone();
                let output = self.scan_sequence(node, source, &mut inner, input);
                scope.files = inner.files;
                output
            }
            "file_redirect" => self.read_content(node, source, scope),
            "if_statement" | "case_statement" => self.scan_clauses(node, source, scope, input),
            "list" => self.scan_list(node, source, scope, input),
            "while_statement" | "c_style_for_statement" => {
                self.scan_while_loop(node, source, scope, input)
            }
            "for_statement" => self.scan_for_loop(node, source, scope, input),
            "function_definition" => self.scan_definition(node, source, scope),
            "test_command" => {
                self.scan_substitutions(node, source, scope);
                let text = node_text(node, source);
                // `[[ -v 'a[$(x)]' ]]` evaluates the subscript.
                if text.contains('\'') && ["[$(", "[`"].iter().any(|it| text.contains(it)) {
                    self.call.mark_not_understood("a subscript in quotes runs commands");
                }
                ShellOutput::empty()
            }
            // The grammar parses brace expansion in the position of the program (`{rm,-rf} x`) as a
            // block.
            "ERROR" if words_in_braces(node_text(node, source)).is_some() => {
                let words = words_in_braces(node_text(node, source)).unwrap_or_default();
                self.scan_text(&format!("command {words}"), scope, input)
            }
            "ERROR" if broken_words(node, source).is_some() => {
                let words = broken_words(node, source).unwrap_or_default();
                self.scan_text(&format!("command {words}"), scope, input)
            }
            // Branches and loop bodies: all statements may run.
            _ => self.scan_sequence(node, source, scope, input),
        };
        self.functions.leave(around);
        self.leave();
        output
    }

    /// Records a loop that starts jobs endlessly. Loops inside an endless loop are part of it.
    fn check_endless_loop(&mut self, node: Node<'_>, source: &str) {
        if self.loop_end <= node.start_byte() && endless::goes_on(node, source) {
            self.call.endless |= endless::leaves_jobs(node, source, "");
            self.loop_end = node.end_byte();
        }
    }

    fn scan_pipeline(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> ShellOutput {
        let mut cursor = node.walk();
        let members: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        self.scan_members(&members, source, scope, input.clone())
    }

    fn scan_members(
        &mut self,
        members: &[Node<'_>],
        source: &str,
        scope: &mut ShellState,
        mut input: StandardInput,
    ) -> ShellOutput {
        let mut output = ShellOutput::empty();
        for member in members.iter().filter(|it| it.kind() != "comment") {
            let mut inner = scope.clone();
            output = self.scan_statement(*member, source, &mut inner, &input);
            scope.files = inner.files;
            input = output.clone().piped();
        }
        output
    }

    /// Scans a statement with redirections. A here-document may continue with a pipeline.
    fn scan_redirected(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        input: &StandardInput,
    ) -> ShellOutput {
        let redirects = self.evaluate_redirects(node, source, scope);
        let heredoc = child_of_kind(node, "heredoc_redirect");
        let own = redirects.input.clone().unwrap_or_else(|| input.clone());
        let away = redirects.away;
        let mut output = match node.child_by_field_name("body") {
            Some(body) if body.kind() == "command" => {
                let mut redirects = redirects;
                if let Some(heredoc) = heredoc {
                    // Arguments behind the delimiter of a here-document.
                    let mut cursor = heredoc.walk();
                    let after: Vec<Node<'_>> =
                        heredoc.children_by_field_name("argument", &mut cursor).collect();
                    let after = before_body(after, source);
                    let words = self.words_from_nodes(&after, source, scope).split();
                    redirects.words.splice(..0, words);
                }
                self.scan_command(body, source, scope, &own, redirects)
            }
            // In a pipeline, the redirection belongs to the last program. The files are affected
            // whatever the body is.
            Some(body) => {
                let from = self.call.programs.len();
                let output = self.scan_statement(body, source, scope, &own);
                self.record_content(&redirects, &output, scope);
                let last = self.call.programs.get_mut(from..).and_then(<[_]>::last_mut);
                if let Some(last) = last {
                    if !redirects.writes.is_empty() {
                        last.effects = last.effects.union(CallEffects::WRITE);
                    }
                    last.writes.extend(redirects.writes.iter().cloned());
                    last.appends.extend(redirects.appended.iter().cloned());
                    last.reads.extend(redirects.reads.iter().cloned());
                }
                self.add_redirect_program(&redirects, scope);
                if away { ShellOutput::empty() } else { output }
            }
            None => {
                self.record_content(&redirects, &ShellOutput::empty(), scope);
                self.add_redirect_program(&redirects, scope);
                let words = redirects.words;
                if words.is_empty() {
                    ShellOutput::empty()
                } else {
                    self.run_simple(
                        SimpleCommand { words, ..SimpleCommand::default() },
                        scope,
                        &own,
                    )
                }
            }
        };
        let Some(heredoc) = heredoc else { return output };
        if let Some(pipeline) = child_of_kind(heredoc, "pipeline") {
            let mut cursor = pipeline.walk();
            let members: Vec<Node<'_>> = pipeline.named_children(&mut cursor).collect();
            output = self.scan_members(&members, source, scope, output.piped());
        }
        if let Some(right) = heredoc.child_by_field_name("right") {
            output = output.then(self.scan_statement(right, source, scope, input));
        }
        output
    }

    fn scan_definition(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
    ) -> ShellOutput {
        let name = node.child_by_field_name("name").map(|it| node_text(it, source).to_owned());
        // The redirections of a function belong to its body.
        let body = node.child_by_field_name("body");
        let body = body.and_then(|it| source.get(it.start_byte()..node.end_byte()));
        if let (Some(name), Some(body)) = (name, body) {
            let leaves_jobs = endless::leaves_jobs(node, source, &name);
            self.define_function(name, body, leaves_jobs, scope);
        }
        ShellOutput::empty()
    }

    /// Scans the substitutions of a node whose value is not used.
    pub(super) fn scan_substitutions(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
    ) {
        if !self.enter() {
            return;
        }
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        for child in children {
            match child.kind() {
                "command_substitution" if node_text(child, source).starts_with('`') => {
                    self.scan_backticks(node_text(child, source), scope);
                }
                "command_substitution" | "process_substitution" => {
                    self.expand_substitution(child, source, scope);
                }
                kind => {
                    if kind == "expansion" {
                        self.scan_backticks(node_text(child, source), scope);
                    }
                    self.scan_substitutions(child, source, scope);
                }
            }
        }
        self.leave();
    }

    /// Scans a simple command.
    fn scan_command(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        input: &StandardInput,
        mut redirects: Redirects,
    ) -> ShellOutput {
        if self.lines_of == Some(self.text_depth) {
            self.line = node.start_position().row + 1;
        }
        redirects.extend(self.evaluate_redirects(node, source, scope));
        let (mut words, mut variables) = (ShellWords::default(), Vec::new());
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        let (mut end, mut of_value) = (node.start_byte(), false);
        for child in children.into_iter().filter(|it| it.kind() != "comment") {
            if child.start_byte() < end {
                continue; // It is part of an assignment.or a here-string.
            }
            let gap = source.get(end..child.start_byte()).unwrap_or_default();
            words.between(if of_value { split_after_value(gap).1 } else { gap });
            end = child.end_byte();
            of_value = false;
            match child.kind() {
                "variable_assignment" if words.is_empty() => {
                    variables.push(self.evaluate_assignment(child, source, scope));
                    end = adjacent_nodes(child, source).last().map_or(end, Node::end_byte);
                    of_value = true;
                }
                "herestring_redirect" => {
                    words.end();
                    of_value = true;
                    end = adjacent_nodes(child, source).last().map_or(end, Node::end_byte);
                }
                "file_redirect" | "heredoc_redirect" => words.end(),
                // The start of a file name pattern: `A=b r[m] x`.
                "ERROR" if begins_pattern(node_text(child, source)) => {
                    self.add_word_part(child, source, scope, &mut words);
                }
                "ERROR" => {
                    words.end();
                    // The grammar parses `cat <<A; next` as an error inside `cat`. Scan the rest as
                    // a new command.
                    let text = node_text(child, source);
                    if text.contains(SEPARATORS) {
                        let words = std::mem::take(&mut words).split();
                        self.run_simple(
                            SimpleCommand { words, ..SimpleCommand::default() },
                            scope,
                            input,
                        );
                    }
                }
                _ => self.add_word_part(child, source, scope, &mut words),
            }
        }
        words.between(source.get(end..node.end_byte()).unwrap_or_default());
        words.between(escaped_blanks(source, node.end_byte().max(end)));
        let mut words = words.split();
        if names_descriptor(node, source) {
            words.pop();
        }
        // Behind `A='a'\b`, the grammar parses the next assignment as the program.
        while !variables.is_empty()
            && let Some((name, value)) = words.first().and_then(assigned)
        {
            variables.push((name, vec![value]));
            words.remove(0);
        }
        words.append(&mut redirects.words);
        let input = redirects.input.take().unwrap_or_else(|| input.clone());
        if node.child_by_field_name("name").is_some_and(|it| node_text(it, source).starts_with('$'))
        {
            self.run_alternatives(&words, scope, &input);
        }
        let simple = SimpleCommand { words, variables, redirects, wrappers: Vec::new() };
        self.run_simple(simple, scope, &input)
    }
}

impl Scanner<'_> {
    /// Runs the command again from each listed program on: the first word is a variable with several values.
    fn run_alternatives(&mut self, words: &[ShellText], scope: &ShellState, input: &StandardInput) {
        for at in 1..words.len().min(VALUES_MAX) {
            let words = words.get(at..).unwrap_or_default();
            if words.first().and_then(ShellText::all).is_some_and(|it| self.names_program(it)) {
                let simple = SimpleCommand { words: words.to_vec(), ..SimpleCommand::default() };
                self.run_simple(simple, &mut scope.clone(), input);
            }
        }
    }
}

/// Returns the name and the value of a word that is an assignment.
fn assigned(word: &ShellText) -> Option<(String, ShellText)> {
    let (name, _) = word.known_part().split_once('=').filter(|_| is_assignment(&word.text))?;
    Some((name.trim_end_matches('+').to_owned(), word.tail(name.len() + 1)))
}

/// Returns the source of an error node that begins with brace expansion: `{rm,-rf}`.
fn words_in_braces(raw: &str) -> Option<&str> {
    let raw = raw.trim_start_matches(|c: char| "&|;".contains(c) || c.is_whitespace());
    let inside = raw.strip_prefix('{')?;
    let is_list = inside.contains(',') && inside.contains('}');
    (is_list && !inside.starts_with(char::is_whitespace)).then_some(raw)
}

impl Scanner<'_> {
    /// Evaluates the redirections of a statement.
    pub(super) fn evaluate_redirects(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
    ) -> Redirects {
        let mut found = Redirects::default();
        if !self.enter() {
            return found;
        }
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        for child in children {
            match child.kind() {
                "file_redirect" => self.evaluate_file_redirect(child, source, scope, &mut found),
                "herestring_redirect" => {
                    found.input = Some(self.evaluate_herestring(child, source, scope));
                }
                "heredoc_redirect" => {
                    found.input = Some(self.evaluate_heredoc(child, source, scope));
                    found.extend(self.evaluate_redirects(child, source, scope));
                }
                _ => {}
            }
        }
        self.leave();
        found
    }

    /// Evaluates `<<<word`. The grammar may parse the end of the word as a separate node.
    fn evaluate_herestring(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
    ) -> StandardInput {
        let mut cursor = node.walk();
        let own = node.children(&mut cursor).skip_while(|it| it.kind() != "<<<").skip(1);
        let pieces: Vec<Node<'_>> = own.chain(adjacent_nodes(node, source)).collect();
        let from = pieces.first().map_or(0, Node::start_byte);
        let text = join_units(&self.units_from_nodes(from, &pieces, source, scope));
        let text = text.with_home(&self.context.around.home);
        let known = text.all().map(str::to_owned);
        StandardInput { piped: true, text: known, from: text.from, ..StandardInput::default() }
    }

    fn evaluate_heredoc(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
    ) -> StandardInput {
        let Some(body) = child_of_kind(node, "heredoc_body") else {
            return StandardInput::default();
        };
        let start = child_of_kind(node, "heredoc_start").map(|it| node_text(it, source));
        let is_quoted = start.is_some_and(|it| it.contains(['\'', '"', '\\']));
        let lost = first_line_lost(node, source).map(|from| {
            let end =
                child_of_kind(node, "heredoc_end").map_or(body.end_byte(), |it| it.start_byte());
            source.get(from..end).unwrap_or_default()
        });
        if is_quoted {
            let text = self.heredocs.restore(lost.unwrap_or_else(|| node_text(body, source)));
            return StandardInput { piped: true, text: Some(text), ..StandardInput::default() };
        }
        let units = match lost {
            None if body.named_child_count() > 0 => {
                self.units_from_nodes(body.start_byte(), &[body], source, scope)
            }
            lost => {
                self.scan_substitutions(node, source, scope);
                let raw = self.heredocs.restore(lost.unwrap_or_else(|| node_text(body, source)));
                let mut units = Vec::new();
                self.expand_heredoc_text(&raw, scope, &mut units);
                units
            }
        };
        let text = join_units(&units);
        // An unknown part stays as written: the shell that reads it may know its value.
        let as_written = !text.is_known();
        let (text, from) = (Some(text.text), text.from);
        StandardInput { piped: true, text, as_written, from, ..StandardInput::default() }
    }

    fn evaluate_file_redirect(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
        found: &mut Redirects,
    ) {
        let mut cursor = node.walk();
        let destinations: Vec<Node<'_>> =
            node.children_by_field_name("destination", &mut cursor).collect();
        let destinations = before_body(destinations, source);
        let mut words = self.words_from_nodes(&destinations, source, scope).unsplit();
        if names_descriptor(node, source) {
            words.pop();
        }
        let mut words = words.into_iter();
        // A redirection has one target, even if the word is a pattern.
        let Some(file) = words.next().map(UnsplitWord::whole) else { return };
        words.for_each(|it| it.split(&mut found.words));
        let mut cursor = node.walk();
        let operator = node.children(&mut cursor).find(|it| !it.is_named());
        let operator = operator.map(|it| it.kind().to_owned()).unwrap_or_default();
        let descriptor = child_of_kind(node, "file_descriptor").map(|it| node_text(it, source));
        let is_descriptor = file.text == "-" || file.text.bytes().all(|b| b.is_ascii_digit());
        match operator.as_str() {
            "<" => {
                found.input = Some(StandardInput {
                    piped: file.pipe,
                    text: file.piped.clone(),
                    from: file.from.clone(),
                    is_file: !file.pipe,
                    ..StandardInput::default()
                });
                if let Some(written) = self.known_content(&file, scope) {
                    found.input = Some(StandardInput { is_file: true, ..written });
                }
                if !file.pipe {
                    found.reads.push(file);
                }
            }
            "<&" | ">&" if scope.consumers_of(&file).is_some() => {
                let from = scope.consumers_of(&file).cloned().unwrap_or_default();
                found.away |= descriptor.is_none_or(|it| it == "1");
                found.writes.push(ShellText {
                    from,
                    pipe: true,
                    ..ShellText::unknown(OUTPUT_PIPE)
                });
            }
            "<&" | ">&" if is_descriptor => {}
            _ => {
                found.away |= descriptor.is_none_or(|it| it == "1");
                found
                    .appended
                    .extend((operator == ">>" || operator == "&>>").then(|| file.clone()));
                let name = descriptor_name(node, source).or(descriptor).unwrap_or("1");
                let is_consumer = file.pipe && file.text.starts_with(OUTPUT_PIPE);
                found.opened.extend(is_consumer.then(|| (name.to_owned(), file.from.clone())));
                found.writes.push(file);
            }
        }
    }

    /// Returns the content that the line itself wrote into a file before.
    pub(super) fn known_content(
        &self,
        file: &ShellText,
        scope: &ShellState,
    ) -> Option<StandardInput> {
        let path = self.resolve_path(file, scope).absolute?;
        scope.files.content(&path).cloned().or_else(|| self.fetched_content(&path, scope))
    }

    /// Returns the unknown content of a file that the line fetched with a directory. What lay in the directory before is read
    /// as it is.
    pub(super) fn fetched_content(&self, path: &str, scope: &ShellState) -> Option<StandardInput> {
        let tree = scope.files.fetched_tree(path)?;
        let is_older = !tree.is_new && self.context.disk.exists(path) == Some(true);
        (!is_older).then(|| tree.content())
    }

    /// Records the content of the files that a command is redirected to.
    pub(super) fn record_content(
        &mut self,
        redirects: &Redirects,
        output: &ShellOutput,
        scope: &mut ShellState,
    ) {
        for file in &redirects.writes {
            if let Some(place) = self.resolve_path(file, scope).absolute {
                if let Some(pipe) = self.named_pipe(&place, scope) {
                    // The readers of the pipe are fed by what made it.
                    let pipe = self.call.programs.get_mut(pipe);
                    pipe.into_iter().for_each(|it| it.fed_by.extend(&output.from));
                    continue;
                }
                let written = StandardInput { is_file: true, ..output.clone().piped() };
                let written = match redirects.appended.contains(file) {
                    true => written.behind(scope.files.content(&place)),
                    false => written,
                };
                scope.files.insert(place, written);
            }
        }
    }

    /// Adds a program for redirections that belong to no program: `> file`, `{ …; } > file`.
    /// Returns its index, or `None` without redirections.
    pub(super) fn add_redirect_program(
        &mut self,
        redirects: &Redirects,
        scope: &mut ShellState,
    ) -> Option<usize> {
        if redirects.writes.is_empty() && redirects.reads.is_empty() {
            return None;
        }
        let program = Invocation {
            name: ":".to_owned(),
            called: ShellText::known(":"),
            folder: scope.folder.path.clone(),
            writes: redirects.writes.clone(),
            appends: redirects.appended.clone(),
            reads: redirects.reads.clone(),
            fed_by: emptied_by(&redirects.writes, &redirects.appended),
            ..Invocation::default()
        };
        let at = self.add_program(program)?;
        self.record_effects(at, &ShellOutput::empty(), scope);
        Some(at)
    }

    /// Evaluates `$(< file)`.
    pub(super) fn read_content(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut ShellState,
    ) -> ShellOutput {
        let mut redirects = Redirects::default();
        self.evaluate_file_redirect(node, source, scope, &mut redirects);
        self.record_content(&redirects, &ShellOutput::empty(), scope);
        let from = self.add_redirect_program(&redirects, scope).into_iter().collect();
        let text = redirects.input.and_then(|it| it.text);
        let reads = redirects.writes.is_empty();
        if reads { ShellOutput { text, from, files: Vec::new() } } else { ShellOutput::empty() }
    }
}

/// Returns the name of the variable for the descriptor of a redirection: `{fd}>log`.
fn descriptor_name<'s>(redirect: Node<'_>, source: &'s str) -> Option<&'s str> {
    let before = source.get(..redirect.start_byte())?.strip_suffix('}')?;
    before.rsplit_once('{').map(|it| it.1).filter(|it| !it.contains(char::is_whitespace))
}

/// Returns whether the last word of a node is a variable for a file descriptor: `{fd}>log`.
pub(super) fn names_descriptor(node: Node<'_>, source: &str) -> bool {
    let is_redirected = source.get(node.end_byte()..).is_some_and(|it| it.starts_with(['<', '>']));
    let last = node_text(node, source).rsplit(char::is_whitespace).next().unwrap_or_default();
    let name = last.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    is_redirected && !name.is_empty() && name.chars().all(is_name)
}

/// Keeps the nodes on the line of a here-document. The grammar parses a body that begins with a
/// backslash as more of them.
pub(super) fn before_body<'t>(mut nodes: Vec<Node<'t>>, source: &str) -> Vec<Node<'t>> {
    let end = nodes.iter().position(|it| is_in_body(*it, source));
    nodes.truncate(end.unwrap_or(nodes.len()));
    nodes
}

/// Returns the start of a here-document body whose first line the grammar parsed as words.
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
