//! What the program `find` searches, prints, and deletes.

use super::shell_text::ShellText;
use crate::path::in_folder;

/// Returns the files below a directory that `find` prints. Without a test, it also prints the directory.
pub(super) fn found_files(root: &ShellText, args: &[ShellText]) -> Vec<ShellText> {
    const TESTS: [&str; 21] = [
        "-name",
        "-iname",
        "-path",
        "-ipath",
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
        "-group",
        "-perm",
        "-inum",
        "-samefile",
        "-mindepth",
    ];
    let is_tested = args.iter().any(|it| TESTS.contains(&it.text.as_str()));
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

/// Returns the files that `find` deletes. Without a test it is the root itself, otherwise files
/// below the root.
pub(super) fn deleted_by_find(finder: &[ShellText]) -> Vec<ShellText> {
    let names = find_names(finder);
    let mut tests = finder.iter().filter(|it| it.text.starts_with('-'));
    let all = tests.all(|it| matches!(it.text.as_str(), "-delete" | "-depth" | "-type"));
    let found = |root: ShellText| -> Vec<ShellText> {
        match names.as_slice() {
            [] if all => vec![root],
            [] => vec![root.below()],
            names => names.iter().filter_map(|it| file_below(&root, it)).collect(),
        }
    };
    find_roots(finder).into_iter().flat_map(found).collect()
}
