//! Aliases of git: `git x` runs what the configuration says for `x`.
//!
//! Contains: aliases of `git -c alias.x=…` and of the configuration files of the repository and the user, with the files that
//! these include.
//! Does not contain: the configuration of the system, which only an administrator changes.

use std::collections::BTreeSet;

use super::disk::ScriptFile;
use super::invocation::Invocation;
use super::scanner::Scanner;
use super::shell_state::ShellState;
use super::shell_text::ShellText;
use crate::path::in_folder;
use crate::pattern::ValuesOf;
use crate::shell::base_name;
use crate::vocabulary::ValueOptions;
use policyd_yaml::rows::Rows;

/// Subcommands that are part of git itself, so that it ignores aliases of these names. One that is missing here costs the
/// reading of the configuration.
const BUILT_IN: [&str; 56] = [
    "add",
    "am",
    "apply",
    "archive",
    "bisect",
    "blame",
    "branch",
    "bundle",
    "cat-file",
    "check-ignore",
    "checkout",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "config",
    "describe",
    "diff",
    "fetch",
    "filter-branch",
    "for-each-ref",
    "format-patch",
    "fsck",
    "gc",
    "grep",
    "hash-object",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge",
    "merge-base",
    "mv",
    "notes",
    "prune",
    "pull",
    "push",
    "rebase",
    "reflog",
    "remote",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "stash",
    "status",
    "submodule",
    "switch",
    "symbolic-ref",
    "tag",
    "worktree",
];
/// Configuration files that are read for one alias.
const FILES_MAX: usize = 16;
/// Directories above the working directory.
const PARENTS_MAX: usize = 32;

/// The repository that contains a directory.
struct Repository {
    /// The top of the work tree, where git runs the shell text of an alias.
    top: Option<String>,
    /// The directory with the configuration.
    config: String,
}

/// A search for an alias in configuration files.
struct AliasSearch<'a> {
    name: &'a str,
    /// Paths of the files that were read.
    read: BTreeSet<String>,
    /// The reason why a file was not read.
    unread: Option<&'static str>,
}

impl Scanner<'_> {
    /// Returns the command of an alias of git. `None` if the command uses no alias.
    pub(super) fn expand_git_alias(
        &mut self,
        words: &[ShellText],
        scope: &ShellState,
    ) -> Option<Vec<ShellText>> {
        if base_name(words.first()?.all()?) != "git" {
            return None;
        }
        let at = subcommand(words, self.context.lens.value_options())?;
        let name = words.get(at)?.all()?;
        if BUILT_IN.contains(&name) || name.is_empty() {
            return None;
        }
        let before = words.get(1..at)?;
        let program = Invocation { args: before.to_vec(), ..Invocation::default() };
        let repository = self.repository_of(&program, scope);
        let value = on_the_line(&program, name)
            .or_else(|| self.configured_alias(repository.as_ref(), name))?;
        let after = words.get(at + 1..)?.iter().cloned();
        Some(match value.trim_start().strip_prefix('!') {
            // git appends the arguments to the text, and runs it at the top of the work tree.
            Some(shell) => {
                let text = format!("{} \"$@\"", shell.trim_end());
                let top = repository.and_then(|it| it.top);
                let moves = top.iter().flat_map(|it| ["env", "-C", it.as_str()]);
                let words = moves.chain(["sh", "-c", &text, "git"]).map(ShellText::known);
                words.chain(after).collect()
            }
            None => {
                let own = split_words(&value).into_iter().map(ShellText::known);
                words.get(..at)?.iter().cloned().chain(own).chain(after).collect()
            }
        })
    }

    /// Returns an alias in the configuration of the repository or of the user.
    fn configured_alias(&mut self, repository: Option<&Repository>, name: &str) -> Option<String> {
        let home = &self.context.around.home;
        let user = [".gitconfig", ".config/git/config"].map(|it| in_folder(home, it));
        let user = user.into_iter().filter(|_| !home.is_empty());
        let own = repository.map(|it| in_folder(&it.config, "config"));
        let mut search = AliasSearch { name, read: BTreeSet::new(), unread: None };
        let found = own.into_iter().chain(user).find_map(|it| self.alias_in(&it, &mut search));
        if let Some(why) = search.unread.filter(|_| found.is_none()) {
            self.mark_not_understood(why);
        }
        found
    }

    /// Returns the repository in which a git command works. `None` without one, or if it is not known.
    fn repository_of(&self, git: &Invocation, scope: &ShellState) -> Option<Repository> {
        let mut folder = scope.folder.path.clone()?;
        for step in git.values("-C") {
            folder = self.resolve_from(&step, Some(&folder), scope).absolute?;
        }
        match git.values("--git-dir").next() {
            Some(given) => {
                let config = self.resolve_from(&given, Some(&folder), scope).absolute?;
                Some(Repository { top: None, config })
            }
            None => self.repository_above(&folder),
        }
    }

    /// Returns the repository that contains a directory.
    fn repository_above(&self, folder: &str) -> Option<Repository> {
        let disk = self.context.disk;
        let mut folder = folder;
        for _ in 0..PARENTS_MAX {
            let own = in_folder(folder, ".git");
            let top = Some(folder.to_owned());
            if disk.is_directory(&own) == Some(true) {
                return Some(Repository { top, config: own });
            }
            // In a further work tree, `.git` is a file.
            if let ScriptFile::Text(text) = disk.script(&own) {
                let linked = text.trim().strip_prefix("gitdir:")?.trim();
                let linked = match linked.starts_with('/') {
                    true => linked.to_owned(),
                    false => in_folder(folder, linked),
                };
                let common = linked.split_once("/worktrees/").map(|it| it.0.to_owned());
                return Some(Repository { top, config: common.unwrap_or(linked) });
            }
            folder = folder.rsplit_once('/')?.0;
        }
        None
    }

    /// Returns an alias in a configuration file, or in a file that it includes.
    fn alias_in(&self, path: &str, search: &mut AliasSearch<'_>) -> Option<String> {
        if !search.read.insert(path.to_owned()) {
            return None;
        }
        let text = match self.context.disk.script(path) {
            _ if search.read.len() > FILES_MAX => {
                search.unread = Some("the configuration of git includes too many files");
                return None;
            }
            ScriptFile::Absent => return None,
            ScriptFile::Program | ScriptFile::Unread(_) => {
                search.unread = Some("a configuration file of git cannot be read");
                return None;
            }
            ScriptFile::Text(text) => text,
        };
        let mut found = None;
        for (section, key, value) in settings(&text) {
            let is_alias = section == "alias" && key.eq_ignore_ascii_case(search.name);
            let is_sub = section
                .strip_prefix("alias ")
                .is_some_and(|it| it.trim_matches('"') == search.name);
            if is_alias || (is_sub && key == "command") {
                found = Some(value);
            } else if section.starts_with("include") && key == "path" {
                let folder = path.rsplit_once('/').map_or("", |it| it.0);
                let file = match value.strip_prefix("~/") {
                    Some(rest) => in_folder(&self.context.around.home, rest),
                    None if value.starts_with('/') => value,
                    None => in_folder(folder, &value),
                };
                let included = self.alias_in(&file, search);
                // Whether the condition of an `includeIf` is true is not known: another alias stays.
                found = match section == "include" {
                    true => included.or(found),
                    false => found.or(included),
                };
            }
        }
        found
    }
}

/// Returns the position of the subcommand.
fn subcommand(words: &[ShellText], rows: &Rows<ValueOptions>) -> Option<usize> {
    let values = ValuesOf { program: "git", rows };
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let word = word.all()?;
        if !word.starts_with('-') {
            return Some(at);
        }
        at += if values.takes_value(word) { 2 } else { 1 };
    }
    None
}

/// Returns the alias that `-c alias.x=…` defines.
fn on_the_line(git: &Invocation, name: &str) -> Option<String> {
    let found = git.values("-c").filter_map(|it| {
        let (key, value) = it.all()?.strip_prefix("alias.")?.split_once('=')?;
        (key == name).then(|| value.to_owned())
    });
    found.last()
}

/// Returns the settings in a configuration file: section, key, and value. Sections and keys are in lower case.
fn settings(text: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut section = String::new();
    // An editor can write a byte order mark.
    let joined = text.trim_start_matches('\u{feff}').replace("\\\n", "");
    for line in joined.lines().map(str::trim) {
        let mut rest = line;
        if let Some((head, after)) = line.strip_prefix('[').and_then(|it| it.split_once(']')) {
            let (kind, name) = head.split_once(' ').unwrap_or((head, ""));
            section = format!("{} {}", kind.to_lowercase(), name.trim()).trim_end().to_owned();
            rest = after.trim();
        }
        if rest.is_empty() || rest.starts_with(['#', ';']) {
            continue;
        }
        let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
        found.push((section.clone(), key.trim().to_lowercase(), unquoted(value.trim())));
    }
    found
}

/// Removes quotes, escapes, and comments of a value.
fn unquoted(value: &str) -> String {
    let (mut out, mut is_quoted) = (String::new(), false);
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => is_quoted = !is_quoted,
            '\\' => out.extend(chars.next().map(|it| match it {
                'n' => '\n',
                't' => '\t',
                other => other,
            })),
            '#' | ';' if !is_quoted => break,
            c => out.push(c),
        }
    }
    out.trim_end().to_owned()
}

/// Splits an alias into words. Quotes keep blanks.
fn split_words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_sections_and_values() {
        let text = "[alias]\n\tpf = push --force # why\n nuke = \"!rm -rf ~; echo \\\"x\\\"\"\n[alias \"Up\"]\n command = pull \\\n --rebase\n\
                    [core] bare = false\n";
        let found = settings(text);
        let shown: Vec<(&str, &str, &str)> =
            found.iter().map(|it| (it.0.as_str(), it.1.as_str(), it.2.as_str())).collect();
        assert_eq!(
            shown,
            [
                ("alias", "pf", "push --force"),
                ("alias", "nuke", "!rm -rf ~; echo \"x\""),
                ("alias \"Up\"", "command", "pull  --rebase"),
                ("core", "bare", "false"),
            ]
        );
        assert_eq!(split_words("log --format='%h %s' \"a b\"c"), ["log", "--format=%h %s", "a bc"]);
    }
}
