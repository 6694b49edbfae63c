//! Exports to a collector: what is sent fits the published schema of OTLP, and each entry arrives exactly once after
//! de-duplication, also if the exporter is killed at any request or the collector is busy.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::machine::{BOUND, Machine, skipped};

/// A request that a collector received, and where its response goes.
struct Received {
    path: String,
    body: Value,
    /// `None`: the connection ends without a response.
    respond: Sender<Option<u16>>,
}

/// A collector: each request waits for the test to decide about the response.
fn collector() -> (String, Receiver<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sender = sender.clone();
            thread::spawn(move || serve(stream, &sender));
        }
    });
    (url, receiver)
}

/// Serves the requests of one connection until it ends.
fn serve(stream: TcpStream, sender: &Sender<Received>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|it| *it > 0)?;
        let path = line.split(' ').nth(1)?.to_owned();
        let mut length = 0;
        let mut is_gzip = false;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            is_gzip |= header == "content-encoding: gzip";
        }
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes).ok()?;
        assert!(is_gzip);
        let mut text = String::new();
        GzDecoder::new(&*bytes).read_to_string(&mut text).ok()?;
        let (respond, response) = channel();
        let body = serde_json::from_str(&text).ok()?;
        sender.send(Received { path, body, respond }).ok()?;
        let status = response.recv().ok()??;
        let head = format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n");
        let mut stream = stream.try_clone().ok()?;
        write!(stream, "{head}retry-after: 0\r\ncontent-length: 2\r\n\r\n{{}}").ok()?;
    }
}

/// The log records of a request by their id.
fn records(body: &Value) -> Vec<(String, Value)> {
    let records = body["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap();
    let uid = |it: &Value| {
        let attributes = it["attributes"].as_array().unwrap();
        let uid = attributes.iter().find(|it| it["key"] == "log.record.uid").unwrap();
        uid["value"]["stringValue"].as_str().unwrap().to_owned()
    };
    records.iter().map(|it| (uid(it), it.clone())).collect()
}

/// Projects with these numbers of entries; the last entry of each is the end of a run.
fn projects(machine: &Machine, counts: &[usize]) -> usize {
    let registry = machine.path("state/policyd/projects");
    fs::create_dir_all(&registry).unwrap();
    for (number, count) in counts.iter().enumerate() {
        let directory = machine.path(&format!("work-{number}"));
        fs::create_dir_all(directory.join(".policyd/logs")).unwrap();
        let entry = json!({"directory": directory, "state_dir": directory.join(".policyd"),
            "since": "2026-01-01T00:00:00Z"});
        fs::write(registry.join(format!("{number}.json")), entry.to_string()).unwrap();
        let mut log = String::new();
        for entry in 0..*count {
            let (minutes, seconds) = (entry / 60, entry % 60);
            let time = format!("2026-01-01T00:{minutes:02}:{seconds:02}Z");
            let id = format!("{entry:08x}");
            let line = if entry + 1 == *count {
                json!({"id": id, "timestamp": time, "event": "run_end", "decision": "none",
                    "notice": {"subject": "r", "outcome": "stuck", "text": "why", "run":
                    {"program": "claude", "started": "2026-01-01T00:00:00Z", "cost_usd": 1.5}}})
            } else {
                json!({"id": id, "timestamp": time, "event": "pre_tool_use", "session_id": "s",
                    "decision": "block", "spoken": true, "tool": "Bash", "micros": 4_000,
                    "trace": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                    "guards": [{"id": "rm", "decision": "block", "message": "No."}]})
            };
            log.push_str(&format!("{line}\n"));
        }
        fs::write(directory.join(".policyd/logs/decisions.jsonl"), log).unwrap();
    }
    counts.iter().sum()
}

/// Exports once; `decide` decides about each request: the status of the response, or none to kill the exporter.
fn export(
    machine: &Machine,
    url: &str,
    requests: &Receiver<Received>,
    mut decide: impl FnMut(&Received) -> Option<u16>,
) -> bool {
    let mut command = machine.command(&["export", "otlp"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", url);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    loop {
        match requests.recv_timeout(std::time::Duration::from_millis(20)) {
            Ok(request) => {
                let status = decide(&request);
                if status.is_none() {
                    child.kill().unwrap();
                    child.wait().unwrap();
                    let _gone = request.respond.send(status);
                    return false;
                }
                let _gone = request.respond.send(status);
            }
            Err(_) => {
                if child.try_wait().unwrap().is_some() {
                    return child.wait().unwrap().success();
                }
            }
        }
    }
}

#[test]
fn what_standard_output_does_not_take_is_exported_again() {
    let machine = Machine::new();
    projects(&machine, &[3]);
    let mut command = machine.command(&["export", "--format", "ocsf"]);
    command.stdout(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    assert_eq!(command.stderr(Stdio::null()).status().unwrap().code(), Some(3));
    let again = machine.run(&["export", "--format", "ocsf"], b"");
    assert_eq!(again.stdout.lines().count(), 3, "{again:?}");
    assert_eq!(machine.run(&["export", "--format", "ocsf"], b"").stdout, "");
}

#[test]
fn each_entry_arrives_exactly_once_after_de_duplication_wherever_the_exporter_is_killed() {
    let (url, requests) = collector();
    let machine = Machine::new();
    let count = projects(&machine, &[700, 3, 40, 501]);
    let mut received: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut spans: BTreeMap<String, usize> = BTreeMap::new();
    let mut killed = 0;
    // Killed at the first request, then at the second, …: before and after the collector kept it.
    for round in 0..60_usize {
        let mut number = 0;
        let ended = export(&machine, &url, &requests, |request| {
            number += 1;
            let dies = number > round / 2;
            if dies && round % 2 == 0 {
                return None;
            }
            if number == 2 && round % 3 == 0 {
                return Some(503);
            }
            if request.path == "/v1/logs" {
                for (uid, record) in records(&request.body) {
                    received.entry(uid).or_default().push(record);
                }
            } else {
                assert_eq!(request.path, "/v1/traces");
                let all = &request.body["resourceSpans"][0]["scopeSpans"][0]["spans"];
                for span in all.as_array().unwrap() {
                    *spans.entry(span["spanId"].as_str().unwrap().to_owned()).or_default() += 1;
                }
            }
            if dies { None } else { Some(200) }
        });
        killed += usize::from(!ended);
        if ended {
            break;
        }
    }
    assert!(killed > 4, "{killed}");
    assert_eq!((received.len(), spans.len()), (count, 4));
    for copies in received.values() {
        let mut copies = copies.clone();
        copies.iter_mut().for_each(|it| drop(it["observedTimeUnixNano"].take()));
        assert!(copies.windows(2).all(|it| it[0] == it[1]));
    }
    // Nothing is left, and a new entry is sent alone.
    assert!(export(&machine, &url, &requests, |_| panic!("everything was sent")));
    let log = machine.path("work-1/.policyd/logs/decisions.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let line = json!({"id": "new", "timestamp": "2026-01-02T00:00:00Z", "event": "stop", "decision": "none"});
    fs::write(&log, format!("{text}{line}\n")).unwrap();
    let mut sent = 0;
    assert!(export(&machine, &url, &requests, |it| {
        sent += records(&it.body).len();
        Some(200)
    }));
    assert_eq!(sent, 1);
}

#[test]
fn what_is_sent_fits_the_published_schema() {
    const CHECK: &str = "
import base64, json, sys
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
def ids(value):
    # OTLP writes ids in hexadecimal digits, where protobuf writes base64.
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ('traceId', 'spanId', 'parentSpanId'):
                assert len(bytes.fromhex(inner)) == (16 if key == 'traceId' else 8), inner
                value[key] = base64.b64encode(bytes.fromhex(inner)).decode()
            else:
                ids(inner)
    elif isinstance(value, list):
        for inner in value:
            ids(inner)
for line in sys.stdin:
    request = json.loads(line)
    ids(request)
    kind = ExportLogsServiceRequest if 'resourceLogs' in request else ExportTraceServiceRequest
    Parse(json.dumps(request), kind())
print('valid')
";
    let import = ["-c", "import opentelemetry.proto.collector.logs.v1.logs_service_pb2"];
    let has_schema = Command::new("python3").args(import).stderr(Stdio::null()).status();
    if !has_schema.is_ok_and(|it| it.success()) {
        skipped("what_is_sent_fits_the_published_schema", "Python has no `opentelemetry-proto`");
        return;
    }
    let (url, requests) = collector();
    let machine = Machine::new();
    projects(&machine, &[30, 2]);
    let mut bodies = String::new();
    assert!(export(&machine, &url, &requests, |it| {
        bodies.push_str(&format!("{}\n", it.body));
        Some(200)
    }));
    assert_eq!(bodies.lines().count(), 4);
    let mut python = Command::new("python3");
    python.args(["-c", CHECK]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut python = python.spawn().unwrap();
    python.stdin.take().unwrap().write_all(bodies.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "valid");
}

#[test]
fn a_collector_that_refuses_is_an_error_and_everything_is_sent_later() {
    let (url, requests) = collector();
    let machine = Machine::new();
    projects(&machine, &[5]);
    let mut seen = 0;
    assert!(!export(&machine, &url, &requests, |_| {
        seen += 1;
        Some(401)
    }));
    assert_eq!(seen, 1, "a refusal is final");
    let mut sent = 0;
    assert!(export(&machine, &url, &requests, |it| {
        if it.path == "/v1/logs" {
            sent += records(&it.body).len();
        }
        Some(200)
    }));
    assert_eq!(sent, 5);
}

#[test]
fn events_for_a_siem_are_printed_once() {
    let machine = Machine::new();
    let count = projects(&machine, &[10, 2]);
    let called = machine.run(&["export", "--format", "ocsf"], b"");
    assert!(called.took < BOUND);
    let events: Vec<Value> =
        called.stdout.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(events.len(), count);
    assert!(events.iter().all(|it| it["class_uid"] == 2004 && it["type_uid"] == 200_401));
    assert_eq!(machine.run(&["export", "--format", "ocsf"], b"").stdout, "");
    // Another destination begins at the beginning.
    assert_eq!(
        machine.run(&["export", "--format", "ocsf", "-o", "events.jsonl"], b"").code,
        Some(0)
    );
    let text = fs::read_to_string(machine.file("events.jsonl")).unwrap();
    assert_eq!(text.lines().count(), count);
}
