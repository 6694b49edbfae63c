//! Checks of globs over paths: what no path is like.

use super::patterns::{Pattern, PatternFix, PatternOrigin, arguments, leaves, section};
use super::terms::{constant, each_part, each_part_with};
use crate::subject::Leaf;
use crate::{Findings, Subject};
use policyd_fact_table::ast::ExprKind;
use policyd_fact_table::members::Member;
use policyd_fact_table::paths::{self, Fact};
use policyd_fact_table::types::{Domain, TextMatch};

/// Path globs of the pack: of files in the vocabulary, of preferences, and in expressions.
fn path_globs<'s>(subject: &'s Subject<'_>) -> Vec<Pattern<'s>> {
    let mut found = arguments(subject, Domain::Text(TextMatch::Path));
    let listed = |it: &Leaf<'_>| {
        matches!((it.file, it.key), ("preferences.yaml", "files") | ("context.yaml", "notes"))
    };
    found.extend(leaves(subject, listed));
    for (_, list) in section(subject, "files") {
        found.extend(
            list.into_iter().map(|(text, node)| Pattern { text, place: PatternOrigin::Node(node) }),
        );
    }
    found
}

pub(crate) fn outside_of_project(subject: &Subject<'_>, out: &mut Findings) {
    each_part_with(subject, &["project"], |site, term| {
        for fact in term.fact().into_iter().flat_map(Fact::owners) {
            let is_asked = fact.is_one_of(&["project.has", "project.text", "project.json"]);
            let Some(step) = fact.last().filter(|_| is_asked) else { continue };
            let Some((path, range)) = step.arguments.first().and_then(constant) else { continue };
            let why = if path.is_empty() {
                "the path is empty"
            } else if path.starts_with(['/', '~']) || path.split('/').any(|it| it == "..") {
                "the path is not in the project"
            } else if step.name != "has" && path.contains('*') {
                "this reads one file, and a glob does not name one"
            } else {
                continue;
            };
            let help = "write a path from the project directory on: `docs/design.md`";
            out.help(site.span(range), why, help);
        }
    });
}

pub(crate) fn bad_glob(subject: &Subject<'_>, out: &mut Findings) {
    for glob in path_globs(subject) {
        let mut depth = 0_i32;
        for c in glob.text.chars() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            if depth < 0 {
                break;
            }
        }
        if depth != 0 {
            out.help(glob.span(), "this glob has an unmatched brace", "write `{a,b}`");
        } else if glob.text.contains(['[', ']']) {
            let help = "write `{a,b}` for several names, `?` for one character";
            out.help(glob.span(), "globs do not support brackets", help);
        }
    }
}

/// Directories of projects that are hardly ever files, and hardly ever at the root of a disk or a container.
#[rustfmt::skip]
const DIRECTORIES: [&str; 11] = [
    "src", "tests", "spec", "scripts", "node_modules", "dist", "vendor", "migrations", "packages",
    "crates", "internal",
];
/// Other names in the directory of a project that are hardly ever at the root of a disk or a container.
#[rustfmt::skip]
const OTHER_NAMES: [&str; 9] = [
    "test", "cmd", "pkg", ".github", ".env", "package.json", "Cargo.toml", "Makefile", "README.md",
];

/// Whether a name is in the directory of a project rather than at the root of a disk.
fn is_of_project(name: &str) -> bool {
    DIRECTORIES.contains(&name) || OTHER_NAMES.contains(&name)
}

pub(crate) fn absolute_glob(subject: &Subject<'_>, out: &mut Findings) {
    for glob in path_globs(subject) {
        let Some(below) = glob.text.trim_start_matches('!').strip_prefix('/') else { continue };
        let first = below.split('/').next().unwrap_or(below);
        if is_of_project(first) {
            let message = format!("`{}` starts at the root of the file system", glob.text);
            out.add(glob.span(), message, |it| {
                let sign = if glob.text.starts_with('!') { "!" } else { "" };
                let fix = glob.write(&format!("{sign}{below}"));
                it.with_note("paths are absolute, so this never matches within a project")
                    .suggest(fix.because(": it matches in every project and its subdirectories"))
            });
        }
    }
}

/// Whether commas stand between what are globs of their own; some names of files have one (`main.c,v`).
fn separated(glob: &str) -> bool {
    let is_glob = |it: &str| it.starts_with(' ') || it.contains(['/', '*', '.']);
    // Who writes braces knows what they are for.
    !glob.contains(['{', '}']) && glob.contains(',') && glob.split(',').skip(1).all(is_glob)
}

/// Whether a glob is written as a regular expression: `.*\\.md`, `^docs/`, `*.(pem|key)`.
fn is_regex(text: &str) -> bool {
    let group = text.split_once('(').and_then(|(_, it)| it.split_once(')'));
    text.contains(".*\\.")
        || (text.starts_with('^') && text.len() > 1)
        || (text.ends_with('$') && text.contains(".*"))
        || (text.starts_with(".*/") && text.ends_with("/.*"))
        || group.is_some_and(|(inside, _)| inside.contains('|'))
}

/// Whether a glob begins with a variable of the shell, and not with a name that does: `$HOME/x`, `$types.d.ts`.
fn is_variable(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('$') else { return false };
    let end = rest.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap_or(rest.len());
    let after = rest.get(end..).unwrap_or_default();
    rest.starts_with('{') || (end > 0 && (after.is_empty() || after.starts_with('/')))
}

/// Whether another glob stands behind the blank behind one.
fn begins_glob(text: &str) -> bool {
    let next = text.split(' ').next().unwrap_or(text);
    next.starts_with(['/', '*', '!']) || next.contains('/') || is_of_project(next)
}

/// Whether braces behind a dot hold a name that begins with one.
fn asks_for_dot(behind: &str) -> bool {
    let inside = behind.split(['}', '{']).next().unwrap_or(behind);
    inside.starts_with('.') || inside.contains(",.")
}

/// Extensions that no file has for its whole name.
const EXTENSIONS: [&str; 28] = [
    "c", "cpp", "cs", "css", "go", "h", "html", "ipynb", "java", "js", "json", "jsx", "kt", "md",
    "mjs", "pem", "php", "py", "rb", "rs", "sql", "swift", "toml", "ts", "tsx", "txt", "yaml",
    "yml",
];

/// Whether a name is that of a directory; `lib` is one of the system, too.
fn is_directory(name: &str) -> bool {
    DIRECTORIES.contains(&name) || name == "lib"
}

/// Whether the backslashes of a glob stand between directories: `src\main`, and not `src/\[id\]`.
fn separates(glob: &str) -> bool {
    let is_name = |it: &str| match it.chars().next() {
        None => true,
        // `a/b\.md` escapes the dot, as a regular expression does.
        Some('.') => !glob.contains('/'),
        Some(c) => c.is_alphanumeric() || c == '_',
    };
    !glob.contains("\\\\") && glob.split('\\').skip(1).all(is_name)
}

/// Why no path is like a glob, and what to write. A glob that is `anchored` may begin with `./`, the project directory.
fn never(glob: &str, anchored: bool) -> Option<(&'static str, PatternFix)> {
    let text = glob.strip_prefix('!').unwrap_or(glob);
    let text = text.strip_prefix("./").filter(|it| anchored && !it.is_empty()).unwrap_or(text);
    let sign = glob.strip_suffix(text).unwrap_or_default();
    let write = |text: &str| PatternFix::Write(format!("{sign}{text}"));
    let alternatives = |separator: char| {
        let all: Vec<&str> = text.split(separator).map(str::trim).collect();
        // What is before the first glob is not for all of them, and a root or `!` has no meaning within braces.
        let is_whole = |it: &&str| it.is_empty() || it.starts_with(['!', '/', '~', '{']);
        let is_flat = sign.is_empty()
            && !text.contains(['{', '}'])
            && !all.iter().any(|it| is_whole(it) || it.starts_with("./"));
        let written = format!("{{{}}}", all.join(","));
        PatternFix::write_if(is_flat, &written, "write a list of globs, or `{a,b}`")
    };
    let advice = PatternFix::advice;
    Some(if text.is_empty() {
        ("a path is never empty", advice("write the intended path, or remove the glob"))
    } else if is_regex(text) {
        (
            "it is a regular expression",
            advice("write `*` within a name, `**` across directories, `{a,b}` for alternatives"),
        )
    } else if is_variable(text) {
        let below = text.strip_prefix("$HOME/").or_else(|| text.strip_prefix("${HOME}/"));
        let other = || advice("write `~/` for the home directory, or `**/name`");
        ("variables are not expanded", below.map_or_else(other, |it| write(&format!("~/{it}"))))
    } else if separated(text) {
        ("a comma does not separate globs", alternatives(','))
    } else if let Some(below) = text.strip_prefix("./") {
        ("paths do not start with `./`", write(below))
    } else if text.split('/').any(|it| it == "..") {
        ("paths do not contain `..`", advice("write the directory itself"))
    } else if text.contains('\\') {
        let other = || advice("write `/` between directories; a glob has no escapes");
        let written = separates(text).then(|| write(&text.replace('\\', "/")));
        ("paths use `/` on every system", written.unwrap_or_else(other))
    } else if text.len() > 1 && text.ends_with('/') {
        ("paths do not end with `/`", write(&format!("{text}**")))
    } else if text.contains("//") {
        ("paths do not contain `//`", write(&text.replace("//", "/")))
    } else if text.trim() != text {
        ("it starts or ends with a space", write(text.trim()))
    } else if text.contains('|') && text.contains(['*', '/', '{']) {
        let is_flat = !text.contains(['{', '(']);
        let other = || advice("write a list of globs, or `{a,b}`");
        ("`|` does not separate globs", if is_flat { alternatives('|') } else { other() })
    } else if ["** ", "/* "]
        .iter()
        .filter_map(|it| text.split_once(it))
        .any(|(_, it)| begins_glob(it))
    {
        ("a space does not separate globs", advice("write a list of globs"))
    } else if text.strip_prefix('.').is_some_and(|it| EXTENSIONS.contains(&it)) {
        ("it is only an extension", write(&format!("*{text}")))
    } else if text.split(".{").skip(1).any(asks_for_dot) {
        let all = choices(text).all(|it| it.starts_with('.')) && text.matches('{').count() == 1;
        let once = text.replace("{.", "{").replace(",.", ",");
        let other = || advice("write the dot once: `*.{a,b}`");
        ("it requires two dots in a row", if all { write(&once) } else { other() })
    } else {
        return None;
    })
}

pub(crate) fn glob_cannot_match(subject: &Subject<'_>, out: &mut Findings) {
    for glob in path_globs(subject) {
        if let Some((why, fix)) = never(glob.text, glob.is_argument()) {
            out.help(glob.span(), format!("this glob never matches: {why}"), glob.fix(fix));
        } else if is_directory(glob.text) && glob.is_argument_of("files.matching") {
            let message = format!("`{0}` matches only a file with the name `{0}`", glob.text);
            let fix = glob.write(&format!("{}/**", glob.text)).because(" for a directory");
            out.help(glob.span(), message, fix);
        } else if let Some(choice) = choices(glob.text).find(|it| it.trim() != *it) {
            let message = format!("`{choice}` in braces starts or ends with a space");
            out.help(glob.span(), message, glob.write(&without_spaces(glob.text)));
        }
    }
    nothing_left(subject, out);
    let of_preferences = |it: &Leaf<'_>| (it.file, it.key) == ("preferences.yaml", "files");
    for file in leaves(subject, of_preferences).filter(|it| it.text.contains(['*', '?', '{'])) {
        let message = format!("`{}` is not expanded: preferences do not support globs", file.text);
        out.help(file.span(), message, "list each file");
    }
}

/// Returns a glob without the spaces around the alternatives in its braces.
fn without_spaces(glob: &str) -> String {
    let (mut written, mut depth) = (String::new(), 0_usize);
    let mut characters = glob.chars().peekable();
    while let Some(c) = characters.next() {
        depth = match c {
            '{' => depth + 1,
            '}' => depth.saturating_sub(1),
            _ => depth,
        };
        let is_edge = written.ends_with(['{', ',', ' '])
            || characters.peek().is_some_and(|it| " ,}".contains(*it));
        if !(c == ' ' && depth > 0 && is_edge) {
            written.push(c);
        }
    }
    written
}

/// Returns the alternatives in the innermost braces of a glob.
fn choices(glob: &str) -> impl Iterator<Item = &str> {
    let closed = glob.split('}').filter_map(|it| it.rsplit_once('{'));
    closed.flat_map(|(_, inside)| inside.split(',')).filter(|it| !it.is_empty())
}

/// Lists of globs that only leave out.
fn nothing_left(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        let Some(list) = term.fact().and_then(|it| it.last()?.arguments.last()) else { return };
        let ExprKind::List(items) = &list.kind else { return };
        let asks_for_paths = |it: &&Member| it.compares() == Some((TextMatch::Path, true));
        if term.fact().and_then(paths::member).filter(asks_for_paths).is_none() {
            return;
        }
        let leaves_out = |it: &str| it.starts_with('!') && never(it, true).is_none();
        let all = items.iter().all(|it| constant(it).is_some_and(|(it, _)| leaves_out(it)));
        if all && !items.is_empty() {
            out.add(site.span(&list.range), "all of these globs are exclusions", |it| {
                let items = site.part(&list.range).strip_prefix('[').unwrap_or_default();
                it.with_note("they match nothing")
                    .suggest(site.write(&list.range, format!("[\"**\", {items}")))
            });
        }
    });
}
