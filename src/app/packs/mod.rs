//! Packs for those who write and publish them: what they contain, trials of one rule, changes of files, and downloads.
//! Hooks read packs with the crate `policyd-packs`.

pub mod changed_rules;
pub mod learned;
pub mod pack_change;
pub mod places;
pub mod remote;
pub mod rule_addition;
pub mod rule_change;
mod rule_entry;
pub mod rule_text;
pub mod trial_rule;

pub use policyd_packs::*;
