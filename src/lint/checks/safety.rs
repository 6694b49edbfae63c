//! Checks of settings and probes that may do harm.

use crate::lint::subject::Entry;
use crate::lint::{Findings, Subject};
use crate::source::node::Node;

pub(in crate::lint) fn block_on_error(subject: &Subject<'_>, out: &mut Findings) {
    let manifest = subject.file("policyd.yaml").and_then(|it| it.get("on_error"));
    let own = subject.of("considerations.yaml").filter_map(|it| it.node.get("on_error"));
    for node in manifest.into_iter().chain(own).filter(|it| it.text() == Some("block")) {
        out.add(node.span.clone(), "what cannot be judged holds the agent", |it| {
            it.with_note("the agent cannot mend a fault of the pack")
                .with_help("write `allow` or `warn`, or ignore this with a reason")
        });
    }
}

/// The words of a probe's command.
fn command<'s>(entry: &'s Entry<'_>) -> Vec<(&'s str, &'s Node)> {
    let words = entry.node.get("command").and_then(Node::items).unwrap_or_default();
    words.iter().filter_map(|it| Some((it.text()?, it))).collect()
}

fn base_name(program: &str) -> &str {
    program.rsplit(['/', '\\']).next().unwrap_or(program)
}

const SHELLS: [&str; 9] = ["sh", "bash", "zsh", "dash", "fish", "ksh", "cmd", "powershell", "pwsh"];

pub(in crate::lint) fn shell_probe(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("probes.yaml") {
        if let Some((program, node)) =
            command(entry).first().filter(|(it, _)| SHELLS.contains(&base_name(it)))
        {
            out.add(node.span.clone(), format!("this probe runs the shell `{program}`"), |it| {
                it.with_note("what a shell makes of a text depends on that text")
                    .with_help("name the program and its arguments")
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

pub(in crate::lint) fn writing_probe(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("probes.yaml") {
        let words = command(entry);
        let begins = |row: &&&[&str]| {
            row.len() <= words.len()
                && row.iter().zip(&words).all(|(wanted, (word, _))| base_name(word) == *wanted)
        };
        if let (Some(row), Some((_, node))) = (WRITING.iter().find(begins), words.first()) {
            out.add(node.span.clone(), format!("`{}` changes something", row.join(" ")), |it| {
                it.with_note("a probe is run at stops, and again whenever its answer is too old")
                    .with_help("ask only: `gh pr view`, `git status`")
            });
        }
    }
}

pub(in crate::lint) fn relative_program(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("probes.yaml") {
        let first = command(entry).into_iter().next();
        let lies_here = |it: &str| it.contains('/') && !it.starts_with(['/', '~']);
        if let Some((program, node)) = first.filter(|(it, _)| lies_here(it)) {
            let message = format!("`{program}` lies in the project");
            out.add(node.span.clone(), message, |it| {
                it.with_note("the agent that is judged can change it")
                    .with_help("name a program that is installed, or ignore this with a reason")
            });
        }
    }
}

pub(in crate::lint) fn probe_without_cure(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("probes.yaml") {
        let told = subject.inherited(entry).is_some() || entry.node.get("missing").is_some();
        if !told && entry.node.get("command").is_some() && !entry.is("enabled", false) {
            let message =
                format!("`{}` does not say what to do where its program is missing", entry.name());
            out.help(entry.id.span.clone(), message, "write `missing: …`");
        }
    }
}
