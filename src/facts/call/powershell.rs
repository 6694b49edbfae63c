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

/// What a bracket begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bracket {
    /// Commands: `{ ls }`.
    Block,
    /// What is asked before a block: `(Test-Path a)`.
    Condition,
    /// Something else in braces: `{ $_.Name }`.
    Braces,
    /// Something else in round brackets.
    Round,
}

/// The walk over what is said.
#[derive(Default)]
struct Writing<'s> {
    rest: &'s str,
    out: String,
    /// The quote that is open.
    quote: Option<char>,
    /// The brackets that are open.
    open: Vec<Bracket>,
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
            ('(' | ')' | '{' | '}', None) => {
                self.bracket(next);
                return true;
            }
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

    /// A word; one before a block is left out, and so is its condition where that is no command.
    fn word(&mut self) {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
        let before = self.out.chars().last();
        let begins = before.is_none_or(|it| it.is_whitespace() || ";{}(".contains(it));
        let word = self.take(end.unwrap_or(self.rest.len()));
        let behind = self.rest.trim_start();
        let is_before = BEFORE_BLOCKS.iter().any(|it| word.eq_ignore_ascii_case(it))
            && (behind.starts_with(['(', '{']) || word.eq_ignore_ascii_case("else"));
        if !begins || !is_before {
            self.out.push_str(word);
            return;
        }
        let Some(condition) = behind.strip_prefix('(') else { return };
        self.rest = condition;
        let all = condition.split_once(')').map_or(condition, |it| it.0);
        let is_value = !all.contains('(') && !all.starts_with(|it: char| it.is_ascii_alphabetic());
        match all.split_once(" in ") {
            Some((name, _)) => self.take(name.len().saturating_add(" in ".len())),
            None if is_value => self.take(all.len()),
            None => "",
        };
        self.out.push('\n');
        self.open.push(Bracket::Condition);
    }

    fn bracket(&mut self, bracket: char) {
        let is_command = |it: &str| it.trim_start().starts_with(|c: char| c.is_ascii_alphabetic());
        let last = self.open.last().copied();
        match (bracket, last) {
            // The empty command is there for blocks without any.
            ('{', _) if is_command(self.rest) && !self.out.ends_with(['$', '@']) => {
                self.open.push(Bracket::Block);
                self.out.push_str("\n{ :\n");
            }
            ('}', Some(Bracket::Block)) => {
                self.open.pop();
                let goes_on = self.rest.trim_start().starts_with(['|', ';', '&', ')']);
                self.out.push_str(if goes_on { "\n}" } else { "\n}\n" });
            }
            (')', Some(Bracket::Condition)) => {
                self.open.pop();
                self.out.push('\n');
            }
            ('{' | '(', _) => {
                self.open.push(if bracket == '{' { Bracket::Braces } else { Bracket::Round });
                self.out.push(bracket);
            }
            ('}', Some(Bracket::Braces)) | (')', Some(Bracket::Round)) => {
                self.open.pop();
                self.out.push(bracket);
            }
            _ => self.out.push(bracket),
        }
    }
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
            ("if ((a) -and (b)) { ls }", "(a) -and (b)/{ :/ls/}"),
            ("if (a) { if ($x) { ls } }", "a/{ :/{ :/ls/}/}"),
            ("if (ü) { ls } é", "{ :/ls/}/é"),
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

    #[test]
    fn what_never_ends_is_read_to_its_end() {
        for said in
            ["if (", "if ($", "{", "}", "( {", ") }", "foreach ($f in ", "else ", "@{$env:", "`"]
        {
            let long = said.repeat(20_000);
            assert!(as_shell(&long).len() <= long.len() * 4, "{said}");
        }
    }
}
