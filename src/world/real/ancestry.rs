//! Ancestors of this process: from `/proc` on Linux, from `ps` on macOS.

use super::super::Ancestor;

#[cfg(target_os = "macos")]
pub(super) use listed::ancestors;
#[cfg(target_os = "linux")]
pub(super) use proc::ancestors;

/// Returns an empty list, because this system does not list processes.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(super) fn ancestors() -> Vec<Ancestor> {
    Vec::new()
}

#[cfg(target_os = "linux")]
mod proc {
    use std::fs::{self, File};
    use std::io::Read;

    use super::super::super::ANCESTORS_MAX;
    use super::Ancestor;

    /// Maximum bytes that are read of the arguments and of the environment of a process.
    const BYTES_MAX: u64 = 1024 * 1024;

    /// Returns the chain of parents, then the leader of the session with its parents. The leader is
    /// often the terminal's shell, and is missing in the chain if a parent ended.
    pub(in super::super) fn ancestors() -> Vec<Ancestor> {
        let own = std::process::id();
        let mut found = Vec::new();
        if let Some(status) = ProcStatus::of(own) {
            climb(status.parent, own, &mut found);
            climb(status.session, own, &mut found);
        }
        found
    }

    fn climb(mut pid: u32, own: u32, found: &mut Vec<Ancestor>) {
        while pid != 0
            && pid != own
            && found.len() < ANCESTORS_MAX
            && found.iter().all(|it| it.pid != pid)
        {
            let Some(status) = ProcStatus::of(pid) else { return };
            let file = fs::read_link(format!("/proc/{pid}/exe")).ok();
            let file = file.map(|it| it.to_string_lossy().into_owned());
            // A program that an update replaced still runs.
            let file =
                file.map(|it| it.strip_suffix(" (deleted)").map_or(it.clone(), str::to_owned));
            let variable = |it: String| it.split_once('=').map(|(name, _)| name.to_owned());
            found.push(Ancestor {
                pid,
                program: file.unwrap_or(status.name),
                arguments: texts(&format!("/proc/{pid}/cmdline")).collect(),
                variables: texts(&format!("/proc/{pid}/environ")).filter_map(variable).collect(),
            });
            pid = status.parent;
        }
    }

    /// Fields of `/proc/PID/stat`: `PID (NAME) STATE PARENT GROUP SESSION …`.
    struct ProcStatus {
        name: String,
        parent: u32,
        session: u32,
    }

    impl ProcStatus {
        fn of(pid: u32) -> Option<Self> {
            let text = String::from_utf8_lossy(&read(&format!("/proc/{pid}/stat"))).into_owned();
            let (name, rest) = text.split_once('(')?.1.rsplit_once(')')?;
            let mut numbers = rest.split_whitespace().skip(1).map(|it| it.parse().unwrap_or(0));
            let (parent, _group, session) = (numbers.next()?, numbers.next()?, numbers.next()?);
            Some(Self { name: name.to_owned(), parent, session })
        }
    }

    /// Returns the NUL-terminated strings of a file. Empty if it cannot be read.
    fn texts(path: &str) -> impl Iterator<Item = String> {
        let text = String::from_utf8_lossy(&read(path)).into_owned();
        let texts: Vec<String> = text.split('\0').map(str::to_owned).collect();
        texts.into_iter().filter(|it| !it.is_empty())
    }

    fn read(path: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Ok(file) = File::open(path) {
            // A partial read is sufficient.
            drop(file.take(BYTES_MAX).read_to_end(&mut bytes));
        }
        bytes
    }
}

#[cfg(any(target_os = "macos", test))]
mod listed {
    use std::collections::BTreeMap;

    use super::super::super::ANCESTORS_MAX;
    use super::Ancestor;

    /// Lists every process with `ps`, without and with its environment.
    #[cfg(target_os = "macos")]
    pub(in super::super) fn ancestors() -> Vec<Ancestor> {
        let plain = listing(&["-A", "-ww", "-o", "pid=,ppid=,command="]);
        let full = listing(&["-A", "-ww", "-E", "-o", "pid=,ppid=,command="]);
        chain(std::process::id(), &plain, &full)
    }

    #[cfg(target_os = "macos")]
    fn listing(options: &[&str]) -> String {
        use super::super::super::ExternalCommand;
        let argv = std::iter::once("/bin/ps").chain(options.iter().copied());
        let command = Command {
            argv: argv.map(str::to_owned).collect(),
            folder: "/".into(),
            deadline: std::time::Duration::from_secs(5),
            output_max: 16 * 1024 * 1024,
            ..Command::default()
        };
        let output = super::super::process::run(&command).map(|it| it.stdout).unwrap_or_default();
        String::from_utf8_lossy(&output).into_owned()
    }

    /// Returns the ancestors of a process from two listings of `PID PARENT COMMAND`, the second one
    /// with the environment after each command.
    pub(super) fn chain(own: u32, plain: &str, full: &str) -> Vec<Ancestor> {
        let (plain, full) = (rows(plain), rows(full));
        let mut found: Vec<Ancestor> = Vec::new();
        let mut pid = plain.get(&own).map_or(0, |it| it.0);
        while pid != 0 && found.len() < ANCESTORS_MAX && found.iter().all(|it| it.pid != pid) {
            let Some((parent, command)) = plain.get(&pid) else { break };
            let rest = full.get(&pid).and_then(|(_, it)| it.strip_prefix(command)).unwrap_or("");
            let names = rest.split_whitespace().filter_map(|it| it.split_once('='));
            let arguments: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
            found.push(Ancestor {
                pid,
                program: arguments.first().cloned().unwrap_or_default(),
                variables: names.map(|(name, _)| name.to_owned()).collect(),
                arguments,
            });
            pid = *parent;
        }
        found
    }

    fn rows(text: &str) -> BTreeMap<u32, (u32, &str)> {
        let row = |line| {
            let line: &str = line;
            let (pid, rest) = line.trim_start().split_once(char::is_whitespace)?;
            let (parent, command) = rest.trim_start().split_once(char::is_whitespace)?;
            Some((pid.parse().ok()?, (parent.parse().ok()?, command.trim())))
        };
        text.lines().filter_map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_become_a_chain_with_variables() {
        let plain = "  1 0 /sbin/launchd\n 40 1 /usr/local/bin/claude -p x\n 41 40 zsh -c policyd\n 42 41 policyd\n";
        let full = " 40 1 /usr/local/bin/claude -p x HOME=/u\n 41 40 zsh -c policyd HOME=/u CLAUDECODE=1\n";
        let found = listed::chain(42, plain, full);
        let pids: Vec<u32> = found.iter().map(|it| it.pid).collect();
        assert_eq!(pids, [41, 40, 1]);
        assert_eq!(found[0].variables, ["HOME", "CLAUDECODE"]);
        assert_eq!(found[1].arguments, ["/usr/local/bin/claude", "-p", "x"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_parent_of_a_test_is_found_with_its_program() {
        let found = ancestors();
        let parent = found.first().map(|it| it.pid);
        assert_eq!(parent, std::os::unix::process::parent_id().into());
        assert!(found.iter().all(|it| !it.program.is_empty()), "{found:?}");
        assert!(found.iter().any(|it| it.variables.iter().any(|name| name == "PATH")), "{found:?}");
    }
}
