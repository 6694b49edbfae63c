//! The walk over a command line that puts together what it would start. Lives here: what the walk
//! carries with it, variables, functions, the folder. `statements` has the forms of the grammar.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::{Node, Tree};

use super::super::shell::{syntax, word};
use super::functions::{Function, Functions};
use super::heredoc::Heredocs;
use super::place::{Place, followed};
use super::value::Text;
use super::{Call, Input, Invocation, Reading};
use crate::limits::{
    CALL_PROGRAMS_MAX, CALL_STEP_BYTES, CALL_STEPS_MAX, SHELL_DEPTH_MAX, SHELL_TEXT_MAX,
};

/// Variables that every process is handed.
const OF_SURROUNDINGS: [&str; 9] =
    ["HOME", "PATH", "PWD", "SHELL", "USER", "TMPDIR", "TMP", "TEMP", "LANG"];

/// Reads a command line into a call.
pub(super) fn scan(call: &mut Call, text: &str, reading: Reading<'_>) {
    let folder = reading.around.folder.clone();
    let mut scope = Scope { folder: Some(folder).filter(|it| !it.is_empty()), ..Scope::default() };
    let mut scanner = Scanner {
        call,
        reading,
        text_depth: 0,
        starters: Vec::new(),
        nesting: 0,
        functions: Functions::default(),
        steps: 0,
        loop_end: 0,
        at_the_end: Vec::new(),
        heredocs: Heredocs::default(),
        as_written: false,
    };
    scanner.text(text, &mut scope, &Input::default());
    for text in std::mem::take(&mut scanner.at_the_end) {
        scanner.text(&text, &mut scope.clone(), &Input::default());
    }
    scanner.uncalled(&scope);
}

/// What a shell knows at one place.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    /// Values of variables; several for a list, none for one that was taken away.
    pub(super) variables: BTreeMap<String, Vec<Text>>,
    /// Names of those that the line hands to the programs it starts.
    pub(super) exported: BTreeSet<String>,
    /// Its folder, where that is known.
    pub(super) folder: Option<String>,
    /// Functions and aliases.
    pub(super) functions: BTreeMap<String, Function>,
    /// What a function was given; nothing, where that is not known.
    pub(super) parameters: Option<Vec<Text>>,
    /// What was written into files, by where they lie.
    pub(super) files: BTreeMap<String, Input>,
    /// Where symbolic links lead that were made.
    pub(super) links: BTreeMap<String, String>,
}

impl Scope {
    /// What another shell knows that is started: of the variables those that it is handed; the others are what
    /// they were in the surroundings. Which functions it knows is its own affair.
    pub(super) fn of_a_process(&self) -> Self {
        let mut inner = self.clone();
        let is_handed =
            |name: &str| self.exported.contains(name) || OF_SURROUNDINGS.contains(&name);
        inner.variables.retain(|name, _| is_handed(name));
        inner.functions.values_mut().for_each(|it| it.is_doubtful = true);
        inner.parameters = Some(Vec::new());
        inner
    }

    /// Notes that a variable is set to what cannot be known.
    pub(super) fn forget(&mut self, name: &str) {
        self.variables.insert(name.to_owned(), vec![Text::unknown(format!("${name}"))]);
    }

    /// Notes that a text was run which is not known here: it was run to set something, as likely as not what
    /// was empty before.
    pub(super) fn forget_empty(&mut self) {
        for (name, values) in &mut self.variables {
            if values.iter().all(|it| it.all() == Some("")) {
                *values = vec![Text::unknown(format!("${name}"))];
            }
        }
    }

    /// Exchanges variables for what they were before; those that were not known are known to nobody.
    pub(super) fn swap(&mut self, variables: &mut Vec<(String, Vec<Text>)>) {
        let mut before = Vec::new();
        for (name, values) in variables.drain(..) {
            let own = self.variables.remove(&name);
            before.push((name.clone(), own.unwrap_or_default()));
            if !values.is_empty() {
                self.variables.insert(name, values);
            }
        }
        *variables = before;
    }
}

/// What a statement would write to its standard output.
#[derive(Debug, Clone, Default)]
pub(super) struct Output {
    /// The text, where it is known.
    pub(super) text: Option<String>,
    /// Programs that write it.
    pub(super) from: Vec<usize>,
    /// The files that it names: something below the folder that all lie in, then what was looked for there.
    pub(super) files: Vec<Text>,
}

impl Output {
    /// Nothing at all.
    pub(super) fn empty() -> Self {
        Self { text: Some(String::new()), ..Self::default() }
    }

    /// As the input of what comes next.
    pub(super) fn piped(self) -> Input {
        let Self { text, from, files } = self;
        Input { piped: true, text, from, files, ..Input::default() }
    }

    /// As what `$(…)` comes to that is written like this: blank lines at its end taken off.
    pub(super) fn substituted(self, written: &str) -> Text {
        match self.text {
            Some(text) => Text { from: self.from, ..Text::known(text.trim_end_matches('\n')) },
            // Which of the files it is nobody knows; that it lies below a folder is.
            None => {
                let below = self.files.first().map(Text::known_part).unwrap_or_default();
                let mut text = Text::known(below);
                text.append(&Text { from: self.from, ..Text::unknown(written) });
                text
            }
        }
    }

    /// This and then that.
    pub(super) fn then(self, next: Self) -> Self {
        let text = self.text.zip(next.text).map(|(mut one, other)| {
            one.push_str(&other);
            one
        });
        let mut from = self.from;
        from.extend(next.from);
        let files = if self.files.is_empty() { next.files } else { self.files };
        Self { text, from, files }
    }
}

/// The walk.
pub(super) struct Scanner<'a> {
    pub(super) call: &'a mut Call,
    pub(super) reading: Reading<'a>,
    text_depth: usize,
    /// Programs that start the text that is read now: `su` of `su -c 'npm test'`.
    pub(super) starters: Vec<String>,
    pub(super) nesting: usize,
    pub(super) functions: Functions,
    /// Statements looked at so far.
    steps: usize,
    /// Where the loop without end ends that was looked at last, in the text that is read now.
    pub(super) loop_end: usize,
    /// Texts that run when the line is done: `trap … EXIT`.
    pub(super) at_the_end: Vec<String>,
    /// Bodies of here-documents that are not parsed with the line.
    pub(super) heredocs: Heredocs,
    /// Whether the text that is read now was put together of parts that cannot be known, and stand in it as they
    /// were written.
    pub(super) as_written: bool,
}

impl Scanner<'_> {
    /// Shell text that a shell reads within another.
    pub(super) fn text(&mut self, source: &str, scope: &mut Scope, input: &Input) -> Output {
        if self.text_depth >= SHELL_DEPTH_MAX {
            self.over("it is nested too deeply or too long");
            return Output::default();
        }
        self.text_depth += 1;
        let output = self.body(source, scope, input);
        self.text_depth -= 1;
        output
    }

    /// Shell text that belongs to the shell which reads it: the body of a function.
    pub(super) fn body(&mut self, source: &str, scope: &mut Scope, input: &Input) -> Output {
        let shortened = self.shortened(source);
        let (source, tree) = match &shortened {
            Some((text, tree)) => (text.as_str(), Some(Cow::Borrowed(tree))),
            None => (source, None),
        };
        if source.len() > SHELL_TEXT_MAX {
            self.over("it is nested too deeply or too long");
            return Output::default();
        }
        if !self.may_go_on(source.len()) {
            return Output::default();
        }
        let Some(tree) = tree.or_else(|| syntax(source).map(Cow::Owned)) else {
            self.over("it takes too long to read");
            return Output::default();
        };
        if tree.root_node().has_error() {
            self.unread("its form is not that of a shell command");
        }
        let loop_end = std::mem::take(&mut self.loop_end);
        let output = self.sequence(tree.root_node(), source, scope, input);
        self.loop_end = loop_end;
        output
    }

    /// A long text without its here-documents, with its tree; nothing, where it is read as it is.
    fn shortened(&mut self, source: &str) -> Option<(String, Tree)> {
        let short = self.heredocs.take_out(source)?;
        let tree = Some(&short.text).filter(|it| it.len() <= SHELL_TEXT_MAX);
        let tree = tree.and_then(|it| syntax(it)).filter(|it| short.is_borne_out(it))?;
        Some((short.text, tree))
    }

    /// Notes that something could not be understood.
    pub(super) fn unread(&mut self, why: &str) {
        self.call.not_read(why);
    }

    /// Notes that a part is not looked at, since it goes over a bound.
    pub(super) fn over(&mut self, why: &str) {
        self.call.over(why);
    }

    /// Counts one more statement, or text, of that many bytes; whether it may still be looked at. Once
    /// it may not, the whole walk comes to its end.
    pub(super) fn may_go_on(&mut self, bytes: usize) -> bool {
        self.steps = self.steps.saturating_add(1 + bytes / CALL_STEP_BYTES);
        if self.is_spent() {
            self.over("it does very much, its loops counted");
        } else if (self.reading.patience.0)() {
            self.over("it takes too long to analyze");
            self.steps = CALL_STEPS_MAX;
        }
        !self.is_spent()
    }

    /// Whether nothing more is looked at.
    pub(super) const fn is_spent(&self) -> bool {
        self.steps >= CALL_STEPS_MAX
    }

    /// Adds a program; its place among them.
    pub(super) fn push(&mut self, program: Invocation) -> Option<usize> {
        // A loop starts the same again: what is said of one is said of all.
        if let Some(at) = self.call.programs.iter().position(|it| *it == program) {
            return Some(at);
        }
        let at = self.call.programs.len();
        if at >= CALL_PROGRAMS_MAX {
            self.over("it starts very many programs");
            self.steps = CALL_STEPS_MAX;
            return None;
        }
        self.call.programs.push(program);
        Some(at)
    }

    /// What `$(…)` comes to, blank lines at its end taken off.
    pub(super) fn substitution(&mut self, node: Node<'_>, source: &str, scope: &Scope) -> Text {
        let mut inner = scope.clone();
        let around = self.functions.enter(node, source);
        let output = self.sequence(node, source, &mut inner, &Input::default());
        self.functions.leave(around);
        output.substituted(word::raw(node, source))
    }

    /// The values of a variable, as far as they are known.
    pub(super) fn values(&mut self, name: &str, written: &str, scope: &Scope) -> Vec<Text> {
        let found = self.lookup(name, scope).filter(|found| {
            // A value may be made of itself again and again.
            found.iter().all(|it| self.may_go_on(it.text.len()))
        });
        found.unwrap_or_else(|| vec![Text::unknown(written)])
    }

    /// The values of a variable, if they are known.
    pub(super) fn lookup(&self, name: &str, scope: &Scope) -> Option<Vec<Text>> {
        let home = &self.reading.around.home;
        let found = self.found(name, scope)?;
        Some(found.into_iter().map(|it| it.with_home(home)).collect())
    }

    fn found(&self, name: &str, scope: &Scope) -> Option<Vec<Text>> {
        if let Some(values) = scope.variables.get(name) {
            return Some(values.clone());
        }
        let around = self.reading.around;
        let given = |it: &str| Some(vec![Text::known(it)]);
        match name {
            "HOME" if !around.home.is_empty() => given(&around.home),
            // Whatever it is, it reads what a shell does.
            "SHELL" | "BASH" => given("bash"),
            "PWD" => given(scope.folder.as_deref()?),
            "TMPDIR" | "TMP" | "TEMP" => {
                let own = around.temporary.get(super::Surroundings::TEMPORARY.len());
                given(own.or(around.temporary.first())?)
            }
            "IFS" => given(" \t\n"),
            // What stands in the text as it was written may have been another's.
            name if self.as_written
                && !name.starts_with(|c: char| c.is_alphabetic() || c == '_') =>
            {
                None
            }
            "@" | "*" => scope.parameters.clone(),
            "#" => given(&scope.parameters.as_ref()?.len().to_string()),
            _ => {
                // `$0` is known where a text was given its name; then it is a variable.
                let at = name.parse::<usize>().ok()?.checked_sub(1)?;
                let found = scope.parameters.as_ref()?.get(at);
                Some(found.cloned().into_iter().collect())
            }
        }
    }

    /// The place of a path, seen from where the shell stands.
    pub(super) fn place(&self, path: &Text, scope: &Scope) -> Place {
        let place = self.reading.around.place(path, scope.folder.as_deref());
        let absolute = place.absolute.map(|it| followed(it, &scope.links));
        Place { absolute, ..place }
    }
}
