//! Matchers compiled from a lens. Each part is compiled on first use, because every hook call
//! creates one.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use policyd_shell::call::PathMatchers;
use policyd_shell::tool_vocabulary::{DatabaseClient, ToolEffect, ToolWords};
use policyd_shell::vocabulary::{ShellVocabulary, ValueOptions, Wrapper};
use policyd_yaml::rows::Rows;

use super::Program;
use super::glob::{PathGlob, word_matches};
use super::lazy::{LazyRegex, LinePatterns};
use super::lens::{CommandKind, ContentPattern, FileKindRow, MatcherConfig};
use super::pattern::CommandPattern;
use super::text_block;
use policyd_base::limits::{COMMAND_KINDS_MAX, SHELL_LINE_KEPT_BYTES_MAX, SHELL_LINES_KEPT_MAX};

/// Beginning of a block's reason if the header of the pack is too short to be recognized.
pub const BLOCK_MARK: &str = "policyd: not done yet.";

/// A lens with the matchers that are compiled from it on first use.
#[derive(Debug, Default)]
pub struct CompiledMatchers {
    lens: Arc<MatcherConfig>,
    files: OnceCell<Vec<CompiledFiles>>,
    paths: OnceCell<Vec<OnceCell<PathMatchers>>>,
    kinds: OnceCell<Vec<CompiledKind>>,
    contents: OnceCell<Vec<CompiledContent>>,
    lines: RefCell<BTreeMap<String, Rc<CommandLine>>>,
}

/// Analysis of a command line, independent of its execution.
#[derive(Debug, Clone)]
pub struct CommandLine {
    /// Programs in order.
    pub programs: Vec<Program>,
    /// Whether the shell parser understood the whole line.
    pub understood: bool,
    /// Command classes that the line belongs to.
    pub kinds: BTreeSet<String>,
    /// Whether its output can be evidence.
    pub evidential: bool,
    /// Whether a program is in no class.
    pub unrecognized: bool,
    /// Files that the line writes.
    pub writes: Vec<String>,
}

/// Matchers of one command class.
#[derive(Debug)]
pub struct CompiledKind {
    pub name: String,
    programs: Vec<CommandPattern>,
    except: Vec<CommandPattern>,
    except_kinds: Vec<String>,
    /// Names of classes whose commands repair what a command of this class reported.
    pub repaired_by: Vec<String>,
    tasks: Vec<String>,
    except_tasks: Vec<String>,
    /// Whether its commands are never evidence for another class.
    pub no_evidence: bool,
    /// Whether the output alone can show that a command belongs to the class.
    pub by_output: bool,
    /// Output lines that mean that the command could not run.
    pub unable: LinePatterns,
    /// Output lines that name one failure each.
    failures: Vec<LazyRegex>,
    /// Output lines that mean failure.
    pub failed: LinePatterns,
    /// Output lines that mean failure if the exit status is hidden.
    pub failed_if_hidden: LinePatterns,
    /// Output lines that mean that nothing ran.
    pub empty: LinePatterns,
    /// Output lines that mean success.
    pub passed: LinePatterns,
    /// Output lines that mean success unless nothing ran.
    pub passed_unless_empty: LinePatterns,
}

/// Matchers of one file class.
#[derive(Debug)]
struct CompiledFiles {
    name: String,
    globs: Vec<PathGlob>,
    except: Vec<PathGlob>,
    except_generated: bool,
    shows_tests: bool,
}

/// Matchers of one content pattern.
#[derive(Debug)]
pub struct CompiledContent {
    pub name: String,
    files: Vec<String>,
    except_files: Vec<String>,
    regexes: Vec<LazyRegex>,
    unless: Vec<LazyRegex>,
    unless_inside: Vec<LazyRegex>,
}

impl CompiledMatchers {
    /// Stores the lens. Compiles nothing yet.
    #[must_use]
    pub fn new(lens: impl Into<Arc<MatcherConfig>>) -> Self {
        Self { lens: lens.into(), ..Self::default() }
    }

    /// Returns the source lens.
    #[must_use]
    pub fn lens(&self) -> &MatcherConfig {
        &self.lens
    }

    /// Returns whether a text begins as the pack's reason of a block does.
    #[must_use]
    pub fn begins_as_block(&self, text: &str) -> bool {
        let text = text.trim_start();
        self.block_headers().any(|header| text.starts_with(header))
    }

    /// Returns whether a text that a client marks as the feedback of hooks contains the pack's reason of
    /// a block. Clients write words of their own before it.
    #[must_use]
    pub fn contains_block(&self, text: &str) -> bool {
        self.block_headers().any(|header| text.contains(header))
    }

    fn block_headers(&self) -> impl Iterator<Item = &str> {
        std::iter::once(BLOCK_MARK).chain(self.lens.block_headers.iter().map(String::as_str))
    }

    /// Returns whether the program matches a command pattern.
    #[must_use]
    pub fn runs(&self, program: &Program, pattern: &CommandPattern) -> bool {
        pattern.matches(program, &self.lens.value_options)
    }

    /// Returns the command classes.
    pub fn kinds(&self) -> &[CompiledKind] {
        self.kinds.get_or_init(|| {
            self.lens.commands.iter().take(COMMAND_KINDS_MAX).map(CompiledKind::new).collect()
        })
    }

    /// Returns the analysis of a command line from the cache, or calls `read` and caches its
    /// result.
    pub fn command_line(&self, text: &str, read: impl FnOnce() -> CommandLine) -> Rc<CommandLine> {
        if let Some(known) = self.lines.borrow().get(text) {
            return Rc::clone(known);
        }
        let line = Rc::new(read());
        if text.len() <= SHELL_LINE_KEPT_BYTES_MAX {
            let mut lines = self.lines.borrow_mut();
            if lines.len() >= SHELL_LINES_KEPT_MAX {
                lines.clear();
            }
            lines.insert(text.to_owned(), Rc::clone(&line));
        }
        line
    }

    /// Returns the names of the command classes that one of the programs belongs to.
    pub fn kinds_of(&self, programs: &[Program]) -> impl Iterator<Item = &str> {
        let is_of = |kind: &&CompiledKind| programs.iter().any(|it| kind.includes(it, self));
        self.kinds().iter().filter(is_of).map(|kind| kind.name.as_str())
    }

    /// Returns the command class with this name.
    #[must_use]
    pub fn kind(&self, name: &str) -> Option<&CompiledKind> {
        self.kinds().iter().find(|kind| kind.name == name)
    }

    /// Returns whether the operands of a program are names of tasks.
    #[must_use]
    pub fn is_task_runner(&self, program: &str) -> bool {
        self.lens.task_runners.iter().any(|it| word_matches(it, program))
    }

    /// Returns whether the first operand of a program is a script.
    #[must_use]
    pub fn is_script_runner(&self, program: &str) -> bool {
        self.lens.script_runners.iter().any(|it| word_matches(it, program))
    }

    /// Returns the content patterns.
    pub fn contents(&self) -> &[CompiledContent] {
        self.contents.get_or_init(|| self.lens.contents.iter().map(CompiledContent::new).collect())
    }

    /// Returns the file classes that a path belongs to.
    #[must_use]
    pub fn file_kinds(&self, path: &str) -> BTreeSet<String> {
        let kinds = self.files().iter().filter(|kind| kind.includes(path));
        kinds.map(|kind| kind.name.clone()).collect()
    }

    /// Returns the list of paths with this name. It is compiled when a rule first names it.
    #[must_use]
    pub fn path_list(&self, name: &str) -> Option<&PathMatchers> {
        let lists = &*self.lens.paths;
        let at = lists.iter().position(|it| it.name == name)?;
        let compiled = self.paths.get_or_init(|| lists.iter().map(|_| OnceCell::new()).collect());
        let globs = || lists.get(at).map(|it| it.globs.iter().map(String::as_str));
        let matchers = || PathMatchers::new(globs().into_iter().flatten());
        Some(compiled.get(at)?.get_or_init(matchers))
    }

    /// Returns whether a project with this file has tests.
    #[must_use]
    pub fn shows_tests(&self, path: &str) -> bool {
        self.files().iter().any(|kind| kind.shows_tests && kind.includes(path))
    }

    /// Returns whether generated and vendored files do not belong to a file class.
    #[must_use]
    pub fn excepts_generated(&self, kind: &str) -> bool {
        self.files().iter().any(|it| it.except_generated && it.name == kind)
    }

    fn files(&self) -> &[CompiledFiles] {
        self.files.get_or_init(|| self.lens.files.iter().map(CompiledFiles::new).collect())
    }
}

impl ShellVocabulary for CompiledMatchers {
    fn wrappers(&self) -> &Rows<Wrapper> {
        &self.lens.wrappers
    }

    fn value_options(&self) -> &Rows<ValueOptions> {
        &self.lens.value_options
    }

    fn is_task_runner(&self, program: &str) -> bool {
        Self::is_task_runner(self, program)
    }

    fn is_edit_tool(&self, name: &str) -> bool {
        self.lens.edit_tools.iter().any(|tool| tool == name)
    }

    fn is_shell_tool(&self, name: &str) -> bool {
        self.lens.shell_tools.iter().any(|tool| tool == name)
    }

    fn tool_words(&self) -> &ToolWords {
        &self.lens.tool_words
    }

    fn tool_effects(&self) -> &[ToolEffect] {
        &self.lens.tool_effects
    }

    fn database_clients(&self) -> &Rows<DatabaseClient> {
        &self.lens.database_clients
    }
}

impl CompiledFiles {
    fn new(kind: &FileKindRow) -> Self {
        let globs = |texts: &[String]| texts.iter().map(|text| PathGlob::new(text)).collect();
        let FileKindRow { name, globs: included, except, except_generated, shows_tests } = kind;
        Self {
            name: name.clone(),
            globs: globs(included),
            except: globs(except),
            except_generated: *except_generated,
            shows_tests: *shows_tests,
        }
    }

    fn includes(&self, path: &str) -> bool {
        let any = |globs: &[PathGlob]| globs.iter().any(|glob| glob.matches(path));
        any(&self.globs) && !any(&self.except)
    }
}

impl CompiledKind {
    fn new(kind: &CommandKind) -> Self {
        Self {
            name: kind.name.clone(),
            programs: kind.programs.iter().map(|text| CommandPattern::parse(text)).collect(),
            except: kind.except.iter().map(|text| CommandPattern::parse(text)).collect(),
            except_kinds: kind.except_kinds.clone(),
            repaired_by: kind.repaired_by.clone(),
            tasks: kind.tasks.clone(),
            except_tasks: kind.except_tasks.clone(),
            no_evidence: kind.no_evidence,
            by_output: kind.by_output,
            unable: LinePatterns::new(&kind.unable),
            failures: kind.failures.iter().map(|text| LazyRegex::new(text)).collect(),
            failed: LinePatterns::new(&kind.failed),
            failed_if_hidden: LinePatterns::new(&kind.failed_if_hidden),
            empty: LinePatterns::new(&kind.empty),
            passed: LinePatterns::new(&kind.passed),
            passed_unless_empty: LinePatterns::new(&kind.passed_unless_empty),
        }
    }

    /// Returns whether the program belongs to this class: the class lists it, or the shape of the
    /// call says so.
    #[must_use]
    pub fn includes(&self, program: &Program, lens: &CompiledMatchers) -> bool {
        if self.lists(program, lens) {
            return true;
        }
        let other = |it: &CompiledKind| it.no_evidence && it.names(program, lens);
        self.has_tasks()
            && !self.excludes(program, lens)
            && (!program.folder.is_empty() || !lens.kinds().iter().any(other))
            && (self.is_named_by(program, lens) || self.runs_inside(program, lens))
    }

    /// Returns whether the class lists the program.
    pub(super) fn lists(&self, program: &Program, lens: &CompiledMatchers) -> bool {
        self.names(program, lens) && !self.excludes(program, lens)
    }

    fn names(&self, program: &Program, lens: &CompiledMatchers) -> bool {
        self.programs.iter().any(|pattern| lens.runs(program, pattern))
    }

    /// Returns whether one pattern of this class matches both programs: `black` matches `black --check`.
    #[must_use]
    pub fn names_both(&self, one: &Program, other: &Program, lens: &CompiledMatchers) -> bool {
        self.programs.iter().any(|it| lens.runs(one, it) && lens.runs(other, it))
    }

    fn excludes(&self, program: &Program, lens: &CompiledMatchers) -> bool {
        self.except.iter().any(|pattern| lens.runs(program, pattern))
            || self
                .except_kinds
                .iter()
                .any(|name| lens.kind(name).is_some_and(|kind| kind.names(program, lens)))
    }

    /// Returns whether the class lists the program with the first of its operands: `npm run build`,
    /// and not only `npm`.
    pub(super) fn names_task_of(&self, program: &Program, lens: &CompiledMatchers) -> bool {
        let exact = |it: &&CommandPattern| it.as_str().contains(' ');
        self.programs.iter().filter(exact).any(|pattern| lens.runs(program, pattern))
    }

    pub(super) fn has_tasks(&self) -> bool {
        !self.tasks.is_empty()
    }

    pub(super) fn tasks(&self) -> &[String] {
        &self.tasks
    }

    pub(super) fn except_tasks(&self) -> &[String] {
        &self.except_tasks
    }

    /// Returns the lines of an output that name one failure each.
    pub fn failures<'t>(&self, output: &'t str) -> impl Iterator<Item = &'t str> {
        self.failures.iter().flat_map(|regex| regex.lines(output))
    }
}

impl CompiledContent {
    fn new(pattern: &ContentPattern) -> Self {
        let compile = |sources: &[String]| sources.iter().map(|s| LazyRegex::new(s)).collect();
        Self {
            name: pattern.name.clone(),
            files: pattern.files.clone(),
            except_files: pattern.except_files.clone(),
            regexes: compile(&pattern.regexes),
            unless: compile(&pattern.unless),
            unless_inside: compile(&pattern.unless_inside),
        }
    }

    /// Returns whether the pattern applies to files of these classes.
    #[must_use]
    pub fn applies_to(&self, kinds: &BTreeSet<String>) -> bool {
        let any = |names: &[String]| names.iter().any(|name| kinds.contains(name));
        (self.files.is_empty() || any(&self.files)) && !any(&self.except_files)
    }

    /// Returns the lines of a text that the pattern matches, except those in a block that
    /// `unless_inside` excuses. Returns none if an `unless` pattern matches the text.
    #[must_use]
    pub fn lines<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut found: Vec<&str> = Vec::new();
        for regex in &self.regexes {
            for line in regex.places(text) {
                if !found.iter().any(|known| std::ptr::eq(*known, line)) {
                    found.push(line);
                }
            }
        }
        if found.is_empty() || self.unless.iter().any(|regex| regex.is_match(text)) {
            return Vec::new();
        }
        let heads = self.unless_inside.iter().flat_map(|regex| regex.places(text));
        let excused: Vec<&str> = heads.flat_map(|head| text_block::lines(text, head)).collect();
        found.retain(|line| !excused.iter().any(|known| std::ptr::eq(*known, *line)));
        found
    }
}
