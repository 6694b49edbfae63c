//! Guards at an event: analyzes the tool call, reads what the guards that it concerns need, evaluates them, and logs the
//! result. The transcript is read only if one of these guards reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::rc::Rc;

use super::allowances;
use super::answers;
use super::approvals;
use super::call_files::DiskReader;
use super::changed_code;
use super::client_rules::ClientRules;
use super::context::GateContext;
use super::decision_logs;
use super::diagnostics::Diagnostics;
use super::event_result::EventResult;
use super::inputs::AskResult;
use super::on_disk::{self, GateDisk};
use super::permission;
use super::probes::AskLimits;
use super::request::Request;
use super::scripts::{self, ScriptGuards};
use super::work_tree::CleanTrees;
use policyd_base::limits::GUARD_PROBES_DEADLINE;
use policyd_evaluation::call_code;
use policyd_evaluation::called::{By, LoggedEvent};
use policyd_evaluation::combine::Decision;
use policyd_evaluation::guards::{self, GuardsOutcome};
use policyd_evaluation::situation::EventContext;
use policyd_evaluation::{self as evaluation, Detail};
use policyd_fact_table::FactEvaluator;
use policyd_fact_table::call_facts::CallFacts;
use policyd_fact_table::context::{Context, FactView};
use policyd_fact_table::source::{FactSource, FactSources};
use policyd_facts::call::{AnalysisContext, Call, CallEnvironment, ShellText};
use policyd_facts::event::{Event, EventKind};
use policyd_hook::HookResponse;
use policyd_packs as packs;
use policyd_policy::AskedNames;
use policyd_policy::guards::Guard;
use policyd_record::decision_log;
use policyd_record::mask::mask_json;
use policyd_store::allowance::BlockedEvent;
use policyd_store::decision_log::log_decision;
use policyd_store::transcript;
use policyd_workspace::project;

/// Variables that change what the shell itself runs, also if no program receives them.
const SHELL_VARIABLES: [&str; 6] = ["CDPATH", "PATH", "BASH_ENV", "ENV", "PS4", "PROMPT_COMMAND"];

/// The decision of guards about an event.
pub(super) struct GuardDecision {
    pub(super) outcome: GuardsOutcome,
    /// The tool call as guards see it.
    pub(super) call_facts: Rc<CallFacts>,
    /// Ids of the guards that read something that the log does not contain, so that no replay can evaluate them.
    unreplayable: BTreeSet<String>,
    /// The rules of the client. `None` at other events than a permission prompt.
    client_rules: Option<ClientRules>,
    /// The event with its session, as far as it was read.
    event_context: Rc<Context>,
    /// Preferences that guards read. `None` if they read no preference and no probe.
    pub(super) preferences: Option<BTreeMap<String, bool>>,
}

/// The result of guards at an event, after its effects.
pub(super) struct GuardsResult {
    outcome: GuardsOutcome,
    /// The tool call as guards see it.
    call_facts: Rc<CallFacts>,
    /// How the user can allow what is blocked.
    override_hint: Option<String>,
    /// Preferences that guards read, and whether they were found.
    preferences: BTreeMap<String, bool>,
}

impl GuardsResult {
    /// Returns the result of the event, whose answer contains other texts already.
    pub(super) fn into_event_result(self, event: &Event, answer: HookResponse) -> EventResult {
        EventResult {
            answer: answers::add_guards(answer, event, &self.outcome, self.override_hint),
            guards: Some(self.outcome),
            call: Some(self.call_facts),
            preferences: self.preferences,
            ..EventResult::default()
        }
    }
}

/// An event that guards may apply to.
pub(super) struct GuardEvaluation<'a> {
    pub(super) context: &'a GateContext<'a>,
}

impl GuardEvaluation<'_> {
    /// Evaluates the guards that the event concerns, with all effects. `None` if no guard applies.
    pub(super) fn evaluate(&self, diagnostics: &mut Diagnostics) -> Option<GuardsResult> {
        let decision = self.decide(diagnostics)?;
        let decision = self.confirm(decision, diagnostics);
        let memory = &decision.outcome.memory;
        self.context.change_memory(memory, &decision.event_context, diagnostics);
        let decision = self.apply_allowances(decision, diagnostics);
        let override_hint = self.override_hint(&decision.outcome, diagnostics);
        self.log(&decision, diagnostics);
        let GuardDecision { outcome, call_facts, preferences, .. } = decision;
        let preferences = preferences.unwrap_or_default();
        Some(GuardsResult { outcome, call_facts, override_hint, preferences })
    }

    /// Evaluates the guards that the event concerns. Probes run, but nothing follows from the decision yet. `None` if no
    /// guard applies.
    pub(super) fn decide(&self, diagnostics: &mut Diagnostics) -> Option<GuardDecision> {
        let context = self.context;
        let Request { event, now, detail, .. } = context.request;
        guards::applicable_guards(context.policy, event, *now).next()?;
        let mut call_facts = self.analyze_call();
        let concerned = match detail {
            // An explanation shows every condition.
            Detail::Values => guards::applicable_guards(context.policy, event, *now).collect(),
            Detail::Findings | Detail::Everything => {
                guards::concerned_guards(context.policy, event, &call_facts.call, *now)
            }
        };
        self.inspect(&concerned, &mut call_facts);
        let is_prompt = event.kind == EventKind::PermissionRequest;
        let client_rules = is_prompt.then(|| ClientRules::load(context));
        if is_prompt {
            self.add_assigned(&mut call_facts.call);
        }
        call_facts.allowed =
            client_rules.iter().flat_map(|it| it.allowed_programs(&call_facts)).collect();
        let call_facts = Rc::new(call_facts);
        let script_guards = self.script_guards(&call_facts.call);
        let view = self.view(&concerned, &script_guards, &call_facts, diagnostics);
        let event_context = Rc::clone(&view.context);
        let mut evaluator = ManuallyDrop::new(FactEvaluator::new(Rc::new(view)));
        evaluator.watch.clone_from(&context.request.watch);
        let readers = concerned.iter().copied();
        let readers = readers.filter(|it| asks(it) && self.is_matched(it, &call_facts.call));
        let readers: Vec<&Guard> =
            readers.chain(script_guards.into_iter().filter(|it| asks(it))).collect();
        let preferences = self.read_asked(&readers, &mut evaluator, diagnostics);
        let unreplayable = concerned.iter().filter(|it| reads_unlogged(it, event));
        let unreplayable = unreplayable.map(|it| it.id.clone()).collect();
        let of_call = concerned.iter().copied();
        let mut outcome =
            guards::judge(of_call, event, &call_facts, &event_context, &mut evaluator, *detail);
        let scripts = ScriptGuards { context, call_facts: &call_facts };
        scripts.evaluate(&event_context, &mut evaluator, &mut outcome);
        Some(GuardDecision {
            outcome,
            call_facts,
            unreplayable,
            client_rules,
            event_context,
            preferences,
        })
    }

    /// Withdraws the allow of guards at a permission prompt, if another rule wants the user to answer.
    fn confirm(&self, decision: GuardDecision, diagnostics: &mut Diagnostics) -> GuardDecision {
        let GuardDecision { mut outcome, call_facts, client_rules, preferences, .. } = decision;
        let asked = client_rules.as_ref().filter(|_| outcome.decision == Decision::Allow);
        let objection = asked
            .map(|rules| permission::find_objection(self.context, rules, &call_facts, diagnostics));
        let objection = objection.unwrap_or_default();
        if let Some(why) = objection.why {
            outcome.withdraw_allow(&why);
        }
        let preferences = objection.preferences.or(preferences);
        GuardDecision { outcome, call_facts, client_rules, preferences, ..decision }
    }

    /// Returns whether a guard recognizes a program of a call, or is not about programs.
    fn is_matched(&self, guard: &Guard, call: &Call) -> bool {
        let values = &self.context.words.lens.lens().value_options;
        guards::matches_any_program(guard, call, values)
    }

    /// Returns the guards that look into a file that the call runs, and that read a preference, a probe, or a store.
    fn script_guards(&self, call: &Call) -> Vec<&Guard> {
        let Request { event, now, .. } = self.context.request;
        let sources = FactSources::READINGS.union(FactSources::STORES);
        let scripts = call.all_scripts();
        let found = scripts.iter().flat_map(|script| {
            let guards = guards::script_guards(self.context.policy, event, &script.call, *now);
            guards.into_iter().filter(|guard| {
                guard.sources.has_some(sources)
                    && scripts::can_evaluate(guard)
                    && self.is_matched(guard, &script.call)
            })
        });
        found.collect()
    }

    /// Builds the view of expressions, with what the matching guards read of the session and of stores.
    fn view(
        &self,
        concerned: &[&Guard],
        script_guards: &[&Guard],
        call_facts: &Rc<CallFacts>,
        diagnostics: &mut Diagnostics,
    ) -> FactView {
        let call = &call_facts.call;
        let reads_session = concerned
            .iter()
            .any(|it| it.sources.has_some(FactSources::SESSION) && self.is_matched(it, call));
        let mut view = match reads_session {
            true => self.read_session(concerned, diagnostics),
            // Looking for the client costs time, and a guard that no program matches does not fire.
            false => self.event_alone(concerned.iter().any(|it| self.is_matched(it, call))),
        };
        // With the session, the stores are read that any rule of the pack reads.
        if !reads_session {
            let readers = concerned
                .iter()
                .filter(|it| it.sources.has_some(FactSources::STORES) && self.is_matched(it, call));
            let readers = readers.chain(script_guards);
            let sources = readers.fold(FactSources::default(), |all, it| all.union(it.sources));
            if sources.has_some(FactSources::STORES) {
                view.stores = Rc::new(self.context.load_stores(sources, &view, diagnostics));
            }
        }
        view.call = Some(Rc::clone(call_facts));
        view
    }

    /// Classifies the session, looks up preferences, and runs probes, as far as guards read them. Returns the preferences.
    /// `None` if guards read no preference and no probe.
    fn read_asked(
        &self,
        guards: &[&Guard],
        evaluator: &mut FactEvaluator,
        diagnostics: &mut Diagnostics,
    ) -> Option<BTreeMap<String, bool>> {
        let context = self.context;
        if guards.iter().any(|it| it.sources.contains(FactSource::SessionType)) {
            let forced_type = context.forced_type(diagnostics);
            evaluation::classify(context.policy, forced_type.as_deref(), evaluator);
        }
        let mut asked = AskedNames::default();
        guards.iter().for_each(|it| asked.add(&it.asks));
        if asked.is_empty() {
            return None;
        }
        // Guards do not wait for the transcript, so they do not know its branch.
        let limits = AskLimits { branch: "", deadline: GUARD_PROBES_DEADLINE };
        let AskResult { readings, answers } =
            context.read_asked(&asked, limits, evaluator, diagnostics);
        answers.save(context.world);
        readings.map(|it| it.preferences.clone())
    }

    /// Adds to a call the variables that it assigns and that are in the environment of the client: their programs then
    /// receive a value that policyd does not know.
    fn add_assigned(&self, call: &mut Call) {
        for name in &call.assigned {
            let is_read =
                SHELL_VARIABLES.contains(&name.as_str()) || self.context.world.env(name).is_some();
            if !call.variables.contains_key(name) && is_read {
                let value = ShellText::unknown(format!("${name}"));
                call.variables.insert(name.clone(), value);
            }
        }
    }

    /// Adds to a call what the disk and git know of it, as far as matching guards read it.
    fn inspect(&self, concerned: &[&Guard], call_facts: &mut CallFacts) {
        let world = self.context.world;
        let mut path_readers =
            concerned.iter().filter(|it| it.sources.has_some(FactSources::PATHS));
        if path_readers.any(|it| self.is_matched(it, &call_facts.call)) {
            let environment = Rc::make_mut(&mut call_facts.around);
            on_disk::inspect_paths(world, &mut call_facts.call, environment);
        }
        let mut branch_readers =
            concerned.iter().filter(|it| it.sources.contains(FactSource::Branch));
        let clean_trees = CleanTrees { world, project: &self.context.project.root };
        if branch_readers.any(|it| self.is_matched(it, &call_facts.call)) {
            clean_trees.ask_branch(Rc::make_mut(&mut call_facts.around));
        }
        let values = &self.context.words.lens.lens().value_options;
        let tree_readers = concerned.iter().filter(|it| it.sources.contains(FactSource::WorkTree));
        let programs: BTreeSet<usize> = tree_readers
            .flat_map(|it| guards::matching_programs(it, &call_facts.call, values))
            .collect();
        if !programs.is_empty() {
            let CallFacts { call, around, .. } = call_facts;
            clean_trees.ask(call, Rc::make_mut(around), programs.into_iter());
        }
        self.read_files(concerned, call_facts);
    }

    /// Adds to a call what its files and those of the project contain, as far as matching guards read it.
    fn read_files(&self, concerned: &[&Guard], call_facts: &mut CallFacts) {
        if !self.context.policy.sources.has_some(FactSources::FILES) {
            return;
        }
        let readers = concerned.iter().copied().filter(|it| {
            it.sources.has_some(FactSources::FILES) && self.is_matched(it, &call_facts.call)
        });
        let readers: Vec<&Guard> = readers.collect();
        if !readers.is_empty() {
            let reader = DiskReader { context: self.context, call_facts };
            call_facts.disk = Rc::new(reader.read(&readers));
        }
    }

    /// Returns the view of the event without its session. Whether a user is present is looked up if `finds_user`.
    fn event_alone(&self, finds_user: bool) -> FactView {
        let context = self.context;
        let (event, project) = (context.request.event.clone(), context.project.root.clone());
        let alone = EventContext {
            gauged: false,
            interactive: !finds_user || context.is_attended(),
            supervised: context.is_supervised(),
            ..EventContext::alone(event, project, context.request.now)
        };
        alone.view(context.policy, context.words)
    }

    /// Analyzes the tool call of the event. An event without a call has empty facts.
    fn analyze_call(&self) -> CallFacts {
        let environment = Rc::new(self.call_environment());
        let analysis = AnalysisContext {
            lens: &*self.context.words.lens,
            knowledge: &self.context.policy.guards.knowledge,
            around: &environment,
            disk: &GateDisk { world: self.context.world, environment: &environment },
        };
        let mut call = self.context.request.event.call(analysis);
        let values = &self.context.words.lens.lens().value_options;
        if self.context.is_approval && guards::runs_project_code(self.context.policy, &call, values)
        {
            changed_code::add(self.context.world, &mut call, analysis);
        }
        CallFacts { call, around: environment, ..CallFacts::default() }
    }

    /// Returns the directories in which the call happens.
    fn call_environment(&self) -> CallEnvironment {
        let GateContext { world, request, project, .. } = self.context;
        let shown = |path: &Path| path.display().to_string();
        let folder = request.event.folder.as_deref().unwrap_or(&project.folder);
        let home = world.env("HOME").unwrap_or_default();
        let temporary = project::temporary_folders(*world);
        let transcript = request.event.transcript.as_deref().map(shown).unwrap_or_default();
        CallEnvironment::new(&shown(folder), &shown(&project.root), &home, &temporary)
            .with_transcript(&transcript)
    }

    /// Reads the session of the event, and returns the view of both.
    fn read_session(&self, guards: &[&Guard], diagnostics: &mut Diagnostics) -> FactView {
        let context = self.context;
        let cursor_path = context.cursor_path();
        let reads = |source| guards.iter().any(|it| it.sources.contains(source));
        let reads_project = reads(FactSource::Project)
            || (reads(FactSource::SessionType) && context.types_read_project());
        let inputs = context.gather(&cursor_path, reads_project, diagnostics);
        inputs.cursor.iter().for_each(|it| transcript::keep(context.world, &cursor_path, it));
        inputs.view
    }

    /// Computes the digest of a call that guards block or ask about, and drops the decisions that the user allows.
    fn apply_allowances(
        &self,
        decision: GuardDecision,
        diagnostics: &mut Diagnostics,
    ) -> GuardDecision {
        let GuardDecision { mut outcome, call_facts, .. } = decision;
        if outcome.decision >= Decision::Ask {
            let Request { event, .. } = self.context.request;
            let folder = event.folder.as_deref().unwrap_or(&self.context.project.folder);
            // What the user allows is the file as it is now.
            let scripts = call_facts.call.all_scripts().into_iter().map(|it| it.text.as_str());
            let decides_script = outcome.verdicts.iter().any(|it| !it.script.is_empty());
            let scripts: Vec<&str> = scripts.filter(|_| decides_script).collect();
            outcome.digest = call_code::digest(event, &folder.display().to_string(), &scripts);
            let stopping = outcome.verdicts.iter().filter(|it| it.decision() >= Decision::Ask);
            let blocked = BlockedEvent {
                session: &event.session_id,
                digest: outcome.digest.as_deref(),
                rules: stopping.map(|it| (it.id.as_str(), it.decision())).collect(),
            };
            let allowed = allowances::use_allowances(self.context, &blocked, diagnostics);
            if !allowed.is_empty() {
                outcome.allow(&allowed);
            }
        }
        GuardDecision { outcome, call_facts, ..decision }
    }

    /// Asks humans on other hosts about a call that does not simply run. Returns how the user can allow it; `None` if it
    /// runs, or if no allowance counts.
    fn override_hint(
        &self,
        outcome: &GuardsOutcome,
        diagnostics: &mut Diagnostics,
    ) -> Option<String> {
        if outcome.decision < Decision::Ask || self.context.allowances.is_none() {
            return None;
        }
        let hint = allowances::hint_for_guards(self.context, outcome);
        let texts = [hint].into_iter().chain(approvals::ask(self.context, outcome, diagnostics));
        Some(texts.collect::<Vec<_>>().join(". "))
    }

    /// Logs the decision with the call that it is about. If no guard fired, an entry is written only at a permission
    /// prompt, which the user then answers.
    fn log(&self, decision: &GuardDecision, diagnostics: &mut Diagnostics) {
        let context = self.context;
        let Request { event, now, dry_run, .. } = context.request;
        let GuardDecision { outcome, call_facts, unreplayable, .. } = decision;
        let is_silent = outcome.verdicts.is_empty() && event.kind != EventKind::PermissionRequest;
        if is_silent || (*dry_run && !project::debug(context.world)) {
            return;
        }
        let patches = call_facts.call.patches.iter().map(|it| &it.path);
        let scripts = call_facts.call.all_scripts();
        let files: Vec<String> =
            patches.chain(scripts.iter().map(|it| &it.path)).cloned().collect();
        let by = By {
            program: env!("CARGO_PKG_VERSION"),
            pack_hash: context.found.map(packs::FoundPack::short_hash).unwrap_or_default(),
            pack_folder: context.found.and_then(packs::FoundPack::folder),
        };
        let mut logged = LoggedEvent::new(event, &call_facts.around, &files, by, mask_json);
        logged.unattended = !context.is_attended();
        logged.supervised = context.is_supervised();
        let fired = outcome.verdicts.iter().map(|it| &it.id);
        logged.elsewhere = fired.filter(|it| unreplayable.contains(*it)).cloned().collect();
        let report_context = decision_logs::entry_context(context, diagnostics);
        let entry = decision_log::guard_entry(*now, event, &report_context, outcome, logged);
        let state_dir = &context.project.state;
        if !log_decision(context.world, state_dir, entry) {
            diagnostics.problem(&decision_logs::unlogged(state_dir));
        }
    }
}

/// Returns whether a guard reads the type of the session, a preference, or a probe.
fn asks(guard: &Guard) -> bool {
    guard.sources.has_some(FactSources::READINGS.with(FactSource::SessionType))
}

/// Returns whether a guard reads something that the log of the event does not contain.
fn reads_unlogged(guard: &Guard, event: &Event) -> bool {
    // The log does not contain the result of a tool.
    let masks_result = guard.masks && !event.tool_response.is_null();
    let unlogged = FactSources::SESSION
        .union(FactSources::STORES)
        .union(FactSources::FILES)
        .union(FactSources::READINGS);
    guard.sources.has_some(unlogged) || masks_result
}
