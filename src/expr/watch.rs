//! Records the values of expressions, to measure which rules the cases cover.
//!
//! A text of a policy is identified by its address, which is unique while the policy is loaded. So equal texts in two
//! rules are two texts, and rules need no identifier here.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::ScriptError;
use super::ast::{Expr, Join};
use super::value::Value;

/// Which of the two values was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ways {
    /// It was true.
    pub held: bool,
    /// It was false.
    pub failed: bool,
}

impl Ways {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { held: self.held || other.held, failed: self.failed || other.failed }
    }
}

/// The recorder of expression values. `None` unless coverage is measured.
pub type CoverageWatch<'w> = Option<&'w Rc<CoverageRecorder>>;

/// Takes note of every expression that is evaluated and of every template that is rendered.
#[derive(Debug, Default)]
pub struct CoverageRecorder {
    /// By the address of the expression, and first and last byte of the part in it.
    parts: RefCell<BTreeMap<(usize, usize, usize), Ways>>,
    rendered: RefCell<BTreeSet<usize>>,
    /// Trees of the recorded expressions, by their texts.
    trees: RefCell<BTreeMap<String, Rc<Expr>>>,
}

impl CoverageRecorder {
    /// Takes note of a condition: its value, and that of every operand that was reached. `value`
    /// evaluates an operand alone.
    pub(super) fn evaluated(
        &self,
        text: &str,
        whole: &Result<Value, ScriptError>,
        mut value: impl FnMut(&str) -> Result<Value, ScriptError>,
    ) {
        if matches!(whole, Ok(Value::Bool(_))) {
            self.reached(text, &self.tree(text), &mut value);
        }
    }

    fn tree(&self, text: &str) -> Rc<Expr> {
        let mut trees = self.trees.borrow_mut();
        let tree = trees.entry(text.to_owned()).or_insert_with(|| Rc::new(Expr::of_text(text)));
        Rc::clone(tree)
    }

    /// The value of a part, noted with those of its operands as far as they are reached.
    fn reached(
        &self,
        text: &str,
        part: &Expr,
        value: &mut dyn FnMut(&str) -> Result<Value, ScriptError>,
    ) -> Option<bool> {
        if let Some((join, operands)) = part.operands() {
            for operand in operands {
                if self.reached(text, operand, value)? == (join == Join::Or) {
                    break;
                }
            }
        }
        let Ok(Value::Bool(found)) = value(text.get(part.range.clone())?) else { return None };
        let mut parts = self.parts.borrow_mut();
        let known = parts.entry(key(text, part)).or_default();
        *known = known.and(Ways { held: found, failed: !found });
        Some(found)
    }

    /// Takes note of a template.
    pub(super) fn rendered(&self, template: &str) {
        self.rendered.borrow_mut().insert(address(template));
    }

    /// Adds the recorded values of another recorder.
    pub fn absorb(&self, other: &Self) {
        let mut parts = self.parts.borrow_mut();
        for (key, ways) in other.parts.borrow().iter() {
            let known = parts.entry(*key).or_default();
            *known = known.and(*ways);
        }
        self.rendered.borrow_mut().extend(other.rendered.borrow().iter());
    }

    /// What a part of this very expression was.
    #[must_use]
    pub fn ways(&self, text: &str, part: &Expr) -> Ways {
        self.parts.borrow().get(&key(text, part)).copied().unwrap_or_default()
    }

    /// Whether this very template was rendered.
    #[must_use]
    pub fn was_rendered(&self, template: &str) -> bool {
        self.rendered.borrow().contains(&address(template))
    }
}

fn key(text: &str, part: &Expr) -> (usize, usize, usize) {
    (address(text), part.range.start, part.range.end)
}

fn address(text: &str) -> usize {
    text.as_ptr().addr()
}
