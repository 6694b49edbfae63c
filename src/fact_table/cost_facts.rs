//! Facts about what was spent today, in all sessions.

use rhai::Dynamic;

use super::FactError;
use super::context::Object;
use super::context_facts::NANO_PER_CENT;
use super::dynamic::count;
use super::row::{FactRow, number};
pub use super::snapshots::CostSnapshot;
use super::types::{Evidence::Structure, Subject, Unit};

/// Rows of `costs`.
pub(super) const ROWS: &[FactRow] = &[
    number(
        Subject::Costs,
        "today_cents",
        Unit::Cents,
        Structure,
        [
            "What the sessions of this project spent today, in US cents, by the clock of this machine. Only sessions count whose rules read costs.",
            "costs.today_cents > 5000",
        ],
        |it, _| cents(it, |it| it.project_nano),
    ),
    number(
        Subject::Costs,
        "by_user_today_cents",
        Unit::Cents,
        Structure,
        [
            "The same for all projects of the user on this machine.",
            "costs.by_user_today_cents > 20000",
        ],
        |it, _| cents(it, |it| it.user_nano),
    ),
];

/// The sum of the others, and what this session spent until now.
fn cents(it: &Object, others: fn(&CostSnapshot) -> u64) -> Result<Dynamic, FactError> {
    let Some(costs) = &it.view.stores.costs else {
        return Err(match it.context().recorded {
            true => it.context().miss("what was spent that day"),
            false => "what was spent today cannot be read".into(),
        });
    };
    let total = it.view.usage.as_deref().map_or(0, |it| it.cost_nano);
    let own = costs.own_before_nano.map_or(0, |before| total.saturating_sub(before));
    Ok(count(others(costs).saturating_add(own) / NANO_PER_CENT))
}
