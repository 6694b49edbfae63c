//! What is worth carrying over from a session: its facts, and what git says of its folder.

use std::collections::BTreeSet;
use std::path::Path;

use super::SummaryInput;
use policyd_base::text::counted;
use policyd_fact_table::context_facts::ContextUsage;
use policyd_facts::{CommandOutcome, CommandVerdict, Facts, ShellCommand};

/// Commands, messages, and prompts in the summary.
const EACH_MAX: usize = 8;

/// Answers of git; unavailable ones are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitState {
    /// `git status --porcelain=v1 -z --branch`, or what it began with.
    pub status: Option<String>,
    /// `git log --oneline`, the newest first.
    pub log: Option<String>,
    /// `git diff --name-only -z` since some commit.
    pub changed: Option<String>,
}

/// A path that changed, and how.
fn changed(git: &GitState) -> Vec<String> {
    let mut files = Vec::new();
    let status = git.status.as_deref().unwrap_or_default();
    let mut entries = status.split('\0').filter(|it| !it.is_empty());
    while let Some(entry) = entries.next() {
        let Some((how, path)) = entry.split_at_checked(3) else { continue };
        if how.starts_with("##") {
            continue;
        }
        if how.starts_with(['R', 'C']) {
            entries.next(); // Where it comes from.
        }
        files.push(path.to_owned());
    }
    let since = git.changed.as_deref().unwrap_or_default();
    files.extend(since.split('\0').filter(|it| !it.is_empty()).map(str::to_owned));
    files
}

/// The branch, as the first entry of the status has it.
fn branch(git: &GitState) -> Option<&str> {
    let first = git.status.as_deref()?.split('\0').next()?;
    let rest = first.strip_prefix("## ")?;
    let rest = rest.strip_prefix("No commits yet on ").unwrap_or(rest);
    rest.split("...").next()
}

impl SummaryInput {
    /// What is known of a session. `folder`: where its project lies.
    #[must_use]
    pub fn of(facts: &Facts, gauge: &ContextUsage, git: &GitState, folder: &Path) -> Self {
        Self {
            iteration: facts.prompts.count,
            goal: goal(facts),
            status: status(facts, gauge, git),
            files: files(facts, git, folder),
            errors: errors(facts),
            tests: tests(facts),
            todos: todos(facts),
            progress: progress(facts, git),
        }
    }
}

/// The first prompt is what it is about; the last one, where it is another, what it is about now.
fn goal(facts: &Facts) -> String {
    let prompts = &facts.prompts;
    let first = prompts.first.first().map(|it| it.text.trim()).unwrap_or_default();
    let last = prompts.last.last().or(prompts.first.last()).map(|it| it.text.trim());
    match last.filter(|it| *it != first) {
        Some(last) => {
            let short: String = first.chars().take(SHORT).collect();
            let more = if short.len() < first.len() { "…" } else { "" };
            format!("{short}{more}\nNow: {last}")
        }
        None => first.to_owned(),
    }
}

/// Characters of the first prompt where a later one says what it is about now.
const SHORT: usize = 240;

fn status(facts: &Facts, gauge: &ContextUsage, git: &GitState) -> Vec<String> {
    let mut lines = Vec::new();
    if facts.prompts.count > 0 {
        let prompts = counted(facts.prompts.count, "prompt");
        lines.push(format!("{prompts}, {}", counted(facts.tools.total, "tool call")));
    }
    let recorded = Some(facts.branch.as_str()).filter(|it| !it.is_empty());
    if let Some(branch) = branch(git).or(recorded) {
        lines.push(format!("branch {branch}"));
    }
    if gauge.known {
        let left = gauge.window.saturating_sub(gauge.tokens);
        lines.push(format!("context {} % full, {left} tokens left", gauge.percent));
    }
    if gauge.compactions > 0 {
        lines.push(counted(gauge.compactions, "compaction"));
    }
    lines
}

/// Files that the agent edited, the newest first; then what else git sees.
fn files(facts: &Facts, git: &GitState, folder: &Path) -> Vec<String> {
    let edited = facts.files.iter().rev().map(|it| {
        let path = Path::new(&it.path);
        path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned()
    });
    let mut seen = BTreeSet::new();
    edited.chain(changed(git)).filter(|it| seen.insert(it.clone())).collect()
}

/// Commands that failed, the newest first; each once.
fn errors(facts: &Facts) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut lines: Vec<String> = Vec::new();
    if facts.tools.same_errors > 1 {
        let error = &facts.tools.last_error;
        lines.push(format!("{} times in a row: {error}", facts.tools.same_errors));
    }
    let failed = facts.commands.recent.iter().rev();
    let failed = failed
        .filter(|it| it.verdict == CommandVerdict::Failed || it.outcome == CommandOutcome::Failed);
    lines.extend(failed.filter(|it| seen.insert(it.text.clone())).take(EACH_MAX).map(|it| {
        let how = how(it);
        if how.is_empty() { it.text.clone() } else { format!("{}: {how}", it.text) }
    }));
    lines
}

/// How a command failed: the line that decided, else the last one it printed.
fn how(it: &ShellCommand) -> String {
    let last = it.output.lines().rev().find(|it| !it.trim().is_empty()).unwrap_or_default();
    let line = if it.quote.is_empty() { last } else { it.quote.as_str() };
    match it.exit_code {
        Some(code) if line.is_empty() => format!("exit code {code}"),
        _ => line.trim().to_owned(),
    }
}

/// The last run of each kind of tests and checks.
fn tests(facts: &Facts) -> Vec<String> {
    let kinds = facts.commands.by_kind.iter().filter(|(_, it)| it.count > 0);
    let mut kinds: Vec<_> = kinds
        .filter_map(|(name, it)| {
            let (word, at) = match it.last.verdict {
                CommandVerdict::Passed => ("passing", it.last_passed_seq),
                CommandVerdict::Failed => ("failing", it.last_failed_seq),
                CommandVerdict::Unknown | CommandVerdict::Empty | CommandVerdict::Unable => {
                    return None;
                }
            };
            let quote = if it.last.quote.is_empty() { "" } else { &it.last.quote };
            let quote = if quote.is_empty() { String::new() } else { format!(" ({quote})") };
            let is_test = name.contains("test");
            Some((!is_test, at, format!("{name} {word}: {}{quote}", it.last.text)))
        })
        .collect();
    // Tests before linters, the newest first.
    kinds.sort_by(|one, other| one.0.cmp(&other.0).then(other.1.cmp(&one.1)));
    kinds.into_iter().map(|(_, _, line)| line).collect()
}

fn todos(facts: &Facts) -> Vec<String> {
    let open = facts
        .todos
        .items
        .iter()
        .filter(|it| !matches!(it.status.as_str(), "completed" | "deleted" | "cancelled"));
    let mut open: Vec<_> = open.collect();
    open.sort_by_key(|it| it.status != "in_progress");
    open.into_iter()
        .map(|it| {
            if it.status == "in_progress" {
                format!("{} (in progress)", it.content)
            } else {
                it.content.clone()
            }
        })
        .collect()
}

/// What was said last, and the last commits.
fn progress(facts: &Facts, git: &GitState) -> Vec<String> {
    let said = facts.messages.last.iter().rev().take(EACH_MAX).map(|it| {
        let line = it.text.lines().map(str::trim).find(|it| !it.is_empty()).unwrap_or_default();
        line.to_owned()
    });
    let commits = git.log.as_deref().unwrap_or_default().lines().take(EACH_MAX);
    let commits = commits.map(|it| format!("commit {it}"));
    let (mut said, mut commits) = (said.collect::<Vec<_>>(), commits.collect::<Vec<_>>());
    // The two take turns, so that neither hides the other.
    let mut lines = Vec::new();
    while !said.is_empty() || !commits.is_empty() {
        lines.extend((!said.is_empty()).then(|| said.remove(0)));
        lines.extend((!commits.is_empty()).then(|| commits.remove(0)));
    }
    lines
}
