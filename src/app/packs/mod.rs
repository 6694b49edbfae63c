//! Packs for those who write and publish them: what they contain, trials of one rule, and downloads. Hooks read packs
//! with the crate `policyd-packs`.

pub(crate) mod learned;
pub(crate) mod places;
pub(crate) mod remote;
pub(crate) mod rule_text;
pub(crate) mod trial_rule;

pub(crate) use policyd_packs::*;
