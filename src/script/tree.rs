//! The names that lint uses for the tree of an expression.

pub use super::ast::{Expr as Term, ExprKind as Form, Relation};
