//! How far a replay is, on a terminal only.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::sessions::Session;

/// A bar over the bytes of all transcripts; nothing where nobody watches.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(super) fn new(watched: bool, sessions: &[Session]) -> Self {
        let bar = watched.then(|| {
            let bytes = sessions.iter().map(Session::bytes).sum();
            let target = ProgressDrawTarget::stderr();
            let bar = ProgressBar::with_draw_target(Some(bytes), target);
            let shape = "{wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
            match ProgressStyle::with_template(shape) {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        Self { bar }
    }

    pub(super) fn advance(&mut self, bytes: u64) {
        self.bar.iter().for_each(|it| it.inc(bytes));
    }

    /// Leaves nothing on the terminal.
    pub(super) fn end(self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}
