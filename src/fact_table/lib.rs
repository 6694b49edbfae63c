//! The table of facts: what expressions can read, each fact with its type, documentation, and example.
//! Contains: one file for each subject, such as `work_facts`; `globals`, the names that an expression begins with;
//! `members`, which finds a row; `context`, the values; `names`, what a pack defines.
//! Does not contain: the language (the crate `policyd-expr`), files, clocks, what a rule means.
//!
//! ```
//! use policyd_fact_table::members::global_subject;
//!
//! assert!(global_subject("todos.open").is_some()); // a fact
//! assert!(global_subject("nothing.known").is_none());
//! ```

pub mod breaker_facts;
pub mod call_facts;
pub mod clock_facts;
pub mod code_owners;
mod containment;
pub mod context;
pub mod context_facts;
pub mod cost_facts;
mod diagnostic_lines;
pub mod events;
pub mod excuse_facts;
mod fact_source;
mod file_facts;
mod globals;
mod handle;
mod invariant;
mod json_facts;
mod json_paths;
pub mod members;
mod memory_facts;
mod names;
mod pack_facts;
mod params;
pub mod paths;
pub mod place_facts;
pub mod program_facts;
pub mod project_facts;
pub mod queue_facts;
mod rationalization_matcher;
pub mod relations;
pub mod remembered_facts;
pub mod reply;
mod row;
mod session_facts;
pub mod signal_facts;
mod snapshots;
pub mod subject;
pub mod text_facts;
mod time_zones;
pub mod wider;
pub mod work_facts;

pub use handle::FactEvaluator;
pub use policyd_expr::{
    ExprSource, FactError, ScriptError, ScriptErrorKind, Value, ast, check, compiled, completion,
    marks, parts, pattern, prose, record, spacing, template, watch, words,
};
use policyd_expr::{dynamic, text_list};

/// Where the values of facts come from, and which facts are known when an expression is evaluated.
pub mod source {
    pub use super::fact_source::{EvaluationPhase, FactSource, FactSources};
    pub use super::members::source;
}

/// Types of expressions, and the names that a pack defines.
pub mod types {
    pub use policyd_expr::types::{Domain, Evidence, NameClass, TextForm, TextMatch, Type, Unit};

    pub use super::names::Names;
    pub use super::subject::{PackName, Subject};
}
