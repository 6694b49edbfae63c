//! Answers about a place of an open file: completion, explanations, ids, outline, colors.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionParams, CompletionTextEdit, DocumentSymbol,
    Documentation, FoldingRange, FoldingRangeKind, GotoDefinitionParams, Hover, HoverContents,
    HoverParams, InsertTextFormat, Location, MarkupContent, MarkupKind, ParameterInformation,
    ParameterLabel, ReferenceParams, RenameParams, SemanticToken, SemanticTokens, SignatureHelp,
    SignatureHelpParams, SignatureInformation, SymbolInformation, SymbolKind,
    TextDocumentPositionParams, TextEdit, WorkspaceSymbolParams,
};
use serde_json::{Value, json};

use super::convert::{SourceLines, TextLines, location, uri_of};
use super::request::{DocumentParams, RequestError};
use super::server::Server;
use policyd_base::limits::POLICY_FILE_BYTES_MAX;
use policyd_cases as cases;
use policyd_editor::completion::{self, CURSOR, Completion, CompletionKind};
use policyd_editor::ids::{self, FilePlace, Occurrence};
use policyd_editor::keys::FileText;
use policyd_editor::outline::{self, Symbol, TOKEN_TYPES};
use policyd_editor::view::PackView;
use policyd_editor::{format, hover, text::LineIndex};
use policyd_policy::builtin;
use policyd_yaml::Span;

/// Beginning of the addresses of files that are on no disk.
const BUILTIN_SCHEME: &str = "policyd:/";

/// An open file of a pack, and a place in it.
pub(super) struct OpenPlace {
    pub(super) path: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) text: Arc<str>,
    /// The byte of the place.
    pub(super) at: usize,
}

impl OpenPlace {
    /// The file as the editor module names it.
    pub(super) fn file(&self) -> FileText<'_> {
        let inside = self.path.strip_prefix(&self.folder).unwrap_or(&self.path);
        let is_case = inside.starts_with(cases::shape::FOLDER) && inside.components().count() > 1;
        FileText { file: inside.to_str().unwrap_or_default(), is_case, text: &self.text }
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

impl Server<'_> {
    /// The open file of a pack at a position; `None` if the file is ignored.
    pub(super) fn place(&self, params: &TextDocumentPositionParams) -> Option<OpenPlace> {
        let (path, folder, text) = self.opened(&params.text_document.uri)?;
        let at = TextLines::new(&text).offset(params.position);
        Some(OpenPlace { path, folder, text, at })
    }

    /// The pack as it was last read, which is good enough for names: it can be older than the open files.
    fn names_view(&mut self, folder: &Path) -> Option<Arc<PackView>> {
        match &self.packs.get(folder)?.view {
            Some((_, view)) => Some(Arc::clone(view)),
            None => self.view(folder),
        }
    }

    pub(super) fn complete(&mut self, params: &CompletionParams) -> Option<Value> {
        let place = self.place(&params.text_document_position)?;
        let view = self.names_view(&place.folder)?;
        let has_snippets = self.has_snippets();
        let lines = TextLines::new(&place.text);
        let found = completion::complete(&view, place.file(), place.at);
        let items = found.into_iter().map(|it| completion_item(it, &lines, has_snippets));
        Some(json!({"isIncomplete": false, "items": items.collect::<Vec<_>>()}))
    }

    fn has_snippets(&self) -> bool {
        let client = self.client.text_document.as_ref().and_then(|it| it.completion.as_ref());
        let item = client.and_then(|it| it.completion_item.as_ref());
        item.and_then(|it| it.snippet_support) == Some(true)
    }

    /// The ids of a pack as it is now.
    pub(super) fn ids(&mut self, folder: &Path) -> Option<(Arc<PackView>, Arc<Vec<Occurrence>>)> {
        let view = self.view(folder)?;
        let now = self.world.now();
        let state = self.packs.get_mut(folder)?;
        if let Some((generation, found)) = &state.ids
            && *generation == state.generation
        {
            return Some((view, Arc::clone(found)));
        }
        let found = Arc::new(ids::occurrences(&view, now));
        state.ids = Some((state.generation, Arc::clone(&found)));
        Some((view, found))
    }

    pub(super) fn hover(&mut self, params: &HoverParams) -> Option<Value> {
        let place = self.place(&params.text_document_position_params)?;
        let (view, ids) = self.ids(&place.folder)?;
        let lines = TextLines::new(&place.text);
        let name = place.name();
        let at = FilePlace { file: &name, at: place.at };
        let found = hover::explain(&view, place.file(), at, &ids);
        let mut text = found.as_ref().map(|it| it.text.clone()).unwrap_or_default();
        let fact = found.as_ref().and_then(|it| it.fact.as_ref());
        if let Some(value) = fact.and_then(|it| self.value_of(&place.folder, it)) {
            let session = self.settings.session.as_deref().map(|it| format!("session {it}"));
            let session = session.unwrap_or_else(|| "the newest session".to_owned());
            text.push_str(&format!("\n\nValue in {session}: `{value}`"));
        }
        let mut range = found.map(|it| lines.range(&it.range));
        let findings = self.packs.get(&place.folder)?.findings.as_ref();
        let findings = findings.map(|(_, it)| it.as_slice()).unwrap_or_default();
        let here = findings.iter().find(|it| {
            let span = super::convert::visible(&it.span);
            Path::new(&it.span.source.name) == place.path
                && it.span.source.text == *place.text
                && span.contains(&place.at)
        });
        if let Some(page) = here.and_then(hover::finding_page) {
            let rule = if text.is_empty() { "" } else { "\n\n---\n\n" };
            text.push_str(rule);
            text.push_str(&page);
            range = range.or_else(|| here.map(|it| lines.range(&(it.span.start..it.span.end))));
        }
        (!text.is_empty()).then(|| {
            let markup = MarkupContent { kind: MarkupKind::Markdown, value: text };
            json!(Hover { contents: HoverContents::Markup(markup), range })
        })
    }

    /// The ids of the pack with the one at a place.
    fn id_at(
        &mut self,
        place: &OpenPlace,
    ) -> Option<(Arc<PackView>, Arc<Vec<Occurrence>>, Occurrence)> {
        let (view, ids) = self.ids(&place.folder)?;
        let name = place.name();
        let found =
            ids.iter().find(|it| it.is_at(FilePlace { file: &name, at: place.at }))?.clone();
        Some((view, ids, found))
    }

    pub(super) fn definition(&mut self, params: &GotoDefinitionParams) -> Option<Value> {
        let place = self.place(&params.text_document_position_params)?;
        let (view, ids, wanted) = self.id_at(&place)?;
        let own = ids.iter().filter(|it| it.entry.is_some() && it.means(&wanted));
        let mut found: Vec<Location> =
            own.filter_map(|it| self.location(&place.folder, &it.span)).collect();
        // An entry that overrides another one leads to that one, too.
        let below = ids::inherited(&view);
        let below = below.iter().filter(|it| it.means(&wanted));
        found.extend(below.filter_map(|it| self.location(&place.folder, &it.span)));
        Some(json!(found))
    }

    pub(super) fn references(&mut self, params: &ReferenceParams) -> Option<Value> {
        let place = self.place(&params.text_document_position)?;
        let (_, ids, wanted) = self.id_at(&place)?;
        let all = ids.iter().filter(|it| it.means(&wanted));
        let all = all.filter(|it| params.context.include_declaration || it.entry.is_none());
        let found: Vec<Location> =
            all.filter_map(|it| self.location(&place.folder, &it.span)).collect();
        Some(json!(found))
    }

    /// The location of a span. A file of the built-in pack has one if the client can show it, or if `policyd init` copied it
    /// below the pack.
    fn location(&self, folder: &Path, span: &Span) -> Option<Location> {
        if let Some(found) = location(span) {
            return Some(found);
        }
        let name = builtin::wrote(&span.source).then_some(&span.source.name)?;
        let uri = if self.settings.virtual_files {
            format!("{}{name}", BUILTIN_SCHEME).parse().ok()?
        } else {
            let copy = folder.join(name);
            let text = self.world.read(&copy, POLICY_FILE_BYTES_MAX).ok()?;
            // A copy of another version has other lines.
            uri_of(&copy).filter(|_| text == span.source.text.as_bytes())?
        };
        let range = TextLines::new(&span.source.text).range(&(span.start..span.end));
        Some(Location { uri, range })
    }

    pub(super) fn prepare_rename(
        &mut self,
        params: &TextDocumentPositionParams,
    ) -> Result<Value, RequestError> {
        let Some(place) = self.place(params) else { return Ok(Value::Null) };
        let Some((view, ids)) = self.ids(&place.folder) else { return Ok(Value::Null) };
        let name = place.name();
        let at = FilePlace { file: &name, at: place.at };
        let found = ids::renamed(&ids, &ids::inherited(&view), at)?;
        let range = TextLines::new(&place.text).range(&(found.span.start..found.span.end));
        Ok(json!({"range": range, "placeholder": found.name}))
    }

    pub(super) fn rename(&mut self, params: &RenameParams) -> Result<Value, RequestError> {
        let Some(place) = self.place(&params.text_document_position) else {
            return Ok(Value::Null);
        };
        let Some((view, ids)) = self.ids(&place.folder) else { return Ok(Value::Null) };
        let name = place.name();
        let at = FilePlace { file: &name, at: place.at };
        let found = ids::rename(&ids, &ids::inherited(&view), at, &params.new_name)?;
        ids::require_readable(&view)?;
        let mut files: BTreeMap<PathBuf, Vec<TextEdit>> = BTreeMap::new();
        for it in found {
            let lines = TextLines::new(&it.span.source.text);
            let range = lines.range(&(it.span.start..it.span.end));
            let edits = files.entry(PathBuf::from(&it.span.source.name)).or_default();
            let edit = TextEdit { range, new_text: params.new_name.clone() };
            if !edits.contains(&edit) {
                edits.push(edit);
            }
        }
        Ok(json!(self.edit(files)))
    }

    pub(super) fn symbols(&self, params: &DocumentParams) -> Option<Value> {
        let (_, _, text) = self.opened(&params.text_document.uri)?;
        let lines = TextLines::new(&text);
        let symbols = outline::symbols(&text);
        Some(json!(symbols.iter().map(|it| symbol(it, &lines)).collect::<Vec<_>>()))
    }

    pub(super) fn workspace_symbols(&mut self, params: &WorkspaceSymbolParams) -> Value {
        let folders: Vec<PathBuf> = self.packs.keys().cloned().collect();
        let (mut found, mut lines) = (Vec::new(), SourceLines::default());
        for folder in folders {
            let Some((_, ids)) = self.ids(&folder) else { continue };
            for it in outline::search(&ids, &params.query) {
                let Some(location) = lines.location(&it.span) else { continue };
                let noun = it.kinds.first().map_or("id", |it| it.noun());
                #[expect(deprecated, reason = "the type has no constructor without the field")]
                found.push(SymbolInformation {
                    name: it.name.clone(),
                    kind: SymbolKind::OBJECT,
                    tags: None,
                    deprecated: None,
                    location,
                    container_name: Some(noun.to_owned()),
                });
            }
        }
        json!(found)
    }

    pub(super) fn folds(&self, params: &DocumentParams) -> Option<Value> {
        let (_, _, text) = self.opened(&params.text_document.uri)?;
        let index = LineIndex::new(&text);
        let fold = |(first, last): (usize, usize)| {
            let line = text.get(index.line(&text, first)).unwrap_or_default();
            let is_comment = line.trim_start().starts_with('#');
            FoldingRange {
                start_line: u32::try_from(first).unwrap_or(u32::MAX),
                end_line: u32::try_from(last).unwrap_or(u32::MAX),
                kind: is_comment.then_some(FoldingRangeKind::Comment),
                ..FoldingRange::default()
            }
        };
        Some(json!(outline::folds(&text).into_iter().map(fold).collect::<Vec<_>>()))
    }

    pub(super) fn tokens(&mut self, params: &DocumentParams) -> Option<Value> {
        let (path, folder, text) = self.opened(&params.text_document.uri)?;
        let view = self.view(&folder)?;
        let lines = TextLines::new(&text);
        let mut data = Vec::new();
        let (mut line, mut column) = (0, 0);
        for (range, kind) in outline::tokens(&view, &path.display().to_string(), self.world.now()) {
            let at = lines.range(&range);
            let delta_line = at.start.line - line;
            let delta_start =
                if delta_line == 0 { at.start.character - column } else { at.start.character };
            (line, column) = (at.start.line, at.start.character);
            data.push(SemanticToken {
                delta_line,
                delta_start,
                length: at.end.character.saturating_sub(at.start.character),
                token_type: kind as u32,
                token_modifiers_bitset: 0,
            });
        }
        Some(json!(SemanticTokens { result_id: None, data }))
    }

    /// The edits that format the expressions of a file.
    pub(super) fn format(&mut self, params: &DocumentParams) -> Option<Value> {
        let (path, folder, text) = self.opened(&params.text_document.uri)?;
        let view = self.view(&folder)?;
        let lines = TextLines::new(&text);
        let changes = format::changes(&view, &path.display().to_string(), self.world.now());
        let edit = |(range, wanted): (Range<usize>, &str)| TextEdit {
            range: lines.range(&range),
            new_text: wanted.to_owned(),
        };
        Some(json!(changes.into_iter().map(edit).collect::<Vec<_>>()))
    }

    pub(super) fn signature(&mut self, params: &SignatureHelpParams) -> Option<Value> {
        let place = self.place(&params.text_document_position_params)?;
        let view = self.names_view(&place.folder)?;
        let call = outline::call_at(&view, place.file(), place.at)?;
        let units = |at: usize| {
            let before = call.label.get(..at).unwrap_or_default();
            u32::try_from(before.encode_utf16().count()).unwrap_or(u32::MAX)
        };
        let parameters = call.parameters.iter().map(|it| ParameterInformation {
            label: ParameterLabel::LabelOffsets([units(it.start), units(it.end)]),
            documentation: None,
        });
        let active = u32::try_from(call.active).ok();
        let signature = SignatureInformation {
            label: call.label.clone(),
            documentation: Some(markdown(call.doc.clone())),
            parameters: Some(parameters.collect()),
            active_parameter: active,
        };
        Some(json!(SignatureHelp {
            signatures: vec![signature],
            active_signature: Some(0),
            active_parameter: active,
        }))
    }

    /// The text of a file of the built-in pack.
    pub(super) fn content(params: &Value) -> Result<Value, RequestError> {
        let uri = params.get("textDocument").unwrap_or(params).get("uri").and_then(Value::as_str);
        let name = uri.and_then(|it| it.strip_prefix(BUILTIN_SCHEME));
        let name = name.and_then(|it| it.strip_prefix(builtin::NAME)?.strip_prefix('/'));
        let file = builtin::FILES.iter().find(|it| Some(it.name) == name);
        let text = file.map(|it| json!({"text": it.text}));
        text.ok_or_else(|| RequestError::Failed("the built-in pack has no such file".to_owned()))
    }
}

fn markdown(value: String) -> Documentation {
    Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value })
}

fn completion_item(it: Completion, lines: &TextLines<'_>, has_snippets: bool) -> CompletionItem {
    let (new_text, format) = match (it.has_cursor, has_snippets) {
        (false, _) => (it.text, InsertTextFormat::PLAIN_TEXT),
        (true, true) => {
            // Everything but the place of the cursor is meant literally.
            let (before, after) = it.text.split_once(CURSOR).unwrap_or((&it.text, ""));
            let literal =
                |it: &str| it.replace('\\', "\\\\").replace('$', "\\$").replace('}', "\\}");
            (format!("{}$0{}", literal(before), literal(after)), InsertTextFormat::SNIPPET)
        }
        (true, false) => {
            let before = it.text.split('(').next().unwrap_or_default();
            (before.to_owned(), InsertTextFormat::PLAIN_TEXT)
        }
    };
    let kind = match it.kind {
        CompletionKind::Key => CompletionItemKind::PROPERTY,
        CompletionKind::Word => CompletionItemKind::ENUM_MEMBER,
        CompletionKind::Id => CompletionItemKind::REFERENCE,
        CompletionKind::Fact => CompletionItemKind::FIELD,
        CompletionKind::Method => CompletionItemKind::METHOD,
        CompletionKind::LintRule => CompletionItemKind::CONSTANT,
    };
    let filter = it.label.split('(').next().unwrap_or_default().to_owned();
    CompletionItem {
        label: it.label,
        kind: Some(kind),
        detail: (!it.detail.is_empty()).then_some(it.detail),
        documentation: (!it.doc.is_empty()).then(|| markdown(it.doc)),
        sort_text: Some(format!("{:05}", it.order)),
        filter_text: Some(filter),
        insert_text_format: Some(format),
        text_edit: Some(CompletionTextEdit::Edit(TextEdit {
            range: lines.range(&it.range),
            new_text,
        })),
        ..CompletionItem::default()
    }
}

fn symbol(it: &Symbol, lines: &TextLines<'_>) -> DocumentSymbol {
    let children: Vec<DocumentSymbol> = it.children.iter().map(|it| symbol(it, lines)).collect();
    #[expect(deprecated, reason = "the type has no constructor without the field")]
    DocumentSymbol {
        name: if it.name.is_empty() { "''".to_owned() } else { it.name.clone() },
        detail: (!it.detail.is_empty()).then(|| it.detail.clone()),
        kind: if it.is_entry { SymbolKind::OBJECT } else { SymbolKind::PROPERTY },
        tags: None,
        deprecated: None,
        range: lines.range(&it.range),
        selection_range: lines.range(&it.selection),
        children: (!children.is_empty()).then_some(children),
    }
}

/// Names of the types of colored words.
pub(super) fn token_types() -> Vec<lsp_types::SemanticTokenType> {
    TOKEN_TYPES.iter().map(|it| lsp_types::SemanticTokenType::new(it)).collect()
}
