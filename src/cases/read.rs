//! Reads a case file. Every unknown key, wrong type and unknown name is an error with a location.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::given::Given;
use super::names::NameTable;
use super::placeholders::{self, PlaceholderValues};
use super::shape::{CASE, FILE, HAPPENINGS};
use super::{Case, CaseStep, Expect, SnapshotFormat, TranscriptAddition, expect, given, happens};
use policyd_yaml::node::{Node, NodeKind, Scalar};
use policyd_yaml::shape::Kind;
use policyd_yaml::{Diagnostic, Source, Span, check, yaml};

/// Reads the cases of a file, with all findings. Invalid cases are left out.
#[must_use]
pub fn read(source: &Arc<Source>, known: &NameTable) -> (Vec<Case>, Vec<Diagnostic>) {
    let (node, mut findings) = yaml::parse(source);
    let Some(node) = node else { return (Vec::new(), findings) };
    let Some(items) = node.items() else {
        check::check(&node, &FILE.kind, &mut findings);
        return (Vec::new(), findings);
    };
    let mut cases = Vec::new();
    for item in items {
        for instance in instances(item, &mut findings) {
            cases.extend(case(&instance, known, &mut findings));
        }
    }
    complain_of_twins(&cases, &mut findings);
    let mut once: Vec<Diagnostic> = Vec::new();
    for finding in findings {
        // A finding in a repeated case is reported once.
        if !once.contains(&finding) {
            once.push(finding);
        }
    }
    (cases, once)
}

/// Expands a case: one instance for each of its maps of values.
fn instances(item: &Node, findings: &mut Vec<Diagnostic>) -> Vec<Node> {
    let each =
        item.entries().unwrap_or_default().iter().find(|(key, _)| key.text() == Some("each"));
    let Some((_, each)) = each else { return vec![item.clone()] };
    let rows_kind = Kind::List(&Kind::Map(&Kind::Any));
    let before = findings.len();
    check::check(each, &rows_kind, findings);
    let rows = each.items().unwrap_or_default();
    if findings.len() > before {
        return Vec::new();
    }
    if rows.is_empty() {
        let message = "`each` has no values, so the case would never run";
        findings.push(Diagnostic::error("no-values", each.span.clone(), message));
    }
    let entries = item.entries().unwrap_or_default().iter();
    let rest = entries.filter(|(key, _)| !key.says("each")).cloned().collect();
    let rest = Node { span: item.span.clone(), kind: NodeKind::Map(rest) };
    let named = rest.get("name").and_then(Node::text).is_some_and(placeholders::names_in);
    let mut instances = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let mut filling = PlaceholderValues::new(row.entries().unwrap_or_default());
        let mut instance = filling.fill_case(&rest);
        findings.extend(filling.unused(&rest));
        if !named {
            number(&mut instance, index.saturating_add(1));
        }
        instances.push(instance);
    }
    instances
}

/// Appends a number to the name of a repeated case.
fn number(case: &mut Node, number: usize) {
    let NodeKind::Map(entries) = &mut case.kind else { return };
    let name = Arc::make_mut(entries).iter_mut().find(|(key, _)| key.says("name"));
    if let Some((_, Node { kind: NodeKind::Scalar(Scalar { text, .. }), .. })) = name {
        text.push_str(&format!(" #{number}"));
    }
}

fn case(node: &Node, known: &NameTable, findings: &mut Vec<Diagnostic>) -> Option<Case> {
    let before = findings.len();
    check::check(node, &Kind::Record(CASE), findings);
    if findings.len() > before {
        return None;
    }
    let name = node.get("name")?;
    let mut reader = CaseReader { known, findings };
    let mut steps = Vec::new();
    match (node.get("steps"), node.get("expect")) {
        (Some(list), expect) => {
            for (key, what) in [("on", node.get("on")), ("expect", expect)] {
                if let Some(what) = what {
                    let message = format!("with `steps`, `{key}` belongs to a step");
                    let found = Diagnostic::error("misplaced-key", what.span.clone(), message);
                    reader.findings.push(found);
                }
            }
            steps.extend(list.items().unwrap_or_default().iter().map(|it| reader.step(it)));
            if steps.is_empty() {
                let message = "`steps` is empty, so nothing is checked";
                let found = Diagnostic::error("empty-expectation", list.span.clone(), message);
                reader.findings.push(found);
            }
            // The state and the transcript of the case precede its first step.
            if let Some(first) = steps.first_mut() {
                reader.begin(node, first);
            }
        }
        (None, Some(_)) => steps.push(reader.step(node)),
        (None, None) => {
            let message =
                format!("the case `{}` has no expectation", name.text().unwrap_or_default());
            let found = Diagnostic::error("empty-expectation", name.span.clone(), message);
            reader.findings.push(found.with_help("add `expect:`, or `steps:` with one each"));
        }
    }
    if let Some(skip) =
        node.get("skip").filter(|it| it.text().is_none_or(|why| why.trim().is_empty()))
    {
        let found = Diagnostic::error("missing-key", skip.span.clone(), "`skip` has no reason");
        reader.findings.push(found.with_help("write the reason: `skip: not written yet`"));
    }
    (findings.len() == before).then(|| Case {
        name: name.text().unwrap_or_default().to_owned(),
        span: name.span.clone(),
        skip: node
            .get("skip")
            .and_then(Node::text)
            .map(|it| it.trim().to_owned())
            .or_else(|| known.skip_reason(node)),
        steps,
    })
}

struct CaseReader<'a> {
    known: &'a NameTable,
    findings: &'a mut Vec<Diagnostic>,
}

impl CaseReader<'_> {
    fn step(&mut self, node: &Node) -> CaseStep {
        let given = node.get("given");
        CaseStep {
            span: node.get("expect").map_or_else(|| node.span.clone(), |it| it.span.clone()),
            given: given
                .map_or_else(Given::default, |it| given::read(it, self.known, self.findings)),
            after: node.get("after").and_then(Node::duration).unwrap_or(Duration::ZERO),
            transcript: self.transcript(node.get("transcript")),
            on: happens::read(node.get("on"), self.known, self.findings),
            expect: self.expect(node.get("expect")),
        }
    }

    /// Adds the state and the transcript of a case to its first step.
    fn begin(&mut self, case: &Node, first: &mut CaseStep) {
        if let Some(node) = case.get("given") {
            let own = std::mem::take(&mut first.given);
            first.given = given::read(node, self.known, self.findings).then(own);
        }
        match (self.transcript(case.get("transcript")), &mut first.transcript) {
            (TranscriptAddition::Nothing, _) => {}
            (TranscriptAddition::List(mut before), TranscriptAddition::List(own)) => {
                before.append(own);
                *own = before;
            }
            (before, own @ TranscriptAddition::Nothing) => *own = before,
            (
                TranscriptAddition::File(..),
                TranscriptAddition::List(_) | TranscriptAddition::File(..),
            )
            | (TranscriptAddition::List(_), TranscriptAddition::File(..)) => {
                let message = "a step cannot have both a list and a file as transcript";
                let span = case.get("transcript").unwrap_or(case).span.clone();
                self.findings.push(Diagnostic::error("two-transcripts", span, message));
            }
        }
    }

    fn transcript(&mut self, node: Option<&Node>) -> TranscriptAddition {
        let Some(node) = node else { return TranscriptAddition::Nothing };
        if let Some(file) = node.text() {
            return TranscriptAddition::File(node.span.clone(), PathBuf::from(file));
        }
        let items = node.items().unwrap_or_default();
        items.iter().for_each(|it| self.happening(it));
        TranscriptAddition::List(items.to_vec())
    }

    /// Checks that a happening has exactly one main key and only matching other keys.
    fn happening(&mut self, node: &Node) {
        let entries = node.entries().unwrap_or_default();
        let keys: Vec<&str> = entries.iter().filter_map(|(key, _)| key.text()).collect();
        let leading = HAPPENINGS.iter().find(|(name, _)| keys.contains(name));
        let Some((leading, beside)) = leading else {
            let names: Vec<&str> = HAPPENINGS.iter().map(|(name, _)| *name).collect();
            let message = "this happening has no main key";
            let found = Diagnostic::error("no-happening", node.span.clone(), message);
            self.findings.push(found.with_help(format!("write one of {}", names.join(", "))));
            return;
        };
        for (key, _) in entries {
            let name = key.text().unwrap_or_default();
            if name != *leading && name != "times" && !beside.contains(&name) {
                let message = format!("`{name}` cannot be used with `{leading}`");
                let found = Diagnostic::error("misplaced-key", key.span.clone(), message);
                self.findings.push(found.with_help("begin another item with `- `"));
            }
        }
    }

    fn expect(&mut self, node: Option<&Node>) -> Expect {
        let Some(node) = node else { return Expect::Wanted(Vec::new()) };
        match node.text() {
            Some("snapshot") => Expect::Snapshot(node.span.clone(), SnapshotFormat::Text),
            Some(_) => Expect::Snapshot(node.span.clone(), SnapshotFormat::Json),
            None => Expect::Wanted(expect::read(node, self.known, self.findings)),
        }
    }
}

fn complain_of_twins(cases: &[Case], findings: &mut Vec<Diagnostic>) {
    let mut seen: BTreeMap<&str, &Span> = BTreeMap::new();
    for case in cases {
        match seen.get(case.name.as_str()) {
            None => {
                seen.insert(&case.name, &case.span);
            }
            Some(first) => {
                let message = format!("duplicate case `{}`", case.name);
                let found = Diagnostic::error("duplicate-case", case.span.clone(), message);
                findings.push(found.with_related((*first).clone(), "the first one"));
            }
        }
    }
}
