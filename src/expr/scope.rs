//! The values of the names of an expression in one evaluation.

use std::rc::Rc;

use rhai::{Dynamic, Scope};

use super::context::{Context, Object};
use super::globals::ROWS;
use super::members::find;
use super::record::Record;
use super::types::Type;

/// The values of names. Most expressions are evaluated without Rhai, so its scope is filled when Rhai needs it.
#[derive(Debug)]
pub(super) struct Globals {
    context: Option<Rc<Context>>,
    scope: Scope<'static>,
}

impl Globals {
    /// No names yet.
    pub(super) fn new() -> Self {
        Self { context: None, scope: Scope::new() }
    }

    /// One record under its own name, and nothing else.
    pub(super) fn of_record(record: Record) -> Self {
        let mut scope = Scope::new();
        scope.push(record.name.clone(), record);
        Self { context: None, scope }
    }

    /// The parts of another context.
    pub(super) fn turn_to(&mut self, context: Option<Rc<Context>>) {
        self.scope.clear();
        self.context = context;
    }

    /// The handle of a part of the context, by its name; `None` for a record.
    pub(super) fn handle(&self, name: &str) -> Option<Object> {
        let context = self.context.as_ref()?;
        let global = find(Type::Global, name)?.global?;
        Some(Object { context: Rc::clone(context), part: (global.part)() })
    }

    /// The value of a name.
    pub(super) fn value(&self, name: &str) -> Option<Dynamic> {
        self.handle(name).map(Dynamic::from).or_else(|| self.scope.get(name).cloned())
    }

    /// All names, for Rhai.
    pub(super) fn scope(&mut self) -> &mut Scope<'static> {
        if self.scope.is_empty() {
            for row in ROWS {
                if let Some(handle) = self.handle(row.name) {
                    self.scope.push(row.name, handle);
                }
            }
        }
        &mut self.scope
    }
}
