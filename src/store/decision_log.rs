//! Appends to the decision log of a state directory. An entry that cannot be written never fails its caller.

use std::path::Path;

use serde_json::Value;

use super::{layout, log, log_chain};
use policyd_record::notice::{Notice, NoticeKind, notice_entry};
use policyd_record::trace::{TRACEPARENT, TraceContext};
use policyd_world::World;

/// Path below the state directory.
pub const DECISION_LOG: &str = "logs/decisions.jsonl";

/// Appends a decision, with the time that the process took so far. Returns whether it was written.
pub fn log_decision(world: &dyn World, own: &Path, mut entry: Value) -> bool {
    let micros = u64::try_from(world.elapsed().as_micros()).unwrap_or(u64::MAX);
    if let Some(fields) = entry.as_object_mut().filter(|_| micros > 0) {
        fields.insert("micros".to_owned(), micros.into());
    }
    append(world, own, entry)
}

/// Appends what happened beside decisions. Returns whether it was written.
pub fn notify(world: &dyn World, own: &Path, kind: NoticeKind, notice: Notice) -> bool {
    append(world, own, notice_entry(world.now(), kind, notice))
}

/// Appends an entry, with the trace that the process belongs to.
fn append(world: &dyn World, own: &Path, mut entry: Value) -> bool {
    let trace = world.env(TRACEPARENT).and_then(|it| TraceContext::parse(&it));
    if let (Some(trace), Some(fields)) = (trace, entry.as_object_mut()) {
        fields.entry("trace").or_insert_with(|| trace.to_text().into());
    }
    append_below(own, world, DECISION_LOG, |path| log_chain::append(world, path, &[entry.clone()]))
}

/// Appends to a log below a state directory; creates its directory, hidden from git, if it does not exist.
pub fn append_to(world: &dyn World, own: &Path, name: &str, entries: &[Value]) -> bool {
    append_below(own, world, name, |path| log::append(world, path, entries))
}

fn append_below(own: &Path, world: &dyn World, name: &str, append: impl Fn(&Path) -> bool) -> bool {
    let path = own.join(name);
    if append(&path) {
        return true;
    }
    let made = path.parent().is_some_and(|logs| world.create_folder(logs).is_ok());
    if made {
        layout::hide(world, own);
    }
    made && append(&path)
}
