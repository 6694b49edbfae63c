//! Reads what a decision needs before it is made: the end of the transcript, the files that findings name, preferences,
//! and probes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::calls;
use super::context::GateContext;
use super::diagnostics::Diagnostics;
use super::probes::{AskLimits, ProbeRunner};
use super::project_files;
use super::project_view::ProjectReader;
use super::request::Request;
use policyd_base::limits::{self, TRANSCRIPT_WAIT_MAX};
use policyd_evaluation::inputs::{DecisionMetadata, Inputs, SubagentRead, TranscriptPosition};
use policyd_evaluation::situation::{
    EventContext, ExcludedFacts, FileNow, exclude_fixed, exclude_generated, exclude_removed,
    exclude_scratch, exclude_undone,
};
use policyd_evaluation::{self as evaluation, Plan};
use policyd_fact_table::FactEvaluator;
use policyd_fact_table::context::{FactView, ProbeResult, Readings, StoreSnapshots};
use policyd_fact_table::pattern::prose_regex;
use policyd_fact_table::source::{FactSource, FactSources};
use policyd_fact_table::text_facts::DiskFacts;
use policyd_facts::Facts;
use policyd_facts::event::EventKind;
use policyd_packs as packs;
use policyd_policy::{AskedNames, Preference};
use policyd_record::mask::mask_json;
use policyd_state::context::Overrides;
use policyd_state::{SessionState, StopMark};
use policyd_store::edit_log;
use policyd_store::hook_calls;
use policyd_store::probe_cache::Answers;
use policyd_store::subagents::Reader;
use policyd_store::transcript::{self, Patience, Places, TranscriptDelta, TranscriptError};
use policyd_tasks::Stores;
use policyd_workspace::project::{self, Project};
use policyd_world::WorldError;
use policyd_yaml::checksum::{checksum, hex};
use policyd_yaml::suggest;

/// Inputs of a decision that are known before preferences are looked up and probes run.
pub(super) struct EvaluationInputs {
    /// What expressions can read so far.
    pub(super) view: FactView,
    /// The new cursor of the transcript, to be saved. `None` if nothing new was read.
    pub(super) cursor: Option<Vec<u8>>,
    position: TranscriptPosition,
    subagents: Vec<SubagentRead>,
    excluded: ExcludedFacts,
    remote_host: Option<String>,
}

/// Answers of preferences and probes.
pub(super) struct AskResult {
    /// Values for expressions. `None` if rules read no preference and no probe.
    pub(super) readings: Option<Rc<Readings>>,
    /// Answers to save for later events of the session.
    pub(super) answers: Answers,
}

impl EvaluationInputs {
    /// Returns what distinguishes this stop from others. Two hook lines that report the same stop have the same mark.
    pub(super) fn stop_mark(&self, request: &Request<'_>) -> StopMark {
        let event = &request.event;
        let end = self.position.offset.saturating_add(self.position.unfinished as u64);
        let key = checksum(&[
            event.kind.name().as_bytes(),
            event.agent_id.as_deref().unwrap_or_default().as_bytes(),
            &[u8::from(event.stop_active)],
            &end.to_le_bytes(),
        ]);
        StopMark { key: hex(&key), line: request.line.clone(), at: request.now }
    }
}

impl GateContext<'_> {
    /// Reads the end of the transcript, and builds the view of expressions.
    /// `reads_project`: whether rules read which tests and packages the project has.
    pub(super) fn gather(
        &self,
        cursor_path: &Path,
        reads_project: bool,
        diagnostics: &mut Diagnostics,
    ) -> EvaluationInputs {
        let event = self.request.event.clone();
        let deadline = self.world.elapsed().saturating_add(self.policy.settings.deadline);
        let mut read = match &event.transcript {
            None => TranscriptDelta {
                problem: Some(TranscriptError::NotNamed),
                ..TranscriptDelta::default()
            },
            Some(transcript) => {
                let subagent = event.subagent_transcript;
                let places = Places { transcript, cursor: Some(cursor_path), subagent };
                self.read(places, deadline)
            }
        };
        let cursor = read.cursor.take();
        let subagents = self.add_subagents(&mut read, deadline);
        let excluded = self.exclude_foreign_work(&mut read.facts);
        let position = TranscriptPosition::new(&event, &read.position, read.unfinished);
        let remote_host = policyd_workspace::checkout::remote_host(self.world, &self.project.main);
        diagnostics.note(format!(
            "transcript: {} bytes read, cursor {}",
            read.bytes_read,
            if read.from_cursor { "used" } else { "not used" }
        ));
        if !read.waited.is_zero() {
            diagnostics
                .note(format!("transcript: waited {} ms for its end", read.waited.as_millis()));
        }
        // A call that no hook line reported has no session.
        let is_hypothetical = self.request.line.is_empty();
        let is_reported =
            |it: &&TranscriptError| **it != TranscriptError::NotNamed || !is_hypothetical;
        if let Some(problem) = read.problem.as_ref().filter(is_reported) {
            diagnostics.problem(&format!("{problem}; nothing in it was checked"));
        }
        if read.facts.lines_foreign > 0 {
            diagnostics.problem(&format!(
                "the transcript contains messages that the client did not write ({}); they are ignored",
                read.facts.lines_foreign
            ));
        }
        let project_view = reads_project.then(|| self.reader().view(&read.facts)).flatten();
        let situation = EventContext {
            gauged: true,
            project_view,
            event,
            transcript_problem: read.problem.map(|it| it.to_string()),
            facts: read.facts,
            interactive: self.is_attended(),
            supervised: self.is_supervised(),
            recorded: false,
            project: self.project.root.clone(),
            remote_host: remote_host.clone(),
            overrides: self.overrides(diagnostics),
            now: self.request.now,
        };
        let view = situation.view(self.policy, self.words);
        let stores = Rc::new(self.load_stores(self.policy.sources, &view, diagnostics));
        let mut disk = DiskFacts::default();
        if view.context.event.kind.is_stop() && !self.policy.project_questions.is_empty() {
            let questions = self.policy.project_questions.clone();
            project_files::read(self.world, &self.project.root, questions, &mut disk);
        }
        let view = FactView { stores, disk: Rc::new(disk), ..view };
        EvaluationInputs { view, cursor, position, subagents, excluded, remote_host }
    }

    /// Returns whether the condition of a session type reads the files of the project.
    pub(super) fn types_read_project(&self) -> bool {
        let types = self.policy.session_types.iter();
        let mut sources = types.map(|it| FactSources::of_uses(it.when.uses.iter()));
        sources.any(|it| it.contains(FactSource::Project))
    }

    /// Reads the transcript; at a stop until it shows everything that the event and hooks report.
    fn read(&self, places: Places<'_>, deadline: Duration) -> TranscriptDelta {
        let (world, event) = (self.world, &self.request.event);
        let (lens, key) = (&*self.words.lens, self.policy.lens_key);
        if !event.kind.is_stop() || event.transcript_final {
            return transcript::read(world, places, lens, key, deadline);
        }
        let hooks = hook_calls::read(world, &self.store.paths(&event.session_id).folder);
        // Clients write the transcript while their hooks run, so its end can be missing.
        let complete = |facts: &Facts| facts.is_complete(event, &hooks);
        let patience = Patience { complete: &complete, limit: TRANSCRIPT_WAIT_MAX };
        let mut read = transcript::read_patiently(world, places, lens, key, deadline, patience);
        read.facts.tools.unseen = read.facts.unseen_calls(event, &hooks);
        if !read.waited.is_zero() {
            calls::record_wait(self, &read.facts);
        }
        read
    }

    /// Adds the work of subagents to the facts if the main agent wants to stop. Returns which transcripts were read.
    fn add_subagents(&self, read: &mut TranscriptDelta, deadline: Duration) -> Vec<SubagentRead> {
        let event = &self.request.event;
        let is_main_stop = event.kind == EventKind::Stop && read.problem.is_none();
        let Some(transcript) = event.transcript.as_deref().filter(|_| is_main_stop) else {
            return Vec::new();
        };
        let folder = self.store.paths(&event.session_id).folder;
        let (world, lens, key) = (self.world, &*self.words.lens, self.policy.lens_key);
        let cursors = Some(folder.as_path());
        Reader { world, lens, key, cursors, deadline }.add(&mut read.facts, transcript)
    }

    /// Loads what rules with these sources read of the stores. `view` contains the event and its session.
    pub(super) fn load_stores(
        &self,
        sources: FactSources,
        view: &FactView,
        diagnostics: &mut Diagnostics,
    ) -> StoreSnapshots {
        if !sources.has_some(FactSources::STORES) {
            return StoreSnapshots::default();
        }
        let stores = Stores { now: self.request.now, ..self.stores(Duration::ZERO) };
        let reads = |source| sources.contains(source);
        let costs =
            reads(FactSource::Costs).then(|| self.cost_snapshot(view, diagnostics)).flatten();
        let memory = reads(FactSource::PackMemory)
            .then(|| self.memory_snapshot(&view.context, diagnostics))
            .flatten();
        StoreSnapshots { costs, memory, ..stores.snapshots(sources) }
    }

    /// Returns the settings of the context window in the environment, if the pack reads the context window.
    fn overrides(&self, diagnostics: &mut Diagnostics) -> Overrides {
        if !self.policy.sources.contains(FactSource::Context) {
            return Overrides::default();
        }
        let (overrides, invalid) = project::overrides(self.world);
        invalid.into_iter().for_each(|it| diagnostics.note(it));
        overrides
    }

    /// Returns the inputs of a decision as they are logged, so that `policyd explain` can evaluate it again.
    pub(super) fn logged_inputs(
        &self,
        inputs: &EvaluationInputs,
        view: &FactView,
        state: &SessionState,
        forced_type: Option<&str>,
    ) -> Inputs {
        let metadata = DecisionMetadata {
            state,
            program: env!("CARGO_PKG_VERSION"),
            pack_hash: self.found.map(packs::FoundPack::short_hash).unwrap_or_default(),
            pack_folder: self.found.and_then(packs::FoundPack::folder),
            transcript: &inputs.position,
            subagents: &inputs.subagents,
            forgotten: &inputs.excluded,
            remote_host: inputs.remote_host.as_deref(),
            forced_type,
        };
        Inputs::new(view, metadata, mask_json)
    }

    /// Excludes from the facts what is not work of the agent in this project.
    fn exclude_foreign_work(&self, facts: &mut Facts) -> ExcludedFacts {
        let Project { folder, root, main, .. } = self.project;
        let event_folder = self.request.event.folder.as_deref();
        let folders = [folder, root, main].into_iter().map(PathBuf::as_path);
        let project_folders: Vec<&Path> = folders.chain(event_folder).collect();
        let scratch =
            exclude_scratch(facts, &project_folders, &project::scratch_folders(self.world));
        let lens = &*self.words.lens;
        let session_folder = self.store.paths(&self.request.event.session_id).folder;
        let before = match facts.files.is_empty() {
            true => BTreeMap::new(),
            false => edit_log::read(self.world, &session_folder),
        };
        let generated = exclude_generated(facts, lens, |file| {
            self.is_only_commented(file, &before) || self.reader().is_generated(&file.path)
        });
        let (settled, undone) = exclude_undone(facts, |file| self.edit_effect(file, &before));
        let removed = exclude_removed(facts, |path| self.is_gone(&self.project.folder.join(path)));
        let fixed = exclude_fixed(facts, |path| self.file_now(&self.project.folder.join(path)));
        ExcludedFacts { fixed, generated, settled, undone, removed, ..scratch }
    }

    /// Returns whether a file does not exist although its directory does. Without the directory, nothing is known.
    fn is_gone(&self, path: &Path) -> bool {
        matches!(self.world.stat(path), Err(WorldError::NotFound))
            && path.parent().is_some_and(|folder| self.world.stat(folder).is_ok())
    }

    fn reader(&self) -> ProjectReader<'_> {
        let Project { folder, root, .. } = self.project;
        ProjectReader { world: self.world, root, folder, lens: &self.words.lens }
    }

    /// Reads what a file contains now.
    fn file_now(&self, path: &Path) -> FileNow {
        match self.world.read(path, limits::POLICY_FILE_BYTES_MAX) {
            Ok(bytes) => FileNow::Text(String::from_utf8_lossy(&bytes).into_owned()),
            Err(WorldError::NotFound) if self.is_gone(path) => FileNow::Gone,
            Err(_) => FileNow::Unknown,
        }
    }

    /// Looks up the preferences and runs the probes of a plan. Returns the view with their values, and the answers to save.
    pub(super) fn read_planned(
        &self,
        plan: Plan,
        view: FactView,
        evaluator: &mut FactEvaluator,
        diagnostics: &mut Diagnostics,
    ) -> (FactView, Answers) {
        let view = FactView { session_type: plan.session_type, ..view };
        diagnostics.note(format!("session type: {}", view.session_type));
        let branch = view.context.facts.branch.clone();
        let limits = AskLimits { branch: &branch, deadline: self.policy.settings.deadline };
        let AskResult { readings, answers } =
            self.read_asked(&plan.asks, limits, evaluator, diagnostics);
        (FactView { readings: readings.unwrap_or_default(), ..view }, answers)
    }

    /// Looks up preferences and runs probes, and shows their values to the expressions of `evaluator`.
    pub(super) fn read_asked(
        &self,
        asked: &AskedNames,
        limits: AskLimits<'_>,
        evaluator: &mut FactEvaluator,
        diagnostics: &mut Diagnostics,
    ) -> AskResult {
        let session_folder = self.store.paths(&self.request.event.session_id).folder;
        if asked.is_empty() {
            return AskResult { readings: None, answers: Answers::none(&session_folder) };
        }
        let preferences = self.policy.preferences.iter();
        let preferences: Vec<_> =
            preferences.filter(|it| asked.preferences.contains(&it.id)).collect();
        let probes = self.policy.probes.iter();
        let probes: Vec<_> = probes.filter(|it| asked.probes.contains(&it.id)).collect();
        let are_saved = preferences.iter().any(|it| it.once)
            || probes.iter().any(|it| it.enabled && it.cache.is_some());
        let mut answers = match are_saved {
            true => Answers::load(self.world, &session_folder),
            false => Answers::none(&session_folder),
        };
        let mut readings = Readings::default();
        for preference in preferences {
            let known = preference.value.or_else(|| answers.preference(preference));
            let found = known.or_else(|| {
                let found = self.find_preference(preference, diagnostics);
                found.inspect(|found| answers.keep_preference(preference, *found))
            });
            let found = found.unwrap_or(false);
            diagnostics.note(format!("Preference detected: {} = {found}", preference.id));
            readings.preferences.insert(preference.id.clone(), found);
        }
        // The input of a probe is a template, which can read preferences.
        let known = Rc::new(readings.clone());
        evaluator.change(|view| view.readings = known);
        let saved = &mut answers;
        readings.probes =
            ProbeRunner { context: self, limits, evaluator, answers: saved, diagnostics }
                .run(&probes);
        for (id, reading) in &readings.probes {
            diagnostics.note(match reading {
                ProbeResult::Answer { code, value } => {
                    format!(
                        "probe {id}: exit {code}, {}",
                        evaluation::message::cut(&value.to_string(), 400)
                    )
                }
                ProbeResult::Failed(why) => format!("probe {id} failed: {why}"),
            });
        }
        let readings = Rc::new(readings);
        evaluator.change(|view| view.readings = Rc::clone(&readings));
        AskResult { readings: Some(readings), answers }
    }

    /// Returns the session type that the environment names. Reports a name that the pack does not have.
    pub(super) fn forced_type(&self, diagnostics: &mut Diagnostics) -> Option<String> {
        // A project can set variables, and nothing in it changes the rules of the organization.
        if self.is_organization {
            return None;
        }
        let variables = &self.policy.settings.session_type_env;
        let forced = variables.iter().find_map(|it| self.world.env(it));
        if let Some(name) = forced.as_deref().filter(|it| !self.policy.has_session_type(it)) {
            let known: Vec<&str> =
                self.policy.session_types.iter().map(|it| it.id.as_str()).collect();
            let help = suggest::did_you_mean(name, &known).unwrap_or_default();
            diagnostics.problem(&format!(
                "the environment forces an unknown session type `{name}`; {help}"
            ));
        }
        forced
    }

    /// Searches the files of a preference. `None` if no file has it and one of them could not be read.
    fn find_preference(
        &self,
        preference: &Preference,
        diagnostics: &mut Diagnostics,
    ) -> Option<bool> {
        let regexes: Vec<_> = preference.regexes.iter().map(|it| prose_regex(it)).collect();
        diagnostics.note(format!("Preference pattern: {}", preference.regexes.join(" | ")));
        let mut has_unread_file = false;
        let found = preference.files.iter().any(|file| {
            let path = self.project.root.join(file);
            diagnostics.note(format!("Reading {}", path.display()));
            match self.world.read(&path, limits::POLICY_FILE_BYTES_MAX) {
                Ok(bytes) => {
                    evaluation::preference::found(&String::from_utf8_lossy(&bytes), &regexes)
                }
                Err(WorldError::NotFound) => false,
                Err(error) => {
                    diagnostics.note(format!("WARNING: {}: {error}", path.display()));
                    has_unread_file = true;
                    false
                }
            }
        });
        (found || !has_unread_file).then_some(found)
    }
}
