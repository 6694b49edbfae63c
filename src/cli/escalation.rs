//! `policyd escalation`: what humans were asked, and their answers.

use serde_json::json;

use super::{
    Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, EscalationAction, EscalationOpen,
    ListFormat, pack,
};
use crate::human::{HumanAnswer, require_human};
use crate::lists::print_empty;
use crate::store::LocalFiles;
use policyd_app::alerts;
use policyd_app::sharing::COMMAND;
use policyd_app::tasks::{self, AnswerOutcome, AnswerPart, Stores};
use policyd_app::workspace::project;
use policyd_base::limits::{ALERT_TIME_MAX, ESCALATIONS_FILE_BYTES_MAX};
use policyd_evaluation::escalation::EscalationDetails;
use policyd_record::alert::Alert;
use policyd_record::mask::mask;
use policyd_record::notice::NoticeSeverity;
use policyd_report::overview::WaitingKind;
use policyd_state::dead_letter;
use policyd_state::escalation::Escalation;
use policyd_store::escalations::{EscalationSubject, record_of};
use policyd_store::file::Durability;
use policyd_world::{World, WorldError};

/// Runs one action.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, action: &EscalationAction) -> u8 {
    let Some(policy) = pack::or_builtin_policy(world, console, &project::find(world, None)) else {
        return EXIT_BROKEN;
    };
    let fenced = tasks::fenced(world, &policy);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let stores = Stores::of_project(world, &policy);
    let files = LocalFiles { root: &stores.own, durability: &Durability::default() };
    let code = super::store::around(world, console, files, COMMAND, |console, _, answer| {
        act(&stores, console, action, answer)
    });
    console.warn_if_not_durable(&stores.degraded());
    code
}

/// Runs one action on the local copy.
fn act(
    stores: &Stores<'_>,
    console: &mut Console<'_>,
    action: &EscalationAction,
    answer: &mut Option<HumanAnswer>,
) -> u8 {
    match action {
        EscalationAction::Open(arguments) => open(stores, console, arguments),
        EscalationAction::List { all, format } => list(stores, console, *all, *format),
        EscalationAction::Show { id } => show(stores, console, id),
        EscalationAction::Resolve { id, decision, reject } => {
            match resolve(stores, console, id, decision, !reject) {
                Ok(given) => {
                    *answer = Some(given);
                    EXIT_OK
                }
                Err(code) => code,
            }
        }
        EscalationAction::Ack { id } => acknowledge(stores, console, id),
        EscalationAction::Notify => notify(stores, console),
        EscalationAction::Test { channel } => test(stores, console, channel),
    }
}

/// Sends what is due: by the pack of the project, and by the channels of the user and the organization.
fn notify(stores: &Stores<'_>, console: &mut Console<'_>) -> u8 {
    let mut problems = stores.remind();
    let (settings, ignored) = alerts::settings(stores.world);
    problems.extend(ignored.iter().map(ToString::to_string));
    match alerts::deliver(stores.world, &settings, ALERT_TIME_MAX, false) {
        Ok(delivery) => {
            problems.extend(delivery.problems);
            let paused = delivery.paused.iter();
            problems.extend(paused.map(|(channel, at)| {
                format!("channel `{channel}` failed lately; it is tried again from {at} on")
            }));
            if !settings.channels.is_empty() {
                let (sent, waiting) = (delivery.sent, delivery.waiting);
                console.print(&format!("alerts sent: {sent}, waiting: {waiting}\n"));
            }
        }
        Err(error) => problems.push(error.to_string()),
    }
    problems.iter().for_each(|it| console.eprint(it));
    if problems.is_empty() { EXIT_OK } else { EXIT_BROKEN }
}

fn acknowledge(stores: &Stores<'_>, console: &mut Console<'_>, id: &str) -> u8 {
    let found = match find(stores, console, id) {
        Ok(found) => found,
        Err(code) => return code,
    };
    match alerts::acknowledge(stores.world, &found.id) {
        Ok(true) => {
            console.print(&format!("{}: acknowledged; it stays open\n", found.id));
            EXIT_OK
        }
        Ok(false) => {
            console.print(&format!("{}: was acknowledged before\n", found.id));
            EXIT_OK
        }
        Err(error) => {
            console.eprint(&error.to_string());
            EXIT_BROKEN
        }
    }
}

/// Sends a test alert through one channel, whatever its severity and quiet time.
fn test(stores: &Stores<'_>, console: &mut Console<'_>, id: &str) -> u8 {
    let (settings, ignored) = alerts::settings(stores.world);
    ignored.iter().for_each(|it| console.eprint(&it.to_string()));
    let result = match settings.channel(id) {
        Some(channel) => alerts::send(stores.world, channel, &test_alert(stores))
            .map_err(|error| error.to_string()),
        None => match stores.test_channel(id) {
            Some(result) => result.map_err(|error| error.to_string()),
            None => {
                let own = settings.channels.iter().map(|it| &it.id);
                let all = own.chain(stores.policy.escalation.channels.iter().map(|it| &it.id));
                let all: Vec<&str> = all.map(String::as_str).collect();
                let known = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
                console.eprint(&format!("unknown channel `{id}`\nhelp: channels: {known}"));
                return EXIT_USAGE;
            }
        },
    };
    match result {
        Ok(()) => {
            console.print(&format!("{id}: the channel took the test alert\n"));
            EXIT_OK
        }
        Err(why) => {
            console.eprint(&format!("channel `{id}`: {why}"));
            EXIT_BROKEN
        }
    }
}

fn test_alert(stores: &Stores<'_>) -> Alert {
    let now = stores.now;
    Alert {
        id: format!("test-{}", now.millis()),
        key: format!("test|{}", now.millis()),
        at: now,
        severity: NoticeSeverity::Low.as_str().to_owned(),
        kind: "test".to_owned(),
        project: project::find(stores.world, None).main.display().to_string(),
        subject: "test".to_owned(),
        title: "policyd: test of this channel".to_owned(),
        text: "This alert was sent by `policyd escalation test`. Nothing is wrong.".to_owned(),
        html: None,
    }
}

fn refused(console: &mut Console<'_>, error: &WorldError) -> u8 {
    console.eprint(&format!("could not change the escalations: {error}; no data is lost"));
    EXIT_BROKEN
}

fn open(stores: &Stores<'_>, console: &mut Console<'_>, arguments: &EscalationOpen) -> u8 {
    let lists = stores.queues.peek();
    let task = lists.find(&arguments.task);
    let named = match (arguments.task.as_str(), arguments.gate.as_str()) {
        ("", "") => {
            console.eprint("no subject given\nhelp: pass `--task ID` or `--gate NAME`");
            return EXIT_USAGE;
        }
        ("", gate) => EscalationSubject::Gate(gate),
        (task, _) => EscalationSubject::Task(task),
    };
    let subject = if arguments.task.is_empty() { &arguments.gate } else { &arguments.task };
    let title = task.map(|it| it.title.clone()).filter(|it| !it.is_empty());
    let question = Escalation {
        task_id: arguments.task.clone(),
        title: title.unwrap_or_else(|| subject.clone()),
        trigger: if arguments.gate.is_empty() { "asked" } else { "gate" }.to_owned(),
        reason: mask(&arguments.reason).0.into_owned(),
        severity: arguments.severity.clone(),
        blocking: arguments.blocking,
        ..Escalation::default()
    };
    let summary = if arguments.summary.is_empty() { &arguments.reason } else { &arguments.summary };
    let known = EscalationDetails {
        task,
        summary,
        analysis: &arguments.analysis,
        options: &arguments.options,
        watch: None,
    };
    let escalation = match stores.open(named, question, known) {
        Ok(escalation) => escalation,
        Err(error) => return refused(console, &error),
    };
    if let Some(task) = task.filter(|_| arguments.blocking) {
        let event = dead_letter::TaskEvent::Blocked { by: &escalation.id };
        if let Err(error) = stores.act(&task.id, "blocked", event, json!({"by": escalation.id})) {
            return super::dlq::refused(console, &error);
        }
    }
    console.print(&format!("{}\n", stores.escalations.path(&escalation.id).display()));
    stores.remind().iter().for_each(|it| console.eprint(it));
    EXIT_OK
}

fn list(stores: &Stores<'_>, console: &mut Console<'_>, all: bool, format: ListFormat) -> u8 {
    let code = console.report_unread(stores.escalations.problem());
    let escalations = stores.escalations.all().unwrap_or_default();
    let wanted: Vec<&Escalation> =
        escalations.iter().filter(|it| all || it.closed.is_none()).collect();
    if wanted.is_empty() && code == EXIT_OK {
        print_empty(console, format, if all { "escalations" } else { "open escalations" });
    }
    for it in wanted {
        match format {
            ListFormat::Json => console.print(&format!("{}\n", record_of(it, None))),
            ListFormat::Text | ListFormat::Compact => {
                console.print_lines(&format!("{}\n", line(it)));
            }
        }
    }
    code
}

fn line(it: &Escalation) -> String {
    let state = match &it.closed {
        None if it.blocking => "open, blocking".to_owned(),
        None => "open".to_owned(),
        Some(closed) => {
            let word = if closed.approved { "approved" } else { "rejected" };
            format!("{word} by {}: {}", closed.by, closed.decision)
        }
    };
    let trigger = if it.trigger.is_empty() { "written by hand" } else { &it.trigger };
    format!("{}  {} {trigger}: {} ({state})", it.id, it.severity, it.title)
}

/// The one escalation whose id begins so.
///
/// # Errors
/// The exit code, if not exactly one escalation matches, or if the escalations cannot be read. The cause was printed.
fn find(stores: &Stores<'_>, console: &mut Console<'_>, id: &str) -> Result<Escalation, u8> {
    let all = stores.escalations.all().map_err(|problem| console.report_unread([problem]))?;
    if id.is_empty() {
        console.eprint("no escalation id given\nhelp: run `policyd escalation list` to list them");
        return Err(EXIT_FOUND);
    }
    let exact = all.iter().find(|it| it.id == id);
    let fitting: Vec<&Escalation> = all.iter().filter(|it| it.id.starts_with(id)).collect();
    match (exact, fitting.as_slice()) {
        (Some(one), _) => Ok(one.clone()),
        (None, [one]) => Ok((*one).clone()),
        (None, []) => {
            console.eprint(&format!(
                "unknown escalation `{id}`\nhelp: run `policyd escalation list --all` to list them"
            ));
            Err(EXIT_FOUND)
        }
        (None, several) => {
            let ids: Vec<&str> = several.iter().map(|it| it.id.as_str()).collect();
            console.eprint(&format!("ambiguous escalation id `{id}`: {}", ids.join(" or ")));
            Err(EXIT_FOUND)
        }
    }
}

fn show(stores: &Stores<'_>, console: &mut Console<'_>, id: &str) -> u8 {
    let found = match find(stores, console, id) {
        Ok(found) => found,
        Err(code) => return code,
    };
    match stores.world.read(&stores.escalations.path(&found.id), ESCALATIONS_FILE_BYTES_MAX) {
        Ok(bytes) => {
            console.print(&String::from_utf8_lossy(&bytes));
            console.print(&format!("\n{}\n", line(&found)));
            EXIT_OK
        }
        Err(error) => {
            console.eprint(&format!("could not read the document of `{}`: {error}", found.id));
            EXIT_BROKEN
        }
    }
}

/// Takes a human's answer in: the question is closed first, then the task moves.
///
/// # Errors
/// The exit code; the cause was printed.
fn resolve(
    stores: &Stores<'_>,
    console: &mut Console<'_>,
    id: &str,
    decision: &str,
    approved: bool,
) -> Result<HumanAnswer, u8> {
    let found = find(stores, console, id)?;
    let verb = if approved { "approve" } else { "reject" };
    let action = format!("{verb} the escalation `{}`", found.id);
    let actor = require_human(stores.world, console, &action)?;
    let decision = mask(decision).0.into_owned();
    match stores.answer(&found, approved, &decision, actor.user()) {
        Err(error) => Err(match error.part {
            AnswerPart::Escalation => refused(console, &error.source),
            AnswerPart::Tasks => super::dlq::refused(console, &error.source),
            AnswerPart::Breakers => {
                console.eprint(&format!(
                    "the answer is saved, but not the reset of its breakers: {}\n\
                     help: `policyd breaker list` shows them, `policyd breaker reset KEY` resets one",
                    error.source
                ));
                EXIT_BROKEN
            }
        }),
        Ok(AnswerOutcome::AlreadyResolved) => {
            console
                .eprint(&format!("`{}` is already resolved; the first decision stays", found.id));
            Err(EXIT_FOUND)
        }
        Ok(AnswerOutcome::Moved { rows, breakers }) => {
            let verdict = if approved { "approved" } else { "rejected" };
            console.print(&format!("{}: {verdict}\n", found.id));
            rows.iter().for_each(|it| console.print(&super::dlq::row_text(it)));
            breakers.iter().for_each(|it| console.print(&format!("breaker {it}: reset\n")));
            let answer = HumanAnswer::new(verb, WaitingKind::Question, &found.id, actor);
            Ok(HumanAnswer { what: found.title, text: decision, ..answer })
        }
    }
}
