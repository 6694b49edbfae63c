//! Ancestors of this process: from `/proc` on Linux, from `ps` on macOS.

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
use super::super::Ancestry;
#[cfg(target_os = "macos")]
pub(super) use listed::ancestry;
#[cfg(target_os = "linux")]
pub(super) use proc::ancestry;

/// The first process of a machine, where every chain of parents ends.
#[cfg(any(target_os = "linux", target_os = "macos", test))]
const FIRST_PROCESS: u32 = 1;

/// Returns an empty list, because this system does not list processes.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(super) fn ancestry() -> Ancestry {
    Ancestry::default()
}

#[cfg(target_os = "linux")]
mod proc {
    use std::fs::{self, File};
    use std::io::Read;

    use super::super::super::{ANCESTORS_MAX, Ancestor, Ancestry, AncestryGap};
    use super::FIRST_PROCESS;

    /// Maximum bytes that are read of the arguments and of the environment of a process.
    const BYTES_MAX: u64 = 1024 * 1024;
    /// Inode of the initial PID namespace: `PROC_PID_INIT_INO` of Linux.
    const INITIAL_NAMESPACE: &str = "pid:[4026531836]";

    /// Returns the chain of parents, then the leader of the session with its parents. The leader is
    /// often the terminal's shell, and is missing in the chain if a parent ended.
    pub(in super::super) fn ancestry() -> Ancestry {
        let own = std::process::id();
        let mut found = Ancestry::default();
        let Some(status) = ProcStatus::of(own) else {
            return Ancestry { gap: Some(AncestryGap::Unreadable(own)), ..found };
        };
        let chains = [status.parent, status.session].map(|it| climb(it, own, &mut found));
        found.gap = namespace(own).or_else(|| chains.into_iter().flatten().next());
        found
    }

    /// Returns why the processes in `/proc` are not those of the machine. Another file system over
    /// `/proc` can contain anything.
    fn namespace(own: u32) -> Option<AncestryGap> {
        let is_proc = |it: rustix::fs::StatFs| it.f_type == rustix::fs::PROC_SUPER_MAGIC;
        if !rustix::fs::statfs("/proc").is_ok_and(is_proc) {
            return Some(AncestryGap::Unreadable(own));
        }
        match fs::read_link(format!("/proc/{own}/ns/pid")) {
            Ok(link) if link.as_os_str() == INITIAL_NAMESPACE => None,
            Ok(_) => Some(AncestryGap::Namespace),
            Err(_) => Some(AncestryGap::Unreadable(own)),
        }
    }

    /// Adds a process and its parents. Returns why the chain does not end at the first process.
    fn climb(mut pid: u32, own: u32, found: &mut Ancestry) -> Option<AncestryGap> {
        let known = |pid: u32, found: &Ancestry| found.processes.iter().any(|it| it.pid == pid);
        loop {
            if pid == own || known(pid, found) {
                return None;
            }
            if found.processes.len() >= ANCESTORS_MAX {
                return Some(AncestryGap::TooMany);
            }
            // The parent of a process that another namespace started is 0.
            if pid == 0 {
                return Some(AncestryGap::Namespace);
            }
            let Some(status) = ProcStatus::of(pid) else {
                return Some(AncestryGap::Unreadable(pid));
            };
            let parent = status.parent;
            let process = inspect(pid, status);
            if process.program.is_empty() && process.arguments.is_empty() {
                return Some(AncestryGap::Unreadable(pid));
            }
            found.processes.push(process);
            if pid == FIRST_PROCESS {
                return None;
            }
            pid = parent;
        }
    }

    /// Reads what a process runs. The program file of another user's process is not readable, but
    /// its name and its arguments are.
    fn inspect(pid: u32, status: ProcStatus) -> Ancestor {
        let file = fs::read_link(format!("/proc/{pid}/exe")).ok();
        let file = file.map(|it| it.to_string_lossy().into_owned());
        // A program that an update replaced still runs.
        let file = file.map(|it| it.strip_suffix(" (deleted)").map_or(it.clone(), str::to_owned));
        let variable = |it: String| it.split_once('=').map(|(name, _)| name.to_owned());
        Ancestor {
            pid,
            program: file.unwrap_or(status.name),
            arguments: texts(&format!("/proc/{pid}/cmdline")).collect(),
            variables: texts(&format!("/proc/{pid}/environ")).filter_map(variable).collect(),
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
            let (listed, rest) = text.split_once('(')?;
            // The directory of another process can be mounted over this one.
            if listed.trim().parse() != Ok(pid) {
                return None;
            }
            let (name, rest) = rest.rsplit_once(')')?;
            let mut numbers = rest.split_whitespace().skip(1).map(|it| it.parse().ok());
            let (parent, _group, session) = (numbers.next()??, numbers.next()?, numbers.next()??);
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

    use super::super::super::{ANCESTORS_MAX, Ancestor, Ancestry, AncestryGap};
    use super::FIRST_PROCESS;

    /// Lists every process with `ps`, without and with its environment.
    #[cfg(target_os = "macos")]
    pub(in super::super) fn ancestry() -> Ancestry {
        let plain = listing(&["-A", "-ww", "-o", "pid=,ppid=,command="]);
        let full = listing(&["-A", "-ww", "-E", "-o", "pid=,ppid=,command="]);
        chain(std::process::id(), &plain, &full)
    }

    #[cfg(target_os = "macos")]
    fn listing(options: &[&str]) -> String {
        use super::super::super::ExternalCommand;
        let argv = std::iter::once("/bin/ps").chain(options.iter().copied());
        let command = ExternalCommand {
            argv: argv.map(str::to_owned).collect(),
            folder: "/".into(),
            deadline: std::time::Duration::from_secs(5),
            output_max: 16 * 1024 * 1024,
            ..ExternalCommand::default()
        };
        let output = super::super::process::run(&command).map(|it| it.stdout).unwrap_or_default();
        String::from_utf8_lossy(&output).into_owned()
    }

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
            let rest = full.get(&pid).and_then(|(_, it)| it.strip_prefix(command)).unwrap_or("");
            let names = rest.split_whitespace().filter_map(|it| it.split_once('='));
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
    use super::super::super::AncestryGap;
    use super::*;

    #[test]
    fn listings_become_a_chain_with_variables() {
        let plain = "  1 0 /sbin/launchd\n 40 1 /usr/local/bin/claude -p x\n 41 40 zsh -c policyd\n 42 41 policyd\n";
        let full = " 40 1 /usr/local/bin/claude -p x HOME=/u\n 41 40 zsh -c policyd HOME=/u CLAUDECODE=1\n";
        let found = listed::chain(42, plain, full);
        assert_eq!(found.gap, None);
        let found = found.processes;
        let pids: Vec<u32> = found.iter().map(|it| it.pid).collect();
        assert_eq!(pids, [41, 40, 1]);
        assert_eq!(found[0].variables, ["HOME", "CLAUDECODE"]);
        assert_eq!(found[1].arguments, ["/usr/local/bin/claude", "-p", "x"]);
    }

    #[test]
    fn a_listing_without_the_first_process_has_a_gap() {
        let gap = |plain: &str| listed::chain(42, plain, "").gap;
        assert_eq!(gap(""), Some(AncestryGap::Unreadable(42)));
        assert_eq!(gap(" 42 41 policyd\n 41 40 zsh\n"), Some(AncestryGap::Unreadable(40)));
        let long: String = (1..200).map(|it| format!("{} {} sh\n", it + 42, it + 43)).collect();
        assert_eq!(gap(&format!("42 43 policyd\n{long}")), Some(AncestryGap::TooMany));
        assert_eq!(gap("42 43 policyd\n43 42 sh\n"), Some(AncestryGap::Unreadable(42)), "a circle");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_parent_of_a_test_is_found_with_its_program() {
        let found = ancestry().processes;
        let parent = found.first().map(|it| it.pid);
        assert_eq!(parent, std::os::unix::process::parent_id().into());
        assert!(found.iter().all(|it| !it.program.is_empty()), "{found:?}");
        assert!(found.iter().any(|it| it.variables.iter().any(|name| name == "PATH")), "{found:?}");
    }
}
