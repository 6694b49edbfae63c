//! Files, processes, and the terminal of Windows. Tested in Wine, never in Windows.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::AsRawHandle;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use sysinfo::{Pid, Process, ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};
use win32job::{ExtendedLimitInfo, Job};

use super::super::file::{Links, world_error};
use crate::{ANCESTORS_MAX, Ancestor, Ancestry, AncestryGap, WorldError};

/// Devices for the user's input and output, independent of standard input and output.
pub(in super::super) const TERMINAL: (&str, &str) = ("CONIN$", "CONOUT$");

/// Signals that would end this process.
pub(in super::super) const INTERRUPTS: [i32; 2] = [SIGINT, SIGTERM];

/// `FILE_FLAG_BACKUP_SEMANTICS`, without which a directory cannot be opened.
const OPEN_DIRECTORY: u32 = 0x0200_0000;
/// `ERROR_INVALID_FUNCTION`, `ERROR_NOT_SUPPORTED`.
const UNSUPPORTED: [i32; 2] = [1, 50];
/// `ERROR_ACCESS_DENIED`, `ERROR_INVALID_PARAMETER`: answers to a flush of a directory.
const NOT_FOR_DIRECTORIES: [i32; 2] = [5, 87];
/// `ERROR_HANDLE_EOF`.
const END_OF_FILE: i32 = 38;

/// Returns the user of this process. Users have no numbers here.
pub(in super::super) fn user() -> Option<u32> {
    None
}

/// Returns another name of a variable in this system. Only shells that came from other systems set `HOME`.
pub(in super::super) fn other_name(variable: &str) -> Option<&'static str> {
    (variable == "HOME").then_some("USERPROFILE")
}

/// Does nothing, because this system has no limit of the size of files.
pub(in super::super) fn outlive_file_limits() {}

/// Does not wait, because standard input cannot be polled. The caller reads and blocks.
pub(in super::super) fn input_comes(_within: Duration) -> bool {
    true
}

/// Returns a path as this system writes it. Git Bash writes `C:\a` as `/c/a`.
pub(in super::super) fn native(path: &Path) -> Cow<'_, Path> {
    let drive = path.to_str().and_then(|it| {
        let (drive, rest) = it.strip_prefix('/')?.split_at_checked(1)?;
        let is_drive = drive.starts_with(|c: char| c.is_ascii_alphabetic());
        let rest = if rest.is_empty() { "/" } else { rest };
        (is_drive && rest.starts_with(['/', '\\']))
            .then(|| PathBuf::from(format!("{drive}:{rest}")))
    });
    drive.map_or(Cow::Borrowed(path), Cow::Owned)
}

/// Returns a resolved path in its usual form: `C:\a` instead of `\\?\C:\a`.
pub(in super::super) fn usual(resolved: PathBuf) -> PathBuf {
    let Some(rest) = resolved.to_str().and_then(|it| it.strip_prefix(r"\\?\")) else {
        return resolved;
    };
    match rest.strip_prefix("UNC") {
        Some(share) => PathBuf::from(format!(r"\{share}")),
        None => PathBuf::from(rest),
    }
}

/// Opens a file. Its directory says who can read it.
pub(in super::super) fn open(
    options: &mut OpenOptions,
    path: &Path,
    links: Links,
) -> Result<File, WorldError> {
    let path = &*native(path);
    let is_link = || fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
    if links == Links::Refuse && is_link() {
        return Err(WorldError::Io("is a symbolic link".to_owned()));
    }
    options.open(path).map_err(|error| match path.is_dir() {
        true => WorldError::NotAFile,
        false => world_error(&error),
    })
}

/// Reads from an offset.
pub(in super::super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    match file.seek_read(buffer, offset) {
        Err(error) if error.raw_os_error() == Some(END_OF_FILE) => Ok(0),
        answer => answer,
    }
}

/// Does nothing, because directories have the rights of the directory above, which is the user's own.
pub(in super::super) fn make_private(_builder: &mut DirBuilder) {}

/// Does nothing, because files have the rights of their directory.
pub(in super::super) fn publish(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Copies whether a file is read-only.
pub(in super::super) fn copy_rights(from: &Path, to: &Path) -> Result<(), WorldError> {
    let copied = fs::metadata(native(from))
        .and_then(|meta| fs::set_permissions(native(to), meta.permissions()));
    copied.map_err(|error| world_error(&error))
}

/// Looks at each directory between a root and a path. The owner is not known.
pub(in super::super) fn owner_on_way(root: &Path, way: &Path) -> Result<Option<u32>, WorldError> {
    let mut folder = native(root).into_owned();
    for part in way.components() {
        folder.push(part);
        if fs::symlink_metadata(&folder).is_ok_and(|meta| meta.is_symlink()) {
            return Err(WorldError::Io("is a symbolic link".to_owned()));
        }
    }
    Ok(None)
}

/// Returns the process that holds the lock on a file. This system does not list locks.
pub(in super::super) fn lock_holder(_path: &Path) -> Option<String> {
    None
}

/// Returns the names in a directory. Its identity is not known.
pub(in super::super) fn look_into(path: &Path) -> io::Result<(u64, Vec<String>)> {
    let names =
        fs::read_dir(native(path))?.map(|it| Ok(it?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<io::Result<Vec<String>>>()?;
    names.sort();
    Ok((0, names))
}

/// Returns whether this user may create files in a directory. Only an attempt would tell.
pub(in super::super) fn is_writable(_folder: &Path) -> bool {
    true
}

/// Saves the entries of a directory with `FlushFileBuffers`. A file system that refuses it for directories writes them later.
pub(in super::super) fn sync_folder(path: &Path) -> io::Result<()> {
    let opened = OpenOptions::new().write(true).custom_flags(OPEN_DIRECTORY).open(native(path));
    let is_refused = |code| is_unsupported(code) || NOT_FOR_DIRECTORIES.contains(&code);
    match opened.and_then(|it| it.sync_all()) {
        Err(error) if error.raw_os_error().is_some_and(is_refused) => Ok(()),
        saved => saved,
    }
}

/// Whether an error of the operating system says that a file system does not support a call.
pub(in super::super) fn is_unsupported(code: i32) -> bool {
    UNSUPPORTED.contains(&code)
}

/// Is not possible here. The caller replaces the file.
pub(in super::super) fn exchange(_one: &Path, _other: &Path) -> Result<(), WorldError> {
    Err(WorldError::Unsupported)
}

/// Returns whether `path` still names the open `file`, which cannot be deleted here.
pub(in super::super) fn is_at(_file: &File, _path: &Path) -> io::Result<bool> {
    Ok(true)
}

pub(in super::super) fn owner(_meta: &fs::Metadata) -> Option<u32> {
    None
}

/// Whether others may write to a file. The rights of files are not read.
pub(in super::super) fn shared_write(_meta: &fs::Metadata) -> bool {
    false
}

/// Returns 0, because the identity is not known without opening the file.
pub(in super::super) fn identity(_meta: &fs::Metadata) -> u64 {
    0
}

/// Returns the command of an executable. The system gives it its own name.
pub(in super::super) fn named_command(path: &Path, _name: &str) -> Command {
    Command::new(path)
}

/// Returns whether policyd searches a command in the directories of PATH. The system does it, by the endings of programs.
pub(in super::super) fn is_searched(_program: &str) -> bool {
    false
}

pub(in super::super) fn can_run(path: &Path) -> bool {
    path.is_file()
}

/// A program and all processes that it starts: a job, which ends with its last handle. If this process ends in any way, the
/// system closes the handle.
pub(in super::super) struct ProcessGroup {
    /// The program.
    pub(in super::super) child: Child,
    /// `None` if the system refuses one. Then only the program itself is ended.
    job: Option<Job>,
}

impl ProcessGroup {
    /// Starts a program in its own job. A process that it starts in its first moment can escape.
    pub(in super::super) fn start(command: &mut Command) -> io::Result<Self> {
        let mut limits = ExtendedLimitInfo::new();
        let job = Job::create_with_limit_info(limits.limit_kill_on_job_close()).ok();
        let child = command.spawn()?;
        let handle = child.as_raw_handle().expose_provenance().cast_signed();
        let job = job.filter(|it| it.assign_process(handle).is_ok());
        Ok(Self { child, job })
    }

    /// Returns whether the program has ended.
    pub(in super::super) fn has_exited(&mut self) -> Result<bool, WorldError> {
        self.child.try_wait().map(|it| it.is_some()).map_err(|error| world_error(&error))
    }

    /// Does nothing, because a process without a window cannot be asked.
    pub(in super::super) fn ask_to_end(&self) {}

    /// Ends all processes.
    pub(in super::super) fn kill(&mut self) {
        self.job = None;
        self.child.kill().ok();
    }
}

/// Returns the exit code of a program.
pub(in super::super) fn exit_code(status: ExitStatus) -> Option<i32> {
    status.code()
}

/// Is not needed, because the system ends the job of a program with this process.
pub(in super::super) struct Watchdog;

impl Watchdog {
    pub(in super::super) fn over(_group: &ProcessGroup) -> Option<Self> {
        None
    }

    pub(in super::super) fn id(&self) -> u32 {
        0
    }
}

/// Programs of the system at which a chain of parents ends. The system forgets who started them.
const ROOTS: [&str; 5] =
    ["explorer.exe", "services.exe", "wininit.exe", "winlogon.exe", "csrss.exe"];

/// Returns the chain of parents. The system keeps only the number of a parent that ended, so a chain that does not end at a program
/// of the system has a gap.
pub(in super::super) fn ancestry() -> Ancestry {
    let mut system = System::new();
    let plain = ProcessRefreshKind::nothing();
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, plain);
    let own = Pid::from_u32(std::process::id());
    let mut chain: Vec<Pid> = Vec::new();
    let mut at = own;
    while let Some(parent) = parent(&system, at).filter(|it| !chain.contains(it)) {
        if chain.len() >= ANCESTORS_MAX {
            return Ancestry { gap: Some(AncestryGap::TooMany), ..Ancestry::default() };
        }
        chain.push(parent);
        at = parent;
    }
    let full = plain
        .with_cmd(UpdateKind::Always)
        .with_exe(UpdateKind::Always)
        .with_environ(UpdateKind::Always);
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&chain), true, full);
    let is_root = |it: &Process| ROOTS.iter().any(|root| it.name().eq_ignore_ascii_case(root));
    let is_seen = |it: &Process| !it.cmd().is_empty() || is_root(it);
    let unseen = chain.iter().find(|it| !system.process(**it).is_some_and(is_seen));
    let ends = chain.last().and_then(|it| system.process(*it)).is_some_and(is_root);
    let gap =
        unseen.or_else(|| (!ends).then_some(&at)).map(|it| AncestryGap::Unreadable(it.as_u32()));
    let processes = chain.iter().filter_map(|it| system.process(*it)).map(ancestor).collect();
    Ancestry { processes, gap }
}

/// Returns the parent of a process, which is older than the process. The start of some processes of the system is not known.
fn parent(system: &System, pid: Pid) -> Option<Pid> {
    let process = system.process(pid)?;
    let parent = system.process(process.parent()?)?;
    let is_known = process.start_time() > 0;
    (!is_known || parent.start_time() <= process.start_time()).then(|| parent.pid())
}

/// Returns a process. Names of files are in lower case, because the system ignores case.
fn ancestor(process: &Process) -> Ancestor {
    let text = |it: &OsString| {
        let text = it.to_string_lossy();
        if text.contains(['/', '\\', '.']) { text.to_lowercase() } else { text.into_owned() }
    };
    let program = process.exe().map_or(process.name(), Path::as_os_str).to_owned();
    let variable = |it: &OsString| Some(it.to_string_lossy().split_once('=')?.0.to_owned());
    Ancestor {
        pid: process.pid().as_u32(),
        program: text(&program),
        arguments: process.cmd().iter().map(text).collect(),
        variables: process.environ().iter().filter_map(variable).collect(),
    }
}

/// This system does not let a process adopt orphans.
pub(in super::super) fn adopt_orphans(_adopts: bool) {}

/// This process has no orphans.
pub(in super::super) fn reap_orphans(_known: &[u32]) {}

/// Kills the processes whose environment contains this entry. Those of a run are in its job, which this does not replace.
pub(in super::super) fn kill_marked(entry: &str) -> Result<usize, WorldError> {
    let mut system = System::new();
    Ok(marked(&mut system, entry).filter(|it| it.kill()).count())
}

/// Returns the other processes whose environment contains this entry.
fn marked<'s>(system: &'s mut System, entry: &str) -> impl Iterator<Item = &'s Process> {
    let kind = ProcessRefreshKind::nothing().with_environ(UpdateKind::Always);
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
    let own = Pid::from_u32(std::process::id());
    system.processes().values().filter(move |it| {
        it.pid() != own && it.environ().iter().any(|variable| variable.to_str() == Some(entry))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_its_shell_are_paths_of_the_system() {
        for (written, path) in [
            ("/c/Users/ada", "c:/Users/ada"),
            ("/c", "c:/"),
            ("/config", "/config"),
            ("//host/share", "//host/share"),
            ("C:\\a", "C:\\a"),
            ("a", "a"),
        ] {
            assert_eq!(native(Path::new(written)), Path::new(path), "{written}");
        }
        for (resolved, path) in
            [(r"\\?\C:\a", r"C:\a"), (r"\\?\UNC\host\share", r"\\host\share"), (r"C:\a", r"C:\a")]
        {
            assert_eq!(usual(PathBuf::from(resolved)), Path::new(path));
        }
    }

    #[test]
    fn a_process_that_a_program_started_ends_with_its_group() {
        let mut command = Command::new("cmd");
        command.args(["/c", "start /b ping -n 600 127.0.0.1 & ping -n 600 127.0.0.1"]);
        command.env("POLICYD_TEST_GROUP", "1").stdout(std::process::Stdio::null());
        let mut group = ProcessGroup::start(&mut command).unwrap();
        assert!(!group.has_exited().unwrap());
        let mut system = System::new();
        let mut count = || marked(&mut system, "POLICYD_TEST_GROUP=1").count();
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while count() < 3 {
            assert!(std::time::Instant::now() < deadline, "the program did not start two others");
        }
        group.kill();
        group.child.wait().unwrap();
        assert_eq!(count(), 0, "a process is left");
    }

    #[test]
    fn the_parent_of_a_program_is_this_process() {
        let mut command = Command::new("ping");
        command.args(["-n", "600", "127.0.0.1"]).stdout(std::process::Stdio::null());
        let mut group = ProcessGroup::start(&mut command).unwrap();
        let mut system = System::new();
        system.refresh_processes(ProcessesToUpdate::All, true);
        let found = parent(&system, Pid::from_u32(group.child.id()));
        group.kill();
        assert_eq!(found, Some(Pid::from_u32(std::process::id())));
    }

    #[test]
    fn a_chain_of_parents_that_is_cut_has_a_gap() {
        let found = ancestry();
        let root = found.processes.last().map(|it| it.program.clone()).unwrap_or_default();
        let ends = ROOTS.iter().any(|it| root.ends_with(it));
        assert_eq!(found.gap.is_none(), ends, "{found:?}");
    }
}
