//! Guards at an event: what its tool call would do is read, the guards that it concerns are judged,
//! their answer is logged and said. The transcript is read only where one of them looks at it.

use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::rc::Rc;

use super::allowances;
use super::approvals;
use super::call_files::DiskReader;
use super::client_rules::ClientRules;
use super::context::GateContext;
use super::decision_logs;
use super::on_disk::{self, GateDisk};
use super::permission;
use super::probes::AskLimits;
use super::report::Report;
use super::request::Request;
use super::scripts::{self, ScriptGuards};
use super::work_tree::CleanTrees;
use policyd_base::limits::{GUARD_PROBES_DEADLINE, SPOKEN_CHARS_MAX};
use policyd_evaluation::call_code;
use policyd_evaluation::called::{By, LoggedEvent};
use policyd_evaluation::combine::Decision;
use policyd_evaluation::guards::{self, GuardsOutcome};
use policyd_evaluation::message::cut;
use policyd_evaluation::situation::EventContext;
use policyd_evaluation::{self as evaluation, Detail};
use policyd_fact_table::FactEvaluator;
use policyd_fact_table::call_facts::CallFacts;
use policyd_fact_table::context::{Context, FactView};
use policyd_fact_table::source::{FactSource, FactSources};
use policyd_facts::call::{AnalysisContext, Call, CallEnvironment, ShellText};
use policyd_facts::event::EventKind;
use policyd_packs as packs;
use policyd_policy::AskedNames;
use policyd_policy::guards::Guard;
use policyd_record::decision_log;
use policyd_record::mask::{mask, mask_json};
use policyd_store::allowance::BlockedEvent;
use policyd_store::decision_log::log_decision;
use policyd_store::transcript;
use policyd_workspace::project;

/// Variables of the shell that change what it runs, also if no program receives them.
const OF_SHELL: [&str; 6] = ["CDPATH", "PATH", "BASH_ENV", "ENV", "PS4", "PROMPT_COMMAND"];

/// What the guards say about an event, before anything follows from it.
pub(super) struct JudgedCall {
    pub(super) guarded: GuardsOutcome,
    /// The tool call as guards see it.
    pub(super) seen: Rc<CallFacts>,
    /// Ids of the guards that also look at the session or at stores.
    elsewhere: BTreeSet<String>,
    /// The rules of the client, at a permission prompt.
    rules: Option<ClientRules>,
    /// The event with its session, as far as it was read.
    context: Rc<Context>,
}

/// An event that guards may apply to.
pub(super) struct GuardEvaluation<'a> {
    pub(super) context: &'a GateContext<'a>,
}

impl GuardEvaluation<'_> {
    /// Judges the guards that the event concerns. Whether there was any.
    pub(super) fn guard(&self, report: &mut Report) -> bool {
        let Some(judged) = self.judge(report) else { return false };
        let JudgedCall { mut guarded, seen, elsewhere, rules, context } = judged;
        if let Some(rules) = rules.filter(|_| guarded.decision == Decision::Allow) {
            permission::confirm(self.context, &rules, &seen, &mut guarded, report);
        }
        self.context.change_memory(&guarded.memory, &context, report);
        self.allow(&mut guarded, &seen.call, report);
        self.log(&guarded, &seen, &elsewhere, report);
        self.answer(guarded, report);
        report.seen = Some(seen);
        true
    }

    /// Judges the guards that the event concerns, and changes nothing. `None` if no guard applies.
    pub(super) fn judge(&self, report: &mut Report) -> Option<JudgedCall> {
        let it = self.context;
        let (event, now) = (&it.request.event, it.request.now);
        guards::applicable_guards(it.policy, event, now).next()?;
        let mut seen = self.seen();
        let values = &self.context.words.lens.lens().value_options;
        let concerned = match it.request.detail {
            // An explanation shows every condition.
            Detail::Values => guards::applicable_guards(it.policy, event, now).collect(),
            Detail::Findings | Detail::Everything => {
                guards::concerned_guards(it.policy, event, &seen.call, now)
            }
        };
        self.inspect(&concerned, &mut seen);
        let is_prompt = event.kind == EventKind::PermissionRequest;
        let rules = is_prompt.then(|| ClientRules::load(it));
        if is_prompt {
            self.add_assigned(&mut seen.call);
        }
        seen.allowed = rules.iter().flat_map(|it| it.allowed_programs(&seen)).collect();
        let seen = Rc::new(seen);
        let reads_session = |it: &Guard| it.sources.has_some(FactSources::SESSION);
        let reads_stores = |it: &Guard| it.sources.has_some(FactSources::STORES);
        let recognized = |it: &&&Guard| guards::matches_any_program(it, &seen.call, values);
        let in_scripts = self.script_guards(&seen);
        let is_read = concerned.iter().filter(|it| reads_session(it)).any(|it| recognized(&it));
        let mut view = match is_read {
            true => self.read_session(&concerned, report),
            // Looking for the client costs time, and a guard that no program matches does not fire.
            false => self.event_alone(concerned.iter().any(|it| recognized(&it))),
        };
        let reading = concerned.iter().filter(|it| reads_stores(it) && recognized(it)).copied();
        let sources = reading.chain(in_scripts.iter().copied());
        let sources = sources.fold(FactSources::default(), |all, it| all.union(it.sources));
        // With the session, the stores are read that any rule of the pack reads.
        if !is_read && sources.has_some(FactSources::STORES) {
            view.stores = Rc::new(it.load_stores(sources, &view, report));
        }
        view.call = Some(Rc::clone(&seen));
        let context = Rc::clone(&view.context);
        let mut evaluator = ManuallyDrop::new(FactEvaluator::new(Rc::new(view)));
        evaluator.watch.clone_from(&self.context.request.watch);
        let asking = concerned.iter().copied().filter(|it| self.asks(it) && recognized(&it));
        let asking: Vec<&Guard> =
            asking.chain(in_scripts.into_iter().filter(|it| self.asks(it))).collect();
        self.ask(&asking, &mut evaluator, report);
        let asked = (&*context, &mut *evaluator);
        // The result of a tool is not kept.
        let masks = |it: &Guard| !event.tool_response.is_null() && it.masks;
        let unkept = FactSources::SESSION
            .union(FactSources::STORES)
            .union(FactSources::FILES)
            .union(FactSources::READINGS);
        let elsewhere = concerned.iter().filter(|it| it.sources.has_some(unkept) || masks(it));
        let elsewhere = elsewhere.map(|it| it.id.clone()).collect();
        let detail = self.context.request.detail;
        let mut guarded =
            guards::judge(concerned.iter().copied(), event, &seen, asked.0, asked.1, detail);
        let scripts = ScriptGuards { context: it, seen: &seen };
        scripts.judge(asked.0, asked.1, &mut guarded);
        Some(JudgedCall { guarded, seen, elsewhere, rules, context })
    }

    /// Returns whether a guard reads the type of the session, a preference, or a probe.
    fn asks(&self, guard: &Guard) -> bool {
        guard.sources.has_some(FactSources::READINGS.with(FactSource::SessionType))
    }

    /// Returns the guards that judge a file that the call runs, and that ask or read a store.
    fn script_guards(&self, seen: &CallFacts) -> Vec<&Guard> {
        let it = self.context;
        let (event, now) = (&it.request.event, it.request.now);
        let values = &it.words.lens.lens().value_options;
        let reads = FactSources::READINGS.union(FactSources::STORES);
        let scripts = seen.call.all_scripts();
        let found = scripts.iter().flat_map(|script| {
            let guards = guards::script_guards(it.policy, event, &script.call, now);
            guards.into_iter().filter(|guard| {
                guard.sources.has_some(reads)
                    && scripts::can_judge(guard)
                    && guards::matches_any_program(guard, &script.call, values)
            })
        });
        found.collect()
    }

    /// Classifies the session, looks for preferences, and runs probes, as far as guards read them.
    fn ask(&self, guards: &[&Guard], evaluator: &mut FactEvaluator, report: &mut Report) {
        let it = self.context;
        if guards.iter().any(|it| it.sources.contains(FactSource::SessionType)) {
            let forced = it.forced_type(report);
            evaluation::classify(it.policy, forced.as_deref(), evaluator);
        }
        let mut asked = AskedNames::default();
        guards.iter().for_each(|it| asked.add(&it.asks));
        if asked.is_empty() {
            return;
        }
        // Guards do not wait for the transcript, so they do not know its branch.
        let limits = AskLimits { branch: "", deadline: GUARD_PROBES_DEADLINE };
        let (_, answers) = it.read_asked(&asked, limits, evaluator, report);
        answers.save(it.world);
    }

    /// Adds to a call the variables that are in the environment of the client, so that a value that the shell assigns reaches
    /// its programs.
    fn add_assigned(&self, call: &mut Call) {
        for name in &call.assigned {
            let is_heeded =
                OF_SHELL.contains(&name.as_str()) || self.context.world.env(name).is_some();
            if !call.variables.contains_key(name) && is_heeded {
                let value = ShellText::unknown(format!("${name}"));
                call.variables.insert(name.clone(), value);
            }
        }
    }

    /// Adds to a call what the disk and git know of it, if a guard looks at that.
    fn inspect(&self, concerned: &[&Guard], seen: &mut CallFacts) {
        let world = self.context.world;
        let values = &self.context.words.lens.lens().value_options;
        let mut at_paths = concerned.iter().filter(|it| it.sources.has_some(FactSources::PATHS));
        if at_paths.any(|it| guards::matches_any_program(it, &seen.call, values)) {
            on_disk::inspect_paths(world, &mut seen.call, Rc::make_mut(&mut seen.around));
        }
        let mut at_branch = concerned.iter().filter(|it| it.sources.contains(FactSource::Branch));
        let clean = CleanTrees { world, project: &self.context.project.root };
        if at_branch.any(|it| guards::matches_any_program(it, &seen.call, values)) {
            clean.ask_branch(Rc::make_mut(&mut seen.around));
        }
        let at_trees = concerned.iter().filter(|it| it.sources.contains(FactSource::WorkTree));
        let asking: BTreeSet<usize> =
            at_trees.flat_map(|it| guards::matching_programs(it, &seen.call, values)).collect();
        if !asking.is_empty() {
            let CallFacts { call, around, .. } = seen;
            let around = Rc::make_mut(around);
            clean.ask(call, around, asking.into_iter());
        }
        self.read_files(concerned, seen);
    }

    /// Adds to a call what its files and those of the project contain, if a guard looks at that.
    fn read_files(&self, concerned: &[&Guard], seen: &mut CallFacts) {
        if !self.context.policy.sources.has_some(FactSources::FILES) {
            return;
        }
        let values = &self.context.words.lens.lens().value_options;
        let reads = |it: &&Guard| {
            it.sources.has_some(FactSources::FILES)
                && guards::matches_any_program(it, &seen.call, values)
        };
        let reading: Vec<&Guard> = concerned.iter().copied().filter(reads).collect();
        if !reading.is_empty() {
            seen.disk = Rc::new(DiskReader { context: self.context, seen }.read(&reading));
        }
    }

    /// The event without the session. Whether a user is present is looked for if `is_read`.
    fn event_alone(&self, is_read: bool) -> FactView {
        let it = self.context;
        let (event, project) = (it.request.event.clone(), it.project.root.clone());
        let alone = EventContext {
            gauged: false,
            interactive: !is_read || it.is_attended(),
            supervised: it.is_supervised(),
            ..EventContext::alone(event, project, it.request.now)
        };
        alone.view(it.policy, it.words)
    }

    /// The tool call as guards see it; at an event without one there is nothing in it.
    fn seen(&self) -> CallFacts {
        let around = Rc::new(self.around());
        let knowledge = &*self.context.policy.guards.knowledge;
        let reading = AnalysisContext {
            lens: &*self.context.words.lens,
            knowledge,
            around: &around,
            disk: &GateDisk { world: self.context.world, around: &around },
        };
        let call = self.context.request.event.call(reading);
        CallFacts { call, around, ..CallFacts::default() }
    }

    fn around(&self) -> CallEnvironment {
        let shown = |path: &Path| path.display().to_string();
        let folder =
            self.context.request.event.folder.as_deref().unwrap_or(&self.context.project.folder);
        let home = self.context.world.env("HOME").unwrap_or_default();
        let temporary = project::temporary_folders(self.context.world);
        let transcript =
            self.context.request.event.transcript.as_deref().map(shown).unwrap_or_default();
        CallEnvironment::new(&shown(folder), &shown(&self.context.project.root), &home, &temporary)
            .with_transcript(&transcript)
    }

    /// What the transcript shows beside the event.
    fn read_session(&self, guards: &[&Guard], report: &mut Report) -> FactView {
        let it = self.context;
        let cursor = it.cursor_path();
        let reads = |source| guards.iter().any(|it| it.sources.contains(source));
        let reads_project = reads(FactSource::Project)
            || (reads(FactSource::SessionType) && it.types_read_project());
        let inputs = it.gather(&cursor, reads_project, report);
        inputs.cursor.iter().for_each(|bytes| transcript::keep(it.world, &cursor, bytes));
        inputs.view
    }

    /// Drops decisions that the user allows, and says how the user can allow the rest.
    fn allow(&self, guarded: &mut GuardsOutcome, call: &Call, report: &mut Report) {
        if guarded.decision < Decision::Ask {
            return;
        }
        let Request { event, .. } = self.context.request;
        let folder = event.folder.as_deref().unwrap_or(&self.context.project.folder);
        // What the user allows is the file as it is now.
        let scripts = call.all_scripts().into_iter().map(|it| it.text.as_str());
        let scripts = scripts.filter(|_| guarded.verdicts.iter().any(|it| !it.script.is_empty()));
        let scripts: Vec<&str> = scripts.collect();
        guarded.digest = call_code::digest(event, &folder.display().to_string(), &scripts);
        let stopping = guarded.verdicts.iter().filter(|it| it.decision() >= Decision::Ask);
        let blocked = BlockedEvent {
            session: &event.session_id,
            digest: guarded.digest.as_deref(),
            rules: stopping.map(|it| (it.id.as_str(), it.decision())).collect(),
        };
        let granted = allowances::granted(self.context, &blocked, report);
        if !granted.is_empty() {
            guarded.allow(&granted);
        }
        if guarded.decision >= Decision::Ask && self.context.allowances.is_some() {
            report.answer.override_hint = Some(allowances::hint_for_guards(self.context, guarded));
            approvals::ask(self.context, guarded, report);
        }
    }

    /// Logs what the guards say, and says it.
    fn answer(&self, guarded: GuardsOutcome, report: &mut Report) {
        let masked = |text: &str| cut(&mask(text).0, SPOKEN_CHARS_MAX);
        let answer = &mut report.answer;
        if guarded.decision > answer.decision {
            answer.decision = guarded.decision;
            answer.reason = masked(&guarded.reason);
        }
        let joined = |before: Option<String>, text: &str| {
            let both = before.into_iter().chain([masked(text)]).filter(|it| !it.is_empty());
            let both: Vec<String> = both.collect();
            (!both.is_empty()).then(|| both.join("\n"))
        };
        answer.context = joined(answer.context.take(), &guarded.context);
        answer.notice = joined(answer.notice.take(), &guarded.notice);
        if !matches!(guarded.decision, Decision::Block | Decision::Halt) {
            answer.updated_input.clone_from(&guarded.updated_input);
        }
        if guarded.masks {
            let mut result = self.context.request.event.tool_response.clone();
            mask_json(&mut result);
            answer.updated_output = Some(result);
        }
        report.around.guarded = Some(guarded);
    }

    /// Logs what guards say and what they said it about. Their silence is logged only at a permission prompt, which the user
    /// then answers.
    fn log(
        &self,
        guarded: &GuardsOutcome,
        seen: &CallFacts,
        elsewhere: &BTreeSet<String>,
        report: &mut Report,
    ) {
        let Request { event, now, dry_run, .. } = self.context.request;
        let is_silent = guarded.verdicts.is_empty() && event.kind != EventKind::PermissionRequest;
        if is_silent || (*dry_run && !project::debug(self.context.world)) {
            return;
        }
        let patches = seen.call.patches.iter().map(|it| &it.path);
        let scripts = seen.call.all_scripts();
        let files: Vec<String> =
            patches.chain(scripts.iter().map(|it| &it.path)).cloned().collect();
        let by = By {
            program: env!("CARGO_PKG_VERSION"),
            pack_hash: self.context.found.map(packs::FoundPack::short_hash).unwrap_or_default(),
            pack_folder: self.context.found.and_then(packs::FoundPack::folder),
        };
        let mut called = LoggedEvent::new(event, &seen.around, &files, by, mask_json);
        let said = guarded.verdicts.iter().map(|it| &it.id);
        called.unattended = !self.context.is_attended();
        called.supervised = self.context.is_supervised();
        called.elsewhere = said.filter(|it| elsewhere.contains(*it)).cloned().collect();
        let entry = decision_log::guard_entry(*now, event, &report.around, guarded, called);
        let own = self.context.project.state.clone();
        if !log_decision(self.context.world, &own, entry) {
            report.problem(&decision_logs::unlogged(&own));
        }
    }
}
