//! Reads the initial state of a case: files, clock, environment, probe results, saved state.

use std::time::Duration;

use super::names::{NameKind, NameTable, check_name};
use super::{Given, PackChanges, ProbeStub, ProbeStubOutcome, StateBefore};
use policyd_yaml::Diagnostic;
use policyd_yaml::node::Node;

/// Reads the map under `given`, whose shape is valid.
pub(super) fn read(node: &Node, known: &NameTable, findings: &mut Vec<Diagnostic>) -> Given {
    let text = |key: &str| node.get(key).and_then(Node::text).map(str::to_owned);
    let pack = pack(node.get("pack"), known, findings);
    Given {
        files: texts(node.get("files")),
        removed: list(node.get("removed")),
        now: node.get("now").and_then(Node::date),
        env: texts(node.get("env")),
        branch: text("branch"),
        remote: text("remote"),
        tree_clean: node.get("tree_clean").and_then(Node::bool),
        tracked: list(node.get("tracked")),
        uncommitted: list(node.get("uncommitted")),
        approvals: text("approvals"),
        interactive: node.get("interactive").and_then(Node::bool),
        probes: probes(node.get("probes"), known, &pack, findings),
        state: node.get("state").map(memory),
        breakers: breakers(node.get("breakers"), known, findings),
        disk_full: node.get("disk_full").and_then(Node::bool),
        pack,
    }
}

fn entries(node: Option<&Node>) -> &[(Node, Node)] {
    node.and_then(Node::entries).unwrap_or_default()
}

fn texts(node: Option<&Node>) -> Vec<(String, String)> {
    let text = |node: &Node| node.text().unwrap_or_default().to_owned();
    entries(node).iter().map(|(key, value)| (text(key), text(value))).collect()
}

fn list(node: Option<&Node>) -> Vec<String> {
    let items = node.and_then(Node::items).unwrap_or_default();
    items.iter().filter_map(Node::text).map(str::to_owned).collect()
}

fn memory(node: &Node) -> StateBefore {
    let count = |key: &str| node.get(key).and_then(Node::int).unwrap_or(0);
    StateBefore {
        total_blocks: u64::try_from(count("total_blocks")).unwrap_or(0),
        consecutive_blocks: u32::try_from(count("consecutive_blocks")).unwrap_or(0),
        turns: u64::try_from(count("turns")).unwrap_or(0),
    }
}

fn breakers(node: Option<&Node>, known: &NameTable, findings: &mut Vec<Diagnostic>) -> Vec<String> {
    for (key, _) in entries(node) {
        check_name(key, NameKind::BREAKER, &known.breakers, findings);
    }
    entries(node).iter().filter_map(|(key, _)| key.text()).map(str::to_owned).collect()
}

fn pack(node: Option<&Node>, known: &NameTable, findings: &mut Vec<Diagnostic>) -> PackChanges {
    let Some(node) = node else { return PackChanges::default() };
    let mut switched = |key: &str, what: &str, ids: &[String]| -> Vec<String> {
        let items = node.get(key).and_then(Node::items).unwrap_or_default().iter();
        let kind = NameKind { noun: what, code: "unknown-name" };
        items.map(|it| known.rule(it, kind, ids, findings).to_owned()).collect()
    };
    let enable = switched("enable", "consideration or probe", &known.switched_on());
    let what = "consideration, probe or guard";
    let disable = switched("disable", what, &known.switched_off());
    let voice = node.get("voice");
    if let Some(voice) = voice {
        check_name(
            voice,
            NameKind { noun: "voice", code: "misspelled-name" },
            &known.voices,
            findings,
        );
    }
    let mut preferences = Vec::new();
    for (key, value) in entries(node.get("preferences")) {
        check_name(key, NameKind::PREFERENCE, &known.preferences, findings);
        preferences.extend(key.text().map(str::to_owned).zip(value.bool()));
    }
    let voice = voice.and_then(Node::text).map(str::to_owned);
    PackChanges { enable, disable, voice, preferences }
}

fn probes(
    node: Option<&Node>,
    known: &NameTable,
    pack: &PackChanges,
    findings: &mut Vec<Diagnostic>,
) -> Vec<(String, Vec<ProbeStub>)> {
    let mut probes = Vec::new();
    for (key, value) in entries(node) {
        check_name(key, NameKind::PROBE, &known.probe_ids(), findings);
        let id = key.text().unwrap_or_default();
        let off = known.probes.iter().any(|(name, on)| name == id && !on);
        if off && !pack.enable.iter().any(|it| it == id) {
            let message = format!("the probe `{id}` is switched off, so it does not run");
            let finding = Diagnostic::error("probe-is-off", key.span.clone(), message);
            let help = format!("switch it on for this case: `pack: {{enable: [{id}]}}`");
            findings.push(finding.with_help(help));
        }
        let answers = value.one_or_items().iter().map(|it| answer(it, findings)).collect();
        probes.push((id.to_owned(), answers));
    }
    probes
}

fn answer(node: &Node, findings: &mut Vec<Diagnostic>) -> ProbeStub {
    let ends = |prints: String, stderr: &str, code: i64| ProbeStubOutcome::Ends {
        prints,
        stderr: stderr.to_owned(),
        code: i32::try_from(code).unwrap_or(1),
    };
    if let Some(printed) = node.text() {
        return ProbeStub { outcome: ends(printed.to_owned(), "", 0), takes: Duration::ZERO };
    }
    let flag = |key: &str| node.get(key).and_then(Node::bool).unwrap_or(false);
    let ways = [flag("missing"), flag("timeout"), node.get("prints").is_some()];
    let said = [node.get("code"), node.get("stderr")].iter().any(Option::is_some);
    let count = ways.iter().filter(|it| **it).count();
    if count > 1 || (count == 0 && !said) {
        let message = "a probe result is exactly one of `prints`, `missing` and `timeout`";
        let finding = Diagnostic::error("unclear-reading", node.span.clone(), message);
        findings.push(finding.with_help("write `prints:`, `missing: true` or `timeout: true`"));
    }
    let outcome = if flag("missing") {
        ProbeStubOutcome::Missing
    } else if flag("timeout") {
        ProbeStubOutcome::TimesOut
    } else {
        let printed = node.get("prints").map(|printed| match printed.text() {
            Some(text) => text.to_owned(),
            None => printed.json().to_string(),
        });
        let stderr = node.get("stderr").and_then(Node::text).unwrap_or_default();
        let code = node.get("code").and_then(Node::int).unwrap_or(0);
        ends(printed.unwrap_or_default(), stderr, code)
    };
    ProbeStub { outcome, takes: node.get("takes").and_then(Node::duration).unwrap_or_default() }
}
