//! What `run.yaml` means: how an agent's command is supervised.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Expression;
use crate::state::run::Limits;

/// `run.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunPolicy {
    /// What may not be exceeded.
    pub limits: Limits,
    /// Longest time of one turn.
    pub deadline: Duration,
    /// Longest time without any output.
    pub silence: Duration,
    /// Time it has to end when it is told to.
    pub grace: Duration,
    /// The breaker that is asked before each turn; a template over `run`.
    pub breaker: String,
    /// How an agent says that it is done.
    pub claims: Vec<String>,
    /// Runs whose files are kept.
    pub keep: usize,
    /// What the agent is told, in order.
    pub prompt: Vec<Section>,
}

/// A part of the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Its name.
    pub id: String,
    /// Holds where it is said; empty for always.
    pub when: Expression,
    /// A template over `run`.
    pub text: String,
}

impl RunPolicy {
    /// Whether an agent may say in this way that it is done.
    #[must_use]
    pub fn takes_claim(&self, way: &str) -> bool {
        self.claims.iter().any(|it| it == way)
    }
}
