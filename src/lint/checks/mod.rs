//! The checks, by what they look at. A check adds what it finds; it never stops another one.

pub(super) mod breakers;
pub(super) mod cases;
pub(super) mod clients;
pub(super) mod events;
pub(super) mod expressions;
pub(super) mod failures;
pub(super) mod guards;
pub(super) mod hygiene;
pub(super) mod identity;
pub(super) mod messages;
pub(super) mod names;
pub(super) mod numbers;
pub(super) mod odds;
pub(super) mod patterns;
pub(super) mod probes;
pub(super) mod programs;
pub(super) mod rules;
pub(super) mod safety;
pub(super) mod structure;
pub(super) mod supervision;
pub(super) mod tables;
pub(super) mod terms;
pub(super) mod tools;
pub(super) mod vocabulary;
