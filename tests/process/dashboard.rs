//! The dashboard over real HTTP: who is let in, what each page shows, and what each form does. `dashboard.mjs` looks at the
//! pages in a real browser.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv6Addr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::machine::{Machine, read_json, read_log, skipped};
use crate::support::console::{Terminal, call_into};
use crate::support::human::HumanWorld;

const WAIT: Duration = Duration::from_secs(30);
/// Largest page.
const PAGE_BYTES_MAX: usize = 200 * 1024;

/// Standard output of the dashboard: the links that it shows.
struct Links(Sender<String>);

impl Write for Links {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        drop(self.0.send(String::from_utf8_lossy(bytes).trim().to_owned()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A running dashboard.
pub(crate) struct Dashboard {
    link: String,
    host: String,
    cookie: String,
    world: Arc<HumanWorld>,
    thread: Option<JoinHandle<(u8, String)>>,
}

/// An answer of the server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Dashboard {
    /// Starts it, without a browser.
    fn closed(machine: &Machine, arguments: &[&str]) -> Self {
        let world = Arc::new(machine.human_world());
        let words: Vec<String> =
            ["dashboard"].iter().chain(arguments).map(|it| (*it).to_owned()).collect();
        let (sender, links) = channel();
        let own = world.clone();
        let thread = thread::spawn(move || {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            call_into(&*own, Terminal::default(), &words, b"", &mut Links(sender))
        });
        let link = links.recv_timeout(WAIT).expect("the dashboard shows a link");
        let host = link.strip_prefix("http://").and_then(|it| it.split_once('/')).unwrap().0;
        let host = host.to_owned();
        Self { link, host, cookie: String::new(), world, thread: Some(thread) }
    }

    /// Starts it, and opens its link in a browser.
    pub(crate) fn open(machine: &Machine, arguments: &[&str]) -> Self {
        let mut dashboard = Self::closed(machine, arguments);
        let opened = dashboard.get(&dashboard.path_of_link());
        assert_eq!(opened.status, 200, "{opened:?}");
        let cookie = &opened.headers["set-cookie"];
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
        dashboard.cookie = cookie.split(';').next().unwrap().to_owned();
        let began = Instant::now();
        while dashboard.get("/").body.contains("The logs are being read") {
            assert!(began.elapsed() < WAIT, "the logs are read");
            thread::sleep(Duration::from_millis(50));
        }
        dashboard
    }

    fn path_of_link(&self) -> String {
        self.link.strip_prefix(&format!("http://{}", self.host)).unwrap().to_owned()
    }

    fn port(&self) -> u16 {
        self.host.rsplit(':').next().unwrap().parse().unwrap()
    }

    pub(crate) fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port())).unwrap();
        stream.set_read_timeout(Some(WAIT)).unwrap();
        let mut all: BTreeMap<&str, &str> =
            BTreeMap::from([("host", self.host.as_str()), ("cookie", self.cookie.as_str())]);
        all.extend(headers.iter().copied());
        let mut text = format!("{line} HTTP/1.1\r\nconnection: close\r\n");
        for (name, value) in all.iter().filter(|(_, value)| !value.is_empty()) {
            text += &format!("{name}: {value}\r\n");
        }
        text += &format!("content-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let pair = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_ascii_lowercase(), value.to_owned())
        };
        Answer { status, headers: lines.map(pair).collect(), body: body.to_owned() }
    }

    fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path}"), &[], "")
    }

    /// A page, which is small and complete.
    pub(crate) fn page(&self, path: &str) -> String {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert!(answer.body.len() <= PAGE_BYTES_MAX, "{path}: {} bytes", answer.body.len());
        assert!(answer.body.ends_with("</html>"), "{path}");
        assert!(!answer.body.contains("style=") && !answer.body.contains("<script>"), "{path}");
        answer.body
    }

    /// The value that each form must contain.
    pub(crate) fn form_token(&self, page: &str) -> String {
        let page = self.page(page);
        let (_, rest) =
            page.split_once("name=\"form_token\" value=\"").expect("the page has a form");
        rest.split('"').next().unwrap().to_owned()
    }

    fn post_with(&self, path: &str, headers: &[(&str, &str)], fields: &[(&str, &str)]) -> Answer {
        let body: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let form = ("content-type", "application/x-www-form-urlencoded");
        self.send(&format!("POST {path}"), &[headers, &[form]].concat(), &body.join("&"))
    }

    pub(crate) fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let origin = format!("http://{}", self.host);
        self.post_with(path, &[("origin", &origin), ("sec-fetch-site", "same-origin")], fields)
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.world.ended.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        if !thread::panicking() {
            assert_eq!(ended.unwrap().0, 0);
        }
    }
}

/// A value in the body of a form or in an address.
fn encoded(value: &str) -> String {
    let plain = |it: u8| it.is_ascii_alphanumeric() || b"-_.~".contains(&it);
    value
        .bytes()
        .map(|it| if plain(it) { char::from(it).to_string() } else { format!("%{it:02X}") })
        .collect()
}

/// A project with a blocked stop, a blocked tool call, a question, a signal, a dead letter, a breaker, and a run.
pub(crate) fn busy() -> Machine {
    let machine = Machine::new();
    machine.untested();
    // Only what is in a directory of a client is copied into a draft.
    let transcript = machine.path("home/.claude/projects/project/s1.jsonl");
    fs::create_dir_all(transcript.parent().unwrap()).unwrap();
    fs::copy(machine.transcript(), &transcript).unwrap();
    assert!(machine.stop_with(&json!({"transcript_path": transcript})).blocks());
    let call = json!({"session_id": "s1", "hook_event_name": "PreToolUse", "cwd": machine.project,
        "tool_name": "Bash", "tool_input": {"command": "rm -rf / # <script>alert(1)</script>"}});
    let denied = machine.run(&["eval", "--hook", "pre-tool-use"], call.to_string().as_bytes());
    assert!(denied.stdout.contains("deny"), "{denied:?}");
    let ok = |words: &[&str]| {
        let called = machine.run(words, b"");
        assert_eq!(called.code, Some(0), "{words:?}: {called:?}");
        called.stdout
    };
    let add = ["dlq", "add", "sec", "--title", "Rotate passwords", "--error", "E", "--immediately"];
    ok(&add);
    ok(&["signal", "emit", "HUMAN_REVIEW_NEEDED", "reason=the key <b>leaked</b>"]);
    for _ in 0..5 {
        ok(&["breaker", "record", "api/x", "failure"]);
    }
    run(&machine);
    machine
}

/// The files of a run that ended.
fn run(machine: &Machine) {
    let at = |minute: u32| format!("2026-01-02T10:{minute:02}:00.000Z");
    let millis = |minute: i64| 1_767_348_000_000 + minute * 60_000;
    let state = json!({"version": 1, "id": "r1", "goal": "Add a <parser>", "command": ["agent"],
        "phase": {"is": "over", "status": "human_needed", "why": "a human must answer"},
        "iteration": 3, "spend": {"input": 9000, "cost_usd": 1.5},
        "started_ms": millis(0), "updated_ms": millis(10)});
    machine.put(".policyd/runs/r1/state.json", &state.to_string());
    let mut events =
        vec![json!({"ts": at(0), "type": "loop.start", "run": "r1", "goal": "Add a <parser>"})];
    for turn in 1..=3 {
        let failure = if turn == 2 { json!("rate_limit") } else { Value::Null };
        events
            .push(json!({"ts": at(turn * 3), "type": "loop.iteration_complete", "iteration": turn,
            "tokens": 3000, "cost_usd": 0.5, "failure": failure, "took_ms": 1000}));
        events.push(json!({"timestamp": at(turn * 3), "type": "loop.context_usage",
            "session_id": "s1", "occupancy_pct": turn * 20, "usage_pct": turn * 25,
            "cost_usd": f64::from(turn) * 0.25}));
    }
    events.push(json!({"ts": at(10), "type": "loop.end", "run": "r1", "status": "human_needed",
        "reason": "a human must answer", "iteration": 3}));
    let text: String = events.iter().map(|it| format!("{it}\n")).collect();
    machine.put(".policyd/logs/events.jsonl", &text);
}

fn project(machine: &Machine) -> String {
    encoded(machine.project.to_str().unwrap())
}

#[test]
fn only_a_browser_with_the_link_is_let_in() {
    let machine = busy();
    let dashboard = Dashboard::closed(&machine, &["--read-only"]);
    assert!(dashboard.host.starts_with("policyd-") && dashboard.host.contains(".localhost:"));
    for path in ["/", "/decisions", "/events", "/metrics", "/style.css", "/open", "/open?token=1"] {
        let answer = dashboard.get(path);
        assert_eq!(answer.status, 401, "{path}: {answer:?}");
        assert!(!answer.headers.contains_key("set-cookie"), "{path}");
    }
    let link = dashboard.path_of_link();
    let address = format!("127.0.0.1:{}", dashboard.port());
    for host in ["evil.example", "localhost", &address] {
        let answer = dashboard.send(&format!("GET {link}"), &[("host", host)], "");
        assert_eq!(answer.status, 421, "{host}: {answer:?}");
    }
    let other = [("origin", "http://evil.example")];
    assert_eq!(dashboard.send(&format!("GET {link}"), &other, "").status, 403);
    let opened = dashboard.get(&link);
    assert_eq!(opened.status, 200);
    let policy = &opened.headers["content-security-policy"];
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(opened.headers["referrer-policy"], "same-origin");
    assert_eq!(opened.headers["cache-control"], "no-store");
    assert_eq!(dashboard.get(&link).status, 401, "a link works once");
    // No other process may get requests for its name by listening on the other address family.
    if let Ok(mut second) = TcpStream::connect((Ipv6Addr::LOCALHOST, dashboard.port())) {
        second.write_all(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        second.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("421"), "{answer}");
    }
}

#[test]
fn a_form_of_another_site_changes_nothing() {
    let machine = busy();
    let dashboard = Dashboard::open(&machine, &[]);
    let token = dashboard.form_token("/waiting");
    let project = machine.project.to_str().unwrap();
    let fields = [
        ("form_token", token.as_str()),
        ("project", project),
        ("id", "sec"),
        ("action", "abandon"),
    ];
    let own = format!("http://{}", dashboard.host);
    let queue = machine.file(".policyd/queue/dead-letter.json");
    let before = fs::read(&queue).unwrap();
    for headers in [
        &[("origin", "http://evil.example")] as &[(&str, &str)],
        &[("origin", "null")],
        &[("origin", &own), ("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("cookie", "policyd_dashboard=1")],
        &[("cookie", "")],
        &[("host", "localhost:80")],
    ] {
        let answer = dashboard.post_with("/task", headers, &fields);
        assert!(matches!(answer.status, 401 | 403 | 421), "{headers:?}: {answer:?}");
    }
    for token in ["", "1"] {
        let fields = [("form_token", token), fields[1], fields[2], fields[3]];
        let answer = dashboard.post("/task", &fields);
        assert_eq!(answer.status, 403, "{answer:?}");
        assert!(answer.body.contains("not one of this session"), "{answer:?}");
    }
    assert_eq!(dashboard.send("DELETE /task", &[], "").status, 405);
    let huge = "x".repeat(100_000);
    assert_eq!(dashboard.post("/task", &[("reason", &huge)]).status, 413);
    assert!(fs::read(&queue).unwrap() == before, "the queue changed");
}

#[test]
fn a_read_only_dashboard_shows_no_form_and_takes_none() {
    let machine = busy();
    let dashboard = Dashboard::open(&machine, &["--read-only"]);
    for path in ["/waiting", "/breakers"] {
        let page = dashboard.page(path);
        assert!(!page.contains("method=\"post\""), "{path}");
        assert!(page.contains("Read-only"), "{path}");
    }
    for path in ["/answer", "/task", "/breaker", "/wrong"] {
        let answer = dashboard.post(path, &[("form_token", "1")]);
        assert_eq!(answer.status, 403, "{answer:?}");
        assert!(answer.body.contains("read-only"), "{answer:?}");
    }
}

#[test]
fn every_page_shows_the_project_and_escapes_what_agents_wrote() {
    let machine = busy();
    let dashboard = Dashboard::open(&machine, &[]);
    let project = project(&machine);
    let overview = dashboard.page("/");
    for text in ["needs you", "human_needed", "blocked", "question: ", "1 dead letter"] {
        assert!(overview.contains(text), "{text}: {overview}");
    }
    assert!(!dashboard.page("/?state=quiet").contains("dead letter"));
    let one = dashboard.page(&format!("/project?project={project}"));
    assert!(one.contains("Used percentage of the context window over time"), "{one}");
    assert!(one.contains("Cost of sessions over time"), "{one}");
    assert!(!one.contains("Nothing is logged"), "{one}");
    let decisions = dashboard.page("/decisions");
    assert!(decisions.contains("stop blocked") && decisions.contains("Bash"), "{decisions}");
    let blocked = dashboard.page("/decisions?outcome=blocked_call");
    assert!(!blocked.contains(">stop blocked</span>"), "{blocked}");
    let rules = dashboard.page("/rules");
    assert!(rules.contains("rm_recursive"), "{rules}");
    let by_rule = dashboard.page("/decisions?rule=rm_recursive&result=blocked");
    assert!(by_rule.contains("rm_recursive: "), "{by_rule}");
    let id = read_log(&machine.file(".policyd/logs/decisions.jsonl"))[1]["id"].clone();
    let decision =
        dashboard.page(&format!("/decision?project={project}&id={}", id.as_str().unwrap()));
    for text in ["rm_recursive", "deletes directories outside", "This was wrong"] {
        assert!(decision.contains(text), "{text}: {decision}");
    }
    let id = read_log(&machine.file(".policyd/logs/decisions.jsonl"))[0]["id"].clone();
    let stop = dashboard.page(&format!("/decision?project={project}&id={}", id.as_str().unwrap()));
    assert!(stop.contains("not reached") || stop.contains("\n  |"), "values are drawn: {stop}");
    let breakers = dashboard.page("/breakers");
    assert!(breakers.contains("api/x") && breakers.contains("failure"), "{breakers}");
    assert!(breakers.contains("State changes, newest first"), "{breakers}");
    let waiting = dashboard.page("/waiting");
    let position = |text: &str| waiting.find(text).unwrap_or_else(|| panic!("{text}: {waiting}"));
    assert!(position("Approve") < position("Blocked calls, runs, and breakers"), "order");
    assert!(dashboard.page("/waiting?recorded=1").contains("Your answer is recorded."));
    assert!(waiting.contains("Rotate passwords"), "{waiting}");
    assert!(waiting.contains("Add a &lt;parser&gt;: a human must answer"), "{waiting}");
    assert!(waiting.contains("the key &lt;b&gt;leaked&lt;/b&gt;"), "{waiting}");
    assert!(dashboard.page("/runs").contains("Add a &lt;parser&gt;"));
    assert!(dashboard.page(&format!("/runs?project={project}")).contains("r1"));
    let run = dashboard.page(&format!("/run?project={project}&id=r1"));
    for text in ["Tokens of the run over time", "<polyline", "rate_limit", "a human must answer"] {
        assert!(run.contains(text), "{text}: {run}");
    }
    for path in [
        "/nothing".to_owned(),
        "/project?project=%2Fetc".to_owned(),
        format!("/run?project={project}&id=..%2F..%2Fqueue"),
        format!("/decision?project={project}&id=zzzz"),
    ] {
        assert_eq!(dashboard.get(&path).status, 404, "{path}");
    }
}

#[test]
fn characters_that_change_the_order_of_text_are_shown_by_number() {
    let machine = Machine::new();
    let start = json!({"session_id": "s", "cwd": machine.project, "source": "startup",
        "hook_event_name": "SessionStart"});
    machine.run(&["eval", "--hook", "session-start"], start.to_string().as_bytes()).answer();
    let reason = "reason=delete \u{202e}/ fr- mr\u{202c} now\u{2066}\u{200f}";
    machine.run(&["signal", "emit", "HUMAN_REVIEW_NEEDED", reason], b"");
    let dashboard = Dashboard::open(&machine, &["--read-only"]);
    for path in ["/", "/waiting"] {
        let page = dashboard.page(path);
        assert!(!page.contains(['\u{202e}', '\u{202c}', '\u{2066}', '\u{200f}']), "{path}: {page}");
    }
    assert!(dashboard.page("/waiting").contains("delete \\u202e/ fr- mr\\u202c now"));
}

#[test]
fn a_question_is_answered_in_the_browser_and_the_work_goes_on() {
    let machine = busy();
    let dashboard = Dashboard::open(&machine, &[]);
    let token = dashboard.form_token("/waiting");
    let project = machine.project.to_str().unwrap();
    let escalations = || -> Vec<Value> {
        let text = machine.run(&["escalation", "list", "--all", "--format", "json"], b"").stdout;
        text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
    };
    let id = escalations()[0]["id"].as_str().unwrap().to_owned();
    let answer = |verdict: &str| {
        let fields = [
            ("form_token", token.as_str()),
            ("project", project),
            ("kind", "escalation"),
            ("id", &id),
            ("decision", "use the vault"),
            ("verdict", verdict),
        ];
        dashboard.post("/answer", &fields)
    };
    let first = answer("approve");
    assert_eq!((first.status, first.headers["location"].as_str()), (303, "/waiting?recorded=1"));
    let closed = &escalations()[0];
    assert_eq!(
        (&closed["status"], &closed["decision"]),
        (&json!("approved"), &json!("use the vault"))
    );
    assert_ne!(closed["by"], json!(""), "the answer names the human");
    let second = answer("reject");
    assert_eq!(second.status, 409, "{second:?}");
    assert!(second.body.contains("The first answer stays"), "{second:?}");
    let signals = machine.run(&["signal", "list", "--format", "json"], b"").stdout;
    let signal: Value = serde_json::from_str(signals.lines().next().unwrap()).unwrap();
    let id = signal["id"].as_str().unwrap();
    let fields = [
        ("form_token", token.as_str()),
        ("project", project),
        ("kind", "signal"),
        ("id", id),
        ("decision", "go on"),
        ("verdict", "approve"),
    ];
    assert_eq!(dashboard.post("/answer", &fields).status, 303);
    let history = machine.run(&["signal", "history"], b"").stdout;
    assert!(history.contains("approved"), "{history}");
    let log = machine.run(&["log"], b"").stdout;
    assert_eq!(log.matches("approve escalation").count(), 1, "the first answer is logged: {log}");
    let consumed = machine.run(&["signal", "consume", "HUMAN_APPROVED"], b"");
    assert_eq!(consumed.code, Some(0), "the agent receives the answer: {consumed:?}");
}

#[test]
fn tasks_are_moved_breakers_reset_and_false_alarms_kept_as_cases() {
    let machine = busy();
    let dashboard = Dashboard::open(&machine, &[]);
    let token = dashboard.form_token("/waiting");
    let project = machine.project.to_str().unwrap();
    let post = |path: &str, more: &[(&str, &str)]| {
        let fields = [("form_token", token.as_str()), ("project", project)];
        dashboard.post(path, &[&fields as &[(&str, &str)], more].concat())
    };
    assert_eq!(post("/task", &[("id", "sec"), ("action", "juggle")]).status, 409);
    assert_eq!(post("/task", &[("id", "none"), ("action", "retry")]).status, 409);
    assert_eq!(post("/task", &[("id", "sec"), ("action", "retry")]).status, 303);
    let pending = read_json(&machine.file(".policyd/queue/pending.json")).to_string();
    assert!(pending.contains("sec"), "{pending}");
    assert_eq!(post("/breaker", &[("key", "api/none")]).status, 409);
    assert_eq!(post("/breaker", &[("key", "api/x")]).status, 303);
    let shown = machine.run(&["breaker", "show", "api/x", "--format", "json"], b"").stdout;
    assert!(shown.contains("\"CLOSED\""), "{shown}");
    let entries = read_log(&machine.file(".policyd/logs/decisions.jsonl"));
    let wrong = |entry: &Value, rule: &str| {
        post(
            "/wrong",
            &[("id", entry["id"].as_str().unwrap()), ("rule", rule), ("note", "it is fine")],
        )
    };
    assert_eq!(wrong(&entries[1], "no_such_rule").status, 409);
    let draft = wrong(&entries[1], "rm_recursive");
    assert_eq!(draft.status, 200, "{draft:?}");
    let rule = entries[0]["verdicts"].as_array().unwrap().iter();
    let mut rule =
        rule.filter(|it| it["consequence"] == "blocks").map(|it| it["id"].as_str().unwrap());
    assert_eq!(wrong(&entries[0], rule.next().unwrap()).status, 200);
    // The drafts are cases that `policyd test` reads; they fail until the rules are changed.
    let drafts = machine.file(".policyd/case-drafts");
    let names = fs::read_dir(&drafts).unwrap().map(|it| it.unwrap().path());
    let names: Vec<_> = names.collect();
    assert_eq!(names.len(), 3, "two cases and a transcript: {names:?}");
    machine.put(".policyd/policies/policyd.yaml", "version: 1\nextends: [builtin]\n");
    for path in &names {
        let to = format!(".policyd/policies/tests/{}", path.file_name().unwrap().to_str().unwrap());
        machine.put(&to, &fs::read_to_string(path).unwrap());
    }
    let tested = machine.run(&["test"], b"");
    let text = format!("{}{}", tested.stdout, tested.stderr);
    assert_eq!(tested.code, Some(1), "{text}");
    assert!(text.contains("2 failed"), "{text}");
}

#[test]
fn a_change_is_announced_and_prometheus_reads_the_metrics() {
    let machine = busy();
    fs::write(machine.path("token"), "0123456789abcdef\n").unwrap();
    let dashboard = Dashboard::open(&machine, &["--read-only", "--metrics-token", "../token"]);
    let mut stream = TcpStream::connect(("127.0.0.1", dashboard.port())).unwrap();
    stream.set_read_timeout(Some(WAIT)).unwrap();
    let (host, cookie) = (&dashboard.host, &dashboard.cookie);
    let text = format!("GET /events HTTP/1.1\r\nhost: {host}\r\ncookie: {cookie}\r\n\r\n");
    stream.write_all(text.as_bytes()).unwrap();
    machine.stop();
    let (mut seen, mut buffer) = (String::new(), [0; 1024]);
    while !seen.contains("event: changed") {
        let count = stream.read(&mut buffer).unwrap();
        assert_ne!(count, 0, "{seen}");
        seen += &String::from_utf8_lossy(&buffer[..count]);
    }
    let metrics = |authorization: &str| {
        dashboard.send("GET /metrics", &[("cookie", ""), ("authorization", authorization)], "")
    };
    let answer = metrics("Bearer 0123456789abcdef");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.body.contains("policyd_decisions_total"), "{}", answer.body);
    assert_eq!(metrics("Bearer wrong").status, 401);
    let bearer = [("cookie", ""), ("authorization", "Bearer 0123456789abcdef")];
    assert_eq!(
        dashboard.send("GET /", &bearer, "").status,
        401,
        "the token opens the metrics only"
    );
}

#[test]
fn an_agent_cannot_start_a_dashboard_that_answers() {
    let machine = Machine::new();
    let mut command = machine.command(&["dashboard"]);
    command.env("CLAUDECODE", "1");
    let refused = crate::machine::run(command, b"");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("this is for humans"), "{refused:?}");
    assert!(refused.stdout.is_empty(), "no link is shown: {refused:?}");
}

/// `policyd top` on a pseudo-terminal of `script`.
#[test]
fn top_shows_projects_on_a_terminal_and_leaves_it_as_it_was() {
    let name = "top_shows_projects_on_a_terminal_and_leaves_it_as_it_was";
    let script = Command::new("script").arg("--version").stdout(Stdio::null()).status();
    if !script.is_ok_and(|it| it.success()) {
        skipped(name, "`script` is not installed");
        return;
    }
    let machine = busy();
    let without = machine.run(&["top"], b"");
    assert_eq!(without.code, Some(2), "{without:?}");
    assert!(without.stderr.contains("policyd status --all"), "{without:?}");
    let line = format!("stty cols 100 rows 20; {} top", env!("CARGO_BIN_EXE_policyd"));
    let mut command = machine.program("script", &["-qec", &line, "/dev/null"]);
    command.env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut seen, mut buffer) = (String::new(), [0; 4096]);
    let mut read_until = |wanted: &str| {
        while !seen.contains(wanted) {
            let count = screen.read(&mut buffer).unwrap();
            assert_ne!(count, 0, "{wanted}: {seen:?}");
            seen += &String::from_utf8_lossy(&buffer[..count]);
        }
    };
    read_until("human_needed");
    keys.write_all(b"\r").unwrap();
    read_until("question:");
    keys.write_all(b"q").unwrap();
    // The first screen comes back, and the cursor.
    read_until("\u{1b}[?1049l");
    assert_eq!(crate::machine::ended(&mut child), Some(0));
}

/// The pages in Chromium: no violation of the accessibility rules of axe, no error in the console, each form works, and a
/// change arrives without a reload. With a directory in `POLICYD_SCREENSHOTS`, screenshots are written there.
#[test]
fn pages_work_in_a_browser() {
    let script = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/process/dashboard.mjs"));
    let check = Command::new("node").arg(script).arg("--check").stdout(Stdio::piped()).output();
    let check = check.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
    let check = check.unwrap_or_else(|_| "node is not installed".to_owned());
    if check.trim() != "ready" {
        skipped("pages_work_in_a_browser", check.trim());
        return;
    }
    let machine = busy();
    let dashboard = Dashboard::closed(&machine, &[]);
    let mut command = Command::new("node");
    command.arg(script).arg(&dashboard.link).arg(&machine.project);
    command.env("POLICYD_BINARY", env!("CARGO_BIN_EXE_policyd"));
    command.env("POLICYD_HOME", machine.path(""));
    let called = command.output().unwrap();
    let text = [called.stdout, called.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    assert!(called.status.success(), "{}", text.join("\n"));
}
