//! Answers in the dashboard that the shared store takes to other hosts, or that another host gave first.

use std::thread;
use std::time::Duration;

use crate::dashboard::{Answer, Dashboard};
use crate::machine::{Machine, skipped};
use crate::shared_answers::{CALLS, blocked_call, is_denied};
use crate::shared_store::{begin_of, done, host};
use crate::support::postgres;

/// What is shared for signals.
const SIGNALS: &str = "  share: [signals, runs]\n";

/// Sends the form of a question: its kind, its id, and the verdict.
fn answer(dashboard: &Dashboard, token: &str, machine: &Machine, fields: [&str; 3]) -> Answer {
    let [kind, id, verdict] = fields;
    let fields = [
        ("form_token", token),
        ("project", machine.project.to_str().unwrap()),
        ("kind", kind),
        ("id", id),
        ("decision", "a small one"),
        ("verdict", verdict),
    ];
    dashboard.post("/answer", &fields)
}

/// The id of the first form of a page.
fn first_id(page: &str) -> String {
    page.split("name=\"id\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

#[test]
fn a_blocked_call_of_another_host_is_answered_in_the_browser() {
    let test = "a_blocked_call_of_another_host_is_answered_in_the_browser";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let [one, other] = [host(&url, CALLS), host(&url, CALLS)];
    done(&one.run(&["store", "init"], b""));
    assert!(is_denied(&blocked_call(&one)));
    one.stop().answer();
    begin_of(&other).answer(); // lists the project
    done(&other.run(&["store", "sync"], b""));
    let inbox = || other.run(&["inbox", "--format", "compact"], b"").stdout;
    assert!(
        inbox().contains(" blocked call ") && inbox().contains("git push --force"),
        "{}",
        inbox()
    );
    let dashboard = Dashboard::open(&other, &[]);
    let page = dashboard.page("/waiting");
    assert!(page.contains("git push --force origin main"), "{page}");
    assert!(!page.contains("name=\"decision\""), "an answer to a call has no text: {page}");
    let id = page.split("name=\"id\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let token = dashboard.form_token("/waiting");
    let [token, project] =
        [("form_token", token.as_str()), ("project", other.project.to_str().unwrap())];
    let answer = [token, project, ("kind", "call"), ("id", id), ("verdict", "approve")];
    assert_eq!(dashboard.post("/answer", &answer).status, 303);
    assert!(dashboard.post("/answer", &answer).body.contains("already answered"));
    assert!(!dashboard.page("/waiting").contains("git push --force"));
    assert!(!inbox().contains("blocked call"), "{}", inbox());
    done(&one.run(&["store", "sync"], b""));
    assert!(!is_denied(&blocked_call(&one)), "it passes once");
    assert!(is_denied(&blocked_call(&one)));
}

#[test]
fn an_answer_that_cannot_be_sent_is_said_to_be_queued() {
    let test = "an_answer_that_cannot_be_sent_is_said_to_be_queued";
    let Some(mut server) = postgres::server(test) else { return };
    if !server.is_own() {
        return skipped(test, "the server of POLICYD_TEST_POSTGRES is not stopped");
    }
    let url = server.database();
    let [one, other] = [host(&url, CALLS), host(&url, CALLS)];
    done(&one.run(&["store", "init"], b""));
    assert!(is_denied(&blocked_call(&one)));
    one.stop().answer();
    begin_of(&other).answer(); // lists the project
    done(&other.run(&["store", "sync"], b""));
    let dashboard = Dashboard::open(&other, &[]);
    let (id, token) = (first_id(&dashboard.page("/waiting")), dashboard.form_token("/waiting"));
    server.kill();
    let queued = answer(&dashboard, &token, &other, ["call", &id, "approve"]);
    let page = dashboard.page("/waiting");
    server.restart();
    assert_eq!(queued.status, 200, "{queued:?}");
    assert!(queued.body.contains("<h1>Queued</h1>"), "{queued:?}");
    assert!(page.contains("Your answer is queued") && !page.contains(&id), "{page}");
    for host in [&other, &one] {
        done(&host.run(&["store", "sync"], b""));
    }
    assert!(!is_denied(&blocked_call(&one)), "the answer arrived");
}

#[test]
fn a_signal_of_another_host_is_answered_in_the_browser_and_the_first_answer_stays() {
    let test = "a_signal_of_another_host_is_answered_in_the_browser_and_the_first_answer_stays";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let [one, other] = [host(&url, SIGNALS), host(&url, SIGNALS)];
    done(&one.run(&["store", "init"], b""));
    done(&one.run(&["signal", "emit", "HUMAN_REVIEW_NEEDED", "reason=Buy a <disk>?"], b""));
    one.stop().answer(); // lists the project
    begin_of(&other).answer();
    for host in [&one, &other] {
        done(&host.run(&["store", "sync"], b""));
    }
    let [here, there] = [Dashboard::open(&one, &[]), Dashboard::open(&other, &[])];
    let page = there.page("/waiting");
    assert!(page.contains("Signals of other hosts"), "{page}");
    assert!(page.contains("Buy a &lt;disk&gt;?"), "{page}");
    let (document, id) = (first_id(&page), first_id(&here.page("/waiting")));
    assert!(document.ends_with(&id), "{document} {id}");
    let [one_token, other_token] = [&here, &there].map(|it| it.form_token("/waiting"));
    let approved = answer(&there, &other_token, &other, ["remote_signal", &document, "approve"]);
    assert_eq!(approved.status, 303, "{approved:?}");
    assert!(!there.page("/waiting").contains("Buy a"), "it is answered");
    // The host of the signal has not seen the answer yet.
    let rejected = answer(&here, &one_token, &one, ["signal", &id, "reject"]);
    assert_eq!(rejected.status, 409, "{rejected:?}");
    let history = one.run(&["signal", "history", "--format", "json"], b"").stdout;
    assert!(history.contains("\"approved\"") && history.contains("a small one"), "{history}");
    assert!(!history.contains("\"rejected\""), "{history}");
    thread::sleep(Duration::from_millis(1_100));
    let told = begin_of(&one).answer().to_string();
    assert!(told.contains("a small one"), "the agent receives the answer: {told}");
}
