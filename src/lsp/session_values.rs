//! The values of a session that the server keeps.

use std::rc::Rc;
use std::time::Duration;

use policyd_fact_table::context::FactView;

/// Values of a session, for one state of a pack.
#[derive(Debug)]
pub(super) struct SessionValues {
    pub(super) generation: u64,
    pub(super) session: Option<String>,
    pub(super) seen: Rc<FactView>,
    /// When the session was read.
    pub(super) read: Duration,
    /// How long that took.
    pub(super) took: Duration,
}
