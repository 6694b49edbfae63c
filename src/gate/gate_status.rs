//! Which checks are switched off at an event, or policyd as a whole, for a caller that evaluates nothing yet.

use std::path::PathBuf;

use super::admission::{AdmittedEvent, admit, skip_reason};
use super::diagnostics::Diagnostics;
use super::event_result::SkipReason;
use super::loaded_policy::LoadedPolicy;
use super::request::Request;
use policyd_state::run::StopGateSwitches;
use policyd_world::World;
use policyd_world::fenced::WriteProtectedWorld;

/// Returns whether policyd is off at an event, and which checks of a loaded pack are off.
pub fn gate_switches(
    world: &dyn World,
    request: &Request<'_>,
    loaded: &LoadedPolicy,
) -> StopGateSwitches {
    // Every path is protected and nothing is recorded, so the evaluation of the event reports the same problems.
    let why = "a question about the switches writes nothing".to_owned();
    let unchanged = WriteProtectedWorld::new(world, vec![(PathBuf::new(), why)], Vec::new());
    let world: &dyn World = &unchanged;
    let mut diagnostics = Diagnostics::default();
    let off = |reason: Option<SkipReason>| reason.map(|it| it.text(request.now));
    let (config, pins) = match admit(world, request, &mut diagnostics) {
        Ok(AdmittedEvent { switches, pins, .. }) => (switches, pins),
        Err(result) => return StopGateSwitches { off: off(result.skipped), without: Vec::new() },
    };
    let mut policy = loaded.policy.clone();
    pins.apply(&mut policy);
    let _problems: Option<Vec<String>> = config.map(|it| it.apply(&mut policy));
    let checks = loaded.policy.considerations.iter().zip(policy.considerations.iter());
    let disabled = checks.filter(|(before, after)| before.enabled && !after.enabled);
    let without = disabled.map(|(check, _)| check.id.clone()).collect();
    let reason = skip_reason(&policy, &request.event, &mut diagnostics);
    StopGateSwitches { off: off(reason), without }
}
