//! Operations that wait for another server, and those that a server rejected.

use serde_json::json;

use crate::{Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, ListFormat, RejectedAction};
use policyd_app::workspace::human::shown;
use policyd_store::shared::{RejectedOperation, SharedStore, SyncError};
use policyd_yaml::time::short_text;

/// Which rejected operations are meant.
pub(super) struct Selection<'s> {
    /// Names; all if none is given.
    pub(super) names: &'s [String],
    pub(super) format: ListFormat,
}

/// Moves what waits for an earlier address or group to the configured one.
pub(super) fn move_from(
    console: &mut Console<'_>,
    store: &SharedStore<'_>,
    url: &str,
    group: Option<&str>,
) -> Result<u8, SyncError> {
    let group = group.unwrap_or(&store.settings().group);
    let moved = store.take_waiting_of(url, group)?;
    if moved > 0 {
        console.print(&format!("operations moved: {moved}; `policyd store sync` sends them\n"));
        return Ok(EXIT_OK);
    }
    let text = match store.waiting_elsewhere() {
        0 => "nothing waits for another server or group".to_owned(),
        count => format!(
            "nothing waits for that URL and group; {count} operations wait for others\n\
             help: write host, port, and database as the configuration contained them"
        ),
    };
    console.eprint(&text);
    Ok(EXIT_FOUND)
}

/// Lists rejected operations, sends them again, or removes them.
pub(super) fn rejected(
    console: &mut Console<'_>,
    store: &SharedStore<'_>,
    action: RejectedAction,
    selection: &Selection<'_>,
) -> Result<u8, SyncError> {
    let all = store.rejected();
    let names = selection.names;
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|it| it.name != **name)) {
        console.eprint(&format!(
            "no rejected operation has the name `{unknown}`\nhelp: `policyd store rejected` lists them"
        ));
        return Ok(EXIT_FOUND);
    }
    let chosen = all.iter().filter(|it| names.is_empty() || names.contains(&it.name));
    let mut count: usize = 0;
    for it in chosen {
        match action {
            RejectedAction::List => console.print(&row(store, it, selection.format)),
            RejectedAction::Send => store.restore_rejected(it)?,
            RejectedAction::Drop => store.discard_rejected(it)?,
        }
        count = count.saturating_add(1);
    }
    match action {
        RejectedAction::List if count == 0 && selection.format == ListFormat::Text => {
            console.eprint("no operation is rejected");
        }
        RejectedAction::List => {}
        RejectedAction::Drop => console.print(&format!("operations removed: {count}\n")),
        RejectedAction::Send => {
            let result = store.sync(policyd_store::shared::STORE_COMMAND)?;
            console.print(&format!("operations sent again: {count}\n"));
            result.rejected.iter().for_each(|it| console.eprint(&format!("rejected: {it}")));
            return Ok(if result.rejected.is_empty() { EXIT_OK } else { EXIT_BROKEN });
        }
    }
    Ok(EXIT_OK)
}

/// One rejected operation as text or JSON.
fn row(store: &SharedStore<'_>, it: &RejectedOperation, format: ListFormat) -> String {
    let document = it.operation.as_ref().map(|it| it.action.document());
    if format == ListFormat::Json {
        let fields = json!({"name": it.name, "why": it.why, "operation": it.operation});
        return format!("{fields}\n");
    }
    let what = document.map_or("not an operation".to_owned(), |document| {
        format!("{} `{}`", document.kind, shown(document.name))
    });
    let age = it.operation.as_ref().map(|it| short_text(store.now().since(it.at)));
    let age = age.map(|it| format!(", {it} ago")).unwrap_or_default();
    let why = if it.why.is_empty() { "reason unknown".to_owned() } else { shown(&it.why) };
    match format {
        ListFormat::Text => format!("{}\n    {what}{age}: {why}\n", it.name),
        ListFormat::Compact | ListFormat::Json => format!("{}  {what}{age}: {why}\n", it.name),
    }
}
