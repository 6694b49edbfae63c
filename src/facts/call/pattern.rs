//! Patterns that the shell puts names of files in the place of: whether one could stand for a file that a
//! glob means.

use super::super::glob::word_matches;
use super::wildcard::{could_be_named, is_wild, letters};

/// Letters that the last step of a pattern must have: `.e*` says what it is after, `*` means any file.
const LETTERS_MIN: usize = 2;
/// Those that a folder must have that is meant as a whole: `.pol*`, and not `.ca*`.
const FOLDER_LETTERS_MIN: usize = 4;
/// No system opens a longer path (`PATH_MAX` of Linux).
const PATH_BYTES_MAX: usize = 4_096;
/// The step of a glob that stands for any folders.
const ANY_FOLDERS: &str = "**";

/// Whether a pattern could stand for a file of a glob: `.e*` for `.env`, `/home/x/.ss*/id_rsa` for
/// `**/.ssh/id_rsa`. One that does not begin at the root may begin at any step of the glob.
pub(super) fn could_mean(pattern: &str, glob: &str) -> bool {
    if !is_wild(pattern) || pattern.len() > PATH_BYTES_MAX || !says_enough(pattern) {
        return false;
    }
    let mut wanted: Vec<&str> = glob.split('/').filter(|it| !it.is_empty()).collect();
    if !glob.starts_with('/') && !glob.starts_with(ANY_FOLDERS) {
        wanted.insert(0, ANY_FOLDERS);
    }
    let steps: Vec<&str> = pattern.split('/').filter(|it| !it.is_empty()).collect();
    let starts = if pattern.starts_with('/') { 1 } else { wanted.len() };
    let mut ends = (0..starts).filter_map(|at| wanted.get(at..));
    // `**` and `*` at the end of a glob are anything, and nothing without what stands before them.
    ends.any(|it| it.iter().any(|it| letters(it) > 0) && leads_along(&steps, it))
}

/// Whether a pattern could stand for a folder that a glob means.
pub(super) fn could_mean_folder(pattern: &str, glob: &str) -> bool {
    let last = pattern.rsplit('/').next().unwrap_or_default();
    letters(last) >= FOLDER_LETTERS_MIN && could_mean(pattern, glob)
}

/// Whether a pattern says by its last step, or by a folder, which files it is after.
fn says_enough(pattern: &str) -> bool {
    let (folders, last) = pattern.rsplit_once('/').unwrap_or(("", pattern));
    let by_last = if is_wild(last) { is_telling(last) } else { letters(last) >= LETTERS_MIN };
    let by_folder = |it: &str| is_wild(it) && letters(it) >= FOLDER_LETTERS_MIN;
    by_last || folders.split('/').any(by_folder)
}

/// Whether the steps of a pattern could be those of a glob. Of its `**` only the last one met is tried
/// again, so that a long path costs no more than its length.
fn leads_along(steps: &[&str], wanted: &[&str]) -> bool {
    let names_file = wanted.last().is_some_and(|it| letters(it) > 0);
    // Below a folder any file is meant, so a step must say that it is after that folder.
    let leads_to = |step: &str, wanted: &str| {
        let says_nothing = is_wild(step) && letters(step) < LETTERS_MIN && letters(wanted) > 0;
        could_be(step, wanted) && (names_file || !says_nothing)
    };
    let (mut step, mut want) = (0_usize, 0_usize);
    let mut again: Option<(usize, usize)> = None;
    while let Some(next) = steps.get(step) {
        match (wanted.get(want), again) {
            (Some(&ANY_FOLDERS), _) => {
                want = want.saturating_add(1);
                again = Some((want, step));
            }
            (Some(first), _) if leads_to(next, first) => {
                (step, want) = (step.saturating_add(1), want.saturating_add(1));
            }
            (_, Some((behind, from))) => {
                let from = from.saturating_add(1);
                (step, want, again) = (from, behind, Some((behind, from)));
            }
            (_, None) => return false,
        }
    }
    wanted.get(want..).is_some_and(|it| it.iter().all(|it| *it == ANY_FOLDERS))
}

/// Whether one step of a pattern could be one of a glob; two patterns only where they are the same.
fn could_be(step: &str, wanted: &str) -> bool {
    if !is_wild(step) {
        return word_matches(wanted, step);
    }
    // `*` stands for no name that begins with a dot.
    let is_hidden = wanted.starts_with('.') && !step.starts_with(['.', '[']);
    let is_name = !wanted.contains(['*', '?', '{']) && !is_hidden;
    step == wanted || wanted == "*" || (is_name && could_be_named(step, wanted))
}

/// Whether a step stands for names, and says which: `*` and `*.yml` mean ordinary files.
fn is_telling(step: &str) -> bool {
    let ending = step.strip_prefix("*.");
    let is_ending = ending.is_some_and(|it| it.bytes().all(|it| it.is_ascii_alphanumeric()));
    is_wild(step) && letters(step) >= LETTERS_MIN && !is_ending
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_could_be_a_file_of_the_glob() {
        for (pattern, glob) in [
            (".e*", ".env"),
            ("/w/.en?", ".env"),
            ("/w/.[e]nv", ".env"),
            ("/w/[.]e[mn]v", ".env"),
            ("/home/x/.ss*/id_rsa", "**/.ssh/id_rsa"),
            ("/home/*/.ssh/id_r*", "**/.ssh/id_rsa"),
            ("/w/.pol*/policyd.yaml", "**/.policyd/**"),
            ("/w/.cl*/hooks/stop.sh", "**/.claude/hooks/**"),
            ("/etc/sha*", "/etc/shadow"),
            ("/e?c/shadow", "/etc/shadow"),
            ("/*/shadow", "/etc/shadow"),
            ("/e*/sudoers", "/etc/sudoers"),
            ("e*/shadow", "/etc/shadow"),
            ("sha*", "/etc/shadow"),
            (".ss*/id_rsa", "**/.ssh/id_rsa"),
            ("/w/.[a-f]nv", ".env"),
            ("/w/.[!f]nv", ".env"),
            ("/w/.[!.]*", ".env"),
            ("/w/.[!x]??", "**/.git"),
            ("/w/.[[:alpha:]]nv", ".env"),
            ("/w/.[]e]nv", ".env"),
            ("/w/.*nv", ".env"),
        ] {
            assert!(could_mean(pattern, glob), "{pattern} {glob}");
        }
    }

    #[test]
    fn a_folder_is_meant_by_more_than_its_first_letters() {
        assert!(could_mean_folder("/w/.pol*", ".policyd"));
        assert!(!could_mean_folder("/w/.ca*", ".cargo"));
    }

    #[test]
    fn long_paths_are_looked_through_once() {
        for steps in ["a/", ".pol*/", "*b*/"] {
            let long = format!("/{}x", steps.repeat(500));
            assert!(!could_mean(&long, "**/.policyd/**/a/**/b/**/c.yaml"), "{steps}");
        }
        assert!(could_mean(&format!("/{}.pol*/x", "a/".repeat(500)), "**/.policyd/**"));
    }

    #[test]
    fn a_pattern_that_says_nothing_or_something_else_is_none() {
        for (pattern, glob) in [
            ("*", ".env"),
            ("/w/*", ".env"),
            ("/w/.*", ".env"),
            ("/w/*.yml", "secrets.yml"),
            ("/w/src/*.rs", "**/.policyd/**"),
            ("/w/s*/main.rs", "**/.ssh/id_rsa"),
            ("/usr/sha*", "/etc/shadow"),
            ("/w/.env", ".env"),
            ("/w/.[e]nvelope", ".env"),
            ("/w/*/config", "**/.kube/config"),
            ("/w/?kube/config", "**/.kube/config"),
            ("/w/.cl*/skills/x", "**/.claude/hooks/**"),
            ("$D/generated_*.json", "**/.gnupg/**"),
            ("$D.old*", "**/.ssh/*"),
            ("/w/packages/*/dist.tgz", "**/LaunchAgents/**"),
            ("/w/*/x", "/w/secrets/**"),
            ("/w/scripts/*[^cmd]", "credentials.json"),
            ("/w/src/*.[ch]*", "secrets.yml"),
            ("/w/.[f-z]nv", ".env"),
        ] {
            assert!(!could_mean(pattern, glob), "{pattern} {glob}");
        }
    }
}
