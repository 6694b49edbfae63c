//! From text to tree: YAML events become nodes, and everything outside the format is reported.
//! Reading is bounded in depth, nodes, bytes and findings, and no alias is ever expanded. Only this
//! file and `syntax` name the YAML event parser.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use granit_parser::{Event, Parser, StructureStyle};

use super::suggestion::{Suggestion, single_quoted};
use super::syntax::{ParserContext, in_quotes, reads_past, syntax_error};
use super::{Diagnostic, Node, NodeKind, Scalar, ScalarStyle, Source, Span, quoted};
use crate::limits::{FILE_FINDINGS_MAX, POLICY_FILE_BYTES_MAX, YAML_DEPTH_MAX, YAML_NODES_MAX};

/// Parses one file. The tree is `None` if the file contains only comments, or has a syntax error; then the
/// findings contain an error.
#[must_use]
pub fn parse(source: &Arc<Source>) -> (Option<Node>, Vec<Diagnostic>) {
    let mut builder = TreeBuilder::new(source);
    let size = source.text.len();
    if size > POLICY_FILE_BYTES_MAX {
        let message = format!("the file has {size} bytes; the limit is {POLICY_FILE_BYTES_MAX}");
        builder.report(Diagnostic::error("limit-exceeded", builder.span(0..0), message));
        return (None, builder.findings);
    }
    builder.refuse_ambiguous_characters();
    let options = granit_parser::options! {
        emit_comments: false,
        emit_unresolved_aliases: true,
        emit_anchor_events: true,
        disallow_directives: true,
        flow_nesting_limit: YAML_DEPTH_MAX,
        block_nesting_limit: YAML_DEPTH_MAX,
    };
    for event in Parser::new_from_str_with_options(&source.text, options) {
        let step = match event {
            Ok((event, at)) => builder.absorb(event, &at),
            Err(error) => {
                let finding = syntax_error(source, &error, builder.surroundings());
                builder.report(finding);
                Err(ParseAbort)
            }
        };
        if step.is_err() {
            return (None, builder.findings);
        }
    }
    (builder.root.filter(|root| !root.is_null()), builder.findings)
}

/// The comments of a file, as byte ranges; those after a syntax error are not seen.
#[must_use]
pub fn comments(source: &Source) -> Vec<Range<usize>> {
    let options = granit_parser::options! { emit_comments: true };
    let events = Parser::new_from_str_with_options(&source.text, options);
    let comments = events.map_while(Result::ok);
    let comments = comments.filter(|(event, _)| matches!(event, Event::Comment(..)));
    comments.filter_map(|(_, at)| at.byte_range()).collect()
}

/// Reading cannot go on; why is among the findings.
struct ParseAbort;

/// A collection whose end has not been seen.
struct OpenCollection {
    start: usize,
    flow: bool,
    rejected: bool,
    content: NodeContent,
}

enum NodeContent {
    List(Vec<Node>),
    Map { entries: Vec<(Node, Node)>, key: Option<Node> },
}

struct TreeBuilder<'a> {
    source: &'a Arc<Source>,
    open: Vec<OpenCollection>,
    root: Option<Node>,
    documents: usize,
    nodes: usize,
    findings: Vec<Diagnostic>,
}

impl<'a> TreeBuilder<'a> {
    fn new(source: &'a Arc<Source>) -> Self {
        let (open, findings) = (Vec::new(), Vec::new());
        Self { source, open, root: None, documents: 0, nodes: 0, findings }
    }

    fn span(&self, range: Range<usize>) -> Span {
        Span { source: Arc::clone(self.source), start: range.start, end: range.end }
    }

    fn report(&mut self, finding: Diagnostic) {
        self.findings.push(finding);
    }

    /// What reading is inside of: the innermost open bracket, or the value of a key.
    fn surroundings(&self) -> ParserContext {
        let Some(open) = self.open.last() else {
            return ParserContext::default();
        };
        let key = match &open.content {
            NodeContent::Map { key, .. } => key.as_ref().map(|it| it.span.clone()),
            NodeContent::List(_) => None,
        };
        let bracket = open.flow.then(|| self.span(open.start..open.start + 1));
        ParserContext { bracket, key }
    }

    /// Characters that end a line for some YAML readers and not for others, so that a text could
    /// mean two things.
    fn refuse_ambiguous_characters(&mut self) {
        let text = self.source.text.as_str();
        if text.is_ascii() {
            return;
        }
        let inside = |(at, c): &(usize, char)| {
            matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}') || (*c == '\u{feff}' && *at > 0)
        };
        for (at, c) in text.char_indices().filter(inside).take(FILE_FINDINGS_MAX) {
            let (span, code) = (self.span(at..at + c.len_utf8()), u32::from(c));
            let message = format!("the invisible character U+{code:04X} is not part of the format");
            let help = format!("delete it, or write `\\u{code:04x}` inside double quotes");
            self.report(Diagnostic::error("yaml-syntax", span, message).with_help(help));
        }
    }

    fn absorb(&mut self, event: Event<'_>, at: &granit_parser::Span) -> Result<(), ParseAbort> {
        let range = at.byte_range().unwrap_or_default();
        let tag = at.tag_span().and_then(|it| it.byte_range());
        match event {
            Event::Scalar(text, style, _, _) => {
                let kind = match tag {
                    Some(tag) => self.reject_tag(tag),
                    None => NodeKind::Scalar(self.scalar(&text, style, &range, at.indent)),
                };
                let span = self.span(self.visible(range));
                self.place(Node { span, kind })
            }
            Event::SequenceStart(style, _, _) => {
                self.begin(NodeContent::List(Vec::new()), style, range.start, tag)
            }
            Event::MappingStart(style, _, _) => {
                let content = NodeContent::Map { entries: Vec::new(), key: None };
                self.begin(content, style, range.start, tag)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(range.end),
            Event::Alias(_) | Event::UnresolvedAlias(_) => self.alias(range),
            Event::Anchor(..) => self.anchor(range),
            Event::DocumentStart(..) => self.document(range),
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd | Event::Comment(..) => {
                Ok(())
            }
            _ => Ok(()), // the enum is non-exhaustive; the parser's version is pinned
        }
    }

    /// The range without the line breaks and blanks a block scalar ends with.
    fn visible(&self, range: Range<usize>) -> Range<usize> {
        let text = self.source.text.get(range.clone()).unwrap_or_default();
        range.start..range.start + text.trim_end().len()
    }

    fn begin(
        &mut self,
        content: NodeContent,
        style: StructureStyle,
        start: usize,
        tag: Option<Range<usize>>,
    ) -> Result<(), ParseAbort> {
        let rejected = tag.map(|tag| self.reject_tag(tag)).is_some();
        let flow = style == StructureStyle::Flow;
        self.open.push(OpenCollection { start, flow, rejected, content });
        if self.open.len() > YAML_DEPTH_MAX {
            let message = format!("lists and maps are nested more than {YAML_DEPTH_MAX} deep");
            self.report(Diagnostic::error("limit-exceeded", self.span(start..start), message));
            return Err(ParseAbort);
        }
        Ok(())
    }

    fn end(&mut self, end: usize) -> Result<(), ParseAbort> {
        let Some(OpenCollection { start, flow, rejected, content }) = self.open.pop() else {
            return Ok(());
        };
        let (kind, last) = match content {
            NodeContent::List(items) => {
                let last = items.last().map(|it| it.span.end);
                (NodeKind::List(items.into()), last)
            }
            NodeContent::Map { entries, .. } => {
                let last = entries.last().map(|(_, value)| value.span.end);
                (NodeKind::Map(self.without_duplicates(entries).into()), last)
            }
        };
        let end = if flow { end } else { last.unwrap_or(start) };
        let kind = if rejected { NodeKind::Invalid } else { kind };
        self.place(Node { span: self.span(start..end), kind })
    }

    fn place(&mut self, node: Node) -> Result<(), ParseAbort> {
        let at = node.span.start;
        let awaits_key = self
            .open
            .last()
            .is_some_and(|open| matches!(open.content, NodeContent::Map { key: None, .. }));
        let node = if awaits_key { self.checked_key(node) } else { node };
        match self.open.last_mut().map(|open| &mut open.content) {
            Some(NodeContent::List(items)) => items.push(node),
            Some(NodeContent::Map { entries, key }) => match key.take() {
                Some(name) => entries.push((name, node)),
                None => *key = Some(node),
            },
            None if self.documents <= 1 => self.root = Some(node),
            None => {}
        }
        self.nodes += 1;
        if self.nodes > YAML_NODES_MAX {
            let message = format!("the file has more than {YAML_NODES_MAX} values");
            self.report(Diagnostic::error("limit-exceeded", self.span(at..at), message));
            return Err(ParseAbort);
        }
        self.unless_too_many(at)
    }

    fn unless_too_many(&mut self, at: usize) -> Result<(), ParseAbort> {
        if self.findings.len() < FILE_FINDINGS_MAX {
            return Ok(());
        }
        let message = format!("stopped reading after {FILE_FINDINGS_MAX} findings in this file");
        self.report(Diagnostic::error("limit-exceeded", self.span(at..at), message));
        Err(ParseAbort)
    }

    fn checked_key(&mut self, node: Node) -> Node {
        let refusal = match &node.kind {
            NodeKind::Invalid => return node,
            NodeKind::Scalar(it) if it.text == "<<" && it.style == ScalarStyle::Plain => (
                "unsupported-yaml",
                "merge keys are not part of the format",
                "write the entries out here",
            ),
            NodeKind::Scalar(_) if node.is_null() => {
                ("wrong-type", "an entry has no key", "write a name before the `:`")
            }
            NodeKind::Scalar(_) => return node,
            // `{{ name }}` is one mistake.
            NodeKind::Map(entries)
                if entries.iter().any(|(key, _)| key.kind == NodeKind::Invalid) =>
            {
                return Node { kind: NodeKind::Invalid, ..node };
            }
            NodeKind::List(_) | NodeKind::Map(_) => (
                "wrong-type",
                "a key must be text, not a list or a map",
                "a text that starts with `{` or `[` needs quotes",
            ),
        };
        let (code, message, help) = refusal;
        self.report(Diagnostic::error(code, node.span.clone(), message).with_help(help));
        Node { kind: NodeKind::Invalid, ..node }
    }

    /// Reports keys that come again; the first one counts.
    fn without_duplicates(&mut self, entries: Vec<(Node, Node)>) -> Vec<(Node, Node)> {
        let mut names: Vec<&str> = entries.iter().filter_map(|(key, _)| key.text()).collect();
        names.sort_unstable();
        if names.windows(2).all(|pair| pair.first() != pair.last()) {
            return entries; // As nearly every map is.
        }
        let mut first: BTreeMap<String, Span> = BTreeMap::new();
        let mut kept = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let Some(name) = key.text() else {
                kept.push((key, value));
                continue;
            };
            if let Some(earlier) = first.get(name).cloned() {
                if self.findings.len() < FILE_FINDINGS_MAX {
                    let message = format!("key {} is given twice", quoted(name));
                    self.report(
                        Diagnostic::error("duplicate-key", key.span, message)
                            .with_related(earlier, "first given here")
                            .with_help("keep one of them"),
                    );
                }
                continue;
            }
            first.insert(name.to_owned(), key.span.clone());
            kept.push((key, value));
        }
        kept
    }

    fn reject_tag(&mut self, range: Range<usize>) -> NodeKind {
        let span = self.span(range);
        let message = format!("tags are not part of the format: {}", quoted(span.text()));
        let fix = if span.text().starts_with("!!") {
            "leave the tag away, or put the value in quotes to make it text".into()
        } else {
            in_quotes(self.source, span.start)
                .because(", because YAML reads an unquoted `!` as a tag")
        };
        self.report(Diagnostic::error("unsupported-yaml", span, message).suggest(fix));
        NodeKind::Invalid
    }

    fn alias(&mut self, range: Range<usize>) -> Result<(), ParseAbort> {
        let span = self.span(range);
        let message = format!("aliases are not part of the format: {}", quoted(span.text()));
        let help = "write the value out; a text that starts with `*`, such as a glob, needs quotes";
        // No name of an alias has such characters.
        let name = span.text().trim_end_matches(':');
        let is_glob = name.trim_start_matches('*').contains(['.', '/', '*']);
        let glob = Span { end: span.start + name.len(), ..span.clone() };
        let edit = (glob, single_quoted(name));
        let fix = Suggestion::edited(help, Some(edit).filter(|it| is_glob && reads_past(it)));
        self.report(Diagnostic::error("unsupported-yaml", span.clone(), message).suggest(fix));
        self.place(Node { span, kind: NodeKind::Invalid })
    }

    fn anchor(&mut self, range: Range<usize>) -> Result<(), ParseAbort> {
        let (at, span) = (range.start, self.span(range));
        let message = format!("anchors are not part of the format: {}", quoted(span.text()));
        let help =
            "write the value out where it is needed; a text that starts with `&` needs quotes";
        self.report(Diagnostic::error("unsupported-yaml", span, message).with_help(help));
        self.unless_too_many(at)
    }

    fn document(&mut self, range: Range<usize>) -> Result<(), ParseAbort> {
        self.documents += 1;
        let at = range.start;
        if self.documents > 1 {
            let message = "a policy file is one YAML document, and here begins another";
            self.report(
                Diagnostic::error("unsupported-yaml", self.span(range), message)
                    .with_help("move what follows into a file of its own"),
            );
        }
        self.unless_too_many(at)
    }

    fn scalar(
        &self,
        text: &str,
        style: granit_parser::ScalarStyle,
        range: &Range<usize>,
        indent: Option<usize>,
    ) -> Scalar {
        let indent = indent.unwrap_or(0);
        let style = match style {
            granit_parser::ScalarStyle::Plain => ScalarStyle::Plain,
            granit_parser::ScalarStyle::SingleQuoted => ScalarStyle::SingleQuoted,
            granit_parser::ScalarStyle::DoubleQuoted => ScalarStyle::DoubleQuoted,
            granit_parser::ScalarStyle::Literal => ScalarStyle::Literal,
            granit_parser::ScalarStyle::Folded => ScalarStyle::Folded,
        };
        let text = match style {
            // The parser gives `~` where nothing is written.
            ScalarStyle::Plain if range.is_empty() => "",
            // It ends a block that the end of the file cuts with a line break that is not there.
            ScalarStyle::Literal | ScalarStyle::Folded if self.cut_by_end(range, indent) => {
                text.strip_suffix('\n').unwrap_or(text)
            }
            ScalarStyle::Plain
            | ScalarStyle::SingleQuoted
            | ScalarStyle::DoubleQuoted
            | ScalarStyle::Literal
            | ScalarStyle::Folded => text,
        };
        Scalar { text: text.to_owned(), style, indent }
    }

    /// Whether the last line of the file is content of this block and has no line break.
    fn cut_by_end(&self, range: &Range<usize>, indent: usize) -> bool {
        let text = &self.source.text;
        let last_line = text.rsplit(['\n', '\r']).next().unwrap_or_default();
        range.end == text.len() && last_line.len() > indent
    }
}
