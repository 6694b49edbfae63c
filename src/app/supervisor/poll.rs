//! What is seen between two turns: what humans say to the loop, what they must decide, and what the
//! agent says of being done.

use serde_json::Map;

use super::Supervisor;
use crate::sharing;
use crate::workspace::human;
use policyd_evaluation::message;
use policyd_policy::signals::CLAIM;
use policyd_record::mask::mask;
use policyd_state::run::ControlSignals;
use policyd_state::signal::{End, SignalEvent};
use policyd_store::shared::settings::SharedSubject;
use policyd_store::shared::{NamedSignal, SharedStore, SignalResponse};
use policyd_store::signals::{Draft, RequestAnswer, SignalOutcome, StoredSignal, is_blocking};
use policyd_yaml::time::Timestamp;

/// Name under which a run consumes the signals that are addressed to it.
const CONSUMER: &str = "policyd run";
/// Characters of a sender that are shown.
const SENDER_CHARS_MAX: usize = 100;
/// How a human is asked for a review.
const REVIEW: &str = "HUMAN_REVIEW_NEEDED";
/// Signal that requests a clear context.
const CLEAR: &str = "CONTEXT_CLEAR_REQUESTED";

/// Describes how a request ended, for the agent.
fn answer_text(it: &RequestAnswer) -> String {
    let question = match it.question.as_str() {
        "" => it.signal.clone(),
        question => format!("{} \"{question}\"", it.signal),
    };
    let by = human::shown(&it.by);
    let answer = match it.end {
        End::Approved => format!("{by} said yes to {question}"),
        End::Rejected => format!("{by} said no to {question}"),
        End::Consumed | End::Expired | End::TimedOut => {
            format!("no human answered {question} in time")
        }
    };
    with_text(answer, &it.text)
}

/// Names a sender: ` by ada`. Empty if the sender is unknown.
fn shown_sender(sender: &str) -> String {
    let sender = message::cut(&human::shown(sender), SENDER_CHARS_MAX);
    if sender.is_empty() { sender } else { format!(" by {sender}") }
}

fn with_text(answer: String, text: &str) -> String {
    if text.is_empty() { answer } else { format!("{answer}: {text}") }
}

impl Supervisor<'_> {
    /// Looks at the signals; those that are for the loop are consumed.
    pub(super) fn poll_signals(&mut self) -> ControlSignals {
        let stores = self.stores();
        let mut look = ControlSignals::default();
        if !stores.signals.exists() {
            self.poll_other_hosts(&mut look);
            return look;
        }
        // Approvals, timeouts and what follows from them.
        let mut problems = Vec::new();
        match stores.process_signals(&mut Vec::new()) {
            Ok(done) => problems
                .extend(done.failed.iter().map(|(it, why)| format!("signal {}: {why}", it.id))),
            Err(error) => problems.push(format!("signals: {error}")),
        }
        let now = self.world.now();
        let kinds = &self.policy().signals;
        for found in stores.signals.pending(now) {
            let kind = kinds.kind(&found.name);
            match kind.map(|it| it.interrupts.as_str()).unwrap_or_default() {
                "stop" => {
                    if let Some(found) = self.take(&found.id) {
                        look.stop = true;
                        look.stop_by = message::cut(&human::shown(&found.sender), SENDER_CHARS_MAX);
                    }
                }
                "pause" => {
                    look.pause = look.pause.or_else(|| {
                        let (name, by) = (&found.name, shown_sender(&found.sender));
                        Some(format!("{name}{by}; `policyd signal consume {name}` ends it"))
                    })
                }
                "input" => {
                    look.input.extend(self.take(&found.id).map(|it| it.message().to_owned()))
                }
                _ => {}
            }
            let asks = kind.is_some_and(|it| it.awaits_human(kinds));
            if asks && is_blocking(&found.fields) && look.review.is_none() {
                let answer =
                    format!("`policyd inbox answer {} yes|no [TEXT]` answers it", found.id);
                look.review = Some(format!("{}: {}; {answer}", found.name, found.message()));
            }
        }
        self.read_answers(&mut look);
        self.poll_other_hosts(&mut look);
        look.input.retain(|it| !it.trim().is_empty());
        problems.iter().for_each(|it| self.problem(it));
        look
    }

    /// Reads the answers that humans gave since the run began. The agent receives them. A no to a request that blocks ends
    /// the run, unless a human resumed it since.
    fn read_answers(&mut self, look: &mut ControlSignals) {
        let begun = Timestamp::from_millis(self.run.started_ms);
        let resumed = self.last_start();
        let answers = self.stores().signals.unreceived_answers().unwrap_or_else(|problem| {
            self.problem(&problem.to_string());
            Vec::new()
        });
        for it in answers.into_iter().filter(|it| it.at >= begun) {
            if self.received.contains(&it.id) {
                // Its removal failed.
                look.answered.push(it.id);
                continue;
            }
            let text = answer_text(&it);
            if it.end == End::Rejected && it.is_blocking && it.at >= resumed {
                look.refused.get_or_insert_with(|| text.clone());
            }
            look.input.push(text);
            look.answered.push(it.id);
        }
    }

    /// Removes answers that the saved run contains, so that hooks of the agent's client do not give them to it again. What cannot
    /// be removed now is removed later, and is not given to the agent again.
    pub(super) fn remove_answers(&mut self, ids: &[String]) {
        self.received.extend(ids.iter().cloned());
        if ids.is_empty() || !self.is_saved {
            return;
        }
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        if let Err(error) = self.stores().signals.remove_answers(&ids, self.world.now()) {
            self.problem(&format!("signals: {error}"));
        }
    }

    /// Returns when a human started or resumed the run last.
    fn last_start(&self) -> Timestamp {
        Timestamp::from_millis(self.run.resumed_ms.unwrap_or(self.run.started_ms))
    }

    /// Gives the agent the answers to questions about its task that humans gave since the last start.
    pub(super) fn take_decisions(&mut self) {
        let (task, stores, since) = (self.task().id, self.stores(), self.last_start());
        let escalations = stores.escalations.all().unwrap_or_else(|problem| {
            self.problem(&problem.to_string());
            Vec::new()
        });
        for it in escalations.iter().filter(|it| it.task_id == task) {
            let Some(closed) = it.closed.as_ref().filter(|it| it.at >= since) else { continue };
            let verb = if closed.approved { "yes" } else { "no" };
            let answer = format!("{} said {verb} to \"{}\"", human::shown(&closed.by), it.reason);
            self.run.human.push(with_text(answer, &closed.decision));
        }
    }

    /// Consumes each STOP that was emitted before this process began, because the user began the run after it.
    pub(super) fn remove_earlier_stops(&mut self, began: Timestamp) {
        let (stores, kinds) = (self.stores(), &self.policy().signals);
        if !stores.signals.exists() {
            return;
        }
        for found in stores.signals.pending(began) {
            let is_stop = kinds.kind(&found.name).is_some_and(|it| it.interrupts == "stop");
            if is_stop && found.signal.created < began && self.take(&found.id).is_some() {
                let at = found.signal.created;
                self.problem(&format!(
                    "{} of {at} is older than this run, so it was removed",
                    found.name
                ));
            }
        }
    }

    /// Consumes what humans on other hosts say to the run. The server decides which run gets it.
    fn poll_other_hosts(&mut self, look: &mut ControlSignals) {
        let found = SharedStore::find(self.world, &self.paths.own, &self.durability);
        let Ok(Some(store)) = found else { return };
        if !store.settings().shares(SharedSubject::Signals) {
            return;
        }
        let others = store.signals_of_others().unwrap_or_else(|problem| {
            self.problem(&problem.to_string());
            Vec::new()
        });
        for NamedSignal { document, signal } in others {
            if signal.interrupts == "pause" {
                look.pause = look.pause.take().or_else(|| {
                    let (name, by) = (&signal.signal, shown_sender(&signal.sender));
                    let (host, id) = (human::shown(&signal.host), &signal.id);
                    Some(format!("{name}{by} on {host}; `policyd signal consume {id}` ends it"))
                });
            }
            if !matches!(signal.interrupts.as_str(), "stop" | "input") {
                continue;
            }
            let event = SignalEvent::Consume { by: CONSUMER };
            match store.decide_signal(&document, event, sharing::QUICK) {
                Ok(SignalResponse::Changed) if signal.interrupts == "stop" => {
                    look.stop = true;
                    look.stop_by = message::cut(&human::shown(&signal.sender), SENDER_CHARS_MAX);
                }
                Ok(SignalResponse::Changed) => {
                    look.input.push(signal.message().to_owned());
                }
                // Another run got it.
                Ok(SignalResponse::Refused(_) | SignalResponse::Unknown) => {}
                Err(error) => self.problem(&format!("signal {}: {error}", signal.id)),
            }
        }
    }

    /// Consumes a signal; `None` if another process consumed it.
    fn take(&mut self, which: &str) -> Option<StoredSignal> {
        let taken = self.stores().signals.take(
            which,
            SignalEvent::Consume { by: CONSUMER },
            self.world.now(),
        );
        match taken {
            Ok(SignalOutcome::Ended(found, End::Consumed, _)) => Some(*found),
            Ok(_) => None,
            Err(error) => {
                self.problem(&format!("signal {which} could not be consumed: {error}"));
                None
            }
        }
    }

    /// Takes what the agent says of being done; whether it said so.
    pub(super) fn take_claim(&mut self) -> bool {
        self.is_pending(CLAIM) && self.take(CLAIM).is_some()
    }

    /// Whether a clear context is requested.
    pub(super) fn wants_clear(&self) -> bool {
        self.is_pending(CLEAR)
    }

    /// The request for a clear context is met.
    pub(super) fn take_clear(&mut self) {
        if self.is_pending(CLEAR) {
            self.take(CLEAR);
        }
    }

    /// Requests a human review, unless one is pending; returns whether a request is pending now.
    pub(super) fn ask_human(&mut self, why: &str) -> bool {
        let kinds = &self.policy().signals;
        if !kinds.kind(REVIEW).is_some_and(|it| it.awaits_human(kinds)) {
            self.problem(&format!("the pack has no signal {REVIEW}, so no human is asked"));
            return false;
        }
        let mut fields = Map::new();
        fields.insert("reason".to_owned(), mask(why).0.into_owned().into());
        let sender = CONSUMER.to_owned();
        let draft = Draft { name: REVIEW.to_owned(), fields, sender, ..Draft::default() };
        let made = self.stores().signals.emit_once(&draft, self.world.now());
        if let Err(error) = &made {
            self.problem(&format!("{REVIEW}: {error}"));
        }
        made.is_ok()
    }

    fn is_pending(&self, name: &str) -> bool {
        let stores = self.stores();
        let known = stores.signals.exists() && self.policy().signals.kind(name).is_some();
        known && stores.signals.pending(self.world.now()).iter().any(|it| it.name == name)
    }
}
