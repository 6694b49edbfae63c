//! Expressions that were read lately, with what became known of them: what is typed is asked for again as
//! a tree, and packs say the same of the same facts. Of one thread; what is forgotten is read again.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ptr;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use rhai::{Engine, Expr, Stmt};

use super::check::Typed;
use super::engine::{byte_offset, compile, sandbox};
use super::tree::Term;
use super::types::Names;
use super::{ScriptError, ScriptErrorKind};

/// An expression that was parsed.
pub(super) struct Familiar {
    /// It, as the engine has it.
    pub(super) expr: Expr,
    term: OnceCell<Option<Rc<Term>>>,
    /// How it was typed last, and by which names; they are not kept for it.
    typed: RefCell<Option<(Weak<Names>, Rc<Typed>)>>,
}

impl Familiar {
    /// It as a tree, which `make` makes of it.
    pub(super) fn term(&self, make: impl FnOnce(&Expr) -> Option<Term>) -> Option<Rc<Term>> {
        self.term.get_or_init(|| make(&self.expr).map(Rc::new)).clone()
    }

    /// How it is typed by these names, which `make` finds out.
    pub(super) fn typed(&self, names: &Arc<Names>, make: impl FnOnce(&Expr) -> Typed) -> Rc<Typed> {
        if let Some((by, known)) = &*self.typed.borrow()
            && ptr::eq(by.as_ptr(), Arc::as_ptr(names))
        {
            return Rc::clone(known);
        }
        let typed = Rc::new(make(&self.expr));
        *self.typed.borrow_mut() = Some((Arc::downgrade(names), Rc::clone(&typed)));
        typed
    }
}

/// Expressions remembered: what packs have in common is soon back among so few, and more would cost more memory
/// than time.
const FAMILIAR_MAX: usize = 64;

/// An expression, parsed now or lately.
///
/// # Errors
/// What keeps it from being read.
pub(super) fn read(text: &str) -> Result<Rc<Familiar>, ScriptError> {
    thread_local! {
        static FAMILIAR: RefCell<BTreeMap<String, Rc<Familiar>>> = RefCell::default();
    }
    if let Some(known) = FAMILIAR.with_borrow(|it| it.get(text).cloned()) {
        return Ok(known);
    }
    let (term, typed) = (OnceCell::new(), RefCell::default());
    let read = Rc::new(Familiar { expr: parse(text)?, term, typed });
    FAMILIAR.with_borrow_mut(|it| {
        if it.len() >= FAMILIAR_MAX {
            it.clear();
        }
        it.insert(text.to_owned(), Rc::clone(&read));
    });
    Ok(read)
}

fn parse(text: &str) -> Result<Expr, ScriptError> {
    thread_local! {
        /// One parser for all expressions of a pack: making one costs more than parsing with it.
        static PARSER: Engine = sandbox();
    }
    let ast = PARSER.with(|it| compile(it, text))?;
    let empty = || ScriptError {
        kind: ScriptErrorKind::Syntax,
        message: "an expression is missing".to_owned(),
        offset: Some(0),
    };
    match ast.statements() {
        [Stmt::Expr(expr)] => Ok((**expr).clone()),
        [Stmt::FnCall(call, position)] => Ok(Expr::FnCall(call.clone(), *position)),
        [] => Err(empty()),
        [other, ..] => Err(ScriptError {
            kind: ScriptErrorKind::Syntax,
            message: "only an expression is allowed here, no statement".to_owned(),
            offset: byte_offset(text, other.position()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::check;

    #[test]
    fn what_is_familiar_is_typed_by_the_names_at_hand() {
        let text = "session.type == \"RELEASE\"";
        let names = |type_: &str| {
            let session_types = [type_.to_owned()].into();
            Arc::new(Names { session_types, ..Names::default() })
        };
        for (by, faulty) in [("RELEASE", 0), ("OTHER", 1), ("RELEASE", 0)] {
            let by = names(by);
            for _ in 0..2 {
                assert_eq!(check::check_again(text, &by).findings.len(), faulty);
                assert_eq!(*check::check_again(text, &by), check::check(text, &by));
            }
        }
    }

    #[test]
    fn what_is_forgotten_is_read_again() {
        let tree = || Term::parse("files.count > 0").unwrap();
        let first = tree();
        assert!(Rc::ptr_eq(&first, &tree()));
        for number in 0..=FAMILIAR_MAX {
            read(&format!("files.count > {number}")).unwrap();
        }
        assert!(!Rc::ptr_eq(&first, &tree()));
        assert_eq!(first, tree());
    }
}
