//! PowerShell: command lines are rewritten as the equivalent shell text, which `statements` then scans.
//!
//! Contains: the translation of paths, escapes, environment variables and blocks, and the options of the programs
//! `pwsh` and `powershell`.
//! Does not contain: a parser. An expression that is not a command (`$_.Name`) stays as written.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::super::shell::{ShellWord, quote};
use super::words::Text;
use crate::limits::SHELL_TEXT_MAX;

/// The tool of clients whose shell it is.
const TOOL: &str = "PowerShell";
/// How variables of the environment begin, in small letters.
const ENVIRONMENT: &str = "$env:";
/// The variable that the home stands in there, in small letters.
const HOME: &str = "userprofile";
/// Behind this, other shells are told what to do.
const CODE_OPTION: &str = " -c";
/// Commands that policies know; there they are written in any case.
const COMMANDS: [&str; 21] = [
    "Remove-Item",
    "Get-Content",
    "Set-Content",
    "Add-Content",
    "Clear-Content",
    "Out-File",
    "New-Item",
    "Copy-Item",
    "Move-Item",
    "Select-String",
    "Import-Csv",
    "Get-FileHash",
    "Format-Volume",
    "Clear-Disk",
    "Initialize-Disk",
    "Stop-Computer",
    "Restart-Computer",
    "Invoke-Expression",
    "New-Service",
    "Set-MpPreference",
    "Add-MpPreference",
];
/// Words before a block, or before a condition and a block, in small letters.
const BEFORE_BLOCKS: [&str; 10] =
    ["if", "elseif", "else", "foreach", "while", "do", "try", "catch", "finally", "switch"];

/// The command line of a tool as a shell would read it; one that is too long is read by nobody.
pub(super) fn command<'c>(tool: &str, command: &'c str) -> Cow<'c, str> {
    let is_read = tool == TOOL && command.len() <= SHELL_TEXT_MAX;
    if is_read { as_shell(command).into() } else { command.into() }
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
    /// Whether what it holds is said to another shell, which has escapes of its own.
    is_foreign: bool,
    /// The brackets that are open.
    open: Vec<Bracket>,
}

impl<'s> Writing<'s> {
    /// Writes what comes next; whether there was something.
    fn step(&mut self) -> bool {
        let Some(next) = self.rest.chars().next() else { return false };
        if self.quote.is_none() && (self.aside() || self.expression()) {
            return true;
        }
        if self.quote != Some('\'') && self.variable() {
            return true;
        }
        if self.quote.is_none() && next.is_ascii_alphabetic() {
            self.word();
            return true;
        }
        self.take(next.len_utf8());
        match (next, self.quote) {
            ('`', None | Some('"')) => {
                self.out.push('\\');
                let escaped = self.rest.chars().next().map_or(0, char::len_utf8);
                let escaped = self.take(escaped);
                self.out.push_str(escaped);
                return true;
            }
            ('\'' | '"', None) => {
                self.quote = Some(next);
                self.is_foreign = self.out.trim_end().ends_with(CODE_OPTION);
            }
            (_, Some(quote)) if next == quote => (self.quote, self.is_foreign) = (None, false),
            ('(' | ')' | '{' | '}', None) => {
                self.bracket(next);
                return true;
            }
            _ => {}
        }
        self.out.push(if next == '\\' && !self.is_foreign { '/' } else { next });
        true
    }

    /// A comment, which is left out, or a text of several lines, which is quoted as a shell does.
    fn aside(&mut self) -> bool {
        let begins = self.out.chars().last().is_none_or(char::is_whitespace);
        let ends = [("<#", "#>"), ("#", "\n"), ("@'\n", "\n'@"), ("@\"\n", "\n\"@")];
        let Some((start, end)) = ends.iter().find(|it| self.rest.starts_with(it.0)) else {
            return false;
        };
        if *start == "#" && !begins {
            return false;
        }
        self.take(start.len());
        let said = self.take(self.rest.find(end).unwrap_or(self.rest.len()));
        match *start {
            "<#" => _ = self.take(end.len()),
            "#" => {}
            _ => {
                self.take(end.len());
                self.out.push_str(&quote(said));
            }
        }
        true
    }

    /// A statement that begins with a variable: what is put into one may be a command, anything else is
    /// none.
    fn expression(&mut self) -> bool {
        let before = self.out.trim_end_matches(' ').chars().last();
        let name = self.rest.strip_prefix('$').unwrap_or_default();
        if !before.is_none_or(|it| "\n;".contains(it)) || !name.starts_with(is_name) {
            return false;
        }
        let value = |behind: &'s str| behind.trim_start().strip_prefix('=').map(str::trim_start);
        if let Some((name, behind)) = self.environment() {
            let Some(value) = value(behind).filter(|it| !it.starts_with('=')) else { return false };
            write!(self.out, "export {name}=").ok();
            self.rest = value;
            return true;
        }
        let (name, behind) = name.split_at(name.find(|c| !is_name(c)).unwrap_or(name.len()));
        match value(behind).filter(|it| it.starts_with(begins_command)) {
            Some(command) => self.rest = command,
            None => {
                write!(self.out, ": ${name}").ok();
                self.rest = behind;
            }
        }
        true
    }

    /// Takes so many bytes off.
    fn take(&mut self, bytes: usize) -> &'s str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// The name of a variable of the environment that stands here, and what stands behind it.
    fn environment(&self) -> Option<(&'s str, &'s str)> {
        let (begins, named) = self.rest.split_at_checked(ENVIRONMENT.len())?;
        let end = named.find(|c| !is_name(c)).unwrap_or(named.len());
        begins.eq_ignore_ascii_case(ENVIRONMENT).then(|| named.split_at(end))
    }

    /// A variable of the environment, where one stands here.
    fn variable(&mut self) -> bool {
        let Some((name, behind)) = self.environment() else { return false };
        let name = if name.eq_ignore_ascii_case(HOME) { "HOME" } else { name };
        write!(self.out, "${{{name}}}").ok();
        self.rest = behind;
        true
    }

    /// A word; one before a block is left out, and what it asks is a statement of its own.
    fn word(&mut self) {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
        let before = self.out.chars().last();
        let begins = before.is_none_or(|it| it.is_whitespace() || ";{}(".contains(it));
        let word = self.take(end.unwrap_or(self.rest.len()));
        let behind = self.rest.trim_start();
        let is_before = BEFORE_BLOCKS.iter().any(|it| word.eq_ignore_ascii_case(it))
            && (behind.starts_with(['(', '{']) || word.eq_ignore_ascii_case("else"));
        if !begins || !is_before {
            let known = COMMANDS.iter().find(|it| word.eq_ignore_ascii_case(it));
            self.out.push_str(known.copied().unwrap_or(word));
            return;
        }
        let Some(condition) = behind.strip_prefix('(') else { return };
        self.rest = condition.trim_start_matches([' ', '!']);
        if word.eq_ignore_ascii_case("foreach") {
            let named = self.rest.strip_prefix('$').unwrap_or(self.rest);
            let behind = named.trim_start_matches(is_name).trim_start();
            self.rest = behind.strip_prefix("in ").map_or(self.rest, str::trim_start);
        }
        // What begins with a value is no command; one behind it is.
        self.out.push_str(if self.rest.starts_with(begins_command) { "\n" } else { "\n: " });
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

/// Whether the name of a variable may hold this.
const fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether a command may begin with this.
fn begins_command(first: char) -> bool {
    first.is_ascii_alphabetic() || "(&".contains(first)
}

/// Its names.
const PROGRAMS: [&str; 2] = ["pwsh", "powershell"];
/// Options of the program that take a value, in small letters.
const VALUE_OPTIONS: [&str; 9] = [
    "executionpolicy",
    "ep",
    "version",
    "inputformat",
    "outputformat",
    "windowstyle",
    "configurationname",
    "workingdirectory",
    "settingsfile",
];

/// Whether a program is this shell.
pub(super) fn is_one(program: &str) -> bool {
    PROGRAMS.iter().any(|it| program.eq_ignore_ascii_case(it))
}

/// The code that the program is given among its words; nothing where it is given a file, or none.
pub(super) fn code(args: &[Text]) -> Option<Text> {
    let mut words = args.iter().enumerate();
    while let Some((at, word)) = words.next() {
        let written = word.text.to_ascii_lowercase();
        let Some(option) = written.strip_prefix('-') else {
            let is_script = written.ends_with(".ps1") || word.pipe;
            return (!is_script)
                .then(|| <Text as ShellWord>::joined(args.get(at..).unwrap_or_default()));
        };
        let is =
            |names: &[&str]| !option.is_empty() && names.iter().any(|it| it.starts_with(option));
        if is(&["command", "commandwithargs"]) {
            return Some(<Text as ShellWord>::joined(args.get(at.saturating_add(1)..)?));
        }
        if option.is_empty() || is(&["encodedcommand", "file"]) || option == "ec" {
            return None;
        }
        if is(&VALUE_OPTIONS) {
            words.next();
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
            (r"bash -c 'rm a\ b' .\c", r"bash -c 'rm a\ b' ./c"),
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
            ("if ($x -eq 1) { ls } else { pwd }", ": $x -eq 1/{ :/ls/}/{ :/pwd/}"),
            ("try { ls } catch { pwd }", "{ :/ls/}/{ :/pwd/}"),
            ("if ((a) -and (b)) { ls }", "(a) -and (b)/{ :/ls/}"),
            ("if (a) { if ($x) { ls } }", "a/{ :/: $x/{ :/ls/}/}"),
            ("if (ü) { ls } é", ": ü/{ :/ls/}/é"),
            ("foreach ($f in ls a) { cat $f }", "ls a/{ :/cat $f/}"),
            ("ls | % { $_.Name } | sort", "ls | % { $_.Name } | sort"),
            ("ls | % { ri $_ } | sort", "ls | %/{ :/ri $_/} | sort"),
            ("x @{a=1} ${b}", "x @{a=1} ${b}"),
            ("'if (a) { b }'", "'if (a) { b }'"),
            ("git log --if (", "git log --if ("),
            ("if ($x -eq \")\") { ls }", ": $x -eq \")\"/{ :/ls/}"),
            ("if (& git push) { ls }", "& git push/{ :/ls/}"),
            ("if ($y; git push) { ls }", ": $y; git push/{ :/ls/}"),
            ("while (!(git push)) { ls }", "(git push)/{ :/ls/}"),
            ("if (git push; echo a in b) { ls }", "git push; echo a in b/{ :/ls/}"),
            ("$x -replace 'a', 'b'; $y = ls", ": $x -replace 'a', 'b'; ls"),
            ("$x = 'a'", ": $x = 'a'"),
            ("$env:CI = '1'; ls", "export CI='1'; ls"),
            ("# don't\nls <# it's #> a", "ls  a"),
            ("@'\nit's\n'@ | cat", "'it'\\''s' | cat"),
            ("remove-item a", "Remove-Item a"),
        ] {
            let read = as_shell(said);
            let read: Vec<&str> = read.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
            assert_eq!(read.join("/"), lines, "{said}");
        }
    }

    #[test]
    fn what_never_ends_is_read_to_its_end() {
        for said in [
            "if (",
            "if ($",
            "{",
            "}",
            "( {",
            ") }",
            "foreach ($f in ",
            "foreach($",
            "else ",
            "@{$env:",
            "`",
        ] {
            let long = said.repeat(20_000);
            assert!(as_shell(&long).len() <= long.len() * 4, "{said}");
        }
    }

    #[test]
    fn code_stands_behind_the_options() {
        let given = |line: &str| {
            let words: Vec<Text> = line.split(' ').map(Text::known).collect();
            code(&words).map(|it| it.text)
        };
        for (line, said) in [
            ("-NoProfile -ExecutionPolicy Bypass -Command ls a", Some("ls a")),
            ("-c ls", Some("ls")),
            ("-NoProfile ls a", Some("ls a")),
            ("-ep Bypass -File a.ps1", None),
            ("-ExecutionPolicy Bypass a.ps1", None),
            ("-EncodedCommand ZQBj", None),
            ("-", None),
        ] {
            assert_eq!(given(line).as_deref(), said, "{line}");
        }
    }
}
