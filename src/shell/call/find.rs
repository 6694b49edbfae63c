//! What the program `find` searches, prints, and deletes.

use super::shell_text::ShellText;
use crate::path::in_folder;

/// Tests that select some of the files.
const TESTS: [&str; 25] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-newer",
    "-empty",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-size",
    "-user",
    "-nouser",
    "-group",
    "-nogroup",
    "-perm",
    "-inum",
    "-samefile",
    "-xtype",
    "-lname",
];

/// Returns the files below a directory that `find` prints. Without a test, it also prints the directory.
pub(super) fn found_files(root: &ShellText, args: &[ShellText]) -> Vec<ShellText> {
    let is_tested =
        args.iter().any(|it| it.text == "-mindepth" || TESTS.contains(&it.text.as_str()));
    let mut kinds = args.iter().skip_while(|it| it.text != "-type").skip(1);
    let is_file = kinds.next().and_then(ShellText::all).is_some_and(|it| !it.contains('d'));
    let names = find_names(args);
    let named = names.iter().filter_map(|it| file_below(root, it));
    let own = (!is_tested && !is_file).then(|| root.clone());
    std::iter::once(root.below()).chain(own).chain(named).collect()
}

/// Returns the directories that `find` searches.
pub(super) fn find_roots(args: &[ShellText]) -> Vec<ShellText> {
    let roots: Vec<ShellText> = named_roots(args).cloned().collect();
    if roots.is_empty() { vec![ShellText::known(".")] } else { roots }
}

/// Returns the directories that the arguments of `find` name.
pub(super) fn named_roots(args: &[ShellText]) -> impl Iterator<Item = &ShellText> {
    let before = args.iter().skip_while(|it| {
        matches!(it.text.as_str(), "-H" | "-L" | "-P") || it.text.starts_with("-O")
    });
    before.take_while(|it| !it.text.starts_with(['-', '(', '!']))
}

/// Returns the names, or the paths below a root, that `find` searches for.
pub(super) fn find_names(finder: &[ShellText]) -> Vec<ShellText> {
    // Names of skipped files (`-prune`) are names, too. If there are several tests, the name is the
    // most specific.
    let tests = ["-prune", "-name", "-iname"];
    let by_path = !finder.iter().any(|it| tests.contains(&it.text.as_str()));
    let mut names = Vec::new();
    for (at, word) in finder.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|it| finder.get(it));
        let is_negated = before.is_some_and(|it| matches!(it.text.as_str(), "!" | "-not"));
        let value = finder.get(at + 1).filter(|_| !is_negated);
        match word.text.as_str() {
            "-name" | "-iname" => names.extend(value.cloned()),
            "-path" | "-ipath" | "-wholename" if by_path => {
                names.extend(value.and_then(below_any));
            }
            _ => {}
        }
    }
    names
}

/// Returns the part of a path pattern below any directory: for `*/.ssh/*` it is `.ssh/*`.
fn below_any(path: &ShellText) -> Option<ShellText> {
    let path = path.all()?.trim_start_matches(['*', '.']);
    let below = path.strip_prefix('/').filter(|it| !it.is_empty() && !it.starts_with('*'));
    below.map(ShellText::known)
}

/// Returns a file with a name below a directory, if both are known.
pub(super) fn file_below(folder: &ShellText, name: &ShellText) -> Option<ShellText> {
    let (folder, name) = (folder.all()?, name.all()?);
    Some(ShellText {
        glob: name.contains(['*', '?', '[']),
        ..ShellText::known(in_folder(folder, name))
    })
}

/// Returns whether a test selects some of the files that `find` visits. The type of a file, `-name '*'`, and the depth select
/// almost all of them.
pub(super) fn is_filtered(finder: &[ShellText]) -> bool {
    let mut words = finder.iter();
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                words.by_ref().find(|it| matches!(it.text.as_str(), ";" | "+"));
            }
            "-type" if words.as_slice().first().is_some_and(|it| it.text == "l") => return true,
            "-name" | "-iname" if words.as_slice().first().is_some_and(|it| it.text == "*") => {}
            test if TESTS.contains(&test) => return true,
            _ => {}
        }
    }
    false
}

/// Returns the commands that `find` runs for the files that it finds, without those of `sudo`.
pub(super) fn find_commands(finder: &[ShellText]) -> impl Iterator<Item = &[ShellText]> {
    let starts =
        |it: &ShellText| matches!(it.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    let mut rest = finder;
    std::iter::from_fn(move || {
        let start = rest.iter().position(starts)?;
        let words = rest.get(start.saturating_add(1)..)?;
        let end = words.iter().position(|it| matches!(it.text.as_str(), ";" | "+"));
        let (words, behind) = words.split_at_checked(end.unwrap_or(words.len()))?;
        rest = behind;
        Some(words.split_first().filter(|it| it.0.text == "sudo").map_or(words, |it| it.1))
    })
}

/// Returns the files that `find` deletes. Without a test it is the root itself, otherwise files
/// below the root.
pub(super) fn deleted_by_find(finder: &[ShellText]) -> Vec<ShellText> {
    let names = find_names(finder);
    let all = !is_filtered(finder);
    let found = |root: ShellText| -> Vec<ShellText> {
        match names.as_slice() {
            _ if all => vec![root],
            [] => vec![root.below()],
            names => names.iter().filter_map(|it| file_below(&root, it)).collect(),
        }
    };
    find_roots(finder).into_iter().flat_map(found).collect()
}
