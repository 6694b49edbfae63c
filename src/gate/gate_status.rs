//! How policyd is switched at an event, for a caller that asks before it evaluates anything: off as a
//! whole, or single checks of it.

use super::admission::{AdmittedEvent, admit, nothing_to_judge};
use super::loaded_policy::LoadedPolicy;
use super::report::{Report, SkipReason};
use super::request::Request;
use policyd_state::run::StopGateSwitches;
use policyd_world::World;

/// How policyd is switched at an event, for a pack that is loaded already.
pub fn switched(
    world: &dyn World,
    request: &Request<'_>,
    loaded: &LoadedPolicy,
) -> StopGateSwitches {
    let mut report = Report::of(&request.event);
    let off = |why: Option<SkipReason>| why.map(|it| it.text(request.now));
    let (config, pins) = match admit(world, request, &mut report) {
        Ok(AdmittedEvent { switches, pins, .. }) => (switches, pins),
        Err(report) => return StopGateSwitches { off: off(report.unjudged), without: Vec::new() },
    };
    let mut policy = loaded.policy.clone();
    pins.apply(&mut policy);
    let _reported_when_judged: Option<Vec<String>> = config.map(|it| it.apply(&mut policy));
    let both = loaded.policy.considerations.iter().zip(policy.considerations.iter());
    let without = both.filter(|(was, is)| was.enabled && !is.enabled).map(|(it, _)| it.id.clone());
    let without = without.collect();
    let why = nothing_to_judge(&policy, &request.event, &mut report);
    StopGateSwitches { off: off(why), without }
}
