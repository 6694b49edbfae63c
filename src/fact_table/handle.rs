//! How the evaluator reads the parts of a context: each name is looked up in the table of facts.

use std::rc::Rc;

use policyd_expr::table::{FactTable, Handle};
use rhai::Dynamic;

use super::context::{FactView, Object};
use super::names::TableOfFacts;
use super::{FactError, globals, members};

/// Evaluates expressions against one context.
pub type FactEvaluator = policyd_expr::Evaluator<Object>;

impl Handle for Object {
    type Context = FactView;

    const TABLE: &'static dyn FactTable = &TableOfFacts;

    fn of_global(view: &Rc<FactView>, name: &str) -> Option<Self> {
        let part = (members::global(name)?.global?.part)();
        Some(Self { view: Rc::clone(view), part })
    }

    fn can_change(expression: &str) -> bool {
        globals::can_change(expression)
    }

    fn value(&self, name: &str, arguments: &[Dynamic]) -> Result<Dynamic, FactError> {
        members::value(self, name, arguments)
    }

    fn call(&self, name: &str, arguments: &[Dynamic]) -> Result<Dynamic, FactError> {
        members::call(self, name, arguments)
    }
}
