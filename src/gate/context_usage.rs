//! The context window: notifies the agent once per tier, summarizes the session before its context is emptied, and
//! gives the summary to the next context. Never blocks.

use std::cell::OnceCell;

use super::context::GateContext;
use super::diagnostics::Diagnostics;
use crate::summaries::{SummaryDraft, SummaryWriter};
use policyd_base::limits::HOOK_LOCK_WAIT;
use policyd_evaluation::context::{advance, gauge, reading, record};
use policyd_evaluation::signals;
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

/// Events at which the context is measured, whatever the pack says.
const KINDS: [EventKind; 5] = [
    EventKind::SessionStart,
    EventKind::SessionEnd,
    EventKind::PreCompact,
    EventKind::PostCompact,
    EventKind::PostModelSwitch,
];

/// Returns whether the context is measured at an event. A subagent has its own context, which is short.
pub(super) fn concerns(policy: &Policy, event: &Event) -> bool {
    let kind = event.kind;
    let is_measured =
        KINDS.contains(&kind) || policy.context_told_at.iter().any(|it| it == kind.name());
    is_measured && policy.settings.enabled && event.agent_id.is_none() && event.session_known
}

/// Measures the context, and does what the event requires. Returns the text for the agent, with masked secrets.
pub(super) fn meter(context: &GateContext<'_>, diagnostics: &mut Diagnostics) -> Option<String> {
    let request = context.request;
    let (overrides, invalid) = project::overrides(context.world);
    let saved = context.store.peek(&request.event.session_id).state.context;
    let overrides = overrides.naming(&saved);
    let meter = ContextMeter { context, overrides, facts: OnceCell::new() };
    let kind = request.event.kind;
    let text = if kind == EventKind::SessionStart {
        invalid.iter().for_each(|it| diagnostics.problem(it));
        meter.save_model(diagnostics);
        meter.inject_summary(diagnostics)
    } else if kind == EventKind::PostModelSwitch {
        meter.save_model(diagnostics);
        None
    } else if kind == EventKind::PostCompact {
        meter.reset_tiers(diagnostics);
        None
    } else if kind == EventKind::SessionEnd {
        let is_cleared = request.event.reason.as_deref() == Some("clear");
        meter.summarize(if is_cleared { AT_CLEAR } else { AT_END }, diagnostics);
        None
    } else if kind == EventKind::PreCompact {
        meter.summarize("compact", diagnostics);
        meter.compaction_text(diagnostics)
    } else {
        meter.watch(diagnostics)
    };
    let text = mask(text?.trim()).0.into_owned();
    Some(text).filter(|it| !it.is_empty())
}

/// One event at which the context is measured.
struct ContextMeter<'a> {
    context: &'a GateContext<'a>,
    overrides: Overrides,
    /// Facts of the transcript, once it was read. `None` if it cannot be read.
    facts: OnceCell<Option<Facts>>,
}

/// A summary that a new context receives.
struct DeliveredSummary {
    text: String,
    /// Number of prompts in the context before.
    iteration: u64,
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

    /// Returns the facts of the transcript. The first call reads it, and reports why it cannot be read.
    fn facts(&self, diagnostics: &mut Diagnostics) -> Option<&Facts> {
        self.facts.get_or_init(|| self.read_facts(diagnostics)).as_ref()
    }

    /// Reads the new lines of the transcript, and saves the cursor for the next event.
    fn read_facts(&self, diagnostics: &mut Diagnostics) -> Option<Facts> {
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
                diagnostics.note(problem.to_string());
                None
            }
        }
    }

    /// Measures the usage of the context window.
    fn gauge(&self, facts: &Facts) -> ContextUsage {
        gauge(self.rules(), &self.overrides, facts)
    }

    /// Returns what entries of the event log say about the event.
    fn origin(&self, facts: &Facts) -> EventOrigin<'_> {
        EventOrigin {
            session: self.context.request.event.session_id.as_str(),
            now: self.context.request.now,
            iteration: facts.prompts.count,
        }
    }

    /// Notifies the agent of a tier that was reached, once per tier. Returns the text for the agent.
    fn watch(&self, diagnostics: &mut Diagnostics) -> Option<String> {
        let facts = self.facts(diagnostics)?;
        let measured = self.gauge(facts);
        let mut text = None;
        let mut entries = Vec::new();
        if self.context.request.event.kind == EventKind::UserPromptSubmit {
            entries.push(usage(self.origin(facts), &measured));
        }
        if let Some(reached) = self.step(&measured, facts, diagnostics) {
            text = self.tier_text(&reached);
            if reached.tier == ACT {
                entries.push(warning(self.origin(facts), &reached));
                self.save_summary("act", facts, &reached, diagnostics);
            }
        }
        append_to(self.context.world, &self.context.state_dir, EVENT_LOG, &entries);
        request_clear(self.context, facts, diagnostics);
        text
    }

    /// Steps the saved tier. Returns the usage if a tier was reached that is not yet reported. A tier that could not
    /// be saved is not reported, because every later event would report it again.
    fn step(
        &self,
        measured: &ContextUsage,
        facts: &Facts,
        diagnostics: &mut Diagnostics,
    ) -> Option<ContextUsage> {
        let mut reached = None;
        let is_saved = self.change_tier(diagnostics, |tier| {
            let (next, effect, usage) =
                advance(measured, tier, self.rules(), &self.overrides, facts);
            reached = (effect == Some(TierEffect::Crossed)).then_some(usage);
            next
        });
        reached.filter(|_| is_saved)
    }

    /// Changes the tier that the session saves. Returns whether the tier is saved, also if nothing changed.
    fn change_tier(
        &self,
        diagnostics: &mut Diagnostics,
        mut change: impl FnMut(&TierState) -> TierState,
    ) -> bool {
        let session = &self.context.request.event.session_id;
        // Most events change nothing, and need no lock. The locked state can be newer, so the change is computed again.
        let saved = self.context.store.peek(session).state.context;
        if change(&saved) == saved {
            return true;
        }
        let mut locked = match self.context.store.lock(session, HOOK_LOCK_WAIT) {
            Ok(locked) => locked,
            Err(error) => {
                diagnostics.note(format!("the tier of the context: {error}"));
                return false;
            }
        };
        let mut state = locked.load().state;
        state.context = change(&state.context);
        match locked.commit(&state) {
            SaveOutcome::Durable { .. } | SaveOutcome::Degraded { .. } => true,
            SaveOutcome::NotSaved { why, .. } => {
                diagnostics.note(format!("the tier of the context was not saved: {why}"));
                false
            }
        }
    }

    /// Saves the name of the model that the client reports: it contains the variant, which transcripts leave out.
    fn save_model(&self, diagnostics: &mut Diagnostics) {
        let Some(model) = &self.context.request.event.model else { return };
        self.change_tier(diagnostics, |tier| TierState { model: model.clone(), ..tier.clone() });
    }

    /// Resets the tiers, because the context was emptied: a tier notifies again, also if the transcript does not show the
    /// compaction yet.
    fn reset_tiers(&self, diagnostics: &mut Diagnostics) {
        let Some(facts) = self.facts(diagnostics) else { return };
        let settings = self.overrides.settings(&self.rules().settings);
        let read = reading(&self.gauge(facts), &settings, facts.seq);
        self.change_tier(diagnostics, |tier| tier.emptied(&read));
    }

    /// Returns the text of the pack about a tier.
    fn tier_text(&self, gauge: &ContextUsage) -> Option<String> {
        let (_, choices) = self.rules().say.iter().find(|(id, _)| *id == gauge.tier)?;
        Some(signals::chosen(choices, &mut self.evaluator(gauge)))
    }

    /// Creates the evaluator of expressions about the context.
    fn evaluator(&self, gauge: &ContextUsage) -> FactEvaluator {
        let notes = self.rules().notes.first().map_or("", String::as_str);
        let mut evaluator = FactEvaluator::about(record(gauge, notes));
        evaluator.watch.clone_from(&self.context.request.watch);
        evaluator
    }

    /// Returns the text for the compactor of the client. A client whose compactor reads no text ignores it.
    fn compaction_text(&self, diagnostics: &mut Diagnostics) -> Option<String> {
        let template = &self.rules().compact;
        if template.trim().is_empty() {
            return None;
        }
        let gauge = self.gauge(self.facts(diagnostics)?);
        Some(template::render(template, &mut self.evaluator(&gauge)))
    }

    /// Saves a summary of the session for the next context.
    fn summarize(&self, reason: &str, diagnostics: &mut Diagnostics) {
        let Some(facts) = self.facts(diagnostics) else { return };
        let gauge = self.gauge(facts);
        self.save_summary(reason, facts, &gauge, diagnostics);
    }

    /// Saves a summary of these facts. No context received it yet.
    fn save_summary(
        &self,
        reason: &str,
        facts: &Facts,
        gauge: &ContextUsage,
        diagnostics: &mut Diagnostics,
    ) {
        let writer = self.writer();
        let text = writer.summarize(facts, gauge, None);
        let (session, now) = (&self.context.request.event.session_id, self.context.request.now);
        let draft = SummaryDraft { text: &text, reason, at: now, told: None };
        if let Err(error) = writer.keep(session, facts.prompts.count, draft) {
            diagnostics.note(error.to_string());
        }
    }

    /// Returns the summary of the last context for a context that begins. Each summary is delivered once.
    fn inject_summary(&self, diagnostics: &mut Diagnostics) -> Option<String> {
        let event = &self.context.request.event;
        let source = event.source.as_deref().unwrap_or_default();
        if !self.rules().inject.iter().any(|it| it == source) {
            return None;
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
        let DeliveredSummary { text, iteration } = match self.take_summary(&start, diagnostics) {
            Ok(summary) => summary?,
            Err(problem) => {
                diagnostics.problem(&format!("no summary is delivered: {}", problem.note()));
                return None;
            }
        };
        if source == "compact" {
            self.save_restated_goal(diagnostics);
        }
        let summaries = writer.summaries().all().unwrap_or_default();
        let restarts = summaries.iter().filter(|it| it.told.is_some()).count();
        let restarts = u64::try_from(restarts).unwrap_or(u64::MAX);
        let origin = EventOrigin { session: start.session, now, iteration: 0 };
        append_to(
            self.context.world,
            &self.context.state_dir,
            EVENT_LOG,
            &[restart(origin, restarts, iteration)],
        );
        Some(format_summary(&text))
    }

    /// Takes the summary that a new context continues, so that no other context receives it. `None` without one.
    ///
    /// # Errors
    /// The saved summaries cannot be read.
    fn take_summary(
        &self,
        start: &ContextStart<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Result<Option<DeliveredSummary>, DocumentError> {
        let writer = self.writer();
        let summaries = writer.summaries();
        // A resumed context still contains what it received in this turn.
        if self.context.request.event.source.as_deref() == Some("resume")
            && let Some(facts) = self.facts(diagnostics)
            && summaries.was_told(start.session, start.folder, facts.prompts.count)?
        {
            return Ok(None);
        }
        let fits = |it: &Summary| start.continues(&it.origin());
        let all = summaries.all()?;
        let waiting = all.iter().filter(|it| it.told.is_none() && fits(it));
        if start.is_ambiguous(waiting.map(|it| it.session.as_str())) {
            diagnostics.note(
                "several sessions were cleared just now: which one goes on here is not known",
            );
            return Ok(None);
        }
        Ok(match summaries.take(start.now, fits) {
            Ok(Some(taken)) => {
                Some(DeliveredSummary { text: taken.text, iteration: taken.iteration })
            }
            // No summary was saved in time; the transcript still exists.
            Ok(None) if start.same_session => self.summarize_now(diagnostics),
            Ok(None) => None,
            Err(error) => {
                diagnostics.note(format!("the summary of the last context: {error}"));
                None
            }
        })
    }

    /// Saves that the context received the goal after a compaction.
    fn save_restated_goal(&self, diagnostics: &mut Diagnostics) {
        let Some(facts) = self.facts(diagnostics) else { return };
        let settings = self.overrides.settings(&self.rules().settings);
        let read = reading(&self.gauge(facts), &settings, facts.seq);
        self.change_tier(diagnostics, |tier| tier.restating(&read));
    }

    /// Summarizes the session now, and saves the summary as delivered. `None` if the session received exactly this summary
    /// before.
    fn summarize_now(&self, diagnostics: &mut Diagnostics) -> Option<DeliveredSummary> {
        let facts = self.facts(diagnostics)?;
        if facts.prompts.count == 0 {
            return None; // Nothing happened yet.
        }
        let (writer, gauge) = (self.writer(), self.gauge(facts));
        let text = writer.summarize(facts, &gauge, None);
        let (session, now) = (&self.context.request.event.session_id, self.context.request.now);
        let is_same = |it: &Summary| it.session == session.as_str() && it.text == text;
        // Without the list, the summary could be delivered twice.
        if writer.summaries().all().ok()?.iter().any(|it| it.told.is_some() && is_same(it)) {
            return None;
        }
        let draft = SummaryDraft { text: &text, reason: "resume", at: now, told: Some(now) };
        let saved = writer.keep(session, facts.prompts.count, draft);
        saved.map_err(|error| diagnostics.note(error.to_string())).ok()?;
        Some(DeliveredSummary { text, iteration: facts.prompts.count })
    }
}

/// Requests a clear context if a trigger of `signals.yaml` is due and a supervisor can clear it.
pub(super) fn request_clear(
    context: &GateContext<'_>,
    facts: &Facts,
    diagnostics: &mut Diagnostics,
) {
    let GateContext { world, request, policy, .. } = context;
    // Only a supervisor can clear the context of a session.
    let is_driven = world.env(DRIVEN_VARIABLE).is_some();
    if !policy.context.clear_requests.holds(is_driven) || request.dry_run {
        return;
    }
    let stores = context.stores(HOOK_LOCK_WAIT);
    let (due, _) = signals::due(&policy.signals, stores.run_of(facts), request.watch.as_ref());
    let Some(due) = due.into_iter().find(|it| it.trigger.emit == CLEAR) else { return };
    if let Err(error) = stores.raise(&due, "", request.event.session_id.as_str()) {
        diagnostics.note(format!("{CLEAR}: {error}"));
    }
}
