//! Output of lists without entries.

use super::arguments::ListFormat;
use policyd_eval::Console;

/// Reports an empty list as `no <what>`. Machine-readable formats have no such line.
pub(super) fn print_empty(console: &mut Console<'_>, format: ListFormat, what: &str) {
    if format == ListFormat::Text {
        console.print(&format!("no {what}\n"));
    }
}
