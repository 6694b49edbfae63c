//! Aliases of git: `git x` runs what the configuration says for `x`.
//!
//! Contains: aliases of `git -c alias.x=…` and of the configuration files of the repository and the user, with the files that
//! these include.
//! Does not contain: the configuration of the system, which only an administrator changes.

use super::disk::ScriptFile;
use super::invocation::Invocation;
use super::scanner::Scanner;
use super::shell_state::ShellState;
use super::shell_text::ShellText;
use crate::path::in_folder;
use crate::shell::base_name;

/// Subcommands that git has itself, or that are usually installed. git ignores aliases of the first ones.
const BUILT_IN: [&str; 118] = [
    "add",
    "am",
    "annotate",
    "apply",
    "archive",
    "bisect",
    "blame",
    "branch",
    "bugreport",
    "bundle",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-mailmap",
    "check-ref-format",
    "checkout",
    "checkout-index",
    "cherry",
    "cherry-pick",
    "citool",
    "clean",
    "clone",
    "column",
    "commit",
    "commit-graph",
    "commit-tree",
    "config",
    "count-objects",
    "credential",
    "daemon",
    "describe",
    "diagnose",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "difftool",
    "fast-export",
    "fast-import",
    "fetch",
    "fetch-pack",
    "filter-branch",
    "filter-repo",
    "fmt-merge-msg",
    "for-each-ref",
    "for-each-repo",
    "format-patch",
    "fsck",
    "gc",
    "get-tar-commit-id",
    "grep",
    "gui",
    "hash-object",
    "help",
    "hook",
    "index-pack",
    "init",
    "instaweb",
    "interpret-trailers",
    "lfs",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "mailinfo",
    "mailsplit",
    "maintenance",
    "merge",
    "merge-base",
    "merge-file",
    "merge-index",
    "merge-tree",
    "mergetool",
    "mktag",
    "mktree",
    "multi-pack-index",
    "mv",
    "name-rev",
    "notes",
    "pack-objects",
    "pack-refs",
    "patch-id",
    "prune",
    "pull",
    "push",
    "quiltimport",
    "range-diff",
    "read-tree",
    "rebase",
    "reflog",
    "remote",
    "repack",
    "replace",
    "replay",
    "request-pull",
    "rerere",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "send-email",
    "send-pack",
    "shortlog",
    "show",
    "show-branch",
    "show-index",
    "show-ref",
    "sparse-checkout",
    "stash",
    "status",
    "submodule",
    "svn",
    "switch",
    "symbolic-ref",
    "tag",
    "update-index",
];
/// Further subcommands of the same kind.
const PLUMBING: [&str; 12] = [
    "unpack-file",
    "unpack-objects",
    "update-ref",
    "upload-archive",
    "upload-pack",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "version",
    "whatchanged",
    "worktree",
];
/// Options before the subcommand that take a value.
const VALUE_OPTIONS: [&str; 8] = [
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--super-prefix",
    "--exec-path",
    "--config-env",
];
/// Files in files.
const INCLUDES_MAX: usize = 4;
/// Directories above the working directory.
const PARENTS_MAX: usize = 32;

impl Scanner<'_> {
    /// Returns the command of an alias of git. `None` if the command uses no alias.
    pub(super) fn expand_git_alias(
        &self,
        words: &[ShellText],
        scope: &ShellState,
    ) -> Option<Vec<ShellText>> {
        if base_name(words.first()?.all()?) != "git" {
            return None;
        }
        let at = subcommand(words)?;
        let name = words.get(at)?.all()?;
        if BUILT_IN.contains(&name) || PLUMBING.contains(&name) || name.is_empty() {
            return None;
        }
        let value = on_the_line(words.get(..at)?, name)
            .or_else(|| self.configured_alias(words.get(..at)?, name, scope))?;
        let after = words.get(at + 1..)?.iter().cloned();
        Some(match value.trim_start().strip_prefix('!') {
            // git appends the arguments to the text.
            Some(shell) => {
                let text = format!("{} \"$@\"", shell.trim_end());
                let shell = ["sh", "-c", &text, "git"].map(ShellText::known);
                shell.into_iter().chain(after).collect()
            }
            None => {
                let own = split_words(&value).into_iter().map(ShellText::known);
                words.get(..at)?.iter().cloned().chain(own).chain(after).collect()
            }
        })
    }

    /// Returns an alias in the configuration of the repository or of the user.
    fn configured_alias(
        &self,
        before: &[ShellText],
        name: &str,
        scope: &ShellState,
    ) -> Option<String> {
        let program = Invocation { args: before.to_vec(), ..Invocation::default() };
        let mut folder = scope.folder.path.clone()?;
        for step in program.values("-C") {
            folder = self.resolve_from(&step, Some(&folder), scope).absolute?;
        }
        let home = &self.context.around.home;
        let user = [".gitconfig", ".config/git/config"].map(|it| in_folder(home, it));
        let given = program.values("--git-dir").next();
        let given = given.and_then(|it| self.resolve_from(&it, Some(&folder), scope).absolute);
        let repository = given.or_else(|| self.repository(&folder));
        let own = repository.map(|it| in_folder(&it, "config"));
        let files = own.into_iter().chain(user);
        files.filter(|_| !home.is_empty()).find_map(|it| self.alias_in(&it, name, 0))
    }

    /// Returns the directory with the configuration of the repository that contains a directory.
    fn repository(&self, folder: &str) -> Option<String> {
        let disk = self.context.disk;
        let mut folder = folder;
        for _ in 0..PARENTS_MAX {
            let own = in_folder(folder, ".git");
            if disk.is_directory(&own) == Some(true) {
                return Some(own);
            }
            // In a further work tree, `.git` is a file.
            if let ScriptFile::Text(text) = disk.script(&own) {
                let linked = text.trim().strip_prefix("gitdir:")?.trim();
                let linked = if linked.starts_with('/') {
                    linked.to_owned()
                } else {
                    in_folder(folder, linked)
                };
                return Some(match linked.split_once("/worktrees/") {
                    Some((common, _)) => common.to_owned(),
                    None => linked,
                });
            }
            folder = folder.rsplit_once('/')?.0;
        }
        None
    }

    /// Returns an alias in a configuration file, or in a file that it includes.
    fn alias_in(&self, path: &str, name: &str, depth: usize) -> Option<String> {
        let ScriptFile::Text(text) = self.context.disk.script(path) else { return None };
        let mut found = None;
        for (section, key, value) in settings(&text) {
            let is_alias = section == "alias" && key.eq_ignore_ascii_case(name);
            let is_sub =
                section.strip_prefix("alias ").is_some_and(|it| it.trim_matches('"') == name);
            if is_alias || (is_sub && key == "command") {
                found = Some(value);
            } else if section.starts_with("include") && key == "path" && depth < INCLUDES_MAX {
                let folder = path.rsplit_once('/').map_or("", |it| it.0);
                let file = match value.strip_prefix("~/") {
                    Some(rest) => in_folder(&self.context.around.home, rest),
                    None if value.starts_with('/') => value,
                    None => in_folder(folder, &value),
                };
                found = self.alias_in(&file, name, depth + 1).or(found);
            }
        }
        found
    }
}

/// Returns the position of the subcommand.
fn subcommand(words: &[ShellText]) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let word = word.all()?;
        if !word.starts_with('-') {
            return Some(at);
        }
        at += if VALUE_OPTIONS.contains(&word) { 2 } else { 1 };
    }
    None
}

/// Returns the alias that `-c alias.x=…` defines.
fn on_the_line(before: &[ShellText], name: &str) -> Option<String> {
    let program = Invocation { args: before.to_vec(), ..Invocation::default() };
    let found = program.values("-c").filter_map(|it| {
        let (key, value) = it.all()?.strip_prefix("alias.")?.split_once('=')?;
        (key == name).then(|| value.to_owned())
    });
    found.last()
}

/// Returns the settings in a configuration file: section, key, and value. Sections and keys are in lower case.
fn settings(text: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut section = String::new();
    let joined = text.replace("\\\n", "");
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
