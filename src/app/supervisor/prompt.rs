//! The prompt of a turn: the sections of `run.yaml` that apply, rendered over the run.

use super::Supervisor;
use policyd_base::limits::PROMPT_BYTES_MAX;
use policyd_evaluation::message::cut;
use policyd_fact_table::record::FactRecord;
use policyd_fact_table::{FactEvaluator, template};
use policyd_facts::shell::quote;
use policyd_policy::records;
use policyd_policy::records::run::RUN;

impl Supervisor<'_> {
    /// Renders a template over the run.
    pub(super) fn render(&self, text: &str) -> String {
        template::render(text, &mut FactEvaluator::about(self.run_record("")))
    }

    /// The run as the texts see it.
    pub(super) fn run_record(&self, summary: &str) -> FactRecord {
        let (run, number) = (&self.run, |it: u32| i64::from(it));
        let program = run.command.first().map(String::as_str).unwrap_or_default();
        let program = program.rsplit(['/', '\\']).next().unwrap_or_default();
        let human = run.human.join("\n");
        FactRecord::new(records::shape(&RUN))
            .with("id", run.id.as_str())
            .with("goal", run.goal.as_str())
            .with("program", program)
            .with("policyd", self.program().as_str())
            .with("iteration", number(run.iteration))
            .with("iterations_max", number(run.iterations_max(&self.limits)))
            .with("session", number(run.session))
            .with("attempt", number(run.attempt))
            .with("summary", summary)
            .with("human", human.as_str())
            .with("feedback", run.feedback.as_str())
            .with("error", run.last_error.as_str())
            .with("health", number(run.health.unwrap_or(100)))
            .with("verdict", run.verdict.as_str())
            .with("stuck", run.hint.as_str())
    }

    /// This program as a shell starts it. A login shell of the client may have another PATH.
    fn program(&self) -> String {
        let path = self.world.program().map(|it| it.display().to_string());
        let path = path.unwrap_or_else(|| "policyd".to_owned());
        quote(&path)
    }

    /// The prompt of this turn.
    pub(super) fn prompt(&self, summary: &str) -> String {
        let mut evaluator = FactEvaluator::about(self.run_record(summary));
        let mut parts = Vec::new();
        for section in &self.settings.prompt {
            // One that cannot be evaluated is not said.
            let when = section.when.text.as_str();
            if when.is_empty() || evaluator.eval_bool(when).unwrap_or(false) {
                parts.push(template::render(&section.text, &mut evaluator).trim().to_owned());
            }
        }
        parts.retain(|it| !it.is_empty());
        let text = parts.join("\n\n");
        if text.len() <= PROMPT_BYTES_MAX { text } else { cut(&text, PROMPT_BYTES_MAX / 4) }
    }
}
