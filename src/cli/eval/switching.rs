//! How the gate is switched, for whoever asks before it judges anything: off as a whole, or single
//! checks of it. May not live here: where switches are read.

use super::speech::Report;
use super::{NO_RULE, Ready, Request, SWITCHED_OFF, enter, nothing_to_judge};
use crate::state::run::Switched;
use crate::store::pause::Pause;
use crate::world::World;

/// Whether nothing was judged because a human wants nothing judged, by the reason of a silent
/// [`Report`]. A pause that an agent made for itself is none.
pub(in crate::cli) fn is_off(why: &str) -> bool {
    let paused = Pause::is_told_by(why) && !why.contains("from an agent's shell");
    paused || why == NO_RULE || why == SWITCHED_OFF || why.starts_with("switched off")
}

/// How the gate is switched at an event, for a pack that is loaded already.
pub(in crate::cli) fn switched(
    world: &dyn World,
    request: &Request<'_>,
    ready: &Ready,
) -> Switched {
    let mut report = Report::of(&request.event);
    let switches = match enter(world, request, &mut report) {
        Ok((_, switches)) => switches,
        Err(why) => return Switched { off: Some(why), without: Vec::new() },
    };
    let Some(switches) = switches else {
        let off = nothing_to_judge(&ready.policy, &request.event, &mut report);
        return Switched { off: off.map(str::to_owned), without: Vec::new() };
    };
    let mut policy = ready.policy.clone();
    let _said_when_judged = switches.apply(&mut policy);
    let both = ready.policy.considerations.iter().zip(policy.considerations.iter());
    let without = both.filter(|(was, is)| was.enabled && !is.enabled).map(|(it, _)| it.id.clone());
    let without = without.collect();
    let off = nothing_to_judge(&policy, &request.event, &mut report).map(str::to_owned);
    Switched { off, without }
}
