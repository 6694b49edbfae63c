//! What is said to PowerShell, written as a shell reads it: its paths and escapes, its variables of the
//! environment, its blocks. What is no command there (`$_.Name`) stays as it is.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The tool of clients whose shell it is, and the programs.
const TOOL: &str = "PowerShell";
const PROGRAMS: [&str; 2] = ["pwsh", "powershell"];
/// How variables of the environment begin, in small letters.
const ENVIRONMENT: &str = "$env:";
/// The variable that the home stands in there, in small letters.
const HOME: &str = "userprofile";
/// Words before a block, or before a condition and a block, in small letters.
const BEFORE_BLOCKS: [&str; 10] =
    ["if", "elseif", "else", "foreach", "while", "do", "try", "catch", "finally", "switch"];

/// Whether a program is this shell.
pub(super) fn is_one(program: &str) -> bool {
    PROGRAMS.iter().any(|it| program.eq_ignore_ascii_case(it))
}

/// The command line of a tool as a shell would read it.
pub(super) fn command<'c>(tool: &str, command: &'c str) -> Cow<'c, str> {
    if tool == TOOL { as_shell(command).into() } else { command.into() }
}

/// What is said to PowerShell, as a shell would read it.
pub(super) fn as_shell(said: &str) -> String {
    let mut writing = Writing { rest: said, ..Writing::default() };
    while writing.step() {}
    writing.out
}

/// The walk over what is said.
#[derive(Default)]
struct Writing<'s> {
    rest: &'s str,
    out: String,
    /// The quote that is open.
    quote: Option<char>,
    /// Of each bracket that is open, whether it begins a block.
    blocks: Vec<bool>,
}

impl<'s> Writing<'s> {
    /// Writes what comes next; whether there was something.
    fn step(&mut self) -> bool {
        let Some(next) = self.rest.chars().next() else { return false };
        if self.quote != Some('\'') && self.variable() {
            return true;
        }
        if self.quote.is_none() && next.is_ascii_alphabetic() {
            self.word();
            return true;
        }
        self.take(next.len_utf8());
        match (next, self.quote) {
            ('\'' | '"', None) => self.quote = Some(next),
            (_, Some(quote)) if next == quote => self.quote = None,
            ('{', None) => return self.open(),
            ('}', None) => return self.close(),
            _ => {}
        }
        self.out.push(match next {
            '\\' => '/',
            '`' if self.quote != Some('\'') => '\\',
            other => other,
        });
        true
    }

    /// Takes so many bytes off.
    fn take(&mut self, bytes: usize) -> &'s str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// A variable of the environment, where one stands here.
    fn variable(&mut self) -> bool {
        let begins = self.rest.get(..ENVIRONMENT.len());
        if !begins.is_some_and(|it| it.eq_ignore_ascii_case(ENVIRONMENT)) {
            return false;
        }
        self.take(ENVIRONMENT.len());
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let name = self.take(end.unwrap_or(self.rest.len()));
        let name = if name.eq_ignore_ascii_case(HOME) { "HOME" } else { name };
        write!(self.out, "${{{name}}}").ok();
        true
    }

    /// A word; of one before a block the condition alone is kept, where that may be a command.
    fn word(&mut self) {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
        let begins =
            self.out.chars().last().is_none_or(|it| it.is_whitespace() || ";{}(".contains(it));
        let word = self.take(end.unwrap_or(self.rest.len()));
        let behind = self.rest.trim_start();
        let is_before = BEFORE_BLOCKS.iter().any(|it| word.eq_ignore_ascii_case(it))
            && (behind.starts_with(['(', '{']) || word.eq_ignore_ascii_case("else"));
        if !begins || !is_before {
            self.out.push_str(word);
            return;
        }
        if let Some(condition) = in_brackets(behind) {
            let before = self.rest.len().saturating_sub(behind.len());
            self.take(before.saturating_add(condition.len()).saturating_add(2));
            let asked = condition.split_once(" in ").map_or(condition, |it| it.1).trim();
            if asked.starts_with(|c: char| c.is_ascii_alphabetic()) || asked.contains('(') {
                write!(self.out, "\n{}\n", as_shell(asked)).ok();
            }
        }
    }

    /// `{`, which begins a block where a command stands behind it.
    fn open(&mut self) -> bool {
        let is_made = self.out.ends_with(['$', '@']);
        let is_block =
            !is_made && self.rest.trim_start().starts_with(|c: char| c.is_ascii_alphabetic());
        self.blocks.push(is_block);
        // The empty command is there for blocks without any.
        self.out.push_str(if is_block { "\n{ :\n" } else { "{" });
        true
    }

    fn close(&mut self) -> bool {
        if self.blocks.pop() != Some(true) {
            self.out.push('}');
            return true;
        }
        self.out.push_str("\n}");
        if !self.rest.trim_start().starts_with(['|', ';', '&', ')']) {
            self.out.push('\n');
        }
        true
    }
}

/// What stands between the first bracket of a text, with which it begins, and the one that ends it.
fn in_brackets(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth = depth.saturating_add(1),
            ')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return text.get(1..at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_escapes_and_variables_are_those_of_a_shell() {
        for (said, read) in [
            (r"Get-Content C:\Users\ada\.env", "Get-Content C:/Users/ada/.env"),
            ("Write-Output \"a `\"b`\"\"", "Write-Output \"a \\\"b\\\"\""),
            (r"cat $env:USERPROFILE\.ssh\id_rsa", "cat ${HOME}/.ssh/id_rsa"),
            ("$Env:CI; ls", "${CI}; ls"),
            ("'$env:CI `n'", "'$env:CI `n'"),
            ("git status", "git status"),
            ("", ""),
        ] {
            assert_eq!(command(TOOL, said), read);
            assert_eq!(command("Bash", said), said);
        }
    }

    #[test]
    fn blocks_with_commands_are_blocks_of_a_shell() {
        for (said, lines) in [
            ("if (Test-Path a) { ri a }", "Test-Path a/{ :/ri a/}"),
            ("if ($x -eq 1) { ls } else { pwd }", "{ :/ls/}/{ :/pwd/}"),
            ("try { ls } catch { pwd }", "{ :/ls/}/{ :/pwd/}"),
            ("foreach ($f in ls a) { cat $f }", "ls a/{ :/cat $f/}"),
            ("ls | % { $_.Name } | sort", "ls | % { $_.Name } | sort"),
            ("ls | % { ri $_ } | sort", "ls | %/{ :/ri $_/} | sort"),
            ("x @{a=1} ${b}", "x @{a=1} ${b}"),
            ("'if (a) { b }'", "'if (a) { b }'"),
            ("git log --if (", "git log --if ("),
        ] {
            let read = as_shell(said);
            let read: Vec<&str> = read.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
            assert_eq!(read.join("/"), lines, "{said}");
        }
    }
}
