//! Processes as `ps` lists them in macOS: `PID PARENT COMMAND`. It is tested on every system.

use std::collections::BTreeMap;

use super::FIRST_PROCESS;
use crate::{ANCESTORS_MAX, Ancestor, Ancestry, AncestryGap};

/// Parent and command of each process, by its id.
type ListedProcesses<'a> = BTreeMap<u32, (u32, &'a str)>;

/// Returns the ancestors of a process from two listings of `PID PARENT COMMAND`, the second one
/// with the environment after each command.
pub(super) fn chain(own: u32, plain: &str, full: &str) -> Ancestry {
    let (plain, full) = (rows(plain), rows(full));
    let mut found = Ancestry::default();
    let mut pid = plain.get(&own).map_or(own, |it| it.0);
    loop {
        let Some((parent, command)) = plain.get(&pid).filter(|_| pid != own) else {
            found.gap = Some(AncestryGap::Unreadable(pid));
            return found;
        };
        if found.processes.len() >= ANCESTORS_MAX {
            found.gap = Some(AncestryGap::TooMany);
            return found;
        }
        let names =
            environment(pid, command, &full).split_whitespace().filter_map(|it| it.split_once('='));
        let arguments: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        found.processes.push(Ancestor {
            pid,
            program: arguments.first().cloned().unwrap_or_default(),
            variables: names.map(|(name, _)| name.to_owned()).collect(),
            arguments,
        });
        if pid == FIRST_PROCESS {
            return found;
        }
        pid = *parent;
    }
}

/// Returns the environment of a process, which stands behind its command in the second listing.
fn environment<'a>(pid: u32, command: &str, full: &ListedProcesses<'a>) -> &'a str {
    full.get(&pid).and_then(|it| it.1.strip_prefix(command)).unwrap_or_default()
}

fn rows(text: &str) -> ListedProcesses<'_> {
    let row = |line| {
        let line: &str = line;
        let (pid, rest) = line.trim_start().split_once(char::is_whitespace)?;
        let (parent, command) = rest.trim_start().split_once(char::is_whitespace)?;
        Some((pid.parse().ok()?, (parent.parse().ok()?, command.trim())))
    };
    text.lines().filter_map(row).collect()
}

/// Returns the processes whose environment has an entry `NAME=VALUE`, from the same two listings.
pub(super) fn with_variable(plain: &str, full: &str, entry: &str) -> Vec<u32> {
    let full = rows(full);
    let has_entry = |(pid, (_, command)): &(u32, (u32, &str))| {
        let environment = format!("{} ", environment(*pid, command, &full));
        environment.contains(&format!(" {entry} "))
    };
    rows(plain).into_iter().filter(has_entry).map(|it| it.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_become_a_chain_with_variables() {
        let plain = "  1 0 /sbin/launchd\n 40 1 /usr/local/bin/claude -p x\n 41 40 zsh -c policyd\n 42 41 policyd\n";
        let full = " 40 1 /usr/local/bin/claude -p x HOME=/u\n 41 40 zsh -c policyd HOME=/u CLAUDECODE=1\n";
        let found = chain(42, plain, full);
        assert_eq!(found.gap, None);
        let found = found.processes;
        let pids: Vec<u32> = found.iter().map(|it| it.pid).collect();
        assert_eq!(pids, [41, 40, 1]);
        assert_eq!(found[0].variables, ["HOME", "CLAUDECODE"]);
        assert_eq!(found[1].arguments, ["/usr/local/bin/claude", "-p", "x"]);
    }

    #[test]
    fn a_listing_without_the_first_process_has_a_gap() {
        let gap = |plain: &str| chain(42, plain, "").gap;
        assert_eq!(gap(""), Some(AncestryGap::Unreadable(42)));
        assert_eq!(gap(" 42 41 policyd\n 41 40 zsh\n"), Some(AncestryGap::Unreadable(40)));
        let long: String = (1..200).map(|it| format!("{} {} sh\n", it + 42, it + 43)).collect();
        assert_eq!(gap(&format!("42 43 policyd\n{long}")), Some(AncestryGap::TooMany));
        assert_eq!(gap("42 43 policyd\n43 42 sh\n"), Some(AncestryGap::Unreadable(42)), "a circle");
    }

    #[test]
    fn processes_are_found_by_a_variable() {
        let plain = " 40 1 agent\n 41 40 sh -c x\n 42 41 x\n 43 1 grep RUN=/a/b\n";
        let full = " 40 1 agent RUN=/a/b HOME=/u\n 41 40 sh -c x RUN=/a/bc\n \
                    42 41 x HOME=/u RUN=/a/b\n 43 1 grep RUN=/a/b HOME=/u\n";
        assert_eq!(with_variable(plain, full, "RUN=/a/b"), [40, 42]);
    }
}
