//! The capabilities of the server, and answers about open files: fixes.

use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOptions, CodeActionParams, CodeActionProviderCapability,
    CodeLensOptions, CompletionOptions, DocumentChangeOperation, DocumentChanges,
    ExecuteCommandOptions, OneOf, OptionalVersionedTextDocumentIdentifier, RenameOptions,
    SemanticTokensFullOptions, SemanticTokensLegend, SemanticTokensOptions, ServerCapabilities,
    SignatureHelpOptions, TextDocumentEdit, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextDocumentSyncOptions, TextEdit, WorkDoneProgressOptions, WorkspaceEdit,
    WorkspaceFoldersServerCapabilities, WorkspaceServerCapabilities,
};
use serde_json::{Value, json};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::convert::{SourceLines, TextLines, path_of, uri_of, visible};
use super::features::token_types;
use super::request::{DocumentParams, RequestError, read};
use super::server::Server;
use super::values::{EVALUATE, RUN_CASES, SHOW_STOPS};
use super::worker::{self, Buffer};
use policyd_editor::fixes;
use policyd_lint as lint;
use policyd_yaml::{Diagnostic, Level};

/// Kind of the action that makes all safe fixes.
const FIX_ALL: CodeActionKind = CodeActionKind::new("source.fixAll.policyd");

impl Server<'_> {
    /// What the server can do.
    pub(super) fn capabilities() -> ServerCapabilities {
        ServerCapabilities {
            text_document_sync: Some(TextDocumentSyncCapability::Options(
                TextDocumentSyncOptions {
                    open_close: Some(true),
                    change: Some(TextDocumentSyncKind::INCREMENTAL),
                    save: Some(true.into()),
                    ..TextDocumentSyncOptions::default()
                },
            )),
            code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
                code_action_kinds: Some(vec![CodeActionKind::QUICKFIX, FIX_ALL]),
                ..CodeActionOptions::default()
            })),
            completion_provider: Some(CompletionOptions {
                trigger_characters: Some(
                    [".", "\"", "(", "[", "{", ":", " "].map(str::to_owned).into(),
                ),
                ..CompletionOptions::default()
            }),
            hover_provider: Some(true.into()),
            signature_help_provider: Some(SignatureHelpOptions {
                trigger_characters: Some(["(", ","].map(str::to_owned).into()),
                ..SignatureHelpOptions::default()
            }),
            definition_provider: Some(OneOf::Left(true)),
            references_provider: Some(OneOf::Left(true)),
            rename_provider: Some(OneOf::Right(RenameOptions {
                prepare_provider: Some(true),
                work_done_progress_options: WorkDoneProgressOptions::default(),
            })),
            document_symbol_provider: Some(OneOf::Left(true)),
            workspace_symbol_provider: Some(OneOf::Left(true)),
            folding_range_provider: Some(true.into()),
            semantic_tokens_provider: Some(
                SemanticTokensOptions {
                    legend: SemanticTokensLegend {
                        token_types: token_types(),
                        token_modifiers: Vec::new(),
                    },
                    full: Some(SemanticTokensFullOptions::Bool(true)),
                    ..SemanticTokensOptions::default()
                }
                .into(),
            ),
            document_formatting_provider: Some(OneOf::Left(true)),
            code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(false) }),
            inlay_hint_provider: Some(OneOf::Left(true)),
            execute_command_provider: Some(ExecuteCommandOptions {
                commands: [EVALUATE, RUN_CASES, SHOW_STOPS].map(str::to_owned).into(),
                ..ExecuteCommandOptions::default()
            }),
            workspace: Some(WorkspaceServerCapabilities {
                workspace_folders: Some(WorkspaceFoldersServerCapabilities {
                    supported: Some(true),
                    change_notifications: Some(OneOf::Left(true)),
                }),
                file_operations: None,
            }),
            ..ServerCapabilities::default()
        }
    }

    /// Answers a request about a file. A file outside of a pack has the answer `null`.
    pub(super) fn answer_about_files(
        &mut self,
        method: &str,
        params: Value,
    ) -> Result<Value, RequestError> {
        match method {
            "textDocument/codeAction" => self.code_actions(&read(params)?),
            "textDocument/completion" => Ok(json!(self.complete(&read(params)?))),
            "textDocument/hover" => Ok(json!(self.hover(&read(params)?))),
            "textDocument/signatureHelp" => Ok(json!(self.signature(&read(params)?))),
            "textDocument/definition" => Ok(json!(self.definition(&read(params)?))),
            "textDocument/references" => Ok(json!(self.references(&read(params)?))),
            "textDocument/prepareRename" => self.prepare_rename(&read(params)?),
            "textDocument/rename" => self.rename(&read(params)?),
            "textDocument/documentSymbol" => Ok(json!(self.symbols(&read(params)?))),
            "textDocument/foldingRange" => Ok(json!(self.folds(&read(params)?))),
            "textDocument/semanticTokens/full" => Ok(json!(self.tokens(&read(params)?))),
            "textDocument/formatting" => Ok(json!(self.format(&read(params)?))),
            "textDocument/codeLens" => Ok(json!(self.lenses(&read(params)?))),
            "textDocument/inlayHint" => Ok(json!(self.inlay_hints(&read(params)?))),
            "workspace/executeCommand" => self.execute(read(params)?),
            "workspace/symbol" => Ok(self.workspace_symbols(&read(params)?)),
            "workspace/textDocumentContent" => Self::content(&params),
            "policyd/text" => self.text(&read::<DocumentParams>(params)?),
            _ => Err(RequestError::UnknownMethod(method.to_owned())),
        }
    }

    /// The path and the pack of an open file.
    pub(super) fn opened(&self, uri: &lsp_types::Uri) -> Option<(PathBuf, PathBuf, Arc<str>)> {
        let path = path_of(uri)?;
        let document = self.documents.get(&path)?;
        let folder = document.pack.clone()?;
        Some((path, folder, Arc::clone(&document.text)))
    }

    /// The text of an open file as the server holds it, for reports about clients.
    fn text(&self, params: &DocumentParams) -> Result<Value, RequestError> {
        let path = path_of(&params.text_document.uri);
        let document = path.and_then(|it| self.documents.get(&it));
        let text = document.map(|it| json!(&*it.text));
        text.ok_or_else(|| RequestError::Failed("the file is not open".to_owned()))
    }

    fn code_actions(&mut self, params: &CodeActionParams) -> Result<Value, RequestError> {
        let Some((path, folder, text)) = self.opened(&params.text_document.uri) else {
            return Ok(Value::Null);
        };
        let only = params.context.only.as_deref();
        let wants = |kind: &CodeActionKind| {
            // A kind contains the kinds that begin with it: `source` contains `source.fixAll`.
            let contains = |it: &CodeActionKind| {
                let rest = kind.as_str().strip_prefix(it.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            only.is_none_or(|only| only.iter().any(contains))
        };
        let mut actions = Vec::new();
        if wants(&CodeActionKind::QUICKFIX) {
            let bytes = TextLines::new(&text).bytes(params.range);
            let findings = self.findings(&folder).unwrap_or_default();
            let touched = findings.iter().filter(|it| {
                let span = visible(&it.span);
                is_in(it, &path) && span.start <= bytes.end && bytes.start <= span.end
            });
            let touched: Vec<Diagnostic> = touched.cloned().collect();
            actions.extend(touched.iter().flat_map(|it| self.quick_fixes(&path, it)));
        }
        // Whether all fixes together break nothing takes a lint, so that only who asks gets them.
        if only.is_some() && wants(&FIX_ALL) {
            actions.extend(self.fix_all(&path, &folder));
        }
        Ok(json!(actions))
    }

    /// The actions for a finding: its fix first.
    fn quick_fixes(&self, path: &Path, finding: &Diagnostic) -> Vec<CodeAction> {
        let lines = TextLines::new(&finding.span.source.text);
        let shown = vec![SourceLines::default().diagnostic(finding)];
        let action = |(offered, is_fix): (fixes::OfferedFix, bool)| {
            let title = match offered.safe {
                true => offered.title,
                false => format!("{} (changes decisions)", offered.title),
            };
            let edits = offered.edits.iter().map(|it| lines.edit(it)).collect();
            CodeAction {
                title,
                kind: Some(CodeActionKind::QUICKFIX),
                diagnostics: Some(shown.clone()),
                edit: self.edit(BTreeMap::from([(path.to_path_buf(), edits)])),
                is_preferred: Some(is_fix && offered.safe),
                ..CodeAction::default()
            }
        };
        let fix = fixes::fix(finding).map(|it| (it, true));
        let suppression = fixes::suppression(finding).map(|it| (it, false));
        fix.into_iter().chain(suppression).map(action).collect()
    }

    /// Makes all safe fixes in a file, unless the pack has more errors then.
    fn fix_all(&mut self, path: &Path, folder: &Path) -> Option<CodeAction> {
        let findings = self.findings(folder)?.to_vec();
        let own: Vec<Diagnostic> = findings.iter().filter(|it| is_in(it, path)).cloned().collect();
        let change = lint::fix::changes(&own, |it| it.safe);
        let change = change.iter().find(|it| Path::new(&it.source.name) == path)?;
        let mut buffers = self.buffers();
        buffers.retain(|it| it.path != path);
        buffers.push(Buffer { path: path.to_path_buf(), text: Arc::from(change.text.as_str()) });
        let (view, _) = worker::view(self.world, self.base, folder, &buffers);
        let after = view.lint(self.settings.lint, self.world.now(), self.world.cores());
        let errors = |all: &[Diagnostic]| all.iter().filter(|it| it.level == Level::Error).count();
        if errors(&after) > errors(&findings) {
            return None;
        }
        let edits = lint::fix::edits(&own, |it| it.safe);
        let lines = TextLines::new(&change.source.text);
        let edits = edits.iter().filter(|it| it.source == change.source).flat_map(|it| &it.edits);
        let edits = edits.map(|(span, text)| TextEdit {
            range: lines.range(&(span.start..span.end)),
            new_text: text.clone(),
        });
        Some(CodeAction {
            title: format!("Apply all safe fixes ({})", change.fixes),
            kind: Some(FIX_ALL),
            edit: self.edit(BTreeMap::from([(path.to_path_buf(), edits.collect())])),
            ..CodeAction::default()
        })
    }

    /// An edit of files, of open ones in the version that the client sent last.
    pub(super) fn edit(&self, files: BTreeMap<PathBuf, Vec<TextEdit>>) -> Option<WorkspaceEdit> {
        let workspace = self.client.workspace.as_ref();
        let edits = workspace.and_then(|it| it.workspace_edit.as_ref());
        let has_versions = edits.and_then(|it| it.document_changes) == Some(true);
        let mut changes = Vec::new();
        for (path, edits) in files {
            let open = self.documents.get(&path);
            let uri = open.map(|it| it.uri.clone()).or_else(|| uri_of(&path))?;
            changes.push((uri, open.map(|it| it.version), edits));
        }
        if !has_versions {
            let files = changes.iter().map(|(uri, _, edits)| (uri.as_str(), edits));
            let changes: BTreeMap<_, _> = files.collect();
            return serde_json::from_value(json!({"changes": changes})).ok();
        }
        let operation = |(uri, version, edits): (_, _, Vec<TextEdit>)| {
            DocumentChangeOperation::Edit(TextDocumentEdit {
                text_document: OptionalVersionedTextDocumentIdentifier { uri, version },
                edits: edits.into_iter().map(OneOf::Left).collect(),
            })
        };
        let operations = changes.into_iter().map(operation).collect();
        let document_changes = Some(DocumentChanges::Operations(operations));
        Some(WorkspaceEdit { document_changes, ..WorkspaceEdit::default() })
    }
}

/// Whether a finding is in a file.
fn is_in(finding: &Diagnostic, path: &Path) -> bool {
    Path::new(&finding.span.source.name) == path
}
