//! The permission rules that the user gave to the client itself: calls that it runs without a question, and calls that it
//! asks about. policyd reads them and never writes them.
//!
//! A rule that allows counts only from the user's own settings, because a repository can contain the others. A rule that
//! asks counts from all of them. If a file cannot be read, nothing is approved.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::context::GateContext;
use policyd_base::limits::SETTINGS_FILE_BYTES_MAX;
use policyd_fact_table::call_facts::CallFacts;
use policyd_facts::call::{Access, CallEnvironment, Invocation, PathMatchers, ResolvedPath};
use policyd_facts::glob::word_matches;
use policyd_harness::{PermissionRules, UserFolder, claude_code, codex};
use policyd_world::{World, WorldError};

/// Most files of rules that are read.
const RULE_FILES_MAX: usize = 16;

/// One rule, as it is written in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ClientRule {
    /// A tool of Claude Code, and the pattern of its argument: `Bash(npm test:*)`. `None` matches each argument.
    Tool { tool: String, argument: Option<String> },
    /// The first words of a command, each with its alternatives, as Codex has them.
    Prefix(Vec<Vec<String>>),
}

/// The rules of one client.
#[derive(Debug, Default)]
pub(super) struct ClientRules {
    allows: Vec<ClientRule>,
    asks: Vec<ClientRule>,
    /// A file that could not be read.
    unread: Option<PathBuf>,
}

impl ClientRules {
    /// Loads the rules of the client that reports the event. A client without known rules has none.
    pub(super) fn load(context: &GateContext<'_>) -> Self {
        let mut rules = Self::default();
        let world = context.world;
        match context.request.caller.harness.permission_rules {
            PermissionRules::ClaudeSettings => {
                let user = user_folder(context, claude_code::USER_FOLDER);
                let user = user.map(|it| it.join("settings.json"));
                user.iter().for_each(|it| rules.read_settings(world, it, true));
                let folder = context.request.event.folder.as_ref();
                let folder = folder.filter(|it| **it != context.project.root);
                for project in [&context.project.root].into_iter().chain(folder) {
                    for file in ["settings.json", "settings.local.json"] {
                        rules.read_settings(world, &project.join(".claude").join(file), false);
                    }
                }
                let managed = claude_code::MANAGED_SETTINGS.iter().map(Path::new);
                managed.for_each(|it| rules.read_settings(world, it, false));
            }
            PermissionRules::CodexRules => {
                let folder = user_folder(context, codex::USER_FOLDER).map(|it| it.join("rules"));
                folder.iter().for_each(|it| rules.read_folder(world, it));
            }
            PermissionRules::Unread => {}
        }
        rules
    }

    /// Returns the indexes of the programs of a call that the user's own settings let run.
    pub(super) fn allowed_programs(&self, call_facts: &CallFacts) -> Vec<usize> {
        let runs = |it: &Invocation| {
            it.writes.is_empty() && self.allows.iter().any(|rule| rule.allows_program(it))
        };
        let programs = call_facts.call.programs.iter().enumerate();
        programs.filter(|(_, it)| runs(it)).map(|(at, _)| at).collect()
    }

    /// Returns why the client asks about a call, or might ask.
    pub(super) fn objection(
        &self,
        call_facts: &CallFacts,
        context: &GateContext<'_>,
    ) -> Option<String> {
        if let Some(path) = &self.unread {
            return Some(format!("the client's rules in `{}` cannot be read", path.display()));
        }
        let tool = context.request.event.tool_name.as_deref().unwrap_or_default();
        let asking = self.asks.iter().find(|it| it.concerns(tool, call_facts));
        asking.map(|it| format!("the client has the rule `{}`", it.text()))
    }

    /// Reads the permissions in a file of settings. Rules that allow count only if the file is the user's own.
    fn read_settings(&mut self, world: &dyn World, path: &Path, is_of_user: bool) {
        let Some(text) = self.read(world, path) else { return };
        let Ok(settings) = serde_json::from_str::<Json>(&text) else {
            self.unread = Some(path.to_path_buf());
            return;
        };
        let rules = |key: &str| -> Vec<ClientRule> {
            let list = settings.pointer(&format!("/permissions/{key}")).and_then(Json::as_array);
            let texts = list.into_iter().flatten().filter_map(Json::as_str);
            texts.map(ClientRule::of_tool).collect()
        };
        self.asks.extend(rules("ask").into_iter().chain(rules("deny")));
        if is_of_user {
            self.allows.extend(rules("allow"));
        }
    }

    /// Reads the files of a directory of Codex.
    fn read_folder(&mut self, world: &dyn World, folder: &Path) {
        let names = match world.list(folder) {
            Ok(names) => names,
            Err(WorldError::NotFound) => return,
            Err(_) => {
                self.unread = Some(folder.to_path_buf());
                return;
            }
        };
        let names: Vec<&String> = names.iter().filter(|it| it.ends_with(".rules")).collect();
        if names.len() > RULE_FILES_MAX {
            self.unread = Some(folder.to_path_buf());
        }
        names
            .iter()
            .take(RULE_FILES_MAX)
            .for_each(|it| self.read_prefixes(world, &folder.join(it)));
    }

    /// Reads the `prefix_rule` calls in a file of Codex.
    fn read_prefixes(&mut self, world: &dyn World, path: &Path) {
        let Some(text) = self.read(world, path) else { return };
        for call in text.split("prefix_rule").skip(1) {
            match prefix_rule(call) {
                Some((rule, decision)) if decision == "allow" => self.allows.push(rule),
                Some((rule, _)) => self.asks.push(rule),
                None => self.unread = Some(path.to_path_buf()),
            }
        }
    }

    /// Reads a file. `None` if it does not exist, or if it is recorded as unread.
    fn read(&mut self, world: &dyn World, path: &Path) -> Option<String> {
        match world.read(path, SETTINGS_FILE_BYTES_MAX).map(String::from_utf8) {
            Ok(Ok(text)) => Some(text),
            Err(WorldError::NotFound) => None,
            Ok(Err(_)) | Err(_) => {
                self.unread = Some(path.to_path_buf());
                None
            }
        }
    }
}

/// Returns the directory of the user's own settings of a client: where a variable says, else below the home directory.
/// `None` if it lies in the project, because a repository can set variables of a session.
fn user_folder(context: &GateContext<'_>, folder: UserFolder) -> Option<PathBuf> {
    let absolute =
        |it: &str| context.world.env(it).map(PathBuf::from).filter(|path| path.has_root());
    match absolute(folder.variable) {
        Some(path) => Some(path).filter(|it| !it.starts_with(&context.project.main)),
        None => Some(absolute("HOME")?.join(folder.below_home)),
    }
}

impl ClientRule {
    /// Parses a rule such as `Bash(npm test:*)`, `Read(./.env)`, or `WebFetch`.
    fn of_tool(text: &str) -> Self {
        let parts =
            text.split_once('(').and_then(|(tool, rest)| Some((tool, rest.strip_suffix(')')?)));
        match parts {
            Some((tool, argument)) => {
                Self::Tool { tool: tool.to_owned(), argument: Some(argument.to_owned()) }
            }
            None => Self::Tool { tool: text.to_owned(), argument: None },
        }
    }

    /// Returns the rule as its file has it.
    fn text(&self) -> String {
        match self {
            Self::Tool { tool, argument: None } => tool.clone(),
            Self::Tool { tool, argument: Some(argument) } => format!("{tool}({argument})"),
            Self::Prefix(words) => {
                let words: Vec<String> = words.iter().map(|it| it.join("|")).collect();
                words.join(" ")
            }
        }
    }

    /// Returns whether the rule lets a program run with these arguments.
    fn allows_program(&self, program: &Invocation) -> bool {
        let is_known = program.called.is_known() && program.args.iter().all(|it| it.is_known());
        is_known && self.matches_line(&program.line())
    }

    /// Returns whether the rule matches a command line without wrappers.
    fn matches_line(&self, line: &str) -> bool {
        match self {
            Self::Tool { tool, argument } if tool == "Bash" => match argument.as_deref() {
                None | Some("*") => true,
                Some(pattern) => match pattern.strip_suffix(":*") {
                    Some(prefix) => begins(line, prefix),
                    None => word_matches(pattern, line),
                },
            },
            Self::Tool { .. } => false,
            Self::Prefix(wanted) => {
                let words: Vec<&str> = line.split_whitespace().collect();
                wanted.len() <= words.len()
                    && wanted.iter().zip(words).all(|(any, word)| any.iter().any(|it| it == word))
            }
        }
    }

    /// Returns whether the rule may concern a call of a tool.
    fn concerns(&self, tool: &str, call_facts: &CallFacts) -> bool {
        let call = &call_facts.call;
        let mut lines = call.programs.iter().map(Invocation::line).chain([call.command.clone()]);
        match self {
            Self::Prefix(_) => lines.any(|it| self.matches_line(&it)),
            Self::Tool { tool: wanted, argument } if wanted == "Bash" => {
                // `git diff *` also concerns `git diff`.
                let program = argument.as_deref().and_then(|it| it.strip_suffix(" *"));
                let is_bare = |line: &str| program == Some(line);
                !call.command.is_empty() && lines.any(|it| self.matches_line(&it) || is_bare(&it))
            }
            Self::Tool { tool: wanted, argument: None } => word_matches(wanted, tool),
            Self::Tool { tool: wanted, argument: Some(argument) } => {
                let accesses: &[Access] = match wanted.as_str() {
                    "Read" => &[Access::Read],
                    "Edit" | "Write" => &[Access::Write, Access::Delete, Access::Move],
                    // A rule about something else than files concerns the tool as a whole.
                    _ => return word_matches(wanted, tool),
                };
                let globs = path_globs(argument, &call_facts.around);
                let globs = PathMatchers::new(globs.iter().map(String::as_str));
                let mut places =
                    call.files.iter().filter(|it| accesses.contains(&it.does)).map(|it| &it.place);
                places.any(|it: &ResolvedPath| globs.fit(it, &call_facts.around))
            }
        }
    }
}

/// Returns whether a line is a prefix, or continues it with another word.
fn begins(line: &str, prefix: &str) -> bool {
    line.strip_prefix(prefix).is_some_and(|it| it.is_empty() || it.starts_with(' '))
}

/// Returns the globs of a path in a rule of Claude Code: `//` is the root of the file system, `/` the project.
fn path_globs(pattern: &str, environment: &CallEnvironment) -> Vec<String> {
    if let Some(rest) = pattern.strip_prefix("//") {
        return vec![format!("/{rest}")];
    }
    if pattern.starts_with('~') {
        return vec![pattern.to_owned()];
    }
    let path = pattern.trim_start_matches("./");
    let CallEnvironment { project, folder, .. } = environment;
    match path.strip_prefix('/') {
        Some(rest) => vec![format!("{project}/{rest}")],
        None if path.contains('/') => {
            vec![format!("{folder}/{path}"), format!("{project}/{path}")]
        }
        None => vec![format!("**/{path}")],
    }
}

/// Parses the arguments of one `prefix_rule(pattern = ["git", ["status", "log"]], decision = "allow")`. `None` if it has
/// another form.
fn prefix_rule(call: &str) -> Option<(ClientRule, String)> {
    let decision = call.split_once("decision")?.1.trim_start().strip_prefix('=')?;
    let decision = decision.trim_start().strip_prefix(['"', '\''])?.split(['"', '\'']).next()?;
    let pattern = call.split_once("pattern")?.1.trim_start().strip_prefix('=')?.trim_start();
    let mut depth = 0_usize;
    let end = pattern.char_indices().find_map(|(at, c)| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0).then_some(at + 1)
    })?;
    let list = pattern.get(..end)?.replace('\'', "\"").replace(",]", "]").replace(", ]", "]");
    let words: Vec<Json> = serde_json::from_str(&list).ok()?;
    let alternatives = |it: &Json| match it.as_str() {
        Some(word) => Some(vec![word.to_owned()]),
        None => serde_json::from_value(it.clone()).ok(),
    };
    let words: Option<Vec<Vec<String>>> = words.iter().map(alternatives).collect();
    Some((ClientRule::Prefix(words?), decision.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_of_bash_matches_whole_words() {
        let expected = [
            ("Bash(npm test:*)", "npm test", true),
            ("Bash(npm test:*)", "npm test -- --watch", true),
            ("Bash(npm test:*)", "npm testing", false),
            ("Bash(git diff *)", "git diff src", true),
            ("Bash(git diff)", "git diff src", false),
            ("Bash", "anything", true),
            ("Read(./x)", "cat x", false),
        ];
        for (rule, line, matches) in expected {
            assert_eq!(ClientRule::of_tool(rule).matches_line(line), matches, "{rule}: {line}");
        }
    }

    #[test]
    fn a_prefix_rule_of_codex_is_read() {
        let text = "(\n  pattern = [\"git\", [\"status\", 'log'],],\n  decision = \"allow\",\n)";
        let (rule, decision) = prefix_rule(text).expect("a rule");
        assert_eq!(decision, "allow");
        assert!(rule.matches_line("git log -3") && !rule.matches_line("git push"));
        assert!(prefix_rule("(pattern = words, decision = \"allow\")").is_none());
    }
}
