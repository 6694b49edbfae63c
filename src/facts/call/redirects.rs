//! Redirections: the files that a statement writes and reads, here-documents, and what the line itself
//! wrote into a file before.

use tree_sitter::Node;

use super::super::shell::node::child_of_kind;
use super::super::shell::word;
use super::scan::{Output, Scanner, Scope};
use super::units::whole;
use super::value::Text;
use super::words::{Word, touching};
use super::{Input, Invocation};

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
        let start = child_of_kind(node, "heredoc_start").map(|it| word::raw(it, source));
        let is_quoted = start.is_some_and(|it| it.contains(['\'', '"', '\\']));
        let lost = first_line_lost(node, source).map(|from| {
            let end =
                child_of_kind(node, "heredoc_end").map_or(body.end_byte(), |it| it.start_byte());
            source.get(from..end).unwrap_or_default()
        });
        if is_quoted {
            let text = self.heredocs.put_back(lost.unwrap_or_else(|| word::raw(body, source)));
            return Input { piped: true, text: Some(text), ..Input::default() };
        }
        let units = match lost {
            None if body.named_child_count() > 0 => {
                self.units_of(body.start_byte(), &[body], source, scope)
            }
            lost => {
                self.inner_commands(node, source, scope);
                let raw = self.heredocs.put_back(lost.unwrap_or_else(|| word::raw(body, source)));
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
        let descriptor = child_of_kind(node, "file_descriptor").map(|it| word::raw(it, source));
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
    let last = word::raw(node, source).rsplit(char::is_whitespace).next().unwrap_or_default();
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
    node.kind() != "heredoc_body" && word::raw(node, source).starts_with("\n\\")
}
