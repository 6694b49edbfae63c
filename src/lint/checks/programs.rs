//! Checks of the programs that command patterns name, in lists, as keys and in expressions.

use crate::lint::{Findings, Subject};
use crate::policy::guards::FILES as GUARD_FILES;
use crate::script::tree::{Form, Term};
use crate::source::Span;
use crate::source::node::Node;

/// Shorter names are one letter from too many others: `gt`, `nm` and `ip` are programs, too.
const LETTERS_MIN: usize = 4;
/// Programs and words behind programs that are no slip of the names they are near.
const REAL: [&str; 20] = [
    "argo", "elm", "ent", "erl", "fpc", "ionic", "isntall", "lld", "nim", "nvm", "pic", "pnp",
    "ppm", "pst", "shasum", "star", "sync", "test", "top", "tst",
];

pub(in crate::lint) fn misspelt_program(subject: &Subject<'_>, out: &mut Findings) {
    let known = subject.reviewed.meant.known_programs();
    for (text, span) in command_patterns(subject) {
        let mut words = text.split_whitespace();
        let program = words.next().unwrap_or_default();
        let name = program.rsplit('/').next().unwrap_or(program);
        let subs = known.get(name).filter(|_| name == program);
        let slip = match subs {
            Some(subs) => words
                .next()
                .and_then(|sub| Some((sub, slip_of(sub, subs.iter().map(String::as_str))?))),
            None => slip_of(name, known.keys().map(String::as_str)).map(|it| (name, it)),
        };
        if let Some((written, meant)) = slip {
            let message = format!("`{written}` is nearly `{meant}`, and nothing that is known");
            let (head, rest) = text.split_at_checked(program.len()).unwrap_or((&text, ""));
            let mended = match written == name {
                true => format!("{meant}{rest}"),
                false => format!("{head}{}", rest.replacen(written, meant, 1)),
            };
            out.add(span, message, |it| {
                it.with_note("a program of another name is never recognised")
                    .with_help(format!("did you mean `{mended}`?"))
            });
        }
    }
}

/// The known word that becomes this one where a letter is left out, or changes places with the next.
pub(super) fn slip_of<'k>(
    word: &str,
    mut known: impl Iterator<Item = &'k str> + Clone,
) -> Option<&'k str> {
    if REAL.contains(&word) || known.clone().any(|it| it == word) {
        return None;
    }
    let is_glob = |it: &str| it.contains(['*', '?', '{']);
    let alike = |it: &str| is_glob(it) == is_glob(word) && it.len() >= LETTERS_MIN;
    known.find(|it| alike(it) && is_slip(word.as_bytes(), it.as_bytes()))
}

fn is_slip(word: &[u8], meant: &[u8]) -> bool {
    let same = word.iter().zip(meant).take_while(|(one, other)| one == other).count();
    let (rest, wanted) = (word.get(same..), meant.get(same..));
    let (Some(rest), Some(wanted)) = (rest, wanted) else { return false };
    if word.len() + 1 == meant.len() {
        return wanted.get(1..) == Some(rest);
    }
    match (rest, wanted) {
        ([a, b, rest @ ..], [x, y, wanted @ ..]) => a == y && b == x && rest == wanted,
        _ => false,
    }
}

/// Facts that are asked about command patterns.
const ASKED: [&str; 3] = ["commands.ran(", "commands.last(", "action.runs("];

/// Every command pattern that the pack itself writes, and where.
fn command_patterns(subject: &Subject<'_>) -> Vec<(String, Span)> {
    let mut found = Vec::new();
    let mut take = |node: &Node| {
        let text = node.text().unwrap_or_default();
        found.push((text.to_owned(), node.sub_span(0..text.len())));
    };
    let items = |node: Option<&Node>| node.map(Node::one_or_items).unwrap_or_default().to_vec();
    for entry in GUARD_FILES.iter().flat_map(|file| subject.of(file)) {
        items(entry.node.get("commands")).iter().for_each(&mut take);
    }
    if let Some(file) = subject.file("vocabulary.yaml") {
        let entries = |key: &str| file.get(key).and_then(Node::entries).unwrap_or_default();
        entries("value_options").iter().for_each(|(key, _)| take(key));
        let kinds = entries("commands").iter().map(|(_, kind)| kind);
        let rows = ["wrappers", "interpreters", "file_effects", "shell_values"];
        let rows = rows.into_iter().filter_map(|it| file.get(it)?.items()).flatten();
        for row in kinds.chain(rows) {
            for key in ["command", "program", "programs", "except"] {
                items(row.get(key)).iter().for_each(&mut take);
            }
        }
    }
    for site in &subject.sites {
        site.visit(|term| {
            let Form::Fact(path, arguments) = &term.form else { return };
            for Term { form, range, .. } in arguments {
                let Form::Text(text) = form else { continue };
                let asked = |it: &&str| path.contains(&format!("{it}{}", site.part(range)));
                if ASKED.iter().any(asked) {
                    found.push((text.clone(), site.span(range)));
                }
            }
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_left_out_or_two_that_changed_places_are_slips() {
        let known = ["cargo", "docker", "curl", "git", "npm", "pnpm"];
        for (word, expected) in [
            ("crago", Some("cargo")),
            ("carg", Some("cargo")),
            ("dockre", Some("docker")),
            ("ucrl", Some("curl")),
            ("cur", Some("curl")),
            ("cargo", None),
            ("gti", None),
            ("npm", None),
            ("dockerd", None),
            ("podman", None),
            ("doc*", None),
            ("", None),
        ] {
            assert_eq!(slip_of(word, known.into_iter()), expected, "{word}");
        }
    }
}
