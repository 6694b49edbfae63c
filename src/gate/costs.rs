//! What the sessions of the user spent today. What this session spent is recorded for the others: at each stop, and
//! between stops after each step of [`RECORDED_STEP_NANO`].

use super::context::GateContext;
use super::diagnostics::Diagnostics;
use policyd_base::limits::HOOK_LOCK_WAIT;
use policyd_fact_table::context::FactView;
use policyd_fact_table::cost_facts::CostSnapshot;
use policyd_state::daily_costs::{DailyCosts, SessionCost};
use policyd_store::daily_costs;
use policyd_workspace::local_time;

/// Billionths of a US dollar: 10 cents.
const RECORDED_STEP_NANO: u64 = 100_000_000;

impl GateContext<'_> {
    /// Returns the day of the event, by the clock of this machine: `2026-01-31`.
    pub(super) fn day(&self) -> String {
        local_time::local(self.world, self.request.now).to_string().chars().take(10).collect()
    }

    /// Returns what was spent today. `None` if it cannot be read.
    pub(super) fn cost_snapshot(
        &self,
        view: &FactView,
        diagnostics: &mut Diagnostics,
    ) -> Option<CostSnapshot> {
        let event = &self.request.event;
        // What the session spent is in its transcript: without it, the sum is not known.
        if view.context.transcript_problem.is_some() {
            return None;
        }
        let (day, project) = (self.day(), self.project.main.display().to_string());
        let key = DailyCosts::key(&project, event.session_id.as_str());
        let costs = daily_costs::load(self.world);
        let mut costs = costs.map_err(|error| diagnostics.problem(&error.note())).ok()?.on(&day);
        let is_of_session = !event.subagent_transcript;
        let total = view.usage.as_ref().filter(|_| is_of_session).map(|it| it.cost_nano);
        if let Some(total) = total.filter(|_| !self.request.dry_run) {
            let recorded = costs.sessions.get(&key).map_or(0, |it| it.total);
            let is_due = match event.kind.is_stop() {
                true => total != recorded,
                false => total.abs_diff(recorded) >= RECORDED_STEP_NANO,
            };
            if is_due {
                costs = self.record_cost(&day, &project, total, diagnostics).unwrap_or(costs);
            }
        }
        let own = costs.sessions.get(&key);
        let own_before_nano = total.map(|_| own.map_or(0, |it| it.before));
        let others = costs.sessions.iter().filter(|(name, _)| total.is_none() || **name != key);
        let sum = |sessions: &mut dyn Iterator<Item = &SessionCost>| {
            sessions.fold(0_u64, |sum, it| sum.saturating_add(it.of_day()))
        };
        Some(CostSnapshot {
            project_nano: sum(&mut others
                .clone()
                .map(|it| it.1)
                .filter(|it| it.project == project)),
            user_nano: sum(&mut others.map(|it| it.1)),
            own_before_nano,
        })
    }

    /// Records what a session spent. Returns the new costs of the day. `None` if they cannot be saved.
    fn record_cost(
        &self,
        day: &str,
        project: &str,
        total: u64,
        diagnostics: &mut Diagnostics,
    ) -> Option<DailyCosts> {
        let (session, now) = (self.request.event.session_id.as_str(), self.request.now);
        let wait = HOOK_LOCK_WAIT;
        let changed = daily_costs::change(self.world, &self.store.durability, wait, |costs| {
            let mut costs = costs.on(day);
            costs.record(project, session, total, now);
            costs
        });
        changed.map_err(|error| diagnostics.problem(&error.note())).ok()
    }
}
