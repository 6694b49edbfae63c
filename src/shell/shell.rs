//! Shell text: which programs a command line runs, with which arguments, and which of them must have succeeded
//! if the whole line succeeded.
//!
//! Contains: the walk over the syntax tree, the recognition of wrappers (`UnwrapResult`), and the rules for
//! quotes and escapes, which `call` shares.
//! Does not contain: variables, substitutions and effects (`call`), or policy decisions.

use std::ops::{ControlFlow, Range};
use std::str::Chars;

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use super::glob::{begins_alike, word_matches};
use super::pattern::ValuesOf;
use super::program::Program;
use super::vocabulary::{ShellVocabulary, Wrapper};
use crate::limits::{
    COMMAND_PROGRAMS_MAX, SHELL_DEPTH_MAX, SHELL_NESTING_MAX, SHELL_STEPS_MAX, SHELL_TEXT_MAX,
};

/// Returns the programs of a command line in order, and whether the whole line was understood.
#[must_use]
pub fn parse(text: &str, lens: &dyn ShellVocabulary) -> (Vec<Program>, bool) {
    let mut reader = ProgramReader { lens, programs: Vec::new(), understood: true, text_depth: 0 };
    reader.text(text, StatusWeight::Status, 0);
    (reader.programs, reader.understood)
}

/// What the success of the whole line implies for a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatusWeight {
    /// Nothing.
    None,
    /// The exit status of the statement is the status of the line.
    Status,
    /// A failure of the statement ends the line (`set -e`, `|| exit 1`).
    Fatal,
}

impl StatusWeight {
    fn decisive(self) -> bool {
        match self {
            Self::None => false,
            Self::Status | Self::Fatal => true,
        }
    }
}

/// Position of the walk in one text.
#[derive(Clone, Copy)]
struct WalkState<'s> {
    source: &'s str,
    weight: StatusWeight,
    options: ShellOptions,
    nesting: usize,
}

impl WalkState<'_> {
    fn weighing(self, weight: StatusWeight) -> Self {
        Self { weight, ..self }
    }
}

struct ProgramReader<'l> {
    lens: &'l dyn ShellVocabulary,
    programs: Vec<Program>,
    understood: bool,
    text_depth: usize,
}

impl ProgramReader<'_> {
    /// Scans a text. `nesting`: the levels around it.
    fn text(&mut self, source: &str, weight: StatusWeight, nesting: usize) {
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
        let place = WalkState { source, weight, options: ShellOptions::default(), nesting };
        self.sequence(tree.root_node(), place);
        self.text_depth -= 1;
    }

    /// Scans statements. Only the last one has the status of the whole.
    fn sequence(&mut self, node: Node<'_>, mut place: WalkState<'_>) {
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
                (true, _) => StatusWeight::None,
                (false, true) => place.weight,
                (false, false) if !place.weight.decisive() => StatusWeight::None,
                (false, false) if place.options.errexit => StatusWeight::Fatal,
                (false, false) if exits_on_failure(*child, place.source) => StatusWeight::Fatal,
                (false, false) => StatusWeight::None,
            };
            self.statement(*child, place.weighing(weight));
            place.options = changed_options(*child, place.source, place.options);
        }
    }

    fn statement(&mut self, node: Node<'_>, place: WalkState<'_>) {
        if place.nesting >= SHELL_NESTING_MAX || self.programs.len() >= COMMAND_PROGRAMS_MAX {
            self.understood = false;
            return;
        }
        let place = WalkState { nesting: place.nesting + 1, ..place };
        match node.kind() {
            "command" | "declaration_command" | "unset_command" => self.command(node, place),
            "redirected_statement" => self.redirected(node, place),
            "list" => self.list(node, place),
            "pipeline" => self.pipeline(node, place),
            "subshell" | "compound_statement" => self.sequence(node, place),
            "command_substitution" | "process_substitution" => {
                self.sequence(node, place.weighing(StatusWeight::None));
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
                self.children(node, place.weighing(StatusWeight::None));
            }
            _ => self.substitutions(node, place),
        }
    }

    fn children(&mut self, node: Node<'_>, place: WalkState<'_>) {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            self.statement(child, place);
        }
    }

    /// Scans `a && b` and `a || b`.
    fn list(&mut self, node: Node<'_>, place: WalkState<'_>) {
        let count = node.child_count();
        let (Some(left), Some(right)) = (node.child(0), node.child(count.saturating_sub(1))) else {
            return;
        };
        let mut cursor = node.walk();
        let or = node.children(&mut cursor).any(|child| child.kind() == "||");
        self.pair(left, or, right, place);
    }

    fn pair(&mut self, left: Node<'_>, or: bool, right: Node<'_>, place: WalkState<'_>) {
        let (left_weight, right_weight) = if !or {
            // With `set -e`, only a failure of the last command of an `&&` list is fatal.
            match place.weight {
                StatusWeight::Fatal => (StatusWeight::None, StatusWeight::Fatal),
                weight @ (StatusWeight::None | StatusWeight::Status) => (weight, weight),
            }
        } else if gives_up(right, place.source) && place.weight.decisive() {
            (StatusWeight::Status, StatusWeight::None)
        } else {
            (StatusWeight::None, StatusWeight::None)
        };
        self.statement(left, place.weighing(left_weight));
        self.statement(right, place.weighing(right_weight));
    }

    fn pipeline(&mut self, node: Node<'_>, place: WalkState<'_>) {
        let mut cursor = node.walk();
        let members: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        for (index, member) in members.iter().enumerate() {
            let counts = index + 1 == members.len() || place.options.pipefail;
            let weight = if counts { place.weight } else { StatusWeight::None };
            self.statement(*member, place.weighing(weight));
        }
    }

    fn redirected(&mut self, node: Node<'_>, place: WalkState<'_>) {
        let heredoc = child_of_kind(node, "heredoc_redirect");
        let piped = heredoc.and_then(|heredoc| child_of_kind(heredoc, "pipeline"));
        let right = heredoc.and_then(|heredoc| heredoc.child_by_field_name("right"));
        let or = heredoc.is_some_and(|heredoc| child_of_kind(heredoc, "||").is_some());
        let weight = match (piped, right) {
            (Some(_), _) if !place.options.pipefail => StatusWeight::None,
            (_, Some(right)) if or => {
                if gives_up(right, place.source) {
                    place.weight
                } else {
                    StatusWeight::None
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
        let after = if or { StatusWeight::None } else { place.weight };
        for next in piped.into_iter().chain(right) {
            self.statement(next, place.weighing(after));
        }
    }

    /// Adds the files of output redirections to the last program since `from`.
    fn redirects(&mut self, node: Node<'_>, place: WalkState<'_>, from: usize) {
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

    fn command(&mut self, node: Node<'_>, place: WalkState<'_>) {
        self.fed_command(node, None, Vec::new(), place);
    }

    /// Scans a simple command with the here-document that it reads.
    fn fed_command(
        &mut self,
        node: Node<'_>,
        input: Option<Node<'_>>,
        extra: Vec<String>,
        place: WalkState<'_>,
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
                    // The grammar parses `cat <<A; next` as an error inside `cat`. Scan the rest as
                    // a new command.
                    self.understood = false;
                    let text = node_text(child, place.source);
                    if text.contains([';', '&', '|', '\n']) {
                        self.words(
                            std::mem::take(&mut words),
                            None,
                            place.weighing(StatusWeight::None),
                        );
                    }
                }
                _ if child.is_named() || node.kind() != "command" => {
                    words.push(word_text(child, place.source));
                }
                _ => words.push(node_text(child, place.source).to_owned()),
            }
        }
        words.extend(extra);
        let body = input.map(|input| node_text(input, place.source));
        self.words(words, body, place);
        self.redirects(node, place, from);
        self.substitutions(node, place);
    }

    /// Adds the program of a list of words, after all wrappers are removed.
    fn words(&mut self, mut words: Vec<String>, input: Option<&str>, place: WalkState<'_>) {
        if place.nesting >= SHELL_NESTING_MAX {
            self.understood = false;
            return;
        }
        let nesting = place.nesting + 1;
        for _ in 0..SHELL_DEPTH_MAX {
            if words.first().is_none_or(String::is_empty) {
                return;
            }
            match unwrap_command(words, self.lens) {
                UnwrapResult::Command(inner) => words = inner,
                UnwrapResult::Shell(text) => return self.text(&text, place.weight, nesting),
                UnwrapResult::ShellInput(words) => {
                    return match input {
                        Some(text) => self.text(text, place.weight, nesting),
                        None => self.push(words, place.weight),
                    };
                }
                UnwrapResult::Program(words) => return self.push(words, place.weight),
                UnwrapResult::Find(words, actions) => {
                    self.push(words, place.weight);
                    let place = WalkState { nesting, weight: StatusWeight::None, ..place };
                    actions.into_iter().for_each(|it| self.words(it, None, place));
                    return;
                }
            }
        }
        self.understood = false;
    }

    fn push(&mut self, words: Vec<String>, weight: StatusWeight) {
        if self.programs.len() >= COMMAND_PROGRAMS_MAX {
            self.understood = false;
            return;
        }
        let mut words = words.into_iter();
        let called = words.next().unwrap_or_default();
        let (name, folder) = (base_name(&called).to_owned(), own_folder(&called).to_owned());
        let (args, decisive) = (words.collect(), weight.decisive());
        self.programs.push(Program { name, folder, args, decisive, ..Program::default() });
    }

    /// Scans the programs inside `$(…)`, backticks and `<(…)` at any depth of quotes and
    /// expansions.
    fn substitutions(&mut self, node: Node<'_>, place: WalkState<'_>) {
        if place.nesting >= SHELL_NESTING_MAX {
            self.understood = false;
            return;
        }
        let place = WalkState { nesting: place.nesting + 1, weight: StatusWeight::None, ..place };
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

/// Parses shell text. `None` if the parser needs more steps than allowed.
///
/// After a line of only assignments and redirections, and before a line that begins with `\`, the grammar may parse the next line
/// as a part of the same command. Such a line is parsed again with `;` at its end, or without the `\`.
pub(crate) fn syntax(source: &str) -> Option<Tree> {
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
        for (end, sign) in ends {
            let blanks = " ".repeat(end.len().saturating_sub(1));
            ended.replace_range(end, &format!("{sign}{blanks}"));
        }
        tree = parse_once(&mut parser, &ended)?;
    }
}

/// Returns the line ends inside simple commands, each with its replacement: the newline, the comment before it, or the `\` behind it.
fn missed_ends(tree: &Tree, source: &str) -> Vec<(Range<usize>, char)> {
    let mut found = Vec::new();
    let may_miss = source.contains(['=', '>', '<']) || source.contains("\n\\");
    if !source.trim_end().contains('\n') || !may_miss {
        return found;
    }
    let mut cursor = tree.walk();
    // The kind of each node above: a node finds its own parent only from the root.
    let mut above: Vec<&str> = Vec::new();
    loop {
        let node = cursor.node();
        let is_word = matches!(node.kind(), "word" | "concatenation");
        // The newlines before `\` become a part of the word. They also separate the items of an array.
        if is_word
            && above.last().is_some_and(|it| *it != "array")
            && let Some(word) = source.get(node.byte_range()).filter(|it| it.starts_with('\n'))
        {
            let at = node.start_byte();
            let sign = word.find('\\').filter(|it| {
                word.as_bytes().get(it + 1).is_some_and(|next| next.is_ascii_alphanumeric())
            });
            found.push(sign.map_or((at..at + 1, ';'), |it| (at + it..at + it + 1, ' ')));
        } else if above.last() == Some(&"command")
            && let Some(next) = node.next_sibling()
        {
            let gap = source.get(node.end_byte()..next.start_byte()).unwrap_or_default();
            found.extend(line_end(gap).map(|at| match node.kind() {
                "comment" => (node.byte_range(), ';'),
                _ => (node.end_byte() + at..node.end_byte() + at + 1, ';'),
            }));
        }
        if cursor.goto_first_child() {
            above.push(node.kind());
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
            above.pop();
        }
    }
}

/// Returns the position of the first newline that is not escaped.
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

/// Builtins and keywords that run the words after them.
const PREFIXES: [&str; 5] = ["command", "exec", "builtin", "time", "coproc"];
/// Reserved words before a command. After an error (`! if a; then b; fi`), the grammar parses them
/// as programs, which a shell never does.
const RESERVED: [&str; 9] = ["!", "{", "if", "then", "elif", "else", "while", "until", "do"];
/// The prefix that starts a process for a command, which may be a function.
pub(crate) const COPROCESS: &str = "coproc";
/// Programs that search for files.
const FINDERS: [&str; 3] = ["find", "fd", "fdfind"];
/// Options of `find` and `fd` that run a program for each file.
const FIND_ACTIONS: [&str; 8] =
    ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

/// A word that a shell passes to a program.
pub(crate) trait ShellWord: Clone {
    /// Returns the text of the word.
    fn text(&self) -> &str;
    /// Joins words, separated by blanks.
    fn joined(words: &[Self]) -> Self;
    /// Returns the part from a byte offset to the end.
    fn after(&self, at: usize) -> Self;
    /// Quotes the word, so that a shell reads it as one word.
    fn quoted(&self) -> Self;
}

impl ShellWord for String {
    fn text(&self) -> &str {
        self
    }

    fn joined(words: &[Self]) -> Self {
        words.join(" ")
    }

    fn after(&self, at: usize) -> Self {
        self.get(at..).unwrap_or_default().to_owned()
    }

    fn quoted(&self) -> Self {
        quote(self)
    }
}

/// What a list of words runs, after one wrapper was removed.
pub(crate) enum UnwrapResult<W> {
    /// A program that wraps no other program.
    Program(Vec<W>),
    /// Words to unwrap again. They are the end of the given list.
    Command(Vec<W>),
    /// Shell text.
    Shell(W),
    /// A shell that reads its commands from standard input.
    ShellInput(Vec<W>),
    /// `find`, and the commands that it runs for each file.
    Find(Vec<W>, Vec<Vec<W>>),
}

/// Returns the program name without its directory.
pub(crate) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(word)
}

/// Returns the name of a program without its directory and without the ending that Windows gives it.
pub(crate) fn called_name(word: &str) -> &str {
    let name = base_name(word);
    match name.len().checked_sub(4).and_then(|at| name.split_at_checked(at)) {
        Some((stem, ending)) if !stem.is_empty() && ending.eq_ignore_ascii_case(".exe") => stem,
        Some(_) | None => name,
    }
}

/// Returns the directory of a program that is called by a path. Empty for directories of the
/// system.
pub(crate) fn own_folder(word: &str) -> &str {
    const SYSTEM: [&str; 5] = ["/bin/", "/sbin/", "/usr/", "/opt/", "/nix/"];
    let folder = word.rsplit_once('/').map_or("", |(folder, _)| folder);
    if SYSTEM.iter().any(|system| word.starts_with(system)) { "" } else { folder }
}

/// Returns whether a word is a keyword. A function may follow it.
pub(crate) fn is_keyword(word: &str) -> bool {
    RESERVED.contains(&word) || word == COPROCESS
}

/// Removes one wrapper, if there is one.
pub(crate) fn unwrap_command<W: ShellWord>(
    words: Vec<W>,
    lens: &dyn ShellVocabulary,
) -> UnwrapResult<W> {
    let Some((first, args)) = words.split_first() else {
        return UnwrapResult::Program(words);
    };
    if RESERVED.contains(&first.text()) && !args.is_empty() {
        return UnwrapResult::Command(args.to_vec());
    }
    let name = called_name(first.text());
    if name == "eval" && !args.is_empty() {
        return UnwrapResult::Shell(W::joined(args));
    }
    if PREFIXES.contains(&name)
        && let Some(next) = args.iter().position(|word| !word.text().starts_with('-'))
        && !args.iter().take(next).any(|option| matches!(option.text(), "-v" | "-V" | "-a"))
    {
        return UnwrapResult::Command(args.iter().skip(next).cloned().collect());
    }
    // The longest wrapper wins: `uv run` before `uv`.
    let wrapper = lens
        .wrappers()
        .named(name)
        .filter(|wrapper| begins_alike(&wrapper.command, name))
        .filter_map(|wrapper| Some((wrapper, after_command(wrapper, name, args, lens)?)))
        .max_by_key(|(wrapper, _)| wrapper.command.split_whitespace().count());
    if let Some((wrapper, rest)) = wrapper
        && let Some(inner) = inner(wrapper, rest, &words)
    {
        return inner;
    }
    if FINDERS.contains(&name) {
        let actions = find_actions(args);
        if !actions.is_empty() {
            return UnwrapResult::Find(words, actions);
        }
    }
    UnwrapResult::Program(words)
}

/// Returns the arguments after the words of the wrapper. Options between these words are skipped.
fn after_command<'a, W: ShellWord>(
    wrapper: &Wrapper,
    name: &str,
    args: &'a [W],
    lens: &dyn ShellVocabulary,
) -> Option<&'a [W]> {
    let mut wanted = wrapper.command.split_whitespace();
    if !word_matches(wanted.next()?, name) {
        return None;
    }
    let values = ValuesOf { program: name, rows: lens.value_options() };
    let (mut rest, mut sub) = (args, None);
    for word in wanted {
        loop {
            let (next, tail) = rest.split_first()?;
            rest = tail;
            let next = next.text();
            if next == word {
                break;
            }
            if !next.starts_with('-') {
                return None;
            }
            if values.takes_value(next) || sub.is_some_and(|sub| values.taken_by(sub, next)) {
                rest = rest.get(1..)?;
            }
        }
        sub = sub.or(Some(word));
    }
    Some(rest)
}

/// Returns what a wrapper runs. `None` if it wraps nothing here.
fn inner<W: ShellWord>(wrapper: &Wrapper, args: &[W], all: &[W]) -> Option<UnwrapResult<W>> {
    let mut rest = args;
    let mut to_skip = wrapper.skip;
    while let Some((whole, tail)) = rest.split_first() {
        let word = whole.text();
        if word == "--" {
            rest = tail.get(to_skip..)?;
            break;
        }
        let is_option = word.len() > 1 && word.starts_with('-');
        if is_option
            && bundles(word, &wrapper.check_option)
            && !bundles(word, &wrapper.shell_option)
        {
            return None;
        }
        if is_option && names_shell_option(word, &wrapper.shell_option) {
            return shell_text(wrapper, whole, tail).map(UnwrapResult::Shell);
        }
        if is_option {
            // The last letter of a bundle may take the next word: `bash -euo pipefail`.
            let takes_value = wrapper.value_options.iter().any(|option| {
                option == word || (bundles(word, option) && word.ends_with(last_of(option)))
            });
            rest = if takes_value { tail.get(1..).unwrap_or_default() } else { tail };
        } else if is_assignment(word) || (word == "-" && wrapper.check_option.is_empty()) {
            // `env - program`, `su - user`. For a shell, `-` is its standard input.
            rest = tail;
        } else if to_skip > 0 {
            to_skip -= 1;
            rest = tail;
        } else {
            break;
        }
    }
    // `runuser user -c text`, `vagrant ssh machine -c text`.
    if let [_, option, text] = rest
        && wrapper.check_option.is_empty()
        && option.text().starts_with('-')
        && names_shell_option(option.text(), &wrapper.shell_option)
    {
        return shell_text(wrapper, option, std::slice::from_ref(text)).map(UnwrapResult::Shell);
    }
    match (wrapper.shell_option.is_empty(), rest.is_empty()) {
        // For a shell, the rest is a script file: `bash ./check.sh` runs `check.sh`.
        (_, false) => Some(UnwrapResult::Command(rest.to_vec())),
        (true, true) => None,
        (false, true) => Some(UnwrapResult::ShellInput(all.to_vec())),
    }
}

/// Returns the shell text that is the value of an option. `-c'text'` and `--command=text` contain
/// it; for `env -S text words` the words are a part of it.
fn shell_text<W: ShellWord>(wrapper: &Wrapper, option: &W, after: &[W]) -> Option<W> {
    let (word, short) = (option.text(), wrapper.shell_option.as_str());
    let splits = short == "-S";
    let long = long_form(short).and_then(|it| word.strip_prefix(it));
    // In the bundle `env -vStext`, the text follows the letter.
    let bundled = || word.split_once('S').filter(|_| splits).map(|it| it.1);
    let own = long.or_else(|| word.strip_prefix(short)).or_else(bundled);
    let own = own.filter(|it| !it.is_empty());
    let glued = own.filter(|it| splits || it.starts_with('=') || it.contains(' '));
    let start = |it: &str| word.len().saturating_sub(it.trim_start_matches('=').len());
    let glued = glued.map(|it| option.after(start(it)));
    let mut after = after.iter().skip_while(|it| it.text() == "--").cloned();
    let text = glued.or_else(|| after.next())?;
    if !splits {
        return Some(text);
    }
    let words: Vec<W> = std::iter::once(text).chain(after.map(|it| it.quoted())).collect();
    Some(W::joined(&words))
}

/// Returns whether the value of an option is shell text. The option may be in a bundle: `-lc`.
fn names_shell_option(word: &str, shell_option: &str) -> bool {
    if shell_option.is_empty() {
        return false;
    }
    let long = long_form(shell_option).and_then(|it| word.strip_prefix(it));
    let is_long = long.is_some_and(|it| it.is_empty() || it.starts_with('='));
    word == shell_option || is_long || bundles(word, shell_option)
}

/// Returns the long name of an option whose value is shell text.
fn long_form(shell_option: &str) -> Option<&'static str> {
    match shell_option {
        "-c" => Some("--command"),
        "-S" => Some("--split-string"),
        _ => None,
    }
}

/// Returns whether a word is a bundle that contains a one-letter option: `-lc` contains `-c`.
fn bundles(word: &str, option: &str) -> bool {
    let letter = option.strip_prefix('-').filter(|letters| letters.len() == 1);
    let is_bundle = word.starts_with('-') && !word.starts_with("--");
    letter.is_some_and(|letter| is_bundle && word.contains(letter))
}

/// Returns the last letter of an option.
fn last_of(option: &str) -> char {
    option.chars().next_back().unwrap_or('-')
}

/// Returns whether a word is `NAME=value`.
pub fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

fn find_actions<W: ShellWord>(args: &[W]) -> Vec<Vec<W>> {
    let mut actions = Vec::new();
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        if FIND_ACTIONS.contains(&word.text()) {
            let words = rest.by_ref().take_while(|word| !matches!(word.text(), ";" | "+"));
            actions.push(words.cloned().collect());
        }
    }
    actions
}

/// Shell options that change the meaning of an exit status.
#[derive(Debug, Clone, Copy, Default)]
struct ShellOptions {
    /// `set -e`
    errexit: bool,
    /// `set -o pipefail`
    pipefail: bool,
}

pub(crate) fn child_of_kind<'t>(node: Node<'t>, kind: &str) -> Option<Node<'t>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).find(|child| child.kind() == kind)
}

/// Returns the words behind the delimiter of a here-document.
fn heredoc_words(heredoc: Node<'_>, source: &str) -> Vec<String> {
    let mut cursor = heredoc.walk();
    heredoc
        .children_by_field_name("argument", &mut cursor)
        .map(|argument| word_text(argument, source))
        .collect()
}

/// Returns the file that an output redirection writes. `2>&1` writes none.
fn written_file(redirect: Node<'_>, source: &str) -> Option<String> {
    let mut cursor = redirect.walk();
    let operator = redirect.children(&mut cursor).find(|child| !child.is_named())?;
    let file = word_text(redirect.child_by_field_name("destination")?, source);
    let to_descriptor = || file == "-" || file.bytes().all(|b| b.is_ascii_digit());
    match operator.kind() {
        ">" | ">>" | ">|" | "&>" | "&>>" | "<>" => Some(file),
        ">&" => (!to_descriptor()).then_some(file),
        _ => None,
    }
}

/// Returns whether a statement ends the shell with a failure: `exit 1`, `return 1`, `false`.
fn gives_up(node: Node<'_>, source: &str) -> bool {
    let text = node_text(node, source).trim_matches(|c: char| "{}; ".contains(c));
    let last = text.rsplit([';', '\n']).next().unwrap_or(text).trim();
    let mut words = last.split_whitespace();
    match (words.next(), words.next()) {
        (Some("false"), None) => true,
        (Some("exit" | "return"), Some(code)) => code.parse::<u8>().is_ok_and(|code| code != 0),
        _ => false,
    }
}

/// Returns whether a statement is `… || exit 1`.
fn exits_on_failure(node: Node<'_>, source: &str) -> bool {
    let right = node.child(node.child_count().saturating_sub(1));
    node.kind() == "list"
        && child_of_kind(node, "||").is_some()
        && right.is_some_and(|right| {
            gives_up(right, source) && node_text(right, source).contains("exit")
        })
}

/// Returns the shell options after a statement such as `set -euo pipefail`.
fn changed_options(node: Node<'_>, source: &str, mut options: ShellOptions) -> ShellOptions {
    let text = node_text(node, source);
    let mut words = text.split_whitespace();
    if node.kind() != "command" || words.next() != Some("set") {
        return options;
    }
    let mut long = None;
    for word in words {
        let on = word.starts_with('-');
        match (long.take(), word) {
            (Some(on), "errexit") => options.errexit = on,
            (Some(on), "pipefail") => options.pipefail = on,
            _ if on || word.starts_with('+') => {
                if word.contains('e') {
                    options.errexit = on;
                }
                if word.contains('o') {
                    long = Some(on);
                }
            }
            _ => {}
        }
    }
    options
}

/// Returns the text of a word as the shell passes it. Substitutions stay as written.
fn word_text(node: Node<'_>, source: &str) -> String {
    let mut out = String::new();
    append_word_text(node, source, SHELL_NESTING_MAX, &mut out);
    out
}

/// Returns the source of a node. Inside quotes, the grammar adds the blanks before a node to it;
/// they are removed.
pub(crate) fn node_text<'s>(node: Node<'_>, source: &'s str) -> &'s str {
    let whole = source.get(node.byte_range()).unwrap_or_default();
    let begins: &[char] = match node.kind() {
        "\"" => &['"'],
        "simple_expansion" | "expansion" | "arithmetic_expansion" => &['$'],
        "command_substitution" => &['$', '`'],
        _ => return whole,
    };
    whole.find(begins).and_then(|at| whole.get(at..)).unwrap_or(whole)
}

/// Appends the text of a word. Parts below `depth` levels stay as written.
fn append_word_text(node: Node<'_>, source: &str, depth: usize, out: &mut String) {
    let text = node_text(node, source);
    let Some(depth) = depth.checked_sub(1) else { return out.push_str(text) };
    match node.kind() {
        "raw_string" => out.push_str(strip_delimiters(text, "'", "'")),
        "string" => unescape(strip_delimiters(text, "\"", "\""), |c| "\"\\$`".contains(c), out),
        "translated_string" => {
            unescape(strip_delimiters(text, "$\"", "\""), |c| "\"\\$`".contains(c), out)
        }
        "ansi_c_string" => unescape_ansi(strip_delimiters(text, "$'", "'"), out),
        "word" => unescape(text, |_| true, out),
        "concatenation" | "command_name" => {
            let mut end = node.start_byte();
            let mut cursor = node.walk();
            for child in node.children(&mut cursor) {
                out.push_str(source.get(end..child.start_byte()).unwrap_or_default());
                append_word_text(child, source, depth, out);
                end = child.end_byte();
            }
        }
        _ => out.push_str(text),
    }
}

pub(crate) fn strip_delimiters<'t>(text: &'t str, open: &str, close: &str) -> &'t str {
    let text = text.strip_prefix(open).unwrap_or(text);
    text.strip_suffix(close).unwrap_or(text)
}

/// Removes the backslash before each character for which `protects` is true. An escaped newline is
/// removed.
pub(crate) fn unescape(text: &str, protects: impl Fn(char) -> bool, out: &mut String) {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('\n') => {}
            Some(next) if protects(next) => out.push(next),
            Some(next) => out.extend(['\\', next]),
            None => out.push('\\'),
        }
    }
}

/// Unescapes the text of an expanded here-document.
pub(crate) fn unescape_heredoc(text: &str) -> String {
    let mut out = String::new();
    unescape(text, |c| "\\$`".contains(c), &mut out);
    out
}

pub(crate) fn unescape_ansi(text: &str, out: &mut String) {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let mut octal = chars.clone();
        let Some(kind) = chars.next() else { break };
        let code = match kind {
            'x' => escape_number(&mut chars, 16, 2),
            'u' => escape_number(&mut chars, 16, 4),
            'U' => escape_number(&mut chars, 16, 8),
            // A control character: the letter without its upper bits.
            'c' => chars.next().map(|it| u32::from(it) & 0x1f),
            '0'..='7' => {
                let code = escape_number(&mut octal, 8, 3);
                chars = octal;
                code
            }
            plain => {
                out.push(match plain {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    'e' | 'E' => '\u{1b}',
                    other => other,
                });
                continue;
            }
        };
        let code = char::from_u32(code.unwrap_or_default());
        out.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
}

/// Parses the number of an escape sequence with at most `most` digits. `None` without a digit.
pub(crate) fn escape_number(chars: &mut Chars<'_>, radix: u32, most: usize) -> Option<u32> {
    let mut value = None;
    for _ in 0..most {
        let Some(digit) = chars.clone().next().and_then(|it| it.to_digit(radix)) else { break };
        value = Some(value.unwrap_or(0_u32).wrapping_mul(radix).wrapping_add(digit));
        chars.next();
    }
    value
}

/// Quotes a word, so that a shell reads it as that word.
#[must_use]
pub fn quote(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(&b);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
