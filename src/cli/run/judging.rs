//! Whether a run is complete: the agent claims so, and the considerations of a stop have nothing
//! against it. They are judged over a transcript of the whole run, that `turn` writes.

use serde_json::json;

use super::Supervisor;
use crate::cli::eval::{self, Request};
use crate::facts::event::EventKind;
use crate::hook::payload;
use crate::judge::Detail;
use crate::judge::verdict::Consequence;
use crate::state::run::Claim;

impl Supervisor<'_, '_, '_> {
    /// What the gate says to a claim.
    pub(super) fn judge(&self, answer: &str) -> Claim {
        let fields = json!({
            "session_id": format!("run-{}", self.run.id),
            "transcript_path": self.transcript(),
            "cwd": self.project.folder,
            "prompt_id": self.mark(),
            "hook_event_name": "Stop",
            "last_assistant_message": answer,
        });
        let event = EventKind::find("stop")
            .and_then(|it| payload::parse(fields.to_string().as_bytes(), it).ok());
        let Some(event) = event else {
            return Claim::Refused("the gate could not be asked".to_owned());
        };
        let (now, detail) = (self.world.now(), Detail::Findings);
        let request = Request { event, now, policies: None, detail, dry_run: false, watch: None };
        let report = eval::evaluate_by(self.world, &request, self.ready);
        let Some(outcome) = &report.outcome else {
            let why = report.around.no_opinion.clone().unwrap_or_default();
            // A human who switched the gate off takes the agent's word.
            if eval::is_off(&why) {
                return Claim::Accepted;
            }
            let why = report.around.problems.first().cloned().unwrap_or(why);
            return Claim::Refused(format!("it could not be judged: {why}"));
        };
        // What the loop guard lets go is not done.
        let amiss = outcome.verdicts.iter().filter(|it| it.consequence == Consequence::Blocks);
        let lines: Vec<String> = amiss
            .map(|it| {
                let what = if it.guidance.is_empty() { "" } else { " What to do: " };
                format!("- {}: {}{what}{}", it.id, it.details, it.guidance)
            })
            .collect();
        if lines.is_empty() { Claim::Accepted } else { Claim::Refused(lines.join("\n")) }
    }
}
