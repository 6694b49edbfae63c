//! Checks of the commands of probes: what they run, and what no program makes of their words.

use crate::subject::PackEntry;
use crate::{Findings, Subject};
use policyd_yaml::Suggestion;
use policyd_yaml::node::Node;
use policyd_yaml::suggestion::single_quoted;

/// The words of a probe's command.
pub(super) fn command<'s>(entry: &'s PackEntry<'_>) -> Vec<(&'s str, &'s Node)> {
    let words = entry.node.get("command").and_then(Node::items).unwrap_or_default();
    words.iter().filter_map(|it| Some((it.text()?, it))).collect()
}

/// The name of a program without its folder, and without what Windows ends it with.
pub(super) fn base_name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    name.strip_suffix(".exe").unwrap_or(name)
}

pub(super) const SHELLS: [&str; 9] =
    ["sh", "bash", "zsh", "dash", "fish", "ksh", "cmd", "powershell", "pwsh"];

pub(crate) fn shell_probe(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("probes.yaml") {
        if let Some((program, node)) =
            command(entry).first().filter(|(it, _)| SHELLS.contains(&base_name(it)))
        {
            out.add(node.span.clone(), format!("this probe runs the shell `{program}`"), |it| {
                it.with_note("a shell interprets special characters in its arguments")
                    .with_help("write the program and its arguments")
            });
        }
    }
}

/// Beginnings of commands that change something.
const WRITING: [&[&str]; 18] = [
    &["rm"],
    &["mv"],
    &["cp"],
    &["tee"],
    &["dd"],
    &["chmod"],
    &["kill"],
    &["git", "push"],
    &["git", "commit"],
    &["git", "checkout"],
    &["git", "reset"],
    &["git", "merge"],
    &["git", "clean"],
    &["gh", "pr", "merge"],
    &["gh", "pr", "close"],
    &["gh", "pr", "create"],
    &["glab", "mr", "merge"],
    &["sed", "-i"],
];

pub(crate) fn writing_probe(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("probes.yaml") {
        let words = command(entry);
        let begins = |row: &&&[&str]| {
            row.len() <= words.len()
                && row.iter().zip(&words).all(|(wanted, (word, _))| base_name(word) == *wanted)
        };
        if let (Some(row), Some((_, node))) = (WRITING.iter().find(begins), words.first()) {
            out.add(node.span.clone(), format!("`{}` changes something", row.join(" ")), |it| {
                it.with_note("policyd runs probes at stops, and again whenever a result is too old")
                    .with_help("use a command that only reads: `gh pr view`, `git status`")
            });
        }
    }
}

pub(crate) fn relative_program(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("probes.yaml") {
        let first = command(entry).into_iter().next();
        let lies_here =
            |it: &str| it.contains('/') && !it.starts_with(['/', '~']) && !is_expanded(it);
        if let Some((program, node)) = first.filter(|(it, _)| lies_here(it)) {
            let message = format!("`{program}` is in the project");
            out.add(node.span.clone(), message, |it| {
                it.with_note("the agent can change it, and with it the result")
                    .with_help("use an installed program, or suppress this finding with a reason")
            });
        }
    }
}

/// What only a shell makes something of, where it is a word of its own.
const OF_SHELLS: [&str; 7] = ["|", "||", "&&", ">", ">>", "2>&1", "2>/dev/null"];

/// Programs that look for the word behind them: `git grep "|"`.
const SEARCHING: [&str; 7] = ["grep", "egrep", "fgrep", "rg", "ag", "ack", "tr"];

/// Programs that hand their words to a shell, or read a language of their own.
#[rustfmt::skip]
const INTERPRETERS: [&str; 23] = [
    "test", "[", "ssh", "node", "deno", "bun", "python", "python3", "perl", "ruby", "awk", "gawk",
    "jq", "expr", "envsubst", "su", "watch", "script", "tmux", "screen", "parallel", "adb",
    "nix-shell",
];

/// Words as the items of a list in brackets.
fn items<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let is_plain = |it: &str| {
        it.starts_with(|c: char| c.is_ascii_alphabetic() || "-./".contains(c))
            && it.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=".contains(c))
    };
    let written = words.map(|it| if is_plain(it) { it.to_owned() } else { single_quoted(it) });
    written.collect::<Vec<_>>().join(", ")
}

pub(crate) fn shell_words(subject: &Subject<'_>, out: &mut Findings) {
    let commands = subject.entries.iter().filter(|it| {
        matches!(it.file, "probes.yaml" | "escalation.yaml") && it.node.get("command").is_some()
    });
    for entry in commands {
        let words = command(entry);
        if let [(only, node)] = words.as_slice()
            && let Some((program, _)) = only.split_once(' ')
            && !program.contains(['/', '\\'])
        {
            let message = format!("`{only}` is not a program");
            let list = entry.node.get("command").filter(|it| it.span.text().starts_with('['));
            let items = items(only.split_whitespace());
            let is_plain = !only.contains(['|', '&', ';', '<', '>', '$', '`']);
            let fix = match list.filter(|_| is_plain) {
                Some(list) => Suggestion::write(list.span.clone(), format!("[{items}]")),
                None => format!("write `command: [{items}]`").into(),
            };
            out.add(node.span.clone(), message, |it| {
                it.with_note("each word of a command is a separate item").suggest(fix)
            });
        }
        if words.iter().any(|(it, _)| reads_its_words(base_name(it))) {
            continue;
        }
        if let Some((word, node)) = words.first().filter(|(it, _)| for_a_line(it)) {
            out.add(node.span.clone(), format!("`{word}` is not a program"), |it| {
                it.with_note("policyd runs it without a shell: the first word must be a program")
                    .with_help("write the program first; `env` sets variables")
            });
        }
        for (at, (word, node)) in words.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|it| words.get(it)).map(|(it, _)| *it);
            // The value of an option may look like one.
            let is_value = before.is_some_and(|it| it.starts_with('-'));
            if at > 0 && is_glued(word) && !is_value && !searches(&words) {
                let items = items(word.splitn(2, ' '));
                let list = entry.node.get("command").filter(|it| it.span.text().starts_with('['));
                let fix = match list {
                    Some(_) => Suggestion::write(node.span.clone(), items),
                    None => format!("write `{items}`").into(),
                };
                out.add(node.span.clone(), format!("`{word}` is a single word"), |it| {
                    it.with_note("option names do not contain spaces").suggest(fix)
                });
            } else if for_a_shell(word, before) || (is_expanded(word) && !searches(&words)) {
                out.add(
                    node.span.clone(),
                    format!("`{word}` is shell syntax, but no shell runs"),
                    |it| {
                        it.with_note("the program receives it literally")
                            .with_help("use an option of the program, or run a script")
                    },
                );
            }
        }
    }
}

/// Whether a program makes something of its words that no shell made of them.
pub(super) fn reads_its_words(program: &str) -> bool {
    SHELLS.contains(&program) || INTERPRETERS.contains(&program)
}

/// Whether a word means something at the beginning of a line of a shell alone: `cd`, `A=b`.
fn for_a_line(word: &str) -> bool {
    let is_name = |it: &str| {
        !it.is_empty()
            && it.bytes().all(|c| c.is_ascii_uppercase() || c == b'_' || c.is_ascii_digit())
    };
    matches!(
        word,
        "cd" | "export" | "source" | "set" | "exec" | "eval" | "if" | "for" | "while" | "!"
    ) || word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// Whether an option and its value are one word: `--output-format json`.
fn is_glued(word: &str) -> bool {
    word.strip_prefix("--").and_then(|it| it.split_once(' ')).is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-')
    })
}

/// Whether a word behind another one is a sign of a shell, or a hole.
fn for_a_shell(word: &str, before: Option<&str>) -> bool {
    let hole = word.contains("${") || word.starts_with("$(") || word.starts_with('`');
    // The value of an option may be a sign: `cut -d "|"`.
    before.is_some_and(|before| {
        let sign = OF_SHELLS.contains(&word) && !SEARCHING.contains(&base_name(before));
        (sign || hole) && !before.starts_with('-')
    })
}

/// Whether a word begins with the home folder or a variable, or has such a value: `~/x`, `--file=$HOME/x`.
fn is_expanded(word: &str) -> bool {
    let value = word.rsplit('=').next().unwrap_or(word);
    // Programs have a `$` of their own, in small letters: `sed -n $p`.
    let begins = |it: &str| {
        let of_name = |c: char| c.is_ascii_uppercase() || c == '_';
        let Some(after) = it.strip_prefix('$') else { return false };
        let braced = after.strip_prefix('{').and_then(|it| it.split_once('}'));
        let end = after.find(|c| !of_name(c)).unwrap_or(after.len());
        let (name, rest) = braced.unwrap_or_else(|| after.split_at(end));
        name.len() > 1 && name.chars().all(of_name) && (rest.is_empty() || rest.starts_with('/'))
    };
    word.starts_with("~/") || begins(word) || begins(value)
}

/// Whether one of the words looks for what stands behind it.
fn searches(words: &[(&str, &Node)]) -> bool {
    words.iter().any(|(it, _)| SEARCHING.contains(&base_name(it)))
}
