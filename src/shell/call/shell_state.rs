//! The state of one shell at one point of a command line: variables, functions, directories, and written files.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::container_mounts::ContainerMounts;
use super::shell_text::ShellText;
use super::written_files::LineFiles;

/// Variables that every process inherits.
const OF_SURROUNDINGS: [&str; 9] =
    ["HOME", "PATH", "PWD", "SHELL", "USER", "TMPDIR", "TMP", "TEMP", "LANG"];

/// The state of one shell at one point of the command line.
#[derive(Debug, Clone, Default)]
pub(super) struct ShellState {
    /// Values of variables by name. Several values for an array, none for a variable that was
    /// unset.
    pub(super) variables: Variables,
    /// Names of the variables that the line exports.
    pub(super) exported: BTreeSet<String>,
    /// Working directory.
    pub(super) folder: WorkingFolder,
    /// Working directory if the last statement failed. `None` if that makes no difference.
    pub(super) failed: Option<WorkingFolder>,
    /// The mounts of the container in which the shell runs.
    pub(super) container: Option<Rc<ContainerMounts>>,
    /// Whether the shell ends if a statement fails: `set -e`.
    pub(super) ends_on_error: bool,
    /// Functions and aliases by name.
    pub(super) functions: BTreeMap<String, ShellFunction>,
    /// Positional parameters. `None` if they are unknown.
    pub(super) parameters: Option<Vec<ShellText>>,
    /// What the line wrote into files.
    pub(super) files: LineFiles,
    /// Targets of the symbolic links that the line created, by absolute path.
    pub(super) links: BTreeMap<String, String>,
    /// Programs that read what is written to a descriptor, by its number or the variable that has it.
    pub(super) descriptors: BTreeMap<String, Vec<usize>>,
}

impl ShellState {
    /// Returns the state of a shell that this shell starts. Of the variables it inherits only
    /// exported ones; the others have the values of the environment. Its functions are doubtful.
    pub(super) fn of_a_process(&self) -> Self {
        let mut inner = self.clone();
        let is_handed =
            |name: &str| self.exported.contains(name) || OF_SURROUNDINGS.contains(&name);
        inner.variables.retain(|name, _| is_handed(name));
        inner.functions.values_mut().for_each(|it| it.is_doubtful = true);
        inner.parameters = Some(Vec::new());
        inner
    }

    /// Returns the characters at which this shell splits values, if the line sets them: `IFS=,`.
    pub(super) fn separators(&self) -> Option<&str> {
        self.variables.get("IFS")?.first()?.all()
    }

    /// Replaces the separators in unquoted values by blanks.
    pub(super) fn separated(&self, values: Vec<ShellText>) -> Vec<ShellText> {
        let Some(separators) = self.separators() else { return values };
        let blank = |it: ShellText| match it.is_known() {
            true => ShellText { text: it.text.replace(|c| separators.contains(c), " "), ..it },
            false => it,
        };
        let is_ascii = separators.is_ascii();
        values.into_iter().map(|it| if is_ascii { blank(it) } else { it }).collect()
    }

    /// Returns the programs that read what is written to a descriptor: `3`, `$fd`, `${COPROC[1]}`.
    pub(super) fn consumers_of(&self, descriptor: &ShellText) -> Option<&Vec<usize>> {
        let name = descriptor.variables().next().unwrap_or(descriptor.text.as_str());
        self.descriptors.get(name)
    }

    /// Begins the next statement: the last one may have failed.
    pub(super) fn settle(&mut self) {
        if let Some(failed) = self.failed.take() {
            self.folder.join(failed);
        }
    }

    /// Returns the working directory if the last statement failed.
    pub(super) fn take_failed(&mut self) -> WorkingFolder {
        self.failed.take().unwrap_or_else(|| self.folder.clone())
    }

    /// Sets a variable to an unknown value.
    pub(super) fn forget(&mut self, name: &str) {
        self.variables.insert(name.to_owned(), vec![ShellText::unknown(format!("${name}"))]);
    }

    /// Marks all empty variables as unknown, after text ran that policyd cannot read: it may have
    /// set them.
    pub(super) fn forget_empty(&mut self) {
        for (name, values) in &mut self.variables {
            if values.iter().all(|it| it.all() == Some("")) {
                *values = vec![ShellText::unknown(format!("${name}"))];
            }
        }
    }

    /// Exchanges the values of variables with those in `variables`. An empty list unsets a
    /// variable.
    pub(super) fn swap(&mut self, variables: &mut Vec<(String, Vec<ShellText>)>) {
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

/// Values of variables by name.
type Variables = BTreeMap<String, Vec<ShellText>>;

/// Maximum number of values of a variable that are followed. More are one unknown value.
pub(super) const VALUES_MAX: usize = 8;

/// Maximum number of working directories that are followed. More are unknown.
const FOLDERS_MAX: usize = 4;

/// Represents the values beyond a limit.
pub(super) const MANY_VALUES: &str = "one of many values";

/// Adds alternative values to variables, before their current values.
pub(super) fn join(variables: &mut Variables, other: Variables) {
    for (name, mut values) in other {
        let own = variables.entry(name).or_default();
        values.retain(|it| !own.contains(it));
        values.append(own);
        if values.len() > VALUES_MAX {
            values.truncate(VALUES_MAX);
            let rest = ShellText::unknown(MANY_VALUES);
            values.extend((!values.contains(&rest)).then_some(rest));
        }
        *own = values;
    }
}

/// The working directory of a shell where it is not certain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WorkingFolder {
    /// The directory if each `cd` succeeded and the last branch was taken. `None` if it is unknown.
    pub(super) path: Option<String>,
    /// Other directories that it may be.
    pub(super) others: Vec<String>,
}

impl WorkingFolder {
    /// A directory without alternatives.
    pub(super) const fn certain(path: Option<String>) -> Self {
        Self { path, others: Vec::new() }
    }

    /// Adds the directories of another branch.
    pub(super) fn join(&mut self, other: Self) {
        for folder in other.path.into_iter().chain(other.others) {
            if self.path.as_ref() != Some(&folder) && !self.others.contains(&folder) {
                self.others.push(folder);
            }
        }
        if self.others.len() > FOLDERS_MAX {
            *self = Self::default();
        }
    }

    /// Returns the directories after `cd`. `change` returns the new directory for an old one.
    pub(super) fn changed(&self, change: impl Fn(Option<&str>) -> Option<String>) -> Self {
        let mut changed = Self::certain(change(self.path.as_deref()));
        let others = self.others.iter().filter_map(|it| change(Some(it)));
        others.for_each(|it| changed.join(Self::certain(Some(it))));
        changed
    }
}

/// A function or an alias that the line defines.
#[derive(Debug, Clone, Default)]
pub(super) struct ShellFunction {
    pub(super) body: Rc<str>,
    /// Whether each call starts background jobs and does not wait for them: `sleep 9 & f`.
    pub(super) leaves_jobs: bool,
    /// The function that had this name before. An alias applies only to the lines after its own, so
    /// both are scanned.
    pub(super) before: Option<Rc<Self>>,
    /// Whether the program of the same name may run instead. Shells differ: `zsh -c` expands
    /// aliases, `bash -c` does not, and a started shell only has exported functions.
    pub(super) is_doubtful: bool,
}

impl ShellState {
    /// Defines an alias. A function of the same name is kept and scanned, too.
    pub(super) fn alias(&mut self, name: &str, body: &str) {
        let body = Rc::from(format!("{body} \"$@\""));
        let before = self.functions.remove(name).map(|it| ShellFunction { before: None, ..it });
        let before = before.map(Rc::new);
        let alias = ShellFunction { body, before, is_doubtful: true, ..ShellFunction::default() };
        self.functions.insert(name.to_owned(), alias);
    }
}
