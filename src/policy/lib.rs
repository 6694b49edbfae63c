//! The policy of a pack: all rules, with resolved names and typed expressions.
//!
//! Each file of a pack has a module with its values, its keys, and its construction. `shapes` lists the files,
//! `layering` puts packs over each other, and `load` and `review` build policies.
//!
//! Contains: packs as values, and the built-in pack. Does not contain: the search for packs (`policyd-packs`), and decisions.
//!
//! ```
//! use policyd_policy::{builtin, load};
//!
//! let pack = builtin::pack();
//! let loaded = load::load(&pack, &pack);
//! assert!(loaded.policy.is_some());
//! ```

pub mod approval;
pub mod breakers;
mod build;
mod builder;
pub mod builtin;
mod considerations;
pub mod context;
pub mod exemptions;
mod expression;
pub mod failures;
pub mod field_value;
mod fields;
pub mod guards;
mod layering;
pub mod layers;
pub mod load;
mod manifest;
mod memory;
mod messages;
mod pack;
pub mod pack_list;
mod parse;
mod policy;
mod probes;
pub mod rationalizations;
pub mod record;
pub mod records;
pub mod remote;
mod remote_pack;
pub mod requests;
pub mod resilience;
pub mod review;
pub mod run;
pub mod shapes;
mod shared;
pub mod signals;
pub mod tables;
mod tool_vocabulary;
mod vocabulary;

pub use breakers::{LoadTier, Route};
pub use considerations::{Check, CheckBody, CheckDefinition, Mode, SessionType, Severity};
pub use expression::{Choice, Expression, MessageChoice, SourceLocation};
pub use manifest::{
    Durability, EnforcementMode, LayoutName, ManifestSettings, OnError, OnSaveFailure, Paths,
};
pub use pack::Pack;
pub use policy::Policy;
pub use probes::{AskedNames, Parse, Preference, Probe};
