//! The functions of a command line that run now, and those that were never called.

use tree_sitter::Node;

use super::endless::{self, Likelihood};
use super::shell_state::ShellFunction;
use super::shell_text::ShellText;

/// The calls of functions that run now, and the functions that were never called.
#[derive(Debug, Default)]
pub(super) struct FunctionTable {
    pub(super) running: Vec<RunningFunction>,
    /// Functions without a call.
    pub(super) uncalled: Vec<(String, ShellFunction)>,
    /// Local variables of the running functions, with the values to restore.
    pub(super) locals: Vec<(String, Option<Vec<ShellText>>)>,
    /// Control flow around the current statement.
    pub(super) around: ControlFlowDepth,
}

/// A call of a function that runs now.
#[derive(Debug)]
pub(super) struct RunningFunction {
    pub(super) name: String,
    /// Number of arguments of the call.
    pub(super) given: usize,
    /// Control flow around the call.
    pub(super) around: ControlFlowDepth,
    /// Whether the function may return before the current statement.
    pub(super) may_end: bool,
}

/// The number of control structures around a statement, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ControlFlowDepth {
    /// Structures that may skip the statement: branches, and loops that end.
    conditions: usize,
    /// Structures that always skip the statement: `if false`.
    bars: usize,
    /// Structures that run the statement in another process: pipelines, subshells, jobs.
    processes: usize,
}

impl FunctionTable {
    /// Counts the control structure of a statement while a function runs. Returns the value for
    /// [`leave`](Self::leave).
    pub(super) fn enter(&mut self, node: Node<'_>, source: &str) -> ControlFlowDepth {
        let before = self.around;
        if !self.running.is_empty() {
            let chance = endless::chance(node, source);
            self.around.conditions += usize::from(chance == Likelihood::Maybe);
            self.around.bars += usize::from(chance == Likelihood::Never);
            self.around.processes += usize::from(endless::starts_process(node));
        }
        before
    }

    /// Restores the control flow that [`enter`](Self::enter) returned.
    pub(super) const fn leave(&mut self, before: ControlFlowDepth) {
        self.around = before;
    }

    /// Counts a process around the following text if `is_one`. Returns the value for
    /// [`leave`](Self::leave).
    pub(super) fn enter_process_if(&mut self, is_one: bool) -> ControlFlowDepth {
        let before = self.around;
        self.around.processes += usize::from(is_one);
        before
    }

    /// Records that the running function may return here: `[ "$1" = 0 ] && return`.
    pub(super) fn may_end(&mut self) {
        self.end(1);
    }

    /// Records that all running functions may end here: `exit`.
    pub(super) fn may_all_end(&mut self) {
        self.end(self.running.len());
    }

    /// Records that the last `count` functions may end. A statement in a subshell ends only the
    /// subshell.
    fn end(&mut self, count: usize) {
        let processes = self.around.processes;
        if self.around.bars > 0 {
            return;
        }
        for function in self.running.iter_mut().rev().take(count) {
            function.may_end |= function.around.processes == processes;
        }
    }

    /// Returns how many calls of a function run within each other.
    pub(super) fn depth(&self, name: &str) -> usize {
        self.running.iter().filter(|it| it.name == name).count()
    }

    /// Returns whether a recursive function reaches this call every time, and starts a process on
    /// the way.
    pub(super) fn goes_on(&self, name: &str, leaves_jobs: bool) -> bool {
        let last = self.running.iter().rposition(|it| it.name == name);
        let within = last.and_then(|at| self.running.get(at..)).unwrap_or_default();
        within.first().is_some_and(|it| {
            it.around.conditions == self.around.conditions
                && self.around.bars == 0
                && (leaves_jobs || it.around.processes < self.around.processes)
                && within.iter().all(|it| !it.may_end)
        })
    }
}
