//! Code of awk: the files and commands that it writes to and reads from.
//!
//! Contains: `print > "file"`, `print | "command"`, and `"command" | getline`, also with a command that awk joins of literals,
//! variables, and the environment; `system(…)` of such a command. Does not contain: `system("…")` of a literal, which is a call as
//! in other languages (`code`), and names of files that awk computes.

use super::scanner::Scanner;
use super::shell_state::ShellState;
use super::shell_text::ShellText;

/// Parts of all commands of a code that are joined.
const PARTS_MAX: usize = 1_000;
/// A part that is not known, as shell text.
const UNKNOWN: &str = "${awk}";

/// A file or a command of awk code.
#[derive(Debug, PartialEq, Eq)]
enum AwkTarget {
    /// A file that it writes.
    File(String),
    /// A command that it runs.
    Command(String),
    /// Commands of too many parts.
    OverLimit,
}

/// A token of awk code, as far as redirections need it.
#[derive(Debug, PartialEq, Eq)]
enum AwkToken {
    Text(String),
    Word(String),
    Sign(char),
    Append,
    Or,
}

/// Returns whether a program runs awk code.
pub(super) fn is_awk(program: &str) -> bool {
    program.ends_with("awk")
}

impl Scanner<'_> {
    /// Runs the commands that awk code pipes to or from, and records the files that it writes.
    pub(super) fn run_awk_targets(&mut self, program: &str, code: &str, scope: &mut ShellState) {
        for target in targets(&tokens(code)) {
            match target {
                AwkTarget::File(path) => {
                    let words = vec![ShellText::known("tee"), ShellText::known(path)];
                    self.run_words(words, program, scope);
                }
                AwkTarget::Command(text) => {
                    self.scan_text(&text, &mut scope.clone(), &Default::default());
                }
                AwkTarget::OverLimit => self.mark_over_limit("its awk code joins very many texts"),
            }
        }
    }
}

/// Returns the files and commands that tokens name. A `>` writes only in a statement of `print`, outside of parentheses.
fn targets(tokens: &[AwkToken]) -> Vec<AwkTarget> {
    let mut found = Vec::new();
    let (mut depth, mut prints_at, mut parts_left) = (0_usize, None, PARTS_MAX);
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at.saturating_add(1));
        match token {
            AwkToken::Word(word) if word == "print" || word == "printf" => prints_at = Some(depth),
            AwkToken::Word(word) if word == "system" => {
                let (before, behind) = tokens.split_at(at);
                let command = operand_in_parentheses(behind);
                let is_name = |it: &AwkToken| matches!(it, AwkToken::Word(word) if !word.starts_with(char::is_numeric));
                if command.iter().any(is_name) {
                    found.extend(commands(command, before, &mut parts_left));
                }
            }
            AwkToken::Sign('(' | '[') => depth = depth.saturating_add(1),
            AwkToken::Sign(')' | ']') => depth = depth.saturating_sub(1),
            AwkToken::Sign(';' | '\n' | '{' | '}') => prints_at = None,
            AwkToken::Sign('>') | AwkToken::Append if prints_at == Some(depth) => {
                found.extend(text_of(next).map(AwkTarget::File));
            }
            AwkToken::Sign('|') => {
                let reads = next == Some(&AwkToken::Word("getline".to_owned()));
                let (before, behind) = tokens.split_at(at);
                let command = if reads { operand_before(before) } else { operand_behind(behind) };
                found.extend(commands(command, before, &mut parts_left));
            }
            AwkToken::Text(_) | AwkToken::Word(_) | AwkToken::Sign(_) => {}
            AwkToken::Append | AwkToken::Or => {}
        }
    }
    found
}

/// Returns the expression that ends here: what is in parentheses, or the tokens that awk joins.
fn operand_before(tokens: &[AwkToken]) -> &[AwkToken] {
    let mut depth = 0_usize;
    let begin = tokens.iter().rposition(|it| {
        match it {
            AwkToken::Sign(')' | ']') => depth = depth.saturating_add(1),
            AwkToken::Sign('(' | '[') if depth > 0 => depth = depth.saturating_sub(1),
            AwkToken::Text(_) | AwkToken::Word(_) => {}
            AwkToken::Sign(_) | AwkToken::Append | AwkToken::Or => return depth == 0,
        }
        false
    });
    tokens.get(begin.map_or(0, |it| it.saturating_add(1))..).unwrap_or_default()
}

/// Returns the expression behind a sign, up to the end of the statement.
fn operand_behind(tokens: &[AwkToken]) -> &[AwkToken] {
    let tokens = tokens.get(1..).unwrap_or_default();
    let is_end = |it: &AwkToken| matches!(it, AwkToken::Sign(';' | '\n' | '}' | '|'));
    let end = tokens.iter().position(is_end).unwrap_or(tokens.len());
    tokens.get(..end).unwrap_or_default()
}

/// Returns the tokens in the parentheses behind a word.
fn operand_in_parentheses(tokens: &[AwkToken]) -> &[AwkToken] {
    let [_, AwkToken::Sign('('), tokens @ ..] = tokens else { return &[] };
    let mut depth = 1_usize;
    let end = tokens.iter().position(|it| {
        match it {
            AwkToken::Sign('(') => depth = depth.saturating_add(1),
            AwkToken::Sign(')') => depth = depth.saturating_sub(1),
            AwkToken::Text(_) | AwkToken::Word(_) | AwkToken::Sign(_) => {}
            AwkToken::Append | AwkToken::Or => {}
        }
        depth == 0
    });
    tokens.get(..end.unwrap_or(tokens.len())).unwrap_or_default()
}

/// Returns the commands of an expression.
fn commands(
    expression: &[AwkToken],
    before: &[AwkToken],
    parts_left: &mut usize,
) -> Vec<AwkTarget> {
    match command_texts(expression, before, parts_left) {
        Some(texts) => {
            texts.into_iter().filter(|it| !it.is_empty()).map(AwkTarget::Command).collect()
        }
        None => vec![AwkTarget::OverLimit],
    }
}

/// Returns the commands that awk can join, as shell text: `ENVIRON["HOME"]` is `${HOME}`. `None` at the limit. `before` contains
/// the assignments of variables; `parts_left` is the number of parts that may still be joined.
fn command_texts(
    tokens: &[AwkToken],
    before: &[AwkToken],
    parts_left: &mut usize,
) -> Option<Vec<String>> {
    let mut texts = vec![String::new()];
    let mut rest = tokens;
    while let [first, behind @ ..] = rest {
        rest = behind;
        // Also for what a variable refers to, so that references end.
        *parts_left = parts_left.checked_sub(1)?;
        let parts = match (first, behind) {
            (
                AwkToken::Word(name),
                [AwkToken::Sign('['), AwkToken::Text(key), AwkToken::Sign(']'), behind @ ..],
            ) if name == "ENVIRON" => {
                rest = behind;
                vec![format!("${{{key}}}")]
            }
            (AwkToken::Text(part), _) => vec![part.clone()],
            (AwkToken::Word(name), _) => values(name, before, parts_left)?,
            (AwkToken::Sign('(' | ')'), _) => continue,
            (AwkToken::Sign(_) | AwkToken::Append | AwkToken::Or, _) => vec![UNKNOWN.to_owned()],
        };
        *parts_left = parts_left.checked_sub(texts.len().saturating_mul(parts.len()))?;
        let join = |text: &String| parts.iter().map(|it| format!("{text}{it}")).collect::<Vec<_>>();
        texts = texts.iter().flat_map(join).collect();
    }
    Some(texts)
}

/// Returns the values that a variable can have, because branches and loops may assign each of them. `None` at the limit.
fn values(name: &str, before: &[AwkToken], parts_left: &mut usize) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for (at, pair) in before.windows(2).enumerate() {
        if !matches!(pair, [AwkToken::Word(word), AwkToken::Sign('=')] if word == name) {
            continue;
        }
        let value = operand_behind(before.get(at.saturating_add(1)..).unwrap_or_default());
        // `==` compares.
        if value.first() != Some(&AwkToken::Sign('=')) {
            let earlier = before.get(..at).unwrap_or_default();
            found.extend(command_texts(value, earlier, parts_left)?);
        }
    }
    if found.is_empty() {
        found.push(UNKNOWN.to_owned());
    }
    Some(found)
}

fn text_of(token: Option<&AwkToken>) -> Option<String> {
    if let Some(AwkToken::Text(text)) = token { Some(text.clone()) } else { None }
}

/// Splits awk code. Adjacent literals are one text, because awk joins them. Comments and regular expressions are left out.
fn tokens(code: &str) -> Vec<AwkToken> {
    let mut found: Vec<AwkToken> = Vec::new();
    let mut rest = code.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' => {
                let text = quoted(&mut rest, '"');
                match found.last_mut() {
                    Some(AwkToken::Text(before)) => before.push_str(&text),
                    _ => found.push(AwkToken::Text(text)),
                }
            }
            '#' => while rest.next_if(|it| *it != '\n').is_some() {},
            '/' if begins_regex(found.last()) => drop(quoted(&mut rest, '/')),
            '>' if rest.next_if_eq(&'>').is_some() => found.push(AwkToken::Append),
            '|' if rest.next_if_eq(&'|').is_some() => found.push(AwkToken::Or),
            '|' => {
                // A coprocess of gawk is a command, too.
                rest.next_if_eq(&'&');
                found.push(AwkToken::Sign('|'));
            }
            c if c.is_alphanumeric() || c == '_' => {
                let mut word = c.to_string();
                while let Some(c) = rest.next_if(|it| it.is_alphanumeric() || *it == '_') {
                    word.push(c);
                }
                found.push(AwkToken::Word(word));
            }
            c if c == '\n' || !c.is_whitespace() => found.push(AwkToken::Sign(c)),
            _ => {}
        }
    }
    found
}

/// Returns whether a slash behind a token begins a regular expression, and does not divide.
const fn begins_regex(before: Option<&AwkToken>) -> bool {
    !matches!(before, Some(AwkToken::Text(_) | AwkToken::Word(_) | AwkToken::Sign(')' | ']' | '$')))
}

/// Reads up to the closing mark. An escaped mark is part of the text.
fn quoted(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, mark: char) -> String {
    let mut text = String::new();
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some(c) => text.push(c),
                None => {}
            },
            c if c == mark => break,
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_behind_redirections_are_files_and_commands() {
        let file = |it: &str| AwkTarget::File(it.to_owned());
        let command = |it: &str| AwkTarget::Command(it.to_owned());
        for (code, expected) in [
            ("{print > \"/etc/hosts\"}", vec![file("/etc/hosts")]),
            ("{print $1, $2 >> \"a\" \".txt\"}", vec![file("a.txt")]),
            ("{print \"x\" | \"sort -u\"}", vec![command("sort -u")]),
            ("BEGIN{ \"date\" | getline d; print d }", vec![command("date")]),
            ("{print |& \"tee /x\"}", vec![command("tee /x")]),
            (
                "BEGIN{while((\"cat \" ENVIRON[\"HOME\"] \"/.netrc\") | getline l) print l}",
                vec![command("cat ${HOME}/.netrc")],
            ),
            ("BEGIN{e=\"\"; c=e \"date\" e; c | getline t}", vec![command("date")]),
            ("BEGIN{c=\"date +%s\"; c | getline t; print t}", vec![command("date +%s")]),
            ("{c = \"rm \" $1; print \"\" | c}", vec![command("rm ${awk}${awk}")]),
            ("{if ($1) c=\"ls\"; else c=\"id\"; c | getline}", vec![command("ls"), command("id")]),
            ("{if (c == \"x\") print | c}", vec![command("${awk}")]),
            ("{c=\"rm\"; system(c \" x\")}", vec![command("rm x")]),
            ("{system(\"rm \" ENVIRON[\"HOME\"])}", vec![command("rm ${HOME}")]),
            ("{system(\"rm x\"); system(\"rm \" $1)}", vec![]),
            ("{print(\"a\") > \"b\"; if ($1 > \"c\") print}", vec![file("b")]),
            ("$1 > \"z\" || $2 {print}", vec![]),
            ("/a > \"b\"/ {print 4 / 2} # > \"c\"", vec![]),
            ("{print > $1}", vec![]),
            ("{printf \"%s\\n\", \"a\\\" > b\" > \"c\"}", vec![file("c")]),
        ] {
            assert_eq!(targets(&tokens(code)), expected, "{code}");
        }
    }
}
