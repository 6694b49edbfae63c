//! Checks of case files, and of what they show: a rule that was never seen to fire, or never seen to be silent.

use std::cell::OnceCell;

use super::names::MODES;
use super::programs::{OwnPrograms, slip_of_program};
use super::slips::slip;
use super::tools::{inputs, odd_input, odd_tool};
use crate::subject::PackEntry;
use crate::{Findings, Subject};
use policyd_cases::coverage::{ExpectedRules, RuleKind, covered_in};
use policyd_cases::names::NameTable;
use policyd_cases::read;
use policyd_facts::glob::word_matches;
use policyd_policy::guards::FILES;
use policyd_yaml::checksum::fingerprint;
use policyd_yaml::node::Node;
use policyd_yaml::{Diagnostic, Level, Suggestion};

/// Files whose entries are rules that a case can look at, and what a case says of one that fires and
/// of one that is silent, where `NAME` is its name.
const RULES: [(&[&str], RuleKind, [&str; 2]); 4] = [
    (
        &["considerations.yaml"],
        RuleKind::Consideration,
        ["considerations: {NAME: unsatisfied}", "considerations: {NAME: satisfied}"],
    ),
    (&FILES, RuleKind::Guard, ["guards: {NAME: fired}", "guards: {NAME: silent}"]),
    (&["session_types.yaml"], RuleKind::SessionType, ["session_type: NAME", "session_type: …"]),
    (
        &["preferences.yaml"],
        RuleKind::Preference,
        ["preferences: {NAME: true}", "preferences: {NAME: false}"],
    ),
];

/// Whether the loader found an error in the pack.
fn is_invalid(subject: &Subject<'_>) -> bool {
    subject.reviewed.diagnostics.iter().any(|it| it.level == Level::Error)
}

/// What is wrong in case files, as `policyd test` tells it; a pack that does not load has other worries.
pub(crate) fn broken_case(subject: &Subject<'_>, out: &mut Findings) {
    if is_invalid(subject) || subject.cases.is_empty() {
        return;
    }
    // Only the whole pack knows all names of breakers.
    let names_breakers = subject.cases.iter().any(|it| it.text.contains("breakers"));
    let whole = if names_breakers { subject.policy() } else { None };
    let known = whole.map_or_else(|| NameTable::of_meant(&subject.reviewed.meant), NameTable::of);
    let names = fingerprint(&[&format!("{known:?}")]);
    for source in &subject.cases {
        let read = || read::read(source, &known).1;
        let all = subject.memo().of_source("findings of cases", names, source, read);
        for found in all.iter().cloned() {
            out.add(found.span, found.message, |it| Diagnostic {
                related: found.related,
                help: found.help,
                fix: found.fix,
                ..it
            });
        }
    }
}

pub(crate) fn impossible_case(subject: &Subject<'_>, out: &mut Findings) {
    let own = OnceCell::new();
    for file in subject.case_trees() {
        for case in file.items().unwrap_or_default() {
            let steps = case.get("steps").and_then(Node::items).unwrap_or_default();
            for step in [case].into_iter().chain(steps) {
                let happened = step.get("transcript").and_then(Node::items).unwrap_or_default();
                let reported = step.get("on").into_iter();
                reported.chain(happened).for_each(|it| odd_happening(subject, &own, it, out));
            }
        }
    }
}

/// What is odd in what happens: its tool, what that is given, the programs it runs, the mode of the client.
fn odd_happening(
    subject: &Subject<'_>,
    own: &OnceCell<OwnPrograms>,
    node: &Node,
    out: &mut Findings,
) {
    // What `each` fills in is known later.
    let plain = |it: &&Node| it.text().is_some_and(|it| !it.contains("{{"));
    let said = |key: &str| node.get(key).filter(plain);
    let tool = said("tool");
    if let Some((node, (message, near))) =
        tool.and_then(|it| Some((it, odd_tool(subject, it.text()?)?)))
    {
        out.help(node.span.clone(), message, node.renamed(&near));
    }
    let known = tool.and_then(|it| inputs(std::slice::from_ref(it)));
    for (key, _) in node.get("input").and_then(Node::entries).unwrap_or_default() {
        let name = key.text().unwrap_or_default();
        if let Some(problem) = odd_input(name, known.as_deref()) {
            out.help(key.span.clone(), problem.message.clone(), problem.of(key));
        }
    }
    for node in ["command", "ran"].into_iter().filter_map(said) {
        let text = node.text().unwrap_or_default();
        if let Some((word, meant)) = slip_of_program(subject, own, text) {
            let message = format!("unknown program or subcommand `{word}`");
            let edit = text.find(word).and_then(|at| node.replaced(at..at + word.len(), &meant));
            out.help(node.span.clone(), message, Suggestion::word(&meant, edit));
        }
    }
    if let Some((node, near)) =
        said("permission_mode").and_then(|it| Some((it, slip(it.text()?, &MODES)?)))
    {
        let mode = node.text().unwrap_or_default();
        let message = format!("no client has the permission mode `{mode}`");
        out.help(node.span.clone(), message, node.renamed(near));
    }
}

/// Whether a guard is wanted silent at a call of a tool that it looks at, and that runs commands where it looks at
/// those: at another one it is silent whatever it says.
fn is_silent_where_it_looks<'a>(
    subject: &Subject<'a>,
    guard: &PackEntry<'a>,
    covered: &ExpectedRules,
) -> bool {
    let meant = &subject.reviewed.meant;
    let tools = meant.tools_of(guard.name());
    let of_commands = subject.said(guard, "commands").is_some();
    let looked_at = |tool: &str| {
        (tools.is_empty() || (!tool.is_empty() && tools.iter().any(|it| word_matches(it, tool))))
            && (!of_commands || meant.shell_tools().any(|it| it == tool))
    };
    let mut silent = covered.silent_at.iter().filter(|(it, _)| it == guard.name());
    silent.any(|(_, tool)| looked_at(tool))
}

pub(crate) fn no_firing_case(subject: &Subject<'_>, out: &mut Findings) {
    each_rule(subject, |entry, kind, covered| {
        let key = (kind, entry.name().to_owned());
        if !covered.firing.contains(&key) {
            let (what, name) = (kind.as_str(), entry.name());
            let message = if covered.silent.contains(&key) {
                format!("no test case makes the {what} `{name}` fire")
            } else {
                format!("no test case covers the {what} `{name}`")
            };
            out.help(entry.id.span.clone(), message, expectation(kind, name, true));
        }
    });
}

pub(crate) fn no_passing_case(subject: &Subject<'_>, out: &mut Findings) {
    each_rule(subject, |entry, kind, covered| {
        let (what, name) = (kind.as_str(), entry.name());
        let key = (kind, name.to_owned());
        // Rules without any case are reported above.
        if !covered.firing.contains(&key) {
            return;
        }
        let help = expectation(kind, name, false);
        if !covered.silent.contains(&key) {
            let message = format!("no test case makes the {what} `{name}` pass");
            out.help(entry.id.span.clone(), message, help);
        } else if kind == RuleKind::Guard && !is_silent_where_it_looks(subject, entry, covered) {
            let message = format!("no test case makes the {what} `{name}` pass at a matching call");
            out.add(entry.id.span.clone(), message, |it| {
                it.with_note("a guard passes in any case if its tools are not called")
                    .with_help(help)
            });
        }
    });
}

/// What a case would say of a rule.
fn expectation(kind: RuleKind, name: &str, firing: bool) -> String {
    let row = RULES.iter().find(|(_, it, _)| *it == kind);
    let [fires, silent] = row.map(|(_, _, wanted)| *wanted).unwrap_or_default();
    let wanted = if firing { fires } else { silent }.replace("NAME", name);
    format!("add a case in `tests/` that expects `{wanted}`")
}

/// The rules that the pack writes itself, with what its cases show. A pack that does not load has
/// other worries.
fn each_rule(
    subject: &Subject<'_>,
    mut look: impl FnMut(&PackEntry<'_>, RuleKind, &ExpectedRules),
) {
    let covered = match subject.cases.as_slice() {
        [] if is_invalid(subject) => return,
        // Building the whole policy takes most of the time of a small pack.
        [] => ExpectedRules::default(),
        cases => {
            let Some(policy) = subject.policy() else { return };
            covered_in(policy, cases)
        }
    };
    for (files, kind, _) in RULES {
        let entries = files.iter().flat_map(|file| subject.of(file));
        for entry in entries.filter(|it| !it.is("enabled", false)) {
            let judges = ["satisfied", "checker", "when", "commands", "unless", "regexes"];
            if judges.iter().any(|it| entry.node.get(it).is_some()) && !always(entry) {
                look(entry, kind, &covered);
            }
        }
    }
}

/// Whether a session type takes whatever is left: no case needs to show that it can be silent.
fn always(entry: &PackEntry<'_>) -> bool {
    entry.file == "session_types.yaml" && entry.text("when") == Some("true")
}
