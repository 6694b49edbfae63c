//! The values of the names of an expression in one evaluation.

use std::rc::Rc;

use rhai::{Dynamic, Scope};

use super::record::FactRecord;
use super::table::Handle;
use super::types::Type;

/// The values of names. Most expressions are evaluated without Rhai, so its scope is filled when Rhai needs it.
#[derive(Debug)]
pub(super) struct Globals<H: Handle> {
    context: Option<Rc<H::Context>>,
    scope: Scope<'static>,
}

impl<H: Handle> Globals<H> {
    /// No names yet.
    pub(super) fn new() -> Self {
        Self { context: None, scope: Scope::new() }
    }

    /// One record under its own name, and nothing else.
    pub(super) fn of_record(record: FactRecord) -> Self {
        let mut scope = Scope::new();
        scope.push(record.name.clone(), record);
        Self { context: None, scope }
    }

    /// The parts of another context.
    pub(super) fn turn_to(&mut self, context: Option<Rc<H::Context>>) {
        self.scope.clear();
        self.context = context;
    }

    /// Changes the context. A handle that is still held keeps the context as it was.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut H::Context)) {
        self.scope.clear();
        if let Some(context) = &mut self.context {
            change(Rc::make_mut(context));
        }
    }

    /// The handle of a part of the context, by its name; `None` for a record.
    pub(super) fn handle(&self, name: &str) -> Option<H> {
        H::of_global(self.context.as_ref()?, name)
    }

    /// The value of a name.
    pub(super) fn value(&self, name: &str) -> Option<Dynamic> {
        self.handle(name).map(Dynamic::from).or_else(|| self.scope.get(name).cloned())
    }

    /// All names, for Rhai.
    pub(super) fn scope(&mut self) -> &mut Scope<'static> {
        if self.scope.is_empty() {
            for row in H::TABLE.rows().filter(|it| it.owner == Type::Global) {
                if let Some(handle) = self.handle(row.name) {
                    self.scope.push(row.name, handle);
                }
            }
        }
        &mut self.scope
    }
}
