//! Signals of other hosts: list them, consume one, and answer a request.

use serde_json::json;

use super::SignalCommand;
use crate::human::require_human;
use crate::{Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, ListFormat};
use policyd_app::workspace::human::shown;
use policyd_state::signal::SignalEvent;
use policyd_store::file::Durability;
use policyd_store::shared::settings::SharedSubject;
use policyd_store::shared::{
    NamedSignal, SharedSignal, SharedSignalEnd, SharedStore, SignalResponse, SyncError,
};
use policyd_yaml::time::short_text;

impl SignalCommand<'_, '_> {
    /// Returns the shared store; `None` if signals are not shared. The caller synchronized the local copy.
    fn shared(&self) -> Option<SharedStore<'_>> {
        // The synchronization reported an invalid configuration.
        let found = SharedStore::find(self.world, &self.stores.own, &Durability::default()).ok()?;
        found.filter(|it| it.settings().shares(SharedSubject::Signals))
    }

    /// Lists the signals of other hosts. Returns whether there are any.
    ///
    /// # Errors
    /// The exit code, if the local copy cannot be read; it was reported.
    pub(super) fn list_others(&self, console: &mut Console<'_>) -> Result<bool, u8> {
        let Some(store) = self.shared() else { return Ok(false) };
        let others =
            store.signals_of_others().map_err(|problem| console.report_unread([problem]))?;
        for NamedSignal { signal, .. } in &others {
            console.print(&match self.format {
                ListFormat::Json => format!("{}\n", json!(signal)),
                ListFormat::Compact | ListFormat::Text => {
                    let age = short_text(self.world.now().since(signal.created));
                    format!("{}, {age} ago\n", line(signal))
                }
            });
        }
        Ok(!others.is_empty())
    }

    /// Claims or consumes a signal of another host. `None` if no other host has such a signal.
    pub(super) fn take_of_others(
        &self,
        console: &mut Console<'_>,
        which: &str,
        event: SignalEvent<'_>,
    ) -> Option<u8> {
        let store = self.shared()?;
        let others = match store.signals_of_others() {
            Ok(others) => others,
            Err(problem) => return Some(console.report_unread([problem])),
        };
        let meant: Vec<NamedSignal> =
            others.into_iter().filter(|it| is_meant(&it.signal, which)).collect();
        let mut last = None;
        for NamedSignal { document, signal } in meant {
            if signal.asks
                && let Err(code) = require_human(
                    self.world,
                    console,
                    &format!("consume `{which}`, which waits for a human"),
                )
            {
                return Some(code);
            }
            let response = store.decide_signal(&document, event, self.limits);
            let code = print_response(console, &signal, "consumed", response);
            if code == EXIT_OK {
                return Some(code);
            }
            last = Some(code);
        }
        last
    }

    /// Answers a request of another host; the user confirmed it. `None` if no other host has such a request.
    pub(super) fn answer_other(
        &self,
        console: &mut Console<'_>,
        id: &str,
        end: SharedSignalEnd,
    ) -> Option<u8> {
        let store = self.shared()?;
        let meant = |it: &NamedSignal| it.signal.asks && is_meant(&it.signal, id);
        let others = match store.signals_of_others() {
            Ok(others) => others,
            Err(problem) => return Some(console.report_unread([problem])),
        };
        let NamedSignal { document, signal } = others.into_iter().find(meant)?;
        let outcome = end.outcome.clone();
        let response = store.answer_signal(&document, end, self.limits);
        Some(print_response(console, &signal, &outcome, response))
    }
}

fn print_response(
    console: &mut Console<'_>,
    signal: &SharedSignal,
    done: &str,
    response: Result<SignalResponse, SyncError>,
) -> u8 {
    match response {
        Ok(SignalResponse::Changed) => {
            console.print(&format!("{}: {done}\n", line(signal)));
            EXIT_OK
        }
        Ok(SignalResponse::Refused(why)) => {
            console.eprint(&format!("{}: {why}", line(signal)));
            EXIT_FOUND
        }
        Ok(SignalResponse::Unknown) => {
            console.eprint(&format!("{}: the server does not have it", line(signal)));
            EXIT_FOUND
        }
        Err(error) => {
            console.eprint(&format!(
                "{error}\nhelp: only the server decides about signals of other hosts"
            ));
            EXIT_BROKEN
        }
    }
}

/// Whether a name, an id, or the beginning of an id means this signal.
fn is_meant(signal: &SharedSignal, which: &str) -> bool {
    signal.signal == which || (which.len() >= 4 && signal.id.starts_with(which))
}

fn line(signal: &SharedSignal) -> String {
    let message = signal.message();
    let text = if message.is_empty() { String::new() } else { format!(": {}", shown(message)) };
    let [id, name, host] = [&signal.id, &signal.signal, &signal.host].map(|it| shown(it));
    format!("{id} {name} on {host}{text}")
}
