//! Shell text: which programs a command line runs, with which arguments, and whether the success
//! of the whole says that they succeeded. Lives here: the walk over the syntax tree.
//! May not live here: what a policy thinks of the programs.

pub(super) mod node;
pub(super) mod unwrap;

pub use unwrap::is_assignment;
pub(super) mod word;

use std::ops::{ControlFlow, Range};

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use super::command::Program;
use super::compiled::CompiledLens;
use crate::limits::{
    COMMAND_PROGRAMS_MAX, SHELL_DEPTH_MAX, SHELL_NESTING_MAX, SHELL_STEPS_MAX, SHELL_TEXT_MAX,
};
use node::{
    ShellOptions, changed_options, child_of_kind, exits_on_failure, gives_up, heredoc_words,
    written_file,
};
use unwrap::{Meaning, base_name};

/// Programs of a command line in their order, and whether all of it was understood.
#[must_use]
pub fn parse(text: &str, lens: &CompiledLens) -> (Vec<Program>, bool) {
    let mut reader = Reader { lens, programs: Vec::new(), understood: true, text_depth: 0 };
    reader.text(text, Weight::Status);
    (reader.programs, reader.understood)
}

/// What the success of the whole line says about a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// Nothing.
    None,
    /// Its status is the status of the line.
    Status,
    /// Its failure ends the line (`set -e`, `|| exit 1`).
    Fatal,
}

impl Weight {
    fn decisive(self) -> bool {
        match self {
            Self::None => false,
            Self::Status | Self::Fatal => true,
        }
    }
}

/// Where the walk stands inside one text.
#[derive(Clone, Copy)]
struct Place<'s> {
    source: &'s str,
    weight: Weight,
    options: ShellOptions,
    nesting: usize,
}

impl Place<'_> {
    fn weighing(self, weight: Weight) -> Self {
        Self { weight, ..self }
    }
}

struct Reader<'l> {
    lens: &'l CompiledLens,
    programs: Vec<Program>,
    understood: bool,
    text_depth: usize,
}

impl Reader<'_> {
    fn text(&mut self, source: &str, weight: Weight) {
        if self.text_depth >= SHELL_DEPTH_MAX || source.len() > SHELL_TEXT_MAX {
            self.understood = false;
            return;
        }
        let Some(tree) = syntax(source) else {
            self.understood = false;
            return;
        };
        self.understood &= !tree.root_node().has_error();
        self.text_depth += 1;
        let place = Place { source, weight, options: ShellOptions::default(), nesting: 0 };
        self.sequence(tree.root_node(), place);
        self.text_depth -= 1;
    }

    /// Statements one after the other; only the last one has the status of the whole.
    fn sequence(&mut self, node: Node<'_>, mut place: Place<'_>) {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> =
            node.children(&mut cursor).filter(|child| child.kind() != "comment").collect();
        let last = children.iter().rposition(|child| child.is_named());
        for (index, child) in children.iter().enumerate() {
            if !child.is_named() {
                continue;
            }
            let in_background = children.get(index + 1).is_some_and(|next| next.kind() == "&");
            let weight = match (in_background, Some(index) == last) {
                (true, _) => Weight::None,
                (false, true) => place.weight,
                (false, false) if !place.weight.decisive() => Weight::None,
                (false, false) if place.options.errexit => Weight::Fatal,
                (false, false) if exits_on_failure(*child, place.source) => Weight::Fatal,
                (false, false) => Weight::None,
            };
            self.statement(*child, place.weighing(weight));
            place.options = changed_options(*child, place.source, place.options);
        }
    }

    fn statement(&mut self, node: Node<'_>, place: Place<'_>) {
        if place.nesting >= SHELL_NESTING_MAX || self.programs.len() >= COMMAND_PROGRAMS_MAX {
            self.understood = false;
            return;
        }
        let place = Place { nesting: place.nesting + 1, ..place };
        match node.kind() {
            "command" | "declaration_command" | "unset_command" => self.command(node, place),
            "redirected_statement" => self.redirected(node, place),
            "list" => self.list(node, place),
            "pipeline" => self.pipeline(node, place),
            "subshell" | "compound_statement" => self.sequence(node, place),
            "command_substitution" | "process_substitution" => {
                self.sequence(node, place.weighing(Weight::None));
            }
            "negated_command"
            | "if_statement"
            | "elif_clause"
            | "else_clause"
            | "while_statement"
            | "for_statement"
            | "c_style_for_statement"
            | "do_group"
            | "case_statement"
            | "case_item"
            | "function_definition"
            | "ERROR" => {
                self.children(node, place.weighing(Weight::None));
            }
            _ => self.substitutions(node, place),
        }
    }

    fn children(&mut self, node: Node<'_>, place: Place<'_>) {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            self.statement(child, place);
        }
    }

    /// `a && b` and `a || b`.
    fn list(&mut self, node: Node<'_>, place: Place<'_>) {
        let count = node.child_count();
        let (Some(left), Some(right)) = (node.child(0), node.child(count.saturating_sub(1))) else {
            return;
        };
        let mut cursor = node.walk();
        let or = node.children(&mut cursor).any(|child| child.kind() == "||");
        self.pair(left, or, right, place);
    }

    fn pair(&mut self, left: Node<'_>, or: bool, right: Node<'_>, place: Place<'_>) {
        let (left_weight, right_weight) = if !or {
            // Under `set -e` only the end of an `&&` chain is fatal.
            match place.weight {
                Weight::Fatal => (Weight::None, Weight::Fatal),
                weight @ (Weight::None | Weight::Status) => (weight, weight),
            }
        } else if gives_up(right, place.source) && place.weight.decisive() {
            (Weight::Status, Weight::None)
        } else {
            (Weight::None, Weight::None)
        };
        self.statement(left, place.weighing(left_weight));
        self.statement(right, place.weighing(right_weight));
    }

    fn pipeline(&mut self, node: Node<'_>, place: Place<'_>) {
        let mut cursor = node.walk();
        let members: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        for (index, member) in members.iter().enumerate() {
            let counts = index + 1 == members.len() || place.options.pipefail;
            let weight = if counts { place.weight } else { Weight::None };
            self.statement(*member, place.weighing(weight));
        }
    }

    fn redirected(&mut self, node: Node<'_>, place: Place<'_>) {
        let heredoc = child_of_kind(node, "heredoc_redirect");
        let piped = heredoc.and_then(|heredoc| child_of_kind(heredoc, "pipeline"));
        let right = heredoc.and_then(|heredoc| heredoc.child_by_field_name("right"));
        let or = heredoc.is_some_and(|heredoc| child_of_kind(heredoc, "||").is_some());
        let weight = match (piped, right) {
            (Some(_), _) if !place.options.pipefail => Weight::None,
            (_, Some(right)) if or => {
                if gives_up(right, place.source) {
                    place.weight
                } else {
                    Weight::None
                }
            }
            _ => place.weight,
        };
        let from = self.programs.len();
        if let Some(body) = node.child_by_field_name("body") {
            let input = heredoc.and_then(|heredoc| child_of_kind(heredoc, "heredoc_body"));
            let extra = heredoc.map(|heredoc| heredoc_words(heredoc, place.source));
            if body.kind() == "command" && input.is_some() {
                self.fed_command(body, input, extra.unwrap_or_default(), place.weighing(weight));
            } else {
                self.statement(body, place.weighing(weight));
            }
        }
        self.redirects(node, place, from);
        if let Some(heredoc) = heredoc {
            self.redirects(heredoc, place, from);
        }
        let after = if or { Weight::None } else { place.weight };
        for next in piped.into_iter().chain(right) {
            self.statement(next, place.weighing(after));
        }
    }

    /// Notes the files of output redirections at the newest program since `from`.
    fn redirects(&mut self, node: Node<'_>, place: Place<'_>, from: usize) {
        let mut cursor = node.walk();
        for redirect in node.children_by_field_name("redirect", &mut cursor) {
            self.substitutions(redirect, place);
            if let Some(file) = written_file(redirect, place.source)
                && let Some(program) = self.programs.get_mut(from..).and_then(<[Program]>::last_mut)
            {
                program.writes.push(file);
            }
        }
    }

    fn command(&mut self, node: Node<'_>, place: Place<'_>) {
        self.fed_command(node, None, Vec::new(), place);
    }

    /// A simple command, with the here-document it reads.
    fn fed_command(
        &mut self,
        node: Node<'_>,
        input: Option<Node<'_>>,
        extra: Vec<String>,
        place: Place<'_>,
    ) {
        let from = self.programs.len();
        let mut words = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "variable_assignment" if node.kind() == "command" && words.is_empty() => {}
                "file_redirect" | "comment" => {}
                "herestring_redirect" | "heredoc_redirect" => self.understood &= !child.has_error(),
                "ERROR" => {
                    // `cat <<A; next` is an error inside `cat` to the grammar: start afresh.
                    self.understood = false;
                    let text = word::raw(child, place.source);
                    if text.contains([';', '&', '|', '\n']) {
                        self.words(std::mem::take(&mut words), None, place.weighing(Weight::None));
                    }
                }
                _ if child.is_named() || node.kind() != "command" => {
                    words.push(word::text_of(child, place.source));
                }
                _ => words.push(word::raw(child, place.source).to_owned()),
            }
        }
        words.extend(extra);
        let body = input.map(|input| word::raw(input, place.source));
        self.words(words, body, place);
        self.redirects(node, place, from);
        self.substitutions(node, place);
    }

    /// What a list of words runs, wrappers taken off one by one.
    fn words(&mut self, mut words: Vec<String>, input: Option<&str>, place: Place<'_>) {
        for _ in 0..SHELL_DEPTH_MAX {
            if words.first().is_none_or(String::is_empty) {
                return;
            }
            match unwrap::meaning(words, self.lens) {
                Meaning::Words(inner) => words = inner,
                Meaning::Shell(text) => return self.text(&text, place.weight),
                Meaning::ShellInput(words) => {
                    return match input {
                        Some(text) => self.text(text, place.weight),
                        None => self.push(words, place.weight),
                    };
                }
                Meaning::Program(words) => return self.push(words, place.weight),
                Meaning::Find(words, actions) => {
                    self.push(words, place.weight);
                    for action in actions {
                        self.words(action, None, place.weighing(Weight::None));
                    }
                    return;
                }
            }
        }
        self.understood = false;
    }

    fn push(&mut self, words: Vec<String>, weight: Weight) {
        if self.programs.len() >= COMMAND_PROGRAMS_MAX {
            self.understood = false;
            return;
        }
        let mut words = words.into_iter();
        let name = words.next().map(|it| base_name(&it).to_owned()).unwrap_or_default();
        let (args, decisive) = (words.collect(), weight.decisive());
        self.programs.push(Program { name, args, decisive, ..Program::default() });
    }

    /// Programs inside `$(…)`, backticks and `<(…)`, however deep in quotes and expansions.
    fn substitutions(&mut self, node: Node<'_>, place: Place<'_>) {
        if place.nesting >= SHELL_NESTING_MAX {
            self.understood = false;
            return;
        }
        let place = Place { nesting: place.nesting + 1, weight: Weight::None, ..place };
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "command_substitution" | "process_substitution" => self.sequence(child, place),
                "word" | "raw_string" | "string_content" | "comment" | "number" => {}
                _ => self.substitutions(child, place),
            }
        }
    }
}

/// The syntax tree, or `None` when the parser took more steps than allowed.
///
/// Behind a line of nothing but assignments and redirections the grammar may take the next line for more of the
/// command, blocks and all: such a line is parsed with `;` at its end.
pub(super) fn syntax(source: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let mut tree = parse_once(&mut parser, source)?;
    let mut ended = String::new();
    loop {
        let text = if ended.is_empty() { source } else { &ended };
        let ends = missed_ends(&tree, text);
        if ends.is_empty() {
            return Some(tree);
        }
        ended = text.to_owned();
        for end in ends {
            let blanks = " ".repeat(end.len().saturating_sub(1));
            ended.replace_range(end, &format!(";{blanks}"));
        }
        tree = parse_once(&mut parser, &ended)?;
    }
}

/// The ends of lines that stand within a simple command: a line's end, or the comment before it.
fn missed_ends(tree: &Tree, source: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if !source.trim_end().contains('\n') || !source.contains(['=', '>', '<']) {
        return found;
    }
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if node.parent().is_some_and(|it| it.kind() == "command")
            && let Some(next) = node.next_sibling()
        {
            let gap = source.get(node.end_byte()..next.start_byte()).unwrap_or_default();
            found.extend(line_end(gap).map(|at| match node.kind() {
                "comment" => node.byte_range(),
                _ => node.end_byte() + at..node.end_byte() + at + 1,
            }));
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}

/// Where a line ends that does not go on in the next one.
fn line_end(gap: &str) -> Option<usize> {
    let mut is_escaped = false;
    gap.bytes().position(|b| {
        let ends = b == b'\n' && !is_escaped;
        is_escaped = b == b'\\' && !is_escaped;
        ends
    })
}

fn parse_once(parser: &mut Parser, source: &str) -> Option<Tree> {
    let mut steps = 0;
    let mut within_bounds = |_: &tree_sitter::ParseState| {
        steps += 1;
        if steps > SHELL_STEPS_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut within_bounds);
    let bytes = source.as_bytes();
    let mut read = |offset: usize, _| bytes.get(offset..).unwrap_or_default();
    parser.parse_with_options(&mut read, None, Some(options))
}
