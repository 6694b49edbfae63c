//! Files, processes, and the terminal of Linux and macOS, as POSIX describes them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Access, Dir, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

use super::super::file::{Links, open_regular, world_error};
use crate::WorldError;

/// Devices for the user's input and output, independent of standard input and output.
pub(in super::super) const TERMINAL: (&str, &str) = ("/dev/tty", "/dev/tty");

/// Signals that would end this process, including a hangup of the terminal.
pub(in super::super) const INTERRUPTS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Returns the user of this process.
pub(in super::super) fn user() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

/// Returns another name of a variable in this system.
pub(in super::super) fn other_name(_variable: &str) -> Option<&'static str> {
    None
}

/// Makes a write above the file size limit (`ulimit -f`) fail instead of ending this process.
pub(in super::super) fn outlive_file_limits() {
    // If the signal cannot be registered, it ends the process as usual.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).ok();
}

/// Waits for standard input. Returns whether it can be read.
pub(in super::super) fn input_comes(within: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = io::stdin();
    let mut asked = [PollFd::new(&stdin, PollFlags::IN)];
    let began = std::time::Instant::now();
    loop {
        let left = within.saturating_sub(began.elapsed());
        match poll(&mut asked, Timespec::try_from(left).ok().as_ref()) {
            Ok(ready) => return ready > 0,
            // A signal ended the wait and brought no input.
            Err(Errno::INTR) => {}
            // The caller reads and blocks.
            Err(_) => return true,
        }
    }
}

/// Returns a path as this system writes it.
pub(in super::super) fn native(path: &Path) -> Cow<'_, Path> {
    Cow::Borrowed(path)
}

/// Returns a resolved path in its usual form.
pub(in super::super) fn usual(resolved: PathBuf) -> PathBuf {
    resolved
}

/// Opens a file, private to the user if it is created. Never blocks on a pipe.
pub(in super::super) fn open(
    options: &mut OpenOptions,
    path: &Path,
    links: Links,
) -> Result<File, WorldError> {
    let mut flags = OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    if links == Links::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    options.mode(0o600).custom_flags(flags.bits().cast_signed());
    options.open(path).map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::LOOP) => WorldError::Io("is a symbolic link".to_owned()),
        // Errors of opening a directory, or a pipe without a reader, for writing.
        Some(Errno::NXIO | Errno::ISDIR) => WorldError::NotAFile,
        Some(_) | None => world_error(&error),
    })
}

/// Reads from an offset. The position of the file stays.
pub(in super::super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            answer => return answer,
        }
    }
}

/// Makes the directories that are created private to the user.
pub(in super::super) fn make_private(builder: &mut DirBuilder) {
    builder.mode(0o700);
}

/// Lets every user read a file or enter a directory, and only its owner write.
pub(in super::super) fn publish(path: &Path) -> io::Result<()> {
    let mode = if fs::metadata(path)?.is_dir() { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Copies the permissions and the owner of one file to another.
pub(in super::super) fn copy_rights(from: &Path, to: &Path) -> Result<(), WorldError> {
    let open = |path| open_regular(OpenOptions::new().read(true), path, Links::Refuse);
    let meta = |file: &File| file.metadata().map_err(|error| world_error(&error));
    let (from, to) = (meta(&open(from)?)?, open(to)?);
    let own = meta(&to)?;
    if (from.uid(), from.gid()) != (own.uid(), own.gid()) {
        let changed = std::os::unix::fs::fchown(&to, Some(from.uid()), Some(from.gid()));
        changed.map_err(|error| world_error(&error))?;
    }
    // After the owner, because a change of the owner clears special bits.
    let permissions = fs::Permissions::from_mode(from.mode() & 0o7777);
    to.set_permissions(permissions).map_err(|error| world_error(&error))
}

/// Opens directory after directory, without following links. Returns the owner of the last one.
pub(in super::super) fn walk(root: &Path, way: &Path) -> Result<Option<u32>, WorldError> {
    use rustix::fs::{fstat, open, openat};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let Ok(mut folder) = open(root, flags, Mode::empty()) else { return Ok(None) };
    for part in way.components() {
        match openat(&folder, part.as_os_str(), flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(next) => folder = next,
            // A link to a directory that is opened as a directory fails with one of these.
            Err(Errno::LOOP | Errno::NOTDIR | Errno::MLINK) => {
                return Err(WorldError::Io("is a symbolic link".to_owned()));
            }
            Err(_) => return Ok(None),
        }
    }
    Ok(fstat(&folder).ok().map(|it| it.st_uid))
}

/// Opens a directory once, and returns its identity and its names. A `stat` and a listing by path could see two directories.
pub(in super::super) fn look_into(path: &Path) -> io::Result<(u64, Vec<String>)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let folder = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let identity = identity(&folder.metadata()?);
    let mut names = Vec::new();
    for entry in Dir::new(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy();
        if name != "." && name != ".." {
            names.push(name.into_owned());
        }
    }
    names.sort();
    Ok((identity, names))
}

/// Returns whether this user may create files in a directory.
pub(in super::super) fn is_writable(folder: &Path) -> bool {
    let answer = rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK);
    !matches!(answer, Err(Errno::ACCESS | Errno::ROFS | Errno::PERM))
}

/// Saves the entries of a directory durably.
pub(in super::super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Whether an error of the operating system says that a file system does not support a call.
pub(in super::super) fn is_unsupported(code: i32) -> bool {
    let code = Errno::from_raw_os_error(code);
    [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTSUP].contains(&code)
}

/// Exchanges two files in one step.
pub(in super::super) fn exchange(one: &Path, other: &Path) -> Result<(), WorldError> {
    use rustix::fs::{CWD, renameat_with};
    let exchanged = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
    exchanged.map_err(|error| match is_unsupported(error.raw_os_error()) {
        true => WorldError::Unsupported,
        false => world_error(&error.into()),
    })
}

/// Returns whether `path` still names the open `file`.
pub(in super::super) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = identity(&file.metadata()?);
    Ok(fs::symlink_metadata(path).is_ok_and(|named| identity(&named) == held))
}

pub(in super::super) fn owner(meta: &fs::Metadata) -> Option<u32> {
    Some(meta.uid())
}

/// Whether the group or all users may write to a file.
pub(in super::super) fn shared_write(meta: &fs::Metadata) -> bool {
    meta.mode() & 0o022 != 0
}

/// Returns inode and device as one number; 0 means "unknown".
pub(in super::super) fn identity(meta: &fs::Metadata) -> u64 {
    (meta.dev().wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ meta.ino()).max(1)
}

/// Returns the command of an executable, which sees itself called by another name.
pub(in super::super) fn named_command(path: &Path, name: &str) -> Command {
    let mut process = Command::new(path);
    process.arg0(name);
    process
}

/// Returns whether a command that is this text is searched in the directories of PATH.
pub(in super::super) fn is_searched(program: &str) -> bool {
    !program.contains('/')
}

pub(in super::super) fn can_run(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// A program and all processes that it starts: a process group.
pub(in super::super) struct ProcessGroup {
    /// The program.
    pub(in super::super) child: Child,
}

impl ProcessGroup {
    /// Starts a program in its own group.
    pub(in super::super) fn start(command: &mut Command) -> io::Result<Self> {
        Ok(Self { child: command.process_group(0).spawn()? })
    }

    /// Returns whether the program has ended, without reaping it.
    pub(in super::super) fn has_exited(&mut self) -> Result<bool, WorldError> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let pid = self.pid().ok_or(WorldError::NotFound)?;
        let status = rustix::process::waitid(WaitId::Pid(pid), options);
        status.map(|it| it.is_some()).map_err(|error| world_error(&io::Error::from(error)))
    }

    /// Asks all processes to end.
    pub(in super::super) fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends all processes. A program that is not reaped keeps its id, so that no other process is hit.
    pub(in super::super) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.child.kill().ok(); // The program may have left its group.
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid() {
            // An error means that the group is already dead.
            rustix::process::kill_process_group(pid, signal).ok();
        }
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(0))
    }
}

/// Maximum number of searches for processes that are to end.
const KILL_ROUNDS_MAX: usize = 32;

/// Kills the processes that a search finds. They can start others meanwhile, so the search repeats until all found
/// processes are already dying.
pub(super) fn kill_found<Found: IntoIterator<Item = i32>>(
    search: impl Fn() -> Result<Found, WorldError>,
) -> Result<usize, WorldError> {
    let mut killed = BTreeSet::new();
    for _ in 0..KILL_ROUNDS_MAX {
        let before = killed.len();
        for id in search()? {
            let pid = Pid::from_raw(id).filter(|_| !killed.contains(&id));
            if pid.is_some_and(|it| rustix::process::kill_process(it, Signal::KILL).is_ok()) {
                killed.insert(id);
            }
        }
        if killed.len() == before {
            break;
        }
    }
    Ok(killed.len())
}

/// Returns the exit code. For a signal it is 128 plus the signal, as in a shell.
pub(in super::super) fn exit_code(status: ExitStatus) -> Option<i32> {
    status.code().or_else(|| Some(status.signal()?.saturating_add(128)))
}

/// A process that kills the group of a program after this process ended in any way, because the
/// operating system then closes the pipe between them.
pub(in super::super) struct Watchdog(Child);

impl Watchdog {
    /// Starts a watchdog. `None` if the system cannot start another process.
    pub(in super::super) fn over(group: &ProcessGroup) -> Option<Self> {
        let mut process = Command::new("/bin/sh");
        let id = group.child.id().to_string();
        process.args(["-c", "read -r _ || kill -s KILL -- \"-$0\"", &id]);
        process.env_clear().current_dir("/");
        process.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // A signal to the group of this process must not reach the watchdog.
        process.process_group(0).spawn().ok().map(Self)
    }
}

impl Watchdog {
    /// Returns the id of its process.
    pub(in super::super) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
