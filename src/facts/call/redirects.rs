//! Redirections: the files that a statement writes and reads, here-documents, and what the line itself
//! wrote into a file before.

use tree_sitter::Node;

use super::super::shell::node::child_of_kind;
use super::super::shell::word;
use super::scan::{Output, Scanner, Scope};
use super::value::Text;
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
                    let mut cursor = child.walk();
                    let text = child.named_children(&mut cursor).last();
                    let text = text.map(|it| self.text_of(it, source, scope));
                    found.input = text.map(|it| Input {
                        piped: true,
                        text: it.all().map(str::to_owned),
                        from: it.from,
                        ..Input::default()
                    });
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

    fn heredoc(&mut self, node: Node<'_>, source: &str, scope: &mut Scope) -> Input {
        let Some(body) = child_of_kind(node, "heredoc_body") else { return Input::default() };
        let start = child_of_kind(node, "heredoc_start").map(|it| word::raw(it, source));
        let is_quoted = start.is_some_and(|it| it.contains(['\'', '"', '\\']));
        if is_quoted || body.named_child_count() == 0 {
            let text = self.heredocs.put_back(word::raw(body, source));
            return Input { piped: true, text: Some(text), ..Input::default() };
        }
        let text = self.text_of(body, source, scope);
        // A part that cannot be known stays as it was written: the shell that reads it may know.
        Input { piped: true, text: Some(text.text), from: text.from, ..Input::default() }
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
        let Some((destination, words)) = destinations.split_first() else { return };
        for word in words {
            let words = self.words_of(*word, source, scope);
            found.words.extend(words);
        }
        let destination = *destination;
        let mut cursor = node.walk();
        let operator = node.children(&mut cursor).find(|it| !it.is_named());
        let operator = operator.map(|it| it.kind().to_owned()).unwrap_or_default();
        let descriptor = child_of_kind(node, "file_descriptor").map(|it| word::raw(it, source));
        let file = self.file_of(destination, source, scope);
        let is_descriptor = file.text == "-" || file.text.bytes().all(|b| b.is_ascii_digit());
        match operator.as_str() {
            "<" => {
                found.input = Some(Input {
                    piped: file.pipe,
                    text: file.piped.clone(),
                    from: file.from.clone(),
                    is_file: !file.pipe,
                    files: Vec::new(),
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
