//! The dashboard: a web page of this machine that shows all projects and lets a human answer. `server` talks HTTP and
//! checks who asks, `access` holds the secrets, `live` keeps the view of all projects current, `pages` makes HTML, and
//! `actions` does what forms ask for.

mod access;
mod actions;
mod answer_kind;
mod case_draft;
mod live;
mod page_context;
mod page_error;
mod pages;
mod replies;
mod request;
mod server;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::watch;

use crate::error::AppError;
use crate::workspace::human::Actor;
use access::DashboardAccess;
pub use actions::{AnsweredItem, ItemAnswer, answer};
use live::Live;
pub use live::Snapshot;
use page_context::PageContext;
use policyd_base::limits::{DASHBOARD_REQUESTS_MAX, DASHBOARD_THREADS};
use policyd_index::DecisionIndex;
use policyd_world::{World, WorldError};
use server::{PendingRequest, ServerContext};

/// Interval in which the terminal is read.
const TERMINAL_WAIT: Duration = Duration::from_millis(250);

/// How the dashboard is started.
#[derive(Debug, Clone)]
pub struct DashboardOptions {
    /// Port; 0 is any free one.
    pub port: u16,
    /// The human who started it, in whose name questions are answered. `None`: it is read-only.
    pub actor: Option<Actor>,
    /// Whether the links contain `127.0.0.1` instead of a host name of their own.
    pub by_address: bool,
    /// Token with which `/metrics` can be read.
    pub metrics_token: Option<String>,
    /// Key of the signatures of webhook replies. `None`: no reply is accepted.
    pub reply_key: Option<String>,
    /// Age of the decisions that the overview counts.
    pub since: Duration,
}

/// The terminal of the human who started the dashboard.
pub trait DashboardTerminal {
    /// Shows a link that works once.
    fn show_link(&mut self, link: &str);
    /// Shows a problem that stops nothing.
    fn show_problem(&mut self, text: &str);
    /// Waits at most `within`. Returns whether the human pressed Enter.
    fn enter_pressed(&mut self, within: Duration) -> bool;
}

/// Serves the dashboard until the process is interrupted.
///
/// # Errors
/// The port is not free, or the user has no state directory.
pub fn serve(
    world: &dyn World,
    options: &DashboardOptions,
    terminal: &mut dyn DashboardTerminal,
) -> Result<(), AppError> {
    let index = DecisionIndex::path(world).map_err(AppError::failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(AppError::failed)?;
    let about_port = || format!("port {}", options.port);
    let listeners = runtime.block_on(server::listen(options.port));
    let listeners = listeners.map_err(|error| AppError::failed(error).about(about_port()))?;
    let no_random = |error: WorldError| AppError::failed(error);
    let name = match options.by_address {
        true => "127.0.0.1".to_owned(),
        false => access::host_name(world).map_err(no_random)?,
    };
    let access = DashboardAccess::new(&name, listeners.port, options.metrics_token.as_deref());
    let access = Arc::new(access);
    let link = access.new_link(world).map_err(no_random)?;
    let (live, changes) = Live::new(world, &index, options.since);
    let (jobs, waiting) = sync_channel(DASHBOARD_REQUESTS_MAX);
    let shared = ServerContext::new(access.clone(), jobs, changes, options.actor.is_none());
    let (waiting, is_over) = (Mutex::new(waiting), AtomicBool::new(false));
    let (stop, stopped) = watch::channel(false);
    world.note_interrupts();
    thread::scope(|threads| {
        threads.spawn(|| {
            runtime.block_on(server::serve(listeners, shared, stopped));
            // Open streams end with it.
            runtime.shutdown_background();
        });
        threads.spawn(|| live.refresh_until(&is_over));
        for _ in 0..DASHBOARD_THREADS {
            threads.spawn(|| answer_requests(world, &live, &index, options, &waiting));
        }
        terminal.show_link(&link);
        while !world.interrupted() {
            if terminal.enter_pressed(TERMINAL_WAIT) {
                match access.new_link(world) {
                    Ok(link) => terminal.show_link(&link),
                    Err(error) => terminal.show_problem(&error.to_string()),
                }
            }
            access.expire_links(world.elapsed());
            live.new_problems().iter().for_each(|it| terminal.show_problem(it));
        }
        is_over.store(true, Ordering::Relaxed);
        stop.send_replace(true);
    });
    Ok(())
}

/// Passes the view of all projects to `show` until it returns false. The view is current each time.
///
/// # Errors
/// The user has no state directory.
pub fn watch(
    world: &dyn World,
    since: Duration,
    show: &mut dyn FnMut(&Snapshot) -> bool,
) -> Result<(), AppError> {
    let index = DecisionIndex::path(world).map_err(AppError::failed)?;
    let (live, _changes) = Live::new(world, &index, since);
    let is_over = AtomicBool::new(false);
    world.note_interrupts();
    thread::scope(|threads| {
        threads.spawn(|| live.refresh_until(&is_over));
        while show(&live.snapshot()) {}
        is_over.store(true, Ordering::Relaxed);
    });
    Ok(())
}

/// Answers requests until the server ended.
fn answer_requests(
    world: &dyn World,
    live: &Live<'_>,
    index: &Path,
    options: &DashboardOptions,
    waiting: &Mutex<Receiver<PendingRequest>>,
) {
    let reply_key = options.reply_key.as_deref();
    let context = PageContext { world, live, index, actor: options.actor.as_ref(), reply_key };
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(PendingRequest { request, answer }) = next else { return };
        // A panic costs one page. The server reports that there was no answer.
        if let Ok(reply) = catch_unwind(AssertUnwindSafe(|| pages::reply(&context, &request))) {
            // The browser might not wait any more.
            drop(answer.send(reply));
        }
    }
}
