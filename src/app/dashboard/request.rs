//! A request to the dashboard, and the answer to it.

use std::collections::BTreeMap;

use crate::webhook::SignedMessage;

/// A request for a page, or a form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PageRequest {
    pub(super) path: String,
    pub(super) query: BTreeMap<String, String>,
    /// Fields of a form that asks for a change.
    pub(super) form: Option<BTreeMap<String, String>>,
    /// Value that each form of the page must contain.
    pub(super) form_token: String,
    /// A webhook reply, which is not verified yet.
    pub(super) message: Option<SignedMessage>,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// A page in HTML.
    Page(String),
    /// Metrics in the text format of Prometheus.
    Metrics(String),
    /// A change was made; the browser loads this page.
    SeeOther(String),
    /// A webhook reply was recorded.
    Noted(String),
    NotFound(String),
    /// The signature of a webhook reply is not valid.
    Unsigned(String),
    /// The change was not made.
    Refused(String),
    Failed(String),
}
