//! Reports: what the program found, as text for people and data for tools.

pub mod diagnostics;
pub mod junit;
pub mod lint;
pub mod drawing;
pub mod mask;
pub mod outcome;
pub mod sarif;
