//! The state of a connection: open files, settings, and the packs of the open files. Dispatches messages, and decides
//! when a pack is linted.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use lsp_server::{Message, Notification, Request, RequestId, Response};
use lsp_types::{
    ClientCapabilities, CodeLensClientCapabilities, DidChangeConfigurationParams,
    DidChangeTextDocumentParams, DidChangeWatchedFilesParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, DidSaveTextDocumentParams, InitializeParams, LogMessageParams,
    MessageType, PublishDiagnosticsParams, TextDocumentContentChangeEvent, Uri,
};
use serde_json::{Value, json};

use super::background::{SlowJob, SlowResult, is_trusted};
use super::convert::{SourceLines, path_of, text_position, uri_of};
use super::request::{RequestError, read};
use super::session_values::SessionValues;
use super::settings::ClientSettings;
use super::worker::{self, Buffer, JobResult, LintJob, LintResult};
use policyd_app::packs::places;
use policyd_cases::result::CaseResult;
use policyd_editor::ids::Occurrence;
use policyd_editor::lenses::{FiredCounts, ReplayCounts};
use policyd_editor::text::{TextChange, apply};
use policyd_editor::view::PackView;
use policyd_lint::Profile;
use policyd_policy::review::Base;
use policyd_world::World;
use policyd_yaml::Diagnostic;
use policyd_yaml::checksum::fingerprint;

/// A lint that takes longer than this, about the time between two keystrokes, waits for the end of the typing: for the
/// time by which the last one was longer.
const FAST_LINT: Duration = Duration::from_millis(100);
/// Maximum of that time.
const QUIET_MAX: Duration = Duration::from_millis(500);
/// Time between two polls of the results of the second thread while it works.
const RESULT_WAIT: Duration = Duration::from_millis(1);
/// The same while only the third thread works.
const SLOW_RESULT_WAIT: Duration = Duration::from_millis(50);
/// Time without a change after which cases and recorded sessions are evaluated.
const SLOW_QUIET: Duration = Duration::from_secs(1);
/// Time between two polls without work.
const IDLE_WAIT: Duration = Duration::from_secs(60);

/// End of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEnd {
    /// The client requested the shutdown first.
    ShutDown,
    /// The client ended without a shutdown.
    ClientLeft,
}

/// Phase of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    New,
    Running,
    ShutDown,
    Ended(ServerEnd),
}

/// An open file.
#[derive(Debug, Clone)]
pub(super) struct OpenDocument {
    /// Its address as the client writes it.
    pub(super) uri: Uri,
    pub(super) version: i32,
    pub(super) text: Arc<str>,
    /// Directory of its pack; `None`: the file is ignored.
    pub(super) pack: Option<PathBuf>,
}

/// Where jobs are sent.
pub(super) struct JobSenders {
    pub(super) lint: Sender<LintJob>,
    pub(super) slow: Sender<SlowJob>,
}

/// A running job of the third thread.
#[derive(Debug)]
struct SlowState {
    token: String,
    /// Hash of the content and the settings that it evaluates.
    key: u64,
    cancel: Arc<AtomicBool>,
    /// Whether the client shows its progress.
    is_shown: bool,
}

/// The pack of open files.
#[derive(Debug, Default)]
pub(super) struct PackState {
    /// Number of the state, which grows with every change of a file.
    pub(super) generation: u64,
    /// When it is linted next.
    due: Option<Duration>,
    /// Whether the second thread lints it.
    is_running: bool,
    /// The pack as last read, with the number of its state.
    pub(super) view: Option<(u64, Arc<PackView>)>,
    /// Ids of the pack, with the number of the state in which they were collected.
    pub(super) ids: Option<(u64, Arc<Vec<Occurrence>>)>,
    /// Findings, and the number of the state in which they were found.
    pub(super) findings: Option<(u64, Vec<Diagnostic>)>,
    /// Results of the cases, with the hash of the content and the settings with which they ran.
    pub(super) cases: Option<(u64, Vec<CaseResult>)>,
    /// Counts of recorded sessions, with the same hash.
    pub(super) counts: Option<(u64, ReplayCounts)>,
    /// How often rules fired in the project, when its log was last read.
    pub(super) fired: Option<FiredCounts>,
    /// Values of the chosen session.
    pub(super) values: Option<SessionValues>,
    /// Why the chosen session has no values, as far as the client knows.
    pub(super) session_error: Option<String>,
    /// When cases and recorded sessions are evaluated next.
    slow_due: Option<Duration>,
    slow: Option<SlowState>,
    /// Files whose findings the client shows.
    published: BTreeSet<PathBuf>,
    /// What could not be read, as far as the client knows.
    unreadable: Vec<String>,
    /// How long the last lint took.
    took: Duration,
}

/// The language server.
pub(super) struct Server<'w> {
    pub(super) world: &'w dyn World,
    pub(super) base: &'w Base,
    jobs: JobSenders,
    default_profile: Profile,
    pub(super) settings: ClientSettings,
    pub(super) client: ClientCapabilities,
    pub(super) documents: BTreeMap<PathBuf, OpenDocument>,
    pub(super) packs: BTreeMap<PathBuf, PackState>,
    phase: Phase,
    outgoing: Vec<Message>,
    /// Number of the last request to the client.
    requests: i32,
    /// Number of the last state of a pack. The states of a pack that was closed and opened again have other numbers, too.
    generations: u64,
}

impl<'w> Server<'w> {
    pub(super) fn new(
        world: &'w dyn World,
        base: &'w Base,
        jobs: JobSenders,
        profile: Profile,
    ) -> Self {
        Self {
            world,
            base,
            jobs,
            default_profile: profile,
            settings: ClientSettings::new(profile),
            client: ClientCapabilities::default(),
            documents: BTreeMap::new(),
            packs: BTreeMap::new(),
            phase: Phase::New,
            outgoing: Vec::new(),
            requests: 0,
            generations: 0,
        }
    }

    /// How the connection ended, if it did.
    pub(super) const fn end(&self) -> Option<ServerEnd> {
        if let Phase::Ended(end) = self.phase { Some(end) } else { None }
    }

    pub(super) fn take_outgoing(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.outgoing)
    }

    /// How long the loop can wait for a message.
    pub(super) fn wait(&self) -> Duration {
        if self.is_busy() {
            return RESULT_WAIT;
        }
        let is_slow = self.packs.values().any(|it| it.slow.is_some());
        let longest = if is_slow { SLOW_RESULT_WAIT } else { IDLE_WAIT };
        let next = self.packs.values().flat_map(|it| [it.due, it.slow_due]).flatten().min();
        let next = next.map(|due| due.saturating_sub(self.world.elapsed()));
        next.map_or(longest, |next| next.min(longest))
    }

    /// Whether the second thread works.
    pub(super) fn is_busy(&self) -> bool {
        self.packs.values().any(|it| it.is_running)
    }

    /// Starts the lint of packs that did not change for a while.
    pub(super) fn start_due(&mut self) {
        let now = self.world.elapsed();
        self.start(|due| due <= now);
        let is_due = |(_, it): &(&PathBuf, &PackState)| it.slow_due.is_some_and(|due| due <= now);
        let slow: Vec<PathBuf> =
            self.packs.iter().filter(is_due).map(|(folder, _)| folder.clone()).collect();
        slow.iter().for_each(|it| self.start_slow(it, false));
    }

    /// Starts the lint of all packs that changed.
    pub(super) fn start_all(&mut self) {
        self.start(|_| true);
    }

    fn start(&mut self, is_due: impl Fn(Duration) -> bool) {
        let ready =
            |(_, it): &(&PathBuf, &PackState)| !it.is_running && it.due.is_some_and(&is_due);
        let folders: Vec<PathBuf> =
            self.packs.iter().filter(ready).map(|(folder, _)| folder.clone()).collect();
        for folder in folders {
            let Some(job) = self.lint_job(&folder) else { continue };
            let sent = self.jobs.lint.send(job).is_ok();
            if let Some(state) = self.packs.get_mut(&folder) {
                (state.due, state.is_running) = (None, sent);
            }
        }
    }

    fn lint_job(&self, folder: &Path) -> Option<LintJob> {
        let generation = self.packs.get(folder)?.generation;
        let (folder, buffers) = (folder.to_path_buf(), self.buffers());
        Some(LintJob { folder, generation, buffers, settings: self.settings.lint })
    }

    /// The unsaved texts of open files.
    pub(super) fn buffers(&self) -> Vec<Buffer> {
        let buffer = |(path, it): (&PathBuf, &OpenDocument)| Buffer {
            path: path.clone(),
            text: Arc::clone(&it.text),
        };
        self.documents.iter().filter(|(_, it)| it.pack.is_some()).map(buffer).collect()
    }

    /// Takes over a result of the second thread.
    pub(super) fn finish(&mut self, done: JobResult) {
        match done {
            JobResult::Lint(linted) => {
                if let Some(state) = self.packs.get_mut(&linted.folder) {
                    state.is_running = false;
                }
                self.take_over(*linted);
            }
            JobResult::Slow(result) => self.finish_slow(result),
            JobResult::Failed(folder) => {
                if let Some(state) = self.packs.get_mut(&folder) {
                    state.is_running = false;
                }
                let text = format!("could not lint {}: {}", folder.display(), RequestError::Panic);
                self.log(MessageType::ERROR, text);
            }
        }
    }

    fn take_over(&mut self, linted: LintResult) {
        let Some(state) = self.packs.get_mut(&linted.folder) else { return };
        state.took = linted.took;
        if linted.generation < state.generation {
            return; // The files changed meanwhile, and the next lint is due.
        }
        state.view = Some((linted.generation, linted.view));
        state.findings = Some((linted.generation, linted.findings));
        let new = linted.unreadable.iter().filter(|it| !state.unreadable.contains(it));
        let new: Vec<String> = new.cloned().collect();
        state.unreadable = linted.unreadable;
        state.slow_due = Some(self.world.elapsed().saturating_add(SLOW_QUIET));
        new.into_iter().for_each(|it| self.log(MessageType::WARNING, it));
        self.publish(&linted.folder);
    }

    /// The pack as it is now: as the second thread read it, or read here.
    pub(super) fn view(&mut self, folder: &Path) -> Option<Arc<PackView>> {
        let state = self.packs.get(folder)?;
        if let Some((generation, view)) = &state.view
            && *generation == state.generation
        {
            return Some(Arc::clone(view));
        }
        let (view, _) = worker::view(self.world, self.base, folder, &self.buffers());
        let view = Arc::new(view);
        let state = self.packs.get_mut(folder)?;
        state.view = Some((state.generation, Arc::clone(&view)));
        Some(view)
    }

    /// The findings of the pack as it is now.
    pub(super) fn findings(&mut self, folder: &Path) -> Option<&[Diagnostic]> {
        let state = self.packs.get(folder)?;
        let generation = state.generation;
        let is_current = state.findings.as_ref().is_some_and(|(at, _)| *at == generation);
        if !is_current {
            let findings =
                self.view(folder)?.lint(self.settings.lint, self.world.now(), self.world.cores());
            self.packs.get_mut(folder)?.findings = Some((generation, findings));
            self.publish(folder);
        }
        self.packs.get(folder)?.findings.as_ref().map(|(_, findings)| findings.as_slice())
    }

    /// Sends the findings of a pack to the client.
    fn publish(&mut self, folder: &Path) {
        let Some(state) = self.packs.get_mut(folder) else { return };
        let findings = state.findings.as_ref().map(|(_, it)| it.as_slice()).unwrap_or_default();
        let mut files: BTreeMap<PathBuf, Vec<&Diagnostic>> = BTreeMap::new();
        for finding in findings {
            files.entry(PathBuf::from(&finding.span.source.name)).or_default().push(finding);
        }
        let shown = files.keys().cloned().collect();
        let former = std::mem::replace(&mut state.published, shown);
        // Open files are shown as correct, too.
        let open = self.documents.iter().filter(|(_, it)| it.pack.as_deref() == Some(folder));
        for path in former.into_iter().chain(open.map(|(path, _)| path.clone())) {
            files.entry(path).or_default();
        }
        let (mut published, mut lines) = (Vec::new(), SourceLines::default());
        for (path, findings) in files {
            let open = self.documents.get(&path);
            let Some(uri) = open.map(|it| it.uri.clone()).or_else(|| uri_of(&path)) else {
                continue; // A finding in a file of the built-in pack or of a remote one.
            };
            let found = findings.iter().map(|it| lines.diagnostic(it));
            let (diagnostics, version) = (found.collect(), open.map(|it| it.version));
            published.push(PublishDiagnosticsParams { uri, diagnostics, version });
        }
        published.into_iter().for_each(|it| self.notify("textDocument/publishDiagnostics", it));
    }

    /// Starts the evaluation of cases and recorded sessions, unless the content and the settings are those of the last
    /// evaluation; `is_asked`: the user wants the cases to run again.
    pub(super) fn start_slow(&mut self, folder: &Path, is_asked: bool) {
        if let Some(state) = self.packs.get_mut(folder) {
            state.slow_due = None;
        }
        let shows_lenses =
            self.client.text_document.as_ref().is_some_and(|it| it.code_lens.is_some());
        if !(is_asked || (shows_lenses && is_trusted(self.world, folder))) {
            return;
        }
        let Some(view) = self.view(folder) else { return };
        let replays = self.settings.replays.then(|| self.settings.recordings.clone());
        let texts = view.sources().flat_map(|it| [it.name.as_str(), it.text.as_str()]);
        let recordings = replays.iter().flatten().map(String::as_str);
        let settings = [if self.settings.replays { "replay" } else { "" }];
        let texts: Vec<&str> = texts.chain(settings).chain(recordings).collect();
        let (key, buffers) = (fingerprint(&texts), self.buffers());
        self.requests = self.requests.saturating_add(1);
        let token = format!("policyd-{}", self.requests);
        let Some(state) = self.packs.get_mut(folder) else { return };
        let is_known = |known: Option<u64>| known == Some(key);
        let cases_known = is_known(state.cases.as_ref().map(|(key, _)| *key));
        let counts_known = is_known(state.counts.as_ref().map(|(key, _)| *key));
        let is_running = state.slow.as_ref().is_some_and(|it| it.key == key);
        // A canceled evaluation may have counted nothing yet.
        let is_complete = cases_known && (counts_known || replays.is_none());
        if (is_complete || is_running) && !is_asked {
            if !is_running {
                self.cancel_slow(folder);
            }
            return;
        }
        self.cancel_slow(folder);
        let Some(state) = self.packs.get_mut(folder) else { return };
        let cancel = Arc::new(AtomicBool::new(false));
        let recordings = replays.filter(|_| !counts_known);
        let job = SlowJob {
            folder: folder.to_path_buf(),
            key,
            buffers,
            recordings,
            cancel: Arc::clone(&cancel),
            token: token.clone(),
        };
        if self.jobs.slow.send(job).is_ok() {
            state.slow = Some(SlowState { token, key, cancel, is_shown: false });
        }
    }

    /// Cancels the running evaluation of a pack. Its results are ignored: they are those of another text.
    fn cancel_slow(&mut self, folder: &Path) {
        let Some(before) = self.packs.get_mut(folder).and_then(|it| it.slow.take()) else { return };
        before.cancel.store(true, Ordering::Relaxed);
        if before.is_shown {
            self.progress(&before.token, json!({"kind": "end"}));
        }
    }

    /// The pack whose running evaluation has this hash.
    fn evaluated(&mut self, folder: &Path, key: u64) -> Option<&mut PackState> {
        let state = self.packs.get_mut(folder)?;
        let is_running = state.slow.as_ref().is_some_and(|it| it.key == key);
        is_running.then_some(state)
    }

    /// Evaluates cases and recorded sessions from now on, also if the client did not declare that it shows lenses:
    /// Neovim 0.7 does not.
    pub(super) fn expect_lenses(&mut self, folder: &Path) {
        let client = self.client.text_document.get_or_insert_default();
        if client.code_lens.is_none() {
            client.code_lens = Some(CodeLensClientCapabilities::default());
            let due = self.world.elapsed().saturating_add(SLOW_QUIET);
            if let Some(state) = self.packs.get_mut(folder) {
                state.slow_due = Some(due);
            }
        }
    }

    fn finish_slow(&mut self, result: SlowResult) {
        match result {
            SlowResult::Cases { folder, key, results } => {
                if let Some(state) = self.evaluated(&folder, key) {
                    state.cases = Some((key, results));
                }
                self.refresh_lenses();
            }
            SlowResult::Replay { folder, key, counts } => {
                if let Some(state) = self.evaluated(&folder, key) {
                    state.counts = Some((key, counts));
                }
                self.refresh_lenses();
            }
            SlowResult::Logged { folder, counts } => {
                if let Some(state) = self.packs.get_mut(&folder) {
                    state.fired = Some(counts);
                }
                self.refresh_lenses();
            }
            SlowResult::Progress { token, done, all } => self.report(&token, done, all),
            SlowResult::End { folder, token } => {
                let Some(state) = self.packs.get_mut(&folder) else { return };
                let ended = state.slow.take_if(|it| it.token == token);
                if ended.is_some_and(|it| it.is_shown) {
                    self.progress(&token, json!({"kind": "end"}));
                }
            }
        }
    }

    /// Reports how many sessions were evaluated.
    fn report(&mut self, token: &str, done: usize, all: usize) {
        let window = self.client.window.as_ref();
        if window.and_then(|it| it.work_done_progress) != Some(true) {
            return;
        }
        let slow = self.packs.values_mut().filter_map(|it| it.slow.as_mut());
        let Some(slow) = slow.into_iter().find(|it| it.token == token) else { return };
        let percentage = done.saturating_mul(100) / all.max(1);
        let message = format!("{done} of {all} sessions");
        if !std::mem::replace(&mut slow.is_shown, true) {
            self.ask("window/workDoneProgress/create", json!({"token": token}));
            let title = "policyd: recorded sessions";
            self.progress(token, json!({"kind": "begin", "title": title, "cancellable": true}));
        }
        self.progress(
            token,
            json!({"kind": "report", "message": message, "percentage": percentage}),
        );
    }

    fn progress(&mut self, token: &str, value: Value) {
        self.notify("$/progress", json!({"token": token, "value": value}));
    }

    fn refresh_lenses(&mut self) {
        let workspace = self.client.workspace.as_ref();
        let lenses = workspace.and_then(|it| it.code_lens.as_ref());
        if lenses.and_then(|it| it.refresh_support) == Some(true) {
            self.ask("workspace/codeLens/refresh", Value::Null);
        }
    }

    /// Sends a notification.
    pub(super) fn notify(&mut self, method: &str, params: impl serde::Serialize) {
        self.outgoing.push(Notification::new(method.to_owned(), params).into());
    }

    /// Sends a request whose response does not matter.
    pub(super) fn ask(&mut self, method: &str, params: impl serde::Serialize) {
        self.requests = self.requests.saturating_add(1);
        let id = RequestId::from(self.requests);
        self.outgoing.push(Request::new(id, method.to_owned(), params).into());
    }

    pub(super) fn log(&mut self, typ: MessageType, message: String) {
        self.notify("window/logMessage", LogMessageParams { typ, message });
    }

    /// Handles a message of the client.
    pub(super) fn receive(&mut self, message: Message) {
        match message {
            Message::Request(Request { id, method, params }) => {
                let answer = AssertUnwindSafe(|| self.answer(&method, params));
                let response = match catch_unwind(answer).unwrap_or(Err(RequestError::Panic)) {
                    Ok(value) => Response::new_ok(id, value),
                    Err(error) => Response::new_err(id, error.code(), error.to_string()),
                };
                self.outgoing.push(response.into());
            }
            Message::Notification(Notification { method, params }) => {
                let heard = AssertUnwindSafe(|| self.hear(&method, params));
                let heard = catch_unwind(heard).unwrap_or(Err(RequestError::Panic));
                if let Err(error) = heard {
                    self.log(MessageType::ERROR, format!("`{method}`: {error}"));
                }
            }
            Message::Response(_) => {}
        }
    }

    fn answer(&mut self, method: &str, params: Value) -> Result<Value, RequestError> {
        match (self.phase, method) {
            (Phase::New, "initialize") => self.initialize(params),
            (Phase::New, _) => Err(RequestError::NotInitialized),
            (Phase::ShutDown | Phase::Ended(_), _) => Err(RequestError::ShutDown),
            (Phase::Running, "shutdown") => {
                self.phase = Phase::ShutDown;
                Ok(Value::Null)
            }
            (Phase::Running, _) => self.answer_about_files(method, params),
        }
    }

    fn initialize(&mut self, params: Value) -> Result<Value, RequestError> {
        let params: InitializeParams = serde_json::from_value(params)?;
        self.client = params.capabilities;
        self.configure(&params.initialization_options.unwrap_or_default());
        self.phase = Phase::Running;
        Ok(json!({
            "capabilities": Self::capabilities(),
            "serverInfo": {"name": "policyd", "version": env!("CARGO_PKG_VERSION")},
        }))
    }

    fn configure(&mut self, value: &Value) {
        let (settings, problems) = ClientSettings::read(value, self.default_profile);
        self.settings = settings;
        for state in self.packs.values_mut() {
            (state.values, state.session_error) = (None, None);
        }
        let workspace = self.client.workspace.as_ref();
        let hints = workspace.and_then(|it| it.inlay_hint.as_ref());
        if self.phase == Phase::Running && hints.and_then(|it| it.refresh_support) == Some(true) {
            self.ask("workspace/inlayHint/refresh", Value::Null);
        }
        problems.into_iter().for_each(|it| self.log(MessageType::ERROR, it));
        self.touch_all();
    }

    fn hear(&mut self, method: &str, params: Value) -> Result<(), RequestError> {
        if method == "exit" {
            let is_expected = self.phase == Phase::ShutDown;
            self.phase =
                Phase::Ended(if is_expected { ServerEnd::ShutDown } else { ServerEnd::ClientLeft });
            return Ok(());
        }
        if self.phase != Phase::Running {
            return Ok(());
        }
        match method {
            "initialized" => self.watch_files(),
            "textDocument/didOpen" => self.open(read(params)?),
            "textDocument/didChange" => self.change(read(params)?),
            "textDocument/didClose" => self.close(&read::<DidCloseTextDocumentParams>(params)?),
            "textDocument/didSave" => {
                let saved: DidSaveTextDocumentParams = read(params)?;
                let path = path_of(&saved.text_document.uri);
                path.into_iter().for_each(|it| self.files_changed(&[it]));
            }
            "workspace/didChangeConfiguration" => {
                let changed: DidChangeConfigurationParams = read(params)?;
                self.configure(&changed.settings);
            }
            "workspace/didChangeWatchedFiles" => {
                let changed: DidChangeWatchedFilesParams = read(params)?;
                let paths = changed.changes.iter().filter_map(|it| path_of(&it.uri));
                self.files_changed(&paths.collect::<Vec<_>>());
            }
            "window/workDoneProgress/cancel" => {
                let token = params.get("token").and_then(Value::as_str);
                let slow = self.packs.values().filter_map(|it| it.slow.as_ref());
                let canceled = slow.filter(|it| Some(it.token.as_str()) == token);
                canceled.for_each(|it| it.cancel.store(true, Ordering::Relaxed));
            }
            // Other notifications need no reaction.
            _ => {}
        }
        Ok(())
    }

    /// Asks the client to report changes of files that are not open.
    fn watch_files(&mut self) {
        let workspace = self.client.workspace.as_ref();
        let watches = workspace.and_then(|it| it.did_change_watched_files.as_ref());
        if watches.and_then(|it| it.dynamic_registration) == Some(true) {
            let watchers = json!([{"globPattern": "**/*.{yaml,yml,lock}"}]);
            self.ask(
                "client/registerCapability",
                json!({"registrations": [{
                    "id": "policyd-files",
                    "method": "workspace/didChangeWatchedFiles",
                    "registerOptions": {"watchers": watchers},
                }]}),
            );
        }
    }

    fn open(&mut self, opened: DidOpenTextDocumentParams) {
        let item = opened.text_document;
        let Some(path) = path_of(&item.uri) else { return };
        let (uri, version, text) = (item.uri, item.version, Arc::from(item.text));
        self.documents.insert(path.clone(), OpenDocument { uri, version, text, pack: None });
        self.find_pack(&path);
    }

    /// Finds the pack of an open file.
    fn find_pack(&mut self, path: &Path) {
        let Some(document) = self.documents.get(path) else { return };
        let mut buffers = self.buffers();
        buffers.push(Buffer { path: path.to_path_buf(), text: Arc::clone(&document.text) });
        let pack = places::pack_of(&worker::with_buffers(self.world, &buffers), path);
        if let Some(document) = self.documents.get_mut(path) {
            document.pack.clone_from(&pack);
        }
        if let Some(folder) = pack {
            self.packs.entry(folder.clone()).or_default();
            self.touch(&folder);
        }
    }

    fn change(&mut self, changed: DidChangeTextDocumentParams) {
        let Some(path) = path_of(&changed.text_document.uri) else { return };
        let Some(document) = self.documents.get_mut(&path) else { return };
        let change = |it: TextDocumentContentChangeEvent| TextChange {
            range: it.range.map(|it| (text_position(it.start), text_position(it.end))),
            text: it.text,
        };
        let mut text = document.text.to_string();
        apply(&mut text, changed.content_changes.into_iter().map(change).collect());
        document.text = Arc::from(text);
        document.version = changed.text_document.version;
        if let Some(folder) = document.pack.clone() {
            self.touch(&folder);
        }
    }

    fn close(&mut self, closed: &DidCloseTextDocumentParams) {
        let Some(path) = path_of(&closed.text_document.uri) else { return };
        let Some(folder) = self.documents.remove(&path).and_then(|it| it.pack) else { return };
        let is_open = self.documents.values().any(|it| it.pack.as_ref() == Some(&folder));
        if is_open {
            return self.touch(&folder);
        }
        if let Some(state) = self.packs.get_mut(&folder) {
            state.findings = None;
        }
        self.publish(&folder);
        if let Some(slow) = self.packs.remove(&folder).and_then(|it| it.slow) {
            slow.cancel.store(true, Ordering::Relaxed);
        }
    }

    /// Files on the disk changed: a pack is read again, and a directory can become a pack.
    fn files_changed(&mut self, paths: &[PathBuf]) {
        let outside = self.documents.iter().filter(|(_, it)| it.pack.is_none());
        let outside: Vec<PathBuf> = outside.map(|(path, _)| path.clone()).collect();
        outside.iter().for_each(|it| self.find_pack(it));
        let holds = |folder: &&PathBuf| paths.iter().any(|it| it.starts_with(folder));
        let folders: Vec<PathBuf> = self.packs.keys().filter(holds).cloned().collect();
        folders.iter().for_each(|it| self.touch(it));
    }

    fn touch_all(&mut self) {
        let folders: Vec<PathBuf> = self.packs.keys().cloned().collect();
        folders.iter().for_each(|it| self.touch(it));
    }

    /// Notes that a pack changed.
    fn touch(&mut self, folder: &Path) {
        let now = self.world.elapsed();
        if let Some(state) = self.packs.get_mut(folder) {
            self.generations = self.generations.saturating_add(1);
            state.generation = self.generations;
            let quiet = state.took.saturating_sub(FAST_LINT).min(QUIET_MAX);
            state.due = Some(now.saturating_add(quiet));
        }
    }
}
