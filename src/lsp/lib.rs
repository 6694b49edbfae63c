//! `policyd lsp`: a language server for packs. It reads messages from one stream, writes messages to another one, and
//! writes no file. It evaluates rules only if the user trusts their pack; lint evaluates no rule.
//!
//! One thread answers requests. A second thread lints, so that no request waits for it (`worker`). A third one evaluates
//! cases and recorded sessions of trusted packs (`background`).
//!
//! Contains: the loop over messages. `server` has the state of the connection, `actions`, `features`, and `values` answer
//! requests, and `convert` translates values. Does not contain: what the answers say (`policyd-editor`).
//!
//! ```
//! // A client that leaves without a shutdown ends the server, too.
//! assert_ne!(policyd_lsp::ServerEnd::ShutDown, policyd_lsp::ServerEnd::ClientLeft);
//! ```

mod actions;
mod background;
mod convert;
mod features;
mod request;
mod server;
mod session_values;
mod settings;
mod values;
mod worker;

use std::io::{BufReader, ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::Builder;

use lsp_server::Message;

use background::SlowWorker;
use policyd_lint::Profile;
use policyd_policy::builtin;
use policyd_policy::review::Base;
use policyd_world::World;
pub use server::ServerEnd;
use server::{JobSenders, Server};
use worker::{JobResult, Worker};

/// Bytes that are read at once. The streams of a process buffer at most 8 KiB, which a larger buffer bypasses, so that
/// `World::input_comes` sees every byte that waits.
const READ_BYTES: usize = 64 * 1024;
/// Invalid messages in a row after which the server stops.
const INVALID_MESSAGES_MAX: usize = 16;
/// Whether `World::input_comes` waits on this system. If not, the server lints before it reads the next message.
const CAN_WAIT: bool = cfg!(unix);

/// Why the server stops early.
#[derive(Debug, thiserror::Error)]
pub enum LspError {
    /// Reading from the client failed.
    #[error("could not read from the editor: {0}")]
    Read(std::io::Error),
    /// Writing to the client failed.
    #[error("could not write to the editor: {0}")]
    Write(std::io::Error),
    /// The input does not consist of messages.
    #[error(
        "standard input contains no messages of the Language Server Protocol\nhelp: an editor starts `policyd lsp`; see `policyd help editors`"
    )]
    NoMessages,
    /// Starting a thread failed.
    #[error("could not start a thread: {0}")]
    Thread(std::io::Error),
}

/// Serves one client until it leaves.
///
/// # Errors
/// [`LspError`] if a stream or a thread fails, or the input contains no messages.
pub fn serve(
    world: &dyn World,
    input: &mut dyn Read,
    output: &mut dyn Write,
    profile: Profile,
) -> Result<ServerEnd, LspError> {
    let base = Base::new(&builtin::pack()).with_memo();
    let stop = AtomicBool::new(false);
    let (jobs, waiting) = mpsc::channel();
    let (slow_jobs, slow_waiting) = mpsc::channel();
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        let worker = Worker { world, base: &base, stop: &stop };
        let slow_worker = SlowWorker { world, stop: &stop };
        let slow_sender = sender.clone();
        Builder::new()
            .spawn_scoped(scope, move || worker.work(&waiting, &sender))
            .map_err(LspError::Thread)?;
        Builder::new()
            .spawn_scoped(scope, move || slow_worker.work(&slow_waiting, &slow_sender))
            .map_err(LspError::Thread)?;
        let server = Server::new(world, &base, JobSenders { lint: jobs, slow: slow_jobs }, profile);
        let end = run(server, &mut BufReader::with_capacity(READ_BYTES, input), output, &results);
        stop.store(true, Ordering::Relaxed);
        end
    })
}

/// Reads and answers messages. Dropping the server at the end stops the other threads.
fn run(
    mut server: Server<'_>,
    input: &mut BufReader<&mut dyn Read>,
    output: &mut dyn Write,
    results: &Receiver<JobResult>,
) -> Result<ServerEnd, LspError> {
    let mut invalid = 0;
    loop {
        results.try_iter().for_each(|it| server.finish(it));
        server.start_due();
        if !CAN_WAIT {
            server.start_all();
            while server.is_busy() {
                let Ok(done) = results.recv() else { break };
                server.finish(done);
            }
        }
        for message in server.take_outgoing() {
            message.write(&mut &mut *output).map_err(LspError::Write)?;
        }
        if let Some(end) = server.end() {
            return Ok(end);
        }
        let wait = server.wait();
        if CAN_WAIT && input.buffer().is_empty() && !server.world.input_comes(wait) {
            continue;
        }
        match Message::read(input) {
            Ok(Some(message)) => {
                invalid = 0;
                server.receive(message);
            }
            Ok(None) => return Ok(ServerEnd::ClientLeft),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                invalid += 1;
                if invalid >= INVALID_MESSAGES_MAX {
                    return Err(LspError::NoMessages);
                }
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Ok(ServerEnd::ClientLeft);
            }
            Err(error) => return Err(LspError::Read(error)),
        }
    }
}
