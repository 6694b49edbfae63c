//! Values of facts in a session: hints in the text, and the value of the expression at a place. Code lenses above rules.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use lsp_types::{
    CodeLens, Command, ExecuteCommandParams, InlayHint, InlayHintKind, InlayHintLabel,
    InlayHintParams, MessageType, ShowMessageParams, TextDocumentPositionParams,
};
use serde_json::{Value, json};

use super::background::is_trusted;
use super::convert::TextLines;
use super::features::OpenPlace;
use super::request::{DocumentParams, RequestError, read};
use super::server::Server;
use super::session_values::SessionValues;
use policyd_app::sessions::named::{Session, SessionSelector};
use policyd_app::workspace::project;
use policyd_editor::hover::FactInExpression;
use policyd_editor::keys;
use policyd_editor::lenses;
use policyd_editor::place;
use policyd_editor::values::{hints, value_of};
use policyd_fact_table::FactEvaluator;
use policyd_fact_table::context::FactView;
use policyd_fact_table::parts::PartValue;
use policyd_policy::{builtin, load};
use policyd_record::decision_log::masked_parts;
use policyd_record::drawing;

/// Runs the cases of the pack of a file.
pub(super) const RUN_CASES: &str = "policyd.runCases";
/// Shows the recorded stops and calls at which a rule would have fired.
pub(super) const SHOW_STOPS: &str = "policyd.showStops";
/// Evaluates the expression at a place.
pub(super) const EVALUATE: &str = "policyd.evaluate";

/// How long the values of a session are kept: it may go on meanwhile.
const VALUES_KEPT: Duration = Duration::from_secs(2);
/// Number of times that a reading takes until a hover reads the session again. Requests wait for a reading, so readings take
/// at most a twentieth of the time.
const HOVER_READ_FACTOR: u32 = 20;

impl Server<'_> {
    /// The facts of the chosen session as the rules of a pack see them.
    fn session_view(&mut self, folder: &Path) -> Result<Rc<FactView>, RequestError> {
        let failed = |text: String| RequestError::Failed(text);
        if !is_trusted(self.world, folder) {
            let folder = folder.display();
            return Err(failed(format!(
                "the pack in {folder} is not trusted, so its rules are not evaluated; see `policyd trust`"
            )));
        }
        let session = self.settings.session.clone();
        let state = self.packs.get(folder).ok_or_else(|| failed("no pack".to_owned()))?;
        let generation = state.generation;
        if let Some(known) = &state.values
            && (known.generation, &known.session) == (generation, &session)
            && self.world.elapsed().saturating_sub(known.read) < VALUES_KEPT
        {
            return Ok(Rc::clone(&known.seen));
        }
        let read = self.world.elapsed();
        let view = self.view(folder).ok_or_else(|| failed("no pack".to_owned()))?;
        let loaded = load::load(&view.pack, &builtin::pack()).policy;
        let mut policy = loaded
            .ok_or_else(|| failed("the pack has errors, so it cannot be evaluated".to_owned()))?;
        let project = project::at(self.world, folder);
        let wanted = SessionSelector { named: session.as_deref(), subagent: false };
        let found = Session::find(self.world, &project, &mut policy, wanted);
        let seen = Rc::new(found.map_err(|error| failed(error.to_string()))?.view);
        if let Some(state) = self.packs.get_mut(folder) {
            let seen = Rc::clone(&seen);
            let took = self.world.elapsed().saturating_sub(read);
            state.values = Some(SessionValues { generation, session, seen, read, took });
        }
        Ok(seen)
    }

    /// The value of a fact in the chosen session, else in the newest one.
    pub(super) fn value_of(&mut self, folder: &Path, fact: &FactInExpression) -> Option<String> {
        let known = self.packs.get(folder)?.values.as_ref();
        let now = self.world.elapsed();
        let is_current = |it: &&SessionValues| {
            let age = now.saturating_sub(it.read);
            it.session == self.settings.session && age < it.took.saturating_mul(HOVER_READ_FACTOR)
        };
        let seen = match known.filter(is_current) {
            Some(known) => Rc::clone(&known.seen),
            None => self.session_view(folder).ok()?,
        };
        let FactInExpression { expression, word } = fact;
        let parts = masked_parts(&FactEvaluator::new(seen).explain(expression));
        value_of(expression, &parts, word)
    }

    /// Values of facts behind the facts. Nothing without a chosen session.
    pub(super) fn inlay_hints(&mut self, params: &InlayHintParams) -> Option<Value> {
        let (path, folder, text) = self.opened(&params.text_document.uri)?;
        self.settings.session.as_ref()?;
        let seen = match self.session_view(&folder) {
            Ok(seen) => seen,
            Err(error) => {
                let told =
                    self.packs.get(&folder)?.session_error.as_deref() == Some(&error.to_string());
                if !told {
                    self.log(MessageType::WARNING, error.to_string());
                }
                self.packs.get_mut(&folder)?.session_error = Some(error.to_string());
                return Some(json!([]));
            }
        };
        let view = self.view(&folder)?;
        let lines = TextLines::new(&text);
        let wanted = lines.bytes(params.range);
        let now = self.world.now();
        let found = hints(&view, &path.display().to_string(), now, |site| {
            let span = site.whole();
            let is_shown = span.start <= wanted.end && wanted.start <= span.end;
            // A record is known only while its file is evaluated.
            let is_about_facts = is_shown && !site.reads_record();
            is_about_facts
                .then(|| masked_parts(&FactEvaluator::new(Rc::clone(&seen)).explain(site.text)))
        });
        let hint = |(at, text): (usize, String)| InlayHint {
            position: lines.position(at),
            label: InlayHintLabel::String(text),
            kind: Some(InlayHintKind::TYPE),
            text_edits: None,
            tooltip: None,
            padding_left: Some(true),
            padding_right: None,
            data: None,
        };
        Some(json!(found.into_iter().map(hint).collect::<Vec<_>>()))
    }

    /// How many cases a rule has, how they ended, and how often the rule would have fired.
    pub(super) fn lenses(&mut self, params: &DocumentParams) -> Option<Value> {
        let (path, folder, text) = self.opened(&params.text_document.uri)?;
        self.expect_lenses(&folder);
        let (view, ids) = self.ids(&folder)?;
        let lines = TextLines::new(&text);
        let uri = self.documents.get(&path)?.uri.clone();
        let state = self.packs.get(&folder)?;
        let results = state.cases.as_ref().map(|(_, results)| results.as_slice());
        let counts = state.counts.as_ref().filter(|_| self.settings.replays);
        let counts = counts.map(|(_, counts)| counts);
        let mut found = Vec::new();
        for rule in lenses::rules(&view, &ids, &path.display().to_string()) {
            let range = lines.range(&rule.range);
            let mut add = |title: String, command: &str| {
                let arguments = Some(vec![json!(uri), json!(rule.id)]);
                let command = Command { title, command: command.to_owned(), arguments };
                found.push(CodeLens { range, command: Some(command), data: None });
            };
            add(format!("{} | run", lenses::cases_text(&rule, results)), RUN_CASES);
            if let Some(text) = counts.and_then(|it| it.text(&rule)) {
                add(format!("{text} | show"), SHOW_STOPS);
            }
            if let Some(text) = state.fired.as_ref().and_then(|it| it.text(&rule.id)) {
                // A lens without a command only shows its text.
                add(text, "");
            }
        }
        Some(json!(found))
    }

    /// Runs a command of a lens, or of the user.
    pub(super) fn execute(&mut self, params: ExecuteCommandParams) -> Result<Value, RequestError> {
        let mut arguments = params.arguments.into_iter();
        let first = arguments.next().unwrap_or_default();
        match params.command.as_str() {
            RUN_CASES => {
                let (_, folder, _) = self.opened_by(first)?;
                if !is_trusted(self.world, &folder) {
                    let text =
                        "the pack is not trusted, so its cases do not run; see `policyd trust`";
                    return Err(RequestError::Failed(text.to_owned()));
                }
                self.start_slow(&folder, true);
                Ok(Value::Null)
            }
            SHOW_STOPS => {
                let (_, folder, _) = self.opened_by(first)?;
                let id: String = read(arguments.next().unwrap_or_default())?;
                Ok(self.show_stops(&folder, &id))
            }
            EVALUATE => {
                let params: TextDocumentPositionParams = read(first)?;
                self.evaluate(&params)
            }
            other => Err(RequestError::UnknownMethod(other.to_owned())),
        }
    }

    fn opened_by(
        &self,
        uri: Value,
    ) -> Result<(PathBuf, PathBuf, std::sync::Arc<str>), RequestError> {
        let not_open = || RequestError::Failed("the file of the rule is not open".to_owned());
        self.opened(&read(uri)?).ok_or_else(not_open)
    }

    fn show_stops(&mut self, folder: &Path, id: &str) -> Value {
        let counts = self.packs.get(folder).and_then(|it| it.counts.as_ref());
        let found: Vec<Value> = counts
            .map(|(_, it)| it.examples(id))
            .unwrap_or_default()
            .iter()
            .map(|it| {
                let place = format!("{}:{}", it.file, it.line);
                json!({"place": place, "subject": it.subject, "details": it.details})
            })
            .collect();
        let line = |it: &Value| {
            // A stop has no subject.
            let texts = ["place", "subject", "details"].into_iter();
            let texts = texts.filter_map(|key| it.get(key)?.as_str());
            texts.filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ")
        };
        let text = match found.as_slice() {
            [] => format!("`{id}` would not have fired in the recorded sessions"),
            some => some.iter().map(line).collect::<Vec<_>>().join("\n"),
        };
        self.show(text);
        json!(found)
    }

    fn show(&mut self, message: String) {
        let typ = MessageType::INFO;
        self.notify("window/showMessage", ShowMessageParams { typ, message });
    }

    /// Evaluates the expression at a place, as `policyd try` does.
    fn evaluate(&mut self, params: &TextDocumentPositionParams) -> Result<Value, RequestError> {
        let failed = |text: &str| RequestError::Failed(text.to_owned());
        let place = self.place(params).ok_or_else(|| failed("the file belongs to no pack"))?;
        let expression = self.expression(&place).ok_or_else(|| failed("no expression here"))?;
        if let Some(state) = self.packs.get_mut(&place.folder) {
            // The session may have gone on.
            state.values = None;
        }
        let seen = self.session_view(&place.folder)?;
        let parts = masked_parts(&FactEvaluator::new(seen).explain(&expression));
        let drawn = drawing::draw(&expression, &parts);
        let value = parts.last().map(|it| match &it.found {
            PartValue::Value(value) => json!(value.to_string()),
            PartValue::Failed(_) | PartValue::NotReached => Value::Null,
        });
        self.show(drawn.clone());
        Ok(json!({"expression": expression, "value": value, "text": drawn}))
    }

    /// The whole expression at a place; `None` if it reads a record, whose values are not known here.
    fn expression(&mut self, place: &OpenPlace) -> Option<String> {
        let view = self.view(&place.folder)?;
        let at = place::find(&place.text, place.at);
        let found = keys::expression_at(&view, place.file(), place.at, &at)?;
        found.names.record.is_none().then(|| found.text.trim().to_owned())
    }
}
