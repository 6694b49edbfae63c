//! Who watches a supervised run.

use serde_json::Value;

use policyd_report::standing::RunStatusLine;

/// Receives what a run reports.
pub trait RunObserver {
    /// Receives an event, as it is logged.
    fn receive(&mut self, event: &Value);
    /// Whether the standing of the run is shown.
    fn shows_standing(&self) -> bool;
    /// Receives the standing of the run.
    fn show(&self, standing: &RunStatusLine<'_>);
    /// Ends the display of the standing: the run is over.
    fn clear(&mut self);
}
