//! Lists what is waiting where work begins: due dead letters, escalations, signals.

use super::ReactionRunner;
use crate::report::Report;
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

impl ReactionRunner<'_> {
    /// What waits: the review of the dead letters, the questions to humans, the alarms.
    pub(super) fn waiting(
        &self,
        stores: &Stores<'_>,
        starts: bool,
        report: &mut Report,
    ) -> Vec<String> {
        let mut said = self.signals(stores, report);
        if starts && stores.queues.exists() {
            said.extend(self.review(stores, report));
        }
        if starts {
            stores.remind().iter().for_each(|it| report.note(it.as_str()));
        }
        if starts {
            stores.problems().iter().for_each(|it| report.problem(it));
        }
        // The start of a session reports escalations that cannot be read.
        let open = stores.escalations.all().unwrap_or_default();
        let blocking = open.iter().filter(|it| it.closed.is_none() && it.blocking);
        let lines: Vec<String> = blocking
            .map(|it| {
                format!("- {}: {} (escalations/{}.md)", quote(&it.title), quote(&it.reason), it.id)
            })
            .collect();
        said.extend(self.format_message("humans_asked", lines));
        let asked = open.iter().filter(|it| it.closed.is_none());
        let lines: Vec<String> = asked.map(|it| format!("- {}: {}", it.title, it.reason)).collect();
        if starts && !lines.is_empty() {
            let text = format!(
                "policyd: open escalations: {}; `policyd escalation list` shows them:\n{}",
                lines.len(),
                lines.join("\n")
            );
            report.answer.notice = Some(message::cut(&mask(&text).0, SPOKEN_CHARS_MAX));
        }
        said
    }

    /// Tells an agent that goes on which signals wait, below why it does; nothing is done about them.
    pub(crate) fn list_signals(&self, report: &mut Report) {
        let stores = self.context.stores(HOOK_LOCK_WAIT);
        if !stores.signals.exists() {
            return;
        }
        let stores = Stores { now: self.context.request.now, ..stores };
        let texts = stores.signal_texts().into_iter().map(|text| format!("- {text}"));
        if let Some(text) = self.format_message("signals_pending", texts.collect()) {
            let both = format!("{}\n\n{}", report.answer.reason.trim_end(), mask(&text).0);
            report.answer.reason = message::cut(&both, SPOKEN_CHARS_MAX);
        }
    }

    /// Does the effects of drifts that another program reported, if there are new ones. Returns the texts for the agent.
    pub(super) fn drifts(&self, stores: &Stores<'_>, report: &mut Report) -> Vec<String> {
        if !stores.signals.has_new_drifts() {
            return Vec::new();
        }
        self.process(stores, report)
    }

    /// Processes the signals. Returns the texts about drifts, each once.
    fn process(&self, stores: &Stores<'_>, report: &mut Report) -> Vec<String> {
        let mut deeds = Vec::new();
        match stores.process_signals(&mut deeds) {
            Ok(done) => {
                done.failed.iter().for_each(|(it, why)| report.note(format!("{}: {why}", it.id)));
                let drifts = done.failed_drifts.iter();
                drifts.for_each(|(it, why)| report.note(format!("{}: {why}", it.name)));
            }
            Err(error) => report.note(format!("signals: {error}")),
        }
        let mut texts = Vec::new();
        for deed in deeds {
            if let SignalFollowUp::Drift { drift, message } = deed
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
    fn signals(&self, stores: &Stores<'_>, report: &mut Report) -> Vec<String> {
        if !stores.signals.exists() {
            return Vec::new();
        }
        let mut said = self.process(stores, report);
        let mut lines: Vec<String> =
            stores.signal_texts().into_iter().map(|text| format!("- {text}")).collect();
        let answers = stores.signals.unreceived_answers().unwrap_or_else(|problem| {
            report.note(problem.to_string());
            Vec::new()
        });
        lines.extend(answers.iter().map(|it| {
            let line =
                format!("- {} {}: {} {}", it.signal, it.id, it.end.as_str(), quote(&it.text));
            line.trim_end().to_owned()
        }));
        let ids: Vec<&str> = answers.iter().map(|it| it.id.as_str()).collect();
        if !ids.is_empty()
            && let Err(error) = stores.signals.remove_answers(&ids, self.context.request.now)
        {
            report.note(format!("signals: {error}"));
        }
        said.extend(self.format_message("signals_pending", lines));
        said
    }

    fn review(&self, stores: &Stores<'_>, report: &mut Report) -> Vec<String> {
        let lists = stores.queues.peek();
        let rules = &self.context.policy.dead_letter;
        let mut said = Vec::new();
        let is_due =
            review_due(lists.metadata.last_reviewed, rules.review_every, self.context.request.now)
                || !lists.review_from.is_empty();
        let reviews = is_due && lists.on(TaskQueue::DeadLetter).next().is_some();
        if reviews {
            match stores.review(&[]) {
                Ok(ReviewedTasks { rows, .. }) => {
                    let moved = rows.iter().filter(|it| !matches!(it.action, "wait" | "leave"));
                    said.extend(
                        self.format_message("review_done", moved.map(review_line).collect()),
                    );
                }
                Err(error) => {
                    report.problem(&format!("the dead letters could not be reviewed: {error}"))
                }
            }
        }
        let lists = if reviews { stores.queues.peek() } else { lists };
        let tasks: Vec<&Task> = lists.tasks.iter().collect();
        let record = queue_record(&tasks, lists.metadata.last_reviewed, self.context.request.now);
        let lines = alarms(rules, record, self.context.request.watch.as_ref())
            .into_iter()
            .map(|(_, text)| format!("- {text}"));
        said.extend(self.format_message("queue_alarms", lines.collect()));
        said
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

fn review_line(row: &ReviewRow) -> String {
    let ReviewRow { task, rule, .. } = row;
    let what = match row.action {
        "retry" => "requeued".to_owned(),
        "split" => format!("replaced by `{}`", row.part),
        "escalate" => "escalated".to_owned(),
        _ => format!("abandoned, {}", quote(&task.reason)),
    };
    let title = if task.title.is_empty() { &task.id } else { &task.title };
    format!("- {}: {what} ({rule})", quote(title))
}
