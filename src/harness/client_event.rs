//! One event of a client: its names, and the responses that it supports.

use policyd_facts::event::EventKind;

use super::response::{Capability, ResponseTemplate};

/// One event of a client.
#[derive(Debug, PartialEq, Eq)]
pub struct ClientEvent {
    /// The client's name of the event, in payloads and in its settings.
    pub native: &'static str,
    /// Neutral kind. `None`: the event has none and gets an empty response.
    pub kind: Option<EventKind>,
    /// Supported capabilities, with their fields.
    pub ways: &'static [&'static ResponseTemplate],
}

impl ClientEvent {
    /// Returns the fields of a capability. `None` if it is not supported here.
    #[must_use]
    pub fn way(&self, ability: Capability) -> Option<&'static ResponseTemplate> {
        self.ways.iter().find(|it| it.says == ability).copied()
    }

    /// Returns the value of `--hook` for this event. Empty if it has no neutral kind.
    #[must_use]
    pub fn hook_name(&self) -> String {
        self.kind.map(|kind| kind.name().replace('_', "-")).unwrap_or_default()
    }

    /// Returns whether a capability is supported here.
    #[must_use]
    pub fn can(&self, ability: Capability) -> bool {
        self.way(ability).is_some()
    }
}

/// Creates an event with a neutral kind.
pub(crate) const fn moment(
    native: &'static str,
    kind: EventKind,
    ways: &'static [&'static ResponseTemplate],
) -> ClientEvent {
    ClientEvent { native, kind: Some(kind), ways }
}

/// Creates an event without a neutral kind.
pub(crate) const fn unmapped(native: &'static str) -> ClientEvent {
    ClientEvent { native, kind: None, ways: &[] }
}
