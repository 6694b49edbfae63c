//! The inputs of the evaluation of a stop.

use std::collections::BTreeMap;
use std::time::Duration;

use policyd_fact_table::context::{Context, FactView};
use policyd_policy::Policy;
use policyd_state::SessionState;

use super::verdict::Detail;

/// Inputs of [`decide`](super::decide) beside the evaluator.
#[derive(Clone, Copy)]
pub struct EvaluationContext<'a> {
    pub policy: &'a Policy,
    /// What expressions read, with the results of the plan.
    pub view: &'a FactView,
    /// Saved state of the session, read under the lock.
    pub state: &'a SessionState,
    /// Time since a fixed point, for timings. Constant if timings do not matter.
    pub stopwatch: &'a dyn Fn() -> Duration,
    pub detail: Detail,
    /// Path of the full report, for a message that is cut.
    pub report_path: &'a str,
    /// Checks that the user lets pass, each with the text of the allowance.
    pub allowed: &'a BTreeMap<String, String>,
}

impl<'a> EvaluationContext<'a> {
    /// The event with the facts of its session.
    pub(super) fn context(&self) -> &'a Context {
        &self.view.context
    }
}
