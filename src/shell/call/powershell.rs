//! PowerShell: command lines are rewritten as the equivalent shell text, which `statements` then scans.
//!
//! Contains: the translation of paths, escapes, environment variables and blocks, and the options of the programs
//! `pwsh` and `powershell`.
//! Does not contain: a parser. An expression that is not a command (`$_.Name`) stays as written.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::shell_text::ShellText;
use crate::limits::SHELL_TEXT_MAX;
use crate::shell::{ShellWord, quote};

/// The tool that runs PowerShell.
const TOOL: &str = "PowerShell";
/// Prefix of environment variables, in lower case.
const ENVIRONMENT: &str = "$env:";
/// Environment variable of the home directory, in lower case.
const HOME: &str = "userprofile";
/// The variable that names the script which each session runs, in lower case, and its path in the home directory.
const PROFILE: (&str, &str) = ("$profile", "/.config/powershell/Microsoft.PowerShell_profile.ps1");
/// Option that is followed by text for another shell.
const CODE_OPTION: &str = " -c";
/// Commands that policies name. PowerShell ignores their case, so they are rewritten as listed.
const COMMANDS: [&str; 46] = [
    "Remove-Item",
    "Get-Content",
    "Set-Content",
    "Add-Content",
    "Clear-Content",
    "Out-File",
    "New-Item",
    "Copy-Item",
    "Expand-Archive",
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
    "Start-Process",
    "Invoke-RestMethod",
    "Invoke-WebRequest",
    "Stop-Process",
    "Get-Process",
    "Stop-Service",
    "Clear-EventLog",
    "Clear-ItemProperty",
    "Remove-ItemProperty",
    "Set-ExecutionPolicy",
    "Remove-Service",
    "Clear-RecycleBin",
    "New-ItemProperty",
    "Set-ItemProperty",
    "Register-ScheduledTask",
    "Register-ScheduledJob",
    "Unregister-ScheduledTask",
    "Set-ScheduledTask",
    "New-NetFirewallRule",
    "Set-NetFirewallProfile",
    "Set-Service",
    "Publish-Module",
    "Publish-Script",
    "Publish-PSResource",
];
/// Keywords before a block, or before a condition and a block, in lower case.
const BEFORE_BLOCKS: [&str; 10] =
    ["if", "elseif", "else", "foreach", "while", "do", "try", "catch", "finally", "switch"];

/// Translates the command line of a tool. A command line above the limit is returned unchanged; the
/// scan rejects it.
pub(super) fn command<'c>(tool: &str, command: &'c str) -> Cow<'c, str> {
    let is_read = tool == TOOL && command.len() <= SHELL_TEXT_MAX;
    if is_read { as_shell(command).into() } else { command.into() }
}

/// Translates PowerShell text to shell text.
pub(super) fn as_shell(said: &str) -> String {
    let mut writing = ShellTranslator { rest: said, ..ShellTranslator::default() };
    while writing.step() {}
    writing.out
}

/// What an opening bracket begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bracket {
    /// Commands: `{ ls }`.
    Block,
    /// A condition before a block: `(Test-Path a)`.
    Condition,
    /// Other braces: `{ $_.Name }`.
    Braces,
    /// Other parentheses.
    Round,
    /// The arguments of a method: `$x.Split(';')`.
    Method,
}

/// Translates PowerShell text from left to right.
#[derive(Default)]
struct ShellTranslator<'s> {
    rest: &'s str,
    out: String,
    /// The open quote.
    quote: Option<char>,
    /// Whether the open quote contains text for another shell, which has other escapes.
    is_foreign: bool,
    /// Whether the current statement is a value and not a command.
    is_value: bool,
    /// The open brackets.
    open: Vec<Bracket>,
}

impl<'s> ShellTranslator<'s> {
    /// Translates the next token. Returns false at the end.
    fn step(&mut self) -> bool {
        let Some(next) = self.rest.chars().next() else { return false };
        if self.quote.is_none() && (self.aside() || self.expression()) {
            return true;
        }
        if self.quote != Some('\'') && (self.profile() || self.variable()) {
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
            (';' | '\n' | '|', None) => self.is_value = false,
            _ => {}
        }
        self.out.push(if next == '\\' && !self.is_foreign { '/' } else { next });
        true
    }

    /// Removes a comment, or translates a here-string to a quoted word.
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

    /// Translates the variable of the script that each session runs.
    fn profile(&mut self) -> bool {
        let (name, path) = PROFILE;
        let Some((begins, behind)) = self.rest.split_at_checked(name.len()) else { return false };
        if !begins.eq_ignore_ascii_case(name) || behind.starts_with(is_name) {
            return false;
        }
        // A shell replaces `~` only outside of quotes.
        self.out.push_str(if self.quote.is_none() { "~" } else { "${HOME}" });
        self.out.push_str(path);
        // `$PROFILE.CurrentUserAllHosts` is another such script.
        let member = behind.strip_prefix('.').unwrap_or_default();
        let end = member.find(|c| !is_name(c)).unwrap_or(member.len());
        self.rest = if end > 0 { member.get(end..).unwrap_or_default() } else { behind };
        true
    }

    /// Translates a statement that begins with a variable. If the assigned value may be a command,
    /// the command is kept; otherwise the statement has no effect.
    fn expression(&mut self) -> bool {
        let before = self.out.trim_end_matches(' ').chars().last();
        if !before.is_none_or(|it| "\n;".contains(it)) {
            return false;
        }
        // `[Math]::Max(1, 2)`
        let class = self.rest.strip_prefix('[').unwrap_or_default();
        let end = class.find(|c| !(is_name(c) || c == '.')).unwrap_or(class.len());
        if end > 0 && class.get(end..).is_some_and(|it| it.starts_with("]::")) {
            self.out.push_str(": ");
            self.is_value = true;
            self.take(end + 4);
            return true;
        }
        let name = self.rest.strip_prefix('$').unwrap_or_default();
        if !name.starts_with(is_name) {
            return false;
        }
        let value = |behind: &'s str| behind.trim_start().strip_prefix('=').map(str::trim_start);
        if let Some((name, behind)) = self.environment() {
            let Some(value) = value(behind).filter(|it| !it.starts_with('=')) else {
                if behind.starts_with(['.', '[']) {
                    self.out.push_str(": ");
                    self.is_value = true;
                }
                return false;
            };
            write!(self.out, "export {name}=").ok();
            self.rest = value;
            return true;
        }
        let (name, behind) = name.split_at(name.find(|c| !is_name(c)).unwrap_or(name.len()));
        match value(behind).filter(|it| it.starts_with(begins_command)) {
            Some(command) => self.rest = command,
            None => {
                write!(self.out, ": ${name}").ok();
                self.is_value = true;
                self.rest = behind;
            }
        }
        true
    }

    /// Consumes a number of bytes.
    fn take(&mut self, bytes: usize) -> &'s str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// Returns the name of the environment variable at this position, and the rest.
    fn environment(&self) -> Option<(&'s str, &'s str)> {
        let (begins, named) = self.rest.split_at_checked(ENVIRONMENT.len())?;
        let end = named.find(|c| !is_name(c)).unwrap_or(named.len());
        begins.eq_ignore_ascii_case(ENVIRONMENT).then(|| named.split_at(end))
    }

    /// Translates an environment variable at this position.
    fn variable(&mut self) -> bool {
        let Some((name, behind)) = self.environment() else { return false };
        let name = if name.eq_ignore_ascii_case(HOME) { "HOME" } else { name };
        write!(self.out, "${{{name}}}").ok();
        self.rest = behind;
        true
    }

    /// Translates a word. A keyword before a block is removed, and its condition becomes a
    /// statement.
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
        // A condition that begins with a value is not a command, but a later statement in it may be
        // one.
        self.is_value = !self.rest.starts_with(begins_command);
        self.out.push_str(if self.is_value { "\n: " } else { "\n" });
        self.open.push(Bracket::Condition);
    }

    /// Returns whether an argument of a command can begin here.
    fn is_argument(&self) -> bool {
        let before = self.out.trim_end_matches([' ', '\t']);
        before.len() < self.out.len()
            && before.chars().next_back().is_some_and(|it| !";|&(){}=,\n".contains(it))
    }

    fn bracket(&mut self, bracket: char) {
        let is_command = |it: &str| it.trim_start().starts_with(|c: char| c.is_ascii_alphabetic());
        let last = self.open.last().copied();
        match (bracket, last) {
            // A shell block must not be empty.
            ('{', _) if is_command(self.rest) && !self.out.ends_with(['$', '@']) => {
                self.open.push(Bracket::Block);
                self.out.push_str("\n{ :\n");
                self.is_value = false;
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
            // The value of an argument: `x (rm a)` runs `rm a` before `x`.
            ('(', _) if is_command(self.rest) && self.is_argument() => {
                self.open.push(Bracket::Round);
                self.out.push_str("$(");
            }
            ('(', _) if self.is_value && self.out.ends_with(is_name) => {
                self.open.push(Bracket::Method);
                self.out.push(' ');
            }
            (')', Some(Bracket::Method)) => {
                self.open.pop();
                self.out.push(' ');
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

/// Returns whether a character may be part of a variable name.
const fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns whether a command may begin with a character.
fn begins_command(first: char) -> bool {
    first.is_ascii_alphabetic() || "(&".contains(first)
}

/// Names of the program.
const PROGRAMS: [&str; 2] = ["pwsh", "powershell"];
/// Options of the program with a value, in lower case.
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

/// Returns whether a program is PowerShell.
pub(super) fn is_one(program: &str) -> bool {
    PROGRAMS.iter().any(|it| program.eq_ignore_ascii_case(it))
}

/// Returns the code in the arguments of the program. `None` if it runs a file or no code.
pub(super) fn code(args: &[ShellText]) -> Option<ShellText> {
    let mut words = args.iter().enumerate();
    while let Some((at, word)) = words.next() {
        let written = word.text.to_ascii_lowercase();
        let Some(option) = written.strip_prefix('-') else {
            let is_script = written.ends_with(".ps1") || word.pipe;
            return (!is_script)
                .then(|| <ShellText as ShellWord>::joined(args.get(at..).unwrap_or_default()));
        };
        let is =
            |names: &[&str]| !option.is_empty() && names.iter().any(|it| it.starts_with(option));
        if is(&["command", "commandwithargs"]) {
            return Some(<ShellText as ShellWord>::joined(args.get(at.saturating_add(1)..)?));
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
            ("if ((a) -and (b)) { ls }", "(a) -and $(b)/{ :/ls/}"),
            ("x -y (git push) z", "x -y $(git push) z"),
            ("x.Y(a); x = (1 + 2)", "x.Y(a); x = (1 + 2)"),
            ("(git push); x | (git pull)", "(git push); x | (git pull)"),
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
            ("$a.B.C(); ls", ": $a.B.C  ; ls"),
            ("$h.D(1).E('y') | x", ": $h.D 1 .E 'y'  | x"),
            ("[Math]::Max(1, 2); ls", ": Max 1, 2 ; ls"),
            ("$env:PATH.Split(';')", ": ${PATH}.Split ';'"),
            ("$x = $p.Kill(); ri a", ": $x = $p.Kill  ; ri a"),
            (
                "Add-Content $PROFILE x",
                "Add-Content ~/.config/powershell/Microsoft.PowerShell_profile.ps1 x",
            ),
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
            let words: Vec<ShellText> = line.split(' ').map(ShellText::known).collect();
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
