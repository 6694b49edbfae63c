//! Blocked calls of other hosts: list them, and answer one.

use serde_json::json;

use crate::human::{HumanAnswer, require_human};
use crate::{Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ListFormat};
use policyd_app::sharing::{self, COMMAND};
use policyd_app::workspace::human::shown;
use policyd_app::workspace::project::Project;
use policyd_evaluation::call_code;
use policyd_report::overview::WaitingKind;
use policyd_state::approval::{ApprovalEffect, CallRequest};
use policyd_store::file::Durability;
use policyd_store::shared::settings::SharedSubject;
use policyd_store::shared::{AnswerResult, NamedRequest, SharedStore};
use policyd_world::World;
use policyd_yaml::time::short_text;

/// The answer to a blocked call of another host.
#[derive(Clone, Copy)]
pub(super) struct RemoteAnswer<'a> {
    /// The code, as typed.
    pub(super) code: &'a str,
    /// Whether the call may pass.
    pub(super) allowed: bool,
}

/// Returns the shared store; `None` if approvals are not shared.
fn store<'w>(
    world: &'w dyn World,
    console: &mut Console<'_>,
    project: &Project,
) -> Result<Option<SharedStore<'w>>, u8> {
    match SharedStore::find(world, &project.state, &Durability::default()) {
        Ok(found) => Ok(found.filter(|it| it.settings().shares(SharedSubject::Approvals))),
        Err(error) => {
            console.eprint(&error.to_string());
            Err(EXIT_BROKEN)
        }
    }
}

/// Updates the local copy, and returns the open requests.
///
/// # Errors
/// The exit code, if the local copy cannot be read; it was reported.
fn open(console: &mut Console<'_>, store: &SharedStore<'_>) -> Result<Vec<NamedRequest>, u8> {
    match store.sync(COMMAND) {
        Ok(result) => {
            let all = result.rejected.iter().chain(&result.notes);
            all.for_each(|it| console.eprint(&format!("shared store: {it}")));
        }
        Err(error) => console.eprint(&format!("{error}\nhelp: the local copy is used until then")),
    }
    let now = store.now();
    let all = store.approvals().map_err(|problem| console.report_unread([problem]))?;
    Ok(all.into_iter().filter(|it| it.request.is_open(now)).collect())
}

/// Lists the calls that wait for an answer.
pub(super) fn list(
    world: &dyn World,
    console: &mut Console<'_>,
    project: &Project,
    format: ListFormat,
) -> u8 {
    let store = match store(world, console, project) {
        Ok(Some(store)) => store,
        Ok(None) => {
            console.eprint(
                "blocked calls are not shared\nhelp: add `approvals` to `store.share` in `config.yaml`; see \
                 `policyd help shared-store`",
            );
            return EXIT_USAGE;
        }
        Err(code) => return code,
    };
    let all = match open(console, &store) {
        Ok(all) => all,
        Err(code) => return code,
    };
    if all.is_empty() && format == ListFormat::Text {
        console.eprint("no blocked call waits for an answer");
    }
    for NamedRequest { request, .. } in &all {
        console.print(&match format {
            ListFormat::Json => {
                let mut value = json!(request);
                if let Some(fields) = value.as_object_mut() {
                    fields.insert("code".to_owned(), call_code::code(&request.call.digest).into());
                }
                format!("{value}\n")
            }
            ListFormat::Compact => format!("{}\n", line(request)),
            ListFormat::Text => {
                let age = short_text(store.now().since(request.asked));
                format!("{}\n    {}, {age} ago\n", line(request), place(request))
            }
        });
    }
    EXIT_OK
}

/// The call of a request, in one line.
fn line(request: &CallRequest) -> String {
    let call = &request.call;
    let code = call_code::code(&call.digest);
    let rules = shown(&call.rules.join(", "));
    format!("{code}  {} `{}` (blocked by {rules})", shown(&call.tool), shown(&call.input))
}

/// Where the call of a request was blocked.
fn place(request: &CallRequest) -> String {
    let call = &request.call;
    let [host, project, session] = [&call.host, &call.project, &call.session].map(|it| shown(it));
    format!("on {host} in {project}, session {session}")
}

/// Answers a call. The server decides which answer is the first.
pub(super) fn answer(
    world: &dyn World,
    console: &mut Console<'_>,
    project: &Project,
    answer: RemoteAnswer<'_>,
) -> u8 {
    let typed = shown(answer.code);
    let unknown = |console: &mut Console<'_>, places: &str| {
        let text = format!(
            "no blocked call with the code or id `{typed}` {places}\nhelp: run this command in the project of the call; \
             `policyd log --notable` lists its blocked calls with their ids, and `policyd allow --waiting` those of other hosts"
        );
        console.eprint(&text);
        EXIT_FOUND
    };
    let root = project.root.display();
    let store = match store(world, console, project) {
        Ok(Some(store)) => store,
        Ok(None) => return unknown(console, &format!("is logged in {root}")),
        Err(code) => return code,
    };
    let code = call_code::normalized(answer.code);
    let open = match open(console, &store) {
        Ok(open) => open,
        Err(code) => return code,
    };
    let found = open.iter().find(|it| call_code::code(&it.request.call.digest) == code);
    let Some(NamedRequest { id, request }) = found else {
        return unknown(console, &format!("is logged in {root} or waits on another host"));
    };
    let verb = if answer.allowed { "let this call pass once" } else { "refuse this call" };
    let action = format!("{verb} {}: {}", place(request), line(request));
    let actor = match require_human(world, console, &action) {
        Ok(actor) => actor,
        Err(code) => return code,
    };
    match store.answer(id, answer.allowed, actor.user(), COMMAND.and_then()) {
        Ok(result) => {
            let is_given = !matches!(
                result,
                AnswerResult::Sent(ApprovalEffect::AlreadyAnswered | ApprovalEffect::Nothing)
            );
            if is_given {
                let kind = WaitingKind::Call;
                let verb = if answer.allowed { kind.yes() } else { "reject" };
                let given = HumanAnswer::new(verb, kind, &code, actor);
                HumanAnswer { what: line(request), ..given }.log(world, &project.state);
            }
            print_result(console, request, answer, result)
        }
        Err(error) => {
            let text = format!(
                "{error}\nhelp: the account in `store.url` needs the role `policyd_human`; nothing was answered"
            );
            console.eprint(&text);
            EXIT_BROKEN
        }
    }
}

fn print_result(
    console: &mut Console<'_>,
    request: &CallRequest,
    answer: RemoteAnswer<'_>,
    result: AnswerResult,
) -> u8 {
    let code = call_code::code(&request.call.digest);
    let done = if answer.allowed { "allowed once" } else { "refused" };
    match result {
        AnswerResult::Sent(ApprovalEffect::Noted | ApprovalEffect::Opened) => {
            let host = shown(&request.call.host);
            console.print(&format!("call {code}: {done}; {host} takes the answer over\n"));
            EXIT_OK
        }
        AnswerResult::Queued => {
            let text = format!(
                "call {code}: the server cannot be reached; the answer is sent as soon as it can\n"
            );
            console.print(&text);
            EXIT_OK
        }
        AnswerResult::Sent(ApprovalEffect::AlreadyAnswered | ApprovalEffect::Nothing) => {
            console.eprint(&format!("call {code} was answered before; the first answer is final"));
            EXIT_FOUND
        }
        AnswerResult::Sent(ApprovalEffect::Expired | ApprovalEffect::Unknown) => {
            console.eprint(&format!("call {code} does not wait for an answer anymore"));
            EXIT_FOUND
        }
    }
}

/// Withdraws the request of a call that the user let pass here.
pub(super) fn withdraw(
    world: &dyn World,
    console: &mut Console<'_>,
    project: &Project,
    digest: &str,
) {
    let Ok(Some(store)) = store(world, console, project) else { return };
    let withdrawn = store.withdraw(digest, world.now());
    withdrawn.unwrap_or_else(|error| console.eprint(&format!("shared store: {error}")));
    if sharing::has_waiting(world, &project.state) {
        // What waits is sent later.
        drop(store.sync(COMMAND));
    }
}
