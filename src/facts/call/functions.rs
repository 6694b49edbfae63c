//! Functions and aliases that a line defines, as they are called: what they are given, which variables are
//! theirs alone, and whether one that calls itself starts processes without end.

use std::collections::BTreeMap;
use std::rc::Rc;

use tree_sitter::Node;

use super::Input;
use super::endless::{self, Chance};
use super::scan::{Output, Scanner, Scope};
use super::value::Text;

/// Calls of a function within itself that are followed.
const RECURSIONS_MAX: usize = 4;

/// A function, or an alias.
#[derive(Debug, Clone, Default)]
pub(super) struct Function {
    pub(super) body: Rc<str>,
    /// Whether it leaves jobs to themselves each time that it runs: `sleep 9 & f`.
    leaves_jobs: bool,
    /// What its name stood for before: an alias holds for the lines behind its own, and is not put in everywhere.
    before: Option<Rc<Self>>,
    /// Whether what has its name may be started in its place. An alias some shells put in where they run a text
    /// (`zsh -c`), others do not (`bash -c`); what a function is to a shell that is started depends on that
    /// shell, and on what was exported.
    pub(super) is_doubtful: bool,
}

/// The functions that run now, and those that nobody called.
#[derive(Debug, Default)]
pub(super) struct Functions {
    running: Vec<Running>,
    /// Functions that nobody called yet.
    uncalled: Vec<(String, Function)>,
    /// Variables that those which run have for themselves, with what they were before.
    locals: Vec<(String, Option<Vec<Text>>)>,
    /// What stands around the statement that is read now.
    around: Around,
}

/// A function that runs.
#[derive(Debug)]
struct Running {
    name: String,
    /// How many words it was given.
    given: usize,
    /// What stood around its call.
    around: Around,
    /// Whether it may come to its end before the statement that is read now.
    may_end: bool,
}

/// How many forms stand around a statement, by what they do with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Around {
    /// Those that may leave it out: branches, and loops over something that ends.
    conditions: usize,
    /// Those that leave it out: `if false`.
    bars: usize,
    /// Those that start a process for it: pipelines, subshells, jobs.
    processes: usize,
}

impl Functions {
    /// Counts the form that a statement is, where a function runs; what was counted before is put back with
    /// `leave`.
    pub(super) fn enter(&mut self, node: Node<'_>, source: &str) -> Around {
        let before = self.around;
        if !self.running.is_empty() {
            let chance = endless::chance(node, source);
            self.around.conditions += usize::from(chance == Chance::Maybe);
            self.around.bars += usize::from(chance == Chance::Never);
            self.around.processes += usize::from(endless::starts_process(node));
        }
        before
    }

    /// Puts back what stood around a statement.
    pub(super) const fn leave(&mut self, before: Around) {
        self.around = before;
    }

    /// Counts that what is read now runs in a process of its own, if it does; what was counted before is put back
    /// with `leave`.
    pub(super) fn enter_process_if(&mut self, is_one: bool) -> Around {
        let before = self.around;
        self.around.processes += usize::from(is_one);
        before
    }

    /// Notes that the function which runs may come to its end here: `[ "$1" = 0 ] && return`.
    pub(super) fn may_end(&mut self) {
        self.end(1);
    }

    /// Notes that all that run may come to their end here.
    pub(super) fn may_all_end(&mut self) {
        self.end(self.running.len());
    }

    /// Notes that as many of the last functions may come to their end; what runs in a process of its own ends
    /// that one alone.
    fn end(&mut self, count: usize) {
        let processes = self.around.processes;
        if self.around.bars > 0 {
            return;
        }
        for function in self.running.iter_mut().rev().take(count) {
            function.may_end |= function.around.processes == processes;
        }
    }

    /// Calls of a function that run within each other.
    fn depth(&self, name: &str) -> usize {
        self.running.iter().filter(|it| it.name == name).count()
    }

    /// Whether a function that was called within itself again and again comes here each time, and starts a process
    /// on its way.
    fn goes_on(&self, name: &str, leaves_jobs: bool) -> bool {
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

impl Scope {
    /// Notes an alias. What had its name before is looked at, too.
    pub(super) fn alias(&mut self, name: &str, body: &str) {
        let body = Rc::from(format!("{body} \"$@\""));
        let before = self.functions.remove(name).map(|it| Function { before: None, ..it });
        let before = before.map(Rc::new);
        let alias = Function { body, before, is_doubtful: true, ..Function::default() };
        self.functions.insert(name.to_owned(), alias);
    }
}

impl Scanner<'_> {
    /// Notes a function that the line defines.
    pub(super) fn define(
        &mut self,
        name: String,
        (body, leaves_jobs): (&str, bool),
        scope: &mut Scope,
    ) {
        let function = Function { body: Rc::from(body), leaves_jobs, ..Function::default() };
        scope.functions.insert(name.clone(), function.clone());
        if self.functions.running.is_empty() {
            self.functions.uncalled.push((name, function));
        }
    }

    /// Calls a function that the line defined, by the shell itself or by a program that it starts; nothing where
    /// there is none of that name, or where what has its name may be started in its place.
    pub(super) fn called(
        &mut self,
        words: &[Text],
        is_own: bool,
        scope: &mut Scope,
        input: &Input,
    ) -> Option<Output> {
        let (name, args) = words.split_first()?;
        let name = name.all()?;
        let function = scope.functions.get(name)?.clone();
        let is_doubtful = function.is_doubtful || !is_own;
        let calls = self.functions.depth(name);
        if is_doubtful && calls > 0 && !(is_own && scope.exported.contains(name)) {
            return None; // Its own name stands for the program within it.
        }
        // What is called with other words each time may come to its end.
        self.call.endless |=
            calls >= RECURSIONS_MAX && self.functions.goes_on(name, function.leaves_jobs);
        // Words that become fewer come to an end: `shift; f "$@"`.
        let last = self.functions.running.iter().rfind(|it| it.name == name);
        if calls >= RECURSIONS_MAX && last.is_some_and(|it| args.len() >= it.given) {
            return Some(Output::default());
        }
        self.functions.uncalled.retain(|(it, _)| it != name);
        let own_words = scope.parameters.replace(args.to_vec());
        let own = self.functions.locals.len();
        let around = self.functions.around;
        let (name, given) = (name.to_owned(), args.len());
        self.functions.running.push(Running { name, given, around, may_end: false });
        let mut output = self.body(&function.body, scope, input);
        if let Some(before) = &function.before {
            scope.parameters = Some(args.to_vec());
            output = self.body(&before.body, scope, input);
        }
        self.functions.running.pop();
        scope.parameters = own_words;
        for (name, value) in self.functions.locals.split_off(own).into_iter().rev() {
            match value {
                Some(value) => scope.variables.insert(name, value),
                None => scope.variables.remove(&name),
            };
        }
        Some(output).filter(|_| !is_doubtful)
    }

    /// Notes what a variable is before a function has one of that name for itself.
    pub(super) fn made_local(&mut self, name: &str, scope: &Scope) {
        if !self.functions.running.is_empty() {
            self.functions.locals.push((name.to_owned(), scope.variables.get(name).cloned()));
        }
    }

    /// Reads the functions that nobody called here: they may be called elsewhere.
    pub(super) fn uncalled(&mut self, scope: &Scope) {
        let uncalled = std::mem::take(&mut self.functions.uncalled);
        if uncalled.is_empty() {
            return;
        }
        let mut scope = scope.clone();
        (scope.functions, scope.parameters) = (BTreeMap::new(), None);
        for (_, function) in uncalled {
            if self.is_spent() {
                return;
            }
            self.body(&function.body, &mut scope.clone(), &Input::default());
        }
    }
}
