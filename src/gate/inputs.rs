//! What is read and asked before deciding: the transcript's tail, the files that findings speak
//! of, preferences, probes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::calls;
use super::context::GateContext;
use super::probes::{AskLimits, ProbeRunner};
use super::project_files;
use super::project_view::ProjectReader;
use super::report::Report;
use super::request::Request;
use policyd_base::limits::{self, TRANSCRIPT_WAIT_MAX};
use policyd_evaluation::inputs::{DecisionMetadata, Inputs, SubagentRead, TranscriptPosition};
use policyd_evaluation::situation::{
    EventContext, ExcludedFacts, FileNow, exclude_fixed, exclude_generated, exclude_removed,
    exclude_scratch, exclude_undone,
};
use policyd_evaluation::{self as evaluation, Plan, preference};
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

/// What was read before anything is asked.
pub(super) struct EvaluationInputs {
    /// What expressions read before anything is asked.
    pub(super) view: FactView,
    /// The cursor to keep.
    pub(super) cursor: Option<Vec<u8>>,
    read: TranscriptPosition,
    subagents: Vec<SubagentRead>,
    forgotten: ExcludedFacts,
    remote_host: Option<String>,
}

impl EvaluationInputs {
    /// What tells this stop from others.
    pub(super) fn stop_mark(&self, request: &Request<'_>) -> StopMark {
        let event = &request.event;
        let read = self.read.offset.saturating_add(self.read.unfinished as u64);
        let key = checksum(&[
            event.kind.name().as_bytes(),
            event.agent_id.as_deref().unwrap_or_default().as_bytes(),
            &[u8::from(event.stop_active)],
            &read.to_le_bytes(),
        ]);
        StopMark { key: hex(&key), line: request.line.clone(), at: request.now }
    }
}

impl GateContext<'_> {
    /// Reads the transcript's tail, and puts together what expressions see.
    /// `reads_project`: whether rules read which tests and packages the project has.
    pub(super) fn gather(
        &self,
        cursor_path: &Path,
        reads_project: bool,
        report: &mut Report,
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
        let forgotten = self.forget(&mut read.facts);
        let how_far = TranscriptPosition::new(&event, &read.position, read.unfinished);
        let remote_host = policyd_workspace::checkout::remote_host(self.world, &self.project.main);
        report.note(format!(
            "transcript: {} bytes read, cursor {}",
            read.bytes_read,
            if read.from_cursor { "used" } else { "not used" }
        ));
        if !read.waited.is_zero() {
            report.note(format!("transcript: waited {} ms for its end", read.waited.as_millis()));
        }
        // A call that no hook line reported has no session.
        let is_hypothetical = self.request.line.is_empty();
        let is_reported =
            |it: &&TranscriptError| **it != TranscriptError::NotNamed || !is_hypothetical;
        if let Some(problem) = read.problem.as_ref().filter(is_reported) {
            report.problem(&format!("{problem}; nothing in it was checked"));
        }
        if read.facts.lines_foreign > 0 {
            report.problem(&format!(
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
            overrides: self.overrides(report),
            now: self.request.now,
        };
        let view = situation.view(self.policy, self.words);
        let stores = Rc::new(self.load_stores(self.policy.sources, &view, report));
        let mut disk = DiskFacts::default();
        if view.context.event.kind.is_stop() && !self.policy.project_questions.is_empty() {
            let asked = self.policy.project_questions.clone();
            project_files::read(self.world, &self.project.root, asked, &mut disk);
        }
        let view = FactView { stores, disk: Rc::new(disk), ..view };
        EvaluationInputs { view, cursor, read: how_far, subagents, forgotten, remote_host }
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
        let complete = |facts: &Facts| facts.is_complete(event, &hooks);
        let patience = Patience { complete: &complete, limit: TRANSCRIPT_WAIT_MAX };
        let mut read = transcript::read_patiently(world, places, lens, key, deadline, patience);
        read.facts.tools.unseen = read.facts.unseen_calls(event, &hooks);
        if !read.waited.is_zero() {
            calls::record_wait(self, &read.facts);
        }
        read
    }

    /// Adds the work of subagents, where the main agent wants to stop.
    fn add_subagents(&self, read: &mut TranscriptDelta, deadline: Duration) -> Vec<SubagentRead> {
        let event = &self.request.event;
        let main = event.kind == EventKind::Stop && read.problem.is_none();
        let Some(transcript) = event.transcript.as_deref().filter(|_| main) else {
            return Vec::new();
        };
        let folder = self.store.paths(&event.session_id).folder;
        let (world, lens, key) = (self.world, &*self.words.lens, self.policy.lens_key);
        let cursors = Some(folder.as_path());
        Reader { world, lens, key, cursors, deadline }.add(&mut read.facts, transcript)
    }

    /// Loads what rules with these sources read of the stores. `view`: the event and its session.
    pub(super) fn load_stores(
        &self,
        sources: FactSources,
        view: &FactView,
        report: &mut Report,
    ) -> StoreSnapshots {
        if !sources.has_some(FactSources::STORES) {
            return StoreSnapshots::default();
        }
        let stores = Stores { now: self.request.now, ..self.stores(Duration::ZERO) };
        let reads = |source| sources.contains(source);
        let costs = reads(FactSource::Costs).then(|| self.cost_snapshot(view, report)).flatten();
        let memory = reads(FactSource::PackMemory)
            .then(|| self.memory_snapshot(&view.context, report))
            .flatten();
        StoreSnapshots { costs, memory, ..stores.snapshots(sources) }
    }

    /// What the environment says of the context's window, where the pack asks.
    fn overrides(&self, report: &mut Report) -> Overrides {
        if !self.policy.sources.contains(FactSource::Context) {
            return Overrides::default();
        }
        let (overrides, wrong) = project::overrides(self.world);
        wrong.into_iter().for_each(|it| report.note(it));
        overrides
    }

    /// What the decision rests on, as it is logged.
    pub(super) fn inputs(
        &self,
        gathered: &EvaluationInputs,
        view: &FactView,
        state: &SessionState,
        forced_type: Option<&str>,
    ) -> Inputs {
        let besides = DecisionMetadata {
            state,
            program: env!("CARGO_PKG_VERSION"),
            pack_hash: self.found.map(packs::FoundPack::short_hash).unwrap_or_default(),
            pack_folder: self.found.and_then(packs::FoundPack::folder),
            transcript: &gathered.read,
            subagents: &gathered.subagents,
            forgotten: &gathered.forgotten,
            remote_host: gathered.remote_host.as_deref(),
            forced_type,
        };
        Inputs::new(view, besides, mask_json)
    }

    /// Excludes from the facts what is not work of the agent in this project.
    fn forget(&self, facts: &mut Facts) -> ExcludedFacts {
        let Project { folder, root, main, .. } = self.project;
        let said = self.request.event.folder.as_deref();
        let own: Vec<&Path> =
            [folder, root, main].into_iter().map(PathBuf::as_path).chain(said).collect();
        let scratch = exclude_scratch(facts, &own, &project::scratch_folders(self.world));
        let lens = &*self.words.lens;
        let generated = exclude_generated(facts, lens, |path| self.reader().is_generated(path));
        let session_folder = self.store.paths(&self.request.event.session_id).folder;
        let before = match facts.files.is_empty() {
            true => BTreeMap::new(),
            false => edit_log::read(self.world, &session_folder),
        };
        let (settled, undone) = exclude_undone(facts, |file| self.edit_effect(file, &before));
        let removed = exclude_removed(facts, |path| self.is_gone(&self.project.folder.join(path)));
        let fixed = exclude_fixed(facts, |path| self.file_now(&self.project.folder.join(path)));
        ExcludedFacts { fixed, generated, settled, undone, removed, ..scratch }
    }

    /// Whether a file does not exist. If its directory does not exist either, nothing is known.
    fn is_gone(&self, path: &Path) -> bool {
        matches!(self.world.stat(path), Err(WorldError::NotFound))
            && path.parent().is_some_and(|folder| self.world.stat(folder).is_ok())
    }

    fn reader(&self) -> ProjectReader<'_> {
        let Project { folder, root, .. } = self.project;
        ProjectReader { world: self.world, root, folder, lens: &self.words.lens }
    }

    fn file_now(&self, path: &Path) -> FileNow {
        match self.world.read(path, limits::POLICY_FILE_BYTES_MAX) {
            Ok(bytes) => FileNow::Text(String::from_utf8_lossy(&bytes).into_owned()),
            Err(WorldError::NotFound) if self.is_gone(path) => FileNow::Gone,
            Err(_) => FileNow::Unknown,
        }
    }

    /// Looks for preferences and runs probes. Returns the view with what they showed, and the answers to save.
    pub(super) fn ask(
        &self,
        plan: Plan,
        view: FactView,
        evaluator: &mut FactEvaluator,
        report: &mut Report,
    ) -> (FactView, Answers) {
        let view = FactView { session_type: plan.session_type, ..view };
        report.note(format!("session type: {}", view.session_type));
        let branch = view.context.facts.branch.clone();
        let limits = AskLimits { branch: &branch, deadline: self.policy.settings.deadline };
        let (readings, answers) = self.read_asked(&plan.asks, limits, evaluator, report);
        (FactView { readings, ..view }, answers)
    }

    /// Looks for the preferences and runs the probes that are asked, and shows them to expressions. Returns the answers to
    /// save.
    pub(super) fn read_asked(
        &self,
        asked: &AskedNames,
        limits: AskLimits<'_>,
        evaluator: &mut FactEvaluator,
        report: &mut Report,
    ) -> (Rc<Readings>, Answers) {
        let memory = self.store.paths(&self.request.event.session_id).folder;
        if asked.is_empty() {
            return (Rc::default(), Answers::none(&memory));
        }
        let preferences = self.policy.preferences.iter();
        let preferences: Vec<_> =
            preferences.filter(|it| asked.preferences.contains(&it.id)).collect();
        let probes = self.policy.probes.iter();
        let probes: Vec<_> = probes.filter(|it| asked.probes.contains(&it.id)).collect();
        let remembers = preferences.iter().any(|it| it.once)
            || probes.iter().any(|it| it.enabled && it.cache.is_some());
        let mut answers =
            if remembers { Answers::load(self.world, &memory) } else { Answers::none(&memory) };
        let mut readings = Readings::default();
        for it in preferences {
            let found = it.value.or_else(|| answers.preference(it)).or_else(|| {
                let found = self.preference(it, report);
                found.inspect(|found| answers.keep_preference(it, *found))
            });
            let found = found.unwrap_or(false);
            report.note(format!("Preference detected: {} = {found}", it.id));
            readings.preferences.insert(it.id.clone(), found);
        }
        report.around.preferences.clone_from(&readings.preferences);
        let found = Rc::new(readings.clone());
        evaluator.change(|it| it.readings = found);
        let answers_of = &mut answers;
        readings.probes =
            ProbeRunner { context: self, limits, evaluator, answers: answers_of, report }
                .run(&probes);
        for (id, reading) in &readings.probes {
            report.note(match reading {
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
        evaluator.change(|it| it.readings = Rc::clone(&readings));
        (readings, answers)
    }

    /// The session type that the environment names; an unknown one is reported.
    pub(super) fn forced_type(&self, report: &mut Report) -> Option<String> {
        // A project can set variables.
        if self.is_organization {
            return None;
        }
        let variables = &self.policy.settings.session_type_env;
        let forced = variables.iter().find_map(|it| self.world.env(it));
        if let Some(name) = forced.as_deref().filter(|it| !self.policy.has_session_type(it)) {
            let known: Vec<&str> =
                self.policy.session_types.iter().map(|it| it.id.as_str()).collect();
            let help = suggest::did_you_mean(name, &known).unwrap_or_default();
            report.problem(&format!(
                "the environment forces an unknown session type `{name}`; {help}"
            ));
        }
        forced
    }

    /// Whether a preference is found; nothing where a file could not be read and none says it.
    fn preference(&self, it: &Preference, report: &mut Report) -> Option<bool> {
        let regexes: Vec<_> = it.regexes.iter().map(|it| prose_regex(it)).collect();
        report.note(format!("Preference pattern: {}", it.regexes.join(" | ")));
        let mut unread = false;
        let found = it.files.iter().any(|file| {
            let path = self.project.root.join(file);
            report.note(format!("Reading {}", path.display()));
            match self.world.read(&path, limits::POLICY_FILE_BYTES_MAX) {
                Ok(bytes) => preference::found(&String::from_utf8_lossy(&bytes), &regexes),
                Err(WorldError::NotFound) => false,
                Err(error) => {
                    report.note(format!("WARNING: {}: {error}", path.display()));
                    unread = true;
                    false
                }
            }
        });
        (found || !unread).then_some(found)
    }
}
