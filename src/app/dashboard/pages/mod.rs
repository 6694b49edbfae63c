//! The pages in HTML. Every text of a log, a transcript, or an agent is escaped by the templates.

mod breakers;
mod decision_plot;
mod decisions;
pub(super) mod layout;
mod overview;
mod playground;
mod rules;
mod runs;
mod view;
mod waiting;

use std::sync::Arc;

use super::live::Snapshot;
use super::page_context::PageContext;
use super::page_error::PageError;
use super::request::{PageRequest, Reply};
use super::{actions, replies};
use crate::metrics;
use layout::PLAYGROUND;
use view::PageView;

pub(super) use decisions::find as find_decision;

/// Makes the page of a request, or does what its form asks for.
pub(super) fn reply(context: &PageContext<'_>, request: &PageRequest) -> Reply {
    let made = match &request.form {
        None if request.message.is_some() => request
            .message
            .as_ref()
            .map_or(Err(PageError::NoPage), |it| replies::accept(context, it)),
        Some(form) if request.path != PLAYGROUND => actions::act(context, &request.path, form),
        Some(_) | None => page(context, request),
    };
    made.unwrap_or_else(|error| match error {
        PageError::NoPage
        | PageError::NoProject(_)
        | PageError::NoDecision(_)
        | PageError::NoRun => Reply::NotFound(error.to_string()),
        PageError::Refused(why) => Reply::Refused(why),
        PageError::Signature(_) => Reply::Unsigned(error.to_string()),
        PageError::Index(_) => Reply::Failed(error.to_string()),
    })
}

fn page(context: &PageContext<'_>, request: &PageRequest) -> Result<Reply, PageError> {
    let snapshot: Arc<Snapshot> = context.live.snapshot();
    if request.path == "/metrics" {
        let metrics = match snapshot.is_complete {
            true => metrics::of_rows(context.world, &snapshot.rows, &snapshot.logs),
            false => metrics::collect(context.world),
        };
        return Ok(match metrics {
            Ok(text) => Reply::Metrics(text),
            Err(error) => Reply::Failed(error.to_string()),
        });
    }
    let view = PageView {
        snapshot: &snapshot,
        form_token: &request.form_token,
        is_read_only: context.actor.is_none(),
        now: context.world.now(),
        query: &request.query,
    };
    let page = match request.path.as_str() {
        "/" => overview::all(context, &view, context.live.since()),
        "/project" => overview::one(context, &view)?,
        "/decisions" => decisions::list(context, &view)?,
        "/decision" => decisions::one(context, &view)?,
        "/rules" => rules::page(context, &view)?,
        "/breakers" => breakers::page(context, &view)?,
        "/waiting" => waiting::page(context, &view),
        "/runs" => runs::list(context, &view),
        "/run" => runs::one(context, &view)?,
        PLAYGROUND => playground::page(context, &view, request.form.as_ref()),
        _ => return Err(PageError::NoPage),
    };
    Ok(Reply::Page(page))
}
