//! The signal handler.

use std::ffi::{CString, c_int};
use std::mem;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::CrashAnswer;

/// Signals that end a process through its own fault, through a limit or a timer that it inherited, or because its
/// client does not wait longer. Of these, `SIGKILL` cannot be handled.
const SIGNALS: [c_int; 11] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGABRT,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGSYS,
    libc::SIGTRAP,
    libc::SIGXCPU,
    libc::SIGVTALRM,
    libc::SIGALRM,
    libc::SIGTERM,
];
/// Size of the stack of the handler, if the thread has none yet.
const STACK_BYTES: usize = 64 * 1024;
/// Rights of a record: its user's alone.
const RECORD_MODE: libc::c_uint = 0o600;
const FOLDER_MODE: libc::mode_t = 0o700;

/// Everything that the handler needs.
struct PreparedAnswer {
    answer: Vec<u8>,
    text: Vec<u8>,
    record: Option<CString>,
    /// The directories above the record, outermost first.
    folders: Vec<CString>,
}

static PREPARED: AtomicPtr<PreparedAnswer> = AtomicPtr::new(ptr::null_mut());
/// Whether a thread writes the answer already.
static IS_ANSWERING: AtomicBool = AtomicBool::new(false);
static INSTALLED: Once = Once::new();

pub(crate) fn prepare(answer: CrashAnswer<'_>) {
    let path = |it: &Path| CString::new(it.as_os_str().as_bytes()).ok();
    let record = answer.record.and_then(path);
    let above = answer.record.into_iter().flat_map(|it| it.ancestors().skip(1));
    let mut folders: Vec<CString> = above.filter_map(path).collect();
    folders.reverse();
    let prepared = PreparedAnswer {
        answer: answer.answer.to_vec(),
        text: answer.text.to_vec(),
        record,
        folders,
    };
    // The handler may read the previous value at any moment, so it is never freed.
    PREPARED.store(Box::into_raw(Box::new(prepared)), Ordering::Release);
    INSTALLED.call_once(install);
}

pub(crate) fn withdraw() {
    PREPARED.store(ptr::null_mut(), Ordering::Release);
}

/// Installs the handler for this process, and gives this thread a stack for it. Where the machine refuses, the
/// signals do what they do without it.
fn install() {
    ensure_stack();
    // SAFETY: `sigaction` is a structure of C, for which zeros are valid.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handle as extern "C" fn(c_int) as usize;
    action.sa_flags = libc::SA_ONSTACK;
    // SAFETY: the mask belongs to this function.
    unsafe { libc::sigfillset(&raw mut action.sa_mask) };
    // SAFETY: as above.
    let mut own: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: the set belongs to this function.
    unsafe { libc::sigemptyset(&raw mut own) };
    for signal in SIGNALS {
        // SAFETY: the action is complete, and its handler is async-signal-safe.
        unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
        // SAFETY: the set belongs to this function.
        unsafe { libc::sigaddset(&raw mut own, signal) };
    }
    // A parent can start its programs with signals blocked.
    // SAFETY: the set is complete.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const own, ptr::null_mut()) };
}

/// Gives this thread a stack for signal handlers. The standard library does so too, unless the parent ignores
/// `SIGSEGV`.
fn ensure_stack() {
    // SAFETY: `stack_t` is a structure of C, for which zeros are valid.
    let mut known: libc::stack_t = unsafe { mem::zeroed() };
    // SAFETY: the result belongs to this function.
    let answer = unsafe { libc::sigaltstack(ptr::null(), &raw mut known) };
    if answer != 0 || known.ss_flags & libc::SS_DISABLE == 0 {
        return;
    }
    let bytes: &'static mut [u8] = Box::leak(vec![0; STACK_BYTES].into_boxed_slice());
    known.ss_sp = bytes.as_mut_ptr().cast();
    known.ss_flags = 0;
    known.ss_size = STACK_BYTES;
    // SAFETY: the bytes live as long as the process, and nothing else uses them.
    unsafe { libc::sigaltstack(&raw const known, ptr::null_mut()) };
}

/// Writes the answer and the record, and ends the process. Without an answer, the signal does what it does by default.
extern "C" fn handle(signal: c_int) {
    let prepared = PREPARED.load(Ordering::Acquire);
    // SAFETY: the pointer is null or comes from `Box::into_raw`, and what it points to is never changed or freed.
    let Some(prepared) = (unsafe { prepared.as_ref() }) else {
        // SAFETY: both functions are async-signal-safe. The signal is delivered when the handler returns.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        // SAFETY: as above.
        unsafe { libc::raise(signal) };
        return;
    };
    if IS_ANSWERING.swap(true, Ordering::AcqRel) {
        loop {
            // SAFETY: `pause` is async-signal-safe. The other thread ends the process.
            unsafe { libc::pause() };
        }
    }
    write_all(libc::STDOUT_FILENO, &prepared.answer);
    leave_record(prepared, signal);
    // SAFETY: `_exit` is async-signal-safe.
    unsafe { libc::_exit(0) }
}

/// Appends the record to its file.
fn leave_record(prepared: &PreparedAnswer, signal: c_int) {
    let Some(record) = &prepared.record else { return };
    let flags = libc::O_WRONLY
        | libc::O_CREAT
        | libc::O_APPEND
        | libc::O_CLOEXEC
        | libc::O_NOFOLLOW
        | libc::O_NONBLOCK;
    // SAFETY: `open` is async-signal-safe, and the path ends with NUL.
    let open = || unsafe { libc::open(record.as_ptr(), flags, RECORD_MODE) };
    let mut file = open();
    if file < 0 {
        for folder in &prepared.folders {
            // SAFETY: `mkdir` is async-signal-safe, and the path ends with NUL.
            unsafe { libc::mkdir(folder.as_ptr(), FOLDER_MODE) };
        }
        file = open();
    }
    if file < 0 {
        return;
    }
    write_all(file, &prepared.text);
    let number = u8::try_from(signal).unwrap_or_default();
    let digits = [b' ', b'0' + number / 10 % 10, b'0' + number % 10, b'\n'];
    write_all(file, &digits);
}

/// Writes bytes, as far as the machine takes them.
fn write_all(file: c_int, bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        // SAFETY: `write` is async-signal-safe, and reads only the bytes of the slice.
        let written = unsafe { libc::write(file, rest.as_ptr().cast(), rest.len()) };
        match usize::try_from(written) {
            Ok(0) | Err(_) => return,
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
        }
    }
}
