//! Checks of case files, and of what they show: a rule that was never seen to fire, or never seen to be silent.

use crate::cases::coverage::{Covered, RuleKind, covered_in};
use crate::cases::names::Known;
use crate::cases::read;
use crate::lint::subject::Entry;
use crate::lint::{Findings, Subject};
use crate::policy::guards::FILES;

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

/// What is wrong in case files, as `policyd test` tells it; a pack that does not load has other worries.
pub(in crate::lint) fn broken_case(subject: &Subject<'_>, out: &mut Findings) {
    let policy = if subject.cases.is_empty() { None } else { subject.policy() };
    let Some(known) = policy.map(Known::of) else { return };
    for source in &subject.cases {
        for found in read::read(source, &known).1 {
            out.add(found.span, found.message, |it| it.with_help_if(found.help));
        }
    }
}

pub(in crate::lint) fn no_firing_case(subject: &Subject<'_>, out: &mut Findings) {
    each_rule(subject, |entry, kind, covered| {
        let key = (kind, entry.name().to_owned());
        if !covered.firing.contains(&key) {
            let (what, name) = (kind.as_str(), entry.name());
            let message = if covered.silent.contains(&key) {
                format!("no case has the {what} `{name}` find something")
            } else {
                format!("no case looks at the {what} `{name}`")
            };
            out.help(entry.id.span.clone(), message, expectation(kind, name, true));
        }
    });
}

pub(in crate::lint) fn no_silent_case(subject: &Subject<'_>, out: &mut Findings) {
    each_rule(subject, |entry, kind, covered| {
        let key = (kind, entry.name().to_owned());
        // What no case looks at is told already.
        if covered.firing.contains(&key) && !covered.silent.contains(&key) {
            let (what, name) = (kind.as_str(), entry.name());
            let message = format!("no case has the {what} `{name}` find nothing");
            out.help(entry.id.span.clone(), message, expectation(kind, name, false));
        }
    });
}

/// What a case would say of a rule.
fn expectation(kind: RuleKind, name: &str, firing: bool) -> String {
    let row = RULES.iter().find(|(_, it, _)| *it == kind);
    let [fires, silent] = row.map(|(_, _, wanted)| *wanted).unwrap_or_default();
    let wanted = if firing { fires } else { silent }.replace("NAME", name);
    format!("write a case in `tests/` that expects `{wanted}`")
}

/// The rules that the pack writes itself, with what its cases show. A pack that does not load has
/// other worries.
fn each_rule(subject: &Subject<'_>, mut look: impl FnMut(&Entry<'_>, RuleKind, &Covered)) {
    let Some(policy) = subject.policy() else { return };
    let covered = covered_in(policy, &subject.cases);
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
fn always(entry: &Entry<'_>) -> bool {
    entry.file == "session_types.yaml" && entry.text("when") == Some("true")
}
