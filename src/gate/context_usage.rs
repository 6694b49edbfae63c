//! The context window: notifies the agent once per tier, summarizes the session before the context is
//! emptied, and gives the summary to the next context. Never blocks.

use std::cell::OnceCell;

use super::context::GateContext;
use super::report::Report;
use crate::summaries::{SummaryDraft, SummaryWriter};
use policyd_base::limits::{HOOK_LOCK_WAIT, SPOKEN_CHARS_MAX};
use policyd_evaluation::context::{advance, gauge, reading, record};
use policyd_evaluation::{message, signals};
use policyd_fact_table::context_facts::ContextUsage;
use policyd_fact_table::{FactEvaluator, template};
use policyd_facts::Facts;
use policyd_facts::event::{Event, EventKind};
use policyd_policy::Policy;
use policyd_policy::context::ContextRules;
use policyd_record::context::{EventOrigin, restart, usage, warning};
use policyd_record::event_log::EVENT_LOG;
use policyd_record::mask::mask;
use policyd_record::summary::format_summary;
use policyd_state::context::{ACT, DRIVEN_VARIABLE, Overrides, TierEffect, TierState};
use policyd_state::continuation::{AT_CLEAR, ContextStart};
use policyd_store::decision_log::append_to;
use policyd_store::document::DocumentError;
use policyd_store::file::SaveOutcome;
use policyd_store::summaries::{AT_END, Summary};
use policyd_store::transcript::{self, Places};
use policyd_tasks::CLEAR;
use policyd_workspace::project;

/// Events at which it is looked at, whatever the pack says.
const KINDS: [EventKind; 5] = [
    EventKind::SessionStart,
    EventKind::SessionEnd,
    EventKind::PreCompact,
    EventKind::PostCompact,
    EventKind::PostModelSwitch,
];

/// Whether the context is looked at here. A subagent's is its own, and short.
pub(super) fn concerns(policy: &Policy, event: &Event) -> bool {
    let kind = event.kind;
    let told = KINDS.contains(&kind) || policy.context_told_at.iter().any(|it| it == kind.name());
    told && policy.settings.enabled && event.agent_id.is_none() && event.session_known
}

/// Measures the context, and does what the event requires.
pub(super) fn meter(context: &GateContext<'_>, report: &mut Report) {
    let request = context.request;
    let (overrides, wrong) = project::overrides(context.world);
    let known = context.store.peek(&request.event.session_id).state.context;
    let overrides = overrides.naming(&known);
    let meter = ContextMeter { context, overrides, facts: OnceCell::new() };
    let kind = request.event.kind;
    if kind == EventKind::SessionStart {
        wrong.iter().for_each(|it| report.problem(it));
        meter.name_model(report);
        meter.inject_summary(report);
    } else if kind == EventKind::PostModelSwitch {
        meter.name_model(report);
    } else if kind == EventKind::PostCompact {
        meter.reset_tiers(report);
    } else if kind == EventKind::SessionEnd {
        let cleared = request.event.reason.as_deref() == Some("clear");
        meter.summarize(if cleared { AT_CLEAR } else { AT_END }, report);
    } else if kind == EventKind::PreCompact {
        meter.summarize("compact", report);
        meter.say_compact(report);
    } else {
        meter.watch(report);
    }
}

/// One event at which the context is measured.
struct ContextMeter<'a> {
    context: &'a GateContext<'a>,
    overrides: Overrides,
    /// What the transcript says, once it was read.
    facts: OnceCell<Option<Facts>>,
}

impl ContextMeter<'_> {
    fn rules(&self) -> &ContextRules {
        &self.context.policy.context
    }

    fn writer(&self) -> SummaryWriter<'_> {
        SummaryWriter {
            world: self.context.world,
            folder: &self.context.project.root,
            own: &self.context.state_dir,
            store: &self.context.store,
            wait: HOOK_LOCK_WAIT,
        }
    }

    /// What the transcript says. It is read once; an event that needs it first reports why it cannot be read.
    fn facts(&self, report: &mut Report) -> Option<&Facts> {
        self.facts.get_or_init(|| self.read_facts(report)).as_ref()
    }

    /// Reads what is new in the transcript, and keeps it for the next event.
    fn read_facts(&self, report: &mut Report) -> Option<Facts> {
        let event = &self.context.request.event;
        let transcript = event.transcript.as_deref()?;
        let cursor = self.context.cursor_path();
        let places = Places { transcript, cursor: Some(&cursor), subagent: false };
        let policy = self.context.policy;
        let deadline = self.context.world.elapsed().saturating_add(policy.settings.deadline);
        let (lens, key) = (&self.context.words.lens, policy.lens_key);
        let read = transcript::read(self.context.world, places, lens, key, deadline);
        if let Some(new) = &read.cursor {
            let folder = &self.context.store.paths(&event.session_id).folder;
            if self.context.world.stat(folder).is_err() {
                drop(self.context.store.lock(&event.session_id, HOOK_LOCK_WAIT)); // It makes the folder.
            }
            transcript::keep(self.context.world, &cursor, new);
        }
        match read.problem {
            None => Some(read.facts),
            Some(problem) => {
                report.note(problem.to_string());
                None
            }
        }
    }

    fn gauge(&self, facts: &Facts) -> ContextUsage {
        gauge(self.rules(), &self.overrides, facts)
    }

    fn whose(&self, facts: &Facts) -> EventOrigin<'_> {
        EventOrigin {
            session: self.context.request.event.session_id.as_str(),
            now: self.context.request.now,
            iteration: facts.prompts.count,
        }
    }

    /// Tells a tier that was reached, once.
    fn watch(&self, report: &mut Report) {
        let Some(facts) = self.facts(report) else { return };
        let read = self.gauge(facts);
        let mut entries = Vec::new();
        if self.context.request.event.kind == EventKind::UserPromptSubmit {
            entries.push(usage(self.whose(facts), &read));
        }
        if let Some(reached) = self.step(&read, facts, report) {
            self.notify(&reached, report);
            if reached.tier == ACT {
                entries.push(warning(self.whose(facts), &reached));
                self.keep("act", facts, &reached, report);
            }
        }
        append_to(self.context.world, &self.context.state_dir, EVENT_LOG, &entries);
        request_clear(self.context, facts, report);
    }

    /// Steps the saved tier. Returns the usage if a tier was reached that is not yet reported. A tier that could not
    /// be saved is not reported, because every later event would report it again.
    fn step(
        &self,
        read: &ContextUsage,
        facts: &Facts,
        report: &mut Report,
    ) -> Option<ContextUsage> {
        let by = (self.rules(), &self.overrides);
        let mut crossed = None;
        let saved = self.remember(report, |known| {
            let (next, effect, gauge) = advance(read, known, by.0, by.1, facts);
            crossed = (effect == Some(TierEffect::Crossed)).then_some(gauge);
            next
        });
        crossed.filter(|_| saved)
    }

    /// Changes what the session remembers of its context; whether that is saved, or nothing changed.
    fn remember(
        &self,
        report: &mut Report,
        mut change: impl FnMut(&TierState) -> TierState,
    ) -> bool {
        let session = &self.context.request.event.session_id;
        let known = self.context.store.peek(session).state.context;
        if change(&known) == known {
            return true;
        }
        let mut locked = match self.context.store.lock(session, HOOK_LOCK_WAIT) {
            Ok(locked) => locked,
            Err(error) => {
                report.note(format!("the tier of the context: {error}"));
                return false;
            }
        };
        let mut state = locked.load().state;
        state.context = change(&state.context);
        match locked.commit(&state) {
            SaveOutcome::Durable { .. } | SaveOutcome::Degraded { .. } => true,
            SaveOutcome::NotSaved { why, .. } => {
                report.note(format!("the tier of the context was not saved: {why}"));
                false
            }
        }
    }

    /// Remembers what the client calls the model: it tells the variant, which transcripts leave out.
    fn name_model(&self, report: &mut Report) {
        let Some(model) = &self.context.request.event.model else { return };
        self.remember(report, |known| TierState { model: model.clone(), ..known.clone() });
    }

    /// Resets the tiers because the context was emptied: a tier notifies again, whether or not the transcript shows
    /// it yet.
    fn reset_tiers(&self, report: &mut Report) {
        let Some(facts) = self.facts(report) else { return };
        let settings = self.overrides.settings(&self.rules().settings);
        let read = reading(&self.gauge(facts), &settings, facts.seq);
        self.remember(report, |known| known.emptied(&read));
    }

    fn notify(&self, gauge: &ContextUsage, report: &mut Report) {
        let said = self.rules().say.iter().find(|(id, _)| *id == gauge.tier);
        let mut evaluator = self.evaluator(gauge);
        let text = said.map(|(_, choices)| signals::chosen(choices, &mut evaluator));
        add_context(report, text.unwrap_or_default());
    }

    fn evaluator(&self, gauge: &ContextUsage) -> FactEvaluator {
        let notes = self.rules().notes.first().map_or("", String::as_str);
        let mut evaluator = FactEvaluator::about(record(gauge, notes));
        evaluator.watch.clone_from(&self.context.request.watch);
        evaluator
    }

    /// Tells the client's compactor what matters. A client whose compactor reads nothing gets nothing.
    fn say_compact(&self, report: &mut Report) {
        let template = &self.rules().compact;
        if template.trim().is_empty() {
            return;
        }
        let Some(facts) = self.facts(report) else { return };
        let gauge = self.gauge(facts);
        let text = template::render(template, &mut self.evaluator(&gauge));
        add_context(report, text);
    }

    /// Keeps a summary of the session, for whatever comes after it.
    fn summarize(&self, reason: &str, report: &mut Report) {
        let Some(facts) = self.facts(report) else { return };
        let gauge = self.gauge(facts);
        self.keep(reason, facts, &gauge, report);
    }

    fn keep(&self, reason: &str, facts: &Facts, gauge: &ContextUsage, report: &mut Report) {
        let writer = self.writer();
        let text = writer.summarize(facts, gauge, None);
        let (session, now) = (&self.context.request.event.session_id, self.context.request.now);
        let draft = SummaryDraft { text: &text, reason, at: now, told: None };
        if let Err(error) = writer.keep(session, facts.prompts.count, draft) {
            report.note(error.to_string());
        }
    }

    /// Tells a context that begins what the one before it left, once.
    fn inject_summary(&self, report: &mut Report) {
        let event = &self.context.request.event;
        let source = event.source.as_deref().unwrap_or_default();
        if !self.rules().inject.iter().any(|it| it == source) {
            return;
        }
        let (now, writer) = (self.context.request.now, self.writer());
        let (client, folder) = (writer.client(), self.context.project.root.to_string_lossy());
        let start = ContextStart {
            session: event.session_id.as_str(),
            folder: &folder,
            client: &client,
            same_session: matches!(source, "compact" | "resume"),
            now,
            max_age: self.rules().summary_max_age,
        };
        // A context that is resumed still contains what it received in this turn.
        let was_told = |facts: &Facts| {
            let turn = facts.prompts.count;
            writer.summaries().was_told(start.session, start.folder, turn)
        };
        let unknown = |report: &mut Report, problem: DocumentError| {
            report.problem(&format!("no summary is delivered: {}", problem.note()));
        };
        if source == "resume"
            && let Some(facts) = self.facts(report)
        {
            match was_told(facts) {
                Ok(false) => {}
                Ok(true) => return,
                Err(problem) => return unknown(report, problem),
            }
        }
        let fits = |it: &Summary| start.continues(&it.origin());
        let all = match writer.summaries().all() {
            Ok(all) => all,
            Err(problem) => return unknown(report, problem),
        };
        let waiting = all.iter().filter(|it| it.told.is_none() && fits(it));
        if start.is_ambiguous(waiting.map(|it| it.session.as_str())) {
            report.note(
                "several sessions were cleared just now: which one goes on here is not known",
            );
            return;
        }
        let taken = writer.summaries().take(now, fits);
        let summary = match taken {
            Ok(Some(it)) => Some((it.text, it.iteration)),
            // No summary was saved in time; the transcript still exists.
            Ok(None) if start.same_session => self.summarize_now(report),
            Ok(None) => None,
            Err(error) => {
                report.note(format!("the summary of the last context: {error}"));
                None
            }
        };
        let Some((text, before)) = summary else { return };
        add_context(report, format_summary(&text));
        if source == "compact" {
            self.restate(report);
        }
        let all = writer.summaries().all().unwrap_or_default();
        let restarts = all.iter().filter(|it| it.told.is_some()).count();
        let restarts = u64::try_from(restarts).unwrap_or(u64::MAX);
        let whose = EventOrigin { session: start.session, now, iteration: 0 };
        append_to(
            self.context.world,
            &self.context.state_dir,
            EVENT_LOG,
            &[restart(whose, restarts, before)],
        );
    }

    /// Saves that the goal was given to the context after a compaction.
    fn restate(&self, report: &mut Report) {
        let Some(facts) = self.facts(report) else { return };
        let settings = self.overrides.settings(&self.rules().settings);
        let read = reading(&self.gauge(facts), &settings, facts.seq);
        self.remember(report, |known| known.restating(&read));
    }

    /// A summary of the session as its transcript stands, marked as told. Nothing if the session was
    /// given exactly this summary before.
    fn summarize_now(&self, report: &mut Report) -> Option<(String, u64)> {
        let facts = self.facts(report)?;
        if facts.prompts.count == 0 {
            return None; // Nothing happened yet.
        }
        let (writer, gauge) = (self.writer(), self.gauge(facts));
        let text = writer.summarize(facts, &gauge, None);
        let (session, now) = (&self.context.request.event.session_id, self.context.request.now);
        let same = |it: &Summary| it.session == session.as_str() && it.text == text;
        // A summary that cannot be marked as told is not told.
        if writer.summaries().all().ok()?.iter().any(|it| it.told.is_some() && same(it)) {
            return None;
        }
        let draft = SummaryDraft { text: &text, reason: "resume", at: now, told: Some(now) };
        let kept = writer.keep(session, facts.prompts.count, draft);
        kept.map_err(|error| report.note(error.to_string())).ok()?;
        Some((text, facts.prompts.count))
    }
}

/// Requests a clear context if a trigger of `signals.yaml` is due and a supervisor can clear it.
pub(super) fn request_clear(context: &GateContext<'_>, facts: &Facts, report: &mut Report) {
    let GateContext { world, request, policy, .. } = context;
    let driven = world.env(DRIVEN_VARIABLE).is_some();
    if !policy.context.clear_requests.holds(driven) || request.dry_run {
        return;
    }
    let stores = context.stores(HOOK_LOCK_WAIT);
    let (due, _) = signals::due(&policy.signals, stores.run_of(facts), request.watch.as_ref());
    let Some(due) = due.into_iter().find(|it| it.trigger.emit == CLEAR) else { return };
    if let Err(error) = stores.raise(&due, "", request.event.session_id.as_str()) {
        report.note(format!("{CLEAR}: {error}"));
    }
}

/// Adds to the text for the agent.
fn add_context(report: &mut Report, text: String) {
    let text = mask(text.trim()).0.into_owned();
    if text.is_empty() {
        return;
    }
    let before = report.answer.context.take().filter(|it| !it.trim().is_empty());
    let both: Vec<String> = before.into_iter().chain([text]).collect();
    report.answer.context = Some(message::cut(&both.join("\n\n"), SPOKEN_CHARS_MAX));
}
