//! What is particular to Linux: `/proc`, and calls of its kernel.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, WaitOptions};

use super::super::file::world_error;
use super::FIRST_PROCESS;
use super::unix::{kill_found, walk};
use crate::{ANCESTORS_MAX, Ancestor, Ancestry, AncestryGap, WorldError};

/// Opens the directories between a root and a path, relative to the root and without following
/// links. Returns the owner of the last one.
pub(in super::super) fn owner_on_way(root: &Path, way: &Path) -> Result<Option<u32>, WorldError> {
    use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, open, openat2};
    use rustix::io::Errno;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(root_folder) = open(root, flags, Mode::empty()) else { return Ok(None) };
    if way.as_os_str().is_empty() {
        return Ok(fstat(&root_folder).ok().map(|it| it.st_uid));
    }
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    match openat2(&root_folder, way, flags, Mode::empty(), resolve) {
        Ok(folder) => Ok(fstat(&folder).ok().map(|it| it.st_uid)),
        Err(Errno::LOOP | Errno::XDEV) => Err(WorldError::Io("is a symbolic link".to_owned())),
        // A kernel before 5.6, or a sandbox that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => walk(root, way),
        // A missing directory is not a link. The change itself reports any other error.
        Err(_) => Ok(None),
    }
}

/// Returns the process that holds the lock on a file, if the system lists locks.
pub(in super::super) fn lock_holder(path: &Path) -> Option<String> {
    let inode = fs::metadata(path).ok()?.ino().to_string();
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    // `1: FLOCK ADVISORY WRITE 4711 08:01:131 0 EOF`; a waiting process has `->` behind its number.
    let process = locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", process, file, ..] = words.as_slice() else { return None };
        (file.rsplit(':').next() == Some(inode.as_str())).then(|| (*process).to_owned())
    });
    let process = process.filter(|it| it != "0")?;
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    Some(format!("process {process} ({})", name.trim().escape_debug()))
}

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
    /// Whether it ended, and its parent did not learn of it yet.
    is_zombie: bool,
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
        let mut words = rest.split_whitespace();
        let is_zombie = matches!(words.next()?, "Z" | "X");
        let mut numbers = words.map(|it| it.parse().ok());
        let (parent, _group, session) = (numbers.next()??, numbers.next()?, numbers.next()??);
        Some(Self { name: name.to_owned(), is_zombie, parent, session })
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

/// Whether this process becomes the parent of each process below it whose parent ends.
static ADOPTS_ORPHANS: AtomicBool = AtomicBool::new(false);
/// Time in which killed processes end.
const KILLED_WITHIN: Duration = Duration::from_millis(200);

/// Sets whether this process becomes the parent of each process below it whose parent ends. So they stay below it, whatever
/// their session and their environment are.
pub(in super::super) fn adopt_orphans(adopts: bool) {
    let process = adopts.then(rustix::process::getpid);
    let is_set = rustix::process::set_child_subreaper(process).is_ok();
    ADOPTS_ORPHANS.store(adopts && is_set, Ordering::Relaxed);
}

/// Lets the kernel forget children of this process that ended, if it adopts orphans. `known`: children that other code
/// waits for.
pub(in super::super) fn reap_orphans(known: &[u32]) {
    if !ADOPTS_ORPHANS.load(Ordering::Relaxed) {
        return;
    }
    let own = std::process::id();
    let is_over = |it: &ProcStatus| it.parent == own && it.is_zombie;
    for (id, _) in processes().filter(|(id, it)| is_over(it) && !known.contains(id)) {
        if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
            let _gone = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// Kills the processes whose environment contains this entry, and all processes below this one if it adopts orphans, which
/// it does not do afterwards: what a command of this process starts between turns, such as an agent for keys, stays.
pub(in super::super) fn kill_marked(entry: &str) -> Result<usize, WorldError> {
    if !ADOPTS_ORPHANS.load(Ordering::Relaxed) {
        return kill_found(|| marked(entry));
    }
    let killed = kill_found(|| Ok(marked(entry)?.chain(descendants())));
    let mut waited = Duration::ZERO;
    while waited < KILLED_WITHIN && !descendants().is_empty() {
        let pause = Duration::from_millis(5);
        std::thread::sleep(pause);
        waited = waited.saturating_add(pause);
    }
    reap_orphans(&[]);
    adopt_orphans(false);
    killed
}

/// Returns all processes with their status.
fn processes() -> impl Iterator<Item = (u32, ProcStatus)> {
    let found = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = found.filter_map(|it| it.file_name().to_str()?.parse().ok());
    ids.filter_map(|id| Some((id, ProcStatus::of(id)?)))
}

/// Returns the processes below this one that did not end.
fn descendants() -> Vec<i32> {
    let (own, all) = (std::process::id(), processes().collect::<BTreeMap<u32, ProcStatus>>());
    let parent = |id: &u32| all.get(id).map(|it| it.parent);
    // A longer chain is below this process as soon as its upper part is dead.
    let is_below = |id: u32| {
        std::iter::successors(Some(id), parent).skip(1).take(ANCESTORS_MAX).any(|it| it == own)
    };
    let alive = all.iter().filter(|(id, it)| !it.is_zombie && is_below(**id));
    alive.filter_map(|(id, _)| i32::try_from(*id).ok()).collect()
}

/// Returns the other processes whose environment contains this entry, each as soon as it is found.
fn marked(entry: &str) -> Result<impl Iterator<Item = i32>, WorldError> {
    let own = i32::try_from(std::process::id()).ok();
    let found = fs::read_dir("/proc").map_err(|error| world_error(&error))?;
    Ok(found.flatten().filter_map(move |found| {
        let id = found.file_name().to_str()?.parse().ok().filter(|it| Some(*it) != own)?;
        // Processes of other users cannot be read and do not matter.
        let environment = fs::read(found.path().join("environ")).ok()?;
        environment.split(|it| *it == 0).any(|it| it == entry.as_bytes()).then_some(id)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_of_a_test_is_found_with_its_program() {
        let found = ancestry().processes;
        let parent = found.first().map(|it| it.pid);
        assert_eq!(parent, std::os::unix::process::parent_id().into());
        assert!(found.iter().all(|it| !it.program.is_empty()), "{found:?}");
        assert!(found.iter().any(|it| it.variables.iter().any(|name| name == "PATH")), "{found:?}");
    }
}
