//! Checks of globs over paths: what no path is like.

use super::patterns::{Functions, Pattern, Place, arguments, leaves, section};
use crate::lint::subject::Leaf;
use crate::lint::{Findings, Subject};

/// Facts that are asked about globs over paths.
const AT_PATHS: Functions = Functions::new(&[
    "matching(",
    "action.reads(",
    "action.writes(",
    "action.deletes(",
    "action.changes(",
    "action.touches(",
    "targets.any(",
    "read.any(",
    "changed.any(",
    "written.any(",
    "fed_from.any(",
]);

/// Path globs of the pack: of files in the vocabulary, of preferences, and in expressions.
fn path_globs<'s>(subject: &'s Subject<'_>) -> Vec<Pattern<'s>> {
    let mut found = arguments(subject, &AT_PATHS);
    let listed = |it: &Leaf<'_>| {
        matches!((it.file, it.key), ("preferences.yaml", "files") | ("context.yaml", "notes"))
    };
    found.extend(leaves(subject, listed));
    for (_, list) in section(subject, "files") {
        found.extend(
            list.into_iter().map(|(text, node)| Pattern { text, place: Place::Node(node) }),
        );
    }
    found
}

pub(in crate::lint) fn bad_glob(subject: &Subject<'_>, out: &mut Findings) {
    for glob in path_globs(subject) {
        let mut depth = 0_i32;
        for c in glob.text.chars() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            if depth < 0 {
                break;
            }
        }
        if depth != 0 {
            out.help(glob.span(), "a brace of this glob has no partner", "write `{a,b}`");
        } else if glob.text.contains(['[', ']']) {
            let help = "write `{a,b}` for several names, `?` for one character";
            out.help(glob.span(), "brackets mean nothing in a glob here", help);
        }
    }
}

/// Whether commas stand between what are globs of their own; some names of files have one (`main.c,v`).
fn separated(glob: &str) -> bool {
    let is_glob = |it: &str| it.starts_with(' ') || it.contains(['/', '*', '.']);
    // Who writes braces knows what they are for.
    !glob.contains(['{', '}']) && glob.contains(',') && glob.split(',').skip(1).all(is_glob)
}

pub(in crate::lint) fn glob_cannot_match(subject: &Subject<'_>, out: &mut Findings) {
    for glob in path_globs(subject) {
        let text = glob.text.strip_prefix('!').unwrap_or(glob.text);
        let why = if text.is_empty() {
            Some(("no path is empty", "name what is meant, or leave it out"))
        } else if text.starts_with('$') {
            Some(("variables are not replaced", "write `~/` for the home folder, or `**/name`"))
        } else if separated(text) {
            Some(("a comma separates nothing in it", "write a list of globs, or `{a,b}`"))
        } else if text.starts_with("./") {
            Some(("paths do not begin with `./`", "leave `./` out"))
        } else if text.split('/').any(|it| it == "..") {
            Some(("paths hold no `..`", "name the folder itself"))
        } else if text.contains('\\') {
            Some(("paths are written with `/` on every system", "write `/`"))
        } else if text.len() > 1 && text.ends_with('/') {
            Some(("no path ends with `/`", "end it with `/**` for everything in the folder"))
        } else if text.contains("//") {
            Some(("no path holds `//`", "write `/`"))
        } else if text.trim() != text {
            Some(("it begins or ends with a blank", "write it without"))
        } else if text.contains("|*") || (text.contains('{') && text.contains('|')) {
            Some(("`|` separates nothing in it", "write a list of globs, or `{a,b}`"))
        } else {
            None
        };
        if let Some((why, help)) = why {
            out.help(glob.span(), format!("this glob matches nothing: {why}"), help);
        }
    }
}
