//! Lists what is waiting where work begins: due dead letters, escalations, signals.

use super::ReactionRunner;
use crate::diagnostics::Diagnostics;
use policyd_base::limits::{HOOK_LOCK_WAIT, SPOKEN_CHARS_MAX};
use policyd_evaluation::dead_letter::{alarms, queue_record, review_due};
use policyd_evaluation::message::{self, quote};
use policyd_fact_table::FactEvaluator;
use policyd_fact_table::record::FactRecord;
use policyd_policy::records;
use policyd_record::mask::mask;
use policyd_state::dead_letter::{Task, TaskQueue};
use policyd_store::signals::SignalFollowUp;
use policyd_tasks::{ReviewRow, ReviewedTasks, Stores};

/// Items that wait where work begins.
pub(super) struct WaitingLists {
    /// Texts for the agent.
    pub(super) texts: Vec<String>,
    /// Open escalations, for the user.
    pub(super) notice: Option<String>,
}

impl ReactionRunner<'_> {
    /// Lists what waits: signals, dead letters, alarms, and open escalations. `starts`: whether a session begins.
    pub(super) fn waiting(
        &self,
        stores: &Stores<'_>,
        starts: bool,
        diagnostics: &mut Diagnostics,
    ) -> WaitingLists {
        let mut texts = self.signals(stores, diagnostics);
        if starts && stores.queues.exists() {
            texts.extend(self.review(stores, diagnostics));
        }
        if starts {
            stores.remind().iter().for_each(|it| diagnostics.note(it.as_str()));
        }
        if starts {
            stores.problems().iter().for_each(|it| diagnostics.problem(it));
        }
        // The start of a session reports escalations that cannot be read.
        let open = stores.escalations.all().unwrap_or_default();
        let blocking = open.iter().filter(|it| it.closed.is_none() && it.blocking);
        let lines: Vec<String> = blocking
            .map(|it| {
                format!("- {}: {} (escalations/{}.md)", quote(&it.title), quote(&it.reason), it.id)
            })
            .collect();
        texts.extend(self.format_message("humans_asked", lines));
        let unanswered = open.iter().filter(|it| it.closed.is_none());
        let lines: Vec<String> =
            unanswered.map(|it| format!("- {}: {}", it.title, it.reason)).collect();
        let notice = (starts && !lines.is_empty()).then(|| {
            let text = format!(
                "policyd: open escalations: {}; `policyd escalation list` shows them:\n{}",
                lines.len(),
                lines.join("\n")
            );
            message::cut(&mask(&text).0, SPOKEN_CHARS_MAX)
        });
        WaitingLists { texts, notice }
    }

    /// Lists the signals that wait, for an agent that continues. Changes none of them. `None` if no signal waits.
    pub(crate) fn list_signals(&self) -> Option<String> {
        let stores = self.context.stores(HOOK_LOCK_WAIT);
        if !stores.signals.exists() {
            return None;
        }
        let stores = Stores { now: self.context.request.now, ..stores };
        let texts = stores.signal_texts().into_iter().map(|text| format!("- {text}"));
        let text = self.format_message("signals_pending", texts.collect())?;
        Some(mask(&text).0.into_owned())
    }

    /// Applies the effects of drifts that another program reported, if there are new ones. Returns the texts for the agent.
    pub(super) fn drifts(&self, stores: &Stores<'_>, diagnostics: &mut Diagnostics) -> Vec<String> {
        if !stores.signals.has_new_drifts() {
            return Vec::new();
        }
        self.process(stores, diagnostics)
    }

    /// Processes the signals. Returns the texts about drifts, each once.
    fn process(&self, stores: &Stores<'_>, diagnostics: &mut Diagnostics) -> Vec<String> {
        let mut follow_ups = Vec::new();
        match stores.process_signals(&mut follow_ups) {
            Ok(processed) => {
                for (signal, why) in &processed.failed {
                    diagnostics.note(format!("{}: {why}", signal.id));
                }
                for (drift, why) in &processed.failed_drifts {
                    diagnostics.note(format!("{}: {why}", drift.name));
                }
            }
            Err(error) => diagnostics.note(format!("signals: {error}")),
        }
        let mut texts = Vec::new();
        for follow_up in follow_ups {
            if let SignalFollowUp::Drift { drift, message } = follow_up
                && !message.is_empty()
            {
                let text = format!("{}: {message}", drift.name);
                if !texts.contains(&text) {
                    texts.push(text);
                }
            }
        }
        texts
    }

    /// Processes the signals; lists those that wait, and the answers to requests.
    fn signals(&self, stores: &Stores<'_>, diagnostics: &mut Diagnostics) -> Vec<String> {
        if !stores.signals.exists() {
            return Vec::new();
        }
        let mut texts = self.process(stores, diagnostics);
        let mut lines: Vec<String> =
            stores.signal_texts().into_iter().map(|text| format!("- {text}")).collect();
        let answers = stores.signals.unreceived_answers().unwrap_or_else(|problem| {
            diagnostics.note(problem.to_string());
            Vec::new()
        });
        lines.extend(answers.iter().map(|answer| {
            let (end, text) = (answer.end.as_str(), quote(&answer.text));
            let line = format!("- {} {}: {end} {text}", answer.signal, answer.id);
            line.trim_end().to_owned()
        }));
        let ids: Vec<&str> = answers.iter().map(|it| it.id.as_str()).collect();
        if !ids.is_empty()
            && let Err(error) = stores.signals.remove_answers(&ids, self.context.request.now)
        {
            diagnostics.note(format!("signals: {error}"));
        }
        texts.extend(self.format_message("signals_pending", lines));
        texts
    }

    /// Reviews the dead letters if it is time, and lists the alarms of the queues.
    fn review(&self, stores: &Stores<'_>, diagnostics: &mut Diagnostics) -> Vec<String> {
        let lists = stores.queues.peek();
        let rules = &self.context.policy.dead_letter;
        let mut texts = Vec::new();
        let is_due =
            review_due(lists.metadata.last_reviewed, rules.review_every, self.context.request.now)
                || !lists.review_from.is_empty();
        let reviews = is_due && lists.on(TaskQueue::DeadLetter).next().is_some();
        if reviews {
            match stores.review(&[]) {
                Ok(ReviewedTasks { rows, .. }) => {
                    let moved = rows.iter().filter(|it| !matches!(it.action, "wait" | "leave"));
                    texts.extend(
                        self.format_message("review_done", moved.map(review_line).collect()),
                    );
                }
                Err(error) => {
                    diagnostics.problem(&format!("the dead letters could not be reviewed: {error}"))
                }
            }
        }
        let lists = if reviews { stores.queues.peek() } else { lists };
        let tasks: Vec<&Task> = lists.tasks.iter().collect();
        let record = queue_record(&tasks, lists.metadata.last_reviewed, self.context.request.now);
        let lines = alarms(rules, record, self.context.request.watch.as_ref())
            .into_iter()
            .map(|(_, text)| format!("- {text}"));
        texts.extend(self.format_message("queue_alarms", lines.collect()));
        texts
    }

    /// Formats a message about waiting items. `None` for an empty list.
    fn format_message(&self, id: &str, lines: Vec<String>) -> Option<String> {
        if lines.is_empty() {
            return None;
        }
        let count = i64::try_from(lines.len()).unwrap_or(i64::MAX);
        let record = FactRecord::new(records::shape(&records::WAITING));
        let record = record.with("count", count).with("lines", lines);
        let mut evaluator =
            FactEvaluator::about(record).watched_by(self.context.request.watch.as_ref());
        let text = message::text(self.context.policy, id, &mut evaluator);
        Some(text.trim().to_owned()).filter(|it| !it.is_empty())
    }
}

/// Says what the review did with a task.
fn review_line(row: &ReviewRow) -> String {
    let ReviewRow { task, rule, .. } = row;
    let result = match row.action {
        "retry" => "requeued".to_owned(),
        "split" => format!("replaced by `{}`", row.part),
        "escalate" => "escalated".to_owned(),
        _ => format!("abandoned, {}", quote(&task.reason)),
    };
    let title = if task.title.is_empty() { &task.id } else { &task.title };
    format!("- {}: {result} ({rule})", quote(title))
}
