//! The scanner of a command line: its state and its limits, and the values and paths that it looks up.
//!
//! Does not contain: the walk over the syntax tree (`statements`).

use super::analysis_context::AnalysisContext;
use super::effect_set::CallEffects;
use super::function_table::FunctionTable;
use super::heredoc::Heredocs;
use super::invocation::Invocation;
use super::paths::{CallEnvironment, ResolvedPath, follow_links};
use super::scripts::ScriptRun;
use super::shell_state::ShellState;
use super::shell_text::ShellText;
use super::tool_call::Call;
use crate::limits::{
    CALL_PROGRAMS_MAX, CALL_STEP_BYTES, CALL_STEPS_MAX, SCRIPT_TEXT_MAX, SHELL_NESTING_MAX,
    SHELL_TEXT_MAX,
};

/// Files that one call runs, and those that they run.
const SCRIPTS_MAX: usize = 32;
/// Bytes of these files.
const SCRIPTS_BYTES_MAX: usize = 1024 * 1024;

/// Levels of nodes in a word without special characters, at most.
const WORD_LEVELS: usize = 4;

/// The walk over the syntax tree of a command line and of all shell text that it runs.
pub(super) struct Scanner<'a> {
    pub(super) call: &'a mut Call,
    pub(super) context: AnalysisContext<'a>,
    pub(super) text_depth: usize,
    /// Programs that start the current text: `su` for `su -c 'npm test'`.
    pub(super) starters: Vec<String>,
    /// Levels of nesting around the current node, see [`Scanner::enter`].
    pub(super) nesting: usize,
    pub(super) functions: FunctionTable,
    /// Steps taken so far, at most `CALL_STEPS_MAX`.
    pub(super) steps: usize,
    /// End of the last endless loop, as a byte offset in the current text.
    pub(super) loop_end: usize,
    /// Texts that run when the line ends: `trap … EXIT`.
    pub(super) at_the_end: Vec<String>,
    /// Bodies of here-documents that were removed before parsing.
    pub(super) heredocs: Heredocs,
    /// Whether the current text contains unknown values, as written in the source.
    pub(super) as_written: bool,
    /// Loops around the current statement whose number of rounds is unknown.
    pub(super) loops: usize,
    /// Files that run now, outermost first.
    pub(super) running: Vec<ScriptRun>,
    /// Files that may still be analyzed.
    pub(super) scripts_left: ScriptBudget,
    /// The depth of the text of a file. `None` if the text does not come from a file.
    pub(super) lines_of: Option<usize>,
    /// The current line of that file.
    pub(super) line: usize,
    /// The line of each program.
    pub(super) lines: Vec<usize>,
}

/// What may still be analyzed of the files that a call runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScriptBudget {
    pub(super) files: usize,
    pub(super) bytes: usize,
}

impl<'a> Scanner<'a> {
    /// Begins the analysis of a line or of a file.
    pub(super) fn new(call: &'a mut Call, context: AnalysisContext<'a>) -> Self {
        Self {
            call,
            context,
            text_depth: 0,
            starters: Vec::new(),
            nesting: 0,
            functions: FunctionTable::default(),
            steps: 0,
            loop_end: 0,
            at_the_end: Vec::new(),
            heredocs: Heredocs::default(),
            as_written: false,
            loops: 0,
            running: Vec::new(),
            scripts_left: ScriptBudget { files: SCRIPTS_MAX, bytes: SCRIPTS_BYTES_MAX },
            lines_of: None,
            line: 0,
            lines: Vec::new(),
        }
    }
}

impl Scanner<'_> {
    /// Enters one level of nesting. Each function that can call itself over the text of an agent does this, so
    /// that no text exhausts the stack. Returns false at the limit: the caller then returns without
    /// [`leave`](Self::leave).
    pub(super) fn enter(&mut self) -> bool {
        if self.nesting >= SHELL_NESTING_MAX {
            self.mark_over_limit("it is nested too deeply or too long");
            return false;
        }
        self.nesting += 1;
        true
    }

    /// Returns the bytes of a text that is read, of a command line or of a file.
    pub(super) const fn text_max(&self) -> usize {
        if self.running.is_empty() { SHELL_TEXT_MAX } else { SCRIPT_TEXT_MAX }
    }

    /// Returns whether the nodes of one word could reach the limit.
    pub(super) const fn is_near_limit(&self) -> bool {
        self.nesting + WORD_LEVELS >= SHELL_NESTING_MAX
    }

    /// Leaves the level that [`enter`](Self::enter) entered.
    pub(super) const fn leave(&mut self) {
        self.nesting -= 1;
    }

    /// Records that a part was not understood.
    pub(super) fn mark_not_understood(&mut self, why: &str) {
        self.call.mark_not_understood(why);
    }

    /// Records that a part was not scanned because it exceeds a limit.
    pub(super) fn mark_over_limit(&mut self, why: &str) {
        self.call.over(why);
    }

    /// Counts one statement, or one text of that many bytes. Returns whether the scan may continue.
    /// After the limit is reached, the whole scan ends.
    pub(super) fn spend_steps(&mut self, bytes: usize) -> bool {
        self.steps = self.steps.saturating_add(1 + bytes / CALL_STEP_BYTES);
        if self.is_spent() {
            self.mark_over_limit("it does very much, its loops counted");
        }
        !self.is_spent()
    }

    /// Returns whether the limit of steps is reached.
    pub(super) const fn is_spent(&self) -> bool {
        self.steps >= CALL_STEPS_MAX
    }

    /// Returns the effects that follow from the names of a program and its wrappers.
    fn effects_by_name(&self, program: &Invocation) -> CallEffects {
        let lens = self.context.lens;
        let is_client = lens.database_clients().named(&program.name).next().is_some();
        let wrappers = lens.wrappers();
        let gets_packages =
            program.wrappers.iter().any(|it| wrappers.named(it).any(|row| row.gets_packages));
        let of = |it: bool, effect| if it { effect } else { CallEffects::default() };
        of(is_client, CallEffects::QUERY).union(of(gets_packages, CallEffects::PACKAGE))
    }

    /// Adds a program. Returns its index, or `None` at the limit.
    pub(super) fn add_program(&mut self, program: Invocation) -> Option<usize> {
        let effects = program.effects.union(self.effects_by_name(&program));
        let program = Invocation { repeated: self.loops > 0, effects, ..program };
        // A loop starts the same program several times; one entry is enough.
        if let Some(at) = self.call.programs.iter().position(|it| *it == program) {
            return Some(at);
        }
        let at = self.call.programs.len();
        if at >= CALL_PROGRAMS_MAX {
            self.mark_over_limit("it starts very many programs");
            self.steps = CALL_STEPS_MAX;
            return None;
        }
        self.call.programs.push(program);
        self.lines.push(self.line);
        self.feed_consumers(at);
        Some(at)
    }

    /// Returns the values of a variable, or one unknown value that stays as `written`.
    pub(super) fn variable_values(
        &mut self,
        name: &str,
        written: &str,
        scope: &ShellState,
    ) -> Vec<ShellText> {
        let found = self.known_values(name, scope).filter(|found| {
            // A value may contain itself repeatedly, so its length counts as steps.
            found.iter().all(|it| self.spend_steps(it.text.len()))
        });
        found.unwrap_or_else(|| vec![ShellText::unknown(written)])
    }

    /// Returns the values of a variable if they are known.
    pub(super) fn known_values(&self, name: &str, scope: &ShellState) -> Option<Vec<ShellText>> {
        let home = &self.context.around.home;
        let found = self.stored_values(name, scope)?;
        Some(found.into_iter().map(|it| it.with_home(home)).collect())
    }

    fn stored_values(&self, name: &str, scope: &ShellState) -> Option<Vec<ShellText>> {
        if let Some(values) = scope.variables.get(name) {
            return Some(values.clone());
        }
        let around = self.context.around;
        let given = |it: &str| Some(vec![ShellText::known(it)]);
        match name {
            "HOME" if !around.home.is_empty() => given(&around.home),
            "USERPROFILE" if around.has_backslashes && !around.home.is_empty() => {
                given(&around.home)
            }
            // Whatever shell this is, it reads the same text.
            "SHELL" | "BASH" => given("bash"),
            "PWD" => {
                let own = scope.folder.path.iter().chain(&scope.folder.others);
                Some(own.map(ShellText::known).collect()).filter(|_| scope.folder.path.is_some())
            }
            "TMPDIR" | "TMP" | "TEMP" => {
                let own = around.temporary.get(CallEnvironment::TEMPORARY.len());
                given(own.or(around.temporary.first())?)
            }
            "IFS" => given(" \t\n"),
            // In text with unknown values, a positional parameter may be one of another shell.
            name if self.as_written
                && !name.starts_with(|c: char| c.is_alphabetic() || c == '_') =>
            {
                None
            }
            "@" | "*" => scope.parameters.clone(),
            "#" => given(&scope.parameters.as_ref()?.len().to_string()),
            _ => {
                // `$0` is known only if the shell was given a name; then it is stored as a
                // variable.
                let at = name.parse::<usize>().ok()?.checked_sub(1)?;
                let found = scope.parameters.as_ref()?.get(at);
                Some(found.cloned().into_iter().collect())
            }
        }
    }

    /// Resolves a path from the working directory of the shell.
    pub(super) fn resolve_path(&self, path: &ShellText, scope: &ShellState) -> ResolvedPath {
        self.resolve_from(path, scope.folder.path.as_deref(), scope)
    }

    /// Resolves a path from a directory. A path in a container becomes one of this machine.
    pub(super) fn resolve_from(
        &self,
        path: &ShellText,
        folder: Option<&str>,
        scope: &ShellState,
    ) -> ResolvedPath {
        let place = self.resolve_here(path, folder, scope);
        let absolute = place.absolute.and_then(|it| match &scope.container {
            Some(mounts) => mounts.host(&it),
            None => Some(it),
        });
        ResolvedPath { absolute, ..place }
    }

    /// Resolves a path from a directory as the shell itself names it.
    pub(super) fn resolve_here(
        &self,
        path: &ShellText,
        folder: Option<&str>,
        scope: &ShellState,
    ) -> ResolvedPath {
        let place = self.context.around.place(path, folder);
        let absolute = place.absolute.and_then(|it| follow_links(it, &scope.links));
        ResolvedPath { absolute, ..place }
    }
}
