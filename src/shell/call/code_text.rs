//! The text of code in other languages, made simpler before its calls are searched: the home directory becomes `~`, and
//! the quoting operators of Perl and Ruby become quotes.
//!
//! Contains: [`simplified`], and [`shell_text`] (the text that an expression builds).
//! Does not contain: the calls and their arguments (`code`).

use std::borrow::Cow;

use super::code_syntax::{arguments, unescaped};
use super::shell_text::ShellText;

/// Expressions of several languages for the home directory.
const HOME: [&str; 30] = [
    "require('os').homedir()",
    "require(\"os\").homedir()",
    "System.getProperty(\"user.home\")",
    "Deno.env.get('HOME')",
    "Deno.env.get(\"HOME\")",
    "os.environ.get('HOME')",
    "os.environ.get(\"HOME\")",
    "os.environ['HOME']",
    "os.environ[\"HOME\"]",
    "os.getenv('HOME')",
    "os.getenv(\"HOME\")",
    "process.env['HOME']",
    "process.env[\"HOME\"]",
    "process.env.HOME",
    "Bun.env.HOME",
    "ENV.fetch('HOME')",
    "ENV.fetch(\"HOME\")",
    "ENV['HOME']",
    "ENV[\"HOME\"]",
    "$ENV{'HOME'}",
    "$ENV{\"HOME\"}",
    "$ENV{HOME}",
    "$_SERVER['HOME']",
    "$env(HOME)",
    "getenv('HOME')",
    "getenv(\"HOME\")",
    "Path.home()",
    "os.homedir()",
    "homedir()",
    "Dir.home",
];
/// Beginnings of an expression in a text, each with its end.
const IN_TEXT: [(&str, char); 3] = [("${", '}'), ("#{", '}'), ("{", '}')];
/// Quoting operators of Perl and Ruby, each with what it makes of its text.
const OPERATORS: [(&str, QuotedText); 10] = [
    ("qq", QuotedText::Text),
    ("qw", QuotedText::Words),
    ("qx", QuotedText::Command),
    ("%q", QuotedText::Text),
    ("%Q", QuotedText::Text),
    ("%w", QuotedText::Words),
    ("%W", QuotedText::Words),
    ("%x", QuotedText::Command),
    ("%", QuotedText::Text),
    ("q", QuotedText::Text),
];
/// Brackets that quoting operators accept, with those that close them.
const BRACKETS: [(char, char); 4] = [('(', ')'), ('{', '}'), ('[', ']'), ('<', '>')];
/// Other delimiters that they accept.
const DELIMITERS: [char; 3] = ['|', '!', '/'];
/// Represents an unknown part of a text that a shell reads.
pub(super) const UNKNOWN: &str = "${__unknown__}";

/// What a quoting operator makes.
#[derive(Debug, Clone, Copy)]
enum QuotedText {
    /// A text.
    Text,
    /// A list of words.
    Words,
    /// The output of a shell command.
    Command,
}

/// Returns code with literals instead of expressions for the home directory and quoting operators.
pub(super) fn simplified<'c>(language: &str, code: &'c str) -> Cow<'c, str> {
    let has_operators = language.starts_with("perl") || language.starts_with("ruby");
    let quoted = match has_operators && code.contains(['q', '%']) {
        true => Cow::Owned(with_quotes(code)),
        false if language == "rust" && code.contains(RUST_COMMAND) => {
            Cow::Owned(with_chained_arguments(code))
        }
        false => Cow::Borrowed(code),
    };
    match HOME.iter().any(|it| quoted.contains(it)) {
        true => Cow::Owned(with_home(&quoted)),
        false => quoted,
    }
}

/// The beginning of a command in Rust.
const RUST_COMMAND: &str = "Command::new(";

/// Moves the arguments of a command in Rust into its first bracket: `Command::new("rm").arg("-rf")`.
fn with_chained_arguments(code: &str) -> String {
    let (mut out, mut rest) = (String::new(), code);
    while let Some((before, after)) = rest.split_once(RUST_COMMAND) {
        out.push_str(before);
        out.push_str(RUST_COMMAND);
        let (program, mut behind) = bracketed(after);
        out.push_str(program);
        let mut lines = 0;
        loop {
            let call = behind.trim_start();
            lines +=
                behind.get(..behind.len() - call.len()).unwrap_or_default().matches('\n').count();
            let Some((name, after)) = call.strip_prefix('.').and_then(|it| it.split_once('('))
            else {
                break;
            };
            let (arguments, next) = bracketed(after);
            match name {
                "arg" | "args" => {
                    out.push_str(", ");
                    out.push_str(arguments.trim_start_matches('&').trim_start_matches("vec!"));
                }
                "current_dir" | "env" | "envs" | "stdin" | "stdout" | "stderr" => {}
                _ => break,
            }
            behind = next;
        }
        out.push(')');
        // Later lines keep their numbers.
        out.push_str(&"\n".repeat(lines));
        rest = behind;
    }
    out + rest
}

/// Returns the text up to the bracket that closes, and the text behind it.
fn bracketed(text: &str) -> (&str, &str) {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted && depth == 0 => {
                return (
                    text.get(..at).unwrap_or_default(),
                    text.get(at + 1..).unwrap_or_default(),
                );
            }
            ')' | ']' | '}' if !quoted => depth -= 1,
            _ => {}
        }
    }
    (text, "")
}

/// Replaces expressions for the home directory by `~`; outside of a text by `"~"`.
fn with_home(code: &str) -> String {
    let (mut out, mut rest) = (String::new(), code);
    let mut quote: Option<char> = None;
    while let Some(c) = rest.chars().next() {
        let in_text = IN_TEXT.iter().filter(|_| quote.is_some());
        let mut wrapped = in_text.filter_map(|(open, close)| {
            let inside = rest.strip_prefix(open)?;
            let home = HOME.iter().find(|it| inside.starts_with(**it))?;
            inside.get(home.len()..)?.strip_prefix(*close)
        });
        let bare = || HOME.iter().find_map(|it| rest.strip_prefix(it));
        if let Some(after) = wrapped.next().or_else(bare) {
            out.push_str(if quote.is_some() { "~" } else { "\"~\"" });
            rest = after;
            continue;
        }
        match quote {
            Some(open) if open == c => quote = None,
            None if matches!(c, '"' | '\'' | '`') => quote = Some(c),
            _ => {}
        }
        let mut step = c.len_utf8();
        if c == '\\' {
            step += rest.chars().nth(1).map_or(0, char::len_utf8);
        }
        out.push_str(rest.get(..step).unwrap_or_default());
        rest = rest.get(step..).unwrap_or_default();
    }
    out
}

/// Replaces the quoting operators of Perl and Ruby.
fn with_quotes(code: &str) -> String {
    let (mut out, mut rest) = (String::new(), code);
    while let Some(c) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || "_$@%&".contains(c);
        let begins = !out.ends_with(is_word);
        let made = OPERATORS.iter().filter(|_| begins).find_map(|(name, what)| {
            let (inside, after) = delimited(rest.strip_prefix(name)?)?;
            Some((quoted(inside, *what), after))
        });
        if let Some((text, after)) = made {
            out.push_str(&text);
            rest = after;
        } else {
            out.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        }
    }
    out
}

/// Returns the text between a delimiter and the one that ends it, and what follows.
fn delimited(text: &str) -> Option<(&str, &str)> {
    let open = text.chars().next()?;
    let close = BRACKETS.iter().find(|it| it.0 == open).map(|it| it.1);
    let close = close.or_else(|| DELIMITERS.contains(&open).then_some(open))?;
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        if c == open && (open != close || at == 0) {
            depth += 1;
        } else if c == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return Some((text.get(open.len_utf8()..at)?, text.get(at + close.len_utf8()..)?));
            }
        }
    }
    None
}

/// Returns the literal that a quoting operator makes of a text.
fn quoted(text: &str, what: QuotedText) -> String {
    let literal = |it: &str| format!("\"{}\"", it.replace('"', "\\\""));
    match what {
        QuotedText::Text => literal(text),
        QuotedText::Words => {
            let words: Vec<String> = text.split_whitespace().map(literal).collect();
            format!("[{}]", words.join(", "))
        }
        QuotedText::Command => format!("system({})", literal(text)),
    }
}

/// Returns the path that an expression builds of literals: `"a" + x`, `join("a", "b")`. `None` if it contains no literal.
pub(super) fn path_text(expression: &str) -> Option<ShellText> {
    let text = shell_text(expression)?;
    // Functions that join paths take them as arguments.
    let joins = expression.contains("join(") || expression.contains("joinpath(");
    let parts: Vec<String> = match joins {
        true => arguments(expression.split_once('(')?.1)
            .iter()
            .filter_map(|it| shell_text(it))
            .collect(),
        false => vec![text],
    };
    let text = parts.join("/");
    let mut pieces = text.split(UNKNOWN);
    let mut path = ShellText::known(pieces.next().unwrap_or_default());
    for piece in pieces {
        path.append(&ShellText::unknown("\u{2026}"));
        path.append(&ShellText::known(piece));
    }
    Some(path)
}

/// Returns the text that an expression builds of literals. Its other parts are an unknown variable of the shell. `None`
/// if it contains no literal.
pub(super) fn shell_text(expression: &str) -> Option<String> {
    let mut text = String::new();
    let (mut between, mut any) = (String::new(), false);
    let mut chars = expression.chars();
    while let Some(c) = chars.next() {
        if !matches!(c, '"' | '\'' | '`') {
            between.push(c);
            continue;
        }
        let is_format = between.trim_end().ends_with(['f', 'F']);
        let names = between.trim_end_matches(['f', 'F', 'r', 'b', '$', '@']);
        if is_value(names, any) {
            text.push_str(UNKNOWN);
        }
        between.clear();
        any = true;
        let mut part = String::new();
        while let Some(next) = chars.next() {
            match next {
                '\\' => part.extend(unescaped(&mut chars)),
                next if next == c => break,
                next => part.push(next),
            }
        }
        text.push_str(&with_unknown(&part, is_format));
    }
    if any && is_value(&between, true) {
        text.push_str(UNKNOWN);
    }
    any.then_some(text)
}

/// Returns whether the source beside a literal is a value that belongs to the same text. The
/// name of a function in front of the first literal does not belong to it.
fn is_value(source: &str, is_inside: bool) -> bool {
    let is_glue = |c: char| c.is_whitespace() || "+.,()[]*;".contains(c);
    let joins = source.contains('+') || source.contains("..") || source.contains(" . ");
    !source.chars().all(is_glue)
        && (joins || is_inside && !source.trim_start().starts_with([',', ')']))
}

/// Replaces `#{…}` in a text, and `{…}` in a format string.
fn with_unknown(text: &str, is_format: bool) -> String {
    let mark = if is_format { "{" } else { "#{" };
    let mut pieces = text.split(mark);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let after = piece.split_once('}').map_or("", |it| it.1);
        out.push_str(UNKNOWN);
        out.push_str(after);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_directory_is_a_literal() {
        for (language, code, expected) in [
            ("perl", "unlink \"$ENV{HOME}/a\"", "unlink \"~/a\""),
            ("perl", "rmtree($ENV{HOME})", "rmtree(\"~\")"),
            ("perl", "system(q(rm -rf ~))", "system(\"rm -rf ~\")"),
            ("perl", "system qq{rm -rf $ENV{HOME}};", "system \"rm -rf ~\";"),
            ("ruby", "system(*%w[rm -rf x])", "system(*[\"rm\", \"-rf\", \"x\"])"),
            ("ruby", "%x(rm -rf ~)", "system(\"rm -rf ~\")"),
            ("ruby", "rm \"#{ENV['HOME']}/a\"", "rm \"~/a\""),
            ("ruby", "a = 5%b", "a = 5%b"),
            ("node", "fs.rmSync(os.homedir() + '/x')", "fs.rmSync(\"~\" + '/x')"),
            ("node", "exec(`rm -rf ${process.env.HOME}`)", "exec(`rm -rf ~`)"),
            ("python3", "rmtree(f\"{Path.home()}/x\")", "rmtree(f\"~/x\")"),
            ("python3", "print('q(x)')", "print('q(x)')"),
        ] {
            assert_eq!(simplified(language, code), expected);
        }
    }

    #[test]
    fn a_path_is_joined() {
        for (expression, known, whole) in [
            ("\"~\" + '/.cache/x'", "~/.cache/x", true),
            ("os.path.join(\"~\", 'a', 'b')", "~/a/b", true),
            ("path.join('a', name)", "a", true),
            ("'a/' + name", "a/", false),
            ("name + '/a'", "", false),
        ] {
            let path = path_text(expression).unwrap();
            assert_eq!((path.known_part(), path.is_known()), (known, whole), "{expression}");
        }
    }

    #[test]
    fn a_text_of_parts_has_unknown_parts() {
        for (expression, expected) in [
            ("'rm -rf ' + path", Some("rm -rf ${__unknown__}")),
            ("\"rm \" .. f .. \" x\"", Some("rm ${__unknown__} x")),
            ("f'rm -rf {path}/x'", Some("rm -rf ${__unknown__}/x")),
            ("\"rm -rf #{path}\"", Some("rm -rf ${__unknown__}")),
            ("'rm -rf ' 'a'", Some("rm -rf a")),
            ("'rm -rf a'", Some("rm -rf a")),
            ("path", None),
            ("dir + '/x'", Some("${__unknown__}/x")),
            ("os.path.expanduser('~/x')", Some("~/x")),
            ("'x', cwd=y", Some("x")),
        ] {
            assert_eq!(shell_text(expression).as_deref(), expected, "{expression}");
        }
    }
}
