//! Kinds of values that several maps of a case have.

use policyd_yaml::shape::Kind;

pub(super) const TEXTS: Kind = Kind::List(&Kind::Text);
pub(super) const COUNT: Kind = Kind::Int { min: 0, max: 1_000_000_000 };
