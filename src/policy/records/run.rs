//! What the texts of `run.yaml` speak of: a run that is about to begin a turn.

use std::sync::{Arc, LazyLock};

use super::fields::{number, only, or_none, text};
use policyd_fact_table::types::{Names, Unit};
use policyd_state::run::health::HealthVerdict;

/// A run before a turn.
pub static RUN: LazyLock<Arc<Names>> = LazyLock::new(|| {
    only(
        "run",
        vec![
            text("id", "Id of the run."),
            text("goal", "What is to be reached."),
            text("program", "Name of the command's program, without its folder."),
            text("policyd", "This program as a shell starts it, by its absolute path."),
            number("iteration", "Number of the turn, from 1, over all sessions.").from_one(),
            number("iterations_max", "Turns that are allowed."),
            number("session", "Number of the session, from 1.").from_one(),
            number("attempt", "Attempts at this turn that failed already."),
            text("summary", "What the session before left; empty where there was none."),
            text("human", "What humans said since the last turn, else empty."),
            text("feedback", "What the gate said to the last claim, else empty."),
            text("error", "What the last turn failed with, else empty."),
            number("health", "How it is doing, of 100; 100 before the first turn.")
                .of_unit(Unit::PercentOfWhole),
            text("verdict", "What that says; empty before.")
                .of_values(&or_none(HealthVerdict::NAMES)),
            text("stuck", "Why the run seems stuck, else empty."),
        ],
    )
});
