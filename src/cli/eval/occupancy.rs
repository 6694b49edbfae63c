//! How full the context is, at events that can be told it: a tier is told once, what is worth keeping
//! is summarised before the context goes, and told to the one that comes after. Nothing here blocks.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::inquiry::cursor_path;
use super::speech::{Report, append};
use super::{Ready, Request};
use crate::cli::context::carry::Carrier;
use crate::cli::project::{self, Project};
use crate::cli::resilience::{CLEAR, Stores};
use crate::facts::Facts;
use crate::facts::event::{Event, EventKind};
use crate::judge::context::{advance, gauge, reading, record};
use crate::judge::{message, signals};
use crate::limits::{HOOK_LOCK_WAIT, SPOKEN_CHARS_MAX};
use crate::policy::Policy;
use crate::policy::context::ContextRules;
use crate::report::context::{Whose, restart, usage, warning};
use crate::report::event_log::EVENT_LOG;
use crate::report::mask::mask;
use crate::report::summary::told;
use crate::script::context_facts::Gauge;
use crate::script::{Evaluator, template};
use crate::state::context::{ACT, DRIVEN_VARIABLE, Effect, Overrides, Standing};
use crate::store::file::Saved;
use crate::store::session::SessionStore;
use crate::store::summaries::{AT_CLEAR, AT_END, Summary};
use crate::store::transcript::{self, Places};
use crate::world::World;

/// Longest time between the end of a session that was cleared and the beginning of the one after it.
const CLEAR_WITHIN: Duration = Duration::from_secs(60);

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

/// Looks at it.
pub(super) fn meter(
    world: &dyn World,
    request: &Request<'_>,
    (ready, project): (&Ready, &Project),
    report: &mut Report,
) {
    let (store, own) = project::sessions(world, project, &ready.policy.settings);
    let (overrides, wrong) = project::overrides(world);
    let session = &request.event.session_id;
    let overrides = overrides.naming(&store.peek(session).state.context);
    let metering = Metering { world, request, ready, project, store: &store, own: &own, overrides };
    let kind = request.event.kind;
    if kind == EventKind::SessionStart {
        wrong.iter().for_each(|it| report.problem(it));
        metering.name_model(report);
        metering.carry_over(report);
    } else if kind == EventKind::PostModelSwitch {
        metering.name_model(report);
    } else if kind == EventKind::PostCompact {
        metering.rearm(report);
    } else if kind == EventKind::SessionEnd {
        let cleared = request.event.reason.as_deref() == Some("clear");
        metering.summarize(if cleared { AT_CLEAR } else { AT_END }, report);
    } else if kind == EventKind::PreCompact {
        metering.summarize("compact", report);
        metering.say_compact(report);
    } else {
        metering.watch(report);
    }
}

/// One event at which the context is looked at.
struct Metering<'a> {
    world: &'a dyn World,
    request: &'a Request<'a>,
    ready: &'a Ready,
    project: &'a Project,
    store: &'a SessionStore<'a>,
    /// The root of our own.
    own: &'a Path,
    overrides: Overrides,
}

impl Metering<'_> {
    fn rules(&self) -> &ContextRules {
        &self.ready.policy.context
    }

    fn carrier(&self) -> Carrier<'_> {
        Carrier {
            world: self.world,
            folder: &self.project.root,
            own: self.own,
            store: self.store,
            wait: HOOK_LOCK_WAIT,
        }
    }

    /// What the transcript says: what is new in it is read, and kept for the next event.
    fn facts(&self, report: &mut Report) -> Option<Facts> {
        let event = &self.request.event;
        let transcript = event.transcript.as_deref()?;
        let cursor = cursor_path(self.store, event);
        let places = Places { transcript, cursor: Some(&cursor), subagent: false };
        let policy = &self.ready.policy;
        let deadline = self.world.elapsed().saturating_add(policy.settings.deadline);
        let (lens, key) = (&self.ready.words.lens, policy.lens_key);
        let read = transcript::read(self.world, places, lens, key, deadline);
        if let Some(new) = &read.cursor {
            let folder = &self.store.paths(&event.session_id).folder;
            if self.world.stat(folder).is_err() {
                drop(self.store.lock(&event.session_id, HOOK_LOCK_WAIT)); // It makes the folder.
            }
            transcript::keep(self.world, &cursor, new);
        }
        match read.problem {
            None => Some(read.facts),
            Some(problem) => {
                report.note(problem);
                None
            }
        }
    }

    fn gauge(&self, facts: &Facts) -> Gauge {
        gauge(self.rules(), &self.overrides, facts)
    }

    fn whose(&self, facts: &Facts) -> Whose<'_> {
        Whose {
            session: self.request.event.session_id.as_str(),
            now: self.request.now,
            iteration: facts.prompts.count,
        }
    }

    /// Tells a tier that was reached, once.
    fn watch(&self, report: &mut Report) {
        let Some(facts) = self.facts(report) else { return };
        let read = self.gauge(&facts);
        let mut entries = Vec::new();
        if self.request.event.kind == EventKind::UserPromptSubmit {
            entries.push(usage(self.whose(&facts), &read));
        }
        if let Some(reached) = self.step(&read, &facts, report) {
            self.tell(&reached, report);
            if reached.tier == ACT {
                entries.push(warning(self.whose(&facts), &reached));
                self.keep("act", (&facts, &reached), report);
            }
        }
        append(self.world, self.own, EVENT_LOG, &entries);
        let policy = &self.ready.policy;
        request_clear(self.world, self.request, (policy, self.own), (self.store, &facts), report);
    }

    /// Moves what is remembered, where it moves: the gauge, where a tier was reached that nobody
    /// was told. What could not be remembered is not told: it would be told at every event.
    fn step(&self, read: &Gauge, facts: &Facts, report: &mut Report) -> Option<Gauge> {
        let by = (self.rules(), &self.overrides);
        let mut crossed = None;
        let saved = self.remember(report, |known| {
            let (next, effect, gauge) = advance(read, known, by, facts);
            crossed = (effect == Some(Effect::Crossed)).then_some(gauge);
            next
        });
        crossed.filter(|_| saved)
    }

    /// Changes what the session remembers of its context; whether that is saved, or nothing changed.
    fn remember(&self, report: &mut Report, mut change: impl FnMut(&Standing) -> Standing) -> bool {
        let session = &self.request.event.session_id;
        let known = self.store.peek(session).state.context;
        if change(&known) == known {
            return true;
        }
        let mut locked = match self.store.lock(session, HOOK_LOCK_WAIT) {
            Ok(locked) => locked,
            Err(error) => {
                report.note(format!("the tier of the context: {error}"));
                return false;
            }
        };
        let mut state = locked.load().state;
        state.context = change(&state.context);
        match locked.commit(&state) {
            Saved::Durable { .. } | Saved::Degraded { .. } => true,
            Saved::NotSaved { why, .. } => {
                report.note(format!("the tier of the context was not saved: {why}"));
                false
            }
        }
    }

    /// Remembers what the client calls the model: it tells the variant, which transcripts leave out.
    fn name_model(&self, report: &mut Report) {
        let Some(model) = &self.request.event.model else { return };
        self.remember(report, |known| Standing { model: model.clone(), ..known.clone() });
    }

    /// The context was emptied: what is reached again is told again, whether or not the transcript shows
    /// it yet.
    fn rearm(&self, report: &mut Report) {
        let Some(facts) = self.facts(report) else { return };
        let settings = self.overrides.settings(&self.rules().settings);
        let read = reading(&self.gauge(&facts), &settings, facts.seq);
        self.remember(report, |known| known.emptied(&read));
    }

    fn tell(&self, gauge: &Gauge, report: &mut Report) {
        let said = self.rules().say.iter().find(|(id, _)| *id == gauge.tier);
        let mut evaluator = self.evaluator(gauge);
        let text = said.map(|(_, choices)| signals::chosen(choices, &mut evaluator));
        add_context(report, text.unwrap_or_default());
    }

    fn evaluator(&self, gauge: &Gauge) -> Evaluator {
        let notes = self.rules().notes.first().map_or("", String::as_str);
        let mut evaluator = Evaluator::about(record(gauge, notes));
        evaluator.watch.clone_from(&self.request.watch);
        evaluator
    }

    /// Tells the client's compactor what matters. A client whose compactor reads nothing gets nothing.
    fn say_compact(&self, report: &mut Report) {
        let template = &self.rules().compact;
        if template.trim().is_empty() {
            return;
        }
        let Some(facts) = self.facts(report) else { return };
        let gauge = self.gauge(&facts);
        let text = template::render(template, &mut self.evaluator(&gauge));
        add_context(report, text);
    }

    /// Keeps a summary of the session, for whatever comes after it.
    fn summarize(&self, reason: &str, report: &mut Report) {
        let Some(facts) = self.facts(report) else { return };
        let gauge = self.gauge(&facts);
        self.keep(reason, (&facts, &gauge), report);
    }

    fn keep(&self, reason: &str, (facts, gauge): (&Facts, &Gauge), report: &mut Report) {
        let carrier = self.carrier();
        let text = carrier.summarize(facts, gauge, None);
        let (session, now) = (&self.request.event.session_id, self.request.now);
        if let Err(why) = carrier.keep(session, (facts, &text), (reason, now, None)) {
            report.note(why);
        }
    }

    /// Tells a context that begins what the one before it left, once.
    fn carry_over(&self, report: &mut Report) {
        let event = &self.request.event;
        let source = event.source.as_deref().unwrap_or_default();
        if !self.rules().inject.iter().any(|it| it == source) {
            return;
        }
        let (now, max_age) = (self.request.now, self.rules().summary_max_age);
        let (own, folder) = (event.session_id.as_str(), self.project.root.to_string_lossy());
        let same = matches!(source, "compact" | "resume");
        let carrier = self.carrier();
        // What it was told of this turn still stands in a context that is resumed.
        let was_told = |facts: &Facts| {
            let turn = facts.prompts.count;
            carrier.summaries().was_told((own, folder.as_ref()), turn)
        };
        if source == "resume" && self.facts(report).as_ref().is_some_and(was_told) {
            return;
        }
        let client = carrier.client();
        let fits = |it: &Summary| {
            let age = now.since(it.at);
            // Only the session that was cleared just now goes on in this one.
            let before = same || (it.reason == AT_CLEAR && age <= CLEAR_WITHIN);
            let young = age <= max_age;
            let known = !client.is_empty() && !it.client.is_empty();
            let bound = same || !known || it.client == client;
            young && before && bound && it.folder == folder && (it.session == own) == same
        };
        // Nothing else in the payload of a session that begins names the one that was cleared.
        let all = carrier.summaries().all();
        let whose: BTreeSet<&str> = all
            .iter()
            .filter(|it| it.told.is_none() && fits(it))
            .map(|it| it.session.as_str())
            .collect();
        if !same && whose.len() > 1 && client.is_empty() {
            report.note(
                "several sessions were cleared just now: which one goes on here is not known",
            );
            return;
        }
        let taken = carrier.summaries().take(now, fits);
        let summary = match taken {
            Ok(Some(it)) => Some((it.text, it.iteration)),
            // Nobody summarised it in time: its transcript is there.
            Ok(None) if same => self.made_now(report),
            Ok(None) => None,
            Err(error) => {
                report.note(format!("the summary of the last context: {error}"));
                None
            }
        };
        let Some((text, before)) = summary else { return };
        add_context(report, told(&text));
        if source == "compact" {
            self.restate(report);
        }
        let restarts = carrier.summaries().all().iter().filter(|it| it.told.is_some()).count();
        let restarts = u64::try_from(restarts).unwrap_or(u64::MAX);
        let whose = Whose { session: own, now, iteration: 0 };
        append(self.world, self.own, EVENT_LOG, &[restart(whose, restarts, before)]);
    }

    /// Saves that the goal was given to the context after a compaction.
    fn restate(&self, report: &mut Report) {
        let Some(facts) = self.facts(report) else { return };
        let settings = self.overrides.settings(&self.rules().settings);
        let read = reading(&self.gauge(&facts), &settings, facts.seq);
        self.remember(report, |known| known.restating(&read));
    }

    /// A summary of the session as its transcript stands, marked as told. Nothing if the session was
    /// given exactly this summary before.
    fn made_now(&self, report: &mut Report) -> Option<(String, u64)> {
        let facts = self.facts(report)?;
        if facts.prompts.count == 0 {
            return None; // Nothing happened yet.
        }
        let (carrier, gauge) = (self.carrier(), self.gauge(&facts));
        let text = carrier.summarize(&facts, &gauge, None);
        let (session, now) = (&self.request.event.session_id, self.request.now);
        let same = |it: &Summary| it.session == session.as_str() && it.text == text;
        if carrier.summaries().all().iter().any(|it| it.told.is_some() && same(it)) {
            return None;
        }
        let kept = carrier.keep(session, (&facts, &text), ("resume", now, Some(now)));
        kept.map_err(|why| report.note(why)).ok()?;
        Some((text, facts.prompts.count))
    }
}

/// Asks for a fresh context where a trigger of `signals.yaml` says so, and somebody can give it.
pub(super) fn request_clear(
    world: &dyn World,
    request: &Request<'_>,
    (policy, own): (&Policy, &Path),
    (store, facts): (&SessionStore<'_>, &Facts),
    report: &mut Report,
) {
    let driven = world.env(DRIVEN_VARIABLE).is_some();
    if !policy.context.clear_requests.holds(driven) || request.dry_run {
        return;
    }
    let stores = Stores::new(world, policy, (own, &store.durability), HOOK_LOCK_WAIT);
    let (due, _) = signals::due(&policy.signals, stores.run_of(facts), request.watch.as_ref());
    let Some(due) = due.into_iter().find(|it| it.trigger.emit == CLEAR) else { return };
    if let Err(error) = stores.raise(&due, "", request.event.session_id.as_str()) {
        report.note(format!("{CLEAR}: {error}"));
    }
}

/// Adds to what the agent is told.
fn add_context(report: &mut Report, text: String) {
    let text = mask(text.trim()).0.into_owned();
    if text.is_empty() {
        return;
    }
    let before = report.answer.context.take().filter(|it| !it.trim().is_empty());
    let both: Vec<String> = before.into_iter().chain([text]).collect();
    report.answer.context = Some(message::cut(&both.join("\n\n"), SPOKEN_CHARS_MAX));
}
